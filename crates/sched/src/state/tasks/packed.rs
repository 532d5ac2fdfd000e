//! The table of tasks in little room: a third of what it takes as it is, which is most of a state.

use super::pids::SlotsByPid;
use super::{NONE, Slot, Task, Tasks};
use crate::event::span::{Came, TaskState};
use crate::event::task_id::TaskId;
use crate::event::{Comm, Cpu, Pid, Ts};
use crate::state::lineage::Kin;
use crate::state::tasks::Waking;
use crate::tables::packed::{PackedNumbers, put, put_difference};

/// A copy of the table of tasks that cannot be looked at.
#[derive(Clone, Debug, Default)]
pub(in crate::state) struct PackedTasks {
    /// The tasks by their indices, each by its differences from the one before.
    bytes: Box<[u8]>,
    number: usize,
    /// The number of tasks that their PIDs find.
    found: usize,
    free: Box<[Slot]>,
    dying: Box<[Slot]>,
    lives: u32,
    has_odd: bool,
    sched_idle: Box<[Pid]>,
}

impl PackedTasks {
    /// The approximate number of bytes of the copy.
    pub(in crate::state) fn bytes(&self) -> usize {
        let numbers = self.free.len() + self.dying.len() + self.sched_idle.len();
        self.bytes.len() + numbers * size_of::<Slot>()
    }

    /// The table that was copied.
    pub(in crate::state) fn unpacked(&self) -> Tasks {
        let mut numbers = PackedNumbers::of(&self.bytes);
        let mut slab: Vec<Task> = Vec::with_capacity(self.number);
        let mut by_pid = SlotsByPid::with_capacity(self.found);
        let mut before = Before::default();
        for slot in 0..self.number as Slot {
            let (task, is_found) = before.take(&mut numbers, slot);
            if is_found {
                by_pid.insert(task.pid, slot);
            }
            slab.push(task);
        }
        let (free, dying) = (self.free.to_vec(), self.dying.to_vec());
        let sched_idle = self.sched_idle.iter().copied().collect();
        Tasks { slab, by_pid, free, dying, lives: self.lives, has_odd: self.has_odd, sched_idle }
    }
}

impl Tasks {
    /// A copy in little room.
    pub(in crate::state) fn packed(&self) -> PackedTasks {
        let Tasks { slab, by_pid, free, dying, lives, has_odd, sched_idle } = self;
        let mut bytes = Vec::with_capacity(slab.len() * 64);
        let mut before = Before::default();
        for (slot, task) in (0..).zip(slab) {
            before.put(&mut bytes, task, by_pid.get(task.pid) == Some(slot));
        }
        PackedTasks {
            bytes: bytes.into_boxed_slice(),
            number: slab.len(),
            found: by_pid.len(),
            free: free.as_slice().into(),
            dying: dying.as_slice().into(),
            lives: *lives,
            has_odd: *has_odd,
            sched_idle: sched_idle.iter().copied().collect(),
        }
    }
}

/// The facts about the task before, from which those of a task are mostly not far.
#[derive(Default)]
struct Before {
    pid: Pid,
    life: u32,
    comm: Comm,
    since: Ts,
}

/// Whether a field has a value, one bit a field.
const BEGUN: u64 = 1;
const BORN: u64 = 1 << 1;
const WAKING: u64 = 1 << 2;
const USED: u64 = 1 << 3;
const QUEUED: u64 = 1 << 4;
const RAN: u64 = 1 << 5;
const FOUND: u64 = 1 << 6;
const PARENT: u64 = 1 << 7;
const FORKED: u64 = 1 << 8;
const DESCENDS: u64 = 1 << 9;
const HELPS: u64 = 1 << 10;
const UNDECIDED: u64 = 1 << 11;
const EMPTIED: u64 = 1 << 12;
const SCHED_IDLE: u64 = 1 << 13;

