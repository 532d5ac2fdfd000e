//! The time on the path for which the host kept the vCPUs of a guest from running (`docs/questions/path.md#vcpu-not-running`).

use crate::Path;
use crate::chain::SegmentKind;
use sched::Dur;
use serde::Serialize;
use session::host::Vcpus;
use std::fmt::Write;

/// The time on the path for which the vCPU did not run, since the host kept it from running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct NotRunning {
    /// The part of the running time for which the vCPU of the task was kept, in nanoseconds.
    pub(crate) running_ns: u64,
    /// The part of the queued time for which the vCPU of the run queue was kept, in nanoseconds.
    pub(crate) queued_ns: u64,
    /// The running and queued time for which the host's recording does not show the vCPU, in nanoseconds.
    pub(crate) unknown_ns: u64,
}

impl NotRunning {
    /// The sums over a path.
    pub(crate) fn of(path: &Path, vcpus: &Vcpus) -> NotRunning {
        let mut sums = NotRunning::default();
        for segment in &path.path {
            let sum = match segment.kind {
                SegmentKind::Running => &mut sums.running_ns,
                SegmentKind::Queued => &mut sums.queued_ns,
                _ => continue,
            };
            let length = segment.length();
            let within = |cpu| vcpus.within(cpu, segment.start_ns, segment.end_ns);
            let (kept, unknown) = segment.cpu.map_or((0, length), within);
            *sum = sum.saturating_add(kept);
            sums.unknown_ns = sums.unknown_ns.saturating_add(unknown);
        }
        sums
    }

    /// The time on the path for which the vCPU was kept.
    pub(crate) fn kept(&self) -> Dur {
        Dur(self.running_ns.saturating_add(self.queued_ns))
    }

    /// The table of a path of this length.
    pub(crate) fn text(&self, path: &Path, vcpus: &Vcpus) -> String {
        let length = path.times.total().max(1);
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "\n{:<26}  {:>9}  {:>7}", "vCPU not running", "time", "share");
        for (name, ns) in [
            ("running in the guest", self.running_ns),
            ("queued in the guest", self.queued_ns),
            ("unknown", self.unknown_ns),
        ] {
            let (time, share) = (Dur(ns).seconds(), 100.0 * ns as f64 / length as f64);
            let _ = writeln!(out, "  {name:<24}  {time:>7.4} s  {share:>6.1}%");
        }
        let _ = writeln!(out, "  (the host kept the vCPU: parts of the times above, by {})", vcpus.recording);
        out
    }
}
