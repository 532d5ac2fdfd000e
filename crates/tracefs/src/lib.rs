//! The kernel's tracing file system (tracefs): an own instance, an own group of probes, and their removal.
//!
//! In go events, buffer sizes and probes, out come the pages of the kernel's buffers. Everything is done by writing the files of
//! tracefs; no other instance and no other group is touched. An [`Instance`] and a [`Probes`] remove themselves when they are
//! dropped. Their names carry the process that made them, so that [`Tracefs::clean`] removes those that a killed program left,
//! and no others. Begin reading in `instance.rs`, then `probes.rs`.
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
mod owner;
mod probes;
mod stats;

pub use error::Error;
pub use file::TraceFile;
pub use instance::{Instance, Settings};
pub use live::Pages;
pub use owner::{Life, Owner};
pub use probes::{Probes, Refused};
pub use stats::CpuStats;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The beginning of the names of instances and of groups of probes; the process that made them follows.
const PREFIX: &str = "schedviz_";

/// The beginning of the name of an instance whose events are read while it records.
const LIVE_PREFIX: &str = "schedviz_live_";

/// The group of the probes in a recording. In the kernel the group is another one for each process
/// ([`Probes::group`]), and a group of this name is another program's.
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
    /// The creation of an instance.
    Instance,
    /// The addition of probes.
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
            (Some(root), _) => Error::denied("read", &root),
            (None, Some(path)) => Error::NotTracefs { path: path.to_owned() },
            (None, None) => Error::NotMounted,
        })
    }

    /// The path of a file.
    pub fn join(&self, file: impl AsRef<Path>) -> PathBuf {
        self.root.join(file)
    }

    /// Checks, without any change, that all that is needed is permitted, and that no killed recording records on: it would
    /// cost the machine the time of this one once more.
    pub fn check(&self, needs: &[Need]) -> Result<(), Error> {
        self.check_rights(needs)?;
        let left = self.leftovers();
        if !left.is_empty() {
            return Err(Error::Left { left: left.join(", ") });
        }
        Ok(())
    }

    /// Checks, without any change, that these operations are permitted.
    pub fn check_rights(&self, needs: &[Need]) -> Result<(), Error> {
        if self.is_locked_down() {
            return Err(Error::LockedDown);
        }
        if needs.contains(&Need::Probes) {
            self.check_probes()?;
        }
        for need in needs {
            let (operation, path) = match need {
                Need::Instance => ("create an instance in", self.join("instances")),
                Need::Probes => ("add probes to", self.probe_file()),
            };
            if !is_writable(&path) {
                return Err(Error::denied(operation, &path));
            }
        }
        Ok(())
    }

    /// Checks that the kernel has probes, and that they are not switched off as far as that can be read.
    fn check_probes(&self) -> Result<(), Error> {
        if !self.probe_file().exists() {
            return Err(Error::NoProbes);
        }
        let beside = self.join("../debug/kprobes/enabled");
        let usual = (!self.is_plain).then(|| PathBuf::from("/sys/kernel/debug/kprobes/enabled"));
        let text = [Some(beside), usual].into_iter().flatten().find_map(|path| std::fs::read_to_string(path).ok());
        if text.is_some_and(|text| text.trim() == "0") { Err(Error::ProbesOff) } else { Ok(()) }
    }

    /// Whether the kernel lets no process trace: its lockdown is at the level of confidentiality.
    fn is_locked_down(&self) -> bool {
        let beside = self.join("../security/lockdown");
        let usual = (!self.is_plain).then(|| PathBuf::from("/sys/kernel/security/lockdown"));
        let text = [Some(beside), usual].into_iter().flatten().find_map(|path| std::fs::read_to_string(path).ok());
        text.is_some_and(|text| text.contains("[confidentiality]"))
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

    /// The instances and the probes that killed recordings left.
    pub fn leftovers(&self) -> Vec<String> {
        self.made().into_iter().filter(|made| made.life == Life::Ended).map(|made| made.to_string()).collect()
    }

    /// The instances and the probes of other processes that run, or of which that is unknown.
    pub fn others(&self) -> Vec<String> {
        let this = Owner::this();
        let others = self.made().into_iter().filter(|made| made.life != Life::Ended && made.owner != this);
        others.map(|made| format!("{made} of {}", made.process())).collect()
    }

    /// Removes what killed recordings left; the things that were removed.
    pub fn clean(&self) -> Result<Vec<String>, Error> {
        let mut left: Vec<Made> = self.made().into_iter().filter(|made| made.life == Life::Ended).collect();
        // Instances come first: probes in use cannot be removed.
        left.sort_by_key(|made| made.probe.is_some());
        for made in &left {
            match &made.probe {
                None => instance::remove(self, &made.name)?,
                Some(probe) => probes::remove(self, &made.name, std::slice::from_ref(probe))?,
            }
        }
        Ok(left.iter().map(Made::to_string).collect())
    }

    /// The instances and the probes that this program has made, in this process or another.
    fn made(&self) -> Vec<Made> {
        let entries = std::fs::read_dir(self.join("instances")).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut made: Vec<Made> = names.filter_map(|name| Made::of(name, None)).collect();
        let text = std::fs::read_to_string(self.probe_file()).unwrap_or_default();
        let probes = text.lines().filter_map(probes::group_and_name);
        made.extend(probes.filter_map(|(group, probe)| Made::of(group.to_owned(), Some(probe.to_owned()))));
        made.sort_by(|one, other| (&one.probe, &one.name).cmp(&(&other.probe, &other.name)));
        made
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

    /// Writes a file of the kernel.
    fn write(&self, path: &Path, text: &str, append: bool) -> Result<(), Error> {
        if self.is_plain
            && let Some(folder) = path.parent()
        {
            std::fs::create_dir_all(folder).map_err(|reason| Error::Io { path: path.to_owned(), reason })?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(self.is_plain).append(append).truncate(self.is_plain && !append);
        let written = options.open(path).and_then(|mut file| file.write_all(format!("{text}\n").as_bytes()));
        written.map_err(|reason| match reason.kind() {
            std::io::ErrorKind::PermissionDenied => Error::denied("write", path),
            _ => Error::Io { path: path.to_owned(), reason },
        })
    }
}

/// An instance or a probe that this program has made.
struct Made {
    /// The name of the instance, or the group of the probe.
    name: String,
    /// The name of the probe in its group.
    probe: Option<String>,
    owner: Owner,
    life: Life,
}

impl Made {
    /// The thing of this name, if the name carries a process.
    fn of(name: String, probe: Option<String>) -> Option<Made> {
        let owner = name.strip_prefix(LIVE_PREFIX).or_else(|| name.strip_prefix(PREFIX))?;
        let owner = Owner::parse(owner)?;
        Some(Made { name, probe, owner, life: owner.life() })
    }

    fn process(&self) -> String {
        let pid = self.owner.pid();
        match self.life {
            Life::Unknown => format!("process {pid} of another container"),
            Life::Runs | Life::Ended => format!("process {pid}"),
        }
    }
}

impl std::fmt::Display for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.probe {
            None => write!(f, "the instance {}", self.name),
            Some(probe) => write!(f, "the probe {}/{probe}", self.name),
        }
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

/// Whether this process has the rights of root.
#[cfg(target_os = "linux")]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(target_os = "linux"))]
fn is_root() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_that_would_not_fire_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for made in ["tracing/instances", "debug/kprobes"] {
            std::fs::create_dir_all(folder.path().join(made)).unwrap();
        }
        let tracefs = Tracefs::find(Some(&folder.path().join("tracing"))).unwrap();
        let refused = || tracefs.check(&[Need::Instance, Need::Probes]).unwrap_err().to_string();
        assert!(refused().contains("CONFIG_KPROBE_EVENTS"), "{}", refused());
        std::fs::write(folder.path().join("tracing/kprobe_events"), "").unwrap();
        std::fs::write(folder.path().join("debug/kprobes/enabled"), "0\n").unwrap();
        assert!(refused().contains("kprobes are switched off"), "{}", refused());
        assert!(tracefs.check(&[Need::Instance]).is_ok());
        std::fs::write(folder.path().join("debug/kprobes/enabled"), "1\n").unwrap();
        assert!(tracefs.check(&[Need::Instance, Need::Probes]).is_ok());
    }

    #[test]
    fn a_lockdown_is_named_before_any_change() {
        let folder = tempfile::tempdir().unwrap();
        for made in ["tracing/instances", "security"] {
            std::fs::create_dir_all(folder.path().join(made)).unwrap();
        }
        let tracefs = Tracefs::find(Some(&folder.path().join("tracing"))).unwrap();
        let lock = |text: &str| std::fs::write(folder.path().join("security/lockdown"), text).unwrap();
        lock("none [integrity] confidentiality\n");
        assert!(tracefs.check(&[Need::Instance]).is_ok());
        lock("none integrity [confidentiality]\n");
        let error = tracefs.check(&[Need::Instance]).unwrap_err().to_string();
        assert!(error.starts_with("the kernel is locked down (confidentiality)"), "{error}");
    }

    #[test]
    fn a_folder_without_instances_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = Tracefs::find(Some(folder.path())).unwrap_err();
        assert_eq!(error.to_string(), format!("{} is not a tracefs: it has no instances", folder.path().display()));
    }
}
