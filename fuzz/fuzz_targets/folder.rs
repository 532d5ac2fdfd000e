//! The kernel's buffers in a folder, in either layout: formats that are right, the pages of one to four CPUs, and a text beside them.
#![no_main]

use parse::Options;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use testkit::TraceBuilder;

/// The description of a page, and the formats of events with their systems.
static FORMATS: LazyLock<(String, Vec<(String, String)>)> = LazyLock::new(|| {
    let builder = TraceBuilder::default();
    let formats = builder.layout().formats().into_iter().map(|(system, text)| (system.to_string(), text)).collect();
    (builder.header_page(), formats)
});

/// The texts that an input can replace, by the names in a copy of tracefs.
const TEXTS: [&str; 7] = [
    "events/header_page",
    "events/header_event",
    "events/sched/event0/format",
    "trace_clock",
    "saved_cmdlines",
    "printk_formats",
    "per_cpu/cpu0/stats",
];

/// A folder that is removed with all that is in it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        Folder(std::env::temp_dir().join(format!("schedviz-fuzz-{}", std::process::id())))
    }

    fn write(&self, name: &str, content: &[u8]) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("a folder");
        fs::write(path, content).expect("written");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [kind, cpus, cut, rest @ ..] = bytes else { return };
    let folder = Folder::new();
    let (header_page, formats) = &*FORMATS;
    folder.write("events/header_page", header_page.as_bytes());
    for (nth, (system, text)) in formats.iter().enumerate() {
        folder.write(&format!("events/{system}/event{nth}/format"), text.as_bytes());
    }
    // A part of the input is a text, the rest the pages.
    let (text, pages) = match TEXTS.get(usize::from(kind / 2 % 16)) {
        Some(name) => {
            let (text, pages) = rest.split_at(rest.len() * usize::from(*cut) / 256);
            folder.write(name, text);
            (text.len(), pages)
        }
        None => (0, rest),
    };
    let cpus = usize::from(cpus % 4) + 1;
    let size = pages.len().div_ceil(cpus).max(1);
    for (cpu, pages) in pages.chunks(size).enumerate() {
        // Numbers of CPUs with gaps between them.
        let cpu = cpu * (1 + text % 3);
        match kind % 2 {
            0 => folder.write(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"), pages),
            _ => folder.write(&format!("traces/cpu{cpu}"), pages),
        }
    }
    let options = Options { threads: 1, ..Options::default() };
    let Ok(trace) = recordings::open(&folder.0, options) else { return };
    trace.records(&mut |_| std::ops::ControlFlow::Continue(()));
});
