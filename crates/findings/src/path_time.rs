//! The queued time on the critical path, divided by its reason.

use crate::Measurements;
use path::{Path, Segment, SegmentKind};
use sched::{Cpu, Dur, Pid, QueuedTimes, Ts};
use std::collections::BTreeSet;
use utilization::HerdReport;
use workcons::Throttling;

/// The part of the path, one in this number, below which a time on it is not told.
const LEAST_PART: u64 = 1000;

/// The least time that is told on a path of this length, in nanoseconds: a shorter one delayed nothing.
pub(crate) fn least_told(length: u64) -> u64 {
    (length / LEAST_PART).max(1)
}

/// Times on the critical path in words: the task at its end and its length, where there is a path.
#[derive(Clone, Copy)]
pub(crate) struct OnPath<'t>(pub(crate) Option<(&'t str, u64)>);

impl OnPath<'_> {
    /// A time, with its share in the path.
    pub(crate) fn time(self, ns: u64) -> String {
        let OnPath(path) = self;
        let percent = path
            .map_or(String::new(), |(_, length)| format!(" ({:.1} %)", 100.0 * ns as f64 / (length as f64).max(1.0)));
        format!("{}{percent}", Dur(ns).human())
    }

    /// A time that is worth a word.
    pub(crate) fn told(self, ns: u64) -> Option<String> {
        let OnPath(path) = self;
        path.filter(|(_, length)| ns >= least_told(*length)).map(|_| self.time(ns))
    }
}

/// The time on a critical path that is to be trusted, in nanoseconds.
pub(crate) struct PathTime<'m> {
    pub(crate) path: &'m Path,
    /// The length of the path.
    pub(crate) length: u64,
    /// Throttled, or queued on a CPU while bandwidth control throttled that CPU.
    pub(crate) throttled: u64,
    /// Queued time by kind, without the part that was throttled.
    pub(crate) kinds: QueuedTimes,
    /// Queued behind a task outside of the application, for as long as that stayed.
    pub(crate) behind_outside: u64,
}

impl<'m> PathTime<'m> {
    /// The time on the path of the traced command; nothing where the trace does not show that path, or where it is not to be trusted.
    pub(crate) fn of(found: &'m Measurements) -> Option<PathTime<'m>> {
        let path = &**found.path.as_ref()?;
        let length = path.to_ns.since(path.from_ns).0;
        path.task.filter(|_| !path.is_untrusted && length > 0)?;
        // Where records show the throttled tasks, the path has segments of that.
        let by_cpu = found.workcons.throttling.as_ref().filter(|throttling| throttling.task_ns().is_none());
        let mut outside: BTreeSet<Pid> = match found.utilization.all.app_ns {
            Some(_) => found.outside.iter().flat_map(|outside| &outside.members).filter_map(|task| task.pid).collect(),
            None => BTreeSet::new(),
        };
        // Before its exec the command has the recorder's name, and is the command nevertheless.
        outside.retain(|pid| path.task.is_none_or(|task| task.pid != *pid));
        let mut time = PathTime {
            path,
            length,
            throttled: path.times.throttled_ns,
            kinds: QueuedTimes::default(),
            behind_outside: 0,
        };
        for segment in queued(path) {
            let all = segment.end_ns.since(segment.start_ns).0;
            let throttled = by_cpu.map_or(0, |throttling| throttled(throttling, segment)).min(all);
            time.throttled = time.throttled.saturating_add(throttled);
            time.kinds.add(&within(&segment.kinds, all - throttled));
            if segment.behind.is_some_and(|task| outside.contains(&task)) {
                time.behind_outside = time.behind_outside.saturating_add(segment.behind_ns);
            }
        }
        Some(time)
    }

    /// The queued time on the path, without time that is throttled.
    pub(crate) fn queued(&self) -> u64 {
        self.kinds.total()
    }

    /// The least time on the path that is told.
    pub(crate) fn least(&self) -> u64 {
        least_told(self.length)
    }

    /// A time in percent of the path.
    pub(crate) fn percent(&self, ns: u64) -> f64 {
        100.0 * ns as f64 / self.length as f64
    }

    /// The queued time of a task on the path between two instants.
    pub(crate) fn queued_of(&self, pid: Pid, from: Ts, to: Ts) -> u64 {
        overlap(queued(self.path).filter(|segment| segment.pid == pid), from, to)
    }

    /// The queued time on the path on the target CPUs of herds, from the first migration of each until it has drained. Time that
    /// belongs to several herds counts once.
    pub(crate) fn queued_by<'h>(&self, herds: impl Iterator<Item = &'h HerdReport>) -> u64 {
        let until = |herd: &HerdReport| herd.drained_after_ns.map_or(Ts::MAX, |drained| herd.herd.end.after(drained));
        let drains = joined(herds.map(|herd| (herd.herd.dest, herd.herd.start, until(herd))).collect());
        let on = |cpu: Cpu| queued(self.path).filter(move |segment| segment.cpu == Some(cpu));
        drains.into_iter().map(|(cpu, from, to)| overlap(on(cpu), from, to)).fold(0, u64::saturating_add)
    }
}

/// The same times of CPUs, those that overlap as one.
fn joined(mut times: Vec<(Cpu, Ts, Ts)>) -> Vec<(Cpu, Ts, Ts)> {
    times.sort_unstable();
    times.dedup_by(|(cpu, from, to), (before, _, end)| {
        let overlaps = cpu == before && *from <= *end;
        if overlaps {
            *end = (*end).max(*to);
        }
        overlaps
    });
    times
}

/// The kinds of queued time without a part that was throttled: that is taken from the time held back first of all.
fn within(kinds: &QueuedTimes, all: u64) -> QueuedTimes {
    let beside_idle_ns = kinds.beside_idle_ns.min(all);
    let beside_shorter_ns = kinds.beside_shorter_ns.min(all - beside_idle_ns);
    let alike_ns = kinds.alike_ns.min(all - beside_idle_ns - beside_shorter_ns);
    let held_back_ns = kinds.held_back_ns.min(all - beside_idle_ns - beside_shorter_ns - alike_ns);
    let beside_forbidden_ns = kinds.beside_forbidden_ns.min(beside_shorter_ns + alike_ns);
    QueuedTimes { held_back_ns, beside_idle_ns, beside_shorter_ns, alike_ns, beside_forbidden_ns }
}

fn queued(path: &Path) -> impl Iterator<Item = &Segment> {
    path.path.iter().filter(|segment| segment.kind == SegmentKind::Queued)
}

/// The time for which the CPU of a segment was throttled meanwhile.
fn throttled(throttling: &Throttling, segment: &Segment) -> u64 {
    segment.cpu.map_or(0, |cpu| throttling.within(cpu, segment.start_ns, segment.end_ns))
}

/// The time of segments between two instants.
fn overlap<'s>(segments: impl Iterator<Item = &'s Segment>, from: Ts, to: Ts) -> u64 {
    let within = |segment: &Segment| segment.end_ns.min(to).since(segment.start_ns.max(from)).0;
    segments.map(within).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_overlap_are_one() {
        let time = |(cpu, from, to)| (Cpu(cpu), Ts(from), Ts(to));
        let times = [(1, 5, 9), (0, 1, 4), (0, 3, 8), (0, 2, 3), (0, 9, 12), (1, 9, 10)].map(time).to_vec();
        assert_eq!(joined(times), [(0, 1, 8), (0, 9, 12), (1, 5, 10)].map(time));
    }
}
