//! A trace by hand for each finding, whose cost follows from its times.

use crate::report::ranked;
use crate::{Analyses, Certainty, CostUnit, Doubts, FindingsReport, LimitedCgroup, Observation, findings};
use sched::probe::{Probe, Throttle};
use sched::{Affinity, Comm, Cpu, CpuSet, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts, Window};

/// The traced command, its child, another child, and a task outside of the application.
const COMMAND: i32 = 5;
const CHILD: i32 = 6;
const OTHER: i32 = 7;
const OUTSIDE: i32 = 9;

/// A thread of the command that keeps CPU 0 busy.
const BUSY: i32 = 8;

fn task(pid: i32) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(if pid == 0 { b"swapper" } else { b"work" }) }
}

/// Events of two CPUs, with times in milliseconds.
#[derive(Default)]
struct ByHand(Vec<SchedEvent>);

impl ByHand {
    fn at(&mut self, ms: i64, cpu: u32, pid: i32, kind: EventKind) {
        self.0.push(SchedEvent { ts: Ts(ms * 1_000_000), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind });
    }

    fn switch(&mut self, ms: i64, cpu: u32, prev: i32, next: i32) {
        let state = if prev == 0 { PrevState::RUNNABLE } else { PrevState::asleep(1) };
        self.at(ms, cpu, prev, EventKind::Switch { prev: task(prev), state, next: task(next) });
    }

    fn wake(&mut self, ms: i64, queued: i64, (by_cpu, by): (u32, i32), woken: i32, target: u32) {
        self.at(ms, by_cpu, by, EventKind::Waking { task: task(woken), target: Cpu(target) });
        self.at(queued, by_cpu, by, EventKind::Wakeup { task: task(woken), target: Cpu(target) });
    }

    fn fork(&mut self, ms: i64, (cpu, parent): (u32, i32), child: i32, target: u32) {
        self.at(
            ms,
            cpu,
            parent,
            EventKind::Fork { parent: Pid(parent), child: Pid(child), child_comm: Comm::new(b"work") },
        );
        self.at(ms, cpu, parent, EventKind::WakeupNew { task: task(child), target: Cpu(target) });
    }

    /// The command begins on CPU 0. A task of this PID runs on CPU 1 from then on: 0 if the CPU idles.
    fn begin(beside: i32) -> ByHand {
        let mut events = ByHand::default();
        events.at(
            0,
            0,
            COMMAND,
            EventKind::Exec { pid: Pid(COMMAND), old_pid: Pid(COMMAND), program: Comm::new(b"work") },
        );
        events.switch(0, 1, 1, 0);
        if beside != 0 {
            events.fork(0, (0, COMMAND), beside, 1);
            events.switch(0, 1, 0, beside);
        }
        events
    }

    /// The command forks a child and sleeps until it has done its work. The child waits for CPU 0 from 1 to `until`, while a busy thread
    /// of the command runs there. Then it runs for 100 ms and wakes the command, which runs for 10 ms and exits.
    fn waits(&mut self, until: i64) {
        self.fork(1, (0, COMMAND), BUSY, 0);
        self.fork(1, (0, COMMAND), CHILD, 0);
        self.switch(1, 0, COMMAND, BUSY);
        self.works(until, BUSY);
    }

    /// The child runs for 100 ms in the place of another task and wakes the command, which runs for 10 ms and exits.
    fn works(&mut self, until: i64, before: i32) {
        self.switch(until, 0, before, CHILD);
        self.wake(until + 100, until + 100, (0, CHILD), COMMAND, 0);
        self.switch(until + 100, 0, CHILD, COMMAND);
        self.at(until + 110, 0, COMMAND, EventKind::Exit { pid: Pid(COMMAND) });
    }

    /// The child is queued on CPU 1, so that it is not bound to CPU 0.
    fn moves(&mut self, ms: i64) {
        self.wake(ms, ms, (0, COMMAND), CHILD, 1);
        self.switch(ms + 1, 1, 0, CHILD);
        self.at(ms + 2, 1, CHILD, EventKind::Other { id: 1 });
    }

