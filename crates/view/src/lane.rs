//! A column of one CPU: the tasks that ran, and the length of the run queue.

use crate::TASKS_IN_COLUMN;
use crate::tree::Summary;

/// The place of a task in the list of tasks, or one of the constants below.
pub(crate) type Id = u32;
/// The CPU idled.
pub(crate) const IDLE: Id = 0xffff_ffff;
/// The running task is unknown.
pub(crate) const UNKNOWN: Id = 0xffff_fffe;
/// The CPU was offline.
pub(crate) const OFFLINE: Id = 0xffff_fffd;
/// Tasks without a place of their own, together.
pub(crate) const OTHERS: Id = 0xffff_fffc;

/// The sum of the shares of a column.
const WHOLE: u64 = u16::MAX as u64;

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
    times: Vec<(Id, u64)>,
    /// The number of entries at which they are to be summed.
    full: usize,
    ns: u64,
    /// The integral of the queue's length over time.
    queued: u64,
    shortest: u32,
    longest: u32,
}

/// The number of entries that are searched for an occupant.
const NEAR: usize = 12;

impl LaneColumn {
    fn add(&mut self, occupant: Id, ns: u64) {
        match self.times.iter_mut().rev().take(NEAR).find(|(id, _)| *id == occupant) {
            Some((_, sum)) => *sum += ns,
            None => {
                self.times.push((occupant, ns));
                if self.times.len() >= self.full.max(4 * NEAR) {
                    self.sum();
                    self.full = 2 * self.times.len();
                }
            }
        }
    }

    /// Sums the entries of each occupant.
    fn sum(&mut self) {
        if self.times.len() > 1 {
            self.times = summed(std::mem::take(&mut self.times));
        }
    }

    fn stretch(&mut self, ns: u64, shortest: u32, longest: u32) {
        self.shortest = if self.ns == 0 { shortest } else { self.shortest.min(shortest) };
        self.longest = self.longest.max(longest);
        self.ns += ns;
    }
}

fn summed(mut times: Vec<(Id, u64)>) -> Vec<(Id, u64)> {
    times.sort_unstable_by_key(|(id, _)| *id);
    times.dedup_by(|later, first| {
        let same = later.0 == first.0;
        if same {
            first.1 += later.1;
        }
        same
    });
    times
}

impl Summary for LaneColumn {
    type Now = LaneNow;

    fn pass(&mut self, now: &LaneNow, ns: u64) {
        self.stretch(ns, now.queue, now.queue);
        self.queued = self.queued.saturating_add(ns.saturating_mul(now.queue.into()));
        self.add(now.occupant, ns);
    }

    fn absorb(&mut self, finer: &mut LaneColumn) {
        if finer.ns == 0 {
            return;
        }
        self.stretch(finer.ns, finer.shortest, finer.longest);
        self.queued = self.queued.saturating_add(finer.queued);
        if self.times.is_empty() {
            std::mem::swap(&mut self.times, &mut finer.times);
        } else {
            finer.times.drain(..).for_each(|(id, ns)| self.add(id, ns));
        }
        *finer = LaneColumn { times: std::mem::take(&mut finer.times), ..LaneColumn::default() };
    }

    fn is_empty(&self) -> bool {
        self.ns == 0
    }

    /// The number of entries, with a bit for a queue; the queue's least and greatest length and its mean, if tasks
    /// waited; the entries, each an occupant as a number of few bytes, and its share.
    fn encode(&mut self, out: &mut Vec<u8>) {
        self.sum();
        let shares = shares(&self.times, self.ns);
        let queue = if self.longest > 0 { QUEUE } else { 0 };
        out.push(shares.len() as u8 | queue);
        if queue > 0 {
            let byte = |length: u32| u8::try_from(length).unwrap_or(u8::MAX);
            let mean = (u128::from(self.queued) * 256 / u128::from(self.ns.max(1))).min(u128::from(u16::MAX)) as u16;
            out.extend([byte(self.shortest), byte(self.longest)]);
            out.extend(mean.to_le_bytes());
        }
        for (id, share) in shares {
            put_number(out, id.wrapping_sub(OTHERS));
            out.extend(share.to_le_bytes());
        }
    }

    fn skip(bytes: &[u8]) -> Option<&[u8]> {
        let (head, mut rest) = bytes.split_first()?;
        if head & QUEUE > 0 {
            rest = rest.get(4..)?;
        }
        for _ in 0..head & !QUEUE {
            rest = number(rest)?.1.get(2..)?;
        }
        Some(rest)
    }
}

const QUEUE: u8 = 0x80;

