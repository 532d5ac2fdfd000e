//! `schedviz report`: every analysis in one pass, as a folder with a page that shows all.

use super::events::balance::WithProbes;
use super::events::{Recorded, options as events_options, recorded};
use super::workcons::Run;
use crate::args::{BeginArgs, TraceArgs, repeatable};
use crate::atomic_file::WholeFolder;
use crate::commands::dat2graph::learn;
use crate::document::Document;
use crate::page_args::PageArgs;
use crate::session::Session;
use crate::{heading, inputs, output, progress, warnings, writer};
use anyhow::{Context, Result, bail};
use dat2graph::{Coloring, Lane, Timeline};
use draw::{Figure, Unit};
use events::{Balance, BalanceReport};
use fairness::FairnessReport;
use latency::LatencyReport;
use sched::{Diagnostics, Dur, EventSource, Outcome, Pass, Tracepoint};
use schedstat::{FromTrace, Row, TraceColumns};
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use timeline::page::{DrawLanes, Heading};
use timeline::scale::round_step;
use timeline::text::Detail;
use timeline::{Sheet, TimeScale};
use utilization::UtilizationReport;

/// Every analysis in one pass: figures, numbers, and a page that shows all
///
/// Writes into a folder, for each of dat2graph, running-waiting, workcons, why, utilization, latency, fairness, the causes
/// of migrations (migrations, without the list of single migrations) and the recorded probes, texts and other
/// events of the user's choice (events), the figure as SVG and the numbers as JSON, and index.html with all figures and
/// tables in it: one file that can be mailed, without scripts. The folder appears whole, or not at all. With --cpus there is nothing on fairness, which is of
/// tasks, wherever they run. Probes and texts are read by themselves, where there are any.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    trace: TraceArgs,
    /// Folder to write; one that holds a report is replaced as a whole. Default:
    /// `<trace>.report` in the current directory, with the window where one is given
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    output: Option<PathBuf>,
    #[command(flatten)]
    page: PageArgs,
    /// Refused: the numbers are in the folder
    #[arg(long, hide = true)]
    json: bool,
    /// Refused: the folder has its formats
    #[arg(long, hide = true, value_name = "FORMAT")]
    format: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  schedviz report trace.dat                   writes trace.report/index.html
  schedviz report trace.dat -o results --topology lscpu.json";

/// A part of the report.
struct Section {
    name: &'static str,
    title: &'static str,
    figures: Vec<Figure>,
    text: String,
    /// The document that the command's own `--json` gives.
    json: Vec<u8>,
}

/// Measures, draws and writes.
pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    if args.json || args.format.is_some() {
        bail!(
            "report writes a folder: the figures as SVG, the numbers as JSON, and index.html; for one analysis in \
             another form use its command, such as schedviz workcons --json"
        );
    }
    args.output.as_deref().map_or(Ok(()), |named| output::folder(named).and_then(replaceable))?;
    let session = args.trace.open()?;
    let folder = args.output.clone().unwrap_or_else(|| session.origin().named("report", ""));
    output::folder(&folder)?;
    replaceable(&folder)?;
    let questions = Questions::new(&session)?;
    let found = questions.ask(&session)?;
    // The title is that of the whole page; each figure keeps its own.
    let Sheet { title, .. } = args.page.sheet();
    let sections = sections(&session, &questions, &found, &Sheet { title: None, ..args.page.sheet() })?;
    sections.iter().try_for_each(|section| args.page.check(&section.figures))?;
    warnings::warn(&found.diagnostics, &session.read);
    let drawn = drawings(&sections);
    // It appears whole: an interrupt must not leave a page of one trace among the figures of another.
    let whole = WholeFolder::create(&folder)?;
    for (section, figures) in sections.iter().zip(&drawn) {
        for (nth, figure) in (1..).zip(figures) {
            let number = if figures.len() > 1 { format!("-{nth}") } else { String::new() };
            whole.write(&format!("{}{number}.svg", section.name), figure.as_bytes())?;
        }
        whole.write(&format!("{}.json", section.name), &section.json)?;
    }
    whole.write(INDEX, html(&session, title.as_deref(), &sections, &drawn).as_bytes())?;
    let verb = writer::verb(whole.finish()?);
    if !session.read.quiet {
        eprintln!("schedviz: {verb} {}", folder.join(INDEX).display());
    }
    Ok(())
}

