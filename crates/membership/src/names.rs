//! The rule for names that differ in a number or a random part alone.

use sched::kthread::command;
use sched::{Comm, event::escape};
use std::cell::RefCell;
use std::thread::LocalKey;

/// The least length of a random part.
const RANDOM: usize = 6;

/// The number of names whose stems a thread remembers: analyses ask for that of a task at each of its waits.
const REMEMBERED: usize = 256;

/// Stems by the names that they were found for, each at a place that follows from the name. Another name at that place takes it over.
type Remembered<T> = RefCell<Vec<Option<(Comm, T)>>>;

thread_local! {
    static STEMS: Remembered<Box<str>> = const { RefCell::new(Vec::new()) };
    static STEMMED: Remembered<Comm> = const { RefCell::new(Vec::new()) };
}

/// The stem of a name: one that is remembered, or that `find` makes.
fn remembered<T: Clone>(of: &'static LocalKey<Remembered<T>>, name: Comm, find: impl FnOnce(Comm) -> T) -> T {
    let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let at = name.as_bytes().iter().fold(0x811c_9dc5, mix) as usize % REMEMBERED;
    of.with_borrow_mut(|known| {
        if known.is_empty() {
            known.resize(REMEMBERED, None);
        }
        match known.get_mut(at) {
            Some(Some((other, stem))) if *other == name => stem.clone(),
            place => {
                let stem = find(name);
                place.into_iter().for_each(|place| *place = Some((name, stem.clone())));
                stem
            }
        }
    })
}

/// Returns the name of a command with `N` in the place of each number and `…` in the place of each random part, fit to be printed.
///
/// The threads of the kernel have their commands ([`command`]). Any other name is divided into parts, which are runs of letters and
/// digits, and of the parts behind the first one
///
/// * a number becomes `N`;
/// * a part of at least six lower-case letters and digits in which a digit precedes a letter becomes `…`;
/// * a number at the end of the last part becomes `N`.
///
/// The first part names the program, and stays: `python2` and `python3` are two commands.
pub fn stem(name: Comm) -> String {
    remembered(&STEMS, name, |name| found(name).into()).into()
}

fn found(name: Comm) -> String {
    let kernel = command(name);
    if kernel != name {
        return escape(kernel.as_bytes()).into_owned();
    }
    let text = escape(name.as_bytes());
    let is_of_part = |c: char| c.is_alphanumeric();
    let last = text.rfind(is_of_part);
    let mut out = String::with_capacity(text.len());
    let mut rest: &str = &text;
    let mut is_first = true;
    while let Some(start) = rest.find(is_of_part) {
        let (before, behind) = rest.split_at(start);
        let end = behind.find(|c| !is_of_part(c)).unwrap_or(behind.len());
        let (part, behind) = behind.split_at(end);
        out.push_str(before);
        let is_last = last.is_some_and(|last| last < text.len() - behind.len());
        match (is_first, variable(part, is_last)) {
            (false, Some(replaced)) => out.push_str(&replaced),
            _ => out.push_str(part),
        }
        (rest, is_first) = (behind, false);
    }
    out.push_str(rest);
    out
}

/// Returns the [`stem`] of a name as a name of its own. A name with bytes that cannot be printed is its own stem here.
pub fn stemmed(name: Comm) -> Comm {
    remembered(&STEMMED, name, |name| {
        // Nothing that replaces a part is longer than the part.
        let is_plain = escape(name.as_bytes()).as_bytes() == name.as_bytes();
        if is_plain { Comm::new(found(name).as_bytes()) } else { name }
    })
}

/// Returns a part with its number or all of it replaced; nothing for a part that has neither.
fn variable(part: &str, is_last: bool) -> Option<String> {
    let is_digit = |c: char| c.is_ascii_digit();
    let name = part.trim_end_matches(is_digit);
    if name.is_empty() {
        return Some("N".to_owned());
    }
    let is_random = part.len() >= RANDOM
        && name.contains(is_digit)
        && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if is_random {
        return Some("…".to_owned());
    }
    (is_last && name.len() < part.len()).then(|| format!("{name}N"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_random_parts_are_replaced_behind_the_first_part() {
        let cases = [
            ("opt 61vtzgccpd9", "opt …"),
            ("opt 0cxe9qdlj1g", "opt …"),
            ("rayon-worker-3", "rayon-worker-N"),
            ("CPU 12/KVM", "CPU N/KVM"),
            ("GC Thread#3", "GC Thread#N"),
            ("av:h264:df0", "av:h264:dfN"),
            ("fio-worker12", "fio-workerN"),
            ("kworker/3:1H", "kworker/N:NH"),
            ("gcc-12", "gcc-N"),
        ];
        for (name, expected) in cases {
            assert_eq!(stem(Comm::new(name.as_bytes())), expected, "{name}");
        }
        for name in ["make", "python3", "sha256sum", "61vtzgccpd9", "hackbench", "tokio-runtime-w", "", "-", "a b"] {
            assert_eq!(stem(Comm::new(name.as_bytes())), name);
        }
        assert_eq!(stem(Comm::new(b"\xff-7")), "\\xff-N");
        assert_eq!(stemmed(Comm::new(b"opt 61vtzgccpd9")).to_string(), "opt …");
        assert_eq!(stemmed(Comm::new(b"\xff-7")), Comm::new(b"\xff-7"));
    }

    #[test]
    fn more_names_than_are_remembered_have_their_own_stems() {
        let names = || (0..40 * REMEMBERED).map(|n| Comm::new(format!("a{n}-{n}").as_bytes()));
        for (nth, name) in names().chain(names()).enumerate() {
            let expected = format!("a{}-N", nth % (40 * REMEMBERED));
            assert_eq!(stem(name), expected);
            assert_eq!(stemmed(name), Comm::new(expected.as_bytes()));
            assert_eq!(stem(name), expected, "a second time");
        }
    }
}
