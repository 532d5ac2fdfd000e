//! Time off-CPU by the stack of the switch-out: the place at which a task went to sleep or gave way (`docs/questions/offcpu.md`).
//!
//! In go a trace and its stacks, out come the time asleep and the time runnable of each stack. Both are at the stack of the
//! switch-out until the task runs again; time without a recorded stack is in the row *no stack*, so that all rows together are
//! all the time. Begin reading below in this file, then in `resolve.rs`.
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
mod joined;
mod kinds;
mod noted;
mod question;
mod report;
mod resolve;
mod table;
mod text;
mod timehist;

pub use args::OffCpuArgs;
pub use figure::figure;
pub use folded::folded;
pub use kinds::WakerContext;
pub use noted::{NotedStacks, OffCpuNotes};
pub use question::OffCpuQuestion;
pub use report::{KindTimes, OffCpuReport, StackTimes, WokenBy};
pub use session::stacks::StackKind;
pub use text::text;

use joined::{OffStep, Woken};
use parse::{EventStacks, StackFrame, StackId, StackedEvent};
use sched::kthread::command;
use sched::limits::BoundedRows;
use sched::state::Task;
use sched::{
    Analysis, Chosen, ChosenCpus, Comm, Cpu, Dur, EventKind, Past, PerTask, Pid, SchedEvent, SchedState, Span, StepLog,
    TaskId, TaskState, Ts,
};
use serde::Serialize;
use timehist::Timehist;

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

/// The stacks by which time is divided
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OffCpuBy {
    /// The stack with which the task left its CPU
    #[default]
    Switch,
    /// The stack of the waker, with its command: of the task or the interrupt that ends the sleep
    Waker,
    /// The stack of the switch-out, and that of the waker
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
    /// The stacks of the switches and of the wakings.
    pub stacks: EventStacks,
    /// The stacks that go on at the start of a part of a trace.
    pub noted: NotedStacks,
    /// The names of addresses; absent where there are none.
    pub names: Option<Box<NamesFrame<'o>>>,
    /// Whether the frames of programs are shown.
    pub has_user: bool,
    /// The time by which stacks are ordered.
    pub time: OffCpuTime,
    /// The stacks by which time is divided.
    pub by: OffCpuBy,
    /// Whether no event of the trace shows when a sleep ends.
    pub without_wakeups: bool,
}

/// The sums of a command at a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StackSums {
    asleep: Dur,
    runnable: Dur,
    switches: u64,
}

impl std::ops::AddAssign for StackSums {
    fn add_assign(&mut self, other: StackSums) {
        self.asleep += other.asleep;
        self.runnable += other.runnable;
        self.switches += other.switches;
    }
}

/// The origin of a wakeup, with its stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct StackWaker {
    context: WakerContext,
    /// The command of the waker; empty of interrupts.
    command: Comm,
    stack: Option<StackId>,
}

/// The key of a row: a command, the number of the stack of its switch-out, and the waker; each where rows are divided by it.
type RowKey = (Comm, Option<StackId>, Option<StackWaker>);

/// The stacks of a task that is off its CPU.
#[derive(Clone, Copy, Debug, Default)]
struct OffTrack {
    /// The stack of the switch-out.
    out: Option<StackId>,
    /// The origin of the wakeup that ended the sleep; nothing before it, and of a wait that no wakeup began.
    waker: Option<StackWaker>,
    /// Whether the task left its CPU without a switch, as that went offline.
    is_concluded: bool,
}

/// The `sched_waking` of a task that was seen last.
#[derive(Clone, Copy, Debug)]
struct SeenWaking {
    at: Ts,
    by: Pid,
    on: Cpu,
    waker: StackWaker,
}

impl SeenWaking {
    /// The waking as the state has it.
    fn id(&self) -> (Ts, Pid, Cpu) {
        (self.at, self.by, self.on)
    }
}

/// The analysis of time off-CPU: an [`Analysis`] whose output is an [`OffCpuReport`].
pub struct OffCpu<'o> {
    options: &'o Options<'o>,
    /// The window's start, once that is reached.
    start: Option<Ts>,
    /// The stacks of the tasks that are off their CPUs, as events have shown them. A sleeping task without an entry slept when the trace
    /// began.
    off: PerTask<OffTrack>,
    /// The latest waking of each task; none where rows are not divided by wakers.
    wakings: PerTask<SeenWaking>,
    /// The waking that is being applied, or the wakeup where no wakings were recorded, with the woken task.
    current: Option<(Pid, SeenWaking)>,
    /// The lines of perf's timehist.
    timehist: Timehist,
    /// The sums by row; those without a key are of the rows beyond their number.
    rows: BoundedRows<Option<RowKey>, StackSums>,
    /// The steps of a later piece of a pass, for the pieces before.
    log: StepLog<OffStep>,
}

