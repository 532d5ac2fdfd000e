//! `schedviz compare`: what differs between groups of runs, and whether that is more than noise.

use crate::args::FORMATS;
use crate::document::{CompareDocument, Comparison, Judged};
use crate::header;
use crate::measure;
use crate::measures::{self, Measured};
use crate::notes::{differences, shared, without_elapsed};
use crate::{CompareArgs, ComparedRun, Group, Metric};
use anyhow::{Result, bail};
use question::{Question, Subcommand};
use session::args::{ReadArgs, WindowArgs, typed};
use session::formats::{Formats, OutputName, Renderings, json};
use session::section::ReportSection;
use session::{groups, several, verdict, warnings};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use timeline::Sheet;

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
    const SECTION: Option<&'static str> = Some(Self::NAME);

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
        vec![question::schema::<CompareDocument>("schedviz/compare/2")]
    }
}

/// Measures all runs, compares their groups, and judges the limits.
pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode> {
    args.output.check(FORMATS)?;
    let (document, all) = compared(args)?;
    let forms = Renderings::told(|| document.text(args.markdown), |sheet| Ok(document.figures(&all, sheet)));
    args.output.give(&OutputName::whole(Path::new("runs")), "compare", &document, forms, args.read.quiet)?;
    // One group against another needs no name.
    let subject = |judged: &Judged| match document.comparisons.len() {
        1 => judged.metric.to_owned(),
        _ => format!("{}: {}", judged.group, judged.metric),
    };
    let subjects: Vec<String> = document.verdicts.iter().map(subject).collect();
    let verdicts = document.verdicts.iter().map(|judged| &judged.verdict);
    Ok(verdict::report(subjects.iter().map(String::as_str).zip(verdicts)))
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
    let figures = document.figures(&all, sheet);
    let title = "The variants compared".to_owned();
    Ok(ReportSection { title, figures, text: document.text(args.markdown), json: json(&document)? })
}

/// A group, with its runs.
type Measurements = Vec<(String, Vec<Measured>)>;

/// Measures all runs and compares their groups.
fn compared(args: &CompareArgs) -> Result<(CompareDocument, Measurements)> {
    let folder = args.folder.as_deref().map(folder).transpose()?;
    let mut found = measures::metrics();
    if folder.as_ref().is_some_and(|folder| !folder.metrics.is_empty()) {
        found.insert(0, measures::own_metric());
    }
    let metrics: Vec<Metric> = found.iter().map(|(metric, _)| metric.clone()).collect();
    if let Some(limit) = args.fail_if.iter().find(|limit| metrics.iter().all(|metric| metric.key != limit.metric)) {
        bail!("--fail-if: the recordings have no metric {:?}", limit.metric);
    }
    let (mut all, mut notes): (Measurements, _) = (Vec::new(), Vec::new());
    let (files, own) = match folder {
        Some(folder) => (folder.groups, folder.metrics),
        None => (files(args)?, HashMap::new()),
    };
    let paths: Vec<&Path> = files.iter().flat_map(|(_, paths)| paths).map(PathBuf::as_path).collect();
    let named: Vec<(&Path, String)> = paths.iter().copied().zip(groups::names(&paths)).collect();
    let mut measured = several::measured(&named, &args.read, |(path, name), read| {
        let run = measure::measure(path, read, args)?;
        warnings::warn_of(Some(name), &run.diagnostics, read);
        Ok(Measured { name: name.clone(), own: own.get(*path).copied(), ..run })
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
    let Some((first, others)) = groups.split_first().filter(|(_, others)| !others.is_empty()) else {
        bail!("one group has nothing to be compared with: give --base and --new, or two of --group");
    };
    let comparisons: Vec<Comparison> =
        others.iter().map(|new| Comparison::of(&metrics, first, new, args.alpha)).collect();
    let verdicts =
        comparisons.iter().flat_map(|c| args.fail_if.iter().map(|limit| Judged::of(limit, c, args.alpha))).collect();
    let document = CompareDocument {
        schema: "schedviz/compare/2",
        alpha: args.alpha,
        machine: header::facts(&all),
        metrics: metrics.clone(),
        groups: groups.clone(),
        comparisons,
        notes,
        verdicts,
    };
    Ok((document, all))
}

/// The runs of a folder.
fn folder(path: &Path) -> Result<groups::Folder> {
    let Some(folder) = groups::Folder::open(path)? else {
        bail!("{} is not a folder of schedviz record --runs; name files with --base and --new", path.display());
    };
    Ok(folder)
}

/// The files of each group, the base first.
fn files(args: &CompareArgs) -> Result<Vec<(String, Vec<PathBuf>)>> {
    let mut all = Vec::new();
    for (name, files) in [("base", &args.base), ("new", &args.new)] {
        if !files.is_empty() {
            all.push((name.to_owned(), groups::expand(files.iter().map(String::as_str), &format!("--{name}"))?));
        }
    }
    for group in &args.group {
        all.push(group.members()?);
    }
    Ok(all)
}
