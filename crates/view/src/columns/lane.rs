//! A column of one CPU: the tasks that ran, and the length of the run queue.

use crate::TASKS_IN_COLUMN;
use crate::columns::coding::{number, put_number};
use crate::columns::sums::KeyTimes;
use crate::columns::tree::ColumnSummary;
use sched::Current;

/// The place of a task in the list of tasks, or one of the constants below.
pub(crate) type Id = u32;
/// The occupant of a CPU that idled.
pub(crate) const IDLE: Id = 0xffff_ffff;
/// The occupant of a CPU whose running task is unknown.
pub(crate) const UNKNOWN: Id = 0xffff_fffe;
/// The occupant of a CPU that was offline.
pub(crate) const OFFLINE: Id = 0xffff_fffd;
/// All tasks without a place of their own, as one occupant.
pub(crate) const OTHERS: Id = 0xffff_fffc;

/// The number of a CPU's state without a task. A task would be one of the others.
pub(crate) fn of_no_task(current: Current) -> Id {
    match current {
        Current::Idle => IDLE,
        Current::Unknown => UNKNOWN,
        Current::Offline => OFFLINE,
        Current::Task(_) => OTHERS,
    }
}

/// The sum of the shares of a column.
pub(crate) const WHOLE: u64 = u16::MAX as u64;

/// The state of a CPU: its occupant, and the number of tasks that wait there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneNow {
    pub(crate) occupant: Id,
    pub(crate) queue: u32,
}

/// The content of a column of one CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneColumn {
    /// The time of each occupant; one may have several entries.
    times: KeyTimes<NEAR>,
    ns: u64,
    /// The integral of the queue's length over time.
    queued: u64,
    shortest: u32,
    longest: u32,
    /// Whether some of the column stands for data that were not read.
    is_sampled: bool,
}

/// The number of entries that are searched for an occupant.
const NEAR: usize = 12;

impl LaneColumn {
    /// Adds a stretch of time that is divided as in a sample: each occupant with its time there.
    pub(crate) fn pass_as(&mut self, sample: &[(Id, u64)], ns: u64) {
        let all: u64 = sample.iter().map(|(_, ns)| *ns).sum();
        let upto = |passed: u64| (u128::from(ns) * u128::from(passed) / u128::from(all.max(1))) as u64;
        let mut passed = 0;
        for (occupant, part) in sample {
            let before = upto(passed);
            passed += part;
            self.pass(&LaneNow { occupant: *occupant, queue: 0 }, upto(passed) - before);
        }
        self.is_sampled = true;
    }

    fn stretch(&mut self, ns: u64, shortest: u32, longest: u32) {
        self.shortest = if self.ns == 0 { shortest } else { self.shortest.min(shortest) };
        self.longest = self.longest.max(longest);
        self.ns += ns;
    }
}

impl ColumnSummary for LaneColumn {
    type Now = LaneNow;

    fn pass(&mut self, now: &LaneNow, ns: u64) {
        self.stretch(ns, now.queue, now.queue);
        self.queued = self.queued.saturating_add(ns.saturating_mul(now.queue.into()));
        self.times.add(now.occupant, ns);
    }

    fn absorb(&mut self, finer: &mut LaneColumn) {
        if finer.ns == 0 {
            return;
        }
        self.stretch(finer.ns, finer.shortest, finer.longest);
        self.queued = self.queued.saturating_add(finer.queued);
        self.is_sampled |= finer.is_sampled;
        self.times.absorb(&mut finer.times);
        *finer = LaneColumn { times: std::mem::take(&mut finer.times), ..LaneColumn::default() };
    }

    fn is_empty(&self) -> bool {
        self.ns == 0
    }

    fn encode(&mut self, out: &mut Vec<u8>) {
        let ns = self.ns.max(1);
        let mean = match self.queued.checked_mul(256) {
            Some(product) => product / ns,
            None => (u128::from(self.queued) * 256 / u128::from(ns)) as u64,
        };
        let queue = QueueLengths { shortest: self.shortest.into(), longest: self.longest.into(), mean };
        put_column(out, self.times.sum(), self.ns, queue, self.is_sampled);
    }

    fn skip(bytes: &[u8]) -> Option<&[u8]> {
        let (head, mut rest) = bytes.split_first()?;
        if head & QUEUE > 0 {
            for _ in 0..3 {
                rest = number(rest)?.1;
            }
        }
        for nth in 0..head & COUNT {
            rest = number(rest)?.1;
            rest = if nth > 0 { rest.get(2..)? } else { rest };
        }
        Some(rest)
    }
}

/// The length of a run queue in a column, or of several.
#[derive(Clone, Copy, Debug, Default)]
struct QueueLengths {
    shortest: u64,
    longest: u64,
    /// The mean length over time, in parts of 256 of a task.
    mean: u64,
}

