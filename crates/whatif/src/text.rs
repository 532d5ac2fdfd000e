//! The prediction in words and in tables.

use crate::chances::{Balancing, PullRate};
use crate::document::{WhatifDocument, WhatifRun};
use crate::engine::Order;
use crate::report::{Estimate, PolicyRow};
use crate::runs::{GroupEstimate, WhatifGroup};
use crate::skill::{Skill, SkillMetric};
use crate::without::CauseCurve;
use question::Spread;
use sched::Dur;
use sched::nouns::counted;
use std::fmt::Write;
use timeline::text::{paragraph, rounded, short};

fn length(ns: f64) -> String {
    short(Some(Dur(ns.max(0.0).round() as u64)))
}

fn interval(estimate: &Estimate, word: impl Fn(f64) -> String) -> String {
    format!("{}..{}", word(estimate.low), word(estimate.high))
}

/// Returns the report for people; `rows` is the number of commands whose waits are listed.
pub(crate) fn text(document: &WhatifDocument, rows: usize) -> String {
    let mut out = String::new();
    match document.runs.as_slice() {
        [run] => run_text(&mut out, run, rows),
        runs => runs_text(&mut out, runs),
    }
    groups_text(&mut out, &document.groups);
    skill_text(&mut out, &document.skill);
    out
}

fn run_text(out: &mut String, run: &WhatifRun, rows: usize) {
    let (prediction, name) = (&run.prediction, &run.trace);
    let calibration = &prediction.calibration;
    let of =
        if prediction.trace.elapsed_is_command { "of the traced command" } else { "until the last task left its CPU" };
    let head = match calibration.is_predictable {
        true => {
            format!("{name}: other policies on the work of this trace, {} {of}", prediction.trace.elapsed_ns.human())
        }
        false => format!("{name}: not predictable from this trace: {}", calibration.reasons.join("; ")),
    };
    paragraph(out, 0, 2, &head);
    for advice in &calibration.advice {
        paragraph(out, 2, 4, advice);
    }
    calibration_text(out, run, rows);
    if calibration.is_predictable {
        table(out, &prediction.rows);
    }
    without_text(out, &run.without);
    notes(out, run);
}

/// A line for each run.
fn runs_text(out: &mut String, runs: &[WhatifRun]) {
    let policies: Vec<&str> = runs.iter().find(|run| !run.prediction.rows.is_empty()).map_or(Vec::new(), |run| {
        run.prediction.rows.iter().filter(|row| row.policy != "observed").map(|row| &*row.policy).collect()
    });
    let named =
        |run: &WhatifRun| run.group.as_ref().map_or(run.trace.clone(), |group| format!("{group}: {}", run.trace));
    let value = |run: &WhatifRun, policy: &str| {
        let row = run.prediction.rows.iter().find(|row| row.policy == policy);
        row.map(|row| row.elapsed_ns)
    };
    // Writing to a string cannot fail.
    let _ = write!(out, "{:<22}{:>8}{:>8}", "elapsed time", "trace", "error");
    for policy in &policies {
        let _ = write!(out, "{policy:>14}");
    }
    out.push('\n');
    for run in runs {
        let error = rounded(run.prediction.calibration.elapsed_error_percent, 2);
        let _ = write!(out, "{:<22}{:>8}{error:>+7.2}%", named(run), length(run.prediction.trace.elapsed_ns.0 as f64));
        for policy in &policies {
            let cell = value(run, policy).map_or("-".to_owned(), |estimate| {
                let change =
                    estimate.change_percent.map_or(String::new(), |change| format!(" {:+.0}%", rounded(change, 0)));
                length(estimate.value) + &change
            });
            let _ = write!(out, "{cell:>14}");
        }
        out.push('\n');
    }
}

