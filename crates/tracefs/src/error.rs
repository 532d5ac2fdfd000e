//! Errors of tracefs.

use std::path::{Path, PathBuf};

/// The reason why the kernel cannot be asked to trace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No tracefs is mounted.
    #[error("tracefs is not mounted; as root: mount -t tracefs tracefs /sys/kernel/tracing")]
    NotMounted,
    /// The path is not that of a tracefs.
    #[error("{} is not a tracefs: it has no instances", path.display())]
    NotTracefs {
        /// The path that was given.
        path: PathBuf,
    },
    /// A right is missing.
    #[error("no permission to {operation} {}; {}. Nothing was changed", path.display(), remedy(*as_root))]
    Denied {
        /// The operation, as an infinitive.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Whether this process has the rights of root.
        as_root: bool,
    },
    /// The kernel lets no process trace.
    #[error(
        "the kernel is locked down (confidentiality): not even root may trace. Boot with lockdown=integrity, or without lockdown="
    )]
    LockedDown,
    /// The kernel has no probes.
    #[error("this kernel has no probes (CONFIG_KPROBE_EVENTS): record without --why")]
    NoProbes,
    /// The kernel takes probes, and they never fire.
    #[error("kprobes are switched off, and no probe would record: as root, echo 1 > /sys/kernel/debug/kprobes/enabled")]
    ProbesOff,
    /// A recording of ours was killed.
    #[error("a recording was killed: tracefs has {left}. schedviz record --clean removes this")]
    Left {
        /// The things that exist.
        left: String,
    },
    /// The name is taken.
    #[error("tracefs has the instance {name} already")]
    Taken {
        /// Name of the instance.
        name: String,
    },
    /// A file could not be read or written.
    #[error("{}: {reason}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The reason. It is a part of the message, and not its source: a chain of errors would have it twice.
        reason: std::io::Error,
    },
}

impl Error {
    pub(crate) fn denied(operation: &'static str, path: &Path) -> Error {
        Error::Denied { operation, path: path.to_owned(), as_root: crate::is_root() }
    }
}

/// The way to get a right.
fn remedy(as_root: bool) -> &'static str {
    if as_root {
        "this runs as root, so a container, a read-only mount or a security module withholds it"
    } else {
        "run this as root, or get write access to tracefs"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_not_asked_to_be_root() {
        let text = |as_root| Error::Denied { operation: "write", path: "x".into(), as_root }.to_string();
        assert!(text(false).contains("; run this as root, or"), "{}", text(false));
        assert!(!text(true).contains("run this as root") && text(true).contains("container"), "{}", text(true));
    }

    #[test]
    fn a_reason_is_printed_once() {
        let error = Error::Io { path: "x".into(), reason: std::io::Error::other("no device") };
        assert_eq!((error.to_string().as_str(), std::error::Error::source(&error).is_none()), ("x: no device", true));
    }
}
