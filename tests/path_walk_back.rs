//! A second implementation of the critical path: it keeps all spans, and walks back through them recursively, by the definition.

use crate::path::Piece;
use path::SegmentKind;
use sched::{Analysis, Comm, Cpu, EventKind as Event, Pass, Pid, SchedEvent, SchedState, Span, TaskId, TaskState, Ts};
use std::collections::{BTreeMap, BTreeSet};

/// The task that was current at a waking, and how it is taken.
#[derive(Clone, Copy, PartialEq)]
struct Waker {
    task: TaskId,
    is_relay: bool,
    is_softirq: bool,
}

/// Everything that a walk back needs: the spans of each task, its wakings, and its fork.
#[derive(Default)]
pub(crate) struct Everything {
    spans: BTreeMap<TaskId, Vec<Span>>,
    /// The waking that was valid when a wait began, and its waker if that was a task.
    wakings: BTreeMap<(TaskId, Ts), (Ts, Option<Waker>)>,
    announced: BTreeMap<(TaskId, Ts), Option<Waker>>,
    /// The number of wakeups by softirqs, by the task on top of which they ran and the woken task.
    softirqs: BTreeMap<(TaskId, TaskId), usize>,
    /// What raised the softirqs of each CPU that have not run: a task that sends packets, and anything else.
    raised: BTreeMap<Cpu, (bool, bool)>,
    /// The starts of uninterruptible sleeps.
    deep: BTreeSet<(TaskId, Ts)>,
    /// The time of a fork, and the parent.
    forks: BTreeMap<Pid, (Ts, Option<TaskId>)>,
    births: BTreeMap<TaskId, (Ts, Option<TaskId>)>,
    /// The task of the exit of each PID.
    pub(crate) exits: BTreeMap<Pid, (Ts, TaskId)>,
    pub(crate) root: Option<Pid>,
    start: Ts,
    /// Some state was not seen to end: the walk does not know how to go on before that.
    pub(crate) has_gaps: bool,
    /// The stretches between two events during which some CPU idled with an empty run queue.
    idle: Vec<(Ts, Ts)>,
    last: Ts,
}

impl Everything {
    fn emitter(event: &SchedEvent, state: &SchedState) -> Option<TaskId> {
        let task = state.running(event.cpu)?;
        (event.flags & 0x18 == 0 && task.pid == event.pid).then(|| task.id())
    }
}

impl Analysis for Everything {
    type Output = Everything;
    const COUNTS: bool = true;

    fn begin(&mut self, start: Ts, _: &SchedState) {
        (self.start, self.last) = (start, start);
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        if state.counts().idle_cpus() > 0 {
            self.idle.push((self.last, event.ts));
        }
        self.last = event.ts;
        match event.kind {
            Event::Fork { child, .. } => {
                self.forks.insert(child, (event.ts, Everything::emitter(event, state)));
            }
            Event::Exit { pid } => {
                if let Some(task) = state.task_of(pid) {
                    self.exits.insert(pid, (event.ts, task.id()));
                }
            }
            _ => {}
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.root = state.root();
        let raises = match event.kind {
            Event::Probe { probe: sched::probe::Probe::Raises { softirq }, .. } => Some(softirq),
            _ => None,
        };
        match raises {
            // A softirq that raises one passes its own origin on.
            Some(softirq) if event.flags & 0x18 != 0x10 => {
                let raised = self.raised.entry(event.cpu).or_default();
                match event.flags & 0x18 == 0 && [2, 3].contains(&softirq) {
                    true => raised.0 = true,
                    false => raised.1 = true,
                }
            }
            None if event.flags & 0x98 == 0 => drop(self.raised.remove(&event.cpu)),
            _ => {}
        }
        let raised = self.raised.get(&event.cpu).copied();
        if let Event::Waking { task, .. } = event.kind
            && let Some(task) = state.task_of(task.pid)
        {
            let current =
                state.running(event.cpu).filter(|current| current.pid == event.pid && current.id() != task.id());
            let is_relay = |comm: Comm| {
                let name = comm.to_string();
                ["irq/", "ktimers/", "ksoftirqd/", "rcu"].iter().any(|thread| name.starts_with(thread))
            };
            let is_of_kernel = |task: &sched::Task| task.kin.is_of_kernel(task.comm);
            let waker = current.filter(|current| match event.flags & 0x18 {
                0 => true,
                0x10 if raised == Some((true, false)) => true,
                0x10 if raised == Some((false, true)) => false,
                0x10 => !is_of_kernel(task) && !is_of_kernel(current),
                _ => false,
            });
            let is_softirq = event.flags & 0x18 != 0 && raised != Some((true, false));
            let waker = waker.map(|waker| Waker { task: waker.id(), is_relay: is_relay(waker.comm), is_softirq });
            self.announced.insert((task.id(), event.ts), waker);
            if let Some(waker) = waker.filter(|waker| waker.is_softirq) {
                *self.softirqs.entry((waker.task, task.id())).or_default() += 1;
            }
        }
        for (task, span) in state.turns() {
            if let (TaskState::Asleep(_), Event::Switch { state, .. }) = (span.next, event.kind)
                && state.raw & 2 != 0
            {
                self.deep.insert((task.id(), event.ts));
            }
            let is_known = span.ended || span.state == TaskState::Unknown || matches!(event.kind, Event::Exec { .. });
            self.has_gaps |= !is_known;
            if let TaskState::Waiting(_) = span.next
                && let Some(waking) = task.waking
            {
                let waker = self.announced.get(&(task.id(), waking.at)).copied().flatten();
                self.wakings.insert((task.id(), event.ts), (waking.at, waker));
            }
            if task.born == Some(event.ts)
                && span.state == TaskState::Unknown
                && let Some(fork) = self.forks.remove(&task.pid)
            {
                self.births.insert(task.id(), fork);
            }
            self.spans.entry(span.task).or_default().push(*span);
        }
    }

    fn finish(mut self, _: Ts, state: &SchedState) -> Everything {
        for span in state.spans() {
            self.spans.entry(span.task).or_default().push(*span);
        }
        self
    }
}

/// The states of a walk back, each as it is found.
#[derive(Default)]
struct Walked {
    found: Vec<Piece>,
    depth: usize,
    deepest: usize,
}

impl Walked {
    fn put(&mut self, kind: SegmentKind, pid: Pid, cpu: Option<Cpu>, (from, to): (Ts, Ts)) {
        if from < to {
            self.found.push((kind, pid.0, cpu.map(|cpu| cpu.0), from.0, to.0));
        }
    }
}

impl Everything {
    /// The time of the queued pieces during which some CPU idled with an empty run queue.
    pub(crate) fn beside_idle(&self, pieces: &[Piece]) -> u64 {
        let queued = pieces.iter().filter(|piece| piece.0 == SegmentKind::Queued);
        let within = |piece: &Piece| {
            let both = |(from, to): &(Ts, Ts)| to.0.min(piece.4) - from.0.max(piece.3);
            self.idle.iter().map(both).filter(|ns| *ns > 0).sum::<i64>()
        };
        queued.map(within).sum::<i64>().unsigned_abs()
    }

