//! `schedviz compare`: what differs between groups of runs, and whether that is more than noise.

use crate::CompareArgs;
use crate::args::FORMATS;
use crate::chosen::ChosenRuns;
use crate::explain::{Explanation, explain};
use crate::failing;
use crate::header;
use crate::measure;
use crate::measures::{self, Measured};
use crate::outside::{self, OutsideOfRun};
use crate::sweep::{Sweep, SweepPoint};
use crate::{Compared, ComparedRun, Finding, Group, Limit, Metric, Row, in_dialect, rounds, sweep_figure, sweep_table};
use anyhow::{Context, Result, bail};
use benchmarks::BenchmarkNumber;
use question::{Question, Subcommand};
use sched::{Judgement, Verdict};
use serde::Serialize;
use session::args::{ReadArgs, WindowArgs, repeatable, typed};
use session::formats::{Format, Formats, OutputName, Renderings, json};
use session::section::ReportSection;
use session::summary::fenced;
use session::{groups, several, verdict, warnings};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use timeline::Sheet;
use timeline::page::Texts;
use timeline::text::paragraph;

/// The name and version of the document's schema.
const SCHEMA: &str = "schedviz/compare/2";

/// The differences between groups of runs, and whether they are more than noise.
#[derive(Debug)]
pub struct CompareQuestion;

impl Subcommand for CompareQuestion {
    const NAME: &'static str = "compare";
    const FIRST_STEP: Option<(&'static str, &'static str)> =
        Some(("compare --base 'old.*.dat' --new 'new.*.dat'", "what a patch changed"));
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("What did a patch change, and is it more than noise?", "--base FILES --new FILES"));
    type Args = CompareArgs;

    fn run(args: &CompareArgs) -> Result<ExitCode> {
        run(args)
    }
}

impl Question for CompareQuestion {
    const FORMATS: Formats = FORMATS;
    const IN_REPORT: bool = true;

    fn section_of_runs(
        folder: &Path,
        read: &ReadArgs,
        window: &WindowArgs,
        sheet: &Sheet,
    ) -> Result<Option<ReportSection>> {
        // One variant has nothing to be compared with.
        match groups::Folder::open(folder)? {
            Some(runs) if runs.groups.len() > 1 => section_of_runs(folder, read, window, sheet).map(Some),
            _ => Ok(None),
        }
    }

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<CompareDocument>(SCHEMA)]
    }
}

/// The document of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CompareDocument {
    /// The name and version of the schema, `schedviz/compare/2`.
    schema: &'static str,
    /// The probability that noise may pass for a change.
    alpha: f64,
    /// Facts about the machines that the groups were recorded on: of machine files, or of the trace for a run without one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    machine: Vec<header::Fact>,
    /// The metrics, in the order of the values of a run.
    metrics: Vec<Metric>,
    /// The groups, the first of which is the base.
    groups: Vec<Group>,
    /// The groups in order of the variant and of the parameter, if their names differ in one number; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<Sweep>,
    /// The comparison of each further group with the first; in a sweep, of each further variant with the first at the same
    /// value of the parameter, and of one variant of each further value with the first.
    comparisons: Vec<Comparison>,
    /// Differences between the runs that should not exist, and values that runs lack.
    notes: Vec<String>,
    /// The work of tasks outside of the application in each run, also of those that are left out as contaminated.
    outside: Vec<OutsideOfRun>,
    /// The verdict on each limit and group; absent without a limit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    verdicts: Vec<Judged>,
}

/// The verdict on a metric of a group.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Judged {
    /// The name of the judged group.
    group: String,
    /// The key of the metric.
    metric: String,
    #[serde(flatten)]
    verdict: Verdict,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Comparison {
    /// The name of the first group.
    base: String,
    /// The name of the other group.
    new: String,
    /// The metrics that both groups have.
    rows: Vec<Row>,
    /// 100 * (base / new - 1) of the median elapsed times; null if one is unknown.
    speedup_percent: Option<f64>,
    /// The main difference, and the origins and causes that changed most.
    explanation: Explanation,
}

