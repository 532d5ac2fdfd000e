//! The recorder's statistics of a part: its own events and losses, and what the whole has lost at no known place.

use super::data::Written;
use crate::file::header::RecorderStat;
use crate::issue::FileIssue;
use crate::ring::unit::Marked;
use crate::trace::{BufferCounts, Trace};
use sched::{Past, Severity, Ts};

/// The statistics of each CPU of a buffer in a part.
pub(super) struct Stats<'s> {
    trace: &'s Trace,
    written: &'s [(usize, Vec<Written>)],
    /// The buffer that the next statistics belong to.
    buffer: String,
    is_damaged: bool,
    /// The end of the part, and that of the whole.
    to: Ts,
    end: Ts,
}

/// The statistics of a CPU in a part.
struct Numbers {
    recorded: u64,
    overrun: u64,
    /// Events behind the last one.
    unread: u64,
}

impl<'s> Stats<'s> {
    pub(super) fn new(trace: &'s Trace, written: &'s [(usize, Vec<Written>)], past: &Past) -> Stats<'s> {
        let losses = |found: &sched::Diagnostics| {
            let mut all = found.iter().map(|(what, ..)| what);
            all.any(|what| {
                let is_counted = what == FileIssue::EventsDroppedUnmarked || what == sched::EventIssue::EventsLost;
                what.severity() == Severity::DataLoss && !is_counted
            })
        };
        let is_damaged = losses(trace.diagnostics()) || losses(&trace.counts().diagnostics);
        Stats { trace, written, buffer: String::new(), is_damaged, to: past.to, end: past.end }
    }

    /// The text of the next statistics, as the part has it.
    pub(super) fn of_part(&mut self, text: &[u8]) -> Vec<u8> {
        let words = String::from_utf8_lossy(text);
        if let Some(name) = words.trim_start().strip_prefix("Buffer:") {
            self.buffer = sched::event::escape(name.trim_end_matches('\0').trim().as_bytes()).into_owned();
            return text.to_vec();
        }
        let value =
            |line: &str| line.split_once(':').and_then(|(_, value)| value.trim().trim_end_matches('\0').parse().ok());
        let cpu = words.lines().find(|line| line.starts_with("CPU")).and_then(value);
        let Some(Numbers { recorded, overrun, unread }) =
            cpu.and_then(|cpu: u64| self.numbers(u32::try_from(cpu).ok()?))
        else {
            return text.to_vec();
        };
        let has_read = words.lines().any(|line| line.starts_with("read events:"));
        let line = |line: &str| match line.split_once(':').map(|(key, _)| key) {
            Some("entries") => format!("entries: {}\n", if has_read { unread } else { recorded }),
            Some("read events") => format!("read events: {recorded}\n"),
            Some("overrun") => format!("overrun: {overrun}\n"),
            _ => format!("{line}\n"),
        };
        words.trim_end_matches('\0').lines().map(line).collect::<String>().into_bytes()
    }

    /// The numbers of a CPU.
    fn numbers(&self, cpu: u32) -> Option<Numbers> {
        let (place, written) = self.written.iter().find(|(place, _)| self.trace.buffer_name(*place) == self.buffer)?;
        let stat = self.trace.stat(&self.buffer, cpu)?;
        let counts = self.trace.counts().buffers.get(*place)?;
        let lane = counts.cpus.iter().position(|counted| counted.cpu.0 == cpu)?;
        let none = Written { cpu, at: 0, size: 0, events: 0, marked: Marked::default() };
        let part = written.iter().find(|written| written.cpu == cpu).unwrap_or(&none);
        let pages = self.trace.lanes().get(*place)?.iter().find(|pages| pages.cpu.0 == cpu)?;
        Some(self.of_lane(stat, counts, lane, part, pages.unread))
    }

    /// Returns the statistics of one CPU in the part; `behind` is the number of events behind the CPU's last one in the
    /// file.
    fn of_lane(&self, stat: &RecorderStat, whole: &BufferCounts, lane: usize, part: &Written, behind: u64) -> Numbers {
        let marked = whole.marked.get(lane).copied().unwrap_or_default();
        let events = whole.cpus.get(lane).map_or(0, |counted| counted.events);
        let unwritten = stat.recorded.unwrap_or(0).saturating_sub(events).saturating_sub(behind);
        // Where the part ends before the last event, or begins behind it, they are not in it.
        let last = whole.cpus.get(lane).and_then(|counted| counted.last);
        let are_inside = part.events > 0 && last.is_some_and(|last| last < self.to || self.to >= self.end);
        let unread = if are_inside { behind } else { 0 };
        let beyond = stat.overrun.saturating_sub(marked.events);
        let overrun = match (marked.uncounted, part.marked.uncounted) {
            // They were lost at no known place, which may be in the part.
            (0, _) => part.marked.events.saturating_add(beyond),
            // All places whose marks have no number are in the part.
            (all, inside) if all == inside => part.marked.events.saturating_add(beyond),
            _ => part.marked.events,
        };
        if self.is_damaged {
            Numbers { recorded: part.events, overrun: part.marked.events, unread: 0 }
        } else {
            Numbers { recorded: part.events.saturating_add(unwritten), overrun, unread }
        }
    }
}
