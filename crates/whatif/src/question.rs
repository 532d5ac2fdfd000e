//! `schedviz whatif`: the work of a trace under other policies.

use crate::args::{FORMATS, WhatifArgs};
use crate::build::{BuildOptions, Context, ModelBuilder};
use crate::document::{SCHEMA, WhatifDocument, WhatifRun};
use crate::engine::Costs;
use crate::figure::DrawnRun;
use crate::measures::{RunFigures, measures};
use crate::model::Model;
use crate::policy::PolicyName;
use crate::predict::{Assumed, PredictOptions, predict};
use crate::report::Prediction;
use crate::saved::{other_policy, refuse_unpredictable, save};
use crate::simulated::SimulatedRun;
use crate::without::{CauseCurve, ViolatingWait};
use crate::{costs, figure, skill, text, without};
use anyhow::{Result, bail};
use critical_path::CriticalPath;
use draw::Figure;
use events::Cost;
use lanes::{Coloring, Timeline};
use question::{Question, Subcommand};
use sched::seeded::SeededMap;
use sched::topology::{CpuOrder, Distance};
use sched::{Cpu, EventSource, Judgement, Pass, TaskFilter, Tracepoint, Ts, Verdict};
use session::Session;
use session::args::{BeginArgs, ReadArgs};
use session::formats::{Formats, OutputName, Renderings};
use session::{groups, several, warnings};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use timeline::Sheet;
use tracedat::{Record, Trace};
use why::{Cases, ListedCase, WaitEnd, WaitOrigin, Why};
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
    ("syscalls", "sys_enter_nanosleep", Context::Asked),
    ("syscalls", CLOCK_SLEEP, Context::Asked),
];

fn contexts(trace: &Trace) -> SeededMap<u16, Context> {
    let interrupts = [(Tracepoint::IrqEntry, Context::Device), (Tracepoint::IrqExit, Context::Left)];
    let interrupts = interrupts.into_iter().map(|(tracepoint, context)| (trace.format_of(tracepoint), context));
    let others = CONTEXTS.into_iter().map(|(system, name, context)| (trace.format_named(system, name), context));
    interrupts.chain(others).filter_map(|(format, context)| Some((format?.id, context))).collect()
}

/// The call that asks for a sleep of a given length, or with the lowest bit of its flags until an absolute time.
const CLOCK_SLEEP: &str = "sys_enter_clock_nanosleep";

/// The places of the calls that ask for a sleep until an absolute time: at most as many as the model may have changes of states.
fn absolute_calls(trace: &Trace, file_bytes: u64) -> BTreeSet<(Ts, Cpu)> {
    let (mut calls, most) = (BTreeSet::new(), Model::most_turns_of(file_bytes));
    let Some(id) = trace.format_named("syscalls", CLOCK_SLEEP).map(|format| format.id) else { return calls };
    let mut take = |record: &Record<'_>| {
        if record.id() == id && record.number("flags").is_some_and(|flags| flags & 1 == 1) {
            calls.insert((record.ts, record.cpu));
        }
        match (calls.len() as u64).cmp(&most) {
            Ordering::Less => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    };
    // The pass reports the losses of a damaged file.
    let _ = trace.records(&mut take);
    calls
}

