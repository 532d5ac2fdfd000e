//! Function graphs: calls and returns as lines of a tree, in the form of `trace-cmd report`.
//!
//! A call whose return is the next record of all is a leaf: one line stands for both.

use crate::trace::record::Record;
use std::fmt::Write;

/// Calls beyond this depth are not indented further; the kernel follows no more than 50 (`FTRACE_RETFUNC_DEPTH`).
const DEEPEST: usize = 64;

impl Record<'_> {
    fn is_graph(&self, names: &[&str]) -> bool {
        self.format().is_some_and(|format| format.system == "ftrace" && names.contains(&format.name.as_str()))
    }

    /// Whether the record is a call or a return in a function graph.
    pub fn is_in_graph(&self) -> bool {
        self.is_graph(&["funcgraph_entry", "fgraph_retaddr_entry", "funcgraph_exit"])
    }

    /// Whether the record is the return of `call`, which is the record before it.
    pub fn is_return_of(&self, call: &Record<'_>) -> bool {
        let same = (self.cpu, self.buffer, self.pid()) == (call.cpu, call.buffer, call.pid());
        same && self.lost.is_none()
            && self.is_graph(&["funcgraph_exit"])
            && call.is_graph(&["funcgraph_entry", "fgraph_retaddr_entry"])
            && self.number("func") == call.number("func")
    }

    /// Adds a leaf, a call together with its return, behind the text in `out`.
    pub fn print_leaf(&self, end: &Record<'_>, out: &mut String) {
        if self.put_call(Some(end), out).is_none() {
            self.print(out);
        }
    }

    /// Adds a call, or a leaf with its end.
    pub(crate) fn put_call(&self, end: Option<&Record<'_>>, out: &mut String) -> Option<()> {
        let (function, depth) = (self.number("func")?, self.number("depth")?);
        match end {
            Some(end) => put_duration(end.duration()?, out),
            None => out.push_str("             |  "),
        }
        indent(depth, out);
        match self.symbol(function.cast_unsigned()) {
            Some((name, _)) => out.push_str(name),
            // Writing to a string cannot fail.
            None => drop(write!(out, "{function:x}")),
        }
        let caller = self.number("retaddr").and_then(|at| self.symbol(at.cast_unsigned()));
        out.push_str("()");
        if let (Some((caller, _)), None) = (caller, end) {
            let _ = write!(out, " /* <-{caller} */");
        }
        out.push_str(if end.is_some() { ";" } else { " {" });
        if let (Some((caller, _)), Some(_)) = (caller, end) {
            let _ = write!(out, " /* <-{caller} */");
        }
        if let Some(end) = end {
            end.put_returned(out);
        }
        Some(())
    }

    /// Adds the return of a call that is no leaf.
    pub(crate) fn put_return(&self, out: &mut String) -> Option<()> {
        let (duration, depth) = (self.duration()?, self.number("depth")?);
        put_duration(duration, out);
        indent(depth, out);
        out.push('}');
        self.put_returned(out);
        Some(())
    }

    fn duration(&self) -> Option<u64> {
        let (call, end) = (self.number("calltime")?, self.number("rettime")?);
        Some(end.cast_unsigned().wrapping_sub(call.cast_unsigned()))
    }

    /// Adds the value that the function returned, where it was recorded: errors in decimal.
    fn put_returned(&self, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self.number("retval") {
            Some(error @ -4095..=-1) => write!(out, " (ret={error})"),
            Some(value) => write!(out, " (ret={value:#x})"),
            None => Ok(()),
        };
    }
}

fn indent(depth: i64, out: &mut String) {
    let depth = usize::try_from(depth).unwrap_or(0).min(DEEPEST);
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Adds a duration in a column of its own, with a sign for the order of its length.
fn put_duration(ns: u64, out: &mut String) {
    out.push_str(match ns {
        0..=10_000 => "  ",
        10_001..=100_000 => "+ ",
        100_001..=1_000_000 => "! ",
        1_000_001..=1_000_000_000 => "# ",
        // All ones are no duration.
        u64::MAX => "  ",
        _ => "$ ",
    });
    let from = out.len();
    // Writing to a string cannot fail.
    let _ = write!(out, "{}", ns / 1_000);
    if out.len().saturating_sub(from) < 7 {
        let _ = write!(out, ".{:03}", ns % 1_000);
    }
    let width = out.len().saturating_sub(from);
    out.push_str(" us ");
    out.extend(std::iter::repeat_n(' ', 7usize.saturating_sub(width)));
    out.push_str("|  ");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_their_column() {
        let of = |ns| {
            let mut out = String::new();
            put_duration(ns, &mut out);
            out
        };
        // By trace-cmd's report of fgraph-newidle.dat, but for the last two.
        assert_eq!(of(1_077), "  1.077 us   |  ");
        assert_eq!(of(45_742), "+ 45.742 us  |  ");
        assert_eq!(of(182_844), "! 182.844 us |  ");
        assert_eq!(of(1_598_502), "# 1598.502 us |  ");
        assert_eq!(of(12_345_678_901_234), "$ 12345678901 us |  ");
        assert_eq!(of(0), "  0.000 us   |  ");
    }
}
