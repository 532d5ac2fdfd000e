//! `schedviz view`: the local server of a page that shows traces.

mod critical_path;
mod drawn;
mod index_file;
mod main_findings;
mod missed;
mod other;
mod run_measures;
mod selection_table;
mod story;
mod table_sums;
mod task_groups;
mod vcpus;

use crate::{Server, Site, Viewed};
use anyhow::{Context, Result, bail};
use question::Subcommand;
use session::args::{HostArgs, ReadArgs, SymbolArgs, WindowArgs};
use session::atomic_file::WholeFolder;
use session::host::Vcpus;
use session::{Session, progress};
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::process::{Command, Stdio};
use tempfile::TempPath;
use whatif::PolicyName;

/// Show a trace in a browser, to move through it at any zoom
///
/// Reads the trace once and serves a page on this machine alone (127.0.0.1). The address holds a token that only this
/// run accepts; it is printed and opened in a browser. The page loads nothing from elsewhere. Several traces are shown
/// one above the other, aligned at the start of the traced command. Ctrl-C ends it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ViewArgs {
    /// The recordings to show; one may have the part of a page's address from # on, which opens that view
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// Print the address without opening a browser
    #[arg(long)]
    no_open: bool,
    /// The port to listen at; 0 for any that is free
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Write the page and its tiles into this folder instead, for any server of static files; --min and --max add finer
    /// tiles of a window. Searches for events, and why a task waited, need the program
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["no_open", "port"])]
    export: Option<PathBuf>,
    /// Keep the index in this file, and use it again for the same trace: the page then shows the index at once, and finer
    /// columns once the trace was read
    #[arg(long, value_name = "FILE")]
    index: Option<PathBuf>,
    /// Also show the figure of this specification, as plot draws it, over and under the lanes: a file, or the name of one that
    /// comes with the program; can be repeated
    #[arg(long, value_name = "SPEC")]
    plot: Vec<String>,
    /// Also show the run that the trace would have been under this policy, as whatif predicts it, below the trace: steal=llc,
    /// steal=machine, ideal
    #[arg(long, value_name = "POLICY", conflicts_with = "index")]
    whatif: Option<PolicyName>,
    #[command(flatten)]
    host: HostArgs,
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    window: WindowArgs,
}

const EXAMPLES: &str = "\
Examples:
  schedviz view trace.dat
  schedviz view 'trace.dat#w=3100000000,20000000&q=application'
                                             a view that was kept: an address from # on
  schedviz view vanilla.dat patched.dat      two runs, one above the other
  schedviz view trace.dat --whatif steal=llc the run, and what it would have been
  schedviz view trace.dat --export page --min 3 --max 3.2
                                             a folder for a web server
  schedviz view trace.dat --index trace.index
                                             a second time, the page is there at once
  schedviz view trace.dat --plot irq         interrupts over the lanes
  schedviz view guest.dat --host host.dat    when the host kept each vCPU
  schedviz view trace.dat --no-open --port 8080
                                             for a machine without a browser:
                                             ssh -L 8080:127.0.0.1:8080";

/// A page on which traces are moved through at any zoom.
#[derive(Debug)]
pub struct ViewCommand;

