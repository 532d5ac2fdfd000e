//! Reports with a row for each cgroup, process, command or set of parameters: the rows sum to the whole, adjacent windows add up, and
//! pieces of a pass give the same, on simulated runs and on every recording.

use crate::support::{events, recordings_in_part, utilization_of_all};
use machine::Machine;
use membership::{Cgroups, GroupStack, StackHistory, StackIndex, TaskGroups, TasksBy};
use parse::Trace;
use sched::names::NameHistory;
use sched::pass::Pieces;
use sched::seeded::SeededMap;
use sched::{Analysis, Dur, Joined, Pass, Pid, SchedEvent, Ts, Window};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use testkit::{Rng, Simulation};
use why::{Grouping, Why};

/// The numbers of all rows by their names.
type RowTotals = BTreeMap<String, u64>;

struct Grouped<'e> {
    name: String,
    events: &'e [SchedEvent],
    groups: Arc<TaskGroups>,
}

impl Grouped<'_> {
    fn run<A: Analysis>(&self, window: Window, analysis: impl Fn() -> A) -> A::Output {
        Pass::over(self.events).window(window).run(analysis).unwrap_or_else(|never| match never {}).output
    }

    /// The output of an analysis over the whole window; in pieces it is the same.
    fn in_pieces<A: Joined<Output: serde::Serialize>>(&self, analysis: impl Fn() -> A + Sync) -> A::Output {
        let whole = self.run(Window::default(), &analysis);
        let pieces = Some(Pieces { events: 1 + self.events.len() / 5, workers: 2, scans: true });
        let joined = Pass::over(self.events).pieces(pieces).run_in_pieces(&analysis);
        let joined = joined.unwrap_or_else(|never| match never {}).output;
        let json = |output| serde_json::to_string(output).expect("a document");
        assert_eq!(json(&joined), json(&whole), "{}", self.name);
        whole
    }

    /// Adds the numbers of three adjacent windows up, and compares them with those of the whole.
    fn windows_add_up(&self, totals: impl Fn(Window) -> RowTotals) {
        let (first, last) = (self.events[0].ts, self.events[self.events.len() - 1].ts);
        let cut = Ts(first.0 + last.since(first).0 as i64 / 3);
        let at = self.events[self.events.len() / 2].ts.max(cut);
        let edges = [None, Some(cut), Some(at), None];
        let mut all = RowTotals::new();
        for edge in edges.windows(2) {
            for (row, number) in totals(Window { from: edge[0], to: edge[1] }) {
                *all.entry(row).or_default() += number;
            }
        }
        let mut whole = totals(Window::default());
        whole.retain(|_, number| *number > 0);
        all.retain(|_, number| *number > 0);
        assert_eq!(all, whole, "{}", self.name);
    }

    fn window(&self, window: Window) -> (Ts, Ts) {
        window.within(self.events[0].ts, self.events[self.events.len() - 1].ts)
    }

    fn latency(&self) {
        let by = self.groups.by();
        let options = latency::Options { by, groups: Some(self.groups.clone()), ..latency::Options::default() };
        let report = self.in_pieces(|| latency::Latency::new(&options));
        let of = |rows: &[latency::LatencyRow], measure| {
            let found = rows.iter().flat_map(|row| &row.measures).filter(|m| m.measure == measure);
            found.fold((0, 0), |sum, m| (sum.0 + m.summary.count, sum.1 + m.summary.total_ns.0))
        };
        for measure in latency::Measure::ALL {
            let all = report.of(measure);
            assert_eq!(of(&report.rows, measure), (all.count, all.total_ns.0), "{}: {measure:?}", self.name);
        }
        if by != TasksBy::Command {
            self.windows_add_up(|window| {
                let report = self.run(window, || latency::Latency::new(&options));
                let rows = report.rows.iter().map(|row| (format!("{:?} {:?}", row.command, row.group), row));
                let each = rows.flat_map(|(name, row)| {
                    row.measures.iter().map(move |m| (format!("{name} {:?}", m.measure), m.summary.total_ns.0))
                });
                each.collect()
            });
        }
    }

    fn fairness(&self) {
        let options = |window| {
            let (from, to) = self.window(window);
            let groups = Some(self.groups.clone());
            fairness::Options { by: fairness::GroupBy::Command, groups, ..fairness::Options::new(from, to) }
        };
        let whole = options(Window::default());
        let report = self.in_pieces(|| fairness::Fairness::new(&whole));
        let (from, to) = self.window(Window::default());
        let plain = fairness::Options::new(from, to);
        let by_task = self.run(Window::default(), || fairness::Fairness::new(&plain));
        let sums = |report: &fairness::FairnessReport| {
            let sum = |of: fn(&fairness::Member) -> u64| report.members.iter().map(of).sum::<u64>();
            // A run counts by the name at its end: a member that ran by another name alone has no time, and is left out.
            [sum(|m| m.run_ns.0), sum(|m| m.wait_ns.0)]
        };
        assert_eq!(sums(&report), sums(&by_task), "{}", self.name);
        if self.groups.by() != TasksBy::Command {
            self.windows_add_up(|window| {
                let options = options(window);
                let report = self.run(window, || fairness::Fairness::new(&options));
                let times = |m: &fairness::Member| {
                    [(format!("{} runs", m.name), m.run_ns.0), (format!("{} waits", m.name), m.wait_ns.0)]
                };
                report.members.iter().flat_map(times).collect()
            });
        }
    }

    fn utilization(&self) {
        let (from, to) = self.window(Window::default());
        let options = utilization_of_all(self.events, from, to);
        let by_group = || utilization::GroupTimes::new(&self.groups, &options.cpus);
        let report = self.in_pieces(by_group);
        let classes = self.run(Window::default(), || utilization::Utilization::new(&options)).all;
        let tasks = classes.app_ns.unwrap_or(0)
            + classes.rt_possible_ns
            + [classes.other_ns, classes.kernel_ns, classes.stopper_ns, classes.rt_ns, classes.injected_ns]
                .iter()
                .sum::<u64>();
        assert_eq!(report.rows.iter().map(|row| row.run_ns).sum::<u64>(), tasks, "{}", self.name);
        if self.groups.by() != TasksBy::Command {
            self.windows_add_up(|window| {
                let report = self.run(window, by_group);
                report.rows.iter().map(|row| (row.of.shown(), row.run_ns)).collect()
            });
        }
    }

    fn why(&self) {
        let options = workcons::Options { zero: self.events[0].ts, ..workcons::Options::default() };
        let report = self.in_pieces(|| Why::new(&options).by(Some(Grouping::Groups(self.groups.clone()))));
        let rows = report.by.expect("rows");
        let total = report.waiting.expect("waits").total_ns;
        assert_eq!(rows.iter().map(|row| row.total_ns.0).sum::<u64>(), total.0, "{}", self.name);
    }

    fn sched_idle(&self) {
        if self.groups.by() != TasksBy::Params {
            return;
        }
        let options = workcons::Options::default();
        let sums = |figures: &workcons::SchedIdleFigures| {
            let value = serde_json::to_value(figures).expect("figures");
            let numbers = value.as_object().into_iter().flatten();
            numbers.map(|(name, number)| (name.clone(), number.as_u64().unwrap_or(0))).collect()
        };
        self.in_pieces(|| workcons::SchedIdle::new(&options, &self.groups));
        self.windows_add_up(|window| sums(&self.run(window, || workcons::SchedIdle::new(&options, &self.groups))));
    }

    fn check(&self) {
        self.latency();
        self.fairness();
        self.utilization();
        self.why();
        self.sched_idle();
    }
}

