//! The critical path within sleeps: a waker explains the sleep that it ended, and nothing before it.

use crate::path::{Piece, at, idle, path_of, pieces, task, tiles};
use SegmentKind::{Queued, Running, Sleeping, Waking};
use path::{CriticalPath, Options, Path, SegmentKind};
use sched::{Comm, Cpu, EventKind as Event, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts, Window};

/// Tasks with these numbers run on CPUs 0, 1, ... from 0 on; the CPUs behind them idle.
fn start(tasks: &[i32], cpus: u32) -> Vec<SchedEvent> {
    let current = |cpu: u32| tasks.get(cpu as usize).copied().unwrap_or(0);
    (0..cpus).map(|cpu| at(0, cpu, current(cpu), Event::Other { id: 1 })).collect()
}

fn other(pid: i32) -> TaskRef {
    if pid == 0 { idle() } else { task(pid) }
}

/// `from` sleeps on a CPU, and `to` runs there; 0 is the idle task.
fn sleeps(ts: i64, cpu: u32, from: i32, to: i32) -> SchedEvent {
    at(ts, cpu, from, Event::Switch { prev: task(from), state: PrevState::asleep(1), next: other(to) })
}

/// `from`, which stays runnable, gives way to `to`.
fn gives_way(ts: i64, cpu: u32, from: i32, to: i32) -> SchedEvent {
    at(ts, cpu, from, Event::Switch { prev: other(from), state: PrevState::RUNNABLE, next: other(to) })
}

/// `by` on a CPU announces the wakeup of `pid`, and one nanosecond later queues it on `target`.
fn wakes(ts: i64, cpu: u32, by: i32, pid: i32, target: u32) -> [SchedEvent; 2] {
    let target = Cpu(target);
    [
        at(ts, cpu, by, Event::Waking { task: task(pid), target }),
        at(ts + 1, cpu, by, Event::Wakeup { task: task(pid), target }),
    ]
}

/// The same by an interrupt on that CPU.
fn interrupt_wakes(ts: i64, cpu: u32, on: i32, pid: i32, target: u32) -> [SchedEvent; 2] {
    wakes(ts, cpu, on, pid, target).map(|event| SchedEvent { flags: 0x08, ..event })
}

fn exits(ts: i64, cpu: u32, pid: i32) -> SchedEvent {
    at(ts, cpu, pid, Event::Exit { pid: Pid(pid) })
}

/// The path of a task over these events in the order of time, which tiles.
fn found(parts: &[&[SchedEvent]], pid: i32) -> Path {
    let mut events = parts.concat();
    events.sort_by_key(|event| event.ts);
    let path = path_of(&events, Some(pid));
    tiles("by hand", &path);
    path
}

fn sleepers(path: &Path) -> Vec<Option<i32>> {
    path.path.iter().map(|segment| segment.sleeper.map(|pid| pid.0)).collect()
}

/// The sleeps by both tasks: their number, the time, the queued time, and the number of those that were held up.
fn sleeps_of(path: &Path) -> Vec<(i32, i32, u64, u64, u64, u64)> {
    let row = |row: &path::SleepsUntil| {
        (row.task.pid.0, row.until.pid.0, row.sleeps, row.slept_ns, row.queued_ns, row.held_up.sleeps)
    };
    path.sleeps.iter().map(row).collect()
}

/// 5 waits for a lock that 6 holds; 6, which has run for long, is preempted by 7 meanwhile.
#[test]
fn a_lock_holder_that_is_preempted_explains_the_wait_for_the_lock_alone() {
    let events =
        [sleeps(40, 0, 5, 0), gives_way(50, 1, 6, 7), sleeps(70, 1, 7, 6), exits(100, 0, 5), gives_way(83, 0, 0, 5)];
    let path = found(&[&start(&[5, 6], 2), &events, &wakes(30, 1, 6, 7, 1), &wakes(80, 1, 6, 5, 0)], 5);
    let expected = [
        (Running, 5, Some(0), 0, 40),
        (Running, 6, Some(1), 40, 50),
        (Queued, 6, Some(1), 50, 70),
        (Running, 6, Some(1), 70, 80),
        (Waking, 5, None, 80, 81),
        (Queued, 5, Some(0), 81, 83),
        (Running, 5, Some(0), 83, 100),
    ];
    assert_eq!(pieces(&path), expected);
    assert_eq!(sleepers(&path), [None, Some(5), Some(5), Some(5), None, None, None]);
    assert_eq!((path.handovers, path.depth), (Some(1), Some(1)));
    // CPU 0 idles while 6 waits.
    assert_eq!((path.times.queued_ns, path.times.queued_beside_idle_ns), (22, 20));
    // 6 explains 40 ns of the sleep, in 20 of which it is queued: half of it.
    assert_eq!(sleeps_of(&path), [(5, 6, 1, 40, 20, 1)]);
}

