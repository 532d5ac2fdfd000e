//! The parts of both sums for which the host kept the vCPUs of a guest from running (`docs/questions/why.md#vcpu-not-running`).

use sched::{Analysis, Cpu, Dur, SchedEvent, SchedState, Ts};
use serde::Serialize;
use session::host::Vcpus;
use std::fmt::Write;
use workcons::Options;

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

/// The analysis of vCPUs that were kept from running while work conservation was violated.
pub(crate) struct VcpusNotRunning<'o> {
    options: &'o Options<'o>,
    vcpus: &'o Vcpus,
    since: Ts,
    /// The CPUs of O with their counted waiters since then.
    waiting: Vec<(Cpu, u64)>,
    /// The CPUs of I.
    idle: Vec<Cpu>,
    sums: NotRunning,
}

impl<'o> VcpusNotRunning<'o> {
    /// Returns the analysis of these vCPUs.
    pub(crate) fn new(options: &'o Options<'o>, vcpus: &'o Vcpus) -> VcpusNotRunning<'o> {
        let (waiting, idle) = (Vec::new(), Vec::new());
        VcpusNotRunning { options, vcpus, since: Ts(0), waiting, idle, sums: NotRunning::default() }
    }

    /// Accounts for the time until `ts`.
    fn pass(&mut self, ts: Ts) {
        let from = self.since;
        self.since = from.max(ts);
        let add = |sum: &mut Dur, ns: u64, times: u64| sum.0 = sum.0.saturating_add(ns.saturating_mul(times));
        for (cpu, waiters) in &self.waiting {
            let (kept, unknown) = self.vcpus.within(*cpu, from, self.since);
            add(&mut self.sums.waiting_ns, kept, *waiters);
            add(&mut self.sums.waiting_unknown_ns, unknown, *waiters);
        }
        for cpu in &self.idle {
            let (kept, unknown) = self.vcpus.within(*cpu, from, self.since);
            add(&mut self.sums.idling_ns, kept, 1);
            add(&mut self.sums.idling_unknown_ns, unknown, 1);
        }
    }

    /// Takes over the sets as they are.
    fn look(&mut self, state: &SchedState) {
        self.waiting.clear();
        self.idle.clear();
        let unobserved = self.options.assume_idle.iter().copied().filter(|cpu| !state.is_observed(*cpu));
        let loads: Vec<_> =
            state.observed().chain(unobserved).map(|cpu| (cpu, self.options.load(cpu, state))).collect();
        let mut idle: Vec<(Cpu, bool)> =
            loads.iter().filter(|(_, load)| load.is_idle()).map(|(cpu, _)| (*cpu, false)).collect();
        if idle.is_empty() {
            return;
        }
        let affinity = self.options.affinity.filter(|affinity| affinity.restricts());
        for (cpu, _) in loads.iter().filter(|(_, load)| load.is_overloaded()) {
            let mut waiters = 0;
            for task in state.waiting(*cpu).filter(|task| self.options.counts(task, *cpu, state)) {
                let allowed = affinity.and_then(|affinity| affinity.set(affinity.of(task, *cpu, state)?, state));
                let mut concerns = false;
                for (cpu, is_concerned) in &mut idle {
                    if allowed.is_none_or(|allowed| allowed.has(*cpu)) {
                        (*is_concerned, concerns) = (true, true);
                    }
                }
                waiters += u64::from(concerns);
            }
            if waiters > 0 {
                self.waiting.push((*cpu, waiters));
            }
        }
        self.idle.extend(idle.into_iter().filter(|(_, is_concerned)| *is_concerned).map(|(cpu, _)| cpu));
    }
}

impl Analysis for VcpusNotRunning<'_> {
    type Output = NotRunning;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.since = start;
        self.look(state);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        if !state.touched().is_empty() {
            self.pass(event.ts);
            self.look(state);
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
