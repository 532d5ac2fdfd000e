//! A trace for Perfetto: the scheduler's events, from which Perfetto draws its own lanes of CPUs and states of threads, and
//! tracks of ours beside them.
//!
//! Packets are written as they come. They are not in order of time, which Perfetto does not need: it sorts them.

mod ftrace;
mod message;

use crate::output::Sink;
use message::Message;
use sched::{Analysis, Cause, ChosenCpus, Cpu, Current, EventKind, Pid, SchedEvent, SchedState, TaskRef, Ts};
use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use workcons::ListedEpisode;

/// Bytes of a CPU's events that are gathered in a packet.
const BUNDLE: usize = 32 << 10;

/// Bytes that are gathered before they are written.
const BUFFER: usize = 1 << 16;

/// The fields of a packet.
mod packet {
    pub(super) const FTRACE_EVENTS: u32 = 1;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const SYSTEM_INFO: u32 = 45;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
}

/// The field of an event of a track that names the flows through it: arrows from each event of a flow to its next one.
const FLOWS: u32 = 47;

/// The migrations that an episode is linked to, the first ones in it; and the latest ones among which they are found.
const LINKED: usize = 16;
const RECENT: usize = 1024;

/// The flow of a migration: its time and its task are mixed, since both events that it leads through know these alone.
fn flow(ts: Ts, pid: Pid) -> u64 {
    let mixed = ts.0.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(pid.0.cast_unsigned());
    mixed.wrapping_mul(0xff51_afd7_ed55_8ccd)
}

/// The tracks by their numbers; those of CPUs and causes begin at these.
mod track {
    pub(super) const ROOT: u64 = 1;
    pub(super) const VIOLATION: u64 = 2;
    pub(super) const RUNNING: u64 = 3;
    pub(super) const WAITING: u64 = 4;
    pub(super) const QUEUES: u64 = 5;
    pub(super) const MIGRATIONS: u64 = 6;
    pub(super) const CAUSES: u64 = 100;
    pub(super) const CPUS: u64 = 1000;
}

/// The types of the events of a track.
mod kind {
    pub(super) const BEGIN: u64 = 1;
    pub(super) const END: u64 = 2;
    pub(super) const INSTANT: u64 = 3;
    pub(super) const COUNTER: u64 = 4;
}

/// The events of a CPU that wait for their packet.
#[derive(Default)]
struct Bundle {
    events: Message,
    lost: bool,
}

struct Writer {
    out: Box<dyn Sink>,
    buffer: Vec<u8>,
    bundles: Vec<Bundle>,
    /// The first error; nothing is written behind it.
    failed: Option<io::Error>,
    /// The causes whose tracks are described.
    causes: [bool; Cause::ALL.len()],
    /// The latest migrations, by time and task.
    recent: VecDeque<(Ts, Pid)>,
}

impl Writer {
    fn flush(&mut self) {
        if self.failed.is_none()
            && let Err(error) = self.out.write_all(&self.buffer)
        {
            self.failed = Some(error);
        }
        self.buffer.clear();
    }

    fn packet(&mut self, fill: impl FnOnce(&mut Message)) {
        let mut trace = Message::default();
        trace.message(1, fill);
        self.buffer.extend_from_slice(trace.bytes());
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
    }

    fn bundle(&mut self, cpu: Cpu) -> &mut Bundle {
        if cpu.index() >= self.bundles.len() {
            self.bundles.resize_with(cpu.index() + 1, Bundle::default);
        }
        &mut self.bundles[cpu.index()]
    }

    fn event(&mut self, cpu: Cpu, event: &Message) {
        let bundle = self.bundle(cpu);
        bundle.events.put(2, event.bytes());
        if bundle.events.len() >= BUNDLE {
            self.close(cpu);
        }
    }

    /// Writes the events of a CPU that were gathered.
    fn close(&mut self, cpu: Cpu) {
        let Bundle { events, lost } = self.bundle(cpu);
        let (events, lost) = (std::mem::take(events), std::mem::take(lost));
        if events.is_empty() {
            return;
        }
        self.packet(|packet| {
            packet.message(packet::FTRACE_EVENTS, |bundle| {
                bundle.number(1, cpu.0.into());
                bundle.append(&events);
                if lost {
                    bundle.number(3, 1);
                }
            });
        });
    }

    fn describe(&mut self, uuid: u64, parent: Option<u64>, name: &str, counter: bool) {
        self.packet(|packet| {
            packet.number(packet::SEQUENCE, 1);
            packet.message(packet::TRACK_DESCRIPTOR, |track| {
                track.number(1, uuid);
                track.text(2, name);
                if let Some(parent) = parent {
                    track.number(5, parent);
                }
                if counter {
                    track.message(8, |_| {});
                }
            });
        });
    }

