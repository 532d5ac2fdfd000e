//! Complete files of versions 6 and 7.

use crate::{Age, ByteOrder, KernelLayout, Ring};
use sched::{EventKind, SchedEvent};

/// The compression of the data in a version 7 file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Data are not compressed.
    None,
    /// Blocks as in RFC 1950.
    Zlib,
    /// zstd frames without a content size.
    Zstd,
}

/// The data of one buffer.
#[derive(Clone, Debug, Default)]
pub struct Buffer {
    /// The name of the buffer; empty for the top-level buffer.
    pub name: String,
    /// The name of its clock in the file.
    pub clock: String,
    /// The page size in its header, in bytes; 0 for the page size of the file.
    pub page_size: u32,
    /// The pages of each CPU.
    pub cpus: Vec<(u32, Vec<Vec<u8>>)>,
}

/// A trace.dat to be written. The defaults are those of an uncompressed version 7 file from a 64-bit
/// little-endian machine.
#[derive(Clone, Debug)]
pub struct TraceBuilder {
    /// The version of the format: 6 or 7.
    pub version: u32,
    /// The byte order of the file.
    pub order: ByteOrder,
    /// `sizeof(long)` of the recording program, in bytes.
    pub user_long: u8,
    /// `sizeof(long)` of the kernel, in bytes.
    pub kernel_long: usize,
    /// The page size, in bytes.
    pub page_size: usize,
    /// The compression of a version 7 file.
    pub compression: Compression,
    /// The name of the compression in the file, where it differs from that of `compression`.
    pub compression_name: Option<String>,
    /// The number of pages in a chunk.
    pub chunk_pages: usize,
    /// The number of bytes by which the data size of a compressed CPU is too small; trace-cmd up to 3.1.x omits 4.
    pub size_short: u64,
    /// Whether the header sections are compressed as well.
    pub compress_sections: bool,
    /// The kernel whose event layout is used.
    pub age: Age,
    /// The name of the clock.
    pub clock: String,
    /// The number of CPUs of the machine.
    pub cpu_count: u32,
    /// The buffers; the first one is the top-level buffer.
    pub buffers: Vec<Buffer>,
    /// Additional event formats, each with its system and its text.
    pub formats: Vec<(String, String)>,
    /// Additional options, each with its number and its payload.
    pub options: Vec<(u16, Vec<u8>)>,
    /// The text of `/proc/kallsyms`.
    pub kallsyms: String,
    /// The text of `printk_formats`.
    pub printk: String,
    /// The text of `saved_cmdlines`.
    pub cmdlines: String,
    /// Whether the file lacks the recorder's options, as a file written by `trace-cmd restore` does.
    pub restored: bool,
    /// Whether a version 6 file has a block of options.
    pub v6_options: bool,
    /// The clock behind the CPU table of a version 6 file, if there is one.
    pub v6_clock_trailer: Option<String>,
    /// The numbers of the sections that a version 7 file lacks.
    pub omit: Vec<u16>,
}

impl Default for TraceBuilder {
    fn default() -> TraceBuilder {
        TraceBuilder {
            version: 7,
            order: ByteOrder::Little,
            user_long: 8,
            kernel_long: 8,
            page_size: 4096,
            compression: Compression::None,
            compression_name: None,
            chunk_pages: 10,
            size_short: 0,
            compress_sections: false,
            age: Age::Modern,
            clock: "local".into(),
            cpu_count: 4,
            buffers: Vec::new(),
            formats: Vec::new(),
            options: Vec::new(),
            kallsyms: String::new(),
            printk: String::new(),
            cmdlines: String::new(),
            restored: false,
            v6_options: true,
            v6_clock_trailer: Some("[local]".into()),
            omit: Vec::new(),
        }
    }
}

impl TraceBuilder {
    /// Returns the layout of the events.
    pub fn layout(&self) -> KernelLayout {
        KernelLayout { age: self.age, order: self.order, long: self.kernel_long }
    }

    /// Returns an empty ring with the page layout of this file.
    pub fn ring(&self) -> Ring {
        Ring::new(self.order, self.kernel_long, self.page_size)
    }

