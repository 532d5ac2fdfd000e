//! Limits on the counts, lengths and nestings that a file sets. `docs/limits.md` has the table of them, with the
//! consequence of each and its test.
//!
//! Recorders stay far below every one. They bound time and memory where a damaged or hostile file of kilobytes
//! asks for gigabytes or for minutes.

/// Bytes of header texts and options, decompressed, all together. A kernel has 15 MB of symbols and 2 MB of event
/// formats.
pub(crate) const HEADER_TEXTS: u64 = 64 << 20;

/// Bytes of event formats, all together. A kernel has 2 MB of them.
pub(crate) const FORMAT_TEXTS: usize = 16 << 20;

/// Event formats. Their numbers have 16 bits.
pub(crate) const FORMATS: usize = 1 << 16;

/// Fields of one event. The largest event of kernels 5.10 to 7.2 has 41.
pub(crate) const FIELDS: usize = 1024;

/// Bytes of the description of a page, of that of a field, and of an option of version 6. They have some 200, 100 and
/// 500.
pub(crate) const DESCRIPTION: usize = 64 << 10;

/// Bytes of the name of an event, a system or an instance, which are names of folders.
pub(crate) const NAME: usize = 255;

/// Bytes of one print format. The longest of kernels 5.10 to 7.2 has 7,519.
pub(crate) const PRINT_FORMAT: usize = 256 << 10;

/// Bytes of the note of a part of a trace on the rest of it, decompressed. A task takes some 200.
pub(crate) const PART_NOTE: u64 = 32 << 20;

/// Depth to which parentheses, brackets and braces of a print format nest.
pub(crate) const NESTING: usize = 64;

/// Operators in one expression of a print format. Evaluation recurses along a chain of them.
pub(crate) const OPERATORS: u32 = 1000;

/// Tokens of one print format. The longest of kernels 5.10 to 7.2 has 1,946.
pub(crate) const TOKENS: usize = 1 << 14;

/// Characters that a width or a precision of a conversion adds. A page of the ring buffer has 4,096 bytes.
pub(crate) const WIDTH: usize = 4096;

/// Bytes of the text of one event. Markers and `trace_printk` are limited to a page by the kernel.
pub(crate) const EVENT_TEXT: usize = 64 << 10;

/// Symbols. A kernel has some 200,000.
pub(crate) const SYMBOLS: usize = 1 << 22;

/// Formats of `trace_printk`. A kernel has some thousands.
pub(crate) const PRINTK_FORMATS: usize = 1 << 20;

/// Different stacks of events. Recordings of some minutes have hundreds with the frames of the kernel.
pub(crate) const STACKS: usize = 1 << 16;

/// Frames of all different stacks together: 16 bytes each.
pub(crate) const STACK_FRAMES: usize = 1 << 21;

/// Frames of one part of a stack. The kernel records at most 127 of itself and as many of the program.
pub(crate) const FRAMES_OF_STACK: usize = 256;

/// Events with a stack: 32 bytes each.
pub(crate) const STACKED_EVENTS: usize = 1 << 22;

/// Maps of programs in the options of a file. A process has some tens.
pub(crate) const PROGRAM_MAPS: usize = 1 << 16;

/// Bytes of the path of a mapped file. The kernel has 4,096 at most.
pub(crate) const PROGRAM_MAP_NAME: usize = 4096;

/// Command names. The kernel keeps at most 32,768.
pub(crate) const COMMANDS: usize = 1 << 20;

/// Sections of options in the chain of them, and sections in a search for lost ones. Recorders write some twenty.
pub(crate) const SECTIONS: usize = 1000;

/// Buffers: the top one and the instances.
pub(crate) const BUFFERS: usize = 4096;

/// Rows in the tables of CPUs of all buffers together.
pub(crate) const CPU_ROWS: u64 = 1 << 17;

/// The recorder's statistics of CPUs, of all buffers together.
pub(crate) const STATISTICS: usize = 1 << 16;

/// Guests of a host's file.
pub(crate) const GUESTS: usize = 256;

/// vCPUs of a guest.
pub(crate) const VCPUS: usize = 4096;

/// Bytes of a compressed chunk, decompressed: recorders write ten pages, and the largest page has 1 MiB.
pub(crate) const CHUNK: u32 = 10 << 20;

/// Bytes of a compressed chunk: what cannot be compressed becomes hardly larger.
pub(crate) const COMPRESSED_CHUNK: u32 = CHUNK + (1 << 20);

/// Bytes of all chunks of a file, decompressed, that every file may have, and for each byte of the file as many more.
/// zstd makes of recordings a fifth to a twentieth; of pages with a single event in them a sixtieth, of which the 32 MiB
/// are 8,192.
pub(crate) const DECOMPRESSED: (u64, u64) = (32 << 20, 64);

/// The start of a text, of at most this number of bytes.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// Bytes that the chunks of a file of this size may have, decompressed.
pub(crate) fn decompressed(file: u64) -> u64 {
    file.saturating_mul(DECOMPRESSED.1).saturating_add(DECOMPRESSED.0)
}
