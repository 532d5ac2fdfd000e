//! The text of an event: by its own print format, where that shows its fields, as nearly all do;
//! else field by field.
//!
//! Two events that `trace-cmd report` prints with a plugin of its own, the switches and the wakeups,
//! come in that form, which is written as a print format too; functions and stacks have code of their own, their
//! addresses as symbols.

use crate::bytes::{Endian, NumberLayout, until_nul, zero_extend};
use crate::decode::format::{EventFormat, Field, FieldShape};
use crate::decode::prev_state::States;
use crate::limits::{self, EVENT_TEXT};
use crate::text::expr::{self, Expr, FieldSource, Number, Parsed};
use crate::text::printk::{self, ArgumentSource, MissingValue, Pointed};
use crate::text::symbols::Symbols;
use crate::trace::record::Record;
use sched::Tracepoint;
use sched::event::{escape, escape_lines};
use sched::seeded::SeededMap;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The print format of an event, where it is one that can be followed.
#[derive(Clone, Debug)]
pub(crate) struct PrintForm {
    format: printk::PrintkFormat,
    arguments: Vec<Expr>,
    /// The fields that the arguments name, by their places in the event's.
    fields: Vec<usize>,
    /// Whether all arguments can be evaluated from a record.
    exact: bool,
}

impl PrintForm {
    /// Returns the form of an event. Events that `trace-cmd report` prints with a plugin have the form of the plugin.
    /// `is_plain`: all have that of their own format.
    pub(crate) fn of(format: &EventFormat, is_plain: bool) -> Option<PrintForm> {
        let plugin = match Tracepoint::of(&format.system, &format.name) {
            _ if is_plain => None,
            Some(Tracepoint::Switch) => PrintForm::parse(SWITCH, format),
            Some(Tracepoint::Wakeup | Tracepoint::WakeupNew) => PrintForm::parse(&wakeup(format), format),
            _ => None,
        };
        plugin.or_else(|| PrintForm::parse(&format.print_fmt, format))
    }

    /// `"pid=%d comm=%s", REC->pid, __get_str(comm)`.
    fn parse(print_fmt: &str, format: &EventFormat) -> Option<PrintForm> {
        let Parsed { expressions, fields } = expr::parse(print_fmt)?;
        let mut places = SeededMap::default();
        for (place, field) in format.fields.iter().enumerate() {
            places.entry(field.name.as_str()).or_insert(place);
        }
        let fields = fields.iter().map(|name| places.get(name.as_str()).copied()).collect::<Option<Vec<usize>>>()?;
        let mut expressions = expressions.into_iter();
        let Expr::Text(text) = expressions.next()? else { return None };
        let arguments: Vec<Expr> = expressions.collect();
        let exact = arguments.iter().all(Expr::is_known);
        let form = PrintForm { format: printk::PrintkFormat::of(text), arguments, fields, exact };
        (exact || form.tells_all()).then_some(form)
    }

    /// Whether the text shows all fields of the event although some of its arguments are unknown, as in `page=%p
    /// pfn=%lx`, where the page is computed from the same field.
    fn tells_all(&self) -> bool {
        let (mut shown, mut hidden) = (BTreeSet::new(), BTreeSet::new());
        for argument in &self.arguments {
            argument.add_fields(if argument.is_known() { &mut shown } else { &mut hidden });
        }
        hidden.is_subset(&shown)
    }

    /// The text of a record of this format.
    fn put(&self, record: &Record<'_>, format: &EventFormat, out: &mut String) {
        self.put_of(RecordValues { record, format, fields: &self.fields }, &record.kernel(), out);
    }

    fn put_of<'f>(&'f self, values: impl FieldSource<'f>, kernel: &printk::KernelFacts<'_>, out: &mut String) {
        self.format.put(&mut PrintedArguments { values, rest: self.arguments.iter() }, kernel, out);
    }
}

/// A switch; its state in letters. The plugin has those of one old kernel only, and no sign of preemption.
const SWITCH: &str = r#""%s:%d [%d] %s ==> %s:%d [%d]", REC->prev_comm, REC->prev_pid, REC->prev_prio,
    REC->prev_state, REC->next_comm, REC->next_pid, REC->next_prio"#;

