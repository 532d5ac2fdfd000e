//! Running and waiting tasks over time.
//!
//! In goes a trace, out come two curves: `running`, the tasks that run, and `total`, with those that wait in a run queue. `total`
//! above `running` while `running` is below the number of CPUs means that the machine is overloaded and idle at once. A column of
//! the figure stands for many instants: it shows their time-weighted mean as a line and their least and most as a band. Begin
//! reading below in this file, then in `figure.rs`.
//!
//! ```
//! use running_waiting::{Options, Panel, RunningWaiting};
//! use sched::{Cpu, Pass, Ts};
//!
//! // A task waits on CPU 0 for 200 ns while CPU 1 idles.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options {
//!     from: Ts(100),
//!     to: Ts(600),
//!     zero: Ts(100),
//!     panels: vec![Panel { name: String::new(), cpus: vec![Cpu(0), Cpu(1)] }],
//!     cpus: Vec::new(),
//!     all_cpus: Vec::new(),
//!     group_name: String::new(),
//!     per_cpu: false,
//!     tasks: None,
//!     which: "all tasks",
//!     affinity: None,
//!     queued: None,
//! };
//! let outcome = Pass::over(events.as_slice()).run(|| RunningWaiting::new(&options)).unwrap_or_else(|never| match never {});
//! let machine = &outcome.output.panels[0];
//! assert_eq!((machine.running_ns, machine.waiting_ns, machine.violated_ns), (Some(550), Some(200), Some(200)));
//! ```

mod args;
mod counted;
mod figure;
mod joined;
mod question;
mod table;

pub use args::RunningWaitingArgs;
pub use counted::Counted;
pub use figure::figure;
pub use question::RunningWaitingQuestion;

use counted::PanelWatch;
use joined::{PieceStart, QueueRow};
use sched::affinity::Affinity;
use sched::counted::CountedQueues;
use sched::{
    Analysis, Chosen, ChosenCpus, Cpu, CpuCounts, Current, Load, OfSelection, QueuedAsk, QueuedTimes, SchedEvent,
    SchedState, TakesQueued, Task, Topology, Ts,
};
use serde::Serialize;
use std::sync::Arc;
use timeline::strips::{BLANK, FIRST, OFFLINE, UNKNOWN};
use timeline::{Division, Piece, PieceClass};
use workcons::SelectedWatch;
use workcons::violation::{ALL, Sets};

/// The name and version of the document's schema.
pub(crate) const SCHEMA: &str = "schedviz/running-waiting/1";

/// Groups with a panel of their own
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Per {
    /// Each NUMA node
    Node,
    /// Each last-level cache
    Llc,
}

/// A group of CPUs that is counted by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panel {
    /// The name of the group; empty for the whole machine.
    pub name: String,
    /// The CPUs of the group.
    pub cpus: Vec<Cpu>,
}

/// The resolved options of the figure.
#[derive(Clone)]
pub struct Options<'o> {
    /// The window's start.
    pub from: Ts,
    /// The window's end.
    pub to: Ts,
    /// The instant that counts as zero.
    pub zero: Ts,
    /// The groups of CPUs, each of which has a panel.
    pub panels: Vec<Panel>,
    /// The CPUs in display order, each with its group, for the rows of run queues.
    pub cpus: Vec<(Cpu, Option<u32>)>,
    /// The CPUs that have a lane, in display order: those of `cpus`, and those without any event. Empty where every CPU
    /// has events.
    pub all_cpus: Vec<(Cpu, Option<u32>)>,
    /// The name of the groups.
    pub group_name: String,
    /// Whether to draw the rows.
    pub per_cpu: bool,
    /// The tasks that are counted; absent where all are.
    pub tasks: Option<&'o Chosen<'o>>,
    /// The counted tasks in words, such as `all tasks`.
    pub which: &'static str,
    /// The CPUs that tasks may use, where lists restrict any, or records can.
    pub affinity: Option<Arc<Affinity>>,
    /// The tasks whose queued time is divided by kind; absent where it is not asked for.
    pub queued: Option<QueuedAsk<'o>>,
}

