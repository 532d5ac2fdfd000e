//! The origin of softirqs: the running task, as it sends on loopback, or an interrupt (`docs/questions/path.md#loopback`).
//!
//! The kernel runs softirqs where it enables them again: as it leaves an interrupt, or the part of a task that had disabled them. An event of
//! the task itself shows that, unless its flags say that softirqs are disabled.

use super::SchedState;
use crate::event::{Cpu, EventKind, SchedEvent, probe::Probe};
use serde::{Deserialize, Serialize};

/// The flag of events where softirqs are disabled (6.3 and later).
const DISABLED: u8 = 0x80;
/// The softirqs that send and receive packets (`NET_TX_SOFTIRQ`, `NET_RX_SOFTIRQ`).
const NETWORK: [u8; 2] = [2, 3];

/// The origin of the softirqs that a CPU is to run, or runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SoftirqOrigin {
    /// No event shows it.
    #[default]
    Unknown,
    /// The running task sent packets, and nothing else is to be done.
    Task,
    /// Interrupts; or the running task, for something else than packets.
    Interrupt,
    /// The packets of the running task, and something else.
    Both,
}

impl SoftirqOrigin {
    /// Whether no event shows it.
    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's form
    pub fn is_unknown(&self) -> bool {
        *self == SoftirqOrigin::Unknown
    }
}

/// Takes an event on a CPU for which softirqs were raised: by an event of the task itself they have run.
#[cold]
#[inline(never)]
pub(super) fn after_raise(raised: &mut SoftirqOrigin, event: &SchedEvent) {
    let raises = matches!(event.kind, EventKind::Probe { probe: Probe::Raises { .. }, .. });
    if event.in_task() && event.flags & DISABLED == 0 && !raises {
        *raised = SoftirqOrigin::Unknown;
    }
}

impl SchedState {
    /// Returns the origin of the softirqs that a CPU is to run, or runs, where `irq:softirq_raise` shows it.
    pub fn softirq_origin(&self, cpu: Cpu) -> SoftirqOrigin {
        self.cpus.get(cpu.index()).map_or(SoftirqOrigin::Unknown, |c| c.raised)
    }

    /// A softirq is raised.
    pub(super) fn raise(&mut self, softirq: u8, event: &SchedEvent) {
        // One that a softirq raises has the origin of that.
        if event.in_softirq() && !event.in_hard_interrupt() {
            return;
        }
        let is_own = event.in_task() && NETWORK.contains(&softirq);
        let origin = if is_own { SoftirqOrigin::Task } else { SoftirqOrigin::Interrupt };
        let raised = &mut self.cpu(event.cpu).raised;
        *raised = match *raised {
            SoftirqOrigin::Unknown => origin,
            known if known == origin => known,
            _ => SoftirqOrigin::Both,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Pid, Ts};

    #[test]
    fn softirqs_have_the_origin_of_those_that_raise_them() {
        use SoftirqOrigin::{Both, Interrupt, Task, Unknown};
        let mut state = SchedState::default();
        let mut at = |flags, kind| {
            state.apply(&SchedEvent { ts: Ts(1), cpu: Cpu(0), pid: Pid(7), flags, kind });
            state.softirq_origin(Cpu(0))
        };
        let raise = |softirq| EventKind::Probe { id: 1, probe: Probe::Raises { softirq } };
        let (hard, soft, other) = (0x08, 0x10, EventKind::Other { id: 2 });
        assert_eq!(at(0, raise(3)), Task);
        // Events of the softirq, and of the task while it has disabled softirqs, come before they have run.
        assert_eq!([at(soft, other), at(soft, raise(3)), at(0x80, other)], [Task; 3]);
        assert_eq!(at(0, other), Unknown);
        assert_eq!([at(hard, raise(3)), at(hard, raise(1)), at(soft, other)], [Interrupt; 3]);
        assert_eq!(at(0x80, raise(3)), Both);
        assert_eq!(at(0, other), Unknown);
        // A task that raises another softirq sends nothing.
        assert_eq!(at(0, raise(9)), Interrupt);
        assert_eq!(at(0, EventKind::Lost { count: None }), Unknown);
    }
}
