//! The times at which bandwidth control (`cpu.max`) kept tasks of a CPU from running, from the probes `throttle` and
//! `unthrottle` of the group `lb` (`schedviz record --why`).
//!
//! The probes are on functions that throttle the run queue of one cgroup on one CPU. They record neither the cgroup nor its
//! tasks, so that nothing shows which waiting tasks are throttled: these count as waiting, and the time is reported by CPU.

use crate::session::Session;
use sched::{Cpu, Dur, Ts};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use workcons::Reaction;

/// The throttling of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Throttled {
    /// The CPU.
    cpu: Cpu,
    /// The number of times at which throttling began and ended within the window.
    times: u64,
    /// Their length together in nanoseconds.
    ns: u64,
    /// The number of times without an end within the window; their length is not in `ns`.
    without_end: u64,
}

/// The throttling of all CPUs of a window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Throttling {
    ended: BTreeMap<Cpu, Vec<(Ts, Ts)>>,
    open: BTreeMap<Cpu, Ts>,
}

impl Throttling {
    /// Returns the throttling in the window of a trace that has both probes.
    pub(crate) fn of(session: &Session) -> Option<Throttling> {
        let has = |name: &str| session.trace.format_named("lb", name).is_some();
        if !(has("throttle") && has("unthrottle")) {
            return None;
        }
        let mut throttling = Throttling::default();
        session.trace.records_from(session.from, &mut |record| {
            if record.ts > session.to {
                return ControlFlow::Break(());
            }
            if let Some(format) = record.format().filter(|format| format.system == "lb") {
                // A timer on another CPU can end it.
                let cpu = record.number("cpu").and_then(|cpu| u32::try_from(cpu).ok()).map_or(record.cpu, Cpu);
                match format.name.as_str() {
                    "throttle" => throttling.begin(cpu, record.ts),
                    "unthrottle" => throttling.end(cpu, record.ts),
                    _ => {}
                }
            }
            ControlFlow::Continue(())
        });
        Some(throttling)
    }

    /// One of the CPU's run queues is throttled. Another one that is meanwhile changes nothing.
    fn begin(&mut self, cpu: Cpu, ts: Ts) {
        self.open.entry(cpu).or_insert(ts);
    }

    /// An end without a beginning belongs to a time before the window.
    fn end(&mut self, cpu: Cpu, ts: Ts) {
        if let Some(since) = self.open.remove(&cpu) {
            self.ended.entry(cpu).or_default().push((since, ts));
        }
    }

    /// By CPU; only CPUs that were throttled.
    pub(crate) fn by_cpu(&self) -> Vec<Throttled> {
        let mut all: BTreeMap<Cpu, Throttled> = BTreeMap::new();
        for (cpu, times) in &self.ended {
            let ns = times.iter().map(|(from, to)| to.since(*from).0).sum();
            all.insert(*cpu, Throttled { cpu: *cpu, times: times.len() as u64, ns, without_end: 0 });
        }
        for cpu in self.open.keys() {
            all.entry(*cpu).or_insert_with(|| Throttled { cpu: *cpu, ..Throttled::default() }).without_end += 1;
        }
        all.into_values().collect()
    }

    /// Whether a CPU was throttled for more than half of a reaction.
    fn explains(&self, reaction: &Reaction) -> bool {
        let (from, to) = (reaction.start_ns, reaction.start_ns.after(reaction.duration_ns));
        let times = self.ended.get(&reaction.cpu).into_iter().flatten().copied();
        let open = self.open.get(&reaction.cpu).map(|since| (*since, to.max(*since)));
        let within = |(start, end): (Ts, Ts)| end.min(to).since(start.max(from).min(end.min(to))).0;
        2 * times.chain(open).map(within).sum::<u64>() > reaction.duration_ns.0
    }

    /// The lines for people; nothing if no CPU was throttled.
    pub(crate) fn text(&self, reactions: &[Reaction]) -> Option<String> {
        let all = self.by_cpu();
        if all.is_empty() {
            return None;
        }
        let cpus: Vec<Cpu> = all.iter().map(|throttled| throttled.cpu).collect();
        let (times, ns): (u64, u64) = all.iter().fold((0, 0), |(times, ns), one| (times + one.times, ns + one.ns));
        let explained = reactions.iter().filter(|reaction| self.explains(reaction)).count();
        let of_reactions = match reactions.len() {
            0 => String::new(),
            n => format!(
                "; {explained} of the {n} listed times that a CPU idled beside a task of its own lie within that"
            ),
        };
        Some(format!(
            "bandwidth control (cpu.max) throttled CPUs {} {times} times, for {} in all{of_reactions}. The probes do not \
             show which tasks: throttled tasks count as waiting",
            sched::topology::format_cpu_list(&cpus),
            Dur(ns).human()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_paired_by_cpu() {
        let mut throttling = Throttling::default();
        throttling.end(Cpu(0), Ts(5));
        throttling.begin(Cpu(0), Ts(10));
        // Another cgroup on the same CPU.
        throttling.begin(Cpu(0), Ts(12));
        throttling.end(Cpu(0), Ts(30));
        throttling.begin(Cpu(2), Ts(40));
        assert_eq!(
            throttling.by_cpu(),
            [
                Throttled { cpu: Cpu(0), times: 1, ns: 20, without_end: 0 },
                Throttled { cpu: Cpu(2), times: 0, ns: 0, without_end: 1 }
            ]
        );
        let reaction = |cpu: u32, from: i64, ns: u64| Reaction {
            cpu: Cpu(cpu),
            start_ns: Ts(from),
            start_in_trace_ns: 0,
            duration_ns: Dur(ns),
            waiting: Vec::new(),
        };
        assert!(throttling.explains(&reaction(0, 10, 20)) && throttling.explains(&reaction(0, 0, 35)));
        assert!(!throttling.explains(&reaction(0, 25, 20)) && !throttling.explains(&reaction(1, 10, 20)));
        assert!(throttling.explains(&reaction(2, 41, 9)) && !throttling.explains(&reaction(2, 0, 50)));
    }
}