    fn found_in(&self, window: Window, doubts: &Doubts, throttles: bool) -> FindingsReport {
        let (first, last) = (self.0[0].ts, self.0[self.0.len() - 1].ts);
        let (from, to) = (window.from.unwrap_or(first), window.to.unwrap_or(last));
        let options = Analyses::of_all(from, to, 2).with_throttling(throttles);
        let pass = Pass::over(self.0.as_slice()).window(window);
        let outcome = pass.run(|| options.analyses()).unwrap_or_else(|never| match never {});
        findings(&options.measurements(outcome.output), doubts)
    }

    fn found(&self) -> FindingsReport {
        self.found_in(Window::default(), &Doubts::default(), false)
    }
}

/// The kinds of the findings with their costs in milliseconds.
fn costs(report: &FindingsReport) -> Vec<(String, Option<u64>)> {
    let kind = |observation: &Observation| format!("{observation:?}").split(' ').next().unwrap_or_default().to_owned();
    report.findings.iter().map(|found| (kind(&found.observation), found.cost_ns.map(|ns| ns / 1_000_000))).collect()
}

fn cost(report: &FindingsReport, kind: &str) -> Option<u64> {
    costs(report).into_iter().find(|(found, _)| found == kind).unwrap_or_else(|| panic!("no {kind}: {report:#?}")).1
}

#[test]
fn waiting_beside_an_idle_cpu_is_a_violation_and_costs_its_time_on_the_path() {
    let mut events = ByHand::begin(0);
    events.waits(90);
    events.moves(220);
    let report = events.found();
    assert_eq!(costs(&report), [("Violation".to_owned(), Some(89))], "{report:#?}");
    let first = &report.findings[0];
    assert_eq!((report.cost_unit, first.certainty), (CostUnit::CriticalPath, Certainty::Exact));
    assert!(first.sentence.contains("largest origin: placed at fork, 100 % of that waiting"), "{}", first.sentence);
    assert_eq!(first.command, "why");
}

#[test]
fn a_sleep_until_a_task_that_is_queued_itself_is_named_with_both() {
    // The command sleeps from 1 to `until + 100`, and its child, which wakes it, is queued up to `until`.
    for (until, is_queued) in [(90, false), (151, true)] {
        let mut events = ByHand::begin(OTHER);
        events.waits(until);
        let report = events.found();
        let found = report.findings.iter().find(|found| matches!(found.observation, Observation::WakerQueued { .. }));
        assert_eq!(found.is_some(), is_queued, "{report:#?}");
        let sentence = found.map_or("", |found| &found.sentence);
        let expected = "On the critical path work 5 slept for 250.00 ms until work 6, which was queued itself for 150.00 ms (57.5 %) of \
                        that, in 1 sleep.";
        assert!(!is_queued || sentence == expected, "{sentence}");
        assert!(!is_queued || cost(&report, "WakerQueued") == Some(150), "{report:#?}");
        // 101 of 200, or 250 of 261 ms.
        let consisted = report.consisted.expect("a path");
        assert_eq!((consisted.command_slept_ns, consisted.tail), ((until as u64 + 99) * 1_000_000, None));
    }
}

#[test]
fn the_serial_tail_of_the_application_is_in_the_first_sentence() {
    let mut events = ByHand::begin(0);
    events.waits(90);
    let consisted = events.found().consisted.expect("a path");
    // Two tasks of the command are runnable up to 90, and one from then on to the exit at 200.
    let tail = consisted.tail.expect("a tail");
    assert_eq!((tail.start_in_trace_ns, tail.length_ns.0, tail.cpus), (90_000_000, 110_000_000, 2));
    let words = "; its last 110.00 ms (55.0 %) ran on one CPU of 2 at a time: it was ready";
    assert!(consisted.sentence.contains(words), "{}", consisted.sentence);
}