/// The format of a wakeup. Whether it succeeded (kernels before 5.14), and where it leads, are shown where the event has them.
fn wakeup(format: &EventFormat) -> String {
    let (mut words, mut fields) = ("%s:%d [%d]".to_owned(), "REC->comm, REC->pid, REC->prio".to_owned());
    for (field, suffix) in [("success", " success=%d"), ("target_cpu", " CPU:%03d")] {
        if format.field(field).is_some() {
            words.push_str(suffix);
            fields.push_str(", REC->");
            fields.push_str(field);
        }
    }
    format!("\"{words}\", {fields}")
}

/// The values of a record in the fields that a form names.
struct RecordValues<'r> {
    record: &'r Record<'r>,
    format: &'r EventFormat,
    fields: &'r [usize],
}

impl<'r> RecordValues<'r> {
    fn field(&self, place: usize) -> Option<&'r Field> {
        self.format.fields.get(*self.fields.get(place)?)
    }
}

impl<'r> FieldSource<'r> for RecordValues<'r> {
    fn number(&self, field: usize) -> Option<Number> {
        let field = self.field(field)?;
        let bits = field.number(self.record.payload(), self.record.endian())?;
        Some(Number { bits, unsigned: !field.signed && field.size == 8 })
    }

    fn element(&self, field: usize, index: usize) -> Option<Number> {
        self.field(field)?.element(self.record.payload(), index, self.record.endian())
    }

    fn bytes(&self, field: usize) -> Option<&'r [u8]> {
        // The target of a pointer of the kernel's is not in the file.
        let field = self.field(field).filter(|field| field.shape != FieldShape::Pointer)?;
        Some(field.bytes(self.record.payload(), self.record.endian()))
    }

    fn is_text(&self, field: usize) -> bool {
        self.field(field).is_some_and(Field::is_text)
    }

    fn text(&self, field: usize) -> Option<Cow<'r, [u8]>> {
        let field = self.field(field)?;
        match field.shape {
            // Only the form of a switch takes it for a text.
            FieldShape::Scalar if field.name == "prev_state" => Some(self.record.letters(field)?.into_bytes().into()),
            FieldShape::Scalar | FieldShape::Pointer => None,
            _ => Some(until_nul(field.bytes(self.record.payload(), self.record.endian())).into()),
        }
    }

    fn stored(&self, address: u64) -> Option<&'r str> {
        self.record.stored(address)
    }

    fn layout(&self) -> NumberLayout {
        self.record.layout()
    }
}

/// The values for the conversions of a form, one after the other.
struct PrintedArguments<'r, F> {
    values: F,
    rest: std::slice::Iter<'r, Expr>,
}

impl<'r, F> PrintedArguments<'r, F> {
    fn next(&mut self) -> Result<&'r Expr, MissingValue> {
        self.rest.next().ok_or(MissingValue::End)
    }
}

impl<'r, F: FieldSource<'r>> ArgumentSource<'r> for PrintedArguments<'r, F> {
    fn number(&mut self, size: usize) -> Result<u64, MissingValue> {
        let value = self.next()?.number(&self.values).ok_or(MissingValue::Unknown)?;
        Ok(zero_extend(value.bits.cast_unsigned(), size))
    }

    fn string(&mut self) -> Result<Cow<'r, [u8]>, MissingValue> {
        Ok(match self.next()?.text(&self.values).ok_or(MissingValue::Unknown)? {
            Cow::Borrowed(text) => match escape(text) {
                Cow::Borrowed(text) => text.as_bytes().into(),
                Cow::Owned(text) => text.into_bytes().into(),
            },
            Cow::Owned(text) => escape(&text).into_owned().into_bytes().into(),
        })
    }

    fn pointed(&mut self, how: Pointed, width: usize) -> Result<Cow<'r, [u8]>, MissingValue> {
        let bytes = self.next()?.bytes(&self.values);
        let text = bytes.and_then(|bytes| how.text(bytes, width, self.values.layout())).ok_or(MissingValue::Unknown)?;
        Ok(text.into_bytes().into())
    }
}