    /// Returns the pages of each CPU for `events`, which are in trace order. A [`EventKind::Lost`] ends the page of its
    /// CPU and marks the next one.
    pub fn rings(&self, events: &[SchedEvent]) -> Vec<(u32, Vec<Vec<u8>>)> {
        let layout = self.layout();
        let mut cpus: Vec<u32> = events.iter().map(|e| e.cpu.0).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let ring = |cpu: u32| {
            let mut ring = self.ring();
            for event in events.iter().filter(|e| e.cpu.0 == cpu) {
                match event.kind {
                    EventKind::Lost { count } => ring.lost(count.map(sched::LostCount::number)),
                    // A reader concludes this from missing events: no record stands for it.
                    EventKind::Offline => {}
                    EventKind::Stack { id } | EventKind::Probe { id, .. } | EventKind::Other { id } => {
                        ring.event(event.ts.0 as u64, &layout.bare(id, event.pid.0));
                    }
                    _ => ring.event(event.ts.0 as u64, &layout.payload(event).expect("an event that can be written")),
                }
            }
            (cpu, ring.finish())
        };
        cpus.into_iter().map(ring).collect()
    }

    /// Adds these events as the data of the top buffer.
    #[must_use]
    pub fn events(mut self, events: &[SchedEvent]) -> TraceBuilder {
        let cpus = self.rings(events);
        self.cpu_count = self.cpu_count.max(cpus.iter().map(|c| c.0 + 1).max().unwrap_or(0));
        self.buffers.push(Buffer { name: String::new(), clock: self.clock.clone(), page_size: 0, cpus });
        self
    }

    fn put(&self, to: &mut Vec<u8>, value: u64, size: usize) {
        self.order.put(to, value, size);
    }

