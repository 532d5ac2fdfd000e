//! Maximal intervals of a predicate: their number, their lengths by threshold, and the longest.

use crate::event::{Dur, Ts};
use serde::Serialize;

/// The sums over the episodes of at least some length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Totals {
    /// The least length of an episode that is counted, in nanoseconds.
    pub min_ns: Dur,
    /// The number of these episodes.
    pub episodes: u64,
    /// The total length of these episodes, in nanoseconds.
    pub ns: u64,
    /// The CPU time lost in these episodes, in CPU·nanoseconds: the integral of the CPUs that could have been put to work.
    pub cpu_time_lost_ns: u64,
    /// The integral of the threads over these episodes, in task·nanoseconds.
    pub thread_ns: u64,
}

/// The amount to which a predicate holds during a stretch of time. The predicate holds if the number of CPUs is not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// The number of CPUs that could have been put to work.
    pub cpus: u32,
    /// The number of tasks that could have run on these CPUs.
    pub threads: u32,
}

impl Amount {
    /// The violation of work conservation by these numbers of idle CPUs, of overloaded CPUs, and of waiting tasks on the
    /// overloaded ones.
    #[inline]
    pub fn of_violation(idle: u32, overloaded: u32, waiters: u32) -> Amount {
        Amount { cpus: idle.min(overloaded), threads: idle.min(waiters) }
    }

    /// Whether the predicate holds with this amount.
    pub fn holds(self) -> bool {
        self.cpus > 0
    }
}

/// An episode: a maximal interval in which the predicate holds, with notes on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Episode<T> {
    /// The instant at which the episode begins.
    pub start: Ts,
    /// The length of the episode, in nanoseconds.
    pub duration: Dur,
    /// The notes on the episode.
    pub note: T,
}

/// An episode that has ended, with its integrals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The instant at which the episode began.
    pub start: Ts,
    /// The length of the episode, in nanoseconds.
    pub duration: Dur,
    /// The CPU time lost in the episode, in CPU·nanoseconds.
    pub cpu_time_lost_ns: u64,
    /// The integral of the threads over the episode, in task·nanoseconds.
    pub thread_ns: u64,
}

/// Gathers the episodes of one predicate as time passes: their totals by least length, and the longest ones.
#[derive(Clone, Debug)]
pub struct Episodes<T> {
    totals: Vec<Totals>,
    last: Option<Ended>,
    open: Option<OpenEpisode<T>>,
    longest: Vec<Episode<T>>,
    keep: usize,
}

/// An episode that has not ended yet.
#[derive(Clone, Debug)]
struct OpenEpisode<T> {
    start: Ts,
    cpu_time_lost_ns: u64,
    thread_ns: u64,
    note: Option<T>,
}

impl<T> Episodes<T> {
    /// Makes an empty collection with totals for these least lengths, which keeps at most `keep` of the longest
    /// episodes.
    pub fn new(thresholds: &[Dur], keep: usize) -> Episodes<T> {
        let totals = thresholds.iter().map(|min_ns| Totals { min_ns: *min_ns, ..Totals::default() }).collect();
        Episodes { totals, last: None, open: None, longest: Vec::new(), keep }
    }

    /// Takes the next stretch of time: from `from` to `to` the predicate held with this amount, or did not hold.
    /// Stretches must follow one another without gaps.
    #[inline]
    pub fn pass(&mut self, from: Ts, to: Ts, amount: Amount) {
        if !amount.holds() {
            if self.open.is_some() {
                self.close(from);
            }
            return;
        }
        let ns = to.since(from).0;
        let open = self.open.get_or_insert(OpenEpisode { start: from, cpu_time_lost_ns: 0, thread_ns: 0, note: None });
        open.cpu_time_lost_ns = open.cpu_time_lost_ns.saturating_add(ns.saturating_mul(amount.cpus.into()));
        open.thread_ns = open.thread_ns.saturating_add(ns.saturating_mul(amount.threads.into()));
    }

    /// Whether the open episode has no note yet and would be one of the longest if it ended at `now`.
    pub fn wants_note(&self, now: Ts) -> bool {
        let Some(open) = self.open.as_ref().filter(|o| o.note.is_none()) else { return false };
        self.longest.len() < self.keep || self.longest.last().is_some_and(|l| now.since(open.start) > l.duration)
    }

    /// Returns the instant from which the open episode, or one that begins at `now`, wants a note; `None` if it has
    /// one. The predicate holds from `now` on.
    pub fn note_due(&self, now: Ts) -> Option<Ts> {
        let start = match &self.open {
            Some(open) if open.note.is_some() => return None,
            open => open.as_ref().map_or(now, |open| open.start),
        };
        let shortest = self.longest.last().filter(|_| self.longest.len() >= self.keep).map_or(Dur(0), |l| l.duration);
        Some(start.after(Dur(shortest.0.saturating_add(1))))
    }

