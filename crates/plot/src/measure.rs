//! One pass over the events of a window.

use crate::before::{Carried, CarriedPart};
use crate::compile::{EventPart, Plan};
use crate::drawn::{Bar, Drawn, PointMark};
use crate::expr::EventValue;
use crate::look::Looks;
use crate::marks::{MARKERS, PointCounts};
use crate::pairing::{OpenPair, PairKey, Pairs};
use crate::picked::{PickedFacts, PickedPart, PickedStep, PickedSteps};
use crate::report::{IntervalReport, PlotReport, PointReport, SeriesReport, ValueReport};
use crate::rows::{Lanes, PlotLane};
use crate::seen::{Event, Picker};
use crate::series::{SampleKind, SeriesColumns};
use crate::spec::{LaneKind, Order, Quantity, SeriesSpec};
use sched::{Cpu, Dur, Lengths, Pid, Ts};
use timeline::columns::PieceClass;
use timeline::strips::UNKNOWN;

/// The name and version of the document's schema.
pub(crate) const REPORT_SCHEMA: &str = "schedviz/plot/1";

/// A complete interval, for tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'f> {
    /// The name of the interval in the specification.
    pub name: &'f str,
    /// The beginning of the interval, on the clock of the trace.
    pub start: Ts,
    /// The length of the interval.
    pub length: Dur,
    /// The CPU of its first event.
    pub cpu: Cpu,
    /// The running task at its first event.
    pub pid: Pid,
    /// The value of `color_by`, if the specification has it.
    pub value: Option<&'f str>,
    /// The label of the interval, if the specification has one.
    pub label: Option<&'f str>,
}

/// The beginning of an interval.
#[derive(Clone, Debug, PartialEq)]
struct Begun {
    lane: Option<(usize, usize)>,
    class: PieceClass,
    pid: Pid,
    label: Option<String>,
}

/// The counts of an interval.
#[derive(Clone, Debug, Default)]
struct IntervalCounts {
    lengths: Lengths,
    /// The parts of them in the window together.
    within_ns: u64,
    by: Vec<(PieceClass, Lengths)>,
    unended: u64,
    unended_ns: u64,
    unbegun: u64,
    lost: u64,
    beyond: u64,
    undrawn: u64,
}

impl IntervalCounts {
    fn add(&mut self, class: PieceClass, length: Dur, within: Dur) {
        self.lengths.add(length);
        self.within_ns = self.within_ns.saturating_add(within.0);
        let place = match self.by.iter().position(|(c, _)| *c == class) {
            Some(place) => place,
            None => {
                self.by.push((class, Lengths::default()));
                self.by.len() - 1
            }
        };
        self.by[place].1.add(length);
    }
}

/// The window and the CPUs of a figure.
#[derive(Clone, Debug)]
pub struct Window {
    /// The first instant that is shown.
    pub from: Ts,
    /// The last instant that is shown.
    pub to: Ts,
    /// The CPUs shown, each with its group; events on others are left out.
    pub cpus: Vec<(Cpu, Option<u32>)>,
}

/// The time, the CPU and the task of an event, with the name of the task where lanes go by tasks.
struct StepOf<'s> {
    ts: Ts,
    cpu: Cpu,
    pid: Pid,
    name: &'s str,
}

/// Gathers what a specification draws.
#[derive(Debug)]
pub struct Plot<'p> {
    picker: Picker<'p>,
    window: Window,
    looks: Looks,
    pairs: Vec<Pairs<Begun>>,
    counts: Vec<IntervalCounts>,
    marks: Vec<PointCounts>,
    series: Vec<SeriesColumns>,
    lanes: Lanes,
    notes: Vec<String>,
    /// All bars, marks and samples, for windows of the figure; nothing where these are not drawn.
    kept: Option<Box<Drawn>>,
}

