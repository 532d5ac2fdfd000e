//! Migrations by cause and distance.

use crate::Density;
use crate::figure::{Options, WIDTH, behind, draw_bars, fullest, joined, lanes_height, scale_of_bars};
use crate::log::BalanceStep;
use crate::undone::{Move, UndoneMoves};
use draw::{Color, Figure, Item, Line, PT, Paint, Point, Rect, Shape, Unit};
use sched::analysis::Settled;
use sched::causes::{Herd, Herds};
use sched::seeded::SeededMap;
use sched::topology::Distance;
use sched::{
    Analysis, Cause, ChosenCpus, Comm, Cpu, Dur, Lengths, Migration, Pid, SchedEvent, SchedState, StepLog, Topology, Ts,
};
use serde::Serialize;
use timeline::causes::{color, dash};
use timeline::page::{DrawLanes, Heading, LegendEntry, Page, Swatch};
use timeline::{LaneLayout, TimeScale};

/// The name and version of the document's schema.
pub(crate) const SCHEMA: &str = "schedviz/balance/2";

/// The distances that every topology can have. Clusters, which few machines have, stand apart.
const FOUR: [Distance; 4] = [Distance::Smt, Distance::Llc, Distance::Node, Distance::Machine];

/// Maximum number of arrows on a page. Rare causes get theirs first.
const ARROWS: u64 = 1500;

/// Maximum number of migrations that are listed one by one, which takes some 80 MB.
const LISTED: usize = 1_000_000;

/// The migrations of one cause.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cell {
    /// The cause of the migrations.
    pub cause: Cause,
    /// The number of migrations.
    pub count: u64,
    /// Migrations of tasks that waited on a run queue.
    pub queued: u64,
    /// Migrations whose cause a probe on the balancer recorded; the cause of the others follows from the order of events.
    pub recorded: u64,
    /// The number of migrations by distance, where the topology is known: on the same core, under the same LLC, in the
    /// same node, across nodes; nothing for distances that the topology lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_distance: Option<[Option<u64>; 4]>,
    /// The number of migrations within a cluster, which that under the same LLC leaves out; absent where the topology has no clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_cluster: Option<u64>,
    /// The median time from the migration to the first run by distance, in the same order; absent for distances without
    /// such a run, and where the topology is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_run_by_distance_ns: Option<[Option<Dur>; 4]>,
    /// The median time from a migration within a cluster to the first run; absent without such a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_run_in_cluster_ns: Option<Dur>,
    /// The number that ran, with nothing lost on the way, before they were moved again.
    pub ran: u64,
    /// The number of pulls whose loads are known, of waiting tasks by the balancer; absent for other causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pulls: Option<u64>,
    /// The number of these that left the target CPU with at least as many tasks as the source had before; absent for other causes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub useless: Option<u64>,
    /// The number of migrations that the next migration of the same task undid within 10 ms, in the window as well.
    pub reversed: u64,
    /// The median of the time until they ran, at most 0.8 % above the true one; absent if none ran.
    pub first_run_median_ns: Option<Dur>,
    /// The longest of these times; nothing if none ran.
    pub first_run_max_ns: Option<Dur>,
}

/// A migration, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedMigration {
    /// The time of the migration on the trace's clock.
    pub ts_ns: Ts,
    /// The CPU that did it.
    pub cpu: Cpu,
    /// The migrated task.
    pub pid: Pid,
    /// The command name of the task in the event.
    pub command: Comm,
    /// The CPU that the task leaves.
    pub from_cpu: Cpu,
    /// The CPU that the task goes to.
    pub to_cpu: Cpu,
    /// The cause of the migration.
    pub cause: Cause,
    /// Whether a probe on the balancer recorded the cause; otherwise it follows from the order of events.
    pub recorded: bool,
    /// Whether the task waited on a run queue; otherwise it slept, was being woken, or was throttled.
    pub queued: bool,
    /// The distance of the two CPUs; nothing without a topology that gives it.
    pub distance: Option<Distance>,
    /// The time from the migration to the task's next run; nothing if it was moved again before, did not run, or events
    /// were lost meanwhile.
    pub until_run_ns: Option<Dur>,
}

