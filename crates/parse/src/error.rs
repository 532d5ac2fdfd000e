//! Errors that leave no event to trust.

use std::path::PathBuf;

/// The reason why a trace cannot be read at all. Lesser damage is a [`sched::Diagnostic`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("cannot read {}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Not something that can be mapped.
    #[error("{} is {what}, not a file: give the trace.dat that trace-cmd wrote", path.display())]
    NotAFile {
        /// Path that was given.
        path: PathBuf,
        /// The kind of file.
        what: &'static str,
    },
    /// The recorder was killed before it wrote the file.
    #[error(
        "cannot read {0}: it is not there, but {0}.cpu0 is, as trace-cmd record leaves it when it is killed; where it \
         was recorded, `trace-cmd restore -o {0} $(ls -v {0}.cpu*)` makes the trace of it",
        path.display()
    )]
    Unwritten {
        /// The file that it would have written.
        path: PathBuf,
    },
    /// Another kind of file.
    #[error("not a trace.dat: {what}")]
    Foreign {
        /// Apparent kind of the file, and the remedy.
        what: String,
    },
    /// A trace.dat of an unknown version.
    #[error(
        "trace.dat version {version} is not known to this program, which reads versions 6 and 7; `trace-cmd convert --file-version 6` may help"
    )]
    Version {
        /// The version as the file has it.
        version: String,
    },
    /// The header ends too early, or is not what it should be.
    #[error("{part} at offset {at}: expected {expected}; the file ends or is damaged there")]
    Damaged {
        /// Name of the damaged part of the file.
        part: &'static str,
        /// The file offset.
        at: u64,
        /// The expected content.
        expected: &'static str,
    },
    /// A file made by a latency tracer.
    #[error(
        "this file holds the text of a latency tracer (trace-cmd extract of wakeup, irqsoff, …) and no events; read it with `trace-cmd report`"
    )]
    LatencyText,
    /// A kernel older than 2.6.31.
    #[error("recorded on a kernel older than 2.6.31, whose ring buffer had another encoding; it cannot be read")]
    AncientKernel,
    /// No buffer of that name.
    #[error("the trace has no buffer named {name:?}; it has {available}")]
    NoBuffer {
        /// The name asked for.
        name: String,
        /// Names of the trace's buffers.
        available: String,
    },
    /// The clock does not measure time.
    #[error("the trace's clock is `{clock}`, which {why}. {advice}")]
    Clock {
        /// Name of the clock.
        clock: String,
        /// Reason why the clock gives no times.
        why: &'static str,
        /// Remedy, as a sentence for the user.
        advice: &'static str,
    },
    /// The host's time is asked for, and the file has none.
    #[error(
        "--host-time: the file has no TIME_SHIFT, which relates a guest's clock to its host's. Record host and guest together with trace-cmd record -A"
    )]
    NoHost,
    /// More tasks live in the trace than it may have beside other traces ([`crate::Options::most_state`]).
    #[error("the trace has too many living tasks to be read beside others")]
    ManyTasks,
    /// The trace has no events to show.
    #[error("the trace holds no events{}", if .why.is_empty() { String::new() } else { format!(": {}", .why) })]
    NoEvents {
        /// The reason, where it is known.
        why: String,
    },
}

impl Error {
    /// A file of version 7 that ends before its data.
    pub(crate) fn unfinished() -> Error {
        let why = "it was cut before them, or the recorder did not finish writing it; \
                   `trace-cmd restore` can rebuild it from trace.dat.cpu* where these are left";
        Error::NoEvents { why: why.into() }
    }
}
