//! Periodic balancing as the kernel has it: a CPU that runs a task balances its domains at some of its ticks.
//!
//! The functions are `sched_tick`, `sched_balance_trigger` and `sched_balance_softirq` of `kernel/sched/core.c` and `fair.c` of Linux 6.12; the
//! domains are walked by `sched_balance_domains`. A busy CPU balances a domain of n CPUs each 16 n to 32 n ms, and only if no CPU of its group idles, so
//! that this mends unfair queues rather than idle CPUs. An idle CPU has no tick (`tick_nohz_stop_tick`): it is balanced by [`super::nohz`].

use super::schedule::{Coming, Schedule, Walk};
use crate::engine::Machine;
use sched::Cpu;

/// The state of periodic balancing at a tick.
#[derive(Clone, Debug, Default)]
pub(super) struct Periodic {
    /// The softirq of the latest tick, while it lasts.
    softirq: Option<Walk>,
}

impl Periodic {
    /// The tick of a CPU that runs a task raises the softirq if a balance is due (`sched_balance_trigger`).
    pub(super) fn tick(&mut self, cpu: Cpu, schedule: &Schedule, machine: &Machine<'_>) {
        self.softirq = schedule.is_due(cpu, schedule.now(machine)).then(|| Walk::new(cpu));
    }

    /// The next tasks that the softirq brings.
    pub(super) fn go_on(&mut self, schedule: &mut Schedule, machine: &Machine<'_>) -> Option<Coming> {
        let coming = self.softirq.as_mut()?.go_on(schedule, machine);
        if coming.is_none() {
            self.softirq = None;
        }
        coming
    }
}
