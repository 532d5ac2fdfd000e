//! How often events happen, over time.

use crate::figure::{COLORS, Options, WIDTH};
use crate::{COLUMNS, Report};
use draw::{Anchor, Figure, Item, Line, PT, Paint, Point, Unit};
use timeline::TimeScale;
use timeline::page::{Heading, LegendEntry, Page, Swatch, Texts};
use timeline::palette::{INK, RULE};
use timeline::scale::round_step;

const HEIGHT: Unit = 240 * PT;
/// Kinds that get a line.
const LINES: usize = 5;

/// The figure of a report that was made with rates: events per second, a line for each of the most
/// frequent kinds.
pub fn rate_figure(report: &Report, options: &Options, heading: &Heading) -> Figure {
    let span = report.to_ns.since(report.from_ns).seconds();
    let column = span / COLUMNS as f64;
    let per_second = |n: u32| if column > 0.0 { f64::from(n) / column } else { 0.0 };
    let shown: Vec<_> = report.kinds.iter().filter_map(|k| Some((k, k.columns.as_ref()?))).take(LINES).collect();
    let texts = Texts {
        title: format!("{}: events per second", heading.trace),
        notes: vec![heading.facts.clone(), format!("{span:.6} s shown, in columns of {:.3} ms.", column * 1e3)],
        warnings: heading.warnings.clone(),
        command: heading.command.clone(),
    };
    let mut legend: Vec<LegendEntry> = shown
        .iter()
        .zip(COLORS)
        .map(|((kind, _), color)| LegendEntry {
            swatch: Swatch::Area(Paint::Solid(color)),
            label: format!("{} ({}, on average {:.0}/s)", kind.name, kind.count, kind.count as f64 / span.max(1e-9)),
        })
        .collect();
    if report.kinds.len() > LINES {
        let label = format!("and {} rarer kinds, without a line", report.kinds.len() - LINES);
        legend.push(LegendEntry { swatch: Swatch::Blank, label });
    }
    let mut page = Page::new(WIDTH, HEIGHT, &texts, &legend);
    let (x, width, top) = (Page::LEFT, Page::plot_width(WIDTH), page.top);
    let scale = TimeScale { from: report.from_ns, to: report.to_ns, zero: options.zero, x, width };
    page.time_axis(&scale);
    let most = shown.iter().flat_map(|(_, columns)| *columns).max().copied().unwrap_or(0);
    let full = per_second(most).max(1.0);
    let y = |rate: f64| top + HEIGHT - (rate / full * f64::from(HEIGHT - 6 * PT)).round() as Unit;
    let step = round_step((full / 5.0).ceil() as u64);
    let values: Vec<u64> = (0..).map(|k| k * step).take_while(|v| *v as f64 <= full).collect();
    let level = |v: &u64| Line { from: Point { x, y: y(*v as f64) }, to: Point { x: x + width, y: y(*v as f64) } };
    page.figure.push(Item::Lines { stroke: RULE, width: 30, dash: 0, lines: values.iter().map(level).collect() });
    for v in &values {
        let at = Point { x: x - 4 * PT, y: y(*v as f64) + 2 * PT };
        page.figure.text(at, 7 * PT, Anchor::End, INK, &v.to_string());
    }
    let edge = |column: usize| x + (i64::from(width) * column as i64 / COLUMNS as i64) as Unit;
    // The most frequent in front.
    for ((_, columns), color) in shown.iter().zip(COLORS).rev() {
        let heights: Vec<Unit> = columns.iter().map(|n| y(per_second(*n))).collect();
        page.figure.push(Item::Lines { stroke: color, width: 70, dash: 0, lines: steps(&heights, edge) });
    }
    page.figure
}

/// A line in steps: level within a column, upright between columns.
fn steps(heights: &[Unit], edge: impl Fn(usize) -> Unit) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (i, y) in heights.iter().enumerate() {
        let (from, to) = (Point { x: edge(i), y: *y }, Point { x: edge(i + 1), y: *y });
        match lines.last_mut() {
            Some(last) if last.to == from && last.from.y == *y => last.to = to,
            Some(last) => {
                let upright = Line { from: last.to, to: from };
                lines.extend([upright, Line { from, to }]);
            }
            None => lines.push(Line { from, to }),
        }
    }
    lines
}
