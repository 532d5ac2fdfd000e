//! The choice of the next task, preemption, moves and steals.

use super::agenda::Due;
use super::machine::Place;
use super::order::{FAIR, Order};
use super::{Engine, GRANULARITY, WEIGHT, idle_task};
use crate::model::{JoinIndex, MoveKind, TaskIndex};
use sched::topology::Distance;
use sched::{Cpu, EventKind, PrevState};

impl Engine<'_, '_> {
    /// The running task of `cpu` leaves it; the next one follows.
    pub(super) fn switch_out(&mut self, cpu: Cpu, state: PrevState) {
        let Some(prev) = self.machine.running(cpu) else { return };
        if !state.is_runnable() {
            self.machine.tasks[prev as usize].place = Place::Away;
        }
        match self.next(cpu) {
            Some(task) => self.switch(cpu, state, Some(task)),
            None => match self.steal(cpu) {
                Some((task, 0)) => self.switch(cpu, state, Some(task)),
                Some((_, takes)) => {
                    self.switch(cpu, state, None);
                    self.switch_later(cpu, takes);
                }
                None => self.switch(cpu, state, None),
            },
        }
    }

    /// The idle CPU switches to a task of its queue, if it has one.
    pub(super) fn leave_idle(&mut self, cpu: Cpu) {
        if self.machine.running(cpu).is_none()
            && let Some(task) = self.next(cpu)
        {
            self.switch(cpu, PrevState::RUNNABLE, Some(task));
            self.advance(cpu);
        }
    }

    /// Switches to `next`, or to the idle task. The next one is taken out of its queue.
    fn switch(&mut self, cpu: Cpu, state: PrevState, next: Option<TaskIndex>) {
        let prev = self.machine.running(cpu);
        if let Some(prev) = prev {
            self.machine.tasks[prev as usize].ran_until = self.now;
        }
        let [from, to] = [prev, next].map(|task| task.map_or_else(|| idle_task(cpu), |task| self.named(task)));
        if let Some(task) = next {
            self.leave_queue(task);
            self.machine.list_anew(task);
            self.machine.tasks[task as usize].place = Place::Running(cpu);
            self.machine.tasks[task as usize].cpu = cpu;
        }
        self.emit(cpu, 0, EventKind::Switch { prev: from, state, next: to });
        let virtual_ns = next.map(|task| &self.machine.tasks[task as usize]).filter(|task| task.rank == FAIR);
        let virtual_ns = virtual_ns.map_or(0, |task| task.virtual_ns);
        let here = &mut self.machine.cpus[cpu.index()];
        here.current = next;
        here.turn += 1;
        self.busy = self.busy + u32::from(next.is_some()) - u32::from(prev.is_some());
        (here.reacting, here.has_slice) = (false, false);
        (here.since, here.run_from) = (self.now, self.now);
        here.virtual_ns = here.virtual_ns.max(virtual_ns);
        if next.is_some() {
            here.followed += 1;
            self.expect_tick();
        }
        self.machine.refresh(cpu);
    }

    fn leave_queue(&mut self, task: TaskIndex) {
        if let Place::Queued(cpu) = self.machine.tasks[task as usize].place {
            self.machine.unqueue(task, cpu);
        }
    }

    /// The task that `cpu` runs next.
    fn next(&mut self, cpu: Cpu) -> Option<TaskIndex> {
        if self.follows {
            return self.next_of_trace(cpu);
        }
        if let Some(task) = self.policy.choose(cpu, &self.machine) {
            if self.machine.tasks[task as usize].place != Place::Queued(cpu) {
                self.take_over(task, cpu);
            }
            return Some(task);
        }
        self.machine.first(cpu)
    }

