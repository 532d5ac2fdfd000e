//! The options that an anonymous part has, and the words in them: all that is not listed is left out.

use crate::bytes::until_nul;
use crate::decode::clock::CLOCKS;
use crate::file::header::numbers::{CPU_COUNT, DATE, OFFSET, RECORDER, TIME_SHIFT, TRACE_CLOCK, TSC2NSEC, UNAME};

/// The clocks without a time.
const TIMELESS: [&str; 2] = ["counter", "uptime"];

/// The keys of a CPU's statistics.
const STATISTICS: [&str; 9] = [
    "CPU",
    "entries",
    "overrun",
    "commit overrun",
    "bytes",
    "oldest event ts",
    "now ts",
    "dropped events",
    "read events",
];

/// An option, if an anonymous part has it.
pub(super) fn option(id: u16, payload: &[u8]) -> Option<Vec<u8>> {
    let text = || String::from_utf8_lossy(until_nul(payload)).into_owned();
    match id {
        DATE | OFFSET => is_number(text().trim()).then(|| ended(text().trim())),
        TRACE_CLOCK => Some(ended(&clocks(&text()))),
        UNAME => Some(ended(&without_node(&text()))),
        RECORDER => version(&text()).map(ended),
        // Numbers alone.
        CPU_COUNT => Some(payload.iter().copied().take(4).collect()),
        TSC2NSEC => Some(payload.iter().copied().take(16).collect()),
        TIME_SHIFT => Some(payload.to_vec()),
        _ => None,
    }
}

/// A text with the byte that ends it.
fn ended(text: &str) -> Vec<u8> {
    text.bytes().chain([0]).collect()
}

/// Whether a text is a number, decimal or hexadecimal.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    match digits.strip_prefix("0x") {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// The clocks of a text such as `[local] global counter`; one in brackets that is not known stays one that is not known.
fn clocks(text: &str) -> String {
    let word = |word: &str| match word.strip_prefix('[').and_then(|word| word.strip_suffix(']')) {
        Some(chosen) => Some(format!("[{}]", clock(chosen))),
        None => is_clock(word).then(|| word.to_owned()),
    };
    text.split_whitespace().filter_map(word).collect::<Vec<_>>().join(" ")
}

fn is_clock(name: &str) -> bool {
    CLOCKS.contains(&name) || TIMELESS.contains(&name)
}

/// The name of a clock.
pub(super) fn clock(name: &str) -> &str {
    if name.is_empty() || is_clock(name) { name } else { "unknown" }
}

/// `Linux node release machine` with another node, which may have blanks.
fn without_node(text: &str) -> String {
    match text.split_whitespace().collect::<Vec<_>>().as_slice() {
        ["Linux", .., release, machine] => format!("Linux host {release} {machine}"),
        _ => String::new(),
    }
}

/// The number at the start of the recorder's version, `3.1.6` of `3.1.6 (a build of mine)`.
fn version(text: &str) -> Option<&str> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.get(..end).filter(|number| !number.is_empty())
}

/// The statistics of a CPU without lines that are not known; `buffer` gives the name that stands for that of a buffer.
pub(super) fn statistics(text: &[u8], buffer: impl Fn(&str) -> String) -> Vec<u8> {
    let text = String::from_utf8_lossy(until_nul(text));
    if let Some(name) = text.trim_start().strip_prefix("Buffer:") {
        let name = sched::event::escape(name.trim().as_bytes()).into_owned();
        return ended(&format!("Buffer: {}\n", buffer(&name)));
    }
    let is_known = |line: &&str| {
        let Some((key, value)) = line.split_once(':') else { return false };
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit() || b" .".contains(&byte));
        STATISTICS.contains(&key) && is_number
    };
    text.lines().filter(is_known).map(|line| format!("{line}\n")).collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_known_words_alone() {
        let of = |id, text: &str| option(id, text.as_bytes()).map(|bytes| String::from_utf8(bytes).expect("text"));
        let is = |text: &str| Some(format!("{text}\0"));
        assert_eq!(of(DATE, "1790000000000000\0secret"), is("1790000000000000"));
        assert_eq!(of(OFFSET, "-0x12\0"), is("-0x12"));
        assert_eq!(of(OFFSET, "12 secret\0"), None);
        assert_eq!(of(TRACE_CLOCK, "local [mono] secret tai\n\0"), is("local [mono] tai"));
        assert_eq!(of(TRACE_CLOCK, "[secret]\0"), is("[unknown]"));
        assert_eq!(of(UNAME, "Linux my own host 6.12.9-amd64 x86_64\0"), is("Linux host 6.12.9-amd64 x86_64"));
        assert_eq!(of(UNAME, "secret\0"), is(""));
        assert_eq!(of(RECORDER, "3.1.6 (secret)\0"), is("3.1.6"));
        assert_eq!(of(RECORDER, "secret 3\0"), None);
        for id in [6, 10, 11, 13, 15, 26, 4711] {
            assert_eq!(of(id, "secret\0"), None, "{id}");
        }
        let text = b"CPU: 3\nentries: 5\nsecret: 7\noverrun: secret\nnow ts:   12.5\n\0secret";
        assert_eq!(statistics(text, |_| String::new()), b"CPU: 3\nentries: 5\nnow ts:   12.5\n");
        let alias = |name: &str| format!("buffer{}", name.len());
        assert_eq!(statistics(b"Buffer: secret\n\0", alias), b"Buffer: buffer6\n\0");
    }
}
