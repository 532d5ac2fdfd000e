use crate::{Claim, ShareMeter, SharesReport, WeightTree, divide};
use machine::Machine;
use membership::Cgroups;
use sched::{Comm, Cpu, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts};

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
