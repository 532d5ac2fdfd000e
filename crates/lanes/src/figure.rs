//! The figure: the marks of the lanes on a page.

use crate::color::{ColorEntry, PALE};
use crate::groups::{LaneGroups, MANY_LANES};
use crate::lane::{Lane, PLACES, total};
use crate::names::draw_names;
use crate::{Options, Report};
use draw::{Color, Figure, Item, Line, PT, Paint, Point, Rect, Shape, Unit};
use sched::{Cpu, Ts};
use std::collections::BTreeMap;
use timeline::page::{DrawLanes, Heading, LegendEntry, Page, Swatch};
use timeline::palette::{self, BANDS, INK, MIXED, marker};
use timeline::strips::{Strips, are_mixed};
use timeline::{LaneLayout, Piece, PieceClass, TimeScale, sibling_lanes};

/// The maximum numbers of tasks in a legend, the second and later ones for pages with little room.
const SHORTER: [usize; 6] = [28, 18, 12, 8, 5, 3];

/// The grid of the edges of very many lanes: half a point.
const COARSE: Unit = PT / 2;

/// Marks over the lanes, such as a path.
pub struct Overlay<'d> {
    /// Whether the lanes are pale grey, without a legend of their own.
    pub is_pale: bool,
    /// A sentence about the marks.
    pub caption: String,
    /// The legend of the marks.
    pub legend: Vec<LegendEntry>,
    /// The function that draws the marks: on this scale, from this top, in this height.
    pub draw: &'d DrawLanes<'d>,
}

/// Returns the figure of these lanes, which are in display order.
pub fn figure(lanes: &[Lane], report: &Report, options: &Options, heading: &Heading) -> Figure {
    figure_with(lanes, report, options, heading, None)
}

/// Returns the same with marks over the lanes.
pub fn figure_with(
    lanes: &[Lane],
    report: &Report,
    options: &Options,
    heading: &Heading,
    overlay: Option<&Overlay<'_>>,
) -> Figure {
    let lane_count = options.lane_count();
    let wide = lane_count > 128;
    let width = if wide { 1191 * PT } else { 842 * PT };
    let highest = if options.groups.is_some() { 54 * PT } else { 26 * PT };
    let pitch = (if wide { 700 * PT } else { 430 * PT } / lane_count.max(1) as Unit).min(highest);
    let plot_height = (pitch * lane_count as Unit).max(40 * PT);
    let band = frequency_bands(lanes, options);
    let mut texts = heading.texts(format!("{}: what every CPU ran", heading.trace), window_note(options));
    texts.notes.push(base_note(report, options));
    if let Some(overlay) = overlay {
        texts.notes.push(overlay.caption.clone());
    }
    let pages = SHORTER.iter().map(|listed| {
        let legend = match overlay {
            Some(overlay) if overlay.is_pale => overlay.legend.clone(),
            overlay => {
                let own = overlay.map_or_else(Vec::new, |overlay| overlay.legend.clone());
                own.into_iter().chain(legend(lanes, report, options, &band, *listed)).collect()
            }
        };
        (Page::new(width, plot_height, &texts, &legend), ())
    });
    let (mut page, ()) = Page::roomy(pages);
    let scale = page.scale(options.from, options.to, options.zero);
    page.time_axis(&scale);
    let draw_ground = if overlay.is_some_and(|overlay| overlay.is_pale) { draw_pale_lanes } else { draw_lanes };
    draw_ground(&mut page.figure, lanes, options, &scale, page.top, page.height);
    if let Some(overlay) = overlay {
        (overlay.draw)(&mut page.figure, &scale, page.top, page.height);
    }
    match &options.groups {
        // The groups of lanes have their names there.
        Some(groups) if groups.are_within() => {}
        Some(groups) => page.lanes_title(&format!("{} (number of CPUs)", groups.kind())),
        None if options.group_name.is_empty() => page.lanes_title("CPU"),
        None => page.lanes_title(&format!("CPU ({} by {0})", options.group_name)),
    }
    page.finish()
}

