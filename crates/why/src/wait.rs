//! A wait that has not ended, and its change where its task may use other CPUs meanwhile.

use crate::Why;
use crate::category::{Placed, WaitOrigin};
use crate::ledger::MoveKey;
use crate::nearest::Nearest;
use crate::story::{Change, Who};
use sched::span::Came;
use sched::{Cause, Cpu, CpuMask, Current, Pid, SchedEvent, SchedState, Task, Ts};

/// A wait that has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) cpu: Cpu,
    pub(crate) start: Ts,
    /// The true start of the wait, where that is before the window; else the start.
    pub(crate) since: Ts,
    /// The reading of the violated time of its class on its CPU when it began, or when the class became this one.
    pub(crate) reading: u64,
    /// The reading of the violated time at the end of the latest column of a figure.
    pub(crate) noted: u64,
    /// The violated time of the wait before that reading, in nanoseconds.
    pub(crate) before: u64,
    pub(crate) origin: (WaitOrigin, Option<MoveKey>),
    /// The origin of the wait as the state shows it, where that is before the window; else the origin.
    pub(crate) came: (WaitOrigin, Option<MoveKey>),
    pub(crate) counted: bool,
    /// The class of CPUs that it may use; 0 if it is not restricted, or none are known.
    pub(crate) class: usize,
    /// Whether the CPU idled when the wait began.
    pub(crate) on_idle: bool,
    /// Whether the wait began before this piece of a pass, so that its beginning and its origin are not known here.
    pub(crate) is_earlier: bool,
}

impl Wait {
    /// The violated time of the wait in nanoseconds, given the present reading of its class on its CPU.
    pub(crate) fn violated(&self, reading: u64) -> u64 {
        self.before.saturating_add(reading.saturating_sub(self.reading))
    }
}

impl Why<'_> {
    /// Takes from the state the origin of a wait that goes on at the start of the window: an idle stretch that ends with it
    /// ends by the way in which the task had come there.
    pub(crate) fn recall_wait(&mut self, task: &Task, cpu: Cpu, state: &SchedState) {
        let came = match task.came {
            Came::Unknown => (WaitOrigin::AtStart, None),
            Came::Woken => (WaitOrigin::Woken(Placed::Unknown, Nearest::Nowhere), None),
            Came::Forked => (WaitOrigin::Forked, None),
            Came::Moved => (WaitOrigin::Moved(Cause::Unknown), Some((task.pid, task.since, cpu))),
            Came::Stayed => (WaitOrigin::HeldBack, None),
        };
        // If the CPU idles now, and did so when the task came, no other task has run there since.
        let on_idle = state.current(cpu) == Current::Idle && state.current_since(cpu) <= task.since;
        if let Some(wait) = self.tasks.get_mut(task.id()).and_then(|track| track.wait.as_mut()) {
            (wait.since, wait.came, wait.on_idle) = (task.since.min(wait.start), came, on_idle);
        }
    }

    /// A record shows the CPUs that a task may use, which can be in the middle of its wait: the wait goes on in another class.
    #[cold]
    #[inline(never)]
    pub(crate) fn renew(&mut self, event: &SchedEvent, pid: Pid, mask: Option<CpuMask>, state: &SchedState) {
        let now = event.ts;
        let (Some(task), Some(affinity)) = (state.task_of(pid), self.options.affinity) else { return };
        let wait = self.tasks.get_mut(task.id()).and_then(|track| track.wait);
        let Some(mut wait) = wait.filter(|wait| wait.counted) else { return };
        let was = self.meter.is_violated();
        let reading = self.meter.wait_reading(wait.cpu, wait.class, now);
        let renewed = self.meter.renew(task, affinity, state);
        let Some(class) = renewed else { return };
        if let Some(over_time) = &mut self.over_time {
            over_time.note_wait(task.id(), reading.saturating_sub(wait.noted));
        }
        wait.before = wait.violated(reading);
        wait.reading = self.meter.wait_reading(wait.cpu, class, now);
        (wait.noted, wait.class) = (wait.reading, class);
        self.track(task.id(), |track| track.wait = Some(wait));
        self.meter.update(now);
        let who = Who { pid, command: task.comm };
        self.step(event.cpu, now, wait.cpu, Change::MayUse(who, mask));
        self.chronicle_after(now, was, state);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::Why;
    use sched::{Comm, Cpu, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Ts};
    use std::cell::Cell;
    use workcons::Options;

    thread_local! {
        /// The number of waiting tasks that were looked at on this thread as others were run before them.
        pub(crate) static WALKED: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn a_long_queue_is_not_walked_through_at_each_switch() {
        let task =
            |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(if pid == 0 { b"swapper/0" } else { b"task" }) };
        let mut events: Vec<SchedEvent> = Vec::new();
        let mut add = |pid, kind| {
            let ts = Ts(events.len() as i64 + 1);
            events.push(SchedEvent { ts, cpu: Cpu(0), pid: Pid(pid), flags: 0, kind });
        };
        (0..3_000).for_each(|nth| add(0, EventKind::Wakeup { task: task(9 + nth), target: Cpu(0) }));
        for _ in 0..1_000 {
            add(0, EventKind::Switch { prev: task(0), state: PrevState::RUNNABLE, next: task(5) });
            add(5, EventKind::Switch { prev: task(5), state: PrevState::asleep(1), next: task(0) });
            add(0, EventKind::Wakeup { task: task(5), target: Cpu(0) });
        }
        let options = Options::default();
        let outcome = Pass::over(&events[..]).run(|| Why::new(&options)).unwrap_or_else(|never| match never {});
        assert!(outcome.output.waiting.is_some());
        // Each task once, and at each further switch one that had been looked at before.
        assert_eq!(WALKED.take(), 3_000 + 999);
    }
}
