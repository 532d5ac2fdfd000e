//! The values of counters that `perf record -e '{sched:sched_switch,cycles,cache-misses}:S'` stores with each switch.

use crate::units::PerfUnits;
use sched::counters::CounterStretch;
use sched::event::CleanText;
use sched::seeded::SeededMap;
use sched::{Counters, Cpu, Ts};
use std::sync::Arc;

/// The counters of a file.
#[derive(Debug)]
pub(crate) struct PerfCounters {
    pub(crate) units: Arc<PerfUnits>,
    pub(crate) names: Vec<CleanText>,
    /// The numbers of the counters' events, each with the place of the counter.
    pub(crate) places: SeededMap<u64, usize>,
}

impl Counters for PerfCounters {
    fn names(&self) -> &[CleanText] {
        &self.names
    }

    fn stretch(&self, cpu: Cpu, at: Ts) -> CounterStretch {
        let mut readings = Vec::new();
        let (endian, count) = (self.units.endian(), self.names.len());
        let times = u64::try_from(at.0).ok().and_then(|time| {
            self.units.counts_at(cpu.0, time, &mut |layout, sample| {
                let reading = layout.reading(sample.counts, endian, count, |id| self.places.get(&id).copied());
                readings.extend(reading.map(|reading| (Ts(sample.time.cast_signed()), reading)));
            })
        });
        readings.sort_by_key(|(time, _)| *time);
        let ts = |time: u64| Ts(i64::try_from(time).unwrap_or(i64::MAX));
        CounterStretch { readings, times: times.map(|times| ts(*times.start())..=ts(*times.end())) }
    }
}
