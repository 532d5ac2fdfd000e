//! The kernel, its command line, and the hypervisor below it.

use crate::Root;
use sched::event::CleanText;
use serde::{Deserialize, Serialize};

/// The kernel of a machine, with its parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kernel {
    /// The release, as `uname -r` prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<CleanText>,
    /// The version, as `uname -v` prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<CleanText>,
    /// The architecture, as `uname -m` prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<CleanText>,
    /// The parameters of the command line; those that do not concern the scheduler without their values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_line: Option<CleanText>,
    /// The preemption model: `none`, `voluntary`, `full`, `lazy` or `rt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption: Option<CleanText>,
}

/// Parameters of the kernel that bear on scheduling and cannot name a person, a machine or a disk.
const KEPT: [&str; 36] = [
    "clocksource",
    "cpu0_hotplug",
    "cpufreq.default_governor",
    "cpuidle.governor",
    "cpuidle.off",
    "cgroup_disable",
    "default_hugepagesz",
    "hpet",
    "idle",
    "intel_idle.max_cstate",
    "intel_pstate",
    "amd_pstate",
    "irqaffinity",
    "isolcpus",
    "maxcpus",
    "mitigations",
    "nmi_watchdog",
    "nohz",
    "nohz_full",
    "nosmt",
    "nosoftlockup",
    "nowatchdog",
    "nr_cpus",
    "numa",
    "numa_balancing",
    "preempt",
    "processor.max_cstate",
    "psi",
    "rcu_nocbs",
    "rcu_nocb_poll",
    "relax_domain_level",
    "sched_verbose",
    "skew_tick",
    "threadirqs",
    "transparent_hugepage",
    "tsc",
];

impl Kernel {
    pub(crate) fn read(root: &Root, keep_arguments: bool) -> Kernel {
        let line = root.text("proc/cmdline");
        Kernel {
            release: root.fact("proc/sys/kernel/osrelease"),
            version: root.fact("proc/sys/kernel/version"),
            architecture: root.fact("proc/sys/kernel/arch"),
            command_line: line.map(|line| if keep_arguments { line } else { without_values(&line) }.into()),
            preemption: preemption(root),
        }
    }
}

/// The command line with the values of those parameters alone that concern the scheduler.
fn without_values(line: &str) -> String {
    let word = |word: &str| match word.split_once('=') {
        Some((name, _)) if !KEPT.contains(&name) && !name.starts_with("sched") => format!("{name}=\u{2026}"),
        _ => word.to_owned(),
    };
    // Words behind -- are arguments of init, and the later words of a quoted value have no name.
    let kernel = line.split(" -- ").next().unwrap_or(line);
    let mut words = Vec::new();
    let mut quoted = false;
    for part in kernel.split_whitespace() {
        let inside = quoted;
        quoted ^= part.matches('"').count() % 2 == 1;
        if !inside {
            words.push(word(part));
        }
    }
    words.join(" ")
}

/// The preemption model, from the switch that shows it in parentheses, or from the words of the version.
fn preemption(root: &Root) -> Option<CleanText> {
    let version = root.text("proc/sys/kernel/version").unwrap_or_default();
    let words: Vec<&str> = version.split_whitespace().collect();
    if words.contains(&"PREEMPT_RT") || root.text("sys/kernel/realtime").as_deref() == Some("1") {
        return Some("rt".into());
    }
    if let Some(models) = root.text("sys/kernel/debug/sched/preempt") {
        let chosen = models.split('(').nth(1).and_then(|rest| rest.split(')').next());
        return chosen.map(CleanText::from);
    }
    // PREEMPT_DYNAMIC alone leaves it open.
    words.contains(&"PREEMPT").then(|| "full".into())
}

/// Whether the machine is virtual, and the hypervisor.
pub(crate) fn virtualised(root: &Root) -> (Option<bool>, Option<CleanText>) {
    if let Some(kind) = root.fact("sys/hypervisor/type") {
        return (Some(true), Some(kind));
    }
    let Some(info) = root.text("proc/cpuinfo") else { return (None, None) };
    // Only x86 shows it in the flags.
    let Some(flags) = info.lines().find(|line| line.starts_with("flags")) else { return (None, None) };
    if !flags.split_whitespace().any(|flag| flag == "hypervisor") {
        return (Some(false), None);
    }
    (Some(true), root.fact("sys/class/dmi/id/sys_vendor"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_may_be_personal_are_left_out() {
        let line = r#"BOOT_IMAGE=/vmlinuz root=UUID=1-2 ip=::::alices-box hostname=alices-box isolcpus=6,7 quiet dyndbg="file a.c +p" nohz_full=6,7 -- alice"#;
        let kept = "BOOT_IMAGE=\u{2026} root=\u{2026} ip=\u{2026} hostname=\u{2026} isolcpus=6,7 quiet dyndbg=\u{2026} nohz_full=6,7";
        assert_eq!(without_values(line), kept);
    }
}
