//! The text of a trace within the page that systrace writes.
//!
//! Two kinds of pages: a `<script class="trace-data">` for each source of the recording, or a string of JavaScript (`linuxPerfData`). Lines of
//! older pages end in `\n\`. Other sources, such as a list of processes or Chrome's JSON, are passed over.

use crate::line::PrintedLine;
use crate::{limits, lines};
use parse::Source;

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
pub(crate) struct Page(PageState);

/// Whether a file begins like a page.
pub(crate) fn is_page(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    [&b"<!doctype html"[..], b"<html"]
        .iter()
        .any(|start| head.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start)))
}

/// Whether a page has a line with an event in it.
pub(crate) fn has_event(source: &Source) -> bool {
    struct Found(bool);
    let (mut page, mut seen) = (Page::default(), 0u64);
    let found = lines::each(source, |line| {
        seen = seen.saturating_add(line.len() as u64);
        let is_event = page.text(line).is_some_and(|text| matches!(PrintedLine::of(text), PrintedLine::Event(_)));
        if is_event || seen > limits::CODE { Err(Found(is_event)) } else { Ok(()) }
    });
    matches!(found, Err(Found(true)))
}

impl Page {
    /// The text of a line of the page, if it is one of a printed trace.
    pub(crate) fn text<'l>(&mut self, line: &'l [u8]) -> Option<&'l [u8]> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut text = line;
        if let Some(behind) = begin(line) {
            (self.0, text) = (PageState::Before, behind);
        }
        if self.0 == PageState::Code {
            return None;
        }
        let end = text.windows(END.len()).position(|part| part == END);
        let text = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
        let text = text.strip_suffix(b"\\n\\").unwrap_or(text);
        if self.0 == PageState::Before && !text.trim_ascii().is_empty() {
            let is_other = matches!(text.first(), Some(b'{' | b'[')) || text.starts_with(b"PROCESS DUMP");
            self.0 = if is_other { PageState::Other } else { PageState::Trace };
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
    let tag = line.strip_prefix(b"<script")?;
    let end = tag.iter().position(|byte| *byte == b'>')?;
    let (attributes, behind) = tag.split_at_checked(end)?;
    let is_data = attributes.windows(10).any(|part| part == b"trace-data");
    behind.get(1..).filter(|_| is_data)
}
