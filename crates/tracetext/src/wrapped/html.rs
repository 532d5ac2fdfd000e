//! The text of a trace within a page: of systrace, or of trace2html.
//!
//! Pages of systrace are of two kinds: a `<script class="trace-data">` for each source of the recording, or a string of JavaScript
//! (`linuxPerfData`). Lines of older pages end in `\n\`. Other sources, such as a list of processes or Chrome's JSON, are passed over. Pages of
//! trace2html have the compressed data of each source in a `<script id="viewer-data">` (`packed.rs`).

use super::{TakenText, TextSink, is_other, packed};
use crate::limits;
use memchr::{memchr, memmem};
use std::cell::Cell;
use std::io::{self, BufRead};

/// The part of a page that a line is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PageState {
    /// In the page's own code.
    #[default]
    Code,
    /// Before the first line of a source.
    Before,
    /// In a printed trace.
    Trace,
    /// In another source.
    Other,
}

/// The state of reading a page.
#[derive(Debug, Default)]
struct Page(PageState);

/// Passes on the printed traces of a page, whose compressed data may become so many bytes. Returns whether it has such data, and whether they
/// are whole.
pub(crate) fn text(input: &mut dyn BufRead, most: u64, sink: TextSink<'_>) -> io::Result<(bool, bool)> {
    let (mut page, mut line, mut taken) = (Page::default(), Vec::new(), TakenText::default());
    let (mut has_packed, mut is_whole) = (false, true);
    let left = Cell::new(most);
    while next_line(input, &mut line)? {
        if is_packed(&line) {
            has_packed = true;
            let is_data_whole = packed::text(input, &left, &mut |piece| {
                taken.bytes.extend_from_slice(piece);
                taken.pass_on(sink)
            });
            if !is_data_whole {
                is_whole = false;
                taken.cut_line();
            }
            // The next source begins a line.
            taken.bytes.push(b'\n');
        } else if let Some(text) = page.text(&line) {
            taken.bytes.extend_from_slice(text);
            taken.bytes.push(b'\n');
        }
        if taken.pass_on(sink).is_break() {
            break;
        }
    }
    taken.end(sink);
    Ok((has_packed, is_whole))
}

/// Reads a line without its end, or an empty one in the place of one beyond the limit; `false` at the end of the page.
fn next_line(input: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut is_long = false;
    loop {
        let bytes = input.fill_buf()?;
        let end = memchr(b'\n', bytes);
        let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        is_long |= line.len().saturating_add(part.len()) > limits::LINE;
        if is_long {
            line.clear();
        } else {
            line.extend_from_slice(part);
        }
        let (is_over, length) = (bytes.is_empty(), part.len().saturating_add(usize::from(end.is_some())));
        input.consume(length);
        if end.is_some() || is_over {
            return Ok(end.is_some() || is_long || !line.is_empty());
        }
    }
}

impl Page {
    /// The text of a line of the page, if it is one of a printed trace.
    fn text<'l>(&mut self, line: &'l [u8]) -> Option<&'l [u8]> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut text = line;
        if let Some(behind) = begin(line) {
            (self.0, text) = (PageState::Before, behind);
        }
        if self.0 == PageState::Code {
            return None;
        }
        let end = memmem::find(text, END);
        let text = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
        let text = text.strip_suffix(b"\\n\\").unwrap_or(text);
        if self.0 == PageState::Before && !text.trim_ascii().is_empty() {
            self.0 = if is_other(text) { PageState::Other } else { PageState::Trace };
        }
        let is_trace = self.0 == PageState::Trace;
        if end.is_some() {
            self.0 = PageState::Code;
        }
        // systrace ends each string with an event of no task.
        let is_end = text == b"\";" || text.trim_ascii_start().starts_with(b"dummy-0000 ");
        (is_trace && !is_end && !text.is_empty()).then_some(text)
    }
}

const END: &[u8] = b"</script>";

/// The rest of a line behind the beginning of a source, if the line has one. The page's code has both in longer lines.
fn begin(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii_start();
    if line == b"var linuxPerfData = \"\\" {
        return Some(b"");
    }
    let (attributes, behind) = script(line)?;
    memmem::find(attributes, b"trace-data").map(|_| behind)
}

/// Whether a line begins compressed data, which the next one holds.
fn is_packed(line: &[u8]) -> bool {
    let is_tag = |(attributes, behind): (&[u8], &[u8])| {
        memmem::find(attributes, b"viewer-data").is_some() && behind.trim_ascii().is_empty()
    };
    script(line.trim_ascii_start()).is_some_and(is_tag)
}

/// The attributes of a script, and what stands behind its tag.
fn script(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let tag = line.strip_prefix(b"<script")?;
    let (attributes, behind) = tag.split_at_checked(memchr(b'>', tag)?)?;
    Some((attributes, behind.get(1..)?))
}
