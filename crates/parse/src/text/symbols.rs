//! The tables beside the events: symbols, printk formats, command names. Each is read when it is
//! first asked for.

use crate::bytes::until_nul;
use crate::limits;
use crate::text::expr;
use sched::event::CleanText;
use sched::seeded::SeededMap;
use sched::{Comm, Pid};

/// `/proc/kallsyms`, by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    /// Names of all symbols in one text. A string for each would take three times the memory.
    names: CleanText,
    /// Sorted: each address, and where its name begins and ends.
    by_address: Vec<(u64, u32, u32)>,
    /// Whether there are names of functions without addresses alone: the kernel hid the addresses (`kptr_restrict`).
    are_hidden: bool,
}

/// A source of the names of kernel addresses, for the conversions that print symbols.
pub(crate) trait SymbolSource {
    /// Returns the symbol that `address` is in, and the offset of `address` in it, in bytes; `None` before the first
    /// symbol and behind the last one.
    fn symbol(&self, address: u64) -> Option<(&str, u64)>;
}

impl SymbolSource for Symbols {
    fn symbol(&self, address: u64) -> Option<(&str, u64)> {
        let next = self.by_address.partition_point(|(a, ..)| *a <= address);
        // An address behind the last symbol is in none.
        if next == 0 || next == self.by_address.len() && self.by_address.last().is_none_or(|(a, ..)| *a != address) {
            return None;
        }
        let (base, start, end) = self.by_address.get(next.checked_sub(1)?)?;
        Some((self.names.get(*start as usize..*end as usize)?, address.wrapping_sub(*base)))
    }
}

impl Symbols {
    /// Lines of `address type name[\t[module]]`. Where the kernel hid the addresses all are 0, and
    /// there are no symbols.
    pub(crate) fn parse(text: &[u8]) -> Symbols {
        let (mut names, mut by_address) = (CleanText::default(), Vec::new());
        let mut without_address = false;
        for line in text.split(|b| *b == b'\n') {
            if by_address.len() >= limits::SYMBOLS {
                break;
            }
            let mut words = line.split(|b| matches!(b, b' ' | b'\t')).filter(|w| !w.is_empty());
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else { continue };
            let Some(address) = hex(address) else { continue };
            without_address |= address == 0 && matches!(kind, b"T" | b"t");
            // Absolute symbols are sizes and per-CPU offsets; `$x` marks code and data on ARM.
            if address == 0 || matches!(kind, b"A" | b"a") || name.starts_with(b"$") {
                continue;
            }
            let start = names.len();
            names.push_bytes(name.get(..limits::NAME).unwrap_or(name));
            let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(names.len())) else { break };
            by_address.push((address, start, end));
        }
        // The first of several names for an address counts.
        by_address.sort_by_key(|(address, ..)| *address);
        by_address.dedup_by_key(|(address, ..)| *address);
        let are_hidden = without_address && by_address.is_empty();
        Symbols { names, by_address, are_hidden }
    }

    /// Whether the kernel hid the addresses of all symbols.
    pub(crate) fn are_hidden(&self) -> bool {
        self.are_hidden
    }
}

/// The symbols of a kernel by address, from a copy of `/proc/kallsyms`.
#[derive(Clone, Debug, Default)]
pub struct KernelSymbols(Symbols);

impl KernelSymbols {
    /// Reads lines of an address, a kind and a name. Lines that are none are passed over, and so are symbols beyond the limit.
    pub fn parse(text: &[u8]) -> KernelSymbols {
        KernelSymbols(Symbols::parse(text))
    }

    /// Whether there is no symbol with an address.
    pub fn is_empty(&self) -> bool {
        self.0.by_address.is_empty()
    }

    /// Whether the kernel hid the addresses of all symbols (`kernel.kptr_restrict`), so that there are none.
    pub fn are_hidden(&self) -> bool {
        self.0.are_hidden()
    }

    /// Returns the function that an address is in, and the offset in it in bytes; nothing before the first symbol and behind the last one.
    pub fn function_at(&self, address: u64) -> Option<(&str, u64)> {
        self.0.symbol(address)
    }
}

fn hex(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?.trim_start_matches("0x"), 16).ok()
}

