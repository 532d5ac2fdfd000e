//! The sums, as time passes, for one way of counting the waiters.

use crate::joined::SituationLog;
use crate::violation::{Sets, Situation, WAYS};
use crate::{KEPT, Scene};
use sched::episodes::{Ended, Episodes};
use sched::topology::Distance;
use sched::{Dur, Ts};

/// The episodes, and the details of the longest.
#[derive(Clone, Debug)]
pub(crate) struct Count {
    pub(crate) episodes: Episodes<Scene>,
    /// Time, and CPU time lost, that may be violated beside the certain one.
    pub(crate) doubtful_ns: u64,
    pub(crate) doubtful_cpu_time_lost_ns: u64,
    pub(crate) by_distance: [u64; Distance::ALL.len()],
    /// The nearest pair in the open episode.
    nearest: Option<Distance>,
    /// The episodes that have ended and are not listed yet, each with the nearest pair in it: one at most, but in a later piece of a
    /// pass, and while it is joined.
    pub(crate) ended: Vec<(Ended, Option<Distance>)>,
    /// The current situation.
    situation: Situation,
    /// The instant since which it is so, or up to which the time is accounted for.
    since: Ts,
    /// The changes that are left to the analysis of the pieces before, in a later piece of a pass. The sums here follow them.
    log: Option<Box<SituationLog>>,
}

/// One for each way of counting.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) ways: [Count; WAYS],
    /// Whether no way of counting has a violation, nor may have one.
    quiet: bool,
}

impl Counts {
    pub(crate) fn new(thresholds: &[Dur]) -> Counts {
        Counts { ways: [(); WAYS].map(|()| Count::new(thresholds)), quiet: true }
    }

    /// Begins at `start` without a violation.
    pub(crate) fn begin(&mut self, start: Ts) {
        self.ways.iter_mut().for_each(|count| count.since = start);
    }

    /// Accounts for the time until `ts`.
    pub(crate) fn pass(&mut self, ts: Ts) {
        self.ways.iter_mut().for_each(|count| count.pass(ts));
    }

    /// Notes the changes from `at` on, where a piece of a pass begins.
    pub(crate) fn resume(&mut self, at: Ts) {
        self.ways.iter_mut().for_each(|count| count.resume(at));
    }

    /// Whether a later piece begins as this one ends, and no episode in it, by one way of counting, becomes one of the
    /// longest. `latest` is the instant of its last event.
    pub(crate) fn fits(&self, later: &Counts, judged: usize, latest: Ts) -> bool {
        let ways = self.ways.iter().zip(&later.ways).enumerate();
        ways.into_iter().all(|(way, (count, later))| count.fits(later, (way == judged).then_some(latest)))
    }

    /// Takes the changes of a later piece.
    pub(crate) fn join(&mut self, later: Counts) {
        self.quiet = later.quiet;
        self.ways.iter_mut().zip(later.ways).for_each(|(count, later)| count.join(later));
    }

    /// Applies the sets from `ts` on; returns whether a violation began or ended, for any way of counting.
    #[inline(always)]
    pub(crate) fn change(&mut self, ts: Ts, sets: &Sets) -> bool {
        let quiet = sets.are_quiet();
        if std::mem::replace(&mut self.quiet, quiet) && quiet {
            return false;
        }
        // Nearly always there are but numbers to compare.
        if sets.are_bare() {
            self.turn(ts, |way| Situation { amount: sets.bare_violation(way), ..Situation::default() })
        } else {
            self.change_all(ts, sets)
        }
    }

    #[inline(never)]
    fn change_all(&mut self, ts: Ts, sets: &Sets) -> bool {
        self.turn(ts, |way| sets.situation(way))
    }

    /// Applies the situation of each way from `ts` on; returns whether a violation began or ended.
    #[inline(always)]
    fn turn(&mut self, ts: Ts, situation: impl Fn(usize) -> Situation) -> bool {
        let mut turned = false;
        for (way, count) in self.ways.iter_mut().enumerate() {
            let new = situation(way);
            if new != count.situation {
                turned |= count.change(ts, new);
            }
        }
        turned
    }

    /// The instant at which the next episode is long enough to be among the longest, if none of them ends before.
    pub(crate) fn note_due(&self) -> Ts {
        self.ways.iter().filter_map(Count::note_due).min().unwrap_or(Ts::MAX)
    }
}

impl Count {
    pub(crate) fn new(thresholds: &[Dur]) -> Count {
        Count {
            episodes: Episodes::new(thresholds, KEPT),
            doubtful_ns: 0,
            doubtful_cpu_time_lost_ns: 0,
            by_distance: [0; Distance::ALL.len()],
            nearest: None,
            ended: Vec::new(),
            situation: Situation::default(),
            since: Ts(0),
            log: None,
        }
    }

