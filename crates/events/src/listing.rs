//! Events as text, in the form of `trace-cmd report -t`.

use crate::args::FlagsColumn;
use crate::choice::{Choice, write_each};
use anyhow::Result;
use parse::{FileIssue, Kept, Neighbours, Record, Trace};
use sched::names::NameHistory;
use sched::{Comm, Cpu, Dur, Pid, Ts};
use session::over_lanes::with_those_of;
use session::stacks::{NamedStacks, StackedEvent};
use session::warnings;
use session::writer::Lines;
use session::{Session, progress};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::ops::ControlFlow;
#[cfg(feature = "libtraceevent")]
use std::sync::{Mutex, PoisonError};

/// Puts events into words: with libtraceevent where the program was built with it.
struct Words {
    /// The clock counts no time: its ticks are shown as they are.
    in_ticks: bool,
    /// A column has the state of the CPU.
    with_flags: bool,
    /// The prefix of the lines of each buffer; empty where only one is listed.
    prefixes: Vec<String>,
    /// The stacks that events carry; none unless they are asked for.
    stacks: NamedStacks,
    /// One for all threads: it takes its time to prepare.
    #[cfg(feature = "libtraceevent")]
    printer: Option<Mutex<traceevent::Printer>>,
}

impl Words {
    fn of(session: &Session, flags: FlagsColumn) -> Words {
        #[cfg(feature = "libtraceevent")]
        let texts = session.trace.texts();
        Words {
            in_ticks: session.trace.has_time().is_err(),
            with_flags: match flags {
                FlagsColumn::Always => true,
                FlagsColumn::Never => false,
                FlagsColumn::Auto => shows_flags(session.trace.info().writer.as_deref().unwrap_or_default()),
            },
            prefixes: prefixes(&session.trace),
            stacks: NamedStacks::default(),
            #[cfg(feature = "libtraceevent")]
            printer: traceevent::Printer::new(traceevent::Setup {
                formats: &texts.formats,
                kallsyms: &texts.kallsyms,
                printk: &texts.printk,
                big_endian: texts.big_endian,
                long: texts.long,
                page: texts.page,
            })
            .map(Mutex::new),
        }
    }

    /// Adds a record; the return of a call makes it a leaf.
    fn put(&self, record: &Record<'_>, end: Option<&Record<'_>>, out: &mut String) {
        if let Some(end) = end {
            return record.print_leaf(end, out);
        }
        #[cfg(feature = "libtraceevent")]
        if let Some(printer) = self.printer.as_ref().filter(|_| !record.is_in_graph()) {
            let mut printer = printer.lock().unwrap_or_else(PoisonError::into_inner);
            let text = printer.print(record.ts.0.unsigned_abs(), record.cpu.0, record.payload());
            if !text.is_empty() {
                let from = out.len();
                out.push_str(text.trim_end());
                return sched::event::escape_lines(out, from);
            }
        }
        record.print(out);
    }
}

/// Whether the report of this trace-cmd has a column of flags: since 3.3.
fn shows_flags(writer: &str) -> bool {
    let mut numbers = writer.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (3, 3)
}

/// The prefix of the lines of each buffer of a trace, where several are read: the names of instances.
fn prefixes(trace: &Trace) -> Vec<String> {
    if trace.selected_buffers().len() < 2 {
        return Vec::new();
    }
    let names: Vec<String> = trace.info().buffers.into_iter().map(|buffer| buffer.name.into()).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let prefix = |name: &String| {
        let mut prefix = String::new();
        put_right(name, width, ' ', &mut prefix);
        prefix.push_str(if name.is_empty() { "  " } else { ": " });
        prefix
    };
    names.iter().map(prefix).collect()
}

/// The mark of a task whose name the recorder did not save: it stands on both sides of the number of the task and the
/// time, until the name is known. No line holds it otherwise, since control characters are escaped.
const UNNAMED: char = '\0';

/// The lines on their way out: tasks whose name the recorder did not save get that of the switches, forks and execs in
/// the trace, which are read when the first such task comes.
struct Named<'s, W> {
    session: &'s Session,
    names: Option<NameHistory>,
    out: W,
}

