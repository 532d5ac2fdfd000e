//! `schedviz compare` and `schedstat` in the dialects of the list: golden files written from the documented formats, and each number again from
//! the values of the runs.

use crate::support::{fixture, golden, root, schedviz, scratch};
use compare::{Better, Compared, ComparedRun, Group, Metric, Row, compare, in_dialect};
use session::formats::Format;
use testkit::{Simulation, TraceBuilder};

/// A group of runs with these two numbers each.
fn group(name: &str, numbers: &[[f64; 2]]) -> Group {
    let run =
        |values: &[f64; 2]| ComparedRun { trace: name.to_owned(), values: values.iter().copied().map(Some).collect() };
    Group { name: name.to_owned(), runs: numbers.iter().map(run).collect() }
}

/// The golden files come from no run of the program: see `tests/golden/README.md`.
#[test]
fn each_dialect_is_as_documented() {
    let metrics =
        [Metric::of("elapsed", "elapsed, s", Better::Less), Metric::of("slice", "slice, ms", Better::Neither)];
    let base = [[2.0, 1.0], [2.1, 1.0], [2.2, 2.0], [2.2, 2.0], [2.3, 3.0], [2.4, 3.0]];
    let new = [[2.66, 1.0], [2.76, 2.0], [2.86, 2.0], [2.86, 2.0], [2.96, 2.0], [3.06, 3.0]];
    let groups = [group("base", &base), group("new", &new), group("one", &[[1.1, 4.0]])];
    let rows: Vec<Vec<Row>> = groups[1..].iter().map(|new| compare(&metrics, &groups[0], new, 0.05)).collect();
    let compared = Compared {
        test: "hackbench",
        metrics: &metrics,
        groups: &groups,
        comparisons: rows.iter().map(Vec::as_slice).collect(),
        alpha: 0.05,
    };
    for dialect in [Format::Tip, Format::Mmtests, Format::Lkp, Format::Benchstat] {
        let text = in_dialect(dialect, &compared).expect("a dialect of a table");
        golden(&format!("compare-{}.txt", dialect.word()), &text);
        assert!(!text.contains("\u{b1} 0%") && !text.contains("\u{b1}  0%"), "{text}");
    }
    assert_eq!(in_dialect(Format::Pdf, &compared), None);
}

