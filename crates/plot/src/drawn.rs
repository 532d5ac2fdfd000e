//! All that a specification draws in a trace, kept so that any window of it can be drawn.
//!
//! Bars, points and samples are kept one by one as long as there is room. Beyond that the shortest bars are left out, and
//! points and samples are summed in columns of time; [`Drawn::room`] has the bounds that result.

use crate::expr::EventValue;
use crate::rows::LABELLED;
use crate::series::{LineReport, SampleKind, SeriesColumns};
use sched::seeded::SeededMap;
use sched::{Cpu, Pid, Ts};
use serde::Serialize;
use timeline::columns::{Columns, Piece, PieceClass};
use timeline::strips::{BLANK, UNKNOWN};

/// Maximum number of bars of a plot, of marks of a point, and of samples of a series.
const MOST: usize = 1 << 20;
/// Maximum number of different labels, and of the characters of each.
const LABELS: usize = 1 << 16;
const LABEL: usize = 100;
/// Maximum number of marks of a point in a window.
const MARKS: usize = 2_000;
/// The class of marks of several classes in one place.
pub const MIXED: PieceClass = PieceClass::MAX;

/// A bar of a row: an interval of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// The beginning of the interval, on the clock of the trace.
    pub start: Ts,
    /// The end of the interval; that of the window where it has none.
    pub end: Ts,
    /// The class of the bar, by which it has its colour.
    pub class: PieceClass,
    /// The place of its interval in the specification.
    pub interval: usize,
    /// The CPU of its first event.
    pub cpu: Cpu,
    /// The running task at its first event.
    pub pid: Pid,
    pub(crate) label: Option<u32>,
}

/// Points in one lane at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PointMark {
    /// The time of the points, on the clock of the trace.
    pub ts: Ts,
    /// The place of the lane.
    pub lane: usize,
    /// The class of the points, or [`MIXED`].
    pub class: PieceClass,
    /// The number of points of the mark.
    pub count: u64,
    pub(crate) label: Option<u32>,
}

/// Marks in the order of time, each of a column of this many nanoseconds.
#[derive(Clone, Debug)]
struct MarkColumns {
    width: u64,
    all: Vec<PointMark>,
}

/// The start of a column of time, from 0 of the clock on.
fn column(ts: Ts, width: u64) -> Ts {
    let width = i64::try_from(width).unwrap_or(i64::MAX).max(1);
    Ts(ts.0.div_euclid(width).saturating_mul(width))
}

/// Sums the marks of each lane within a column; classes are kept apart where `apart`.
fn summed(marks: &mut Vec<PointMark>, width: u64, apart: bool) {
    marks.iter_mut().for_each(|mark| mark.ts = column(mark.ts, width));
    marks.sort_unstable();
    marks.dedup_by(|later, first| {
        let same = (later.ts, later.lane) == (first.ts, first.lane) && (!apart || later.class == first.class);
        if same {
            first.count += later.count;
            first.class = if later.class == first.class { first.class } else { MIXED };
            first.label = first.label.filter(|_| later.label == first.label);
        }
        same
    });
}

impl MarkColumns {
    fn add(&mut self, mark: PointMark, most: usize) {
        self.all.push(mark);
        if self.all.len() <= most {
            return;
        }
        // Sums that barely fit would be made again at once.
        while self.all.len() > most / 2 && self.width < 1 << 62 {
            self.width *= 2;
            summed(&mut self.all, self.width, true);
        }
    }

    /// The marks from `from` up to `to`, summed so far that they are few.
    fn within(&self, from: Ts, to: Ts) -> Vec<PointMark> {
        let range = self.all.partition_point(|mark| mark.ts < from)..self.all.partition_point(|mark| mark.ts < to);
        let mut marks = self.all.get(range).unwrap_or_default().to_vec();
        let mut width = to.since(from).0.div_ceil(512).max(1);
        while marks.len() > MARKS && width < 1 << 62 {
            summed(&mut marks, width, false);
            width *= 2;
        }
        marks
    }
}

/// A sample of a series: its line, and its value; none where it is unknown from here on.
#[derive(Clone, Copy, Debug)]
struct SeriesSample {
    ts: Ts,
    line: usize,
    value: Option<f64>,
    count: u64,
}

/// The samples of a series, each of a column of this many nanoseconds.
#[derive(Clone, Debug)]
struct Samples {
    kind: SampleKind,
    width: u64,
    lines: Vec<Option<EventValue>>,
    all: Vec<SeriesSample>,
}

