//! The living tasks, and the run queues that they form.
//!
//! A slab, so that memory follows the tasks that live at once and not those that ever lived; the
//! queues are lists through it, so that joining and leaving cost the same at any length.

mod packed;
mod pids;

pub(super) use packed::PackedTasks;

use crate::event::nice::{IDLE_WEIGHT, NICE_0_WEIGHT, excess_weight};
use crate::event::span::{Came, Span, TaskState};
pub(super) use crate::event::task_id::Slot;
use crate::event::task_id::TaskId;
use crate::event::{Comm, Cpu, Pid, TaskRef, Ts};
use crate::state::lineage::Kin;
use crate::tables::limits::TASKS;
use crate::tables::seeded::SeededSet;
use pids::SlotsByPid;

/// The index of no task, at the ends of a queue.
const NONE: Slot = Slot::MAX;

/// The kernel priority of nice 0.
const NICE_0: i32 = 120;

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
    /// The weight by which it counts on the run queue where it waits, above that of nice 0.
    excess: i32,
    /// Whether the task is known to be of the policy `SCHED_IDLE`.
    pub(super) is_sched_idle: bool,
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

    /// The weight by which the task compares run queues while it waits; `None` for one that compares numbers of tasks: of a real-time or deadline
    /// class, or of unknown priority.
    #[inline]
    pub fn compared_weight(&self) -> Option<u32> {
        if self.prio == NICE_0 && !self.is_sched_idle { Some(NICE_0_WEIGHT) } else { self.weight_other_than_nice_0() }
    }

    #[cold]
    #[inline(never)]
    fn weight_other_than_nice_0(&self) -> Option<u32> {
        let weighs = self.prio >= 100 || self.weighs_as_sched_idle();
        weighs.then(|| NICE_0_WEIGHT.saturating_add_signed(self.excess_weight()))
    }

    /// Takes over the priority and the policy that decide its weight.
    pub(super) fn take_weight(&mut self, prio: i32, is_sched_idle: bool) {
        (self.prio, self.is_sched_idle) = (prio, is_sched_idle);
    }

    /// Whether the task has the weight of `SCHED_IDLE`: not while it has a priority of another class, which it inherits with a lock.
    fn weighs_as_sched_idle(&self) -> bool {
        self.is_sched_idle && (self.prio >= 100 || self.prio == Task::NO_PRIO)
    }

    /// The difference between the weight by which the task counts where run queues are compared and that of a task of nice 0.
    pub(super) fn excess_weight(&self) -> i32 {
        match self.weighs_as_sched_idle() {
            true => IDLE_WEIGHT as i32 - NICE_0_WEIGHT as i32,
            false => excess_weight(self.prio, self.comm),
        }
    }
}

/// A run queue: the waiting tasks, in the order of their arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskQueue {
    first: Slot,
    last: Slot,
    pub(super) len: u32,
    /// The number of its tasks whose weight is not that of nice 0, and of those that compare no weights.
    pub(super) odd: u32,
    pub(super) unweighed: u32,
    /// The weight of its tasks above that of as many of nice 0.
    pub(super) excess: i64,
}

impl Default for TaskQueue {
    fn default() -> TaskQueue {
        TaskQueue { first: NONE, last: NONE, len: 0, odd: 0, unweighed: 0, excess: 0 }
    }
}

impl TaskQueue {
    /// The index of the task that has waited longest, if the queue is not empty.
    pub(super) fn head(&self) -> Option<Slot> {
        (self.first != NONE).then_some(self.first)
    }

    /// Counts a task whose priority is not that of nice 0, as it joins (1) or leaves (−1).
    #[cold]
    fn count_weight(&mut self, prio: i32, excess: i32, by: i32) {
        let count = |number: &mut u32, is_one: bool| *number = number.saturating_add_signed(by * i32::from(is_one));
        count(&mut self.unweighed, prio < 100);
        count(&mut self.odd, excess != 0);
        self.excess += i64::from(by * excess);
    }
}