/// Draws the lanes alone in a part of a page: their bars, names and marks.
pub fn draw_lanes(figure: &mut Figure, lanes: &[Lane], options: &Options, scale: &TimeScale, top: Unit, height: Unit) {
    if let Some(groups) = &options.groups {
        return draw_groups(figure, lanes, (options, groups), scale, top, height);
    }
    let band = frequency_bands(lanes, options);
    let layout = LaneLayout::among(&options.cpus, &options.all_cpus, top, height);
    layout.draw_silent(figure, scale.x, scale.x + scale.width);
    let share = if options.frequency && !band.is_empty() { 72 } else { 100 };
    let bar = layout.bar() * share / 100;
    layout.draw_floors(figure, scale.x, scale.x + scale.width);
    let mut strips = Strips::new(scale, options.depth()).in_levels(options.levels());
    if lanes.len() > MANY_LANES {
        strips = strips.on_grid(COARSE);
    }
    for (index, lane) in lanes.iter().enumerate() {
        strips.add(&lane.pieces, layout.top_of(index), bar);
    }
    strips.draw(figure, |class| options.coloring.paint(class));
    if share < 100 {
        draw_frequencies(figure, &band, options, scale, &layout, bar);
    }
    draw_names(figure, lanes, options, scale, &layout, bar);
    layout.draw(figure, scale.x, scale.x + scale.width, &options.group_name);
    layout.draw_siblings(figure, scale.x, &options.siblings);
    draw_marks(figure, lanes, options, scale, &layout);
}

/// Draws lanes of groups of CPUs.
fn draw_groups(
    figure: &mut Figure,
    lanes: &[Lane],
    (options, groups): (&Options, &LaneGroups),
    scale: &TimeScale,
    top: Unit,
    height: Unit,
) {
    let layout = LaneLayout::named(groups.names(), top, height);
    layout.draw_floors(figure, scale.x, scale.x + scale.width);
    let mut strips = Strips::new(scale, options.depth()).in_levels(options.levels()).of_groups();
    for (row, pieces) in groups.pieces(lanes, options).iter().enumerate() {
        strips.add(pieces, layout.top_of(row), layout.bar());
    }
    strips.draw(figure, |class| options.coloring.paint(class));
    layout.draw(figure, scale.x, scale.x + scale.width, &options.group_name);
    draw_marks(figure, lanes, options, scale, &layout);
}

/// Draws the lanes in pale grey, as the ground for other marks.
pub fn draw_pale_lanes(
    figure: &mut Figure,
    lanes: &[Lane],
    options: &Options,
    scale: &TimeScale,
    top: Unit,
    height: Unit,
) {
    let before = figure.items.len();
    // Names would hide behind the marks.
    let unnamed: Vec<Lane> = lanes.iter().map(|lane| Lane { named: Vec::new(), ..lane.clone() }).collect();
    draw_lanes(figure, &unnamed, options, scale, top, height);
    for item in figure.items.iter_mut().skip(before) {
        if let Item::Rects { fill: Paint::Solid(color), .. } = item
            && ![palette::OFFLINE, palette::NO_EVENTS].contains(color)
        {
            *color = PALE;
        }
    }
}

fn window_note(options: &Options) -> String {
    let column = sched::Dur(options.to.since(options.from).0 / u64::from(options.columns())).human();
    let shares = match &options.groups {
        Some(_) => format!("The height of a lane is the time of all its CPUs, in columns of {column}"),
        None => format!("An interval shorter than a column ({column}) is drawn as its share of it"),
    };
    format!(
        "{} shown, from {} to {}; {}. {shares}.",
        seconds(options.to.0.saturating_sub(options.from.0)),
        seconds(options.from.0.saturating_sub(options.zero.0)),
        seconds(options.to.0.saturating_sub(options.zero.0)),
        options.coloring.caption(),
    )
}

