//! The pieces of a pass, joined.
//!
//! A sleep, a waking or a wait that began before a piece is recorded with the pieces before. A wakeup of the piece that needs one of
//! them is left to these when its task runs: that is the first wakeup of each task, seldom more. All others are counted in the piece,
//! and the sums of the edges are added.

use crate::edges::PartyKey;
use crate::{Wakers, WakingSource, WokenWait};
use sched::limits::ROWS;
use sched::{Cpu, Dur, Joined, PerTask, Pid, SchedState, TaskId, Ts};

/// The parts of a wait that the pieces before have recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingParts {
    /// Every part of the wait is recorded in this piece.
    Nothing,
    /// The origin of its waking, the beginning of the sleep before, or both.
    Some {
        /// The waking whose origin is wanted.
        waking: Option<WakingId>,
        /// The instant of the wakeup, where the beginning of the sleep is wanted.
        woken: Option<Ts>,
    },
    /// All but the time throttled, and the CPU if the task was moved in this piece.
    Wait { is_moved: bool },
}

/// A waking as the state has it: its instant, the current task and the CPU.
pub(crate) type WakingId = (Ts, Pid, Cpu);

/// A woken task that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WokenRun {
    pub(crate) task: TaskId,
    pub(crate) pid: Pid,
    /// The node of the task.
    pub(crate) woken: PartyKey,
    /// The instant at which the task is switched in.
    pub(crate) now: Ts,
}

/// The wakeups that are left to the pieces before, in a later piece of a pass.
#[derive(Debug, Default)]
pub(crate) struct WakeupsLeft(Vec<(WokenRun, WokenWait)>);

impl WakeupsLeft {
    /// Leaves the wakeup of a task that runs.
    pub(crate) fn leave(&mut self, run: WokenRun, wait: WokenWait) {
        self.0.push((run, wait));
    }
}

impl WakingSource {
    /// Whether this is the origin of a waking.
    pub(crate) fn is_of(&self, waking: WakingId) -> bool {
        (self.at, self.by, self.on) == waking
    }
}

impl WokenWait {
    /// A wait that began before the piece, if the task waits. The CPU has no meaning until the task is moved.
    const EARLIER: WokenWait = WokenWait {
        start: None,
        source: None,
        slept: None,
        queued_on: Cpu(0),
        throttled: Dur(0),
        missing: MissingParts::Wait { is_moved: false },
    };

    /// The task is moved to the queue of another CPU.
    pub(crate) fn moves(&mut self, cpu: Cpu) {
        self.queued_on = cpu;
        if let MissingParts::Wait { is_moved } = &mut self.missing {
            *is_moved = true;
        }
    }
}

impl Wakers<'_> {
    /// Returns a wait of a later piece with the parts that are recorded here; nothing if it began here, and no wakeup was its
    /// beginning.
    fn completed(&self, task: TaskId, wait: WokenWait) -> Option<WokenWait> {
        match wait.missing {
            MissingParts::Nothing => Some(wait),
            MissingParts::Some { waking, woken } => {
                let source = |waking| self.sources.get(task).filter(|source| source.is_of(waking)).copied();
                let slept = |woken: Ts| self.asleep.get(task).copied().flatten().map(|since| woken.since(since));
                Some(WokenWait {
                    source: wait.source.or(waking.and_then(source)),
                    slept: wait.slept.or(woken.and_then(slept)),
                    missing: MissingParts::Nothing,
                    ..wait
                })
            }
            MissingParts::Wait { is_moved } => {
                let known = self.waits.get(task).copied()?;
                let queued_on = if is_moved { wait.queued_on } else { known.queued_on };
                let mut throttled = known.throttled;
                throttled += wait.throttled;
                Some(WokenWait { queued_on, throttled, ..known })
            }
        }
    }
}

impl Joined for Wakers<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, start: Ts, _: Ts, state: &SchedState) {
        self.start = Some(start);
        for task in state.living() {
            self.asleep.insert(task.id(), None);
            self.waits.insert(task.id(), WokenWait::EARLIER);
        }
        self.left = Some(WakeupsLeft::default());
    }

    fn fits(&self, later: &Self) -> bool {
        let Some(WakeupsLeft(left)) = &later.left else { return false };
        // Each of the wakeups that are left can be the first of its edge.
        let has_room = |rows: usize, more: usize| rows + more + left.len() <= ROWS;
        has_room(self.edges.len(), later.edges.len()) && has_room(self.at_futexes.len(), later.at_futexes.len())
    }

    fn join(&mut self, later: Self) {
        let Wakers { left, sources, mut asleep, mut waits, edges, at_futexes, .. } = later;
        for (run, wait) in left.map(|WakeupsLeft(left)| left).into_iter().flatten() {
            if let Some(wait) = self.completed(run.task, wait) {
                self.count(&run, &wait);
            }
        }
        self.edges.join(edges);
        for (key, sums) in at_futexes.into_rows() {
            self.at_futexes.of(key, None).join(&sums);
        }
        for (task, wait) in waits.entries_mut() {
            if let Some(completed) = self.completed(task, *wait) {
                *wait = completed;
            }
        }
        waits.fill(PerTask::default(), |wait| wait.missing != MissingParts::Nothing);
        asleep.fill(std::mem::take(&mut self.asleep), Option::is_none);
        sources.iter().for_each(|(task, source)| self.sources.insert(task, *source));
        (self.asleep, self.waits) = (asleep, waits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, PartiesBy, WakersReport};
    use sched::{SchedEvent, Window};
    use testkit::{PieceTally, Simulation, in_pieces, with_throttling};

    #[test]
    fn wakeups_are_the_same_in_pieces() {
        let mut sum = PieceTally::default();
        let show = |report: &WakersReport| serde_json::to_string(report).expect("a document");
        let even = |task: &sched::Task, _: &SchedState| task.pid.0 % 2 == 0;
        for seed in 0..12 {
            let simulation = Simulation::any(seed, 1 + (seed % 6) as u32, 900);
            let events = if seed % 2 == 0 { simulation.lossy(seed).0 } else { simulation.events };
            let events: Vec<SchedEvent> = if seed % 3 == 0 { with_throttling(&events, seed) } else { events };
            let from = events.get(events.len() / 3).map(|event| event.ts);
            for (tasks, by) in [(None, PartiesBy::Task), (Some(&even as &sched::Chosen<'_>), PartiesBy::Command)] {
                let options = Options { tasks, by, ..Options::default() };
                let lengths = [1 + seed as usize % 3, 40, 333];
                for window in [Window::default(), Window { from, to: None }] {
                    sum += in_pieces(&mut events.as_slice(), window, &lengths, || Wakers::new(&options), show);
                }
            }
        }
        assert!(sum.joined == sum.pieces && sum.pieces > 1_000, "{sum:?}");
    }
}
