//! The living tasks, and the run queues that they form.
//!
//! A slab, so that memory follows the tasks that live at once and not those that ever lived; the
//! queues are lists through it, so that joining and leaving cost the same at any length.

use crate::event::span::{Came, Span, TaskState};
pub(super) use crate::event::task_id::Slot;
use crate::event::task_id::TaskId;
use crate::event::{Comm, Cpu, Pid, TaskRef, Ts};
use crate::state::lineage::Kin;
use crate::tables::limits::TASKS;
use crate::tables::seeded::SeededMap;

/// The index of no task, at the ends of a queue.
const NONE: Slot = Slot::MAX;

/// A `sched_waking` event, which begins a wakeup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waking {
    /// The PID of the waker: the task that ran where the event was recorded.
    pub by: Pid,
    /// The instant of the event.
    pub at: Ts,
    /// The CPU of the waker, on which the event was recorded.
    pub on: Cpu,
    /// The previous CPU of the woken task (`target_cpu`).
    pub previous: Cpu,
}

/// A living task at the present instant, with the facts that the events so far have shown.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    id: TaskId,
    /// The PID of the task.
    pub pid: Pid,
    /// The latest command name of the task; empty if none was seen.
    pub comm: Comm,
    /// The latest kernel priority of the task; see [`Task::known_prio`].
    pub prio: i32,
    /// The state of the task.
    pub state: TaskState,
    /// The instant since which the task is in that state.
    pub since: Ts,
    /// Whether an event began that state. Otherwise it had lasted for some time unseen.
    pub begun: bool,
    /// The instant of the task's `sched_wakeup_new`, if it was seen.
    pub born: Option<Ts>,
    /// The latest `sched_waking` of this task since it was switched in; `None` once the task turned out to be awake. If
    /// wakings place tasks ([`super::Start::by_wakings`]), it is kept until the task is switched out again.
    pub waking: Option<Waking>,
    /// Whether a `sched_wakeup` has followed that waking, so that the waking belongs to no later one.
    pub(super) waking_is_used: bool,
    /// The beginning of the wait, on whatever run queues, while the task waits; `None` if it was not seen.
    pub queued: Option<Ts>,
    /// The way in which the task joined the run queue, while it waits.
    pub came: Came,
    /// The CPU on which the task last ran, as far as the trace shows it.
    pub ran_on: Option<Cpu>,
    /// The origin of the task: its parent, and whether it belongs to the application.
    pub kin: Kin,
    /// The CPU from which the task's first event migrated it, and whether that CPU had been idle since the start. The
    /// next event decides whether the task waited there; on an emptied CPU it can have come only later.
    pub(super) undecided: Option<(Cpu, bool)>,
    prev: Slot,
    next: Slot,
}

impl Task {
    /// The identity of the task, which no other life of its PID has.
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// The priority of a task that only `common_pid` has shown; no kernel gives it.
    pub(crate) const NO_PRIO: i32 = i32::MIN;

    /// The priority of the task, if an event has shown it. A task that only `common_pid` has shown has nothing but its
    /// PID.
    pub fn known_prio(&self) -> Option<i32> {
        (self.prio != Task::NO_PRIO).then_some(self.prio)
    }
}

/// A run queue: the waiting tasks, in the order of their arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskQueue {
    first: Slot,
    last: Slot,
    pub(super) len: u32,
}

impl Default for TaskQueue {
    fn default() -> TaskQueue {
        TaskQueue { first: NONE, last: NONE, len: 0 }
    }
}

impl TaskQueue {
    /// The index of the task that has waited longest, if the queue is not empty.
    pub(super) fn head(&self) -> Option<Slot> {
        (self.first != NONE).then_some(self.first)
    }
}

/// The table of living tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    slab: Vec<Task>,
    by_pid: SeededMap<Pid, Slot>,
    free: Vec<Slot>,
    /// The tasks that died at the last event, which can be looked at until the next one.
    dying: Vec<Slot>,
    lives: u32,
}

impl Tasks {
    /// The index of the living task with this PID.
    pub(super) fn find(&self, pid: Pid) -> Option<Slot> {
        self.by_pid.get(&pid).copied()
    }

    /// The approximate number of bytes of a copy.
    pub(super) fn bytes(&self) -> usize {
        self.slab.len() * size_of::<Task>() + self.by_pid.len() * size_of::<(Pid, Slot)>()
    }

    /// The task with this index, living or dead.
    pub(super) fn at(&self, slot: Slot) -> Option<&Task> {
        self.slab.get(slot as usize)
    }

    /// The task with this identity, until its index is taken by another.
    pub(super) fn get(&self, id: TaskId) -> Option<&Task> {
        self.at(id.slot).filter(|task| task.id == id)
    }

    /// The task with this index, which must have been used.
    pub(super) fn entry(&mut self, slot: Slot) -> &mut Task {
        &mut self.slab[slot as usize]
    }

