//! The figure: run intervals, and over them a marker for each event of the rarer kinds, and bars for the others.

use crate::{COLUMNS, Density, KindReport, Report, Shown, SpanReport};
use draw::{Anchor, Color, Figure, Item, PT, Paint, Point, Rect, Shape, Unit};
use sched::seeded::SeededMap;
use sched::{Cpu, Dur, Ts};
use timeline::page::{DrawLanes, Heading, LegendEntry, Page, Swatch};
use timeline::palette::{PALETTE, ink_on, marker};
use timeline::{LaneLayout, TimeScale};

/// The rows and the origin of a figure.
#[derive(Clone, Debug)]
pub struct Options {
    /// The instant that counts as zero: the trace's start.
    pub zero: Ts,
    /// The CPUs in display order, each with its group.
    pub cpus: Vec<(Cpu, Option<u32>)>,
    /// The CPUs that have a lane, in display order: those of `cpus`, and those without any event. Empty where every CPU
    /// has events.
    pub all_cpus: Vec<(Cpu, Option<u32>)>,
}

pub(crate) const WIDTH: Unit = 842 * PT;
/// Kinds that the legend lists.
const LISTED: usize = 30;
/// Kinds of spans that have colours of their own.
const SPANS: usize = 12;
/// The maximum number of spans that have their names in them.
const NAMES: usize = 400;

/// Bars differ in colour from every marker.
const DENSITY: Color = Color::rgb(0xd0, 0x80, 0x10);

/// Kinds that the legend does not list.
const UNLISTED: (Shape, Color) = (Shape::ALL[0], Color::grey(0x80));

/// Returns the look of the marked kind in this place.
fn look(index: usize) -> (Shape, Color) {
    if index < LISTED { marker(index) } else { UNLISTED }
}

/// The height of the lanes of this number of CPUs.
pub(crate) fn lanes_height(cpus: usize) -> Unit {
    let n = cpus.max(1) as Unit;
    ((430 * PT / n).min(26 * PT) * n).max(40 * PT)
}

