//! `schedviz info`: the content of a file.

mod guest;

use anyhow::Result;
use guest::HostAndGuest;
use machine::Machine;
use parse::{BufferInfo, ClockKind, CpuEventCounts, EventCount, FileIssue, Trace};
use question::{Answers, Subcommand};
use sched::event::CleanText;
use sched::nouns::noun;
use sched::topology::{format_cpu_list, shorten_cpu_list};
use sched::{ChosenCpus, Cpu, Diagnostic, Diagnostics, EventIssue, Pass, Past, Severity, Tracepoint, Ts};
use serde::Serialize;
use session::args::{HostArgs, ReadArgs, name_of, shell_word};
use session::formats::{Formats, OutputArgs, OutputName, Renderings};
use session::heading::places;
use session::warnings::grouped;
use session::{progress, warnings};
use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use timeline::text::lines;
use workcons::UnknownParts;

/// The name and version of the document's schema.
pub(crate) const SCHEMA: &str = "schedviz/info/1";

/// Describe a trace: recorder, kernel, clock, span, CPUs, events, losses; what can be drawn from it
#[derive(Clone, Debug, clap::Args)]
#[command(mut_args(|argument| FORMATS.fit(argument)))]
pub(crate) struct InfoArgs {
    /// The recording: a trace.dat of version 6 or 7, a perf.data, a Perfetto trace, or text
    trace: PathBuf,
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    host: HostArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The forms of its output.
const FORMATS: Formats = Formats::TEXT;

/// The document of `--json`.
#[derive(Serialize)]
#[cfg_attr(all(test, feature = "schema"), derive(schemars::JsonSchema))]
pub(crate) struct Report {
    /// The name and version of the schema, `schedviz/info/1`.
    schema: &'static str,
    /// The file name of the trace.
    trace: String,
    /// The version of the file format, 6 or 7.
    version: u32,
    /// The compression of the data; `none` if there is none.
    compression: CleanText,
    /// The name of the format, if it is not trace.dat; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    /// The command that recorded, by words; absent if the file does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Vec<CleanText>>,
    /// The names of the counters whose values the recorder stored with each switch; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counters: Vec<CleanText>,
    /// The version of the recorder; null if the file does not have it.
    recorder: Option<CleanText>,
    /// The kernel's release; null if the file does not have it.
    kernel: Option<CleanText>,
    /// The clock of the trace; empty for trace-cmd's default (local), or if a file of another format does not name it.
    clock: CleanText,
    /// The time of the first event, in nanoseconds of the trace's clock; null without events or if the clock counts no
    /// time.
    start_ns: Option<Ts>,
    /// The time of the last event, in nanoseconds of the trace's clock; null without events or if the clock counts no
    /// time.
    end_ns: Option<Ts>,
    /// The time between both, in nanoseconds.
    span_ns: Option<u64>,
    /// The longer trace that this is a part of (`schedviz cut`); absent if it is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<PartOf>,
    /// The machine file beside the trace; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<MachineFile>,
    /// The facts about a host and its guests.
    #[serde(flatten)]
    pair: HostAndGuest,
    /// The CPUs of the machine.
    cpus: Cpus,
    /// The CPUs without any event.
    #[serde(skip)]
    silent: Vec<Cpu>,
    /// The number of events in the buffers that are read.
    total_events: u64,
    /// The number of occurrences of each event.
    events: Vec<EventCount>,
    /// The buffers of the recorder.
    buffers: Vec<Buffer>,
    /// The lost events.
    lost: Lost,
    /// The scheduler events that were not recorded, with the consequences.
    missing: Vec<Missing>,
    /// The reason why the waiting tasks are unknown, so that no figure of them is to be trusted; null if they are known.
    untrusted: Option<String>,
    /// The losses, repairs and doubts of the trace.
    #[serde(serialize_with = "warnings::rows")]
    #[cfg_attr(all(test, feature = "schema"), schemars(with = "Vec<warnings::Row<'static>>"))]
    diagnostics: Diagnostics,
}

/// The place of a part in the whole trace.
#[derive(Serialize)]
#[cfg_attr(all(test, feature = "schema"), derive(schemars::JsonSchema))]
struct PartOf {
    /// The start of the part, in nanoseconds from the first event of the whole.
    from_in_trace_ns: u64,
    /// The end of the part, in nanoseconds from the first event of the whole.
    to_in_trace_ns: u64,
    /// The length of the whole, in nanoseconds.
    trace_ns: u64,
}

impl PartOf {
    fn of(past: &Past) -> PartOf {
        let in_trace = |ts: Ts| ts.since(past.start).0;
        PartOf {
            from_in_trace_ns: in_trace(past.from),
            to_in_trace_ns: in_trace(past.to),
            trace_ns: in_trace(past.end),
        }
    }
}

/// The file of `schedviz machine` beside the trace.
#[derive(Serialize)]
#[cfg_attr(all(test, feature = "schema"), derive(schemars::JsonSchema))]
struct MachineFile {
    /// The name of the file.
    file: String,
    /// The machine in one line.
    summary: String,
}

impl MachineFile {
    fn of(trace: &Path, machine: &Machine) -> MachineFile {
        let summary = sched::event::escape(machine.summary().as_bytes()).into_owned();
        MachineFile { file: name_of(&Machine::path_beside(trace)), summary }
    }
}

#[derive(Serialize)]
#[cfg_attr(all(test, feature = "schema"), derive(schemars::JsonSchema))]
struct Cpus {
    /// The number of CPUs of the machine, as the file has it; null if the file does not have it.
    recorded: Option<u32>,
    /// The number of CPUs with events.
    observed: usize,
    /// The list of the CPUs without any event, such as `4-7`.
    unobserved: String,
}

#[derive(Serialize)]
#[cfg_attr(all(test, feature = "schema"), derive(schemars::JsonSchema))]
struct Buffer {
    #[serde(flatten)]
    info: BufferInfo,
    /// The number of events in the buffer.
    events: u64,
    /// Whether the buffer is read.
    read: bool,
}

#[derive(Serialize)]
#[cfg_attr(all(test, feature = "schema"), derive(schemars::JsonSchema))]
struct Lost {
    /// The number of places where events were lost.
    gaps: u64,
    /// The number of lost events that were counted.
    events: u64,
    /// The number of events that the recorder counted but that are missing without a mark.
    unmarked: u64,
    /// The CPUs with losses.
    per_cpu: Vec<LostOnCpu>,
}

#[derive(Serialize)]
#[cfg_attr(all(test, feature = "schema"), derive(schemars::JsonSchema))]
struct LostOnCpu {
    /// The name of the buffer; empty for the unnamed one.
    buffer: CleanText,
    /// The CPU that lost events.
    cpu: Cpu,
    /// The number of places where events were lost.
    gaps: u64,
    /// The number of these places without a count of events.
    gaps_without_count: u64,
    /// The number of lost events that were counted.
    events: u64,
    /// The length of all these places, in nanoseconds.
    gap_ns: u64,
}

/// A kind of event that was not recorded, and the consequence.
#[derive(Serialize)]
#[cfg_attr(all(test, feature = "schema"), derive(schemars::JsonSchema))]
struct Missing {
    /// The name of the event.
    event: &'static str,
    /// The commands and options that use the event.
    affects: &'static str,
    /// The consequence of its absence.
    consequence: &'static str,
}

/// The events that may be missing, each with the command or option that needs it, and the effect of its absence.
const WANTED: [(Tracepoint, &str, &str); 9] = [
    (Tracepoint::Switch, "dat2graph", "impossible: running tasks cannot be determined"),
    (Tracepoint::Wakeup, "run queues", "approximate: when a task began to wait is unknown"),
    (Tracepoint::WakeupNew, "run queues", "approximate: new tasks are first seen when they run"),
    (Tracepoint::Waking, "wakeup latency", "approximate: who woke whom, and when, is unknown"),
    (Tracepoint::Migrate, "run queues", "approximate: a waiting task seems to stay where it was queued"),
    (Tracepoint::Fork, "--forked, --color-by parent|class", "impossible: the parents of tasks are unknown"),
    (Tracepoint::Exec, "--forked", "impossible: nothing shows which task is the traced command"),
    (Tracepoint::Exit, "life of tasks", "approximate: a task ends with its last switch"),
    (Tracepoint::Frequency, "dat2graph --frequency", "impossible"),
];

/// The gaps of a recording without any scheduler event: no run queue is approximate where there is none.
const NO_SCHEDULER_EVENT: Missing = Missing {
    event: Tracepoint::Switch.full_name(),
    affects: "all commands but events",
    consequence: "impossible: there are no scheduler events",
};

/// The consequence of a missing `sched_wakeup` where `sched_waking` was recorded.
const QUEUED_AT_WAKING: &str =
    "approximate: tasks count as queued from sched_waking on, before they are; how long that takes is unknown";

/// The content of a file.
#[derive(Debug)]
pub(crate) struct InfoCommand;

impl Subcommand for InfoCommand {
    const NAME: &'static str = "info";
    const QUESTION: Option<(&'static str, &'static str)> =
        Some(("What does the trace hold, and was anything lost?", "TRACE"));
    const ANSWERS: Option<Answers> = Some(Answers::Document);
    type Args = InfoArgs;

