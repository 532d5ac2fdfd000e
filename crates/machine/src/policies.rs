//! The scheduling policies of tasks.

use crate::Root;
use sched::event::CleanText;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The scheduling policies of tasks, at one moment or while the recorded command ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Policies {
    /// `start` or `end` of the recording, with every task; or `running`, with those of the recorded command as they were read while it ran, where
    /// a task with several policies had one after another.
    pub at: CleanText,
    /// The tasks by the number of their policy in the kernel's interface (0 for `SCHED_OTHER`, 5 for `SCHED_IDLE`): the numbers of the
    /// threads, ascending.
    pub tasks: BTreeMap<u32, Vec<i32>>,
}

/// The place of the policy in `/proc/PID/stat` among the fields behind the name, which can have spaces.
const POLICY: usize = 38;

impl Policies {
    /// Reads the policy of every thread; nothing if there is none.
    pub(crate) fn read(root: &Root, at: &str) -> Option<Policies> {
        let mut tasks: BTreeMap<u32, Vec<i32>> = BTreeMap::new();
        for process in root.names("proc").iter().filter(|name| name.parse::<i32>().is_ok()) {
            let folder = format!("proc/{process}/task");
            for thread in root.names(&folder) {
                let stat = root.text(format!("{folder}/{thread}/stat")).unwrap_or_default();
                if let (Some(policy), Ok(pid)) = (Policies::of_stat(&stat), thread.parse()) {
                    tasks.entry(policy).or_default().push(pid);
                }
            }
        }
        tasks.values_mut().for_each(|pids| pids.sort_unstable());
        (!tasks.is_empty()).then(|| Policies { at: at.into(), tasks })
    }

    /// The number of the policy in the text of a `/proc/PID/stat`.
    pub fn of_stat(stat: &str) -> Option<u32> {
        let (_, fields) = stat.rsplit_once(')')?;
        fields.split_whitespace().nth(POLICY)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_found_behind_any_name() {
        let stat = "1217 (a) b) S 1 1217 1217 0 -1 4194304 100 0 0 0 1 2 0 0 39 19 1 0 100 1000 200 18446744073709551615 \
                    1 1 0 0 0 0 0 0 0 0 0 0 17 3 0 5 0 0 0";
        assert_eq!(Policies::of_stat(stat), Some(5));
        assert_eq!((Policies::of_stat("1217 (a) S 1"), Policies::of_stat("")), (None, None));
    }
}