/// The sentence on a background.
pub(crate) fn behind(background: Option<&DrawLanes<'_>>) -> &'static str {
    if background.is_some() { " Behind: what ran." } else { "" }
}

/// The figure of a report, over what ran, where that is known.
pub fn figure(report: &Report, options: &Options, heading: &Heading, background: Option<&DrawLanes<'_>>) -> Figure {
    let height = lanes_height(options.cpus.len().max(options.all_cpus.len()));
    let span = report.to_ns.since(report.from_ns).seconds();
    let density = |cpu: Cpu| report.densities.iter().find(|(c, _)| *c == cpu).map(|(_, density)| density);
    let lanes: Vec<Vec<_>> = options.cpus.iter().map(|(cpu, _)| vec![(density(*cpu), DENSITY)]).collect();
    let joined = joined(lanes.len());
    let full = fullest(&lanes, joined);
    let of = |shown: Shown| report.kinds.iter().filter(|kind| kind.shown == shown).collect::<Vec<_>>();
    let (barred, marked) = (of(Shown::Bars), of(Shown::Markers));
    let bars = scale_of_bars(full, "events", span, joined);
    let mut how = match (barred.len(), marked.len()) {
        (0, 0) if !report.spans.is_empty() => "spans".to_owned(),
        (0, _) => "a marker each".to_owned(),
        (_, 0) => bars,
        (1, _) => format!("a marker each, but for {} as bars: {bars}", barred[0].name),
        (n, _) => format!("a marker each, but for the {n} most frequent kinds as bars: {bars}"),
    };
    if !report.spans.is_empty() {
        how.push_str(if marked.len() + barred.len() > 0 { "; spans" } else { "" });
        how.push_str(" stand on the CPU of their thread, those that begin inside others below them");
    }
    let texts = heading.texts(
        format!("{}: {}", heading.trace, sched::nouns::counted(report.total, "event")),
        format!("{span:.6} s shown; {how}.{} Percentages are of all events shown.", behind(background)),
    );
    let mut page = Page::new(WIDTH, height, &texts, &legend(&barred, &marked, &report.spans));
    let scale = page.scale(report.from_ns, report.to_ns, options.zero);
    page.time_axis(&scale);
    if let Some(draw) = background {
        draw(&mut page.figure, &scale, page.top, page.height);
    }
    let layout = LaneLayout::among(&options.cpus, &options.all_cpus, page.top, page.height);
    if !barred.is_empty() {
        draw_bars(&mut page.figure, (&lanes, joined), full, &scale, &layout);
    }
    draw_spans(&mut page.figure, report, options, &scale, &layout);
    draw_markers(&mut page.figure, &marked, options, &scale, &layout);
    page.lanes_title("CPU");
    page.finish()
}

/// The kinds in bars, which share a colour, those with markers, and the spans.
fn legend(barred: &[&KindReport], marked: &[&KindReport], spans: &[SpanReport]) -> Vec<LegendEntry> {
    let label = |kind: &KindReport| match kind.count {
        0 => format!("{}: 0 events", kind.name),
        count => format!("{} ({count}, {:.1} %)", kind.name, kind.percent),
    };
    let bars = Swatch::Area(Paint::Solid(DENSITY));
    let mut legend = Vec::new();
    match barred {
        [] => {}
        [kind] => legend.push(LegendEntry { swatch: bars, label: label(kind) }),
        kinds => {
            legend.push(LegendEntry { swatch: bars, label: format!("bars: {} kinds together", kinds.len()) });
            // Kinds with a marker must be listed to be distinguished; those in bars get the room that is left.
            let room = LISTED.saturating_sub(marked.len()).max(6);
            legend.extend(kinds.iter().take(room).map(|k| LegendEntry { swatch: Swatch::None, label: label(k) }));
            if let Some(more) = kinds.len().checked_sub(room).filter(|more| *more > 0) {
                let label = format!("and {more} more kinds in bars");
                legend.push(LegendEntry { swatch: Swatch::None, label });
            }
        }
    }
    let entry = |(i, kind): (usize, &&KindReport)| {
        let (shape, color) = look(i);
        LegendEntry { swatch: Swatch::Marker(shape, color), label: label(kind) }
    };
    legend.extend(marked.iter().take(LISTED).enumerate().map(entry));
    if marked.len() > LISTED {
        let label = format!("and {} more kinds", marked.len() - LISTED);
        legend.push(LegendEntry { swatch: Swatch::Marker(UNLISTED.0, UNLISTED.1), label });
    }
    let entry = |(kind, span): (usize, &SpanReport)| {
        let median = span.median_ns.map_or_else(String::new, |median| format!(", median {}", median.human()));
        let plural = if span.count == 1 { "span" } else { "spans" };
        let label = format!("{} ({} {plural}{median})", span.name, span.count);
        LegendEntry { swatch: Swatch::Area(Paint::Solid(span_color(kind))), label }
    };
    legend.extend(spans.iter().take(SPANS).enumerate().map(entry));
    if spans.len() > SPANS {
        let label = format!("and {} more kinds of spans", spans.len() - SPANS);
        legend.push(LegendEntry { swatch: Swatch::Area(Paint::Solid(span_color(SPANS))), label });
    }
    legend
}

/// The colour of a kind of span.
fn span_color(kind: usize) -> Color {
    if kind < SPANS { PALETTE[kind] } else { Color::grey(0x70) }
}

/// Draws spans on their CPUs in rows, with their names where there is room.
fn draw_spans(figure: &mut Figure, report: &Report, options: &Options, scale: &TimeScale, layout: &LaneLayout) {
    let places: SeededMap<Cpu, usize> = options.cpus.iter().enumerate().map(|(i, (cpu, _))| (*cpu, i)).collect();
    let shown = || report.pieces.iter().filter_map(|piece| Some((piece, *places.get(&piece.cpu)?)));
    let deepest = shown().map(|(piece, _)| piece.row + 1).max().unwrap_or(1);
    let rows = deepest.min((layout.bar() / (2 * PT)).max(1) as usize);
    let h = layout.bar() / rows as Unit;
    let mut rects: Vec<Vec<Rect>> = vec![Vec::new(); SPANS + 1];
    let mut names = Vec::new();
    for (piece, lane) in shown() {
        let row = piece.row.min(rows - 1) as Unit;
        let (x, right) = (scale.at(piece.start), scale.at(piece.end));
        let rect = Rect { x, y: layout.top_of(lane) + row * h, w: (right - x).max(PT / 10), h: h - h / 12 };
        let color = piece.kind.min(SPANS);
        rects[color].push(rect);
        let (name, size) = (&report.spans[piece.kind].name, (rect.h * 7 / 10).min(7 * PT));
        if size >= 3 * PT && names.len() < NAMES && draw::text::width(name, size) + 3 * PT < rect.w {
            names.push((Point { x: x + 3 * PT / 2, y: rect.y + rect.h / 2 + size * 35 / 100 }, size, color, name));
        }
    }
    for (kind, rects) in rects.into_iter().enumerate().filter(|(_, rects)| !rects.is_empty()) {
        figure.push(Item::Rects { fill: Paint::Solid(span_color(kind)), rects });
    }
    for (at, size, kind, name) in names {
        figure.text(at, size, Anchor::Start, ink_on(span_color(kind)), name);
    }
}

fn draw_markers(figure: &mut Figure, kinds: &[&KindReport], options: &Options, scale: &TimeScale, layout: &LaneLayout) {
    let place = |cpu: Cpu| options.cpus.iter().position(|(c, _)| *c == cpu);
    // Markers within microseconds of one another stand one below the other.
    let rows = (kinds.len().clamp(1, 4) as Unit).min((layout.bar() / (3 * PT)).max(1));
    let size = (layout.pitch() * 8 / 10 / rows).clamp(2 * PT, 6 * PT);
    // The rare ones in front.
    for (i, kind) in kinds.iter().enumerate() {
        let (shape, fill) = look(i);
        let row = i as Unit % rows;
        let at = kind.marks.iter().filter_map(|(ts, cpu)| {
            let y = layout.top_of(place(*cpu)?) + layout.bar() * (2 * row + 1) / (2 * rows);
            Some(Point { x: scale.at(*ts), y })
        });
        let at = at.collect();
        figure.push(Item::Markers { shape, fill, size, at });
    }
}

/// Lanes of bars: for each lane the parts that are stacked there, from below to above.
type Bars<'d> = [Vec<(Option<&'d Density>, Color)>];

