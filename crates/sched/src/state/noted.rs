//! The state before a part of a trace, noted for the part and taken up again there.
//!
//! A note can be of a damaged file: what contradicts itself in it is resolved here, so that the state is one that events
//! could have led to.

use super::allowed::AllowedSets;
use super::application::Application;
use super::tasks::{Task, Tasks};
use super::{CpuState, SchedState, SeenKinds, Throttling, Waking};
use crate::event::diag::EventIssue;
use crate::event::span::{Current, TaskState};
use crate::event::task_id::TaskId;
use crate::event::{Comm, Cpu, TaskRef, Ts};
use crate::state::past::{Past, PastCpu, PastName, PastTask};
use crate::tables::limits::PIDS;
use std::sync::Arc;

impl SchedState {
    /// Notes the state for a part of a trace that begins here. The fields of [`Past`] that concern the part itself, and
    /// the notes of analyses, are left to the caller.
    pub fn noted(&self) -> Past {
        let cpus = (0..).map(Cpu).zip(&self.cpus).filter(|(_, c)| c.is_worth_a_note());
        let throttled = (0..self.cpus.len() as u32).flat_map(|cpu| self.throttled(Cpu(cpu)));
        let queued = cpus.clone().flat_map(|(cpu, _)| self.waiting(cpu)).chain(throttled);
        let is_queued = |task: &&Task| matches!(task.state, TaskState::Waiting(_) | TaskState::Throttled(_));
        let others = self.tasks.living().filter(|task| !is_queued(task));
        let repairs = EventIssue::ALL.iter().map(|issue| (issue.diagnostic().name().to_owned(), self.repaired(*issue)));
        let former = self.lineage.former_names().into_iter();
        Past {
            start: self.start,
            cpus: cpus.clone().map(|(cpu, c)| c.noted(cpu)).collect(),
            tasks: queued.chain(others).map(Task::noted).collect(),
            free: self.tasks.free_slots(),
            lives: self.tasks.lives(),
            kin: self.lineage.origins(),
            root: self.lineage.root(),
            executed: self.lineage.has_executed(),
            application: self.lineage.application_from_here(),
            allowed: self.allowed.noted(),
            sched_idle: self.sched_idle(),
            policies_of_programs: self.unborn_policies(),
            policy_calls: self.open_policy_calls(),
            former: former.map(|(pid, name)| PastName { pid, name }).collect(),
            without_wakeups: self.without_wakeups,
            without_wakings: self.without_wakings,
            by_wakings: self.by_wakings,
            incomplete: self.incomplete,
            has_ext_queues: self.has_ext_queues,
            without_contexts: self.without_contexts,
            any_loss: self.any_loss,
            seen: self.seen.numbers(),
            newcomers: self.newcomers,
            repairs: repairs.filter(|(_, count)| *count > 0).collect(),
            gaps: self.gaps(),
            throttling: self.throttling.as_ref().map(|throttling| throttling.noted()),
            ..Past::default()
        }
    }

    /// Restores the state from before a part of a trace.
    pub(super) fn after(past: &Past, application: Option<Arc<Application>>) -> SchedState {
        let mut lineage = past.lineage();
        application.into_iter().for_each(|application| lineage.choose(application));
        let mut state = SchedState {
            start: past.start,
            now: past.from,
            without_wakeups: past.without_wakeups,
            without_wakings: past.without_wakings,
            by_wakings: past.by_wakings,
            incomplete: past.incomplete,
            has_ext_queues: past.has_ext_queues,
            without_contexts: past.without_contexts,
            any_loss: past.any_loss,
            lineage,
            allowed: AllowedSets::after(&past.allowed),
            seen: SeenKinds::noted(&past.seen),
            newcomers: past.newcomers,
            gaps: past.gaps.iter().map(|(cpu, times, ns)| (*cpu, (*times, *ns))).collect(),
            throttling: past.throttling.as_ref().map(|past| Box::new(Throttling::after(past))),
            policy_calls: past.policy_calls.iter().take(PIDS).map(|(by, of, was)| (*by, (*of, *was))).collect(),
            ..SchedState::default()
        };
        for issue in EventIssue::ALL {
            let count = past.repairs.get(issue.diagnostic().name()).copied().unwrap_or(0);
            state.repairs.add_many(*issue, count);
        }
        for cpu in past.cpus.iter().filter(|past| past.cpu.0 < Cpu::LIMIT) {
            state.take_up_cpu(cpu, past.from);
        }
        state.tasks = table(past);
        state.start_sched_idle(&past.sched_idle, &past.policies_of_programs);
        for task in &past.tasks {
            state.take_up_task(task, past.from);
        }
        state.tasks.count_lives(past.lives);
        // A task that is not among the tasks runs nowhere.
        for c in &mut state.cpus {
            if c.running.is_none() && c.current.pid().is_some() {
                (c.current, c.comm) = (Current::Unknown, Comm::EMPTY);
            }
        }
        state.forget_facts();
        state
    }

