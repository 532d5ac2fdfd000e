//! `schedviz cut`: a part of a trace as a trace of its own.

mod anonymous;
mod occupants;

use crate::args::{CpuList, ReadArgs, TimeArgs, WindowArgs, named, read_text};
use crate::atomic_file::AtomicFile;
use crate::commands::{dat2graph::frequencies, plot};
use crate::progress;
use crate::session::Session;
use anonymous::{Anonymous, alias};
use anyhow::{Context, Result};
use machine::Machine;
use sched::past::PastName;
use sched::{Analysis, Cpu, EventIssue, Kind, NoteTaker, Pass, Past, SchedEvent, SchedState, Ts};
use std::cell::RefCell;
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use tracedat::{Aliases, Part};

/// Write a part of a trace as a trace of its own: a window, some CPUs, without names
///
/// The part is a trace.dat of the same version and compression, which trace-cmd and KernelShark read. It holds a note of
/// the state before the window, so that every command of schedviz finds in it what it finds in the same window of the
/// whole; times count from the start of the whole. A machine file beside the trace is copied.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CutArgs {
    /// The recording: a trace.dat of version 6 or 7
    trace: PathBuf,
    /// File to write
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: PathBuf,
    /// Replace names of tasks by task1, task2, ..., and other texts in events by x
    ///
    /// The same name becomes the same alias everywhere. Names of kernel threads stay, so that all figures stay as they are.
    /// The name of the host becomes "host"; PIDs, times and the texts of the kernel stay.
    #[arg(long, help_heading = "Output")]
    anonymize: bool,
    /// Note what goes on in the figure of this specification when the part begins; may be given several times
    ///
    /// The specifications that come with the program are noted anyway (see `schedviz plot --list`).
    #[arg(long, value_name = "SPEC", help_heading = "Output")]
    plot: Vec<String>,
    #[command(flatten)]
    time: TimeArgs,
    /// Keep the data of these CPUs alone, such as 0-15,32; all others are then unknown
    #[arg(long, value_name = "LIST", value_parser = CpuList::parse, help_heading = "Window")]
    cpus: Option<CpuList>,
    #[command(flatten)]
    read: ReadArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz cut trace.dat --min 3 --max 3.2 -o part.dat
                                         a fifth of a second; then
                                         schedviz workcons part.dat, ...
  schedviz cut trace.dat --anonymize -o public.dat
                                         the whole trace, fit to be attached
                                         to a public report
  schedviz cut trace.dat --min 3 --max 3.2 --anonymize -o part.dat
                                         both";

/// Cuts.
pub(crate) fn run(args: &CutArgs) -> Result<()> {
    let cpus = args.cpus.as_ref().map_or(&[][..], CpuList::cpus);
    let trace = args.read.open_cpus(&args.trace, cpus)?;
    trace.has_time().map_err(|e| named(&args.trace, e))?;
    let session = Session::of_trace(trace, &args.trace, &args.read, &WindowArgs::of_time(&args.time))?;
    let aliases = RefCell::new(args.anonymize.then(Aliases::default));
    let part = session_part(&session, &args.plot, &aliases)?;
    let mut file = BufWriter::new(AtomicFile::create(&args.output)?);
    // A pipe is refused before anything is written to it.
    file.rewind()?;
    let mut aliases = aliases.into_inner();
    progress::watched(&session.trace, args.read.quiet, || session.trace.cut(part, aliases.as_mut(), &mut file))
        .with_context(|| args.trace.display().to_string())?;
    file.into_inner().map_err(std::io::IntoInnerError::into_error)?.finish()?;
    copy_machine(&args.trace, &args.output, args.anonymize, &args.read)?;
    report(args, &session)
}

/// Prints the size of the part.
fn report(args: &CutArgs, session: &Session) -> Result<()> {
    let size = args.output.metadata().with_context(|| args.output.display().to_string())?.len();
    let length = session.to.since(session.from);
    args.read.message(&format!("wrote {} ({} kB, {})", args.output.display(), size.div_ceil(1000), length.human()));
    Ok(())
}

/// The times at which CPUs go offline in the window.
#[derive(Default)]
struct Offline(Vec<(Cpu, Ts)>);

impl Analysis for Offline {
    type Output = Vec<(Cpu, Ts)>;

    fn before(&mut self, event: &SchedEvent, _: &SchedState) {
        if let Kind::Offline = event.kind {
            self.0.push((event.cpu, event.ts));
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> Self::Output {
        self.0
    }
}

/// Follows the trace up to the end of the window, and notes the state at its start.
fn session_part(session: &Session, specs: &[String], aliases: &RefCell<Option<Aliases>>) -> Result<Part> {
    let options = latency::Options::default();
    let analyses = || (NoteTaker::default(), latency::NoteTaker::new(&options), Offline::default());
    let outcome = session.watched(|| {
        let events = Anonymous { events: session.trace.events()?, aliases };
        Pass::over(events).window(session.window).run(analyses)
    })?;
    let (past, notes, offline) = outcome.output;
    let end = session.trace.extent().map_or(session.to, |(_, end)| end);
    // Where a clock stepped back the last event is later than the end.
    let to = if session.to >= end { outcome.to.max(end) } else { session.to };
    let mut past = Past { from: outcome.from, to, end: end.max(to), ..past };
    let late = outcome.diagnostics.count(EventIssue::LateStart);
    if late > 0 {
        past.repairs.insert(EventIssue::LateStart.diagnostic().name().to_owned(), late);
    }
    past.notes.extend(notes);
    let called = session.names()?;
    past.notes.extend([plot::note(session, past.from, specs, &called, &mut aliases.borrow_mut())?]);
    let before = Ts(past.from.0.saturating_sub(1));
    let names = called.at(before).into_iter();
    past.occupants = occupants::at(session, past.from).map_err(|e| session.named(e))?;
    past.occupants.iter_mut().for_each(|occupant| occupant.comm = alias(aliases, occupant.comm));
    past.frequencies = frequencies::in_force(session).map_err(|e| session.named(e))?;
    past.names = names.map(|(pid, name)| PastName { pid, name: alias(aliases, name) }).collect();
    Ok(Part { past, offline })
}

/// Copies the machine file beside the trace, if there is one, beside the part.
fn copy_machine(trace: &Path, part: &Path, anonymize: bool, read: &ReadArgs) -> Result<()> {
    let (from, to) = (Machine::path_beside(trace), Machine::path_beside(part));
    if !from.is_file() || from == to {
        return Ok(());
    }
    let text = match Machine::open(&from) {
        Ok(machine) if anonymize => serde_json::to_string_pretty(&machine.anonymous())?,
        Ok(_) => read_text(&from)?,
        Err(why) => {
            read.message(&format!("{} is left out: {why}", from.display()));
            return Ok(());
        }
    };
    let mut file = AtomicFile::create(&to)?;
    file.write_all(text.as_bytes())?;
    Ok(file.finish()?)
}
