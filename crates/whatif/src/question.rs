//! `schedviz whatif`: the work of a trace under other policies.

use crate::args::{FORMATS, WhatifArgs};
use crate::build::{BuildOptions, Context, ModelBuilder};
use crate::measures::{RunFigures, measures};
use crate::policy::PolicyName;
use crate::predict::{PredictOptions, predict};
use crate::report::Prediction;
use crate::{costs, text};
use anyhow::{Result, bail};
use critical_path::CriticalPath;
use events::Cost;
use question::{Question, Subcommand};
use sched::seeded::SeededMap;
use sched::topology::{CpuOrder, Distance};
use sched::{Judgement, Verdict};
use serde::Serialize;
use session::Session;
use session::args::BeginArgs;
use session::document::TraceDocument;
use session::formats::{Formats, Renderings};
use std::process::ExitCode;
use tracedat::Trace;
use workcons::Options;

/// The work of a trace under other policies.
#[derive(Debug)]
pub struct WhatifQuestion;

impl Subcommand for WhatifQuestion {
    const NAME: &'static str = "whatif";
    const FIRST_STEP: Option<(&'static str, &'static str)> = Some(("whatif trace.dat", "what stealing would have gained"));
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("What would another policy have done with this work?", "TRACE"));
    type Args = WhatifArgs;

    fn run(args: &WhatifArgs) -> Result<ExitCode> {
        run(args)
    }
}

impl Question for WhatifQuestion {
    const FORMATS: Formats = FORMATS;

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<TraceDocument<'static, WhatifReport>>(SCHEMA)]
    }
}

/// The name and version of the document's schema.
const SCHEMA: &str = "schedviz/whatif/1";

/// The report of `schedviz whatif`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhatifReport {
    /// The name and version of the schema, `schedviz/whatif/1`.
    schema: &'static str,
    /// The prediction from the trace.
    #[serde(flatten)]
    pub prediction: Prediction,
    /// Whether the cost of a migration within a node, and of one between nodes, was measured in this trace.
    pub measured_costs: [bool; 2],
}

/// The events that show the context of a wakeup.
const CONTEXTS: [(&str, &str, Context); 9] = [
    ("timer", "hrtimer_expire_entry", Context::Timer),
    ("timer", "hrtimer_expire_exit", Context::Left),
    ("timer", "timer_expire_entry", Context::Timer),
    ("timer", "timer_expire_exit", Context::Left),
    ("irq", "irq_handler_entry", Context::Device),
    ("irq", "irq_handler_exit", Context::Left),
    ("block", "block_rq_complete", Context::Device),
    ("syscalls", "sys_enter_timerfd_settime", Context::Absolute),
    ("syscalls", "sys_enter_clock_nanosleep", Context::Absolute),
];

fn contexts(trace: &Trace) -> SeededMap<u16, Context> {
    let known = |(system, name, context): &(&str, &str, Context)| Some((trace.format_named(system, name)?.id, *context));
    CONTEXTS.iter().filter_map(known).collect()
}

/// The policies that are predicted where none is named.
fn usual_policies(session: &Session) -> Vec<PolicyName> {
    let near = session.topology.has_groups(CpuOrder::Llc).then_some(PolicyName::Steal(Some(Distance::Llc)));
    let others = [PolicyName::Steal(Some(Distance::Machine)), PolicyName::Ideal];
    std::iter::once(PolicyName::Observed).chain(near).chain(others).collect()
}

fn run(args: &WhatifArgs) -> Result<ExitCode> {
    args.output.check(FORMATS)?;
    let files = args.runs.files()?;
    let [(_, path)] = files.as_slice() else { bail!("whatif takes a single trace") };
    let session = Session::open(path, &args.read, &args.window)?;
    let (report, diagnostics) = predicted(args, &session)?;
    let name = session.name();
    let document = TraceDocument::of(&session, &report, &diagnostics);
    document.give("whatif", &session, &args.output, Renderings::words(|| text::text(&report, &name, args.rows)))?;
    if report.prediction.calibration.is_predictable {
        return Ok(ExitCode::SUCCESS);
    }
    let reasons = report.prediction.calibration.reasons.join("; ");
    let verdict = Verdict::new(Judgement::Untrusted, format!("not predictable from this trace: {reasons}"));
    Ok(session::verdict::report([(&*name, &verdict)]))
}

/// Predicts from one trace.
fn predicted(args: &WhatifArgs, session: &Session) -> Result<(WhatifReport, sched::Diagnostics)> {
    let policies = if args.policy.is_empty() { usual_policies(session) } else { args.policy.clone() };
    let needs_llc = [Distance::Smt, Distance::Llc, Distance::Node].map(|within| PolicyName::Steal(Some(within)));
    if session.topology.is_empty() && policies.iter().any(|policy| needs_llc.contains(policy)) {
        bail!("{}: steal=core, steal=llc and steal=node need the places of the CPUs; add --topology", session.name());
    }
    let measured = Options { strips: None, ..Options::plain(session) };
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
    let prediction = predict(&model, &trace, Some(&path), &options);
    let is_measured = |given: bool, measured: Option<u64>| !given && measured.is_some();
    let report = WhatifReport {
        schema: SCHEMA,
        prediction,
        measured_costs: [
            is_measured(args.migration_cost.is_some(), measured_costs[0]),
            is_measured(args.node_migration_cost.is_some(), measured_costs[1]),
        ],
    };
    Ok((report, outcome.diagnostics))
}
