//! The figure of a sweep: a panel for each metric, with the parameter to the right; the median of each variant as a line of points, and
//! the range of its runs as a bar.

use crate::figure::{colors, direction, keep_marked, look};
use crate::sweep::{Sweep, SweepPoint};
use crate::{Group, Metric, Row, Spread};
use draw::{Anchor, Figure, Item, Line, PT, Paint, Point, Rect, Unit, text};
use timeline::page::{LegendEntry, Page, Swatch, Texts};
use timeline::palette::{FAINT, INK};
use timeline::{Axis, AxisUnit};

const WIDTH: Unit = 595 * PT;
/// The height of a panel with its labels, and that of its plot.
const PANEL: Unit = 128 * PT;
const PLOT: Unit = 92 * PT;
/// The room to the left of a plot, for the labels of its axis.
const LABELS: Unit = 34 * PT;
const SMALL: Unit = 7 * PT;
/// The number of panels beside each other.
const COLUMNS: usize = 2;
/// The distance of the points of two variants at the same value.
const APART: Unit = 5 * PT;
/// The least ratio of the largest to the smallest value from which the values stand on a logarithmic scale.
const WIDE: f64 = 8.0;

/// A metric that is drawn: its index among the values of a run, and its names.
type Shown<'m> = (usize, &'m Metric);

/// Returns the figure of a sweep. `comparisons` has the rows of each comparison, in the order of [`Sweep::pairs`].
pub(crate) fn figure(
    sweep: &Sweep,
    metrics: &[Metric],
    groups: &[Group],
    comparisons: &[&[Row]],
    texts: Texts,
) -> Figure {
    let mut texts = Texts { title: format!("Sweep: {}", sweep.variants.join(", ")), ..texts };
    texts.notes[0] = "A point is the median of the runs at a value of the parameter, a bar their range.".to_owned();
    let words = if sweep.variants.len() > 1 { "the first variant" } else { "the first value" };
    texts.notes.insert(1, format!("In colour behind a point: better or worse than {words} by more than noise."));
    let is_something = |at: usize| groups.iter().any(|group| group.values(at).iter().any(|value| *value != 0.0));
    let mut shown: Vec<Shown<'_>> = metrics.iter().enumerate().filter(|(at, _)| is_something(*at)).collect();
    let entry = |(at, name): (usize, &String)| {
        let (shape, fill) = look(at);
        LegendEntry { swatch: Swatch::Marker(shape, fill), label: name.clone() }
    };
    let legend: Vec<LegendEntry> = sweep.variants.iter().enumerate().map(entry).collect();
    let rows = |shown: &[Shown<'_>]| shown.len().div_ceil(COLUMNS).max(1);
    let page = |texts: &Texts, shown: &[Shown<'_>]| {
        Page::with_least(WIDTH, PANEL * rows(shown) as Unit, PANEL, texts, &legend)
    };
    let mut made = page(&texts, &shown);
    // A page of a given height has as many metrics as have room: the marked ones lead.
    let fit = (made.height / PANEL).max(1) as usize;
    if texts.sheet.height.is_some() && fit < rows(&shown) {
        texts.notes.push(keep_marked(&mut shown, fit * COLUMNS, comparisons));
        made = page(&texts, &shown);
    }
    let width = made.width() / COLUMNS as Unit;
    let height = made.height / rows(&shown) as Unit;
    let panels = SweepPanels { sweep, groups, comparisons };
    for (nth, metric) in shown.iter().enumerate() {
        let (column, row) = (nth % COLUMNS, nth / COLUMNS);
        let left = Page::LEFT + width * column as Unit + if column > 0 { LABELS } else { 0 };
        let right = Page::LEFT + width * (column + 1) as Unit;
        let top = made.top + height * row as Unit + 14 * PT;
        let plot = Rect { x: left, y: top, w: right - left, h: PLOT.min(height - 34 * PT) };
        panels.panel(&mut made.figure, plot, *metric);
    }
    made.finish()
}

struct SweepPanels<'d> {
    sweep: &'d Sweep,
    groups: &'d [Group],
    comparisons: &'d [&'d [Row]],
}