    /// Walks back from a task at a time, by the definition: recursively.
    pub(crate) fn walk(&self, task: TaskId, at: Ts) -> (Vec<Piece>, usize) {
        let mut walked = Walked::default();
        self.explain(task, (self.start, at), None, &mut walked);
        walked.found.reverse();
        (walked.found, walked.deepest)
    }

    /// The task that ended a sleep, if it is one.
    fn waker_of(&self, task: TaskId, sleep: Ts, waker: Option<Waker>) -> Option<Waker> {
        waker.filter(|waker| {
            let number = |pair| self.softirqs.get(&pair).copied().unwrap_or(0);
            let are_mutual = number((waker.task, task)) >= 2 && number((task, waker.task)) >= 2;
            !waker.is_softirq || are_mutual && !self.deep.contains(&(task, sleep))
        })
    }

    /// Explains what a task did between two instants, the last first. `relayed`: the task that slept until the interrupt whose thread this is.
    fn explain(&self, mut task: TaskId, (bound, mut at): (Ts, Ts), relayed: Option<Pid>, walked: &mut Walked) {
        walked.deepest = walked.deepest.max(walked.depth);
        let mut pid = None;
        while at > bound {
            let spans = &self.spans[&task];
            // The span that leads to this instant; where several do, the latest that has a length.
            let Some(span) = spans.iter().rfind(|span| span.start < at && span.end >= at) else { break };
            pid = Some(span.pid);
            let start = span.start.max(bound);
            let whole = (start, at);
            match span.state {
                TaskState::Running(cpu) => walked.put(SegmentKind::Running, span.pid, Some(cpu), whole),
                TaskState::Waiting(cpu) => walked.put(SegmentKind::Queued, span.pid, Some(cpu), whole),
                TaskState::Throttled(cpu) => walked.put(SegmentKind::Throttled, span.pid, Some(cpu), whole),
                TaskState::Asleep(_) if matches!(span.next, TaskState::Waiting(_)) => {
                    // A walk is never with a task that sleeps at that instant: it comes from the end of the sleep.
                    assert_eq!(span.end, at);
                    let sleeper = relayed.filter(|_| self.wakings.contains_key(&(task, at)));
                    let asleep_from = span.start.max(self.start);
                    match self.wakings.get(&(task, at)) {
                        None => walked.put(SegmentKind::Unknown, span.pid, None, whole),
                        Some((waking, _)) if *waking <= asleep_from => {
                            walked.put(SegmentKind::Waking, span.pid, None, whole);
                        }
                        Some((waking, waker)) => {
                            walked.put(SegmentKind::Waking, span.pid, None, ((*waking).max(bound), at));
                            match (sleeper, self.waker_of(task, span.start, *waker)) {
                                _ if *waking <= bound => {}
                                (Some(sleeper), _) => {
                                    walked.put(SegmentKind::Sleeping, sleeper, None, (bound, *waking));
                                    return;
                                }
                                (None, Some(waker)) => {
                                    walked.depth += 1;
                                    let relayed = waker.is_relay.then_some(span.pid);
                                    self.explain(waker.task, (start, *waking), relayed, walked);
                                    walked.depth -= 1;
                                }
                                (None, None) => walked.put(SegmentKind::Sleeping, span.pid, None, (start, *waking)),
                            }
                        }
                    }
                }
                _ => walked.put(SegmentKind::Unknown, span.pid, None, whole),
            }
            at = start;
            if let Some((forked, parent)) = self.births.get(&task).copied()
                && spans.iter().all(|span| span.start >= at)
            {
                let Some(parent) = parent else { break };
                walked.put(SegmentKind::Waking, span.pid, None, (forked.max(bound), at));
                (task, at) = (parent, forked.max(bound));
            }
        }
        if at > bound {
            let pid = pid.or(walked.found.last().map(|piece| Pid(piece.1))).unwrap_or(Pid::IDLE);
            walked.put(SegmentKind::Unknown, pid, None, (bound, at));
        }
    }
}

pub(crate) fn everything(events: &[SchedEvent]) -> Everything {
    Pass::over(events).run(Everything::default).unwrap_or_else(|never| match never {}).output
}
