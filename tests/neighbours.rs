//! `schedviz neighbours`: agreement with a look at every CPU at every event, the sum of all waiting, and adjacent windows.

use crate::support::{events, recordings, recordings_in_part, schedviz};
use membership::{Cgroups, Processes};
use neighbours::{By, Matrix, MeasuredPressure, NeighboursReport, Options, PartyKind, PressureMeter};
use parse::Trace;
use sched::{Analysis, Cpu, Current, EventKind, Pass, Pid, SchedEvent, SchedState, TaskState, Ts, Window};
use std::collections::BTreeMap;
use testkit::{Laws, Simulation};

/// The start of an interval, with the waiting of each task in it.
type IdleInterval = (Ts, BTreeMap<Pid, (String, u64)>);

/// The waiting by victim and culprit, from all waiting tasks at every event.
#[derive(Default)]
struct Looking {
    last: Ts,
    pairs: BTreeMap<(String, String), u64>,
    preemptions: u64,
    /// By CPU: the time for which a task waited there or was throttled, and that for which one did or ran.
    stalls: BTreeMap<Cpu, (u128, u128)>,
    /// The start of the interval in which a CPU idles beside its own tasks, and the waiting of each of these in it.
    idle: BTreeMap<Cpu, IdleInterval>,
    /// The CPU of the latest event, if that is a switch away from a task.
    switched: Option<Cpu>,
}

/// The names of an idle CPU as a culprit: below a millisecond, and from that on.
const SWITCHING: &str = "idle (switching)";
const HELD_BACK: &str = "idle (held back)";

fn party(task: &sched::Task) -> String {
    let name = match (task.kin.is_of_kernel(task.comm), task.kin.descends) {
        (true, _) => "kernel threads",
        (_, true) => "application",
        _ => "others",
    };
    name.to_owned()
}

impl Looking {
    /// Ends the intervals of idle CPUs beside their own tasks that the state since the latest event has not, for all or for some tasks, and
    /// begins others.
    fn divide_idle(&mut self, state: &SchedState) {
        let goes_on = |cpu: Cpu| state.current(cpu) == Current::Idle && state.waiting(cpu).next().is_some();
        let cpus: Vec<Cpu> = self.idle.keys().copied().collect();
        for cpu in cpus {
            let (since, mut tasks) = self.idle.remove(&cpu).expect("an interval");
            let stays = |pid: &Pid| goes_on(cpu) && state.waiting(cpu).any(|task| task.pid == *pid);
            let is_long = self.last.since(since).0 >= 1_000_000 && self.switched != Some(cpu);
            let gone: Vec<Pid> = tasks.keys().copied().filter(|pid| !stays(pid)).collect();
            for (victim, ns) in gone.iter().filter_map(|pid| tasks.remove(pid)) {
                let culprit = if is_long { HELD_BACK } else { SWITCHING };
                *self.pairs.entry((victim, culprit.to_owned())).or_default() += ns;
            }
            if goes_on(cpu) {
                self.idle.insert(cpu, (since, tasks));
            }
        }
        for cpu in state.observed().filter(|cpu| goes_on(*cpu)) {
            self.idle.entry(cpu).or_insert((self.last, BTreeMap::new()));
        }
    }

    fn pass(&mut self, ts: Ts, state: &SchedState) {
        self.divide_idle(state);
        let ns = ts.since(self.last).0;
        self.last = ts;
        let mut queued: BTreeMap<Cpu, bool> = BTreeMap::new();
        for task in state.living().filter(|_| ns > 0) {
            match task.state {
                TaskState::Waiting(cpu) if !state.is_observed(cpu) => {}
                TaskState::Waiting(cpu) | TaskState::Throttled(cpu) => *queued.entry(cpu).or_default() = true,
                TaskState::Running(cpu) => drop(queued.entry(cpu).or_default()),
                _ => {}
            }
        }
        for (cpu, waits) in queued {
            let sums = self.stalls.entry(cpu).or_default();
            *sums = (sums.0 + if waits { u128::from(ns) } else { 0 }, sums.1 + u128::from(ns));
        }
        for cpu in state.observed().filter(|_| ns > 0) {
            let culprit = match state.current(cpu) {
                _ if state.handlers(cpu) > 0 => "interrupts".to_owned(),
                Current::Idle => SWITCHING.to_owned(),
                Current::Task(_) => state.running(cpu).map_or("unknown".to_owned(), party),
                Current::Unknown | Current::Offline => "unknown".to_owned(),
            };
            let is_idle = culprit == SWITCHING && !state.has_ext_queues();
            for task in state.waiting(cpu) {
                match is_idle {
                    true => {
                        self.idle
                            .entry(cpu)
                            .or_insert((self.last, BTreeMap::new()))
                            .1
                            .entry(task.pid)
                            .or_insert((party(task), 0))
                            .1 += ns;
                    }
                    false => *self.pairs.entry((party(task), culprit.clone())).or_default() += ns,
                }
            }
        }
    }
}

