//! The cost of migrations, as far as a trace shows it.

use crate::engine::{Costs, NewIdleCost};
use events::CostRow;
use machine::Machine;
use sched::Dur;
use sched::topology::Distance;

/// The time of a steal where none is given: about that of a new-idle balance that pulls.
pub(crate) const STEAL: Dur = Dur(2_000);

/// The median excess of bursts that begin on another CPU over those on the same one, over the commands with a ratio, weighted by
/// their bursts. `far`: from another node. Nothing where no command has a ratio.
fn measured(rows: &[CostRow], far: bool) -> Option<u64> {
    let of_distance = |row: &&CostRow| match row.distance {
        Some(Distance::Machine) => far,
        Some(_) | None => !far,
    };
    let (mut weight, mut sum) = (0.0, 0.0);
    for row in rows.iter().filter(of_distance).filter(|row| row.ratio.is_some()) {
        let without = row.without_median_ns.unwrap_or_default();
        weight += row.after as f64;
        sum += row.after as f64 * (row.after_median_ns.0 as f64 - without.0 as f64);
    }
    (weight > 0.0).then(|| (sum / weight).max(0.0).round() as u64)
}

/// Returns the costs of migrations within a node and between nodes, as far as the rows of `migrations` show them.
pub(crate) fn of_rows(rows: &[CostRow]) -> [Option<u64>; 2] {
    let near = measured(rows, false);
    [near, measured(rows, true)]
}

/// Returns the time that new-idle balancing takes: the one that was given, of the smallest domain and of all, else the medians over the CPUs
/// of the machine file; nothing where neither is known.
pub(crate) fn new_idle(given: &[Dur], machine: Option<&Machine>) -> Option<NewIdleCost> {
    if let Some(lowest) = given.first() {
        let all = given.get(1).unwrap_or(lowest).0.max(lowest.0);
        return Some(NewIdleCost { lowest: lowest.0, all });
    }
    let costs = &machine?.newidle_costs.as_ref()?.start;
    let median = |mut costs: Vec<u64>| {
        costs.sort_unstable();
        costs.get(costs.len() / 2).copied()
    };
    let lowest = median(costs.values().map(|cost| cost.lowest_ns).collect())?;
    Some(NewIdleCost { lowest, all: median(costs.values().map(|cost| cost.sum_ns).collect())?.max(lowest) })
}

/// Returns the costs of a simulation: those that were given, else the measured ones, else 2 µs a steal and nothing for a migration.
pub(crate) fn costs(given: [Option<Dur>; 3], measured: [Option<u64>; 2], new_idle: Option<NewIdleCost>) -> Costs {
    let [steal, near, far] = given.map(|given| given.map(|length| length.0));
    let migration = near.or(measured[0]).unwrap_or(0);
    Costs {
        steal: steal.unwrap_or(STEAL.0),
        migration,
        node_migration: far.or(measured[1]).unwrap_or(migration),
        new_idle,
    }
}
