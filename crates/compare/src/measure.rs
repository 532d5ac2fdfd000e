//! The measurement of a run, in one pass.

use crate::CompareArgs;
use crate::measures::{Measured, QueuedPath, Reports, conclude};
use anyhow::Result;
use contamination::Outsiders;
use latency::Latency;
use picks::Picks;
use preemptions::Preemptions;
use sched::{Chosen, OfSelection, Pass, Selected};
use schedstat::FromTrace;
use session::Session;
use session::args::ReadArgs;
use std::path::Path;
use why::{Probed, Why};
use workcons::WorkConservation;

/// Measures a run. Violation and latency are those of the chosen tasks, everything else that of the CPUs.
pub(crate) fn measure(path: &Path, read: &ReadArgs, args: &CompareArgs) -> Result<Measured> {
    let session = Session::open(path, read, &args.window)?.with_judged_command()?;
    args.tasks.check(&session)?;
    let (chosen, excluded) = (args.tasks.chooser(&session)?, args.tasks.excluder());
    let cpus = &session.shown.chosen;
    let conservation = workcons::Options {
        cpus: cpus.clone(),
        zero: session.start,
        waiters: args.waiters.of(&args.tasks),
        topology: session.topology.clone(),
        affinity: session.affinity.as_deref(),
        application: args.tasks.chooses().then_some(&chosen),
        excluded: excluded.as_ref().map(|excluded| excluded as &Chosen<'_>),
        ..Default::default()
    };
    let waits = latency::Options {
        cpus: cpus.clone(),
        tasks: args.tasks.is_any().then_some(&chosen),
        zero: session.start,
        topology: session.topology.clone(),
        ..Default::default()
    };
    let waiters = || Selected::new(conservation.application, args.waiters.depend_on_descent(&args.tasks));
    let tasks = || Selected::new(waits.tasks, args.tasks.forked);
    let (probed, recorded) = (Probed::of(&session), path::recorded_command(&session));
    let asked = preemptions::Options { tasks: waits.tasks, ..preemptions::Options::plain(&session) };
    let picked = picks::Options { tasks: waits.tasks, ..picks::Options::plain(&session) };
    // Two states for two threads: a third would cost more than the columns do.
    let analyses = || {
        let waits = (Latency::new(&waits), tasks());
        let why = Why::new(&conservation).with_probes(probed);
        let violation = (WorkConservation::new(&conservation), why, waiters());
        let path = path::searches(recorded, session.start, 0, session.affinity.as_ref());
        let asked = asked.by_probe.then(|| Preemptions::new(&asked));
        let picked = picked.by_probe.then(|| Picks::new(&picked));
        (violation, (waits, FromTrace::only(cpus.clone()), path, (Outsiders::default(), asked, picked)))
    };
    let outcome =
        session.watched(|| Pass::over(session.trace.events()?).window(session.window).run_side_by_side(analyses))?;
    let ((mut workcons, reasons, of_waiters), ((mut latency, of_tasks), columns, paths, of_run)) = outcome.output;
    let (outside, preemptions, picks) = of_run;
    let unknown = session.why_no_figures(of_waiters, waiters)?;
    unknown.iter().for_each(|why| workcons.withhold(why.clone()));
    // A choice of tasks is the same for both: its message is printed once.
    let no_latency = if args.tasks.chooses() { unknown } else { session.why_no_figures(of_tasks, tasks)? };
    no_latency.iter().for_each(|why| latency.withhold(why.clone()));
    let reports = Reports { workcons, reasons, latency, columns, diagnostics: outcome.diagnostics };
    let queued = queued(&path::path_of_command(paths));
    let measured =
        Measured { no_latency, queued, outside, preemptions, picks, ..conclude(&session, reports, args.max_loss) };
    Ok(measured.without_lists())
}

/// The queued time on a path that is to be trusted.
fn queued(path: &path::Path) -> Option<QueuedPath> {
    path.task.filter(|_| !path.is_untrusted)?;
    Some(QueuedPath {
        length_ns: path.to_ns.since(path.from_ns).0,
        queued_ns: path.times.queued_ns,
        kinds: path.times.kinds(),
    })
}
