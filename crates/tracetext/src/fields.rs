//! The fields of an event, from the text behind its name.
//!
//! Three dialects: the kernel's print formats (`comm=cat pid=7`), raw fields (`trace-cmd report -R`), and the plugins of trace-cmd and perf
//! (`cat:7 [120] CPU:001`).

use crate::limits;
use crate::line::number;
use memchr::memchr_iter;
use sched::Tracepoint;
use transcript::{FieldKind, FieldValue};

/// A field of a known event: its name, the other name under which a print format has it, and its kind.
pub(crate) type KnownField = (&'static str, &'static str, FieldKind);

const COMM: FieldKind = FieldKind::Comm;
const INT: FieldKind = FieldKind::Signed(4);
const LONG: FieldKind = FieldKind::Unsigned(8);

/// The fields of an event that is read field by field, in the order of its format.
pub(crate) fn known(tracepoint: Tracepoint) -> Option<&'static [KnownField]> {
    Some(match tracepoint {
        Tracepoint::Switch => &[
            ("prev_comm", "", COMM),
            ("prev_pid", "", INT),
            ("prev_prio", "", INT),
            ("prev_state", "", FieldKind::Signed(8)),
            ("next_comm", "", COMM),
            ("next_pid", "", INT),
            ("next_prio", "", INT),
        ],
        Tracepoint::Wakeup | Tracepoint::WakeupNew | Tracepoint::Waking => {
            &[("comm", "", COMM), ("pid", "", INT), ("prio", "", INT), ("target_cpu", "", INT)]
        }
        Tracepoint::Migrate => {
            &[("comm", "", COMM), ("pid", "", INT), ("prio", "", INT), ("orig_cpu", "", INT), ("dest_cpu", "", INT)]
        }
        Tracepoint::Fork => &[
            ("parent_comm", "comm", COMM),
            ("parent_pid", "pid", INT),
            ("child_comm", "", COMM),
            ("child_pid", "", INT),
        ],
        Tracepoint::Exec => &[("filename", "", FieldKind::Text), ("pid", "", INT), ("old_pid", "", INT)],
        Tracepoint::Exit => &[("comm", "", COMM), ("pid", "", INT), ("prio", "", INT)],
        Tracepoint::Rename => &[("pid", "", INT), ("oldcomm", "", COMM), ("newcomm", "", COMM)],
        Tracepoint::Frequency => &[("state", "", FieldKind::Unsigned(4)), ("cpu_id", "", FieldKind::Unsigned(4))],
        _ => return None,
    })
}

/// The fields of the creation of a task, which shows processes.
pub(crate) const NEW_TASK: &[KnownField] = &[("pid", "", INT), ("comm", "", COMM), ("clone_flags", "", LONG)];

/// Reads the fields of a known event into `values`, which are empty; `false` where the text lacks one of the numbers.
pub(crate) fn of_known<'l>(fields: &[KnownField], text: &'l [u8], values: &mut Vec<FieldValue<'l>>) -> bool {
    if in_order(fields, text, values).is_some() {
        return true;
    }
    values.clear();
    let pairs = pairs(text);
    let value = |field: &KnownField| {
        // A raw text has both: `comm` is the parent's where there is no `parent_comm`.
        let is = |wanted: &str| pairs.iter().find(|(key, _)| *key == wanted.as_bytes()).map(|(_, value)| *value);
        let (name, other, kind) = field;
        let value = is(name).or_else(|| is(other).filter(|_| !other.is_empty()));
        let is_text = matches!(kind, FieldKind::Comm | FieldKind::Text);
        value_of(field, value.or_else(|| is_text.then_some(b""))?)
    };
    values.extend(fields.iter().map_while(value));
    values.len() == fields.len()
}

