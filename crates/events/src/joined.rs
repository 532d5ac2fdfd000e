//! The pieces of a pass, joined: a later piece notes its migrations, the runs of tasks and the records of the balancer, which
//! are few beside the events and need the state no more, and the analyses of the pieces before take them in their order.

use crate::balance::Balance;
use crate::cost::Cost;
use crate::funnel::Funnels;
use crate::log::{BalanceLog, BurstStep};
use sched::{Joined, SchedEvent, SchedState, Ts};

impl Joined for Balance<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, _: Ts, _: &SchedState) {
        self.log = Some(BalanceLog::default());
    }

    fn fits(&self, _: &Self) -> bool {
        true
    }

    fn join(&mut self, later: Self) {
        let BalanceLog { migrations, moves } = later.log.unwrap_or_default();
        moves.into_iter().for_each(|of| self.happens(of));
        migrations.into_iter().for_each(|migration| self.settles(migration));
    }
}

impl Joined for Cost<'_> {
    fn is_divisible(&self) -> bool {
        // Readings of counters come from a file of their own, on the thread that asks for them.
        self.readings.is_none()
    }

    fn resume(&mut self, _: Ts, _: Ts, _: &SchedState) {
        self.log = Some(Vec::new());
    }

    fn fits(&self, _: &Self) -> bool {
        true
    }

    fn join(&mut self, later: Self) {
        for step in later.log.unwrap_or_default() {
            match step {
                BurstStep::Ran(span, cpu, command) => self.ran(&span, cpu, command),
                BurstStep::Unknown(task) => self.forget(task),
            }
        }
    }
}

impl Joined for Funnels {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, _: Ts, _: &SchedState) {
        self.log = Some(Vec::new());
    }

    fn fits(&self, _: &Self) -> bool {
        true
    }

    fn join(&mut self, later: Self) {
        later.log.unwrap_or_default().iter().for_each(|event: &SchedEvent| self.take_event(event));
    }
}
