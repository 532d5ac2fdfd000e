//! The report as a text for people.

use crate::case::{ComparedTask, PickCase};
use crate::{ContestedPicks, LagSummary, ModelCheck, PickRow, PicksReport, Reason, Recorded};
use sched::lengths::Summary;
use sched::nouns::counted;
use sched::{Comm, Dur};
use std::fmt::Write;
use timeline::table::{TextColumn, TextTable};
use timeline::text::{CASES, Detail, paragraph, short};
use timeline::{Drawable, Next};

/// Returns the report for people: `trace` is the file as the command line has it, `rows` the maximum number of rows of a table.
pub fn text(report: &PicksReport, trace: &Drawable, rows: usize, detail: Detail) -> String {
    let mut out = String::new();
    if let Some(why) = &report.selection_unknown {
        paragraph(&mut out, 0, 2, &format!("{trace}: why tasks were picked is unknown: {why}"));
        return out;
    }
    headline(&mut out, report, trace);
    reasons(&mut out, report);
    table(&mut out, report, rows);
    lengths(&mut out, report);
    if let Some(check) = &report.model {
        model(&mut out, check);
    }
    let most = if detail == Detail::Brief { CASES } else { usize::MAX };
    cases(&mut out, "picks that no rule explains", &report.unexplained, most);
    cases(&mut out, "picks of tasks whose deadline had passed for longest", &report.latest, most);
    if let Some(case) = report.unexplained.first().or(report.latest.first()) {
        trace.next(&mut out, "the first of these picks", case.start_in_trace_ns, Dur(0), &[Next::Draw, Next::Queues]);
    }
    out
}

fn headline(out: &mut String, report: &PicksReport, trace: &Drawable) {
    let picks = counted(report.picks.unwrap_or(0), "pick");
    let contested = report.contested.unwrap_or_default();
    let judged = match (contested.picks, report.recorded) {
        (0, _) => String::new(),
        (_, Recorded::Numbers) => {
            let ContestedPicks { explained, possibly_explained, unexplained, between_groups, not_recorded, .. } =
                contested;
            let apart = match between_groups + not_recorded {
                0 => String::new(),
                all => format!(
                    "; {all} cannot be judged ({between_groups} between groups, {not_recorded} with numbers that are not recorded)"
                ),
            };
            let possibly = match possibly_explained {
                0 => String::new(),
                possibly => format!(", {possibly} possibly"),
            };
            format!(": {explained} explained{possibly}, {unexplained} unexplained{apart}")
        }
        (_, Recorded::Switches) => "; their reasons are possible ones".to_owned(),
    };
    let number = contested.picks;
    let headline =
        format!("{trace}: {picks} of tasks of the fair class, {number} of them contested, among several tasks{judged}");
    paragraph(out, 0, 2, &headline);
    let source = match report.recorded {
        Recorded::Numbers => "(from the kernel's own numbers at each switch)",
        Recorded::Switches => {
            "(the kernel's numbers were not recorded, as record --why=picks does: lags are those of a fluid model of each run queue)"
        }
    };
    paragraph(out, 2, 3, source);
    if !report.has_eevdf {
        paragraph(
            out,
            2,
            3,
            "(this kernel is not known to pick by EEVDF, which came with 6.6: deadlines, eligibility and slice protection do not apply)",
        );
    }
}

fn reasons(out: &mut String, report: &PicksReport) {
    let contested = report.contested.unwrap_or_default().picks.max(1);
    let with_numbers = report.recorded == Recorded::Numbers;
    let more = if with_numbers { "  in spite   shorter" } else { "" };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "\n{:<38}  {:>7}  {:>7}{more}", "picked because it was", "picks", "share");
    for row in &report.reasons {
        let share = match row.reason {
            Reason::Only => "-".to_owned(),
            _ => format!("{:.1}%", 100.0 * row.picks as f64 / contested as f64),
        };
        let _ = write!(out, "  {:<36}  {:>7}  {share:>7}", row.reason.words(), row.picks);
        if with_numbers {
            let _ = write!(out, " {:>9}  {:>8}", row.in_spite_of_protection, row.with_shorter_request);
        }
        out.push('\n');
    }
    if with_numbers {
        let text = "(share: of the contested picks; in spite: the task that left had not used up its request, which protects it (RUN_TO_PARITY); shorter: of \
                    those, picks of a task with a shorter request, which ends the protection)";
        paragraph(out, 2, 3, text);
    }
    if !with_numbers {
        paragraph(out, 2, 3, "(share: of the contested picks)");
    }
    let apart = [(report.to_other_classes, "to tasks of other classes"), (report.to_idle, "to the idle task")];
    let texts = apart.map(|(number, what)| format!("{} {what}", counted(number.unwrap_or(0), "switch")));
    paragraph(out, 2, 3, &format!("({})", texts.join(", ")));
}

/// A lag for a cell of a table: with its sign.
fn cell(lag: Option<i64>) -> String {
    match lag {
        None => "-".to_owned(),
        Some(lag) if lag < 0 => format!("-{}", short(Some(Dur(lag.unsigned_abs())))),
        Some(lag) => short(Some(Dur(lag.unsigned_abs()))),
    }
}

fn name(row: &PickRow) -> String {
    if let Some(group) = &row.group {
        return group.shown();
    }
    let command = row.command.unwrap_or(Comm::EMPTY);
    match (row.pid, row.cpu) {
        (Some(pid), _) => pid.named(command),
        (None, Some(cpu)) => format!("CPU {cpu}"),
        (None, None) => command.to_string(),
    }
}

