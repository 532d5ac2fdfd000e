//! Whether the two clocks agree: events of a guest at which its vCPU did not run (`docs/read-the-numbers.md#host-and-guest`).

use crate::trace::vcpus::VcpuThread;
use crate::trace::warnings::grouped;
use parse::{Error, Trace, Want};
use sched::{Dur, EventKind, EventSource, SchedEvent, Ts};
use serde::Serialize;
use std::ops::ControlFlow;

/// The events of the guest while the host kept their vCPU, which no guest has: the times of both differ by as much as these are inside of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockCheck {
    /// The number of events of CPUs whose vCPU has a thread.
    pub events: u64,
    /// The number of these that lie within a stretch for which the host kept the vCPU.
    pub within_kept: u64,
    /// The greatest distance of such an event from the nearer end of its stretch, in nanoseconds.
    pub furthest_ns: u64,
}

impl ClockCheck {
    /// Checks the events of a guest, in the host's time, from one instant to another.
    pub(super) fn of(guest: &Trace, vcpus: &[VcpuThread], (from, to): (Ts, Ts)) -> Result<ClockCheck, Error> {
        let (mut check, mut places) = (ClockCheck::default(), vec![0; vcpus.len()]);
        guest.events_of(Want::Switches)?.events_from(from, &mut |events| {
            for event in events {
                if event.ts > to {
                    return ControlFlow::Break(());
                }
                check.add(event, vcpus, &mut places);
            }
            ControlFlow::Continue(())
        })?;
        Ok(check)
    }

    /// The finding as a sentence, if the times disagree.
    pub(super) fn sentence(&self) -> Option<String> {
        let ClockCheck { events, within_kept, furthest_ns } = *self;
        (within_kept > 0).then(|| {
            format!(
                "{} of {} events of the guest lie within time for which the host kept their vCPU, by up to {}: the two clocks differ by as much, or switches of the host are missing",
                grouped(within_kept),
                grouped(events),
                Dur(furthest_ns).human()
            )
        })
    }

    /// Adds an event; those of each CPU come in the order of time. `places`: the first stretch of each vCPU that is not over.
    fn add(&mut self, event: &SchedEvent, vcpus: &[VcpuThread], places: &mut [usize]) {
        if matches!(event.kind, EventKind::Lost { .. }) {
            return;
        }
        let Ok(number) = vcpus.binary_search_by_key(&event.cpu, |vcpu| vcpu.vcpu) else { return };
        self.events += 1;
        let (stretches, place) = (&vcpus[number].stretches, &mut places[number]);
        while stretches.get(*place).is_some_and(|stretch| stretch.to <= event.ts) {
            *place += 1;
        }
        let Some(stretch) = stretches.get(*place).filter(|s| !s.is_unknown && s.from < event.ts) else { return };
        self.within_kept += 1;
        self.furthest_ns = self.furthest_ns.max(event.ts.since(stretch.from).min(stretch.to.since(event.ts)).0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::vcpus::VcpuStretch;
    use sched::{Comm, Cpu, Pid};

    #[test]
    fn events_of_a_kept_vcpu_show_that_clocks_differ() {
        let stretch = |from, to, is_unknown| VcpuStretch { from: Ts(from), to: Ts(to), is_unknown };
        let stretches = vec![stretch(100, 200, false), stretch(200, 300, true), stretch(400, 500, false)];
        let (times, command) = (Default::default(), Comm::EMPTY);
        let vcpus = [VcpuThread { vcpu: Cpu(1), pid: Pid(7), command, times, stretches }];
        let (mut check, mut places) = (ClockCheck::default(), [0]);
        // At the ends of a stretch, within one that is unknown, between two and on another CPU nothing is wrong.
        let kind = EventKind::Exit { pid: Pid(9) };
        for (ts, cpu) in
            [(50, 1), (100, 1), (150, 0), (170, 1), (190, 1), (200, 1), (250, 1), (350, 1), (410, 1), (500, 1)]
        {
            check.add(&SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(9), flags: 0, kind }, &vcpus, &mut places);
        }
        assert_eq!(check, ClockCheck { events: 9, within_kept: 3, furthest_ns: 30 });
    }
}
