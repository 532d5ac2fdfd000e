//! An instance: buffers and events of our own.

use crate::{CpuStats, Error, LIVE_PREFIX, Owner, PREFIX, Tracefs, stats};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The settings of an instance.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The size of each CPU's buffer in KiB.
    pub buffer_kb: u64,
    /// The clock, or the kernel's default.
    pub clock: Option<String>,
    /// The events to enable: `sched/sched_switch`, or a system such as `irq`.
    pub events: Vec<String>,
    /// The events among them behind each of which the kernel records its stack, by the trigger `stacktrace`.
    pub stacks: Vec<String>,
}

/// The instance; it is removed when this is dropped.
#[derive(Debug)]
pub struct Instance {
    tracefs: Tracefs,
    name: String,
    folder: PathBuf,
}

impl Instance {
    /// Creates the instance that records, with recording off.
    pub fn create(tracefs: &Tracefs, settings: &Settings) -> Result<Instance, Error> {
        Instance::named(tracefs, format!("{PREFIX}{}", Owner::this()), settings)
    }

    /// Creates the instance whose events are read while it records, with recording off.
    pub fn create_live(tracefs: &Tracefs, settings: &Settings) -> Result<Instance, Error> {
        Instance::named(tracefs, format!("{LIVE_PREFIX}{}", Owner::this()), settings)
    }

    fn named(tracefs: &Tracefs, name: String, settings: &Settings) -> Result<Instance, Error> {
        let folder = tracefs.join("instances").join(&name);
        std::fs::create_dir(&folder).map_err(|reason| match reason.kind() {
            ErrorKind::AlreadyExists => Error::Taken { name: name.clone() },
            ErrorKind::PermissionDenied => Error::denied("create", &folder),
            _ => Error::Io { path: folder.clone(), reason },
        })?;
        // Any failure from here on removes it.
        let instance = Instance { tracefs: tracefs.clone(), name, folder };
        instance.write("tracing_on", "0")?;
        instance.write("buffer_size_kb", &settings.buffer_kb.to_string())?;
        if let Some(clock) = &settings.clock {
            instance.write("trace_clock", clock)?;
        }
        for event in &settings.events {
            instance.write(&format!("events/{event}/enable"), "1")?;
        }
        for event in &settings.stacks {
            instance.add_stacks(event)?;
        }
        Ok(instance)
    }

    /// Returns the folder of the instance in tracefs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds the trigger that records the kernel's stack behind each event of this name. It goes with the instance.
    pub fn add_stacks(&self, event: &str) -> Result<(), Error> {
        self.write(&format!("events/{event}/trigger"), "stacktrace")
    }

    /// Removes the trigger that records stacks behind each event of this name.
    pub fn remove_stacks(&self, event: &str) -> Result<(), Error> {
        self.write(&format!("events/{event}/trigger"), "!stacktrace")
    }

    /// Turns recording into the instance's buffers on.
    pub fn start(&self) -> Result<(), Error> {
        self.write("tracing_on", "1")
    }

    /// Stops recording; the events stay.
    pub fn stop(&self) -> Result<(), Error> {
        self.write("tracing_on", "0")
    }

    /// Opens the file of markers: each write is an event, which costs about as much as any other.
    pub fn markers(&self) -> Result<std::fs::File, Error> {
        let path = self.folder.join("trace_marker");
        let opened = std::fs::OpenOptions::new().write(true).create(self.tracefs.is_plain).truncate(false).open(&path);
        opened.map_err(|reason| Error::Io { path, reason })
    }

    /// Empties the buffers. The kernel does so when the file is truncated while it is opened; a write changes nothing.
    pub fn clear(&self) -> Result<(), Error> {
        let path = self.folder.join("trace");
        let opened = std::fs::OpenOptions::new().write(true).create(self.tracefs.is_plain).truncate(true).open(&path);
        opened.map(drop).map_err(|reason| Error::Io { path, reason })
    }

    /// The text of `trace_clock`: the clocks, the chosen one in brackets.
    pub fn clock(&self) -> String {
        std::fs::read_to_string(self.folder.join("trace_clock")).unwrap_or_default()
    }

    /// The kernel's counters of every CPU, by CPU.
    pub fn stats(&self) -> Vec<CpuStats> {
        stats::of_folder(&self.folder)
    }

