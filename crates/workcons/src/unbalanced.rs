//! Unbalanced time: a task waits beside a shorter queue (`docs/read-the-numbers.md#queued-time`).

mod weighed;

use crate::violation::{ALL, FollowedSets, Sets};
use sched::{Cpu, CpuSet, Dur, Load, SchedState, TaskId, Ts};
use serde::Serialize;
use std::cmp::Reverse;
use weighed::WaitersByWeight;

/// Maximum number of the longest episodes that are kept.
const KEPT: usize = 5;

/// Maximum length of a run queue that is distinguished from longer ones.
const LONGEST: u32 = 4096;

/// The difference in length from which on a queue is beside a shorter one.
const DIFFERENCE: u32 = 2;

/// The unbalanced time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unbalanced {
    /// The time for which a counted waiter was beside a shorter queue, in nanoseconds.
    pub ns: u64,
    /// The time for which a counted waiter was beside a shorter queue, in percent of the window.
    pub percent: f64,
    /// The time of all CPUs with such waiters, in nanoseconds.
    pub cpu_ns: u64,
    /// The time of all CPUs with such waiters, in percent of the window times the CPUs.
    pub cpu_percent: f64,
    /// The number of episodes: maximal intervals of unbalanced time.
    pub episodes: u64,
    /// The longest episodes.
    pub longest: Vec<UnbalancedEpisode>,
}

/// An episode of unbalanced time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnbalancedEpisode {
    /// The start of the episode after the start of the trace, in nanoseconds.
    pub start_in_trace_ns: u64,
    /// The length of the episode, in nanoseconds.
    pub duration_ns: Dur,
    /// The largest difference in it between the number of runnable tasks of a CPU and the smallest one of those that its waiting task may use. It is
    /// below 2 where the weights of the tasks alone made the queue too long.
    pub difference: u32,
}

/// The largest difference of an unbalanced time behind a word, such as ` with 3 tasks fewer`; nothing where the weights of the tasks made it one.
pub fn fewer_tasks(difference: u32, before: &str) -> String {
    if difference < DIFFERENCE { String::new() } else { format!("{before}{difference} tasks fewer") }
}

/// An episode with its ends; without the second one it is open.
#[derive(Clone, Copy, Debug)]
struct EpisodeSpan {
    start: Ts,
    end: Option<Ts>,
    difference: u32,
}

/// The queue of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct QueueStanding {
    /// The number of runnable tasks, 0 on an idle CPU; `None` where it is neither idle nor shorter than others.
    place: Option<u32>,
    /// Whether a task runs there.
    runs: bool,
    /// Whether a task runs while a counted one waits that may use every CPU.
    is_counted: bool,
    /// Whether some task there weighs more or less than one of nice 0.
    is_odd: bool,
}

/// The share of a part in a whole, in percent; zero if there is no whole.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// Lengths of queues, as bits: the next one is found by words, however far it is.
#[derive(Clone, Debug, Default)]
struct Lengths {
    words: Vec<u64>,
}

