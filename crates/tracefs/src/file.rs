//! A trace.dat made of pages, with the descriptions of its events from tracefs: of version 7 with compressed texts where these have the
//! kernel's symbols, which are some megabytes, and else of version 6. The pages are not compressed.

use crate::{CpuStats, Error, GROUP, PREFIX, Tracefs};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The content of a trace.dat but for its pages. The format is described in docs/trace-dat.md.
#[derive(Clone, Debug)]
pub struct TraceFile {
    /// The bytes before the number of CPUs.
    head: Vec<u8>,
    /// The options: kernel, recorder, clock.
    options: Vec<u8>,
    /// The clock, which stands once more behind the table of CPUs.
    clock: String,
    page_size: usize,
    /// Whether the file is of version 7.
    has_sections: bool,
    /// Whether the kernel showed its symbols without their addresses, so that the file has none.
    hides_symbols: bool,
}

/// The numbers of options in trace.dat.
const DONE: u16 = 0;
const CPUSTAT: u16 = 2;
const BUFFER: u16 = 3;
const CLOCK: u16 = 4;
const UNAME: u16 = 5;
const CPUS: u16 = 8;
const RECORDER: u16 = 9;
const STRINGS: u16 = 15;
const HEADER_INFO: u16 = 16;
const FTRACE_FORMATS: u16 = 17;
const EVENT_FORMATS: u16 = 18;
const KALLSYMS: u16 = 19;
const PRINTK: u16 = 20;
const NAMES: u16 = 21;

/// The name and a version of the compression. trace-cmd 3 goes by the name alone.
const COMPRESSION: &[u8] = b"zstd\x001.5.5\0";

/// Bit of the flags of a section: its body is compressed.
const IS_COMPRESSED: u16 = 1;

impl TraceFile {
    /// Reads the descriptions of the events of these systems. `release`: that of the kernel. `clock`: the content of
    /// the instance's `trace_clock`. The group of a process's probes is [`GROUP`] in the file.
    ///
    /// # Errors
    ///
    /// The layout of a page cannot be read.
    pub fn of(tracefs: &Tracefs, systems: &[&str], release: &str, clock: &str) -> Result<TraceFile, Error> {
        TraceFile::new(tracefs, systems, release, clock, &[String::new(), String::new()])
    }

    /// Describes a file with the kernel's symbols and its formats of `trace_printk`, which are some megabytes and compressed. Symbols
    /// whose addresses the kernel hides (`kernel.kptr_restrict`) are left out: they name no address.
    ///
    /// # Errors
    ///
    /// The errors of [`TraceFile::of`], and those of the compression.
    pub fn with_symbols(tracefs: &Tracefs, systems: &[&str], release: &str, clock: &str) -> Result<TraceFile, Error> {
        let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let printk = read(tracefs.join("printk_formats")).unwrap_or_default();
        let hides_symbols = !symbols.is_empty() && !has_addresses(&symbols);
        let symbols = if hides_symbols { String::new() } else { symbols };
        let file = TraceFile::new(tracefs, systems, release, clock, &[symbols, printk])?;
        Ok(TraceFile { hides_symbols, ..file })
    }

    /// Whether the kernel showed its symbols without their addresses (`kernel.kptr_restrict`), so that the file has none.
    pub fn hides_symbols(&self) -> bool {
        self.hides_symbols
    }

    fn new(
        tracefs: &Tracefs,
        systems: &[&str],
        release: &str,
        clock: &str,
        symbols: &[String; 2],
    ) -> Result<TraceFile, Error> {
        let page = read(tracefs.join("events/header_page"))?;
        let event = read(tracefs.join("events/header_event"))?;
        let mut described: Vec<(&str, Vec<String>)> = Vec::new();
        for system in systems {
            described.push((if system.starts_with(PREFIX) { GROUP } else { system }, formats(tracefs, system)));
        }
        let texts = HeadTexts {
            page: &page,
            event: &event,
            ftrace: &formats(tracefs, "ftrace"),
            systems: &described,
            symbols,
            names: &read(tracefs.join("saved_cmdlines")).unwrap_or_default(),
        };
        match symbols.iter().any(|text| !text.is_empty()) {
            true => texts.compressed(release, clock).map_err(|reason| Error::Io { path: "the symbols".into(), reason }),
            false => Ok(texts.file(release, clock)),
        }
    }

