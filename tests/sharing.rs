//! `schedviz utilization` and `schedviz fairness`: on simulated runs what the simulator's run queues
//! say, and the sums that must hold on recordings.

use crate::support::{fixture, golden, recordings, schedviz, schedviz_in, scratch};
use fairness::Fairness;
use sched::pass::{EventSource, Window};
use sched::{Analysis, ChosenCpus, Cpu, Dur, Kind, Load, Pass, Pid, SchedEvent, SchedState, Topology, Ts};
use std::collections::{BTreeMap, BTreeSet};
use testkit::{Laws, Simulation};
use tracedat::Trace;
use utilization::{Options, Utilization, UtilizationReport};

fn options(events: &[SchedEvent], parts: u64) -> Options {
    let (from, to) = (events.first().expect("events").ts, events.last().expect("events").ts);
    let mut cpus: Vec<Cpu> = events.iter().map(|e| e.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    Options {
        from,
        to,
        zero: from,
        cpus: cpus.into_iter().map(|cpu| (cpu, None)).collect(),
        all_cpus: Vec::new(),
        group_name: String::new(),
        interval: Dur((to.since(from).0 / parts).max(1)),
        tasks: None,
        topology: Topology::default(),
        balance_interval: Dur(4_000_000),
    }
}

fn measure(events: &[SchedEvent], options: &Options) -> UtilizationReport {
    Pass::over(events).run(|| Utilization::new(options)).unwrap_or_else(|never| match never {}).output
}

#[test]
fn time_is_divided_without_rest() {
    for seed in 0..80 {
        let sim = Simulation::any(seed, 1 + (seed % 6) as u32, 400);
        let (lossy, _) = sim.lossy(seed);
        for events in [&sim.events, &lossy] {
            let options = options(events, 1 + seed % 11);
            let report = measure(events, &options);
            let laws = Pass::over(events.as_slice()).run(Laws::default).unwrap_or_else(|never| match never {}).output;
            let window = options.to.since(options.from).0;
            assert_eq!(report.all.total(), window * options.cpus.len() as u64, "seed {seed}");
            assert_eq!(
                [report.all.busy(), report.all.idle_ns, report.all.unknown_ns, report.all.offline_ns],
                [laws.busy, laws.idle, laws.unknown, laws.offline].map(|time| time.0),
                "seed {seed}"
            );
            for class in 0..utilization::CLASSES {
                let whole = report.all.all()[class];
                assert_eq!(report.intervals.iter().map(|i| i.shares.all()[class]).sum::<u64>(), whole);
                assert_eq!(report.cpus.iter().map(|c| c.shares.all()[class]).sum::<u64>(), whole);
                assert_eq!(report.columns.iter().map(|(_, _, s)| s.all()[class]).sum::<u64>(), whole);
            }
            for interval in &report.intervals {
                assert_eq!(interval.shares.total(), interval.length_ns.0 * options.cpus.len() as u64);
            }
        }
    }
}

#[test]
fn recordings_are_divided_without_rest() {
    for path in recordings() {
        let trace = Trace::open(&path, tracedat::Options::default()).expect("a recording");
        let Ok(mut events) = trace.events() else { continue };
        let Ok(extent) = events.extent() else { continue };
        let options = Options {
            from: extent.start,
            to: extent.end,
            zero: extent.start,
            cpus: trace.observed().into_iter().map(|cpu| (cpu, None)).collect(),
            ..options(&[event(0, 0, Kind::Other { id: 0 })], 1)
        };
        let options = Options { interval: Dur(50_000_000), ..options };
        let window = Window { from: Some(extent.start), to: Some(extent.end) };
        let report = Pass::over(events).window(window).run(|| Utilization::new(&options)).expect("a pass").output;
        let whole = extent.end.since(extent.start).0 * options.cpus.len() as u64;
        assert_eq!(report.all.total(), whole, "{}", path.display());
    }
}

#[test]
fn of_some_cpus_only_those_stand_beside_one_another() {
    let mut idled = 0;
    for seed in 0..60 {
        let sim = Simulation::any(seed, 3 + (seed % 6) as u32, 400);
        for events in [&sim.events, &sim.lossy(seed).0] {
            let mut options = options(events, 3);
            options.balance_interval = Dur(1);
            let all = options.cpus.clone();
            for shown in [all.len(), all.len() / 2, 1] {
                options.cpus = all[..shown].to_vec();
                let conserve = workcons::Options {
                    cpus: ChosenCpus::only(options.cpus.iter().map(|(cpu, _)| *cpu)),
                    ..workcons::Options::default()
                };
                let pass = Pass::over(events.as_slice()).run(|| workcons::WorkConservation::new(&conserve));
                let violated = pass.unwrap_or_else(|never| match never {}).output.all.ns;
                assert_eq!(measure(events, &options).idling_ns, violated, "seed {seed}, {shown} CPUs");
                idled += u64::from(violated > 0 && shown < all.len());
            }
        }
    }
    assert!(idled > 20, "{idled}");
}

fn event(ts: i64, pid: i32, kind: Kind) -> SchedEvent {
    SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind }
}

