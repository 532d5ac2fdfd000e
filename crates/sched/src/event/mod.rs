//! Time, CPUs, tasks and the scheduler's events.

mod cpu_mask;
pub mod diag;
pub mod kthread;
pub mod probe;
pub mod span;
pub(crate) mod task_id;
pub(crate) mod tracepoint;

pub use cpu_mask::CpuMask;
use probe::Probe;
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// An instant: nanoseconds in the trace's own clock, after its corrections.
///
/// Signed, since corrections (`DATE`, `OFFSET`) may bring an instant below zero. The reader keeps
/// instants within [`Ts::MIN`] and [`Ts::MAX`], so that a difference never overflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Ts(pub i64);

impl Ts {
    /// The earliest instant that a reader delivers.
    pub const MIN: Ts = Ts(1 - (1 << 62));
    /// The latest instant that a reader delivers.
    pub const MAX: Ts = Ts((1 << 62) - 1);

    /// The time passed since `earlier`; zero if that is not earlier.
    pub fn since(self, earlier: Ts) -> Dur {
        Dur(self.0.max(earlier.0).abs_diff(earlier.0))
    }

    /// This instant, `d` later; at most [`Ts::MAX`].
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
    /// In the unit that suits it, for people: `750 ns`, `12.3 µs`, `4.56 ms`, `12.345 s`.
    pub fn human(self) -> String {
        match self.0 {
            ns @ 0..1_000 => format!("{ns} ns"),
            ns @ 1_000..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
            ns @ 1_000_000..1_000_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
            _ => format!("{:.3} s", self.seconds()),
        }
    }

    /// In seconds, for people. Sums and comparisons stay in nanoseconds.
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
    /// One more than the largest CPU number that is believed. The kernel's own limit is 8192; a
    /// larger number in a file is damage, and must not size a table.
    pub const LIMIT: u32 = 1 << 16;

    /// As an index into a table by CPU.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A thread, by its number in the initial pid namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Pid(pub i32);

impl Pid {
    /// The idle task. There is one on each CPU, all with this number; it is never a task here.
    pub const IDLE: Pid = Pid(0);
    /// `kthreadd`, the parent of all kernel threads.
    pub const KTHREADD: Pid = Pid(2);

    /// Whether this is the idle task.
    pub fn is_idle(self) -> bool {
        self == Pid::IDLE
    }

    /// The task for people: `hackbench 1217`; `task 1217` where its name was not seen; `idle`.
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
    /// The absent name.
    pub const EMPTY: Comm = Comm([0; 16]);

    /// The bytes up to the first NUL, at most sixteen. Bytes behind the NUL in a record are stale.
    pub fn new(bytes: &[u8]) -> Comm {
        let mut name = [0; 16];
        let length = bytes.len().min(16);
        name[..length].copy_from_slice(&bytes[..length]);
        Comm::from_array(name)
    }

    /// From a `char[16]` as it stands in a record.
    pub fn from_array(bytes: [u8; 16]) -> Comm {
        let word = u128::from_le_bytes(bytes);
        let zeros = zero_bytes(word);
        // All bits up to the top one of the first zero byte; where there is none, all.
        Comm((word & (zeros ^ zeros.wrapping_sub(1))).to_le_bytes())
    }

    /// The bytes, with zeros behind the name.
    pub fn array(&self) -> &[u8; 16] {
        &self.0
    }

    /// The name of a task that executes this file: the last part of its name, fifteen bytes of it at most.
    pub fn of_program(file: &[u8]) -> Comm {
        let file = file.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = file.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        Comm::new(&name[..name.len().min(15)])
    }

    /// The bytes of the name.
    pub fn as_bytes(&self) -> &[u8] {
        let end = first_nul(u128::from_le_bytes(self.0));
        self.0.get(..end).unwrap_or(&self.0)
    }

    /// Whether `byte` is in the name.
    pub fn contains(&self, byte: u8) -> bool {
        let others = u128::from_le_bytes(self.0) ^ u128::from_le_bytes([byte; 16]);
        first_nul(others) < 16
    }

    /// Whether nothing is known of the name.
    pub fn is_empty(&self) -> bool {
        self.0[0] == 0
    }
}

/// The top bit of the first zero byte, counted from the least significant, and of some after it; nothing
/// where there is none. All bytes at once: subtracting one borrows into the top bit of a byte that was
/// zero, and of none before it.
#[inline]
fn zero_bytes(word: u128) -> u128 {
    const ONES: u128 = u128::from_le_bytes([1; 16]);
    word.wrapping_sub(ONES) & !word & (ONES << 7)
}

/// The place of the first zero byte; 16 where there is none.
#[inline]
fn first_nul(word: u128) -> usize {
    zero_bytes(word).trailing_zeros() as usize / 8
}

/// As text fit for any output: bytes that are not printable, or not UTF-8, are escaped as `\xNN`.
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

/// Bytes from a trace as text that is safe to print: control characters, bidirectional overrides
/// and bytes that are not UTF-8 become `\xNN` or `\u{N}`, so that a name cannot move a terminal's
/// cursor nor end a line of a report.
pub fn escape(bytes: &[u8]) -> Cow<'_, str> {
    use fmt::Write;
    // Nearly all names are so.
    if let (true, Ok(text)) = (are_plain(bytes), std::str::from_utf8(bytes)) {
        return text.into();
    }
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => {
                    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
                }
                c if c.is_control() => {
                    let _ = write!(out, "\\x{:02x}", u32::from(c));
                }
                c => out.push(c),
            }
        }
        for b in chunk.invalid() {
            let _ = write!(out, "\\x{b:02x}");
        }
    }
    out.into()
}

/// Nothing is to be escaped in these bytes: all of them are looked at at once.
fn are_plain(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'))
}

