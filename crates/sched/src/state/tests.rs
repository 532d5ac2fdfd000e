//! Every row of the table, and every contradiction, in a few lines.

use super::*;
use crate::event::{Dur, PrevState};

fn task(pid: i32) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(format!("t{pid}").as_bytes()) }
}

/// Drives a state by hand: `s.at(ns, cpu, common_pid, kind)`.
struct Drive(SchedState);

impl Drive {
    /// CPUs 0 to `n`-1, all idle at instant 0.
    fn idle(n: u32) -> Drive {
        Drive(SchedState::new(&Start { cpus: (0..n).map(|c| (Cpu(c), Current::Idle)).collect(), ..Start::default() }))
    }

    fn at(&mut self, ts: i64, cpu: u32, pid: i32, kind: EventKind) -> &mut Drive {
        self.0.apply(&SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind });
        self
    }

    fn switch(&mut self, ts: i64, cpu: u32, prev: i32, state: PrevState, next: i32) -> &mut Drive {
        self.at(ts, cpu, prev, EventKind::Switch { prev: task(prev), state, next: task(next) })
    }

    fn wakeup(&mut self, ts: i64, cpu: u32, pid: i32, target: u32) -> &mut Drive {
        self.at(ts, cpu, 0, EventKind::Wakeup { task: task(pid), target: Cpu(target) })
    }

    fn migrate(&mut self, ts: i64, pid: i32, orig: u32, dest: u32) -> &mut Drive {
        self.at(ts, dest, 0, EventKind::Migrate { task: task(pid), orig: Cpu(orig), dest: Cpu(dest) })
    }

    fn migrate_on(&mut self, ts: i64, cpu: u32, pid: i32, orig: u32, dest: u32) -> &mut Drive {
        self.at(ts, cpu, 9, EventKind::Migrate { task: task(pid), orig: Cpu(orig), dest: Cpu(dest) })
    }

    fn state(&self, pid: i32) -> Option<TaskState> {
        self.0.task_of(Pid(pid)).map(|t| t.state)
    }

    fn closed(&self, pid: i32) -> Vec<(TaskState, i64, i64)> {
        self.0.spans().iter().filter(|s| s.pid == Pid(pid)).map(|s| (s.state, s.start.0, s.end.0)).collect()
    }
}

const R: PrevState = PrevState::RUNNABLE;
const S: PrevState = PrevState::asleep(1);
const X: PrevState = PrevState::DEAD;
use TaskState::{Asleep, Running, Unknown, Waiting};

#[test]
fn switch_out_follows_prev_state() {
    for (how, after) in [
        (R, Some(Waiting(Cpu(0)))),
        (PrevState::PREEMPTED, Some(Waiting(Cpu(0)))),
        (S, Some(Asleep(Cpu(0)))),
        (X, None),
    ] {
        let mut d = Drive::idle(1);
        d.wakeup(5, 0, 7, 0).switch(10, 0, 0, R, 7).switch(20, 0, 7, how, 0);
        assert_eq!(d.state(7), after);
        assert_eq!(d.closed(7), [(Running(Cpu(0)), 10, 20)]);
        assert_eq!(d.0.current(Cpu(0)), Current::Idle);
    }
}