#[test]
fn interrupts_count_for_themselves() {
    let entry = |ts, entry| event(ts, 0, Kind::Interrupt { id: 2, entry });
    // Idle from 0 to 100 but for a handler from 10 to 40, in which another is nested; the entry of the
    // last one was lost.
    let events = [
        event(0, 0, Kind::Other { id: 1 }),
        entry(10, true),
        entry(20, true),
        entry(30, false),
        entry(40, false),
        entry(50, false),
        event(100, 0, Kind::Other { id: 1 }),
    ];
    let report = measure(&events, &options(&events, 4));
    assert_eq!((report.all.irq_ns, report.all.idle_ns, report.interrupts_recorded), (30, 70, true));
    let irq: Vec<u64> = report.intervals.iter().map(|i| i.shares.irq_ns).collect();
    assert_eq!(irq, [15, 15, 0, 0]);
}

#[test]
fn a_herd_is_followed_until_it_has_run() {
    use sched::{Comm, PrevState, TaskRef};
    let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"t") };
    let on = |ts, cpu, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind };
    // Each pair of CPUs has ten tasks of its own, the last two of which run at first.
    let herd = |pair: u32| {
        let (from, to) = (Cpu(2 * pair), Cpu(2 * pair + 1));
        let pid = |n: i32| 10 * pair as i32 + n;
        let mut events =
            vec![on(0, from.0, pid(10), Kind::Other { id: 1 }), on(0, to.0, pid(9), Kind::Other { id: 1 })];
        let wake = |n| on(1, from.0, pid(10), Kind::Wakeup { task: task(pid(n)), target: from });
        events.extend((1..=4).map(wake));
        let moved = |n| Kind::Migrate { task: task(pid(n)), orig: from, dest: to };
        events.extend((1..=4).map(|n| on(10 + i64::from(n), to.0, pid(9), moved(n))));
        let run = |n: i32| {
            let (prev, next) = (task(pid(if n == 1 { 9 } else { n - 1 })), task(pid(n)));
            on(100 * i64::from(n), to.0, prev.pid.0, Kind::Switch { prev, state: PrevState::blocked(1), next })
        };
        events.extend((1..=4).map(run));
        events
    };
    // As many at a time as there may be.
    for pairs in [1, 40] {
        let mut events: Vec<SchedEvent> = (0..pairs).flat_map(herd).collect();
        events.sort_by_key(|event| event.ts);
        let report = measure(&events, &options(&events, 1));
        assert_eq!(report.herds.len(), pairs as usize);
        for herd in &report.herds {
            // The fourth came at 14; at 300 the third ran, and one was left.
            assert_eq!((herd.herd.tasks, herd.queue, herd.drained_after_ns), (4, 4, Some(Dur(286))));
        }
    }
    // Another one comes when they have nearly all run: it waits for them, and is of the herd.
    let mut events = herd(0);
    let late = Kind::Wakeup { task: task(5), target: Cpu(0) };
    let moved = Kind::Migrate { task: task(5), orig: Cpu(0), dest: Cpu(1) };
    let waker = Kind::Wakeup { task: task(6), target: Cpu(1) };
    events.extend([on(310, 0, 10, late), on(320, 1, 3, waker), on(330, 1, 3, moved)]);
    events.sort_by_key(|event| event.ts);
    let report = measure(&events, &options(&events, 1));
    let [herd] = report.herds.as_slice() else { panic!("one herd: {:?}", report.herds) };
    assert_eq!((herd.herd.tasks, herd.herd.end, herd.queue, herd.drained_after_ns), (5, Ts(330), 4, None));
}