    /// Removes the instance with its buffers.
    pub fn remove(self) -> Result<(), Error> {
        remove(&self.tracefs, &self.name)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Error> {
        self.tracefs.write(&self.folder.join(file), text, false)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A drop has no result; --clean finds what stayed.
        let _ = remove(&self.tracefs, &self.name);
    }
}

/// Removes an instance of ours if it exists.
pub(crate) fn remove(tracefs: &Tracefs, name: &str) -> Result<(), Error> {
    let folder = tracefs.join("instances").join(name);
    if tracefs.is_plain {
        return removed(&folder, std::fs::remove_dir_all(&folder));
    }
    // A reader that has just been killed holds it for a moment.
    for _ in 0..20 {
        match std::fs::remove_dir(&folder) {
            Err(e) if e.kind() == ErrorKind::ResourceBusy => std::thread::sleep(std::time::Duration::from_millis(50)),
            result => return removed(&folder, result),
        }
    }
    removed(&folder, std::fs::remove_dir(&folder))
}

fn removed(folder: &Path, result: std::io::Result<()>) -> Result<(), Error> {
    match result {
        Err(reason) if reason.kind() != ErrorKind::NotFound => Err(Error::Io { path: folder.to_owned(), reason }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake() -> (tempfile::TempDir, Tracefs) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("instances")).unwrap();
        std::fs::create_dir_all(folder.path().join("events/sched/sched_switch")).unwrap();
        let tracefs = Tracefs::find(Some(folder.path())).unwrap();
        (folder, tracefs)
    }

    fn settings() -> Settings {
        Settings {
            buffer_kb: 1408,
            clock: Some("mono".into()),
            events: vec!["sched/sched_switch".into(), "irq".into()],
            stacks: vec!["sched/sched_switch".into()],
        }
    }

    #[test]
    fn an_instance_is_set_up_and_leaves_nothing() {
        let (folder, tracefs) = fake();
        let instance = Instance::create(&tracefs, &settings()).unwrap();
        assert_eq!(instance.folder(), folder.path().join(format!("instances/schedviz_{}", Owner::this())));
        let place = instance.folder().to_owned();
        let written = |file: &str| std::fs::read_to_string(place.join(file)).unwrap();
        assert_eq!(written("tracing_on"), "0\n");
        instance.start().unwrap();
        assert_eq!((written("tracing_on"), written("buffer_size_kb")), ("1\n".into(), "1408\n".into()));
        assert_eq!((written("trace_clock"), written("events/irq/enable")), ("mono\n".into(), "1\n".into()));
        assert_eq!(written("events/sched/sched_switch/enable"), "1\n");
        assert_eq!(written("events/sched/sched_switch/trigger"), "stacktrace\n");
        // The machine's own events and buffers are not touched.
        assert!(!folder.path().join("tracing_on").exists());
        assert!(!folder.path().join("events/sched/sched_switch/enable").exists());
        drop(instance);
        assert!(tracefs.leftovers().is_empty());
        assert_eq!(std::fs::read_dir(folder.path().join("instances")).unwrap().count(), 0);
    }

    #[test]
    fn buffers_are_emptied_by_truncation() {
        let (_folder, tracefs) = fake();
        let instance = Instance::create(&tracefs, &settings()).unwrap();
        let trace = instance.folder().join("trace");
        std::fs::write(&trace, "events").unwrap();
        instance.clear().unwrap();
        assert_eq!(std::fs::read_to_string(trace).unwrap(), "");
    }

    #[test]
    fn a_running_recording_stays_and_a_killed_one_is_removed() {
        let (folder, tracefs) = fake();
        let live = Instance::create_live(&tracefs, &settings()).unwrap();
        // Both are of this process, which runs.
        let first = Instance::create(&tracefs, &settings()).unwrap();
        assert!(Instance::create(&tracefs, &settings()).unwrap_err().to_string().ends_with(" already"));
        assert!(tracefs.check(&[crate::Need::Instance]).is_ok() && tracefs.others().is_empty());
        // One of a process that has ended, one of another namespace, and that of another program.
        let names = ["schedviz_4294967295_1", "schedviz_1_1_1", "other", "schedviz"];
        for name in names {
            std::fs::create_dir(folder.path().join("instances").join(name)).unwrap();
        }
        assert_eq!(
            tracefs.check(&[crate::Need::Instance]).unwrap_err().to_string(),
            "a recording was killed: tracefs has the instance schedviz_4294967295_1. schedviz record --clean removes this"
        );
        assert_eq!(tracefs.others(), ["the instance schedviz_1_1_1 of process 1 of another container"]);
        assert_eq!(tracefs.clean().unwrap(), ["the instance schedviz_4294967295_1"]);
        assert!(tracefs.check(&[crate::Need::Instance]).is_ok() && tracefs.clean().unwrap().is_empty());
        assert!(first.folder().is_dir() && live.folder().is_dir());
        assert!(names[1..].iter().all(|name| folder.path().join("instances").join(name).is_dir()));
    }
}