/// The number of columns that a bar stands for, so that the bars of many lanes do not make a large file.
pub(crate) fn joined(lanes: usize) -> usize {
    match lanes {
        0..=64 => 1,
        65..=128 => 4,
        _ => 16,
    }
}

/// The occurrences in the columns of a bar.
pub(crate) fn in_bar(density: &Density, bar: usize, joined: usize) -> u64 {
    density.0.iter().skip(bar * joined).take(joined).map(|n| u64::from(*n)).sum()
}

/// The most that any bar of any lane has of all parts together; this is drawn as high as a lane.
pub(crate) fn fullest(lanes: &Bars<'_>, joined: usize) -> u64 {
    let sum = |lane: &Vec<(Option<&Density>, Color)>, bar: usize| -> u64 {
        lane.iter().flat_map(|(density, _)| density).map(|density| in_bar(density, bar, joined)).sum()
    };
    lanes.iter().flat_map(|lane| (0..COLUMNS / joined).map(|bar| sum(lane, bar))).max().unwrap_or(0)
}

/// The scale of bars in words: what a bar as high as a lane stands for.
pub(crate) fn scale_of_bars(full: u64, what: &str, span: f64, joined: usize) -> String {
    let column = Dur((span * 1e9 * joined as f64 / COLUMNS as f64) as u64);
    format!("a bar as high as its lane is {full} {what} in {}", column.human())
}

/// A bar for each time of joined columns in which a lane has any; `full` is as high as a lane, and one is never nothing.
pub(crate) fn draw_bars(
    figure: &mut Figure,
    (lanes, joined): (&Bars<'_>, usize),
    full: u64,
    scale: &TimeScale,
    layout: &LaneLayout,
) {
    let parts = lanes.iter().map(Vec::len).max().unwrap_or(0);
    let mut rects: Vec<(Color, Vec<Rect>)> = vec![(DENSITY, Vec::new()); parts];
    let edge = |bar: usize| scale.x + (i64::from(scale.width) * (bar * joined) as i64 / COLUMNS as i64) as Unit;
    for (index, lane) in lanes.iter().enumerate() {
        let (bottom, height) = (layout.top_of(index) + layout.bar(), layout.bar());
        for bar in 0..COLUMNS / joined {
            let count = |density: &Density| u32::try_from(in_bar(density, bar, joined)).unwrap_or(u32::MAX);
            let counts: Vec<u32> = lane.iter().map(|(density, _)| density.map_or(0, count)).collect();
            let (x, mut y) = (edge(bar), bottom);
            for (part, h) in heights(&counts, full, height).into_iter().enumerate().filter(|(_, h)| *h > 0) {
                y -= h;
                rects[part].0 = lane[part].1;
                rects[part].1.push(Rect { x, y, w: edge(bar + 1) - x, h });
            }
        }
    }
    for (color, rects) in rects.into_iter().filter(|(_, rects)| !rects.is_empty()) {
        figure.push(Item::Rects { fill: Paint::Solid(color), rects });
    }
}

/// The heights of the parts of a bar: a part that counts something is visible, and all together are at most `bar`.
pub(crate) fn heights(counts: &[u32], full: u64, bar: Unit) -> Vec<Unit> {
    let least = (bar / 16).max(1);
    let height = |n: &u32| match n {
        0 => 0,
        n => ((i64::from(bar) * i64::from(*n) / full.max(1) as i64) as Unit).max(least),
    };
    let mut heights: Vec<Unit> = counts.iter().map(height).collect();
    let excess = heights.iter().sum::<Unit>() - bar;
    if let Some(highest) = heights.iter_mut().max().filter(|_| excess > 0) {
        *highest = (*highest - excess).max(1);
    }
    heights
}
