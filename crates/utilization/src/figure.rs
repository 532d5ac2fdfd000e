//! The figure: what the machine does, stacked over time, and under it how busy each CPU is.

use crate::{Class, Heat, Options, UnderloadReport, UtilizationReport};
use draw::{Color, Figure, Item, Line, PT, Paint, Point, Rect, Unit};
use timeline::page::{Heading, LegendEntry, Page, Swatch};
use timeline::palette::{BANDS, FAINT, NO_EVENTS, PALETTE};
use timeline::{Axis, AxisUnit, LaneLayout};

const WIDTH: Unit = 842 * PT;
const STACK: Unit = 150 * PT;
const GAP: Unit = 16 * PT;
/// The colour of underload, which no class and no band has.
const UNDERLOAD_COLOR: Color = Color::rgb(0x5a, 0x8f, 0x6a);
/// The height of the panel of underload.
const UNDERLOAD: Unit = 56 * PT;

fn paint(class: Class) -> Option<Paint> {
    let color = match class {
        Class::Idle => return None,
        Class::Unknown => return Some(Paint::Hatch),
        // Nearly as if it were not there.
        Class::Offline => Color::grey(0xe4),
        Class::Application => PALETTE[0],
        Class::Other => Color::grey(0x78),
        Class::Kernel => PALETTE[4],
        Class::Stopper => PALETTE[6],
        Class::RealTime => PALETTE[3],
        Class::PossiblyRealTime => PALETTE[7],
        Class::Interrupt => PALETTE[8],
        Class::Injected => Color::rgb(0xc9, 0xdd, 0xee),
    };
    Some(Paint::Solid(color))
}

fn label(class: Class) -> &'static str {
    match class {
        Class::Application => "application",
        Class::Other => "other tasks",
        Class::Kernel => "kernel threads",
        Class::Stopper => "stopper (migration/N)",
        Class::RealTime => "real time, deadline",
        Class::PossiblyRealTime => "real time for a part of the run",
        Class::Interrupt => "interrupts",
        Class::Injected => "kept idle (idle_inject/N)",
        Class::Unknown => "unknown",
        Class::Offline => "offline",
        Class::Idle => "idle",
    }
}

/// The figure of a report.
pub fn figure(report: &UtilizationReport, options: &Options, heading: &Heading) -> Figure {
    let lanes = options.cpus.len().max(options.all_cpus.len());
    let row = (320 * PT / lanes.max(1) as Unit).clamp(PT / 2, 12 * PT);
    let rows = row * lanes as Unit;
    let total = report.all.total().max(1) as f64;
    let drawn = report.underload.as_ref().filter(|of| of.underload.is_some());
    let between = match &report.underload {
        Some(_) if drawn.is_none() => {
            " Underload is unknown: tasks were throttled, and no event shows which.".to_owned()
        }
        Some(of) => {
            format!(" Between: underload, CPUs used in {} beyond the tasks runnable at once.", of.interval_ns.human())
        }
        None => " Underload is unknown: wakeups were not recorded.".to_owned(),
    };
    let note = format!(
        "Busy {:.2} % of the CPU time, the base of all percentages. Above: all CPUs, stacked; below: each CPU, idle to busy from light to dark.{between}",
        100.0 * report.all.busy() as f64 / total
    );
    let texts = heading.texts(format!("{}: utilization", heading.trace), note);
    let panel = if drawn.is_some() { UNDERLOAD + GAP } else { 0 };
    let mut page = Page::new(WIDTH, STACK + GAP + panel + rows, &texts, &legend(report, options));
    // The stack and the rows share the height of the page in proportion.
    let rows = (i64::from(page.height - GAP - panel) * i64::from(rows) / i64::from(STACK + rows)) as Unit;
    let scale = page.scale(options.from, options.to, options.zero);
    page.time_axis(&scale);
    let edges: Vec<(Unit, Unit)> =
        report.columns.iter().map(|(start, length, _)| (scale.at(*start), scale.at(start.after(*length)))).collect();
    let plot = Rect { x: Page::LEFT, y: page.top, w: scale.width, h: page.height - GAP - panel - rows };
    stacked(&mut page.figure, report, &edges, plot);
    if let Some(of) = drawn {
        underload(&mut page.figure, of, Rect { y: plot.y + plot.h + GAP, h: UNDERLOAD, ..plot });
    }
    let layout = LaneLayout::among(&options.cpus, &options.all_cpus, plot.y + plot.h + GAP + panel, rows);
    layout.draw_silent(&mut page.figure, Page::LEFT, Page::LEFT + scale.width);
    heat(&mut page.figure, report, &edges, &layout);
    layout.draw(&mut page.figure, Page::LEFT, Page::LEFT + scale.width, &options.group_name);
    page.finish()
}

