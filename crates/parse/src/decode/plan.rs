//! The decode plan: chosen once per trace, so that inside the loop an event is an index.

use crate::bytes::{Endian, sign_extend};
use crate::decode::format::{self, EventFormat, Field, FieldShape};
use crate::decode::prev_state::States;
use sched::{Comm, Cpu, EventKind, Pid, PrevState, StateClass, TaskRef, Tracepoint};
use std::ops::Range;

mod fast_path;
mod probe;

use fast_path::FastPath;
use probe::{Era, ProbeAt};

/// A number at a fixed place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct At {
    offset: usize,
    size: usize,
}

impl At {
    fn of(format: &EventFormat, name: &str) -> Option<At> {
        let field = format.field(name)?;
        matches!(field.shape, FieldShape::Scalar | FieldShape::Pointer)
            .then_some(At { offset: field.offset, size: field.size })
    }

    #[inline(always)]
    fn int(self, payload: &[u8], endian: Endian) -> Option<i32> {
        match self.size {
            4 => endian.u32(payload, self.offset).map(u32::cast_signed),
            size => endian.uint(payload, self.offset, size).map(|raw| sign_extend(raw, size) as i32),
        }
    }

    #[inline]
    fn uint(self, payload: &[u8], endian: Endian) -> Option<u64> {
        endian.uint(payload, self.offset, self.size)
    }

    /// A CPU number that a machine can have.
    #[inline]
    fn cpu(self, payload: &[u8], endian: Endian) -> Option<Cpu> {
        let cpu = self.int(payload, endian)?.cast_unsigned();
        (cpu < Cpu::LIMIT).then_some(Cpu(cpu))
    }
}

/// A command name, wherever the record has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommAt {
    None,
    Array16(usize),
    Array(usize, usize),
    Dynamic { offset: usize, size: usize, relative: bool },
}

impl CommAt {
    fn of(format: &EventFormat, name: &str) -> CommAt {
        match format.field(name) {
            Some(Field { shape: FieldShape::Array { element: 1 }, offset, size: 16, .. }) => CommAt::Array16(*offset),
            Some(Field { shape: FieldShape::Array { element: 1 }, offset, size, .. }) => CommAt::Array(*offset, *size),
            Some(Field { shape: FieldShape::Dynamic { relative, .. }, offset, size, .. }) => {
                CommAt::Dynamic { offset: *offset, size: *size, relative: *relative }
            }
            _ => CommAt::None,
        }
    }

    #[inline(always)]
    fn comm(self, payload: &[u8], endian: Endian) -> Comm {
        if let CommAt::Array16(offset) = self {
            let raw = payload.get(offset..).and_then(<[u8]>::first_chunk);
            return raw.map_or(Comm::EMPTY, |raw| Comm::from_array(*raw));
        }
        let CommAt::Dynamic { offset, size, relative } = self else {
            return self.bytes(payload, endian).map_or(Comm::EMPTY, Comm::new);
        };
        format::place(payload, offset, size, relative, endian).map_or(Comm::EMPTY, |place| comm_in(payload, place))
    }

    /// The name of a task that executes the file whose name stands here.
    fn program(self, payload: &[u8], endian: Endian) -> Comm {
        self.bytes(payload, endian).map_or(Comm::EMPTY, Comm::of_program)
    }

    #[inline(always)]
    fn bytes(self, payload: &[u8], endian: Endian) -> Option<&[u8]> {
        match self {
            CommAt::None => None,
            CommAt::Array16(offset) => payload.get(offset..offset.saturating_add(16)),
            CommAt::Array(offset, size) => payload.get(offset..offset.saturating_add(size)),
            CommAt::Dynamic { offset, size, relative } => format::dynamic(payload, offset, size, relative, endian),
        }
    }
}

