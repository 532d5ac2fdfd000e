//! `schedviz events`: markers over lanes, lists, counts and values; and the causes of migrations.

pub(crate) mod balance;
mod details;
mod funnel;
pub(crate) mod list;
mod listing;

use anyhow::{Result, bail};
use details::{Pattern, Value};
use draw::{Figure, Unit};
use events::{Edge, Gather, Spans};
use lanes::Coloring;
use list::ListArgs;
use regex::Regex;
use sched::names::NameHistory;
use sched::{Comm, Diagnostics, Dur, Pid, TaskFilter, Tracepoint};
use session::Session;
use session::args::{TaskArgs, TraceArgs};
use session::csv::quoted;
use session::document::TraceDocument;
use session::formats::{Formats, OutputArgs, Renderings, json};
use session::heading::Loss;
use session::messages::emit;
use session::patterns::{self, AskedFormats};
use session::progress;
use session::section::{self, ReportPage, ReportSection, listed, part};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::ops::ControlFlow;
use timeline::{Rows, Sheet, TimeScale};
use tracedat::{EventFormat, Neighbours, Record, Where};

/// Show when events happen, and why tasks were migrated
///
/// Without --events, all but the ordinary events of the scheduler: its switches, wakeups, migrations,
/// forks, execs and exits, its statistics (sched_stat_*), sched_prepare_exec, sched_wait_task,
/// sched_process_wait, sched_process_free and sched_skip_vma_numa. Where there are no others, all.
///
/// Texts of trace_printk and trace_marker are counted by their words up to the first value. Pairs of texts
/// `B|pid|name` and `E|pid`, or `begin:name` and `end:name`, and the entries and exits of
/// function_graph are drawn as spans, with their count and durations in the text and in JSON.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_args(|argument| FORMATS.fit(argument)))]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    trace: TraceArgs,
    /// Only these events: SYSTEM:NAME, with * for any part; several with commas
    #[arg(long, value_name = "SYSTEM:NAME", value_delimiter = ',')]
    events: Vec<String>,
    /// The command `list`, as it was once spelt
    #[arg(long, hide = true, conflicts_with_all = ["by", "match", "value"])]
    list: bool,
    /// With --near, print a column with the state of the CPU, as schedviz list does
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_value = "auto", default_missing_value = "always")]
    latency_format: FlagsColumn,
    /// Split kinds by the value of this field
    #[arg(long, value_name = "FIELD")]
    by: Option<String>,
    /// Split kinds by what the named groups of this expression match in an event's text
    #[arg(long, value_name = "REGEX", value_parser = Pattern::parse)]
    r#match: Option<Regex>,
    /// Summarise this value, a field or FIELD=NUMBER in a text, and draw it over time
    #[arg(long, value_name = "FIELD")]
    value: Option<String>,
    /// List what happened on the same CPU around each event: within this number of milliseconds, or within 50us
    #[arg(long, value_name = "MS", value_parser = near, conflicts_with_all = ["by", "match", "value"])]
    near: Option<Dur>,
    /// Draw events per second over time
    #[arg(long, conflicts_with_all = ["list", "value"])]
    rate: bool,
    /// Draw what ran in colour, not in pale grey
    #[arg(long)]
    in_color: bool,
    /// Why tasks were migrated: the command migrations, by its old name
    #[arg(long, conflicts_with_all = ["events", "list", "near", "rate", "by", "match", "value"])]
    balance: bool,
    #[command(flatten)]
    tasks: TaskArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// When lists have a column of flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FlagsColumn {
    /// Where the recorder's own report has it.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The forms of its output.
const FORMATS: Formats = Formats::figure_of("events").and_text().and_table();

const EXAMPLES: &str = "\
Examples:
  schedviz events trace.dat                   probes and printed texts, as
                                              trace.events.pdf
  schedviz events trace.dat --events 'lb:*' --cpus 40
                                              the balancer's probes on one CPU
  schedviz events trace.dat --events sched:sched_move_numa --near 1
                                              and what happened around each
  schedviz events trace.dat --events lb:load_balance --by moved
  schedviz events trace.dat --events sched:sched_stat_runtime --value runtime";

/// The events that `-e sched` records beside those of the state, without any choice of the user's. Its statistics
/// (`sched_stat_*`) belong to them.
const ORDINARY: [&str; 5] =
    ["sched_prepare_exec", "sched_process_wait", "sched_process_free", "sched_wait_task", "sched_skip_vma_numa"];

