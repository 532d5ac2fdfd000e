//! Herds: many queued tasks that leave one CPU for one other at once.

use crate::event::{Cpu, Dur, Ts};
use crate::tables::seeded::SeededMap;
use serde::Serialize;

/// Minimum number of queued tasks that leave one CPU for one other within [`HERD_TIME`] to form a herd.
pub const HERD: usize = 4;
/// Maximum time within which the tasks of a herd migrate.
pub const HERD_TIME: Dur = Dur(1_000_000);

/// A herd: queued tasks that left one CPU for one other within a millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Herd {
    /// The instant at which the first task migrated.
    pub start: Ts,
    /// The instant at which the last task migrated.
    pub end: Ts,
    /// The CPU that the tasks left.
    pub orig: Cpu,
    /// The CPU that the tasks came to.
    pub dest: Cpu,
    /// The number of tasks.
    pub tasks: u32,
}

/// The latest migrations from one CPU to one other.
#[derive(Clone, Debug, Default)]
struct Leaving {
    /// The instants of the migrations, the last ones within [`HERD_TIME`].
    at: Vec<Ts>,
    /// The index of the latest herd of this pair of CPUs.
    herd: Option<usize>,
}

/// A finder of herds among the migrations of queued tasks.
#[derive(Clone, Debug, Default)]
pub struct Herds {
    leaving: SeededMap<(Cpu, Cpu), Leaving>,
    found: Vec<Herd>,
}

impl Herds {
    /// Takes the next migration of a queued task, in the order of time. Returns the index in [`Herds::found`] of the
    /// herd that it makes or enlarges.
    pub fn migrate(&mut self, ts: Ts, orig: Cpu, dest: Cpu) -> Option<usize> {
        let Leaving { at, herd } = self.leaving.entry((orig, dest)).or_default();
        at.retain(|earlier| ts.since(*earlier) <= HERD_TIME);
        at.push(ts);
        if at.len() < HERD {
            return None;
        }
        let (start, tasks) = (at[0], at.len() as u32);
        let place = match herd.filter(|place| self.found[*place].end >= start) {
            Some(place) => {
                let grown = &mut self.found[place];
                (grown.end, grown.tasks) = (ts, grown.tasks + 1);
                place
            }
            None => {
                self.found.push(Herd { start, end: ts, orig, dest, tasks });
                self.found.len() - 1
            }
        };
        *herd = Some(place);
        Some(place)
    }

    /// Removes and returns the herds that cannot grow any more at `now`, in the order in which they became herds. The
    /// indices of the others change.
    pub fn settled(&mut self, now: Ts) -> Vec<Herd> {
        let is_open = |herd: &Herd| now.since(herd.end) <= HERD_TIME;
        let mut places = Vec::with_capacity(self.found.len());
        let mut open = 0;
        for herd in &self.found {
            places.push(is_open(herd).then_some(open));
            open += usize::from(is_open(herd));
        }
        for leaving in self.leaving.values_mut() {
            leaving.herd = leaving.herd.and_then(|place| places.get(place).copied().flatten());
        }
        let (open, settled) = self.found.drain(..).partition(is_open);
        self.found = open;
        settled
    }

    /// The herds that were found so far and not removed, in the order in which they became herds; the latest may still
    /// grow.
    pub fn found(&self) -> &[Herd] {
        &self.found
    }

    /// Returns the herds that were found and not removed, in the order in which they became herds.
    pub fn into_found(self) -> Vec<Herd> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn herds() {
        let mut herds = Herds::default();
        let mut made = Vec::new();
        for (ts, dest) in [(0, 1), (1, 1), (2, 2), (3, 1), (4, 1), (900_000, 1), (1_900_001, 1), (1_900_002, 2)] {
            made.push(herds.migrate(Ts(ts), Cpu(0), Cpu(dest)));
        }
        assert_eq!(made, [None, None, None, None, Some(0), Some(0), None, None]);
        let herd = Herd { start: Ts(0), end: Ts(900_000), orig: Cpu(0), dest: Cpu(1), tasks: 5 };
        assert_eq!(herds.found(), [herd]);
        // One is settled; another one grows on.
        for ts in 1_800_000..1_800_004 {
            herds.migrate(Ts(ts), Cpu(3), Cpu(1));
        }
        assert_eq!(herds.settled(Ts(1_900_001)), [herd]);
        assert_eq!(herds.migrate(Ts(1_900_002), Cpu(3), Cpu(1)), Some(0));
        assert_eq!(
            herds.into_found().iter().map(|herd| (herd.start, herd.tasks)).collect::<Vec<_>>(),
            [(Ts(1_800_000), 5)]
        );
    }
}
