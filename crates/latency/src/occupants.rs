//! How long the occupant of a CPU stays after a task was queued behind it (`docs/questions/latency.md#behind`).

use crate::Latency;
use sched::{Cpu, SchedState, TaskId, Ts};

/// The number of tasks queued on a CPU whose occupant stays, from which on those that are listed twice are left out.
const MOST_FRESH: usize = 1 << 18;

impl Latency<'_> {
    /// A task is queued on a CPU, behind its occupant.
    pub(crate) fn note_queued(&mut self, task: TaskId, cpu: Cpu) {
        if cpu.index() >= self.fresh.len() {
            self.fresh.resize_with(cpu.index() + 1, Vec::new);
        }
        let fresh = &mut self.fresh[cpu.index()];
        if fresh.len() >= MOST_FRESH {
            // Living tasks are fewer.
            fresh.sort_unstable_by_key(|task| task.index());
            fresh.dedup();
        }
        fresh.push(task);
    }

    /// The occupant behind which a task was queued is not the reason of its wait any more.
    pub(crate) fn leave_occupant(&mut self, task: TaskId, cpu: Cpu, now: Ts) {
        // Its present wait may have begun elsewhere.
        if let Some(wait) = self.waits.get_mut(task).filter(|wait| wait.queued_on == cpu) {
            wait.behind_until.get_or_insert(now);
        }
    }

    /// The occupants of CPUs have changed.
    pub(crate) fn change_occupants(&mut self, now: Ts, state: &SchedState) {
        for span in state.cpu_spans() {
            let Some(fresh) = self.fresh.get_mut(span.cpu.index()).filter(|fresh| !fresh.is_empty()) else { continue };
            for task in std::mem::take(fresh) {
                self.leave_occupant(task, span.cpu, now);
            }
        }
    }
}
