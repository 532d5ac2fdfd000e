//! What an event says, as text: by its own print format where that names fields, computes with them, or names their
//! numbers and bits, as nearly all do; else field by field.
//!
//! Two events that `trace-cmd report` prints with a plugin of its own, the switches and the wakeups,
//! come in that form, which is written as a print format too; functions and stacks have code of their own, their
//! addresses as symbols.

use crate::bytes::until_nul;
use crate::expr::{self, Expr, Fields, Number, Parsed};
use crate::format::{EventFormat, Field, zero_extend};
use crate::printk::{self, Source};
use crate::record::Record;
use sched::event::{escape, escape_lines};
use std::borrow::Cow;
use std::fmt::Write;

/// The print format of an event, where it is one that can be followed.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    format: printk::Format,
    arguments: Vec<Expr>,
    /// The fields that the arguments name, by their places in the event's.
    fields: Vec<usize>,
}

impl Form {
    /// That of an event: for those that `trace-cmd report` prints with a plugin, the plugin's.
    pub(crate) fn of(format: &EventFormat) -> Option<Form> {
        let plugin = match (format.system.as_str(), format.name.as_str()) {
            ("sched", "sched_switch") => Form::parse(SWITCH, format),
            ("sched", "sched_wakeup" | "sched_wakeup_new") => Form::parse(&wakeup(format), format),
            // Function graphs are printed by code, not by the format that they have.
            ("ftrace", name) if name.starts_with("funcgraph") => return None,
            _ => None,
        };
        plugin.or_else(|| Form::parse(&format.print_fmt, format))
    }

    /// `"pid=%d comm=%s", REC->pid, __get_str(comm)`.
    fn parse(print_fmt: &str, format: &EventFormat) -> Option<Form> {
        let Parsed { expressions, fields } = expr::parse(print_fmt)?;
        let place = |name: &String| format.fields.iter().position(|field| field.name == *name);
        let fields = fields.iter().map(place).collect::<Option<Vec<usize>>>()?;
        let mut expressions = expressions.into_iter();
        let Expr::Text(text) = expressions.next()? else { return None };
        Some(Form { format: printk::Format::of(text), arguments: expressions.collect(), fields })
    }

    /// What a record of this format says.
    fn put(&self, record: &Record<'_>, format: &EventFormat, out: &mut String) {
        let values = Values { record, format, fields: &self.fields };
        self.format.put(&mut Arguments { values, rest: self.arguments.iter() }, &record.kernel(), out);
    }
}

/// A switch; its state in letters. The plugin knows those of one old kernel only, and no sign of preemption.
const SWITCH: &str = r#""%s:%d [%d] %s ==> %s:%d [%d]", REC->prev_comm, REC->prev_pid, REC->prev_prio,
    REC->prev_state, REC->next_comm, REC->next_pid, REC->next_prio"#;

/// The format of a wakeup. Whether it succeeded (kernels before 5.14), and where it leads, is said where the event has it.
fn wakeup(format: &EventFormat) -> String {
    let (mut words, mut fields) = ("%s:%d [%d]".to_owned(), "REC->comm, REC->pid, REC->prio".to_owned());
    for (field, said) in [("success", " success=%d"), ("target_cpu", " CPU:%03d")] {
        if format.field(field).is_some() {
            words.push_str(said);
            fields.push_str(", REC->");
            fields.push_str(field);
        }
    }
    format!("\"{words}\", {fields}")
}

/// What a record has in the fields that a form names.
struct Values<'r> {
    record: &'r Record<'r>,
    format: &'r EventFormat,
    fields: &'r [usize],
}

impl<'r> Values<'r> {
    fn field(&self, place: usize) -> Option<&'r Field> {
        self.format.fields.get(*self.fields.get(place)?)
    }
}

impl<'r> Fields<'r> for Values<'r> {
    fn number(&self, field: usize) -> Option<Number> {
        let field = self.field(field)?;
        let bits = field.number(self.record.payload(), self.record.endian())?;
        Some(Number { bits, unsigned: !field.signed && field.size == 8 })
    }

    fn element(&self, field: usize, index: usize) -> Option<Number> {
        self.field(field)?.element(self.record.payload(), index, self.record.endian())
    }

    fn text(&self, field: usize) -> Option<Cow<'r, [u8]>> {
        let field = self.field(field)?;
        match field.name.as_str() {
            // Only the form of a switch takes it for a text.
            "prev_state" if !field.is_text() => Some(self.record.letters(field)?.into_bytes().into()),
            _ => Some(until_nul(field.bytes(self.record.payload(), self.record.endian())).into()),
        }
    }
}

/// The values for the conversions of a form, one after the other.
struct Arguments<'r> {
    values: Values<'r>,
    rest: std::slice::Iter<'r, Expr>,
}

impl<'r> Source<'r> for Arguments<'r> {
    fn number(&mut self, size: usize) -> Option<u64> {
        Some(zero_extend(self.rest.next()?.number(&self.values)?.bits.cast_unsigned(), size))
    }

    fn string(&mut self) -> Option<Cow<'r, [u8]>> {
        Some(match self.rest.next()?.text(&self.values)? {
            Cow::Borrowed(text) => match escape(text) {
                Cow::Borrowed(text) => text.as_bytes().into(),
                Cow::Owned(text) => text.into_bytes().into(),
            },
            Cow::Owned(text) => escape(&text).into_owned().into_bytes().into(),
        })
    }
}