/// 5 sleeps from 10 to 90 and is woken by 6, which sleeps from 30 to 70 and is woken by 7, which slept from 20 to 50 until an interrupt.
fn nested() -> Vec<SchedEvent> {
    let events = [
        sleeps(10, 0, 5, 0),
        sleeps(20, 2, 7, 0),
        sleeps(30, 1, 6, 0),
        gives_way(53, 2, 0, 7),
        gives_way(75, 1, 0, 6),
        gives_way(94, 0, 0, 5),
        exits(100, 0, 5),
    ];
    let wakeups = [interrupt_wakes(50, 2, 0, 7, 2), wakes(70, 2, 7, 6, 1), wakes(90, 1, 6, 5, 0)].concat();
    let mut events = [start(&[5, 6, 7], 3), events.to_vec(), wakeups].concat();
    events.sort_by_key(|event| event.ts);
    events
}

const NESTED: [Piece; 12] = [
    (Running, 5, Some(0), 0, 10),
    (Running, 6, Some(1), 10, 30),
    (Sleeping, 7, None, 30, 50),
    (Waking, 7, None, 50, 51),
    (Queued, 7, Some(2), 51, 53),
    (Running, 7, Some(2), 53, 70),
    (Waking, 6, None, 70, 71),
    (Queued, 6, Some(1), 71, 75),
    (Running, 6, Some(1), 75, 90),
    (Waking, 5, None, 90, 91),
    (Queued, 5, Some(0), 91, 94),
    (Running, 5, Some(0), 94, 100),
];

#[test]
fn a_sleep_within_a_sleep_is_explained_by_its_own_waker() {
    let path = found(&[&nested()], 5);
    assert_eq!(pieces(&path), NESTED);
    let seven = [Some(6); 4];
    let all = [&[None, Some(5)][..], &seven, &[Some(5); 3], &[None; 3]].concat();
    assert_eq!(sleepers(&path), all);
    assert_eq!((path.handovers, path.depth), (Some(2), Some(2)));
    // The sleep of 6 lies within that of 5, which goes on behind it: one sleep of each.
    assert_eq!(sleeps_of(&path), [(5, 6, 1, 40, 4, 0), (6, 7, 1, 40, 2, 0)]);
}

#[test]
fn a_window_that_begins_within_the_sleeps_has_the_rest_of_the_path() {
    let events = nested();
    for from in [5, 10, 15, 30, 40, 52, 60, 70, 80, 91, 95] {
        let window = Window { from: Some(Ts(from)), to: None };
        let options = Options { pid: Some(Pid(5)), ..Options::default() };
        let pass = Pass::over(&events[..]).window(window).run(|| CriticalPath::new(options));
        let path = pass.unwrap_or_else(|never| match never {}).output;
        tiles("a window", &path);
        let cut = |piece: &Piece| (piece.0, piece.1, piece.2, piece.3.max(from), piece.4);
        let expected: Vec<Piece> = NESTED.iter().filter(|piece| piece.4 > from).map(cut).collect();
        assert_eq!(pieces(&path), expected, "{from}");
    }
}

#[test]
fn two_sleepers_of_one_waker_have_it_for_their_own_sleeps() {
    let events = [
        sleeps(10, 0, 5, 0),
        sleeps(30, 2, 8, 0),
        gives_way(65, 0, 0, 5),
        gives_way(70, 2, 0, 8),
        exits(90, 0, 5),
        exits(95, 2, 8),
    ];
    let wakeups = [wakes(60, 1, 6, 5, 0), wakes(62, 1, 6, 8, 2)].concat();
    let path = |pid| pieces(&found(&[&start(&[5, 6, 8], 3), &events, &wakeups], pid));
    let five = [
        (Running, 5, Some(0), 0, 10),
        (Running, 6, Some(1), 10, 60),
        (Waking, 5, None, 60, 61),
        (Queued, 5, Some(0), 61, 65),
        (Running, 5, Some(0), 65, 90),
    ];
    let eight = [
        (Running, 8, Some(2), 0, 30),
        (Running, 6, Some(1), 30, 62),
        (Waking, 8, None, 62, 63),
        (Queued, 8, Some(2), 63, 70),
        (Running, 8, Some(2), 70, 95),
    ];
    assert_eq!((path(5), path(8)), (five.to_vec(), eight.to_vec()));
}