/// Measures all runs, compares their groups, and judges the limits.
pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode> {
    args.output.check(FORMATS)?;
    verdict::check(args.output.dialect(), !args.fail_if.is_empty(), "--fail-if 'METRIC>N%'")?;
    if let Some(dialect) = args.output.dialect().filter(|_| args.markdown) {
        bail!("--markdown and --format {} are two forms of the same table; use one of them", dialect.word());
    }
    let (document, all) = compared(args)?;
    let form = if args.markdown { Form::Markdown } else { Form::Mail };
    // One group against another needs no name.
    let subject = |judged: &Judged| match document.comparisons.len() {
        1 => judged.metric.clone(),
        _ => format!("{}: {}", judged.group, judged.metric),
    };
    let subjects: Vec<String> = document.verdicts.iter().map(subject).collect();
    let verdicts = document.verdicts.iter().map(|judged| &judged.verdict);
    let verdicts: Vec<(&str, &Verdict)> = subjects.iter().map(String::as_str).zip(verdicts).collect();
    let in_dialect = |format| match verdict::in_format(format, "compare", &verdicts) {
        Some(text) => Ok(text),
        None => dialect(format, &document, &all),
    };
    let forms = Renderings::told(|| text(&document, form), |sheet| Ok(figures(&document, &all, sheet)));
    let forms = forms.with_dialects(in_dialect);
    args.output.give(&OutputName::whole(Path::new("runs")), "compare", &document, forms, args.read.quiet)?;
    if args.summary.is_asked_for() {
        let failed = document.verdicts.iter().filter(|judged| judged.verdict.verdict == Judgement::Fail);
        let failed: Vec<(&str, &str)> = failed.map(|judged| (judged.group.as_str(), judged.metric.as_str())).collect();
        let numbers = (document.groups.as_slice(), document.metrics.as_slice());
        let findings = failing::findings(&failed, numbers, &all, (&args.read, &args.window))?;
        let body = || text(&document, Form::Summary) + &findings;
        args.summary.append("schedviz compare", body, verdicts.iter().copied())?;
    }
    Ok(verdict::report(verdicts))
}

/// The section of a report on a folder of `record --runs` with several variants.
pub(crate) fn section_of_runs(
    folder: &Path,
    read: &ReadArgs,
    window: &WindowArgs,
    sheet: &Sheet,
) -> Result<ReportSection> {
    let args = CompareArgs { read: read.clone(), window: window.clone(), ..typed(&[folder.as_os_str()])? };
    let (document, all) = compared(&args)?;
    let figures = figures(&document, &all, sheet);
    let title = "The variants compared".to_owned();
    Ok(ReportSection { title, figures, text: text(&document, Form::Mail), json: json(&document)? })
}

/// A group, with its runs.
type Measurements = Vec<(String, Vec<Measured>)>;