#[test]
fn columns_count_what_the_simulator_did() {
    use schedstat::FromTrace;
    for seed in 0..60 {
        let sim = Simulation::any(seed, 1 + (seed % 6) as u32, 400);
        let events = sim.events.as_slice();
        let run = Pass::over(events).run(|| (FromTrace::default(), Laws::default()));
        let (found, laws) = run.unwrap_or_else(|never| match never {}).output;
        let count = |of: &dyn Fn(&Kind) -> bool| events.iter().filter(|e| of(&e.kind)).count() as f64;
        let per_cpu = found.cpus as f64;
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "seed {seed}: {a}, {b}");
        near(found.columns.sched * per_cpu, count(&|k| matches!(k, Kind::Switch { .. })));
        near(found.columns.idle * per_cpu, count(&|k| matches!(k, Kind::Switch { next, .. } if next.pid.is_idle())));
        near(found.columns.wake * per_cpu, count(&|k| matches!(k, Kind::Waking { .. })));
        assert_eq!(found.busy_ns, laws.busy.0);
        assert_eq!(found.migrations.iter().sum::<u64>() as f64, count(&|k| matches!(k, Kind::Migrate { .. })));
        near(found.arrivals as f64, (found.columns.sched - found.columns.idle) * per_cpu);
        let observed: BTreeSet<Cpu> = events.iter().map(|e| e.cpu).collect();
        let (mut busy_ns, mut steals) = (0, 0.0);
        for cpu in observed {
            let run = Pass::over(events).run(|| FromTrace::only(ChosenCpus::only([cpu])));
            let alone = run.unwrap_or_else(|never| match never {}).output;
            let on = |of: &dyn Fn(&Kind) -> bool| events.iter().filter(|e| e.cpu == cpu && of(&e.kind)).count() as f64;
            assert_eq!(alone.cpus, 1);
            near(alone.columns.sched, on(&|k| matches!(k, Kind::Switch { .. })));
            near(alone.columns.wake, on(&|k| matches!(k, Kind::Waking { .. })));
            let moves = count(&|k| matches!(k, Kind::Migrate { orig, dest, .. } if *orig == cpu || *dest == cpu));
            assert_eq!(alone.migrations.iter().sum::<u64>() as f64, moves, "seed {seed}, CPU {cpu}");
            busy_ns += alone.busy_ns;
            steals += alone.columns.steal.unwrap_or_default();
        }
        assert_eq!(busy_ns, found.busy_ns);
        near(steals, found.columns.steal.unwrap_or_default() * per_cpu);
    }
}

/// How long some CPU idled between two instants with nobody waiting for it, and how long each did: by
/// looking at all of them at every event.
fn idle_between(events: &[SchedEvent], from: Ts, to: Ts) -> (u64, Vec<fairness::IdleCpu>) {
    struct Looking {
        from: Ts,
        to: Ts,
        last: Option<Ts>,
        some: u64,
        each: BTreeMap<Cpu, u64>,
    }
    impl Analysis for Looking {
        type Output = Looking;

        fn begin(&mut self, start: Ts, _: &SchedState) {
            self.last = Some(start);
        }

        fn before(&mut self, event: &SchedEvent, state: &SchedState) {
            let last = self.last.replace(event.ts).unwrap_or(event.ts);
            let ns = event.ts.min(self.to).since(last.max(self.from)).0;
            let idle: Vec<Cpu> = state.observed().filter(|cpu| state.load(*cpu) == Load::Idle).collect();
            self.some += if idle.is_empty() { 0 } else { ns };
            idle.into_iter().filter(|_| ns > 0).for_each(|cpu| *self.each.entry(cpu).or_default() += ns);
        }

        fn finish(self, _: Ts, _: &SchedState) -> Looking {
            self
        }
    }
    let pass = Pass::over(events).run(|| Looking { from, to, last: None, some: 0, each: BTreeMap::new() });
    let Looking { some, each, .. } = pass.unwrap_or_else(|never| match never {}).output;
    let mut each: Vec<_> = each.into_iter().map(|(cpu, ns)| fairness::IdleCpu { cpu, idle_ns: Dur(ns) }).collect();
    each.sort_by(|a, b| b.idle_ns.cmp(&a.idle_ns).then(a.cpu.cmp(&b.cpu)));
    (some, each)
}

