//! Reports for a terminal or a mail: paragraphs, short durations for tables, and lines of cases.

use sched::{Dur, QueuedTimes};
use std::fmt::Write;
use textwrap::core::Word;
use textwrap::{Options, WordSeparator, WordSplitter};

/// The columns of a report, so that it can be quoted in a mail.
pub const COLUMNS: usize = 75;

/// The cases of a kind that a brief report shows.
pub const CASES: usize = 3;

/// The amount of a report that is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The headline, the tables, and a line for each of the longest cases.
    Brief,
    /// Every case with all that is known of it, and the command that draws it.
    Full,
}

/// Adds a paragraph in lines of [`COLUMNS`]: the first one indented by `first` spaces, the others by `others`. A longer
/// word, such as a path, stays whole, and no line begins with the unit of the number before it, such as `%` or `ms`.
pub fn paragraph(out: &mut String, first: usize, others: usize, text: &str) {
    lines(out, COLUMNS, first, others, text);
}

/// Adds a paragraph in lines of `columns` characters, indented as by [`paragraph`].
pub fn lines(out: &mut String, columns: usize, first: usize, others: usize, text: &str) {
    let (first, others) = (" ".repeat(first), " ".repeat(others));
    let options = Options::new(columns)
        .break_words(false)
        .word_separator(WordSeparator::Custom(words))
        .word_splitter(WordSplitter::NoHyphenation)
        .initial_indent(&first)
        .subsequent_indent(&others);
    for line in textwrap::wrap(text, options) {
        out.push_str(&line);
        out.push('\n');
    }
}

/// The words of a line; a number and its unit are one.
fn words(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let mut rest = line;
    Box::new(std::iter::from_fn(move || {
        let mut length = first_word(rest);
        while rest[..length].trim_end().ends_with(|c: char| c.is_ascii_digit()) && begins_with_unit(&rest[length..]) {
            length += first_word(&rest[length..]);
        }
        let (word, behind) = rest.split_at(length);
        rest = behind;
        (!word.is_empty()).then(|| Word::from(word))
    }))
}

/// The length in bytes of the first word of a text, with the spaces behind it.
fn first_word(text: &str) -> usize {
    WordSeparator::AsciiSpace.find_words(text).next().map_or(0, |word| word.word.len() + word.whitespace.len())
}

/// Whether a text begins with the sign of percent, or with a unit of time.
fn begins_with_unit(text: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(char::is_alphanumeric);
    ["%", "ns", "µs", "ms", "s"].iter().any(|unit| text.strip_prefix(unit).is_some_and(ends))
}

/// The end of a name, for a column of at most `most` letters: with an ellipsis in front, where the name is longer.
pub fn end_of(name: &str, most: usize) -> String {
    let length = name.chars().count();
    match length > most {
        true => std::iter::once('\u{2026}').chain(name.chars().skip(length - most + 1)).collect(),
        false => name.to_owned(),
    }
}

/// The indentation of the text of a case, behind its length and its start.
const CASE: usize = 25;

/// Adds the head of a list of cases; `text` names the columns behind their lengths and starts.
pub fn case_head(out: &mut String, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "  {:>9}  {:>10}  {text}", "length", "from, s");
}

/// Adds a case to such a list: its length, its start in nanoseconds from the start of the trace, and its text.
pub fn case(out: &mut String, start_ns: u64, length: Dur, text: &str) {
    let seconds = start_ns as f64 / 1e9;
    paragraph(out, 0, CASE, &format!("  {:>9}  {seconds:>10.6}  {text}", length.human()));
}

/// Adds a paragraph with the queued time of tasks by kind, `(queued for 2.541 s in all: 12.0 % beside an idle CPU, …)`; nothing where none was
/// queued, or that is unknown.
pub fn queued_kinds(out: &mut String, times: Option<QueuedTimes>) {
    let Some(times) = times.filter(|times| times.total() > 0) else { return };
    let all = times.total();
    let kinds = [
        (times.beside_idle_ns, "beside an idle CPU"),
        (times.held_back_ns, "held back on an idle CPU"),
        (times.beside_shorter_ns, "beside a shorter queue"),
        (times.alike_ns, "with all queues alike"),
    ];
    let percent = |ns: u64| 100.0 * ns as f64 / all as f64;
    let parts = kinds.iter().filter(|(ns, _)| *ns > 0).map(|(ns, kind)| format!("{:.1} % {kind}", percent(*ns)));
    let parts: Vec<String> = parts.collect();
    paragraph(out, 2, 3, &format!("(queued for {} in all: {})", Dur(all).human(), parts.join(", ")));
}