impl Options<'_> {
    /// The number of columns of the figure.
    pub fn columns(&self) -> u32 {
        (6_000 / self.panels.len().max(1)).clamp(300, 1200) as u32
    }

    /// Whether a task is counted.
    fn counts(&self, task: &Task, state: &SchedState) -> bool {
        self.tasks.is_none_or(|chosen| chosen(task, state))
    }
}

/// A number over the instants of a column.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Level {
    /// The time-weighted mean.
    pub mean: f64,
    /// The minimum over the instants.
    pub min: u32,
    /// The maximum over the instants.
    pub max: u32,
}

/// A column: a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PanelColumn {
    /// The start of the column after the start of the trace, in nanoseconds.
    pub start_ns: i64,
    /// The number of tasks that ran.
    pub running: Level,
    /// The number of tasks that ran or waited.
    pub total: Level,
    /// Time in which a CPU of the panel idled while on another one a counted task waited: one of the selected tasks, or,
    /// without a selection, any but a kernel thread that is bound to its CPU and a task that may use no idle CPU. Null where
    /// wakeups were not recorded.
    pub violated_ns: Option<u64>,
    /// Time in which some CPU of the panel was unknown.
    pub unknown_ns: u64,
    /// The mean number of CPUs of the panel that were offline.
    pub offline: f64,
}

/// A panel, measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// The name of the panel; empty for the whole machine.
    pub name: String,
    /// The CPUs of the panel.
    pub cpus: Vec<Cpu>,
    /// The integral of running tasks, in task·nanoseconds; nothing where the selected tasks are unknown.
    pub running_ns: Option<u64>,
    /// The integral of waiting tasks, in task·nanoseconds; nothing where the selected tasks are unknown.
    pub waiting_ns: Option<u64>,
    /// The time in violation, in nanoseconds; nothing where the selected tasks are unknown, or wakeups were not recorded.
    pub violated_ns: Option<u64>,
    /// The columns; none where the selected tasks are unknown.
    pub columns: Vec<PanelColumn>,
}

/// The series themselves.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The name and version of the schema, `schedviz/running-waiting/1`.
    pub schema: &'static str,
    /// The window's start. on the trace's clock.
    pub from_ns: Ts,
    /// The window's end.
    pub to_ns: Ts,
    /// The trace's start.
    pub start_ns: Ts,
    /// The length of a column, to a nanosecond.
    pub column_ns: u64,
    /// Why there are no figures: the selected tasks are unknown, or none is in the window. Absent where there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection_unknown: Option<String>,
    /// The waiting tasks that count in a violation.
    pub waiters: Counted,
    /// Time in violation among the CPUs of all panels together; nothing where the selected tasks are unknown, or wakeups were
    /// not recorded, without which the waiting tasks are. A panel's own counts CPUs that idle beside overloaded ones of the same panel.
    pub violated_ns: Option<u64>,
    /// The queued time of the counted tasks by kind, in nanoseconds; absent where there are no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<sched::QueuedTimes>,
    /// The panels, each with its series.
    pub panels: Vec<Series>,
    /// The number of losses within the window.
    pub gaps: u64,
    /// The run queues of each CPU, for the figure.
    #[serde(skip)]
    pub rows: Vec<Vec<Piece>>,
}

impl TakesQueued for Report {
    fn take_queued(&mut self, times: QueuedTimes) {
        self.queued = Some(times);
    }
}

