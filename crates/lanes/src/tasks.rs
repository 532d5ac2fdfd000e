//! The run times of tasks.
//!
//! A long trace can have millions of short-lived tasks. Tasks beyond the most recent ones are moved from the table to
//! a list, which has no free slots and so takes less memory.

use sched::seeded::SeededMap;
use sched::{Addend, Comm, CpuSpan, Pid, Summed, Ts};
use std::cmp::Ordering;
use timeline::PieceClass;

/// The run time of a task by one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskTime {
    /// The PID of the task.
    pub pid: Pid,
    /// The command name; empty if none was recorded.
    pub comm: Comm,
    /// The class of the task by that name.
    pub class: PieceClass,
    /// The run time, in nanoseconds.
    pub ns: u64,
    /// The end of its last run.
    pub(crate) last: Ts,
}

/// The maximum number of tasks in the table.
const AT_HAND: usize = 4096;

/// Gathers the run times of tasks.
#[derive(Debug, Default)]
pub(crate) struct TaskTimes {
    /// The table of the tasks that ran recently, by their current names.
    at_hand: SeededMap<Pid, TaskTime>,
    /// The list of run times by earlier names, and of other tasks.
    aside: Summed<TaskTime>,
}

/// Sums the run times of one PID and name, with the latest class.
impl Addend for TaskTime {
    fn order(&self, other: &TaskTime) -> Ordering {
        let key = |t: &TaskTime| (t.pid, t.comm, t.last, t.class);
        key(self).cmp(&key(other))
    }

    fn join(&mut self, later: &TaskTime) -> bool {
        let same = (self.pid, self.comm) == (later.pid, later.comm);
        if same {
            *self = TaskTime { ns: self.ns.saturating_add(later.ns), ..*later };
        }
        same
    }
}

impl TaskTimes {
    /// Adds a run of a task.
    #[inline]
    pub(crate) fn add(&mut self, pid: Pid, class: PieceClass, span: &CpuSpan) {
        let none = TaskTime { pid, comm: span.comm, class, ns: 0, last: span.end };
        let task = self.at_hand.entry(pid).or_insert(none);
        let renamed = (task.comm != span.comm).then(|| std::mem::replace(task, none));
        task.ns += span.duration().0;
        (task.class, task.last) = (class, span.end);
        if renamed.is_some() || self.at_hand.len() > AT_HAND {
            self.set_aside(renamed);
        }
    }

    #[cold]
    fn set_aside(&mut self, renamed: Option<TaskTime>) {
        self.aside.extend(renamed);
        if self.at_hand.len() > AT_HAND {
            self.aside.extend(self.at_hand.drain().map(|(_, task)| task));
        }
    }

    /// Returns all run times, by PID and name.
    pub(crate) fn finish(self) -> Vec<TaskTime> {
        let mut all = self.aside;
        all.extend(self.at_hand.into_values());
        let mut tasks = all.finish();
        tasks.shrink_to_fit();
        tasks
    }
}

/// Returns the run times of several parts together, the longest first. Time without a name counts for the latest name
/// of the same task and class.
pub(crate) fn total<'t>(parts: impl Iterator<Item = &'t [TaskTime]>) -> Vec<TaskTime> {
    let mut tasks = parts.flatten().copied().collect::<Summed<TaskTime>>().finish();
    for task in tasks.chunk_by_mut(|a, b| a.pid == b.pid) {
        // The empty name sorts first.
        if let Some((nameless, named)) = task.split_first_mut()
            && nameless.comm.is_empty()
            && let Some(latest) = named.iter_mut().filter(|t| t.class == nameless.class).max_by_key(|t| t.last)
        {
            latest.ns = latest.ns.saturating_add(std::mem::take(&mut nameless.ns));
            // The PID of the idle task marks the entry for removal below.
            nameless.pid = Pid::IDLE;
        }
    }
    tasks.retain(|task| !task.pid.is_idle());
    tasks.sort_unstable_by(|a, b| b.ns.cmp(&a.ns).then_with(|| (a.pid, a.comm).cmp(&(b.pid, b.comm))));
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::{Cpu, Current};

    #[test]
    fn no_time_gets_lost_among_many() {
        let mut times = TaskTimes::default();
        let names = ["", "make", "cc1"].map(|name| Comm::new(name.as_bytes()));
        let mut at = 0;
        // Each task runs three times, far apart, and changes its name in between.
        for (round, name) in [(0, 1), (1, 2), (2, 1)] {
            for pid in 1..=20_000 {
                let (start, end) = (Ts(at), Ts(at + i64::from(pid)));
                let comm = if pid % 1000 == 0 && round == 0 { names[0] } else { names[name] };
                times.add(Pid(pid), 7, &CpuSpan { cpu: Cpu(0), current: Current::Task(Pid(pid)), comm, start, end });
                at = end.0;
            }
        }
        let lane = times.finish();
        assert!(lane.is_sorted_by_key(|t| (t.pid, t.comm)));
        assert_eq!(lane.len(), 40_000 + 20);
        let all = total([&lane[..], &lane[..]].into_iter());
        assert_eq!(all.len(), 40_000, "the time without a name counts for the first name");
        let of = |pid, name: usize| all.iter().find(|t| (t.pid, t.comm) == (Pid(pid), names[name])).map(|t| t.ns);
        assert_eq!((of(999, 1), of(999, 2)), (Some(4 * 999), Some(2 * 999)));
        assert_eq!((of(1000, 1), of(1000, 2)), (Some(4000), Some(2000)));
        assert!(all.is_sorted_by(|a, b| a.ns >= b.ns));
    }
}
