//! The pieces of a pass, joined.
//!
//! A later piece finds in the state who waits and who occupies each CPU. It cannot find when the interval of a CPU that idles beside its own
//! tasks began, which decides what these waited for: what comes of such an interval is left to the pieces before.

use crate::Matrix;
use crate::parties::{By, Parties};
use crate::queue::{FoundCpu, IdleQueue, IdlingLeft, QueueNow, QueuedVictim, Resumed};
use sched::{Cpu, Joined, PerTask, SchedState, TaskId, TaskState, Ts};

impl Matrix<'_> {
    /// The idle time of a queued task's CPU before the task joined the queue, in the interval that goes on.
    fn idled_before(&self, queued: &QueuedVictim) -> u64 {
        let is_of_interval = self.cpus.get(queued.cpu.index()).is_some_and(|now| queued.joined.0 == now.intervals);
        if is_of_interval { queued.joined.1 } else { 0 }
    }

    /// Takes what a later piece has left.
    fn take_left(&mut self, left: IdlingLeft, places: &[usize]) {
        match left {
            IdlingLeft::Left { cpu, task, victim, ns, ts, is_unseen } => {
                let before = task.and_then(|task| self.queued.get(task)).map(|queued| self.idled_before(queued));
                let Some(idling) = self.cpus.get_mut(cpu.index()).and_then(|now| now.idling.as_mut()) else { return };
                let here = before.map_or(0, |before| idling.ns.saturating_sub(before));
                let (victim, culprit) = (places[victim], idling.culprit(ts, is_unseen));
                let waited = idling.of(victim);
                *waited = waited.saturating_sub(here);
                self.sums.add_wait((victim, culprit), ns.saturating_add(here));
            }
            IdlingLeft::Ended { cpu, idling, ts, is_unseen } => {
                let here = self.cpus.get_mut(cpu.index()).and_then(|now| now.idling.take());
                let whole = here.map(|here| here.with(&idling, places));
                whole.into_iter().for_each(|whole| self.sums.add_idling(&whole, ts, is_unseen));
            }
        }
    }

    /// The queued tasks of a later piece, of which `resumed` has those that it found.
    fn join_queued(&self, later: &Matrix<'_>, resumed: &Resumed, places: &[usize]) -> PerTask<QueuedVictim> {
        let mut queued = PerTask::default();
        for (task, of) in later.queued.iter() {
            let now = later.cpus.get(of.cpu.index());
            // The interval of its CPU goes on from here.
            let goes_on = now.filter(|now| now.idling.as_ref().is_some_and(|idling| idling.is_earlier));
            let here =
                goes_on.and_then(|_| self.cpus.get(of.cpu.index())?.idling.as_ref()).map_or(0, |idling| idling.ns);
            let known = self.queued.get(task).filter(|_| resumed.still_queued.get(task).is_some());
            let joined = match (goes_on, known) {
                (Some(now), Some(known)) => (now.intervals, self.idled_before(known)),
                (Some(now), None) if of.joined.0 == now.intervals => (now.intervals, of.joined.1.saturating_add(here)),
                _ => of.joined,
            };
            queued.insert(task, QueuedVictim { victim: places[of.victim], joined, ..*of });
        }
        queued
    }
}

