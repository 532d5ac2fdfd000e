//! The colours of tasks.
//!
//! A colour depends on the task and the trace alone, not on the window or the lanes shown: a task has
//! the same colour in every figure of a trace.

use crate::tasks::TaskTime;
use draw::Color;
use membership::{ChosenTasks, GroupedTask, SchedPolicy, TaskGroup, TaskGroups, TasksBy};
use sched::chosen::is_called;
use sched::event::CleanText;
use sched::kthread::{command, is_any_idle_injector, is_any_stopper};
use sched::lineage::LineageHistory;
use sched::seeded::SeededMap;
use sched::{Comm, CpuSpan, Current, Dur, Pid, Ts};
use std::collections::BTreeMap;
use std::sync::Arc;
use timeline::PieceClass;
use timeline::palette::{OTHER, PALETTE, TaskColors, assign};

/// The property of a task that decides its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorBy {
    /// The task itself
    #[default]
    Pid,
    /// The command name; per-CPU kernel threads share one, such as ksoftirqd/N
    Command,
    /// The parent, which forked the task
    Parent,
    /// The NUMA node on which the task first ran; tasks that left it stand out
    Node,
    /// The process of the task
    Process,
    /// The cgroup of the task; kernel threads have a colour of their own
    Cgroup,
    /// The scheduling policy, or the class where the policy is unknown
    Policy,
    /// The class: application, other tasks, kernel threads, stopper, interrupts if traced
    Class,
}

impl ColorBy {
    /// The rule of the groups that decide the colour and must be learned from the trace and its machine file; nothing where other
    /// properties decide it.
    pub fn groups(self) -> Option<TasksBy> {
        match self {
            ColorBy::Process => Some(TasksBy::Process),
            ColorBy::Cgroup => Some(TasksBy::Cgroup),
            ColorBy::Policy => Some(TasksBy::Params),
            ColorBy::Pid | ColorBy::Command | ColorBy::Parent | ColorBy::Node | ColorBy::Class => None,
        }
    }
}

/// The properties of the whole trace that are needed before the first lane is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Whether the parents of tasks are needed.
    pub lineage: bool,
    /// Whether the CPU on which each task first ran is needed.
    pub homes: bool,
    /// Whether the commands that ran longest are needed.
    pub commands: bool,
    /// Whether the tasks that ran longest are needed.
    pub tasks: bool,
    /// Whether the priorities of tasks are needed.
    pub prios: bool,
}

// The classes of a lane's intervals.
pub(crate) use timeline::strips::{BLANK as IDLE, OFFLINE, UNKNOWN};
pub(crate) const OTHERS: PieceClass = timeline::strips::FIRST;
const FIRST: PieceClass = OTHERS + 1;

/// The colour of tasks that are the ground for other marks.
pub(crate) const PALE: Color = Color::grey(0xd8);

const APPLICATION: PieceClass = FIRST;
const TASKS: PieceClass = FIRST + 1;
const KERNEL: PieceClass = FIRST + 2;
const STOPPER: PieceClass = FIRST + 3;
pub(crate) const INTERRUPT: PieceClass = FIRST + 4;
const INJECTED: PieceClass = FIRST + 5;

/// The colours of the classes of [`ColorBy::Class`], as indices into the palette.
const CLASS_COLORS: [usize; 6] = [0, 14, 10, 12, 6, 13];
const CLASS_NAMES: [&str; 6] = [
    "application",
    "other tasks",
    "kernel threads",
    "stopper (migration/N)",
    "interrupts",
    "kept idle (idle_inject/N)",
];

/// An entry of the legend: a task, or a group of tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColorEntry {
    comm: Comm,
    number: Option<i64>,
    pub(crate) class: PieceClass,
    pub(crate) ns: u64,
}

/// The colouring of tasks.
#[derive(Clone, Debug, Default)]
pub struct Coloring {
    /// The property that decides the colour of a task.
    pub by: ColorBy,
    /// The only command in colour, if one is chosen.
    pub target: Option<String>,
    /// The only tasks in colour.
    pub tasks: ChosenTasks,
    /// Whether only the traced command and its descendants are in colour.
    pub forked: bool,
    /// Whether every task has the same pale grey, as the ground for other marks.
    pub pale: bool,
    /// The colours of tasks.
    pub task_colors: TaskColors,
    /// The index into the palette of each command that ran.
    pub commands: SeededMap<Comm, usize>,
    /// The parents of tasks.
    pub lineage: LineageHistory,
    /// The NUMA node on which each task first ran.
    pub homes: SeededMap<Pid, u32>,
    /// The groups of tasks, where [`ColorBy::groups`] asks for them; without them they are unknown.
    pub groups: Option<Arc<TaskGroups>>,
    /// The latest kernel priority of each task, where policies decide the colours.
    pub prios: SeededMap<Pid, i32>,
}

