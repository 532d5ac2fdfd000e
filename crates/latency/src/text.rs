//! The report as a text for people.

use crate::report::MeasureSummary;
use crate::{Idleness, LatencyReport, LatencyRow, Measure, Placement};
use sched::lengths::{Summary, human};
use sched::{Comm, Dur, Pid, Tracepoint};
use timeline::table::{TextColumn, TextTable};
use timeline::text::{CASES, Detail, case, case_head, paragraph, queued_kinds, short};
use timeline::{Drawable, Next, PageAddress};

/// The letters of the column of names.
const NAMES: usize = 19;

/// A table of lengths with its head; a name that is longer than the column of names has a line of its own.
fn table(name: &str) -> TextTable {
    let lengths = [TextColumn::Numbers(6); 6];
    let columns = [TextColumn::Names { least: NAMES, most: NAMES }, TextColumn::Numbers(5)];
    let mut table = TextTable::new(columns.into_iter().chain(lengths));
    table.row([name, "number", "mean", "50 %", "90 %", "99 %", "99.9 %", "max"]);
    table
}

/// Adds a table below an empty line.
fn add(out: &mut String, table: &TextTable) {
    out.push('\n');
    table.write(out);
}

fn line(table: &mut TextTable, name: &str, s: &Summary) {
    let mut cells = vec![name.to_owned(), s.count.to_string()];
    match s.count {
        0 => cells.push(human(None)),
        _ => cells.extend([s.mean_ns, s.p50_ns, s.p90_ns, s.p99_ns, s.p999_ns, s.max_ns].map(short)),
    }
    table.row(cells);
}

/// A line of a table of rows that can be stacks, whose names have lines of their own.
fn row_line(table: &mut TextTable, row: &LatencyRow, s: &Summary) {
    match row.group.as_ref().is_some_and(|group| group.stack.is_some()) {
        true => {
            let mut name = String::new();
            paragraph(&mut name, 2, 4, &row.shown());
            name.lines().for_each(|line| table.across(line));
            line(table, "", s);
        }
        false => line(table, &format!("  {}", row.shown()), s),
    }
}

/// The name of a measure in its column.
fn measure_name(measure: Measure) -> &'static str {
    match measure {
        Measure::New => "wait of new tasks",
        Measure::Preempted => "wait if preempted",
        _ => measure.name(),
    }
}

fn placement_name(placement: Placement, with_distances: bool) -> &'static str {
    match placement {
        Placement::Previous => "on the previous CPU",
        Placement::Core => "on the same core",
        Placement::Cluster => "in the same cluster",
        Placement::Llc => "in the same LLC",
        Placement::Node => "in the same node",
        Placement::Elsewhere if with_distances => "in another node",
        Placement::Elsewhere => "on another CPU",
        Placement::Unknown => "previous unknown",
    }
}

fn idleness_name(idleness: Idleness) -> &'static str {
    match idleness {
        Idleness::Target => "on an idle CPU",
        Idleness::Other => "busy, another idle",
        Idleness::Nobody => "while no CPU idled",
    }
}

/// The report for people: `trace` is the file as the command line has it, `rows` the maximum number of rows of a table.
pub fn text(report: &LatencyReport, trace: &Drawable, rows: usize, detail: Detail) -> String {
    let mut out = String::new();
    if let Some(why) = &report.selection_unknown {
        paragraph(&mut out, 0, 2, &format!("{trace}: how long tasks waited is unknown: {why}"));
        return out;
    }
    headline(&mut out, report, trace);
    let span = span(report);
    let mut all = table(&format!("all tasks; wakeup latency: from {span}"));
    for measure in Measure::ALL {
        match report.unmeasured.contains(&measure) {
            true => all.row([measure_name(measure), "-", "unknown"]),
            false => line(&mut all, measure_name(measure), &report.of(measure)),
        }
    }
    add(&mut out, &all);
    began_before(&mut out, report);
    let mut placements = table(&format!("wakeup latency (from {span}) by placement"));
    for split in report.by_placement.iter().filter(|s| s.summary.count > 0) {
        line(&mut placements, placement_name(split.kind, report.with_distances), &split.summary);
    }
    for split in report.by_idleness.iter().filter(|s| s.summary.count > 0) {
        line(&mut placements, idleness_name(split.kind), &split.summary);
    }
    if !report.by_placement.is_empty() {
        add(&mut out, &placements);
    }
    tables(&mut out, report, rows);
    match detail {
        Detail::Brief => brief_cases(&mut out, report, trace),
        Detail::Full => worst(&mut out, report, trace),
    }
    still_waiting(&mut out, report, trace, detail);
    let without_waking = report.without_waking.unwrap_or(0);
    if report.from_waking && without_waking > 0 {
        let which = match without_waking {
            1 => "1 wakeup of which no sched_waking was seen counts".to_owned(),
            n => format!("{n} wakeups of which no sched_waking was seen count"),
        };
        out.push('\n');
        paragraph(&mut out, 0, 2, &format!("{which} from queued to run alone"));
    }
    if let Some(throttled) = &report.throttled {
        let which = match throttled.count {
            1 => "1 wait was".to_owned(),
            n => format!("{n} waits were"),
        };
        let (total, most) = (throttled.total_ns.human(), human(throttled.max_ns));
        out.push('\n');
        let text =
            format!("{which} throttled by cpu.max, for {total} in all, at most {most}: not in the lengths above");
        paragraph(&mut out, 0, 2, &text);
    }
    if let Some(LongestWait { start, length, pid }) = longest_wait(report) {
        let commands = [Next::Draw, Next::Queues, Next::Migrations];
        trace.next(&mut out, "the longest wait", start, length, &commands);
        trace.view(&mut out, 2, &PageAddress::wait(pid, start, length));
    }
    out
}