/// Writes five runs of a simulated machine, in which everything takes `stretch` times as long.
fn runs(folder: &std::path::Path, name: &str, first: u64, stretch: i64) -> String {
    for seed in first..first + 5 {
        let mut events = Simulation::run(seed, 4, 300).events;
        events.iter_mut().for_each(|e| e.ts.0 *= stretch);
        std::fs::write(folder.join(format!("{name}.{seed}.dat")), TraceBuilder::default().events(&events).build())
            .expect("written");
    }
    folder.join(format!("{name}.*.dat")).to_str().expect("a path").to_owned()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation by the sum of squares less the square of the sum, another way than the program's.
fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let squares: f64 = values.iter().map(|v| v * v).sum();
    ((squares - n * mean(values).powi(2)).max(0.0) / (n - 1.0)).sqrt()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// The numbers of a line, in its order, behind this start.
fn numbers(line: &str, start: &str) -> Vec<f64> {
    let rest = line.strip_prefix(start).unwrap_or_else(|| panic!("{line:?} begins with {start:?}"));
    let words = rest.split(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')));
    words.filter_map(|word| word.parse().ok()).collect()
}

fn near(found: f64, expected: f64, digits: i32, what: &str) {
    // Half of the last digit, and the rounding of the sum of squares.
    let slack = 0.5 * 10_f64.powi(-digits) + 1e-6 * expected.abs().max(1.0);
    assert!((found - expected).abs() <= slack, "{what}: {found} printed, {expected} expected");
}

#[test]
fn each_number_of_a_dialect_follows_from_the_runs() {
    let folder = scratch("compare-dialects");
    let (base, new) = (runs(&folder, "base", 0, 1), runs(&folder, "new", 5, 2));
    let ask =
        |more: &[&str]| schedviz(&[&["compare", "-q", "--base", &base, "--new", &new], more].concat()).success().text();
    let json: serde_json::Value = serde_json::from_str(&ask(&["--json"])).expect("JSON");
    let file = folder.join("cover-letter");
    let tip = ask(&["--format", "tip"]);
    assert_eq!(ask(&["--format", "tip", "-o", file.to_str().expect("a path")]), "", "the file alone has it");
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), tip);
    let (mmtests, lkp) = (ask(&["--format", "mmtests"]), ask(&["--format", "lkp"]));
    let mut seen = 0;
    for (at, metric) in json["metrics"].as_array().expect("metrics").iter().enumerate() {
        let of = |group: usize| -> Vec<f64> {
            let runs = json["groups"][group]["runs"].as_array().expect("runs");
            runs.iter().filter_map(|run| run["values"][at].as_f64()).collect()
        };
        let (b, n) = (of(0), of(1));
        if b.len() != 5 || n.len() != 5 || median(&b) == 0.0 {
            continue;
        }
        seen += 1;
        let (name, key) = (metric["name"].as_str().expect("a name"), metric["key"].as_str().expect("a key"));
        let sign = if metric["better"] == "less" { -1.0 } else { 1.0 };
        let line = tip.lines().find(|line| line.strip_prefix(' ').is_some_and(|l| l.starts_with(&format!("{name} "))));
        let cells = numbers(line.unwrap_or_else(|| panic!("{name}: {tip}")), &format!(" {name}"));
        let ratio = median(&n) / median(&b);
        let expected = [
            (1.0, 2),
            (0.0, 2),
            (100.0 * deviation(&b) / mean(&b), 2),
            (ratio, 2),
            (sign * 100.0 * (ratio - 1.0), 2),
            (100.0 * deviation(&n) / mean(&n), 2),
        ];
        assert_eq!(cells.len(), 6, "{line:?}");
        for (cell, (value, digits)) in cells.iter().zip(expected) {
            near(*cell, value, digits, &format!("tip: {name}"));
        }
        let digits = if median(&b) < 10.0 { 4 } else { 2 };
        let variation = |values: &[f64]| 100.0 * deviation(values) / mean(values);
        let is_judged = metric["better"] != "neither";
        let statistics = [("Median", median as fn(&[f64]) -> f64, sign), ("CoeffVar", variation, -1.0)];
        for (statistic, of, sign) in statistics.into_iter().take(if is_judged { 2 } else { 1 }) {
            let start = format!("{statistic:9} {key} ");
            let line = mmtests.lines().find(|line| line.starts_with(&start)).expect("a line");
            let cells = numbers(line, &start);
            near(cells[0], of(&b), digits, key);
            near(cells[2], of(&n), digits, key);
            near(cells[3], sign * 100.0 * (of(&n) - of(&b)) / of(&b), 2, key);
        }
        let ending = format!("schedviz.{}", key.replace('-', "."));
        let line = lkp.lines().find(|line| {
            let word = line.split_whitespace().last().unwrap_or_default();
            word.strip_prefix(&ending).is_some_and(|unit| ["", "%", ".s", ".ms"].contains(&unit))
        });
        let line = line.unwrap_or_else(|| panic!("{key}: {lkp}"));
        let value = |at: std::ops::Range<usize>| -> f64 {
            let columns: String = line.chars().skip(at.start).take(at.len()).collect();
            columns.trim().trim_end_matches('%').parse().unwrap_or_else(|_| panic!("{line}: {columns}"))
        };
        let digits = |value: f64| if value >= 1000.0 { 0 } else { 2 };
        near(value(0..10), median(&b), digits(median(&b)), key);
        near(value(27..38), median(&n), digits(median(&n)), key);
        let points = if line.ends_with('%') { 1.0 } else { 100.0 / median(&b) };
        near(value(16..27), points * (median(&n) - median(&b)), 1, key);
    }
    assert!(seen > 15, "{seen} metrics");
    assert!(mmtests.matches("%*").count() > 2 && mmtests.lines().count() <= 80, "{mmtests}");
    for text in [&tip, &mmtests, &lkp] {
        // The finding comes first, the changes last: with at most 12 lines together.
        let (finding, rest) = text.split_once("\n\n").expect("a finding");
        let (_, changes) = rest.rsplit_once("\n\n").expect("the changes");
        assert!(finding.starts_with("Finding: new is WORSE than base: elapsed +150.0 % (p .016)"), "{text}");
        assert!(finding.contains(" % (p .008)") && changes.starts_with("medians: "), "{text}");
        let lines: Vec<&str> = finding.lines().chain(changes.lines()).collect();
        assert!(lines.len() <= 12 && lines.iter().all(|line| line.chars().count() <= 75), "{text}");
    }
}

