//! The groups of the tasks of a trace, by the rules of `--by`.

use crate::{PageGroup, PageGroups, TaskEntry, TaskGroupings};
use anyhow::Result;
use membership::{GroupedTask, RowNames, TaskGroup, TaskGroups, TasksBy, join_random};
use sched::lineage::Kin;
use sched::names::NameHistory;
use sched::seeded::SeededMap;
use sched::{Comm, Pid};
use session::Session;
use std::convert::Infallible;
use timeline::PALETTE;
use timeline::palette::TaskColors;

/// Learns the groups of these tasks, each at the end of the trace.
pub(super) fn of(session: &Session, tasks: &[TaskEntry]) -> Result<TaskGroupings> {
    let colors = TaskColors::of_longest(session.trace.sampled_tasks());
    let called: SeededMap<Pid, Comm> = tasks.iter().map(|task| (task.pid, task.comm)).collect();
    let learned = |by: TasksBy| {
        // A process has the name that the page gives its first thread: no other names are needed.
        let names = || Ok::<_, Infallible>(NameHistory::default());
        TaskGroups::of(by, &session.trace, session.machine.as_ref(), session.to, names)
            .unwrap_or_else(|never| match never {})
    };
    let groups_of = |groups: &TaskGroups| -> Vec<TaskGroup> {
        tasks.iter().map(|task| groups.group(grouped(task), session.to)).collect()
    };
    let commands = commands(tasks, &groups_of(&learned(TasksBy::Command)));
    let kernel = || PageGroup { name: "kernel threads".to_owned(), place: Some(PALETTE.len() - 1) };
    let processes = of_groups(&groups_of(&learned(TasksBy::Process)), |group| match group {
        TaskGroup::Process(leader) => {
            let name = leader.named(called.get(&leader).copied().unwrap_or(Comm::EMPTY));
            Some(PageGroup { name, place: Some(colors.place(leader)) })
        }
        TaskGroup::Kernel => Some(kernel()),
        _ => None,
    });
    let by_cgroup = learned(TasksBy::Cgroup);
    let cgroups = of_groups(&groups_of(&by_cgroup), |group| match group {
        TaskGroup::Cgroup(cgroup) => {
            let name = by_cgroup.cgroup_names().get(cgroup.index()).map_or(String::new(), ToString::to_string);
            Some(PageGroup { name, place: Some(cgroup.index() % PALETTE.len()) })
        }
        TaskGroup::Kernel => Some(kernel()),
        _ => None,
    });
    Ok(TaskGroupings { commands, processes, cgroups })
}

/// The groups of the tasks in their order. `shown` gives what the page shows of each group, once; nothing for one that is unknown.
/// The threads of the kernel are one group.
fn of_groups(groups: &[TaskGroup], shown: impl Fn(TaskGroup) -> Option<PageGroup>) -> PageGroups {
    let mut places: SeededMap<TaskGroup, Option<usize>> = SeededMap::default();
    let mut found = PageGroups::default();
    for group in groups {
        let group = if let TaskGroup::Command(_) = group { TaskGroup::Kernel } else { *group };
        let place = *places.entry(group).or_insert_with(|| {
            found.groups.push(shown(group)?);
            Some(found.groups.len() - 1)
        });
        found.of.push(place);
    }
    found
}

/// The properties of a task of the page that decide its group.
fn grouped(task: &TaskEntry) -> GroupedTask {
    let kin = Kin { parent: task.parent, forked: false, descends: task.application, helps: false };
    GroupedTask { pid: task.pid, comm: task.comm, prio: None, is_kernel: kin.is_of_kernel(task.comm) }
}

/// The groups by command. One that has tasks of a single name alone has that name.
fn commands(tasks: &[TaskEntry], groups: &[TaskGroup]) -> PageGroups {
    let mut rows: SeededMap<TaskGroup, usize> = SeededMap::default();
    let mut found: Vec<(TaskGroup, (RowNames, Vec<usize>))> = Vec::new();
    for (place, (task, group)) in tasks.iter().zip(groups).enumerate() {
        let row = *rows.entry(*group).or_insert_with(|| {
            found.push((*group, (RowNames::default(), Vec::new())));
            found.len() - 1
        });
        let (names, members) = &mut found[row].1;
        names.call(task.comm);
        members.push(place);
    }
    let joined = join_random(found, |row, other| {
        row.0.join(other.0);
        row.1.extend(other.1);
    });
    let mut grouped = PageGroups { groups: Vec::new(), of: vec![None; tasks.len()] };
    for (place, (group, (names, members))) in joined.into_iter().enumerate() {
        let name = TaskGroups::default().row(group, names).shown();
        grouped.groups.push(PageGroup { name, place: None });
        members.into_iter().for_each(|task| grouped.of[task] = Some(place));
    }
    grouped
}