impl Lengths {
    fn set(&mut self, length: usize, is_in: bool) {
        let (word, bit) = (length / 64, 1 << (length % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if is_in { self.words[word] |= bit } else { self.words[word] &= !bit }
    }

    /// The shortest length in it from this one on.
    fn next(&self, from: usize) -> Option<usize> {
        let mut at = from / 64;
        let mut word = self.words.get(at)? & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            word = *self.words.get(at)?;
        }
        Some(64 * at + word.trailing_zeros() as usize)
    }
}

/// Follows the unbalanced time, in a time per event that grows with the number of different lengths of queues alone, but for tasks that may use
/// certain CPUs.
#[derive(Clone, Debug)]
pub(crate) struct Imbalance {
    way: usize,
    zero: Ts,
    cpus: Vec<QueueStanding>,
    /// The number of CPUs with each length, and of those with a counted waiter that may use every CPU.
    numbers: Vec<[u32; 2]>,
    /// The lengths of which the one and the other number is not zero.
    lengths: [Lengths; 2],
    /// The length of the shortest queue.
    least: Option<u32>,
    /// The number of CPUs that are too long now, and the largest difference.
    present: (u32, u32),
    last: Ts,
    ns: u64,
    cpu_ns: u64,
    episodes: u64,
    longest: Vec<UnbalancedEpisode>,
    /// The latest episode: one that begins again at its end goes on.
    latest: Option<EpisodeSpan>,
    /// The beginning of the piece, if this is a later piece of a pass, with the episode that began there.
    border: Option<(Ts, Option<EpisodeSpan>)>,
    /// The number of CPUs with a task that weighs more or less than one of nice 0.
    odd: u32,
    /// The counted waiters by what they compare, while there are such CPUs.
    weights: WaitersByWeight,
}

impl Imbalance {
    pub(crate) fn new(way: usize, zero: Ts) -> Imbalance {
        Imbalance {
            way,
            zero,
            cpus: Vec::new(),
            numbers: Vec::new(),
            lengths: Default::default(),
            least: None,
            present: (0, 0),
            last: Ts(0),
            ns: 0,
            cpu_ns: 0,
            episodes: 0,
            longest: Vec::new(),
            latest: None,
            border: None,
            odd: 0,
            weights: WaitersByWeight::default(),
        }
    }

    /// Begins at the start of a window, or of a later piece.
    pub(crate) fn begin(&mut self, start: Ts) {
        self.last = start;
    }

    /// Goes on as a later piece.
    pub(crate) fn resume(&mut self, at: Ts) {
        self.border = Some((at, None));
    }

    /// Follows an event that concerned some CPUs, whose waiters are in the sets already.
    pub(crate) fn follow(
        &mut self,
        ts: Ts,
        cpus: &[Cpu],
        followed: &FollowedSets,
        load: impl Fn(Cpu) -> Load,
        state: &SchedState,
    ) {
        if state.has_ext_queues() {
            return;
        }
        let sets = &followed.sets;
        let (was_odd, mut changed) = (self.odd > 0, sets.reach().is_some());
        for cpu in cpus {
            changed |= self.settle(*cpu, sets, load(*cpu), state);
        }
        let by_weight = self.odd > 0 || !state.capacities().is_empty();
        if by_weight || (self.weights.is_followed() && !self.weights.is_spared()) {
            self.follow_weights(cpus, followed, (&load, state));
        }
        if by_weight {
            let reach = followed.sets.reach().filter(|_| self.way != ALL);
            let present = self.weights.too_long(reach.map(|reach| (reach, self.way)));
            if present != self.present {
                self.change(ts, present);
            }
        } else if changed || was_odd {
            self.compare(ts, sets);
        }
    }

