//! Figures of any events, by specifications, over and under the lanes.
//!
//! The page asks for blocks: stretches of time with a power of two as their length, each with a bounded number of columns.

use crate::ask::questions::{AskedWindow, Fault};
use crate::index::viewed::{NotReady, Viewed};
use plot::{Drawn, PlotReport, PointMark, RowDrawn};
use sched::{Dur, Ts};
use serde_json::{Value, json};
use std::sync::Arc;
use timeline::columns::Piece;
use timeline::strips::BLANK;

/// A specification with all that it draws in a trace.
#[derive(Clone, Debug)]
pub struct Plotted {
    /// The name by which the user chose it.
    pub name: String,
    /// A sentence on the purpose of the specification.
    pub about: Option<String>,
    /// The meaning of a row: `cpu`, `task`, or the name of a field.
    pub by: String,
    /// Whether the running tasks are pale behind the bars.
    pub grey: bool,
    /// Whether the bars are about the host of a guest: a strip along the upper edge of each lane. Their tasks are the host's.
    pub is_of_host: bool,
    /// The numbers of the whole trace.
    pub report: PlotReport,
    /// The bars, points and samples of the specification.
    pub drawn: Drawn,
}

/// Maximum number of lanes that are shown, other than CPUs.
const LANES: usize = 64;
/// Maximum number of columns of all rows of a block together, and of one row.
const CELLS: usize = 8192;
const COLUMNS: usize = 512;
/// The levels of blocks below the one that covers a window, of an exported folder.
const DEPTH: u32 = 6;

/// The level of the block that covers a stretch.
fn covering(span: u64) -> u32 {
    span.max(1).next_power_of_two().trailing_zeros()
}

impl Plotted {
    /// The lanes that are shown, by their places, in the order of the figure.
    fn lanes(&self) -> Vec<plot::LaneOf> {
        let mut lanes = self.report.lanes();
        if self.by != "cpu" {
            lanes.truncate(LANES);
        }
        lanes
    }

    /// The facts about the figure, with the levels of its blocks.
    pub(crate) fn head(&self, levels: (u32, u32)) -> Value {
        let all = self.report.lanes().len();
        let lanes = self.lanes();
        let more = all - lanes.len();
        let lane = |lane: &plot::LaneOf| json!({ "place": lane.place, "key": lane.key, "name": lane.name, "depth": self.drawn.depth(lane.place) });
        let lanes: Vec<Value> = lanes.iter().map(lane).collect();
        json!({
            "name": self.name, "about": self.about, "by": self.by, "grey": self.grey, "host": self.is_of_host, "lanes": lanes, "more_lanes": more,
            "looks": self.report.looks(), "points": self.report.point_places(), "series": self.report.series_places(),
            "room": self.drawn.room(), "report": self.report, "levels": [levels.0, levels.1],
        })
    }

    /// The bars, marks and lines of a block, as JSON with times from its start; nothing if it begins behind the trace.
    pub(crate) fn block(&self, (start, end): (Ts, Ts), level: u32, index: u64) -> Option<Value> {
        let length = 1u64.checked_shl(level)?;
        let at = index.checked_mul(length).filter(|at| *at < end.since(start).0.max(1))?;
        let (from, to) = (start.after(Dur(at)), start.after(Dur(at.checked_add(length)?)));
        let lanes = self.lanes();
        let rows: usize = lanes.iter().map(|lane| self.drawn.depth(lane.place)).sum();
        let columns = (CELLS / rows.max(1)).clamp(16, COLUMNS) as u32;
        let drawn = self.drawn.window(from, to, columns);
        let is_shown = |place: usize| lanes.iter().any(|lane| lane.place == place);
        let ns = |ts: Ts| ts.since(from).0;
        let piece = |piece: &Piece| match piece {
            Piece::Exact { class: BLANK, .. } => None,
            Piece::Exact { class, start, end } => Some(json!([ns(*start), ns(*end), class])),
            Piece::Shares { start, end, shares } => Some(json!([ns(*start), ns(*end), shares])),
        };
        let row = |row: &RowDrawn| {
            let pieces: Vec<Value> = row.pieces.iter().filter_map(piece).collect();
            let label =
                |(start, end, class, label): &(Ts, Ts, u16, String)| json!([ns(*start), ns(*end), class, label]);
            let labels: Vec<Value> = row.labels.iter().map(label).collect();
            json!({ "lane": row.lane, "depth": row.depth, "pieces": pieces, "labels": labels })
        };
        let mark = |mark: &PointMark| {
            json!([ns(mark.ts.max(from)), mark.lane, mark.class, mark.count, self.drawn.mark_label(mark)])
        };
        let marks = |marks: &Vec<PointMark>| marks.iter().filter(|m| is_shown(m.lane)).map(mark).collect::<Vec<_>>();
        let value = |value: &Option<f64>| value.map(|value| value as f32);
        let line = |line: &plot::LineReport| json!({ "by": line.by, "columns": line.columns.iter().map(value).collect::<Vec<_>>() });
        let lines = |lines: &Vec<plot::LineReport>| lines.iter().map(line).collect::<Vec<_>>();
        Some(json!({
            "from": at, "to": at + length,
            "rows": drawn.rows.iter().filter(|row| is_shown(row.lane)).map(row).collect::<Vec<_>>(),
            "points": drawn.points.iter().map(marks).collect::<Vec<_>>(),
            "series": drawn.series.iter().map(lines).collect::<Vec<_>>(),
        }))
    }

