//! Distributions of lengths of time, over a logarithmic scale.

use crate::page::{Page, Texts};
use crate::palette::{FAINT, INK, PALETTE, RULE};
use draw::{Anchor, Figure, Item, Line, PT, Paint, Point, Rect, Unit};
use sched::lengths::human;
use sched::{Dur, Lengths};

/// A histogram.
#[derive(Clone, Copy, Debug)]
pub struct Histogram<'l> {
    /// What it is of.
    pub name: &'l str,
    /// The lengths.
    pub lengths: &'l Lengths,
}

/// Bars in each doubling of the length.
const PER_OCTAVE: u32 = 8;
const WIDTH: Unit = 595 * PT;
const PANEL: Unit = 92 * PT;
const GAP: Unit = 34 * PT;
/// Room for the first title.
const TITLE: Unit = 12 * PT;

/// The octaves that are shown: all that occur in any.
fn octaves(panels: &[Histogram<'_>]) -> (u32, u32) {
    let parts = panels.iter().flat_map(|p| p.lengths.parts(1));
    let (low, high) = parts.fold((u32::MAX, 0), |(low, high), (octave, _)| (low.min(octave), high.max(octave)));
    if low > high { (0, 1) } else { (low, high + 1) }
}

/// A page of histograms over one scale, one under the other.
pub fn histograms(panels: &[Histogram<'_>], texts: &Texts) -> Figure {
    let height = panels.len().max(1) as Unit * (PANEL + GAP) - GAP + TITLE;
    let mut page = Page::new(WIDTH, height, texts, &[]);
    let (low, high) = octaves(panels);
    let width = Page::plot_width(WIDTH);
    // The place of an eighth of an octave. Within an octave they are equally wide in time, so a
    // little uneven on this scale.
    let at = |part: u32| {
        let (octave, rest) = (part / PER_OCTAVE, part % PER_OCTAVE);
        let log = f64::from(octave) + (1.0 + f64::from(rest) / f64::from(PER_OCTAVE)).log2();
        Page::LEFT + ((log - f64::from(low)) / f64::from(high - low) * f64::from(width)).round() as Unit
    };
    let place = |length: Dur| {
        let log = (length.0.max(1) as f64).log2().clamp(f64::from(low), f64::from(high));
        Page::LEFT + ((log - f64::from(low)) / f64::from(high - low) * f64::from(width)).round() as Unit
    };
    for (i, panel) in (0..).zip(panels) {
        let top = page.top + TITLE + i * (PANEL + GAP);
        draw_panel(&mut page.figure, panel, top, &at, &place);
        axis(&mut page.figure, top, (low, high), &place);
    }
    page.figure
}

fn draw_panel(
    figure: &mut Figure,
    panel: &Histogram<'_>,
    top: Unit,
    at: &impl Fn(u32) -> Unit,
    place: &impl Fn(Dur) -> Unit,
) {
    let floor = top + PANEL;
    let parts = panel.lengths.parts(PER_OCTAVE);
    let most = parts.iter().map(|(_, n)| *n).max().unwrap_or(1).max(1);
    let bar = |(part, n): &(u32, u64)| {
        // What is there at all is seen.
        let h = ((u128::from(*n) * PANEL as u128 / u128::from(most)) as Unit).max(PT / 2);
        let x = at(*part);
        Rect { x, y: floor - h, w: (at(part + 1) - x).max(PT / 4), h }
    };
    figure.push(Item::Rects { fill: Paint::Solid(PALETTE[0]), rects: parts.iter().map(bar).collect() });
    let s = panel.lengths.summary();
    let share = 100.0 * most as f64 / s.count.max(1) as f64;
    let small = 7 * PT;
    figure.text(Point { x: Page::LEFT, y: top - 4 * PT }, 8 * PT, Anchor::Start, INK, panel.name.trim());
    let [median, most_of, longest] = [s.p50_ns, s.p99_ns, s.max_ns].map(human);
    let numbers = match s.count {
        0 => "none".to_owned(),
        count => format!("{count} in all; median {median}, 99 % {most_of}, max {longest}"),
    };
    let right = Page::LEFT + Page::plot_width(WIDTH);
    figure.text(Point { x: right, y: top - 4 * PT }, small, Anchor::End, FAINT, &numbers);
    if s.count > 0 {
        let at = Point { x: Page::LEFT - 4 * PT, y: top + 5 * PT };
        figure.text(at, small, Anchor::End, INK, &format!("{share:.1} %"));
    }
    figure.text(Point { x: Page::LEFT - 4 * PT, y: floor }, small, Anchor::End, INK, "0");
    let upright = |length: Dur| {
        let x = place(length);
        Line { from: Point { x, y: top }, to: Point { x, y: floor } }
    };
    let lines = [s.p50_ns, s.p99_ns, s.max_ns].into_iter().flatten().map(upright).collect();
    figure.push(Item::Lines { stroke: INK, width: 60, dash: 200, lines });
}

/// Ticks at powers of ten nanoseconds.
fn axis(figure: &mut Figure, top: Unit, (low, high): (u32, u32), place: &impl Fn(Dur) -> Unit) {
    let floor = top + PANEL;
    let (left, right) = (Page::LEFT, Page::LEFT + Page::plot_width(WIDTH));
    let mut ticks = vec![Line { from: Point { x: left, y: floor }, to: Point { x: right, y: floor } }];
    let mut rules = Vec::new();
    let edge = |octave: u32| 1u64.checked_shl(octave).unwrap_or(u64::MAX);
    let powers = (0..20).map(|e| 10u64.pow(e)).filter(|ns| (edge(low)..=edge(high)).contains(ns));
    for ns in powers {
        let x = place(Dur(ns));
        ticks.push(Line { from: Point { x, y: floor }, to: Point { x, y: floor + 3 * PT } });
        rules.push(Line { from: Point { x, y: top }, to: Point { x, y: floor } });
        let label = match ns {
            0..1_000 => format!("{ns} ns"),
            1_000..1_000_000 => format!("{} µs", ns / 1_000),
            1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
            _ => format!("{} s", ns / 1_000_000_000),
        };
        figure.text(Point { x, y: floor + 11 * PT }, 7 * PT, Anchor::Middle, INK, &label);
    }
    figure.push(Item::Lines { stroke: RULE, width: 30, dash: 0, lines: rules });
    figure.push(Item::Lines { stroke: INK, width: 50, dash: 0, lines: ticks });
}
