//! The packets of a trace for Perfetto, in the order of the steps that they are made of.

use super::ListedTask;
use super::ftrace;
use super::message::Message;
use super::records::EventRun;
use crate::output::Sink;
use path::Path;
use sched::{Cause, Cpu, Pid, TaskRef, Ts};
use std::collections::VecDeque;
use std::io;
use workcons::ListedEpisode;

/// Bytes of a CPU's events that are gathered in a packet.
const BUNDLE: usize = 32 << 10;

/// Bytes that are gathered before they are written.
const BUFFER: usize = 1 << 16;

/// The fields of a packet.
mod packet {
    pub(super) const FTRACE_EVENTS: u32 = 1;
    pub(super) const PROCESS_TREE: u32 = 2;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const FTRACE_STATS: u32 = 34;
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
pub(super) mod track {
    use sched::Cpu;

    pub(super) const ROOT: u64 = 1;
    pub(super) const VIOLATION: u64 = 2;
    pub(in crate::perfetto) const RUNNING: u64 = 3;
    pub(in crate::perfetto) const WAITING: u64 = 4;
    pub(super) const QUEUES: u64 = 5;
    pub(super) const MIGRATIONS: u64 = 6;
    pub(super) const PATH: u64 = 7;
    pub(super) const CAUSES: u64 = 100;
    const CPUS: u64 = 1000;

    /// The track of the run queue of a CPU.
    pub(in crate::perfetto) fn of_queue(cpu: Cpu) -> u64 {
        CPUS + u64::from(cpu.0)
    }
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

pub(super) struct Writer {
    out: Box<dyn Sink>,
    buffer: Message,
    bundles: Vec<Bundle>,
    /// The first error; nothing is written behind it.
    failed: Option<io::Error>,
    /// The causes whose tracks are described.
    causes: [bool; Cause::ALL.len()],
    /// The latest migrations, by time and task.
    recent: VecDeque<(Ts, Pid)>,
    /// The number of events without a format.
    others: u64,
}

impl Writer {
    fn flush(&mut self) {
        if self.failed.is_none()
            && let Err(error) = self.out.write_all(self.buffer.bytes())
        {
            self.failed = Some(error);
        }
        self.buffer.clear();
    }

