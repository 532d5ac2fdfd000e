//! Hand cases of jobs, and simulated periodic tasks.

use crate::{DeadlineOrigin, Jobs, JobsReport, Options};
use sched::{ChosenCpus, Comm, Cpu, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, StateClass, TaskRef, Ts, Window};
use std::collections::{BTreeMap, BTreeSet};
use testkit::Simulation;

fn task(pid: i32) -> TaskRef {
    let name: &[u8] = match pid {
        0 => b"swapper/0",
        7 => b"control",
        _ => b"soak",
    };
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name) }
}

fn at(ts: i64, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind }
}

fn switch(ts: i64, prev: i32, state: PrevState, next: i32) -> SchedEvent {
    at(ts, prev, EventKind::Switch { prev: task(prev), state, next: task(next) })
}

fn wake(ts: i64, by: i32, woken: i32) -> [SchedEvent; 2] {
    let (task, target) = (task(woken), Cpu(0));
    [at(ts, by, EventKind::Waking { task, target }), at(ts + 2, by, EventKind::Wakeup { task, target })]
}

const ASLEEP: PrevState = PrevState::asleep(1);

/// A task that is woken every 1000 ns and runs for 100 ns; in the job `late` another task runs on its CPU for `held` ns first, and the
/// release behind it is passed over.
fn periodic(jobs: i64, late: i64, held: i64) -> Vec<SchedEvent> {
    let mut events = vec![switch(0, 7, ASLEEP, 0)];
    for nth in 1..=jobs {
        let release = nth * 1000;
        if nth == late + 1 {
            continue;
        }
        if nth == late {
            events.extend(wake(release - 10, 0, 9));
            events.push(switch(release - 5, 0, PrevState::RUNNABLE, 9));
            events.extend(wake(release, 9, 7));
            events.push(switch(release + held, 9, ASLEEP, 7));
        } else {
            events.extend(wake(release, 0, 7));
            events.push(switch(release + 10, 0, PrevState::RUNNABLE, 7));
        }
        let start = release + if nth == late { held } else { 10 };
        events.push(switch(start + 100, 7, ASLEEP, 0));
    }
    events
}

fn measured(events: &[SchedEvent], options: &Options<'_>, window: Window) -> JobsReport {
    Pass::over(events).window(window).run(|| Jobs::new(options)).unwrap_or_else(|never| match never {}).output
}

fn report(events: &[SchedEvent], options: &Options<'_>) -> JobsReport {
    measured(events, options, Window { from: None, to: None })
}

#[test]
fn the_period_is_the_deadline_and_the_late_job_has_what_kept_it() {
    // Job 5 begins 950 ns late, and ends at 1050 ns.
    let report = report(&periodic(20, 5, 950), &Options { worst: 2, ..Options::default() });
    let row = report.tasks.iter().find(|row| row.pid == Pid(7)).expect("the task");
    assert_eq!((row.jobs, row.period_ns, row.missed), (19, Some(Dur(1000)), Some(1)));
    assert_eq!(row.deadline_by, Some(DeadlineOrigin::Period));
    let response = row.response;
    assert_eq!((response.p50_ns, response.p90_ns, response.max_ns), (Dur(110), Dur(110), Dur(1050)));
    assert_eq!(response.mean_ns, Dur((18 * 110 + 1050) / 19));
    let job = &report.worst[0];
    assert_eq!((job.release_in_trace_ns, job.response_ns, job.is_missed), (5000, Dur(1050), true));
    assert_eq!((job.until_queued_ns, job.waited_ns, job.run_ns), (Dur(2), Dur(948), Dur(100)));
    let culprits: Vec<_> = job.culprits.iter().map(|culprit| (culprit.pid, culprit.time_ns)).collect();
    assert_eq!(culprits, [(Pid(9), Dur(948))]);
    assert_eq!((report.missed, report.periodic, report.worst[1].is_missed), (Some(1), Some(1), false));
}

#[test]
fn a_given_deadline_holds_for_every_task() {
    let options = Options { deadline: Some(Dur(109)), ..Options::default() };
    let report = report(&periodic(10, 5, 950), &options);
    let missed: Vec<_> = report.tasks.iter().map(|row| (row.pid, row.missed, row.deadline_by)).collect();
    let given = Some(DeadlineOrigin::Given);
    assert_eq!(missed, [(Pid(7), Some(9), given), (Pid(9), Some(1), given)]);
}

#[test]
fn a_preempted_job_goes_on_and_uneven_releases_are_no_period() {
    let mut events = vec![switch(0, 7, ASLEEP, 0)];
    for (nth, release) in [100i64, 350, 1200, 2200, 2900, 4500, 6000, 6900, 9000, 9400].into_iter().enumerate() {
        events.extend(wake(release, 0, 7));
        events.push(switch(release + 10, 0, PrevState::RUNNABLE, 7));
        if nth == 3 {
            events.extend(wake(release + 20, 7, 9));
            events.push(switch(release + 30, 7, PrevState::RUNNABLE, 9));
            events.push(switch(release + 80, 9, ASLEEP, 7));
        }
        events.push(switch(release + 110, 7, ASLEEP, 0));
    }
    let only = |task: &sched::state::Task, _: &sched::SchedState| task.pid == Pid(7);
    let options = Options { deadline: Some(Dur(50)), worst: 1, tasks: Some(&only), ..Options::default() };
    let found = report(&events, &options);
    let job = &found.worst[0];
    assert_eq!((found.tasks[0].period_ns, found.tasks[0].jobs), (None, 10));
    // All take 110 ns; that with the earliest release is listed.
    assert_eq!((job.response_ns, job.run_ns, job.preemptions), (Dur(110), Dur(100), 0));
    let report = report(&events, &Options::default());
    assert_eq!((report.periodic, report.judged, report.missed, report.worst.len()), (Some(0), Some(0), None, 0));
    let run: u64 = report.tasks[0].run.mean_ns.0;
    assert_eq!(run, (9 * 100 + 50) / 10);
}

