//! The migrations of a kernel's balancers, each in the context and between the events that it has in a kernel.

use super::{World, task};
use sched::{Cause, Cpu, EventKind, Pid, PrevState, TaskRef};

/// The `common_flags` of an event with interrupts off.
pub(super) const IRQS_OFF: u8 = 0x01;
/// The `common_flags` of an event in a softirq, with interrupts off.
const SOFTIRQ: u8 = 0x11;

/// Returns the PID of the stopper of a CPU.
pub(super) fn stopper(cpu: usize) -> i32 {
    10_000 + cpu as i32
}

/// Whether this is the PID of a simulated CPU's stopper.
pub fn is_stopper(pid: i32) -> bool {
    pid >= 10_000
}

impl World {
    /// Balances once, by one of the mechanisms of a kernel.
    pub(super) fn balance_like_a_kernel(&mut self) {
        match self.rng.below(8) {
            0 | 1 => self.new_idle(),
            2 => self.softirq(),
            3 => self.stop(None),
            4 => self.stop(Some(Cause::Exec)),
            5 => self.stop(Some(Cause::NumaMove)),
            6 => self.swap(),
            _ => self.real_time(),
        }
    }

    /// Returns a queued task that may leave `from`.
    fn victim(&mut self, from: usize) -> Option<i32> {
        let free: Vec<i32> = self.state.queues[from].iter().copied().filter(|p| !self.bound.contains(p)).collect();
        self.rng.pick(&free).copied()
    }

    /// Returns two different CPUs.
    fn pair(&mut self) -> Option<(usize, usize)> {
        let (from, to) = (self.cpu(), self.cpu());
        (from != to).then_some((from, to))
    }

    /// Migrates a queued task; the event is recorded on CPU `on`.
    pub(super) fn moves(&mut self, on: usize, moved: TaskRef, from: usize, to: usize, flags: u8, cause: Cause) {
        let pid = moved.pid.0;
        self.state.queues[from].retain(|p| *p != pid);
        self.state.queues[to].push(pid);
        self.flags = flags;
        self.cause = Some(cause);
        let kind = EventKind::Migrate { task: moved, orig: Cpu(from as u32), dest: Cpu(to as u32) };
        self.emit(on, self.state.current[on], kind);
        self.flags = 0;
    }

    /// A CPU whose task is about to sleep pulls tasks from another one.
    fn new_idle(&mut self) {
        let Some((from, to)) = self.pair() else { return };
        let prev = self.state.current[to];
        if prev == 0 || !self.state.queues[to].is_empty() {
            return;
        }
        let wanted = 1 + self.rng.below(3);
        let mut pulled = 0;
        // Since 6.12 a sleeping task may still be queued.
        if self.rng.below(4) == 0 {
            pulled += usize::from(self.moves_sleeper(to, to, IRQS_OFF, Cause::NewIdleSleeper));
        }
        while pulled < wanted
            && let Some(pid) = self.victim(from)
        {
            self.moves(to, task(pid), from, to, IRQS_OFF, Cause::NewIdle);
            // Other events may stand between the migrations and the switch.
            if self.rng.below(3) == 0 {
                self.emit(to, prev, EventKind::Other { id: 999 });
            }
            pulled += 1;
        }
        if pulled > 0 {
            self.asleep.insert(prev, to as u32);
            self.switch(to, PrevState::asleep(1), false);
        }
    }

    /// Migrates a sleeping task of a third CPU, if there is one; `on` does it.
    pub(super) fn moves_sleeper(&mut self, on: usize, to: usize, flags: u8, cause: Cause) -> bool {
        let free = |(pid, last): (&i32, &u32)| {
            (![to, on].contains(&(*last as usize)) && !self.bound.contains(pid)).then_some(*pid)
        };
        let sleepers: Vec<i32> = self.asleep.iter().filter_map(free).collect();
        let Some(&pid) = self.rng.pick(&sleepers) else { return false };
        let from = self.asleep.insert(pid, to as u32).unwrap_or(0);
        (self.flags, self.cause) = (flags, Some(cause));
        let kind = EventKind::Migrate { task: task(pid), orig: Cpu(from), dest: Cpu(to as u32) };
        self.emit(on, self.state.current[on], kind);
        self.flags = 0;
        true
    }

    /// Migrates a sleeping task in a softirq of `to`, or of a third CPU.
    pub(super) fn softirq_moves_sleeper(&mut self, to: usize) {
        let on = if self.rng.below(3) == 0 { self.cpu() } else { to };
        let cause = match (on == to, self.state.current[to]) {
            (false, _) => Cause::NohzIdleSleeper,
            (true, 0) => Cause::IdleSleeper,
            (true, _) => Cause::PeriodicSleeper,
        };
        self.moves_sleeper(on, to, SOFTIRQ, cause);
    }

    /// Migrates a task in the softirq of one of the two CPUs, or of a third one; in that of the task's own CPU for an idle one.
    fn softirq(&mut self) {
        let Some((from, to)) = self.pair() else { return };
        let on = if self.rng.below(3) == 0 { self.cpu() } else { to };
        let Some(pid) = self.victim(from) else { return };
        let cause = match (on == to, self.state.current[to]) {
            (false, _) => Cause::NohzIdle,
            (true, 0) => Cause::Idle,
            (true, _) => Cause::Periodic,
        };
        self.moves(on, task(pid), from, to, SOFTIRQ, cause);
    }

