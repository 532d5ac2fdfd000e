//! The CPUs' time by class, in intervals: the table that mpstat prints, from a trace.
//!
//! In goes a trace, out comes the time of every CPU, divided without rest into [`Class`]es. Interrupt handlers count where their
//! events were recorded, and then not for the task they interrupt. Two situations are pointed out: CPUs that idle beside
//! overloaded ones for at least the time in which the load balancer notices, and herds of tasks that leave one CPU for one other.
//! Begin reading with [`Class`] in this file, then in `report.rs`.
//!
//! ```
//! use sched::{Cpu, Dur, Pass, Topology, Ts};
//! use utilization::{Options, Utilization};
//!
//! // A task waits on CPU 0 for 200 ns while CPU 1 idles.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options {
//!     from: Ts(100),
//!     to: Ts(600),
//!     zero: Ts(100),
//!     cpus: vec![(Cpu(0), None), (Cpu(1), None)],
//!     all_cpus: Vec::new(),
//!     group_name: String::new(),
//!     interval: Dur(500),
//!     tasks: None,
//!     topology: Topology::default(),
//!     balance_interval: Dur(4_000_000),
//!     ends: Vec::new(),
//! };
//! let outcome = Pass::over(events.as_slice()).run(|| Utilization::new(&options)).unwrap_or_else(|never| match never {});
//! assert_eq!((outcome.output.all.other_ns, outcome.output.all.idle_ns), (550, 450));
//! ```

mod args;
mod by_group;
mod figure;
mod grid;
mod joined;
mod question;
mod report;
mod run_class;
mod selectable;
mod table;
mod tail;
mod underload;

pub use args::UtilizationArgs;
pub use by_group::{GroupTime, GroupTimes, TimesByGroup};
pub use figure::figure;
pub use question::UtilizationQuestion;
pub use report::{Heat, HerdReport, Idling, Interval, PerCpu, PerNode, Shares, UtilizationReport, text};
pub use run_class::RunEnd;
pub use tail::{SerialTail, TailSearch};
pub use underload::{IdleStateRow, IdleStatesNotes, IdleWakeups, TICK, Underload, UnderloadReport, WarmthRow};

use grid::Grid;
use joined::IdlingLog;
use membership::ChosenTasks;
use run_class::RunTimes;
use sched::causes::Herds;
use sched::episodes::{Amount, Episodes};
use sched::kthread::{is_any_stopper, is_idle_injector};
use sched::seeded::SeededMap;
use sched::state::Task;
use sched::{
    Analysis, ChosenCpus, Cpu, CpuCounts, Current, Dur, EventKind, SchedEvent, SchedState, SubsetCounts, TaskState,
    Topology, Ts,
};
use selectable::Selectable;
use serde::Serialize;
use timeline::Rows;

/// The class of a CPU's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The CPU runs the application.
    Application,
    /// The CPU runs a task of another program.
    Other,
    /// The CPU runs a kernel thread, by its name or its parent.
    Kernel,
    /// The CPU runs its stopper, `migration/N`.
    Stopper,
    /// The CPU runs a task of the real-time or the deadline class (a priority below 100), of the application or not.
    RealTime,
    /// The CPU runs a task that was real-time or deadline at one end of its run and not at the other: no event shows when that changed.
    PossiblyRealTime,
    /// The CPU handles an interrupt, hard or soft, where those were recorded.
    Interrupt,
    /// The CPU runs `idle_inject/N`, which keeps it idle at the request of a driver.
    Injected,
    /// Nothing is known.
    Unknown,
    /// The CPU is offline.
    Offline,
    /// The CPU is idle.
    Idle,
}

impl Class {
    /// All, in the order of their indices.
    pub const ALL: [Class; 11] = [
        Class::Application,
        Class::Other,
        Class::Kernel,
        Class::Stopper,
        Class::RealTime,
        Class::PossiblyRealTime,
        Class::Interrupt,
        Class::Injected,
        Class::Unknown,
        Class::Offline,
        Class::Idle,
    ];

