//! The kernel's counts of events against those in the file.

use super::message;
use crate::plan::buffers::format_size;
use parse::Trace;
use session::warnings::grouped;
use std::collections::BTreeMap;
use tracefs::CpuStats;

/// The message behind all problems of a recording.
pub(super) const INCOMPLETE: &str =
    "the recording cannot be trusted to be complete; schedviz info shows where events are missing";

/// Prints a problem of a recording, its word in red where that can be shown.
pub(super) fn problem(word: &str, mut text: String, coloured: bool) {
    let word = if coloured { format!("\x1b[31m{word}\x1b[0m") } else { word.to_owned() };
    // The word alone carries an escape of the terminal.
    sched::event::escape_lines(&mut text, 0);
    session::messages::emit(&format!("{word}: {text}"));
}

/// The events of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuEvents {
    /// Events that the kernel recorded; nothing without its counters.
    recorded: Option<u64>,
    /// Events that the kernel lost.
    lost: u64,
    /// Bytes in the kernel's buffer.
    bytes: u64,
    /// Events in the file.
    in_file: u64,
}

/// Whether a recording is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LossVerdict {
    cpus: BTreeMap<u32, CpuEvents>,
}

impl LossVerdict {
    /// Compares the kernel's counters with the events of the file.
    pub(crate) fn of(stats: &[CpuStats], trace: &Trace) -> LossVerdict {
        let events = trace.counts().buffers.iter().flat_map(|counts| &counts.cpus);
        LossVerdict::of_counts(stats, events.map(|cpu| (cpu.cpu.0, cpu.events)))
    }

    fn of_counts(stats: &[CpuStats], events: impl Iterator<Item = (u32, u64)>) -> LossVerdict {
        let mut cpus: BTreeMap<u32, CpuEvents> = BTreeMap::new();
        for stats in stats {
            let recorded = Some(stats.recorded());
            let counts = CpuEvents { recorded, lost: stats.lost(), bytes: stats.bytes, in_file: 0 };
            cpus.insert(stats.cpu, counts);
        }
        for (cpu, events) in events {
            cpus.entry(cpu).or_default().in_file += events;
        }
        cpus.retain(|_, counts| *counts != CpuEvents { recorded: counts.recorded.map(|_| 0), ..CpuEvents::default() });
        LossVerdict { cpus }
    }

    /// Events in the file.
    pub(crate) fn in_file(&self) -> u64 {
        self.cpus.values().map(|counts| counts.in_file).sum()
    }

    /// CPUs with events.
    pub(crate) fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Whether all that was recorded is in the file and nothing was lost.
    fn is_complete(&self) -> bool {
        self.cpus.values().all(|counts| counts.recorded == Some(counts.in_file) && counts.lost == 0)
    }

    /// Prints each gap; whether there is none.
    pub(crate) fn report(&self, buffer_kb: u64, coloured: bool) -> bool {
        for (word, text) in self.problems(buffer_kb) {
            problem(word, text, coloured);
        }
        if !self.is_complete() {
            message(INCOMPLETE);
        }
        self.is_complete()
    }

    fn problems(&self, buffer_kb: u64) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let list = |chosen: &dyn Fn(&CpuEvents) -> Option<String>| -> Vec<String> {
            let words = self.cpus.iter().filter_map(|(cpu, counts)| Some(format!("CPU {cpu}: {}", chosen(counts)?)));
            words.collect()
        };
        let lost: u64 = self.cpus.values().map(|counts| counts.lost).sum();
        if lost > 0 {
            let all: u64 = self.cpus.values().map(|counts| counts.recorded.unwrap_or(0)).sum::<u64>() + lost;
            let by_cpu = list(&|counts| (counts.lost > 0).then(|| grouped(counts.lost)));
            problems.push((
                "LOST",
                format!(
                    "{} of {} events ({}): buffers of {} were too small for this run; record with --buffer {}M",
                    grouped(lost),
                    grouped(all),
                    by_cpu.join(", "),
                    format_size(buffer_kb),
                    self.needed_kb(buffer_kb).div_ceil(1 << 10)
                ),
            ));
        }
        let differs = list(&|counts| {
            let recorded = counts.recorded?;
            let text = || format!("{} by the kernel, {} in the file", grouped(recorded), grouped(counts.in_file));
            (recorded != counts.in_file).then(text)
        });
        if !differs.is_empty() {
            problems.push(("MISSING", format!("the counts of events differ: {}", differs.join("; "))));
        }
        if self.cpus.values().any(|counts| counts.recorded.is_none()) {
            problems.push(("UNKNOWN", "the kernel's counters could not be read: losses are unknown".to_owned()));
        }
        problems
    }

    /// The buffer that would have held all events of each CPU, with a quarter to spare, in KiB. Buffers that were read
    /// meanwhile do not show how much passed through them: then four times their size.
    fn needed_kb(&self, buffer_kb: u64) -> u64 {
        let needed = |counts: &CpuEvents| {
            let kept = counts.recorded.unwrap_or(0).max(1);
            let bytes = counts.bytes as f64 / kept as f64 * (kept + counts.lost) as f64;
            (bytes * 1.25 / 1024.0).ceil() as u64
        };
        let needed = self.cpus.values().map(needed).max().unwrap_or(0);
        if needed > buffer_kb { needed } else { buffer_kb.saturating_mul(4) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(cpu: u32, entries: u64, overrun: u64, bytes: u64) -> CpuStats {
        CpuStats { cpu, entries, overrun, bytes, ..CpuStats::default() }
    }

    #[test]
    fn counts_that_agree_are_complete() {
        let verdict = LossVerdict::of_counts(&[stats(0, 5, 0, 200), stats(1, 0, 0, 0)], [(0, 5)].into_iter());
        assert!(verdict.is_complete() && verdict.problems(1024).is_empty());
        assert_eq!((verdict.in_file(), verdict.cpus()), (5, 1));
    }

    #[test]
    fn each_way_to_be_incomplete_is_reported() {
        let lossy = [stats(0, 1000, 3000, 1_000_000), stats(2, 10, 0, 400)];
        let verdict = LossVerdict::of_counts(&lossy, [(0, 1000), (2, 10)].into_iter());
        // 4000 events of 1000 bytes are 3907 KiB, with a quarter to spare 4883.
        let text = "3,000 of 4,010 events (CPU 0: 3,000): buffers of 1024 KiB were too small for this run; record with --buffer 5M";
        assert_eq!(verdict.problems(1024), [("LOST", text.to_owned())]);
        let verdict = LossVerdict::of_counts(&[stats(1, 560, 0, 1)], [(1, 550)].into_iter());
        let text = "the counts of events differ: CPU 1: 560 by the kernel, 550 in the file";
        assert_eq!(verdict.problems(1024), [("MISSING", text.to_owned())]);
        let verdict = LossVerdict::of_counts(&[], [(1, 550)].into_iter());
        assert_eq!(verdict.problems(1024)[0].0, "UNKNOWN");
        assert!(!verdict.is_complete());
    }
}
