//! The results of other commands that the page shows.

use super::{critical_path, main_findings, missed, run_measures, selection_table, story, task_groups, vcpus};
use crate::{
    AskedPart, Commands, Drawing, EpisodeStory, Finding, Follow, Format, FoundTable, MainFindings, MissedSteals,
    PathFinding, PathOf, Plotted, RunMeasures, TableBy, TaskEntry, TaskGroupings, ViolationList,
};
use anyhow::{Context, Result};
use membership::StackHistory;
use plot::{Background, KeptPlot, LaneKind, PlotReport};
use sched::pass::Window;
use sched::topology::format_cpu_list;
use sched::{Diagnostic, Diagnostics, Severity, Ts};
use session::Session;
use session::host::Vcpus;
use session::warnings;

/// The traces that are shown, with the specifications of `--plot`, and what the host did with the vCPUs of a guest.
pub(super) struct Sessions<'s> {
    pub(super) all: &'s [Session],
    pub(super) plots: &'s [String],
    pub(super) vcpus: Option<&'s Vcpus>,
}

impl Sessions<'_> {
    pub(super) fn of(&self, trace: usize) -> Result<&Session> {
        self.all.get(trace).context("no such trace")
    }

    /// The vCPUs, where their figure has this place: behind those of `--plot`.
    fn host(&self, plot: usize) -> Option<&Vcpus> {
        self.vcpus.filter(|_| plot == self.plots.len())
    }

    fn named(&self, plot: usize) -> Result<&str> {
        self.plots.get(plot).map(String::as_str).context("no such specification")
    }
}

/// An answer to the page: the chain of an error becomes one line.
fn answered<T>(answer: Result<T>) -> Result<T, String> {
    answer.map_err(|e| format!("{e:#}"))
}

/// The findings of these diagnostics, and what else is doubtful about a trace.
fn findings(session: &Session, diagnostics: &Diagnostics) -> Vec<Finding> {
    let of = |(kind, count, first): (Diagnostic, u64, Option<&str>)| Finding {
        kind: Some(kind),
        severity: kind.severity(),
        text: warnings::line(kind, count, first),
    };
    let mut findings: Vec<Finding> = diagnostics.iter().map(of).collect();
    let doubt = |text: String, severity| Finding { kind: None, severity, text };
    findings.extend(session.doubtful_topology().into_iter().map(|text| doubt(text, Severity::Repaired)));
    let silent = session.silent();
    if !silent.is_empty() {
        let text = format!("CPUs without any event, neither idle nor busy: {}", format_cpu_list(&silent));
        findings.push(doubt(text, Severity::Note));
    }
    findings
}

/// All that a specification draws in a trace, with the meaning of its rows.
fn plotted(session: &Session, named: &str) -> Result<Plotted> {
    let KeptPlot { spec, report, drawn } = plot::kept(session, named)?;
    let grey = spec.lanes.background == Background::Grey;
    let by = match spec.lanes.by {
        LaneKind::Cpu => "cpu".to_owned(),
        LaneKind::Task => "task".to_owned(),
        LaneKind::Field(field) => field.text,
    };
    Ok(Plotted { name: named.to_owned(), about: spec.about, by, grey, is_of_host: false, report, drawn })
}

impl Commands for Sessions<'_> {
    fn figure(&self, trace: usize, drawing: &Drawing, format: Format) -> Result<Vec<u8>, String> {
        answered(self.draw(trace, drawing, format))
    }

    fn command(&self, trace: usize, drawing: &Drawing) -> Result<String, String> {
        answered(self.line(trace, drawing))
    }

    fn missed_steals(&self, trace: usize, part: &AskedPart) -> Result<MissedSteals, String> {
        answered(self.of(trace).and_then(|session| missed::of(session, part)))
    }

    fn violations(&self, trace: usize, part: &AskedPart) -> Result<ViolationList, String> {
        answered(self.of(trace).and_then(|session| missed::violations(session, part)))
    }

    fn main_findings(&self, trace: usize) -> Result<MainFindings, String> {
        answered(self.of(trace).and_then(main_findings::of))
    }

    fn task_groups(&self, trace: usize, tasks: &[TaskEntry]) -> Result<TaskGroupings, String> {
        answered(self.of(trace).and_then(|session| task_groups::of(session, tasks)))
    }

    fn stack_history(&self, trace: usize) -> Result<StackHistory, String> {
        answered(self.of(trace).and_then(Session::stack_history))
    }

    fn story(&self, trace: usize, at: Ts, follow: &Follow<'_>) -> Result<EpisodeStory, String> {
        answered(self.of(trace).and_then(|session| story::of(session, at, follow)))
    }

    fn critical_path(&self, trace: usize, of: PathOf, window: Window) -> Result<PathFinding, String> {
        answered(self.of(trace).and_then(|session| critical_path::of(session, of, window)))
    }

    fn table(&self, trace: usize, by: TableBy, ask: &AskedPart) -> Result<FoundTable, String> {
        answered(self.of(trace).and_then(|session| selection_table::of(session, by, ask)))
    }

    fn run_measures(&self, trace: usize, part: &AskedPart) -> Result<RunMeasures, String> {
        answered(self.of(trace).and_then(|session| run_measures::of(session, part)))
    }

    fn findings(&self, trace: usize, diagnostics: &Diagnostics) -> Result<Vec<Finding>, String> {
        answered(self.of(trace).map(|session| findings(session, diagnostics)))
    }

    fn plots(&self) -> Vec<String> {
        self.plots.iter().cloned().chain(self.vcpus.map(|_| vcpus::NAME.to_owned())).collect()
    }

    fn plot(&self, trace: usize, plot: usize) -> Result<Plotted, String> {
        answered(self.of(trace).and_then(|session| match self.host(plot) {
            Some(vcpus) => vcpus::plotted(session, vcpus),
            None => plotted(session, self.named(plot)?),
        }))
    }

    fn plot_numbers(&self, trace: usize, plot: usize, from: Ts, to: Ts) -> Result<PlotReport, String> {
        answered(self.of(trace).and_then(|session| match self.host(plot) {
            Some(vcpus) => vcpus::numbers(session, vcpus, from, to),
            None => plot::numbers(session, self.named(plot)?, from, to),
        }))
    }
}