    fn run(args: &InfoArgs) -> Result<ExitCode> {
        run(args).map(|()| ExitCode::SUCCESS)
    }
}

/// Reads and prints.
pub(crate) fn run(args: &InfoArgs) -> Result<()> {
    args.output.check(FORMATS)?;
    let host = args.host.host(&args.trace, &args.read)?;
    let read = if host.is_some() { args.read.in_host_time() } else { args.read.clone() };
    let trace = read.open(&args.trace)?;
    let mut report = progress::watched(&trace, args.read.quiet, || report(args, &trace));
    if let (Some(host), Some((start, end))) = (host, report.start_ns.zip(report.end_ns)) {
        report.pair.host = Some(host.vcpus(&trace, start, end)?);
    }
    args.output.give(
        &OutputName::whole(&args.trace),
        "info",
        &report,
        Renderings::words(|| text(&report, &trace)),
        args.read.quiet,
    )
}

fn report(args: &InfoArgs, trace: &Trace) -> Report {
    let info = trace.info();
    let counts = trace.counts();
    let events = trace.event_counts();
    let with_events = |b: &usize| counts.buffers.get(*b).into_iter().flat_map(|b| &b.cpus).filter(|c| c.events > 0);
    let selected = trace.selected_buffers();
    let mut observed: Vec<Cpu> = selected.iter().flat_map(with_events).map(|c| c.cpu).collect();
    observed.sort_unstable();
    observed.dedup();
    let has_time = trace.has_time().is_ok();
    let ends = || selected.iter().flat_map(with_events).filter_map(|c| Some((c.first?, c.last?)));
    let start = ends().map(|(first, _)| first).min().filter(|_| has_time);
    let end = ends().map(|(_, last)| last).max().filter(|_| has_time);
    let silent = info.silent(&observed);
    let mut diagnostics = trace.diagnostics().clone();
    diagnostics.merge(&counts.diagnostics);
    let unknown = events.iter().filter(|e| e.system.is_empty()).map(|e| e.count).sum();
    diagnostics.add_many(FileIssue::UnknownEvent, unknown);
    let missing = missing(trace, &events);
    if has_scheduler_events(&events) {
        let of_the_scheduler = missing.iter().filter(|m| m.event != Tracepoint::Frequency.full_name());
        diagnostics.add_many(EventIssue::MissingEvents, of_the_scheduler.count() as u64);
    }
    let untrusted = if has_scheduler_events(&events) { untrusted(trace, &mut diagnostics) } else { None };
    Report {
        schema: SCHEMA,
        trace: name_of(&args.trace),
        version: info.version.number,
        compression: info.version.compression.clone(),
        format: trace.origin().map(|origin| origin.format),
        command: trace.origin().map(|origin| origin.command.clone()),
        counters: trace.counters().map_or_else(Vec::new, |counters| counters.names().to_vec()),
        recorder: info.writer.clone(),
        kernel: info.kernel.clone(),
        clock: info.clock.clone(),
        start_ns: start,
        end_ns: end,
        span_ns: start.zip(end).map(|(start, end)| end.since(start).0),
        part: trace.past().map(|past| PartOf::of(past)),
        machine: args.read.machine(&args.trace, trace).map(|machine| MachineFile::of(&args.trace, &machine)),
        pair: HostAndGuest::of(&info),
        cpus: Cpus {
            recorded: Some(info.cpus).filter(|cpus| *cpus > 0),
            observed: observed.len(),
            unobserved: format_cpu_list(&silent),
        },
        silent,
        total_events: events.iter().map(|e| e.count).sum(),
        events,
        buffers: buffers(trace),
        lost: lost(trace, &diagnostics),
        missing,
        untrusted,
        diagnostics,
    }
}

/// The reason why the waiting tasks of a trace are unknown, by the rule and in the words of every command. The contradictions that show it are
/// counted.
fn untrusted(trace: &Trace, diagnostics: &mut Diagnostics) -> Option<String> {
    trace.has_time().ok()?;
    let outcome = Pass::over(trace.events().ok()?).run(|| UnknownParts::of(ChosenCpus::default())).ok()?;
    for issue in [EventIssue::UnseenQueue, EventIssue::SwitchPrevMismatch] {
        diagnostics.add_many(issue, outcome.diagnostics.count(issue));
    }
    let mut unknown = outcome.output;
    unknown.add_trace(trace, &outcome.diagnostics);
    unknown.doubt()
}

fn buffers(trace: &Trace) -> Vec<Buffer> {
    let counts = trace.counts();
    let buffer = |(i, info): (usize, BufferInfo)| Buffer {
        info,
        events: counts.buffers.get(i).map_or(0, parse::BufferCounts::total),
        read: trace.selected_buffers().contains(&i),
    };
    trace.info().buffers.into_iter().enumerate().map(buffer).collect()
}

fn lost(trace: &Trace, diagnostics: &Diagnostics) -> Lost {
    let names: Vec<CleanText> = trace.info().buffers.into_iter().map(|b| b.name).collect();
    let mut per_cpu = Vec::new();
    for (buffer, name) in trace.counts().buffers.iter().zip(&names) {
        let row = |c: &CpuEventCounts| LostOnCpu {
            buffer: name.clone(),
            cpu: c.cpu,
            gaps: c.gaps,
            gaps_without_count: c.gaps_uncounted,
            events: c.lost,
            gap_ns: c.gap_ns.0,
        };
        per_cpu.extend(buffer.cpus.iter().filter(|c| c.gaps > 0).map(row));
    }
    Lost {
        gaps: per_cpu.iter().map(|c| c.gaps).sum(),
        events: per_cpu.iter().map(|c| c.events).sum(),
        unmarked: diagnostics.count(FileIssue::EventsDroppedUnmarked),
        per_cpu,
    }
}

/// Whether any event occurs that the state of the run queues follows from.
fn has_scheduler_events(events: &[EventCount]) -> bool {
    let names = WANTED.iter().map(|(tracepoint, ..)| tracepoint.name());
    let is_followed = |e: &EventCount| names.clone().any(|name| e.name == name);
    events.iter().any(|e| e.system == "sched" && is_followed(e))
}

fn missing(trace: &Trace, events: &[EventCount]) -> Vec<Missing> {
    if !has_scheduler_events(events) {
        return vec![NO_SCHEDULER_EVENT];
    }
    let occurs =
        |tracepoint: Tracepoint| events.iter().any(|e| e.system == tracepoint.system() && e.name == tracepoint.name());
    // The note of a part has the state that follows from the events of the whole.
    let precedes = |tracepoint: Tracepoint| trace.past().is_some() && trace.has(tracepoint);
    let absent = |tracepoint: Tracepoint| !occurs(tracepoint) && !precedes(tracepoint);
    WANTED
        .into_iter()
        .filter(|(tracepoint, ..)| absent(*tracepoint))
        .map(|(tracepoint, affects, consequence)| {
            let at_waking = tracepoint == Tracepoint::Wakeup && !absent(Tracepoint::Waking);
            let consequence = if at_waking { QUEUED_AT_WAKING } else { consequence };
            Missing { event: tracepoint.full_name(), affects, consequence }
        })
        .collect()
}

/// Whether something of the file itself is missing, or could not be read.
fn is_damaged(r: &Report) -> bool {
    let is_of_the_kernel =
        |what: Diagnostic| what == EventIssue::EventsLost || what == FileIssue::EventsDroppedUnmarked;
    let is_damage = |what: Diagnostic| what.severity() == Severity::DataLoss && !is_of_the_kernel(what);
    r.diagnostics.iter().any(|(what, ..)| is_damage(what))
}

/// Whether the recording leaves out more than kinds of events, which are listed with the consequences.
fn is_partial(r: &Report) -> bool {
    let is_part = |what: Diagnostic| what.severity() == Severity::Incomplete && what != EventIssue::MissingEvents;
    r.diagnostics.iter().any(|(what, ..)| is_part(what))
}

fn text(r: &Report, trace: &Trace) -> String {
    let mut out = String::new();
    summary(&mut out, r, trace);
    // Writing to a string cannot fail.
    let _ = writeln!(out, "\n{:>14}  event", "count");
    for event in &r.events {
        let system = if event.system.is_empty() { "?" } else { &event.system };
        let _ = writeln!(out, "{:>14}  {system}:{}", grouped(event.count), event.name);
    }
    if r.lost.gaps > 0 {
        lost_rows(&mut out, r);
    }
    let _ = writeln!(out, "\nWhat can be done with it:");
    for m in &r.missing {
        paragraph(&mut out, &format!("{}: {} ({} was not recorded)", m.affects, m.consequence, m.event));
    }
    if let Some(why) = &r.untrusted {
        paragraph(&mut out, &format!("run queues: not to be trusted: {why}"));
    } else if r.missing.iter().all(|m| m.event == Tracepoint::Frequency.full_name()) {
        let how = match (r.lost.gaps, r.lost.unmarked) {
            _ if is_damaged(r) => "as far as the file could be read (below)",
            _ if is_partial(r) => "as far as the recording has it (below)",
            (0, 0) => "exact",
            (_, 0) => "exact, outside of the losses",
            _ => "approximate: where the events without a mark are missing is unknown",
        };
        paragraph(&mut out, &format!("dat2graph and the run queues: {how}"));
    }
    if let Err(e) = trace.has_time() {
        paragraph(&mut out, &format!("no figure: {e}"));
    }
    if r.format.is_some() {
        let file = shell_word(OsStr::new(&r.trace));
        paragraph(&mut out, &format!("trace-cmd and KernelShark: schedviz convert {file} -o trace.dat"));
    }
    if !r.diagnostics.is_empty() {
        let _ = writeln!(out, "\nWhat was noticed:");
    }
    for (what, count, first) in r.diagnostics.iter() {
        let word = match what.severity() {
            Severity::Note => "note",
            Severity::Repaired => "repaired",
            Severity::Incomplete => warnings::INCOMPLETE,
            Severity::DataLoss => "data loss",
        };
        paragraph(&mut out, &format!("{word}: {}", warnings::line(what, count, first)));
    }
    out
}

/// The maximum number of CPUs with losses that the text lists: a damaged file can have them by the ten thousand.
const LOST_ROWS: usize = 64;

/// Writes the CPUs with the most lost events, in the order of the file, and the sum of the others.
fn lost_rows(out: &mut String, r: &Report) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "\nEvents were lost:\n{:>5}  {:>7}  {:>12}  {:>14}", "CPU", "gaps", "events", "time");
    let mut by_loss: Vec<(usize, &LostOnCpu)> = r.lost.per_cpu.iter().enumerate().collect();
    by_loss.sort_by_key(|(place, c)| (Reverse((c.events, c.gaps)), *place));
    let rest = by_loss.split_off(by_loss.len().min(LOST_ROWS));
    by_loss.sort_by_key(|(place, _)| *place);
    let mut row = |cpu: &str, lost: &[(usize, &LostOnCpu)], buffer: &str| {
        let sum = |of: fn(&LostOnCpu) -> u64| lost.iter().fold(0, |sum: u64, (_, c)| sum.saturating_add(of(c)));
        let at_least = if sum(|c| c.gaps_without_count) > 0 { "\u{2265} " } else { "" };
        let events = format!("{at_least}{}", grouped(sum(|c| c.events)));
        let time = if r.span_ns.is_some() { format!("{:.6} s", sum(|c| c.gap_ns) as f64 / 1e9) } else { "-".into() };
        let line = format!("{cpu:>5}  {:>7}  {events:>12}  {time:>14}  {buffer}", sum(|c| c.gaps));
        let _ = writeln!(out, "{}", line.trim_end());
    };
    by_loss.iter().for_each(|of| row(&of.1.cpu.to_string(), &[*of], &of.1.buffer));
    if !rest.is_empty() {
        row("rest", &rest, &format!("{} more (--json)", grouped(rest.len() as u64)));
    }
}