/// The page.
const INDEX: &str = "index.html";

/// The sections, by the names of their files.
const SECTIONS: [&str; 9] =
    ["dat2graph", "running-waiting", "workcons", "why", "utilization", "latency", "fairness", "balance", "events"];

/// Refuses to replace a folder that has other files in it than those of a report.
fn replaceable(folder: &Path) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    inputs::refuse_folder(folder)?;
    let is_of_a_report = |name: &str| {
        let Some((stem, ending)) = name.rsplit_once('.') else { return false };
        let number = |rest: &str| rest.is_empty() || rest.strip_prefix('-').is_some_and(|n| n.parse::<u32>().is_ok());
        let is_section = SECTIONS.iter().filter_map(|section| stem.strip_prefix(section)).any(number);
        name == INDEX || (is_section && matches!(ending, "svg" | "json"))
    };
    let entries = folder.read_dir().with_context(|| folder.display().to_string())?;
    for entry in entries {
        let name = entry.with_context(|| folder.display().to_string())?.file_name();
        if !name.to_str().is_some_and(is_of_a_report) {
            let (folder, name) = (folder.display(), name.display());
            bail!(
                "{folder} is replaced as a whole, but {name} in it is no file of a report; choose another folder, such as {folder}/report"
            );
        }
    }
    Ok(())
}

/// The figures of each section, as they stand in files and in the page.
fn drawings(sections: &[Section]) -> Vec<Vec<String>> {
    let mut numbers = 1..;
    let drawn = |section: &Section| {
        let figures = section.figures.iter().zip(&mut numbers);
        figures.map(|(figure, nth)| draw::svg_among(figure, nth)).collect()
    };
    sections.iter().map(drawn).collect()
}

/// What each analysis is asked.
struct Questions<'q> {
    conserve: workcons::Options<'q>,
    overview: running_waiting::Options<'q>,
    waits: latency::Options<'q>,
    drawn: dat2graph::Options,
    /// Not where only some CPUs are meant: fairness is of tasks, wherever they run.
    shares: Option<fairness::Options<'q>>,
    busy: utilization::Options,
    /// Whether migrations were recorded.
    moves: bool,
}

/// What each has found.
struct Found {
    violation: Run,
    reasons: why::WhyReport,
    queues: running_waiting::Report,
    delays: LatencyReport,
    columns: TraceColumns,
    lanes: Vec<Lane>,
    shared: Option<FairnessReport>,
    used: UtilizationReport,
    moves: Option<BalanceReport>,
    /// Events of the user's choice.
    recorded: Option<Recorded>,
    diagnostics: Diagnostics,
}

/// The same as the pass leaves it.
type Answers = (
    (workcons::Report, why::WhyReport),
    running_waiting::Report,
    LatencyReport,
    (TraceColumns, Vec<Lane>, Option<BalanceReport>),
    Option<FairnessReport>,
    UtilizationReport,
);

