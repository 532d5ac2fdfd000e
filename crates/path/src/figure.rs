//! The figure: the path as a thick line from CPU to CPU, over what every CPU ran.

use crate::chain::{Segment, SegmentKind};
use crate::report::Path;
use draw::{Anchor, Color, Figure, Item, Line, PT, Paint, Point, Shape, Unit, text};
use sched::seeded::SeededMap;
use sched::{Cpu, Dur, Pid, Ts};
use std::collections::BTreeMap;
use timeline::page::{DrawLanes, Heading, LegendEntry, Page, Swatch};
use timeline::palette::INK;
use timeline::strips::{BLANK, FIRST, Strips, UNKNOWN};
use timeline::{Columns, CpuLanes, LaneLayout, PieceClass, Rows, TimeScale};

const WIDTH: Unit = 842 * PT;
const COLUMNS: u32 = 1000;
/// The maximum number of passages from lane to lane that are drawn one by one.
const ARROWS: usize = 1000;
/// The maximum number of names at the line.
const NAMES: usize = 300;
/// The length of the dashes of a line where the task moves.
const DASHES: Unit = 150;

/// The colour of the lines to the tasks that explain a sleep.
const ASLEEP: Color = Color::grey(0x90);

const RUNNING: PieceClass = FIRST;
const QUEUED: PieceClass = FIRST + 1;
const BESIDE_IDLE: PieceClass = FIRST + 2;
const WAKING: PieceClass = FIRST + 3;
const SLEEPING: PieceClass = FIRST + 4;
const THROTTLED: PieceClass = FIRST + 5;

fn class(segment: &Segment) -> PieceClass {
    let length = segment.end_ns.since(segment.start_ns).0;
    match segment.kind {
        SegmentKind::Running => RUNNING,
        SegmentKind::Queued if segment.kinds.beside_idle_ns > length / 2 => BESIDE_IDLE,
        SegmentKind::Queued => QUEUED,
        SegmentKind::Waking => WAKING,
        SegmentKind::Sleeping => SLEEPING,
        SegmentKind::Unknown => UNKNOWN,
        SegmentKind::Throttled => THROTTLED,
    }
}

fn color(class: PieceClass) -> Color {
    match class {
        RUNNING => Color::rgb(0x10, 0x40, 0xc0),
        QUEUED => Color::rgb(0xd0, 0x80, 0x10),
        BESIDE_IDLE => Color::rgb(0xc0, 0x10, 0x20),
        WAKING => Color::rgb(0xb0, 0x60, 0xe0),
        THROTTLED => Color::rgb(0x30, 0xa0, 0x90),
        _ => Color::grey(0x70),
    }
}

/// The rows in which the segments are drawn: a task off the CPU is drawn where it runs or is queued next, or was before.
fn rows_of(path: &[Segment], cpus: &[(Cpu, Option<u32>)]) -> Vec<Option<usize>> {
    let rows = Rows::new(cpus);
    let mut found: Vec<Option<usize>> = path.iter().map(|segment| rows.of(segment.cpu?)).collect();
    let mut next = None;
    for (row, segment) in found.iter_mut().zip(path).rev() {
        match segment.cpu {
            Some(_) => next = Some(*row),
            None => *row = next.flatten(),
        }
    }
    // Behind the last segment on a CPU there is no next one.
    let last = path.iter().rposition(|segment| segment.cpu.is_some());
    if let Some(last) = last {
        let row = found[last];
        found[last..].fill(row);
    }
    found
}

/// Draws the path over the lanes of these CPUs.
pub fn draw(figure: &mut Figure, path: &Path, shown: &CpuLanes, scale: &TimeScale, top: Unit, height: Unit) {
    let layout = LaneLayout::among(&shown.cpus, &shown.all_cpus, top, height);
    let rows = rows_of(&path.path, &shown.cpus);
    // A segment on a CPU is a thick line, one off the CPU a thin one.
    let (thick, thin) = ((layout.bar() * 60 / 100).max(PT / 2), (layout.bar() * 20 / 100).max(PT / 4));
    let mut lanes: BTreeMap<(usize, bool), (Columns, Ts)> = BTreeMap::new();
    for (segment, row) in path.path.iter().zip(&rows) {
        let Some(row) = row else { continue };
        let columns = || (Columns::new(shown.from, shown.to, COLUMNS), shown.from);
        let (lane, last) = lanes.entry((*row, segment.cpu.is_some())).or_insert_with(columns);
        lane.push(BLANK, *last, segment.start_ns);
        lane.push(class(segment), segment.start_ns, segment.end_ns);
        *last = segment.end_ns;
    }
    draw_passages(figure, &path.path, &rows, scale, &layout);
    let mut strips = Strips::new(scale, 3);
    for ((row, on_cpu), (lane, _)) in lanes {
        let bar = if on_cpu { thick } else { thin };
        strips.add(&lane.finish(), layout.top_of(row) + (layout.bar() - bar) / 2, bar);
    }
    strips.draw(figure, color);
    draw_names(figure, path, &rows, scale, &layout, thick);
}

