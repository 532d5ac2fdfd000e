//! An interval has the numbers that the other commands have for its window.

use super::measured::never;
use super::*;
use latency::{Latency, Measure};
use sched::{Affinity, Comm, Diagnostics, EventKind, Pass, Pid, SchedEvent};
use testkit::{Simulation, TraceBuilder};
use workcons::WorkConservation;

/// A folder that stands in for tracefs, with the descriptions of the events of `builder`.
fn tracefs(folder: &Path, builder: &TraceBuilder) -> Tracefs {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        std::fs::write(path, text).expect("written");
    };
    std::fs::create_dir_all(folder.join("instances/schedviz-live")).expect("created");
    write("events/header_page", &builder.header_page());
    write("events/header_event", "# compressed entry header\n");
    for (nth, (system, text)) in builder.layout().formats().iter().enumerate() {
        write(&format!("events/{system}/event{nth:02}/format"), text);
    }
    Tracefs::find(Some(folder)).expect("a tracefs")
}

#[test]
fn an_interval_has_the_numbers_of_the_window() {
    let events = Simulation::run(11, 6, 4000).events;
    let builder = TraceBuilder::default();
    let folder = tempfile::tempdir().expect("a folder");
    let tracefs = tracefs(folder.path(), &builder);
    let live = folder.path().join("instances/schedviz-live");
    // The kernel fills the first half, then the second.
    let middle = events.len() / 2;
    let mut moments = Vec::new();
    let mut follower: Option<Follower> = None;
    for half in [&events[..middle], &events[middle..]] {
        for (cpu, pages) in builder.rings(half) {
            let buffer = live.join(format!("per_cpu/cpu{cpu}"));
            std::fs::create_dir_all(&buffer).expect("created");
            let path = buffer.join("trace_pipe_raw");
            let mut known = std::fs::read(&path).unwrap_or_default();
            known.extend(pages.concat());
            std::fs::write(path, known).expect("written");
        }
        let follower = follower.get_or_insert_with(|| {
            let file = TraceFile::of(&tracefs, &["sched", "task"], "6.12.0", "[local] global").expect("a file");
            let pages = Pages::open(&live, file.page_size()).expect("buffers");
            // Six CPUs with events, and two that are silent. No task is known to be bound.
            Follower::new(pages, file, Topology::default(), LiveFacts::new(folder.path(), (0..8).map(Cpu)))
        });
        follower.collect().expect("read");
        moments.push(follower.measure().expect("measured").expect("an interval"));
    }
    let [first, second] = moments.try_into().expect("two intervals");
    let end = Ts(events[events.len() - 1].ts.0 + 1);
    assert_eq!((first.from_ns, first.to_ns, second.to_ns), (events[0].ts, second.from_ns, end));
    assert_eq!((second.losses, second.cpus), (0, 8));
    // The same window of the whole, by the analyses of the other commands.
    let window = sched::Window { from: Some(second.from_ns), to: None };
    let (conserve, waits) = (workcons::Options::default(), latency::Options::default());
    let analyses = || (WorkConservation::new(&conserve), Latency::new(&waits));
    let (violation, latency) = never(Pass::over(events.as_slice()).window(window).run(analyses)).output;
    assert!(violation.movable.percent > 0.0 && !second.tasks.is_empty() && !second.queues.is_empty());
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-3, "{a} {b}");
    near(second.violation_percent, violation.movable.percent);
    near(second.cpu_time_lost_percent, violation.movable.cpu_time_lost_percent * 6.0 / 8.0);
    near(second.running, violation.mean_running);
    near(second.waiting, violation.mean_waiting);
    assert_eq!((second.wakeup, second.preempted), (latency.of(Measure::Wakeup), latency.of(Measure::Preempted)));
    let inside = events.iter().filter(|event| event.ts >= second.from_ns).count() as u64;
    assert_eq!((second.events, second.own_events, second.own_percent), (inside, 0, 0.0));
    let schema = include_str!("../../../../docs/schemas/top-2.json");
    let document = serde_json::to_value(&second).expect("JSON");
    crate::conforms::conforms(&document, &serde_json::from_str(schema).expect("JSON"), "$");
}

/// Two tasks share CPU 0 while CPU 1 idles; they may use CPU 0 alone. A third task is this program.
#[test]
fn bound_tasks_and_own_ones_are_no_violation() {
    let task = |pid: i32| sched::TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(format!("t{pid}").as_bytes()) };
    let switch = |ts: i64, cpu: u32, prev: i32, next: i32| {
        let state = if prev == 0 || cpu == 0 { sched::PrevState::RUNNABLE } else { sched::PrevState::asleep(1) };
        let kind = EventKind::Switch { prev: task(prev), state, next: task(next) };
        SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(prev), flags: 0, kind }
    };
    let woken = |ts: i64, pid: i32| {
        let kind = EventKind::Waking { task: task(pid), target: Cpu(0) };
        let queued = EventKind::Wakeup { task: task(pid), target: Cpu(0) };
        [kind, queued].map(|kind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(7), flags: 0, kind })
    };
    let mut events = vec![switch(0, 1, 9, 0), switch(10, 0, 0, 7)];
    events.extend(woken(20, 8));
    events.extend(woken(30, 100));
    events.extend([switch(500, 0, 7, 8), switch(600, 0, 8, 100), switch(800, 0, 100, 7), switch(1000, 0, 7, 8)]);
    let live = LiveEvents { events, past: None, end: Ts(1001) };
    let measure = |lists: &[(i32, u32)], own: &[i32]| {
        let mut affinity = Affinity::new([Cpu(0), Cpu(1)]);
        lists.iter().for_each(|(pid, cpu)| affinity.add(Pid(*pid), &std::iter::once(Cpu(*cpu)).collect()));
        let (topology, own) = (Topology::default(), own.iter().map(|pid| Pid(*pid)).collect());
        let around = Surroundings { topology: &topology, affinity: &affinity, idle: Vec::new(), online: 2, own: &own };
        measured(&live, &around, &Diagnostics::default()).expect("measured").0
    };
    let free = measure(&[], &[]);
    assert!(free.violation_percent > 95.0, "{}", free.violation_percent);
    let bound = [(7, 0), (8, 0), (100, 0)];
    assert_eq!(measure(&bound, &[]).violation_percent, 0.0);
    // The program itself waits from 30 to 600, and runs until 800.
    let others = measure(&bound, &[100]);
    assert!((others.own_percent - 100.0 * 200.0 / 1001.0).abs() < 1e-9 && others.own_events == 4, "{others:?}");
    assert!((free.running - others.running - 200.0 / 1001.0).abs() < 1e-9);
    assert!((free.waiting - others.waiting - 771.0 / 1001.0).abs() < 1e-9, "{} {}", free.waiting, others.waiting);
    assert!(others.tasks.iter().all(|task| task.pid != Pid(100)));
    assert_eq!(others.wakeup.count, free.wakeup.count - 1);
}
