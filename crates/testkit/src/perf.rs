//! Complete perf.data files.

use crate::{ByteOrder, TraceBuilder};
use sched::{EventKind, SchedEvent};
use std::collections::BTreeMap;

/// The form of a file: the place of its attributes and formats, and the storage of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerfForm {
    /// A file with a header, as `perf record` writes it.
    File,
    /// A stream, as `perf record -o -` writes it.
    Stream,
    /// A file whose records are compressed, as `perf record -z` writes it.
    Compressed,
}

/// A perf.data to be written: tracepoints with time, CPU and raw data, and an event without them.
#[derive(Clone, Debug)]
pub struct PerfBuilder {
    /// The byte order of the file.
    pub order: ByteOrder,
    /// The form of the file.
    pub form: PerfForm,
    /// The number of events in a round.
    pub round: usize,
    /// Whether each task has a ring buffer (`--per-thread`), and not each CPU.
    pub per_thread: bool,
    /// Whether the traced command alone is recorded (without `-a`), and not the machine.
    pub of_command: bool,
    /// Whether the tracepoints were opened twice.
    pub repeated: bool,
    /// The clock (`clockid`), where it is not perf's own.
    pub clock: Option<i32>,
    /// The number of samples lost that the recorder counts at its end.
    pub lost_samples: u64,
    /// The number of ends of rounds, of eight bytes each, behind the records: of a compressed file in one piece, however many.
    pub idle_rounds: usize,
    /// Whether the group of the tracepoints has a counter, `cycles`: [`PerfBuilder::cycles`].
    pub counters: bool,
    /// The cgroup of each PID by its ID and path, where samples have it (`--all-cgroups`); other PIDs are in the root.
    pub cgroups: Vec<(i32, u64, &'static str)>,
}

impl Default for PerfBuilder {
    fn default() -> PerfBuilder {
        PerfBuilder {
            order: ByteOrder::Little,
            form: PerfForm::File,
            round: 64,
            per_thread: false,
            of_command: false,
            repeated: false,
            clock: None,
            lost_samples: 0,
            idle_rounds: 0,
            counters: false,
            cgroups: Vec::new(),
        }
    }
}

/// IP, TID, TIME, CPU, PERIOD, READ, RAW, IDENTIFIER; and the same without READ and RAW.
const SAMPLE: u64 = 1 | 2 | 4 | 1 << 4 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16;
const OTHER: u64 = SAMPLE & !(1 << 4 | 1 << 10);
/// Numbers of the events: the tracepoints', that of the same ones once more, and that of another event.
const IDS: [u64; 3] = [700, 701, 702];
/// The number of the event of the counter.
const COUNTER: u64 = 709;
const ATTR: usize = 136;

impl PerfBuilder {
    fn words(&self, words: &[u64]) -> Vec<u8> {
        let mut out = Vec::new();
        words.iter().for_each(|word| self.order.put(&mut out, *word, 8));
        out
    }

    fn record(&self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.order.put(&mut out, kind.into(), 4);
        self.order.put(&mut out, 0, 2);
        self.order.put(&mut out, 8 + body.len() as u64, 2);
        out.extend(body);
        out
    }

    fn attr(&self, kind: u32, config: u64, sample_type: u64) -> Vec<u8> {
        let mut out = Vec::new();
        self.order.put(&mut out, kind.into(), 4);
        self.order.put(&mut out, ATTR as u64, 4);
        // Values with numbers, in a group.
        out.extend(self.words(&[config, 1, sample_type, 4 | 8]));
        let flags =
            (1u64 << 18 | u64::from(self.of_command) << 12 | u64::from(self.clock.is_some()) << 25).to_le_bytes();
        out.extend(if self.order == ByteOrder::Big { flags.map(u8::reverse_bits) } else { flags });
        out.resize(92, 0);
        self.order.put(&mut out, u64::from(self.clock.unwrap_or(0).cast_unsigned()), 4);
        out.resize(ATTR, 0);
        out
    }

    /// The attributes of all events, each with its numbers.
    fn attrs(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let sample = if self.cgroups.is_empty() { SAMPLE } else { SAMPLE | 1 << 21 };
        let mut attrs = vec![(2, 5, sample, IDS[0]), (1, 9, OTHER, IDS[2])];
        if self.repeated {
            attrs.push((2, 5, sample, IDS[1]));
        }
        if self.counters {
            attrs.push((0, 0, SAMPLE & !(1 << 10), COUNTER));
        }
        let both = |(kind, config, sample, id)| (self.attr(kind, config, sample), self.words(&[id]));
        attrs.into_iter().map(both).collect()
    }

