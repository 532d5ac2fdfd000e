//! Useless pulls, and migrations that are soon undone.

use sched::kthread::{is_any_stopper, is_ksoftirqd};
use sched::seeded::SeededMap;
use sched::{Cause, Cpu, Current, Dur, EventKind, Migration, Pid, SchedEvent, SchedState, TaskState, Ts, limits};

/// Maximum time after which a migration back reverses one.
const SOON: Dur = Dur(10_000_000);

/// A migration as its event shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    ts: Ts,
    pid: Pid,
    orig: Cpu,
    dest: Cpu,
    /// Whether the task waited.
    queued: bool,
    /// The tasks on the two CPUs before, where both are known.
    loads: Option<[TasksOn; 2]>,
}

/// The tasks of a CPU, without those that work for the balancer.
#[derive(Clone, Copy, Debug)]
struct TasksOn {
    runs: bool,
    waiting: u32,
}

impl TasksOn {
    fn of(cpu: Cpu, state: &SchedState) -> Option<TasksOn> {
        let waiting = state.queue_length(cpu);
        let runs = match (state.current(cpu), state.running(cpu)) {
            (Current::Idle, _) => false,
            (Current::Task(_), Some(task)) => !is_any_stopper(task.comm) && !is_ksoftirqd(task.comm),
            _ => return None,
        };
        Some(TasksOn { runs, waiting })
    }
}

impl Move {
    /// The migration that an event is; `state` is the one before.
    pub(crate) fn of(event: &SchedEvent, state: &SchedState) -> Option<Move> {
        let EventKind::Migrate { task, orig, dest } = event.kind else { return None };
        let queued = state.task_of(task.pid).is_some_and(|task| matches!(task.state, TaskState::Waiting(_)));
        let loads = || Some([TasksOn::of(orig, state)?, TasksOn::of(dest, state)?]);
        let loads = if queued { loads() } else { None };
        Some(Move { ts: event.ts, pid: task.pid, orig, dest, queued, loads })
    }

    /// The queued task that is moved, as herds have it.
    pub(crate) fn queued(&self) -> Option<(Ts, Cpu, Cpu)> {
        self.queued.then_some((self.ts, self.orig, self.dest))
    }

    /// Whether a pull with this cause leaves its destination at least as loaded as the source was; nothing for other migrations, and
    /// where the load is unknown.
    fn is_useless(&self, cause: Cause) -> Option<bool> {
        let pulls = [Cause::NewIdle, Cause::Idle, Cause::Periodic, Cause::NohzIdle, Cause::Active];
        let [source, target] = self.loads.filter(|_| pulls.contains(&cause))?;
        // The task that runs on the target of a new-idle pull is about to sleep.
        let stays = target.runs && cause != Cause::NewIdle;
        Some(target.waiting + 1 + u32::from(stays) >= source.waiting + u32::from(source.runs))
    }
}

/// The numbers of one cause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UndoneCounts {
    /// The number of pulls whose loads are known.
    pub(crate) pulls: u64,
    /// The useless ones of these pulls.
    pub(crate) useless: u64,
    /// The number of migrations that the next one of their task reversed soon.
    pub(crate) reversed: u64,
}

/// A migration of which something is still to come.
#[derive(Clone, Copy, Debug)]
struct OpenMove {
    of: Move,
    /// The cause once it is settled; nothing in it for a migration that does not count.
    cause: Option<Option<Cause>>,
    /// Whether the next migration of the task reverses it; nothing while none has followed.
    reversed: Option<bool>,
}

/// Finds useless pulls and reversed migrations: a migration and its cause come in any order.
#[derive(Debug)]
pub(crate) struct UndoneMoves {
    /// Maximum number of PIDs whose latest migration is kept.
    most: usize,
    open: SeededMap<(Pid, Ts, Cpu), OpenMove>,
    /// The latest migration of each task.
    latest: SeededMap<Pid, (Ts, Cpu)>,
    counts: [UndoneCounts; Cause::ALL.len()],
}

impl Default for UndoneMoves {
    fn default() -> UndoneMoves {
        let counts = [UndoneCounts::default(); Cause::ALL.len()];
        UndoneMoves { most: limits::TASKS, open: SeededMap::default(), latest: SeededMap::default(), counts }
    }
}

