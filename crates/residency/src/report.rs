//! The report: groups with their homes, caches, moves by cause.

use crate::crowded::Crowded;
use crate::groups::GroupedBy;
use crate::sums::{COLUMNS, Llc, RunSums, Sums};
use sched::topology::{CpuOrder, format_cpu_list};
use sched::{Cause, Cpu, Dur, OfSelection, Pid, SchedState, Ts};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The name and version of the document.
pub const SCHEMA: &str = "schedviz/residency/1";

/// Maximum number of tasks that are listed away from their home.
const MOST_AWAY: usize = 16;

/// The caches and cores on which groups of tasks ran.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResidencyReport {
    /// The name and version of this schema.
    pub schema: &'static str,
    /// The rule by which tasks form groups.
    pub by: GroupedBy,
    /// The start of the window on the trace's clock, in nanoseconds.
    pub from_ns: Ts,
    /// The end of the window on the trace's clock, in nanoseconds.
    pub to_ns: Ts,
    /// The window's length in nanoseconds.
    pub window_ns: Dur,
    /// The run time of all groups, in nanoseconds.
    pub run_ns: Dur,
    /// The share of the run time under known last-level caches that each group spent under its home, over all groups, in percent; absent
    /// without a known cache.
    pub residency_percent: Option<f64>,
    /// The same share over the groups that could have run elsewhere, in percent: those with two or more runs, of tasks that are no bound kernel
    /// threads; absent without any.
    pub movable_residency_percent: Option<f64>,
    /// The number of these groups.
    pub movable_groups: u64,
    /// The last-level caches, in the order of their numbers.
    pub llcs: Vec<LlcReport>,
    /// The groups, those that ran longest first.
    pub groups: Vec<GroupReport>,
    /// The moves between last-level caches by cause, the most frequent first.
    pub moves: Vec<MovesByCause>,
    /// The tasks that ran last under another cache than the home of their group, those that left first; at most 16.
    pub away: Vec<Away>,
    /// The number of tasks that ran last under another cache than the home of their group.
    pub away_count: u64,
    /// Whether the topology has cores with several CPUs.
    pub has_siblings: bool,
    /// The time during which siblings of a core ran tasks while a whole core idled, whatever tasks are selected; null where no core has several CPUs.
    pub crowded: Option<Crowded>,
    /// The number of tasks whose process no record shows, each of which counts as a process of its own; absent unless groups are
    /// processes.
    pub tasks_without_process: Option<u64>,
    /// The reason why there are no figures of the selected tasks, if that is so.
    pub selection_unknown: Option<String>,
    /// The run time by column of the figure, cache and group.
    #[serde(skip)]
    pub(crate) cells: BTreeMap<(usize, Llc, usize), u64>,
    /// The number of columns of the figure.
    #[serde(skip)]
    pub(crate) columns: usize,
}

/// A last-level cache.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LlcReport {
    /// The number of the cache.
    pub llc: u32,
    /// The CPUs with events under the cache.
    pub cpus: String,
    /// The number of CPUs with events under the cache.
    pub cpu_count: u64,
    /// The run time of the groups under the cache, in nanoseconds.
    pub run_ns: Dur,
    /// The waiting of the groups on the queues under the cache, in nanoseconds of tasks.
    pub wait_ns: Dur,
    /// The mean number of running and waiting tasks under the cache for each of its CPUs.
    pub occupancy: f64,
    /// The groups that ran or waited under the cache, the largest occupancy first; their times sum up to those of the cache.
    pub groups: Vec<OccupancyRow>,
}

/// The part of a group in the occupancy of a cache.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OccupancyRow {
    /// The name of the group.
    pub name: String,
    /// The run time of the group under the cache, in nanoseconds.
    pub run_ns: Dur,
    /// The waiting of the group on the queues under the cache, in nanoseconds of tasks.
    pub wait_ns: Dur,
    /// The mean number of running and waiting tasks of the group under the cache for each of its CPUs.
    pub occupancy: f64,
}

/// A group of tasks.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupReport {
    /// The name of the group.
    pub name: String,
    /// The number of tasks of the group, by their lives and names.
    pub tasks: u64,
    /// The run time of the group, in nanoseconds.
    pub run_ns: Dur,
    /// The number of the last-level cache under which the group ran longest; absent where no cache is known.
    pub home_llc: Option<u32>,
    /// The share of the run time under known caches that the group spent under its home, in percent.
    pub residency_percent: Option<f64>,
    /// The number of the NUMA node in which the group ran longest; absent where no node is known.
    pub home_node: Option<u32>,
    /// The share of the run time in known nodes that the group spent in the one where it ran longest, in percent.
    pub node_residency_percent: Option<f64>,
    /// The mean number of running and waiting tasks of the group under its home for each CPU of that.
    pub home_occupancy: Option<f64>,
    /// The number of moves of its tasks between last-level caches.
    pub moves: u64,
    /// The number of moves between last-level caches for each second of the window.
    pub moves_per_second: f64,
    /// The number of moves back to the cache that the task left by its move before, at most 10 ms earlier.
    pub returns_10ms: u64,
    /// The number of moves back to the cache that the task left by its move before, at most 100 ms earlier.
    pub returns_100ms: u64,
    /// The share of the run time with siblings of known state during which a sibling was busy, in percent; absent without siblings.
    pub beside_busy_percent: Option<f64>,
    /// The number of placements of its tasks at wakeups and forks, where cores have several CPUs.
    pub placements: u64,
    /// The placements on an idle CPU with a busy sibling while every CPU of some other core idled.
    pub placed_beside: PlacedBeside,
}

