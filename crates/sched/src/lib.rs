//! The vocabulary of schedviz, and its one interpreter of scheduler events.
//!
//! Nothing in this crate depends on files, on figures or on flags. A reader (the `tracedat` crate, or a
//! `Vec` in a test) delivers [`SchedEvent`]s in time order; [`Pass`] feeds them to [`SchedState`],
//! which alone decides what they mean; and every [`Analysis`] looks on.
//!
//! ```
//! use sched::{Comm, Cpu, Kind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts, analysis::RunTime};
//!
//! let idle = TaskRef { pid: Pid::IDLE, prio: 120, comm: Comm::new(b"swapper/0") };
//! let task = TaskRef { pid: Pid(7), prio: 120, comm: Comm::new(b"make") };
//! let at = |ns, pid, kind| SchedEvent { ts: Ts(ns), cpu: Cpu(0), pid, flags: 0, kind };
//! let events = vec![
//!     at(100, Pid::IDLE, Kind::Switch { prev: idle, state: PrevState::RUNNABLE, next: task }),
//!     at(350, Pid(7), Kind::Switch { prev: task, state: PrevState::blocked(1), next: idle }),
//!     at(400, Pid::IDLE, Kind::Wakeup { task, target: Cpu(0) }),
//! ];
//! let outcome = Pass::over(events.as_slice()).run(RunTime::default).unwrap();
//! assert_eq!(outcome.output.ns_of(Pid(7)), 250);
//! ```

pub mod affinity;
pub mod analysis;
mod ascending;
pub mod balancer;
pub mod causes;
pub mod chosen;
mod chosen_cpus;
pub mod counted;
pub mod counters;
mod cpu_set;
pub mod diag;
pub mod episodes;
pub mod event;
mod history;
pub mod kthread;
pub mod lengths;
pub mod limits;
pub mod lineage;
mod listed;
pub mod names;
mod note_taker;
pub mod nouns;
pub mod pass;
pub mod past;
mod past_moves;
pub mod per_task;
pub mod replay;
pub mod seeded;
pub mod serial;
pub mod span;
pub mod state;
pub mod summed;
mod task_id;
pub mod topology;
mod tracepoint;
pub mod verdict;

pub use affinity::Affinity;
pub use analysis::Analysis;
pub use causes::{Cause, Causes, Migration};
pub use chosen::{Chosen, OfSelection, Selected, Selection, TaskFilter};
pub use chosen_cpus::ChosenCpus;
pub use counters::Counters;
pub use cpu_set::CpuSet;
pub use diag::{Diagnostic, Diagnostics, EventIssue, Severity};
pub use event::probe;
pub use event::{Comm, Cpu, CpuMask, Dur, Kind, Pid, PrevState, SchedEvent, StateClass, TaskRef, Ts};
pub use lengths::Lengths;
pub use listed::Listed;
pub use note_taker::NoteTaker;
pub use pass::{EventSource, Outcome, Pass, Window};
pub use past::Past;
pub use past_moves::PastMoves;
pub use per_task::PerTask;
pub use replay::Replay;
pub use span::{CpuSpan, Current, Span, TaskState};
pub use state::{Counts, CpuFold, Load, PartCounts, SchedState, Start, Task, Waking};
pub use summed::{Part, Summed};
pub use task_id::TaskId;
pub use topology::Topology;
pub use tracepoint::Tracepoint;
pub use verdict::{Judge, Verdict};
