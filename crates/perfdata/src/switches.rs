//! Switches that the kernel records without a tracepoint (`perf record -a --switch-events`), as `sched_switch` has them.
//!
//! `PERF_RECORD_SWITCH_CPU_WIDE` is written twice for each switch: as the previous task leaves, and as the next one begins. The first has both
//! tasks, and whether the previous one could still run. Nothing shows wakeups, migrations and priorities.

use crate::record::Trailer;
use parse::Endian;
use sched::seeded::SeededMap;
use sched::{Comm, Cpu, Pid, Tracepoint};
use std::collections::BTreeMap;
use std::io;
use transcript::{At, EventNumber, FieldDef, FieldKind, FieldValue, Transcript};

/// `PERF_RECORD_MISC_SWITCH_OUT` and `PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`.
const OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;

/// The priority of all tasks, as none is recorded.
const PRIORITY: i64 = 120;

/// The switches of a file so far.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    pub(crate) transcript: Transcript,
    event: Option<EventNumber>,
    /// The task that runs on each CPU.
    current: BTreeMap<u32, u32>,
    /// Switches of single tasks, which do not name the other task.
    pub(crate) of_tasks: u64,
}

impl Switches {
    /// Adds a record, whose own task is in its trailer.
    pub(crate) fn add(
        &mut self,
        misc: u16,
        body: &[u8],
        (trailer, endian): (Trailer, Endian),
        names: &SeededMap<Pid, Comm>,
    ) -> io::Result<()> {
        let mut numbers = crate::bytes::Bytes::new(body, endian);
        let (_process, other) = (numbers.u32(), numbers.u32());
        let Trailer { time: Some(time), cpu: Some(cpu), task: Some(task) } = trailer else { return Ok(()) };
        let Some(other) = other.filter(|_| cpu < Cpu::LIMIT) else { return Ok(()) };
        if misc & OUT == 0 {
            // The record before it is missing where another task ran.
            if self.current.insert(cpu, task).is_some_and(|current| current != task) {
                self.transcript.lost(cpu, None);
            }
            return Ok(());
        }
        let current = self.current.insert(cpu, other);
        // A task that has exited has no number any more (`perf_event_tid`).
        let has_exited = task == u32::MAX;
        let task = if has_exited { current.unwrap_or(task) } else { task };
        if current.is_some_and(|current| current != task) {
            self.transcript.lost(cpu, None);
        }
        let Some(event) = self.event() else { return Ok(()) };
        let called = |task: u32| match task {
            0 => Comm::new(format!("swapper/{cpu}").as_bytes()),
            _ => names.get(&Pid(task.cast_signed())).copied().unwrap_or_default(),
        };
        let (prev, next) = (called(task), called(other));
        // Runnable, and preempted; dead; or else interruptible sleep, as which sleep is not recorded. The idle task is always runnable.
        let state = match (task, misc & PREEMPTED) {
            (0, _) => 0,
            _ if has_exited => 0x10,
            (_, 0) => 1,
            _ => 0x100,
        };
        let number = |task: u32| FieldValue::Number(task.cast_signed().into());
        let values = [
            FieldValue::Text(prev.as_bytes()),
            number(task),
            FieldValue::Number(PRIORITY),
            FieldValue::Number(state),
            FieldValue::Text(next.as_bytes()),
            number(other),
            FieldValue::Number(PRIORITY),
        ];
        let at = At { cpu, time, pid: task.cast_signed(), ..At::default() };
        self.transcript.record(at, event, &values)
    }

    fn event(&mut self) -> Option<EventNumber> {
        if self.event.is_none() {
            let fields = [
                ("prev_comm", FieldKind::Comm),
                ("prev_pid", FieldKind::Signed(4)),
                ("prev_prio", FieldKind::Signed(4)),
                ("prev_state", FieldKind::Signed(8)),
                ("next_comm", FieldKind::Comm),
                ("next_pid", FieldKind::Signed(4)),
                ("next_prio", FieldKind::Signed(4)),
            ];
            let fields: Vec<FieldDef> = fields.iter().map(|(name, kind)| FieldDef::new(name, *kind)).collect();
            self.event = self.transcript.event(Tracepoint::Switch.system(), Tracepoint::Switch.name(), fields);
        }
        self.event
    }
}