/// The policies that are predicted where none is named.
pub(crate) fn usual_policies(session: &Session) -> Vec<PolicyName> {
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
    let (runs, kept) = predicted_runs(args, &files)?;
    let measured = groups::expand(args.measured.iter().map(String::as_str), "--measured")?;
    let measured = several::measured(&measured, &args.read, |path, read| measured_run(args, path, read))?;
    let predictions: Vec<&Prediction> = runs.iter().map(|run| &run.prediction).collect();
    let skill = skill::skills(&predictions, &measured);
    let document = WhatifDocument { schema: SCHEMA, runs, skill };
    let figure = |sheet: &Sheet| match (&kept, document.runs.as_slice()) {
        (Some(kept), [run]) => Ok(vec![drawn(args, kept, run, sheet)?]),
        _ => bail!("the figure shows one run; give a single trace"),
    };
    let first = files.first().map_or(Path::new("whatif"), |(_, path)| path);
    let origin = kept.as_ref().map_or_else(|| OutputName::whole(first), |kept| kept.session.origin());
    let forms = Renderings::told(|| text::text(&document, args.rows), figure);
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
        let (run, model, costs) = predicted(args, &session, std::fs::metadata(path)?.len())?;
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
    let coloring = session.learned(Coloring::default())?;
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
pub(crate) fn predicted(args: &WhatifArgs, session: &Session, file_bytes: u64) -> Result<(WhatifRun, Model, Costs)> {
    let policies = if args.policy.is_empty() { usual_policies(session) } else { args.policy.clone() };
    let near =
        [Distance::Smt, Distance::Cluster, Distance::Llc, Distance::Node].map(|within| PolicyName::Steal(Some(within)));
    if session.topology.is_empty() && policies.iter().any(|policy| near.contains(policy)) {
        bail!(
            "{}: steal=core, steal=cluster, steal=llc and steal=node need the places of the CPUs; add --topology",
            session.name()
        );
    }
    let measured = measured_options(session);
    let affinity = session.affinity.as_deref();
    let spins = args.spins.clone().map(|tasks| TaskFilter { tasks: Some(tasks), ..TaskFilter::default() });
    let (topology, contexts) = (session.topology.clone(), contexts(&session.trace));
    let absolute = absolute_calls(&session.trace, file_bytes);
    let build = BuildOptions { topology, affinity, contexts, absolute, spins, file_bytes };
    let analysis = || {
        let path = CriticalPath::new(critical_path::Options { zero: session.start, ..Default::default() });
        (ModelBuilder::new(&build), measures(&measured), path, Cost::new(&session.topology))
    };
    let outcome = session.follow(&BeginArgs::default(), session.window, analysis)?;
    let (model, reports, path, cost_rows) = outcome.output;
    if model.is_cut() {
        let most = warnings::grouped(model.most_turns);
        bail!(
            "{}: tasks change their state more than {most} times; choose a part with --min and --max",
            session.name()
        );
    }
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
    let run = WhatifRun {
        trace: session.name(),
        group: None,
        kernel: session.trace.info().kernel,
        prediction: predict(&model, &trace, Some(&path), &options),
        measured_costs: [is_measured(0), is_measured(1)],
        without: without(args, session, &model)?,
        trust: outcome.diagnostics,
        recording: session.recording(),
    };
    Ok((run, model, options.costs))
}

/// The curves of the origins that are asked for.
fn without(args: &WhatifArgs, session: &Session, model: &Model) -> Result<Vec<CauseCurve>> {
    let Some(named) = &args.without else { return Ok(Vec::new()) };
    // A pass that is repeated lists its waits again.
    let waits = Mutex::new(BTreeMap::new());
    let wait = |case: &ListedCase<WaitOrigin, WaitEnd>| {
        let ListedCase { pid, start, end, violated_ns, .. } = *case;
        let wait = ViolatingWait { pid, start, end, origin: case.origin.word(), violated_ns };
        if violated_ns > 0
            && let Ok(mut waits) = waits.lock()
        {
            waits.insert((pid, start, end), wait);
        }
    };
    let cases = Cases { wait: &wait, stretch: &|_| {} };
    let measured = measured_options(session);
    let _ = session.follow(&BeginArgs::default(), session.window, || Why::new(&measured).listing(&cases))?;
    let waits: Vec<ViolatingWait> = waits.lock().map_or(Vec::new(), |waits| waits.values().copied().collect());
    let curves = without::curves(model, &waits, Some(&**named).filter(|named| !named.is_empty()));
    if curves.is_empty() && !named.is_empty() {
        let known: BTreeSet<&str> = waits.iter().map(|wait| wait.origin).collect();
        let known: Vec<&str> = known.into_iter().collect();
        bail!("--without: no wait in violation began so; there are {}", known.join(", "));
    }
    Ok(curves)
}