/// Returns the base of the percentages in the legend.
fn base_note(report: &Report, options: &Options) -> String {
    let busy = report.lanes.iter().map(|lane| lane.busy_ns).fold(0, u64::saturating_add);
    let all = options.to.since(options.from).0.saturating_mul(report.lanes.len() as u64);
    format!(
        "Percentages are shares of the busy time: {} of {} CPU time.",
        sched::Dur(busy).human(),
        sched::Dur(all).human()
    )
}

/// Returns exact seconds without trailing zeroes.
fn seconds(ns: i64) -> String {
    let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
    let text = format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

fn legend(lanes: &[Lane], report: &Report, options: &Options, band: &Bands, most: usize) -> Vec<LegendEntry> {
    let area = |color| Swatch::Area(Paint::Solid(color));
    let mut legend = area_legend(lanes, options, most);
    let mixed = match &options.groups {
        Some(groups) => are_mixed(groups.pieces(lanes, options).iter().flatten(), options.depth()),
        None => are_mixed(lanes.iter().flat_map(|lane| &lane.pieces), options.depth()),
    };
    if mixed {
        legend.push(LegendEntry { swatch: area(MIXED), label: "several more tasks in one column".into() });
    }
    if report.lanes.iter().any(|l| l.unknown_ns > 0) {
        legend.push(LegendEntry { swatch: Swatch::Area(Paint::Hatch), label: "unknown: events were lost".into() });
    }
    legend.push(LegendEntry { swatch: Swatch::Blank, label: "idle".into() });
    if report.lanes.iter().any(|l| l.offline_ns > 0) {
        let line = Swatch::Line(palette::OFFLINE);
        let swatch = if options.groups.is_some() { area(palette::OFFLINE) } else { line };
        legend.push(LegendEntry { swatch, label: "offline".into() });
    }
    if options.all_cpus.len() > options.cpus.len() {
        legend.push(LegendEntry { swatch: area(palette::NO_EVENTS), label: "CPU without any event".into() });
    }
    for (i, event) in report.events.iter().enumerate() {
        let (shape, color) = marker(i);
        legend.push(LegendEntry {
            swatch: Swatch::Marker(shape, color),
            label: match event.count {
                0 => format!("{}: 0 events", event.event),
                count => format!("{} ({count})", event.event),
            },
        });
    }
    if lanes.iter().flat_map(|lane| &lane.marks).any(|marks| !marks.to.is_empty()) {
        let label = "to the CPU where NUMA balancing wants the task".into();
        legend.push(LegendEntry { swatch: Swatch::Dashed(INK, PT), label });
    }
    for (i, text) in band.names().into_iter().enumerate() {
        legend.push(LegendEntry { swatch: area(BANDS[i % BANDS.len()]), label: text });
    }
    legend
}

/// Returns the legend of the areas of these lanes, with at most `most` tasks or groups by name.
pub fn area_legend(lanes: &[Lane], options: &Options, most: usize) -> Vec<LegendEntry> {
    let tasks = total(lanes);
    let busy: u64 = tasks.iter().map(|t| t.ns).fold(0, u64::saturating_add);
    let share = |ns: u64| if busy == 0 { 0.0 } else { 100.0 * ns as f64 / busy as f64 };
    let area = |color| Swatch::Area(Paint::Solid(color));
    let mut legend = Vec::new();
    if let Some(groups) = &options.groups {
        let name = |label: String| LegendEntry { swatch: Swatch::None, label };
        legend.push(name(format!("a lane: {}", groups.meaning())));
        legend.push(name("its height: the time of all of them".to_owned()));
    }
    let (mut listed, mut more) = (Vec::new(), Vec::new());
    for entry in options.coloring.entries(&tasks) {
        // An entry of 0.0 % is listed only among the first four, and only if its colour is unique.
        let alone = listed.iter().all(|other: &ColorEntry| other.class != entry.class);
        let takes = if share(entry.ns) >= 0.05 { listed.len() < most } else { listed.len() < most.min(4) && alone };
        if takes { listed.push(entry) } else { more.push(entry) }
    }
    let has_a_listed_color = |entry: &ColorEntry| listed.iter().any(|other| other.class == entry.class);
    let colors = if more.iter().all(has_a_listed_color) { ", in these colours" } else { "" };
    legend.extend(listed.iter().map(|entry| LegendEntry {
        swatch: area(options.coloring.paint(entry.class)),
        label: format!("{} {:.1} %", options.coloring.name(entry), share(entry.ns)),
    }));
    if !more.is_empty() {
        let ns = more.iter().map(|entry| entry.ns).fold(0, u64::saturating_add);
        let mut several: Vec<Color> = more.iter().map(|entry| options.coloring.paint(entry.class)).collect();
        let mut seen = Vec::new();
        several.retain(|color| {
            !seen.contains(color) && seen.len() < 4 && {
                seen.push(*color);
                true
            }
        });
        let several = std::array::from_fn(|nth| several[nth % several.len()]);
        legend.push(LegendEntry {
            swatch: Swatch::Several(several),
            label: format!("and {} more, {:.1} %{colors}", more.len(), share(ns)),
        });
    }
    let others = tasks.iter().filter(|t| t.class == crate::color::OTHERS).map(|t| t.ns).fold(0, u64::saturating_add);
    let (name, asked) = options.coloring.others();
    if others > 0 && (asked || share(others) >= 0.05) {
        legend.push(LegendEntry {
            swatch: area(timeline::palette::OTHER),
            label: format!("{name} {:.1} %", share(others)),
        });
    }
    if options.groups.is_none() && !sibling_lanes(options.drawn(), &options.siblings).is_empty() {
        legend.push(LegendEntry { swatch: Swatch::None, label: "joined by a bracket: SMT siblings".to_owned() });
    }
    legend
}

fn draw_marks(figure: &mut Figure, lanes: &[Lane], options: &Options, scale: &TimeScale, layout: &LaneLayout) {
    let middle = |index: usize| layout.top_of(index) + layout.bar() / 2;
    let lane_of = |cpu: Cpu| match &options.groups {
        Some(groups) => groups.row_of(cpu),
        None => lanes.iter().position(|lane| lane.report.cpu == cpu),
    };
    for i in 0..options.marks.len() {
        let (shape, fill) = marker(i);
        let size = (layout.pitch() * 8 / 10).clamp(3 * PT / 2, 5 * PT);
        let (mut at, mut lines, mut up, mut down) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (index, lane) in lanes.iter().enumerate() {
            let row = if options.groups.is_some() { lane_of(lane.report.cpu) } else { Some(index) };
            let (Some(y), Some(marks)) = (row.map(middle), lane.marks.get(i)) else { continue };
            at.extend(marks.at.iter().map(|ts| Point { x: scale.at(*ts), y }));
            for (ts, to) in &marks.to {
                let to = lane_of(*to).map(|to| Point { x: scale.at(*ts), y: middle(to) });
                let Some(to) = to.filter(|to| to.y != y) else { continue };
                lines.push(Line { from: Point { x: to.x, y }, to });
                if to.y < y { up.push(to) } else { down.push(to) }
            }
        }
        if options.groups.is_some() {
            // The CPUs of a group have their marks in one lane, where no more of them fit side by side.
            let place = |at: &Point| (at.y, i64::from(at.x - scale.x) * PLACES as i64 / i64::from(scale.width.max(1)));
            at.sort_unstable_by_key(|at| (at.y, at.x));
            at.dedup_by_key(|at| place(at));
        }
        // Lines to the lanes that tasks are to move to, with a head at the end.
        if !lines.is_empty() {
            figure.push(Item::Lines { stroke: fill, width: 60, dash: PT, lines });
            figure.push(Item::Markers { shape: Shape::Peak, fill, size, at: up });
            figure.push(Item::Markers { shape: Shape::Triangle, fill, size, at: down });
        }
        figure.push(Item::Markers { shape, fill, size, at });
    }
}

/// The frequencies of each CPU, in a few bands.
#[derive(Debug, Default)]
struct Bands {
    by_cpu: BTreeMap<Cpu, Vec<(Ts, u32)>>,
    low: u32,
    high: u32,
}

impl Bands {
    fn is_empty(&self) -> bool {
        self.by_cpu.is_empty()
    }

    fn band(&self, khz: u32) -> usize {
        let range = u64::from(self.high - self.low).max(1);
        ((u64::from(khz.saturating_sub(self.low)) * BANDS.len() as u64) / (range + 1)).min(BANDS.len() as u64 - 1)
            as usize
    }

    fn names(&self) -> Vec<String> {
        if self.is_empty() {
            return Vec::new();
        }
        let step = f64::from(self.high - self.low) / BANDS.len() as f64;
        let ghz = |i: usize| (f64::from(self.low) + step * i as f64) / 1e6;
        if self.high == self.low {
            return vec![format!("{:.2} GHz", ghz(0))];
        }
        (0..BANDS.len()).map(|i| format!("{:.2}\u{2013}{:.2} GHz", ghz(i), ghz(i + 1))).collect()
    }
}

fn frequency_bands(lanes: &[Lane], options: &Options) -> Bands {
    let mut bands = Bands::default();
    if !options.frequency {
        return bands;
    }
    for (ts, cpu, khz) in lanes.iter().flat_map(|l| &l.frequencies) {
        bands.by_cpu.entry(*cpu).or_default().push((*ts, *khz));
    }
    for changes in bands.by_cpu.values_mut() {
        changes.sort_by_key(|(ts, _)| *ts);
        // The lanes of other CPUs hold the same change again.
        changes.dedup();
    }
    let all = || bands.by_cpu.values().flatten().map(|(_, khz)| *khz);
    (bands.low, bands.high) = (all().min().unwrap_or(0), all().max().unwrap_or(0));
    bands
}

fn draw_frequencies(
    figure: &mut Figure,
    bands: &Bands,
    options: &Options,
    scale: &TimeScale,
    layout: &LaneLayout,
    bar: Unit,
) {
    let mut rects: BTreeMap<usize, Vec<Rect>> = BTreeMap::new();
    for (index, (cpu, _)) in options.cpus.iter().enumerate() {
        let Some(changes) = bands.by_cpu.get(cpu) else { continue };
        let gap = (layout.bar() - bar) / 6;
        let (y, h) = (layout.top_of(index) + bar + gap, layout.bar() - bar - gap);
        let mut columns = timeline::Columns::new(options.from, options.to, options.columns());
        for (i, (ts, khz)) in changes.iter().enumerate() {
            let end = changes.get(i + 1).map_or(options.to, |next| next.0).min(options.to);
            columns.push(bands.band(*khz) as PieceClass, (*ts).max(options.from), end);
        }
        for piece in columns.finish() {
            // A band is too low for shares, so a column shows the frequency that lasted longest.
            let (class, start, end) = match piece {
                Piece::Exact { class, start, end } => (class, start, end),
                Piece::Shares { start, end, shares } => {
                    let longest = shares.iter().max_by_key(|(c, ns)| (*ns, std::cmp::Reverse(*c)));
                    (longest.map_or(0, |l| l.0), start, end)
                }
            };
            let x = scale.at(start);
            rects.entry(usize::from(class)).or_default().push(Rect { x, y, w: (scale.at(end) - x).max(1), h });
        }
    }
    for (band, rects) in rects {
        figure.push(Item::Rects { fill: Paint::Solid(BANDS[band % BANDS.len()]), rects });
    }
}
