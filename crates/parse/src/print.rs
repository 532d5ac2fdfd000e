//! What an event says, as text: by its own print format where that only names fields, as nearly all
//! do; else field by field.
//!
//! Two events that `trace-cmd report` prints with a plugin of its own, the switches and the wakeups,
//! come in that form, and so do functions and stacks, their addresses as symbols.

use crate::bytes::until_nul;
use crate::expr;
use crate::format::EventFormat;
use crate::printk::{self, Kernel, Source};
use crate::record::Record;
use std::fmt::Write;

/// The print format of an event, where all its arguments are fields.
#[derive(Clone, Debug)]
struct Plain<'f> {
    text: String,
    fields: Vec<&'f str>,
}

/// `"pid=%d comm=%s", REC->pid, __get_str(comm)`.
fn plain(format: &EventFormat) -> Option<Plain<'_>> {
    let fmt = format.print_fmt.trim();
    let end = literal_end(fmt)?;
    let text = expr::string_literal(fmt.get(..end)?)?;
    let rest = fmt.get(end..)?.trim();
    let fields = match rest.strip_prefix(',') {
        None if rest.is_empty() => Vec::new(),
        None => return None,
        Some(rest) => rest.split(',').map(|argument| field_of(argument.trim())).collect::<Option<Vec<_>>>()?,
    };
    let known = |name: &&str| format.field(name).is_some();
    fields.iter().all(known).then_some(Plain { text, fields })
}

/// Where a string literal at the start of `text` ends.
fn literal_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\\' if !escaped => escaped = true,
            '"' if !escaped => return at.checked_add(1),
            _ => escaped = false,
        }
    }
    None
}

/// The field that an argument is, if it is nothing but that.
fn field_of(argument: &str) -> Option<&str> {
    let inner = |call: &str| argument.strip_prefix(call)?.strip_suffix(')');
    let name = match argument.strip_prefix("REC->") {
        Some(name) => name,
        None => inner("__get_str(").or_else(|| inner("__get_rel_str("))?,
    };
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then_some(name)
}

/// The fields of a record, one after the other, as arguments of a conversion.
struct Fields<'r, 't> {
    record: &'r Record<'t>,
    names: std::slice::Iter<'r, &'t str>,
}

impl<'t> Source<'t> for Fields<'_, 't> {
    fn number(&mut self, _: usize) -> Option<u64> {
        self.record.number(self.names.next()?).map(i64::cast_unsigned)
    }

    fn string(&mut self) -> Option<&'t [u8]> {
        self.record.bytes(self.names.next()?).map(until_nul)
    }
}

impl Record<'_> {
    /// What the event says, as `trace-cmd report` has it behind the event's name, without a newline
    /// at the end.
    pub fn printed(&self) -> String {
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
            _ => plain(format).is_some(),
        }
    }

    fn by_format(&self, format: &EventFormat) -> Option<String> {
        let plain = plain(format)?;
        let mut fields = Fields { record: self, names: plain.fields.iter() };
        Some(printk::format_from(&plain.text, &mut fields, &self.kernel()))
    }

    fn switch(&self) -> Option<String> {
        let text = |name| Some(sched::event::escape(self.bytes(name)?));
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
        let comm = sched::event::escape(comm);
        let failed = if self.number("success") == Some(0) { " success=0" } else { "" };
        let target = self.number("target_cpu").map_or(String::new(), |cpu| format!(" CPU:{cpu:03}"));
        Some(format!("{comm}:{pid} [{prio}]{failed}{target}"))
    }

    /// An address as its symbol.
    fn symbol(&self, address: i64) -> String {
        let address = address.cast_unsigned();
        self.kernel().symbols.find(address).map_or_else(|| format!("{address:x}"), |(name, _)| name.to_owned())
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
            None if field.is_text() => sched::event::escape(self.bytes(&field.name).unwrap_or_default()),
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

    fn of(print_fmt: &str) -> Option<(String, Vec<String>)> {
        let text = format!(
            "name: x\nID: 5\nformat:\n\tfield:int pid;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:int cpu;\toffset:12;\tsize:4;\tsigned:1;\n\nprint fmt: {print_fmt}\n"
        );
        let format = EventFormat::parse("test", &text)?;
        plain(&format).map(|p| (p.text, p.fields.iter().map(|f| (*f).to_owned()).collect()))
    }

    #[test]
    fn formats_that_only_name_fields() {
        assert_eq!(
            of("\"pid=%d \\\"%d\\\"\", REC->pid, REC->cpu"),
            Some(("pid=%d \"%d\"".into(), vec!["pid".into(), "cpu".into()]))
        );
        assert_eq!(of("\"nothing\""), Some(("nothing".into(), vec![])));
        assert_eq!(of("\"%d\", REC->pid + 1"), None);
        assert_eq!(of("\"%d\", REC->unheard"), None);
        assert_eq!(of("\"%s\", __print_flags(REC->pid, \"|\", {1, \"S\"})"), None);
        assert_eq!(of("no literal"), None);
    }
}