/// The report on migrations.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BalanceReport {
    /// The name and version of the schema, `schedviz/balance/2`.
    pub schema: &'static str,
    /// The window's start, on the trace's clock.
    pub from_ns: Ts,
    /// The window's end, on the trace's clock.
    pub to_ns: Ts,
    /// The number of migrations.
    pub total: u64,
    /// The number of migrations whose cause a probe on the balancer recorded; the cause of the others follows from the
    /// order of events.
    pub recorded: u64,
    /// The migrations of each cause that occurred.
    pub causes: Vec<Cell>,
    /// The herds: at least four queued tasks left one CPU for one other within a millisecond.
    pub herds: Vec<Herd>,
    /// The migrations one by one in order of time, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migrations: Option<Vec<ListedMigration>>,
    /// Migrations that are counted but not listed, since there are more than a million.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlisted: Option<u64>,
    /// The migrations of the rarer causes, as many as fit the page.
    #[serde(skip)]
    pub(crate) arrows: Vec<Migration>,
    /// The causes whose migrations are drawn as arrows.
    #[serde(skip)]
    pub(crate) arrowed: Vec<Cause>,
    /// The migrations over time by cause and by target CPU.
    #[serde(skip)]
    pub(crate) densities: SeededMap<(Cause, Cpu), Density>,
}

#[derive(Clone, Debug, Default)]
struct CauseSums {
    count: u64,
    queued: u64,
    recorded: u64,
    by_distance: [u64; Distance::ALL.len()],
    delays_by_distance: [Lengths; Distance::ALL.len()],
    /// The times from each migration to the first run.
    delays: Lengths,
    /// The migrations themselves, while an arrow each fits the page.
    arrows: Vec<Migration>,
}

/// Takes each migration when its cause and its first run are settled.
pub type TakesMigration<'o> = dyn Fn(&ListedMigration) + Sync + 'o;

/// Finds all migrations of a window. A migration that only wakes a task is one as well; how much of
/// all is balancing, the table shows.
pub struct Balance<'o> {
    topology: &'o Topology,
    /// The condition that a counted migration meets; absent where all count.
    wanted: Option<&'o (dyn Fn(&Migration) -> bool + Sync)>,
    /// The CPUs from or to which a counted migration leads.
    cpus: &'o ChosenCpus,
    from: Ts,
    to: Ts,
    start: Ts,
    herds: Herds,
    sums: Vec<CauseSums>,
    each: Option<&'o TakesMigration<'o>>,
    listed: Option<Vec<ListedMigration>>,
    densities: SeededMap<(Cause, Cpu), Density>,
    /// The steps that are left to the analysis of the pieces before, if this one follows a later piece of a pass.
    pub(crate) log: StepLog<BalanceStep>,
    undone: UndoneMoves,
}

impl<'o> Balance<'o> {
    /// Returns the analysis over a window, of the migrations from or to these CPUs.
    pub fn new(topology: &'o Topology, cpus: &'o ChosenCpus, from: Ts, to: Ts) -> Balance<'o> {
        Balance {
            topology,
            wanted: None,
            cpus,
            from,
            to,
            start: from,
            herds: Herds::default(),
            sums: vec![CauseSums::default(); Cause::ALL.len()],
            each: None,
            listed: None,
            densities: SeededMap::default(),
            log: StepLog::default(),
            undone: UndoneMoves::default(),
        }
    }
}

impl<'o> Balance<'o> {
    /// Lists the migrations one by one as well.
    #[must_use]
    pub fn listing(self, wanted: bool) -> Balance<'o> {
        Balance { listed: wanted.then(Vec::new), ..self }
    }

    /// Passes each migration to `take`, whatever their number.
    #[must_use]
    pub fn each(self, take: &'o TakesMigration<'o>) -> Balance<'o> {
        Balance { each: Some(take), ..self }
    }

    /// The analysis of those migrations alone for which `wanted` holds. Herds are found among all.
    #[must_use]
    pub fn only(self, wanted: &'o (dyn Fn(&Migration) -> bool + Sync)) -> Balance<'o> {
        Balance { wanted: Some(wanted), ..self }
    }

    fn is_shown(&self, m: &Migration) -> bool {
        (self.cpus.has(m.orig) || self.cpus.has(m.dest)) && self.wanted.is_none_or(|wanted| wanted(m))
    }
}