impl SweepPanels<'_> {
    /// The places of the values of the parameter in a plot.
    fn places(&self, plot: Rect) -> Vec<Unit> {
        let values: Vec<f64> = self.sweep.points.iter().map(SweepPoint::value).collect();
        let is_wide = values.iter().all(|value| *value > 0.0)
            && values.iter().copied().fold(0.0, f64::max)
                >= WIDE * values.iter().copied().fold(f64::INFINITY, f64::min);
        let scaled = |value: &f64| if is_wide { value.ln() } else { *value };
        let scaled: Vec<f64> = values.iter().map(scaled).collect();
        let Spread { min, max, .. } = Spread::of(&scaled);
        let margin = plot.w / 12;
        let room = f64::from(plot.w - 2 * margin);
        let place = |value: &f64| {
            let share = if max > min { (value - min) / (max - min) } else { 0.5 };
            plot.x + margin + (share * room).round() as Unit
        };
        scaled.iter().map(place).collect()
    }

    /// The runs of a variant in a metric at each value of the parameter, which is that of the place.
    fn of_variant(&self, variant: usize, metric: usize) -> Vec<Option<Spread>> {
        let spread = |name: &String| {
            let group = self.groups.iter().find(|group| group.name == *name)?;
            let values = group.values(metric);
            (!values.is_empty()).then(|| Spread::of(&values))
        };
        self.sweep.points.iter().map(|point| spread(point.groups.get(variant)?)).collect()
    }

    /// The row of the comparison of a variant at a value of the parameter, both by their index.
    fn row(&self, variant: usize, point: usize, key: &str) -> Option<&Row> {
        let points = self.sweep.points.len();
        let nth = match self.sweep.variants.len() {
            1 => point.checked_sub(1)?,
            _ => variant.checked_sub(1)? * points + point,
        };
        self.comparisons.get(nth)?.iter().find(|row| row.metric.key == key)
    }

    fn panel(&self, figure: &mut Figure, plot: Rect, (at, metric): Shown<'_>) {
        let floor = plot.y + plot.h;
        let spreads: Vec<Vec<Option<Spread>>> =
            (0..self.sweep.variants.len()).map(|variant| self.of_variant(variant, at)).collect();
        let most = spreads.iter().flatten().flatten().fold(0.0, |most: f64, spread| most.max(spread.max));
        let least = spreads.iter().flatten().flatten().fold(0.0, |least: f64, spread| least.min(spread.min));
        let axis = Axis::linear(least, most, AxisUnit::Number, "").to_next_tick(4);
        axis.draw_left(figure, plot);
        let head = Point { x: plot.x, y: plot.y - 4 * PT };
        figure.text(head, 8 * PT, Anchor::Start, INK, &metric.name);
        figure.text(Point { x: plot.x + plot.w, ..head }, 6 * PT, Anchor::End, FAINT, direction(metric.better));
        let places = self.places(plot);
        self.label(figure, plot, &places);
        let y = |value: f64| axis.at(value, floor, -plot.h);
        let variants = spreads.len() as Unit;
        for (variant, spreads) in spreads.iter().enumerate() {
            let x = |point: usize| places[point] + (2 * variant as Unit - (variants - 1)) * APART / 2;
            let known: Vec<(usize, Spread)> =
                spreads.iter().enumerate().filter_map(|(point, spread)| Some((point, (*spread)?))).collect();
            for (point, _) in &known {
                let row = self.row(variant, *point, &metric.key);
                if let Some(ground) = row.and_then(|row| colors(row.finding).1) {
                    let rects = vec![Rect { x: x(*point) - APART / 2, y: plot.y, w: APART, h: plot.h }];
                    figure.push(Item::Rects { fill: Paint::Solid(ground), rects });
                }
            }
            let (shape, fill) = look(variant);
            let at: Vec<Point> =
                known.iter().map(|(point, spread)| Point { x: x(*point), y: y(spread.median) }).collect();
            let bar = |(point, spread): &(usize, Spread)| {
                let x = x(*point);
                Line { from: Point { x, y: y(spread.min) }, to: Point { x, y: y(spread.max) } }
            };
            let bars = known.iter().map(bar).collect();
            figure.push(Item::Lines { stroke: fill, width: 60, dash: 0, lines: bars });
            let lines = at.windows(2).map(|pair| Line { from: pair[0], to: pair[1] }).collect();
            figure.push(Item::Lines { stroke: fill, width: 90, dash: 0, lines });
            figure.push(Item::Markers { shape, fill, size: 5 * PT, at });
        }
    }

    /// Draws the values of the parameter under a plot, without those that would touch the one before.
    fn label(&self, figure: &mut Figure, plot: Rect, places: &[Unit]) {
        let floor = plot.y + plot.h;
        let line = Line { from: Point { x: plot.x, y: floor }, to: Point { x: plot.x + plot.w, y: floor } };
        let mut marks = vec![line];
        let mut end = Unit::MIN;
        for (point, x) in self.sweep.points.iter().zip(places) {
            marks.push(Line { from: Point { x: *x, y: floor }, to: Point { x: *x, y: floor + 3 * PT } });
            let half = text::width(&text::printable(&point.parameter), SMALL) / 2;
            if x - half > end {
                let at = Point { x: *x, y: floor + 11 * PT };
                figure.text(at, SMALL, Anchor::Middle, INK, &point.parameter);
                end = x + half + 3 * PT;
            }
        }
        figure.push(Item::Lines { stroke: INK, width: 50, dash: 0, lines: marks });
    }
}