    fn track_event(&mut self, ts: Ts, track: u64, kind: u64, fill: impl FnOnce(&mut Message)) {
        self.packet(|packet| {
            packet.number(packet::TIMESTAMP, ts.0.max(0).cast_unsigned());
            packet.number(packet::SEQUENCE, 1);
            packet.message(packet::TRACK_EVENT, |event| {
                event.number(9, kind);
                event.number(11, track);
                fill(event);
            });
        });
    }

    fn counter(&mut self, ts: Ts, track: u64, value: u32) {
        self.track_event(ts, track, kind::COUNTER, |event| event.number(30, value.into()));
    }
}

/// Adds a number that the viewer shows with an event.
fn note(event: &mut Message, name: &str, value: u64) {
    event.message(4, |note| {
        note.text(10, name);
        note.number(3, value);
    });
}

/// Adds a text that the viewer shows with an event.
fn note_text(event: &mut Message, name: &str, value: &str) {
    event.message(4, |note| {
        note.text(10, name);
        note.text(6, value);
    });
}

/// A trace in Perfetto's format that is written.
pub struct Perfetto {
    writer: Mutex<Writer>,
    /// The name and the release of the kernel, by which Perfetto decodes the states of tasks.
    kernel: String,
}

impl Perfetto {
    /// Writes to this file a trace of a kernel of this release.
    pub fn new(out: Box<dyn Sink>, kernel: &str) -> Perfetto {
        let writer = Writer {
            out,
            buffer: Vec::with_capacity(BUFFER),
            bundles: Vec::new(),
            failed: None,
            causes: Default::default(),
            recent: VecDeque::new(),
        };
        Perfetto { writer: Mutex::new(writer), kernel: kernel.to_owned() }
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes all packets: the pass is made once more.
    pub fn restart(&self) {
        let mut writer = self.writer();
        writer.buffer.clear();
        writer.bundles.clear();
        writer.causes = Default::default();
        writer.recent.clear();
        if let Err(error) = writer.out.cut(0) {
            writer.failed.get_or_insert(error);
        }
    }

    /// Adds an episode in which work conservation was violated, linked to the migrations in it, the one that ends it
    /// among them.
    pub fn episode(&self, listed: &ListedEpisode) {
        let mut writer = self.writer();
        let episode = &listed.episode;
        let end = episode.start.after(episode.duration);
        let within = writer.recent.iter().filter(|(ts, _)| *ts > episode.start && *ts <= end);
        let flows: Vec<u64> = within.take(LINKED).map(|(ts, pid)| flow(*ts, *pid)).collect();
        writer.track_event(episode.start, track::VIOLATION, kind::BEGIN, |event| {
            event.text(23, "violation");
            note(event, "cpu_time_lost_ns", episode.cpu_time_lost_ns);
            note(event, "thread_ns", episode.thread_ns);
            if let Some(distance) = listed.nearest {
                note_text(event, "distance", &format!("{distance:?}").to_lowercase());
            }
            flows.iter().for_each(|flow| event.fixed(FLOWS, *flow));
        });
        writer.track_event(end, track::VIOLATION, kind::END, |_| {});
    }

    /// Adds a migration of a task.
    pub fn migration(&self, m: &events::ListedMigration) {
        let mut writer = self.writer();
        let track = track::CAUSES + m.cause as u64;
        if !std::mem::replace(&mut writer.causes[m.cause as usize], true) {
            writer.describe(track, Some(track::MIGRATIONS), m.cause.name(), false);
        }
        writer.track_event(m.ts_ns, track, kind::INSTANT, |event| {
            event.text(23, &m.pid.named(m.command));
            note(event, "pid", m.pid.0.max(0).cast_unsigned().into());
            note(event, "from_cpu", m.from_cpu.0.into());
            note(event, "to_cpu", m.to_cpu.0.into());
            if let Some(until) = m.until_run_ns {
                note(event, "until_run_ns", until.0);
            }
            event.fixed(FLOWS, flow(m.ts_ns, m.pid));
        });
    }

    /// Completes the file, and puts it in its place.
    pub fn finish(self) -> io::Result<()> {
        let mut writer = self.writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        for cpu in (0..writer.bundles.len() as u32).map(Cpu) {
            writer.close(cpu);
        }
        writer.flush();
        if let Some(error) = writer.failed {
            return Err(error);
        }
        writer.out.flush()?;
        writer.out.finish()
    }
}

/// Writes the events of the chosen CPUs, and the number of running and waiting tasks. Its output is the number of events
/// that Perfetto has no form for.
pub struct PerfettoEvents<'o> {
    file: &'o Perfetto,
    cpus: ChosenCpus,
    running: Option<u32>,
    waiting: Option<u32>,
    /// The length of the run queue of each CPU, as written last.
    queues: Vec<Option<u32>>,
    others: u64,
}