/// Reads the fields of a known event whose text has them alone and in their order, as kernels print them; `None` where the text is another one.
/// The values are those that [`pairs`] finds, without a list of them.
fn in_order<'l>(fields: &[KnownField], text: &'l [u8], values: &mut Vec<FieldValue<'l>>) -> Option<()> {
    let (first, mut rest) = before_equals(text)?;
    if !without_name(fields.first()?, first)?.trim_ascii().is_empty() {
        return None;
    }
    let mut left = fields.iter().peekable();
    while let Some(field) = left.next() {
        let next = before_equals(rest);
        let (value, behind) = match left.peek() {
            Some(next_field) => {
                let (before, behind) = next?;
                let value = without_name(next_field, before)?;
                (value.last()?.is_ascii_whitespace().then_some(value)?, behind)
            }
            None if next.is_some() => return None,
            None => (rest, &[][..]),
        };
        values.push(value_of(field, clean(value))?);
        rest = behind;
    }
    Some(())
}

/// A text that ends with the name of a field, without it.
fn without_name<'l>((name, other, _): &KnownField, text: &'l [u8]) -> Option<&'l [u8]> {
    let of_other = || text.strip_suffix(other.as_bytes()).filter(|_| !other.is_empty());
    text.strip_suffix(name.as_bytes()).or_else(of_other)
}

/// The parts of a text before and behind the first `=` that stands behind a name, as that of ` ==> ` does not.
fn before_equals(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let follows_name = |at: &usize| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    let at = memchr_iter(b'=', text).find(follows_name)?;
    Some((text.get(..at)?, text.get(at.saturating_add(1)..)?))
}

/// Whether the `=` before this place belongs to a `==` or `=>`.
fn is_arrow(text: &[u8], behind: usize) -> bool {
    matches!(text.get(behind), Some(b'=' | b'>'))
}

/// The value of a field; `None` where it is not the number that it should be.
fn value_of<'l>((name, _, kind): &KnownField, text: &'l [u8]) -> Option<FieldValue<'l>> {
    Some(match kind {
        FieldKind::Comm | FieldKind::Text => FieldValue::Text(text),
        _ if *name == "prev_state" => FieldValue::Number(state(text)?),
        _ if *name == "clone_flags" => FieldValue::Number(hexadecimal(text)?),
        _ => FieldValue::Number(decimal(text)?),
    })
}

/// The names and values of `name=value name=value`. A value can have spaces, and goes on until the next name.
pub(crate) fn pairs(text: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut pairs: Vec<(&[u8], &[u8])> = Vec::new();
    // Where the value before begins.
    let mut value = 0;
    let mut name: Option<&[u8]> = None;
    for at in memchr_iter(b'=', text) {
        let from = at.saturating_add(1);
        let before = text.get(value..at).unwrap_or_default();
        let length = before.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let (rest, key) = before.split_at(before.len().saturating_sub(length));
        let is_name = key.first().is_some_and(|byte| !byte.is_ascii_digit())
            && (rest.is_empty() && value == 0 || rest.last().is_some_and(u8::is_ascii_whitespace));
        // The name of a task can begin with such a character; elsewhere `==` belongs to the value.
        let is_value = is_arrow(text, from) && !key.ends_with(b"comm");
        if !is_name || is_value || pairs.len() >= limits::FIELDS {
            continue;
        }
        if let Some(name) = name {
            pairs.push((name, clean(rest)));
        }
        (name, value) = (Some(key), from);
    }
    if let Some(name) = name {
        pairs.push((name, clean(text.get(value..).unwrap_or_default())));
    }
    pairs
}

/// A value without what stands between it and the next name.
fn clean(value: &[u8]) -> &[u8] {
    let value = value.trim_ascii_end();
    value.strip_suffix(b" ==>").map_or(value, <[u8]>::trim_ascii_end)
}

/// A number with a sign or without.
pub(crate) fn decimal(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let value = match digits.strip_prefix(b"0x") {
        Some(_) => hexadecimal(digits)?,
        None => number(digits).filter(|(_, rest)| rest.is_empty())?.0.cast_signed(),
    };
    Some(value.wrapping_mul(sign))
}

fn hexadecimal(text: &[u8]) -> Option<i64> {
    let digits = std::str::from_utf8(text.strip_prefix(b"0x").unwrap_or(text)).ok()?;
    u64::from_str_radix(digits, 16).ok().map(u64::cast_signed)
}