impl<'s, W: Write> Named<'s, W> {
    fn new(session: &'s Session, out: W) -> Named<'s, W> {
        Named { session, names: None, out }
    }

    fn name(&mut self, key: &str) -> io::Result<String> {
        let (pid, ts) = key.split_once(' ').unwrap_or_default();
        let (pid, ts) = (Pid(pid.parse().unwrap_or_default()), Ts(ts.parse().unwrap_or_default()));
        let names = match &mut self.names {
            Some(names) => names,
            // The ticks of a clock have no order between CPUs that names could follow.
            none if self.session.trace.has_time().is_err() => none.insert(NameHistory::default()),
            none => none.insert(self.session.names().map_err(io::Error::other)?),
        };
        let name = names.of(pid, ts).unwrap_or_else(|| Comm::new(b"<...>"));
        let mut padded = String::new();
        put_right(&sched::event::escape(name.as_bytes()), NAME_WIDTH, ' ', &mut padded);
        Ok(padded)
    }

    fn put(&mut self, lines: &str) -> io::Result<()> {
        for (nth, part) in lines.split(UNNAMED).enumerate() {
            if nth % 2 == 0 {
                self.out.write_all(part.as_bytes())?;
            } else {
                let name = self.name(part)?;
                self.out.write_all(name.as_bytes())?;
            }
        }
        Ok(())
    }
}

/// Places of a task's name in a line.
const NAME_WIDTH: usize = 16;

/// Adds the line of a record, or several: a stack has one for each caller.
fn put_line(record: &Record<'_>, end: Option<&Record<'_>>, words: &Words, out: &mut String) {
    let ts = record.ts.0;
    let mut digits = itoa::Buffer::new();
    match record.saved_command() {
        Some(command) => put_right(&sched::event::escape(command.as_bytes()), NAME_WIDTH, ' ', out),
        None => {
            out.push(UNNAMED);
            out.push_str(digits.format(record.pid().0));
            out.push(' ');
            out.push_str(digits.format(ts));
            out.push(UNNAMED);
        }
    }
    out.push('-');
    let pid = digits.format(record.pid().0);
    out.push_str(pid);
    put_many(' ', 5usize.saturating_sub(pid.len()), out);
    out.push_str(" [");
    put_right(digits.format(record.cpu.0), 3, '0', out);
    out.push(']');
    if words.with_flags {
        out.push(' ');
        record.put_flags(out);
    }
    if words.in_ticks {
        put_right(digits.format(ts), 12, ' ', out);
    } else {
        out.push(' ');
        put_right(digits.format(ts.div_euclid(1_000_000_000)), 5, ' ', out);
        out.push('.');
        put_right(digits.format(ts.rem_euclid(1_000_000_000)), 9, '0', out);
    }
    out.push_str(": ");
    let name = out.len();
    match record.format() {
        Some(format) => out.push_str(&format.name),
        None => {
            out.push_str("event ");
            out.push_str(digits.format(record.id()));
        }
    }
    out.push(':');
    put_many(' ', 22usize.saturating_sub(out.len() - name).max(1), out);
    words.put(record, end, out);
    out.push('\n');
}

/// Adds a text to the right of a number of places, as `{:>16}` does, without the cost of its other abilities.
fn put_right(text: &str, places: usize, fill: char, out: &mut String) {
    put_many(fill, places.saturating_sub(text.chars().count()), out);
    out.push_str(text);
}

fn put_many(fill: char, count: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(fill, count));
}

/// The mark of a loss before a record.
fn lost(record: &Record<'_>) -> Option<String> {
    let count = record.lost?.map_or(String::new(), |n| format!("{n} "));
    Some(format!("CPU:{} [{count}EVENTS DROPPED]", record.cpu))
}

/// All chosen events.
pub(crate) fn list(
    session: &Session,
    choice: &Choice,
    flags: FlagsColumn,
    has_stacks: bool,
    mut out: Lines,
) -> Result<()> {
    let is_file = out.is_file();
    let mut words = Words::of(session, flags);
    if has_stacks && session.trace.carries_stacks() {
        words.stacks = NamedStacks::of(&session.trace, &StackedEvent::ALL);
    }
    let add = |lines: &mut String, Neighbours { record, before, behind }: &Neighbours<'_>| {
        // The line of a leaf stands for its return as well.
        if before.is_some_and(|call| record.is_return_of(&call) && choice.takes(&call)) {
            return;
        }
        lines.push_str(words.prefixes.get(record.buffer).map_or("", String::as_str));
        if let Some(lost) = lost(record) {
            lines.push_str(&lost);
            lines.push('\n');
        }
        put_line(record, behind.filter(|end| end.is_return_of(record)).as_ref(), &words, lines);
        if let Some(stack) = record.stack_key().and_then(|key| words.stacks.find(key)) {
            for function in words.stacks.functions(stack) {
                lines.push_str("=> ");
                lines.push_str(&function);
                lines.push('\n');
            }
        }
    };
    let mut named = Named::new(session, &mut out);
    // The lines themselves show how far they are, to whoever sees them.
    let quiet = session.read.quiet || !is_file;
    let found = progress::watched(&session.trace, quiet, || {
        write_each(session, choice, &mut |lines: String| Ok(named.put(&lines)?), add)
    })?;
    out.finish()?;
    warnings::warn(&found, &session.read);
    Ok(())
}

