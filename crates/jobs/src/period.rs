//! The period of a task, by the intervals between its releases.

use crate::ended::EndedJob;
use sched::Dur;

/// The least number of intervals between releases that show a period.
const INTERVALS: usize = 8;

/// The part of the median interval that the middle half of the intervals may differ by, where they are even: 1 / this.
const EVEN: u64 = 5;

/// The width of a window of intervals, as a part of the shortest interval in it: 1 / this.
const WIDTH: u64 = 20;

/// The least number of intervals in the window of a mode.
const LEAST_OF_MODE: usize = 10;

/// The least part of all intervals in the window of a mode: 1 / this.
const LEAST_PART: usize = 20;

/// The number of windows on each side of a mode with which it is compared.
const BESIDE: u64 = 3;

/// The number of standard deviations by which a mode exceeds the windows beside it.
const SIGMAS: f64 = 5.0;

/// The number of intervals in the windows beside a mode that counts at least, since the deviation of a smaller one is not known.
const LEAST_BESIDE: f64 = 4.0;

/// The least part of the time from the first release to the last that the period of all jobs covers: 1 / this.
const LEAST_COVERED: u64 = 10;

/// The largest part of a mode that is looked for: a task that runs through its next releases is released at multiples of its period.
const MULTIPLES: u64 = 4;

/// The least part of the intervals in the window of a mode that a part of the mode has, if that is the period: 1 / this.
const PART_OF_MODE: usize = 4;

/// The period of a task with these jobs, in the order of their ends; none where the task is not periodic.
pub(crate) fn period(jobs: &[EndedJob]) -> Option<Dur> {
    let interval = |pair: &[EndedJob]| pair[1].release.since(pair[0].release).0;
    let mut all: Vec<u64> = jobs.windows(2).map(interval).collect();
    all.sort_unstable();
    if all.len() < INTERVALS {
        return None;
    }
    let mut by_timers: Vec<u64> = jobs.windows(2).filter(|pair| pair[1].by_interrupt).map(interval).collect();
    by_timers.sort_unstable();
    // Few naps of one length, as in a loop that waits for something, are no period.
    let time = all.iter().copied().fold(0, u64::saturating_add);
    let covers = |period: &u64| period.saturating_mul(all.len() as u64).saturating_mul(LEAST_COVERED) >= time;
    mode(&by_timers).or_else(|| even(&all)).filter(covers).map(Dur)
}

/// The value that `many` of every `of` values do not exceed, by the nearest rank among sorted ones.
pub(crate) fn rank(sorted: &[u64], many: usize, of: usize) -> Option<u64> {
    let place = (sorted.len() * many).div_ceil(of).max(1) - 1;
    sorted.get(place).copied()
}

/// The median of sorted intervals, if they are even.
fn even(sorted: &[u64]) -> Option<u64> {
    let [low, median, high] = [1, 2, 3].map(|quarters| rank(sorted, quarters, 4));
    median.filter(|median| *median > 0 && high.unwrap_or(0) - low.unwrap_or(0) <= median / EVEN)
}

/// A window of sorted intervals, from one of them to that and 1 / [`WIDTH`] of it.
struct IntervalWindow<'i> {
    sorted: &'i [u64],
    /// The places of the first interval, and behind the last one.
    from: usize,
    to: usize,
}

impl<'i> IntervalWindow<'i> {
    /// The window that begins with the interval at a place.
    fn at(sorted: &'i [u64], from: usize) -> IntervalWindow<'i> {
        let end = sorted[from].saturating_add(sorted[from] / WIDTH);
        IntervalWindow { sorted, from, to: sorted.partition_point(|interval| *interval <= end) }
    }

    fn number(&self) -> usize {
        self.to - self.from
    }

    /// The mean number of intervals in a window of the same width beside this one, on the side with the more of them.
    fn beside(&self) -> f64 {
        let start = self.sorted[self.from];
        let width = start / WIDTH;
        let below = self.sorted.partition_point(|interval| *interval < start.saturating_sub(BESIDE * width));
        let above = self.sorted.partition_point(|interval| *interval <= start.saturating_add((BESIDE + 1) * width));
        (self.from - below).max(above - self.to) as f64 / BESIDE as f64
    }

    /// Whether the window has more intervals than chance gives it among those beside it.
    fn stands_out(&self) -> bool {
        let beside = self.beside();
        self.number() >= LEAST_OF_MODE
            && self.number() * LEAST_PART >= self.sorted.len()
            && self.number() as f64 - beside >= SIGMAS * beside.max(LEAST_BESIDE).sqrt()
    }

    fn median(&self) -> Option<u64> {
        rank(&self.sorted[self.from..self.to], 1, 2)
    }

    /// The window with the most intervals among those that begin at these places: of several the one with the shortest intervals.
    fn densest(sorted: &'i [u64], places: std::ops::Range<usize>) -> Option<IntervalWindow<'i>> {
        let windows = places.filter(|place| sorted[*place] > 0).map(|place| IntervalWindow::at(sorted, place));
        windows.reduce(|densest, window| if window.number() > densest.number() { window } else { densest })
    }
}

/// The interval at which most of the sorted ones lie, if that stands out, or a part of it.
fn mode(sorted: &[u64]) -> Option<u64> {
    let densest = IntervalWindow::densest(sorted, 0..sorted.len())?;
    let median = densest.median()?;
    let part = |parts: u64| {
        let expected = median / parts;
        let from = sorted.partition_point(|interval| *interval < expected - expected / WIDTH);
        let to = sorted.partition_point(|interval| *interval <= expected + expected / WIDTH);
        let window = IntervalWindow::densest(sorted, from..to)?;
        (window.number() * PART_OF_MODE >= densest.number() && window.stands_out()).then_some(window)
    };
    let period = (2..=MULTIPLES).rev().find_map(part).unwrap_or(densest);
    period.median().filter(|_| period.stands_out())
}
