//! The figure: rows of bars and markers, and lines under them.

use crate::expr::EventValue;
use crate::look::Item as LookItem;
use crate::report::{PlotReport, SeriesReport};
use crate::rows::{DENSITY, Label, PlotLane};
use crate::series::COLUMNS;
use crate::spec::{LaneKind, Spec};
use draw::{Anchor, Color, Figure, Item, Line, PT, Paint, Point, Rect, Shape, Unit};
use sched::nouns::counted as counted_noun;
use sched::{Cpu, Ts};
use timeline::page::{DrawLanes, Heading, LegendEntry, Page, Swatch};
use timeline::palette::{FAINT, INK, PALETTE, RULE};
use timeline::strips::{Strips, UNKNOWN};
use timeline::{Axis, AxisUnit, LaneLayout, TimeScale, steps};

/// The CPUs of a figure.
#[derive(Clone, Debug)]
pub struct Options {
    /// The instant that counts as zero: the trace's start.
    pub zero: Ts,
    /// The CPUs in display order, each with its group.
    pub cpus: Vec<(Cpu, Option<u32>)>,
    /// All CPUs that have a lane, in display order: those of `cpus`, and those without any event. Empty where there is
    /// none of these.
    pub all_cpus: Vec<(Cpu, Option<u32>)>,
    /// The name of the groups; empty without groups.
    pub group_name: String,
}

const WIDTH: Unit = 842 * PT;
/// The height of the row of a task or a value: its name above, its bars below.
const ROW: Unit = 15 * PT;
const NAME: Unit = 6 * PT;
/// Maximum number of rows of tasks or values.
const MOST_ROWS: usize = 40;
/// The height of a series, and of its name above it.
const SERIES: Unit = 54 * PT;
const SERIES_GAP: Unit = 16 * PT;
const TEXT: Unit = 7 * PT;

/// The figure of a report; `background` draws the running tasks where rows are CPUs.
pub fn figure(
    report: &PlotReport,
    spec: &Spec,
    options: &Options,
    heading: &Heading,
    background: Option<&DrawLanes<'_>>,
) -> Figure {
    let is_of_cpus = spec.lanes.by == LaneKind::Cpu;
    let rows = if is_of_cpus { 0 } else { report.lanes.len().min(MOST_ROWS) };
    let lanes_height = if is_of_cpus {
        let n = options.cpus.len().max(options.all_cpus.len()).max(1) as Unit;
        ((400 * PT / n).min(30 * PT) * n).max(40 * PT)
    } else {
        (rows.max(1) as Unit) * ROW
    };
    let series_height = report.series.len() as Unit * (SERIES + SERIES_GAP);
    let least = if is_of_cpus { 40 * PT } else { lanes_height } + series_height;
    let texts = texts(report, heading, is_of_cpus);
    let mut page = Page::with_least(WIDTH, lanes_height + series_height, least, &texts, &legend(report));
    let lanes_height = page.height - series_height;
    let scale = page.scale(report.from_ns, report.to_ns, options.zero);
    page.time_axis(&scale);
    let top = page.top;
    let figure = &mut page.figure;
    if is_of_cpus {
        if let Some(draw) = background {
            draw(figure, &scale, top, lanes_height);
        }
        draw_cpus(figure, report, options, &scale, top, lanes_height, background.is_some());
    } else {
        draw_rows(figure, report, &scale, top);
    }
    for (place, series) in report.series.iter().enumerate() {
        let top = top + lanes_height + place as Unit * (SERIES + SERIES_GAP) + SERIES_GAP;
        draw_series(figure, series, &scale, top);
    }
    page.finish()
}

fn texts(report: &PlotReport, heading: &Heading, is_of_cpus: bool) -> timeline::page::Texts {
    let span = report.to_ns.since(report.from_ns).seconds();
    let title = report.title.as_deref().unwrap_or("events");
    let mut note = format!("{span:.6} s shown");
    if !is_of_cpus && report.lanes.len() > MOST_ROWS {
        note.push_str(&format!("; the first {MOST_ROWS} of {} rows", report.lanes.len()));
    }
    if report.lanes_left_out > 0 {
        let left_out = counted_noun(report.lanes_left_out, "event");
        note.push_str(&format!("; left out: {left_out} in rows beyond 1,024"));
    }
    note.push('.');
    let mut texts = heading.texts(format!("{}: {title}", heading.trace), note);
    texts.notes.extend(report.notes.iter().map(|note| format!("Left out: {note}.")));
    texts
}

