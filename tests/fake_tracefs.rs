//! A folder that stands in for the kernel's tracing file system, with a simulated machine's events.

#![cfg(target_os = "linux")]

use crate::support::{Ran, Scratch, schedviz_in, scratch};
use sched::{EventKind, SchedEvent};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use testkit::{Simulation, TraceBuilder};

/// The number of CPUs of the simulated machine.
pub(crate) const CPUS: u32 = 8;

/// The folder. Its kernel has no `sched_wakeup`.
pub(crate) struct Fake {
    folder: Scratch,
    events: Vec<SchedEvent>,
}

impl Fake {
    pub(crate) fn new(name: &str) -> Fake {
        let mut events = Simulation::run(11, CPUS, 4000).events;
        events.retain(|event| !matches!(event.kind, EventKind::Wakeup { .. }));
        let fake = Fake { folder: scratch(name), events };
        std::fs::create_dir_all(fake.path("tracefs/instances")).expect("made");
        let builder = TraceBuilder::default();
        fake.write("tracefs/events/header_page", &builder.header_page());
        fake.write("tracefs/events/header_event", "# compressed entry header\n");
        for (system, text) in builder.layout().formats() {
            let name = text.lines().find_map(|line| line.strip_prefix("name: ")).expect("a name");
            if name != "sched_wakeup" {
                fake.write(&format!("tracefs/events/{system}/{name}/format"), &text);
            }
        }
        for (number, event) in [(900, "irq/softirq_entry"), (901, "task/task_rename")] {
            let name = event.rsplit('/').next().expect("a name");
            let text = format!("name: {name}\nID: {number}\nformat:\n\nprint fmt: \"\"\n");
            fake.write(&format!("tracefs/events/{event}/format"), &text);
        }
        fake.fill("buffers", &fake.events);
        fake.count(0, 0);
        fake
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    /// The number of events in the kernel's buffers.
    pub(crate) fn recorded(&self) -> u64 {
        self.events.len() as u64
    }

    /// Writes the pages of the kernel's buffers into a folder for each CPU.
    pub(crate) fn fill(&self, folder: &str, events: &[SchedEvent]) {
        for (cpu, pages) in TraceBuilder::default().rings(events) {
            let place = self.path(&format!("{folder}/cpu{cpu}"));
            std::fs::create_dir_all(&place).expect("made");
            std::fs::write(place.join("trace_pipe_raw"), pages.concat()).expect("written");
        }
    }

    /// Writes the kernel's counters: the events of each CPU, on CPU 1 this many more, and as many lost.
    pub(crate) fn count(&self, more: u64, lost: u64) {
        for cpu in 0..CPUS {
            let events = self.events.iter().filter(|event| event.cpu.0 == cpu).count() as u64;
            let on_it = |n: u64| if cpu == 1 { n } else { 0 };
            let (entries, overrun) = (events + on_it(more), on_it(lost));
            let text = format!(
                "entries: {entries}\noverrun: {overrun}\ncommit overrun: 0\nbytes: {}\ndropped events: 0\nread events: 0\n",
                40 * entries
            );
            self.write(&format!("buffers/cpu{cpu}/stats"), &text);
        }
    }

    /// The arguments that record a shell script, before which the kernel has recorded. Its clocks are written as the kernel does.
    pub(crate) fn arguments(&self, more: &[&str], script: &str) -> Vec<String> {
        let script = format!(
            "for i in tracefs/instances/schedviz_${{PPID}}_*; do if [ -d $i ]; then rm -rf seen; cp -r $i seen; \
             [ -f $i/trace_clock ] && echo \"local global [$(cat $i/trace_clock)]\" > $i/trace_clock; cp -rL buffers $i/per_cpu; \
             fi; done; {script}"
        );
        let fixed = ["record", "--tracefs", "tracefs", "-o", "new.dat"];
        let words = fixed.iter().chain(more).chain(&["--", "sh", "-c"]).map(|word| (*word).to_owned());
        words.chain([script]).collect()
    }

    pub(crate) fn record(&self, more: &[&str], script: &str) -> Ran {
        self.run(&self.arguments(more, script))
    }

    pub(crate) fn run(&self, arguments: &[String]) -> Ran {
        schedviz_in(&self.folder, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Starts a recording.
    pub(crate) fn spawn(&self, more: &[&str], script: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedviz"));
        command.args(self.arguments(more, script)).current_dir(&self.folder);
        command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program runs")
    }

    /// Starts a recording and waits until its command runs.
    pub(crate) fn start(&self, script: &str) -> Child {
        let mut child = self.spawn(&[], &format!("touch running && {script}"));
        for _ in 0..6000 {
            if self.path("running").exists() {
                return child;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let _ = child.kill();
        panic!("the command does not run: {:?}", child.wait());
    }

    /// A file of the instance as it was while the command ran.
    pub(crate) fn seen(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.path("seen").join(file)).ok()
    }

    /// The names of the instances.
    pub(crate) fn instances(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path("tracefs/instances")).expect("a folder").flatten();
        entries.map(|entry| entry.file_name().into_string().expect("a name")).collect()
    }

    /// Whether nothing of ours is in the kernel.
    pub(crate) fn is_clean(&self) -> bool {
        self.instances().is_empty()
    }
}

/// Sends a signal.
pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status();
    assert!(sent.expect("kill").success());
}
