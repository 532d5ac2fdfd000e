//! The analysis: the waiting tasks of each CPU, and its occupant, from instant to instant.

use crate::Options;
use crate::parties::{By, Parties};
use crate::queue::{IdleQueue, IdlingLeft, QueueNow, QueuedVictim, Resumed};
use crate::report::{self, NeighboursReport};
use crate::sums::MatrixSums;
use membership::CgroupChange;
use sched::state::Task;
use sched::{Analysis, Cpu, Current, EventKind, PerTask, SchedEvent, SchedState, TaskId, TaskState, Ts};

/// The analysis of victims and culprits: an [`Analysis`] whose output is a [`NeighboursReport`].
pub struct Matrix<'o> {
    pub(crate) options: &'o Options<'o>,
    /// The window's start, once that is reached.
    pub(crate) start: Ts,
    pub(crate) parties: Parties<'o>,
    pub(crate) cpus: Vec<QueueNow>,
    /// The waiting and the throttled tasks that are counted. Each is counted once, as it joins a queue: a look at whole
    /// queues at every change would take quadratic time.
    pub(crate) queued: PerTask<QueuedVictim>,
    pub(crate) sums: MatrixSums,
    /// The CPUs that the latest event changed.
    touched: Vec<Cpu>,
    /// The CPU of the event that is being followed, if that is a switch away from a task.
    switched: Option<Cpu>,
    /// The beginning of a later piece of a pass.
    pub(crate) resumed: Option<Box<Resumed>>,
}