    /// The next run of the trace on `cpu`, if its task waits there or is to be pulled now.
    fn next_of_trace(&mut self, cpu: Cpu) -> Option<TaskIndex> {
        let followed = self.machine.cpus[cpu.index()].followed;
        let task = *self.machine.model.cpus[cpu.index()].runs.get(followed)?;
        let puller = self.puller(task);
        match self.machine.tasks[task as usize].place {
            // One that another CPU pulls is here no more at the run of the trace, which is a later one of its runs.
            Place::Queued(on) if on == cpu => Some(task).filter(|_| puller.is_none_or(|puller| puller == cpu)),
            Place::Queued(_) if puller == Some(cpu) => {
                self.take_over(task, cpu);
                Some(task)
            }
            _ => None,
        }
    }

    /// The CPU that pulls the task on the way to idle, if that is the last move that the trace has for the task's wait.
    fn puller(&self, task: TaskIndex) -> Option<Cpu> {
        let model = self.machine.model;
        let (first, last) = model.joins[self.machine.tasks[task as usize].join as usize].moves;
        let latest = (last > first).then(|| model.moves.get(last as usize - 1)).flatten();
        latest.filter(|to| to.kind == MoveKind::NewIdle).map(|to| to.dest)
    }

    /// Moves a waiting task to the queue of `cpu`.
    pub(super) fn take_over(&mut self, task: TaskIndex, cpu: Cpu) {
        let Place::Queued(orig) = self.machine.tasks[task as usize].place else { return };
        let named = self.named(task);
        self.leave_queue(task);
        let [from, to] = [orig, cpu].map(|cpu| self.machine.cpus[cpu.index()].virtual_ns);
        let sim = &mut self.machine.tasks[task as usize];
        (sim.place, sim.cpu) = (Place::Queued(cpu), cpu);
        sim.virtual_ns = (sim.virtual_ns + to).saturating_sub(from);
        self.machine.list_anew(task);
        self.machine.queue_up(task, cpu);
        self.emit(cpu, 0, EventKind::Migrate { task: named, orig, dest: cpu });
    }

    /// A CPU that would go idle takes a task of another one, if the balancer of the trace or the policy has it do so; with the time until that runs.
    fn steal(&mut self, cpu: Cpu) -> Option<(TaskIndex, u64)> {
        if self.follows {
            return None;
        }
        if let Some(task) = self.pulled_going_idle(cpu) {
            self.take_over(task, cpu);
            return Some((task, self.options.costs.steal));
        }
        let task = self.policy.steal(cpu, &self.machine)?;
        let Place::Queued(orig) = self.machine.tasks[task as usize].place else { return None };
        self.charge(task, orig, cpu);
        self.take_over(task, cpu);
        self.run.steals += 1;
        Some((task, self.policy.steal_takes(&self.options.costs)))
    }

    /// The next run of a task is longer by a migration of a policy.
    pub(super) fn charge(&mut self, task: TaskIndex, from: Cpu, to: Cpu) {
        let costs = &self.options.costs;
        let is_far = self.machine.distance(to, from) > Distance::Node;
        let cost = if is_far { costs.node_migration } else { costs.migration };
        // A task that was preempted has the rest of a run; another one begins its next run with this.
        self.machine.tasks[task as usize].left += cost;
    }

    fn switch_later(&mut self, cpu: Cpu, after: u64) {
        let here = &mut self.machine.cpus[cpu.index()];
        here.reacting = true;
        let turn = here.turn;
        self.agenda.add(self.now + after as i64, Due::Switch { cpu, turn });
    }