/// The number of the threads of the kernel in the legend, where processes and cgroups have theirs.
const OF_KERNEL: i64 = -1;

impl Coloring {
    /// Assigns colours to commands by their run time. Each of the longest ones, as many as there are colours, has a
    /// colour of its own, and the first nine have those that differ most. The next as many share these colours, one each,
    /// and so on.
    pub fn know(&mut self, commands: impl IntoIterator<Item = (Comm, Dur)>) {
        let mut times: BTreeMap<Comm, Dur> = BTreeMap::new();
        for (comm, time) in commands {
            *times.entry(command(comm)).or_default() += time;
        }
        let mut longest: Vec<(Comm, Dur)> = times.into_iter().collect();
        longest.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let ranked: Vec<Comm> = longest.into_iter().map(|(comm, _)| comm).collect();
        self.commands.extend(assign(&ranked, number_of));
    }

    /// Returns the properties of the whole trace that the colouring needs.
    pub fn needs(&self) -> Needs {
        Needs {
            lineage: self.forked
                || matches!(self.by, ColorBy::Parent | ColorBy::Class | ColorBy::Process | ColorBy::Cgroup),
            homes: self.by == ColorBy::Node,
            commands: self.by == ColorBy::Command,
            tasks: matches!(self.by, ColorBy::Pid | ColorBy::Process) && !self.pale,
            prios: self.by == ColorBy::Policy,
        }
    }

    /// Whether this task is among those in colour.
    fn is_shown(&self, pid: Pid, comm: Comm, ts: Ts) -> bool {
        self.target.as_ref().is_none_or(|target| is_called(comm, target))
            && self.tasks.takes(pid, ts, || comm)
            && (!self.forked || self.is_application(pid, ts) && !self.lineage.of(pid, ts).helps)
    }

    /// Whether this task is one of the application; false if that is unknown.
    fn is_application(&self, pid: Pid, ts: Ts) -> bool {
        self.lineage.of(pid, ts).descends
    }

    /// Whether a span is in colour; true for one without a task.
    pub fn chooses(&self, span: &CpuSpan) -> bool {
        match span.current {
            Current::Task(pid) => self.is_shown(pid, span.comm, span.start),
            Current::Idle | Current::Unknown | Current::Offline => true,
        }
    }

    /// Returns the class of a CPU's span.
    pub(crate) fn class(&self, span: &CpuSpan) -> PieceClass {
        match span.current {
            Current::Idle => IDLE,
            Current::Unknown => UNKNOWN,
            Current::Offline => OFFLINE,
            Current::Task(_) if self.pale => OTHERS,
            Current::Task(pid) => self.class_of(pid, span.comm, span.start),
        }
    }

    fn class_of(&self, pid: Pid, comm: Comm, ts: Ts) -> PieceClass {
        if !self.is_shown(pid, comm, ts) {
            return OTHERS;
        }
        let palette = |n: usize| FIRST + (n % PALETTE.len()) as PieceClass;
        match self.by {
            ColorBy::Pid => palette(self.task_colors.place(pid)),
            ColorBy::Command => self.place_of_command(comm).map_or(OTHERS, palette),
            ColorBy::Parent => match self.lineage.of(pid, ts).parent {
                Some(parent) => palette(self.task_colors.place(parent)),
                None => OTHERS,
            },
            ColorBy::Node => self.homes.get(&pid).map_or(OTHERS, |node| palette(*node as usize)),
            ColorBy::Process | ColorBy::Cgroup | ColorBy::Policy => match self.group_of(pid, comm, ts) {
                Some(OF_KERNEL) => palette(PALETTE.len() - 1),
                Some(leader) if self.by == ColorBy::Process => palette(self.task_colors.place(Pid(leader as i32))),
                Some(group) => palette(group.unsigned_abs() as usize),
                None => OTHERS,
            },
            ColorBy::Class if is_any_stopper(comm) => STOPPER,
            ColorBy::Class if is_any_idle_injector(comm) => INJECTED,
            ColorBy::Class if self.is_application(pid, ts) => APPLICATION,
            ColorBy::Class if self.lineage.of(pid, ts).is_of_kernel(comm) => KERNEL,
            ColorBy::Class => TASKS,
        }
    }

