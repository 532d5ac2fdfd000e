//! Kinds of events that were not recorded, as far as the others show.

use super::SchedState;
use super::application::ApplicationBasis;
use crate::event::diag::{Diagnostics, EventIssue};
use crate::event::tracepoint::Tracepoint;
use crate::event::{Cpu, EventKind, TaskRef};
use crate::tables::limits::TASKS;

/// The number of events that counts as evidence: a few may be cut off by the start or the end of a trace.
const ENOUGH: u64 = 4;

/// The numbers of events by the kinds that show where tasks wait.
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
    /// Restores the numbers from a note.
    pub(super) fn noted(numbers: &[u64]) -> SeenKinds {
        let mut seen = SeenKinds::default();
        seen.0.iter_mut().zip(numbers).for_each(|(to, from)| *to = *from);
        seen
    }

    /// Returns the numbers for a note.
    pub(super) fn numbers(&self) -> Vec<u64> {
        self.0.to_vec()
    }

    /// Adds the numbers of a stretch of events.
    pub(super) fn add(&mut self, stretch: &SeenKinds) {
        self.0.iter_mut().zip(stretch.0).for_each(|(all, some)| *all += some);
    }

    /// Counts an event by its kind.
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
    /// Returns the names of the kinds of events that were not recorded, though the others show that they must have
    /// happened. If nothing but `sched_waking` was recorded, the waiting tasks are unknown.
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

    /// Returns the reason why the tasks of the application are unknown, or why there is none; `None` if they are known.
    pub fn why_application_is_unknown(&self) -> Option<&'static str> {
        let SeenKinds(seen) = self.seen;
        if self.application_basis() != ApplicationBasis::Command {
            return self.application_basis().why_none();
        }
        match self.root() {
            None => Some("the exec of the traced command is not in the trace"),
            Some(_) if seen[FORK] == 0 && seen[WAKEUP_NEW] >= ENOUGH => Some("sched_process_fork was not recorded"),
            Some(_) => None,
        }
    }

    /// Whether `sched_waking` was recorded. If so, a wakeup without a waking began before the first event, or in a
    /// loss.
    pub fn has_wakings(&self) -> bool {
        !self.without_wakings || self.seen.0[WAKING] > 0
    }

    /// Takes the discovery of a task that is switched in and was not known to wait. It has waited on `cpu` since the
    /// start, unless that CPU was `emptied` before. After a loss its wakeup may be among the missing events.
    pub(super) fn discover(&mut self, task: TaskRef, cpu: Cpu, emptied: bool) {
        if self.any_loss || self.is_scan || !self.shows_wakeups() {
            return;
        }
        if emptied {
            self.newcomers += 1;
            self.repair(EventIssue::UnseenWakeup);
        } else if !self.incomplete && self.discovered.len() + self.discovered_before < TASKS {
            // The limit holds for all passes together: where tasks die, each pass could find as many anew.
            self.discovered.push((task, cpu));
        }
    }

    /// The number of tasks that came unseen, and not from a CPU without events, if no beginning of a task was recorded.
    fn unseen_births(&self) -> u64 {
        if self.seen.0[FORK] == 0 && self.repaired(EventIssue::UnseenQueue) == 0 { self.newcomers } else { 0 }
    }

    /// Whether events that wake tasks or begin them are missing: some tasks came unseen, and `births` were not
    /// recorded; or tasks were queued on CPUs without events, where others may have been woken.
    pub(crate) fn is_incomplete(&self, births: impl FnOnce() -> bool) -> bool {
        self.repaired(EventIssue::UnseenQueue) > 0 || self.newcomers > 0 && !births()
    }

    /// Whether events that wake tasks may be missing; they are if no births were recorded.
    pub(crate) fn shows_gaps(&self) -> bool {
        self.is_incomplete(|| false)
    }

    /// The number of contradictions so far, and the kind of the latest. An analysis that compares the number before and
    /// after an event finds the places of contradictions.
    #[inline]
    pub fn latest_repair(&self) -> (u64, Option<EventIssue>) {
        self.latest_repair
    }

    /// Returns the missing kinds of events and the repairs, as findings.
    pub fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = self.repairs.clone();
        let missing = self.missing();
        diagnostics.add_many_at(EventIssue::MissingEvents, missing.len() as u64, || missing.join(", "));
        diagnostics
    }
}
