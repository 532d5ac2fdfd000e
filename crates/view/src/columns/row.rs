//! A column of one task: its time in each state, and the CPUs on which it ran and waited.

use crate::columns::coding::{number, put_number};
use crate::columns::lane::share_of;
use crate::columns::sums::KeyTimes;
use crate::columns::tree::ColumnSummary;
use sched::QueuedTimes;

/// The state of a task, as its row has it (`docs/questions/view.md#task-rows`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowState {
    Running,
    HeldBack,
    BesideIdle,
    BesideShorter,
    Alike,
    /// On a run queue, in a trace that does not show when tasks were woken: the kind is unknown.
    Queued,
    Asleep,
    /// In an uninterruptible sleep (`D`).
    Blocked,
    Throttled,
    Unknown,
    /// Not born yet, or ended.
    Absent,
}

impl RowState {
    /// The names of the states, each at its place.
    pub(crate) const NAMES: [&str; STATES] = [
        "running",
        "held back",
        "beside an idle CPU",
        "beside a shorter queue",
        "all queues alike",
        "queued",
        "asleep",
        "blocked",
        "throttled",
        "unknown",
        "absent",
    ];
}

/// The number of states.
pub(crate) const STATES: usize = 11;

/// A task in one state; the CPU is that on which it runs or waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowNow {
    pub(crate) state: RowState,
    pub(crate) cpu: u32,
}

/// The number of entries that are searched for a CPU.
const NEAR: usize = 8;

/// The CPUs with their times, the longest first; of equal ones the lesser.
fn longest(times: &mut KeyTimes<NEAR>) -> &[(u32, u64)] {
    let times = times.sum();
    times.sort_unstable_by_key(|(cpu, ns)| (std::cmp::Reverse(*ns), *cpu));
    times
}

/// The content of a column of one task.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowColumn {
    ns: [u64; STATES],
    ran: KeyTimes<NEAR>,
    queued: KeyTimes<NEAR>,
}

/// The maximum number of CPUs that a column names as those on which the task ran.
const NAMED: usize = 4;
/// The bit of a column with all of its running time on one CPU.
const ALONE: u8 = 0x80;
/// The form of a column outside of the trace.
pub(crate) const NOTHING: &[u8] = &[0];

impl RowColumn {
    /// Adds a stretch of waiting on a CPU that has these kinds in proportion.
    pub(crate) fn pass_queued(&mut self, kinds: &QueuedTimes, cpu: u32, ns: u64) {
        let times = kinds.in_proportion(ns);
        self.ns[RowState::HeldBack as usize] += times.held_back_ns;
        self.ns[RowState::BesideIdle as usize] += times.beside_idle_ns;
        self.ns[RowState::BesideShorter as usize] += times.beside_shorter_ns;
        self.ns[RowState::Alike as usize] += times.alike_ns;
        self.queued.add(cpu, ns);
    }

    fn total(&self) -> u64 {
        self.ns.iter().sum()
    }

    /// The time on run queues.
    fn waited(&self) -> u64 {
        self.ns[RowState::HeldBack as usize..=RowState::Queued as usize].iter().sum()
    }
}

impl ColumnSummary for RowColumn {
    type Now = RowNow;

    fn pass(&mut self, now: &RowNow, ns: u64) {
        self.ns[now.state as usize] += ns;
        match now.state {
            RowState::Running => self.ran.add(now.cpu, ns),
            RowState::Queued => self.queued.add(now.cpu, ns),
            _ => {}
        }
    }

    fn absorb(&mut self, finer: &mut RowColumn) {
        self.ns.iter_mut().zip(std::mem::take(&mut finer.ns)).for_each(|(sum, ns)| *sum += ns);
        self.ran.absorb(&mut finer.ran);
        self.queued.absorb(&mut finer.queued);
    }

    fn is_empty(&self) -> bool {
        self.ns == [0; STATES]
    }

    /// The form: the number of states, then each with its share, the longest first; the first one has the rest. Where the task ran: the
    /// number of CPUs that are named, each with its share of the column, or with a bit the one CPU of all its running time. Where it waited:
    /// the CPU of its longest wait, doubled, and one more if there were others.
    fn encode(&mut self, out: &mut Vec<u8>) {
        let all = self.total();
        let mut states: [(usize, u64); STATES] = std::array::from_fn(|state| (state, self.ns[state]));
        states.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let present = states.iter().take_while(|(_, ns)| *ns > 0);
        out.push(present.clone().count() as u8);
        for (nth, (state, ns)) in present.enumerate() {
            out.push(*state as u8);
            if nth > 0 {
                out.extend(share_of(*ns, all).to_le_bytes());
            }
        }
        if self.ns[RowState::Running as usize] > 0 {
            match longest(&mut self.ran) {
                [(cpu, _)] => {
                    out.push(ALONE | 1);
                    put_number(out, (*cpu).into());
                }
                several => {
                    out.push(several.len().min(NAMED) as u8);
                    for (cpu, ns) in several.iter().take(NAMED) {
                        put_number(out, (*cpu).into());
                        out.extend(share_of(*ns, all).to_le_bytes());
                    }
                }
            }
        }
        if self.waited() > 0 {
            let longest = longest(&mut self.queued);
            let (cpu, others) = (longest.first().map_or(0, |(cpu, _)| *cpu), longest.len() > 1);
            put_number(out, u64::from(cpu) << 1 | u64::from(others));
        }
    }

