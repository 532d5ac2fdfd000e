//! Over time: how often events happen, and what values they have.

use crate::figure::{COLORS, Options, WIDTH};
use crate::{COLUMNS, KindReport, Report};
use draw::{Figure, Item, PT, Paint, Rect, Unit};
use timeline::page::{Heading, LegendEntry, Page, Swatch};
use timeline::{Axis, Measure, steps};

const HEIGHT: Unit = 240 * PT;
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
    draw_courses(report, options, heading, "events per second", &courses)
}

/// The figure of a report that was made with values: their mean in each column, a line for each of
/// the most frequent kinds that have any.
pub fn value_figure(report: &Report, options: &Options, heading: &Heading, name: &str) -> Figure {
    let course = |kind: &KindReport| {
        let values = kind.values.as_ref()?;
        let label = format!("{} (min {}, median {}, max {})", kind.name, values.min, values.median, values.max);
        Some(Course { label, columns: kind.course.clone() })
    };
    let courses: Vec<Course> = report.kinds.iter().filter_map(course).collect();
    draw_courses(report, options, heading, &format!("{name}, mean of each column"), &courses)
}

/// Something over time, by column; nothing where there is none.
struct Course {
    label: String,
    columns: Vec<Option<f64>>,
}

fn draw_courses(report: &Report, options: &Options, heading: &Heading, what: &str, courses: &[Course]) -> Figure {
    let span = report.to_ns.since(report.from_ns).seconds();
    let texts = heading.texts(
        format!("{}: {what}", heading.trace),
        format!("{span:.6} s shown, in columns of {:.3} ms.", span / COLUMNS as f64 * 1e3),
    );
    let entry = |(course, color): (&Course, _)| LegendEntry {
        swatch: Swatch::Area(Paint::Solid(color)),
        label: course.label.clone(),
    };
    let mut legend: Vec<LegendEntry> = courses.iter().zip(COLORS).map(entry).collect();
    if courses.len() > LINES {
        let label = format!("and {} rarer kinds, without a line", courses.len() - LINES);
        legend.push(LegendEntry { swatch: Swatch::Blank, label });
    }
    let mut page = Page::new(WIDTH, HEIGHT, &texts, &legend);
    let scale = page.scale(report.from_ns, report.to_ns, options.zero);
    page.time_axis(&scale);
    let (x, width) = (scale.x, scale.width);
    let plot = Rect { x, y: page.top + 6 * PT, w: width, h: page.height - 6 * PT };
    let shown = || courses.iter().take(LINES).flat_map(|c| &c.columns).flatten().copied();
    let (least, most) = (shown().fold(0.0, f64::min), shown().fold(0.0, f64::max));
    let axis = Axis::linear(least, most, Measure::Number, what);
    axis.draw_left(&mut page.figure, plot);
    let y = |value: f64| axis.at(value, plot.y + plot.h, -plot.h);
    let edge = |column: usize| x + (i64::from(width) * column as i64 / COLUMNS as i64) as Unit;
    let edges: Vec<Unit> = (0..=COLUMNS).map(edge).collect();
    // The most frequent in front.
    for (course, color) in courses.iter().zip(COLORS).rev() {
        let heights: Vec<Option<Unit>> = course.columns.iter().map(|value| value.map(y)).collect();
        page.figure.push(Item::Lines { stroke: color, width: 70, dash: 0, lines: steps(&heights, &edges) });
    }
    page.finish()
}
