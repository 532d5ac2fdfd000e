//! The other commands of the program, as far as the page shows their results.

use crate::ask::drawing::{Drawing, Format};
use crate::ask::missed::MissedSteals;
use crate::ask::plots::Plotted;
use crate::ask::story::{EpisodeStory, Follow};
use plot::PlotReport;
use sched::{Diagnostic, Diagnostics, Severity, Ts};

/// A finding about a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of finding; nothing for one that follows from the machine alone.
    pub kind: Option<Diagnostic>,
    /// Its effect on the figures.
    pub severity: Severity,
    /// The finding in words, with its number.
    pub text: String,
}

/// The other commands, for the traces that are shown. An error is the reason for which there is no answer.
pub trait Commands: Sync {
    /// A window as a figure of `dat2graph`.
    fn figure(&self, trace: usize, drawing: &Drawing, format: Format) -> Result<Vec<u8>, String>;

    /// The command line that draws the same figure.
    fn command(&self, trace: usize, drawing: &Drawing) -> Result<String, String>;

    /// The missed steals of a trace, as `why` counts them.
    fn missed_steals(&self, trace: usize) -> Result<MissedSteals, String>;

    /// The episode of violation at an instant, step by step as `why` prints it. `follow` follows the trace around it.
    fn story(&self, trace: usize, at: Ts, follow: &Follow<'_>) -> Result<EpisodeStory, String>;

    /// The findings about a trace, as `info` reports them, from the diagnostics of reading it.
    fn findings(&self, trace: usize, diagnostics: &Diagnostics) -> Result<Vec<Finding>, String>;

    /// The names of the specifications whose figures are shown over and under the lanes.
    fn plots(&self) -> Vec<String>;

    /// The figure of a specification in the whole trace.
    fn plot(&self, trace: usize, plot: usize) -> Result<Plotted, String>;

    /// The numbers of a specification in a window, as `plot` gives them.
    fn plot_numbers(&self, trace: usize, plot: usize, from: Ts, to: Ts) -> Result<PlotReport, String>;
}