    /// Returns the description of a page, as `events/header_page` of tracefs has it.
    pub fn header_page(&self) -> String {
        let long = self.kernel_long;
        format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:{};\tsize:{};\tsigned:1;\n",
            8 + long,
            self.page_size - 8 - long
        )
    }

    fn header_texts(&self) -> Vec<u8> {
        let mut out = b"header_page\0".to_vec();
        for text in [self.header_page(), "# compressed entry header\n".into()] {
            if text.starts_with('#') {
                out.extend(b"header_event\0");
            }
            self.put(&mut out, text.len() as u64, 8);
            out.extend(text.bytes());
        }
        out
    }

    fn ftrace_formats(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let texts: Vec<&String> = self.formats.iter().filter(|(s, _)| s == "ftrace").map(|(_, t)| t).collect();
        self.put(&mut out, texts.len() as u64, 4);
        for text in texts {
            self.put(&mut out, text.len() as u64, 8);
            out.extend(text.bytes());
        }
        out
    }

    fn event_formats(&self) -> Vec<u8> {
        let mut all = self.layout().formats();
        all.extend(self.formats.iter().filter(|(s, _)| s != "ftrace").cloned());
        let mut systems: Vec<&String> = all.iter().map(|(s, _)| s).collect();
        systems.dedup();
        let mut out = Vec::new();
        self.put(&mut out, systems.len() as u64, 4);
        for system in systems {
            let texts: Vec<&String> = all.iter().filter(|(s, _)| s == system).map(|(_, t)| t).collect();
            out.extend(system.bytes().chain([0]));
            self.put(&mut out, texts.len() as u64, 4);
            for text in texts {
                self.put(&mut out, text.len() as u64, 8);
                out.extend(text.bytes());
            }
        }
        out
    }

    fn text(&self, text: &str, size: usize) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out, text.len() as u64, size);
        out.extend(text.bytes());
        out
    }

    fn standard_options(&self) -> Vec<(u16, Vec<u8>)> {
        let uname = format!("Linux node {} x86_64\0", self.age.release());
        let recorder = vec![(5, uname.into_bytes()), (9, b"3.1.6 testkit\0".to_vec())];
        let mut options = if self.restored { Vec::new() } else { recorder };
        let mut count = Vec::new();
        self.put(&mut count, self.cpu_count.into(), 4);
        options.push((8, count));
        options.push((4, format!("local [{}] global\n\0", self.clock).into_bytes()));
        options.extend(self.options.clone());
        options
    }

    /// Returns the event formats, symbols and names in the form in which perf stores them.
    pub fn tracing_data(&self) -> Vec<u8> {
        let mut out = self.start("0.6");
        out.extend(self.texts());
        out
    }

    fn start(&self, version: &str) -> Vec<u8> {
        let mut out = b"\x17\x08\x44tracing".to_vec();
        out.extend(version.bytes().chain([0]));
        out.push(u8::from(self.order == ByteOrder::Big));
        out.push(self.user_long);
        self.put(&mut out, self.page_size as u64, 4);
        out
    }

    /// Returns the bytes of the file.
    pub fn build(&self) -> Vec<u8> {
        if self.version == 6 { self.build_v6() } else { self.build_v7() }
    }

    fn option(&self, out: &mut Vec<u8>, id: u16, payload: &[u8]) {
        self.put(out, id.into(), 2);
        self.put(out, payload.len() as u64, 4);
        out.extend(payload);
    }

    fn texts(&self) -> Vec<u8> {
        let mut out = self.header_texts();
        out.extend(self.ftrace_formats());
        out.extend(self.event_formats());
        out.extend(self.text(&self.kallsyms, 4));
        out.extend(self.text(&self.printk, 4));
        out.extend(self.text(&self.cmdlines, 8));
        out
    }

    fn build_v6(&self) -> Vec<u8> {
        let mut out = self.start(&self.version.to_string());
        out.extend(self.texts());
        self.put(&mut out, self.cpu_count.into(), 4);
        let mut instance_offsets = Vec::new();
        if self.v6_options {
            out.extend(b"options  \0");
            for (id, payload) in self.standard_options() {
                self.option(&mut out, id, &payload);
            }
            for buffer in self.buffers.iter().skip(1) {
                instance_offsets.push(out.len() + 6);
                let mut payload = vec![0; 8];
                payload.extend(buffer.name.bytes().chain([0]));
                self.option(&mut out, 3, &payload);
            }
            self.put(&mut out, 0, 2);
        }
        let mut tables = Vec::new();
        for (i, buffer) in self.buffers.iter().enumerate() {
            if i > 0 {
                let mut at = Vec::new();
                self.put(&mut at, out.len() as u64, 8);
                let place = instance_offsets[i - 1];
                out.splice(place..place + 8, at);
            }
            out.extend(b"flyrecord\0");
            let table = out.len();
            out.resize(table + 16 * self.cpu_count as usize, 0);
            if let Some(clock) = &self.v6_clock_trailer {
                out.extend(self.text(clock, 8));
            }
            // Some writers put the data behind the tables of all buffers; here they follow the table of their buffer.
            for (cpu, pages) in &buffer.cpus {
                out.resize(out.len().next_multiple_of(self.page_size), 0);
                tables.push((table + 16 * *cpu as usize, out.len(), pages.iter().map(Vec::len).sum::<usize>()));
                pages.iter().for_each(|p| out.extend(p));
            }
        }
        for (place, at, size) in tables {
            let mut row = Vec::new();
            self.put(&mut row, at as u64, 8);
            self.put(&mut row, size as u64, 8);
            out.splice(place..place + 16, row);
        }
        out
    }

    fn compress(&self, bytes: &[u8]) -> Vec<u8> {
        match self.compression {
            Compression::None => bytes.to_vec(),
            Compression::Zstd => {
                let mut compressor = zstd::bulk::Compressor::new(3).expect("a compressor");
                compressor.include_contentsize(false).expect("a setting");
                compressor.compress(bytes).expect("compressed")
            }
            Compression::Zlib => {
                let mut out = Vec::with_capacity(bytes.len() + 1000);
                let mut deflate = flate2::Compress::new(flate2::Compression::default(), true);
                deflate.compress_vec(bytes, &mut out, flate2::FlushCompress::Finish).expect("compressed");
                out
            }
        }
    }

    /// Appends a section and returns its offset.
    fn section(&self, out: &mut Vec<u8>, id: u16, body: &[u8]) -> u64 {
        let at = out.len() as u64;
        let compressed = self.compress_sections && self.compression != Compression::None && id != 0;
        let body = if compressed {
            let block = self.compress(body);
            let mut framed = Vec::new();
            self.put(&mut framed, block.len() as u64, 4);
            self.put(&mut framed, body.len() as u64, 4);
            framed.extend(block);
            framed
        } else {
            body.to_vec()
        };
        self.put(out, id.into(), 2);
        self.put(out, compressed.into(), 2);
        self.put(out, 0xffff_ffff, 4);
        self.put(out, body.len() as u64, 8);
        out.extend(body);
        at
    }

    fn build_v7(&self) -> Vec<u8> {
        let mut out = self.start(&self.version.to_string());
        let name = match (&self.compression_name, self.compression) {
            (Some(name), _) => name,
            (None, Compression::None) => "none",
            (None, Compression::Zlib) => "zlib",
            (None, Compression::Zstd) => "zstd",
        };
        out.extend(name.bytes().chain([0]));
        out.push(0);
        let first_options = out.len();
        out.resize(first_options + 8, 0);
        let bodies = [
            (16, self.header_texts()),
            (17, self.ftrace_formats()),
            (18, self.event_formats()),
            (19, self.text(&self.kallsyms, 4)),
            (20, self.text(&self.printk, 4)),
            (21, self.text(&self.cmdlines, 8)),
        ];
        let mut options = Vec::new();
        for (id, body) in bodies.into_iter().filter(|(id, _)| !self.omit.contains(id)) {
            let at = self.section(&mut out, id, &body);
            let mut payload = Vec::new();
            self.put(&mut payload, at, 8);
            self.option(&mut options, id, &payload);
        }
        for (id, payload) in self.standard_options() {
            self.option(&mut options, id, &payload);
        }
        let mut first = Vec::new();
        let mut next_place = self.options_section(&mut out, options, &mut first);
        out.splice(first_options..first_options + 8, first);
        for buffer in &self.buffers {
            let payload = self.buffer_section(&mut out, buffer);
            let mut options = Vec::new();
            self.option(&mut options, 3, &payload);
            let mut at = Vec::new();
            let place = self.options_section(&mut out, options, &mut at);
            out.splice(next_place..next_place + 8, at);
            next_place = place;
        }
        if !self.omit.contains(&15) {
            self.section(&mut out, 15, b"headers\0options\0");
        }
        out
    }

    /// Appends an options section and its own offset to `at`. Returns the place for the offset of the next one.
    fn options_section(&self, out: &mut Vec<u8>, mut options: Vec<u8>, at: &mut Vec<u8>) -> usize {
        self.option(&mut options, 0, &[0; 8]);
        let offset = self.section(out, 0, &options);
        self.put(at, offset, 8);
        out.len() - 8
    }

    /// Appends the data of a buffer and returns the payload of its option.
    fn buffer_section(&self, out: &mut Vec<u8>, buffer: &Buffer) -> Vec<u8> {
        let section = out.len();
        let compressed = self.compression != Compression::None;
        self.put(out, 3, 2);
        self.put(out, compressed.into(), 2);
        self.put(out, 0xffff_ffff, 4);
        self.put(out, 0, 8);
        let mut rows = Vec::new();
        for (cpu, pages) in &buffer.cpus {
            out.resize(out.len().next_multiple_of(4096), 0);
            let at = out.len();
            if compressed {
                let chunks: Vec<Vec<u8>> = pages.chunks(self.chunk_pages).map(<[Vec<u8>]>::concat).collect();
                self.put(out, chunks.len() as u64, 4);
                for chunk in chunks {
                    let block = self.compress(&chunk);
                    self.put(out, block.len() as u64, 4);
                    self.put(out, chunk.len() as u64, 4);
                    out.extend(block);
                }
            } else {
                pages.iter().for_each(|p| out.extend(p));
            }
            let size = (out.len() - at) as u64;
            rows.push((*cpu, at as u64, if compressed { size - self.size_short } else { size }));
        }
        let mut size = Vec::new();
        self.put(&mut size, (out.len() - section - 16) as u64, 8);
        out.splice(section + 8..section + 16, size);
        let mut payload = Vec::new();
        self.put(&mut payload, section as u64, 8);
        payload.extend(buffer.name.bytes().chain([0]).chain(buffer.clock.bytes()).chain([0]));
        let page_size = if buffer.page_size == 0 { self.page_size as u32 } else { buffer.page_size };
        self.put(&mut payload, page_size.into(), 4);
        self.put(&mut payload, rows.len() as u64, 4);
        for (cpu, at, size) in rows {
            self.put(&mut payload, cpu.into(), 4);
            self.put(&mut payload, at, 8);
            self.put(&mut payload, size, 8);
        }
        payload
    }
}
