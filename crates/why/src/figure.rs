//! The figure: a bar of time for each pair of origin and end, and under them both sums over time, coloured by origin.

use crate::over_time::{Layer, OverTime};
use crate::report::{Row, Rows, WhyReport};
use crate::text::counted;
use draw::{Anchor, Color, Figure, Item, PT, Paint, Point, Rect, Unit, text};
use sched::{Cause, Ts};
use std::collections::BTreeMap;
use timeline::page::{Heading, LegendEntry, Page, Swatch, time_axis};
use timeline::palette::{FAINT, INK, OTHER, PALETTE, assign};
use timeline::{Axis, Measure, TimeScale};

const WIDTH: Unit = 842 * PT;
const SMALL: Unit = 7 * PT;
/// The height of a bar with the space below it.
const ROW: Unit = 11 * PT;
/// The room for the title of a part, and for the axis below it.
const TITLE: Unit = 14 * PT;
const AXIS: Unit = 27 * PT;
/// The height of a part over time.
const OVER_TIME: Unit = 75 * PT;
/// The room for the names of the bars, and for the numbers behind them.
const NAMES: Unit = 265 * PT;
const NUMBERS: Unit = 120 * PT;
/// The maximum numbers of bars of a table, the second and later ones for pages with little room.
const BARS: [usize; 4] = [10, 6, 3, 1];

/// An origin: its key and its cause.
type Origin = (&'static str, Option<Cause>);

/// The colour of each origin of both tables.
struct Colors {
    waiting: BTreeMap<Origin, Color>,
    idling: BTreeMap<Origin, Color>,
}

impl Colors {
    /// The origins with the most time have the colours that differ most.
    fn of(over_time: &OverTime) -> Colors {
        let total = |layer: &Layer| layer.columns.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
        let waiting = over_time.waiting.iter().map(|layer| (total(layer), false, layer));
        let idling = over_time.idling.iter().map(|layer| (total(layer), true, layer));
        let mut all: Vec<(u64, bool, &Layer)> = waiting.chain(idling).collect();
        all.sort_by_key(|(total, _, _)| std::cmp::Reverse(*total));
        let ranked: Vec<(bool, Origin)> = all.iter().map(|(_, idles, layer)| (*idles, origin_of(layer))).collect();
        // The same origin wishes for the same colour in every trace.
        let wish = |(idles, (began, cause)): (bool, Origin)| {
            let letters = began.bytes().map(usize::from).sum::<usize>();
            letters + cause.map_or(0, |cause| cause as usize) + usize::from(idles)
        };
        let mut colors = Colors { waiting: BTreeMap::new(), idling: BTreeMap::new() };
        for ((idles, origin), place) in assign(&ranked, wish) {
            let of = if idles { &mut colors.idling } else { &mut colors.waiting };
            of.insert(origin, PALETTE[place % PALETTE.len()]);
        }
        colors
    }
}

fn origin_of(layer: &Layer) -> Origin {
    (layer.began, layer.cause)
}

/// A table as bars, and the same over time.
struct Part<'r> {
    title: &'static str,
    unit: &'static str,
    over_time: &'static str,
    rows: &'r Rows,
    layers: &'r [Layer],
    colors: &'r BTreeMap<Origin, Color>,
}

