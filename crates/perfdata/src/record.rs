//! One record: its kind and size, and the layout of samples, which the attributes of the events choose.
//!
//! `linux/perf_event.h` and perf's `lib/perf/include/perf/event.h` define the kinds and layouts.

use crate::bytes::Bytes;
use parse::Endian;
use sched::counters::Reading;

/// The kinds of records that are read.
pub(crate) mod kind {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    pub(crate) const SWITCH: u32 = 14;
    pub(crate) const SWITCH_CPU_WIDE: u32 = 15;
    pub(crate) const CGROUP: u32 = 19;
    /// Here the recorder's own kinds begin.
    pub(crate) const USER: u32 = 64;
    pub(crate) const ATTR: u32 = 64;
    pub(crate) const TRACING_DATA: u32 = 66;
    pub(crate) const FINISHED_ROUND: u32 = 68;
    pub(crate) const AUXTRACE: u32 = 71;
    pub(crate) const FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    pub(crate) const COMPRESSED2: u32 = 83;
}

/// Bits of `sample_type`.
mod bit {
    pub(crate) const IP: u64 = 1;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDR: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
    /// Parts between the raw data and the cgroup: those of varying length, and those of eight bytes.
    pub(crate) const OF_VARYING_LENGTH: u64 = 1 << 11 | 1 << 12 | 1 << 13 | 1 << 18;
    pub(crate) const OF_EIGHT_BYTES: u64 = 1 << 14 | 1 << 15 | 1 << 17 | 1 << 19 | 1 << 24;
    pub(crate) const CGROUP: u64 = 1 << 21;
}

/// Bits of `read_format`.
mod read {
    pub(super) const ENABLED: u64 = 1;
    pub(super) const RUNNING: u64 = 1 << 1;
    pub(super) const ID: u64 = 1 << 2;
    pub(super) const GROUP: u64 = 1 << 3;
    pub(super) const LOST: u64 = 1 << 4;
}

/// The first eight bytes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHead {
    pub(crate) kind: u32,
    pub(crate) misc: u16,
    /// Bytes of the record, these eight among them.
    pub(crate) size: usize,
}

impl RecordHead {
    pub(crate) const SIZE: usize = 8;

    /// The head at the start of `bytes`. A record shorter than its head is none.
    #[inline]
    pub(crate) fn of(bytes: &[u8], endian: Endian) -> Option<RecordHead> {
        let mut bytes = Bytes::new(bytes, endian);
        let (kind, misc, size) = (bytes.u32()?, bytes.u16()?, bytes.u16()?.into());
        (size >= RecordHead::SIZE).then_some(RecordHead { kind, misc, size })
    }
}

/// The layout of an event's samples, from its `perf_event_attr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SampleLayout {
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    /// Records other than samples end in the time and the CPU as well.
    pub(crate) sample_id_all: bool,
}

/// The parts of a sample that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PerfSample<'r> {
    pub(crate) time: u64,
    pub(crate) cpu: u32,
    /// The process of the current task; zero where samples do not have it.
    pub(crate) process: u32,
    /// The counter values, as `read_format` lays them out; empty where there are none.
    pub(crate) counts: &'r [u8],
    /// The addresses of the call chain, 8 bytes each; empty where there is none.
    pub(crate) chain: &'r [u8],
    /// The tracepoint's record as ftrace has it, padded; empty for another kind of event.
    pub(crate) raw: &'r [u8],
}

/// The end of a record that is no sample. Parts that the layout lacks are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub(crate) time: Option<u64>,
    pub(crate) cpu: Option<u32>,
    pub(crate) task: Option<u32>,
}

impl SampleLayout {
    fn has(&self, bits: u64) -> bool {
        self.sample_type & bits == bits
    }

    /// Whether samples have a call chain.
    pub(crate) fn has_chain(&self) -> bool {
        self.has(bit::CALLCHAIN)
    }

