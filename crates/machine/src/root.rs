//! The folder below which `/sys` and `/proc` are read.

use sched::Cpu;
use sched::event::CleanText;
use sched::topology::parse_cpu_list;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The greatest number of bytes that is read of one file of the kernel.
const MAX_FILE: u64 = 1 << 20;

/// A folder with `sys` and `proc` in it.
#[derive(Clone, Debug)]
pub struct Root {
    path: PathBuf,
}

impl Root {
    /// The running machine's.
    pub fn running() -> Root {
        Root::at("/")
    }

    /// Reads below any folder, such as a copy of another machine's files, or the host's root as a container sees it.
    pub fn at(path: impl Into<PathBuf>) -> Root {
        Root { path: path.into() }
    }

    /// The number of CPUs that run tasks, at least one.
    pub fn online(&self) -> usize {
        self.online_cpus().len().max(1)
    }

    /// The CPUs that run tasks; none if they are unknown.
    pub fn online_cpus(&self) -> Vec<Cpu> {
        self.cpu_list("sys/devices/system/cpu/online").unwrap_or_default()
    }

    /// Returns the largest number that a CPU can have, plus one, whether that CPU is present or not; 0 if it is
    /// unknown.
    pub fn possible(&self) -> u32 {
        self.cpu_list("sys/devices/system/cpu/possible")
            .and_then(|cpus| cpus.last().copied())
            .map_or(0, |last| last.0 + 1)
    }

    /// Returns the largest number of a CPU that is present, plus one, online or not; 0 if it is unknown.
    pub fn present(&self) -> u32 {
        self.cpu_list("sys/devices/system/cpu/present")
            .and_then(|cpus| cpus.last().copied())
            .map_or(0, |last| last.0 + 1)
    }

    /// The path of a file below the root.
    pub fn join(&self, file: impl AsRef<Path>) -> PathBuf {
        self.path.join(file)
    }

    /// The text of a file without the white space around it, with control characters but line breaks and tabs escaped; nothing if it is
    /// absent, unreadable or empty.
    pub(crate) fn text(&self, file: impl AsRef<Path>) -> Option<String> {
        let mut bytes = Vec::new();
        // The kernel's files have no length: some end only after the last of many reads.
        let file = self.join(file);
        // The kernel's own files are no inputs that an output could replace, and there are many.
        let opened = if self.path == Path::new("/") { std::fs::File::open(&file) } else { opened::file(&file) };
        opened.ok()?.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
        let mut text = String::from_utf8_lossy(&bytes).trim().to_owned();
        sched::event::escape_lines(&mut text, 0);
        (!text.is_empty()).then_some(text)
    }

    /// The text of a file as a fact of the machine.
    pub(crate) fn fact(&self, file: impl AsRef<Path>) -> Option<CleanText> {
        self.text(file).map(CleanText::from)
    }

    /// The inode number of a folder; nothing if it cannot be read.
    pub(crate) fn inode(&self, folder: impl AsRef<Path>) -> Option<u64> {
        Some(std::fs::metadata(self.join(folder)).ok()?.ino())
    }

    /// A file that holds one number.
    pub(crate) fn number<N: std::str::FromStr>(&self, file: impl AsRef<Path>) -> Option<N> {
        self.text(file)?.parse().ok()
    }

    /// A file that holds a list of CPUs; nothing also if the list is empty.
    pub(crate) fn cpu_list(&self, file: impl AsRef<Path>) -> Option<Vec<Cpu>> {
        parse_cpu_list(&self.text(file)?)
    }

    /// The names in a folder, sorted.
    pub(crate) fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let entries = std::fs::read_dir(self.join(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The numbers N of the entries `prefixN` of a folder, ascending.
    pub(crate) fn numbered(&self, folder: impl AsRef<Path>, prefix: &str) -> Vec<u32> {
        let names = self.names(folder);
        let mut numbers: Vec<u32> = names
            .iter()
            .filter_map(|name| name.strip_prefix(prefix)?.parse().ok())
            .filter(|n| *n < Cpu::LIMIT)
            .collect();
        numbers.sort_unstable();
        numbers
    }
}
