//! Cumulative distributions: the share of intervals up to each length. plotters draws them.

use super::{Histogram, NAME, length_of};
use crate::axis::{Axis, AxisUnit, time_label};
use crate::palette::{APART, INK, PALETTE, RULE};
use crate::scale::LETTER;
use draw::{Anchor, ChartArea, ChartError, Color, Figure, PT, Point, Rect, Unit};
use plotters::prelude::*;
use plotters::style::Color as _;

/// The room left of a plot and below it for labels and titles.
const BESIDE: Unit = 34 * PT;
const BELOW: Unit = 20 * PT;

/// The number of parts of each doubling of the length: a curve needs more than bars.
const PER_OCTAVE: u32 = 32;

/// Returns the colour of the curve in this place.
pub(crate) fn color(nth: usize) -> Color {
    PALETTE[APART[nth % APART.len()]]
}

fn style(color: Color) -> RGBColor {
    let [r, g, b] = color.0;
    RGBColor(r, g, b)
}

/// Returns the curve of some lengths: each length with the percentage of lengths up to it.
fn curve(histogram: &Histogram<'_>) -> Vec<(f64, f64)> {
    let parts = histogram.lengths.parts(PER_OCTAVE);
    let total: u64 = parts.iter().map(|(_, n)| *n).sum();
    let mut sum = 0;
    let mut points = Vec::with_capacity(2 * parts.len());
    for (part, n) in parts {
        let percent = |n: u64| 100.0 * n as f64 / total.max(1) as f64;
        // Level up to the part, then rising within it.
        points.push((length_of(part, PER_OCTAVE), percent(sum)));
        sum += n;
        points.push((length_of(part + 1, PER_OCTAVE), percent(sum)));
    }
    points
}

/// Draws the curves of these lengths into a plot, over the lengths from `low` to `high` in nanoseconds.
pub(crate) fn draw_curves(figure: &mut Figure, plot: Rect, panels: &[Histogram<'_>], low: f64, high: f64) {
    let area = Rect { x: plot.x - BESIDE, y: plot.y, w: plot.w + BESIDE, h: plot.h + BELOW };
    Axis::linear(0.0, 100.0, AxisUnit::Percent, "share of all").draw_left_title(figure, plot);
    let title = Point { x: plot.x, y: plot.y - 4 * PT };
    figure.text(title, NAME, Anchor::Start, INK, "up to each length");
    let drawn = curves(ChartArea::new(figure, area), panels, low, high);
    // A chart without a bitmap is always drawn.
    debug_assert!(drawn.is_ok(), "{drawn:?}");
}

fn curves(
    area: ChartArea<'_>,
    panels: &[Histogram<'_>],
    low: f64,
    high: f64,
) -> Result<(), DrawingAreaErrorKind<ChartError>> {
    let root = area.into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .set_label_area_size(LabelAreaPosition::Left, BESIDE)
        .set_label_area_size(LabelAreaPosition::Bottom, BELOW)
        .build_cartesian_2d((low..high).log_scale(), 0.0..100.0)?;
    let letters = ("sans-serif", LETTER).into_font().color(&style(INK));
    chart
        .configure_mesh()
        .label_style(letters)
        .axis_style(style(INK).stroke_width(50))
        .bold_line_style(style(RULE).stroke_width(30))
        .light_line_style(TRANSPARENT)
        .set_all_tick_mark_size(3 * PT)
        .x_labels(10)
        .y_labels(5)
        .x_label_formatter(&|length| time_label(*length))
        .y_label_formatter(&|percent| format!("{percent:.0} %"))
        .draw()?;
    for (nth, histogram) in panels.iter().enumerate() {
        let line = style(color(nth)).stroke_width(110);
        chart.draw_series(LineSeries::new(curve(histogram), line))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use draw::Item;
    use sched::{Dur, Lengths};

    #[test]
    fn a_curve_rises_where_lengths_are() {
        let mut lengths = Lengths::default();
        [1_000, 1_000, 1_000, 1_000_000].into_iter().for_each(|ns| lengths.add(Dur(ns)));
        let histogram = Histogram { name: "waits", lengths: &lengths };
        let points = curve(&histogram);
        assert_eq!(points.iter().map(|point| point.1).collect::<Vec<_>>(), [0.0, 75.0, 75.0, 100.0]);
        assert!(points[0].0 <= 1e3 && 1e3 < points[1].0 && points[2].0 <= 1e6 && 1e6 < points[3].0, "{points:?}");
        let mut figure = Figure::new(400 * PT, 200 * PT, "");
        let plot = Rect { x: 60 * PT, y: 10 * PT, w: 300 * PT, h: 100 * PT };
        draw_curves(&mut figure, plot, &[histogram], 1e3, 1e6);
        let is_curve = |item: &&Item| matches!(item, Item::Polylines { stroke, .. } if *stroke == color(0));
        let curve = figure.items.iter().find(is_curve);
        let Some(Item::Polylines { polylines, .. }) = curve else { panic!("{curve:?}") };
        let (first, last) = (polylines[0][0], *polylines[0].last().expect("points"));
        // Within half a point: plotters' last coordinate is one before the end of the plot.
        assert!((first.x - plot.x).abs() < 50 && (first.y - plot.y - plot.h).abs() < 50, "{first:?}");
        assert!((last.x - plot.x - plot.w).abs() < 50 && (last.y - plot.y).abs() < 50, "{last:?}");
        let texts = figure.items.iter().filter(|item| matches!(item, Item::Text { text, .. } if text == "100 %"));
        assert_eq!(texts.count(), 1);
    }
}
