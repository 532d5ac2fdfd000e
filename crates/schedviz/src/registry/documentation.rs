//! The documentation has what the list of commands has.

use super::COMMANDS;
use question::Entry;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The path of a file of the repository.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// The text of a file of the repository.
fn page(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The text behind `head`, up to the next empty line.
fn behind<'p>(page: &'p str, head: &str) -> &'p str {
    let (_, rest) = page.split_once(head).unwrap_or_else(|| panic!("there is no {head:?}"));
    rest.split("\n\n").next().unwrap_or(rest)
}

/// The names of the commands that `--help` lists and for which `has` holds.
fn commands(has: impl Fn(&Entry) -> bool) -> BTreeSet<&'static str> {
    COMMANDS.iter().filter(|entry| !entry.is_hidden && has(entry)).map(|entry| entry.name).collect()
}

/// The page of the book about a command.
fn page_of(name: &str) -> String {
    match name {
        "record" => "docs/record.md".to_owned(),
        // They answer one question.
        "list" => "docs/questions/events.md".to_owned(),
        _ => format!("docs/questions/{name}.md"),
    }
}

/// The rows of the README's table below the headings of `--help`: a row for each question, with the commands that answer it.
fn questions() -> String {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for entry in COMMANDS {
        if let Some((heading, _)) = super::HEADINGS.iter().find(|(_, first)| *first == entry.name) {
            rows.push((format!("**{heading}**"), Vec::new()));
        }
        let Some((question, arguments)) = entry.question else { continue };
        let line = format!("schedviz {} {arguments}", entry.name);
        let command = format!("[`{}`]({})", line.trim_end(), page_of(entry.name));
        match rows.iter_mut().find(|(other, _)| other == question) {
            Some((_, commands)) => commands.push(command),
            None => rows.push((question.to_owned(), vec![command])),
        }
    }
    let rows = rows.iter().map(|(question, commands)| format!("| {question} | {} |", commands.join(", ")));
    rows.collect::<Vec<_>>().join("\n")
}

/// The table of the README is that of the commands. `SCHEDVIZ_BLESS=1` writes it.
#[test]
fn the_table_of_the_readme_has_the_questions_of_all_commands() {
    let head = "| question | command |\n|---|---|\n";
    let readme = page("README.md");
    let (kept, made) = (behind(&readme, head), questions());
    if std::env::var_os("SCHEDVIZ_BLESS").is_some() {
        std::fs::write(file("README.md"), readme.replace(kept, &made)).expect("written");
    } else {
        assert!(kept == made, "the table of the README differs from this one; SCHEDVIZ_BLESS=1 rewrites it:\n{made}");
    }
    let without: Vec<_> = COMMANDS.iter().filter(|entry| !entry.is_hidden && entry.question.is_none()).collect();
    assert!(matches!(without.as_slice(), [entry] if entry.name == "manual"), "without a question: {without:?}");
}

/// `manual`, which writes this documentation, answers no question.
#[test]
fn each_command_has_a_page_in_the_book() {
    let with_page = |name: &&str| page(&page_of(name)).contains(&format!("schedviz {name}"));
    let named: BTreeSet<&str> = commands(|entry| entry.name != "manual").into_iter().filter(with_page).collect();
    assert_eq!(named, commands(|entry| entry.name != "manual"), "a page names its command");
}

#[test]
fn the_first_steps_fit_a_terminal_of_80_columns() {
    let steps = super::after_help();
    assert_eq!(steps.lines().filter(|line| line.chars().count() > 80).collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn each_heading_of_help_has_its_commands() {
    let known = commands(|_| true);
    assert!(super::HEADINGS.iter().all(|(_, first)| known.contains(first)), "{known:?}");
    assert_eq!(super::HEADINGS[0].1, COMMANDS[0].name, "no command is above the headings");
}
