//! The text of ftrace in the JSON of a trace viewer (Chrome's, catapult's).
//!
//! A recording of the whole system has it as the string `systemTraceEvents` of the outermost object, before or behind `traceEvents`. All else is
//! passed over byte by byte, whatever its size and depth.

use super::{TakenText, TextSink};
use memchr::memchr2;
use std::io::{self, BufRead};

/// The name of the text.
const NAME: &[u8] = b"systemTraceEvents";

/// Passes on the text of ftrace in a document; nothing of one without. Returns whether the text is whole.
pub(crate) fn text(input: &mut dyn BufRead, sink: TextSink<'_>) -> io::Result<bool> {
    if find(input)? { unescaped(input, sink) } else { Ok(true) }
}

/// The part of a document in which a byte is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    /// The byte is in no string.
    #[default]
    Between,
    String,
    /// Behind a backslash of a string.
    Escape,
}

#[derive(Debug, Default)]
struct Search {
    within: Within,
    /// The number of arrays and objects that are open.
    depth: u64,
    /// Whether the next string of the outermost object is a name; the letters of the latest one, and whether this string is one.
    expects_name: bool,
    name: Vec<u8>,
    is_name: bool,
    is_over: bool,
}

/// Reads until behind the quote before the text; `false` if there is none.
fn find(input: &mut dyn BufRead) -> io::Result<bool> {
    let mut search = Search::default();
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() || search.is_over {
            return Ok(false);
        }
        let (found, length) = match search.pass(bytes) {
            Some(length) => (true, length),
            None => (false, bytes.len()),
        };
        input.consume(length);
        if found {
            return Ok(true);
        }
    }
}

impl Search {
    /// Passes over bytes; returns the number of those before the text, if it begins here.
    fn pass(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty() && !self.is_over) {
            match self.within {
                Within::Between => {
                    let byte = *rest.first()?;
                    at = at.saturating_add(1);
                    if self.byte(byte) {
                        return Some(at);
                    }
                }
                Within::String => {
                    let length = memchr2(b'"', b'\\', rest);
                    self.letters(rest.get(..length.unwrap_or(rest.len())).unwrap_or_default());
                    at = length.map_or(bytes.len(), |length| at.saturating_add(length).saturating_add(1));
                    self.within = match length.and_then(|length| rest.get(length)) {
                        Some(b'"') => Within::Between,
                        Some(_) => Within::Escape,
                        None => Within::String,
                    };
                }
                Within::Escape => {
                    // No letter of the name is ever escaped.
                    self.letters(b"\\");
                    at = at.saturating_add(1);
                    self.within = Within::String;
                }
            }
        }
        None
    }

    /// Takes a byte between strings; `true` if it is the quote before the text.
    fn byte(&mut self, byte: u8) -> bool {
        let is_outermost = self.depth == 1;
        match byte {
            b'"' if is_outermost && !self.expects_name && self.name == NAME => return true,
            b'"' => {
                self.within = Within::String;
                self.is_name = is_outermost && self.expects_name;
                if self.is_name {
                    self.name.clear();
                }
            }
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                self.expects_name = self.depth == 1;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.is_over = self.depth == 0;
            }
            b':' if is_outermost => self.expects_name = false,
            b',' if is_outermost => self.expects_name = true,
            _ => {}
        }
        false
    }

    /// Takes letters of a string: of a name as many as tell it from others.
    fn letters(&mut self, letters: &[u8]) {
        if self.is_name {
            let room = NAME.len().saturating_add(1).saturating_sub(self.name.len());
            self.name.extend_from_slice(letters.get(..letters.len().min(room)).unwrap_or_default());
        }
    }
}

/// A string without its escapes.
#[derive(Debug, Default)]
struct Unescape {
    out: TakenText,
    escape: Escape,
    /// The first half of a letter in two escapes.
    high: Option<u32>,
}

/// The part of an escape that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    Backslash,
    /// The digits of `\u` so far: their number and their value.
    Digits(u8, u32),
}

/// Passes on a string until its quote; returns whether the document has that.
fn unescaped(input: &mut dyn BufRead, sink: TextSink<'_>) -> io::Result<bool> {
    let mut text = Unescape::default();
    loop {
        let bytes = match input.fill_buf() {
            Ok(bytes) if !bytes.is_empty() => bytes,
            damaged_or_cut => {
                text.out.cut_line();
                text.out.end(sink);
                return damaged_or_cut.map(|_| false);
            }
        };
        let (length, end) = (bytes.len(), text.pass(bytes));
        if end.is_some() {
            text.out.end(sink);
            return Ok(true);
        }
        if text.out.pass_on(sink).is_break() {
            return Ok(true);
        }
        input.consume(length);
    }
}

impl Unescape {
    /// Takes bytes of the string; returns the place of the quote that ends it.
    fn pass(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if self.escape != Escape::None {
                self.escaped(*rest.first()?);
                at = at.saturating_add(1);
                continue;
            }
            let length = memchr2(b'"', b'\\', rest);
            let letters = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
            if !letters.is_empty() {
                self.letter(None);
                self.out.bytes.extend_from_slice(letters);
            }
            at = at.saturating_add(letters.len());
            match length.and_then(|length| rest.get(length)) {
                Some(b'"') => return Some(at),
                Some(_) => self.escape = Escape::Backslash,
                None => break,
            }
            at = at.saturating_add(1);
        }
        None
    }

    /// Takes a byte behind a backslash.
    fn escaped(&mut self, byte: u8) {
        let (is_digits, (count, value)) = match self.escape {
            Escape::Digits(count, value) => (true, (count, value)),
            _ => (false, (0, 0)),
        };
        if !is_digits {
            self.escape = if byte == b'u' { Escape::Digits(0, 0) } else { Escape::None };
            let letter = match byte {
                b'u' => return,
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'b' => 8,
                b'f' => 12,
                other => other,
            };
            self.letter(None);
            self.out.bytes.push(letter);
            return;
        }
        let digit = char::from(byte).to_digit(16).unwrap_or(0);
        let value = value << 4 | digit;
        self.escape = Escape::Digits(count.saturating_add(1), value);
        if count >= 3 {
            self.escape = Escape::None;
            self.letter(Some(value));
        }
    }

    /// Adds a letter by its number in UTF-16, whose halves can be two; `None` where another begins.
    fn letter(&mut self, unit: Option<u32>) {
        let high = self.high.take();
        let letter = match (high, unit) {
            (None, None) => return,
            (Some(_), None) => char::REPLACEMENT_CHARACTER,
            (Some(high), Some(low @ 0xdc00..=0xdfff)) => {
                char::from_u32(0x1_0000 | (high & 0x3ff) << 10 | low & 0x3ff).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            (_, Some(high @ 0xd800..=0xdbff)) => {
                self.high = Some(high);
                return;
            }
            (_, Some(unit)) => char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER),
        };
        self.out.bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
}
