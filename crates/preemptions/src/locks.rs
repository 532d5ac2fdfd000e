//! Tasks that were preempted while another waited for a lock of the kernel, and can have held it.

use sched::seeded::SeededMap;
use sched::serial::exact;
use sched::{Comm, Cpu, Dur, Pid, SchedEvent, SchedState, TaskRef, Ts};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// Maximum number of tasks that wait for locks at once.
const MOST_WAITS: usize = 4096;

/// Maximum number of preemptions that are remembered meanwhile. Each end of a wait looks at all of them.
const MOST_PREEMPTED: usize = 1024;

/// A task that was preempted in the kernel while another waited for a lock: it can have held the lock. No event shows who does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockHolder {
    /// The PID of the task that waited for the lock.
    pub waiter: Pid,
    /// The command name of the task that waited.
    pub waiter_command: Comm,
    /// The instant at which that task began to wait for the lock, in nanoseconds of the trace's clock.
    pub from_ns: Ts,
    /// The time for which that task waited for the lock, in nanoseconds.
    pub waited_ns: Dur,
    /// The PID of the task that was preempted meanwhile.
    pub holder: Pid,
    /// The command name of the preempted task.
    pub holder_command: Comm,
    /// The CPU on which the preempted task ran.
    pub holder_cpu: Cpu,
    /// The instant of the preemption, in nanoseconds of the trace's clock.
    pub preempted_ns: Ts,
    /// The PID of the task that ran instead.
    pub next: Pid,
    /// The command name of the task that ran instead.
    pub next_command: Comm,
    /// The number of tasks that were preempted in the kernel during the wait, of which each can be the holder.
    pub candidates: u64,
}

/// A task that waits for a lock.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Contention {
    pid: Pid,
    lock: [u32; 2],
    from: Ts,
}

/// A preemption in the kernel.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct InKernel {
    pid: Pid,
    #[serde(with = "exact")]
    comm: Comm,
    cpu: Cpu,
    at: Ts,
    next: Pid,
    #[serde(with = "exact")]
    next_comm: Comm,
}

/// The waits for locks that are open at the end of a part, and the preemptions during them.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct NotedLocks {
    waiting: Vec<Contention>,
    preempted: Vec<InKernel>,
}

/// The waits for locks, and the preemptions during them.
#[derive(Clone, Debug)]
pub(crate) struct Locks {
    most: usize,
    /// The beginning of each open wait, by its task and its lock.
    waiting: SeededMap<(Pid, [u32; 2]), Ts>,
    /// The beginnings, the earliest first.
    begun: BTreeSet<(Ts, Pid, [u32; 2])>,
    /// The preemptions, the earliest first.
    preempted: VecDeque<InKernel>,
    /// The number of waits for locks that ended.
    pub(crate) waits: u64,
    /// The number of those during which a task was preempted that can have held the lock.
    pub(crate) with_holders: u64,
    /// The longest of these, with each task that can have held the lock.
    pub(crate) holders: Vec<LockHolder>,
}

impl Locks {
    pub(crate) fn new(most: usize) -> Locks {
        let (waiting, begun, preempted, holders) = Default::default();
        Locks { most, waiting, begun, preempted, waits: 0, with_holders: 0, holders }
    }

    /// Notes that a wait begins, if there is room.
    fn open(&mut self, wait: Contention) {
        let Contention { pid, lock, from } = wait;
        if self.waiting.len() < MOST_WAITS {
            self.waiting.insert((pid, lock), from);
            self.begun.insert((from, pid, lock));
        }
    }

    /// Removes and returns an open wait.
    fn close(&mut self, pid: Pid, lock: [u32; 2]) -> Option<Contention> {
        let from = self.waiting.remove(&(pid, lock))?;
        self.begun.remove(&(from, pid, lock));
        Some(Contention { pid, lock, from })
    }

    /// Follows the beginning or the end of a wait for a lock; those that end from `start` on are counted.
    pub(crate) fn contends(
        &mut self,
        event: &SchedEvent,
        lock: [u32; 2],
        begins: bool,
        start: Option<Ts>,
        state: &SchedState,
    ) {
        let wait = self.close(event.pid, lock);
        if begins {
            return self.open(Contention { pid: event.pid, lock, from: event.ts });
        }
        let Some(wait) = wait else { return };
        if start.is_some() {
            self.waited(&wait, event.ts, state);
        }
        self.forget();
    }

    /// A task was preempted in the kernel.
    pub(crate) fn preempted(&mut self, event: &SchedEvent, task: TaskRef, next: TaskRef) {
        // A task that waits for a lock itself is the holder of another at most.
        if self.waiting.is_empty() || self.preempted.len() >= MOST_PREEMPTED {
            return;
        }
        let (next, next_comm) = (next.pid, next.comm);
        self.preempted.push_back(InKernel {
            pid: task.pid,
            comm: task.comm,
            cpu: event.cpu,
            at: event.ts,
            next,
            next_comm,
        });
    }

    /// The waits that are open, for the notes of a part.
    pub(crate) fn noted(&self) -> NotedLocks {
        let waiting = self.begun.iter().map(|(from, pid, lock)| Contention { pid: *pid, lock: *lock, from: *from });
        NotedLocks { waiting: waiting.collect(), preempted: self.preempted.iter().copied().collect() }
    }

    /// Takes up the waits that were open before a part, up to the limits of this one.
    pub(crate) fn take_up(&mut self, noted: NotedLocks) {
        for wait in noted.waiting {
            self.close(wait.pid, wait.lock);
            self.open(wait);
        }
        self.preempted.extend(noted.preempted.into_iter().take(MOST_PREEMPTED));
    }

    fn waited(&mut self, wait: &Contention, end: Ts, state: &SchedState) {
        self.waits += 1;
        let waits_too = |pid: Pid| self.waiting.contains_key(&(pid, wait.lock));
        let holds = |held: &&InKernel| held.at >= wait.from && held.pid != wait.pid && !waits_too(held.pid);
        let candidates: Vec<InKernel> = self.preempted.iter().filter(holds).copied().collect();
        self.with_holders += u64::from(!candidates.is_empty());
        let waiter_command = state.task_of(wait.pid).map_or(Comm::EMPTY, |task| task.comm);
        for held in &candidates {
            let holder = LockHolder {
                waiter: wait.pid,
                waiter_command,
                from_ns: wait.from,
                waited_ns: end.since(wait.from),
                holder: held.pid,
                holder_command: held.comm,
                holder_cpu: held.cpu,
                preempted_ns: held.at,
                next: held.next,
                next_command: held.next_comm,
                candidates: candidates.len() as u64,
            };
            let place = self.holders.partition_point(|kept| kept.waited_ns >= holder.waited_ns);
            if place < self.most {
                self.holders.insert(place, holder);
                self.holders.truncate(self.most);
            }
        }
    }

    /// Drops the preemptions from before the earliest wait that is open.
    fn forget(&mut self) {
        let earliest = self.begun.first().map(|(from, ..)| *from);
        while self.preempted.front().is_some_and(|held| earliest.is_none_or(|earliest| held.at < earliest)) {
            self.preempted.pop_front();
        }
    }
}
