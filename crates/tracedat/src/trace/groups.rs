//! The cgroups of tasks, which the events show only where they change.

use crate::trace::Trace;
use sched::Pid;
use sched::probe::CgroupId;

impl Trace {
    /// Sets the cgroups of tasks at the start, which a machine file lists. Without records of the throttling of cgroups
    /// they are not needed, and are left out.
    pub fn set_groups(&mut self, groups: impl IntoIterator<Item = (Pid, CgroupId)>) {
        let throttle = self.probe("throttle");
        if throttle.is_some_and(|format| format.field("cgroup").is_some()) {
            self.groups = groups.into_iter().collect();
        }
    }
}