/// The longest wait: its start from that of the trace, its length, and its task.
struct LongestWait {
    start: u64,
    length: Dur,
    pid: Pid,
}

/// The longest wakeup latency, or another wait where there is none, with its start; the wait that is still open at the end if that is longer.
fn longest_wait(report: &LatencyReport) -> Option<LongestWait> {
    let ended = report.worst.iter().find(|case| case.measure == Measure::Wakeup).or(report.worst.first());
    let ended =
        ended.map(|case| LongestWait { start: case.start_in_trace_ns, length: case.until_run(), pid: case.pid });
    let open = report.longest_still_waiting.map(|wait| LongestWait {
        start: wait.start_in_trace_ns,
        length: wait.duration_ns,
        pid: wait.pid,
    });
    // The one that ended where both are as long.
    open.into_iter().chain(ended).max_by_key(|wait| wait.length)
}

/// The two ends of a wakeup latency, in words.
pub(crate) fn span(report: &LatencyReport) -> &'static str {
    if report.from_waking { "waking to switch" } else { "wakeup to switch" }
}

fn headline(out: &mut String, report: &LatencyReport, trace: &Drawable) {
    let w = report.of(Measure::Wakeup);
    let is_unknown = report.unmeasured.contains(&Measure::Wakeup);
    let headline = match w.count {
        0 if is_unknown => {
            let why = "neither sched:sched_wakeup nor sched:sched_waking was recorded (trace-cmd record -e sched)";
            format!("{trace}: how long woken tasks waited is unknown: {why}")
        }
        0 => format!("{trace}: no woken task ran"),
        count => format!(
            "{trace}: woken tasks ran after {} (median), {} (99 %), {} (max); {}",
            human(w.p50_ns),
            human(w.p99_ns),
            human(w.max_ns),
            sched::nouns::counted(count, "wakeup")
        ),
    };
    let open = report.longest_still_waiting.filter(|wait| w.max_ns.is_none_or(|max| wait.duration_ns > max));
    let open = open.map_or(String::new(), |wait| {
        format!("; {} still waited after {}", wait.pid.named(wait.command), wait.duration_ns.human())
    });
    paragraph(out, 0, 2, &format!("{headline}{open}"));
    let counted = "an interval counts in the window in which it ends, with its full length";
    let from = match report.from_waking {
        _ if is_unknown => String::new(),
        true => format!("from {} to the switch; ", Tracepoint::Waking.name()),
        false => "from sched_wakeup, as sched_waking was not recorded, to the switch; ".to_owned(),
    };
    paragraph(out, 2, 3, &format!("({from}{counted})"));
    queued_kinds(out, report.queued);
    if report.queued_at_waking {
        let unknown = "how long a wakeup took until the task was queued is unknown";
        paragraph(out, 2, 3, &format!("(sched_wakeup was not recorded: {unknown})"));
    }
}

/// Describes the number of intervals that began before the window, of each measure that has any.
fn began_before(out: &mut String, report: &LatencyReport) {
    let of = |m: &MeasureSummary| format!("{} of {}", m.began_before, m.measure.name().trim_start());
    let earlier: Vec<String> = report.measures.iter().filter(|m| m.began_before > 0).map(of).collect();
    if !earlier.is_empty() {
        paragraph(out, 2, 3, &format!("(began before the window: {})", earlier.join(", ")));
    }
}

/// The tables by command or task.
fn tables(out: &mut String, report: &LatencyReport, rows: usize) {
    let of = |measure: Measure| move |row: &LatencyRow| row.measures.iter().find(|m| m.measure == measure).copied();
    let wakeup = format!("wakeup latency (from {}) of", span(report));
    for (measure, title) in [(Measure::Wakeup, wakeup.as_str()), (Measure::Preempted, "waits if preempted")] {
        let with: Vec<(&LatencyRow, MeasureSummary)> =
            report.rows.iter().filter_map(|row| Some((row, of(measure)(row)?))).collect();
        if with.is_empty() {
            continue;
        }
        let mut table = table(title);
        for (row, m) in with.iter().take(rows) {
            row_line(&mut table, row, &m.summary);
        }
        if with.len() > rows {
            table.across(format!("  … and {} more (--rows, --json)", with.len() - rows));
        }
        add(out, &table);
    }
}

