//! `schedviz cut`: a part of a trace as a trace of its own.

mod anonymous;
mod occupants;

use anonymous::{Anonymous, alias};
use anyhow::{Context, Result, bail};
use events::BurstNotes;
use jobs::JobsNotes;
use machine::Machine;
use offcpu::OffCpuNotes;
use parse::{Aliases, CutPart};
use picks::PicksNotes;
use preemptions::PreemptionsNotes;
use question::Subcommand;
use residency::ResidencyNotes;
use sched::event::CleanJson;
use sched::past::PastName;
use sched::{Analysis, Cpu, EventIssue, EventKind, NoteTaker, Pass, Past, SchedEvent, SchedState, Topology, Ts};
use session::Session;
use session::args::{CpuList, ReadArgs, TimeArgs, WindowArgs, named, read_text};
use session::atomic_file::AtomicFile;
use session::progress;
use session::timers::TimerExpiries;
use session::writer::verb;
use std::cell::RefCell;
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use utilization::IdleStatesNotes;
use wakers::WakersNotes;

/// Write a part of a trace as a trace of its own: a window, some CPUs, without names
///
/// The part is a trace.dat of the same version and compression, which trace-cmd and KernelShark read. It holds a note of
/// the state before the window, so that every command of schedviz finds in it what it finds in the same window of the
/// whole; times count from the start of the whole. A machine file beside the trace is copied, but replaces none that may
/// be of another recording.
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
    /// The same name becomes the same alias everywhere. The part has the numbers of events, the texts of the kernel (formats,
    /// symbols, the names that it gives its threads) and no other text of the trace: the name of the host becomes "host",
    /// those of buffers "buffer1" and so on. All figures stay as they are.
    #[arg(long, help_heading = "Output")]
    anonymize: bool,
    /// Leave out the kernel's symbols, which are some megabytes: stacks and functions in the part have no names then
    #[arg(long, help_heading = "Output")]
    no_symbols: bool,
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

/// A part of a trace as a file of its own.
#[derive(Debug)]
pub(crate) struct CutCommand;

