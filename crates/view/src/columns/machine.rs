//! A column of the whole machine: running and waiting tasks, and the violation of work conservation.

use crate::columns::tree::ColumnSummary;
use sched::CpuCounts;

/// The numbers of the machine at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MachineNow {
    running: u32,
    waiting: u32,
    violated: bool,
}

impl MachineNow {
    /// The numbers of a state.
    pub(crate) fn of(counts: &CpuCounts, violated: bool) -> MachineNow {
        MachineNow { running: counts.running(), waiting: counts.waiting, violated }
    }

    /// Whether a CPU idles while a task that can be moved waits on another.
    pub(crate) fn is_violated(self) -> bool {
        self.violated
    }
}

/// The content of a column of the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct MachineColumn {
    ns: u64,
    running: u64,
    waiting: u64,
    most_waiting: u32,
    violated: u64,
}

/// The bytes of a column.
pub(crate) const SIZE: usize = 16;

impl ColumnSummary for MachineColumn {
    type Now = MachineNow;

    fn pass(&mut self, now: &MachineNow, ns: u64) {
        self.ns += ns;
        self.running = self.running.saturating_add(ns.saturating_mul(now.running.into()));
        self.waiting = self.waiting.saturating_add(ns.saturating_mul(now.waiting.into()));
        self.most_waiting = self.most_waiting.max(now.waiting);
        self.violated += if now.violated { ns } else { 0 };
    }

    fn absorb(&mut self, finer: &mut MachineColumn) {
        let MachineColumn { ns, running, waiting, most_waiting, violated } = std::mem::take(finer);
        self.ns += ns;
        self.running = self.running.saturating_add(running);
        self.waiting = self.waiting.saturating_add(waiting);
        self.most_waiting = self.most_waiting.max(most_waiting);
        self.violated += violated;
    }

    fn is_empty(&self) -> bool {
        self.ns == 0
    }

    /// Four numbers of 32 bits, as the page reads them.
    fn encode(&mut self, out: &mut Vec<u8>) {
        let of = |sum: u64| sum as f64 / self.ns.max(1) as f64;
        for number in [of(self.running), of(self.waiting), f64::from(self.most_waiting), of(self.violated)] {
            out.extend((number as f32).to_le_bytes());
        }
    }

    fn skip(bytes: &[u8]) -> Option<&[u8]> {
        bytes.get(SIZE..)
    }
}
