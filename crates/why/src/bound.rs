//! Tasks that are assumed to be bound to one CPU: they never left it, although they waited there beside idle CPUs.

use crate::grouping::GroupRow;
use sched::limits::PIDS;
use sched::seeded::SeededMap;
use sched::{Analysis, Cpu, Dur, Joined, Pid, SchedState, Span, TaskState, Ts};

/// The waiting in violation from which on a task that never left its CPU is assumed to be bound to it: 100 ms.
pub const BOUND_FROM: Dur = Dur(100_000_000);

/// Follows the CPUs of all tasks in a window.
#[derive(Clone, Debug, Default)]
pub struct Homes {
    /// The CPU of each task, until it is seen on another one.
    of: SeededMap<Pid, Option<Cpu>>,
}

/// The CPUs of the tasks that were on one CPU alone.
#[derive(Clone, Debug, Default)]
pub struct Stayed(SeededMap<Pid, Option<Cpu>>);

impl Stayed {
    /// The tasks among these rows, one a task, that are assumed to be bound.
    pub fn bound(&self, by_task: Vec<GroupRow>) -> Vec<GroupRow> {
        let has_stayed = |row: &GroupRow| row.pid.is_some_and(|pid| self.0.get(&pid).is_some_and(Option::is_some));
        by_task.into_iter().filter(|row| row.total_ns >= BOUND_FROM && has_stayed(row)).collect()
    }
}

impl Analysis for Homes {
    type Output = Stayed;

    fn span(&mut self, span: &Span, _: &SchedState) {
        if let TaskState::Running(cpu) | TaskState::Waiting(cpu) | TaskState::Asleep(cpu) = span.state {
            if self.of.len() >= PIDS && !self.of.contains_key(&span.pid) {
                return;
            }
            let home = self.of.entry(span.pid).or_insert(Some(cpu));
            *home = home.filter(|home| *home == cpu);
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> Stayed {
        Stayed(self.of)
    }
}

impl Joined for Homes {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, _: Ts, _: &SchedState) {}

    fn fits(&self, later: &Homes) -> bool {
        // Which tasks have no room depends on the order in which they come.
        self.of.len() + later.of.len() <= PIDS
    }

    fn join(&mut self, later: Homes) {
        for (pid, stayed) in later.of {
            let home = self.of.entry(pid).or_insert(stayed);
            *home = home.filter(|home| stayed == Some(*home));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grouping, Why};
    use sched::{Comm, EventKind, Pass, PrevState, SchedEvent, TaskRef};
    use workcons::Options;

    const MS: i64 = 1_000_000;

    fn task(pid: i32) -> TaskRef {
        TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"work") }
    }

    fn event(ms: i64, cpu: u32, pid: i32, kind: EventKind) -> SchedEvent {
        SchedEvent { ts: Ts(ms * MS), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind }
    }

    fn woken(ms: i64, pid: i32) -> [SchedEvent; 2] {
        let (task, target) = (task(pid), Cpu(0));
        [event(ms, 1, 0, EventKind::Waking { task, target }), event(ms, 1, 0, EventKind::Wakeup { task, target })]
    }

    /// Task 1 runs on CPU 0 while 2, 3 and 4 wait there and CPU 1 idles; 3 leaves after 150 ms, 4 waits for 50 ms.
    fn events() -> Vec<SchedEvent> {
        let idle = task(0);
        let switch = |prev, next| EventKind::Switch { prev, state: PrevState::RUNNABLE, next };
        let mut events = vec![event(0, 0, 0, switch(idle, task(1)))];
        events.push(event(0, 1, 9, EventKind::Switch { prev: task(9), state: PrevState::asleep(1), next: idle }));
        events.extend(woken(10, 2));
        events.extend(woken(11, 3));
        events.push(event(161, 1, 0, EventKind::Migrate { task: task(3), orig: Cpu(0), dest: Cpu(1) }));
        events.push(event(161, 1, 0, switch(idle, task(3))));
        events.push(event(165, 1, 3, EventKind::Switch { prev: task(3), state: PrevState::asleep(1), next: idle }));
        events.push(event(210, 0, 1, EventKind::Switch { prev: task(1), state: PrevState::asleep(1), next: task(2) }));
        events.extend(woken(220, 4));
        events.push(event(270, 0, 2, EventKind::Switch { prev: task(2), state: PrevState::asleep(1), next: task(4) }));
        events.push(event(280, 0, 4, EventKind::Switch { prev: task(4), state: PrevState::asleep(1), next: idle }));
        events
    }

    #[test]
    fn who_leaves_or_waits_for_a_moment_is_not_bound() {
        let (events, options) = (events(), Options::default());
        let both = || (Why::new(&options).by(Some(Grouping::Task)), Homes::default());
        let outcome = Pass::over(events.as_slice()).run(both).unwrap_or_else(|never| match never {});
        let (report, stayed) = outcome.output;
        let rows = report.by.expect("rows");
        assert_eq!(rows.iter().filter_map(|row| row.pid).collect::<Vec<_>>(), [Pid(2), Pid(3), Pid(4)]);
        let bound = stayed.bound(rows);
        let [row] = bound.as_slice() else { panic!("{bound:?}") };
        // From 10 to 210 ms, but for the four in which task 3 ran on CPU 1.
        assert_eq!((row.pid, row.total_ns, row.number), (Some(Pid(2)), Dur(196 * MS as u64), 1));
        assert_eq!((row.queued_on.len(), row.queued_on[0].cpu), (1, Cpu(0)));
    }
}
