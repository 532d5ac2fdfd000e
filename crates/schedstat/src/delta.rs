//! The differences between two snapshots.

use crate::parse::{CpuStat, DomainStat, PassedOver, Snapshot, StatLayout};
use sched::Cpu;
use serde::Serialize;
use std::collections::BTreeMap;

/// The differences of the counters of a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuDelta {
    /// Number of the CPU.
    pub cpu: Cpu,
    /// The number of calls of schedule().
    pub sched_count: u64,
    /// The number of calls of schedule() that chose the idle task.
    pub sched_goidle: u64,
    /// The number of wakeups done by this CPU.
    pub ttwu_count: u64,
    /// The number of wakeups done by this CPU onto itself.
    pub ttwu_local: u64,
    /// The time that tasks ran, in nanoseconds.
    pub cpu_time_ns: u64,
    /// The time that tasks waited, in nanoseconds.
    pub run_delay_ns: u64,
    /// The number of arrivals of tasks on the CPU.
    pub pcount: u64,
    /// The time spent searching for tasks and CPUs, in nanoseconds; only with the task-stealing series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub find_ns: Option<u64>,
    /// The number of stolen tasks; only with the task-stealing series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal: Option<u64>,
    /// The number of attempts that found nothing to steal; only with the task-stealing series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_fail: Option<u64>,
}

/// The load balancing in one domain with one kind of idleness, summed over all CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DomainDelta {
    /// The name of the domain; its depth, as `domain0`, if the file has no names.
    pub domain: String,
    /// The idleness of the balancing CPU: `busy`, `idle` or `newidle`.
    pub idleness: &'static str,
    /// The number of attempts.
    pub count: u64,
    /// The number of attempts that found the domain balanced.
    pub balanced: u64,
    /// The number of attempts that found an imbalance and moved nothing.
    pub failed: u64,
    /// The number of attempts that moved tasks: all others.
    pub succeeded: u64,
    /// The number of tasks pulled.
    pub gained: u64,
    /// The number of tasks pulled although they were cache hot.
    pub hot_gained: u64,
    /// The number of attempts that found no busier run queue.
    pub nobusyq: u64,
    /// The number of attempts that found no busier group.
    pub nobusyg: u64,
}

/// The difference of two snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// The CPUs that were online in both snapshots.
    pub cpus: Vec<CpuDelta>,
    /// The domains that were the same in both snapshots, by name or depth.
    pub domains: Vec<DomainDelta>,
    /// The number of jiffies between the snapshots.
    pub jiffies: Option<u64>,
    /// Circumstances that limit the use of the numbers, such as CPUs that came or went, or disabled statistics.
    pub warnings: Vec<String>,
}

impl Snapshot {
    /// The CPUs by their numbers.
    pub(crate) fn by_cpu(&self) -> BTreeMap<Cpu, &CpuStat> {
        self.cpus.iter().map(|cpu| (cpu.cpu, cpu)).collect()
    }
}

/// Counters of 32 bits wrap, so their difference is taken modulo 2³².
pub(crate) fn wrapped(before: u64, after: u64) -> u64 {
    u64::from((after as u32).wrapping_sub(before as u32))
}

