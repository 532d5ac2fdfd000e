//! Rows of tasks against the known state of a simulation, and against the sums of the commands.

use super::{Known, number, u16_at};
use crate::columns::row::{RowState, STATES};
use crate::index::rows::{RowIndex, RowIndexer};
use crate::index::scope::Scope;
use crate::{Store, Tasks};
use sched::{Analysis, Cpu, Pid, QueuedAsk, QueuedSums, QueuedTimes, SchedEvent, TaskState, Ts};
use std::collections::BTreeSet;
use std::sync::Arc;
use testkit::Simulation;

/// A column of a row as the page reads it: the states with their shares, the CPUs on which the task ran, the CPU of its longest wait.
#[derive(Clone, Debug, Default, PartialEq)]
struct Column {
    shares: [u32; STATES],
    ran: Vec<u64>,
    waited: Option<(u64, bool)>,
}

/// The columns of each row of a tile.
fn parse(tile: &[u8]) -> Vec<Vec<Column>> {
    assert_eq!(&tile[..4], b"SVR1");
    let (columns, rows, mut at) = (usize::from(u16_at(tile, 4)), usize::from(u16_at(tile, 6)), 8);
    let mut all = Vec::new();
    for _ in 0..rows {
        let mut row = Vec::new();
        while row.len() < columns {
            let (run, count) = (usize::from(tile[at]) + 1, tile[at + 1]);
            at += 2;
            let mut column = Column::default();
            let (mut first, mut rest) = (None, 65_535);
            for nth in 0..count {
                let state = usize::from(tile[at]);
                at += 1;
                if nth == 0 {
                    first = Some(state);
                } else {
                    column.shares[state] = u32::from(u16_at(tile, at));
                    rest -= column.shares[state];
                    at += 2;
                }
            }
            first.into_iter().for_each(|state| column.shares[state] = rest);
            if column.shares[RowState::Running as usize] > 0 {
                let named = tile[at];
                at += 1;
                for _ in 0..named & 0x7f {
                    column.ran.push(number(tile, &mut at));
                    at += if named & 0x80 > 0 { 0 } else { 2 };
                }
            }
            if column.shares[1..=5].iter().sum::<u32>() > 0 {
                let waited = number(tile, &mut at);
                column.waited = Some((waited >> 1, waited & 1 > 0));
            }
            row.extend(std::iter::repeat_n(column, run));
        }
        assert_eq!(row.len(), columns);
        all.push(row);
    }
    assert_eq!(at, tile.len());
    all
}

/// The rows of a simulation, by all events, from this level on.
fn rows_from(store: &Store<&[SchedEvent]>, scope: &Scope, level: u32, tasks: &Arc<Tasks>) -> RowIndex {
    let scope = Scope { levels: (level, scope.levels.1), ..scope.clone() };
    let (start, end) = (scope.start, scope.end());
    let made = store.window(start, end, RowIndexer::of(scope, tasks));
    made.unwrap_or_else(|never| match never {})
}

fn share(column: &Column, states: std::ops::RangeInclusive<RowState>) -> u32 {
    column.shares[*states.start() as usize..=*states.end() as usize].iter().sum()
}

