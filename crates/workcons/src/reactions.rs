//! CPUs that idle although a task waits for them: the long ones are worth a look.

use crate::KEPT;
use sched::{Cpu, Dur, Load, Ts};
use serde::Serialize;

/// A CPU that reacts for longer than this is throttled, forced idle, or misunderstood.
pub const LONG_REACTION: Dur = Dur(1_000_000);

/// A long reacting interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reaction {
    /// The CPU that idled although a task waited for it.
    pub cpu: Cpu,
    /// When it began, on the trace's clock,
    pub start_ns: Ts,
    /// and from the start of the trace.
    pub start_in_trace_ns: u64,
    /// How long it lasted.
    pub duration_ns: Dur,
}

/// Gathers them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reactions {
    /// The trace's start.
    zero: Ts,
    /// By CPU: since when it reacts.
    open: Vec<Option<Ts>>,
    pub(crate) longest: Vec<Reaction>,
    /// How many were long.
    pub(crate) long: u64,
}

impl Reactions {
    pub(crate) fn new(zero: Ts) -> Reactions {
        Reactions { zero, ..Reactions::default() }
    }

    /// At `ts` a CPU became what it is now.
    #[inline]
    pub(crate) fn follow(&mut self, cpu: Cpu, old: Load, new: Load, ts: Ts) {
        if old != new && (old == Load::Reacting || new == Load::Reacting) {
            self.change(cpu, new, ts);
        }
    }

    fn change(&mut self, cpu: Cpu, new: Load, ts: Ts) {
        if cpu.index() >= self.open.len() {
            self.open.resize(cpu.index() + 1, None);
        }
        let since = &mut self.open[cpu.index()];
        if new == Load::Reacting {
            *since = Some(ts);
        } else if let Some(since) = since.take() {
            self.add(cpu, since, ts);
        }
    }

    fn add(&mut self, cpu: Cpu, since: Ts, ts: Ts) {
        let duration_ns = ts.since(since);
        if duration_ns < LONG_REACTION {
            return;
        }
        self.long += 1;
        let at = self.longest.partition_point(|r| r.duration_ns >= duration_ns);
        let start_in_trace_ns = since.since(self.zero).0;
        self.longest.insert(at, Reaction { cpu, start_ns: since, start_in_trace_ns, duration_ns });
        self.longest.truncate(KEPT);
    }

    /// Those that last end here.
    pub(crate) fn close(&mut self, end: Ts) {
        for (cpu, since) in (0..).map(Cpu).zip(std::mem::take(&mut self.open)) {
            if let Some(since) = since {
                self.add(cpu, since, end);
            }
        }
    }
}