impl Analysis for Balance<'_> {
    type Output = BalanceReport;
    const MIGRATIONS: bool = true;

    fn begin(&mut self, start: Ts, _: &SchedState) {
        self.start = start;
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        if let Some(of) = Move::of(event, state) {
            self.step(BalanceStep::Happened(of));
        }
    }

    fn migrated(&mut self, migration: &Migration, settled: Settled, _: &SchedState) {
        if settled.is_inside() {
            self.step(BalanceStep::Settled(*migration));
        }
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> BalanceReport {
        let topology = self.topology;
        let given = topology.distances();
        let undone = &self.undone;
        let cell = |(cause, sums): (&Cause, &CauseSums)| Cell {
            cause: *cause,
            count: sums.count,
            queued: sums.queued,
            recorded: sums.recorded,
            by_distance: (!topology.is_empty())
                .then(|| FOUR.map(|of| given[of as usize].then_some(sums.by_distance[of as usize]))),
            in_cluster: topology.has_clusters().then_some(sums.by_distance[Distance::Cluster as usize]),
            first_run_by_distance_ns: (!topology.is_empty())
                .then(|| FOUR.map(|of| sums.delays_by_distance[of as usize].rank(1, 2).filter(|_| given[of as usize]))),
            first_run_in_cluster_ns: sums.delays_by_distance[Distance::Cluster as usize].rank(1, 2),
            ran: sums.delays.count(),
            pulls: Some(undone.of(*cause).pulls).filter(|pulls| *pulls > 0),
            useless: Some(undone.of(*cause)).filter(|of| of.pulls > 0).map(|of| of.useless),
            reversed: undone.of(*cause).reversed,
            first_run_median_ns: sums.delays.rank(1, 2),
            first_run_max_ns: sums.delays.max(),
        };
        let causes: Vec<Cell> =
            Cause::ALL.iter().zip(&self.sums).filter(|(_, sums)| sums.count > 0).map(cell).collect();
        let arrowed = arrowed(&causes);
        let of_arrowed = arrowed.iter().flat_map(|cause| std::mem::take(&mut self.sums[*cause as usize].arrows));
        let mut arrows: Vec<Migration> = of_arrowed.collect();
        arrows.sort_unstable_by_key(|m| (m.ts, m.on, m.pid));
        let total = causes.iter().map(|c| c.count).sum();
        if let Some(listed) = &mut self.listed {
            listed.sort_by_key(|m| (m.ts_ns, m.cpu, m.pid));
        }
        let shown = |herd: &Herd| self.cpus.has(herd.orig) || self.cpus.has(herd.dest);
        BalanceReport {
            schema: SCHEMA,
            from_ns: self.start,
            to_ns: end,
            total,
            recorded: causes.iter().map(|c| c.recorded).sum(),
            causes,
            herds: self.herds.into_found().into_iter().filter(shown).collect(),
            unlisted: self.listed.as_ref().map(|listed| total - listed.len() as u64).filter(|n| *n > 0),
            migrations: self.listed,
            arrows,
            arrowed,
            densities: self.densities,
        }
    }
}

impl Balance<'_> {
    /// A task is moved.
    pub(crate) fn happens(&mut self, of: Move) {
        if let Some((ts, orig, dest)) = of.queued() {
            self.herds.migrate(ts, orig, dest);
        }
        self.undone.happens(of);
    }

    /// The cause of a migration of the window is settled.
    pub(crate) fn settles(&mut self, m: Migration) {
        let is_shown = self.is_shown(&m);
        self.undone.settles(&m, is_shown);
        if is_shown {
            self.take(m);
        }
    }

    /// Takes a migration that is shown.
    pub(crate) fn take(&mut self, m: Migration) {
        let sums = &mut self.sums[m.cause as usize];
        sums.count += 1;
        sums.queued += u64::from(m.queued);
        sums.recorded += u64::from(m.recorded);
        let distance = self.topology.distance(m.orig, m.dest);
        if let Some(distance) = distance {
            sums.by_distance[distance as usize] += 1;
        }
        if let Some(delay) = m.first_run {
            sums.delays.add(delay);
            if let Some(distance) = distance {
                sums.delays_by_distance[distance as usize].add(delay);
            }
        }
        if sums.count <= ARROWS {
            sums.arrows.push(m);
        }
        if self.each.is_some() || self.listed.is_some() {
            let known = self.topology.distances();
            let entry = ListedMigration {
                ts_ns: m.ts,
                cpu: m.on,
                pid: m.pid,
                command: m.command,
                from_cpu: m.orig,
                to_cpu: m.dest,
                cause: m.cause,
                recorded: m.recorded,
                queued: m.queued,
                distance: distance.filter(|distance| known[*distance as usize]),
                until_run_ns: m.first_run,
            };
            if let Some(each) = self.each {
                each(&entry);
            }
            if let Some(listed) = self.listed.as_mut().filter(|listed| listed.len() < LISTED) {
                listed.push(entry);
            }
        }
        self.densities.entry((m.cause, m.dest)).or_default().add(m.ts, self.from, self.to);
    }
}

