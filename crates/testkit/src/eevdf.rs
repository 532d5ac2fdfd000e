//! A run queue under EEVDF, whose picks are known: tasks of several weights and requests on one CPU, woken by another.

use crate::Rng;
use sched::probe::{ChoiceRule, Entity, Left, LeftTimes, Probe, RecordedChoice, VirtualTime};
use sched::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};
use std::num::NonZeroU32;

/// The number of the events that stand for records of probes.
const ID: u16 = 998;
/// The greatest lag with which a task leaves the queue, in nanoseconds of nice 0.
const MOST_LAG: i64 = 6_000_000;

/// A pick of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedPick {
    /// The instant of the switch.
    pub ts: Ts,
    /// The PID of the picked task.
    pub pid: Pid,
    /// The number of other tasks that could have been picked.
    pub rivals: usize,
    /// Whether the task is not the one of the rule.
    pub is_wrong: bool,
    /// The lag of the task, in nanoseconds of its own run time.
    pub lag_ns: i64,
}

/// A run of the simulation.
#[derive(Clone, Debug, Default)]
pub struct Eevdf {
    /// The events, with the records of picks and of tasks that leave.
    pub events: Vec<SchedEvent>,
    /// The picks, in the order of time.
    pub picks: Vec<SimulatedPick>,
    /// Whether the record of a pick has the task that leaves as well, rather than a record of its own.
    joins: bool,
}

struct SimTask {
    prio: i32,
    weight: i64,
    slice: i64,
    vruntime: i64,
    deadline: i64,
    lag: i64,
    queued: bool,
    /// The instant of the next wakeup of a task that sleeps.
    wakes: i64,
}

impl SimTask {
    fn named(pid: usize, prio: i32) -> TaskRef {
        TaskRef { pid: Pid(pid as i32), prio, comm: Comm::new(format!("task{pid}").as_bytes()) }
    }

    fn entity(&self) -> Entity {
        Entity {
            vruntime: VirtualTime::of(self.vruntime),
            deadline: VirtualTime::of(self.deadline),
            slice: NonZeroU32::new(self.slice as u32),
            weight: NonZeroU32::new((self.weight as u32) << 10),
        }
    }

    /// The virtual length of a time.
    fn passed(&self, ns: i64) -> i64 {
        ns * 1024 / self.weight
    }
}

/// The mean of the virtual run times by weight, without the tasks that sleep.
fn mean(tasks: &[SimTask]) -> i64 {
    let queued = || tasks.iter().filter(|task| task.queued);
    let weight: i128 = queued().map(|task| i128::from(task.weight)).sum();
    let sum: i128 = queued().map(|task| i128::from(task.weight) * i128::from(task.vruntime)).sum();
    if weight == 0 { 0 } else { (sum / weight) as i64 }
}

impl Eevdf {
    /// Runs this number of tasks for this number of picks. Each `wrong_every`-th pick takes another task than that of the rule; none
    /// does if that is zero. With an even seed the record of a pick has the task that leaves as well.
    pub fn run(seed: u64, tasks: usize, picks: usize, wrong_every: usize) -> Eevdf {
        let mut rng = Rng::new(seed);
        let mut sim = Eevdf { joins: seed.is_multiple_of(2), ..Eevdf::default() };
        let mut tasks: Vec<SimTask> = (0..tasks)
            .map(|nth| {
                let (prio, weight) =
                    *rng.pick(&[(120, 1024), (115, 3121), (125, 335), (120, 1024)]).unwrap_or(&(120, 1024));
                let slice = if rng.below(4) == 0 { 1_000_000 } else { 3_000_000 };
                let wakes = 1_000 * (nth as i64 + 1);
                SimTask { prio, weight, slice, vruntime: 0, deadline: 0, lag: 0, queued: false, wakes }
            })
            .collect();
        let (mut now, mut current) = (1_000_000_i64, 0_usize);
        sim.push(500, 1, 0, EventKind::Other { id: 999 });
        let mut state = PrevState::RUNNABLE;
        while sim.picks.len() < picks {
            sim.wake(&mut tasks, now);
            let Some(mut next) = rule(&tasks) else {
                // The CPU idles until the next wakeup.
                let first = tasks.iter().map(|task| task.wakes).min().unwrap_or(now);
                if current != 0 {
                    sim.switch(now, &tasks, current, state, 0);
                }
                (current, state, now) = (0, PrevState::RUNNABLE, first.max(now + 1_000));
                continue;
            };
            let queued: Vec<usize> = (0..tasks.len()).filter(|nth| tasks[*nth].queued).collect();
            let mut is_wrong = false;
            if wrong_every > 0 && sim.picks.len() % wrong_every == wrong_every - 1 {
                let differs = |nth: &&usize| tasks[**nth].deadline != tasks[next].deadline;
                if let Some(other) = queued.iter().find(differs) {
                    (next, is_wrong) = (*other, true);
                }
            }
            if current != next + 1 {
                let lag_ns = (mean(&tasks) - tasks[next].vruntime) * tasks[next].weight / 1024;
                let (ts, pid, rivals) = (Ts(now), Pid(next as i32 + 1), queued.len() - 1);
                sim.picks.push(SimulatedPick { ts, pid, rivals, is_wrong, lag_ns });
                sim.switch(now, &tasks, current, state, next + 1);
            }
            current = next + 1;
            let ran = 1_000 * (1 + rng.below(2_500) as i64);
            now += ran;
            let task = &mut tasks[next];
            task.vruntime += task.passed(ran);
            if task.vruntime >= task.deadline {
                task.deadline = task.vruntime + task.passed(task.slice);
            }
            state = PrevState::RUNNABLE;
            // The wakeups of this instant come before the switch.
            sim.wake(&mut tasks, now);
            if rng.below(3) == 0 {
                let limit = tasks[next].passed(MOST_LAG);
                let lag = mean(&tasks) - tasks[next].vruntime;
                let leaves = &mut tasks[next];
                (leaves.queued, leaves.lag, leaves.wakes) =
                    (false, lag.clamp(-limit, limit), now + 1_000 * (1 + rng.below(9_000) as i64));
                state = PrevState::asleep(1);
            }
        }
        sim
    }