    /// Returns the number of the group of a task: the leader of its process, the index of its cgroup, the place of its policy among
    /// all, or that of kernel threads. `None` where the group is unknown.
    fn group_of(&self, pid: Pid, comm: Comm, ts: Ts) -> Option<i64> {
        let groups = self.groups.as_ref()?;
        let is_kernel = self.by != ColorBy::Policy && self.lineage.of(pid, ts).is_of_kernel(comm);
        let task = GroupedTask { pid, comm, prio: self.prios.get(&pid).copied(), is_kernel };
        match groups.group(task, ts) {
            TaskGroup::Process(leader) => Some(i64::from(leader.0)),
            TaskGroup::Cgroup(cgroup) => Some(cgroup.index() as i64),
            TaskGroup::Params(params) => {
                SchedPolicy::ALL.iter().position(|policy| *policy == params.policy).map(|place| place as i64)
            }
            // Both ends of the run have the policy, whatever else changed.
            TaskGroup::ParamsWithin(before, after) if before.policy == after.policy => {
                SchedPolicy::ALL.iter().position(|policy| *policy == before.policy).map(|place| place as i64)
            }
            TaskGroup::Kernel | TaskGroup::Command(_) => Some(OF_KERNEL),
            TaskGroup::ParamsWithin(..) | TaskGroup::CgroupsWithin(..) => None,
            TaskGroup::Task(_) | TaskGroup::Stack(_) | TaskGroup::OnCpu | TaskGroup::Unknown | TaskGroup::Rest => None,
        }
    }

    /// The name of a group in the legend, by its number.
    fn name_of_group(&self, number: i64) -> String {
        let place = usize::try_from(number).ok();
        let found = match (self.by, &self.groups) {
            _ if number == OF_KERNEL => Some("kernel threads".to_owned()),
            (ColorBy::Policy, _) => {
                place.and_then(|place| SchedPolicy::ALL.get(place)).map(|policy| policy.name().to_owned())
            }
            (ColorBy::Cgroup, Some(groups)) => {
                place.and_then(|place| groups.cgroup_names().get(place)).map(CleanText::to_string)
            }
            (_, Some(groups)) => groups.label(TaskGroup::Process(Pid(number as i32))).map(|label| label.shown()),
            (_, None) => None,
        };
        found.unwrap_or_else(|| "unknown".to_owned())
    }

    /// Returns the place in the palette of a command; `None` where the name was not seen.
    pub fn place_of_command(&self, comm: Comm) -> Option<usize> {
        let command = command(comm);
        let place = || self.commands.get(&command).copied().unwrap_or_else(|| number_of(command));
        (!comm.is_empty()).then(|| place() % PALETTE.len())
    }

    /// Returns the colour of a class.
    pub fn paint(&self, class: PieceClass) -> Color {
        match class {
            IDLE | UNKNOWN | OFFLINE => Color::WHITE,
            OTHERS if self.pale => PALE,
            OTHERS => OTHER,
            class if self.by == ColorBy::Class => {
                let place = CLASS_COLORS.get(usize::from(class - FIRST)).copied().unwrap_or(0);
                PALETTE[place]
            }
            class => PALETTE[usize::from(class - FIRST) % PALETTE.len()],
        }
    }

    /// Returns the entries of the legend for tasks with these times, the longest first.
    pub(crate) fn entries(&self, tasks: &[TaskTime]) -> Vec<ColorEntry> {
        let mut shown: Vec<TaskTime> = tasks.iter().filter(|t| t.class != OTHERS).copied().collect();
        let mut entries: Vec<ColorEntry> = if self.by == ColorBy::Pid {
            // A task is listed by its most recent command name.
            shown.sort_unstable_by_key(|t| (t.pid, t.last, t.comm));
            let entry = |task: &[TaskTime]| {
                let latest = task.last()?;
                let ns = task.iter().map(|t| t.ns).fold(0, u64::saturating_add);
                Some(ColorEntry { comm: latest.comm, number: Some(i64::from(latest.pid.0)), class: latest.class, ns })
            };
            shown.chunk_by(|a, b| a.pid == b.pid).filter_map(entry).collect()
        } else {
            let mut sums: SeededMap<(Comm, Option<i64>), ColorEntry> = SeededMap::default();
            for task in &shown {
                let (comm, number) = self.group(task);
                let sum = sums.entry((comm, number)).or_insert(ColorEntry { comm, number, class: task.class, ns: 0 });
                sum.ns = sum.ns.saturating_add(task.ns);
            }
            sums.into_values().collect()
        };
        entries.sort_unstable_by_key(|e| (std::cmp::Reverse(e.ns), e.comm, e.number));
        entries
    }