#[test]
fn a_task_that_may_not_use_the_idle_cpu_is_bound() {
    let mut events = ByHand::begin(0);
    events.waits(90);
    let mut affinity = Affinity::new([Cpu(0), Cpu(1)]);
    let mut only = CpuSet::default();
    only.set(Cpu(0), true);
    affinity.add_first(Pid(CHILD), &only);
    let options = Analyses::of_all(Ts(0), Ts(200_000_000), 2).with_affinity(&affinity);
    let pass = Pass::over(events.0.as_slice());
    let outcome = pass.run(|| options.analyses()).unwrap_or_else(|never| match never {});
    let doubts = Doubts { isolated: Some("1".to_owned()), ..Doubts::default() };
    let report = findings(&options.measurements(outcome.output), &doubts);
    assert_eq!(costs(&report), [("Affinity".to_owned(), Some(89))], "{report:#?}");
    let sentence = &report.findings[0].sentence;
    let words = "; work 6 most, for 89.00 ms: it may use CPU 0 alone; CPU 1 is isolated; the critical path";
    assert!(sentence.contains(words), "{sentence}");
    assert_eq!(report.findings[0].certainty, Certainty::Exact);
    let place = report.findings[0].place.expect("its longest wait");
    assert_eq!((place.pid, place.start_in_trace_ns, place.length_ns), (Some(Pid(CHILD)), 1_000_000, Dur(89_000_000)));
}

/// CPU 1 idles for all of the wait, which is of use to a task only if it may run there.
#[test]
fn an_idle_cpu_could_not_have_run_a_starved_task_that_may_not_use_it() {
    for (may_use, words) in
        [(1, "; it may use CPU 0 alone."), (2, "; for 149.00 ms of that a CPU idled that could have run it.")]
    {
        let mut events = ByHand::begin(0);
        events.waits(150);
        let mut affinity = Affinity::new([Cpu(0), Cpu(1)]);
        affinity.add_first(Pid(CHILD), &(0..may_use).map(Cpu).collect());
        affinity.add_first(Pid(OUTSIDE), &[Cpu(0)].into_iter().collect());
        let options = Analyses::of_all(Ts(0), Ts(260_000_000), 2).with_affinity(&affinity);
        let outcome = Pass::over(events.0.as_slice()).run(|| options.analyses()).unwrap_or_else(|never| match never {});
        let report = findings(&options.measurements(outcome.output), &Doubts::default());
        let starved = report.findings.iter().find(|found| matches!(found.observation, Observation::Starved { .. }));
        let sentence = &starved.unwrap_or_else(|| panic!("{report:#?}")).sentence;
        assert!(sentence.starts_with("work 6 waited 149.00 ms for CPU 0 from 0.001000 s on"), "{sentence}");
        assert!(sentence.ends_with(words), "{sentence}");
    }
}

/// The command sleeps for 200 ms until a timer, while its two children share CPU 0: one runs for 110 ms, and the other waits for that time and runs for 40.
#[test]
fn the_tasks_of_a_command_that_sleeps_are_in_the_first_sentence() {
    let mut events = ByHand::begin(0);
    events.fork(0, (0, COMMAND), CHILD, 0);
    events.fork(0, (0, COMMAND), OTHER, 0);
    events.switch(0, 0, COMMAND, CHILD);
    events.switch(110, 0, CHILD, OTHER);
    events.switch(150, 0, OTHER, 0);
    events.wake(200, 200, (1, 0), COMMAND, 0);
    events.switch(200, 0, 0, COMMAND);
    events.at(210, 0, COMMAND, EventKind::Exit { pid: Pid(COMMAND) });
    let consisted = events.found().consisted.expect("a path");
    let times = consisted.all_tasks.map(|times| (times.tasks, times.run_ns / 1_000_000, times.queued_ns / 1_000_000));
    assert_eq!(times, Some((3, 160, 110)), "{consisted:#?}");
    let words = "the scheduler did not hold it up. While the path slept, other tasks worked: the application's 3 tasks ran for 160.00 ms and \
                 waited 110.00 ms in run queues, 40.7 % of the time for which they were ready.";
    assert!(consisted.sentence.ends_with(words), "{}", consisted.sentence);
}

