//! The futexes at which tasks sleep and from which they are woken, by the system calls that were recorded.

use crate::edges::PartyKey;
use parse::Trace;
use sched::limits::BoundedRows;
use sched::{Dur, Lengths, Pid, Ts};
use std::ops::ControlFlow;

/// Maximum number of system calls that are kept. Wakeups in further ones are at no futex.
pub(crate) const CALLS: usize = 1 << 22;

/// A call of `futex` that begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FutexCall {
    pid: Pid,
    at: Ts,
    /// The address of the futex, and whether the call wakes; absent where a call ends.
    begun: Option<(u64, bool)>,
}

/// The calls of `futex` of a trace.
#[derive(Clone, Debug, Default)]
pub struct FutexCalls(Vec<FutexCall>);

/// The operations that wake: `WAKE`, `REQUEUE`, `CMP_REQUEUE`, `WAKE_OP`, `UNLOCK_PI`, `WAKE_BITSET`, `CMP_REQUEUE_PI`.
const WAKES: [u64; 7] = [1, 3, 4, 5, 7, 10, 12];
/// The bits of an operation that are its command: the others make it private, or choose a clock.
const COMMAND: u64 = 0x7f;

impl FutexCalls {
    /// Whether a trace has the system calls.
    pub fn are_in(trace: &Trace) -> bool {
        trace.format_named("syscalls", "sys_enter_futex").is_some()
    }

    /// Reads the calls of a trace.
    pub fn of(trace: &Trace) -> FutexCalls {
        let id = |name| trace.format_named("syscalls", name).map(|format| format.id);
        let [enter, exit] = ["sys_enter_futex", "sys_exit_futex"].map(id);
        let mut calls = Vec::new();
        if enter.is_some() {
            trace.records(&mut |record| {
                let id = Some(record.id());
                if id == enter || id == exit {
                    let number = |name| record.number(name).map(i64::cast_unsigned);
                    let wakes = |operation: u64| WAKES.contains(&(operation & COMMAND));
                    let begun =
                        number("uaddr").zip(number("op")).map(|(address, operation)| (address, wakes(operation)));
                    let begun = begun.filter(|_| id == enter);
                    calls.push(FutexCall { pid: record.pid(), at: record.ts, begun });
                }
                if calls.len() < CALLS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
        }
        calls.sort_unstable();
        FutexCalls(calls)
    }

    /// Returns the address of the futex in whose call a task is at an instant, if the call wakes or waits as asked.
    fn address(&self, pid: Pid, at: Ts, wakes: bool) -> Option<u64> {
        let next = self.0.partition_point(|call| (call.pid, call.at) <= (pid, at));
        let call = self.0.get(next.checked_sub(1)?).filter(|call| call.pid == pid)?;
        call.begun.filter(|(_, of)| *of == wakes).map(|(address, _)| address)
    }

    /// Returns the address of the futex of a wakeup: the one at which the woken task sleeps, if its waker is in a call that wakes.
    pub(crate) fn of_wakeup(&self, (waker, waking): (Pid, Ts), (woken, ran): (Pid, Ts)) -> Option<u64> {
        self.address(waker, waking, true)?;
        self.address(woken, ran, false)
    }
}

/// The key of a row: the address, the waker and the woken task; absent of the rows beyond their number.
pub(crate) type FutexKey = Option<(u64, PartyKey, PartyKey)>;

/// The sums of the wakeups at a futex.
#[derive(Clone, Debug, Default)]
pub(crate) struct FutexSums {
    pub(crate) wakeups: u64,
    pub(crate) slept: Lengths,
    pub(crate) waited: Lengths,
}

impl FutexSums {
    /// Adds the sums of the same row in a later piece of a pass.
    pub(crate) fn join(&mut self, later: &FutexSums) {
        self.wakeups += later.wakeups;
        self.slept.merge(&later.slept);
        self.waited.merge(&later.waited);
    }
}

/// The wakeups by futex, waker and woken task.
pub(crate) type FutexTable = BoundedRows<FutexKey, FutexSums>;

/// Adds a wakeup to its row.
pub(crate) fn add(table: &mut FutexTable, key: (u64, PartyKey, PartyKey), slept: Option<Dur>, waited: Option<Dur>) {
    let sums = table.of(Some(key), None);
    sums.wakeups += 1;
    slept.into_iter().for_each(|slept| sums.slept.add(slept));
    waited.into_iter().for_each(|waited| sums.waited.add(waited));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wakeup_is_at_the_futex_at_which_the_woken_task_sleeps() {
        let call = |pid, at, begun| FutexCall { pid: Pid(pid), at: Ts(at), begun };
        let calls = FutexCalls(vec![
            call(7, 10, Some((0x40, false))),
            call(7, 90, None),
            call(8, 50, Some((0x40, true))),
            call(8, 60, None),
        ]);
        let of = |waking, ran| calls.of_wakeup((Pid(8), Ts(waking)), (Pid(7), Ts(ran)));
        assert_eq!((of(55, 80), of(50, 80)), (Some(0x40), Some(0x40)));
        // The waker is in no call; the woken task has left its own.
        assert_eq!((of(65, 80), of(40, 80), of(55, 95)), (None, None, None));
        assert_eq!(calls.of_wakeup((Pid(7), Ts(20)), (Pid(8), Ts(55))), None);
    }
}
