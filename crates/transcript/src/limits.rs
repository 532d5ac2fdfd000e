//! Limits on the counts and lengths that a file sets. `docs/limits.md` has the table of them.

/// Kinds of events. A kernel has some 3,000.
pub(crate) const EVENTS: usize = 1 << 13;

/// Fields of an event. The kernel's largest events have some 40.
pub(crate) const FIELDS: usize = 64;

/// Fields of all events: those of a kernel with 3,000 events are some 18,000. Each takes 250 bytes of the formats' text, which is there twice
/// for a while.
pub(crate) const ALL_FIELDS: usize = 1 << 16;

/// Bytes of the name of an event or of a field.
pub(crate) const NAME: usize = 64;

/// Bytes of a text in a record.
pub(crate) const TEXT: usize = 4096;

/// Bytes of a record: places in it have 16 bits.
pub(crate) const PAYLOAD: usize = (1 << 16) - 1;

/// Bytes of sorted records in memory, compressed. More go to a temporary file.
pub(crate) const IN_MEMORY: u64 = 32 << 20;

/// Bytes of a run of records, roughly, before it is compressed.
pub(crate) const RUN: usize = 16 << 10;

/// Bytes in the runs of all CPUs that are not written yet.
pub(crate) const BUFFERED: usize = 32 << 20;

/// CPUs whose buffers keep their memory when they are written: with more of them, memory that is no longer used would add up.
pub(crate) const KEPT: usize = 256;

/// Sequences of records of one CPU, each in order. A record that fits in none has the time of the latest one there.
pub(crate) const STREAMS: usize = 8;

/// The number of bytes that a compressed file of this size, or compressed parts of it together, may become. Texts of traces are a twentieth when
/// they are compressed.
#[must_use]
pub fn expanded_limit(file: u64) -> u64 {
    file.saturating_mul(64).saturating_add(32 << 20)
}
