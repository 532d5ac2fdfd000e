//! Cgroups: the tasks in them, their limits of CPU time and CPUs, and the tasks that a limit of CPU time concerns.

use crate::{Pressure, Root};
use sched::event::CleanText;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A cgroup that has tasks or in which tasks have run, that limits CPU time or CPUs, or that lies below one that limits CPU time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cgroup {
    /// The path below the root of the hierarchy.
    pub path: CleanText,
    /// The inode number of its folder, by which the kernel names the cgroup in records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// `cpu.max`: quota and period in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_max: Option<CleanText>,
    /// `cpu.weight`, if it is not 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_weight: Option<u64>,
    /// `cpu.idle`, if it is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_idle: Option<u64>,
    /// `cpuset.cpus`: the CPUs that were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CleanText>,
    /// `cpuset.cpus.effective`: the CPUs that its tasks may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_effective: Option<CleanText>,
    /// `cpuset.cpus.partition`, if it is not `member`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<CleanText>,
    /// The numbers of the threads whose CPU time it controls, ascending, if its `cpu.max` or that of a cgroup above it is set.
    /// They include those of cgroups below it without the controller `cpu`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<i32>,
    /// The numbers of the threads in the cgroup itself, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<i32>,
    /// The numbers of the threads in the cgroup itself at the end of the recording, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads_at_end: Vec<i32>,
    /// Whether the cgroup was made during the recording, or had no task before that ran, so that its counters began at 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_new: bool,
    /// Whether the cgroup has the controller `cpu`, so that its weight counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub controls_cpu: bool,
    /// The totals of `cpu.pressure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<Pressure>,
    /// The totals of `cpu.pressure` at the end of the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure_at_end: Option<Pressure>,
    /// The counters of `cpu.stat`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stat: BTreeMap<CleanText, u64>,
    /// The counters of `cpu.stat` at the end of the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stat_at_end: Option<BTreeMap<CleanText, u64>>,
}

impl Cgroup {
    /// Whether the cgroup limits CPU time or CPUs, has a weight of its own, or has tasks that a limit of CPU time concerns.
    pub fn is_limited(&self) -> bool {
        let Cgroup { cpu_max, cpu_weight, cpu_idle, cpus, partition, tasks, .. } = self;
        [cpu_max, cpus, partition].iter().any(|setting| setting.is_some())
            || [cpu_weight, cpu_idle].iter().any(|setting| setting.is_some())
            || !tasks.is_empty()
    }

    /// The weight of the cgroup as `cpu.weight` gives it, 0 where `cpu.idle` is set; nothing for a cgroup without the controller `cpu`.
    pub fn weight(&self) -> Option<u64> {
        let is_idle = self.cpu_idle.is_some_and(|idle| idle != 0);
        // The file leaves out the default.
        self.controls_cpu.then(|| if is_idle { 0 } else { self.cpu_weight.unwrap_or(100) })
    }

    /// The quota and the period of `cpu.max`, in microseconds; nothing without a limit.
    pub fn quota(&self) -> Option<(u64, u64)> {
        let (quota, period) = self.cpu_max.as_ref()?.split_once(' ')?;
        Some((quota.parse().ok()?, period.trim().parse().ok().filter(|period| *period > 0)?))
    }

    /// The growth of a counter of `cpu.stat` between the start and the end of the recording.
    pub fn counted(&self, name: &str) -> Option<u64> {
        let end = *self.stat_at_end.as_ref()?.get(name)?;
        let start = self.stat.get(name).copied().or_else(|| self.is_new.then_some(0))?;
        end.checked_sub(start)
    }

    /// Reads one; nothing if it limits nothing, has no tasks, none has ever run in it, and it is not `below` a limit of CPU time.
    fn read(root: &Root, folder: &str, path: &str, below: bool) -> Option<Cgroup> {
        let text = |name: &str| root.fact(format!("{folder}/{name}"));
        let cgroup = Cgroup {
            path: path.into(),
            cpu_max: text("cpu.max").filter(|max| !max.starts_with("max")),
            cpu_weight: text("cpu.weight").and_then(|weight| weight.parse().ok()).filter(|weight| *weight != 100),
            cpu_idle: text("cpu.idle").and_then(|idle| idle.parse().ok()).filter(|idle| *idle != 0),
            cpus: text("cpuset.cpus"),
            partition: text("cpuset.cpus.partition").filter(|partition| *partition != "member"),
            ..Cgroup::default()
        };
        let has_no_limit = cgroup == (Cgroup { path: path.into(), ..Cgroup::default() });
        let (own, stat) = (if has_tasks(path) { threads(root, folder) } else { Vec::new() }, counters(root, folder));
        let has_run = has_tasks(path) && stat.get("usage_usec").is_some_and(|usage| *usage > 0);
        if has_no_limit && own.is_empty() && !has_run && !(below && text("cpu.max").is_some()) {
            return None;
        }
        Some(Cgroup {
            id: root.inode(folder),
            cpus_effective: text("cpuset.cpus.effective"),
            threads: own,
            controls_cpu: text("cpu.weight").is_some(),
            pressure: Pressure::read(root, format!("{folder}/cpu.pressure")),
            stat,
            ..cgroup
        })
    }

