//! The groups that rows of reports are about, and that selections choose.

use crate::Session;
use crate::args::TaskArgs;
use crate::rows::RowsArgs;
use anyhow::{Result, bail};
use membership::{ChosenGroups, ChosenTasks, GroupedTask, TaskGroups, TasksBy};
use sched::SchedState;
use sched::state::Task;
use std::sync::Arc;

impl Session {
    /// Learns the groups of the tasks by a rule. A trace that shows none of them is reported in a message.
    pub fn task_groups(&self, by: TasksBy) -> Result<Arc<TaskGroups>> {
        let groups = match by {
            TasksBy::Stack => TaskGroups::of_stacks(self.stack_history()?),
            by => TaskGroups::of(by, &self.trace, self.machine.as_ref(), self.to, || self.names())?,
        };
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
                TasksBy::Stack => self.read.message(&format!(
                    "{name}: no stacks were recorded with the switches: all time off-CPU is in the row of no stack; record with \
                     schedviz record --stacks, trace-cmd record -T or perf record -g"
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
        let groups = self.chosen_groups(session)?;
        Ok(move |task: &Task, state: &SchedState| {
            filter.takes(task.pid, || task.comm)
                && (!forked || task.kin.descends && !task.kin.helps)
                && groups.as_ref().is_none_or(|groups| {
                    let task = GroupedTask::from(task);
                    groups.takes(task.pid, task.prio, state.now())
                })
        })
    }

    /// Learns the tasks that these options choose, but for `--forked`: without the state, by name, number, cgroup and policy.
    pub fn chosen(&self, session: &Session) -> Result<ChosenTasks> {
        Ok(ChosenTasks::new(self.filter(), self.chosen_groups(session)?))
    }

    /// Learns the groups of tasks that `--cgroup` and `--policy` choose; nothing where neither option is given.
    fn chosen_groups(&self, session: &Session) -> Result<Option<ChosenGroups>> {
        let mut chosen = None;
        if let Some(pattern) = &self.cgroup {
            let groups = session.task_groups(TasksBy::Cgroup)?;
            let found = ChosenGroups::default().with_cgroups(groups, |path| pattern.is_match(path));
            if found.lacks_cgroups() {
                let name = session.name();
                bail!(
                    "--cgroup {pattern}: there is no such cgroup in {name}; schedviz fairness --by cgroup lists those it has"
                );
            }
            chosen = Some(found);
        }
        if !self.policy.is_empty() {
            let groups = session.task_groups(TasksBy::Params)?;
            chosen = Some(chosen.unwrap_or_default().with_policies(groups, &self.policy));
        }
        Ok(chosen)
    }
}
