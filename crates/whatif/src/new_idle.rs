//! New-idle balancing as the kernel has it: a CPU that goes idle looks for a task in one scheduling domain after another, and gives up where that
//! would take longer than it is about to idle.
//!
//! The functions are those of `kernel/sched/fair.c` of Linux 6.12: `sched_balance_newidle`, `sched_balance_find_src_group`, `calculate_imbalance`,
//! `adjust_numa_imbalance`, `sched_balance_find_src_rq` and `task_hot`, with numbers of tasks in the place of their load.
//! [`NewIdle::by_success`] adds `NI_RANDOM` (`update_newidle_stats`, 6.19), by which a domain is searched as often as that has helped.
//!
//! A kernel's searches fail more often than these rules say: a group's kind depends on the utilization of its CPUs (`group_is_overloaded`), and the cost
//! of a search rises with each delay of it (`update_newidle_cost`). A trace shows neither, but how often new-idle balancing pulled a task where one
//! waited. Where it did so often enough to tell, no larger share of the chances becomes a pull here, under the cache and beyond ([`TraceSuccess`]).

use crate::chances::{Balancing, Owed, PullRate};
use crate::domains::{Domain, Domains, NUMA};
use crate::engine::{Costs, Machine, Placement, Policy};
use crate::model::TaskIndex;
use sched::Cpu;

/// `sysctl_sched_migration_cost`: a task that ran less than 500 µs ago is hot in its cache, and is not moved.
const MIGRATION_COST: i64 = 500_000;

/// The average idle time of a CPU at first: twice `sysctl_sched_migration_cost`.
const FIRST_AVERAGE: i64 = 2 * MIGRATION_COST;

/// The share by which a group must be busier than that of a CPU which has to overload itself: `imbalance_pct`, in percent.
const IMBALANCE_PERCENT: u64 = 117;

/// The imbalance between nodes that is left while the destination has hardly any task: `NUMA_IMBALANCE_MIN`.
const NUMA_IMBALANCE: u64 = 2;

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

/// New-idle balancing as the kernel has it.
#[derive(Clone, Debug, Default)]
pub struct NewIdle {
    /// Whether domains are searched as often as that has helped (`NI_RANDOM`).
    pub by_success: bool,
    state: State,
}

#[derive(Clone, Debug, Default)]
struct State {
    domains: Domains,
    cpus: Vec<IdleTimes>,
    /// The time that the latest search took, in nanoseconds.
    spent: u64,
    dice: u64,
    success: TraceSuccess,
}

/// The tasks of a group of CPUs.
#[derive(Clone, Copy, Debug, Default)]
struct GroupLoad {
    cpus: u64,
    runnable: u64,
    idle: u64,
}

/// The kinds of groups, in the order in which the kernel compares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GroupKind {
    HasSpare,
    FullyBusy,
    Overloaded,
}

impl GroupLoad {
    fn kind(self) -> GroupKind {
        match self.runnable.cmp(&self.cpus) {
            std::cmp::Ordering::Less => GroupKind::HasSpare,
            std::cmp::Ordering::Equal => GroupKind::FullyBusy,
            std::cmp::Ordering::Greater => GroupKind::Overloaded,
        }
    }

    /// Whether the group has more tasks a CPU than another one, by so many percent of that.
    fn is_busier(self, other: GroupLoad, percent: u64) -> bool {
        100 * self.runnable * other.cpus > percent * other.runnable * self.cpus
    }

    /// Whether the kernel would sooner take a task of this group than of another one (`update_sd_pick_busiest`).
    fn is_before(self, other: GroupLoad) -> bool {
        match self.kind().cmp(&other.kind()) {
            std::cmp::Ordering::Equal if self.kind() == GroupKind::HasSpare => {
                (other.idle, self.runnable) > (self.idle, other.runnable)
            }
            std::cmp::Ordering::Equal => self.is_busier(other, 100),
            order => order.is_gt(),
        }
    }