/// The same of a name, which stays what it is where nothing is to be escaped.
pub fn escaped(name: String) -> String {
    if are_plain(name.as_bytes()) { name } else { escape(name.as_bytes()).into_owned() }
}

/// The same of what stands in `text` from a byte on, of several lines, which stay, and so do tabs.
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
    /// Its thread number.
    pub pid: Pid,
    /// The kernel's priority: 0–99 real time (lower is stronger), 100–139 fair, −1 deadline.
    pub prio: i32,
    /// Its command name at that moment.
    pub comm: Comm,
}

/// The state of a task that was switched out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateClass {
    /// `R`: it could go on running.
    Runnable,
    /// `R+`: runnable, and preempted inside the kernel.
    Preempted,
    /// It sleeps, is stopped, traced, frozen or parked.
    Blocked,
    /// `X` or `Z`: it will never run again.
    Dead,
}

/// The `prev_state` of a `sched_switch`, decoded by the event's own format text: the number alone
/// means five different things on different kernels (`docs/trace-dat.md`, 11.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrevState {
    /// Its class.
    pub class: StateClass,
    /// The number as recorded, for display.
    pub raw: u32,
}

impl PrevState {
    /// `R` of a kernel since 5.0.
    pub const RUNNABLE: PrevState = PrevState { class: StateClass::Runnable, raw: 0 };
    /// `R+` of a kernel since 5.0.
    pub const PREEMPTED: PrevState = PrevState { class: StateClass::Preempted, raw: 0x100 };
    /// `X` of a kernel since 5.0.
    pub const DEAD: PrevState = PrevState { class: StateClass::Dead, raw: 0x10 };

    /// A sleep with this number.
    pub const fn blocked(raw: u32) -> PrevState {
        PrevState { class: StateClass::Blocked, raw }
    }

    /// Whether the task waits for a device or a lock, so that no signal wakes it (`D`).
    pub fn is_uninterruptible(self) -> bool {
        self.class == StateClass::Blocked && self.raw & 2 != 0
    }

    /// Whether the task stays on the run queue.
    pub fn is_runnable(self) -> bool {
        matches!(self.class, StateClass::Runnable | StateClass::Preempted)
    }
}

/// The content of an event, without its time and place.
///
/// `TaskRef` arguments name the task the event is *about*; who emitted it is [`SchedEvent::pid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are the kernel's own, by the kernel's names
pub enum EventKind {
    /// `sched_switch`.
    Switch { prev: TaskRef, state: PrevState, next: TaskRef },
    /// `sched_waking`; `target` is where the task *last ran*, not where it will be placed.
    Waking { task: TaskRef, target: Cpu },
    /// `sched_wakeup`; `target` is the placement.
    Wakeup { task: TaskRef, target: Cpu },
    /// `sched_wakeup_new`: a new life begins on `target`.
    WakeupNew { task: TaskRef, target: Cpu },
    /// `sched_migrate_task`.
    Migrate { task: TaskRef, orig: Cpu, dest: Cpu },
    /// `sched_process_fork`; threads fork as well.
    Fork { parent: Pid, child: Pid, child_comm: Comm },
    /// `sched_process_exec`; `old_pid` differs when a thread that is not the leader executes. `program` is what the
    /// task has been called since shortly before: the last part of the file's name, as the kernel cuts it.
    Exec { pid: Pid, old_pid: Pid, program: Comm },
    /// `task_rename`: a task takes another name, by itself, from `/proc`, or on its way to an exec.
    Rename { pid: Pid, before: Comm, after: Comm },
    /// `sched_process_exit`.
    Exit { pid: Pid },
    /// Events were lost on this CPU, between this instant and its next event. `ts` is that of the
    /// last event before the gap; `count` is what the kernel counted, if it could.
    Lost { count: Option<u64> },
    /// This CPU went offline, from this instant until its next event. The kernel records nothing of it, nor anything
    /// on a CPU that it has marked as offline, as it does in the stopper: a reader concludes it from missing events.
    Offline,
    /// `power:cpu_frequency` in kHz, of `target`.
    Frequency { khz: u32, target: Cpu },
    /// Entry to (`true`) or exit from an interrupt or softirq handler; `id` is the event's number in this file.
    Interrupt { id: u16, entry: bool },
    /// NUMA balancing wants to move `pid` from `src` to `dst` (`sched_move_numa`), to exchange it
    /// with another there (`sched_swap_numa`), or could not (`stuck`, `sched_stick_numa`).
    /// `nodes` are those of the two CPUs.
    Numa { pid: Pid, with: Option<Pid>, src: Cpu, dst: Cpu, nodes: Option<[u16; 2]>, stuck: bool },
    /// A stack that was recorded with another event, behind it (`kernel_stack`, `user_stack`), by its number in this
    /// file. Behind a switch it still names the task that left, so it does not show which task is current.
    Stack { id: u16 },
    /// A record of a probe on the balancer (group `lb`), by its number in this file.
    Probe { id: u16, probe: Probe },
    /// Any other event, by its number in this file; it still shows the running task.
    Other { id: u16 },
}

/// One event, decoded, in trace order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedEvent {
    /// When.
    pub ts: Ts,
    /// On which CPU it was emitted.
    pub cpu: Cpu,
    /// The task that was current on that CPU (`common_pid`).
    pub pid: Pid,
    /// `common_flags`: 0x08 hard interrupt, 0x10 softirq, 0x01 interrupts off.
    pub flags: u8,
    /// The kind of the event.
    pub kind: EventKind,
}

impl SchedEvent {
    /// Whether a softirq handler emitted it.
    pub fn in_softirq(&self) -> bool {
        self.flags & 0x10 != 0
    }

    /// Whether neither a softirq nor an interrupt handler did.
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