/// Which records are looked at, and how they are named.
pub(crate) struct Choice {
    /// All events are looked at, also those without a format.
    all: bool,
    /// By the number of an event: what it is called, if it is looked at.
    names: Vec<Option<String>>,
    /// The CPUs shown.
    rows: Rows,
    tasks: TaskFilter,
    /// The names of tasks over time, if names decide.
    called: Option<NameHistory>,
    by: Option<String>,
    pattern: Option<Pattern>,
    value: Option<Value>,
}

impl Choice {
    /// All records of events of these formats.
    fn plain(session: &Session, formats: &[&EventFormat]) -> Choice {
        Choice {
            all: false,
            names: names(formats),
            rows: Rows::new(&session.shown.cpus),
            tasks: TaskFilter::default(),
            called: None,
            by: None,
            pattern: None,
            value: None,
        }
    }

    fn of(args: &EventsArgs, session: &Session) -> Result<Choice> {
        let pattern = args.r#match.clone().map(Pattern::new);
        let formats = formats(args, session)?;
        let value = args.value.as_deref().map(|name| Value::of(name, &formats)).transpose()?;
        if let Some(by) = args.by.as_ref().filter(|by| formats.iter().all(|f| f.field(by).is_none())) {
            bail!("--by: none of these events has a field {by}");
        }
        Ok(Choice {
            all: false,
            names: names(&formats),
            rows: Rows::new(&session.shown.cpus),
            tasks: args.tasks.filter(),
            called: args.tasks.is_by_name().then(|| session.names()).transpose()?,
            by: args.by.clone(),
            pattern,
            value,
        })
    }

    /// The records of a list: those of the events that match patterns, or without any pattern all.
    pub(super) fn listed(session: &Session, events: &[String], tasks: &TaskArgs) -> Result<Choice> {
        let all = || Ok(session.trace.formats().iter().collect());
        let formats = if events.is_empty() { all() } else { patterns::formats(&session.trace, events) }?;
        Ok(Choice {
            all: events.is_empty(),
            tasks: tasks.filter(),
            called: tasks.is_by_name().then(|| session.names()).transpose()?,
            ..Choice::plain(session, &formats)
        })
    }

    pub(crate) fn takes(&self, record: &Record<'_>) -> bool {
        self.rows.of(record.cpu).is_some() && self.takes_anywhere(record)
    }

    /// Whether a record is chosen on whatever CPU.
    fn takes_anywhere(&self, record: &Record<'_>) -> bool {
        (self.all || self.name(record).is_some())
            && self.tasks.takes(record.pid(), || command(record, self.called.as_ref()))
    }

    /// Whether events are looked at one by one, not as the ends of spans.
    fn splits(&self) -> bool {
        self.by.is_some() || self.pattern.is_some() || self.value.is_some()
    }

    fn name(&self, record: &Record<'_>) -> Option<&str> {
        self.names.get(usize::from(record.id()))?.as_deref()
    }

