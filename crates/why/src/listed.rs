//! Waits and idle stretches one by one.

use crate::Why;
use crate::category::{Category, IdleEnd, IdleOrigin, WaitEnd, WaitOrigin};
use crate::ledger::{Case, CategorizedCase, MoveKey};
use crate::nearest::Nearest;
use crate::wait::Wait;
use sched::{Cause, ChosenCpus, Comm, Cpu, Pid, Ts};

/// A wait or an idle stretch with its categories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedCase<O, E> {
    /// The start of the case; that of the window where the case began before.
    pub start: Ts,
    /// The end of the case; that of the window where the case goes on behind it.
    pub end: Ts,
    /// The CPU that idled, or on whose run queue the task waited.
    pub cpu: Cpu,
    /// The task that waited; [`Pid::IDLE`] for an idle stretch.
    pub pid: Pid,
    /// The command name of the task when the wait ended; empty for an idle stretch.
    pub command: Comm,
    /// Whether the case counts in the sums: the wait of a task that is not counted has no time in violation.
    pub counted: bool,
    /// The part of it in violation, in nanoseconds.
    pub violated_ns: u64,
    /// The nearest CPU with a counted waiter, where it is an idle stretch that began with a missed steal.
    pub missed: Option<Nearest>,
    /// The origin of the case.
    pub origin: O,
    /// The end of the case.
    pub ending: E,
}

impl<O: Copy, E: Copy> ListedCase<O, E> {
    fn of(part: &CategorizedCase<O, E>) -> ListedCase<O, E> {
        let case = part.case;
        ListedCase {
            start: case.start,
            end: case.end,
            cpu: case.cpu,
            pid: case.pid,
            command: case.command,
            counted: case.counted,
            violated_ns: case.violated,
            missed: case.missed,
            origin: part.origin.0,
            ending: part.end.0,
        }
    }
}

/// Takes the waits and the idle stretches on the chosen CPUs, each when it has ended and the causes of its migrations
/// are settled.
pub struct Cases<'o> {
    /// Takes each wait.
    pub wait: &'o (dyn Fn(&ListedCase<WaitOrigin, WaitEnd>) + Sync),
    /// Takes each idle stretch.
    pub stretch: &'o (dyn Fn(&ListedCase<IdleOrigin, IdleEnd>) + Sync),
}

impl Cases<'_> {
    pub(crate) fn wait(&self, part: &CategorizedCase<WaitOrigin, WaitEnd>, cpus: &ChosenCpus) {
        if cpus.has(part.case.cpu) {
            (self.wait)(&ListedCase::of(part));
        }
    }

    pub(crate) fn stretch(&self, part: &CategorizedCase<IdleOrigin, IdleEnd>, cpus: &ChosenCpus) {
        if cpus.has(part.case.cpu) {
            (self.stretch)(&ListedCase::of(part));
        }
    }
}

impl Why<'_> {
    /// Lists the cases that are complete by now.
    pub(crate) fn list(&mut self) {
        if let Some(cases) = self.listing.filter(|_| self.log.is_none()) {
            let cpus = &self.options.cpus;
            self.waits.drain(|part| cases.wait(&part, cpus));
            self.stretches.drain(|part| cases.stretch(&part, cpus));
        }
    }

    /// Lists a wait that is in no sum, if waits are listed.
    pub(crate) fn list_uncounted(
        &mut self,
        wait: &Wait,
        end: (WaitEnd, Option<MoveKey>),
        (pid, command): (Pid, Comm),
        now: Ts,
    ) {
        if self.listing.is_some() {
            let (start, cpu) = (wait.start, wait.cpu);
            let case = Case { violated: 0, start, end: now, cpu, pid, command, counted: false, missed: None };
            self.waits.take(CategorizedCase { origin: wait.origin, end, case });
        }
    }
}

/// The words of the categories: those of the rows of the report.
macro_rules! words {
    ($($category:ty),+) => {$(
        impl $category {
            /// The word of the category in the JSON, without its details.
            pub fn word(self) -> &'static str {
                self.key()
            }

            /// The cause of the migration, where it is one.
            pub fn migration(self) -> Option<Cause> {
                self.cause()
            }

            /// The nearest idle CPU, where it is a placement at a wakeup.
            pub fn nearest(self) -> Option<Nearest> {
                self.nearest_idle()
            }
        }
    )+};
}
words!(WaitOrigin, WaitEnd, IdleOrigin, IdleEnd);
