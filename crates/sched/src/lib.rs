//! The vocabulary of schedviz, and its one interpreter of scheduler events.
//!
//! In go [`SchedEvent`]s in time order, from a reader (the `parse` crate, or a `Vec` in a test); out comes what an [`Analysis`]
//! makes of them. [`Pass`] feeds the events to [`SchedState`], which alone decides what they mean, and every [`Analysis`] looks
//! on. Nothing here depends on files, on figures or on flags. Begin reading in `event/mod.rs`, then `state/mod.rs`, then
//! `analysis/mod.rs`.
//!
//! The modules stand in rooms, each of which imports only from those before it: `event` (the vocabulary), `tables`,
//! `numbers`, `state`, `queued`, `balance`, `analysis`, `pass`. `ARCHITECTURE.md` has their contents.
//!
//! ```
//! use sched::{Comm, Cpu, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts, analysis::RunTime};
//!
//! let idle = TaskRef { pid: Pid::IDLE, prio: 120, comm: Comm::new(b"swapper/0") };
//! let task = TaskRef { pid: Pid(7), prio: 120, comm: Comm::new(b"make") };
//! let at = |ns, pid, kind| SchedEvent { ts: Ts(ns), cpu: Cpu(0), pid, flags: 0, kind };
//! let events = vec![
//!     at(100, Pid::IDLE, EventKind::Switch { prev: idle, state: PrevState::RUNNABLE, next: task }),
//!     at(350, Pid(7), EventKind::Switch { prev: task, state: PrevState::asleep(1), next: idle }),
//!     at(400, Pid::IDLE, EventKind::Wakeup { task, target: Cpu(0) }),
//! ];
//! let outcome = Pass::over(events.as_slice()).run(RunTime::default).unwrap();
//! assert_eq!(outcome.output.ns_of(Pid(7)), 250);
//! ```

pub mod analysis;
mod balance;
pub mod event;
mod numbers;
pub mod pass;
pub mod queued;
pub mod state;
mod tables;

pub use analysis::chosen::{self, Chosen, OfSelection, Selected, Selection, TaskFilter};
pub use analysis::queued_sums::{QueuedAsk, QueuedSums, TakesQueued, TakesQueuedPart, WithQueued};
pub use analysis::step_log::StepLog;
pub use analysis::{
    Analysis,
    joined::Joined,
    listed::{Listed, Lister},
    note_taker::NoteTaker,
    queued_behind::QueuedBehind,
};
pub use balance::balancer;
pub use balance::causes::{self, Cause, Causes, Migration};
pub use balance::past_moves::PastMoves;
pub use event::diag::{self, Diagnostic, Diagnostics, EventIssue, Severity};
pub use event::span::{self, CpuSpan, Current, Span, TaskState};
pub use event::{Comm, Cpu, CpuMask, Dur, EventKind, LostCount, Pid, PrevState, SchedEvent, StateClass, TaskRef, Ts};
pub use event::{context_flags, kthread, nice, probe, task_id::TaskId, tracepoint::Tracepoint};
pub use numbers::counters::{self, Counters};
pub use numbers::lengths::{self, Lengths};
pub use numbers::summed::{self, Addend, Summed};
pub use numbers::verdict::{self, Judgement, Verdict};
pub use numbers::{episodes, nouns};
pub use pass::replay::{self, Replay};
pub use pass::{EventSource, Outcome, OutputsBeside, Pass, Window};
pub use queued::{ComparedQueue, HELD_BACK, LeastQueues, QueuedKinds, QueuedReading, QueuedTimes};
pub use state::affinity::{self, Affinity};
pub use state::application::{Application, ApplicationBasis, ApplicationMember, without_application};
pub use state::command_work::{CommandWork, RunLengths};
pub use state::past::{self, Past};
pub use state::policies::SchedIdleTasks;
pub use state::{CpuCounts, CpuFold, Load, SchedState, SoftirqOrigin, Start, SubsetCounts, Task, Waking};
pub use state::{counted, lineage, names};
pub use tables::per_task::{self, PerTask};
pub use tables::topology::{self, Topology};
pub use tables::{capacities::CpuCapacities, chosen_cpus::ChosenCpus, cpu_set::CpuSet};
pub use tables::{limits, packed, seeded, serial};
