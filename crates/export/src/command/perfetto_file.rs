//! A trace for Perfetto.

use super::ExportArgs;
use crate::{Perfetto, PerfettoEvents};
use anyhow::{Result, bail};
use events::Balance;
use sched::{Pass, Selected};
use session::Session;
use session::atomic_file::AtomicFile;
use session::messages::emit;
use session::{warnings, writer};
use std::path::Path;
use workcons::{Waiters, WorkConservation};

/// Bytes of a file from which on Perfetto's viewer needs more memory than a browser gives it.
const LARGE: u64 = 1 << 30;

/// Writes the trace of one recording to a file.
pub(super) fn write(args: &ExportArgs, trace: &Path, file: &Path) -> Result<()> {
    if file.is_dir() || file.as_os_str() == "-" {
        bail!("--perfetto names a file, such as trace.pftrace, not {}", file.display());
    }
    let waiters = args.waiters.without_choice();
    let by_descent = waiters == Waiters::Application;
    let session = Session::open(trace, &args.read, &args.window)?.with_judged_command_if(by_descent)?;
    let cpus = &session.shown.chosen;
    let conservation = workcons::Options { waiters, strips: None, ..workcons::Options::plain(&session) };
    let verb = writer::verb(file.is_file());
    let info = session.trace.info();
    let kernel = info.uname.or(info.kernel).unwrap_or_default();
    let written = Perfetto::new(Box::new(AtomicFile::create(file)?), &kernel, args.read.threads());
    let episode = |episode: &workcons::ListedEpisode| written.episode(episode);
    let migration = |listed: &events::ListedMigration| written.migration(listed);
    let selected = || Selected::new(None, waiters == Waiters::Application);
    let analyses = || {
        written.restart();
        let conserved = WorkConservation::new(&conservation).listing(&episode);
        let balance = Balance::new(&session.topology, cpus, session.from, session.to).each(&migration);
        // On one thread, so that the packets always have the same order.
        (PerfettoEvents::new(&written, cpus.clone()), (conserved, balance, selected()))
    };
    let outcome = session.watched(|| Pass::over(session.trace.events()?).window(session.window).run(analyses))?;
    let ((), (_, _, selection)) = outcome.output;
    if let Some(reason) = session.why_no_figures(selection, selected)? {
        bail!("{}: {reason}", session.name());
    }
    let others = written.finish()?;
    warnings::warn(&outcome.diagnostics, &args.read);
    if !args.read.quiet {
        let size = std::fs::metadata(file).map_or(0, |written| written.len());
        emit(&format!("{verb} {} ({} kB)", file.display(), size.div_ceil(1000)));
        if others > 0 {
            let others = sched::nouns::counted(others, "other event");
            emit(&format!("left out: {others}; only events of the scheduler have a form in Perfetto"));
        }
        if size > LARGE {
            emit("the viewer may not open a file of this size; choose a part with --min and --max");
        }
    }
    Ok(())
}