/// The maximum number of ranges of CPUs in a line of the text.
const RANGES: usize = 12;

/// The list of these CPUs, which are in ascending order, for a line of the text.
fn in_line(cpus: &[Cpu]) -> String {
    shorten_cpu_list(cpus, RANGES)
}

/// The columns of a terminal.
const COLUMNS: usize = 80;

/// Adds an indented paragraph.
fn paragraph(out: &mut String, text: &str) {
    lines(out, COLUMNS, 2, 4, text);
}

fn summary(out: &mut String, r: &Report, trace: &Trace) {
    let info = trace.info();
    let mut line = |name: &str, value: String| {
        lines(out, COLUMNS, 0, 11, &format!("{name:<10} {value}"));
    };
    line("trace", r.trace.clone());
    let compression = if r.compression.is_empty() { String::new() } else { format!(", compression {}", r.compression) };
    let order = if info.version.endian == parse::Endian::Big { ", big endian" } else { "" };
    // Only later versions of trace-cmd write theirs.
    let unnamed = || if r.format.is_none() { "not named in the file" } else { "unknown" }.to_owned();
    let writer = r.recorder.as_ref().map(|version| {
        match version.starts_with(|c: char| c.is_ascii_digit()) && r.format.is_none() {
            true => format!("trace-cmd {version}"),
            false => version.to_string(),
        }
    });
    let writer = writer.unwrap_or_else(unnamed);
    match r.format {
        None => line("recorder", format!("{writer}, file version {}{compression}{order}", r.version)),
        Some(format) => line("recorder", format!("{writer}, {format}{compression}{order}")),
    }
    if let Some(command) = r.command.as_ref().filter(|command| !command.is_empty()) {
        let words: Vec<String> = command.iter().map(|word| shell_word(OsStr::new(word.as_str()))).collect();
        line("command", words.join(" "));
    }
    line("kernel", info.uname.map_or_else(|| "unknown".into(), String::from));
    if let Some(machine) = &r.machine {
        line("machine", machine.summary.clone());
    }
    let unit = match info.clock_kind {
        ClockKind::Nanoseconds => "nanoseconds",
        ClockKind::Cycles => "cycles",
        ClockKind::Ticks => "ticks of 10 ms",
        ClockKind::Order => "a number for each event",
    };
    let clock = match r.format {
        _ if !r.clock.is_empty() => r.clock.as_str(),
        Some(_) => "unknown",
        None => "not named in the file (trace-cmd's default is local)",
    };
    let is_rounded = r.diagnostics.count(FileIssue::RoundedTimes) > 0;
    line("clock", format!("{clock}, {}", if is_rounded { "microseconds" } else { unit }));
    if let (Some(start), Some(end), Some(span)) = (r.start_ns, r.end_ns, r.span_ns) {
        let seconds = |ts: Ts| {
            format!(
                "{}{}.{:09}",
                if ts.0 < 0 { "-" } else { "" },
                ts.0.unsigned_abs() / 1_000_000_000,
                ts.0.unsigned_abs() % 1_000_000_000
            )
        };
        line("span", format!("{:.9} s, from {} to {}", span as f64 / 1e9, seconds(start), seconds(end)));
    }
    if let Some(part) = &r.part {
        let seconds = |ns: u64| format!("{:.9}", ns as f64 / 1e9);
        let (from, to) = (seconds(part.from_in_trace_ns), seconds(part.to_in_trace_ns));
        line("part", format!("from {from} s to {to} s of a trace of {} s", seconds(part.trace_ns)));
    }
    let silent = match r.silent.as_slice() {
        [] => String::new(),
        silent => format!("; without events: {}", in_line(silent)),
    };
    line(
        "CPUs",
        match r.cpus.recorded {
            Some(recorded) => format!("{recorded} recorded, {} with events{silent}", r.cpus.observed),
            None => format!("{} with events; the file does not say how many the machine has", r.cpus.observed),
        },
    );
    for b in &r.buffers {
        let name = if b.info.name.is_empty() { "top" } else { b.info.name.as_str() };
        let cpus: Vec<Cpu> = b.info.cpus.iter().copied().map(Cpu).collect();
        let cpus = match cpus.len() {
            0 => "no data".into(),
            number => format!("{} {}", noun(number, "CPU"), in_line(&cpus)),
        };
        let unread = if b.read || b.events == 0 { "" } else { " (not read)" };
        let named = &b.info.clock;
        let pages = match r.format {
            None => format!(", pages of {} bytes", b.info.page_size),
            Some(_) => String::new(),
        };
        let clock = if *named == r.clock || named.is_empty() { String::new() } else { format!(", clock {named}") };
        let events = format!("{} {}", grouped(b.events), noun(b.events, "event"));
        line("buffer", format!("{name}: {events}, {cpus}{pages}{clock}{unread}"));
    }
    line("events", grouped(r.total_events));
    if !r.counters.is_empty() {
        line("counters", format!("{}, read at the switches", r.counters.join(", ")));
    }
    let lost = match (r.lost.gaps, r.lost.unmarked) {
        (0, 0) if r.diagnostics.count(FileIssue::UntoldLosses) > 0 => "unknown (below)".to_owned(),
        (0, 0) if is_damaged(r) => "nothing by the kernel, but not all of the file could be read (below)".to_owned(),
        (0, 0) => "nothing".to_owned(),
        (0, unmarked) => format!("{} {} without a mark of where", grouped(unmarked), noun(unmarked, "event")),
        (gaps, unmarked) => {
            let events = format!("{} {}", grouped(r.lost.events), noun(r.lost.events, "event"));
            format!("{events} in {}, {} more without a place", places(gaps), grouped(unmarked))
        }
    };
    line("lost", lost);
    guest::lines_of(&mut line, &r.pair);
    if let Some(host) = &r.pair.host {
        guest::vcpu_rows(out, host);
    }
}
