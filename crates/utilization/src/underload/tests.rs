//! Hand cases of underload and of wakeups on idle CPUs.

use super::idle_wakeups::IdleWakeupSums;
use super::{IdleStatesNotes, Underload, UnderloadReport};
use crate::Options;
use sched::probe::Probe;
use sched::{
    Analysis, Comm, Cpu, Current, Dur, EventKind, Pass, Past, Pid, PrevState, SchedEvent, SchedState, TaskRef,
    TaskState, Topology, Ts, Window,
};
use std::collections::BTreeMap;

const IDLE: TaskRef = TaskRef { pid: Pid(0), prio: 120, comm: Comm::EMPTY };

fn task(pid: i32) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"make") }
}

fn at(ts: i64, cpu: u32, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind }
}

fn switch(ts: i64, cpu: u32, prev: TaskRef, next: TaskRef) -> SchedEvent {
    at(ts, cpu, prev.pid.0, EventKind::Switch { prev, state: PrevState::asleep(1), next })
}

fn wakeup(ts: i64, cpu: u32, pid: i32) -> SchedEvent {
    at(ts, cpu, 0, EventKind::Wakeup { task: task(pid), target: Cpu(cpu) })
}

fn idle_state(ts: i64, cpu: u32, state: Option<u8>) -> SchedEvent {
    at(ts, cpu, 0, EventKind::Probe { id: 3, probe: Probe::IdleState { cpu: Cpu(cpu), state } })
}

fn options(cpus: u32, window: (i64, i64)) -> Options {
    Options {
        from: Ts(window.0),
        to: Ts(window.1),
        zero: Ts(0),
        cpus: (0..cpus).map(|cpu| (Cpu(cpu), None)).collect(),
        all_cpus: Vec::new(),
        group_name: String::new(),
        interval: Dur(1_000_000_000),
        tasks: None,
        topology: Topology::default(),
        balance_interval: Dur(4_000_000),
        ends: Vec::new(),
    }
}

fn measure(events: &[SchedEvent], cpus: u32, window: (i64, i64), tick: u64, states: bool) -> UnderloadReport {
    let options = options(cpus, window);
    let within = Window { from: Some(Ts(window.0)), to: Some(Ts(window.1)) };
    let pass = Pass::over(events).window(within).run(|| Underload::new(&options, Dur(tick), states));
    pass.unwrap_or_else(|never| match never {}).output
}

/// One task at a time: on CPU 0 from 10 to 30, then on CPU 1 from 60 to 80, on CPU 2 from 110 to 250.
fn one_after_another() -> Vec<SchedEvent> {
    let mut events: Vec<SchedEvent> = (0..3).map(|cpu| at(0, cpu, 0, EventKind::Other { id: 1 })).collect();
    for (cpu, from, to) in [(0, 10, 30), (1, 60, 80), (2, 110, 250)] {
        let pid = 10 + cpu as i32;
        events.extend([
            wakeup(from - 5, cpu, pid),
            switch(from, cpu, IDLE, task(pid)),
            switch(to, cpu, task(pid), IDLE),
        ]);
    }
    events.push(at(400, 0, 0, EventKind::Other { id: 1 }));
    events
}

#[test]
fn underload_is_of_cpus_used_one_after_another() {
    // From 0 to 100: CPUs 0 and 1 are used, one task at a time; from 100 to 200 and from 200 to 300 one CPU.
    let of = measure(&one_after_another(), 3, (0, 400), 100, false);
    assert_eq!(
        (of.intervals, of.underloaded_intervals, of.underload, of.max_underload),
        (4, Some(1), Some(1), Some(1))
    );
    // Twice as long: all three CPUs, still one task.
    let of = measure(&one_after_another(), 3, (0, 400), 200, false);
    assert_eq!((of.intervals, of.underload, of.max_underload), (2, Some(2), Some(2)));
    // A window from 40 has CPU 1 alone in its first interval, and two windows that meet at 200 add up.
    assert_eq!(measure(&one_after_another(), 3, (40, 400), 100, false).underload, Some(0));
    let parts = [(0, 200), (200, 400)].map(|window| measure(&one_after_another(), 3, window, 200, false).underload);
    assert_eq!(parts, [Some(2), Some(0)]);
}

