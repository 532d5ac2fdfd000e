//! The report for people: as text, and as Markdown for a mail.

use crate::grouping::{GroupRow, OnCpu};
use crate::longest::Longest;
use crate::missed::{GateRow, Missed};
use crate::nearest::Nearest;
use crate::report::{Rows, WhyReport, WhyRow};
use crate::sentence::finding;
use crate::story::Story;
use crate::{barred, not_running, smaller};
use sched::balancer::{NewIdleOutcome, Verdicts};
use sched::lengths::human;
use sched::nouns::noun;
use sched::{Dur, Pid};
use std::collections::BTreeMap;
use std::fmt::Write;
use timeline::text::{paragraph, queued_kinds, short};
use timeline::{Drawable, PageAddress};
use workcons::Waiters;

/// The rows of one origin.
struct OriginRows<'r> {
    words: &'r str,
    rows: Vec<&'r WhyRow>,
}

impl OriginRows<'_> {
    fn total(&self) -> u64 {
        self.rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.total_ns.0))
    }

    fn number(&self) -> u64 {
        self.rows.iter().map(|row| row.number).sum()
    }

    fn percent(&self) -> f64 {
        self.rows.iter().map(|row| row.percent).sum()
    }
}

/// The rows by origin, the origin with the most time first.
fn groups(rows: &Rows) -> Vec<OriginRows<'_>> {
    let mut groups: Vec<OriginRows<'_>> = Vec::new();
    for row in &rows.rows {
        match groups.iter_mut().find(|group| group.words == row.words[0]) {
            Some(group) => group.rows.push(row),
            None => groups.push(OriginRows { words: &row.words[0], rows: vec![row] }),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.total()));
    groups
}

fn seconds(ns: u64) -> String {
    format!("{:.4} s", Dur(ns).seconds())
}

fn case(longest: &Longest) -> String {
    let task = longest.pid.map_or(String::new(), |pid| format!(": {}", pid.named(longest.command)));
    let start = longest.start_in_trace_ns as f64 / 1e9;
    let violated = longest.violated_ns.human();
    // The whole length is told where it is more than the time in violation.
    let length = match longest.duration_ns {
        length if length == longest.violated_ns => String::new(),
        length => format!(" of {}", length.human()),
    };
    format!("longest {violated}{length} from {start:.6} s on CPU {}{task}", longest.cpu)
}

pub(crate) fn counted(report: &WhyReport) -> &'static str {
    match report.waiters {
        Waiters::Application if report.are_chosen => "the chosen tasks count",
        Waiters::All => "every waiting task counts",
        Waiters::Movable => "kernel threads bound to their CPU do not count",
        Waiters::Application => "waiting tasks of the application count",
    }
}

/// The sentence in the place of the tables where there is no violation.
const NO_VIOLATION: &str = "no violation: no CPU idled while a task that counts and may use it waited on a busy CPU";

/// The report of one trace. `most`: the maximum number of rows of each table.
pub fn text(report: &WhyReport, trace: &Drawable, most: usize) -> String {
    let mut out = String::new();
    let (Some(waiting), Some(idling)) = (&report.waiting, &report.idling) else {
        let why = report.selection_unknown.as_deref().unwrap_or("the window has no events");
        return format!("{trace}: why tasks waited is unknown: {why}\n");
    };
    finding(&mut out, report);
    let waited = seconds(waiting.total_ns.0);
    paragraph(&mut out, 0, 2, &format!("{trace}: tasks waited {waited} while CPUs idled"));
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "  (runqueue wait; {} of {} in violation, {:.2} %;\n   {})",
        seconds(report.violation_ns.unwrap_or_default().0),
        seconds(report.window_ns.0),
        report.violation_percent.unwrap_or_default(),
        counted(report)
    );
    queued_kinds(&mut out, report.queued);
    if waiting.rows.is_empty() && idling.rows.is_empty() {
        out.push('\n');
        paragraph(&mut out, 0, 2, NO_VIOLATION);
    } else {
        table(&mut out, "waiting in violation", waiting, most);
        table(&mut out, "idling in violation", idling, most);
        if let Some(rows) = &report.by {
            grouped(&mut out, rows, most);
        }
    }
    if !waiting.rows.is_empty() {
        trace.draw_any(&mut out);
    }
    missed(&mut out, report);
    if let Some(rows) = &report.assumed_bound {
        bound(&mut out, rows, most);
    }
    out.push_str(&barred::text(report.barred.as_deref(), 3));
    out.push_str(&smaller::text(report.on_smaller_cpu.as_deref()));
    out.push_str(&not_running::text(report.vcpu_not_running.as_ref(), (waiting.total_ns, idling.total_ns)));
    if let Some((longest, pid)) = longest_wait(waiting) {
        let view = PageAddress::wait(pid, longest.start_in_trace_ns, longest.duration_ns);
        trace.next_view(&mut out, "the longest of these waits", &view);
    }
    out
}

