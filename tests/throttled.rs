//! Bandwidth control, as the probes on it show it.

use crate::support::{fixture, schedviz, scratch, unwrapped};
use machine::Machine;
use parse::{Options, Trace};
use sched::probe::{CgroupId, Probe, Throttle};
use sched::{Analysis, Comm, Cpu, Current, EventKind, Pass, Pid, PrevState, SchedEvent, SchedState, TaskRef, Ts};
use std::collections::BTreeMap;

#[test]
fn throttled_time_is_that_of_the_kernel_by_cpu() {
    let trace = fixture("cgroup-cpumax.dat");
    let trace = trace.to_str().expect("UTF-8");
    let json = schedviz(&["workcons", trace, "--json"]).success().text();
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let throttled = document["runs"][0]["coverage"]["throttled"].as_array().expect("CPUs");
    let sum = |field: &str| throttled.iter().map(|cpu| cpu[field].as_u64().expect("a number")).sum::<u64>();
    // Counted by another program from the text of trace-cmd report: 2,795,248,880 ns in 52 times, and three times that go on
    // at the end of the trace.
    assert_eq!((sum("ns"), sum("times"), sum("without_end")), (3_075_238_027, 52, 3));
    // The cgroup's cpu.stat, read before the end of the trace, has throttled_usec 2908550, those three included.
    assert!((2_795_248_880..sum("ns")).contains(&2_908_550_000));
    let text = unwrapped(&schedviz(&["workcons", trace]).success().text());
    assert!(
        text.contains(
            "throttled CPUs 0,2,4-6 52 times and 3 times without an end: a limit held for 3.075 s of CPU time; "
        ),
        "{text}"
    );
    let without = schedviz(&["workcons", fixture("hackbench.dat").to_str().expect("UTF-8"), "--json"]).success().text();
    assert!(!without.contains("\"throttled\""));
}

#[test]
fn the_kernels_counters_stand_beside_the_times_of_cpus_and_tasks() {
    let trace = fixture("throttled-6.12.dat");
    let trace = trace.to_str().expect("UTF-8");
    let trust = |window: &[&str]| {
        let json = schedviz(&[&["workcons", trace, "--json", "-q"], window].concat()).success().text();
        serde_json::from_str::<serde_json::Value>(&json).expect("JSON")["runs"][0]["coverage"].clone()
    };
    let whole = trust(&[]);
    // throttled_usec of /limited in the machine file: 6,147,707 at the start and 21,496,664 at the end.
    let counted = serde_json::json!([{ "path": "/limited", "ns": 15_348_957_000_u64 }]);
    assert_eq!(whole["kernel_throttled"], counted, "{whole}");
    let sum = |field: &str| {
        let cpus = whole["throttled"].as_array().expect("CPUs");
        cpus.iter().map(|cpu| cpu[field].as_u64().expect("a number")).sum::<u64>()
    };
    // The time of CPUs has the times that go on at the end as well, which the kernel counts when they end.
    assert!(sum("without_end") == 4 && sum("ns") > 15_348_957_000, "{whole}");
    assert!(whole["throttled_task_ns"].as_u64().is_some_and(|ns| ns > sum("ns")), "{whole}");
    assert!(trust(&["--max", "1"]).get("kernel_throttled").is_none(), "the counters are of the whole recording");
    let text = unwrapped(&schedviz(&["workcons", trace, "-q"]).success().text());
    assert!(
        text.contains("until 6.17 the time of CPUs, by limit, without times that have no end): /limited 15.349 s"),
        "{text}"
    );
}

/// The time that each CPU has a throttled task, and the time in violation if throttled tasks count as waiting and if not.
#[derive(Default)]
struct Measured {
    throttled: BTreeMap<Cpu, u64>,
    if_waiting: u64,
    violated: u64,
    /// The time of tasks that wait on overloaded CPUs in violation.
    waiting: u64,
    last: Ts,
    /// The state until the next event.
    now: (Vec<Cpu>, bool, bool, u64),
}

impl Measured {
    fn pass(&mut self, ts: Ts) {
        let ns = ts.since(self.last).0;
        self.last = ts;
        let (throttled, if_waiting, violated, waiting) = &self.now;
        throttled.iter().for_each(|cpu| *self.throttled.entry(*cpu).or_default() += ns);
        self.if_waiting += ns * u64::from(*if_waiting);
        self.violated += ns * u64::from(*violated);
        self.waiting += ns * waiting * u64::from(*violated);
    }
}

impl Analysis for Measured {
    type Output = Measured;