impl Samples {
    fn add(&mut self, sample: SeriesSample, most: usize) {
        self.all.push(sample);
        if self.all.len() <= most {
            return;
        }
        while self.all.len() > most / 2 && self.width < 1 << 62 {
            self.width *= 2;
            let (kind, width) = (self.kind, self.width);
            self.all.sort_by_key(|sample| (column(sample.ts, width), sample.line));
            self.all.dedup_by(|later, first| {
                let same = (column(later.ts, width), later.line) == (column(first.ts, width), first.line);
                if same {
                    let count = first.count + later.count;
                    first.value = match (first.value, later.value) {
                        (Some(a), Some(b)) if kind != SampleKind::Held => {
                            Some((a * first.count as f64 + b * later.count as f64) / count.max(1) as f64)
                        }
                        (_, later) => later,
                    };
                    first.count = count;
                }
                same
            });
            self.all.sort_by_key(|sample| sample.ts);
        }
    }

    fn within(&self, from: Ts, to: Ts) -> Vec<LineReport> {
        let mut series = SeriesColumns::new(self.kind, from, to);
        let first = self.all.partition_point(|sample| sample.ts < from);
        let (before, rest) = self.all.split_at(first);
        let by = |line: usize| self.lines.get(line).cloned().flatten();
        if self.kind == SampleKind::Held {
            for line in 0..self.lines.len() {
                let last = before.iter().rev().find(|sample| sample.line == line);
                if let Some(last) = last {
                    series.add_early(by(line), last.value);
                }
            }
        }
        for sample in rest.iter().take_while(|sample| sample.ts <= to) {
            match sample.value {
                Some(value) => drop(series.add_many(sample.ts, by(sample.line), value, sample.count)),
                None => series.lose(&by(sample.line), sample.ts),
            }
        }
        series.finish()
    }
}

/// The bounds that the room sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Room {
    /// The number of bars that are left out.
    pub bars_left_out: u64,
    /// The length below which bars are left out, in nanoseconds.
    pub shortest_ns: u64,
    /// The width of the columns in which points are summed, in nanoseconds; 1 where each is kept.
    pub points_ns: u64,
    /// The width of the columns in which samples are summed, in nanoseconds; 1 where each is kept.
    pub samples_ns: u64,
}

/// A row of bars in a window.
#[derive(Clone, Debug)]
pub struct RowDrawn {
    /// The place of its lane.
    pub lane: usize,
    /// The depth of the row in the lane, from 0.
    pub depth: usize,
    /// The bars of the row, as pieces of a lane.
    pub pieces: Vec<Piece>,
    /// The start, the end, the class and the label of each bar that is long enough for its label.
    pub labels: Vec<(Ts, Ts, PieceClass, String)>,
}

/// The bars, points and lines of a window.
#[derive(Clone, Debug)]
pub struct WindowDrawn {
    /// The rows that have bars, by lane and depth.
    pub rows: Vec<RowDrawn>,
    /// The marks of each point, by its place in the specification.
    pub points: Vec<Vec<PointMark>>,
    /// The lines of each series, by its place in the specification.
    pub series: Vec<Vec<LineReport>>,
}

/// All that a specification draws.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The bars of each row, which never overlap, in order of time; by lane and depth.
    rows: Vec<Vec<Vec<Bar>>>,
    count: usize,
    shortest: u64,
    left_out: u64,
    points: Vec<MarkColumns>,
    series: Vec<Samples>,
    labels: Vec<String>,
    places: SeededMap<String, u32>,
    /// The maximum numbers of bars, marks and samples.
    most: usize,
}

impl Drawn {
    pub(crate) fn new(points: usize, series: impl Iterator<Item = SampleKind>) -> Drawn {
        let samples = |kind| Samples { kind, width: 1, lines: Vec::new(), all: Vec::new() };
        Drawn {
            rows: Vec::new(),
            count: 0,
            shortest: 0,
            left_out: 0,
            points: vec![MarkColumns { width: 1, all: Vec::new() }; points],
            series: series.map(samples).collect(),
            labels: Vec::new(),
            places: SeededMap::default(),
            most: MOST,
        }
    }

    /// The content with another maximum number of bars, marks and samples.
    #[cfg(test)]
    pub(crate) fn with_room(self, most: usize) -> Drawn {
        Drawn { most, ..self }
    }

    pub(crate) fn intern(&mut self, label: Option<&str>) -> Option<u32> {
        let label: String = label?.chars().take(LABEL).collect();
        if let Some(place) = self.places.get(&label) {
            return Some(*place);
        }
        let place = u32::try_from(self.labels.len()).ok().filter(|place| (*place as usize) < LABELS)?;
        self.labels.push(label.clone());
        self.places.insert(label, place);
        Some(place)
    }