/// The way in which the path passes from one lane to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passage {
    /// A task wakes or forks the next one.
    Handover,
    /// The task moves.
    Move,
    /// The task sleeps, and the next one explains that.
    Sleep,
}

impl Passage {
    /// The way from the first of two segments to the second.
    fn of(segments: &[Segment]) -> Passage {
        let (from, to) = (&segments[0], &segments[1]);
        if from.pid == to.pid {
            Passage::Move
        } else if from.sleeper == Some(to.pid) || to.kind == SegmentKind::Waking {
            Passage::Handover
        } else {
            Passage::Sleep
        }
    }
}

/// Draws the lines from lane to lane: with a head where another task is woken or forked, dashed where the task moves, pale where it sleeps and
/// another one explains the sleep.
fn draw_passages(
    figure: &mut Figure,
    path: &[Segment],
    rows: &[Option<usize>],
    scale: &TimeScale,
    layout: &LaneLayout,
) {
    let middle = |row: usize| layout.top_of(row) + layout.bar() / 2;
    let passages = path.windows(2).zip(rows.windows(2)).filter_map(|(segments, rows)| {
        let [from, to] = [rows[0]?, rows[1]?];
        (from != to).then(|| (scale.at(segments[1].start_ns), middle(from), middle(to), Passage::of(segments)))
    });
    let passages: Vec<(Unit, Unit, Unit, Passage)> = passages.collect();
    let line = |x, from, to| Line { from: Point { x, y: from }, to: Point { x, y: to } };
    if passages.len() > ARROWS {
        // Where arrows would hide each other, a line for each place spans the lanes of all of them.
        let mut places: BTreeMap<Unit, (Unit, Unit)> = BTreeMap::new();
        for (x, from, to, _) in passages {
            let x = x - x % (scale.width / COLUMNS as Unit).max(1);
            let (low, high) = places.entry(x).or_insert((from, to));
            (*low, *high) = ((*low).min(from).min(to), (*high).max(from).max(to));
        }
        let lines = places.into_iter().map(|(x, (low, high))| line(x, low, high)).collect();
        return figure.push(Item::Lines { stroke: INK, width: 20, dash: 0, lines });
    }
    let (handed, others): (Vec<_>, Vec<_>) = passages.into_iter().partition(|passage| passage.3 == Passage::Handover);
    let (moved, asleep): (Vec<_>, Vec<_>) = others.into_iter().partition(|passage| passage.3 == Passage::Move);
    let lines = |passages: &[(Unit, Unit, Unit, Passage)]| {
        passages.iter().map(|(x, from, to, _)| line(*x, *from, *to)).collect::<Vec<Line>>()
    };
    figure.push(Item::Lines { stroke: INK, width: 50, dash: 0, lines: lines(&handed) });
    figure.push(Item::Lines { stroke: INK, width: 50, dash: DASHES, lines: lines(&moved) });
    figure.push(Item::Lines { stroke: ASLEEP, width: 50, dash: 0, lines: lines(&asleep) });
    let size = (layout.pitch() * 4 / 10).clamp(2 * PT, 4 * PT);
    let (up, down): (Vec<_>, Vec<_>) = handed.into_iter().partition(|(_, from, to, _)| from > to);
    let heads = |passages: Vec<(Unit, Unit, Unit, Passage)>| {
        passages.into_iter().map(|(x, _, to, _)| Point { x, y: to }).collect::<Vec<Point>>()
    };
    figure.push(Item::Markers { shape: Shape::Peak, fill: INK, size, at: heads(up) });
    figure.push(Item::Markers { shape: Shape::Triangle, fill: INK, size, at: heads(down) });
}

