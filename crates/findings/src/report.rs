//! The ranked findings: as numbers, and as a text.

use crate::consisted::PathConsisted;
use crate::observe::{Observed, Observer};
use crate::path_time::OnPath;
use crate::sentence::sentence;
use crate::{Certainty, CostUnit, Doubts, FindingPlace, Measurements, Observation};
use path::OfTask;
use sched::{Dur, Ts};
use serde::Serialize;
use std::cmp::Reverse;
use timeline::Drawable;
use timeline::text::paragraph;

/// The maximum number of findings.
const MOST: usize = 8;

/// The name and the version of the document.
pub(crate) const SCHEMA: &str = "schedviz/findings/1";

/// A finding, in its place among the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankedFinding {
    /// The finding in one sentence.
    pub sentence: String,
    /// The time that it cost, in nanoseconds, in the unit of the report; null where no analysis measures that.
    pub cost_ns: Option<u64>,
    /// The certainty of its numbers.
    pub certainty: Certainty,
    /// The command that looks closer, with its options and without the trace.
    pub command: String,
    /// The kind of the finding with its numbers.
    pub observation: Observation,
    /// The stretch of the trace that the finding speaks of, or the longest of its kind.
    #[serde(skip)]
    pub place: Option<FindingPlace>,
}

/// The critical path of the traced command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathEnd {
    /// The task at the end of the path.
    #[serde(flatten)]
    pub task: OfTask,
    /// The length of the path, in nanoseconds.
    pub length_ns: Dur,
    /// The part of the path that is unknown, in nanoseconds.
    pub unknown_ns: u64,
}

/// The findings about a window.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FindingsReport {
    /// The name and version of the schema, `schedviz/findings/1`.
    pub schema: &'static str,
    /// The start of the window, in nanoseconds of the trace's clock.
    pub from_ns: Ts,
    /// The end of the window, in nanoseconds of the trace's clock.
    pub to_ns: Ts,
    /// The length of the window, in nanoseconds.
    pub window_ns: Dur,
    /// The time that costs are measured in.
    pub cost_unit: CostUnit,
    /// The application in words: `none` with the reason, the choice, or the tasks that work for it; absent where it is the traced command with what
    /// descends from it, or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// The critical path of the traced command; absent where the trace does not show it, or where too much of it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathEnd>,
    /// The time that this path consisted of, which the first sentence is about; absent where the path is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consisted: Option<PathConsisted>,
    /// The findings, the costliest first; those about the trace itself follow. At most eight.
    pub findings: Vec<RankedFinding>,
    /// The sentence that replaces findings where there is none; absent where there are findings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nothing: Option<String>,
}

impl RankedFinding {
    /// Returns the cost and the certainty in words; nothing for a finding that is about the trace itself.
    pub fn price(&self) -> Option<String> {
        let cost = match self.cost_ns {
            _ if self.observation.is_doubt() => return None,
            Some(ns) => format!("cost {}", Dur(ns).human()),
            None => "cost unknown".to_owned(),
        };
        Some(format!("{cost}; {}", self.certainty.word()))
    }

    /// Returns the command that looks closer, and its options, each with its value.
    pub fn closer(&self) -> (&str, Vec<String>) {
        match self.command.split_once(' ') {
            None => (&self.command, Vec::new()),
            Some((command, option)) => (command, vec![option.to_owned()]),
        }
    }

    /// Returns the trace for that command, which reads the window of the findings; a command on the whole file has neither window
    /// nor CPUs.
    pub fn on(&self, trace: &Drawable) -> Drawable {
        if self.observation.is_on_file() { trace.of_file() } else { trace.in_window() }
    }
}

impl FindingsReport {
    /// Returns the unit of the costs in words, with the critical path.
    pub fn unit(&self) -> String {
        let path = self.path.as_ref().map(|end| {
            let task = end.task.pid.named(end.task.command);
            let unknown = 100.0 * end.unknown_ns as f64 / (end.length_ns.0 as f64).max(1.0);
            let unknown = if unknown >= 0.05 { format!(", {unknown:.1} % of it unknown") } else { String::new() };
            format!("the critical path of {task}, {} long{unknown}", end.length_ns.human())
        });
        match (self.cost_unit, path) {
            (CostUnit::CriticalPath, Some(path)) => format!("time on {path}"),
            (_, Some(path)) => format!("CPU time lost; no finding costs 5 % of {path}"),
            (_, None) => "CPU time lost".to_owned(),
        }
    }
}

