//! The numbers of a run that `compare` compares, by its own measurement.

use crate::{AskedPart, RunMeasure, RunMeasures};
use anyhow::Result;
use compare::measures::{QueuedPath, RunOptions, conclude, metrics, of_path};
use compare::{Measured, Reports};
use question::Better;
use sched::{Chosen, SchedState, Task};
use session::Session;
use session::args::BeginArgs;
use workcons::Waiters;

/// The percentage of CPU time unknown above which the violation is unknown, as `compare` has it by default.
const MOST_LOSS: f64 = 1.0;

/// Measures a part of a run; where some tasks are chosen, violation, latency, requests and picks are theirs.
pub(super) fn of(session: &Session, part: &AskedPart) -> Result<RunMeasures> {
    let is_chosen = |task: &Task, _: &SchedState| part.has(task.pid);
    let tasks = part.pids.as_ref().map(|_| &is_chosen as &Chosen<'_>);
    let plain = RunOptions::plain(session);
    let waiters = if tasks.is_some() { Waiters::Application } else { plain.workcons.waiters };
    let options = RunOptions {
        workcons: workcons::Options { waiters, application: tasks, ..plain.workcons },
        latency: latency::Options { tasks, ..plain.latency },
        preemptions: preemptions::Options { tasks, ..plain.preemptions },
        picks: picks::Options { tasks, ..plain.picks },
        ..plain
    };
    // The path is that of the command, whatever tasks are chosen.
    let recorded = path::recorded_command(session);
    let searches = || path::searches(recorded, session.start, 0, session.affinity.as_ref());
    let analyses = || (options.analyses().parts(), tasks.is_none().then(searches));
    let outcome = session.follow(&BeginArgs::default(), part.window, analyses)?;
    let (parts, mut paths) = outcome.output;
    paths.iter_mut().try_for_each(|paths| path::search_further(session, part.window, paths, 0))?;
    let queued = paths.and_then(|paths| QueuedPath::of(&path::path_of_command(paths)));
    let measured = conclude(session, Reports::of(parts), outcome.diagnostics, MOST_LOSS);
    let measured = Measured { queued, ..measured };
    let measures = metrics().into_iter().chain(of_path()).map(|(metric, get)| RunMeasure {
        key: metric.key.into_owned(),
        name: metric.name,
        better: match metric.better {
            Better::Less => "less",
            Better::More => "more",
            Better::Neither => "neither",
        },
        value: get(&measured).filter(|value| value.is_finite()),
    });
    Ok(RunMeasures { measures: measures.collect(), no_violation: measured.no_violation.clone() })
}
