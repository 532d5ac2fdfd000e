//! The tasks that work for the application without descending from it: those that wake its tasks and are woken by them, hand
//! in hand (`docs/read-the-numbers.md#application`).

use crate::trace::lives::{Life, Lives, members_of};
use sched::limits::{PIDS, keep_of_pid};
use sched::lineage::LineageSteps;
use sched::seeded::{SeededMap, SeededSet};
use sched::{Application, ApplicationMember, Comm, EventKind, Pid, SchedEvent};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The least number of wakeups in each direction.
const LEAST_WAKEUPS: u64 = 3;

/// The greatest number of pairs of tasks that are counted.
const MOST_PAIRS: usize = 1 << 18;

/// The number of rounds after which no further tasks are looked for.
const MOST_ROUNDS: usize = 64;

/// The wakeups between tasks outside of the kernel, and which of them are the application's.
pub(super) struct WakeGraph {
    steps: LineageSteps,
    lives: Lives,
    names: SeededMap<Pid, Comm>,
    /// The tasks that descend from the application.
    application: SeededSet<Life>,
    /// The number of wakeups by waker and woken task.
    pairs: SeededMap<(Life, Life), u64>,
}

/// The tasks that work for the application.
pub(super) struct Helpers {
    /// The tasks, ascending.
    pub(super) members: Vec<ApplicationMember>,
    /// The number of tasks by name.
    pub(super) names: BTreeMap<Comm, usize>,
}

impl WakeGraph {
    /// Begins at the first event of a trace, with this application.
    pub(super) fn new(application: &Arc<Application>) -> WakeGraph {
        let mut graph = WakeGraph {
            steps: LineageSteps::of_application(application),
            lives: Lives::default(),
            names: SeededMap::default(),
            application: SeededSet::default(),
            pairs: SeededMap::default(),
        };
        application.members.iter().for_each(|member| graph.place(member.pid));
        graph
    }

    /// Notes a task that is one of the application.
    fn place(&mut self, pid: Pid) {
        let life = self.lives.of(pid);
        if self.steps.now().of(pid).descends && self.application.len() < PIDS {
            self.application.insert(life);
        }
    }

    /// Whether a task is one of the kernel's, or has no name by which that could be known.
    fn is_of_kernel(&self, pid: Pid) -> bool {
        let named = self.names.get(&pid).copied();
        pid.is_idle() || named.is_none_or(|name| self.steps.now().of(pid).is_of_kernel(name))
    }

    /// Takes the next event.
    pub(super) fn learn(&mut self, event: &SchedEvent) {
        match event.kind {
            EventKind::Fork { child, child_comm, .. } => {
                self.lives.fork(child);
                keep_of_pid(&mut self.names, child, child_comm);
            }
            EventKind::Switch { prev, next, .. } => {
                for task in [prev, next] {
                    keep_of_pid(&mut self.names, task.pid, task.comm);
                }
            }
            // In a softirq the current task has possibly sent what wakes the other one, on the loopback.
            EventKind::Waking { task, .. } if !event.in_hard_interrupt() && event.pid != task.pid => {
                keep_of_pid(&mut self.names, task.pid, task.comm);
                if !self.is_of_kernel(event.pid) && !self.is_of_kernel(task.pid) {
                    let pair = (self.lives.of(event.pid), self.lives.of(task.pid));
                    if self.pairs.len() < MOST_PAIRS || self.pairs.contains_key(&pair) {
                        *self.pairs.entry(pair).or_default() += 1;
                    }
                }
            }
            _ => {}
        }
        if let Some(changed) = self.steps.learn(event) {
            self.place(changed);
        }
    }

    /// The tasks that work for the application.
    pub(super) fn helpers(mut self) -> Helpers {
        let mut found: SeededSet<Life> = SeededSet::default();
        for _ in 0..MOST_ROUNDS {
            let new = self.next_helpers();
            if new.is_empty() {
                break;
            }
            self.application.extend(new.iter().copied());
            found.extend(new);
        }
        let members = members_of(&found, true);
        let mut names: BTreeMap<Comm, usize> = BTreeMap::new();
        for member in &members {
            *names.entry(self.names.get(&member.pid).copied().unwrap_or_default()).or_default() += 1;
        }
        Helpers { members, names }
    }

