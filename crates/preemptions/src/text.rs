//! The report as a text for people.

use crate::case::PreemptionCase;
use crate::cpu::{Asker, Kind};
use crate::{PreemptionRow, PreemptionsReport, Source, Way};
use sched::lengths::{Summary, human};
use sched::nouns::counted;
use sched::{Comm, Dur, Pid};
use std::fmt::Write;
use timeline::table::{TextColumn, TextTable};
use timeline::text::{CASES, Detail, case, case_head, paragraph, short};
use timeline::{Drawable, Next};

/// Returns the report for people: `trace` is the file as the command line has it, `rows` the maximum number of rows of a table.
pub fn text(report: &PreemptionsReport, trace: &Drawable, rows: usize, detail: Detail) -> String {
    let mut out = String::new();
    if let Some(why) = &report.selection_unknown {
        paragraph(&mut out, 0, 2, &format!("{trace}: how long tasks kept their CPUs is unknown: {why}"));
        return out;
    }
    headline(&mut out, report, trace);
    ways(&mut out, report);
    askers(&mut out, report);
    notes(&mut out, report);
    asked_rows(&mut out, report, rows);
    profit_rows(&mut out, report, rows);
    let brief = detail == Detail::Brief;
    let most = if brief { CASES } else { usize::MAX };
    cases(&mut out, "longest requests", &report.longest, most);
    cases(&mut out, "requests that stayed lazy for longer than a tick", &report.long_lazy, most);
    holders(&mut out, report, most);
    if let Some(case) = report.longest.first() {
        let commands = [Next::Draw, Next::Queues];
        trace.next(&mut out, "the longest request", case.start_in_trace_ns, case.at_least_ns, &commands);
    }
    out
}

fn headline(out: &mut String, report: &PreemptionsReport, trace: &Drawable) {
    let requests = report.requests.unwrap_or(0);
    let of =
        |test: fn(&Way) -> bool| report.ways.iter().filter(|way| test(way)).map(|way| way.at_most.count).sum::<u64>();
    let (preempted, lazy) = (of(|way| way.ending.is_preemption()), of(|way| way.kind == Kind::Lazy));
    let least = if report.source == Source::Flags { "at least " } else { "" };
    let number = counted(requests, "request");
    let headline = match requests {
        0 if report.source == Source::Probe => format!("{trace}: the kernel asked no running task to give way"),
        0 => format!("{trace}: no event shows that the kernel asked a running task to give way"),
        _ if preempted == 0 => {
            let longest = report.ways.iter().filter_map(|way| way.at_most.max_ns).max();
            format!(
                "{trace}: running tasks kept their CPUs for at most {} after the kernel asked them to give way; {least}{number}, \
                 {lazy} lazy, none ended in a preemption",
                human(longest)
            )
        }
        _ => format!(
            "{trace}: running tasks kept their CPUs for {} (median), {} (99 %), {} (max) after the kernel asked them to give way; \
             {least}{number}, {lazy} lazy, {preempted} ended in a preemption",
            between(report, |summary| summary.p50_ns),
            between(report, |summary| summary.p99_ns),
            between(report, |summary| summary.max_ns)
        ),
    };
    paragraph(out, 0, 2, &headline);
    let source = match report.source {
        Source::Probe => "(from sched_set_need_resched_tp to the switch, or to what else ended the request)",
        Source::Flags => {
            "(no probe on requests was recorded: from the flags of the events on the CPU, which give bounds. A request that ends \
             before an event shows it is missing, unless the task was switched out inside the kernel: record --why has all)"
        }
    };
    paragraph(out, 2, 3, source);
    if !report.has_lazy {
        paragraph(
            out,
            2,
            3,
            "(this kernel is not known to have lazy requests, which came with 6.13: every request is immediate)",
        );
    }
}

/// A number of the times to preemptions: the greatest that it can be, and the least where that is another.
fn between(report: &PreemptionsReport, of: impl Fn(&Summary) -> Option<Dur>) -> String {
    let [least, most] = [of(&report.preempted_at_least), of(&report.preempted_at_most)];
    if least == most { human(most) } else { format!("{} to {}", human(least), human(most)) }
}

/// A table of lengths with its head.
fn table(name: &str) -> TextTable {
    let columns = [TextColumn::Names { least: 35, most: 39 }, TextColumn::Numbers(6)];
    let mut table = TextTable::new(columns.into_iter().chain([TextColumn::Numbers(6); 4]));
    table.row([name, "number", "mean", "50 %", "99 %", "max"]);
    table
}