/// The command and a task outside of the application take turns on CPU 0, 40 ms each, while CPU 1 idles. A list has the other task, which may use CPU 0
/// alone, and the command before it executed its program, as `record` lists it.
#[test]
fn a_command_that_binds_itself_before_its_program_seems_bound_although_lists_have_it() {
    for is_listed_again in [false, true] {
        let mut events = ByHand::begin(0);
        let turn = |events: &mut ByHand, ms: i64, prev: i32, next: i32| {
            let kind = EventKind::Switch { prev: task(prev), state: PrevState::PREEMPTED, next: task(next) };
            events.at(ms, 0, prev, kind);
        };
        events.wake(0, 0, (0, COMMAND), OUTSIDE, 0);
        for round in 0..10 {
            turn(&mut events, round * 80 + 40, COMMAND, OUTSIDE);
            turn(&mut events, round * 80 + 80, OUTSIDE, COMMAND);
        }
        events.at(820, 0, COMMAND, EventKind::Exit { pid: Pid(COMMAND) });
        let mut affinity = Affinity::new([Cpu(0), Cpu(1)]);
        let [all, only] = [2, 1].map(|cpus| (0..cpus).map(Cpu).collect::<CpuSet>());
        affinity.add_first(Pid(OUTSIDE), &only);
        affinity.add_first(Pid(COMMAND), &all);
        if is_listed_again {
            affinity.add(Pid(COMMAND), &all);
        }
        let options = Analyses::of_all(Ts(0), Ts(820_000_000), 2).with_affinity(&affinity);
        let outcome = Pass::over(events.0.as_slice()).run(|| options.analyses()).unwrap_or_else(|never| match never {});
        let report = findings(&options.measurements(outcome.output), &Doubts::default());
        // It waits for 400 ms on the path; the other task beside a CPU that it may not use is nobody's loss there.
        let first = &report.findings[0];
        let (kind, certainty) = match is_listed_again {
            false => ("Affinity", Certainty::Possible),
            true => ("Violation", Certainty::Exact),
        };
        assert_eq!((&costs(&report)[0], first.certainty), (&(kind.to_owned(), Some(400)), certainty), "{report:#?}");
        let words = "Tasks seem bound by affinity or cpusets: in 100 % of the violated time (48.8 % of the window) the waiting tasks were \
                     never queued on the idle CPUs, but on CPU 0 alone; the critical path";
        assert_eq!(first.sentence.starts_with(words), !is_listed_again, "{}", first.sentence);
    }
}

#[test]
fn a_task_on_its_own_idle_cpu_is_held_back() {
    // Whether another CPU idles or not: no violation has that wait.
    for beside in [0, OTHER] {
        let mut events = ByHand::begin(beside);
        // Wakeups were recorded.
        events.wake(5, 5, (0, COMMAND), OTHER, 1);
        if beside == 0 {
            events.switch(5, 1, 0, OTHER);
            events.switch(6, 1, OTHER, 0);
        }
        let state = PrevState::RUNNABLE;
        // As under cpu.max: the command is runnable, and its CPU idles for 87 ms.
        events.at(10, 0, COMMAND, EventKind::Switch { prev: task(COMMAND), state, next: task(0) });
        events.switch(97, 0, 0, COMMAND);
        events.at(110, 0, COMMAND, EventKind::Exit { pid: Pid(COMMAND) });
        let report = events.found();
        assert_eq!(costs(&report), [("HeldBack".to_owned(), Some(87))], "{report:#?}");
        let sentence = &report.findings[0].sentence;
        assert!(sentence.contains("the critical path is held back for 87.00 ms (79.1 %)"), "{sentence}");
        assert!(sentence.contains("CPU 0 idled for 87.00 ms from 0.010000 s on beside work 5"), "{sentence}");
    }
}

#[test]
fn a_queue_longer_by_two_is_named_in_the_queued_time() {
    let mut events = ByHand::begin(OTHER);
    // Two children wait on CPU 0 behind the command, while CPU 1 runs one task alone.
    events.fork(1, (0, COMMAND), OUTSIDE, 0);
    events.waits(90);
    let report = events.found();
    let sentence = &report.findings[0].sentence;
    let expected = "is queued for 89.00 ms (44.5 %): 89.00 ms beside a shorter queue.";
    assert!(sentence.contains(expected), "{sentence}");
}

#[test]
fn waiting_for_busy_cpus_is_queued_time_on_the_path() {
    let mut events = ByHand::begin(OTHER);
    events.waits(90);
    let report = events.found();
    assert_eq!(costs(&report), [("PathQueued".to_owned(), Some(89))], "{report:#?}");
}

