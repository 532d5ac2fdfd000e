//! Waiters that may not use the idle CPUs: against a second implementation of the rule, with lists and with records of
//! changes, and on recordings whose tasks were bound to CPUs.

use crate::conforms::conforms;
use crate::oracle::{OFFLINE, Slow};
use crate::support::{csv, events, fixture, fixtures_and_part, root, schedviz, scratch, unwrapped};
use parse::Trace;
use sched::affinity::AffinityRecords;
use sched::probe::Probe;
use sched::{Affinity, Cpu, CpuMask, CpuSet, EventKind, Pass, Pid, SchedEvent, SchedState, StateClass, Task};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use testkit::Simulation;
use why::Why;
use workcons::{Options, Waiters, WorkConservation};

/// The lists of each task, as sets of the standard library.
type Lists = BTreeMap<i32, Vec<BTreeSet<u32>>>;

/// The parents and the application, as the rule for tasks without a list needs them, and the sets by records.
#[derive(Default)]
struct Family {
    parents: BTreeMap<i32, i32>,
    root: Option<i32>,
    recorded: BTreeMap<i32, BTreeSet<u32>>,
    /// The trace has records, and nothing is lost: the first list of a task holds until its first record.
    has_records: bool,
}

impl Family {
    fn learn(&mut self, slow: &Slow, event: &SchedEvent) {
        match event.kind {
            EventKind::Probe { probe: Probe::Allows(pid, mask), .. } => {
                let mask = mask.expect("a set that fits");
                self.recorded.insert(pid.0, mask.cpus().map(|cpu| cpu.0).collect());
            }
            EventKind::Fork { parent, child, .. } => {
                self.parents.insert(child.0, parent.0);
                self.recorded.remove(&child.0);
                self.recorded.extend(self.recorded.get(&parent.0).cloned().map(|set| (child.0, set)));
            }
            EventKind::Exec { pid, old_pid, .. } => {
                if pid != old_pid {
                    self.parents.remove(&old_pid.0);
                    let taken = self.recorded.remove(&old_pid.0);
                    self.recorded.remove(&pid.0);
                    self.recorded.extend(taken.map(|set| (pid.0, set)));
                }
                if slow.is_application(pid.0) && self.root.is_none() {
                    self.root = Some(pid.0);
                }
            }
            EventKind::Switch { prev, state, .. } if state.class == StateClass::Dead => {
                self.parents.remove(&prev.pid.0);
                self.recorded.remove(&prev.pid.0);
            }
            _ => {}
        }
    }

    /// The CPUs that `pid` may use while it waits on `cpu`; nothing if no list counts.
    fn allowed(&self, lists: &Lists, slow: &Slow, pid: i32, cpu: u32) -> Option<BTreeSet<u32>> {
        let line = std::iter::successors(Some(pid), |pid| self.parents.get(pid).copied()).take(64);
        let first = line.clone().find_map(|pid| lists.get(&pid)?.first()).filter(|list| list.contains(&cpu));
        match self.recorded.get(&pid) {
            _ if !self.has_records => {}
            Some(set) => return Some(set.clone()),
            None if first.is_some() => return first.cloned(),
            None => {}
        }
        let root = self.root.filter(|_| slow.is_application(pid));
        let listed = line.chain(root).find(|pid| lists.contains_key(pid))?;
        let with: Vec<_> = lists[&listed].iter().filter(|list| list.contains(&cpu)).collect();
        (!with.is_empty()).then(|| with.into_iter().flatten().copied().collect())
    }
}

/// The task whose CPUs a record shows.
fn record_of(event: &SchedEvent) -> Option<Pid> {
    match event.kind {
        EventKind::Probe { probe: Probe::Allows(pid, _), .. } => Some(pid),
        _ => None,
    }
}

/// Time, capacity and threads, with each pair of a waiter and an idle CPU looked at.
fn slowly(events: &[SchedEvent], lists: &Lists) -> (u64, u64, u64) {
    let (sums, _) = slow_sums(events, lists);
    sums
}