    /// Describes a file of events that no kernel recorded: their descriptions by system, with pages of `page_size` bytes whose data begin
    /// at `data_at`. `release`: that of the kernel that the file names. Times are nanoseconds.
    pub fn of_formats(systems: &[(&str, Vec<String>)], page_size: usize, data_at: usize, release: &str) -> TraceFile {
        let size = page_size.saturating_sub(data_at);
        let page = format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:{};\tsigned:1;\n\tfield: char data;\toffset:{data_at};\tsize:{size};\tsigned:1;\n",
            data_at.saturating_sub(8),
        );
        let symbols = &[String::new(), String::new()];
        HeadTexts { page: &page, event: "", ftrace: &[], systems, symbols, names: "" }.file(release, "[local]")
    }

    /// Adds the kernel's counters of each CPU. Events that are in a buffer there are in the file.
    pub fn add_stats(&mut self, stats: &[CpuStats]) {
        for stats in stats {
            let text = format!(
                "CPU: {}\nentries: 0\noverrun: {}\ncommit overrun: {}\nbytes: {}\ndropped events: {}\nread events: {}\n\0",
                stats.cpu,
                stats.overrun,
                stats.commit_overrun,
                stats.bytes,
                stats.dropped,
                stats.recorded()
            );
            put_option(&mut self.options, CPUSTAT, text.as_bytes());
        }
    }

    /// The size of a page in bytes.
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// The bytes of a file with these pages, by CPU.
    pub fn with_pages<'p>(&self, pages: impl Iterator<Item = (u32, &'p [u8])>) -> Vec<u8> {
        let mut data: Vec<(u32, Vec<&[u8]>)> = Vec::new();
        for (cpu, page) in pages {
            match data.iter_mut().find(|(known, _)| *known == cpu) {
                Some((_, pages)) => pages.push(page),
                None => data.push((cpu, vec![page])),
            }
        }
        let size = |pages: &[&[u8]]| pages.iter().map(|page| page.len() as u64).sum::<u64>();
        let mut out = self.before(&data.iter().map(|(cpu, pages)| (*cpu, size(pages))).collect::<Vec<_>>());
        for (_, pages) in data {
            out.resize(out.len().next_multiple_of(self.page_size), 0);
            pages.iter().for_each(|page| out.extend(*page));
        }
        out
    }

    /// Writes a file with the pages of these CPUs. `pages` writes those of a CPU and returns the number of bytes, which the
    /// beginning of the file gets at the end. Returns the number of bytes of all pages.
    ///
    /// # Errors
    ///
    /// Those of `pages`, and of writing.
    pub fn write(
        &self,
        cpus: &[u32],
        pages: &mut dyn FnMut(u32, &mut dyn Write) -> std::io::Result<u64>,
        out: &mut (impl Write + Seek),
    ) -> std::io::Result<u64> {
        let mut sizes: Vec<(u32, u64)> = cpus.iter().map(|cpu| (*cpu, 0)).collect();
        let head = self.before(&sizes);
        out.write_all(&head)?;
        let mut at = head.len() as u64;
        for (cpu, size) in &mut sizes {
            let start = at.next_multiple_of(self.page_size as u64);
            std::io::copy(&mut std::io::repeat(0).take(start - at), out)?;
            *size = pages(*cpu, out)?;
            at = start + *size;
        }
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&self.before(&sizes))?;
        out.flush()?;
        Ok(sizes.iter().map(|(_, size)| size).sum())
    }

    /// The bytes before the pages of CPUs that have this number of bytes each, in this order.
    fn before(&self, sizes: &[(u32, u64)]) -> Vec<u8> {
        if self.has_sections {
            return self.before_in_sections(sizes);
        }
        let cpus = sizes.iter().map(|(cpu, _)| cpu + 1).max().unwrap_or(0);
        let mut out = self.head.clone();
        out.extend(cpus.to_ne_bytes());
        out.extend(b"options  \0");
        out.extend(&self.options);
        put_option(&mut out, CPUS, &cpus.to_ne_bytes());
        out.extend([0, 0]);
        out.extend(b"flyrecord\0");
        let table = out.len();
        out.resize(table + 16 * cpus as usize, 0);
        put_text(&mut out, &self.clock);
        let mut at = out.len() as u64;
        for (cpu, size) in sizes {
            at = at.next_multiple_of(self.page_size as u64);
            let row = table + 16 * *cpu as usize;
            out[row..row + 8].copy_from_slice(&at.to_ne_bytes());
            out[row + 8..row + 16].copy_from_slice(&size.to_ne_bytes());
            at += size;
        }
        out
    }
}

