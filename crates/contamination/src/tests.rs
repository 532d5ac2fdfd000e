use crate::{Contaminated, OutsideWork, Outsiders, contaminated, factor};
use sched::{Comm, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef};
use testkit::{Operation, Rng, Worker, Workload};

/// A run of an application of four tasks on four CPUs for 16 ms, with a daemon that wakes up for at most 100 µs at random; and with
/// a job that burns a CPU for `job` ms in the middle of it.
fn run(seed: u64, job: i64) -> Option<OutsideWork> {
    let mut rng = Rng::new(seed);
    let mut workers = Vec::new();
    for cpu in 0..4 {
        let mut program = Vec::new();
        for _ in 0..4 {
            program.push(Operation::Run(3_000_000 + rng.below(500_000) as i64));
            program.push(Operation::Nap(500_000 + rng.below(500_000) as i64));
        }
        workers.push(Worker::on(cpu, program));
    }
    let mut naps = Vec::new();
    for _ in 0..3 {
        naps.push(Operation::Nap(1 + rng.below(8_000_000) as i64));
        naps.push(Operation::Run(1 + rng.below(100_000) as i64));
    }
    workers.push(Worker::on(rng.below(4), naps));
    if job > 0 {
        let begins = Operation::Nap(2_000_000 + rng.below(5_000_000) as i64);
        workers.push(Worker::on(rng.below(4), vec![begins, Operation::Run(job * 1_000_000)]));
    }
    let events = as_application(Workload { cpus: 4, workers, steal: None }.run());
    Pass::over(events.as_slice()).run(Outsiders::default).unwrap_or_else(|never| match never {}).output
}

/// Makes the first task of the work the root of an application, which forks the next three, and names the others.
fn as_application(mut events: Vec<SchedEvent>) -> Vec<SchedEvent> {
    let rename = |task: &mut TaskRef| match task.pid.0 {
        104 => task.comm = Comm::new(b"daemon"),
        105 => task.comm = Comm::new(b"backup"),
        _ => {}
    };
    for event in &mut events {
        match &mut event.kind {
            EventKind::Switch { prev, next, .. } => [prev, next].into_iter().for_each(rename),
            EventKind::Waking { task, .. } | EventKind::Wakeup { task, .. } => rename(task),
            _ => {}
        }
    }
    let first =
        events.iter().position(|event| matches!(event.kind, EventKind::Switch { next, .. } if next.pid == Pid(100)));
    let at = first.expect("the first task runs") + 1;
    let like = events[at - 1];
    let of = |kind| SchedEvent { pid: Pid(100), kind, ..like };
    let name = Comm::new(b"worker0");
    let forks = (101..104).map(|child| EventKind::Fork { parent: Pid(100), child: Pid(child), child_comm: name });
    let exec = EventKind::Exec { pid: Pid(100), old_pid: Pid(100), program: name };
    let added: Vec<SchedEvent> = std::iter::once(exec).chain(forks).map(of).collect();
    events.splice(at..at, added);
    events
}

fn judge(runs: &[Option<OutsideWork>]) -> Vec<Contaminated> {
    contaminated(&runs.iter().map(Option::as_ref).collect::<Vec<_>>())
}

#[test]
fn a_job_in_one_of_ten_runs_is_named_and_clean_runs_are_not() {
    let (mut named, mut quiet) = (0, 0);
    for trial in 0..40 {
        let with_job = trial as usize % 10;
        let seed = |run: usize| 1 + 1000 * trial + run as u64;
        let runs: Vec<_> = (0..10).map(|at| run(seed(at), if at == with_job { 5 } else { 0 })).collect();
        let found = judge(&runs);
        named += usize::from(matches!(&found[..], [of] if of.run == with_job && of.culprit == "backup"));
        let clean: Vec<_> = (0..10).map(|at| run(seed(at + 20), 0)).collect();
        quiet += usize::from(judge(&clean).is_empty());
    }
    println!("{named} of 40 named, {quiet} of 40 quiet");
    assert!(named >= 38 && quiet >= 38, "{named} of 40 named, {quiet} of 40 quiet");
}

