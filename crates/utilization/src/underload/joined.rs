//! The pieces of a pass, joined: the interval in which a later piece begins has its first part in the pieces before.

use super::{Occupant, Part, PieceHead, Underload};
use sched::{Joined, SchedState, Ts};

impl Joined for Underload<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, at: Ts, state: &SchedState) {
        self.start(at, state);
        self.wakeups.resume();
        let occupants = self.cpus.iter().map(|cpu| cpu.occupant).collect();
        self.head = Some(Box::new(PieceHead { at, occupants, first: None }));
    }

    fn fits(&self, later: &Self) -> bool {
        let Some(head) = &later.head else { return false };
        self.cpus.iter().map(|cpu| cpu.occupant).eq(head.occupants.iter().copied())
            && self.part.is_some() == later.part.is_some()
    }

    fn join(&mut self, mut later: Self) {
        let Some(head) = later.head.take() else { return };
        self.pass(head.at);
        let before = self.present_part(head.at);
        match head.first {
            Some(first) => {
                let used = before.used.iter().zip(&first.used).filter(|(a, b)| **a || **b).count();
                let (most, is_doubtful) = (before.most.max(first.most), before.is_doubtful || first.is_doubtful);
                self.add_interval(used as u32, most, is_doubtful);
            }
            None => later.add_before(&before),
        }
        self.sums.intervals += later.sums.intervals;
        self.sums.underloaded += later.sums.underloaded;
        self.sums.doubtful += later.sums.doubtful;
        self.sums.cpus += later.sums.cpus;
        self.sums.max = self.sums.max.max(later.sums.max);
        self.sums.columns.iter_mut().zip(&later.sums.columns).for_each(|(sum, more)| *sum += more);
        (self.cpus, self.present, self.last) = (later.cpus, later.present, later.last);
        (self.running, self.injecting, self.unknown) = (later.running, later.injecting, later.unknown);
        (self.runnable, self.part) = (later.runnable, later.part);
        self.wakeups.join(later.wakeups);
    }
}

impl Underload<'_> {
    /// Adds the first part of the present interval, which is that in which this piece begins.
    fn add_before(&mut self, before: &Part) {
        let present = &mut self.present;
        for (cpu, _) in self.cpus.iter_mut().zip(&before.used).filter(|(_, is_used)| **is_used) {
            if cpu.used_in != present.number {
                cpu.used_in = present.number;
                present.used += 1;
                present.used_running += u32::from(cpu.occupant == Occupant::Task);
            }
        }
        present.most = present.most.max(before.most);
        present.is_doubtful |= before.is_doubtful;
    }
}
