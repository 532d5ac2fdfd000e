//! The groups that rows of reports are about, and that selections choose.

use crate::Session;
use crate::args::TaskArgs;
use crate::rows::RowsArgs;
use anyhow::{Result, bail};
use membership::{SchedPolicy, TaskGroups, TasksBy};
use regex::Regex;
use sched::SchedState;
use sched::state::Task;
use std::sync::Arc;

impl Session {
    /// Learns the groups of the tasks by a rule. A trace that shows none of them is reported in a message.
    pub fn task_groups(&self, by: TasksBy) -> Result<Arc<TaskGroups>> {
        let groups = TaskGroups::of(by, &self.trace, self.machine.as_ref(), self.to, || self.names())?;
        if !groups.are_known() {
            let name = self.name();
            match by {
                TasksBy::Cgroup => self.read.message(&format!(
                    "{name}: the cgroups of tasks are unknown: there is no list of them in a machine file, and no record; \
                     record with schedviz record, or with -e cgroup"
                )),
                TasksBy::Process => self.read.message(&format!(
                    "{name}: the processes of tasks are unknown: there is no list of them in a machine file, and no \
                     task:task_newtask; record with schedviz record -e task"
                )),
                TasksBy::Params => self.read.message(&format!(
                    "{name}: the policies of tasks are unknown: there is no list of them in a machine file, and no record; rows \
                     are by the priorities of sched_switch, which do not show SCHED_IDLE and SCHED_BATCH"
                )),
                TasksBy::Task | TasksBy::Command => {}
            }
        }
        Ok(Arc::new(groups))
    }
}

impl RowsArgs {
    /// Learns the groups that the rows are about; nothing where these are tasks, or names as no option asks for others.
    pub fn groups(self, session: &Session) -> Result<Option<Arc<TaskGroups>>> {
        let by = self.by.filter(|by| *by != TasksBy::Task);
        by.map(|by| session.task_groups(by)).transpose()
    }
}

impl TaskArgs {
    /// Returns the function that decides whether a task of a trace is chosen by any of these options, in the present state.
    pub fn chooser(&self, session: &Session) -> Result<impl Fn(&Task, &SchedState) -> bool + use<>> {
        let (filter, forked) = (self.filter(), self.forked);
        let groups = ChosenGroups::of(self.cgroup.as_ref(), &self.policy, session)?;
        Ok(move |task: &Task, state: &SchedState| {
            filter.takes(task.pid, || task.comm)
                && (!forked || task.kin.descends)
                && groups.as_ref().is_none_or(|groups| groups.takes(task, state))
        })
    }
}

/// The groups of tasks that `--cgroup` and `--policy` choose.
struct ChosenGroups {
    /// The cgroups of tasks, and whether each is chosen, by its index.
    cgroups: Option<(Arc<TaskGroups>, Vec<bool>)>,
    /// The parameters of tasks, and the policies that are chosen.
    policies: Option<(Arc<TaskGroups>, Vec<SchedPolicy>)>,
}

impl ChosenGroups {
    /// Learns the groups; nothing where neither option is given.
    fn of(cgroup: Option<&Regex>, policies: &[SchedPolicy], session: &Session) -> Result<Option<ChosenGroups>> {
        if cgroup.is_none() && policies.is_empty() {
            return Ok(None);
        }
        let of_cgroup = |pattern: &Regex| -> Result<_> {
            let groups = session.task_groups(TasksBy::Cgroup)?;
            let chosen: Vec<bool> = groups.cgroup_names().iter().map(|path| pattern.is_match(path)).collect();
            if !chosen.contains(&true) {
                let name = session.name();
                bail!(
                    "--cgroup {pattern}: there is no such cgroup in {name}; schedviz fairness --by cgroup lists those it has"
                );
            }
            Ok((groups, chosen))
        };
        let cgroups = cgroup.map(of_cgroup).transpose()?;
        let policies = match policies {
            [] => None,
            policies => Some((session.task_groups(TasksBy::Params)?, policies.to_vec())),
        };
        Ok(Some(ChosenGroups { cgroups, policies }))
    }

    /// Whether a task is chosen in the present state. One whose cgroup or parameters are unknown is not.
    fn takes(&self, task: &Task, state: &SchedState) -> bool {
        let now = state.now();
        self.cgroups.as_ref().is_none_or(|(groups, chosen)| {
            groups.cgroup(task.pid, now).is_some_and(|cgroup| chosen.get(cgroup.index()).copied().unwrap_or(false))
        }) && self.policies.as_ref().is_none_or(|(groups, policies)| {
            let params = groups.params(task, now);
            params.is_some_and(|params| policies.iter().any(|policy| policy.takes(params.policy)))
        })
    }
}
