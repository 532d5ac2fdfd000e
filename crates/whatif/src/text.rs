//! The prediction in words and in tables.

use crate::chances::{Balancing, PullRate};
use crate::document::{WhatifDocument, WhatifRun};
use crate::engine::{Order, Pulls};
use crate::report::{Estimate, PolicyRow, Prediction};
use crate::runs::{GroupEstimate, WhatifGroup};
use crate::skill::{Skill, SkillMetric};
use crate::text_of_bound::{bound_in_words, bound_table, gain_percent};
use crate::without::CauseCurve;
use question::Spread;
use sched::Dur;
use sched::nouns::counted;
use std::fmt::Write;
use timeline::table::{TextColumn, TextTable};
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
    paragraph(out, 0, 2, &format!("{name}: {}", bound_in_words(prediction, of)));
    bound_table(out, prediction);
    out.push('\n');
    paragraph(out, 0, 2, &format!("Forecast: {}", answer(prediction)));
    if calibration.is_predictable {
        let of = format!(
            "(on the work of this trace, {} {of}, not of another run; the model's own error is {:.1} %)",
            prediction.trace.elapsed_ns.human(),
            rounded(calibration.own_error_percent(), 1)
        );
        paragraph(out, 2, 3, &of);
    } else {
        calibration.advice.iter().for_each(|advice| paragraph(out, 2, 4, advice));
    }
    calibration_text(out, run, rows);
    if calibration.is_predictable {
        table(out, &prediction.rows);
        ideal_text(out, &prediction.rows);
        pulls_text(out, prediction);
        nodes_text(out, run);
    }
    without_text(out, &run.without);
    notes(out, run);
}

/// The forecast for the first other policy that was asked for, in a sentence: its interval, not its value.
fn answer(prediction: &Prediction) -> String {
    let calibration = &prediction.calibration;
    if !calibration.is_predictable {
        let reasons = calibration.reasons.join("; ");
        return format!("what another policy would have changed is not predictable from this trace: {reasons}");
    }
    let Some(row) = prediction.rows.iter().find(|row| row.policy != "observed") else {
        return "no other policy was asked for".to_owned();
    };
    let change =
        format!("{} {}", policy_in_words(&row.policy), change_in_words(row, prediction.trace.elapsed_ns.0 as f64));
    match calibration.seem_bound_percent {
        Some(_) => format!("{change}; nothing, if the tasks are bound"),
        None => change,
    }
}

fn policy_in_words(policy: &str) -> &str {
    match policy {
        "steal=core" => "stealing within a core",
        "steal=cluster" => "stealing within a cluster",
        "steal=llc" => "stealing under the last-level cache",
        "steal=node" => "stealing within a node",
        "steal=machine" => "stealing from any CPU",
        "steal=none" => "the order of queues of the model, without stealing,",
        "ideal" => "one run queue for all CPUs",
        other => other,
    }
}

/// The interval of the elapsed time under a policy as a change.
fn change_in_words(row: &PolicyRow, trace: f64) -> String {
    let percent = |ns: f64| if trace > 0.0 { rounded(100.0 * ns / trace, 1) } else { 0.0 };
    let (shorter, longer) = (percent(trace - row.elapsed_ns.low), percent(row.elapsed_ns.high - trace));
    match (shorter > 0.0, longer > 0.0) {
        (false, false) => "would not change the length of this run".to_owned(),
        (true, false) => format!("would shorten this run by {:.1} to {shorter:.1} %", (-longer).max(0.0)),
        (false, true) => format!("would lengthen this run by {:.1} to {longer:.1} %", (-shorter).max(0.0)),
        (true, true) => {
            format!("would shorten this run by at most {shorter:.1} %, or lengthen it by at most {longer:.1} %")
        }
    }
}

/// Adds a table below an empty line.
fn add(out: &mut String, table: &TextTable) {
    out.push('\n');
    table.write(out);
}

