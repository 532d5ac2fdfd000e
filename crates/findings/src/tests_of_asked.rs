//! Late commands, missed periods and cgroups by hand: each number follows from the times of a few events.

use crate::{Analyses, Doubts, FindingsReport, Observation, findings};
use membership::Cgroups;
use sched::{Comm, Cpu, Dur, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts};

const HOG: i32 = 8;
const FAST: i32 = 9;
const SLOW: i32 = 7;

/// Events of two CPUs, of which the tasks have these names, with times in microseconds.
struct ByHand {
    events: Vec<SchedEvent>,
    slow: &'static str,
}

impl ByHand {
    fn new(slow: &'static str) -> ByHand {
        let mut hand = ByHand { events: Vec::new(), slow };
        hand.switch(0, 0, 0, HOG, false);
        hand.switch(0, 1, 1, 0, false);
        hand
    }

    fn task(&self, pid: i32) -> TaskRef {
        let name = match pid {
            0 => "swapper",
            HOG => "hog",
            FAST => "fast",
            SLOW => self.slow,
            _ => "other",
        };
        TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) }
    }

    fn at(&mut self, us: i64, cpu: u32, pid: i32, kind: EventKind) {
        self.events.push(SchedEvent { ts: Ts(us * 1000), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind });
    }

    /// `could_run`: the previous task is preempted.
    fn switch(&mut self, us: i64, cpu: u32, prev: i32, next: i32, could_run: bool) {
        let state = if prev == 0 || could_run { PrevState::RUNNABLE } else { PrevState::asleep(1) };
        let (prev_task, next) = (self.task(prev), self.task(next));
        self.at(us, cpu, prev, EventKind::Switch { prev: prev_task, state, next });
    }

    /// A timer on the idle CPU 1 wakes a task.
    fn wake(&mut self, us: i64, woken: i32, target: u32) {
        let (task, target) = (self.task(woken), Cpu(target));
        self.at(us, 1, 0, EventKind::Waking { task, target });
        self.at(us, 1, 0, EventKind::Wakeup { task, target });
    }

    /// Wakes the slow task on CPU 0, where it waits behind the hog and runs for 1 ms.
    fn slow(&mut self, us: i64, waits: i64) {
        self.wake(us, SLOW, 0);
        self.switch(us + waits, 0, HOG, SLOW, true);
        self.switch(us + waits + 1000, 0, SLOW, HOG, false);
    }

    /// Wakes the fast task on CPU 1, which idles. It runs after 5 µs, for 5 µs.
    fn fast(&mut self, us: i64) {
        self.wake(us, FAST, 1);
        self.switch(us + 5, 1, 0, FAST, false);
        self.switch(us + 10, 1, FAST, 0, false);
    }

    fn found(&mut self, cgroups: Option<Cgroups>) -> FindingsReport {
        self.events.sort_by_key(|event| event.ts);
        let (first, last) = (self.events[0].ts, self.events[self.events.len() - 1].ts);
        let options = Analyses::of_all(first, last, 2);
        let options = match cgroups {
            Some(cgroups) => options.with_cgroups(cgroups),
            None => options,
        };
        let pass = Pass::over(self.events.as_slice());
        let outcome = pass.run(|| options.analyses()).unwrap_or_else(|never| match never {});
        findings(&options.measurements(outcome.output), &Doubts::default())
    }
}

fn of<'r, T>(report: &'r FindingsReport, pick: impl Fn(&'r Observation) -> Option<T>) -> Option<T> {
    report.findings.iter().find_map(|found| pick(&found.observation))
}

/// Twelve late wakeups of a task among 2000 fast ones.
fn late_among_fast(slow: &'static str) -> FindingsReport {
    let mut hand = ByHand::new(slow);
    (0..12).for_each(|nth| hand.slow(1000 + nth * 50_000, 10_000));
    (0..2000).for_each(|nth| hand.fast(500 + nth * 300));
    hand.found(None)
}