/// The place of each domain among the rows, by its name and the idleness.
type DomainPlaces = BTreeMap<(String, &'static str), usize>;

impl Delta {
    /// Returns the difference of `before` and `after`.
    ///
    /// # Errors
    ///
    /// If the snapshots are of different kernels or boots, or in the wrong order.
    pub fn between(before: &Snapshot, after: &Snapshot) -> Result<Delta, String> {
        if before.layout != after.layout {
            return Err(format!(
                "the two snapshots are from different kernels: {} and {}",
                describe(&before.layout),
                describe(&after.layout)
            ));
        }
        let mut delta = Delta { cpus: Vec::new(), domains: Vec::new(), jiffies: None, warnings: Vec::new() };
        delta.jiffies = before.jiffies.zip(after.jiffies).and_then(|(b, a)| a.checked_sub(b));
        if before.jiffies.zip(after.jiffies).is_some_and(|(b, a)| a < b) {
            return Err("the second snapshot is older than the first: give them as BEFORE AFTER".into());
        }
        if let Some(passed_over) = before.passed_over.as_ref().or(after.passed_over.as_ref()) {
            delta.warnings.push(passed_over.to_string());
        }
        let [was_online, is_online] = [before, after].map(Snapshot::by_cpu);
        let mut places = DomainPlaces::new();
        let mut left = Vec::new();
        for b in &before.cpus {
            match is_online.get(&b.cpu) {
                Some(a) => delta.add(b, a, &before.layout, &mut places)?,
                None => left.push(b.cpu),
            }
        }
        let came: Vec<Cpu> = after.cpus.iter().map(|c| c.cpu).filter(|cpu| !was_online.contains_key(cpu)).collect();
        let list = |cpus: &[Cpu]| sched::topology::format_cpu_list(cpus);
        for (cpus, what) in [(&left, "went offline"), (&came, "came online")] {
            if !cpus.is_empty() {
                delta.warnings.push(format!("CPUs {} {what} in between: they are left out", list(cpus)));
            }
        }
        let sum = |of: fn(&CpuDelta) -> u64| delta.cpus.iter().map(of).fold(0, u64::saturating_add);
        if sum(|c| c.sched_count) == 0 && sum(|c| c.pcount) > 0 {
            delta.warnings.push(
                "no CPU counted a call of schedule() although tasks ran: the statistics were off, so sched, idle, wake and \
                 the domains are meaningless; set sysctl kernel.sched_schedstats=1 before the first snapshot"
                    .into(),
            );
        }
        Ok(delta)
    }

    fn add(&mut self, b: &CpuStat, a: &CpuStat, layout: &StatLayout, places: &mut DomainPlaces) -> Result<(), String> {
        let small = |i: usize| wrapped(b.fields[i], a.fields[i]);
        let large = |i: usize, name: &str| {
            a.fields[i].checked_sub(b.fields[i]).ok_or_else(|| {
                format!(
                    "{name} of CPU {} fell from {} to {}: the snapshots are in the wrong order, or from two boots",
                    b.cpu, b.fields[i], a.fields[i]
                )
            })
        };
        let find_ns = if layout.stealing { Some(large(13, "find_time")?) } else { None };
        self.cpus.push(CpuDelta {
            cpu: b.cpu,
            sched_count: small(2),
            sched_goidle: small(3),
            ttwu_count: small(4),
            ttwu_local: small(5),
            cpu_time_ns: large(6, "rq_cpu_time")?,
            run_delay_ns: large(7, "run_delay")?,
            pcount: large(8, "pcount")?,
            find_ns,
            steal: layout.stealing.then(|| small(14)),
            steal_fail: layout.stealing.then(|| small(15)),
        });
        let same = b.domains.len() == a.domains.len()
            && b.domains.iter().zip(&a.domains).all(|(b, a)| (&b.name, &b.mask) == (&a.name, &a.mask));
        if !same {
            self.warnings.push(format!("the domains of CPU {} were rebuilt in between: they are left out", b.cpu));
            return Ok(());
        }
        for (depth, (b, a)) in b.domains.iter().zip(&a.domains).enumerate() {
            self.add_domain(depth, b, a, layout, places);
        }
        Ok(())
    }

    fn add_domain(
        &mut self,
        depth: usize,
        b: &DomainStat,
        a: &DomainStat,
        layout: &StatLayout,
        places: &mut DomainPlaces,
    ) {
        let name = b.name.clone().map_or_else(|| format!("domain{depth}"), String::from);
        let order = if layout.busy_first { ["busy", "idle", "newidle"] } else { ["idle", "busy", "newidle"] };
        // The imbalance is one counter or four, which shifts the counters behind it.
        let more = layout.balance - 8;
        for (block, idleness) in order.into_iter().enumerate() {
            let at = |i: usize| {
                let i = block * layout.balance + i;
                wrapped(b.fields[i], a.fields[i])
            };
            let index = *places.entry((name.clone(), idleness)).or_insert_with(|| {
                let [count, balanced, failed, succeeded, gained, hot_gained, nobusyq, nobusyg] = [0; 8];
                let domain = name.clone();
                self.domains.push(DomainDelta {
                    domain,
                    idleness,
                    count,
                    balanced,
                    failed,
                    succeeded,
                    gained,
                    hot_gained,
                    nobusyq,
                    nobusyg,
                });
                self.domains.len() - 1
            });
            let d = &mut self.domains[index];
            let (count, balanced, failed) = (at(0), at(1), at(2));
            d.count += count;
            d.balanced += balanced;
            d.failed += failed;
            // The kernel reads the counters one after the other: with few attempts this difference can fall below
            // zero.
            d.succeeded += count.saturating_sub(balanced.saturating_add(failed));
            d.gained += at(4 + more);
            d.hot_gained += at(5 + more);
            d.nobusyq += at(6 + more);
            d.nobusyg += at(7 + more);
        }
    }
}

impl std::fmt::Display for PassedOver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines = if self.lines == 1 {
            "1 line of another kind was".into()
        } else {
            format!("{} lines of other kinds were", self.lines)
        };
        write!(f, "{lines} passed over, the first one, {:?}, in line {}", self.word, self.first)
    }
}

fn describe(layout: &StatLayout) -> String {
    let stealing = if layout.stealing { " with the task-stealing fields" } else { "" };
    format!("version {}{stealing}", layout.version)
}