/// The number of a state in letters, of kernels since 5.0; a raw one is a number already.
fn state(text: &[u8]) -> Option<i64> {
    if text.first()?.is_ascii_digit() {
        return decimal(text);
    }
    Some(letters(text, |letter| match letter {
        b'S' => 1,
        b'D' => 2,
        b'T' => 4,
        b't' => 8,
        // `x` is a dead task of kernels before 4.14.
        b'X' | b'x' => 0x10,
        b'Z' => 0x20,
        b'P' => 0x40,
        b'I' => 0x80,
        _ => 0,
    }))
}

/// The number of a state in the letters of the plugins, whose bits are those of older kernels (`write_state` of
/// `plugin_sched_switch.c`).
fn plugin_state(text: &[u8]) -> i64 {
    letters(text, |letter| match letter {
        b'S' => 1,
        b'D' => 2,
        b'T' => 4,
        b't' => 8,
        b'Z' => 0x10,
        b'X' => 0x20,
        b'x' => 0x40,
        b'W' => 0x80,
        _ => 0,
    })
}

fn letters(text: &[u8], bit: impl Fn(u8) -> i64) -> i64 {
    let mut number = text.iter().fold(0, |number, letter| number | bit(*letter));
    if text.contains(&b'+') {
        number |= 0x100;
    }
    // A letter that no kernel has now stands for a sleep all the same.
    if number == 0 && !text.contains(&b'R') { 0x40 } else { number }
}

/// Reads a switch or a wakeup of the plugins.
pub(crate) fn of_plugin(tracepoint: Tracepoint, text: &[u8]) -> Option<Vec<FieldValue<'_>>> {
    let text = text.get(..text.len().min(limits::PLUGIN)).unwrap_or_default();
    match tracepoint {
        Tracepoint::Switch => {
            let at = arrow(text)?;
            let (prev, next) = (text.get(..at)?, text.get(at.saturating_add(5)..)?);
            let ([prev_comm, prev_pid, prev_prio], state) = plugin_task(prev)?;
            let ([next_comm, next_pid, next_prio], _) = plugin_task(next)?;
            let state = FieldValue::Number(plugin_state(state.trim_ascii()));
            Some(vec![prev_comm, prev_pid, prev_prio, state, next_comm, next_pid, next_prio])
        }
        Tracepoint::Wakeup | Tracepoint::WakeupNew | Tracepoint::Waking => {
            let ([comm, pid, prio], rest) = plugin_task(text)?;
            let at = rest.windows(4).position(|part| part == b"CPU:")?;
            let (cpu, _) = number(rest.get(at.saturating_add(4)..)?)?;
            Some(vec![comm, pid, prio, FieldValue::Number(cpu.cast_signed())])
        }
        _ => None,
    }
}

/// The place of ` ==> `, behind which a task follows.
fn arrow(text: &[u8]) -> Option<usize> {
    let mut places =
        (0..text.len().saturating_sub(4)).filter(|at| text.get(*at..at.saturating_add(5)) == Some(b" ==> "));
    places.find(|at| {
        let sides = text.get(..*at).zip(text.get(at.saturating_add(5)..));
        sides.is_some_and(|(prev, next)| plugin_task(prev).is_some() && plugin_task(next).is_some())
    })
}

/// `NAME:PID [PRIORITY]` at the start, and what follows. A name can have colons and brackets: the last place counts where all parts fit.
fn plugin_task(text: &[u8]) -> Option<([FieldValue<'_>; 3], &[u8])> {
    let fits = |at: usize| {
        let (pid, rest) = signed(text.get(at.saturating_add(1)..)?)?;
        let (prio, rest) = signed(rest.strip_prefix(b" [")?)?;
        let rest = rest.strip_prefix(b"]")?;
        Some(([FieldValue::Text(text.get(..at)?), FieldValue::Number(pid), FieldValue::Number(prio)], rest))
    };
    (0..text.len()).rev().filter(|at| text.get(*at) == Some(&b':')).find_map(fits)
}

fn signed(text: &[u8]) -> Option<(i64, &[u8])> {
    let (sign, digits) = text.strip_prefix(b"-").map_or((1, text), |digits| (-1, digits));
    let (number, rest) = number(digits)?;
    Some((number.cast_signed().wrapping_mul(sign), rest))
}