fn legend(report: &UtilizationReport, options: &Options) -> Vec<LegendEntry> {
    let all = report.all.all();
    let total = report.all.total().max(1) as f64;
    let entry = |class: Class| {
        let ns = all[class as usize];
        let swatch = paint(class).map_or(Swatch::Blank, Swatch::Area);
        let name = match class {
            Class::Other if report.all.app_ns.is_none() => "tasks, those of the application unknown",
            class => label(class),
        };
        let label = format!("{name}: {:.2} %", 100.0 * ns as f64 / total);
        (ns > 0).then_some(LegendEntry { swatch, label })
    };
    let mut entries: Vec<LegendEntry> = Class::ALL.into_iter().filter_map(entry).collect();
    for (band, share) in BANDS.iter().skip(1).zip([20, 40, 60, 80, 100]) {
        let label = format!("a CPU busy for up to {share} % of a column");
        entries.push(LegendEntry { swatch: Swatch::Area(Paint::Solid(*band)), label });
    }
    if options.all_cpus.len() > options.cpus.len() {
        let swatch = Swatch::Area(Paint::Solid(NO_EVENTS));
        entries.push(LegendEntry { swatch, label: "CPU without any event".into() });
    }
    entries
}

fn stacked(figure: &mut Figure, report: &UtilizationReport, edges: &[(Unit, Unit)], plot: Rect) {
    let floor = plot.y + plot.h;
    let mut rects: Vec<Vec<Rect>> = vec![Vec::new(); Class::ALL.len()];
    for ((_, _, shares), (x, right)) in report.columns.iter().zip(edges) {
        let (total, mut below) = (shares.total().max(1), 0u64);
        let y = |ns: u64| floor - (u128::from(ns) * plot.h as u128 / u128::from(total)) as Unit;
        for (class, ns) in shares.all().into_iter().enumerate() {
            let (bottom, up) = (y(below), y(below.saturating_add(ns)));
            below = below.saturating_add(ns);
            if ns > 0 && bottom > up && right > x {
                rects[class].push(Rect { x: *x, y: up, w: right - x, h: bottom - up });
            }
        }
    }
    for (class, rects) in Class::ALL.into_iter().zip(rects) {
        if let Some(fill) = paint(class) {
            figure.push(Item::Rects { fill, rects });
        }
    }
    Axis::linear(0.0, 100.0, AxisUnit::Percent, "share of the CPU time").draw_left(figure, plot);
    let axis = Line { from: Point { x: plot.x, y: floor }, to: Point { x: plot.x + plot.w, y: floor } };
    figure.push(Item::Lines { stroke: FAINT, width: 50, dash: 0, lines: vec![axis] });
}

/// The panel of underload: the mean of the intervals in each column.
fn underload(figure: &mut Figure, of: &UnderloadReport, plot: Rect) {
    let most = of.columns.iter().copied().fold(0.0, f64::max).max(1.0);
    let axis = Axis::linear(0.0, most, AxisUnit::Number, "underload, CPUs");
    axis.draw_left(figure, plot);
    let floor = plot.y + plot.h;
    let edge = |column: usize| plot.x + (i64::from(plot.w) * column as i64 / of.columns.len().max(1) as i64) as Unit;
    let bar = |(column, mean): (usize, &f64)| {
        let (x, right, up) = (edge(column), edge(column + 1), axis.at(*mean, floor, -plot.h));
        (*mean > 0.0 && up < floor).then_some(Rect { x, y: up, w: right - x, h: floor - up })
    };
    let rects = of.columns.iter().enumerate().filter_map(bar).collect();
    figure.push(Item::Rects { fill: Paint::Solid(UNDERLOAD_COLOR), rects });
    let axis = Line { from: Point { x: plot.x, y: floor }, to: Point { x: plot.x + plot.w, y: floor } };
    figure.push(Item::Lines { stroke: FAINT, width: 50, dash: 0, lines: vec![axis] });
}

/// How a column of a CPU looks: a place in [`looks`], none for idle.
fn look(heat: &Heat, length: u64) -> usize {
    if heat.unknown_ns > length / 2 {
        return BANDS.len();
    }
    if heat.offline_ns > length / 2 {
        return BANDS.len() + 1;
    }
    // A column that is busy at all is visible.
    heat.busy_ns.saturating_mul(5).div_ceil(length.max(1)).min(5) as usize
}

/// The bands of utilization, then columns that are mostly unknown, or offline.
fn looks() -> impl Iterator<Item = Paint> {
    BANDS.iter().map(|band| Paint::Solid(*band)).chain([Class::Unknown, Class::Offline].into_iter().filter_map(paint))
}

/// A row for each CPU: columns of the same look side by side are one rectangle.
fn heat(figure: &mut Figure, report: &UtilizationReport, edges: &[(Unit, Unit)], layout: &LaneLayout) {
    let mut rects: Vec<Vec<Rect>> = vec![Vec::new(); BANDS.len() + 2];
    for (row, columns) in report.heat.iter().enumerate() {
        let mut last: Option<usize> = None;
        for ((heat, (_, length, _)), (x, right)) in columns.iter().zip(&report.columns).zip(edges) {
            let band = look(heat, length.0);
            if band == 0 || right <= x {
                last = None;
                continue;
            }
            let rect = Rect { x: *x, y: layout.top_of(row), w: right - x, h: layout.bar() };
            match rects[band].last_mut().filter(|_| last == Some(band)) {
                Some(open) => open.w += rect.w,
                None => rects[band].push(rect),
            }
            last = Some(band);
        }
    }
    for (fill, rects) in looks().zip(rects) {
        if !rects.is_empty() {
            figure.push(Item::Rects { fill, rects });
        }
    }
}