/// Appends the stored form of a column: the number of entries, with a bit for a queue and one for a column that stands
/// for data that were not read, whose queue is unknown. If tasks waited: the queue's
/// least and greatest length, and its mean in parts of 256. The entries: each an occupant and, but for the first, its
/// share; the first has the rest. Lengths and occupants are numbers of few bytes, a share has two.
fn put_column(out: &mut Vec<u8>, times: &[(Id, u64)], ns: u64, queue: QueueLengths, is_sampled: bool) {
    let (shares, count) = shares(times, ns, queue.longest);
    let shares = &shares[..count];
    let bit = |holds, bit| if holds { bit } else { 0 };
    out.push(shares.len() as u8 | bit(queue.longest > 0, QUEUE) | bit(is_sampled, SAMPLED));
    if queue.longest > 0 {
        [queue.shortest, queue.longest, queue.mean].iter().for_each(|number| put_number(out, *number));
    }
    for (nth, (id, share)) in shares.iter().enumerate() {
        put_number(out, id.wrapping_sub(OTHERS).into());
        if nth > 0 {
            out.extend(share.to_le_bytes());
        }
    }
}

const QUEUE: u8 = 0x80;
const SAMPLED: u8 = 0x40;
/// The bits of the number of entries.
const COUNT: u8 = 0x07;
/// The form of a column in which there is nothing: outside of the trace, or not read yet.
pub(crate) const NOTHING: &[u8] = &[0];
/// The maximum number of entries of a column.
const ENTRIES: usize = 7;
/// Queues from this length on take more bytes, in the place of two tasks.
const LONG: u64 = 128;

/// The maximum number of tasks that a column names beside this number of other entries, so that no tile is too large.
pub(crate) fn most_named(others: usize, longest: u64) -> usize {
    // One entry is for the tasks that are not named.
    let room = TASKS_IN_COLUMN.min((ENTRIES - 1).saturating_sub(others));
    if longest < LONG { room } else { room.saturating_sub(2) }
}

/// The times of a column that are not those of tasks with a place of their own: of all other tasks, and of no task.
const BESIDE: usize = 4;

/// The longest times, the longest first; of equal ones that of the lesser occupant.
#[derive(Clone, Copy, Debug)]
struct LongestTimes<const N: usize> {
    entries: [(Id, u64); N],
    len: usize,
}

impl<const N: usize> LongestTimes<N> {
    const EMPTY: LongestTimes<N> = LongestTimes { entries: [(0, 0); N], len: 0 };

    /// Adds an entry. The last one gives way if there are too many.
    fn add(&mut self, entry: (Id, u64)) {
        let is_behind = |other: &(Id, u64)| (other.1, entry.0) > (entry.1, other.0);
        let entries = &self.entries[..self.len];
        let place = entries.iter().rposition(is_behind).map_or(0, |before| before + 1);
        if place < N {
            self.len = (self.len + 1).min(N);
            self.entries[place..self.len].rotate_right(1);
            self.entries[place] = entry;
        }
    }

    fn as_slice(&self) -> &[(Id, u64)] {
        &self.entries[..self.len]
    }
}

/// The shares of the occupants of a column, each with its sum of time, the largest first: those of the tasks that ran longest, of all other tasks
/// together, and of idle, unknown and offline time. They sum to the whole, and none is zero.
fn shares(times: &[(Id, u64)], ns: u64, longest: u64) -> ([(Id, u16); ENTRIES], usize) {
    let mut tasks: LongestTimes<TASKS_IN_COLUMN> = LongestTimes::EMPTY;
    let (mut of_tasks, mut beside) = (0, [None; BESIDE]);
    for (id, ns) in times {
        match id.checked_sub(OTHERS).and_then(|place| beside.get_mut(place as usize)) {
            Some(sum) => *sum = Some(*ns),
            None => {
                of_tasks += ns;
                tasks.add((*id, *ns));
            }
        }
    }
    let [others, no_tasks @ ..] = beside;
    let named = most_named(no_tasks.iter().flatten().count(), longest).min(tasks.len);
    let rest = of_tasks - tasks.as_slice().iter().take(named).map(|(_, ns)| ns).sum::<u64>();
    let others = if rest > 0 { Some(others.unwrap_or(0) + rest) } else { others };
    let mut all: LongestTimes<ENTRIES> = LongestTimes::EMPTY;
    tasks.as_slice().iter().take(named).for_each(|entry| all.add(*entry));
    for (id, sum) in (OTHERS..=IDLE).zip([others].into_iter().chain(no_tasks)) {
        sum.into_iter().for_each(|ns| all.add((id, ns)));
    }
    let (mut shares, mut sum) = ([(0, 0); ENTRIES], 0);
    for (share, (id, part)) in shares.iter_mut().zip(all.as_slice()) {
        *share = (*id, share_of(*part, ns));
        sum += u64::from(share.1);
    }
    // Rounding takes less from the others than the largest has.
    shares[0].1 = (u64::from(shares[0].1) + WHOLE).saturating_sub(sum) as u16;
    (shares, all.len)
}

/// The share of a part of the time, at least the smallest that there is.
#[inline]
pub(crate) fn share_of(part: u64, ns: u64) -> u16 {
    let ns = ns.max(1);
    // Division by 64 bits takes a quarter of the time, and nearly all columns are shorter than three days.
    let share = match part.checked_mul(WHOLE) {
        Some(product) => product / ns,
        None => (u128::from(part) * u128::from(WHOLE) / u128::from(ns)) as u64,
    };
    share.max(1) as u16
}