impl Joined for Matrix<'_> {
    fn is_divisible(&self) -> bool {
        // A process has the name that its leader had last.
        self.options.by != By::Process
    }

    fn resume(&mut self, start: Ts, at: Ts, state: &SchedState) {
        self.start = start;
        self.parties.resume(at);
        self.look_at_all(at, state);
        let is_queued = |state| matches!(state, TaskState::Waiting(_) | TaskState::Throttled(_));
        state.living().filter(|task| is_queued(task.state)).for_each(|task| self.count(task, at, state));
        for now in &mut self.cpus {
            now.idling.iter_mut().for_each(|idling| idling.is_earlier = true);
        }
        let found = |now: &QueueNow| FoundCpu {
            culprit: now.culprit,
            is_observed: now.is_observed,
            idles: now.idling.is_some(),
        };
        let mut still_queued = PerTask::default();
        self.queued.iter().for_each(|(task, _)| still_queued.insert(task, ()));
        self.resumed = Some(Box::new(Resumed {
            at,
            cpus: self.cpus.iter().map(found).collect(),
            queued: self.queued.clone(),
            still_queued,
            tasks: self.parties.newcomers(),
            left: Vec::new(),
        }));
    }

    fn fits(&self, later: &Self) -> bool {
        let Some(resumed) = &later.resumed else { return false };
        if !self.parties.fits(&later.parties, resumed.tasks) {
            return false;
        }
        let is_same = |place, of_later| self.parties.is_same(place, &later.parties, of_later);
        let cpus =
            (0..self.cpus.len().max(resumed.cpus.len())).all(|cpu| match (self.cpus.get(cpu), resumed.cpus.get(cpu)) {
                (Some(now), Some(found)) => {
                    (now.is_observed, now.idling.is_some()) == (found.is_observed, found.idles)
                        && is_same(now.culprit, found.culprit)
                }
                (Some(now), None) => !now.is_observed && now.idling.is_none(),
                (None, found) => found.is_none_or(|found| !found.is_observed && !found.idles),
            });
        let number = |queued: &PerTask<QueuedVictim>| queued.iter().count();
        let queued = |(task, found): (TaskId, &QueuedVictim)| {
            self.queued.get(task).is_some_and(|now| {
                (now.cpu, now.throttled) == (found.cpu, found.throttled) && is_same(now.victim, found.victim)
            })
        };
        cpus && number(&self.queued) == number(&resumed.queued) && resumed.queued.iter().all(queued)
    }

    fn join(&mut self, mut later: Self) {
        let Some(mut resumed) = later.resumed.take() else { return };
        (0..self.cpus.len() as u32).for_each(|cpu| self.settle(Cpu(cpu), resumed.at));
        let found = std::mem::take(&mut resumed.left);
        let empty = Parties::new(&self.options.cgroups);
        let places = self.parties.join(std::mem::replace(&mut later.parties, empty));
        found.into_iter().for_each(|left| self.take_left(left, &places));
        self.sums.join(&later.sums, &places);
        self.queued = self.join_queued(&later, &resumed, &places);
        for (cpu, mut now) in std::mem::take(&mut later.cpus).into_iter().enumerate() {
            now.culprit = places[now.culprit];
            now.waiting.iter_mut().chain(&mut now.throttled).for_each(|(victim, _)| *victim = places[*victim]);
            if let Some(idling) = now.idling.take() {
                now.idling = match self.cpus.get_mut(cpu).and_then(|here| here.idling.take()) {
                    Some(here) if idling.is_earlier => Some(here.with(&idling, &places)),
                    _ => Some(IdleQueue {
                        waited: idling.waited.iter().map(|(victim, ns)| (places[*victim], *ns)).collect(),
                        ..idling
                    }),
                };
            }
            later.cpus.push(now);
        }
        self.cpus = later.cpus;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NeighboursReport, Options, PressureMeter};
    use membership::Cgroups;
    use sched::{Pid, SchedEvent, Window};
    use testkit::{PieceTally, Simulation, in_pieces, with_throttling};

    #[test]
    fn victims_and_culprits_are_the_same_in_pieces() {
        let mut sum = PieceTally::default();
        let even = |task: &sched::Task, _: &SchedState| task.pid.0 % 2 == 0;
        for seed in 0..12 {
            let simulation = Simulation::any(seed, 1 + (seed % 6) as u32, 900);
            let events = if seed % 2 == 0 { simulation.lossy(seed).0 } else { simulation.events };
            let events: Vec<SchedEvent> = if seed % 3 == 0 { with_throttling(&events, seed) } else { events };
            let from = events.get(events.len() / 3).map(|event| event.ts);
            let moves = moves(&events);
            for (tasks, by) in [
                (None, By::Command),
                (Some(&even as &sched::Chosen<'_>), By::Command),
                (None, By::Application),
                (None, By::Cgroup),
            ] {
                let options = Options { tasks, cgroups: Cgroups::of_moves(&moves), ..Options::new(by) };
                let lengths = [1 + seed as usize % 3, 40, 333];
                for window in [Window::default(), Window { from, to: None }] {
                    let show = |report: &NeighboursReport| format!("{report:?}");
                    sum += in_pieces(&mut events.as_slice(), window, &lengths, || Matrix::new(&options), show);
                }
            }
        }
        assert!(sum.joined * 10 > sum.pieces * 9 && sum.pieces > 1_000, "{sum:?}");
    }

    /// Moves of tasks between cgroups, to and fro.
    fn moves(events: &[SchedEvent]) -> Vec<(Ts, Pid, Option<&'static str>)> {
        let path = |nth: usize, pid: Pid| ["/a", "/b", "/a/c"].get((nth + pid.0 as usize) % 4).copied();
        let moved = events.iter().enumerate().step_by(17);
        moved.map(|(nth, event)| (event.ts, event.pid, path(nth, event.pid))).collect()
    }

    #[test]
    fn pressure_is_the_same_in_pieces() {
        let mut sum = PieceTally::default();
        for seed in 0..12 {
            let simulation = Simulation::any(seed, 1 + (seed % 6) as u32, 900);
            let mut events = if seed % 2 == 0 { simulation.lossy(seed).0 } else { simulation.events };
            // Many of the kernel's periods of two seconds.
            events.iter_mut().for_each(|event| event.ts = Ts(event.ts.0 * 20));
            let from = events.get(events.len() / 3).map(|event| event.ts);
            let cgroups = Cgroups::of_moves(&moves(&events));
            let lengths = [1 + seed as usize % 3, 40, 333];
            for window in [Window::default(), Window { from, to: None }] {
                let meter = || PressureMeter::new(&cgroups);
                sum += in_pieces(&mut events.as_slice(), window, &lengths, meter, |found| format!("{found:?}"));
            }
        }
        assert!(sum.joined == sum.pieces && sum.pieces > 1_000, "{sum:?}");
    }
}