/// Ranks what the analyses measured in a window.
pub fn findings(found: &Measurements, doubts: &Doubts) -> FindingsReport {
    let observer = Observer::new(found, doubts);
    let ranked = ranked(observer.all(), observer.least_cost());
    let end = found.path.as_ref().and_then(|path| {
        let (length_ns, unknown_ns) = (path.to_ns.since(path.from_ns), path.times.unknown_ns);
        Some(PathEnd { task: path.task?, length_ns, unknown_ns })
    });
    let task = end.as_ref().map(|end| end.task.pid.named(end.task.command));
    let of_path = task.as_deref().zip(end.as_ref().map(|end| end.length_ns.0));
    let finding = |(observation, cost_ns, certainty): Observed| {
        let (command, options) = observation.command();
        let command = [&[command], options].concat().join(" ");
        let (sentence, place) = (sentence(&observation, OnPath(of_path)), FindingPlace::find(&observation, found));
        RankedFinding { sentence, cost_ns, certainty, command, observation, place }
    };
    FindingsReport {
        schema: SCHEMA,
        from_ns: found.workcons.from_ns,
        to_ns: found.workcons.to_ns,
        window_ns: found.workcons.window_ns,
        cost_unit: if observer.is_by_path { CostUnit::CriticalPath } else { CostUnit::CpuTimeLost },
        application: doubts.application.clone(),
        path: end.filter(|_| observer.path.is_some()),
        consisted: observer.path.as_ref().and_then(|path| PathConsisted::of(path, found, observer.of_path())),
        nothing: ranked.is_empty().then(|| observer.nothing()),
        findings: ranked.into_iter().map(finding).collect(),
    }
}

/// The findings in their order, without those that cost less than the least. Those about the trace itself are never among those that are left out.
pub(crate) fn ranked(all: Vec<Observed>, least_cost: u64) -> Vec<Observed> {
    let (doubts, mut ranked): (Vec<Observed>, Vec<Observed>) =
        all.into_iter().partition(|(observation, ..)| observation.is_doubt());
    // Without a cost it delayed nothing: a task that starved beside the path of the command, a herd that nobody waited for.
    ranked.retain(|(_, cost, _)| cost.is_none_or(|cost| cost >= least_cost));
    // Stable: among equals the order of the kinds decides.
    ranked.sort_by_key(|(observation, cost, _)| (!observation.is_asked(), Reverse(*cost)));
    // A part of the queued time stands behind the whole of it.
    let first = |is_it: fn(&Observation) -> bool| ranked.iter().position(|(observation, ..)| is_it(observation));
    if let (Some(part), Some(whole)) = (first(Observation::is_on_some_waiting), first(Observation::is_on_all_waiting))
        && part < whole
    {
        ranked[part..=whole].rotate_right(1);
    }
    ranked.truncate(MOST - doubts.len());
    ranked.extend(doubts);
    ranked
}

/// Adds the application in words, where they are needed.
fn put_application(out: &mut String, report: &FindingsReport) {
    if let Some(application) = &report.application {
        paragraph(out, 2, 3, &format!("(application: {application})"));
    }
}

/// The report for people.
pub fn text(report: &FindingsReport, trace: &Drawable) -> String {
    let mut out = String::new();
    if let Some(nothing) = &report.nothing {
        let first = report.consisted.as_ref().map_or(String::new(), |consisted| format!("{} ", consisted.sentence));
        let certainty = report.consisted.as_ref().map_or(String::new(), |c| format!(" [{}]", c.certainty.word()));
        paragraph(&mut out, 0, 2, &format!("{trace}: {first}{nothing}{certainty}"));
        put_application(&mut out, report);
        return out;
    }
    let number = sched::nouns::counted(report.findings.len(), "finding");
    match &report.consisted {
        Some(consisted) => {
            paragraph(&mut out, 0, 2, &format!("{trace}: {}", consisted.sentence));
            paragraph(&mut out, 2, 2, &format!("[{}]", consisted.certainty.word()));
            out.push('\n');
            paragraph(&mut out, 0, 2, &format!("{number}, the costliest first"));
        }
        None => paragraph(&mut out, 0, 2, &format!("{trace}: {number}, the costliest first")),
    }
    paragraph(&mut out, 2, 3, &format!("(cost: {}; costs overlap)", report.unit()));
    put_application(&mut out, report);
    for (nth, finding) in (1..).zip(&report.findings) {
        out.push('\n');
        paragraph(&mut out, 0, 3, &format!("{nth}. {}", finding.sentence));
        if let Some(price) = finding.price() {
            paragraph(&mut out, 3, 3, &format!("[{price}]"));
        }
        let (command, options) = finding.closer();
        finding.on(trace).command(&mut out, 3, command, &options);
    }
    let mut places = (1..).zip(&report.findings).filter_map(|(nth, finding)| Some((nth, finding.place?)));
    if let Some((nth, place)) = places.next() {
        trace.next_view(&mut out, &format!("a place of finding {nth}"), &place.on_page());
    }
    out
}
