//! Numbers with their nouns.

use std::borrow::Cow;
use std::fmt::Display;

/// The noun in the form that agrees with the number: `event`, but `events` with any other number than one.
///
/// ```
/// use sched::nouns::noun;
///
/// assert_eq!([noun(1, "switch"), noun(2, "switch"), noun(0, "core")], ["switch", "switches", "cores"]);
/// ```
pub fn noun<N: Copy + PartialEq + From<u8>>(n: N, one: &str) -> Cow<'_, str> {
    match () {
        () if n == N::from(1) => one.into(),
        () if one.ends_with("ch") || one.ends_with('s') => format!("{one}es").into(),
        () => format!("{one}s").into(),
    }
}

/// The number with its noun.
///
/// ```
/// use sched::nouns::counted;
///
/// assert_eq!([counted(0, "event"), counted(1, "event"), counted(2, "event")], ["0 events", "1 event", "2 events"]);
/// ```
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(n: N, one: &str) -> String {
    format!("{n} {}", noun(n, one))
}
