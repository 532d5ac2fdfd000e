//! The figure: run intervals, and over them a marker for each event, or densities.

use crate::{COLUMNS, Density, Report};
use draw::{Color, Figure, Item, PT, Paint, Point, Rect, Shape, Unit};
use sched::{Cpu, Ts};
use timeline::page::{DrawLanes, Heading, LegendEntry, Page, Swatch};
use timeline::palette::INK;
use timeline::{LaneLayout, TimeScale};

/// What to draw.
#[derive(Clone, Debug)]
pub struct Options {
    /// The instant that counts as zero: the trace's start.
    pub zero: Ts,
    /// The CPUs in display order, each with its group.
    pub cpus: Vec<(Cpu, Option<u32>)>,
}

pub(crate) const WIDTH: Unit = 842 * PT;
/// Kinds that the legend lists.
const LISTED: usize = 30;

/// Colours of markers, dark enough to stand out from pale lanes; each goes round the shapes.
pub(crate) const COLORS: [Color; 5] = [
    Color::rgb(0xc0, 0x10, 0x20),
    Color::rgb(0x10, 0x40, 0xc0),
    Color::rgb(0x10, 0x78, 0x40),
    Color::rgb(0x90, 0x30, 0x90),
    INK,
];
const DENSITY: Color = Color::rgb(0xc0, 0x10, 0x20);

/// How the kind in this place looks: neighbours differ in colour and in shape.
fn look(index: usize) -> (Shape, Color) {
    (Shape::ALL[index % Shape::ALL.len()], COLORS[(index + index / Shape::ALL.len()) % COLORS.len()])
}

/// The height of the lanes of so many cores.
pub(crate) fn lanes_height(cpus: usize) -> Unit {
    let n = cpus.max(1) as Unit;
    ((430 * PT / n).min(26 * PT) * n).max(40 * PT)
}

/// What is said of a background.
pub(crate) fn behind(background: Option<&DrawLanes<'_>>) -> &'static str {
    if background.is_some() { " Behind: what ran." } else { "" }
}

/// The figure of a report, over what ran, where that is known.
pub fn figure(report: &Report, options: &Options, heading: &Heading, background: Option<&DrawLanes<'_>>) -> Figure {
    let height = lanes_height(options.cpus.len());
    let span = report.to_ns.since(report.from_ns).seconds();
    let how = if report.is_marked() {
        "a marker each".to_owned()
    } else {
        format!("too many for markers: a bar is how many there are in {:.3} ms", span * 1e3 / COLUMNS as f64)
    };
    let texts = heading.texts(
        format!("{}: {} events", heading.trace, report.total),
        format!("{span:.6} s shown; {how}.{}", behind(background)),
    );
    let mut page = Page::new(WIDTH, height, &texts, &legend(report));
    let scale = page.scale(report.from_ns, report.to_ns, options.zero);
    page.time_axis(&scale);
    if let Some(draw) = background {
        draw(&mut page.figure, &scale, page.top, page.height);
    }
    let layout = LaneLayout::new(options.cpus.clone(), page.top, page.height);
    if report.is_marked() {
        draw_markers(&mut page.figure, report, options, &scale, &layout);
    } else {
        let lanes = options.cpus.iter().map(|(cpu, _)| report.densities.iter().find(|(c, _)| c == cpu).map(|(_, d)| d));
        draw_densities(&mut page.figure, lanes, &scale, &layout, DENSITY);
    }
    page.figure
}

fn legend(report: &Report) -> Vec<LegendEntry> {
    let mut legend: Vec<LegendEntry> = report
        .kinds
        .iter()
        .take(LISTED)
        .enumerate()
        .map(|(i, kind)| {
            let (shape, color) = look(i);
            let swatch = if report.is_marked() { Swatch::Marker(shape, color) } else { Swatch::Blank };
            LegendEntry { swatch, label: format!("{} ({}, {:.1} %)", kind.name, kind.count, kind.percent) }
        })
        .collect();
    if !report.is_marked() {
        let label = "events of all kinds".to_owned();
        legend.insert(0, LegendEntry { swatch: Swatch::Area(Paint::Solid(DENSITY)), label });
    }
    if report.kinds.len() > LISTED {
        let label = format!("and {} more kinds", report.kinds.len() - LISTED);
        legend.push(LegendEntry { swatch: Swatch::Blank, label });
    }
    legend
}

fn draw_markers(figure: &mut Figure, report: &Report, options: &Options, scale: &TimeScale, layout: &LaneLayout) {
    let place = |cpu: Cpu| options.cpus.iter().position(|(c, _)| *c == cpu);
    // What follows one another within microseconds stands one below the other.
    let rows = (report.kinds.len().clamp(1, 4) as Unit).min((layout.bar() / (3 * PT)).max(1));
    let size = (layout.pitch() * 8 / 10 / rows).clamp(2 * PT, 6 * PT);
    // The rare ones in front.
    for (i, kind) in report.kinds.iter().enumerate() {
        let (shape, fill) = look(i);
        let row = i as Unit % rows;
        let at = kind.marks.iter().filter_map(|(ts, cpu)| {
            let y = layout.top_of(place(*cpu)?) + layout.bar() * (2 * row + 1) / (2 * rows);
            Some(Point { x: scale.at(*ts), y })
        });
        let at = at.collect();
        figure.push(Item::Markers { shape, fill, size, at });
    }
}

/// A bar for each column in which there were any; the most in any column is as high as a lane, and
/// one is never nothing.
pub(crate) fn draw_densities<'d>(
    figure: &mut Figure,
    lanes: impl Iterator<Item = Option<&'d Density>> + Clone,
    scale: &TimeScale,
    layout: &LaneLayout,
    color: Color,
) {
    let most = lanes.clone().flatten().flat_map(|d| &d.0).max().copied().unwrap_or(0).max(1);
    let mut rects = Vec::new();
    for (index, density) in lanes.enumerate() {
        let Some(Density(columns)) = density else { continue };
        let (top, bar) = (layout.top_of(index), layout.bar());
        for (column, n) in columns.iter().enumerate().filter(|(_, n)| **n > 0) {
            let x = scale.x + (i64::from(scale.width) * column as i64 / COLUMNS as i64) as Unit;
            let right = scale.x + (i64::from(scale.width) * (column as i64 + 1) / COLUMNS as i64) as Unit;
            let h = (i64::from(bar) * i64::from(*n) / i64::from(most)).max(i64::from(bar / 16).max(1)) as Unit;
            rects.push(Rect { x, y: top + bar - h, w: right - x, h });
        }
    }
    figure.push(Item::Rects { fill: Paint::Solid(color), rects });
}
