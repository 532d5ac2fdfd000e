//! The queued time on a path while a CPU under the same last-level cache idled.

use path::{Path, Segment, SegmentKind};
use sched::topology::CpuOrder;
use sched::{Analysis, Cpu, SchedEvent, SchedState, Topology, Ts};
use std::collections::BTreeMap;

/// The analysis that measures, segment by segment, how long a CPU under the cache of a queued task idled. No two segments of a path overlap.
pub(crate) struct NearIdle<'p> {
    segments: &'p [Segment],
    topology: &'p Topology,
    /// The number of idle CPUs under each cache, and the cache of each CPU that idles.
    idle: BTreeMap<Option<u32>, u32>,
    idles: Vec<bool>,
    /// The first segment that has not ended.
    at: usize,
    /// The time of that segment so far, in nanoseconds.
    beside: u64,
    sum: u64,
    last: Ts,
}

impl<'p> NearIdle<'p> {
    pub(crate) fn new(path: &'p Path, topology: &'p Topology) -> NearIdle<'p> {
        NearIdle {
            segments: &path.path,
            topology,
            idle: BTreeMap::new(),
            idles: Vec::new(),
            at: 0,
            beside: 0,
            sum: 0,
            last: Ts(0),
        }
    }

    fn settle(&mut self, cpu: Cpu, state: &SchedState) {
        if cpu.index() >= self.idles.len() {
            self.idles.resize(cpu.index() + 1, false);
        }
        let idles = state.load(cpu).is_idle();
        if std::mem::replace(&mut self.idles[cpu.index()], idles) != idles {
            let count = self.idle.entry(self.topology.group(cpu, CpuOrder::Llc)).or_default();
            *count = if idles { *count + 1 } else { count.saturating_sub(1) };
        }
    }

    fn advance(&mut self, now: Ts) {
        while let Some(segment) = self.segments.get(self.at).filter(|segment| segment.start_ns < now) {
            let cpu = segment.cpu.filter(|_| segment.kind == SegmentKind::Queued);
            let is_beside =
                |cpu: Cpu| self.idle.get(&self.topology.group(cpu, CpuOrder::Llc)).is_some_and(|idle| *idle > 0);
            if cpu.is_some_and(is_beside) {
                let (from, to) = (segment.start_ns.max(self.last), segment.end_ns.min(now));
                self.beside = self.beside.saturating_add(if from < to { to.since(from).0 } else { 0 });
            }
            if segment.end_ns > now {
                break;
            }
            // The tasks may not use every CPU: that part is in no kind beside idle CPUs.
            self.sum = self.sum.saturating_add(self.beside.min(segment.kinds.beside_idle_ns));
            (self.at, self.beside) = (self.at + 1, 0);
        }
        self.last = self.last.max(now);
    }
}

impl Analysis for NearIdle<'_> {
    /// The time in nanoseconds.
    type Output = u64;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.last = start;
        let cpus: Vec<Cpu> = state.observed().collect();
        cpus.into_iter().for_each(|cpu| self.settle(cpu, state));
    }

    fn before(&mut self, event: &SchedEvent, _: &SchedState) {
        self.advance(event.ts);
    }

    fn after(&mut self, _: &SchedEvent, state: &SchedState) {
        for cpu in state.touched() {
            self.settle(*cpu, state);
        }
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> u64 {
        self.advance(end);
        self.sum
    }
}
