//! The report: as numbers.

use crate::Wakers;
use crate::components::{WakeComponent, components};
use crate::edges::{EdgeKey, EdgeSums, EdgeWeight, PartiesBy, PartyKey, WakeEdge, WakeParty, known_sum};
use crate::futex::{FutexKey, FutexSums, FutexTable};
use sched::lengths::Summary;
use sched::{OfSelection, SchedState, Ts};
use serde::Serialize;
use std::collections::BTreeMap;

/// The name and version of the document's schema.
pub(crate) const SCHEMA: &str = "schedviz/wakers/1";

/// Two names that wake each other: commands, tasks, processes or cgroups.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakePair {
    /// The one of the two that wakes the other more often.
    pub first: WakeParty,
    /// The other one of the two.
    pub second: WakeParty,
    /// The number of wakeups of the second by the first.
    pub forth: u64,
    /// The number of wakeups of the first by the second.
    pub back: u64,
    /// The part of all wakeups of the second that the first makes, from 0 to 1.
    pub part_of_second: f64,
    /// The part of all wakeups of the first that the second makes, from 0 to 1.
    pub part_of_first: f64,
    /// Whether the pair is strongly connected: each makes at least half of the wakeups of the other.
    pub is_strong: bool,
    /// The number of wakeups in both directions after which the woken task was queued on a CPU with another last-level cache than
    /// the waker's; null where the topology shows it of none.
    pub other_llc: Option<u64>,
}

/// The wakeups at a futex of one name by another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FutexEdge {
    /// The address of the futex in its process, as a hexadecimal number.
    pub address: String,
    /// The waker: it was in a call of `futex` that wakes.
    pub waker: WakeParty,
    /// The woken task.
    pub woken: WakeParty,
    /// The number of wakeups.
    pub wakeups: u64,
    /// The times that the woken tasks had slept, where their beginning is known.
    pub slept: Summary,
    /// The times that the woken tasks waited to run, where the waking is known.
    pub waited: Summary,
}

/// The graph of the wakeups in a window.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakersReport {
    /// The name and version of the schema, `schedviz/wakers/1`.
    pub schema: &'static str,
    /// The start of the window, in nanoseconds of the trace's clock.
    pub from_ns: Ts,
    /// The end of the window, in nanoseconds of the trace's clock.
    pub to_ns: Ts,
    /// The reason why there are no figures: the selected tasks are unknown, none is in the window, or no event of
    /// wakeups was recorded; absent if there are figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection_unknown: Option<String>,
    /// The kind of the nodes.
    pub by: PartiesBy,
    /// The number by which edges are ordered.
    pub weight: EdgeWeight,
    /// The number of wakeups whose tasks ran in the window.
    pub wakeups: Option<u64>,
    /// The number of these that a task made; absent where `sched_waking` was not recorded.
    pub by_tasks: Option<u64>,
    /// The number of these that an interrupt or softirq handler made; absent where `sched_waking` was not recorded.
    pub by_interrupts: Option<u64>,
    /// The number of these whose waking was not recorded: nothing shows the waker.
    pub by_unknown: Option<u64>,
    /// The number of these that are in no edge, since there were more than 32,768 pairs.
    pub in_no_edge: Option<u64>,
    /// The number of wakeups whose tasks had not run at the end of the window.
    pub open: Option<u64>,
    /// The wakeups by tasks, the heaviest edge first.
    pub edges: Vec<WakeEdge>,
    /// The wakeups by interrupt and softirq handlers, the heaviest first. The waker in each is the interrupted task, which may have
    /// nothing to do with the wakeup.
    pub interrupts: Vec<WakeEdge>,
    /// The pairs that wake each other, those that do so most often first.
    pub pairs: Vec<WakePair>,
    /// The groups of three and more that wake each other in a ring, those with the most wakeups first.
    pub components: Vec<WakeComponent>,
    /// The wakeups by futex, those with the most first; absent unless they are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub futexes: Option<Vec<FutexEdge>>,
}

impl OfSelection for WakersReport {
    fn withhold(&mut self, why: String) {
        let WakersReport { schema, from_ns, to_ns, by, weight, .. } = *self;
        *self = WakersReport {
            schema,
            from_ns,
            to_ns,
            selection_unknown: Some(why),
            by,
            weight,
            wakeups: None,
            by_tasks: None,
            by_interrupts: None,
            by_unknown: None,
            in_no_edge: None,
            open: None,
            edges: Vec::new(),
            interrupts: Vec::new(),
            pairs: Vec::new(),
            components: Vec::new(),
            futexes: None,
        };
    }
}