/// `printk_formats`: strings that `bprint` and `bputs` records point to.
pub(crate) fn printk_formats(text: &[u8]) -> SeededMap<u64, String> {
    let mut formats = SeededMap::default();
    let text = String::from_utf8_lossy(text);
    for line in text.lines() {
        let Some((address, literal)) = line.split_once(':') else { continue };
        let (Some(address), Some(text)) = (hex(address.trim().as_bytes()), expr::string_literal(literal)) else {
            continue;
        };
        if formats.len() >= limits::PRINTK_FORMATS {
            break;
        }
        // Addresses occur twice; they say the same.
        formats.entry(address).or_insert(text);
    }
    formats
}

/// `saved_cmdlines`: lines of `pid comm`. The kernel keeps few names and reuses their places, so
/// gaps are normal.
pub(crate) fn cmdlines(text: &[u8]) -> SeededMap<Pid, Comm> {
    let mut names = SeededMap::default();
    for line in until_nul(text).split(|b| *b == b'\n') {
        let line = line.trim_ascii_start();
        let end = line.iter().position(|b| *b == b' ').unwrap_or(line.len());
        let (pid, name) = line.split_at(end);
        let pid = std::str::from_utf8(pid).ok().and_then(|p| p.parse().ok());
        if names.len() >= limits::COMMANDS {
            break;
        }
        if let Some(pid) = pid {
            names.insert(Pid(pid), Comm::new(name.strip_prefix(b" ").unwrap_or(name)));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_by_address() {
        let text = b"0000000000000000 A fixed_percpu\nffffffff81000000 T _stext\nffffffff81000000 T dup\nffffffff81000100 t schedule\t[core]\nffffffff81000200 T $x\nffffffff81000300 B end\n";
        let s = Symbols::parse(text);
        assert_eq!(s.symbol(0xffff_ffff_8100_0000), Some(("_stext", 0)));
        assert_eq!(s.symbol(0xffff_ffff_8100_02ff), Some(("schedule", 0x1ff)));
        assert_eq!((s.symbol(5), s.symbol(u64::MAX)), (None, None));
        assert_eq!(Symbols::parse(b"0 T a\n0 T b\n").symbol(0), None, "hidden addresses");
    }

    #[test]
    fn tables_have_a_limit() {
        use std::fmt::Write;
        let lines = |count: usize, line: fn(&mut String, usize) -> std::fmt::Result| {
            (0..count).fold(String::new(), |mut text, n| {
                line(&mut text, n + 1).expect("written");
                text
            })
        };
        let symbols = lines(limits::SYMBOLS + 5, |text, n| writeln!(text, "{n:x} t a"));
        assert_eq!(Symbols::parse(symbols.as_bytes()).by_address.len(), limits::SYMBOLS);
        let long = format!("10 t {}\n20 t b\n", "x".repeat(1000));
        assert_eq!(Symbols::parse(long.as_bytes()).symbol(0x10).map(|(name, _)| name.len()), Some(limits::NAME));
        let formats = lines(limits::PRINTK_FORMATS + 5, |text, n| writeln!(text, "{n:x}:\"\""));
        assert_eq!(printk_formats(formats.as_bytes()).len(), limits::PRINTK_FORMATS);
        let commands = lines(limits::COMMANDS + 5, |text, n| writeln!(text, "{n} a"));
        assert_eq!(cmdlines(commands.as_bytes()).len(), limits::COMMANDS);
    }

    #[test]
    fn formats_and_names() {
        let formats = printk_formats(b"0xff10 : \"a %d\\n\"\n0xff10 : \"other\"\njunk\n0xff20 : \"b \\\"x\\\"\"\n");
        assert_eq!((formats[&0xff10].as_str(), formats[&0xff20].as_str()), ("a %d\n", "b \"x\""));
        let names = cmdlines(b"12 two words\n7 \n9\nx y\n-3 neg");
        assert_eq!(names[&Pid(12)], Comm::new(b"two words"));
        assert_eq!((names[&Pid(7)], names[&Pid(9)], names.len()), (Comm::EMPTY, Comm::EMPTY, 4));
    }
}
