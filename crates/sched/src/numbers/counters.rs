//! Values of counters, such as processor cycles and cache misses, that a recorder reads at the switches of each CPU.

use crate::event::{CleanText, Cpu, Ts};
use crate::tables::seeded::SeededMap;
use std::fmt;
use std::ops::RangeInclusive;

/// Maximum number of counters of a recording that are followed.
pub const COUNTERS: usize = 8;

/// A number for each counter, in the order of their names. The entries beyond the number of counters are zero.
pub type PerCounter = [u64; COUNTERS];

/// The values of all counters of a CPU at one instant, counted from some instant before the recording's first event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The value of each counter.
    pub values: PerCounter,
    /// The time in nanoseconds for which the counters were enabled. Zero, as is `running`, if it was not recorded.
    pub enabled: u64,
    /// The time in nanoseconds for which the counters were on the processor; they share it with others if there are too
    /// many.
    pub running: u64,
}

impl Reading {
    /// Returns the counts since an earlier reading on the same CPU; `None` if the counters were not on the processor,
    /// or if a value steps back. If they were there for a part of the time, the counts are scaled up, as perf does.
    pub fn since(&self, earlier: &Reading) -> Option<PerCounter> {
        let enabled = self.enabled.checked_sub(earlier.enabled)?;
        let running = self.running.checked_sub(earlier.running)?;
        if enabled > 0 && running == 0 {
            return None;
        }
        let mut counts = PerCounter::default();
        for (count, (now, then)) in counts.iter_mut().zip(self.values.iter().zip(&earlier.values)) {
            let counted = now.checked_sub(*then)?;
            let scaled = u128::from(counted) * u128::from(enabled.max(1)) / u128::from(running.max(1));
            *count = if running < enabled { u64::try_from(scaled).ok()? } else { counted };
        }
        Some(counts)
    }
}

/// Consecutive readings of a CPU, complete within an interval of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterStretch {
    /// The readings in the order of time.
    pub readings: Vec<(Ts, Reading)>,
    /// The interval that the stretch covers: the CPU has no other readings within it. `None` if it covers nothing.
    pub times: Option<RangeInclusive<Ts>>,
}

/// A recording with values of counters, read on demand.
///
/// An implementation is called from the threads that analyse the recording. It may keep what it has read, but must
/// return the same values at each call.
pub trait Counters: fmt::Debug + Send + Sync {
    /// The names of the counters, at most [`COUNTERS`] of them, in the order of [`PerCounter`]. Always the same.
    fn names(&self) -> &[CleanText];

    /// Reads a stretch of readings of `cpu` that covers the instant `at`. [`Readings`] calls it whenever the stretch
    /// that it holds of the CPU does not cover an instant, so a stretch should cover many readings. Returns an empty
    /// stretch if the CPU has no readings there, or if they cannot be read; it must not panic.
    fn stretch(&self, cpu: Cpu, at: Ts) -> CounterStretch;
}

/// A cache of the readings of a recording: it finds them by CPU and time, and holds one stretch for each CPU.
#[derive(Debug)]
pub struct Readings<'c> {
    counters: &'c dyn Counters,
    held: SeededMap<Cpu, CounterStretch>,
}

impl<'c> Readings<'c> {
    /// Makes an empty cache in front of these counters.
    pub fn of(counters: &'c dyn Counters) -> Readings<'c> {
        Readings { counters, held: SeededMap::default() }
    }

    /// The names of the counters, in the order of [`PerCounter`].
    pub fn names(&self) -> &'c [CleanText] {
        self.counters.names()
    }

    /// Returns the reading of `cpu` at exactly this instant, if there is one. Instants that ascend on each CPU read
    /// each stretch once.
    pub fn at(&mut self, cpu: Cpu, at: Ts) -> Option<Reading> {
        let stretch = self.held.entry(cpu).or_default();
        if !stretch.times.as_ref().is_some_and(|times| times.contains(&at)) {
            *stretch = self.counters.stretch(cpu, at);
        }
        let nth = stretch.readings.binary_search_by_key(&at, |(time, _)| *time).ok()?;
        stretch.readings.get(nth).map(|(_, reading)| *reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn reading(value: u64, enabled: u64, running: u64) -> Reading {
        Reading { values: [value, 0, 0, 0, 0, 0, 0, 0], enabled, running }
    }

    #[test]
    fn counts_are_scaled_by_the_time_on_the_processor() {
        let counted = |from, to: Reading| to.since(&from).map(|counts| counts[0]);
        assert_eq!(counted(reading(5, 0, 0), reading(12, 0, 0)), Some(7), "without times");
        assert_eq!(counted(reading(5, 100, 100), reading(12, 300, 300)), Some(7));
        assert_eq!(counted(reading(5, 100, 100), reading(12, 300, 200)), Some(14), "half of the time");
        assert_eq!(counted(reading(5, 100, 100), reading(5, 300, 100)), None, "not on the processor");
        assert_eq!(counted(reading(5, 0, 0), reading(4, 0, 0)), None, "it steps back");
        assert_eq!(counted(reading(0, 0, 0), reading(u64::MAX, 100, 1)), None, "too large");
        assert_eq!(counted(reading(5, 100, 100), reading(6, 100, 100)), Some(1), "no time passed");
    }

    /// Stretches of 100 ns with a reading every 10 ns, of CPU 0 up to 1000 ns.
    #[derive(Debug, Default)]
    struct Tens(AtomicUsize);

    impl Counters for Tens {
        fn names(&self) -> &[CleanText] {
            &[]
        }

        fn stretch(&self, cpu: Cpu, at: Ts) -> CounterStretch {
            self.0.fetch_add(1, Ordering::Relaxed);
            let first = at.0 / 100 * 100;
            if cpu != Cpu(0) || first >= 1000 {
                return CounterStretch::default();
            }
            let readings = (first..first + 100).step_by(10).map(|ts| (Ts(ts), reading(ts as u64, 0, 0))).collect();
            CounterStretch { readings, times: Some(Ts(first)..=Ts(first + 99)) }
        }
    }

    #[test]
    fn readings_are_found_by_their_exact_time() {
        let tens = Tens::default();
        let mut readings = Readings::of(&tens);
        let mut at = |cpu, ts| readings.at(Cpu(cpu), Ts(ts)).map(|reading| reading.values[0]);
        assert_eq!((at(0, 110), at(0, 111), at(0, 190), at(0, 199)), (Some(110), None, Some(190), None));
        assert_eq!(tens.0.load(Ordering::Relaxed), 1, "one stretch has them all");
        assert_eq!((at(0, 550), at(0, 20), at(1, 20), at(0, 2000)), (Some(550), Some(20), None, None));
    }
}
