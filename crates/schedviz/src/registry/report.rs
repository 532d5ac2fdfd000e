//! `schedviz report`: every question in one pass, as a folder with a page that shows all.

use super::COMMANDS;
use anyhow::{Context, Result, bail};
use question::Entry;
use question::Subcommand;
use sched::{Diagnostics, EventSource, Joined, Listed, Lister, Outcome, Pass};
use session::Session;
use session::args::{self, TraceArgs, repeatable};
use session::atomic_file::WholeFolder;
use session::formats::OutputName;
use session::groups::Folder;
use session::page_args::PageArgs;
use session::section::{Conclusion, ReportPage, ReportSection, SectionAnalysis, Unanswered};
use session::{asked_pieces, ext, formats, heading, inputs, several, warnings, writer};
use std::cell::OnceCell;
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use timeline::Sheet;

/// Every question about a trace in one pass: figures, numbers, and a page that shows all
#[derive(Clone, Debug, clap::Args)]
#[command(long_about = description(), after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    trace: TraceArgs,
    /// Folder to write; a report is replaced as a whole, and no other folder that has files in it. Default:
    /// `<trace>.report` in the current directory, with the window where one is given
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,
    /// A section with the figure of this specification, as plot draws it: a file, or the name of one that comes with the
    /// program; may be repeated
    #[arg(long, value_name = "SPEC")]
    plot: Vec<String>,
    #[command(flatten)]
    page: PageArgs,
    /// Refused: the numbers are in the folder
    #[arg(long, hide = true)]
    json: bool,
    /// Refused: the folder has its formats
    #[arg(long, hide = true, value_name = "FORMAT")]
    format: Option<String>,
}

/// The description of the command, with the names of the questions that have a section.
fn description() -> String {
    let sections = COMMANDS.iter().filter(|entry| entry.is_in_report() && entry.name != COMPARE);
    let names: Vec<&str> = sections.map(|entry| entry.name).collect();
    format!(
        "Every question about a trace in one pass: figures, numbers, and a page that shows all\n\n\
         Writes into a folder, for each of {}, the figure as SVG and the numbers as JSON, and index.html with all figures and tables in it: \
         one file that can be mailed, without scripts. The folder appears whole, or not at all. At the end of the page stand the questions \
         that the trace cannot answer, each with what to record. The section of migrations has \
         their causes, without the list of single migrations; that of events has the recorded probes, texts and other events of \
         the user's choice; that of whatif has no figure. \
         For a folder of record --runs the report has the comparison of the variants (compare), and the work conservation and the causes \
         of waiting of each run (workcons, why).",
        names.join(", ")
    )
}

const EXAMPLES: &str = "\
Examples:
  schedviz report trace.dat                   writes trace.report/index.html
  schedviz report trace.dat -o results --topology lscpu.json
  schedviz report trace.dat --plot irq --plot mine.toml
  schedviz report runs                        the folder of record --runs";

/// Every question in one pass, as a folder with a page that shows all.
#[derive(Debug)]
pub(crate) struct ReportCommand;

impl Subcommand for ReportCommand {
    const NAME: &'static str = "report";
    const FIRST_STEP: Option<(&'static str, &'static str)> =
        Some(("report trace.dat", "figures and numbers in one page"));
    const QUESTION: Option<(&'static str, &'static str)> = Some(("All of it, in one page to mail?", "TRACE"));
    type Args = ReportArgs;