/// Adds a table below an empty line.
fn add(out: &mut String, table: &TextTable) {
    out.push('\n');
    table.write(out);
}

fn line(table: &mut TextTable, name: &str, s: &Summary) {
    let lengths = [s.mean_ns, s.p50_ns, s.p99_ns, s.max_ns].map(short);
    table.row([name.to_owned(), s.count.to_string()].into_iter().chain(lengths));
}

fn kind_words(kind: Kind, made_immediate: bool) -> &'static str {
    match (kind, made_immediate) {
        (Kind::Immediate, _) => "immediate requests",
        (Kind::Lazy, false) => "lazy requests",
        (Kind::Lazy, true) => "lazy requests that were made immediate",
        (Kind::Unknown, _) => "requests whose kind no event shows",
    }
}

/// The table of requests by kind and end.
fn ways(out: &mut String, report: &PreemptionsReport) {
    for ways in report.ways.chunk_by(|a, b| (a.kind, a.made_immediate) == (b.kind, b.made_immediate)) {
        let mut table = table(kind_words(ways[0].kind, ways[0].made_immediate));
        for way in ways {
            let name = format!("  {}", way.ending.words());
            if way.at_least == way.at_most {
                line(&mut table, &name, &way.at_most);
            } else {
                line(&mut table, &format!("{name} ≥"), &way.at_least);
                line(&mut table, &format!("{name} ≤"), &way.at_most);
            }
        }
        add(out, &table);
    }
    if report.ways.iter().any(|way| way.at_least != way.at_most) {
        out.push_str("  (≥ at least, ≤ at most: the events give bounds)\n");
    }
}

fn askers(out: &mut String, report: &PreemptionsReport) {
    if report.askers.is_empty() {
        return;
    }
    let most = if report.source == Source::Flags { "asked by (possibly), at most" } else { "asked by" };
    let mut by_asker = table(most);
    for row in &report.askers {
        line(&mut by_asker, &format!("  {}", row.asker.words()), &row.at_most);
    }
    add(out, &by_asker);
    let sums = [
        ("the tasks that ran instead had waited", &report.profited),
        ("left of the preempted tasks' requests", &report.request_left),
    ];
    for (name, lengths) in sums.into_iter().filter(|(_, lengths)| lengths.count > 0) {
        let mut all = table(name);
        line(&mut all, "  all", lengths);
        add(out, &all);
    }
    if let Some(unknown) = report.request_left_unknown.filter(|unknown| *unknown > 0) {
        let tasks = counted(unknown, "preempted task");
        let text = format!(
            "{tasks} had passed the deadline: the kernel renews the request there, and the rest of it is not recorded"
        );
        out.push_str(if report.request_left.count > 0 { "" } else { "\n" });
        paragraph(out, 2, 4, &text);
    }
}

fn notes(out: &mut String, report: &PreemptionsReport) {
    let mut notes = String::new();
    let mut note = |text: String| paragraph(&mut notes, 0, 2, &text);
    let (saved, longer) = (report.switches_saved.unwrap_or(0), report.lazy_for_longer.unwrap_or(0));
    if report.has_lazy {
        let expected = report.longest_lazy_ns.human();
        note(format!(
            "{} ended in a sleep or an exit: {} less than with immediate ones",
            counted(saved, "lazy request"),
            counted(saved, "involuntary switch")
        ));
        note(format!(
            "{} stayed lazy for longer than {expected}, a tick and a quarter (--tick)",
            counted(longer, "request")
        ));
    }
    if let Some(idle) = report.to_idle {
        note(format!("{} to the idle task: wakeups of an idle CPU, in no figure above", counted(idle, "request")));
    }
    let without = report.without_request.unwrap_or(0);
    if without > 0 {
        note(format!(
            "{} from a task that could run, without a request that is seen: it yielded, or returned to user mode with one that no event shows",
            counted(without, "switch")
        ));
    }
    for (number, what) in [(report.lost, "cut by lost events"), (report.open, "open at the end")] {
        let number = number.unwrap_or(0);
        if number > 0 {
            note(format!("{} {what}, in no figure above", counted(number, "request")));
        }
    }
    if !notes.is_empty() {
        out.extend(["\n", &*notes]);
    }
}

fn row_name(row: &PreemptionRow) -> String {
    if let Some(group) = &row.group {
        return group.shown();
    }
    match (row.pid, row.cpu, row.command) {
        (Some(pid), _, command) => pid.named(command.unwrap_or(Comm::EMPTY)),
        (_, Some(cpu), _) => format!("CPU {cpu}"),
        (_, _, command) => command.unwrap_or(Comm::EMPTY).to_string(),
    }
}

