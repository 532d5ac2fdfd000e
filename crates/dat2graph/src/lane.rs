//! One CPU's lane: its pieces, its times, its marks.

use crate::color::INTERRUPT;
use crate::tasks::{self, TaskTime, TaskTimes};
use crate::{ColorBy, LaneReport, Options};
use sched::{Analysis, Cpu, CpuFold, CpuSpan, Current, Kind, SchedEvent, SchedState, Ts};
use timeline::{Class, Columns, Piece, Rows};

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
    tasks: TaskTimes,
    /// Up to here the current span was pushed already, by an interrupt.
    covered: Ts,
}

impl<'o> Builder<'o> {
    fn new(cpu: Cpu, options: &'o Options) -> Builder<'o> {
        let report = LaneReport { cpu, busy_ns: 0, idle_ns: 0, unknown_ns: 0, offline_ns: 0, switches: 0, gaps: 0 };
        let columns = Columns::new(options.from, options.to, options.columns());
        Builder { options, columns, report, tasks: TaskTimes::default(), covered: options.from }
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
                // On pale ground nobody is told from another.
                if !self.options.coloring.pale {
                    self.tasks.add(pid, class, span);
                }
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
        let (pieces, tasks) = (self.columns.finish(), self.tasks.finish());
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

/// The times of all lanes together, the longest first.
pub(crate) fn total(lanes: &[Lane]) -> Vec<TaskTime> {
    tasks::total(lanes.iter().map(|lane| &lane.tasks[..]))
}
