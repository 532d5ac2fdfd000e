//! The segments of all paths that can still become the critical one.
//!
//! Each task has a path that ends where its present state began; a segment refers to the one before it, so paths that
//! merged at a wakeup share what lies before. Segments that no living task's path leads to are dropped from time to
//! time. A segment is always made after the one before it: one sweep from the newest to the oldest finds those in use.

use sched::{Cpu, Pid, Ts};
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
    /// The task that ran on the CPU when a queued segment began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Pid>,
}

/// A place in the chain; [`NOTHING`] before the first segment.
pub(crate) type Link = u32;

/// The link that stands for no segment.
pub(crate) const NOTHING: Link = Link::MAX;

/// The segments of all paths.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    segments: Vec<(Segment, Link)>,
    /// The number of segments at which those in use are sought.
    full: usize,
    /// The maximum number of segments in use.
    most: usize,
    /// Segments in use were dropped.
    pub(crate) was_cut: bool,
    /// The number of events that have passed.
    events: u64,
    /// The number of segments that were added, those included that were dropped.
    added: usize,
}

/// The number of segments up to which nothing is dropped.
const LEAST: usize = 1 << 16;

/// The maximum number of segments in use, behind each event at which they are counted: about 64 MB, twice that while they are
/// sought.
pub(crate) const MOST: usize = 1 << 20;

/// The number of events from one count of the segments in use to the next. The segments that are dropped must not depend on
/// the division of a pass: most pieces have this number of events.
const COUNTED: u64 = 1 << 16;

impl Chain {
    pub(crate) fn new(most: usize) -> Chain {
        Chain { segments: Vec::new(), full: LEAST.min(2 * most), most, was_cut: false, events: 0, added: 0 }
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
        !later.was_cut && (!counts_within || self.segments.len() + later.added <= self.most)
    }

    /// Adds a segment behind another, whatever its length.
    pub(crate) fn put(&mut self, segment: Segment, before: Link) -> Link {
        self.segments.push((segment, before));
        self.added += 1;
        (self.segments.len() - 1) as Link
    }

    /// Adds a place that stands for a path from elsewhere.
    pub(crate) fn place(&mut self) -> Link {
        let (kind, pid, start_ns, end_ns) = (SegmentKind::Unknown, Pid::IDLE, Ts(0), Ts(0));
        self.put(Segment { kind, pid, cpu: None, start_ns, end_ns, beside_idle_ns: 0, behind: None }, NOTHING)
    }

    /// Iterates over the segments with those before them, from the oldest one on.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, (Segment, Link))> {
        self.segments.iter().copied().enumerate()
    }

    /// Adds a segment behind another. One without length is left out.
    pub(crate) fn add(&mut self, segment: Segment, before: Link) -> Link {
        if segment.start_ns >= segment.end_ns {
            return before;
        }
        self.put(segment, before)
    }

    /// Whether there are enough segments to drop those that are not in use.
    pub(crate) fn is_full(&self) -> bool {
        let len = self.segments.len();
        len >= self.full || len > self.most && self.counts_now()
    }

    /// Finds the segments to which some link leads.
    pub(crate) fn used(&self, links: impl Iterator<Item = Link>) -> Vec<bool> {
        let mut used = vec![false; self.segments.len()];
        links.filter(|link| *link != NOTHING).for_each(|link| used[link as usize] = true);
        for at in (0..used.len()).rev() {
            let before = self.segments[at].1;
            if used[at] && before != NOTHING {
                used[before as usize] = true;
            }
        }
        used
    }

    /// Drops the segments to which none of `links` leads, and renumbers the links.
    pub(crate) fn drop_unused(&mut self, links: &mut [&mut Link]) {
        let used = self.used(links.iter().map(|link| **link));
        let in_use = used.iter().filter(|used| **used).count();
        // Far more than half of the room stays, so that this is not done again at once.
        let mut excess = if in_use > self.most && self.counts_now() { in_use - self.most / 2 } else { 0 };
        self.was_cut |= excess > 0;
        let mut places = vec![NOTHING; used.len()];
        let mut kept = 0;
        for at in 0..used.len() {
            if !used[at] {
                continue;
            }
            if excess > 0 {
                excess -= 1;
                continue;
            }
            let (segment, before) = self.segments[at];
            let before = if before == NOTHING { NOTHING } else { places[before as usize] };
            self.segments[kept] = (segment, before);
            places[at] = kept as Link;
            kept += 1;
        }
        self.segments.truncate(kept);
        for link in links.iter_mut().filter(|link| ***link != NOTHING) {
            **link = places[**link as usize];
        }
        self.full = (2 * kept).max(LEAST.min(2 * self.most));
    }

    /// The segments from a link back to the first one, in the order of time.
    pub(crate) fn path(&self, mut link: Link) -> Vec<Segment> {
        let mut path = Vec::new();
        while link != NOTHING {
            let (segment, before) = self.segments[link as usize];
            path.push(segment);
            link = before;
        }
        path.reverse();
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(start: i64) -> Segment {
        let (start_ns, end_ns) = (Ts(start), Ts(start + 1));
        Segment {
            kind: SegmentKind::Running,
            pid: Pid(7),
            cpu: None,
            start_ns,
            end_ns,
            beside_idle_ns: 0,
            behind: None,
        }
    }

    fn starts(chain: &Chain, link: Link) -> Vec<i64> {
        chain.path(link).iter().map(|segment| segment.start_ns.0).collect()
    }

    #[test]
    fn segments_in_use_stay() {
        let mut chain = Chain::new(100);
        let trunk = chain.add(segment(0), NOTHING);
        chain.add(segment(1), trunk);
        let mut branch = chain.add(segment(2), trunk);
        let mut other = chain.add(segment(3), branch);
        chain.drop_unused(&mut [&mut other, &mut branch, &mut NOTHING.clone()]);
        assert_eq!((starts(&chain, other), starts(&chain, branch)), (vec![0, 2, 3], vec![0, 2]));
        assert_eq!((chain.segments.len(), chain.was_cut), (3, false));
        assert_eq!(chain.add(Segment { end_ns: Ts(5), ..segment(5) }, other), other, "no segment without length");
    }

    #[test]
    fn the_oldest_segments_go_where_there_are_too_many() {
        let mut chain = Chain::new(10);
        let mut link = NOTHING;
        for start in 0..40 {
            link = chain.add(segment(start), link);
            chain.pass(COUNTED);
            if chain.is_full() {
                chain.drop_unused(&mut [&mut link]);
            }
        }
        let found = starts(&chain, link);
        assert!(chain.was_cut && chain.segments.len() < 20, "{found:?}");
        assert!(found.len() >= 5 && found.is_sorted() && found.last() == Some(&39), "{found:?}");
    }
}
