//! Verdicts in the forms of test harnesses, read by checkers of these forms; and the summary of a CI job.

use crate::support::{fixture, schedviz, scratch};

/// A result of a test in KTAP.
#[derive(Debug, PartialEq)]
struct KtapTest {
    is_ok: bool,
    name: String,
    is_skipped: bool,
    reason: String,
}

/// Reads KTAP by the grammar of the kernel's documentation: a version line, a plan, and for each test
/// `ok|not ok NUMBER NAME [# [DIRECTIVE] [DATA]]` with numbers from 1; anything else is an error.
fn ktap(text: &str) -> Vec<KtapTest> {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("KTAP version 1"));
    let plan = lines.next().and_then(|line| line.strip_prefix("1..")).expect("a plan");
    let planned: usize = plan.parse().expect("the number of tests");
    let test = |(nth, line): (usize, &str)| {
        let (is_ok, rest) = match (line.strip_prefix("ok "), line.strip_prefix("not ok ")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => panic!("no result: {line}"),
        };
        let (number, rest) = rest.split_once(' ').expect("a number and a name");
        assert_eq!(number, nth.to_string());
        let (name, data) = rest.split_once(" # ").unwrap_or((rest, ""));
        assert!(!name.contains('#'), "{name}");
        let skipped = data.strip_prefix("SKIP ");
        let reason = skipped.unwrap_or(data).to_owned();
        KtapTest { is_ok, name: name.to_owned(), is_skipped: skipped.is_some(), reason }
    };
    let tests: Vec<KtapTest> = (1..).zip(lines).map(test).collect();
    assert_eq!(tests.len(), planned);
    tests
}

/// Checks that a text is well-formed XML, as far as the program uses XML; returns each element's name with its attributes.
fn xml(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let text = text.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").expect("a declaration");
    let (mut open, mut found) = (Vec::new(), Vec::new());
    for part in text.split('<').skip(1) {
        let (tag, content) = part.split_once('>').expect("an end of the tag");
        for entity in content.split('&').skip(1).chain(tag.split('&').skip(1)) {
            assert!(["amp;", "lt;", "gt;", "quot;"].iter().any(|name| entity.starts_with(name)), "{entity}");
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "{text}");
            continue;
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut attributes = Vec::new();
        while !rest.is_empty() {
            let (key, more) = rest.split_once("=\"").expect("an attribute");
            let (value, more) = more.split_once('"').expect("the end of its value");
            attributes.push((key.trim().to_owned(), value.to_owned()));
            rest = more.trim_start();
        }
        found.push((name.to_owned(), attributes));
        if !is_empty {
            open.push(name.to_owned());
        }
    }
    assert_eq!(open, Vec::<String>::new());
    found
}

#[test]
fn harnesses_can_read_the_verdicts() {
    let of = |name: &str| fixture(name).to_str().expect("a path").to_owned();
    // The second has no sched_wakeup_new: its violation cannot be trusted.
    let (whole, lacking) = (of("hackbench.dat"), of("instance.dat"));
    let judge = |limit: &str, format: &str| {
        let words = ["workcons", "-q", &whole, &lacking, "--max-violation", limit, "--format", format];
        let ran = schedviz(&words);
        (ran.code, ran.text())
    };
    let (code, text) = judge("1", "ktap");
    let tests = ktap(&text);
    assert_eq!((code, tests.len()), (Some(2), 2), "{text}");
    assert_eq!((tests[0].is_ok, tests[0].name.as_str()), (false, "workcons: hackbench.dat"), "{text}");
    assert!(tests[0].reason.contains("more than 1 %"), "{text}");
    assert!(tests[1].is_ok && tests[1].is_skipped && tests[1].reason.contains("sched_wakeup_new"), "{text}");
    let (code, text) = judge("99", "ktap");
    assert!(code == Some(3) && ktap(&text)[0].is_ok && !ktap(&text)[0].is_skipped, "{text}");
    let (_, text) = judge("1", "junit");
    let elements = xml(&text);
    let names: Vec<&str> = elements.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["testsuites", "testsuite", "testcase", "failure", "testcase", "skipped"], "{text}");
    for (key, value) in [("tests", "2"), ("failures", "1"), ("skipped", "1"), ("errors", "0")] {
        assert!(elements[1].1.contains(&(key.to_owned(), value.to_owned())), "{text}");
    }
    let ran =
        schedviz(&["compare", "-q", "--base", &whole, "--new", &whole, "--fail-if", "elapsed>5%", "--format", "ktap"]);
    let (code, text) = (ran.code, ran.text());
    let tests = ktap(&text);
    assert!(code == Some(3) && tests[0].is_skipped && tests[0].name == "compare: elapsed", "{text}");
    assert!(tests[0].reason.contains("too few"), "{text}");
}

#[test]
fn a_summary_is_appended() {
    let folder = scratch("summary");
    let file = folder.join("summary.md");
    std::fs::write(&file, "before\n").expect("written");
    let file = file.to_str().expect("a path");
    let of = |name: &str| fixture(name).to_str().expect("a path").to_owned();
    let (a, b) = (of("hackbench.dat"), of("hackbench-7.2.dat"));
    let judged = ["compare", "-q", "--base", &a, "--new", &b, "--fail-if", "elapsed>5%", "--summary", file];
    assert_eq!(schedviz(&judged).code, Some(3));
    let judged = ["workcons", "-q", &a, "--max-violation", "1", "--summary", file];
    assert_eq!(schedviz(&judged).code, Some(2));
    let text = std::fs::read_to_string(file).expect("the summary");
    let places: Vec<usize> = [
        "before\n",
        "### schedviz compare\n",
        "**too few runs to judge whether new differs from base",
        "| elapsed, s | 1.149 | 1.558 | +35.6% |",
        "* **untrusted**: elapsed: ",
        "### schedviz workcons\n\nFindings of `hackbench.dat`:\n\n```text\n",
        "\n1. ",
        "* **FAIL**: hackbench.dat: violated ",
    ]
    .iter()
    .map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}")))
    .collect();
    assert!(places.is_sorted(), "{text}");
    // The findings of the failing run are in the summary of a comparison.
    let group = |name: &str, runs: [&str; 3]| format!("{name}={}", runs.map(&of).join(","));
    let base = group("base", ["online.dat", "armhf-6.1.dat", "every-7.2.dat"]);
    let new = group("new", ["affine.dat", "isolated.dat", "cgroup-cpuset.dat"]);
    let limit = ["--alpha", "0.2", "--fail-if", "violation>5%", "--summary", file];
    let judged = schedviz(&[&["compare", "-q", "--group", &base, "--group", &new], &limit[..]].concat());
    assert_eq!(judged.code, Some(2), "{}", judged.stderr);
    let failed = std::fs::read_to_string(file).expect("the summary");
    let (_, failed) = failed.split_once("The worst run of new by ").expect("the worst run");
    assert!(failed.contains("affine.dat`") && failed.contains("1. Tasks seem bound by affinity"), "{failed}");
    assert!(!text.contains("The worst run"), "{text}");
    let refused = schedviz(&["workcons", "-q", &a, "--summary", &a]);
    assert!(refused.code == Some(1) && refused.stderr.contains("is an input"), "{}", refused.stderr);
}