impl<'q> Questions<'q> {
    fn new(session: &Session) -> Result<Questions<'q>> {
        let Session { from, to, start: zero, .. } = *session;
        let cpus = &session.shown.chosen;
        let topology = || session.topology.clone();
        let conserve = workcons::Options {
            cpus: cpus.clone(),
            zero,
            topology: topology(),
            strips: Some((from, to)),
            ..Default::default()
        };
        let shares = fairness::Options {
            zero,
            interval: Dur(round_step(to.since(from).0 / 10)),
            ..fairness::Options::new(from, to)
        };
        let mut coloring = Coloring::default();
        learn(&mut coloring, &session.trace, &session.topology).map_err(|e| session.named(e))?;
        Ok(Questions {
            conserve,
            overview: super::running_waiting::plain(session)?,
            waits: latency::Options { cpus: cpus.clone(), zero, topology: topology(), worst: 5, ..Default::default() },
            drawn: session.lanes(from, to, coloring),
            shares: cpus.are_all().then_some(shares),
            busy: super::utilization::plain(session),
            moves: session.trace.has(Tracepoint::Migrate),
        })
    }

    /// Reads once, and lets all of them look.
    fn ask(&self, session: &Session) -> Result<Found> {
        let outcome = session.watched(|| self.pass(session))?;
        let ((violation, reasons), queues, delays, (columns, lanes, moves), shared, used) = outcome.output;
        let diagnostics = outcome.diagnostics;
        let violation = Run::of(session, &BeginArgs::default(), &self.conserve, violation, diagnostics.clone())?;
        let recorded = progress::watched(&session.trace, session.read.quiet, || recorded(session));
        Ok(Found { violation, reasons, queues, delays, columns, lanes, shared, used, moves, recorded, diagnostics })
    }

    fn pass(&self, session: &Session) -> Result<Outcome<Answers>, tracedat::Error> {
        let violation = || (workcons::WorkConservation::new(&self.conserve), why::Why::new(&self.conserve));
        let queues = || running_waiting::RunningWaiting::new(&self.overview);
        let delays = || latency::Latency::new(&self.waits);
        let moves = || {
            let balance = || Balance::new(&session.topology, &session.shown.chosen, session.from, session.to);
            self.moves.then(balance)
        };
        let lanes = || (FromTrace::only(session.shown.chosen.clone()), Timeline::new(&self.drawn), moves());
        let shared = || self.shares.as_ref().map(fairness::Fairness::new);
        let used = || utilization::Utilization::new(&self.busy);
        let events = session.trace.events()?;
        let threads = events.threads();
        let pass = Pass::over(events).window(session.page());
        // As many states as threads can follow: a further one repeats work that no thread is free for. Each group
        // takes about as long as the others.
        Ok(match threads {
            0..3 => {
                let groups = || ((violation(), queues(), lanes()), (delays(), shared(), used()));
                pass.run_side_by_side(groups)?.map(|((v, q, l), (d, s, u))| (v, q, d, l, s, u))
            }
            3..6 => {
                let groups = || ((violation(), queues()), (delays(), lanes()), (shared(), used()));
                pass.run_side_by_side(groups)?.map(|((v, q), (d, l), (s, u))| (v, q, d, l, s, u))
            }
            _ => pass.run_side_by_side(|| (violation(), queues(), delays(), lanes(), shared(), used()))?,
        })
    }
}

fn json<R: Serialize>(session: &Session, report: &R, trust: &Diagnostics) -> Result<Vec<u8>> {
    output::json(&Document::of(session, report, trust))
}

