//! The question of `schedviz neighbours`: the tasks that ran while others waited.

use crate::args::{FORMATS, ROWS};
use crate::pressure::{MeasuredPressure, PressureMeter};
use crate::{By, Matrix, NeighboursArgs, Options, PressureReport, figure, table, text, witness};
use anyhow::{Result, bail};
use membership::{Cgroups, Processes};
use question::{Question, SharedArgs, Subcommand};
use sched::{Analysis, Chosen, ChosenCpus, Joined, QueuedSums, Selected, Window};
use session::Session;
use session::document::TraceDocument;
use session::formats::{Formats, Renderings};
use session::section::{MaybeSection, ReportSection, Unanswered, listed, part};
use std::process::ExitCode;
use timeline::Sheet;

/// The tasks that ran while others waited on the same CPU.
#[derive(Debug)]
pub struct NeighboursQuestion;

impl Subcommand for NeighboursQuestion {
    const NAME: &'static str = "neighbours";
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("Which tasks ran while others waited on that CPU?", "TRACE"));
    type Args = NeighboursArgs;

    fn run(args: &NeighboursArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

impl Question for NeighboursQuestion {
    const FORMATS: Formats = FORMATS;
    const IN_REPORT: bool = true;

    fn section(session: &Session) -> MaybeSection<'_> {
        if let Some(why) = session.why_no_wakeups() {
            return Err(Unanswered(why).into());
        }
        Ok(Some(part(plain(session, None), move |options| {
            listed(
                move || (Matrix::new(options), pressure_of(options), QueuedSums::new(session.queued(None))),
                move |(mut report, pressure, queued), page| {
                    report.queued = queued;
                    if page.session.hides_throttling() {
                        report.hide_throttling();
                    }
                    report.pressure = pressure.map(|measured| beside_the_kernel(measured, page.session));
                    Ok(ReportSection {
                        title: "Neighbours".to_owned(),
                        figures: vec![figure(&report, ROWS, &page.heading())],
                        text: text(&report, &page.session.drawable, ROWS),
                        json: page.json(&report)?,
                    })
                },
            )
        })))
    }

    #[cfg(feature = "schema")]
    fn schemas() -> Vec<question::NamedSchema> {
        vec![question::schema::<TraceDocument<'static, crate::NeighboursReport>>(crate::report::SCHEMA)]
    }
}

fn run(args: &NeighboursArgs) -> Result<()> {
    let SharedArgs { trace, begin, tasks, output } = &args.shared;
    output.check(FORMATS)?;
    begin.without_descent(tasks.forked, "--forked")?;
    begin.without_descent(args.by == Some(By::Application), "--by application")?;
    let by_descent = tasks.forked || args.by == Some(By::Application);
    let session = trace.open()?.with_judged_command_if(by_descent)?;
    tasks.check(&session)?;
    let chosen = tasks.chooser(&session)?;
    let chosen = tasks.is_any().then_some(&chosen as &Chosen<'_>);
    let options = Options { tasks: chosen, ..plain(&session, args.by) };
    let by_application = options.by == By::Application;
    let analysis = || (Matrix::new(&options), Application { is_needed: by_application });
    let by_descent = tasks.forked;
    let selected = || Selected::new(chosen, by_descent);
    let queued = || QueuedSums::new(session.queued(chosen));
    let analyses = || (analysis(), selected(), pressure_of(&options), queued());
    let outcome = session.follow_in_pieces(begin, session.page(), analyses)?;
    let (((mut report, unknown), selection, pressure, queued), diagnostics) = (outcome.output, outcome.diagnostics);
    report.queued = queued;
    if session.hides_throttling() {
        report.hide_throttling();
    }
    if let Some(why) = unknown {
        bail!("--by application: {}", sched::without_application(why));
    }
    if let Some(why) = session.why_no_figures(selection, selected)? {
        sched::OfSelection::withhold(&mut report, why);
    }
    if let Some(why) = session.why_no_wakeups() {
        sched::OfSelection::withhold(&mut report, why);
    }
    let pressure = pressure.filter(|_| report.selection_unknown.is_none());
    report.pressure = pressure.map(|measured| beside_the_kernel(measured, &session));
    let printed = || {
        let text = text(&report, &session.drawable, args.rows);
        if by_application { session.with_application(text) } else { text }
    };
    let drawn = |sheet: &Sheet| {
        let heading = session.general_heading(&diagnostics).without_figures(report.selection_unknown.as_deref());
        Ok(vec![figure(&report, args.rows, &heading.on(sheet))])
    };
    let document = TraceDocument::of(&session, &report, &diagnostics);
    let renderings = Renderings::told(printed, drawn).with_csv(|out| table::table(&report, out));
    document.give(NeighboursQuestion::NAME, &session, output, renderings)
}

/// The meter of pressure; none where the measurement is not, as the kernel's rule is, of all tasks on all CPUs.
fn pressure_of<'o>(options: &'o Options<'_>) -> Option<PressureMeter<'o>> {
    let is_of_all = options.tasks.is_none() && options.cpus == ChosenCpus::default();
    is_of_all.then(|| PressureMeter::new(&options.cgroups))
}

/// The pressure of the trace beside the kernel's own.
fn beside_the_kernel(measured: Vec<MeasuredPressure>, session: &Session) -> PressureReport {
    let length = session.to.since(session.from);
    witness::compare(measured, session.machine.as_ref(), length, why_not_the_kernel(session))
}

/// The reason why the kernel's figures do not span the window, if they do not.
fn why_not_the_kernel(session: &Session) -> Option<&'static str> {
    let is_part = session.trace.past().is_some() || session.window != Window::default();
    (is_part && session.machine.is_some()).then_some("they span the whole recording, of which this is a part")
}

/// Returns the options of all tasks of a session, with the cgroups and processes that they need; by cgroups where those are known, unless another rule
/// is asked for.
pub fn plain(session: &Session, by: Option<By>) -> Options<'static> {
    let machine = session.machine.as_ref();
    let needs_processes = !matches!(by, Some(By::Command | By::Application));
    let processes = if needs_processes { Processes::of(&session.trace, machine) } else { Processes::default() };
    let cgroups = match by {
        None | Some(By::Cgroup) => Cgroups::of(&session.trace, machine, &processes),
        _ => Cgroups::default(),
    };
    let by = by.unwrap_or(if cgroups.names().len() > 1 { By::Cgroup } else { By::Command });
    Options { by, cpus: session.shown.chosen.clone(), tasks: None, cgroups, processes }
}

/// An analysis that finds out why the application is unknown, if it is. The state at the end shows it.
struct Application {
    is_needed: bool,
}

impl Joined for Application {
    fn is_divisible(&self) -> bool {
        true
    }

    fn fits(&self, _: &Self) -> bool {
        true
    }
}

impl Analysis for Application {
    type Output = Option<&'static str>;

    fn finish(self, _: sched::Ts, state: &sched::SchedState) -> Option<&'static str> {
        state.why_application_is_unknown().filter(|_| self.is_needed)
    }
}