/// Placements beside a busy sibling, by the nearest core of which every CPU idled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlacedBeside {
    /// The number of placements with an idle core under the same last-level cache.
    pub llc: u64,
    /// The number of placements with the nearest idle core in the same node.
    pub node: u64,
    /// The number of placements with the nearest idle core beyond the node.
    pub beyond: u64,
}

/// The moves between last-level caches with one cause.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MovesByCause {
    /// The cause of the moves.
    pub cause: Cause,
    /// The number of the moves.
    pub moves: u64,
}

/// A task that ran last under another cache than the home of its group.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Away {
    /// The PID of the task.
    pub pid: Pid,
    /// The name of its group.
    pub group: String,
    /// The number of the cache under which the task ran last.
    pub llc: u32,
    /// The beginning of its first run there since its latest run elsewhere, in nanoseconds after the start of the trace.
    pub since_in_trace_ns: u64,
}

impl OfSelection for ResidencyReport {
    fn withhold(&mut self, why: String) {
        self.run_ns = Dur(0);
        self.residency_percent = None;
        self.movable_residency_percent = None;
        self.movable_groups = 0;
        self.llcs.clear();
        self.groups.clear();
        self.moves.clear();
        self.away.clear();
        self.away_count = 0;
        self.cells.clear();
        self.selection_unknown = Some(why);
    }
}