/// The shape of the markers of a point.
fn shape(place: usize) -> Shape {
    Shape::ALL[place % Shape::ALL.len()]
}

/// Bars, markers and lines, each with its count.
fn legend(report: &PlotReport) -> Vec<LegendEntry> {
    let mut legend = Vec::new();
    for (place, at) in report.interval_of.iter().enumerate() {
        let Some(interval) = at.map(|at| &report.intervals[at]) else { continue };
        let share = format!("{:.2} % of the {}", interval.share_percent, report.share_of);
        let head = format!("{}: {}, {share}", interval.name, counted_noun(interval.count, "interval"));
        push_item(&mut legend, report, LookItem::Interval(place), &head, |color| Swatch::Area(Paint::Solid(color)));
    }
    for (place, at) in report.point_of.iter().enumerate() {
        let Some(point) = at.map(|at| &report.points[at]) else { continue };
        let head = format!("{}: {}", point.name, counted_noun(point.count, "event"));
        push_item(&mut legend, report, LookItem::Point(place), &head, |color| Swatch::Marker(shape(place), color));
    }
    let has_unknown = report.intervals.iter().any(|interval| interval.lost + interval.beyond_limit > 0);
    if has_unknown {
        let label = "end unknown, since events were lost".to_owned();
        legend.push(LegendEntry { swatch: Swatch::Area(Paint::Hatch), label });
    }
    for series in &report.series {
        for (line, color) in series.lines.iter().zip(PALETTE).filter(|(line, _)| line.by.is_some()) {
            let label = format!("{}: {}", series.name, line.by.as_deref().unwrap_or_default());
            legend.push(LegendEntry { swatch: Swatch::Line(color), label });
        }
    }
    legend
}

/// An item with one colour, or with one for each of its values.
fn push_item(
    legend: &mut Vec<LegendEntry>,
    report: &PlotReport,
    item: LookItem,
    head: &str,
    swatch: impl Fn(Color) -> Swatch,
) {
    let mut colors: Vec<(Color, Option<&str>)> = report.looks.of_item(item).collect();
    if let [(color, None)] = colors.as_slice() {
        legend.push(LegendEntry { swatch: swatch(*color), label: head.to_owned() });
        return;
    }
    legend.push(LegendEntry { swatch: Swatch::None, label: format!("{head}, by {}", field_name(report, item)) });
    colors.sort_by(|a, b| natural(a.1).cmp(&natural(b.1)));
    for (color, value) in colors {
        let value = value.unwrap_or_default();
        let label = format!("{value}{}", counted(report, item, value));
        legend.push(LegendEntry { swatch: swatch(color), label });
    }
    let more = report.looks.uncolored(item);
    if more > 0 {
        let label = format!("{more} other values");
        legend.push(LegendEntry { swatch: swatch(Color::grey(0x70)), label });
    }
}

fn field_name(report: &PlotReport, item: LookItem) -> String {
    let field = report.looks.field(item).unwrap_or_default();
    field.strip_prefix('$').unwrap_or(field).replace("any", "kind")
}

/// The count of a value of an item, and its time.
fn counted(report: &PlotReport, item: LookItem, value: &str) -> String {
    let by = match item {
        LookItem::Interval(place) => report.interval_of[place].map(|at| &report.intervals[at].by),
        LookItem::Point(place) => report.point_of[place].map(|at| &report.points[at].by),
    };
    let found = by.and_then(|by| by.iter().find(|of| of.value == value));
    found.map_or_else(String::new, |found| match found.total_ns {
        Some(total) => format!(" ({}, {})", found.count, total.human()),
        None => format!(" ({})", found.count),
    })
}

/// Numbers in their order, in front of texts.
fn natural(value: Option<&str>) -> (Option<i128>, Option<&str>) {
    (value.and_then(|value| value.parse().ok()).or(Some(i128::MAX)), value)
}

