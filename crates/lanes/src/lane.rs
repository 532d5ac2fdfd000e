//! The lane of one CPU: its pieces, times and marks.

use crate::color::{INTERRUPT, OTHERS};
use crate::tasks::{self, TaskTime, TaskTimes};
use crate::{ColorBy, LaneReport, Options};
use parse::CpuReader;
use sched::{Analysis, Comm, Cpu, CpuFold, CpuSpan, Current, EventKind, Pid, SchedEvent, SchedState, Ts};
use timeline::{Columns, Piece, PieceClass, Rows};

/// The occurrences of one marked event on a lane, as far as they can be distinguished on the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The number of occurrences.
    pub count: u64,
    /// The time of the first occurrence in each place.
    pub at: Vec<Ts>,
    /// The destination of each of these that names one: a move that NUMA balancing wants.
    pub to: Vec<(Ts, Cpu)>,
    place: Option<u128>,
}

/// A run that is long enough for a name in its bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedRun {
    /// The start of the run within the window.
    pub start: Ts,
    /// The end of the run within the window.
    pub end: Ts,
    /// The PID of the task.
    pub pid: Pid,
    /// The command name of the task; empty if it is unknown.
    pub comm: Comm,
    /// The class of the run.
    pub class: PieceClass,
}

/// The part of the window from which a run is long enough for a name: on a page of the usual width 13 points.
const NAMED: u64 = 60;

/// The lane of a CPU, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The times of the CPU.
    pub report: LaneReport,
    /// The pieces to be drawn.
    pub pieces: Vec<Piece>,
    /// The tasks that ran, with their times.
    pub tasks: Vec<TaskTime>,
    /// The runs that are long enough for a name in their bars, in the order of time.
    pub named: Vec<NamedRun>,
    /// The marks of each marked event.
    pub marks: Vec<Marks>,
    /// The changes of frequency that were recorded on this CPU: the time, the CPU that changed, the frequency in kHz.
    pub frequencies: Vec<(Ts, Cpu, u32)>,
}

/// The number of places for marks on a lane; more marks do not fit side by side.
pub(crate) const PLACES: u128 = 400;

/// Gathers a lane from the spans of its CPU.
#[derive(Debug)]
struct LaneBuilder<'o> {
    options: &'o Options,
    /// The reader that finds the names of tasks that have none where they are met.
    reader: Option<&'o CpuReader<'o>>,
    columns: Columns,
    report: LaneReport,
    tasks: TaskTimes,
    named: Vec<NamedRun>,
    /// The length from which a run is named.
    long: u64,
    /// The end of the part of the current span that an interrupt already pushed.
    covered: Ts,
}

impl<'o> LaneBuilder<'o> {
    fn new(cpu: Cpu, options: &'o Options) -> LaneBuilder<'o> {
        let report = LaneReport { cpu, busy_ns: 0, idle_ns: 0, unknown_ns: 0, offline_ns: 0, switches: 0, gaps: 0 };
        let columns = Columns::new(options.from, options.to, options.columns());
        let long = (options.to.since(options.from).0 / NAMED).max(1);
        LaneBuilder {
            options,
            reader: None,
            columns,
            report,
            tasks: TaskTimes::default(),
            named: Vec::new(),
            long,
            covered: options.from,
        }
    }

    fn span(&mut self, span: &CpuSpan) {
        let span = &self.named(span);
        let ns = span.duration().0;
        let class = self.options.coloring.class(span);
        match span.current {
            Current::Idle => self.report.idle_ns += ns,
            Current::Unknown => self.report.unknown_ns += ns,
            Current::Offline => self.report.offline_ns += ns,
            Current::Task(pid) => {
                self.report.busy_ns += ns;
                // Pale tasks all look alike, so their times are not needed.
                if !self.options.coloring.pale {
                    self.tasks.add(pid, class, span);
                    if ns >= self.long && class != OTHERS {
                        self.named.push(NamedRun { start: span.start, end: span.end, pid, comm: span.comm, class });
                    }
                }
            }
        }
        self.columns.push(class, span.start.max(self.covered), span.end);
        self.covered = self.covered.max(span.end);
    }

    /// The span, with the name of its task.
    fn named(&self, span: &CpuSpan) -> CpuSpan {
        self.reader.map_or(*span, |reader| reader.named(span))
    }

    /// Adds an interrupt that ran from `start` to `end` within the current span of `class`, which began at `since`.
    fn interrupt(&mut self, class: PieceClass, since: Ts, start: Ts, end: Ts) {
        let (from, to) = (self.options.from, self.options.to);
        let clamp = |ts: Ts| ts.clamp(from, to);
        self.columns.push(class, clamp(since).max(self.covered), clamp(start));
        self.columns.push(INTERRUPT, clamp(start).max(self.covered), clamp(end));
        self.covered = self.covered.max(clamp(end));
    }

    fn finish(self) -> Lane {
        let (pieces, tasks) = (self.columns.finish(), self.tasks.finish());
        Lane { report: self.report, pieces, tasks, named: self.named, marks: Vec::new(), frequencies: Vec::new() }
    }
}

/// Builds a lane from the events of its CPU.
#[derive(Debug)]
pub struct LaneFold<'o> {
    fold: CpuFold,
    builder: LaneBuilder<'o>,
    marks: Vec<Marks>,
    frequencies: Vec<(Ts, Cpu, u32)>,
    interrupts: u32,
    interrupt_start: Ts,
}