/// The shares of the occupants of a column, each with its sum of time, the largest first: those of the tasks that ran longest, of all other tasks
/// together, and of idle, unknown and offline time. They sum to the whole, and none is zero.
fn shares(times: &[(Id, u64)], ns: u64) -> Vec<(Id, u16)> {
    let by_time = |a: &(Id, u64), b: &(Id, u64)| b.1.cmp(&a.1).then(a.0.cmp(&b.0));
    let (mut tasks, mut kept): (Vec<_>, Vec<_>) = times.iter().copied().partition(|(id, _)| *id < OTHERS);
    tasks.sort_unstable_by(by_time);
    let rest: u64 = tasks.iter().skip(TASKS_IN_COLUMN).map(|(_, ns)| *ns).sum();
    tasks.truncate(TASKS_IN_COLUMN);
    if rest > 0 {
        match kept.iter_mut().find(|(id, _)| *id == OTHERS) {
            Some((_, ns)) => *ns += rest,
            None => kept.push((OTHERS, rest)),
        }
    }
    tasks.append(&mut kept);
    tasks.sort_unstable_by(by_time);
    let share = |ns_of: u64| ((u128::from(ns_of) * u128::from(WHOLE) / u128::from(ns.max(1))) as u64).max(1);
    let mut shares: Vec<(Id, u64)> = tasks.into_iter().map(|(id, ns)| (id, share(ns))).collect();
    let sum: u64 = shares.iter().map(|(_, share)| *share).sum();
    if let Some((_, first)) = shares.first_mut() {
        // Rounding takes less from the others than the largest has.
        *first = (*first + WHOLE).saturating_sub(sum);
    }
    shares.into_iter().map(|(id, share)| (id, share as u16)).collect()
}

/// Appends a number, seven bits a byte.
fn put_number(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (mut value, mut rest) = (0, bytes);
    for shift in (0..32).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        value |= u32::from(byte & 0x7f) << shift;
        rest = behind;
        if byte & 0x80 == 0 {
            return Some((value, rest));
        }
    }
    None
}

/// Appends a run of equal columns as the page reads it, from their stored form.
pub(crate) fn put_run(out: &mut Vec<u8>, repeat: usize, form: &[u8]) {
    let Some((head, mut rest)) = form.split_first() else { return };
    let (mut least, mut most, mut mean) = (0, 0, [0, 0]);
    if head & QUEUE > 0
        && let [shortest, longest, low, high, behind @ ..] = rest
    {
        (least, most, mean, rest) = (*shortest, *longest, [*low, *high], behind);
    }
    let count = head & !QUEUE;
    out.extend((repeat as u16).to_le_bytes());
    out.extend([count, most, mean[0], mean[1], least, 0]);
    for _ in 0..count {
        let Some((id, [low, high, behind @ ..])) = number(rest) else { return };
        out.extend(id.wrapping_add(OTHERS).to_le_bytes());
        out.extend([*low, *high, 0, 0]);
        rest = behind;
    }
}

/// Appends columns in which there is nothing: outside of the trace, or not read yet.
pub(crate) fn put_nothing(out: &mut Vec<u8>, repeat: usize) {
    out.extend((repeat as u16).to_le_bytes());
    out.extend([0; 6]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_the_largest_and_sum_to_the_whole() {
        let times: Vec<(Id, u64)> = (0..10).map(|id| (id, 10 + u64::from(id))).chain([(IDLE, 1), (3, 20)]).collect();
        let shares = shares(&summed(times.clone()), times.iter().map(|(_, ns)| ns).sum());
        assert_eq!(shares.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [OTHERS, 3, 9, 8, 7, 6, 5, IDLE]);
        assert_eq!(shares.iter().map(|(_, share)| u64::from(*share)).sum::<u64>(), WHOLE);
        assert_eq!(shares[1].1, (33 * WHOLE / 166) as u16);
        assert_eq!(
            super::shares(&[(7, 1), (IDLE, u64::MAX / 2)], u64::MAX / 2 + 1)[1],
            (7, 1),
            "the least is not lost"
        );
        assert_eq!(super::shares(&[(7, 5)], 5), [(7, u16::MAX)]);
    }

    #[test]
    fn the_form_is_read_back() {
        let mut column = LaneColumn::default();
        column.pass(&LaneNow { occupant: 70_000, queue: 3 }, 10);
        column.pass(&LaneNow { occupant: IDLE, queue: 0 }, 30);
        let mut form = Vec::new();
        column.encode(&mut form);
        assert_eq!(LaneColumn::skip(&form), Some(&[][..]));
        let mut run = Vec::new();
        put_run(&mut run, 256, &form);
        let mut truth = vec![0, 1, 2, 3, 192, 0, 0, 0];
        truth.extend(IDLE.to_le_bytes());
        truth.extend([0, 0xc0, 0, 0]);
        truth.extend(70_000u32.to_le_bytes());
        truth.extend([0xff, 0x3f, 0, 0]);
        assert_eq!(run, truth);
    }
}