/// The wait that was in violation for longest, with its task; the first of equal ones.
fn longest_wait(waiting: &Rows) -> Option<(&Longest, Pid)> {
    let longest =
        waiting.rows.iter().filter_map(|row| row.longest.as_ref()).filter_map(|found| Some((found, found.pid?)));
    longest.min_by_key(|(found, _)| (std::cmp::Reverse(found.violated_ns), found.start_in_trace_ns))
}

/// The tasks that are assumed to be bound.
fn bound(out: &mut String, rows: &[GroupRow], most: usize) {
    if rows.is_empty() {
        out.push('\n');
        paragraph(
            out,
            0,
            2,
            "no task is assumed to be bound: none that waited for 100 ms in violation stayed on one CPU",
        );
        return;
    }
    let _ = writeln!(
        out,
        "\n{:<33}  {:>8}  {:>6}  {:>6}  {:>12}",
        "assumed to be bound", "time", "share", "number", "to CPU"
    );
    for row in rows.iter().take(most) {
        let (cpu, time) = (longest_cpu(row), seconds(row.total_ns.0));
        let _ = writeln!(out, "{:<33}  {time:>8}  {:>5.1}%  {:>6}  {cpu:>12}", name(row), row.percent, row.number);
    }
    if rows.len() > most {
        let _ = writeln!(out, "  … {} more (--rows, --json)", rows.len() - most);
    }
    let note =
        "(never on another CPU, although they waited there in violation for at least 100 ms; they do not count above)";
    paragraph(out, 2, 2, note);
}

fn table(out: &mut String, title: &str, rows: &Rows, most: usize) {
    // All origins are shown, each with those of its rows that are among the longest of the table.
    let least = match most.checked_sub(1) {
        Some(last) => rows.rows.get(last).map_or(Dur(0), |row| row.total_ns),
        None => Dur(u64::MAX),
    };
    let _ =
        writeln!(out, "\n{title:<34}  {:>8}  {:>5}  {:>6}  {:>6}  {:>6}", "time", "share", "number", "50 %", "99 %");
    for group in groups(rows) {
        let _ = writeln!(
            out,
            "{:<34}  {:>8}  {:>4.1}%  {:>6}",
            group.words,
            seconds(group.total()),
            group.percent(),
            group.number()
        );
        for row in group.rows.iter().filter(|row| row.total_ns >= least) {
            let _ = writeln!(
                out,
                "  {:<32}  {:>8}  {:>4.1}%  {:>6}  {:>6}  {:>6}",
                row.words[1],
                seconds(row.total_ns.0),
                row.percent,
                row.number,
                short(row.p50_ns),
                short(row.p99_ns)
            );
            if let Some(longest) = &row.longest {
                let _ = writeln!(out, "    {}", case(longest));
            }
        }
    }
    let number: u64 = rows.rows.iter().map(|row| row.number).sum();
    let _ = writeln!(out, "{:<34}  {:>8}  {:>5}  {number:>6}", "all", seconds(rows.total_ns.0), "");
    let hidden = rows.rows.iter().filter(|row| row.total_ns < least).count();
    if hidden > 0 {
        let _ = writeln!(out, "  … {hidden} {} to end more (--rows, --json)", noun(hidden, "way"));
    }
}