/// The table of living tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    slab: Vec<Task>,
    by_pid: SlotsByPid,
    free: Vec<Slot>,
    /// The tasks that died at the last event, which can be looked at until the next one.
    dying: Vec<Slot>,
    lives: u32,
    /// Whether some task had a priority of the fair class other than that of nice 0, or was of `SCHED_IDLE`, now or before.
    pub(super) has_odd: bool,
    /// The PIDs of the policy `SCHED_IDLE`, of tasks that no event has shown yet as well.
    pub(super) sched_idle: SeededSet<Pid>,
}

impl Tasks {
    /// The index of the living task with this PID.
    pub(super) fn find(&self, pid: Pid) -> Option<Slot> {
        self.by_pid.get(pid)
    }

    /// The approximate number of bytes of a copy.
    pub(super) fn bytes(&self) -> usize {
        self.slab.len() * size_of::<Task>() + self.by_pid.bytes()
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
        self.note_prio(task.prio);
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
            excess: 0,
            is_sched_idle: !self.sched_idle.is_empty() && self.sched_idle.contains(&task.pid),
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

    /// Takes note of a priority.
    #[inline]
    pub(super) fn note_prio(&mut self, prio: i32) {
        self.has_odd |= prio >= 100 && prio != NICE_0;
    }

    /// Gives another PID to a task.
    pub(super) fn renumber(&mut self, slot: Slot, pid: Pid) {
        let old = std::mem::replace(&mut self.entry(slot).pid, pid);
        self.by_pid.remove(old);
        self.by_pid.insert(pid, slot);
    }

    /// Ends the life of a task; its index is free from the next event on.
    pub(super) fn die(&mut self, slot: Slot) {
        let pid = self.entry(slot).pid;
        self.by_pid.remove(pid);
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
        let task = self.entry(slot);
        if task.prio != NICE_0 || task.is_sched_idle {
            task.excess = task.excess_weight();
            queue.count_weight(task.prio, task.excess, 1);
        }
    }

    /// Gives another priority, or another policy, to a task that waits in a queue.
    pub(super) fn reweigh(&mut self, queue: &mut TaskQueue, slot: Slot, prio: i32, is_sched_idle: bool) {
        let task = self.entry(slot);
        queue.count_weight(task.prio, task.excess, -1);
        task.take_weight(prio, is_sched_idle);
        task.excess = task.excess_weight();
        queue.count_weight(prio, task.excess, 1);
    }

    /// Removes a task from a queue that it is in.
    pub(super) fn leave(&mut self, queue: &mut TaskQueue, slot: Slot) {
        let Task { prev, next, prio, excess, .. } = *self.entry(slot);
        match prev {
            NONE => queue.first = next,
            prev => self.entry(prev).next = next,
        }
        match next {
            NONE => queue.last = prev,
            next => self.entry(next).prev = prev,
        }
        queue.len -= 1;
        if prio != NICE_0 || excess != 0 {
            queue.count_weight(prio, excess, -1);
            self.entry(slot).excess = 0;
        }
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

    /// The weight of the task in `slot` above that of nice 0.
    pub(super) fn excess(&self, slot: Slot) -> i32 {
        self.at(slot).map_or(0, Task::excess_weight)
    }

    /// The number of indices that were used so far.
    pub(super) fn number(&self) -> usize {
        self.slab.len()
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
        Tasks { by_pid: SlotsByPid::default(), free, lives: 0, ..tasks }
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
        let mut pids: Vec<(Pid, Slot)> = self.by_pid.iter().collect();
        pids.sort_unstable();
        let open = |(pid, slot): (Pid, Slot)| {
            let task = self.at(slot)?;
            let Task { id, state, since, begun, .. } = *task;
            Some(Span { task: id, pid, state, start: since, end, next: state, begun, ended: false })
        };
        pids.into_iter().filter_map(open).collect()
    }
}
