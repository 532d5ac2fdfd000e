//! The sleeps on a path that other tasks explain, by both tasks (`docs/questions/path.md#sleeps`).

use crate::chain::{OfTask, Segment, SegmentKind};
use sched::Pid;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The sleeps of a task on the path that another task explains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SleepsUntil {
    /// The task that slept.
    #[serde(flatten)]
    pub task: OfTask,
    /// The task that explains its sleeps.
    pub until: OfTask,
    /// The number of these sleeps.
    pub sleeps: u64,
    /// The time for which the path is with the other task in these sleeps, in nanoseconds.
    pub slept_ns: u64,
    /// The part of that time for which the other task was queued, in nanoseconds.
    pub queued_ns: u64,
    /// The sleeps in which the other task was queued for half of its time or more.
    pub held_up: HeldUp,
}

/// The sleeps on the path in which the task that explains them was queued for half of its time or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldUp {
    /// The number of these sleeps.
    pub sleeps: u64,
    /// The time for which the path is with the other task in these sleeps, in nanoseconds.
    pub slept_ns: u64,
    /// The part of that time for which the other task was queued, in nanoseconds.
    pub queued_ns: u64,
}

impl HeldUp {
    fn add(&mut self, part: SleepPart) {
        self.sleeps += 1;
        self.slept_ns = self.slept_ns.saturating_add(part.slept);
        self.queued_ns = self.queued_ns.saturating_add(part.queued);
    }
}

/// The part of one sleep that another task explains.
#[derive(Clone, Copy, Debug, Default)]
struct SleepPart {
    slept: u64,
    queued: u64,
}

/// All sleeps of a pair of tasks, and those that were held up.
type SleepSums = (HeldUp, HeldUp);

/// SleepSums up the sleeps on a path, whose segments are in the order of time.
pub(crate) fn sleeps(path: &[Segment], name: impl Fn(Pid) -> OfTask) -> Vec<SleepsUntil> {
    let mut sums: BTreeMap<(Pid, Pid), SleepSums> = BTreeMap::new();
    let mut end = |sleeper: Pid, parts: BTreeMap<Pid, SleepPart>| {
        for (until, part) in parts {
            let (all, held_up) = sums.entry((sleeper, until)).or_default();
            all.add(part);
            if part.queued >= part.slept.div_ceil(2) {
                held_up.add(part);
            }
        }
    };
    // The sleeps that go on, by their tasks.
    let mut open: BTreeMap<Pid, BTreeMap<Pid, SleepPart>> = BTreeMap::new();
    for segment in path {
        // The task is awake again.
        if let Some(parts) = open.remove(&segment.pid) {
            end(segment.pid, parts);
        }
        let Some(sleeper) = segment.sleeper else { continue };
        let part = open.entry(sleeper).or_default().entry(segment.pid).or_default();
        part.slept = part.slept.saturating_add(segment.length());
        if segment.kind == SegmentKind::Queued {
            part.queued = part.queued.saturating_add(segment.length());
        }
    }
    open.into_iter().for_each(|(sleeper, parts)| end(sleeper, parts));
    let row = |((sleeper, until), (all, held_up)): ((Pid, Pid), SleepSums)| {
        let HeldUp { sleeps, slept_ns, queued_ns } = all;
        SleepsUntil { task: name(sleeper), until: name(until), sleeps, slept_ns, queued_ns, held_up }
    };
    let mut rows: Vec<SleepsUntil> = sums.into_iter().map(row).collect();
    rows.sort_by_key(|row| (Reverse(row.slept_ns), row.task.pid, row.until.pid));
    rows
}
