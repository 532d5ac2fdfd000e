//! The decisions of the balancer that probes record: they decide the cause of a migration that follows on the same CPU.

use super::Cause;
use crate::event::probe::{Balancing, Probe};
use crate::event::{Cpu, Pid};
use crate::tables::seeded::SeededMap;
use serde::{Deserialize, Serialize};

/// A recorded decision that leads to a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decided {
    /// The balancer detached the task, for this cause.
    Detached(Cause),
    /// The task was queued elsewhere, for its affinity, an exec, or a NUMA move; no balance detached it.
    Requeued,
}

/// The task, the CPU that it leaves, and the CPU that it comes to.
type Move = (Pid, Cpu, Cpu);

/// The latest decisions on a CPU that no migration has followed yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Latest {
    detached: Option<(Move, Balancing)>,
    requeued: Option<(Pid, Cpu)>,
    /// The CPU for which the stopper balances.
    active: Option<Cpu>,
}

/// The latest decisions, by CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Decisions {
    pub(super) latest: SeededMap<Cpu, Latest>,
}

impl Decisions {
    /// Takes a record of a probe on `cpu`.
    pub(super) fn take(&mut self, cpu: Cpu, probe: Probe) {
        match probe {
            Probe::Detaches { pid, src, dst, balancing } => {
                self.latest.entry(cpu).or_default().detached = Some(((pid, src, dst), balancing));
            }
            Probe::MovesQueued(pid, to) => self.latest.entry(cpu).or_default().requeued = Some((pid, to)),
            Probe::ActiveBalances(_, dst) => self.latest.entry(cpu).or_default().active = Some(dst),
            _ => {}
        }
    }

    /// Forgets the decisions on a CPU that switches, since no migration follows them any more.
    pub(super) fn switch(&mut self, cpu: Cpu) {
        if !self.latest.is_empty() {
            self.latest.remove(&cpu);
        }
    }

    /// Forgets the decisions on a CPU some of whose events are lost.
    pub(super) fn lose(&mut self, cpu: Cpu) {
        self.latest.remove(&cpu);
    }

    /// Returns the decision that led to a migration on the CPU `on`. `by_stopper`: the stopper of the CPU that the task
    /// leaves made the migration.
    pub(super) fn of(&mut self, on: Cpu, moved: Move, by_stopper: bool) -> Option<Decided> {
        let latest = self.latest.get_mut(&on)?;
        let (pid, _, dest) = moved;
        let detached = latest.detached.take().filter(|(task, _)| *task == moved);
        let requeued = latest.requeued.take().filter(|task| *task == (pid, dest));
        match (detached, requeued) {
            (Some(_), _) if by_stopper => Some(Decided::Detached(Cause::Active)),
            (Some((_, balancing)), _) => cause(balancing, on == dest).map(Decided::Detached),
            (None, Some(_)) => Some(Decided::Requeued),
            (None, None) if by_stopper && latest.active == Some(dest) => Some(Decided::Detached(Cause::Active)),
            (None, None) => None,
        }
    }
}

/// Returns the cause for a kind of balance, made by the CPU that the task comes to (`is_for_itself`) or by another one.
fn cause(balancing: Balancing, is_for_itself: bool) -> Option<Cause> {
    match (balancing, is_for_itself) {
        (Balancing::NewIdle, _) => Some(Cause::NewIdle),
        (Balancing::Idle, true) => Some(Cause::Idle),
        (Balancing::Busy, true) => Some(Cause::Periodic),
        (Balancing::Idle | Balancing::Busy, false) => Some(Cause::NohzIdle),
        (Balancing::Unknown, _) => None,
    }
}