impl OfSelection for Report {
    fn withhold(&mut self, why: String) {
        for panel in &mut self.panels {
            (panel.running_ns, panel.waiting_ns, panel.violated_ns) = (None, None, None);
            panel.columns.clear();
        }
        (self.violated_ns, self.queued) = (None, None);
        self.rows.clear();
        self.selection_unknown = Some(why);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    ns: u64,
    running: u64,
    total: u64,
    violated: u64,
    unknown: u64,
    offline: u64,
    least: Option<(u32, u32)>,
    most: (u32, u32),
}

/// The numbers of a panel at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Now {
    running: u32,
    waiting: u32,
    unknown: u32,
    offline: u32,
    /// Whether a CPU of the panel idles while a task that counts waits on another.
    violated: bool,
}

impl Now {
    /// Returns the numbers of a panel where every task counts.
    fn of(counts: &CpuCounts, violated: bool) -> Now {
        let CpuCounts { waiting, unknown, offline, .. } = *counts;
        Now { running: counts.running(), waiting, unknown, offline, violated }
    }
}

/// The counts of a panel now, and its columns so far.
#[derive(Clone, Debug)]
struct Gather {
    now: Now,
    since: Ts,
    columns: Division,
    /// The first column that has sums.
    first: usize,
    /// The sums of the columns from `first` on; those of the last columns may be missing.
    sums: Vec<Sum>,
}

impl Gather {
    fn new(options: &Options<'_>) -> Gather {
        Gather {
            now: Now::default(),
            since: options.from,
            columns: Division::into_parts(options.from, options.to, options.columns() as usize),
            first: 0,
            sums: vec![Sum::default(); options.columns() as usize],
        }
    }

    /// Accounts for the time up to `ts`, in which the numbers were those of `now`.
    fn advance(&mut self, ts: Ts) {
        let from = std::mem::replace(&mut self.since, ts);
        let Now { running, waiting, unknown, offline, violated, .. } = self.now;
        let (total, unknown) = (running + waiting, unknown > 0);
        let offline = u64::from(offline);
        let (sums, first) = (&mut self.sums, self.first);
        self.columns.split(from, ts, |column, start, end| {
            let ns = end.since(start).0;
            if column - first >= sums.len() {
                joined::grow(sums, column - first + 1);
            }
            let sum = &mut sums[column - first];
            sum.ns += ns;
            // A damaged stamp makes columns of years, for which this has no room.
            sum.running = sum.running.saturating_add(ns.saturating_mul(running.into()));
            sum.total = sum.total.saturating_add(ns.saturating_mul(total.into()));
            sum.violated += if violated { ns } else { 0 };
            sum.unknown += if unknown { ns } else { 0 };
            sum.offline = sum.offline.saturating_add(ns.saturating_mul(offline));
            let (r, t) = sum.least.unwrap_or((u32::MAX, u32::MAX));
            sum.least = Some((r.min(running), t.min(total)));
            sum.most = (sum.most.0.max(running), sum.most.1.max(total));
        });
    }

    fn series(self, panel: &Panel, options: &Options<'_>, shows_wakeups: bool) -> Series {
        let span = i128::from(options.to.since(options.from).0);
        let (count, offset) = (self.sums.len() as i128, options.from.0.saturating_sub(options.zero.0));
        let column = |(i, s): (usize, &Sum)| {
            let mean = |sum: u64| if s.ns == 0 { 0.0 } else { sum as f64 / s.ns as f64 };
            let least = s.least.unwrap_or_default();
            PanelColumn {
                start_ns: offset + (i as i128 * span / count.max(1)) as i64,
                running: Level { mean: mean(s.running), min: least.0, max: s.most.0 },
                total: Level { mean: mean(s.total), min: least.1, max: s.most.1 },
                violated_ns: shows_wakeups.then_some(s.violated),
                unknown_ns: s.unknown,
                offline: mean(s.offline),
            }
        };
        let sum = |of: fn(&Sum) -> u64| self.sums.iter().map(of).fold(0, u64::saturating_add);
        Series {
            name: panel.name.clone(),
            cpus: panel.cpus.clone(),
            running_ns: Some(sum(|s| s.running)),
            waiting_ns: Some(sum(|s| s.total).saturating_sub(sum(|s| s.running))),
            violated_ns: shows_wakeups.then(|| sum(|s| s.violated)),
            columns: self.sums.iter().enumerate().map(column).collect(),
        }
    }
}

