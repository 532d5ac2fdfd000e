//! A trace for Perfetto: the recording's events, from which Perfetto draws its own lanes of CPUs and states of threads, and
//! tracks of ours beside them.
//!
//! Packets are written as they come. They are not in order of time, which Perfetto does not need: it sorts them. The analyses note
//! steps, and a thread of its own makes packets of them in their order, if there is one.

mod ftrace;
mod message;
mod records;
mod writer;

use crate::output::Sink;
use path::Path;
use sched::{Analysis, ChosenCpus, Comm, Cpu, Current, EventKind, Pid, SchedEvent, SchedState, TaskRef, Ts};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use workcons::ListedEpisode;
use writer::{PacketStep, Writer, track};

pub use records::{EventRun, RecordForms};

/// The number of steps that are handed over together, some 400 kB.
const STEPS: usize = 4096;

/// The number of such lists that may wait for the thread of the packets.
const QUEUED: usize = 8;

/// The place where packets are made.
enum Packets {
    /// The packets are made on the thread of the analyses.
    Here(Box<Writer>),
    Beside(Beside),
}

/// A thread that makes packets of steps.
struct Beside {
    steps: Vec<PacketStep>,
    full: SyncSender<Vec<PacketStep>>,
    /// Lists to be used again.
    empty: Receiver<Vec<PacketStep>>,
    writer: JoinHandle<Writer>,
}

impl Packets {
    fn new(mut writer: Writer, threads: usize) -> Packets {
        if threads < 2 {
            return Packets::Here(Box::new(writer));
        }
        let (full, lists) = sync_channel::<Vec<PacketStep>>(QUEUED);
        let (back, empty) = sync_channel(QUEUED);
        let writer = std::thread::spawn(move || {
            for mut steps in lists {
                steps.drain(..).for_each(|step| writer.take(step));
                // If the analyses have enough of them, this one is dropped.
                let _ = back.try_send(steps);
            }
            writer
        });
        Packets::Beside(Beside { steps: Vec::with_capacity(STEPS), full, empty, writer })
    }

    #[inline]
    fn take(&mut self, step: PacketStep) {
        match self {
            Packets::Here(writer) => writer.take(step),
            Packets::Beside(beside) => {
                // A run of events is as large as a list of other steps.
                let is_full = matches!(step, PacketStep::Events(_));
                beside.steps.push(step);
                if is_full || beside.steps.len() >= STEPS {
                    beside.hand_over();
                }
            }
        }
    }

    /// The writer, once it has taken all steps.
    fn finish(self) -> Writer {
        match self {
            Packets::Here(writer) => *writer,
            Packets::Beside(mut beside) => {
                beside.hand_over();
                drop(beside.full);
                beside.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
        }
    }
}

impl Beside {
    #[cold]
    fn hand_over(&mut self) {
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(STEPS));
        // Fails only if the thread panicked, which `finish` passes on.
        let _ = self.full.send(std::mem::replace(&mut self.steps, next));
    }
}

/// A task of the recording, with its process where it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedTask {
    /// PID of the task.
    pub pid: Pid,
    /// PID of the first thread of its process.
    pub leader: Pid,
    /// Name of the task.
    pub name: Comm,
}

/// A trace in Perfetto's format that is written.
pub struct Perfetto {
    packets: Mutex<Packets>,
    /// The name and the release of the kernel, by which Perfetto decodes the states of tasks.
    kernel: String,
    /// The number of CPUs of the machine; zero where it is unknown.
    cpus: u32,
}

impl Perfetto {
    /// Writes to this file a trace of a kernel of this release on a machine with so many CPUs. With two `threads` or more the packets are made on a thread of
    /// their own; the file is the same.
    pub fn new(out: Box<dyn Sink>, kernel: &str, cpus: u32, threads: usize) -> Perfetto {
        Perfetto { packets: Mutex::new(Packets::new(Writer::new(out), threads)), kernel: kernel.to_owned(), cpus }
    }

    fn packets(&self) -> MutexGuard<'_, Packets> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes all packets: the pass is made once more.
    pub fn restart(&self) {
        self.packets().take(PacketStep::Restart);
    }

    /// Adds an episode in which work conservation was violated, linked to the migrations in it, the one that ends it
    /// among them.
    pub fn episode(&self, listed: &ListedEpisode) {
        self.packets().take(PacketStep::Episode(*listed));
    }

