//! The question of `schedviz picks`: why the fair class picked each task.

use crate::args::FORMATS;
use crate::{Options, Picks, PicksArgs, PicksReport, figure, table, text};
use anyhow::Result;
use draw::Figure;
use question::{SharedArgs, TaskQuestion};
use sched::{Chosen, Diagnostics, Dur, Joined, Window};
use session::Session;
use session::ext::ExtScheduler;
use session::formats::Formats;
use session::section::Unanswered;
use std::io::Write;
use timeline::page::Heading;
use timeline::text::Detail;

/// The reasons of picks.
#[derive(Debug)]
pub struct PicksQuestion;

impl TaskQuestion for PicksQuestion {
    const NAME: &'static str = "picks";
    const TITLE: &'static str = "Picks";
    const SCHEMA: &'static str = crate::report::SCHEMA;
    const FORMATS: Formats = FORMATS;
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("Why did the scheduler pick this task, and how much is each one owed?", "TRACE"));

    type Args = PicksArgs;
    type Options<'o> = Options<'o>;
    type Report = PicksReport;

    fn shared(args: &PicksArgs) -> &SharedArgs {
        &args.shared
    }

    fn options<'o>(args: &'o PicksArgs, session: &'o Session, tasks: Option<&'o Chosen<'o>>) -> Result<Options<'o>> {
        let plain = Options::plain(session);
        let base_slice = args.base_slice.unwrap_or(plain.base_slice);
        let row_groups = args.by.groups().map(|rule| session.task_groups(rule)).transpose()?;
        Ok(Options { tasks, by: args.by, row_groups, base_slice, worst: args.worst, ..plain })
    }

    /// Returns options where the kernel's numbers were recorded: elsewhere reasons are possible ones alone.
    fn of_section(session: &Session) -> Result<Options<'_>> {
        let options = Options { worst: 20, ..Options::plain(session) };
        match &options.without_fair_class {
            Some(why) => Err(Unanswered::because(why)),
            None if options.by_probe => Ok(options),
            None => {
                Err(Unanswered::because("the kernel's numbers were not recorded: schedviz record --why=picks has them"))
            }
        }
    }

    /// By the switches alone a pick is one among the tasks that were woken: without wakeups none is known.
    fn unknowable(session: &Session) -> Option<String> {
        session.why_no_wakeups().filter(|_| !Options::plain(session).by_probe)
    }

    fn window(session: &Session) -> Window {
        session.window
    }

    fn analysis<'a, 'o: 'a>(options: &'a Options<'o>) -> impl Joined<Output = PicksReport> + 'a {
        Picks::new(options)
    }

    fn text(report: &PicksReport, session: &Session, args: Option<&PicksArgs>) -> String {
        let (rows, detail) = args.map_or((15, Detail::Full), |args| (args.rows, args.detail.detail()));
        text(report, &session.drawable, rows, detail)
    }

    fn heading(session: &Session, report: &PicksReport, diagnostics: &Diagnostics) -> Heading {
        let nothing = || (!crate::figure::has_lags(report)).then_some("no lag of a task beside a rival is known");
        let why = report.selection_unknown.as_deref().or_else(nothing);
        session.general_heading(diagnostics).without_figures(why)
    }

    fn figures(report: &PicksReport, _: &Options<'_>, heading: &Heading) -> Vec<Figure> {
        vec![figure(report, heading)]
    }

    fn table(report: &PicksReport, out: &mut dyn Write) -> Result<()> {
        table::table(report, out)
    }
}

/// The kernel from which on the fair class picks by EEVDF.
const EEVDF_SINCE: (u32, u32) = (6, 6);
/// The kernel from which on tasks that sleep can stay queued.
const DELAYS_SINCE: (u32, u32) = (6, 12);

/// The kernel's request of a task that has set none, on a machine with this number of CPUs (tunable scaling by the logarithm).
fn default_slice(cpus: u32) -> Dur {
    Dur(700_000 * u64::from(1 + cpus.clamp(1, 8).ilog2()))
}

/// The reason why no pick of the fair class is known where a sched_ext scheduler was loaded.
fn ext_in_place(ext: &ExtScheduler) -> String {
    let name = ext.scheduler.as_ref().map_or(String::new(), |name| format!(" ({name})"));
    format!("a sched_ext scheduler{name} was loaded, and no event shows which tasks were left to the fair class")
}

impl Options<'_> {
    /// Returns the options of all tasks of a session, without lists of picks.
    pub fn plain(session: &Session) -> Options<'static> {
        let info = session.trace.info();
        let release = session.kernel_release();
        let scheduler = session.machine.as_ref().map(|machine| &machine.scheduler);
        let feature = |name: &str, default: bool| {
            let features = scheduler.map(|scheduler| scheduler.features.as_slice()).unwrap_or_default();
            let is_on = features.iter().any(|feature| **feature == *name);
            let is_off = features.iter().any(|feature| feature.strip_prefix("NO_") == Some(name));
            if is_on || is_off { is_on } else { default }
        };
        let slice = scheduler.and_then(|scheduler| scheduler.tunables.get("base_slice_ns")?.parse().ok());
        // A file that does not have the number of CPUs has events of some: the machine has them at least.
        let seen = session.observed.last().map_or(0, |cpu| cpu.0.saturating_add(1));
        let machine = if info.cpus > 0 { info.cpus } else { seen };
        let since = |first: (u32, u32)| release.is_some_and(|release| release >= first);
        Options {
            cpus: session.shown.chosen.clone(),
            by_probe: session.trace.probe("pick").is_some() || session.trace.has_named("sv", "switch"),
            has_eevdf: since(EEVDF_SINCE),
            delays: since(DELAYS_SINCE) && feature("DELAY_DEQUEUE", true),
            prefers_buddy: feature("NEXT_BUDDY", false),
            protects_slices: feature("RUN_TO_PARITY", true),
            without_fair_class: session.sched_ext.as_ref().map(ext_in_place),
            base_slice: slice.map_or_else(|| default_slice(machine), Dur),
            zero: session.start,
            ..Options::default()
        }
    }
}