    fn cpu(&self, cpu: u32) -> Vec<u8> {
        let mut out = Vec::new();
        self.order.put(&mut out, cpu.into(), 4);
        self.order.put(&mut out, 0, 4);
        out
    }

    /// The value of the counter beside an event: three cycles a nanosecond, and some that another CPU has not.
    pub fn cycles(&self, event: &SchedEvent) -> u64 {
        3 * event.ts.0 as u64 + 7 * u64::from(event.cpu.0)
    }

    fn sample(&self, id: u64, event: &SchedEvent, raw: &[u8]) -> Vec<u8> {
        let mut body = self.words(&[id, 0xffff_8000]);
        let task = if self.cgroups.is_empty() { 0 } else { event.pid.0.unsigned_abs().into() };
        // Each task is a process.
        self.order.put(&mut body, task, 4);
        self.order.put(&mut body, task, 4);
        body.extend(self.words(&[event.ts.0 as u64]));
        body.extend(self.cpu(event.cpu.0));
        body.extend(self.words(&[1, 2, 11, id, self.cycles(event), COUNTER]));
        let padded = (raw.len() + 4).next_multiple_of(8) - 4;
        self.order.put(&mut body, padded as u64, 4);
        body.extend(raw);
        body.resize(body.len() + padded - raw.len(), 0);
        if !self.cgroups.is_empty() {
            let cgroup = self.cgroups.iter().find(|(pid, ..)| *pid == event.pid.0).map_or(1, |(_, id, _)| *id);
            body.extend(self.words(&[cgroup]));
        }
        self.record(9, &body)
    }

    /// The records of an event in the buffer of its CPU.
    fn records(&self, layout: &crate::KernelLayout, event: &SchedEvent) -> Vec<u8> {
        let raw = match event.kind {
            EventKind::Lost { count } => {
                let mut body =
                    self.words(&[IDS[2], count.map_or(0, sched::LostCount::number), 0, event.ts.0 as u64 + 50]);
                body.extend(self.cpu(event.cpu.0));
                body.extend(self.words(&[IDS[2]]));
                return self.record(2, &body);
            }
            EventKind::Offline => return Vec::new(),
            EventKind::Stack { id } | EventKind::Probe { id, .. } | EventKind::Other { id } => {
                layout.bare(id, event.pid.0)
            }
            _ => layout.payload(event).expect("an event that can be written"),
        };
        let mut out = self.sample(IDS[0], event, &raw);
        if self.repeated {
            out.extend(self.sample(IDS[1], event, &raw));
        }
        out
    }

    /// The data of all rounds: in each, the buffer of one CPU or task after the other.
    fn rounds(&self, trace: &TraceBuilder, events: &[SchedEvent]) -> Vec<u8> {
        let (layout, mut out) = (trace.layout(), Vec::new());
        for (_, id, path) in &self.cgroups {
            let mut body = self.words(&[*id]);
            body.extend(path.bytes());
            body.resize((body.len() + 1).next_multiple_of(8), 0);
            body.extend(self.words(&[0, 0]));
            body.extend(self.cpu(0));
            body.extend(self.words(&[IDS[0]]));
            out.extend(self.record(19, &body));
        }
        for round in events.chunks(self.round.max(1)) {
            let mut buffers: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
            for event in round {
                let buffer = if self.per_thread { event.pid.0.into() } else { event.cpu.0.into() };
                buffers.entry(buffer).or_default().extend(self.records(&layout, event));
            }
            // A sample of the other event, in no tracepoint's layout.
            let mut other = self.words(&[IDS[2], 1, 0, 1]);
            other.extend(self.cpu(0));
            other.extend(self.words(&[1]));
            out.extend(self.record(9, &other));
            out.extend(buffers.into_values().flatten());
            out.extend(self.record(68, &[]));
        }
        if self.lost_samples > 0 {
            let mut body = self.words(&[self.lost_samples, 0, 0]);
            body.extend(self.cpu(0));
            body.extend(self.words(&[IDS[0]]));
            out.extend(self.record(13, &body));
        }
        // A task's name.
        let mut name = Vec::new();
        self.order.put(&mut name, 4242, 4);
        self.order.put(&mut name, 4243, 4);
        name.extend(b"late\0\0\0\0");
        out.extend(self.record(3, &name));
        out
    }

