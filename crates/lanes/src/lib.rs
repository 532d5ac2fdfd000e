//! The task that ran on each CPU at each moment: the ground of the figures with a lane for each CPU.
//!
//! In goes a trace, out come lanes: a colour for a task, a gap for an idle CPU, hatching for an unknown task. A lane depends on
//! the events of its CPU alone ([`LaneFold`]), so that lanes are built in parallel and a window is read from its start. A merged
//! [`sched::Pass`] builds the same lanes ([`Timeline`]); the tests compare both. Begin reading in `lane.rs`, then `read.rs`.
//!
//! ```
//! use lanes::{Coloring, Options, Timeline, report};
//! use sched::{Cpu, Pass, Ts};
//!
//! // A task waits on CPU 0 for 200 ns while CPU 1 idles.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options {
//!     from: Ts(100),
//!     to: Ts(600),
//!     zero: Ts(100),
//!     cpus: vec![(Cpu(0), None), (Cpu(1), None)],
//!     all_cpus: Vec::new(),
//!     group_name: String::new(),
//!     marks: Vec::new(),
//!     frequency: false,
//!     coloring: Coloring::default(),
//!     groups: None,
//!     pictures: 1,
//!     siblings: Vec::new(),
//! };
//! let outcome = Pass::over(events.as_slice()).run(|| Timeline::new(&options)).unwrap_or_else(|never| match never {});
//! let report = report(&outcome.output, &options);
//! assert_eq!((report.lanes[0].busy_ns, report.lanes[1].busy_ns), (500, 50));
//! ```

mod color;
mod figure;
mod groups;
mod lane;
mod names;
mod read;
mod tasks;

pub use color::{ColorBy, Coloring, Needs};
pub use figure::{Overlay, area_legend, draw_lanes, draw_pale_lanes, figure, figure_with};
pub use groups::{LaneGroups, LanesOf, MANY_LANES};
pub use lane::{Lane, LaneFold, Marks, NamedRun, Timeline};
pub use read::{Mark, learn, learn_colors, read_lanes};
pub use tasks::TaskTime;

use draw::Color;
use sched::{Cpu, Ts};
use serde::{Serialize, Serializer};
use timeline::Columns;

/// The name and version of the document's schema.
pub const SCHEMA: &str = "schedviz/dat2graph/1";

/// The resolved options of the figure.
#[derive(Clone, Debug)]
pub struct Options {
    /// The start of the window.
    pub from: Ts,
    /// The end of the window.
    pub to: Ts,
    /// The instant at which the time axis is zero.
    pub zero: Ts,
    /// The CPUs in display order, each with its group, if it has one.
    pub cpus: Vec<(Cpu, Option<u32>)>,
    /// All CPUs that have a lane, in display order: those of `cpus`, and those without any event. Empty where there is
    /// none of these.
    pub all_cpus: Vec<(Cpu, Option<u32>)>,
    /// The kind of the groups: `socket`, `node` or `LLC`; empty if there are none.
    pub group_name: String,
    /// The names of the marked events.
    pub marks: Vec<String>,
    /// Whether each lane has a band that shows the frequency.
    pub frequency: bool,
    /// The colouring of tasks.
    pub coloring: Coloring,
    /// The groups of CPUs that have a lane each; none where each CPU has its own.
    pub groups: Option<LaneGroups>,
    /// The number of pictures of lanes in the figure, at least one.
    pub pictures: u32,
    /// The CPUs that have SMT siblings, in ascending order, each with the first CPU of its core (`Topology::siblings`). Empty where none has any,
    /// or where the topology does not show it.
    pub siblings: Vec<(Cpu, Cpu)>,
}

/// The columns of the lanes of all CPUs of a figure together where there are many. Each has up to three marks: for a task, for
/// the others and for unknown time.
const COLUMNS_OF_CPUS: usize = 14_000;
/// The marks of all lanes of groups together.
const MARKS_OF_GROUPS: usize = 20_000;

impl Options {
    /// Returns the CPUs that have a lane or a part in one, in display order, each with its group.
    pub fn drawn(&self) -> &[(Cpu, Option<u32>)] {
        if self.all_cpus.is_empty() { &self.cpus } else { &self.all_cpus }
    }

    /// Returns the number of lanes.
    pub fn lane_count(&self) -> usize {
        match &self.groups {
            Some(groups) => groups.count(),
            None => self.cpus.len().max(self.all_cpus.len()),
        }
    }

