//! Tasks that bandwidth control (`cpu.max`) keeps from running.
//!
//! The kernel throttles the tasks of a cgroup on one CPU. The probes `throttle` and `unthrottle` are on functions that it
//! calls for the cgroup whose limit is reached and for every cgroup below it, each with a CPU, and only if the throttling takes
//! place. A cgroup is throttled on a CPU while more records began this than ended it: its own limit and those of its ancestors
//! can hold at the same time.
//!
//! Until 6.17 throttling takes the run queue of the cgroup from the CPU's, with all tasks on it. Later kernels throttle a
//! task when it returns to user mode (`throttle_task`); tasks that are queued in a throttled cgroup still run until then.
//!
//! A task's cgroup follows from the machine file at the start, and then from records of moves and forks. Only tasks of the
//! fair class are throttled.

use super::tasks::TaskQueue;
use super::{SchedState, Slot};
use crate::event::diag::EventIssue;
use crate::event::probe::{CgroupId, Probe, Throttle};
use crate::event::span::TaskState;
use crate::event::{Cpu, Pid, SchedEvent, Ts};
use crate::state::Task;
use crate::state::past::PastThrottling;
use crate::tables::limits::keep_of_pid;
use crate::tables::seeded::SeededMap;
use std::collections::BTreeSet;

/// The lowest priority number of the fair class; lower numbers are those of real-time and deadline tasks.
const FAIR: i32 = 100;

/// The throttled cgroups and tasks. A state has this only if the trace has records of throttling.
#[derive(Clone, Debug, Default)]
pub(super) struct Throttling {
    /// The limits that throttle a cgroup on a CPU.
    limits: SeededMap<(CgroupId, Cpu), Limits>,
    /// The cgroup of each task.
    groups: SeededMap<Pid, CgroupId>,
    /// The throttled tasks of each CPU, in the order in which they were throttled.
    queues: Vec<TaskQueue>,
    /// The running task of each CPU that is about to be throttled, and the instant of the record.
    about: Vec<Option<(Pid, Ts)>>,
    /// Whether queued tasks are throttled one by one rather than with their cgroup.
    by_task: bool,
    /// Whether forks have records of their own, so that `sched_process_fork` adds nothing.
    records_forks: bool,
    /// The throttling that turned out to last since the start.
    pub(super) discovered: Vec<(CgroupId, Cpu)>,
    /// The CPUs that are throttled by records without a cgroup, which show nothing of the tasks.
    without_cgroup: BTreeSet<Cpu>,
}

/// The limits that throttle a cgroup on a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    count: u32,
    /// Whether a record has shown a beginning of throttling. An end without one is then not that of throttling since
    /// the start.
    is_known: bool,
}

impl Throttling {
    /// Makes the state at the start: the cgroups of tasks, and the throttling that is known to last since then.
    pub(super) fn at_start(groups: &[(Pid, CgroupId)], throttled: &[(CgroupId, Cpu)]) -> Throttling {
        let mut throttling = Throttling { groups: groups.iter().copied().collect(), ..Throttling::default() };
        throttled.iter().for_each(|(group, cpu)| throttling.limits(*group, *cpu).count += 1);
        throttling
    }