#[test]
fn a_long_wait_starves_a_task() {
    let mut events = ByHand::begin(OTHER);
    events.waits(150);
    let report = events.found();
    assert_eq!(
        costs(&report),
        ["PathQueued", "WakerQueued", "Starved"].map(|kind| (kind.to_owned(), Some(149))),
        "{report:#?}"
    );
    let sentence = &report.findings[2].sentence;
    assert!(
        sentence.starts_with("work 6 waited 149.00 ms for CPU 0 from 0.001000 s on, while work ran (100.0 %); no CPU"),
        "{sentence}"
    );
}

#[test]
fn a_task_outside_of_the_application_interferes() {
    let mut events = ByHand::begin(OTHER);
    events.fork(1, (0, COMMAND), CHILD, 0);
    events.switch(2, 0, COMMAND, OUTSIDE);
    // The child was queued behind the command, and is queued again behind the task outside.
    events.switch(3, 0, OUTSIDE, CHILD);
    events.switch(5, 0, CHILD, OUTSIDE);
    events.wake(10, 10, (1, OTHER), CHILD, 0);
    events.switch(90, 0, OUTSIDE, CHILD);
    events.wake(100, 100, (0, CHILD), COMMAND, 0);
    events.switch(100, 0, CHILD, COMMAND);
    events.at(110, 0, COMMAND, EventKind::Exit { pid: Pid(COMMAND) });
    let report = events.found();
    assert_eq!(cost(&report, "Interference"), Some(80), "{report:#?}");
}

#[test]
fn tasks_of_others_are_no_finding_where_the_path_runs() {
    for (until, is_delayed) in [(2, false), (90, true)] {
        let mut events = ByHand::begin(OTHER);
        events.switch(1, 0, COMMAND, OUTSIDE);
        events.fork(1, (1, OTHER), CHILD, 0);
        events.works(until, OUTSIDE);
        let report = events.found();
        let kinds: Vec<String> = costs(&report).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds.iter().any(|kind| kind == "Interference"), is_delayed, "{report:#?}");
        assert_eq!(report.nothing.is_some(), !is_delayed, "{report:#?}");
    }
}

#[test]
fn a_slow_way_to_the_run_queue_is_a_slow_wakeup() {
    let mut events = ByHand::begin(OTHER);
    events.waits(2);
    let exit = events.0.pop().expect("the exit");
    // The command sleeps at 110, and the wakeup needs 50 ms.
    events.switch(110, 0, COMMAND, 0);
    events.wake(120, 170, (1, OTHER), COMMAND, 0);
    events.switch(170, 0, 0, COMMAND);
    events.0.push(SchedEvent { ts: Ts(180_000_000), ..exit });
    let report = events.found();
    assert_eq!(cost(&report, "SlowWakeups"), Some(50), "{report:#?}");
}

#[test]
fn tasks_that_leave_a_cpu_at_once_are_a_herd() {
    let mut events = ByHand::begin(OTHER);
    let herd = 20..24;
    herd.clone().for_each(|child| events.fork(1, (0, COMMAND), child, 0));
    for child in herd {
        events.at(10, 0, COMMAND, EventKind::Migrate { task: task(child), orig: Cpu(0), dest: Cpu(1) });
    }
    events.at(20, 0, COMMAND, EventKind::Exit { pid: Pid(COMMAND) });
    let report = events.found();
    assert!(costs(&report).iter().all(|(kind, _)| kind != "Herds"), "it delayed nothing on the path: {report:#?}");
    // Without a traced command no analysis measures its cost.
    events.0.remove(0);
    assert_eq!(cost(&events.found(), "Herds"), None);
}

#[test]
fn throttling_takes_precedence_over_idle_cpus() {
    let mut events = ByHand::begin(0);
    events.waits(90);
    let throttle = Throttle { cpu: Some(Cpu(0)), cgroup: None, takes_queue: true };
    let record = |ms: i64, probe| SchedEvent {
        ts: Ts(ms * 1_000_000),
        cpu: Cpu(0),
        pid: Pid(COMMAND),
        flags: 0,
        kind: EventKind::Probe { id: 2, probe },
    };
    let before = events.0.iter().position(|event| event.ts >= Ts(90_000_000)).expect("the end of the wait");
    events.0.insert(before, record(61, Probe::Unthrottles(throttle)));
    events.0.insert(before, record(11, Probe::Throttles(throttle)));
    let report = events.found_in(Window::default(), &Doubts::default(), true);
    assert_eq!(cost(&report, "Throttling"), Some(50), "{report:#?}");
    // The rest of the queued time beside the idle CPU.
    assert_eq!(cost(&report, "Violation"), Some(39), "{report:#?}");
}