/// The share of a CPU in its panel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuInPanel {
    load: Load,
    running: bool,
    waiting: u32,
}

impl CpuInPanel {
    /// Returns the share of a CPU where every task counts.
    fn of(cpu: Cpu, state: &SchedState) -> CpuInPanel {
        let running = matches!(state.current(cpu), Current::Task(_));
        CpuInPanel { load: state.load(cpu), running, waiting: state.queue_length(cpu) }
    }

    /// The length of the run queue as a class of its row.
    fn class(self) -> PieceClass {
        match (self.load, u32::from(self.running) + self.waiting) {
            (Load::Unknown, _) => UNKNOWN,
            (Load::Offline, _) => OFFLINE,
            (_, 0) => BLANK,
            (_, n) => FIRST - 1 + n.min(4) as PieceClass,
        }
    }
}

/// Violation among the CPUs of all panels.
#[derive(Clone, Copy, Debug, Default)]
struct Together {
    violated: bool,
    since: Ts,
    violated_ns: u64,
}

impl Together {
    /// Accounts for the time up to `ts`.
    fn advance(&mut self, ts: Ts) {
        let from = std::mem::replace(&mut self.since, ts);
        if self.violated {
            self.violated_ns = self.violated_ns.saturating_add(ts.since(from).0);
        }
    }

    /// Sets whether there is a violation from `ts` on.
    fn turn(&mut self, violated: bool, ts: Ts) {
        if self.violated != violated {
            self.advance(ts);
            self.violated = violated;
        }
    }
}

/// The analysis of running and waiting tasks: an [`Analysis`] whose output is a [`Report`].
pub struct RunningWaiting<'o> {
    options: &'o Options<'o>,
    /// Every task is counted, whatever becomes known of it.
    all: bool,
    queues: CountedQueues,
    panels: Vec<Gather>,
    together: Together,
    /// The CPUs of each panel, where every task is counted.
    parts: Vec<PanelWatch>,
    /// The CPUs of several panels together.
    whole: Option<PanelWatch>,
    /// The panel of each CPU, and its share in the panel.
    places: Vec<(Option<usize>, CpuInPanel)>,
    /// The sets of each panel where selected tasks are counted; last, those of all panels together.
    sets: Vec<Sets>,
    /// The violation in each panel where selected tasks are counted and the CPUs are known that tasks may use; last, that among
    /// all panels together. Empty elsewhere.
    reaching: Vec<SelectedWatch>,
    rows: Vec<Option<QueueRow>>,
    gaps: u64,
    /// The beginning of the piece, if this analysis follows a later piece of a pass.
    piece: Option<Box<PieceStart>>,
}