    /// Whether the CPU runs a task.
    fn is_of_tasks(self) -> bool {
        !matches!(self, Class::Interrupt | Class::Injected | Class::Unknown | Class::Offline | Class::Idle)
    }

    /// The name of the class over a column of a table, of at most six letters, and four where columns are narrow.
    pub(crate) fn head(self, is_narrow: bool) -> &'static str {
        match self {
            Class::Other if is_narrow => "oth",
            Class::Kernel if is_narrow => "kern",
            Class::Stopper => "stop",
            Class::Injected => "inj",
            Class::Unknown => "unkn",
            Class::Offline => "off",
            class => class.name(),
        }
    }

    /// The name of the class, in a word.
    pub fn name(self) -> &'static str {
        match self {
            Class::Application => "app",
            Class::Other => "other",
            Class::Kernel => "kernel",
            Class::Stopper => "stopper",
            Class::RealTime => "rt",
            Class::PossiblyRealTime => "rt?",
            Class::Interrupt => "irq",
            Class::Injected => "injected",
            Class::Unknown => "unknown",
            Class::Offline => "offline",
            Class::Idle => "idle",
        }
    }
}

/// How many classes there are.
pub const CLASSES: usize = Class::ALL.len();

/// The window, the CPUs and the intervals of a measurement.
#[derive(Clone, Debug)]
pub struct Options {
    /// The window's start.
    pub from: Ts,
    /// The window's end.
    pub to: Ts,
    /// The instant that counts as zero: the trace's start.
    pub zero: Ts,
    /// The CPUs, in the order in which they are drawn, with their groups.
    pub cpus: Vec<(Cpu, Option<u32>)>,
    /// All CPUs that have a lane, in display order: those of `cpus`, and those without any event. Empty where there is
    /// none of these.
    pub all_cpus: Vec<(Cpu, Option<u32>)>,
    /// The name of the groups.
    pub group_name: String,
    /// The length of an interval.
    pub interval: Dur,
    /// Tasks that are the application; without it those that descend from the traced command.
    pub tasks: Option<ChosenTasks>,
    /// The places of the CPUs; empty if they are unknown.
    pub topology: Topology,
    /// Report CPUs that idle for at least this long while others are overloaded.
    pub balance_interval: Dur,
    /// The ends of the runs that go on at the end of the window, by the first switch of each CPU behind it.
    pub ends: Vec<RunEnd>,
}

/// Columns of the figure.
const COLUMNS: u64 = 400;

/// The most intervals.
pub const MOST_INTERVALS: u64 = 100_000;

/// A CPU as the analysis sees it.
#[derive(Clone, Copy, Debug)]
struct CpuNow {
    /// The class of what it runs, from the instant on since which it runs that.
    class: Class,
    /// The running task, if that is of the application or not by its cgroup or its policy, which can change within the run.
    selectable: Option<Selectable>,
    /// The time of handlers that interrupted tasks.
    in_tasks: u128,
    /// Handlers that have been entered and not left.
    depth: u32,
    /// Up to here its time has been accounted for.
    since: Ts,
    /// The start of the run within the window.
    run_since: Ts,
    /// Whether the CPU has switched since the analysis began.
    has_switched: bool,
}

impl CpuNow {
    /// A CPU that does this from the beginning of the analysis on.
    fn since(since: Ts, (class, selectable): (Class, Option<Selectable>), depth: u32) -> CpuNow {
        CpuNow { class, selectable, in_tasks: 0, depth, since, run_since: since, has_switched: false }
    }
}

/// The outcome of a herd.
#[derive(Clone, Copy, Debug, Default)]
struct Followed {
    /// The most tasks that waited where it came.
    queue: u32,
    /// When at most one waited there again.
    drained: Option<Ts>,
}

/// CPUs that idle, those that are overloaded, and the tasks that wait there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct IdleBeside {
    idle: u32,
    overloaded: u32,
    waiting: u32,
}

impl IdleBeside {
    fn of(counts: &CpuCounts) -> IdleBeside {
        IdleBeside {
            idle: counts.idle_cpus(),
            overloaded: counts.overloaded_cpus(),
            waiting: counts.waiting_overloaded,
        }
    }
}

