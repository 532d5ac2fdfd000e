//! The cgroups, the processes and the scheduling parameters of tasks before a part of a trace, as a note in the file of the part.

use crate::cgroups::CgroupRecords;
use crate::params::ParamsRecords;
use crate::past_groups::{NAME, PastGroups};
use crate::{ParamsHistory, Processes};
use machine::Machine;
use parse::Trace;
use sched::Ts;
use sched::event::CleanText;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Returns the name and the text of a note on the groups of tasks before `from`; nothing where none is known. An anonymous one has no paths: cgroups have their
/// IDs, which the machine file of the part gives names of their own, or a number.
pub fn note(trace: &Trace, machine: Option<&Machine>, from: Ts, is_anonymous: bool) -> Option<(String, String)> {
    let before = Ts(from.0.saturating_sub(1));
    let noted = PastGroups::of(trace);
    let (mut processes, follows_processes) = Processes::begin(trace, machine, noted.as_deref());
    let mut cgroups = CgroupRecords::begin(trace, machine, noted.as_deref());
    let mut params = ParamsRecords::begin(trace, machine, noted.as_deref(), from);
    // One reading of all records serves the three.
    if follows_processes || cgroups.follows || params.follows {
        trace.records(&mut |record| {
            if cgroups.is_behind(record.ts) {
                cgroups.settle(&processes);
            }
            if follows_processes {
                processes.follow(record);
            }
            if cgroups.follows {
                cgroups.follow(record);
            }
            if params.follows {
                params.follow(record);
            }
            ControlFlow::Continue(())
        });
    }
    let cgroups = cgroups.finish(machine, &processes);
    let params = ParamsHistory::past(params, trace, machine);
    let mut now = BTreeMap::new();
    for change in cgroups.changes().iter().take_while(|change| change.ts < from) {
        match change.cgroup {
            Some(cgroup) => drop(now.insert(change.pid, cgroup)),
            None => drop(now.remove(&change.pid)),
        }
    }
    let id_of: BTreeMap<&str, u64> = cgroups.ids().iter().map(|(id, path)| (path.as_str(), *id)).collect();
    let path = |(nth, path): (usize, &CleanText)| match id_of.get(path.as_str()) {
        _ if !is_anonymous || path.starts_with("cgroup ") || *path == "/" => path.clone(),
        Some(id) => format!("cgroup {id}").into(),
        None => format!("/unlisted{nth}").into(),
    };
    let paths = cgroups.names().iter().enumerate().map(path).collect();
    let ids = if is_anonymous { Vec::new() } else { cgroups.ids().to_vec() };
    let is_empty = !processes.are_known() && cgroups.changes().is_empty() && params == Default::default();
    let groups = PastGroups {
        cgroups: now.into_iter().map(|(pid, cgroup)| (pid, cgroup.index() as u32)).collect(),
        paths,
        ids,
        processes: processes.at(before),
        shows_processes: processes.are_shown(),
        records_forks: cgroups.records_forks(),
        params,
    };
    (!is_empty).then(|| (NAME.to_owned(), serde_json::to_string(&groups).unwrap_or_default()))
}
