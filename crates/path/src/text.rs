//! The path for people.

use crate::by_group::PathByGroup;
use crate::chain::SegmentKind;
use crate::report::{Path, Share, Times};
use crate::stacks;
use membership::TasksBy;
use sched::{Dur, Pid, QueuedTimes, Ts};
use session::stacks::NamedStacks;
use std::fmt::Write;
use timeline::text::paragraph;
use timeline::{Drawable, PageAddress};

fn seconds(ns: u64) -> String {
    format!("{:.4} s", Dur(ns).seconds())
}

/// A time that is unknown where its events were not recorded.
fn seconds_if_known(ns: Option<u64>) -> String {
    ns.map_or("unknown".to_owned(), seconds)
}

/// A number of things, with its noun.
fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn line<K>(out: &mut String, name: &str, share: &Share<K>) {
    let Times { running_ns, queued_ns, waking_ns, sleeping_ns, .. } = share.times;
    // A name that is longer than its column has a line of its own. Writing to a string cannot fail.
    let _ = match name.chars().count() {
        0..=24 => write!(out, "  {name:<24}"),
        _ => {
            paragraph(out, 2, 4, name);
            write!(out, "  {:<24}", "")
        }
    };
    for ns in [Some(running_ns), Some(queued_ns), waking_ns, sleeping_ns] {
        let _ = write!(out, "{:>11}", seconds_if_known(ns));
    }
    out.push('\n');
}

/// The last segments of the path, one per line. `most`: the maximum number of lines.
pub fn segments_text(path: &Path, zero: Ts, most: usize) -> String {
    segments_with_stacks(path, zero, most, &NamedStacks::default())
}

/// The last segments of the path, each with the function that names it where the trace has its stack.
pub(crate) fn segments_with_stacks(path: &Path, zero: Ts, most: usize, stacks: &NamedStacks) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{:>12}  {:>10}  {:>7}  task", "from, s", "length", "");
    for segment in &path.path[path.path.len().saturating_sub(most)..] {
        let state = segment.kind.word();
        let name = |pid: Pid| pid.named(path.commands.get(&pid).copied().unwrap_or_default());
        let place = segment.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
        let stayed = (segment.behind_ns, segment.length());
        let behind = segment.behind.map_or(String::new(), |pid| format!(" {} {}", behind_words(stayed), name(pid)));
        let at = stacks::function(segment, stacks).map_or(String::new(), |function| match segment.kind {
            SegmentKind::Waking => format!(" by {function}"),
            _ => format!(" in {function}"),
        });
        let possibly = if segment.is_possible { ", possibly" } else { "" };
        let start = segment.start_ns.0.saturating_sub(zero.0) as f64 / 1e9;
        let length = segment.end_ns.since(segment.start_ns).human();
        let _ = writeln!(
            out,
            "{start:>12.6}  {length:>10}  {state:>7}  {}{place}{behind}{at}{possibly}",
            name(segment.pid)
        );
    }
    let left = path.path.len().saturating_sub(most);
    if left > 0 {
        let _ = writeln!(out, "  ({left} segments before these; --segments, --max)");
    }
    out
}

/// The part of a queued time while a CPU idled, and those that were held back and beside shorter queues if there are any, in words.
fn kinds(kinds: &QueuedTimes) -> String {
    let mut words = format!("{} of that while a CPU idled", Dur(kinds.beside_idle_ns).human());
    for (ns, place) in
        [(kinds.beside_shorter_ns, "beside a shorter queue"), (kinds.held_back_ns, "held back on an idle CPU")]
    {
        if ns > 0 {
            words.push_str(&format!(", {} {place}", Dur(ns).human()));
        }
    }
    words
}

/// The words for a task that ran as a wait began, and stayed for this part of it.
fn behind_words((stayed, length): (u64, u64)) -> &'static str {
    if stayed.saturating_mul(2) >= length { "behind" } else { "at first behind" }
}

