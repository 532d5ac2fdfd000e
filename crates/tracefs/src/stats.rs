//! The kernel's counters of one CPU's buffer.

use std::path::Path;

/// The file `per_cpu/cpuN/stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuStats {
    /// Number of the CPU.
    pub cpu: u32,
    /// Events in the buffer.
    pub entries: u64,
    /// Events that were read from it.
    pub read: u64,
    /// Events that later ones replaced.
    pub overrun: u64,
    /// Events that were not written since an interrupt filled the buffer meanwhile.
    pub commit_overrun: u64,
    /// Events that found the buffer full.
    pub dropped: u64,
    /// Bytes in the buffer.
    pub bytes: u64,
}

impl CpuStats {
    /// Reads the text of the file; nothing if it does not count entries.
    pub fn parse(cpu: u32, text: &str) -> Option<CpuStats> {
        let number = |name: &str| {
            let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            rest.trim().parse::<u64>().ok()
        };
        Some(CpuStats {
            cpu,
            entries: number("entries")?,
            read: number("read events").unwrap_or(0),
            overrun: number("overrun").unwrap_or(0),
            commit_overrun: number("commit overrun").unwrap_or(0),
            dropped: number("dropped events").unwrap_or(0),
            bytes: number("bytes").unwrap_or(0),
        })
    }

    /// Events that were lost.
    pub fn lost(&self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped)
    }

    /// Events that were recorded, whether or not they are still in the buffer.
    pub fn recorded(&self) -> u64 {
        self.entries.saturating_add(self.read)
    }
}

/// The counters of every CPU of a buffer, by CPU; `folder` has its `per_cpu`.
pub(crate) fn of_folder(folder: &Path) -> Vec<CpuStats> {
    let cpus = std::fs::read_dir(folder.join("per_cpu")).into_iter().flatten().flatten();
    let stats = |entry: std::fs::DirEntry| {
        let cpu = entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok()?;
        CpuStats::parse(cpu, &std::fs::read_to_string(entry.path().join("stats")).ok()?)
    };
    let mut all: Vec<CpuStats> = cpus.filter_map(stats).collect();
    all.sort_unstable_by_key(|stats| stats.cpu);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_counts() {
        let text = "entries: 560\noverrun: 7\ncommit overrun: 1\nbytes: 32220\noldest event ts:    15.945549\n\
                    now ts:    19.538165\ndropped events: 2\nread events: 40\n";
        let stats = CpuStats::parse(3, text).unwrap();
        let expected =
            CpuStats { cpu: 3, entries: 560, read: 40, overrun: 7, commit_overrun: 1, dropped: 2, bytes: 32220 };
        assert_eq!((stats, stats.lost(), stats.recorded()), (expected, 10, 600));
        assert_eq!(CpuStats::parse(0, "overrun: 7\n"), None);
    }
}
