//! The classes of the scheduler in a trace: the release of the kernel that decides between them, and deadline tasks.

use crate::Session;
use membership::ParamsHistory;
use sched::nice::FairBefore;
use std::sync::Arc;

impl Session {
    /// The first two numbers of the kernel's release: by the trace, or else by the machine file; nothing where neither has it.
    pub fn kernel_release(&self) -> Option<(u32, u32)> {
        let version = |release: &str| {
            let mut parts = release.split(|c: char| !c.is_ascii_digit());
            Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
        };
        let of_machine = || version(self.machine.as_ref()?.kernel.release.as_deref()?);
        self.trace.info().kernel.as_deref().and_then(version).or_else(of_machine)
    }

    /// The reason for which this kernel runs a fair task in the place of a waiting real-time task.
    pub fn fair_before(&self) -> FairBefore {
        FairBefore::of(self.kernel_release())
    }

    /// Learns the parameters of deadline tasks from the records of the calls that set them; nothing where there are none.
    pub fn deadline_params(&self) -> Option<Arc<ParamsHistory>> {
        let learned = ParamsHistory::can_show_deadlines(&self.trace)
            .then(|| ParamsHistory::of(&self.trace, self.machine.as_ref()));
        learned.filter(ParamsHistory::has_deadlines).map(Arc::new)
    }
}
