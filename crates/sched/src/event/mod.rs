//! Time, CPUs, tasks and the scheduler's events.

mod clean;
pub mod context_flags;
mod cpu_mask;
pub mod diag;
pub mod kthread;
pub mod nice;
pub mod probe;
pub mod span;
pub(crate) mod task_id;
pub(crate) mod tracepoint;
mod two_words;

pub use clean::{CleanJson, CleanText};
pub use cpu_mask::CpuMask;
use probe::Probe;
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
pub use two_words::LostCount;

/// An instant in nanoseconds of the trace's own clock, after its corrections.
///
/// Signed, since corrections (`DATE`, `OFFSET`) may bring an instant below zero. The reader keeps instants within
/// [`Ts::MIN`] and [`Ts::MAX`], so that a difference never overflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Ts(pub i64);

impl Ts {
    /// The earliest instant that a reader delivers.
    pub const MIN: Ts = Ts(1 - (1 << 62));
    /// The latest instant that a reader delivers.
    pub const MAX: Ts = Ts((1 << 62) - 1);

    /// Returns the time that has passed since `earlier`; zero if `earlier` is later than this instant.
    pub fn since(self, earlier: Ts) -> Dur {
        Dur(self.0.max(earlier.0).abs_diff(earlier.0))
    }

    /// Returns the instant that follows this one by `d`, at most [`Ts::MAX`].
    #[must_use]
    pub fn after(self, d: Dur) -> Ts {
        let d = i64::try_from(d.0).unwrap_or(i64::MAX);
        Ts(self.0.saturating_add(d).min(Ts::MAX.0))
    }
}

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Dur(pub u64);

impl Dur {
    /// Formats the length for people, in the unit that suits it: `750 ns`, `12.3 µs`, `4.56 ms`, `12.345 s`.
    pub fn human(self) -> String {
        match self.0 {
            ns @ 0..1_000 => format!("{ns} ns"),
            ns @ 1_000..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
            ns @ 1_000_000..1_000_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
            _ => format!("{:.3} s", self.seconds()),
        }
    }

    /// Converts the length to seconds, for people. Sums and comparisons stay in nanoseconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl std::ops::AddAssign for Dur {
    fn add_assign(&mut self, other: Dur) {
        self.0 = self.0.saturating_add(other.0);
    }
}

/// A CPU (a hardware thread) by its kernel number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Cpu(pub u32);

impl Cpu {
    /// One more than the largest CPU number that is believed. The kernel's own limit is 8192; a larger number in a file
    /// is damage, and must not size a table.
    pub const LIMIT: u32 = 1 << 16;

    /// Returns the number as an index into a table by CPU.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A thread by its number (TID) in the initial PID namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Pid(pub i32);

impl Pid {
    /// The idle task. Each CPU has one, all with this number; it never counts as a task here.
    pub const IDLE: Pid = Pid(0);
    /// The current task of a record whose file does not show it.
    pub const UNKNOWN: Pid = Pid(-1);
    /// The number of `kthreadd`, the parent of all kernel threads.
    pub const KTHREADD: Pid = Pid(2);

    /// Whether this is the idle task.
    pub fn is_idle(self) -> bool {
        self == Pid::IDLE
    }

