//! The pieces of a pass, joined: a later piece notes its migrations, the runs of tasks and the records of the balancer, which
//! are few beside the events and need the state no more, and the analyses of the pieces before take them in their order.

use crate::balance::Balance;
use crate::cost::Cost;
use crate::funnel::Funnels;
use crate::log::{BalanceStep, BurstStep};
use sched::{Joined, SchedEvent, SchedState, Ts};

impl Balance<'_> {
    /// Follows a step, or keeps it in a later piece of a pass.
    pub(crate) fn step(&mut self, step: BalanceStep) {
        if let Some(step) = self.log.at_once(step) {
            self.take_step(step);
        }
    }

    fn take_step(&mut self, step: BalanceStep) {
        match step {
            BalanceStep::Happened(of) => self.happens(of),
            BalanceStep::Settled(migration) => self.settles(migration),
        }
    }
}

impl Joined for Balance<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, _: Ts, _: &SchedState) {
        self.log.resume();
    }

    fn fits(&self, _: &Self) -> bool {
        true
    }

    fn join(&mut self, later: Self) {
        later.log.into_steps().for_each(|step| self.take_step(step));
    }
}

impl Cost<'_> {
    /// Follows a step, or keeps it in a later piece of a pass.
    pub(crate) fn step(&mut self, step: BurstStep) {
        if let Some(step) = self.log.at_once(step) {
            self.take_step(step);
        }
    }

    fn take_step(&mut self, step: BurstStep) {
        match step {
            BurstStep::Ran(span, cpu, command) => self.ran(&span, cpu, command),
            BurstStep::Unknown(task) => self.forget(task),
        }
    }
}

impl Joined for Cost<'_> {
    fn is_divisible(&self) -> bool {
        // Readings of counters come from a file of their own, on the thread that asks for them.
        self.readings.is_none()
    }

    fn resume(&mut self, _: Ts, _: Ts, _: &SchedState) {
        self.log.resume();
    }

    fn fits(&self, _: &Self) -> bool {
        true
    }

    fn join(&mut self, later: Self) {
        later.log.into_steps().for_each(|step| self.take_step(step));
    }
}

impl Joined for Funnels {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, _: Ts, _: &SchedState) {
        self.log.resume();
    }

    fn fits(&self, _: &Self) -> bool {
        true
    }

    fn join(&mut self, later: Self) {
        later.log.into_steps().for_each(|event: SchedEvent| self.take_event(&event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::{ChosenCpus, Comm, Cpu, EventKind, Pid, TaskRef, Topology, Window};
    use testkit::in_pieces;

    #[test]
    fn moves_of_a_task_that_share_an_instant_are_the_same_in_pieces() {
        let task = TaskRef { pid: Pid(8), prio: 120, comm: Comm::new(b"make") };
        let at = |ts, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(7), flags: 0x10, kind };
        let moved = |ts, orig, dest| at(ts, EventKind::Migrate { task, orig: Cpu(orig), dest: Cpu(dest) });
        let mut events: Vec<SchedEvent> = (0..3).map(|ts| at(ts, EventKind::Other { id: 1 })).collect();
        events.push(at(10, EventKind::Wakeup { task, target: Cpu(0) }));
        // To and fro within an instant: moves with the same task, instant and target.
        events.extend((0..7).map(|nth| moved(20, nth % 2, (nth + 1) % 2)));
        events.push(moved(30, 1, 0));
        let (topology, cpus) = (Topology::default(), ChosenCpus::default());
        let balance = || Balance::new(&topology, &cpus, Ts(0), Ts(30)).listing(true);
        let show = |report: &crate::BalanceReport| serde_json::to_string(report).expect("a document");
        let tally = in_pieces(&mut events.as_slice(), Window::default(), &[1, 2, 3, 4, 5, 6, 7, 8], balance, show);
        assert_eq!(tally.joined, tally.pieces);
    }
}
