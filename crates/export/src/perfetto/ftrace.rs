//! The scheduler's events as Perfetto's events of ftrace.

use super::message::Message;
use sched::{Comm, Cpu, EventKind, Pid, SchedEvent, TaskRef};

/// The fields of an event in its bundle.
mod event {
    pub(super) const TIMESTAMP: u32 = 1;
    pub(super) const PID: u32 = 2;
    pub(super) const SCHED_SWITCH: u32 = 4;
    pub(super) const CPU_FREQUENCY: u32 = 11;
    pub(super) const SCHED_WAKEUP: u32 = 17;
    pub(super) const SCHED_WAKING: u32 = 20;
    pub(super) const SCHED_WAKEUP_NEW: u32 = 114;
    pub(super) const TASK_RENAME: u32 = 236;
    pub(super) const SCHED_PROCESS_EXEC: u32 = 237;
    pub(super) const SCHED_PROCESS_EXIT: u32 = 238;
    pub(super) const SCHED_PROCESS_FORK: u32 = 239;
    pub(super) const SCHED_MIGRATE_TASK: u32 = 491;
}

fn name(message: &mut Message, field: u32, name: Comm) {
    message.text(field, &sched::event::escape(name.as_bytes()));
}

fn task(message: &mut Message, fields: [u32; 3], task: TaskRef) {
    name(message, fields[0], task.comm);
    message.signed(fields[1], task.pid.0.into());
    message.signed(fields[2], task.prio.into());
}

fn woken(message: &mut Message, woken: TaskRef, target: Cpu) {
    task(message, [1, 2, 3], woken);
    message.number(5, target.0.into());
}

/// A switch that puts `next` on an idle CPU.
pub(super) fn switch_from_idle(cpu: Cpu, ts: i64, next: TaskRef) -> Message {
    let idle = TaskRef { pid: Pid::IDLE, prio: 120, comm: Comm::new(format!("swapper/{cpu}").as_bytes()) };
    let state = sched::PrevState::RUNNABLE;
    let kind = EventKind::Switch { prev: idle, state, next };
    put(&SchedEvent { ts: sched::Ts(ts), cpu, pid: Pid::IDLE, flags: 0, kind }).unwrap_or_default()
}

/// The event, if Perfetto has it.
pub(super) fn put(of: &SchedEvent) -> Option<Message> {
    let mut inner = Message::default();
    let field = match of.kind {
        EventKind::Switch { prev, state, next } => {
            task(&mut inner, [1, 2, 3], prev);
            inner.signed(4, state.raw.into());
            task(&mut inner, [5, 6, 7], next);
            event::SCHED_SWITCH
        }
        EventKind::Waking { task, target } => {
            woken(&mut inner, task, target);
            event::SCHED_WAKING
        }
        EventKind::Wakeup { task, target } => {
            woken(&mut inner, task, target);
            event::SCHED_WAKEUP
        }
        EventKind::WakeupNew { task, target } => {
            woken(&mut inner, task, target);
            event::SCHED_WAKEUP_NEW
        }
        EventKind::Migrate { task: moved, orig, dest } => {
            task(&mut inner, [1, 2, 3], moved);
            inner.number(4, orig.0.into());
            inner.number(5, dest.0.into());
            event::SCHED_MIGRATE_TASK
        }
        EventKind::Fork { parent, child, child_comm } => {
            inner.signed(2, parent.0.into());
            name(&mut inner, 3, child_comm);
            inner.signed(4, child.0.into());
            event::SCHED_PROCESS_FORK
        }
        EventKind::Exec { pid, old_pid, program } => {
            name(&mut inner, 1, program);
            inner.signed(2, pid.0.into());
            inner.signed(3, old_pid.0.into());
            event::SCHED_PROCESS_EXEC
        }
        EventKind::Rename { pid, before, after } => {
            inner.signed(1, pid.0.into());
            name(&mut inner, 2, before);
            name(&mut inner, 3, after);
            event::TASK_RENAME
        }
        EventKind::Exit { pid } => {
            inner.signed(2, pid.0.into());
            event::SCHED_PROCESS_EXIT
        }
        EventKind::Frequency { khz, target } => {
            inner.number(1, khz.into());
            inner.number(2, target.0.into());
            event::CPU_FREQUENCY
        }
        _ => return None,
    };
    let mut message = Message::default();
    message.number(event::TIMESTAMP, of.ts.0.max(0).cast_unsigned());
    message.number(event::PID, of.pid.0.max(0).cast_unsigned().into());
    message.put(field, inner.bytes());
    Some(message)
}
