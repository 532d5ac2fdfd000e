//! Tasks on a smaller CPU while a larger one idled, where the CPUs of the machine differ in capacity.

use sched::{Analysis, Cpu, Dur, Joined, SchedEvent, SchedState, Ts};
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
pub struct SmallerCpus<'o> {
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
    pub fn new(options: &'o Options<'o>) -> Option<SmallerCpus<'o>> {
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
        let idle: Vec<Cpu> = loads().filter(|(_, load)| load.is_idle()).map(|(cpu, _)| cpu).collect();
        for (cpu, _) in loads().filter(|(_, load)| load.runs()) {
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

/// The title of the tables.
const TITLE: &str = "on a smaller CPU while a larger idled";

/// The table for people; empty where the CPUs do not differ.
pub(crate) fn text(rows: Option<&[SmallerRow]>) -> String {
    let Some(rows) = rows else { return String::new() };
    let mut out = format!("\n{TITLE:<42}  {:>12}\n", "time");
    for row in rows {
        let pair = format!("capacity {}, idle {}", row.capacity, row.idle_capacity);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {pair:<40}  {:>10.4} s", row.ns.seconds());
    }
    if rows.is_empty() {
        out.push_str("  never\n");
    }
    out
}

/// The table as Markdown; empty where the CPUs do not differ.
pub(crate) fn markdown(rows: Option<&[SmallerRow]>) -> String {
    let Some(rows) = rows else { return String::new() };
    if rows.is_empty() {
        return format!("\nNever {TITLE}.\n");
    }
    let mut out = format!("\n| {TITLE}: capacity | largest idle capacity | time |\n|---:|---:|---:|\n");
    for row in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "| {} | {} | {:.4} s |", row.capacity, row.idle_capacity, row.ns.seconds());
    }
    out
}

