//! The balancing of the trace beside a policy: as large a share of the chances becomes a pull.

use super::Engine;
use super::agenda::Due;
use crate::chances::PullRate;
use crate::model::{MoveKind, TaskIndex};
use sched::Cpu;

impl Engine<'_, '_> {
    /// The rates of CPUs that idle, near and far, with the CPUs that have chances now.
    fn idle_rates(&self) -> Option<[(PullRate, u64); 2]> {
        let chances = self.machine.chances.as_ref().filter(|_| !self.replaces_idle)?;
        let balancing = &self.machine.model.taken.balancing;
        Some([(balancing.idle_near, chances.near()), (balancing.idle_far, chances.far())])
    }

    /// Counts the time up to now of the CPUs that idled beside a task that they could pull.
    pub(super) fn count_chances(&mut self) {
        let Some(rates) = self.idle_rates() else { return };
        let elapsed = (self.now - self.counted_until) as u64;
        self.counted_until = self.now;
        for (at, (rate, cpus)) in rates.into_iter().enumerate() {
            if elapsed > 0 && cpus > 0 {
                self.is_owed[at] |= self.idle_owed[at].add(rate, elapsed.saturating_mul(cpus));
            }
        }
    }

    /// Idle CPUs make the pulls that are due, and the instant of the next one is noted.
    pub(super) fn balance(&mut self) {
        if self.machine.chances.is_none() {
            return;
        }
        for (at, is_near) in [true, false].into_iter().enumerate() {
            if std::mem::take(&mut self.is_owed[at]) {
                self.pull_to_idle(is_near);
            }
        }
        let Some(rates) = self.idle_rates().filter(|_| !self.expects_balancing) else { return };
        let owed = rates.into_iter().zip(self.idle_owed);
        let left =
            owed.filter(|((_, cpus), _)| *cpus > 0).filter_map(|((rate, cpus), owed)| owed.time_left(rate, cpus));
        if let Some(left) = left.min() {
            self.expects_balancing = true;
            self.agenda.add(self.now.saturating_add_unsigned(left), Due::Balance);
        }
    }

    /// The next idle CPU with a chance takes a task.
    fn pull_to_idle(&mut self, is_near: bool) {
        let Some(chances) = &self.machine.chances else { return };
        let count = self.machine.cpus.len() as u32;
        let mut cpus = (0..count).map(|at| Cpu((self.balanced + at) % count));
        let has_chance = |cpu: &Cpu| chances.is_idle(*cpu) && chances.nearest(*cpu) == Some(is_near);
        let Some(cpu) = cpus.find(has_chance) else { return };
        self.balanced = cpu.0 + 1;
        if let Some(task) = self.of_busiest(cpu, is_near) {
            self.take_over(task, cpu);
            self.react(cpu, Some(task));
        }
    }

    /// The task that `cpu` pulls as it goes idle, if the trace's balancer would pull one now.
    pub(super) fn pulled_going_idle(&mut self, cpu: Cpu) -> Option<TaskIndex> {
        if self.policy.replaces(MoveKind::NewIdle) {
            return None;
        }
        let is_near = self.machine.chances.as_ref()?.nearest(cpu)?;
        let balancing = &self.machine.model.taken.balancing;
        let rate = if is_near { balancing.new_idle_near } else { balancing.new_idle_far };
        self.new_idle_owed[usize::from(!is_near)].add(rate, 1).then(|| self.of_busiest(cpu, is_near))?
    }

    /// The first task that `cpu` may take of the CPU with the most waiting ones, under its cache or beyond.
    fn of_busiest(&self, cpu: Cpu, is_near: bool) -> Option<TaskIndex> {
        let chances = self.machine.chances.as_ref()?;
        let near = self.machine.nearest(cpu).map(|(_, other)| other);
        let overloaded = near.filter(|other| chances.is_overloaded(*other) && chances.is_near(cpu, *other) == is_near);
        let movable = |other: Cpu| self.machine.cpus[other.index()].movable;
        // The nearest of several that have as many.
        let busiest = overloaded.reduce(|best, other| if movable(other) > movable(best) { other } else { best })?;
        self.machine.queue(busiest).find(|task| self.machine.is_movable(*task) && self.machine.may_use(*task, cpu))
    }
}
