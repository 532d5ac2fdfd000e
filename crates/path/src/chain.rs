//! The segments of all tasks that can still be on the critical path.
//!
//! Each task has a chain of segments that ends where its present state began; a segment refers to the one before it, and
//! a sleep to the chain of the task that ended it, too. [`Chain::walk`] finds the path in them. The segments that no walk
//! can reach any more are dropped from time to time. A segment is always made after those that it refers to: one sweep
//! from the newest to the oldest finds those in use.

use sched::{Comm, Cpu, Pid, QueuedTimes, Ts};
use serde::Serialize;

/// The state of the task that a segment of the path belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SegmentKind {
    /// The task runs.
    Running,
    /// The task is runnable and waits in a run queue.
    Queued,
    /// A `sched_waking` has named the task, and it is not in a run queue yet.
    Waking,
    /// The task sleeps until an interrupt or the idle task wakes it.
    Sleeping,
    /// The trace does not determine it.
    Unknown,
    /// The task is runnable, and bandwidth control (`cpu.max`) keeps it from running.
    Throttled,
}

impl SegmentKind {
    /// Every state, in the order of their indices.
    pub const ALL: [SegmentKind; 6] = [
        SegmentKind::Running,
        SegmentKind::Queued,
        SegmentKind::Waking,
        SegmentKind::Sleeping,
        SegmentKind::Unknown,
        SegmentKind::Throttled,
    ];

    /// The word for the state.
    pub fn word(self) -> &'static str {
        match self {
            SegmentKind::Running => "running",
            SegmentKind::Queued => "queued",
            SegmentKind::Waking => "waking",
            SegmentKind::Sleeping => "sleeping",
            SegmentKind::Unknown => "unknown",
            SegmentKind::Throttled => "throttled",
        }
    }
}

/// A task on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfTask {
    /// The PID of the task.
    pub pid: Pid,
    /// The most recent command name of the task.
    pub command: Comm,
}

/// A segment of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Segment {
    /// The state of its task.
    pub kind: SegmentKind,
    /// The PID of the task.
    pub pid: Pid,
    /// The CPU of the task, or of its run queue; absent where the task sleeps or its state is unknown.
    pub cpu: Option<Cpu>,
    /// The start of the segment on the trace's clock, in nanoseconds.
    pub start_ns: Ts,
    /// The end of the segment on the trace's clock, in nanoseconds.
    pub end_ns: Ts,
    /// The part of it during which some CPU idled with an empty run queue, in nanoseconds; counted for queued segments.
    pub beside_idle_ns: u64,
    /// The time of a queued segment by kind.
    pub kinds: QueuedTimes,
    /// The task that ran on the CPU when a queued segment began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Pid>,
    /// The time from the start of a queued segment for which that task stayed on the CPU, in nanoseconds; zero where none ran. In a
    /// chain, `u64::MAX` if it stayed to the end.
    pub behind_ns: u64,
    /// The task whose sleep the segment explains; absent on the path of the task at the end itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleeper: Option<Pid>,
    /// Whether the path only possibly leads through this segment: a softirq ended the sleep that it explains, on top of this task.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_possible: bool,
}

impl Segment {
    /// The length of the segment in nanoseconds.
    pub fn length(&self) -> u64 {
        self.end_ns.since(self.start_ns).0
    }

    /// A segment without a CPU.
    pub(crate) fn of(kind: SegmentKind, pid: Pid, (start_ns, end_ns): (Ts, Ts)) -> Segment {
        Segment {
            kind,
            pid,
            cpu: None,
            start_ns,
            end_ns,
            beside_idle_ns: 0,
            kinds: QueuedTimes::default(),
            behind: None,
            behind_ns: 0,
            sleeper: None,
            is_possible: false,
        }
    }
}

/// The time of a task that does not leave its CPU in a segment of a chain.
pub(crate) const STAYS: u64 = u64::MAX;

/// A place in the chain, or one of [`NOTHING`], [`DROPPED`] and [`NO_TASK`].
pub(crate) type Link = u32;

/// The link that stands for no segment: nothing before is known.
pub(crate) const NOTHING: Link = Link::MAX;

/// The link to segments that were dropped: no walk reaches them, or there were too many.
pub(crate) const DROPPED: Link = Link::MAX - 1;

/// The link from a sleep that no task ended.
pub(crate) const NO_TASK: Link = Link::MAX - 2;

/// The place that a link leads to; nothing where it stands for none.
fn place_of(link: Link) -> Option<usize> {
    (link < NO_TASK).then_some(link as usize)
}

/// The way in which a task ended a sleep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Via {
    /// The task woke the sleeper.
    #[default]
    Task,
    /// The task is a threaded interrupt or the like, and passed a wakeup on.
    Relay,
    /// A softirq on top of the task woke the sleeper, possibly for the task.
    Possibly,
}

