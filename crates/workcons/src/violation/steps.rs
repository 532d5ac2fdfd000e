//! Violations at the steps of a replay.

use super::Watch;
use sched::affinity::Affinity;
use sched::replay::StepWatch;
use sched::state::SubsetCounts;
use sched::{ChosenCpus, CpuCounts, SchedEvent, SchedState};
use std::sync::Arc;

/// Decides at each step of a replay whether work conservation is violated among some CPUs, as [`Watch`] has it.
#[derive(Clone, Debug)]
pub struct ViolationSteps {
    cpus: ChosenCpus,
    watch: Watch,
    /// The counts of the chosen CPUs, if these are not all.
    part: Option<SubsetCounts>,
}

impl ViolationSteps {
    /// Makes a decision among these CPUs. `affinity` has the CPUs that tasks may use, where they are known.
    pub fn new(cpus: &ChosenCpus, affinity: Option<&Arc<Affinity>>) -> ViolationSteps {
        ViolationSteps { cpus: cpus.clone(), watch: Watch::new(cpus.clone(), affinity.cloned()), part: None }
    }

    fn is_violated(&self, counts: &CpuCounts, state: &SchedState) -> bool {
        self.watch.is_violated(counts, state)
    }
}

impl StepWatch for ViolationSteps {
    const COUNTS: bool = true;

    fn begin(&mut self, state: &SchedState) {
        self.part = (!self.cpus.are_all()).then(|| SubsetCounts::of(&self.cpus, state));
        self.watch.begin(state);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        if let Some(part) = &mut self.part {
            part.follow(state);
        }
        self.watch.after(event, state);
    }

    fn holds(&self, state: &SchedState) -> bool {
        self.is_violated(self.part.as_ref().map_or_else(|| state.counts(), SubsetCounts::counts), state)
    }
}

/// Whether work conservation is violated in one state among some CPUs, as [`Watch`] has it. `affinity` has the CPUs that
/// tasks may use, where they are known.
pub fn is_violated_in(state: &SchedState, cpus: &ChosenCpus, affinity: Option<&Arc<Affinity>>) -> bool {
    let mut steps = ViolationSteps::new(cpus, affinity);
    steps.watch.begin(state);
    steps.is_violated(SubsetCounts::of(cpus, state).counts(), state)
}
