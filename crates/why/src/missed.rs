//! Missed steals: switches to idle while a counted task waits on another CPU.

use crate::EstimatedGate;
use crate::nearest::Nearest;
use sched::balancer::{NewIdle, NewIdleOutcome, Verdicts};
use sched::lengths::Summary;
use sched::{Dur, Lengths};
use serde::Serialize;

/// The missed steals from one distance.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissedRow {
    /// The distance to the nearest CPU with a counted waiter.
    pub nearest: Nearest,
    /// The number of missed steals.
    pub number: u64,
    /// The share of these missed steals in all switches to idle, in percent.
    pub percent: f64,
    /// The CPU time in violation of the idle stretches that began so, in nanoseconds.
    pub violated_ns: u64,
    /// The time until the CPU next ran a task, where the window shows that.
    pub idle: Summary,
    /// The number of idle stretches whose end is not in the window.
    pub unfinished: u64,
    /// The missed steals by the outcome of new-idle balancing; absent without probes on the balancer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<Vec<OutcomeRow>>,
}

/// The missed steals with one outcome of new-idle balancing.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutcomeRow {
    /// The outcome: that of the attempt which came furthest, of all domains.
    pub outcome: NewIdleOutcome,
    /// The number of missed steals.
    pub number: u64,
    /// The CPU time in violation of the idle stretches that began so, in nanoseconds.
    pub violated_ns: u64,
    /// The verdicts on the tasks that were examined; null without the probe `can_migrate`.
    pub examined: Option<Verdicts>,
}

/// The missed steals with one state of the gate of new-idle balancing.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateRow {
    /// The state of the gate as stock events and the costs in the machine file show it.
    pub gate: EstimatedGate,
    /// The number of missed steals.
    pub number: u64,
    /// The CPU time in violation of the idle stretches that began so, in nanoseconds.
    pub violated_ns: u64,
    /// The missed steals of this state by the outcome of new-idle balancing; absent without probes on the balancer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<Vec<GatedOutcome>>,
}

/// The missed steals with one state of the gate and one recorded outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GatedOutcome {
    /// The recorded outcome of new-idle balancing.
    pub outcome: NewIdleOutcome,
    /// The number of missed steals.
    pub number: u64,
}

/// The missed steals of a window.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missed {
    /// The number of switches to idle that left an empty run queue.
    pub idle_entries: u64,
    /// The number of them that were missed steals.
    pub number: u64,
    /// The number of missed steals within the last-level cache; absent where the topology does not give the caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_llc: Option<u64>,
    /// The missed steals by distance, the nearest first; only distances that occur.
    pub by_distance: Vec<MissedRow>,
    /// The missed steals by the state of the gate of new-idle balancing; absent where the machine file does not have the costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gates: Option<Vec<GateRow>>,
}

#[derive(Clone, Debug, Default)]
struct MissedSums {
    number: u64,
    violated: u64,
    idle: Lengths,
    unfinished: u64,
    /// The number, the time in violation and the verdicts of each outcome, by its index.
    outcomes: [(u64, u64, Verdicts); NewIdleOutcome::ALL.len()],
    /// Probes show the outcomes.
    has_outcomes: bool,
}

impl MissedSums {
    fn join(&mut self, later: &MissedSums) {
        self.number += later.number;
        self.violated = self.violated.saturating_add(later.violated);
        self.idle.merge(&later.idle);
        self.unfinished += later.unfinished;
        for ((number, ns, verdicts), more) in self.outcomes.iter_mut().zip(&later.outcomes) {
            *number += more.0;
            *ns = ns.saturating_add(more.1);
            verdicts.add(&more.2);
        }
        self.has_outcomes |= later.has_outcomes;
    }

    /// The rows; `has_verdicts`: whether verdicts on examined tasks were recorded.
    fn outcome_rows(&self, has_verdicts: bool) -> Vec<OutcomeRow> {
        let row = |(outcome, (number, violated_ns, examined)): (&NewIdleOutcome, &(u64, u64, Verdicts))| OutcomeRow {
            outcome: *outcome,
            number: *number,
            violated_ns: *violated_ns,
            examined: has_verdicts.then_some(*examined),
        };
        let rows = NewIdleOutcome::ALL.iter().zip(&self.outcomes).map(row);
        rows.filter(|row| row.number > 0).collect()
    }
}

impl Missed {
    /// Whether probes on the balancer show the outcomes of new-idle balance; false where no steal was missed.
    pub fn has_outcomes(&self) -> bool {
        self.by_distance.iter().any(|row| row.outcomes.is_some())
    }