impl UndoneMoves {
    /// Takes a migration when it happens. Beyond the limit of tasks those of further ones are left out.
    pub(crate) fn happens(&mut self, of: Move) {
        if self.latest.len() >= self.most && !self.latest.contains_key(&of.pid) {
            return;
        }
        if let Some((ts, dest)) = self.latest.insert(of.pid, (of.ts, of.dest)) {
            let key = (of.pid, ts, dest);
            if let Some(before) = self.open.get_mut(&key) {
                let is_back = (before.of.orig, before.of.dest) == (of.dest, of.orig);
                before.reversed = Some(is_back && of.ts.since(ts) <= SOON);
                self.close(key);
            }
        }
        self.open.insert((of.pid, of.ts, of.dest), OpenMove { of, cause: None, reversed: None });
    }

    /// Takes the cause of a migration when it is settled; `counts`: whether the migration is one of those that are shown.
    pub(crate) fn settles(&mut self, m: &Migration, counts: bool) {
        let key = (m.pid, m.ts, m.dest);
        let Some(open) = self.open.get_mut(&key) else { return };
        open.cause = Some(counts.then_some(m.cause));
        if let Some(is_useless) = open.of.is_useless(m.cause).filter(|_| counts) {
            let counts = &mut self.counts[m.cause as usize];
            counts.pulls += 1;
            counts.useless += u64::from(is_useless);
        }
        self.close(key);
    }

    /// Counts and forgets a migration once nothing more is to come.
    fn close(&mut self, key: (Pid, Ts, Cpu)) {
        let Some(OpenMove { cause: Some(cause), reversed: Some(reversed), .. }) = self.open.get(&key).copied() else {
            return;
        };
        self.open.remove(&key);
        if let Some(cause) = cause {
            self.counts[cause as usize].reversed += u64::from(reversed);
        }
    }

    /// The numbers of a cause.
    pub(crate) fn of(&self, cause: Cause) -> UndoneCounts {
        self.counts[cause as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::{Move, UndoneMoves};
    use crate::Balance;
    use sched::{Cause, ChosenCpus, Comm, Cpu, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Topology, Ts};

    const IDLE: TaskRef = TaskRef { pid: Pid(0), prio: 120, comm: Comm::EMPTY };
    const SOFTIRQ: u8 = 0x10;

    fn task(pid: i32) -> TaskRef {
        TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"make") }
    }

    fn at(ts: i64, cpu: u32, pid: i32, flags: u8, kind: EventKind) -> SchedEvent {
        SchedEvent { ts: Ts(ts * 1_000), cpu: Cpu(cpu), pid: Pid(pid), flags, kind }
    }

    /// Task 7 runs on CPU 0 where 8 waits, task 9 on CPU 1; CPU 2 idles.
    fn start() -> Vec<SchedEvent> {
        vec![
            at(0, 0, 7, 0, EventKind::Other { id: 1 }),
            at(0, 1, 9, 0, EventKind::Other { id: 1 }),
            at(0, 2, 0, 0, EventKind::Other { id: 1 }),
            at(10, 0, 7, 0, EventKind::Waking { task: task(8), target: Cpu(0) }),
            at(11, 0, 7, 0, EventKind::Wakeup { task: task(8), target: Cpu(0) }),
            at(12, 0, 7, 0, EventKind::Other { id: 1 }),
        ]
    }

    fn moved(ts: i64, on: (u32, i32, u8), pid: i32, orig: u32, dest: u32) -> SchedEvent {
        at(ts, on.0, on.1, on.2, EventKind::Migrate { task: task(pid), orig: Cpu(orig), dest: Cpu(dest) })
    }

    fn runs(ts: i64, cpu: u32, prev: TaskRef, next: TaskRef) -> SchedEvent {
        at(ts, cpu, prev.pid.0, 0, EventKind::Switch { prev, state: PrevState::asleep(1), next })
    }

    /// Each cause with its pulls, the useless and the reversed ones.
    fn counted(events: &[SchedEvent]) -> Vec<(Cause, Option<u64>, Option<u64>, u64)> {
        let (topology, cpus) = (Topology::default(), ChosenCpus::default());
        let (from, to) = (events[0].ts, events[events.len() - 1].ts);
        let pass = Pass::over(events).run(|| Balance::new(&topology, &cpus, from, to));
        let report = pass.unwrap_or_else(|never| match never {}).output;
        report.causes.iter().map(|c| (c.cause, c.pulls, c.useless, c.reversed)).collect()
    }

