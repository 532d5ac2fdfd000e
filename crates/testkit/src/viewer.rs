//! The files of trace viewers: JSON and pages of HTML around the text of a trace.

use flate2::{Compression, write::GzEncoder};
use std::io::Write;

/// JSON as Chrome writes it for a recording of the whole system: its own events, then the text of ftrace.
#[must_use]
pub fn viewer_json(text: &str) -> String {
    let escape = |letter: char| match letter {
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '<' => "\\u003C".to_owned(),
        other => other.to_string(),
    };
    let text: String = text.chars().map(escape).collect();
    let event = r#"{"args":{"systemTraceEvents":"{[\\"},"name":"systemTraceEvents","ph":"X","ts":1}"#;
    format!(r#"{{"traceEvents":[{event},{event}],"systemTraceEvents":"{text}","metadata":{{"clock":[1]}}}}"#)
}

/// A page as catapult's trace2html writes it: the viewer's code, then each source in base64. trace2html compresses sources by gzip ([`gzip`]).
#[must_use]
pub fn viewer_page(sources: &[Vec<u8>]) -> Vec<u8> {
    let mut page = b"<!DOCTYPE html>\n<html>\n<script>\nquery('#viewer-data <script>');\n</script>\n".to_vec();
    for source in sources {
        page.extend(b"<script id=\"viewer-data\" type=\"text/plain\">\n");
        page.extend(base64(source));
        page.extend(b"\n</script>\n");
    }
    page.extend(b"</html>\n");
    page
}

/// Bytes compressed by gzip.
///
/// # Panics
///
/// Never: memory takes all that is written.
#[must_use]
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).expect("written to memory");
    packed.finish().expect("written to memory")
}

/// Bytes in the letters of base64 (RFC 4648).
fn base64(bytes: &[u8]) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |bytes: &[u8]| {
        let mut whole = [0; 3];
        whole[..bytes.len()].copy_from_slice(bytes);
        let bits = u32::from_be_bytes([0, whole[0], whole[1], whole[2]]);
        let letter = |nth: usize| match nth > bytes.len() {
            true => b'=',
            false => LETTERS[(bits >> (18 - 6 * nth)) as usize & 0x3f],
        };
        [0, 1, 2, 3].map(letter)
    };
    bytes.chunks(3).flat_map(group).collect()
}
