//! The sched events in the record layouts of kernels of several ages.

use crate::ByteOrder;
use sched::{Comm, EventKind, SchedEvent, StateClass, TaskRef};

/// The kernel whose layout is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// 6.16 and later, with dynamic names in most events.
    Dynamic,
    /// 5.14 to 6.15, with `char comm[16]` everywhere.
    Modern,
    /// 5.10 with PREEMPT_RT, with two more common fields and `success` in wakeups.
    RealTime,
    /// 4.15 to 4.20, where the state is a bit shifted by its index.
    Shifted,
    /// 4.14, where the state is an index, with `success` in wakeups.
    Index,
    /// 4.4, with state masks of another table and `success` in wakeups.
    Legacy,
    /// A vendor's kernel, with fields inserted between the usual ones and a fifth common field.
    Vendor,
}

impl Age {
    /// The ages that kernels can have.
    pub const ALL: [Age; 7] =
        [Age::Dynamic, Age::Modern, Age::RealTime, Age::Shifted, Age::Index, Age::Legacy, Age::Vendor];

    /// Returns a kernel release with this layout.
    pub fn release(self) -> &'static str {
        match self {
            Age::Dynamic => "7.2.13-amd64",
            Age::Modern | Age::Vendor => "6.1.0-amd64",
            Age::RealTime => "5.10.0-rt-amd64",
            Age::Shifted => "4.19.0-amd64",
            Age::Index => "4.14.62-amd64",
            Age::Legacy => "4.4.0-amd64",
        }
    }

    fn has_success(self) -> bool {
        matches!(self, Age::RealTime | Age::Shifted | Age::Index | Age::Legacy)
    }
}

/// The value of a field.
enum FieldValue {
    Int(i64),
    Comm(Comm),
    /// The path of a program of this name.
    Program(Comm),
}

/// The layout of the events of one kernel.
#[derive(Clone, Copy, Debug)]
pub struct KernelLayout {
    /// The age of the kernel.
    pub age: Age,
    /// The byte order of the kernel.
    pub order: ByteOrder,
    /// `sizeof(long)` of the kernel, in bytes.
    pub long: usize,
}

struct RecordBuilder {
    order: ByteOrder,
    text: String,
    bytes: Vec<u8>,
    /// The dynamic strings, which follow the fixed fields: the place of the word that describes each, and its text.
    dynamic: Vec<(usize, Vec<u8>)>,
}

impl RecordBuilder {
    fn align(&mut self, size: usize) -> usize {
        let at = self.bytes.len().next_multiple_of(size);
        self.bytes.resize(at, 0);
        at
    }

    fn field(&mut self, declaration: &str, size: usize, signed: bool, value: i64) {
        let at = self.align(size);
        self.line(declaration, at, size, signed);
        self.order.put(&mut self.bytes, value as u64, size);
    }

    fn line(&mut self, declaration: &str, at: usize, size: usize, signed: bool) {
        self.text += &format!("\tfield:{declaration};\toffset:{at};\tsize:{size};\tsigned:{};\n", u8::from(signed));
    }

    fn array(&mut self, name: &str, comm: Comm) {
        let at = self.bytes.len();
        self.line(&format!("char {name}[16]"), at, 16, false);
        self.bytes.extend(comm.as_bytes());
        // As in the kernel, the bytes behind the NUL are stale.
        self.bytes.extend(b"\0stale stale stale"[..].iter().take((at + 16).saturating_sub(self.bytes.len())));
        self.bytes.resize(at + 16, 0);
    }

    fn string(&mut self, name: &str, text: &[u8]) {
        let at = self.align(4);
        self.line(&format!("__data_loc char[] {name}"), at, 4, false);
        self.bytes.resize(at + 4, 0);
        self.dynamic.push((at, [text, b"\0"].concat()));
    }

    fn finish(mut self) -> (String, Vec<u8>) {
        for (at, text) in std::mem::take(&mut self.dynamic) {
            let mut word = Vec::new();
            self.order.put(&mut word, (text.len() as u64) << 16 | self.bytes.len() as u64, 4);
            self.bytes.splice(at..at + 4, word);
            self.bytes.extend(text);
        }
        (self.text, self.bytes)
    }
}

const NAMES: [&str; 8] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_migrate_task",
    "sched_process_fork",
    "sched_process_exec",
    "sched_process_exit",
];

/// The id of the first event.
const FIRST_ID: u16 = 300;

impl KernelLayout {
    /// Returns the id of the event `name`.
    pub fn id(name: &str) -> u16 {
        FIRST_ID + NAMES.iter().position(|n| *n == name).expect("a known event") as u16
    }