    /// Names the task for people: `hackbench 1217`; `task 1217` if its name was not seen; `idle` for the idle task.
    pub fn named(self, comm: Comm) -> String {
        match (self.is_idle(), comm.is_empty()) {
            (true, _) => "idle".to_owned(),
            (_, true) => format!("task {self}"),
            _ => format!("{comm} {self}"),
        }
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A command name: up to sixteen bytes, of any kind.
///
/// The kernel's `comm` is fifteen bytes and a NUL; some files fill all sixteen.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Comm([u8; 16]);

impl Comm {
    /// The empty name, for tasks whose name no event has shown.
    pub const EMPTY: Comm = Comm([0; 16]);

    /// Makes a name of the bytes up to the first NUL, at most sixteen. Bytes behind the NUL are stale in a record.
    pub fn new(bytes: &[u8]) -> Comm {
        let mut name = [0; 16];
        let length = bytes.len().min(16);
        name[..length].copy_from_slice(&bytes[..length]);
        Comm::from_array(name)
    }

    /// Whether this is the name of a recorder: its work grows with the events of the run, and is no part of what is judged.
    pub fn is_recorder(self) -> bool {
        [b"trace-cmd".as_slice(), b"schedviz", b"perf", b"perf-exec"].into_iter().any(|name| self == Comm::new(name))
    }

    /// Makes a name of a `char[16]` of a record.
    pub fn from_array(bytes: [u8; 16]) -> Comm {
        let word = u128::from_le_bytes(bytes);
        let zeros = zero_bytes(word);
        // All bits up to the top one of the first zero byte, or all bits if there is none.
        Comm((word & (zeros ^ zeros.wrapping_sub(1))).to_le_bytes())
    }

    /// The bytes of the name, padded with zeros.
    pub fn array(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns the name of a task that executes this file: the last component of its path, at most fifteen bytes of it.
    pub fn of_program(file: &[u8]) -> Comm {
        let file = file.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = file.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        Comm::new(&name[..name.len().min(15)])
    }

    /// The bytes of the name, without padding.
    pub fn as_bytes(&self) -> &[u8] {
        let end = first_nul(u128::from_le_bytes(self.0));
        self.0.get(..end).unwrap_or(&self.0)
    }

    /// Whether `byte` occurs in the name.
    pub fn contains(&self, byte: u8) -> bool {
        let others = u128::from_le_bytes(self.0) ^ u128::from_le_bytes([byte; 16]);
        first_nul(others) < 16
    }

    /// Whether no event has shown the name.
    pub fn is_empty(&self) -> bool {
        self.0[0] == 0
    }
}

/// Marks zero bytes of `word`: sets the top bit of the first zero byte, counted from the least significant, and of some
/// after it; zero if there is none. All bytes are tested at once: subtracting one borrows into the top bit of a byte
/// that was zero, and of none before it.
#[inline]
fn zero_bytes(word: u128) -> u128 {
    const ONES: u128 = u128::from_le_bytes([1; 16]);
    word.wrapping_sub(ONES) & !word & (ONES << 7)
}

/// Returns the position of the first zero byte, 0 to 15; 16 if there is none.
#[inline]
fn first_nul(word: u128) -> usize {
    zero_bytes(word).trailing_zeros() as usize / 8
}

/// Prints the name as text fit for any output: bytes that are not printable, or not UTF-8, are escaped as `\xNN`.
impl fmt::Display for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&escape(self.as_bytes()))
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", escape(self.as_bytes()))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Comm {
    fn schema_name() -> Cow<'static, str> {
        "Comm".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "A command name; unprintable characters are escaped." })
    }
}

impl Serialize for Comm {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&escape(self.as_bytes()))
    }
}

/// Escapes bytes from a trace, so that the text is safe to print: control characters, bidirectional overrides and bytes
/// that are not UTF-8 become `\xNN` or `\u{N}`. A name can then neither move a terminal's cursor nor end a line of a
/// report.
pub fn escape(bytes: &[u8]) -> Cow<'_, str> {
    use fmt::Write;
    // Nearly all names need no escaping.
    if let (true, Ok(text)) = (are_plain(bytes), std::str::from_utf8(bytes)) {
        return text.into();
    }
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_plain_char(c) {
                out.push(c);
            } else if c.is_control() {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            } else {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
        for b in chunk.invalid() {
            let _ = write!(out, "\\x{b:02x}");
        }
    }
    out.into()
}

/// Whether a character does nothing to a terminal or to the order of a text: it is no control character, no bidirectional override, and
/// neither breaks lines nor is without any width.
pub fn is_plain_char(c: char) -> bool {
    !matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        && !c.is_control()
}

/// Whether nothing in these bytes has to be escaped. All bytes are tested at once.
fn are_plain(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'))
}

/// Escapes a name as [`escape`] does; a name without such bytes is returned as it is.
pub fn escaped(name: String) -> String {
    if are_plain(name.as_bytes()) { name } else { escape(name.as_bytes()).into_owned() }
}

