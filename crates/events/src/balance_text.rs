//! The tables of migrations for people.

use crate::BalanceReport;
use sched::Cause;
use std::fmt::Write;
use timeline::text::{paragraph, short};

/// The tables for people.
pub fn balance_text(report: &BalanceReport) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{:30}  {:>8}  {:>7}  {:>8}  {:>8}  {:>8}",
        "cause of the migration", "count", "share", "queued", "median", "max"
    );
    for c in &report.causes {
        let percent = 100.0 * c.count as f64 / (report.total as f64).max(1.0);
        let (median, max) = (short(c.first_run_median_ns), short(c.first_run_max_ns));
        let _ = writeln!(
            out,
            "{:30}  {:>8}  {percent:>6.1}%  {:>8}  {median:>8}  {max:>8}",
            c.cause.name(),
            c.count,
            c.queued
        );
    }
    let _ = writeln!(out, "{:30}  {:>8}", "all", report.total);
    out.push_str("  (median, max: the time from the migration until the task ran)\n");
    if report.causes.iter().any(|c| matches!(c.cause, Cause::Idle | Cause::IdleSleeper)) {
        out.push_str("  (idle balance: by the tick of an idle CPU, CPU_IDLE; not on going idle)\n");
    }
    if report.recorded > 0 {
        let inferred = report.total - report.recorded;
        let words = format!(
            "causes: {} recorded by probes on the balancer, {inferred} inferred from the order of events",
            report.recorded
        );
        paragraph(&mut out, 0, 2, &words);
    }
    by_distance(&mut out, report);
    undone(&mut out, report);
    let tasks: u32 = report.herds.iter().map(|h| h.tasks).sum();
    let herd = "four queued tasks or more that left one CPU for one other within a millisecond";
    out.push('\n');
    match report.herds.len() {
        0 => paragraph(&mut out, 0, 2, &format!("no herd ({herd})")),
        n => paragraph(&mut out, 0, 2, &format!("herds: {n}, of {tasks} tasks together ({herd})")),
    }
    out
}

/// The distances of the migrations, where the topology has any.
fn by_distance(out: &mut String, report: &BalanceReport) {
    if report.causes.iter().all(|c| c.by_distance.is_none()) {
        return;
    }
    let has_clusters = report.causes.iter().any(|c| c.in_cluster.is_some());
    let line = |name: &str, [core, llc, node, more]: [String; 4], cluster: String| {
        let cluster = if has_clusters { format!(" {cluster:>8}") } else { String::new() };
        format!("{name:30}  {core:>8}{cluster}  {llc:>8}  {node:>8}  {more:>8}\n")
    };
    let head = |name: &str| line(name, ["a core", "an LLC", "a node", "more"].map(str::to_owned), "cluster".to_owned());
    let shown = |count: Option<u64>| count.map_or("-".into(), |n| n.to_string());
    out.extend(["\n", &head("migrations within")]);
    for c in &report.causes {
        *out += &line(c.cause.name(), c.by_distance.unwrap_or_default().map(shown), shown(c.in_cluster));
    }
    out.extend(["\n", &head("median until it ran, within")]);
    for c in report.causes.iter().filter(|c| c.ran > 0) {
        let medians = c.first_run_by_distance_ns.unwrap_or_default().map(short);
        *out += &line(c.cause.name(), medians, short(c.first_run_in_cluster_ns));
    }
}

/// The useless and the reversed migrations by cause.
fn undone(out: &mut String, report: &BalanceReport) {
    let share = |part: u64, of: u64| 100.0 * part as f64 / (of as f64).max(1.0);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n{:30}  {:>8}  {:>8}  {:>7}  {:>8}  {:>7}",
        "", "pulls", "useless", "share", "reversed", "share"
    );
    for c in report.causes.iter().filter(|c| c.pulls.is_some() || c.reversed > 0) {
        let useless = match (c.pulls, c.useless) {
            (Some(pulls), Some(useless)) => format!("{pulls:>8}  {useless:>8}  {:>6.1}%", share(useless, pulls)),
            _ => format!("{:>8}  {:>8}  {:>7}", "-", "-", "-"),
        };
        let _ =
            writeln!(out, "{:30}  {useless}  {:>8}  {:>6.1}%", c.cause.name(), c.reversed, share(c.reversed, c.count));
    }
    let all: u64 = report.causes.iter().map(|c| c.reversed).sum();
    let _ =
        writeln!(out, "{:30}  {:>8}  {:>8}  {:>7}  {all:>8}  {:>6.1}%", "all", "", "", "", share(all, report.total));
    let meaning = "useless: a pull after which the target CPU has at least as many tasks as the source had before; reversed: the task moved back \
                   within 10 ms";
    paragraph(out, 2, 3, &format!("({meaning})"));
}
