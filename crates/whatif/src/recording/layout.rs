//! The records of simulated events, in the layout of a 64-bit kernel, and the descriptions of these records.

use sched::{Comm, EventKind, PrevState, SchedEvent, StateClass, TaskRef, Tracepoint};
use std::fmt::Write;

/// The shape of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldShape {
    /// A number of four bytes with a sign.
    Int,
    /// A number of eight bytes with a sign.
    Long,
    /// A name in 16 bytes.
    Name,
    /// A text behind the fixed fields, described by a word of four bytes.
    Text,
}

use FieldShape::{Int, Long, Name, Text};

/// A kind of event: its tracepoint, nothing for the mark, and its fields behind the common ones.
struct Layout {
    of: Option<Tracepoint>,
    fields: &'static [(&'static str, FieldShape)],
}

const WAKEUP: &[(&str, FieldShape)] = &[("comm", Name), ("pid", Int), ("prio", Int), ("target_cpu", Int)];

/// The kinds of events; the number of each is its place behind [`FIRST`].
const LAYOUTS: [Layout; 10] = [
    Layout {
        of: Some(Tracepoint::Switch),
        fields: &[
            ("prev_comm", Name),
            ("prev_pid", Int),
            ("prev_prio", Int),
            ("prev_state", Long),
            ("next_comm", Name),
            ("next_pid", Int),
            ("next_prio", Int),
        ],
    },
    Layout { of: Some(Tracepoint::Waking), fields: WAKEUP },
    Layout { of: Some(Tracepoint::Wakeup), fields: WAKEUP },
    Layout { of: Some(Tracepoint::WakeupNew), fields: WAKEUP },
    Layout {
        of: Some(Tracepoint::Migrate),
        fields: &[("comm", Name), ("pid", Int), ("prio", Int), ("orig_cpu", Int), ("dest_cpu", Int)],
    },
    Layout {
        of: Some(Tracepoint::Fork),
        fields: &[("parent_comm", Name), ("parent_pid", Int), ("child_comm", Name), ("child_pid", Int)],
    },
    Layout { of: Some(Tracepoint::Exec), fields: &[("filename", Text), ("pid", Int), ("old_pid", Int)] },
    Layout { of: Some(Tracepoint::Exit), fields: &[("comm", Name), ("pid", Int), ("prio", Int)] },
    Layout { of: Some(Tracepoint::Rename), fields: &[("pid", Int), ("oldcomm", Name), ("newcomm", Name)] },
    // A mark of each CPU at the start, and of the end: all that is simulated lies between.
    Layout { of: None, fields: &[] },
];

impl Layout {
    fn system(&self) -> &'static str {
        self.of.map_or("schedviz", Tracepoint::system)
    }

    fn name(&self) -> &'static str {
        self.of.map_or("simulated", Tracepoint::name)
    }
}

/// The number of the first kind of event.
const FIRST: u16 = 300;

/// The systems with events, in the order of their descriptions.
const SYSTEMS: [&str; 3] = ["sched", "task", "schedviz"];

/// The form in which a switch is printed, which has the letters of the states. Without a letter for preempted tasks the numbers mean the
/// same, whatever the kernel's release is.
const SWITCH: &str = concat!(
    r#""prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s ==> next_comm=%s next_pid=%d next_prio=%d", "#,
    r#"REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, "|", "#,
    r#"{ 0x01, "S" }, { 0x02, "D" }, { 0x04, "T" }, { 0x08, "t" }, { 0x10, "X" }, { 0x20, "Z" }, { 0x40, "P" }, { 0x80, "I" }) "#,
    r#": "R", REC->next_comm, REC->next_pid, REC->next_prio"#
);

/// The descriptions of the events of each system, as tracefs has them.
pub(super) fn formats() -> Vec<(&'static str, Vec<String>)> {
    let of = |system: &'static str| {
        let layouts = (FIRST..).zip(&LAYOUTS).filter(|(_, layout)| layout.system() == system);
        (system, layouts.map(|(id, layout)| format(id, layout)).collect())
    };
    SYSTEMS.into_iter().map(of).collect()
}

