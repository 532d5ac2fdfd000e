//! The class of a run whose task becomes real-time, or ceases to be, while it runs.
//!
//! A switch records the priority of the task that leaves, so that the end of a run shows whether it is still that of the start. No event of
//! the scheduler shows when it changed: such a run is in a class of its own, whole.

use crate::grid::Grid;
use crate::{Class, Utilization};
use sched::{Cpu, Pid, SchedState, Ts};

/// The end of a run: the task that leaves a CPU, with its priority then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// The CPU that the task leaves.
    pub cpu: Cpu,
    /// The PID of the task.
    pub pid: Pid,
    /// The kernel's priority of the task as it leaves.
    pub prio: i32,
}

/// The time of a run that is accounted for, by interval and class of two grids.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunTimes([Vec<(usize, Class, u64)>; 2]);

impl RunTimes {
    /// Adds time of the run that two grids have in a class.
    pub(crate) fn add(&mut self, grids: [&mut Grid; 2], class: Class, from: Ts, to: Ts) {
        for (times, grid) in self.0.iter_mut().zip(grids) {
            grid.split(from, to, |interval, ns| match times.last_mut() {
                Some((last, of, time)) if (*last, *of) == (interval, class) => *time += ns,
                _ => times.push((interval, class, ns)),
            });
        }
    }

    /// Adds the time of the same run in a later piece of a pass.
    pub(crate) fn join(&mut self, later: RunTimes) {
        self.0.iter_mut().zip(later.0).for_each(|(times, more)| times.extend(more));
    }

    fn clear(&mut self) {
        self.0.iter_mut().for_each(Vec::clear);
    }
}

impl Utilization<'_> {
    /// A CPU switches to another task, whose run begins.
    pub(crate) fn begin_run(&mut self, cpu: Cpu, ts: Ts) {
        let Some(row) = self.rows.of(cpu) else { return };
        let now = &mut self.cpus[row];
        (now.run_since, now.has_switched) = (ts, true);
        self.runs[row].clear();
    }

    /// A run ends; `state` is the one before. If the task was real-time at one end alone, the whole run is possibly that.
    pub(crate) fn end_run(&mut self, end: RunEnd, ts: Ts, state: &SchedState) {
        let Some(row) = self.rows.of(end.cpu) else { return };
        let was = match self.cpus[row].class {
            Class::RealTime => true,
            Class::Application | Class::Other | Class::Kernel => false,
            _ => return,
        };
        if was == (end.prio < 100) {
            return;
        }
        let Some(task) = state.running(end.cpu).filter(|task| task.pid == end.pid) else { return };
        // The first priority that an event shows counts for the time before as well.
        let class = match task.known_prio() {
            None => self.class_with(task, end.cpu, Some(end.prio), ts),
            Some(_) => Class::PossiblyRealTime,
        };
        if let Some(log) = self.log.as_mut().filter(|_| !self.cpus[row].has_switched) {
            log.change(row, class);
        }
        self.recount(row, ts, class);
    }

    /// The present run of a CPU up to `ts` is of this class.
    pub(crate) fn recount(&mut self, row: usize, ts: Ts, class: Class) {
        let since = self.cpus[row].run_since;
        self.account(row, since);
        let RunTimes([intervals, columns]) = std::mem::take(&mut self.runs[row]);
        for (interval, of, ns) in intervals {
            self.intervals.transfer(interval, of as usize, class as usize, ns);
            self.sums[row][of as usize] -= u128::from(ns);
            self.sums[row][class as usize] += u128::from(ns);
        }
        for (column, of, ns) in columns {
            self.columns.transfer(column, of as usize, class as usize, ns);
        }
        // A CPU that was offline or unknown at the border of a piece, and came back without a switch, stays that until then.
        if self.cpus[row].class.is_of_tasks() {
            // The whole run is of that class.
            (self.cpus[row].class, self.cpus[row].selectable) = (class, None);
        }
        self.account(row, ts);
    }
}
