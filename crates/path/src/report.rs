//! The path as numbers.

use crate::CriticalPath;
use crate::chain::{OfTask, Segment, SegmentKind};
use crate::sleeps::{SleepsUntil, sleeps};
use crate::walk::Walked;
use sched::nice::SchedClass;
use sched::{Comm, Cpu, Dur, Pid, QueuedTimes, SchedState, Ts};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Times on the path by the state of the task, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    /// The time for which the task runs.
    pub running_ns: u64,
    /// Runnable and queued.
    pub queued_ns: u64,
    /// Queued while another CPU idled that the task may use.
    pub queued_beside_idle_ns: u64,
    /// Queued on an idle CPU, the task's own, for 1 ms or longer: held back.
    pub queued_held_back_ns: u64,
    /// Queued while a CPU that the task may use had a shorter queue, in which the task would have had a larger share of the time.
    pub queued_beside_shorter_ns: u64,
    /// Queued while all queues were alike: waiting for CPU time.
    pub queued_alike_ns: u64,
    /// The part of the last two while a CPU idled that the task may not use; absent if it is zero.
    #[serde(skip_serializing_if = "is_zero")]
    pub queued_beside_forbidden_ns: u64,
    /// The time from the waking to the run queue; null where `sched_waking` was not recorded: it is unknown time; and where `sched_wakeup` was
    /// not recorded: it is queued time.
    pub waking_ns: Option<u64>,
    /// Sleeping until an interrupt or the idle task ended the sleep; null where `sched_waking` was not recorded: it is unknown time.
    pub sleeping_ns: Option<u64>,
    /// The time for which the state is unknown.
    pub unknown_ns: u64,
    /// Throttled by `cpu.max`; absent if it is zero.
    #[serde(skip_serializing_if = "is_zero")]
    pub throttled_ns: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's form
fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

impl Times {
    /// No times yet of a path through a trace, of which the state knows the events.
    pub(crate) fn none_in(state: &SchedState) -> Times {
        let (shows_wakers, shows_places) = (state.has_wakings(), !state.places_by_wakings());
        let known = |is_known: bool| is_known.then_some(0);
        Times { waking_ns: known(shows_wakers && shows_places), sleeping_ns: known(shows_wakers), ..Times::default() }
    }

    /// No times yet of a part of the path that has these ones.
    pub(crate) fn none(&self) -> Times {
        let none = |known: Option<u64>| known.map(|_| 0);
        Times { waking_ns: none(self.waking_ns), sleeping_ns: none(self.sleeping_ns), ..Times::default() }
    }

    pub(crate) fn add(&mut self, segment: &Segment) {
        let ns = segment.length();
        let sum = match segment.kind {
            SegmentKind::Running => &mut self.running_ns,
            SegmentKind::Queued => &mut self.queued_ns,
            SegmentKind::Waking => self.waking_ns.as_mut().unwrap_or(&mut self.unknown_ns),
            SegmentKind::Sleeping => self.sleeping_ns.as_mut().unwrap_or(&mut self.unknown_ns),
            SegmentKind::Unknown => &mut self.unknown_ns,
            SegmentKind::Throttled => &mut self.throttled_ns,
        };
        *sum = sum.saturating_add(ns);
        self.add_kinds(&segment.kinds);
    }

    pub(crate) fn add_kinds(&mut self, more: &QueuedTimes) {
        for (sum, ns) in [
            (&mut self.queued_held_back_ns, more.held_back_ns),
            (&mut self.queued_beside_idle_ns, more.beside_idle_ns),
            (&mut self.queued_beside_shorter_ns, more.beside_shorter_ns),
            (&mut self.queued_alike_ns, more.alike_ns),
            (&mut self.queued_beside_forbidden_ns, more.beside_forbidden_ns),
        ] {
            *sum = sum.saturating_add(ns);
        }
    }

    /// The queued time by kind.
    pub fn kinds(&self) -> QueuedTimes {
        QueuedTimes {
            held_back_ns: self.queued_held_back_ns,
            beside_idle_ns: self.queued_beside_idle_ns,
            beside_shorter_ns: self.queued_beside_shorter_ns,
            alike_ns: self.queued_alike_ns,
            beside_forbidden_ns: self.queued_beside_forbidden_ns,
        }
    }

    /// Adds the times of another part of the path.
    pub(crate) fn join(&mut self, more: &Times) {
        self.add_kinds(&more.kinds());
        let Times { running_ns, queued_ns, waking_ns, sleeping_ns, unknown_ns, throttled_ns, .. } = *more;
        for (sum, ns) in [
            (&mut self.running_ns, running_ns),
            (&mut self.queued_ns, queued_ns),
            (&mut self.unknown_ns, unknown_ns),
            (&mut self.throttled_ns, throttled_ns),
        ] {
            *sum = sum.saturating_add(ns);
        }
        for (sum, ns) in [(&mut self.waking_ns, waking_ns), (&mut self.sleeping_ns, sleeping_ns)] {
            *sum = sum.zip(ns).map(|(sum, ns)| sum.saturating_add(ns));
        }
    }

