//! Announces to the kernel the parts of the file that will be read soon.

use super::Trace;
use crate::ring::unit::CpuPages;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// A step: the number of bytes of a CPU that are asked for at once.
const STEP: u64 = 128 << 10;

/// Number of steps ahead of a CPU's data that are asked for, where lanes are merged.
pub(super) const AHEAD: usize = 3;

impl Trace {
    /// Announces that these lanes are going to be merged, each from a unit of it on. Returns whether any begins in its
    /// middle: there the kernel reads no further than the program asks for (see [`Trace::reads`]).
    pub(crate) fn will_read_lanes(&self, lanes: &[(usize, &CpuPages, usize)]) -> bool {
        let from_middle = lanes.iter().any(|(.., first)| *first > 0);
        if from_middle {
            lanes.iter().for_each(|(_, pages, first)| self.will_read_from(pages, *first, AHEAD));
        }
        from_middle
    }

    /// The units from `first` on are going to be read one after the other: asks for the first ones, and for so
    /// many steps ahead.
    pub(crate) fn will_read_from(&self, pages: &CpuPages, first: usize, steps: usize) {
        let step = pages.units_in(STEP);
        self.will_read(pages, first..first.saturating_add(step.saturating_mul(steps.saturating_add(1))));
    }

    /// Announces that this unit is being read. At the start of a step, the kernel is asked to read the step that is
    /// `steps` ahead.
    pub(crate) fn reads(&self, pages: &CpuPages, unit: usize, steps: usize) {
        let step = pages.units_in(STEP);
        if unit.checked_rem(step) == Some(0) {
            let soon = unit.saturating_add(step.saturating_mul(steps));
            self.will_read(pages, soon..soon.saturating_add(step));
        }
    }

    fn will_read(&self, pages: &CpuPages, units: Range<usize>) {
        let place = pages.places(units);
        self.source.will_read(place.start, place.end.saturating_sub(place.start));
    }

    /// A unit has been read.
    pub(crate) fn count_read(&self, pages: &CpuPages, unit: usize) {
        // The first of several pieces of a chunk counts.
        if !pages.is_continued(unit) {
            let place = pages.place(unit);
            self.read.fetch_add(place.end.saturating_sub(place.start), Ordering::Relaxed);
        }
    }
}
