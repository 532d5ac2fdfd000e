//! A streaming reader of trace-cmd's `trace.dat` files.
//!
//! [`Trace::open`] opens a file (version 6 or 7, compressed or not, of any byte order, word size and
//! page size), reads its header and keeps no more than that. Events come out in one of three ways:
//!
//! * [`Trace::events`]: the scheduler's events of all CPUs in time order, for a [`sched::Pass`];
//! * [`Trace::cpu_reader`]: those of one CPU, in its own order, from any instant on;
//! * [`Trace::records`]: every record of every kind in time order, its fields read on demand.
//!
//! Nothing here panics, whatever the bytes. What leaves no event to trust is an [`Error`];
//! everything else is a [`sched::Diagnostic`] with a count, and the rest of the file is read.
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod bytes;
mod chunk;
mod clock;
mod count;
mod error;
mod expr;
mod format;
mod graph;
mod guest;
mod header;
mod limits;
mod lock_sleep;
mod merge;
mod offline;
mod order;
mod page;
mod plan;
mod print;
mod printk;
mod record;
mod seam;
mod shared;
mod source;
mod states;
mod stream;
mod symbols;
mod trace;
mod window;

pub use bytes::Endian;
pub use clock::{CLOCKS, ClockKind};
pub use count::{BufferCounts, Counts, CpuCounts, EventCount};
pub use error::Error;
pub use format::{EventFormat, Field, Shape};
pub use header::{BufferInfo, CpuStat, Version};
pub use plan::Want;
pub use record::{Kept, Record};
pub use trace::{CpuReader, EventStream, Neighbours, Options, Texts, Trace, TraceInfo};
pub use window::Where;

/// The pure parts, for the fuzz targets: bytes in, nothing but counts out.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::chunk::fuzz as chunk;
    pub use crate::format::fuzz as format;
    pub use crate::header::fuzz as header;
    pub use crate::page::fuzz as page;
    pub use crate::printk::fuzz as printk;
}