    /// The kind of the event with this text.
    fn kind(&self, record: &Record<'_>, text: Option<String>) -> Cow<'_, str> {
        let kind = match (text, self.name(record)) {
            (Some(text), _) => events::shortened(&sched::event::escape(text.trim_end().as_bytes())).into(),
            (None, Some(name)) => name.into(),
            (None, None) => format!("event {}", record.id()).into(),
        };
        if self.by.is_none() && self.pattern.is_none() {
            return kind;
        }
        let mut kind = kind.into_owned();
        if let Some(by) = &self.by {
            let value = record.field_text(by).unwrap_or_else(|| "?".to_owned());
            // Writing to a string cannot fail.
            let _ = write!(kind, " {by}={value}");
        }
        if let Some(pattern) = &self.pattern {
            kind.push_str(&pattern.found(record));
        }
        kind.into()
    }

    /// The value asked for.
    fn value(&self, record: &Record<'_>) -> Option<f64> {
        self.value.as_ref()?.found(record)
    }

    /// The unit of the value asked for, if it is known.
    fn unit(&self) -> Option<&str> {
        self.value.as_ref()?.unit()
    }

    /// Refuses, once all events were looked at, to show none of the values that were asked for.
    fn has_values(&self, events: u64) -> Result<()> {
        self.value.as_ref().map_or(Ok(()), |value| value.was_of_use(events))
    }
}

/// The names of the events of these formats, by their numbers.
fn names(formats: &[&EventFormat]) -> Vec<Option<String>> {
    let mut names = vec![None; formats.iter().map(|f| usize::from(f.id) + 1).max().unwrap_or(0)];
    for format in formats {
        // The first of several formats with the same number counts.
        names[usize::from(format.id)].get_or_insert_with(|| patterns::full_name(format));
    }
    names
}

/// The name of the current task at that time: the recorder saved one name of each, the last, and from many kernels those
/// of a few tasks only.
fn command(record: &Record<'_>, called: Option<&NameHistory>) -> Comm {
    called.and_then(|called| called.of(record.pid(), record.ts)).unwrap_or_else(|| record.command())
}

/// The time of `--near`: a number of milliseconds, or a length with its unit.
fn near(text: &str) -> Result<Dur, String> {
    match (text.parse::<f64>(), Where::parse(text)) {
        (Ok(ms), _) if (0.0..=1e9).contains(&ms) => Ok(Dur((ms * 1e6) as u64)),
        (Err(_), Ok(Where::FromStart(ns))) if ns >= 0 => Ok(Dur(ns.unsigned_abs())),
        _ => Err("this is no length of time; write 1 or 0.05 for milliseconds, or 50us".into()),
    }
}

/// The formats of the events asked for.
fn formats<'s>(args: &EventsArgs, session: &'s Session) -> Result<Vec<&'s EventFormat>> {
    if !args.events.is_empty() {
        return patterns::formats(&session.trace, &args.events);
    }
    let all = occurring(session);
    let special: Vec<&EventFormat> = all.iter().copied().filter(is_special).collect();
    Ok(if special.is_empty() { all } else { special })
}

/// The formats of the events that occur.
fn occurring(session: &Session) -> Vec<&EventFormat> {
    session.trace.formats().iter().filter(|format| session.trace.occurs(format.id)).collect()
}

/// Whether events of a format are the user's choice.
fn is_special(format: &&EventFormat) -> bool {
    let is_of_the_state = |name: &str| Tracepoint::STATE.iter().any(|tracepoint| tracepoint.name() == name);
    let is_ordinary = |name: &str| is_of_the_state(name) || ORDINARY.contains(&name) || name.starts_with("sched_stat_");
    format.system != "sched" || !is_ordinary(&format.name)
}

/// Counts or lists, draws and writes.
pub(crate) fn run(args: &EventsArgs) -> Result<()> {
    if args.list {
        return list_as_once_spelt(args);
    }
    let announced = args.output.announced();
    let lines = if args.near.is_some() {
        Some(args.output.lines()?)
    } else {
        args.output.check(FORMATS)?;
        None
    };
    args.tasks.without_forked("events")?;
    let session = args.trace.open_any()?;
    args.tasks.check(&session)?;
    if args.balance {
        session.needs_switches()?;
        if !session.read.quiet {
            emit("events --balance has become a command of its own: schedviz migrations");
        }
        let EventsArgs { tasks, output, in_color, .. } = args;
        return balance::run(&balance::Choice { tasks, output, in_color: *in_color, command: "balance" }, &session);
    }
    let choice = Choice::of(args, &session)?;
    if let (Some(near), Some(lines)) = (args.near, lines) {
        listing::near(&session, &choice, near, args.latency_format, lines)?;
        if let (Some(announced), false) = (announced, session.read.quiet) {
            emit(&announced);
        }
        return Ok(());
    }
    let asked = patterns::asked(&session.trace, &args.events)?;
    let (report, found) = gather(&session, &choice, &asked, args.rate, |_| {});
    choice.has_values(report.total)?;
    let figure = |sheet: &Sheet| {
        let options = options(&session);
        // Values and rates have plots instead of lanes.
        let ground =
            (!args.rate && args.value.is_none()).then(|| Coloring { pale: !args.in_color, ..Coloring::default() });
        over_lanes(ground, &session, &found, sheet, |heading, background| {
            if let Some(value) = &args.value {
                events::value_figure(&report, &options, heading, value, choice.unit())
            } else if args.rate {
                events::rate_figure(&report, &options, heading)
            } else {
                events::figure(&report, &options, heading, background)
            }
        })
    };
    let forms =
        Renderings::told(|| events::text(&report), figure).and_drawn().with_csv(|out| table(&session, &choice, out));
    TraceDocument::of(&session, &report, &found).give("events", &session, &args.output, forms)
}

