//! The text of a report on one trace, and the table of several traces.

use crate::report::{EpisodeReport, Report, percent};
use crate::{Scene, SchedIdleFigures, Waiters};
use sched::Dur;
use sched::topology::{Distance, shorten_cpu_list};
use std::fmt::Write;
use timeline::table::{TextColumn, TextTable};
use timeline::text::{CASES, Detail, case, case_head, paragraph};
use timeline::{Drawable, Next, PageAddress};

/// The headline, behind *work conservation is*.
pub(crate) fn headline(report: &Report) -> String {
    report.violation.as_ref().map_or("unknown".into(), |v| format!("violated {:.2} % of the time", v.percent))
}

/// The reason that the headline is not to be trusted, if there is one.
pub(crate) fn doubt(report: &Report) -> Option<String> {
    report.violation.as_ref()?;
    report.unknown.doubt()
}

/// The least length as a word: `any length`, `≥ 1 ms`.
fn at_least(min: Dur) -> String {
    match min.0 {
        0 => "any length".into(),
        ns if ns.is_multiple_of(1_000_000) => format!("\u{2265} {} ms", ns / 1_000_000),
        ns if ns.is_multiple_of(1_000) => format!("\u{2265} {} µs", ns / 1_000),
        ns => format!("\u{2265} {ns} ns"),
    }
}

/// The report of one trace, for people: in brief, or with every case that was kept.
pub fn text(report: &Report, trace: &Drawable, detail: Detail) -> String {
    let mut out = String::new();
    let doubt = doubt(report).map_or(String::new(), |why| format!(", which is not to be trusted ({why})"));
    paragraph(&mut out, 0, 2, &format!("{trace}: work conservation is {}{doubt}", headline(report)));
    if let Some(why) = &report.selection_unknown {
        paragraph(&mut out, 2, 3, &format!("({why})"));
    }
    let which = match report.waiters {
        Waiters::All => "every waiting task counts",
        Waiters::Movable => "waiting tasks but for kernel threads bound to their CPU count",
        Waiters::Application => "waiting tasks of the application count",
    };
    let least = at_least(report.min_episode_ns);
    let meaning = match report.has_ext_queues {
        false => "some CPU idles without a waiting task while on another, busy CPU a task is in a runqueue wait",
        true => "some CPU idles while a task waits in the queues of the sched_ext scheduler",
    };
    paragraph(&mut out, 2, 3, &format!("({meaning}; {which}; episodes of {least})"));
    by_length(&mut out, report);
    let application = report.application.as_ref().map_or("unknown".into(), |v| format!("{:.2} %", v.percent));
    let (all, movable) = (report.all.percent, report.movable.percent);
    out.push('\n');
    let counted = format!("waiters counted: all {all:.2} %, movable {movable:.2} %, application {application}");
    paragraph(&mut out, 0, 2, &counted);
    if let Some(d) = report.violation.as_ref().and_then(|v| v.by_distance) {
        let places = [
            ("on the same core", d.smt),
            ("in the same cluster", d.cluster),
            ("under the same LLC", d.llc),
            ("in the same node", d.node),
        ];
        let places = places.into_iter().filter_map(|(place, ns)| Some((place, ns?))).chain([("beyond", d.machine)]);
        let places: Vec<String> =
            places.map(|(place, ns)| format!("{place} {:.2} %", percent(ns, report.window_ns.0))).collect();
        paragraph(&mut out, 0, 2, &format!("nearest idle CPU: {} of the time", places.join(", ")));
    }
    if let Some(figures) = &report.sched_idle {
        paragraph(&mut out, 0, 2, &with_sched_idle(figures, report));
    }
    if let Some(lost) = report.violation.as_ref().and_then(|v| v.capacity_lost) {
        let (time, percent) = (Dur(lost.ns).human(), lost.percent);
        let words = format!(
            "in units of the largest CPU: {time} of CPU time lost, {percent:.2} % of the capacity of all CPUs (cpu_capacity)"
        );
        paragraph(&mut out, 0, 2, &words);
    }
    for line in not_violated(report) {
        paragraph(&mut out, 0, 2, &line);
    }
    let busy = format!(
        "{} {:.1} % busy; on average {:.2} tasks ran and {:.2} waited",
        sched::nouns::counted(report.cpus.observed, "CPU"),
        report.busy_percent,
        report.mean_running,
        report.mean_waiting
    );
    paragraph(&mut out, 0, 2, &busy);
    let life = if report.elapsed_is_command { "the traced command ran for" } else { "the window is" };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{life} {:.6} s", report.elapsed_ns.seconds());
    match detail {
        Detail::Brief => brief_cases(&mut out, report, trace),
        Detail::Full => {
            episodes(&mut out, report, trace);
            pending_switches(&mut out, report, trace);
        }
    }
    out
}

