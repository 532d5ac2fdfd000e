//! `schedviz whatif`: the work of a trace under other policies.

use crate::args::{FORMATS, WhatifArgs};
use crate::build::{BuildOptions, Context, ModelBuilder};
use crate::document::{SCHEMA, WhatifDocument, WhatifRun};
use crate::measures::{RunFigures, measures};
use crate::policy::PolicyName;
use crate::predict::{PredictOptions, predict};
use crate::report::Prediction;
use crate::{costs, skill, text};
use anyhow::{Result, bail};
use critical_path::CriticalPath;
use events::Cost;
use question::{Question, Subcommand};
use sched::seeded::SeededMap;
use sched::topology::{CpuOrder, Distance};
use sched::{Judgement, Tracepoint, Verdict};
use session::Session;
use session::args::{BeginArgs, ReadArgs};
use session::formats::{Formats, OutputName, Renderings};
use session::{groups, several, warnings};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tracedat::Trace;
use workcons::Options;

/// The work of a trace under other policies.
#[derive(Debug)]
pub struct WhatifQuestion;

impl Subcommand for WhatifQuestion {
    const NAME: &'static str = "whatif";
    const FIRST_STEP: Option<(&'static str, &'static str)> =
        Some(("whatif trace.dat", "what stealing would have gained"));
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("Would another policy have been faster on this load?", "TRACE"));
    type Args = WhatifArgs;

    fn run(args: &WhatifArgs) -> Result<ExitCode> {
        run(args)
    }
}

impl Question for WhatifQuestion {
    const FORMATS: Formats = FORMATS;

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<WhatifDocument>(SCHEMA)]
    }
}

/// The events besides those of interrupts that show the context of a wakeup.
const CONTEXTS: [(&str, &str, Context); 7] = [
    ("timer", "hrtimer_expire_entry", Context::Timer),
    ("timer", "hrtimer_expire_exit", Context::Left),
    ("timer", "timer_expire_entry", Context::Timer),
    ("timer", "timer_expire_exit", Context::Left),
    ("block", "block_rq_complete", Context::Device),
    ("syscalls", "sys_enter_timerfd_settime", Context::Absolute),
    ("syscalls", "sys_enter_clock_nanosleep", Context::Absolute),
];

fn contexts(trace: &Trace) -> SeededMap<u16, Context> {
    let interrupts = [(Tracepoint::IrqEntry, Context::Device), (Tracepoint::IrqExit, Context::Left)];
    let interrupts = interrupts.into_iter().map(|(tracepoint, context)| (trace.format_of(tracepoint), context));
    let others = CONTEXTS.into_iter().map(|(system, name, context)| (trace.format_named(system, name), context));
    interrupts.chain(others).filter_map(|(format, context)| Some((format?.id, context))).collect()
}

/// The policies that are predicted where none is named.
fn usual_policies(session: &Session) -> Vec<PolicyName> {
    let near = session.topology.has_groups(CpuOrder::Llc).then_some(PolicyName::Steal(Some(Distance::Llc)));
    let others = [PolicyName::Steal(Some(Distance::Machine)), PolicyName::Ideal];
    std::iter::once(PolicyName::Observed).chain(near).chain(others).collect()
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
    let runs = predicted_runs(args, &files)?;
    let measured = groups::expand(args.measured.iter().map(String::as_str), "--measured")?;
    let measured = several::measured(&measured, &args.read, |path, read| measured_run(args, path, read))?;
    let predictions: Vec<&Prediction> = runs.iter().map(|run| &run.prediction).collect();
    let skill = skill::skills(&predictions, &measured);
    let document = WhatifDocument { schema: SCHEMA, runs, skill };
    let first = files.first().map_or(Path::new("whatif"), |(_, path)| path);
    let forms = Renderings::words(|| text::text(&document, args.rows));
    args.output.give(&OutputName::whole(first), "whatif", &document, forms, args.read.quiet)?;
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

/// Predicts from each of the recordings.
fn predicted_runs(args: &WhatifArgs, files: &[(Option<String>, PathBuf)]) -> Result<Vec<WhatifRun>> {
    let names = groups::names(&files.iter().map(|(_, path)| path.as_path()).collect::<Vec<_>>());
    let named: Vec<_> = files.iter().zip(names).collect();
    let runs = several::measured(&named, &args.read, |((group, path), name), read| {
        let session = Session::open(path, read, &args.window)?;
        let run = predicted(args, &session)?;
        let run = WhatifRun { trace: name.clone(), group: group.clone(), ..run };
        warnings::warn_of((files.len() > 1).then_some(name), &run.trust, read);
        Ok(run)
    })?;
    Ok(groups::distinct(runs, |run| (run.group.as_ref(), run.recording, &run.trace), &args.read))
}

/// The options by which a trace and the runs of its model are measured.
fn measured_options(session: &Session) -> Options<'_> {
    Options { strips: None, throttling: false, ..Options::plain(session) }
}

/// Measures a run of the other variant.
fn measured_run(args: &WhatifArgs, path: &Path, read: &ReadArgs) -> Result<RunFigures> {
    let session = Session::open(path, read, &args.window)?;
    let options = measured_options(&session);
    let outcome = session.follow(&BeginArgs::default(), session.window, || measures(&options))?;
    Ok(RunFigures::of(&outcome.output))
}

/// Predicts from one trace.
fn predicted(args: &WhatifArgs, session: &Session) -> Result<WhatifRun> {
    let policies = if args.policy.is_empty() { usual_policies(session) } else { args.policy.clone() };
    let near = [Distance::Smt, Distance::Llc, Distance::Node].map(|within| PolicyName::Steal(Some(within)));
    if session.topology.is_empty() && policies.iter().any(|policy| near.contains(policy)) {
        bail!("{}: steal=core, steal=llc and steal=node need the places of the CPUs; add --topology", session.name());
    }
    let measured = measured_options(session);
    let affinity = session.affinity.as_deref();
    let build = BuildOptions { topology: session.topology.clone(), affinity, contexts: contexts(&session.trace) };
    let analysis = || {
        let path = CriticalPath::new(critical_path::Options { zero: session.start, ..Default::default() });
        (ModelBuilder::new(&build), measures(&measured), path, Cost::new(&session.topology))
    };
    let outcome = session.follow(&BeginArgs::default(), session.window, analysis)?;
    let (model, reports, path, cost_rows) = outcome.output;
    let trace = RunFigures::of(&reports);
    let measured_costs = costs::of_rows(&cost_rows);
    let options = PredictOptions {
        policies,
        order: args.queue,
        costs: costs::costs([args.steal_cost, args.migration_cost, args.node_migration_cost], measured_costs),
        topology: &session.topology,
        measured: &measured,
    };
    let given = [args.migration_cost, args.node_migration_cost];
    let is_measured = |at: usize| given[at].is_none() && measured_costs[at].is_some();
    Ok(WhatifRun {
        trace: session.name(),
        group: None,
        kernel: session.trace.info().kernel,
        prediction: predict(&model, &trace, Some(&path), &options),
        measured_costs: [is_measured(0), is_measured(1)],
        trust: outcome.diagnostics,
        recording: session.recording(),
    })
}