/// A table of policies, whose further columns have at least these widths, with its head.
fn of_policies<const N: usize>(widths: [usize; N], head: [&str; N]) -> TextTable {
    let policy = TextColumn::Names { least: 13, most: 30 };
    let mut table = TextTable::new([policy].into_iter().chain(widths.map(TextColumn::Numbers)));
    table.row(["policy"].into_iter().chain(head));
    table
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
    let columns = [TextColumn::Names { least: 20, most: 30 }].into_iter().chain([6, 6, 6].map(TextColumn::Numbers));
    let mut table = TextTable::new(columns.chain(policies.iter().map(|_| TextColumn::Numbers(12))));
    table.row(["elapsed time", "trace", "bound", "error"].into_iter().chain(policies.iter().copied()));
    for run in runs {
        let error = rounded(run.prediction.calibration.elapsed_error_percent, 2);
        let trace = run.prediction.trace.elapsed_ns;
        let bound = run
            .prediction
            .bound
            .as_ref()
            .map_or("-".to_owned(), |bound| format!("{:.1}%", -gain_percent(&bound.least, trace)));
        let first = [named(run), length(trace.0 as f64), bound, format!("{error:+.2}%")];
        let cells = policies.iter().map(|policy| {
            value(run, policy).map_or("-".to_owned(), |estimate| {
                let change =
                    estimate.change_percent.map_or(String::new(), |change| format!(" ({:+.0}%)", rounded(change, 0)));
                length(estimate.value) + &change
            })
        });
        table.row(first.into_iter().chain(cells));
    }
    table.write(out);
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
        let mut table = of_policies([7, 14, 4, 6], ["elapsed", "range", "held", "change"]);
        let held = |of: &GroupEstimate| format!("{}/{}", of.held, of.predicted.runs);
        let of_traces = |spread: &Spread| ["the traces".to_owned(), length(spread.median), range(spread)];
        table.row(of_traces(&group.elapsed_ns));
        for row in &group.policies {
            let elapsed = &row.elapsed_ns;
            table.row([
                row.policy.clone(),
                length(elapsed.predicted.median),
                range(&elapsed.predicted),
                held(elapsed),
                format!("{:+.1}%", row.change_percent.median),
            ]);
        }
        table.write(out);
        let mut table = of_policies([8, 14, 4], ["violated", "range", "held"]);
        table.row(of_traces(&group.violation_ns));
        for row in &group.policies {
            let predicted = &row.violation_ns.predicted;
            let cells = [row.policy.clone(), length(predicted.median), range(predicted), held(&row.violation_ns)];
            table.row(cells);
        }
        add(out, &table);
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
    let columns = [TextColumn::Names { least: 13, most: 24 }, TextColumn::Words(11)];
    let numbers = [6, 6, 6, 5, 5, 4, 6].map(TextColumn::Numbers);
    let mut table = TextTable::new(columns.into_iter().chain(numbers));
    table.row(["policy", "number", "from", "model", "found", "sign", "skill", "held", "within"]);
    for row in skills {
        let first = if row.metric == SkillMetric::Elapsed { &*row.policy } else { "" };
        table.row([
            first.to_owned(),
            row.metric.words().to_owned(),
            length(row.from_median),
            length(row.predicted_median),
            length(row.measured_median),
            if row.direction_is_right { "right" } else { "wrong" }.to_owned(),
            row.skill.map_or("-".to_owned(), |skill| format!("{skill:.2}")),
            format!("{}/{}", row.held, row.predictions),
            format!("{}/{}", row.within_all, row.measured),
        ]);
    }
    add(out, &table);
    paragraph(
        out,
        0,
        2,
        "Medians of the runs. Sign: that of the predicted change. Skill: the error of the prediction divided by that of \"nothing changes\", below 1 if it is better. Held: \
         intervals with the median of the measured runs. Within: measured runs between the ends of all intervals.",
    );
}

fn calibration_text(out: &mut String, run: &WhatifRun, rows: usize) {
    let calibration = &run.prediction.calibration;
    let columns = || [TextColumn::Words(32)].into_iter().chain([8, 11, 11].map(TextColumn::Numbers));
    let mut table = TextTable::new(columns());
    table.row(["calibration: model minus trace", "elapsed", "violation", "mean wait"]);
    table.row([
        "  the trace's order (observed)".to_owned(),
        format!("{:+.2}%", rounded(calibration.elapsed_error_percent, 2)),
        format!("{:+.2} pp", rounded(calibration.violation_error_points, 2)),
        format!("{:+.1}%", rounded(calibration.mean_wait_error_percent, 1)),
    ]);
    table.row([
        "  the model's order (steal=none)".to_owned(),
        format!("{:+.2}%", calibration.rules_elapsed_error_percent),
        format!("{:+.2} pp", calibration.rules_violation_error_points),
        format!("{:+.1}%", rounded(calibration.rules_mean_wait_error_percent, 1)),
    ]);
    add(out, &table);
    if calibration.waits.is_empty() || rows == 0 {
        return;
    }
    let mut table = TextTable::new(columns());
    table.row(["waits by command", "number", "trace, mean", "observed"]);
    for row in calibration.waits.iter().take(rows) {
        let lengths = [row.trace_mean_ns, row.observed_mean_ns].map(short);
        table.row([format!("  {}", row.command), row.number.to_string()].into_iter().chain(lengths));
    }
    add(out, &table);
}

