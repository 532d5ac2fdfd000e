//! Steal and balance: who was moved where, and why.

use crate::Density;
use crate::figure::{Options, WIDTH, behind, draw_densities, lanes_height};
use draw::{Color, Figure, Item, Line, PT, Paint, Point, Rect, Shape, Unit};
use rustc_hash::FxHashMap;
use sched::causes::{Herd, Herds};
use sched::{
    Analysis, Cause, Causes, ChosenCpus, Cpu, Dur, Kind, Lengths, Migration, SchedEvent, SchedState, TaskState,
    Topology, Ts,
};
use serde::Serialize;
use std::fmt::Write;
use timeline::page::{DrawLanes, Heading, LegendEntry, Page, Swatch};
use timeline::{LaneLayout, TimeScale};

/// More arrows than this do not fit a page.
const ARROWS: usize = 1500;

/// The migrations of one cause.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The cause.
    pub cause: Cause,
    /// How many.
    pub count: u64,
    /// Of tasks that waited on a run queue.
    pub queued: u64,
    /// By distance, where the topology is known: on the same core, under the same LLC, in the same
    /// node, across nodes; nothing of those that it does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_distance: Option<[Option<u64>; 4]>,
    /// How many ran, with nothing lost on the way, before they were moved again;
    pub ran: u64,
    /// the median of the time until then, at most 0.8 % above the true one; nothing if none ran.
    pub first_run_median_ns: Option<Dur>,
    /// and the longest.
    pub first_run_max_ns: Dur,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct BalanceReport {
    /// `schedviz/balance/1`.
    pub schema: &'static str,
    /// The window's start, on the trace's clock.
    pub from_ns: Ts,
    /// Its end.
    pub to_ns: Ts,
    /// All migrations.
    pub total: u64,
    /// By cause; only those that occurred.
    pub causes: Vec<Cell>,
    /// At least four queued tasks left one CPU for one other within a millisecond.
    pub herds: Vec<Herd>,
    /// Those between the CPUs shown, while they fit the page.
    #[serde(skip)]
    pub(crate) arrows: Vec<Migration>,
    /// By cause and by the CPU that they went to.
    #[serde(skip)]
    pub(crate) densities: FxHashMap<(Cause, Cpu), Density>,
}

#[derive(Clone, Debug, Default)]
struct Sums {
    count: u64,
    queued: u64,
    by_distance: [u64; 4],
    /// From each migration to the first run.
    delays: Lengths,
}

/// Finds all migrations of a window. A migration that only wakes a task is one as well; how much of
/// all is balancing, the table tells.
pub struct Balance<'o> {
    topology: &'o Topology,
    /// Only these migrations.
    wanted: Option<&'o dyn Fn(&Migration) -> bool>,
    /// Only migrations from or to these.
    cpus: &'o ChosenCpus,
    from: Ts,
    to: Ts,
    start: Ts,
    causes: Causes,
    herds: Herds,
    sums: Vec<Sums>,
    arrows: Vec<Migration>,
    densities: FxHashMap<(Cause, Cpu), Density>,
}

impl<'o> Balance<'o> {
    /// Over a window; of the migrations from or to these CPUs.
    pub fn new(topology: &'o Topology, cpus: &'o ChosenCpus, from: Ts, to: Ts) -> Balance<'o> {
        Balance {
            topology,
            wanted: None,
            cpus,
            from,
            to,
            start: from,
            causes: Causes::default(),
            herds: Herds::default(),
            sums: vec![Sums::default(); Cause::ALL.len()],
            arrows: Vec::new(),
            densities: FxHashMap::default(),
        }
    }
}

impl<'o> Balance<'o> {
    /// Only those migrations for which `wanted` holds. Herds are found among all.
    pub fn only(self, wanted: &'o dyn Fn(&Migration) -> bool) -> Balance<'o> {
        Balance { wanted: Some(wanted), ..self }
    }

    fn is_shown(&self, m: &Migration) -> bool {
        (self.cpus.has(m.orig) || self.cpus.has(m.dest)) && self.wanted.is_none_or(|wanted| wanted(m))
    }
}

impl Analysis for Balance<'_> {
    type Output = BalanceReport;

