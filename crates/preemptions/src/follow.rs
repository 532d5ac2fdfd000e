//! The events of a trace, one by one: requests begin, change and end.

use crate::case::EndedRequest;
use crate::cpu::{AskedBy, Asker, Between, Closed, CpuTrack, Ending, Kind, LastQueued, Pending};
use crate::{Preemptions, Request};
use membership::RowKey;
use sched::kthread::is_kernel_thread;
use sched::nice::weight_of;
use sched::probe::{Probe, VirtualTime};
use sched::span::Current;
use sched::{Comm, Cpu, Dur, EventKind, Pid, PrevState, SchedEvent, SchedState, StateClass, TaskRef, TaskState, Ts};

/// The flag of a lazy request in `common_flags`.
const LAZY: u8 = 0x02;
/// The flag of an immediate request in `common_flags`.
const NOW: u8 = 0x04;
/// The number of an immediate request's flag, where no record shows a smaller one: no kernel has a larger.
const LARGEST_NOW: u8 = 4;

/// A switch that ends a request: the task that leaves, with the way in which it does, and the one that comes.
#[derive(Clone, Copy)]
struct SwitchEnd {
    prev: TaskRef,
    state: PrevState,
    next: TaskRef,
}

impl Preemptions<'_> {
    /// Follows an event that was applied to `state`.
    pub(crate) fn take(&mut self, event: &SchedEvent, state: &SchedState) {
        let cpu = event.cpu;
        match event.kind {
            EventKind::Switch { prev, state: how, next } => {
                self.answered(event, None);
                self.switched(event, SwitchEnd { prev, state: how, next }, state);
            }
            EventKind::Lost { .. } | EventKind::Offline => {
                let lost = std::mem::take(self.track(cpu)).pending.is_some();
                self.apart.lost += u64::from(lost && self.start.is_some());
            }
            // Behind a switch it still has the context of the task that left.
            EventKind::Stack { .. } => {}
            EventKind::Probe { probe, .. } => {
                // Records of a switch come behind it, and have the context of the task that left.
                self.flags(event, state);
                self.probed(event, probe, state);
            }
            EventKind::Wakeup { task, target } => {
                let asked = asked(Asker::Wakeup, event, task);
                self.answered(event, Some((target, asked)));
                self.track(target).candidate = Some(asked);
                self.flags(event, state);
            }
            EventKind::WakeupNew { task, target } => {
                let asked = asked(Asker::Fork, event, task);
                self.answered(event, Some((target, asked)));
                self.flags(event, state);
                self.queues(event, target, asked);
            }
            EventKind::Migrate { task, dest, .. } => {
                self.answered(event, None);
                self.flags(event, state);
                self.queues(event, dest, asked(Asker::Balance, event, task));
            }
            _ => {
                self.answered(event, None);
                self.flags(event, state);
            }
        }
        self.waits(state);
    }

    pub(crate) fn track(&mut self, cpu: Cpu) -> &mut CpuTrack {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, CpuTrack::default());
        }
        &mut self.cpus[cpu.index()]
    }

    /// Counts the requests that are open at the end of the window.
    pub(crate) fn leave_open(&mut self, state: &SchedState) {
        for cpu in state.observed().collect::<Vec<_>>() {
            let pending = self.track(cpu).pending;
            let counted = pending.is_some_and(|pending| self.counts(pending.pid, cpu, state));
            self.apart.open += u64::from(counted);
        }
    }

    /// Keeps the instants at which tasks began to wait.
    fn waits(&mut self, state: &SchedState) {
        for (task, span) in state.turns() {
            match (span.state, span.next) {
                (TaskState::Waiting(_) | TaskState::Throttled(_), TaskState::Waiting(_)) => {}
                (_, TaskState::Waiting(_)) => self.queued.insert(task.id(), span.end),
                (_, TaskState::Running(_) | TaskState::Throttled(_)) => {}
                _ => _ = self.queued.take(task.id()),
            }
        }
    }

    /// An event of the CPU shows which wakeup made the request that it recorded before.
    fn answered(&mut self, event: &SchedEvent, queued: Option<(Cpu, AskedBy)>) {
        let track = self.track(event.cpu);
        track.queued = None;
        let Some(cpu) = track.asks.take() else { return };
        if let Some((_, asked)) = queued.filter(|(target, _)| *target == cpu)
            && let Some(pending) = &mut self.track(cpu).pending
        {
            pending.asked = Some(asked);
        }
    }

    /// A CPU has queued a task on another, or on itself, and may make a request then.
    fn queues(&mut self, event: &SchedEvent, target: Cpu, asked: AskedBy) {
        self.track(target).candidate = Some(asked);
        self.track(event.cpu).queued = Some(LastQueued { target, context: context(event), asked });
    }

    /// The flags of an event in the context of the running task show its request, or that it has none.
    fn flags(&mut self, event: &SchedEvent, state: &SchedState) {
        let Current::Task(pid) = state.current(event.cpu) else { return };
        if event.pid != pid {
            return;
        }
        let lazy = self.options.has_lazy && event.flags & LAZY != 0;
        let (now, ts, by_probe) = (event.flags & NOW != 0, event.ts, self.options.by_probe);
        let track = self.track(event.cpu);
        if !lazy && !now {
            // The event had read its flags, and then the interrupt came that made the request.
            if track.pending.is_some_and(|pending| pending.seen.unwrap_or(pending.at.latest) >= ts) {
                return;
            }
            if by_probe {
                if let Some(pending) = track.pending.as_mut().filter(|pending| pending.cleared.is_none())
                    && let Some(earliest) = pending.seen
                {
                    pending.cleared = Some(Between { earliest, latest: ts });
                }
                track.clear = Some(ts);
                return;
            }
            let ended = track.pending.take_if(|pending| pending.seen.is_some());
            track.candidate = track.candidate.filter(|asked| asked.at >= ts && asked.asker != Asker::Wakeup);
            track.clear = Some(ts);
            if let Some(pending) = ended {
                let earliest = pending.seen.unwrap_or(pending.at.latest);
                self.kept(event.cpu, &pending, Between { earliest, latest: ts }, state);
            }
            return;
        }
        match &mut track.pending {
            Some(pending) => {
                if now && pending.kind == Kind::Lazy && pending.promoted.is_none() && !by_probe {
                    let earliest = pending.seen.unwrap_or(pending.at.latest);
                    pending.promoted = Some(Between { earliest, latest: ts });
                }
                (pending.seen, pending.cleared) = (Some(ts), None);
            }
            None if by_probe => {}
            None => {
                let Some(earliest) = track.clear else { return };
                let at = Between { earliest, latest: ts };
                let kind = if lazy { Kind::Lazy } else { Kind::Immediate };
                let promoted = (lazy && now).then_some(at);
                let (seen, asked) = (Some(ts), track.candidate);
                track.pending = Some(Pending { pid, at, kind, promoted, seen, asked, cleared: None });
            }
        }
    }

    fn probed(&mut self, event: &SchedEvent, probe: Probe, state: &SchedState) {
        match probe {
            Probe::Reschedules { pid, cpu, flag } => self.requested(event, pid, cpu, flag, state),
            Probe::Picks { pid, entity, left_kind, left, .. } => {
                let closed = self.track(event.cpu).closed;
                if let (Some(closed), Some(left)) = (closed, left.numbers(left_kind)) {
                    self.request_left(closed, left.vruntime(), None);
                }
                if !pid.is_idle() {
                    let weight = entity.weight.map(std::num::NonZero::get);
                    let request = Request { vruntime: Some(entity.vruntime), deadline: entity.deadline.ns(), weight };
                    sched::limits::keep_of_pid(&mut self.picked, pid, request);
                }
            }
            Probe::Puts { pid, entity, .. } => {
                let closed = self.track(event.cpu).closed.filter(|closed| closed.pid == pid);
                if let Some(closed) = closed {
                    self.request_left(closed, entity.vruntime, entity.weight.map(std::num::NonZero::get));
                }
            }
            Probe::Contends { lock, begins } => self.locks.contends(event, lock, begins, self.start, state),
            _ => {}
        }
    }

    /// A record of the probe: the running task of a CPU is marked.
    fn requested(&mut self, event: &SchedEvent, pid: Pid, cpu: Cpu, flag: u8, state: &SchedState) {
        if !self.options.by_probe {
            return;
        }
        let now_flag = self.now_flag.map_or(LARGEST_NOW.min(flag), |least| least.min(flag));
        self.now_flag = Some(now_flag);
        if pid.is_idle() {
            self.apart.idle += u64::from(self.start.is_some() && self.options.cpus.has(cpu));
            return;
        }
        let kind = if flag > now_flag { Kind::Lazy } else { Kind::Immediate };
        let own = event.cpu == cpu;
        let at = Between::exactly(event.ts);
        let open = self.track(cpu).pending.take_if(|pending| pending.pid == pid);
        if let Some(mut pending) = open {
            // The record's own flags are those of before, on the same CPU.
            let is_open = !own || event.flags & LAZY != 0;
            let is_lazy = pending.kind == Kind::Lazy && pending.promoted.is_none() && pending.cleared.is_none();
            if is_lazy && kind == Kind::Immediate && is_open {
                pending.promoted = Some(at);
                self.track(cpu).pending = Some(pending);
                return;
            }
            let earliest = pending.seen.unwrap_or(pending.at.latest);
            let at = pending.cleared.unwrap_or(Between { earliest, latest: event.ts });
            self.kept(cpu, &pending, at, state);
        }
        let queued =
            self.track(event.cpu).queued.filter(|queued| (queued.target, queued.context) == (cpu, context(event)));
        let queued = queued.map(|queued| queued.asked);
        let nothing = |asker| AskedBy { asker, at: event.ts, pid: Pid::IDLE, comm: Comm::EMPTY };
        let asked =
            queued.unwrap_or(nothing(if own && event.in_hard_interrupt() { Asker::Tick } else { Asker::Other }));
        let seen = own.then_some(event.ts);
        let asked = Some(asked);
        self.track(cpu).pending = Some(Pending { pid, at, kind, promoted: None, seen, asked, cleared: None });
        self.track(event.cpu).asks = Some(cpu);
    }

    /// A CPU switches: whatever was asked of the task that leaves is done.
    fn switched(&mut self, event: &SchedEvent, end: SwitchEnd, state: &SchedState) {
        let (cpu, ts) = (event.cpu, event.ts);
        let before = std::mem::take(self.track(cpu));
        self.track(cpu).clear = Some(ts);
        let prev = end.prev;
        let mut pending = before.pending.filter(|pending| pending.pid == prev.pid);
        let ending = match end.state.class {
            StateClass::Preempted => Ending::InKernel,
            StateClass::Runnable if is_kernel_thread(prev.comm) => Ending::OwnPoint,
            StateClass::Runnable => Ending::ReturnToUser,
            StateClass::Asleep => Ending::Slept,
            StateClass::Dead => Ending::Exited,
        };
        if prev.pid.is_idle() {
            return;
        }
        if ending == Ending::InKernel {
            self.locks.preempted(event, prev, end.next);
            // Only an immediate request is followed there.
            if let Some(lazy) = pending.as_mut().filter(|pending| pending.kind == Kind::Lazy) {
                let earliest = lazy.seen.unwrap_or(lazy.at.latest).max(lazy.at.latest);
                lazy.promoted.get_or_insert(Between { earliest, latest: ts });
            }
        } else if let Some(pending) = pending.take_if(|pending| pending.cleared.is_some()) {
            let at = pending.cleared.unwrap_or(Between::exactly(ts));
            self.kept(cpu, &pending, at, state);
        }
        let pending = pending.or_else(|| {
            // Only the kernel itself switches a task out there: a request preceded, which no event shows.
            let earliest = before.clear.filter(|_| !self.options.by_probe && ending == Ending::InKernel)?;
            let at = Between { earliest, latest: ts };
            let kind = if self.options.has_lazy { Kind::Unknown } else { Kind::Immediate };
            let asked = before.candidate;
            Some(Pending { pid: prev.pid, at, kind, promoted: None, seen: None, asked, cleared: None })
        });
        let counted = self.counts(prev.pid, cpu, state);
        let Some(pending) = pending else {
            self.apart.unasked += u64::from(counted && ending.is_preemption() && before.clear.is_some());
            return;
        };
        let row = counted.then(|| self.ended(cpu, &pending, Between::exactly(ts), ending, &end, state));
        if counted && ending.is_preemption() {
            self.track(cpu).closed = Some(Closed { pid: prev.pid, prio: prev.prio, row, at: ts });
        }
    }

    /// Whether a request to this task on this CPU counts.
    fn counts(&self, pid: Pid, cpu: Cpu, state: &SchedState) -> bool {
        let chosen = || {
            let Some(chosen) = self.options.tasks else { return true };
            let left = state.turns().find(|(task, _)| task.pid == pid).map(|(task, _)| task);
            left.or_else(|| state.task_of(pid)).is_some_and(|task| chosen(task, state))
        };
        self.start.is_some() && self.options.cpus.has(cpu) && chosen()
    }

    /// The scheduler picked the same task again.
    fn kept(&mut self, cpu: Cpu, pending: &Pending, at: Between, state: &SchedState) {
        if !self.counts(pending.pid, cpu, state) {
            return;
        }
        let comm = state.task_of(pending.pid).map_or(Comm::EMPTY, |task| task.comm);
        let task = TaskRef { pid: pending.pid, prio: 120, comm };
        let end = SwitchEnd { prev: task, state: PrevState::RUNNABLE, next: task };
        self.ended(cpu, pending, at, Ending::Kept, &end, state);
    }

    /// Counts a request that has ended, and returns its row.
    fn ended(
        &mut self,
        cpu: Cpu,
        pending: &Pending,
        at: Between,
        ending: Ending,
        end: &SwitchEnd,
        state: &SchedState,
    ) -> usize {
        let lengths = pending.at.until(at);
        let asker = pending.asked.map_or(Asker::Unseen, |asked| asked.asker);
        self.ways.add(pending.kind, pending.promoted.is_some(), ending, lengths);
        self.askers[asker as usize].add(lengths[1]);
        let row = self.rows.place(self.options.key(end.prev, cpu, state), RowKey::Rest);
        self.rows.at(row).add(pending.kind, ending, lengths);
        let waited = ending.is_preemption().then(|| self.wait_of(end.next, at.latest, state)).flatten();
        if let Some(wait) = waited {
            self.profited.add(wait);
            self.profits.of(self.options.key(end.next, cpu, state), RowKey::Rest).waited.add(wait);
        }
        let lazy = (pending.kind == Kind::Lazy).then(|| pending.at.until(pending.promoted.unwrap_or(at)));
        let is_long = lazy.is_some_and(|[least, _]| least > self.options.longest_lazy());
        let request = EndedRequest { pending, at, ending, lengths, prev: end.prev, next: end.next, waited, lazy };
        self.cases.add(request.case(cpu, self.options.zero), is_long);
        row
    }

    /// The time for which the task that runs next had waited, if its beginning is known.
    fn wait_of(&self, next: TaskRef, now: Ts, state: &SchedState) -> Option<Dur> {
        let task = state.task_of(next.pid).filter(|_| !next.pid.is_idle())?;
        let queued = self.queued.get(task.id())?;
        Some(now.since(*queued))
    }

    /// The virtual time of a preempted task shows how much of its request it had left.
    fn request_left(&mut self, closed: Closed, vruntime: VirtualTime, weight: Option<u32>) {
        let Some(request) = self.picked.get(&closed.pid) else { return };
        // The task came to another queue meanwhile, as with its first autogroup, whose virtual time has nothing to do with that of the deadline.
        if request.vruntime.is_some_and(|picked| vruntime.since(picked) < 0) {
            return;
        }
        let weight = weight.or(request.weight).map_or_else(|| weight_of(closed.prio) << 10, u64::from);
        // Past its deadline the kernel has renewed the request.
        let Ok(left) = u64::try_from(request.deadline.wrapping_sub(vruntime.ns())) else {
            self.apart.renewed += 1;
            return;
        };
        let left = (u128::from(left) * u128::from(weight)) >> 20;
        let left = Dur(u64::try_from(left).unwrap_or(u64::MAX));
        self.left.add(left);
        if let Some(row) = closed.row {
            self.rows.at(row).left.add(left);
        }
        self.cases.left(closed.pid, closed.at, left);
    }
}

/// The context of an event: a task, a softirq or a hard interrupt.
fn context(event: &SchedEvent) -> u8 {
    event.flags & 0x18
}

fn asked(asker: Asker, event: &SchedEvent, task: TaskRef) -> AskedBy {
    AskedBy { asker, at: event.ts, pid: task.pid, comm: task.comm }
}