#[test]
fn a_dialect_that_a_command_lacks_is_refused() {
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    for (arguments, advice) in [
        (vec!["workcons", trace, "--format", "tip"], "--format"),
        (vec!["compare", "--base", trace, "--new", trace, "--format", "ktap"], "add --fail-if"),
        (
            vec!["compare", "--base", trace, "--new", trace, "--format", "tip", "--json"],
            "both write to standard output",
        ),
        (vec!["compare", "--base", trace, "--new", trace, "--format", "tip", "--markdown"], "use one of them"),
        (vec!["compare", "--base", trace, "--new", trace, "--format", "lkp", "-o", "x.pdf"], "contradicts the name"),
        (vec!["workcons", trace, "--format", "junit"], "add --max-violation"),
    ] {
        let ran = schedviz(&arguments);
        assert!(ran.code != Some(0) && ran.stderr.contains(advice), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn one_run_has_no_spread() {
    let of = |name: &str| fixture(name).to_str().expect("a path").to_owned();
    let (base, new) = (of("hackbench.dat"), of("hackbench-7.2.dat"));
    let ask =
        |more: &[&str]| schedviz(&[&["compare", "-q", "--base", &base, "--new", &new], more].concat()).success().text();
    for form in [&[][..], &["--markdown"], &["--format", "tip"], &["--format", "lkp"], &["--format", "benchstat"]] {
        let text = ask(form);
        assert!(!text.contains("\u{b1}0%") && !text.contains("\u{b1} 0%") && !text.contains("( 0.00)"), "{text}");
        assert_eq!(text.matches("Too few runs").count(), 1, "one sentence:\n{text}");
    }
    assert!(ask(&["--format", "tip"]).contains("[  0.00](1 run)"));
    assert!(root().join("tests/golden/README.md").is_file());
}

/// The two copies of /proc/schedstat of a run on two CPUs: the second CPU counts three times as much as the first, so that
/// the mean is twice the first.
fn copies(folder: &std::path::Path, name: &str, jiffies: u64, cpu: [u64; 9], domain: &[u64]) -> [String; 2] {
    // Counters of 32 bits pass zero on the way.
    let start = u64::from(u32::MAX) - 7;
    let copy = |ending: &str, times: [u64; 2]| {
        let mut text = format!("version 17\ntimestamp {}\n", 4_294_900_000 + if times[0] == 0 { 0 } else { jiffies });
        for (nth, times) in times.iter().enumerate() {
            let field = |(at, value): (usize, &u64)| match at {
                0..6 => ((start + times * value) & u64::from(u32::MAX)).to_string(),
                _ => (start + times * value).to_string(),
            };
            let fields: Vec<String> = cpu.iter().enumerate().map(field).collect();
            let domain: Vec<String> = domain
                .iter()
                .map(|value| ((start + value * times.min(&1)) & u64::from(u32::MAX)).to_string())
                .collect();
            text += &format!("cpu{nth} {}\ndomain0 MC 3 {}\n", fields.join(" "), domain.join(" "));
        }
        let path = folder.join(format!("{name}.{ending}"));
        std::fs::write(&path, text).expect("written");
        path.to_str().expect("a path").to_owned()
    };
    [copy("before", [0, 0]), copy("after", [1, 3])]
}

#[test]
fn counters_have_the_rows_of_perf() {
    let folder = scratch("schedstat-perf");
    let old = [
        [10, 9, 0, 39, 0, 0, 0, 0, 0, 0, 9],
        [20, 6, 10, 12, 0, 13, 0, 6, 0, 2, 4],
        [400, 100, 200, 0, 0, 500, 0, 150, 1, 3, 90],
    ];
    let new = [
        [11, 11, 0, 17, 0, 0, 0, 0, 0, 0, 11],
        [16, 8, 4, 10, 0, 10, 0, 5, 0, 0, 8],
        [500, 100, 300, 0, 0, 600, 0, 180, 0, 4, 80],
    ];
    let tails = [[1, 0, 1, 0, 0, 0, 0, 0, 0, 30, 20, 0], [2, 1, 1, 0, 0, 0, 0, 0, 0, 45, 10, 5]];
    let domain = |blocks: [[u64; 11]; 3], tail: [u64; 12]| [&blocks.concat()[..], &tail].concat();
    let cpu = [10, 0, 1000, 400, 500, 50, 4_000_000_000, 100_000_000, 600];
    let [b, a] = copies(&folder, "old", 1000, cpu, &domain(old, tails[0]));
    let cpu = [12, 0, 1100, 300, 700, 140, 5_000_000_000, 50_000_000, 801];
    let [before, after] = copies(&folder, "new", 1250, cpu, &domain(new, tails[1]));
    let asked = ["schedstat", &before, &after, "--base", &b, &a, "--format", "perf"];
    golden("schedstat-perf.txt", &schedviz(&asked).success().text());
    let alone = schedviz(&["schedstat", &before, &after, "--format", "perf"]);
    assert!(alone.code == Some(1) && alone.stderr.contains("add --base BEFORE AFTER"), "{}", alone.stderr);
}

#[test]
fn the_mail_in_the_documents_is_that_of_the_program() {
    let Some(folder) = std::env::var_os("SCHEDVIZ_TRACES") else { return };
    let of = |name: &str| {
        let files = std::path::Path::new(&folder).join(format!("linux-7.2-cpus4/newidle-{name}.*.dat"));
        format!("{name}={}", files.display())
    };
    let text = schedviz(&["compare", "-q", "--group", &of("off"), "--group", &of("on")]).success().text();
    assert!(text.lines().all(|line| line.chars().count() <= 75), "{text}");
    let (finding, _) = text.split_once("\n\n").expect("a finding");
    let changes = &text[text.find("medians: ").expect("the changes")..];
    let (changes, _) = changes.split_once("\n\n").expect("the work outside behind it");
    assert!(finding.starts_with("Finding: ") && finding.lines().count() + changes.lines().count() <= 12, "{text}");
    // The page has lines of the mail as the program writes them, in their order: a line `…` stands for those left out.
    let page = std::fs::read_to_string(root().join("docs/judge-a-patch.md")).expect("the page");
    let (_, rest) = page.split_once("<!-- written by the program -->\n```\n").expect("the mail");
    let (mail, _) = rest.split_once("\n```\n").expect("the end of the mail");
    let (mut printed, mut may_skip, mut seen) = (text.trim_end().lines(), false, 0);
    for line in mail.lines() {
        if line == "…" {
            may_skip = true;
            continue;
        }
        let is_there = if may_skip { printed.any(|other| other == line) } else { printed.next() == Some(line) };
        assert!(is_there, "docs/judge-a-patch.md: {line:?} is not there in:\n{text}");
        (may_skip, seen) = (false, seen + 1);
    }
    assert!(seen > 30 && (may_skip || printed.next().is_none()), "{seen} lines, and the end of the mail:\n{text}");
}
