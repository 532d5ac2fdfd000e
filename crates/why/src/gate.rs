//! The gate of new-idle balancing without probes: the average idle time of each CPU by the kernel's rule, from stock events.
//!
//! The kernel attempts no new-idle balance on a CPU whose average idle time is below the cost of its smallest domain. Neither number is in a stock event. The average is followed between two bounds, from the least and
//! the greatest value that it can have at the window's start; the cost lies between the one at the start of the recording, which decays, and
//! the one at its end. `docs/questions/why.md#gate` has the rule.

use machine::{Machine, NewIdleCost};
use sched::{Cpu, EventKind, SchedEvent, Ts};
use serde::Serialize;
use session::Session;
use std::collections::BTreeMap;

/// The decay of a cost in each second.
const DECAY: f64 = 253.0 / 256.0;
/// The greatest time in nanoseconds from the beginning of a new-idle balance, where the kernel's clock of the idle time starts, to the switch.
const BEFORE_SWITCH: i64 = 100_000;
/// The greatest time in nanoseconds for which the clock of a run queue is behind that of an event.
const BEHIND_CLOCK: i64 = 60_000;
/// The kernel's `migration_cost_ns`, where the machine file lacks it.
const MIGRATION_COST: u64 = 500_000;
/// The kernels up to which the average takes a wakeup alone, and from which on it takes each end of an idle time.
const WAKEUPS_UNTIL: (u32, u32) = (6, 12);
const EVERY_END_SINCE: (u32, u32) = (7, 2);

/// The state of the gate of new-idle balancing as a CPU went idle, as stock events and the costs in the machine file show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EstimatedGate {
    /// The gate was certainly closed: the CPU idles less on average than the cheapest balance costs.
    Closed,
    /// The gate was possibly closed: the bounds of the average and of the cost overlap.
    PossiblyClosed,
    /// The gate was certainly open: the CPU idles at least as long on average as the cheapest balance costs.
    Open,
}

impl EstimatedGate {
    /// Every state of the gate, in the order of the tables.
    pub const ALL: [EstimatedGate; 3] = [EstimatedGate::Closed, EstimatedGate::PossiblyClosed, EstimatedGate::Open];

    /// The words for the state in a text.
    pub fn words(self) -> &'static str {
        match self {
            EstimatedGate::Closed => "closed: avg_idle below cost",
            EstimatedGate::PossiblyClosed => "possibly closed",
            EstimatedGate::Open => "open: avg_idle not below cost",
        }
    }
}

/// The moments at which the average idle time of a CPU is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AverageRule {
    /// Each wakeup on the CPU while it idles.
    AtWakeups,
    /// Each end of an idle time.
    AtEveryEnd,
    /// One or the other: the kernel is not known.
    Unknown,
}

impl AverageRule {
    /// The rule of a kernel, by the first two numbers of its release.
    pub fn of(release: Option<(u32, u32)>) -> AverageRule {
        match release {
            Some(release) if release <= WAKEUPS_UNTIL => AverageRule::AtWakeups,
            Some(release) if release >= EVERY_END_SINCE => AverageRule::AtEveryEnd,
            _ => AverageRule::Unknown,
        }
    }
}

/// The costs of new-idle balancing around a recording, and the rule of its kernel.
#[derive(Clone, Debug)]
pub struct GateCosts {
    /// The costs of each CPU at the start and at the end of the recording.
    pub cpus: BTreeMap<Cpu, (NewIdleCost, NewIdleCost)>,
    /// The start of the recording.
    pub from: Ts,
    /// The end of the recording.
    pub to: Ts,
    /// The kernel's `migration_cost_ns`, in nanoseconds.
    pub migration_cost_ns: u64,
    /// The moments at which the kernel updates the average idle time.
    pub rule: AverageRule,
}

impl GateCosts {
    /// Returns the costs of an opened trace; nothing where the machine file does not have those of its start and its end.
    pub fn of(session: &Session) -> Option<GateCosts> {
        let machine: &Machine = session.machine.as_ref()?;
        let costs = machine.newidle_costs.as_ref()?;
        let both = |(cpu, start): (&u32, &NewIdleCost)| Some((Cpu(*cpu), (*start, *costs.end.get(cpu)?)));
        let cpus: BTreeMap<_, _> = costs.start.iter().filter_map(both).collect();
        // Those of a part are of the whole recording.
        let whole = session.trace.past().map(|past| (past.start, past.end));
        let (from, to) = whole.or_else(|| session.trace.extent())?;
        let migration_cost = machine.scheduler.tunable("migration_cost_ns").and_then(|cost| cost.parse().ok());
        let migration_cost_ns = migration_cost.unwrap_or(MIGRATION_COST);
        let rule = AverageRule::of(session.kernel_release());
        (!cpus.is_empty()).then_some(GateCosts { cpus, from, to, migration_cost_ns, rule })
    }
}

