//! `schedviz whatif`: the work of a trace under other policies.

use crate::args::{FORMATS, WhatifArgs};
use crate::document::{SCHEMA, WhatifDocument, WhatifRun};
use crate::engine::Costs;
use crate::figure::DrawnRun;
use crate::measures::{RunFigures, measures};
use crate::model::Model;
use crate::of_trace::{measured_options, predicted};
use crate::predict::Assumed;
use crate::report::Prediction;
use crate::runs::predictions_of_groups;
use crate::saved::{other_policy, refuse_unpredictable, save};
use crate::simulated::SimulatedRun;
use crate::{figure, of_trace, skill, text};
use anyhow::{Result, bail};
use draw::Figure;
use lanes::{Coloring, Timeline};
use question::{Question, Subcommand};
use sched::{EventSource, Judgement, Pass, Ts, Verdict};
use session::Session;
use session::args::{BeginArgs, ReadArgs};
use session::formats::{Formats, OutputName, Renderings};
use session::heading::doubts;
use session::section::MaybeSection;
use session::{ext, groups, several, warnings};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use timeline::Sheet;
use workcons::Options;

/// The work of a trace under other policies.
#[derive(Debug)]
pub struct WhatifQuestion;

impl Subcommand for WhatifQuestion {
    const NAME: &'static str = "whatif";
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("Would another policy have been faster on this load?", "TRACE"));
    type Args = WhatifArgs;

    fn run(args: &WhatifArgs) -> Result<ExitCode> {
        run(args)
    }
}

impl Question for WhatifQuestion {
    const FORMATS: Formats = FORMATS;
    const IN_REPORT: bool = true;

    fn section(session: &Session) -> MaybeSection<'_> {
        of_trace::section(session)
    }

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<WhatifDocument>(SCHEMA)]
    }
}

/// The recordings to predict from, each with its group.
fn files(args: &WhatifArgs) -> Result<Vec<(Option<String>, PathBuf)>> {
    if args.predict_from.is_empty() {
        return groups::files(&args.traces, &args.group);
    }
    let files = groups::expand(args.predict_from.iter().map(String::as_str), "--predict-from")?;
    Ok(files.into_iter().map(|path| (None, path)).collect())
}

fn run(args: &WhatifArgs) -> Result<ExitCode> {
    args.output.check(FORMATS)?;
    let files = files(args)?;
    let (runs, kept) = predicted_runs(args, &files)?;
    let measured = groups::expand(args.measured.iter().map(String::as_str), "--measured")?;
    let measured = several::measured(&measured, &args.read, |path, read| measured_run(args, path, read))?;
    let predictions: Vec<&Prediction> = runs.iter().map(|run| &run.prediction).collect();
    let skill = skill::skills(&predictions, &measured);
    let of_runs: Vec<_> = runs.iter().map(|run| (run.group.as_deref(), &run.prediction)).collect();
    let document = WhatifDocument { schema: SCHEMA, groups: predictions_of_groups(&of_runs), runs, skill };
    let figure = |sheet: &Sheet| match (&kept, document.runs.as_slice()) {
        (Some(kept), [run]) => Ok(vec![drawn(args, kept, run, sheet)?]),
        _ => bail!("the figure shows one run; give a single trace"),
    };
    let first = files.first().map_or(Path::new("whatif"), |(_, path)| path);
    let origin = kept.as_ref().map_or_else(|| OutputName::whole(first), |kept| kept.session.origin());
    let ext = ext::head(document.runs.iter().map(|run| (run.trace.as_str(), run.sched_ext.as_ref())));
    let doubts = match document.runs.as_slice() {
        [run] => doubts(None, &run.trust),
        _ => None,
    };
    let head = doubts.into_iter().chain(ext).collect();
    let forms = Renderings::told(|| text::text(&document, args.rows), figure).headed(head);
    args.output.give(&origin, "whatif", &document, forms, args.read.quiet)?;
    if let Some(path) = &args.as_trace {
        match (&kept, document.runs.as_slice()) {
            // The exit status has the refusal of one that is not predictable.
            (Some(kept), [run]) if run.prediction.calibration.is_predictable => {
                let policy = other_policy(args, &kept.session);
                save(args, &kept.session, (&kept.model, kept.costs), policy, path)?;
                let shown = [args.traces.first(), Some(path)].into_iter().flatten();
                let shown: Vec<_> = shown.map(|path| path.display().to_string()).collect();
                args.read.message(&format!("{policy}: {}; both: schedviz view {}", path.display(), shown.join(" ")));
            }
            (Some(_), _) => {}
            (None, _) => bail!("--as-trace writes one run; give a single trace"),
        }
    }
    // With several runs one prediction is an answer.
    let unpredictable = document.runs.iter().filter(|run| !run.prediction.calibration.is_predictable);
    let verdict = |run: &WhatifRun| {
        let reasons = run.prediction.calibration.reasons.join("; ");
        Verdict::new(Judgement::Untrusted, format!("not predictable from this trace: {reasons}"))
    };
    let verdicts: Vec<(&str, Verdict)> = unpredictable.map(|run| (&*run.trace, verdict(run))).collect();
    let status = session::verdict::report(verdicts.iter().map(|(name, verdict)| (*name, verdict)));
    Ok(if verdicts.len() == document.runs.len() { status } else { ExitCode::SUCCESS })
}