    /// The tasks that a group has more than this one, as for groups of the same size (`sibling_imbalance`).
    fn lacks(self, busiest: GroupLoad) -> u64 {
        if busiest.cpus == self.cpus {
            return busiest.runnable.saturating_sub(self.runnable);
        }
        let all = self.cpus + busiest.cpus;
        let more = (self.cpus * busiest.runnable).saturating_sub(busiest.cpus * self.runnable);
        let normal = (2 * more + all) / all;
        if normal <= 1 && self.runnable == 0 && busiest.runnable > 1 { 2 } else { normal }
    }
}

/// Whether a task of the busiest group comes to a CPU of the local one that goes idle (`sched_balance_find_src_group`, `calculate_imbalance`).
fn is_imbalanced(domain: &Domain, local: GroupLoad, busiest: GroupLoad, all: GroupLoad) -> bool {
    use GroupKind::{HasSpare, Overloaded};
    if local.kind() > busiest.kind() {
        return false;
    }
    let is_below = |percent| busiest.is_busier(local, percent) && all.is_busier(local, 100);
    if local.kind() == Overloaded && !is_below(IMBALANCE_PERCENT) {
        return false;
    }
    let has_children = domain.has_children;
    let is_forced = has_children && local.kind() == HasSpare && local.lacks(busiest) > 1;
    if !is_forced && busiest.kind() != Overloaded {
        let has_as_many_idle = busiest.cpus > 1 && local.idle <= busiest.idle + 1;
        if has_as_many_idle || busiest.runnable == 1 {
            return false;
        }
    }
    if local.kind() != HasSpare {
        // One task at least: the busiest group has it above the average, and the local one below.
        let above = (busiest.runnable * all.cpus).saturating_sub(all.runnable * busiest.cpus);
        let below = (all.runnable * local.cpus).saturating_sub(local.runnable * all.cpus);
        return above.min(below) >= all.cpus;
    }
    if busiest.kind() == Overloaded && !domain.shares_cache {
        return true;
    }
    let missing =
        if busiest.cpus == 1 || has_children { local.lacks(busiest) } else { local.idle.saturating_sub(busiest.idle) };
    let is_small = domain.most_between_nodes.is_some_and(|most| local.runnable < most && missing <= NUMA_IMBALANCE);
    missing >= 2 && !is_small
}

impl State {
    fn begin(&mut self, machine: &Machine<'_>) {
        if self.cpus.is_empty() {
            self.domains = machine.domains();
            self.cpus = vec![IdleTimes::FIRST; machine.model().cpus.len()];
        }
    }

    /// A task is woken on an idle CPU, which knows now for how long it idled (`ttwu_do_activate`).
    fn wakes_up(&mut self, cpu: Cpu, now: i64, most: i64) {
        let Some(own) = self.cpus.get_mut(cpu.index()) else { return };
        if let Some(since) = own.since.take() {
            own.average = (own.average + ((now - since) - own.average) / 8).min(most);
        }
    }
}

/// A number below 1,024, the next of a sequence that is always the same.
fn throw(dice: &mut u64) -> u32 {
    *dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*dice >> 54) as u32
}

/// The tasks of some CPUs, beside the CPU that goes idle: that has none, and does not idle yet.
fn load_of(cpus: &[Cpu], leaving: Cpu, machine: &Machine<'_>) -> GroupLoad {
    machine.look(cpus.len() as u64);
    let mut load = GroupLoad::default();
    for cpu in cpus {
        let runnable = runnable(*cpu, machine);
        load.cpus += 1;
        if *cpu != leaving {
            load.runnable += runnable;
            load.idle += u64::from(runnable == 0);
        }
    }
    load
}

fn runnable(cpu: Cpu, machine: &Machine<'_>) -> u64 {
    machine.queue_length(cpu) as u64 + u64::from(machine.running(cpu).is_some())
}

