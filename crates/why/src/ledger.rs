//! The rows of both tables, and the parts whose migration has no settled cause yet.

use crate::category::{Category, IdleEnd, IdleOrigin, WaitEnd, WaitOrigin};
use crate::nearest::Nearest;
use sched::seeded::SeededMap;
use sched::{Cause, Comm, Cpu, Dur, Lengths, Pid, Ts};

pub(crate) use sched::causes::MoveKey;

/// A wait or an idle stretch with its time in violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    /// The time in violation, in nanoseconds.
    pub(crate) violated: u64,
    pub(crate) start: Ts,
    pub(crate) end: Ts,
    pub(crate) cpu: Cpu,
    /// The task that waited; [`Pid::IDLE`] for an idle stretch.
    pub(crate) pid: Pid,
    pub(crate) command: Comm,
    /// Whether the case counts: a wait of a task that is not counted is in no row, and only listed.
    pub(crate) counted: bool,
    /// The nearest CPU with a counted waiter, for an idle stretch that began with a missed steal.
    pub(crate) missed: Option<Nearest>,
}

/// A case with its categories. A category that is a migration of unsettled cause has a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CategorizedCase<O, E> {
    pub(crate) origin: (O, Option<MoveKey>),
    pub(crate) end: (E, Option<MoveKey>),
    pub(crate) case: Case,
}

impl<O: Category, E: Category> CategorizedCase<O, E> {
    fn settle(&mut self, key: MoveKey, cause: Cause) {
        if self.origin.1 == Some(key) {
            self.origin = (self.origin.0.caused_by(cause), None);
        }
        if self.end.1 == Some(key) {
            self.end = (self.end.0.caused_by(cause), None);
        }
    }

    /// The migrations whose causes are not settled yet.
    fn unsettled(&self) -> impl Iterator<Item = MoveKey> + use<O, E> {
        self.origin.1.into_iter().chain(self.end.1)
    }
}

/// The cases of one pair of origin and end.
#[derive(Clone, Debug, Default)]
pub(crate) struct CaseSums {
    /// The number of its cases, and their time in violation in nanoseconds.
    pub(crate) number: u64,
    pub(crate) violated: u64,
    /// The times in violation of cases whose end was seen, and the longest of these.
    pub(crate) lengths: Lengths,
    pub(crate) longest: Option<Case>,
}

impl CaseSums {
    /// Keeps a case if it is the longest, and among equals the first.
    fn keep_longest(&mut self, case: Case) {
        let rank = |c: &Case| (std::cmp::Reverse(c.violated), c.start, c.cpu, c.pid);
        if self.longest.is_none_or(|longest| rank(&case) < rank(&longest)) {
            self.longest = Some(case);
        }
    }

    /// Adds the cases of the same origin and end in a later piece of a pass.
    fn join(&mut self, later: &CaseSums) {
        self.number += later.number;
        self.violated = self.violated.saturating_add(later.violated);
        self.lengths.merge(&later.lengths);
        later.longest.into_iter().for_each(|case| self.keep_longest(case));
    }
}

/// The parts that a later piece of a pass has listed, each with the number of steps that it had left by then.
pub(crate) type ListedParts<O, E> = std::iter::Peekable<std::vec::IntoIter<(usize, CategorizedCase<O, E>)>>;

/// A table: the rows by origin and end, and the parts that wait for a cause.
#[derive(Clone, Debug)]
pub(crate) struct Ledger<O, E> {
    pub(crate) rows: SeededMap<(O, E), CaseSums>,
    /// The parts that wait; a part that waits for two causes can see them settled in any order.
    parked: Vec<Option<CategorizedCase<O, E>>>,
    free: Vec<usize>,
    /// The places in `parked` of the parts that wait for a migration.
    places: SeededMap<MoveKey, Vec<usize>>,
    /// The parts that are complete since they were last taken out, where parts are listed; each with the number of steps that a
    /// later piece of a pass had left to the pieces before.
    listed: Option<Vec<(usize, CategorizedCase<O, E>)>>,
    /// The number of these steps; nothing where this is no later piece.
    steps: Option<usize>,
    /// Whether a part of a later piece waited for a migration on which a step depends as well: the order in which the two are
    /// listed is that of their ends, which this piece does not have.
    is_mixed: bool,
}