impl<'o> Matrix<'o> {
    /// Returns the analysis with the options of a measurement.
    pub fn new(options: &'o Options<'o>) -> Matrix<'o> {
        Matrix {
            options,
            parties: Parties::new(&options.cgroups),
            start: Ts::default(),
            cpus: Vec::new(),
            queued: PerTask::default(),
            sums: MatrixSums::default(),
            touched: Vec::new(),
            switched: None,
            resumed: None,
        }
    }

    /// Accounts for the time of `cpu` up to `ts`.
    pub(crate) fn settle(&mut self, cpu: Cpu, ts: Ts) {
        let Matrix { cpus, sums, .. } = self;
        let Some(now) = cpus.get_mut(cpu.index()) else { return };
        let ns = ts.since(now.since).0;
        now.since = now.since.max(ts);
        if ns == 0 {
            return;
        }
        match now.idling.as_mut().filter(|_| now.culprit == Parties::IDLE) {
            Some(idling) => {
                idling.ns = idling.ns.saturating_add(ns);
                for (victim, count) in &now.waiting {
                    let waited = idling.of(*victim);
                    *waited = waited.saturating_add(ns.saturating_mul(*count));
                }
            }
            None => now.waiting.iter().for_each(|(victim, count)| {
                sums.add_wait((*victim, now.culprit), ns.saturating_mul(*count));
            }),
        }
        for (victim, count) in &now.throttled {
            let sum = sums.throttled.entry(*victim).or_default();
            *sum = sum.saturating_add(ns.saturating_mul(*count));
        }
    }

    /// Looks at the occupant of `cpu` anew, and at its queue if the CPU has had no event before.
    fn look(&mut self, cpu: Cpu, ts: Ts, state: &SchedState) {
        if !self.options.cpus.has(cpu) {
            return;
        }
        let culprit = match state.current(cpu) {
            _ if state.handlers(cpu) > 0 => Parties::INTERRUPTS,
            Current::Idle => Parties::IDLE,
            Current::Unknown | Current::Offline => Parties::UNKNOWN,
            Current::Task(_) => match state.running(cpu) {
                Some(task) => self.parties.of(task, state, self.options),
                None => Parties::UNKNOWN,
            },
        };
        let now = self.queue(cpu, ts);
        now.culprit = culprit;
        let was_observed = std::mem::replace(&mut now.is_observed, state.is_observed(cpu));
        if !was_observed && state.is_observed(cpu) {
            state.waiting(cpu).for_each(|task| self.count(task, ts, state));
        }
        self.follow_idling(cpu, ts, state);
    }

    /// Begins the interval in which `cpu` idles beside its own waiting tasks, or ends it. Of a sched_ext scheduler no queue is known.
    fn follow_idling(&mut self, cpu: Cpu, ts: Ts, state: &SchedState) {
        let idles = state.current(cpu) == Current::Idle && state.queue_length(cpu) > 0;
        let goes_on = idles && state.is_observed(cpu) && !state.has_ext_queues();
        let is_unseen = self.switched == Some(cpu);
        let Some(now) = self.cpus.get_mut(cpu.index()) else { return };
        if !goes_on {
            let idling = now.idling.take();
            idling.into_iter().for_each(|idling| self.end_idling(cpu, idling, ts, is_unseen));
        } else if now.idling.is_none() {
            // At the start of the window the interval can have begun before.
            let queued = state.waiting(cpu).map(|task| task.since).min().unwrap_or(ts);
            let since = state.current_since(cpu).max(queued).min(ts);
            now.intervals += 1;
            now.idling = Some(IdleQueue { since, ns: 0, waited: Vec::new(), is_earlier: false });
        }
    }

    /// Adds the waiting in an interval of an idle CPU that ends.
    fn end_idling(&mut self, cpu: Cpu, idling: IdleQueue, ts: Ts, is_unseen: bool) {
        match self.resumed.as_mut().filter(|_| idling.is_earlier) {
            Some(resumed) => resumed.left.push(IdlingLeft::Ended { cpu, idling, ts, is_unseen }),
            None => self.sums.add_idling(&idling, ts, is_unseen),
        }
    }

    /// The queue of `cpu`, made at `ts` if there is none yet.
    fn queue(&mut self, cpu: Cpu, ts: Ts) -> &mut QueueNow {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize_with(cpu.index() + 1, || QueueNow { since: ts, ..QueueNow::default() });
        }
        &mut self.cpus[cpu.index()]
    }

    /// Counts a task where it is queued now, and no longer where it was. The time of both CPUs is accounted for.
    pub(crate) fn count(&mut self, task: &Task, ts: Ts, state: &SchedState) {
        let place = match task.state {
            // A task that is queued on a CPU without events may have run.
            TaskState::Waiting(cpu) if state.is_observed(cpu) => Some((cpu, false)),
            TaskState::Throttled(cpu) => Some((cpu, true)),
            _ => None,
        };
        let is_chosen = self.options.tasks.is_none_or(|chosen| chosen(task, state));
        let Some((cpu, throttled)) = place.filter(|(cpu, _)| is_chosen && self.options.cpus.has(*cpu)) else {
            return self.leave(task.id(), ts);
        };
        let victim = self.parties.of(task, state, self.options);
        let is_same = |queued: &QueuedVictim| (queued.cpu, queued.victim, queued.throttled) == (cpu, victim, throttled);
        if self.queued.get(task.id()).is_some_and(is_same) {
            return;
        }
        self.leave(task.id(), ts);
        let now = self.queue(cpu, ts);
        let joined = (now.intervals, now.idling.as_ref().map_or(0, |idling| idling.ns));
        let counts = now.of(throttled);
        match counts.iter_mut().find(|(other, _)| *other == victim) {
            Some((_, count)) => *count += 1,
            None => counts.push((victim, 1)),
        }
        self.queued.insert(task.id(), QueuedVictim { cpu, victim, throttled, joined });
    }

    /// Counts a task no longer. An interval of its idle CPU counts up to here for it.
    fn leave(&mut self, task: TaskId, ts: Ts) {
        let Some(QueuedVictim { cpu, victim, throttled, joined }) = self.queued.take(task) else { return };
        let was_queued = self.resumed.as_mut().is_some_and(|resumed| resumed.still_queued.take(task).is_some());
        let is_unseen = self.switched == Some(cpu);
        let Some(now) = self.cpus.get_mut(cpu.index()) else { return };
        if let Some(idling) = now.idling.as_mut().filter(|_| !throttled) {
            let before = if joined.0 == now.intervals { joined.1 } else { 0 };
            let ns = idling.ns.saturating_sub(before);
            let waited = idling.of(victim);
            *waited = waited.saturating_sub(ns);
            match self.resumed.as_mut().filter(|_| idling.is_earlier) {
                Some(resumed) => {
                    resumed.left.push(IdlingLeft::Left {
                        cpu,
                        task: was_queued.then_some(task),
                        victim,
                        ns,
                        ts,
                        is_unseen,
                    });
                }
                None => self.sums.add_wait((victim, idling.culprit(ts, is_unseen)), ns),
            }
        }
        let counts = now.of(throttled);
        if let Some(place) = counts.iter().position(|(other, _)| *other == victim) {
            counts[place].1 -= 1;
            if counts[place].1 == 0 {
                counts.swap_remove(place);
            }
        }
    }

    /// The next move between cgroups, if it is no later than `ts`, and rows are cgroups.
    fn next_move(&mut self, ts: Ts) -> Option<CgroupChange> {
        if self.options.by == By::Cgroup { self.parties.cgroups.next(ts) } else { None }
    }

    /// Follows the moves between cgroups up to `ts`.
    fn follow_cgroups(&mut self, ts: Ts, state: &SchedState) {
        while let Some(change) = self.next_move(ts) {
            let Some(task) = state.task_of(change.pid) else { continue };
            if let TaskState::Running(cpu) | TaskState::Waiting(cpu) | TaskState::Throttled(cpu) = task.state {
                self.settle(cpu, change.ts);
                self.count(task, change.ts, state);
                self.look(cpu, change.ts, state);
            }
        }
    }

    /// Follows an event that was applied.
    fn follow(&mut self, event: &SchedEvent, state: &SchedState) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.clear();
        let mut touch = |cpu: Cpu| {
            if !touched.contains(&cpu) {
                touched.push(cpu);
            }
        };
        state.cpu_spans().iter().for_each(|span| touch(span.cpu));
        for span in state.spans() {
            for of in [span.state, span.next] {
                if let TaskState::Waiting(cpu) | TaskState::Throttled(cpu) = of {
                    touch(cpu);
                }
            }
        }
        // An exec can make the running task one of the application.
        if matches!(event.kind, EventKind::Interrupt { .. } | EventKind::Lost { .. } | EventKind::Exec { .. }) {
            touch(event.cpu);
        }
        let is_of_task = matches!(event.kind, EventKind::Switch { prev, .. } if !prev.pid.is_idle());
        self.switched = Some(event.cpu).filter(|_| is_of_task);
        touched.iter().for_each(|cpu| self.settle(*cpu, event.ts));
        for span in state.spans() {
            match state.task(span.task) {
                Some(task) => self.count(task, event.ts, state),
                None => self.leave(span.task, event.ts),
            }
        }
        touched.iter().for_each(|cpu| self.look(*cpu, event.ts, state));
        (self.touched, self.switched) = (touched, None);
    }

    /// Counts the preemption that the event is, if it is one.
    fn count_preemption(&mut self, event: &SchedEvent, state: &SchedState) {
        let EventKind::Switch { next, .. } = event.kind else { return };
        if next.pid.is_idle() || !self.options.cpus.has(event.cpu) {
            return;
        }
        let preempted = state.turns().find(|(_, span)| {
            matches!((span.state, span.next), (TaskState::Running(from), TaskState::Waiting(to)) if from == to && from == event.cpu)
        });
        if let (Some((task, _)), Some(culprit)) = (preempted, state.running(event.cpu))
            && self.options.tasks.is_none_or(|chosen| chosen(task, state))
        {
            let victim = self.parties.of(task, state, self.options);
            let culprit = self.parties.of(culprit, state, self.options);
            self.sums.pairs.entry((victim, culprit)).or_default().preemptions += 1;
        }
    }

    /// Looks at all CPUs anew.
    pub(crate) fn look_at_all(&mut self, ts: Ts, state: &SchedState) {
        let cpus: Vec<Cpu> = state.observed().collect();
        for cpu in cpus {
            self.look(cpu, ts, state);
            state.waiting(cpu).chain(state.throttled(cpu)).for_each(|task| self.count(task, ts, state));
        }
    }
}

impl Analysis for Matrix<'_> {
    type Output = NeighboursReport;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.start = start;
        while self.next_move(start).is_some() {}
        self.look_at_all(start, state);
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        self.follow_cgroups(event.ts, state);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.follow(event, state);
        self.count_preemption(event, state);
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> NeighboursReport {
        for cpu in (0..self.cpus.len() as u32).map(Cpu) {
            self.settle(cpu, end);
            let idling = self.cpus[cpu.index()].idling.take();
            idling.into_iter().for_each(|idling| self.sums.add_idling(&idling, end, false));
        }
        report::build(self.options.by, (self.start, end), &self.parties, self.sums)
    }
}
