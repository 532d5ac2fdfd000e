//! The commands of the README and of the examples, run as they stand there.

use crate::support::{fixture, root, scratch};
use std::path::Path;
use std::process::Command;

/// The commands of a page: lines in blocks, joined where they go on, and words between backticks.
fn commands(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (nth, part) in page.split("```").enumerate() {
        if nth % 2 == 1 {
            found.extend(part.replace("\\\n", " ").lines().map(str::to_owned));
        } else {
            let words = part.split('`').skip(1).step_by(2);
            found.extend(words.map(|words| words.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
    found
}

/// The arguments of the program in a command: of `schedviz info trace.dat`, and of what cargo runs. Nothing for others.
fn arguments(command: &str) -> Option<String> {
    let command = command.split(" # ").next().unwrap_or(command).trim();
    if let Some((cargo, arguments)) = command.split_once(" -- ").filter(|(cargo, _)| cargo.starts_with("cargo run")) {
        assert!(!cargo.contains("--example"), "{cargo}");
        return Some(arguments.to_owned());
    }
    let arguments = command.strip_prefix("schedviz ")?;
    // Places to be filled in, and options alone.
    let is_pattern = |word: &str| {
        let letters = word.trim_matches(|c: char| !c.is_ascii_alphabetic());
        letters.len() > 2 && letters.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
    };
    // They need root, or serve until they are interrupted.
    let is_example = !["record", "machine", "top", "view"].iter().any(|name| arguments.starts_with(name));
    (is_example && !arguments.split_whitespace().any(is_pattern)).then(|| arguments.to_owned())
}

/// A folder in which a reader of the README stands: a clone, with the recordings that it names.
fn clone(name: &str) -> crate::support::Scratch {
    let folder = scratch(name);
    let tests = folder.join("tests/fixtures");
    std::fs::create_dir_all(&tests).expect("created");
    for name in ["hackbench.dat", "hackbench.cpus.txt", "hackbench-7.2.dat"] {
        std::fs::copy(fixture(name), tests.join(name)).expect("copied");
    }
    folder
}

/// Runs a line in a shell that has the program as `schedviz`.
fn run(folder: &Path, line: &str) -> (Option<i32>, String, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_schedviz")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    let output = command.args(["-c", line]).current_dir(folder).env("PATH", path).env("COLUMNS", "80").output();
    let output = output.expect("a shell");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn every_command_of_the_readme_works() {
    let folder = clone("readme");
    let page = std::fs::read_to_string(root().join("README.md")).expect("the README");
    let (mut ran, mut printed) = (Vec::new(), String::new());
    for command in commands(&page) {
        if command.starts_with("cp ") {
            assert_eq!(run(&folder, &command).0, Some(0), "{command}");
        }
        let Some(arguments) = arguments(&command) else { continue };
        // The limit of the last step is exceeded in this recording.
        let expected = if arguments.contains("--max-violation") { 2 } else { 0 };
        let (code, stdout, stderr) = run(&folder, &format!("schedviz {arguments}"));
        assert_eq!(code, Some(expected), "{command}: {stderr}");
        printed += &stdout;
        ran.push(arguments);
    }
    assert!(ran.len() >= 9, "{ran:?}");
    for drawn in ["hackbench.dat2graph.pdf", "hackbench.dat2graph.0.490567s-0.564582s.pdf"] {
        assert!(folder.join(drawn).is_file(), "{drawn}");
    }
    // The excerpt of the report is what the report prints.
    let excerpt = page.split("```").find(|block| block.contains("work conservation is violated")).expect("an excerpt");
    let lines = excerpt.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "...");
    for line in lines {
        assert!(printed.lines().any(|other| other.contains(line)), "{line:?} is not printed");
    }
}

/// *Begin* can be walked by its text alone, in a clone.
#[test]
fn every_command_of_the_first_page_works() {
    let folder = clone("begin");
    let page = std::fs::read_to_string(root().join("docs/begin.md")).expect("the page");
    let mut ran = Vec::new();
    for command in commands(&page) {
        let shown = arguments(&command).map(|arguments| format!("schedviz {arguments}"));
        let line = shown.or_else(|| command.starts_with("cp ").then_some(command));
        if let Some(line) = line {
            let (code, _, stderr) = run(&folder, &line);
            assert_eq!(code, Some(0), "{line}: {stderr}");
            ran.push(line);
        }
    }
    assert!(ran.len() >= 8, "{ran:?}");
    for made in ["hackbench.dat2graph.pdf", "report/index.html", "public.dat"] {
        assert!(folder.join(made).is_file(), "{made}");
    }
}

/// The sentences of a page outside of blocks and tables. Words in backquotes are one word.
fn sentences(page: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    for part in page.split("```").step_by(2) {
        let part = part.split('`').enumerate().map(|(nth, text)| if nth % 2 == 1 { "code" } else { text });
        let part: String = part.collect();
        for paragraph in part.replace("\n* ", "\n\n").split("\n\n").filter(|text| !text.contains(['|', '#'])) {
            let text = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
            sentences.extend(text.split_inclusive(['.', '?', '!', ';']).fold(
                Vec::<String>::new(),
                |mut all, piece| {
                    // A dot within a number or a name ends no sentence.
                    match all.last_mut().filter(|last| !piece.starts_with(' ') && !last.is_empty()) {
                        Some(last) => last.push_str(piece),
                        None => all.push(piece.trim().to_owned()),
                    }
                    all
                },
            ));
        }
    }
    sentences
}

/// A sentence that has to be read twice is rewritten.
#[test]
fn sentences_of_the_readme_have_at_most_25_words() {
    let page = std::fs::read_to_string(root().join("README.md")).expect("the README");
    let all = sentences(&page);
    let long: Vec<&String> = all.iter().filter(|sentence| sentence.split(' ').count() > 25).collect();
    assert!(long.is_empty(), "{long:#?}");
    assert!(all.len() > 40, "{} sentences", all.len());
}

/// The steps of the workflow that run the program: the figure is that of the worst run, whatever its number.
#[test]
fn the_workflow_draws_the_worst_run() {
    if Command::new("jq").arg("--version").output().is_err() {
        eprintln!("skipped: no jq");
        return;
    }
    let folder = scratch("workflow");
    for (number, name) in [(1, "balance.dat"), (2, "hackbench.dat"), (3, "throttled-6.12.dat")] {
        std::fs::copy(fixture(name), folder.join(format!("run.{number}.dat"))).expect("copied");
    }
    let page = std::fs::read_to_string(root().join("examples/workcons-ci.yml")).expect("the workflow");
    let judge = page.lines().find_map(|line| line.trim().strip_prefix("run: schedviz")).expect("a step");
    assert_eq!(run(&folder, &format!("schedviz{judge}")).0, Some(2));
    let (_, step) = page.split_once("the worst run's figure").expect("a step");
    let (_, script) = step.split_once("run: |\n").expect("a script");
    let script: Vec<&str> = script.lines().take_while(|line| line.starts_with("          ")).collect();
    let (code, _, stderr) = run(&folder, &format!("set -e\n{}", script.join("\n")));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(folder.join("worst.pdf").is_file() && stderr.contains("wrote worst.pdf"), "{stderr}");
    let drawn = run(&folder, "schedviz dat2graph run.2.dat -o second.pdf && cmp worst.pdf second.pdf");
    assert_eq!(drawn.0, Some(0), "{}", drawn.2);
    // Each recording has its machine file.
    assert!(page.contains("schedviz record -o run.$i.dat") && !page.contains("trace-cmd record"));
}

/// The commands of `docs/waiting.md` print the lines below them, in their order.
#[test]
fn the_page_about_waiting_has_what_the_program_prints() {
    let page = std::fs::read_to_string(root().join("docs/waiting.md")).expect("the page");
    let shown = page.split("```\n").filter_map(|block| block.strip_prefix("$ ")?.split_once('\n'));
    let mut number = 0;
    for (command, lines) in shown {
        let (code, text, errors) = run(&root().join("examples/waiting"), command);
        assert_eq!(code, Some(0), "{command}: {errors}");
        let mut printed = text.lines().map(str::trim_end);
        for line in lines.lines() {
            // A line of the headline may go on behind the part that is shown.
            assert!(
                printed.any(|printed| printed == line || printed.starts_with(&format!("{line} "))),
                "{command}: {line}\n{text}"
            );
        }
        number += 1;
    }
    assert_eq!(number, 5);
}