/// Lists the events, and names the command that does so.
fn list_as_once_spelt(args: &EventsArgs) -> Result<()> {
    if !args.trace.read.quiet {
        emit("events --list is now the command list");
    }
    list::run(&ListArgs {
        trace: args.trace.clone(),
        events: args.events.clone(),
        latency_format: args.latency_format,
        tasks: args.tasks.clone(),
        output: args.output.clone(),
    })
}

/// Counts the chosen records of the window, and finds their spans; `look` sees every record.
fn gather(
    session: &Session,
    choice: &Choice,
    asked: &AskedFormats<'_>,
    rates: bool,
    mut look: impl FnMut(&Record<'_>),
) -> (events::Report, Diagnostics) {
    let mut gather = Gather::new(session.from, session.to, rates);
    let mut has_occurred = vec![false; choice.names.len()];
    let mut spans = Spans::new(session.from, session.to);
    let found = progress::watched(&session.trace, session.read.quiet, || {
        let found = session.trace.records_from(session.from, &mut |record| {
            if record.ts > session.to {
                return ControlFlow::Break(());
            }
            look(record);
            if spans.is_open() {
                follow(record, &mut spans);
            }
            if choice.takes_anywhere(record) {
                let shown = choice.rows.of(record.cpu).is_some();
                if let Some(occurs) = has_occurred.get_mut(usize::from(record.id())).filter(|_| shown) {
                    *occurs = true;
                }
                let text = record.text();
                let edge = if choice.splits() { None } else { edge(record, text.as_deref()) };
                match edge {
                    Some(edge) => {
                        if shown {
                            gather.add_edge(record.ts, &choice.kind(record, text));
                        }
                        spans.edge(record.ts, record.cpu, record.pid(), edge, shown);
                    }
                    None if shown => {
                        gather.add(record.ts, record.cpu, &choice.kind(record, text), choice.value(record));
                    }
                    None => {}
                }
            }
            ControlFlow::Continue(())
        });
        with_those_of(session, &found)
    });
    let absent =
        asked.formats.iter().filter(|format| !has_occurred.get(usize::from(format.id)).is_some_and(|occurs| *occurs));
    absent.for_each(|format| gather.add_absent(&patterns::full_name(format)));
    asked.absent.iter().for_each(|pattern| gather.add_absent(pattern));
    if let Some(unmatched) = choice.pattern.as_ref().and_then(Pattern::unmatched) {
        gather.add_absent(&format!("--match {unmatched}"));
    }
    (gather.finish(spans), found)
}

/// Which task a record shows to be current, for the spans that are open.
fn follow(record: &Record<'_>, spans: &mut Spans) {
    if record.lost.is_some() {
        spans.lost(record.cpu, record.ts);
    }
    spans.current(record.ts, record.cpu, record.pid());
    if record.format().is_some_and(|format| format.name == Tracepoint::Switch.name())
        && let Some(next) = record.number("next_pid").and_then(|pid| i32::try_from(pid).ok())
    {
        spans.current(record.ts, record.cpu, Pid(next));
    }
}

/// The beginning or end of a span that a record is, if it is one.
fn edge(record: &Record<'_>, text: Option<&str>) -> Option<Edge> {
    if let Some(text) = text {
        let edge = Edge::of_text(text)?;
        // The names come from an application.
        let escaped = |name: String| sched::event::escaped(name);
        return Some(match edge {
            Edge::Section(name) => Edge::Section(escaped(name)),
            Edge::Begin(name) => Edge::Begin(escaped(name)),
            Edge::End(name) => Edge::End(escaped(name)),
            other => other,
        });
    }
    let format = record.format().filter(|format| format.system == "ftrace")?;
    match format.name.as_str() {
        "funcgraph_entry" | "fgraph_retaddr_entry" => {
            Some(Edge::Entry(record.function("func")?, record.number("depth")?))
        }
        "funcgraph_exit" => {
            let passed = || record.number("rettime")?.checked_sub(record.number("calltime")?)?.try_into().ok();
            Some(Edge::Exit(record.function("func")?, record.number("depth")?, passed().map(Dur)))
        }
        _ => None,
    }
}

/// The events as a table, written as they are read.
fn table(session: &Session, choice: &Choice, out: &mut dyn io::Write) -> Result<()> {
    writeln!(out, "ts_ns,cpu,pid,command,event,text")?;
    let read = if choice.called.is_none() { Some(session.names()?) } else { None };
    let called = choice.called.as_ref().or(read.as_ref());
    let row = |rows: &mut String, Neighbours { record, .. }: &Neighbours<'_>| {
        let name = record.format().map_or("", |f| f.name.as_str());
        let (command, text) = (quoted(&command(record, called).to_string()), quoted(&record.printed()));
        // Writing to a string cannot fail.
        let _ = writeln!(rows, "{},{},{},{command},{name},{text}", record.ts.0, record.cpu, record.pid());
    };
    let mut write = |rows: &str| out.write_all(rows.as_bytes());
    progress::watched(&session.trace, session.read.quiet, || write_each(session, choice, &mut write, row)).map(drop)
}

