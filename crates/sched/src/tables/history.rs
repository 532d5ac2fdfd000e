//! Values over the time of a trace.

use crate::event::Ts;

/// A value over time, learned in the order of time. For most tasks it changes once, or never.
#[derive(Clone, Debug)]
pub(crate) struct History<T> {
    first: (Ts, T),
    others: Vec<(Ts, T)>,
}

impl<T: Copy + PartialEq> History<T> {
    /// Makes a history of this value from `ts` on.
    pub(crate) fn new(ts: Ts, value: T) -> History<T> {
        History { first: (ts, value), others: Vec::new() }
    }

    /// Adds the value from `ts` on, if it differs from the one before; returns whether it does. `ts` must not precede an earlier one.
    pub(crate) fn learn(&mut self, ts: Ts, value: T) -> bool {
        let is_new = self.latest() != value;
        if is_new {
            self.others.push((ts, value));
        }
        is_new
    }

    /// The last value of the history.
    fn latest(&self) -> T {
        self.others.last().unwrap_or(&self.first).1
    }

    /// The first value of the history.
    pub(crate) fn first(&self) -> T {
        self.first.1
    }

    /// Returns the value at `ts`; `None` before the first value.
    pub(crate) fn at(&self, ts: Ts) -> Option<T> {
        let passed = self.others.partition_point(|(at, _)| *at <= ts);
        let latest = passed.checked_sub(1).and_then(|last| self.others.get(last));
        Some(latest.unwrap_or(&self.first)).filter(|(at, _)| *at <= ts).map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_that_of_the_time() {
        let mut history = History::new(Ts(5), 'a');
        for (ts, value) in [(6, 'a'), (7, 'b'), (7, 'c'), (9, 'c'), (9, 'a')] {
            history.learn(Ts(ts), value);
        }
        let at = [4, 5, 6, 7, 8, 9, 99].map(|ts| history.at(Ts(ts)));
        assert_eq!(at, [None, Some('a'), Some('a'), Some('c'), Some('c'), Some('a'), Some('a')]);
        assert_eq!((history.first(), history.others.len()), ('a', 3));
    }
}