    pub(crate) fn bar(&mut self, lane: usize, depth: usize, bar: Bar) {
        if bar.end.since(bar.start).0 < self.shortest {
            self.left_out += 1;
            return;
        }
        if self.rows.len() <= lane {
            self.rows.resize_with(lane + 1, Vec::new);
        }
        let rows = &mut self.rows[lane];
        if rows.len() <= depth {
            rows.resize_with(depth + 1, Vec::new);
        }
        rows[depth].push(bar);
        self.count += 1;
        while self.count > self.most {
            self.shortest = (2 * self.shortest).max(64);
            let shortest = self.shortest;
            let rows = self.rows.iter_mut().flatten();
            rows.for_each(|row| row.retain(|bar| bar.end.since(bar.start).0 >= shortest));
            let kept = self.rows.iter().flatten().map(Vec::len).sum();
            self.left_out += (self.count - kept) as u64;
            self.count = kept;
        }
    }

    pub(crate) fn point(&mut self, place: usize, mark: PointMark) {
        if let Some(marks) = self.points.get_mut(place) {
            marks.add(mark, self.most);
        }
    }

    pub(crate) fn sample(&mut self, place: usize, line: usize, by: Option<&EventValue>, ts: Ts, value: Option<f64>) {
        let Some(samples) = self.series.get_mut(place) else { return };
        if samples.lines.len() <= line {
            samples.lines.resize(line + 1, None);
        }
        if let Some(by) = by {
            samples.lines[line] = Some(by.clone());
        }
        samples.add(SeriesSample { ts, line, value, count: 1 }, self.most);
    }

    /// The bounds that the room sets.
    pub fn room(&self) -> Room {
        let points_ns = self.points.iter().map(|marks| marks.width).max().unwrap_or(1);
        let samples_ns = self.series.iter().map(|samples| samples.width).max().unwrap_or(1);
        Room { bars_left_out: self.left_out, shortest_ns: self.shortest, points_ns, samples_ns }
    }

    /// The number of rows of a lane, above one another.
    pub fn depth(&self, lane: usize) -> usize {
        self.rows.get(lane).map_or(0, Vec::len)
    }

    /// The label of a mark, if its points have one label.
    pub fn mark_label(&self, mark: &PointMark) -> Option<&str> {
        self.label_of(mark.label)
    }

    fn label_of(&self, label: Option<u32>) -> Option<&str> {
        self.labels.get(label? as usize).map(String::as_str)
    }

    /// The bar of a row at a time, and its label.
    pub fn bar_at(&self, lane: usize, depth: usize, ts: Ts) -> Option<(&Bar, Option<&str>)> {
        let row = self.rows.get(lane)?.get(depth)?;
        let bar = row.get(row.partition_point(|bar| bar.end <= ts)).filter(|bar| bar.start <= ts)?;
        Some((bar, self.label_of(bar.label)))
    }

    /// The bars, points and lines from `from` to `to`. Bars that are shorter than a column are shares of it.
    pub fn window(&self, from: Ts, to: Ts, columns: u32) -> WindowDrawn {
        let mut rows = Vec::new();
        for (lane, depths) in self.rows.iter().enumerate() {
            for (depth, row) in depths.iter().enumerate() {
                let bars = row.get(row.partition_point(|bar| bar.end <= from)..).unwrap_or_default();
                let mut drawn = Columns::new(from, to, columns);
                let (mut at, mut labels) = (from, Vec::new());
                for bar in bars.iter().take_while(|bar| bar.start < to) {
                    let (start, end) = (bar.start.max(at), bar.end.min(to));
                    drawn.push(BLANK, at, start);
                    drawn.push(bar.class, start, end);
                    at = at.max(end);
                    let is_wide = end.since(start).0 >= to.since(from).0 / LABELLED;
                    if let Some(label) = self.label_of(bar.label).filter(|_| is_wide && bar.class != UNKNOWN) {
                        labels.push((start, end, bar.class, label.to_owned()));
                    }
                }
                if at > from {
                    rows.push(RowDrawn { lane, depth, pieces: drawn.finish(), labels });
                }
            }
        }
        let points = self.points.iter().map(|marks| marks.within(from, to)).collect();
        let series = self.series.iter().map(|samples| samples.within(from, to)).collect();
        WindowDrawn { rows, points, series }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(start: i64, end: i64, class: PieceClass) -> Bar {
        Bar { start: Ts(start), end: Ts(end), class, interval: 0, cpu: Cpu(0), pid: Pid(1), label: None }
    }

    /// Numbers that look random.
    fn numbers() -> impl FnMut(u64) -> u64 {
        let mut state = 7u64;
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        }
    }