/// The name of a row.
fn name(row: &GroupRow) -> String {
    if let Some(group) = &row.group {
        return group.shown();
    }
    match *row {
        GroupRow { pid: Some(pid), command, .. } => pid.named(command.unwrap_or_default()),
        GroupRow { command: Some(command), .. } => command.to_string(),
        GroupRow { cpu: Some(cpu), .. } => format!("on CPU {cpu}"),
        GroupRow { node: Some(node), .. } => format!("on node {node}"),
        _ => "others".to_owned(),
    }
}

/// The first of some CPUs, each with its time.
fn times(cpus: &[OnCpu]) -> String {
    let time = |on: &OnCpu| format!("{} ({})", on.cpu, Dur(on.ns).human());
    match cpus {
        [] => "none".to_owned(),
        cpus => cpus.iter().take(3).map(time).collect::<Vec<_>>().join(", "),
    }
}

/// The CPU of the longest wait of a row.
fn longest_cpu(row: &GroupRow) -> String {
    row.longest.as_ref().map_or("-".to_owned(), |longest| longest.cpu.to_string())
}

fn grouped(out: &mut String, rows: &[GroupRow], most: usize) {
    let _ = writeln!(
        out,
        "\n{:<33}  {:>8}  {:>6}  {:>6}  {:>12}",
        "waited in violation", "time", "share", "number", "longest"
    );
    for row in rows.iter().take(most) {
        let (time, longest) = (seconds(row.total_ns.0), short(row.longest.as_ref().map(|longest| longest.violated_ns)));
        let mut name = name(row);
        // The name of a stack has lines of its own.
        if row.group.as_ref().is_some_and(|group| group.stack.is_some()) {
            paragraph(out, 0, 2, &std::mem::take(&mut name));
        }
        let _ = writeln!(out, "{name:<33}  {time:>8}  {:>5.1}%  {:>6}  {longest:>12}", row.percent, row.number);
        if row.cpu.is_none() {
            let _ = writeln!(out, "    queued on CPU {}", times(&row.queued_on));
        }
        let _ = writeln!(out, "    idle meanwhile: CPU {}", times(&row.idle_meanwhile));
        if let (Some(waited), Some(percent)) = (row.waited_ns, row.of_waiting_percent) {
            let weight = row.weight.map_or_else(String::new, |weight| format!("; weight {weight}"));
            let _ = writeln!(out, "    {percent:.1} % of all its waiting, {}{weight}", seconds(waited.0));
        }
    }
    if rows.len() > most {
        let _ = writeln!(out, "  … {} more (--rows, --json)", rows.len() - most);
    }
    if let Some(sentence) = by_weight(rows) {
        out.push('\n');
        paragraph(out, 0, 2, &sentence);
    }
}

/// The weights that a sentence names on either side of those that it leaves out.
const WEIGHTS: usize = 3;

/// The part of the waiting that is in violation by the weight of the cgroup, in a sentence; nothing where fewer than two weights are known.
fn by_weight(rows: &[GroupRow]) -> Option<String> {
    let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for row in rows {
        if let (Some(weight), Some(waited)) = (row.weight, row.waited_ns) {
            let (total, all) = sums.entry(weight).or_default();
            *total = total.saturating_add(row.total_ns.0);
            *all = all.saturating_add(waited.0);
        }
    }
    sums.retain(|_, (_, waited)| *waited > 0);
    let part = |(weight, (total, waited)): (&u64, &(u64, u64))| {
        format!("{:.1} % with weight {weight}", 100.0 * *total as f64 / *waited as f64)
    };
    let mut parts: Vec<String> = sums.iter().map(part).collect();
    if parts.len() > 2 * WEIGHTS {
        parts.splice(WEIGHTS..parts.len() - WEIGHTS, ["…".to_owned()]);
    }
    (sums.len() > 1)
        .then(|| format!("Waiting of tasks of cgroups beside idle CPUs: {} of all their waiting.", parts.join(", ")))
}