fn format(id: u16, layout: &Layout) -> String {
    let mut text = format!("name: {}\nID: {id}\nformat:\n", layout.name());
    let mut at = 0;
    let mut field = |text: &mut String, declaration: &str, size: usize, is_signed: bool| {
        // A name begins wherever the field before it ends.
        let alignment = if declaration.starts_with("char ") { 1 } else { size };
        at = usize::next_multiple_of(at, alignment);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\tfield:{declaration};\toffset:{at};\tsize:{size};\tsigned:{};", u8::from(is_signed));
        at += size;
    };
    field(&mut text, "unsigned short common_type", 2, false);
    field(&mut text, "unsigned char common_flags", 1, false);
    field(&mut text, "unsigned char common_preempt_count", 1, false);
    field(&mut text, "int common_pid", 4, true);
    text.push('\n');
    for (name, shape) in layout.fields {
        match shape {
            Int => field(&mut text, &format!("int {name}"), 4, true),
            Long => field(&mut text, &format!("long {name}"), 8, true),
            Name => field(&mut text, &format!("char {name}[16]"), 16, false),
            Text => field(&mut text, &format!("__data_loc char[] {name}"), 4, false),
        }
    }
    let numbers = layout.fields.iter().filter(|(_, shape)| *shape == Int);
    let names: Vec<&str> = numbers.map(|(name, _)| *name).collect();
    let shown: Vec<String> = names.iter().map(|name| format!("{name}=%d")).collect();
    let values: String = names.iter().map(|name| format!(", REC->{name}")).collect();
    match layout.of {
        Some(Tracepoint::Switch) => text + "\nprint fmt: " + SWITCH + "\n",
        _ => text + &format!("\nprint fmt: \"{}\"{values}\n", shown.join(" ")),
    }
}

/// A record that is being written.
struct RecordOf<'o>(&'o mut Vec<u8>);

impl RecordOf<'_> {
    fn int(self, value: i32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn name(self, comm: Comm) -> Self {
        let mut name = [0; 16];
        name.iter_mut().zip(comm.as_bytes()).for_each(|(to, from)| *to = *from);
        self.0.extend(name);
        self
    }

    fn task(self, task: &TaskRef) -> Self {
        self.name(task.comm).int(task.pid.0).int(task.prio)
    }

    fn cpu(self, cpu: sched::Cpu) -> Self {
        self.int(cpu.0.cast_signed())
    }
}

/// The number of a state as [`SWITCH`] has it.
fn state(state: PrevState) -> i64 {
    match state.class {
        StateClass::Runnable | StateClass::Preempted => 0,
        StateClass::Dead => 0x10,
        // The letters of sleeping tasks are those of most kernels.
        StateClass::Asleep => i64::from(state.raw & 0xcf).max(1),
    }
}

/// Appends the record of an event; false, and nothing, for an event that no simulation emits.
pub(super) fn record(event: &SchedEvent, out: &mut Vec<u8>) -> bool {
    let of = event.kind.tracepoint();
    if of.is_none() && !matches!(event.kind, EventKind::Other { .. }) {
        return false;
    }
    let Some((id, _)) = (FIRST..).zip(&LAYOUTS).find(|(_, layout)| layout.of == of) else { return false };
    out.extend(id.to_ne_bytes());
    out.extend([event.flags, 0]);
    let record = RecordOf(out).int(event.pid.0);
    match event.kind {
        EventKind::Switch { prev, state: after, next } => {
            let record = record.task(&prev);
            record.0.extend(state(after).to_ne_bytes());
            record.task(&next)
        }
        EventKind::Waking { task, target } | EventKind::Wakeup { task, target } => record.task(&task).cpu(target),
        EventKind::WakeupNew { task, target } => record.task(&task).cpu(target),
        EventKind::Migrate { task, orig, dest } => record.task(&task).cpu(orig).cpu(dest),
        EventKind::Fork { parent, child, child_comm } => {
            record.name(child_comm).int(parent.0).name(child_comm).int(child.0)
        }
        EventKind::Exec { pid, old_pid, program } => {
            let name = program.as_bytes();
            // The text begins behind the common fields and three words.
            let word = (name.len() as u32 + 1) << 16 | 20;
            let record = record.int(word.cast_signed()).int(pid.0).int(old_pid.0);
            record.0.extend(name);
            record.0.push(0);
            record
        }
        EventKind::Exit { pid } => record.name(Comm::EMPTY).int(pid.0).int(0),
        EventKind::Rename { pid, before, after } => record.int(pid.0).name(before).name(after),
        _ => record,
    };
    true
}