    /// The sum of all times, in nanoseconds.
    pub fn total(&self) -> u64 {
        let Times { running_ns, queued_ns, waking_ns, sleeping_ns, unknown_ns, throttled_ns, .. } = *self;
        let (waking_ns, sleeping_ns) = (waking_ns.unwrap_or_default(), sleeping_ns.unwrap_or_default());
        let all = [running_ns, queued_ns, waking_ns, sleeping_ns, unknown_ns, throttled_ns];
        all.into_iter().fold(0, u64::saturating_add)
    }
}

/// The part of the path that belongs to a task or a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Share<K> {
    /// The task or the CPU.
    #[serde(flatten)]
    pub of: K,
    /// The number of segments.
    pub segments: u64,
    /// The times on the segments.
    #[serde(flatten)]
    pub times: Times,
}

/// A CPU on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfCpu {
    /// The CPU of the segments.
    pub cpu: Cpu,
}

/// A long queued segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Queued {
    /// The start of the segment after the start of the trace, in nanoseconds.
    pub start_in_trace_ns: u64,
    /// The length of the segment in nanoseconds.
    pub duration_ns: Dur,
    /// The segment by kind of queued time, in nanoseconds.
    #[serde(flatten)]
    pub kinds: QueuedTimes,
    /// The CPU of the run queue.
    pub cpu: Option<Cpu>,
    /// The task that was queued.
    #[serde(flatten)]
    pub task: OfTask,
    /// The task that ran on the CPU when the segment began; absent where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<OfTask>,
    /// The time from the start of the segment for which that task stayed on the CPU, in nanoseconds; absent where none ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind_ns: Option<Dur>,
    /// The class of that task, if it is the real-time or the deadline class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind_class: Option<SchedClass>,
}

/// A task behind which the path was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Behind {
    /// The task that ran on the CPU as segments began in its queue.
    #[serde(flatten)]
    pub task: OfTask,
    /// The class of the task, if it is the real-time or the deadline class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<SchedClass>,
    /// The number of these segments.
    pub segments: u64,
    /// The time for which the path was queued in these segments, in nanoseconds.
    pub queued_ns: u64,
    /// The part of that time, from the start of each segment, for which the task stayed on the CPU, in nanoseconds.
    pub behind_ns: u64,
}

/// The critical path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Path {
    /// The task at the end of the path; absent where the window does not show its end.
    pub task: Option<OfTask>,
    /// The start of the path on the trace's clock, in nanoseconds: the start of the window.
    pub from_ns: Ts,
    /// The end of the path on the trace's clock, in nanoseconds: the exit of the task, or the end of the window.
    pub to_ns: Ts,
    /// Whether the path ends with the exit of the task.
    pub ends_with_exit: bool,
    /// The times on the path; together they are its length.
    pub times: Times,
    /// The number of segments.
    pub segments: u64,
    /// The number of its gaps: stretches of unknown time.
    pub gaps: u64,
    /// The longest gap, in nanoseconds.
    pub longest_gap_ns: u64,
    /// Whether the path is not to be trusted, since more than 20 % of it is unknown.
    pub is_untrusted: bool,
    /// The number of wakeups and forks by which the path passes from one task to another; absent where `sched_waking` was not recorded, which
    /// shows the waker.
    pub handovers: Option<u64>,
    /// The greatest number of sleeps, each within the one before, that the path explains at one instant; absent where `sched_waking` was not
    /// recorded.
    pub depth: Option<u64>,
    /// The time that is only possibly on the path, in nanoseconds: behind wakeups by a softirq on top of a task that perhaps caused it; absent
    /// if it is zero.
    #[serde(skip_serializing_if = "is_zero")]
    pub possible_ns: u64,
    /// Whether the beginning of the path was dropped, since more segments than fit in memory could have been on it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
    /// The tasks on the path, the one with the most time first.
    pub tasks: Vec<Share<OfTask>>,
    /// The CPUs on which the path ran or was queued, the one with the most time first.
    pub cpus: Vec<Share<OfCpu>>,
    /// The sleeps that another task explains, by both tasks, the pair with the most time first.
    pub sleeps: Vec<SleepsUntil>,
    /// The tasks behind which the path was queued, the one that stayed for the longest time first.
    pub behind: Vec<Behind>,
    /// The longest queued segments.
    pub longest_queued: Vec<Queued>,
    /// The most recent names of the tasks on the path, and of those that ran before queued segments.
    #[serde(skip)]
    pub commands: BTreeMap<Pid, Comm>,
    /// The segments in the order of time, for a figure.
    #[serde(skip)]
    pub path: Vec<Segment>,
}

fn shares<K: Ord + Copy>(path: &[Segment], none: Times, key: impl Fn(&Segment) -> Option<K>) -> Vec<Share<K>> {
    let mut all: BTreeMap<K, (u64, Times)> = BTreeMap::new();
    for segment in path {
        if let Some(key) = key(segment) {
            let (segments, times) = all.entry(key).or_insert_with(|| (0, none));
            *segments += 1;
            times.add(segment);
        }
    }
    let mut shares: Vec<Share<K>> =
        all.into_iter().map(|(of, (segments, times))| Share { of, segments, times }).collect();
    shares.sort_by_key(|share| Reverse(share.times.total()));
    shares
}