#[test]
fn waking_changes_nothing_but_is_remembered() {
    let mut d = Drive::idle(2);
    d.at(3, 1, 9, EventKind::Waking { task: task(7), target: Cpu(0) });
    assert_eq!(d.state(7), Some(Asleep(Cpu(0))), "its previous CPU is the target");
    let waking = |at| Some(Waking { by: Pid(9), at: Ts(at), on: Cpu(1), previous: Cpu(0) });
    assert_eq!(d.0.task_of(Pid(7)).unwrap().waking, waking(3));
    d.wakeup(5, 1, 7, 0);
    assert_eq!((d.state(7), d.0.queue_length(Cpu(0))), (Some(Waiting(Cpu(0))), 1));
    assert_eq!(d.closed(7), [(Asleep(Cpu(0)), 0, 5)], "it slept from the start");
    let remembered = |d: &Drive| d.0.task_of(Pid(7)).unwrap().waking;
    assert!(remembered(&d).is_some());
    d.switch(6, 0, 0, R, 7);
    assert_eq!(remembered(&d), None, "that one is over");
    d.at(7, 1, 9, EventKind::Waking { task: task(7), target: Cpu(0) }).wakeup(8, 1, 7, 0);
    assert_eq!(remembered(&d), None, "it was awake");
    d.at(9, 1, 9, EventKind::Waking { task: task(7), target: Cpu(0) }).switch(10, 0, 7, S, 0);
    assert_eq!(remembered(&d), waking(9), "a wakeup is still to come");
    d.wakeup(11, 1, 7, 0);
    assert_eq!(remembered(&d), waking(9));
    // The same CPU again changes nothing of the wait.
    d.wakeup(12, 1, 7, 0);
    assert_eq!((d.state(7), remembered(&d)), (Some(Waiting(Cpu(0))), waking(9)));
    // It slept unseen and was woken by a waking that is not there: that at 9 is another wakeup's.
    d.wakeup(13, 1, 7, 1);
    assert_eq!((d.state(7), remembered(&d)), (Some(Waiting(Cpu(1))), None));
    d.at(14, 1, 9, EventKind::Waking { task: task(7), target: Cpu(0) }).wakeup(15, 1, 7, 0);
    assert_eq!((d.state(7), remembered(&d)), (Some(Waiting(Cpu(0))), waking(14)));
    // In a loss it can have been woken by any.
    d.at(16, 0, 0, EventKind::Lost { count: None }).wakeup(17, 1, 7, 0);
    assert_eq!((d.state(7), remembered(&d)), (Some(Waiting(Cpu(0))), None));
}

/// A trace with wakings and without wakeups.
fn by_wakings(cpus: u32) -> Drive {
    let cpus = (0..cpus).map(|c| (Cpu(c), Current::Idle)).collect();
    let start = Start { cpus, without_wakeups: true, by_wakings: true, ..Start::default() };
    Drive(SchedState::new(&start))
}

#[test]
fn without_wakeups_a_waking_places_its_task() {
    let mut d = by_wakings(3);
    let waking = |pid, target| EventKind::Waking { task: task(pid), target: Cpu(target) };
    // On its previous CPU where nothing follows,
    d.at(3, 1, 9, waking(7, 0));
    assert_eq!(d.state(7), Some(Waiting(Cpu(0))));
    assert!(!d.0.has_placed());
    d.switch(5, 0, 0, R, 7);
    assert_eq!(d.closed(7), [(Waiting(Cpu(0)), 3, 5)]);
    d.switch(6, 0, 7, S, 0);
    // on another if the waker's next event of the scheduler shows so,
    d.at(7, 1, 9, waking(7, 0)).at(8, 1, 9, EventKind::Other { id: 1 }).migrate_on(9, 1, 7, 0, 2);
    assert_eq!((d.state(7), d.0.has_placed()), (Some(Waiting(Cpu(2))), true));
    // and a later migration is another one.
    d.migrate_on(10, 1, 7, 2, 0);
    assert_eq!((d.state(7), d.0.has_placed()), (Some(Waiting(Cpu(0))), false));
    assert_eq!(d.0.repaired(EventIssue::UnseenWakeup), 0);
}

#[test]
fn without_wakeups_a_waking_of_a_running_task_is_settled_later() {
    let waking = EventKind::Waking { task: task(7), target: Cpu(0) };
    let running = || {
        let mut d = by_wakings(2);
        d.at(1, 1, 9, waking).switch(2, 0, 0, R, 7).at(3, 1, 9, waking).switch(4, 0, 7, S, 0);
        assert_eq!(d.state(7), Some(Asleep(Cpu(0))), "it may have been awake already");
        d
    };
    // It is switched in without another waking: that one woke it.
    let mut d = running();
    d.switch(8, 0, 0, R, 7);
    assert_eq!(d.closed(7), [(Asleep(Cpu(0)), 4, 8), (Waiting(Cpu(0)), 8, 8)]);
    assert_eq!(
        d.0.task_of(Pid(7)).unwrap().waking,
        Some(Waking { by: Pid(9), at: Ts(3), on: Cpu(1), previous: Cpu(0) })
    );
    assert_eq!(d.0.repaired(EventIssue::UnseenWakeup), 0);
    // The waker migrates it: that is its placement.
    let mut d = running();
    d.migrate_on(5, 1, 7, 0, 1);
    assert_eq!(d.state(7), Some(Waiting(Cpu(1))));
    // A waking before its latest run does not count.
    let mut d = running();
    d.at(5, 1, 9, waking).switch(6, 0, 0, R, 7).switch(7, 0, 7, S, 0).switch(8, 0, 0, R, 7);
    assert_eq!(d.closed(7), [(Asleep(Cpu(0)), 7, 8)]);
    assert_eq!(d.0.repaired(EventIssue::UnseenWakeup), 1);
}

