//! The tiles that show the events of a trace apart from one another.
//!
//! Two neighbouring events are apart on the levels whose columns have them in different columns. A finer level shows no
//! more of them, so that an exported folder needs, of each place, the levels down to the coarsest on which its events are
//! apart.

use sched::{Analysis, SchedEvent, SchedState, Ts};

/// The tiles that are needed to show the events apart, found from the events in order of time.
#[derive(Clone, Debug)]
pub(crate) struct Apart {
    zero: Ts,
    /// The power of two that is the number of columns of a tile.
    shift: u32,
    /// The finest and the coarsest level.
    levels: (u32, u32),
    /// The time of the latest event.
    last: Option<u64>,
    /// The places of the tiles of each level, ascending; the finest level comes first.
    places: Vec<Vec<u64>>,
    /// The number of events.
    events: u64,
}

impl Apart {
    /// No tiles yet, of these levels. Times count from `zero`; `shift` is the power of two that is the number of
    /// columns of a tile.
    pub(crate) fn new(zero: Ts, shift: u32, levels: (u32, u32)) -> Apart {
        let count = levels.1.saturating_sub(levels.0) as usize + 1;
        Apart { zero, shift, levels, last: None, places: vec![Vec::new(); count], events: 0 }
    }

    /// Takes in an event at this time, in nanoseconds from `zero`, not before the last one.
    fn event(&mut self, at: u64) {
        self.events += 1;
        let Some(last) = self.last.replace(at).filter(|last| *last < at) else { return };
        // The highest bit in which both times differ: on coarser levels one column has both.
        let level = (at ^ last).ilog2();
        self.need(level, last);
        self.need(level, at);
    }

    /// The tile of this level that has this time is needed, and with it those around it on coarser levels.
    fn need(&mut self, level: u32, at: u64) {
        let (finest, coarsest) = self.levels;
        for level in level.max(finest)..=coarsest {
            let place = at.checked_shr(level + self.shift).unwrap_or(0);
            let Some(places) = self.places.get_mut((level - finest) as usize) else { return };
            if places.last() == Some(&place) {
                return;
            }
            places.push(place);
        }
    }

    /// The tiles of both; the levels of `other` begin with finer ones and end with the same.
    pub(crate) fn and(self, mut other: Apart) -> Apart {
        let finer = self.levels.0.saturating_sub(other.levels.0) as usize;
        for (own, places) in self.places.into_iter().zip(other.places.iter_mut().skip(finer)) {
            places.extend(own);
            places.sort_unstable();
            places.dedup();
        }
        other.events = self.events;
        other
    }

    /// The number of events of the trace.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// The places of the tiles of a level that are needed; on the coarsest level all.
    pub(crate) fn of_level(&self, level: u32) -> &[u64] {
        let at = level.checked_sub(self.levels.0).map(|at| at as usize);
        at.and_then(|at| self.places.get(at)).map_or(&[], Vec::as_slice)
    }

    /// The finest level of which a tile is needed.
    pub(crate) fn finest(&self) -> u32 {
        (self.levels.0..self.levels.1).find(|level| !self.of_level(*level).is_empty()).unwrap_or(self.levels.1)
    }
}

impl Analysis for Apart {
    type Output = Apart;

    fn after(&mut self, event: &SchedEvent, _: &SchedState) {
        self.event(event.ts.since(self.zero).0);
    }

    fn finish(mut self, _: Ts, _: &SchedState) -> Apart {
        if let Some(places) = self.places.last_mut().filter(|places| places.is_empty()) {
            places.push(0);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_the_levels_down_to_that_on_which_its_events_are_apart() {
        let (shift, levels) = (2, (3, 12));
        let mut random = 1u64;
        let mut times = vec![0u64];
        while times.len() < 300 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Most are far apart, some within a column of the finest level.
            let gap = (random >> 33) & if random >> 60 < 3 { 7 } else { 255 };
            times.push(times[times.len() - 1] + gap);
        }
        times.retain(|at| *at < 1 << (levels.1 + shift));
        let mut apart = Apart::new(Ts(0), shift, levels);
        times.iter().for_each(|at| apart.event(*at));
        for level in levels.0..=levels.1 {
            let length = 1u64 << (level + shift);
            for place in 0..=times[times.len() - 1] / length {
                // By the definition: a tile is needed if one column of the next coarser level has two events that are not at
                // one instant, of which one is in the tile; or if a finer tile within it is needed.
                let is_needed_by_itself = times.windows(2).any(|pair| {
                    let (a, b) = (pair[0], pair[1]);
                    let differ = a < b && a >> (level + 1) == b >> (level + 1);
                    differ && (a / length == place || b / length == place)
                });
                let finer = level > levels.0 && apart.of_level(level - 1).iter().any(|finer| finer / 2 == place);
                let at_least = level == levels.1 || is_needed_by_itself || finer;
                assert_eq!(apart.of_level(level).contains(&place), at_least, "level {level}, place {place}");
            }
            assert!(apart.of_level(level).is_sorted_by(|a, b| a < b), "level {level}");
        }
        assert_eq!(apart.finest(), 3);
    }
}