/// A segment in the chain, and what it refers to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainNode {
    pub(crate) segment: Segment,
    /// The segment before it: of the same task, or of its parent before a fork.
    pub(crate) before: Link,
    /// The chain of the task that ended a sleep, up to that instant; [`NO_TASK`] elsewhere.
    pub(crate) by: Link,
    /// The way in which that task ended the sleep.
    pub(crate) via: Via,
    /// Whether a sleep is an uninterruptible one.
    pub(crate) is_deep: bool,
    /// The reading of the time beside idle CPUs: at the start of a sleep, at the end of a wait.
    pub(crate) reading: u64,
}

impl ChainNode {
    /// A segment behind another, without a waker.
    pub(crate) fn new(segment: Segment, before: Link) -> ChainNode {
        ChainNode { segment, before, by: NO_TASK, via: Via::Task, is_deep: false, reading: 0 }
    }
}

/// The segments of all tasks.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    nodes: Vec<ChainNode>,
    /// The number of segments at which those in use are sought.
    full: usize,
    /// The maximum number of segments in use.
    most: usize,
    /// Segments in use were dropped.
    was_cut: bool,
    /// The number of events that have passed.
    events: u64,
    /// The number of segments that were added, those included that were dropped.
    added: usize,
}

/// The number of segments up to which nothing is dropped.
const LEAST: usize = 1 << 16;

/// The maximum number of segments in use, behind each event at which they are counted: about 120 MB, twice that while they are
/// sought.
pub(crate) const MOST: usize = 7 << 17;

/// The number of events from one count of the segments in use to the next. The segments that are dropped must not depend on
/// the division of a pass: most pieces have this number of events.
const COUNTED: u64 = 1 << 16;

/// The instant up to which a walk can go back along a link, where none goes along it.
const UNUSED: Ts = Ts::MAX;

impl Chain {
    pub(crate) fn new(most: usize) -> Chain {
        Chain { nodes: Vec::new(), full: LEAST.min(2 * most), most, was_cut: false, events: 0, added: 0 }
    }

    /// The number of events that have passed.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// The number of segments that were added.
    pub(crate) fn added(&self) -> usize {
        self.added
    }

    /// Takes note of this number of events.
    pub(crate) fn pass(&mut self, events: u64) {
        self.events += events;
    }

    /// Whether segments in use may be dropped behind the present event.
    fn counts_now(&self) -> bool {
        self.events.is_multiple_of(COUNTED)
    }

    /// Whether no segment in use would be dropped within a later piece, before its end.
    pub(crate) fn has_room(&self, later: &Chain) -> bool {
        let end = self.events + later.events;
        let counts_within = self.events / COUNTED != end.saturating_sub(1) / COUNTED;
        !later.was_cut && (!counts_within || self.nodes.len() + later.added <= self.most)
    }

    /// The segment to which a link leads.
    pub(crate) fn node(&self, link: Link) -> Option<&ChainNode> {
        self.nodes.get(place_of(link)?)
    }

    /// Adds a segment, whatever its length.
    pub(crate) fn put(&mut self, node: ChainNode) -> Link {
        self.nodes.push(node);
        self.added += 1;
        (self.nodes.len() - 1) as Link
    }

    /// Adds a place that stands for a path from elsewhere.
    pub(crate) fn place(&mut self) -> Link {
        self.put(ChainNode::new(Segment::of(SegmentKind::Unknown, Pid::IDLE, (Ts(0), Ts(0))), NOTHING))
    }