/// The tasks behind which the path was queued.
fn behind(path: &[Segment], name: impl Fn(Pid) -> OfTask, class: impl Fn(Pid) -> Option<SchedClass>) -> Vec<Behind> {
    let mut all: BTreeMap<Pid, Behind> = BTreeMap::new();
    for segment in path.iter().filter(|segment| segment.kind == SegmentKind::Queued) {
        let Some(pid) = segment.behind else { continue };
        let (task, class) = (name(pid), class(pid));
        let sums = all.entry(pid).or_insert(Behind { task, class, segments: 0, queued_ns: 0, behind_ns: 0 });
        sums.segments += 1;
        sums.queued_ns = sums.queued_ns.saturating_add(segment.length());
        sums.behind_ns = sums.behind_ns.saturating_add(segment.behind_ns);
    }
    let mut rows: Vec<Behind> = all.into_values().collect();
    rows.sort_by_key(|row| (Reverse(row.behind_ns), Reverse(row.queued_ns)));
    rows
}

/// A path is not to be trusted where more than one in this number of its nanoseconds is unknown: above 20 %.
const MOST_UNKNOWN: u64 = 5;

/// The lengths of the gaps of a path, in nanoseconds.
fn gaps(path: &[Segment]) -> Vec<u64> {
    let stretches = path.chunk_by(|a, b| a.kind == SegmentKind::Unknown && b.kind == SegmentKind::Unknown);
    let gaps = stretches.filter(|stretch| stretch[0].kind == SegmentKind::Unknown);
    gaps.map(|gap| gap.iter().map(Segment::length).fold(0, u64::saturating_add)).collect()
}

/// The path that was found. `none`: no times yet of a path through this trace.
pub(crate) fn build(found: &CriticalPath, none: Times) -> Path {
    let name = |pid: Pid| OfTask { pid, command: found.names.get(&pid).map_or(Comm::EMPTY, |(name, _)| *name) };
    let (task, to, walked) = match found.found {
        Some((pid, until)) => (Some(name(pid)), until.at, found.chain.walk(pid, until, found.start, &found.mutual)),
        None => (None, found.start, Walked::default()),
    };
    let Walked { mut path, handovers, is_cut, depth } = walked;
    // Without wakings nothing shows when a sleep ended, nor what ended it; what a fork shows of a wakeup is no number of all.
    let shows_wakers = none.sleeping_ns.is_some();
    let is_hidden = |kind| match kind {
        SegmentKind::Waking => none.waking_ns.is_none(),
        SegmentKind::Sleeping => !shows_wakers,
        _ => false,
    };
    let hidden = path.iter_mut().filter(|segment| is_hidden(segment.kind));
    hidden.for_each(|segment| segment.kind = SegmentKind::Unknown);
    let mut times = none;
    path.iter().for_each(|segment| times.add(segment));
    let gaps = gaps(&path);
    let class = |pid: Pid| found.strong.get(&pid).copied();
    let mut queued: Vec<&Segment> = path.iter().filter(|segment| segment.kind == SegmentKind::Queued).collect();
    queued.sort_by_key(|segment| (Reverse(segment.end_ns.since(segment.start_ns)), segment.start_ns));
    let longest_queued = (queued.iter().take(found.options.longest))
        .map(|segment| Queued {
            start_in_trace_ns: segment.start_ns.since(found.options.zero).0,
            duration_ns: segment.end_ns.since(segment.start_ns),
            kinds: segment.kinds,
            cpu: segment.cpu,
            task: name(segment.pid),
            behind: segment.behind.map(name),
            behind_ns: segment.behind.map(|_| Dur(segment.behind_ns)),
            behind_class: segment.behind.and_then(class),
        })
        .collect();
    let named = path.iter().flat_map(|segment| [Some(segment.pid), segment.behind]).flatten().map(name);
    let commands = named.map(|task| (task.pid, task.command)).collect();
    Path {
        task,
        from_ns: found.start,
        to_ns: to,
        ends_with_exit: found.exited,
        times,
        segments: path.len() as u64,
        gaps: gaps.len() as u64,
        longest_gap_ns: gaps.into_iter().max().unwrap_or(0),
        is_untrusted: times.unknown_ns > times.total() / MOST_UNKNOWN,
        handovers: shows_wakers.then_some(handovers),
        depth: shows_wakers.then_some(depth as u64),
        possible_ns: path
            .iter()
            .filter(|segment| segment.is_possible)
            .map(Segment::length)
            .fold(0, u64::saturating_add),
        is_cut,
        tasks: shares(&path, none, |segment| Some(name(segment.pid))),
        cpus: shares(&path, none, |segment| segment.cpu.map(|cpu| OfCpu { cpu })),
        sleeps: sleeps(&path, name),
        behind: behind(&path, name, class),
        longest_queued,
        commands,
        path,
    }
}
