//! The book holds together: each page is in its table of contents, each link and each anchor is there, and so is each anchor that
//! sources, schemas and help cite.

use crate::book::pages;
use crate::support::root;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The anchor that GitHub and mdBook make of a heading.
fn slug(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The lines of a page outside of blocks in backquotes, without words in backquotes.
fn prose(page: &str) -> Vec<String> {
    let (mut inside, mut lines) = (false, Vec::new());
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            lines.push(line.split('`').step_by(2).collect::<Vec<_>>().join("`"));
        }
    }
    lines
}

/// The anchors of a page: those of its headings, and those that it names (`<a id="losses"></a>`).
fn anchors(page: &str) -> BTreeMap<String, usize> {
    let (mut inside, mut anchors) = (false, BTreeMap::new());
    for line in page.lines() {
        inside ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if !inside && heading.len() < line.len() && heading.starts_with(' ') {
            *anchors.entry(slug(heading)).or_default() += 1;
        }
        for id in line.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            *anchors.entry(id.to_owned()).or_default() += 1;
        }
    }
    anchors
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// The anchors of each page of Markdown, by its path.
fn all_anchors(documents: &[PathBuf]) -> BTreeMap<PathBuf, BTreeMap<String, usize>> {
    let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    documents.iter().map(|path| (path.clone(), anchors(&read(path)))).collect()
}

/// The files of the repository that match, with new ones.
fn listed(patterns: &[&str]) -> Vec<PathBuf> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "--"]).args(patterns).current_dir(root());
    let names = String::from_utf8(git.output().expect("git ls-files").stdout).expect("names");
    // A file that is deleted and not committed yet is still listed.
    names.lines().map(|name| root().join(name)).filter(|path| path.is_file()).collect()
}

/// The page of the book that a link in the table of contents leads to. A page that is not written yet has none.
fn in_the_summary() -> Vec<PathBuf> {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).expect("the table of contents");
    let links = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    links.filter(|link| !link.is_empty()).map(|link| root().join("docs").join(link)).collect()
}

#[test]
fn every_page_of_the_book_is_in_its_table_of_contents_once() {
    let (listed, mut pages) = (in_the_summary(), pages());
    pages.retain(|page| !page.ends_with("SUMMARY.md"));
    let unique: BTreeSet<&PathBuf> = listed.iter().collect();
    assert_eq!(unique.len(), listed.len(), "a page is in docs/SUMMARY.md twice");
    assert_eq!(unique, pages.iter().collect(), "docs/SUMMARY.md, and the pages in docs");
}

#[test]
fn every_link_and_every_anchor_is_there() {
    let documents = listed(&["*.md"]);
    let (anchors, mut astray, mut seen) = (all_anchors(&documents), Vec::new(), 0);
    for document in &documents {
        let text = std::fs::read_to_string(document).expect("a page").replace("\r\n", "\n");
        let folder = document.parent().expect("a folder");
        let lines = prose(&text);
        let links = lines.iter().flat_map(|line| line.split("](").skip(1)).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.is_empty() && !link.contains("://")) {
            seen += 1;
            let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
            let file = if file.is_empty() { document.clone() } else { plain(&folder.join(file)) };
            // The book has no page of that name.
            let leaves_the_book = file.ends_with("SUMMARY.md") || !file.starts_with(root().join("docs"));
            assert!(!(document.starts_with(root().join("docs")) && leaves_the_book), "{}: {link}", document.display());
            let is_there = match (anchor, anchors.get(&file)) {
                (Some(anchor), Some(known)) => known.contains_key(anchor),
                (Some(_), None) => false,
                (None, _) => file.exists(),
            };
            if !is_there {
                astray.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(astray.is_empty(), "links that lead nowhere: {astray:#?}");
    assert!(seen > 50, "{seen} links");
}

/// A named anchor is in its page once, and no heading has its name: it would lead to whichever comes first.
#[test]
fn named_anchors_are_unique() {
    let mut twice = Vec::new();
    for (page, anchors) in all_anchors(&pages()) {
        let text = std::fs::read_to_string(&page).expect("a page");
        let named = text.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next());
        twice.extend(named.filter(|name| anchors[*name] > 1).map(|name| format!("{}: {name}", page.display())));
    }
    assert!(twice.is_empty(), "{twice:?}");
}

/// Sources, schemas and scripts cite a definition by page and anchor: `docs/read-the-numbers.md#losses`.
#[test]
fn every_anchor_that_is_cited_is_there() {
    let anchors = all_anchors(&listed(&["*.md"]));
    let (mut astray, mut seen) = (Vec::new(), 0);
    for file in listed(&["*.rs", "*.toml", "*.json", "*.js", ".ci/*", "tests/vm/*"]) {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        for (at, _) in text.match_indices(".md#") {
            let is_part = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.', '/'].contains(&c);
            let before = text[..at].rfind(|c: char| !is_part(c)).map_or(0, |at| at + 1);
            let (path, rest) = (format!("{}.md", &text[before..at]), &text[at + ".md#".len()..]);
            let anchor = rest.split(|c: char| !(c.is_ascii_alphanumeric() || ['-', '_'].contains(&c))).next();
            let (anchor, path) = (anchor.unwrap_or_default(), plain(&root().join(path)));
            // A pattern of a test, such as this one.
            if anchor.is_empty() {
                continue;
            }
            seen += 1;
            if !anchors.get(&path).is_some_and(|known| known.contains_key(anchor)) {
                astray.push(format!("{}: {}#{anchor}", file.display(), path.display()));
            }
        }
    }
    assert!(astray.is_empty(), "cited, and not there: {astray:#?}");
    assert!(seen > 0, "nothing cites an anchor");
}