/// Measures all runs and compares their groups.
fn compared(args: &CompareArgs) -> Result<(CompareDocument, Measurements)> {
    let ChosenRuns { groups: files, sweep, own, rounds: round_of, ends_early, notes } = ChosenRuns::of(args)?;
    let mut found = measures::metrics();
    found.splice(1..1, measures::of_path());
    let mut outputs: Vec<Vec<BenchmarkNumber>> = Vec::new();
    for path in files.iter().flat_map(|(_, paths)| paths) {
        let output = benchmarks::path_beside(path);
        outputs.push(benchmarks::beside(path).with_context(|| output.display().to_string())?);
    }
    found.splice(0..0, measures::of_benchmarks(&outputs));
    if !own.is_empty() {
        found.insert(0, measures::own_metric());
    }
    let mut metrics: Vec<Metric> = found.iter().map(|(metric, _)| metric.clone()).collect();
    if let Some(limit) = args.fail_if.iter().find(|limit| metrics.iter().all(|metric| metric.key != limit.metric)) {
        bail!("--fail-if: the recordings have no metric {:?}", limit.metric);
    }
    let (mut all, mut notes) = (Measurements::new(), notes);
    let paths: Vec<&Path> = files.iter().flat_map(|(_, paths)| paths).map(PathBuf::as_path).collect();
    let named = paths.iter().copied().zip(groups::names(&paths)).zip(outputs);
    let named: Vec<((&Path, String), Vec<BenchmarkNumber>)> = named.collect();
    let mut measured = several::measured(&named, &args.read, |((path, name), output), read| {
        let run = measure::measure(path, read, args)?;
        warnings::warn_of(Some(name), &run.diagnostics, read);
        Ok(Measured {
            name: name.clone(),
            own: own.get(*path).copied(),
            round: round_of.get(*path).copied(),
            benchmark: output.clone(),
            ..run
        })
    })?
    .into_iter();
    for (name, paths) in &files {
        let mut runs: Vec<Measured> = Vec::new();
        for run in measured.by_ref().take(paths.len()) {
            if let Some(same) = runs.iter().find(|other| other.recording == run.recording) {
                notes.push(groups::again(name, &run.name, &same.name));
                continue;
            }
            let lost = run.columns.unknown_percent;
            if lost > args.max_loss {
                notes.push(format!(
                    "{name}: {} is left out: nothing is known of {lost:.2} % of its CPU time (--max-loss {})",
                    run.name, args.max_loss
                ));
                continue;
            }
            if let Some(why) = &run.no_violation {
                notes.push(format!("{name}: {} has no violation: {why}", run.name));
            }
            if let Some(why) = &run.no_latency {
                notes.push(format!("{name}: {} has no latency: {why}", run.name));
            }
            runs.push(run);
        }
        all.push((name.clone(), runs));
    }
    let outside = outside::judge(&mut all, args.exclude_contaminated, &mut notes);
    found.retain(|(metric, of)| {
        let has_one = || all.iter().flat_map(|(_, runs)| runs).any(|run| of(run).is_some());
        let is_limit = || args.fail_if.iter().any(|limit| limit.metric == metric.key);
        !measures::needs_probes(metric) || is_limit() || has_one()
    });
    metrics.retain(|metric| found.iter().any(|(kept, _)| kept.key == metric.key));
    notes.extend(session::ext::head(all.iter().map(|(name, runs)| {
        let loaded = runs.iter().find_map(|run| run.sched_ext.as_ref());
        (name.as_str(), loaded)
    })));
    notes.extend(shared(&all));
    notes.extend(without_elapsed(&mut all));
    notes.extend(differences(&all));
    let groups: Vec<Group> = all
        .iter()
        .map(|(name, runs)| {
            let run = |m: &Measured| ComparedRun {
                trace: m.name.clone(),
                values: found.iter().map(|(_, of)| of(m)).collect(),
            };
            Group { name: name.clone(), runs: runs.iter().map(run).collect() }
        })
        .collect();
    if groups.len() < 2 {
        bail!("one group has nothing to be compared with: give --base and --new, or two of --group");
    }
    let runs = |at: usize| (all[at].0.as_str(), all[at].1.as_slice());
    let place = |name: &str| groups.iter().position(|group| group.name == name);
    let pairs: Vec<(usize, usize)> = match &sweep {
        Some(sweep) => sweep.pairs().into_iter().filter_map(|(base, new)| Some((place(base)?, place(new)?))).collect(),
        None => (1..groups.len()).map(|new| (0, new)).collect(),
    };
    let against = |(base, new): &(usize, usize)| {
        let sides = (&groups[*base], &groups[*new]);
        Comparison::of(&metrics, sides, (runs(*base), runs(*new)), (args.alpha, ends_early))
    };
    let comparisons: Vec<Comparison> = pairs.iter().map(against).collect();
    let verdicts =
        comparisons.iter().flat_map(|c| args.fail_if.iter().map(|limit| Judged::of(limit, c, args.alpha))).collect();
    let document = CompareDocument {
        schema: SCHEMA,
        alpha: args.alpha,
        machine: header::facts(&all),
        metrics: metrics.clone(),
        groups: groups.clone(),
        sweep,
        comparisons,
        notes,
        outside,
        verdicts,
    };
    Ok((document, all))
}

impl Judged {
    fn of(limit: &Limit, comparison: &Comparison, alpha: f64) -> Judged {
        let verdict = crate::judge(limit, &comparison.rows, alpha);
        Judged { group: comparison.new.clone(), metric: limit.metric.clone(), verdict }
    }
}

/// The runs of a group with its name.
type NamedRuns<'m> = (&'m str, &'m [Measured]);