/// The name that stands there. It is short, and most often the record's last field: read in one go, with the bytes
/// before or behind it, and not byte for byte.
#[inline(always)]
fn comm_in(payload: &[u8], place: Range<usize>) -> Comm {
    let rest = payload.get(place.start..).unwrap_or_default();
    let word = match (rest.first_chunk(), payload.last_chunk()) {
        (Some(raw), _) => u128::from_le_bytes(*raw),
        (None, Some(raw)) => {
            u128::from_le_bytes(*raw).checked_shr(128u32.saturating_sub(8 * rest.len() as u32)).unwrap_or(0)
        }
        (None, None) => return Comm::new(payload.get(place).unwrap_or_default()),
    };
    let beyond = 128u32.saturating_sub((place.len() as u32).saturating_mul(8));
    Comm::from_array((word & u128::MAX.checked_shr(beyond).unwrap_or(0)).to_le_bytes())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TaskAt {
    pid: At,
    prio: Option<At>,
    comm: CommAt,
}

impl TaskAt {
    /// The fields `PREFIXpid`, `PREFIXprio`, `PREFIXcomm`.
    fn of(format: &EventFormat, prefix: &str) -> Option<TaskAt> {
        Some(TaskAt {
            pid: At::of(format, &format!("{prefix}pid"))?,
            prio: At::of(format, &format!("{prefix}prio")),
            comm: CommAt::of(format, &format!("{prefix}comm")),
        })
    }

    #[inline(always)]
    fn task(&self, payload: &[u8], endian: Endian) -> Option<TaskRef> {
        Some(TaskRef {
            pid: Pid(self.pid.int(payload, endian)?),
            prio: self.prio.and_then(|at| at.int(payload, endian)).unwrap_or(0),
            comm: self.comm.comm(payload, endian),
        })
    }
}

/// Places of the fields of `sched_switch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SwitchAt {
    prev: TaskAt,
    state: At,
    next: TaskAt,
}

/// A `sched_waking`, `sched_wakeup` or `sched_wakeup_new`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WakeupAt {
    task: TaskAt,
    target: At,
    success: Option<At>,
}

/// Places of the fields of `sched_migrate_task`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MigrateAt {
    task: TaskAt,
    orig: At,
    dest: At,
}

/// Places of the fields of `sched_process_fork`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ForkAt {
    parent: At,
    child: At,
    child_comm: CommAt,
}

/// The way to decode an event of one kind.
#[derive(Clone, Copy, Debug)]
enum Decode {
    Switch(SwitchAt),
    Waking(WakeupAt),
    Wakeup(WakeupAt),
    WakeupNew(WakeupAt),
    Migrate(MigrateAt),
    Fork(ForkAt),
    Exec { pid: At, old_pid: Option<At>, program: CommAt },
    Rename { pid: At, before: CommAt, after: CommAt },
    Exit { pid: At },
    Frequency { state: At, cpu: At },
    Interrupt { entry: bool },
    Stack,
    Numa { pid: At, with: Option<At>, src: At, dst: At, nodes: Option<[At; 2]>, stuck: bool },
    Probe(ProbeAt),
}

impl Decode {
    /// The decoding for a format, if it is an event of the scheduler's state.
    fn of(format: &EventFormat) -> Option<Decode> {
        let at = |name: &str| At::of(format, name);
        // Before 2.6.3x the target was called `cpu`.
        let target = || at("target_cpu").or_else(|| at("cpu"));
        let wakeup = || Some(WakeupAt { task: TaskAt::of(format, "")?, target: target()?, success: at("success") });
        Some(match Tracepoint::of(&format.system, &format.name)? {
            Tracepoint::Switch => {
                let (prev, next) = (TaskAt::of(format, "prev_")?, TaskAt::of(format, "next_")?);
                Decode::Switch(SwitchAt { prev, state: at("prev_state")?, next })
            }
            Tracepoint::Waking => Decode::Waking(wakeup()?),
            Tracepoint::Wakeup => Decode::Wakeup(wakeup()?),
            Tracepoint::WakeupNew => Decode::WakeupNew(wakeup()?),
            Tracepoint::Migrate => Decode::Migrate(MigrateAt {
                task: TaskAt::of(format, "")?,
                orig: at("orig_cpu")?,
                dest: at("dest_cpu")?,
            }),
            Tracepoint::Fork => Decode::Fork(ForkAt {
                parent: at("parent_pid")?,
                child: at("child_pid")?,
                child_comm: CommAt::of(format, "child_comm"),
            }),
            Tracepoint::Exec => {
                Decode::Exec { pid: at("pid")?, old_pid: at("old_pid"), program: CommAt::of(format, "filename") }
            }
            Tracepoint::Exit => Decode::Exit { pid: at("pid")? },
            Tracepoint::Rename => Decode::Rename {
                pid: at("pid")?,
                before: CommAt::of(format, "oldcomm"),
                after: CommAt::of(format, "newcomm"),
            },
            // Before 5.10 a sched_stick_numa had the fields of a move.
            tracepoint @ (Tracepoint::MoveNuma | Tracepoint::SwapNuma | Tracepoint::StickNuma) => Decode::Numa {
                pid: at("src_pid").or_else(|| at("pid"))?,
                with: at("dst_pid"),
                src: at("src_cpu")?,
                dst: at("dst_cpu")?,
                nodes: at("src_nid").zip(at("dst_nid")).map(|(src, dst)| [src, dst]),
                stuck: tracepoint == Tracepoint::StickNuma,
            },
            Tracepoint::Frequency => Decode::Frequency { state: at("state")?, cpu: at("cpu_id")? },
            Tracepoint::KernelStack | Tracepoint::UserStack => Decode::Stack,
            Tracepoint::IrqEntry | Tracepoint::SoftirqEntry => Decode::Interrupt { entry: true },
            Tracepoint::IrqExit | Tracepoint::SoftirqExit => Decode::Interrupt { entry: false },
        })
    }
}