    fn packet(&mut self, fill: impl FnOnce(&mut Message)) {
        self.buffer.message(1, fill);
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

    fn event(&mut self, cpu: Cpu, event: &[u8]) {
        let bundle = self.bundle(cpu);
        bundle.events.put(2, event);
        if bundle.events.len() >= BUNDLE {
            self.close(cpu);
        }
    }

    /// Writes the events of a CPU that were gathered.
    fn close(&mut self, cpu: Cpu) {
        let Bundle { events, lost } = self.bundle(cpu);
        let (mut events, lost) = (std::mem::take(events), std::mem::take(lost));
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
        // Its room is for the next ones.
        events.clear();
        self.bundle(cpu).events = events;
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

/// A step of the analyses that leaves packets.
pub(super) enum PacketStep {
    /// The trace begins, of a kernel of this name and release, on a machine with so many CPUs.
    Begin {
        kernel: String,
        cpus: u32,
    },
    /// A task runs on a CPU when the window begins.
    Running {
        cpu: Cpu,
        ts: Ts,
        task: TaskRef,
    },
    Events(EventRun),
    Tasks(Vec<ListedTask>),
    Path(Box<Path>),
    /// Events were lost at no known place.
    Dropped(u64),
    /// A migration from or to a CPU that is shown, to which episodes are linked.
    Moved {
        ts: Ts,
        pid: Pid,
    },
    /// A number of tasks has changed.
    Counter {
        ts: Ts,
        track: u64,
        value: u32,
    },
    /// A CPU has a queue from now on.
    Queue(Cpu),
    Episode(ListedEpisode),
    Migration(Box<events::ListedMigration>),
    /// All packets are removed: the pass is made once more.
    Restart,
}

impl Writer {
    pub(super) fn new(out: Box<dyn Sink>) -> Writer {
        Writer {
            out,
            buffer: Message::default(),
            bundles: Vec::new(),
            failed: None,
            causes: Default::default(),
            recent: VecDeque::new(),
            others: 0,
        }
    }

    /// Writes the packets of a step.
    pub(super) fn take(&mut self, step: PacketStep) {
        match step {
            PacketStep::Begin { kernel, cpus } => self.begin(&kernel, cpus),
            PacketStep::Running { cpu, ts, task } => {
                self.event(cpu, ftrace::switch_from_idle(cpu, ts.0, task).bytes());
            }
            PacketStep::Events(run) => self.events(&run),
            PacketStep::Tasks(tasks) => self.tasks(&tasks),
            PacketStep::Path(path) => self.path(&path),
            PacketStep::Dropped(events) => self.dropped(events),
            PacketStep::Moved { ts, pid } => {
                if self.recent.len() >= RECENT {
                    self.recent.pop_front();
                }
                self.recent.push_back((ts, pid));
            }
            PacketStep::Counter { ts, track, value } => self.counter(ts, track, value),
            PacketStep::Queue(cpu) => {
                self.describe(track::of_queue(cpu), Some(track::QUEUES), &format!("CPU {cpu}"), true);
            }
            PacketStep::Episode(listed) => self.episode(&listed),
            PacketStep::Migration(listed) => self.migration(&listed),
            PacketStep::Restart => self.restart(),
        }
    }

    /// Adds events of the recording.
    fn events(&mut self, run: &EventRun) {
        self.others += run.others;
        for (cpu, is_after_loss, event) in run.events() {
            if is_after_loss {
                // The mark belongs to the first event behind the gap.
                self.close(cpu);
                self.bundle(cpu).lost = true;
            }
            self.event(cpu, event);
        }
    }

    /// Adds the tasks, each with its process; the name of a process is that of its first thread.
    fn tasks(&mut self, tasks: &[ListedTask]) {
        self.packet(|packet| {
            packet.message(packet::PROCESS_TREE, |tree| {
                for ListedTask { pid, leader, name } in tasks {
                    let name = sched::event::escape(name.as_bytes());
                    if pid == leader {
                        tree.message(1, |process| {
                            process.signed(1, pid.0.into());
                            process.text(3, &name);
                            // The name is not a command line.
                            process.number(9, 1);
                        });
                    }
                    tree.message(2, |thread| {
                        thread.signed(1, pid.0.into());
                        thread.text(2, &name);
                        thread.signed(3, leader.0.into());
                    });
                }
            });
        });
    }

    /// Adds the segments of a critical path, each with the task that it leads through.
    fn path(&mut self, path: &Path) {
        let name = |pid: Pid| pid.named(path.commands.get(&pid).copied().unwrap_or_default());
        let of = path.path.first().map_or(String::new(), |first| name(first.pid));
        let of = path.task.as_ref().map_or(of, |task| task.pid.named(task.command));
        self.describe(track::PATH, Some(track::ROOT), &format!("Critical path of {of}"), false);
        for segment in path.path.iter().filter(|segment| segment.end_ns > segment.start_ns) {
            self.track_event(segment.start_ns, track::PATH, kind::BEGIN, |event| {
                event.text(23, &format!("{}: {}", segment.kind.word(), name(segment.pid)));
                note(event, "pid", segment.pid.0.max(0).cast_unsigned().into());
                if let Some(cpu) = segment.cpu {
                    note(event, "cpu", cpu.0.into());
                }
                note(event, "beside_idle_ns", segment.beside_idle_ns);
            });
            self.track_event(segment.end_ns, track::PATH, kind::END, |_| {});
        }
    }

    /// Adds the kernel's count of the events that it dropped, as of the end; which CPU lost them is not known.
    fn dropped(&mut self, events: u64) {
        self.packet(|packet| {
            packet.message(packet::FTRACE_STATS, |stats| {
                const END_OF_TRACE: u64 = 2;
                stats.number(1, END_OF_TRACE);
                stats.message(2, |cpu| {
                    cpu.number(1, 0);
                    cpu.number(8, events);
                });
            });
        });
    }

    fn begin(&mut self, kernel: &str, cpus: u32) {
        // A trace.dat has the host's name before the release.
        let words: Vec<&str> = kernel.split_whitespace().collect();
        let (name, release, machine) = match words.as_slice() {
            [name, .., release, machine] => (*name, *release, *machine),
            _ => ("Linux", kernel, ""),
        };
        self.packet(|packet| {
            packet.number(packet::SEQUENCE, 1);
            // The state of this sequence begins here.
            packet.number(packet::SEQUENCE_FLAGS, 1);
            packet.message(packet::SYSTEM_INFO, |system| {
                system.message(1, |utsname| {
                    utsname.text(1, name);
                    utsname.text(3, release);
                    utsname.text(4, machine);
                });
                if cpus > 0 {
                    system.number(8, cpus.into());
                }
            });
        });
        self.describe(track::ROOT, None, "schedviz", false);
        self.describe(track::VIOLATION, Some(track::ROOT), "Work conservation violated", false);
        self.describe(track::RUNNING, Some(track::ROOT), "Running tasks", true);
        self.describe(track::WAITING, Some(track::ROOT), "Waiting tasks", true);
        self.describe(track::QUEUES, Some(track::ROOT), "Waiting tasks by CPU", false);
        self.describe(track::MIGRATIONS, Some(track::ROOT), "Migrations by cause", false);
    }

    /// Adds an episode in which work conservation was violated, linked to the migrations in it, the one that ends it
    /// among them.
    fn episode(&mut self, listed: &ListedEpisode) {
        let episode = &listed.episode;
        let end = episode.start.after(episode.duration);
        let within = self.recent.iter().filter(|(ts, _)| *ts > episode.start && *ts <= end);
        let flows: Vec<u64> = within.take(LINKED).map(|(ts, pid)| flow(*ts, *pid)).collect();
        self.track_event(episode.start, track::VIOLATION, kind::BEGIN, |event| {
            event.text(23, "violation");
            note(event, "cpu_time_lost_ns", episode.cpu_time_lost_ns);
            note(event, "thread_ns", episode.thread_ns);
            if let Some(distance) = listed.nearest {
                note_text(event, "distance", &format!("{distance:?}").to_lowercase());
            }
            flows.iter().for_each(|flow| event.fixed(FLOWS, *flow));
        });
        self.track_event(end, track::VIOLATION, kind::END, |_| {});
    }

    /// Adds a migration of a task.
    fn migration(&mut self, m: &events::ListedMigration) {
        let track = track::CAUSES + m.cause as u64;
        if !std::mem::replace(&mut self.causes[m.cause as usize], true) {
            self.describe(track, Some(track::MIGRATIONS), m.cause.name(), false);
        }
        self.track_event(m.ts_ns, track, kind::INSTANT, |event| {
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

    fn restart(&mut self) {
        self.buffer.clear();
        self.bundles.clear();
        self.causes = Default::default();
        self.recent.clear();
        self.others = 0;
        if let Err(error) = self.out.cut(0) {
            self.failed.get_or_insert(error);
        }
    }

    /// Completes the file, and puts it in its place. Returns the number of events without a format.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        for cpu in (0..self.bundles.len() as u32).map(Cpu) {
            self.close(cpu);
        }
        self.flush();
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.out.flush()?;
        self.out.finish()?;
        Ok(self.others)
    }
}
