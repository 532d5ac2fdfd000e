//! The walk back through the segments of all tasks (`docs/questions/path.md`).
//!
//! A task's sleep is explained by the task that ended it, back to the instant at which the sleep began; there the walk
//! returns to the sleeper. The returns form a stack. The task of each is asleep while the walk is with those above it:
//! the stack has at most one return for each task that is alive.

use crate::Until;
use crate::chain::{Chain, ChainNode, DROPPED, Link, NO_TASK, Segment, SegmentKind, Via};
use crate::mutual::MutualWakeups;
use sched::{Pid, QueuedTimes, Ts};

/// A path that was found.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// The segments, in the order of time.
    pub(crate) path: Vec<Segment>,
    /// The number of wakeups and forks by which the path passes from one task to another.
    pub(crate) handovers: u64,
    /// The greatest number of sleeps within which the walk was at an instant.
    pub(crate) depth: usize,
    /// Whether segments of the path were dropped.
    pub(crate) is_cut: bool,
}

/// The walk within one sleep, or that of the task at the end of the path.
#[derive(Clone, Copy, Debug)]
struct WalkLevel {
    /// The next segment on the way back.
    link: Link,
    /// The instant at which the walk returns: the start of the sleep, or of the window.
    bound: Ts,
    /// The reading of the time beside idle CPUs at that instant.
    reading: u64,
    /// The task that sleeps.
    sleeper: Option<Pid>,
    /// The task with which the walk is.
    pid: Pid,
    /// Whether that task passes a wakeup on, so that its own sleep is the sleeper's.
    is_relay: bool,
    /// Whether the path only possibly leads here.
    is_possible: bool,
}

struct Walk<'c> {
    chain: &'c Chain,
    mutual: &'c MutualWakeups,
    level: WalkLevel,
    /// The walks to return to, the innermost last.
    returns: Vec<WalkLevel>,
    /// The instant down to which the path is known.
    at: Ts,
    found: Walked,
}

impl Chain {
    /// Walks back from the last instant of a task to the start of the window. The segments tile the time between.
    pub(crate) fn walk(&self, pid: Pid, until: Until, start: Ts, mutual: &MutualWakeups) -> Walked {
        let (sleeper, is_relay, is_possible) = (None, false, false);
        let level = WalkLevel { link: until.link, bound: start, reading: 0, sleeper, pid, is_relay, is_possible };
        let (returns, found) = (Vec::new(), Walked::default());
        let mut walk = Walk { chain: self, mutual, level, returns, at: until.at, found };
        while walk.goes_on() {
            walk.step();
        }
        walk.found.path.reverse();
        walk.found
    }
}

/// The kinds of a queued segment that may be a part of the wait whose kinds it has: beside idle CPUs at most as long as CPUs idled in it, the
/// others with their shares of the whole.
fn part(segment: &Segment) -> QueuedTimes {
    let (whole, length) = (segment.kinds, segment.length());
    if segment.kind != SegmentKind::Queued || length >= whole.total() {
        return whole;
    }
    let beside_idle_ns = whole.beside_idle_ns.min(segment.beside_idle_ns).min(length);
    let others = QueuedTimes { beside_idle_ns: 0, ..whole }.in_proportion(length - beside_idle_ns);
    QueuedTimes { beside_idle_ns, ..others }
}

impl Walk<'_> {
    /// Returns to the sleepers whose sleep begins here; `false` at the start of the window.
    fn goes_on(&mut self) -> bool {
        while self.at <= self.level.bound {
            let Some(level) = self.returns.pop() else { return false };
            self.level = level;
        }
        true
    }

    fn step(&mut self) {
        let level = self.level;
        let Some(node) = self.chain.node(level.link).copied() else {
            self.found.is_cut |= level.link == DROPPED;
            return self.put(Segment::of(SegmentKind::Unknown, level.pid, (level.bound, self.at)));
        };
        let segment = node.segment;
        self.level.link = node.before;
        if segment.end_ns < self.at {
            // Not with a chain that is complete.
            self.level.link = level.link;
            let end = segment.end_ns.max(level.bound);
            return self.put(Segment::of(SegmentKind::Unknown, segment.pid, (end, self.at)));
        }
        if segment.start_ns >= self.at {
            return;
        }
        let is_asleep = segment.kind == SegmentKind::Sleeping;
        if let (true, true, Some(sleeper)) = (is_asleep, level.is_relay, level.sleeper) {
            // It waited for the interrupt that the sleeper waited for.
            return self.put(Segment::of(SegmentKind::Sleeping, sleeper, (level.bound, self.at)));
        }
        self.note_task(segment.pid);
        if is_asleep && self.is_explained(&node) {
            self.enter(&node);
        } else {
            self.put_part(&node);
        }
    }

    /// Notes the task of the next segment on the way back: the waker of a sleeper, or the parent of a child.
    fn note_task(&mut self, pid: Pid) {
        self.found.handovers += u64::from(self.level.pid != pid);
        self.level.pid = pid;
    }

    /// Whether a task ended a sleep, as far as the events show.
    fn is_explained(&self, sleep: &ChainNode) -> bool {
        let waker = || self.chain.node(sleep.by).map(|node| node.segment.pid);
        match sleep.via {
            Via::Task | Via::Relay => sleep.by != NO_TASK,
            // Data from a disk arrives in a softirq as well.
            Via::Possibly => {
                !sleep.is_deep && waker().is_some_and(|waker| self.mutual.are_mutual(waker, sleep.segment.pid))
            }
        }
    }

    /// Goes on with the task that ended a sleep, up to the start of that.
    fn enter(&mut self, sleep: &ChainNode) {
        let outer = self.level;
        let Segment { pid, start_ns, .. } = sleep.segment;
        let is_within = start_ns > outer.bound;
        // A sleep that is longer than the one around it needs no return.
        if is_within {
            self.returns.push(outer);
            self.found.depth = self.found.depth.max(self.returns.len());
        }
        self.level = WalkLevel {
            link: sleep.by,
            bound: start_ns.max(outer.bound),
            reading: if is_within { sleep.reading } else { outer.reading },
            sleeper: Some(pid),
            pid,
            is_relay: sleep.via == Via::Relay,
            is_possible: outer.is_possible || sleep.via == Via::Possibly,
        };
    }

    /// Adds the part of a segment that lies within the present sleep.
    fn put_part(&mut self, node: &ChainNode) {
        let WalkLevel { bound, reading, .. } = self.level;
        let mut segment = Segment { end_ns: self.at, ..node.segment };
        if segment.start_ns < bound {
            segment.behind_ns = segment.behind_ns.saturating_sub(bound.since(segment.start_ns).0);
            segment.start_ns = bound;
            if segment.kind == SegmentKind::Queued {
                segment.beside_idle_ns = segment.beside_idle_ns.min(node.reading.saturating_sub(reading));
            }
        }
        segment.behind_ns = segment.behind_ns.min(segment.length());
        segment.kinds = part(&segment);
        self.put(segment);
    }

    fn put(&mut self, segment: Segment) {
        self.at = segment.start_ns;
        let WalkLevel { sleeper, is_possible, .. } = self.level;
        // The sleep of a threaded interrupt is the sleeper's own.
        let sleeper = sleeper.filter(|sleeper| *sleeper != segment.pid);
        self.found.path.push(Segment { sleeper, is_possible, ..segment });
    }
}
