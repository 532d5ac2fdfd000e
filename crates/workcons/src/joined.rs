//! The pieces of a pass, joined.
//!
//! A later piece follows the sets as ever. Up to the first stretch of time without a violation it notes the changes, which the
//! analysis of the pieces before takes one by one: an episode that began earlier goes on there. Episodes behind that stretch are
//! the piece's own, and their sums are added. The longest episodes are kept with the machine as it was when each became one of the longest. That
//! instant depends on all episodes before, and only the piece itself has the machine: a piece in which it comes does not fit.

use crate::strips::Gatherer;
use crate::violation::{FollowedSets, Situation};
use crate::{LengthCheck, WorkConservation, flags};
use sched::{Analysis, Dur, Joined, SchedState, Ts};

/// The beginning of a later piece of a pass, and the steps that depend on the pieces before.
pub(crate) struct PieceLog {
    at: Ts,
    followed: FollowedSets,
    /// The beginnings (`true`) and ends of the traced command.
    pub(crate) traced: Vec<(Ts, bool)>,
    /// The instant of the latest event.
    pub(crate) latest: Ts,
    /// The instant from which the violation is to be sampled.
    pub(crate) sample_at: Ts,
}

/// The beginning of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EpisodeStart {
    /// The beginning of the piece, or an instant before it.
    Earlier,
    At(Ts),
}

/// The changes of the situation in a later piece of a pass, up to its first stretch of time without a violation.
#[derive(Clone, Debug)]
pub(crate) struct SituationLog {
    at: Ts,
    begun: Situation,
    changes: Vec<(Ts, Situation)>,
    /// The beginning of the first stretch of time without a violation; `None` before there is one.
    border: Option<Ts>,
    /// The episode that is open now.
    open: Option<EpisodeStart>,
    /// The latest episode that has ended, with its end: one that begins again at that instant goes on.
    ended: Option<(EpisodeStart, Ts)>,
    /// The end of the episode that began before the piece or with it.
    first_end: Option<Ts>,
    /// The length of the longest other one.
    longest: Option<Dur>,
}

impl SituationLog {
    pub(crate) fn new(at: Ts, begun: Situation) -> SituationLog {
        let open = begun.amount.holds().then_some(EpisodeStart::Earlier);
        SituationLog { at, begun, changes: Vec::new(), border: None, open, ended: None, first_end: None, longest: None }
    }

    /// The instant of the beginning.
    pub(crate) fn at(&self) -> Ts {
        self.at
    }

    /// The situation at the beginning.
    pub(crate) fn begun(&self) -> &Situation {
        &self.begun
    }

    /// The changes up to the first stretch of time without a violation, and the beginning of that stretch if there is one.
    pub(crate) fn into_changes(self) -> (Vec<(Ts, Situation)>, Option<Ts>) {
        (self.changes, self.border)
    }

    /// Notes a change from `old`, which has held since `since`, to `new`. Returns whether the piece sums the time until now itself.
    pub(crate) fn change(&mut self, ts: Ts, since: Ts, old: &Situation, new: &Situation) -> bool {
        if self.border.is_none() && ts > since && !old.amount.holds() {
            self.border = Some(since);
        }
        if self.border.is_none() {
            self.changes.push((ts, *new));
        }
        match (old.amount.holds(), new.amount.holds()) {
            (true, false) => {
                let start = self.open.take().unwrap_or(EpisodeStart::Earlier);
                match start {
                    EpisodeStart::Earlier => self.first_end = Some(ts),
                    EpisodeStart::At(from) => self.longest = self.longest.max(Some(ts.since(from))),
                }
                self.ended = Some((start, ts));
            }
            (false, true) => {
                let goes_on = self.ended.filter(|(_, end)| *end == ts).map(|(start, _)| start);
                let start = if ts == self.at { EpisodeStart::Earlier } else { EpisodeStart::At(ts) };
                self.open = Some(goes_on.unwrap_or(start));
            }
            _ => {}
        }
        self.border.is_some()
    }

    /// Whether some episode in the piece, up to the `latest` event, becomes longer than the shortest that is kept. `earlier`
    /// is the start of the one that goes on from before, and whether the machine was noted for it already.
    pub(crate) fn has_long(&self, (start, is_noted): (Ts, bool), latest: Ts, shortest: Option<Dur>) -> bool {
        let is_long = |length: Dur| shortest.is_none_or(|shortest| length > shortest);
        let first_end = if self.open == Some(EpisodeStart::Earlier) { Some(latest) } else { self.first_end };
        let open = match self.open {
            Some(EpisodeStart::At(from)) => Some(latest.since(from)),
            _ => None,
        };
        first_end.is_some_and(|end| !is_noted && is_long(end.since(start)))
            || open.max(self.longest).is_some_and(is_long)
    }
}

impl Joined for WorkConservation<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, start: Ts, at: Ts, state: &SchedState) {
        self.begin(at, state);
        // Tasks that began to wait on CPUs without events within the window are followed as well.
        let options = self.options;
        for cpu in state.unobserved_queues().filter(|cpu| !options.assume_idle.contains(cpu)) {
            self.followed.begin(cpu, state, options.affinity, |task, cpu| flags(options, task, cpu, state));
        }
        self.counts.resume(at);
        self.pending_switches.resume();
        self.confined.iter_mut().for_each(|confined| confined.resume(start));
        self.strips.iter_mut().for_each(Gatherer::resume);
        self.sampled = at;
        self.throttling.iter_mut().for_each(|throttling| throttling.resume(start));
        self.unbalanced.iter_mut().for_each(|unbalanced| unbalanced.resume(at));
        let followed = self.followed.clone();
        let piece = PieceLog { at, followed, traced: Vec::new(), latest: at, sample_at: Ts::MAX };
        self.piece = Some(Box::new(piece));
        // Each event comes to `note`, which finds the latest one.
        self.note_at = Ts::MIN;
        self.await_note(at);
    }

    fn fits(&self, later: &Self) -> bool {
        let Some(piece) = &later.piece else { return false };
        self.followed.has_same(&piece.followed)
            && self.counts.fits(&later.counts, self.options.waiters as usize, piece.latest)
    }

    fn join(&mut self, later: Self) {
        let Some(piece) = later.piece else { return };
        self.account(piece.at);
        self.integrals.running += later.integrals.running;
        self.integrals.waiting += later.integrals.waiting;
        self.integrals.unknown += later.integrals.unknown;
        self.counts.join(later.counts);
        self.list();
        if let (Some(capacity), Some(later)) = (&mut self.capacity, later.capacity) {
            capacity.join(piece.at, &later);
        }
        self.pending_switches.join(later.pending_switches);
        if let (Some(strips), Some(later)) = (&mut self.strips, later.strips) {
            strips.join(later);
        }
        if let (Some(confined), Some(later)) = (&mut self.confined, later.confined) {
            confined.join(later);
        }
        if let (Some(throttling), Some(later)) = (&mut self.throttling, later.throttling) {
            throttling.join(later);
        }
        if let (Some(unbalanced), Some(later)) = (&mut self.unbalanced, later.unbalanced) {
            unbalanced.join(*later);
        }
        piece.traced.into_iter().for_each(|(ts, begins)| self.trace_command(ts, begins));
        (self.followed, self.last) = (later.followed, later.last);
        self.sampled = self.sampled.max(later.sampled);
        self.await_note(piece.latest);
    }
}

/// The check of the lengths of run queues follows every pass alone.
impl Joined for LengthCheck {}