#[test]
fn rows_are_what_the_simulation_did() {
    for (seed, cpus) in [(1, 4), (3, 9)] {
        let simulation = Simulation::run(seed, cpus, 700);
        let known = Known::of(&simulation);
        let start = simulation.events[0].ts;
        let lanes: Vec<Cpu> = (0..simulation.cpus).map(Cpu).collect();
        let scope = Scope::of_trace(start, Ts(start.0 + known.span as i64), &lanes, 0);
        let store =
            Store::build(simulation.events.as_slice(), &scope, None, &|_| ()).unwrap_or_else(|never| match never {});
        let tasks = Arc::new(store.index().tasks().clone());
        let places: Vec<usize> = (0..tasks.list().len()).collect();
        let (base, top) = store.rows().expect("rows").levels();
        assert!(base > 3 && base < top, "levels {base} to {top} of {}", known.span);
        for level in [base - 2, base, top - 1, top] {
            let whole = rows_from(&store, &scope, level, &tasks);
            let tiles = (known.span >> level) / scope.shape().columns + 1;
            for index in [0, tiles / 2, tiles - 1] {
                let tile = store.row_tile(level, index, &places).expect("read").expect("a tile");
                let of_whole = whole.tile(level, index, &places);
                for ((task, row), other) in tasks.list().iter().zip(parse(&tile)).zip(parse(&of_whole)) {
                    let differs = row.iter().zip(&other).position(|(one, other)| one != other);
                    let pair = differs.map(|nth| (nth, &row[nth], &other[nth]));
                    assert_eq!(pair, None, "seed {seed}, {}, tile {index} of {tiles} of level {level}", task.pid);
                }
                for (task, row) in tasks.list().iter().zip(parse(&tile)) {
                    compare(&known, task.pid, &row, level, index);
                }
            }
            assert_eq!(store.row_tile(level, tiles + 1, &places), Ok(None));
        }
        // A place that no task has is a row in which there is nothing.
        let beyond = parse(&store.row_tile(base - 1, 0, &[places.len() + 7]).expect("read").expect("a tile"));
        assert_eq!(share(&beyond[0][0], RowState::Absent..=RowState::Absent), 65_535);
    }
}

/// Compares a row with the true state.
fn compare(known: &Known<'_>, pid: Pid, row: &[Column], level: u32, index: u64) {
    for (nth, column) in row.iter().enumerate() {
        let from = (index * row.len() as u64 + nth as u64) << level;
        let (mut ns, mut ran, mut waited, mut on) = (0, 0, 0, BTreeSet::new());
        known.during(from, from + (1 << level), |truth, length| {
            ns += length;
            if let Some(cpu) = truth.current.iter().position(|current| *current == pid.0) {
                (ran, _) = (ran + length, on.insert(cpu as u64));
            }
            waited += if truth.queues.iter().any(|queue| queue.contains(&pid.0)) { length } else { 0 };
        });
        let place = format!("{pid}, column {nth} of tile {index} of level {level}: {column:?}");
        let is_share =
            |found: u32, truth: u64| (u64::from(found).abs_diff(truth * 65_535 / ns.max(1))) <= STATES as u64;
        assert!(is_share(share(column, RowState::Running..=RowState::Running), ran), "{ran} of {ns} running: {place}");
        assert!(
            is_share(share(column, RowState::HeldBack..=RowState::Queued), waited),
            "{waited} of {ns} waiting: {place}"
        );
        assert_eq!(share(column, RowState::Queued..=RowState::Queued), 0, "{place}");
        assert!(
            column.ran.iter().all(|cpu| on.contains(cpu)) && column.ran.len() == on.len().min(4),
            "{on:?}: {place}"
        );
        assert_eq!(column.shares.iter().sum::<u32>(), if ns > 0 { 65_535 } else { 0 }, "{place}");
    }
}

