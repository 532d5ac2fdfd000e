//! The search of a domain for tasks that a CPU takes: `sched_balance_rq`, `sched_balance_find_src_rq`, `detach_tasks`, `can_migrate_task` and
//! `task_hot` of Linux 6.12.

use super::groups::{Idleness, LOAD, Seeker, Surplus, runnable};
use crate::engine::Machine;
use crate::model::TaskIndex;
use sched::Cpu;

/// `sysctl_sched_migration_cost`: a task that ran less than 500 µs ago is hot in its cache, and is not moved.
pub(super) const MIGRATION_COST: i64 = 500_000;

/// The tasks of a queue that are looked at: `sysctl_sched_nr_migrate`.
const LOOKED_AT: usize = 32;

/// The outcome of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SearchOutcome {
    /// The domain is balanced.
    Balance,
    /// None of the tasks that were to leave may use the CPU.
    Bound,
    /// Some task is to leave this CPU, and none could now; whether a number of tasks was to leave.
    Failure { source: Cpu, by_number: bool },
    /// Some tasks leave their queue, in this order.
    Tasks(Vec<TaskIndex>),
}

/// The searches of a domain for a CPU that have failed, and the number from which on a task leaves hot (`nr_balance_failed`, `cache_nice_tries`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Failures {
    pub(super) count: u32,
    pub(super) nice_tries: u32,
}

impl Seeker<'_> {
    /// Searches the domain (`sched_balance_rq`, without `should_we_balance`).
    pub(super) fn search(self, failures: Failures, machine: &Machine<'_>) -> SearchOutcome {
        let mut bound: Vec<Cpu> = Vec::new();
        loop {
            let balanced = if bound.is_empty() { SearchOutcome::Balance } else { SearchOutcome::Bound };
            let Some((imbalance, group)) = self.source(&bound, machine) else { return balanced };
            let candidates = group.iter().copied().filter(|cpu| !bound.contains(cpu));
            let Some(source) = longest(candidates, imbalance, machine) else { return balanced };
            match self.detach(source, imbalance, failures, machine) {
                // The domain is searched again without that CPU.
                SearchOutcome::Bound => bound.push(source),
                found => return found,
            }
        }
    }

    /// The tasks that leave a queue (`detach_tasks`).
    fn detach(self, source: Cpu, imbalance: Surplus, failures: Failures, machine: &Machine<'_>) -> SearchOutcome {
        let by_number = matches!(imbalance, Surplus::Tasks(_));
        let failure = SearchOutcome::Failure { source, by_number };
        let mut stay = runnable(source, machine);
        let Some(running) = machine.running(source).filter(|_| stay > 1) else { return failure };
        let mut all_bound = !machine.may_use(running, self.cpu);
        let (Surplus::Tasks(mut left) | Surplus::Load(mut left) | Surplus::Spare(mut left)) = imbalance;
        // Each failed search halves what counts as the load of a task.
        let (size, least) = if by_number { (1, 1) } else { (LOAD, LOAD >> failures.count.min(u64::BITS - 1)) };
        let takes_hot = self.domain.is_core || failures.count > failures.nice_tries;
        let mut tasks = Vec::new();
        for (nth, task) in machine.queue(source).enumerate() {
            let leaves_one = self.idleness == Idleness::Busy || stay > 1;
            if left == 0 || !leaves_one || (nth >= LOOKED_AT && !all_bound) {
                break;
            }
            if !machine.is_movable(task) || !machine.may_use(task, self.cpu) {
                continue;
            }
            all_bound = false;
            let is_hot = machine.now().0.saturating_sub(machine.last_ran(task).0) < MIGRATION_COST;
            if (is_hot && !takes_hot) || least > left {
                continue;
            }
            (left, stay) = (left.saturating_sub(size), stay - 1);
            tasks.push(task);
            if self.idleness == Idleness::NewlyIdle {
                break;
            }
        }
        match tasks.is_empty() {
            true if all_bound => SearchOutcome::Bound,
            true => failure,
            false => SearchOutcome::Tasks(tasks),
        }
    }
}

/// The CPU of the busiest group whose queue is to give tasks, the first of several that have as many.
fn longest(cpus: impl Iterator<Item = Cpu>, imbalance: Surplus, machine: &Machine<'_>) -> Option<Cpu> {
    let has_more = |cpu: &Cpu| match (imbalance, runnable(*cpu, machine)) {
        (_, 0) | (Surplus::Spare(_), 1) => false,
        (Surplus::Load(left), 1) => left >= LOAD,
        _ => true,
    };
    cpus.filter(has_more)
        .reduce(|most, other| if runnable(other, machine) > runnable(most, machine) { other } else { most })
}