/// 5 asks a daemon at 8 and goes on up to 10. The daemon was queued before that: only the part within the sleep is on the path.
#[test]
fn a_daemon_explains_the_time_for_which_its_client_waits() {
    let events =
        [sleeps(2, 1, 6, 0), sleeps(10, 0, 5, 0), gives_way(12, 1, 0, 6), gives_way(43, 0, 0, 5), exits(50, 0, 5)];
    let wakeups = [wakes(8, 0, 5, 6, 1), wakes(40, 1, 6, 5, 0)].concat();
    let path = found(&[&start(&[5, 6], 3), &events, &wakeups], 5);
    let expected = [
        (Running, 5, Some(0), 0, 10),
        (Queued, 6, Some(1), 10, 12),
        (Running, 6, Some(1), 12, 40),
        (Waking, 5, None, 40, 41),
        (Queued, 5, Some(0), 41, 43),
        (Running, 5, Some(0), 43, 50),
    ];
    assert_eq!(pieces(&path), expected);
    // CPU 2 idles throughout: 2 of the daemon's 3 lie on the path.
    assert_eq!((path.times.queued_ns, path.times.queued_beside_idle_ns), (4, 4));
}

#[test]
fn a_pipeline_of_three_stages_is_walked_stage_by_stage() {
    let events =
        [sleeps(5, 2, 7, 0), sleeps(10, 1, 6, 0), gives_way(25, 1, 0, 6), gives_way(50, 2, 0, 7), exits(60, 2, 7)];
    let wakeups = [wakes(20, 0, 5, 6, 1), wakes(45, 1, 6, 7, 2)].concat();
    let path = found(&[&start(&[5, 6, 7], 3), &events, &wakeups], 7);
    let expected = [
        (Running, 7, Some(2), 0, 5),
        (Running, 6, Some(1), 5, 10),
        (Running, 5, Some(0), 10, 20),
        (Waking, 6, None, 20, 21),
        (Queued, 6, Some(1), 21, 25),
        (Running, 6, Some(1), 25, 45),
        (Waking, 7, None, 45, 46),
        (Queued, 7, Some(2), 46, 50),
        (Running, 7, Some(2), 50, 60),
    ];
    assert_eq!(pieces(&path), expected);
}

/// 5 forks 6, which executes a program, forks 7 and exits; 7 wakes 5.
#[test]
fn a_fork_within_a_sleep_goes_on_with_the_parent() {
    let fork = |ts, cpu, parent: i32, child: i32| {
        let child_comm = task(child).comm;
        at(ts, cpu, parent, Event::Fork { parent: Pid(parent), child: Pid(child), child_comm })
    };
    let new = |ts, cpu, by, pid, target| at(ts, cpu, by, Event::WakeupNew { task: task(pid), target: Cpu(target) });
    let exec = Event::Exec { pid: Pid(6), old_pid: Pid(6), program: Comm::new(b"cc1") };
    let named = TaskRef { comm: Comm::new(b"cc1"), ..task(6) };
    let dead = Event::Switch { prev: named, state: PrevState::DEAD, next: idle() };
    let events = [
        fork(10, 0, 5, 6),
        new(12, 0, 5, 6, 1),
        gives_way(15, 1, 0, 6),
        at(18, 1, 6, exec),
        sleeps(20, 0, 5, 0),
        fork(30, 1, 6, 7),
        new(32, 1, 6, 7, 2),
        gives_way(35, 2, 0, 7),
        exits(40, 1, 6),
        at(41, 1, 6, dead),
        gives_way(83, 0, 0, 5),
        exits(90, 2, 7),
        exits(100, 0, 5),
    ];
    let all = [start(&[5], 3), events.to_vec(), wakes(80, 2, 7, 5, 0).to_vec()];
    let parts: Vec<&[SchedEvent]> = all.iter().map(Vec::as_slice).collect();
    let path = found(&parts, 5);
    let begin = [(Running, 5, Some(0), 0, 20), (Running, 6, Some(1), 20, 30)];
    let child = [(Waking, 7, None, 30, 32), (Queued, 7, Some(2), 32, 35), (Running, 7, Some(2), 35, 80)];
    let end = [(Waking, 5, None, 80, 81), (Queued, 5, Some(0), 81, 83), (Running, 5, Some(0), 83, 100)];
    assert_eq!(pieces(&path), [&begin[..], &child, &end].concat());
    assert_eq!(path.commands[&Pid(6)].to_string(), "cc1");
    // The path of the grandchild goes back through both forks.
    let forks = [
        (Running, 5, Some(0), 0, 10),
        (Waking, 6, None, 10, 12),
        (Queued, 6, Some(1), 12, 15),
        (Running, 6, Some(1), 15, 30),
        (Waking, 7, None, 30, 32),
        (Queued, 7, Some(2), 32, 35),
        (Running, 7, Some(2), 35, 90),
    ];
    assert_eq!(pieces(&found(&parts, 7)), forks);
}

