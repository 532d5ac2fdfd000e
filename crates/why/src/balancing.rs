//! The load balancer in the analysis, where probes on it were recorded: the outcome of new-idle balancing at each missed
//! steal, and the attempts of an episode.

use crate::gate::Gates;
use crate::story::Change;
use crate::{EstimatedGate, GateCosts, Why};
use sched::balancer::{Attempt, Attempts, NewIdle, NewIdles};
use sched::{Cpu, EventKind, Past, PastMoves, SchedEvent, Ts};
use session::Session;

/// The probes on the balancer that a trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    /// Attempts of the balancer (`load_balance`).
    pub attempts: bool,
    /// The state of the run queue when a CPU is about to idle (`newidle_balance_in` or `idle`).
    pub gate: bool,
    /// The verdicts on tasks that the balancer examined (`can_migrate`).
    pub verdicts: bool,
}

impl Probed {
    /// The probes on the balancer that an opened trace has.
    pub fn of(session: &Session) -> Probed {
        Probed {
            attempts: session.has_probe("load_balance", "moved"),
            gate: session.has_probe("newidle_balance_in", "avg_idle") || session.has_probe("idle", "avg_idle"),
            verdicts: session.has_probe("can_migrate", "ok"),
        }
    }
}

/// Follows the probes, and the gate of new-idle balancing without them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Balancer {
    attempts: Attempts,
    newidles: NewIdles,
    /// Whether there are probes, and one on verdicts among them.
    has_probes: bool,
    has_verdicts: bool,
    /// The gate of each CPU, where the costs are known.
    gates: Option<Gates>,
}

impl Balancer {
    /// Takes up the notes of a part of a trace.
    pub(crate) fn recall(&mut self, past: &Past) {
        let moves = PastMoves::of(past);
        self.attempts.recall(&moves.balancing);
        self.newidles.recall(&moves.newidles);
    }

    /// Whether some CPU is in the midst of balancing.
    pub(crate) fn has_open(&self) -> bool {
        self.attempts.has_open() || self.newidles.has_open()
    }

    /// Takes a record of a probe, or a loss; returns the attempt that it ends.
    pub(crate) fn take(&mut self, event: &SchedEvent) -> Option<Attempt> {
        if !matches!(event.kind, EventKind::Probe { .. } | EventKind::Lost { .. }) {
            return None;
        }
        let attempt = self.attempts.event(event);
        self.newidles.event(event, attempt.as_ref());
        attempt
    }
}

impl<'o> Why<'o> {
    /// The analysis with the outcome of new-idle balancing at each missed steal, and the attempts of an episode, for a
    /// trace with these probes.
    #[must_use]
    pub fn with_probes(mut self, probed: Probed) -> Why<'o> {
        if !(probed.attempts || probed.gate) {
            return self;
        }
        let balancer = self.balancer.take().unwrap_or_default();
        let (attempts, newidles) = (Attempts::new(probed.verdicts), NewIdles::new(probed.attempts));
        let has_verdicts = probed.verdicts;
        let balancer = Balancer { attempts, newidles, has_probes: true, has_verdicts, ..*balancer };
        Why { balancer: Some(Box::new(balancer)), ..self }
    }

    /// The analysis with the state of the gate of new-idle balancing at each missed steal, where the costs are known.
    #[must_use]
    pub fn with_gate(mut self, costs: Option<GateCosts>) -> Why<'o> {
        let Some(costs) = costs else { return self };
        let balancer = self.balancer.take().unwrap_or_default();
        Why { balancer: Some(Box::new(Balancer { gates: Some(Gates::new(costs)), ..*balancer })), ..self }
    }

    /// Whether gates are followed, whose averages go by the order of all events.
    pub(crate) fn has_gates(&self) -> bool {
        self.balancer.as_ref().is_some_and(|balancer| balancer.gates.is_some())
    }

    /// The state of the gate as a CPU has gone idle; nothing where the costs are unknown.
    pub(crate) fn gate(&mut self, cpu: Cpu, now: Ts) -> Option<EstimatedGate> {
        self.balancer.as_mut()?.gates.as_mut()?.gate(cpu, now)
    }

    /// Takes an event of the window for the gates, and a record of a probe, or a loss.
    pub(crate) fn balance(&mut self, event: &SchedEvent) {
        let Some(balancer) = &mut self.balancer else { return };
        if let Some(gates) = &mut balancer.gates {
            gates.take(event);
        }
        let attempt = balancer.take(event);
        if let Some(attempt) = attempt {
            self.step(event.cpu, event.ts, event.cpu, Change::Balances(attempt));
        }
    }

    /// The outcome of new-idle balancing before the switch of a CPU; nothing where no probe was recorded.
    pub(crate) fn newidle(&mut self, cpu: Cpu) -> Option<NewIdle> {
        Some(self.balancer.as_mut().filter(|balancer| balancer.has_probes)?.newidles.switch(cpu))
    }

    /// Whether verdicts on examined tasks were recorded.
    pub(crate) fn has_verdicts(&self) -> bool {
        self.balancer.as_ref().is_some_and(|balancer| balancer.has_verdicts)
    }
}