/// The options of figures of events.
pub(crate) fn options(session: &Session) -> events::Options {
    events::Options { zero: session.start, cpus: session.shown.cpus.clone(), all_cpus: session.shown.all.clone() }
}

/// Writes what `put` puts into words of the same records, in their order; all threads put.
fn write_each(
    session: &Session,
    choice: &Choice,
    write: &mut dyn FnMut(&str) -> io::Result<()>,
    put: impl Fn(&mut String, &Neighbours<'_>) + Sync,
) -> Result<Diagnostics> {
    let words_of = |records: &mut dyn Iterator<Item = Neighbours<'_>>| {
        let mut words = String::new();
        for neighbours in records {
            if neighbours.record.ts > session.to {
                return (words, ControlFlow::Break(()));
            }
            if choice.takes(&neighbours.record) {
                put(&mut words, &neighbours);
            }
        }
        (words, ControlFlow::Continue(()))
    };
    let mut written = Ok(());
    let found = session.trace.records_mapped(session.from, words_of, &mut |(words, flow)| {
        written = write(&words);
        if written.is_ok() { flow } else { ControlFlow::Break(()) }
    });
    written?;
    Ok(with_those_of(session, &found))
}

/// The report, and the findings about the trace.
pub(super) fn with_those_of(session: &Session, found: &Diagnostics) -> Diagnostics {
    let mut diagnostics = session.trace.diagnostics().clone();
    diagnostics.merge(found);
    diagnostics
}

/// The figure; marks have what ran behind, where that was recorded, in pale grey unless asked otherwise.
pub(super) fn over_lanes(
    ground: Option<Coloring>,
    session: &Session,
    diagnostics: &Diagnostics,
    sheet: &Sheet,
    figure: impl FnOnce(&timeline::page::Heading, Option<&timeline::page::DrawLanes<'_>>) -> Figure,
) -> Result<Vec<Figure>> {
    let Some(coloring) = ground else {
        return Ok(vec![figure(&session.general_heading(diagnostics).on(sheet), None)]);
    };
    let coloring = session.learned(coloring)?;
    let (lanes, lanes_options) = if session.trace.has(Tracepoint::Switch) {
        session.ran(session.from, session.to, coloring)?
    } else {
        (Vec::new(), session.lanes(session.from, session.to, coloring))
    };
    let loss = Loss::of_lanes(lanes.iter().map(|l| &l.report), session.to.since(session.from));
    let mut heading = session.lossy_heading(&loss, diagnostics).on(sheet);
    if lanes.is_empty() {
        heading.warnings.push("The tasks that ran are unknown: there is no sched:sched_switch in the trace.".into());
    }
    let background = |figure: &mut Figure, scale: &TimeScale, top: Unit, height: Unit| {
        lanes::draw_lanes(figure, &lanes, &lanes_options, scale, top, height);
    };
    let background: &timeline::page::DrawLanes<'_> = &background;
    Ok(vec![figure(&heading, (!lanes.is_empty()).then_some(background))])
}

/// Its section in a report, where events of the user's choice occur.
pub(crate) fn section(session: &Session) -> section::MaybeSection<'_> {
    let mut special = occurring(session);
    special.retain(is_special);
    if special.is_empty() {
        return Ok(None);
    }
    Ok(Some(part(Choice::plain(session, &special), |choice| {
        // A pass leaves out the fields of such events: they are read by themselves.
        listed((), move |(), page| {
            let ReportPage { session, .. } = *page;
            let gathered = || gather(session, choice, &patterns::AskedFormats::default(), false, |_| {});
            let (report, diagnostics) = progress::watched(&session.trace, session.read.quiet, gathered);
            Ok(ReportSection {
                title: "Recorded events".to_owned(),
                figures: vec![
                    page.over_lanes(|heading, background| {
                        events::figure(&report, &options(session), heading, background)
                    }),
                ],
                text: events::text(&report),
                json: json(&TraceDocument::of(session, &report, &diagnostics))?,
            })
        })
    })))
}
