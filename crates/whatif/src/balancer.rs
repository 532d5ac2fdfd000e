//! The balancing that a trace shows, beside the chances that its CPUs had.

use crate::chances::{Balancing, Chances};
use crate::model::MoveKind;
use sched::{Cpu, Current, SchedState, Topology, Ts};

/// The chances of the CPUs up to an event, and the pulls.
#[derive(Debug, Default)]
pub(crate) struct BalancerWatch {
    chances: Chances,
    /// The movable fair tasks that wait on each CPU.
    movable: Vec<u32>,
    balancing: Balancing,
    /// The instant up to which the time of idle CPUs is counted.
    until: Ts,
}

impl BalancerWatch {
    pub(crate) fn begin(&mut self, start: Ts) {
        self.until = start;
    }

    pub(crate) fn grow(&mut self, cpus: usize, topology: &Topology) {
        self.chances.grow(cpus, topology);
        if cpus > self.movable.len() {
            self.movable.resize(cpus, 0);
        }
    }

    /// Counts the time up to `now` for the CPUs that idle beside a task that they could pull.
    pub(crate) fn advance(&mut self, now: Ts) {
        let elapsed = now.since(self.until).0;
        self.until = now;
        let Balancing { idle_near, idle_far, .. } = &mut self.balancing;
        for (rate, cpus) in [(idle_near, self.chances.near()), (idle_far, self.chances.far())] {
            rate.chances = rate.chances.saturating_add(elapsed.saturating_mul(cpus));
        }
    }

    /// A movable task begins to wait on `cpu`.
    pub(crate) fn waits(&mut self, cpu: Cpu) {
        self.movable[cpu.index()] += 1;
    }

    /// A movable task waits on `cpu` no longer.
    pub(crate) fn leaves(&mut self, cpu: Cpu) {
        let count = &mut self.movable[cpu.index()];
        *count = count.saturating_sub(1);
    }

    /// An event may have changed the state of `cpu`.
    pub(crate) fn refresh(&mut self, cpu: Cpu, state: &SchedState) {
        let idles = state.is_observed(cpu) && state.current(cpu) == Current::Idle && state.queue_length(cpu) == 0;
        let is_overloaded = self.movable[cpu.index()] > 0 && state.running(cpu).is_some();
        self.chances.set(cpu, idles, is_overloaded);
    }

    /// A CPU has switched from a task to idle.
    pub(crate) fn goes_idle(&mut self, cpu: Cpu) {
        match self.chances.nearest(cpu) {
            Some(true) => self.balancing.new_idle_near.chances += 1,
            Some(false) => self.balancing.new_idle_far.chances += 1,
            None => {}
        }
    }

    /// A movable task was moved from one queue to another.
    pub(crate) fn moved(&mut self, from: Cpu, dest: Cpu, kind: MoveKind) {
        let Balancing { new_idle_near, new_idle_far, idle_near, idle_far } = &mut self.balancing;
        let [near, far] = match kind {
            MoveKind::NewIdle => [new_idle_near, new_idle_far],
            MoveKind::Idle => [idle_near, idle_far],
            MoveKind::Busy | MoveKind::Active | MoveKind::Stopper | MoveKind::Other => return,
        };
        let rate = if self.chances.is_near(from, dest) { near } else { far };
        rate.pulls += 1;
        // A CPU that pulls as it goes idle does not go idle.
        rate.chances += u64::from(kind == MoveKind::NewIdle);
    }

    /// The pulls and the chances of the window, which ends at `end`.
    pub(crate) fn finish(mut self, end: Ts) -> Balancing {
        self.advance(end);
        self.balancing
    }
}