/// The same, and the waiting and the idling in violation.
fn slow_sums(events: &[SchedEvent], lists: &Lists) -> ((u64, u64, u64), (u64, u64)) {
    let (mut sums, mut parts, mut last, mut amount) = ((0, 0, 0), (0, 0), events[0].ts, (0, 0, 0, 0));
    let has_records = events.iter().any(|event| record_of(event).is_some());
    let (mut family, mut limits) = (Family { has_records, ..Family::default() }, BTreeMap::new());
    Slow::walk(events, &mut |slow, event| {
        if let Some(event) = event {
            let ns = event.ts.since(last).0;
            sums.0 += if amount.0 > 0 { ns } else { 0 };
            sums.1 += ns * amount.0;
            sums.2 += ns * amount.1;
            parts.0 += ns * amount.2;
            parts.1 += ns * amount.3;
            last = event.ts;
            if event.kind != EventKind::Offline {
                family.learn(slow, event);
            }
        }
        let renewed = event.and_then(record_of).map(|pid| pid.0);
        limits.retain(|(pid, cpu), _| slow.waiting.get(pid) == Some(cpu) && renewed != Some(*pid));
        for (pid, cpu) in &slow.waiting {
            limits.entry((*pid, *cpu)).or_insert_with(|| family.allowed(lists, slow, *pid, *cpu));
        }
        let queued: BTreeSet<u32> = slow.waiting.values().copied().collect();
        let of =
            |is: fn(i32) -> bool| slow.current.iter().filter(move |(_, now)| now.is_some_and(is)).map(|(cpu, _)| *cpu);
        let idle: Vec<u32> = of(|pid| pid == 0).filter(|cpu| !queued.contains(cpu)).collect();
        let busy: Vec<u32> = of(|pid| pid != 0 && pid != OFFLINE).collect();
        let (mut used, mut over, mut waiters) = (BTreeSet::new(), BTreeSet::new(), 0);
        for (pid, cpu) in slow.waiting.iter().filter(|(_, cpu)| busy.contains(cpu)) {
            let limit = &limits[&(*pid, *cpu)];
            let usable: Vec<u32> =
                idle.iter().copied().filter(|cpu| limit.as_ref().is_none_or(|set| set.contains(cpu))).collect();
            if !usable.is_empty() {
                over.insert(*cpu);
                waiters += 1;
            }
            used.extend(usable);
        }
        let idle = used.len() as u64;
        amount = (idle.min(over.len() as u64), idle.min(waiters), waiters, idle);
    });
    (sums, parts)
}

/// Numbers by chance, each below the one that is asked with.
fn draws(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut chance = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move |n| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        chance % n
    }
}

/// The numbers of the tasks and of the CPUs of a trace.
fn tasks_and_cpus(events: &[SchedEvent]) -> (BTreeSet<i32>, BTreeSet<u32>) {
    let pids = events.iter().map(|event| event.pid.0).filter(|pid| *pid > 0).collect();
    (pids, events.iter().map(|event| event.cpu.0).collect())
}

/// The same events with records of the CPUs that living tasks may use, by chance: about one in eight events.
fn with_any_records(events: &[SchedEvent], seed: u64) -> Vec<SchedEvent> {
    let ((_, cpus), mut draw) = (tasks_and_cpus(events), draws(seed));
    let (mut all, mut living, mut begun) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for event in events {
        living.extend(Some(event.pid).filter(|pid| !pid.is_idle()));
        let chosen = living.iter().nth(draw(1 + living.len() as u64) as usize).copied();
        // The first event of a CPU shows whether it was offline.
        let is_event = !matches!(event.kind, EventKind::Lost { .. } | EventKind::Offline);
        let takes_records = is_event && !begun.insert(event.cpu);
        if let Some(pid) = chosen.filter(|_| takes_records && draw(8) == 0) {
            let chosen: Vec<Cpu> = cpus.iter().copied().filter(|_| draw(2) == 0).map(Cpu).collect();
            if !chosen.is_empty() {
                let probe = Probe::Allows(pid, CpuMask::of(chosen));
                all.push(SchedEvent { kind: EventKind::Probe { id: 997, probe }, ..*event });
            }
        }
        match event.kind {
            EventKind::Switch { prev, state, .. } if state.class == StateClass::Dead => drop(living.remove(&prev.pid)),
            EventKind::Exec { pid, old_pid, .. } if pid != old_pid => drop(living.remove(&old_pid)),
            _ => {}
        }
        all.push(*event);
    }
    all
}