fn more(out: &mut String, all: usize, rows: usize) {
    if all > rows {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  … and {} more (--rows, --json)", all - rows);
    }
}

fn asked_rows(out: &mut String, report: &PreemptionsReport, rows: usize) {
    if report.rows.is_empty() {
        return;
    }
    let columns = [TextColumn::Names { least: 25, most: 25 }, TextColumn::Numbers(6), TextColumn::Numbers(5)];
    let mut table = TextTable::new(columns.into_iter().chain([TextColumn::Numbers(6); 5]));
    table.row(["asked to give way", "number", "lazy", "gave", "slept", "kept", "50 %", "max"]);
    for row in report.rows.iter().take(rows) {
        let numbers = [row.requests, row.lazy, row.preempted, row.slept, row.kept].map(|number| number.to_string());
        let lengths = [row.at_most.p50_ns, row.at_most.max_ns].map(short);
        table.row([format!("  {}", row_name(row))].into_iter().chain(numbers).chain(lengths));
    }
    add(out, &table);
    more(out, report.rows.len(), rows);
}

fn profit_rows(out: &mut String, report: &PreemptionsReport, rows: usize) {
    if report.profiteers.is_empty() {
        return;
    }
    let mut table = table("ran instead, after a wait");
    for row in report.profiteers.iter().take(rows) {
        line(&mut table, &format!("  {}", row_name(row)), &row.profited);
    }
    add(out, &table);
    more(out, report.profiteers.len(), rows);
}

fn task(pid: Pid, command: Comm) -> String {
    if pid.is_idle() { "the idle task".to_owned() } else { pid.named(command) }
}

fn cases(out: &mut String, title: &str, cases: &[PreemptionCase], most: usize) {
    if cases.is_empty() {
        return;
    }
    out.extend(["\n", title, ":\n"]);
    case_head(out, "task");
    for c in cases.iter().take(most) {
        let by = match (c.asker_pid, c.asker_command) {
            (Some(pid), Some(command)) => format!("by {} ({})", c.asker.words(), task(pid, command)),
            _ if c.asker == Asker::Unseen => "(no event shows by what)".to_owned(),
            _ => format!("by {}", c.asker.words()),
        };
        let then = match c.next {
            Some(next) => {
                format!("{}; then {}{}", c.ending.words(), task(next.pid, next.command), waited(next.waited_ns))
            }
            None => c.ending.words().to_owned(),
        };
        let kind = match c.kind {
            Kind::Immediate => "immediately".to_owned(),
            Kind::Unknown => "in an unknown way".to_owned(),
            Kind::Lazy => format!("lazily for {}", human(c.lazy_at_most_ns)),
        };
        let bounds =
            if c.at_least_ns == c.at_most_ns { String::new() } else { format!(" (at most {})", c.at_most_ns.human()) };
        let left =
            c.request_left_ns.map_or_else(String::new, |left| format!(", with {} of its request left", left.human()));
        let text = format!("{} on CPU {}, asked {kind} {by}; {then}{left}{bounds}", task(c.pid, c.command), c.cpu);
        case(out, c.start_in_trace_ns, c.at_least_ns, &text);
    }
}

fn waited(wait: Option<Dur>) -> String {
    wait.map_or_else(String::new, |wait| format!(", which had waited {}", wait.human()))
}

fn holders(out: &mut String, report: &PreemptionsReport, most: usize) {
    let Some(waits) = report.lock_waits else { return };
    let with = report.lock_waits_with_holders.unwrap_or(0);
    out.push('\n');
    let text = format!(
        "{} for a lock of the kernel ended; during {with} of them a task was preempted in the kernel that can have held the lock",
        counted(waits, "wait")
    );
    paragraph(out, 0, 2, &text);
    for held in report.lock_holders.iter().take(most) {
        let others = held.candidates.saturating_sub(1);
        let text = format!(
            "{:>9}  {} waited; {} was preempted meanwhile on CPU {} by {}; {} like it",
            held.waited_ns.human(),
            task(held.waiter, held.waiter_command),
            task(held.holder, held.holder_command),
            held.holder_cpu,
            task(held.next, held.next_command),
            match others {
                0 => "no other".to_owned(),
                n => counted(n, "other"),
            }
        );
        paragraph(out, 2, 13, &text);
    }
}