/// An opened trace with its model, for a figure.
struct Kept {
    session: Session,
    model: Model,
    costs: Costs,
}

/// Predicts from each of the recordings; a single one is kept open.
fn predicted_runs(args: &WhatifArgs, files: &[(Option<String>, PathBuf)]) -> Result<(Vec<WhatifRun>, Option<Kept>)> {
    let names = groups::names(&files.iter().map(|(_, path)| path.as_path()).collect::<Vec<_>>());
    let named: Vec<_> = files.iter().zip(names).collect();
    let runs = several::measured(&named, &args.read, |((group, path), name), read| {
        let session = Session::open(path, read, &args.window)?;
        let (run, model, costs) = predicted(args, &session, Model::most_turns_of(std::fs::metadata(path)?.len()))?;
        let run = WhatifRun { trace: name.clone(), group: group.clone(), ..run };
        warnings::warn_of((files.len() > 1).then_some(name), &run.trust, read);
        Ok((run, (files.len() == 1).then_some(Kept { session, model, costs })))
    })?;
    let (runs, kept): (Vec<WhatifRun>, Vec<Option<Kept>>) = runs.into_iter().unzip();
    let runs = groups::distinct(runs, |run| (run.group.as_ref(), run.recording, &run.trace), &args.read);
    Ok((runs, kept.into_iter().flatten().next()))
}

/// Draws the run as it was, and as it would have been under the first policy that is not the trace's own.
fn drawn(args: &WhatifArgs, kept: &Kept, run: &WhatifRun, sheet: &Sheet) -> Result<Figure> {
    let Kept { session, model, costs } = kept;
    let policy = other_policy(args, session);
    let heading = session.general_heading(&run.trust).on(sheet);
    refuse_unpredictable(session, &run.prediction.calibration.reasons)?;
    let coloring = session.learned(Coloring { by: session.usual_color(), ..Coloring::default() })?;
    let title = |name: &str, figures: &RunFigures| {
        let share = 100.0 * figures.violation_ns.0 as f64 / (figures.window_ns.0 as f64).max(1.0);
        format!("{name}: {}, work conservation violated {share:.1} % of the time", figures.elapsed_ns.human())
    };
    let picture = |to: Ts| {
        let mut options = lanes::Options { pictures: 2, ..session.lanes(session.from, to, coloring.clone()) };
        session.join_lanes(&mut options);
        (options, Options { strips: Some((session.from, to)), ..measured_options(session) })
    };
    let (options, measured) = picture(session.to);
    let analysis = || (Timeline::new(&options), measures(&measured));
    let outcome = session.follow(&BeginArgs::default(), session.window, analysis)?;
    let (lanes, mut reports) = outcome.output;
    let (strips, shown) = (std::mem::take(&mut reports.1.strips), title("as it was", &RunFigures::of(&reports)));
    let before = DrawnRun { title: shown, end: session.to, lanes, options, strips };

    let usual = Assumed::usual(args.queue);
    let engine = usual.engine(&session.topology, if policy.is_free() { Costs::default() } else { *costs });
    let make = || policy.policy();
    let mut source = SimulatedRun::new(model, &make, engine);
    let end = source.extent().map_or_else(|never| match never {}, |extent| extent.end);
    let (options, measured) = picture(end);
    let analysis = || (Timeline::new(&options), measures(&measured));
    let outcome = Pass::over(&mut source).run(analysis).unwrap_or_else(|never| match never {});
    let (lanes, mut reports) = outcome.output;
    let (strips, shown) =
        (std::mem::take(&mut reports.1.strips), title(&policy.to_string(), &RunFigures::of(&reports)));
    let after = DrawnRun { title: shown, end, lanes, options, strips };
    let title = format!("{}: as it was, and with {policy}", heading.trace);
    Ok(figure::figure(&[before, after], (session.from, session.start), &heading, title))
}

/// Measures a run of the other variant.
fn measured_run(args: &WhatifArgs, path: &Path, read: &ReadArgs) -> Result<RunFigures> {
    let session = Session::open(path, read, &args.window)?;
    let options = measured_options(&session);
    let outcome = session.follow(&BeginArgs::default(), session.window, || measures(&options))?;
    Ok(RunFigures::of(&outcome.output))
}