/// Returns a number rounded to `digits` digits behind the point, without the sign that a negative number keeps when it becomes zero.
pub fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (scale * value).round() / scale + 0.0
}

/// A length with three digits for the cells of a table: `750ns`, `12.3µs`, `4.56ms`, `152ms`. Nothing is `-`.
pub fn short(length: Option<Dur>) -> String {
    let Some(Dur(ns)) = length else { return "-".into() };
    let units = [("ns", 1e0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    // Rounded to three digits it is still below the next unit.
    let fits = |(_, unit): &&(&str, f64)| ns as f64 / unit < 999.5;
    let (name, unit) = units.iter().find(fits).unwrap_or(&units[3]);
    let value = ns as f64 / unit;
    match value {
        _ if *unit == 1.0 => format!("{ns}{name}"),
        v if v >= 99.95 => format!("{value:.0}{name}"),
        v if v >= 9.995 => format!("{value:.1}{name}"),
        _ => format!("{value:.2}{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_three_digits() {
        let shown = |ns: u64| short(Some(Dur(ns)));
        assert_eq!([0, 999, 1_000, 12_345].map(shown), ["0ns", "999ns", "1.00µs", "12.3µs"]);
        assert_eq!([99_940, 99_960, 999_499, 999_500].map(shown), ["99.9µs", "100µs", "999µs", "1.00ms"]);
        assert_eq!([9_994_000, 9_996_000, 1_234_000_000].map(shown), ["9.99ms", "10.0ms", "1.23s"]);
        assert_eq!((shown(12_345_600_000_000), short(None)), ("12346s".into(), "-".into()));
    }

    #[test]
    fn paragraphs_keep_their_columns_and_words_stay_whole() {
        let mut out = String::new();
        let path = "x".repeat(90);
        paragraph(&mut out, 0, 2, &format!("a-b {} {path} end", "word ".repeat(16).trim_end()));
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines.len(), 4, "{out}");
        assert_eq!((lines[0].len(), lines[2]), (73, &*format!("  {path}")));
        assert_eq!((lines[0].starts_with("a-b word"), lines[1], lines[3]), (true, "  word word", "  end"));
    }

    #[test]
    fn no_line_begins_with_the_unit_of_a_number() {
        let mut out = String::new();
        // Three words of the same length end at the margin, wherever the paragraph begins.
        for fill in 0..12 {
            paragraph(&mut out, 3, 3, &format!("{} waited 220.52 ms (7.1 %), 3 s of it", "x".repeat(50 + fill)));
        }
        let starts = |line: &str| begins_with_unit(line.trim_start());
        assert!(out.lines().count() > 12 && !out.lines().any(starts), "{out}");
        assert!(out.lines().all(|line| line.chars().count() <= COLUMNS) && !out.contains('\u{a0}'), "{out}");
    }

    #[test]
    fn a_number_that_becomes_zero_has_no_sign() {
        let texts = [(-0.04, 1), (-0.05, 1), (-0.4, 0), (2.346, 2)]
            .map(|(value, digits)| format!("{:+}", rounded(value, digits)));
        assert_eq!(texts, ["+0", "-0.1", "+0", "+2.35"]);
    }

    #[test]
    fn cases_stand_in_columns() {
        let mut out = String::new();
        case_head(&mut out, "idle CPUs");
        case(&mut out, 502_903_000, Dur(49_340_000), &"word ".repeat(11));
        let expected = "\u{20}    length     from, s  idle CPUs\n   49.34 ms    0.502903  word word word word word word word word word word\n                         word\n";
        assert_eq!(out, expected);
    }
}
