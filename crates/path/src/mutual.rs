//! Pairs of tasks on top of which softirqs wake each other.
//!
//! A task that sends on loopback wakes the receiver in a softirq on top of itself; a softirq of a network card, a timer or a disk
//! interrupts any task. The events of the scheduler do not distinguish the two. Where both tasks of a pair were woken on top of
//! each other, they possibly talk to each other.

use sched::Pid;
use sched::limits::PIDS;
use sched::seeded::SeededMap;

/// The least number of wakeups in each direction.
const LEAST: u32 = 2;

/// The number of wakeups of each pair by softirqs, by interrupted and woken task; of the first [`PIDS`] pairs.
#[derive(Clone, Debug, Default)]
pub(crate) struct MutualWakeups(SeededMap<(Pid, Pid), u32>);

impl MutualWakeups {
    /// Notes a wakeup of a task by a softirq on top of another one.
    pub(crate) fn note(&mut self, on: Pid, woken: Pid) {
        self.add((on, woken), 1);
    }

    fn add(&mut self, pair: (Pid, Pid), number: u32) {
        if self.0.len() < PIDS || self.0.contains_key(&pair) {
            let sum = self.0.entry(pair).or_default();
            *sum = sum.saturating_add(number);
        }
    }

    /// Whether softirqs woke each of the tasks on top of the other, at least twice.
    pub(crate) fn are_mutual(&self, a: Pid, b: Pid) -> bool {
        [(a, b), (b, a)].iter().all(|pair| self.0.get(pair).is_some_and(|number| *number >= LEAST))
    }

    /// Whether the pairs of a later piece have room here.
    pub(crate) fn has_room(&self, later: &MutualWakeups) -> bool {
        self.0.len() + later.0.len() <= PIDS
    }

    /// Adds the wakeups of a later piece.
    pub(crate) fn join(&mut self, later: &MutualWakeups) {
        later.0.iter().for_each(|(pair, number)| self.add(*pair, *number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_wake_each_other_twice_are_mutual() {
        let mut pairs = MutualWakeups::default();
        for (on, woken) in [(5, 6), (6, 5), (5, 6), (5, 7), (5, 7)] {
            pairs.note(Pid(on), Pid(woken));
        }
        assert!(!pairs.are_mutual(Pid(5), Pid(6)), "6 woke 5 once");
        let mut later = MutualWakeups::default();
        later.note(Pid(6), Pid(5));
        pairs.join(&later);
        assert!(pairs.are_mutual(Pid(5), Pid(6)) && pairs.are_mutual(Pid(6), Pid(5)));
        assert!(!pairs.are_mutual(Pid(5), Pid(7)), "7 never woke 5");
    }

    #[test]
    fn the_number_of_pairs_has_a_limit() {
        let mut pairs = MutualWakeups::default();
        for pid in 1..=i32::try_from(PIDS).expect("few") + 5 {
            pairs.note(Pid(pid), Pid(0));
        }
        assert_eq!(pairs.0.len(), PIDS);
        pairs.note(Pid(1), Pid(0));
        assert_eq!(pairs.0[&(Pid(1), Pid(0))], 2, "those that are known go on");
    }
}