impl<'p> Plot<'p> {
    /// Draws a plan over a window, behind what the events before it left.
    pub fn new<E: Event>(plan: &'p Plan, window: Window, carried: &[Carried<E>]) -> Plot<'p> {
        let mut plot = Plot::empty(plan, window);
        plot.carry(carried);
        plot
    }

    /// Draws a plan over a window as [`Plot::new`] does, and keeps all bars, marks and samples, so that windows of them
    /// can be drawn.
    pub fn keeping<E: Event>(plan: &'p Plan, window: Window, carried: &[Carried<E>]) -> Plot<'p> {
        let mut plot = Plot::empty(plan, window);
        plot.kept = Some(Box::new(Drawn::new(plan.spec.points.len(), plot.series.iter().map(SeriesColumns::kind))));
        plot.carry(carried);
        plot
    }

    fn empty(plan: &'p Plan, window: Window) -> Plot<'p> {
        let (spec, from, to) = (&plan.spec, window.from, window.to);
        let kind = |quantity: &Quantity| match quantity {
            Quantity::Value { hold: true, .. } | Quantity::Open { .. } => SampleKind::Held,
            Quantity::Value { .. } => SampleKind::Samples,
            Quantity::Rate { .. } => SampleKind::Rate,
        };
        let mut lanes = Lanes::new(from, to);
        if spec.lanes.by == LaneKind::Cpu {
            // A CPU without any of these events has a lane, too.
            for (cpu, _) in &window.cpus {
                let _ = lanes.place(EventValue::Number(cpu.0.into()));
            }
        }
        let series: Vec<SeriesColumns> =
            spec.series.iter().map(|series| SeriesColumns::new(kind(&series.quantity), from, to)).collect();
        Plot {
            picker: Picker::new(plan, &window.cpus),
            looks: Looks::new(spec),
            pairs: spec.intervals.iter().map(|interval| Pairs::new(interval.source.is_by_cpu())).collect(),
            counts: vec![IntervalCounts::default(); spec.intervals.len()],
            marks: vec![PointCounts::default(); spec.points.len()],
            series,
            lanes,
            window,
            notes: plan.notes.clone(),
            kept: None,
        }
    }

    /// The window that it draws.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Adds a line to the notes of the report.
    pub fn note(&mut self, line: &str) {
        self.notes.push(line.to_owned());
    }

    /// Takes an event of the window, in the order of time. Each complete interval is passed to `found`.
    pub fn event<E: Event>(&mut self, event: &E, found: &mut dyn FnMut(&Found<'_>)) {
        let mut steps = PickedSteps::default();
        steps.add(event, &self.picker);
        self.take(steps, found);
    }

    /// The reader of events: [`PickedSteps::add`] makes steps of them with it, on any thread.
    pub(crate) fn picker(&self) -> Picker<'p> {
        self.picker.clone()
    }

    /// Takes the steps of the next events. Each complete interval is passed to `found`.
    pub(crate) fn take(&mut self, mut picked: PickedSteps, found: &mut dyn FnMut(&Found<'_>)) {
        for step in std::mem::take(&mut picked.steps) {
            let PickedStep { ts, cpu, pid, part } = step;
            let of = StepOf { ts, cpu, pid, name: picked.name(pid) };
            match part {
                PickedPart::Lost => self.lost(cpu, ts),
                PickedPart::Begin(place, key, facts) => {
                    self.open(&of, place, key, facts);
                    self.note_open(place, ts);
                }
                PickedPart::End(place, key) => self.end(&of, place, &key, found),
                PickedPart::Lone(place, Some((length, facts))) => self.lone(&of, place, length, facts, found),
                PickedPart::Lone(place, None) => self.counts[place].unbegun += 1,
                PickedPart::Point(place, facts) => self.point(&of, place, facts),
                PickedPart::Sample(place, by, value) => {
                    let line = self.series[place].add(ts, by.clone(), value);
                    if let (Some(line), Some(kept)) = (line, &mut self.kept) {
                        kept.sample(place, line, by.as_ref(), ts, Some(value));
                    }
                }
            }
        }
    }

    /// Takes what the events before the window left behind.
    fn carry<E: Event>(&mut self, carried: &[Carried<E>]) {
        let (plan, from) = (self.picker.plan, self.window.from);
        for Carried { part, event } in carried {
            match part {
                CarriedPart::Interval(place) => {
                    if let Some(action) = plan.action(event.id(), &EventPart::Begin(*place))
                        && let Some((key, seen)) = self.picker.begin(event, action, *place)
                    {
                        let facts = self.picker.facts_of_interval(*place, &seen);
                        let name = event.command();
                        let of = StepOf { ts: event.ts(), cpu: event.cpu(), pid: event.pid(), name: &name };
                        self.open(&of, *place, key, facts);
                    }
                }
                CarriedPart::Value { series, is_known } => {
                    if let Some(action) = plan.action(event.id(), &EventPart::Sample(*series))
                        && let Some((by, value)) = self.picker.value(event, action, *series)
                    {
                        self.series[*series].add_early(by, is_known.then_some(value));
                    }
                }
            }
        }
        let opens = |of: &SeriesSpec| plan.spec.intervals.iter().position(|interval| of.follows(&interval.name));
        for (place, of) in plan.spec.series.iter().enumerate() {
            if let Some(interval) = opens(of) {
                let count = self.pairs[interval].count() as f64;
                self.series[place].add(from, None, count);
                if let Some(kept) = &mut self.kept {
                    kept.sample(place, 0, None, from, Some(count));
                }
            }
        }
    }

    /// Opens the interval that an event begins.
    fn open(&mut self, of: &StepOf<'_>, place: usize, key: PairKey, facts: PickedFacts) {
        let class = self.looks.of_interval(place, |_| facts.color.clone());
        let label = facts.label;
        let lane = self.lane(of, facts.lane).and_then(|lane| Some((lane, self.lanes.all[lane].begin()?)));
        self.counts[place].undrawn += u64::from(lane.is_none());
        let begun = Begun { lane, class, pid: of.pid, label };
        match self.pairs[place].begin(key, OpenPair { since: of.ts, cpu: of.cpu, of: begun }) {
            Ok(None) => {}
            Ok(Some(oldest)) => {
                self.counts[place].lost += 1;
                self.draw(place, &oldest, UNKNOWN, of.ts);
            }
            Err(refused) => {
                self.counts[place].beyond += 1;
                self.draw(place, &refused, UNKNOWN, of.ts);
            }
        }
    }

    fn end(&mut self, of: &StepOf<'_>, place: usize, key: &PairKey, found: &mut dyn FnMut(&Found<'_>)) {
        let interval = &self.picker.plan.spec.intervals[place];
        let Some(open) = self.pairs[place].end(key) else {
            self.counts[place].unbegun += u64::from(self.picker.is_shown(of.cpu));
            return;
        };
        let (start, end) = (open.since, of.ts);
        let length = end.since(start);
        self.counts[place].add(open.of.class, length, end.since(start.max(self.window.from)));
        let value = self.looks.value(open.of.class);
        let label = open.of.label.as_deref();
        found(&Found { name: &interval.name, start, length, cpu: open.cpu, pid: open.of.pid, value, label });
        self.draw(place, &open, open.of.class, end);
        self.note_open(place, end);
    }

    fn lone(
        &mut self,
        of: &StepOf<'_>,
        place: usize,
        length: Dur,
        facts: PickedFacts,
        found: &mut dyn FnMut(&Found<'_>),
    ) {
        let (cpu, pid, end) = (of.cpu, of.pid, of.ts);
        let name = &self.picker.plan.spec.intervals[place].name;
        let start = Ts(end.0.saturating_sub_unsigned(length.0));
        let class = self.looks.of_interval(place, |_| facts.color.clone());
        let label = facts.label;
        self.counts[place].add(class, length, end.since(start.max(self.window.from)));
        let value = self.looks.value(class);
        found(&Found { name, start, length, cpu, pid, value, label: label.as_deref() });
        let drawn = self.lane(of, facts.lane).and_then(|place| {
            let lane = &mut self.lanes.all[place];
            lane.total_ns = lane.total_ns.saturating_add(end.since(start.max(self.window.from)).0);
            Some((place, lane.lone(class, start, end, label.clone())?))
        });
        self.counts[place].undrawn += u64::from(drawn.is_none());
        if let (Some((lane, row)), Some(kept)) = (drawn, &mut self.kept) {
            let label = kept.intern(label.as_deref());
            let start = start.max(self.window.from);
            kept.bar(lane, row, Bar { start, end, class, interval: place, cpu, pid, label });
        }
    }

    fn point(&mut self, of: &StepOf<'_>, place: usize, facts: PickedFacts) {
        let class = self.looks.of_point(place, |_| facts.color.clone());
        let (lane, label) = (self.lane(of, facts.lane), facts.label);
        let marks = &mut self.marks[place];
        marks.count += 1;
        match marks.by.iter_mut().find(|(c, _)| *c == class) {
            Some((_, n)) => *n += 1,
            None => marks.by.push((class, 1)),
        }
        let Some(lane) = lane else { return };
        self.lanes.all[lane].point(place, of.ts);
        if let Some(kept) = &mut self.kept {
            let label = kept.intern(label.as_deref());
            kept.point(place, PointMark { ts: of.ts, lane, class, count: 1, label });
        }
        if marks.at.len() <= MARKERS {
            marks.at.push((lane, of.ts, class));
        }
        if let Some(label) = label.filter(|_| marks.labels.len() <= 60) {
            marks.labels.push((lane, of.ts, label));
        }
    }

    /// The lane of an event, if it has one; `value` is that of the field that lanes go by.
    fn lane(&mut self, of: &StepOf<'_>, value: Option<EventValue>) -> Option<usize> {
        match &self.picker.plan.spec.lanes.by {
            LaneKind::Cpu => self.lanes.place(EventValue::Number(of.cpu.0.into())),
            LaneKind::Task => {
                let lane = self.lanes.place(EventValue::Number(of.pid.0.into()))?;
                if self.lanes.all[lane].name.is_empty() {
                    of.name.clone_into(&mut self.lanes.all[lane].name);
                }
                Some(lane)
            }
            LaneKind::Field(_) => self.lanes.place(value?),
        }
    }

    /// Draws an interval of this place in the specification.
    fn draw(&mut self, interval: usize, open: &OpenPair<Begun>, class: PieceClass, end: Ts) {
        let Some((lane, row)) = open.of.lane else { return };
        if let Some(kept) = &mut self.kept {
            let label = kept.intern(open.of.label.as_deref());
            let OpenPair { since, cpu, of: Begun { pid, .. } } = *open;
            let start = since.max(self.window.from);
            kept.bar(lane, row, Bar { start, end, class, interval, cpu, pid, label });
        }
        let lane = &mut self.lanes.all[lane];
        let label = open.of.label.clone().filter(|_| class != UNKNOWN);
        if class != UNKNOWN {
            let start = open.since.max(self.window.from);
            lane.total_ns = lane.total_ns.saturating_add(end.since(start).0);
        }
        lane.end(row, class, open.since, end, label);
    }

    /// The number of open intervals changed, which a series may follow.
    fn note_open(&mut self, interval: usize, ts: Ts) {
        let count = self.pairs[interval].count() as f64;
        let series = self.series.iter_mut().zip(&self.picker.plan.spec.series).enumerate();
        for (place, (series, of)) in series {
            if of.follows(&self.picker.plan.spec.intervals[interval].name) {
                series.add(ts, None, count);
                if let Some(kept) = &mut self.kept {
                    kept.sample(place, 0, None, ts, Some(count));
                }
            }
        }
    }

    /// Events were lost on a CPU: intervals may have ended there, and values may have changed.
    fn lost(&mut self, cpu: Cpu, ts: Ts) {
        for place in 0..self.pairs.len() {
            let lost = self.pairs[place].lost(cpu);
            self.counts[place].lost += lost.len() as u64;
            lost.iter().for_each(|open| self.draw(place, open, UNKNOWN, ts));
            if !lost.is_empty() {
                self.note_open(place, ts);
            }
        }
        for (place, (series, of)) in self.series.iter_mut().zip(&self.picker.plan.spec.series).enumerate() {
            if !matches!(of.quantity, Quantity::Open { .. }) {
                series.lost(ts);
                if let Some(kept) = &mut self.kept {
                    (0..series.lines()).for_each(|line| kept.sample(place, line, None, ts, None));
                }
            }
        }
    }

    /// Ends the window, and returns the report.
    pub fn finish(self) -> PlotReport {
        self.finish_kept().0
    }

    /// Ends the window, and returns the report with everything that is drawn, if that was kept.
    pub fn finish_kept(mut self) -> (PlotReport, Option<Box<Drawn>>) {
        let to = self.window.to;
        for place in 0..self.pairs.len() {
            let unended = self.pairs[place].finish();
            self.counts[place].unended = unended.len() as u64;
            let open = unended.iter().map(|open| to.since(open.since.max(self.window.from)).0);
            self.counts[place].unended_ns = open.fold(0, u64::saturating_add);
            unended.iter().for_each(|open| self.draw(place, open, open.of.class, to));
        }
        let (counts, marks) = (&self.counts, &self.marks);
        self.looks.rank(|class| {
            let time = counts.iter().flat_map(|counts| &counts.by).filter(|(c, _)| *c == class);
            let points = marks.iter().flat_map(|marks| &marks.by).filter(|(c, _)| *c == class);
            let time = time.map(|(_, lengths)| lengths.total().0);
            time.chain(points.map(|(_, n)| *n)).fold(0, u64::saturating_add)
        });
        let window = to.since(self.window.from).0;
        let is_of_cpus = self.picker.plan.spec.lanes.by == LaneKind::Cpu;
        let base_ns = window.saturating_mul(if is_of_cpus { self.window.cpus.len() as u64 } else { 1 });
        let spec = &self.picker.plan.spec;
        let all_points: u64 = self.marks.iter().map(|marks| marks.count).sum();
        let intervals = (0..spec.intervals.len()).filter(|place| self.picker.plan.has_interval[*place]);
        let intervals: Vec<IntervalReport> = intervals.map(|place| self.interval_report(place, base_ns)).collect();
        let points = (0..spec.points.len()).filter(|place| self.picker.plan.has_point[*place]);
        let points: Vec<PointReport> = points.map(|place| self.point_report(place, all_points)).collect();
        let series = spec.series.iter().zip(std::mem::take(&mut self.series)).enumerate();
        let series = series.filter(|(place, _)| self.picker.plan.has_series[*place]).map(|(_, (of, series))| {
            let (name, unit, others) = (of.name.clone(), of.unit.clone(), series.others);
            SeriesReport { name, unit, others, lines: series.finish() }
        });
        let series = series.collect();
        let report = PlotReport {
            schema: REPORT_SCHEMA,
            title: spec.title.clone(),
            from_ns: self.window.from,
            to_ns: to,
            share_of: if is_of_cpus { "CPU time" } else { "window" },
            intervals,
            points,
            series,
            notes: self.notes,
            lanes_left_out: self.lanes.left_out,
            interval_of: numbered(&self.picker.plan.has_interval),
            point_of: numbered(&self.picker.plan.has_point),
            series_of: numbered(&self.picker.plan.has_series),
            lanes: ordered(self.lanes.all, spec.lanes.order),
            marks: self.marks,
            looks: self.looks,
        };
        (report, self.kept)
    }

    fn interval_report(&self, place: usize, base_ns: u64) -> IntervalReport {
        let IntervalCounts { lengths, within_ns, by, unended, unended_ns, unbegun, lost, beyond, undrawn } =
            &self.counts[place];
        let by = by.iter().filter_map(|(class, lengths)| {
            let value = self.looks.value(*class)?.to_owned();
            Some(ValueReport { value, count: lengths.count(), total_ns: Some(lengths.total()) })
        });
        let mut by: Vec<ValueReport> = by.collect();
        by.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.value.cmp(&b.value)));
        IntervalReport {
            name: self.picker.plan.spec.intervals[place].name.clone(),
            count: lengths.count(),
            total_ns: lengths.total(),
            share_percent: 100.0 * *within_ns as f64 / (base_ns as f64).max(1.0),
            median_ns: lengths.rank(1, 2),
            p99_ns: lengths.rank(99, 100),
            max_ns: lengths.max(),
            unended: *unended,
            unended_ns: Dur(*unended_ns),
            unbegun: *unbegun,
            lost: *lost,
            beyond_limit: *beyond,
            undrawn: *undrawn,
            by,
        }
    }

    fn point_report(&self, place: usize, all: u64) -> PointReport {
        let PointCounts { count, by, .. } = &self.marks[place];
        let by = by.iter().filter_map(|(class, count)| {
            Some(ValueReport { value: self.looks.value(*class)?.to_owned(), count: *count, total_ns: None })
        });
        let mut by: Vec<ValueReport> = by.collect();
        by.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.value.cmp(&b.value)));
        let percent = 100.0 * *count as f64 / (all as f64).max(1.0);
        PointReport { name: self.picker.plan.spec.points[place].name.clone(), count: *count, percent, by }
    }
}

/// The number of each item among those in use.
fn numbered(has: &[bool]) -> Vec<Option<usize>> {
    let mut next = 0;
    let number = |has: &bool| {
        next += usize::from(*has);
        has.then(|| next - 1)
    };
    has.iter().map(number).collect()
}

/// The lanes in the order of the figure, each with its place among the points' lanes.
fn ordered(lanes: Vec<PlotLane>, order: Order) -> Vec<(usize, PlotLane)> {
    let mut lanes: Vec<(usize, PlotLane)> = lanes.into_iter().enumerate().collect();
    match order {
        Order::First => {}
        Order::Name => lanes.sort_by(|(_, a), (_, b)| a.key.cmp(&b.key)),
        Order::Time => lanes.sort_by(|(_, a), (_, b)| {
            (b.total_ns, b.points).cmp(&(a.total_ns, a.points)).then_with(|| a.key.cmp(&b.key))
        }),
    }
    lanes
}

#[cfg(test)]
mod tests;
