//! Over time: how often events happen, and what values they have.

use crate::figure::{Options, WIDTH};
use crate::value_bars::Distributions;
use crate::{COLUMNS, KindReport, Report};
use draw::{Figure, Item, PT, Rect, Unit};
use timeline::page::{Heading, LegendEntry, Page, Swatch, time_axis};
use timeline::palette::MARKERS;
use timeline::{Axis, AxisUnit, steps};

const HEIGHT: Unit = 240 * PT;
/// The height of the distributions, and the room between them and the course for its axis and their titles.
const PANEL: Unit = 90 * PT;
const GAP: Unit = 46 * PT;
/// Kinds that get a line.
const LINES: usize = 5;

/// The figure of a report that was made with rates: events per second, a line for each of the most
/// frequent kinds.
pub fn rate_figure(report: &Report, options: &Options, heading: &Heading) -> Figure {
    let span = report.to_ns.since(report.from_ns).seconds();
    let column = span / COLUMNS as f64;
    let per_second = |n: &u32| Some(if column > 0.0 { f64::from(*n) / column } else { 0.0 });
    let course = |kind: &KindReport| {
        let columns = kind.columns.as_ref()?.iter().map(per_second).collect();
        let label = format!("{} ({}, on average {:.0}/s)", kind.name, kind.count, kind.count as f64 / span.max(1e-9));
        Some(Course { label, columns })
    };
    let courses: Vec<Course> = report.kinds.iter().filter_map(course).collect();
    draw_courses(report, options, heading, ("events per second", AxisUnit::Number), &courses, None)
}

/// Returns the figure of a report that was made with values: their mean in each column, a line for each of the most
/// frequent kinds that have any, and below it the distribution of each. `unit` is that of the values, if it is known.
pub fn value_figure(report: &Report, options: &Options, heading: &Heading, name: &str, unit: Option<&str>) -> Figure {
    let measure = if unit == Some("ns") { AxisUnit::Time } else { AxisUnit::Number };
    let shown = |value: f64| match measure {
        AxisUnit::Time if value >= 0.0 => sched::Dur(value as u64).human(),
        _ => value.to_string(),
    };
    let course = |kind: &KindReport| {
        let values = kind.values.as_ref()?;
        let [min, median, max] = [values.min, values.median, values.max].map(shown);
        let label = format!("{} (min {min}, median {median}, max {max})", kind.name);
        Some(Course { label, columns: kind.course.clone() })
    };
    let courses: Vec<Course> = report.kinds.iter().filter_map(course).collect();
    let panels = report.kinds.iter().filter_map(|kind| Some((kind.name.as_str(), kind.values.as_ref()?)));
    let unit = unit.filter(|_| measure == AxisUnit::Number);
    let titled = unit.map_or_else(|| name.to_owned(), |unit| format!("{name} [{unit}]"));
    let distributions = Distributions { panels: panels.take(LINES).collect(), measure, title: &titled };
    let what = format!("{titled}, mean of each column");
    draw_courses(report, options, heading, (&what, measure), &courses, Some(&distributions))
}

/// Something over time, by column; nothing where there is none.
struct Course {
    label: String,
    columns: Vec<Option<f64>>,
}

fn draw_courses(
    report: &Report,
    options: &Options,
    heading: &Heading,
    (what, measure): (&str, AxisUnit),
    courses: &[Course],
    distributions: Option<&Distributions<'_>>,
) -> Figure {
    let span = report.to_ns.since(report.from_ns).seconds();
    let texts = heading.texts(
        format!("{}: {what}", heading.trace),
        format!("{span:.6} s shown, in columns of {:.3} ms.", span / COLUMNS as f64 * 1e3),
    );
    let entry =
        |(course, color): (&Course, _)| LegendEntry { swatch: Swatch::Line(color), label: course.label.clone() };
    let mut legend: Vec<LegendEntry> = courses.iter().zip(MARKERS).map(entry).collect();
    if courses.len() > LINES {
        let label = format!("and {} rarer kinds, without a line", courses.len() - LINES);
        legend.push(LegendEntry { swatch: Swatch::None, label });
    }
    let below = if distributions.is_some() { GAP + PANEL } else { 0 };
    let mut page = Page::new(WIDTH, HEIGHT + below, &texts, &legend);
    // Both parts share the height of the page in proportion.
    let panel = (i64::from(page.height - GAP) * i64::from(PANEL) / i64::from(HEIGHT + PANEL)) as Unit;
    let floor = page.top + page.height - distributions.map_or(0, |_| GAP + panel);
    let scale = page.scale(report.from_ns, report.to_ns, options.zero);
    time_axis(&mut page.figure, &scale, page.top, floor);
    let (x, width) = (scale.x, scale.width);
    let plot = Rect { x, y: page.top + 6 * PT, w: width, h: floor - page.top - 6 * PT };
    let shown = || courses.iter().take(LINES).flat_map(|c| &c.columns).flatten().copied();
    let (least, most) = (shown().fold(0.0, f64::min), shown().fold(0.0, f64::max));
    let axis = Axis::linear(least, most, measure, what);
    axis.draw_left(&mut page.figure, plot);
    let y = |value: f64| axis.at(value, plot.y + plot.h, -plot.h);
    let edge = |column: usize| x + (i64::from(width) * column as i64 / COLUMNS as i64) as Unit;
    let edges: Vec<Unit> = (0..=COLUMNS).map(edge).collect();
    // The most frequent in front.
    for (course, color) in courses.iter().zip(MARKERS).rev() {
        let heights: Vec<Option<Unit>> = course.columns.iter().map(|value| value.map(y)).collect();
        page.figure.push(Item::Lines { stroke: color, width: 70, dash: 0, lines: steps(&heights, &edges) });
    }
    if let Some(distributions) = distributions {
        let area = Rect { x, y: floor + GAP, w: width, h: panel };
        distributions.draw(&mut page.figure, area);
    }
    page.finish()
}
