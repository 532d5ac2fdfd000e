//! Tiles against the known state of a simulation, column by column.

use crate::columns::lane::{IDLE, OFFLINE, OTHERS, UNKNOWN, most_named};
use crate::{Scope, Store, SumBy, TILE_BYTES};
use sched::{Cpu, Pid, SchedEvent, Ts};
use std::collections::BTreeMap;
use testkit::{Simulation, Truth};

mod rows;

/// A column as the page reads it: entries, and the least, mean and greatest length of the queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Column {
    pub(crate) entries: Vec<(u32, u16)>,
    queue: (u64, u64, u64),
    is_sampled: bool,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// A number of few bytes.
fn number(bytes: &[u8], at: &mut usize) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// The columns of each lane of a tile.
pub(crate) fn parse(tile: &[u8]) -> Vec<Vec<Column>> {
    assert!(tile.len() <= TILE_BYTES, "{} bytes", tile.len());
    assert_eq!(&tile[..4], b"SVT2");
    let (columns, lanes, mut at) = (usize::from(u16_at(tile, 4)), usize::from(u16_at(tile, 6)), 8);
    let mut all = Vec::new();
    for _ in 0..lanes {
        let mut lane = Vec::new();
        while lane.len() < columns {
            let (run, head, is_sampled) = (usize::from(tile[at]) + 1, tile[at + 1], tile[at + 1] & 0x40 > 0);
            at += 2;
            let mut next = || number(tile, &mut at);
            let (least, most, mean) = if head >= 0x80 { (next(), next(), next()) } else { (0, 0, 0) };
            let mut entries = Vec::new();
            for nth in 0..usize::from(head & 7) {
                let id = (number(tile, &mut at) as u32).wrapping_add(OTHERS);
                let share = if nth > 0 { u16_at(tile, at) } else { 0 };
                at += if nth > 0 { 2 } else { 0 };
                entries.push((id, share));
            }
            if let Some(sum) = entries.iter().map(|(_, share)| *share).reduce(|a, b| a + b) {
                entries[0].1 = u16::MAX - sum;
            }
            lane.extend(std::iter::repeat_n(Column { entries, queue: (least, mean, most), is_sampled }, run));
        }
        assert_eq!(lane.len(), columns);
        all.push(lane);
    }
    assert_eq!(at, tile.len());
    all
}

/// The true state from each instant on.
struct Known<'s> {
    changes: Vec<(u64, &'s Truth)>,
    span: u64,
}