/// Lists of some of the tasks, by chance: none, one or two.
fn any_lists(events: &[SchedEvent], seed: u64) -> Lists {
    let (pids, cpus) = tasks_and_cpus(events);
    let mut draw = draws(seed);
    let mut lists = Lists::new();
    for pid in pids {
        for _ in 0..draw(3) {
            let list: BTreeSet<u32> = cpus.iter().copied().filter(|_| draw(2) == 0).collect();
            if !list.is_empty() {
                lists.entry(pid).or_default().push(list);
            }
        }
    }
    lists
}

fn affinity(events: &[SchedEvent], lists: &Lists) -> Affinity {
    let mut affinity = Affinity::new(events.iter().map(|event| event.cpu));
    for (pid, lists) in lists {
        for (list, nth) in lists.iter().zip(0..) {
            let list = list.iter().map(|cpu| Cpu(*cpu)).collect::<CpuSet>();
            if nth == 0 { affinity.add_first(Pid(*pid), &list) } else { affinity.add(Pid(*pid), &list) }
        }
    }
    let has_records = events.iter().any(|event| record_of(event).is_some());
    if has_records { affinity.with_records(AffinityRecords::Changes(events[0].ts)) } else { affinity }
}

/// The figures of the waiters that may use an idle CPU, whatever they are called.
fn quickly(events: &[SchedEvent], affinity: Option<&Affinity>) -> (u64, u64, u64) {
    let everyone = |_: &Task, _: &SchedState| true;
    let options = Options { application: Some(&everyone), affinity, ..Options::default() };
    let pass = Pass::over(events).run(|| WorkConservation::new(&options)).unwrap_or_else(|never| match never {});
    let report = pass.output;
    let violation = report.application.expect("all tasks are chosen");
    let whole = report.window_ns.0 as f64 * report.cpus.observed as f64;
    (violation.ns, (violation.cpu_time_lost_percent * whole / 100.0).round() as u64, violation.thread_ns)
}

/// The violated time, the waiting and the idling in violation by `why`, of all tasks.
fn why(events: &[SchedEvent], affinity: &Affinity) -> (u64, u64, u64) {
    let everyone = |_: &Task, _: &SchedState| true;
    let waiters = Waiters::Application;
    let options = Options { application: Some(&everyone), affinity: Some(affinity), waiters, ..Options::default() };
    let pass = Pass::over(events).run(|| Why::new(&options)).unwrap_or_else(|never| match never {});
    let report = pass.output;
    let total = |rows: Option<why::Rows>| rows.expect("a table").total_ns.0;
    (report.violation_ns.expect("a violation").0, total(report.waiting), total(report.idling))
}

/// The violated time by `running-waiting`, with all tasks selected.
fn selected(events: &[SchedEvent], lists: &Lists) -> u64 {
    let everyone = |_: &Task, _: &SchedState| true;
    let cpus: Vec<Cpu> = tasks_and_cpus(events).1.into_iter().map(Cpu).collect();
    let (from, to) = (events[0].ts, events[events.len() - 1].ts);
    let options = running_waiting::Options {
        from,
        to,
        zero: from,
        panels: vec![running_waiting::Panel { name: String::new(), cpus: cpus.clone() }],
        cpus: cpus.into_iter().map(|cpu| (cpu, None)).collect(),
        all_cpus: Vec::new(),
        group_name: String::new(),
        per_cpu: false,
        tasks: Some(&everyone),
        which: "selected tasks",
        affinity: Some(Arc::new(affinity(events, lists))),
        queued: None,
    };
    let pass = Pass::over(events).run(|| running_waiting::RunningWaiting::new(&options));
    pass.unwrap_or_else(|never| match never {}).output.violated_ns.expect("a violation")
}

