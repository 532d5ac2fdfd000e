//! The least time for which CPUs must be busy with the runs between their heads and tails.

use crate::model::{Model, TaskIndex};
use sched::CpuSet;
use sched::seeded::SeededMap;

/// The number of thresholds of heads, and of tails.
const BINS: usize = 32;

/// Maximum number of sets of CPUs whose work is summed up by itself.
const MOST_SETS: usize = 64;

/// The sets of CPUs that tasks used or may have used, each over the whole life of a task.
pub(super) struct UsedSets {
    /// The set of each task; nothing for one that may use every CPU.
    of_tasks: Vec<Option<u32>>,
    sets: Vec<CpuSet>,
}

impl UsedSets {
    /// The sets by what is known of the affinity of tasks; `tasks_are_bound`: by the CPUs of the trace for the others.
    pub(super) fn of(model: &Model, tasks_are_bound: bool) -> UsedSets {
        let usable: CpuSet = model.usable().collect();
        // Whatever the simulation does with a task that may use no CPU.
        let set_of =
            |set: Option<u32>| set.and_then(|set| model.sets.get(set as usize)).filter(|set| set.meets(&usable));
        let mut of_tasks: Vec<Option<CpuSet>> = vec![Some(CpuSet::default()); model.tasks.len()];
        let mut add = |task: TaskIndex, known: Option<&CpuSet>, used: &[sched::Cpu]| {
            let Some(all) = &mut of_tasks[task as usize] else { return };
            used.iter().for_each(|cpu| all.set(*cpu, true));
            match known {
                Some(known) => all.add(known),
                None if !tasks_are_bound => of_tasks[task as usize] = None,
                None => {}
            }
        };
        for (index, task) in (0..).zip(&model.tasks) {
            if matches!(task.begin, crate::model::Begin::Runs(_)) {
                add(index, set_of(task.allowed), &[task.cpu]);
            }
        }
        for join in &model.joins {
            let moves = model.moves.get(join.moves.0 as usize..join.moves.1 as usize).unwrap_or_default();
            let used: Vec<sched::Cpu> = std::iter::once(join.cpu).chain(moves.iter().map(|to| to.dest)).collect();
            add(join.task, set_of(join.allowed), &used);
        }
        let (mut sets, mut ids) = (Vec::new(), SeededMap::default());
        let mut id = |set: CpuSet| {
            if set.is_empty() || set.contains(&usable) {
                return None;
            }
            let known = ids.get(&set).copied();
            if known.is_none() && sets.len() < MOST_SETS {
                ids.insert(set.clone(), sets.len() as u32);
                sets.push(set);
                return Some(sets.len() as u32 - 1);
            }
            known
        };
        let of_tasks = of_tasks.into_iter().map(|set| id(set?)).collect();
        UsedSets { of_tasks, sets }
    }
}

/// The time of runs by their heads and tails.
#[derive(Clone, Debug)]
struct Bins {
    sums: Box<[u64; BINS * BINS]>,
    /// The least head of the runs behind each threshold, and the least tail.
    heads: [u64; BINS],
    tails: [u64; BINS],
}

impl Bins {
    fn new() -> Bins {
        Bins { sums: Box::new([0; BINS * BINS]), heads: [u64::MAX; BINS], tails: [u64::MAX; BINS] }
    }

    fn add(&mut self, (head_bin, head): (usize, u64), (tail_bin, tail): (usize, u64), ns: u64) {
        let sum = &mut self.sums[head_bin * BINS + tail_bin];
        *sum = sum.saturating_add(ns);
        self.heads[head_bin] = self.heads[head_bin].min(head);
        self.tails[tail_bin] = self.tails[tail_bin].min(tail);
    }

    fn join(&mut self, other: &Bins) {
        self.sums.iter_mut().zip(other.sums.iter()).for_each(|(sum, ns)| *sum = sum.saturating_add(*ns));
        let pairs = [(&mut self.heads, &other.heads), (&mut self.tails, &other.tails)];
        pairs
            .into_iter()
            .for_each(|(all, more)| all.iter_mut().zip(more).for_each(|(all, more)| *all = (*all).min(*more)));
    }