    /// Returns the group of a task in the legend.
    fn group(&self, task: &TaskTime) -> (Comm, Option<i64>) {
        match self.by {
            ColorBy::Pid | ColorBy::Command => (command(task.comm), None),
            ColorBy::Parent => {
                let parent = self.lineage.of(task.pid, Ts::MAX).parent;
                (Comm::EMPTY, parent.map(|parent| i64::from(parent.0)))
            }
            ColorBy::Node => (Comm::EMPTY, self.homes.get(&task.pid).map(|node| i64::from(*node))),
            ColorBy::Process | ColorBy::Cgroup | ColorBy::Policy => {
                // A run ends before the instant at which the task can come to another group.
                (Comm::EMPTY, self.group_of(task.pid, task.comm, Ts(task.last.0.saturating_sub(1))))
            }
            ColorBy::Class => (Comm::EMPTY, Some(i64::from(task.class))),
        }
    }

    /// Returns the name of an entry.
    pub(crate) fn name(&self, entry: &ColorEntry) -> String {
        match (self.by, entry.number) {
            (ColorBy::Pid, Some(pid)) => format!("{} {pid}", name_of(entry.comm)),
            (ColorBy::Pid | ColorBy::Command, _) => name_of(entry.comm),
            (ColorBy::Parent, Some(parent)) => format!("forked by {parent}"),
            (ColorBy::Parent, None) => "unknown parent".into(),
            (ColorBy::Node, Some(node)) => format!("first ran on node {node}"),
            (ColorBy::Node, None) => "unknown".into(),
            (ColorBy::Process | ColorBy::Cgroup | ColorBy::Policy, Some(group)) => self.name_of_group(group),
            (ColorBy::Process | ColorBy::Cgroup | ColorBy::Policy, None) => "unknown".into(),
            (ColorBy::Class, _) => CLASS_NAMES.get(usize::from(entry.class - FIRST)).copied().unwrap_or("?").to_owned(),
        }
    }

    /// Returns the name of the tasks without a colour, and whether they are uncoloured by request.
    pub(crate) fn others(&self) -> (&'static str, bool) {
        match self.by {
            _ if self.target.is_some() || !self.tasks.takes_all() || self.forked => ("other tasks", true),
            ColorBy::Command => ("name not seen", false),
            ColorBy::Parent => ("parent not seen", false),
            ColorBy::Node => ("first CPU not seen", false),
            ColorBy::Process => ("process unknown", false),
            ColorBy::Cgroup => ("unknown cgroup", false),
            ColorBy::Policy => ("policy unknown", false),
            ColorBy::Pid | ColorBy::Class => ("other tasks", true),
        }
    }

    /// Returns the meaning of the colours in words.
    pub(crate) fn caption(&self) -> String {
        let by = match self.by {
            ColorBy::Pid => "coloured by task",
            ColorBy::Command => "coloured by command",
            ColorBy::Parent => "coloured by parent",
            ColorBy::Node => "coloured by the NUMA node a task first ran on",
            ColorBy::Process => "coloured by process",
            ColorBy::Cgroup => "coloured by cgroup",
            ColorBy::Policy => "coloured by scheduling policy",
            ColorBy::Class if !self.lineage.knows_application() => "coloured by class of task, the application unknown",
            ColorBy::Class => "coloured by class of task",
        };
        let only = match () {
            () if self.target.is_some() => format!(", {} only", self.target.as_deref().unwrap_or("")),
            () if self.forked && self.lineage.knows_application() => {
                ", the traced command and its descendants only".into()
            }
            () if self.forked => {
                ", the application only, which is unknown: the exec of the traced command is not in the trace".into()
            }
            () if !self.tasks.takes_all() => ", chosen tasks only".into(),
            () => String::new(),
        };
        format!("{by}{only}")
    }
}