/// The time held back and the unbalanced time, in a line each.
fn not_violated(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(held) = report.held_back.filter(|held| held.ns > 0) {
        lines.push(format!(
            "held back: idle CPUs did not run their own waiting tasks for 1 ms or longer, {:.2} % of the time, {:.2} % of CPU time",
            held.percent, held.cpu_percent
        ));
    }
    if let Some(found) = &report.unbalanced {
        let longest = found.longest.first().map_or(String::new(), |longest| {
            format!(
                ", the longest {} from {:.6} s{}",
                longest.duration_ns.human(),
                longest.start_in_trace_ns as f64 / 1e9,
                crate::fewer_tasks(longest.difference, " with ")
            )
        });
        lines.push(format!(
            "unbalanced: no CPU idled, and a task waited beside a shorter queue, {:.2} % of the time ({}{longest})",
            found.percent,
            sched::nouns::counted(found.episodes, "episode"),
        ));
    }
    lines
}

/// The commands that show more of the longest episode.
pub fn next(report: &Report, trace: &Drawable) -> String {
    let mut out = String::new();
    if let Some(e) = report.longest().first() {
        let commands = [Next::Draw, Next::Queues, Next::Why];
        trace.next(&mut out, "the longest episode", e.start_in_trace_ns, e.duration_ns, &commands);
        trace.view(&mut out, 2, &longest_on_page(report, e));
    }
    out
}

/// The view of the longest episode. The page follows those of movable tasks step by step.
fn longest_on_page(report: &Report, episode: &EpisodeReport) -> PageAddress {
    let (start, length) = (episode.start_in_trace_ns, episode.duration_ns);
    let view = match report.waiters {
        Waiters::Movable => PageAddress::episode(start, length),
        Waiters::All | Waiters::Application => PageAddress::selection(start, length),
    };
    view.task(episode.scene.waiting.first().map(|task| task.pid))
}

/// The violation with CPUs that run `SCHED_IDLE` tasks alone as idle ones, in words.
fn with_sched_idle(figures: &SchedIdleFigures, report: &Report) -> String {
    let window = report.window_ns.0;
    let cpu_time = window.saturating_mul(report.cpus.observed as u64);
    let of = |ns, lost| {
        format!("{:.2} % of the time, {:.2} % of CPU time lost", percent(ns, window), percent(lost, cpu_time))
    };
    let unknown = match figures.unknown_wait_ns {
        0 => String::new(),
        ns => format!(
            "; tasks of unknown policy, which do not count in the first figure, waited {:.6} s",
            ns as f64 / 1e9
        ),
    };
    format!(
        "a CPU that runs SCHED_IDLE tasks alone as an idle one for other tasks: {}; as a busy one: {} (lists of allowed CPUs left out of both). \
         Such tasks had a CPU to themselves for {:.6} s{unknown}",
        of(figures.violated_idle_ns, figures.cpu_time_lost_idle_ns),
        of(figures.violated_ns, figures.cpu_time_lost_ns),
        figures.sched_idle_cpu_ns as f64 / 1e9
    )
}

fn by_length(out: &mut String, report: &Report) {
    let Some(rows) = &report.by_min_episode else { return };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n{:>12}  {:>9}  {:>14}  {:>14}  {:>9}",
        "episodes", "time", "CPU time lost", "threads", "number"
    );
    for row in rows {
        let threads = format!("{:.6} s", row.totals.thread_ns as f64 / 1e9);
        let _ = writeln!(
            out,
            "{:>12}  {:>8.3}%  {:>13.3}%  {threads:>14}  {:>9}",
            at_least(row.totals.min_ns),
            row.percent,
            row.cpu_time_lost_percent,
            row.totals.episodes
        );
    }
}