fn missed(out: &mut String, report: &WhyReport) {
    let Some(missed) = &report.missed else { return };
    if missed.number == 0 {
        let _ = writeln!(
            out,
            "\nno missed steal: no task waited elsewhere at any switch to idle ({} in all)",
            missed.idle_entries
        );
        return;
    }
    let _ = writeln!(
        out,
        "\n{:<25}  {:>6}  {:>6}  {:>9}  {:>10}  {:>9}",
        "missed steals", "number", "share", "violated", "idle: 50 %", "99 %"
    );
    for row in &missed.by_distance {
        let _ = writeln!(
            out,
            "  {:<23}  {:>6}  {:>5.1}%  {:>9}  {:>10}  {:>9}",
            row.nearest.place(),
            row.number,
            row.percent,
            seconds(row.violated_ns),
            human(row.idle.p50_ns),
            human(row.idle.p99_ns)
        );
    }
    let _ = writeln!(
        out,
        "  (of {} to idle, those while a task waited on another CPU, by\n   the nearest such CPU; the time until a task ran on the idle one)",
        sched::nouns::counted(missed.idle_entries, "switch")
    );
    outcomes(out, missed);
    gates(out, missed);
}

/// The missed steals by the state of the gate of new-idle balancing, where the costs are known, beside what was recorded.
fn gates(out: &mut String, missed: &Missed) {
    let Some(rows) = &missed.gates else { return };
    let recorded = if missed.has_outcomes() { ["attempted", "not", "unknown"] } else { [""; 3] };
    let [attempted, not, unknown] = recorded;
    let title = "gate of new-idle balance, estimated";
    let _ = writeln!(out, "\n{title:<36}  {:>6}  {:>8}  {attempted:>9}  {not:>4}  {unknown:>7}", "number", "violated");
    for row in rows {
        let _ = write!(out, "  {:<34}  {:>6}  {:>8}", row.gate.words(), row.number, seconds(row.violated_ns));
        if let Some([attempted, not, unknown]) = recorded_of(row) {
            let _ = write!(out, "  {attempted:>9}  {not:>4}  {unknown:>7}");
        }
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "  (by the average idle time of each CPU, followed between bounds, and the\n   costs of its domains at the start and the end of the recording)"
    );
}

/// The numbers of missed steals of a row whose new-idle balance was attempted, was not, and is unknown, by the records.
fn recorded_of(row: &GateRow) -> Option<[u64; 3]> {
    let mut numbers = [0; 3];
    for outcome in row.outcomes.as_ref()? {
        let place = match outcome.outcome {
            NewIdleOutcome::Unknown => 2,
            outcome if outcome.is_attempted() => 0,
            _ => 1,
        };
        numbers[place] += outcome.number;
    }
    Some(numbers)
}

/// The missed steals by the outcome of new-idle balancing, where probes show it.
fn outcomes(out: &mut String, missed: &Missed) {
    let rows = missed.outcomes();
    if rows.is_empty() {
        return;
    }
    let _ = write!(out, "\n{:<36}  {:>6}  {:>8}", "new-idle balance of missed steals", "number", "violated");
    for row in &missed.by_distance {
        let _ = write!(out, "  {:>6}", column(row.nearest));
    }
    for (row, numbers) in &rows {
        let _ = write!(out, "\n  {:<34}  {:>6}  {:>8}", row.outcome.words(), row.number, seconds(row.violated_ns));
        for number in numbers {
            let _ = write!(out, "  {number:>6}");
        }
    }
    out.push('\n');
    if let Some(words) = refusals(missed) {
        let _ = writeln!(out, "  ({words})");
    }
}

