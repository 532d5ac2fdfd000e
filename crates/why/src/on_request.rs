//! The parts of the analysis that are made only on request: rows by task or CPU, the story of an episode, columns over
//! time.

use crate::Why;
use crate::grouping::{Grouping, Groups};
use crate::story::{Change, Chronicle, Present, Step, Who};
use sched::{Cpu, SchedState, TaskId, Ts};

impl<'o> Why<'o> {
    /// The analysis with a row for each task, command, CPU or node that waited.
    #[must_use]
    pub fn by(self, grouping: Option<Grouping>) -> Why<'o> {
        Why { groups: grouping.map(|grouping| Box::new(Groups::new(grouping))), ..self }
    }

    /// The analysis with the story of the episode that holds an instant.
    #[must_use]
    pub fn with_episode_at(self, at: Option<Ts>) -> Why<'o> {
        Why { chronicle: at.map(|at| Box::new(Chronicle::new(at))), ..self }
    }

    /// Adds a step to the story, if one is wanted.
    pub(crate) fn step(&mut self, on: Cpu, ts: Ts, cpu: Cpu, change: Change) {
        if let Some(chronicle) = &mut self.chronicle {
            chronicle.step(Step { ts, on, cpu, change });
        }
    }

    /// The steps of an event at `now` were added; work conservation was violated before it or not.
    pub(crate) fn chronicle_after(&mut self, now: Ts, was: bool, state: &SchedState) {
        if let Some(mut chronicle) = self.chronicle.take() {
            chronicle.after(now, was, self.meter.is_violated(), || self.present(state));
            self.chronicle = Some(chronicle);
        }
    }

    /// The counted waiting tasks and the idle CPUs.
    pub(crate) fn present(&self, state: &SchedState) -> Vec<Present> {
        let mut waiting: Vec<(Cpu, Ts, Who)> = (self.tasks.iter())
            .filter_map(|(id, track)| {
                let (wait, task) = (track.wait.filter(|wait| wait.counted)?, state.task(id)?);
                Some((wait.cpu, wait.start, Who { pid: task.pid, command: task.comm }))
            })
            .collect();
        waiting.sort_by_key(|(cpu, start, who)| (*cpu, *start, who.pid));
        let waiting = waiting.into_iter().map(|(cpu, start, who)| Present::Waiting(who, cpu, start));
        let idle = (0..).map(Cpu).zip(&self.cpus).filter_map(|(cpu, track)| {
            let stretch = track.stretch.filter(|_| self.meter.is_idle(cpu))?;
            Some(Present::Idle(cpu, stretch.start))
        });
        waiting.chain(idle).collect()
    }

    /// Ends the columns of a figure that end by `now`.
    #[cold]
    pub(crate) fn end_columns(&mut self, now: Ts) {
        let Some(over_time) = &mut self.over_time else { return };
        while self.column_end <= now {
            let at = self.column_end;
            let waiting: Vec<TaskId> = self
                .tasks
                .iter()
                .filter(|(_, track)| track.wait.is_some_and(|wait| wait.counted))
                .map(|(id, _)| id)
                .collect();
            for id in waiting {
                if let Some(wait) = self.tasks.get_mut(id).and_then(|track| track.wait.as_mut()) {
                    let reading = self.meter.wait_reading(wait.cpu, wait.class, at);
                    over_time.note_wait(id, reading.saturating_sub(wait.noted));
                    wait.noted = reading;
                }
            }
            for (cpu, track) in (0..).map(Cpu).zip(&mut self.cpus) {
                if let Some(stretch) = &mut track.stretch {
                    let reading = self.meter.idle_reading(cpu, at);
                    over_time.note_stretch(cpu, reading.saturating_sub(stretch.noted));
                    stretch.noted = reading;
                }
            }
            over_time.turn();
            self.column_end = over_time.column_end();
        }
    }
}