impl<'o> RunningWaiting<'o> {
    /// Returns the analysis with the options of a figure.
    pub fn new(options: &'o Options<'o>) -> RunningWaiting<'o> {
        let size = options.panels.iter().flat_map(|p| &p.cpus).map(|c| c.index() + 1).max().unwrap_or(0);
        let mut places = vec![(None, CpuInPanel::default()); size];
        let mut rows: Vec<Option<QueueRow>> = (0..size).map(|_| None).collect();
        for (index, panel) in options.panels.iter().enumerate() {
            for cpu in &panel.cpus {
                places[cpu.index()].0 = Some(index);
                rows[cpu.index()] = options.per_cpu.then(|| QueueRow::new(options));
            }
        }
        RunningWaiting {
            options,
            all: options.tasks.is_none(),
            queues: CountedQueues::default(),
            parts: Vec::new(),
            whole: None,
            panels: options.panels.iter().map(|_| Gather::new(options)).collect(),
            together: Together { since: options.from, ..Together::default() },
            places,
            sets: vec![Sets::new(&Topology::default(), None); options.panels.len() + 1],
            reaching: reaching(options),
            rows,
            gaps: 0,
            piece: None,
        }
    }

    /// Takes over the numbers of the panels from `ts` on, where every task is counted.
    fn turn(&mut self, ts: Ts, state: &SchedState) {
        for (gather, part) in self.panels.iter_mut().zip(&self.parts) {
            let now = part.now(state);
            if gather.now != now {
                gather.advance(ts);
                gather.now = now;
            }
        }
        let violated = match (&self.whole, self.panels.first()) {
            (Some(whole), _) => whole.now(state).violated,
            (None, first) => first.is_some_and(|gather| gather.now.violated),
        };
        self.together.turn(violated, ts);
    }

    /// Takes over the queue of a CPU from `ts` on in its row, if it has one, where every task counts.
    fn turn_row(&mut self, cpu: Cpu, ts: Ts, state: &SchedState) {
        if let Some(Some(row)) = self.rows.get_mut(cpu.index()) {
            row.turn(CpuInPanel::of(cpu, state).class(), ts);
        }
    }

    /// Brings a CPU's place up to date, where selected tasks are counted.
    fn place(&mut self, cpu: Cpu, ts: Ts, state: &SchedState) {
        let Some((Some(panel), old)) = self.places.get(cpu.index()).copied() else { return };
        let mut new = CpuInPanel::of(cpu, state);
        new.running &= state.running(cpu).is_some_and(|t| self.options.counts(t, state));
        new.waiting = self.sets[panel].waiters(cpu, ALL);
        if new == old {
            return;
        }
        self.places[cpu.index()].1 = new;
        let of_all = self.panels.len();
        for sets in [panel, of_all] {
            self.sets[sets].update(cpu, new.load);
        }
        let gather = &mut self.panels[panel];
        gather.advance(ts);
        let now = &mut gather.now;
        let swap = |sum: &mut u32, new: u32, old: u32| *sum = *sum + new - old;
        swap(&mut now.running, new.running.into(), old.running.into());
        swap(&mut now.waiting, new.waiting, old.waiting);
        if self.reaching.is_empty() {
            now.violated = self.sets[panel].violation(ALL).holds();
            self.together.turn(self.sets[of_all].violation(ALL).holds(), ts);
        }
        let is = |p: CpuInPanel, load: Load| u32::from(p.load == load);
        swap(&mut now.unknown, is(new, Load::Unknown), is(old, Load::Unknown));
        swap(&mut now.offline, is(new, Load::Offline), is(old, Load::Offline));
        if let Some(Some(row)) = self.rows.get_mut(cpu.index()) {
            row.turn(new.class(), ts);
        }
    }

    /// Takes over the violation from `ts` on, where selected tasks are counted and the CPUs are known that tasks may use.
    fn turn_violation(&mut self, ts: Ts) {
        let Some((whole, parts)) = self.reaching.split_last() else { return };
        for (gather, part) in self.panels.iter_mut().zip(parts) {
            if gather.now.violated != part.is_violated() {
                gather.advance(ts);
                gather.now.violated = part.is_violated();
            }
        }
        self.together.turn(whole.is_violated(), ts);
    }
}

/// Makes the watches of the violation by selected tasks: one for each panel and one for all panels together; none if every
/// task counts, or no list or record restricts any.
fn reaching(options: &Options<'_>) -> Vec<SelectedWatch> {
    let Some(affinity) = options.affinity.as_ref().filter(|_| options.tasks.is_some()) else { return Vec::new() };
    let all = options.panels.iter().flat_map(|panel| panel.cpus.iter().copied()).collect();
    let groups = options.panels.iter().map(|panel| panel.cpus.clone()).chain([all]);
    groups.map(|cpus: Vec<Cpu>| SelectedWatch::new(ChosenCpus::only(cpus), Arc::clone(affinity))).collect()
}