/// The head of the column of idle CPUs, and the maximum number of ranges in it.
const IDLE_HEAD: &str = "idle CPUs";
const IDLE_RANGES: usize = 3;

/// A line for each of the longest cases.
fn brief_cases(out: &mut String, report: &Report, trace: &Drawable) {
    let and_more = |more: usize| if more > 0 { format!(" and {more} more") } else { String::new() };
    let idle: Vec<String> =
        report.longest().iter().take(CASES).map(|e| shorten_cpu_list(&e.scene.idle, IDLE_RANGES)).collect();
    let width = idle.iter().map(String::len).max().unwrap_or(0).max(IDLE_HEAD.len());
    if !idle.is_empty() {
        out.push_str("\nThe longest episodes:\n");
        case_head(out, &format!("{IDLE_HEAD:<width$}   waiting tasks"));
    }
    for (e, idle) in report.longest().iter().zip(&idle) {
        let first =
            e.scene.waiting.first().map_or(String::new(), |w| format!("{} on CPU {}", w.pid.named(w.command), w.cpu));
        let more = and_more(e.scene.waiting.len().saturating_sub(1));
        let text = format!("{idle:<width$}   {first}{more}");
        case(out, e.start_in_trace_ns, e.duration_ns, &text);
    }
    if report.long_pending_switches > 0 {
        out.push('\n');
        paragraph(out, 0, 2, &format!("{}:", long_pending_switches(report)));
        case_head(out, "idle CPU    tasks that wait for it");
    }
    for r in report.pending_switches.iter().take(CASES) {
        let first = r.waiting.first().map_or(String::new(), |held| held.pid.named(held.command));
        let more = and_more(r.waiting.len().saturating_sub(1));
        case(out, r.start_in_trace_ns, r.duration_ns, &format!("{:<11} {first}{more}", r.cpu.to_string()));
    }
    unrecorded_pending_switches(out, report);
    if !report.longest().is_empty() || report.long_pending_switches > 0 {
        trace.draw_any(out);
    }
}

fn episodes(out: &mut String, report: &Report, trace: &Drawable) {
    if report.longest().is_empty() {
        return;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(out, "\nThe longest episodes:");
    for e in report.longest() {
        let distance = match e.scene.distance {
            None => "",
            Some(Distance::Smt) => ", nearest on the same core",
            Some(Distance::Cluster) => ", nearest in the same cluster",
            Some(Distance::Llc) => ", nearest under the same LLC",
            Some(Distance::Node) => ", nearest in the same node",
            Some(Distance::Machine) => ", nearest in another node",
        };
        let (length, from) = (e.duration_ns.human(), e.start_in_trace_ns as f64 / 1e9);
        let line = format!("  {length:>10} from {from:.6} s: {}{distance}", who_idles(&e.scene));
        paragraph(out, 0, CASE, &line);
        for w in e.scene.waiting.iter().take(4) {
            let (who, behind) = (w.pid.named(w.command), w.behind_pid.named(w.behind));
            paragraph(out, CASE, CASE + 2, &format!("{who} waits on CPU {} behind {behind}", w.cpu));
        }
        more(out, e.scene.waiting.len().saturating_sub(4));
        trace.draw(out, CASE, e.start_in_trace_ns, e.duration_ns);
    }
}

/// The indentation of what follows the first line of a case.
const CASE: usize = 5;

fn more(out: &mut String, tasks: usize) {
    if tasks > 0 {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:CASE$}and {tasks} more {}", "", if tasks == 1 { "task" } else { "tasks" });
    }
}

fn who_idles(scene: &Scene) -> String {
    let idle = shorten_cpu_list(&scene.idle, 12);
    if scene.idle.len() == 1 { format!("CPU {idle} idles") } else { format!("CPUs {idle} idle") }
}