    /// Adds a migration of a task.
    pub fn migration(&self, listed: &events::ListedMigration) {
        self.packets().take(PacketStep::Migration(Box::new(listed.clone())));
    }

    /// Adds events of the recording, in the order of time.
    pub fn events(&self, events: EventRun) {
        self.packets().take(PacketStep::Events(events));
    }

    /// Adds the tasks whose processes are known.
    pub fn tasks(&self, tasks: Vec<ListedTask>) {
        if !tasks.is_empty() {
            self.packets().take(PacketStep::Tasks(tasks));
        }
    }

    /// Adds the critical path of a task, if there is one.
    pub fn path(&self, path: &Path) {
        if path.task.is_some() {
            self.packets().take(PacketStep::Path(Box::new(path.clone())));
        }
    }

    /// Adds the number of events that were lost at no known place.
    pub fn dropped(&self, events: u64) {
        if events > 0 {
            self.packets().take(PacketStep::Dropped(events));
        }
    }

    /// Completes the file, and puts it in its place. Returns the number of events without a format, which are left out.
    pub fn finish(self) -> io::Result<u64> {
        self.packets.into_inner().unwrap_or_else(PoisonError::into_inner).finish().finish()
    }
}

/// Writes what the chosen CPUs run when the window begins, and the number of running and waiting tasks.
pub struct PerfettoTracks<'o> {
    file: &'o Perfetto,
    cpus: ChosenCpus,
    running: Option<u32>,
    waiting: Option<u32>,
    /// The length of the run queue of each CPU, as written last.
    queues: Vec<Option<u32>>,
}

impl<'o> PerfettoTracks<'o> {
    /// An analysis that writes to this file.
    pub fn new(file: &'o Perfetto, cpus: ChosenCpus) -> PerfettoTracks<'o> {
        PerfettoTracks { file, cpus, running: None, waiting: None, queues: Vec::new() }
    }

    /// Writes the counters that have changed.
    fn count(&mut self, ts: Ts, state: &SchedState, cpus: &[Cpu]) {
        let mut packets = self.file.packets();
        let counts = state.counts();
        if self.running.replace(counts.running()) != Some(counts.running()) {
            packets.take(PacketStep::Counter { ts, track: track::RUNNING, value: counts.running() });
        }
        if self.waiting.replace(counts.waiting) != Some(counts.waiting) {
            packets.take(PacketStep::Counter { ts, track: track::WAITING, value: counts.waiting });
        }
        for cpu in cpus.iter().filter(|cpu| self.cpus.has(**cpu)) {
            if cpu.index() >= self.queues.len() {
                self.queues.resize(cpu.index() + 1, None);
            }
            let (known, value) = (&mut self.queues[cpu.index()], state.queue_length(*cpu));
            if known.is_none() {
                packets.take(PacketStep::Queue(*cpu));
            }
            if known.replace(value) != Some(value) {
                packets.take(PacketStep::Counter { ts, track: track::of_queue(*cpu), value });
            }
        }
    }
}

impl Analysis for PerfettoTracks<'_> {
    type Output = ();
    const COUNTS: bool = true;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        let mut packets = self.file.packets();
        packets.take(PacketStep::Begin { kernel: self.file.kernel.clone(), cpus: self.file.cpus });
        let cpus: Vec<Cpu> = state.observed().collect();
        // Perfetto shows a task from its switch on: one that runs already gets a switch at the start.
        for cpu in cpus.iter().copied().filter(|cpu| self.cpus.has(*cpu)) {
            if let (Current::Task(_), Some(task)) = (state.current(cpu), state.running(cpu)) {
                let task = TaskRef { pid: task.pid, prio: task.known_prio().unwrap_or(120), comm: task.comm };
                packets.take(PacketStep::Running { cpu, ts: start, task });
            }
        }
        drop(packets);
        self.count(start, state, &cpus);
    }

    fn before(&mut self, event: &SchedEvent, _: &SchedState) {
        let moved = match event.kind {
            EventKind::Migrate { task, orig, dest } if self.cpus.has(orig) || self.cpus.has(dest) => Some(task.pid),
            _ => None,
        };
        if let Some(pid) = moved {
            self.file.packets().take(PacketStep::Moved { ts: event.ts, pid });
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        if !state.spans().is_empty() || !state.cpu_spans().is_empty() {
            self.count(event.ts, state, state.touched());
        }
    }

    fn finish(self, _: Ts, _: &SchedState) {}
}
