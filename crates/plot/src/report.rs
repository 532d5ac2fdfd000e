//! The numbers beside the figure.

use crate::look::{Item, Looks};
use crate::marks::PointCounts;
use crate::rows::PlotLane;
use crate::series::LineReport;
use sched::{Dur, Ts};
use serde::Serialize;
use std::fmt::Write;

/// The intervals, points and series of a window.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlotReport {
    /// The schema of the report: `schedviz/plot/1`.
    pub schema: &'static str,
    /// The title of the specification.
    pub title: Option<String>,
    /// The window's start, on the trace's clock.
    pub from_ns: Ts,
    /// The window's end, on the trace's clock.
    pub to_ns: Ts,
    /// The base of `share_percent`: `CPU time` of the CPUs shown where lanes are CPUs, else the `window`.
    pub share_of: &'static str,
    /// The intervals, in the order of the specification.
    pub intervals: Vec<IntervalReport>,
    /// The points, in the order of the specification.
    pub points: Vec<PointReport>,
    /// The series, in the order of the specification.
    pub series: Vec<SeriesReport>,
    /// The optional items that are left out, each with the reason.
    pub notes: Vec<String>,
    /// The number of events without a lane, because there are more than 1,024 lanes.
    pub lanes_left_out: u64,
    /// The place of each interval of the specification among `intervals`, if the trace has its events.
    #[serde(skip)]
    pub(crate) interval_of: Vec<Option<usize>>,
    /// The place of each point of the specification among `points`, if the trace has its events.
    #[serde(skip)]
    pub(crate) point_of: Vec<Option<usize>>,
    /// The place of each series of the specification among `series`, if the trace has its events.
    #[serde(skip)]
    pub(crate) series_of: Vec<Option<usize>>,
    #[serde(skip)]
    pub(crate) lanes: Vec<(usize, PlotLane)>,
    #[serde(skip)]
    pub(crate) marks: Vec<PointCounts>,
    #[serde(skip)]
    pub(crate) looks: Looks,
}

/// A lane of the figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaneOf {
    /// The place of the lane, by which [`crate::Drawn`] names it.
    pub place: usize,
    /// The CPU or the task, or the value of the field.
    pub key: String,
    /// The name of a task; empty for other lanes.
    pub name: String,
}

/// A colour of the figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LookOf {
    /// The class of bars and points that have it.
    pub class: u16,
    /// The name of the interval or point.
    pub item: String,
    /// The value that the colour stands for; nothing where the item has one colour.
    pub value: Option<String>,
    /// The parts of red, green and blue, from 0 to 255.
    pub color: [u8; 3],
}

impl PlotReport {
    /// The lanes, in the order of the figure.
    pub fn lanes(&self) -> Vec<LaneOf> {
        let lane = |(place, lane): &(usize, PlotLane)| LaneOf {
            place: *place,
            key: lane.key.to_string(),
            name: lane.name.clone(),
        };
        self.lanes.iter().map(lane).collect()
    }

    /// The colours in use, by class.
    pub fn looks(&self) -> Vec<LookOf> {
        let name = |item: Item| match item {
            Item::Interval(place) => self.interval_of[place].map(|at| self.intervals[at].name.clone()),
            Item::Point(place) => self.point_of[place].map(|at| self.points[at].name.clone()),
        };
        let look = |(class, item, color, value): (u16, Item, draw::Color, Option<&str>)| {
            Some(LookOf { class, item: name(item)?, value: value.map(str::to_owned), color: color.0 })
        };
        self.looks.all().filter_map(look).collect()
    }

    /// The name of the interval in a place of the specification.
    pub fn interval_name(&self, place: usize) -> Option<&str> {
        let at = (*self.interval_of.get(place)?)?;
        self.intervals.get(at).map(|interval| interval.name.as_str())
    }

    /// The place of each point of the specification among `points`, if the trace has its events.
    pub fn point_places(&self) -> &[Option<usize>] {
        &self.point_of
    }

    /// The place of each series of the specification among `series`, if the trace has its events.
    pub fn series_places(&self) -> &[Option<usize>] {
        &self.series_of
    }
}

/// The intervals of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntervalReport {
    /// The name of the interval in the specification.
    pub name: String,
    /// The number of intervals that end in the window.
    pub count: u64,
    /// The total length of these intervals in nanoseconds, from their beginnings, which may be before the window;
    /// overlapping ones count each for itself.
    pub total_ns: Dur,
    /// The length of the parts of intervals in the window in percent of the base that `share_of` names; above 100 if
    /// intervals overlap.
    pub share_percent: f64,
    /// The median length of these intervals in nanoseconds, at most 0.8 % above the true one.
    pub median_ns: Option<Dur>,
    /// The length in nanoseconds that 99 % of these intervals do not exceed, at most 0.8 % above the true one.
    pub p99_ns: Option<Dur>,
    /// The longest length in nanoseconds.
    pub max_ns: Option<Dur>,
    /// The number of intervals that go on at the window's end.
    pub unended: u64,
    /// The time in the window from the beginnings of `unended` intervals to the window's end in nanoseconds, which
    /// `total_ns` does not include.
    pub unended_ns: Dur,
    /// The number of ends in the window without a beginning.
    pub unbegun: u64,
    /// The number of beginnings whose ends may be among lost events, or that too many others followed.
    pub lost: u64,
    /// The number of beginnings that were not followed, because 65,536 intervals were open.
    pub beyond_limit: u64,
    /// The number of intervals that count but have no room in the figure.
    pub undrawn: u64,
    /// The intervals by the value of `color_by`, the longest in all first; empty without it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<ValueReport>,
}