/// The tasks behind which the path was queued, each of which stayed for a part of it that is worth a line.
fn put_behind(out: &mut String, path: &Path, most: usize) {
    let least = (path.to_ns.since(path.from_ns).0 / LEAST_SLEEPS).max(1);
    let rows = path.behind.iter().filter(|row| row.behind_ns >= least).take(most);
    for (nth, row) in rows.enumerate() {
        // Writing to a string cannot fail.
        if nth == 0 {
            let _ = writeln!(
                out,
                "\n{:>11}  {:>9}  {:>7}  a task that ran as the path was queued",
                "behind", "queued", "waits"
            );
        }
        let class = row.class.map_or(String::new(), |class| format!(" ({})", class.words()));
        let times = format!("{:>11}  {:>9}  {:>7}", seconds(row.behind_ns), seconds(row.queued_ns), row.segments);
        let task = row.task.pid.named(row.task.command);
        paragraph(out, 0, times.len() + 2, &format!("{times}  {task}{class}"));
    }
}

/// A pair of tasks has a line where its sleeps are one in this number of the path's nanoseconds, or more.
const LEAST_SLEEPS: u64 = 100;

/// The sleeps that another task explains, by both.
fn put_sleeps(out: &mut String, path: &Path, most: usize) {
    let least = (path.to_ns.since(path.from_ns).0 / LEAST_SLEEPS).max(1);
    let rows = path.sleeps.iter().filter(|row| row.slept_ns >= least).take(most);
    for (nth, row) in rows.enumerate() {
        // Writing to a string cannot fail.
        if nth == 0 {
            let _ = writeln!(out, "\n{:>11}  {:>9}  {:>7}  a task until another", "asleep", "queued", "sleeps");
        }
        let both = format!("{} until {}", row.task.pid.named(row.task.command), row.until.pid.named(row.until.command));
        let times = format!("{:>11}  {:>9}  {:>7}", seconds(row.slept_ns), seconds(row.queued_ns), row.sleeps);
        paragraph(out, 0, times.len() + 2, &format!("{times}  {both}"));
    }
}

/// More about the same path.
#[derive(Debug, Default)]
pub struct Further {
    /// The time for which the host kept the vCPUs of a guest, where its recording is named.
    pub kept: Option<Dur>,
    /// Tables, as text.
    pub tables: String,
}