impl<O, E> Default for Ledger<O, E> {
    fn default() -> Ledger<O, E> {
        Ledger {
            rows: SeededMap::default(),
            parked: Vec::new(),
            free: Vec::new(),
            places: SeededMap::default(),
            listed: None,
            steps: None,
            is_mixed: false,
        }
    }
}

impl<O: Category, E: Category> Ledger<O, E> {
    /// Lists all cases from now on, those without time in violation as well.
    pub(crate) fn list(&mut self) {
        self.listed = Some(Vec::new());
    }

    /// Passes on the cases that are complete since the last call.
    pub(crate) fn drain(&mut self, take: impl FnMut(CategorizedCase<O, E>)) {
        self.listed.iter_mut().flat_map(|listed| listed.drain(..)).map(|(_, part)| part).for_each(take);
    }

    /// Follows a later piece of a pass from now on, which has left no step yet. Parked parts keep their order.
    pub(crate) fn resume(&mut self) {
        self.steps = Some(0);
    }

    /// Notes a step that is left to the pieces before; `key` is the migration whose cause is settled, if the step is that.
    pub(crate) fn leave(&mut self, key: Option<MoveKey>) {
        if let Some(steps) = &mut self.steps {
            *steps += 1;
        }
        self.is_mixed |= self.listed.is_some() && key.is_some_and(|key| self.places.contains_key(&key));
    }

    /// Whether the parts of a later piece and those of the steps that it has left, which await these migrations, have an order that is
    /// known, if that matters.
    pub(crate) fn has_order<'k>(&self, mut awaited: impl Iterator<Item = &'k MoveKey>) -> bool {
        self.listed.is_none() || !self.is_mixed && !awaited.any(|key| self.places.contains_key(key))
    }

    /// Adds the parts that a later piece has listed up to a step to the list.
    pub(crate) fn list_before(&mut self, later: &mut ListedParts<O, E>, step: usize) {
        if let Some(listed) = &mut self.listed {
            while let Some((_, part)) = later.next_if(|(steps, _)| *steps <= step) {
                listed.push((0, part));
            }
        }
    }

    /// Removes and returns the list.
    pub(crate) fn take_listed(&mut self) -> ListedParts<O, E> {
        self.listed.as_mut().map(std::mem::take).unwrap_or_default().into_iter().peekable()
    }

    /// Takes a case; one without any time in violation is in no row.
    pub(crate) fn take(&mut self, part: CategorizedCase<O, E>) {
        if part.case.violated == 0 && self.listed.is_none() {
            return;
        }
        if part.unsettled().next().is_none() {
            return self.count(part);
        }
        // Places in a later piece are in the order in which parts came.
        let free = if self.steps.is_none() { self.free.pop() } else { None };
        let place = free.unwrap_or_else(|| {
            self.parked.push(None);
            self.parked.len() - 1
        });
        part.unsettled().for_each(|key| self.places.entry(key).or_default().push(place));
        self.parked[place] = Some(part);
    }

    fn count(&mut self, part: CategorizedCase<O, E>) {
        let CategorizedCase { origin, end, case } = part;
        if let Some(listed) = &mut self.listed {
            listed.push((self.steps.unwrap_or(0), part));
            if case.violated == 0 {
                return;
            }
        }
        let row = self.rows.entry((origin.0, end.0)).or_default();
        row.number += 1;
        row.violated = row.violated.saturating_add(case.violated);
        if !end.0.is_seen() {
            return;
        }
        row.lengths.add(Dur(case.violated));
        row.keep_longest(case);
    }

    /// A migration has this cause.
    pub(crate) fn settle(&mut self, key: MoveKey, cause: Cause) {
        if self.places.is_empty() {
            return;
        }
        for place in self.places.remove(&key).unwrap_or_default() {
            let Some(part) = &mut self.parked[place] else { continue };
            part.settle(key, cause);
            if part.unsettled().next().is_none() {
                let part = self.parked[place].take();
                self.free.push(place);
                part.into_iter().for_each(|part| self.count(part));
            }
        }
    }

    /// Takes the causes that are not settled yet as final.
    pub(crate) fn finish(&mut self) {
        let mut open: Vec<MoveKey> = self.places.keys().copied().collect();
        open.sort_unstable();
        for key in open {
            self.settle(key, Cause::Unknown);
        }
    }

    /// Adds the cases of a later piece of a pass.
    pub(crate) fn join(&mut self, later: Ledger<O, E>) {
        for (categories, sums) in later.rows {
            self.rows.entry(categories).or_default().join(&sums);
        }
        later.parked.into_iter().flatten().for_each(|part| self.take(part));
    }

    /// The time in all rows, in nanoseconds.
    pub(crate) fn total(&self) -> u64 {
        self.rows.values().fold(0, |sum: u64, row| sum.saturating_add(row.violated))
    }
}