    /// Restores a CPU from its note.
    fn take_up_cpu(&mut self, past: &PastCpu, from: Ts) {
        let c = self.cpu(past.cpu);
        (c.observed, c.current, c.comm) = (past.observed, past.current, past.comm);
        (c.emptied, c.placing, c.handlers) = (past.emptied, past.placing, past.handlers);
        (c.picked, c.raised) = (past.picked, past.raised);
        (c.since, c.lost_since) = (past.since.min(from), past.lost_since.map(|since| since.min(from)));
    }

    /// Restores a task from its note, and its place on the CPU or in the queue. A task that contradicts the notes of
    /// the CPUs is unknown.
    fn take_up_task(&mut self, past: &PastTask, from: Ts) {
        if past.pid.is_idle() || self.tasks.find(past.pid).is_some() {
            return;
        }
        let is_believable = |cpu: Cpu| cpu.0 < Cpu::LIMIT;
        let runs = |cpu: Cpu| self.cpus.get(cpu.index()).is_some_and(|c| c.current == Current::Task(past.pid));
        let state = match past.state {
            TaskState::Running(cpu) if runs(cpu) => past.state,
            TaskState::Waiting(cpu) | TaskState::Throttled(cpu) | TaskState::Asleep(cpu) if is_believable(cpu) => {
                past.state
            }
            _ => TaskState::Unknown,
        };
        let task = TaskRef { pid: past.pid, prio: past.prio, comm: past.comm };
        self.tasks.count_lives(past.life.wrapping_sub(1));
        let Some(slot) = self.birth(task, state, past.since.min(from)) else { return };
        let waking = past.waking.filter(|(_, _, on, previous)| is_believable(*on) && is_believable(*previous));
        let entry = self.tasks.entry(slot);
        (entry.begun, entry.born) = (past.begun, past.born);
        entry.waking = waking.map(|(by, at, on, previous)| Waking { by, at, on, previous });
        entry.waking_is_used = past.waking_is_used;
        entry.came = past.came;
        entry.queued = past.queued.map(|queued| queued.min(from));
        entry.ran_on = past.ran_on.filter(|cpu| is_believable(*cpu));
        entry.undecided = past.undecided.filter(|(cpu, _)| is_believable(*cpu));
        match state {
            TaskState::Running(cpu) => self.cpu(cpu).running = Some(slot),
            TaskState::Waiting(cpu) => {
                self.cpu(cpu);
                self.tasks.join(&mut self.cpus[cpu.index()].queue, slot);
            }
            TaskState::Throttled(cpu) => self.join_throttled(slot, cpu),
            _ => {}
        }
    }
}

/// Makes a table in which each task finds its index free when it is restored, since analyses may depend on the order of
/// indices. A table whose indices contradict one another is not used.
fn table(past: &Past) -> Tasks {
    let tasks = past.tasks.iter().rev().map(|task| task.place);
    let places: Vec<u32> = past.free.iter().copied().chain(tasks).collect();
    let mut sorted = places.clone();
    sorted.sort_unstable();
    let is_table = sorted.iter().zip(0..).all(|(place, nth)| *place == nth);
    if is_table { Tasks::free_table(places) } else { Tasks::default() }
}

impl CpuState {
    /// Whether the CPU differs from one that no event has shown.
    fn is_worth_a_note(&self) -> bool {
        self.observed || self.queue.len > 0 || self.placing.is_some()
    }

    /// Notes the state of the CPU with this number.
    fn noted(&self, cpu: Cpu) -> PastCpu {
        let CpuState { observed, current, comm, since, emptied, lost_since, placing, handlers, picked, raised, .. } =
            *self;
        PastCpu { cpu, observed, current, comm, since, emptied, lost_since, placing, handlers, picked, raised }
    }
}

impl Task {
    /// Notes the state of the task.
    fn noted(&self) -> PastTask {
        let TaskId { slot: place, life } = self.id();
        let Task {
            pid, comm, prio, state, since, begun, born, undecided, waking_is_used, ran_on, queued, came, ..
        } = *self;
        let waking = self.waking.map(|Waking { by, at, on, previous }| (by, at, on, previous));
        PastTask {
            place,
            life,
            pid,
            comm,
            prio,
            state,
            since,
            begun,
            born,
            waking,
            waking_is_used,
            undecided,
            ran_on,
            queued,
            came,
        }
    }
}