/// The median and the range of the runs of each group, and the intervals that hold the median.
fn groups_text(out: &mut String, groups: &[WhatifGroup]) {
    let range = |spread: &Spread| format!("{}..{}", length(spread.min), length(spread.max));
    for group in groups {
        let name = group.name.as_deref().unwrap_or("all runs");
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "\n{name}: medians of {}, {} predicted from",
            counted(group.runs, "run"),
            group.predicted_runs
        );
        let _ = writeln!(
            out,
            "{:<14}{:>8}{:>16}{:>5}{:>8}{:>9}{:>15}{:>5}",
            "policy", "elapsed", "range", "held", "change", "violated", "range", "held"
        );
        let (elapsed, violated) = (&group.elapsed_ns, &group.violation_ns);
        let _ = writeln!(
            out,
            "{:<14}{:>8}{:>16}{:>5}{:>8}{:>9}{:>15}{:>5}",
            "the traces",
            length(elapsed.median),
            range(elapsed),
            "",
            "",
            length(violated.median),
            range(violated),
            ""
        );
        for row in &group.policies {
            let (elapsed, violated) = (&row.elapsed_ns, &row.violation_ns);
            let held = |of: &GroupEstimate| format!("{}/{}", of.held, of.predicted.runs);
            let _ = writeln!(
                out,
                "{:<14}{:>8}{:>16}{:>5}{:>+7.1}%{:>9}{:>15}{:>5}",
                row.policy,
                length(elapsed.predicted.median),
                range(&elapsed.predicted),
                held(elapsed),
                row.change_percent.median,
                length(violated.predicted.median),
                range(&violated.predicted),
                held(violated)
            );
        }
    }
    if groups.iter().any(|group| !group.policies.is_empty()) {
        paragraph(
            out,
            0,
            2,
            "Held: stated intervals with the median of the group's predictions; few where the runs differ by more than that.",
        );
    }
}

fn skill_text(out: &mut String, skills: &[Skill]) {
    if skills.is_empty() {
        return;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n{:<14}{:<13}{:>7}{:>10}{:>9}{:>10}{:>6}{:>5}{:>6}",
        "policy", "number", "from", "predicted", "measured", "direction", "skill", "held", "within"
    );
    for row in skills {
        let first = if row.metric == SkillMetric::Elapsed { &*row.policy } else { "" };
        let _ = writeln!(
            out,
            "{first:<14}{:<13}{:>7}{:>10}{:>9}{:>10}{:>6}{:>5}{:>6}",
            row.metric.words(),
            length(row.from_median),
            length(row.predicted_median),
            length(row.measured_median),
            if row.direction_is_right { "right" } else { "wrong" },
            row.skill.map_or("-".to_owned(), |skill| format!("{skill:.2}")),
            format!("{}/{}", row.held, row.predictions),
            format!("{}/{}", row.within_all, row.measured)
        );
    }
    paragraph(
        out,
        0,
        2,
        "Medians of the runs. Skill: the error of the prediction divided by that of \"nothing changes\", below 1 if it is better. Held: \
         intervals with the median of the measured runs. Within: measured runs between the ends of all intervals.",
    );
}

