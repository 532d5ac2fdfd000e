//! An idle stretch that has not ended, and the event that ends it.

use crate::EstimatedGate;
use crate::category::{IdleEnd, IdleOrigin, WaitOrigin};
use crate::ledger::MoveKey;
use crate::nearest::Nearest;
use crate::wait::Wait;
use sched::balancer::NewIdle;
use sched::{Cpu, Current, EventKind, SchedEvent, SchedState, Ts};

/// An idle stretch that has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub(crate) start: Ts,
    /// The true start, where that is before the window; else the start.
    pub(crate) since: Ts,
    /// The reading of the violated time in which the CPU idled when the stretch began.
    pub(crate) reading: u64,
    /// The reading at the end of the latest column of a figure.
    pub(crate) noted: u64,
    /// The time in violation in earlier pieces of a pass, in nanoseconds.
    pub(crate) before: u64,
    pub(crate) origin: (IdleOrigin, Option<MoveKey>),
    /// The distance to the nearest CPU with a counted waiter, where the stretch began with a missed steal.
    pub(crate) missed: Option<Nearest>,
    /// The outcome of new-idle balancing before it, where probes show that.
    pub(crate) newidle: Option<NewIdle>,
    /// The state of the gate of new-idle balancing then, where it is estimated.
    pub(crate) gate: Option<EstimatedGate>,
    /// Whether the stretch began before this piece of a pass, so that its beginning and its origin are not known here.
    pub(crate) is_earlier: bool,
}

impl Stretch {
    /// The stretch of a CPU that idles when the window begins, and has done so since an instant.
    pub(crate) fn at_start(start: Ts, since: Ts) -> Stretch {
        Stretch {
            start,
            since,
            reading: 0,
            noted: 0,
            before: 0,
            origin: (IdleOrigin::AtStart, None),
            missed: None,
            newidle: None,
            gate: None,
            is_earlier: false,
        }
    }

    /// The violated time of the stretch in nanoseconds, given the present reading of its CPU.
    pub(crate) fn violated(&self, reading: u64) -> u64 {
        self.before.saturating_add(reading.saturating_sub(self.reading))
    }
}

/// The event that ends an idle stretch, as far as it decides how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StretchEnding {
    cpu: Cpu,
    /// The current of the CPU after the event.
    current: Current,
    /// Whether the event is one of the CPU itself.
    is_here: bool,
    /// Whether a switch takes another task than the idle one away. The switch to that one was not recorded: it ran for an
    /// unknown part of the stretch.
    is_unrecorded: bool,
}

impl StretchEnding {
    /// Takes from an event the facts on the end of the stretch on `cpu`; `state` is the one after the event.
    pub(crate) fn of(event: &SchedEvent, cpu: Cpu, state: &SchedState) -> StretchEnding {
        let is_here = event.cpu == cpu;
        let is_unrecorded = is_here && matches!(event.kind, EventKind::Switch { prev, .. } if !prev.pid.is_idle());
        StretchEnding { cpu, current: state.current(cpu), is_here, is_unrecorded }
    }

    /// Returns the end of a stretch that began at `since`; `ran` is the wait of the task that runs there now.
    pub(crate) fn end(&self, since: Ts, ran: Option<Wait>) -> (IdleEnd, Option<MoveKey>) {
        let ran = ran.filter(|_| self.is_here);
        let end = match (self.current, ran) {
            _ if self.is_unrecorded => IdleEnd::Unknown,
            (Current::Offline, _) => IdleEnd::Offline,
            // It waited elsewhere, and came unseen.
            (Current::Task(_), Some(wait)) if wait.cpu != self.cpu => IdleEnd::Unknown,
            // It had been queued there before the CPU went idle, by whatever way.
            (Current::Task(_), Some(wait)) if !(wait.on_idle && wait.since >= since) => IdleEnd::Released,
            (Current::Task(_), Some(wait)) => match wait.came.0 {
                WaitOrigin::Woken(..) => IdleEnd::Woken,
                WaitOrigin::Forked => IdleEnd::Forked,
                WaitOrigin::Moved(cause) => return (IdleEnd::Moved(cause), wait.came.1),
                WaitOrigin::Preempted(_) | WaitOrigin::HeldBack | WaitOrigin::Overtaken => IdleEnd::Released,
                WaitOrigin::Unthrottled => IdleEnd::Released,
                WaitOrigin::AtStart | WaitOrigin::Unknown => IdleEnd::Unknown,
            },
            _ => IdleEnd::Unknown,
        };
        (end, None)
    }
}
