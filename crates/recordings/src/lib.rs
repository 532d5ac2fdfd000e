//! The one door: opens a recording of any format that is read.
//!
//! In goes a file, told by its content and not by its name: a trace.dat of trace-cmd, a perf.data of perf, a Perfetto trace, a printed
//! trace, each as it is or compressed as a whole by gzip or zstd; or the kernel's own buffers in a folder or a tar archive (`raw.rs`). Out comes a [`parse::Trace`] ([`open`]); nothing behind it knows where the events come from.
//! A file of another kind is an error that names what it looks like. Begin reading with [`of_source`] in this file.
//!
//! ```
//! use parse::{Options, Source};
//!
//! let why = recordings::of_source(Source::Memory(b"BZh9 and so on".to_vec()), Options::default()).unwrap_err();
//! assert!(why.to_string().contains("bunzip2"));
//! ```
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod expanded;
mod raw;

use parse::{Error, Options, Source, Trace};
use std::path::Path;

/// Opens the recording at `path`.
///
/// # Errors
///
/// A file that cannot be read, that is no recording, or that has no event to trust.
pub fn open(path: &Path, options: Options) -> Result<Trace, Error> {
    if path.is_dir()
        && let Some(pages) = raw::of_folder(path)?
    {
        return Trace::of_source(pages, options);
    }
    of_source(Source::open(path)?, options)
}

/// Opens a recording, wherever its bytes are.
///
/// # Errors
///
/// Those of [`open`].
pub fn of_source(source: Source, options: Options) -> Result<Trace, Error> {
    match expanded::expanded(&source)? {
        Some(plain) => of_plain(plain, options),
        None => of_plain(source, options),
    }
}

fn of_plain(source: Source, options: Options) -> Result<Trace, Error> {
    if let Some(pages) = raw::of_tar(&source)? {
        Trace::of_source(pages, options)
    } else if perfdata::is_perf_data(&source) {
        perfdata::open(source, options)
    } else if perfetto::is_perfetto(&source) {
        perfetto::open(&source, options)
    } else if tracetext::is_text(&source) {
        tracetext::open(&source, options)
    } else {
        Trace::of_source(source, options)
    }
}