impl Comparison {
    /// Compares two groups, whose numbers and whose runs are given; by their rounds if the series may have ended early.
    fn of(
        metrics: &[Metric],
        (base, new): (&Group, &Group),
        runs: (NamedRuns<'_>, NamedRuns<'_>),
        (alpha, ends_early): (f64, bool),
    ) -> Comparison {
        let mut rows = crate::compare(metrics, base, new, alpha);
        if ends_early {
            rounds::judge_in_rounds(&mut rows, metrics, (base, new), (runs.0.1, runs.1.1), alpha);
            rounds::control_discoveries(&mut rows, alpha);
        }
        let elapsed = rows.iter().find(|row| row.metric.key == "elapsed");
        let speedup_percent = elapsed.and_then(|row| schedstat::speedup(row.base.median, row.new.median));
        let explanation = explain(runs.0, runs.1, &rows, alpha);
        Comparison { base: base.name.clone(), new: new.name.clone(), rows, speedup_percent, explanation }
    }
}

/// The table in a dialect, with the explanation of each comparison below it.
fn dialect(format: Format, document: &CompareDocument, all: &Measurements) -> Result<String> {
    let command = header::command(all);
    let mut out = headlines(document, Form::Mail);
    for (nth, (parameter, names)) in tables(document).into_iter().enumerate() {
        let test = parameter.map_or_else(|| command.clone(), |parameter| format!("{command} at {parameter}"));
        let in_table = |group: &&Group| names.contains(&group.name.as_str());
        let groups: Vec<Group> = document.groups.iter().filter(in_table).cloned().collect();
        let of_table = document.comparisons.iter().filter(|comparison| names.contains(&comparison.new.as_str()));
        let comparisons = of_table.map(|comparison| comparison.rows.as_slice()).collect();
        let metrics = &document.metrics;
        let compared = Compared { test: &test, metrics, groups: &groups, comparisons, alpha: document.alpha };
        let Some(table) = in_dialect(format, &compared) else { bail!("there is no {} of this", format.word()) };
        out += &format!("{}{table}", if nth == 0 { "" } else { "\n" });
    }
    for c in &document.comparisons {
        out += &format!("\n{}", c.explanation.text(&c.base, &c.new));
        if let Some(why) = too_few(&c.rows, document.alpha) {
            paragraph(&mut out, 0, 2, &why);
        }
    }
    Ok(out)
}

/// The tables in a dialect, each with the names of its groups, the base first: one table, or in a sweep of several variants one for
/// each value of the parameter.
fn tables(document: &CompareDocument) -> Vec<(Option<&str>, Vec<&str>)> {
    match document.sweep.as_ref().filter(|sweep| sweep.variants.len() > 1) {
        None => vec![(None, document.groups.iter().map(|group| group.name.as_str()).collect())],
        Some(sweep) => {
            fn table(point: &SweepPoint) -> (Option<&str>, Vec<&str>) {
                (Some(&point.parameter), point.groups.iter().map(String::as_str).collect())
            }
            sweep.points.iter().map(table).collect()
        }
    }
}

/// The form of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Columns for a mail.
    Mail,
    /// Markdown, with the explanation below each table.
    Markdown,
    /// Markdown, with the finding above each table.
    Summary,
}

/// Takes the elapsed time from the runs that were cut before their commands ended, where any run shows how long its
/// command lived: the elapsed time is that then. Returns a note on each of these runs.
fn without_elapsed(groups: &mut [(String, Vec<Measured>)]) -> Vec<String> {
    let mut notes = Vec::new();
    let by_command = groups.iter().flat_map(|(_, runs)| runs).any(|run| run.workcons.elapsed_is_command);
    for (group, runs) in groups {
        for run in runs {
            run.elapsed = run.workcons.elapsed(by_command);
            if run.elapsed.is_none() {
                notes.push(format!("{group}: {} has no elapsed time: {}", run.name, workcons::NO_ELAPSED));
            }
        }
    }
    notes
}

/// The runs that are in two groups.
fn shared(groups: &[(String, Vec<Measured>)]) -> Vec<String> {
    let mut notes = Vec::new();
    for (at, (name, runs)) in groups.iter().enumerate() {
        for (other, others) in &groups[at + 1..] {
            let in_both = |run: &&Measured| others.iter().any(|other| other.recording == run.recording);
            for run in runs.iter().filter(in_both) {
                notes.push(format!("{} is in {name} and in {other}: a run of both sides hides a change", run.name));
            }
        }
    }
    notes
}

