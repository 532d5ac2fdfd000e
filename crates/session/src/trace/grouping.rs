//! The groups that rows of reports are about.

use crate::Session;
use anyhow::Result;
use membership::{TaskGroups, TasksBy};
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