impl Analysis for Looking {
    type Output = Looking;

    fn begin(&mut self, start: Ts, _: &SchedState) {
        self.last = start;
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        self.pass(event.ts, state);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.switched = None;
        let EventKind::Switch { prev, next, .. } = event.kind else { return };
        self.switched = Some(event.cpu).filter(|_| !prev.pid.is_idle());
        let stays = |state: TaskState, next: TaskState| matches!((state, next), (TaskState::Running(from), TaskState::Waiting(to)) if from == to && to == event.cpu);
        let stayed = state.turns().any(|(_, span)| stays(span.state, span.next));
        self.preemptions += u64::from(stayed && !next.pid.is_idle() && state.running(event.cpu).is_some());
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> Looking {
        self.pass(end, state);
        for (since, tasks) in std::mem::take(&mut self.idle).into_values() {
            let culprit = if end.since(since).0 >= 1_000_000 { HELD_BACK } else { SWITCHING };
            for (victim, ns) in tasks.into_values() {
                *self.pairs.entry((victim, culprit.to_owned())).or_default() += ns;
            }
        }
        self.pairs.retain(|_, ns| *ns > 0);
        self
    }
}

/// The pairs with one row for idle CPUs: an edge of a window can cut an interval below a millisecond.
fn without_kinds_of_idle(pairs: BTreeMap<(String, String), u64>) -> BTreeMap<(String, String), u64> {
    let mut found = BTreeMap::new();
    for ((victim, culprit), ns) in pairs {
        let culprit = if culprit == HELD_BACK { SWITCHING.to_owned() } else { culprit };
        *found.entry((victim, culprit)).or_default() += ns;
    }
    found
}

fn pairs(report: &NeighboursReport) -> BTreeMap<(String, String), u64> {
    let with_waiting = report.pairs.iter().filter(|pair| pair.wait_ns.0 > 0);
    with_waiting.map(|pair| ((pair.victim.clone(), pair.culprit.clone()), pair.wait_ns.0)).collect()
}

/// Below two seconds the kernel sums at most once before the end, and not at all for the machine if that was idle before.
fn check_pressure(name: &str, found: &[MeasuredPressure], looked: &Looking, events: &[SchedEvent]) {
    let [machine] = found else { panic!("{name}: {found:?}") };
    if events[events.len() - 1].ts.since(events[0].ts).0 < 2_000_000_000 {
        let nonidle: u128 = looked.stalls.values().map(|(_, nonidle)| nonidle).sum();
        let some: u128 = looked.stalls.values().map(|(some, nonidle)| some * nonidle).sum();
        assert_eq!(u128::from(machine.stalled.some), some / nonidle.max(1), "{name}");
    }
    assert!(machine.least.some <= machine.most.some && machine.stalled.full <= machine.stalled.some, "{name}");
}

fn check(name: &str, events: &[SchedEvent]) {
    let options = Options::new(By::Application);
    let run = |window: Window| {
        let pressure = || PressureMeter::new(&options.cgroups);
        let analyses = || (Matrix::new(&options), Looking::default(), Laws::default(), pressure());
        Pass::over(events).window(window).run(analyses).unwrap_or_else(|never| match never {}).output
    };
    let (whole, looked, laws, pressure) = run(Window::default());
    check_pressure(name, &pressure, &looked, events);
    assert_eq!(pairs(&whole), looked.pairs, "{name}");
    assert_eq!(whole.preemptions, Some(looked.preemptions), "{name}");
    assert_eq!(whole.throttled_ns, Some(laws.throttled), "{name}");
    let waited = whole.wait_ns.expect("time");
    assert!(waited <= laws.waiting, "{name}: only tasks on CPUs without events are left out");
    // By command the same waiting is divided otherwise.
    let by_command = Options::new(By::Command);
    let commands = Pass::over(events).run(|| Matrix::new(&by_command)).unwrap_or_else(|never| match never {}).output;
    assert_eq!((commands.wait_ns, commands.preemptions), (whole.wait_ns, whole.preemptions), "{name}");
    let groups = &commands.groups;
    assert_eq!(groups.iter().map(|group| group.wait_ns.0).sum::<u64>(), waited.0, "{name}");
    let own: u64 = groups.iter().map(|group| group.behind_own_ns.0).sum();
    assert_eq!(groups.iter().map(|group| group.caused_ns.0).sum::<u64>() + own, waited.0, "{name}");
    let (first, last) = (events[0].ts, events[events.len() - 1].ts);
    let cut = Ts(first.0 + last.since(first).0 as i64 / 3);
    let at = events[events.len() / 2].ts.max(cut);
    let edges = [None, Some(cut), Some(at), None];
    let mut sum: BTreeMap<(String, String), u64> = BTreeMap::new();
    let (mut preemptions, mut throttled) = (0, 0);
    for window in edges.windows(2).map(|edge| Window { from: edge[0], to: edge[1] }) {
        let (part, ..) = run(window);
        pairs(&part).into_iter().for_each(|(pair, ns)| *sum.entry(pair).or_default() += ns);
        preemptions += part.preemptions.expect("a number");
        throttled += part.throttled_ns.expect("time").0;
    }
    let (sum, all) = (without_kinds_of_idle(sum), without_kinds_of_idle(looked.pairs));
    assert_eq!(
        (sum, preemptions, throttled),
        (all, whole.preemptions.expect("a number"), whole.throttled_ns.expect("time").0),
        "{name}"
    );
}

/// Takes seconds: a look at every CPU at every event, in random runs with losses, where shares of culprits depend on who ran meanwhile.
#[test]
fn the_matrix_is_what_a_look_at_every_cpu_finds() {
    for seed in crate::support::seeds(40) {
        let cpus = 1 + (seed % 6) as u32;
        let sim = if seed % 3 == 0 { Simulation::any(seed, cpus, 300) } else { Simulation::balanced(seed, cpus, 300) };
        let events = if seed % 5 == 0 { sim.lossy(seed).0 } else { sim.events };
        check(&format!("seed {seed}"), &events);
    }
    for path in recordings_in_part(2) {
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        if trace.has_time().is_ok() {
            let events = events(&trace);
            if events.len() > 10 {
                check(&path.display().to_string(), &events);
            }
        }
    }
}

/// Recordings of two cgroups by a probe on the switches: the sums agree with those by application, and the cgroups are found.
#[test]
fn cgroups_of_switches_divide_the_same_waiting() {
    let mut seen = 0;
    for path in recordings()
        .iter()
        .filter(|path| path.ends_with("newer/7.2-cgroup.dat") || path.ends_with("newer/6.12-cgroup.dat"))
    {
        let trace = Trace::open(path, parse::Options::default()).expect("a readable recording");
        let processes = Processes::of(&trace, None);
        let cgroups = Cgroups::of(&trace, None, &processes);
        assert!(cgroups.names().len() >= 3 && cgroups.names().contains(&"/".into()), "{:?}", cgroups.names());
        let options = Options { cgroups, ..Options::new(By::Cgroup) };
        let events = events(&trace);
        let run = |options: &Options<'_>| {
            Pass::over(events.as_slice()).run(|| Matrix::new(options)).unwrap_or_else(|never| match never {}).output
        };
        let (report, all) = (run(&options), run(&Options::new(By::Application)));
        assert_eq!((report.wait_ns, report.preemptions), (all.wait_ns, all.preemptions));
        let unknown = report.groups.iter().filter(|group| group.kind == PartyKind::UnknownGroup);
        assert!(
            unknown.map(|group| group.wait_ns.0).sum::<u64>() * 20 < report.wait_ns.expect("time").0,
            "{:?}",
            report.groups
        );
        let pressure = Pass::over(events.as_slice()).run(|| PressureMeter::new(&options.cgroups));
        check_witness(path.ends_with("newer/7.2-cgroup.dat"), &pressure.unwrap_or_else(|never| match never {}).output);
        seen += 1;
    }
    assert!(seen == 0 || seen == 2);
}

