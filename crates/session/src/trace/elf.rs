//! The symbols of a program's file, as far as stacks need them: functions by their place in the file.
//!
//! Only 64-bit little-endian ELF is read. A file counts only if it has the build ID that was recorded: another version of it would give
//! wrong names. Only the parts with headers, build IDs and symbols are read, within a room that the files of a recording share.

use rustix::fs::{Mode, OFlags};
use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Maximum number of bytes that are read of all files together. The symbols of a file take no more memory than their bytes in it, and a
/// third.
pub(crate) const MOST: u64 = 128 << 20;
/// The number of bytes that a file counts at least, so that the number of files has a limit, too.
const LEAST: u64 = 4 << 10;
/// Maximum number of symbols of a file.
const SYMBOLS: usize = 1 << 20;
/// Maximum number of segments and of sections that are looked at.
const HEADERS: u64 = 1 << 12;
/// Maximum number of tables of symbols: programs have one for all functions, and one for those that other programs call.
const TABLES: usize = 4;
/// Maximum length of a name, in bytes.
const NAME: usize = 1024;
/// Size of the header, in bytes.
const HEADER: usize = 64;
/// Size of the description of a segment, in bytes.
const SEGMENT: usize = 56;
/// Size of the description of a section, in bytes.
const SECTION: usize = 64;
/// Size of a symbol, in bytes.
const SYMBOL: usize = 24;

/// A function of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Function {
    address: u64,
    size: u64,
    /// The table of its name, and the place there.
    name: (u8, u32),
}

/// The functions of a file.
#[derive(Debug, Default)]
pub(crate) struct ElfSymbols {
    /// The loaded segments: their place in the file, their size there, and their address.
    segments: Vec<(u64, u64, u64)>,
    /// The functions, by address.
    functions: Vec<Function>,
    /// The tables of their names.
    names: Vec<Vec<u8>>,
}

/// The number at a place, of up to eight bytes.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The parts of a file that are read, from the room that is left.
struct Parts<'r, R> {
    file: R,
    left: &'r Cell<u64>,
}

impl<R: Read + Seek> Parts<'_, R> {
    /// Reads a part of the file; nothing where the file or the room ends before.
    fn part(&mut self, at: u64, size: u64) -> Option<Vec<u8>> {
        let left = self.left.get().checked_sub(size)?;
        // A size in a header may be that of no file.
        let end = self.file.seek(SeekFrom::End(0)).ok()?;
        at.checked_add(size).filter(|last| *last <= end)?;
        self.left.set(left);
        self.file.seek(SeekFrom::Start(at)).ok()?;
        let mut bytes = Vec::new();
        self.file.by_ref().take(size).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 == size).then_some(bytes)
    }

    /// Reads a list of headers; those beyond the limit are left out.
    fn headers(&mut self, at: u64, size: u64, count: u64) -> Option<Vec<u8>> {
        self.part(at, size.checked_mul(count.min(HEADERS))?)
    }
}

/// A section: its kind, its place in the file, its size there, and the section that it refers to.
type Section = (u64, u64, u64, u64);