/// The idle CPUs and the waiting tasks, in a line.
pub(crate) fn idle_and_waiting(scene: &Scene) -> String {
    let waiting: Vec<String> =
        scene.waiting.iter().take(3).map(|w| format!("{} waits on {}", w.pid.named(w.command), w.cpu)).collect();
    let more = match scene.waiting.len().saturating_sub(3) {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    format!("{}, {}{more}", who_idles(scene), waiting.join(", "))
}

/// Describes the times that CPUs idled for long although a task waited for them.
fn long_pending_switches(report: &Report) -> String {
    let times = match report.long_pending_switches {
        1 => "Once".to_owned(),
        times => format!("{times} times, {} in all,", report.long_pending_switches_ns.human()),
    };
    format!(
        "{times} a CPU idled for 1 ms or longer although a task waited for it (woken, not switched yet: throttled, held \
         back by a sched_ext scheduler, forced idle by core scheduling, vCPU steal time, or misunderstood)"
    )
}

/// Describes the times that a CPU seems to have idled beside a task that in fact it ran.
fn unrecorded_pending_switches(out: &mut String, report: &Report) {
    let times = match report.unrecorded_pending_switches {
        0 => return,
        1 => "Once".to_owned(),
        times => format!("{times} times"),
    };
    out.push('\n');
    let length = report.unrecorded_pending_switches_ns.human();
    let words = format!(
        "{times}, for {length} in all, a CPU seems to idle for 1 ms or longer beside a task that waited for it: the switch to \
         that task was not recorded, and the CPU ran it for an unknown part of the time"
    );
    paragraph(out, 0, 2, &words);
}

fn pending_switches(out: &mut String, report: &Report, trace: &Drawable) {
    unrecorded_pending_switches(out, report);
    if report.long_pending_switches == 0 {
        return;
    }
    out.push('\n');
    paragraph(out, 0, 2, &format!("{}:", long_pending_switches(report)));
    for r in report.pending_switches.iter().take(5) {
        let start = r.start_in_trace_ns;
        let length = r.duration_ns.human();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {length:>10} from {:.6} s: CPU {} idles", start as f64 / 1e9, r.cpu);
        for held in r.waiting.iter().take(2) {
            let class = held.class().map_or(String::new(), |class| format!(", a {class} task,"));
            paragraph(out, CASE, CASE + 2, &format!("{}{class} waits there", held.pid.named(held.command)));
        }
        more(out, r.waiting.len().saturating_sub(2));
        trace.draw(out, CASE, start, r.duration_ns);
    }
}

/// The columns of the name in the table of several traces; a longer name has a line of its own.
const NAME: usize = 13;

/// Several traces: one row each.
pub fn table(runs: &[(String, Report)]) -> String {
    let names = TextColumn::Names { least: 5, most: NAME };
    let mut table = TextTable::new([names].into_iter().chain([11, 6, 6, 6, 6, 7].map(TextColumn::Numbers)));
    table.row(["trace", "elapsed", "time", "possible", "CPU lost", "episodes", "longest"]);
    for (name, r) in runs {
        let elapsed = format!("{:.6} s{}", r.elapsed_ns.seconds(), if r.elapsed_is_command { "" } else { "*" });
        let cells = match &r.violation {
            None => ["unknown", "-", "-", "-", "-"].map(str::to_owned),
            Some(v) => [
                format!("{:.2}%", v.percent),
                format!("{:.2}%", v.possible_percent),
                format!("{:.2}%", v.cpu_time_lost_percent),
                v.episodes.to_string(),
                v.longest.first().map_or("-".into(), |e| e.duration_ns.human()),
            ],
        };
        table.row([name.clone(), elapsed].into_iter().chain(cells));
    }
    let mut out = String::new();
    table.write(&mut out);
    out.push_str("(CPU lost: the CPU time lost, in percent of the CPU time)\n");
    let mut reasons: Vec<&String> = runs.iter().filter_map(|(_, r)| r.selection_unknown.as_ref()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    for why in reasons {
        paragraph(&mut out, 0, 2, &format!("unknown: {why}"));
    }
    if runs.iter().any(|(_, r)| !r.elapsed_is_command) {
        let _ = writeln!(out, "* of the window: the trace does not show when the traced command ended");
    }
    out
}