impl Before {
    fn put(&mut self, out: &mut Vec<u8>, task: &Task, is_found: bool) {
        let Task { id, pid, comm, prio, state, since, begun, born, waking, .. } = *task;
        let Task { waking_is_used, queued, came, ran_on, kin, undecided, excess, is_sched_idle, prev, next, .. } =
            *task;
        let Kin { parent, forked, descends, helps } = kin;
        let bits = [
            (BEGUN, begun),
            (BORN, born.is_some()),
            (WAKING, waking.is_some()),
            (USED, waking_is_used),
            (QUEUED, queued.is_some()),
            (RAN, ran_on.is_some()),
            (FOUND, is_found),
            (PARENT, parent.is_some()),
            (FORKED, forked),
            (DESCENDS, descends),
            (HELPS, helps),
            (UNDECIDED, undecided.is_some()),
            (EMPTIED, undecided.is_some_and(|(_, is_emptied)| is_emptied)),
            (SCHED_IDLE, is_sched_idle),
        ];
        put(out, bits.iter().filter(|(_, is_set)| *is_set).map(|(bit, _)| bit).sum());
        put_difference(out, id.life.into(), self.life.into());
        put_difference(out, pid.0.into(), self.pid.0.into());
        let (name, last) = (comm.array(), self.comm.array());
        let same = name.iter().zip(last).take_while(|(a, b)| a == b).count();
        let more = name.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1).max(same) - same;
        out.extend([same as u8, more as u8]);
        out.extend(&name[same..same + more]);
        put_difference(out, prio.into(), super::NICE_0.into());
        let (kind, cpu) = number_of(state);
        put(out, kind);
        cpu.into_iter().for_each(|cpu| put(out, cpu.0.into()));
        put_difference(out, since.0, self.since.0);
        let times = [born, queued].into_iter().flatten();
        times.for_each(|at| put_difference(out, at.0, since.0));
        if let Some(Waking { by, at, on, previous }) = waking {
            put_difference(out, at.0, since.0);
            put_difference(out, by.0.into(), pid.0.into());
            [on, previous].into_iter().for_each(|cpu| put(out, cpu.0.into()));
        }
        put(out, number_of_way(came));
        let cpus = [ran_on, undecided.map(|(cpu, _)| cpu)].into_iter().flatten();
        cpus.for_each(|cpu| put(out, cpu.0.into()));
        parent.into_iter().for_each(|parent| put_difference(out, parent.0.into(), pid.0.into()));
        put_difference(out, excess.into(), 0);
        [prev, next].into_iter().for_each(|slot| put(out, slot.wrapping_sub(NONE).into()));
        *self = Before { pid, life: id.life, comm, since };
    }

    fn take(&mut self, from: &mut PackedNumbers<'_>, slot: Slot) -> (Task, bool) {
        let bits = from.take();
        let has = |bit| bits & bit > 0;
        let life = from.take_from(self.life.into()) as u32;
        let pid = Pid(from.take_from(self.pid.0.into()) as i32);
        let (same, more) = (from.take() as usize, from.take() as usize);
        let mut name = [0; 16];
        let (head, tail) = name.split_at_mut(same.min(16));
        head.copy_from_slice(&self.comm.array()[..head.len()]);
        tail.iter_mut().zip(from.take_bytes(more)).for_each(|(to, byte)| *to = *byte);
        let comm = Comm::from_array(name);
        let prio = from.take_from(super::NICE_0.into()) as i32;
        let state = state_of(from);
        let since = Ts(from.take_from(self.since.0));
        let born = has(BORN).then(|| Ts(from.take_from(since.0)));
        let queued = has(QUEUED).then(|| Ts(from.take_from(since.0)));
        let waking = has(WAKING).then(|| Waking {
            at: Ts(from.take_from(since.0)),
            by: Pid(from.take_from(pid.0.into()) as i32),
            on: cpu_of(from),
            previous: cpu_of(from),
        });
        let came = way_of(from.take());
        let ran_on = has(RAN).then(|| cpu_of(from));
        let undecided = has(UNDECIDED).then(|| (cpu_of(from), has(EMPTIED)));
        let parent = has(PARENT).then(|| Pid(from.take_from(pid.0.into()) as i32));
        let excess = from.take_from(0) as i32;
        let [prev, next] = [0, 1].map(|_| (from.take() as Slot).wrapping_add(NONE));
        *self = Before { pid, life, comm, since };
        let task = Task {
            id: TaskId { slot, life },
            pid,
            comm,
            prio,
            state,
            since,
            begun: has(BEGUN),
            born,
            waking,
            waking_is_used: has(USED),
            queued,
            came,
            ran_on,
            kin: Kin { parent, forked: has(FORKED), descends: has(DESCENDS), helps: has(HELPS) },
            undecided,
            excess,
            is_sched_idle: has(SCHED_IDLE),
            prev,
            next,
        };
        (task, has(FOUND))
    }
}

fn cpu_of(from: &mut PackedNumbers<'_>) -> Cpu {
    Cpu(from.take() as u32)
}

fn number_of(state: TaskState) -> (u64, Option<Cpu>) {
    match state {
        TaskState::Unknown => (0, None),
        TaskState::Dead => (1, None),
        TaskState::Running(cpu) => (2, Some(cpu)),
        TaskState::Waiting(cpu) => (3, Some(cpu)),
        TaskState::Throttled(cpu) => (4, Some(cpu)),
        TaskState::Asleep(cpu) => (5, Some(cpu)),
    }
}

fn state_of(from: &mut PackedNumbers<'_>) -> TaskState {
    match from.take() {
        1 => TaskState::Dead,
        2 => TaskState::Running(cpu_of(from)),
        3 => TaskState::Waiting(cpu_of(from)),
        4 => TaskState::Throttled(cpu_of(from)),
        5 => TaskState::Asleep(cpu_of(from)),
        _ => TaskState::Unknown,
    }
}

