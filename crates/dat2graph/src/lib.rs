//! What every core ran at every moment.
//!
//! A lane for each CPU, time from left to right; colour tells the task, a gap is an idle core, a
//! hatched area is a time of which nothing is known. A CPU's lane follows from its own events
//! ([`LaneFold`]), so that lanes are made in parallel and a window is read from its start; the
//! same lanes come out of a merged [`sched::Pass`] ([`Timeline`]), which the tests compare.

mod color;
mod figure;
mod lane;
mod tasks;

pub use color::{ColorBy, Coloring, Needs};
pub use figure::{area_legend, draw_lanes, figure};
pub use lane::{Lane, LaneFold, Marks, Timeline};
pub use tasks::TaskTime;

use draw::Color;
use sched::{Cpu, Ts};
use serde::{Serialize, Serializer};

/// Options of this tool alone. Those that all tools share are the binary's.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DrawArgs {
    /// What a colour stands for
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub color_by: ColorBy,
    /// Only this command in colour, all others dark grey; migration/N is that of every CPU
    #[arg(long, value_name = "COMMAND")]
    pub target: Option<String>,
    /// Mark these events: SYSTEM:NAME, with * for any part; several with commas
    #[arg(long, value_name = "SYSTEM:NAME", value_delimiter = ',')]
    pub events: Vec<String>,
    /// Show each core's frequency in a second band (from power:cpu_frequency)
    #[arg(long)]
    pub frequency: bool,
}

/// What to draw, resolved.
#[derive(Clone, Debug)]
pub struct Options {
    /// The window's start,
    pub from: Ts,
    /// its end,
    pub to: Ts,
    /// and the instant that counts as zero.
    pub zero: Ts,
    /// The CPUs in display order, each with its group.
    pub cpus: Vec<(Cpu, Option<u32>)>,
    /// What the groups are: `socket`, `node`, `LLC`.
    pub group_name: String,
    /// The names of the marked events.
    pub marks: Vec<String>,
    /// Whether frequencies get a band.
    pub frequency: bool,
    /// How tasks are coloured.
    pub coloring: Coloring,
}

impl Options {
    /// How many columns a lane has. With the number of lanes this bounds the marks on the page, and
    /// so the size of the file, whatever the length of the trace.
    pub fn columns(&self) -> u32 {
        let lanes = self.cpus.len().max(1);
        (58_000 / (lanes * (self.depth() + 1))).clamp(400, 1600) as u32
    }

    /// How many classes of a column are told apart; the rest is drawn as mixed.
    pub fn depth(&self) -> usize {
        match self.cpus.len() {
            0..=24 => 3,
            25..=48 => 2,
            _ => 1,
        }
    }
}

/// The figures as numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `schedviz/dat2graph/1`.
    pub schema: &'static str,
    /// The window's start, on the trace's clock.
    pub from_ns: Ts,
    /// The window's end.
    pub to_ns: Ts,
    /// The trace's start.
    pub start_ns: Ts,
    /// One for each CPU, in display order.
    pub lanes: Vec<LaneReport>,
    /// All tasks that ran, the longest first. One that executed a program has an entry for each name.
    pub tasks: Vec<TaskReport>,
    /// The marked events.
    pub events: Vec<EventReport>,
}

/// The time of one CPU. Busy, idle, unknown and offline time add up to the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaneReport {
    /// The CPU.
    pub cpu: Cpu,
    /// Time it ran tasks.
    pub busy_ns: u64,
    /// Time it idled.
    pub idle_ns: u64,
    /// Time of which nothing is known.
    pub unknown_ns: u64,
    /// Time it was offline.
    pub offline_ns: u64,
    /// Context switches.
    pub switches: u64,
    /// Places where events were lost.
    pub gaps: u64,
}

/// The time of one task by one name.
#[derive(Clone, Debug, Serialize)]
pub struct TaskReport {
    /// Its number.
    pub pid: sched::Pid,
    /// Its name.
    pub command: sched::Comm,
    /// How long it ran.
    pub run_ns: u64,
    /// Its colour.
    #[serde(serialize_with = "hex")]
    pub color: Color,
}

fn hex<S: Serializer>(color: &Color, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&color.hex())
}

/// How often a marked event occurred.
#[derive(Clone, Debug, Serialize)]
pub struct EventReport {
    /// Its name.
    pub event: String,
    /// How often, in the window and on the CPUs shown.
    pub count: u64,
}

/// The numbers of these lanes, which are in display order.
pub fn report(lanes: &[Lane], options: &Options) -> Report {
    let tasks = lane::total(lanes);
    let count = |i: usize| lanes.iter().map(|l| l.marks.get(i).map_or(0, |m| m.count)).sum();
    Report {
        schema: "schedviz/dat2graph/1",
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
