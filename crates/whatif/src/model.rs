//! The work of a trace: programs of tasks, their sleeps with the causes that end them, and the order of the CPUs' runs.

use crate::chances::Balancing;
use sched::{Comm, Cpu, CpuSet, Dur, Pid, TaskId, Ts};
use serde::Serialize;

/// The index of a task in [`Model::tasks`].
pub type TaskIndex = u32;
/// The index of a sleep in [`Model::sleeps`].
pub type SleepIndex = u32;
/// The index of a join in [`Model::joins`].
pub type JoinIndex = u32;

/// The cause that ends a sleep. It decides how a changed schedule moves the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SleepClass {
    /// A task woke the sleeper in task context: the wakeup moves with the waker.
    Task,
    /// A task woke an uninterruptible sleeper in task context: probably a lock, whose order of owners may change.
    Lock,
    /// A timer woke the sleeper, as records of timers show: the sleep keeps its length.
    Timer,
    /// A timer with an absolute expiry woke the sleeper: the sleep keeps the instant of its end.
    AbsoluteTimer,
    /// A timer with an expiry that the kernel counts as absolute woke the sleeper, which set it. Both an absolute expiry and the timeout of
    /// `poll`, `select`, `epoll_wait` or a futex come to that: the sleep keeps its length, or in the intervals the instant of its end.
    EitherTimer,
    /// The handler of a device woke the sleeper: the sleep keeps its length.
    Device,
    /// An interrupt of unknown cause woke the sleeper: the sleep keeps its length.
    Interrupt,
    /// Bandwidth control kept the task from running: it keeps the length.
    Throttled,
    /// The trace does not show the end of the sleep, or has a gap: it keeps its length.
    Unknown,
}

impl SleepClass {
    /// Every class, in the order of their indices.
    pub const ALL: [SleepClass; 9] = [
        SleepClass::Task,
        SleepClass::Lock,
        SleepClass::Timer,
        SleepClass::AbsoluteTimer,
        SleepClass::EitherTimer,
        SleepClass::Device,
        SleepClass::Interrupt,
        SleepClass::Throttled,
        SleepClass::Unknown,
    ];

    /// Whether a task of the model ends sleeps of this class.
    pub fn is_by_task(self) -> bool {
        matches!(self, SleepClass::Task | SleepClass::Lock)
    }

    /// Whether the trace shows the cause of the wakeup.
    pub fn is_known(self) -> bool {
        !matches!(self, SleepClass::Interrupt | SleepClass::Unknown)
    }

    /// The words for the class in tables.
    pub fn words(self) -> &'static str {
        match self {
            SleepClass::Task => "woken by a task",
            SleepClass::Lock => "woken by a task, uninterruptible (a lock?)",
            SleepClass::Timer => "timer",
            SleepClass::AbsoluteTimer => "absolute timer",
            SleepClass::EitherTimer => "timer, relative or absolute",
            SleepClass::Device => "device",
            SleepClass::Interrupt => "interrupt of unknown cause",
            SleepClass::Throttled => "throttled",
            SleepClass::Unknown => "unknown",
        }
    }
}

/// A sleep of a task, or another time during which it could not run for a reason that is no run queue.
#[derive(Clone, Copy, Debug)]
pub struct ModelSleep {
    /// The task that sleeps.
    pub task: TaskIndex,
    /// The cause that ends the sleep.
    pub class: SleepClass,
    /// The instant at which the sleep began in the trace.
    pub start: Ts,
    /// The time from the switch-out to the waking, in nanoseconds.
    pub length: u64,
    /// Whether an event of the window ends the sleep.
    pub ends: bool,
    /// Whether a softirq on top of a task of a program ended the sleep, perhaps on behalf of that task, as on loopback.
    pub on_task: bool,
    /// Whether the waking preceded the switch-out.
    pub announced: bool,
    /// The number of the state with which the task was switched out.
    pub raw: u32,
    /// The time from the waking to the run queue, in nanoseconds.
    pub placing: u64,
    /// The CPU on which the waking was recorded.
    pub waker: Cpu,
    /// The run queue that the task joins afterwards.
    pub join: JoinIndex,
}

impl ModelSleep {
    /// Whether any task may have caused the end of the sleep, or the time is unknown.
    pub fn is_open(&self) -> bool {
        match self.class {
            SleepClass::Unknown | SleepClass::Throttled => true,
            SleepClass::Interrupt => self.on_task,
            _ => false,
        }
    }
}

/// The CPU that a wakeup chose, relative to CPUs that a changed schedule moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacedOn {
    /// The CPU on which the task last ran.
    Previous,
    /// The CPU of the waker, which is not the previous one.
    Waker,
    /// Any other CPU.
    Other,
}