/// Differences between runs that ought to be alike.
fn differences(groups: &[(String, Vec<Measured>)]) -> Vec<String> {
    let mut notes = Vec::new();
    let Some(first) = groups.iter().flat_map(|(_, runs)| runs).next() else { return notes };
    for (at, (what, expected)) in first.setting.facts.iter().enumerate() {
        for (name, runs) in groups {
            let others = runs.iter().filter(|run| run.setting.facts[at].1 != *expected);
            let mut others = others.map(|run| (&run.name, &run.setting.facts[at].1));
            if let Some((trace, found)) = others.next() {
                let more = match others.count() {
                    0 => String::new(),
                    n => format!(" (and {n} more)"),
                };
                notes.push(format!("{what}: {name}: {trace}{more} has {found}; {} has {expected}", first.name));
            }
        }
    }
    notes
}

fn text(document: &CompareDocument, form: Form) -> String {
    let mut out = String::new();
    if document.sweep.is_none() {
        out += &headlines(document, form);
    }
    let names: Vec<&str> = document.groups.iter().map(|group| group.name.as_str()).collect();
    if !document.machine.is_empty() {
        out += &match form {
            Form::Mail => header::text(&document.machine, &names),
            Form::Markdown | Form::Summary => header::markdown(&document.machine, &names),
        };
        out.push('\n');
    }
    for note in &document.notes {
        paragraph(&mut out, 0, 2, &format!("note: {note}"));
    }
    match &document.sweep {
        Some(sweep) => out += &swept(sweep, document, form),
        None => document.comparisons.iter().for_each(|comparison| section(&mut out, comparison, document, form)),
    }
    if form == Form::Mail {
        let outside = outside::text(&document.outside);
        if document.sweep.is_some() && !outside.is_empty() {
            out.push('\n');
        }
        out += &outside;
    }
    out
}

/// The finding of each comparison.
fn headlines(document: &CompareDocument, form: Form) -> String {
    let explanations = document.comparisons.iter().map(|comparison| &comparison.explanation);
    let headline = |explanation: &Explanation| match form {
        Form::Mail => explanation.headline(),
        Form::Markdown => format!("Finding: {}\n\n", explanation.finding),
        Form::Summary => format!("**{}**\n\n", explanation.finding),
    };
    let mut out: String = explanations.map(headline).collect();
    if form == Form::Mail {
        out.push('\n');
    }
    out
}

/// The text on a sweep.
fn swept(sweep: &Sweep, document: &CompareDocument, form: Form) -> String {
    let rows: Vec<&[Row]> = document.comparisons.iter().map(|comparison| comparison.rows.as_slice()).collect();
    let mut out = sweep_table::text(sweep, &rows, document.alpha, form != Form::Mail);
    let all: Vec<Row> = document.comparisons.iter().flat_map(|comparison| comparison.rows.clone()).collect();
    if let Some(why) = too_few(&all, document.alpha) {
        paragraph(&mut out, 0, 2, &why);
    }
    out
}