impl Record<'_> {
    /// What the event says, as `trace-cmd report` has it behind the event's name, without a newline
    /// at the end, and escaped where it could move a terminal's cursor.
    pub fn printed(&self) -> String {
        let mut out = String::new();
        self.print(&mut out);
        out
    }

    /// The same, behind what is in `out`.
    pub fn print(&self, out: &mut String) {
        let from = out.len();
        self.put(out);
        // What the file itself holds, formats and symbols, is no more to be trusted than names.
        escape_lines(out, from);
    }

    fn put(&self, out: &mut String) {
        let Some(format) = self.format() else { return };
        if format.system == "ftrace" && self.put_of_the_tracer(&format.name, out).is_some() {
            return;
        }
        match format.form() {
            Some(form) => form.put(self, format, out),
            None => self.put_fields(format, out),
        }
    }

    /// Whether [`Record::printed`] follows the event's own print format, or a form that stands for it.
    pub fn is_printed_exactly(&self) -> bool {
        let Some(format) = self.format() else { return false };
        match (format.system.as_str(), format.name.as_str()) {
            ("ftrace", "print" | "bprint" | "bputs" | "function" | "kernel_stack") => true,
            _ => format.form().is_some(),
        }
    }

    /// The tracer's own events, whose formats are not meant for printing.
    fn put_of_the_tracer(&self, name: &str, out: &mut String) -> Option<()> {
        match name {
            "print" | "bprint" | "bputs" => {
                let (place, text) = (self.number("ip")?, self.text()?);
                self.put_symbol(place, out);
                out.push_str(": ");
                out.push_str(text.trim_end());
            }
            "function" => self.put_symbol(self.number("ip")?, out),
            "kernel_stack" => self.put_stack(out),
            _ => return None,
        }
        Some(())
    }

    /// An address as its symbol.
    fn put_symbol(&self, address: i64, out: &mut String) {
        match self.symbol(address.cast_unsigned()) {
            Some((name, _)) => out.push_str(name),
            // Writing to a string cannot fail.
            None => drop(write!(out, "{address:#x}")),
        }
    }

    /// Each caller in a line of its own.
    fn put_stack(&self, out: &mut String) {
        out.push_str("<stack trace >");
        let (endian, long) = (self.endian(), self.long());
        // The field is declared with eight callers, and has as many as the record.
        let start = self.format().and_then(|f| f.field("caller")).map_or(usize::MAX, |f| f.offset);
        for chunk in self.payload().get(start..).unwrap_or_default().chunks_exact(long.max(1)) {
            let Some(address) = endian.uint(chunk, 0, long) else { break };
            // All ones end a stack of early kernels.
            if address == u64::MAX >> (64 - 8 * long.clamp(1, 8)) {
                break;
            }
            let name = self.symbol(address).map_or("", |(name, _)| name);
            // Writing to a string cannot fail.
            let _ = write!(out, "\n=> {name} ({address:x})");
        }
    }

    /// `name=value` for each field.
    fn put_fields(&self, format: &EventFormat, out: &mut String) {
        for (nth, field) in format.own_fields().enumerate() {
            if nth > 0 {
                out.push(' ');
            }
            out.push_str(&field.name);
            out.push('=');
            self.put_field(field, out);
        }
    }

    fn put_field(&self, field: &Field, out: &mut String) {
        // The addresses of functions, of function graphs above all.
        let is_code = matches!(field.name.as_str(), "ip" | "parent_ip" | "func");
        let bytes = field.bytes(self.payload(), self.endian());
        // Writing to a string cannot fail.
        let _ = match field.number(self.payload(), self.endian()) {
            Some(n) if is_code => return self.put_symbol(n, out),
            Some(n) if matches!(field.shape, crate::format::Shape::Pointer) => write!(out, "{n:#x}"),
            Some(n) if field.signed => write!(out, "{n}"),
            Some(n) => write!(out, "{}", n.cast_unsigned()),
            None if field.is_text() => write!(out, "{}", escape(until_nul(bytes))),
            None => {
                let shown: Vec<String> = bytes.iter().take(32).map(|b| format!("{b:02x}")).collect();
                let more = if bytes.len() > 32 { "\u{2026}" } else { "" };
                write!(out, "[{}{more}]", shown.join(" "))
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(print_fmt: &str) -> Option<(String, usize)> {
        let text = format!(
            "name: x\nID: 5\nformat:\n\tfield:int pid;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:int cpu;\toffset:12;\tsize:4;\tsigned:1;\n\nprint fmt: {print_fmt}\n"
        );
        let format = EventFormat::parse("test", &text)?;
        Form::of(&format).map(|form| (form.format.text().to_owned(), form.arguments.len()))
    }

    #[test]
    fn formats_that_can_be_followed() {
        assert_eq!(of("\"pid=%d \\\"%d\\\"\", REC->pid, REC->cpu"), Some(("pid=%d \"%d\"".into(), 2)));
        assert_eq!(of("\"nothing\""), Some(("nothing".into(), 0)));
        assert_eq!(of("\"%d\" \" %s\", REC->pid + 1, REC->cpu ? \"a\" : \"b\""), Some(("%d %s".into(), 2)));
        assert_eq!(of("\"%s\", __print_flags(REC->pid, \"|\", {1, \"S\"})"), Some(("%s".into(), 1)));
        assert_eq!(of("\"%d\", REC->unheard"), None);
        assert_eq!(of("\"%s\", __print_hex(REC->pid, 4)"), None);
        assert_eq!(of("no literal"), None);
    }
}