    fn begin(&mut self, start: Ts, _: &SchedState) {
        self.last = start;
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.pass(event.ts);
        let violated = |queued: &dyn Fn(Cpu) -> usize| {
            let is = |current: fn(Current) -> bool, waits: bool| {
                state.observed().any(|cpu| current(state.current(cpu)) && (queued(cpu) > 0) == waits)
            };
            is(|current| current == Current::Idle, false) && is(|current| matches!(current, Current::Task(_)), true)
        };
        let throttled = |cpu: Cpu| state.throttled(cpu).count();
        let waiting = |cpu: Cpu| state.waiting(cpu).count();
        self.now = (
            state.observed().filter(|cpu| throttled(*cpu) > 0).collect(),
            violated(&|cpu| waiting(cpu) + throttled(cpu)),
            violated(&waiting),
            state.observed().filter(|cpu| state.running(*cpu).is_some()).map(|cpu| waiting(cpu) as u64).sum(),
        );
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> Measured {
        self.pass(end);
        self
    }
}

/// The cgroups of the tasks that the machine file lists.
fn groups() -> Vec<(Pid, CgroupId)> {
    let machine = Machine::open(&fixture("throttled-6.12.machine.json")).expect("a machine file");
    machine.groups().collect()
}

/// Measures the recording with these cgroups of tasks at the start.
fn measured(groups: Vec<(Pid, CgroupId)>) -> Measured {
    let options = Options { threads: 1, ..Options::default() };
    let mut trace = Trace::open(&fixture("throttled-6.12.dat"), options).expect("a trace");
    trace.set_groups(groups);
    Pass::over(trace.events().expect("a clock")).run(Measured::default).expect("events").output
}

#[test]
fn throttled_tasks_do_not_wait() {
    let path = fixture("throttled-6.12.dat");
    let Measured { throttled, if_waiting, violated, .. } = measured(groups());
    let json = schedviz(&["workcons", path.to_str().expect("UTF-8"), "--waiters", "all", "--json"]).success().text();
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let run = &document["runs"][0];
    assert_eq!(run["violation"]["ns"], violated);
    assert!(if_waiting > 2 * violated, "{if_waiting} and {violated} ns");
    // The cgroup's cpu.stat counts the time from throttling with a task in the queue to the end. The recording begins and ends within
    // the time between its two readings.
    let by_kernel = 1000 * (21_496_664_u64 - 6_147_707);
    let by_state: u64 = throttled.values().sum();
    assert!((0.95..1.05).contains(&(by_state as f64 / by_kernel as f64)), "{by_state} of {by_kernel} ns");
    let trust = &run["coverage"];
    let cgroup = &trust["throttled_cgroups"][0];
    assert_eq!((&cgroup["path"], &cgroup["id"]), (&"/limited/inner".into(), &51.into()));
    assert_eq!(cgroup["ns"], trust["throttled_task_ns"]);
    // The kernel takes throttled tasks from its run queues: the lengths agree, and no task ran while it was throttled.
    assert_eq!((&trust["run_queue_lengths"]["shorter"], &trust["run_queue_lengths"]["longer"]), (&0.into(), &0.into()));
    assert!(!json.contains("unseen-unthrottle"));
}

#[test]
fn missed_hits_of_probes_are_named() {
    let folder = scratch("missed-probes");
    std::fs::copy(fixture("throttled-6.12.dat"), folder.join("t.dat")).expect("copied");
    let text = std::fs::read_to_string(fixture("throttled-6.12.machine.json")).expect("a machine file");
    let mut machine: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let many = (1..12_u64).map(|n| (format!("p{n}"), serde_json::Value::from(n)));
    machine["missed_probes"] = [("unthrottle".to_owned(), 20.into())].into_iter().chain(many).collect();
    std::fs::write(folder.join("t.machine.json"), machine.to_string()).expect("written");
    let trace = folder.join("t.dat");
    let ran = schedviz(&["workcons", trace.to_str().expect("UTF-8"), "--json"]).success();
    let warned = unwrapped(&ran.stderr);
    assert!(warned.contains("incomplete: 86 hits of probes without a record"), "{warned}");
    assert!(warned.contains("[unthrottle 20, p11 11, p10 10, p9 9, p8 8, p7 7, p6 6, p5 5, …]"), "{warned}");
    assert!(ran.text().contains("\"missed-probes\""));
    // A part has the same; an anonymous one has no name.
    let part = folder.join("part.dat");
    let (from, to) = (trace.to_str().expect("UTF-8"), part.to_str().expect("UTF-8"));
    schedviz(&["cut", from, "--max", "1", "-o", to, "--anonymize"]).success();
    let warned = unwrapped(&schedviz(&["workcons", to]).success().stderr);
    assert!(warned.contains("incomplete: 86 hits of probes without a record"), "{warned}");
    assert!(warned.contains("[probes 86]"), "{warned}");
    // A name that no kernel takes comes to no terminal, nor does one without an end.
    machine["missed_probes"] = serde_json::json!({ "\u{1b}[31mred\nFAKE: line": 20, "x".repeat(64): 19 });
    std::fs::write(folder.join("t.machine.json"), machine.to_string()).expect("written");
    let warned = schedviz(&["workcons", from]).success().stderr;
    assert!(unwrapped(&warned).contains("incomplete: 39 hits of probes without a record"), "{warned}");
    assert!(warned.contains("[? 20, ? 19]") && !warned.contains("red"), "{warned:?}");
}

#[test]
fn a_task_whose_cgroup_is_unknown_waits() {
    // 176 runs on CPU 1 from before the recording; the others come to their cgroup within it.
    let (with, without) = (measured(groups()).throttled, measured(Vec::new()).throttled);
    assert_eq!(groups(), [(Pid(176), CgroupId::new(51))]);
    assert!(with[&Cpu(1)] > 1_000_000_000 && without.get(&Cpu(1)).is_none_or(|ns| *ns < with[&Cpu(1)] / 2));
    assert_eq!(with[&Cpu(0)], without[&Cpu(0)]);
}

#[test]
fn why_has_all_of_the_violation() {
    let path = fixture("throttled-6.12.dat");
    let path = path.to_str().expect("UTF-8");
    let json = schedviz(&["why", path, "--waiters", "all", "--json"]).success().text();
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let why = &document["runs"][0];
    let Measured { violated, waiting, .. } = measured(groups());
    assert_eq!((&why["violation_ns"], &why["waiting"]["total_ns"]), (&violated.into(), &waiting.into()));
    let rows = why["waiting"]["rows"].as_array().expect("rows");
    assert_eq!(rows.iter().map(|row| row["total_ns"].as_u64().expect("a number")).sum::<u64>(), waiting);
    let keys = why.to_string();
    for key in ["\"unthrottled\"", "\"throttled\""] {
        assert!(keys.contains(key), "{key}");
    }
    let text = schedviz(&["latency", path]).success().text();
    assert!(unwrapped(&text).contains(" waits were throttled by cpu.max, for "), "{text}");
}

#[test]
fn throttling_since_the_start_is_found_by_its_end() {
    let at = |ts, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
    let probe = |ts, probe| at(ts, 0, EventKind::Probe { id: 1, probe });
    let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") };
    let cgroup = CgroupId::new(28);
    let end = Probe::Unthrottles(Throttle { cpu: Some(Cpu(0)), cgroup: Some(cgroup), takes_queue: true });
    let events = [
        at(0, 0, EventKind::Other { id: 2 }),
        // The record shows the cgroup of 7, which is throttled on CPU 0 from before.
        probe(1, Probe::Joins { pid: Pid(7), cgroup, forked: false }),
        at(2, 0, EventKind::Wakeup { task: task(7), target: Cpu(0) }),
        probe(10, end),
        at(11, 0, EventKind::Switch { prev: task(0), state: PrevState::RUNNABLE, next: task(7) }),
        at(20, 7, EventKind::Switch { prev: task(7), state: PrevState::asleep(1), next: task(0) }),
    ];
    for prologue in [0, 3, 100] {
        let pass = Pass::over(&events[..]).prologue(prologue).hasty(prologue);
        let measured = pass.run(Measured::default).unwrap_or_else(|never| match never {}).output;
        assert_eq!(measured.throttled, BTreeMap::from([(Cpu(0), 8)]), "{prologue}");
    }
}

/// The throttled time of each CPU, and the number of times that ended, within a window.
fn throttled_by_cpu(path: &str, window: &[&str]) -> BTreeMap<u64, (u64, u64)> {
    let ran = schedviz(&[&["workcons", path, "--json", "-q"], window].concat());
    assert!(ran.code != Some(1), "{}", ran.text());
    let document: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let cpus = document["runs"][0]["coverage"]["throttled"].as_array().cloned().unwrap_or_default();
    let number = |cpu: &serde_json::Value, field: &str| cpu[field].as_u64().expect("a number");
    cpus.iter().map(|cpu| (number(cpu, "cpu"), (number(cpu, "ns"), number(cpu, "times")))).collect()
}

/// Its edges cut it: the windows of a trace add up to the whole, in parts of it as well.
#[test]
fn throttled_time_of_a_cpu_is_that_within_the_window() {
    let folder = scratch("throttled-windows");
    // By CPU alone, and with cgroups.
    for name in ["cgroup-cpumax.dat", "throttled-6.12.dat"] {
        let path = fixture(name);
        let path = path.to_str().expect("UTF-8");
        let trace = Trace::open(&fixture(name), Options::default()).expect("a trace");
        let (start, end) = trace.extent().expect("events");
        let whole = throttled_by_cpu(path, &[]);
        assert!(whole.len() > 1, "{name}: {whole:?}");
        let at = |n: i64| format!("{:.9}", (end.0 - start.0) as f64 / 1e9 * n as f64 / 7.0);
        let mut sums: [BTreeMap<u64, (u64, u64)>; 2] = Default::default();
        for n in 0..7 {
            let (min, max) = (at(n), at(n + 1));
            let window = if n == 6 { vec!["--min", &min] } else { vec!["--min", &min, "--max", &max] };
            let part = folder.join("part.dat");
            let part = part.to_str().expect("UTF-8");
            schedviz(&[&["cut", path, "-o", part, "-q"], &window[..]].concat()).success();
            for (sum, found) in sums.iter_mut().zip([throttled_by_cpu(path, &window), throttled_by_cpu(part, &[])]) {
                for (cpu, (ns, times)) in found {
                    let sum = sum.entry(cpu).or_default();
                    *sum = (sum.0 + ns, sum.1 + times);
                }
            }
        }
        assert_eq!(sums, [whole.clone(), whole], "{name}: windows, and parts");
    }
}
