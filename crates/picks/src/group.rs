//! The groups of tasks, each of which has a run queue of its own on every CPU.

use sched::kthread::is_kernel_thread;
use sched::seeded::SeededMap;
use sched::state::Task;
use sched::{Pid, SchedState};
use serde::{Deserialize, Serialize};

/// The group of a task: its cgroup, or, where that is unknown, whether it is a kernel thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum GroupKey {
    /// The cgroup with this ID.
    Cgroup(u64),
    /// A kernel thread, which is in the root group.
    Kernel,
    /// Another task whose cgroup is unknown.
    Unknown,
}

impl GroupKey {
    /// The group of a task, by those that were given for PIDs, by its records, or by its name.
    pub(crate) fn of(task: &Task, state: &SchedState, given: &SeededMap<Pid, u64>) -> GroupKey {
        let known =
            given.get(&task.pid).copied().or_else(|| state.cgroup(task.pid).map(sched::probe::CgroupId::number));
        match known {
            _ if is_kernel_thread(task.comm) => GroupKey::Kernel,
            Some(group) => GroupKey::Cgroup(group),
            None => GroupKey::Unknown,
        }
    }

    /// Whether two tasks are certainly in different groups: one of them is a kernel thread or has another cgroup, and neither is unknown.
    pub(crate) fn differs(self, other: GroupKey) -> bool {
        self != other && self != GroupKey::Unknown && other != GroupKey::Unknown
    }
}