/// The task that a CPU takes out of one of its domains.
fn task_of(domain: &Domain, cpu: Cpu, machine: &Machine<'_>) -> Option<TaskIndex> {
    let mut busiest: Option<(GroupLoad, &[Cpu])> = None;
    let (mut local, mut all) = (GroupLoad::default(), GroupLoad::default());
    for group in &domain.groups {
        let load = load_of(group, cpu, machine);
        all = GroupLoad {
            cpus: all.cpus + load.cpus,
            runnable: all.runnable + load.runnable,
            idle: all.idle + load.idle,
        };
        if group.contains(&cpu) {
            local = load;
        } else if load.runnable > 0 && busiest.is_none_or(|(most, _)| load.is_before(most)) {
            busiest = Some((load, group));
        }
    }
    let (_, group) = busiest.filter(|(load, _)| is_imbalanced(domain, local, *load, all))?;
    // The first of several that have as many.
    let longest = group
        .iter()
        .copied()
        .reduce(|most, other| if runnable(other, machine) > runnable(most, machine) { other } else { most })?;
    let is_cold = |task: &TaskIndex| {
        domain.is_core || machine.now().0.saturating_sub(machine.last_ran(*task).0) >= MIGRATION_COST
    };
    let may = |task: &TaskIndex| machine.is_movable(*task) && machine.may_use(*task, cpu) && is_cold(task);
    machine.queue(longest).find(may).filter(|_| machine.running(longest).is_some())
}

impl NewIdle {
    /// New-idle balancing that searches each domain whenever the idle time allows it (up to 6.18), or by its success as well (`NI_RANDOM`).
    pub fn new(by_success: bool) -> NewIdle {
        NewIdle { by_success, state: State::default() }
    }
}

impl Policy for NewIdle {
    fn name(&self) -> String {
        if self.by_success { "newidle=random" } else { "newidle" }.to_owned()
    }

    fn place(&mut self, placement: &Placement, machine: &Machine<'_>) -> Cpu {
        let cpu = machine.usual(placement);
        if !placement.is_new && machine.is_free(cpu) {
            self.state.begin(machine);
            // `max_idle_balance_cost` is 500 µs, or what all domains cost (`sched_balance_domains`).
            let all = machine.costs().new_idle.unwrap_or_default().all;
            let most = MIGRATION_COST.max(i64::try_from(all).unwrap_or(i64::MAX)).saturating_mul(2);
            self.state.wakes_up(cpu, machine.now().0, most);
        }
        cpu
    }

    fn steal(&mut self, cpu: Cpu, machine: &Machine<'_>) -> Option<TaskIndex> {
        self.state.begin(machine);
        let now = machine.now().0;
        let state = &mut self.state;
        state.cpus.get_mut(cpu.index())?.since = Some(now);
        state.spent = 0;
        // No CPU of the root domain is overloaded (`rd->overloaded`).
        if machine.waiting() == 0 {
            return None;
        }
        let chances = machine.chances.as_ref();
        let limits = chances.zip(TraceSuccess::rates(&machine.model().taken.balancing));
        if let Some((chances, rates)) = limits
            && let Some(is_near) = chances.nearest(cpu)
        {
            state.success.count(rates, is_near);
        }
        let costs = machine.costs().new_idle.unwrap_or_default();
        let domains = state.domains.of(cpu);
        for (nth, (level, at)) in domains.iter().copied().enumerate() {
            let cost = costs.of(nth, domains.len());
            let average = u64::try_from(state.cpus[cpu.index()].average).unwrap_or(0);
            if average < state.spent.saturating_add(cost) {
                break;
            }
            let searches = state.cpus[cpu.index()].searches[level];
            let weight = 1 + searches.ratio;
            if self.by_success && throw(&mut state.dice) > weight {
                state.cpus[cpu.index()].searches[level].count(0);
                continue;
            }
            let found =
                task_of(state.domains.get(at), cpu, machine).filter(|task| match (limits, machine.queued_on(*task)) {
                    (Some((chances, _)), Some(orig)) => state.success.take(chances.is_near(cpu, orig)),
                    _ => true,
                });
            state.spent = state.spent.saturating_add(cost);
            let own = &mut state.cpus[cpu.index()];
            let counts = if self.by_success { (SEARCHES + weight / 2) / weight } else { 1 };
            own.searches[level].count(if found.is_some() { counts } else { 0 });
            if found.is_some() {
                own.since = None;
                return found;
            }
        }
        None
    }

    fn steal_takes(&self, _: &Costs) -> u64 {
        self.state.spent
    }

    fn balances_new_idle(&self) -> bool {
        true
    }
}

#[cfg(test)]
#[path = "new_idle_tests.rs"]
mod tests;