/// A task joining a run queue: after a sleep, a preemption or a fork.
#[derive(Clone, Copy, Debug)]
pub struct QueueJoin {
    /// The task that joins.
    pub task: TaskIndex,
    /// The instant at which the task joined in the trace.
    pub start: Ts,
    /// The time until the task ran in the trace, in nanoseconds; zero where no run ended the wait.
    pub waited: u64,
    /// The CPU of the run queue.
    pub cpu: Cpu,
    /// The kind of CPU that the wakeup chose.
    pub placed: PlacedOn,
    /// Whether the wakeup takes an idle CPU where it finds one: it took one in the trace, or found none that it could take.
    pub seeks_idle: bool,
    /// The time until the task ran, where it joined an idle CPU and ran next there, in nanoseconds.
    pub dispatch: Option<u64>,
    /// The moves of the task while it waits: a range of [`Model::moves`].
    pub moves: (u32, u32),
    /// The CPUs that the task may use while it waits: an index of [`Model::sets`]; absent where it is not restricted.
    pub allowed: Option<u32>,
}

/// A migration of a task that waits.
#[derive(Clone, Copy, Debug)]
pub struct QueuedMove {
    /// The time since the task joined its first run queue, in nanoseconds.
    pub after: u64,
    /// The CPU that the task moves to.
    pub dest: Cpu,
    /// The cause of the move.
    pub kind: MoveKind,
}

/// The cause of the move of a waiting task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveKind {
    /// The destination took the task as it went idle.
    NewIdle,
    /// The balancer took the task for a CPU that idled.
    Idle,
    /// The balancer took the task for a CPU that ran a task.
    Busy,
    /// The balancer had a stopper take the task off its CPU (active balancing).
    Active,
    /// A stopper moved the task: an exec, or a change of the CPUs that the task may use.
    Stopper,
    /// A change of the CPUs that the task may use, or an unknown cause.
    Other,
}

/// A step of a task's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramStep {
    /// The task uses the CPU for this time, in nanoseconds.
    Run(u64),
    /// The task wakes a sleeper.
    Wake(SleepIndex),
    /// The task puts its child into a run queue.
    Fork(TaskIndex),
    /// The task is switched out, and could have gone on.
    Preempted(JoinIndex),
    /// The task sleeps.
    Sleep(SleepIndex),
    /// The task uses the CPU until all tasks of this meeting have come to it: an index of [`Model::meetings`].
    Meet(u32),
    /// The task executes a program of this name.
    Exec(Comm),
    /// The task takes another name.
    Rename(Comm),
    /// The kernel priority of the task changes to this one.
    Priority(i32),
    /// The task begins to exit.
    Exit,
    /// The task is switched out for the last time.
    Die,
    /// A wakeup without effect.
    Nothing,
}

/// The state in which a task begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// The task runs on this CPU at the start.
    Runs(Cpu),
    /// The task waits at the start, as this join.
    Waits(JoinIndex),
    /// The task sleeps at the start: its first step is a sleep.
    Sleeps,
    /// A step of its parent puts the task into a run queue, as this join.
    Forked(JoinIndex),
    /// The task joins a run queue at this instant, whatever the others do.
    At(Ts, JoinIndex),
}

/// A task with its program.
#[derive(Clone, Debug)]
pub struct ModelTask {
    /// The life of the PID that the task is; absent in a model that no trace was read for.
    pub id: Option<TaskId>,
    /// The PID of the task.
    pub pid: Pid,
    /// The PID of the parent, where the fork is in the trace.
    pub parent: Option<Pid>,
    /// The name of the task at the beginning.
    pub comm: Comm,
    /// The kernel priority of the task at the beginning.
    pub prio: i32,
    /// The CPU of the task at the beginning.
    pub cpu: Cpu,
    /// The CPUs that the task may use until it first joins a queue: an index of [`Model::sets`]; absent where it is not restricted.
    pub allowed: Option<u32>,
    /// The state in which the task begins.
    pub begin: Begin,
    /// The steps of the program, in order.
    pub steps: Vec<ProgramStep>,
}

impl ModelTask {
    /// Whether the task uses a CPU in the window.
    pub fn has_work(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, ProgramStep::Run(_)))
    }
}

/// A CPU of the model.
#[derive(Clone, Debug, Default)]
pub struct ModelCpu {
    /// Whether the trace has events of the CPU, and it was never offline.
    pub usable: bool,
    /// The tasks that were switched in, in order.
    pub runs: Vec<TaskIndex>,
}

/// The quantities that the engine takes from the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Taken {
    /// The median time from joining an idle CPU to the switch, in nanoseconds; zero without any.
    pub dispatch_ns: Dur,
    /// The time slice of fair tasks: the median length of runs that a task ended which had waited throughout, in nanoseconds.
    pub slice_ns: Dur,
    /// Whether the slice was measured. With fewer than 20 such runs it is the base slice of the machine file, which it has at least, or
    /// 3 ms; it is longer where the work of the trace would have too many slices.
    pub slice_is_measured: bool,
    /// Whether some wakeup of a task whose previous CPU was busy, beside an idle CPU, was placed on an idle one.
    pub wakeups_seek_idle: bool,
    /// The balancing of CPUs that idled or went idle.
    pub balancing: Balancing,
}

