//! The question of `schedviz fairness`: how evenly CPU time is shared.

use crate::args::FORMATS;
use crate::{Fairness, FairnessArgs, FairnessReport, GroupBy, MOST_INTERVALS, Options, figure, shares, table, text};
use anyhow::{Result, bail};
use draw::Figure;
use question::{SharedArgs, TaskQuestion};
use sched::{Chosen, Diagnostics, Dur, Joined, WithQueued};
use session::Session;
use session::formats::Formats;
use session::section::Unanswered;
use std::io::Write;
use timeline::page::Heading;
use timeline::scale::round_step;
use timeline::text::{Detail, paragraph};

/// How evenly CPU time is shared, and which tasks starve.
#[derive(Debug)]
pub struct FairnessQuestion;

/// The reason why there is nothing on some CPUs.
const OF_TASKS: &str = "fairness is of tasks, wherever they run: it does not take --cpus";

impl TaskQuestion for FairnessQuestion {
    const NAME: &'static str = "fairness";
    const TITLE: &'static str = "Fairness";
    const SCHEMA: &'static str = crate::report::SCHEMA;
    const FORMATS: Formats = FORMATS;
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("Did every task get its share, and which starved?", "TRACE"));
    const IS_KEPT: bool = true;
    const NAMES_APPLICATION: bool = true;

    type Args = FairnessArgs;
    type Options<'o> = Options<'o>;
    type Report = FairnessReport;

    fn shared(args: &FairnessArgs) -> &SharedArgs {
        &args.shared
    }

    fn check(args: &FairnessArgs) -> Result<()> {
        args.shared.begin.without_descent(matches!(args.group_by, GroupBy::Parent), "--by parent")
    }

    fn options<'o>(args: &'o FairnessArgs, session: &'o Session, tasks: Option<&'o Chosen<'o>>) -> Result<Options<'o>> {
        let Some(plain) = plain(session) else { bail!(OF_TASKS) };
        let interval = args.interval.unwrap_or(plain.interval);
        if session.to.since(session.from).0 / interval.0 > MOST_INTERVALS {
            bail!("--interval: {} makes more than {MOST_INTERVALS} intervals", interval.human());
        }
        let by = args.group_by.clone();
        let is_by_cgroup = matches!(by, GroupBy::Cgroup);
        let shares = is_by_cgroup.then(|| shares::measure(session, &args.shared.begin)).transpose()?;
        let groups = by.groups().map(|rule| session.task_groups(rule)).transpose()?;
        let deadlines = session.deadline_params();
        let weights = !args.equal;
        let queued = Some(session.queued(tasks));
        Ok(Options { by, groups, shares, deadlines, tasks, weights, interval, worst: args.worst, queued, ..plain })
    }

    fn of_section(session: &Session) -> Result<Options<'_>> {
        let plain = plain(session).ok_or_else(|| Unanswered::because(OF_TASKS))?;
        Ok(Options { queued: Some(session.queued(None)), ..plain })
    }

    fn analysis<'a, 'o: 'a>(options: &'a Options<'o>) -> impl Joined<Output = FairnessReport> + 'a {
        WithQueued::new(Fairness::new(options), options.queued.as_ref())
    }

    fn text(report: &FairnessReport, session: &Session, args: Option<&FairnessArgs>) -> String {
        let (rows, detail) = args.map_or((20, Detail::Full), |args| (args.rows, args.detail.detail()));
        let mut out = text(report, &session.drawable, rows, detail);
        if let Some(why) = session.why_no_wakeups() {
            let lead = "The waits are those of preempted tasks alone, and those behind sleeps are unknown";
            out.push('\n');
            paragraph(&mut out, 0, 2, &format!("{lead}: {why}."));
        }
        if let Some(shares) = report.shares.as_ref().filter(|_| report.selection_unknown.is_none()) {
            out.push('\n');
            out += &entitlement::text(shares, rows);
        }
        out
    }

    fn heading(session: &Session, report: &FairnessReport, diagnostics: &Diagnostics) -> Heading {
        session.general_heading(diagnostics).without_figures(report.selection_unknown.as_deref())
    }

    fn figures(report: &FairnessReport, _: &Options<'_>, heading: &Heading) -> Vec<Figure> {
        figure(report, heading)
    }

    fn table(report: &FairnessReport, out: &mut dyn Write) -> Result<()> {
        table::table(report, out)
    }
}

/// The options of all tasks of a session; nothing of some CPUs alone, since fairness is of tasks, wherever they run.
fn plain(session: &Session) -> Option<Options<'static>> {
    let Session { from, to, start: zero, .. } = *session;
    let interval = Dur(round_step(to.since(from).0 / 10));
    let fair_before = session.fair_before();
    session.shown.chosen.are_all().then(|| Options {
        zero,
        interval,
        fair_before,
        affinity: session.affinity.clone(),
        ..Options::new(from, to)
    })
}
