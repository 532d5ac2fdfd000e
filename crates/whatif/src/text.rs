//! The prediction in words and in a table.

use crate::question::WhatifReport;
use crate::report::{Estimate, PolicyRow};
use sched::Dur;
use std::fmt::Write;
use timeline::text::{paragraph, short};

fn ns(value: f64) -> Dur {
    Dur(value.max(0.0).round() as u64)
}

fn interval(estimate: &Estimate, word: impl Fn(f64) -> String) -> String {
    format!("{}..{}", word(estimate.low), word(estimate.high))
}

/// Returns the report for people; `rows` is the number of commands whose waits are listed.
pub(crate) fn text(report: &WhatifReport, name: &str, rows: usize) -> String {
    let mut out = String::new();
    let prediction = &report.prediction;
    let calibration = &prediction.calibration;
    let of = if prediction.trace.elapsed_is_command { "of the traced command" } else { "until the last task left its CPU" };
    let head = match calibration.is_predictable {
        true => format!("{name}: other policies on the work of this trace, {} {of}", prediction.trace.elapsed_ns.human()),
        false => format!("{name}: not predictable from this trace: {}", calibration.reasons.join("; ")),
    };
    paragraph(&mut out, 0, 2, &head);
    for advice in &calibration.advice {
        paragraph(&mut out, 2, 4, advice);
    }
    calibration_text(&mut out, report, rows);
    if calibration.is_predictable {
        table(&mut out, &prediction.rows);
    }
    notes(&mut out, report);
    out
}

fn calibration_text(out: &mut String, report: &WhatifReport, rows: usize) {
    let calibration = &report.prediction.calibration;
    // Writing to a string cannot fail.
    let _ = writeln!(out, "\n{:<34}{:>10}{:>13}{:>13}", "calibration: model minus trace", "elapsed", "violation", "mean wait");
    let _ = writeln!(
        out,
        "  {:<32}{:>+9.2}%{:>+10.2} pp{:>+12.1}%",
        "the trace's order (observed)",
        calibration.elapsed_error_percent,
        calibration.violation_error_points,
        calibration.mean_wait_error_percent
    );
    let _ = writeln!(
        out,
        "  {:<32}{:>+9.2}%{:>+10.2} pp",
        "the model's order (steal=none)",
        calibration.rules_elapsed_error_percent,
        calibration.rules_violation_error_points
    );
    if calibration.waits.is_empty() || rows == 0 {
        return;
    }
    let _ = writeln!(out, "\n{:<34}{:>10}{:>13}{:>13}", "waits by command", "number", "trace, mean", "observed");
    for row in calibration.waits.iter().take(rows) {
        let command = row.command.to_string();
        let (trace, model) = (short(row.trace_mean_ns), short(row.observed_mean_ns));
        let _ = writeln!(out, "  {command:<32}{:>10}{trace:>13}{model:>13}", row.number);
    }
}

fn table(out: &mut String, rows: &[PolicyRow]) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n{:<14}{:>9}{:>19}{:>9}{:>10}{:>8}{:>8}{:>7}",
        "policy", "elapsed", "interval", "change", "violated", "lost", "steals", "missed"
    );
    for row in rows {
        let change = row.elapsed_ns.change_percent.map_or("-".to_owned(), |change| format!("{change:+.1}%"));
        let _ = writeln!(
            out,
            "{:<14}{:>9}{:>19}{change:>9}{:>10}{:>8}{:>8}{:>7.0}{}",
            row.policy,
            short(Some(ns(row.elapsed_ns.value))),
            interval(&row.elapsed_ns, |value| short(Some(ns(value)))),
            short(Some(ns(row.violation_ns.value))),
            short(Some(ns(row.cpu_time_lost_ns.value))),
            row.steals,
            row.missed_steals.value,
            if row.is_complete { "" } else { "  (cut off)" }
        );
    }
    let _ = writeln!(
        out,
        "\n{:<14}{:>7}{:>12}{:>9}{:>19}{:>9}{:>19}",
        "policy", "busy", "interval", "wait", "interval", "p99", "interval"
    );
    let length = |value: f64| short(Some(ns(value)));
    for row in rows {
        let _ = writeln!(
            out,
            "{:<14}{:>6.1}%{:>12}{:>9}{:>19}{:>9}{:>19}",
            row.policy,
            row.busy_percent.value,
            interval(&row.busy_percent, |value| format!("{value:.0}")) + "%",
            length(row.mean_wait_ns.value),
            interval(&row.mean_wait_ns, length),
            length(row.p99_wait_ns.value),
            interval(&row.p99_wait_ns, length),
        );
    }
}

fn notes(out: &mut String, report: &WhatifReport) {
    let prediction = &report.prediction;
    out.push('\n');
    let costs = &prediction.costs;
    let [near, far] = report.measured_costs;
    let by = |is: bool| if is { " (by this trace)" } else { "" };
    let order = match prediction.order {
        crate::Order::Fair => "fair",
        crate::Order::Fifo => "fifo",
    };
    paragraph(
        out,
        0,
        2,
        &format!(
            "A steal costs {}, a migration {}{}, between nodes {}{}. Queues are {order}{}; the slice is {}{}, an idle CPU needs {} to switch; wakeups {}.",
            costs.steal_ns.human(),
            costs.migration_ns.human(),
            by(near),
            costs.node_migration_ns.human(),
            by(far),
            if prediction.order_is_given { "" } else { ", with fifo in the intervals" },
            prediction.taken.slice_ns.human(),
            by(prediction.taken.slice_is_measured),
            prediction.taken.dispatch_ns.human(),
            if prediction.taken.wakeups_seek_idle { "seek idle CPUs, as in the trace" } else { "do not seek idle CPUs, as in the trace" },
        ),
    );
    let sleeps = prediction.sleeps.iter().map(|sum| format!("{} {} ({})", sum.number, sum.class.words(), sum.total_ns.human()));
    paragraph(out, 0, 2, &format!("Sleeps: {}.", sleeps.collect::<Vec<_>>().join(", ")));
    paragraph(
        out,
        0,
        2,
        "Not modelled: data that is there before a task asks for it, spinning, frequency, shared caches and hyperthreads, cgroup weights. \
         An interval holds what the trace leaves open, widened by the calibration error.",
    );
}