/// The table of a comparison with what explains it.
fn section(out: &mut String, c: &Comparison, document: &CompareDocument, form: Form) {
    let alpha = document.alpha;
    let runs = |name: &str| {
        let runs = document.groups.iter().find(|g| g.name == name).map_or(0, |g| g.runs.len());
        sched::nouns::counted(runs, "run")
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{} ({}) against {} ({})\n", c.new, runs(&c.new), c.base, runs(&c.base));
    *out += &match form {
        Form::Mail => crate::text(&c.rows, &c.base, &c.new),
        Form::Markdown | Form::Summary => crate::markdown(&c.rows, &c.base, &c.new),
    };
    let elapsed = c.rows.iter().find(|row| row.metric.key == "elapsed" && row.p.is_some());
    if let (Some(speedup), Some(row)) = (c.speedup_percent, elapsed) {
        let certainty = if row.finding == Finding::Noise { ", may be noise" } else { "" };
        let p = crate::table::p(row);
        let _ = writeln!(out, "\n%speedup {speedup:.1} (p {p}{certainty}; 100 * (base / new - 1), by medians)");
    }
    if c.rows.iter().any(|row| row.finding != Finding::TooFew) {
        let is_in_rounds = c.rows.iter().any(|row| row.rounds.is_some());
        let legend = if is_in_rounds { rounds::legend(alpha) } else { crate::table::legend(alpha) };
        let _ = writeln!(out, "\n{legend}");
    }
    if c.rows.iter().any(|row| row.base.runs == 1 || row.new.runs == 1) {
        let _ = writeln!(out, "A number without \u{b1} is that of 1 run.");
    }
    // The Markdown table has a column for it.
    if let Some(noise) = crate::noise(&c.rows).filter(|_| form == Form::Mail) {
        let share = 100.0 * (1.0 - alpha);
        let of = format!("the medians of two halves of {}'s runs differ by at most this in {share} % of all", c.base);
        paragraph(out, 0, 2, &format!("A/A: {of} divisions into halves: {noise}"));
    }
    if form == Form::Mail {
        *out += &rounds::sentences(&c.rows, alpha);
    }
    if let Some(why) = too_few(&c.rows, alpha) {
        paragraph(out, 0, 2, &why);
    }
    out.push('\n');
    *out += &match form {
        Form::Mail => c.explanation.text(&c.base, &c.new),
        Form::Markdown | Form::Summary => fenced(&c.explanation.changes(&c.base, &c.new, usize::MAX)),
    };
    out.push('\n');
}

/// A sentence on the numbers of runs that are too few to distinguish a change from noise, if any are.
fn too_few(rows: &[Row], alpha: f64) -> Option<String> {
    if rows.iter().any(|row| row.rounds.is_some()) {
        let (rounds, fewest) = rounds::missing_rounds(rows, alpha)?;
        return Some(format!(
            "Too few rounds to distinguish a change from noise: {rounds}, where {fewest} are the least for p <= {alpha}."
        ));
    }
    let hopeless = rows.iter().filter(|row| row.finding == Finding::TooFew || row.is_hopeless(alpha));
    let runs: BTreeSet<(usize, usize)> = hopeless.map(|row| (row.new.runs, row.base.runs)).collect();
    let runs: Vec<String> = runs.into_iter().map(|(new, base)| format!("{new} against {base}")).collect();
    let fewest = crate::fewest_that_show(alpha);
    let times = if fewest <= 5 { "five".to_owned() } else { fewest.to_string() };
    (!runs.is_empty()).then(|| {
        format!(
            "Too few runs to distinguish a change from noise: {}, where {fewest} of each are the least for p <= {alpha}; \
             record each {times} times.",
            runs.join(", ")
        )
    })
}

fn figures(document: &CompareDocument, all: &[(String, Vec<Measured>)], sheet: &Sheet) -> Vec<draw::Figure> {
    let command = repeatable(std::env::args_os());
    let names: Vec<&str> = document.groups.iter().map(|group| group.name.as_str()).collect();
    let texts = Texts {
        title: "Runs compared".into(),
        notes: std::iter::once(
            "Each run is a point; a scale begins at the least and ends at the greatest value of all runs.".to_owned(),
        )
        .chain(header::notes(&document.machine, &names))
        .collect(),
        warnings: document.notes.iter().take(4).cloned().collect(),
        command: command.clone(),
        sheet: sheet.clone(),
    };
    let runs: Vec<workcons::Runs> = all
        .iter()
        .map(|(name, runs)| workcons::Runs {
            name: name.clone(),
            runs: runs.iter().filter_map(Measured::point).collect(),
        })
        .collect();
    let left_out = document.notes.iter().filter(|note| note.ends_with(workcons::NO_ELAPSED)).cloned();
    let by_time = workcons::figure(
        "Elapsed time and work conservation",
        ["A bar at the right edge is a group's median.".into()].into_iter().chain(left_out).collect(),
        &runs,
        &command,
        sheet,
    );
    let comparisons: Vec<&[Row]> = document.comparisons.iter().map(|comparison| comparison.rows.as_slice()).collect();
    let of_runs = match &document.sweep {
        Some(sweep) => sweep_figure::figure(sweep, &document.metrics, &document.groups, &comparisons, texts),
        None => crate::figure(&document.metrics, &document.groups, &comparisons, &texts),
    };
    vec![of_runs, by_time]
}