    /// A task has joined the queue of `cpu`, or the start has come: an idle CPU switches to it after a while, a busy one may be
    /// preempted.
    pub(super) fn react(&mut self, cpu: Cpu, joined: Option<TaskIndex>) {
        if let Some(task) = joined
            && self.follows
        {
            self.pull_at_once(task);
        }
        let here = &self.machine.cpus[cpu.index()];
        if here.current.is_some() {
            if let Some(task) = joined {
                self.challenge(cpu, task);
            }
            return;
        }
        if here.reacting || here.queue.is_empty() {
            return;
        }
        let first = match self.follows {
            true => self.machine.model.cpus[cpu.index()].runs.get(here.followed).copied(),
            false => joined.or_else(|| here.queue.tasks().next()),
        };
        let is_here = |task: &TaskIndex| self.machine.tasks[*task as usize].place == Place::Queued(cpu);
        let is_pulled_away = |task: TaskIndex| self.follows && self.puller(task).is_some_and(|puller| puller != cpu);
        let Some(task) = first.filter(is_here).filter(|task| !is_pulled_away(*task)) else { return };
        let recorded = self.machine.model.joins[self.machine.tasks[task as usize].join as usize].dispatch;
        match recorded.unwrap_or(self.machine.model.taken.dispatch_ns.0) {
            0 => self.leave_idle(cpu),
            delay => self.switch_later(cpu, delay),
        }
    }

    /// A CPU that idles since its next task of the trace had not joined any queue yet takes that task now, if it pulls it.
    fn pull_at_once(&mut self, task: TaskIndex) {
        let (first, last) = self.machine.model.joins[self.machine.tasks[task as usize].join as usize].moves;
        if last == first {
            return;
        }
        let dest = self.machine.model.moves[last as usize - 1].dest;
        let there = &self.machine.cpus[dest.index()];
        let is_next = self.machine.model.cpus[dest.index()].runs.get(there.followed) == Some(&task);
        if is_next && there.current.is_none() && self.machine.tasks[task as usize].place != Place::Queued(dest) {
            self.leave_idle(dest);
        }
    }

    /// The running task of a busy CPU is preempted if the new one comes before it.
    fn challenge(&mut self, cpu: Cpu, task: TaskIndex) {
        if self.follows {
            return;
        }
        let Some(current) = self.machine.running(cpu) else { return };
        self.account(cpu);
        let [new, old] = [task, current].map(|task| &self.machine.tasks[task as usize]);
        let by_rank = new.rank < old.rank;
        let granularity = self.slice().0 / GRANULARITY * WEIGHT / new.weight;
        let is_fair = self.machine.order == Order::Fair && new.rank == FAIR && old.rank == FAIR;
        if by_rank || (is_fair && new.virtual_ns + granularity < old.virtual_ns) {
            self.preempt(cpu);
        } else {
            self.expect_slice(cpu);
        }
    }

    /// Notes the end of the running task's time slice, while another task waits.
    pub(super) fn expect_slice(&mut self, cpu: Cpu) {
        let slice = self.slice().0 as i64;
        let here = &mut self.machine.cpus[cpu.index()];
        let is_fair = here.current.is_some_and(|task| self.machine.tasks[task as usize].rank == FAIR);
        if here.has_slice || !is_fair || self.machine.order != Order::Fair || self.follows {
            return;
        }
        here.has_slice = true;
        let (at, turn) = ((here.run_from + slice).max(self.now), here.turn);
        self.agenda.add(at, Due::SliceEnds { cpu, turn });
    }

    /// The time slice of the running task is used up.
    pub(super) fn slice_ends(&mut self, cpu: Cpu) {
        self.account(cpu);
        self.machine.cpus[cpu.index()].has_slice = false;
        let (Some(current), Some(first)) = (self.machine.running(cpu), self.machine.first(cpu)) else { return };
        let [own, first] = [current, first].map(|task| &self.machine.tasks[task as usize]);
        if first.rank < FAIR || first.virtual_ns < own.virtual_ns {
            self.preempt(cpu);
        } else {
            self.machine.cpus[cpu.index()].run_from = self.now;
            self.expect_slice(cpu);
        }
    }

    /// The running task goes back to its queue, and the first of that runs.
    fn preempt(&mut self, cpu: Cpu) {
        self.account(cpu);
        let Some(task) = self.machine.running(cpu) else { return };
        self.requeue(cpu, task, cpu);
        match self.next(cpu) {
            Some(next) if next == task => {
                self.leave_queue(task);
                self.machine.list_anew(task);
                self.machine.tasks[task as usize].place = Place::Running(cpu);
                self.machine.cpus[cpu.index()].run_from = self.now;
                self.expect_slice(cpu);
            }
            Some(next) => {
                self.switch(cpu, PrevState::RUNNABLE, Some(next));
                self.advance(cpu);
            }
            None => {}
        }
    }