/// The causes whose migrations are drawn as arrows: the rarest ones, as many as fit the page together.
fn arrowed(causes: &[Cell]) -> Vec<Cause> {
    let mut by_count: Vec<&Cell> = causes.iter().collect();
    by_count.sort_by_key(|cell| cell.count);
    let mut sum = 0;
    let fits = |cell: &&Cell| {
        sum += cell.count;
        sum <= ARROWS
    };
    by_count.into_iter().take_while(fits).map(|cell| cell.cause).collect()
}

/// The colour behind the arrows of a herd.
const HERD: Color = Color::rgb(0xff, 0xd9, 0x66);

/// The figure: arrows from CPU to CPU for the causes whose migrations fit the page, bars on the CPU that the task
/// goes to for the others.
pub fn balance_figure(
    report: &BalanceReport,
    options: &Options,
    heading: &Heading,
    background: Option<&DrawLanes<'_>>,
) -> Figure {
    let is_arrowed = |cell: &&Cell| report.arrowed.contains(&cell.cause);
    let (mut arrowed, barred): (Vec<&Cell>, Vec<&Cell>) = report.causes.iter().partition(is_arrowed);
    let lanes: Vec<Vec<(Option<&Density>, Color)>> = (options.cpus.iter())
        .map(|(cpu, _)| {
            let part = |cell: &&Cell| (report.densities.get(&(cell.cause, *cpu)), color(cell.cause));
            barred.iter().map(part).collect()
        })
        .collect();
    let joined = joined(lanes.len());
    let full = fullest(&lanes, joined);
    let height = lanes_height(options.cpus.len().max(options.all_cpus.len()));
    let span = report.to_ns.since(report.from_ns).seconds();
    let arrow = "an arrow from the CPU that a task leaves to the one it goes to";
    let bars = scale_of_bars(full, "migrations to that CPU", span, joined);
    let how = match (arrowed.is_empty(), barred.is_empty()) {
        (_, true) => arrow.to_owned(),
        (true, false) => bars,
        (false, false) => format!("{arrow}; frequent causes as bars: {bars}"),
    };
    let texts = heading.texts(
        format!("{}: {}, and why", heading.trace, sched::nouns::counted(report.total, "migration")),
        format!(
            "{span:.6} s shown; {how}. Herds: {}.{} Percentages are of all migrations shown.",
            report.herds.len(),
            behind(background)
        ),
    );
    let mut legend: Vec<LegendEntry> = report
        .causes
        .iter()
        .map(|c| LegendEntry {
            swatch: match is_arrowed(&c) {
                true => Swatch::Arrow(color(c.cause), dash(c.cause)),
                false => Swatch::Area(Paint::Solid(color(c.cause))),
            },
            label: format!("{} ({}, {:.1} %)", c.cause.name(), c.count, 100.0 * c.count as f64 / report.total as f64),
        })
        .collect();
    if !report.herds.is_empty() {
        let label =
            format!("herd ({}): four queued tasks or more from one CPU to one other within 1 ms", report.herds.len());
        legend.push(LegendEntry { swatch: Swatch::Area(Paint::Solid(HERD)), label });
    }
    let mut page = Page::new(WIDTH, height, &texts, &legend);
    let scale = page.scale(report.from_ns, report.to_ns, options.zero);
    page.time_axis(&scale);
    if let Some(draw) = background {
        draw(&mut page.figure, &scale, page.top, page.height);
    }
    let layout = LaneLayout::among(&options.cpus, &options.all_cpus, page.top, page.height);
    draw_herds(&mut page.figure, report, options, &scale, &layout);
    draw_bars(&mut page.figure, (&lanes, joined), full, &scale, &layout);
    // The rarest in front.
    arrowed.sort_by_key(|cell| std::cmp::Reverse(cell.count));
    for cell in arrowed {
        draw_arrows(&mut page.figure, report, cell.cause, options, &scale, &layout);
    }
    page.lanes_title("CPU");
    page.finish()
}