    /// Iterates over the segments, from the oldest one on.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, ChainNode)> {
        self.nodes.iter().copied().enumerate()
    }

    /// Adds a segment. One without length is left out.
    pub(crate) fn add(&mut self, node: ChainNode) -> Link {
        if node.segment.start_ns >= node.segment.end_ns {
            return node.before;
        }
        self.put(node)
    }

    /// Whether there are enough segments to drop those that are not in use.
    pub(crate) fn is_full(&self) -> bool {
        let len = self.nodes.len();
        len >= self.full || len > self.most && self.counts_now()
    }

    /// Finds the segments that a walk along some link can reach, if it goes back to the instant that stands with the link. A walk through the
    /// waker of a sleep goes back to the start of the sleep, and no further.
    pub(crate) fn used(&self, links: impl Iterator<Item = (Link, Ts)>) -> Vec<bool> {
        let mut until = vec![UNUSED; self.nodes.len()];
        let reach = |until: &mut Vec<Ts>, link: Link, bound: Ts| {
            if let Some(at) = place_of(link) {
                until[at] = until[at].min(bound);
            }
        };
        links.for_each(|(link, bound)| reach(&mut until, link, bound));
        let mut used = vec![false; until.len()];
        for (at, node) in self.nodes.iter().enumerate().rev() {
            let (bound, start, end) = (until[at], node.segment.start_ns, node.segment.end_ns);
            // A place has no length, and stands for what leads to it.
            used[at] = bound != UNUSED && (bound < end || start == end);
            if used[at] {
                reach(&mut until, node.by, bound.max(start));
                if bound < start {
                    reach(&mut until, node.before, bound);
                }
            }
        }
        used
    }

    /// Drops the segments that no walk along one of `links` reaches, if it goes back to the instant that stands with it; those of `kept` stay,
    /// without what they refer to. Renumbers both.
    pub(crate) fn drop_unused(&mut self, links: &mut [(&mut Link, Ts)], kept: &mut [&mut Link]) {
        let used = self.used(links.iter().map(|(link, bound)| (**link, *bound)));
        let mut stays = used.clone();
        kept.iter().filter_map(|link| place_of(**link)).for_each(|at| stays[at] = true);
        let in_use = used.iter().filter(|used| **used).count();
        // Far more than half of the room stays, so that this is not done again at once.
        let mut excess = if in_use > self.most && self.counts_now() { in_use - self.most / 2 } else { 0 };
        self.was_cut |= excess > 0;
        let mut places = vec![DROPPED; used.len()];
        let mut count = 0;
        for at in 0..used.len() {
            if !stays[at] {
                continue;
            }
            if used[at] && excess > 0 {
                excess -= 1;
                continue;
            }
            let node = self.nodes[at];
            let moved = |link: Link| place_of(link).map_or(link, |at| places[at]);
            self.nodes[count] = ChainNode { before: moved(node.before), by: moved(node.by), ..node };
            places[at] = count as Link;
            count += 1;
        }
        self.nodes.truncate(count);
        let all = links.iter_mut().map(|(link, _)| &mut **link).chain(kept.iter_mut().map(|link| &mut **link));
        for link in all {
            *link = place_of(*link).map_or(*link, |at| places[at]);
        }
        self.full = (2 * count).max(LEAST.min(2 * self.most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(start: i64) -> Segment {
        Segment::of(SegmentKind::Running, Pid(7), (Ts(start), Ts(start + 1)))
    }

    fn add(chain: &mut Chain, start: i64, before: Link) -> Link {
        chain.add(ChainNode::new(segment(start), before))
    }

    fn starts(chain: &Chain, mut link: Link) -> Vec<i64> {
        let mut starts = Vec::new();
        while let Some(node) = chain.node(link) {
            starts.insert(0, node.segment.start_ns.0);
            link = node.before;
        }
        starts
    }

    #[test]
    fn segments_in_use_stay() {
        let mut chain = Chain::new(100);
        let trunk = add(&mut chain, 0, NOTHING);
        add(&mut chain, 1, trunk);
        let mut branch = add(&mut chain, 2, trunk);
        let mut other = add(&mut chain, 3, branch);
        let (start, mut nothing) = (Ts(0), NOTHING);
        chain.drop_unused(&mut [(&mut other, start), (&mut branch, start), (&mut nothing, start)], &mut []);
        assert_eq!((starts(&chain, other), starts(&chain, branch), nothing), (vec![0, 2, 3], vec![0, 2], NOTHING));
        assert_eq!((chain.nodes.len(), chain.was_cut), (3, false));
        let empty = Segment { end_ns: Ts(5), ..segment(5) };
        assert_eq!(chain.add(ChainNode::new(empty, other)), other, "no segment without length");
    }

    #[test]
    fn the_oldest_segments_go_where_there_are_too_many() {
        let mut chain = Chain::new(10);
        let mut link = NOTHING;
        for start in 0..40 {
            link = add(&mut chain, start, link);
            chain.pass(COUNTED);
            if chain.is_full() {
                chain.drop_unused(&mut [(&mut link, Ts(0))], &mut []);
            }
        }
        let found = starts(&chain, link);
        assert!(chain.was_cut && chain.nodes.len() < 20, "{found:?}");
        assert!(found.len() >= 5 && found.is_sorted() && found.last() == Some(&39), "{found:?}");
    }

    /// A waker explains a sleep and nothing before it: the segments that it has before are in no walk.
    #[test]
    fn the_segments_of_a_waker_before_the_sleep_go() {
        let mut chain = Chain::new(100);
        let mut waker = NOTHING;
        for start in 0..10 {
            waker = add(&mut chain, start, waker);
        }
        let own = add(&mut chain, 0, NOTHING);
        let sleep = Segment { kind: SegmentKind::Sleeping, start_ns: Ts(6), end_ns: Ts(10), ..segment(6) };
        let mut woken = chain.add(ChainNode { by: waker, ..ChainNode::new(sleep, own) });
        // The waker itself, of which a walk from the present on can need nothing.
        chain.drop_unused(&mut [(&mut woken, Ts(0)), (&mut waker, Ts(10))], &mut []);
        let node = *chain.node(woken).expect("the sleep");
        assert_eq!((starts(&chain, node.by), starts(&chain, woken)), (vec![6, 7, 8, 9], vec![0, 6]));
        assert_eq!(chain.nodes.len(), 6);
        let last = starts(&chain, node.by).len();
        assert_eq!((last, chain.node(waker).map(|node| node.segment.start_ns)), (4, Some(Ts(9))));
    }
}