    #[test]
    fn a_pull_to_a_cpu_that_is_as_loaded_then_is_useless() {
        // Two tasks on CPU 0; with the pulled one CPU 1 has two as well.
        let mut events = start();
        events.extend([moved(20, (1, 9, SOFTIRQ), 8, 0, 1), runs(30, 1, task(9), task(8))]);
        assert_eq!(counted(&events), [(Cause::Periodic, Some(1), Some(1), 0)]);
        // CPU 2 has one.
        let mut events = start();
        events.extend([moved(20, (2, 0, SOFTIRQ), 8, 0, 2), runs(30, 2, IDLE, task(8))]);
        assert_eq!(counted(&events), [(Cause::Idle, Some(1), Some(0), 0)]);
        // The task that is about to sleep on the target does not count.
        let mut events = start();
        events.extend([moved(20, (1, 9, 0), 8, 0, 1), runs(21, 1, task(9), task(8))]);
        assert_eq!(counted(&events), [(Cause::NewIdle, Some(1), Some(0), 0)]);
    }

    #[test]
    fn the_tasks_whose_moves_are_kept_have_a_limit() {
        let moved = |ts, pid, orig, dest| Move {
            ts: Ts(ts),
            pid: Pid(pid),
            orig: Cpu(orig),
            dest: Cpu(dest),
            queued: false,
            loads: None,
        };
        let mut moves = UndoneMoves { most: 2, ..UndoneMoves::default() };
        for pid in [7, 8, 9, 7, 9] {
            let is_known = moves.latest.contains_key(&Pid(pid));
            let (orig, dest) = if is_known { (1, 0) } else { (0, 1) };
            moves.happens(moved(pid.into(), pid, orig, dest));
            assert!(moves.latest.len() <= 2 && moves.open.len() <= 3, "{moves:?}");
        }
        // The third task has no entry, the first one its return.
        assert!(!moves.latest.contains_key(&Pid(9)));
        assert_eq!(moves.open.values().filter(|open| open.reversed == Some(true)).count(), 1);
    }

    #[test]
    fn a_migration_is_reversed_by_one_back_within_ten_milliseconds() {
        let back = |ts| {
            let mut events = start();
            events.extend([moved(20, (2, 0, SOFTIRQ), 8, 0, 2), moved(ts, (0, 7, SOFTIRQ), 8, 2, 0)]);
            events.push(at(ts + 1, 0, 7, 0, EventKind::Other { id: 1 }));
            counted(&events)
        };
        assert_eq!(back(10_020), [(Cause::Idle, Some(1), Some(0), 1), (Cause::Periodic, Some(1), Some(1), 0)]);
        assert_eq!(back(10_021)[0], (Cause::Idle, Some(1), Some(0), 0));
        // A move to a third CPU is none back.
        let mut events = start();
        events.extend([moved(20, (2, 0, SOFTIRQ), 8, 0, 2), moved(30, (1, 9, SOFTIRQ), 8, 2, 1)]);
        events.push(moved(40, (0, 7, SOFTIRQ), 8, 1, 0));
        assert!(counted(&events).iter().all(|(.., reversed)| *reversed == 0));
    }

    #[test]
    fn reversed_migrations_are_those_of_the_events_alone() {
        let mut all = 0;
        for seed in 0..20 {
            let events = testkit::Simulation::balanced(seed, 2 + (seed % 5) as u32, 500).events;
            let moves = events.iter().filter_map(|event| match event.kind {
                EventKind::Migrate { task, orig, dest } => Some((task.pid, event.ts, orig, dest)),
                _ => None,
            });
            let (mut latest, mut reversed) = (std::collections::BTreeMap::new(), 0);
            for (pid, ts, orig, dest) in moves {
                if let Some((before, from, to)) = latest.insert(pid, (ts, orig, dest)) {
                    reversed += u64::from((from, to) == (dest, orig) && ts.since(before) <= super::SOON);
                }
            }
            assert_eq!(counted(&events).iter().map(|(.., reversed)| reversed).sum::<u64>(), reversed, "seed {seed}");
            all += reversed;
        }
        assert!(all > 20, "{all}");
    }
}
