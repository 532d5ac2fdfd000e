//! The report as a text for people.

use crate::{DeadlineOrigin, DelayedJob, JobsReport};
use sched::Dur;
use sched::nouns::counted;
use std::fmt::Write;
use timeline::text::{case, case_head, paragraph, short};
use timeline::{Drawable, PageAddress};

/// The reason why no job has a deadline.
pub(crate) fn none_to_judge(report: &JobsReport) -> &'static str {
    match report.periodic {
        Some(_) => "no task is periodic, and no deadline is known",
        None => {
            "no deadline is known, and sched:sched_waking was not recorded, which shows the tasks that timers release"
        }
    }
}

/// The width of a task's name.
const NAME: usize = 23;

/// Returns the report for people: `trace` is the file as the command line has it, `rows` the maximum number of tasks; those without a
/// deadline are shown where `all` are.
pub fn text(report: &JobsReport, trace: &Drawable, rows: usize, all: bool) -> String {
    let mut out = String::new();
    if let Some(why) = &report.selection_unknown {
        paragraph(&mut out, 0, 2, &format!("{trace}: the jobs are unknown: {why}"));
        return out;
    }
    headline(&mut out, report, trace);
    tasks(&mut out, report, rows, all);
    worst(&mut out, &report.worst);
    if let Some(latest) = report.worst.first() {
        let stretch = PageAddress::selection(latest.release_in_trace_ns, latest.response_ns);
        trace.next_view(&mut out, "the latest of these jobs", &stretch.task(Some(latest.pid)).row());
    }
    out
}

fn headline(out: &mut String, report: &JobsReport, trace: &Drawable) {
    let number = |number: Option<u64>| number.unwrap_or(0);
    let has = |origin| report.tasks.iter().any(|row| row.deadline_by == Some(origin));
    let by = match (has(DeadlineOrigin::Given), has(DeadlineOrigin::Parameters), has(DeadlineOrigin::Period)) {
        (true, ..) => "the given deadline",
        (_, true, false) => "the deadline of their scheduling parameters",
        (_, true, true) => "the deadline of their scheduling parameters, or else the period as their deadline",
        _ => "the period as their deadline",
    };
    let jobs = counted(number(report.jobs), "job");
    let missed = report.missed.map(|missed| {
        let periodic = counted(number(report.periodic), "periodic task");
        format!("{missed} of {} missed {by}; {periodic}", counted(number(report.judged), "job"))
    });
    let judged = missed.unwrap_or_else(|| format!("none to judge: {}", none_to_judge(report)));
    paragraph(out, 0, 2, &format!("{trace}: {judged}; {jobs} in all"));
    for (count, why) in [
        (report.open, "had not ended at the end of the window"),
        (report.cut, "ended by a loss, or with the task"),
        (report.by_expiries, "released at the programmed expiries of timers, not when they woke the tasks"),
        (report.beyond_limit, "beyond the number that the program keeps, and in no row"),
    ] {
        if number(count) > 0 {
            paragraph(out, 2, 3, &format!("({} {why})", counted(number(count), "job")));
        }
    }
}

fn tasks(out: &mut String, report: &JobsReport, rows: usize, all: bool) {
    let shown: Vec<_> = report.tasks.iter().filter(|row| all || row.deadline_ns.is_some()).collect();
    if shown.is_empty() {
        if !report.tasks.is_empty() {
            paragraph(out, 2, 3, "(--deadline TIME gives each task a deadline; --all lists the tasks)");
        }
        return;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n{:<NAME$}  {:>5}  {:>6}  {:>5}  {:>6}  {:>6}  {:>6}",
        "task", "jobs", "period", "missed", "median", "99 %", "most"
    );
    for row in shown.iter().take(rows) {
        let name = name(&row.pid.named(row.command));
        let missed = row.missed.map_or("-".to_owned(), |missed| missed.to_string());
        let (period, times) = (short(row.period_ns), row.response);
        let [median, high, most] = [times.p50_ns, times.p99_ns, times.max_ns].map(|time| short(Some(time)));
        let _ = writeln!(
            out,
            "{name:<NAME$}  {:>5}  {period:>6}  {missed:>5}  {median:>6}  {high:>6}  {most:>6}",
            row.jobs
        );
    }
    let parameters = shown.iter().take(rows).filter_map(|row| Some((row.pid.named(row.command), row.parameters?)));
    for (name, parameters) in parameters {
        paragraph(out, 2, 4, &format!("{name} is a deadline task: {parameters}"));
    }
    if let Some(more) = shown.len().checked_sub(rows).filter(|more| *more > 0) {
        let _ = writeln!(out, "  {} more: --rows {} prints all", counted(more as u64, "task"), shown.len());
    }
}

/// A name that leaves a blank behind it in its column.
fn name(name: &str) -> String {
    if name.chars().count() < NAME {
        return name.to_owned();
    }
    name.chars().take(NAME - 2).chain(['…']).collect()
}

fn worst(out: &mut String, worst: &[DelayedJob]) {
    if worst.is_empty() {
        return;
    }
    out.push_str("\nlatest jobs, by the time behind their deadlines\n");
    case_head(out, "what kept them");
    for job in worst {
        case(out, job.release_in_trace_ns, job.response_ns, &kept(job));
    }
}

/// The parts of a job's response time in words, and the tasks that ran meanwhile.
fn kept(job: &DelayedJob) -> String {
    let late = match job.response_ns.0.checked_sub(job.deadline_ns.0) {
        Some(late) if job.is_missed => format!("{} late", Dur(late).human()),
        _ => "in time".to_owned(),
    };
    let mut parts = vec![format!("ran {}", job.run_ns.human())];
    let more = [
        (job.after_timer_ns.unwrap_or_default(), "woken behind its timer's expiry by"),
        (job.waited_ns, "waited"),
        (job.throttled_ns, "throttled"),
        (job.until_queued_ns, "until queued"),
    ];
    parts.extend(more.iter().filter(|(time, _)| time.0 > 0).map(|(time, what)| format!("{what} {}", time.human())));
    if job.preemptions > 0 {
        parts.push(format!("{} switched out", counted(job.preemptions, "time")));
    }
    let culprits = job.culprits.iter().take(3);
    let culprits: Vec<String> = culprits
        .map(|culprit| format!("{} for {}", culprit.pid.named(culprit.command), culprit.time_ns.human()))
        .collect();
    let meanwhile = match culprits.as_slice() {
        [] => String::new(),
        culprits => format!("; meanwhile ran {}", culprits.join(", ")),
    };
    format!("{}: {late}: {}{meanwhile}", job.pid.named(job.command), parts.join(", "))
}
