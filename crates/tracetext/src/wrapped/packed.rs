//! The data that trace2html puts into a page: compressed by gzip, in the letters of base64.

use super::{PIECE, TextSink, Wrapping, is_other, json, rest};
use crate::limits;
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use memchr::memchr;
use std::cell::Cell;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::ops::ControlFlow;

/// Passes on the text of ftrace in data that begin here and end before a `<`: a text, or JSON with one. `left` is the number of bytes that the
/// data of the page may still become. Returns whether the data are whole.
pub(crate) fn text(input: &mut dyn BufRead, left: &Cell<u64>, sink: TextSink<'_>) -> bool {
    let mut letters = Letters { input, group: LetterGroup::default(), bytes: Vec::new(), at: 0, is_over: false };
    let mut is_broken = false;
    let is_whole = expanded(&mut letters, left, limits::PACKED, &mut |piece| {
        let flow = sink(piece);
        is_broken |= flow.is_break();
        flow
    });
    // What follows the text, such as other parts of JSON, ends where the data do.
    is_broken || is_whole.unwrap_or(false) && rest(&mut letters, &mut |_| ControlFlow::Continue(()))
}

/// Passes on the text in data that may be compressed, this many times.
fn expanded(data: &mut dyn BufRead, left: &Cell<u64>, times: usize, sink: TextSink<'_>) -> io::Result<bool> {
    let Some(inner) = times.checked_sub(1) else { return plain(data, sink) };
    match data.fill_buf()? {
        [0x1f, 0x8b, ..] => {
            let data = Limited { data: MultiGzDecoder::new(data), left };
            expanded(&mut BufReader::with_capacity(PIECE, data), left, inner, sink)
        }
        [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => {
            let data = Limited { data: ZlibDecoder::new(data), left };
            expanded(&mut BufReader::with_capacity(PIECE, data), left, inner, sink)
        }
        _ => plain(data, sink),
    }
}

/// Passes on a text, or the text in JSON.
fn plain(data: &mut dyn BufRead, sink: TextSink<'_>) -> io::Result<bool> {
    let head = data.fill_buf()?;
    if Wrapping::of(head) == Wrapping::Json {
        json::text(data, sink)
    } else if is_other(head) {
        Ok(true)
    } else {
        Ok(rest(data, sink))
    }
}

/// The content of compressed data, as long as it is less than what is left of a limit.
struct Limited<'l, R> {
    data: R,
    left: &'l Cell<u64>,
}

impl<R: Read> Read for Limited<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.data.read(buffer)?;
        let left = self.left.get().checked_sub(length as u64).ok_or(ErrorKind::FileTooLarge)?;
        self.left.set(left);
        Ok(length)
    }
}

/// The bytes in letters of base64, until a `<`.
struct Letters<'i> {
    input: &'i mut dyn BufRead,
    group: LetterGroup,
    /// Bytes that were decoded, and the number of those that were taken.
    bytes: Vec<u8>,
    at: usize,
    is_over: bool,
}

/// The letters of a group of four so far: their bits and their number.
#[derive(Clone, Copy, Debug, Default)]
struct LetterGroup {
    bits: u32,
    count: u8,
}

impl LetterGroup {
    /// Adds a letter; three bytes are whole with the fourth.
    fn add(&mut self, value: u8, out: &mut Vec<u8>) {
        self.bits = self.bits << 6 | u32::from(value);
        self.count = self.count.wrapping_add(1);
        if self.count == 4 {
            self.end(out);
        }
    }

    /// Ends a group, which has a byte less than letters.
    fn end(&mut self, out: &mut Vec<u8>) {
        let LetterGroup { bits, count } = std::mem::take(self);
        let [_, bytes @ ..] = (bits << (6 * 4u8.saturating_sub(count))).to_be_bytes();
        out.extend(bytes.iter().take(usize::from(count.saturating_sub(1))));
    }
}

impl Letters<'_> {
    /// Decodes the next letters. The end of the file, and a byte that is no letter, are errors.
    fn decode(&mut self) -> io::Result<()> {
        let letters = self.input.fill_buf()?;
        if letters.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let end = memchr(b'<', letters);
        self.is_over = end.is_some();
        let letters = letters.get(..end.unwrap_or(letters.len())).unwrap_or_default();
        for letter in letters {
            let value = VALUES.get(usize::from(*letter)).copied().unwrap_or(NONE);
            if value != NONE {
                self.group.add(value, &mut self.bytes);
            } else if *letter == b'=' {
                self.group.end(&mut self.bytes);
            } else if !letter.is_ascii_whitespace() {
                return Err(ErrorKind::InvalidData.into());
            }
        }
        let length = letters.len();
        self.input.consume(length);
        if self.is_over {
            self.group.end(&mut self.bytes);
        }
        Ok(())
    }
}

impl Read for Letters<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(buffer)?;
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for Letters<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
            while self.bytes.is_empty() && !self.is_over {
                self.decode()?;
            }
        }
        Ok(self.bytes.get(self.at..).unwrap_or_default())
    }

    fn consume(&mut self, length: usize) {
        self.at = self.at.saturating_add(length);
    }
}

/// A byte that is no letter of base64.
const NONE: u8 = 0xff;

/// The six bits of each letter.
const VALUES: [u8; 256] = values();

#[allow(clippy::indexing_slicing, reason = "the places of an array of all bytes, at compile time")]
const fn values() -> [u8; 256] {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut values = [NONE; 256];
    let mut at = 0;
    while at < letters.len() {
        values[letters[at] as usize] = at as u8;
        at += 1;
    }
    values
}