/// Escapes `text` from the byte `from` on as [`escape`] does, but keeps line breaks and tabs.
pub fn escape_lines(text: &mut String, from: usize) {
    if are_plain(text.as_bytes().get(from..).unwrap_or_default()) {
        return;
    }
    let line = |line: &str| line.split('\t').map(|part| escape(part.as_bytes())).collect::<Vec<_>>().join("\t");
    let lines = text.split_off(from).split('\n').map(line).collect::<Vec<_>>().join("\n");
    text.push_str(&lines);
}

/// A task as an event names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskRef {
    /// The PID of the task.
    pub pid: Pid,
    /// The kernel's priority at that moment: 0–99 real time (lower is stronger), 100–139 fair, −1 deadline.
    pub prio: i32,
    /// The command name at that moment.
    pub comm: Comm,
}

/// The class of states in which a task was switched out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateClass {
    /// `R`: the task is runnable and could have gone on.
    Runnable,
    /// `R+`: the task is runnable, and was preempted inside the kernel.
    Preempted,
    /// Asleep: the task sleeps, or is stopped, traced, frozen or parked.
    Asleep,
    /// `X` or `Z`: the task will never run again.
    Dead,
}

/// The `prev_state` of a `sched_switch`, decoded by the event's own format text: the number alone means five different
/// things on different kernels (`docs/trace-dat.md`, 11.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrevState {
    /// The class of the state.
    pub class: StateClass,
    /// The number as the event recorded it, for display.
    pub raw: u32,
}

impl PrevState {
    /// The state `R` of a kernel since 5.0.
    pub const RUNNABLE: PrevState = PrevState { class: StateClass::Runnable, raw: 0 };
    /// The state `R+` of a kernel since 5.0.
    pub const PREEMPTED: PrevState = PrevState { class: StateClass::Preempted, raw: 0x100 };
    /// The state `X` of a kernel since 5.0.
    pub const DEAD: PrevState = PrevState { class: StateClass::Dead, raw: 0x10 };

    /// Makes a sleeping state with this recorded number.
    pub const fn asleep(raw: u32) -> PrevState {
        PrevState { class: StateClass::Asleep, raw }
    }

    /// Whether the task waits for a device or a lock, so that no signal wakes it (`D`).
    pub fn is_uninterruptible(self) -> bool {
        self.class == StateClass::Asleep && self.raw & 2 != 0
    }

    /// Whether the task stays on the run queue.
    pub fn is_runnable(self) -> bool {
        matches!(self.class, StateClass::Runnable | StateClass::Preempted)
    }
}

/// The content of an event, without its time and CPU.
///
/// `TaskRef` arguments name the task that the event is *about*; the task that emitted it is [`SchedEvent::pid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are the kernel's own, by the kernel's names
pub enum EventKind {
    /// `sched_switch`: the CPU switches from `prev`, which goes to `state`, to `next`.
    Switch { prev: TaskRef, state: PrevState, next: TaskRef },
    /// `sched_waking`: the wakeup of a task begins; `target` is the CPU where the task *last ran*, not where it will be
    /// placed.
    Waking { task: TaskRef, target: Cpu },
    /// `sched_wakeup`: a task is queued on `target` after a wakeup.
    Wakeup { task: TaskRef, target: Cpu },
    /// `sched_wakeup_new`: a new life begins on `target`.
    WakeupNew { task: TaskRef, target: Cpu },
    /// `sched_migrate_task`: a task moves from the queue of `orig` to that of `dest`, or will be queued there if it
    /// sleeps.
    Migrate { task: TaskRef, orig: Cpu, dest: Cpu },
    /// `sched_process_fork`: a task creates a process or a thread.
    Fork { parent: Pid, child: Pid, child_comm: Comm },
    /// `sched_process_exec`: a task executes a program. `old_pid` differs from `pid` if a thread that is not the leader
    /// executes. `program` is the task's name since shortly before: the last component of the file's path, as the
    /// kernel cuts it.
    Exec { pid: Pid, old_pid: Pid, program: Comm },
    /// `task_rename`: a task takes another name, by itself, from `/proc`, or on its way to an exec.
    Rename { pid: Pid, before: Comm, after: Comm },
    /// `sched_process_exit`: a task ends.
    Exit { pid: Pid },
    /// A gap: events of this CPU were lost between this instant and its next event. `ts` is that of the last event
    /// before the gap; `count` is the number that the kernel counted, if it could.
    Lost { count: Option<LostCount> },
    /// A CPU going offline, from this instant until its next event. The kernel records nothing of it, nor anything on a
    /// CPU that it has marked as offline, as it does in the stopper: a reader concludes it from missing events.
    Offline,
    /// `power:cpu_frequency`: the frequency of `target` becomes `khz`, in kHz.
    Frequency { khz: u32, target: Cpu },
    /// Entry to (`true`) or exit from (`false`) an interrupt or softirq handler; `id` is the event's number in this
    /// file.
    Interrupt { id: u16, entry: bool },
    /// A decision of NUMA balancing: to move `pid` from `src` to `dst` (`sched_move_numa`), to exchange it with the
    /// task `with` there (`sched_swap_numa`), or to leave it, since neither was possible (`stuck`, `sched_stick_numa`).
    /// `nodes` are the NUMA nodes of the two CPUs.
    Numa { pid: Pid, with: Option<Pid>, src: Cpu, dst: Cpu, nodes: Option<[u16; 2]>, stuck: bool },
    /// A stack that was recorded behind another event (`kernel_stack`, `user_stack`), by its number in this file.
    /// Behind a switch it still names the task that left, so it does not show which task is current.
    Stack { id: u16 },
    /// A record of a probe on the balancer (group `lb`), by its number in this file.
    Probe { id: u16, probe: Probe },
    /// Any other event, by its number in this file. It still shows the running task.
    Other { id: u16 },
}

