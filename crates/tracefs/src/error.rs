//! Errors of tracefs.

use std::path::PathBuf;

/// Why the kernel cannot be asked to trace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no tracefs.
    #[error("tracefs is not mounted; as root: mount -t tracefs tracefs /sys/kernel/tracing")]
    NotMounted,
    /// The path is not that of a tracefs.
    #[error("{} is not a tracefs: it has no instances", path.display())]
    NotTracefs {
        /// The path that was given.
        path: PathBuf,
    },
    /// A right is missing.
    #[error("no permission to {operation} {}; run this as root, or get write access to tracefs. Nothing was changed", path.display())]
    Denied {
        /// The operation, as an infinitive.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
    },
    /// A recording of ours runs, or was killed.
    #[error("another recording runs, or one was killed: tracefs has {left}. schedviz record --clean removes this")]
    Busy {
        /// The things that exist.
        left: String,
    },
    /// The kernel's own buffer is in use.
    #[error(
        "tracefs's own buffer is in use, with {by}; trace-cmd extract would take its events and disable it. Save them if needed, then as root: trace-cmd reset"
    )]
    InUse {
        /// The use.
        by: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}
