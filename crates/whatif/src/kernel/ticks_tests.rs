//! Decisions at ticks, calculated by hand from the kernel's functions.

use super::schedule::Turn;
use super::search::{Failures, SearchOutcome};
use super::testing::{Scene, caches, moves, moves_of};
use super::*;
use crate::engine::{NewIdleCost, Order};
use groups::Idleness;

const COST: NewIdleCost = NewIdleCost { lowest: 3_000, all: 20_000 };

fn named(names: &str) -> KernelBalancing {
    KernelBalancing::new(names.parse().expect("mechanisms"))
}

/// The same with another time between ticks, in microseconds.
fn with_tick(names: &str, us: u64) -> KernelBalancing {
    KernelBalancing::new(Mechanisms { tick: Dur(1_000 * us), ..names.parse().expect("mechanisms") })
}

/// Two CPUs under a cache balance each 2 ms: idle at each tick of 4 ms, busy at each 7th (16 times 2 ms are 8 ticks, less one). CPU 1 balanced last 3
/// ticks before the start, half an interval.
#[test]
fn a_busy_cpu_takes_tasks_at_its_ticks_until_it_has_as_many() {
    let one = caches(2, 2);
    let tasks: [&[(u32, u64)]; 2] = [&[(0, 200_000), (1, 200_000)], &[(0, 200_000), (0, 200_000)]];
    assert_eq!(moves(&mut named("periodic"), &one, tasks, COST), [(0, 1, 16_000)]);
    assert_eq!(moves(&mut named("nohz"), &one, tasks, COST), [(0, 1, 200_000)], "no CPU idles before");
    // Two tasks and one: half a task is too much. A search that failed counts a task as half of one.
    let tasks: [&[(u32, u64)]; 2] = [&[(0, 400_000), (1, 400_000)], &[(0, 400_000)]];
    let found = moves(&mut named("periodic"), &one, tasks, COST);
    // CPU 0 found balance at its 7th tick, and doubled its interval to 15 ticks; it fails at the 22nd one.
    assert_eq!(found[..2], [(0, 1, 44_000), (1, 0, 116_000)], "{found:?}");
    let tasks: [&[(u32, u64)]; 2] = [&[(0, 100_000), (1, 100_000)], &[]];
    assert_eq!(moves(&mut named("nohz+periodic"), &one, tasks, COST), []);
}

#[test]
fn an_idle_cpu_is_kicked_by_the_tick_of_an_overloaded_one() {
    let one = caches(2, 2);
    let tasks: [&[(u32, u64)]; 2] = [&[(0, 20_000)], &[(0, 20_000), (0, 20_000)]];
    // Three tasks and none: half of the difference.
    assert_eq!(moves(&mut named("nohz"), &one, tasks, COST)[0], (0, 1, 4_000));
    assert_eq!(moves(&mut named("periodic"), &one, tasks, COST), [], "an idle CPU has no tick");
    assert_eq!(moves(&mut with_tick("nohz", 1_000), &one, tasks, COST)[0], (0, 1, 1_000));
    let tasks: [&[(u32, u64)]; 2] = [&[(0, 20_000)], &[(0, 20_000); 4]];
    assert_eq!(moves(&mut named("nohz"), &one, tasks, COST)[..2], [(0, 1, 4_000), (0, 1, 4_000)]);
    let one_task: [&[(u32, u64)]; 2] = [&[(0, 20_000)], &[]];
    assert_eq!(moves(&mut named("nohz"), &one, one_task, COST), []);
}

/// The first task's time slice ends at 3 ms.
#[test]
fn a_hot_task_stays() {
    let topology = &caches(2, 2);
    let tasks: [&[(u32, u64)]; 2] = [&[(0, 20_000)], &[(0, 20_000)]];
    let first = |us| {
        let scene = Scene { order: Order::Fair, topology, tasks, bound: [false; 2], cost: COST };
        moves_of(&mut with_tick("nohz", us), scene).first().copied()
    };
    assert_eq!(first(4_000), Some((0, 1, 4_000)), "it waits for 1 ms");
    assert_eq!(first(3_500), Some((0, 1, 3_500)), "it waits for 500 µs");
    assert_eq!(first(3_499), Some((0, 1, 6_998)), "it waits for 499 µs, and at the next tick for 3,998 µs");
}

#[test]
fn a_bound_task_stays_and_the_running_one_is_pushed_after_four_failures() {
    let topology = &caches(2, 2);
    let tasks: [&[(u32, u64)]; 2] = [&[(0, 100_000)], &[(0, 100_000)]];
    let run = |bound| {
        let scene = Scene { order: Order::Fifo, topology, tasks, bound, cost: COST };
        moves_of(&mut named("newidle+nohz+periodic"), scene)
    };
    assert_eq!(run([false, true]), [(0, 1, 16_000)]);
    assert_eq!(run([true, true]), []);
}

/// Four CPUs in two nodes. Each node's first CPU balances between the nodes if none idles: CPU 3 would be due before.
#[test]
fn one_cpu_of_a_group_balances_for_it() {
    let two = caches(4, 2);
    let running = [(0, 500_000), (1, 500_000), (2, 500_000), (3, 500_000)];
    let tasks: [&[(u32, u64)]; 2] = [&running, &[(0, 500_000); 4]];
    let found = moves(&mut named("periodic"), &two, tasks, COST);
    // At the 6th tick CPU 1 takes two of five; at the 8th one CPU 2 takes two of the six tasks of the other node.
    assert_eq!(found[..4], [(0, 1, 24_000), (0, 1, 24_000), (0, 2, 32_000), (0, 2, 32_000)], "{found:?}");
}

#[test]
fn intervals_double_while_there_is_balance() {
    let mut turn = Turn { last: 0, interval: 4, least: 4, failures: Failures { count: 1, nice_tries: 1 } };
    let mut after = |found: SearchOutcome, idleness| {
        let pushed = turn.settle(&found, idleness);
        (turn.interval, turn.failures.count, pushed)
    };
    assert_eq!(after(SearchOutcome::Balance, Idleness::NewlyIdle), (4, 0, None));
    assert_eq!(after(SearchOutcome::Balance, Idleness::Busy), (8, 0, None));
    assert_eq!(after(SearchOutcome::Balance, Idleness::Idle), (8, 0, None));
    assert_eq!(after(SearchOutcome::Bound, Idleness::Idle), (16, 0, None));
    let failure = || SearchOutcome::Failure { source: Cpu(7), by_number: true };
    assert_eq!(after(failure(), Idleness::NewlyIdle), (4, 0, None));
    let fails: Vec<_> = (0..4).map(|_| after(failure(), Idleness::Idle)).collect();
    assert_eq!(fails, [(4, 1, None), (4, 2, None), (4, 3, None), (4, 4, Some(Cpu(7)))]);
    assert_eq!(after(SearchOutcome::Tasks(vec![3]), Idleness::Busy), (4, 0, None));
}

#[test]
fn names_are_joined_in_any_order_and_each_once() {
    let name = |text: &str| text.parse::<Mechanisms>().map(|named| named.to_string());
    assert_eq!(name("periodic+newidle=random+nohz"), Ok("newidle=random+nohz+periodic".to_owned()));
    assert_eq!(name("newidle"), Ok("newidle".to_owned()));
    for wrong in ["", "nohz+", "nohz+nohz", "newidle+newidle=random", "steal=llc+nohz", "ideal+periodic"] {
        assert_eq!(name(wrong), Err(()), "{wrong}");
    }
}
