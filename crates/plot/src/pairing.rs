//! Beginnings and ends that belong together.

use crate::expr::EventValue;
use sched::seeded::SeededMap;
use sched::{Cpu, Ts};

/// Maximum number of open intervals of one key; with more of them the oldest is given up.
pub(crate) const DEEPEST: usize = 256;

/// Maximum number of open intervals of one kind; further beginnings are counted and not followed.
pub(crate) const MOST_OPEN: usize = 1 << 16;

/// The values that a beginning and its end have in common.
pub(crate) type PairKey = Vec<EventValue>;

/// An interval that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenPair<T> {
    pub(crate) since: Ts,
    pub(crate) cpu: Cpu,
    /// The look of its beginning.
    pub(crate) of: T,
}

/// The open intervals of one kind: an end closes the latest beginning of its key.
#[derive(Clone, Debug)]
pub(crate) struct Pairs<T> {
    open: SeededMap<PairKey, Vec<OpenPair<T>>>,
    count: usize,
    /// The key contains the CPU: an end is recorded where its beginning was.
    is_by_cpu: bool,
}

impl<T> Pairs<T> {
    pub(crate) fn new(is_by_cpu: bool) -> Pairs<T> {
        Pairs { open: SeededMap::default(), count: 0, is_by_cpu }
    }

    /// The number of open intervals.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Opens an interval. Returns the oldest of its key if there were too many.
    ///
    /// # Errors
    ///
    /// Returns the interval if too many of all keys are open.
    pub(crate) fn begin(&mut self, key: PairKey, open: OpenPair<T>) -> Result<Option<OpenPair<T>>, OpenPair<T>> {
        if self.count >= MOST_OPEN {
            return Err(open);
        }
        let stack = self.open.entry(key).or_default();
        stack.push(open);
        let oldest = (stack.len() > DEEPEST).then(|| stack.remove(0));
        self.count += usize::from(oldest.is_none());
        Ok(oldest)
    }

    /// Closes the latest open interval of a key.
    pub(crate) fn end(&mut self, key: &PairKey) -> Option<OpenPair<T>> {
        let stack = self.open.get_mut(key)?;
        let open = stack.pop();
        if stack.is_empty() {
            self.open.remove(key);
        }
        self.count -= usize::from(open.is_some());
        open
    }

    /// The intervals whose ends may be among events that were lost on a CPU: those of that CPU if an end is always
    /// recorded where its beginning was, else all. They are no longer open.
    pub(crate) fn lost(&mut self, cpu: Cpu) -> Vec<OpenPair<T>> {
        let is_by_cpu = self.is_by_cpu;
        self.take(|open| !is_by_cpu || open.cpu == cpu)
    }

    /// All open intervals, in the order of their beginnings.
    pub(crate) fn finish(&mut self) -> Vec<OpenPair<T>> {
        self.take(|_| true)
    }

    fn take(&mut self, is_taken: impl Fn(&OpenPair<T>) -> bool) -> Vec<OpenPair<T>> {
        let mut taken: Vec<(PairKey, usize, OpenPair<T>)> = Vec::new();
        self.open.retain(|key, stack| {
            let kept = std::mem::take(stack);
            for (depth, open) in kept.into_iter().enumerate() {
                if is_taken(&open) {
                    taken.push((key.clone(), depth, open));
                } else {
                    stack.push(open);
                }
            }
            !stack.is_empty()
        });
        self.count -= taken.len();
        // The order of a hash map is no order.
        taken.sort_by(|a, b| (a.2.since, a.2.cpu, &a.0, a.1).cmp(&(b.2.since, b.2.cpu, &b.0, b.1)));
        taken.into_iter().map(|(.., open)| open).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum PairStep {
        Begin(u8),
        End(u8),
        Lost,
    }

    /// For each end the place of its beginning, by looking back from it: depth by depth.
    fn brute_force(steps: &[(PairStep, u32)], is_by_cpu: bool) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for (at, (step, cpu)) in steps.iter().enumerate() {
            let PairStep::End(key) = step else { continue };
            let mut depth = 0;
            for back in (0..at).rev() {
                let (other, other_cpu) = steps[back];
                match other {
                    PairStep::Lost if !is_by_cpu || other_cpu == *cpu => break,
                    PairStep::Begin(k) if k == *key && (!is_by_cpu || other_cpu == *cpu) => {
                        if depth == 0 {
                            found.push((back, at));
                            break;
                        }
                        depth -= 1;
                    }
                    PairStep::End(k) if k == *key && (!is_by_cpu || other_cpu == *cpu) => depth += 1,
                    _ => {}
                }
            }
        }
        found
    }

    fn paired(steps: &[(PairStep, u32)], is_by_cpu: bool) -> Vec<(usize, usize)> {
        let mut pairs = Pairs::new(is_by_cpu);
        let mut found = Vec::new();
        for (at, (step, cpu)) in steps.iter().enumerate() {
            let key = |key: u8| {
                let mut values = vec![EventValue::Number(key.into())];
                values.extend(is_by_cpu.then(|| EventValue::Number((*cpu).into())));
                values
            };
            match step {
                PairStep::Begin(k) => {
                    let open = OpenPair { since: Ts(at as i64), cpu: Cpu(*cpu), of: at };
                    assert_eq!(pairs.begin(key(*k), open), Ok(None));
                }
                PairStep::End(k) => found.extend(pairs.end(&key(*k)).map(|open| (open.of, at))),
                PairStep::Lost => drop(pairs.lost(Cpu(*cpu))),
            }
        }
        let open = pairs.count();
        assert_eq!((pairs.finish().len(), pairs.count()), (open, 0));
        found
    }

    fn step() -> impl Strategy<Value = (PairStep, u32)> {
        let step = prop_oneof![
            5 => (0u8..3).prop_map(PairStep::Begin),
            5 => (0u8..3).prop_map(PairStep::End),
            1 => Just(PairStep::Lost),
        ];
        (step, 0u32..2)
    }

    proptest! {
        #[test]
        fn pairs_are_those_of_a_look_back(steps in prop::collection::vec(step(), 0..80), is_by_cpu: bool) {
            // An end that finds no beginning ends nothing, so that looking back must not count it.
            let mut usable = Vec::new();
            for step in steps {
                usable.push(step);
                if matches!(step.0, PairStep::End(_)) && brute_force(&usable, is_by_cpu).last().map(|p| p.1) != Some(usable.len() - 1) {
                    usable.pop();
                }
            }
            prop_assert_eq!(paired(&usable, is_by_cpu), brute_force(&usable, is_by_cpu));
        }
    }

    #[test]
    fn the_open_intervals_are_limited() {
        let mut pairs = Pairs::new(false);
        let open = |n: usize| OpenPair { since: Ts(n as i64), cpu: Cpu(0), of: n };
        for n in 0..DEEPEST {
            assert_eq!(pairs.begin(vec![], open(n)), Ok(None));
        }
        assert_eq!(pairs.begin(vec![], open(DEEPEST)), Ok(Some(open(0))));
        for n in 0..MOST_OPEN - DEEPEST {
            assert_eq!(pairs.begin(vec![EventValue::Number(n as i128)], open(n)), Ok(None));
        }
        assert_eq!(pairs.begin(vec![], open(7)), Err(open(7)));
        assert_eq!(pairs.count(), MOST_OPEN);
    }
}