    #[test]
    fn a_window_has_the_time_of_its_bars() {
        let mut random = numbers();
        let mut drawn = Drawn::new(0, std::iter::empty());
        let (mut at, mut bars) = (0, Vec::new());
        for _ in 0..500 {
            let mut length = || {
                let most = if random(9) == 0 { 9_000 } else { 90 };
                random(most) as i64
            };
            let start = at + length();
            at = start + length();
            bars.push(bar(start, at, 3 + random(4) as PieceClass));
        }
        bars.iter().for_each(|bar| drawn.bar(0, 0, *bar));
        for _ in 0..200 {
            let from = random(at as u64) as i64;
            let most = if random(2) == 0 { 400 } else { 90_000 };
            let to = from + 1 + random(most) as i64;
            let window = drawn.window(Ts(from), Ts(to), 64);
            let mut sums = [0u64; 8];
            let mut end = from;
            for piece in window.rows.iter().flat_map(|row| &row.pieces) {
                let (start, until) = match piece {
                    Piece::Exact { class, start, end } => {
                        sums[usize::from(*class)] += end.since(*start).0;
                        (start, end)
                    }
                    Piece::Shares { start, end, shares } => {
                        shares.iter().for_each(|(class, ns)| sums[usize::from(*class)] += ns);
                        (start, end)
                    }
                };
                assert!(start.0 >= end && until.0 <= to, "pieces in order, within the window");
                end = until.0;
            }
            for class in 3..7u16 {
                let of = bars.iter().filter(|bar| bar.class == class);
                let truth: i64 = of.map(|bar| (bar.end.0.min(to) - bar.start.0.max(from)).max(0)).sum();
                assert_eq!(sums[usize::from(class)], truth as u64, "class {class} in {from}..{to}");
            }
            let found = drawn.bar_at(0, 0, Ts(from)).map(|(bar, _)| *bar);
            assert_eq!(found, bars.iter().find(|bar| bar.start.0 <= from && bar.end.0 > from).copied());
        }
    }

    #[test]
    fn what_is_kept_has_a_limit() {
        let mut random = numbers();
        let mut drawn = Drawn::new(1, [SampleKind::Rate, SampleKind::Held].into_iter()).with_room(1_000);
        let mut bars = Vec::new();
        for n in 0..10_000i64 {
            let start = n * 20_000;
            bars.push(bar(start, start + random(10_000) as i64, 3));
            drawn.bar(0, 0, bars[n as usize]);
            let mark = PointMark { ts: Ts(start), lane: (n % 2) as usize, class: 3, count: 1, label: None };
            drawn.point(0, mark);
            drawn.sample(0, 0, None, Ts(start), Some(1.0));
            drawn.sample(1, 0, None, Ts(start), Some(n as f64));
        }
        let end = Ts(10_000 * 20_000);
        let room = drawn.room();
        let kept: usize = drawn.rows.iter().flatten().map(Vec::len).sum();
        assert!(kept <= 1_000 && room.bars_left_out == 10_000 - kept as u64, "{room:?}");
        let long = bars.iter().filter(|bar| bar.end.since(bar.start).0 >= room.shortest_ns);
        assert_eq!(kept, long.count(), "the longest are kept");
        assert!(drawn.points[0].all.len() <= 1_000 && room.points_ns > 1);
        let window = drawn.window(Ts(0), end, 64);
        assert_eq!(window.points[0].iter().map(|mark| mark.count).sum::<u64>(), 10_000, "no point is lost");
        assert!(window.points[0].len() <= 2_000);
        assert!(drawn.series.iter().all(|samples| samples.all.len() <= 1_000) && room.samples_ns > 1);
        assert_eq!(window.series[0][0].count, 10_000);
        let held: Vec<f64> = window.series[1][0].columns.iter().flatten().copied().collect();
        assert!(held.is_sorted() && held.len() == 400, "values that grow");
    }

    #[test]
    fn a_value_holds_into_a_window_unless_it_was_lost() {
        let mut drawn = Drawn::new(0, std::iter::once(SampleKind::Held));
        drawn.sample(0, 0, Some(&EventValue::Number(4)), Ts(10), Some(5.0));
        drawn.sample(0, 0, None, Ts(500), None);
        let line = &drawn.window(Ts(100), Ts(200), 64).series[0][0];
        assert_eq!((line.by.as_deref(), line.mean), (Some("4"), Some(5.0)));
        assert_eq!(drawn.window(Ts(600), Ts(700), 64).series[0].len(), 0);
    }

    #[test]
    fn labels_have_a_limit() {
        let mut drawn = Drawn::new(0, std::iter::empty());
        let places: Vec<_> = (0..LABELS + 3).map(|n| drawn.intern(Some(&n.to_string()))).collect();
        assert_eq!((places[LABELS - 1], places[LABELS]), (Some(LABELS as u32 - 1), None));
        assert_eq!(drawn.intern(Some("7")), Some(7));
        let place = drawn.intern(Some(&"7".repeat(5_000)));
        assert_eq!(place, None, "there is no room for another one");
    }
}
