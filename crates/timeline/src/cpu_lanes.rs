//! The lanes of a figure that draws over what every CPU ran.

use sched::{Cpu, Ts};

/// The window and the lanes of a figure.
#[derive(Clone, Debug)]
pub struct CpuLanes {
    /// The start of the window.
    pub from: Ts,
    /// The end of the window.
    pub to: Ts,
    /// The instant that counts as zero: the start of the trace.
    pub zero: Ts,
    /// The CPUs in display order, each with its group.
    pub cpus: Vec<(Cpu, Option<u32>)>,
    /// All CPUs that have a lane, in display order; empty where those of `cpus` are all.
    pub all_cpus: Vec<(Cpu, Option<u32>)>,
}
