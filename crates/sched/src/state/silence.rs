//! The state of a CPU without events for a while.

use super::{SchedState, SoftirqOrigin};
use crate::event::diag::EventIssue;
use crate::event::span::{Current, TaskState};
use crate::event::{Comm, Cpu, Dur, PrevState, Ts};

/// A time that no CPU needs to switch to a task that is queued on it (`docs/questions/workcons.md#woken-not-switched-yet`).
const LONG: Dur = Dur(1_000_000);

impl SchedState {
    /// Takes a loss: events of `cpu` are missing from now on.
    pub(super) fn lose(&mut self, cpu: Cpu, ts: Ts) {
        self.any_loss = true;
        self.allowed.lose();
        let c = self.cpu(cpu);
        c.observed = true;
        c.lost_since.get_or_insert(ts);
        // A loss may hide the end of a handler.
        (c.handlers, c.raised) = (0, SoftirqOrigin::Unknown);
        self.gaps.entry(cpu).or_default().0 += 1;
        self.forget_queue(cpu, ts);
        self.lose_throttling(ts);
        if let Some(slot) = self.cpus[cpu.index()].running {
            self.turn_out(slot, TaskState::Unknown, ts);
        }
        self.set_current(cpu, Current::Unknown, None, Comm::EMPTY, ts);
    }

    /// Takes `cpu` offline from now on. Since 5.10 no task waits any more when a CPU goes offline; before, the stopper
    /// moved them unseen.
    pub(super) fn go_offline(&mut self, cpu: Cpu, ts: Ts) {
        let c = self.cpu(cpu);
        (c.observed, c.emptied, c.handlers, c.raised) = (true, true, 0, SoftirqOrigin::Unknown);
        self.forget_queue(cpu, ts);
        self.forget_throttled(cpu, ts);
        if let Some(stopper) = self.cpus[cpu.index()].running {
            self.turn_out(stopper, TaskState::Asleep(cpu), ts);
        }
        self.set_current(cpu, Current::Offline, None, Comm::EMPTY, ts);
    }

    /// Takes a switch of `cpu` to its idle task. A task that still waits there may not run (it is throttled), or has
    /// left unseen. In the recordings without missing events that was so once (rt.dat of 6.1), in sixteen of the others
    /// 196 times: unseen departures are concluded only if events are missing.
    pub(super) fn become_idle(&mut self, cpu: Cpu, prev: PrevState) {
        let c = &mut self.cpus[cpu.index()];
        c.emptied = true;
        let left = c.queue.len;
        if left > 0 && !prev.is_runnable() && !self.is_start_known() {
            (0..left).for_each(|_| self.repair(EventIssue::UnseenDeparture));
            self.forget_queue(cpu, self.now);
        }
    }

    /// Takes the departure of a task from a CPU without events, on whose queue it was for `waited`; `moves` if it moves
    /// to another queue. A task that is there at the end, or is soon moved away, is no evidence of missing events: the
    /// CPU may not have switched to it yet.
    pub(super) fn leave_unseen(&mut self, waited: Dur, moves: bool) {
        if !moves || waited >= LONG {
            self.repair(EventIssue::UnseenQueue);
        }
    }

    /// Makes the tasks that wait on `cpu` unknown, since they may be anywhere.
    fn forget_queue(&mut self, cpu: Cpu, ts: Ts) {
        while let Some(slot) = self.cpus[cpu.index()].queue.head() {
            self.turn_out(slot, TaskState::Unknown, ts);
        }
    }
}
