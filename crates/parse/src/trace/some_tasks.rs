//! Recordings of some tasks alone, in which a missing event shows nothing.

use super::Trace;
use crate::decode::cpu_offline::{Behind, Watched};
use crate::decode::plan::{DecodePlan, Oddities, Want};
use crate::issue::FileIssue;
use crate::ring::page::{Loss, Raw};
use crate::ring::unit::{CpuPages, Visitor};
use sched::EventKind;
use sched::kthread::is_any_stopper;

impl Trace {
    /// Whether the file shows that it has the events of some tasks alone.
    pub(crate) fn is_of_some_tasks(&self) -> bool {
        self.diagnostics.count(FileIssue::SomeTasks) > 0
    }

    /// The tasks of a CPU that are watched for not being seen to leave.
    pub(super) fn watched(&self, pages: &CpuPages) -> Watched {
        match () {
            () if self.is_of_some_tasks() => Watched::All,
            () if pages.offline.is_some() && self.behind_a_stopper() == Behind::Offline => Watched::Nothing,
            () => Watched::Stopper,
        }
    }

    /// The state of a CPU behind its stopper, where that is not seen to leave. No selection of tasks has the switch that
    /// is searched for here.
    pub(crate) fn behind_a_stopper(&self) -> Behind {
        let search = || {
            if self.is_of_some_tasks() {
                return Behind::Unknown;
            }
            let plan = self.plan(Want::Switches);
            let mut search = StopperSwitches { plan: &plan, found: false };
            for (_, pages) in self.selected_lanes() {
                for unit in 0..pages.units() {
                    pages.walk(self.source(), unit, &mut search);
                    if search.found {
                        return Behind::Offline;
                    }
                }
            }
            Behind::Unknown
        };
        match self.note() {
            Some(note) if note.is_behind_stoppers_unknown => Behind::Unknown,
            Some(_) => Behind::Offline,
            None => *self.behind_stoppers.get_or_init(search),
        }
    }
}

/// Searches for a switch between an idle task and a stopper.
struct StopperSwitches<'p> {
    /// The plan that decodes the switches.
    plan: &'p DecodePlan,
    found: bool,
}

impl Visitor for StopperSwitches<'_> {
    fn record(&mut self, raw: &Raw<'_>) {
        let found = &mut self.found;
        self.plan.decode(raw.endian, raw.payload, &mut Oddities::default(), |_, _, kind| {
            let EventKind::Switch { prev, next, .. } = kind else { return };
            *found |=
                prev.pid.is_idle() && is_any_stopper(next.comm) || next.pid.is_idle() && is_any_stopper(prev.comm);
        });
    }

    fn gap(&mut self, _: Loss) {}

    fn damage(&mut self, _: FileIssue) {}
}