    /// The records as pieces of one zstd stream, none of which ends where a record does.
    fn compressed(&self, plain: &[u8]) -> Vec<u8> {
        use zstd::stream::raw::{Encoder, InBuffer, Operation, OutBuffer};
        let mut encoder = Encoder::new(1).expect("an encoder");
        let mut out = Vec::new();
        let idle = self.record(68, &[]).repeat(self.idle_rounds);
        let room = 8000 + self.idle_rounds / 10;
        for piece in plain.chunks(3001).chain((!idle.is_empty()).then_some(&idle[..])) {
            let (mut input, mut space) = (InBuffer::around(piece), vec![0; room]);
            let mut output = OutBuffer::around(space.as_mut_slice());
            encoder.run(&mut input, &mut output).expect("compressed");
            encoder.flush(&mut output).expect("flushed");
            assert_eq!(input.pos(), piece.len());
            out.extend(self.record(81, output.as_slice()));
        }
        out
    }

    fn text(&self, text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let padded = (text.len() + 1).next_multiple_of(64);
        self.order.put(&mut out, padded as u64, 4);
        out.extend(text.bytes());
        out.resize(4 + padded, 0);
        out
    }

    /// The names of the events, each with its attributes and numbers.
    fn descriptions(&self) -> Vec<u8> {
        let (attrs, mut out) = (self.attrs(), Vec::new());
        self.order.put(&mut out, attrs.len() as u64, 4);
        self.order.put(&mut out, ATTR as u64, 4);
        for (attr, ids) in attrs {
            let is_counter = ids == self.words(&[COUNTER]);
            out.extend(attr);
            self.order.put(&mut out, ids.len() as u64 / 8, 4);
            out.extend(self.text(if is_counter { "cycles" } else { "another" }));
            out.extend(ids);
        }
        out
    }

    /// The other parts of the header by their numbers: host, kernel, perf, architecture, CPUs, command line, nodes.
    fn features(&self, trace: &TraceBuilder) -> Vec<(u64, Vec<u8>)> {
        let number = |numbers: &[u64]| {
            let mut out = Vec::new();
            numbers.iter().for_each(|number| self.order.put(&mut out, *number, 4));
            out
        };
        let cpus = u64::from(trace.cpu_count);
        let node = [number(&[0, 0, 1, 0, 1]), self.text(&format!("0-{}", cpus.max(1) - 1))].concat();
        vec![
            (3, self.text("secret-host")),
            (4, self.text(trace.age.release())),
            (5, self.text("6.12.1")),
            (6, self.text("x86_64")),
            (7, number(&[cpus, cpus])),
            (11, [number(&[2]), self.text("perf"), self.text("record")].concat()),
            (12, self.descriptions()),
            (14, [number(&[1]), node].concat()),
        ]
    }

    /// Returns the bytes of a file with these events, which are in trace order; formats, CPUs and names are those of
    /// `trace`.
    pub fn build(&self, trace: &TraceBuilder, events: &[SchedEvent]) -> Vec<u8> {
        let rounds = self.rounds(trace, events);
        let formats = trace.tracing_data();
        let mut out = self.words(&[u64::from_le_bytes(*b"PERFILE2")]);
        if self.form == PerfForm::Stream {
            out.extend(self.words(&[16]));
            for (attr, ids) in self.attrs() {
                out.extend(self.record(64, &[attr, ids].concat()));
            }
            for (number, body) in self.features(trace) {
                out.extend(self.record(80, &[self.words(&[number]), body].concat()));
            }
            let mut size = Vec::new();
            self.order.put(&mut size, formats.len() as u64, 4);
            self.order.put(&mut size, 0, 4);
            out.extend(self.record(66, &size));
            out.extend(&formats);
            out.resize(out.len() + formats.len().next_multiple_of(8) - formats.len(), 0);
            out.extend(rounds);
            return out;
        }
        let data = if self.form == PerfForm::Compressed { self.compressed(&rounds) } else { rounds };
        let attrs = self.attrs();
        let (header, entry) = (104u64, ATTR as u64 + 16);
        let attrs_at = header + 8 * attrs.len() as u64;
        let data_at = attrs_at + entry * attrs.len() as u64;
        let mut features = self.features(trace);
        features.insert(0, (1, formats));
        let bits = features.iter().fold(0u64, |bits, (number, _)| bits | 1 << number);
        let (attrs_size, data_size) = (entry * attrs.len() as u64, data.len() as u64);
        out.extend(self.words(&[header, entry, attrs_at, attrs_size, data_at, data_size, 0, 0, bits, 0, 0, 0]));
        attrs.iter().for_each(|(_, ids)| out.extend(ids));
        for (nth, (attr, _)) in attrs.iter().enumerate() {
            out.extend(attr);
            out.extend(self.words(&[header + 8 * nth as u64, 8]));
        }
        out.extend(data);
        let mut at = out.len() as u64 + 16 * features.len() as u64;
        for (_, body) in &features {
            out.extend(self.words(&[at, body.len() as u64]));
            at += body.len() as u64;
        }
        features.iter().for_each(|(_, body)| out.extend(body));
        out
    }
}
