//! Reads Perfetto traces: their events of ftrace are the events.
//!
//! In goes a file of packets (`.pftrace`, `.perfetto-trace`), whole or with compressed packets in it, as Perfetto's recorder, scxtop or
//! systing write it. Out comes a [`parse::Trace`], as one of a trace.dat is ([`open`]): compact switches and wakings, plain events, and
//! events that Perfetto has no message for; names and processes of tasks beside them. What Perfetto records of programs (track events,
//! profiles) is left out. Nothing here panics, whatever the bytes. Begin reading in `scan.rs`, the one pass over the packets, then
//! `bundle.rs`.
//!
//! Messages are read field by field, without a library for protocol buffers: a packet can be as long as the file, as those that hold all
//! events of a CPU are, and a library makes a message of it in memory. The fields that are read stand beside the code that does, those of
//! events in `events.txt`.
//!
//! ```
//! use parse::{Options, Source};
//!
//! // A packet with a timestamp, and no events.
//! let source = Source::Memory(vec![0x0a, 2, 0x40, 7]);
//! assert!(perfetto::is_perfetto(&source));
//! assert!(perfetto::open(&source, Options::default()).is_err());
//! ```
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod ahead;
mod bundle;
mod compact;
mod event;
mod generic;
mod limits;
mod messages;
mod scan;
mod table;
mod tasks;
#[cfg(test)]
mod tests;
mod wire;

pub use messages::{EventMessage, EventMessages};

use parse::{Error, Options, Source, Trace};

/// Whether a file is a Perfetto trace, by its first packet.
#[must_use]
pub fn is_perfetto(source: &Source) -> bool {
    let head = source.get(&(0..source.size().min(4096))).unwrap_or_default();
    wire::looks_like_packets(&head, source.size())
}

/// Opens a Perfetto trace.
///
/// # Errors
///
/// No events of ftrace in it, or those of the temporary file.
pub fn open(source: &Source, options: Options) -> Result<Trace, Error> {
    let recording = scan::recording(source)?;
    Trace::of_recording(recording, options)
}

/// Reads all records in time order; returns their number. The fuzz target calls this function.
#[doc(hidden)]
#[must_use]
pub fn fuzz(bytes: &[u8]) -> u64 {
    let trace = open(&Source::Memory(bytes.to_vec()), Options { threads: 1, ..Options::default() });
    trace.map_or(0, |trace| transcript::records_in_order(&trace))
}