impl<'o> PerfettoEvents<'o> {
    /// An analysis that writes to this file.
    pub fn new(file: &'o Perfetto, cpus: ChosenCpus) -> PerfettoEvents<'o> {
        PerfettoEvents { file, cpus, running: None, waiting: None, queues: Vec::new(), others: 0 }
    }

    /// Writes the counters that have changed.
    fn count(&mut self, ts: Ts, state: &SchedState, cpus: &[Cpu]) {
        let mut writer = self.file.writer();
        let counts = state.counts();
        if self.running.replace(counts.running()) != Some(counts.running()) {
            writer.counter(ts, track::RUNNING, counts.running());
        }
        if self.waiting.replace(counts.waiting) != Some(counts.waiting) {
            writer.counter(ts, track::WAITING, counts.waiting);
        }
        for cpu in cpus.iter().filter(|cpu| self.cpus.has(**cpu)) {
            if cpu.index() >= self.queues.len() {
                self.queues.resize(cpu.index() + 1, None);
            }
            let (known, length) = (&mut self.queues[cpu.index()], state.queue_length(*cpu));
            let track = track::CPUS + u64::from(cpu.0);
            if known.is_none() {
                writer.describe(track, Some(track::QUEUES), &format!("CPU {cpu}"), true);
            }
            if known.replace(length) != Some(length) {
                writer.counter(ts, track, length);
            }
        }
    }
}

impl Analysis for PerfettoEvents<'_> {
    type Output = u64;
    const COUNTS: bool = true;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        let mut writer = self.file.writer();
        let (name, release) = self.file.kernel.split_once(' ').unwrap_or(("Linux", &self.file.kernel));
        writer.packet(|packet| {
            packet.number(packet::SEQUENCE, 1);
            // The state of this sequence begins here.
            packet.number(packet::SEQUENCE_FLAGS, 1);
            packet.message(packet::SYSTEM_INFO, |system| {
                system.message(1, |utsname| {
                    utsname.text(1, name);
                    utsname.text(3, release);
                });
            });
        });
        writer.describe(track::ROOT, None, "schedviz", false);
        writer.describe(track::VIOLATION, Some(track::ROOT), "Work conservation violated", false);
        writer.describe(track::RUNNING, Some(track::ROOT), "Running tasks", true);
        writer.describe(track::WAITING, Some(track::ROOT), "Waiting tasks", true);
        writer.describe(track::QUEUES, Some(track::ROOT), "Waiting tasks by CPU", false);
        writer.describe(track::MIGRATIONS, Some(track::ROOT), "Migrations by cause", false);
        let cpus: Vec<Cpu> = state.observed().collect();
        // Perfetto shows a task from its switch on: one that runs already gets a switch at the start.
        for cpu in cpus.iter().copied().filter(|cpu| self.cpus.has(*cpu)) {
            if let (Current::Task(_), Some(task)) = (state.current(cpu), state.running(cpu)) {
                let next = TaskRef { pid: task.pid, prio: task.known_prio().unwrap_or(120), comm: task.comm };
                writer.event(cpu, &ftrace::switch_from_idle(cpu, start.0, next));
            }
        }
        drop(writer);
        self.count(start, state, &cpus);
    }

    fn before(&mut self, event: &SchedEvent, _: &SchedState) {
        if let EventKind::Migrate { task, orig, dest } = event.kind
            && (self.cpus.has(orig) || self.cpus.has(dest))
        {
            let mut writer = self.file.writer();
            if writer.recent.len() >= RECENT {
                writer.recent.pop_front();
            }
            writer.recent.push_back((event.ts, task.pid));
        }
        if !self.cpus.has(event.cpu) {
            return;
        }
        let mut writer = self.file.writer();
        match event.kind {
            EventKind::Lost { .. } => {
                // The mark belongs to the first event behind the gap.
                writer.close(event.cpu);
                writer.bundle(event.cpu).lost = true;
            }
            EventKind::Offline => {}
            _ => match ftrace::put(event) {
                Some(message) => writer.event(event.cpu, &message),
                None => self.others += 1,
            },
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        if !state.spans().is_empty() || !state.cpu_spans().is_empty() {
            self.count(event.ts, state, state.touched());
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> u64 {
        self.others
    }
}