    /// The tasks that work for the tasks that are known to be of the application, or to work for it.
    fn next_helpers(&self) -> Vec<Life> {
        /// Wakeups of a task by the application and by all, and of the application by it.
        #[derive(Default)]
        struct Hands {
            by_application: u64,
            by_all: u64,
            of_application: u64,
        }
        let mut hands: SeededMap<Life, Hands> = SeededMap::default();
        for ((waker, woken), count) in &self.pairs {
            let by_application = if self.application.contains(waker) { *count } else { 0 };
            let of = hands.entry(*woken).or_default();
            of.by_application += by_application;
            of.by_all += count;
            if self.application.contains(woken) {
                hands.entry(*waker).or_default().of_application += count;
            }
        }
        let helps = |(life, of): &(&Life, &Hands)| {
            !self.application.contains(*life)
                && of.by_application.min(of.of_application) >= LEAST_WAKEUPS
                && of.by_application * 2 >= of.by_all
        };
        hands.iter().filter(helps).map(|(life, _)| *life).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::{Cpu, PrevState, TaskRef, Ts};

    fn task(pid: i32) -> TaskRef {
        TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") }
    }

    fn event(pid: i32, flags: u8, kind: EventKind) -> SchedEvent {
        SchedEvent { ts: Ts(0), cpu: Cpu(0), pid: Pid(pid), flags, kind }
    }

    /// A graph in which these numbers of tasks have names and task 1 is the application.
    fn graph(tasks: i32) -> WakeGraph {
        let members = vec![ApplicationMember { pid: Pid(1), life: 0, helps: false }];
        let mut graph = WakeGraph::new(&Arc::new(Application { members, ..Application::default() }));
        for pid in 1..=tasks {
            let kind = EventKind::Switch { prev: task(pid), state: PrevState::RUNNABLE, next: task(pid) };
            graph.learn(&event(pid, 0, kind));
        }
        graph
    }

    fn wake(graph: &mut WakeGraph, (waker, woken): (i32, i32), times: usize, flags: u8) {
        let kind = EventKind::Waking { task: task(woken), target: Cpu(0) };
        (0..times).for_each(|_| graph.learn(&event(waker, flags, kind)));
    }

    fn helpers(graph: WakeGraph) -> Vec<i32> {
        graph.helpers().members.iter().map(|member| member.pid.0).collect()
    }

    #[test]
    fn helpers_are_found_in_rounds() {
        let mut graph = graph(9);
        // 2 works for 1, and 3 for 2; 4 is woken by others as often twice, 5 never answers, 6 is woken in hard interrupts.
        for (pair, times, flags) in [
            ((1, 2), 3, 0x10),
            ((2, 1), 3, 0),
            ((2, 3), 9, 0),
            ((3, 2), 3, 0),
            ((1, 4), 4, 0),
            ((4, 1), 4, 0),
            ((9, 4), 8, 0),
            ((1, 5), 9, 0),
            ((1, 6), 9, 0x08),
            ((6, 1), 9, 0x08),
        ] {
            wake(&mut graph, pair, times, flags);
        }
        assert_eq!(helpers(graph), [2, 3]);
    }

    #[test]
    fn the_number_of_pairs_has_a_limit() {
        let mut graph = graph(520);
        for waker in 2..=520 {
            (2..=520).for_each(|woken| wake(&mut graph, (waker, woken), 1, 0));
        }
        assert_eq!(graph.pairs.len(), MOST_PAIRS);
        for pair in [(1, 2), (2, 1)] {
            wake(&mut graph, pair, 3, 0);
        }
        assert_eq!(helpers(graph), [0; 0]);
    }
}