    /// Returns the task of a sample and the ID of its cgroup, from the bytes behind the sample's head; `None` where the layout has
    /// none, or parts of varying length before it.
    pub(crate) fn cgroup(&self, body: &[u8], endian: Endian) -> Option<(u32, u64)> {
        if !self.has(bit::CGROUP | bit::TID | bit::RAW) || self.sample_type & bit::OF_VARYING_LENGTH != 0 {
            return None;
        }
        let before = [bit::IDENTIFIER, bit::IP].into_iter().filter(|bits| self.has(*bits)).count();
        let mut at = Bytes::new(body.get(before.checked_mul(8)?..)?, endian);
        let (_process, task) = (at.u32()?, at.u32()?);
        let mut behind = self.parts(body, endian)?.1;
        let parts = (self.sample_type & bit::OF_EIGHT_BYTES).count_ones() as usize;
        behind.take(parts.checked_mul(8)?)?;
        Some((task, behind.u64()?))
    }

    /// Whether samples have the cgroup of their task.
    pub(crate) fn has_cgroup(&self) -> bool {
        self.has(bit::CGROUP)
    }

    /// Whether samples have what the events of a trace need.
    pub(crate) fn is_usable(&self) -> bool {
        self.has(bit::TIME | bit::CPU | bit::RAW)
    }

    /// Returns the offset of the event's number in a sample, behind the head, and its distance from the end of any
    /// other record, in bytes.
    pub(crate) fn id_places(&self) -> Option<(usize, usize)> {
        if self.has(bit::IDENTIFIER) {
            return Some((0, 8));
        }
        let before = [bit::IP, bit::TID, bit::TIME, bit::ADDR].into_iter().filter(|bits| self.has(*bits)).count();
        let behind = [bit::STREAM_ID, bit::CPU].into_iter().filter(|bits| self.has(*bits)).count();
        self.has(bit::ID).then_some((before.saturating_mul(8), behind.saturating_add(1).saturating_mul(8)))
    }