fn number_of_way(came: Came) -> u64 {
    match came {
        Came::Unknown => 0,
        Came::Woken => 1,
        Came::Forked => 2,
        Came::Moved => 3,
        Came::Stayed => 4,
    }
}

fn way_of(number: u64) -> Came {
    match number {
        1 => Came::Woken,
        2 => Came::Forked,
        3 => Came::Moved,
        4 => Came::Stayed,
        _ => Came::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::TaskRef;

    /// Tasks with every value that each field can have, beside values that no trace has.
    fn tasks() -> Tasks {
        let mut tasks = Tasks::default();
        let states: [fn(Cpu) -> TaskState; 6] = [
            |_| TaskState::Unknown,
            |_| TaskState::Dead,
            TaskState::Running,
            TaskState::Waiting,
            TaskState::Throttled,
            TaskState::Asleep,
        ];
        let names: [&[u8]; 6] = [b"", b"worker-12", b"worker-1", b"sixteen-bytes-16", b"w", b"worker-123"];
        for nth in 0..600_u32 {
            let is = |bit: u32| nth >> bit & 1 == 1;
            let pid = if nth % 7 == 0 { Pid(i32::MAX - nth as i32) } else { Pid(40 + nth as i32) };
            let prio = [120, 139, 0, Task::NO_PRIO, i32::MAX][nth as usize % 5];
            let name = Comm::new(names[nth as usize % 6]);
            let kin =
                Kin { parent: is(0).then_some(Pid(nth as i32 / 2)), forked: is(1), descends: is(2), helps: is(3) };
            let since = Ts([0, i64::MIN, i64::MAX, 1_000_000_000_000 + i64::from(nth)][nth as usize % 4]);
            let state = states[nth as usize % 6](Cpu(nth * 1000));
            let slot = tasks.insert(TaskRef { pid, prio, comm: name }, kin, state, since).expect("room");
            let on = Cpu(nth % 9);
            let waking = Waking { by: Pid(3), at: Ts(since.0.wrapping_sub(900)), on, previous: Cpu(u32::MAX) };
            let task = tasks.entry(slot);
            (task.begun, task.waking_is_used) = (is(4), is(5));
            (task.born, task.queued) = (is(1).then_some(Ts(5)), is(6).then_some(Ts(since.0.saturating_sub(77))));
            (task.waking, task.ran_on) = (is(3).then_some(waking), is(2).then_some(on));
            task.undecided = is(5).then_some((on, is(7)));
            task.is_sched_idle = is(8);
            task.came = way_of(u64::from(nth % 5));
            (task.excess, task.prev, task.next) = (nth as i32 - 300, [NONE, 0, 7][nth as usize % 3], nth + 1);
        }
        (0..600).step_by(11).for_each(|slot| tasks.die(slot));
        tasks.bury();
        (1..600).step_by(50).for_each(|slot| tasks.die(slot));
        tasks.has_odd = true;
        tasks.sched_idle = [7, 8, 1_000].map(Pid).into_iter().collect();
        tasks
    }

    #[test]
    fn every_field_of_every_task_comes_back() {
        let tasks = tasks();
        let packed = tasks.packed();
        let unpacked = packed.unpacked();
        for (before, after) in tasks.slab.iter().zip(&unpacked.slab) {
            assert_eq!(format!("{after:?}"), format!("{before:?}"));
        }
        assert_eq!(unpacked.slab.len(), tasks.slab.len());
        assert_eq!((&unpacked.by_pid, &unpacked.free, &unpacked.dying), (&tasks.by_pid, &tasks.free, &tasks.dying));
        assert_eq!((unpacked.lives, unpacked.has_odd), (tasks.lives, tasks.has_odd));
        assert_eq!(unpacked.sched_idle, tasks.sched_idle);
        assert!(!tasks.dying.is_empty() && tasks.free.len() > 50 && tasks.by_pid.len() > 500);
        assert!(Tasks::default().packed().unpacked().slab.is_empty());
    }

    #[test]
    fn tasks_of_a_trace_take_a_third() {
        let mut tasks = Tasks::default();
        for nth in 0..10_000 {
            let since = Ts(1_000_000_000_000 + i64::from(nth * 977 % 10_000) * 30_000);
            let comm = Comm::new(format!("worker-{}/{nth}", nth % 40).as_bytes());
            let state = TaskState::Asleep(Cpu(nth as u32 % 16));
            let task = TaskRef { pid: Pid(1_000 + nth), prio: 120, comm };
            let slot = tasks.insert(task, Kin::default(), state, since).expect("room");
            let entry = tasks.entry(slot);
            entry.ran_on = Some(Cpu(nth as u32 % 16));
            entry.begun = true;
        }
        let (packed, whole) = (tasks.packed().bytes(), tasks.bytes());
        assert!(3 * packed < whole, "{packed} bytes of {whole}");
    }
}