#[test]
fn members_got_what_the_simulator_gave_them() {
    for seed in 0..80 {
        let sim = Simulation::any(seed, 1 + (seed % 6) as u32, 400);
        let events = sim.events.as_slice();
        let (from, to) = (events[0].ts, events[events.len() - 1].ts);
        let interval = Dur((to.since(from).0 / 5).max(1));
        let options = fairness::Options { interval, worst: 3, ..fairness::Options::new(from, to) };
        let report = Pass::over(events).run(|| Fairness::new(&options)).unwrap_or_else(|never| match never {}).output;
        let laws = Pass::over(events).run(Laws::default).unwrap_or_else(|never| match never {}).output;
        let sum = |of: fn(&fairness::Member) -> u64| report.members.iter().map(of).sum::<u64>();
        assert_eq!((sum(|m| m.run_ns.0), sum(|m| m.wait_ns.0)), (laws.running.0, laws.waiting.0), "seed {seed}");
        assert!((report.members.iter().map(|m| m.share_percent).sum::<f64>() - 100.0).abs() < 1e-6);
        // By the simulator's CPUs: who was current, for how long.
        let mut ran: BTreeMap<i32, u64> = BTreeMap::new();
        let (_, witnessed) = sim.witnessed();
        let states = std::iter::once(&sim.initial).chain(&sim.truth);
        for ((truth, now), next) in states.zip(std::iter::once(from).chain(events.iter().map(|e| e.ts))).zip(events) {
            for (cpu, pid) in (0..).zip(&truth.current).filter(|(cpu, pid)| witnessed.contains(cpu) && **pid > 0) {
                let _: u32 = cpu;
                *ran.entry(*pid).or_default() += next.ts.since(now).0;
            }
        }
        for (pid, ns) in ran.into_iter().filter(|(_, ns)| *ns > 0) {
            let found = report.members.iter().find(|m| m.name.ends_with(&format!(" {pid}")));
            assert_eq!(found.map(|m| m.run_ns.0), Some(ns), "seed {seed}, task {pid}");
        }
        for wait in &report.starved {
            let start = Ts(from.0 + wait.start_in_trace_ns as i64);
            let end = start.after(wait.duration_ns);
            assert_eq!(
                idle_between(events, start, end),
                (wait.could_have_run_ns.expect("an unbound task").0, wait.idle_cpus.clone()),
                "seed {seed}"
            );
            assert_eq!(wait.idle_cpus.len(), wait.idle_cpu_count);
        }
        assert!(
            report.intervals.iter().all(|i| i.gini.is_none_or(|gini| (0.0..=1.0).contains(&gini))
                && i.jain.is_none_or(|jain| jain <= 1.0 + 1e-9))
        );
    }
}

#[test]
fn a_thread_that_executes_is_chosen_by_the_number_it_had() {
    use sched::{Comm, PrevState, TaskRef};
    let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"t") };
    let switch = |ts, prev, state, next| {
        event(ts, prev, Kind::Switch { prev: task(prev), state: PrevState::blocked(state), next: task(next) })
    };
    let woken = |pid| event(1, 0, Kind::Wakeup { task: task(pid), target: Cpu(0) });
    // Thread 11 waits from 1 to 3, runs until it executes at 5, and goes on with its leader's number.
    let events = [
        event(0, 0, Kind::Other { id: 1 }),
        woken(10),
        woken(11),
        switch(2, 0, 1, 10),
        switch(3, 10, 1, 11),
        event(5, 10, Kind::Exec { pid: Pid(10), old_pid: Pid(11), program: Comm::EMPTY }),
        switch(9, 10, 1, 0),
    ];
    let got = |pid: i32| {
        let chosen = move |task: &sched::state::Task, _: &SchedState| task.pid == Pid(pid);
        let options = fairness::Options { tasks: Some(&chosen), ..fairness::Options::new(Ts(0), Ts(9)) };
        let pass = Pass::over(events.as_slice()).run(|| Fairness::new(&options));
        let members = pass.unwrap_or_else(|never| match never {}).output.members;
        members.iter().map(|m| (m.run_ns.0, m.wait_ns.0)).collect::<Vec<_>>()
    };
    assert_eq!(got(11), [(2, 2)]);
    // The leader ran from 2 to 3 before it.
    assert_eq!(got(10), [(5, 1)]);
}

