//! The cgroups and processes of tasks before a part of a trace, as a note in the file of the part.

use crate::past_groups::{NAME, PastGroups};
use crate::{Cgroups, Processes};
use machine::Machine;
use sched::Ts;
use std::collections::BTreeMap;
use tracedat::Trace;

/// Returns the name and the text of a note on the groups of tasks before `from`; nothing where none is known. An anonymous one has no paths but those that
/// consist of an ID.
pub fn note(trace: &Trace, machine: Option<&Machine>, from: Ts, is_anonymous: bool) -> Option<(String, String)> {
    let processes = Processes::of(trace, machine);
    let cgroups = Cgroups::of(trace, machine, &processes);
    let mut now = BTreeMap::new();
    for change in cgroups.changes().iter().take_while(|change| change.ts < from) {
        match change.cgroup {
            Some(cgroup) => drop(now.insert(change.pid, cgroup)),
            None => drop(now.remove(&change.pid)),
        }
    }
    let is_kept = |path: &str| !is_anonymous || path.starts_with("cgroup ") || path == "/";
    now.retain(|_, cgroup| is_kept(cgroups.name(*cgroup)));
    let paths = cgroups.names().iter().map(|path| if is_kept(path) { path.clone() } else { String::new() }).collect();
    let groups = PastGroups {
        cgroups: now.into_iter().map(|(pid, cgroup)| (pid, cgroup.index() as u32)).collect(),
        paths,
        processes: processes.at(Ts(from.0.saturating_sub(1))),
    };
    let is_empty = groups.cgroups.is_empty() && groups.processes.is_empty();
    (!is_empty).then(|| (NAME.to_owned(), serde_json::to_string(&groups).unwrap_or_default()))
}