/// Compares both; returns the figures with the lists.
fn compare(name: &str, events: &[SchedEvent], lists: &Lists) -> (u64, u64, u64) {
    let affinity = affinity(events, lists);
    let quick = quickly(events, Some(&affinity));
    let (slow, (waiting, idling)) = slow_sums(events, lists);
    assert_eq!(why(events, &affinity), (slow.0, waiting, idling), "{name}: why");
    let near = |a: u64, b: u64| a.abs_diff(b) <= 1 + b / 1_000_000_000;
    assert_eq!((quick.0, quick.2), (slow.0, slow.2), "{name}");
    assert!(near(quick.1, slow.1), "{name}: capacity {} {}", quick.1, slow.1);
    quick
}

#[test]
fn a_second_implementation_agrees_on_simulated_runs() {
    let (mut runs, mut restricted) = (0, 0);
    for seed in crate::support::some_seeds(40, 120) {
        runs += 1;
        let sim = Simulation::any(seed, 2 + (seed % 6) as u32, 400);
        let lists = any_lists(&sim.events, seed);
        let figures = compare(&format!("seed {seed}"), &sim.events, &lists);
        assert_eq!(selected(&sim.events, &lists), figures.0, "seed {seed}: running-waiting");
        restricted += u32::from(figures.0 < quickly(&sim.events, None).0);
    }
    assert!(4 * restricted > runs, "{restricted} of {runs}");
}

/// Takes seconds: a recorded change overtakes a list of the machine file in few runs, which the last line asks for.
#[test]
fn a_second_implementation_agrees_where_changes_are_recorded() {
    let (mut runs, mut followed, mut overtaken) = (0, 0, 0);
    for seed in crate::support::some_seeds(40, 120) {
        runs += 1;
        let sim = Simulation::any(seed, 2 + (seed % 6) as u32, 400);
        let (events, lists) = (with_any_records(&sim.events, seed), any_lists(&sim.events, seed));
        let figures = compare(&format!("seed {seed}"), &events, &lists);
        assert_eq!(selected(&events, &lists), figures.0, "seed {seed}: running-waiting");
        followed += u32::from(figures != compare(&format!("seed {seed}, lists"), &sim.events, &lists));
        overtaken += u32::from(figures != compare(&format!("seed {seed}, records"), &events, &Lists::new()));
    }
    assert!(4 * followed > runs && 12 * overtaken > runs, "{followed} and {overtaken} of {runs}");
}

/// Takes seconds: the second implementation looks at every pair of CPUs, on events of real kernels, whose tasks move while they wait.
#[test]
fn a_second_implementation_agrees_on_recordings() {
    let mut compared = 0;
    for path in fixtures_and_part(3).into_iter().filter(|path| std::fs::metadata(path).is_ok_and(|m| m.len() < 100_000))
    {
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        // The rule is the same for every trace whose state is simple: nothing lost, and wakeups recorded.
        let simple = |events: &[SchedEvent]| {
            let any = |is: fn(&EventKind) -> bool| events.iter().any(|event| is(&event.kind));
            !any(|kind| matches!(kind, EventKind::Lost { .. })) && any(|kind| matches!(kind, EventKind::Wakeup { .. }))
        };
        if trace.has_time().is_err() || !simple(&events(&trace)) {
            continue;
        }
        let events = events(&trace);
        compare(&path.display().to_string(), &events, &any_lists(&events, 1 + compared));
        compared += 1;
    }
    assert!(compared >= 5, "{compared}");
}

/// The tasks of a trace by number, each with one of its names.
fn tasks(events: &[SchedEvent]) -> BTreeMap<i32, String> {
    let named = events.iter().flat_map(|event| match event.kind {
        EventKind::Switch { prev, next, .. } => vec![prev, next],
        EventKind::Waking { task, .. } | EventKind::Wakeup { task, .. } | EventKind::WakeupNew { task, .. } => {
            vec![task]
        }
        EventKind::Migrate { task, .. } => vec![task],
        _ => Vec::new(),
    });
    named.filter(|task| task.pid.0 > 0).map(|task| (task.pid.0, task.comm.to_string())).collect()
}