/// The least and the greatest value of a number, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct AverageBounds {
    least: i64,
    greatest: i64,
}

impl AverageBounds {
    /// The average with an idle time between two bounds, at most `cap`.
    fn with(self, idle: AverageBounds, cap: AverageBounds) -> AverageBounds {
        AverageBounds {
            least: (self.least + (idle.least - self.least) / 8).min(cap.least),
            greatest: (self.greatest + (idle.greatest - self.greatest) / 8).min(cap.greatest),
        }
    }

    /// The bounds of a number that has the bounds of one of both.
    fn or(self, other: AverageBounds) -> AverageBounds {
        AverageBounds { least: self.least.min(other.least), greatest: self.greatest.max(other.greatest) }
    }
}

/// The idle time of a CPU, as far as the kernel's average has not taken it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamp {
    /// The CPU has idled since then.
    Idles(Ts),
    /// The CPU idled from then on, and ran a task without a wakeup: the average can have taken it or not.
    Ran(Ts),
}

/// The average idle time of a CPU.
#[derive(Clone, Copy, Debug)]
struct CpuAverage {
    average: AverageBounds,
    stamp: Option<Stamp>,
}

/// A follower of the gate of each CPU, from the start of a window.
#[derive(Clone, Debug)]
pub(crate) struct Gates {
    costs: GateCosts,
    cpus: BTreeMap<Cpu, CpuAverage>,
}

fn ns(number: u64) -> i64 {
    // Numbers beyond an hour are bounds alone.
    i64::try_from(number).unwrap_or(i64::MAX).min(3_600_000_000_000)
}

impl Gates {
    pub(crate) fn new(costs: GateCosts) -> Gates {
        Gates { costs, cpus: BTreeMap::new() }
    }

    /// The bounds of a cost that decays, at an instant, from its values at the start and at the end of the recording.
    fn cost(&self, (start, end): (u64, u64), at: Ts) -> AverageBounds {
        let seconds = |length: sched::Dur| length.0 as f64 / 1e9 + 1.0;
        let least = ns(start) as f64 * DECAY.powf(seconds(at.since(self.costs.from)));
        let greatest = ns(end) as f64 / DECAY.powf(seconds(self.costs.to.since(at)).min(600.0));
        AverageBounds { least: least as i64, greatest: ns(greatest as u64) }
    }

    /// The greatest average that the kernel allows, between its bounds.
    fn cap(&self, cpu: Cpu, at: Ts) -> Option<AverageBounds> {
        let (start, end) = self.costs.cpus.get(&cpu)?;
        let least = self.cost((start.lowest_ns, end.lowest_ns), at).least;
        let greatest = self.cost((start.sum_ns, end.sum_ns), at).greatest.max(ns(start.sum_ns));
        let cap = |cost: i64| 2 * cost.max(ns(self.costs.migration_cost_ns));
        Some(AverageBounds { least: cap(least), greatest: cap(greatest) })
    }

    fn of(&mut self, cpu: Cpu, at: Ts) -> Option<&mut CpuAverage> {
        let cap = self.cap(cpu, at)?;
        let unknown = CpuAverage { average: AverageBounds { least: 0, greatest: cap.greatest }, stamp: None };
        Some(self.cpus.entry(cpu).or_insert(unknown))
    }

    /// Takes an event.
    pub(crate) fn take(&mut self, event: &SchedEvent) {
        let (cpu, now, rule) = (event.cpu, event.ts, self.costs.rule);
        match event.kind {
            EventKind::Switch { next, .. } if next.pid.is_idle() => {
                if let Some(of) = self.of(cpu, now) {
                    of.stamp = Some(Stamp::Idles(now));
                }
            }
            EventKind::Switch { prev, .. } if prev.pid.is_idle() => {
                let Some(Stamp::Idles(since)) = self.cpus.get(&cpu).and_then(|of| of.stamp) else { return };
                match rule {
                    AverageRule::AtWakeups => self.stamp(cpu, Some(Stamp::Ran(since))),
                    AverageRule::AtEveryEnd => self.update(cpu, since, now, true),
                    AverageRule::Unknown => self.update(cpu, since, now, false),
                }
            }
            EventKind::Wakeup { target, .. } if rule != AverageRule::AtEveryEnd => {
                match self.cpus.get(&target).and_then(|of| of.stamp) {
                    Some(Stamp::Idles(since)) => self.update(target, since, now, true),
                    Some(Stamp::Ran(since)) => self.update(target, since, now, false),
                    None => {}
                }
            }
            // The average can have changed in any way.
            EventKind::Lost { .. } | EventKind::Offline => drop(self.cpus.remove(&cpu)),
            _ => {}
        }
    }