    /// A sample, from the bytes behind its head; `None` if it is shorter than its parts.
    #[inline]
    pub(crate) fn sample<'r>(&self, body: &'r [u8], endian: Endian) -> Option<PerfSample<'r>> {
        Some(self.parts(body, endian)?.0)
    }

    /// A sample, with the bytes behind its raw data.
    #[inline]
    fn parts<'r>(&self, body: &'r [u8], endian: Endian) -> Option<(PerfSample<'r>, Bytes<'r>)> {
        let mut bytes = Bytes::new(body, endian);
        let mut sample = PerfSample { time: 0, cpu: 0, process: 0, counts: &[], chain: &[], raw: &[] };
        for bits in [bit::IDENTIFIER, bit::IP] {
            if self.has(bits) {
                bytes.take(8)?;
            }
        }
        if self.has(bit::TID) {
            sample.process = bytes.u32()?;
            bytes.take(4)?;
        }
        if self.has(bit::TIME) {
            sample.time = bytes.u64()?;
        }
        for bits in [bit::ADDR, bit::ID, bit::STREAM_ID] {
            if self.has(bits) {
                bytes.take(8)?;
            }
        }
        if self.has(bit::CPU) {
            sample.cpu = bytes.u32()?;
            bytes.take(4)?;
        }
        if self.has(bit::PERIOD) {
            bytes.take(8)?;
        }
        if self.has(bit::READ) {
            sample.counts = self.counts(&mut bytes)?;
        }
        if self.has(bit::CALLCHAIN) {
            let frames = usize::try_from(bytes.u64()?).ok()?;
            sample.chain = bytes.take(frames.checked_mul(8)?)?;
        }
        if self.has(bit::RAW) {
            let length = bytes.u32()? as usize;
            sample.raw = bytes.take(length)?;
        }
        Some((sample, bytes))
    }

    /// The bytes of the counter values of a sample (`read_format`).
    fn counts<'r>(&self, bytes: &mut Bytes<'r>) -> Option<&'r [u8]> {
        let is = |flag: u64| self.read_format & flag != 0;
        let (times, group) = (usize::from(is(read::ENABLED)) + usize::from(is(read::RUNNING)), is(read::GROUP));
        let each = 1 + usize::from(is(read::ID)) + usize::from(is(read::LOST));
        let values = if group { usize::try_from(bytes.clone().u64()?).ok()? } else { 1 };
        let words = values.checked_mul(each)?.checked_add(times)?.checked_add(usize::from(group))?;
        bytes.take(words.checked_mul(8)?)
    }

    /// Whether samples have the values of a group of counters, each with the number of its event.
    pub(crate) fn has_group(&self) -> bool {
        self.has(bit::READ) && self.read_format & (read::GROUP | read::ID) == read::GROUP | read::ID
    }

    /// The values of a group of counters, each at the place that `place` has for the number of its event; `None` unless
    /// all places up to `count` have one.
    pub(crate) fn reading(
        &self,
        counts: &[u8],
        endian: Endian,
        count: usize,
        place: impl Fn(u64) -> Option<usize>,
    ) -> Option<Reading> {
        if !self.has_group() {
            return None;
        }
        let mut bytes = Bytes::new(counts, endian);
        let values = bytes.u64()?;
        let mut reading = Reading::default();
        if self.read_format & read::ENABLED != 0 {
            reading.enabled = bytes.u64()?;
        }
        if self.read_format & read::RUNNING != 0 {
            reading.running = bytes.u64()?;
        }
        let mut filled = 0usize;
        for _ in 0..values {
            let (value, id) = (bytes.u64()?, bytes.u64()?);
            if self.read_format & read::LOST != 0 {
                bytes.u64()?;
            }
            if let Some(slot) = place(id).and_then(|place| reading.values.get_mut(place)) {
                *slot = value;
                filled = filled.saturating_add(1);
            }
        }
        // The time on the processor means nothing without the time wanted.
        if self.read_format & read::ENABLED == 0 || self.read_format & read::RUNNING == 0 {
            (reading.enabled, reading.running) = (0, 0);
        }
        (filled == count).then_some(reading)
    }

    /// The task, the time and the CPU at the end of a record that is no sample.
    pub(crate) fn trailer(&self, body: &[u8], endian: Endian) -> Trailer {
        if !self.sample_id_all {
            return Trailer::default();
        }
        let parts = [bit::TID, bit::TIME, bit::ID, bit::STREAM_ID, bit::CPU, bit::IDENTIFIER];
        let length = 8 * parts.into_iter().filter(|bits| self.has(*bits)).count();
        let Some(mut bytes) = body.len().checked_sub(length).and_then(|at| body.get(at..)) else {
            return Trailer::default();
        };
        let mut trailer = Trailer::default();
        for bits in parts.into_iter().filter(|bits| self.has(*bits)) {
            let (word, rest) = bytes.split_at_checked(8).unwrap_or_default();
            bytes = rest;
            let mut word = Bytes::new(word, endian);
            match bits {
                bit::TID => trailer.task = word.u32().and_then(|_process| word.u32()),
                bit::TIME => trailer.time = word.u64(),
                bit::CPU => trailer.cpu = word.u32(),
                _ => {}
            }
        }
        trailer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_sample_with_counts_and_a_callchain() {
        let all = bit::IDENTIFIER
            | bit::IP
            | bit::TID
            | bit::TIME
            | bit::ADDR
            | bit::ID
            | bit::STREAM_ID
            | bit::CPU
            | bit::PERIOD
            | bit::READ
            | bit::CALLCHAIN
            | bit::RAW;
        // A group of two values with numbers and losses, and both times.
        let layout = SampleLayout { sample_type: all, read_format: 1 | 2 | 4 | 8 | 16, sample_id_all: true };
        let mut body = words(&[1, 2, 3, 777, 5, 6, 7, 9, 10, 2, 11, 12, 13, 14, 15, 16, 17, 18, 2, 19, 20]);
        body.extend_from_slice(b"\x04\0\0\0abcd");
        let sample = layout.sample(&body, Endian::Little).unwrap();
        assert_eq!((sample.time, sample.cpu, sample.raw), (777, 9, b"abcd".as_slice()));
        assert_eq!(sample.chain, words(&[19, 20]));
        let reading = |place: fn(u64) -> Option<usize>| layout.reading(sample.counts, Endian::Little, 2, place);
        let expected = Reading { values: [16, 13, 0, 0, 0, 0, 0, 0], enabled: 11, running: 12 };
        assert_eq!(reading(|id| [17, 14].iter().position(|known| *known == id)), Some(expected));
        assert_eq!(reading(|id| (id == 14).then_some(0)), None, "a counter without a value");
        assert_eq!(layout.id_places(), Some((0, 8)));
        for cut in 0..body.len() {
            assert_eq!(layout.sample(&body[..cut], Endian::Little), None, "cut at {cut}");
        }
        // Counts that no record can hold.
        let layout = SampleLayout { sample_type: bit::READ, read_format: 8 | 4, sample_id_all: false };
        assert_eq!(layout.sample(&words(&[u64::MAX, 1, 2]), Endian::Little), None);
        let layout = SampleLayout { sample_type: bit::CALLCHAIN, ..SampleLayout::default() };
        assert_eq!(layout.sample(&words(&[u64::MAX / 8]), Endian::Little), None);
    }

    #[test]
    fn the_cgroup_stands_behind_the_raw_data() {
        let sample_type =
            bit::IDENTIFIER | bit::IP | bit::TID | bit::TIME | bit::CPU | bit::RAW | bit::CGROUP | 1 << 14 | 1 << 19;
        let layout = SampleLayout { sample_type, ..SampleLayout::default() };
        let mut body = words(&[1, 2, 77 << 32 | 70, 555, 3]);
        body.extend_from_slice(b"\x04\0\0\0abcd");
        body.extend(words(&[8, 9, 4711]));
        assert_eq!(layout.cgroup(&body, Endian::Little), Some((77, 4711)));
        for cut in 0..body.len() {
            assert_eq!(layout.cgroup(&body[..cut], Endian::Little), None, "cut at {cut}");
        }
        let with_stack = SampleLayout { sample_type: sample_type | 1 << 13, ..layout };
        assert_eq!(with_stack.cgroup(&body, Endian::Little), None, "a part of unknown length before it");
    }

    #[test]
    fn a_trailer_is_read_from_the_end() {
        let layout = SampleLayout {
            sample_type: bit::TID | bit::TIME | bit::CPU | bit::IDENTIFIER,
            read_format: 0,
            sample_id_all: true,
        };
        let body = words(&[99, 98, 1, 555, 3, 42]);
        assert_eq!(layout.trailer(&body, Endian::Little), Trailer { time: Some(555), cpu: Some(3), task: Some(0) });
        assert_eq!(layout.trailer(&body[..24], Endian::Little), Trailer::default());
        let without = SampleLayout { sample_id_all: false, ..layout };
        assert_eq!(without.trailer(&body, Endian::Little), Trailer::default());
    }

    #[test]
    fn a_record_is_no_shorter_than_its_head() {
        let head = |size: u8| RecordHead::of(&[9, 0, 0, 0, 1, 0, size, 0], Endian::Little);
        assert_eq!(head(8), Some(RecordHead { kind: 9, misc: 1, size: 8 }));
        assert_eq!((head(7), RecordHead::of(&[9; 7], Endian::Little)), (None, None));
        assert_eq!(
            RecordHead::of(&[0, 0, 0, 9, 0, 1, 0, 16], Endian::Big),
            Some(RecordHead { kind: 9, misc: 1, size: 16 })
        );
    }
}
