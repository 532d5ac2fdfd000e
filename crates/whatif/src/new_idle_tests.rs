//! Decisions of new-idle balancing, calculated by hand from the kernel's functions.

use super::*;
use crate::engine::{Costs, EngineOptions, Interrupts, NewIdleCost, Order, Wakeups, simulate};
use crate::model::{Begin, Model, ModelCpu, ModelTask, PlacedOn, ProgramStep, QueueJoin};
use sched::topology::CpuLocation;
use sched::{Comm, EventKind, Pid, Topology, Ts};
use std::ops::ControlFlow;

const MS: u64 = 1_000_000;

fn join(cpu: Cpu) -> QueueJoin {
    let (placed, seeks_idle, dispatch, allowed) = (PlacedOn::Other, false, None, None);
    QueueJoin { task: 0, start: Ts(0), waited: 0, cpu, placed, seeks_idle, dispatch, moves: (0, 0), allowed }
}

/// Runs tasks that run on a CPU from the start, and others that wait there, each a CPU and its CPU time in microseconds. Returns the tasks that were
/// moved, as the CPU that each came from and went to, with the instant in microseconds.
fn moves(
    policy: &mut dyn Policy,
    topology: &Topology,
    tasks: [&[(u32, u64)]; 2],
    cost: NewIdleCost,
) -> Vec<(u32, u32, i64)> {
    moves_in(Order::Fifo, policy, topology, tasks, cost)
}

/// The same with an order of the run queues.
fn moves_in(
    order: Order,
    policy: &mut dyn Policy,
    topology: &Topology,
    tasks: [&[(u32, u64)]; 2],
    cost: NewIdleCost,
) -> Vec<(u32, u32, i64)> {
    let mut model = Model { end: Ts(1_000 * MS as i64), ..Model::default() };
    model.cpus = vec![ModelCpu { usable: true, runs: Vec::new() }; topology.cpus().count()];
    for (is_waiting, tasks) in [false, true].into_iter().zip(tasks) {
        for (cpu, us) in tasks {
            let at = Cpu(*cpu);
            let join = join(at);
            let begin = if is_waiting { Begin::Waits(model.joins.len() as u32) } else { Begin::Runs(at) };
            model.joins.push(join);
            let pid = Pid(100 + model.tasks.len() as i32);
            let steps = vec![ProgramStep::Run(us * 1_000), ProgramStep::Die];
            let (comm, allowed) = (Comm::from_array([b'a'; 16]), None);
            model.tasks.push(ModelTask {
                id: None,
                pid,
                parent: None,
                comm,
                prio: 120,
                cpu: at,
                allowed,
                begin,
                steps,
            });
        }
    }
    model.taken.slice_ns = sched::Dur(3 * MS);
    let costs = Costs { new_idle: Some(cost), ..Costs::default() };
    let (interrupts, wakeups) = (Interrupts::KeepLength, Wakeups::ByKind);
    let options = EngineOptions { topology, order, costs, interrupts, wakeups };
    let mut found = Vec::new();
    simulate(&model, policy, &options, &mut |event| {
        if let EventKind::Migrate { orig, dest, .. } = event.kind {
            found.push((orig.0, dest.0, event.ts.0 / 1_000));
        }
        ControlFlow::Continue(())
    });
    found
}

/// CPUs of which so many share a cache and a node.
fn caches(cpus: u32, of: u32) -> Topology {
    let mut topology = Topology::default();
    for cpu in 0..cpus {
        let (core, llc, node) = (Some(cpu), Some(cpu / of), Some(cpu / of));
        topology.set(Cpu(cpu), CpuLocation { core, llc, node, ..CpuLocation::default() });
    }
    topology
}

const CHEAP: NewIdleCost = NewIdleCost { lowest: 3_000, all: 20_000 };

#[test]
fn a_cpu_that_goes_idle_takes_a_task_unless_it_would_not_idle_for_long_enough() {
    let one = caches(2, 2);
    let tasks: [&[(u32, u64)]; 2] = [&[(0, 10_000), (1, 1_000)], &[(0, 5_000)]];
    assert_eq!(moves(&mut NewIdle::new(false), &one, tasks, CHEAP), [(0, 1, 1_000)]);
    // The average idle time is 1 ms at first.
    let dear = |lowest| NewIdleCost { lowest, all: lowest };
    assert_eq!(moves(&mut NewIdle::new(false), &one, tasks, dear(1_000_000)), [(0, 1, 1_000)]);
    assert_eq!(moves(&mut NewIdle::new(false), &one, tasks, dear(1_000_001)), []);
}

#[test]
fn a_task_that_ran_a_moment_ago_is_hot() {
    // The first task's slice ends at 3 ms; it waits from then on, and is hot for half a millisecond.
    let run = |us| {
        let tasks: [&[(u32, u64)]; 2] = [&[(0, 10_000), (1, 20_000), (2, us)], &[(0, 10_000)]];
        moves_in(Order::Fair, &mut NewIdle::new(false), &caches(3, 3), tasks, CHEAP)
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
    assert_eq!(moves(&mut NewIdle::new(false), &two, tasks, CHEAP), [(0, 2, 1_000)]);
    // Two tasks on one of its CPUs, and the other idles: nothing is taken, whatever idles.
    let tasks: [&[(u32, u64)]; 2] = [&[(0, 10_000), (2, 1_000)], &[(0, 5_000)]];
    assert_eq!(moves(&mut NewIdle::new(false), &two, tasks, CHEAP), []);
    // Under one cache it is.
    assert_eq!(moves(&mut NewIdle::new(false), &caches(4, 4), tasks, CHEAP), [(0, 2, 1_000)]);
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
    let mut state = State { cpus: vec![IdleTimes::FIRST], ..State::default() };
    for (idle, average) in [(200_000, 900_000), (100_000, 800_000)] {
        state.cpus[0].since = Some(0);
        state.wakes_up(Cpu(0), idle, FIRST_AVERAGE);
        assert_eq!(state.cpus[0].average, average);
    }
    // No more than twice what balancing costs at most.
    state.cpus[0].since = Some(0);
    state.wakes_up(Cpu(0), 100 * FIRST_AVERAGE, FIRST_AVERAGE);
    assert_eq!(state.cpus[0].average, FIRST_AVERAGE);
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