/// Appends a run of at most 256 equal columns to a tile: the number of its columns less one, and their form.
pub(crate) fn put_run(out: &mut Vec<u8>, columns: u64, form: &[u8]) {
    if let Some(others) = columns.checked_sub(1) {
        out.push(others as u8);
        out.extend_from_slice(form);
    }
}

/// A column of several CPUs together: the shares are those of all their time, the lengths of the queues are summed.
#[derive(Clone, Debug, Default)]
pub(crate) struct SumColumn {
    column: LaneColumn,
    queue: QueueLengths,
}

impl SumColumn {
    /// Adds the column of a CPU by its stored form; an occupant counts as the one that `counted` has for it.
    pub(crate) fn add(&mut self, form: &[u8], counted: &impl Fn(Id) -> Id) {
        let Some((head, mut rest)) = form.split_first() else { return };
        let mut next = || {
            let (value, behind) = number(rest)?;
            rest = behind;
            Some(value)
        };
        if head & QUEUE > 0 {
            let lengths = [&mut self.queue.shortest, &mut self.queue.longest, &mut self.queue.mean];
            for sum in lengths {
                *sum += next().unwrap_or(0);
            }
        }
        self.column.is_sampled |= head & SAMPLED > 0;
        let (mut first, mut left) = (None, WHOLE);
        for nth in 0..head & COUNT {
            let Some((id, behind)) = number(rest) else { return };
            rest = behind;
            let id = counted((id as Id).wrapping_add(OTHERS));
            match rest {
                [low, high, behind @ ..] if nth > 0 => {
                    let share = u16::from_le_bytes([*low, *high]).into();
                    self.column.times.add(id, share);
                    left = left.saturating_sub(share);
                    rest = behind;
                }
                _ => first = Some(id),
            }
        }
        if let Some(id) = first {
            self.column.times.add(id, left);
            self.column.ns += WHOLE;
        }
    }

    /// Appends the stored form of the column.
    pub(crate) fn encode(&mut self, out: &mut Vec<u8>) {
        put_column(out, self.column.times.sum(), self.column.ns, self.queue, self.column.is_sampled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_the_largest_and_sum_to_the_whole() {
        let times: Vec<(Id, u64)> = (0..10).map(|id| (id, 10 + u64::from(id))).chain([(IDLE, 1), (3, 20)]).collect();
        let all = times.iter().map(|(_, ns)| ns).sum();
        let shares = |times: &[(Id, u64)], ns, longest| {
            let (shares, count) = shares(times, ns, longest);
            shares[..count].to_vec()
        };
        let given = shares(&crate::columns::sums::summed(times.clone()), all, 0);
        assert_eq!(given.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [OTHERS, 3, 9, 8, 7, IDLE]);
        assert_eq!(given.iter().map(|(_, share)| u64::from(*share)).sum::<u64>(), WHOLE);
        assert_eq!(given[1].1, (33 * WHOLE / 166) as u16);
        let least = shares(&[(7, 1), (IDLE, u64::MAX / 2)], u64::MAX / 2 + 1, 0)[1];
        assert_eq!(least, (7, 1), "the least is not lost");
        assert_eq!(shares(&[(7, 5)], 5, 0), [(7, u16::MAX)]);
    }

    /// A column with as much in it as there can be, whose queue has this length.
    fn full(queue: u32) -> Vec<u8> {
        let mut column = LaneColumn::default();
        let tasks = (0..40).map(|n| 16_379 - n);
        for (occupant, ns) in tasks.chain([OTHERS, IDLE, UNKNOWN, OFFLINE]).zip(1_000..) {
            column.pass(&LaneNow { occupant, queue }, ns);
        }
        let mut form = Vec::new();
        column.encode(&mut form);
        assert_eq!(LaneColumn::skip(&form), Some(&[][..]));
        form
    }

    #[test]
    fn no_tile_is_larger_than_it_may_be() {
        for queue in [0, 5, 127, 128, 16_383, 200_000] {
            let mut tile = vec![0; 8];
            (0..1024).for_each(|_| put_run(&mut tile, 1, &full(queue)));
            assert!(tile.len() <= crate::TILE_BYTES, "{} bytes with queues of {queue}", tile.len());
        }
    }

    #[test]
    fn the_form_is_read_back() {
        let mut column = LaneColumn::default();
        column.pass(&LaneNow { occupant: 70_000, queue: 300 }, 10);
        column.pass(&LaneNow { occupant: IDLE, queue: 0 }, 30);
        let mut form = Vec::new();
        column.encode(&mut form);
        assert_eq!(LaneColumn::skip(&form), Some(&[][..]));
        let mut run = Vec::new();
        put_run(&mut run, 256, &form);
        // 75 = 300 / 4 waited, in parts of 256: 19,200.
        assert_eq!(run, [255, 2 | QUEUE, 0, 0xac, 2, 0x80, 0x96, 1, 3, 0xf4, 0xa2, 4, 0xff, 0x3f]);
    }
}