/// The intervals or points of one value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValueReport {
    /// The value of `color_by`, as text.
    pub value: String,
    /// The number of intervals or points with this value.
    pub count: u64,
    /// The total length of intervals in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_ns: Option<Dur>,
}

/// The points of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointReport {
    /// The name of the point in the specification.
    pub name: String,
    /// The number of the events in the window.
    pub count: u64,
    /// The count in percent of all points of the figure.
    pub percent: f64,
    /// The points by the value of `color_by`, the most frequent first; empty without it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<ValueReport>,
}

/// A series in a window.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeriesReport {
    /// The name of the series in the specification.
    pub name: String,
    /// The unit, as the specification gives it.
    pub unit: Option<String>,
    /// The number of samples of values of `by` beyond the first eight, which have no line.
    pub others: u64,
    /// The lines, by the value of `by`.
    pub lines: Vec<LineReport>,
}

/// Maximum number of values of one item in the text.
const VALUES: usize = 10;

fn length(length: Option<Dur>) -> String {
    length.map_or_else(|| "none".to_owned(), Dur::human)
}

/// The tables of the report as text.
pub fn text(report: &PlotReport) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    if let Some(title) = &report.title {
        let _ = writeln!(out, "{title}\n");
    }
    if !report.intervals.is_empty() {
        put_intervals(report, &mut out);
    }
    if !report.points.is_empty() {
        put_points(report, &mut out);
    }
    for series in &report.series {
        put_series(series, &mut out);
    }
    for note in &report.notes {
        let _ = writeln!(out, "left out: {note}");
    }
    out
}

fn put_intervals(report: &PlotReport, out: &mut String) {
    let _ = writeln!(
        out,
        "{:>8}  {:>10}  {:>8}  {:>10}  {:>10}  {:>10}  interval",
        "number", "total", "share", "median", "99 %", "longest"
    );
    for interval in &report.intervals {
        let (total, median) = (interval.total_ns.human(), length(interval.median_ns));
        let (p99, max) = (length(interval.p99_ns), length(interval.max_ns));
        let _ = writeln!(
            out,
            "{:>8}  {total:>10}  {:>6.2} %  {median:>10}  {p99:>10}  {max:>10}  {}",
            interval.count, interval.share_percent, interval.name
        );
        for value in interval.by.iter().take(VALUES) {
            let _ = writeln!(out, "{:>8}  {:>10}  {:>43}  {}", value.count, length(value.total_ns), "", value.value);
        }
        put_more(interval.by.len(), out);
        let parts = [
            (interval.unended, "without an end in the window"),
            (interval.unbegun, "without a beginning"),
            (interval.lost, "lost sight of where events are missing"),
            (interval.beyond_limit, "beyond the limit of open intervals"),
            (interval.undrawn, "without room in the figure"),
        ];
        let mut parts: Vec<String> = parts.iter().filter(|p| p.0 > 0).map(|(n, what)| format!("{n} {what}")).collect();
        if let Some(unended) = parts.first_mut().filter(|_| interval.unended > 0) {
            let _ = write!(unended, ", open for {} of it", interval.unended_ns.human());
        }
        if !parts.is_empty() {
            let _ = writeln!(out, "         ({})", parts.join(", "));
        }
    }
    let _ = writeln!(out, "         share: of the {}\n", report.share_of);
}

fn put_more(values: usize, out: &mut String) {
    if let Some(more) = values.checked_sub(VALUES).filter(|more| *more > 0) {
        let _ = writeln!(out, "         and {more} more values");
    }
}

fn put_points(report: &PlotReport, out: &mut String) {
    let _ = writeln!(out, "{:>8}  {:>8}  point", "number", "share");
    for point in &report.points {
        let _ = writeln!(out, "{:>8}  {:>6.2} %  {}", point.count, point.percent, point.name);
        for value in point.by.iter().take(VALUES) {
            let _ = writeln!(out, "{:>8}  {:>10}  {}", value.count, "", value.value);
        }
        put_more(point.by.len(), out);
    }
    out.push('\n');
}

fn put_series(series: &SeriesReport, out: &mut String) {
    let unit = series.unit.as_ref().map_or_else(String::new, |unit| format!(" ({unit})"));
    let _ = writeln!(out, "{:>8}  {:>12}  {:>12}  {:>12}  {}{unit}", "samples", "min", "mean", "max", series.name);
    let number = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), crate::number);
    for line in &series.lines {
        let by = line.by.as_deref().unwrap_or("");
        let (min, mean, max) = (number(line.min), number(line.mean), number(line.max));
        let _ = writeln!(out, "{}", format!("{:>8}  {min:>12}  {mean:>12}  {max:>12}  {by}", line.count).trim_end());
    }
    if series.lines.is_empty() {
        let _ = writeln!(out, "{:>8}", 0);
    }
    if series.others > 0 {
        let _ = writeln!(
            out,
            "{:>8}  {} of other values, without a line",
            series.others,
            sched::nouns::noun(series.others, "sample")
        );
    }
    out.push('\n');
}
