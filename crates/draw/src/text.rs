//! The width of text, and its characters.
//!
//! Widths are those of Helvetica, one of the fonts that every PDF viewer has; Arial and Liberation
//! Sans share them. All devices use one table, so that their layouts agree.

use crate::unit::Unit;

/// The widths of the characters from blank to `~`, in thousandths of the size of the text, from
/// Adobe's AFM file for Helvetica.
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
];

/// The widths of the characters from the no-break space to `\u{ff}`, in the same unit.
const LATIN_WIDTHS: [u16; 96] = [
    278, 333, 556, 556, 556, 556, 260, 556, 333, 737, 370, 556, 584, 333, 737, 333, 400, 584, 333, 333, 333, 556, 537,
    278, 333, 333, 365, 556, 834, 834, 834, 611, 667, 667, 667, 667, 667, 667, 1000, 722, 667, 667, 667, 667, 278, 278,
    278, 278, 722, 722, 778, 778, 778, 778, 778, 584, 778, 722, 722, 722, 722, 667, 667, 611, 556, 556, 556, 556, 556,
    556, 889, 500, 556, 556, 556, 556, 278, 278, 278, 278, 556, 556, 556, 556, 556, 556, 556, 584, 611, 556, 556, 556,
    556, 500, 556, 500,
];

/// Returns the width of `text` in a font of this size.
pub fn width(text: &str, size: Unit) -> Unit {
    let thousandths: i64 = text.chars().map(|c| i64::from(advance(c))).sum();
    (thousandths * i64::from(size) / 1000) as Unit
}

/// Returns the width of a character in thousandths of the size of the text.
pub(crate) fn advance(c: char) -> u16 {
    match c {
        ' '..='~' => WIDTHS[c as usize - 0x20],
        '\u{a0}'..='\u{ff}' => LATIN_WIDTHS[c as usize - 0xa0],
        '\u{2014}' | '\u{2026}' => 1000,
        '\u{2018}' | '\u{2019}' => 222,
        '\u{201c}' | '\u{201d}' => 333,
        '\u{2022}' => 350,
        _ => 556,
    }
}

/// Returns the text, cut with an ellipsis if it is wider than `most`.
pub fn fit(text: &str, size: Unit, most: Unit) -> String {
    if width(text, size) <= most {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if width(&kept, size) + width("\u{2026}", size) > most {
            kept.pop();
            break;
        }
    }
    kept.push('\u{2026}');
    kept
}

/// Breaks the text into lines that are at most `most` wide: at blanks, or within a word that is wider than a line.
pub fn wrap(text: &str, size: Unit, most: Unit) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let blank = if line.is_empty() { "" } else { " " };
        if width(&line, size) + width(blank, size) + width(word, size) <= most {
            line.extend([blank, word]);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            if !line.is_empty() && width(&line, size) + width(c.encode_utf8(&mut [0; 4]), size) > most {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    lines.push(line);
    lines
}

/// Returns the byte of a character in WinAnsiEncoding, the standard encoding of PDF.
pub(crate) fn win_ansi(c: char) -> Option<u8> {
    match c {
        ' '..='~' | '\u{a0}'..='\u{ff}' => Some(c as u8),
        '\u{2013}' => Some(0x96),
        '\u{2014}' => Some(0x97),
        '\u{2026}' => Some(0x85),
        '\u{2018}' => Some(0x91),
        '\u{2019}' => Some(0x92),
        '\u{201c}' => Some(0x93),
        '\u{201d}' => Some(0x94),
        '\u{2022}' => Some(0x95),
        _ => None,
    }
}

/// Returns the text with control characters and characters beyond the standard encoding escaped.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match win_ansi(c) {
            Some(_) => out.push(c),
            None => out.extend(c.escape_unicode()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_helveticas() {
        assert_eq!(width("Wi~", 1000), 944 + 222 + 584);
        assert_eq!(width("0123456789", 1000), 5560);
        assert_eq!(fit("hackbench", 1000, 3000), "hac\u{2026}");
        assert_eq!(fit("ok", 1000, 3000), "ok");
        assert_eq!(wrap("one two three", 1000, 4000), ["one two", "three"]);
        assert_eq!((wrap("", 1000, 4000), wrap("ok", 1000, 1)), (vec![String::new()], vec!["o".into(), "k".into()]));
        assert_eq!(printable("a\u{b5}\u{4e2d}\n"), "a\u{b5}\\u{4e2d}\\u{a}");
    }

    /// The embedded font has the same widths, but for rounding to a unit.
    #[test]
    fn the_embedded_font_agrees() {
        let font = ttf_parser::Face::parse(crate::png::FONT, 0).unwrap();
        // Arial and its likes differ from Helvetica in a few characters.
        let differ = "\u{af}\u{b1}\u{b5}\u{b7}\u{f7}";
        for c in (' '..='\u{ff}').chain("\u{2013}\u{2014}\u{2026}\u{2018}\u{2019}\u{201c}\u{201d}\u{2022}".chars()) {
            let Some(glyph) = win_ansi(c).and_then(|_| font.glyph_index(c)) else { continue };
            let advance = f64::from(font.glyph_hor_advance(glyph).unwrap()) * 1000.0 / f64::from(font.units_per_em());
            let most = if differ.contains(c) { 300.0 } else { 1.0 };
            assert!((advance - f64::from(super::advance(c))).abs() < most, "{c}: {advance}");
        }
    }
}
