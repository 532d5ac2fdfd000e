//! How long the occupant of a CPU stays after a task was queued behind it (`docs/questions/latency.md#behind`).

use crate::Latency;
use crate::wait::Wait;
use sched::{Cpu, PerTask, SchedState, TaskId, Ts};

impl Latency<'_> {
    /// A task has left the queue of a CPU, behind whose occupant it was.
    pub(crate) fn leave_occupant(&mut self, task: TaskId, cpu: Cpu, now: Ts) {
        leave(&mut self.waits, task, cpu, now);
    }

    /// The occupants of CPUs have changed.
    pub(crate) fn change_occupants(&mut self, now: Ts, state: &SchedState) {
        self.behind.leave(state, |task, cpu| leave(&mut self.waits, task, cpu, now));
    }
}

/// The occupant behind which a task was queued is not the reason of its wait any more.
fn leave(waits: &mut PerTask<Wait>, task: TaskId, cpu: Cpu, now: Ts) {
    // Its present wait may have begun elsewhere.
    if let Some(wait) = waits.get_mut(task).filter(|wait| wait.queued_on == cpu) {
        wait.behind_until.get_or_insert(now);
    }
}
