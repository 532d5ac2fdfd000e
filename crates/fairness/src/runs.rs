//! The runs on a CPU, as far back as a wait may reach.

use crate::past::{Content, Past};
use sched::seeded::SeededMap;
use sched::{Comm, Dur, Ts};
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Number of runs that are remembered as they were.
const REMEMBERED: usize = 256;
/// Number of the first of them that are joined to one stretch of the past at a time.
const JOINED: usize = 8;

/// The run time of each command, in nanoseconds.
pub(crate) type Times = Vec<(Comm, u64)>;

/// Number of commands among which one is looked for from the first to the last.
const FEW: usize = 16;

/// Adds run times to others, in the order in which the commands come.
struct Adder<'t> {
    times: &'t mut Times,
    /// The places of the commands, where there are more than a few: a file can name 100,000.
    places: SeededMap<Comm, usize>,
}

impl<'t> Adder<'t> {
    fn to(times: &'t mut Times) -> Adder<'t> {
        Adder { times, places: SeededMap::default() }
    }

    fn add(&mut self, comm: Comm, ns: u64) {
        let place = if self.times.len() <= FEW {
            self.times.iter().position(|(other, _)| *other == comm)
        } else {
            if self.places.is_empty() {
                self.places = self.times.iter().enumerate().map(|(place, (comm, _))| (*comm, place)).collect();
            }
            self.places.get(&comm).copied()
        };
        match place.and_then(|place| self.times.get_mut(place)) {
            Some((_, sum)) => *sum = sum.saturating_add(ns),
            None => {
                if !self.places.is_empty() {
                    self.places.insert(comm, self.times.len());
                }
                self.times.push((comm, ns));
            }
        }
    }
}

impl Content for Times {
    fn join(&mut self, later: Times) {
        let mut adder = Adder::to(self);
        later.into_iter().for_each(|(comm, ns)| adder.add(comm, ns));
    }
}

/// The runs of a CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    recent: VecDeque<(Comm, Ts, Ts)>,
    older: Past<Times>,
}

impl Runs {
    /// A run ended.
    pub(crate) fn add(&mut self, comm: Comm, start: Ts, end: Ts) {
        self.recent.push_back((comm, start, end));
    }

    /// Whether some of them must be joined.
    pub(crate) fn are_full(&self) -> bool {
        self.recent.len() >= REMEMBERED
    }

    /// Joins the first ones, as far as they are not `before` all that will be asked for.
    pub(crate) fn join(&mut self, before: Ts) {
        self.older.forget(before);
        let (mut edges, mut times) = (None, Times::new());
        let mut adder = Adder::to(&mut times);
        for (comm, start, end) in self.recent.drain(..JOINED).filter(|(_, _, end)| *end > before) {
            edges = Some((edges.map_or(start, |(from, _)| from), end));
            adder.add(comm, end.since(start).0);
        }
        if let Some((from, to)) = edges {
            self.older.add(from, to, times);
        }
    }

    /// The commands that ran between two instants, the longest first: of runs that were joined and that an instant cuts, what must
    /// lie there.
    pub(crate) fn between(&self, from: Ts, to: Ts) -> Vec<(Comm, Dur)> {
        let mut sums = Times::new();
        let mut adder = Adder::to(&mut sums);
        for (comm, start, end) in self.recent.iter().rev().take_while(|(_, _, end)| *end > from) {
            adder.add(*comm, (*end).min(to).since((*start).max(from)).0);
        }
        for stretch in self.older.since(from) {
            let outside = stretch.outside(from, to);
            stretch.held.iter().for_each(|(comm, ns)| adder.add(*comm, ns.saturating_sub(outside)));
        }
        sums.retain(|(_, ns)| *ns > 0);
        // Among equals the one that ran last: names are replaced in an anonymous part, which must not change the order.
        sums.sort_by_key(|(_, ns)| Reverse(*ns));
        sums.into_iter().map(|(comm, ns)| (comm, Dur(ns))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recent_past_is_exact_and_the_distant_one_a_lower_bound() {
        let names = ["ab", "ba", "c"].map(|name| Comm::new(name.as_bytes()));
        // One to seven of ten for the two, by turns; at last one for a third.
        let runs = |i: i64| (Ts(i * 10), Ts(i * 10 + 1 + i % 7), if i < 4_999 { (i % 2) as usize } else { 2 });
        let mut past = Runs::default();
        for (start, end, name) in (0..5_000).map(runs) {
            past.add(names[name], start, end);
            // The first quarter is not needed any more.
            if past.are_full() {
                past.join(Ts(12_500));
            }
        }
        assert!(past.between(Ts(0), Ts(12_500)).is_empty());
        for since in (12_500..50_000).step_by(333) {
            let mut exact = [0; 3];
            for (start, end, name) in (0..5_000).map(runs) {
                exact[name] += end.since(start.max(Ts(since))).0;
            }
            let age = 50_000 - since as u64;
            let found = past.between(Ts(since), Ts(50_000));
            assert!(found.is_sorted_by_key(|(_, time)| std::cmp::Reverse(*time)), "{found:?}");
            for (name, exact) in names.iter().zip(exact) {
                let found = found.iter().find(|(other, _)| other == name).map_or(0, |(_, time)| time.0);
                assert!(found <= exact && exact - found <= age / 32, "{found} of {exact} by {name} since {since}");
                assert!(age > 2_480 || found == exact, "{found} of {exact} by {name} since {since}");
            }
        }
        assert_eq!(Runs::default().between(Ts(0), Ts(50_000)), []);
    }

    #[test]
    fn many_commands_keep_their_sums_and_their_order() {
        let name = |n: i64| Comm::new(format!("c{n}").as_bytes());
        let mut past = Runs::default();
        // 1,000 commands of one nanosecond each, three times over.
        for i in 0..3_000 {
            past.add(name(i % 1_000), Ts(i * 2), Ts(i * 2 + 1));
            if past.are_full() {
                past.join(Ts(0));
            }
        }
        let found = past.between(Ts(0), Ts(6_000));
        // The last 256 runs are exact, and come first among equals, the latest of them before the others.
        assert_eq!(found.first().map(|(comm, _)| *comm), Some(name(999)));
        assert!(found.iter().all(|(_, time)| (1..=3).contains(&time.0)), "{found:?}");
        let mut names: Vec<Comm> = found.iter().map(|(comm, _)| *comm).collect();
        let number = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), number, "each command has one sum");
        assert!((744..=1_000).contains(&number), "{number}");
    }
}