    /// The outcomes of all missed steals, in their order, each with its number by distance; nothing without probes.
    pub(crate) fn outcomes(&self) -> Vec<(OutcomeRow, Vec<u64>)> {
        let of = |outcome: NewIdleOutcome| {
            let mut all = OutcomeRow { outcome, number: 0, violated_ns: 0, examined: None };
            let mut numbers = vec![0; self.by_distance.len()];
            for (number, distance) in numbers.iter_mut().zip(&self.by_distance) {
                for row in distance.outcomes.iter().flatten().filter(|row| row.outcome == outcome) {
                    *number = row.number;
                    all.number += row.number;
                    all.violated_ns = all.violated_ns.saturating_add(row.violated_ns);
                    row.examined.iter().for_each(|more| all.examined.get_or_insert_default().add(more));
                }
            }
            (all, numbers)
        };
        NewIdleOutcome::ALL.iter().map(|outcome| of(*outcome)).filter(|(row, _)| row.number > 0).collect()
    }
}

/// Gathers the missed steals.
#[derive(Clone, Debug, Default)]
pub(crate) struct MissedSteals {
    /// The number of switches to idle.
    pub(crate) entries: u64,
    sums: [MissedSums; DISTANCES.len()],
    gates: [GateSums; EstimatedGate::ALL.len()],
    /// Whether the states of gates are known.
    has_gates: bool,
}

/// The missed steals with one state of the gate: their number, the time in violation, and the number of each outcome, by its index.
#[derive(Clone, Copy, Debug, Default)]
struct GateSums {
    number: u64,
    violated: u64,
    outcomes: [u64; NewIdleOutcome::ALL.len()],
}

const DISTANCES: [Nearest; 6] =
    [Nearest::Core, Nearest::Cluster, Nearest::Llc, Nearest::Node, Nearest::Beyond, Nearest::Somewhere];

impl MissedSteals {
    /// An idle stretch that began with a missed steal has ended, with a task (`ran`) or otherwise.
    pub(crate) fn take(
        &mut self,
        nearest: Nearest,
        (newidle, gate): (Option<NewIdle>, Option<EstimatedGate>),
        idle: Dur,
        violated: u64,
        ran: bool,
    ) {
        let Some(index) = DISTANCES.iter().position(|distance| *distance == nearest) else { return };
        let sums = &mut self.sums[index];
        sums.number += 1;
        sums.violated = sums.violated.saturating_add(violated);
        if let Some(newidle) = newidle {
            sums.has_outcomes = true;
            let (number, ns, verdicts) = &mut sums.outcomes[newidle.outcome as usize];
            *number += 1;
            *ns = ns.saturating_add(violated);
            verdicts.add(&newidle.verdicts);
        }
        if let Some(gate) = gate {
            self.has_gates = true;
            let of_gate = &mut self.gates[gate as usize];
            of_gate.number += 1;
            of_gate.violated = of_gate.violated.saturating_add(violated);
            newidle.into_iter().for_each(|newidle| of_gate.outcomes[newidle.outcome as usize] += 1);
        }
        if ran {
            sums.idle.add(idle);
        } else {
            sums.unfinished += 1;
        }
    }

    /// Adds the missed steals of a later piece of a pass.
    pub(crate) fn join(&mut self, later: &MissedSteals) {
        self.entries += later.entries;
        self.sums.iter_mut().zip(&later.sums).for_each(|(sums, more)| sums.join(more));
    }

    fn gate_rows(&self) -> Vec<GateRow> {
        let outcomes = |sums: &GateSums| {
            let all = NewIdleOutcome::ALL.into_iter().zip(sums.outcomes).filter(|(_, number)| *number > 0);
            all.map(|(outcome, number)| GatedOutcome { outcome, number }).collect()
        };
        let has_outcomes = self.sums.iter().any(|sums| sums.has_outcomes);
        let row = |(gate, sums): (EstimatedGate, &GateSums)| GateRow {
            gate,
            number: sums.number,
            violated_ns: sums.violated,
            outcomes: has_outcomes.then(|| outcomes(sums)),
        };
        EstimatedGate::ALL.into_iter().zip(&self.gates).map(row).filter(|row| row.number > 0).collect()
    }

    /// The rows; `caches`: whether the topology gives the last-level caches; `has_verdicts`: whether verdicts on examined tasks were recorded.
    pub(crate) fn report(&self, caches: bool, has_verdicts: bool) -> Missed {
        let row = |(nearest, sums): (&Nearest, &MissedSums)| MissedRow {
            nearest: *nearest,
            number: sums.number,
            percent: 100.0 * sums.number as f64 / (self.entries as f64).max(1.0),
            violated_ns: sums.violated,
            idle: sums.idle.summary(),
            unfinished: sums.unfinished,
            outcomes: sums.has_outcomes.then(|| sums.outcome_rows(has_verdicts)),
        };
        let rows = DISTANCES.iter().zip(&self.sums).filter(|(_, sums)| sums.number > 0).map(row);
        let by_distance: Vec<MissedRow> = rows.collect();
        let near =
            by_distance.iter().filter(|row| matches!(row.nearest, Nearest::Core | Nearest::Cluster | Nearest::Llc));
        Missed {
            idle_entries: self.entries,
            number: by_distance.iter().map(|row| row.number).sum(),
            within_llc: caches.then(|| near.map(|row| row.number).sum()),
            by_distance,
            gates: self.has_gates.then(|| self.gate_rows()),
        }
    }
}