/// Writes all events of a session's window as text, as `trace-cmd report -t -N` does: the number of CPUs, and a line for each event. The state
/// of the CPU is in the lines where the recording has it.
///
/// # Errors
///
/// Those of reading and of writing.
pub fn write_text(session: &mut Session, mut out: Lines) -> Result<()> {
    session.trace.print_plainly();
    let cpus = session.trace.info().cpus;
    if cpus > 0 {
        writeln!(out, "cpus={cpus}")?;
    }
    let is_known = session.trace.diagnostics().count(FileIssue::NoContext) == 0;
    let flags = if is_known { FlagsColumn::Always } else { FlagsColumn::Never };
    list(session, &Choice::all(session), flags, true, out)
}

/// The events that are held of a CPU.
#[derive(Default)]
struct Around {
    /// The latest records of the CPU.
    before: VecDeque<Kept>,
    /// A block that is being gathered, and when it ends.
    block: Option<(Vec<Near>, Ts)>,
}

/// A record near a chosen one, or such a one itself.
struct Near {
    record: Kept,
    chosen: bool,
}

impl Near {
    fn lines(&self, trace: &Trace, words: &Words) -> String {
        let record = self.record.record(trace);
        let mark = if self.chosen { "> " } else { "  " };
        let mut lines = lost(&record).map_or_else(String::new, |lost| format!("  {lost}\n"));
        lines.push_str(mark);
        lines.push_str(words.prefixes.get(record.buffer).map_or("", String::as_str));
        put_line(&record, None, words, &mut lines);
        lines
    }
}

impl Around {
    /// Takes the next record of the CPU; a block that it shows to be complete.
    fn take(&mut self, trace: &Trace, record: &Record<'_>, chosen: bool, near: Dur) -> Option<Vec<Near>> {
        let complete = self.block.take_if(|(_, until)| record.ts > *until);
        while self.before.front().is_some_and(|kept| record.ts.since(kept.record(trace).ts) > near) {
            self.before.pop_front();
        }
        let kept = record.keep();
        match &mut self.block {
            Some((block, until)) => {
                block.push(Near { record: kept, chosen });
                if chosen {
                    *until = record.ts.after(near);
                }
            }
            None if chosen => {
                let before = self.before.drain(..).map(|record| Near { record, chosen: false });
                let block = before.chain([Near { record: kept, chosen }]).collect();
                self.block = Some((block, record.ts.after(near)));
            }
            None => self.before.push_back(kept),
        }
        complete.map(|(block, _)| block)
    }
}

/// Around each chosen event, what happened on its CPU within this time. The event itself
/// is marked with `>`; those that are near one another share a block.
pub(crate) fn near(session: &Session, choice: &Choice, near: Dur, flags: FlagsColumn, mut out: Lines) -> Result<()> {
    let mut by_cpu: BTreeMap<Cpu, Around> = BTreeMap::new();
    let words = Words::of(session, flags);
    let mut named = Named::new(session, &mut out);
    let mut write = |block: Vec<Near>| -> io::Result<()> {
        block.iter().try_for_each(|record| named.put(&record.lines(&session.trace, &words)))?;
        named.put("\n")
    };
    let mut failed: Option<io::Error> = None;
    let (from, end) = (Ts(session.from.0.saturating_sub_unsigned(near.0)), session.to.after(near));
    let found = session.trace.records_from(from, &mut |record| {
        if record.ts > end {
            return ControlFlow::Break(());
        }
        let chosen = record.ts >= session.from && record.ts <= session.last() && choice.takes(record);
        let complete = by_cpu.entry(record.cpu).or_default().take(&session.trace, record, chosen, near);
        match complete.map_or(Ok(()), &mut write) {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => {
                failed = Some(e);
                ControlFlow::Break(())
            }
        }
    });
    failed.map_or(Ok(()), Err)?;
    for (block, _) in by_cpu.into_values().filter_map(|around| around.block) {
        write(block)?;
    }
    out.finish()?;
    warnings::warn(&with_those_of(session, &found), &session.read);
    Ok(())
}
