//! The kernel's tracing file system (tracefs): an own instance, an own group of probes, and their removal.
//!
//! Everything is done by writing the files of tracefs; no other instance and no other group is touched. An [`Instance`]
//! and a [`Probes`] remove themselves when they are dropped; [`Tracefs::clean`] removes those that a killed program
//! left.
//!
//! A plain folder can stand in for tracefs, as in tests: files that the kernel would provide are then created when they
//! are written.
//!
//! ```
//! use tracefs::Tracefs;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A plain folder stands in for /sys/kernel/tracing.
//! let folder = tempfile::tempdir()?;
//! std::fs::create_dir(folder.path().join("instances"))?;
//! let tracefs = Tracefs::find(Some(folder.path()))?;
//! assert!(!tracefs.has_event("sched:sched_switch"));
//! assert!(tracefs.leftovers().is_empty());
//! # Ok(())
//! # }
//! ```

mod error;
mod file;
mod instance;
mod live;
mod probes;
mod stats;

pub use error::Error;
pub use file::TraceFile;
pub use instance::{Instance, Settings};
pub use live::Pages;
pub use probes::{Probes, Refused};
pub use stats::CpuStats;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The name of the instance that records.
pub const INSTANCE: &str = "schedviz";

/// The name of the instance whose events are read while it records.
pub const LIVE_INSTANCE: &str = "schedviz-live";

/// The group of the probes.
pub const GROUP: &str = "lb";

/// The places where tracefs is usually mounted.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// A mounted tracefs.
#[derive(Clone, Debug)]
pub struct Tracefs {
    root: PathBuf,
    /// A plain folder stands in for tracefs.
    is_plain: bool,
}

/// An operation that needs a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// To create an instance.
    Instance,
    /// To add probes.
    Probes,
}

impl Tracefs {
    /// The tracefs at `given`, or at one of the usual places.
    pub fn find(given: Option<&Path>) -> Result<Tracefs, Error> {
        let places: Vec<PathBuf> = match given {
            Some(path) => vec![path.to_owned()],
            None => MOUNTED.iter().map(PathBuf::from).collect(),
        };
        let mut denied = None;
        for root in places {
            match std::fs::read_dir(root.join("instances")) {
                Ok(_) => return Ok(Tracefs { is_plain: !is_tracefs(&root), root }),
                Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => denied = Some(root),
                Err(_) => {}
            }
        }
        Err(match (denied, given) {
            (Some(root), _) => Error::Denied { operation: "read", path: root },
            (None, Some(path)) => Error::NotTracefs { path: path.to_owned() },
            (None, None) => Error::NotMounted,
        })
    }

    /// The path of a file.
    pub fn join(&self, file: impl AsRef<Path>) -> PathBuf {
        self.root.join(file)
    }

    /// Checks, without any change, that all that is needed is permitted, that no recording of ours exists, and that the
    /// kernel's own buffer is not in use: trace-cmd extract takes its events and disables its event types.
    pub fn check(&self, needs: &[Need]) -> Result<(), Error> {
        self.check_rights(needs)?;
        let left = self.leftovers();
        if !left.is_empty() {
            return Err(Error::Busy { left: left.join(", ") });
        }
        self.check_unused()
    }

    /// Checks, without any change, that these operations are permitted.
    pub fn check_rights(&self, needs: &[Need]) -> Result<(), Error> {
        for need in needs {
            let (operation, path) = match need {
                Need::Instance => ("create an instance in", self.join("instances")),
                Need::Probes => ("add probes to", self.probe_file()),
            };
            if !is_writable(&path) {
                return Err(Error::Denied { operation, path });
            }
        }
        Ok(())
    }

