//! A wait that has not ended, and its change where its task may use other CPUs meanwhile.

use crate::Why;
use crate::category::WaitOrigin;
use crate::ledger::MoveKey;
use crate::story::{Change, Who};
use sched::{Cpu, CpuMask, Pid, SchedEvent, SchedState, Ts};

/// A wait that has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) cpu: Cpu,
    pub(crate) start: Ts,
    /// The reading of the violated time of its class on its CPU when it began, or when the class became this one.
    pub(crate) reading: u64,
    /// The same at the end of the latest column of a figure.
    pub(crate) noted: u64,
    /// Its violated time before that.
    pub(crate) before: u64,
    pub(crate) origin: (WaitOrigin, Option<MoveKey>),
    pub(crate) counted: bool,
    /// The class of CPUs that it may use; 0 if it is not restricted, or none are known.
    pub(crate) class: usize,
    /// Its CPU idled when it began.
    pub(crate) on_idle: bool,
}

impl Wait {
    /// Its violated time, when the reading of its class on its CPU is this.
    pub(crate) fn violated(&self, reading: u64) -> u64 {
        self.before.saturating_add(reading.saturating_sub(self.reading))
    }
}

impl Why<'_> {
    /// A record shows the CPUs that a task may use, which can be in the middle of its wait: the wait goes on in another class.
    #[cold]
    #[inline(never)]
    pub(crate) fn renew(&mut self, event: &SchedEvent, pid: Pid, mask: Option<CpuMask>, state: &SchedState) {
        let now = event.ts;
        let (Some(task), Some(affinity)) = (state.task_of(pid), self.options.affinity) else { return };
        let wait = self.tasks.get_mut(task.id()).and_then(|track| track.wait);
        let Some(mut wait) = wait.filter(|wait| wait.counted) else { return };
        let was = self.sets.are_violated();
        let reading = self.sets.wait_reading(wait.cpu, wait.class, now);
        let renewed = self.sets.affine.as_mut().and_then(|affine| affine.renew(task, affinity, state));
        let Some(class) = renewed else { return };
        if let Some(over_time) = &mut self.over_time {
            over_time.note_wait(task.id(), reading.saturating_sub(wait.noted));
        }
        wait.before = wait.violated(reading);
        wait.reading = self.sets.wait_reading(wait.cpu, class, now);
        (wait.noted, wait.class) = (wait.reading, class);
        self.track(task.id(), |track| track.wait = Some(wait));
        self.sets.update(now);
        let who = Who { pid, command: task.comm };
        self.step(event.cpu, now, wait.cpu, Change::MayUse(who, mask));
        self.chronicle_after(now, was, state);
    }
}