/// The task that has waited longest at the end of the window.
fn still_waiting(out: &mut String, report: &LatencyReport, trace: &Drawable, detail: Detail) {
    let Some(wait) = report.longest_still_waiting else { return };
    let who = match report.still_waiting {
        None | Some(1) => "1 task still waited at the end".to_owned(),
        Some(n) => format!("{n} tasks still waited at the end, the longest"),
    };
    let (length, from) = (wait.duration_ns.human(), wait.start_in_trace_ns as f64 / 1e9);
    let task = wait.pid.named(wait.command);
    out.push('\n');
    paragraph(out, 0, 2, &format!("{who} for {length} from {from:.6} s: {task} on CPU {}", wait.cpu));
    if detail == Detail::Full {
        trace.draw(out, CASE, wait.start_in_trace_ns, wait.duration_ns);
    }
}

/// The waits whose longest cases are shown.
const KINDS: [(Measure, &str); 3] = [
    (Measure::Wakeup, "longest wakeup latencies"),
    (Measure::New, "longest waits of new tasks"),
    (Measure::Preempted, "longest waits after preemption"),
];

/// The indentation of what follows the first line of a case.
const CASE: usize = 5;

fn task_name(pid: Pid, name: Comm) -> String {
    match pid {
        Pid::IDLE => "the idle task".to_owned(),
        pid => pid.named(name),
    }
}

/// The title of a list of cases; that of wakeup latencies with their two ends.
fn case_title(out: &mut String, report: &LatencyReport, measure: Measure, title: &str) {
    let ends = if measure == Measure::Wakeup { format!(" (from {})", span(report)) } else { String::new() };
    out.extend(["\n", title, &ends, ":\n"]);
}

/// A line for each of the longest cases.
fn brief_cases(out: &mut String, report: &LatencyReport, trace: &Drawable) {
    for (measure, title) in KINDS {
        let mut cases = report.worst.iter().filter(|c| c.measure == measure).take(CASES).peekable();
        if cases.peek().is_none() {
            continue;
        }
        case_title(out, report, measure, title);
        case_head(out, "idle  task");
        for c in cases {
            let task = task_name(c.pid, c.command);
            let behind = if c.is_behind() { format!(" {}", c.behind_in_words()) } else { String::new() };
            // A migration on the way does not end the wait.
            let ran = if c.ran_on == c.queued_on { String::new() } else { format!(" (ran on {})", c.ran_on) };
            let text = format!("{:>4}  {task} on CPU {}{ran}{behind}", c.idle_cpus, c.queued_on);
            case(out, c.start_in_trace_ns, c.duration_ns, &text);
        }
    }
    if !report.worst.is_empty() {
        out.push_str("  (idle: CPUs that idled when it was queued; behind: what ran there then,\n   where that stayed for half of the wait or longer)\n");
        trace.draw_any(out);
    }
}

/// Lists every case that was kept.
fn worst(out: &mut String, report: &LatencyReport, trace: &Drawable) {
    for (measure, title) in KINDS {
        let mut cases = report.worst.iter().filter(|c| c.measure == measure).peekable();
        if cases.peek().is_none() {
            continue;
        }
        case_title(out, report, measure, title);
        for c in cases {
            let start = c.start_in_trace_ns;
            let waker = match c.waker {
                None => String::new(),
                Some(Pid::IDLE) => ", woken from the idle task".to_owned(),
                Some(waker) => format!(", woken by {}", waker.named(c.waker_command)),
            };
            let idle = match c.idle_cpus {
                0 => "no CPU idled".to_owned(),
                1 => "1 CPU idled".to_owned(),
                n => format!("{n} CPUs idled"),
            };
            let (task, behind) = (task_name(c.pid, c.command), c.behind_in_words());
            let slice = match c.behind_within_slice {
                None => "",
                Some(true) => " within its slice",
                Some(false) => " beyond its slice",
            };
            let by = c.behind_by.map_or(String::new(), |reason| format!(" by {}", reason.words()));
            let line = format!(
                "  {:>9} from {:.6} s: {task}{waker}; queued on CPU {} {behind}{slice}{by} ({idle}), ran on CPU {} after {}",
                c.duration_ns.human(),
                start as f64 / 1e9,
                c.queued_on,
                c.ran_on,
                task_name(c.after, c.after_command)
            );
            paragraph(out, 0, CASE, &line);
            trace.draw(out, CASE, start, c.until_run());
        }
    }
}