    fn run(args: &ReportArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

/// Measures, draws and writes.
pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    if args.json || args.format.is_some() {
        bail!(
            "report writes a folder: the figures as SVG, the numbers as JSON, and index.html; for one analysis in \
             another form use its command, such as schedviz workcons --json"
        );
    }
    args.output.as_deref().map_or(Ok(()), |named| formats::folder(named).and_then(replaceable))?;
    // The title is that of the whole page; each figure keeps its own.
    let sheet = Sheet { title: None, ..args.page.sheet() };
    if let Some(runs) = Folder::open(&args.trace.path)? {
        return of_runs(args, &runs, &sheet);
    }
    several::with_one_thread_where_many(&args.trace.read, |read, are_many| {
        let trace = TraceArgs { read: read.clone(), ..args.trace.clone() };
        let most = if are_many { SECTIONS_OF_MANY } else { usize::MAX };
        of_trace(args, &trace.open()?.with_judged_command()?, most, &sheet)
    })
}

/// The sections that one reading answers where tens of thousands of tasks live: each has tables of them.
const SECTIONS_OF_MANY: usize = 1;

/// The report on one trace, with at most so many sections in each reading of it.
fn of_trace(args: &ReportArgs, session: &Session, most: usize, sheet: &Sheet) -> Result<()> {
    let folder = args.output.clone().unwrap_or_else(|| session.origin().named("report", ""));
    formats::folder(&folder)?;
    replaceable(&folder)?;
    let (content, diagnostics) = content(session, &args.plot, most, sheet)?;
    warnings::warn(&diagnostics, &session.read);
    let facts = [heading::facts(session)].into_iter().chain(ext::head([("", session.sched_ext.as_ref())]));
    let written = write(args, &folder, &session.name(), &facts.collect::<Vec<_>>().join(". "), &content)?;
    session.read.message(&written);
    Ok(())
}

/// The report on a folder of `record --runs`: what all runs have in common.
fn of_runs(args: &ReportArgs, runs: &Folder, sheet: &Sheet) -> Result<()> {
    if !args.plot.is_empty() {
        bail!("--plot draws the events of one recording; name one of {}", args.trace.path.display());
    }
    let (path, read, window) = (&args.trace.path, &args.trace.read, &args.trace.window);
    let folder = args.output.clone().unwrap_or_else(|| OutputName::whole(path).named("report", ""));
    formats::folder(&folder)?;
    replaceable(&folder)?;
    let mut content = Content::default();
    // Each recording's warnings are printed once.
    let again = read.silent();
    // The comparison of the variants leads.
    let (first, others): (Vec<&Entry>, Vec<&Entry>) = COMMANDS.iter().partition(|entry| entry.name == COMPARE);
    for entry in first.into_iter().chain(others) {
        let read = if content.sections.is_empty() { read } else { &again };
        let section = entry.section_of_runs(path, read, window, sheet)?;
        content.sections.extend(section.map(|section| (entry.name.to_owned(), section)));
    }
    let variants: Vec<String> = runs.groups.iter().map(|(name, runs)| format!("{name}: {}", runs.len())).collect();
    let name = args::name_of(path);
    let written = write(args, &folder, &name, &format!("recordings of {}", variants.join(", ")), &content)?;
    read.message(&written);
    Ok(())
}

/// Writes the folder of a report; what was written, for a message.
fn write(args: &ReportArgs, folder: &Path, name: &str, facts: &str, content: &Content) -> Result<String> {
    let sections = &content.sections;
    sections.iter().try_for_each(|(_, section)| args.page.check(&section.figures))?;
    let drawn = drawings(sections);
    // It appears whole: an interrupt must not leave a page of one trace among the figures of another.
    let whole = WholeFolder::create(folder)?;
    let mut files = Vec::new();
    let mut write = |name: String, bytes: &[u8]| {
        let written = whole.write(&name, bytes);
        files.push(name);
        written
    };
    for ((name, section), figures) in sections.iter().zip(&drawn) {
        for (nth, figure) in (1..).zip(figures) {
            let number = if figures.len() > 1 { format!("-{nth}") } else { String::new() };
            write(format!("{name}{number}.svg"), figure.as_bytes())?;
        }
        write(format!("{name}.json"), &section.json)?;
    }
    let name = args.page.sheet().title.unwrap_or_else(|| name.to_owned());
    whole.write(INDEX, html(&name, facts, &files, content, &drawn).as_bytes())?;
    let verb = writer::verb(whole.finish()?);
    Ok(format!("{verb} {}", folder.join(INDEX).display()))
}

/// The section of a specification; of several, each has its number behind it.
const PLOT: &str = "plot";

/// The command that compares the variants of a folder of runs.
const COMPARE: &str = "compare";

/// The place in the page of the questions that have no answer.
const UNANSWERED: &str = "unanswered";

/// The file name of the page.
const INDEX: &str = "index.html";

/// The mark of a page in a folder that is a report; the names of its other files follow, up to a quotation mark.
const MARK: &str = "<meta name=\"generator\" content=\"schedviz report: ";

/// The bytes at the start of a page that have the mark.
const MARK_WITHIN: u64 = 1 << 16;

/// The names of the files that belong to a report by the mark in its page, or none where this is no report.
fn files_of_report(folder: &Path) -> Vec<String> {
    let mut start = Vec::new();
    let page = File::open(folder.join(INDEX)).and_then(|page| page.take(MARK_WITHIN).read_to_end(&mut start));
    let text = String::from_utf8_lossy(&start);
    let listed = text.split_once(MARK).and_then(|(_, rest)| rest.split_once('"'));
    match (page, listed) {
        (Ok(_), Some((names, _))) => names.split(' ').chain([INDEX]).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Refuses to replace a folder that has other files in it than those of a report.
fn replaceable(folder: &Path) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    inputs::refuse_folder(folder)?;
    let files = files_of_report(folder);
    let entries = folder.read_dir().with_context(|| folder.display().to_string())?;
    for entry in entries {
        let name = entry.with_context(|| folder.display().to_string())?.file_name();
        if !name.to_str().is_some_and(|name| files.iter().any(|file| file == name)) {
            let (folder, name) = (folder.display(), name.display());
            bail!(
                "{folder} is replaced as a whole, but {name} in it is no file of a report; choose another folder, such as {folder}/report"
            );
        }
    }
    Ok(())
}

/// The figures of each section, as they stand in files and in the page.
fn drawings(sections: &[(String, ReportSection)]) -> Vec<Vec<String>> {
    let mut numbers = 1..;
    let drawn = |(_, section): &(String, ReportSection)| {
        let figures = section.figures.iter().zip(&mut numbers);
        figures.map(|(figure, nth)| draw::svg_among(figure, nth)).collect()
    };
    sections.iter().map(drawn).collect()
}

/// The answers of a report, in the order of the commands.
#[derive(Default)]
struct Content {
    /// The sections, each with the name of its files.
    sections: Vec<(String, ReportSection)>,
    /// The questions that the trace cannot answer, each with the reason.
    unanswered: Vec<(String, Unanswered)>,
}

/// The answer, or the reason why the trace has none; other errors end the report.
fn answered<T>(answer: Result<T>) -> Result<Result<T, Unanswered>> {
    answer.map(Ok).or_else(|error| error.downcast::<Unanswered>().map(Err))
}

/// Reads the trace once for every so many questions.
fn content(session: &Session, plots: &[String], most: usize, sheet: &Sheet) -> Result<(Content, Diagnostics)> {
    let mut parts: Vec<(String, Box<dyn SectionAnalysis + '_>)> = Vec::new();
    let mut unanswered = Vec::new();
    for entry in COMMANDS {
        match answered(entry.section(session))? {
            Ok(part) => parts.extend(part.map(|part| (entry.name.to_owned(), part))),
            Err(why) => unanswered.push((entry.name.to_owned(), why)),
        }
    }
    for (number, plot) in (1..).zip(plots) {
        let name = if plots.len() > 1 { format!("{PLOT}-{number}") } else { PLOT.to_owned() };
        parts.extend(plot::section(session, plot)?.map(|part| (name, part)));
    }
    let mut sections = Vec::new();
    // Every reading finds the same, and one page keeps what sections take from others.
    let (found, page) = (OnceCell::new(), OnceCell::new());
    let mut parts: Vec<_> = parts.iter().enumerate().collect();
    parts.sort_by_key(|(_, (_, part))| part.is_concluded_last());
    for parts in parts.chunks(most) {
        let listers: Vec<_> = parts.iter().map(|(_, (_, part))| part.analysis()).collect();
        let Outcome { output, diagnostics, .. } = followed(session, &listers)?;
        let page = page.get_or_init(|| ReportPage::new(session, sheet, found.get_or_init(|| diagnostics)));
        for ((place, (name, _)), answer) in parts.iter().zip(output) {
            match answered(answer(page))? {
                Ok(section) => sections.push((*place, name.clone(), section)),
                Err(why) => unanswered.push((name.clone(), why)),
            }
        }
    }
    drop(page);
    sections.sort_by_key(|(place, ..)| *place);
    unanswered.sort_by_key(|(name, _)| COMMANDS.iter().position(|entry| entry.name == name));
    let sections = sections.into_iter().map(|(_, name, section)| (name, section)).collect();
    Ok((Content { sections, unanswered }, found.into_inner().unwrap_or_default()))
}

/// Follows the page for all sections in one pass; returns their conclusions in the same order.
fn followed<'p>(session: &Session, listers: &[Lister<'p, Conclusion<'p>>]) -> Result<Outcome<Vec<Conclusion<'p>>>> {
    session.watched(|| {
        let events = session.trace.events()?;
        let threads = events.threads();
        // As many states as threads can follow: a further one repeats work that no thread is free for.
        let grouped =
            |listers: &[&Lister<'p, Conclusion<'p>>], groups: usize| -> Vec<Vec<Listed<'p, Conclusion<'p>>>> {
                let groups = listers.chunks(listers.len().div_ceil(groups.max(1)).max(1));
                groups.map(|group| group.iter().map(|lister| lister.listed()).collect()).collect()
            };
        let pass = Pass::over(events).window(session.page()).pieces(asked_pieces());
        if !pass.is_divided() {
            let all: Vec<_> = listers.iter().collect();
            let outcome = pass.run_side_by_side(|| grouped(&all, threads.clamp(2, listers.len().max(2))))?;
            return Ok(outcome.map(|output| output.into_iter().flatten().collect()));
        }
        let is_divisible = |lister: &&Lister<'_, _>| lister.listed().is_divisible();
        let (divisible, whole): (Vec<_>, Vec<_>) = listers.iter().partition(is_divisible);
        let in_pieces = || divisible.iter().map(|lister| lister.listed()).collect::<Vec<_>>();
        // Most threads read, or follow pieces.
        let outcome = pass.run_in_pieces_beside(in_pieces, || grouped(&whole, threads / 4))?;
        Ok(outcome.map(|(in_pieces, whole)| {
            let (mut in_pieces, mut whole) = (in_pieces.into_iter(), whole.into_iter().flatten());
            let of = |lister| if is_divisible(&lister) { in_pieces.next() } else { whole.next() };
            listers.iter().filter_map(of).collect()
        }))
    })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

const STYLE: &str = "body{font:15px/1.45 Helvetica,Arial,sans-serif;color:#202020;max-width:1160px;margin:2em auto;padding:0 1em}\
nav a{margin-right:1.2em}svg{max-width:100%;height:auto;border:1px solid #d0d0d0}\
pre{font-size:12px;overflow-x:auto;background:#f6f6f6;padding:.8em}h2{margin-top:2.2em}";

/// Returns the page: all figures and texts in one file.
fn html(name: &str, facts: &str, files: &[String], content: &Content, drawn: &[Vec<String>]) -> String {
    let Content { sections, unanswered } = content;
    let name = escaped(name);
    // Writing to a string cannot fail.
    let mut out = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    let _ = writeln!(
        out,
        "<meta name=\"viewport\" content=\"width=device-width\">\n{MARK}{}\">\n<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
        files.join(" ")
    );
    let _ = writeln!(out, "<h1>{name}</h1>\n<p>{}</p>\n<nav>", escaped(facts));
    for (name, section) in sections {
        let _ = writeln!(out, "<a href=\"#{name}\">{}</a>", escaped(&section.title));
    }
    if !unanswered.is_empty() {
        let _ = writeln!(out, "<a href=\"#{UNANSWERED}\">Not answered</a>");
    }
    out.push_str("</nav>\n");
    for ((name, section), figures) in sections.iter().zip(drawn) {
        let _ = writeln!(out, "<h2 id=\"{name}\">{}</h2>", escaped(&section.title));
        for figure in figures {
            let _ = writeln!(out, "<figure>\n{figure}</figure>");
        }
        if !section.text.is_empty() {
            let _ = writeln!(out, "<pre>{}</pre>", escaped(&section.text));
        }
    }
    if !unanswered.is_empty() {
        let _ = writeln!(out, "<h2 id=\"{UNANSWERED}\">Not answered by this trace</h2>\n<ul>");
        for (name, why) in unanswered {
            let _ = writeln!(out, "<li><code>{name}</code>: {}</li>", escaped(&why.0));
        }
        out.push_str("</ul>\n");
    }
    let command = escaped(&repeatable(std::env::args_os()));
    let _ = writeln!(out, "<p><code>{command}</code></p>\n</body>\n</html>");
    out
}
