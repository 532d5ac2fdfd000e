//! The groups of a scheduling domain as the kernel compares them, and the tasks that come out of the busiest one: `update_sd_lb_stats`,
//! `sched_balance_find_src_group`, `calculate_imbalance` and `adjust_numa_imbalance` of Linux 6.12, with numbers of tasks in the place of their load.

use crate::domains::Domain;
use crate::engine::Machine;
use sched::Cpu;

/// The share by which a group must be busier than that of a CPU which has to overload itself: `imbalance_pct`, in percent; of the siblings of a core.
const IMBALANCE_PERCENT: [u64; 2] = [117, 110];

/// The imbalance between nodes that is left while the destination has hardly any task: `NUMA_IMBALANCE_MIN`.
const NUMA_IMBALANCE: u64 = 2;

/// The load of a task, and the capacity of a CPU.
pub(super) const LOAD: u64 = 1024;

/// The state of a CPU for which tasks are sought (`enum cpu_idle_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idleness {
    NewlyIdle,
    Idle,
    Busy,
}

/// The tasks that are to leave the busiest group of a domain (`env->migration_type`, `env->imbalance`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Surplus {
    /// So many tasks.
    Tasks(u64),
    /// Tasks of this load.
    Load(u64),
    /// Tasks that use the spare capacity of the local group.
    Spare(u64),
}

/// The tasks of a group of CPUs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GroupLoad {
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

    fn and(self, other: GroupLoad) -> GroupLoad {
        GroupLoad {
            cpus: self.cpus + other.cpus,
            runnable: self.runnable + other.runnable,
            idle: self.idle + other.idle,
        }
    }
}

/// A search of a domain for the tasks that a CPU is to take.
#[derive(Clone, Copy)]
pub(super) struct Seeker<'s> {
    pub(super) domain: &'s Domain,
    pub(super) cpu: Cpu,
    pub(super) idleness: Idleness,
}

impl<'s> Seeker<'s> {
    /// The busiest group that is to give tasks, and what is to leave it. CPUs that are `bound` have only tasks that may not leave.
    pub(super) fn source(self, bound: &[Cpu], machine: &Machine<'_>) -> Option<(Surplus, &'s [Cpu])> {
        let mut busiest: Option<(GroupLoad, &[Cpu])> = None;
        let (mut local, mut all) = (GroupLoad::default(), GroupLoad::default());
        for group in &self.domain.groups {
            let load = self.load_of(group, bound, machine);
            all = all.and(load);
            if group.contains(&self.cpu) {
                local = load;
            } else if load.runnable > 0 && busiest.is_none_or(|(most, _)| load.is_before(most)) {
                busiest = Some((load, group));
            }
        }
        let (load, group) = busiest?;
        Some((self.imbalance(local, load, all)?, group))
    }

    /// The tasks of a group. A CPU that goes idle has none, and does not idle yet.
    fn load_of(self, cpus: &[Cpu], bound: &[Cpu], machine: &Machine<'_>) -> GroupLoad {
        machine.look(cpus.len() as u64);
        let mut load = GroupLoad { cpus: cpus.len() as u64, ..GroupLoad::default() };
        let is_left_out = |cpu: &Cpu| (self.idleness == Idleness::NewlyIdle && *cpu == self.cpu) || bound.contains(cpu);
        for cpu in cpus.iter().filter(|cpu| !is_left_out(cpu)) {
            let runnable = runnable(*cpu, machine);
            load.runnable += runnable;
            load.idle += u64::from(runnable == 0);
        }
        load
    }

    /// The tasks that are to leave the busiest group for the local one (`calculate_imbalance`).
    fn imbalance(self, local: GroupLoad, busiest: GroupLoad, all: GroupLoad) -> Option<Surplus> {
        use GroupKind::{HasSpare, Overloaded};
        if local.kind() > busiest.kind() {
            return None;
        }
        let is_below = |percent| busiest.is_busier(local, percent) && all.is_busier(local, 100);
        if local.kind() == Overloaded && !is_below(IMBALANCE_PERCENT[usize::from(self.domain.is_core)]) {
            return None;
        }
        let has_children = self.domain.has_children;
        let is_forced = has_children && local.kind() == HasSpare && local.lacks(busiest) > 1;
        if !is_forced && busiest.kind() != Overloaded {
            let has_as_many_idle = busiest.cpus > 1 && local.idle <= busiest.idle + 1;
            if self.idleness == Idleness::Busy || has_as_many_idle || busiest.runnable == 1 {
                return None;
            }
        }
        if local.kind() != HasSpare {
            // The busiest group has it above the average, and the local one below.
            let above = (busiest.runnable * all.cpus).saturating_sub(all.runnable * busiest.cpus);
            let below = (all.runnable * local.cpus).saturating_sub(local.runnable * all.cpus);
            let load = LOAD * above.min(below) / all.cpus;
            return (load > 0).then_some(Surplus::Load(load));
        }
        if busiest.kind() == Overloaded && !self.domain.shares_cache {
            return match (local.idle, self.idleness) {
                (0, Idleness::Busy) => None,
                (0, _) => Some(Surplus::Tasks(1)),
                (idle, _) => Some(Surplus::Spare(idle * LOAD)),
            };
        }
        let missing = if busiest.cpus == 1 || has_children {
            local.lacks(busiest)
        } else {
            local.idle.saturating_sub(busiest.idle)
        };
        let is_small =
            self.domain.most_between_nodes.is_some_and(|most| local.runnable < most && missing <= NUMA_IMBALANCE);
        (missing >= 2 && !is_small).then_some(Surplus::Tasks(missing / 2))
    }
}

/// The number of tasks that run or wait on a CPU.
pub(super) fn runnable(cpu: Cpu, machine: &Machine<'_>) -> u64 {
    machine.queue_length(cpu) as u64 + u64::from(machine.running(cpu).is_some())
}
