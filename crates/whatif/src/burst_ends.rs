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
        let comm = without_number(comm);
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

/// A name with `N` for the number at its end, by which threads of one program often differ: `worker-3` is `worker-N`.
fn without_number(comm: Comm) -> Comm {
    let name = comm.as_bytes();
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    match name.len() - digits {
        stem if stem > 0 && digits > 0 => Comm::new(&[&name[..stem], b"N"].concat()),
        _ => comm,
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

/// Takes time from the end of the burst with which these steps end, of which other tasks may have interrupted the run.
fn spin_less(steps: &mut [ProgramStep], mut spun: u64) {
    for step in steps.iter_mut().rev().take_while(|step| !matches!(step, ProgramStep::Sleep(_))) {
        if let ProgramStep::Run(ns) = step {
            let less = spun.min(*ns);
            (*ns, spun) = (*ns - less, spun - less);
        }
    }
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
                spin_less(&mut after, *spun);
                after.push(ProgramStep::Meet(*meeting));
            }
            after.push(step);
        }
        model.tasks[*task as usize].steps = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hint after 100 rounds of four tasks, each of which ends its burst this much later than the one before.
    fn hint(apart: i64, name: impl Fn(u32) -> String) -> Vec<String> {
        let mut ends = BurstEnds::default();
        for round in 0..100 {
            for task in 0..4 {
                let at = Ts(round * 5_000_000 + i64::from(task) * apart);
                ends.note(at, task, Comm::new(name(task).as_bytes()));
            }
        }
        ends.spinners().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn bursts_that_end_together_again_and_again_give_a_hint() {
        assert_eq!(hint(2_000, |_| "spin".to_owned()), ["spin"]);
        assert_eq!(hint(2_000, |task| format!("spin-{task}")), ["spin-N"]);
        assert_eq!(hint(200_000, |_| "spin".to_owned()), [""; 0]);
        assert_eq!(hint(2_000, |task| format!("{}spin", char::from(b'a' + task as u8))), [""; 0]);
    }
}
