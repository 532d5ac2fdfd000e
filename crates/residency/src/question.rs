//! The question of `schedviz residency`: the caches under which tasks ran.

use crate::args::{FORMATS, ROWS};
use crate::{GroupedBy, Options, Residency, ResidencyArgs, ResidencyReport, figure, table, text};
use anyhow::{Result, bail};
use draw::Figure;
use membership::Processes;
use question::{SharedArgs, TaskQuestion};
use sched::topology::CpuOrder;
use sched::{Chosen, Diagnostics, Joined, Window};
use session::Session;
use session::args;
use session::formats::Formats;
use session::section::Unanswered;
use std::io::Write;
use timeline::page::Heading;

/// The last-level caches under which tasks ran.
#[derive(Debug)]
pub struct ResidencyQuestion;

impl TaskQuestion for ResidencyQuestion {
    const NAME: &'static str = "residency";
    const TITLE: &'static str = "Residency under last-level caches";
    const SCHEMA: &'static str = crate::report::SCHEMA;
    const FORMATS: Formats = FORMATS;
    const QUESTION: Option<(&'static str, &'static str)> = Some(("Did processes stay with their caches?", "TRACE"));

    type Args = ResidencyArgs;
    type Options<'o> = Options<'o>;
    type Report = ResidencyReport;

    fn shared(args: &ResidencyArgs) -> &SharedArgs {
        &args.shared
    }

    fn options<'o>(
        args: &'o ResidencyArgs,
        session: &'o Session,
        tasks: Option<&'o Chosen<'o>>,
    ) -> Result<Options<'o>> {
        if let Some(why) = without_caches(session) {
            bail!("{}: {why}", session.name());
        }
        Ok(Options { tasks, ..plain(session, args.by) })
    }

    fn of_section(session: &Session) -> Result<Options<'_>> {
        match without_caches(session) {
            None => Ok(plain(session, None)),
            Some(why) => Err(Unanswered::because(why)),
        }
    }

    fn window(session: &Session) -> Window {
        session.page()
    }

    fn analysis<'a, 'o: 'a>(options: &'a Options<'o>) -> impl Joined<Output = ResidencyReport> + 'a {
        Residency::new(options)
    }

    fn text(report: &ResidencyReport, session: &Session, args: Option<&ResidencyArgs>) -> String {
        text(report, &session.drawable, args.map_or(ROWS, |args| args.rows))
    }

    fn heading(session: &Session, report: &ResidencyReport, diagnostics: &Diagnostics) -> Heading {
        session.general_heading(diagnostics).without_figures(report.selection_unknown.as_deref())
    }

    fn figures(report: &ResidencyReport, options: &Options<'_>, heading: &Heading) -> Vec<Figure> {
        vec![figure(report, options, heading)]
    }

    fn table(report: &ResidencyReport, out: &mut dyn Write) -> Result<()> {
        table::table(report, out)
    }
}

/// The reason why there is no residency of any task: the caches of the CPUs are unknown.
fn without_caches(session: &Session) -> Option<String> {
    let is_known = [CpuOrder::Llc, CpuOrder::Node].into_iter().any(|order| session.topology.has_groups(order));
    let trace = args::shell_word(session.path().as_os_str());
    (!is_known).then(|| {
        format!(
            "the caches of its CPUs are unknown. On the machine of the recording: lscpu -e -J > cpus.json; then: \
             schedviz residency {trace} --topology cpus.json"
        )
    })
}

/// The options of all tasks of a session, by the processes where these are known unless another rule is asked for.
fn plain(session: &Session, by: Option<GroupedBy>) -> Options<'static> {
    let processes = match by {
        None | Some(GroupedBy::Process) => Processes::of(&session.trace, session.machine.as_ref()),
        _ => Processes::default(),
    };
    let by = by.unwrap_or(if processes.are_known() { GroupedBy::Process } else { GroupedBy::Command });
    Options {
        by,
        from: session.from,
        to: session.to,
        zero: session.start,
        cpus: session.shown.chosen.clone(),
        tasks: None,
        topology: session.topology.clone(),
        affinity: session.affinity.clone(),
        processes,
    }
}
