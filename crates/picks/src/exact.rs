//! Picks by the records of the kernel's own numbers.
//!
//! A task that waits does not change its virtual run time and its deadline. The record of its next pick therefore shows with which it
//! waited, and a pick is explained once all tasks that could have been picked have been, or have gone elsewhere.

use crate::group::GroupKey;
use crate::queue::real_length;
use crate::reason::{Candidate, Numbers, Reason, Surroundings, Verdict, explain};
use membership::RowKey;
use sched::nice::weight_of;
use sched::probe::{ChoiceRule, Entity, RecordedChoice};
use sched::seeded::SeededMap;
use sched::{Comm, Cpu, PerTask, Pid, TaskId, TaskRef, Ts};
use std::collections::VecDeque;

/// Maximum number of picks that wait to be explained. Further ones are explained by the records until then.
const MOST: usize = 1 << 14;
/// Maximum number of tasks that are compared with a picked one. The rivals of a pick beside more are not looked at.
pub(crate) const MOST_RIVALS: usize = 256;
/// Maximum number of rivals of all picks that are kept. From half of it on, picks are explained by the records until then.
const MOST_HELD: usize = 1 << 20;
/// Maximum number of waiting tasks that are looked at for the picks of a trace, beside [`LOOKED_AT_PER_PICK`] for each pick.
const MOST_LOOKED_AT: u64 = 1 << 24;
/// Number of waiting tasks that can be looked at for each pick on the average.
const LOOKED_AT_PER_PICK: u64 = 8;

/// The number of a stretch for which a task waits on one run queue.
type WaitId = u64;

/// The numbers with which a task waits, as far as records have shown them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordedWait {
    pub(crate) vruntime: Option<i64>,
    pub(crate) deadline: Option<i64>,
    pub(crate) weight: Option<u64>,
    pub(crate) slice: Option<u64>,
    pub(crate) queue: Option<u32>,
    /// Whether the wait has ended, so that no further record can show more.
    pub(crate) is_over: bool,
    /// The number of picks that wait for this one.
    pub(crate) users: u32,
}

/// A task that could have been picked.
#[derive(Clone, Copy, Debug)]
struct Rival {
    wait: WaitId,
    pid: Pid,
    comm: Comm,
    prio: i32,
    group: GroupKey,
}

/// A pick that was recorded.
#[derive(Clone, Debug)]
pub(crate) struct RecordedPick {
    pub(crate) at: Ts,
    pub(crate) cpu: Cpu,
    pub(crate) task: TaskRef,
    pub(crate) id: TaskId,
    pub(crate) group: GroupKey,
    pub(crate) is_buddy: bool,
    /// The task that left, if it could have run on, with the deadline that it had at its own pick.
    pub(crate) left: Option<(Pid, Option<i64>)>,
    /// Whether the pick counts: it is in the window, on a chosen CPU, and of a chosen task.
    pub(crate) counts: bool,
    /// The rows of the picked task and of the one that left.
    pub(crate) rows: [RowKey; 2],
    numbers: Numbers,
    queue: Option<u32>,
    length: Option<u16>,
    rule: ChoiceRule,
    rivals: Vec<Rival>,
    /// The number of the first rivals whose numbers were known, or whose wait was over, when that was last looked at.
    ready: usize,
    /// Whether there were more rivals than are compared, or more waiting tasks than are looked at.
    pub(crate) is_cut: bool,
    /// The wait of the picked task that the pick ends.
    own: Option<WaitId>,
}

/// A rival of an explained pick, as it is listed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComparedRival {
    pub(crate) pid: Pid,
    pub(crate) comm: Comm,
    pub(crate) numbers: Option<Numbers>,
}

/// A pick that is explained.
#[derive(Debug)]
pub(crate) struct Explained {
    pub(crate) pick: RecordedPick,
    pub(crate) numbers: Numbers,
    pub(crate) verdict: Verdict,
    pub(crate) rivals: Vec<ComparedRival>,
    /// Whether the task that left was within its protected slice; nothing where that is not recorded.
    pub(crate) was_protected: Option<bool>,
    /// Whether the picked task has a shorter request than the one that left.
    pub(crate) is_shorter: bool,
    /// The lag of the task that left and could have run on, in nanoseconds of its own run time.
    pub(crate) left_lag: Option<((Pid, Comm), i64)>,
}