/// As `a_task_on_its_own_idle_cpu_is_held_back`, where the kernel's counters have the reason: no other finding has that time.
#[test]
fn a_quota_is_named_where_the_kernel_counted_that_it_held_tasks_back() {
    let mut events = ByHand::begin(0);
    events.wake(5, 5, (0, COMMAND), OTHER, 1);
    events.switch(5, 1, 0, OTHER);
    events.switch(6, 1, OTHER, 0);
    let state = PrevState::RUNNABLE;
    events.at(10, 0, COMMAND, EventKind::Switch { prev: task(COMMAND), state, next: task(0) });
    events.switch(297, 0, 0, COMMAND);
    events.at(310, 0, COMMAND, EventKind::Exit { pid: Pid(COMMAND) });
    let ms = |ms: u64| Dur(ms * 1_000_000);
    let limited = |throttled: u64| LimitedCgroup {
        cgroup: "/job".to_owned(),
        quota_ns: ms(20),
        period_ns: ms(100),
        counted_ns: Some(throttled * 95_000_000),
        periods: Some(4),
        throttled_periods: Some(throttled),
    };
    let report = |throttled: u64| {
        let options = Analyses::of_all(Ts(0), Ts(310_000_000), 2).with_limits(vec![limited(throttled)]);
        let outcome = Pass::over(events.0.as_slice()).run(|| options.analyses()).unwrap_or_else(|never| match never {});
        findings(&options.measurements(outcome.output), &Doubts::default())
    };
    // A limit that held nothing back explains nothing.
    assert_eq!(costs(&report(0)), [("HeldBack".to_owned(), Some(287))]);
    let report = report(3);
    assert_eq!(costs(&report), [("Throttling".to_owned(), Some(287))], "{report:#?}");
    assert_eq!(report.findings[0].certainty, Certainty::Possible);
    let expected = "Bandwidth control (cpu.max) throttled cgroup /job, which may use 20.00 ms of CPU time in each 100.00 ms (so in 3 of 4 \
                    periods by the kernel's counters), for 285.00 ms in all; the trace does not show which waits that was; tasks were held \
                    back on idle CPUs, their own, for 287.00 ms of CPU time, and the critical path for 287.00 ms (92.6 %).";
    assert_eq!(report.findings[0].sentence, expected);
}

/// Two tasks wait behind a hog on CPU 0 while CPU 1 runs one task: they are beside a shorter queue, unless cgroups of other weights are known, whose
/// shares nothing shows.
#[test]
fn queues_of_cgroups_of_other_weights_are_possibly_shorter() {
    let mut events = ByHand::begin(OTHER);
    events.fork(1, (0, COMMAND), OUTSIDE, 0);
    events.waits(90);
    let certainty = |has_group_weights: bool| {
        let doubts = Doubts { has_group_weights, ..Doubts::default() };
        let report = events.found_in(Window::default(), &doubts, false);
        let is_shorter = |observation: &Observation| match observation {
            Observation::PathQueued { kinds, .. } => kinds.beside_shorter_ns == 89_000_000,
            _ => false,
        };
        report.findings.iter().find(|found| is_shorter(&found.observation)).map(|found| found.certainty)
    };
    assert_eq!([certainty(false), certainty(true)], [Some(Certainty::Exact), Some(Certainty::Possible)]);
}

#[test]
fn a_window_without_a_wait_has_nothing_to_report() {
    let mut events = ByHand::begin(0);
    events.waits(90);
    let window = Window { from: Some(Ts(191_000_000)), to: Some(Ts(200_000_000)) };
    let report = events.found_in(window, &Doubts::default(), false);
    assert!(report.findings.is_empty(), "{report:#?}");
    let nothing = report.nothing.expect("a sentence");
    assert!(nothing.starts_with("Nothing to report: work conservation is violated 0.00 % of the time"), "{nothing}");
}