impl Subcommand for ViewCommand {
    const NAME: &'static str = "view";
    const IS_PAGED: bool = false;
    const FIRST_STEP: Option<(&'static str, &'static str)> = Some(("view trace.dat", "all of it, in a browser"));
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("Can I move through all of it, at any zoom?", "TRACE"));
    type Args = ViewArgs;

    fn run(args: &ViewArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

/// The maximum number of traces: each has an index in memory.
const MOST: usize = 8;

/// Serves the page until the user ends it.
pub(crate) fn run(args: &ViewArgs) -> Result<()> {
    if args.traces.len() > MOST {
        bail!("{} traces are too many; at most {MOST} are shown", args.traces.len());
    }
    if args.export.is_none() && args.window.bounds_time() {
        bail!("--min and --max: the page shows all of the trace; zoom to the window there");
    }
    let places: Vec<(PathBuf, Option<String>)> =
        args.traces.iter().map(|path| with_view(path)).collect::<Result<_>>()?;
    let view = places.iter().find_map(|(_, view)| view.clone()).unwrap_or_default();
    let (mut sessions, vcpus) = opened(args, places.iter().map(|(path, _)| path.as_path()))?;
    sessions.iter_mut().try_for_each(|session| args.symbols.give(session))?;
    if let Some(policy) = args.whatif {
        sessions.push(simulated(args, &sessions, policy)?);
    }
    if args.plot.len() > MOST {
        bail!("--plot: {} specifications are too many; at most {MOST} are shown", args.plot.len());
    }
    for (session, named) in sessions.iter().flat_map(|session| args.plot.iter().map(move |named| (session, named))) {
        plot::check(session, named).with_context(|| session.name())?;
    }
    let commands = other::Sessions { all: &sessions, plots: &args.plot, vcpus: vcpus.as_ref() };
    let mut traces: Vec<Viewed<'_>> = sessions.iter().zip(names(&sessions)).map(viewed).collect::<Result<_>>()?;
    if let Some(file) = &args.index {
        let (Some(trace), [session], []) = (traces.pop(), sessions.as_slice(), traces.as_slice()) else {
            bail!("--index keeps the index of one trace");
        };
        traces.push(index_file::with_index(trace, session, &args.read, file)?);
    }
    let site = Site::new(traces, &commands);
    if let Some(folder) = &args.export {
        return export(args, &sessions, &site, (folder, view.trim_start_matches('#')));
    }
    let server = Server::new(args.port).with_context(|| format!("--port {}", args.port))?;
    let url = server.url() + &view;
    let redirect = if args.no_open { None } else { redirect(&url).ok() };
    end_on_signal(redirect.as_deref().map(Path::to_owned))?;
    // The line is complete even where standard output is a pipe.
    let mut out = std::io::stdout();
    writeln!(out, "{url}")?;
    out.flush()?;
    if !args.no_open && !redirect.is_some_and(open) {
        args.read.message("no browser could be opened; open the address above");
    }
    site.serve(&server)?;
    Ok(())
}

/// The path of a trace, and behind it the part of a page's address from # on, unless a file has all of that as its name.
fn with_view(path: &Path) -> Result<(PathBuf, Option<String>)> {
    let split = path.to_str().filter(|_| !path.exists()).and_then(|text| text.rsplit_once('#'));
    let Some((trace, view)) = split else { return Ok((path.to_owned(), None)) };
    // All that a page writes; it becomes a part of a page that leads to the address.
    let is_known = |c: char| c.is_ascii_alphanumeric() || "=&,:%+._*-".contains(c);
    if !view.chars().all(is_known) {
        bail!("{}: the part behind # is none of a page's address", path.display());
    }
    Ok((PathBuf::from(trace), Some(format!("#{view}"))))
}

/// The run that the trace would have been under a policy. Its file has no name any more once it is open.
fn simulated(args: &ViewArgs, sessions: &[Session], policy: PolicyName) -> Result<Session> {
    let [session] = sessions else { bail!("--whatif: give a single trace") };
    if args.window.bounds_time() {
        bail!("--whatif: the run is that of the whole trace; leave --min and --max out");
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join(format!("{policy}.dat"));
    whatif::save_run(session, policy, &path).context("--whatif")?;
    judged(&path, args)
}

/// Opens the traces, and where a host is named, with what it did with the vCPUs of the only one.
fn opened<'p>(
    args: &ViewArgs,
    mut paths: impl ExactSizeIterator<Item = &'p Path>,
) -> Result<(Vec<Session>, Option<Vcpus>)> {
    if args.host.host.is_none() {
        return Ok((paths.map(|path| judged(path, args)).collect::<Result<_>>()?, None));
    }
    if args.index.is_some() || args.whatif.is_some() {
        bail!("--host: leave --index and --whatif out, whose times are not the host's");
    }
    let (1, Some(path)) = (paths.len(), paths.next()) else { bail!("--host needs a single trace: the guest's") };
    let (session, vcpus) = args.host.open_whole(path, &args.read, &args.window)?;
    Ok((vec![session.with_judged_command()?], vcpus))
}

/// Opens a trace for questions that are about the application as well.
fn judged(path: &Path, args: &ViewArgs) -> Result<Session> {
    Session::open(path, &args.read, &args.window)?.with_judged_command()
}

/// Writes the folder, with the view that it begins with. It is there as a whole, or not at all.
fn export(args: &ViewArgs, sessions: &[Session], site: &Site<'_>, (folder, view): (&Path, &str)) -> Result<()> {
    if folder.exists() && (!folder.is_dir() || folder.read_dir()?.next().is_some()) {
        bail!("--export: {} exists; choose another name, or an empty folder", folder.display());
    }
    let window = match sessions {
        [session, ..] if args.window.bounds_time() => {
            Some((session.from.since(session.start).0, session.to.since(session.start).0))
        }
        _ => None,
    };
    let failed = || format!("--export {}", folder.display());
    let whole = WholeFolder::create(folder).with_context(failed)?;
    let what = format!("writing {}", folder.display());
    let write = || site.export(window, view, &mut |name, bytes| whole.write(name, bytes));
    let size = progress::waiting(&what, args.read.quiet, write).with_context(failed)?;
    whole.finish().map(drop)?;
    let megabytes = size.bytes as f64 / 1e6;
    args.read.message(&format!(
        "{}: {}, {megabytes:.1} MB",
        folder.display(),
        sched::nouns::counted(size.files, "file")
    ));
    Ok(())
}

/// The names of the traces: those of their files, behind as many of their folders as tell them apart.
fn names(sessions: &[Session]) -> Vec<String> {
    let ends = |length: usize| -> Vec<PathBuf> {
        let end = |session: &Session| {
            let parts: Vec<_> = session.path().components().collect();
            parts[parts.len().saturating_sub(length)..].iter().collect()
        };
        sessions.iter().map(end).collect()
    };
    let longest = sessions.iter().map(|session| session.path().components().count()).max().unwrap_or(1);
    let are_apart = |ends: &Vec<PathBuf>| ends.iter().collect::<HashSet<_>>().len() == ends.len();
    // One file that is given twice has one name.
    let Some(apart) = (2..=longest).map(ends).find(are_apart) else {
        return sessions.iter().map(Session::name).collect();
    };
    let plain: Vec<String> = sessions.iter().map(Session::name).collect();
    let name = |(n, end): (usize, &PathBuf)| {
        let is_shared = plain.iter().filter(|name| **name == plain[n]).count() > 1;
        if is_shared { sched::event::escape(end.as_os_str().as_encoded_bytes()).into_owned() } else { plain[n].clone() }
    };
    apart.iter().enumerate().map(name).collect()
}

/// A trace as the page shows it, with its name there.
fn viewed((session, name): (&Session, String)) -> Result<Viewed<'_>> {
    // CPUs without events have lanes as in the figures: there are none where these would take the room of the others.
    let shown = if session.shown.all.is_empty() { &session.shown.cpus } else { &session.shown.all };
    let cpus = shown.iter().map(|(cpu, _)| *cpu).collect();
    let lanes = (cpus, session.silent());
    Viewed::new(name, &session.trace, session.topology.clone(), lanes, session.affinity.clone())
        .map_err(|e| session.named(e))
}