    fn stamp(&mut self, cpu: Cpu, stamp: Option<Stamp>) {
        self.cpus.get_mut(&cpu).into_iter().for_each(|of| of.stamp = stamp);
    }

    /// The average takes an idle time, certainly or possibly.
    fn update(&mut self, cpu: Cpu, since: Ts, now: Ts, certainly: bool) {
        let Some(cap) = self.cap(cpu, now) else { return };
        let Some(of) = self.cpus.get_mut(&cpu) else { return };
        let length = ns(now.since(since).0);
        let idle = AverageBounds { least: (length - BEHIND_CLOCK).max(0), greatest: length + BEFORE_SWITCH };
        let updated = of.average.with(idle, cap);
        *of = CpuAverage { average: if certainly { updated } else { of.average.or(updated) }, stamp: None };
    }

    /// The state of the gate as a CPU has gone idle; nothing where its costs are unknown.
    pub(crate) fn gate(&mut self, cpu: Cpu, now: Ts) -> Option<EstimatedGate> {
        let (start, end) = *self.costs.cpus.get(&cpu)?;
        let cost = self.cost((start.lowest_ns, end.lowest_ns), now);
        let average = self.of(cpu, now)?.average;
        Some(if average.greatest < cost.least {
            EstimatedGate::Closed
        } else if average.least >= cost.greatest {
            EstimatedGate::Open
        } else {
            EstimatedGate::PossiblyClosed
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::{Comm, Pid, PrevState, TaskRef};

    fn switch(ts: i64, prev: i32, next: i32) -> SchedEvent {
        let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") };
        let kind = EventKind::Switch { prev: task(prev), state: PrevState::asleep(1), next: task(next) };
        SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(prev), flags: 0, kind }
    }

    fn wakeup(ts: i64) -> SchedEvent {
        let task = TaskRef { pid: Pid(7), prio: 120, comm: Comm::new(b"task") };
        SchedEvent { ts: Ts(ts), cpu: Cpu(1), pid: Pid(8), flags: 0, kind: EventKind::Wakeup { task, target: Cpu(0) } }
    }

    /// The bounds of the average after these events, with a cost of 2 ms.
    fn average(rule: AverageRule, events: &[SchedEvent]) -> [i64; 2] {
        let cost = NewIdleCost { lowest_ns: 2_000_000, sum_ns: 2_000_000 };
        let cpus = BTreeMap::from([(Cpu(0), (cost, cost))]);
        let costs = GateCosts { cpus, from: Ts(0), to: Ts(0), migration_cost_ns: 500_000, rule };
        let mut gates = Gates::new(costs);
        events.iter().for_each(|event| gates.take(event));
        let average = gates.of(Cpu(0), Ts(0)).expect("a CPU with costs").average;
        [average.least, average.greatest]
    }

    #[test]
    fn the_average_moves_an_eighth_of_the_way_to_each_idle_time() {
        let most = 2 * (2_000_000.0 / DECAY) as i64;
        assert_eq!(average(AverageRule::AtWakeups, &[]), [0, most]);
        let woken = [switch(0, 7, 0), wakeup(800_000), switch(810_000, 0, 7)];
        let [least, greatest] = average(AverageRule::AtWakeups, &woken);
        assert_eq!((least, greatest), ((800_000 - BEHIND_CLOCK) / 8, most + (800_000 + BEFORE_SWITCH - most) / 8));
        // A pull ends the idle time without a wakeup: not for older kernels.
        let pulled = [switch(0, 7, 0), switch(800_000, 0, 7)];
        assert_eq!(average(AverageRule::AtWakeups, &pulled), [0, most]);
        assert_eq!(average(AverageRule::AtEveryEnd, &pulled), [least, greatest]);
        assert_eq!(average(AverageRule::Unknown, &pulled), [0, most]);
        // Long idle times count up to twice the cost.
        let long: Vec<SchedEvent> = (0..40).flat_map(|n| [switch(n, 7, 0), wakeup(n + 900_000_000)]).collect();
        assert!(average(AverageRule::AtWakeups, &long)[0] >= 3_900_000);
    }

    #[test]
    fn the_rule_follows_the_kernel() {
        let of = |major, minor| AverageRule::of(Some((major, minor)));
        assert_eq!([of(5, 10), of(6, 12)], [AverageRule::AtWakeups; 2]);
        assert_eq!([of(7, 2), of(8, 0)], [AverageRule::AtEveryEnd; 2]);
        assert_eq!([of(6, 18), AverageRule::of(None)], [AverageRule::Unknown; 2]);
    }
}
