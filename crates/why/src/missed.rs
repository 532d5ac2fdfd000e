//! Missed steals: switches to idle while a counted task waits on another CPU.

use crate::sets::Nearest;
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
    /// Their share of all switches to idle, in percent.
    pub percent: f64,
    /// The CPU time in violation of the idle stretches that began so, in nanoseconds.
    pub violated_ns: u64,
    /// The time until the CPU next ran a task, where the window shows that.
    pub idle: Summary,
    /// The number of idle stretches whose end is not in the window.
    pub unfinished: u64,
}

/// The missed steals of a window.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missed {
    /// The number of switches to idle that left an empty run queue.
    pub idle_entries: u64,
    /// The number of them that were missed steals.
    pub number: u64,
    /// Those within the last-level cache; absent where the topology does not give the caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_llc: Option<u64>,
    /// The missed steals by distance, the nearest first; only distances that occur.
    pub by_distance: Vec<MissedRow>,
}

#[derive(Clone, Debug, Default)]
struct Sums {
    number: u64,
    violated: u64,
    idle: Lengths,
    unfinished: u64,
}

/// Gathers the missed steals.
#[derive(Clone, Debug, Default)]
pub(crate) struct MissedSteals {
    /// Switches to idle.
    pub(crate) entries: u64,
    sums: [Sums; DISTANCES.len()],
}

const DISTANCES: [Nearest; 5] = [Nearest::Core, Nearest::Llc, Nearest::Node, Nearest::Beyond, Nearest::Somewhere];

impl MissedSteals {
    /// An idle stretch that began with a missed steal has ended, with a task (`ran`) or otherwise.
    pub(crate) fn take(&mut self, nearest: Nearest, idle: Dur, violated: u64, ran: bool) {
        let Some(index) = DISTANCES.iter().position(|distance| *distance == nearest) else { return };
        let sums = &mut self.sums[index];
        sums.number += 1;
        sums.violated = sums.violated.saturating_add(violated);
        if ran {
            sums.idle.add(idle);
        } else {
            sums.unfinished += 1;
        }
    }

    /// The rows; `caches`: whether the topology gives the last-level caches.
    pub(crate) fn report(&self, caches: bool) -> Missed {
        let row = |(nearest, sums): (&Nearest, &Sums)| MissedRow {
            nearest: *nearest,
            number: sums.number,
            percent: 100.0 * sums.number as f64 / (self.entries as f64).max(1.0),
            violated_ns: sums.violated,
            idle: sums.idle.summary(),
            unfinished: sums.unfinished,
        };
        let rows = DISTANCES.iter().zip(&self.sums).filter(|(_, sums)| sums.number > 0).map(row);
        let by_distance: Vec<MissedRow> = rows.collect();
        let near = by_distance.iter().filter(|row| matches!(row.nearest, Nearest::Core | Nearest::Llc));
        Missed {
            idle_entries: self.entries,
            number: by_distance.iter().map(|row| row.number).sum(),
            within_llc: caches.then(|| near.map(|row| row.number).sum()),
            by_distance,
        }
    }
}