#[test]
fn without_wakeups_a_first_switch_in_tells_of_a_wait_since_the_start() {
    let mut d = by_wakings(1);
    d.switch(3, 0, 0, R, 7);
    assert_eq!(d.0.discovered(), [(task(7), Cpu(0))]);
}

#[test]
fn early_wakeups_and_corrections() {
    let mut d = Drive::idle(2);
    d.wakeup(1, 0, 7, 0).switch(2, 0, 0, R, 7).wakeup(3, 1, 7, 1);
    assert_eq!(d.state(7), Some(Running(Cpu(0))));
    assert_eq!(d.0.repaired(EventIssue::EarlyWakeup), 1);
    d.wakeup(4, 0, 8, 0).wakeup(5, 0, 8, 0).wakeup(6, 0, 8, 1);
    assert_eq!(d.state(8), Some(Waiting(Cpu(1))));
    assert_eq!(d.0.repaired(EventIssue::WakeupTargetCorrected), 1);
}

#[test]
fn a_wait_where_nothing_was_recorded_has_no_end() {
    let mut d = Drive::idle(2);
    let flags = |d: &Drive| d.0.spans().iter().map(|s| (s.state, s.begun, s.ended)).collect::<Vec<_>>();
    d.wakeup(1, 0, 7, 5).migrate(2, 7, 5, 1);
    assert_eq!(flags(&d), [(Waiting(Cpu(5)), true, false)], "it may have run on CPU 5");
    assert_eq!(d.0.repaired(EventIssue::UnseenQueue), 0, "or been there only for a moment");
    d.switch(3, 1, 0, R, 7);
    assert_eq!(flags(&d), [(Waiting(Cpu(1)), false, true)], "and this may be a part of its wait");
    d.switch(4, 1, 7, R, 0);
    assert_eq!(flags(&d), [(Running(Cpu(1)), true, true)]);
    d.wakeup(5, 1, 7, 5).migrate(1_000_005, 7, 5, 1);
    assert_eq!(d.0.repaired(EventIssue::UnseenQueue), 1, "CPU 5 would have run it");
    assert!(d.0.is_observed(Cpu(1)) && !d.0.is_observed(Cpu(5)) && !d.0.is_observed(Cpu(999)));
}

#[test]
fn who_ran_from_the_start_on_is_named_by_its_switch() {
    let start =
        Start { cpus: vec![(Cpu(0), Current::Task(Pid(7))), (Cpu(1), Current::Task(Pid(8)))], ..Start::default() };
    let mut d = Drive(SchedState::new(&start));
    assert_eq!(d.0.running(Cpu(0)).map(|t| (t.comm, t.known_prio())), Some((Comm::EMPTY, None)));
    // A task that executes a program before any event has named it has the name of the program before as well.
    let make = Comm::new(b"make");
    d.at(1, 1, 8, EventKind::Exec { pid: Pid(8), old_pid: Pid(8), program: make });
    assert_eq!(d.0.running(Cpu(1)).map(|t| (t.comm, t.known_prio())), Some((make, None)), "an exec has no priority");
    assert!(d.0.cpu_spans().is_empty(), "its run goes on under one name: {:?}", d.0.cpu_spans());
    assert!(d.0.spans().is_empty(), "its run goes on");
    d.switch(2, 0, 7, R, 0).switch(3, 1, 8, R, 0).switch(4, 0, 0, R, 7).switch(5, 0, 7, R, 0);
    let by_program = TaskRef { pid: Pid(8), prio: Task::NO_PRIO, comm: make };
    assert_eq!(d.0.named(), [by_program, task(7)]);
    let again = SchedState::new(&Start { named: d.0.named().to_vec(), ..start });
    let named = again.running(Cpu(0)).expect("it runs");
    assert_eq!((named.pid, named.comm, named.known_prio()), (Pid(7), task(7).comm, Some(task(7).prio)));
    assert_eq!(again.running(Cpu(1)).map(|t| (t.comm, t.known_prio())), Some((make, None)));
    let twice = Start {
        cpus: vec![(Cpu(0), Current::Task(Pid(7))), (Cpu(1), Current::Task(Pid(7)))],
        named: vec![task(7)],
        ..Start::default()
    };
    let twice = SchedState::new(&twice);
    assert_eq!([Cpu(0), Cpu(1)].map(|cpu| twice.running(cpu).is_some()), [false, true], "a task runs in one place");
}

