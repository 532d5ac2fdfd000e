//! The question of `schedviz residency`: the caches under which tasks ran.

use crate::args::FORMATS;
use crate::{GroupedBy, Options, Residency, ResidencyArgs, figure, table, text};
use anyhow::{Result, bail};
use membership::Processes;
use question::{Question, SharedArgs, Subcommand};
use sched::Chosen;
use sched::topology::CpuOrder;
use session::Session;
use session::args;
use session::document::TraceDocument;
use session::formats::{Formats, Renderings};
use std::process::ExitCode;
use timeline::Sheet;

/// The last-level caches under which tasks ran.
#[derive(Debug)]
pub struct ResidencyQuestion;

impl Subcommand for ResidencyQuestion {
    const NAME: &'static str = "residency";
    const QUESTION: Option<(&'static str, &'static str)> = Some(("Did processes stay with their caches?", "TRACE"));
    type Args = ResidencyArgs;

    fn run(args: &ResidencyArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

impl Question for ResidencyQuestion {
    const FORMATS: Formats = FORMATS;

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<TraceDocument<'static, crate::ResidencyReport>>(crate::report::SCHEMA)]
    }
}

fn run(args: &ResidencyArgs) -> Result<()> {
    let SharedArgs { trace, begin, tasks, output } = &args.shared;
    output.check(FORMATS)?;
    begin.without_descent(tasks.forked, "--forked")?;
    let session = trace.open()?;
    if !session.topology.has_groups(CpuOrder::Llc) && !session.topology.has_groups(CpuOrder::Node) {
        let trace = args::shell_word(session.path().as_os_str());
        bail!(
            "{}: the caches of its CPUs are unknown. On the machine of the recording: lscpu -e -J > cpus.json; then: \
             schedviz residency {trace} --topology cpus.json",
            session.name()
        );
    }
    tasks.check(&session)?;
    let chosen = tasks.chooser(&session)?;
    let chosen = tasks.is_any().then_some(&chosen as &Chosen<'_>);
    let options = options(args, &session, chosen);
    let analysis = || Residency::new(&options);
    let (report, diagnostics) = session.measured(begin, session.page(), chosen, tasks.forked, analysis)?;
    let printed = || text(&report, &session.drawable, args.rows);
    let drawn = |sheet: &Sheet| {
        let heading = session.general_heading(&diagnostics).without_figures(report.selection_unknown.as_deref());
        Ok(vec![figure(&report, &options, &heading.on(sheet))])
    };
    let document = TraceDocument::of(&session, &report, &diagnostics);
    let renderings = Renderings::told(printed, drawn).with_csv(|out| table::table(&report, out));
    document.give(ResidencyQuestion::NAME, &session, output, renderings)
}

/// The options by the arguments, with the processes if they need them.
fn options<'o>(args: &ResidencyArgs, session: &Session, tasks: Option<&'o Chosen<'o>>) -> Options<'o> {
    let processes = match args.by {
        None | Some(GroupedBy::Process) => Processes::of(&session.trace, session.machine.as_ref()),
        _ => Processes::default(),
    };
    let by = args.by.unwrap_or(if processes.are_known() { GroupedBy::Process } else { GroupedBy::Command });
    Options {
        by,
        from: session.from,
        to: session.to,
        zero: session.start,
        cpus: session.shown.chosen.clone(),
        tasks,
        topology: session.topology.clone(),
        processes,
    }
}