/// The analysis of the CPUs' time: an [`Analysis`] whose output is a [`UtilizationReport`].
#[derive(Debug)]
pub struct Utilization<'o> {
    options: &'o Options,
    intervals: Grid,
    columns: Grid,
    /// The time of a [`Heat`] by column, for each CPU as drawn.
    heat: Vec<Grid>,
    sums: Vec<[u128; CLASSES]>,
    /// The place of each CPU among those shown.
    rows: Rows,
    /// The CPUs shown, as they are now.
    cpus: Vec<CpuNow>,
    /// The time of the present run of each CPU that is accounted for.
    runs: Vec<RunTimes>,
    /// The idle and overloaded CPUs since `last`.
    beside: IdleBeside,
    last: Ts,
    /// The numbers of idle and of overloaded CPUs among those shown, where only some are.
    part: Option<SubsetCounts>,
    idling: Episodes<(u32, u32)>,
    herds: Herds,
    /// The outcome of each herd, in the same order.
    followed: Vec<Followed>,
    /// The herds whose tasks still wait, by the CPU that they came to.
    waiting_herds: SeededMap<Cpu, Vec<usize>>,
    interrupts: bool,
    /// The steps that are left to the analysis of the pieces before, if this one follows a later piece of a pass.
    log: Option<Box<IdlingLog>>,
}

