//! The lines of every figure about its trace.

use crate::Session;
use crate::args::repeatable;
use crate::trace::ext::ExtScheduler;
use lanes::LaneReport;
use parse::FileIssue;
use sched::nouns::{counted, noun};
use sched::topology::format_cpu_list;
use sched::{Diagnostics, Dur, EventIssue};
use timeline::Sheet;
use timeline::page::Heading;
use timeline::text::paragraph;

/// The losses in the part that is shown.
pub struct Loss {
    /// The number of places where events were lost.
    pub gaps: u64,
    /// The CPU time in nanoseconds of which nothing is known.
    pub unknown_ns: u64,
    /// The CPU time in nanoseconds of all lanes together.
    pub cpu_time_ns: u64,
}

impl Loss {
    /// The losses of these lanes, over a window of this length.
    pub fn of_lanes<'l>(lanes: impl Iterator<Item = &'l LaneReport>, window: Dur) -> Loss {
        let mut loss = Loss { gaps: 0, unknown_ns: 0, cpu_time_ns: 0 };
        for lane in lanes {
            loss.gaps += lane.gaps;
            loss.unknown_ns = loss.unknown_ns.saturating_add(lane.unknown_ns);
            loss.cpu_time_ns = loss.cpu_time_ns.saturating_add(window.0);
        }
        loss
    }
}

impl Session {
    /// The surroundings of a figure that does not show where events were lost: a line reports that some were.
    pub fn general_heading(&self, diagnostics: &Diagnostics) -> Heading {
        let mut warnings = general_warnings(self, diagnostics);
        let gaps = diagnostics.count(EventIssue::EventsLost);
        if gaps > 0 {
            warnings.insert(0, format!("Events were lost in {}: what happened there is missing.", places(gaps)));
        }
        self.heading(warnings)
    }

    /// The surroundings of a figure in which the places where events were lost are hatched.
    pub fn lossy_heading(&self, loss: &Loss, diagnostics: &Diagnostics) -> Heading {
        self.heading(warnings(self, loss, diagnostics))
    }

    /// The surroundings of a figure of lanes, in which the places where events were lost are hatched.
    pub fn lanes_heading(&self, ran: &lanes::Report, diagnostics: &Diagnostics) -> Heading {
        let loss = Loss::of_lanes(ran.lanes.iter(), ran.to_ns.since(ran.from_ns));
        self.lossy_heading(&loss, diagnostics)
    }

    /// The surroundings of a figure, with these warnings.
    pub fn heading(&self, warnings: Vec<String>) -> Heading {
        Heading {
            trace: self.name(),
            facts: facts(self),
            warnings,
            command: repeatable(std::env::args_os()),
            sheet: Sheet::default(),
        }
    }
}

/// The number of places in words: `1 place`, `2 places`.
pub fn places(n: u64) -> String {
    counted(n, "place")
}

/// The line with kernel, CPUs and clock.
pub fn facts(session: &Session) -> String {
    let info = session.trace.info();
    // CPUs without any event are CPUs of the machine, too.
    let silent = session.silent().len();
    let shown = session.shown.cpus.len() + silent;
    let all = session.observed.len() + info.silent(&session.observed).len();
    let of = if shown == all { String::new() } else { format!(" of {all}") };
    let without = if silent == 0 { String::new() } else { format!(" ({silent} without any event)") };
    let clock = if info.clock.is_empty() { "local" } else { info.clock.as_str() };
    let cpus = noun(if of.is_empty() { shown } else { all }, "CPU");
    format!("Linux {}, {shown}{of} {cpus}{without}, clock {clock}", info.kernel.as_deref().unwrap_or("(unknown)"))
}

/// The warnings: losses, a cut file, CPUs without events.
pub fn warnings(session: &Session, loss: &Loss, diagnostics: &Diagnostics) -> Vec<String> {
    let mut warnings = general_warnings(session, diagnostics);
    if loss.gaps > 0 || loss.unknown_ns > 0 {
        let share = 100.0 * loss.unknown_ns as f64 / (loss.cpu_time_ns as f64).max(1.0);
        let unknown = format!("{share:.2} % of the CPU time shown is unknown (hatched).");
        let lost = match loss.gaps {
            0 => unknown,
            gaps => format!("Events were lost in {}: {unknown}", places(gaps)),
        };
        warnings.insert(0, lost);
    }
    warnings
}

/// The doubts about a trace in a line for the head of a text, with its name where `of` has one; nothing where there is none.
pub fn doubts(of: Option<&str>, diagnostics: &Diagnostics) -> Option<String> {
    let gaps = diagnostics.count(EventIssue::EventsLost);
    let lost = (gaps > 0).then(|| format!("Events were lost in {}: what happened there is missing.", places(gaps)));
    let all: Vec<String> = lost.into_iter().chain(warnings_of_trace(diagnostics, "the numbers")).collect();
    let of = of.map_or_else(|| "Doubts: ".to_owned(), |name| format!("Doubts about {name}: "));
    (!all.is_empty()).then(|| of + &all.join(" "))
}

/// The warnings without the losses that have a place.
pub fn general_warnings(session: &Session, diagnostics: &Diagnostics) -> Vec<String> {
    let mut warnings = warnings_of_trace(diagnostics, "the figure");
    warnings.extend(session.sched_ext.as_ref().map(ExtScheduler::sentence));
    warnings.extend(session.doubtful_topology());
    let silent = session.silent();
    if !silent.is_empty() {
        warnings.push(format!("CPUs without any event, neither idle nor busy: {}", format_cpu_list(&silent)));
    }
    warnings
}

/// The warnings that follow from the findings about a trace alone, on what they make doubtful.
fn warnings_of_trace(diagnostics: &Diagnostics, what: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    let dropped = diagnostics.count(FileIssue::EventsDroppedUnmarked);
    if dropped > 0 {
        warnings.push(format!(
            "{} counted by the recorder, missing without a mark: parts of {what} may be wrong.",
            counted(dropped, "event")
        ));
    }
    if diagnostics.count(FileIssue::TruncatedData) > 0 {
        warnings.push("The file was cut: what precedes the cut is shown.".into());
    }
    if diagnostics.count(FileIssue::OverlappingData) > 0 {
        warnings.push("The file's table of CPUs is damaged: the data of some are missing.".into());
    }
    if let Some(cpus) = diagnostics.detail(FileIssue::ClocksApart) {
        warnings.push(format!(
            "The clocks of CPUs {cpus} are not in step with the others: the order of events between CPUs is unknown."
        ));
    }
    if let Some(names) = diagnostics.detail(EventIssue::MissingEvents) {
        warnings.push(format!("Not recorded: {names}. Waiting tasks are known in part."));
    }
    if diagnostics.count(EventIssue::SwitchPrevMismatch) > 0 {
        warnings.push("Switches were not recorded, by a filter perhaps: running tasks are known in part.".into());
    }
    if diagnostics.count(FileIssue::FastWindow) > 0 {
        warnings.push(
            "Read from shortly before the window on (--fast-window): tasks that waited unseen are missing.".into(),
        );
    }
    warnings
}

/// A text with the application in words behind its head, the lines before the first empty one.
pub fn with_words(application: Option<&str>, text: String) -> String {
    let Some(application) = application else { return text };
    let mut words = String::new();
    paragraph(&mut words, 2, 3, &format!("(application: {application})"));
    match text.split_once("\n\n") {
        Some((head, rest)) => format!("{head}\n{words}\n{rest}"),
        None => format!("{text}{words}"),
    }
}