    /// The start of the open episode, and whether it has a note; `None` if no episode is open.
    pub fn open(&self) -> Option<(Ts, bool)> {
        self.open.as_ref().map(|open| (open.start, open.note.is_some()))
    }

    /// The length that an episode must exceed to be among the longest; `None` if each is.
    pub fn shortest_kept(&self) -> Option<Dur> {
        self.longest.last().filter(|_| self.longest.len() >= self.keep).map(|last| last.duration)
    }

    /// Sets the note of the open episode.
    pub fn note(&mut self, note: T) {
        if let Some(open) = &mut self.open {
            open.note = Some(note);
        }
    }

    /// Returns the note of the open episode, to be brought up to date.
    pub fn open_note(&mut self) -> Option<&mut T> {
        self.open.as_mut()?.note.as_mut()
    }

    /// Ends the open episode, if there is one, at `end`.
    pub fn close(&mut self, end: Ts) {
        let Some(open) = self.open.take() else { return };
        let duration = end.since(open.start);
        // An episode without length does not count.
        if duration == Dur(0) {
            return;
        }
        let OpenEpisode { start, cpu_time_lost_ns, thread_ns, .. } = open;
        self.last = Some(Ended { start, duration, cpu_time_lost_ns, thread_ns });
        for t in self.totals.iter_mut().filter(|t| duration >= t.min_ns) {
            t.episodes += 1;
            t.ns = t.ns.saturating_add(duration.0);
            t.cpu_time_lost_ns = t.cpu_time_lost_ns.saturating_add(open.cpu_time_lost_ns);
            t.thread_ns = t.thread_ns.saturating_add(open.thread_ns);
        }
        if let Some(note) = open.note {
            // The earlier one of equal lengths comes first.
            let at = self.longest.partition_point(|l| l.duration >= duration);
            self.longest.insert(at, Episode { start: open.start, duration, note });
            self.longest.truncate(self.keep);
        }
    }

    /// Adds the totals of later stretches of time, which begin without an episode, and goes on with the one that is open at their
    /// end. None of these episodes may be longer than [`Episodes::shortest_kept`], nor have a note. No episode is open here, and
    /// both collections were made with the same least lengths.
    pub fn join(&mut self, later: Episodes<T>) {
        debug_assert!(self.open.is_none() && later.longest.is_empty(), "episodes are joined in between");
        for (t, later) in self.totals.iter_mut().zip(later.totals) {
            t.episodes += later.episodes;
            t.ns = t.ns.saturating_add(later.ns);
            t.cpu_time_lost_ns = t.cpu_time_lost_ns.saturating_add(later.cpu_time_lost_ns);
            t.thread_ns = t.thread_ns.saturating_add(later.thread_ns);
        }
        self.last = later.last.or(self.last.take());
        self.open = later.open;
    }

    /// Removes and returns the latest episode that has ended, unless that was done before.
    pub fn take_last(&mut self) -> Option<Ended> {
        self.last.take()
    }

    /// The totals, one for each least length, in the order in which these were given.
    pub fn totals(&self) -> &[Totals] {
        &self.totals
    }

    /// Returns the longest episodes, the longest first.
    pub fn into_longest(self) -> Vec<Episode<T>> {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn episodes_are_maximal_and_counted_by_length() {
        let mut e = Episodes::new(&[Dur(0), Dur(10)], 1);
        let one = Amount { cpus: 1, threads: 2 };
        // 0 to 5 and 5 to 12 are one episode; 20 to 23 is another.
        for (from, to, amount) in
            [(0, 5, one), (5, 12, Amount { cpus: 2, threads: 2 }), (12, 20, Amount::default()), (20, 23, one)]
        {
            e.pass(Ts(from), Ts(to), amount);
            if e.wants_note(Ts(to)) {
                e.note(from);
            }
        }
        let first = Ended { start: Ts(0), duration: Dur(12), cpu_time_lost_ns: 19, thread_ns: 24 };
        assert_eq!((e.take_last(), e.take_last()), (Some(first), None));
        e.close(Ts(23));
        assert_eq!(e.take_last().map(|last| (last.start, last.duration)), Some((Ts(20), Dur(3))));
        let rows: Vec<_> = e.totals().iter().map(|t| (t.episodes, t.ns, t.cpu_time_lost_ns, t.thread_ns)).collect();
        assert_eq!(rows, [(2, 15, 5 + 14 + 3, 10 + 14 + 6), (1, 12, 19, 24)]);
        assert_eq!(e.into_longest(), [Episode { start: Ts(0), duration: Dur(12), note: 0 }]);
    }
}
