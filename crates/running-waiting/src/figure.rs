//! The figure: a panel for each group, strips under it, and rows of run queues.

use crate::{Options, PanelColumn, Report, Series};
use draw::{Anchor, Color, Figure, Item, Line, PT, Paint, Point, Rect, Unit};
use sched::Ts;
use timeline::page::{Heading, LegendEntry, Page, Swatch};
use timeline::palette::{self, BANDS, FAINT, INK, RULE};
use timeline::strips::{FIRST, OFFLINE, Strips};
use timeline::{Axis, AxisUnit, LaneLayout, TimeScale, steps};

/// The length of the dots of a line, and of the gaps between them.
const DOTS: Unit = 2 * PT;
const GREEN: Color = Color::rgb(0x10, 0x78, 0x40);
const GREEN_BAND: Color = Color::rgb(0xb4, 0xdc, 0xc0);
const RED: Color = Color::rgb(0xc0, 0x20, 0x20);
const RED_BAND: Color = Color::rgb(0xf2, 0xc4, 0xbc);
const VIOLATION: Color = Color::rgb(0x90, 0x10, 0x60);

/// The height of the strip that marks violations.
const STRIP: Unit = 7 * PT;
const GAP: Unit = 3 * PT;
const WIDTH: Unit = 842 * PT;

/// The colours of a run queue of 1, 2, 3 and more.
const LENGTHS: [Color; 4] = [BANDS[0], BANDS[1], BANDS[3], BANDS[5]];

/// The figure of a report.
pub fn figure(report: &Report, options: &Options<'_>, heading: &Heading) -> Figure {
    let panels = report.panels.len().max(1) as Unit;
    let panel_height = (330 * PT / panels).clamp(60 * PT, 260 * PT);
    let lanes = report.rows.len().max(if report.rows.is_empty() { 0 } else { options.all_cpus.len() });
    let row = if report.rows.is_empty() { 0 } else { (260 * PT / lanes as Unit).clamp(PT, 14 * PT) };
    let rows_height = row * lanes as Unit;
    let height = panel_height * panels + if rows_height > 0 { rows_height + 12 * PT } else { 0 };
    let texts = heading.texts(format!("{}: running and waiting tasks", heading.trace), note(report, options));
    let mut page = Page::new(WIDTH, height, &texts, &legend(report, options));
    // The page may be higher or lower than this figure's own: the parts share its height in proportion.
    let part = |own: Unit| (i64::from(own) * i64::from(page.height) / i64::from(height.max(1))) as Unit;
    let (panel_height, rows_height, between) = (part(panel_height), part(rows_height), part(12 * PT));
    let scale = page.scale(options.from, options.to, options.zero);
    page.time_axis(&scale);
    for (i, series) in (0..).zip(&report.panels) {
        let top = page.top + i * panel_height;
        draw_panel(&mut page.figure, series, options, &scale, top, panel_height - STRIP - 2 * GAP - 4 * PT);
    }
    if rows_height > 0 {
        let top = page.top + panel_height * panels + between;
        let layout = LaneLayout::among(&options.cpus, &options.all_cpus, top, rows_height);
        layout.draw_silent(&mut page.figure, scale.x, scale.x + scale.width);
        let mut strips = Strips::new(&scale, 4);
        for (index, pieces) in report.rows.iter().enumerate() {
            strips.add(pieces, layout.top_of(index), layout.bar());
        }
        strips.draw(&mut page.figure, |class| LENGTHS[usize::from(class - FIRST).min(3)]);
        layout.draw(&mut page.figure, Page::LEFT, Page::LEFT + scale.width, &options.group_name);
    }
    page.finish()
}

