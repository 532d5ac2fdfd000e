//! The figure: a bar of time for each pair of origin and end, and under them both sums over time, coloured by origin.

use crate::over_time::{Layer, OverTime};
use crate::report::{Rows, WhyReport, WhyRow};
use crate::text::counted;
use draw::{Anchor, Color, Figure, Item, PT, Paint, Point, Rect, Unit, text};
use sched::{Cause, Ts};
use timeline::page::{Heading, LegendEntry, Page, Swatch, time_axis};
use timeline::palette::{FAINT, INK};
use timeline::{Axis, AxisUnit, TimeScale, causes};

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

/// The colour of an origin: that of its cause, or one of its own. It is the same in every figure, for waits and for idle stretches.
pub(crate) fn color_of(began: &str, cause: Option<Cause>) -> Color {
    match (cause, began) {
        (Some(cause), _) => causes::color(cause),
        (None, "woken-on-previous-cpu") => Color::rgb(0x20, 0x68, 0xf8),
        (None, "woken-on-waker-cpu") => Color::rgb(0x20, 0xe8, 0xe8),
        (None, "woken-elsewhere") => Color::rgb(0x38, 0x98, 0xf8),
        (None, "woken-from-unknown-cpu") => Color::rgb(0x68, 0x68, 0x80),
        (None, "forked") => Color::rgb(0xe8, 0xd8, 0x10),
        (None, "preempted-by-application") => Color::rgb(0x20, 0x50, 0x50),
        (None, "preempted-by-other") => Color::rgb(0x50, 0x80, 0x38),
        (None, "preempted-by-deadline") => Color::rgb(0xa8, 0x60, 0xf0),
        (None, "preempted-by-real-time") => Color::rgb(0x20, 0x08, 0xe0),
        (None, "preempted-by-kernel-thread") => Color::rgb(0x40, 0x10, 0x40),
        (None, "held-back") => Color::rgb(0x68, 0x08, 0x08),
        (None, "unthrottled" | "throttled") => Color::rgb(0xf8, 0xf0, 0x98),
        (None, "queued-on-idle-cpu") => Color::rgb(0xe8, 0xd0, 0xb8),
        (None, "slept") => Color::rgb(0x38, 0xc8, 0x98),
        (None, "exited") => Color::rgb(0x50, 0x50, 0x80),
        (None, "at-start") => Color::grey(0xc8),
        (None, _) => causes::color(Cause::Unknown),
    }
}

/// A table as bars, and the same over time.
struct TablePart<'r> {
    title: &'static str,
    unit: &'static str,
    over_time: &'static str,
    rows: &'r Rows,
    layers: &'r [Layer],
}

impl TablePart<'_> {
    fn bars(&self, most: usize) -> usize {
        // A last bar stands for all that are left out.
        self.rows.rows.len().min(most + 1).max(1)
    }

    fn legend(&self) -> impl Iterator<Item = LegendEntry> {
        self.layers.iter().map(|layer| LegendEntry {
            swatch: Swatch::Area(Paint::Solid(color_of(layer.began, layer.cause))),
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
        let axis = Axis::linear(0.0, longest as f64, AxisUnit::Time, &format!("time of {}", self.unit));
        axis.draw_below(figure, plot);
        let number = |row: &WhyRow| {
            format!("{}, {:.1} %, {}", row.total_ns.human(), row.percent, sched::nouns::counted(row.number, "time"))
        };
        let mut bars: Vec<(String, u64, String, Color)> = (shown.iter())
            .map(|row| {
                (
                    format!("{}; {}", row.words[0], row.words[1]),
                    row.total_ns.0,
                    number(row),
                    color_of(row.began, row.began_cause),
                )
            })
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
        let axis = Axis::linear(0.0, highest, AxisUnit::Number, self.over_time).to_next_tick(3);
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
            figure.push(Item::Rects { fill: Paint::Solid(color_of(layer.began, layer.cause)), rects });
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
    let parts = [
        TablePart {
            title: "Waiting in violation: how each wait began, and how it ended",
            unit: "waiting",
            over_time: "waiting tasks",
            rows: waiting,
            layers: &over_time.waiting,
        },
        TablePart {
            title: "Idling in violation: how each idle stretch began, and how it ended",
            unit: "idling",
            over_time: "idle CPUs",
            rows: idling,
            layers: &over_time.idling,
        },
    ];
    let title =
        format!("{}: tasks waited {:.4} s (runqueue wait) while CPUs idled", heading.trace, waiting.total_ns.seconds());
    let note = format!(
        "{:.6} s shown, {:.2} % of it in violation; {}. Below: the mean number of tasks and CPUs in violation in each \
         column.",
        report.window_ns.seconds(),
        report.violation_percent.unwrap_or_default(),
        counted(report)
    );
    let texts = heading.texts(title, note);
    let legend: Vec<LegendEntry> = parts.iter().flat_map(TablePart::legend).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::category::{Category, IdleOrigin, WaitOrigin};
    use std::collections::BTreeMap;

    #[test]
    fn an_origin_has_a_colour_of_its_own() {
        // Those of the definitions; a test of the categories compares these names with the program's.
        let page = include_str!("../../../docs/questions/why.md");
        let names = |head: &str| {
            let table = page.split_once(&format!("\n| {head}")).expect("a table").1;
            let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
            rows.filter_map(|row| row.rsplit('`').nth(1)).collect::<Vec<_>>()
        };
        let mut seen: BTreeMap<Color, &str> = BTreeMap::new();
        let all = [names("a wait begins"), names("an idle stretch begins")].concat();
        assert!(all.len() > 20, "{all:?}");
        for name in all.into_iter().filter(|name| *name != "moved") {
            // Throttled before and throttled now are one cause.
            let name = if name == "unthrottled" { "throttled" } else { name };
            let before = seen.insert(color_of(name, None), name);
            assert!(before.is_none_or(|before| before == name), "{name} and {before:?}");
        }
        let cause = Cause::NewIdle;
        let (wait, idle) = (WaitOrigin::Moved(cause), IdleOrigin::Moved(cause));
        assert_eq!(color_of(wait.key(), wait.cause()), color_of(idle.key(), idle.cause()));
        assert_eq!(color_of(wait.key(), wait.cause()), causes::color(cause), "that of `migrations`");
    }
}
