//! The prediction from one trace: its model, its calibration, the policies, and the curves of its causes.

use crate::args::WhatifArgs;
use crate::builder::{BuildOptions, Context, ModelBuilder};
use crate::document::{SCHEMA, WhatifDocument, WhatifRun};
use crate::engine::Costs;
use crate::measures::{RunFigures, measures};
use crate::model::Model;
use crate::near_idle::NearIdle;
use crate::policy::PolicyName;
use crate::predict::{PredictOptions, predict};
use crate::timers::{CLOCK_SLEEP, TimerPlaces};
use crate::unfit::Unfit;
use crate::until_cut::UntilCut;
use crate::without::{CauseCurve, ViolatingWait};
use crate::{costs, text, without};
use anyhow::{Context as _, Result, bail};
use events::Cost;
use parse::Trace;
use path::{CriticalPath, Path};
use sched::seeded::SeededMap;
use sched::topology::{CpuOrder, Distance, parse_cpu_list};
use sched::{ChosenCpus, Cpu, CpuSet, Dur, QueuedAsk, QueuedSums, TaskFilter, Tracepoint};
use session::args::BeginArgs;
use session::formats::json;
use session::section::{MaybeSection, ReportSection, Unanswered, listed, part};
use session::{Session, warnings};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path as FilePath;
use std::sync::Mutex;
use why::{Cases, ListedCase, WaitEnd, WaitOrigin, Why};
use workcons::Options;

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

/// The isolated CPUs by the machine file, and all CPUs of the machine.
fn isolated(session: &Session) -> (CpuSet, CpuSet) {
    let listed = session.machine.as_ref().and_then(|machine| machine.cpus.isolated.as_deref());
    let isolated = listed.and_then(parse_cpu_list).unwrap_or_default();
    let machine = (0..session.trace.info().cpus.min(Cpu::LIMIT)).map(Cpu);
    (isolated.into_iter().collect(), machine.collect())
}

/// Returns the facts of a session that its model depends on, for tasks that change their state at most so many times.
pub fn build_options(session: &Session, most_turns: u64) -> BuildOptions<'_> {
    let (isolated, machine) = isolated(session);
    let TimerPlaces { absolute, set_absolute } = TimerPlaces::of(session, most_turns);
    let tunables = session.machine.as_ref().map(|machine| &machine.scheduler.tunables);
    BuildOptions {
        topology: session.topology.clone(),
        affinity: session.affinity.as_deref(),
        isolated,
        machine,
        contexts: contexts(&session.trace),
        absolute,
        set_absolute,
        spins: None,
        base_slice: tunables.and_then(|tunables| tunables.get("base_slice_ns")?.parse().ok()).map(Dur),
        most_turns: Some(most_turns),
    }
}

/// The policies that are predicted: those that are named, else the usual ones.
pub(crate) fn asked_policies(args: &WhatifArgs, session: &Session) -> Vec<PolicyName> {
    if !args.policy.is_empty() {
        return args.policies().collect();
    }
    let near = session.topology.has_groups(CpuOrder::Llc).then_some(PolicyName::Steal(Some(Distance::Llc)));
    let others = [PolicyName::Steal(Some(Distance::Machine)), PolicyName::Ideal];
    std::iter::once(PolicyName::Observed).chain(near).chain(others).collect()
}

/// The options by which a trace and the runs of its model are measured.
pub(crate) fn measured_options(session: &Session) -> Options<'_> {
    Options { strips: None, throttling: false, ..Options::plain(session) }
}

/// Maximum number of times that tasks change their state in a report's section: each of its ten simulations takes some 0.2 s then, and
/// the model 20 MB.
const MOST_TURNS_OF_A_SECTION: u64 = 1 << 18;

/// Predicts from one trace, in which tasks change their state at most so many times.
pub(crate) fn predicted(args: &WhatifArgs, session: &Session, most_turns: u64) -> Result<(WhatifRun, Model, Costs)> {
    let policies = asked_policies(args, session);
    let near =
        [Distance::Smt, Distance::Cluster, Distance::Llc, Distance::Node].map(|within| PolicyName::Steal(Some(within)));
    if session.topology.is_empty() && policies.iter().any(|policy| near.contains(policy)) {
        bail!(
            "{}: steal=core, steal=cluster, steal=llc and steal=node need the places of the CPUs; add --topology",
            session.name()
        );
    }
    if args.newidle_cost.len() > 2 {
        bail!("--newidle-cost has two times: of the smallest scheduling domain, and of all");
    }
    let needs_cost = policies.iter().any(|policy| policy.has_new_idle());
    let new_idle = costs::new_idle(&args.newidle_cost, session.machine.as_ref()).filter(|_| needs_cost);
    if needs_cost && new_idle.is_none() {
        bail!(
            "{}: newidle needs the time that new-idle balancing takes: a machine file of schedviz record has it, or give --newidle-cost 3us,20us \
             (max_newidle_lb_cost below /sys/kernel/debug/sched/domains of that machine)",
            session.name()
        );
    }
    let measured = measured_options(session);
    let spins = args.spins.clone().map(|tasks| TaskFilter { tasks: Some(tasks), ..TaskFilter::default() });
    let build = BuildOptions { spins, ..build_options(session, most_turns) };
    let analysis = || {
        let path = CriticalPath::new(path::Options { zero: session.start, ..Default::default() });
        let path = path.with_affinity(session.affinity.clone());
        let ask = QueuedAsk { tasks: None, cpus: ChosenCpus::default(), affinity: session.affinity.clone() };
        let others = (QueuedSums::new(ask), measures(&measured), path, Cost::new(&session.topology));
        UntilCut::new(ModelBuilder::new(&build), others)
    };
    let outcome = session.follow(&BeginArgs::default(), session.window, analysis)?;
    let Some((model, (queued, reports, path, cost_rows))) = outcome.output else {
        let most = warnings::grouped(most_turns);
        let alone = if most_turns == MOST_TURNS_OF_A_SECTION { ", or ask schedviz whatif" } else { "" };
        let why = format!("tasks change their state more than {most} times; choose a part with --min and --max{alone}");
        return Err(Unanswered(why)).with_context(|| session.name());
    };
    let trace = RunFigures::of(&reports);
    let measured_costs = costs::of_rows(&cost_rows);
    let options = PredictOptions {
        policies,
        order: args.queue,
        costs: costs::costs([args.steal_cost, args.migration_cost, args.node_migration_cost], measured_costs, new_idle),
        topology: &session.topology,
        measured: &measured,
        unfit: Unfit::of(session, &outcome.diagnostics, model.switches),
        cpus: session.trace.info().cpus,
        near_idle_ns: near_idle(session, &path)?,
        queued,
    };
    let given = [args.migration_cost, args.node_migration_cost];
    let is_measured = |at: usize| given[at].is_none() && measured_costs[at].is_some();
    let run = WhatifRun {
        trace: session.name(),
        group: None,
        kernel: session.trace.info().kernel,
        sched_ext: session.sched_ext.clone(),
        from_ns: session.from,
        to_ns: session.to,
        prediction: session.waiting("simulating", || predict(&model, &trace, Some(&path), &options)),
        measured_costs: [is_measured(0), is_measured(1)],
        without: without(args, session, &model)?,
        trust: outcome.diagnostics,
        nodes: session.topology.nodes(),
        recording: session.recording(),
    };
    Ok((run, model, options.costs))
}

