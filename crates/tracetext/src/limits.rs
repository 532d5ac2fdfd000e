//! Limits on the counts and lengths that a file sets. `docs/limits.md` has the table of them.

/// Bytes of a line. The kernel prints at most a page.
pub(crate) const LINE: usize = 64 << 10;

/// Fields of an event; what follows belongs to the last one.
pub(crate) const FIELDS: usize = 48;

/// Bytes of an event of the plugins, which are searched for every place where its parts fit. A switch has at most 101.
pub(crate) const PLUGIN: usize = 128;

/// Times that data of a page may be compressed: trace2html compresses files that are compressed already once more.
pub(crate) const PACKED: usize = 2;

/// Events with fields of their own whose numbers are looked up by the names in the line, and bytes of these names; of others the format is
/// looked up.
pub(crate) const NAMED: usize = 1 << 13;
pub(crate) const KIND: usize = 1 << 10;
