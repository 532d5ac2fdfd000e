//! Limits on the counts and lengths that a file sets. `docs/limits.md` has the table of them.

/// Events that the recorder opened (`perf_event_attr`). A kernel has some 3,000 tracepoints.
pub(crate) const ATTRS: usize = 1 << 16;

/// Bytes of one `perf_event_attr`. Kernels up to 7.2 have 144 at most.
pub(crate) const ATTR: u64 = 4096;

/// Numbers of events (one per event and CPU), of all events together.
pub(crate) const IDS: usize = 1 << 22;

/// Bytes of the tracing data: event formats and symbols. A kernel has 2 MB of formats, and 15 MB of symbols.
pub(crate) const TRACING_DATA: u64 = 64 << 20;

/// Bytes of another part of the header. The topology of a machine with 8,192 CPUs has some 500 KB.
pub(crate) const FEATURE: u64 = 4 << 20;

/// Words of the command line.
pub(crate) const ARGUMENTS: usize = 4096;

/// Places of CPUs in cores, caches, nodes and packages, counted once for each list that a CPU is in. A machine with 8,192
/// CPUs has some 40,000.
pub(crate) const PLACES: usize = 1 << 20;

/// CPUs with events: the largest CPU number that a machine can have.
pub(crate) const CPUS: usize = sched::Cpu::LIMIT as usize;

/// Mapped files of all processes, and different files among them.
pub(crate) const MAPPINGS: usize = 1 << 20;
pub(crate) const MODULES: usize = 1 << 16;

/// Bytes of the name of a mapped file: the longest path of the kernel.
pub(crate) const MODULE_NAME: usize = 4096;

/// Names of tasks. The kernel has at most 4,194,304 tasks.
pub(crate) const NAMES: usize = 1 << 20;

/// Records of the cgroups, and of the processes, of tasks: those that differ from the one before of the task.
pub(crate) const MEMBERSHIPS: usize = 1 << 22;

/// Paths of cgroups, and the bytes of one. The kernel's longest path has 4,096.
pub(crate) const PATHS: (usize, usize) = (1 << 16, 4096);

/// Stretches of records of one CPU that are read where they are in the file. Beyond this number the records are sorted
/// by CPU into a temporary file first, in stretches of [`RUN`] bytes: the index of a file stays small.
pub(crate) const RUNS: usize = if cfg!(test) { 1000 } else { 1 << 20 };

/// Bytes of such a stretch, roughly.
pub(crate) const RUN: usize = 16 << 10;

/// Bytes of a unit whose times overlap with those behind it, in a recording of `file` bytes with this number of CPUs: larger ones
/// are cut, and times step back there. A unit of each CPU is in memory at once; overlaps as long as a round of the recorder are
/// no longer than the recording.
pub(crate) fn unit(file: u64, cpus: usize) -> u64 {
    (file.saturating_add(32 << 20) / cpus.max(1) as u64).clamp(64 << 10, 16 << 20)
}

/// Bytes that compressed records may decompress to: these for every file, and for each byte of it as many more. perf's
/// zstd makes a fifth to a tenth of recordings.
pub(crate) fn decompressed(file: u64) -> u64 {
    file.saturating_mul(64).saturating_add(32 << 20)
}