    /// The approximate number of bytes of a copy.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Throttling>()
            + self.limits.len() * size_of::<((CgroupId, Cpu), Limits)>()
            + self.groups.len() * size_of::<(Pid, CgroupId)>()
            + self.queues.len() * size_of::<(TaskQueue, Option<(Pid, Ts)>)>()
            + self.without_cgroup.len() * size_of::<Cpu>()
    }

    /// The limits of a cgroup on `cpu`, made if there are none.
    fn limits(&mut self, group: CgroupId, cpu: Cpu) -> &mut Limits {
        self.limits.entry((group, cpu)).or_default()
    }

    /// Whether some limit throttles the cgroup on `cpu`.
    fn is_throttled(&self, group: CgroupId, cpu: Cpu) -> bool {
        self.limits.get(&(group, cpu)).is_some_and(|limits| limits.count > 0)
    }

    /// Returns the cgroup of a task, if it is throttled on `cpu` and the task is of the fair class.
    fn throttled_group(&self, task: &Task, cpu: Cpu) -> Option<CgroupId> {
        let group = self.groups.get(&task.pid).copied()?;
        let is_fair = task.known_prio().is_none_or(|prio| prio >= FAIR);
        (is_fair && self.is_throttled(group, cpu)).then_some(group)
    }

    /// Whether a cgroup is throttled somewhere, or a task.
    pub(super) fn is_active(&self) -> bool {
        self.limits.values().any(|limits| limits.count > 0)
            || self.queues.iter().any(|queue| queue.len > 0)
            || self.about.iter().any(Option::is_some)
    }

    /// The queue of throttled tasks of `cpu`, made if there is none.
    pub(super) fn queue(&mut self, cpu: Cpu) -> &mut TaskQueue {
        if cpu.index() >= self.queues.len() {
            self.queues.resize(cpu.index() + 1, TaskQueue::default());
        }
        &mut self.queues[cpu.index()]
    }

    /// The queue of throttled tasks of `cpu`; empty if there is none.
    fn queued(&self, cpu: Cpu) -> TaskQueue {
        self.queues.get(cpu.index()).copied().unwrap_or_default()
    }

    /// Sets or clears the running task of `cpu` that is about to be throttled.
    fn set_about(&mut self, cpu: Cpu, task: Option<(Pid, Ts)>) {
        if cpu.index() >= self.about.len() && task.is_some() {
            self.about.resize(cpu.index() + 1, None);
        }
        if let Some(about) = self.about.get_mut(cpu.index()) {
            *about = task;
        }
    }

    /// Gives a child the cgroup of its parent.
    pub(super) fn fork(&mut self, parent: Pid, child: Pid) {
        if !self.records_forks {
            self.hand_over(parent, child);
        }
    }

    /// Gives the task `to` the cgroup of the task `from`.
    pub(super) fn hand_over(&mut self, from: Pid, to: Pid) {
        match self.groups.get(&from).copied() {
            Some(group) => keep_of_pid(&mut self.groups, to, group),
            None => drop(self.groups.remove(&to)),
        }
    }

    /// Forgets a task, which is dead.
    pub(super) fn forget(&mut self, pid: Pid) {
        self.groups.remove(&pid);
    }

    /// Notes the throttling for a part of a trace.
    pub(super) fn noted(&self) -> PastThrottling {
        let mut limits: Vec<_> = self
            .limits
            .iter()
            .map(|((group, cpu), limits)| (group.number(), *cpu, limits.count, limits.is_known))
            .collect();
        let mut groups: Vec<_> = self.groups.iter().map(|(pid, group)| (*pid, group.number())).collect();
        limits.sort_unstable();
        groups.sort_unstable();
        let about = (0..).map(Cpu).zip(&self.about).filter_map(|(cpu, about)| about.map(|(pid, ts)| (cpu, pid, ts)));
        let (by_task, records_forks) = (self.by_task, self.records_forks);
        let without_cgroup = self.without_cgroup.iter().copied().collect();
        PastThrottling { limits, groups, about: about.collect(), by_task, records_forks, without_cgroup }
    }

    /// Restores the throttling from before a part of a trace.
    pub(super) fn after(past: &PastThrottling) -> Throttling {
        let mut throttling = Throttling {
            groups: past.groups.iter().map(|(pid, group)| (*pid, CgroupId::new(*group))).collect(),
            by_task: past.by_task,
            records_forks: past.records_forks,
            ..Throttling::default()
        };
        let is_believable = |cpu: Cpu| cpu.0 < Cpu::LIMIT;
        for (group, cpu, count, is_known) in past.limits.iter().filter(|(_, cpu, ..)| is_believable(*cpu)) {
            *throttling.limits(CgroupId::new(*group), *cpu) = Limits { count: *count, is_known: *is_known };
        }
        for (cpu, pid, ts) in past.about.iter().filter(|(cpu, ..)| is_believable(*cpu)) {
            throttling.set_about(*cpu, Some((*pid, *ts)));
        }
        throttling.without_cgroup = past.without_cgroup.iter().copied().filter(|cpu| is_believable(*cpu)).collect();
        throttling
    }
}

impl SchedState {
    /// Iterates over the throttled tasks of `cpu`, in the order in which they were throttled.
    pub fn throttled(&self, cpu: Cpu) -> impl Iterator<Item = &Task> {
        let queue = self.throttling.as_ref().map_or(TaskQueue::default(), |throttling| throttling.queued(cpu));
        self.tasks.queued(queue)
    }

