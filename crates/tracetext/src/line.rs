//! What a line says beside the event's own fields: the task, the CPU, the context, the time and the name.

/// The program that printed a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Printer {
    /// The kernel, or trace-cmd: `TASK-PID [CPU] FLAGS TIME: EVENT: …`.
    Kernel,
    /// perf script: `TASK PID [CPU] TIME: SYSTEM:EVENT: …`.
    Perf,
}

/// A line with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventLine<'l> {
    pub(crate) printer: Printer,
    pub(crate) pid: i32,
    pub(crate) cpu: u32,
    /// `common_flags`, and the depths of disabled preemption and migration, where the line shows them.
    pub(crate) flags: u8,
    pub(crate) preempt: u8,
    pub(crate) has_context: bool,
    /// The time in nanoseconds, and whether the line has all digits of it.
    pub(crate) time: u64,
    pub(crate) is_exact: bool,
    /// The system, where the line has it.
    pub(crate) system: Option<&'l str>,
    pub(crate) name: &'l str,
    pub(crate) text: &'l [u8],
}

/// The content of a line of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrintedLine<'l> {
    Event(EventLine<'l>),
    /// Events of a CPU that were lost before the next of its lines, if they were counted.
    Lost(u32, Option<u64>),
    /// Events that were lost on an unknown CPU, or at an unknown time.
    LostSomewhere(u64),
    /// The number of CPUs, and whether the kernel overwrote events before the first ones of the text.
    Machine(u32, bool),
    /// A comment, an empty line, or one that belongs to the event before, such as those of a stack.
    Silent,
    /// A line that is not understood.
    Other,
}

impl<'l> PrintedLine<'l> {
    /// Reads a line.
    pub(crate) fn of(line: &'l [u8]) -> PrintedLine<'l> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = line.trim_ascii_start();
        match text.first() {
            None => return PrintedLine::Silent,
            // The name of a task can begin with these characters, too.
            Some(b'#') => {
                let comment = || of_comment(text).unwrap_or(PrintedLine::Silent);
                return event(text).map_or_else(comment, PrintedLine::Event);
            }
            Some(b'=') if text.starts_with(b"=>") => {
                return event(text).map_or(PrintedLine::Silent, PrintedLine::Event);
            }
            _ => {}
        }
        if let Some(event) = event(text) {
            return PrintedLine::Event(event);
        }
        if let Some(lost) = text.strip_prefix(b"CPU:").and_then(lost) {
            return lost;
        }
        if let Some((cpus, _)) = text.strip_prefix(b"cpus=").and_then(number) {
            return PrintedLine::Machine(u32::try_from(cpus).unwrap_or(0), false);
        }
        if let Some(lost) = lost_by_perf(text) {
            return lost;
        }
        // The frames of a stack by perf are addresses.
        let is_address = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count() >= 6;
        if line.first().is_some_and(u8::is_ascii_whitespace) && is_address(text) {
            PrintedLine::Silent
        } else {
            PrintedLine::Other
        }
    }
}

/// `# entries-in-buffer/entries-written: 10/12   #P:4` before the kernel's lines.
fn of_comment(text: &[u8]) -> Option<PrintedLine<'_>> {
    let behind = |wanted: &[u8]| {
        let at = text.windows(wanted.len()).position(|part| part == wanted)?;
        number(text.get(at.saturating_add(wanted.len())..)?.trim_ascii_start())
    };
    let (cpus, _) = behind(b"#P:")?;
    let counts = behind(b"entries-written:").and_then(|(present, rest)| Some((present, number(rest.get(1..)?)?.0)));
    Some(PrintedLine::Machine(u32::try_from(cpus).ok()?, counts.is_some_and(|(present, written)| written > present)))
}

/// Bytes of a line in which perf tells of a loss.
const LOSS: usize = 256;

/// `NAME PID [CPU] TIME: PERF_RECORD_LOST lost 26` of `perf script --show-lost-events`. `PERF_RECORD_LOST_SAMPLES` stands at the end, whenever
/// they were lost.
fn lost_by_perf(text: &[u8]) -> Option<PrintedLine<'_>> {
    const LOST: &[u8] = b"PERF_RECORD_LOST";
    let text = text.get(..text.len().min(LOSS))?;
    let at = text.windows(LOST.len()).position(|part| part == LOST)?;
    let (before, rest) = text.split_at_checked(at)?;
    let rest = rest.get(LOST.len()..)?;
    let samples = rest.strip_prefix(b"_SAMPLES");
    let (events, _) = number(samples.unwrap_or(rest).trim_ascii_start().strip_prefix(b"lost ")?.trim_ascii_start())?;
    let bracket = before.iter().rposition(|byte| *byte == b'[');
    let cpu =
        bracket.and_then(|at| number(before.get(at.saturating_add(1)..)?)).and_then(|(cpu, _)| cpu.try_into().ok());
    Some(match cpu.filter(|_| samples.is_none()) {
        Some(cpu) => PrintedLine::Lost(cpu, Some(events)),
        None => PrintedLine::LostSomewhere(events),
    })
}

