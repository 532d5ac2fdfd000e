//! The edges of the graph: one for each pair of waker and woken task, with its sums.

use membership::{GroupLabel, GroupedTask, TaskGroup, TaskGroups, TasksBy};
use sched::kthread::command;
use sched::lengths::Summary;
use sched::limits::BoundedRows;
use sched::state::Task;
use sched::topology::Distance;
use sched::{Comm, Cpu, Dur, Lengths, Pid, Topology, Ts};
use serde::Serialize;

/// The nodes of the graph of wakeups
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PartiesBy {
    /// A node for each command name; the kernel's threads for each CPU have one, as ksoftirqd/N
    #[default]
    Command,
    /// A node for each task
    Task,
    /// A node for each process, by the command of its first thread
    Process,
    /// A node for each cgroup
    Cgroup,
}

/// The number by which edges are ordered
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EdgeWeight {
    /// The number of wakeups
    #[default]
    Wakeups,
    /// The time for which the woken tasks waited
    Waited,
    /// The time for which the woken tasks had slept
    Slept,
}

/// A node of the graph: the waker or the woken tasks of wakeups.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakeParty {
    /// The PID of the task, if nodes are tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Pid>,
    /// The command name, if nodes are tasks or commands; `swapper/N` of the idle tasks, empty if no event shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Comm>,
    /// The process or the cgroup, if nodes are these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupLabel>,
}

impl WakeParty {
    /// The name of the node for people.
    pub fn name(&self) -> String {
        let command = self.command.unwrap_or_default();
        match (&self.group, self.pid) {
            (Some(group), _) => group.shown(),
            (None, Some(pid)) => pid.named(command),
            (None, None) if command == Comm::EMPTY => "(no name)".to_owned(),
            (None, None) => command.to_string(),
        }
    }
}

/// A node of the graph during a pass: the name that it has in the report comes from the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PartyKey {
    /// The task with this PID, or all tasks of the command.
    Named(Option<Pid>, Comm),
    /// The tasks of a process or a cgroup.
    Group(TaskGroup),
}

impl PartyKey {
    /// The node as reports have it.
    pub(crate) fn party(self, groups: Option<&TaskGroups>) -> WakeParty {
        match self {
            PartyKey::Named(pid, command) => WakeParty { pid, command: Some(command), group: None },
            PartyKey::Group(group) => {
                WakeParty { pid: None, command: None, group: groups.and_then(|groups| groups.label(group)) }
            }
        }
    }
}

/// Returns the group of a task at an instant. The idle tasks are threads of the kernel; of a task without events the PID alone is known.
pub(crate) fn group_of(groups: &TaskGroups, (pid, task): (Pid, Option<&Task>), ts: Ts) -> TaskGroup {
    let task = match task {
        Some(task) if !pid.is_idle() => GroupedTask::from(task),
        _ => GroupedTask { pid, comm: name_of(pid, Comm::EMPTY), prio: None, is_kernel: pid.is_idle() },
    };
    groups.group(task, ts)
}

/// The command name of a task; one name for the idle tasks of all CPUs.
fn name_of(pid: Pid, comm: Comm) -> Comm {
    if pid.is_idle() { Comm::new(b"swapper/N") } else { comm }
}

/// The wakeups of one name by another: commands, tasks, processes or cgroups.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakeEdge {
    /// The waker; of a wakeup from an interrupt the task that was interrupted.
    pub waker: WakeParty,
    /// The woken task.
    pub woken: WakeParty,
    /// The number of wakeups.
    pub wakeups: u64,
    /// The times that the woken tasks had slept, where their beginning is known.
    pub slept: Summary,
    /// The times that the woken tasks waited to run, where the waking is known.
    pub waited: Summary,
    /// The number of wakeups after which the woken task was queued on the CPU of the waker.
    pub same_cpu: u64,
    /// The number of wakeups after which the woken task was queued on another CPU that has the last-level cache of the waker's; null where
    /// the topology shows it of none.
    pub same_llc: Option<u64>,
    /// The number of wakeups after which the woken task was queued on a CPU with another last-level cache than the waker's; null where the
    /// topology shows it of none.
    pub other_llc: Option<u64>,
    /// The number of wakeups after which the woken task was queued on another CPU, and the topology is not known.
    pub unknown_llc: u64,
}

impl WakeEdge {
    /// The number by which the edge is ordered.
    pub(crate) fn weight(&self, by: EdgeWeight) -> u64 {
        match by {
            EdgeWeight::Wakeups => self.wakeups,
            EdgeWeight::Waited => self.waited.total_ns.0,
            EdgeWeight::Slept => self.slept.total_ns.0,
        }
    }
}

