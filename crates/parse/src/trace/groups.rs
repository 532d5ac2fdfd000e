//! Facts about the recorded machine that no event shows: the cgroups of tasks, a scheduler with queues of its own, the application, and symbols of the kernel.

use crate::issue::FileIssue;
use crate::text::symbols::{KernelSymbols, SymbolSource};
use crate::trace::Trace;
use sched::probe::CgroupId;
use sched::{Application, CpuCapacities, Pid, SchedIdleTasks};
use std::sync::Arc;

/// The facts about the machine that no event shows.
#[derive(Clone, Debug, Default)]
pub(super) struct UnshownFacts {
    /// The cgroups of tasks at the start.
    pub(super) groups: Arc<[(Pid, CgroupId)]>,
    /// The tasks of `SCHED_IDLE`.
    pub(super) sched_idle: SchedIdleTasks,
    /// The capacities of the CPUs.
    pub(super) capacities: CpuCapacities,
    /// Whether a sched_ext scheduler held the waiting tasks.
    has_ext_queues: bool,
    /// The application, where it is not that of the traced command alone.
    application: Option<Arc<Application>>,
    /// Symbols of the kernel beside those of the trace.
    symbols: Option<Arc<KernelSymbols>>,
}

impl Trace {
    /// Sets the cgroups of tasks at the start, which a machine file lists. Without records of the throttling of cgroups
    /// they are not needed, and are left out.
    pub fn set_groups(&mut self, groups: impl IntoIterator<Item = (Pid, CgroupId)>) {
        let throttle = self.probe("throttle");
        if throttle.is_some_and(|format| format.field("cgroup").is_some()) {
            self.unshown.groups = groups.into_iter().collect();
        }
    }

    /// Sets the tasks of the policy `SCHED_IDLE`, which a machine file lists.
    pub fn set_sched_idle(&mut self, tasks: SchedIdleTasks) {
        self.unshown.sched_idle = tasks;
    }

    /// Sets the capacities of the CPUs, which a machine file lists.
    pub fn set_capacities(&mut self, capacities: CpuCapacities) {
        self.unshown.capacities = capacities;
    }

    /// Whether records show each call that sets the policy of a task: those of the probe `set_params`, or of the system call.
    pub fn records_policies(&self) -> bool {
        self.probe("set_params").is_some() || self.has_named("syscalls", "sys_enter_sched_setscheduler")
    }

    /// Notes hits of probes that the kernel did not record, which a machine file counts; `by_probe` names the probes.
    pub fn set_missed_probes(&mut self, hits: u64, by_probe: impl FnOnce() -> String) {
        self.diagnostics.add_many_at(FileIssue::MissedProbes, hits, by_probe);
    }

    /// Sets symbols of the kernel, which precede those of the trace.
    pub fn set_kernel_symbols(&mut self, symbols: Option<Arc<KernelSymbols>>) {
        self.unshown.symbols = symbols;
    }

    /// Notes that a sched_ext scheduler held the waiting tasks (see [`sched::SchedState::has_ext_queues`]).
    pub fn set_ext_queues(&mut self) {
        self.unshown.has_ext_queues = true;
    }

    /// Whether a sched_ext scheduler held the waiting tasks, by [`Trace::set_ext_queues`] or by the note of a part.
    pub fn has_ext_queues(&self) -> bool {
        self.unshown.has_ext_queues || self.past().is_some_and(|past| past.has_ext_queues)
    }

    /// Whether its events do not show the context in which they were recorded (see [`sched::SchedState::shows_contexts`]).
    pub fn is_without_contexts(&self) -> bool {
        self.diagnostics.count(FileIssue::NoContext) > 0
    }
}

impl Trace {
    /// Sets the application, where it is not that of the traced command alone.
    pub fn set_application(&mut self, application: Application) {
        self.unshown.application = Some(Arc::new(application));
    }

    /// The application that was set; nothing where it is that of the traced command, or of the note of a part.
    pub fn application(&self) -> Option<&Arc<Application>> {
        self.unshown.application.as_ref()
    }
}

impl SymbolSource for Trace {
    fn symbol(&self, address: u64) -> Option<(&str, u64)> {
        let given = self.unshown.symbols.as_ref().and_then(|symbols| symbols.function_at(address));
        given.or_else(|| self.symbols().symbol(address))
    }
}