/// Returns a number for a command's name, which decides its colour. FNV-1a gives the same number on every machine and in
/// every version, and different colours to names that differ in the last digit. The offset makes hackbench blue, as in
/// the documents.
fn number_of(command: Comm) -> usize {
    let hash = command.as_bytes().iter().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193));
    (hash as usize).wrapping_add(2)
}

fn name_of(comm: Comm) -> String {
    if comm.is_empty() { "?".into() } else { comm.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex::Regex;
    use sched::TaskFilter;

    fn class(coloring: &Coloring, pid: i32, name: &str) -> PieceClass {
        coloring.class_of(Pid(pid), Comm::new(name.as_bytes()), Ts(0))
    }

    #[test]
    fn neighbours_differ_and_colours_stay() {
        let c = Coloring::default();
        assert_ne!(class(&c, 318, "a"), class(&c, 319, "a"));
        assert_eq!(class(&c, 318, "a"), class(&c, 318, "b"));
        let mut c = Coloring { by: ColorBy::Command, ..Coloring::default() };
        // By the hash alone, names that differ only in the high half of the last byte would have one colour.
        let names = ["kworker/9:0", "ksoftirqd/1", "b", "a", "ksoftirqd/0", "q", "1", "A", "Q", "aa", "ab"];
        c.know(names.iter().map(|name| (Comm::new(name.as_bytes()), Dur(if *name == "q" { 2 } else { 1 }))));
        let distinct: std::collections::BTreeSet<PieceClass> = names.iter().map(|name| class(&c, 1, name)).collect();
        assert_eq!(distinct.len(), names.len() - 1, "the two ksoftirqd threads share one colour");
        // The command that runs longest has the same colour in every trace.
        let mut other = Coloring { by: ColorBy::Command, ..Coloring::default() };
        other.know(["a", "q"].map(|name| (Comm::new(name.as_bytes()), Dur(if name == "q" { 2 } else { 1 }))));
        assert_eq!(class(&c, 1, "q"), class(&other, 1, "q"));
        assert_ne!(class(&other, 1, "a"), class(&other, 1, "q"));
        assert_eq!(class(&c, 1, "b"), class(&c, 2, "b"));
        assert_ne!(class(&c, 1, "a"), class(&c, 1, "b"));
        assert_eq!(class(&c, 30, "kworker/3:1"), class(&c, 40, "kworker/12:0"));
        assert_ne!(class(&c, 30, "kworker/3:1"), class(&c, 40, "ksoftirqd/3"));
    }

    #[test]
    fn tasks_that_are_not_chosen_are_grey() {
        let c = Coloring { target: Some("ua".into()), ..Coloring::default() };
        assert_eq!((class(&c, 5, "ua") == OTHERS, class(&c, 5, "uab")), (false, OTHERS));
        let c = Coloring { target: Some("migration/N".into()), ..c };
        assert_eq!((class(&c, 5, "migration/7") == OTHERS, class(&c, 5, "ksoftirqd/7")), (false, OTHERS));
        let (tasks, exclude) = (Regex::new("^k").ok(), Regex::new("1$").ok());
        let c = Coloring { tasks: TaskFilter { tasks, exclude, pids: Vec::new() }.into(), ..Coloring::default() };
        assert_eq!(
            [class(&c, 5, "k0") == OTHERS, class(&c, 5, "k1") == OTHERS, class(&c, 5, "x") == OTHERS],
            [false, true, true]
        );
        let tasks = TaskFilter { pids: vec![Pid(5)], ..TaskFilter::default() };
        let c = Coloring { tasks: tasks.into(), ..Coloring::default() };
        assert_eq!([class(&c, 5, "a") == OTHERS, class(&c, 6, "a") == OTHERS], [false, true]);
    }

    #[test]
    fn classes() {
        let c = Coloring { by: ColorBy::Class, ..Coloring::default() };
        assert_eq!(class(&c, 20, "migration/3"), STOPPER);
        assert_eq!(class(&c, 20, "kworker/3:1"), KERNEL);
        assert_eq!(class(&c, 20, "idle_inject/3"), INJECTED);
        assert_eq!(class(&c, 20, "bash"), TASKS);
    }
}
