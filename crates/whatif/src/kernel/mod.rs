//! Balancing as the kernel has it: a page for each mechanism, and what they share.
//!
//! | module | content |
//! |---|---|
//! | `new_idle` | a CPU that goes idle looks for a task |
//! | `nohz` | a tick has an idle CPU balance for all idle ones |
//! | `periodic` | a CPU that runs a task balances at some of its ticks |
//! | `schedule` | when a CPU balances which domain |
//! | `search` | a search of a domain: its tasks |
//! | `groups` | a search of a domain: its groups, and what is to leave one |
//!
//! Not here: what a trace does not show (the utilization and the capacity of CPUs, the weights of cgroups, the memory of tasks), and what follows from
//! that (`group_misfit_task`, `group_asym_packing`, `group_smt_balance`, `group_imbalanced`, the NUMA types of queues).

mod groups;
mod new_idle;
mod nohz;
mod periodic;
mod schedule;
mod search;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod ticks_tests;

pub use new_idle::NewIdleRule;

use crate::engine::{Balancer, Costs, Machine, Placement, Policy, Pull};
use crate::model::{MoveKind, TaskIndex};
use new_idle::NewIdle;
use nohz::Nohz;
use periodic::Periodic;
use sched::{Cpu, Dur};
use schedule::{Coming, Schedule};
use std::fmt;
use std::str::FromStr;

/// The time between ticks where none is given: that of `CONFIG_HZ=250`.
pub(crate) const USUAL_TICK: Dur = Dur(4_000_000);

/// The mechanisms of the kernel's balancer that stand in the place of those of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanisms {
    /// The balancing of CPUs that go idle.
    pub new_idle: Option<NewIdleRule>,
    /// The balancing of CPUs that idle, and active balancing.
    pub nohz: bool,
    /// The balancing of CPUs that run a task.
    pub periodic: bool,
    /// The time between ticks.
    pub tick: Dur,
}

impl Default for Mechanisms {
    /// None of them.
    fn default() -> Mechanisms {
        Mechanisms { new_idle: None, nohz: false, periodic: false, tick: USUAL_TICK }
    }
}

impl fmt::Display for Mechanisms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let new_idle = self.new_idle.map(|rule| match rule {
            NewIdleRule::ByTime => "newidle",
            NewIdleRule::BySuccess => "newidle=random",
        });
        let names = [new_idle, self.nohz.then_some("nohz"), self.periodic.then_some("periodic")];
        f.write_str(&names.into_iter().flatten().collect::<Vec<_>>().join("+"))
    }
}

impl FromStr for Mechanisms {
    type Err = ();

    /// Names joined by `+` in any order, each once.
    fn from_str(text: &str) -> Result<Mechanisms, ()> {
        let mut named = Mechanisms::default();
        for name in text.split('+') {
            let is_named = match name {
                "newidle" => named.new_idle.replace(NewIdleRule::ByTime).is_some(),
                "newidle=random" => named.new_idle.replace(NewIdleRule::BySuccess).is_some(),
                "nohz" => std::mem::replace(&mut named.nohz, true),
                "periodic" => std::mem::replace(&mut named.periodic, true),
                _ => return Err(()),
            };
            if is_named {
                return Err(());
            }
        }
        Ok(named)
    }
}

/// Balancing by some mechanisms of the kernel. Its others go on as in the trace.
#[derive(Clone, Debug)]
pub struct KernelBalancing {
    mechanisms: Mechanisms,
    state: Option<State>,
}

#[derive(Clone, Debug)]
struct State {
    schedule: Schedule,
    new_idle: Option<NewIdle>,
    nohz: Option<Nohz>,
    periodic: Option<Periodic>,
    /// The CPU whose tick it is, with the number of that.
    ticking: Option<(Cpu, i64)>,
}

impl State {
    fn new(mechanisms: Mechanisms, machine: &Machine<'_>) -> State {
        let cpus = machine.model().cpus.len();
        State {
            schedule: Schedule::new(machine),
            new_idle: mechanisms.new_idle.map(|rule| NewIdle::new(rule, cpus)),
            nohz: mechanisms.nohz.then(Nohz::default),
            periodic: mechanisms.periodic.then(Periodic::default),
            ticking: None,
        }
    }
}

impl KernelBalancing {
    /// The policy before its first decision.
    pub fn new(mechanisms: Mechanisms) -> KernelBalancing {
        KernelBalancing { mechanisms, state: None }
    }

    fn state(&mut self, machine: &Machine<'_>) -> &mut State {
        let mechanisms = self.mechanisms;
        self.state.get_or_insert_with(|| State::new(mechanisms, machine))
    }
}

impl Policy for KernelBalancing {
    fn name(&self) -> String {
        self.mechanisms.to_string()
    }

    fn place(&mut self, placement: &Placement, machine: &Machine<'_>) -> Cpu {
        let cpu = machine.usual(placement);
        if !placement.is_new
            && machine.is_free(cpu)
            && let Some(new_idle) = &mut self.state(machine).new_idle
        {
            new_idle.wakes_up(cpu, machine);
        }
        cpu
    }

    fn steal(&mut self, cpu: Cpu, machine: &Machine<'_>) -> Option<TaskIndex> {
        let state = self.state(machine);
        let pulled = match &mut state.new_idle {
            Some(new_idle) => new_idle.pull(cpu, &mut state.schedule, machine),
            None => {
                state.schedule.goes_idle(cpu, 0);
                None
            }
        };
        if let (Some(nohz), None) = (&mut state.nohz, pulled) {
            nohz.goes_idle(cpu, &state.schedule);
        }
        pulled
    }

    fn steal_takes(&self, costs: &Costs) -> u64 {
        self.state.as_ref().and_then(|state| state.new_idle.as_ref()).map_or(costs.steal, NewIdle::spent)
    }

    fn tick_length(&self) -> Option<Dur> {
        (self.mechanisms.nohz || self.mechanisms.periodic).then_some(self.mechanisms.tick)
    }

    fn tick(&mut self, cpu: Cpu, machine: &Machine<'_>) -> Option<Pull> {
        let State { schedule, nohz, periodic, ticking, .. } = self.state(machine);
        let now = schedule.now(machine);
        if ticking.replace((cpu, now)) != Some((cpu, now)) {
            // Both are decided before the softirq runs.
            periodic.iter_mut().for_each(|periodic| periodic.tick(cpu, schedule, machine));
            nohz.iter_mut().for_each(|nohz| nohz.tick(cpu, schedule, machine));
        }
        let pull = |by: Balancer| move |Coming { tasks, to }: Coming| Pull { tasks, to, by };
        let coming =
            periodic.as_mut().and_then(|periodic| periodic.go_on(schedule, machine)).map(pull(Balancer::Periodic));
        coming.or_else(|| nohz.as_mut()?.go_on(schedule, machine).map(pull(Balancer::NohzIdle)))
    }

    fn replaces(&self, kind: MoveKind) -> bool {
        match kind {
            MoveKind::NewIdle => self.mechanisms.new_idle.is_some(),
            MoveKind::Idle | MoveKind::Active => self.mechanisms.nohz,
            MoveKind::Busy => self.mechanisms.periodic,
            MoveKind::Stopper | MoveKind::Other => false,
        }
    }
}