impl TraceFile {
    /// The bytes of a file of version 7 before the pages: the texts, the options, which lead to all the rest, and the header of the buffer.
    /// Their number depends on that of the CPUs alone.
    fn before_in_sections(&self, sizes: &[(u32, u64)]) -> Vec<u8> {
        let cpus = sizes.iter().map(|(cpu, _)| cpu + 1).max().unwrap_or(0);
        let mut options = self.options.clone();
        put_option(&mut options, CPUS, &cpus.to_ne_bytes());
        // The option of the buffer and the last one follow.
        // The kernel's file has all clocks, with this one in brackets.
        let chosen = self.clock.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let clock = chosen.map_or(self.clock.trim(), |(name, _)| name);
        let of_buffer = 8 + 1 + clock.len() + 1 + 4 + 4 + 20 * sizes.len();
        let buffer_at = self.head.len() + SECTION_HEADER + options.len() + (6 + of_buffer) + (6 + 8);
        let mut payload = (buffer_at as u64).to_ne_bytes().to_vec();
        payload.push(0);
        payload.extend(clock.bytes().chain([0]));
        payload.extend((self.page_size as u32).to_ne_bytes());
        payload.extend((sizes.len() as u32).to_ne_bytes());
        let first = (buffer_at + SECTION_HEADER) as u64;
        let mut at = first;
        for (cpu, size) in sizes {
            at = at.next_multiple_of(self.page_size as u64);
            payload.extend(cpu.to_ne_bytes());
            payload.extend(at.to_ne_bytes());
            payload.extend(size.to_ne_bytes());
            at += size;
        }
        put_option(&mut options, BUFFER, &payload);
        put_option(&mut options, DONE, &[0; 8]);
        let mut out = self.head.clone();
        put_section(&mut out, DONE, 0, options.len() as u64);
        out.extend(options);
        put_section(&mut out, BUFFER, 0, at - first);
        out
    }
}

/// The texts at the beginning of a file.
struct HeadTexts<'t> {
    /// The layout of a page, and that of the word before a record.
    page: &'t str,
    event: &'t str,
    /// The descriptions of the tracer's own events.
    ftrace: &'t [String],
    /// The descriptions of the events of each system.
    systems: &'t [(&'t str, Vec<String>)],
    /// The kernel's symbols, and its formats of `trace_printk`.
    symbols: &'t [String; 2],
    /// The names of tasks.
    names: &'t str,
}