#[test]
fn what_cannot_be_known_has_no_conclusion() {
    let mut events = ByHand::begin(0);
    events.waits(90);
    let doubts = Doubts { has_wakeups: false, ..Doubts::default() };
    let report = events.found_in(Window::default(), &doubts, false);
    assert_eq!(costs(&report), [("NotRecorded".to_owned(), None)]);
    // Without the exec there is no critical path and nothing outside of the application.
    events.moves(220);
    events.0.remove(0);
    let report = events.found();
    assert_eq!((report.cost_unit, report.path.is_none()), (CostUnit::CpuTimeLost, true));
    assert_eq!(costs(&report), [("Violation".to_owned(), Some(89))], "{report:#?}");
    // A loss makes the numbers bounds, and is never left out.
    let doubts = Doubts { gaps: 3, has_losses: true, ..Doubts::default() };
    let report = events.found_in(Window::default(), &doubts, false);
    assert_eq!(report.findings[0].certainty, Certainty::Bounded);
    assert_eq!(
        report.findings[1].sentence,
        "Events were lost in 3 places: nothing is known of 0.00 % of the CPU time."
    );
}

#[test]
fn a_part_of_the_queued_time_follows_the_whole() {
    let herds = Observation::Herds {
        herds: 1,
        tasks: 4,
        orig: Cpu(0),
        dest: Cpu(1),
        start_in_trace_ns: 0,
        drained_after_ns: None,
    };
    let slow = Observation::SlowWakeups {
        wakeups: 1,
        p50_ns: None,
        p99_ns: None,
        max_ns: None,
        waking_on_path_ns: None,
        latest: None,
    };
    let queued = Observation::PathQueued { queued_ns: 2, kinds: Default::default(), percent: 9.0 };
    let all = [(herds, Some(3)), (slow, Some(1)), (queued, Some(2))];
    let all = all.into_iter().map(|(observation, cost)| (observation, cost, Certainty::Exact)).collect();
    let costs: Vec<Option<u64>> = ranked(all, 1).iter().map(|(_, cost, _)| *cost).collect();
    assert_eq!(costs, [Some(2), Some(3), Some(1)]);
}

#[test]
fn the_costliest_come_first_and_losses_are_never_left_out() {
    let queued = |cost: Option<u64>| {
        let observation = Observation::PathQueued { queued_ns: 0, kinds: Default::default(), percent: 0.0 };
        (observation, cost, Certainty::Exact)
    };
    let losses = Observation::Losses { gaps: 1, unknown_percent: 0.0, unwritten_percent: 0.0 };
    let mut all = vec![(losses, None, Certainty::Exact), queued(None)];
    all.extend((0..9).map(|cost| queued(Some(cost))));
    let ranked = ranked(all, 1);
    let costs: Vec<Option<u64>> = ranked.iter().map(|(_, cost, _)| *cost).collect();
    assert_eq!(costs, [Some(8), Some(7), Some(6), Some(5), Some(4), Some(3), Some(2), None]);
    assert!(ranked[7].0.is_doubt());
}

#[test]
fn a_task_on_a_small_cpu_beside_a_larger_idle_one_is_named() {
    // From 100 to 600 CPU 0 runs a task; CPU 1 idles for 450 ns of that in all.
    let events = testkit::a_wait_beside_an_idle_cpu();
    for (sizes, is_small) in [([512, 1024], true), ([1024, 512], false)] {
        let options = Analyses::of_all(Ts(100), Ts(600), 2).with_capacities(sizes);
        let outcome = Pass::over(events.as_slice()).run(|| options.analyses()).unwrap_or_else(|never| match never {});
        let report = findings(&options.measurements(outcome.output), &Doubts::default());
        let found = report.findings.iter().find(|found| matches!(found.observation, Observation::SmallCpu { .. }));
        assert_eq!(found.is_some(), is_small, "{report:#?}");
        let sentence = found.map_or("", |found| &found.sentence);
        let expected = "Tasks ran on CPUs of capacity 512 for 450 ns (90.0 % of the window), while one of 1024 idled";
        assert!(!is_small || sentence.starts_with(expected), "{sentence}");
    }
}