/// A page that leads to an address, in a file that this user alone can read. The address has the token, and every user of
/// a machine can read the arguments of a program.
fn redirect(url: &str) -> std::io::Result<TempPath> {
    let mut page = tempfile::Builder::new().prefix("schedviz-").suffix(".html").tempfile()?;
    let meta = format!("<meta http-equiv=\"refresh\" content=\"0; url={url}\">");
    writeln!(
        page,
        "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n{meta}\n<title>schedviz</title>\n<a href=\"{url}\">schedviz</a>"
    )?;
    Ok(page.into_temp_path())
}

/// Opens a page in the user's browser, and returns whether a browser was started. The page is removed when the
/// process ends on a signal.
fn open(page: TempPath) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let null = Stdio::null;
    let begun = Command::new(program).arg(&page).stdin(null()).stdout(null()).stderr(null()).spawn().is_ok();
    // The browser reads it later.
    begun && page.keep().is_ok()
}

/// Ends the process in order on Ctrl-C: nothing is left behind, and no page that leads to this server.
#[cfg(target_os = "linux")]
fn end_on_signal(redirect: Option<PathBuf>) -> Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = redirect.map(std::fs::remove_file);
            std::process::exit(0);
        }
    });
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn end_on_signal(_: Option<PathBuf>) -> Result<()> {
    Ok(())
}
