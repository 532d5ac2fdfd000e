//! What happened between two snapshots.

use crate::parse::{CpuStat, DomainStat, Layout, PassedOver, Snapshot};
use sched::Cpu;
use serde::Serialize;

/// What a CPU did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CpuDelta {
    /// Which.
    pub cpu: Cpu,
    /// Calls of schedule().
    pub sched_count: u64,
    /// Those of them that chose the idle task.
    pub sched_goidle: u64,
    /// Wakeups that this CPU did.
    pub ttwu_count: u64,
    /// Those of them onto itself.
    pub ttwu_local: u64,
    /// Time that tasks ran, in nanoseconds.
    pub cpu_time_ns: u64,
    /// Time that tasks waited, in nanoseconds.
    pub run_delay_ns: u64,
    /// Arrivals of tasks on the CPU.
    pub pcount: u64,
    /// Time spent to find tasks and CPUs, in nanoseconds; of the task-stealing series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub find_ns: Option<u64>,
    /// Tasks stolen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal: Option<u64>,
    /// Attempts that found nothing to steal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_fail: Option<u64>,
}

/// Load balancing of one kind of idleness in one kind of domain, over all CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DomainDelta {
    /// The domain's name; where the file has none, its depth: `domain0`.
    pub domain: String,
    /// `busy`, `idle` or `newidle`: what the CPU was that balanced.
    pub idleness: &'static str,
    /// Attempts.
    pub count: u64,
    /// Attempts that found the domain balanced.
    pub balanced: u64,
    /// Attempts that moved nothing though it was not.
    pub failed: u64,
    /// The rest: attempts that moved something.
    pub succeeded: u64,
    /// Tasks pulled.
    pub gained: u64,
    /// Those of them that were cache hot.
    pub hot_gained: u64,
    /// Attempts that found no busier queue.
    pub nobusyq: u64,
    /// Attempts that found no busier group.
    pub nobusyg: u64,
}

/// Two snapshots' difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// CPUs that were online at both.
    pub cpus: Vec<CpuDelta>,
    /// Domains that were the same at both, by name or depth.
    pub domains: Vec<DomainDelta>,
    /// Jiffies between them.
    pub jiffies: Option<u64>,
    /// What limits their use: CPUs that came or went, statistics that were off.
    pub warnings: Vec<String>,
}

/// The counters of 32 bits wrap: their difference is one modulo 2³².
fn wrapped(before: u64, after: u64) -> u64 {
    u64::from((after as u32).wrapping_sub(before as u32))
}

impl Delta {
    /// What happened between `before` and `after`; why it cannot be said.
    pub fn between(before: &Snapshot, after: &Snapshot) -> Result<Delta, String> {
        if before.layout != after.layout {
            return Err(format!(
                "the two snapshots are of different kernels: {} and {}",
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
        let find = |snapshot: &'_ Snapshot, cpu: Cpu| snapshot.cpus.iter().position(|c| c.cpu == cpu);
        let mut left = Vec::new();
        for b in &before.cpus {
            match find(after, b.cpu) {
                Some(at) => delta.add(b, &after.cpus[at], &before.layout)?,
                None => left.push(b.cpu),
            }
        }
        let came: Vec<Cpu> = after.cpus.iter().map(|c| c.cpu).filter(|cpu| find(before, *cpu).is_none()).collect();
        let list = |cpus: &[Cpu]| sched::topology::format_cpu_list(cpus);
        for (cpus, what) in [(&left, "went offline"), (&came, "came online")] {
            if !cpus.is_empty() {
                delta.warnings.push(format!("CPUs {} {what} in between: they are left out", list(cpus)));
            }
        }
        let sum = |of: fn(&CpuDelta) -> u64| delta.cpus.iter().map(of).fold(0, u64::saturating_add);
        if sum(|c| c.sched_count) == 0 && sum(|c| c.pcount) > 0 {
            delta.warnings.push(
                "schedule() was counted on no CPU although tasks ran: the statistics were off \
                 (sysctl kernel.sched_schedstats=1); sched, idle, wake and the domains say nothing"
                    .into(),
            );
        }
        Ok(delta)
    }

    fn add(&mut self, b: &CpuStat, a: &CpuStat, layout: &Layout) -> Result<(), String> {
        let small = |i: usize| wrapped(b.fields[i], a.fields[i]);
        let large = |i: usize, name: &str| {
            a.fields[i].checked_sub(b.fields[i]).ok_or_else(|| {
                format!(
                    "{name} of CPU {} fell from {} to {}: the snapshots are in the wrong order, or of two boots",
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
            self.add_domain(depth, b, a, layout);
        }
        Ok(())
    }

    fn add_domain(&mut self, depth: usize, b: &DomainStat, a: &DomainStat, layout: &Layout) {
        let name = b.name.clone().unwrap_or_else(|| format!("domain{depth}"));
        let order = if layout.busy_first { ["busy", "idle", "newidle"] } else { ["idle", "busy", "newidle"] };
        // The imbalance is one counter, or four; what comes behind it moves.
        let more = layout.balance - 8;
        for (block, idleness) in order.into_iter().enumerate() {
            let at = |i: usize| {
                let i = block * layout.balance + i;
                wrapped(b.fields[i], a.fields[i])
            };
            let found = self.domains.iter().position(|d| d.domain == name && d.idleness == idleness);
            let index = found.unwrap_or_else(|| {
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
            // Each is read at another moment: of a few attempts the rest can come out below zero.
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

fn describe(layout: &Layout) -> String {
    let stealing = if layout.stealing { " with the task-stealing fields" } else { "" };
    format!("version {}{stealing}", layout.version)
}