/// A task that could be picked at a switch.
pub(crate) struct Contender {
    pub(crate) pid: Pid,
    pub(crate) comm: Comm,
    pub(crate) prio: i32,
    pub(crate) group: GroupKey,
}

/// The number of waiting tasks that can still be looked at: it grows with each pick.
struct Room(u64);

impl Default for Room {
    fn default() -> Room {
        Room(MOST_LOOKED_AT)
    }
}

/// The picks that are recorded, and the waits of all tasks.
#[derive(Default)]
pub(crate) struct Exact {
    delays: bool,
    /// Whether the slice of a running group protects it (`RUN_TO_PARITY`).
    protects: bool,
    pub(crate) waits: SeededMap<WaitId, RecordedWait>,
    pub(crate) open: PerTask<WaitId>,
    next: WaitId,
    /// The rivals of all picks that are kept.
    held: usize,
    /// The number of waiting tasks that can still be looked at.
    room: Room,
    /// The latest pick of each CPU, whose record has not come yet.
    pub(crate) pending: SeededMap<Cpu, RecordedPick>,
    picks: VecDeque<RecordedPick>,
    /// The running task of each CPU, with its numbers and its run queue at its pick.
    pub(crate) running: SeededMap<Cpu, (Pid, Numbers, Option<u32>)>,
}

/// The weight of a recorded entity, where that of nice 0 is 1024.
fn weight(entity: &Entity, prio: i32) -> u64 {
    entity.weight.map_or_else(|| weight_of(prio), |weight| u64::from(weight.get() >> 10).max(2))
}

pub(crate) fn numbers(entity: &Entity, prio: i32) -> Numbers {
    Numbers {
        vruntime: entity.vruntime.ns(),
        deadline: entity.deadline.ns(),
        weight: weight(entity, prio),
        slice: entity.slice.map(|slice| slice.get().into()),
    }
}

impl RecordedWait {
    /// The numbers with which a task waits, all of them.
    pub(crate) fn of(numbers: Numbers, queue: Option<u32>) -> RecordedWait {
        let Numbers { vruntime, deadline, weight, slice } = numbers;
        let (vruntime, deadline) = (Some(vruntime), Some(deadline));
        RecordedWait { vruntime, deadline, weight: Some(weight), slice, queue, ..RecordedWait::default() }
    }
}

impl Exact {
    pub(crate) fn new(delays: bool, protects: bool) -> Exact {
        Exact { delays, protects, ..Exact::default() }
    }

    /// A task begins to wait on a run queue.
    pub(crate) fn waits(&mut self, id: TaskId) {
        self.waits_with(id, RecordedWait::default());
    }

    /// A task begins to wait on a run queue with these numbers.
    pub(crate) fn waits_with(&mut self, id: TaskId, values: RecordedWait) {
        self.ends(id);
        self.next += 1;
        self.open.insert(id, self.next);
        self.waits.insert(self.next, values);
    }

    /// A task no longer waits where it did.
    pub(crate) fn ends(&mut self, id: TaskId) {
        let Some(wait) = self.open.take(id) else { return };
        if let Some(values) = self.waits.get_mut(&wait) {
            values.is_over = true;
            if values.users == 0 {
                self.waits.remove(&wait);
            }
        }
    }

    /// A task left a CPU and can run: the record shows the numbers with which it waits.
    pub(crate) fn put(&mut self, id: TaskId, recorded: RecordedWait) {
        let RecordedWait { vruntime, deadline, weight, slice, queue, .. } = recorded;
        let Some(values) = self.open.get(id).and_then(|wait| self.waits.get_mut(wait)) else { return };
        (values.vruntime, values.deadline, values.queue) = (vruntime, deadline, queue);
        (values.weight, values.slice) = (weight.or(values.weight), slice.or(values.slice));
    }

    /// The numbers of the task that ran on a CPU, and its run queue, at its own pick.
    pub(crate) fn picked_with(&self, cpu: Cpu, pid: Pid) -> Option<(Numbers, Option<u32>)> {
        self.running.get(&cpu).filter(|(running, ..)| *running == pid).map(|(_, numbers, queue)| (*numbers, *queue))
    }

