//! The generated blocks of the book: outputs of commands, options from the command line's definition, links to the JSON schemas.
//! A comment of HTML above each says what it holds; `SCHEDVIZ_BLESS=1` rewrites the blocks:
//!
//! ```text
//! <!-- output: schedviz workcons tests/fixtures/hackbench.dat -->   a block in backquotes: what the command prints, run in the root
//! <!-- output(20): schedviz why tests/fixtures/hackbench.dat -->    its first 20 lines
//! <!-- options: workcons -->                                        a list: the options of its own that -h shows
//! <!-- options: workcons --waiters --tasks -->                      these options
//! <!-- schema: workcons -->                                         a link to the schema of the report in JSON
//! ```

use crate::support::{asked, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the pages of the book, by their paths in `docs`.
pub(crate) fn pages() -> Vec<PathBuf> {
    let (mut pages, mut folders) = (Vec::new(), vec![root().join("docs")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            match path.extension().and_then(|extension| extension.to_str()) {
                None if path.is_dir() => folders.push(path),
                Some("md") => pages.push(path),
                _ => {}
            }
        }
    }
    pages.sort();
    pages
}

/// A comment that says what the block below it holds.
struct Marker<'p> {
    kind: &'p str,
    /// The number of lines that are shown, if not all are.
    limit: Option<usize>,
    words: &'p str,
}

/// The marker in a line, if there is one.
fn marker(line: &str) -> Option<Marker<'_>> {
    let (head, words) = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.split_once(": ")?;
    let (kind, limit) = match head.split_once('(') {
        Some((kind, limit)) => (kind, Some(limit.strip_suffix(')')?.parse().ok()?)),
        None => (head, None),
    };
    ["output", "options", "schema"].contains(&kind).then_some(Marker { kind, limit, words })
}

/// What the marker asks for, in lines.
fn made(marker: &Marker<'_>) -> Vec<String> {
    match marker.kind {
        "output" => output(marker.words, marker.limit),
        "options" => options(marker.words),
        _ => schema(marker.words),
    }
}

/// What a command prints on standard output.
fn output(command: &str, limit: Option<usize>) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_schedviz")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    let ran = shell.args(["-c", command]).current_dir(root()).env("PATH", path).env("COLUMNS", "80").output();
    let ran = ran.expect("a shell");
    let errors = String::from_utf8_lossy(&ran.stderr);
    // A limit that is exceeded, and a trace with losses, are results.
    assert!(matches!(ran.status.code(), Some(0 | 2 | 3)), "{command}: {errors}");
    let text = String::from_utf8(ran.stdout).expect("text");
    let all: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
    assert!(!all.is_empty(), "{command} prints nothing: {errors}");
    let shown = limit.unwrap_or(all.len()).min(all.len());
    let cut = (shown < all.len()).then(|| "…".to_owned());
    let fence = |text: &str| std::iter::once(text.to_owned());
    fence("```text").chain(all[..shown].iter().cloned()).chain(cut).chain(fence("```")).collect()
}

/// Options of a command: those that are named, or those that its short help shows and that other commands do not share.
fn options(words: &str) -> Vec<String> {
    let mut words = words.split_whitespace();
    let name = words.next().expect("a command");
    let entry = schedviz::COMMANDS.iter().find(|entry| entry.name == name);
    let mut command = entry.unwrap_or_else(|| panic!("options: there is no command {name}")).definition();
    command.build();
    let named: Vec<&str> = words.map(|word| word.trim_start_matches('-')).collect();
    let shared = ["Window", "Tasks", "Output", "Verdict", "Figure"];
    let is_own = |arg: &&clap::Arg| {
        let is_shared = arg.get_help_heading().is_some_and(|heading| shared.contains(&heading));
        // `docs/read-the-numbers.md` has these once.
        let is_common = ["help", "verbose", "rows", "worst"].contains(&arg.get_id().as_str());
        !(is_shared || is_common || arg.is_hide_set() || arg.is_hide_short_help_set())
    };
    let opts: Vec<&clap::Arg> = match named.is_empty() {
        true => command.get_opts().filter(is_own).collect(),
        false => {
            let find = |name: &&str| command.get_arguments().find(|arg| arg.get_long() == Some(*name));
            let found = named.iter().map(|word| find(word).unwrap_or_else(|| panic!("{name} has no --{word}")));
            found.collect()
        }
    };
    assert!(!opts.is_empty(), "{name} has no options of its own");
    opts.into_iter().map(option).collect()
}

/// The line of an option.
fn option(arg: &clap::Arg) -> String {
    let long = arg.get_long().expect("a long name");
    let choices = arg.get_possible_values();
    let choices: Vec<&str> =
        choices.iter().filter(|value| !value.is_hide_set()).map(clap::builder::PossibleValue::get_name).collect();
    let names = arg.get_value_names().unwrap_or_default();
    let value = match (arg.get_action().takes_values(), choices.as_slice()) {
        (false, _) => String::new(),
        (true, [_, _, ..]) => format!(" {}", choices.join("|")),
        (true, _) => format!(" {}", names.iter().map(clap::builder::Str::as_str).collect::<Vec<_>>().join(" ")),
    };
    let help = arg.get_help().unwrap_or_else(|| panic!("--{long} has no help")).to_string();
    format!("* `--{long}{value}`: {}", help.replace('\n', " "))
}

