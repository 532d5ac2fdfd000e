//! Decisions of new-idle balancing, calculated by hand from the kernel's functions.

use super::super::testing::{Scene, caches, moves, moves_of};
use super::super::{KernelBalancing, Mechanisms};
use super::*;
use crate::domains::Domains;
use crate::engine::{NewIdleCost, Order};

/// New-idle balancing by itself.
fn new_idle() -> KernelBalancing {
    KernelBalancing::new(Mechanisms { new_idle: Some(NewIdleRule::ByTime), ..Mechanisms::default() })
}

const CHEAP: NewIdleCost = NewIdleCost { lowest: 3_000, all: 20_000 };

#[test]
fn a_cpu_that_goes_idle_takes_a_task_unless_it_would_not_idle_for_long_enough() {
    let one = caches(2, 2);
    let tasks: [&[(u32, u64)]; 2] = [&[(0, 10_000), (1, 1_000)], &[(0, 5_000)]];
    assert_eq!(moves(&mut new_idle(), &one, tasks, CHEAP), [(0, 1, 1_000)]);
    // The average idle time is 1 ms at first.
    let dear = |lowest| NewIdleCost { lowest, all: lowest };
    assert_eq!(moves(&mut new_idle(), &one, tasks, dear(1_000_000)), [(0, 1, 1_000)]);
    assert_eq!(moves(&mut new_idle(), &one, tasks, dear(1_000_001)), []);
}

#[test]
fn a_task_that_ran_a_moment_ago_is_hot() {
    // The first task's slice ends at 3 ms; it waits from then on, and is hot for half a millisecond.
    let run = |us| {
        let tasks: [&[(u32, u64)]; 2] = [&[(0, 10_000), (1, 20_000), (2, us)], &[(0, 10_000)]];
        let topology = &caches(3, 3);
        moves_of(&mut new_idle(), Scene { order: Order::Fair, topology, tasks, bound: [false; 2], cost: CHEAP })
    };
    assert_eq!(run(3_200), []);
    assert_eq!(run(3_499), []);
    assert_eq!(run(3_500), [(0, 2, 3_500)]);
}

#[test]
fn a_small_imbalance_between_nodes_is_left() {
    // Each node has two CPUs. CPU 0 runs a task and has another one; CPU 2 goes idle, and its node has nothing else: two tasks are a small imbalance.
    let two = caches(4, 2);
    let tasks: [&[(u32, u64)]; 2] = [&[(0, 10_000), (1, 20_000), (2, 1_000)], &[(0, 5_000)]];
    // Three tasks in the other node: its two CPUs are overloaded.
    assert_eq!(moves(&mut new_idle(), &two, tasks, CHEAP), [(0, 2, 1_000)]);
    // Two tasks on one of its CPUs, and the other idles: nothing is taken, whatever idles.
    let tasks: [&[(u32, u64)]; 2] = [&[(0, 10_000), (2, 1_000)], &[(0, 5_000)]];
    assert_eq!(moves(&mut new_idle(), &two, tasks, CHEAP), []);
    // Under one cache it is.
    assert_eq!(moves(&mut new_idle(), &caches(4, 4), tasks, CHEAP), [(0, 2, 1_000)]);
}

#[test]
fn searches_without_success_become_rare() {
    let mut searches = Searches::FIRST;
    assert_eq!(searches.ratio, 512);
    (0..512).for_each(|_| searches.count(0));
    // 256 of 1,024 had found a task.
    assert_eq!((searches.ratio, searches.all, searches.successful), (256, 512, 128));
    (0..512).for_each(|_| searches.count(1));
    assert_eq!(searches.ratio, 128 + 512);
}

#[test]
fn the_average_follows_an_eighth_of_each_idle_time() {
    let mut own = IdleTimes::FIRST;
    for (idle, average) in [(200_000, 900_000), (100_000, 800_000)] {
        own.since = Some(0);
        own.wakes_up(idle, FIRST_AVERAGE);
        assert_eq!(own.average, average);
    }
    // No more than twice what balancing costs at most.
    own.since = Some(0);
    own.wakes_up(100 * FIRST_AVERAGE, FIRST_AVERAGE);
    assert_eq!(own.average, FIRST_AVERAGE);
}

#[test]
fn a_domain_has_the_groups_of_the_next_level_and_needs_two() {
    // Two nodes of two caches with two cores each, of two siblings each; the node of a cache is known from its CPUs.
    let level = |cpu: Cpu, level: usize| {
        [Some(cpu.0 / 2), None, Some(cpu.0 / 4), Some(cpu.0 / 8)].get(level).copied().flatten()
    };
    let all: Vec<Cpu> = (0..16).map(Cpu).collect();
    let domains = Domains::new(16, &all, level);
    let of: Vec<(usize, usize)> =
        domains.of(Cpu(5)).iter().map(|(level, at)| (*level, domains.get(*at).groups.len())).collect();
    assert_eq!(of, [(0, 2), (2, 2), (3, 2), (4, 2)]);
    // Two caches in a node: an imbalance of so many tasks is left. Without nodes there is none.
    let machine = domains.get(domains.of(Cpu(5))[3].1);
    assert_eq!((machine.most_between_nodes, machine.shares_cache, machine.has_children), (Some(2), false, true));
    // A cache with all CPUs of its node has no domain of the node beside it.
    let level =
        |cpu: Cpu, level: usize| [Some(cpu.0), None, Some(cpu.0 / 4), Some(cpu.0 / 4)].get(level).copied().flatten();
    let domains = Domains::new(8, &all[..8], level);
    assert_eq!(domains.of(Cpu(3)).iter().map(|(level, _)| *level).collect::<Vec<_>>(), [2, 4]);
}

/// A search that finds a task pulls it as often as those of the trace did, near and far apart, and a pull that is due waits for the next such search.
#[test]
fn searches_succeed_as_often_as_those_of_the_trace() {
    let rate = |pulls, chances| PullRate { pulls, chances };
    let balancing = Balancing { new_idle_near: rate(10, 40), new_idle_far: rate(0, 9), ..Balancing::default() };
    let rates = TraceSuccess::rates(&balancing).expect("a pull");
    let mut success = TraceSuccess::default();
    let mut taken = Vec::new();
    for nth in 1..=12 {
        success.count(rates, true);
        success.count(rates, false);
        // The fourth search finds nothing.
        taken.push(nth != 4 && success.take(true));
        assert!(!success.take(false), "none beyond the cache");
    }
    let pulled: Vec<usize> = (1..).zip(taken).filter(|(_, is)| *is).map(|(nth, _)| nth).collect();
    assert_eq!(pulled, [5, 8, 12]);
    let off = Balancing { new_idle_near: rate(3, 307), idle_near: rate(9, 1_000), ..Balancing::default() };
    assert!(TraceSuccess::rates(&off).is_none(), "it may have been off");
}
