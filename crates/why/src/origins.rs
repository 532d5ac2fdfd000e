//! How waits begin.

use crate::Why;
use crate::category::{Placed, Preempter, WaitOrigin};
use crate::ledger::MoveKey;
use crate::nearest::Nearest;
use sched::{Cause, Cpu, EventKind, Pid, SchedEvent, SchedState, Span, Task, TaskState};

impl Why<'_> {
    /// The origin of the wait that `span` led to, with the key of the migration whose cause is open.
    pub(crate) fn origin(
        &self,
        task: &Task,
        span: &Span,
        event: &SchedEvent,
        state: &SchedState,
    ) -> (WaitOrigin, Option<MoveKey>) {
        let TaskState::Waiting(cpu) = span.next else { return (WaitOrigin::Unknown, None) };
        let is_it = |pid: Pid| pid == span.pid;
        let origin = match event.kind {
            EventKind::Migrate { task: moved, dest, .. } if is_it(moved.pid) && !state.has_placed() => {
                return (WaitOrigin::Moved(Cause::Unknown), Some((span.pid, event.ts, dest)));
            }
            EventKind::Wakeup { task: woken, .. }
            | EventKind::Waking { task: woken, .. }
            | EventKind::Migrate { task: woken, .. }
                if is_it(woken.pid) =>
            {
                self.woken(task, cpu, state)
            }
            EventKind::WakeupNew { task: new, .. } if is_it(new.pid) => WaitOrigin::Forked,
            EventKind::Switch { prev, next, .. } if is_it(prev.pid) && span.state == TaskState::Running(cpu) => {
                match next.pid.is_idle() {
                    true => WaitOrigin::HeldBack,
                    false => WaitOrigin::Preempted(self.preempter(next.pid, state)),
                }
            }
            _ if matches!(span.state, TaskState::Throttled(_)) => WaitOrigin::Unthrottled,
            _ => WaitOrigin::Unknown,
        };
        (origin, None)
    }

    /// A wakeup placed `task` on `cpu`; the sets are still those before it.
    fn woken(&self, task: &Task, cpu: Cpu, state: &SchedState) -> WaitOrigin {
        let previous = task.ran_on.or(task.waking.map(|waking| waking.previous));
        let placed = match (previous, task.waking) {
            (Some(previous), _) if previous == cpu => Placed::Previous,
            (_, Some(waking)) if waking.on == cpu => Placed::Waker,
            (Some(_), _) => Placed::Elsewhere,
            (None, _) => Placed::Unknown,
        };
        WaitOrigin::Woken(placed, self.nearest_idle(task, cpu, state))
    }

    /// The nearest idle CPU that a task on `cpu` may use.
    fn nearest_idle(&self, task: &Task, cpu: Cpu, state: &SchedState) -> Nearest {
        self.meter.nearest_idle(task, cpu, self.options.affinity, state)
    }

    fn preempter(&self, pid: Pid, state: &SchedState) -> Preempter {
        let Some(task) = state.task_of(pid) else { return Preempter::Other };
        match () {
            // The stopper, `idle_inject/N` and the threads of interrupts have real-time priorities as well.
            () if task.kin.is_of_kernel(task.comm) => Preempter::Kernel,
            () if task.known_prio().is_some_and(|prio| prio < 0) => Preempter::Deadline,
            () if task.known_prio().is_some_and(|prio| prio < 100) => Preempter::RealTime,
            () if self.options.is_application(task, state) => match self.options.application {
                Some(_) => Preempter::Selected,
                None => Preempter::Application,
            },
            () => Preempter::Other,
        }
    }
}
