//! The load balancer in the analysis, where probes on it were recorded: the outcome of new-idle balancing at each missed
//! steal, and the attempts of an episode.

use crate::Why;
use crate::story::Change;
use sched::balancer::{Attempt, Attempts, NewIdle, NewIdles};
use sched::{Cpu, EventKind, Past, PastMoves, SchedEvent};
use session::Session;

/// The probes on the balancer that a trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    /// Attempts of the balancer (`load_balance`).
    pub attempts: bool,
    /// The state of the run queue when a CPU is about to idle (`newidle_balance_in` or `idle`).
    pub gate: bool,
}

impl Probed {
    /// The probes on the balancer that an opened trace has.
    pub fn of(session: &Session) -> Probed {
        Probed {
            attempts: session.has_probe("load_balance", "moved"),
            gate: session.has_probe("newidle_balance_in", "avg_idle") || session.has_probe("idle", "avg_idle"),
        }
    }
}

/// Follows the probes.
#[derive(Clone, Debug)]
pub(crate) struct Balancer {
    attempts: Attempts,
    newidles: NewIdles,
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
    pub fn with_probes(self, probed: Probed) -> Why<'o> {
        let is_any = probed.attempts || probed.gate;
        let balancer =
            || Box::new(Balancer { attempts: Attempts::default(), newidles: NewIdles::new(probed.attempts) });
        Why { balancer: is_any.then(balancer), ..self }
    }

    /// Takes a record of a probe, or a loss.
    pub(crate) fn balance(&mut self, event: &SchedEvent) {
        let attempt = self.balancer.as_mut().and_then(|balancer| balancer.take(event));
        if let Some(attempt) = attempt {
            self.step(event.cpu, event.ts, event.cpu, Change::Balances(attempt));
        }
    }

    /// The outcome of new-idle balancing before the switch of a CPU; nothing where no probe was recorded.
    pub(crate) fn newidle(&mut self, cpu: Cpu) -> Option<NewIdle> {
        Some(self.balancer.as_mut()?.newidles.switch(cpu))
    }
}