/// `1 [LOST 12 EVENTS]` of the kernel, `1 [12 EVENTS DROPPED]` and `1 [EVENTS DROPPED]` of trace-cmd.
fn lost(text: &[u8]) -> Option<PrintedLine<'_>> {
    let (cpu, rest) = number(text)?;
    let rest = rest.trim_ascii_start().strip_prefix(b"[")?;
    let rest = rest.strip_prefix(b"LOST ").unwrap_or(rest);
    let (count, rest) = number(rest).map_or((None, rest), |(count, rest)| (Some(count), rest));
    let is_loss = rest.trim_ascii_start().starts_with(b"EVENTS");
    Some(PrintedLine::Lost(u32::try_from(cpu).ok()?, count)).filter(|_| is_loss)
}

/// A decimal number at the start, and what follows.
pub(crate) fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let (mut value, mut digits) = (0u64, 0usize);
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.checked_mul(10)?.checked_add(digit.into())?;
        digits = digits.wrapping_add(1);
    }
    text.get(digits..).filter(|_| digits > 0).map(|rest| (value, rest))
}

/// A line that has an event. A task's name can be like any other part of the line: the first place counts where all parts fit.
fn event(text: &[u8]) -> Option<EventLine<'_>> {
    let bracket = |from: usize| Some(from.saturating_add(text.get(from..)?.iter().position(|byte| *byte == b'[')?));
    let mut from = 0usize;
    // The name of a task has sixteen bytes; a PID, a thread group and spaces are before the bracket.
    while let Some(at) = bracket(from).filter(|at| *at < 128) {
        if let Some(event) = in_brackets(text, at) {
            return Some(event);
        }
        from = at.saturating_add(1);
    }
    with_flags(text)
}

/// A line whose CPU stands in the bracket at this place.
fn in_brackets(text: &[u8], at: usize) -> Option<EventLine<'_>> {
    let (before, rest) = text.split_at_checked(at)?;
    let (cpu, rest) = number(rest.get(1..)?)?;
    let rest = rest.strip_prefix(b"]")?.trim_ascii_start();
    let (printer, pid) = task(before)?;
    let (context, time) = match time(rest) {
        Some(time) => (None, time),
        None => {
            let length = rest.iter().position(u8::is_ascii_whitespace)?;
            let (flags, rest) = rest.split_at_checked(length)?;
            (Some(context(flags)?), time(rest.trim_ascii_start())?)
        }
    };
    rest_of_line(printer, pid, u32::try_from(cpu).ok()?, context, time)
}

/// A line of `trace-cmd report -l`: the flags stand directly behind the CPU, without brackets.
fn with_flags(text: &[u8]) -> Option<EventLine<'_>> {
    let mut from = 0usize;
    while let Some(at) = text.get(from..)?.iter().position(|byte| *byte == b'-') {
        let at = from.saturating_add(at);
        from = at.saturating_add(1);
        if at > 16 {
            break;
        }
        let found = number(text.get(from..)?).and_then(|(pid, rest)| {
            let (cpu, rest) = number(rest.trim_ascii_start())?;
            let length = rest.iter().position(u8::is_ascii_whitespace)?;
            let (flags, rest) = rest.split_at_checked(length)?;
            let context = context(flags).filter(|_| length >= 4)?;
            let pid = i32::try_from(pid).ok()?;
            rest_of_line(Printer::Kernel, pid, u32::try_from(cpu).ok()?, Some(context), time(rest.trim_ascii_start())?)
        });
        if found.is_some() {
            return found;
        }
    }
    None
}

/// The task before the CPU: `NAME-PID`, perhaps with the thread group (`(  123)`, `(-----)`), or perf's `NAME PID` and `NAME PID/TID`.
fn task(before: &[u8]) -> Option<(Printer, i32)> {
    let mut before = before.trim_ascii_end();
    if let Some(inner) = before.strip_suffix(b")") {
        let at = inner.iter().rposition(|byte| *byte == b'(')?;
        let group = inner.get(at.saturating_add(1)..)?.trim_ascii();
        if !group.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-') {
            return None;
        }
        before = inner.get(..at)?.trim_ascii_end();
    }
    let digits = before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (name, pid) = before.split_at_checked(before.len().checked_sub(digits)?)?;
    let (pid, _) = number(pid)?;
    let pid = i32::try_from(pid).ok()?;
    let Some((last, name)) = name.split_last() else { return Some((Printer::Perf, pid)) };
    match last {
        // perf has `:-1 -1` for a task that it does not know.
        b'-' if pid == 1 && name.ends_with(b" ") => Some((Printer::Perf, sched::Pid::UNKNOWN.0)),
        // trace-cmd, and schedviz, print `<...>--1` for it.
        b'-' if pid == 1 && name.ends_with(b"<...>-") => Some((Printer::Kernel, sched::Pid::UNKNOWN.0)),
        b'-' => Some((Printer::Kernel, pid)),
        b'/' | b' ' => Some((Printer::Perf, pid)),
        _ => None,
    }
}