impl<'o> Utilization<'o> {
    /// Returns the analysis with the options of a measurement.
    pub fn new(options: &'o Options) -> Utilization<'o> {
        let (since, class) = (options.from, Class::Unknown);
        let unknown = CpuNow::since(since, (class, None), 0);
        let window = options.to.since(options.from).0.max(1);
        let columns = Grid::new(options.from, options.to, Dur(window.div_ceil(COLUMNS)), CLASSES);
        Utilization {
            options,
            intervals: Grid::new(options.from, options.to, options.interval, CLASSES),
            heat: options
                .cpus
                .iter()
                .map(|_| Grid::new(options.from, options.to, columns.width(), Heat::SUMS))
                .collect(),
            columns,
            sums: vec![[0; CLASSES]; options.cpus.len()],
            rows: Rows::new(&options.cpus),
            cpus: options.cpus.iter().map(|_| unknown).collect(),
            runs: options.cpus.iter().map(|_| RunTimes::default()).collect(),
            last: options.from,
            beside: IdleBeside::default(),
            part: None,
            idling: Episodes::new(&[Dur(0), options.balance_interval], 10),
            herds: Herds::default(),
            followed: Vec::new(),
            waiting_herds: SeededMap::default(),
            interrupts: false,
            log: None,
        }
    }

    /// The class of a CPU's time from an instant on, but for interrupts, with the task by whose cgroup or policy that can change.
    fn class_of(&self, cpu: Cpu, ts: Ts, state: &SchedState) -> (Class, Option<Selectable>) {
        let class = match (state.current(cpu), state.running(cpu)) {
            (Current::Idle, _) => Class::Idle,
            (Current::Offline, _) => Class::Offline,
            (Current::Task(_), Some(task)) => {
                let class = self.class_with(task, cpu, task.known_prio(), ts);
                return (class, self.selectable(task, cpu, class));
            }
            _ => Class::Unknown,
        };
        (class, None)
    }

    /// The class of a task with a priority at an instant.
    fn class_with(&self, task: &Task, cpu: Cpu, prio: Option<i32>, ts: Ts) -> Class {
        let application = match &self.options.tasks {
            Some(tasks) => tasks.takes(task.pid, ts, || task.comm),
            None => task.kin.descends,
        };
        self.class_if(application, task, cpu, prio)
    }

    /// The class of a task with a priority that is of the application or not.
    fn class_if(&self, application: bool, task: &Task, cpu: Cpu, prio: Option<i32>) -> Class {
        match () {
            () if is_any_stopper(task.comm) => Class::Stopper,
            // Such threads have a real-time priority.
            () if is_idle_injector(task.comm, cpu) => Class::Injected,
            () if prio.is_some_and(|prio| prio < 100) => Class::RealTime,
            () if application => Class::Application,
            () if task.kin.is_of_kernel(task.comm) => Class::Kernel,
            () => Class::Other,
        }
    }

    /// The time of a CPU shown, by its place, up to `ts` goes to what it did until then.
    fn account(&mut self, row: usize, ts: Ts) {
        let to = ts.min(self.options.to);
        while let Some((at, class)) = self.next_class(row, to) {
            self.account_alike(row, at);
            self.cpus[row].class = class;
        }
        self.account_alike(row, to);
    }

    /// The same where the CPU did one thing until then.
    fn account_alike(&mut self, row: usize, to: Ts) {
        let now = &mut self.cpus[row];
        let class = if now.depth > 0 { Class::Interrupt } else { now.class };
        let from = now.since;
        if from >= to {
            return;
        }
        now.since = to;
        self.intervals.add(class as usize, from, to);
        self.columns.add(class as usize, from, to);
        self.sums[row][class as usize] += u128::from(to.since(from).0);
        let start = from.max(now.run_since);
        if class.is_of_tasks() && start < to {
            self.runs[row].add([&mut self.intervals, &mut self.columns], class, start, to);
        }
        if class == Class::Interrupt && now.class.is_of_tasks() {
            now.in_tasks += u128::from(to.since(from).0);
        }
        let look = match class {
            Class::Idle | Class::Injected => return,
            Class::Unknown => Heat::UNKNOWN,
            Class::Offline => Heat::OFFLINE,
            _ => Heat::BUSY,
        };
        self.heat[row].add(look, from, to);
    }

    /// Takes over the class of a CPU from `ts` on.
    fn turn(&mut self, cpu: Cpu, ts: Ts, state: &SchedState) {
        let Some(row) = self.rows.of(cpu) else { return };
        let (class, selectable) = self.class_of(cpu, ts, state);
        let now = &self.cpus[row];
        if (class, selectable) != (now.class, now.selectable) {
            self.account(row, ts);
            let now = &mut self.cpus[row];
            (now.class, now.selectable) = (class, selectable);
        }
    }

    /// Takes over whether CPUs idle beside overloaded ones from `ts` on.
    fn follow_idling(&mut self, ts: Ts, state: &SchedState) {
        let now = match &mut self.part {
            None => IdleBeside::of(state.counts()),
            Some(part) => IdleBeside::of(part.follow(state)),
        };
        if now != self.beside {
            match &mut self.log {
                Some(log) => {
                    log.turn(ts, now);
                    self.beside = now;
                }
                None => self.turn_beside(ts, now),
            }
        }
    }

    /// Takes over the numbers of CPUs that idle beside overloaded ones from `ts` on.
    fn turn_beside(&mut self, ts: Ts, now: IdleBeside) {
        self.idle_until(ts);
        self.beside = now;
    }

    /// Accounts for the time until `ts`, in which what stood beside what did not change.
    fn idle_until(&mut self, ts: Ts) {
        if ts > self.last {
            let IdleBeside { idle, overloaded, waiting } = self.beside;
            let amount = Amount { cpus: idle.min(overloaded), threads: waiting };
            self.idling.pass(self.last, ts, amount);
            if amount.holds() && self.idling.wants_note(ts) {
                self.idling.note((idle, overloaded));
            }
            self.last = ts;
        }
    }

    /// A queued task is moved.
    fn moved(&mut self, ts: Ts, orig: Cpu, dest: Cpu) {
        let Some(place) = self.herds.migrate(ts, orig, dest) else { return };
        self.followed.resize(self.herds.found().len(), Followed::default());
        self.followed[place].drained = None;
        let waiting = self.waiting_herds.entry(dest).or_default();
        if !waiting.contains(&place) {
            waiting.push(place);
        }
    }

    /// Looks at what becomes of the herds whose tasks still wait, where a queue has changed.
    fn follow_herds(&mut self, ts: Ts, state: &SchedState) {
        let queues = state.spans().iter().flat_map(|span| [span.state, span.next]);
        for queue in queues {
            if let TaskState::Waiting(cpu) = queue {
                self.follow_queue(ts, cpu, state.queue_length(cpu));
            }
        }
    }

    /// Looks at what becomes of the herds on a CPU whose queue has this length now.
    fn follow_queue(&mut self, ts: Ts, cpu: Cpu, queue: u32) {
        let Some(waiting) = self.waiting_herds.get_mut(&cpu) else { return };
        waiting.retain(|place| {
            let followed = &mut self.followed[*place];
            followed.queue = followed.queue.max(queue);
            followed.drained = (queue <= 1).then_some(ts);
            followed.drained.is_none()
        });
        if waiting.is_empty() {
            self.waiting_herds.remove(&cpu);
        }
    }

    /// A handler is entered or left; they nest. One whose entry was lost, or before the window, is not
    /// left.
    fn interrupt(&mut self, event: &SchedEvent, entry: bool) {
        self.interrupts = true;
        let Some(row) = self.rows.of(event.cpu) else { return };
        self.account(row, event.ts);
        let depth = &mut self.cpus[row].depth;
        *depth = if entry { depth.saturating_add(1) } else { depth.saturating_sub(1) };
    }
}

impl Analysis for Utilization<'_> {
    type Output = UtilizationReport;
    const COUNTS: bool = true;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.last = start;
        let is_part = state.observed().any(|cpu| self.rows.of(cpu).is_none());
        let shown = ChosenCpus::only(self.options.cpus.iter().map(|(cpu, _)| *cpu));
        self.part = is_part.then(|| SubsetCounts::of(&shown, state));
        self.beside = IdleBeside::of(self.part.as_ref().map_or_else(|| state.counts(), SubsetCounts::counts));
        for (row, (cpu, _)) in self.options.cpus.iter().enumerate() {
            let depth = state.handlers(*cpu);
            let class = self.class_of(*cpu, start, state);
            self.cpus[row] = CpuNow::since(start, class, depth);
        }
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        if let EventKind::Switch { prev, .. } = event.kind {
            self.end_run(RunEnd { cpu: event.cpu, pid: prev.pid, prio: prev.prio }, event.ts, state);
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.follow_idling(event.ts, state);
        match event.kind {
            EventKind::Switch { .. } => self.begin_run(event.cpu, event.ts),
            EventKind::Interrupt { entry, .. } => self.interrupt(event, entry),
            EventKind::Migrate { orig, dest, .. } => {
                let queued = |s: &sched::Span| matches!(s.state, TaskState::Waiting(_));
                if state.spans().iter().any(queued) {
                    match &mut self.log {
                        Some(log) => log.moved(event.ts, orig, dest),
                        None => self.moved(event.ts, orig, dest),
                    }
                }
            }
            // The task that runs there may turn out to be the traced command.
            EventKind::Exec { .. } => self.turn(event.cpu, event.ts, state),
            _ => {}
        }
        if !self.waiting_herds.is_empty() {
            self.follow_herds(event.ts, state);
        }
        if let Some(log) = &mut self.log {
            log.follow(event.ts, state);
        }
        for span in state.cpu_spans() {
            self.turn(span.cpu, event.ts, state);
        }
        // A loss may hide the end of a handler. Where the task was unknown already, nothing else has accounted for the time.
        if let (EventKind::Lost { .. } | EventKind::Offline, Some(row)) = (event.kind, self.rows.of(event.cpu)) {
            self.account(row, event.ts);
            self.cpus[row].depth = 0;
        }
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> UtilizationReport {
        self.idle_until(end);
        self.idling.close(end);
        for run in &self.options.ends {
            self.end_run(*run, end, state);
        }
        (0..self.cpus.len()).for_each(|row| self.account(row, end));
        let unknown = state.why_application_is_unknown().filter(|_| self.options.tasks.is_none());
        let unknown = unknown.map(|why| format!("{why}; select tasks with --tasks"));
        report::build(self, unknown, state.shows_wakeups())
    }
}

#[cfg(test)]
mod tests;
