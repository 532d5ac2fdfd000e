//! A streaming reader of trace-cmd's `trace.dat` files.
//!
//! In goes a file: version 6 or 7, compressed or not, of any byte order, word size and page size. [`Trace::open`] reads its
//! header and keeps no more than that. Events come out in one of three ways:
//!
//! * [`Trace::events`]: the scheduler's events of all CPUs in time order, for a [`sched::Pass`];
//! * [`Trace::cpu_reader`]: those of one CPU, in its own order, from any instant on;
//! * [`Trace::records`]: every record of every kind in time order, its fields read on demand.
//!
//! Begin reading in `trace/mod.rs`, then `ring/page.rs` and `merge/mod.rs`; `docs/trace-dat.md` describes the format.
//!
//! The modules stand in rooms, each of which imports only from lower ones: the base (`bytes`, `error`, `issue`,
//! `limits`, `parallel`), then `text`, `decode`, `file`, `ring`, `merge` `recover`, `trace`, and `cut`, which writes.
//!
//! Nothing here panics, whatever the bytes. A file without an event to trust is an [`Error`];
//! everything else is a [`FileIssue`] with a count, and the rest of the file is read.
//!
//! ```
//! use sched::{Pass, Pid, analysis::RunTime};
//! use testkit::TraceBuilder;
//! use parse::{Options, Trace};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bytes = TraceBuilder::default().events(&testkit::a_wait_beside_an_idle_cpu()).build();
//! // A file is opened with `Trace::open(path, Options::default())`.
//! let trace = Trace::from_bytes(bytes, Options::default())?;
//! assert_eq!(trace.info().version.number, 7);
//! let outcome = Pass::over(trace.events()?).run(RunTime::default)?;
//! assert_eq!(outcome.output.ns_of(Pid(7)), 300);
//! for (what, count, _) in outcome.diagnostics.iter() {
//!     println!("{}", what.line(count));
//! }
//! # Ok(())
//! # }
//! ```
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod bytes;
mod cut;
mod decode;
mod error;
mod file;
mod issue;
mod limits;
mod merge;
mod parallel;
mod recover;
mod ring;
mod text;
mod trace;

pub use bytes::Endian;
pub use cut::{Aliases, CutError, CutPart, DatVersion, Rewriter};
pub use decode::clock::{CLOCKS, ClockKind};
pub use decode::format::{EventFormat, Field, FieldShape};
pub use decode::plan::Want;
pub use error::Error;
pub use file::guest::{Guest, Vcpu};
pub use file::header::{BufferInfo, ModuleInfo, RecorderStat, Version};
pub use file::source::Source;
pub use issue::FileIssue;
pub use ring::records::{UnitRecords, Units};
pub use text::symbols::KernelSymbols;
pub use trace::{
    BufferCounts, CallChains, ChainSample, CpuEventCounts, CpuReader, CpuUnits, EventCount, EventCounts, EventStacks,
    EventStream, Kept, Neighbours, Options, Origin, Record, Recording, StackFrame, StackId, StackKey, StackedEvent,
    TaskRecords, Texts, Trace, TraceInfo, Where,
};

/// The pure parts, for the fuzz targets: bytes in, nothing but counts out.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::file::chunk::fuzz as chunk;
    pub use crate::file::header::fuzz as header;
    pub use crate::ring::page::fuzz as page;
    pub use crate::text::printk::fuzz as printk;
    pub use crate::trace::print::fuzz as format;
}
