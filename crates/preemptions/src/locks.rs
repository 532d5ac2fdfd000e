//! Tasks that were preempted while another waited for a lock of the kernel, and can have held it.

use sched::serial::exact;
use sched::{Comm, Cpu, Dur, Pid, SchedEvent, SchedState, TaskRef, Ts};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Maximum number of tasks that wait for locks at once, and of preemptions that are remembered meanwhile.
const MOST: usize = 4096;

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
    waiting: Vec<Contention>,
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
        let (waiting, preempted, holders) = Default::default();
        Locks { most, waiting, preempted, waits: 0, with_holders: 0, holders }
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
        let waits = |wait: &Contention| wait.pid == event.pid && wait.lock == lock;
        if begins {
            self.waiting.retain(|wait| !waits(wait));
            if self.waiting.len() < MOST {
                self.waiting.push(Contention { pid: event.pid, lock, from: event.ts });
            }
            return;
        }
        let Some(place) = self.waiting.iter().position(waits) else { return };
        let wait = self.waiting.swap_remove(place);
        if start.is_some() {
            self.waited(&wait, event.ts, state);
        }
        self.forget();
    }

    /// A task was preempted in the kernel.
    pub(crate) fn preempted(&mut self, event: &SchedEvent, task: TaskRef, next: TaskRef) {
        // A task that waits for a lock itself is the holder of another at most.
        if self.waiting.is_empty() || self.preempted.len() >= MOST {
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
        NotedLocks { waiting: self.waiting.clone(), preempted: self.preempted.iter().copied().collect() }
    }

    /// Takes up the waits that were open before a part, up to the limits of this one.
    pub(crate) fn take_up(&mut self, noted: NotedLocks) {
        self.waiting.extend(noted.waiting.into_iter().take(MOST));
        self.preempted.extend(noted.preempted.into_iter().take(MOST));
    }

    fn waited(&mut self, wait: &Contention, end: Ts, state: &SchedState) {
        self.waits += 1;
        let waits_too = |pid: Pid| self.waiting.iter().any(|other| other.pid == pid && other.lock == wait.lock);
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
        let earliest = self.waiting.iter().map(|wait| wait.from).min();
        self.preempted.retain(|held| earliest.is_some_and(|earliest| held.at >= earliest));
    }
}