/// The report of one trace, with the path by groups of tasks, where that is asked for. `most`: the maximum number of rows of each table.
/// The tables of `further` stand before the list of the longest queued segments.
pub fn text(path: &Path, groups: Option<&PathByGroup>, trace: &Drawable, most: usize, further: &Further) -> String {
    let mut out = String::new();
    let Some(task) = path.task else {
        return format!("{trace}: no such task in the window: there is no path\n");
    };
    let length = path.to_ns.since(path.from_ns);
    let end = if path.ends_with_exit { "to its exit" } else { "to the end of the window" };
    let times = path.times;
    let percent = |ns: u64| 100.0 * ns as f64 / (length.0 as f64).max(1.0);
    let named = task.pid.named(task.command);
    let share = percent(times.unknown_ns);
    let (length, queued) = (seconds(length.0), seconds(times.queued_ns));
    let kept = further
        .kept
        .map_or_else(String::new, |kept| format!("; for {} of the path the host kept the vCPU", seconds(kept.0)));
    let beside_idle = kinds(&times.kinds()) + &kept;
    let headline = match path.is_untrusted {
        true => format!(
            "the critical path is not to be trusted, since {share:.1} % of it is unknown: {length} of {named}, {end}: at least {queued} queued, \
             {beside_idle}"
        ),
        false => format!("{length} on the critical path of {named}, {end}: {queued} queued, {beside_idle}"),
    };
    paragraph(&mut out, 0, 2, &format!("{trace}: {headline}"));
    let segments = counted(path.segments, "segment");
    match path.handovers {
        Some(number) => {
            let handovers = counted(number, "handover");
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "  ({segments}, {handovers} between tasks; queued time bounds what\n   a scheduler could gain on this path, and does not predict it)"
            );
        }
        None => paragraph(
            &mut out,
            2,
            3,
            &format!(
                "({segments}; sched:sched_waking was not recorded: who woke the tasks, and what they slept for, is unknown)"
            ),
        ),
    }
    if path.gaps > 0 {
        let _ = writeln!(
            out,
            "  ({} of {} in all, the longest of {}:\n   what the task did then was not recorded)",
            counted(path.gaps, "gap"),
            Dur(times.unknown_ns).human(),
            Dur(path.longest_gap_ns).human()
        );
    }
    if path.possible_ns > 0 {
        let _ = writeln!(
            out,
            "  ({} of it is possibly on the path: softirqs woke its tasks,\n   perhaps for the tasks on top of which they ran)",
            Dur(path.possible_ns).human()
        );
    }
    if path.is_cut {
        let _ = writeln!(out, "  (the beginning of the path was dropped: it has too many segments)");
    }
    let _ = writeln!(out, "\n{:<26}  {:>9}  {:>7}", "on the path", "time", "share");
    let rows = [
        ("running", Some(times.running_ns)),
        ("queued", Some(times.queued_ns)),
        ("  held back", Some(times.queued_held_back_ns)),
        ("  while a CPU idled", Some(times.queued_beside_idle_ns)),
        ("  beside a shorter queue", Some(times.queued_beside_shorter_ns)),
        ("  all queues alike", Some(times.queued_alike_ns)),
        ("wakeup in progress", times.waking_ns),
        ("sleeping until interrupt", times.sleeping_ns),
        ("unknown", Some(times.unknown_ns)),
    ];
    let throttled = (times.throttled_ns > 0).then_some(("throttled by cpu.max", Some(times.throttled_ns)));
    for (name, ns) in rows.into_iter().chain(throttled) {
        let share = ns.map_or(String::new(), |ns| format!("  {:>6.1}%", percent(ns)));
        let _ = writeln!(out, "  {name:<24}  {:>9}{share}", seconds_if_known(ns));
    }
    let heads = ["running", "queued", "waking", "sleeping"];
    let head = |out: &mut String, name: &str| {
        let heads: String = heads.iter().map(|head| format!("  {head:>9}")).collect();
        let _ = writeln!(out, "\n{name:<26}{heads}");
    };
    let more = |out: &mut String, all: usize| {
        if all > most {
            let _ = writeln!(out, "  … {} more (--rows, --json)", all - most);
        }
    };
    head(&mut out, "by task");
    for share in path.tasks.iter().take(most) {
        line(&mut out, &share.of.pid.named(share.of.command), share);
    }
    more(&mut out, path.tasks.len());
    if let Some(groups) = groups {
        head(
            &mut out,
            match groups.by {
                TasksBy::Command => "by command",
                TasksBy::Task => "by task",
                TasksBy::Process => "by process",
                TasksBy::Cgroup => "by cgroup",
                TasksBy::Params => "by scheduling parameters",
                TasksBy::Stack => "by stack of the switch-out",
            },
        );
        for share in groups.rows.iter().take(most) {
            line(&mut out, &share.of.shown(), share);
        }
        more(&mut out, groups.rows.len());
    }
    head(&mut out, "by CPU");
    for share in path.cpus.iter().take(most) {
        line(&mut out, &format!("CPU {}", share.of.cpu), share);
    }
    more(&mut out, path.cpus.len());
    put_sleeps(&mut out, path, most);
    put_behind(&mut out, path, most);
    out.push_str(&further.tables);
    if !path.longest_queued.is_empty() {
        out.push_str("\nlongest queued segments:\n");
    }
    for queued in &path.longest_queued {
        let class = queued.behind_class.map_or(String::new(), |class| format!(" ({})", class.words()));
        let behind = match queued.behind {
            Some(task) => {
                let stayed = queued.behind_ns.unwrap_or_default();
                let words = behind_words((stayed.0, queued.duration_ns.0));
                let part = if stayed < queued.duration_ns { format!(" for {}", stayed.human()) } else { String::new() };
                format!(" {words} {}{class}{part}", task.pid.named(task.command))
            }
            None => String::new(),
        };
        let cpu = queued.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
        let line = format!(
            "  {:>9} from {:.6} s: {}{cpu}{behind}",
            queued.duration_ns.human(),
            queued.start_in_trace_ns as f64 / 1e9,
            queued.task.pid.named(queued.task.command)
        );
        paragraph(&mut out, 0, 12, &line);
        paragraph(&mut out, 12, 14, &kinds(&queued.kinds));
    }
    if let Some(longest) = path.longest_queued.first() {
        trace.draw_any(&mut out);
        let view = PageAddress::wait(longest.task.pid, longest.start_in_trace_ns, longest.duration_ns).row();
        trace.next_view(&mut out, "the longest of these", &view);
    }
    out
}