    fn begin(&mut self, start: Ts, _: &SchedState) {
        self.start = start;
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        if let Kind::Migrate { task, orig, dest } = event.kind
            && state.task_of(task.pid).is_some_and(|t| matches!(t.state, TaskState::Waiting(_)))
        {
            self.herds.migrate(event.ts, orig, dest);
        }
        let mut settled = Vec::new();
        self.causes.event(event, state, |m| settled.push(m));
        settled.retain(|m| self.is_shown(m));
        settled.into_iter().for_each(|m| self.take(m));
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> BalanceReport {
        let mut rest = Vec::new();
        std::mem::take(&mut self.causes).finish(|m| rest.push(m));
        rest.retain(|m| self.is_shown(m));
        rest.into_iter().for_each(|m| self.take(m));
        let topology = self.topology;
        let told = topology.distances();
        let cell = |(cause, sums): (&Cause, &Sums)| Cell {
            cause: *cause,
            count: sums.count,
            queued: sums.queued,
            by_distance: (!topology.is_empty())
                .then(|| std::array::from_fn(|at| told[at].then_some(sums.by_distance[at]))),
            ran: sums.delays.count(),
            first_run_median_ns: (sums.delays.count() > 0).then(|| sums.delays.rank(1, 2)),
            first_run_max_ns: sums.delays.max(),
        };
        let causes: Vec<Cell> =
            Cause::ALL.iter().zip(&self.sums).filter(|(_, sums)| sums.count > 0).map(cell).collect();
        self.arrows.sort_unstable_by_key(|m| (m.ts, m.on, m.pid));
        let shown = |herd: &Herd| self.cpus.has(herd.orig) || self.cpus.has(herd.dest);
        BalanceReport {
            schema: "schedviz/balance/1",
            from_ns: self.start,
            to_ns: end,
            total: causes.iter().map(|c| c.count).sum(),
            causes,
            herds: self.herds.into_found().into_iter().filter(shown).collect(),
            arrows: self.arrows,
            densities: self.densities,
        }
    }
}

impl Balance<'_> {
    fn take(&mut self, m: Migration) {
        let sums = &mut self.sums[m.cause as usize];
        sums.count += 1;
        sums.queued += u64::from(m.queued);
        if let Some(distance) = self.topology.distance(m.orig, m.dest) {
            sums.by_distance[distance as usize] += 1;
        }
        if let Some(delay) = m.first_run {
            sums.delays.add(delay);
        }
        if self.arrows.len() <= ARROWS {
            self.arrows.push(m);
        }
        self.densities.entry((m.cause, m.dest)).or_default().add(m.ts, self.from, self.to);
    }
}

/// The table for people.
pub fn balance_text(report: &BalanceReport) -> String {
    let mut out = String::new();
    let distances = report.causes.iter().any(|c| c.by_distance.is_some());
    // Writing to a string cannot fail.
    let _ = write!(out, "{:28} {:>8} {:>7} {:>8}", "cause of the migration", "count", "share", "queued");
    if distances {
        let _ = write!(out, " {:>8} {:>8} {:>8} {:>8}", "core", "LLC", "node", "machine");
    }
    let _ = writeln!(out, " {:>22}", "until it ran: median");
    for c in &report.causes {
        let percent = 100.0 * c.count as f64 / (report.total as f64).max(1.0);
        let _ = write!(out, "{:28} {:>8} {percent:>6.1}% {:>8}", c.cause.name(), c.count, c.queued);
        if distances {
            for count in c.by_distance.unwrap_or_default() {
                let _ = write!(out, " {:>8}", count.map_or("-".into(), |n| n.to_string()));
            }
        }
        let median = c.first_run_median_ns.map_or("-".into(), Dur::human);
        let _ = writeln!(out, " {:>22}", format!("{median} (max {})", c.first_run_max_ns.human()));
    }
    let _ = writeln!(out, "{:28} {:>8}", "all", report.total);
    let tasks: u32 = report.herds.iter().map(|h| h.tasks).sum();
    let _ = match report.herds.len() {
        0 => writeln!(out, "\nno herd: nowhere did four queued tasks leave one CPU for one other within a millisecond"),
        n => writeln!(
            out,
            "\nherds: {n}, of {tasks} tasks together: each time at least four queued tasks left one CPU for one other within a millisecond"
        ),
    };
    out
}

/// The colour of a cause. Wakeup placements are many, and pale.
fn color(cause: Cause) -> Color {
    match cause {
        Cause::Wakeup => Color::rgb(0xa0, 0xb0, 0xc8),
        Cause::NewIdle => Color::rgb(0xc0, 0x10, 0x20),
        Cause::Idle => Color::rgb(0x10, 0x40, 0xc0),
        Cause::Periodic => Color::rgb(0x10, 0x78, 0x40),
        Cause::Behalf => Color::rgb(0x20, 0xa0, 0xa0),
        Cause::Stopper => Color::rgb(0xd0, 0x80, 0x10),
        Cause::Exec => Color::rgb(0x80, 0x60, 0x20),
        Cause::NumaMove => Color::rgb(0x90, 0x30, 0x90),
        Cause::NumaSwap => Color::rgb(0xd0, 0x40, 0xc0),
        Cause::RealTime => Color::rgb(0x60, 0x20, 0xe0),
        Cause::Unknown => Color::grey(0x30),
    }
}

