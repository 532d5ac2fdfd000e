//! The report: pairs of victims and culprits, and the sums of each group.

use crate::parties::{By, Parties, PartyKind};
use crate::sums::{MatrixSums, PairSums};
use crate::witness::PressureReport;
use sched::{Dur, OfSelection, Ts};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The name and version of the document.
pub const SCHEMA: &str = "schedviz/neighbours/1";

/// The waiting of all tasks, divided by victims and culprits.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NeighboursReport {
    /// The name and version of this schema.
    pub schema: &'static str,
    /// The rule by which tasks form victims and culprits.
    pub by: By,
    /// The start of the window on the trace's clock, in nanoseconds.
    pub from_ns: Ts,
    /// The end of the window on the trace's clock, in nanoseconds.
    pub to_ns: Ts,
    /// The waiting of all victims, in nanoseconds of tasks: the sum over `pairs`; absent where there are no figures.
    pub wait_ns: Option<Dur>,
    /// The throttled time of all victims, in nanoseconds of tasks, which is no part of `wait_ns`; null where there are no figures, or cgroups
    /// were throttled and no record shows their tasks.
    pub throttled_ns: Option<Dur>,
    /// The number of preemptions of victims: the sum over `pairs`; absent where there are no figures.
    pub preemptions: Option<u64>,
    /// The victims and culprits: those that waited or were throttled longest first, then those that caused most waiting.
    pub groups: Vec<PartyReport>,
    /// The pairs with waiting or preemptions, the greatest waiting first.
    pub pairs: Vec<PairReport>,
    /// The queued time of the counted tasks by kind, in nanoseconds; absent where there are no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<sched::QueuedTimes>,
    /// The pressure of CPUs by the kernel's rule, and by the kernel itself; absent for a selection of tasks or CPUs, which has none.
    pub pressure: Option<PressureReport>,
    /// The number of tasks whose process no record shows, each of which counts as a process of its own; absent unless groups are
    /// processes.
    pub tasks_without_process: Option<u64>,
    /// The reason why there are no figures of the selected tasks, if that is so.
    pub selection_unknown: Option<String>,
}

/// A group of tasks, or another culprit.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartyReport {
    /// The name of the group.
    pub name: String,
    /// The kind of the group.
    pub kind: PartyKind,
    /// The number of tasks of the group, by their lives and names.
    pub tasks: u64,
    /// The waiting of the group, in nanoseconds of tasks: the sum of the seven that follow.
    pub wait_ns: Dur,
    /// The waiting while a task of the same group ran, in nanoseconds of tasks.
    pub behind_own_ns: Dur,
    /// The waiting while a task of another group ran, in nanoseconds of tasks; kernel threads aside.
    pub behind_others_ns: Dur,
    /// The waiting while a kernel thread ran that is of another group, in nanoseconds of tasks.
    pub behind_kernel_ns: Dur,
    /// The waiting while the CPU handled interrupts, in nanoseconds of tasks.
    pub behind_interrupts_ns: Dur,
    /// The waiting on a CPU whose idle task had not switched yet, for less than 1 ms, in nanoseconds of tasks.
    pub behind_idle_ns: Dur,
    /// The waiting of tasks that were held back on their own idle CPU, for 1 ms or longer, in nanoseconds of tasks.
    pub held_back_ns: Dur,
    /// The waiting on a CPU whose occupant is unknown, in nanoseconds of tasks.
    pub behind_unknown_ns: Dur,
    /// The throttled time of the group, in nanoseconds of tasks; null where cgroups were throttled and no record shows their tasks.
    pub throttled_ns: Option<Dur>,
    /// The waiting of other groups while this one occupied their CPUs, in nanoseconds of tasks.
    pub caused_ns: Dur,
    /// The number of times that a task of the group was preempted by a task of another group.
    pub preempted: u64,
    /// The number of times that a task of the group preempted a task of another group.
    pub preempts: u64,
}

/// A victim with a culprit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairReport {
    /// The name of the group that waited.
    pub victim: String,
    /// The name of the group that occupied the CPU meanwhile.
    pub culprit: String,
    /// The kind of the culprit.
    pub kind: PartyKind,
    /// The waiting of the victim while the culprit occupied its CPU, in nanoseconds of tasks.
    pub wait_ns: Dur,
    /// The share in all waiting, in percent.
    pub share_percent: f64,
    /// The number of times that a task of the culprit preempted one of the victim.
    pub preemptions: u64,
}

impl NeighboursReport {
    /// Leaves the throttled time unknown: cgroups were throttled, and no record shows their tasks.
    pub(crate) fn hide_throttling(&mut self) {
        self.throttled_ns = None;
        self.groups.iter_mut().for_each(|group| group.throttled_ns = None);
    }
}

impl OfSelection for NeighboursReport {
    fn withhold(&mut self, why: String) {
        *self = NeighboursReport {
            wait_ns: None,
            throttled_ns: None,
            preemptions: None,
            groups: Vec::new(),
            pairs: Vec::new(),
            pressure: None,
            queued: None,
            selection_unknown: Some(why),
            ..self.clone()
        };
    }
}

