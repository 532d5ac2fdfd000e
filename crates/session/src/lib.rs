//! The parts that all commands share: the arguments that select a trace, a window and tasks; the trace that they open; the
//! output.
//!
//! In go arguments, out come an opened [`Session`] and, once an analysis has run over it, a
//! [`TraceDocument`](document::TraceDocument) in each of the [`Renderings`](formats::Renderings) that were asked for. Begin
//! reading in `trace/session.rs`, then `output/formats.rs`.
//!
//! ```
//! use session::args::length;
//! use session::csv::CsvWriter;
//!
//! assert_eq!(length("100us"), Ok(sched::Dur(100_000)));
//! let mut table = CsvWriter::new(Vec::new(), "pid,command").unwrap();
//! table.row(&[&7, &"a,b"]).unwrap();
//! ```

mod answer;
mod arguments;
pub mod messages;
mod output;
pub mod progress;
mod trace;

pub use answer::{document, over_lanes, section, summary, verdict};
pub use arguments::{args, command_line, groups, page_args, patterns, rows, runs};
pub use output::{atomic_file, csv, formats, inputs, pager, writer};
pub use trace::session::{Session, asked_pieces};
pub use trace::{ext, heading, host, several, stacks, timers, vcpus, warnings};