impl ElfSymbols {
    /// Reads the symbols of a file if it has this build ID; nothing where it cannot be read or is another one. `left` is the number of
    /// bytes that may still be read.
    ///
    /// The recording chooses the path, so that only what a kernel can have mapped as a program is opened: a regular file at an absolute
    /// path without links, on a file system of files, whose build ID was recorded.
    pub(crate) fn open(path: &Path, build_id: &[u8], left: &Cell<u64>) -> Option<ElfSymbols> {
        left.set(left.get().checked_sub(LEAST)?);
        if build_id.is_empty() || !is_program_path(path) {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
        // Another file can have come to the path meanwhile.
        file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        opened::note(path, &file);
        ElfSymbols::read(file, build_id, left)
    }

    /// Reads the symbols of an open file.
    fn read(file: impl Read + Seek, build_id: &[u8], left: &Cell<u64>) -> Option<ElfSymbols> {
        let mut parts = Parts { file, left };
        let header = parts.part(0, HEADER as u64)?;
        if !header.starts_with(b"\x7fELF\x02\x01") || build_id.is_empty() {
            return None;
        }
        let of = |at, size| number(&header, at, size);
        let mut found = ElfSymbols::default();
        let (at, size, count) = (of(32, 8)?, of(54, 2)?, of(56, 2)?);
        let headers = parts.headers(at, size, count)?;
        for segment in headers.chunks(size.max(1) as usize).filter(|segment| segment.len() >= SEGMENT) {
            if number(segment, 0, 4)? == 1 {
                found.segments.push((number(segment, 8, 8)?, number(segment, 32, 8)?, number(segment, 16, 8)?));
            }
        }
        let (at, size, count) = (of(40, 8)?, of(58, 2)?, of(60, 2)?);
        let headers = parts.headers(at, size, count)?;
        let section = |section: &[u8]| -> Option<Section> {
            let field = |at, size| number(section, at, size);
            Some((field(4, 4)?, field(24, 8)?, field(32, 8)?, field(40, 4)?))
        };
        let sections = headers.chunks(size.max(1) as usize).filter(|section| section.len() >= SECTION);
        let sections: Vec<Section> = sections.filter_map(section).collect();
        const NOTE: u64 = 7;
        let mut notes = sections.iter().filter(|(kind, ..)| *kind == NOTE);
        if !notes.any(|(_, at, size, _)| parts.part(*at, *size).is_some_and(|note| has_build_id(&note, build_id))) {
            return None;
        }
        const SYMBOL_TABLES: [u64; 2] = [2, 11];
        let tables = sections.iter().filter(|(kind, ..)| SYMBOL_TABLES.contains(kind));
        for (_, at, size, names) in tables.take(TABLES) {
            let Some(names) = usize::try_from(*names).ok().and_then(|nth| sections.get(nth)) else { continue };
            let (Some(table), Some(names)) = (parts.part(*at, *size), parts.part(names.1, names.2)) else { continue };
            found.add(&table, names);
        }
        found.sort();
        Some(found)
    }

    /// Adds the functions of a table of symbols.
    fn add(&mut self, table: &[u8], names: Vec<u8>) {
        let nth = self.names.len() as u8;
        for symbol in table.chunks_exact(SYMBOL).take(SYMBOLS - self.functions.len()) {
            let field = |at, size| number(symbol, at, size).unwrap_or(0);
            const FUNCTIONS: [u64; 2] = [2, 10];
            let (is_function, section) = (FUNCTIONS.contains(&(field(4, 1) & 15)), field(6, 2));
            if is_function && section != 0 && field(0, 4) != 0 {
                let (address, size, name) = (field(8, 8), field(16, 8), (nth, field(0, 4) as u32));
                self.functions.push(Function { address, size, name });
            }
        }
        self.names.push(names);
    }

    /// Sorts the functions by their addresses. The smallest of several with one address counts, and among these the first name.
    fn sort(&mut self) {
        let mut functions = std::mem::take(&mut self.functions);
        functions.retain(|function| self.name(*function).is_some());
        functions.sort_unstable_by_key(|function| (function.address, function.size, function.name));
        // Names are compared once each, since thousands of long ones can share an address.
        let same = functions.chunk_by(|a, b| (a.address, a.size) == (b.address, b.size));
        let first = |same: &[Function]| same.iter().copied().min_by(|a, b| self.name(*a).cmp(&self.name(*b)));
        let mut named: Vec<Function> = same.filter_map(first).collect();
        named.dedup_by_key(|function| function.address);
        self.functions = named;
    }

    /// The name of a function: the bytes up to a zero; nothing for one without a name or without its end.
    fn name(&self, function: Function) -> Option<&[u8]> {
        let (table, at) = function.name;
        let rest = self.names.get(usize::from(table))?.get(at as usize..)?;
        let end = rest.iter().take(NAME).position(|byte| *byte == 0)?;
        rest.get(..end).filter(|name| !name.is_empty())
    }

    /// Returns the function at a place in the file.
    pub(crate) fn function(&self, place: u64) -> Option<String> {
        let (at, _, address) =
            self.segments.iter().find(|(at, size, _)| place.checked_sub(*at).is_some_and(|in_it| in_it < *size))?;
        let address = address.checked_add(place - at)?;
        let next = self.functions.partition_point(|function| function.address <= address);
        let function = self.functions.get(next.checked_sub(1)?)?;
        let is_in = function.size == 0 || address - function.address < function.size;
        is_in.then(|| self.name(*function).map(|name| sched::event::escape(name).into_owned()))?
    }
}

/// Whether a path can be that of a program's file, found without opening it: to open a file of the kernel's own file systems, or a device,
/// can do something.
fn is_program_path(path: &Path) -> bool {
    let is_plain = path.is_absolute() && !path.components().any(|part| part == std::path::Component::ParentDir);
    is_plain
        && std::fs::canonicalize(path).is_ok_and(|real| real == path)
        && std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
        && rustix::fs::statfs(path).is_ok_and(|system| !is_of_kernel(system.f_type as u64))
}

/// Whether a file system shows the kernel's own data and not files (`<linux/magic.h>`).
fn is_of_kernel(kind: u64) -> bool {
    const KINDS: [u64; 17] = [
        0x9fa0,      // proc
        0x6265_6572, // sysfs
        0x6462_6720, // debugfs
        0x7472_6163, // tracefs
        0x0027_e0eb, // cgroup
        0x6367_7270, // cgroup2
        0x1cd1,      // devpts
        0x7363_6673, // securityfs
        0xf97c_ff8c, // selinuxfs
        0x4341_5d53, // smackfs
        0x6165_676c, // pstore
        0xde5e_81e4, // efivarfs
        0xcafe_4a11, // bpf
        0x6265_6570, // configfs
        0x1980_0202, // mqueue
        0x4249_4e4d, // binfmt_misc
        0x0187,      // autofs
    ];
    KINDS.contains(&(kind & 0xffff_ffff))
}

/// Whether notes have this build ID.
fn has_build_id(mut notes: &[u8], build_id: &[u8]) -> bool {
    while let (Some(name), Some(size), Some(kind)) = (number(notes, 0, 4), number(notes, 4, 4), number(notes, 8, 4)) {
        // The three are 32 bits wide: no sum of them overflows.
        let place = 12 + name.next_multiple_of(4) as usize;
        let Some(content) = notes.get(place..place + size as usize) else { return false };
        if kind == 3 && notes.get(12..15) == Some(b"GNU") {
            return content == build_id;
        }
        let Some(rest) = notes.get(place + size.next_multiple_of(4) as usize..) else { return false };
        notes = rest;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

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

    fn parse(bytes: &[u8], build_id: &[u8]) -> Option<ElfSymbols> {
        ElfSymbols::read(std::io::Cursor::new(bytes), build_id, &Cell::new(MOST))
    }

    #[test]
    fn functions_are_found_by_their_place_in_the_file() {
        let symbols = parse(&elf(), &[1, 2, 3, 4]).expect("symbols");
        assert_eq!([0x20, 0x2f].map(|place| symbols.function(place)), [(); 2].map(|()| Some("work".to_owned())));
        assert_eq!((symbols.function(0x30), symbols.function(0x1f), symbols.function(0)), (None, None, None));
    }

    /// A program's file is found at its own absolute path alone, with a recorded build ID; nothing else that a recording names is opened.
    #[test]
    fn only_files_of_programs_are_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = std::fs::canonicalize(folder.path()).expect("a path");
        let program = place.join("program");
        std::fs::write(&program, elf()).expect("written");
        std::os::unix::fs::symlink("program", place.join("link")).expect("a link");
        std::fs::create_dir(place.join("sub")).expect("a folder");
        let opens = |path: &Path, build_id: &[u8]| ElfSymbols::open(path, build_id, &Cell::new(MOST)).is_some();
        assert!(opens(&program, &[1, 2, 3, 4]));
        assert!(!opens(&program, &[]), "without a build ID");
        assert!(!opens(&place.join("link"), &[1, 2, 3, 4]), "a link");
        assert!(!opens(&place.join("sub/../program"), &[1, 2, 3, 4]), "by way of a parent");
        // From the working directory: the program is there, and not opened.
        let up = std::env::current_dir().expect("a folder").components().skip(1).map(|_| "..").collect::<PathBuf>();
        let relative = up.join(program.strip_prefix("/").expect("absolute"));
        assert!(relative.exists() && !opens(&relative, &[1, 2, 3, 4]), "a relative path");
        for path in ["/proc/self/exe", "/proc/kmsg", "/proc/version", "/sys/kernel/notes", "/dev/null", "/"] {
            assert!(!is_program_path(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn another_version_of_a_file_has_no_names() {
        assert!(parse(&elf(), &[1, 2, 3, 5]).is_none());
        assert!(parse(&elf(), &[]).is_none());
    }

    #[test]
    fn no_damage_is_a_panic() {
        let whole = elf();
        for end in 0..whole.len() {
            let _ = parse(&whole[..end], &[1, 2, 3, 4]);
        }
        for at in 0..0x200 {
            let mut damaged = whole.clone();
            damaged[at] = 0xff;
            let _ = parse(&damaged, &[1, 2, 3, 4]).map(|symbols| symbols.function(u64::MAX).is_some());
        }
    }

    /// Sections that have one table a thousand times, and names without an end: both have a limit.
    #[test]
    fn programs_share_a_room() {
        let mut bytes = elf();
        // The tables of 1,000 sections each have all of the file, and so do their names.
        bytes.resize(1 << 20, 2);
        let many = bytes.len() as u64;
        bytes[40..48].copy_from_slice(&many.to_le_bytes());
        bytes[60..62].copy_from_slice(&1001_u16.to_le_bytes());
        bytes.extend_from_within(0x100..0x140);
        for _ in 0..1000 {
            let mut section = [0; 64];
            section[4] = 2;
            section[32..40].copy_from_slice(&(1_u64 << 20).to_le_bytes());
            section[40] = 1;
            bytes.extend(section);
        }
        let left = Cell::new(MOST);
        let symbols = ElfSymbols::read(std::io::Cursor::new(&bytes), &[1, 2, 3, 4], &left).expect("symbols");
        let read = MOST - left.get();
        assert!(read < 2 * bytes.len() as u64 * TABLES as u64, "{read} bytes");
        assert!(symbols.names.len() <= TABLES && symbols.functions.len() < 50);
        // Files beyond the room have no names.
        assert!(ElfSymbols::read(std::io::Cursor::new(&bytes), &[1, 2, 3, 4], &Cell::new(100)).is_none());
        let left = Cell::new(10 * LEAST);
        assert!((0..20).all(|_| ElfSymbols::open(Path::new("/no/such/file"), &[1], &left).is_none()));
        assert_eq!(left.get(), 0);
    }
}
