//! Texts of files, cleaned where they enter: no string of a file can move a terminal's cursor, whatever prints it.

use super::{escape, escaped, is_plain_char};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::{Borrow, Cow};
use std::fmt::{self, Write};
use std::ops::Deref;

/// A text of a file or of the machine, as the readers give it to everything else: every way to make one escapes it as
/// [`escape`](super::escape) does, so that it is safe to print.
///
/// ```
/// use sched::event::CleanText;
///
/// assert_eq!(CleanText::from("cgroup\u{1b}[31m\n"), *"cgroup\\x1b[31m\\x0a");
/// assert_eq!(CleanText::of_bytes(b"a\xff"), *"a\\xff");
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct CleanText(String);

impl CleanText {
    /// Escapes bytes, which need not be UTF-8.
    pub fn of_bytes(bytes: &[u8]) -> CleanText {
        CleanText(escape(bytes).into_owned())
    }

    /// The text as a slice, fit to be printed.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Adds bytes, escaped.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.0.push_str(&escape(bytes));
    }
}

impl From<&str> for CleanText {
    fn from(text: &str) -> CleanText {
        CleanText::of_bytes(text.as_bytes())
    }
}

impl From<String> for CleanText {
    fn from(text: String) -> CleanText {
        CleanText(escaped(text))
    }
}

impl From<CleanText> for String {
    fn from(text: CleanText) -> String {
        text.0
    }
}

impl<'d> Deserialize<'d> for CleanText {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<CleanText, D::Error> {
        String::deserialize(deserializer).map(CleanText::from)
    }
}

impl Deref for CleanText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for CleanText {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for CleanText {
    fn eq(&self, other: &str) -> bool {
        self.0 == *other
    }
}

impl PartialEq<&str> for CleanText {
    fn eq(&self, other: &&str) -> bool {
        self.0 == **other
    }
}

impl fmt::Display for CleanText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for CleanText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for CleanText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

/// A JSON document whose strings and keys have no control characters and no bidirectional overrides: those are escaped as
/// [`escape`](super::escape) does. Files beside a trace are read from nothing else.
///
/// ```
/// use sched::event::CleanJson;
///
/// let text = "{\"path\": \"/a\\u001b[31m\", \"list\": [\"\\n\", \"\\u202e\", \"caf\\u00e9\", \"a\\\\b\"]}";
/// let value: serde_json::Value = CleanJson::new(text).read().unwrap_or_default();
/// assert_eq!(value["path"], "/a\\x1b[31m");
/// assert_eq!(value["list"], serde_json::json!(["\\x0a", "\\u{202e}", "caf\u{e9}", "a\\b"]));
/// ```
#[derive(Clone, Debug)]
pub struct CleanJson<'t>(Cow<'t, str>);

impl<'t> CleanJson<'t> {
    /// Cleans the strings of a text; whether it is JSON shows as it is read.
    pub fn new(text: &'t str) -> CleanJson<'t> {
        let is_clean = text.bytes().all(|byte| matches!(byte, b' '..=b'[' | b']'..=b'~' | b'\n' | b'\r' | b'\t'));
        CleanJson(if is_clean { text.into() } else { cleaned(text).into() })
    }

    /// The text with clean strings.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Reads the document.
    ///
    /// # Errors
    ///
    /// The text is not JSON, or not of the wanted form.
    pub fn read<T: for<'d> Deserialize<'d>>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

/// Puts a character into a string of JSON, escaped for those who print the string.
fn put(c: char, out: &mut String) {
    let _ = if c.is_control() {
        write!(out, "\\\\x{:02x}", u32::from(c))
    } else {
        write!(out, "\\\\u{{{:x}}}", u32::from(c))
    };
}

/// The text with the characters of its strings escaped that are not plain, be they there as such or by an escape of JSON.
fn cleaned(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            // Below a space JSON allows none but these, between its strings.
            '\0'..='\x1f' => out.push(c),
            '\\' => escape_of(&mut rest, &mut out),
            c if is_plain_char(c) => out.push(c),
            c => put(c, &mut out),
        }
    }
    out
}

/// Takes over an escape of JSON, whose backslash was read, or the form of its character for output if that is not plain.
fn escape_of(rest: &mut std::str::Chars<'_>, out: &mut String) {
    let kept = rest.as_str();
    let character = match rest.next() {
        Some('b') => Some('\x08'),
        Some('f') => Some('\x0c'),
        Some('n') => Some('\n'),
        Some('r') => Some('\r'),
        Some('t') => Some('\t'),
        Some('u') => {
            let digits = rest.as_str().get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
            if digits.is_some() {
                rest.nth(3);
            }
            // Half of a surrogate pair is no character of its own, and plain.
            digits.and_then(char::from_u32)
        }
        _ => None,
    };
    match character.filter(|c| !is_plain_char(*c)) {
        Some(c) => put(c, out),
        None => {
            out.push('\\');
            out.push_str(&kept[..kept.len() - rest.as_str().len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_strings_changes() {
        let text = "{\n\t\"a\": [1, -2.5e3, true, null],\r\n \"b\\\"\\/\\\\n\": \"\\ud83d\\ude00 \u{e9}\"}";
        let of = |text: &str| CleanJson::new(text).read::<serde_json::Value>().expect(text);
        assert_eq!(of(text), serde_json::from_str::<serde_json::Value>(text).expect("JSON"));
        for hostile in
            ["\\u001b", "\\u001B", "\\u009b", "\u{9b}", "\u{202e}", "\\u202E", "\\u0000", "\\u007f", "\u{7f}"]
        {
            let value = of(&format!("{{\"k{hostile}\": \"v{hostile}\"}}"));
            assert!(value.to_string().chars().all(is_plain_char), "{value}");
        }
        // A text that is not JSON is none afterwards.
        for text in ["\"\\u12", "\"\\uzzzz\"", "\"\\", "\"\x1b\"", "{\u{9b}}", "\"\\q\""] {
            assert!(CleanJson::new(text).read::<serde_json::Value>().is_err(), "{text:?}");
        }
    }
}