    /// Checks that the kernel's own buffer is not in use.
    fn check_unused(&self) -> Result<(), Error> {
        let events: u64 = stats::of_folder(&self.root).iter().map(|stats| stats.entries).sum();
        let enabled = std::fs::read_to_string(self.join("set_event")).unwrap_or_default().lines().count();
        let tracer = std::fs::read_to_string(self.join("current_tracer")).unwrap_or_default();
        match (events, enabled, tracer.trim()) {
            (0, 0, "" | "nop") => Ok(()),
            (0, 0, tracer) => Err(Error::InUse { by: format!("the tracer {tracer}") }),
            (0, enabled, _) => Err(Error::InUse { by: format!("{enabled} enabled events") }),
            (events, ..) => Err(Error::InUse { by: format!("{events} recorded events") }),
        }
    }

    /// Whether an event, or a system of events, exists: `sched/sched_switch`, `irq`.
    pub fn has_event(&self, event: &str) -> bool {
        self.join("events").join(event).is_dir()
    }

    /// The systems that have an event of this name, sorted.
    pub fn systems_with(&self, name: &str) -> Vec<String> {
        let systems = std::fs::read_dir(self.join("events")).into_iter().flatten().flatten();
        let mut found: Vec<String> = systems
            .filter(|system| system.path().join(name).is_dir())
            .filter_map(|system| system.file_name().into_string().ok())
            .collect();
        found.sort();
        found
    }

    /// The trace clocks, the chosen one in brackets, as the kernel lists them.
    pub fn clocks(&self) -> Option<String> {
        std::fs::read_to_string(self.join("trace_clock")).ok()
    }

    /// The instance and the probes of ours that exist.
    pub fn leftovers(&self) -> Vec<String> {
        let is_left = |name: &&str| self.join("instances").join(name).is_dir();
        let instances = [INSTANCE, LIVE_INSTANCE].into_iter().filter(is_left);
        let mut left: Vec<String> = instances.map(|name| format!("the instance {name}")).collect();
        left.extend(self.probe_names().iter().map(|name| format!("the probe {GROUP}/{name}")));
        left
    }

    /// Removes what a killed recording left; the things that were removed.
    pub fn clean(&self) -> Result<Vec<String>, Error> {
        let left = self.leftovers();
        // Probes in use cannot be removed.
        instance::remove(self, INSTANCE)?;
        instance::remove(self, LIVE_INSTANCE)?;
        probes::remove(self, &self.probe_names())?;
        Ok(left)
    }

    /// The kernel's log of errors.
    fn errors(&self) -> String {
        std::fs::read_to_string(self.join("error_log")).unwrap_or_default()
    }

    /// The file that takes probes.
    fn probe_file(&self) -> PathBuf {
        let dynamic = self.join("dynamic_events");
        if dynamic.exists() { dynamic } else { self.join("kprobe_events") }
    }

    /// The names of the probes in our group.
    fn probe_names(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.probe_file()).unwrap_or_default();
        text.lines().filter_map(|line| probes::name_in_group(line).map(str::to_owned)).collect()
    }

    /// Writes a file of the kernel.
    fn write(&self, path: &Path, text: &str, append: bool) -> Result<(), Error> {
        if self.is_plain
            && let Some(folder) = path.parent()
        {
            std::fs::create_dir_all(folder).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(self.is_plain).append(append).truncate(self.is_plain && !append);
        let written = options.open(path).and_then(|mut file| file.write_all(format!("{text}\n").as_bytes()));
        written.map_err(|source| match source.kind() {
            std::io::ErrorKind::PermissionDenied => Error::Denied { operation: "write", path: path.to_owned() },
            _ => Error::Io { path: path.to_owned(), source },
        })
    }
}

/// Whether a folder is of the file system tracefs.
#[cfg(target_os = "linux")]
fn is_tracefs(path: &Path) -> bool {
    const MAGIC: u64 = 0x7472_6163;
    rustix::fs::statfs(path).is_ok_and(|found| u64::try_from(found.f_type) == Ok(MAGIC))
}

#[cfg(not(target_os = "linux"))]
fn is_tracefs(_: &Path) -> bool {
    false
}

/// Whether this process may write to a file or a folder.
#[cfg(target_os = "linux")]
fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn is_writable(path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_instances_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = Tracefs::find(Some(folder.path())).unwrap_err();
        assert_eq!(error.to_string(), format!("{} is not a tracefs: it has no instances", folder.path().display()));
    }
}