    fn settle(&mut self, cpu: Cpu, sets: &Sets, load: Load, state: &SchedState) -> bool {
        let waiting = state.queue_length(cpu).min(LONGEST - 1);
        let place = match load {
            Load::Unobserved | Load::Offline | Load::Unknown => None,
            Load::Idle | Load::Unserved => Some(0),
            Load::SwitchPending => Some(waiting),
            Load::Busy | Load::Overloaded => Some(1 + waiting),
        };
        let is_counted = waiting > 0
            && load.runs()
            && match sets.reach() {
                Some(reach) if self.way != ALL => reach.has_free_waiter(cpu, self.way),
                _ => sets.waiters(cpu, self.way) > 0,
            };
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, QueueStanding::default());
        }
        let is_odd = place.is_some() && state.odd_weight(cpu).is_some();
        let standing = QueueStanding { place, runs: load.runs(), is_counted, is_odd };
        let old = std::mem::replace(&mut self.cpus[cpu.index()], standing);
        if old == standing {
            return false;
        }
        self.odd = self.odd + u32::from(is_odd) - u32::from(old.is_odd);
        if let Some(place) = old.place {
            self.number(place, old.is_counted, false);
        }
        if let Some(place) = place {
            self.number(place, is_counted, true);
        }
        true
    }

    /// A waiting task may use other CPUs from now on.
    pub(crate) fn renew(&mut self, task: TaskId, followed: &FollowedSets, state: &SchedState) {
        if self.weights.is_followed() {
            self.weights.renew(task, self.way, followed, state);
        }
    }

    /// Brings what waiters compare up to date, once tasks have differed in weight.
    #[cold]
    #[inline(never)]
    fn follow_weights(
        &mut self,
        cpus: &[Cpu],
        followed: &FollowedSets,
        (load, state): (impl Fn(Cpu) -> Load, &SchedState),
    ) {
        let Imbalance { way, weights, .. } = self;
        if !weights.is_followed() {
            return weights.begin((0..self.cpus.len() as u32).map(Cpu), *way, followed, (load, state));
        }
        let changed = state.spans().iter().map(|span| span.task).chain(state.reweighed().iter().copied());
        changed.for_each(|task| weights.renew(task, *way, followed, state));
        cpus.iter().for_each(|cpu| weights.settle(*cpu, load(*cpu), state));
    }

    fn number(&mut self, place: u32, is_counted: bool, joins: bool) {
        let at = place as usize;
        if at >= self.numbers.len() {
            self.numbers.resize(at + 1, [0; 2]);
        }
        let [all, counted] = &mut self.numbers[at];
        if joins {
            (*all, *counted) = (*all + 1, *counted + u32::from(is_counted));
            self.least = Some(self.least.map_or(place, |least| least.min(place)));
        } else {
            (*all, *counted) = (*all - 1, *counted - u32::from(is_counted));
        }
        // The first one of this length, or the last one.
        let bound = u32::from(joins);
        if is_counted && *counted == bound {
            self.lengths[1].set(at, joins);
        }
        if *all == bound {
            self.lengths[0].set(at, joins);
            if !joins && self.least == Some(place) {
                self.least = self.lengths[0].next(at).map(|length| length as u32);
            }
        }
    }

    /// Finds the CPUs that are too long now.
    fn compare(&mut self, ts: Ts, sets: &Sets) {
        let (mut number, mut difference) = (0, 0);
        if let Some(least) = self.least.filter(|least| *least > 0) {
            let mut from = (least + DIFFERENCE) as usize;
            while let Some(length) = self.lengths[1].next(from) {
                number += self.numbers[length][1];
                (difference, from) = (length as u32 - least, length + 1);
            }
        }
        if let Some(reach) = sets.reach().filter(|_| self.way != ALL) {
            let mut others = CpuSet::default();
            for (_, usable, on) in reach.restricted(self.way) {
                let place = |cpu: Cpu| self.cpus.get(cpu.index())?.place;
                let Some(least) = usable.cpus().filter_map(place).min().filter(|least| *least > 0) else { continue };
                for cpu in on.cpus().filter(|cpu| self.cpus.get(cpu.index()).is_some_and(|queue| queue.runs)) {
                    let more = place(cpu).unwrap_or(0).saturating_sub(least);
                    if more >= DIFFERENCE {
                        others.set(cpu, true);
                        difference = difference.max(more);
                    }
                }
            }
            let is_new = |cpu: &Cpu| {
                let queue = self.cpus[cpu.index()];
                let is_too_long =
                    self.least.zip(queue.place).is_some_and(|(least, place)| least > 0 && place >= least + DIFFERENCE);
                !(queue.is_counted && is_too_long)
            };
            number += others.cpus().filter(is_new).count() as u32;
        }
        if (number, difference) != self.present {
            self.change(ts, (number, difference));
        }
    }

    fn change(&mut self, ts: Ts, (number, difference): (u32, u32)) {
        self.pass(ts);
        let was = std::mem::replace(&mut self.present, (number, difference)).0 > 0;
        match (was, number > 0) {
            (false, true) => self.take(EpisodeSpan { start: ts, end: None, difference }),
            (true, false) => self.latest.iter_mut().for_each(|span| span.end = Some(ts)),
            _ => self.latest.iter_mut().for_each(|span| span.difference = span.difference.max(difference)),
        }
    }

    /// Accounts for the time up to an instant.
    fn pass(&mut self, ts: Ts) {
        let ns = ts.since(self.last).0;
        self.last = ts;
        if self.present.0 > 0 {
            self.ns = self.ns.saturating_add(ns);
            self.cpu_ns = self.cpu_ns.saturating_add(ns.saturating_mul(u64::from(self.present.0)));
        }
    }

    /// Takes the next episode, which goes on with the latest one if it begins where that one ends, or before it has ended.
    fn take(&mut self, span: EpisodeSpan) {
        match &mut self.latest {
            Some(latest) if latest.end.is_none_or(|end| end == span.start) => {
                (latest.end, latest.difference) = (span.end, latest.difference.max(span.difference));
            }
            _ => {
                let before = self.latest.replace(span);
                before.into_iter().for_each(|before| self.keep(before));
            }
        }
    }

    /// Counts an episode that has ended for good.
    fn keep(&mut self, span: EpisodeSpan) {
        let Some(end) = span.end else { return };
        if let Some((_, first)) = self.border.as_mut().filter(|(at, first)| *at == span.start && first.is_none()) {
            *first = Some(span);
            return;
        }
        if end == span.start {
            return;
        }
        self.episodes += 1;
        let start_in_trace_ns = span.start.since(self.zero).0;
        self.keep_longest(UnbalancedEpisode {
            start_in_trace_ns,
            duration_ns: end.since(span.start),
            difference: span.difference,
        });
    }

    fn keep_longest(&mut self, episode: UnbalancedEpisode) {
        let rank = |episode: &UnbalancedEpisode| (Reverse(episode.duration_ns), episode.start_in_trace_ns);
        let at = self.longest.partition_point(|other| rank(other) <= rank(&episode));
        if at < KEPT {
            self.longest.insert(at, episode);
            self.longest.truncate(KEPT);
        }
    }

    /// Adds a later piece.
    pub(crate) fn join(&mut self, later: Imbalance) {
        let (at, first) = later.border.unwrap_or((later.last, None));
        self.pass(at);
        self.ns = self.ns.saturating_add(later.ns);
        self.cpu_ns = self.cpu_ns.saturating_add(later.cpu_ns);
        first.into_iter().chain(later.latest).for_each(|span| self.take(span));
        self.episodes += later.episodes;
        later.longest.into_iter().for_each(|episode| self.keep_longest(episode));
        (self.cpus, self.numbers, self.lengths) = (later.cpus, later.numbers, later.lengths);
        self.least = later.least;
        (self.present, self.last) = (later.present, later.last);
        (self.odd, self.weights) = (later.odd, later.weights);
    }

    /// The report at the end of a window of this length, on a number of CPUs.
    pub(crate) fn finish(mut self, end: Ts, (window, cpus): (u64, usize)) -> Unbalanced {
        self.pass(end);
        if let Some(latest) = self.latest.take() {
            self.keep(EpisodeSpan { end: Some(latest.end.unwrap_or(end)), ..latest });
        }
        Unbalanced {
            ns: self.ns,
            percent: share(self.ns, window),
            cpu_ns: self.cpu_ns,
            cpu_percent: share(self.cpu_ns, window.saturating_mul(cpus as u64)),
            episodes: self.episodes,
            longest: self.longest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any lengths beside a plain list: the next one is the same.
    #[test]
    fn the_next_length_is_that_of_a_list() {
        let (mut lengths, mut list, mut seed) = (Lengths::default(), vec![false; 400], 7_u64);
        for _ in 0..2_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (length, is_in) = ((seed >> 33) as usize % 400, seed >> 62 == 0);
            lengths.set(length, is_in);
            list[length] = is_in;
            let from = (seed >> 40) as usize % 450;
            let next = list.iter().enumerate().skip(from).find(|(_, is_in)| **is_in).map(|(length, _)| length);
            assert_eq!(lengths.next(from), next, "{from}");
        }
    }
}