#[test]
fn jobs_that_do_not_end_are_those_of_the_selection() {
    // Task 9 ends with its job, and task 7 runs on.
    let mut events = vec![switch(0, 7, ASLEEP, 0), switch(10, 0, PrevState::RUNNABLE, 9), switch(20, 9, ASLEEP, 0)];
    events.extend(wake(30, 0, 9));
    events.push(switch(40, 0, PrevState::RUNNABLE, 9));
    events.extend(wake(50, 9, 7));
    events.push(switch(60, 9, PrevState::DEAD, 7));
    events.push(at(70, 7, EventKind::Other { id: 1 }));
    let numbers = |options: Options<'_>| {
        let report = report(&events, &options);
        (report.open, report.cut)
    };
    let of_task = |pid| {
        let only = move |task: &sched::state::Task, _: &sched::SchedState| task.pid == Pid(pid);
        numbers(Options { tasks: Some(&only), ..Options::default() })
    };
    let of_cpu = |cpu| numbers(Options { cpus: ChosenCpus::only([Cpu(cpu)]), ..Options::default() });
    assert_eq!(numbers(Options::default()), (Some(1), Some(1)));
    assert_eq!([of_task(7), of_task(9)], [(Some(1), Some(0)), (Some(0), Some(1))]);
    assert_eq!([of_cpu(0), of_cpu(1)], [(Some(1), Some(1)), (Some(0), Some(0))]);
}

#[test]
fn adjacent_windows_add_up() {
    let events = periodic(30, 5, 950);
    let options = Options { deadline: Some(Dur(110)), ..Options::default() };
    let sums = |from: Option<i64>, to: Option<i64>| {
        let window = Window { from: from.map(Ts), to: to.map(Ts) };
        let report = measured(&events, &options, window);
        (report.jobs.expect("jobs"), report.missed.expect("misses"))
    };
    let whole = sums(None, None);
    // The edges are within jobs.
    let parts = [sums(None, Some(5500)), sums(Some(5500), Some(12_005)), sums(Some(12_005), None)];
    let all = parts.iter().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    assert_eq!((whole, all), ((30, 2), (30, 2)));
}

/// The jobs of each task by the events alone: their number, the sum of their response times and the longest one.
fn by_hand(events: &[SchedEvent]) -> BTreeMap<Pid, (u64, u64, u64)> {
    let mut found: BTreeMap<Pid, (u64, u64, u64)> = BTreeMap::new();
    // The beginnings of sleeps, the first wakings since the latest wakeups, and the releases of jobs that go on.
    let (mut asleep, mut wakings, mut released) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::<Pid, Ts>::new());
    let mut seen = BTreeSet::new();
    for event in events {
        seen.insert(event.pid);
        match event.kind {
            EventKind::Waking { task, .. } | EventKind::Wakeup { task, .. } => {
                // A task that is woken first of all slept at the start.
                if seen.insert(task.pid) {
                    asleep.insert(task.pid, Ts::MIN);
                }
                let waking = *wakings.entry(task.pid).or_insert(event.ts);
                if matches!(event.kind, EventKind::Wakeup { .. }) {
                    wakings.remove(&task.pid);
                    // The waking can come before the switch with which the task sleeps.
                    if let Some(since) = asleep.remove(&task.pid) {
                        released.insert(task.pid, waking.max(since));
                    }
                }
            }
            EventKind::Switch { prev, state, next } => {
                seen.extend([prev.pid, next.pid]);
                if state.class == StateClass::Asleep && !prev.pid.is_idle() {
                    asleep.insert(prev.pid, event.ts);
                    if let Some(release) = released.remove(&prev.pid) {
                        let response = event.ts.since(release).0;
                        let (jobs, sum, longest) = found.entry(prev.pid).or_default();
                        (*jobs, *sum, *longest) = (*jobs + 1, *sum + response, response.max(*longest));
                    }
                }
            }
            EventKind::WakeupNew { task, .. } => drop(seen.insert(task.pid)),
            _ => {}
        }
    }
    found
}

#[test]
fn jobs_of_simulated_runs_are_those_of_the_events() {
    let mut all = 0;
    for seed in 0..60 {
        let sim = Simulation::balanced(seed, 1 + (seed % 5) as u32, 400);
        let options = Options::default();
        let found = report(&sim.events, &options);
        let rows = found.tasks.iter().map(|row| (row.pid, (row.jobs, row.response.mean_ns, row.response.max_ns)));
        let expected = by_hand(&sim.events)
            .into_iter()
            .map(|(pid, (jobs, sum, longest))| (pid, (jobs, Dur(sum / jobs), Dur(longest))));
        assert_eq!(rows.collect::<BTreeMap<_, _>>(), expected.collect::<BTreeMap<_, _>>(), "seed {seed}");
        all += found.jobs.expect("jobs");
    }
    assert!(all > 1_000, "{all} jobs");
}
