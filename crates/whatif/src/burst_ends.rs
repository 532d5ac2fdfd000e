//! Bursts of different tasks that end together: a sign of tasks that spin at a barrier.

use crate::model::{Model, ProgramStep, TaskIndex};
use sched::seeded::SeededMap;
use sched::{Comm, Dur, Ts, kthread};
use std::collections::BTreeSet;

/// The time within which bursts end together.
const TOGETHER: Dur = Dur(10_000);

/// The least number of bursts of a command that ended together with one of another of its tasks, and the least share of its
/// bursts, in percent, for a hint.
const LEAST: u64 = 20;
const LEAST_PERCENT: u64 = 50;

/// Maximum number of commands that are followed.
const COMMANDS: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct OfCommand {
    last: (Ts, TaskIndex),
    bursts: u64,
    together: u64,
}

/// The ends of bursts by command.
#[derive(Clone, Debug, Default)]
pub(crate) struct BurstEnds {
    commands: SeededMap<Comm, OfCommand>,
}

impl BurstEnds {
    /// A burst of a task ends with a sleep.
    pub(crate) fn note(&mut self, at: Ts, task: TaskIndex, comm: Comm) {
        if kthread::is_kernel_thread(comm) {
            return;
        }
        if let Some(of) = self.commands.get_mut(&comm) {
            let (before, other) = of.last;
            of.together += u64::from(other != task && at.since(before) <= TOGETHER);
            of.bursts += 1;
            of.last = (at, task);
        } else if self.commands.len() < COMMANDS {
            self.commands.insert(comm, OfCommand { last: (at, task), bursts: 1, together: 0 });
        }
    }

    /// The commands whose bursts mostly end together, in the order of their names.
    pub(crate) fn spinners(&self) -> Vec<Comm> {
        let often = |of: &OfCommand| of.together >= LEAST && of.together * 100 >= of.bursts * LEAST_PERCENT;
        let mut found: Vec<Comm> = self.commands.iter().filter(|(_, of)| often(of)).map(|(comm, _)| *comm).collect();
        found.sort_unstable();
        found
    }
}

/// The end of a burst of a task that spins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Ts,
    pub(crate) task: TaskIndex,
    /// The step of the sleep that follows.
    pub(crate) step: usize,
    /// The CPU time of the burst.
    pub(crate) burst: u64,
}

/// Makes meetings of bursts that end together: each is work as far as the shortest one of them. The arrivals are in the order of time.
pub(crate) fn meet(model: &mut Model, arrivals: &[Arrival]) {
    let mut steps: Vec<(TaskIndex, usize, u64, u32)> = Vec::new();
    for together in arrivals.chunk_by(|a, b| a.task != b.task && b.at.since(a.at) <= TOGETHER) {
        let tasks: BTreeSet<TaskIndex> = together.iter().map(|arrival| arrival.task).collect();
        if together.len() < 2 || tasks.len() < together.len() {
            continue;
        }
        let least = together.iter().map(|arrival| arrival.burst).min().unwrap_or(0);
        let meeting = model.meetings.len() as u32;
        steps.extend(together.iter().map(|arrival| (arrival.task, arrival.step, arrival.burst - least, meeting)));
        model.meetings.push(together.iter().map(|arrival| arrival.task).collect());
    }
    steps.sort_unstable();
    for of_task in steps.chunk_by(|a, b| a.0 == b.0) {
        let Some((task, ..)) = of_task.first() else { continue };
        let mut meetings = of_task.iter().peekable();
        let before = std::mem::take(&mut model.tasks[*task as usize].steps);
        let mut after = Vec::with_capacity(before.len() + of_task.len());
        for (at, step) in before.into_iter().enumerate() {
            if let Some((_, _, spun, meeting)) = meetings.next_if(|(_, place, ..)| *place == at) {
                if let Some(ProgramStep::Run(ns)) = after.last_mut() {
                    *ns = ns.saturating_sub(*spun);
                }
                after.push(ProgramStep::Meet(*meeting));
            }
            after.push(step);
        }
        model.tasks[*task as usize].steps = after;
    }
}