/// Moves between three cgroups, of which one is unknown, at random instants.
fn random_cgroups(seed: u64, events: &[SchedEvent]) -> Cgroups {
    let mut rng = Rng::new(seed);
    let (first, last) = (events[0].ts, events[events.len() - 1].ts);
    let mut pids: Vec<Pid> = events.iter().map(|event| event.pid).filter(|pid| !pid.is_idle()).collect();
    pids.sort_unstable();
    pids.dedup();
    let mut moves: Vec<(Ts, Pid, Option<&str>)> = Vec::new();
    for pid in pids {
        for _ in 0..rng.below(4) {
            let at = Ts(first.0 + rng.below(last.since(first).0 as usize + 1) as i64);
            moves.push((at, pid, [Some("/a"), Some("/a/b"), None][rng.below(3)]));
        }
    }
    moves.sort_unstable();
    Cgroups::of_moves(&moves)
}

/// Switch-outs of all tasks at random instants, with one of two stacks or with none.
fn random_stacks(seed: u64, events: &[SchedEvent]) -> StackHistory {
    let mut rng = Rng::new(seed);
    let mut of: SeededMap<Pid, Vec<(Ts, Option<StackIndex>)>> = SeededMap::default();
    for event in events.iter().filter(|event| !event.pid.is_idle()) {
        let stack = [Some(StackIndex(0)), Some(StackIndex(1)), None][rng.below(3)];
        of.entry(event.pid).or_default().push((event.ts, stack));
    }
    let stack = |name: &str| GroupStack { functions: vec![name.to_owned()], ..GroupStack::default() };
    StackHistory::new(vec![stack("pipe_read"), stack("do_wait")], of, None)
}