/// The events that a reader wants. All others are skipped, or come as [`EventKind::Other`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Want {
    /// Every event, unknown ones as [`EventKind::Other`]; the state needs these.
    #[default]
    Everything,
    /// Switches, execs and renames, frequencies, interrupts and what NUMA balancing wants; other events only as
    /// [`EventKind::Other`].
    Switches,
    /// Forks and execs, and for the names switches and renames.
    Lineage,
}

/// Something a decoder met that is worth counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Oddities {
    pub(crate) unknown_states: u64,
    pub(crate) bad_cpus: u64,
    pub(crate) short_records: u64,
}

/// The compiled plan of one trace.
#[derive(Clone, Debug)]
pub(crate) struct DecodePlan {
    endian: Endian,
    entries: Vec<Option<Decode>>,
    /// The fast path of each event, by event number; empty where the common fields are not at their usual places.
    usual: Vec<FastPath>,
    states: States,
    /// The table of [`States::table`], for values of `prev_state` that are small.
    small_states: Vec<(StateClass, bool)>,
    common: CommonAt,
    want: Want,
    /// The numbers of the state's events that are not wanted, and come as [`EventKind::Other`].
    unwanted: Vec<u16>,
}

/// The common fields: the same for all events of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommonAt {
    kind: At,
    flags: At,
    pid: At,
    /// Whether the common fields are at the places of [`fast_path::COMMON`].
    usual: bool,
}

impl CommonAt {
    pub(crate) fn of(format: Option<&EventFormat>) -> CommonAt {
        let at = |name, offset, size| format.and_then(|f| At::of(f, name)).unwrap_or(At { offset, size });
        let (kind, flags, pid) = (at("common_type", 0, 2), at("common_flags", 2, 1), at("common_pid", 4, 4));
        let common = CommonAt { kind, flags, pid, usual: true };
        CommonAt { usual: common == fast_path::COMMON, ..common }
    }

    /// The event's number.
    #[inline]
    pub(crate) fn id(&self, payload: &[u8], endian: Endian) -> Option<u16> {
        self.all(payload, endian).0
    }

    #[inline]
    pub(crate) fn pid(&self, payload: &[u8], endian: Endian) -> Pid {
        self.all(payload, endian).1
    }

    /// The event's number, the current task, and the flags.
    #[inline(always)]
    fn all(&self, p: &[u8], e: Endian) -> (Option<u16>, Pid, u8) {
        // The usual places are constants for the compiler, which reads them without a lookup.
        if self.usual { fast_path::COMMON.here(p, e) } else { self.here(p, e) }
    }

    #[inline(always)]
    fn here(&self, p: &[u8], e: Endian) -> (Option<u16>, Pid, u8) {
        let id = self.kind.uint(p, e).and_then(|id| u16::try_from(id).ok());
        (id, self.pid.int(p, e).map_or(Pid(-1), Pid), self.flags.uint(p, e).map_or(0, |flags| flags as u8))
    }
}