pub(crate) type Waits = Ledger<WaitOrigin, WaitEnd>;
pub(crate) type Stretches = Ledger<IdleOrigin, IdleEnd>;

#[cfg(test)]
mod tests {
    use super::*;

    fn case(violated: u64, start: i64) -> Case {
        let (start, cpu, pid, command) = (Ts(start), Cpu(0), Pid(7), Comm::EMPTY);
        Case { violated, start, end: start, cpu, pid, command, counted: true, missed: None }
    }

    #[test]
    fn a_part_waits_for_the_causes_of_both_its_migrations() {
        let (first, second) = ((Pid(7), Ts(1), Cpu(0)), (Pid(7), Ts(9), Cpu(1)));
        let mut waits = Waits::default();
        let moved = Cause::Unknown;
        let part = |violated| CategorizedCase {
            origin: (WaitOrigin::Moved(moved), Some(first)),
            end: (WaitEnd::Moved(moved), Some(second)),
            case: case(violated, 1),
        };
        waits.take(part(5));
        waits.take(part(0));
        waits.settle(second, Cause::Idle);
        assert!(waits.rows.is_empty(), "its first migration has no cause yet");
        waits.settle(first, Cause::NewIdle);
        let row = &waits.rows[&(WaitOrigin::Moved(Cause::NewIdle), WaitEnd::Moved(Cause::Idle))];
        assert_eq!((row.lengths.count(), row.longest, waits.total()), (1, Some(case(5, 1)), 5));
        waits.take(part(2));
        waits.finish();
        assert_eq!((waits.rows.len(), waits.total()), (2, 7), "the unsettled ones count as unknown");
    }

    #[test]
    fn the_first_of_the_longest_cases_is_kept() {
        let mut waits = Waits::default();
        for (violated, start) in [(3, 50), (8, 40), (8, 30), (2, 10)] {
            let (origin, end) = ((WaitOrigin::Forked, None), (WaitEnd::Died, None));
            waits.take(CategorizedCase { origin, end, case: case(violated, start) });
        }
        assert_eq!(waits.rows[&(WaitOrigin::Forked, WaitEnd::Died)].longest, Some(case(8, 30)));
    }

    #[test]
    fn a_case_whose_end_was_not_seen_counts_in_the_sum_and_has_no_length() {
        let mut stretches = Stretches::default();
        for (violated, end) in [(3, IdleEnd::Unknown), (8, IdleEnd::Unknown), (5, IdleEnd::Woken)] {
            stretches.take(CategorizedCase {
                origin: (IdleOrigin::Slept, None),
                end: (end, None),
                case: case(violated, 1),
            });
        }
        let row = &stretches.rows[&(IdleOrigin::Slept, IdleEnd::Unknown)];
        assert_eq!((row.number, row.violated, row.lengths.count(), row.longest), (2, 11, 0, None));
        assert_eq!(stretches.total(), 16);
    }
}