    /// Returns the format texts of all events, each with its system.
    pub fn formats(&self) -> Vec<(String, String)> {
        let sample = TaskRef { pid: sched::Pid(1), prio: 120, comm: Comm::EMPTY };
        let cpu = sched::Cpu(0);
        let kinds = [
            EventKind::Switch { prev: sample, state: sched::PrevState::RUNNABLE, next: sample },
            EventKind::Waking { task: sample, target: cpu },
            EventKind::Wakeup { task: sample, target: cpu },
            EventKind::WakeupNew { task: sample, target: cpu },
            EventKind::Migrate { task: sample, orig: cpu, dest: cpu },
            EventKind::Fork { parent: sample.pid, child: sample.pid, child_comm: Comm::EMPTY },
            EventKind::Exec { pid: sample.pid, old_pid: sample.pid, program: Comm::EMPTY },
            EventKind::Exit { pid: sample.pid },
        ];
        let texts = kinds.iter().zip(NAMES).map(|(kind, name)| {
            let event = SchedEvent { ts: sched::Ts(0), cpu, pid: sample.pid, flags: 0, kind: *kind };
            let (fields, _) = self.build(&event).expect("a sched event");
            let fmt = if name == "sched_switch" { self.switch_fmt() } else { "\"\"" };
            (
                "sched".to_owned(),
                format!("name: {name}\nID: {}\nformat:\n{fields}\nprint fmt: {fmt}\n", KernelLayout::id(name)),
            )
        });
        texts.collect()
    }

