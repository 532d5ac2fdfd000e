//! The programs of tasks: runs, wakeups, sleeps, forks.

use super::agenda::Due;
use super::machine::Place;
use super::order::rank;
use super::{Engine, Interrupts, Placement};
use crate::model::{Begin, JoinIndex, MoveKind, ProgramStep, SleepClass, SleepIndex, TaskIndex};
use sched::nice::weight_of;
use sched::{Cpu, EventKind, PrevState, Ts};

/// The time for which a task would spin that nothing ends, in nanoseconds: longer than any run.
const SPINNING: u64 = 1 << 62;

/// Maximum number of CPUs whose tasks go on within one another: one wakes the next at the same instant. Those behind follow on their own.
const MOST_NESTED: u32 = 64;

/// The flag of an event in a hard interrupt.
const IN_INTERRUPT: u8 = 0x08;

impl Engine<'_, '_> {
    /// Lets the running task of `cpu` go on with its program, and others after it, until one runs for some time or the CPU idles.
    pub(super) fn advance(&mut self, cpu: Cpu) {
        if self.depth == MOST_NESTED {
            return self.expect_end(cpu);
        }
        self.depth += 1;
        self.advance_nested(cpu);
        self.depth -= 1;
    }

    fn advance_nested(&mut self, cpu: Cpu) {
        while let Some(task) = self.machine.running(cpu) {
            if self.spend(0) {
                return;
            }
            if self.machine.tasks[task as usize].left > 0 {
                return self.expect_end(cpu);
            }
            let sim = &mut self.machine.tasks[task as usize];
            let step = self.machine.model.tasks[task as usize].steps.get(sim.next as usize).copied();
            sim.next += 1;
            match step {
                Some(ProgramStep::Run(ns)) => self.machine.tasks[task as usize].left = ns,
                Some(step) => self.take(cpu, task, step),
                // The trace has no more of its program.
                None => self.switch_out(cpu, PrevState::asleep(1)),
            }
        }
    }

    fn expect_end(&mut self, cpu: Cpu) {
        let here = &mut self.machine.cpus[cpu.index()];
        here.ends += 1;
        let (since, nth, waits) = (here.since, here.ends, !here.queue.is_empty());
        let left = here.current.map_or(0, |task| self.machine.tasks[task as usize].left);
        self.agenda.add(since.saturating_add(left as i64), Due::RunEnds { cpu, nth });
        if waits {
            self.expect_slice(cpu);
        }
    }

    /// Takes a step that needs no time.
    fn take(&mut self, cpu: Cpu, task: TaskIndex, step: ProgramStep) {
        let pid = self.machine.model.tasks[task as usize].pid;
        match step {
            ProgramStep::Wake(sleep) => self.wake(sleep, cpu, 0),
            ProgramStep::Fork(child) => {
                let new = &self.machine.model.tasks[child as usize];
                let (parent, child_pid, child_comm) = (pid, new.pid, new.comm);
                self.emit(cpu, 0, EventKind::Fork { parent, child: child_pid, child_comm });
                self.be_born(child, cpu);
            }
            ProgramStep::Preempted(join) => self.preempted_in_trace(cpu, join),
            ProgramStep::Sleep(sleep) => self.sleep(cpu, task, sleep),
            ProgramStep::Meet(meeting) => self.meet(task, meeting),
            ProgramStep::Exec(comm) => {
                self.machine.tasks[task as usize].comm = comm;
                self.emit(cpu, 0, EventKind::Exec { pid, old_pid: pid, program: comm });
            }
            ProgramStep::Rename(after) => {
                let before = std::mem::replace(&mut self.machine.tasks[task as usize].comm, after);
                self.emit(cpu, 0, EventKind::Rename { pid, before, after });
            }
            ProgramStep::Priority(prio) => {
                let sim = &mut self.machine.tasks[task as usize];
                (sim.prio, sim.weight, sim.rank) = (prio, weight_of(prio), rank(prio, sim.comm));
            }
            ProgramStep::Exit => self.exit(cpu, task),
            ProgramStep::Die => self.switch_out(cpu, PrevState::DEAD),
            ProgramStep::Run(_) | ProgramStep::Nothing => {}
        }
    }

    fn exit(&mut self, cpu: Cpu, task: TaskIndex) {
        let model = self.machine.model;
        self.emit(cpu, 0, EventKind::Exit { pid: model.tasks[task as usize].pid });
        if model.root == Some(task) {
            self.run.exit = Some(Ts(self.now));
            let rest = model.exit.map_or(0, |exit| model.end.since(exit).0);
            self.end = self.now.saturating_add(rest as i64);
        }
    }

