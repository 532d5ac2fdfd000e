//! The names of tasks over time.

use crate::event::{Comm, EventKind, Pid, SchedEvent, Ts};
use crate::tables::history::History;
use crate::tables::limits::{NAME_CHANGES, PIDS};
use crate::tables::seeded::SeededMap;

/// The names of tasks at any instant of a trace, as its switches, forks, execs and `task_rename` record them. The first
/// name seen of a task counts for the time before as well, that of a program that it executes among them. If `task_rename` was not
/// recorded, a task that names itself has the new name from its next switch on.
#[derive(Clone, Debug, Default)]
pub struct NameHistory {
    changes: SeededMap<Pid, History<Comm>>,
    /// The number of changes of all tasks, at most [`NAME_CHANGES`].
    number: usize,
}

impl NameHistory {
    /// Makes a history that begins with these known names.
    pub(crate) fn from(names: impl Iterator<Item = (Pid, Comm)>) -> NameHistory {
        let changes = names.map(|(pid, name)| (pid, History::new(Ts::MIN, name))).collect();
        NameHistory { changes, number: 0 }
    }

    /// The names at `ts`, in the order of PIDs.
    pub fn at(&self, ts: Ts) -> Vec<(Pid, Comm)> {
        let called = self.changes.iter().filter_map(|(pid, changes)| Some((*pid, changes.at(ts)?)));
        let mut names: Vec<(Pid, Comm)> = called.filter(|(_, name)| !name.is_empty()).collect();
        names.sort_unstable();
        names
    }

    /// Follows the next event of a trace. Events that record no name change nothing.
    pub fn learn(&mut self, event: &SchedEvent) {
        match event.kind {
            EventKind::Switch { prev, next, .. } => {
                self.is_called(prev.pid, prev.comm, event.ts);
                self.is_called(next.pid, next.comm, event.ts);
            }
            EventKind::Fork { child, child_comm, .. } => self.is_called(child, child_comm, event.ts),
            EventKind::Rename { pid, before, after } => {
                self.is_called(pid, before, event.ts);
                self.is_called(pid, after, event.ts);
            }
            EventKind::Exec { pid, program, .. } => self.is_called(pid, program, event.ts),
            _ => {}
        }
    }

    fn is_called(&mut self, pid: Pid, comm: Comm, ts: Ts) {
        // All CPUs' idle tasks have one number.
        if pid.is_idle() || comm.is_empty() {
            return;
        }
        if self.changes.len() >= PIDS && !self.changes.contains_key(&pid) {
            return;
        }
        let history = self.changes.entry(pid).or_insert_with(|| History::new(Ts::MIN, comm));
        if self.number < NAME_CHANGES && history.learn(ts, comm) {
            self.number += 1;
        }
    }

    /// The name of the task with this PID at `ts`; `None` if no event shows it.
    pub fn of(&self, pid: Pid, ts: Ts) -> Option<Comm> {
        self.changes.get(&pid)?.at(ts).filter(|comm| !comm.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Cpu, PrevState, TaskRef};

    /// Two threads that take names by turns, as often as a small file can have it.
    #[test]
    fn changes_of_names_have_a_limit() {
        let mut history = NameHistory::default();
        let names = [Comm::new(b"one"), Comm::new(b"two")];
        let more = 1_000;
        for nth in 0..NAME_CHANGES as i64 + more {
            let kind = EventKind::Exec { pid: Pid(7), old_pid: Pid(7), program: names[nth as usize % 2] };
            history.learn(&SchedEvent { ts: Ts(nth), cpu: Cpu(0), pid: Pid(7), flags: 0, kind });
        }
        let of = |ts| history.of(Pid(7), Ts(ts));
        let last = NAME_CHANGES as i64;
        assert_eq!([0, 1, last - 1, last].map(of), [0, 1, 1, 0].map(|nth| Some(names[nth])));
        assert_eq!([of(last + 1), of(last + more - 1)], [of(last); 2], "it keeps the name");
        assert_eq!(history.number, NAME_CHANGES);
    }

    #[test]
    fn names_are_those_of_the_time() {
        let name = |name: &str| Comm::new(name.as_bytes());
        let task = |pid, comm| TaskRef { pid: Pid(pid), prio: 120, comm: name(comm) };
        let switch = |prev, next| EventKind::Switch { prev, state: PrevState::asleep(1), next };
        let exec = |pid, program| EventKind::Exec { pid: Pid(pid), old_pid: Pid(pid), program: name(program) };
        let mut history = NameHistory::default();
        for (ts, kind) in [
            (1, exec(8, "make")),
            (2, switch(task(7, "sh"), task(0, "swapper/0"))),
            (3, exec(7, "chrt")),
            (5, switch(task(7, "soak"), task(9, "spmd"))),
            (5, EventKind::Rename { pid: Pid(10), before: name("exe"), after: name("nc") }),
            (6, EventKind::Fork { parent: Pid(9), child: Pid(8), child_comm: name("spmd") }),
        ] {
            history.learn(&SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(1), flags: 0, kind });
        }
        let of = |pid, ts| history.of(Pid(pid), Ts(ts));
        assert_eq!(
            [0, 2, 3, 4, 5, 9].map(|ts| of(7, ts)),
            ["sh", "sh", "chrt", "chrt", "soak", "soak"].map(|n| Some(name(n)))
        );
        assert_eq!(
            [0, 1, 5, 6].map(|ts| of(8, ts)),
            [Some(name("make")), Some(name("make")), Some(name("make")), Some(name("spmd"))]
        );
        assert_eq!([of(10, 4), of(10, 5)], [Some(name("exe")), Some(name("nc"))]);
        assert_eq!([of(9, 0), of(0, 9), of(1, 9)], [Some(name("spmd")), None, None]);
    }
}
