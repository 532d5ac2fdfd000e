//! The running kernel: its events, and the memory that it has left for buffers.

use crate::plan::events::Available;
use tracefs::Tracefs;

/// The events of the running kernel.
pub(crate) struct RunningKernel<'t>(pub(crate) &'t Tracefs);

impl Available for RunningKernel<'_> {
    fn has(&self, path: &str) -> bool {
        self.0.has_event(path)
    }

    fn systems_with(&self, name: &str) -> Vec<String> {
        self.0.systems_with(name)
    }
}

/// The memory that is available, in KiB.
pub(crate) fn available_kb() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse().ok()
}
