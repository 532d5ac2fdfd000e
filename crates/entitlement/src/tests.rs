use crate::{Claim, ShareMeter, SharesReport, WeightTree, divide};
use machine::Machine;
use membership::Cgroups;
use sched::probe::{CgroupId, Probe, Throttle};
use sched::{
    Analysis, Comm, Cpu, Current, EventKind, Pass, Pid, PrevState, SchedEvent, SchedState, TaskRef, TaskState, Ts,
    Window,
};

fn task(pid: i32) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"t") }
}

fn machine(cgroups: &str) -> Machine {
    let text = format!(
        r#"{{"schema":"schedviz/machine/1","kernel":{{}},"cpus":{{}},"scheduler":{{}},"cgroups":[{cgroups}]}}"#
    );
    Machine::parse(&text).expect("a machine file")
}

fn shares(events: &[SchedEvent], machine: &Machine, tasks: &[(Pid, &str)]) -> SharesReport {
    let cgroups = Cgroups::listed(tasks);
    let tree = WeightTree::of(Some(machine), &cgroups).expect("weights");
    Pass::over(events).run(|| ShareMeter::new(&tree, &cgroups)).unwrap_or_else(|never| match never {}).output
}

/// One CPU, on which the tasks take turns of the given lengths, each waiting all the time: the first one runs from the start on.
fn turns(turns: &[(i32, i64)]) -> Vec<SchedEvent> {
    let at = |ns: i64, pid: i32, kind| SchedEvent { ts: Ts(ns), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
    let switch = |ns, prev: i32, next: i32| {
        at(ns, prev, EventKind::Switch { prev: task(prev), state: PrevState::PREEMPTED, next: task(next) })
    };
    let mut pids: Vec<i32> = turns.iter().map(|(pid, _)| *pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let mut events = vec![switch(0, 0, turns[0].0)];
    events.extend(
        pids.iter()
            .filter(|pid| **pid != turns[0].0)
            .map(|pid| at(0, turns[0].0, EventKind::WakeupNew { task: task(*pid), target: Cpu(0) })),
    );
    let mut now = 0;
    for pair in turns.windows(2) {
        now += pair[0].1;
        events.push(switch(now, pair[0].0, pair[1].0));
    }
    let (last, length) = turns[turns.len() - 1];
    events.push(at(now + length, last, EventKind::Other { id: 1 }));
    events
}

const MS: i64 = 1_000_000;

#[test]
fn cpus_are_divided_by_weight_and_by_need() {
    let claim = |weight: f64, most: f64| Claim { weight, most };
    assert_eq!(divide(3.0, &[claim(100.0, 9.0), claim(200.0, 9.0)]), [1.0, 2.0]);
    // The heavy one can use one CPU alone; the others have the rest by weight.
    assert_eq!(divide(4.0, &[claim(10_000.0, 1.0), claim(100.0, 9.0), claim(200.0, 9.0)]), [1.0, 1.0, 2.0]);
    assert_eq!(divide(4.0, &[claim(5.0, 1.0), claim(1.0, 2.0)]), [1.0, 2.0]);
    assert_eq!(divide(0.0, &[claim(5.0, 1.0)]), [0.0]);
    assert_eq!(divide(1.0, &[]), [0.0; 0]);
}

/// Weights 100 and 300 in a group beside a task of the root, which weighs as much as the group: half of the CPU for that, an eighth and three eighths
/// for the two. Each runs for a third of the time.
#[test]
fn weights_go_through_the_tree() {
    let cgroups = r#"{"path":"/g","controls_cpu":true},{"path":"/g/a","controls_cpu":true},
        {"path":"/g/b","controls_cpu":true,"cpu_weight":300},{"path":"/g/b/leaf"}"#;
    let machine = machine(cgroups);
    let one = [(1, 40 * MS), (2, 40 * MS), (3, 40 * MS)];
    let events = turns(&one.repeat(10));
    let found = shares(&events, &machine, &[(Pid(1), "/g/a"), (Pid(2), "/g/b/leaf"), (Pid(3), "/")]);
    let of = |path: &str| found.groups.iter().find(|group| group.cgroup == path).expect("a group");
    let ms = |path: &str| (of(path).entitled_ns.0 / 1_000_000, of(path).got_ns.0 / 1_000_000);
    assert_eq!((ms("/g/a"), ms("/g/b"), ms("/g"), ms("/")), ((150, 400), (450, 400), (600, 800), (1200, 1200)));
    assert_eq!((of("/g/b").weight, of("/g/a").weight, of("/").weight), (Some(300), Some(100), None));
    assert_eq!(of("/g/b").runnable_ns.0, 1_200_000_000);
    let seconds: Vec<(u64, u64)> = of("/g/b").seconds.iter().map(|of| (of.second, of.entitled_ns.0)).collect();
    assert_eq!(seconds, [(0, 375_000_000), (1, 75_000_000)]);
    assert_eq!(found.groups.iter().map(|group| group.longest_below_half_ns.0).max(), Some(0));
}

/// Three tasks of a group with a quota of 40 ms in 100 ms, of which the trace does not show that they are throttled, beside one task of another group. The
/// limit is below a group without one.
#[test]
fn a_quota_limits_the_share() {
    let machine = machine(
        r#"{"path":"/free","controls_cpu":true},{"path":"/slice","controls_cpu":true},
           {"path":"/slice/limited","controls_cpu":true,"cpu_max":"40000 100000"}"#,
    );
    let ran = [(1, 40 * MS), (2, 40 * MS), (3, 40 * MS), (4, 180 * MS)];
    let limited =
        [(Pid(1), "/slice/limited"), (Pid(2), "/slice/limited"), (Pid(3), "/slice/limited"), (Pid(4), "/free")];
    let events = turns(&ran);
    let of = |events: &[SchedEvent], path: &str| {
        let found = shares(events, &machine, &limited);
        let group = found.groups.into_iter().find(|group| group.cgroup == path).expect("a group");
        (group.entitled_ns.0 / 1_000_000, group.got_ns.0 / 1_000_000)
    };
    // Of 300 ms: two fifths, and what that leaves.
    let found = ["/slice/limited", "/slice", "/free"].map(|path| of(&events, path));
    assert_eq!(found, [(120, 120), (120, 120), (180, 180)]);
    // Records show when tasks are throttled: whenever they are not, they compete by weight.
    let throttle = Throttle { cpu: Some(Cpu(0)), cgroup: Some(CgroupId::new(7)), takes_queue: true };
    let kind = EventKind::Probe { id: 2, probe: Probe::Throttles(throttle) };
    let mut recorded = vec![SchedEvent { ts: Ts(0), cpu: Cpu(0), pid: Pid(1), flags: 0, kind }];
    recorded.extend(&events);
    let found = ["/slice/limited", "/slice", "/free"].map(|path| of(&recorded, path));
    assert_eq!(found, [(150, 120), (150, 120), (150, 180)]);
}

/// Two equal tasks of a group, one of which does not run for half a second.
#[test]
fn a_starved_task_is_below_half_of_its_equals() {
    let machine = machine(r#"{"path":"/g","controls_cpu":true},{"path":"/h","controls_cpu":true}"#);
    let mut all = vec![(1, 500 * MS)];
    all.extend([(2, 50 * MS), (1, 50 * MS)].repeat(5));
    let found = shares(&turns(&all), &machine, &[(Pid(1), "/g"), (Pid(2), "/h")]);
    let of = |path: &str| found.groups.iter().find(|group| group.cgroup == path).expect("a group");
    assert_eq!((of("/h").longest_below_half_ns.0, of("/h").below_half_from_ns.map(|ns| ns.0)), (500_000_000, Some(0)));
    assert_eq!((of("/g").got_percent, of("/h").got_percent), (Some(150.0), Some(50.0)));
    let together = shares(&turns(&all), &machine, &[(Pid(1), "/g"), (Pid(2), "/g")]);
    let equals = together.groups.iter().find_map(|group| group.equal_tasks.clone()).expect("equal tasks");
    assert_eq!((equals.tasks, equals.least_percent, equals.most_percent), (2, 50.0, 150.0));
    assert_eq!((equals.least_pid, equals.most_pid), (Pid(2), Pid(1)));
}

#[test]
fn weights_are_unknown_without_the_controller() {
    let cgroups = Cgroups::listed(&[(Pid(1), "/g")]);
    assert!(WeightTree::of(None, &cgroups).is_err());
    assert!(WeightTree::of(Some(&machine(r#"{"path":"/g"}"#)), &cgroups).is_err());
}

/// The groups of the brute force, with the weight in the unit of a task: the root, `/g`, and two below that.
const TREE: [(&str, f64); 4] = [("/", 1024.0), ("/g", 2048.0), ("/g/a", 1024.0), ("/g/b", 3072.0)];

/// The group of a task, as a place in [`TREE`].
fn place(pid: Pid) -> usize {
    [0, 2, 3, 3, 1][pid.0.unsigned_abs() as usize % 5]
}

/// CPU time by entitlement and by running, and the time with runnable tasks, from all tasks behind every event.
#[derive(Default)]
struct Dividing {
    since: Ts,
    /// The CPUs to which each group is entitled, and its runnable and running tasks.
    now: [(f64, u32, u32); 4],
    sums: [(f64, u64, u64); 4],
}

/// The share of each competitor: the level of `CPUs / weight` up to which all fill, found by halving.
fn filled(cpus: f64, claims: &[(f64, f64)]) -> Vec<f64> {
    let at = |level: f64| claims.iter().map(move |(weight, most)| (level * weight).min(*most));
    let all: f64 = claims.iter().map(|(_, most)| most).sum();
    if all <= cpus {
        return claims.iter().map(|(_, most)| *most).collect();
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if at(middle).sum::<f64>() < cpus { low = middle } else { high = middle }
    }
    at(low).collect()
}

impl Dividing {
    fn look(&mut self, state: &SchedState) {
        let (mut own, mut runs, mut privileged) = ([0_u32; 4], [0_u32; 4], 0);
        for task in state.living().filter(|task| !task.pid.is_idle()) {
            let is_running = match task.state {
                TaskState::Running(_) => true,
                TaskState::Waiting(cpu) if state.is_observed(cpu) => false,
                _ => continue,
            };
            if task.known_prio().is_some_and(|prio| prio < 100) {
                privileged += u32::from(is_running);
                continue;
            }
            own[place(task.pid)] += 1;
            runs[place(task.pid)] += u32::from(is_running);
        }
        let cpus = state.observed().filter(|cpu| state.current(*cpu) != Current::Offline).count() as u32 - privileged;
        let with_below = |of: [u32; 4]| [of.iter().sum(), of[1] + of[2] + of[3], of[2], of[3]];
        let (runnable, running): ([u32; 4], [u32; 4]) = (with_below(own), with_below(runs));
        let mut rates = [f64::from(runnable[0].min(cpus)), 0.0, 0.0, 0.0];
        for (above, below) in [(0, 1..2), (1, 2..4)] {
            let tasks = std::iter::repeat_n((1024.0, 1.0), own[above] as usize);
            let groups = below.clone().map(|at| (TREE[at].1, f64::from(runnable[at])));
            let shares = filled(rates[above], &tasks.chain(groups).collect::<Vec<_>>());
            below.zip(&shares[own[above] as usize..]).for_each(|(at, share)| rates[at] = *share);
        }
        self.now = std::array::from_fn(|at| (rates[at], runnable[at], running[at]));
    }

    fn pass(&mut self, ts: Ts) {
        let ns = ts.since(self.since).0;
        self.since = ts;
        for ((rate, runnable, running), sums) in self.now.iter().zip(&mut self.sums) {
            if *runnable > 0 {
                *sums = (sums.0 + rate * ns as f64, sums.1 + u64::from(*running) * ns, sums.2 + ns);
            }
        }
    }
}

impl Analysis for Dividing {
    type Output = [(f64, u64, u64); 4];

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.since = start;
        self.look(state);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.pass(event.ts);
        self.look(state);
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> Self::Output {
        self.pass(end);
        self.sums
    }
}

#[test]
fn shares_are_those_of_every_instant() {
    let machine = machine(
        r#"{"path":"/g","controls_cpu":true,"cpu_weight":200},{"path":"/g/a","controls_cpu":true},
           {"path":"/g/b","controls_cpu":true,"cpu_weight":300}"#,
    );
    let tasks: Vec<(Pid, &str)> = (1..2_000).map(|pid| (Pid(pid), TREE[place(Pid(pid))].0)).collect();
    let cgroups = Cgroups::listed(&tasks);
    let tree = WeightTree::of(Some(&machine), &cgroups).expect("weights");
    let mut compared = 0;
    for seed in 0..20 {
        let events = testkit::Simulation::balanced(seed, 1 + (seed % 5) as u32, 400).events;
        let pass = Pass::over(events.as_slice()).run(|| (ShareMeter::new(&tree, &cgroups), Dividing::default()));
        let (report, sums) = pass.unwrap_or_else(|never| match never {}).output;
        for ((path, _), (entitled, got, runnable)) in TREE.iter().zip(sums) {
            let Some(group) = report.groups.iter().find(|group| group.cgroup == *path) else {
                assert_eq!(runnable, 0, "seed {seed}: {path}");
                continue;
            };
            assert_eq!((group.got_ns.0, group.runnable_ns.0), (got, runnable), "seed {seed}: {path}");
            let near = (group.entitled_ns.0 as f64 - entitled).abs() <= 1.0 + entitled * 1e-9;
            assert!(near, "seed {seed}: {path}: {} {entitled}", group.entitled_ns.0);
            compared += usize::from(entitled > 0.0);
        }
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn shares_are_the_same_in_pieces() {
    let machine = machine(
        r#"{"path":"/a","controls_cpu":true,"cpu_weight":300},{"path":"/b","controls_cpu":true,"cpu_weight":50},
           {"path":"/a/c","controls_cpu":true,"cpu_max":"40000 100000"}"#,
    );
    let (mut sum, mut entitled) = (testkit::PieceTally::default(), 0);
    for seed in 0..12 {
        let simulation = testkit::Simulation::any(seed, 1 + (seed % 6) as u32, 900);
        let events = if seed % 2 == 0 { simulation.lossy(seed).0 } else { simulation.events };
        let events = if seed % 3 == 0 { testkit::with_throttling(&events, seed) } else { events };
        let from = events.get(events.len() / 3).map(|event| event.ts);
        let path = |nth: usize, pid: Pid| ["/a", "/b", "/a/c"].get((nth + pid.0 as usize) % 4).copied();
        let moved = events.iter().enumerate().step_by(17);
        let moves: Vec<_> = moved.map(|(nth, event)| (event.ts, event.pid, path(nth, event.pid))).collect();
        let cgroups = Cgroups::of_moves(&moves);
        let tree = WeightTree::of(Some(&machine), &cgroups).expect("weights");
        for window in [Window::default(), Window { from, to: None }] {
            let meter = || ShareMeter::new(&tree, &cgroups);
            let show = |found: &SharesReport| format!("{found:?}");
            let lengths = [1 + seed as usize % 3, 40, 333];
            sum += testkit::in_pieces(&mut events.as_slice(), window, &lengths, meter, show);
            let found = Pass::over(events.as_slice()).window(window).run(meter).unwrap_or_else(|never| match never {});
            entitled += found.output.groups.iter().filter(|group| group.entitled_ns.0 > 0).count();
        }
    }
    assert!(sum.joined == sum.pieces && sum.pieces > 1_000 && entitled > 50, "{sum:?}, {entitled} groups");
}