pub(crate) fn build(wakers: Wakers<'_>, end: Ts, state: &SchedState) -> WakersReport {
    let options = wakers.options;
    let open = wakers.open(state);
    let party = |key: PartyKey| key.party(options.groups.as_deref());
    let futexes = options.futexes.as_ref().map(|_| futexes(wakers.at_futexes, party));
    let (mut edges, mut interrupts) = (Vec::new(), Vec::new());
    let (mut unknown, mut rest) = (0, 0);
    // All wakeups of each woken node, of any origin.
    let mut woken_in_all: BTreeMap<WakeParty, u64> = BTreeMap::new();
    for (key, sums) in wakers.edges.sorted() {
        if let EdgeKey::Task(_, woken) | EdgeKey::Interrupt(_, woken) | EdgeKey::Unknown(woken) = key {
            *woken_in_all.entry(party(woken)).or_default() += sums.wakeups;
        }
        match key {
            EdgeKey::Task(waker, woken) => edges.push(edge(party(waker), party(woken), &sums)),
            EdgeKey::Interrupt(waker, woken) => interrupts.push(edge(party(waker), party(woken), &sums)),
            EdgeKey::Unknown(_) => unknown += sums.wakeups,
            EdgeKey::Rest => rest += sums.wakeups,
        }
    }
    // Groups have the order of their names.
    edges.sort_by(|a, b| (&a.waker, &a.woken).cmp(&(&b.waker, &b.woken)));
    interrupts.sort_by(|a, b| (&a.waker, &a.woken).cmp(&(&b.waker, &b.woken)));
    let all = |edges: &[WakeEdge]| edges.iter().map(|edge| edge.wakeups).sum::<u64>();
    let (by_tasks, by_interrupts) = (all(&edges), all(&interrupts));
    let shows_wakers = state.has_wakings();
    let pairs = pairs(&edges, &woken_in_all);
    let components = components(&edges, &woken_in_all);
    // The order of the keys decides among edges of one weight.
    for edges in [&mut edges, &mut interrupts] {
        edges.sort_by_key(|edge| std::cmp::Reverse(edge.weight(options.weight)));
    }
    WakersReport {
        schema: SCHEMA,
        from_ns: wakers.start.unwrap_or(end),
        to_ns: end,
        selection_unknown: None,
        by: options.by,
        weight: options.weight,
        wakeups: Some(by_tasks + by_interrupts + unknown + rest),
        by_tasks: shows_wakers.then_some(by_tasks),
        by_interrupts: shows_wakers.then_some(by_interrupts),
        by_unknown: Some(unknown),
        in_no_edge: Some(rest),
        open: Some(open),
        edges,
        interrupts,
        pairs,
        components,
        futexes,
    }
}

/// The rows of the futexes; those beyond the limit are in none.
fn futexes(table: FutexTable, party: impl Fn(PartyKey) -> WakeParty) -> Vec<FutexEdge> {
    let row = |(key, sums): (FutexKey, FutexSums)| {
        let (address, waker, woken) = key?;
        let (slept, waited) = (sums.slept.summary(), sums.waited.summary());
        let (waker, woken) = (party(waker), party(woken));
        Some(FutexEdge { address: format!("{address:#x}"), waker, woken, wakeups: sums.wakeups, slept, waited })
    };
    // Groups of the same name have the order of their keys.
    let mut rows = table.into_rows();
    rows.sort_unstable_by_key(|(key, _)| *key);
    let mut rows: Vec<FutexEdge> = rows.into_iter().filter_map(row).collect();
    rows.sort_by(|a, b| {
        b.wakeups.cmp(&a.wakeups).then_with(|| (&a.address, &a.waker, &a.woken).cmp(&(&b.address, &b.waker, &b.woken)))
    });
    rows
}

fn edge(waker: WakeParty, woken: WakeParty, sums: &EdgeSums) -> WakeEdge {
    let EdgeSums { wakeups, same_cpu, same_llc, other_llc, .. } = *sums;
    let unknown_llc = wakeups - same_cpu - same_llc - other_llc;
    let is_known = unknown_llc == 0 || same_llc + other_llc > 0;
    WakeEdge {
        waker,
        woken,
        wakeups,
        slept: sums.slept.summary(),
        waited: sums.waited.summary(),
        same_cpu,
        same_llc: is_known.then_some(same_llc),
        other_llc: is_known.then_some(other_llc),
        unknown_llc,
    }
}

/// The pairs among edges that are sorted by waker and woken task.
fn pairs(edges: &[WakeEdge], woken_in_all: &BTreeMap<WakeParty, u64>) -> Vec<WakePair> {
    let find = |waker: &WakeParty, woken: &WakeParty| {
        let place = edges.binary_search_by(|edge| (&edge.waker, &edge.woken).cmp(&(waker, woken)));
        place.ok().map(|place| &edges[place])
    };
    let part = |of: u64, woken: &WakeParty| of as f64 / woken_in_all.get(woken).copied().unwrap_or(of).max(1) as f64;
    let mut pairs: Vec<WakePair> = Vec::new();
    for edge in edges.iter().filter(|edge| edge.waker < edge.woken) {
        let Some(other) = find(&edge.woken, &edge.waker) else { continue };
        let (forth, back) = if edge.wakeups >= other.wakeups { (edge, other) } else { (other, edge) };
        let (part_of_second, part_of_first) = (part(forth.wakeups, &forth.woken), part(back.wakeups, &back.woken));
        pairs.push(WakePair {
            first: forth.waker.clone(),
            second: forth.woken.clone(),
            forth: forth.wakeups,
            back: back.wakeups,
            part_of_second,
            part_of_first,
            is_strong: part_of_second >= 0.5 && part_of_first >= 0.5,
            other_llc: known_sum(forth.other_llc, back.other_llc),
        });
    }
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.back));
    pairs
}
