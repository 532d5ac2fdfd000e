//! Limits on the counts and lengths that a file sets. `docs/limits.md` has the table of them.

/// Bytes of one event. The kernel's largest records have 4 KiB.
pub(crate) const EVENT: u64 = 64 << 10;

/// Bytes of a message about the system, of the description of an event, or of a process.
pub(crate) const MESSAGE: u64 = 1 << 20;

/// Command names of one bundle, and the parts of one of its arrays.
pub(crate) const NAMES: usize = 1 << 20;
pub(crate) const PARTS: usize = 1 << 10;

/// Names of tasks, and records of their processes. The kernel has at most 4,194,304 tasks.
pub(crate) const TASKS: usize = 1 << 20;
pub(crate) const PROCESSES: usize = 1 << 22;

/// Kinds of events that Perfetto has no message for.
pub(crate) const GENERIC: usize = 1 << 13;

/// Fields of one of them that are kept: one more than it may have, so that the transcript refuses it. Bytes of its name.
pub(crate) const FIELDS: usize = 65;
pub(crate) const NAME: usize = 256;

/// Sequences of packets with events.
pub(crate) const SEQUENCES: usize = 1 << 12;

/// Bytes of a compressed packet, and of what it decompresses to. Perfetto compresses half a megabyte at a time.
pub(crate) const COMPRESSED: u64 = 64 << 20;

/// Bytes that all compressed packets of a file may decompress to: these for every file, and for each byte of it as many more.
pub(crate) fn decompressed(file: u64) -> u64 {
    file.saturating_mul(64).saturating_add(32 << 20)
}