#[test]
fn the_work_outside_is_that_of_the_job() {
    let (clean, with_job) = (run(7, 0).expect("an application"), run(7, 5).expect("an application"));
    let job = with_job.commands.iter().find(|command| command.command == "backup").expect("the job");
    assert_eq!(job.run_ns.0, 5_000_000);
    assert!(
        job.wait_ns.0 > 0 && clean.commands.iter().all(|command| command.command == "daemon"),
        "{with_job:?} {clean:?}"
    );
    assert!(clean.application_run_ns.0 > 4 * 12_000_000 && clean.run_ns.0 < 300_000, "{clean:?}");
    assert_eq!(with_job.run_ns.0, with_job.commands.iter().map(|command| command.run_ns.0).sum::<u64>());
}

/// On one CPU `a` of the application runs from 0 to 10, is preempted by a task of that name until 30, and runs on until 40; a second task
/// of it waits from 20 on.
fn preempted_by(name: &str) -> OutsideWork {
    let task = |pid: i32, name: &str| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) };
    let (idle, a, b, x) = (task(0, "swapper/0"), task(1, "a"), task(2, "a"), task(3, name));
    let at =
        |ns: i64, pid: i32, kind| SchedEvent { ts: sched::Ts(ns), cpu: sched::Cpu(0), pid: Pid(pid), flags: 0, kind };
    let program = Comm::new(b"a");
    let events = vec![
        at(0, 0, EventKind::Switch { prev: idle, state: PrevState::RUNNABLE, next: a }),
        at(0, 1, EventKind::Exec { pid: Pid(1), old_pid: Pid(1), program }),
        at(2, 1, EventKind::Fork { parent: Pid(1), child: Pid(2), child_comm: program }),
        at(5, 1, EventKind::Wakeup { task: x, target: sched::Cpu(0) }),
        at(10, 1, EventKind::Switch { prev: a, state: PrevState::PREEMPTED, next: x }),
        at(20, 3, EventKind::WakeupNew { task: b, target: sched::Cpu(0) }),
        at(30, 3, EventKind::Switch { prev: x, state: PrevState::asleep(1), next: a }),
        at(40, 1, EventKind::Switch { prev: a, state: PrevState::asleep(1), next: b }),
        at(50, 2, EventKind::Switch { prev: b, state: PrevState::asleep(1), next: idle }),
    ];
    let work = Pass::over(events.as_slice()).run(Outsiders::default).unwrap_or_else(|never| match never {}).output;
    work.expect("an application")
}

#[test]
fn waiting_and_preemptions_by_hand() {
    let work = preempted_by("x7");
    assert_eq!((work.run_ns.0, work.wait_ns.0, work.preemptions, work.application_run_ns.0), (20, 30, 1, 30));
    assert_eq!(work.commands[0].command, "x7");
    assert_eq!((work.recorder_run_ns.0, work.recorder_wait_ns.0, work.recorder_preemptions), (0, 0, 0));
}

/// The work of a recorder grows with the events of a run: it is named apart, and no run is judged by it.
#[test]
fn the_recorder_contaminates_no_run() {
    let work = preempted_by("trace-cmd");
    assert_eq!((work.recorder_run_ns.0, work.recorder_wait_ns.0, work.recorder_preemptions), (20, 30, 1));
    assert_eq!((work.run_ns.0, work.wait_ns.0, work.preemptions, work.commands.len()), (0, 0, 0, 0));
    let with = |recorder: u64| {
        let recorder_run_ns = sched::Dur(recorder * 1_000_000);
        Some(OutsideWork { length_ns: sched::Dur(500_000_000), recorder_run_ns, ..work.clone() })
    };
    assert!(judge(&[with(8), with(9), with(8), with(9), with(90)]).is_empty());
}

/// The factor for three runs is that of 2 / (2 + factor) = 2.5 %, and four contaminated runs of ten are found as well as one.
#[test]
fn factors_by_hand() {
    assert!((factor(3) - 78.0).abs() < 1e-6 && factor(10) < 3.0 && factor(10) > 2.0, "{}", factor(10));
    let runs: Vec<_> = (0..10).map(|at| run(50 + at, if at % 3 == 0 { 6 } else { 0 })).collect();
    let found: Vec<usize> = judge(&runs).iter().map(|of| of.run).collect();
    assert_eq!(found, [0, 3, 6, 9]);
    assert!(judge(&runs[..3]).is_empty());
}
