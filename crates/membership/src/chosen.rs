//! Selections of tasks by their names, their numbers, their cgroups and their policies.

use crate::{CgroupIndex, GroupedTask, SchedPolicy, TaskGroups};
use sched::{Comm, Pid, TaskFilter, Ts};
use std::sync::Arc;

/// A selection of tasks by the name, the number, the cgroup and the policy of each at an instant: a command needs no state of the scheduler for it. The
/// default selects all tasks.
#[derive(Clone, Debug, Default)]
pub struct ChosenTasks {
    filter: TaskFilter,
    groups: Option<Arc<ChosenGroups>>,
}

/// The cgroups and the policies of which tasks are chosen.
#[derive(Clone, Debug, Default)]
pub struct ChosenGroups {
    /// The cgroups of tasks, and whether each is chosen, by its index.
    cgroups: Option<(Arc<TaskGroups>, Vec<bool>)>,
    /// The parameters of tasks, and the policies that are chosen.
    policies: Option<(Arc<TaskGroups>, Vec<SchedPolicy>)>,
}

impl ChosenTasks {
    /// The tasks that both the filter and the groups select; without groups the filter decides.
    pub fn new(filter: TaskFilter, groups: Option<ChosenGroups>) -> ChosenTasks {
        ChosenTasks { filter, groups: groups.map(Arc::new) }
    }

    /// Whether all tasks are selected.
    pub fn takes_all(&self) -> bool {
        self.filter.takes_all() && self.groups.is_none()
    }

    /// Whether a task of this PID and name is selected at an instant. `name` is called only if the name matters.
    pub fn takes(&self, pid: Pid, ts: Ts, name: impl Fn() -> Comm) -> bool {
        self.filter.takes(pid, name) && self.groups.as_ref().is_none_or(|groups| groups.takes(pid, None, ts))
    }

    /// Whether cgroups or policies select, so that a task can be selected for a part of its run.
    pub fn are_of_groups(&self) -> bool {
        self.groups.is_some()
    }

    /// The first instant after `ts` at which the cgroup or the policy of a task may change; nothing where neither selects.
    pub fn next_change(&self, pid: Pid, ts: Ts) -> Option<Ts> {
        self.groups.as_ref()?.next_change(pid, ts)
    }
}

impl From<TaskFilter> for ChosenTasks {
    fn from(filter: TaskFilter) -> ChosenTasks {
        ChosenTasks::new(filter, None)
    }
}

impl ChosenGroups {
    /// The tasks of some cgroups, each of which is chosen by its path.
    #[must_use]
    pub fn with_cgroups(self, groups: Arc<TaskGroups>, is_chosen: impl Fn(&str) -> bool) -> ChosenGroups {
        let chosen = groups.cgroup_names().iter().map(|path| is_chosen(path)).collect();
        ChosenGroups { cgroups: Some((groups, chosen)), ..self }
    }

    /// The tasks of these policies.
    #[must_use]
    pub fn with_policies(self, groups: Arc<TaskGroups>, policies: &[SchedPolicy]) -> ChosenGroups {
        ChosenGroups { policies: Some((groups, policies.to_vec())), ..self }
    }

    /// Whether no cgroup of the trace is chosen, though some were asked for.
    pub fn lacks_cgroups(&self) -> bool {
        self.cgroups.as_ref().is_some_and(|(_, chosen)| !chosen.contains(&true))
    }

    /// The first instant after `ts` at which the cgroup or the policy of a task may change.
    fn next_change(&self, pid: Pid, ts: Ts) -> Option<Ts> {
        let by_cgroup = self.cgroups.as_ref().and_then(|(groups, _)| groups.next_change(pid, ts));
        let by_policy = self.policies.as_ref().and_then(|(groups, _)| groups.next_change(pid, ts));
        by_cgroup.into_iter().chain(by_policy).min()
    }

    /// Whether a task is chosen at an instant. `prio` is the priority of one that no switch shows. A task whose cgroup or parameters are
    /// unknown is not chosen.
    pub fn takes(&self, pid: Pid, prio: Option<i32>, ts: Ts) -> bool {
        let is_chosen = |chosen: &[bool], cgroup: CgroupIndex| chosen.get(cgroup.index()).copied().unwrap_or(false);
        self.cgroups
            .as_ref()
            .is_none_or(|(groups, chosen)| groups.cgroup(pid, ts).is_some_and(|cgroup| is_chosen(chosen, cgroup)))
            && self.policies.as_ref().is_none_or(|(groups, policies)| {
                let task = GroupedTask { pid, comm: Comm::EMPTY, prio, is_kernel: false };
                let params = groups.params(task, ts);
                params.is_some_and(|params| policies.iter().any(|policy| policy.takes(params.policy)))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cgroups, ParamsHistory};

    #[test]
    fn a_task_is_chosen_while_it_is_in_the_cgroup_and_has_the_policy() {
        let moves = [(Ts::MIN, Pid(7), Some("/a")), (Ts(5), Pid(7), Some("/b")), (Ts(9), Pid(7), None)];
        let cgroups = Arc::new(TaskGroups::of_cgroups(Cgroups::of_moves(&moves)));
        let policies = ParamsHistory::of_changes(&[(Ts(6), Pid(7), Some(SchedPolicy::Idle))]);
        let params = Arc::new(TaskGroups::of_params(policies));
        let groups = ChosenGroups::default().with_cgroups(cgroups.clone(), |path| path == "/b");
        let takes = |groups: &ChosenGroups| [4, 5, 8, 9].map(|ts| groups.takes(Pid(7), Some(120), Ts(ts)));
        assert_eq!(takes(&groups), [false, true, true, false]);
        let both = groups.clone().with_policies(params, &[SchedPolicy::Idle]);
        assert_eq!(takes(&both), [false, false, true, false]);
        // Without a priority the parameters are unknown.
        assert!(!both.takes(Pid(7), None, Ts(8)));
        assert!(!groups.lacks_cgroups());
        assert!(ChosenGroups::default().with_cgroups(cgroups, |path| path == "/c").lacks_cgroups());
        let filter = TaskFilter { pids: vec![Pid(8)], ..TaskFilter::default() };
        let takes =
            |filter: TaskFilter| ChosenTasks::new(filter, Some(groups.clone())).takes(Pid(7), Ts(5), || Comm::EMPTY);
        assert_eq!((takes(TaskFilter::default()), takes(filter)), (true, false));
        let next = |groups: &ChosenGroups| {
            let chosen = ChosenTasks::new(TaskFilter::default(), Some(groups.clone()));
            [4, 5, 9].map(|ts| chosen.next_change(Pid(7), Ts(ts)))
        };
        assert_eq!(next(&groups), [Some(Ts(5)), Some(Ts(9)), None]);
        assert_eq!(next(&both), [Some(Ts(5)), Some(Ts(6)), None]);
        assert_eq!(ChosenTasks::default().next_change(Pid(7), Ts(4)), None);
        assert!(
            ChosenTasks::default().takes_all() && !ChosenTasks::new(TaskFilter::default(), Some(groups)).takes_all()
        );
    }
}
