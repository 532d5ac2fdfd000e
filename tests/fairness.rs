//! `schedviz fairness`: agreement with the simulator's run queues on simulated runs, and with other commands.

use crate::support::{fixture, recordings, schedviz};
use ::fairness::Fairness;
use parse::Trace;
use sched::{Analysis, Comm, Cpu, Dur, EventKind, Load, Pass, Pid, PrevState, SchedEvent, SchedState, TaskRef, Ts};
use std::collections::{BTreeMap, BTreeSet};
use testkit::{Laws, Simulation};

fn event(ts: i64, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind }
}

/// How long some CPU idled between two instants with an empty run queue, and how long each did: by
/// looking at all of them at every event.
fn idle_between(events: &[SchedEvent], from: Ts, to: Ts) -> (u64, Vec<::fairness::IdleCpu>) {
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
    let mut each: Vec<_> = each.into_iter().map(|(cpu, ns)| ::fairness::IdleCpu { cpu, idle_ns: Dur(ns) }).collect();
    each.sort_by(|a, b| b.idle_ns.cmp(&a.idle_ns).then(a.cpu.cmp(&b.cpu)));
    (some, each)
}

#[test]
fn members_got_what_the_simulator_gave_them() {
    for seed in crate::support::seeds(80) {
        let sim = Simulation::any(seed, 1 + (seed % 6) as u32, 400);
        let events = sim.events.as_slice();
        let (from, to) = (events[0].ts, events[events.len() - 1].ts);
        let interval = Dur((to.since(from).0 / 5).max(1));
        let options = ::fairness::Options { interval, worst: 3, ..::fairness::Options::new(from, to) };
        let report = Pass::over(events).run(|| Fairness::new(&options)).unwrap_or_else(|never| match never {}).output;
        let laws = Pass::over(events).run(Laws::default).unwrap_or_else(|never| match never {}).output;
        let sum = |of: fn(&::fairness::Member) -> u64| report.members.iter().map(of).sum::<u64>();
        assert_eq!((sum(|m| m.run_ns.0), sum(|m| m.wait_ns.0)), (laws.running.0, laws.waiting.0), "seed {seed}");
        assert!((report.members.iter().map(|m| m.share_percent).sum::<f64>() - 100.0).abs() < 1e-6);
        // By the simulator's CPUs: the current task, and for how long.
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
    let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"t") };
    let switch = |ts, prev, state, next| {
        event(ts, prev, EventKind::Switch { prev: task(prev), state: PrevState::asleep(state), next: task(next) })
    };
    let woken = |pid| event(1, 0, EventKind::Wakeup { task: task(pid), target: Cpu(0) });
    // Thread 11 waits from 1 to 3, runs until it executes at 5, and goes on with its leader's number.
    let events = [
        event(0, 0, EventKind::Other { id: 1 }),
        woken(10),
        woken(11),
        switch(2, 0, 1, 10),
        switch(3, 10, 1, 11),
        event(5, 10, EventKind::Exec { pid: Pid(10), old_pid: Pid(11), program: Comm::EMPTY }),
        switch(9, 10, 1, 0),
    ];
    let got = |pid: i32| {
        let chosen = move |task: &sched::state::Task, _: &SchedState| task.pid == Pid(pid);
        let options = ::fairness::Options { tasks: Some(&chosen), ..::fairness::Options::new(Ts(0), Ts(9)) };
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
    let mut renamed = 0;
    for path in recordings() {
        let trace = Trace::open(&path, parse::Options::default()).expect("a recording");
        let (Ok(events), Some((from, to))) = (trace.events(), trace.extent()) else { continue };
        let drawn = lanes::Options {
            from,
            to,
            zero: from,
            cpus: trace.observed().into_iter().map(|cpu| (cpu, None)).collect(),
            all_cpus: Vec::new(),
            group_name: String::new(),
            marks: Vec::new(),
            frequency: false,
            coloring: lanes::Coloring { by: lanes::ColorBy::Command, ..Default::default() },
            groups: None,
            pictures: 1,
            siblings: Vec::new(),
        };
        let shares = ::fairness::Options { by: ::fairness::GroupBy::Command, ..::fairness::Options::new(from, to) };
        let Ok(outcome) = Pass::over(events).run(|| (Fairness::new(&shares), lanes::Timeline::new(&drawn))) else {
            continue;
        };
        let (shares, lanes) = outcome.output;
        let members: BTreeMap<String, u64> = shares.members.iter().map(|m| (m.name.clone(), m.run_ns.0)).collect();
        let mut shown: BTreeMap<String, u64> = BTreeMap::new();
        let mut names: BTreeMap<Pid, BTreeSet<Comm>> = BTreeMap::new();
        for task in lanes::report(&lanes, &drawn).tasks {
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
    // only `task_rename` records.
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

/// A run that ends as the window begins counts in it without time: its task is no member, and its run is in the row of those without time.
#[test]
fn runs_without_time_are_in_a_row_of_their_own() {
    let task = |pid: i32| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(format!("task{pid}").as_bytes()) };
    let idle = TaskRef { pid: Pid::IDLE, prio: 120, comm: Comm::new(b"swapper") };
    let switch = |prev, next| EventKind::Switch { prev, state: PrevState::asleep(1), next };
    let events = [
        event(0, 0, switch(idle, task(7))),
        event(100, 7, switch(task(7), task(8))),
        event(150, 8, switch(task(8), task(9))),
        event(300, 9, switch(task(9), idle)),
        event(400, 0, switch(idle, idle)),
    ];
    let (from, to) = (Ts(100), Ts(400));
    let options = ::fairness::Options::new(from, to);
    let window = sched::Window { from: Some(from), to: Some(to) };
    let pass = Pass::over(events.as_slice()).window(window).run(|| Fairness::new(&options));
    let report = pass.unwrap_or_else(|never| match never {}).output;
    let runs: Vec<(&str, u64)> = report.members.iter().map(|m| (m.name.as_str(), m.runs.count)).collect();
    assert_eq!(runs, [("task9 9", 1), ("task8 8", 1)]);
    let rest = report.without_time.as_ref().expect("a row of the others");
    assert_eq!((rest.members, rest.runs.count, rest.waits.count), (1, 1, 0));
}

/// All runs of a window are in some row, however the tasks form members.
#[test]
fn the_runs_of_all_rows_are_those_of_the_window() {
    for (name, window) in
        [("hackbench.dat", ["0.2", "0.3"]), ("spmd-plus1.dat", ["0.1", "0.4"]), ("affine.dat", ["0.1", "0.4"])]
    {
        let trace = fixture(name);
        let runs = |by: &str| {
            let asked = ["fairness", trace.to_str().expect("a path"), "-q", "--json", "--by", by];
            let window = ["--min", window[0], "--max", window[1]];
            let found: serde_json::Value =
                serde_json::from_slice(&schedviz(&[&asked[..], &window].concat()).success().stdout).expect("JSON");
            let rows = found["members"].as_array().expect("members").iter().chain(found.get("without_time"));
            rows.map(|row| row["runs"]["count"].as_u64().expect("a number")).sum::<u64>()
        };
        let of_tasks = runs("task");
        assert!(of_tasks > 0, "{name}");
        for by in ["command", "process", "cgroup", "params"] {
            assert_eq!(runs(by), of_tasks, "{name} by {by}");
        }
    }
}