impl HeadTexts<'_> {
    /// A file of version 6.
    fn file(&self, release: &str, clock: &str) -> TraceFile {
        let mut head = self.start(b'6');
        self.parts().iter().for_each(|(_, body)| head.extend(body));
        self.with_head(head, false, release, clock)
    }

    /// A file of version 7, of which the texts are compressed.
    fn compressed(&self, release: &str, clock: &str) -> std::io::Result<TraceFile> {
        let mut head = self.start(b'7');
        head.extend(COMPRESSION);
        let first_options = head.len();
        head.extend([0; 8]);
        let mut options = Vec::new();
        let strings = (STRINGS, b"headers\0options\0".to_vec());
        for (id, body) in self.parts().into_iter().chain([strings]) {
            // trace-cmd finds the strings by a walk over all sections.
            if id != STRINGS {
                put_option(&mut options, id, &(head.len() as u64).to_ne_bytes());
            }
            let block = zstd::bulk::compress(&body, 3)?;
            put_section(&mut head, id, IS_COMPRESSED, block.len() as u64 + 8);
            head.extend((block.len() as u32).to_ne_bytes());
            head.extend((body.len() as u32).to_ne_bytes());
            head.extend(block);
        }
        let at = (head.len() as u64).to_ne_bytes();
        head[first_options..first_options + 8].copy_from_slice(&at);
        let file = self.with_head(head, true, release, clock);
        Ok(TraceFile { options: [options, file.options].concat(), ..file })
    }

    /// The bytes that both versions begin with, up to the size of a page.
    fn start(&self, version: u8) -> Vec<u8> {
        let mut head = b"\x17\x08\x44tracing".to_vec();
        head.extend([version, 0, u8::from(cfg!(target_endian = "big")), size_of::<usize>() as u8]);
        head.extend((page_size(self.page).unwrap_or(4096) as u32).to_ne_bytes());
        head
    }

    /// The texts as both versions have them, each with the number of its section.
    fn parts(&self) -> Vec<(u16, Vec<u8>)> {
        let mut info = Vec::new();
        for (name, text) in [("header_page\0", self.page), ("header_event\0", self.event)] {
            info.extend(name.bytes());
            put_text(&mut info, text);
        }
        let mut ftrace = (self.ftrace.len() as u32).to_ne_bytes().to_vec();
        self.ftrace.iter().for_each(|text| put_text(&mut ftrace, text));
        let mut events = (self.systems.len() as u32).to_ne_bytes().to_vec();
        for (system, texts) in self.systems {
            events.extend(system.bytes().chain([0]));
            events.extend((texts.len() as u32).to_ne_bytes());
            texts.iter().for_each(|text| put_text(&mut events, text));
        }
        let [symbols, printk] = self.symbols.each_ref().map(|text| {
            let mut part = (text.len() as u32).to_ne_bytes().to_vec();
            part.extend(text.bytes());
            part
        });
        let mut names = Vec::new();
        put_text(&mut names, self.names);
        vec![
            (HEADER_INFO, info),
            (FTRACE_FORMATS, ftrace),
            (EVENT_FORMATS, events),
            (KALLSYMS, symbols),
            (PRINTK, printk),
            (NAMES, names),
        ]
    }

    fn with_head(&self, head: Vec<u8>, has_sections: bool, release: &str, clock: &str) -> TraceFile {
        let page_size = page_size(self.page).unwrap_or(4096);
        let mut options = Vec::new();
        put_option(&mut options, UNAME, format!("Linux (none) {release} {}\0", std::env::consts::ARCH).as_bytes());
        put_option(&mut options, RECORDER, format!("schedviz {}\0", env!("CARGO_PKG_VERSION")).as_bytes());
        put_option(&mut options, CLOCK, format!("{}\n\0", clock.trim()).as_bytes());
        let clock = format!("{}\n", clock.trim());
        TraceFile { head, options, clock, page_size, has_sections, hides_symbols: false }
    }
}

