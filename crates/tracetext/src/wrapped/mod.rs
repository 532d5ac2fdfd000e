//! The text of a printed trace, whatever it is wrapped in.
//!
//! A file is the text itself, JSON of a trace viewer (`json.rs`), or a page of systrace or of trace2html (`html.rs`). The text is passed on in
//! pieces while the file is read, so that a file of any size takes the same memory.

mod html;
pub(crate) mod json;
mod packed;

use crate::limits;
use memchr::memrchr;
use parse::Source;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;

/// Bytes of a file that are read at once.
const WINDOW: u64 = 1 << 20;
/// Bytes of a wrapping that are read at once.
pub(crate) const PIECE: usize = 64 << 10;

/// Takes the next piece of a text; a break ends the reading.
pub(crate) type TextSink<'s> = &'s mut dyn FnMut(&[u8]) -> ControlFlow<()>;

/// The wrapping of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wrapping {
    /// Nothing: the file is the text.
    #[default]
    Nothing,
    /// The string `systemTraceEvents` of a trace viewer's JSON.
    Json,
    /// A page of HTML by systrace.
    Page,
    /// A page of HTML by trace2html: compressed texts and JSON.
    CompressedPage,
}

/// How a text was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) wrapping: Wrapping,
    /// Whether a part of the wrapping ends too early, is damaged, or becomes more than a file of its size may.
    pub(crate) is_cut: bool,
}

impl Wrapping {
    /// Returns the wrapping of a file by its first bytes. A page is one of systrace until it is read.
    pub(crate) fn of(head: &[u8]) -> Wrapping {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        let starts = |start: &[u8]| head.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start));
        if starts(b"<!doctype html") || starts(b"<html") {
            Wrapping::Page
        } else if head.strip_prefix(b"{").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"\"")) {
            Wrapping::Json
        } else {
            Wrapping::Nothing
        }
    }
}

/// Whether a source, by its first bytes, is none of printed events.
fn is_other(head: &[u8]) -> bool {
    matches!(head.first(), Some(b'{' | b'[')) || head.starts_with(b"PROCESS DUMP")
}

/// Passes on the text of a file.
pub(crate) fn text(source: &Source, sink: TextSink<'_>) -> Reading {
    let head = source.get(&(0..source.size().min(256))).unwrap_or_default();
    let mut reading = Reading { wrapping: Wrapping::of(&head), is_cut: false };
    let mut input = BufReader::with_capacity(PIECE, source.reader(0));
    let read = match reading.wrapping {
        Wrapping::Nothing => {
            plain(source, sink);
            return reading;
        }
        Wrapping::Json => json::text(&mut input, sink),
        Wrapping::Page | Wrapping::CompressedPage => {
            let most = transcript::expanded_limit(source.size());
            html::text(&mut input, most, sink).map(|(has_compressed, is_whole)| {
                if has_compressed {
                    reading.wrapping = Wrapping::CompressedPage;
                }
                is_whole
            })
        }
    };
    reading.is_cut = !read.unwrap_or(false);
    reading
}

/// Passes on a file as it is.
fn plain(source: &Source, sink: TextSink<'_>) {
    let (mut at, mut buffer) = (0, Vec::new());
    while at < source.size() {
        let end = at.saturating_add(WINDOW).min(source.size());
        let Some(bytes) = source.read(&(at..end), &mut buffer) else { break };
        if sink(bytes).is_break() {
            break;
        }
        at = end;
    }
}

/// Passes on all that is left of an input; `false` if it is damaged.
fn rest(input: &mut dyn BufRead, sink: TextSink<'_>) -> bool {
    loop {
        let length = match input.fill_buf() {
            Ok([]) => return true,
            Ok(bytes) => match sink(bytes) {
                ControlFlow::Continue(()) => bytes.len(),
                ControlFlow::Break(()) => return true,
            },
            Err(_) => return false,
        };
        input.consume(length);
    }
}

/// A text that was taken out of its wrapping and not passed on yet: whole lines are, so that one that was cut can be left out.
#[derive(Debug, Default)]
pub(crate) struct TakenText {
    pub(crate) bytes: Vec<u8>,
    is_broken: bool,
}

impl TakenText {
    /// Passes on whole lines once they are many; a line beyond the limit in parts.
    pub(crate) fn pass_on(&mut self, sink: TextSink<'_>) -> ControlFlow<()> {
        let last = self.bytes.len();
        if last >= PIECE {
            let behind = memrchr(b'\n', &self.bytes).map(|at| at.saturating_add(1));
            self.pass(behind.unwrap_or(if last > limits::LINE.saturating_add(PIECE) { last } else { 0 }), sink);
        }
        if self.is_broken { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Leaves out a last line without an end, which damage has cut.
    pub(crate) fn cut_line(&mut self) {
        self.bytes.truncate(memrchr(b'\n', &self.bytes).map_or(0, |at| at.saturating_add(1)));
    }

    /// Passes on all of it.
    pub(crate) fn end(mut self, sink: TextSink<'_>) {
        self.pass(self.bytes.len(), sink);
    }

    fn pass(&mut self, length: usize, sink: TextSink<'_>) {
        let passed = self.bytes.get(..length).filter(|passed| !passed.is_empty() && !self.is_broken);
        self.is_broken |= passed.is_some_and(|passed| sink(passed).is_break());
        self.bytes.drain(..length.min(self.bytes.len()));
    }
}
