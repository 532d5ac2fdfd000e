//! Records of a trace as a specification sees them.

use crate::expr::{EventValue, Type, word_in};
use crate::{Catalog, Event, EventInfo};
use parse::{EventFormat, Field, Record};
use sched::names::NameHistory;
use sched::{Comm, Cpu, Pid, Ts};
use session::Session;
use session::patterns;

/// The events of a trace, with their fields and counts.
pub(crate) fn catalog(session: &Session) -> Catalog {
    let counts = session.trace.counts();
    let info = |format: &EventFormat| EventInfo {
        id: format.id,
        name: patterns::full_name(format),
        // Some events occur only outside of a part of a trace.
        count: counts
            .buffers
            .iter()
            .map(|buffer| buffer.of(format.id))
            .sum::<u64>()
            .max(session.trace.occurs(format.id).into()),
        fields: format.fields.iter().map(|field| (field.name.to_string(), Form::of(format, field).kind())).collect(),
        is_text: is_text(format),
    };
    // The last word of `uname`, with the host's name or without.
    let uname = session.trace.info().uname;
    let machine = uname.as_deref().and_then(|uname| Some(uname.split_whitespace().next_back()?.to_owned()));
    Catalog { events: session.trace.formats().iter().map(info).collect(), machine }
}

/// Texts of the user's: those of trace_marker and trace_printk.
fn is_text(format: &EventFormat) -> bool {
    format.system == "ftrace" && matches!(format.name.as_str(), "print" | "bprint" | "bputs")
}

/// The form of a field's value in a specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A signed or unsigned integer.
    Number,
    /// The address of a function, which reads as its name (function_graph's events).
    Function,
    /// The number of a block device, which reads as two.
    Device,
    /// A text, or anything else that is not a single number.
    Text,
}

impl Form {
    fn of(format: &EventFormat, field: &Field) -> Form {
        let is_number = !field.is_text() && matches!(field.size, 1 | 2 | 4 | 8) && !field.kind.contains('[');
        match field.kind.as_str() {
            _ if format.system == "ftrace" && field.name == "func" => Form::Function,
            "dev_t" if field.size == 4 => Form::Device,
            _ if is_number => Form::Number,
            _ => Form::Text,
        }
    }

    fn kind(self) -> Type {
        if self == Form::Number { Type::Number } else { Type::Text }
    }
}

/// A record, with the names of tasks at its time.
pub(crate) struct Recorded<'r> {
    pub(crate) record: Record<'r>,
    pub(crate) called: Called<'r>,
}

/// The source of the name of a record's task.
#[derive(Clone, Copy)]
pub(crate) enum Called<'r> {
    /// The names that the recorder saved.
    Saved,
    /// The names of all tasks over time.
    History(&'r NameHistory),
    /// The name itself.
    Name(Comm),
}

impl<'r> Recorded<'r> {
    /// A record, with the names of tasks if a specification uses them.
    pub(crate) fn new(record: &Record<'r>, called: Option<&'r NameHistory>) -> Recorded<'r> {
        Recorded { record: *record, called: called.map_or(Called::Saved, Called::History) }
    }

    /// The name of its task.
    pub(crate) fn comm(&self) -> Comm {
        let saved = || self.record.command();
        match self.called {
            Called::Saved => saved(),
            Called::History(names) => names.of(self.record.pid(), self.record.ts).unwrap_or_else(saved),
            Called::Name(comm) => comm,
        }
    }
}

impl Event for Recorded<'_> {
    fn ts(&self) -> Ts {
        self.record.ts
    }

    fn cpu(&self) -> Cpu {
        self.record.cpu
    }

    fn pid(&self) -> Pid {
        self.record.pid()
    }

    fn id(&self) -> u16 {
        self.record.id()
    }

    fn name(&self) -> &str {
        self.record.format().map_or("", |format| &format.name)
    }

    fn command(&self) -> String {
        self.comm().to_string()
    }

    fn field(&self, name: &str) -> Option<EventValue> {
        let format = self.record.format()?;
        let Some(field) = format.field(name) else {
            return if is_text(format) { word_in(&self.text(), name) } else { None };
        };
        match Form::of(format, field) {
            Form::Number => {
                let n = self.record.number(name)?;
                let is_unsigned = !field.signed && field.size == 8;
                Some(EventValue::Number(if is_unsigned { n.cast_unsigned().into() } else { n.into() }))
            }
            Form::Function => self.record.function(name).map(EventValue::Text),
            Form::Device => {
                // The kernel's own numbers have twenty bits for the minor one (MINORBITS).
                let device = self.record.number(name)?;
                Some(EventValue::Text(format!("{},{}", device >> 20, device & 0xf_ffff)))
            }
            Form::Text => self.record.field_text(name).map(EventValue::Text),
        }
    }

    fn text(&self) -> String {
        let text = self.record.text().unwrap_or_else(|| self.record.printed());
        sched::event::escaped(text.trim_end().to_owned())
    }

    fn is_after_loss(&self) -> bool {
        self.record.lost.is_some()
    }
}