#[test]
fn what_was_not_recorded_shows_in_what_was() {
    let start = Start {
        cpus: vec![(Cpu(0), Current::Unknown), (Cpu(1), Current::Unknown)],
        without_wakeups: true,
        ..Start::default()
    };
    let mut d = Drive(SchedState::new(&start));
    d.switch(1, 0, 0, R, 7).switch(2, 0, 7, R, 0);
    assert_eq!(d.0.missing(), [""; 0], "too little evidence");
    // Four times it waits on one CPU, and runs on the other.
    for n in 0..2 {
        let ts = 10 * n;
        d.switch(ts + 3, 1, 0, R, 7).switch(ts + 4, 1, 7, R, 0);
        d.switch(ts + 5, 0, 0, R, 7).switch(ts + 6, 0, 7, R, 0);
    }
    assert_eq!(d.0.missing(), ["sched_wakeup", "sched_migrate_task"]);
    let found = d.0.diagnostics();
    let missing = crate::EventIssue::MissingEvents;
    assert_eq!((found.count(missing), found.detail(missing)), (2, Some("sched_wakeup, sched_migrate_task")));
    let mut d = Drive::idle(1);
    for pid in 10..14 {
        d.at(1, 0, 0, EventKind::Fork { parent: Pid(1), child: Pid(pid), child_comm: Comm::EMPTY })
            .wakeup(2, 0, pid, 0);
    }
    assert_eq!(d.0.missing(), ["sched_wakeup_new", "sched_waking"]);
}

#[test]
fn a_new_task_is_a_new_life() {
    let mut d = Drive::idle(1);
    d.wakeup(1, 0, 7, 0);
    let old = d.0.task_of(Pid(7)).unwrap().id();
    d.at(2, 0, 0, EventKind::Fork { parent: Pid(1), child: Pid(7), child_comm: Comm::EMPTY });
    d.at(3, 0, 0, EventKind::WakeupNew { task: task(7), target: Cpu(0) });
    let new = d.0.task_of(Pid(7)).unwrap();
    assert_ne!(new.id(), old);
    assert_eq!((new.state, new.born), (Waiting(Cpu(0)), Some(Ts(3))));
    assert_eq!((d.0.repaired(EventIssue::UnseenExit), d.0.queue_length(Cpu(0))), (1, 1));
    assert!(d.0.kin(Pid(7)).forked);
}

#[test]
fn migration_moves_waiters_only() {
    let mut d = Drive::idle(3);
    d.wakeup(1, 0, 7, 0).migrate(2, 7, 0, 1);
    assert_eq!((d.0.queue_length(Cpu(0)), d.0.queue_length(Cpu(1))), (0, 1));
    assert_eq!(d.closed(7), [(Waiting(Cpu(0)), 1, 2)]);
    d.migrate(3, 7, 0, 2);
    assert_eq!((d.state(7), d.0.repaired(EventIssue::MigrateOrigMismatch)), (Some(Waiting(Cpu(2))), 1));
    d.switch(4, 2, 0, R, 7).migrate(5, 7, 2, 0);
    assert_eq!((d.state(7), d.0.repaired(EventIssue::MigrateRunning)), (Some(Running(Cpu(2))), 1));
    d.switch(6, 2, 7, S, 0).migrate(7, 7, 2, 0);
    assert_eq!(d.state(7), Some(Asleep(Cpu(0))));
    assert!(d.closed(7).is_empty(), "asleep, only its last CPU changes");
}

#[test]
fn exec_by_a_thread_renames_it() {
    let mut d = Drive::idle(1);
    d.wakeup(1, 0, 10, 0).wakeup(1, 0, 11, 0).switch(2, 0, 0, R, 10).switch(3, 0, 10, X, 11);
    d.at(5, 0, 10, EventKind::Exec { pid: Pid(10), old_pid: Pid(11), program: Comm::EMPTY });
    assert_eq!((d.state(10), d.state(11)), (Some(Running(Cpu(0))), None));
    assert_eq!(d.0.current(Cpu(0)), Current::Task(Pid(10)));
    d.switch(6, 0, 10, S, 0);
    assert_eq!(d.0.repaired(EventIssue::SwitchPrevMismatch), 0);
}