/// The refusals of tasks that were examined before missed steals, in words; nothing if there are none.
fn refusals(missed: &Missed) -> Option<String> {
    let mut all = Verdicts::default();
    missed
        .by_distance
        .iter()
        .flat_map(|row| row.outcomes.iter().flatten())
        .filter_map(|row| row.examined.as_ref())
        .for_each(|row| all.add(row));
    let Verdicts { running, one_cpu, other, .. } = all;
    (running + one_cpu + other > 0)
        .then(|| format!("tasks refused: {running} running, {one_cpu} bound to one CPU, {other} for other reasons"))
}

/// The heading of a distance.
fn column(nearest: Nearest) -> &'static str {
    match nearest {
        Nearest::Itself | Nearest::Nowhere | Nearest::Somewhere => "any",
        Nearest::Core => "core",
        Nearest::Cluster => "cluster",
        Nearest::Llc => "LLC",
        Nearest::Node => "node",
        Nearest::Beyond => "beyond",
    }
}

/// An episode step by step. `most`: the maximum number of steps.
pub fn story_text(story: &Story, trace: &Drawable, most: usize) -> String {
    let mut out = String::new();
    let start = story.start_in_trace_ns as f64 / 1e9;
    let length = story.duration_ns.human();
    paragraph(&mut out, 0, 2, &format!("{trace}: work conservation is violated for {length}, from {start:.9} s"));
    out.push_str("\nafter the opening event:\n");
    for words in &story.before {
        paragraph(&mut out, 2, 4, words);
    }
    let _ = writeln!(out, "\n{:>12}  step", "after");
    for step in story.steps.iter().take(most) {
        paragraph(&mut out, 0, 16, &format!("{:>12}  {}", short(Some(step.after_ns)), step.words));
    }
    let left = (story.steps.len() as u64).saturating_sub(most as u64) + story.unlisted;
    if left > 0 {
        let _ = writeln!(out, "  … {left} more {} (--steps, --json)", noun(left, "step"));
    }
    let closing = story.steps.iter().rfind(|step| step.after_ns == story.duration_ns);
    if let Some(step) = closing.filter(|_| story.unlisted == 0) {
        paragraph(&mut out, 0, 16, &format!("closing event, after {}: {}", story.duration_ns.human(), step.words));
    }
    trace.draw(&mut out, 0, story.start_in_trace_ns, story.duration_ns);
    out
}