/// A decoded event. A source delivers events in the order of the trace: time, CPU, position in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedEvent {
    /// The instant of the event, in nanoseconds of the trace's clock.
    pub ts: Ts,
    /// The CPU that emitted the event.
    pub cpu: Cpu,
    /// The task that was current on that CPU (`common_pid`).
    pub pid: Pid,
    /// The flags of the context (`common_flags`): 0x01 interrupts off, 0x08 hard interrupt, 0x10 softirq.
    pub flags: u8,
    /// The content of the event.
    pub kind: EventKind,
}

impl SchedEvent {
    /// Whether the handler of a hard interrupt emitted the event.
    pub fn in_hard_interrupt(&self) -> bool {
        self.flags & 0x08 != 0
    }

    /// Whether a softirq handler emitted the event.
    pub fn in_softirq(&self) -> bool {
        self.flags & 0x10 != 0
    }

    /// Whether a task emitted the event, rather than a softirq or an interrupt handler.
    pub fn in_task(&self) -> bool {
        self.flags & 0x18 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_have_a_name_for_people() {
        assert_eq!(Pid(1217).named(Comm::new(b"hackbench")), "hackbench 1217");
        assert_eq!(Pid(874).named(Comm::EMPTY), "task 874");
        assert_eq!(Pid::IDLE.named(Comm::new(b"swapper/3")), "idle");
    }

    #[test]
    fn a_name_ends_at_its_first_nul() {
        let mut bytes = *b"kworker/0:1\0stal";
        assert_eq!(Comm::from_array(bytes), Comm::new(b"kworker/0:1"));
        assert_eq!(Comm::from_array(bytes).as_bytes(), b"kworker/0:1");
        bytes = *b"sixteen bytes ok";
        assert_eq!(Comm::from_array(bytes).as_bytes(), &bytes);
        assert_eq!(Comm::from_array([0; 16]), Comm::EMPTY);
    }

    #[test]
    fn hostile_names_are_escaped() {
        assert_eq!(escape(b"a\x1b[31m\n"), "a\\x1b[31m\\x0a");
        let mut lines = "\x1b a\tb\r\n\x1bc".to_owned();
        escape_lines(&mut lines, 2);
        assert_eq!(lines, "\x1b a\tb\\x0d\n\\x1bc");
        assert_eq!(escape(b"\xff\xfe ok"), "\\xff\\xfe ok");
        assert_eq!(escape("caf\u{e9} \u{202e}x".as_bytes()), "caf\u{e9} \\u{202e}x");
    }

    #[test]
    fn differences_never_overflow() {
        assert_eq!(Ts::MAX.since(Ts::MIN), Dur((1 << 63) - 2));
        assert_eq!(Ts(1).since(Ts(2)), Dur(0));
        assert_eq!(Ts::MAX.after(Dur(u64::MAX)), Ts::MAX);
    }
}
