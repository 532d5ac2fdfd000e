//! The parts of both sums for which the host kept the vCPUs of a guest from running (`docs/questions/why.md#vcpu-not-running`).

use sched::probe::Probe;
use sched::{Affinity, Analysis, Cpu, CpuSet, Dur, EventKind, SchedEvent, SchedState, Task, Ts};
use serde::Serialize;
use session::host::Vcpus;
use session::vcpus::{VcpuChanges, VcpuState};
use std::fmt::Write;
use workcons::violation::{FollowedSets, Membership};
use workcons::{Options, Waiters};

#[cfg(test)]
mod tests;

/// The parts of the waiting and of the idling in violation for which the host kept the vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct NotRunning {
    /// The part of the waiting on CPUs whose vCPU was kept, in task·nanoseconds: the running task there did not run either.
    pub(crate) waiting_ns: Dur,
    /// The part of the waiting on CPUs whose vCPU the host's recording does not show, in task·nanoseconds.
    pub(crate) waiting_unknown_ns: Dur,
    /// The part of the idling of CPUs whose vCPU was kept, in CPU·nanoseconds: they could have run no task.
    pub(crate) idling_ns: Dur,
    /// The part of the idling of CPUs whose vCPU the host's recording does not show, in CPU·nanoseconds.
    pub(crate) idling_unknown_ns: Dur,
}

/// A CPU of the guest.
#[derive(Clone, Copy, Debug)]
struct GuestCpu {
    vcpu: VcpuState,
    /// The number of counted waiters, if the CPU is in O.
    waiters: u64,
    /// Whether the CPU is in I.
    idles: bool,
}

/// The waiters and the idle CPUs of the sets whose vCPUs are kept, and those whose vCPUs are unknown.
#[derive(Clone, Copy, Debug, Default)]
struct Present {
    waiters: u64,
    idle: u64,
    unknown_waiters: u64,
    unknown_idle: u64,
}

/// The analysis of vCPUs that were kept from running while work conservation was violated. An event costs as much as it changes: the sums
/// over the CPUs follow the sets of `workcons` and the changes of the vCPUs.
pub(crate) struct VcpusNotRunning<'o> {
    options: &'o Options<'o>,
    /// The CPUs that tasks may use; nothing where every waiter counts, wherever it may run.
    affinity: Option<&'o Affinity>,
    followed: FollowedSets,
    /// The changes of vCPUs that are still to come.
    changes: VcpuChanges<'o>,
    cpus: Vec<GuestCpu>,
    present: Present,
    /// The CPUs of I and O, where the CPUs are known that tasks may use.
    concerned: CpuSet,
    is_violated: bool,
    since: Ts,
    sums: NotRunning,
}