/// The report of one trace as Markdown: tables that a mail shows as they are.
pub fn markdown(report: &WhyReport, trace: &Drawable, most: usize) -> String {
    let (Some(waiting), Some(idling)) = (&report.waiting, &report.idling) else {
        return text(report, trace, most);
    };
    let mut out = String::new();
    let _ = writeln!(
        out,
        "`{trace}`: tasks waited {} (runqueue wait) while CPUs idled; {:.2} % of {} in violation, {}.",
        seconds(waiting.total_ns.0),
        report.violation_percent.unwrap_or_default(),
        seconds(report.window_ns.0),
        counted(report)
    );
    if waiting.rows.is_empty() && idling.rows.is_empty() {
        let _ = writeln!(out, "\nThere is {NO_VIOLATION}.");
    }
    let tables = [("the wait began", waiting), ("the idle stretch began", idling)];
    for (title, rows) in tables.into_iter().filter(|(_, rows)| !rows.rows.is_empty()) {
        let _ = writeln!(out, "\n| {title} | it ended | time | share | number | median | 99 % |");
        let _ = writeln!(out, "|---|---|---:|---:|---:|---:|---:|");
        for row in rows.rows.iter().take(most) {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {:.1} % | {} | {} | {} |",
                row.words[0],
                row.words[1],
                seconds(row.total_ns.0),
                row.percent,
                row.number,
                human(row.p50_ns),
                human(row.p99_ns)
            );
        }
        let number: u64 = rows.rows.iter().map(|row| row.number).sum();
        let _ = writeln!(out, "| all | | {} | | {number} | | |", seconds(rows.total_ns.0));
    }
    if let Some(rows) = report.by.as_ref().filter(|rows| !rows.is_empty()) {
        let _ =
            writeln!(out, "\n| waited in violation | time | share | number | queued on CPU | idle meanwhile: CPU |");
        let _ = writeln!(out, "|---|---:|---:|---:|---|---|");
        for row in rows.iter().take(most) {
            let (queued, idle) = (times(&row.queued_on), times(&row.idle_meanwhile));
            let (time, name) = (seconds(row.total_ns.0), name(row));
            let _ = writeln!(out, "| {name} | {time} | {:.1} % | {} | {queued} | {idle} |", row.percent, row.number);
        }
    }
    if let Some(rows) = report.assumed_bound.as_ref().filter(|rows| !rows.is_empty()) {
        let _ = writeln!(out, "\n| assumed to be bound, and not counted | time | share | number | to CPU |");
        let _ = writeln!(out, "|---|---:|---:|---:|---:|");
        for row in rows.iter().take(most) {
            let (time, name, cpu) = (seconds(row.total_ns.0), name(row), longest_cpu(row));
            let _ = writeln!(out, "| {name} | {time} | {:.1} % | {} | {cpu} |", row.percent, row.number);
        }
    }
    if let Some(missed) = report.missed.as_ref().filter(|missed| missed.number > 0) {
        let _ = writeln!(out, "\n| missed steals | number | share of idle entries | violated | idle, median | 99 % |");
        let _ = writeln!(out, "|---|---:|---:|---:|---:|---:|");
        for row in &missed.by_distance {
            let _ = writeln!(
                out,
                "| {} | {} | {:.1} % | {} | {} | {} |",
                row.nearest.place(),
                row.number,
                row.percent,
                seconds(row.violated_ns),
                human(row.idle.p50_ns),
                human(row.idle.p99_ns)
            );
        }
        markdown_outcomes(&mut out, missed);
        markdown_gates(&mut out, missed);
    }
    out.push_str(&smaller::markdown(report.on_smaller_cpu.as_deref()));
    out
}

/// The outcomes of new-idle balancing, where probes show them.
fn markdown_outcomes(out: &mut String, missed: &Missed) {
    let rows = missed.outcomes();
    if rows.is_empty() {
        return;
    }
    let distances: Vec<&str> = missed.by_distance.iter().map(|row| column(row.nearest)).collect();
    let _ = writeln!(out, "\n| new-idle balance of missed steals | number | violated | {} |", distances.join(" | "));
    let _ = writeln!(out, "|---|---:|---:|{}", "---:|".repeat(distances.len()));
    for (row, numbers) in &rows {
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let (words, violated) = (row.outcome.words(), seconds(row.violated_ns));
        let _ = writeln!(out, "| {words} | {} | {violated} | {} |", row.number, numbers.join(" | "));
    }
    if let Some(words) = refusals(missed) {
        let _ = writeln!(out, "\n{words}");
    }
}

/// The states of the gate of new-idle balancing, where the costs are known.
fn markdown_gates(out: &mut String, missed: &Missed) {
    let Some(rows) = &missed.gates else { return };
    let _ = writeln!(out, "\n| gate of new-idle balance, estimated | number | violated | attempted | not | unknown |");
    let _ = writeln!(out, "|---|---:|---:|---:|---:|---:|");
    for row in rows {
        let (words, violated) = (row.gate.words(), seconds(row.violated_ns));
        let recorded = recorded_of(row).map_or([const { String::new() }; 3], |numbers| numbers.map(|n| n.to_string()));
        let _ = writeln!(out, "| {words} | {} | {violated} | {} |", row.number, recorded.join(" | "));
    }
}