/// Writes the names of the tasks above the line, where it stays long enough on a lane.
fn draw_names(
    figure: &mut Figure,
    path: &Path,
    rows: &[Option<usize>],
    scale: &TimeScale,
    layout: &LaneLayout,
    thick: Unit,
) {
    let size = (layout.bar() - thick) / 2;
    if size < 4 * PT {
        return;
    }
    let names: SeededMap<Pid, String> =
        path.tasks.iter().map(|share| (share.of.pid, share.of.pid.named(share.of.command))).collect();
    let placed: Vec<(&Segment, Option<usize>)> = path.path.iter().zip(rows.iter().copied()).collect();
    let stays = placed.chunk_by(|(a, row), (b, next)| a.pid == b.pid && row == next);
    let fitting = stays.filter_map(|stay| {
        let ((first, row), (last, _)) = (stay.first()?, stay.last()?);
        let name = text::printable(names.get(&first.pid)?);
        let x = scale.at(first.start_ns);
        let at = Point { x, y: layout.top_of((*row)?) + size * 8 / 10 };
        (text::width(&name, size) < scale.at(last.end_ns) - x).then_some((at, name))
    });
    for (at, name) in fitting.take(NAMES) {
        figure.text(at, size, Anchor::Start, INK, &name);
    }
}

/// The legend of the line.
pub fn legend(path: &Path) -> Vec<LegendEntry> {
    let times = &path.times;
    let entry = |class: PieceClass, words: &str, ns: u64| LegendEntry {
        swatch: Swatch::Area(if class == UNKNOWN { Paint::Hatch } else { Paint::Solid(color(class)) }),
        label: format!("{words}: {}", Dur(ns).human()),
    };
    let entries = [
        (RUNNING, "running", times.running_ns),
        (QUEUED, "queued", times.queued_ns.saturating_sub(times.queued_beside_idle_ns)),
        (BESIDE_IDLE, "queued while a CPU idled", times.queued_beside_idle_ns),
        (WAKING, "wakeup in progress", times.waking_ns.unwrap_or_default()),
        (SLEEPING, "sleeping until an interrupt", times.sleeping_ns.unwrap_or_default()),
        (UNKNOWN, "unknown", times.unknown_ns),
        (THROTTLED, "throttled by cpu.max", times.throttled_ns),
    ];
    let mut legend: Vec<LegendEntry> =
        entries.into_iter().filter(|(_, _, ns)| *ns > 0).map(|(class, words, ns)| entry(class, words, ns)).collect();
    let number = path.handovers.map_or(String::new(), |number| format!(" ({number})"));
    let label = format!("another task: wakeup or fork{number}");
    legend.push(LegendEntry { swatch: Swatch::Arrow(INK, 0), label });
    if path.path.windows(2).any(|pair| Passage::of(pair) == Passage::Sleep) {
        legend.push(LegendEntry { swatch: Swatch::Line(ASLEEP), label: "a task sleeps: to its waker".to_owned() });
    }
    let moves = |pair: &[Segment]| pair[0].pid == pair[1].pid && pair[0].cpu != pair[1].cpu;
    if path.path.windows(2).any(|pair| moves(pair) && pair.iter().all(|segment| segment.cpu.is_some())) {
        legend.push(LegendEntry { swatch: Swatch::Dashed(INK, DASHES), label: "the task moves".to_owned() });
    }
    legend
}

/// The sentence on the path in figures.
pub fn caption(path: &Path) -> String {
    let Some(task) = path.task else { return "There is no path: its task is not in the window.".to_owned() };
    let end = if path.ends_with_exit { "to its exit" } else { "to the end of the window" };
    let doubt = match path.is_untrusted {
        true => format!("The path is not to be trusted: {:.1} % of it is unknown. ", percent_unknown(path)),
        false => String::new(),
    };
    let unknown = match path.handovers {
        Some(_) => "",
        None => {
            " Wakeups in progress and sleeps until interrupts are unknown time: sched:sched_waking was not recorded."
        }
    };
    format!(
        "{doubt}The path of {} {end}: {} segments. A segment queued for the most part while a CPU idled has the colour of that.{unknown}",
        task.pid.named(task.command),
        path.segments
    )
}

/// The share of the path that is unknown, in percent.
fn percent_unknown(path: &Path) -> f64 {
    100.0 * path.times.unknown_ns as f64 / (path.times.total() as f64).max(1.0)
}

/// The sentence on this many CPUs that have no lane, since the path does not use them, behind others.
pub fn without_lanes(hidden: usize) -> String {
    match hidden {
        0 => String::new(),
        1 => " 1 CPU that the path does not use has no lane.".to_owned(),
        _ => format!(" {hidden} CPUs that the path does not use have no lanes."),
    }
}