/// A task that executes a program, or names itself, ran by two names, by each for as long as it had it.
#[test]
fn what_ran_by_which_name_is_the_same_wherever_it_is_told() {
    use sched::Comm;
    let mut renamed = 0;
    for path in recordings() {
        let trace = Trace::open(&path, tracedat::Options::default()).expect("a recording");
        let (Ok(events), Some((from, to))) = (trace.events(), trace.extent()) else { continue };
        let drawn = dat2graph::Options {
            from,
            to,
            zero: from,
            cpus: trace.observed().into_iter().map(|cpu| (cpu, None)).collect(),
            all_cpus: Vec::new(),
            group_name: String::new(),
            marks: Vec::new(),
            frequency: false,
            coloring: dat2graph::Coloring { by: dat2graph::ColorBy::Command, ..Default::default() },
        };
        let shares = fairness::Options { by: fairness::GroupBy::Command, ..fairness::Options::new(from, to) };
        let Ok(outcome) = Pass::over(events).run(|| (Fairness::new(&shares), dat2graph::Timeline::new(&drawn))) else {
            continue;
        };
        let (shares, lanes) = outcome.output;
        let members: BTreeMap<String, u64> = shares.members.iter().map(|m| (m.name.clone(), m.run_ns.0)).collect();
        let mut shown: BTreeMap<String, u64> = BTreeMap::new();
        let mut names: BTreeMap<Pid, BTreeSet<Comm>> = BTreeMap::new();
        for task in dat2graph::report(&lanes, &drawn).tasks {
            let name = sched::kthread::command(task.command);
            let name = if name.is_empty() { "?".to_owned() } else { name.to_string() };
            *shown.entry(name).or_default() += task.run_ns;
            names.entry(task.pid).or_default().insert(task.command);
        }
        renamed += names.values().filter(|names| names.len() > 1).count();
        let ran = |of: BTreeMap<String, u64>| of.into_iter().filter(|(_, ns)| *ns > 0).collect::<BTreeMap<_, _>>();
        assert_eq!(ran(members), ran(shown), "{}", path.display());
    }
    assert!(renamed > 30, "only {renamed} tasks had two names");

    // By a reckoning over the lines of `trace-cmd report`: the shell executes itself, and goes on as an applet, of which
    // only `task_rename` tells.
    let trace = fixture("every-7.2.dat");
    let shares = schedviz(&["fairness", "--group-by", "command", "-q", "--json", trace.to_str().expect("a path")]);
    let shares: serde_json::Value = serde_json::from_slice(&shares.success().stdout).expect("JSON");
    for (name, ns) in
        [("trace-cmd", 96_648_287), ("sh", 78_354_970), ("exe", 35_504_764), ("nc", 105_317_146), ("sleep", 7_224_542)]
    {
        let member = shares["members"].as_array().and_then(|all| all.iter().find(|m| m["name"] == name));
        assert_eq!(member.and_then(|m| m["run_ns"].as_u64()), Some(ns), "{name}");
    }

    // By the events of the recording: `taskset` names itself, `soak` is executed.
    let trace = fixture("affine.dat");
    let trace = trace.to_str().expect("a path");
    let json = |arguments: &[&str]| -> serde_json::Value {
        let text = schedviz(&[arguments, &["-q", "--json", trace]].concat()).success().text();
        serde_json::from_str(&text).expect("JSON")
    };
    let shares = json(&["fairness", "--group-by", "command"]);
    for name in ["sh", "taskset", "soak"] {
        let alone = json(&["running-waiting", "--tasks", &format!("^{name}$")]);
        let member = shares["members"].as_array().and_then(|all| all.iter().find(|m| m["name"] == name));
        let member = member.expect("it ran");
        assert_eq!(
            (&member["run_ns"], &member["wait_ns"]),
            (&alone["panels"][0]["running_ns"], &alone["panels"][0]["waiting_ns"]),
            "{name}"
        );
    }
}