fn note(report: &Report, options: &Options<'_>) -> String {
    let window = options.to.since(options.from);
    let Some(violated) = report.violated_ns else {
        let what = match report.selection_unknown {
            Some(_) => ": unknown.",
            None => {
                "; the part of the time in which a CPU idled while on another a task waited is unknown, since wakeups were not recorded."
            }
        };
        return format!("{:.6} s shown, {}{what}", window.seconds(), options.which);
    };
    format!(
        "{:.6} s shown, {}; a line is a column's mean, the band its least and most. A CPU idled while on another a task waited {:.2} % of the time ({}).",
        window.seconds(),
        options.which,
        percent(violated, options),
        report.waiters.in_words()
    )
}

/// A time in percent of the window.
fn percent(ns: u64, options: &Options<'_>) -> f64 {
    100.0 * ns as f64 / (options.to.since(options.from).0 as f64).max(1.0)
}

fn legend(report: &Report, options: &Options<'_>) -> Vec<LegendEntry> {
    let area = |color, label: &str| LegendEntry { swatch: Swatch::Area(Paint::Solid(color)), label: label.to_owned() };
    let went = report.panels.iter().flat_map(|p| &p.columns).any(|c| c.offline > 0.0);
    let line = |color, label: &str| LegendEntry { swatch: Swatch::Line(color), label: label.to_owned() };
    let cpus = match (went, options.all_cpus.is_empty()) {
        (true, _) => "CPUs that are online",
        (false, true) => "CPUs",
        (false, false) => "CPUs with events",
    };
    let mut legend = vec![
        line(GREEN, "running"),
        line(RED, "running + waiting (runqueue wait)"),
        LegendEntry { swatch: Swatch::Dashed(FAINT, DOTS), label: cpus.to_owned() },
        area(VIOLATION, "share of time in violation"),
    ];
    if report.panels.iter().flat_map(|p| &p.columns).any(|c| c.unknown_ns > 0) {
        legend.push(LegendEntry {
            swatch: Swatch::Area(Paint::Hatch),
            label: "some CPU unknown: events were lost".into(),
        });
    }
    if !report.rows.is_empty() {
        for (color, label) in LENGTHS.iter().zip(["run queue of 1", "2", "3", "4 and more"]) {
            legend.push(area(*color, label));
        }
        if report.rows.iter().flatten().any(|piece| piece.has(OFFLINE)) {
            legend.push(LegendEntry { swatch: Swatch::Line(palette::OFFLINE), label: "offline".into() });
        }
        if options.all_cpus.len() > options.cpus.len() {
            legend.push(area(palette::NO_EVENTS, "CPU without any event"));
        }
    }
    legend
}

fn draw_panel(figure: &mut Figure, series: &Series, options: &Options<'_>, scale: &TimeScale, top: Unit, height: Unit) {
    let cpus = series.cpus.len() as u32;
    let most = series.columns.iter().map(|c| c.total.max).max().unwrap_or(0).max(cpus).max(1);
    let name = if series.name.is_empty() { "tasks" } else { &series.name };
    let tasks = Axis::linear(0.0, f64::from(most) * 1.04, AxisUnit::Count, name);
    let plot = Rect { x: scale.x, y: top + 4 * PT, w: scale.width, h: height - 4 * PT };
    tasks.draw_left(figure, plot);
    let floor = plot.y + plot.h;
    let y = |value: f64| tasks.at(value, floor, -plot.h);
    let edges: Vec<Unit> = edges(series, options, scale);
    let bands = |pick: fn(&PanelColumn) -> crate::Level| -> Vec<Rect> {
        let band = |(c, x): (&PanelColumn, &[Unit])| {
            let s = pick(c);
            let (upper, lower) = (y(s.max.into()), y(s.min.into()));
            Rect { x: x[0], y: upper, w: x[1] - x[0], h: lower - upper }
        };
        merged(series.columns.iter().zip(edges.windows(2)).map(band).filter(|r| r.h > 0 && r.w > 0))
    };
    let line = |height: &dyn Fn(&PanelColumn) -> Unit| {
        let heights: Vec<Option<Unit>> = series.columns.iter().map(|c| Some(height(c))).collect();
        steps(&heights, &edges)
    };
    figure.push(Item::Rects { fill: Paint::Solid(RED_BAND), rects: bands(|c| c.total) });
    figure.push(Item::Rects { fill: Paint::Solid(GREEN_BAND), rects: bands(|c| c.running) });
    figure.push(Item::Lines { stroke: RED, width: 80, dash: 0, lines: line(&|c| y(c.total.mean)) });
    figure.push(Item::Lines { stroke: GREEN, width: 80, dash: 0, lines: line(&|c| y(c.running.mean)) });
    let lines = if series.columns.iter().any(|c| c.offline > 0.0) {
        line(&|c| y(f64::from(cpus) - c.offline))
    } else {
        let level = y(cpus.into());
        vec![Line { from: Point { x: scale.x, y: level }, to: Point { x: scale.x + scale.width, y: level } }]
    };
    figure.push(Item::Lines { stroke: FAINT, width: 60, dash: DOTS, lines });
    if let Some(ns) = series.violated_ns.filter(|_| !series.name.is_empty()) {
        let text = format!("{}: violated within it {:.2} % of the time", series.name, percent(ns, options));
        let at = Point { x: scale.x + scale.width, y: top };
        figure.text(at, 7 * PT, Anchor::End, INK, &draw::text::printable(&text));
    }
    draw_strip(figure, series, &edges, floor + GAP);
}