/// Draws and tells what was found.
fn sections(session: &Session, asked: &Questions<'_>, found: &Found, sheet: &Sheet) -> Result<Vec<Section>> {
    let Found { violation, reasons, queues, delays, columns, lanes, shared, used, moves, recorded, diagnostics } =
        found;
    let shown = &session.drawable;
    let heading = session.general_heading(diagnostics).on(sheet);
    let columns = schedstat::table(&[Row { name: "trace".into(), columns: columns.columns }]);
    let ran = dat2graph::report(lanes, &asked.drawn);
    let mut sections = vec![
        Section {
            name: "dat2graph",
            title: "What every core ran",
            figures: vec![dat2graph::figure(
                lanes,
                &ran,
                &asked.drawn,
                &super::dat2graph::heading(session, &ran, diagnostics).on(sheet),
            )],
            text: String::new(),
            json: json(session, &ran, diagnostics)?,
        },
        Section {
            name: "running-waiting",
            title: "Running and waiting tasks",
            figures: vec![running_waiting::figure(
                queues,
                &asked.overview,
                &super::running_waiting::heading(session, queues, diagnostics).on(sheet),
            )],
            text: String::new(),
            json: json(session, queues, diagnostics)?,
        },
        Section {
            name: "workcons",
            title: "Work conservation",
            figures: vec![violation.run_figure(session, sheet)?],
            text: violation.text(Detail::Full),
            json: output::json(&violation.document())?,
        },
        Section {
            name: "why",
            title: "Why tasks waited while CPUs idled",
            figures: Vec::new(),
            text: why::text(reasons, shown, 12),
            json: output::json(&super::why::document(session, reasons, diagnostics))?,
        },
        Section {
            name: "utilization",
            title: "Utilization",
            figures: vec![utilization::figure(
                used,
                &asked.busy,
                &super::utilization::heading(session, used, diagnostics).on(sheet),
            )],
            text: format!("{}\n{columns}", utilization::text(used, shown, true, Detail::Full)),
            json: json(session, used, diagnostics)?,
        },
        Section {
            name: "latency",
            title: "Latency",
            figures: vec![latency::figure(delays, &heading)],
            text: latency::text(delays, shown, 15, Detail::Full),
            json: json(session, delays, diagnostics)?,
        },
    ];
    if let Some(shared) = shared {
        sections.push(Section {
            name: "fairness",
            title: "Fairness",
            figures: fairness::figure(shared, &heading),
            text: fairness::text(shared, shown, 20, Detail::Full),
            json: json(session, shared, diagnostics)?,
        });
    }
    let over_lanes =
        Over { lanes, options: &asked.drawn, heading: super::dat2graph::heading(session, &ran, diagnostics).on(sheet) };
    if let Some(moves) = moves {
        let funnel = recorded.as_ref().and_then(|recorded| recorded.funnel.clone());
        let report = WithProbes { report: moves, probes: funnel };
        sections.push(Section {
            name: "balance",
            title: "Causes of migrations",
            figures: vec![over_lanes.draw(|heading, background| {
                events::balance_figure(moves, &events_options(session), heading, Some(background))
            })],
            text: report.text(),
            json: json(session, &report, diagnostics)?,
        });
    }
    if let Some(Recorded { report, diagnostics, .. }) = recorded {
        sections.push(Section {
            name: "events",
            title: "Recorded events",
            figures: vec![over_lanes.draw(|heading, background| {
                events::figure(report, &events_options(session), heading, Some(background))
            })],
            text: events::text(report),
            json: json(session, report, diagnostics)?,
        });
    }
    Ok(sections)
}

/// The lanes, in pale grey, as the ground of a figure.
struct Over<'f> {
    lanes: &'f [Lane],
    options: &'f dat2graph::Options,
    heading: Heading,
}

impl Over<'_> {
    fn draw(&self, figure: impl FnOnce(&Heading, &DrawLanes<'_>) -> Figure) -> Figure {
        let lanes = |figure: &mut Figure, scale: &TimeScale, top: Unit, height: Unit| {
            dat2graph::draw_pale_lanes(figure, self.lanes, self.options, scale, top, height);
        };
        figure(&self.heading, &lanes)
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

const STYLE: &str = "body{font:15px/1.45 Helvetica,Arial,sans-serif;color:#202020;max-width:1160px;margin:2em auto;padding:0 1em}\
nav a{margin-right:1.2em}svg{max-width:100%;height:auto;border:1px solid #d0d0d0}\
pre{font-size:12px;overflow-x:auto;background:#f6f6f6;padding:.8em}h2{margin-top:2.2em}";

/// The page: all figures and texts in one file.
fn html(session: &Session, title: Option<&str>, sections: &[Section], drawn: &[Vec<String>]) -> String {
    let name = escaped(title.unwrap_or(&session.name()));
    // Writing to a string cannot fail.
    let mut out = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    let _ = writeln!(
        out,
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>"
    );
    let facts = heading::facts(session);
    let _ = writeln!(out, "<h1>{name}</h1>\n<p>{}</p>\n<nav>", escaped(&facts));
    for section in sections {
        let _ = writeln!(out, "<a href=\"#{}\">{}</a>", section.name, section.title);
    }
    out.push_str("</nav>\n");
    for (section, figures) in sections.iter().zip(drawn) {
        let _ = writeln!(out, "<h2 id=\"{}\">{}</h2>", section.name, section.title);
        for figure in figures {
            let _ = writeln!(out, "<figure>\n{figure}</figure>");
        }
        if !section.text.is_empty() {
            let _ = writeln!(out, "<pre>{}</pre>", escaped(&section.text));
        }
    }
    let command = escaped(&repeatable(std::env::args_os()));
    let _ = writeln!(out, "<p><code>{command}</code></p>\n</body>\n</html>");
    out
}