/// Whether the text of an event behind `from` is longer than the limit.
fn is_full(out: &str, from: usize) -> bool {
    out.len().saturating_sub(from) > EVENT_TEXT
}

/// Mark behind the text of an event that was cut.
const CUT: &str = "\u{2026} [cut at 64 KiB]";

impl Record<'_> {
    /// Returns the printer of the record's text; `None` if its print format cannot be followed.
    fn form(&self) -> Option<&PrintForm> {
        self.trace.form(self.id())
    }

    /// The text of the event, as `trace-cmd report` has it behind the event's name, without a newline
    /// at the end, and escaped where it could move a terminal's cursor.
    pub fn printed(&self) -> String {
        let mut out = String::new();
        self.print(&mut out);
        out
    }

    /// Appends the text of [`Record::printed`] to `out`.
    pub fn print(&self, out: &mut String) {
        let from = out.len();
        self.put(out);
        if is_full(out, from) {
            let kept = limits::cut(out.get(from..).unwrap_or_default(), EVENT_TEXT).len();
            out.truncate(from.saturating_add(kept));
            out.push_str(CUT);
        }
        // Some formats end a line that the list ends itself.
        out.truncate(out.trim_end_matches('\n').len().max(from));
        // Formats and symbols, which the file itself holds, are no more to be trusted than names.
        escape_lines(out, from);
    }

    fn put(&self, out: &mut String) {
        let Some(format) = self.format() else { return };
        if format.system == "ftrace" && self.put_of_the_tracer(&format.name, out).is_some() {
            return;
        }
        match self.form() {
            Some(form) => form.put(self, format, out),
            None => self.put_fields(format, out),
        }
    }

    /// Whether [`Record::printed`] follows the event's own print format, or a form that stands for it.
    pub fn is_printed_exactly(&self) -> bool {
        let Some(format) = self.format() else { return false };
        match (format.system.as_str(), format.name.as_str()) {
            ("ftrace", "print" | "bprint" | "bputs" | "function" | "kernel_stack" | "raw_data") => true,
            ("ftrace", "funcgraph_entry" | "fgraph_retaddr_entry" | "funcgraph_exit") => true,
            _ => self.form().is_some_and(|form| form.exact),
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
            "funcgraph_entry" | "fgraph_retaddr_entry" => self.put_call(None, out)?,
            "funcgraph_exit" => self.put_return(out)?,
            "function" => self.put_symbol(self.number("ip")?, out),
            "kernel_stack" => self.put_stack(out),
            "raw_data" => {
                // The format declares one byte; the record has all that were written to trace_marker_raw.
                let (id, field) = (self.number("id")?, self.format()?.field("buf")?);
                let bytes = field.bytes(self.payload(), self.endian());
                let bytes = expr::shown::hex(bytes.get(..EVENT_TEXT).unwrap_or(bytes), " ");
                // Writing to a string cannot fail.
                let _ = write!(out, "# {id:x} {bytes}");
            }
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
        let from = out.len();
        out.push_str("<stack trace >");
        for address in self.callers() {
            if is_full(out, from) {
                break;
            }
            // Writing to a string cannot fail.
            let _ = match self.symbol(address) {
                Some((name, _)) => write!(out, "\n=> {name} ({address:x})"),
                None => write!(out, "\n=> {address:x}"),
            };
        }
    }

    /// `name=value` for each field.
    fn put_fields(&self, format: &EventFormat, out: &mut String) {
        let from = out.len();
        for (nth, field) in format.own_fields().enumerate() {
            if is_full(out, from) {
                return;
            }
            if nth > 0 {
                out.push(' ');
            }
            out.push_str(&field.name);
            out.push('=');
            self.put_field(field, out);
        }
    }

    /// The value of the field of this name, as text: the symbol of the address of a function, other addresses in
    /// hexadecimal, numbers in decimal.
    pub fn field_text(&self, name: &str) -> Option<String> {
        let field = self.format()?.field(name)?;
        let mut text = String::new();
        self.put_field(field, &mut text);
        Some(text)
    }

    fn put_field(&self, field: &Field, out: &mut String) {
        let bytes = field.bytes(self.payload(), self.endian());
        // Writing to a string cannot fail.
        let _ = match field.number(self.payload(), self.endian()) {
            Some(n) if field.is_code() => return self.put_symbol(n, out),
            Some(n) if field.is_address(n) => write!(out, "{:#x}", zero_extend(n.cast_unsigned(), field.size)),
            Some(n) if field.signed => write!(out, "{n}"),
            Some(n) => write!(out, "{}", n.cast_unsigned()),
            None if field.is_text() => write!(out, "{}", escape(until_nul(bytes))),
            None => {
                let shown = expr::shown::hex(bytes.get(..32).unwrap_or(bytes), " ");
                let more = if bytes.len() > 32 { "\u{2026}" } else { "" };
                write!(out, "[{shown}{more}]")
            }
        };
    }
}