/// Whether the other end of a handler is recorded as well, without which nothing shows for how long it ran.
fn has_other_end(format: &EventFormat, formats: &[EventFormat]) -> bool {
    let ends = [("_entry", "_exit"), ("_exit", "_entry")];
    let other =
        ends.into_iter().find_map(|(this, other)| Some(format.name.as_str().strip_suffix(this)?.to_owned() + other));
    formats.iter().any(|of| of.system == format.system && other.as_deref() == Some(of.name.as_str()))
}

impl DecodePlan {
    /// Compiles the plan for `formats`.
    pub(crate) fn new(formats: &[EventFormat], endian: Endian, states: States, want: Want) -> DecodePlan {
        DecodePlan::of_kernel(formats, endian, states, want, None)
    }

    /// Compiles the plan for `formats` of a kernel of this release, on which some numbers in the records of probes
    /// depend.
    pub(crate) fn of_kernel(
        formats: &[EventFormat],
        endian: Endian,
        states: States,
        want: Want,
        release: Option<(u32, u32)>,
    ) -> DecodePlan {
        let era = Era::of(formats, release);
        let (small_states, common) = (states.table(), CommonAt::of(formats.first()));
        let (entries, usual, unwanted) = Default::default();
        let mut plan = DecodePlan { endian, entries, usual, states, small_states, common, want, unwanted };
        for format in formats {
            let probe = || ProbeAt::of(format, era).map(Decode::Probe);
            let Some(decode) = Decode::of(format).or_else(probe) else { continue };
            if matches!(decode, Decode::Interrupt { .. }) && !has_other_end(format, formats) {
                continue;
            }
            if !plan.wants(&decode) {
                if Tracepoint::STATE.iter().any(|tracepoint| format.name == tracepoint.name()) {
                    plan.unwanted.push(format.id);
                }
                continue;
            }
            let id = usize::from(format.id);
            if id >= plan.entries.len() {
                plan.entries.resize(id.saturating_add(1), None);
            }
            if let Some(entry) = plan.entries.get_mut(id) {
                // The first of several formats with the same number counts.
                entry.get_or_insert(decode);
            }
        }
        if common.usual {
            let last = formats.iter().map(|format| format.id).max().unwrap_or(0);
            plan.usual = vec![FastPath::of(None, want); usize::from(last).saturating_add(1)];
            for (usual, entry) in plan.usual.iter_mut().zip(&plan.entries) {
                *usual = FastPath::of(entry.as_ref(), want);
            }
        }
        plan
    }

    /// Returns the way to decode the events with this number; `None` where they are not decoded.
    fn entry(&self, id: u16) -> Option<&Decode> {
        self.entries.get(usize::from(id))?.as_ref()
    }

    fn wants(&self, decode: &Decode) -> bool {
        match self.want {
            Want::Everything => true,
            Want::Switches => {
                use Decode::{Exec, Frequency, Interrupt, Numa, Rename, Stack, Switch};
                let of_tasks = matches!(decode, Switch(_) | Exec { .. } | Rename { .. } | Numa { .. });
                of_tasks || matches!(decode, Frequency { .. } | Interrupt { .. } | Stack)
            }
            Want::Lineage => {
                use Decode::{Exec, Fork, Rename, Switch};
                matches!(decode, Fork(_) | Exec { .. } | Rename { .. } | Switch(_))
            }
        }
    }

    pub(crate) fn common(&self) -> &CommonAt {
        &self.common
    }

    pub(crate) fn endian(&self) -> Endian {
        self.endian
    }

    /// The numbers of the state's events that come as [`EventKind::Other`].
    pub(crate) fn unwanted(&self) -> &[u16] {
        &self.unwanted
    }