#[test]
fn one_late_command_among_fast_ones_is_named_with_what_held_it_up() {
    let report = late_among_fast("ui");
    let late = of(&report, |observation| match observation {
        Observation::LateCommand { latest, further, all_wakeups, all_p50_ns } => {
            Some((latest, *further, *all_wakeups, *all_p50_ns))
        }
        _ => None,
    });
    let (latest, further, all, median) = late.unwrap_or_else(|| panic!("{report:#?}"));
    assert_eq!((latest.command.as_str(), latest.wakeups, latest.late), ("ui", 12, 12));
    assert_eq!((latest.max_ns, further, all), (Some(Dur(10_000_000)), 0, 2012));
    assert!(median.is_some_and(|median| median.0.abs_diff(5000) < 100), "{median:?}");
    // It waited twelve times for 10 ms, all of that behind the hog.
    assert_eq!(latest.behind.as_deref(), Some("hog"));
    assert_eq!((latest.queued_ns, latest.behind_ns), (Dur(120_000_000), Dur(120_000_000)));
    let is_late = |found: &&crate::RankedFinding| matches!(found.observation, Observation::LateCommand { .. });
    let sentence = &report.findings.iter().find(is_late).expect("a late command").sentence;
    assert!(
        sentence.starts_with(
            "ui ran late: each of its 12 wakeups took 4 ms or longer to run, 10.00 ms in the median and at most, while"
        ),
        "{sentence}"
    );
    assert!(sentence.ends_with("100 % of its 120.00 ms in run queues were spent behind hog."), "{sentence}");
}

#[test]
fn kernel_threads_and_recorders_are_not_judged() {
    for name in ["kworker/0:1", "trace-cmd", "schedviz"] {
        let report = late_among_fast(name);
        let is_late = |observation: &Observation| match observation {
            Observation::LateCommand { .. } | Observation::SlowWakeups { .. } => Some(()),
            _ => None,
        };
        assert_eq!(of(&report, is_late), None, "{name}: {report:#?}");
    }
}

#[test]
fn missed_periods_come_first_with_the_latest_job() {
    let mut hand = ByHand::new("tick");
    // A period of 10 ms, forty times. Every eighth job takes 13 ms, and the release behind it is lost.
    let mut releases = 0;
    for nth in 0..45 {
        if nth % 9 == 8 {
            continue;
        }
        let waits = if nth % 9 == 7 { 12_000 } else { 100 };
        hand.slow(1000 + nth * 10_000, waits);
        releases += 1;
    }
    let report = hand.found(None);
    let Some(Observation::MissedPeriods { tasks, jobs, missed, pid, deadline_ns, latest, .. }) =
        report.findings.first().map(|found| &found.observation)
    else {
        panic!("{report:#?}")
    };
    assert_eq!((*tasks, *jobs, *missed, *pid), (1, releases, 5, Pid(SLOW)));
    assert_eq!(*deadline_ns, Some(Dur(10_000_000)));
    // The period is in the intervals alone, though the trace is exact.
    assert_eq!(report.findings[0].certainty, crate::Certainty::Possible);
    let latest = latest.as_ref().unwrap_or_else(|| panic!("{report:#?}"));
    assert_eq!((latest.response_ns, latest.waited_ns), (Dur(13_000_000), Dur(12_000_000)));
    assert_eq!((latest.behind, latest.behind_ns), (Some(Pid(HOG)), Dur(12_000_000)));
}

#[test]
fn a_cgroup_waits_behind_another_one() {
    let mut hand = ByHand::new("ui");
    (0..12).for_each(|nth| hand.slow(1000 + nth * 50_000, 10_000));
    let cgroups = Cgroups::listed(&[(Pid(HOG), "/noisy"), (Pid(SLOW), "/quiet")]);
    let report = hand.found(Some(cgroups));
    let Some(Observation::BehindCgroup { cgroup, behind, behind_ns, share, .. }) =
        report.findings.first().map(|found| &found.observation)
    else {
        panic!("{report:#?}")
    };
    assert_eq!((cgroup.as_str(), behind.as_deref(), *behind_ns), ("/quiet", Some("/noisy"), Dur(120_000_000)));
    assert_eq!(*share, None);
    let sentence = &report.findings[0].sentence;
    assert_eq!(sentence, "Cgroup /quiet waited 120.00 ms behind cgroup /noisy.");
    // In one cgroup they wait for one another.
    let together = Cgroups::listed(&[(Pid(HOG), "/noisy"), (Pid(SLOW), "/noisy")]);
    let report = hand.found(Some(together));
    let is_behind = |observation: &Observation| matches!(observation, Observation::BehindCgroup { .. }).then_some(());
    assert_eq!(of(&report, is_behind), None, "{report:#?}");
}
