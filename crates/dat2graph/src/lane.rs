//! One CPU's lane: its pieces, its times, its marks.

use crate::color::INTERRUPT;
use crate::{ColorBy, LaneReport, Options};
use rustc_hash::FxHashMap;
use sched::{Analysis, Comm, Cpu, CpuFold, CpuSpan, Current, Kind, Pid, SchedEvent, SchedState, Ts};
use std::collections::BTreeMap;
use timeline::{Class, Columns, Piece, Rows};

/// How long a task ran by one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskTime {
    /// Its number.
    pub pid: Pid,
    /// Its name; empty where none was seen.
    pub comm: Comm,
    /// Its class by that name.
    pub class: Class,
    /// The time.
    pub ns: u64,
    /// When it was last seen.
    pub(crate) last: Ts,
}

/// The occurrences of one marked event on a lane: where it occurred, as far as places can be told
/// apart on the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// How often it occurred.
    pub count: u64,
    /// The first occurrence in each place.
    pub at: Vec<Ts>,
    place: Option<u128>,
}

/// A finished lane.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Its times.
    pub report: LaneReport,
    /// What is drawn.
    pub pieces: Vec<Piece>,
    /// Who ran.
    pub tasks: Vec<TaskTime>,
    /// One for each marked event.
    pub marks: Vec<Marks>,
    /// Changes of a CPU's frequency seen here: when, whose, in kHz.
    pub frequencies: Vec<(Ts, Cpu, u32)>,
}

/// How finely marks are told apart: more do not fit the page side by side.
const PLACES: u128 = 400;

/// Gathers a lane from CPU spans.
#[derive(Debug)]
struct Builder<'o> {
    options: &'o Options,
    columns: Columns,
    report: LaneReport,
    /// Who ran, by the name each has now,
    tasks: FxHashMap<Pid, TaskTime>,
    /// and by those it had before.
    earlier: FxHashMap<(Pid, Comm), TaskTime>,
    /// Up to here the current span was pushed already, by an interrupt.
    covered: Ts,
}

impl<'o> Builder<'o> {
    fn new(cpu: Cpu, options: &'o Options) -> Builder<'o> {
        let report = LaneReport { cpu, busy_ns: 0, idle_ns: 0, unknown_ns: 0, offline_ns: 0, switches: 0, gaps: 0 };
        let columns = Columns::new(options.from, options.to, options.columns());
        let (tasks, earlier) = Default::default();
        Builder { options, columns, report, tasks, earlier, covered: options.from }
    }

    fn span(&mut self, span: &CpuSpan) {
        let ns = span.duration().0;
        let class = self.options.coloring.class(span);
        match span.current {
            Current::Idle => self.report.idle_ns += ns,
            Current::Unknown => self.report.unknown_ns += ns,
            Current::Offline => self.report.offline_ns += ns,
            Current::Task(pid) => {
                self.report.busy_ns += ns;
                let now = TaskTime { pid, comm: span.comm, class, ns: 0, last: span.end };
                let task = self.tasks.entry(pid).or_insert(now);
                if task.comm != span.comm {
                    let before = std::mem::replace(task, self.earlier.remove(&(pid, span.comm)).unwrap_or(now));
                    self.earlier.insert((pid, before.comm), before);
                }
                task.ns += ns;
                (task.class, task.last) = (class, span.end);
            }
        }
        self.columns.push(class, span.start.max(self.covered), span.end);
        self.covered = self.covered.max(span.end);
    }

    /// An interrupt ran from `start` to `end`, within the current span, which so far is of `class`.
    fn interrupt(&mut self, class: Class, since: Ts, start: Ts, end: Ts) {
        let (from, to) = (self.options.from, self.options.to);
        let clamp = |ts: Ts| ts.clamp(from, to);
        self.columns.push(class, clamp(since).max(self.covered), clamp(start));
        self.columns.push(INTERRUPT, clamp(start).max(self.covered), clamp(end));
        self.covered = self.covered.max(clamp(end));
    }

    fn finish(self) -> Lane {
        let mut tasks: Vec<TaskTime> = self.tasks.into_values().chain(self.earlier.into_values()).collect();
        tasks.sort_unstable_by_key(|t| (t.pid, t.comm));
        let pieces = self.columns.finish();
        Lane { report: self.report, pieces, tasks, marks: Vec::new(), frequencies: Vec::new() }
    }
}

/// Makes a lane from the events of its CPU.
#[derive(Debug)]
pub struct LaneFold<'o> {
    fold: CpuFold,
    builder: Builder<'o>,
    marks: Vec<Marks>,
    frequencies: Vec<(Ts, Cpu, u32)>,
    interrupts: u32,
    interrupt_start: Ts,
}

