//! Policies: where a woken task queues, what a CPU does that has nothing to run, and what CPUs do at ticks.

use crate::engine::{Machine, Placement, Policy};
use crate::kernel::{KernelBalancing, Mechanisms};
use crate::model::TaskIndex;
use sched::topology::Distance;
use sched::{Cpu, Dur};
use std::fmt;
use std::str::FromStr;

/// The policy of the trace itself: its placements, its moves, and its order of runs.
#[derive(Clone, Copy, Debug)]
pub struct Observed;

impl Policy for Observed {
    fn name(&self) -> String {
        "observed".to_owned()
    }

    fn follows_trace(&self) -> bool {
        true
    }
}

/// Stealing on the way to idle, as the patches "steal tasks to improve CPU utilization" (2018, for Linux 4.20) have it: `try_steal`, where
/// `newidle_balance` has pulled nothing, looks at the siblings of the core first and then, from the next CPU number on, at the others that the
/// bitmap `cfs_overload_cpus` of the last-level cache has, those with two fair tasks; `detach_next_task` takes the first one that may move, whether it
/// is hot in its cache or not, from the end of the list `cfs_tasks`: to its head come tasks that join and tasks that begin to run. Other distances than [`Distance::Llc`] are beyond the patches, and go from near to far; so do clusters within a cache.
#[derive(Clone, Copy, Debug)]
pub struct Steal {
    /// The greatest distance of a steal; nothing for a policy that never steals.
    pub within: Option<Distance>,
}

impl Policy for Steal {
    fn name(&self) -> String {
        format!(
            "steal={}",
            match self.within {
                None => "none",
                Some(Distance::Smt) => "core",
                Some(Distance::Cluster) => "cluster",
                Some(Distance::Llc) => "llc",
                Some(Distance::Node) => "node",
                Some(Distance::Machine) => "machine",
            }
        )
    }

    fn steal(&mut self, cpu: Cpu, machine: &Machine<'_>) -> Option<TaskIndex> {
        let within = self.within.filter(|_| machine.waiting() > 0)?;
        let near = machine.nearest(cpu).take_while(|(distance, _)| *distance <= within);
        let mut overloaded = near.map(|(_, other)| other).filter(|other| machine.is_overloaded(*other));
        overloaded.find_map(|other| {
            machine.listed(other).find(|task| machine.is_movable(*task) && machine.may_use(*task, cpu))
        })
    }
}

/// One run queue for the whole machine: a task that is woken takes any idle CPU, and a CPU that needs a task takes the first of all
/// that wait and may use it. Nothing costs time.
#[derive(Clone, Copy, Debug)]
pub struct Ideal;

impl Policy for Ideal {
    fn name(&self) -> String {
        "ideal".to_owned()
    }

    fn place(&mut self, placement: &Placement, machine: &Machine<'_>) -> Cpu {
        let previous = placement.previous;
        let may = |cpu: &Cpu| machine.may_use(placement.task, *cpu);
        let cpus = || std::iter::once(previous).chain(machine.nearest(previous).map(|(_, cpu)| cpu)).filter(may);
        let idle = cpus().find(|cpu| machine.is_free(*cpu));
        idle.or_else(|| cpus().next()).unwrap_or(previous)
    }

    fn choose(&mut self, cpu: Cpu, machine: &Machine<'_>) -> Option<TaskIndex> {
        machine.first_of_all(cpu)
    }

    fn keeps_balancing(&self) -> bool {
        false
    }
}

/// A policy of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyName {
    /// The policy of the trace.
    Observed,
    /// Stealing within a distance; none for the trace's placements without any stealing.
    Steal(Option<Distance>),
    /// Mechanisms of the kernel's balancer, as the kernel has them.
    Kernel(Mechanisms),
    /// One run queue for the machine.
    Ideal,
}

impl PolicyName {
    /// Makes the policy, anew for each run.
    pub fn policy(self) -> Box<dyn Policy> {
        match self {
            PolicyName::Observed => Box::new(Observed),
            PolicyName::Steal(within) => Box::new(Steal { within }),
            PolicyName::Kernel(mechanisms) => Box::new(KernelBalancing::new(mechanisms)),
            PolicyName::Ideal => Box::new(Ideal),
        }
    }

    /// Whether the policy costs no time.
    pub fn is_free(self) -> bool {
        self == PolicyName::Ideal
    }

    /// Whether CPUs that go idle balance as the kernel has it, which takes time.
    pub fn has_new_idle(self) -> bool {
        matches!(self, PolicyName::Kernel(Mechanisms { new_idle: Some(_), .. }))
    }

    /// The policy with another time between ticks, where it balances at ticks.
    #[must_use]
    pub fn with_tick(self, tick: Dur) -> PolicyName {
        match self {
            PolicyName::Kernel(mechanisms) => PolicyName::Kernel(Mechanisms { tick, ..mechanisms }),
            other => other,
        }
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.policy().name())
    }
}

impl FromStr for PolicyName {
    type Err = String;

    fn from_str(text: &str) -> Result<PolicyName, String> {
        Ok(match text {
            "observed" => PolicyName::Observed,
            "ideal" => PolicyName::Ideal,
            "steal=none" => PolicyName::Steal(None),
            "steal=core" => PolicyName::Steal(Some(Distance::Smt)),
            "steal=cluster" => PolicyName::Steal(Some(Distance::Cluster)),
            "steal=llc" => PolicyName::Steal(Some(Distance::Llc)),
            "steal=node" => PolicyName::Steal(Some(Distance::Node)),
            "steal=machine" => PolicyName::Steal(Some(Distance::Machine)),
            _ => PolicyName::Kernel(text.parse().map_err(|()| {
                "a policy is observed, steal=core, steal=cluster, steal=llc, steal=node, steal=machine, steal=none, newidle, newidle=random, nohz, \
                 periodic, several of these such as newidle+nohz+periodic, or ideal"
            })?),
        })
    }
}