/// Found by fuzzing: the thread that gave its number away stayed the current of a CPU, dead.
#[test]
fn exec_while_both_run_leaves_no_dead_task_running() {
    let mut d = Drive::idle(2);
    d.wakeup(1, 0, 10, 0).wakeup(1, 0, 11, 1).switch(2, 0, 0, R, 10).switch(3, 1, 0, R, 11);
    d.at(5, 0, 10, EventKind::Exec { pid: Pid(10), old_pid: Pid(11), program: Comm::EMPTY });
    assert_eq!((d.state(10), d.state(11)), (Some(Running(Cpu(0))), None));
    assert_eq!(d.0.current(Cpu(1)), Current::Unknown);
}

#[test]
fn a_switch_from_somebody_else_starts_over() {
    let mut d = Drive::idle(1);
    d.wakeup(1, 0, 7, 0).switch(2, 0, 0, R, 7).switch(5, 0, 8, S, 0);
    assert_eq!((d.state(7), d.state(8)), (Some(Unknown), Some(Asleep(Cpu(0)))));
    assert_eq!(d.0.repaired(EventIssue::SwitchPrevMismatch), 1);
}

#[test]
fn unseen_migration_wakeup_and_double_running() {
    let mut d = Drive::idle(2);
    d.wakeup(1, 0, 7, 0).switch(2, 1, 0, R, 7);
    assert_eq!((d.0.repaired(EventIssue::UnseenMigration), d.0.queue_length(Cpu(0))), (1, 0));
    d.switch(3, 1, 7, S, 0).switch(4, 0, 0, R, 7);
    assert_eq!(d.0.repaired(EventIssue::UnseenWakeup), 1);
    d.switch(5, 1, 0, R, 7);
    assert_eq!(d.0.repaired(EventIssue::RunningElsewhere), 1);
    assert_eq!((d.0.current(Cpu(0)), d.0.current(Cpu(1))), (Current::Unknown, Current::Task(Pid(7))));
}

#[test]
fn loss_makes_unknown_until_the_next_event() {
    let mut d = Drive::idle(2);
    d.wakeup(1, 0, 7, 0).switch(2, 0, 0, R, 7).wakeup(3, 0, 8, 0).wakeup(3, 1, 9, 1);
    d.at(3, 0, 0, EventKind::Lost { count: Some(crate::LostCount::of(5)) });
    assert_eq!((d.state(7), d.state(8), d.state(9)), (Some(Unknown), Some(Unknown), Some(Waiting(Cpu(1)))));
    assert_eq!((d.0.current(Cpu(0)), CpuCounts::of(&d.0).unknown), (Current::Unknown, 1));
    d.at(50, 0, 8, EventKind::Other { id: 1 });
    assert_eq!((d.state(8), d.0.current(Cpu(0))), (Some(Running(Cpu(0))), Current::Task(Pid(8))));
    assert_eq!(d.0.gaps(), [(Cpu(0), 1, 47)]);
    d.switch(60, 0, 8, S, 6);
    assert!(d.0.discovered().is_empty(), "after a loss no task is known to have waited from the start");
}

#[test]
fn first_seen_running_means_waited_from_the_start() {
    let mut d = Drive::idle(2);
    d.switch(5, 0, 0, R, 7).migrate(6, 8, 0, 1).switch(7, 1, 0, R, 8).migrate(8, 9, 0, 1).wakeup(9, 0, 9, 1);
    assert_eq!(d.0.discovered(), [(task(7), Cpu(0)), (task(8), Cpu(0))]);
    assert_eq!(d.closed(9), [(Asleep(Cpu(1)), 0, 9)], "migrated asleep");
}

#[test]
fn who_would_have_waited_while_its_cpu_became_idle_came_later() {
    let mut d = Drive::idle(2);
    // 7 waited: CPU 0 idled from the start on, and goes to it first. Then it has nothing more to do.
    d.switch(5, 0, 0, R, 7).switch(6, 0, 7, S, 0);
    // Therefore 8 was not there; nor 9, which was moved away from there.
    d.switch(7, 0, 0, R, 8).migrate(8, 9, 0, 1).switch(9, 1, 0, R, 9);
    // 6 was, since CPU 1 had something to do all along when it was moved away.
    d.switch(10, 1, 9, R, 6);
    assert_eq!(d.0.discovered(), [(task(7), Cpu(0)), (task(6), Cpu(1))]);
    assert_eq!(d.0.repaired(EventIssue::UnseenWakeup), 2);
    assert!(d.0.is_incomplete(|| false) && !d.0.is_incomplete(|| true), "two came, and no beginning was recorded");
}

