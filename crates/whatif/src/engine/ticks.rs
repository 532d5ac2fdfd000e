//! The ticks of CPUs that run a task, for policies that balance at ticks.
//!
//! All ticks of an instant are one matter of the agenda, and there are none while every CPU idles. Their number is bounded by the work of the trace.

use super::agenda::Due;
use super::hooks::{Balancer, Pull};
use super::machine::Place;
use super::{Engine, LOOKED};
use crate::model::Model;
use sched::{Cpu, Dur};

/// Maximum number of instants with ticks in a run that is as long as the trace, times those CPUs whose ticks take as long as a matter.
fn most_ticks(model: &Model) -> u64 {
    Model::LEAST_MOST_SLICES.max(model.turns.saturating_mul(8))
}

/// The number of matters that the ticks of an instant take at least.
fn matters(model: &Model) -> u64 {
    1 + model.cpus.len() as u64 / LOOKED
}

/// The time between ticks in nanoseconds: the given one, or longer where there would be too many.
pub(super) fn simulated(length: Dur, model: &Model) -> u64 {
    let window = model.end.since(model.start).0;
    length.0.max(1).max(window.saturating_mul(matters(model)) / most_ticks(model))
}

/// The matters that a run with ticks may have due beside those of a run without: it may be longer than the trace, and searches look at CPUs.
pub(super) fn most_effort(model: &Model) -> u64 {
    most_ticks(model).saturating_mul(4)
}

impl Engine<'_, '_> {
    /// Notes the next tick, unless that is known or no CPU runs a task.
    pub(super) fn expect_tick(&mut self) {
        if self.expects_tick || !self.has_ticks || self.busy == 0 {
            return;
        }
        let tick = i64::try_from(self.machine.tick).unwrap_or(i64::MAX);
        let next = self.now.div_euclid(tick).checked_add(1).and_then(|nth| nth.checked_mul(tick));
        if let Some(next) = next {
            self.expects_tick = true;
            self.agenda.add(next, Due::Tick);
        }
    }

    /// The CPUs that run a task have a tick, in the order of their numbers.
    pub(super) fn ticks(&mut self) {
        self.expects_tick = false;
        let cpus = self.machine.cpus.len() as u32;
        self.machine.look(u64::from(cpus));
        for cpu in (0..cpus).map(Cpu) {
            if self.machine.running(cpu).is_none() {
                continue;
            }
            while let Some(pull) = self.policy.tick(cpu, &self.machine) {
                if self.spend(1) {
                    return;
                }
                self.pull(pull);
            }
        }
        self.expect_tick();
    }

    /// A balancer moves tasks to a CPU.
    fn pull(&mut self, Pull { tasks, to, by }: Pull) {
        for task in tasks {
            let place = self.machine.tasks[task as usize].place;
            match place {
                Place::Queued(from) if from != to => {
                    self.charge(task, from, to);
                    self.take_over(task, to);
                    self.react(to, Some(task));
                }
                Place::Running(from) if from != to => {
                    self.account(from);
                    self.charge(task, from, to);
                    self.push(task, from, to);
                    self.advance(from);
                    self.run.pulls.active += 1;
                }
                _ => continue,
            }
            match by {
                Balancer::Periodic => self.run.pulls.periodic += 1,
                Balancer::NohzIdle => self.run.pulls.nohz += 1,
            }
        }
    }
}