/// A time in nanoseconds, whether the line has all digits of it, and what follows.
type PrintedTime<'l> = (u64, bool, &'l [u8]);

/// Seconds with a fraction of six to nine digits.
fn time(text: &[u8]) -> Option<PrintedTime<'_>> {
    let (seconds, rest) = number(text)?;
    let rest = rest.strip_prefix(b".")?;
    let (fraction, behind) = number(rest)?;
    let digits = Some(rest.len().saturating_sub(behind.len())).filter(|digits| (6..=9).contains(digits))?;
    let unit = 10u64.checked_pow(9u32.checked_sub(digits as u32)?)?;
    let behind = behind.strip_prefix(b":")?;
    let nanoseconds = seconds.checked_mul(1_000_000_000)?.checked_add(fraction.checked_mul(unit)?)?;
    Some((nanoseconds, digits == 9, behind))
}

/// Name and text, behind the time.
fn rest_of_line<'l>(
    printer: Printer,
    pid: i32,
    cpu: u32,
    context: Option<(u8, u8)>,
    (time, is_exact, rest): PrintedTime<'l>,
) -> Option<EventLine<'l>> {
    let mut rest = rest.trim_ascii_start();
    // perf prints the period of other events before their names.
    if let Some((_, behind)) = number(rest).filter(|_| printer == Printer::Perf) {
        rest = behind.trim_ascii_start();
    }
    let length = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
    let (name, text) = rest.split_at_checked(length)?;
    let name = std::str::from_utf8(name.strip_suffix(b":")?).ok()?;
    let (system, name) = match name.split_once(':') {
        Some((system, name)) => (Some(system), name),
        None => (None, name),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let (has_context, (flags, preempt)) = (context.is_some(), context.unwrap_or_default());
    let is_event = !name.is_empty() && name.bytes().all(is_name);
    let event = EventLine {
        printer,
        pid,
        cpu,
        flags,
        preempt,
        has_context,
        time,
        is_exact,
        system,
        name,
        text: text.trim_ascii_start(),
    };
    is_event.then_some(event)
}

/// The state of a CPU in letters: interrupts, rescheduling, context, and the depths of disabled preemption and of disabled migration
/// (`trace_print_lat_fmt` of `kernel/trace/trace_output.c`).
fn context(letters: &[u8]) -> Option<(u8, u8)> {
    const IRQS_OFF: u8 = 0x01;
    const LAZY: u8 = 0x02;
    const RESCHED: u8 = 0x04;
    const HARD: u8 = 0x08;
    const SOFT: u8 = 0x10;
    const PREEMPT: u8 = 0x20;
    const NMI: u8 = 0x40;
    const BH_OFF: u8 = 0x80;
    let [irqs, resched, context, depths @ ..] = letters else { return None };
    let mut flags = match irqs {
        b'd' => IRQS_OFF,
        b'D' => IRQS_OFF | BH_OFF,
        b'b' => BH_OFF,
        b'X' => LAZY,
        b'.' => 0,
        _ => return None,
    };
    flags |= match resched {
        b'N' => RESCHED | PREEMPT,
        b'n' => RESCHED,
        b'p' => PREEMPT,
        b'B' => RESCHED | PREEMPT | LAZY,
        b'b' => RESCHED | LAZY,
        b'L' => PREEMPT | LAZY,
        b'l' => LAZY,
        b'.' => 0,
        _ => return None,
    };
    flags |= match context {
        b'Z' => NMI | HARD,
        b'z' => NMI,
        b'H' => HARD | SOFT,
        b'h' => HARD,
        b's' => SOFT,
        b'.' => 0,
        _ => return None,
    };
    let depth = |letter: Option<&u8>| match letter {
        None | Some(b'.') => Some(0),
        Some(digit) => (*digit as char).to_digit(16),
    };
    if depths.len() > 3 {
        return None;
    }
    let (preemption, migration) = (depth(depths.first())?, depth(depths.get(1))?);
    Some((flags, (preemption | migration << 4) as u8))
}
