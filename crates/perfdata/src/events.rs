//! The events that the recorder opened (`perf_event_attr`), and which of them a record belongs to.

use crate::bytes::Bytes;
use crate::limits;
use crate::record::SampleLayout;
use parse::Endian;
use sched::counters::COUNTERS;
use sched::event::CleanText;
use sched::seeded::SeededMap;

/// The value of `PERF_TYPE_TRACEPOINT` in `perf_event_attr`.
const TRACEPOINT: u32 = 2;

/// The attributes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attr {
    kind: u32,
    config: u64,
    layout: SampleLayout,
    /// The clock of its times, where it is not perf's own.
    clock: Option<i32>,
    /// Whether the event counts from the exec of the traced command on, and is inherited: the recording is of that
    /// command alone.
    is_of_command: bool,
    /// An event before it is of the same tracepoint: its samples are those of the other once more.
    is_repeated: bool,
}

/// The events of a file, by the numbers that its samples name them with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    attrs: Vec<Attr>,
    by_id: SeededMap<u64, u32>,
    /// Samples of tracepoints differ in their layouts, or some are repeated: each needs its event.
    differ: bool,
    beyond: u64,
    /// The names that the recorder gave to the events, in their order.
    names: Vec<CleanText>,
}

impl Events {
    /// Adds an event, from the bytes of its `perf_event_attr`; returns its place, or `None` if it is none or too many.
    pub(crate) fn add(&mut self, attr: &[u8], endian: Endian) -> Option<usize> {
        if self.attrs.len() >= limits::ATTRS {
            self.beyond = self.beyond.saturating_add(1);
            return None;
        }
        let mut attr = parse(attr, endian)?;
        attr.is_repeated = attr.kind == TRACEPOINT
            && self.attrs.iter().any(|other| other.kind == TRACEPOINT && other.config == attr.config);
        let first = self.attrs.first().map_or(attr.layout, |first| first.layout);
        self.differ |= attr.is_repeated || attr.layout != first;
        self.attrs.push(attr);
        self.attrs.len().checked_sub(1)
    }

    /// The event at this place has these numbers, eight bytes each.
    pub(crate) fn add_ids(&mut self, place: usize, ids: &[u8], endian: Endian) {
        let mut ids = Bytes::new(ids, endian);
        while let Some(id) = ids.u64() {
            if self.by_id.len() >= limits::IDS {
                self.beyond = self.beyond.saturating_add(1);
                return;
            }
            self.by_id.insert(id, place as u32);
        }
    }

    /// Takes the names of the events from a part of the header (`HEADER_EVENT_DESC`): their number, the size of each one's
    /// attributes, and for each event its attributes, the number of its numbers, its name, and its numbers.
    pub(crate) fn add_names(&mut self, bytes: &[u8], endian: Endian) -> Option<()> {
        let mut bytes = Bytes::new(bytes, endian);
        let (count, attr_size) = (bytes.u32()? as usize, bytes.u32()? as usize);
        for _ in 0..count.min(limits::ATTRS) {
            bytes.take(attr_size)?;
            let ids = bytes.u32()? as usize;
            self.names.push(bytes.text()?);
            bytes.take(ids.checked_mul(8)?)?;
        }
        Some(())
    }

    /// The counters that samples of tracepoints have values of, each with the place of its event.
    fn counters(&self) -> impl Iterator<Item = (usize, &Attr)> {
        let events = self.attrs.iter().enumerate();
        events.filter(|(_, attr)| attr.kind != TRACEPOINT && attr.layout.has_group())
    }

    /// The names of the counters, at most as many as are followed, and whether there are more.
    pub(crate) fn counter_names(&self) -> (Vec<CleanText>, bool) {
        let name = |(place, attr): (usize, &Attr)| match self.names.get(place) {
            Some(name) if self.names.len() == self.attrs.len() => name.clone(),
            _ => format!("event {}:{:#x}", attr.kind, attr.config).into(),
        };
        (self.counters().take(COUNTERS).map(name).collect(), self.counters().nth(COUNTERS).is_some())
    }