fn table(out: &mut String, rows: &[PolicyRow]) {
    let count = |value: f64| format!("{value:.0}");
    let mut table = of_policies([7, 14, 6, 6, 8], ["elapsed", "interval", "change", "steals", "interval"]);
    for row in rows {
        let change =
            row.elapsed_ns.change_percent.map_or("-".to_owned(), |change| format!("{:+.1}%", rounded(change, 1)));
        table.row([
            row.policy.clone(),
            length(row.elapsed_ns.value),
            interval(&row.elapsed_ns, length),
            change,
            row.steals.to_string(),
            format!("{}..{}", row.least_steals, row.most_steals),
        ]);
        if !row.is_complete {
            table.across("  (cut off)");
        }
    }
    add(out, &table);
    let head = ["violated", "interval", "lost", "interval", "missed", "range"];
    let mut table = of_policies([6, 12, 6, 12, 6, 7], head);
    for row in rows {
        table.row([
            row.policy.clone(),
            length(row.violation_ns.value),
            interval(&row.violation_ns, length),
            length(row.cpu_time_lost_ns.value),
            interval(&row.cpu_time_lost_ns, length),
            count(row.missed_steals.value),
            interval(&row.missed_steals, count),
        ]);
    }
    add(out, &table);
    let head = ["busy", "interval", "wait", "interval", "p99", "interval"];
    let mut table = of_policies([5, 7, 6, 14, 6, 14], head);
    for row in rows {
        table.row([
            row.policy.clone(),
            format!("{:.1}%", row.busy_percent.value),
            interval(&row.busy_percent, |value| format!("{value:.0}")) + "%",
            length(row.mean_wait_ns.value),
            interval(&row.mean_wait_ns, length),
            length(row.p99_wait_ns.value),
            interval(&row.p99_wait_ns, length),
        ]);
    }
    add(out, &table);
}

/// The reason why the ideal can be slower than another policy, where it is.
fn ideal_text(out: &mut String, rows: &[PolicyRow]) {
    let elapsed = |row: &PolicyRow| row.elapsed_ns.value.round();
    let Some(ideal) = rows.iter().find(|row| row.policy == "ideal") else { return };
    let others = rows.iter().filter(|row| row.policy.starts_with("steal="));
    if let Some(faster) =
        others.filter(|row| elapsed(row) < elapsed(ideal)).min_by(|a, b| elapsed(a).total_cmp(&elapsed(b)))
    {
        let why = format!(
            "ideal is slower than {} here: one queue for all CPUs wastes no CPU time, but has the task run next that ran least, not the one for which \
             the others wait.",
            faster.policy
        );
        paragraph(out, 0, 2, &why);
    }
}

/// The pulls of policies that balance at ticks.
fn pulls_text(out: &mut String, prediction: &Prediction) {
    let rows = prediction.rows.iter().filter_map(|row| Some((&row.policy, row.pulls?)));
    let pulled = rows.map(|(policy, Pulls { nohz, periodic, active })| {
        format!("{policy} {nohz} to idle CPUs and {periodic} to busy ones, {active} of them running tasks")
    });
    let pulled: Vec<String> = pulled.collect();
    if let (Some(tick), false) = (prediction.tick_ns, pulled.is_empty()) {
        paragraph(out, 0, 2, &format!("Pulls at ticks, each {}: {}.", tick.human(), pulled.join("; ")));
    }
}

/// Says that the patches would not steal on this machine, where it has too many nodes for them.
fn nodes_text(out: &mut String, run: &WhatifRun) {
    let steals = |row: &PolicyRow| row.policy.starts_with("steal=") && row.policy != "steal=none";
    if run.nodes > STEAL_NODE_LIMIT && run.prediction.rows.iter().any(steals) {
        let text = format!(
            "The patches leave stealing off on a machine with more than {STEAL_NODE_LIMIT} nodes, and this one has {}: steal= is what they would do with \
             a higher limit (sched_steal_node_limit).",
            run.nodes
        );
        paragraph(out, 0, 2, &text);
    }
}

/// The number of nodes beyond which the patches that steal are off, unless the kernel's command line has another one (`sched_steal_node_limit`).
const STEAL_NODE_LIMIT: usize = 2;

fn without_text(out: &mut String, curves: &[CauseCurve]) {
    let Some(first) = curves.first() else { return };
    let numbers = first.points.iter().map(|_| TextColumn::Numbers(7));
    let mut table = TextTable::new([TextColumn::Words(30), TextColumn::Numbers(7)].into_iter().chain(numbers));
    let removed = first.points.iter().map(|point| format!("-{} %", point.removed_percent));
    table.row(["without waits that began so".to_owned(), "waited".to_owned()].into_iter().chain(removed));
    for curve in curves {
        let changes = curve.points.iter().map(|point| format!("{:.2}%", rounded(point.change_percent, 2)));
        let name = format!("  {}", curve.origin);
        table.row([name, short(Some(curve.waiting_ns))].into_iter().chain(changes));
    }
    add(out, &table);
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
            "A steal costs {}, a migration {}{}, between nodes {}{}{}. Queues are {order}{}; the slice is {}{}, an idle CPU needs {} to switch; wakeups {}.",
            costs.steal_ns.human(),
            costs.migration_ns.human(),
            by(near),
            costs.node_migration_ns.human(),
            by(far),
            costs.new_idle_lowest_ns.zip(costs.new_idle_all_ns).map_or_else(String::new, |(lowest, all)| {
                format!(", a search by new-idle balancing {}, of all domains {}", lowest.human(), all.human())
            }),
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
    if prediction.calibration.is_predictable {
        prediction.calibration.advice.iter().for_each(|advice| paragraph(out, 0, 2, advice));
    }
    paragraph(
        out,
        0,
        2,
        "Not modelled: data that is there before a task asks for it, spinning, frequency, shared caches and hyperthreads, cgroup weights, \
         the load that balancers weigh. An interval holds what the trace leaves open, widened by the calibration error.",
    );
}
