//! What becomes of a CPU of which no event tells for a while.

use super::SchedState;
use crate::event::{Comm, Cpu, Ts};
use crate::span::{Current, TaskState};

impl SchedState {
    /// Events of `cpu` are missing from now on.
    pub(super) fn lose(&mut self, cpu: Cpu, ts: Ts) {
        self.any_loss = true;
        let c = self.cpu(cpu);
        c.observed = true;
        c.lost_since.get_or_insert(ts);
        self.gaps.entry(cpu).or_default().0 += 1;
        self.forget_queue(cpu, ts);
        if let Some(slot) = self.cpus[cpu.index()].running {
            self.turn_out(slot, TaskState::Unknown, ts);
        }
        self.set_current(cpu, Current::Unknown, None, Comm::EMPTY, ts);
    }

    /// `cpu` is offline from now on. Since 5.10 nobody waits any more when a CPU goes; before, the stopper moved them unseen.
    pub(super) fn go_offline(&mut self, cpu: Cpu, ts: Ts) {
        self.cpu(cpu).observed = true;
        self.forget_queue(cpu, ts);
        if let Some(stopper) = self.cpus[cpu.index()].running {
            self.turn_out(stopper, TaskState::Blocked(cpu), ts);
        }
        self.set_current(cpu, Current::Offline, None, Comm::EMPTY, ts);
    }

    /// Who waited on `cpu` may be anywhere.
    fn forget_queue(&mut self, cpu: Cpu, ts: Ts) {
        while let Some(slot) = self.cpus[cpu.index()].queue.head() {
            self.turn_out(slot, TaskState::Unknown, ts);
        }
    }
}