/// A broad line behind the arrows, from the CPU that the tasks leave to the one they go to.
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
        // To a CPU that is not shown there is no point to draw.
        if let Some(to) = to {
            let heads = if from.is_some_and(|from| from > to) { &mut up } else { &mut down };
            heads.push(Point { x, y: to });
        }
    }
    figure.push(Item::Lines { stroke: color(cause), width: 50, dash: dash(cause), lines });
    figure.push(Item::Markers { shape: Shape::Peak, fill: color(cause), size, at: up });
    figure.push(Item::Markers { shape: Shape::Triangle, fill: color(cause), size, at: down });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn migration(ts: i64, cause: Cause, first_run: Option<Dur>) -> Migration {
        let (pid, command) = (Pid(7), Comm::new(b"task"));
        let (orig, dest) = (Cpu(0), Cpu(1));
        Migration { ts: Ts(ts), on: Cpu(1), pid, command, orig, dest, cause, queued: false, recorded: false, first_run }
    }

    #[test]
    fn rare_causes_keep_their_arrows_above_the_bars_of_frequent_ones() {
        let (topology, cpus) = (Topology::default(), ChosenCpus::default());
        let (from, to) = (Ts(0), Ts(4_000_000));
        let mut balance = Balance::new(&topology, &cpus, from, to).listing(true);
        // Five wakeup placements in each column, and two steals.
        (0..2000).for_each(|n| balance.take(migration(n * 2000, Cause::Wakeup, Some(Dur(10)))));
        (0..2).for_each(|n| balance.take(migration(n * 5001, Cause::NewIdle, None)));
        let report = balance.finish(to, &SchedState::default());
        assert_eq!((report.total, report.arrowed.as_slice(), report.unlisted), (2002, &[Cause::NewIdle][..], None));
        let listed = report.migrations.as_ref().expect("a list");
        assert!(listed.len() == 2002 && listed.is_sorted_by_key(|m| m.ts_ns));
        let options = Options { zero: from, cpus: vec![(Cpu(0), None), (Cpu(1), None)], all_cpus: Vec::new() };
        let figure = balance_figure(&report, &options, &Heading::default(), None);
        let of = |wanted: Color, items: &[Item]| {
            let (mut lines, mut bars, mut heads) = (0, Vec::new(), 0);
            for item in items {
                match item {
                    Item::Lines { stroke, lines: these, .. } if *stroke == wanted => lines += these.len(),
                    Item::Rects { fill: Paint::Solid(fill), rects } if *fill == wanted => bars.extend(rects.clone()),
                    Item::Markers { fill, at, .. } if *fill == wanted => heads += at.len(),
                    _ => {}
                }
            }
            (lines, bars, heads)
        };
        // One arrow is in the legend.
        let (lines, bars, heads) = of(color(Cause::NewIdle), &figure.items);
        assert_eq!((lines, bars.len(), heads), (3, 0, 3));
        let (lines, mut bars, heads) = of(color(Cause::Wakeup), &figure.items);
        bars.retain(|bar| bar.w < 3 * PT);
        assert_eq!((lines, bars.len(), heads), (0, 400, 0));
        assert!(bars.iter().all(|bar| bar.h == bars[0].h), "five in each column");
        let says =
            |words: &str| figure.items.iter().any(|i| matches!(i, Item::Text { text, .. } if text.contains(words)));
        assert!(says("a bar as high as its lane is 5 migrations to that CPU in 10.0 \u{b5}s"));
    }

    #[test]
    fn parts_of_a_bar_are_visible_and_no_higher_than_the_lane() {
        use crate::figure::heights;
        assert_eq!(heights(&[50, 50], 100, 1600), [800, 800]);
        assert_eq!(heights(&[0, 25], 100, 1600), [0, 400]);
        // One of ten thousand is seen, and the other leaves it room.
        assert_eq!(heights(&[9_999, 1], 10_000, 1600), [1500, 100]);
        assert_eq!(heights(&[1], 1, 0), [1], "lanes without a height");
    }
}
