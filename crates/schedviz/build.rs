//! Lists the pages of the book for the feature `mcp`, which shows them to assistants.

#![allow(clippy::print_stdout, reason = "a build script tells cargo so what it depends on")]
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The only page of a program that is built from its crate alone, which comes without the book: assistants read there why they find no other.
const WITHOUT_BOOK: &str = "\
# The book is not in this program

It was built from its crate alone, outside of the repository, so that no number is defined here. The static programs of a release and a program that is
built in the repository have the book. Options of a tool are here: the tool `help` with the name of a tool. Tell the user what you could not look up.
";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_MCP").is_none() {
        return;
    }
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    println!("cargo:rerun-if-changed={}", book.display());
    let (mut pages, mut folders) = (Vec::new(), vec![book.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    let mut list = "[\n".to_owned();
    for page in &pages {
        let name = page.strip_prefix(&book).expect("a page of the book").display().to_string();
        writeln!(list, "    ({name:?}, include_str!({:?})),", page.display().to_string()).expect("a string");
    }
    if pages.is_empty() {
        writeln!(list, "    (\"SUMMARY.md\", {WITHOUT_BOOK:?}),").expect("a string");
    }
    list.push_str("]\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    std::fs::write(out.join("book.rs"), list).expect("the list is written");
}
