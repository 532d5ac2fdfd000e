//! The cgroups and the processes of tasks, as samples and other records show them.

use crate::limits;
use parse::TaskRecords;
use sched::seeded::SeededMap;
use sched::{Pid, Ts};

/// The records so far.
#[derive(Debug, Default)]
pub(crate) struct Memberships {
    records: TaskRecords,
    /// The latest cgroup and process of each task, in the order of the file.
    cgroups: SeededMap<u32, u64>,
    processes: SeededMap<u32, u32>,
}

impl Memberships {
    /// Adds the task of a sample with its cgroup.
    pub(crate) fn add_sample(&mut self, time: u64, sampled: Option<(u32, u64)>) {
        let Some((task, cgroup)) = sampled else { return };
        let kept = &mut self.records.cgroups;
        if task != 0 && self.cgroups.get(&task) != Some(&cgroup) && kept.len() < limits::MEMBERSHIPS {
            self.cgroups.insert(task, cgroup);
            kept.push((ts(time), Pid(task.cast_signed()), cgroup));
        }
    }

    /// Adds the process of a task: of each fork, since the task's name, in the buffer of another CPU, can stand before it.
    pub(crate) fn add_process(&mut self, time: u64, (task, process): (u32, u32), is_fork: bool) {
        let kept = &mut self.records.processes;
        let is_news = is_fork || self.processes.get(&task) != Some(&process);
        if task != 0 && is_news && kept.len() < limits::MEMBERSHIPS {
            self.processes.insert(task, process);
            kept.push((ts(time), Pid(task.cast_signed()), Pid(process.cast_signed())));
        }
    }

    /// Adds the path of a cgroup.
    pub(crate) fn add_path(&mut self, id: u64, path: &[u8]) {
        let (most, longest) = limits::PATHS;
        let paths = &mut self.records.paths;
        if path.len() <= longest && (paths.len() < most || paths.contains_key(&id)) {
            paths.insert(id, path.to_vec());
        }
    }

    /// The records in the order of time; nothing if there are none.
    pub(crate) fn into_records(self) -> Option<TaskRecords> {
        let mut records = self.records;
        records.cgroups.sort_by_key(|(time, ..)| *time);
        records.processes.sort_by_key(|(time, ..)| *time);
        let is_empty = records.cgroups.is_empty() && records.processes.is_empty();
        (!is_empty).then_some(records)
    }
}

fn ts(time: u64) -> Ts {
    Ts(i64::try_from(time).unwrap_or(i64::MAX))
}