fn line(table: &mut TextTable, name: &str, picks: u64, lags: [String; 4], late: &Summary, runs: &Summary) {
    let first = [format!("  {name}"), picks.to_string()];
    table.row(first.into_iter().chain(lags).chain([late.count.to_string(), short(runs.p50_ns)]));
}

/// The lags and the longest debt of a row.
fn lags(lag: &LagSummary, debt: Option<Dur>) -> [String; 4] {
    [cell(lag.least_ns), cell(lag.median_ns), cell(lag.greatest_ns), short(debt)]
}

fn table(out: &mut String, report: &PicksReport, rows: usize) {
    let columns = [TextColumn::Names { least: 21, most: 23 }, TextColumn::Numbers(5)];
    let numbers = [6, 6, 6, 6, 4, 6].map(TextColumn::Numbers);
    let mut table = TextTable::new(columns.into_iter().chain(numbers));
    table.row(["lag at the pick", "picks", "least", "median", "most", "debt", "late", "run"]);
    let (lag, late, runs) =
        (report.lag.unwrap_or_default(), report.late.unwrap_or_default(), report.runs.unwrap_or_default());
    line(&mut table, "all", report.picks.unwrap_or(0), lags(&lag, None), &late, &runs);
    for row in report.rows.iter().take(rows) {
        let debt = row.longest_debt.map(|debt| debt.lasted_ns);
        line(&mut table, &name(row), row.picks, lags(&row.lag, debt), &row.late, &row.runs);
    }
    if report.rows.len() > rows {
        table.across(format!("  … and {} more (--rows, --json)", report.rows.len() - rows));
    }
    out.push('\n');
    table.write(out);
    let text = "(lag: what a task is owed at a contested pick, negative if it had more than its share; debt: the longest time until a task that had \
                more was picked without a debt; late: picks behind their deadline; run: the median)";
    paragraph(out, 2, 3, text);
    let longest = report.rows.iter().filter_map(|row| row.longest_debt).max_by_key(|debt| (debt.lasted_ns, debt.pid));
    if let Some(debt) = longest {
        let paid = if debt.paid { "until it was paid" } else { "and was not paid" };
        let (task, most) = (debt.pid.named(debt.command), debt.most_ns.human());
        let text = format!(
            "the longest debt: {task} had up to {most} more than its share, for {} {paid}",
            debt.lasted_ns.human()
        );
        paragraph(out, 0, 2, &text);
    }
}

fn lengths(out: &mut String, report: &PicksReport) {
    let all = [
        ("requested time slices", report.requested),
        ("runs", report.runs),
        ("picks behind their deadline, by", report.late),
    ];
    let columns = [TextColumn::Words(33), TextColumn::Numbers(7)];
    let mut table = TextTable::new(columns.into_iter().chain([TextColumn::Numbers(6); 4]));
    table.row(["", "number", "mean", "50 %", "99 %", "max"]);
    let with_figures = all.into_iter().filter_map(|(name, summary)| Some((name, summary?)));
    for (name, s) in with_figures.filter(|(_, summary)| summary.count > 0) {
        let lengths = [s.mean_ns, s.p50_ns, s.p99_ns, s.max_ns].map(short);
        table.row([name.to_owned(), s.count.to_string()].into_iter().chain(lengths));
    }
    if all.iter().any(|(_, summary)| summary.is_some_and(|summary| summary.count > 0)) {
        out.push('\n');
        table.write(out);
    }
}

fn model(out: &mut String, check: &ModelCheck) {
    out.push('\n');
    let kinds = [
        (check.own_group, "of tasks with rivals in their own group"),
        (check.among_groups, "of tasks among other groups"),
    ];
    for (check, which) in kinds.into_iter().filter(|(check, _)| check.compared > 0) {
        let share = |number: u64| 100.0 * number as f64 / check.compared as f64;
        let text = format!(
            "the fluid model against {} {which}: the sign is right in {:.1} %, the error below one slice in {:.1} %, at most {}",
            counted(check.compared, "recorded lag"),
            share(check.sign_right),
            share(check.within_slice),
            check.greatest_error_ns.human()
        );
        paragraph(out, 0, 2, &text);
    }
    if check.alone > 0 {
        let alone = counted(check.alone, "recorded lag");
        paragraph(out, 0, 2, &format!("{alone} of tasks without a rival show nothing of the model: they are zero"));
    }
}

fn task(task: &ComparedTask) -> String {
    task.pid.named(if task.command.is_empty() { Comm::EMPTY } else { task.command })
}

fn cases(out: &mut String, title: &str, cases: &[PickCase], most: usize) {
    if cases.is_empty() {
        return;
    }
    out.extend(["\n", title, ":\n"]);
    for case in cases.iter().take(most) {
        let late = case.late_ns.map_or_else(String::new, |late| format!(", {} behind its deadline", late.human()));
        let lag = case.lag_ns.map_or_else(String::new, |lag| format!(", lag {}", cell(Some(lag))));
        let others: Vec<String> = case.others.iter().map(other).collect();
        let own = cell(case.picked.deadline_ns);
        let text = format!(
            "{:.6} s  {} on CPU {}{lag}{late}; deadline {own} ahead; not {}",
            case.start_in_trace_ns as f64 / 1e9,
            task(&case.picked),
            case.cpu,
            others.join(", ")
        );
        paragraph(out, 2, 14, &text);
    }
}

fn other(other: &ComparedTask) -> String {
    match (other.vruntime_ns, other.deadline_ns) {
        (Some(vruntime), Some(deadline)) => {
            format!("{} (virtual run time {}, deadline {})", task(other), cell(Some(vruntime)), cell(Some(deadline)))
        }
        _ => format!("{} (numbers not recorded)", task(other)),
    }
}
