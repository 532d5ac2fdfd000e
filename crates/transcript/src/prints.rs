//! The print formats of known events, as kernels have them: other programs print the records as those of a trace.dat.

use std::fmt::Write;

/// The table: a line for each event. Its system, its name, and the print format, where texts are `__get_str` whatever the field is.
const TABLE: &str = include_str!("prints.txt");

/// How a format refers to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldForm {
    /// A number, which the format prints by its conversion.
    Number,
    /// A text in the fixed part of a record.
    Array,
    /// A text behind the fixed part.
    Dynamic,
}

/// Whether a character can be part of the name of a field.
fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The print format of an event in the table, if its fields are those that the format shows.
pub(crate) fn known(system: &str, name: &str, fields: &[(&str, FieldForm)]) -> Option<String> {
    let formats = TABLE.lines().filter_map(|line| {
        let (of, rest) = line.split_once(' ')?;
        let (event, print) = rest.split_once(' ')?;
        (of == system && event == name).then_some(print)
    });
    formats.filter_map(|print| with_fields(print, fields)).next()
}

/// A print format for these fields; nothing where one is missing, or a number is a text.
fn with_fields(print: &str, fields: &[(&str, FieldForm)]) -> Option<String> {
    let form = |name: &str| fields.iter().find(|(other, _)| *other == name).map(|(_, form)| *form);
    let (mut out, mut rest) = (String::new(), print);
    loop {
        let number = rest.find("REC->").map(|at| (at, "REC->", false));
        let text = rest.find("__get_str(").map(|at| (at, "__get_str(", true));
        let Some((at, opening, is_text)) = number.into_iter().chain(text).min() else { break };
        let (before, behind) = rest.split_at_checked(at.saturating_add(opening.len()))?;
        let (name, behind) = behind.split_at_checked(behind.find(|c| !is_of_name(c)).unwrap_or(behind.len()))?;
        out.push_str(before.strip_suffix(opening)?);
        rest = if is_text { behind.strip_prefix(')')? } else { behind };
        // Writing to a string cannot fail.
        let _ = match (form(name)?, is_text) {
            (FieldForm::Dynamic, true) => write!(out, "__get_str({name})"),
            (FieldForm::Array, true) | (FieldForm::Number, false) => write!(out, "REC->{name}"),
            _ => return None,
        };
    }
    out.push_str(rest);
    Some(out)
}

/// The print format of a switch of a kernel of this version, which explains the numbers of `prev_state`; of the latest where the version is
/// unknown.
///
/// `TASK_STATE_TO_CHAR_STR` and `TASK_STATE_MAX` of `include/linux/sched.h` until 4.13, `TASK_REPORT` since. The kernels 4.14 to
/// 4.20 have the text of the later ones and other numbers, which the reader tells by the data.
pub(crate) fn switch(release: Option<(u32, u32)>) -> String {
    const MODERN: &str = "SDTtXZPI";
    const BEFORE: &str = "SDTtZXxKWPNn";
    let release = release.unwrap_or((u32::MAX, 0));
    let (letters, most) = match release {
        (4, 14..) | (5.., _) => (MODERN, 0x100),
        (4, 8..) => (BEFORE, 4096),
        (4, 2..) => (BEFORE, 2048),
        (3, 14..) | (4, _) => (BEFORE, 1024),
        _ => (BEFORE, 512),
    };
    let mask = most - 1;
    let mut flags = String::new();
    for (place, letter) in letters.chars().enumerate().take_while(|(place, _)| 1u32 << place < most) {
        // Writing to a string cannot fail.
        let _ = write!(flags, ", {{ {:#x}, \"{letter}\" }}", 1u32 << place);
    }
    format!(
        "\"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d\", \
         REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & {mask:#x}) ? \
         __print_flags(REC->prev_state & {mask:#x}, \"|\"{flags}) : \"R\", REC->prev_state & {most:#x} ? \"+\" : \"\", \
         REC->next_comm, REC->next_pid, REC->next_prio"
    )
}