/// The figure of a path, over what ran. `hidden`: the number of CPUs that have no lane, since the path does not use them.
pub fn figure(
    path: &Path,
    shown: &CpuLanes,
    hidden: usize,
    heading: &Heading,
    background: Option<&DrawLanes<'_>>,
) -> Figure {
    let lanes = shown.cpus.len().max(shown.all_cpus.len()).max(1) as Unit;
    let height = ((430 * PT / lanes).min(26 * PT) * lanes).max(40 * PT);
    let times = &path.times;
    let doubt = match path.is_untrusted {
        true => format!("not to be trusted, {:.1} % unknown: ", percent_unknown(path)),
        false => String::new(),
    };
    let title = format!(
        "{}: {doubt}{} on the critical path, {} of it queued, {} of that while a CPU idled",
        heading.trace,
        Dur(times.total()).human(),
        Dur(times.queued_ns).human(),
        Dur(times.queued_beside_idle_ns).human()
    );
    let behind = if background.is_some() { " Behind: what ran." } else { "" };
    let without = without_lanes(hidden);
    let texts = heading.texts(title, format!("{}{behind}{without}", caption(path)));
    let mut page = Page::new(WIDTH, height, &texts, &legend(path));
    let scale = page.scale(shown.from, shown.to, shown.zero);
    page.time_axis(&scale);
    let (top, height) = (page.top, page.height);
    match background {
        Some(background) => background(&mut page.figure, &scale, top, height),
        None => LaneLayout::among(&shown.cpus, &shown.all_cpus, top, height).draw(
            &mut page.figure,
            scale.x,
            scale.x + scale.width,
            "",
        ),
    }
    draw(&mut page.figure, path, shown, &scale, top, height);
    page.lanes_title("CPU");
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(kind: SegmentKind, pid: i32, cpu: Option<u32>, (start, end): (i64, i64)) -> Segment {
        Segment {
            kind,
            pid: Pid(pid),
            cpu: cpu.map(Cpu),
            start_ns: Ts(start),
            end_ns: Ts(end),
            beside_idle_ns: 0,
            kinds: sched::QueuedTimes {
                beside_idle_ns: if kind == SegmentKind::Queued { 9 } else { 0 },
                ..Default::default()
            },
            behind: None,
            behind_ns: 0,
            sleeper: None,
            is_possible: false,
        }
    }

    #[test]
    fn a_sleeping_task_stands_where_it_runs_next() {
        let path = [
            segment(SegmentKind::Unknown, 7, None, (0, 5)),
            segment(SegmentKind::Running, 7, Some(1), (5, 10)),
            segment(SegmentKind::Waking, 8, None, (10, 20)),
            segment(SegmentKind::Queued, 8, Some(0), (20, 30)),
            segment(SegmentKind::Sleeping, 8, None, (30, 40)),
        ];
        let cpus = [(Cpu(0), None), (Cpu(1), None)];
        assert_eq!(rows_of(&path, &cpus), [Some(1), Some(1), Some(0), Some(0), Some(0)]);
        // The path leaves the lanes that are shown.
        assert_eq!(rows_of(&path, &cpus[1..]), [Some(0), Some(0), None, None, None]);
        assert_eq!([class(&path[3]), class(&path[4])], [BESIDE_IDLE, SLEEPING]);
    }

    #[test]
    fn an_arrow_points_from_the_waker_to_the_woken_task() {
        let path = [
            segment(SegmentKind::Running, 7, Some(1), (0, 10)),
            segment(SegmentKind::Waking, 8, None, (10, 20)),
            segment(SegmentKind::Running, 8, Some(0), (20, 50)),
            segment(SegmentKind::Running, 8, Some(1), (50, 100)),
        ];
        let cpus = [(Cpu(0), None), (Cpu(1), None)];
        let mut figure = Figure::new(300 * PT, 100 * PT, "");
        let scale = TimeScale { from: Ts(0), to: Ts(100), zero: Ts(0), x: 0, width: 1_000 };
        let layout = LaneLayout::new(cpus.to_vec(), 0, 4_000);
        draw_passages(&mut figure, &path, &rows_of(&path, &cpus), &scale, &layout);
        let [upper, lower] = [0, 1].map(|row| layout.top_of(row) + layout.bar() / 2);
        let line = |x, from, to| vec![Line { from: Point { x, y: from }, to: Point { x, y: to } }];
        let mut lines = Vec::new();
        let mut heads = Vec::new();
        for item in figure.items {
            match item {
                Item::Lines { dash, lines: these, .. } => lines.push((dash, these)),
                Item::Markers { shape, at, .. } => heads.extend(at.into_iter().map(|at| (shape, at))),
                _ => {}
            }
        }
        assert_eq!(lines, [(0, line(100, lower, upper)), (150, line(500, upper, lower))]);
        assert_eq!(heads, [(Shape::Peak, Point { x: 100, y: upper })]);
    }
}
