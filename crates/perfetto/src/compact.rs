//! Compact switches and wakings: one array for each of their fields.

use crate::ahead::ReadAhead;
use crate::limits;
use crate::wire::{Damaged, Wire, WireContent};
use std::ops::Range;

/// The numbers of the fields of `CompactSched`.
mod field {
    pub(super) const INTERN_TABLE: u32 = 5;
    /// Time, state, PID, priority and place of the name, in this order; then those of wakings: time, PID, CPU, priority, place of the
    /// name, flags of the context.
    pub(super) const SWITCH: [u32; 5] = [1, 2, 3, 4, 6];
    pub(super) const WAKING: [u32; 6] = [7, 8, 9, 10, 11, 12];
}

/// The numbers of one array, read where they are.
#[derive(Debug)]
struct CompactColumn<'s> {
    source: &'s ReadAhead<'s>,
    /// The parts that are left, in the order of the file: packed numbers, or single ones.
    places: std::vec::IntoIter<WireContent>,
    part: Option<Wire<'s>>,
}

impl CompactColumn<'_> {
    /// The next number; nothing at the end.
    fn next(&mut self) -> Result<Option<u64>, Damaged> {
        loop {
            if let Some(part) = self.part.as_mut().filter(|part| part.has_more()) {
                return part.varint().map(Some).ok_or(Damaged);
            }
            match self.places.next() {
                None => return Ok(None),
                Some(WireContent::Number(number)) => return Ok(Some(number)),
                Some(WireContent::Bytes(place)) => self.part = Some(Wire::new(self.source, place)),
            }
        }
    }
}

/// The events of one kind: their times, and the other arrays.
#[derive(Debug)]
struct CompactColumns<'s, const N: usize> {
    columns: [CompactColumn<'s>; N],
    time: u64,
    /// The last columns may be missing.
    required: usize,
}

impl<const N: usize> CompactColumns<'_, N> {
    /// The next event; nothing at the end. Arrays of different lengths are damage.
    fn next(&mut self) -> Result<Option<[u64; N]>, Damaged> {
        let (mut event, mut ended) = ([0; N], 0usize);
        for (place, (column, value)) in self.columns.iter_mut().zip(&mut event).enumerate() {
            match column.next()? {
                Some(number) => *value = number,
                None if place < self.required => ended = ended.saturating_add(1),
                None => {}
            }
        }
        if ended > 0 {
            return if ended == self.required { Ok(None) } else { Err(Damaged) };
        }
        if let Some(time) = event.first_mut() {
            self.time = self.time.wrapping_add(*time);
            *time = self.time;
        }
        Ok(Some(event))
    }
}

/// A compact switch: what a CPU switches to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompactSwitch {
    pub(crate) time: u64,
    pub(crate) prev_state: i64,
    pub(crate) next: CompactTask,
}

/// A compact waking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompactWaking {
    pub(crate) time: u64,
    pub(crate) task: CompactTask,
    pub(crate) target: i64,
    pub(crate) flags: u8,
}

/// A task as compact events name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompactTask {
    pub(crate) pid: i32,
    pub(crate) prio: i32,
    pub(crate) comm: sched::Comm,
}

/// The compact events of a bundle.
#[derive(Debug)]
pub(crate) struct CompactSched<'s> {
    names: Vec<sched::Comm>,
    switches: CompactColumns<'s, 5>,
    wakings: CompactColumns<'s, 6>,
    switch: Option<CompactSwitch>,
    waking: Option<CompactWaking>,
    /// Whether something cannot be read: the events behind it are missing.
    pub(crate) is_damaged: bool,
}

impl<'s> CompactSched<'s> {
    pub(crate) fn new(source: &'s ReadAhead<'s>, place: Option<Range<u64>>) -> CompactSched<'s> {
        let mut names = Vec::new();
        let mut places: [Vec<WireContent>; 13] = Default::default();
        let (mut parts, mut is_damaged) = (0usize, false);
        if let Some(place) = place {
            let (mut wire, mut name) = (Wire::new(source, place), Vec::new());
            loop {
                match wire.field() {
                    Ok(Some((field::INTERN_TABLE, WireContent::Bytes(place)))) if names.len() < limits::NAMES => {
                        // A name has sixteen bytes at most, whatever the text behind them.
                        let place = place.start..place.end.min(place.start.saturating_add(16));
                        is_damaged |= wire.copy(&place, 16, &mut name).is_none();
                        names.push(sched::Comm::new(&name));
                    }
                    Ok(Some((number, content))) => {
                        parts = parts.saturating_add(1);
                        match places.get_mut(number as usize).filter(|_| parts <= limits::PARTS) {
                            Some(places) => places.push(content),
                            None => is_damaged |= parts > limits::PARTS,
                        }
                    }
                    Ok(None) => break,
                    Err(Damaged) => {
                        is_damaged = true;
                        break;
                    }
                }
            }
        }
        let mut column = |number: u32| {
            let places = places.get_mut(number as usize).map(std::mem::take).unwrap_or_default();
            CompactColumn { source, places: places.into_iter(), part: None }
        };
        let switches = CompactColumns { columns: field::SWITCH.map(&mut column), time: 0, required: 5 };
        // Perfetto has the flags since 2023.
        let wakings = CompactColumns { columns: field::WAKING.map(&mut column), time: 0, required: 5 };
        let mut compact = CompactSched { names, switches, wakings, switch: None, waking: None, is_damaged };
        compact.pass_switch();
        compact.pass_waking();
        compact
    }

    fn name(&mut self, place: u64) -> sched::Comm {
        let name = usize::try_from(place).ok().and_then(|place| self.names.get(place));
        self.is_damaged |= name.is_none();
        name.copied().unwrap_or_default()
    }

    /// The next switch.
    pub(crate) fn switch(&self) -> Option<CompactSwitch> {
        self.switch
    }

    pub(crate) fn pass_switch(&mut self) {
        let next = self.switches.next();
        self.is_damaged |= next.is_err();
        self.switch = next.ok().flatten().map(|[time, state, pid, prio, name]| {
            let comm = self.name(name);
            CompactSwitch {
                time,
                prev_state: state.cast_signed(),
                next: CompactTask { pid: pid as i32, prio: prio as i32, comm },
            }
        });
    }

    /// The next waking.
    pub(crate) fn waking(&self) -> Option<CompactWaking> {
        self.waking
    }

    pub(crate) fn pass_waking(&mut self) {
        let next = self.wakings.next();
        self.is_damaged |= next.is_err();
        self.waking = next.ok().flatten().map(|[time, pid, target, prio, name, flags]| {
            let comm = self.name(name);
            CompactWaking {
                time,
                task: CompactTask { pid: pid as i32, prio: prio as i32, comm },
                target: i64::from(target as i32),
                flags: flags as u8,
            }
        });
    }
}
