//! New-idle balancing as the kernel has it: a CPU that goes idle looks for a task in one scheduling domain after another, and gives up where that
//! would take longer than it is about to idle.
//!
//! The function is `sched_balance_newidle` of `kernel/sched/fair.c` of Linux 6.12. [`NewIdleRule::BySuccess`] adds `NI_RANDOM`
//! (`update_newidle_stats`, 6.19), by which a domain is searched as often as that has helped.
//!
//! A kernel's searches fail more often than these rules say: a group's kind depends on the utilization of its CPUs (`group_is_overloaded`), and the cost
//! of a search rises with each delay of it (`update_newidle_cost`). A trace shows neither, but how often new-idle balancing pulled a task where one
//! waited. Where it did so often enough to tell, no larger share of the chances becomes a pull here, under the cache and beyond ([`TraceSuccess`]).

use super::schedule::Schedule;
use super::search::MIGRATION_COST;
use crate::chances::{Balancing, Owed, PullRate};
use crate::domains::NUMA;
use crate::engine::Machine;
use crate::model::TaskIndex;
use sched::Cpu;

/// The average idle time of a CPU at first: twice `sysctl_sched_migration_cost`.
const FIRST_AVERAGE: i64 = 2 * MIGRATION_COST;

/// How often a domain is searched by a CPU that goes idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewIdleRule {
    /// Whenever the CPU's idle time allows it (up to 6.18).
    ByTime,
    /// Only as often as a search has helped (`NI_RANDOM`).
    BySuccess,
}

/// The searches of a domain of which `NI_RANDOM` counts the successful ones.
const SEARCHES: u32 = 1024;

/// The searches of a domain, and those that found a task.
#[derive(Clone, Copy, Debug)]
struct Searches {
    all: u32,
    successful: u32,
    /// The successful ones of 1,024.
    ratio: u32,
}

impl Searches {
    const FIRST: Searches = Searches { all: SEARCHES / 2, successful: SEARCHES / 4, ratio: SEARCHES / 2 };

    fn count(&mut self, successful: u32) {
        self.all += 1;
        self.successful += successful;
        if self.all >= SEARCHES {
            self.ratio = self.successful;
            self.all /= 2;
            self.successful /= 2;
        }
    }
}

/// A CPU's own record of its idle times and of its searches.
#[derive(Clone, Debug)]
struct IdleTimes {
    /// The instant at which it went idle, until the next wakeup there.
    since: Option<i64>,
    average: i64,
    searches: [Searches; NUMA + 1],
}

impl IdleTimes {
    const FIRST: IdleTimes = IdleTimes { since: None, average: FIRST_AVERAGE, searches: [Searches::FIRST; NUMA + 1] };

    fn wakes_up(&mut self, now: i64, most: i64) {
        if let Some(since) = self.since.take() {
            self.average = (self.average + ((now - since) - self.average) / 8).min(most);
        }
    }
}

/// The success of the trace's new-idle balancing: the pulls that as large a share of the chances gives, under the last-level cache and beyond.
#[derive(Clone, Copy, Debug, Default)]
struct TraceSuccess {
    owed: [Owed; 2],
    is_due: [bool; 2],
}

impl TraceSuccess {
    /// The shares of a trace; nothing of one with hardly any pull by new-idle balancing, which may have been off.
    fn rates(balancing: &Balancing) -> Option<[PullRate; 2]> {
        balancing.shows_new_idle().then_some([balancing.new_idle_near, balancing.new_idle_far])
    }

    /// A CPU goes idle while a task waits elsewhere, `is_near` its cache or only beyond.
    fn count(&mut self, rates: [PullRate; 2], is_near: bool) {
        let at = usize::from(!is_near);
        self.is_due[at] |= self.owed[at].add(rates[at], 1);
    }

    /// Whether a task that a search has found is pulled; that pull is due no longer.
    fn take(&mut self, is_near: bool) -> bool {
        std::mem::take(&mut self.is_due[usize::from(!is_near)])
    }
}

/// The state of new-idle balancing of all CPUs.
#[derive(Clone, Debug)]
pub(super) struct NewIdle {
    rule: NewIdleRule,
    cpus: Vec<IdleTimes>,
    /// The time that the latest search took, in nanoseconds.
    spent: u64,
    dice: u64,
    success: TraceSuccess,
}

/// A number below 1,024, the next of a sequence that is always the same.
fn throw(dice: &mut u64) -> u32 {
    *dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*dice >> 54) as u32
}

impl NewIdle {
    pub(super) fn new(rule: NewIdleRule, cpus: usize) -> NewIdle {
        NewIdle { rule, cpus: vec![IdleTimes::FIRST; cpus], spent: 0, dice: 0, success: TraceSuccess::default() }
    }

    /// The time that the latest search took, in nanoseconds.
    pub(super) fn spent(&self) -> u64 {
        self.spent
    }

    /// A task is woken on an idle CPU, which knows now for how long it idled (`ttwu_do_activate`).
    pub(super) fn wakes_up(&mut self, cpu: Cpu, machine: &Machine<'_>) {
        // `max_idle_balance_cost` is 500 µs, or what all domains cost (`sched_balance_domains`).
        let all = machine.costs().new_idle.unwrap_or_default().all;
        let most = MIGRATION_COST.max(i64::try_from(all).unwrap_or(i64::MAX)).saturating_mul(2);
        if let Some(own) = self.cpus.get_mut(cpu.index()) {
            own.wakes_up(machine.now().0, most);
        }
    }

    /// The task that a CPU pulls as it goes idle.
    pub(super) fn pull(&mut self, cpu: Cpu, schedule: &mut Schedule, machine: &Machine<'_>) -> Option<TaskIndex> {
        self.cpus.get_mut(cpu.index())?.since = Some(machine.now().0);
        self.spent = 0;
        schedule.goes_idle(cpu, 0);
        // No CPU of the root domain is overloaded (`rd->overloaded`).
        if machine.waiting() == 0 {
            return None;
        }
        let chances = machine.chances.as_ref();
        let limits = chances.zip(TraceSuccess::rates(&machine.model().taken.balancing));
        if let Some((chances, rates)) = limits
            && let Some(is_near) = chances.nearest(cpu)
        {
            self.success.count(rates, is_near);
        }
        let costs = machine.costs().new_idle.unwrap_or_default();
        let count = schedule.domains.of(cpu).len();
        for nth in 0..count {
            schedule.goes_idle(cpu, nth);
            let cost = costs.of(nth, count);
            let average = u64::try_from(self.cpus[cpu.index()].average).unwrap_or(0);
            if average < self.spent.saturating_add(cost) {
                break;
            }
            let (level, _) = schedule.domains.of(cpu)[nth];
            let weight = 1 + self.cpus[cpu.index()].searches[level].ratio;
            if self.rule == NewIdleRule::BySuccess && throw(&mut self.dice) > weight {
                self.cpus[cpu.index()].searches[level].count(0);
                continue;
            }
            let found = schedule.search_newly_idle(cpu, nth, machine);
            let found = found.filter(|task| match (limits, machine.queued_on(*task)) {
                (Some((chances, _)), Some(orig)) => self.success.take(chances.is_near(cpu, orig)),
                _ => true,
            });
            self.spent = self.spent.saturating_add(cost);
            let own = &mut self.cpus[cpu.index()];
            let counts = if self.rule == NewIdleRule::BySuccess { (SEARCHES + weight / 2) / weight } else { 1 };
            own.searches[level].count(if found.is_some() { counts } else { 0 });
            if found.is_some() {
                own.since = None;
                return found;
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "new_idle_tests.rs"]
mod tests;
