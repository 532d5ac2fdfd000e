//! New-idle balancing before a switch to idle, as probes on the balancer record it, with its true outcome.

use super::World;
use sched::balancer::NewIdleOutcome;
use sched::probe::{AtMost4s, Balancing, Examined, Probe, RunQueue};
use sched::{Comm, EventKind};

/// The number of the records of probes.
const ID: u16 = 998;

impl World {
    fn probe(&mut self, cpu: usize, probe: Probe) {
        self.emit(cpu, self.state.current[cpu], EventKind::Probe { id: ID, probe });
    }

    /// Records the balance of a CPU that is about to idle; returns its outcome.
    pub(super) fn fails_to_pull(&mut self, cpu: usize) -> NewIdleOutcome {
        let (gate, queue) = match self.rng.below(8) {
            // Nothing is recorded.
            0 => return NewIdleOutcome::Unknown,
            1 => (Some(NewIdleOutcome::WakeupPending), self.queue(true, true, true)),
            2 => (Some(NewIdleOutcome::NotOverloaded), self.queue(false, false, true)),
            3 => (Some(NewIdleOutcome::TooCostly), self.queue(false, true, false)),
            _ => (None, self.queue(false, true, true)),
        };
        // Where the function is inlined, the state on going idle stands in.
        if !self.inlined {
            self.probe(cpu, Probe::NewIdleBegins(queue));
        }
        let mut outcome = gate.unwrap_or(NewIdleOutcome::NotAttempted);
        if gate.is_none() {
            for domain in ["SMT", "MC", "NUMA"].into_iter().take(self.rng.below(4)) {
                outcome = outcome.max(self.attempt(cpu, Balancing::NewIdle, domain));
            }
        }
        // A softirq may balance as well.
        if self.rng.below(4) == 0 {
            self.attempt(cpu, Balancing::Idle, "MC");
        }
        if !self.inlined {
            self.probe(cpu, Probe::NewIdleEnds(0));
        }
        self.probe(cpu, Probe::GoesIdle(queue));
        outcome
    }

    fn queue(&mut self, pending: bool, overloaded: bool, worth: bool) -> RunQueue {
        let cost = 1 + self.rng.below(1000) as u64;
        let avg_idle = if worth { cost + self.rng.below(1000) as u64 } else { self.rng.below(cost as usize) as u64 };
        RunQueue {
            overloaded: Some(overloaded),
            pending: Some(pending),
            avg_idle: Some(AtMost4s::of(avg_idle)),
            cost: Some(AtMost4s::of(cost)),
        }
    }

    /// Records an attempt; returns the outcome that it has for new-idle balancing.
    fn attempt(&mut self, cpu: usize, balancing: Balancing, domain: &str) -> NewIdleOutcome {
        let domain = Comm::new(domain.as_bytes());
        let searched = |found| Probe::Searched { found, imbalance: found.then_some(3), how: Some(2) };
        let outcome = match self.rng.below(12) {
            0 => NewIdleOutcome::GivenUp,
            1..=5 => NewIdleOutcome::NoBusiestGroup,
            6 | 7 => NewIdleOutcome::NoTaskExamined,
            8 => NewIdleOutcome::Pulled,
            _ => NewIdleOutcome::AllRefused,
        };
        let is_whole = self.rng.below(2) == 0;
        if !is_whole {
            self.probe(cpu, Probe::AttemptBegins(balancing, domain));
        }
        if outcome != NewIdleOutcome::GivenUp {
            self.probe(cpu, searched(outcome != NewIdleOutcome::NoBusiestGroup));
        }
        if matches!(outcome, NewIdleOutcome::AllRefused | NewIdleOutcome::Pulled) {
            for _ in 0..1 + self.rng.below(3) {
                let task = Examined { on_cpu: Some(self.rng.below(2) == 0), bound: Some(self.rng.below(2) == 0) };
                self.probe(cpu, Probe::Examined(task, false));
            }
        }
        let moved = u32::from(outcome == NewIdleOutcome::Pulled);
        let (balancing, domain) = if is_whole { (balancing, domain) } else { (Balancing::Unknown, Comm::EMPTY) };
        self.probe(cpu, Probe::AttemptEnds { balancing, domain, moved });
        outcome
    }
}
