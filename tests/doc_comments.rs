//! Each doc comment stands alone: a reader understands it without the code around it.
//!
//! Those of the crates' items, fields, variants and methods count, help texts among them; those of test modules do not.

use crate::support::{root, sources_of_crates};

/// First words that make a fragment of a comment, since the noun that they are about is missing.
const FRAGMENTS: [&str; 8] = ["Who", "Which", "Where", "That", "As", "For", "Of", "What"];

/// Pronouns: as a first word they leave out the noun that the comment is about.
const PRONOUNS: [&str; 12] =
    ["It", "Its", "They", "Them", "Their", "This", "These", "Those", "He", "His", "She", "Her"];

/// The rule that a doc comment breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The comment has fewer than three words.
    FewWords,
    /// The comment begins with one of `FRAGMENTS`, or with "Whether it would".
    FirstWord,
    /// The comment begins with one of `PRONOUNS`.
    Pronoun,
}

impl Fault {
    fn of(comment: &str) -> Option<Fault> {
        let words: Vec<&str> = comment.split_whitespace().filter(|w| w.contains(char::is_alphanumeric)).collect();
        let first = words.first()?.trim_matches(|c: char| !c.is_alphanumeric());
        match words.len() {
            0..3 => Some(Fault::FewWords),
            _ if FRAGMENTS.contains(&first) || comment.starts_with("Whether it would") => Some(Fault::FirstWord),
            _ if PRONOUNS.contains(&first) => Some(Fault::Pronoun),
            _ => None,
        }
    }
}

/// The outer doc comments of a source with the numbers of their first lines, without those of its inline test modules.
fn comments(text: &str) -> Vec<(usize, String)> {
    let mut comments: Vec<(usize, String)> = Vec::new();
    let (mut is_test, mut goes_on) = (false, false);
    let mut lines = text.lines().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let next = lines.peek().map_or("", |(_, next)| *next);
        is_test |= line == "#[cfg(test)]" && next.starts_with("mod ") && next.ends_with('{');
        is_test &= line != "}";
        let comment = line.trim_start().strip_prefix("///").filter(|_| !is_test);
        match (comment, comments.last_mut()) {
            (Some(more), Some((_, comment))) if goes_on => *comment = [comment, more.trim()].join(" "),
            (Some(first), _) => comments.push((index + 1, first.trim().to_owned())),
            (None, _) => {}
        }
        goes_on = comment.is_some();
    }
    comments
}

#[test]
fn doc_comments_stand_alone() {
    let mut faults = Vec::new();
    for (_, path, text) in sources_of_crates() {
        let path = path.strip_prefix(root()).expect("a path in the repository").display().to_string();
        for (line, comment) in comments(&text) {
            faults.extend(Fault::of(&comment).map(|fault| format!("{path}:{line}: {fault:?}: {comment}")));
        }
    }
    assert!(faults.is_empty(), "these doc comments do not stand alone: {faults:#?}");
}

#[test]
fn fragments_are_found_and_sentences_are_not() {
    // `#` stands for the mark of a doc comment, so that these are none of this file.
    let text = "# Who.\nstruct A {\n    # The PID of\n    # the task.\n    b: u8,\n    # Which, if any is known.\n    c: u8,\n}\n\
                # Its name in the table.\nfn f() {}\n\n#[cfg(test)]\nmod tests {\n    # Which.\n    fn g() {}\n}\n\n\
                # Whether it would move.\nfn h() {}\n";
    let text = text.replace("# ", "/// ");
    let found: Vec<_> = comments(&text).into_iter().map(|(line, comment)| (line, Fault::of(&comment))).collect();
    let [few, first, pronoun] = [Fault::FewWords, Fault::FirstWord, Fault::Pronoun].map(Some);
    assert_eq!(found, [(1, few), (3, None), (6, first), (9, pronoun), (18, first)]);
}

/// The lines within which the head of a crate says where to begin reading.
const HEAD: usize = 12;

/// The head of each crate says, near its top, in which file to begin reading: one that exists, or its own.
#[test]
fn heads_of_crates_say_where_to_begin_reading() {
    let crates = std::fs::read_dir(root().join("crates")).expect("crates").map(|entry| entry.expect("an entry").path());
    let (mut astray, mut seen) = (Vec::new(), 0);
    for folder in crates.map(|folder| folder.join("src")) {
        let library = ["lib.rs", "program.rs"].map(|name| folder.join(name)).into_iter().find(|path| path.is_file());
        let text = std::fs::read_to_string(library.expect("a library")).expect("text");
        let lines = text.lines().map_while(|line| line.strip_prefix("//!")).take(HEAD);
        let head = lines.map(str::trim).collect::<Vec<_>>().join(" ");
        let begin = head.split_once("Begin reading ").map(|(_, rest)| rest);
        let files = begin.into_iter().flat_map(|rest| rest.split('`').skip(1).step_by(2));
        let mut sources = files.filter(|name| name.ends_with(".rs")).peekable();
        let is_told = begin.is_some_and(|rest| rest.contains("this file")) || sources.peek().is_some();
        if !is_told || !sources.all(|name| folder.join(name).is_file()) {
            astray.push(folder.display().to_string());
        }
        seen += 1;
    }
    assert!(astray.is_empty(), "the heads of these do not say where to begin reading: {astray:#?}");
    assert!(seen > 40, "{seen} crates");
}