impl PartiesBy {
    /// The rule of the groups that must be learned before the pass; nothing where the nodes need none.
    pub(crate) fn rule(self) -> Option<TasksBy> {
        match self {
            PartiesBy::Command | PartiesBy::Task => None,
            PartiesBy::Process => Some(TasksBy::Process),
            PartiesBy::Cgroup => Some(TasksBy::Cgroup),
        }
    }

    /// The node of a task, which is in the group given where nodes are groups.
    pub(crate) fn party(self, pid: Pid, comm: Comm, group: Option<TaskGroup>) -> PartyKey {
        let name = name_of(pid, comm);
        match self {
            PartiesBy::Command => PartyKey::Named(None, command(name)),
            PartiesBy::Task => PartyKey::Named(Some(pid), name),
            PartiesBy::Process | PartiesBy::Cgroup => PartyKey::Group(group.unwrap_or(TaskGroup::Unknown)),
        }
    }
}

/// A wakeup whose task has run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wakeup {
    /// The current task where the wakeup was made; absent if no waking was recorded.
    pub(crate) waker: Option<PartyKey>,
    pub(crate) is_interrupt: bool,
    pub(crate) woken: PartyKey,
    pub(crate) slept: Option<Dur>,
    pub(crate) waited: Option<Dur>,
    /// The CPU of the waker, and that on which the task was queued.
    pub(crate) cpus: Option<(Cpu, Cpu)>,
}

/// The key of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum EdgeKey {
    /// A waker wakes a task in the context of a task.
    Task(PartyKey, PartyKey),
    /// A handler wakes a task while the first one is interrupted.
    Interrupt(PartyKey, PartyKey),
    /// The waker is not recorded.
    Unknown(PartyKey),
    /// The pairs beyond the number of edges.
    Rest,
}

/// The sums of an edge.
#[derive(Clone, Debug, Default)]
pub(crate) struct EdgeSums {
    pub(crate) wakeups: u64,
    pub(crate) slept: Lengths,
    pub(crate) waited: Lengths,
    pub(crate) same_cpu: u64,
    pub(crate) same_llc: u64,
    pub(crate) other_llc: u64,
}

impl EdgeSums {
    fn add(&mut self, wakeup: &Wakeup, topology: &Topology) {
        self.wakeups += 1;
        if let Some(slept) = wakeup.slept {
            self.slept.add(slept);
        }
        if let Some(waited) = wakeup.waited {
            self.waited.add(waited);
        }
        let Some((from, to)) = wakeup.cpus else { return };
        let place = match topology.distance(from, to) {
            _ if from == to => Some(&mut self.same_cpu),
            Some(Distance::Smt | Distance::Cluster | Distance::Llc) => Some(&mut self.same_llc),
            Some(Distance::Node | Distance::Machine) => Some(&mut self.other_llc),
            None => None,
        };
        if let Some(place) = place {
            *place += 1;
        }
    }

    /// Adds the sums of the same edge in a later piece of a pass.
    fn join(&mut self, later: &EdgeSums) {
        self.wakeups += later.wakeups;
        self.slept.merge(&later.slept);
        self.waited.merge(&later.waited);
        self.same_cpu += later.same_cpu;
        self.same_llc += later.same_llc;
        self.other_llc += later.other_llc;
    }
}

/// The edges that were seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct EdgeTable(BoundedRows<EdgeKey, EdgeSums>);

impl EdgeTable {
    pub(crate) fn add(&mut self, wakeup: &Wakeup, topology: &Topology) {
        let key = match wakeup.waker {
            Some(waker) if wakeup.is_interrupt => EdgeKey::Interrupt(waker, wakeup.woken),
            Some(waker) => EdgeKey::Task(waker, wakeup.woken),
            None => EdgeKey::Unknown(wakeup.woken),
        };
        self.0.of(key, EdgeKey::Rest).add(wakeup, topology);
    }

    /// The number of edges.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds the edges of a later piece of a pass.
    pub(crate) fn join(&mut self, later: EdgeTable) {
        for (key, sums) in later.0.into_rows() {
            self.0.of(key, EdgeKey::Rest).join(&sums);
        }
    }

    /// The edges in the order of their keys.
    pub(crate) fn sorted(self) -> Vec<(EdgeKey, EdgeSums)> {
        let mut edges = self.0.into_rows();
        edges.sort_by_key(|(key, _)| *key);
        edges
    }
}

/// The sum of two numbers, of which one may be unknown; nothing where both are.
pub(crate) fn known_sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        _ => a.or(b),
    }
}
