//! What an event says, as text: by its own print format where that names fields, computes with them, or names their
//! numbers and bits, as nearly all do; else field by field.
//!
//! Two events that `trace-cmd report` prints with a plugin of its own, the switches and the wakeups,
//! come in that form, and so do functions and stacks, their addresses as symbols.

use crate::expr::{self, Expr, Fields, Number};
use crate::format::{EventFormat, zero_extend};
use crate::printk::{self, Kernel, Source};
use crate::record::Record;
use sched::event::{escape, escape_lines};
use std::borrow::Cow;
use std::fmt::Write;

/// The print format of an event, where it is one that can be followed.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    text: String,
    arguments: Vec<Expr>,
}

impl Form {
    /// `"pid=%d comm=%s", REC->pid, __get_str(comm)`.
    pub(crate) fn of(format: &EventFormat) -> Option<Form> {
        let parsed = expr::parse(&format.print_fmt)?;
        if parsed.fields.iter().any(|name| format.field(name).is_none()) {
            return None;
        }
        let mut expressions = parsed.expressions.into_iter();
        let Expr::Text(text) = expressions.next()? else { return None };
        Some(Form { text, arguments: expressions.collect() })
    }
}

/// What a record has for the conversions of its form, one after the other.
struct Arguments<'r> {
    record: &'r Record<'r>,
    rest: std::slice::Iter<'r, Expr>,
}

impl<'r> Source<'r> for Arguments<'r> {
    fn number(&mut self, size: usize) -> Option<u64> {
        Some(zero_extend(self.rest.next()?.number(self.record)?.bits.cast_unsigned(), size))
    }

    fn string(&mut self) -> Option<Cow<'r, [u8]>> {
        let text = self.rest.next()?.text(self.record)?;
        Some(escape(&text).into_bytes().into())
    }
}

impl<'t> Fields<'t> for Record<'t> {
    fn number(&self, name: &str) -> Option<Number> {
        let field = self.format()?.field(name)?;
        let bits = field.number(self.payload(), self.endian())?;
        Some(Number { bits, unsigned: !field.signed && field.size == 8 })
    }

    fn element(&self, name: &str, index: usize) -> Option<Number> {
        self.format()?.field(name)?.element(self.payload(), index, self.endian())
    }

    fn text(&self, name: &str) -> Option<&'t [u8]> {
        self.bytes(name)
    }
}

impl Record<'_> {
    /// What the event says, as `trace-cmd report` has it behind the event's name, without a newline
    /// at the end, and escaped where it could move a terminal's cursor.
    pub fn printed(&self) -> String {
        // What the file itself holds, formats and symbols, is no more to be trusted than names.
        escape_lines(self.in_words())
    }

    fn in_words(&self) -> String {
        if let (Some(text), Some(place)) = (self.text(), self.place()) {
            return format!("{place}: {}", text.trim_end());
        }
        let Some(format) = self.format() else { return String::new() };
        let special = match (format.system.as_str(), format.name.as_str()) {
            ("sched", "sched_switch") => self.switch(),
            ("sched", "sched_wakeup" | "sched_wakeup_new") => self.wakeup(),
            ("ftrace", "function") => self.number("ip").map(|ip| self.symbol(ip)),
            ("ftrace", "kernel_stack") => Some(self.stack()),
            _ => None,
        };
        // Function graphs are printed by code, not by the format that they have.
        let graph = format.system == "ftrace" && format.name.starts_with("funcgraph");
        special.or_else(|| self.by_format(format).filter(|_| !graph)).unwrap_or_else(|| self.fields(format))
    }

    /// Whether [`Record::printed`] follows the event's own print format, or a form that stands for it.
    pub fn is_printed_exactly(&self) -> bool {
        let Some(format) = self.format() else { return false };
        match (format.system.as_str(), format.name.as_str()) {
            ("sched", "sched_switch" | "sched_wakeup" | "sched_wakeup_new") => true,
            ("ftrace", name) => matches!(name, "print" | "bprint" | "bputs" | "function" | "kernel_stack"),
            _ => format.form().is_some(),
        }
    }

    fn by_format(&self, format: &EventFormat) -> Option<String> {
        let form = format.form()?;
        let mut arguments = Arguments { record: self, rest: form.arguments.iter() };
        Some(printk::format_from(&form.text, &mut arguments, &self.kernel()))
    }

    fn switch(&self) -> Option<String> {
        let text = |name| Some(escape(self.bytes(name)?));
        // The plugin knows the letters of one old kernel only, and no sign of preemption.
        let (_, letters) = self.prev_state()?;
        Some(format!(
            "{}:{} [{}] {letters} ==> {}:{} [{}]",
            text("prev_comm")?,
            self.number("prev_pid")?,
            self.number("prev_prio")?,
            text("next_comm")?,
            self.number("next_pid")?,
            self.number("next_prio")?
        ))
    }

    fn wakeup(&self) -> Option<String> {
        let (comm, pid, prio) = (self.bytes("comm")?, self.number("pid")?, self.number("prio")?);
        let comm = escape(comm);
        // Kernels before 5.14 have it.
        let success = self.number("success").map_or(String::new(), |success| format!(" success={success}"));
        let target = self.number("target_cpu").map_or(String::new(), |cpu| format!(" CPU:{cpu:03}"));
        Some(format!("{comm}:{pid} [{prio}]{success}{target}"))
    }

    /// An address as its symbol.
    fn symbol(&self, address: i64) -> String {
        let address = address.cast_unsigned();
        self.kernel().symbols.find(address).map_or_else(|| format!("{address:#x}"), |(name, _)| name.to_owned())
    }

    /// Each caller in a line of its own.
    fn stack(&self) -> String {
        let mut out = "<stack trace >".to_owned();
        let Kernel { endian, long, symbols } = self.kernel();
        // The field is declared with eight callers, and has as many as the record.
        let start = self.format().and_then(|f| f.field("caller")).map_or(usize::MAX, |f| f.offset);
        for chunk in self.payload().get(start..).unwrap_or_default().chunks_exact(long.max(1)) {
            let Some(address) = endian.uint(chunk, 0, long) else { break };
            // All ones end a stack of early kernels.
            if address == u64::MAX >> (64 - 8 * long.clamp(1, 8)) {
                break;
            }
            let name = symbols.find(address).map_or("", |(name, _)| name);
            // Writing to a string cannot fail.
            let _ = write!(out, "\n=> {name} ({address:x})");
        }
        out
    }

    /// `name=value` for each field.
    fn fields(&self, format: &EventFormat) -> String {
        // The addresses of functions, of function graphs above all.
        let is_code = |name: &str| matches!(name, "ip" | "parent_ip" | "func");
        let value = |field: &crate::format::Field| match self.number(&field.name) {
            Some(n) if is_code(&field.name) => self.symbol(n),
            Some(n) if matches!(field.shape, crate::format::Shape::Pointer) => format!("{n:#x}"),
            Some(n) if field.signed => n.to_string(),
            Some(n) => n.cast_unsigned().to_string(),
            None if field.is_text() => escape(self.bytes(&field.name).unwrap_or_default()),
            None => {
                let bytes = self.bytes(&field.name).unwrap_or_default();
                let shown: Vec<String> = bytes.iter().take(32).map(|b| format!("{b:02x}")).collect();
                let more = if bytes.len() > 32 { "\u{2026}" } else { "" };
                format!("[{}{more}]", shown.join(" "))
            }
        };
        let fields: Vec<String> = format.own_fields().map(|f| format!("{}={}", f.name, value(f))).collect();
        fields.join(" ")
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
        Form::of(&format).map(|form| (form.text, form.arguments.len()))
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