/// The edges of the columns on the page.
fn edges(series: &Series, options: &Options<'_>, scale: &TimeScale) -> Vec<Unit> {
    let starts = series.columns.iter().map(|c| scale.at(Ts(options.zero.0.saturating_add(c.start_ns))));
    starts.chain([scale.x + scale.width]).collect()
}

/// Joins neighbours of the same height.
fn merged(rects: impl Iterator<Item = Rect>) -> Vec<Rect> {
    let mut out: Vec<Rect> = Vec::new();
    for rect in rects {
        match out.last_mut() {
            Some(last) if last.x + last.w == rect.x && (last.y, last.h) == (rect.y, rect.h) => last.w += rect.w,
            _ => out.push(rect),
        }
    }
    out
}

/// Draws a strip under a panel: the share of each column in violation as a height, hatching where some CPU is unknown.
fn draw_strip(figure: &mut Figure, series: &Series, edges: &[Unit], top: Unit) {
    let spans = || series.columns.iter().zip(edges.windows(2)).filter(|(_, x)| x[1] > x[0]);
    let unknown = spans().filter(|(c, _)| c.unknown_ns > 0 || c.violated_ns.is_none()).map(|(_, x)| Rect {
        x: x[0],
        y: top,
        w: x[1] - x[0],
        h: STRIP,
    });
    figure.push(Item::Rects { fill: Paint::Hatch, rects: merged(unknown) });
    let width = |i: usize| {
        let next = series.columns.get(i + 1).map_or(series.columns[i].start_ns + 1, |n| n.start_ns);
        (next - series.columns[i].start_ns).max(1)
    };
    let violated = series
        .columns
        .iter()
        .enumerate()
        .zip(edges.windows(2))
        .filter(|((_, c), x)| c.violated_ns > Some(0) && x[1] > x[0]);
    let rect = |((i, c), x): ((usize, &PanelColumn), &[Unit])| {
        let share = (c.violated_ns.unwrap_or(0) as f64
            / width(if i + 1 < series.columns.len() { i } else { i.saturating_sub(1) }) as f64)
            .min(1.0);
        let h = ((f64::from(STRIP) * share) as Unit).max(1);
        Rect { x: x[0], y: top + STRIP - h, w: x[1] - x[0], h }
    };
    figure.push(Item::Rects { fill: Paint::Solid(VIOLATION), rects: merged(violated.map(rect)) });
    let y = top + STRIP;
    let floor = Line { from: Point { x: edges[0], y }, to: Point { x: edges[edges.len() - 1], y } };
    figure.push(Item::Lines { stroke: RULE, width: 30, dash: 0, lines: vec![floor] });
}