impl<'o> LaneFold<'o> {
    /// For `cpu`.
    pub fn new(cpu: Cpu, options: &'o Options) -> LaneFold<'o> {
        LaneFold {
            fold: CpuFold::new(cpu, options.from, options.to),
            builder: Builder::new(cpu, options),
            marks: vec![Marks::default(); options.marks.len()],
            frequencies: Vec::new(),
            interrupts: 0,
            interrupt_start: options.from,
        }
    }

    /// Takes the next event; `mark`: it is this one of the marked events. Returns whether later
    /// ones still matter.
    pub fn apply(&mut self, event: &SchedEvent, mark: Option<usize>) -> bool {
        let options = self.builder.options;
        self.mark(event, mark);
        match event.kind {
            // The last change before the window holds when it starts.
            Kind::Frequency { khz, target } if options.frequency && event.ts <= options.to => {
                self.frequencies.push((event.ts, target, khz));
            }
            Kind::Interrupt { entry, .. } if options.coloring.by == ColorBy::Class => self.interrupt(entry, event),
            // An exit may have been among what was lost.
            Kind::Lost { .. } | Kind::Offline => self.interrupts = 0,
            _ => {}
        }
        let builder = &mut self.builder;
        self.fold.apply(event, &mut |span| builder.span(span));
        !self.fold.is_done()
    }

    /// Takes an event of another buffer, which may be marked and tells nothing else. Returns whether
    /// later ones still matter.
    pub fn mark(&mut self, event: &SchedEvent, mark: Option<usize>) -> bool {
        let options = self.builder.options;
        let inside = event.ts >= options.from && event.ts <= options.to;
        if let Some(marks) = mark.filter(|_| inside).and_then(|i| self.marks.get_mut(i)) {
            marks.add(event.ts, options);
        }
        event.ts <= options.to
    }

    /// Losses within the window, so far.
    pub fn gaps(&self) -> u64 {
        self.fold.gaps()
    }

    /// Switches from another task than the one known to run, so far.
    pub fn mismatches(&self) -> u64 {
        self.fold.mismatches()
    }

    fn interrupt(&mut self, entry: bool, event: &SchedEvent) {
        match (entry, self.interrupts) {
            (true, 0) => (self.interrupts, self.interrupt_start) = (1, event.ts),
            (true, depth) => self.interrupts = depth.saturating_add(1),
            (false, 1) => {
                self.interrupts = 0;
                if let Some(span) = self.fold.open_span() {
                    let class = self.builder.options.coloring.class(&span);
                    self.builder.interrupt(class, span.start, self.interrupt_start, event.ts);
                }
            }
            (false, depth) => self.interrupts = depth.saturating_sub(1),
        }
    }

    /// The lane; nothing if no event told of the CPU.
    pub fn finish(self) -> Option<Lane> {
        let LaneFold { fold, mut builder, marks, frequencies, .. } = self;
        (builder.report.switches, builder.report.gaps) = (fold.switches(), fold.gaps());
        fold.finish(&mut |span| builder.span(span))?;
        Some(Lane { marks, frequencies, ..builder.finish() })
    }
}

impl Marks {
    fn add(&mut self, ts: Ts, options: &Options) {
        self.count += 1;
        let span = u128::from(options.to.since(options.from).0.max(1));
        let place = u128::from(ts.since(options.from).0) * PLACES / span;
        if self.place != Some(place) {
            self.place = Some(place);
            self.at.push(ts);
        }
    }
}

/// The same lanes from a merged pass over all CPUs.
#[derive(Debug)]
pub struct Timeline<'o> {
    /// In display order.
    lanes: Vec<Builder<'o>>,
    rows: Rows,
}

impl<'o> Timeline<'o> {
    /// For the CPUs of `options`.
    pub fn new(options: &'o Options) -> Timeline<'o> {
        let lanes = options.cpus.iter().map(|(cpu, _)| Builder::new(*cpu, options)).collect();
        Timeline { lanes, rows: Rows::new(&options.cpus) }
    }

    fn lane(&mut self, cpu: Cpu) -> Option<&mut Builder<'o>> {
        self.lanes.get_mut(self.rows.of(cpu)?)
    }
}

impl Analysis for Timeline<'_> {
    type Output = Vec<Lane>;

    fn cpu_span(&mut self, span: &CpuSpan, _: &SchedState) {
        if let Some(builder) = self.lane(span.cpu).filter(|_| span.start < span.end) {
            builder.span(span);
        }
    }

    fn after(&mut self, event: &SchedEvent, _: &SchedState) {
        let (switch, gap) = (matches!(event.kind, Kind::Switch { .. }), matches!(event.kind, Kind::Lost { .. }));
        if !switch && !gap {
            return;
        }
        if let Some(builder) = self.lane(event.cpu) {
            builder.report.switches += u64::from(switch);
            builder.report.gaps += u64::from(gap);
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> Vec<Lane> {
        self.lanes.into_iter().map(Builder::finish).collect()
    }
}

/// The times of all lanes together, the longest first. What a task ran without a name counts by its latest, if that
/// looks the same.
pub(crate) fn total(lanes: &[Lane]) -> Vec<TaskTime> {
    let mut tasks: BTreeMap<(Pid, Comm), TaskTime> = BTreeMap::new();
    for task in lanes.iter().flat_map(|l| &l.tasks) {
        let sum = tasks.entry((task.pid, task.comm)).or_insert(TaskTime { ns: 0, ..*task });
        sum.ns = sum.ns.saturating_add(task.ns);
        if task.last >= sum.last {
            (sum.class, sum.last) = (task.class, task.last);
        }
    }
    let nameless: Vec<TaskTime> = tasks.values().filter(|task| task.comm.is_empty()).copied().collect();
    for TaskTime { pid, comm, class, ns, .. } in nameless {
        let by_name = tasks.range_mut((pid, comm)..).skip(1).take_while(|((other, _), _)| *other == pid);
        if let Some((_, latest)) = by_name.filter(|(_, task)| task.class == class).max_by_key(|(_, task)| task.last) {
            latest.ns = latest.ns.saturating_add(ns);
            tasks.remove(&(pid, comm));
        }
    }
    let mut tasks: Vec<TaskTime> = tasks.into_values().collect();
    tasks.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| (a.pid, a.comm).cmp(&(b.pid, b.comm))));
    tasks
}
