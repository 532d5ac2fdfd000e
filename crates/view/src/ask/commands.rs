//! The other commands of the program, as far as the page shows their results.

use crate::ask::critical_path::{PathFinding, PathOf};
use crate::ask::drawing::{Drawing, Format};
use crate::ask::main_findings::MainFindings;
use crate::ask::missed::{MissedSteals, ViolationList};
use crate::ask::plots::Plotted;
use crate::ask::run_measures::RunMeasures;
use crate::ask::selection_table::{AskedPart, FoundTable, TableBy};
use crate::ask::story::{EpisodeStory, Follow};
use crate::ask::task_groups::TaskGroupings;
use crate::columns::tasks::TaskEntry;
use membership::StackHistory;
use plot::PlotReport;
use sched::pass::Window;
use sched::{Diagnostic, Diagnostics, Severity, Ts};

/// A finding about a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of finding; nothing for one that follows from the machine alone.
    pub kind: Option<Diagnostic>,
    /// The effect of the finding on the figures.
    pub severity: Severity,
    /// The finding in words, with its number.
    pub text: String,
}

/// The other commands of the program, for the traces that are shown. `trace` is the number of a trace in the order in
/// which [`Site::new`](crate::Site::new) got them; an implementation may be called from several threads at once. An
/// error is the reason for which there is no answer, which the page shows.
pub trait Commands: Sync {
    /// Draws a window of the trace with this number as `dat2graph` would, and returns the bytes of the file. Called at
    /// each request for a file; may read the trace.
    fn figure(&self, trace: usize, drawing: &Drawing, format: Format) -> Result<Vec<u8>, String>;

    /// Returns the command line that draws the same figure, as a shell takes it.
    fn command(&self, trace: usize, drawing: &Drawing) -> Result<String, String>;

    /// Counts the missed steals of a part of a trace as `why` does; where some tasks are chosen, these are the waiters. Called once for a
    /// whole trace, at the first request for them, and at each request for those of a part; may take as long as a pass.
    fn missed_steals(&self, trace: usize, part: &AskedPart) -> Result<MissedSteals, String>;

    /// Lists the episodes of violation of a part of a trace with chosen tasks as the waiters, as `workcons` does. Called at each request;
    /// may take as long as a pass.
    fn violations(&self, trace: usize, part: &AskedPart) -> Result<ViolationList, String>;

    /// Ranks the main findings about a trace as `findings` does. Called once for a trace, at the first request for them; may
    /// take as long as a pass.
    fn main_findings(&self, trace: usize) -> Result<MainFindings, String>;

    /// Learns the groups of the tasks of a trace, by command, process and cgroup, each as it is at the end of the trace. `tasks` are all
    /// tasks of the page, and the answer has them in the same order. Called once for a trace, at the first request for them; may read
    /// the trace.
    fn task_groups(&self, trace: usize, tasks: &[TaskEntry]) -> Result<TaskGroupings, String>;

    /// Learns the stack of the latest switch-out of each task at any instant, as `--by stack` does. Called once for a trace with stacks, at
    /// the first request for them; may take as long as a pass.
    fn stack_history(&self, trace: usize) -> Result<StackHistory, String>;

    /// Describes the episode of violation at an instant, step by step as `why` prints it. The implementation passes its
    /// analysis to `follow`, once, which follows the part of the trace around the episode; it must not read the trace
    /// itself.
    fn story(&self, trace: usize, at: Ts, follow: &Follow<'_>) -> Result<EpisodeStory, String>;

    /// Finds the critical path of the application, or of another task, in a window of a trace as `path` does. Called at the first request for
    /// the row of a path, and at each request for the numbers of a part; one call at a time, which may take as long as a pass. An
    /// instant from which a path goes back is the end of the window.
    fn critical_path(&self, trace: usize, of: PathOf, window: Window) -> Result<PathFinding, String>;

    /// Makes the table of a window by `latency`, `why` and the runs and moves of tasks. Called at each request for another window, other tasks
    /// or other rows, once at a time for each trace; may take as long as a pass.
    fn table(&self, trace: usize, by: TableBy, ask: &AskedPart) -> Result<FoundTable, String>;

    /// Measures a part of a run as `compare` does. Called at each request; may take as long as a pass.
    fn run_measures(&self, trace: usize, part: &AskedPart) -> Result<RunMeasures, String>;

    /// Returns the findings about a trace, as `info` reports them, in any order. `diagnostics`: those of reading the
    /// whole trace.
    fn findings(&self, trace: usize, diagnostics: &Diagnostics) -> Result<Vec<Finding>, String>;

    /// Returns the names of the specifications whose figures are shown over and under the lanes. Their number and order
    /// must not change: places in this list are the numbers that `plot` and `plot_numbers` get.
    fn plots(&self) -> Vec<String>;

    /// Makes the figure of a specification in the whole trace. Called once for each trace and specification, at the
    /// first request.
    fn plot(&self, trace: usize, plot: usize) -> Result<Plotted, String>;

    /// Measures a specification in a window, as `plot` does. `from` is at most `to`, and both are within the trace.
    fn plot_numbers(&self, trace: usize, plot: usize, from: Ts, to: Ts) -> Result<PlotReport, String>;
}