#[test]
fn the_kinds_of_all_rows_are_those_of_the_commands() {
    for seed in [2, 5] {
        let simulation = Simulation::run(seed, 6, 1_500);
        let start = simulation.events[0].ts;
        let end = simulation.events.last().expect("events").ts;
        let lanes: Vec<Cpu> = (0..simulation.cpus).map(Cpu).collect();
        let scope = Scope::of_trace(start, end, &lanes, 0);
        let store =
            Store::build(simulation.events.as_slice(), &scope, None, &|_| ()).unwrap_or_else(|never| match never {});
        let ask = QueuedAsk { tasks: None, cpus: sched::ChosenCpus::default(), affinity: None };
        let sums = store.window(start, end, QueuedSums::new(ask)).unwrap_or_else(|never| match never {});
        let truth = sums.expect("wakeups");
        let rows = store.rows().expect("rows");
        let all = |state: RowState| rows.sums.iter().map(|row| row.ns[state as usize]).sum::<u64>();
        let found = QueuedTimes {
            held_back_ns: all(RowState::HeldBack),
            beside_idle_ns: all(RowState::BesideIdle),
            beside_shorter_ns: all(RowState::BesideShorter),
            alike_ns: all(RowState::Alike),
            beside_forbidden_ns: truth.beside_forbidden_ns,
        };
        // The parts of a wait are rounded to whole nanoseconds.
        let near = |a: u64, b: u64| assert!(a.abs_diff(b) < 1000 + b / 1_000_000, "{found:?}, truth {truth:?}");
        near(found.held_back_ns, truth.held_back_ns);
        near(found.beside_idle_ns, truth.beside_idle_ns);
        near(found.beside_shorter_ns, truth.beside_shorter_ns);
        assert_eq!(found.total(), truth.total());
        assert!(truth.beside_idle_ns > 0 && truth.alike_ns > 0, "{truth:?}");
    }
}

/// The tasks that are blocked at an instant, by the events alone.
struct BlockedNow(Ts, BTreeSet<Pid>, BTreeSet<Pid>);

impl Analysis for BlockedNow {
    type Output = BTreeSet<Pid>;

    fn before(&mut self, event: &SchedEvent, _: &sched::SchedState) {
        if event.ts < self.0 {
            self.2.clone_from(&self.1);
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &sched::SchedState) {
        for (task, span) in state.turns() {
            let sleeps = matches!(span.next, TaskState::Asleep(_));
            let deep = matches!(event.kind, sched::EventKind::Switch { prev, state, .. } if prev.pid == task.pid && state.raw == 2);
            if sleeps && deep {
                self.1.insert(task.pid)
            } else {
                self.1.remove(&task.pid)
            };
        }
        if event.ts < self.0 {
            self.2.clone_from(&self.1);
        }
    }

    fn finish(self, _: Ts, _: &sched::SchedState) -> BTreeSet<Pid> {
        self.2
    }
}

#[test]
fn blocked_tasks_are_known_where_a_part_begins() {
    let mut simulation = Simulation::run(4, 5, 2_000);
    // Every third sleep is uninterruptible.
    let mut nth = 0;
    for event in &mut simulation.events {
        if let sched::EventKind::Switch { state, .. } = &mut event.kind
            && state.class == sched::StateClass::Asleep
        {
            nth += 1;
            state.raw = if nth % 3 == 0 { 2 } else { 1 };
        }
    }
    let events = simulation.events.as_slice();
    let (start, end) = (events[0].ts, events[events.len() - 1].ts);
    let lanes: Vec<Cpu> = (0..simulation.cpus).map(Cpu).collect();
    let scope = Scope::of_trace(start, end, &lanes, 0);
    let store = Store::build(events, &scope, None, &|_| ()).unwrap_or_else(|never| match never {});
    let tasks = Arc::new(store.index().tasks().clone());
    let at = events[events.len() / 2].ts;
    let rows = store.window(start, end, RowIndexer::whole(&scope, &tasks, [start, at].into_iter()));
    let rows = rows.unwrap_or_else(|never| match never {});
    let truth = store.window(start, end, BlockedNow(at, BTreeSet::new(), BTreeSet::new()));
    let truth = truth.unwrap_or_else(|never| match never {});
    assert!(!truth.is_empty() && truth.len() < tasks.list().len());
    assert_eq!(rows.blocked_before(Ts(at.0 + 5)), truth);
    assert_eq!(rows.blocked_before(Ts(at.0 - 1)), BTreeSet::new());
    let blocked: u64 = rows.sums.iter().map(|row| row.ns[RowState::Blocked as usize]).sum();
    let asleep: u64 = rows.sums.iter().map(|row| row.ns[RowState::Asleep as usize]).sum();
    assert!(blocked > asleep / 10 && asleep > blocked / 10, "{blocked} of {asleep}");
}