    /// Whether a pick with this number of rivals, on a run queue of this length, can be compared with all of them. Their number is bounded
    /// for one pick, for all picks that are kept, and for the whole trace.
    pub(crate) fn has_room_for(&mut self, rivals: usize, length: usize) -> bool {
        let room = self.room.0.saturating_add(LOOKED_AT_PER_PICK);
        let rest = room.checked_sub(length as u64);
        let fits = rivals <= MOST_RIVALS && self.held + rivals <= MOST_HELD;
        self.room = Room(rest.filter(|_| fits).unwrap_or(room));
        fits && rest.is_some()
    }

    /// A CPU switches to a task of the fair class: the pick is known once its record follows. `contenders` are the others that could
    /// have been picked.
    pub(crate) fn switched(&mut self, mut pick: RecordedPick, contenders: impl Iterator<Item = (Contender, TaskId)>) {
        self.abandon(pick.cpu);
        pick.own = self.open.get(pick.id).copied();
        let own = pick.own;
        self.hold(own);
        for (contender, id) in contenders {
            let Some(wait) = self.open.get(id).copied() else { continue };
            self.hold(Some(wait));
            let Contender { pid, comm, prio, group } = contender;
            pick.rivals.push(Rival { wait, pid, comm, prio, group });
        }
        self.held += pick.rivals.len();
        self.pending.insert(pick.cpu, pick);
    }

    /// Releases the waits of the rivals of a pick that is dropped or explained.
    fn release_rivals(&mut self, pick: &RecordedPick) {
        self.held -= pick.rivals.len();
        pick.rivals.iter().for_each(|rival| self.release(Some(rival.wait)));
    }

    /// The CPUs whose latest pick has no record yet, in ascending order.
    pub(crate) fn unrecorded(&self) -> Vec<Cpu> {
        let mut cpus: Vec<Cpu> = self.pending.keys().copied().collect();
        cpus.sort_unstable();
        cpus
    }

    /// A CPU has switched to a task before the part, and the record of that pick comes in it: the pick does not count.
    pub(crate) fn switched_before(&mut self, pick: RecordedPick) {
        self.pending.insert(pick.cpu, pick);
    }

    /// Drops the pick of a CPU whose record did not come, and returns it.
    pub(crate) fn abandon(&mut self, cpu: Cpu) -> Option<RecordedPick> {
        let pick = self.pending.remove(&cpu)?;
        self.release(pick.own);
        self.release_rivals(&pick);
        Some(pick)
    }

    /// The record of the pick of a CPU.
    pub(crate) fn recorded(&mut self, cpu: Cpu, pid: Pid, entity: &Entity, queue: Option<u32>, choice: RecordedChoice) {
        let Some(mut pick) = self.pending.remove(&cpu) else { return };
        if pick.task.pid != pid {
            self.pending.insert(cpu, pick);
            return;
        }
        let numbers = numbers(entity, pick.task.prio);
        pick.numbers = numbers;
        (pick.queue, pick.length, pick.rule) = (queue, queue.map(|_| choice.length()), choice.rule());
        self.running.insert(cpu, (pid, numbers, pick.queue));
        if let Some(values) = pick.own.and_then(|wait| self.waits.get_mut(&wait)) {
            values.vruntime = values.vruntime.or(Some(numbers.vruntime));
            values.deadline = Some(numbers.deadline);
            (values.weight, values.slice) = (Some(numbers.weight), numbers.slice);
            values.queue = values.queue.or(pick.queue);
        }
        let own = pick.own.take();
        self.release(own);
        if pick.counts {
            self.picks.push_back(pick);
        } else {
            self.release_rivals(&pick);
        }
    }

    /// Holds the values of a wait until [`Exact::release`].
    fn hold(&mut self, wait: Option<WaitId>) {
        if let Some(values) = wait.and_then(|wait| self.waits.get_mut(&wait)) {
            values.users += 1;
        }
    }

    /// Releases a wait that was held.
    fn release(&mut self, wait: Option<WaitId>) {
        let Some(wait) = wait else { return };
        if let Some(values) = self.waits.get_mut(&wait) {
            values.users = values.users.saturating_sub(1);
            if values.users == 0 && values.is_over {
                self.waits.remove(&wait);
            }
        }
    }