#[test]
fn who_waits_where_a_cpu_becomes_idle_left_unseen_if_anything_did() {
    let mut d = Drive::idle(2);
    d.wakeup(1, 0, 7, 0).switch(2, 0, 0, R, 7).wakeup(3, 0, 8, 0).switch(4, 0, 7, S, 0);
    assert_eq!((d.state(8), d.0.queue_length(Cpu(0))), (Some(Waiting(Cpu(0))), 1), "it is throttled");
    d.at(5, 1, 0, EventKind::Lost { count: Some(crate::LostCount::of(1)) }).switch(6, 0, 0, R, 7).switch(7, 0, 7, R, 0);
    assert_eq!(d.0.queue_length(Cpu(0)), 2, "both are: the first one would have gone on");
    d.switch(8, 0, 0, R, 7).switch(9, 0, 7, S, 0);
    assert_eq!((d.state(8), d.0.queue_length(Cpu(0))), (Some(Unknown), 0));
    assert_eq!(d.0.repaired(EventIssue::UnseenDeparture), 1);
}

#[test]
fn a_forked_child_did_not_exist_at_the_start() {
    let mut d = Drive::idle(1);
    d.at(4, 0, 0, EventKind::Fork { parent: Pid(1), child: Pid(7), child_comm: Comm::EMPTY });
    d.switch(5, 0, 0, R, 7);
    assert!(d.0.discovered().is_empty());
    assert_eq!(d.closed(7), [(Unknown, 5, 5)], "its life begins here");
}

#[test]
fn queues_keep_their_order_and_counts_agree() {
    let mut d = Drive::idle(2);
    d.wakeup(1, 0, 1, 0).wakeup(2, 0, 2, 0).wakeup(3, 0, 3, 0).migrate(4, 2, 0, 1).migrate(5, 2, 1, 0);
    let order: Vec<i32> = d.0.waiting(Cpu(0)).map(|t| t.pid.0).collect();
    assert_eq!(order, [1, 3, 2]);
    let c = CpuCounts::of(&d.0);
    assert_eq!((c.idle, c.switch_pending, c.waiting, c.waiting_overloaded), (1, 1, 3, 0));
    d.switch(6, 0, 0, R, 1);
    let c = CpuCounts::of(&d.0);
    assert_eq!((c.idle, c.overloaded, c.running(), c.waiting_overloaded), (1, 1, 1, 2));
}

#[test]
fn closing_censors_what_is_open() {
    let mut d = Drive::idle(1);
    d.wakeup(1, 0, 7, 0).switch(2, 0, 0, R, 7);
    d.0.close(Ts(10));
    let spans: Vec<_> = d.0.spans().iter().map(|s| (s.state, s.duration(), s.begun, s.ended)).collect();
    assert_eq!(spans, [(Running(Cpu(0)), Dur(8), true, false)]);
    assert_eq!(d.0.cpu_spans().len(), 1);
}

#[test]
fn what_turns_out_in_a_loss_began_and_ended_unseen() {
    let mut d = Drive::idle(2);
    d.wakeup(1, 1, 7, 1).switch(2, 1, 0, R, 7).switch(3, 1, 7, R, 8).at(4, 0, 0, EventKind::Lost { count: None });
    let ends = |d: &Drive| d.0.spans().iter().map(|s| (s.state, s.begun, s.ended)).collect::<Vec<_>>();
    // It was taken there, and ran, unseen.
    d.at(10, 0, 7, EventKind::Other { id: 1 });
    assert_eq!(ends(&d), [(Waiting(Cpu(1)), true, false)]);
    d.switch(12, 0, 7, S, 0);
    assert_eq!(ends(&d), [(Running(Cpu(0)), false, true)]);
    d.at(14, 0, 0, EventKind::Lost { count: None }).switch(20, 0, 7, S, 0);
    // Nor was it seen to wake; that it slept then was.
    assert_eq!(ends(&d), [(Asleep(Cpu(0)), true, false), (Running(Cpu(0)), false, true)]);
    d.switch(30, 0, 0, R, 7);
    // Its wakeup was not seen, only its switch-in.
    assert_eq!(ends(&d), [(Asleep(Cpu(0)), true, false)]);
    d.at(33, 0, 7, EventKind::Lost { count: None });
    assert_eq!(ends(&d), [(Running(Cpu(0)), true, false)]);
}