    fn switch_fmt(&self) -> &'static str {
        match self.age {
            Age::Legacy => {
                r#""%s%s", REC->prev_state & (2048-1) ? __print_flags(REC->prev_state & (2048-1), "|", { 1, "S"} , { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "Z" }, { 32, "X" }, { 64, "x" }, { 128, "K"}, { 256, "W" }, { 512, "P" }, { 1024, "N" }) : "R", REC->prev_state & 2048 ? "+" : """#
            }
            _ => {
                r#""%s%s", (REC->prev_state & ((((0x0000 | 0x0001 | 0x0002 | 0x0004 | 0x0008 | 0x0010 | 0x0020 | 0x0040) + 1) << 1) - 1)) ? __print_flags(REC->prev_state & ((((0x0000 | 0x0001 | 0x0002 | 0x0004 | 0x0008 | 0x0010 | 0x0020 | 0x0040) + 1) << 1) - 1), "|", { 0x0001, "S" }, { 0x0002, "D" }, { 0x0004, "T" }, { 0x0008, "t" }, { 0x0010, "X" }, { 0x0020, "Z" }, { 0x0040, "P" }, { 0x0080, "I" }) : "R", REC->prev_state & (((0x0000 | 0x0001 | 0x0002 | 0x0004 | 0x0008 | 0x0010 | 0x0020 | 0x0040) + 1) << 1) ? "+" : "", 0"#
            }
        }
    }

    fn state(&self, event: &SchedEvent, class: StateClass) -> i64 {
        let idle = event.pid.is_idle();
        match (self.age, class) {
            (Age::Legacy, StateClass::Runnable) => 0,
            (Age::Legacy, StateClass::Preempted) => 2048,
            (Age::Legacy, StateClass::Asleep) => 1,
            (Age::Legacy, StateClass::Dead) => 64,
            (Age::Index, StateClass::Runnable) => 0,
            (Age::Index, StateClass::Preempted) => 0x1000,
            (Age::Index, StateClass::Asleep) => 2,
            (Age::Index, StateClass::Dead) => 5,
            (Age::Shifted, StateClass::Runnable) => 1,
            (Age::Shifted, StateClass::Preempted) => {
                if idle {
                    1
                } else {
                    0x100
                }
            }
            (Age::Shifted, StateClass::Asleep) => 2,
            (Age::Shifted, StateClass::Dead) => 0x20,
            (_, StateClass::Runnable) => 0,
            (_, StateClass::Preempted) => 0x100,
            (_, StateClass::Asleep) => 1,
            (_, StateClass::Dead) => 0x10,
        }
    }

    /// Returns the payload of an event; `None` for a kind that has no layout here.
    pub fn payload(&self, event: &SchedEvent) -> Option<Vec<u8>> {
        self.build(event).map(|(_, bytes)| bytes)
    }

    /// Returns the payload of a record that has only the common fields.
    pub fn bare(&self, id: u16, pid: i32) -> Vec<u8> {
        let mut b = self.common(id, pid, 0);
        b.text.clear();
        b.bytes
    }

    /// Returns the format text of an event whose records begin as those of [`KernelLayout::bare`]; `fields` are declared
    /// behind the common ones.
    pub fn format(&self, id: u16, name: &str, fields: &str) -> String {
        let common = self.common(id, 0, 0).text;
        format!("name: {name}\nID: {id}\nformat:\n{common}{fields}\nprint fmt: \"\"\n")
    }

    fn common(&self, id: u16, pid: i32, flags: u8) -> RecordBuilder {
        let mut b = RecordBuilder { order: self.order, text: String::new(), bytes: Vec::new(), dynamic: Vec::new() };
        b.field("unsigned short common_type", 2, false, id.into());
        b.field("unsigned char common_flags", 1, false, flags.into());
        b.field("unsigned char common_preempt_count", 1, false, 0);
        b.field("int common_pid", 4, true, pid.into());
        if self.age == Age::Vendor {
            b.field("int common_tgid", 4, true, 77);
        }
        if self.age == Age::RealTime {
            b.field("unsigned char common_migrate_disable", 1, false, 0);
            b.field("unsigned char common_preempt_lazy_count", 1, false, 0);
        }
        b.text += "\n";
        b
    }

    /// Returns the name of an event and its fields.
    fn contents(&self, event: &SchedEvent) -> Option<(&'static str, Vec<(&'static str, FieldValue)>)> {
        let task = |task: &TaskRef| {
            [
                ("comm", FieldValue::Comm(task.comm)),
                ("pid", FieldValue::Int(task.pid.0.into())),
                ("prio", FieldValue::Int(task.prio.into())),
            ]
        };
        let int = |name, value: i64| (name, FieldValue::Int(value));
        let success = if self.age.has_success() { vec![int("success", 1)] } else { Vec::new() };
        let vendor = if self.age == Age::Vendor { vec![int("load", 1024)] } else { Vec::new() };
        Some(match &event.kind {
            EventKind::Switch { prev, state, next } => {
                let raw = self.state(event, state.class);
                (
                    "sched_switch",
                    vec![
                        ("prev_comm", FieldValue::Comm(prev.comm)),
                        int("prev_pid", prev.pid.0.into()),
                        int("prev_prio", prev.prio.into()),
                        int("prev_state", raw),
                        ("next_comm", FieldValue::Comm(next.comm)),
                        int("next_pid", next.pid.0.into()),
                        int("next_prio", next.prio.into()),
                    ],
                )
            }
            EventKind::Waking { task: t, target }
            | EventKind::Wakeup { task: t, target }
            | EventKind::WakeupNew { task: t, target } => {
                let name = match event.kind {
                    EventKind::Waking { .. } => "sched_waking",
                    EventKind::Wakeup { .. } => "sched_wakeup",
                    _ => "sched_wakeup_new",
                };
                (name, task(t).into_iter().chain(success).chain([int("target_cpu", target.0.into())]).collect())
            }
            EventKind::Migrate { task: t, orig, dest } => {
                let cpus = [int("orig_cpu", orig.0.into()), int("dest_cpu", dest.0.into())];
                ("sched_migrate_task", task(t).into_iter().chain(vendor).chain(cpus).collect())
            }
            EventKind::Fork { parent, child, child_comm } => (
                "sched_process_fork",
                vec![
                    ("parent_comm", FieldValue::Comm(*child_comm)),
                    int("parent_pid", parent.0.into()),
                    ("child_comm", FieldValue::Comm(*child_comm)),
                    int("child_pid", child.0.into()),
                ],
            ),
            EventKind::Exec { pid, old_pid, program } => (
                "sched_process_exec",
                vec![
                    ("filename", FieldValue::Program(*program)),
                    int("pid", pid.0.into()),
                    int("old_pid", old_pid.0.into()),
                ],
            ),
            EventKind::Exit { pid } => {
                ("sched_process_exit", vec![("comm", FieldValue::Comm(Comm::EMPTY)), int("pid", pid.0.into())])
            }
            _ => return None,
        })
    }

    fn build(&self, event: &SchedEvent) -> Option<(String, Vec<u8>)> {
        let (name, fields) = self.contents(event)?;
        let mut b = self.common(KernelLayout::id(name), event.pid.0, event.flags);
        let fixed = matches!(
            name,
            "sched_switch" | "sched_waking" | "sched_wakeup" | "sched_wakeup_new" | "sched_process_exit"
        );
        for (field, value) in fields {
            match value {
                FieldValue::Program(name) => b.string(field, &[b"/bin/", name.as_bytes()].concat()),
                FieldValue::Comm(comm) if self.age == Age::Dynamic && !fixed => b.string(field, comm.as_bytes()),
                FieldValue::Comm(comm) => b.array(field, comm),
                FieldValue::Int(v) if field == "prev_state" => b.field("long prev_state", self.long, true, v),
                FieldValue::Int(v) if field.ends_with("pid") => b.field(&format!("pid_t {field}"), 4, true, v),
                FieldValue::Int(v) => b.field(&format!("int {field}"), 4, true, v),
            }
        }
        Some(b.finish())
    }
}
