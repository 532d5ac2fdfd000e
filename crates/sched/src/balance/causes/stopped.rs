//! The migrations that the stoppers make.

use super::{Cause, Migration};
use crate::event::kthread::is_stopper;
use crate::event::{Cpu, EventKind, Pid, SchedEvent, Ts};
use crate::state::SchedState;

/// The identity of a migration: its task, its instant and its destination.
pub type MoveKey = (Pid, Ts, Cpu);

/// The migration that the stopper of each CPU has made since it was switched in, with its cause once that is settled.
#[derive(Clone, Debug, Default)]
pub struct StopperMoves {
    cpus: Vec<Option<(MoveKey, Option<Cause>)>>,
}

impl StopperMoves {
    /// Takes the next event; `state` is the one after the event.
    #[inline]
    pub fn event(&mut self, event: &SchedEvent, state: &SchedState) {
        match event.kind {
            EventKind::Switch { .. } => {
                if let Some(moved) = self.cpus.get_mut(event.cpu.index()) {
                    *moved = None;
                }
            }
            EventKind::Migrate { task, orig, dest }
                if orig == event.cpu && state.running(orig).is_some_and(|running| is_stopper(running.comm, orig)) =>
            {
                self.put(orig, ((task.pid, event.ts, dest), None));
            }
            _ => {}
        }
    }

    /// Whether no stopper that runs has made a migration.
    pub fn are_none(&self) -> bool {
        self.cpus.iter().all(Option::is_none)
    }

    /// Takes the cause of a settled migration.
    pub fn settle(&mut self, m: &Migration) {
        let moved = self.cpus.get_mut(m.orig.index()).and_then(Option::as_mut);
        if let Some((_, cause)) = moved.filter(|(key, _)| *key == (m.pid, m.ts, m.dest)) {
            *cause = Some(m.cause);
        }
    }

    /// The migration that the stopper of `cpu` has made since it was switched in, and its cause if that is settled.
    pub fn of(&self, cpu: Cpu) -> Option<(MoveKey, Option<Cause>)> {
        self.cpus.get(cpu.index()).copied().flatten()
    }

    /// Notes the migrations for a part of a trace.
    pub(crate) fn noted(&self) -> Vec<(Cpu, MoveKey, Option<Cause>)> {
        let noted = |(cpu, moved): (u32, &Option<(MoveKey, Option<Cause>)>)| {
            moved.as_ref().map(|(key, cause)| (Cpu(cpu), *key, *cause))
        };
        (0..).zip(&self.cpus).filter_map(noted).collect()
    }

    /// Takes up the notes of a part of a trace.
    pub fn recall(&mut self, noted: &[(Cpu, MoveKey, Option<Cause>)]) {
        for (cpu, key, cause) in noted.iter().filter(|(cpu, ..)| cpu.0 < Cpu::LIMIT) {
            self.put(*cpu, (*key, *cause));
        }
    }

    /// Keeps a migration by the stopper of `cpu`, instead of an earlier one.
    fn put(&mut self, cpu: Cpu, moved: (MoveKey, Option<Cause>)) {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, None);
        }
        self.cpus[cpu.index()] = Some(moved);
    }
}