    /// Whether samples of any event have a call chain.
    pub(crate) fn have_chains(&self) -> bool {
        self.attrs.iter().any(|attr| attr.layout.has_chain())
    }

    /// The numbers of the counters' events, each with the place of the counter among their names.
    pub(crate) fn counter_places(&self) -> SeededMap<u64, usize> {
        let of_event: SeededMap<u32, usize> =
            self.counters().take(COUNTERS).enumerate().map(|(place, (event, _))| (event as u32, place)).collect();
        self.by_id.iter().filter_map(|(id, event)| Some((*id, *of_event.get(event)?))).collect()
    }

    /// Returns the number of events, and of numbers of events, that exceed the limits and are left out.
    pub(crate) fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Whether any event is a tracepoint, and whether the samples of one have time, CPU and the event's fields.
    pub(crate) fn tracepoints(&self) -> (bool, bool) {
        let tracepoints = || self.attrs.iter().filter(|attr| attr.kind == TRACEPOINT);
        (tracepoints().next().is_some(), tracepoints().any(|attr| attr.layout.is_usable()))
    }

    /// Whether the tracepoints are those of the traced command's tasks alone, not of the machine.
    pub(crate) fn are_of_command(&self) -> bool {
        let mut tracepoints = self.attrs.iter().filter(|attr| attr.kind == TRACEPOINT).peekable();
        tracepoints.peek().is_some() && tracepoints.all(|attr| attr.is_of_command)
    }

    /// The name of the clock, as trace-cmd names clocks.
    pub(crate) fn clock(&self) -> String {
        let clock = self.attrs.iter().find_map(|attr| attr.clock);
        match clock {
            None => "perf".to_owned(),
            Some(0) => "realtime".to_owned(),
            Some(1) => "mono".to_owned(),
            Some(4) => "mono_raw".to_owned(),
            Some(7) => "boot".to_owned(),
            Some(11) => "tai".to_owned(),
            Some(other) => format!("clock {other}"),
        }
    }

    /// The layout of a sample, and whether it is that of a repeated event.
    #[inline]
    pub(crate) fn of_sample(&self, body: &[u8], endian: Endian) -> Option<(SampleLayout, bool)> {
        if !self.differ {
            return self.attrs.first().map(|attr| (attr.layout, false));
        }
        let at = self.attrs.first()?.layout.id_places().map(|(front, _)| front);
        self.by_number(at.and_then(|at| body.get(at..)), endian)
    }

    /// The layout of what stands at the end of a record that is no sample.
    pub(crate) fn of_other(&self, body: &[u8], endian: Endian) -> Option<SampleLayout> {
        let places = self.attrs.first()?.layout.id_places().filter(|_| self.differ);
        let id = places.and_then(|(_, back)| body.get(body.len().checked_sub(back)?..));
        self.by_number(id, endian).map(|(layout, _)| layout)
    }

    /// Returns the layout of the event whose number is at the start of `bytes`, and whether it repeats another. Records
    /// without a number are the first event's.
    fn by_number(&self, bytes: Option<&[u8]>, endian: Endian) -> Option<(SampleLayout, bool)> {
        let number = bytes.and_then(|bytes| Bytes::new(bytes, endian).u64());
        let place = number.and_then(|number| self.by_id.get(&number)).map_or(0, |place| *place as usize);
        self.attrs.get(place).map(|attr| (attr.layout, attr.is_repeated))
    }
}