#[test]
fn a_cpu_is_used_only_if_it_runs_for_some_time() {
    let mut events = one_after_another();
    // CPU 1 runs from 95 to the edge at 100, where CPU 0 begins.
    let more = [
        wakeup(90, 1, 21),
        switch(95, 1, IDLE, task(21)),
        wakeup(98, 0, 22),
        switch(100, 1, task(21), IDLE),
        switch(100, 0, IDLE, task(22)),
        switch(105, 0, task(22), IDLE),
    ];
    events.extend(more);
    events.sort_by_key(|event| event.ts);
    // First interval: two CPUs, two runnable tasks from 98 on. Second one: CPUs 0 and 2, of which 2 gets its task at 105.
    let of = measure(&events, 3, (0, 400), 100, false);
    assert_eq!((of.underload, of.max_underload), (Some(1), Some(1)));
}

#[test]
fn a_thread_that_keeps_its_cpu_idle_uses_none() {
    let injector = TaskRef { prio: 49, comm: Comm::new(b"idle_inject/1"), ..task(30) };
    let mut events: Vec<SchedEvent> = (0..2).map(|cpu| at(0, cpu, 0, EventKind::Other { id: 1 })).collect();
    events.extend([
        at(10, 1, 0, EventKind::Wakeup { task: injector, target: Cpu(1) }),
        switch(12, 1, IDLE, injector),
        switch(40, 1, injector, IDLE),
        wakeup(50, 0, 11),
        switch(60, 0, IDLE, task(11)),
        switch(80, 0, task(11), IDLE),
        at(100, 0, 0, EventKind::Other { id: 1 }),
    ]);
    assert_eq!(measure(&events, 2, (0, 100), 100, false).underload, Some(0));
    let options = options(2, (0, 100));
    let used =
        Pass::over(events.as_slice()).run(|| crate::Utilization::new(&options)).unwrap_or_else(|never| match never {});
    let all = used.output.all;
    assert_eq!((all.injected_ns, all.other_ns, all.rt_ns, all.idle_ns), (28, 20, 0, 152));
    assert_eq!(all.busy(), 20);
}

#[test]
fn wakeups_are_warm_by_the_time_that_their_cpu_idled() {
    const MS: i64 = 1_000_000;
    let mut events = vec![at(0, 0, 9, EventKind::Other { id: 1 }), at(0, 1, 0, EventKind::Other { id: 1 })];
    // CPU 0 idles from 1 ms on, for 1, 5, 50 and 200 ms; CPU 1 idles since the start.
    events.push(switch(MS, 0, TaskRef { pid: Pid(9), ..task(9) }, IDLE));
    events.push(idle_state(MS, 0, Some(2)));
    let mut now = MS;
    for (pid, length) in [(11, 1), (12, 5), (13, 50), (14, 200)] {
        now += length * MS;
        events.extend([wakeup(now, 0, pid), idle_state(now, 0, None), switch(now, 0, IDLE, task(pid))]);
        // A wakeup on the busy CPU.
        events.push(wakeup(now, 0, 20 + pid));
        events.push(switch(now, 0, task(pid), task(20 + pid)));
        events.push(switch(now, 0, task(20 + pid), IDLE));
        events.push(idle_state(now, 0, (pid != 12).then_some(1)));
    }
    events.push(wakeup(now, 1, 15));
    events.push(wakeup(now, 1, 16));
    let of = measure(&events, 2, (0, now), 4_000_000, true).wakeups.expect("wakeups");
    assert_eq!((of.placed, of.on_idle, of.since_start), (10, 5, 0));
    let rows: Vec<u64> = of.by_idle_time.iter().map(|row| row.wakeups).collect();
    // That of CPU 1 idled for longer than 100 ms in any case.
    assert_eq!(rows, [1, 1, 1, 2]);
    let states: Vec<(String, u64)> = of.idle_states.into_iter().flatten().map(|row| (row.state, row.wakeups)).collect();
    let expected = [("1", 2), ("2", 1), ("none", 1), ("unknown", 1)].map(|(state, n)| (state.to_owned(), n));
    assert_eq!(states, expected);
    // In a window the state from before it counts.
    let later = measure(&events, 2, (4 * MS, now), 4_000_000, true).wakeups.expect("wakeups");
    assert_eq!(later.idle_states.unwrap()[0], super::IdleStateRow { state: "1".to_owned(), wakeups: 2 });
}

#[test]
fn a_part_knows_the_idle_states_from_before_it() {
    let mut events = vec![idle_state(0, 0, Some(2)), idle_state(1, 1, None), at(2, 2, 0, EventKind::Other { id: 1 })];
    events.push(at(20, 0, 0, EventKind::Other { id: 1 }));
    let window = Window { from: Some(Ts(10)), to: None };
    let noted = Pass::over(events.as_slice()).window(window).run(IdleStatesNotes::default);
    let (name, note) = noted.unwrap_or_else(|never| match never {}).output.expect("a note");
    assert_eq!(note, "[[0,2],[1,null]]");
    // A CPU that no machine has is left out, and another text is no note.
    for (text, expected) in [(note.replace("]]", "],[4294967295,1]]"), Some(note)), ("[0]".to_owned(), None)] {
        let past = Past { notes: [(name.clone(), text)].into(), ..Past::default() };
        let mut part = IdleWakeupSums::new(true);
        part.take_up(&past);
        assert_eq!(part.noted(), expected);
    }
}

