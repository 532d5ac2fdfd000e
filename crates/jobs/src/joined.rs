//! The pieces of a pass, joined: a later piece notes what its events mean for jobs, which needs the state no more, and the analysis of the
//! pieces before takes that in its order.

use crate::{CpuStretch, Jobs};
use sched::{Comm, Cpu, Joined, Pid, SchedState, TaskId, Ts};

/// A step that an event is for jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum JobStep {
    /// A CPU had one task up to now.
    Ran(Cpu, CpuStretch),
    /// A task is woken: by an interrupt, with the programmed expiry of the timer where it is known, or by a task.
    Woken(TaskId, Option<Option<Ts>>),
    /// A wakeup releases a job, and its task is queued then or later. `has_waking`: the waking was recorded.
    Released { task: TaskId, release: Ts, queued: Ts, has_waking: bool },
    /// A stretch of a task has ended.
    Turned(EndedStretch),
}

/// The end of a stretch of a task in one state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedStretch {
    pub(crate) task: TaskId,
    pub(crate) pid: Pid,
    pub(crate) comm: Comm,
    pub(crate) part: JobPart,
    pub(crate) start: Ts,
    pub(crate) end: Ts,
    /// Whether a job that ends with the stretch counts, but for the start of the window; of the ends of jobs alone.
    pub(crate) is_counted: bool,
}

/// The part of a job that a stretch of its task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobPart {
    /// The task waited for this CPU.
    Waited(Cpu),
    Throttled,
    Ran,
    /// The task ran and was switched out, and waits for a CPU again.
    Preempted,
    /// The task ran on this CPU, and sleeps from this instant on: its job has ended.
    Ended(Cpu, Ts),
    /// The end of the job is not seen.
    Cut,
}

impl Joined for Jobs<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, start: Ts, _: Ts, _: &SchedState) {
        self.start = Some(start);
        self.log.resume();
    }

    fn fits(&self, _: &Self) -> bool {
        true
    }

    fn join(&mut self, later: Self) {
        later.log.into_steps().for_each(|step| self.take_step(step));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobsReport, Options};
    use sched::{Dur, SchedEvent, Window};
    use testkit::{PieceTally, Simulation, in_pieces, with_throttling};

    #[test]
    fn jobs_are_the_same_in_pieces() {
        let mut sum = PieceTally::default();
        let mut jobs = 0;
        let even = |task: &sched::Task, _: &SchedState| task.pid.0 % 2 == 0;
        for seed in 0..12 {
            let simulation = Simulation::any(seed, 1 + (seed % 6) as u32, 900);
            let events = if seed % 2 == 0 { simulation.lossy(seed).0 } else { simulation.events };
            let events: Vec<SchedEvent> = if seed % 3 == 0 { with_throttling(&events, seed) } else { events };
            let from = events.get(events.len() / 3).map(|event| event.ts);
            for tasks in [None, Some(&even as &sched::Chosen<'_>)] {
                let deadline = Some(Dur(1_000_000));
                let options = Options { tasks, deadline, worst: 5, draws: true, ..Options::default() };
                let lengths = [1 + seed as usize % 3, 40, 333];
                for window in [Window::default(), Window { from, to: None }] {
                    let show = |report: &JobsReport| format!("{report:?}");
                    sum += in_pieces(&mut events.as_slice(), window, &lengths, || Jobs::new(&options), show);
                    let pass = sched::Pass::over(events.as_slice()).window(window);
                    let report = pass.run(|| Jobs::new(&options)).unwrap_or_else(|never| match never {}).output;
                    jobs += report.jobs.unwrap_or_default();
                }
            }
        }
        assert!(sum.joined == sum.pieces && sum.pieces > 1_000 && jobs > 1_000, "{sum:?}, {jobs} jobs");
    }
}
