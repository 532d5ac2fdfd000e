//! Bursts of different tasks that end together: a sign of tasks that spin at a barrier.

use crate::model::TaskIndex;
use sched::seeded::SeededMap;
use sched::{Comm, Dur, Ts, kthread};

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