/// An interrupt wakes the thread at 40, which passes the wakeup on. It is on the path with what it did for that, and its sleep is the sleeper's.
#[test]
fn a_threaded_interrupt_counts_as_an_interrupt() {
    for (name, counts) in [("irq/30-virtio0", true), ("ktimers/1", true), ("rcu_preempt", true), ("irqbalance", false)]
    {
        let thread = TaskRef { comm: Comm::new(name.as_bytes()), ..task(9) };
        let renamed = |event: SchedEvent| {
            let of = |task: TaskRef| if task.pid == thread.pid { thread } else { task };
            let kind = match event.kind {
                Event::Switch { prev, state, next } => Event::Switch { prev: of(prev), state, next: of(next) },
                Event::Waking { task, target } => Event::Waking { task: of(task), target },
                Event::Wakeup { task, target } => Event::Wakeup { task: of(task), target },
                kind => kind,
            };
            SchedEvent { kind, ..event }
        };
        let events = [
            sleeps(20, 1, 9, 0),
            sleeps(10, 0, 5, 0),
            gives_way(45, 1, 0, 9),
            gives_way(53, 0, 0, 5),
            sleeps(55, 1, 9, 0),
            exits(60, 0, 5),
        ];
        let wakeups = [interrupt_wakes(40, 1, 0, 9, 1), wakes(50, 1, 9, 5, 0)].concat();
        let all: Vec<SchedEvent> = [start(&[5, 9], 2), events.to_vec(), wakeups].concat();
        let path = found(&[&all.into_iter().map(renamed).collect::<Vec<_>>()], 5);
        let begin = match counts {
            true => vec![(Sleeping, 5, None, 10, 40)],
            false => vec![(Running, 9, Some(1), 10, 20), (Sleeping, 9, None, 20, 40)],
        };
        let end = [
            (Waking, 9, None, 40, 41),
            (Queued, 9, Some(1), 41, 45),
            (Running, 9, Some(1), 45, 50),
            (Waking, 5, None, 50, 51),
            (Queued, 5, Some(0), 51, 53),
            (Running, 5, Some(0), 53, 60),
        ];
        assert_eq!(pieces(&path), [&[(Running, 5, Some(0), 0, 10)][..], &begin, &end].concat(), "{name}");
    }
}

/// 5 and 6 send each other messages on loopback this many times, and 5 sleeps in a state with this number.
fn messages(times: i64, raw: u32) -> Path {
    let softirq = |events: [SchedEvent; 2]| events.map(|event| SchedEvent { flags: 0x10, ..event });
    let mut events = start(&[5, 6], 2);
    events.push(sleeps(2, 1, 6, 0));
    for ts in (0..times).map(|time| 100 * time) {
        events.extend(softirq(wakes(10 + ts, 0, 5, 6, 1)));
        let state = PrevState::asleep(raw);
        events.push(at(15 + ts, 0, 5, Event::Switch { prev: task(5), state, next: idle() }));
        events.push(gives_way(20 + ts, 1, 0, 6));
        events.extend(softirq(wakes(50 + ts, 1, 6, 5, 0)));
        events.push(sleeps(55 + ts, 1, 6, 0));
        events.push(gives_way(60 + ts, 0, 0, 5));
    }
    events.push(exits(times * 100 - 10, 0, 5));
    found(&[&events], 5)
}