/// A record that has the same bytes in all of its fields, for the fuzz target.
struct Everywhere<'b>(&'b [u8]);

impl<'b> FieldSource<'b> for Everywhere<'b> {
    fn number(&self, field: usize) -> Option<Number> {
        Some(Number { bits: i64::from(*self.0.get(field)?), unsigned: field & 1 == 0 })
    }

    fn element(&self, _: usize, index: usize) -> Option<Number> {
        self.number(index)
    }

    fn bytes(&self, _: usize) -> Option<&'b [u8]> {
        Some(self.0)
    }

    fn is_text(&self, field: usize) -> bool {
        field & 1 == 0
    }

    fn text(&self, field: usize) -> Option<Cow<'b, [u8]>> {
        (field & 1 == 0).then_some(self.0.into())
    }

    fn stored(&self, address: u64) -> Option<&'b str> {
        (address & 1 == 0).then_some("stored")
    }

    fn layout(&self) -> NumberLayout {
        NumberLayout { endian: Endian::Big, long: 4 }
    }
}

/// Parses a format, decodes the bytes by it, and prints them. The fuzz target calls this function.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let Some(format) = EventFormat::parse("fuzz", &text) else { return 0 };
    let payload = bytes.get(..bytes.len().min(200)).unwrap_or(bytes);
    for field in &format.fields {
        let _ = field.number(payload, Endian::Little);
        let _ = field.bytes(payload, Endian::Big);
    }
    let _ = States::from_print_fmt(&format.print_fmt);
    let (values, mut out) = (Everywhere(payload), String::new());
    let kernel = printk::KernelFacts { layout: values.layout(), symbols: &Symbols::default() };
    if let Some(form) = PrintForm::of(&format, false) {
        form.put_of(values, &kernel, &mut out);
    }
    out.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(print_fmt: &str) -> Option<(String, usize)> {
        let text = format!(
            "name: x\nID: 5\nformat:\n\tfield:int pid;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:int cpu;\toffset:12;\tsize:4;\tsigned:1;\n\nprint fmt: {print_fmt}\n"
        );
        let format = EventFormat::parse("test", &text)?;
        PrintForm::of(&format, false).map(|form| (form.format.text().to_owned(), form.arguments.len()))
    }

    #[test]
    fn formats_that_can_be_followed() {
        assert_eq!(of("\"pid=%d \\\"%d\\\"\", REC->pid, REC->cpu"), Some(("pid=%d \"%d\"".into(), 2)));
        assert_eq!(of("\"nothing\""), Some(("nothing".into(), 0)));
        assert_eq!(of("\"%d\" \" %s\", REC->pid + 1, REC->cpu ? \"a\" : \"b\""), Some(("%d %s".into(), 2)));
        assert_eq!(of("\"%s\", __print_flags(REC->pid, \"|\", {1, \"S\"})"), Some(("%s".into(), 1)));
        assert_eq!(of("\"%d\", REC->unheard"), None);
        assert_eq!(of("\"%s\", unheard(REC->pid)"), None, "nothing would show the pid");
        assert_eq!(of("\"%d %s\", REC->pid, unheard(REC->pid)"), Some(("%d %s".into(), 2)));
        assert_eq!(of("\"%d\", REC->pid ? VALUE : REC->cpu"), None);
        assert_eq!(of("no literal"), None);
    }
}
