//! The pressure of the trace beside that of the kernel's own counters.

use crate::pressure::{MeasuredPressure, Stalled};
use machine::{Cgroup, Machine, Pressure};
use sched::Dur;
use sched::event::CleanText;
use serde::Serialize;
use std::collections::BTreeMap;

/// The least difference that counts as one between the trace and the kernel, in nanoseconds.
const CLOSE_NS: u64 = 2_000_000;

/// The pressure of CPUs on the machine and on cgroups, from the trace and by the kernel.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PressureReport {
    /// The machine, and then the cgroups whose tasks ran or waited, with those above them, the greatest pressure first.
    pub groups: Vec<GroupPressure>,
    /// The reason why the figures of the kernel are left out, if they are.
    pub kernel_unknown: Option<String>,
    /// The time by which the figures of the kernel span more than the trace, in nanoseconds; absent where it is unknown.
    pub kernel_wider_ns: Option<Dur>,
}

/// The pressure of CPUs on the tasks of a cgroup, or of the machine.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupPressure {
    /// The path of the cgroup; absent for the machine.
    pub cgroup: Option<String>,
    /// The time for which some task of the group waited for a CPU, in nanoseconds, by the kernel's rule and from the trace: as if the
    /// kernel summed every two seconds from the first task of the group in the window on.
    pub some_ns: Dur,
    /// The least of that time in nanoseconds, over the instants at which the kernel may have summed.
    pub some_least_ns: Dur,
    /// The greatest of that time in nanoseconds, over the instants at which the kernel may have summed.
    pub some_most_ns: Dur,
    /// The time for which tasks of the group waited for a CPU and none of them ran on it, in nanoseconds, likewise; absent for the
    /// machine, for which the kernel has no such time.
    pub full_ns: Option<Dur>,
    /// The least of that time in nanoseconds, over the instants at which the kernel may have summed.
    pub full_least_ns: Option<Dur>,
    /// The greatest of that time in nanoseconds, over the instants at which the kernel may have summed.
    pub full_most_ns: Option<Dur>,
    /// The CPU time of the tasks of the group, in nanoseconds, from the trace.
    pub run_ns: Dur,
    /// The kernel's figure of `some` between the start and the end of the recording, in nanoseconds; absent where it is unknown.
    pub kernel_some_ns: Option<Dur>,
    /// The kernel's figure of `full`, in nanoseconds, likewise.
    pub kernel_full_ns: Option<Dur>,
    /// The CPU time by the kernel's `cpu.stat`, in nanoseconds, likewise.
    pub kernel_run_ns: Option<Dur>,
    /// Whether the kernel's figures of the pressure are those of the trace within 3 % or 2 ms, and within the time by which they
    /// span more than it; absent where the kernel has none.
    pub agrees: Option<bool>,
}

/// Puts the kernel's figures beside those of the trace, if they span the same time, which `why_not` denies.
pub(crate) fn compare(
    measured: Vec<MeasuredPressure>,
    machine: Option<&Machine>,
    length: Dur,
    why_not: Option<&str>,
) -> PressureReport {
    let machine = machine.filter(|_| why_not.is_none());
    let has_figures = machine.is_some_and(|machine| machine.pressure_at_end.is_some());
    let missing = "the machine file has no pressure at the start and at the end of the recording";
    let span = machine.and_then(|machine| machine.pressure_span_us);
    let wider = span.map(|us| Dur(us.saturating_mul(1000).saturating_sub(length.0)));
    let mut groups: Vec<GroupPressure> =
        measured.into_iter().map(|of| beside(of, machine, wider.unwrap_or(Dur(0)))).collect();
    if let [_, cgroups @ ..] = groups.as_mut_slice() {
        cgroups.sort_by(|a, b| b.some_ns.cmp(&a.some_ns).then_with(|| a.cgroup.cmp(&b.cgroup)));
    }
    let kernel_unknown = why_not.map(str::to_owned).or_else(|| (!has_figures).then(|| missing.to_owned()));
    PressureReport { groups, kernel_unknown, kernel_wider_ns: wider.filter(|_| has_figures) }
}

/// The pressure of a group beside the kernel's figures of it.
fn beside(measured: MeasuredPressure, machine: Option<&Machine>, wider: Dur) -> GroupPressure {
    let MeasuredPressure { cgroup, stalled, least, most, run } = measured;
    let of_cgroup = cgroup.as_deref().and_then(|path| cgroup_of(machine?, path));
    let (pressure, kernel_run_ns) = match (&cgroup, of_cgroup) {
        (None, _) => (machine.and_then(|of| grown(of.pressure, of.pressure_at_end, false)), None),
        (_, Some(of)) => (grown(of.pressure, of.pressure_at_end, of.is_new), used(of)),
        _ => (None, None),
    };
    let full = |of: Stalled| cgroup.is_some().then_some(Dur(of.full));
    let ns = |us: u64| Dur(us.saturating_mul(1000));
    let kernel_some_ns = pressure.map(|pressure| ns(pressure.some_us));
    let kernel_full_ns = pressure.and_then(|pressure| pressure.full_us).filter(|_| cgroup.is_some()).map(ns);
    let is_close = |kernel: Dur, least: u64, most: u64| {
        let most = most.saturating_add(wider.0);
        kernel.0.saturating_add(close(least)) >= least && kernel.0 <= most.saturating_add(close(most))
    };
    let agrees = kernel_some_ns.map(|some| {
        is_close(some, least.some, most.some)
            && kernel_full_ns.is_none_or(|kernel| is_close(kernel, least.full, most.full))
    });
    GroupPressure {
        some_ns: Dur(stalled.some),
        some_least_ns: Dur(least.some),
        some_most_ns: Dur(most.some),
        full_ns: full(stalled),
        full_least_ns: full(least),
        full_most_ns: full(most),
        run_ns: Dur(run),
        kernel_some_ns,
        kernel_full_ns,
        kernel_run_ns,
        agrees,
        cgroup,
    }
}

/// The difference that counts as none: 3 %, or 2 ms.
fn close(ns: u64) -> u64 {
    (ns / 100).saturating_mul(3).max(CLOSE_NS)
}

/// The cgroup of a path in the machine file, if it is the only one that has had the path.
fn cgroup_of<'m>(machine: &'m Machine, path: &str) -> Option<&'m Cgroup> {
    let mut found = machine.cgroups.iter().filter(|cgroup| cgroup.path == path);
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// The growth of the totals from the start to the end; those of a new cgroup began at 0.
fn grown(start: Option<Pressure>, end: Option<Pressure>, is_new: bool) -> Option<Pressure> {
    let zero = || Pressure { some_us: 0, full_us: Some(0) };
    let (start, end) = (start.or_else(|| is_new.then(zero))?, end?);
    let full = start.full_us.zip(end.full_us).and_then(|(start, end)| end.checked_sub(start));
    Some(Pressure { some_us: end.some_us.checked_sub(start.some_us)?, full_us: full })
}

/// The CPU time of a cgroup by `cpu.stat`.
fn used(cgroup: &Cgroup) -> Option<Dur> {
    let usage = |stat: &BTreeMap<CleanText, u64>| stat.get("usage_usec").copied();
    let start = usage(&cgroup.stat).or_else(|| cgroup.is_new.then_some(0))?;
    let us = usage(cgroup.stat_at_end.as_ref()?)?.checked_sub(start)?;
    Some(Dur(us.saturating_mul(1000)))
}
