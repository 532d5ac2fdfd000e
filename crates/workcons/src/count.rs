//! What comes together, as time passes, for one way of counting the waiters.

use crate::{KEPT, Scene};
use sched::episodes::{Amount, Episodes};
use sched::topology::Distance;
use sched::{Dur, Ts};

/// What holds between two changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Situation {
    /// What could have been done.
    pub(crate) amount: Amount,
    /// How many CPUs more could have been put to work if each unknown one were what makes it so.
    pub(crate) doubt: u32,
    /// The nearest that an idle and an overloaded CPU are, if it is violated and the topology known.
    pub(crate) nearest: Option<Distance>,
}

/// The episodes, and what is told of them.
#[derive(Clone, Debug)]
pub(crate) struct Count {
    pub(crate) episodes: Episodes<Scene>,
    /// Time, and capacity, that may be violated beside what is.
    pub(crate) doubtful_ns: u64,
    pub(crate) doubtful_capacity_ns: u64,
    pub(crate) by_distance: [u64; 4],
    /// The nearest pair in the open episode.
    nearest: Option<Distance>,
    /// What holds, and since when: time is accounted for when that changes, not at every event.
    situation: Situation,
    since: Ts,
}

impl Count {
    pub(crate) fn new(thresholds: &[Dur]) -> Count {
        Count {
            episodes: Episodes::new(thresholds, KEPT),
            doubtful_ns: 0,
            doubtful_capacity_ns: 0,
            by_distance: [0; 4],
            nearest: None,
            situation: Situation::default(),
            since: Ts(0),
        }
    }

    /// Nothing holds, from `start` on.
    pub(crate) fn begin(&mut self, start: Ts) {
        self.since = start;
    }

    /// From `ts` on this holds; whether that is violated and what held was not, or the other way round.
    pub(crate) fn change(&mut self, ts: Ts, situation: Situation) -> bool {
        if situation == self.situation {
            return false;
        }
        self.pass(ts);
        let old = std::mem::replace(&mut self.situation, situation);
        old.amount.holds() != situation.amount.holds()
    }

    /// Accounts for the time until `ts`.
    pub(crate) fn pass(&mut self, ts: Ts) {
        let ns = ts.since(self.since).0;
        if ns == 0 {
            return;
        }
        let from = std::mem::replace(&mut self.since, ts);
        let Situation { amount, doubt, nearest } = self.situation;
        self.episodes.pass(from, ts, amount);
        if doubt > 0 {
            self.doubtful_ns += if amount.holds() { 0 } else { ns };
            // A damaged stamp makes windows of centuries, for which this has no room.
            let more = ns.saturating_mul(doubt.into());
            self.doubtful_capacity_ns = self.doubtful_capacity_ns.saturating_add(more);
        }
        self.nearest = nearest.map(|distance| self.nearest.map_or(distance, |other| other.min(distance)));
        if let Some(distance) = nearest {
            self.by_distance[distance as usize] += ns;
        }
        if let Some(scene) = self.episodes.open_note() {
            scene.distance = self.nearest;
        }
    }

    /// When the episode that is open, or that began with what holds now, is long enough to be among the
    /// longest, if none of them ends before.
    pub(crate) fn note_due(&self) -> Option<Ts> {
        if self.situation.amount.holds() { self.episodes.note_due(self.since) } else { None }
    }

    /// Whether the machine at `ts`, until which the time is accounted for, is to be noted; with the nearest
    /// pair so far.
    pub(crate) fn wants_note(&self, ts: Ts) -> Option<Option<Distance>> {
        self.episodes.wants_note(ts).then_some(self.nearest)
    }
}
