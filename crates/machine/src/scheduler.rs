//! The scheduler's features, tunables and domains.

use crate::Root;
use sched::Cpu;
use sched::event::CleanText;
use sched::topology::format_cpu_list;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The scheduler's settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scheduler {
    /// The features of `debug/sched/features`, those that are off with `NO_` in front.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<CleanText>,
    /// The files of `debug/sched` by name, such as `base_slice_ns` and `numa_balancing/scan_delay_ms`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tunables: BTreeMap<CleanText, CleanText>,
    /// The files `sched_*` and `numa_balancing*` of `/proc/sys/kernel`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<CleanText, CleanText>,
    /// The sched_ext scheduler that is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ext: Option<CleanText>,
    /// The kinds of imbalance (`enum migration_type`) in the order of their numbers, such as `migrate_load`, by the kernel's type
    /// information, which `record --why` reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imbalances: Vec<CleanText>,
    /// The scheduling domains, those that are equal on several CPUs as one entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<Domain>,
}

/// A scheduling domain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Domain {
    /// The CPUs that have this domain, such as `0-7`.
    pub cpus: CleanText,
    /// The level, from 0 for the smallest domain.
    pub level: u32,
    /// The files of the domain by name: `name`, `flags`, `min_interval`, `imbalance_pct` and so on.
    pub settings: BTreeMap<CleanText, CleanText>,
    /// The greatest `max_newidle_lb_cost` of these CPUs in nanoseconds, as it was at that moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newidle_cost_ns: Option<u64>,
}

const FOLDER: &str = "sys/kernel/debug/sched";

impl Scheduler {
    pub(crate) fn read(root: &Root) -> Scheduler {
        let features = root.text(format!("{FOLDER}/features")).unwrap_or_default();
        let mut tunables = files(root, FOLDER, "", |name| !["features", "debug", "preempt", "verbose"].contains(&name));
        tunables.extend(files(root, &format!("{FOLDER}/numa_balancing"), "numa_balancing/", |_| true));
        Scheduler {
            features: features.split_whitespace().map(CleanText::from).collect(),
            tunables,
            sysctls: files(root, "proc/sys/kernel", "", |name| {
                name.starts_with("sched_") || name.starts_with("numa_balancing")
            }),
            ext: root.fact("sys/kernel/sched_ext/root/ops"),
            imbalances: Vec::new(),
            domains: domains(root),
        }
    }

    /// A tunable or sysctl by name.
    pub fn tunable(&self, name: &str) -> Option<&str> {
        self.tunables.get(name).or_else(|| self.sysctls.get(name)).map(CleanText::as_str)
    }
}

/// The files of a folder that are wanted, by their names with `prefix` in front. A text of several lines is no setting.
fn files(root: &Root, folder: &str, prefix: &str, wanted: impl Fn(&str) -> bool) -> BTreeMap<CleanText, CleanText> {
    let names = root.names(folder).into_iter().filter(|name| wanted(name));
    let setting = |name: String| {
        let text = root.text(format!("{folder}/{name}")).filter(|text| !text.contains('\n'))?;
        Some((format!("{prefix}{name}").into(), text.split_whitespace().collect::<Vec<_>>().join(" ").into()))
    };
    names.filter_map(setting).collect()
}

/// A domain's level and settings, by which CPUs are grouped.
type DomainKind = (u32, BTreeMap<CleanText, CleanText>);

/// The CPUs with equal domains, and the greatest cost of a new-idle balance among them.
#[derive(Default)]
struct Members {
    cpus: Vec<Cpu>,
    cost_ns: Option<u64>,
}

fn domains(root: &Root) -> Vec<Domain> {
    let folder = format!("{FOLDER}/domains");
    let mut found: BTreeMap<DomainKind, Members> = BTreeMap::new();
    for cpu in root.numbered(&folder, "cpu") {
        for level in root.numbered(format!("{folder}/cpu{cpu}"), "domain") {
            let mut settings = files(root, &format!("{folder}/cpu{cpu}/domain{level}"), "", |_| true);
            let cost = settings.remove("max_newidle_lb_cost").and_then(|cost| cost.parse().ok());
            let members = found.entry((level, settings)).or_default();
            members.cpus.push(Cpu(cpu));
            members.cost_ns = cost.max(members.cost_ns);
        }
    }
    let domain = |((level, settings), members): (DomainKind, Members)| Domain {
        cpus: format_cpu_list(&members.cpus).into(),
        level,
        settings,
        newidle_cost_ns: members.cost_ns,
    };
    found.into_iter().map(domain).collect()
}
