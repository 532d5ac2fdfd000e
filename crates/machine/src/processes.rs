//! The threads of each process.

use crate::Root;
use std::collections::BTreeMap;

/// Reads the processes that have several threads: the numbers of the threads, ascending, by that of the process.
pub(crate) fn read(root: &Root) -> BTreeMap<i32, Vec<i32>> {
    let mut processes = BTreeMap::new();
    for process in root.names("proc").iter().filter_map(|name| name.parse::<i32>().ok()) {
        let names = root.names(format!("proc/{process}/task"));
        let mut threads: Vec<i32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        threads.sort_unstable();
        if threads.len() > 1 {
            processes.insert(process, threads);
        }
    }
    processes
}
