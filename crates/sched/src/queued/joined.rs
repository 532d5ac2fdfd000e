//! The kinds of queued time in the pieces of a pass, joined.
//!
//! A later piece begins at zero. The sums of the piece before are added, and those of an interval that was pending where the pieces meet go to
//! the kind that the later piece has found. Up to [`QueuedKinds::join`] the earlier piece is as it was at the border, for the waits across it.

use super::readings::{QueuedReading, QueuedTimes};
use super::usable::{QueueTimes, UsableCpus};
use super::{CpuStanding, FollowedCpu, HELD_BACK, MOST_SETS, PendingInterval, QueuedKinds, UsableClass};
use crate::event::{Cpu, Ts};

/// The outcome of an interval that was pending at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstOutcome {
    /// The interval has not ended.
    Pending,
    /// The interval was held back.
    HeldBack,
    /// The interval was too short, or a switch was not recorded.
    Other,
}

/// An interval that was pending at the beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstInterval {
    pub(super) since: Ts,
    pub(super) outcome: FirstOutcome,
}

impl QueuedKinds {
    /// Whether a later piece, begun where this one has arrived, can be joined.
    pub fn fits(&self, later: &QueuedKinds) -> bool {
        let pending = |entry: &FollowedCpu| entry.pending.map(|pending| pending.since);
        let is_same = |cpu: usize| {
            let first = later.cpus.get(cpu).and_then(|entry| entry.first).map(|first| first.since);
            self.cpus.get(cpu).and_then(pending) == first
        };
        let is_new = |usable: &&UsableCpus| self.usable_of(usable.class).is_none();
        (0..self.cpus.len().max(later.cpus.len())).all(is_same)
            && self.weights_fit(later)
            && later
                .first_classes
                .iter()
                .all(|(task, class)| self.classes.get(*task).is_some_and(|waiter| waiter.class == *class))
            && self.changes.fit(&later.changes)
            && self.usable.len() + later.usable.iter().filter(is_new).count() <= MOST_SETS
    }

    fn usable_of(&self, class: UsableClass) -> Option<&UsableCpus> {
        self.usable.iter().find(|usable| usable.class == class)
    }

    /// Whether the interval that was pending at the beginning on the CPU of a wait that ends with this reading counts as held back there.
    pub fn was_first_held(&self, end: &QueuedReading) -> bool {
        let Some(first) = self.cpus.get(end.cpu.index()).and_then(|entry| entry.first) else { return false };
        match end.pending {
            Some(pending) if pending.ordinal == 0 => end.at.since(first.since) >= HELD_BACK,
            _ => first.outcome == FirstOutcome::HeldBack,
        }
    }

    /// The time from a reading in this piece to the instant `at` at which a later one begins. `was_held`: [`QueuedKinds::was_first_held`]
    /// of the later piece.
    pub fn up_to_border(&self, begun: &QueuedReading, at: Ts, was_held: bool) -> QueuedTimes {
        self.times(begun, &self.end_wait(begun, at), was_held)
    }

    /// The reading that one of a later piece is in this one.
    #[must_use]
    pub fn shifted(&self, reading: &QueuedReading, later: &QueuedKinds) -> QueuedReading {
        let here = self.reading((None, 0), reading.class, reading.cpu, later.start);
        let entry = |kinds: &QueuedKinds| kinds.cpus.get(reading.cpu.index()).map(|entry| (entry.ordinal, entry.first));
        let first = entry(later).and_then(|(_, first)| first);
        let (mut sums, mut pending) = (reading.sums.plus(here.sums), reading.pending);
        if let (Some(first), Some(before)) = (first, here.pending) {
            match &mut pending {
                Some(pending) if pending.ordinal == 0 => pending.moved = pending.moved.plus(before.moved),
                _ if first.outcome == FirstOutcome::HeldBack => sums = sums.plus(before.moved),
                _ => {}
            }
        }
        let ordinal = entry(self).map_or(0, |(ordinal, _)| ordinal);
        pending.iter_mut().for_each(|pending| pending.ordinal += ordinal);
        QueuedReading { sums, pending, ..*reading }
    }