    /// Decodes a record of this byte order; `emit` gets the current task, the flags, and the kind of the event.
    ///
    /// Each kind of event is emitted where it is decoded: that lets the compiler write it where it will stand.
    #[inline(always)]
    pub(crate) fn decode(&self, e: Endian, p: &[u8], odd: &mut Oddities, mut emit: impl FnMut(Pid, u8, EventKind)) {
        let common = p.first_chunk::<{ fast_path::COMMON_SIZE }>();
        let (id, pid, flags) = common.map_or((None, Pid(-1), 0), |p| fast_path::COMMON.here(p, e));
        // Nearly all events are one of these, and whole.
        match id.and_then(|id| self.usual.get(usize::from(id))) {
            Some(FastPath::Switch) => {
                if let Some(p) = p.first_chunk::<{ fast_path::SWITCH_SIZE }>()
                    && let Some(kind) = self.switch(e, p, &fast_path::SWITCH, odd)
                {
                    return emit(pid, flags, kind);
                }
            }
            Some(FastPath::Waking) => {
                if let Some((task, target)) = fast_path::wakeup(e, p) {
                    return emit(pid, flags, EventKind::Waking { task, target });
                }
            }
            Some(FastPath::Wakeup) => {
                if let Some((task, target)) = fast_path::wakeup(e, p) {
                    return emit(pid, flags, EventKind::Wakeup { task, target });
                }
            }
            Some(FastPath::WakeupNew) => {
                if let Some((task, target)) = fast_path::wakeup(e, p) {
                    return emit(pid, flags, EventKind::WakeupNew { task, target });
                }
            }
            Some(FastPath::Migrate) => {
                if let Some((task, orig, dest)) = fast_path::migrate(&fast_path::MIGRATE, e, p) {
                    return emit(pid, flags, EventKind::Migrate { task, orig, dest });
                }
            }
            Some(FastPath::DynamicMigrate) => {
                if let Some((task, orig, dest)) = fast_path::migrate(&fast_path::DYNAMIC_MIGRATE, e, p) {
                    return emit(pid, flags, EventKind::Migrate { task, orig, dest });
                }
            }
            Some(FastPath::DynamicFork) => {
                if let Some((parent, child, child_comm)) = fast_path::dynamic_fork(e, p) {
                    return emit(pid, flags, EventKind::Fork { parent, child, child_comm });
                }
            }
            Some(FastPath::Exit) => {
                if let Some(left) = fast_path::exit(e, p) {
                    return emit(pid, flags, EventKind::Exit { pid: left });
                }
            }
            Some(FastPath::Stack) => return emit(pid, flags, EventKind::Stack { id: id.unwrap_or_default() }),
            Some(FastPath::Other) => return emit(pid, flags, EventKind::Other { id: id.unwrap_or_default() }),
            Some(FastPath::None) | None => {}
        }
        if let Some((pid, flags, kind)) = self.decode_any(e, p, odd) {
            emit(pid, flags, kind);
        }
    }

    /// Decodes a record of any event: the PID and the flags of its common fields, and its kind. `None` where the record
    /// is too short.
    #[inline(never)]
    pub(crate) fn decode_any(&self, e: Endian, p: &[u8], odd: &mut Oddities) -> Option<(Pid, u8, EventKind)> {
        let (id, pid, flags) = self.common.all(p, e);
        let id = id?;
        let kind = match self.entry(id) {
            Some(decode) => {
                let kind = self.kind(e, decode, p, odd);
                odd.short_records = odd.short_records.saturating_add(u64::from(kind.is_none()));
                kind
            }
            None if self.want == Want::Lineage => return None,
            None => None,
        };
        Some((pid, flags, kind.unwrap_or(EventKind::Other { id })))
    }

    #[inline(always)]
    fn switch(&self, e: Endian, p: &[u8], at: &SwitchAt, odd: &mut Oddities) -> Option<EventKind> {
        let (prev, next, raw) = (at.prev.task(p, e)?, at.next.task(p, e)?, at.state.uint(p, e)?);
        let (state, unknown) = match self.small_states.get(raw as usize).filter(|_| raw <= u64::from(u32::MAX)) {
            Some((class, unknown)) => (PrevState { class: *class, raw: raw as u32 }, *unknown),
            None => {
                let name = prev.comm.as_bytes();
                self.states.decode(raw, || name.starts_with(b"kworker") || name.starts_with(b"rcu_"))
            }
        };
        odd.unknown_states = odd.unknown_states.saturating_add(u64::from(unknown));
        Some(EventKind::Switch { prev, state, next })
    }

