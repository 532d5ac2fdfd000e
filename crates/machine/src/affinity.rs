//! The CPUs that tasks may use.

use crate::Root;
use sched::event::CleanText;
use sched::topology::parse_cpu_list;
use sched::{Cpu, Pid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The CPUs that tasks may use, at one moment or while the recorded command ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Affinity {
    /// `start` or `end` of the recording, with every task; or `running`, with those of the recorded command as they were read while it ran, where
    /// a task with several lists had one after another.
    pub at: CleanText,
    /// The tasks by their list of CPUs (`Cpus_allowed_list`), such as `0-7`: the numbers of the threads, ascending.
    pub tasks: BTreeMap<CleanText, Vec<i32>>,
}

impl Affinity {
    /// The moment of the lists at the start of a recording.
    pub const START: &str = "start";
    /// The moment of the lists at the end of a recording.
    pub const END: &str = "end";

    /// The lists of the tasks of the recorded command while it ran its program.
    pub const RUNNING: &str = "running";

    /// Reads the list of every thread; nothing if there is none.
    pub(crate) fn read(root: &Root, at: &str) -> Option<Affinity> {
        let mut tasks: BTreeMap<CleanText, Vec<i32>> = BTreeMap::new();
        for process in root.names("proc").iter().filter(|name| name.parse::<i32>().is_ok()) {
            let folder = format!("proc/{process}/task");
            for thread in root.names(&folder) {
                let status = root.text(format!("{folder}/{thread}/status")).unwrap_or_default();
                let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
                if let (Some(list), Ok(pid)) = (list, thread.parse()) {
                    tasks.entry(list.trim().into()).or_default().push(pid);
                }
            }
        }
        tasks.values_mut().for_each(|pids| pids.sort_unstable());
        (!tasks.is_empty()).then(|| Affinity { at: at.into(), tasks })
    }

    /// The CPUs that a task may use; nothing if the task did not exist.
    pub fn cpus(&self, pid: Pid) -> Option<Vec<Cpu>> {
        let (list, _) = self.tasks.iter().find(|(_, pids)| pids.binary_search(&pid.0).is_ok())?;
        parse_cpu_list(list)
    }
}
