//! A trace for Perfetto.

use crate::{EventRun, ListedTask, Perfetto, PerfettoTracks, RecordForms};
use anyhow::{Result, bail};
use events::Balance;
use membership::Processes;
use parse::FileIssue;
use sched::{Comm, Pass, Pid, Selected};
use session::Session;
use session::atomic_file::AtomicFile;
use session::messages::emit;
use session::{warnings, writer};
use std::ops::ControlFlow;
use std::path::Path;
use workcons::{Waiters, WorkConservation};

/// Bytes of a file from which on Perfetto's viewer needs more memory than a browser gives it.
const LARGE: u64 = 1 << 30;

/// Writes the recording of a session, the part of it that is asked for, as a trace for Perfetto.
///
/// # Errors
///
/// A name that is no file's, a recording without what the tracks need, or those of writing.
pub fn write(session: Session, waiters: Waiters, file: &Path) -> Result<()> {
    let session = session.with_judged_command()?;
    let cpus = &session.shown.chosen;
    let conservation = workcons::Options { waiters, strips: None, ..workcons::Options::plain(&session) };
    let verb = writer::verb(file.is_file());
    let info = session.trace.info();
    let kernel = info.uname.or(info.kernel).unwrap_or_default();
    let written = Perfetto::new(Box::new(AtomicFile::create(file)?), &kernel, info.cpus, session.read.threads());
    let episode = |episode: &workcons::ListedEpisode| written.episode(episode);
    let migration = |listed: &events::ListedMigration| written.migration(listed);
    let recorded = path::recorded_command(&session);
    let selected = || Selected::new(None, waiters == Waiters::Application);
    let analyses = || {
        written.restart();
        let conserved = WorkConservation::new(&conservation).listing(&episode);
        let balance = Balance::new(&session.topology, cpus, session.from, session.to).each(&migration);
        let paths = path::searches(recorded, session.start, 0, session.affinity.as_ref());
        // On one thread, so that the packets always have the same order.
        (PerfettoTracks::new(&written, cpus.clone()), ((conserved, balance), (selected(), paths)))
    };
    let outcome = session.watched(|| Pass::over(session.trace.events()?).window(session.window).run(analyses))?;
    let ((), ((_, _), (selection, mut paths))) = outcome.output;
    if let Some(reason) = session.why_no_figures(selection, selected)? {
        bail!("{}: {reason}", session.name());
    }
    path::search_further(&session, session.window, &mut paths, 0)?;
    written.path(&path::path_of_command(paths));
    written.tasks(tasks(&session)?);
    written.dropped(session.trace.diagnostics().count(FileIssue::EventsDroppedUnmarked));
    put_events(&session, &written);
    let others = written.finish()?;
    warnings::warn(&outcome.diagnostics, &session.read);
    if !session.read.quiet {
        let size = std::fs::metadata(file).map_or(0, |written| written.len());
        emit(&format!("{verb} {} ({} kB)", file.display(), size.div_ceil(1000)));
        if others > 0 {
            emit(&format!("left out: {} without a format", sched::nouns::counted(others, "event")));
        }
        if size > LARGE {
            emit("the viewer may not open a file of this size; choose a part with --min and --max");
        }
    }
    Ok(())
}

/// The tasks whose processes are known, with their names at the end of the window.
fn tasks(session: &Session) -> Result<Vec<ListedTask>> {
    let processes = Processes::of(&session.trace, session.machine.as_ref());
    if !processes.are_known() {
        return Ok(Vec::new());
    }
    let names = session.names()?.at(session.to).into_iter();
    let task = |(pid, name): (Pid, Comm)| Some(ListedTask { pid, leader: processes.leader(pid, session.to)?, name });
    let mut tasks: Vec<ListedTask> = names.filter_map(task).collect();
    tasks.sort_unstable_by_key(|task| task.pid);
    Ok(tasks)
}

/// Writes the events of the window on the chosen CPUs.
fn put_events(session: &Session, written: &Perfetto) {
    let forms = RecordForms::of(&session.trace);
    let run_of = |records: &mut dyn Iterator<Item = parse::Neighbours<'_>>| {
        let mut run = EventRun::default();
        for record in records.map(|neighbours| neighbours.record) {
            if record.ts > session.last() {
                return (run, ControlFlow::Break(()));
            }
            if session.shown.chosen.has(record.cpu) {
                run.add(&record, &forms);
            }
        }
        (run, ControlFlow::Continue(()))
    };
    session.trace.records_mapped(session.from, run_of, &mut |(run, flow)| {
        written.events(run);
        flow
    });
}
