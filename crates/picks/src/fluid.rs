//! The fluid model over a trace: the run queues of all CPUs, followed by its events.

use crate::deadlines::Deadlines;
use crate::group::GroupKey;
use crate::queue::{Entity, Parameters, Queue, real_length};
use sched::nice::weight_of;
use sched::seeded::SeededMap;
use sched::state::Task;
use sched::{Cpu, PerTask, SchedState, Span, TaskId, TaskState, Ts};
use std::collections::BTreeSet;

/// The number of run queues from which on empty ones are forgotten: no task depends on the virtual time of an empty queue.
const MANY_QUEUES: usize = 1 << 10;

/// The place of a task in the model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) cpu: Cpu,
    pub(crate) group: GroupKey,
    pub(crate) entity: Entity,
    /// The instant since which the task runs; nothing while it waits.
    pub(crate) runs_since: Option<Ts>,
    /// Whether the task sleeps and stays on its queue until its lag is no longer negative.
    pub(crate) delayed: bool,
}

/// The run queues of the model, by CPU and group.
pub(crate) struct Fluid {
    parameters: Parameters,
    delays: bool,
    pub(crate) queues: SeededMap<(Cpu, GroupKey), Queue>,
    pub(crate) members: PerTask<Member>,
    /// The virtual lag with which each task left its queue.
    pub(crate) lags: PerTask<i64>,
    /// The tasks that wait on each queue.
    waiting: SeededMap<(Cpu, GroupKey), Deadlines>,
    /// The tasks that sleep and stay on their queues.
    pub(crate) delayed: Vec<TaskId>,
    /// The sleeping tasks of each queue, by their virtual run time.
    sleeping: SeededMap<(Cpu, GroupKey), BTreeSet<(i64, TaskId)>>,
    /// The queues whose virtual time may have changed since delayed tasks were last looked at.
    changed: Vec<(Cpu, GroupKey)>,
    /// Whether a delayed task may have been woken since then.
    pub(crate) has_woken: bool,
    /// The task of the fair class that runs on each CPU.
    pub(crate) running: SeededMap<Cpu, TaskId>,
}

/// A task of the model, with its numbers at an instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FluidTask {
    pub(crate) group: GroupKey,
    /// The deadline less the virtual time of the queue.
    pub(crate) deadline: i64,
    pub(crate) eligible: bool,
    /// The lag, in nanoseconds of the task's own run time; negative if it had more than its share.
    pub(crate) lag_ns: i64,
}

impl Fluid {
    /// Makes the model of a kernel; `delays` if tasks with negative lag stay on their queues as they sleep.
    pub(crate) fn new(parameters: Parameters, delays: bool) -> Fluid {
        Fluid {
            parameters,
            delays,
            queues: SeededMap::default(),
            members: PerTask::default(),
            lags: PerTask::default(),
            waiting: SeededMap::default(),
            delayed: Vec::new(),
            sleeping: SeededMap::default(),
            changed: Vec::new(),
            has_woken: false,
            running: SeededMap::default(),
        }
    }

    /// The greatest virtual lag, of either sign, with which a task of this weight leaves a queue.
    pub(crate) fn limit(&self, weight: u64) -> i64 {
        self.parameters.limit(weight)
    }

    /// Follows the states that tasks have taken by the latest event.
    pub(crate) fn follow(&mut self, state: &SchedState, group: impl Fn(&Task) -> GroupKey) {
        let now = state.now();
        for (task, span) in state.turns() {
            self.turn(task, span, now, &group);
        }
        self.release();
    }

    fn turn(&mut self, task: &Task, span: &Span, now: Ts, group: &impl Fn(&Task) -> GroupKey) {
        self.has_woken |= self.members.get(task.id()).is_some_and(|member| member.delayed);
        self.sort(task.id(), false);
        self.changes(task, span, now, group);
        self.sort(task.id(), true);
    }

    /// Sorts a member that waits, or that sleeps and stays, into the order of its queue, or takes it from there.
    pub(crate) fn sort(&mut self, id: TaskId, adds: bool) {
        let Some(Member { cpu, group, entity, runs_since, delayed }) = self.members.get(id).copied() else { return };
        let queue = (cpu, group);
        if delayed {
            let sleeping = self.sleeping.entry(queue).or_default();
            let _ = if adds { sleeping.insert((entity.vruntime, id)) } else { sleeping.remove(&(entity.vruntime, id)) };
            if sleeping.is_empty() {
                self.sleeping.remove(&queue);
            }
        } else if runs_since.is_none() {
            let waiting = self.waiting.entry(queue).or_default();
            if adds {
                return waiting.insert(entity.deadline, entity.vruntime, id);
            }
            waiting.remove(entity.deadline, id);
            if waiting.is_empty() {
                self.waiting.remove(&queue);
            }
        }
    }

