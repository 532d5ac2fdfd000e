//! The pages of the book, as resources and for the tool `help`. The build script lists them.

/// The pages, each with its path in `docs`.
pub(super) const PAGES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/book.rs"));

/// The beginning of the addresses of pages.
pub(super) const ADDRESS: &str = "schedviz://book/";

/// Maximum number of lines that a search finds in a page.
const MOST_FOUND: usize = 3;

/// A page, or the section of an anchor in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BookSection {
    /// The lines of the text.
    pub(super) lines: Vec<&'static str>,
    /// The anchors in the page.
    pub(super) anchors: Vec<String>,
}

/// The heading of a page.
pub(super) fn title(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default()
}

/// The page, or its section, of a name such as `docs/questions/why.md#definitions` without `docs/`; without the ending, or the folder, as well.
pub(super) fn section(name: &str) -> Option<BookSection> {
    let (page, anchor) = name.split_once('#').map_or((name, None), |(page, anchor)| (page, Some(anchor)));
    let named = |(path, _): &&(&str, &str)| {
        let stem = path.trim_end_matches(".md");
        *path == page || stem == page || stem.strip_prefix("questions/") == Some(page)
    };
    let (_, text) = PAGES.iter().find(named)?;
    let lines: Vec<&str> = text.lines().collect();
    let anchors = anchors(&lines);
    let shown = match anchor {
        None => lines.as_slice(),
        Some(anchor) => {
            let (_, start) = anchors.iter().find(|(name, _)| name == anchor)?;
            &lines[*start..end(&lines, *start)]
        }
    };
    // Comments of HTML are for the tests of the book.
    let lines = shown.iter().copied().filter(|line| !line.starts_with("<!--") && !line.starts_with("<a id=")).collect();
    Some(BookSection { lines, anchors: anchors.into_iter().map(|(name, _)| name).collect() })
}

/// The lines of all pages that have a text in them, without regard to case: at most three of a page.
pub(super) fn search(text: &str) -> Vec<(&'static str, Vec<&'static str>)> {
    let wanted = text.to_lowercase();
    let found = |page: &'static str| -> Vec<&'static str> {
        page.lines().filter(|line| line.to_lowercase().contains(&wanted)).take(MOST_FOUND).collect()
    };
    PAGES.iter().map(|(name, page)| (*name, found(page))).filter(|(_, lines)| !lines.is_empty()).collect()
}

/// The level of a heading; nothing for another line.
fn level(line: &str) -> Option<usize> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    (level > 0 && line[level..].starts_with(' ')).then_some(level)
}

/// The anchors of a page, each with the index of its line: those that are written, and those of headings.
fn anchors(lines: &[&str]) -> Vec<(String, usize)> {
    let (mut anchors, mut is_code) = (Vec::new(), false);
    for (index, line) in lines.iter().enumerate() {
        is_code ^= line.starts_with("```");
        let written = line.strip_prefix("<a id=\"").and_then(|rest| rest.split('"').next()).map(str::to_owned);
        let heading = level(line).filter(|level| *level > 1 && !is_code).map(|level| {
            let words = line[level..].trim().to_lowercase();
            let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        });
        anchors.extend(written.or(heading).map(|name| (name, index)));
    }
    anchors
}

/// The end of the section that begins at a line: the next heading that is not below it, or the next anchor where it begins without a heading.
fn end(lines: &[&str], start: usize) -> usize {
    let first = (start..lines.len()).find(|index| !lines[*index].is_empty() && !lines[*index].starts_with("<a id="));
    let Some(first) = first else { return lines.len() };
    let own = level(lines[first]);
    let mut is_code = false;
    for (index, line) in lines.iter().enumerate().skip(first + 1) {
        is_code ^= line.starts_with("```");
        let ends = match own {
            Some(own) => !is_code && level(line).is_some_and(|level| level <= own),
            None => !is_code && (level(line).is_some() || line.starts_with("<a id=")),
        };
        if ends {
            // The anchor above a heading belongs to it.
            return if lines[index - 1].starts_with("<a id=") { index - 1 } else { index };
        }
    }
    lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_sections_are_found() {
        assert!(PAGES.len() > 35 && PAGES.iter().all(|(_, page)| !title(page).is_empty()));
        let whole = section("questions/findings.md").expect("a page");
        assert_eq!(section("findings"), Some(whole.clone()));
        let cost = section("findings#cost").expect("a section");
        assert!(cost.lines[0].starts_with("*Cost.*") && cost.lines.len() < whole.lines.len(), "{cost:?}");
        let rounds = section("judge-a-patch#rounds").expect("a section");
        assert!(rounds.lines[0].starts_with("### Rounds") && !rounds.lines.iter().any(|l| l.starts_with("## ")));
        assert_eq!(section("judge-a-patch#rounds-and-ends-at-will").map(|s| s.lines), Some(rounds.lines));
        assert!(section("judge-a-patch#no-such").is_none() && section("../Cargo.toml").is_none());
    }

    /// Each anchor of each page has a section.
    #[test]
    fn each_anchor_has_a_section() {
        let mut seen = 0;
        for (name, _) in PAGES {
            for anchor in section(name).expect("a page").anchors {
                let lines = section(&format!("{name}#{anchor}")).unwrap_or_else(|| panic!("{name}#{anchor}")).lines;
                assert!(lines.iter().any(|line| !line.is_empty()), "{name}#{anchor}");
                seen += 1;
            }
        }
        assert!(seen > 200, "{seen} anchors");
    }

    #[test]
    fn a_search_finds_lines() {
        let found = search("Missed Steal");
        assert!(found.iter().any(|(page, _)| *page == "questions/why.md"));
        assert!(found.iter().all(|(_, lines)| (1..=MOST_FOUND).contains(&lines.len())));
        assert!(search("no such words at all").is_empty());
    }
}