/// The lists of a machine file as sets, with the kernel threads that are bound to one CPU by their names.
fn lists_of(file: &str, tasks: &BTreeMap<i32, String>) -> Lists {
    let file: serde_json::Value = serde_json::from_str(file).expect("JSON");
    let mut lists = Lists::new();
    for (cpus, pids) in
        file["affinity"].as_array().expect("lists").iter().flat_map(|at| at["tasks"].as_object().expect("lists"))
    {
        let (from, to) = cpus.split_once('-').unwrap_or((cpus, cpus));
        let set: BTreeSet<u32> = (from.parse().expect("a CPU")..=to.parse().expect("a CPU")).collect();
        for pid in pids.as_array().expect("numbers") {
            lists.entry(pid.as_i64().expect("a number") as i32).or_default().push(set.clone());
        }
    }
    for (pid, name) in tasks {
        let number = ["kworker/", "migration/", "ksoftirqd/", "cpuhp/"].iter().find_map(|kind| name.strip_prefix(kind));
        if let Some(Ok(cpu)) = number.map(|number| number.split(':').next().expect("a part").parse()) {
            lists.insert(*pid, vec![BTreeSet::from([cpu])]);
        }
    }
    lists
}

/// Measures a recording with lists beside it, in which `@` stands for all tasks that they do not name; returns the violation
/// in percent with them and without, after a comparison with the second implementation.
fn measured(recording: &Path, lists: &str) -> (f64, f64) {
    let folder = scratch(&format!("affinity-{}", recording.file_stem().expect("a name").display()));
    let trace = folder.join("run.dat");
    std::fs::copy(recording, &trace).expect("copied");
    let events = events(&Trace::open(&trace, parse::Options::default()).expect("a recording"));
    let tasks = tasks(&events);
    let others = tasks.keys().map(i32::to_string).filter(|pid| !lists.contains(pid.as_str())).collect::<Vec<_>>();
    let lists = lists.replace('@', &others.join(","));
    let file =
        format!(r#"{{"schema":"schedviz/machine/1","kernel":{{}},"cpus":{{}},"scheduler":{{}},"affinity":[{lists}]}}"#);
    let document = || -> serde_json::Value {
        let out = schedviz(&["workcons", trace.to_str().expect("UTF-8"), "--json"]).success().text();
        let document = serde_json::from_str(&out).expect("JSON");
        conforms(&document, &schema(), "workcons");
        document
    };
    let percent = |document: &serde_json::Value| document["runs"][0]["movable"]["percent"].as_f64().expect("a number");
    let without = document();
    let warned = without["runs"][0]["confined_percent"].as_f64().expect("a warning");
    assert!(warned > 50.0, "{warned}");
    std::fs::write(folder.join("run.machine.json"), &file).expect("written");
    let with = document();
    assert!(with["runs"][0]["confined_percent"].is_null());
    let (time, ..) = slowly(&events, &lists_of(&file, &tasks));
    let slow = 100.0 * time as f64 / with["runs"][0]["window_ns"].as_f64().expect("a number");
    assert!((percent(&with) - slow).abs() < 1e-6, "{}: {slow}", percent(&with));
    // The tables of why, and the exported ones, follow the same rule.
    let why = schedviz(&["why", trace.to_str().expect("UTF-8"), "--json"]).success().text();
    let why: serde_json::Value = serde_json::from_str(&why).expect("JSON");
    assert_eq!(why["runs"][0]["violation_ns"], with["runs"][0]["movable"]["ns"]);
    let (_, (waiting, idling)) = slow_sums(&events, &lists_of(&file, &tasks));
    let total = |table: &str| why["runs"][0][table]["total_ns"].as_u64().expect("a sum");
    assert_eq!((total("waiting"), total("idling")), (waiting, idling));
    let run = ["export", trace.to_str().expect("UTF-8"), "--csv", "-", "--tables", "run", "-q"];
    let run = csv(&schedviz(&run).success().text());
    let exported: f64 = run[0]["violation"].parse().expect("a number");
    assert!((exported - percent(&with)).abs() < 1e-6, "{exported}, not {}", percent(&with));
    (percent(&with), percent(&without))
}

fn schema() -> serde_json::Value {
    let text = std::fs::read_to_string(root().join("docs/schemas/workcons-2.json")).expect("a schema");
    serde_json::from_str(&text).expect("JSON")
}

/// A recording below the directory in `SCHEDVIZ_TRACES`, if it is there.
fn extra(name: &str) -> Option<PathBuf> {
    let path = Path::new(&std::env::var_os("SCHEDVIZ_TRACES")?).join("extra").join(name);
    path.is_file().then_some(path)
}

/// Ten soakers, one bound to an isolated CPU: the others may not use CPUs 6 and 7.
const ISOLATED: &str = r#"{"at":"start","tasks":{"0-5":[@]}},{"at":"during","tasks":{"6":[351]}}"#;

/// An isolated partition has CPUs 0 and 1: the shell joins it at the end, its children before do not.
const PARTITION: &str = r#"{"at":"start","tasks":{"2-5":[@]}},{"at":"during","tasks":{"0-1":[429],"2-5":[429]}}"#;

/// Two tasks bound to CPU 1, one to CPUs 4 to 7, which is bound to CPU 7 later, and one that is free. Without its list that one may be bound.
const AFFINE: &str = r#"{"at":"start","tasks":{"0-7":[1167],"4-7":[83]}},{"at":"during","tasks":{"1":[1169,1170],"4-7":[1171],"0-7":[1168]}},
    {"at":"end","tasks":{"7":[1171]}}"#;

/// Five soakers in a cgroup on CPUs 0 and 1, which is moved to CPUs 4 to 7.
const CPUSET: &str = r#"{"at":"during","tasks":{"0-1":[1208,1211,1212,1213,1214,1215]}},
    {"at":"end","tasks":{"4-7":[1208,1211,1212,1213,1214,1215]}}"#;

#[test]
fn tasks_that_were_bound_to_cpus_come_out_right() {
    let close = |(with, without): (f64, f64), expected: (f64, f64)| {
        assert!((with - expected.0).abs() < 0.01 && (without - expected.1).abs() < 0.01, "{with} {without}");
    };
    close(measured(&fixture("isolated.dat"), ISOLATED), (1.86, 79.63));
    close(measured(&fixture("cgroup-cpuset.dat"), CPUSET), (1.19, 81.04));
    let more = [
        ("linux-6.12-c8-n2-smt-isolated/cpuset-partition.dat", PARTITION, (0.21, 83.83)),
        ("linux-6.12-c8-n2/batch-affine.dat", AFFINE, (31.77, 94.38)),
    ];
    for (name, lists, expected) in more {
        if let Some(path) = extra(name) {
            close(measured(&path, lists), expected);
        }
    }
}

/// A machine file has no list of tasks that were born and bound while the tasks were listed.
#[test]
fn tasks_that_no_list_has_may_be_bound() {
    let folder = scratch("affinity-unlisted");
    let trace = folder.join("run.dat");
    std::fs::copy(fixture("isolated.dat"), &trace).expect("copied");
    let answer = |command: &str| -> serde_json::Value {
        let out = schedviz(&[command, trace.to_str().expect("UTF-8"), "--json"]).success().text();
        serde_json::from_str(&out).expect("JSON")
    };
    let measured = || answer("workcons")["runs"][0].take();
    // The sentences on waiting beside idle CPUs.
    let findings = || -> Vec<[String; 2]> {
        let found = answer("findings")["findings"].take();
        let word = |one: &serde_json::Value, key: &str| one[key].as_str().expect("a word").to_owned();
        let found =
            found.as_array().expect("findings").iter().map(|one| [word(one, "certainty"), word(one, "sentence")]);
        found.filter(|[_, sentence]| sentence.contains("seem bound") || sentence.contains("while CPUs idled")).collect()
    };
    let listed = |lists: &str| {
        let file = format!(
            r#"{{"schema":"schedviz/machine/1","kernel":{{}},"cpus":{{}},"scheduler":{{}},"affinity":[{{"at":"start","tasks":{{{lists}}}}}]}}"#
        );
        std::fs::write(folder.join("run.machine.json"), file).expect("written");
    };
    let hint = |run: &serde_json::Value| (run["confined_percent"].clone(), run["confined_to"].clone());
    let (without, found) = (hint(&measured()), findings());
    assert!(
        without.0.as_f64() > Some(50.0) && found[0][0] == "possible" && found[0][1].contains("seem bound"),
        "{without:?} {found:?}"
    );
    // One of the first tasks of the machine is bound, which has nothing to do with the soakers.
    listed(r#""1":[1]"#);
    assert_eq!((hint(&measured()), findings()), (without, found));
    // Its own list shows that a task is not bound.
    let events = events(&Trace::open(&trace, parse::Options::default()).expect("a recording"));
    let all: Vec<String> = tasks(&events).keys().filter(|pid| **pid != 1).map(i32::to_string).collect();
    listed(&format!(r#""1":[1],"0-7":[{}]"#, all.join(",")));
    assert_eq!(hint(&measured()), (serde_json::Value::Null, serde_json::Value::Null));
    let found = findings();
    assert!(found.len() == 1 && found[0][1].contains("while CPUs idled"), "{found:?}");
}

/// Three tasks that taskset bound to CPU 1, to CPUs 2 and 3 a second later, and to none of four after another one.
#[test]
fn tasks_that_are_bound_while_they_wait_are_followed() {
    let folder = scratch("affinity-rebound");
    let trace = folder.join("rebound.dat");
    std::fs::copy(fixture("rebound-6.12.dat"), &trace).expect("copied");
    let events = events(&Trace::open(&trace, parse::Options::default()).expect("a recording"));
    let mut sets: BTreeMap<i32, Vec<Vec<u32>>> = BTreeMap::new();
    for event in &events {
        if let EventKind::Probe { probe: Probe::Allows(pid, mask), .. } = event.kind {
            let cpus = mask.expect("a set").cpus().map(|cpu| cpu.0).collect();
            sets.entry(pid.0).or_default().push(cpus);
        }
    }
    let bound = [vec![1], vec![2, 3], vec![0, 1, 2, 3]];
    assert_eq!(sets.values().collect::<Vec<_>>(), [&bound; 3]);
    let percent = |kind: &str| {
        let out = schedviz(&["workcons", trace.to_str().expect("UTF-8"), "--json"]).success().text();
        let document: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        conforms(&document, &schema(), "workcons");
        assert!(document["runs"][0]["movable"]["ns"].as_u64() > Some(0));
        document["runs"][0][kind]["percent"].as_f64().expect("a number")
    };
    let slow = |lists: &Lists| {
        let (time, ..) = slowly(&events, lists);
        100.0 * time as f64 / events[events.len() - 1].ts.since(events[0].ts).0 as f64
    };
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
    // The records alone, and with the lists of the start and the end: all CPUs for each task but kernel threads.
    let tasks = tasks(&events);
    near(percent("movable"), slow(&lists_of(r#"{"affinity":[]}"#, &tasks)));
    let file = std::fs::read_to_string(fixture("rebound-6.12.machine.json")).expect("a machine file");
    std::fs::write(folder.join("rebound.machine.json"), &file).expect("written");
    near(percent("movable"), slow(&lists_of(&file, &tasks)));
    assert!((percent("movable") - 4.23).abs() < 0.01 && (percent("all") - 87.55).abs() < 0.01);
}

#[test]
fn the_text_warns_of_tasks_that_may_be_bound() {
    let warning = |on: &str| {
        format!(
            "the waiting tasks were never queued on the idle CPUs, but on {on} alone: these tasks may be bound to other CPUs"
        )
    };
    let text = |name: &str| {
        let trace = fixture(name);
        unwrapped(&schedviz(&["workcons", trace.to_str().expect("UTF-8")]).success().text())
    };
    assert!(text("isolated.dat").contains(&warning("CPUs 0-5")));
    assert!(text("affine.dat").contains(&warning("CPU 1")));
    // Here tasks move everywhere.
    assert!(!text("hackbench.dat").contains("may be bound"));
}