    /// Puts the running task into a queue, from which its rest is run later.
    fn requeue(&mut self, cpu: Cpu, task: TaskIndex, on: Cpu) {
        let sim = &mut self.machine.tasks[task as usize];
        (sim.place, sim.joined) = (Place::Queued(on), self.now);
        (sim.joins, sim.moved, sim.cpu) = (sim.joins + 1, 0, cpu);
        self.machine.queue_up(task, on);
    }

    /// The running task comes to a preemption of the trace.
    pub(super) fn preempted_in_trace(&mut self, cpu: Cpu, join: JoinIndex) {
        let Some(task) = self.machine.running(cpu) else { return };
        let recorded = self.machine.model.joins[join as usize];
        self.machine.tasks[task as usize].allowed = recorded.allowed;
        if self.follows {
            self.enqueue(task, cpu, join);
            self.pull_at_once(task);
            return self.switch_out(cpu, PrevState::RUNNABLE);
        }
        // A stopper moved the task: it goes on there, such as after an exec.
        let model = self.machine.model;
        let moves = &model.moves[recorded.moves.0 as usize..recorded.moves.1 as usize];
        let is_stopper = |kind: MoveKind| match kind {
            MoveKind::Stopper => true,
            MoveKind::Active => !self.policy.replaces(kind),
            _ => false,
        };
        let moved = moves.iter().find(|to| is_stopper(to.kind)).map(|to| to.dest).filter(|dest| *dest != cpu);
        let moved = moved.filter(|dest| self.keeps_balancing && self.machine.may_use(task, *dest));
        // The task may not use this CPU any more.
        let banned = || {
            let other = (!self.machine.may_use(task, cpu)).then(|| self.usable(task, recorded.cpu, recorded.cpu));
            other.filter(|dest| *dest != cpu && self.machine.may_use(task, *dest))
        };
        if let Some(dest) = moved.or_else(banned) {
            self.push(task, cpu, dest);
        }
    }

    /// A stopper moves the running task of `cpu`, at once: its own time does not count.
    pub(super) fn push(&mut self, task: TaskIndex, cpu: Cpu, dest: Cpu) {
        // It must not be chosen here again.
        self.requeue(cpu, task, cpu);
        self.machine.unqueue(task, cpu);
        self.switch_out(cpu, PrevState::RUNNABLE);
        self.take_over(task, dest);
        self.react(dest, Some(task));
    }

    /// A waiting task moves as the trace's balancer moved it.
    pub(super) fn move_recorded(&mut self, task: TaskIndex) {
        let sim = &self.machine.tasks[task as usize];
        let Place::Queued(on) = sim.place else { return };
        let (first, last) = self.machine.model.joins[sim.join as usize].moves;
        let since = (self.now - sim.joined) as u64;
        let moves = &self.machine.model.moves[first as usize..last as usize];
        let moved = sim.moved as usize;
        // The moves of a join are in the order of time.
        let Some(rest) = moves.get(moved..) else { return };
        let at = rest.partition_point(|to| to.after < since);
        let Some(dest) = rest.get(at).filter(|to| to.after == since).map(|to| to.dest) else { return };
        // A balancer moves tasks to CPUs that have less to do.
        let load = |cpu: Cpu| self.machine.queue_length(cpu) + usize::from(self.machine.running(cpu).is_some());
        let is_apt = || self.machine.may_use(task, dest) && load(dest) < load(on);
        if dest != on && (self.follows || is_apt()) {
            self.machine.tasks[task as usize].moved = (moved + at) as u32 + 1;
            self.take_over(task, dest);
            self.react(dest, Some(task));
        }
    }
}
