//! Time off-CPU by the stack of the switch-out: the place in the kernel, and in the program, at which a task went to sleep or gave way.
//!
//! Each switch-out can have a stack. The time that the task is asleep after it, and the time that it is runnable, is at that stack
//! until the task runs again; time without a recorded stack is in the row *no stack*, so that all rows together are all the time.
//! `docs/definitions.md`, section 19, defines each number.
//!
//! ```
//! use offcpu::{OffCpu, Options};
//! use sched::Pass;
//!
//! // No stacks were recorded: a task waits for 200 ns.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options::default();
//! let outcome = Pass::over(events.as_slice()).run(|| OffCpu::new(&options)).unwrap_or_else(|never| match never {});
//! let report = outcome.output;
//! assert_eq!((report.runnable_ns.map(|ns| ns.0), report.with_stack), (Some(200), Some(0)));
//! ```

mod args;
mod figure;
mod flame;
mod folded;
mod kinds;
mod question;
mod report;
mod resolve;
mod table;
mod text;

pub use args::OffCpuArgs;
pub use figure::figure;
pub use folded::folded;
pub use kinds::StackKind;
pub use question::OffCpuQuestion;
pub use report::{KindTimes, OffCpuReport, StackTimes};
pub use text::text;

use sched::kthread::command;
use sched::limits::BoundedRows;
use sched::{
    Analysis, Chosen, ChosenCpus, Comm, Dur, EventKind, Joined, PerTask, SchedEvent, SchedState, Span, TaskState, Ts,
};
use serde::Serialize;
use tracedat::{StackFrame, StackId, SwitchStacks};

/// The time that orders the stacks, and that folded stacks and the figure show
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OffCpuTime {
    /// The time asleep
    #[default]
    Asleep,
    /// The time runnable: waiting for a CPU
    Runnable,
    /// The time asleep and the time runnable
    Both,
}

/// The name of a function for an address; the address itself where the trace has none.
pub type NamesFrame<'o> = dyn Fn(StackFrame) -> Option<String> + Sync + 'o;

/// The tasks and the stacks of a measurement.
#[derive(Default)]
pub struct Options<'o> {
    /// The CPUs on which tasks are asleep or runnable.
    pub cpus: ChosenCpus,
    /// The tasks that are counted; absent where all are.
    pub tasks: Option<&'o Chosen<'o>>,
    /// The stacks of the switches.
    pub stacks: SwitchStacks,
    /// The names of addresses; absent where there are none.
    pub names: Option<Box<NamesFrame<'o>>>,
    /// Whether the frames of programs are shown.
    pub has_user: bool,
    /// The time by which stacks are ordered.
    pub time: OffCpuTime,
}

/// The sums of a command at a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StackSums {
    asleep: Dur,
    runnable: Dur,
    switches: u64,
}

/// The key of a row: a command, and the number of its stack.
type RowKey = (Comm, Option<StackId>);

/// The analysis of time off-CPU: an [`Analysis`] whose output is an [`OffCpuReport`].
pub struct OffCpu<'o> {
    options: &'o Options<'o>,
    /// The window's start, once that is reached.
    start: Option<Ts>,
    /// The stack with which each task left its CPU.
    left: PerTask<StackId>,
    /// The sums by row; those without a key are of the rows beyond their number.
    rows: BoundedRows<Option<RowKey>, StackSums>,
}

/// Stacks go from one piece of a pass into the next: the analysis is not divisible.
impl Joined for OffCpu<'_> {}

impl<'o> OffCpu<'o> {
    /// Returns the analysis with the options of a measurement.
    pub fn new(options: &'o Options<'o>) -> OffCpu<'o> {
        OffCpu { options, start: None, left: PerTask::default(), rows: BoundedRows::default() }
    }

    /// Takes the stacks of the tasks that the event has turned.
    fn follow(&mut self, event: &SchedEvent, state: &SchedState) {
        use TaskState::{Asleep, Running, Throttled, Waiting};
        for (task, span) in state.turns() {
            let stack = match (span.state, span.next, event.kind) {
                (Running(cpu), Asleep(_) | Waiting(_) | Throttled(_), EventKind::Switch { prev, .. })
                    if prev.pid == task.pid && cpu == event.cpu =>
                {
                    self.options.stacks.of_switch(event.ts, event.cpu, prev.pid)
                }
                // The task is still off the CPU.
                (Asleep(_) | Waiting(_) | Throttled(_), Asleep(_) | Waiting(_) | Throttled(_), _) if span.ended => {
                    continue;
                }
                _ => None,
            };
            match stack {
                Some(stack) => self.left.insert(task.id(), stack),
                None => drop(self.left.take(task.id())),
            }
            let is_out = matches!((span.state, span.next), (Running(_), Asleep(_) | Waiting(_) | Throttled(_)));
            let is_chosen = self.options.tasks.is_none_or(|chosen| chosen(task, state));
            if is_out && is_chosen && self.start.is_some() && self.options.cpus.has(event.cpu) {
                self.rows.of(Some((command(task.comm), stack)), None).switches += 1;
            }
        }
    }
}

impl Analysis for OffCpu<'_> {
    type Output = OffCpuReport;
    /// A task that left its CPU before the window is at the stack of that switch.
    const LOOKS_BACK: bool = true;

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        self.follow(event, state);
    }

    fn begin(&mut self, start: Ts, _: &SchedState) {
        self.start = Some(start);
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        let (TaskState::Asleep(cpu) | TaskState::Waiting(cpu)) = span.state else { return };
        let Some(task) = state.task(span.task) else { return };
        if !self.options.cpus.has(cpu) || self.options.tasks.is_some_and(|chosen| !chosen(task, state)) {
            return;
        }
        let key = (command(task.comm), self.left.get(span.task).copied());
        let (row, length) = (self.rows.of(Some(key), None), span.duration());
        match span.state {
            TaskState::Asleep(_) => row.asleep += length,
            _ => row.runnable += length,
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.follow(event, state);
    }

    fn finish(self, end: Ts, _: &SchedState) -> OffCpuReport {
        report::build(self, end)
    }
}

#[cfg(test)]
mod tests;