/// Bars and markers of the CPUs.
fn draw_cpus(
    figure: &mut Figure,
    report: &PlotReport,
    options: &Options,
    scale: &TimeScale,
    top: Unit,
    height: Unit,
    has_background: bool,
) {
    let layout = LaneLayout::among(&options.cpus, &options.all_cpus, top, height);
    let right = scale.x + scale.width;
    if !has_background {
        layout.draw_silent(figure, scale.x, right);
        layout.draw_floors(figure, scale.x, right);
        layout.draw(figure, scale.x, right, &options.group_name);
    }
    let place = |key: &EventValue| {
        let EventValue::Number(n) = key else { return None };
        options.cpus.iter().position(|(cpu, _)| i128::from(cpu.0) == *n)
    };
    // Bars leave the upper part of a lane to what ran there.
    let (bar, share) = (layout.bar(), if has_background { 70 } else { 100 });
    let inset = bar - bar * share / 100;
    let places: Vec<Option<(Unit, Unit)>> = report
        .lanes
        .iter()
        .map(|(_, lane)| place(&lane.key).map(|place| (layout.top_of(place) + inset, bar - inset)))
        .collect();
    draw_lanes(figure, report, &places, scale);
}

/// Rows of tasks or values, each with its name.
fn draw_rows(figure: &mut Figure, report: &PlotReport, scale: &TimeScale, top: Unit) {
    let mut floors = Vec::new();
    for (row, (_, lane)) in report.lanes.iter().take(MOST_ROWS).enumerate() {
        let y = top + row as Unit * ROW;
        let name = if lane.name.is_empty() { lane.key.to_string() } else { format!("{} {}", lane.name, lane.key) };
        let name = draw::text::fit(&draw::text::printable(&name), NAME, scale.width / 3);
        figure.text(Point { x: scale.x + PT, y: y + NAME - PT / 2 }, NAME, Anchor::Start, FAINT, &name);
        let floor = y + ROW - PT;
        floors.push(Line { from: Point { x: scale.x, y: floor }, to: Point { x: scale.x + scale.width, y: floor } });
    }
    figure.push(Item::Lines { stroke: RULE, width: 25, dash: 0, lines: floors });
    let places: Vec<Option<(Unit, Unit)>> = (0..report.lanes.len())
        .map(|row| (row < MOST_ROWS).then(|| (top + row as Unit * ROW + NAME + PT / 2, ROW - NAME - 2 * PT)))
        .collect();
    draw_lanes(figure, report, &places, scale);
}

/// Bars, labels and markers of all lanes; `places` are the top and the height of each.
fn draw_lanes(figure: &mut Figure, report: &PlotReport, places: &[Option<(Unit, Unit)>], scale: &TimeScale) {
    let mut strips = Strips::new(scale, 3);
    let mut labels: Vec<(Rect, &Label)> = Vec::new();
    for ((_, lane), place) in report.lanes.iter().zip(places) {
        let Some((top, height)) = *place else { continue };
        let rows = lane.pieces();
        let used = (rows.len() as Unit).clamp(1, (height / PT).max(1));
        let h = height / used;
        let y = |depth: usize| top + (depth as Unit).min(used - 1) * h;
        for (depth, pieces) in rows.iter().enumerate() {
            strips.add(pieces, y(depth), h - h / 12);
        }
        labels.extend(lane.labels.iter().map(|label| {
            let (x, right) = (scale.at(label.start), scale.at(label.end));
            (Rect { x, y: y(label.depth), w: right - x, h: h - h / 12 }, label)
        }));
    }
    strips.draw(figure, |class| report.looks.color(class));
    for (rect, label) in labels {
        draw_label(figure, report, rect, label);
    }
    draw_points(figure, report, places, scale);
}

fn draw_label(figure: &mut Figure, report: &PlotReport, rect: Rect, label: &Label) {
    let size = (rect.h * 7 / 10).min(TEXT);
    let text = draw::text::printable(&label.text);
    if size < 3 * PT || draw::text::width(&text, size) + 3 * PT > rect.w || label.class == UNKNOWN {
        return;
    }
    let [r, g, b] = report.looks.color(label.class).0.map(u32::from);
    let is_dark = 299 * r + 587 * g + 114 * b < 140_000;
    let ink = if is_dark { Color::WHITE } else { INK };
    let at = Point { x: rect.x + 3 * PT / 2, y: rect.y + rect.h / 2 + size * 35 / 100 };
    figure.text(at, size, Anchor::Start, ink, &text);
}

