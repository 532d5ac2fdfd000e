//! Columns of a text never touch: two blanks are between the numbers of a table, in each command's text on each recording.

use crate::support::{fixture, recordings_in_part, repeat, root, schedviz, sources_of_crates};
use rayon::prelude::*;
use regex::Regex;

/// The commands with tables in their text.
const COMMANDS: [&[&str]; 18] = [
    &["info"],
    &["workcons", "--verbose"],
    &["why"],
    &["path"],
    &["whatif"],
    &["utilization", "--verbose", "--per-cpu"],
    &["latency", "--verbose", "--by", "task"],
    &["preemptions", "--verbose"],
    &["wakers"],
    &["jobs", "--deadline", "1ms"],
    &["picks"],
    &["offcpu"],
    &["fairness", "--verbose"],
    &["neighbours"],
    &["running-waiting", "--format", "txt", "-o", "-"],
    &["migrations", "--format", "txt", "-o", "-"],
    &["events", "--format", "txt", "-o", "-"],
    &["findings"],
];

/// Finds numbers with fewer than two blanks between them.
struct Touching {
    cell: Regex,
    glued: Regex,
}

impl Touching {
    fn new() -> Touching {
        let unit = "(ns|µs|ms|s|%)";
        let number = format!(r"[+−-]?[0-9]+(\.[0-9]+)?{unit}?");
        Touching {
            cell: Regex::new(&format!(r"^(-|{number}(\.\.{number})?)$")).expect("a cell"),
            glued: Regex::new(&format!(r"(^|[ .])[0-9]+{unit}[0-9+−-]")).expect("cells"),
        }
    }

    /// Whether two columns of a line touch.
    fn is_in(&self, line: &str) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        let is_cell = |word: &str| self.cell.is_match(word);
        words.windows(2).any(|pair| is_cell(pair[0]) && is_cell(pair[1])) || self.glued.is_match(line)
    }
}

#[test]
fn lines_whose_columns_touch_are_found() {
    let touching = Touching::new();
    for line in [
        "observed  52.6ms 52.6ms..52.6ms",
        "steal=machine    55.1ms30.7ms..79.6ms      0     0..4",
        "  hackbench   1427 -11.7ms",
        "  exe       1       -       - 3.62ms",
        "hackbench 523   100.00% 5%",
        "hackbench 283               572.825 514.487",
    ] {
        assert!(touching.is_in(line), "{line}");
    }
    for line in
        ["hackbench 283  572.825  514.487", "took 12 ms, 3 of 4", "--min 0.330319 --max 0.335877", "a 286, 233.16 ms"]
    {
        assert!(!touching.is_in(line), "{line}");
    }
}

#[test]
fn columns_never_touch() {
    let touching = Touching::new();
    let recordings = recordings_in_part(12);
    let named: Vec<&str> = recordings.iter().map(|path| path.to_str().expect("a path")).collect();
    let found: Vec<String> = named
        .par_iter()
        .flat_map(|path| COMMANDS.par_iter().map(move |command| (*path, *command)))
        .flat_map_iter(|(path, command)| {
            let text = String::from_utf8_lossy(&schedviz(&[command, &["-q", path]].concat()).stdout).into_owned();
            let lines: Vec<String> = text.lines().filter(|line| touching.is_in(line)).map(str::to_owned).collect();
            let repeat = repeat("text_columns::", std::path::Path::new(path));
            lines.into_iter().map(move |line| format!("{command:?}: {line}\n{repeat}"))
        })
        .collect();
    assert!(named.len() > 1 && found.is_empty(), "{} lines: {:#?}", found.len(), &found[..found.len().min(5)]);
}

/// The commands that compare or predict from several runs.
#[test]
fn columns_of_several_runs_never_touch() {
    let touching = Touching::new();
    let [base, new] =
        ["hackbench.dat", "hackbench-v6.dat"].map(|name| fixture(name).to_str().expect("a path").to_owned());
    let topology = fixture("hackbench.cpus.txt").to_str().expect("a path").to_owned();
    let commands: [&[&str]; 7] = [
        &["compare", "--base", &base, "--new", &new],
        &["compare", "--base", &base, "--new", &new, "--format", "mmtests"],
        &["workcons", &base, &new],
        &["whatif", &base, &new],
        &["whatif", "--predict-from", &base, "--measured", &new],
        &["why", &base, &new],
        &["residency", &base, "--topology", &topology],
    ];
    for command in commands {
        let text = schedviz(&[command, &["-q"]].concat()).text();
        assert!(text.lines().count() > 2, "{command:?}: {text}");
        let lines: Vec<&str> = text.lines().filter(|line| touching.is_in(line)).collect();
        assert_eq!(lines, [""; 0], "{command:?}");
    }
}

/// Where columns are laid out by widths in a format string, two blanks stand between them, so that a long cell moves the next one.
#[test]
fn widths_in_format_strings_leave_two_blanks() {
    let placeholder = r"\{[a-z_0-9.]*(:[^{}]*)?\}";
    let padded = r"\{[a-z_0-9.]*:[<>]?\+?([0-9]+|[A-Za-z]+\$)(\.[0-9]+)?\}";
    let narrow = Regex::new(&format!("{placeholder}%? ?{padded}")).expect("two columns");
    // Lines of lists, of forms that others prescribe, and of figures: no columns of numbers.
    let others = [
        "/compare/src/dialects/",
        "/lanes/src/",
        "/parse/src/",
        "/schedviz/src/registry",
        "/session/src/",
        "/timeline/src/drawable",
        "/schedstat/src/report",
        "/stepper/src/text",
    ];
    let mut found = Vec::new();
    for (name, path, source) in sources_of_crates() {
        let shown = format!("/{}", path.strip_prefix(root()).unwrap_or(&path).display());
        if others.iter().any(|part| shown.contains(part)) {
            continue;
        }
        let tests = source.find("#[cfg(test)]").unwrap_or(source.len());
        let lines = source[..tests].lines().enumerate();
        // An indentation is no column.
        let lines = lines.filter(|(_, line)| narrow.is_match(&line.replace("{:indent$}", "")));
        found.extend(lines.map(|(at, line)| format!("{name}: {shown}:{}: {}", at + 1, line.trim())));
    }
    assert!(found.is_empty(), "{found:#?}");
}