/// With a record of what raised the softirq nothing is only possible: one exchange of messages is enough, and one that an interrupt raised is none.
#[test]
fn raised_softirqs_show_the_sender() {
    let raise = |ts, cpu, pid, flags| {
        let kind = Event::Probe { id: 9, probe: sched::probe::Probe::Raises { softirq: 3 } };
        SchedEvent { flags, ..at(ts, cpu, pid, kind) }
    };
    let round = |by_interrupt: bool| {
        let softirq = |events: [SchedEvent; 2]| events.map(|event| SchedEvent { flags: 0x10, ..event });
        let flags = if by_interrupt { 0x08 } else { 0x80 };
        let mut events = start(&[5, 6], 2);
        events.push(sleeps(2, 1, 6, 0));
        events.push(raise(9, 0, 5, flags));
        events.extend(softirq(wakes(10, 0, 5, 6, 1)));
        events.push(sleeps(15, 0, 5, 0));
        events.push(gives_way(20, 1, 0, 6));
        events.push(raise(49, 1, 6, flags));
        events.extend(softirq(wakes(50, 1, 6, 5, 0)));
        events.push(sleeps(55, 1, 6, 0));
        events.push(gives_way(60, 0, 0, 5));
        events.push(exits(70, 0, 5));
        found(&[&events], 5)
    };
    let path = round(false);
    let sent = [
        (Running, 5, Some(0), 0, 15),
        (Queued, 6, Some(1), 15, 20),
        (Running, 6, Some(1), 20, 50),
        (Waking, 5, None, 50, 51),
        (Queued, 5, Some(0), 51, 60),
        (Running, 5, Some(0), 60, 70),
    ];
    assert_eq!((pieces(&path), path.possible_ns, path.handovers), (sent.to_vec(), 0, Some(1)));
    let path = round(true);
    assert!(pieces(&path).contains(&(Sleeping, 5, None, 15, 50)), "{:?}", pieces(&path));
    assert_eq!((path.possible_ns, path.times.sleeping_ns), (0, Some(35)));
}

/// A softirq wakes the receiver on top of the sender.
#[test]
fn tasks_that_talk_on_loopback_are_possibly_on_the_path() {
    let round = |ts: i64, begin: i64| {
        [
            (Running, 5, Some(0), begin, ts + 15),
            (Queued, 6, Some(1), ts + 15, ts + 20),
            (Running, 6, Some(1), ts + 20, ts + 50),
            (Waking, 5, None, ts + 50, ts + 51),
            (Queued, 5, Some(0), ts + 51, ts + 60),
        ]
    };
    let path = messages(2, 1);
    assert_eq!(pieces(&path), [&round(0, 0)[..], &round(100, 60), &[(Running, 5, Some(0), 160, 190)]].concat());
    assert_eq!((path.possible_ns, path.handovers), (70, Some(2)));
    let possible: Vec<i32> =
        path.path.iter().filter(|segment| segment.is_possible).map(|segment| segment.pid.0).collect();
    assert_eq!(possible, [6; 4]);
    // Once is not enough, nor is a sleep as for a disk.
    for (times, raw) in [(1, 1), (2, 2)] {
        let path = messages(times, raw);
        let asleep = times.unsigned_abs() * 35;
        assert_eq!(
            (path.possible_ns, path.handovers, path.times.sleeping_ns),
            (0, Some(0), Some(asleep)),
            "{times} {raw}"
        );
        assert!(path.path.iter().all(|segment| segment.pid == Pid(5)), "{times} {raw}");
    }
}

/// Each task sleeps within the sleep of the one before: the walk returns through all of them.
#[test]
fn ten_thousand_nested_sleeps_are_walked() {
    let most = 10_000_i32;
    let mut events = start(&[1], 1);
    for pid in 1..most {
        events.extend([wakes(i64::from(pid) * 10, 0, pid, pid + 1, 0)].concat());
        events.push(sleeps(i64::from(pid) * 10 + 5, 0, pid, pid + 1));
    }
    let turn = i64::from(most) * 10;
    for pid in (1..most).rev() {
        let ts = turn + i64::from(most - pid) * 10;
        events.extend(wakes(ts, 0, pid + 1, pid, 0));
        events.push(sleeps(ts + 5, 0, pid + 1, pid));
    }
    let end = turn + i64::from(most) * 10;
    events.push(exits(end, 0, 1));
    let path = found(&[&events], 1);
    assert_eq!(path.depth, Some(u64::from(most.unsigned_abs()) - 1));
    // On its way down each task runs for 10, and on its way up for 5 behind the one that wakes it.
    let down: Vec<Piece> =
        (1..most).map(|pid| (Running, pid, Some(0), i64::from(pid) * 10 - 5, i64::from(pid) * 10 + 5)).collect();
    assert_eq!(pieces(&path)[1..down.len()], down[1..]);
    assert_eq!((path.times.unknown_ns, path.times.queued_ns), (0, u64::from(most.unsigned_abs() - 1) * 4));
}