impl<'o> LaneFold<'o> {
    /// Returns an empty lane of `cpu`.
    pub fn new(cpu: Cpu, options: &'o Options) -> LaneFold<'o> {
        LaneFold {
            fold: CpuFold::new(cpu, options.from, options.to),
            builder: LaneBuilder::new(cpu, options),
            marks: vec![Marks::default(); options.marks.len()],
            frequencies: Vec::new(),
            interrupts: 0,
            interrupt_start: options.from,
        }
    }

    /// The fold with the names of tasks that this reader finds where the events given do not have them.
    #[must_use]
    pub fn with_names(mut self, reader: &'o CpuReader<'o>) -> LaneFold<'o> {
        self.builder.reader = Some(reader);
        self
    }

    /// Applies the next event; `mark` is its index among the marked events, if it is one. Returns whether later
    /// events still matter.
    pub fn apply(&mut self, event: &SchedEvent, mark: Option<usize>) -> bool {
        let options = self.builder.options;
        self.mark(event, mark);
        match event.kind {
            // The last change before the window applies at its start, so earlier changes are kept.
            EventKind::Frequency { khz, target } if options.frequency && event.ts <= options.to => {
                self.frequencies.push((event.ts, target, khz));
            }
            EventKind::Interrupt { entry, .. } if options.coloring.by == ColorBy::Class => self.interrupt(entry, event),
            // An exit from an interrupt may be among the lost events.
            EventKind::Lost { .. } | EventKind::Offline => self.interrupts = 0,
            _ => {}
        }
        let builder = &mut self.builder;
        self.fold.apply(event, &mut |span| builder.span(span));
        !self.fold.is_done()
    }

    /// Applies an event of another buffer, which matters only if it is marked. Returns whether later
    /// events still matter.
    pub fn mark(&mut self, event: &SchedEvent, mark: Option<usize>) -> bool {
        let options = self.builder.options;
        let inside = event.ts >= options.from && event.ts <= options.to;
        if let Some(marks) = mark.filter(|_| inside).and_then(|i| self.marks.get_mut(i)) {
            let to = match event.kind {
                EventKind::Numa { dst, stuck: false, .. } => Some(dst),
                _ => None,
            };
            marks.add(event.ts, to.filter(|to| *to != event.cpu), options);
        }
        event.ts <= options.to
    }

    /// Returns the number of losses within the window so far.
    pub fn gaps(&self) -> u64 {
        self.fold.gaps()
    }

    /// Returns the number of switches so far whose previous task was not the running one.
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
                    let class = self.builder.options.coloring.class(&self.builder.named(&span));
                    self.builder.interrupt(class, span.start, self.interrupt_start, event.ts);
                }
            }
            (false, depth) => self.interrupts = depth.saturating_sub(1),
        }
    }

    /// Returns the lane; `None` if the CPU has no events.
    pub fn finish(self) -> Option<Lane> {
        let LaneFold { fold, mut builder, marks, frequencies, .. } = self;
        (builder.report.switches, builder.report.gaps) = (fold.switches(), fold.gaps());
        fold.finish(&mut |span| builder.span(span))?;
        Some(Lane { marks, frequencies, ..builder.finish() })
    }
}

impl Marks {
    fn add(&mut self, ts: Ts, to: Option<Cpu>, options: &Options) {
        self.count += 1;
        let span = u128::from(options.to.since(options.from).0.max(1));
        let place = u128::from(ts.since(options.from).0) * PLACES / span;
        if self.place != Some(place) {
            self.place = Some(place);
            self.at.push(ts);
            self.to.extend(to.map(|to| (ts, to)));
        }
    }
}

/// Builds the same lanes in a merged pass over all CPUs.
#[derive(Debug)]
pub struct Timeline<'o> {
    /// The lanes, in display order.
    lanes: Vec<LaneBuilder<'o>>,
    rows: Rows,
}

impl<'o> Timeline<'o> {
    /// Returns empty lanes of the CPUs of `options`.
    pub fn new(options: &'o Options) -> Timeline<'o> {
        let lanes = options.cpus.iter().map(|(cpu, _)| LaneBuilder::new(*cpu, options)).collect();
        Timeline { lanes, rows: Rows::new(&options.cpus) }
    }

    fn lane(&mut self, cpu: Cpu) -> Option<&mut LaneBuilder<'o>> {
        self.lanes.get_mut(self.rows.of(cpu)?)
    }
}

/// Lanes follow every pass alone: they are merged as their rows become full.
impl sched::Joined for Timeline<'_> {}

impl Analysis for Timeline<'_> {
    type Output = Vec<Lane>;

    fn cpu_span(&mut self, span: &CpuSpan, _: &SchedState) {
        if let Some(builder) = self.lane(span.cpu).filter(|_| span.start < span.end) {
            builder.span(span);
        }
    }

    fn after(&mut self, event: &SchedEvent, _: &SchedState) {
        let (switch, gap) =
            (matches!(event.kind, EventKind::Switch { .. }), matches!(event.kind, EventKind::Lost { .. }));
        if !switch && !gap {
            return;
        }
        if let Some(builder) = self.lane(event.cpu) {
            builder.report.switches += u64::from(switch);
            builder.report.gaps += u64::from(gap);
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> Vec<Lane> {
        self.lanes.into_iter().map(LaneBuilder::finish).collect()
    }
}

/// Returns the times of tasks on all lanes together, the longest first.
pub(crate) fn total(lanes: &[Lane]) -> Vec<TaskTime> {
    tasks::total(lanes.iter().map(|lane| &lane.tasks[..]))
}
