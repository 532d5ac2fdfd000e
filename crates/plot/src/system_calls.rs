//! The names of system calls, which the events of `raw_syscalls` show as numbers.
//!
//! A number has its meaning by the architecture. The lists are those of 64-bit programs: a 32-bit program on a 64-bit kernel
//! has other numbers, and no event shows which kind a program is.

use crate::expr::EventValue;
use std::sync::OnceLock;

/// The names of the system calls of an architecture, by number.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SystemCalls(Vec<Option<&'static str>>);

/// `NUMBER NAME` on each line.
const X86_64: &str = include_str!("../system-calls/x86_64.txt");
/// The list that newer architectures share.
const GENERIC: &str = include_str!("../system-calls/aarch64.txt");

impl SystemCalls {
    /// The system calls of a machine, by its name in `uname`; nothing where its numbers are not known.
    pub(crate) fn of(machine: &str) -> Option<&'static SystemCalls> {
        static LISTS: [OnceLock<SystemCalls>; 2] = [OnceLock::new(), OnceLock::new()];
        let (list, text) = match machine {
            "x86_64" => (&LISTS[0], X86_64),
            "aarch64" | "riscv64" | "loongarch64" => (&LISTS[1], GENERIC),
            _ => return None,
        };
        Some(list.get_or_init(|| SystemCalls::read(text)))
    }

    fn read(text: &'static str) -> SystemCalls {
        let mut names = Vec::new();
        for (number, name) in text.lines().filter_map(|line| line.split_once(' ')) {
            let Ok(number) = number.parse::<usize>() else { continue };
            if number >= names.len() {
                names.resize(number + 1, None);
            }
            names[number] = Some(name);
        }
        SystemCalls(names)
    }

    /// The name of a system call; the number itself where it has none.
    pub(crate) fn name(calls: Option<&SystemCalls>, number: EventValue) -> EventValue {
        let EventValue::Number(n) = number else { return number };
        let name = usize::try_from(n).ok().and_then(|n| calls?.0.get(n).copied().flatten());
        EventValue::Text(name.map_or_else(|| n.to_string(), str::to_owned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_its_name_by_the_machine() {
        let name =
            |machine: &str, n: i128| SystemCalls::name(SystemCalls::of(machine), EventValue::Number(n)).to_string();
        assert_eq!(["x86_64", "aarch64", "riscv64"].map(|machine| name(machine, 98)), ["getrusage", "futex", "futex"]);
        assert_eq!([("x86_64", 0), ("aarch64", 63)].map(|(machine, n)| name(machine, n)), ["read", "read"]);
        // Both have had the same numbers since 424.
        assert_eq!([name("x86_64", 435), name("aarch64", 435)], ["clone3", "clone3"]);
        assert_eq!([name("s390x", 4), name("x86_64", 400), name("x86_64", -1)], ["4", "400", "-1"]);
        for text in [X86_64, GENERIC] {
            let numbers: Vec<usize> = text.lines().filter_map(|line| line.split_once(' ')?.0.parse().ok()).collect();
            assert!(numbers.len() > 300 && numbers.is_sorted_by(|a, b| a < b), "each number once, in order");
        }
    }
}