/// Prepares the section of a report: the prediction of the usual policies, without its figure.
pub(crate) fn section(session: &Session) -> MaybeSection<'_> {
    let args = WhatifArgs::usual(session.path())?;
    Ok(Some(part(args, move |args| {
        // A model is large, and so is what the pass of all sections follows: it is made behind that, by itself.
        listed(
            || (),
            move |(), page| {
                let (run, ..) = predicted(args, page.session, MOST_TURNS_OF_A_SECTION)?;
                let calibration = &run.prediction.calibration;
                if !calibration.is_predictable && run.prediction.bound.is_none() {
                    let why = [calibration.reasons.as_slice(), &calibration.advice].concat();
                    return Err(Unanswered::because(format!("not predictable: {}", why.join("; "))));
                }
                let document =
                    WhatifDocument { schema: SCHEMA, runs: vec![run], groups: Vec::new(), skill: Vec::new() };
                Ok(ReportSection {
                    title: "The same work under other policies".to_owned(),
                    figures: Vec::new(),
                    text: text::text(&document, args.rows),
                    json: json(&document)?,
                })
            },
        )
    })))
}

/// The queued time on a path beside idle CPUs under the same cache, in nanoseconds; nothing where the caches are not known.
fn near_idle(session: &Session, path: &Path) -> Result<Option<u64>> {
    if !session.topology.has_groups(CpuOrder::Llc) || path.times.queued_beside_idle_ns == 0 {
        return Ok(session.topology.has_groups(CpuOrder::Llc).then_some(0));
    }
    let analysis = || NearIdle::new(path, &session.topology);
    Ok(Some(session.follow(&BeginArgs::default(), session.window, analysis)?.output))
}

/// Passes each wait in violation to `each`, under the options by which the trace is measured. A pass that is repeated passes its waits again.
fn violating(session: &Session, each: &(dyn Fn(&ListedCase<WaitOrigin, WaitEnd>) + Sync)) -> Result<()> {
    let wait = |case: &ListedCase<WaitOrigin, WaitEnd>| {
        if case.violated_ns > 0 {
            each(case);
        }
    };
    let cases = Cases { wait: &wait, stretch: &|_| {} };
    let measured = measured_options(session);
    session.follow(&BeginArgs::default(), session.window, || Why::new(&measured).listing(&cases)).map(drop)
}

/// Passes the origin of each wait in violation of a trace to `found` as soon as its wait is over: the values of `--without`, for completions.
pub fn origins(trace: &FilePath, found: &(dyn Fn(&'static str) + Sync)) -> Result<()> {
    let mut args = WhatifArgs::usual(trace)?;
    args.read.quiet = true;
    let session = Session::open(trace, &args.read, &args.window)?;
    violating(&session, &|case| found(case.origin.word()))
}

/// The curves of the origins that are asked for.
fn without(args: &WhatifArgs, session: &Session, model: &Model) -> Result<Vec<CauseCurve>> {
    let Some(named) = &args.without else { return Ok(Vec::new()) };
    let waits = Mutex::new(BTreeMap::new());
    violating(session, &|case| {
        let ListedCase { pid, start, end, violated_ns, .. } = *case;
        let wait = ViolatingWait { pid, start, end, origin: case.origin.word(), violated_ns };
        if let Ok(mut waits) = waits.lock() {
            waits.insert((pid, start, end), wait);
        }
    })?;
    let waits: Vec<ViolatingWait> = waits.lock().map_or(Vec::new(), |waits| waits.values().copied().collect());
    let curves = without::curves(model, &waits, Some(&**named).filter(|named| !named.is_empty()));
    if curves.is_empty() && !named.is_empty() {
        let known: BTreeSet<&str> = waits.iter().map(|wait| wait.origin).collect();
        let known: Vec<&str> = known.into_iter().collect();
        bail!("--without: no wait in violation began so; there are {}", known.join(", "));
    }
    Ok(curves)
}