fn parse(bytes: &[u8], endian: Endian) -> Option<Attr> {
    const ENABLE_ON_EXEC: u32 = 12;
    const SAMPLE_ID_ALL: u32 = 18;
    const USE_CLOCKID: u32 = 25;
    let mut head = Bytes::new(bytes, endian);
    let kind = head.u32()?;
    let _size = head.u32()?;
    let (config, _period) = (head.u64()?, head.u64()?);
    let (sample_type, read_format) = (head.u64()?, head.u64()?);
    // Bit fields are laid out from the other end on big-endian machines, byte for byte.
    let raw: [u8; 8] = *head.take(8)?.first_chunk()?;
    let flags = u64::from_le_bytes(if endian == Endian::Big { raw.map(u8::reverse_bits) } else { raw });
    let is = |bit: u32| flags >> bit & 1 == 1;
    let clock = bytes.get(92..).and_then(|rest| Bytes::new(rest, endian).u32()).map(u32::cast_signed);
    let layout = SampleLayout { sample_type, read_format, sample_id_all: is(SAMPLE_ID_ALL) };
    let clock = clock.filter(|_| is(USE_CLOCKID));
    Some(Attr { kind, config, layout, clock, is_of_command: is(ENABLE_ON_EXEC), is_repeated: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An attribute with IDENTIFIER, TIME, CPU and RAW, of a tracepoint, on the monotonic clock.
    fn attr(endian: Endian, config: u64, sample_type: u64) -> Vec<u8> {
        let big = endian == Endian::Big;
        let word = |value: u64| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let half = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let flags = (1u64 << 18 | 1 << 25).to_le_bytes();
        let flags = if big { flags.map(u8::reverse_bits) } else { flags };
        let mut bytes = [half(TRACEPOINT), half(136)].concat();
        for value in [config, 1, sample_type, 0] {
            bytes.extend_from_slice(&word(value));
        }
        bytes.extend_from_slice(&flags);
        bytes.resize(92, 0);
        bytes.extend_from_slice(&half(1));
        bytes.resize(136, 0);
        bytes
    }

    const USUAL: u64 = 1 << 16 | 1 << 2 | 1 << 7 | 1 << 10;

    #[test]
    fn either_byte_order() {
        for endian in [Endian::Little, Endian::Big] {
            let parsed = parse(&attr(endian, 77, USUAL), endian).unwrap();
            assert_eq!((parsed.kind, parsed.config, parsed.clock), (TRACEPOINT, 77, Some(1)));
            assert!(parsed.layout.sample_id_all && parsed.layout.is_usable());
        }
        assert_eq!(parse(&[0; 47], Endian::Little), None);
    }

    #[test]
    fn a_tracepoint_that_was_opened_twice_is_repeated() {
        let mut events = Events::default();
        for (config, id) in [(5u64, 100u64), (6, 101), (5, 102)] {
            let place = events.add(&attr(Endian::Little, config, USUAL), Endian::Little).unwrap();
            events.add_ids(place, &id.to_le_bytes(), Endian::Little);
        }
        let repeated = |id: u64| events.of_sample(&id.to_le_bytes(), Endian::Little).unwrap().1;
        assert_eq!([repeated(100), repeated(101), repeated(102)], [false, false, true]);
        assert_eq!((events.tracepoints(), events.clock().as_str()), ((true, true), "mono"));
    }

    #[test]
    fn layouts_go_by_the_number() {
        let mut events = Events::default();
        let other = USUAL | 1 << 1;
        for (config, sample_type) in [(5, USUAL), (6, other)] {
            let place = events.add(&attr(Endian::Little, config, sample_type), Endian::Little).unwrap();
            events.add_ids(place, &config.to_le_bytes(), Endian::Little);
        }
        let body = [6u64, 1, 2, 6].map(u64::to_le_bytes).concat();
        assert_eq!(events.of_sample(&body, Endian::Little).map(|(layout, _)| layout.sample_type), Some(other));
        assert_eq!(events.of_other(&body, Endian::Little).map(|layout| layout.sample_type), Some(other));
        assert_eq!(events.of_sample(&5u64.to_le_bytes(), Endian::Little).unwrap().0.sample_type, USUAL);
    }
}