    /// Returns the next pick that can be explained, in their order; with `all` also one for which records are missing.
    pub(crate) fn explained(&mut self, all: bool) -> Option<Explained> {
        let first = self.picks.front_mut()?;
        let is_ready = |rival: &Rival| {
            self.waits
                .get(&rival.wait)
                .is_none_or(|wait| wait.is_over || (wait.vruntime.is_some() && wait.deadline.is_some()))
        };
        // Those that were ready are looked at again only once all others are: a record can take a number back.
        let rest = first.rivals.iter().skip(first.ready).position(|rival| !is_ready(rival));
        let unready = match rest {
            Some(place) => Some(first.ready + place),
            None => first.rivals.iter().position(|rival| !is_ready(rival)),
        };
        first.ready = unready.unwrap_or(0);
        if !all && self.picks.len() <= MOST && self.held <= MOST_HELD / 2 && unready.is_some() {
            return None;
        }
        let pick = self.picks.pop_front()?;
        let candidates: Vec<(Candidate, Comm)> =
            pick.rivals.iter().map(|rival| (self.candidate(rival), rival.comm)).collect();
        let rivals: Vec<Candidate> = candidates.iter().map(|(candidate, _)| *candidate).collect();
        let numbers = pick.numbers;
        let picked = Candidate { pid: pick.task.pid, group: pick.group, queue: pick.queue, numbers: Some(numbers) };
        // Without `RUN_TO_PARITY` no slice protects.
        let rule = match pick.rule {
            ChoiceRule::Protected if !self.protects => ChoiceRule::Beaten,
            rule => rule,
        };
        let around = Surroundings { length: pick.length, is_buddy: pick.is_buddy, delays: self.delays, rule };
        let mut verdict = explain(&picked, numbers, &rivals, around);
        if pick.is_cut && rule == ChoiceRule::Unrecorded {
            verdict = Verdict { reason: Reason::NotRecorded, lag_ns: None, time: None };
        }
        let left = pick.left.and_then(|(pid, deadline)| {
            let (left, comm) = candidates.iter().find(|(rival, _)| rival.pid == pid)?;
            let is_near = !picked.is_apart_from(left);
            Some(((pid, *comm), deadline.filter(|_| is_near), left.numbers?, is_near))
        });
        let was_protected = left.and_then(|(_, deadline, left, _)| Some(deadline?.wrapping_sub(left.vruntime) > 0));
        let is_shorter = left.is_some_and(|(_, _, left, _)| left.slice.zip(numbers.slice).is_some_and(|(l, n)| n < l));
        let left_lag = left.filter(|(.., is_near)| *is_near).and_then(|(task, _, left, _)| {
            let lag = verdict.time?.wrapping_sub(left.vruntime);
            Some((task, real_length(lag, left.weight)))
        });
        self.release_rivals(&pick);
        let rivals =
            candidates.into_iter().map(|(rival, comm)| ComparedRival { pid: rival.pid, comm, numbers: rival.numbers });
        Some(Explained { numbers, verdict, rivals: rivals.collect(), was_protected, is_shorter, left_lag, pick })
    }

    fn candidate(&self, rival: &Rival) -> Candidate {
        let values = self.waits.get(&rival.wait).copied().unwrap_or_default();
        let numbers = values.vruntime.zip(values.deadline).map(|(vruntime, deadline)| Numbers {
            vruntime,
            deadline,
            weight: values.weight.unwrap_or_else(|| weight_of(rival.prio)),
            slice: values.slice,
        });
        Candidate { pid: rival.pid, group: rival.group, queue: values.queue, numbers }
    }
}

impl RecordedPick {
    /// Makes a pick whose numbers are not known yet.
    pub(crate) fn new((at, cpu, task, id): (Ts, Cpu, TaskRef, TaskId), group: GroupKey) -> RecordedPick {
        RecordedPick {
            at,
            cpu,
            task,
            id,
            group,
            is_buddy: false,
            left: None,
            counts: false,
            rows: [RowKey::Rest; 2],
            numbers: Numbers { vruntime: 0, deadline: 0, weight: 0, slice: None },
            queue: None,
            length: None,
            rule: ChoiceRule::Unrecorded,
            rivals: Vec::new(),
            ready: 0,
            is_cut: false,
            own: None,
        }
    }
}
