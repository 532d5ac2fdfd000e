//! Kinds of events that were not recorded, as far as the others show.

use super::SchedState;
use crate::event::diag::{Diagnostics, EventIssue};
use crate::event::tracepoint::Tracepoint;
use crate::event::{Cpu, EventKind, TaskRef};
use crate::tables::limits::TASKS;

/// Amount of evidence that is enough: a few events may be cut off by the start or the end of a trace.
const ENOUGH: u64 = 4;

/// The number of events of each kind that shows where tasks wait.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenKinds([u64; KINDS]);

const SWITCH: usize = 0;
const WAKING: usize = 1;
const WAKEUP: usize = 2;
const WAKEUP_NEW: usize = 3;
const MIGRATE: usize = 4;
const FORK: usize = 5;
const OTHER: usize = 6;
const KINDS: usize = 7;

impl SeenKinds {
    /// The numbers that were noted.
    pub(super) fn noted(numbers: &[u64]) -> SeenKinds {
        let mut seen = SeenKinds::default();
        seen.0.iter_mut().zip(numbers).for_each(|(to, from)| *to = *from);
        seen
    }

    /// The numbers, to be noted.
    pub(super) fn numbers(&self) -> Vec<u64> {
        self.0.to_vec()
    }

    #[inline]
    pub(super) fn note(&mut self, kind: &EventKind) {
        let place = match kind {
            EventKind::Switch { .. } => SWITCH,
            EventKind::Waking { .. } => WAKING,
            EventKind::Wakeup { .. } => WAKEUP,
            EventKind::WakeupNew { .. } => WAKEUP_NEW,
            EventKind::Migrate { .. } => MIGRATE,
            EventKind::Fork { .. } => FORK,
            _ => OTHER,
        };
        self.0[place] += 1;
    }
}

impl SchedState {
    /// The kinds of events that were not recorded, though the others show that they must have happened. Without any
    /// but `sched_waking` the waiting tasks are unknown.
    pub fn missing(&self) -> Vec<&'static str> {
        let SeenKinds(seen) = self.seen;
        let none = |kind: usize, shown_by: u64| seen[kind] == 0 && shown_by >= ENOUGH;
        let moved = self.repaired(EventIssue::UnseenMigration);
        let missing = [
            (Tracepoint::Wakeup, self.without_wakeups && none(WAKEUP, seen[SWITCH])),
            (Tracepoint::WakeupNew, none(WAKEUP_NEW, seen[FORK].max(self.unseen_births()))),
            (Tracepoint::Migrate, none(MIGRATE, moved) && !self.any_loss),
            (Tracepoint::Waking, none(WAKING, seen[WAKEUP])),
        ];
        missing.into_iter().filter(|(_, is_missing)| *is_missing).map(|(tracepoint, _)| tracepoint.name()).collect()
    }

    /// Why it is unknown which tasks are the application, the traced command and what descends from it; nothing where it
    /// is known.
    pub fn why_application_is_unknown(&self) -> Option<&'static str> {
        let SeenKinds(seen) = self.seen;
        match self.root() {
            None => Some("the exec of the traced command is not in the trace"),
            Some(_) if seen[FORK] == 0 && seen[WAKEUP_NEW] >= ENOUGH => Some("sched_process_fork was not recorded"),
            Some(_) => None,
        }
    }

    /// Whether `sched_waking` was recorded. Then a wakeup without one began before the first event, or in a loss.
    pub fn has_wakings(&self) -> bool {
        !self.without_wakings || self.seen.0[WAKING] > 0
    }

    /// A task is switched in of which it was not known that it waits: on `cpu` since the start, unless that was
    /// `emptied` before it left. After a loss its wakeup may be among the missing events.
    pub(super) fn come(&mut self, task: TaskRef, cpu: Cpu, emptied: bool) {
        if self.any_loss || !self.shows_wakeups() {
            return;
        }
        if emptied {
            self.newcomers += 1;
            self.repair(EventIssue::UnseenWakeup);
        } else if !self.incomplete && self.discovered.len() + self.discovered_before < TASKS {
            // Not only those that live at once: each pass could find as many anew, where others die.
            self.discovered.push((task, cpu));
        }
    }

    /// Tasks that came unseen, and not from a CPU without events, where the beginning of none was recorded.
    fn unseen_births(&self) -> u64 {
        if self.seen.0[FORK] == 0 && self.repaired(EventIssue::UnseenQueue) == 0 { self.newcomers } else { 0 }
    }

    /// Whether events that wake tasks or begin them are missing: some came unseen, and `births` were not recorded; or
    /// tasks were queued on CPUs of which there is no event, where others may have been woken.
    pub(crate) fn is_incomplete(&self, births: impl FnOnce() -> bool) -> bool {
        self.repaired(EventIssue::UnseenQueue) > 0 || self.newcomers > 0 && !births()
    }

    /// Whether they may be: where no births were recorded, they are.
    pub(crate) fn shows_gaps(&self) -> bool {
        self.is_incomplete(|| false)
    }

    /// The number of contradictions so far, and the kind of the latest: an analysis that compares the number before and
    /// after an event finds the places of them.
    #[inline]
    pub fn latest_repair(&self) -> (u64, Option<EventIssue>) {
        self.latest_repair
    }

    /// The missing kinds and the repairs, as diagnostics.
    pub fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = self.repairs.clone();
        let missing = self.missing();
        diagnostics.add_many_at(EventIssue::MissingEvents, missing.len() as u64, || missing.join(", "));
        diagnostics
    }
}