    fn kind(&self, e: Endian, decode: &Decode, p: &[u8], odd: &mut Oddities) -> Option<EventKind> {
        let mut cpu = |at: &At| {
            let cpu = at.cpu(p, e);
            odd.bad_cpus = odd.bad_cpus.saturating_add(u64::from(cpu.is_none()));
            cpu
        };
        Some(match decode {
            Decode::Switch(at) => self.switch(e, p, at, odd)?,
            // Kernels before 4.3 report wakeups of tasks that were awake with success = 0.
            Decode::Waking(WakeupAt { success: Some(s), .. }) | Decode::Wakeup(WakeupAt { success: Some(s), .. })
                if s.uint(p, e)? == 0 =>
            {
                EventKind::Other { id: self.common.id(p, e)? }
            }
            Decode::Waking(at) => EventKind::Waking { task: at.task.task(p, e)?, target: cpu(&at.target)? },
            Decode::Wakeup(at) => EventKind::Wakeup { task: at.task.task(p, e)?, target: cpu(&at.target)? },
            Decode::WakeupNew(at) => EventKind::WakeupNew { task: at.task.task(p, e)?, target: cpu(&at.target)? },
            Decode::Migrate(at) => {
                EventKind::Migrate { task: at.task.task(p, e)?, orig: cpu(&at.orig)?, dest: cpu(&at.dest)? }
            }
            Decode::Fork(at) => EventKind::Fork {
                parent: Pid(at.parent.int(p, e)?),
                child: Pid(at.child.int(p, e)?),
                child_comm: at.child_comm.comm(p, e),
            },
            Decode::Exec { pid, old_pid, program } => {
                let pid = Pid(pid.int(p, e)?);
                let old_pid = old_pid.and_then(|at| at.int(p, e)).map_or(pid, Pid);
                EventKind::Exec { pid, old_pid, program: program.program(p, e) }
            }
            Decode::Rename { pid, before, after } => {
                EventKind::Rename { pid: Pid(pid.int(p, e)?), before: before.comm(p, e), after: after.comm(p, e) }
            }
            Decode::Exit { pid } => EventKind::Exit { pid: Pid(pid.int(p, e)?) },
            Decode::Frequency { state, cpu: at } => {
                EventKind::Frequency { khz: state.uint(p, e)? as u32, target: cpu(at)? }
            }
            Decode::Numa { pid, with, src, dst, nodes, stuck } => {
                let src = cpu(src)?;
                // `sched_stick_numa` has -1 where `task_numa_migrate()` found no CPU to go to.
                let dst = if *stuck { dst.cpu(p, e).unwrap_or(src) } else { cpu(dst)? };
                let with = with.and_then(|at| at.int(p, e)).map(Pid);
                // The node is -1 then as well.
                let node = |at: &At| at.int(p, e).and_then(|node| u16::try_from(node).ok());
                let nodes = nodes.as_ref().and_then(|[src, dst]| Some([node(src)?, node(dst)?]));
                EventKind::Numa { pid: Pid(pid.int(p, e)?), with, src, dst, nodes, stuck: *stuck }
            }
            Decode::Stack => EventKind::Stack { id: self.common.id(p, e)? },
            Decode::Probe(at) => EventKind::Probe { id: self.common.id(p, e)?, probe: at.probe(p, e)? },
            Decode::Interrupt { entry } => EventKind::Interrupt { id: self.common.id(p, e)?, entry: *entry },
        })
    }

    /// The number in `prev_state`, and whether the idle task switched out, of a `sched_switch`.
    pub(crate) fn raw_state(&self, payload: &[u8]) -> Option<(u64, bool)> {
        let id = self.common.id(payload, self.endian)?;
        match self.entry(id)? {
            Decode::Switch(at) => {
                Some((at.state.uint(payload, self.endian)?, at.prev.pid.int(payload, self.endian)? == 0))
            }
            _ => None,
        }
    }

    /// Sets how `prev_state` is read.
    pub(crate) fn set_states(&mut self, states: States) {
        self.small_states = states.table();
        self.states = states;
    }
}
