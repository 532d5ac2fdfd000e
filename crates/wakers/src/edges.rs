//! The edges of the graph: one for each pair of waker and woken task, with its sums.

use sched::kthread::command;
use sched::lengths::Summary;
use sched::limits::BoundedRows;
use sched::topology::Distance;
use sched::{Comm, Cpu, Dur, Lengths, Pid, Topology};
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

/// A node of the graph: the waker or the woken task of wakeups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakeParty {
    /// The PID of the task, if nodes are tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Pid>,
    /// The command name; `swapper/N` of the idle tasks, empty if no event shows it.
    pub command: Comm,
}

impl WakeParty {
    /// The name of the node for people.
    pub fn name(&self) -> String {
        match self.pid {
            Some(pid) => pid.named(self.command),
            None if self.command == Comm::EMPTY => "(no name)".to_owned(),
            None => self.command.to_string(),
        }
    }
}

/// The wakeups of one command or task by another.
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
    /// The number of wakeups after which the woken task was queued on another CPU that has the last-level cache of the waker's.
    pub same_llc: u64,
    /// The number of wakeups after which the woken task was queued on a CPU with another last-level cache than the waker's.
    pub other_llc: u64,
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
    /// The node of a task.
    pub(crate) fn party(self, pid: Pid, comm: Comm) -> WakeParty {
        let name = if pid.is_idle() { Comm::new(b"swapper/N") } else { comm };
        match self {
            PartiesBy::Command => WakeParty { pid: None, command: command(name) },
            PartiesBy::Task => WakeParty { pid: Some(pid), command: name },
        }
    }
}

/// A wakeup whose task has run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wakeup {
    /// The current task where the wakeup was made; absent if no waking was recorded.
    pub(crate) waker: Option<WakeParty>,
    pub(crate) is_interrupt: bool,
    pub(crate) woken: WakeParty,
    pub(crate) slept: Option<Dur>,
    pub(crate) waited: Option<Dur>,
    /// The CPU of the waker, and that on which the task was queued.
    pub(crate) cpus: Option<(Cpu, Cpu)>,
}

/// The key of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum EdgeKey {
    /// A waker wakes a task in the context of a task.
    Task(WakeParty, WakeParty),
    /// A handler wakes a task while the first one is interrupted.
    Interrupt(WakeParty, WakeParty),
    /// The waker is not recorded.
    Unknown(WakeParty),
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

    /// The edges in the order of their keys.
    pub(crate) fn sorted(self) -> Vec<(EdgeKey, EdgeSums)> {
        let mut edges = self.0.into_rows();
        edges.sort_by_key(|(key, _)| *key);
        edges
    }
}