/// Wakeups on idle CPUs, by the state before each of them and by the switches that made the CPUs idle.
#[derive(Default)]
struct Woken {
    start: Ts,
    /// The instant of the switch to idle of each CPU that idles since one.
    idle_since: BTreeMap<Cpu, Ts>,
    /// Whether the target of the event idles with an empty queue, and the woken task does not wait there yet.
    joins: Option<bool>,
    /// The wakeups and new tasks, those on an idle CPU, and of these those by the time since a switch, below 2, 10, 100 ms and longer.
    counts: ([u64; 2], [u64; 4]),
}

impl Analysis for Woken {
    type Output = ([u64; 2], [u64; 4]);

    fn begin(&mut self, start: Ts, _: &SchedState) {
        self.start = start;
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        let (EventKind::Wakeup { task, target } | EventKind::WakeupNew { task, target }) = event.kind else {
            self.joins = None;
            return;
        };
        let waits = state.task_of(task.pid).is_some_and(|task| task.state == TaskState::Waiting(target));
        self.joins = (!waits).then(|| state.current(target) == Current::Idle && state.queue_length(target) == 0);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        if let EventKind::Switch { next, .. } = event.kind {
            match next.pid.is_idle() {
                true if event.ts > self.start => drop(self.idle_since.insert(event.cpu, event.ts)),
                _ => drop(self.idle_since.remove(&event.cpu)),
            }
        }
        let (EventKind::Wakeup { task, target } | EventKind::WakeupNew { task, target }) = event.kind else { return };
        let is_queued = state.task_of(task.pid).is_some_and(|task| task.state == TaskState::Waiting(target));
        let Some(is_on_idle) = self.joins.filter(|_| is_queued) else { return };
        self.counts.0[0] += 1;
        self.counts.0[1] += u64::from(is_on_idle);
        if let Some(since) = self.idle_since.get(&target).filter(|_| is_on_idle) {
            let idled = event.ts.since(*since).0;
            let place = [2_000_000, 10_000_000, 100_000_000].iter().position(|bound| idled < *bound).unwrap_or(3);
            self.counts.1[place] += 1;
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> Self::Output {
        self.counts
    }
}

#[test]
fn wakeups_on_idle_cpus_are_those_of_the_state_before_each() {
    let mut all = [0; 4];
    for seed in 0..20 {
        let cpus = 2 + (seed % 6) as u32;
        let mut events = testkit::Simulation::balanced(seed, cpus, 400).events;
        // Faster, so that CPUs idle for times of every class.
        let (first, faster) = (events[0].ts.0, [1, 10, 30, 100][seed as usize % 4]);
        events.iter_mut().for_each(|event| event.ts = Ts(first + (event.ts.0 - first) / faster));
        let (from, to) = (events[0].ts, events[events.len() - 1].ts);
        let options = options(cpus, (from.0, to.0));
        let analyses = || (Underload::new(&options, Dur(4_000_000), false), Woken::default());
        let pass = Pass::over(events.as_slice()).run(analyses);
        let (UnderloadReport { wakeups, .. }, (counts, rows)) = pass.unwrap_or_else(|never| match never {}).output;
        let wakeups = wakeups.expect("wakeups");
        assert_eq!([wakeups.placed, wakeups.on_idle], counts, "seed {seed}");
        let (of_rows, idle_since_start) = (rows.iter().sum::<u64>(), counts[1] - rows.iter().sum::<u64>());
        assert!(of_rows > 0 && wakeups.since_start <= idle_since_start, "seed {seed}: {wakeups:?}");
        for (place, (row, count)) in wakeups.by_idle_time.iter().zip(rows).enumerate() {
            // A CPU that idles since the start for longer than the last bound is in the last row.
            let more = if place == 3 { idle_since_start - wakeups.since_start } else { 0 };
            assert_eq!(row.wakeups, count + more, "seed {seed}: {wakeups:?}");
        }
        all.iter_mut().zip(rows).for_each(|(sum, row)| *sum += row);
    }
    assert!(all.iter().all(|row| *row > 0), "{all:?}");
}