    /// The running task comes to a meeting, and spins until the others have come.
    fn meet(&mut self, task: TaskIndex, meeting: u32) {
        self.absent[meeting as usize] -= 1;
        if self.absent[meeting as usize] > 0 {
            let sim = &mut self.machine.tasks[task as usize];
            (sim.left, sim.meeting) = (SPINNING, Some(meeting));
            return;
        }
        let model = self.machine.model;
        for other in &model.meetings[meeting as usize] {
            if self.machine.tasks[*other as usize].meeting.take().is_none() {
                continue;
            }
            if let Place::Running(cpu) = self.machine.tasks[*other as usize].place {
                self.account(cpu);
                self.machine.tasks[*other as usize].left = 0;
                self.expect_end(cpu);
            }
            self.machine.tasks[*other as usize].left = 0;
        }
    }

    /// The running task comes to a sleep of its program.
    fn sleep(&mut self, cpu: Cpu, task: TaskIndex, index: SleepIndex) {
        let sleep = &self.machine.model.sleeps[index as usize];
        // Where the trace's order is followed, each run of it begins with a switch.
        let is_woken = self.delivered[index as usize] && !sleep.announced && !self.follows;
        if is_woken || self.has_expired(index) {
            self.machine.tasks[task as usize].join = sleep.join;
            return;
        }
        let raw = sleep.raw;
        self.machine.tasks[task as usize].place = Place::Away;
        self.fall_asleep(task, index);
        self.switch_out(cpu, PrevState::asleep(raw));
    }

    /// Whether the instant at which a sleep would end has passed, for those that keep it.
    fn has_expired(&self, index: SleepIndex) -> bool {
        let sleep = &self.machine.model.sleeps[index as usize];
        !self.follows
            && sleep.ends
            && self.keeps_instant(sleep.class)
            && sleep.start.0 + (sleep.length as i64) < self.now
    }

    fn keeps_instant(&self, class: SleepClass) -> bool {
        match class {
            SleepClass::AbsoluteTimer => true,
            SleepClass::Interrupt | SleepClass::EitherTimer => self.options.interrupts == Interrupts::KeepInstant,
            _ => false,
        }
    }

    /// The task sleeps from now on; its CPU has not switched yet.
    pub(super) fn fall_asleep(&mut self, task: TaskIndex, index: SleepIndex) {
        let sleep = &self.machine.model.sleeps[index as usize];
        let sim = &mut self.machine.tasks[task as usize];
        (sim.place, sim.sleep) = (Place::Away, Some(index));
        if sleep.class.is_by_task() {
            if self.delivered[index as usize] {
                let waker = sim.cpu;
                self.agenda.add(self.now + sleep.placing as i64, Due::Queue { sleep: index, waker });
            }
        } else if sleep.ends {
            let at = match self.keeps_instant(sleep.class) {
                true => (sleep.start.0 + sleep.length as i64).max(self.now),
                false => self.now + sleep.length as i64,
            };
            self.agenda.add(at, Due::Interrupt { sleep: index });
        }
    }

    /// A step of the running task of `cpu` ends a sleep, or will when it begins.
    fn wake(&mut self, index: SleepIndex, cpu: Cpu, flags: u8) {
        let sleep = &self.machine.model.sleeps[index as usize];
        if !sleep.class.is_by_task() {
            return;
        }
        self.delivered[index as usize] = true;
        if self.machine.tasks[sleep.task as usize].sleep == Some(index) {
            self.announce(index, cpu, flags);
        }
    }

    fn announce(&mut self, index: SleepIndex, cpu: Cpu, flags: u8) {
        let sleep = &self.machine.model.sleeps[index as usize];
        let (task, placing) = (self.named(sleep.task), sleep.placing);
        let target = self.machine.tasks[sleep.task as usize].cpu;
        self.emit(cpu, flags, EventKind::Waking { task, target });
        match placing {
            0 => self.finish_wakeup(index, cpu),
            _ => self.agenda.add(self.now + placing as i64, Due::Queue { sleep: index, waker: cpu }),
        }
    }

    /// An interrupt ends a sleep, or the trace does not show how it ends.
    pub(super) fn interrupt(&mut self, index: SleepIndex) {
        let sleep = &self.machine.model.sleeps[index as usize];
        match sleep.class {
            SleepClass::Unknown | SleepClass::Throttled => self.finish_wakeup(index, sleep.waker),
            _ => self.announce(index, sleep.waker, IN_INTERRUPT),
        }
    }