    /// Returns the number of columns of a lane. With the number of lanes it bounds the marks on the page, and
    /// so the size of the file, whatever the length of the trace.
    pub fn columns(&self) -> u32 {
        let pictures = self.pictures.max(1) as usize;
        let of_cpus = match self.cpus.len().max(1) {
            few @ 0..=MANY_LANES => (58_000 / (few * (self.depth_of_cpus() + 1))).clamp(400, 1600),
            // The pictures of a figure show episodes, in which less happens.
            many => (COLUMNS_OF_CPUS / (many * pictures.div_ceil(2))).clamp(24, 400),
        };
        let Some(groups) = &self.groups else { return of_cpus as u32 };
        // The columns of groups lie within those of CPUs.
        let fitting = MARKS_OF_GROUPS / (groups.count().max(1) * (self.depth() + 1) * pictures);
        (fitting.clamp(100, 1600) / of_cpus * of_cpus).max(of_cpus) as u32
    }

    /// Returns the number of classes that are distinguished in a column; the others are drawn as mixed.
    pub fn depth(&self) -> usize {
        match &self.groups {
            Some(groups) if groups.count() <= 32 => 4,
            Some(_) => 3,
            None => self.depth_of_cpus(),
        }
    }

    /// Returns these lanes in as many columns as they have where each CPU is drawn by itself, and the options of that.
    pub fn apart(&self, mut lanes: Vec<Lane>) -> (Vec<Lane>, Options) {
        let options = Options { groups: None, ..self.clone() };
        if self.groups.is_some() && options.columns() != self.columns() {
            lanes.iter_mut().for_each(|lane| {
                let mut columns = Columns::new(self.from, self.to, options.columns());
                lane.pieces.iter().for_each(|piece| columns.push_piece(piece));
                lane.pieces = columns.finish();
            });
        }
        (lanes, options)
    }

    fn depth_of_cpus(&self) -> usize {
        match self.cpus.len() {
            0..=24 => 3,
            25..=48 => 2,
            _ => 1,
        }
    }

    /// Returns the number of steps in which the height of a share is drawn.
    pub(crate) fn levels(&self) -> i32 {
        match &self.groups {
            Some(_) => 32,
            None if self.cpus.len() > MANY_LANES => 4,
            None => 16,
        }
    }
}

/// The numbers of the figure.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The schema of the document: `schedviz/dat2graph/1`.
    pub schema: &'static str,
    /// The start of the window, in nanoseconds of the trace's clock.
    pub from_ns: Ts,
    /// The end of the window, in nanoseconds of the trace's clock.
    pub to_ns: Ts,
    /// The start of the trace, in nanoseconds of its clock.
    pub start_ns: Ts,
    /// The times of each CPU, in display order.
    pub lanes: Vec<LaneReport>,
    /// All tasks that ran, the longest first. A task that executed a program has an entry for each name.
    pub tasks: Vec<TaskReport>,
    /// The number of occurrences of each marked event.
    pub events: Vec<EventReport>,
}

/// The times of one CPU. Busy, idle, unknown and offline time add up to the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneReport {
    /// The number of the CPU.
    pub cpu: Cpu,
    /// The time that the CPU ran tasks, in nanoseconds.
    pub busy_ns: u64,
    /// The time that the CPU was idle, in nanoseconds.
    pub idle_ns: u64,
    /// The time for which the running task is unknown, in nanoseconds.
    pub unknown_ns: u64,
    /// The time that the CPU was offline, in nanoseconds.
    pub offline_ns: u64,
    /// The number of context switches.
    pub switches: u64,
    /// The number of places where events were lost.
    pub gaps: u64,
}

/// The run time of one task by one name.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskReport {
    /// The PID of the task.
    pub pid: sched::Pid,
    /// The command name of the task.
    pub command: sched::Comm,
    /// The time that the task ran by this name, in nanoseconds.
    pub run_ns: u64,
    /// The colour of the task in the figure.
    #[serde(serialize_with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub color: Color,
}

fn hex<S: Serializer>(color: &Color, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&color.hex())
}

/// The number of occurrences of a marked event.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventReport {
    /// The name of the event.
    pub event: String,
    /// The number of occurrences in the window on the CPUs shown.
    pub count: u64,
}

/// Returns the numbers of these lanes, which are in display order.
pub fn report(lanes: &[Lane], options: &Options) -> Report {
    let tasks = lane::total(lanes);
    let count = |i: usize| lanes.iter().map(|l| l.marks.get(i).map_or(0, |m| m.count)).sum();
    Report {
        schema: SCHEMA,
        from_ns: options.from,
        to_ns: options.to,
        start_ns: options.zero,
        lanes: lanes.iter().map(|l| l.report.clone()).collect(),
        tasks: tasks
            .iter()
            .map(|t| TaskReport { pid: t.pid, command: t.comm, run_ns: t.ns, color: options.coloring.paint(t.class) })
            .collect(),
        events: options
            .marks
            .iter()
            .enumerate()
            .map(|(i, name)| EventReport { event: name.clone(), count: count(i) })
            .collect(),
    }
}
