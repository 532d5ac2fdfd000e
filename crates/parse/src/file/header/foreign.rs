//! Files that are no trace.dat.

/// Names the apparent kind of the bytes, and the remedy.
pub(super) fn describe(file: &[u8], size: u64) -> String {
    let starts = |magic: &[u8]| file.starts_with(magic);
    let known = if starts(b"PERFILE2") || starts(b"2ELIFREP") {
        "this is a perf.data file, which the crate perfdata reads"
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
    } else if looks_like_perfetto(file) {
        "this is a Perfetto trace, which the crate perfetto reads"
    } else if starts(b"\x7fELF") {
        "this is a program or a core dump"
    } else if file.get(257..262) == Some(b"ustar") {
        "this is a tar archive; unpack it first"
    } else if file.get(..14).is_some_and(|head| head.eq_ignore_ascii_case(b"<!doctype html")) || starts(b"<html") {
        "this is a page of HTML without the text of ftrace, as a page of systrace or of trace2html has it"
    } else if starts(b"{") || starts(b"[") {
        "this looks like JSON without the text of ftrace (`systemTraceEvents`), which is all that is read of a trace viewer's JSON; record the scheduler's events as well"
    } else if starts(b"# tracer:") || starts(b"cpus=") || starts(b"version = ") || looks_like_report(file) {
        "this is the text of a trace (trace-cmd report, or the kernel's `trace` file) without a line of an event; the crate tracetext reads those that have one"
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

/// Packets one behind the other, each field 1 of the trace, and fields of known types in them (protobuf).
fn looks_like_perfetto(file: &[u8]) -> bool {
    const PACKET: u64 = 1 << 3 | 2;
    let mut rest = file;
    let mut packets = 0;
    while let Some((tag, behind)) = varint(rest) {
        let Some((length, behind)) = varint(behind).filter(|_| tag == PACKET) else { return false };
        let Some((packet, next)) = usize::try_from(length).ok().and_then(|length| behind.split_at_checked(length))
        else {
            break;
        };
        if !has_fields(packet) {
            return false;
        }
        packets += 1;
        rest = next;
    }
    packets > 0
}

/// Whether bytes are fields of a protobuf message to their end.
fn has_fields(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let skip = |behind: &[u8], count: u64| Some((behind.len() as u64).checked_sub(count)? as usize);
        let left = varint(bytes).filter(|(tag, _)| tag >> 3 > 0).and_then(|(tag, behind)| match tag & 7 {
            0 => varint(behind).map(|(_, rest)| rest.len()),
            1 => skip(behind, 8),
            2 => varint(behind).and_then(|(length, rest)| skip(rest, length)),
            5 => skip(behind, 4),
            _ => None,
        });
        let Some(left) = left else { return false };
        bytes = bytes.get(bytes.len().saturating_sub(left)..).unwrap_or_default();
    }
    true
}

/// A number in groups of seven bits, and the bytes behind it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = bytes.iter().take(10).position(|byte| byte & 0x80 == 0)?.saturating_add(1);
    let (number, rest) = bytes.split_at_checked(length)?;
    let value = number.iter().rev().fold(0u64, |value, byte| value << 7 | u64::from(byte & 0x7f));
    Some((value, rest))
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

#[cfg(test)]
mod tests {
    use super::describe;

    #[test]
    fn traces_in_other_wrappings_are_named() {
        for (file, words) in [
            ("{\"traceEvents\":[],\"systemTraceEvents\":\"\"}", "without the text of ftrace"),
            ("<!DOCTYPE html>\n<script id=\"viewer-data\" type=\"text/plain\">\n", "or of trace2html"),
        ] {
            let what = describe(file.as_bytes(), file.len() as u64);
            assert!(what.contains(words), "{what}");
        }
    }
}