    /// The task of a sleep joins a queue.
    pub(super) fn finish_wakeup(&mut self, index: SleepIndex, waker: Cpu) {
        let model = self.machine.model;
        let sleep = &model.sleeps[index as usize];
        self.machine.tasks[sleep.task as usize].sleep = None;
        self.put(sleep.task, waker, sleep.join, false);
    }

    /// A new task joins a queue; `parent` is the CPU of its parent.
    pub(super) fn be_born(&mut self, task: TaskIndex, parent: Cpu) {
        if let Begin::Forked(join) | Begin::At(_, join) = self.machine.model.tasks[task as usize].begin {
            self.put(task, parent, join, true);
        }
    }

    /// Places a task that is woken or born. One that runs or waits already, such as a task that a damaged trace has born twice, stays where
    /// it is: it would be in a queue while it runs, and be switched to for ever.
    fn put(&mut self, task: TaskIndex, waker: Cpu, join: JoinIndex, is_new: bool) {
        if self.machine.tasks[task as usize].place != Place::Away {
            return;
        }
        let recorded = self.machine.model.joins[join as usize];
        self.machine.tasks[task as usize].allowed = recorded.allowed;
        let previous = self.machine.tasks[task as usize].cpu;
        let cpu = if self.follows {
            recorded.cpu
        } else {
            let placement = Placement { task, previous, waker, recorded, is_new };
            let cpu = self.policy.place(&placement, &self.machine);
            self.usable(task, cpu, recorded.cpu)
        };
        let named = self.named(task);
        if is_new {
            self.emit(waker, 0, EventKind::WakeupNew { task: named, target: cpu });
        } else {
            if cpu != previous {
                self.emit(waker, 0, EventKind::Migrate { task: named, orig: previous, dest: cpu });
            }
            self.emit(cpu, 0, EventKind::Wakeup { task: named, target: cpu });
        }
        let least = self.machine.cpus[cpu.index()].virtual_ns.saturating_sub(self.slice().0 / 2);
        let origin = self.machine.cpus[previous.index()].virtual_ns;
        let sim = &mut self.machine.tasks[task as usize];
        if cpu != previous {
            sim.virtual_ns = (sim.virtual_ns + self.machine.cpus[cpu.index()].virtual_ns).saturating_sub(origin);
        }
        sim.virtual_ns = sim.virtual_ns.max(least);
        self.enqueue(task, cpu, join);
        self.react(cpu, Some(task));
    }

    /// The CPU that a policy chose, if the task may use that; else that of the trace, or any one.
    pub(super) fn usable(&self, task: TaskIndex, chosen: Cpu, recorded: Cpu) -> Cpu {
        let others = || self.machine.nearest(recorded).map(|(_, cpu)| cpu);
        let mut cpus = [chosen, recorded].into_iter().chain(others());
        let allowed = cpus.find(|cpu| self.machine.may_use(task, *cpu));
        // A task may be bound to a CPU that went offline.
        allowed.or_else(|| others().next()).unwrap_or(recorded)
    }

    /// Puts a task into the queue of `cpu`, with the moves of the trace to come.
    pub(super) fn enqueue(&mut self, task: TaskIndex, cpu: Cpu, join: JoinIndex) {
        let model = self.machine.model;
        let recorded = &model.joins[join as usize];
        let sim = &mut self.machine.tasks[task as usize];
        (sim.place, sim.cpu, sim.join, sim.joined) = (Place::Queued(cpu), cpu, join, self.now);
        (sim.joins, sim.moved) = (sim.joins + 1, 0);
        sim.allowed = recorded.allowed;
        let joins = sim.joins;
        self.machine.list_anew(task);
        self.machine.queue_up(task, cpu);
        let (first, last) = recorded.moves;
        if self.follows || self.keeps_balancing {
            for at in first..last {
                let to = &model.moves[at as usize];
                // Pulls to CPUs that go idle or idle happen at their rates, or as such a CPU comes to that run of the trace.
                let goes_on = match to.kind {
                    MoveKind::NewIdle => false,
                    MoveKind::Idle => self.follows,
                    MoveKind::Busy | MoveKind::Active => self.follows || !self.policy.replaces(to.kind),
                    MoveKind::Stopper | MoveKind::Other => true,
                };
                if goes_on {
                    self.agenda.add(self.now + to.after as i64, Due::Move { task, joins });
                }
            }
        }
    }
}
