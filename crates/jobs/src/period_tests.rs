//! Periods of a real load that misses its deadlines, and of made ones.

use crate::ended::EndedJob;
use crate::period::period;
use crate::{Jobs, JobsReport, Options};
use sched::{Comm, Cpu, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts};
use testkit::Rng;

/// The jobs of two threads of `cyclictest -t4 -i 2000` beside four hogs, in a virtual machine whose CPUs stall: the intervals between releases,
/// and the response times, by the lines of `sched_waking` and `sched_switch`. The first of the threads has a period of 2 ms, the fourth one of 3.5 ms.
const CYCLICTEST: &str = include_str!("cyclictest.csv");

fn task(pid: i32, name: &[u8]) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 19, comm: Comm::new(name) }
}

/// The events of one thread alone: each job begins with the interrupt of its timer.
fn events_of(thread: i32, name: &[u8]) -> Vec<SchedEvent> {
    let (idle, task, target) = (task(0, b"swapper/0"), task(thread, name), Cpu(0));
    let event = |ts, pid, flags, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid, flags, kind };
    let switch = |ts, prev: TaskRef, state, next| event(ts, prev.pid, 0, EventKind::Switch { prev, state, next });
    let mut events = vec![switch(0, task, PrevState::asleep(1), idle)];
    let mut at = 0;
    for line in CYCLICTEST.lines().skip(1) {
        let numbers: Vec<i64> = line.split(',').map(|number| number.parse().expect("a number")).collect();
        let [pid, interval, response] = numbers[..] else { panic!("{line}") };
        if pid != i64::from(thread) {
            continue;
        }
        at += interval * 1000;
        events.push(event(at, Pid::IDLE, 0x09, EventKind::Waking { task, target }));
        events.push(event(at + 1, Pid::IDLE, 0x09, EventKind::Wakeup { task, target }));
        events.push(switch(at + 2, idle, PrevState::RUNNABLE, task));
        events.push(switch(at + response * 1000, task, PrevState::asleep(1), idle));
    }
    events
}

fn report(events: &[SchedEvent], options: &Options<'_>) -> JobsReport {
    Pass::over(events).run(|| Jobs::new(options)).unwrap_or_else(|never| match never {}).output
}

/// The quartiles of these intervals lie apart by more than the period.
#[test]
fn deadlines_that_a_loaded_machine_misses_are_counted() {
    for (thread, period, jobs, missed) in [(359, 2_000_000, 1393, 170), (362, 3_500_000, 1263, 71)] {
        let report = report(&events_of(thread, b"cyclictest"), &Options::default());
        let row = &report.tasks[0];
        let found = row.period_ns.expect("a period").0;
        assert!(found.abs_diff(period) * 100 < period, "{thread}: {found}");
        assert_eq!((row.jobs, row.missed), (jobs, Some(missed)), "{thread}");
        assert_eq!((report.periodic, report.judged, report.missed), (Some(1), Some(jobs), Some(missed)));
    }
}

#[test]
fn a_thread_of_the_kernel_has_no_period_and_nothing_is_judged() {
    let events = events_of(359, b"kcompactd0");
    let found = report(&events, &Options::default());
    assert_eq!((found.periodic, found.judged, found.missed), (Some(0), Some(0), None));
    assert_eq!((found.tasks[0].period_ns, found.tasks[0].missed), (None, None));
    // A deadline that is given is judged.
    let options = Options { deadline: Some(Dur(2_000_000)), ..Options::default() };
    assert_eq!(report(&events, &options).missed, Some(170));
}

/// Jobs with these intervals between their releases.
fn jobs(intervals: impl IntoIterator<Item = u64>, by_interrupt: bool) -> Vec<EndedJob> {
    let mut at = 0;
    let job = |interval| {
        at += interval as i64;
        EndedJob { release: Ts(at), by_interrupt, by_expiry: false, response: Dur(1), run: Dur(1), waited: Dur(0) }
    };
    intervals.into_iter().map(job).collect()
}

#[test]
fn a_task_that_passes_over_most_of_its_releases_has_its_period() {
    // Two of three intervals are twice the period, with 2 % around each.
    let intervals = |nth: u64| 1000 * if nth.is_multiple_of(3) { 1000 } else { 2000 } + nth * 7919 % 20_000;
    let found = period(&jobs((0..90).map(intervals), true)).expect("a period").0;
    assert!((1_000_000..1_020_000).contains(&found), "{found}");
    // Woken by tasks, uneven intervals are no period.
    assert_eq!(period(&jobs((0..90).map(intervals), false)), None);
}

/// The VM thread of Java naps for 1 ms at a time while a safepoint begins, and sleeps for seconds otherwise.
#[test]
fn naps_that_cover_hardly_any_of_its_time_are_no_period() {
    let naps =
        |between: u64| (0..120).map(move |nth: u64| if nth.is_multiple_of(10) { between } else { 1000 + nth % 7 });
    // 119 ms in twelve groups of nine: of 12 s, and of 0.8 s.
    assert_eq!(period(&jobs(naps(1_000_000), true)), None);
    assert!(period(&jobs(naps(60_000), true)).is_some_and(|period| (1000..1007).contains(&period.0)));
}

#[test]
fn intervals_by_chance_have_no_period() {
    let (mut rng, mut found) = (Rng::new(61), 0);
    for nth in 0..400 {
        let number = [12, 40, 200, 1000][nth % 4];
        let uniform = nth % 8 < 4;
        let intervals: Vec<u64> = (0..number)
            .map(|_| {
                let chance = (rng.below(1_000_000) + 1) as f64 / 1e6;
                (1e6 * if uniform { 5.0 * chance } else { -chance.ln() }) as u64
            })
            .collect();
        found += usize::from(period(&jobs(intervals, true)).is_some());
    }
    assert!(found <= 8, "{found} of 400");
}

#[test]
fn a_few_even_intervals_are_a_period_whatever_wakes_the_task() {
    assert_eq!(period(&jobs([0, 990, 1000, 1010, 1000, 2000, 1005, 995, 1000], false)), Some(Dur(1000)));
    assert_eq!(period(&jobs([0, 990, 1000, 1010, 1000, 2000, 1005, 995], false)), None);
    assert_eq!(period(&jobs(vec![0; 100], true)), None);
    assert_eq!(period(&jobs([0, u64::MAX / 4, u64::MAX / 4], true)), None);
}
