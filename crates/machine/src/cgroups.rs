//! Cgroups that limit CPU time or CPUs, and the tasks that a limit of CPU time concerns.

use crate::Root;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A cgroup that limits CPU time or CPUs, or lies below one that limits CPU time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cgroup {
    /// The path below the root of the hierarchy.
    pub path: String,
    /// The inode number of its folder, by which the kernel names the cgroup in records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// `cpu.max`: quota and period in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_max: Option<String>,
    /// `cpu.weight`, if it is not 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_weight: Option<u64>,
    /// `cpu.idle`, if it is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_idle: Option<u64>,
    /// `cpuset.cpus`: the CPUs that were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// `cpuset.cpus.effective`: the CPUs that its tasks may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_effective: Option<String>,
    /// `cpuset.cpus.partition`, if it is not `member`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The numbers of the threads whose CPU time it controls, ascending, if its `cpu.max` or that of a cgroup above it is set.
    /// They include those of cgroups below it without the controller `cpu`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<i32>,
    /// The counters of `cpu.stat`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stat: BTreeMap<String, u64>,
    /// The counters of `cpu.stat` at the end of the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stat_at_end: Option<BTreeMap<String, u64>>,
}

impl Cgroup {
    /// Reads one; nothing if it limits nothing, and is not `below` a limit of CPU time.
    fn read(root: &Root, folder: &str, path: &str, below: bool) -> Option<Cgroup> {
        let text = |name: &str| root.text(format!("{folder}/{name}"));
        let cgroup = Cgroup {
            path: path.to_owned(),
            cpu_max: text("cpu.max").filter(|max| !max.starts_with("max")),
            cpu_weight: text("cpu.weight").and_then(|weight| weight.parse().ok()).filter(|weight| *weight != 100),
            cpu_idle: text("cpu.idle").and_then(|idle| idle.parse().ok()).filter(|idle| *idle != 0),
            cpus: text("cpuset.cpus"),
            partition: text("cpuset.cpus.partition").filter(|partition| partition != "member"),
            ..Cgroup::default()
        };
        let has_no_limit = cgroup == (Cgroup { path: path.to_owned(), ..Cgroup::default() });
        if has_no_limit && !(below && text("cpu.max").is_some()) {
            return None;
        }
        let counters = text("cpu.stat").unwrap_or_default();
        let counter = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.trim().parse().ok()?))
        };
        let stat = counters.lines().filter_map(counter).collect();
        Some(Cgroup { id: root.inode(folder), cpus_effective: text("cpuset.cpus.effective"), stat, ..cgroup })
    }
}

/// A folder that is still to be looked at.
struct CgroupFolder {
    path: String,
    depth: usize,
    /// The cgroup above it whose CPU time is limited and that has the controller `cpu`, by its place in the list.
    limited: Option<usize>,
}

/// The threads in a cgroup.
fn threads(root: &Root, folder: &str) -> Vec<i32> {
    let threads = root.text(format!("{folder}/cgroup.threads")).unwrap_or_default();
    // A thread outside of the reader's PID namespace has the number 0.
    threads.lines().filter_map(|line| line.trim().parse().ok()).filter(|pid| *pid > 0).collect()
}

/// Levels of the hierarchy that are read.
const DEPTH: usize = 16;

/// The number of cgroups that are looked at.
const MOST: usize = 65_536;

/// The cgroups of the unified hierarchy that limit something, and those below a limit of CPU time, by path.
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
        // The root of the hierarchy has no limits.
        if depth > 0 {
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
    found.iter_mut().for_each(|cgroup| cgroup.tasks.sort_unstable());
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}