/// The sums of runs, by their names, where the CPUs of some differ; empty where those of none do.
pub(crate) fn of_runs<'r>(runs: impl Iterator<Item = (String, Option<&'r [SmallerRow]>)>, in_markdown: bool) -> String {
    let mut out = String::new();
    for (name, rows) in runs.filter_map(|(name, rows)| Some((name, rows?))) {
        let seconds = Dur(rows.iter().fold(0, |sum, row| sum.saturating_add(row.ns.0))).seconds();
        if out.is_empty() {
            out = match in_markdown {
                true => format!("\n| {TITLE} | time |\n|---|---:|\n"),
                false => format!("\n{TITLE:<42}  {:>12}\n", "time"),
            };
        }
        // Writing to a string cannot fail.
        let _ = match in_markdown {
            true => writeln!(out, "| {name} | {seconds:.4} s |"),
            false => writeln!(out, "  {name:<40}  {seconds:>10.4} s"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{SmallerCpus, SmallerRow, markdown, of_runs, text};
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

    #[test]
    fn the_rows_are_the_same_in_pieces() {
        use sched::{Pid, Window};
        let sizes = [256, 512, 1024, 1024];
        let capacities = || Capacities::of((0..).map(Cpu).zip(sizes));
        let mut tally = testkit::PieceTally::default();
        for seed in 0..8 {
            let simulation = testkit::Simulation::balanced(seed, 4, 400);
            let (lossy, _) = simulation.lossy(seed);
            let mut affinity = sched::Affinity::new((0..4).map(Cpu));
            (1..40).step_by(3).for_each(|pid| affinity.add(Pid(pid), &[Cpu(0), Cpu(2)].into_iter().collect()));
            for events in [&simulation.events, &lossy] {
                let affinity = (seed % 2 == 0).then_some(&affinity);
                let options = Options { capacities: capacities(), affinity, ..Options::default() };
                let inner = Window { from: Some(events[events.len() / 3].ts), to: None };
                for window in [Window::default(), inner] {
                    let analysis = || SmallerCpus::new(&options);
                    let show = |rows: &Option<Vec<SmallerRow>>| format!("{rows:?}");
                    tally += testkit::in_pieces(&mut events.as_slice(), window, &[1, 7, 61], analysis, show);
                }
            }
        }
        assert!(tally.joined * 10 > tally.pieces * 8 && tally.pieces > 0, "{tally:?}");
    }

    #[test]
    fn every_form_has_the_rows() {
        let rows = [SmallerRow { capacity: 512, idle_capacity: 1024, ns: Dur(1_500_000_000) }];
        let is_row = |line: &str| line.split_whitespace().eq(["capacity", "512,", "idle", "1024", "1.5000", "s"]);
        assert!(text(Some(&rows)).lines().any(is_row));
        assert!(markdown(Some(&rows)).ends_with("| 512 | 1024 | 1.5000 s |\n"));
        assert_eq!(markdown(Some(&[])), "\nNever on a smaller CPU while a larger idled.\n");
        assert_eq!((text(None), markdown(None)), (String::new(), String::new()));
        let runs = || [("a".to_owned(), Some(&rows[..])), ("b".to_owned(), None), ("c".to_owned(), Some(&[][..]))];
        let table =
            "| on a smaller CPU while a larger idled | time |\n|---|---:|\n| a | 1.5000 s |\n| c | 0.0000 s |\n";
        assert_eq!(of_runs(runs().into_iter(), true), format!("\n{table}"));
        assert_eq!(of_runs(runs().into_iter(), false).lines().count(), 4);
        assert_eq!(of_runs(runs().into_iter().skip(1).take(1), false), "");
    }

    /// At each instant of a simulated run, the tasks on smaller CPUs while larger ones idled, counted by the state alone.
    #[test]
    fn the_rows_are_those_of_every_instant() {
        use sched::{Analysis, Load, Pid, SchedEvent, SchedState, Ts};
        const SIZES: [u32; 6] = [256, 256, 512, 512, 1024, 1024];

        #[derive(Default)]
        struct Instants(Ts, std::collections::BTreeMap<(u64, u64), u64>);

        impl Instants {
            fn until(&mut self, ts: Ts, state: &SchedState) {
                let ns = ts.since(self.0).0;
                self.0 = ts;
                for cpu in state.observed() {
                    let own = SIZES[cpu.index()];
                    let runs = state
                        .running(cpu)
                        .filter(|task| task.pid != Pid::IDLE && !sched::kthread::is_bound(task.comm, cpu));
                    let idle = state.observed().filter(|other| state.load(*other) == Load::Idle);
                    let best = idle.map(|other| SIZES[other.index()]).max().unwrap_or(0);
                    if runs.is_some() && best > own {
                        *self.1.entry((own.into(), best.into())).or_default() += ns;
                    }
                }
            }
        }

        impl Analysis for Instants {
            type Output = std::collections::BTreeMap<(u64, u64), u64>;
            fn begin(&mut self, start: Ts, _: &SchedState) {
                self.0 = start;
            }
            fn before(&mut self, event: &SchedEvent, state: &SchedState) {
                self.until(event.ts, state);
            }
            fn finish(mut self, end: Ts, state: &SchedState) -> Self::Output {
                self.until(end, state);
                self.1
            }
        }

        let options = Options { capacities: Capacities::of((0..).map(Cpu).zip(SIZES)), ..Options::default() };
        for seed in 0..6 {
            let events = testkit::Simulation::balanced(seed, 6, 1_000).events;
            let pass = Pass::over(events.as_slice()).run(|| (SmallerCpus::new(&options), Instants::default()));
            let (rows, truth) = pass.unwrap_or_else(|never| match never {}).output;
            let rows = rows.expect("capacities that differ").into_iter();
            let rows: std::collections::BTreeMap<_, _> =
                rows.map(|row| ((row.capacity, row.idle_capacity), row.ns.0)).collect();
            let truth: std::collections::BTreeMap<_, _> = truth.into_iter().filter(|(_, ns)| *ns > 0).collect();
            assert_eq!(rows, truth, "{seed}");
            assert!(!truth.is_empty());
        }
    }
}
