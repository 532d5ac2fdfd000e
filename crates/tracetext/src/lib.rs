//! Reads printed traces: a line of text for each event.
//!
//! In goes what `trace-cmd report` (also with `-t`, `-R`, `-l`, `-N`), the kernel's `trace` and `trace_pipe`, or `perf script` (also with
//! `--ns`, and any `-F` that has PID, CPU, time and event) printed; as it is, in a page (HTML) of systrace or
//! trace2html, or in JSON of a trace viewer (`wrapped`). Out comes a [`parse::Trace`], as one of a trace.dat is ([`open`]).
//! Times with six digits are ordered as their lines are. Nothing here panics, whatever the bytes. Begin reading in `line.rs`, what a line
//! says, then `fields.rs`, what its event says, and `parsed.rs`, which other threads do.
//!
//! ```
//! use parse::{Options, Source};
//!
//! let line = "  <idle>-0  [001] d..2. 12.000350: sched_waking: comm=cat pid=7 prio=120 target_cpu=001\n";
//! let source = Source::Memory(line.into());
//! assert!(tracetext::is_text(&source));
//! let trace = tracetext::open(&source, Options::default()).unwrap();
//! assert_eq!(trace.start(), Some(sched::Ts(12_000_350_000)));
//! ```
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod fields;
mod limits;
mod line;
mod lines;
mod parsed;
mod scan;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_blocks;
#[cfg(test)]
mod tests_of_wrappings;
mod workers;
mod wrapped;

use line::PrintedLine;
use lines::BlockCutter;
use parse::{Error, Options, Source, Trace};
use std::ops::ControlFlow;
use wrapped::Wrapping;

/// Bytes in which a text shows that it is one.
const HEAD: u64 = 64 << 10;

/// Whether a file is a printed trace: its beginning has a line with an event, and no byte of a binary file; or it is JSON or a page with such a
/// line, which may be anywhere in it.
#[must_use]
pub fn is_text(source: &Source) -> bool {
    let head = source.get(&(0..source.size().min(HEAD))).unwrap_or_default();
    let is_event = |line: &[u8]| matches!(PrintedLine::of(line), PrintedLine::Event(_));
    if Wrapping::of(&head) == Wrapping::Nothing {
        return !head.contains(&0) && head.split(|byte| *byte == b'\n').any(is_event);
    }
    let mut cutter = BlockCutter::default();
    let mut is_found = false;
    wrapped::text(source, &mut |piece| {
        is_found = cutter.add(piece) && lines::lines(&cutter.take(Vec::new())).any(is_event);
        if is_found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    is_found || lines::lines(&cutter.end().0).any(is_event)
}

/// Opens a printed trace.
///
/// # Errors
///
/// No line with an event in it, or those of the temporary file.
pub fn open(source: &Source, options: Options) -> Result<Trace, Error> {
    let recording = scan::recording(source, options.threads)?;
    Trace::of_recording(recording, options)
}

/// Reads all records in time order; returns their number. The fuzz target calls this function.
#[doc(hidden)]
#[must_use]
pub fn fuzz(bytes: &[u8]) -> u64 {
    let trace = open(&Source::Memory(bytes.to_vec()), Options { threads: 1, ..Options::default() });
    trace.map_or(0, |trace| transcript::records_in_order(&trace))
}
