//! `schedviz cut`: a part of a trace as a trace of its own.

mod anonymous;
mod form;
mod occupants;
mod part;

use anyhow::{Context, Result, bail};
use form::OutputForm;
use machine::Machine;
use parse::{Aliases, CutPart, DatVersion, Trace};
use part::session_part;
use question::Subcommand;
use sched::event::CleanJson;
use session::Session;
use session::args::{CpuList, ReadArgs, TimeArgs, WindowArgs, named, read_text};
use session::atomic_file::AtomicFile;
use session::patterns;
use session::progress;
use session::writer::verb;
use std::cell::RefCell;
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a recording as trace.dat, for Perfetto or as text: all of it or a part, with or without names
///
/// The ending of FILE chooses the form: .pftrace or .perfetto-trace for Perfetto, .txt for the text of trace-cmd report,
/// and trace.dat otherwise, which trace-cmd and KernelShark read. A part holds a note of the state before the window, so
/// that every command of schedviz finds in it what it finds in the same window of the whole; times count from the start
/// of the whole. A machine file beside the trace is copied, but replaces none that may be of another recording.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CutArgs {
    /// The recording, in any format that is read: trace.dat, perf.data, a Perfetto trace, text
    trace: PathBuf,
    /// File to write: FILE.dat, FILE.pftrace or FILE.txt; - prints the text
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
    /// Write a trace.dat of this version: 7 is compressed, 6 is for trace-cmd before 3.0
    ///
    /// A trace.dat keeps its own version; other recordings become one of version 7.
    #[arg(long, value_enum, value_name = "VERSION", help_heading = "Output")]
    dat_version: Option<FileVersion>,
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
    /// Keep only these events: SYSTEM:NAME, with * for any part; several with commas
    ///
    /// The output is as if no others had been recorded: `schedviz info` lists what the analyses then lack.
    #[arg(long, value_name = "SYSTEM:NAME", value_delimiter = ',', help_heading = "Window")]
    events: Vec<String>,
    #[command(flatten)]
    read: ReadArgs,
}

impl CutArgs {
    /// Opens the recording, with the CPUs and the events that are kept.
    fn open(&self) -> Result<Trace> {
        let cpus = self.cpus.as_ref().map_or(&[][..], CpuList::cpus);
        let trace = self.read.open_cpus(&self.trace, cpus)?;
        if self.events.is_empty() {
            return Ok(trace);
        }
        // The note has what all events of the whole showed.
        if trace.past().is_some() {
            let file = self.trace.display();
            bail!(
                "{file} is a part of a trace, whose note has the state by all events; cut it from the whole with --events"
            );
        }
        let kept: Vec<u16> = patterns::formats(&trace, &self.events)?.iter().map(|format| format.id).collect();
        trace.only(|format| kept.contains(&format.id)).map_err(|e| named(&self.trace, e))
    }
}

/// A version of the format trace.dat, as the command line has it.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum FileVersion {
    #[value(name = "6")]
    Six,
    #[value(name = "7")]
    Seven,
}

impl From<FileVersion> for DatVersion {
    fn from(version: FileVersion) -> DatVersion {
        match version {
            FileVersion::Six => DatVersion::Six,
            FileVersion::Seven => DatVersion::Seven,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  schedviz convert trace.pftrace -o trace.dat
                                         a Perfetto trace for trace-cmd and
                                         KernelShark; perf.data and text too
  schedviz convert trace.dat -o trace.pftrace
                                         for ui.perfetto.dev
  schedviz cut trace.dat --min 3 --max 3.2 -o part.dat
                                         a fifth of a second; then
                                         schedviz workcons part.dat, ...
  schedviz cut trace.dat --events 'sched:*' -o sched.dat
                                         without function and power events
  schedviz cut trace.dat --anonymize -o public.dat
                                         the whole trace, fit to be attached
                                         to a public report
  schedviz cut trace.dat --min 3 --max 3.2 --anonymize -o part.dat
                                         both";

/// A recording, or a part of it, as a file of its own.
#[derive(Debug)]
pub(crate) struct CutCommand;

impl Subcommand for CutCommand {
    const NAME: &'static str = "cut";
    const ALIAS: Option<&'static str> = Some("convert");
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("Can I pass a trace on: to other programs, a part of it, without names?", "TRACE -o FILE"));
    const BRIEF: &'static [&'static str] = &["anonymize", "no_symbols"];
    type Args = CutArgs;

    fn run(args: &CutArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

/// Writes what the arguments ask for, in the form that the name of the output has.
pub(crate) fn run(args: &CutArgs) -> Result<()> {
    let form = OutputForm::of(&args.output)?;
    if form == OutputForm::Dat { write_dat(args) } else { form::write(form, args) }
}

/// Writes the part of the trace that the arguments ask for as a trace.dat, and its machine file.
fn write_dat(args: &CutArgs) -> Result<()> {
    let trace = args.open()?;
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
    let noted = || session_part(&session, &args.plot, &aliases);
    let part = session.waiting("noting the state at the start of the part", noted)?;
    let part = CutPart { without_symbols: args.no_symbols, version: args.dat_version.map(DatVersion::from), ..part };
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