impl Part<'_> {
    fn bars(&self, most: usize) -> usize {
        // A last bar stands for all that are left out.
        self.rows.rows.len().min(most + 1).max(1)
    }

    fn color(&self, row: &Row) -> Color {
        self.colors.get(&(row.began, row.began_cause)).copied().unwrap_or(OTHER)
    }

    fn legend(&self) -> impl Iterator<Item = LegendEntry> {
        self.layers.iter().map(|layer| LegendEntry {
            swatch: Swatch::Area(Paint::Solid(self.colors.get(&origin_of(layer)).copied().unwrap_or(OTHER))),
            label: format!("{}: {}", self.unit, layer.words),
        })
    }

    /// Draws the bars below `top`; returns their lower edge, with the axis.
    fn draw_bars(&self, figure: &mut Figure, most: usize, (top, left, right): (Unit, Unit, Unit)) -> Unit {
        figure.text(Point { x: left, y: top + 9 * PT }, 8 * PT, Anchor::Start, INK, self.title);
        let count = self.bars(most);
        let plot = Rect { x: left + NAMES, y: top + TITLE, w: right - NUMBERS - left - NAMES, h: count as Unit * ROW };
        let (shown, hidden) = self.rows.rows.split_at(self.rows.rows.len().min(most));
        let rest = hidden.iter().fold(0, |sum: u64, row| sum.saturating_add(row.total_ns.0));
        let longest = shown.iter().map(|row| row.total_ns.0).chain([rest]).max().unwrap_or(0);
        let axis = Axis::linear(0.0, longest as f64, Measure::Time, &format!("time of {}", self.unit));
        axis.draw_below(figure, plot);
        let number = |row: &Row| {
            format!("{}, {:.1} %, {}", row.total_ns.human(), row.percent, sched::nouns::counted(row.number, "time"))
        };
        let mut bars: Vec<(String, u64, String, Color)> = (shown.iter())
            .map(|row| (format!("{}; {}", row.words[0], row.words[1]), row.total_ns.0, number(row), self.color(row)))
            .collect();
        if !hidden.is_empty() {
            let percent: f64 = hidden.iter().map(|row| row.percent).sum();
            let number = format!("{}, {percent:.1} %", sched::Dur(rest).human());
            bars.push((format!("{} other pairs", hidden.len()), rest, number, FAINT));
        }
        if bars.is_empty() {
            bars.push(("none".to_owned(), 0, String::new(), FAINT));
        }
        for (nth, (name, ns, number, color)) in (0..).zip(bars) {
            let y = plot.y + nth * ROW;
            let w = axis.at(ns as f64, 0, plot.w).max(if ns > 0 { PT / 4 } else { 0 });
            let rects = vec![Rect { x: plot.x, y: y + PT, w, h: ROW - 2 * PT }];
            figure.push(Item::Rects { fill: Paint::Solid(color), rects });
            let name = text::fit(&text::printable(&name), SMALL, NAMES - 6 * PT);
            let base = y + 8 * PT;
            figure.text(Point { x: plot.x - 4 * PT, y: base }, SMALL, Anchor::End, INK, &name);
            figure.text(Point { x: plot.x + w + 4 * PT, y: base }, SMALL, Anchor::Start, FAINT, &number);
        }
        plot.y + plot.h + AXIS
    }

    /// Draws the same over time: stacked, the origin with the most time below.
    fn draw_over_time(&self, figure: &mut Figure, scale: &TimeScale, plot: Rect, over_time: &OverTime) {
        let columns = self.layers.first().map_or(0, |layer| layer.columns.len());
        let span = over_time.to.since(over_time.from).0;
        let edge = |column: usize| {
            let passed = u128::from(span) * column as u128 / (columns as u128).max(1);
            Ts(over_time.from.0.saturating_add_unsigned(passed as u64))
        };
        let width = |column: usize| (edge(column + 1).since(edge(column)).0 as f64).max(1.0);
        let sum = |column: usize| self.layers.iter().map(|layer| layer.columns[column] as f64).sum::<f64>();
        let highest = (0..columns).map(|column| sum(column) / width(column)).fold(0.0, f64::max);
        let axis = Axis::linear(0.0, highest, Measure::Number, self.over_time).to_next_tick(3);
        axis.draw_left(figure, plot);
        time_axis(figure, scale, plot.y, plot.y + plot.h);
        let floor = plot.y + plot.h;
        let mut below = vec![0.0; columns];
        for layer in self.layers {
            let mut rects = Vec::new();
            for (column, ns) in layer.columns.iter().enumerate().filter(|(_, ns)| **ns > 0) {
                let (x, right) = (scale.at(edge(column)), scale.at(edge(column + 1)));
                let base = axis.at(below[column], floor, -plot.h);
                below[column] += *ns as f64 / width(column);
                let y = axis.at(below[column], floor, -plot.h);
                rects.push(Rect { x, y, w: right - x, h: base - y });
            }
            rects.retain(|rect| rect.h > 0 && rect.w > 0);
            let color = self.colors.get(&origin_of(layer)).copied().unwrap_or(OTHER);
            figure.push(Item::Rects { fill: Paint::Solid(color), rects });
        }
    }
}

/// The figure of a report that was made with strips.
pub fn figure(report: &WhyReport, zero: Ts, heading: &Heading) -> Figure {
    let (Some(waiting), Some(idling), Some(over_time)) = (&report.waiting, &report.idling, &report.over_time) else {
        let heading = heading.clone().without_figures(report.selection_unknown.as_deref());
        let texts = heading.texts(format!("{}: why tasks waited is unknown", heading.trace), String::new());
        return Page::new(WIDTH, 40 * PT, &texts, &[]).finish();
    };
    let colors = Colors::of(over_time);
    let parts = [
        Part {
            title: "Waiting in violation: how each wait began, and how it ended",
            unit: "waiting",
            over_time: "waiting tasks",
            rows: waiting,
            layers: &over_time.waiting,
            colors: &colors.waiting,
        },
        Part {
            title: "Idling in violation: how each idle stretch began, and how it ended",
            unit: "idling",
            over_time: "idle CPUs",
            rows: idling,
            layers: &over_time.idling,
            colors: &colors.idling,
        },
    ];
    let title = format!("{}: tasks waited {:.4} s while CPUs idled", heading.trace, waiting.total_ns.seconds());
    let note = format!(
        "{:.6} s shown, {:.2} % of it in violation; {}. Below: the mean number of tasks and CPUs in violation in each \
         column.",
        report.window_ns.seconds(),
        report.violation_percent.unwrap_or_default(),
        counted(report.waiters)
    );
    let texts = heading.texts(title, note);
    let legend: Vec<LegendEntry> = parts.iter().flat_map(Part::legend).collect();
    let pages = BARS.into_iter().map(|most| {
        let bars: Unit = parts.iter().map(|part| TITLE + part.bars(most) as Unit * ROW + AXIS).sum();
        let fixed = bars + AXIS;
        let (height, least) = (fixed + 2 * OVER_TIME, fixed + 2 * 25 * PT);
        (Page::with_least(WIDTH, height, least, &texts, &legend), (most, fixed))
    });
    let (mut page, (most, fixed)) = Page::roomy(pages);
    let (left, right) = (Page::LEFT, page.right());
    let mut top = page.top;
    for part in &parts {
        top = part.draw_bars(&mut page.figure, most, (top, left, right));
    }
    let scale = page.scale(over_time.from, over_time.to, zero);
    let h = ((page.height - fixed) / 2).max(PT);
    for part in &parts {
        let plot = Rect { x: left, y: top, w: page.width(), h };
        part.draw_over_time(&mut page.figure, &scale, plot, over_time);
        top += h + AXIS;
    }
    page.finish()
}