    /// The root of the hierarchy, which has no limits; nothing if it has no tasks.
    fn read_root(root: &Root, folder: &str) -> Option<Cgroup> {
        let threads = threads(root, folder);
        let (path, id) = ("/".into(), root.inode(folder));
        (!threads.is_empty()).then(|| Cgroup { path, id, threads, ..Cgroup::default() })
    }
}

/// Whether a cgroup of this path can have tasks: those of mounts and swap areas have none, and their names are those of folders.
fn has_tasks(path: &str) -> bool {
    !path.split('/').any(|name| [".mount", ".automount", ".swap"].iter().any(|unit| name.ends_with(unit)))
}

/// A folder that is still to be looked at.
struct CgroupFolder {
    path: String,
    depth: usize,
    /// The cgroup above it whose CPU time is limited and that has the controller `cpu`, by its place in the list.
    limited: Option<usize>,
}

/// The counters of `cpu.stat`.
fn counters(root: &Root, folder: &str) -> BTreeMap<CleanText, u64> {
    let text = root.text(format!("{folder}/cpu.stat")).unwrap_or_default();
    let counter = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.into(), value.trim().parse().ok()?))
    };
    text.lines().filter_map(counter).collect()
}

/// The threads in a cgroup.
fn threads(root: &Root, folder: &str) -> Vec<i32> {
    let threads = root.text(format!("{folder}/cgroup.threads")).unwrap_or_default();
    // A thread outside of the reader's PID namespace has the number 0.
    let mut threads: Vec<i32> =
        threads.lines().filter_map(|line| line.trim().parse().ok()).filter(|pid| *pid > 0).collect();
    threads.sort_unstable();
    threads
}

/// Levels of the hierarchy that are read.
const DEPTH: usize = 16;

/// The number of cgroups that are looked at.
const MOST: usize = 65_536;

/// The number of levels of groups below the root among which the fair class divides CPU time, at most this one: of the hierarchy that has
/// the controller `cpu`.
pub fn levels_of_groups(root: &Root, most: u32) -> u32 {
    let bases = [
        ("sys/fs/cgroup", "cpu.weight"),
        ("sys/fs/cgroup/cpu", "cpu.shares"),
        ("sys/fs/cgroup/cpu,cpuacct", "cpu.shares"),
    ];
    let (mut levels, mut seen) = (0, 0);
    for (base, weight) in bases {
        let mut folders = vec![(base.to_owned(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            levels = levels.max(depth);
            seen += 1;
            if depth >= most || seen > MOST {
                continue;
            }
            let below = root.names(&folder).into_iter().map(|name| format!("{folder}/{name}"));
            let divided = below.filter(|folder| root.join(format!("{folder}/{weight}")).is_file());
            folders.extend(divided.map(|folder| (folder, depth + 1)));
        }
    }
    levels
}

/// The cgroups of the unified hierarchy that limit something, have tasks or have had some that ran, and those below a limit of CPU time, by
/// path.
pub(crate) fn read(root: &Root) -> Vec<Cgroup> {
    // With a hybrid hierarchy the controllers of the unified one are elsewhere.
    let base = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];
    let Some(base) = base.into_iter().find(|base| root.join(base).join("cgroup.controllers").is_file()) else {
        return Vec::new();
    };
    let mut found: Vec<Cgroup> = Vec::new();
    let mut folders = vec![CgroupFolder { path: String::new(), depth: 0, limited: None }];
    let mut seen = 0;
    while let Some(CgroupFolder { path, depth, mut limited }) = folders.pop() {
        seen += 1;
        let folder = format!("{base}{path}");
        if depth == 0 {
            found.extend(Cgroup::read_root(root, &folder));
        } else {
            let cgroup = Cgroup::read(root, &folder, &path, limited.is_some());
            let is_limited = cgroup.as_ref().is_some_and(|cgroup| cgroup.cpu_max.is_some() || limited.is_some());
            if is_limited && root.text(format!("{folder}/cpu.max")).is_some() {
                limited = Some(found.len());
            }
            found.extend(cgroup);
        }
        if let Some(cgroup) = limited.and_then(|at| found.get_mut(at)) {
            cgroup.tasks.extend(threads(root, &folder));
        }
        if depth < DEPTH && seen < MOST {
            let names = root.names(&folder).into_iter();
            let below = names.filter(|name| root.join(&folder).join(name).is_dir());
            folders.extend(below.map(|name| CgroupFolder {
                path: format!("{path}/{name}"),
                depth: depth + 1,
                limited,
            }));
        }
    }
    for cgroup in &mut found {
        cgroup.tasks.sort_unstable();
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}