/// A link to the schema of a document, in its latest version.
fn schema(name: &str) -> Vec<String> {
    // The first version of this document was that of another command.
    let stem = format!("{}-", if name == "migrations" { "balance" } else { name });
    let version = |name: &str| -> Option<u32> { name.strip_prefix(&stem)?.strip_suffix(".json")?.parse().ok() };
    let files = std::fs::read_dir(root().join("docs/schemas")).expect("the schemas").flatten();
    let files = files.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let file = files.filter(|name| version(name).is_some()).max_by_key(|name| version(name));
    let file = file.unwrap_or_else(|| panic!("schema: there is none of {name}"));
    vec![format!("[Schema of `--json`](../schemas/{file})")]
}

/// The lines of the block that begins at a line, and whether an empty line is above it.
fn block(kind: &str, lines: &[&str]) -> usize {
    let first = lines.first().copied().unwrap_or_default();
    match kind {
        "output" if first.starts_with("```") => {
            let end = lines.iter().skip(1).position(|line| *line == "```");
            end.expect("the end of a block in backquotes") + 2
        }
        "options" => lines.iter().take_while(|line| line.starts_with("* ")).count(),
        "schema" if first.starts_with("[Schema of") => 1,
        _ => 0,
    }
}

/// A page with its blocks made anew.
fn renewed(page: &str) -> String {
    let lines: Vec<&str> = page.lines().collect();
    let (mut out, mut at, mut fence) = (Vec::new(), 0, false);
    while let Some(line) = lines.get(at) {
        out.push((*line).to_owned());
        at += 1;
        fence ^= line.starts_with("```");
        let Some(marker) = (!fence).then(|| marker(line)).flatten() else { continue };
        out.extend(made(&marker));
        at +=
            usize::from(lines.get(at).is_some_and(|line| line.is_empty()) && block(marker.kind, &lines[at + 1..]) > 0);
        at += block(marker.kind, &lines[at..]);
    }
    out.join("\n") + "\n"
}

#[test]
fn generated_blocks_are_what_the_program_and_the_schemas_have() {
    let (all, next) = (pages(), std::sync::atomic::AtomicUsize::new(0));
    let work = || {
        let mut astray = Vec::new();
        while let Some(path) = all.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            let page = std::fs::read_to_string(path).expect("a page");
            let anew = renewed(&page);
            if page != anew && std::env::var_os("SCHEDVIZ_BLESS").is_some() {
                std::fs::write(path, anew).expect("written");
            } else if page != anew {
                let differ = page.lines().zip(anew.lines()).find(|(kept, made)| kept != made);
                astray.push(format!("{}: {differ:?}", path.display()));
            }
        }
        astray
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let astray: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a page")).collect()
    });
    assert!(
        astray.is_empty(),
        "blocks that differ, with the first line that does; SCHEDVIZ_BLESS=1 rewrites them: {astray:#?}"
    );
}

/// The test above sees a change in each kind of block.
#[test]
fn a_block_that_is_not_that_of_the_program_is_made_anew() {
    let markers = [
        "<!-- output(2): schedviz workcons tests/fixtures/hackbench.dat -->",
        "<!-- options: workcons --waiters --verbose -->",
        "<!-- schema: why -->",
    ];
    let bare = markers.join("\n\n") + "\n\nText.\n";
    let page = renewed(&bare);
    assert_eq!(renewed(&page), page);
    let text = "schedviz workcons tests/fixtures/hackbench.dat -->\n```text\n";
    let line = page.split_once(text).expect("an output").1.lines().next().expect("a line");
    assert!(line.contains("work conservation is violated 27.30 %"), "{line}");
    assert!(page.contains("\n…\n```\n\n<!-- options"), "{page}");
    assert!(page.contains("* `--waiters all|movable|application`: The waiting tasks that count"), "{page}");
    let other = |old, new| page.replace(old, new);
    assert!(page.contains("[Schema of `--json`](../schemas/why-2.json)\n"), "{page}");
    for changed in [other("27.30", "27.31"), other("that count", "that are"), other("why-2", "why-1")] {
        assert!(changed != page && renewed(&changed) == page);
    }
    // An empty line between a marker and its block goes.
    assert_eq!(renewed(&page.replace("-->\n", "-->\n\n")), page);
}

/// A page names each column of its table: by itself, by the beginning that the columns of a distribution share (`runs_…`), or as
/// "the distribution", whose columns are in `docs/files.md`.
#[test]
fn each_column_of_a_table_is_named_in_its_page() {
    let read = |page: &str| std::fs::read_to_string(root().join(page)).unwrap_or_else(|e| panic!("{page}: {e}"));
    let (files, mut missing, mut seen) = (read("docs/files.md"), Vec::new(), 0);
    for entry in
        schedviz::COMMANDS.iter().filter(|entry| entry.formats().is_some_and(session::formats::Formats::has_table))
    {
        let Some(mut words) = asked(entry, "tests/fixtures/hackbench.dat") else { continue };
        words.extend(["--format", "csv", "-o", "-", "-q"].map(str::to_owned));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let text = crate::support::schedviz(&words).success().text();
        let page = read(&format!("docs/questions/{}.md", entry.name));
        let has_distribution = page.contains("the distribution");
        let prefixes: Vec<&str> =
            page.split('`').skip(1).step_by(2).filter_map(|word| word.strip_suffix('…')).collect();
        for column in text.lines().next().expect("a head").split(',') {
            let word = format!("`{column}`");
            let is_named = page.contains(&word)
                || prefixes.iter().any(|prefix| !prefix.is_empty() && column.starts_with(prefix))
                || (has_distribution && files.contains(&word));
            if !is_named {
                missing.push(format!("{}: {column}", entry.name));
            }
        }
        seen += 1;
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(seen > 12, "{seen} tables");
}