/// The number of sleeps of a class, and their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassSum {
    /// The class of the sleeps.
    pub class: SleepClass,
    /// The number of sleeps that end in the window.
    pub number: u64,
    /// The total length of these sleeps, in nanoseconds.
    pub total_ns: Dur,
}

/// The work of a window of a trace.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The start of the window.
    pub start: Ts,
    /// The end of the window.
    pub end: Ts,
    /// The CPUs, by their numbers.
    pub cpus: Vec<ModelCpu>,
    /// The tasks, in the order in which the window shows them.
    pub tasks: Vec<ModelTask>,
    /// The sleeps of all tasks.
    pub sleeps: Vec<ModelSleep>,
    /// The joins of run queues.
    pub joins: Vec<QueueJoin>,
    /// The moves of waiting tasks.
    pub moves: Vec<QueuedMove>,
    /// The tasks of each meeting at which they spin.
    pub meetings: Vec<Vec<TaskIndex>>,
    /// The sets of CPUs that tasks may use.
    pub sets: Vec<CpuSet>,
    /// The traced command's first task, where the trace shows its exit.
    pub root: Option<TaskIndex>,
    /// The instant of its exit.
    pub exit: Option<Ts>,
    /// The quantities taken from the trace.
    pub taken: Taken,
    /// The number of wakeups of tasks that were awake, which have no effect.
    pub early_wakeups: u64,
    /// The commands whose bursts end together again and again, `N` for the number at the end of a name: perhaps they spin at barriers.
    pub spinners: Vec<Comm>,
    /// The number of switches.
    pub switches: u64,
    /// The number of times that a task changed its state. Beyond `most_turns` nothing is added to the model, which then cannot be
    /// used.
    pub turns: u64,
    /// Maximum number of such times.
    pub most_turns: u64,
}

impl Model {
    /// Maximum number of times that tasks of a small file change their state: a model of that many takes some 150 MB.
    pub const LEAST_MOST_TURNS: u64 = 2 << 20;

    /// Maximum number of slices of the work of a model with few changes of state: a quarter of the effort of a simulation.
    pub(crate) const LEAST_MOST_SLICES: u64 = 1 << 16;

    /// Maximum number of times that tasks of a file with this size in bytes change their state. No recorder needs fewer than 24
    /// bytes for each; a compressed file can have more.
    pub fn most_turns_of(file_bytes: u64) -> u64 {
        Model::LEAST_MOST_TURNS.max(file_bytes / 24)
    }

    /// The slice with which all work of the model has as many slices as a simulation may take: tasks that compete for hours need
    /// not take turns each 30 µs because the runs of another hour were that short.
    pub(crate) fn least_slice(&self) -> Dur {
        let length = |step: &ProgramStep| if let ProgramStep::Run(length) = step { *length } else { 0 };
        let work = self.tasks.iter().flat_map(|task| &task.steps).map(length).fold(0, u64::saturating_add);
        Dur(work / Model::LEAST_MOST_SLICES.max(self.turns.saturating_mul(SLICES_OF_A_TURN)))
    }

    /// Whether the window has more than the model may hold.
    pub fn is_cut(&self) -> bool {
        self.turns > self.most_turns
    }

    /// The sleeps by class; only classes that occur.
    pub fn classes(&self) -> Vec<ClassSum> {
        let of = |class: SleepClass| {
            let sleeps = self.sleeps.iter().filter(|sleep| sleep.class == class && sleep.ends);
            let (mut number, mut total) = (0, 0_u64);
            for sleep in sleeps {
                number += 1;
                total = total.saturating_add(sleep.length);
            }
            ClassSum { class, number, total_ns: Dur(total) }
        };
        SleepClass::ALL.into_iter().map(of).filter(|sum| sum.number > 0).collect()
    }

    /// The CPUs that take part.
    pub fn usable(&self) -> impl Iterator<Item = Cpu> {
        (0..).map(Cpu).zip(&self.cpus).filter(|(_, cpu)| cpu.usable).map(|(number, _)| number)
    }
}

/// Maximum number of slices of the work for each change of a task's state.
const SLICES_OF_A_TURN: u64 = 8;

/// The least number of runs from which the time slice is taken.
pub(crate) const LEAST_RUNS: usize = 20;

/// The least time slice: no kernel's tick or timer ends runs that soon.
pub(crate) const LEAST_SLICE: Dur = Dur(10_000);

/// The time slice where the trace shows too few: the request of a fair task in recent kernels.
pub(crate) const USUAL_SLICE: Dur = Dur(3_000_000);