    fn push(&mut self, ts: i64, cpu: u32, pid: usize, kind: EventKind) {
        self.events.push(SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid as i32), flags: 0, kind });
    }

    /// Wakes the tasks whose time has come: CPU 1 does, from its idle task.
    fn wake(&mut self, tasks: &mut [SimTask], now: i64) {
        for nth in 0..tasks.len() {
            if tasks[nth].queued || tasks[nth].wakes > now {
                continue;
            }
            let load: i64 = tasks.iter().filter(|task| task.queued).map(|task| task.weight).sum();
            let time = if load == 0 { tasks.iter().map(|task| task.vruntime).max().unwrap_or(0) } else { mean(tasks) };
            let task = &mut tasks[nth];
            let lag = if load == 0 { 0 } else { task.lag * (load + task.weight) / load };
            task.vruntime = time - lag;
            task.deadline = task.vruntime + task.passed(task.slice);
            task.queued = true;
            let named = SimTask::named(nth + 1, task.prio);
            self.push(now, 1, 0, EventKind::Wakeup { task: named, target: Cpu(0) });
        }
    }

    /// CPU 0 switches; tasks are counted from one on, and zero is the idle task.
    fn switch(&mut self, now: i64, tasks: &[SimTask], prev: usize, state: PrevState, next: usize) {
        let named = |nth: usize| SimTask::named(nth, if nth == 0 { 120 } else { tasks[nth - 1].prio });
        self.push(now, 0, prev, EventKind::Switch { prev: named(prev), state, next: named(next) });
        let queued = tasks.iter().filter(|task| task.queued).count();
        let number = NonZeroU32::new(7).unwrap_or(NonZeroU32::MIN);
        let entity = |nth: usize| tasks.get(nth.wrapping_sub(1)).map(SimTask::entity).unwrap_or_default();
        let (own, leaving) = (entity(next), entity(prev));
        let vlag = VirtualTime::of(tasks.get(prev.wrapping_sub(1)).map_or(0, |task| task.lag));
        let left = if state.is_runnable() {
            Left::Waits(leaving.vruntime, leaving.deadline)
        } else {
            Left::Sleeps(leaving.vruntime, vlag)
        };
        let (left_kind, left) = LeftTimes::of(Some(left).filter(|_| self.joins));
        let (queue, choice) = (Some(number), RecordedChoice::of(queued as u64, ChoiceRule::Unrecorded));
        let picks = Probe::Picks { pid: Pid(next as i32), entity: own, left_kind, left, queue, choice };
        self.push(now + 1, 0, prev, EventKind::Probe { id: ID, probe: picks });
        if !self.joins {
            let (pid, delayed) = (Pid(prev as i32), false);
            let puts = Probe::Puts { pid, entity: leaving, vlag, delayed, queue };
            self.push(now + 2, 0, prev, EventKind::Probe { id: ID, probe: puts });
        }
    }
}

/// The task of the rule: of those whose lag is not negative, the one with the earliest deadline.
fn rule(tasks: &[SimTask]) -> Option<usize> {
    let time = mean(tasks);
    let eligible = |nth: &usize| tasks[*nth].queued && tasks[*nth].vruntime <= time;
    let earliest = (0..tasks.len()).filter(eligible).min_by_key(|nth| tasks[*nth].deadline);
    // The mean is rounded: of tasks alone or all alike none can be eligible.
    earliest.or_else(|| (0..tasks.len()).filter(|nth| tasks[*nth].queued).min_by_key(|nth| tasks[*nth].vruntime))
}
