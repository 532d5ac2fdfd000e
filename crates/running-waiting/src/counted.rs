//! The waiting tasks that count in a violation, and parts of the machine where every task is counted.

use crate::{Now, Options};
use sched::{ChosenCpus, Cpu, SchedEvent, SchedState, SubsetCounts};
use serde::Serialize;
use workcons::Watch;

/// The waiting tasks that count in a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// Every waiting task but kernel threads that are bound to their CPU, and tasks that may use no idle CPU.
    Movable,
    /// The selected tasks but those that may use no idle CPU.
    Selected,
}

impl Counted {
    /// The counted tasks in words.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Counted::Movable => "movable waiters",
            Counted::Selected => "the selected waiters",
        }
    }
}

/// Some CPUs where every task is counted: what each of them adds need not be known for that.
#[derive(Clone, Debug)]
pub(crate) struct PanelWatch {
    counts: SubsetCounts,
    watch: Watch,
}

impl PanelWatch {
    pub(crate) fn of(cpus: impl Iterator<Item = Cpu>, options: &Options<'_>, state: &SchedState) -> PanelWatch {
        let cpus = ChosenCpus::only(cpus);
        let mut watch = Watch::new(cpus.clone(), options.affinity.clone());
        watch.begin(state);
        PanelWatch { counts: SubsetCounts::of(&cpus, state), watch }
    }

    pub(crate) fn follow(&mut self, event: &SchedEvent, state: &SchedState) {
        self.watch.after(event, state);
        self.counts.follow(state);
    }

    /// Takes the tasks that wait on CPUs without events, where the state is one within a pass.
    pub(crate) fn resume(&mut self, state: &SchedState) {
        self.watch.resume(state);
    }

    /// Whether another watch of the same CPUs has the same waiters; the counts are those of the state.
    pub(crate) fn knows_same(&self, other: &PanelWatch) -> bool {
        self.watch.knows_same(&other.watch)
    }

    pub(crate) fn now(&self, state: &SchedState) -> Now {
        let counts = self.counts.counts();
        Now::of(counts, self.watch.is_violated(counts, state))
    }
}
