//! Debts: the times for which tasks had more than their share, until that was made up for.

use membership::RowKey;
use sched::limits::ROWS;
use sched::seeded::SeededMap;
use sched::{Comm, Dur, Pid, Ts};
use serde::Serialize;

/// A debt of a task: from when it left its CPU with a negative lag to its next pick with one that is not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Debt {
    /// The PID of the task.
    pub pid: Pid,
    /// The command name of the task.
    pub command: Comm,
    /// The instant at which the task left its CPU with the debt, in nanoseconds of the trace's clock.
    pub from_ns: Ts,
    /// The greatest debt until it was paid, in nanoseconds of the task's own run time.
    pub most_ns: Dur,
    /// The time until the task was picked without a debt, in nanoseconds; that until its last pick seen if the debt was not paid.
    pub lasted_ns: Dur,
    /// Whether the debt was paid in the window.
    pub paid: bool,
}

/// The debts of all tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Debts {
    /// The debt of each task that has one, with the row of the task as it left its CPU.
    open: SeededMap<Pid, (Debt, RowKey)>,
    /// The longest debt of each row.
    longest: SeededMap<RowKey, Debt>,
}

impl Debts {
    /// Notes the lag of a task as it is picked, or as it leaves its CPU, in its row.
    pub(crate) fn note(&mut self, (pid, command, row): (Pid, Comm, RowKey), ts: Ts, lag_ns: i64, is_picked: bool) {
        if lag_ns < 0 {
            let amount = Dur(lag_ns.unsigned_abs());
            match self.open.get_mut(&pid) {
                Some((debt, _)) => (debt.most_ns, debt.lasted_ns) = (debt.most_ns.max(amount), ts.since(debt.from_ns)),
                None if is_picked => {}
                None => {
                    let debt = Debt { pid, command, from_ns: ts, most_ns: amount, lasted_ns: Dur(0), paid: false };
                    sched::limits::keep_of_pid(&mut self.open, pid, (debt, row));
                }
            }
        } else if is_picked && let Some((debt, row)) = self.open.remove(&pid) {
            self.keep(Debt { lasted_ns: ts.since(debt.from_ns), paid: true, ..debt }, row);
        }
    }

    /// Returns the longest debt of each row.
    pub(crate) fn finish(mut self) -> SeededMap<RowKey, Debt> {
        for (debt, row) in std::mem::take(&mut self.open).into_values() {
            self.keep(debt, row);
        }
        self.longest
    }

    fn keep(&mut self, debt: Debt, row: RowKey) {
        if self.longest.len() >= ROWS && !self.longest.contains_key(&row) {
            return;
        }
        let longest = self.longest.entry(row).or_insert(debt);
        if (debt.lasted_ns, debt.most_ns, longest.pid) > (longest.lasted_ns, longest.most_ns, debt.pid) {
            *longest = debt;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debt_is_paid_at_the_next_pick_without_one() {
        let mut debts = Debts::default();
        debts.note((Pid(7), Comm::EMPTY, RowKey::Task(Pid(7), Comm::EMPTY)), Ts(100), -50, false);
        debts.note((Pid(7), Comm::EMPTY, RowKey::Task(Pid(7), Comm::EMPTY)), Ts(200), -20, true);
        debts.note((Pid(7), Comm::EMPTY, RowKey::Task(Pid(7), Comm::EMPTY)), Ts(300), -80, false);
        // A lag that is no debt while the task leaves its CPU shows nothing of the time before.
        debts.note((Pid(7), Comm::EMPTY, RowKey::Task(Pid(7), Comm::EMPTY)), Ts(400), 5, false);
        debts.note((Pid(7), Comm::EMPTY, RowKey::Task(Pid(7), Comm::EMPTY)), Ts(500), 0, true);
        debts.note((Pid(8), Comm::EMPTY, RowKey::Task(Pid(8), Comm::EMPTY)), Ts(500), -3, false);
        let longest = debts.finish();
        let paid = Debt {
            pid: Pid(7),
            command: Comm::EMPTY,
            from_ns: Ts(100),
            most_ns: Dur(80),
            lasted_ns: Dur(400),
            paid: true,
        };
        assert_eq!(longest.get(&RowKey::Task(Pid(7), Comm::EMPTY)), Some(&paid));
        assert_eq!(longest.get(&RowKey::Task(Pid(8), Comm::EMPTY)).map(|debt| debt.paid), Some(false));
    }
}