    /// Applies a situation from `ts` on; returns whether a violation began or ended.
    fn change(&mut self, ts: Ts, new: Situation) -> bool {
        let is_summed = match &mut self.log {
            None => true,
            Some(log) => log.change(ts, self.since, &self.situation, &new),
        };
        if is_summed {
            self.pass(ts);
        } else {
            self.since = ts;
        }
        let old = std::mem::replace(&mut self.situation, new);
        old.amount.holds() != new.amount.holds()
    }

    /// Accounts for the time until `to`.
    fn pass(&mut self, to: Ts) {
        let from = self.since;
        if to <= from {
            return;
        }
        self.since = to;
        self.episodes.pass(from, to, self.situation.amount);
        if !self.situation.amount.holds() {
            self.keep_last();
        }
        if self.situation.doubt > 0 {
            self.doubt(to.since(from));
        }
        if self.situation.nearest.is_some() || self.nearest.is_some() {
            self.approach(to.since(from));
        }
    }

    /// Notes the changes from `at` on, where a piece of a pass begins.
    pub(crate) fn resume(&mut self, at: Ts) {
        self.log = Some(Box::new(SituationLog::new(at, self.situation)));
    }

    /// Whether a later piece begins with the situation of this one. `latest` is the instant of its last event if its episodes
    /// matter: then no episode in it may become one of the longest, which are noted with the machine at that instant.
    pub(crate) fn fits(&self, later: &Count, latest: Option<Ts>) -> bool {
        let Some(log) = &later.log else { return false };
        let shortest = self.episodes.shortest_kept();
        // An episode that has ended is closed when time has passed. It goes on only if the next one begins at that instant.
        let goes_on = self.situation.amount.holds() || self.since >= log.at();
        let open = self.episodes.open().filter(|_| goes_on).unwrap_or((self.since, false));
        log.begun() == &self.situation && latest.is_none_or(|latest| !log.has_long(open, latest, shortest))
    }

    /// Takes the changes of a later piece, and adds its sums.
    pub(crate) fn join(&mut self, later: Count) {
        let (changes, border) = later.log.map(|log| log.into_changes()).unwrap_or_default();
        for (ts, situation) in changes {
            self.change(ts, situation);
        }
        let Some(border) = border else { return };
        self.pass(border);
        // An episode that ended at that very instant is open still.
        self.episodes.close(border);
        self.keep_last();
        self.episodes.join(later.episodes);
        self.doubtful_ns += later.doubtful_ns;
        self.doubtful_cpu_time_lost_ns = self.doubtful_cpu_time_lost_ns.saturating_add(later.doubtful_cpu_time_lost_ns);
        self.by_distance.iter_mut().zip(later.by_distance).for_each(|(sum, ns)| *sum += ns);
        self.ended.extend(later.ended);
        (self.situation, self.since, self.nearest) = (later.situation, later.since, later.nearest);
    }

    /// Keeps the latest episode that has ended for the list, unless it is there.
    pub(crate) fn keep_last(&mut self) {
        if let Some(last) = self.episodes.take_last() {
            self.ended.push((last, self.nearest));
        }
    }

    /// Adds time in which more may have been violated.
    #[cold]
    fn doubt(&mut self, Dur(ns): Dur) {
        let Situation { amount, doubt, .. } = self.situation;
        self.doubtful_ns += if amount.holds() { 0 } else { ns };
        // A damaged stamp makes windows of centuries, for which this has no room.
        let more = ns.saturating_mul(doubt.into());
        self.doubtful_cpu_time_lost_ns = self.doubtful_cpu_time_lost_ns.saturating_add(more);
    }

    /// Adds time in which the current pair was the nearest.
    fn approach(&mut self, Dur(ns): Dur) {
        let nearest = self.situation.nearest;
        self.nearest = nearest.map(|distance| self.nearest.map_or(distance, |other| other.min(distance)));
        if let Some(distance) = nearest {
            self.by_distance[distance as usize] += ns;
        }
        if let Some(scene) = self.episodes.open_note() {
            scene.distance = self.nearest;
        }
    }

    /// The instant at which the open episode, or the one that begins now, is long enough to be among the longest, if
    /// none of them ends before.
    fn note_due(&self) -> Option<Ts> {
        if self.situation.amount.holds() { self.episodes.note_due(self.since) } else { None }
    }

    /// Whether the machine at `ts`, until which the time is accounted for, is to be noted; with the nearest
    /// pair so far.
    pub(crate) fn wants_note(&self, ts: Ts) -> Option<Option<Distance>> {
        self.episodes.wants_note(ts).then_some(self.nearest)
    }
}
