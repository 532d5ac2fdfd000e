//! The switch that shows which task a CPU runs when the window begins.

use super::message::Message;
use sched::{Comm, Cpu, TaskRef};

/// The fields of an event in its bundle.
pub(super) mod event {
    pub(in crate::perfetto) const TIMESTAMP: u32 = 1;
    pub(in crate::perfetto) const PID: u32 = 2;
    pub(super) const SCHED_SWITCH: u32 = 4;
}

fn name(message: &mut Message, field: u32, name: Comm) {
    message.text(field, &sched::event::escape(name.as_bytes()));
}

/// A switch that puts `next` on an idle CPU.
pub(super) fn switch_from_idle(cpu: Cpu, ts: i64, next: TaskRef) -> Message {
    const IDLE_PRIORITY: i64 = 120;
    let mut inner = Message::default();
    name(&mut inner, 1, Comm::new(format!("swapper/{cpu}").as_bytes()));
    inner.signed(2, 0);
    inner.signed(3, IDLE_PRIORITY);
    inner.signed(4, 0);
    name(&mut inner, 5, next.comm);
    inner.signed(6, next.pid.0.into());
    inner.signed(7, next.prio.into());
    let mut message = Message::default();
    message.number(event::TIMESTAMP, ts.max(0).cast_unsigned());
    message.number(event::PID, 0);
    message.put(event::SCHED_SWITCH, inner.bytes());
    message
}