impl<'o> OffCpu<'o> {
    /// Returns the analysis with the options of a measurement.
    pub fn new(options: &'o Options<'o>) -> OffCpu<'o> {
        OffCpu {
            options,
            start: None,
            off: PerTask::default(),
            wakings: PerTask::default(),
            current: None,
            timehist: Timehist::default(),
            rows: BoundedRows::default(),
            log: StepLog::default(),
        }
    }

    /// Whether what a task does on a CPU, or off it, is counted.
    fn is_chosen(&self, task: &Task, cpu: Cpu, state: &SchedState) -> bool {
        self.start.is_some()
            && self.options.cpus.has(cpu)
            && self.options.tasks.is_none_or(|chosen| chosen(task, state))
    }

    /// The origin of an event that wakes `woken`.
    fn waker(&self, kind: StackedEvent, event: &SchedEvent, woken: Pid, state: &SchedState) -> StackWaker {
        let stack = self.options.stacks.of(kind, event.ts, event.cpu, woken);
        if !event.in_task() {
            return StackWaker { context: WakerContext::Interrupt, command: Comm::EMPTY, stack };
        }
        let name = match event.pid.is_idle() {
            true => Comm::new(b"swapper/N"),
            false => state.task_of(event.pid).map_or(Comm::EMPTY, |task| task.comm),
        };
        StackWaker { context: WakerContext::Task, command: command(name), stack }
    }

    /// Takes what an event means for perf's lines. Those in the window are counted.
    fn line(&mut self, event: &SchedEvent, state: &SchedState) {
        if let Some(line) = timehist::line(event, self.options, state.has_wakings(), self.start.is_some()) {
            self.step(OffStep::Line(line));
        }
    }

    /// Whether rows are divided by wakers.
    fn has_wakers(&self) -> bool {
        self.options.by != OffCpuBy::Switch
    }

    /// Takes the event, before its spans are passed on, where rows are divided by wakers.
    fn see(&mut self, event: &SchedEvent, state: &SchedState) {
        let (kind, woken) = match event.kind {
            EventKind::Waking { task, .. } => (StackedEvent::Waking, task.pid),
            EventKind::Wakeup { task, .. } if !state.has_wakings() => (StackedEvent::Wakeup, task.pid),
            _ => return self.current = None,
        };
        let waker = self.waker(kind, event, woken, state);
        self.current = Some((woken, SeenWaking { at: event.ts, by: event.pid, on: event.cpu, waker }));
    }

    /// The facts about the wakeup that ends the sleep of a task, where rows are divided by wakers.
    fn woken(&self, task: &Task, state: &SchedState) -> Option<Box<Woken>> {
        let waking = task.waking.map(|waking| (waking.at, waking.by, waking.on));
        let current = self.current.as_ref().filter(|(woken, _)| *woken == task.pid).map(|(_, seen)| seen);
        let current = current.filter(|seen| !state.has_wakings() || waking == Some(seen.id()));
        self.has_wakers().then(|| Box::new(Woken { waking, current: current.map(|seen| seen.waker) }))
    }

    /// Takes what the event means for the tasks that it has turned.
    fn turn(&mut self, event: &SchedEvent, state: &SchedState) {
        use TaskState::{Asleep, Running, Throttled, Waiting};
        if let EventKind::Waking { .. } = event.kind
            && let Some((pid, seen)) = self.current
            && let Some(woken) = state.task_of(pid)
        {
            self.step(OffStep::Waking(woken.id(), seen));
        }
        for (task, span) in state.turns() {
            let is_switch = matches!(event.kind, EventKind::Switch { prev, .. } if prev.pid == task.pid);
            match (span.state, span.next) {
                // The task is still off the CPU.
                (Asleep(_) | Waiting(_) | Throttled(_), Asleep(_) | Waiting(_) | Throttled(_)) if span.ended => {
                    let woken = match (span.state, span.next) {
                        (Asleep(cpu), Waiting(_) | Throttled(_)) => {
                            self.woken(task, state).map(|woken| (woken, self.is_chosen(task, cpu, state)))
                        }
                        _ => None,
                    };
                    self.step(OffStep::Stays { task: task.id(), name: command(task.comm), woken });
                }
                (from, Asleep(_) | Waiting(_) | Throttled(_)) => {
                    let is_out = is_switch && matches!(from, Running(_));
                    let stack = is_out && from == Running(event.cpu);
                    let stack = stack.then(|| self.options.stacks.of_switch(event.ts, event.cpu, task.pid)).flatten();
                    let is_asleep = matches!(span.next, Asleep(_));
                    // A sleep has a waker only when it ends.
                    let is_counted = !(self.has_wakers() && is_asleep);
                    let is_counted = is_out && is_counted && self.is_chosen(task, event.cpu, state);
                    let name = command(task.comm);
                    self.step(OffStep::Leaves { task: task.id(), name, stack, is_switch, is_asleep, is_counted });
                }
                _ => self.step(OffStep::Returns(task.id())),
            }
        }
    }

    /// Follows a step, or notes it in a later piece of a pass.
    fn step(&mut self, step: OffStep) {
        if let Some(step) = self.log.at_once(step) {
            self.take_step(step);
        }
    }

    fn take_step(&mut self, step: OffStep) {
        match step {
            OffStep::Line(line) => self.timehist.take(&line),
            OffStep::Passed { task, name, is_asleep, length, woken } => {
                let track = self.off.get(task).copied();
                let OffTrack { out, waker, .. } = track.unwrap_or_default();
                if !is_asleep {
                    self.row(name, out, waker, false).runnable += length;
                } else if track.is_some() {
                    let waker = woken.map(|woken| self.woken_by(task, &woken));
                    self.row(name, out, waker, true).asleep += length;
                }
            }
            OffStep::Waking(task, seen) => self.wakings.insert(task, seen),
            OffStep::Leaves { task, name, stack, is_switch, is_asleep, is_counted } => {
                self.off.insert(task, OffTrack { out: stack, waker: None, is_concluded: !is_switch });
                if is_counted {
                    self.row(name, stack, None, is_asleep).switches += 1;
                }
            }
            OffStep::Returns(task) => drop(self.off.take(task)),
            OffStep::Stays { task, name, woken } => self.stays(task, name, woken),
        }
    }

    /// The origin of the wakeup that ends the sleep of a task.
    fn woken_by(&self, task: TaskId, woken: &Woken) -> StackWaker {
        let seen = self.wakings.get(task).filter(|seen| woken.waking == Some(seen.id()));
        let waker = seen.map(|seen| seen.waker).or(woken.current);
        waker.unwrap_or(StackWaker { context: WakerContext::Unknown, ..StackWaker::default() })
    }

    /// A task that is off its CPU goes from one such state to another; `woken`: by the end of a sleep, which counts or does not.
    fn stays(&mut self, task: TaskId, name: Comm, woken: Option<(Box<Woken>, bool)>) {
        let known = self.off.get(task).copied();
        let mut track = known.unwrap_or_default();
        if let Some((woken, is_chosen)) = woken {
            track.waker = Some(self.woken_by(task, &woken));
            if is_chosen && known.is_some_and(|off| !off.is_concluded) {
                self.row(name, track.out, track.waker, true).switches += 1;
            }
        }
        self.off.insert(task, track);
    }

    /// The sums of a task's row, by its stack and by its waker.
    fn row(&mut self, name: Comm, out: Option<StackId>, waker: Option<StackWaker>, is_asleep: bool) -> &mut StackSums {
        let by = self.options.by;
        let none = match is_asleep {
            true => WakerContext::NotWoken,
            false => WakerContext::NoWakeup,
        };
        let waker = waker.unwrap_or(StackWaker { context: none, ..StackWaker::default() });
        let out = out.filter(|_| by != OffCpuBy::Waker);
        self.rows.of(Some((name, out, (by != OffCpuBy::Switch).then_some(waker))), None)
    }
}

