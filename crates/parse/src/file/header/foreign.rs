//! Files that are no trace.dat.

/// Names the apparent kind of the bytes, and the remedy.
pub(super) fn describe(file: &[u8], size: u64) -> String {
    let starts = |magic: &[u8]| file.starts_with(magic);
    let known = if starts(b"PERFILE2") || starts(b"2ELIFREP") {
        "this is a perf.data file; schedviz reads what `trace-cmd record -e sched` writes"
    } else if starts(&[0x1f, 0x8b]) {
        "this is compressed by gzip; run gunzip first"
    } else if starts(&[0x28, 0xb5, 0x2f, 0xfd]) {
        "this is compressed by zstd as a whole; run unzstd first"
    } else if starts(b"\xfd7zXZ\0") {
        "this is compressed by xz; run unxz first"
    } else if starts(b"BZh") {
        "this is compressed by bzip2; run bunzip2 first"
    } else if starts(b"PK\x03\x04") {
        "this is a zip archive; unpack it first"
    } else if starts(&[0xc1, 0x1f, 0xfc, 0xc1]) || starts(&[0xc1, 0xfc, 0x1f, 0xc1]) || starts(b"/* CTF") {
        "this is a CTF trace (LTTng); schedviz reads what `trace-cmd record -e sched` writes"
    } else if starts(b"\x7fELF") {
        "this is a program or a core dump"
    } else if file.get(257..262) == Some(b"ustar") {
        "this is a tar archive; unpack it first"
    } else if starts(b"{") || starts(b"[") {
        "this looks like JSON"
    } else if starts(b"# tracer:") || starts(b"cpus=") || starts(b"version = ") || looks_like_report(file) {
        "this is the text of a trace (trace-cmd report, or the kernel's `trace` file); schedviz reads the trace.dat itself"
    } else if starts(b"\x17\x08\x44") || starts(b"\x17\x08") {
        "the file begins like one, but is cut or damaged in its first ten bytes"
    } else if looks_like_page(file, size) {
        "this looks like the raw ring buffer of one CPU (trace.dat.cpuN); `trace-cmd restore` joins those into a trace.dat"
    } else {
        ""
    };
    if !known.is_empty() {
        return known.to_owned();
    }
    let shown = sched::event::escape(file.get(..file.len().min(16)).unwrap_or(&[]));
    format!("it begins with \"{shown}\" where the bytes 17 08 44 and \"tracing\" belong")
}

fn looks_like_report(file: &[u8]) -> bool {
    let head = file.get(..file.len().min(4096)).unwrap_or(file);
    let text = String::from_utf8_lossy(head);
    text.lines().take(20).any(|l| l.contains("]") && l.contains(": sched_") || l.contains("==>"))
}

/// A start time, then a commit of at most a page with a first record in it.
fn looks_like_page(file: &[u8], size: u64) -> bool {
    let word = |at: usize| file.get(at..).and_then(<[u8]>::first_chunk::<4>).map(|b| u32::from_le_bytes(*b));
    let commit = word(8).map(|c| c & 0x07ff_ffff);
    size.is_multiple_of(4096)
        && word(4).is_some_and(|high| high < 1 << 27)
        && commit.is_some_and(|c| (16..=4080).contains(&c) && c % 4 == 0)
}