/// Reads a text. The kernel gives `header_page` and `header_event` in the first read alone, however short that is.
fn read(path: impl AsRef<Path>) -> Result<String, Error> {
    let path = path.as_ref();
    let whole = || -> std::io::Result<String> {
        let mut file = std::fs::File::open(path)?;
        let (mut text, mut part) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            match file.read(&mut part)? {
                0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
                size => text.extend_from_slice(part.get(..size).unwrap_or_default()),
            }
        }
    };
    whole().map_err(|reason| Error::Io { path: path.to_owned(), reason })
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_ne_bytes());
    out.extend(text.bytes());
}

/// The size of the header of a section in bytes.
const SECTION_HEADER: usize = 16;

/// Adds the header of a section, without a description.
fn put_section(out: &mut Vec<u8>, id: u16, flags: u16, size: u64) {
    out.extend(id.to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    out.extend(0_u32.to_ne_bytes());
    out.extend(size.to_ne_bytes());
}

/// Whether any symbol but those of per-CPU data, which are offsets, has an address other than zero.
fn has_addresses(symbols: &str) -> bool {
    let address = |line: &str| line.split(' ').next().is_some_and(|word| word.bytes().any(|digit| digit != b'0'));
    symbols.lines().any(address)
}

fn put_option(out: &mut Vec<u8>, id: u16, payload: &[u8]) {
    out.extend(id.to_ne_bytes());
    out.extend((payload.len() as u32).to_ne_bytes());
    out.extend(payload);
}

/// The descriptions of the events of a system, in the order of their names.
fn formats(tracefs: &Tracefs, system: &str) -> Vec<String> {
    let folder = tracefs.join(Path::new("events").join(system));
    let mut events: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    events.sort();
    events.iter().filter_map(|event| std::fs::read_to_string(event.join("format")).ok()).collect()
}

/// The size of a page, by its description: where the data begin, and their size.
fn page_size(header_page: &str) -> Option<usize> {
    let data = header_page.lines().find(|line| line.contains("char data"))?;
    let number = |name: &str| data.split(name).nth(1)?.split(';').next()?.trim().parse::<usize>().ok();
    let size = number("offset:")?.checked_add(number("size:")?)?;
    (size.is_power_of_two() && (512..=1 << 20).contains(&size)).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_in_files_make_the_same_trace() {
        let file = TraceFile {
            head: b"head".to_vec(),
            options: Vec::new(),
            clock: "[local]".to_owned(),
            page_size: 64,
            has_sections: false,
            hides_symbols: false,
        };
        let (first, second) = (vec![1; 128], vec![2; 64]);
        let together = file.with_pages([(3, &first[..64]), (1, &second[..]), (3, &first[64..])].into_iter());
        let written = |fails: bool| {
            let mut out = std::io::Cursor::new(Vec::new());
            let mut pages = |cpu: u32, out: &mut dyn Write| {
                let pages = if cpu == 3 { &first } else { &second };
                out.write_all(pages)?;
                if fails { Err(std::io::Error::other("no space")) } else { Ok(pages.len() as u64) }
            };
            file.write(&[3, 1], &mut pages, &mut out).map(|size| (size, out.into_inner()))
        };
        let (size, out) = written(false).unwrap();
        assert_eq!((size, &out), (192, &together));
        assert_eq!((out.len() % 64, &out[out.len() - 64..]), (0, &second[..]));
        assert!(written(true).is_err());
    }

    #[test]
    fn symbols_without_addresses_are_none() {
        assert!(!has_addresses("0000000000000000 T _stext\n0000000000000000 t do_one_initcall\t[x]\n"));
        assert!(has_addresses("0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\n"));
        assert!(!has_addresses(""));
    }

    #[test]
    fn a_page_has_the_size_in_its_description() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: char data;\toffset:16;\tsize:65520;\tsigned:0;\n";
        assert_eq!(page_size(text), Some(65_536));
        assert_eq!(
            [page_size(""), page_size("char data; offset:16; size:x;"), page_size("char data;offset:1;size:2;")],
            [None; 3]
        );
    }
}