    /// Adds a task, and returns its index; `None` if the table is full.
    pub(super) fn insert(&mut self, task: TaskRef, kin: Kin, state: TaskState, since: Ts) -> Option<Slot> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slab.len() < TASKS => self.slab.len() as Slot,
            None => return None,
        };
        self.lives = self.lives.wrapping_add(1);
        let task = Task {
            id: TaskId { slot, life: self.lives },
            pid: task.pid,
            comm: task.comm,
            prio: task.prio,
            state,
            since,
            begun: false,
            born: None,
            waking: None,
            waking_is_used: false,
            queued: None,
            came: Came::Unknown,
            ran_on: None,
            kin,
            undecided: None,
            prev: NONE,
            next: NONE,
        };
        match self.slab.get_mut(slot as usize) {
            Some(entry) => *entry = task,
            None => self.slab.push(task),
        }
        self.by_pid.insert(task.pid, slot);
        Some(slot)
    }

    /// Gives another PID to a task.
    pub(super) fn renumber(&mut self, slot: Slot, pid: Pid) {
        let old = std::mem::replace(&mut self.entry(slot).pid, pid);
        self.by_pid.remove(&old);
        self.by_pid.insert(pid, slot);
    }

    /// Ends the life of a task; its index is free from the next event on.
    pub(super) fn die(&mut self, slot: Slot) {
        let pid = self.entry(slot).pid;
        self.by_pid.remove(&pid);
        self.dying.push(slot);
    }

    /// Frees the indices of the tasks that died at the event before.
    pub(super) fn bury(&mut self) {
        if !self.dying.is_empty() {
            self.free.append(&mut self.dying);
        }
    }

    /// Appends a task to a queue.
    pub(super) fn join(&mut self, queue: &mut TaskQueue, slot: Slot) {
        let last = std::mem::replace(&mut queue.last, slot);
        let task = self.entry(slot);
        (task.prev, task.next) = (last, NONE);
        match last {
            NONE => queue.first = slot,
            last => self.entry(last).next = slot,
        }
        queue.len += 1;
    }

    /// Removes a task from a queue that it is in.
    pub(super) fn leave(&mut self, queue: &mut TaskQueue, slot: Slot) {
        let Task { prev, next, .. } = *self.entry(slot);
        match prev {
            NONE => queue.first = next,
            prev => self.entry(prev).next = next,
        }
        match next {
            NONE => queue.last = prev,
            next => self.entry(next).prev = prev,
        }
        queue.len -= 1;
    }

    /// Iterates over the tasks of a queue in their order.
    pub(super) fn queued(&self, queue: TaskQueue) -> impl Iterator<Item = &Task> {
        let follow = |slot: Slot| if slot == NONE { None } else { self.at(slot) };
        std::iter::successors(follow(queue.first), move |task| follow(task.next))
    }

    /// Iterates over the tasks of a queue against their order.
    pub(super) fn queued_latest_first(&self, queue: TaskQueue) -> impl Iterator<Item = &Task> {
        let follow = |slot: Slot| if slot == NONE { None } else { self.at(slot) };
        std::iter::successors(follow(queue.last), move |task| follow(task.prev))
    }

    /// The free indices; the one that is taken next is the last.
    pub(super) fn free_slots(&self) -> Vec<Slot> {
        self.free.iter().chain(&self.dying).copied().collect()
    }

    /// The number of lives so far.
    pub(super) fn lives(&self) -> u32 {
        self.lives
    }

    /// Makes a table without tasks, of as many slots as `free` has. They are taken from the last on: first those that
    /// tasks are about to be given, then those that stay free.
    pub(super) fn free_table(free: Vec<Slot>) -> Tasks {
        let none = TaskRef { pid: Pid::IDLE, prio: Task::NO_PRIO, comm: Comm::EMPTY };
        let mut tasks = Tasks::default();
        for _ in &free {
            tasks.insert(none, Kin::default(), TaskState::Dead, Ts::default());
        }
        Tasks { by_pid: SeededMap::default(), free, lives: 0, ..tasks }
    }

    /// Sets the number of lives so far; the next task takes the next number.
    pub(super) fn count_lives(&mut self, lives: u32) {
        self.lives = lives;
    }

    /// Iterates over the living tasks in the order of their indices.
    pub(super) fn living(&self) -> impl Iterator<Item = &Task> {
        let lives =
            |task: &&Task| self.find(task.pid).and_then(|slot| self.at(slot)).is_some_and(|at| at.id == task.id);
        self.slab.iter().filter(lives)
    }

    /// Returns the spans of all living tasks, cut at `end`, in the order of PIDs.
    pub(super) fn open_spans(&self, end: Ts) -> Vec<Span> {
        let mut pids: Vec<(Pid, Slot)> = self.by_pid.iter().map(|(pid, slot)| (*pid, *slot)).collect();
        pids.sort_unstable();
        let open = |(pid, slot): (Pid, Slot)| {
            let task = self.at(slot)?;
            let Task { id, state, since, begun, .. } = *task;
            Some(Span { task: id, pid, state, start: since, end, next: state, begun, ended: false })
        };
        pids.into_iter().filter_map(open).collect()
    }
}
