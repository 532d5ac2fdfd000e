//! Nohz idle balancing as the kernel has it: idle CPUs have no tick, so that the tick of a busy CPU kicks one of them, which balances for all of them.
//!
//! The functions are `nohz_balancer_kick`, `kick_ilb`, `find_new_ilb` and `_nohz_idle_balance` of `kernel/sched/fair.c` of Linux 6.12, but for CPUs of
//! unequal capacity. A CPU kicks whose queue has two tasks, or that shares its last-level cache with another busy one, once a balance of any
//! idle CPU is due: each balances a domain of n CPUs every n to 2 n ms. Every CPU that idles counts as one whose tick has stopped.

use super::groups::runnable;
use super::schedule::{Coming, Schedule, Walk};
use crate::engine::Machine;
use sched::Cpu;

/// The state of nohz idle balancing of all CPUs.
#[derive(Clone, Debug, Default)]
pub(super) struct Nohz {
    /// The number of the tick from which on a CPU may kick (`nohz.next_balance`).
    next: i64,
    /// The number of the latest tick at which an idle CPU was sought.
    sought: Option<i64>,
    /// The idle balance, while it lasts.
    round: Option<Round>,
}

/// The balance for all idle CPUs.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// The idle CPU that was kicked, which comes last.
    balancer: Cpu,
    /// The number of CPUs whose turn it was.
    turns: u32,
    /// The earliest tick at which an idle CPU balances next.
    next: Option<i64>,
    walk: Option<Walk>,
}

impl Nohz {
    /// A CPU goes idle, and its next balance counts at the next tick (`NOHZ_NEXT_KICK`).
    pub(super) fn goes_idle(&mut self, cpu: Cpu, schedule: &Schedule) {
        self.next = self.next.min(schedule.next_of(cpu));
    }

    /// The tick of a CPU that runs a task kicks an idle CPU if there is reason to (`nohz_balancer_kick`).
    pub(super) fn tick(&mut self, cpu: Cpu, schedule: &Schedule, machine: &Machine<'_>) {
        let now = schedule.now(machine);
        if now < self.next || self.sought == Some(now) {
            return;
        }
        if runnable(cpu, machine) < 2 && !shares_cache_with_busy(cpu, schedule, machine) {
            return;
        }
        self.sought = Some(now);
        let cpus = machine.model().cpus.len() as u32;
        machine.look(u64::from(cpus));
        if let Some(balancer) = (0..cpus).map(Cpu).find(|other| machine.is_free(*other)) {
            self.next = now + 1;
            self.round = Some(Round { balancer, turns: 0, next: None, walk: None });
        }
    }

    /// The next tasks that the balance of idle CPUs brings (`_nohz_idle_balance`).
    pub(super) fn go_on(&mut self, schedule: &mut Schedule, machine: &Machine<'_>) -> Option<Coming> {
        let now = schedule.now(machine);
        let round = self.round.as_mut()?;
        loop {
            if let Some(walk) = &mut round.walk {
                let coming = walk.go_on(schedule, machine);
                if coming.is_some() {
                    return coming;
                }
                let cpu = walk.cpu;
                round.walk = None;
                round.note(cpu, schedule);
            }
            let cpus = machine.model().cpus.len() as u32;
            if round.turns == cpus {
                self.next = round.next.unwrap_or(self.next);
                self.round = None;
                return None;
            }
            round.turns += 1;
            let cpu = Cpu((round.balancer.0 + round.turns) % cpus);
            if !machine.is_free(cpu) {
                continue;
            }
            match schedule.is_due(cpu, now) {
                true => round.walk = Some(Walk::new(cpu)),
                false => round.note(cpu, schedule),
            }
        }
    }
}

impl Round {
    fn note(&mut self, cpu: Cpu, schedule: &Schedule) {
        let next = schedule.next_of(cpu);
        self.next = Some(self.next.map_or(next, |least| least.min(next)));
    }
}

/// Whether another CPU under the last-level cache of `cpu` is busy (`nr_busy_cpus`).
fn shares_cache_with_busy(cpu: Cpu, schedule: &Schedule, machine: &Machine<'_>) -> bool {
    let mut domains = schedule.domains.of(cpu).iter().rev().map(|(_, at)| schedule.domains.get(*at));
    let Some(cache) = domains.find(|domain| domain.shares_cache) else { return false };
    machine.look(1);
    cache.groups.iter().flatten().any(|other| *other != cpu && !machine.is_free(*other))
}