    /// The cgroup of a task, as far as it is known. Cgroups are followed only if the trace has records of throttling.
    pub fn cgroup(&self, pid: Pid) -> Option<CgroupId> {
        self.throttling.as_ref()?.groups.get(&pid).copied()
    }

    /// Iterates over the CPUs that are throttled now, each with a cgroup and the number of limits that throttle it
    /// there. The cgroup is absent if the records show none; there is one limit then.
    pub fn throttling_limits(&self) -> impl Iterator<Item = (Cpu, Option<CgroupId>, u32)> {
        let limits = self.throttling.iter().flat_map(|throttling| &throttling.limits);
        let known = limits.map(|((group, cpu), limits)| (*cpu, Some(*group), limits.count));
        let without = self.throttling.iter().flat_map(|throttling| &throttling.without_cgroup);
        known.filter(|(.., count)| *count > 0).chain(without.map(|cpu| (*cpu, None, 1)))
    }

    /// The throttling of cgroups that turned out, too late, to last since the start.
    pub(crate) fn discovered_throttling(&self) -> &[(CgroupId, Cpu)] {
        self.throttling.as_ref().map_or(&[], |throttling| &throttling.discovered)
    }

    /// Follows a record that concerns throttling.
    #[inline(never)]
    pub(super) fn follow_throttling(&mut self, probe: &Probe, event: &SchedEvent) {
        match *probe {
            Probe::Throttles(Throttle { cpu: Some(cpu), cgroup: Some(group), takes_queue }) => {
                self.throttling().by_task = !takes_queue;
                self.throttle(group, cpu);
            }
            Probe::Unthrottles(Throttle { cpu: Some(cpu), cgroup: Some(group), .. }) => self.unthrottle(group, cpu),
            Probe::Throttles(Throttle { cpu, cgroup: None, .. }) => {
                self.throttling().without_cgroup.insert(cpu.unwrap_or(event.cpu));
            }
            Probe::Unthrottles(Throttle { cpu, cgroup: None, .. }) => {
                self.throttling().without_cgroup.remove(&cpu.unwrap_or(event.cpu));
            }
            Probe::ThrottlesTask(pid, group) => {
                let throttling = self.throttling();
                keep_of_pid(&mut throttling.groups, pid, group);
                throttling.set_about(event.cpu, Some((pid, event.ts)));
            }
            Probe::Joins { pid, cgroup, forked } => {
                let throttling = self.throttling();
                throttling.records_forks |= forked;
                keep_of_pid(&mut throttling.groups, pid, cgroup);
                if !forked {
                    self.settle_throttling(pid);
                }
            }
            _ => {}
        }
    }

    /// The state of throttling, made at the first record of it.
    fn throttling(&mut self) -> &mut Throttling {
        self.throttling.get_or_insert_default()
    }

    /// Throttles a cgroup on `cpu`, and the tasks that are queued there with it.
    fn throttle(&mut self, group: CgroupId, cpu: Cpu) {
        let limits = self.throttling().limits(group, cpu);
        limits.count = limits.count.saturating_add(1);
        limits.is_known = true;
        if limits.count > 1 || self.throttling().by_task {
            return;
        }
        let Some(throttling) = &self.throttling else { return };
        let is_of_group = |task: &&Task| throttling.throttled_group(task, cpu) == Some(group);
        let waiting: Vec<Slot> = self.waiting(cpu).filter(is_of_group).map(|task| task.id().slot).collect();
        for slot in waiting {
            self.enter(slot, TaskState::Throttled(cpu), self.now);
        }
    }

    /// Removes a limit that throttled a cgroup on `cpu`.
    fn unthrottle(&mut self, group: CgroupId, cpu: Cpu) {
        let is_from_start = !self.any_loss;
        let throttling = self.throttling();
        let limits = throttling.limits(group, cpu);
        if limits.count == 0 {
            // The throttling had lasted since the start. After a loss its beginning can be among the missing events.
            if is_from_start && !limits.is_known {
                throttling.discovered.push((group, cpu));
            }
            return;
        }
        limits.count -= 1;
        if limits.count == 0 {
            throttling.set_about(cpu, None);
            self.release(group, cpu, true);
        }
    }

    /// Returns the throttled tasks of a cgroup on `cpu` to its queue. `seen`: a record shows the end.
    fn release(&mut self, group: CgroupId, cpu: Cpu, seen: bool) {
        let Some(throttling) = &self.throttling else { return };
        let is_of_group = |task: &&Task| throttling.groups.get(&task.pid) == Some(&group);
        let throttled: Vec<Slot> = self.throttled(cpu).filter(is_of_group).map(|task| task.id().slot).collect();
        for slot in throttled {
            self.change(slot, TaskState::Waiting(cpu), self.now, seen, seen);
        }
    }