    fn skip(bytes: &[u8]) -> Option<&[u8]> {
        let (count, mut rest) = bytes.split_first()?;
        let (mut ran, mut waited) = (false, false);
        for nth in 0..*count {
            let (state, behind) = rest.split_first()?;
            ran |= usize::from(*state) == RowState::Running as usize;
            waited |= (RowState::HeldBack as u8..=RowState::Queued as u8).contains(state);
            rest = if nth > 0 { behind.get(2..)? } else { behind };
        }
        if ran {
            let (named, behind) = rest.split_first()?;
            rest = behind;
            for _ in 0..named & !ALONE {
                rest = number(rest)?.1;
                rest = if named & ALONE > 0 { rest } else { rest.get(2..)? };
            }
        }
        if waited { number(rest).map(|(_, rest)| rest) } else { Some(rest) }
    }
}

/// The form of a column in which a task is in one state alone, which is on no CPU.
pub(crate) fn lone(state: RowState) -> [u8; 2] {
    [1, state as u8]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::lane::WHOLE;

    /// The most bytes of a column: all states, four CPUs, and the CPU of a wait.
    const MOST_BYTES: usize = 1 + STATES + 2 * (STATES - 1) + 1 + NAMED * (5 + 2) + 5;

    fn form(column: &mut RowColumn) -> Vec<u8> {
        let mut out = Vec::new();
        column.encode(&mut out);
        assert_eq!(RowColumn::skip(&out), Some(&[][..]), "{out:?}");
        assert!(out.len() <= MOST_BYTES);
        (0..out.len()).for_each(|cut| assert!(RowColumn::skip(&out[..cut]).is_none_or(<[u8]>::is_empty)));
        out
    }

    #[test]
    fn a_column_has_its_states_with_their_shares_and_its_cpus() {
        let mut column = RowColumn::default();
        assert_eq!(form(&mut column), NOTHING);
        column.pass(&RowNow { state: RowState::Asleep, cpu: 0 }, 7);
        assert_eq!(form(&mut column), lone(RowState::Asleep));
        // 10 running on CPU 3, 30 queued on CPU 200 a third of which beside an idle CPU, 24 asleep.
        column.pass(&RowNow { state: RowState::Running, cpu: 3 }, 10);
        let kinds = QueuedTimes { beside_idle_ns: 1, alike_ns: 2, ..QueuedTimes::default() };
        column.pass_queued(&kinds, 200, 30);
        column.pass(&RowNow { state: RowState::Asleep, cpu: 0 }, 17);
        let share = |part: u64| ((part * WHOLE / 64) as u16).to_le_bytes();
        let ([low, high], [a, b]) = (share(20), share(10));
        let expected = [4, 6, 4, low, high, 0, a, b, 2, a, b, ALONE | 1, 3, 0x90, 0x03];
        assert_eq!(form(&mut column), expected);
    }

    #[test]
    fn a_column_is_the_sum_of_its_halves_and_no_larger_than_it_may_be() {
        let mut rng = testkit::Rng::new(3);
        let states = [RowState::Running, RowState::Queued, RowState::Asleep, RowState::Blocked, RowState::Throttled];
        let states = states.into_iter().chain([RowState::Unknown, RowState::Absent]).collect::<Vec<_>>();
        for _ in 0..200 {
            let (mut whole, mut halves) = (RowColumn::default(), [RowColumn::default(), RowColumn::default()]);
            for _ in 0..rng.below(300) {
                let (cpu, ns) = (rng.below(70) as u32 * 40_000_000, 1 + rng.below(50) as u64);
                let half = &mut halves[rng.below(2)];
                if rng.below(3) == 0 {
                    let kinds = QueuedTimes {
                        held_back_ns: 1,
                        beside_idle_ns: 1,
                        beside_shorter_ns: 1,
                        alike_ns: 1,
                        ..QueuedTimes::default()
                    };
                    whole.pass_queued(&kinds, cpu, 4 * ns);
                    half.pass_queued(&kinds, cpu, 4 * ns);
                } else {
                    let now = RowNow { state: states[rng.below(states.len())], cpu };
                    whole.pass(&now, ns);
                    half.pass(&now, ns);
                }
            }
            let [mut first, mut second] = halves;
            let _ = form(&mut second);
            first.absorb(&mut second);
            assert!(second.is_empty() && second.ran.is_empty());
            assert_eq!(form(&mut first), form(&mut whole));
        }
    }
}
