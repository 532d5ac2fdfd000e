//! Runs sorted by how long they took, a curve for each group; under it how much of the time each
//! run was in violation, in the same order.

use draw::{Anchor, Figure, Item, Line, PT, Point, Rect, Shape, Unit};
use timeline::page::{LegendEntry, Page, Swatch, Texts};
use timeline::palette::{FAINT, INK, PALETTE};
use timeline::{Axis, AxisUnit, Sheet};

/// The runs of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    /// The group's name.
    pub name: String,
    /// Each run's elapsed seconds and, where it is known, percentage of the time in violation.
    pub runs: Vec<(f64, Option<f64>)>,
}

const WIDTH: Unit = 560 * PT;
const PLOT: Unit = 150 * PT;
const GAP: Unit = 26 * PT;

/// Returns the figure of these groups, with `notes` under the title and `command` at its foot.
pub fn figure(title: &str, notes: Vec<String>, groups: &[Runs], command: &str, sheet: &Sheet) -> Figure {
    let legend: Vec<LegendEntry> = groups
        .iter()
        .enumerate()
        .map(|(i, g)| LegendEntry {
            swatch: look(i),
            label: format!("{} ({})", g.name, sched::nouns::counted(g.runs.len(), "run")),
        })
        .collect();
    let (title, command, sheet) = (title.to_owned(), command.to_owned(), sheet.clone());
    let texts = Texts { title, notes, warnings: Vec::new(), command, sheet };
    let mut page = Page::new(WIDTH, 2 * PLOT + GAP, &texts, &legend);
    let sorted: Vec<Vec<(f64, Option<f64>)>> = groups
        .iter()
        .map(|g| {
            let mut runs = g.runs.clone();
            runs.sort_by(|a, b| a.0.total_cmp(&b.0).then(by_violation(a.1, b.1)));
            runs
        })
        .collect();
    let height = (page.height - GAP) / 2;
    let plot = Rect { x: Page::LEFT, y: page.top, w: page.width(), h: height };
    let below = Rect { y: plot.y + height + GAP, ..plot };
    panel(&mut page.figure, plot, ("elapsed time", AxisUnit::Seconds), &sorted, |run| Some(run.0));
    panel(&mut page.figure, below, ("time in violation", AxisUnit::Percent), &sorted, |run| run.1);
    let at = Point { x: plot.x + plot.w / 2, y: below.y + height + 14 * PT };
    page.figure.text(at, 7 * PT, Anchor::Middle, INK, "runs, from the fastest to the slowest of each group");
    page.finish()
}

/// Runs without a figure come first.
fn by_violation(a: Option<f64>, b: Option<f64>) -> std::cmp::Ordering {
    a.unwrap_or(f64::NEG_INFINITY).total_cmp(&b.unwrap_or(f64::NEG_INFINITY))
}

fn look(group: usize) -> Swatch {
    Swatch::Marker(Shape::ALL[group % 4], PALETTE[group % PALETTE.len()])
}

fn panel(
    figure: &mut Figure,
    plot: Rect,
    (name, measure): (&str, AxisUnit),
    groups: &[Vec<(f64, Option<f64>)>],
    value: impl Fn(&(f64, Option<f64>)) -> Option<f64>,
) {
    let most = groups.iter().flatten().filter_map(&value).fold(0.0, f64::max).max(1e-9);
    let axis = Axis::linear(0.0, most, measure, name).to_next_tick(5);
    axis.draw_left(figure, plot);
    let (left, width, floor) = (plot.x, plot.w, plot.y + plot.h);
    let y = |v: f64| axis.at(v, floor, -plot.h);
    let margin = width / 20;
    for (i, runs) in groups.iter().enumerate() {
        let x = |k: usize| left + margin + (width - 2 * margin) * k as Unit / (runs.len().max(2) - 1) as Unit;
        let points: Vec<Point> =
            runs.iter().enumerate().filter_map(|(k, run)| Some(Point { x: x(k), y: y(value(run)?) })).collect();
        let Swatch::Marker(shape, fill) = look(i) else { continue };
        let lines = points.windows(2).map(|w| Line { from: w[0], to: w[1] }).collect();
        figure.push(Item::Lines { stroke: fill, width: 90, dash: 0, lines });
        // The median, as a dash at the right edge.
        let mut values: Vec<f64> = runs.iter().filter_map(&value).collect();
        values.sort_by(f64::total_cmp);
        if let Some(last) = values.len().checked_sub(1) {
            let median = y((values[last / 2] + values[last.div_ceil(2)]) / 2.0);
            let from = Point { x: left + width - margin / 2, y: median };
            let to = Point { x: left + width, y: median };
            figure.push(Item::Lines { stroke: fill, width: 150, dash: 0, lines: vec![Line { from, to }] });
        }
        figure.push(Item::Markers { shape, fill, size: 6 * PT, at: points });
    }
    let axis = Line { from: Point { x: left, y: floor }, to: Point { x: left + width, y: floor } };
    figure.push(Item::Lines { stroke: FAINT, width: 50, dash: 0, lines: vec![axis] });
}