impl<'o> VcpusNotRunning<'o> {
    /// Returns the analysis of these vCPUs.
    pub(crate) fn new(options: &'o Options<'o>, vcpus: &'o Vcpus) -> VcpusNotRunning<'o> {
        let affinity = options.affinity.filter(|_| options.waiters != Waiters::All);
        let mut this = VcpusNotRunning {
            options,
            affinity,
            followed: FollowedSets::new(&options.topology, affinity),
            changes: VcpuChanges::new(&vcpus.vcpus),
            cpus: Vec::new(),
            present: Present::default(),
            concerned: CpuSet::default(),
            is_violated: false,
            since: Ts(0),
            sums: NotRunning::default(),
        };
        for vcpu in &vcpus.vcpus {
            this.change(vcpu.vcpu, |cpu| cpu.vcpu = VcpuState::Free);
        }
        this
    }

    fn way(&self) -> usize {
        self.options.waiters as usize
    }

    /// Changes a CPU, and the sums over all CPUs with it.
    fn change(&mut self, cpu: Cpu, change: impl FnOnce(&mut GuestCpu)) {
        if cpu.index() >= self.cpus.len() {
            // A CPU without a thread on the host is not shown by its recording.
            self.cpus.resize(cpu.index() + 1, GuestCpu { vcpu: VcpuState::Unknown, waiters: 0, idles: false });
        }
        let cpu = &mut self.cpus[cpu.index()];
        if let Some((waiters, idle)) = self.present.of(cpu.vcpu) {
            (*waiters, *idle) = (*waiters - cpu.waiters, *idle - u64::from(cpu.idles));
        }
        change(cpu);
        if let Some((waiters, idle)) = self.present.of(cpu.vcpu) {
            (*waiters, *idle) = (*waiters + cpu.waiters, *idle + u64::from(cpu.idles));
        }
    }

    /// Accounts for the time until an instant, in which vCPUs can have changed.
    fn pass(&mut self, to: Ts) {
        while self.changes.at().is_some_and(|at| at <= to) {
            let Some((at, cpu, state)) = self.changes.next() else { break };
            self.account(at);
            self.change(cpu, |cpu| cpu.vcpu = state);
        }
        self.account(to);
    }

    /// Accounts for the time until an instant, in which nothing has changed.
    fn account(&mut self, to: Ts) {
        let ns = to.since(self.since).0;
        self.since = self.since.max(to);
        if !self.is_violated {
            return;
        }
        let Present { waiters, idle, unknown_waiters, unknown_idle } = self.present;
        let sums = &mut self.sums;
        for (sum, number) in [
            (&mut sums.waiting_ns, waiters),
            (&mut sums.idling_ns, idle),
            (&mut sums.waiting_unknown_ns, unknown_waiters),
            (&mut sums.idling_unknown_ns, unknown_idle),
        ] {
            sum.0 = sum.0.saturating_add(ns.saturating_mul(number));
        }
    }

    /// Takes the load of a CPU, whose waiters have come and gone.
    fn settle(&mut self, cpu: Cpu, state: &SchedState) {
        let way = self.way();
        self.followed.sets.update(cpu, self.options.load(cpu, state));
        if self.affinity.is_none() {
            let of = self.followed.sets.membership(cpu, way);
            let waiters = u64::from(self.followed.sets.waiters(cpu, way));
            self.change(cpu, |cpu| {
                cpu.waiters = if of.includes(Membership::Overloaded) { waiters } else { 0 };
                cpu.idles = of.includes(Membership::Idle);
            });
        }
    }

    /// Takes the sets as they are once all CPUs of an event were settled.
    fn update(&mut self) {
        let way = self.way();
        self.is_violated = self.followed.sets.violation(way).holds();
        let Some(reach) = self.followed.sets.reach() else { return };
        let (waiters, pairs) = (reach.waiters_in_violation(way), reach.pairs(way).unwrap_or_default());
        let mut concerned = pairs.idle.clone();
        concerned.add(&pairs.overloaded);
        for cpu in std::mem::replace(&mut self.concerned, concerned).cpus() {
            self.change(cpu, |cpu| (cpu.waiters, cpu.idles) = (0, false));
        }
        for (cpu, number) in waiters {
            self.change(cpu, |cpu| cpu.waiters = number.into());
        }
        for cpu in pairs.idle.cpus() {
            self.change(cpu, |cpu| cpu.idles = true);
        }
    }
}

impl Present {
    /// The numbers of waiters and of idle CPUs with a vCPU of this state; nothing for one that was not kept.
    fn of(&mut self, vcpu: VcpuState) -> Option<(&mut u64, &mut u64)> {
        match vcpu {
            VcpuState::Free => None,
            VcpuState::Kept => Some((&mut self.waiters, &mut self.idle)),
            VcpuState::Unknown => Some((&mut self.unknown_waiters, &mut self.unknown_idle)),
        }
    }
}

impl Analysis for VcpusNotRunning<'_> {
    type Output = NotRunning;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.pass(start);
        let assumed = self.options.assume_idle.iter().copied();
        let cpus: Vec<Cpu> = state.observed().chain(state.unobserved_queues()).chain(assumed).collect();
        let (options, way) = (self.options, self.way());
        for cpu in cpus {
            let count = |task: &Task, cpu| u8::from(options.counts(task, cpu, state)) << way;
            self.followed.begin(cpu, state, self.affinity, count);
            self.settle(cpu, state);
        }
        self.update();
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        let (options, way) = (self.options, self.way());
        if !state.spans().is_empty() || !state.touched().is_empty() {
            self.pass(event.ts);
            let count = |task: &Task, cpu| u8::from(options.counts(task, cpu, state)) << way;
            self.followed.follow(state, self.affinity, count);
            for cpu in state.touched() {
                self.settle(*cpu, state);
            }
            self.update();
        }
        if let EventKind::Probe { probe: Probe::Allows(pid, _), .. } = event.kind {
            self.pass(event.ts);
            self.followed.renew(pid, self.affinity, state);
            self.update();
        }
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> NotRunning {
        self.pass(end);
        self.sums
    }
}

/// The table for people; empty where no host is named. `sums`: the whole waiting and the whole idling.
pub(crate) fn text(found: Option<&NotRunning>, sums: (Dur, Dur)) -> String {
    let Some(found) = found else { return String::new() };
    let mut out =
        format!("\n{:<32}  {:>12}  {:>6}  {:>12}\n", "vCPU not running: the host kept", "time", "share", "unknown");
    let rows = [
        ("waiting in violation", found.waiting_ns, found.waiting_unknown_ns, sums.0),
        ("idling in violation", found.idling_ns, found.idling_unknown_ns, sums.1),
    ];
    for (name, kept, unknown, all) in rows {
        let share = 100.0 * kept.0 as f64 / all.0.max(1) as f64;
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {name:<30}  {:>10.4} s  {share:>5.1}%  {:>10.4} s", kept.seconds(), unknown.seconds());
    }
    out
}
