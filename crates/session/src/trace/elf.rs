//! The symbols of a program's file, as far as stacks need them: functions by their place in the file.
//!
//! Only 64-bit little-endian ELF is read. A file counts only if it has the build ID that was recorded: another version of it would give
//! wrong names.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum size of a file that is read, in bytes.
const MOST: u64 = 256 << 20;
/// Maximum number of symbols of a file.
const SYMBOLS: usize = 1 << 20;
/// Maximum size of the names of all functions together, in bytes: names can share their places in a file.
const NAMES: usize = 64 << 20;
/// Maximum number of segments and of sections that are looked at.
const HEADERS: usize = 1 << 12;

/// The functions of a file.
#[derive(Debug, Default)]
pub(crate) struct ElfSymbols {
    /// The loaded segments: their place in the file, their size there, and their address.
    segments: Vec<(u64, u64, u64)>,
    /// The address, the size and the name of each function, by address.
    functions: Vec<(u64, u64, String)>,
    /// The size of their names together, in bytes.
    names: usize,
}

/// The number at a place, of up to eight bytes.
fn number(bytes: &[u8], at: u64, size: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The bytes of a part of the file.
fn part(bytes: &[u8], at: u64, size: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(at).ok()?..usize::try_from(at.checked_add(size)?).ok()?)
}

/// The text at a place that ends with a zero.
fn text(bytes: &[u8], at: u64) -> Option<String> {
    let rest = bytes.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().take(1024).position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(rest.get(..end)?).into_owned())
}

impl ElfSymbols {
    /// Reads the symbols of a file if it has this build ID; nothing where it cannot be read or is another one.
    pub(crate) fn open(path: &Path, build_id: &[u8]) -> Option<ElfSymbols> {
        // A pipe or a device would wait or never end.
        let size = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?.len();
        if size > MOST {
            return None;
        }
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
        ElfSymbols::parse(&bytes, build_id)
    }

    /// Reads the symbols in the bytes of a file.
    pub(crate) fn parse(bytes: &[u8], build_id: &[u8]) -> Option<ElfSymbols> {
        if !bytes.starts_with(b"\x7fELF\x02\x01") || build_id.is_empty() {
            return None;
        }
        let mut found = ElfSymbols::default();
        let (headers, size, count) = (number(bytes, 32, 8)?, number(bytes, 54, 2)?, number(bytes, 56, 2)?);
        for nth in 0..count.min(HEADERS as u64) {
            let at = headers.checked_add(nth.checked_mul(size)?)?;
            if number(bytes, at, 4)? == 1 {
                let field = |offset: u64| number(bytes, at.checked_add(offset)?, 8);
                found.segments.push((field(8)?, field(32)?, field(16)?));
            }
        }
        let (headers, size, count) = (number(bytes, 40, 8)?, number(bytes, 58, 2)?, number(bytes, 60, 2)?);
        let section = |nth: u64| {
            let at = headers.checked_add(nth.checked_mul(size)?)?;
            let field = |offset: u64, size| number(bytes, at.checked_add(offset)?, size);
            // The kind, the place, the size, the linked section.
            Some((field(4, 4)?, field(24, 8)?, field(32, 8)?, field(40, 4)?))
        };
        let sections: Vec<_> = (0..count.min(HEADERS as u64)).filter_map(section).collect();
        const NOTE: u64 = 7;
        let mut notes = sections.iter().filter(|(kind, ..)| *kind == NOTE);
        if !notes.any(|(_, at, size, _)| part(bytes, *at, *size).is_some_and(|note| has_build_id(note, build_id))) {
            return None;
        }
        const SYMBOL_TABLES: [u64; 2] = [2, 11];
        for (_, at, size, names) in sections.iter().filter(|(kind, ..)| SYMBOL_TABLES.contains(kind)) {
            let Some(names) = usize::try_from(*names).ok().and_then(|nth| sections.get(nth)) else { continue };
            let (Some(table), Some(names)) = (part(bytes, *at, *size), part(bytes, names.1, names.2)) else { continue };
            found.add(table, names);
        }
        found.functions.sort();
        found.functions.dedup_by_key(|(address, ..)| *address);
        Some(found)
    }

    /// Adds the functions of a table of symbols.
    fn add(&mut self, table: &[u8], names: &[u8]) {
        for symbol in table.chunks_exact(24) {
            if self.functions.len() >= SYMBOLS || self.names >= NAMES {
                return;
            }
            let field = |at, size| number(symbol, at, size).unwrap_or(0);
            let (name, kind, section, address, size) =
                (field(0, 4), field(4, 1) & 15, field(6, 2), field(8, 8), field(16, 8));
            const FUNCTIONS: [u64; 2] = [2, 10];
            if !FUNCTIONS.contains(&kind) || section == 0 {
                continue;
            }
            if let Some(name) = text(names, name).filter(|name| !name.is_empty()) {
                self.names += name.len();
                self.functions.push((address, size, name));
            }
        }
    }