impl Analysis for OffCpu<'_> {
    type Output = OffCpuReport;
    /// A task that left its CPU before the window is at the stack of that switch.
    const LOOKS_BACK: bool = true;

    fn recall(&mut self, _: &Past, state: &SchedState) {
        noted::take_up(self, state);
    }

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        if self.has_wakers() {
            self.see(event, state);
        }
        self.line(event, state);
        self.turn(event, state);
    }

    fn begin(&mut self, start: Ts, _: &SchedState) {
        self.start = Some(start);
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        if self.has_wakers() {
            self.see(event, state);
        }
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        let (TaskState::Asleep(cpu) | TaskState::Waiting(cpu)) = span.state else { return };
        let Some(task) = state.task(span.task) else { return };
        let is_asleep = matches!(span.state, TaskState::Asleep(_));
        // A task on the queue of a CPU without any event may have run there unseen.
        let is_unseen = !is_asleep && !state.is_observed(cpu);
        if is_unseen || !self.options.cpus.has(cpu) || self.options.tasks.is_some_and(|chosen| !chosen(task, state)) {
            return;
        }
        let is_woken = span.ended && matches!(span.next, TaskState::Waiting(_) | TaskState::Throttled(_));
        let woken = if is_asleep && is_woken { self.woken(task, state) } else { None };
        let (name, length) = (command(task.comm), span.duration());
        self.step(OffStep::Passed { task: span.task, name, is_asleep, length, woken });
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.line(event, state);
        self.turn(event, state);
    }

    fn finish(self, end: Ts, _: &SchedState) -> OffCpuReport {
        report::build(self, end)
    }
}

#[cfg(test)]
mod tests;
