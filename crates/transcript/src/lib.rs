//! What readers of other formats share: their events, written as ftrace has them.
//!
//! In go events with named fields ([`Transcript::event`], [`Transcript::record`]) in the order of a file, losses, and facts about the
//! recording; out comes a [`parse::Recording`], which [`parse::Trace::of_recording`] takes. The event formats are made up here, as a
//! kernel would describe such records. Records are sorted by CPU and time in constant memory: compressed, beyond 32 MiB in a temporary
//! file without a name. Begin reading in `writer.rs`, then `sorter.rs` and `units.rs`.
//!
//! ```
//! use transcript::{At, FieldDef, FieldKind, Transcript, FieldValue};
//!
//! let mut transcript = Transcript::default();
//! let event = transcript.event("power", "cpu_idle", &[FieldDef::new("state", FieldKind::Unsigned(4))]).unwrap();
//! transcript.record(At { cpu: 3, time: 1_000, ..At::default() }, event, &[FieldValue::Number(1)]).unwrap();
//! let recording = transcript.finish(Default::default()).unwrap();
//! let trace = parse::Trace::of_recording(recording, Default::default()).unwrap();
//! assert_eq!(trace.start(), Some(sched::Ts(1_000)));
//! ```
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod formats;
mod limits;
mod prints;
mod run;
mod sorted;
mod sorter;
#[cfg(test)]
mod tests;
mod units;
mod writer;

pub use formats::{EventNumber, FieldDef, FieldKind, FieldValue, RecordLayout};
pub use limits::expanded_limit;
pub use sorted::Sorted;
pub use writer::{At, Transcript, TranscriptFacts};

/// Reads all records of a trace, whose times must not step back; returns their number. For fuzz targets of formats that become transcripts.
#[doc(hidden)]
#[must_use]
pub fn records_in_order(trace: &parse::Trace) -> u64 {
    let (mut records, mut last) = (0u64, sched::Ts::MIN);
    trace.records(&mut |record| {
        assert!(record.ts >= last, "the records are in order");
        (last, records) = (record.ts, records.saturating_add(1));
        std::ops::ControlFlow::Continue(())
    });
    records
}