/// The group of a place, without any sums.
fn group(name: String, kind: PartyKind) -> PartyReport {
    let zero = Dur(0);
    PartyReport {
        name,
        kind,
        tasks: 0,
        wait_ns: zero,
        behind_own_ns: zero,
        behind_others_ns: zero,
        behind_kernel_ns: zero,
        behind_interrupts_ns: zero,
        behind_idle_ns: zero,
        held_back_ns: zero,
        behind_unknown_ns: zero,
        throttled_ns: Some(zero),
        caused_ns: zero,
        preempted: 0,
        preempts: 0,
    }
}

impl PartyReport {
    /// Adds the sums of this group as the victim of a culprit.
    fn suffer(&mut self, culprit: PartyKind, is_own: bool, sums: PairSums) {
        let wait = Dur(sums.wait_ns);
        self.wait_ns += wait;
        *match culprit {
            _ if is_own => &mut self.behind_own_ns,
            PartyKind::Tasks | PartyKind::UnknownGroup | PartyKind::Rest => &mut self.behind_others_ns,
            PartyKind::Kernel => &mut self.behind_kernel_ns,
            PartyKind::Interrupts => &mut self.behind_interrupts_ns,
            PartyKind::Idle => &mut self.behind_idle_ns,
            PartyKind::HeldBack => &mut self.held_back_ns,
            PartyKind::Unknown => &mut self.behind_unknown_ns,
        } += wait;
        self.preempted += if is_own { 0 } else { sums.preemptions };
    }
}

/// Makes the report of an analysis.
pub(crate) fn build(by: By, (from_ns, to_ns): (Ts, Ts), parties: &Parties, sums: MatrixSums) -> NeighboursReport {
    let MatrixSums { pairs, throttled } = sums;
    let into = parties.joined(by);
    let mut groups: Vec<PartyReport> = Vec::new();
    for (place, party) in parties.all.iter().enumerate() {
        // A command with one name has that name.
        let is_single = by == By::Command && party.kind == PartyKind::Tasks && party.comms.len() == 1;
        let is_joined = into.iter().enumerate().any(|(other, to)| *to == place && other != place);
        let name = match party.comms.first().filter(|comm| is_single && !is_joined && !comm.is_empty()) {
            Some(comm) => comm.to_string(),
            None => party.name.clone(),
        };
        groups.push(group(name, party.kind));
        if into[place] == place {
            groups[place].tasks += party.tasks;
        }
    }
    for (place, party) in parties.all.iter().enumerate().filter(|(place, _)| into[*place] != *place) {
        groups[into[place]].tasks += party.tasks;
    }
    let mut sums: BTreeMap<(usize, usize), PairSums> = BTreeMap::new();
    for ((victim, culprit), of) in pairs {
        let sum = sums.entry((into[victim], into[culprit])).or_default();
        sum.wait_ns = sum.wait_ns.saturating_add(of.wait_ns);
        sum.preemptions += of.preemptions;
    }
    for ((victim, culprit), sum) in &sums {
        let (is_own, kind) = (victim == culprit, groups[*culprit].kind);
        groups[*victim].suffer(kind, is_own, *sum);
        if !is_own {
            groups[*culprit].caused_ns += Dur(sum.wait_ns);
            groups[*culprit].preempts += sum.preemptions;
        }
    }
    for (victim, ns) in throttled {
        groups[into[victim]].throttled_ns.get_or_insert_default().0 += ns;
    }
    let total: u64 = sums.values().fold(0, |total, sum| total.saturating_add(sum.wait_ns));
    let mut listed: Vec<PairReport> = sums
        .iter()
        .map(|((victim, culprit), sum)| PairReport {
            victim: groups[*victim].name.clone(),
            culprit: groups[*culprit].name.clone(),
            kind: groups[*culprit].kind,
            wait_ns: Dur(sum.wait_ns),
            share_percent: 100.0 * sum.wait_ns as f64 / total.max(1) as f64,
            preemptions: sum.preemptions,
        })
        .collect();
    listed.sort_by(|a, b| {
        let order = |pair: &PairReport| (Reverse(pair.wait_ns), Reverse(pair.preemptions));
        order(a).cmp(&order(b)).then_with(|| (&a.victim, &a.culprit).cmp(&(&b.victim, &b.culprit)))
    });
    groups.retain(|group| group.tasks > 0 || group.caused_ns > Dur(0));
    groups.sort_by(|a, b| {
        let order = |group: &PartyReport| {
            (
                Reverse(group.wait_ns.0.saturating_add(group.throttled_ns.unwrap_or_default().0)),
                Reverse(group.caused_ns),
            )
        };
        order(a).cmp(&order(b)).then_with(|| a.name.cmp(&b.name))
    });
    NeighboursReport {
        schema: SCHEMA,
        by,
        from_ns,
        to_ns,
        wait_ns: Some(Dur(total)),
        throttled_ns: Some(groups.iter().fold(Dur(0), |mut sum, group| {
            sum += group.throttled_ns.unwrap_or_default();
            sum
        })),
        preemptions: Some(listed.iter().map(|pair| pair.preemptions).sum()),
        groups,
        pairs: listed,
        pressure: None,
        queued: None,
        tasks_without_process: (by == By::Process).then_some(parties.without_process),
        selection_unknown: None,
    }
}
