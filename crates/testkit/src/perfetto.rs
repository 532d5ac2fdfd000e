//! Complete Perfetto traces.

use sched::{Comm, EventKind, SchedEvent, TaskRef};
use std::collections::BTreeMap;

/// The form of a bundle's switches and wakings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerfettoForm {
    /// An event each, as recorders before 2018 write them.
    Plain,
    /// Arrays of their fields, as Perfetto records them.
    Compact,
    /// Events that the recorder did not know, each with the names of its fields.
    Generic,
    /// The same, with a description of each event in the first bundle.
    Described,
}

/// A Perfetto trace to be written.
#[derive(Clone, Debug)]
pub struct PerfettoBuilder {
    /// The form of switches and wakings.
    pub form: PerfettoForm,
    /// Events of a CPU in a bundle; 0 for all of them in one, as scxtop and systing write them.
    pub bundle: usize,
    /// Packets in a compressed one; 0 for packets as they are.
    pub compressed: usize,
    /// Whether compressed packets are so by zstd, and not by zlib.
    pub zstd: bool,
    /// The kernel's release.
    pub release: &'static str,
    /// Processes, each with its threads and their names.
    pub processes: Vec<(i32, Vec<(i32, &'static str)>)>,
    /// CPU and place, in the CPU's bundles, of those behind a loss.
    pub lost: Vec<(u32, usize)>,
    /// The number of events that the kernel dropped while it recorded.
    pub dropped: u64,
}

impl Default for PerfettoBuilder {
    fn default() -> PerfettoBuilder {
        PerfettoBuilder {
            form: PerfettoForm::Compact,
            bundle: 64,
            compressed: 0,
            zstd: false,
            release: "6.1.0",
            processes: Vec::new(),
            lost: Vec::new(),
            dropped: 0,
        }
    }
}

/// A message, written field by field.
#[derive(Clone, Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(mut self, field: u64, value: i64) -> Message {
        self.varint(field << 3);
        self.varint(value.cast_unsigned());
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn message(self, field: u64, message: &Message) -> Message {
        self.bytes(field, &message.0)
    }

    fn packed(self, field: u64, numbers: &[i64]) -> Message {
        let mut packed = Message::default();
        numbers.iter().for_each(|number| packed.varint(number.cast_unsigned()));
        self.message(field, &packed)
    }
}

/// The value of a field.
enum FieldContent {
    Number(i64),
    Text(Comm),
}

/// The fields of an event: the number of each in its message, its name, and its value.
type Fields = Vec<(u64, &'static str, FieldContent)>;

/// The event's number in an event of a bundle, its name, and its fields, after Perfetto's `.proto` files; `None` for one that this
/// builder does not write.
fn fields(event: &SchedEvent) -> Option<(u64, &'static str, Fields)> {
    let number = |value: i32| FieldContent::Number(value.into());
    let cpu = |cpu: sched::Cpu| FieldContent::Number(cpu.0.into());
    let woken = |task: TaskRef, target| {
        let task = [
            (1, "comm", FieldContent::Text(task.comm)),
            (2, "pid", number(task.pid.0)),
            (3, "prio", number(task.prio)),
            (5, "target_cpu", cpu(target)),
        ];
        Vec::from(task)
    };
    Some(match event.kind {
        EventKind::Switch { prev, state, next } => {
            let fields = [
                (1, "prev_comm", FieldContent::Text(prev.comm)),
                (2, "prev_pid", number(prev.pid.0)),
                (3, "prev_prio", number(prev.prio)),
                (4, "prev_state", FieldContent::Number(state.raw.into())),
                (5, "next_comm", FieldContent::Text(next.comm)),
                (6, "next_pid", number(next.pid.0)),
                (7, "next_prio", number(next.prio)),
            ];
            (4, "sched_switch", Vec::from(fields))
        }
        EventKind::Waking { task, target } => (20, "sched_waking", woken(task, target)),
        EventKind::Wakeup { task, target } => (17, "sched_wakeup", woken(task, target)),
        EventKind::WakeupNew { task, target } => (114, "sched_wakeup_new", woken(task, target)),
        EventKind::Migrate { task, orig, dest } => {
            let fields = [
                (1, "comm", FieldContent::Text(task.comm)),
                (2, "pid", number(task.pid.0)),
                (3, "prio", number(task.prio)),
                (4, "orig_cpu", cpu(orig)),
                (5, "dest_cpu", cpu(dest)),
            ];
            (491, "sched_migrate_task", Vec::from(fields))
        }
        EventKind::Fork { parent, child, child_comm } => {
            let fields = [
                (1, "parent_comm", FieldContent::Text(Comm::EMPTY)),
                (2, "parent_pid", number(parent.0)),
                (3, "child_comm", FieldContent::Text(child_comm)),
                (4, "child_pid", number(child.0)),
            ];
            (239, "sched_process_fork", Vec::from(fields))
        }
        EventKind::Exec { pid, old_pid, program } => {
            let fields = [
                (1, "filename", FieldContent::Text(program)),
                (2, "pid", number(pid.0)),
                (3, "old_pid", number(old_pid.0)),
            ];
            (237, "sched_process_exec", Vec::from(fields))
        }
        EventKind::Exit { pid } => {
            let fields =
                [(1, "comm", FieldContent::Text(Comm::EMPTY)), (2, "pid", number(pid.0)), (4, "prio", number(120))];
            (238, "sched_process_exit", Vec::from(fields))
        }
        EventKind::Frequency { khz, target } => {
            let fields = [(1, "state", FieldContent::Number(khz.into())), (2, "cpu_id", cpu(target))];
            (11, "cpu_frequency", Vec::from(fields))
        }
        _ => return None,
    })
}

impl PerfettoBuilder {
    /// Returns the bytes of a trace of these events.
    pub fn build(&self, events: &[SchedEvent]) -> Vec<u8> {
        let mut cpus: BTreeMap<u32, Vec<&SchedEvent>> = BTreeMap::new();
        for event in events.iter().filter(|event| !event.kind.is_concluded()) {
            cpus.entry(event.cpu.0).or_default().push(event);
        }
        let machine = cpus.last_key_value().map_or(1, |(cpu, _)| cpu + 1);
        let mut packets = vec![self.system(), self.stats(1, machine), self.tree()];
        let size = if self.bundle == 0 { events.len().max(1) } else { self.bundle };
        let mut bundles: Vec<(usize, u32, Message)> = Vec::new();
        for (cpu, events) in &cpus {
            for (place, events) in events.chunks(size).enumerate() {
                bundles.push((place, *cpu, self.bundle(*cpu, place, events)));
            }
        }
        // The recorder empties the buffer of one CPU after the other.
        bundles.sort_by_key(|(place, cpu, _)| (*place, *cpu));
        let first = bundles.first_mut().filter(|_| self.form == PerfettoForm::Described);
        if let Some((_, _, bundle)) = first {
            *bundle = described(events).into_iter().fold(bundle.clone(), |bundle, event| bundle.message(11, &event));
        }
        packets.extend(bundles.into_iter().map(|(_, _, bundle)| Message::default().number(10, 7).message(1, &bundle)));
        packets.push(self.stats(2, machine));
        let trace =
            |packets: &[Message]| packets.iter().fold(Message::default(), |trace, packet| trace.message(1, packet));
        if self.compressed == 0 {
            return trace(&packets).0;
        }
        let mut all = Message::default();
        for packets in packets.chunks(self.compressed) {
            let (plain, field) = (trace(packets).0, if self.zstd { 133 } else { 50 });
            let packed = if self.zstd { zstd::bulk::compress(&plain, 1).expect("memory") } else { zlib(&plain) };
            all = all.message(1, &Message::default().bytes(field, &packed));
        }
        all.0
    }

    fn system(&self) -> Message {
        let utsname = Message::default()
            .bytes(1, b"Linux")
            .bytes(2, b"#1 SMP")
            .bytes(3, self.release.as_bytes())
            .bytes(4, b"aarch64");
        Message::default().message(45, &Message::default().message(1, &utsname).bytes(4, b"Perfetto v99 testkit"))
    }

    /// The counts of the kernel on each of so many CPUs, of which the first dropped events.
    fn stats(&self, phase: i64, cpus: u32) -> Message {
        let of = |cpu: u32| match (cpu, phase) {
            (0, 2) => self.dropped as i64 + 5,
            (0, _) => 5,
            _ => 0,
        };
        let cpu = |cpu: u32| Message::default().number(1, cpu.into()).number(4, 0).number(8, of(cpu));
        let stats = (0..cpus).fold(Message::default().number(1, phase), |stats, of| stats.message(2, &cpu(of)));
        Message::default().message(34, &stats)
    }

    fn tree(&self) -> Message {
        let mut tree = Message::default();
        for (pid, threads) in &self.processes {
            tree = tree.message(1, &Message::default().number(1, (*pid).into()).number(2, 1).bytes(3, b"/bin/program"));
            for (tid, name) in threads {
                let thread = Message::default().number(1, (*tid).into()).bytes(2, name.as_bytes());
                tree = tree.message(2, &thread.number(3, (*pid).into()));
            }
        }
        Message::default().message(2, &tree)
    }

    fn bundle(&self, cpu: u32, place: usize, events: &[&SchedEvent]) -> Message {
        let mut bundle = Message::default().number(1, cpu.into());
        if self.lost.contains(&(cpu, place)) {
            bundle = bundle.number(3, 1);
        }
        let mut compact = Compact::default();
        for event in events {
            if self.form == PerfettoForm::Compact && compact.take(event) {
                continue;
            }
            let Some((kind, name, fields)) = fields(event) else { continue };
            let head =
                Message::default().number(1, event.ts.0).number(2, event.pid.0.into()).number(5, event.flags.into());
            let event = match self.form {
                PerfettoForm::Plain | PerfettoForm::Compact => head.message(kind, &numbered(&fields, 0)),
                PerfettoForm::Generic => head.message(327, &named(name, &fields)),
                PerfettoForm::Described => head.message(70_000 + kind, &numbered(&fields, 0)),
            };
            bundle = bundle.message(2, &event);
        }
        if compact.is_empty() { bundle } else { bundle.message(4, &compact.message()) }
    }
}

/// A message of fields by their numbers.
fn numbered(fields: &Fields, beyond: u64) -> Message {
    fields.iter().fold(Message::default(), |message, (field, _, value)| match value {
        FieldContent::Number(number) => message.number(field + beyond, *number),
        FieldContent::Text(text) => message.bytes(field + beyond, text.as_bytes()),
    })
}

/// A message of fields by their names.
fn named(name: &str, fields: &Fields) -> Message {
    fields.iter().fold(Message::default().bytes(1, name.as_bytes()), |message, (_, name, value)| {
        let field = Message::default().bytes(1, name.as_bytes());
        let field = match value {
            FieldContent::Number(number) => field.number(4, *number),
            FieldContent::Text(text) => field.bytes(3, text.as_bytes()),
        };
        message.message(2, &field)
    })
}

/// The descriptions of all events that occur, as a bundle has them.
fn described(events: &[SchedEvent]) -> Vec<Message> {
    let occurring: BTreeMap<u64, (&str, Fields)> =
        events.iter().filter_map(fields).map(|(kind, name, fields)| (kind, (name, fields))).collect();
    let describe = |(kind, (name, fields)): (u64, (&str, Fields))| {
        let proto = fields.iter().fold(Message::default().bytes(1, name.as_bytes()), |proto, (number, name, value)| {
            let of = if matches!(value, FieldContent::Number(_)) { 3 } else { 9 };
            let field =
                Message::default().bytes(1, name.as_bytes()).number(3, *number as i64).number(4, 1).number(5, of);
            proto.message(2, &field)
        });
        let group: &[u8] = if name == "cpu_frequency" { b"power" } else { b"sched" };
        Message::default().number(1, (70_000 + kind) as i64).message(2, &proto).bytes(3, group)
    };
    occurring.into_iter().map(describe).collect()
}

/// The arrays of compact switches and wakings.
#[derive(Debug, Default)]
struct Compact {
    names: Vec<Comm>,
    /// Time, state, PID, priority, name.
    switches: [Vec<i64>; 5],
    /// Time, PID, CPU, priority, name, flags.
    wakings: [Vec<i64>; 6],
    last: [i64; 2],
}

impl Compact {
    fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn name(&mut self, comm: Comm) -> i64 {
        let place = self.names.iter().position(|name| *name == comm).unwrap_or_else(|| {
            self.names.push(comm);
            self.names.len() - 1
        });
        place as i64
    }

    /// Adds an event; whether it is one of these.
    fn take(&mut self, event: &SchedEvent) -> bool {
        match event.kind {
            EventKind::Switch { state, next, .. } => {
                let name = self.name(next.comm);
                let since = event.ts.0 - std::mem::replace(&mut self.last[0], event.ts.0);
                let values = [since, state.raw.into(), next.pid.0.into(), next.prio.into(), name];
                self.switches.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
                true
            }
            EventKind::Waking { task, target } => {
                let name = self.name(task.comm);
                let since = event.ts.0 - std::mem::replace(&mut self.last[1], event.ts.0);
                let values = [since, task.pid.0.into(), target.0.into(), task.prio.into(), name, event.flags.into()];
                self.wakings.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
                true
            }
            _ => false,
        }
    }

    fn message(&self) -> Message {
        let mut message = self.names.iter().fold(Message::default(), |message, name| message.bytes(5, name.as_bytes()));
        for (field, column) in [1, 2, 3, 4, 6].into_iter().zip(&self.switches) {
            message = message.packed(field, column);
        }
        for (field, column) in [7, 8, 9, 10, 11, 12].into_iter().zip(&self.wakings) {
            message = message.packed(field, column);
        }
        message
    }
}

/// Bytes in the format of zlib, stored without compression: the reader has to take any of its blocks.
fn zlib(plain: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let mut blocks = plain.chunks(0xffff).peekable();
    if plain.is_empty() {
        out.extend([1, 0, 0, 0xff, 0xff]);
    }
    while let Some(block) = blocks.next() {
        out.push(u8::from(blocks.peek().is_none()));
        out.extend((block.len() as u16).to_le_bytes());
        out.extend((!(block.len() as u16)).to_le_bytes());
        out.extend(block);
    }
    let (mut a, mut b) = (1u32, 0u32);
    for byte in plain {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    out.extend((b << 16 | a).to_be_bytes());
    out
}