    /// Returns the function at a place in the file.
    pub(crate) fn function(&self, place: u64) -> Option<&str> {
        let (at, _, address) =
            self.segments.iter().find(|(at, size, _)| place.checked_sub(*at).is_some_and(|in_it| in_it < *size))?;
        let address = address.checked_add(place - at)?;
        let next = self.functions.partition_point(|(start, ..)| *start <= address);
        let (start, size, name) = self.functions.get(next.checked_sub(1)?)?;
        (*size == 0 || address - start < *size).then_some(name.as_str())
    }
}

/// Whether notes have this build ID.
fn has_build_id(mut notes: &[u8], build_id: &[u8]) -> bool {
    while let (Some(name), Some(size), Some(kind)) = (number(notes, 0, 4), number(notes, 4, 4), number(notes, 8, 4)) {
        let place = 12u64.saturating_add(name.next_multiple_of(4));
        let Some(content) = part(notes, place, size) else { return false };
        if kind == 3 && notes.get(12..15) == Some(b"GNU") {
            return content == build_id;
        }
        let Some(rest) =
            usize::try_from(place.saturating_add(size.next_multiple_of(4))).ok().and_then(|end| notes.get(end..))
        else {
            return false;
        };
        notes = rest;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one segment, a build ID and the function `work` of 16 bytes at 0x1010.
    fn elf() -> Vec<u8> {
        let mut bytes = vec![0u8; 0x400];
        let mut put =
            |at: usize, number: u64, size: usize| bytes[at..at + size].copy_from_slice(&number.to_le_bytes()[..size]);
        put(32, 0x40, 8);
        put(54, 56, 2);
        put(56, 1, 2);
        put(40, 0x100, 8);
        put(58, 64, 2);
        put(60, 3, 2);
        // A segment from 0x10 of the file on at address 0x1000, with 0x200 bytes.
        for (at, number, size) in [(0x40, 1, 4), (0x48, 0x10, 8), (0x50, 0x1000, 8), (0x60, 0x200, 8)] {
            put(at, number, size);
        }
        // Notes, symbols, names.
        for (nth, (kind, at, size, link)) in
            [(7, 0x300, 20, 0), (2, 0x320, 24, 2), (3, 0x340, 6, 0)].into_iter().enumerate()
        {
            let head = 0x100 + 64 * nth;
            put(head + 4, kind, 4);
            put(head + 24, at, 8);
            put(head + 32, size, 8);
            put(head + 40, link, 4);
        }
        for (at, number, size) in
            [(0x300, 4, 4), (0x304, 4, 4), (0x308, 3, 4), (0x30c, 0x55_4e47, 4), (0x310, 0x0403_0201, 4)]
        {
            put(at, number, size);
        }
        for (at, number, size) in [(0x320, 1, 4), (0x324, 2, 1), (0x326, 1, 2), (0x328, 0x1010, 8), (0x330, 16, 8)] {
            put(at, number, size);
        }
        bytes[0x341..0x345].copy_from_slice(b"work");
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes
    }

    #[test]
    fn functions_are_found_by_their_place_in_the_file() {
        let symbols = ElfSymbols::parse(&elf(), &[1, 2, 3, 4]).expect("symbols");
        assert_eq!((symbols.function(0x20), symbols.function(0x2f)), (Some("work"), Some("work")));
        assert_eq!((symbols.function(0x30), symbols.function(0x1f), symbols.function(0)), (None, None, None));
    }

    #[test]
    fn another_version_of_a_file_has_no_names() {
        assert!(ElfSymbols::parse(&elf(), &[1, 2, 3, 5]).is_none());
        assert!(ElfSymbols::parse(&elf(), &[]).is_none());
    }

    #[test]
    fn no_damage_is_a_panic() {
        let whole = elf();
        for end in 0..whole.len() {
            let _ = ElfSymbols::parse(&whole[..end], &[1, 2, 3, 4]);
        }
        for at in 0..0x200 {
            let mut damaged = whole.clone();
            damaged[at] = 0xff;
            let _ = ElfSymbols::parse(&damaged, &[1, 2, 3, 4]).map(|symbols| symbols.function(u64::MAX).is_some());
        }
    }
}