    /// Adds a later piece, which fits.
    pub fn join(&mut self, later: QueuedKinds) {
        let at = later.start;
        self.join_changes(&later);
        let number = self.cpus.len().max(later.cpus.len());
        self.cpus.resize(number, FollowedCpu::NEW);
        for usable in &later.usable {
            if self.usable_of(usable.class).is_none() {
                self.usable.push(UsableCpus::new(usable.class, usable.set.clone(), at));
            }
        }
        for (cpu, entry) in (0..).map(Cpu).zip(&later.cpus) {
            self.end_first(cpu, entry.first, at);
        }
        let standings = |cpus: &[FollowedCpu]| -> Vec<CpuStanding> {
            (0..number).map(|cpu| cpus.get(cpu).map_or(CpuStanding::NONE, |entry| entry.standing)).collect()
        };
        let (before, behind) = (standings(&self.cpus), standings(&later.cpus));
        let goes_on: Vec<bool> = self.cpus.iter().map(|entry| entry.pending.is_some()).collect();
        for usable in &mut self.usable {
            usable.join(later.usable_of(usable.class), (&before, &behind), &goes_on, at);
        }
        for (entry, later) in self.cpus.iter_mut().zip(later.cpus) {
            entry.join(later);
        }
        let before = std::mem::replace(&mut self.classes, later.classes);
        for (task, waiter) in self.classes.entries_mut() {
            waiter.began_here |= before.get(task).is_some_and(|before| before.began_here);
        }
        self.odd_cpus = later.odd_cpus;
        self.by_capacity = later.by_capacity;
        self.has_weighed |= later.has_weighed;
    }

    /// The interval that was pending where a later piece begins has come to this outcome.
    fn end_first(&mut self, cpu: Cpu, first: Option<FirstInterval>, at: Ts) {
        let Some(outcome) = first.map(|first| first.outcome).filter(|outcome| *outcome != FirstOutcome::Pending) else {
            return;
        };
        let entry = &mut self.cpus[cpu.index()];
        let Some(pending) = entry.pending.take() else { return };
        let is_held = outcome == FirstOutcome::HeldBack;
        if is_held {
            entry.held += at.since(pending.from).0 as i64;
            let length = entry.standing.length;
            self.usable.iter_mut().for_each(|usable| usable.set_aside(cpu, length, at));
        }
        // Waits of the later piece can have begun in it.
        self.cpus[cpu.index()].end_pending(&PendingInterval { is_noted: true, ..pending }, is_held);
    }
}

impl FollowedCpu {
    fn join(&mut self, later: FollowedCpu) {
        let before = self.ordinal;
        self.held += later.held;
        self.ordinal += later.ordinal;
        (self.standing, self.capacity) = (later.standing, later.capacity);
        if later.was_empty {
            self.held_intervals.clear();
        }
        self.was_empty |= later.was_empty;
        self.held_intervals.extend(later.held_intervals.into_iter().map(|ordinal| before + ordinal));
        self.pending = match (later.pending, self.pending) {
            (Some(later), Some(pending)) => {
                Some(PendingInterval { is_noted: pending.is_noted || later.is_noted, ..pending })
            }
            (later, _) => later.map(|later| PendingInterval { ordinal: before + later.ordinal, ..later }),
        };
    }
}

impl UsableCpus {
    /// Adds the times of a later piece, in which the CPUs came from some standings to others; nothing where no task of the class waited in it.
    /// `goes_on`: whether the interval that was pending at the border still is, by CPU.
    fn join(
        &mut self,
        later: Option<&UsableCpus>,
        (before, behind): (&[CpuStanding], &[CpuStanding]),
        goes_on: &[bool],
        at: Ts,
    ) {
        self.account(at);
        self.join_surplus(later, goes_on, at);
        let mut queues = Vec::with_capacity(before.len());
        for ((cpu, goes_on), (before, behind)) in (0..).map(Cpu).zip(goes_on).zip(before.iter().zip(behind)) {
            let queue = self.queues.get(cpu.index()).copied().unwrap_or_default();
            let more = later.and_then(|later| later.queues.get(cpu.index())).copied().unwrap_or_default();
            let (idle, shorter) = self.all(cpu, before.length, at);
            queues.push(QueueTimes {
                shorter: shorter + more.shorter,
                mark: self.shorter_than(behind.length, at) + more.mark,
                aside: (queue.aside.0 + more.aside.0, queue.aside.1 + more.aside.1),
                pending: if *goes_on { queue.pending } else { (idle + more.pending.0, shorter + more.pending.1) },
            });
        }
        self.queues = queues;
        match later {
            Some(later) => {
                self.idle += later.idle;
                self.by_least.resize(self.by_least.len().max(later.by_least.len()), 0);
                self.by_least.iter_mut().zip(&later.by_least).for_each(|(sum, ns)| *sum += ns);
                (self.numbers, self.least, self.last) = (later.numbers.clone(), later.least, later.last);
            }
            None => {
                // No wait of the class goes on.
                for (cpu, (before, behind)) in (0..).map(Cpu).zip(before.iter().zip(behind)) {
                    if before.place != behind.place && self.set.as_ref().is_none_or(|set| set.has(cpu)) {
                        self.displace(before.place, behind.place, at);
                    }
                }
            }
        }
    }
}