    /// The bar of a row at an instant.
    pub(crate) fn bar(&self, zero: Ts, RowAt { lane, depth, ns }: RowAt) -> Value {
        self.drawn.bar_at(lane, depth, zero.after(Dur(ns))).map_or(Value::Null, |(bar, label)| {
            let (from, to) = (bar.start.since(zero).0, bar.end.since(zero).0);
            let name = self.report.interval_name(bar.interval);
            let pid = (!self.is_of_host).then_some(bar.pid);
            json!({
                "from": from, "to": to, "name": name, "class": bar.class, "cpu": bar.cpu, "pid": pid, "label": label,
            })
        })
    }
}

/// The levels of the blocks of a trace.
pub(crate) fn levels(trace: &Viewed<'_>) -> (u32, u32) {
    (0, covering(trace.span()))
}

/// The blocks of an exported folder: those of the whole trace on the coarse levels, and of a window on finer ones.
/// Returns the finest level with them.
pub(crate) fn exported(trace: &Viewed<'_>, window: Option<(u64, u64)>) -> (u32, Vec<(u32, u64)>) {
    let span = trace.span();
    let top = covering(span);
    let mut blocks = Vec::new();
    let mut add = |level: u32, from: u64, to: u64| {
        (from >> level..=to.min(span.saturating_sub(1)) >> level).for_each(|index| blocks.push((level, index)));
    };
    let coarse = top.saturating_sub(DEPTH);
    (coarse..=top).for_each(|level| add(level, 0, span));
    let Some((from, to)) = window else { return (coarse, blocks) };
    let finest = covering(to.saturating_sub(from)).saturating_sub(DEPTH).min(coarse);
    (finest..coarse).for_each(|level| add(level, from, to));
    (finest, blocks)
}

/// A question about the figure of a specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlotQuestion {
    /// The facts about the figure, with the levels of its blocks.
    Head,
    /// The bar of a row at an instant.
    Bar(RowAt),
    /// The numbers of a window.
    Numbers(AskedWindow),
    /// The block of this place on this level, below 63.
    Block(u32, u64),
}

/// A point of a row of bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowAt {
    /// The place of the lane among those of the figure.
    pub(crate) lane: usize,
    /// The row within the lane, from 0.
    pub(crate) depth: usize,
    /// The instant, in nanoseconds from the start of the trace.
    pub(crate) ns: u64,
}

impl PlotQuestion {
    /// The answer to the question; nothing where the trace has no such block. `plotted` gives the figure of the
    /// specification, `numbers` its numbers in a window.
    pub(crate) fn answer(
        self,
        trace: &Viewed<'_>,
        plotted: &dyn Fn() -> Result<Arc<Plotted>, NotReady>,
        numbers: &dyn Fn(Ts, Ts) -> Result<PlotReport, NotReady>,
    ) -> Result<Option<Value>, Fault> {
        Ok(match self {
            PlotQuestion::Head => Some(plotted()?.head(levels(trace))),
            PlotQuestion::Bar(point) => Some(plotted()?.bar(trace.extent().0, point)),
            PlotQuestion::Numbers(window) => {
                let (from, to) = window.within(trace)?;
                Some(serde_json::to_value(numbers(from, to)?).unwrap_or_default())
            }
            PlotQuestion::Block(level, index) => plotted()?.block(trace.extent(), level, index),
        })
    }
}