#[test]
fn losses_are_told_by_whatever_follows_the_state() {
    let folder = scratch("losses");
    let trace = folder.join("lossy.dat");
    let (events, _) = Simulation::run(3, 6, 2000).lossy(3);
    std::fs::write(&trace, testkit::TraceBuilder::default().events(&events).build()).expect("written");
    let trace = trace.to_str().expect("a path");
    for arguments in [
        vec!["workcons"],
        vec!["latency"],
        vec!["utilization"],
        vec!["fairness"],
        vec!["stepper", "--text"],
        vec!["events", "--balance"],
        vec!["running-waiting", "-o", "-", "--format", "svg"],
    ] {
        // Where it writes a figure unasked, it is no file of the repository.
        let ran = schedviz_in(&folder, &[&arguments[..1], &[trace], &arguments[1..]].concat()).success();
        assert_eq!(ran.stderr.matches("data loss: ").count(), 1, "{arguments:?}: {}", ran.stderr);
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn the_program_says_who_got_what() {
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    let text = schedviz(&["fairness", trace, "--group-by", "^(hack|trace)"]).success().text();
    assert!(text.contains("2 members") && text.contains("longest waits"), "{text}");
    let json = schedviz(&["fairness", trace, "--group-by", "command", "--weights", "--json"]).success().text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["schema"], &json["weights"]), (&"schedviz/fairness/1".into(), &true.into()));
    let text = schedviz(&["utilization", trace, "--per-cpu", "--interval", "100ms"]).success().text();
    assert!(text.contains("%app") && text.contains("idled beside overloaded ones"), "{text}");
    for (arguments, advice) in [
        (vec!["utilization", trace, "--interval", "0"], "not a length"),
        (vec!["utilization", trace, "--interval", "1ns"], "intervals"),
        (vec!["fairness", trace, "--group-by", "("], "--group-by"),
        (vec!["fairness", trace, "--cpus", "1"], "--cpus"),
    ] {
        let ran = schedviz(&arguments);
        assert!(ran.code == Some(1) && ran.stderr.contains(advice), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn a_report_is_one_page_whatever_the_threads() {
    let folder = scratch("report");
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    let files = |threads: &str| {
        let to = folder.join(format!("threads-{threads}"));
        let to = to.to_str().expect("a path");
        schedviz(&["report", trace, "-o", to, "--threads", threads]).success();
        let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(to)
            .expect("the folder")
            .flatten()
            .map(|e| (e.file_name().to_string_lossy().into_owned(), std::fs::read(e.path()).expect("a file")))
            .collect();
        files.sort();
        files
    };
    // The analyses are on three threads with four of them, on six with eight.
    let one = files("1");
    assert!(one == files("4") && one == files("8"), "the same bytes whatever the threads");
    let names: Vec<&str> = one.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["index.html", "workcons.json", "workcons.svg", "latency.svg", "fairness-2.svg", "dat2graph.svg"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let page = one.iter().find(|(name, _)| name == "index.html").map(|(_, bytes)| String::from_utf8_lossy(bytes));
    let page = page.expect("the page");
    assert_eq!(page.matches("<svg").count(), 8);
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("href=\"http"), "it stands alone");
    for (command, more) in [
        ("dat2graph", vec![]),
        ("running-waiting", vec!["--per-cpu"]),
        ("workcons", vec![]),
        ("utilization", vec![]),
        ("latency", vec![]),
        ("fairness", vec![]),
    ] {
        let alone = schedviz(&[&[command, trace, "--json"], more.as_slice()].concat()).success().stdout;
        let file = one.iter().find(|(name, _)| *name == format!("{command}.json")).map(|(_, bytes)| bytes);
        // dat2graph alone does not follow the state, and knows of nothing that this one finds odd.
        let document = |bytes: &[u8]| {
            let mut json: serde_json::Value = serde_json::from_slice(bytes).expect("JSON");
            if command == "dat2graph" {
                json["trust"].take();
            }
            json
        };
        assert_eq!(file.map(|bytes| document(bytes)), Some(document(&alone)), "{command}.json");
    }
    // Causes of migrations are there but for the list of single ones, and probes where they were recorded.
    let balance = |json: &[u8]| -> serde_json::Value {
        let mut json: serde_json::Value = serde_json::from_slice(json).expect("JSON");
        json.as_object_mut().expect("an object").remove("migrations");
        json
    };
    let file = one.iter().find(|(name, _)| name == "balance.json").map(|(_, bytes)| balance(bytes));
    assert_eq!(file, Some(balance(&schedviz(&["events", trace, "--balance", "--json"]).success().stdout)));
    assert!(names.contains(&"balance.svg") && !names.contains(&"events.json"), "{names:?}");
    assert!(page.contains("<h2 id=\"balance\">Causes of migrations</h2>") && page.contains("wakeup placement"));
    let (probes, to) = (fixture("balance.dat"), folder.join("probes"));
    let (probes, to_name) = (probes.to_str().expect("a path"), to.to_str().expect("a path"));
    schedviz(&["report", probes, "-q", "-o", to_name]).success();
    let written = |name: &str| std::fs::read(to.join(name)).expect("a file");
    assert!(written("events.json") == schedviz(&["events", probes, "--json", "-q"]).success().stdout);
    let ours = balance(&written("balance.json"));
    assert_eq!(ours, balance(&schedviz(&["events", probes, "--balance", "--json", "-q"]).success().stdout));
    assert!(ours["probes"]["attempts_by_moved"].is_object(), "{ours}");
    let page = String::from_utf8(written("index.html")).expect("the page");
    assert!(page.contains("lb:load_balance") && page.contains("Probes on the balancer"));
    assert!(String::from_utf8(written("events.svg")).expect("a figure").contains("108 events"));
    // Of some CPUs each part is the command's own, too, and none is of tasks wherever they run.
    let some = folder.join("some");
    schedviz(&["report", trace, "-o", some.to_str().expect("a path"), "-q", "--cpus", "0-3"]).success();
    for command in ["workcons", "utilization", "latency"] {
        let alone = schedviz(&[command, trace, "--json", "-q", "--cpus", "0-3"]).success().stdout;
        assert!(std::fs::read(some.join(format!("{command}.json"))).expect("a file") == alone, "{command}.json");
    }
    assert!(!some.join("fairness.json").exists());
    for command in ["latency", "utilization", "fairness"] {
        let run = |threads: &str| schedviz(&[command, trace, "--json", "--threads", threads]).success().text();
        assert_eq!(run("1"), run("4"), "{command}");
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn pages_and_figures_stay_as_they_are() {
    let (trace, cpus) = (fixture("hackbench.dat"), fixture("hackbench.cpus.txt"));
    let (trace, cpus) = (trace.to_str().expect("a path"), cpus.to_str().expect("a path"));
    for command in ["latency", "utilization", "fairness"] {
        let text = schedviz(&[command, "-q", trace, "--topology", cpus]).success().text();
        golden(&format!("{command}.txt"), &text);
    }
    for command in ["latency", "utilization"] {
        let svg = schedviz(&[command, "-q", trace, "--topology", cpus, "-o", "-", "--format", "svg"]);
        golden(&format!("{command}.svg"), &svg.success().text());
    }
    let folder = scratch("judging-golden");
    let path = folder.join("shares.svg");
    schedviz(&["fairness", "-q", trace, "-o", path.to_str().expect("a path")]).success();
    let svg = std::fs::read_to_string(folder.join("shares-1.svg")).expect("the Lorenz curve");
    // The command at its foot names the folder.
    assert!(svg.contains("share of the run time"));
    let both = fixture("hackbench-7.2.dat");
    let (a, b) = (format!("a={trace}"), format!("b={}", both.to_str().expect("a path")));
    golden("compare.txt", &schedviz(&["compare", "-q", "--group", &a, "--group", &b]).success().text());
    std::fs::remove_dir_all(&folder).expect("removed");
}