#[test]
fn rows_of_groups_sum_to_the_whole_in_windows_and_pieces() {
    for seed in crate::support::seeds(12) {
        let cpus = 1 + (seed % 6) as u32;
        let sim = if seed % 3 == 0 { Simulation::any(seed, cpus, 250) } else { Simulation::balanced(seed, cpus, 250) };
        let events = if seed % 5 == 0 { sim.lossy(seed).0 } else { sim.events };
        let groups = Arc::new(TaskGroups::of_cgroups(random_cgroups(seed, &events)));
        Grouped { name: format!("seed {seed}"), events: &events, groups }.check();
        let groups = Arc::new(TaskGroups::of_stacks(random_stacks(seed, &events)));
        let by_stack = Grouped { name: format!("stacks of seed {seed}"), events: &events, groups };
        by_stack.latency();
        by_stack.why();
    }
    // The fixtures take some seconds: one of them stands for all where no folder of recordings is given.
    let is_thorough = std::env::var_os("SCHEDVIZ_TRACES").is_some();
    for path in recordings_in_part(4).iter().filter(|path| is_thorough || path.ends_with("hotplug-steps.dat")) {
        let trace = Trace::open(path, parse::Options::default()).expect("a readable recording");
        if trace.has_time().is_err() {
            continue;
        }
        let (machine, events) = (Machine::open(&Machine::path_beside(path)).ok(), events(&trace));
        if events.len() < 10 {
            continue;
        }
        for by in [TasksBy::Command, TasksBy::Process, TasksBy::Cgroup, TasksBy::Params] {
            let names = || Ok::<_, Infallible>(NameHistory::default());
            let groups = TaskGroups::of(by, &trace, machine.as_ref(), events[events.len() - 1].ts, names);
            let groups = Arc::new(groups.unwrap_or_else(|never| match never {}));
            Grouped { name: format!("{} by {by:?}", path.display()), events: &events, groups }.check();
        }
    }
}

/// On CPU 0 `make` runs in /a until it moves to /b at 300 ns, and in /b until 400; `cc` of /b waits from 200 to 400 and runs until 600. The cgroup of
/// `sort`, which runs for 50 ns, is unknown.
#[test]
fn times_are_divided_where_a_task_moves() {
    let events = testkit::a_wait_beside_an_idle_cpu();
    let moves = [(Ts::MIN, Pid(7), Some("/a")), (Ts::MIN, Pid(8), Some("/b")), (Ts(300), Pid(7), Some("/b"))];
    let groups = Arc::new(TaskGroups::of_cgroups(Cgroups::of_moves(&moves)));
    let grouped = Grouped { name: "by hand".to_owned(), events: &events, groups: groups.clone() };
    grouped.check();
    let options = fairness::Options { groups: Some(groups.clone()), ..fairness::Options::new(Ts(100), Ts(600)) };
    let report = grouped.run(Window::default(), || fairness::Fairness::new(&options));
    let rows: Vec<(&str, u64, u64)> =
        report.members.iter().map(|m| (m.name.as_str(), m.run_ns.0, m.wait_ns.0)).collect();
    assert_eq!(rows, [("/b", 300, 200), ("/a", 200, 0), ("unknown cgroup", 50, 0)]);
    let options = latency::Options { by: TasksBy::Cgroup, groups: Some(groups.clone()), ..Default::default() };
    let report = grouped.run(Window::default(), || latency::Latency::new(&options));
    let runs = report.rows.iter().map(|row| {
        let runs = row.measures.iter().find(|m| m.measure == latency::Measure::Run);
        (row.group.as_ref().and_then(|group| group.name.clone()), runs.map(|m| (m.summary.count, m.summary.total_ns.0)))
    });
    let runs: BTreeMap<Option<String>, Option<(u64, u64)>> = runs.collect();
    assert_eq!(runs, [(None, Some((1, 50))), (Some("/b".to_owned()), Some((2, 500)))].into());
    let options = workcons::Options::default();
    let waits = grouped.run(Window::default(), || Why::new(&options).by(Some(Grouping::Groups(groups.clone()))));
    let rows = waits.by.expect("rows");
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!(
        (row.group.as_ref().map(membership::GroupLabel::shown), row.total_ns),
        (Some("/b".to_owned()), Dur(200))
    );
}