    fn changes(&mut self, task: &Task, span: &Span, now: Ts, group: &impl Fn(&Task) -> GroupKey) {
        let id = task.id();
        self.advance(id, now);
        let is_fair = task.known_prio().is_some_and(|prio| prio >= 100);
        let place = match span.next {
            TaskState::Running(cpu) | TaskState::Waiting(cpu) if is_fair => Some(cpu),
            _ => None,
        };
        let runs_since = matches!(span.next, TaskState::Running(_)).then_some(now);
        let weight = weight_of(task.prio);
        if let TaskState::Running(cpu) = span.state {
            self.running.remove(&cpu);
        }
        // The virtual time of a queue goes by the run of its task.
        for cpu in [place, self.members.get(id).map(|member| member.cpu)].into_iter().flatten() {
            if let Some(running) = self.running.get(&cpu).copied() {
                self.advance(running, now);
            }
        }
        let Some(cpu) = place else {
            let sleeps = matches!(span.next, TaskState::Asleep(_)) && matches!(span.state, TaskState::Running(_));
            return self.stops(id, sleeps);
        };
        if runs_since.is_some() {
            self.running.insert(cpu, id);
        }
        // A task that only goes on, waits or runs stays where it is.
        if let Some(member) = self.members.get_mut(id)
            && member.cpu == cpu
            && member.entity.weight == weight
        {
            (member.runs_since, member.delayed) = (runs_since, false);
            return;
        }
        let had = self.members.take(id).map(|member| self.leave(&member));
        let lag = had.or_else(|| self.lags.get(id).copied());
        let is_new = lag.is_none() && task.born == Some(now);
        let key = group(task);
        self.changed.push((cpu, key));
        let queue = self.queues.entry((cpu, key)).or_default();
        let entity = queue.join(weight, lag.unwrap_or(0), is_new, self.parameters);
        self.members.insert(id, Member { cpu, group: key, entity, runs_since, delayed: false });
    }

    /// A task runs up to now.
    fn advance(&mut self, id: TaskId, now: Ts) {
        let Some(member) = self.members.get_mut(id) else { return };
        let Some(since) = member.runs_since.replace(now) else {
            member.runs_since = None;
            return;
        };
        if let Some(queue) = self.queues.get_mut(&(member.cpu, member.group)) {
            self.changed.push((member.cpu, member.group));
            queue.run(&mut member.entity, now.since(since).0, self.parameters);
        }
    }

    /// A task is neither running nor queued any more; `sleeps` if it went to sleep by itself.
    fn stops(&mut self, id: TaskId, sleeps: bool) {
        let Some(member) = self.members.get_mut(id) else { return };
        member.runs_since = None;
        let lag = self.queues.get(&(member.cpu, member.group)).map_or(0, |queue| queue.lag(&member.entity));
        if sleeps && self.delays && lag < 0 {
            member.delayed = true;
            let limit = self.parameters.limit(member.entity.weight);
            self.lags.insert(id, lag.max(-limit));
            self.delayed.push(id);
            self.changed.push((member.cpu, member.group));
            return;
        }
        if let Some(member) = self.members.take(id) {
            let lag = self.leave(&member);
            self.lags.insert(id, lag);
        }
    }

    fn leave(&mut self, member: &Member) -> i64 {
        let key = (member.cpu, member.group);
        self.changed.push(key);
        let Some(queue) = self.queues.get_mut(&key) else { return 0 };
        let lag = queue.leave(&member.entity, self.parameters);
        if queue.weight == 0 && self.queues.len() > MANY_QUEUES {
            self.queues.remove(&key);
        }
        lag
    }

    /// Takes those from their queues that sleep and whose lag is no longer negative. They are looked at only where there can be one.
    fn release(&mut self) {
        let mut is_due = std::mem::take(&mut self.has_woken);
        while let Some(key) = self.changed.pop() {
            let first = self.sleeping.get(&key).and_then(BTreeSet::first);
            is_due |=
                first.is_some_and(|(vruntime, _)| self.queues.get(&key).is_none_or(|queue| queue.time() >= *vruntime));
        }
        let mut nth = if is_due { 0 } else { self.delayed.len() };
        while let Some(id) = self.delayed.get(nth).copied() {
            let member = self.members.get(id).filter(|member| member.delayed).copied();
            let owed = |member: &Member| {
                self.queues.get(&(member.cpu, member.group)).is_none_or(|queue| queue.lag(&member.entity) >= 0)
            };
            match member {
                Some(member) if !owed(&member) => {
                    nth += 1;
                    continue;
                }
                Some(member) => {
                    self.sort(id, false);
                    self.leave(&member);
                    self.members.take(id);
                    self.lags.insert(id, 0);
                }
                None => {}
            }
            self.delayed.swap_remove(nth);
        }
    }

    /// Whether a task waits on a run queue that is eligible and has an earlier deadline, relative to the virtual time of the queue.
    pub(crate) fn is_beaten(&self, cpu: Cpu, picked: &FluidTask) -> bool {
        let key = (cpu, picked.group);
        let Some((queue, waiting)) = self.queues.get(&key).zip(self.waiting.get(&key)) else { return false };
        let time = queue.time();
        // The mean is rounded down.
        waiting.least_before(picked.deadline.wrapping_add(time)).is_some_and(|least| time.saturating_sub(least) >= -1)
    }

    /// Returns the task's numbers now; nothing for a task that is not queued.
    pub(crate) fn of(&mut self, id: TaskId, now: Ts) -> Option<FluidTask> {
        self.advance(id, now);
        let member = self.members.get(id)?;
        let queue = self.queues.get(&(member.cpu, member.group))?;
        let (entity, lag) = (&member.entity, queue.lag(&member.entity));
        Some(FluidTask {
            group: member.group,
            deadline: entity.deadline.wrapping_sub(queue.time()),
            // The mean is rounded down.
            eligible: lag >= -1,
            lag_ns: real_length(lag, entity.weight),
        })
    }

    /// The virtual lag with which a task left its queue, or went to sleep on it; nothing while it runs or waits, or where it was never seen
    /// to leave.
    pub(crate) fn left_with(&self, id: TaskId) -> Option<i64> {
        let is_awake = self.members.get(id).is_some_and(|member| !member.delayed);
        self.lags.get(id).copied().filter(|_| !is_awake)
    }
}