/// A marker for each point, or bars where they are too many.
fn draw_points(figure: &mut Figure, report: &PlotReport, places: &[Option<(Unit, Unit)>], scale: &TimeScale) {
    let mut place_of = vec![None; report.lanes.len()];
    report.lanes.iter().zip(places).for_each(|((lane, _), place)| place_of[*lane] = *place);
    for (place, marks) in report.marks.iter().enumerate() {
        if marks.at.len() > crate::marks::MARKERS {
            draw_density(figure, report, place, places, scale);
            continue;
        }
        let mut by_color: std::collections::BTreeMap<_, Vec<Point>> = std::collections::BTreeMap::new();
        let mut size = 6 * PT;
        for (lane, ts, class) in &marks.at {
            let Some((top, height)) = place_of[*lane] else { continue };
            size = size.min((height * 8 / 10).max(2 * PT));
            by_color.entry(*class).or_default().push(Point { x: scale.at(*ts), y: top + height / 2 });
        }
        for (class, at) in by_color {
            figure.push(Item::Markers { shape: shape(place), fill: report.looks.color(class), size, at });
        }
        if marks.labels.len() <= 60 {
            for (lane, ts, text) in &marks.labels {
                let Some((top, height)) = place_of[*lane] else { continue };
                let at = Point { x: scale.at(*ts) + size / 2 + PT, y: top + height / 2 + 2 * PT };
                figure.text(at, 5 * PT, Anchor::Start, INK, &draw::text::printable(text));
            }
        }
    }
}

fn draw_density(
    figure: &mut Figure,
    report: &PlotReport,
    point: usize,
    places: &[Option<(Unit, Unit)>],
    scale: &TimeScale,
) {
    let of = |lane: &PlotLane| lane.density.get(&point).cloned().unwrap_or_default();
    let most = report.lanes.iter().flat_map(|(_, lane)| of(lane)).max().unwrap_or(1).max(1);
    let edge = |column: usize| scale.x + (i64::from(scale.width) * column as i64 / DENSITY as i64) as Unit;
    let mut rects = Vec::new();
    for ((_, lane), place) in report.lanes.iter().zip(places) {
        let Some((top, height)) = *place else { continue };
        for (column, n) in of(lane).into_iter().enumerate().filter(|(_, n)| *n > 0) {
            let h = ((i64::from(height) * i64::from(n) / i64::from(most)) as Unit).max(height / 16).max(1);
            rects.push(Rect { x: edge(column), y: top + height - h, w: edge(column + 1) - edge(column), h });
        }
    }
    let color = report.looks.of_item(LookItem::Point(point)).next().map_or(INK, |(color, _)| color);
    figure.push(Item::Rects { fill: Paint::Solid(color), rects });
}

/// The lines of a series over its own axis.
fn draw_series(figure: &mut Figure, series: &SeriesReport, scale: &TimeScale, top: Unit) {
    let unit = series.unit.as_ref().map_or_else(String::new, |unit| format!(" ({unit})"));
    let title = draw::text::printable(&format!("{}{unit}", series.name));
    figure.text(Point { x: scale.x, y: top - 3 * PT }, TEXT, Anchor::Start, INK, &title);
    let values = || series.lines.iter().flat_map(|line| &line.columns).flatten().copied();
    let (least, most) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    let axis = Axis::linear(least, most, AxisUnit::Number, "");
    let plot = Rect { x: scale.x, y: top + 4 * PT, w: scale.width, h: SERIES - 4 * PT };
    axis.draw_left(figure, plot);
    let y = |value: f64| axis.at(value, plot.y + plot.h, -plot.h);
    let edge = |column: usize| scale.x + (i64::from(scale.width) * column as i64 / COLUMNS as i64) as Unit;
    let edges: Vec<Unit> = (0..=COLUMNS).map(edge).collect();
    for (line, color) in series.lines.iter().zip(PALETTE).rev() {
        let heights: Vec<Option<Unit>> = line.columns.iter().map(|value| value.map(y)).collect();
        figure.push(Item::Lines { stroke: color, width: 70, dash: 0, lines: steps(&heights, &edges) });
    }
}