/// The growth of `cpu.pressure` over these recordings, in microseconds: `some` and `full` of the cgroups g1 and g2, which had no tasks before.
/// The files that are beside them have the sums since the machine was booted.
fn check_witness(is_new: bool, found: &[MeasuredPressure]) {
    let [first, second] = if is_new { ["cgroup 28", "cgroup 47"] } else { ["cgroup 28", "cgroup 46"] };
    let kernel = match is_new {
        true => [(first, 203_364 - 150_710, 170_132 - 119_451), (second, 500_668 - 226_246, 422_083 - 184_585)],
        false => [(first, 20_372, 13_383), (second, 63_253, 63_181)],
    };
    let mut close = 0;
    for (name, some, full) in kernel {
        let of = found.iter().find(|of| of.cgroup.as_deref() == Some(name)).expect("the cgroup has tasks");
        for (us, at, least, most) in
            [(some, of.stalled.some, of.least.some, of.most.some), (full, of.stalled.full, of.least.full, of.most.full)]
        {
            let ns: u64 = us * 1000;
            assert!((least..=most).contains(&ns), "{name}: {ns} of {least} to {most}");
            close += usize::from(ns.abs_diff(at) <= (ns / 100 * 3).max(2_000_000));
        }
    }
    // The instants at which the kernel summed are not in the trace; the first task of a group shows them but for its last moves.
    assert!(close >= 3, "{close} of 4 within 3 % or 2 ms");
}

#[test]
fn the_application_must_be_known() {
    let fixture = crate::support::fixture("forked-unknown.dat");
    let ran = schedviz(&["neighbours", fixture.to_str().expect("a path"), "--by", "application"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("the application is unknown"), "{}", ran.stderr);
}
