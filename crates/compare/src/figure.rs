//! The figure: the runs of each metric as points, one row per group, with the medians marked.

use crate::table::short;
use crate::{Group, Metric, Spread};
use draw::{Anchor, Figure, Item, Line, PT, Point, Shape, Unit};
use timeline::page::{LegendEntry, Page, Swatch, Texts};
use timeline::palette::{FAINT, INK, PALETTE, RULE};

const WIDTH: Unit = 595 * PT;
/// The height of the points of a group.
const ROW: Unit = 9 * PT;
/// The room for the name of a metric, to the left of its points.
const NAME: Unit = 110 * PT;
const SMALL: Unit = 7 * PT;

fn look(group: usize) -> (Shape, draw::Color) {
    (Shape::ALL[group % Shape::ALL.len()], PALETTE[group % PALETTE.len()])
}

/// Returns the figure of these groups.
pub fn figure(metrics: &[Metric], groups: &[Group], texts: &Texts) -> Figure {
    let mut shown: Vec<(usize, &Metric)> = metrics
        .iter()
        .enumerate()
        .filter(|(at, _)| groups.iter().any(|g| g.values(*at).iter().any(|v| *v != 0.0)))
        .collect();
    let panel = ROW * groups.len().max(1) as Unit + 16 * PT;
    let legend: Vec<LegendEntry> = groups
        .iter()
        .enumerate()
        .map(|(i, g)| {
            let (shape, fill) = look(i);
            let label = format!("{} ({} runs); the bar is their median", g.name, g.runs.len());
            LegendEntry { swatch: Swatch::Marker(shape, fill), label }
        })
        .collect();
    let height = panel * shown.len() as Unit;
    let mut page = Page::with_least(WIDTH, height, panel, texts, &legend);
    let mut texts = texts.clone();
    // A page of a given height has the first metrics of the table, as many as have room.
    if texts.sheet.height.is_some() && page.height < height {
        texts.notes.push(String::new());
        page = Page::with_least(WIDTH, height, panel, &texts, &legend);
        let count = (page.height / panel).max(1) as usize;
        texts.notes.pop();
        texts.notes.push(format!("The first {count} of {} metrics, as many as this page has room for.", shown.len()));
        shown.truncate(count);
        page = Page::with_least(WIDTH, panel * count as Unit, panel, &texts, &legend);
    }
    let (panel, right) = (page.height / shown.len().max(1) as Unit, page.right());
    for (row, (at, metric)) in (0..).zip(shown) {
        let top = page.top + row * panel;
        draw_metric(&mut page.figure, metric, at, groups, (top, right));
    }
    page.finish()
}

fn draw_metric(figure: &mut Figure, metric: &Metric, at: usize, groups: &[Group], (top, right): (Unit, Unit)) {
    let all: Vec<f64> = groups.iter().flat_map(|g| g.values(at)).collect();
    let Spread { min, max, .. } = Spread::of(&all);
    let left = Page::LEFT + NAME - 40 * PT;
    let width = right - 20 * PT - left;
    let floor = top + ROW * groups.len() as Unit + 3 * PT;
    let x = |v: f64| {
        let share = if max > min { (v - min) / (max - min) } else { 0.5 };
        left + (share * f64::from(width)).round() as Unit
    };
    let names = Point { x: left - 8 * PT, y: top + ROW * groups.len() as Unit / 2 + 3 * PT };
    figure.text(names, 8 * PT, Anchor::End, INK, &metric.name);
    let axis = Line { from: Point { x: left, y: floor }, to: Point { x: left + width, y: floor } };
    figure.push(Item::Lines { stroke: RULE, width: 40, dash: 0, lines: vec![axis] });
    let ends = [(min, left, Anchor::Start), (max, left + width, Anchor::End)];
    for (value, x, anchor) in ends.into_iter().take(if max > min { 2 } else { 1 }) {
        figure.text(Point { x, y: floor + 8 * PT }, SMALL, anchor, FAINT, &short(value));
    }
    for (i, group) in groups.iter().enumerate() {
        let values = group.values(at);
        if values.is_empty() {
            continue;
        }
        let (shape, fill) = look(i);
        let y = top + ROW * i as Unit + ROW / 2;
        let points = values.iter().map(|v| Point { x: x(*v), y }).collect();
        figure.push(Item::Markers { shape, fill, size: 5 * PT, at: points });
        let middle = x(Spread::of(&values).median);
        let bar = Line { from: Point { x: middle, y: y - ROW / 2 }, to: Point { x: middle, y: y + ROW / 2 } };
        figure.push(Item::Lines { stroke: fill, width: 150, dash: 0, lines: vec![bar] });
    }
}