fn calibration_text(out: &mut String, run: &WhatifRun, rows: usize) {
    let calibration = &run.prediction.calibration;
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n{:<34}{:>10}{:>13}{:>13}",
        "calibration: model minus trace", "elapsed", "violation", "mean wait"
    );
    let _ = writeln!(
        out,
        "  {:<32}{:>+9.2}%{:>+10.2} pp{:>+12.1}%",
        "the trace's order (observed)",
        rounded(calibration.elapsed_error_percent, 2),
        rounded(calibration.violation_error_points, 2),
        rounded(calibration.mean_wait_error_percent, 1)
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
    let count = |value: f64| format!("{value:.0}");
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n{:<14}{:>8}{:>17}{:>8}{:>8}{:>15}",
        "policy", "elapsed", "interval", "change", "steals", "interval"
    );
    for row in rows {
        let change =
            row.elapsed_ns.change_percent.map_or("-".to_owned(), |change| format!("{:+.1}%", rounded(change, 1)));
        let _ = writeln!(
            out,
            "{:<14}{:>8}{:>17}{change:>8}{:>8}{:>15}{}",
            row.policy,
            length(row.elapsed_ns.value),
            interval(&row.elapsed_ns, length),
            row.steals,
            format!("{}..{}", row.least_steals, row.most_steals),
            if row.is_complete { "" } else { "\n  (cut off)" }
        );
    }
    let _ = writeln!(
        out,
        "\n{:<14}{:>9}{:>15}{:>7}{:>14}{:>7}{:>9}",
        "policy", "violated", "interval", "lost", "interval", "missed", "interval"
    );
    for row in rows {
        let _ = writeln!(
            out,
            "{:<14}{:>9}{:>15}{:>7}{:>14}{:>7}{:>9}",
            row.policy,
            length(row.violation_ns.value),
            interval(&row.violation_ns, length),
            length(row.cpu_time_lost_ns.value),
            interval(&row.cpu_time_lost_ns, length),
            count(row.missed_steals.value),
            interval(&row.missed_steals, count)
        );
    }
    let _ = writeln!(
        out,
        "\n{:<14}{:>7}{:>9}{:>8}{:>17}{:>8}{:>17}",
        "policy", "busy", "interval", "wait", "interval", "p99", "interval"
    );
    for row in rows {
        let _ = writeln!(
            out,
            "{:<14}{:>6.1}%{:>9}{:>8}{:>17}{:>8}{:>17}",
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

fn without_text(out: &mut String, curves: &[CauseCurve]) {
    if curves.is_empty() {
        return;
    }
    // Writing to a string cannot fail.
    let _ = write!(out, "\n{:<32}{:>9}", "without waits that began so", "waited");
    for point in curves.iter().take(1).flat_map(|curve| &curve.points) {
        let _ = write!(out, "{:>9}", format!("-{} %", point.removed_percent));
    }
    out.push('\n');
    for curve in curves {
        let _ = write!(out, "  {:<30}{:>9}", curve.origin, short(Some(curve.waiting_ns)));
        for point in &curve.points {
            let _ = write!(out, "{:>8.2}%", rounded(point.change_percent, 2));
        }
        out.push('\n');
    }
    paragraph(
        out,
        0,
        2,
        "Changes of the elapsed time where that part of the waiting in violation is removed and the wakeups move with it; CPUs do not compete.",
    );
}

/// The balancing that goes on beside the policies.
fn balancing_text(balancing: &Balancing) -> String {
    if !balancing.any() {
        return "No CPU that idled or went idle pulled a waiting task in the trace: none does, but by the policies."
            .to_owned();
    }
    let Balancing { new_idle_near, new_idle_far, idle_near, idle_far } = balancing;
    let share = |rate: &PullRate| format!("{} of {}", rate.pulls, rate.chances);
    let time = |rate: &PullRate| format!("{} in {}", rate.pulls, Dur(rate.chances).human());
    format!(
        "The balancing of this trace goes on beside steal=: CPUs that go idle pull {} times under their cache, {} beyond; CPUs that idle pull {} \
         of such chances, {} beyond.",
        share(new_idle_near),
        share(new_idle_far),
        time(idle_near),
        time(idle_far)
    )
}

fn notes(out: &mut String, run: &WhatifRun) {
    let prediction = &run.prediction;
    out.push('\n');
    let costs = &prediction.costs;
    let [near, far] = run.measured_costs;
    let by = |is: bool| if is { " (by this trace)" } else { "" };
    let order = match prediction.order {
        Order::Fair => "fair",
        Order::Fifo => "fifo",
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
            if prediction.taken.wakeups_seek_idle {
                "seek idle CPUs, as in the trace"
            } else {
                "do not seek idle CPUs, as in the trace"
            },
        ),
    );
    paragraph(out, 0, 2, &balancing_text(&prediction.taken.balancing));
    let sleeps =
        prediction.sleeps.iter().map(|sum| format!("{} {} ({})", sum.number, sum.class.words(), sum.total_ns.human()));
    paragraph(out, 0, 2, &format!("Sleeps: {}.", sleeps.collect::<Vec<_>>().join(", ")));
    if !prediction.spinners.is_empty() {
        let names: Vec<String> = prediction.spinners.iter().map(ToString::to_string).collect();
        let hint = format!(
            "Bursts of different tasks called {} end within microseconds of one another again and again: if they spin at a barrier, name them with --spins; it counts as work otherwise.",
            names.join(", ")
        );
        paragraph(out, 0, 2, &hint);
    }
    paragraph(
        out,
        0,
        2,
        "Not modelled: data that is there before a task asks for it, spinning, frequency, shared caches and hyperthreads, cgroup weights, \
         the load that balancers weigh. An interval holds what the trace leaves open, widened by the calibration error.",
    );
}
