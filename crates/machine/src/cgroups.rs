//! Cgroups that limit CPU time or CPUs.

use crate::Root;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A cgroup that limits CPU time or CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cgroup {
    /// The path below the root of the hierarchy.
    pub path: String,
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
    /// The counters of `cpu.stat`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stat: BTreeMap<String, u64>,
    /// The same counters at the end of the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stat_at_end: Option<BTreeMap<String, u64>>,
}

impl Cgroup {
    /// Reads one; nothing if it limits nothing.
    fn read(root: &Root, folder: &str, path: &str) -> Option<Cgroup> {
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
        if cgroup == (Cgroup { path: path.to_owned(), ..Cgroup::default() }) {
            return None;
        }
        let counters = text("cpu.stat").unwrap_or_default();
        let counter = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.trim().parse().ok()?))
        };
        let stat = counters.lines().filter_map(counter).collect();
        Some(Cgroup { cpus_effective: text("cpuset.cpus.effective"), stat, ..cgroup })
    }
}

/// Levels of the hierarchy that are read.
const DEPTH: usize = 16;

/// The number of cgroups that are looked at.
const MOST: usize = 65_536;

/// The cgroups of the unified hierarchy that limit something, by path.
pub(crate) fn read(root: &Root) -> Vec<Cgroup> {
    // With a hybrid hierarchy the controllers of the unified one are elsewhere.
    let base = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];
    let Some(base) = base.into_iter().find(|base| root.join(base).join("cgroup.controllers").is_file()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut folders = vec![(String::new(), 0)];
    let mut seen = 0;
    while let Some((path, depth)) = folders.pop() {
        seen += 1;
        let folder = format!("{base}{path}");
        // The root of the hierarchy has no limits.
        if depth > 0 {
            found.extend(Cgroup::read(root, &folder, &path));
        }
        if depth < DEPTH && seen < MOST {
            let names = root.names(&folder).into_iter();
            let below = names.filter(|name| root.join(&folder).join(name).is_dir());
            folders.extend(below.map(|name| (format!("{path}/{name}"), depth + 1)));
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}
