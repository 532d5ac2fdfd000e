//! The kinds of printed texts.

/// The words of a text up to its first value: `find_busiest_group: no imbalance cpu=3` and all its
/// like are `find_busiest_group: no imbalance cpu=…`. A long text without a value is known by what
/// precedes its first colon.
///
/// ```
/// assert_eq!(events::shortened("pass 3 of 7"), "pass …");
/// assert_eq!(events::shortened("task=0xffff8 moved"), "task=…");
/// assert_eq!(events::shortened("begin"), "begin");
/// assert_eq!(events::shortened("cpu3 is hot"), "cpu3 is hot");
/// ```
pub fn shortened(text: &str) -> String {
    const LONG: usize = 60;
    let text = text.trim_end();
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        // A digit within a word belongs to a name: `cpu3`.
        let begins = matches!(before, ' ' | '=' | '(' | '[' | '<' | ':' | ',' | '\t' | '-' | '+' | '#' | '"');
        if c.is_ascii_digit() && begins {
            let head = text[..at].trim_end_matches(['-', '+', '#']);
            return format!("{head}\u{2026}");
        }
        before = c;
    }
    match text.split_once(':') {
        Some((head, _)) if text.chars().count() > LONG => format!("{head}:\u{2026}"),
        _ if text.chars().count() > LONG => text.chars().take(LONG).chain(['\u{2026}']).collect(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn texts_of_one_kind_have_one_name() {
        assert_eq!(
            shortened("find_busiest_group: no imbalance cpu=3"),
            "find_busiest_group: no imbalance cpu=\u{2026}"
        );
        assert_eq!(shortened("delta -17 ns"), "delta \u{2026}");
        assert_eq!(shortened("4 tasks"), "\u{2026}");
        assert_eq!(shortened("done\n"), "done");
        let long = format!("what: {}", "x".repeat(80));
        assert_eq!(shortened(&long), "what:\u{2026}");
    }
}
