//! The measurement of a run, in one pass.

use crate::CompareArgs;
use crate::measures::{Measured, QueuedPath, Reports, RunOptions, conclude};
use anyhow::Result;
use contamination::Outsiders;
use sched::{Chosen, OfSelection, Pass, Selected};
use session::Session;
use session::args::ReadArgs;
use std::path::Path;

/// Measures a run. Violation and latency are those of the chosen tasks, everything else that of the CPUs.
pub(crate) fn measure(path: &Path, read: &ReadArgs, args: &CompareArgs) -> Result<Measured> {
    let session = Session::open(path, read, &args.window)?.with_judged_command()?;
    args.tasks.check(&session)?;
    let (chosen, excluded) = (args.tasks.chooser(&session)?, args.tasks.excluder());
    let tasks = args.tasks.is_any().then_some(&chosen as &Chosen<'_>);
    let plain = RunOptions::plain(&session);
    let options = RunOptions {
        workcons: workcons::Options {
            waiters: args.waiters.of(&args.tasks),
            application: args.tasks.chooses().then_some(&chosen),
            excluded: excluded.as_ref().map(|excluded| excluded as &Chosen<'_>),
            ..plain.workcons
        },
        latency: latency::Options { tasks, ..plain.latency },
        preemptions: preemptions::Options { tasks, ..plain.preemptions },
        picks: picks::Options { tasks, ..plain.picks },
        ..plain
    };
    let waiters = || Selected::new(options.workcons.application, args.waiters.depend_on_descent(&args.tasks));
    let selected = || Selected::new(tasks, args.tasks.forked);
    let recorded = path::recorded_command(&session);
    // Two states for two threads: a third would cost more than the columns do.
    let analyses = || {
        let (violation, reasons, waits) = options.analyses().parts();
        let path = path::searches(recorded, session.start, 0, session.affinity.as_ref());
        ((violation, reasons, waiters()), (waits, selected(), path, Outsiders::default()))
    };
    let outcome =
        session.watched(|| Pass::over(session.trace.events()?).window(session.window).run_side_by_side(analyses))?;
    let ((violation, reasons, of_waiters), (waits, of_tasks, mut paths, outside)) = outcome.output;
    let mut reports = Reports::of((violation, reasons, waits));
    let unknown = session.why_no_figures(of_waiters, waiters)?;
    unknown.iter().for_each(|why| reports.workcons.withhold(why.clone()));
    // A choice of tasks is the same for both: its message is printed once.
    let no_latency = if args.tasks.chooses() { unknown } else { session.why_no_figures(of_tasks, selected)? };
    no_latency.iter().for_each(|why| reports.latency.withhold(why.clone()));
    path::search_further(&session, session.window, &mut paths, 0)?;
    let queued = QueuedPath::of(&path::path_of_command(paths));
    let measured = conclude(&session, reports, outcome.diagnostics, args.max_loss);
    Ok(Measured { no_latency, queued, outside, ..measured }.without_lists())
}