/// The key with the greatest value, the lowest of several, with that value and the sum of all; known keys alone.
fn home(values: &BTreeMap<Option<u32>, u64>) -> Option<(u32, u64, u64)> {
    let known = values.iter().filter_map(|(key, ns)| Some(((*key)?, *ns)));
    let total = known.clone().map(|(_, ns)| ns).fold(0, u64::saturating_add);
    let (key, most) = known.max_by_key(|(key, ns)| (*ns, Reverse(*key)))?;
    Some((key, most, total))
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

/// Makes the report of an analysis.
pub(crate) fn build(analysis: &RunSums<'_>, end: Ts, state: &SchedState) -> ResidencyReport {
    let window = end.since(analysis.options.from);
    let mut cpus: BTreeMap<u32, Vec<Cpu>> = BTreeMap::new();
    for cpu in state.observed().filter(|cpu| analysis.options.cpus.has(*cpu)) {
        analysis
            .options
            .topology
            .group(cpu, CpuOrder::Llc)
            .into_iter()
            .for_each(|llc| cpus.entry(llc).or_default().push(cpu));
    }
    let cpu_time = |llc: u32| window.0 as f64 * cpus.get(&llc).map_or(0, Vec::len) as f64;
    let mut groups: Vec<(usize, GroupReport)> = analysis
        .groups
        .all
        .iter()
        .enumerate()
        .map(|(place, (name, tasks))| {
            let sums = analysis.sums.get(place).cloned().unwrap_or_default();
            (place, group(name, *tasks, &sums, window, cpu_time))
        })
        .collect();
    let homes: Vec<Option<u32>> = groups.iter().map(|(_, group)| group.home_llc).collect();
    groups.retain(|(_, group)| group.run_ns > Dur(0) || group.moves > 0 || group.placements > 0);
    groups.sort_by(|(_, a), (_, b)| b.run_ns.cmp(&a.run_ns).then_with(|| a.name.cmp(&b.name)));
    let ranks: BTreeMap<usize, usize> = groups.iter().enumerate().map(|(rank, (place, _))| (*place, rank)).collect();
    let llcs = cpus.iter().map(|(llc, cpus)| {
        let groups = occupants(analysis, *llc, cpu_time(*llc));
        let sum = |of: fn(&OccupancyRow) -> Dur| groups.iter().map(|group| of(group).0).fold(0, u64::saturating_add);
        let (run, wait) = (sum(|group| group.run_ns), sum(|group| group.wait_ns));
        LlcReport {
            llc: *llc,
            cpus: format_cpu_list(cpus),
            cpu_count: cpus.len() as u64,
            run_ns: Dur(run),
            wait_ns: Dur(wait),
            occupancy: (run + wait) as f64 / cpu_time(*llc).max(1.0),
            groups,
        }
    });
    let share = |is_counted: fn(&Sums) -> bool| {
        let homes = analysis.sums.iter().filter(|sums| is_counted(sums)).filter_map(|sums| home(&sums.run));
        let (count, most, all) = homes.fold((0, 0, 0), |sum, (_, most, all)| (sum.0 + 1, sum.1 + most, sum.2 + all));
        (count, percent(most, all))
    };
    let (_, residency_percent) = share(|_| true);
    let (movable_groups, movable_residency_percent) = share(|sums| sums.movable_runs >= 2);
    let mut moves: Vec<MovesByCause> = Cause::ALL
        .into_iter()
        .zip(analysis.moves_by_cause)
        .filter(|(_, moves)| *moves > 0)
        .map(|(cause, moves)| MovesByCause { cause, moves })
        .collect();
    moves.sort_by_key(|of| Reverse(of.moves));
    let mut away = away(analysis, &homes, state);
    let away_count = away.len() as u64;
    away.truncate(MOST_AWAY);
    let cells =
        analysis.cells.iter().filter_map(|((column, llc, group), ns)| Some(((*column, *llc, *ranks.get(group)?), *ns)));
    ResidencyReport {
        schema: SCHEMA,
        by: analysis.options.by,
        from_ns: analysis.options.from,
        to_ns: analysis.options.to,
        window_ns: window,
        run_ns: Dur(groups.iter().map(|(_, group)| group.run_ns.0).fold(0, u64::saturating_add)),
        residency_percent,
        movable_residency_percent,
        movable_groups,
        llcs: llcs.collect(),
        moves,
        away,
        away_count,
        has_siblings: analysis.has_siblings,
        crowded: None,
        tasks_without_process: (analysis.options.by == GroupedBy::Process).then_some(analysis.groups.without_process),
        selection_unknown: None,
        cells: cells.collect(),
        columns: COLUMNS,
        groups: groups.into_iter().map(|(_, group)| group).collect(),
    }
}

/// The groups that ran or waited under a cache, whose CPUs had this time, the largest occupancy first.
fn occupants(analysis: &RunSums<'_>, llc: u32, cpu_time: f64) -> Vec<OccupancyRow> {
    let of = |((name, _), sums): (&(String, u64), &Sums)| {
        let time = |times: &BTreeMap<Llc, u64>| times.get(&Some(llc)).copied().unwrap_or(0);
        let (run, wait) = (time(&sums.run), time(&sums.wait));
        (run + wait > 0).then(|| OccupancyRow {
            name: name.clone(),
            run_ns: Dur(run),
            wait_ns: Dur(wait),
            occupancy: (run + wait) as f64 / cpu_time.max(1.0),
        })
    };
    let mut groups: Vec<OccupancyRow> = analysis.groups.all.iter().zip(&analysis.sums).filter_map(of).collect();
    groups
        .sort_by(|a, b| (b.run_ns.0 + b.wait_ns.0).cmp(&(a.run_ns.0 + a.wait_ns.0)).then_with(|| a.name.cmp(&b.name)));
    groups
}

fn group(name: &str, tasks: u64, sums: &Sums, window: Dur, cpu_time: impl Fn(u32) -> f64) -> GroupReport {
    let (llc, node) = (home(&sums.run), home(&sums.run_by_node));
    let [llc_missed, node_missed, beyond] = sums.placed_beside;
    let occupied = |llc: u32| {
        let of = |times: &BTreeMap<Llc, u64>| times.get(&Some(llc)).copied().unwrap_or(0);
        (of(&sums.run) + of(&sums.wait)) as f64 / cpu_time(llc).max(1.0)
    };
    GroupReport {
        name: name.to_owned(),
        tasks,
        run_ns: Dur(sums.run.values().copied().fold(0, u64::saturating_add)),
        home_llc: llc.map(|(llc, ..)| llc),
        residency_percent: llc.and_then(|(_, most, all)| percent(most, all)),
        home_node: node.map(|(node, ..)| node),
        node_residency_percent: node.and_then(|(_, most, all)| percent(most, all)),
        home_occupancy: llc.map(|(llc, ..)| occupied(llc)),
        moves: sums.moves,
        moves_per_second: sums.moves as f64 / window.seconds().max(1e-9),
        returns_10ms: sums.returns[0],
        returns_100ms: sums.returns[1],
        beside_busy_percent: percent(sums.beside_busy_ns, sums.with_siblings_ns),
        placements: sums.placements,
        placed_beside: PlacedBeside { llc: llc_missed, node: node_missed, beyond },
    }
}

/// The living tasks whose latest run was under another cache than the home of their group, those that left first at the head.
fn away(analysis: &RunSums<'_>, homes: &[Option<u32>], state: &SchedState) -> Vec<Away> {
    let living = analysis.tracks.iter().filter(|(task, _)| state.task(*task).is_some());
    let mut away: Vec<Away> = living
        .filter_map(|(_, track)| {
            let (last, home) = (track.last?, (*homes.get(track.group)?)?);
            (last != home).then(|| Away {
                pid: track.pid,
                group: analysis.groups.all[track.group].0.clone(),
                llc: last,
                since_in_trace_ns: track.since.since(analysis.options.zero).0,
            })
        })
        .collect();
    away.sort_by_key(|away| (away.since_in_trace_ns, away.pid));
    away
}
