//! The run as it was, and as it would have been: one timeline of the CPUs above the other.

use draw::{Anchor, Color, Figure, Item, Line, PT, Paint, Point, Unit};
use lanes::Lane;
use sched::Ts;
use timeline::page::{Heading, LegendEntry, Page, Swatch};
use timeline::palette::{BESIDE_TASKS, FAINT, INK};
use timeline::strips::{FIRST, Strips};
use timeline::{PieceClass, TimeScale};
use workcons::Strip;

/// A run to be drawn.
pub(crate) struct DrawnRun {
    /// The line over the picture.
    pub(crate) title: String,
    /// The end of the run.
    pub(crate) end: Ts,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) options: lanes::Options,
    /// The violation over time, of each node.
    pub(crate) strips: Vec<Strip>,
}

const WIDTH: Unit = 842 * PT;
/// Room for the title of a run.
const TITLE: Unit = 15 * PT;
/// The height of the strips of a run.
const STRIP: Unit = 9 * PT;
/// The space between two parts.
const SPACE: Unit = 4 * PT;

/// Draws the runs, the first of which is that of the trace, on one time axis.
pub(crate) fn figure(runs: &[DrawnRun], (from, zero): (Ts, Ts), heading: &Heading, title: String) -> Figure {
    let to = runs.iter().map(|run| run.end).max().unwrap_or(from);
    let lanes = runs.first().map_or(0, |run| run.options.lane_count()) as Unit;
    let strips = runs.first().map_or(0, |run| run.strips.len()) as Unit;
    let fixed = TITLE + strips * STRIP + 2 * SPACE;
    let pitch = (190 * PT / lanes.max(1)).clamp(PT, 22 * PT);
    let count = runs.len().max(1) as Unit;
    let texts = heading.texts(title, format!("{:.6} s as it was; the time axis is common", seconds(runs, from)));
    let pages = [12, 8, 4].map(|listed| {
        let legend = legend(runs, listed);
        let height = count * (fixed + (pitch * lanes).max(40 * PT));
        (Page::with_least(WIDTH, height, count * (fixed + 20 * PT), &texts, &legend), ())
    });
    let (mut page, ()) = Page::roomy(pages);
    let scale = page.scale(from, to.max(Ts(from.0 + 1)), zero);
    page.time_axis(&scale);
    let each = page.height / count;
    let (top, figure) = (page.top, &mut page.figure);
    for (nth, run) in (0..).zip(runs) {
        draw_run(figure, run, &scale, top + nth * each, each);
    }
    page.finish()
}

fn seconds(runs: &[DrawnRun], from: Ts) -> f64 {
    runs.first().map_or(0.0, |run| run.end.since(from).seconds())
}

fn legend(runs: &[DrawnRun], listed: usize) -> Vec<LegendEntry> {
    let area = |color, label: &str| LegendEntry { swatch: Swatch::Area(Paint::Solid(color)), label: label.to_owned() };
    let mut legend = vec![area(BESIDE_TASKS[0], "strip: CPUs idle here, and tasks wait here")];
    if runs.first().is_some_and(|run| run.strips.len() > 1) {
        legend.push(area(BESIDE_TASKS[1], "CPUs idle here, tasks wait elsewhere"));
        legend.push(area(BESIDE_TASKS[2], "tasks wait here, CPUs idle elsewhere"));
    }
    legend.extend(runs.first().map_or_else(Vec::new, |run| lanes::area_legend(&run.lanes, &run.options, listed)));
    legend
}

/// The colour of a class of the strips of violation: idle CPUs here, waiting tasks here, or both.
fn color(class: PieceClass) -> Color {
    match class {
        FIRST => BESIDE_TASKS[1],
        class if class == FIRST + 1 => BESIDE_TASKS[2],
        _ => BESIDE_TASKS[0],
    }
}

fn draw_run(figure: &mut Figure, run: &DrawnRun, scale: &TimeScale, top: Unit, height: Unit) {
    let at = Point { x: scale.x, y: top + TITLE - SPACE };
    let title = draw::text::fit(&draw::text::printable(&run.title), 8 * PT, scale.width);
    figure.text(at, 8 * PT, Anchor::Start, INK, &title);
    let mut strips = Strips::new(scale, 3);
    let mut y = top + TITLE;
    let mut floors = Vec::new();
    for strip in &run.strips {
        let bar = STRIP * 85 / 100;
        strips.add(&strip.pieces, y, bar);
        floors
            .push(Line { from: Point { x: scale.x, y: y + bar }, to: Point { x: scale.x + scale.width, y: y + bar } });
        let at = Point { x: scale.x - 4 * PT, y: y + bar / 2 + 2 * PT };
        figure.text(at, 6 * PT, Anchor::End, INK, &strip.name);
        y += STRIP;
    }
    figure.push(Item::Lines { stroke: FAINT, width: 30, dash: 0, lines: floors });
    strips.draw(figure, color);
    y += SPACE;
    lanes::draw_lanes(figure, &run.lanes, &run.options, scale, y, top + height - y - SPACE);
    let x = scale.at(run.end);
    if x < scale.x + scale.width {
        let end = Line { from: Point { x, y: top + TITLE }, to: Point { x, y: top + height - SPACE } };
        figure.push(Item::Lines { stroke: INK, width: 80, dash: 0, lines: vec![end] });
    }
}
