//! Distributions of lengths of time, over a logarithmic scale.

mod cumulative;

use crate::axis::{Axis, AxisUnit};
use crate::page::{LegendEntry, Page, Swatch, Texts};
use crate::palette::{FAINT, INK, PALETTE};
use crate::scale::LETTER;
use draw::{Anchor, Figure, Item, Line, PT, Paint, Point, Rect, Unit, text};
use sched::lengths::human;
use sched::{Dur, Lengths};

use cumulative::{color, draw_curves};

/// The lengths that a histogram shows, with their name.
#[derive(Clone, Copy, Debug)]
pub struct Histogram<'l> {
    /// The name of the lengths.
    pub name: &'l str,
    /// The lengths, counted by size.
    pub lengths: &'l Lengths,
}

/// Bars in each doubling of the length.
const PER_OCTAVE: u32 = 8;
const WIDTH: Unit = 595 * PT;
const PANEL: Unit = 92 * PT;
const GAP: Unit = 34 * PT;
/// The distance of two panels where only the lowest has labels.
const CLOSE: Unit = 16 * PT;
/// Room for the first title.
const TITLE: Unit = 12 * PT;
/// The size of the letters of a panel's name.
const NAME: Unit = 8 * PT;

/// Returns the least length in a part of an octave, in nanoseconds. Within an octave the parts are equally wide in time, so
/// a little uneven on a logarithmic scale.
pub(crate) fn length_of(part: u32, per_octave: u32) -> f64 {
    let (octave, rest) = (part / per_octave, part % per_octave);
    2f64.powi(octave as i32) * (1.0 + f64::from(rest) / f64::from(per_octave))
}

/// The octaves that are shown: all that occur in any.
fn octaves(panels: &[Histogram<'_>]) -> (u32, u32) {
    let parts = panels.iter().flat_map(|p| p.lengths.parts(1));
    let (low, high) = parts.fold((u32::MAX, 0), |(low, high), (octave, _)| (low.min(octave), high.max(octave)));
    if low > high { (0, 1) } else { (low, high + 1) }
}

/// Returns a page of histograms over one scale, one under the other, and below them the cumulative curves of all.
pub fn histograms(panels: &[Histogram<'_>], texts: &Texts) -> Figure {
    let measured: Vec<Histogram<'_>> = panels.iter().filter(|panel| panel.lengths.count() > 0).copied().collect();
    let count = panels.len().max(1) + usize::from(!measured.is_empty());
    let legend: Vec<LegendEntry> = measured
        .iter()
        .enumerate()
        .map(|(nth, panel)| LegendEntry { swatch: Swatch::Line(color(nth)), label: panel.name.trim().to_owned() })
        .collect();
    let arrangements = [(1, GAP), (1, CLOSE), (2, CLOSE), (3, CLOSE)];
    let pages = arrangements.map(|(columns, gap)| {
        let rows = count.div_ceil(columns as usize) as Unit;
        let height = |panel: Unit| rows * (panel + gap) - gap + TITLE;
        let page = Page::with_least(WIDTH, height(PANEL), height(PANEL / 4), texts, &legend);
        let panel = (page.height - TITLE + gap) / rows - gap;
        (page, (columns, rows, panel, gap))
    });
    let is_roomy = |page: &&(Page, (Unit, Unit, Unit, Unit))| page.1.2 >= PANEL / 2;
    let chosen = pages.iter().find(is_roomy).or(pages.iter().max_by_key(|page| page.1.2));
    let Some((page, (columns, rows, panel, gap))) = chosen.cloned() else { unreachable!("there are arrangements") };
    let mut page = page;
    let (low, high) = octaves(panels);
    let power = |octave: u32| 2f64.powi(octave as i32);
    let lengths = Axis::log(power(low), power(high), AxisUnit::Time, "");
    let pitch = (page.width() + Page::LEFT) / columns;
    let plot_of = |i: Unit| {
        let (column, row) = (i / rows, i % rows);
        let y = page.top + TITLE + row * (panel + gap);
        (Rect { x: Page::LEFT + column * pitch, y, w: pitch - Page::LEFT, h: panel }, row)
    };
    let plots: Vec<(Rect, Unit)> = (0..count as Unit).map(plot_of).collect();
    for (histogram, (plot, row)) in panels.iter().zip(&plots) {
        let (plot, row) = (*plot, *row);
        // Panels that stand close have the labels of the lowest one.
        let is_lowest = row + 1 == rows;
        draw_panel(&mut page.figure, histogram, plot, &lengths, gap == GAP || is_lowest);
    }
    if let Some((plot, _)) = plots.last().filter(|_| !measured.is_empty()) {
        draw_curves(&mut page.figure, *plot, &measured, power(low), power(high));
    }
    page.finish()
}

fn draw_panel(figure: &mut Figure, panel: &Histogram<'_>, plot: Rect, lengths: &Axis, is_labelled: bool) {
    let (floor, right) = (plot.y + plot.h, plot.x + plot.w);
    let parts = panel.lengths.parts(PER_OCTAVE);
    let most = parts.iter().map(|(_, n)| *n).max().unwrap_or(1).max(1);
    let s = panel.lengths.summary();
    let percent = |n: u64| 100.0 * n as f64 / s.count.max(1) as f64;
    let shares = Axis::linear(0.0, percent(most), AxisUnit::Percent, "share of all");
    let at = |part: u32| lengths.at(length_of(part, PER_OCTAVE), plot.x, plot.w);
    let bar = |(part, n): &(u32, u64)| {
        // A bar that is not empty is visible.
        let h = (floor - shares.at(percent(*n), floor, -plot.h)).max(PT / 2);
        let x = at(*part);
        Rect { x, y: floor - h, w: (at(part + 1) - x).max(PT / 4), h }
    };
    if s.count > 0 {
        shares.draw_left(figure, plot);
    }
    if is_labelled {
        lengths.draw_below(figure, plot);
    } else {
        lengths.draw_rules(figure, plot);
    }
    figure.push(Item::Rects { fill: Paint::Solid(PALETTE[0]), rects: parts.iter().map(bar).collect() });
    let title = Point { x: plot.x, y: plot.y - 4 * PT };
    let name = text::printable(panel.name.trim());
    figure.text(title, NAME, Anchor::Start, INK, &name);
    let [median, most_of, longest] = [s.p50_ns, s.p99_ns, s.max_ns].map(human);
    let numbers = match s.count {
        0 => ["none".to_owned(), String::new(), String::new()],
        count => [
            format!("{count} in all; median {median}, 99 % {most_of}, max {longest}"),
            format!("{count}; median {median}"),
            count.to_string(),
        ],
    };
    // As many of the numbers as have room beside the name.
    let room = plot.w - text::width(&name, NAME) - 8 * PT;
    if let Some(numbers) = numbers.iter().find(|numbers| text::width(&text::printable(numbers), LETTER) <= room) {
        figure.text(Point { x: right, ..title }, LETTER, Anchor::End, FAINT, numbers);
    }
    let upright = |length: Dur| {
        let x = lengths.at(length.0.max(1) as f64, plot.x, plot.w);
        Line { from: Point { x, y: plot.y }, to: Point { x, y: floor } }
    };
    let lines = [s.p50_ns, s.p99_ns, s.max_ns].into_iter().flatten().map(upright).collect();
    figure.push(Item::Lines { stroke: INK, width: 60, dash: 200, lines });
}
