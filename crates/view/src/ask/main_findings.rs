//! The main findings about a trace, with the place and the list of the page that each speaks of.

use crate::ask::questions::ListKind;
use sched::{Cpu, Pid, Ts};
use serde_json::{Value, json};

/// The main findings about a trace, the costliest first.
#[derive(Clone, Debug, Default)]
pub struct MainFindings {
    /// The unit of the costs in words.
    pub unit: String,
    /// The sentence that replaces findings where there is none.
    pub nothing: Option<String>,
    /// The findings, in the order of their ranks.
    pub findings: Vec<MainFinding>,
}

/// One of the main findings about a trace.
#[derive(Clone, Debug)]
pub struct MainFinding {
    /// The finding in one sentence.
    pub sentence: String,
    /// The cost and the certainty in words; nothing for a finding that is about the trace itself.
    pub price: Option<String>,
    /// The command line that looks closer.
    pub command: String,
    /// The place that the sentence speaks of, where it speaks of one.
    pub place: Option<MainPlace>,
    /// The list of the page that has more of the kind, where there is one.
    pub list: Option<ListKind>,
}

/// The place on the time axis that a finding speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MainPlace {
    /// The start of the stretch, on the clock of the trace.
    pub from: Ts,
    /// The end of the stretch, on the clock of the trace.
    pub to: Ts,
    /// The CPU of the stretch.
    pub cpu: Cpu,
    /// The task of the stretch, where it has one.
    pub pid: Option<Pid>,
    /// The further answer that the page has about the stretch.
    pub more: MainMore,
}

/// A further answer of the page about the place of a finding, beyond showing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MainMore {
    /// Why the task waited: the stretch is a wait of it.
    Wait,
    /// The steps of an episode of violation.
    Steps,
    /// No further answer: the place is shown, and that is all.
    Nothing,
}

impl MainFindings {
    /// The answer to the page, with times from `zero`.
    pub(crate) fn answer(&self, zero: Ts) -> Value {
        let place = |place: MainPlace| {
            let MainPlace { from, to, cpu, pid, more } = place;
            let more = match more {
                MainMore::Wait => Some("wait"),
                MainMore::Steps => Some("steps"),
                MainMore::Nothing => None,
            };
            json!({ "from": from.since(zero).0, "to": to.since(zero).0, "cpu": cpu, "pid": pid, "more": more })
        };
        let row = |finding: &MainFinding| {
            json!({
                "sentence": finding.sentence, "price": finding.price, "command": finding.command,
                "place": finding.place.map(place), "list": finding.list.map(ListKind::name),
            })
        };
        let findings: Vec<Value> = self.findings.iter().map(row).collect();
        json!({ "unit": self.unit, "nothing": self.nothing, "findings": findings })
    }
}