impl<'s> Known<'s> {
    fn of(simulation: &'s Simulation) -> Known<'s> {
        let start = simulation.events[0].ts;
        let time = |event: &SchedEvent| event.ts.since(start).0;
        let after = simulation.events.iter().map(time).zip(&simulation.truth);
        let span = time(simulation.events.last().expect("events"));
        Known { changes: std::iter::once((0, &simulation.initial)).chain(after).collect(), span }
    }

    /// Calls `each` with the states of a stretch of time and their lengths.
    fn during(&self, from: u64, to: u64, mut each: impl FnMut(&Truth, u64)) {
        let first = self.changes.partition_point(|(at, _)| *at <= from).saturating_sub(1);
        for (nth, (at, truth)) in self.changes.iter().enumerate().skip(first) {
            if *at >= to {
                break;
            }
            let end = self.changes.get(nth + 1).map_or(self.span, |(next, _)| *next);
            let length = end.min(to).saturating_sub(from.max(*at));
            if length > 0 {
                each(truth, length);
            }
        }
    }

    /// A column of a CPU.
    fn column(&self, cpu: usize, from: u64, to: u64, place: impl Fn(Pid) -> u32) -> Column {
        let (mut times, mut ns, mut queued): (BTreeMap<u32, u64>, u64, u64) = Default::default();
        let (mut least, mut most) = (usize::MAX, 0);
        self.during(from, to, |truth, length| {
            let occupant = match truth.current[cpu] {
                0 => IDLE,
                Truth::OFFLINE => OFFLINE,
                pid if pid < 0 => UNKNOWN,
                pid => place(Pid(pid)),
            };
            *times.entry(occupant).or_default() += length;
            let queue = truth.queues[cpu].len();
            (least, most) = (least.min(queue), most.max(queue));
            (ns, queued) = (ns + length, queued + length * queue as u64);
        });
        if ns == 0 {
            return Column::default();
        }
        let entries = entries(&times, ns, most as u64);
        let mean = queued * 256 / ns;
        Column { entries, queue: (least as u64, mean, most as u64), is_sampled: false }
    }
}

/// The entries of a column with these times, whose queue is at most this long.
fn entries(times: &BTreeMap<u32, u64>, ns: u64, longest: u64) -> Vec<(u32, u16)> {
    let mut tasks: Vec<(u32, u64)> = times.range(..OTHERS).map(|(id, ns)| (*id, *ns)).collect();
    tasks.sort_by_key(|(id, ns)| (std::cmp::Reverse(*ns), *id));
    let named = most_named(times.range(OTHERS + 1..).count(), longest);
    let others = tasks.iter().skip(named).map(|(_, ns)| ns).sum::<u64>() + times.get(&OTHERS).unwrap_or(&0);
    tasks.truncate(named);
    tasks.extend((others > 0).then_some((OTHERS, others)));
    tasks.extend(times.range(OTHERS + 1..).map(|(id, ns)| (*id, *ns)));
    tasks.sort_by_key(|(id, ns)| (std::cmp::Reverse(*ns), *id));
    let share = |ns_of: u64| ((ns_of * 65_535 / ns) as u16).max(1);
    let mut entries: Vec<(u32, u16)> = tasks.iter().map(|(id, part)| (*id, share(*part))).collect();
    let sum: u32 = entries.iter().map(|(_, share)| u32::from(*share)).sum();
    if let Some((_, first)) = entries.first_mut() {
        *first = (u32::from(*first) + 65_535 - sum) as u16;
    }
    entries
}

#[test]
fn tiles_are_what_the_simulation_did() {
    for (seed, cpus) in [(1, 4), (2, 5), (3, 17), (4, 8), (5, 70), (6, 260)] {
        // Groups of lanes need many CPUs, each with events, not many events.
        let simulation = Simulation::run(seed, cpus, (300 * cpus as usize).min(26_000));
        let known = Known::of(&simulation);
        let start = simulation.events[0].ts;
        let cpus: Vec<Cpu> = (0..simulation.cpus).map(Cpu).collect();
        let end = Ts(start.0 + known.span as i64);
        let scope = Scope::of_trace(start, end, &cpus, 0);
        // The finest levels are decoded again.
        let scope = if seed % 2 == 0 { scope.coarser(3) } else { scope };
        let store =
            Store::build(simulation.events.as_slice(), &scope, None, &|_| ()).unwrap_or_else(|never| match never {});
        let (base, top) = store.index().levels();
        let place = |pid| store.index().tasks().place(pid);
        let shape = scope.shape();
        for level in [0, base.saturating_sub(1), base, base + 1, (base + top) / 2, top - 1, top] {
            let tiles = (known.span >> level) / shape.columns + 1;
            for index in [0, tiles / 2, tiles - 1] {
                for group in 0..shape.groups(cpus.len()) {
                    let tile = store.lanes(level, group, index).unwrap_or_else(|never| match never {});
                    let lanes = parse(&tile.expect("a tile"));
                    for (lane, cpu) in lanes.iter().zip(group * shape.lanes..) {
                        for (nth, column) in lane.iter().enumerate() {
                            let from = (index * shape.columns + nth as u64) << level;
                            let truth = known.column(cpu, from, from + (1 << level), place);
                            assert_eq!(
                                *column, truth,
                                "seed {seed}, CPU {cpu}, level {level}, column {nth} of {index}"
                            );
                        }
                    }
                }
                let half = cpus.len() / 2;
                for lanes in [0..cpus.len(), half..half + 1, 1..half] {
                    let tile =
                        store.sum(level, lanes.clone(), index, SumBy::Task).unwrap_or_else(|never| match never {});
                    compare_sum(&lanes_of(&store, level, index)[lanes], &parse(&tile.expect("a tile"))[0]);
                }
                let tile = store.machine(level, index).unwrap_or_else(|never| match never {}).expect("a tile");
                compare_machine(&known, &tile, level, index);
            }
            assert_eq!(store.lanes(level, 0, tiles + 1).unwrap_or_else(|never| match never {}), None);
        }
        assert_eq!(store.lanes(top + 1, 0, 0).unwrap_or_else(|never| match never {}), None);
        assert_eq!(store.lanes(top, cpus.len(), 0).unwrap_or_else(|never| match never {}), None);
    }
}

/// The columns of all lanes of a place.
fn lanes_of(store: &Store<&[SchedEvent]>, level: u32, index: u64) -> Vec<Vec<Column>> {
    let tile = |group| store.lanes(level, group, index).unwrap_or_else(|never| match never {});
    (0..).map_while(tile).flat_map(|tile| parse(&tile)).collect()
}

/// Compares the lanes of several CPUs as one with the mean of their columns: one that names no task can have it among the
/// others.
fn compare_sum(lanes: &[Vec<Column>], sum: &[Column]) {
    for (nth, column) in sum.iter().enumerate() {
        let of_lanes = || lanes.iter().map(|lane| &lane[nth]);
        let queue = of_lanes().fold((0, 0, 0), |(a, b, c), column| {
            let (least, mean, most) = column.queue;
            (a + least, b + mean, c + most)
        });
        assert_eq!(column.queue, queue);
        let mut times: BTreeMap<u32, u64> = BTreeMap::new();
        of_lanes().flat_map(|column| &column.entries).for_each(|(id, share)| {
            *times.entry(*id).or_default() += u64::from(*share);
        });
        let ns: u64 = times.values().sum();
        assert_eq!(column.entries, entries(&times, ns, queue.2));
    }
}

/// The columns of a tile of the machine: running and waiting tasks, the most waiting ones, the violation.
fn parse_machine(tile: &[u8]) -> Vec<[f32; 4]> {
    assert!(tile.len() <= TILE_BYTES);
    assert_eq!(&tile[..4], b"SVM2");
    let (columns, causes, mut at) = (usize::from(u16_at(tile, 4)), u64::from(u16_at(tile, 6)), 8);
    let mut all = Vec::new();
    while all.len() < columns {
        let run = usize::from(tile[at]) + 1;
        let numbers = [0, 1, 2, 3].map(|place| f32::from_bits(u32_at(tile, at + 1 + 4 * place)));
        at += 17;
        for _ in 0..number(tile, &mut at) {
            assert!(number(tile, &mut at) < causes && number(tile, &mut at) > 0);
        }
        all.extend(std::iter::repeat_n(numbers, run));
    }
    assert_eq!((all.len(), at), (columns, tile.len()));
    all
}

fn compare_machine(known: &Known<'_>, tile: &[u8], level: u32, index: u64) {
    let columns = parse_machine(tile);
    for (nth, found) in columns.iter().enumerate() {
        let from = (index * columns.len() as u64 + nth as u64) << level;
        let (mut ns, mut sums) = (0, [0; 3]);
        let mut most = 0;
        known.during(from, from + (1 << level), |truth, length| {
            let running = truth.current.iter().filter(|pid| **pid > 0).count() as u64;
            let waiting: usize = truth.queues.iter().map(Vec::len).sum();
            let queues = || truth.current.iter().zip(&truth.queues);
            let idle = queues().any(|(pid, queue)| *pid == 0 && queue.is_empty());
            // A simulated stopper has this number, and may run on its CPU alone.
            let movable = |(_, queue): (_, &Vec<_>), stopper| queue.iter().any(|pid| *pid != stopper);
            let overloaded = queues().zip(10_000..).any(|(at, stopper)| *at.0 > 0 && movable(at, stopper));
            most = most.max(waiting);
            ns += length;
            let violated = if idle && overloaded { length } else { 0 };
            sums = [sums[0] + running * length, sums[1] + waiting as u64 * length, sums[2] + violated];
        });
        if ns == 0 {
            assert!(found[0].is_nan(), "column {nth} of tile {index} of level {level}");
            continue;
        }
        let [running, waiting, violated] = sums.map(|sum| (sum as f64 / ns as f64) as f32);
        assert_eq!(*found, [running, waiting, most as f32, violated], "column {nth} of tile {index} of level {level}");
    }
}

#[test]
fn an_index_stays_within_its_room() {
    let simulation = Simulation::run(9, 4, 4_000);
    let (start, end) = (simulation.events[0].ts, simulation.events.last().expect("events").ts);
    let cpus: Vec<Cpu> = (0..simulation.cpus).map(Cpu).collect();
    let wide = Scope::of_trace(start, end, &cpus, 0);
    let all = Store::build(simulation.events.as_slice(), &wide, None, &|_| ()).unwrap_or_else(|never| match never {});
    for room in [30_000, 300_000] {
        let scope = wide.clone().with_room(room);
        let store =
            Store::build(simulation.events.as_slice(), &scope, None, &|_| ()).unwrap_or_else(|never| match never {});
        let (size, levels) = (store.index().size(), store.index().levels());
        assert!(size <= room && size > room / 5, "{size} bytes of {room}, levels {levels:?}");
        // The columns of the coarser index are those of the finer one.
        for level in all.index().levels().0..=levels.1 {
            for index in 0..(end.since(start).0 >> level) / wide.shape().columns + 1 {
                let tiles = [&store, &all].map(|s| s.lanes(level, 0, index).unwrap_or_else(|never| match never {}));
                assert_eq!(tiles[0], tiles[1], "tile {index} of level {level}");
                let tiles = [&store, &all].map(|s| s.machine(level, index).unwrap_or_else(|never| match never {}));
                assert_eq!(tiles[0], tiles[1], "tile {index} of the machine, level {level}");
            }
        }
    }
}
