//! The clamps of tasks' utilization.

use crate::Root;
use sched::event::CleanText;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The clamps of utilization that tasks asked for, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Clamps {
    /// `start` or `end` of the recording.
    pub at: CleanText,
    /// The tasks by the least and the greatest utilization that they ask for, from 0 to 1,024 and joined by a hyphen (`0-512`): the numbers
    /// of the threads, ascending. The tasks with `0-1024` are left out.
    pub tasks: BTreeMap<CleanText, Vec<i32>>,
}

impl Clamps {
    /// Reads the clamps of every thread; nothing where the kernel shows none.
    pub(crate) fn read(root: &Root, at: &str) -> Option<Clamps> {
        let mut tasks: BTreeMap<CleanText, Vec<i32>> = BTreeMap::new();
        let mut are_shown = false;
        for process in root.names("proc").iter().filter(|name| name.parse::<i32>().is_ok()) {
            let folder = format!("proc/{process}/task");
            for thread in root.names(&folder) {
                let Some(text) = root.text(format!("{folder}/{thread}/sched")) else { continue };
                // A kernel without clamps shows those of no task.
                let (Some([min, max]), Ok(pid)) = (clamps_of(&text), thread.parse()) else { return None };
                are_shown = true;
                if [min, max] != [0, 1024] {
                    tasks.entry(format!("{min}-{max}").into()).or_default().push(pid);
                }
            }
        }
        tasks.values_mut().for_each(|pids| pids.sort_unstable());
        are_shown.then(|| Clamps { at: at.into(), tasks })
    }

    /// Each task of the lists with its clamps.
    pub(crate) fn each(&self) -> impl Iterator<Item = (i32, [u32; 2])> {
        let each = self.tasks.iter().filter_map(|(range, pids)| {
            let (min, max) = range.split_once('-')?;
            Some(([min.parse().ok()?, max.parse().ok()?], pids))
        });
        each.flat_map(|(range, pids)| pids.iter().map(move |pid| (*pid, range)))
    }
}

/// The clamps in the text of a `/proc/PID/sched`.
fn clamps_of(sched: &str) -> Option<[u32; 2]> {
    let of = |name: &str| {
        let line = sched.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start().strip_prefix(':')?.trim().parse().ok()
    };
    Some([of("uclamp.min")?, of("uclamp.max")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clamps_are_read_from_the_text_of_the_kernel() {
        let text = "sh (7, #threads: 1)\n-----\nse.load.weight                               :              1048576\n\
                    uclamp.min                                   :                  128\n\
                    uclamp.max                                   :                  512\n\
                    effective uclamp.min                         :                    0\n\
                    effective uclamp.max                         :                 1024\n";
        assert_eq!((clamps_of(text), clamps_of("se.load.weight : 1")), (Some([128, 512]), None));
        let lists = [("0-512".into(), vec![7, 9]), ("odd".into(), vec![8])].into();
        let clamps = Clamps { at: "start".into(), tasks: lists };
        assert_eq!(clamps.each().collect::<Vec<_>>(), [(7, [0, 512]), (9, [0, 512])]);
    }
}