    /// The stopper of a CPU preempts the running task, `then` migrates a task, and the CPU runs the next one.
    pub(super) fn with_stopper(&mut self, cpu: usize, then: impl FnOnce(&mut World)) {
        let prev = self.state.current[cpu];
        let waiting = std::mem::take(&mut self.state.queues[cpu]);
        self.state.queues[cpu] = [vec![stopper(cpu)], waiting].concat();
        self.emit(cpu, prev, EventKind::Wakeup { task: task(stopper(cpu)), target: Cpu(cpu as u32) });
        self.switch(cpu, PrevState::RUNNABLE, prev != 0);
        then(self);
        self.switch(cpu, PrevState::asleep(1), false);
    }

    /// Chooses the task that the stopper of `from` migrates, and wakes the stopper by the task itself, by a softirq, by
    /// another task, or by nothing that was recorded. Returns the task and the cause that holds without a `reason`.
    fn stopped(&mut self, from: usize, to: usize, reason: Option<Cause>) -> Option<(i32, Cause)> {
        let current = self.state.current[from];
        let by = match reason {
            Some(Cause::NumaMove) => 3,
            Some(_) => 3 * self.rng.below(2),
            None => self.rng.below(4),
        };
        let pid = match by {
            0 => Some(current).filter(|pid| *pid != 0 && !is_stopper(*pid) && !self.bound.contains(pid)),
            _ => self.victim(from),
        };
        // Another task balances for its own CPU, or changes affinities from any.
        let waker = if by == 2 && self.rng.below(2) == 0 { self.cpu() } else { to };
        let (pid, other) = (pid?, self.state.current[waker]);
        let is_another = other != 0 && other != pid;
        let waking = EventKind::Waking { task: task(stopper(from)), target: Cpu(from as u32) };
        match by {
            0 => self.emit(from, pid, waking),
            1 => {
                self.flags = SOFTIRQ;
                self.emit(to, other, waking);
                self.flags = 0;
            }
            2 if is_another => self.emit(waker, other, waking),
            _ => {}
        }
        let cause = match by {
            0 => Cause::Affinity,
            1 => Cause::Active,
            2 if is_another && waker == to => Cause::Active,
            2 if is_another => Cause::Affinity,
            _ => Cause::Stopper,
        };
        Some((pid, cause))
    }

    /// The stopper migrates a task: for active balance, for its affinity, for its exec, or for NUMA.
    fn stop(&mut self, reason: Option<Cause>) {
        let Some((from, to)) = self.pair() else { return };
        if reason == Some(Cause::Exec) && self.state.current[to] != 0 {
            return;
        }
        self.hurry = true;
        self.stop_on(from, to, reason);
        self.hurry = false;
    }

    fn stop_on(&mut self, from: usize, to: usize, reason: Option<Cause>) {
        let Some((pid, otherwise)) = self.stopped(from, to, reason) else { return };
        // The NUMA event that gives the reason precedes the migration, or follows soon.
        let early = self.rng.below(3) > 0;
        let (src, dst) = (Cpu(from as u32), Cpu(to as u32));
        let numa = EventKind::Numa { pid: Pid(pid), with: None, src, dst, nodes: None, stuck: false };
        if reason == Some(Cause::NumaMove) && early {
            self.emit(from, self.state.current[from], numa);
        }
        self.with_stopper(from, |world| {
            world.moves(from, task(pid), from, to, IRQS_OFF, reason.unwrap_or(otherwise));
        });
        if reason == Some(Cause::NumaMove) && !early {
            self.emit(from, self.state.current[from], numa);
        }
        if reason == Some(Cause::Exec) && self.state.queues[to].first() == Some(&pid) {
            self.switch(to, PrevState::RUNNABLE, false);
            self.emit(
                to,
                pid,
                EventKind::Exec { pid: Pid(pid), old_pid: Pid(pid), program: sched::Comm::new(b"program") },
            );
        } else if reason == Some(Cause::Exec) {
            // No exec follows, so the migration looks like any other by a stopper.
            let place = self.causes.iter().rposition(Option::is_some);
            place.into_iter().for_each(|place| self.causes[place] = Some(otherwise));
        }
    }

    /// Two queued tasks change places; the stopper of the first CPU migrates both.
    fn swap(&mut self) {
        let Some((one, other)) = self.pair() else { return };
        let (Some(a), Some(b)) = (self.victim(one), self.victim(other)) else { return };
        let (src, dst) = (Cpu(one as u32), Cpu(other as u32));
        let numa = EventKind::Numa { pid: Pid(a), with: Some(Pid(b)), src, dst, nodes: None, stuck: false };
        self.hurry = true;
        self.emit(one, self.state.current[one], numa);
        self.with_stopper(one, |world| {
            world.moves(one, task(a), one, other, IRQS_OFF, Cause::NumaSwap);
            world.moves(one, task(b), other, one, IRQS_OFF, Cause::NumaSwap);
        });
        self.hurry = false;
    }

    /// A task with a real-time priority is pushed or pulled.
    fn real_time(&mut self) {
        let Some((from, to)) = self.pair() else { return };
        let Some(pid) = self.victim(from) else { return };
        let on = if self.rng.below(2) == 0 { from } else { to };
        self.moves(on, TaskRef { prio: 40, ..task(pid) }, from, to, IRQS_OFF, Cause::RealTime);
    }
}

/// Returns the command name of the task with this PID.
pub(super) fn name_of(pid: i32) -> String {
    match pid {
        0 => "swapper".to_owned(),
        _ if is_stopper(pid) => format!("migration/{}", pid - 10_000),
        _ => format!("task{pid}"),
    }
}