impl Subcommand for CutCommand {
    const NAME: &'static str = "cut";
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("Can I pass a part of a trace on, without names?", "TRACE -o PART"));
    const BRIEF: &'static [&'static str] = &["anonymize", "no_symbols"];
    type Args = CutArgs;

    fn run(args: &CutArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

/// Writes the part of the trace that the arguments ask for, and its machine file.
pub(crate) fn run(args: &CutArgs) -> Result<()> {
    let cpus = args.cpus.as_ref().map_or(&[][..], CpuList::cpus);
    let trace = args.read.open_cpus(&args.trace, cpus)?;
    trace.has_time().map_err(|e| named(&args.trace, e))?;
    // The notes of analyses have names in forms of their own.
    if args.anonymize && trace.past().is_some() {
        let file = args.trace.display();
        bail!("{file} is a part of a trace, whose note has the names of tasks; cut it from the whole with --anonymize");
    }
    let machine = machine_file(args)?;
    let session =
        Session::of_trace(trace, &args.trace, &args.read, &WindowArgs::of_time(&args.time))?.with_judged_command()?;
    let aliases = RefCell::new(args.anonymize.then(Aliases::default));
    let part = session_part(&session, &args.plot, &aliases)?;
    let part = CutPart { without_symbols: args.no_symbols, ..part };
    let mut file = BufWriter::new(AtomicFile::create(&args.output)?);
    // A pipe is refused before anything is written to it.
    file.rewind()?;
    let mut aliases = aliases.into_inner();
    progress::watched(&session.trace, args.read.quiet, || session.trace.cut(part, aliases.as_mut(), &mut file))
        .with_context(|| args.trace.display().to_string())?;
    let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    // Neither takes its place before both are written.
    let machine = machine.map(|(path, text)| begin(&path, &text).map(|file| (path, file))).transpose()?;
    let verb = verb(args.output.is_file());
    file.finish()?;
    let copied = machine.map(|(path, file)| file.finish().map(|()| path)).transpose()?;
    report(args, &session, verb, copied.as_deref())
}

/// Prints the size of the part, and the machine file that was written beside it.
fn report(args: &CutArgs, session: &Session, verb: &str, machine: Option<&Path>) -> Result<()> {
    let size = args.output.metadata().with_context(|| args.output.display().to_string())?.len();
    let length = session.to.since(session.from);
    let machine = machine.map_or(String::new(), |path| format!(", {}", path.display()));
    let (output, size) = (args.output.display(), size.div_ceil(1000));
    args.read.message(&format!("{verb} {output} ({size} kB, {}){machine}", length.human()));
    Ok(())
}

/// The times at which CPUs go offline in the window.
#[derive(Default)]
struct Offline(Vec<(Cpu, Ts)>);

impl Analysis for Offline {
    type Output = Vec<(Cpu, Ts)>;

    fn before(&mut self, event: &SchedEvent, _: &SchedState) {
        if let EventKind::Offline = event.kind {
            self.0.push((event.cpu, event.ts));
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> Self::Output {
        self.0
    }
}

/// Follows the trace up to the end of the window, and notes the state at its start.
fn session_part(session: &Session, specs: &[String], aliases: &RefCell<Option<Aliases>>) -> Result<CutPart> {
    let options = latency::Options::default();
    let (picked, asked) = (picks::Options::plain(session), preemptions::Options::plain(session));
    let (topology, wakings) = (Topology::default(), wakers::Options::default());
    let tasks = jobs::Options { expiries: TimerExpiries::of(session), ..jobs::Options::default() };
    let stacks = offcpu::Options::for_notes(session);
    let analyses = || {
        let bursts = (latency::NoteTaker::new(&options), BurstNotes::new(&topology));
        let of_cpus = (IdleStatesNotes::default(), ResidencyNotes::default());
        let cpus = (PicksNotes::new(&picked), PreemptionsNotes::new(&asked), of_cpus);
        let sleeps = (WakersNotes::new(&wakings), OffCpuNotes::new(&stacks), JobsNotes::new(&tasks));
        ((NoteTaker::default(), Offline::default()), bursts, cpus, sleeps)
    };
    let outcome = session.watched(|| {
        let events = Anonymous { events: session.trace.events()?, aliases };
        Pass::over(events).window(session.window).run(analyses)
    })?;
    let ((past, offline), (notes, bursts), (picks, preemptions, (idle_states, residency)), (wakers, offcpu, jobs)) =
        outcome.output;
    let end = session.trace.extent().map_or(session.to, |(_, end)| end);
    // Where a clock stepped back the last event is later than the end.
    let to = if session.to >= end { outcome.to.max(end) } else { session.to };
    let mut past = Past { from: outcome.from, to, end: end.max(to), ..past };
    let late = outcome.diagnostics.count(EventIssue::LateStart);
    if late > 0 {
        past.repairs.insert(EventIssue::LateStart.diagnostic().name().to_owned(), late);
    }
    // The addresses of stacks are among what an anonymous part has not.
    let offcpu = offcpu.filter(|_| aliases.borrow().is_none());
    past.notes.extend(
        [notes, bursts, picks, preemptions, idle_states, residency, wakers, offcpu, jobs].into_iter().flatten(),
    );
    let called = session.names()?;
    past.notes.extend([plot::note(session, past.from, specs, &called, &mut aliases.borrow_mut())?]);
    past.notes.extend(session::timers::note(&session.trace, past.from));
    past.notes.extend(session.note_on_leavers());
    // It has names of tasks.
    past.notes.extend(session.note_on_application().filter(|_| aliases.borrow().is_none()));
    past.notes.extend(membership::note(
        &session.trace,
        session.machine.as_ref(),
        past.from,
        aliases.borrow().is_some(),
    ));
    let before = Ts(past.from.0.saturating_sub(1));
    let names = called.at(before).into_iter();
    past.occupants = occupants::at(session, past.from).map_err(|e| session.named(e))?;
    past.occupants.iter_mut().for_each(|occupant| occupant.comm = alias(aliases, occupant.comm));
    past.frequencies = dat2graph::in_force(session).map_err(|e| session.named(e))?;
    past.names = names.map(|(pid, name)| PastName { pid, name: alias(aliases, name) }).collect();
    Ok(CutPart { past, offline, without_symbols: false })
}

/// The machine file of the part and its text: that of the trace, if there is one. A file of that name that may be of
/// another recording is refused, whether it would be replaced or be read as the machine of the part.
fn machine_file(args: &CutArgs) -> Result<Option<(PathBuf, String)>> {
    let (from, to) = (Machine::path_beside(&args.trace), Machine::path_beside(&args.output));
    if from == to {
        return Ok(None);
    }
    let text = if from.is_file() { text_of(&from, args)? } else { None };
    if to.symlink_metadata().is_err() {
        return Ok(text.map(|text| (to, text)));
    }
    let (file, output) = (to.display(), args.output.display());
    let Some(text) = text else {
        bail!("{file} would be read as the machine of {output}; remove it, or choose another name for the output")
    };
    let (is_same, is_machine) =
        opened::look_at(&to, || (read_text(&to).is_ok_and(|present| present == text), Machine::open(&to).is_ok()));
    if is_same {
        return Ok(None);
    }
    // That of a part that is replaced is replaced with it.
    if !args.output.is_file() || !is_machine {
        bail!("{file} exists and is not of {output}; remove it, or choose another name for the output");
    }
    Ok(Some((to, text)))
}

/// The text of a machine file as it is copied.
fn text_of(from: &Path, args: &CutArgs) -> Result<Option<String>> {
    match Machine::open(from) {
        Ok(machine) if args.anonymize => Ok(Some(serde_json::to_string_pretty(&machine.anonymous())?)),
        Ok(_) => Ok(Some(CleanJson::new(&read_text(from)?).text().to_owned())),
        Err(why) => {
            args.read.message(&format!("{} is left out: {why}", from.display()));
            Ok(None)
        }
    }
}

/// Begins a file whose name the program chose, and writes its text.
fn begin(path: &Path, text: &str) -> Result<AtomicFile> {
    let mut file = AtomicFile::derived(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}