impl Analysis for RunningWaiting<'_> {
    type Output = Report;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        let (options, panels) = (self.options, &self.options.panels);
        let cpus: Vec<Cpu> = panels.iter().flat_map(|p| p.cpus.iter().copied()).collect();
        if self.all {
            self.parts =
                panels.iter().map(|panel| PanelWatch::of(panel.cpus.iter().copied(), options, state)).collect();
            self.whole = (panels.len() > 1).then(|| PanelWatch::of(cpus.iter().copied(), options, state));
            self.turn(start, state);
            cpus.iter().for_each(|cpu| self.turn_row(*cpu, start, state));
            return;
        }
        for cpu in cpus {
            let (places, sets) = (&self.places, &mut self.sets);
            let count = |task: &Task, _| u8::from(options.counts(task, state)) << ALL;
            self.queues.begin(cpu, state, count, |cpu, flags, by| change(places, sets, cpu, flags, by));
            self.place(cpu, start, state);
        }
        self.reaching.iter_mut().for_each(|watch| watch.begin(state, |task, state| options.counts(task, state)));
        self.turn_violation(start);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.gaps += u64::from(matches!(event.kind, sched::EventKind::Lost { .. }));
        if self.all {
            if state.touched().is_empty() && !matches!(event.kind, sched::EventKind::Probe { .. }) {
                return;
            }
            self.parts.iter_mut().chain(&mut self.whole).for_each(|part| part.follow(event, state));
            self.turn(event.ts, state);
            if self.options.per_cpu {
                state.touched().iter().for_each(|cpu| self.turn_row(*cpu, event.ts, state));
            }
            return;
        }
        let (options, places, sets) = (self.options, &self.places, &mut self.sets);
        let count = |task: &Task, _| u8::from(options.counts(task, state)) << ALL;
        self.queues.follow(state, count, |cpu, flags, by| change(places, sets, cpu, flags, by));
        // Also without a change of state: the running task may have a new name, or turn out to be a descendant.
        self.place(event.cpu, event.ts, state);
        state.touched().iter().for_each(|cpu| self.place(*cpu, event.ts, state));
        self.reaching.iter_mut().for_each(|watch| watch.after(event, state, |task, state| options.counts(task, state)));
        self.turn_violation(event.ts);
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> Report {
        for gather in &mut self.panels {
            gather.advance(end);
        }
        self.together.advance(end);
        let mut rows = Vec::new();
        for (cpu, _) in &self.options.cpus {
            rows.extend(self.rows.get_mut(cpu.index()).and_then(Option::take).map(|row| row.finish(end)));
        }
        let (options, shows_wakeups) = (self.options, state.shows_wakeups());
        let series = |(gathered, panel): (Gather, &Panel)| gathered.series(panel, options, shows_wakeups);
        let panels = self.panels.into_iter().zip(&options.panels).map(series).collect();
        Report {
            schema: SCHEMA,
            from_ns: options.from,
            to_ns: options.to,
            start_ns: options.zero,
            column_ns: options.to.since(options.from).0 / u64::from(options.columns()),
            selection_unknown: None,
            queued: None,
            waiters: if self.all { Counted::Movable } else { Counted::Selected },
            violated_ns: shows_wakeups.then_some(self.together.violated_ns),
            panels,
            gaps: self.gaps,
            rows,
        }
    }
}

/// Passes a counted waiter that joins (1) or leaves (-1) a CPU to the sets of its panel and to those of all.
fn change(places: &[(Option<usize>, CpuInPanel)], sets: &mut [Sets], cpu: Cpu, flags: u8, by: i32) {
    if let (Some((Some(panel), _)), Some((of_all, of_panels))) = (places.get(cpu.index()), sets.split_last_mut()) {
        of_panels[*panel].waiter(cpu, flags, by);
        of_all.waiter(cpu, flags, by);
    }
}