    /// Throttles or releases a task that does not run, after it joined another cgroup.
    fn settle_throttling(&mut self, pid: Pid) {
        let Some(slot) = self.tasks.find(pid) else { return };
        let (Some(task), Some(throttling)) = (self.tasks.at(slot), &self.throttling) else { return };
        match task.state {
            TaskState::Waiting(cpu) if !throttling.by_task && throttling.throttled_group(task, cpu).is_some() => {
                self.enter(slot, TaskState::Throttled(cpu), self.now);
            }
            TaskState::Throttled(cpu) if throttling.throttled_group(task, cpu).is_none() => {
                self.enter(slot, TaskState::Waiting(cpu), self.now);
            }
            _ => {}
        }
    }

    /// Throttles the task in `slot`, which has joined the queue of `cpu` after being in `before` since `since`, if its
    /// cgroup is throttled there.
    #[cold]
    #[inline(never)]
    pub(super) fn hold_back(&mut self, slot: Slot, cpu: Cpu, before: TaskState, since: Ts) {
        let (Some(task), Some(throttling)) = (self.tasks.at(slot), &self.throttling) else { return };
        if throttling.throttled_group(task, cpu).is_none() {
            return;
        }
        let is_taken = match before {
            _ if !throttling.by_task => true,
            // The record is of the run that ends here.
            TaskState::Running(on) => {
                let about = throttling.about.get(on.index()).copied().flatten();
                about.is_some_and(|(pid, at)| pid == task.pid && at >= since)
            }
            TaskState::Throttled(_) => true,
            // At the start it is not known whether the task has returned to user mode since: most have.
            TaskState::Unknown => self.now == self.start,
            _ => false,
        };
        if is_taken {
            let begins = task.begun;
            self.change(slot, TaskState::Throttled(cpu), self.now, begins, begins);
        }
    }

    /// Ends the throttling of the task in `slot` on `cpu`, since it is in another state from now on.
    #[cold]
    #[inline(never)]
    pub(super) fn leave_throttled(&mut self, slot: Slot, cpu: Cpu, state: TaskState) {
        let Some(throttling) = self.throttling.as_mut() else { return };
        self.tasks.leave(throttling.queue(cpu), slot);
        let TaskState::Running(on) = state else { return };
        let Some(task) = self.tasks.at(slot) else { return };
        // A task that is taken from the queue one by one can still be on its way out of the kernel.
        let Some(group) = throttling.throttled_group(task, cpu).filter(|_| on == cpu && !throttling.by_task) else {
            return;
        };
        // The task runs all the same: the end of throttling was not seen.
        // Ends that follow are no discovery: the pass would be made again for them, and end here once more.
        *throttling.limits(group, cpu) = Limits { count: 0, is_known: true };
        self.repair(EventIssue::UnseenUnthrottle);
        self.release(group, cpu, false);
    }

    /// Adds the task in `slot` to the throttled tasks of `cpu`.
    pub(super) fn join_throttled(&mut self, slot: Slot, cpu: Cpu) {
        self.cpu(cpu);
        let queue = self.throttling.get_or_insert_default().queue(cpu);
        self.tasks.join(queue, slot);
    }

    /// Forgets all throttling until it next begins, since events of some CPU are missing, and any CPU can have changed
    /// the throttling of another.
    pub(super) fn lose_throttling(&mut self, ts: Ts) {
        let Some(throttling) = self.throttling.as_mut() else { return };
        throttling.limits.values_mut().for_each(|limits| limits.count = 0);
        throttling.about.clear();
        for cpu in (0..throttling.queues.len() as u32).map(Cpu) {
            self.forget_throttled(cpu, ts);
        }
    }

    /// Makes the throttled tasks of `cpu` unknown, since they may be anywhere.
    pub(super) fn forget_throttled(&mut self, cpu: Cpu, ts: Ts) {
        let head = |state: &SchedState| state.throttling.as_ref().and_then(|throttling| throttling.queued(cpu).head());
        while let Some(slot) = head(self) {
            self.turn_out(slot, TaskState::Unknown, ts);
        }
    }
}

#[cfg(test)]
mod tests;