/// Behind the arrows of a herd.
const HERD: Color = Color::rgb(0xff, 0xd9, 0x66);

/// The figure: arrows from core to core where they fit, else densities on the core they go to.
pub fn balance_figure(
    report: &BalanceReport,
    options: &Options,
    heading: &Heading,
    background: Option<&DrawLanes<'_>>,
) -> Figure {
    let fits = report.total <= ARROWS as u64;
    let height = lanes_height(options.cpus.len());
    let span = report.to_ns.since(report.from_ns).seconds();
    let how = if fits {
        "an arrow from the core that a task leaves to the one it goes to"
    } else {
        "too many for arrows: bars of how many go to a core; the rarer causes in front"
    };
    let texts = heading.texts(
        format!("{}: {} migrations, and why", heading.trace, report.total),
        format!("{span:.6} s shown; {how}. Herds: {}.{}", report.herds.len(), behind(background)),
    );
    let mut legend: Vec<LegendEntry> = report
        .causes
        .iter()
        .map(|c| LegendEntry {
            swatch: Swatch::Area(Paint::Solid(color(c.cause))),
            label: format!("{} ({}, {:.1} %)", c.cause.name(), c.count, 100.0 * c.count as f64 / report.total as f64),
        })
        .collect();
    if !report.herds.is_empty() {
        let label =
            format!("herd ({}): four queued tasks or more from one core to one other within 1 ms", report.herds.len());
        legend.push(LegendEntry { swatch: Swatch::Area(Paint::Solid(HERD)), label });
    }
    let mut page = Page::new(WIDTH, height, &texts, &legend);
    let scale = page.scale(report.from_ns, report.to_ns, options.zero);
    page.time_axis(&scale);
    if let Some(draw) = background {
        draw(&mut page.figure, &scale, page.top, page.height);
    }
    let layout = LaneLayout::new(options.cpus.clone(), page.top, page.height);
    draw_herds(&mut page.figure, report, options, &scale, &layout);
    let mut by_count: Vec<&Cell> = report.causes.iter().collect();
    by_count.sort_by_key(|c| std::cmp::Reverse(c.count));
    for cell in by_count {
        if fits {
            draw_arrows(&mut page.figure, report, cell.cause, options, &scale, &layout);
        } else {
            let lanes = options.cpus.iter().map(|(cpu, _)| report.densities.get(&(cell.cause, *cpu)));
            draw_densities(&mut page.figure, lanes, &scale, &layout, color(cell.cause));
        }
    }
    page.figure
}

/// A broad line behind the arrows, from the core that the tasks leave to the one they go to.
fn draw_herds(figure: &mut Figure, report: &BalanceReport, options: &Options, scale: &TimeScale, layout: &LaneLayout) {
    let top = |cpu: Cpu| options.cpus.iter().position(|(c, _)| *c == cpu).map(|index| layout.top_of(index));
    let rect = |herd: &Herd| {
        let (a, b) = (top(herd.orig)?, top(herd.dest)?);
        let (x, right) = (scale.at(herd.start) - PT, scale.at(herd.end) + PT);
        Some(Rect { x, y: a.min(b), w: right - x, h: (a - b).abs() + layout.bar() })
    };
    // Beyond that they hide one another; the table has all.
    let rects = report.herds.iter().take(500).filter_map(rect).collect();
    figure.push(Item::Rects { fill: Paint::Solid(HERD), rects });
}

fn draw_arrows(
    figure: &mut Figure,
    report: &BalanceReport,
    cause: Cause,
    options: &Options,
    scale: &TimeScale,
    layout: &LaneLayout,
) {
    let middle = |cpu: Cpu| {
        let index = options.cpus.iter().position(|(c, _)| *c == cpu)?;
        Some(layout.top_of(index) + layout.bar() / 2)
    };
    let size: Unit = (layout.pitch() * 5 / 10).clamp(2 * PT, 4 * PT);
    let (mut lines, mut up, mut down) = (Vec::new(), Vec::new(), Vec::new());
    for m in report.arrows.iter().filter(|m| m.cause == cause) {
        let x = scale.at(m.ts);
        let (from, to) = (middle(m.orig), middle(m.dest));
        if let (Some(from), Some(to)) = (from, to) {
            lines.push(Line { from: Point { x, y: from }, to: Point { x, y: to } });
        }
        // To a core that is not shown there is no point to draw.
        if let Some(to) = to {
            let heads = if from.is_some_and(|from| from > to) { &mut up } else { &mut down };
            heads.push(Point { x, y: to });
        }
    }
    figure.push(Item::Lines { stroke: color(cause), width: 50, dash: 0, lines });
    figure.push(Item::Markers { shape: Shape::Peak, fill: color(cause), size, at: up });
    figure.push(Item::Markers { shape: Shape::Triangle, fill: color(cause), size, at: down });
}
