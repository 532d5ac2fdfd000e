//! Tasks on a smaller CPU while a larger one idled, where the CPUs of the machine differ in capacity.

use sched::{Analysis, Cpu, Dur, Joined, Load, SchedEvent, SchedState, Ts};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use workcons::{Capacities, Options};

/// The tasks on CPUs of one capacity while CPUs of a larger one idled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SmallerRow {
    /// The capacity of the CPUs that ran the tasks.
    pub capacity: u64,
    /// The capacity of the largest idle CPU that each task may use.
    pub idle_capacity: u64,
    /// The time in task·nanoseconds.
    pub ns: Dur,
}

/// A capacity that runs a task, and a larger one that idles.
type Pair = (u64, u64);

/// The analysis of tasks on smaller CPUs.
pub(crate) struct SmallerCpus<'o> {
    options: &'o Options<'o>,
    capacities: &'o Capacities,
    /// The instant at which a later piece of a pass begins.
    at: Ts,
    since: Ts,
    /// The number of tasks by pair since then.
    now: BTreeMap<Pair, u64>,
    sums: BTreeMap<Pair, u64>,
}

impl<'o> SmallerCpus<'o> {
    /// Returns the analysis; nothing where the CPUs do not differ.
    pub(crate) fn new(options: &'o Options<'o>) -> Option<SmallerCpus<'o>> {
        let (at, capacities) = (Ts(0), options.capacities.as_ref()?);
        Some(SmallerCpus { options, capacities, at, since: at, now: BTreeMap::new(), sums: BTreeMap::new() })
    }

    /// Accounts for the time until `ts`.
    fn pass(&mut self, ts: Ts) {
        let ns = ts.since(self.since).0;
        self.since = self.since.max(ts);
        for (pair, tasks) in self.now.iter().filter(|_| ns > 0) {
            let sum = self.sums.entry(*pair).or_default();
            *sum = sum.saturating_add(ns.saturating_mul(*tasks));
        }
    }

    /// Takes over the tasks and the idle CPUs as they are.
    fn look(&mut self, state: &SchedState) {
        let Options { affinity, .. } = *self.options;
        self.now.clear();
        let loads = || state.observed().map(|cpu| (cpu, self.options.load(cpu, state)));
        let idle: Vec<Cpu> = loads().filter(|(_, load)| *load == Load::Idle).map(|(cpu, _)| cpu).collect();
        for (cpu, _) in loads().filter(|(_, load)| matches!(load, Load::Busy | Load::Overloaded)) {
            let Some(task) = state.running(cpu).filter(|task| self.options.counts(task, cpu, state)) else { continue };
            let allowed = affinity.and_then(|affinity| affinity.set(affinity.of(task, cpu, state)?, state));
            let usable = idle.iter().filter(|cpu| allowed.is_none_or(|allowed| allowed.has(**cpu)));
            let (own, best) = (self.capacities.at(cpu), usable.map(|cpu| self.capacities.at(*cpu)).max());
            if let Some(best) = best.filter(|best| *best > own) {
                *self.now.entry((own, best)).or_default() += 1;
            }
        }
    }
}

impl Analysis for SmallerCpus<'_> {
    type Output = Vec<SmallerRow>;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        (self.at, self.since) = (start, start);
        self.look(state);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        if !state.touched().is_empty() {
            self.pass(event.ts);
            self.look(state);
        }
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> Vec<SmallerRow> {
        self.pass(end);
        let row = |((capacity, idle_capacity), ns)| SmallerRow { capacity, idle_capacity, ns: Dur(ns) };
        let mut rows: Vec<SmallerRow> = self.sums.into_iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.ns));
        rows
    }
}

impl Joined for SmallerCpus<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, at: Ts, state: &SchedState) {
        self.begin(at, state);
    }

    fn fits(&self, _: &Self) -> bool {
        true
    }

    fn join(&mut self, later: Self) {
        self.pass(later.at);
        for (pair, ns) in later.sums {
            let sum = self.sums.entry(pair).or_default();
            *sum = sum.saturating_add(ns);
        }
        (self.since, self.now) = (later.since, later.now);
    }
}

/// The table for people; empty where the CPUs do not differ.
pub(crate) fn text(rows: Option<&[SmallerRow]>) -> String {
    let Some(rows) = rows else { return String::new() };
    let mut out = format!("\n{:<42} {:>12}\n", "on a smaller CPU while a larger idled", "time");
    for row in rows {
        let pair = format!("capacity {}, idle {}", row.capacity, row.idle_capacity);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {pair:<40} {:>10.4} s", row.ns.seconds());
    }
    if rows.is_empty() {
        out.push_str("  never\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{SmallerCpus, SmallerRow};
    use sched::{Cpu, Dur, Pass};
    use workcons::{Capacities, Options};

    #[test]
    fn a_task_on_the_smaller_cpu_counts_while_the_larger_one_idles() {
        // From 100 to 600 CPU 0 runs a task; CPU 1 idles for 450 ns of that in all.
        let events = testkit::a_wait_beside_an_idle_cpu();
        let rows = |capacities: [u32; 2]| {
            let capacities = Capacities::of((0..).map(Cpu).zip(capacities));
            let options = Options { capacities, ..Options::default() };
            let pass = Pass::over(events.as_slice()).run(|| SmallerCpus::new(&options));
            pass.unwrap_or_else(|never| match never {}).output
        };
        let both = rows([512, 1024]).expect("capacities that differ");
        assert_eq!(both.len(), 1);
        let SmallerRow { capacity, idle_capacity, ns } = both[0];
        assert_eq!((capacity, idle_capacity, ns), (512, 1024, Dur(450)));
        assert_eq!(rows([1024, 512]), Some(Vec::new()));
        assert_eq!(rows([1024, 1024]), None);
    }
}