    /// The least time of the work on this number of CPUs, in nanoseconds: for each pair of thresholds the runs behind both, with the least head
    /// and the least tail of such runs.
    fn least(mut self, cpus: u64) -> u64 {
        for at in (0..BINS - 1).rev() {
            self.heads[at] = self.heads[at].min(self.heads[at + 1]);
            self.tails[at] = self.tails[at].min(self.tails[at + 1]);
        }
        let mut least = 0;
        for head in (0..BINS).rev() {
            for tail in (0..BINS).rev() {
                let behind = |head: usize, tail: usize| {
                    if head < BINS && tail < BINS { self.sums[head * BINS + tail] } else { 0 }
                };
                let others = behind(head + 1, tail).saturating_add(behind(head, tail + 1));
                let sum = (behind(head, tail).saturating_add(others)).saturating_sub(behind(head + 1, tail + 1));
                self.sums[head * BINS + tail] = sum;
                if sum > 0 {
                    let outside = self.heads[head].saturating_add(self.tails[tail]);
                    least = least.max(outside.saturating_add(sum.div_ceil(cpus)));
                }
            }
        }
        least
    }
}

/// The time of runs by their heads and tails, for each set of CPUs.
pub(super) struct WorkBins<'s> {
    sets: &'s UsedSets,
    from: i64,
    /// The distance of two thresholds, in nanoseconds.
    step: u64,
    cpus: u64,
    /// The work of tasks that may use every CPU first, then that of each set.
    bins: Vec<Bins>,
}

impl<'s> WorkBins<'s> {
    /// No work yet of an elapsed time from `from` on, whose longest chain has this length in nanoseconds.
    pub(super) fn new(sets: &'s UsedSets, from: i64, chain: u64, cpus: usize) -> WorkBins<'s> {
        let bins = vec![Bins::new(); 1 + sets.sets.len()];
        WorkBins { sets, from, step: (chain / BINS as u64).max(1), cpus: cpus.max(1) as u64, bins }
    }

    /// Adds a run of a task, whose parts are divided at the thresholds.
    pub(super) fn add(&mut self, task: TaskIndex, head: i64, ns: u64, tail: u64) {
        // What may happen before the beginning costs nothing behind it.
        let before = u64::try_from(self.from.saturating_sub(head)).unwrap_or(0);
        let mut left = ns.saturating_sub(before);
        let mut head = u64::try_from(head.saturating_sub(self.from)).unwrap_or(0);
        let set = self.sets.of_tasks.get(task as usize).copied().flatten().map_or(0, |set| 1 + set as usize);
        while left > 0 {
            // The greatest part whose head and tail stay between two thresholds.
            let to_head = (head / self.step + 1) * self.step - head;
            let end = tail.saturating_add(left);
            let to_tail = (end - 1) % self.step + 1;
            let part = match (self.bin(head), self.bin(end - 1)) {
                (h, t) if h == BINS - 1 && t == BINS - 1 => left,
                (h, _) if h == BINS - 1 => left.min(to_tail),
                (_, t) if t == BINS - 1 => left.min(to_head),
                _ => left.min(to_head).min(to_tail),
            };
            let places = [head, end - part].map(|ns| (self.bin(ns), ns));
            self.bins[set].add(places[0], places[1], part);
            (left, head) = (left - part, head.saturating_add(part));
        }
    }

    fn bin(&self, ns: u64) -> usize {
        ((ns / self.step) as usize).min(BINS - 1)
    }

    /// The least elapsed time, in nanoseconds: of the work of all tasks on all CPUs, and of that of the tasks which may use a set of CPUs alone.
    pub(super) fn least(&self) -> u64 {
        let joined = |chosen: &mut dyn Iterator<Item = &Bins>| {
            let mut all = Bins::new();
            chosen.for_each(|bins| all.join(bins));
            all
        };
        let sets = &self.sets.sets;
        let all = joined(&mut self.bins.iter()).least(self.cpus);
        let of_sets = sets.iter().map(|set| {
            let within = self.bins.iter().skip(1).zip(sets).filter(|(_, other)| set.contains(other));
            joined(&mut within.map(|(bins, _)| bins)).least(u64::from(set.len().max(1)))
        });
        of_sets.fold(all, u64::max)
    }
}
