//! Verdicts as the program reports them: a line each, and the exit status; and in the forms of test harnesses.

use crate::formats::Format;
use crate::messages::emit;
use anyhow::{Result, bail};
use sched::{Judgement, Verdict};
use std::fmt::Write;
use std::process::ExitCode;

/// Prints verdicts, each with its subject, and returns the exit status of the worst: 0 for a pass, also if nothing was
/// judged, 2 for a failure, 3 for an untrusted figure.
pub fn report<'v>(verdicts: impl IntoIterator<Item = (&'v str, &'v Verdict)>) -> ExitCode {
    let mut worst = Judgement::Pass;
    for (subject, verdict) in verdicts {
        emit(&format!("{}: {subject}: {}", word(verdict.verdict), verdict.reason));
        worst = worst.max(verdict.verdict);
    }
    ExitCode::from(match worst {
        Judgement::Pass => 0,
        Judgement::Fail => 2,
        Judgement::Untrusted => 3,
    })
}

/// The word for an outcome.
pub(crate) fn word(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Pass => "pass",
        Judgement::Fail => "FAIL",
        Judgement::Untrusted => "untrusted",
    }
}

/// Refuses a format of verdicts where there is no limit to judge by; `option` sets one.
pub fn check(format: Option<Format>, has_limit: bool, option: &str) -> Result<()> {
    match format.filter(|format| format.is_of_verdicts() && !has_limit) {
        Some(format) => bail!("--format {} reports verdicts, and none was asked for; add {option}", format.word()),
        None => Ok(()),
    }
}

/// Returns verdicts in a form of test harnesses; nothing for any other format. `suite` names the tests together, such as
/// `workcons`.
pub fn in_format(format: Format, suite: &str, verdicts: &[(&str, &Verdict)]) -> Option<String> {
    match format {
        Format::Ktap => Some(ktap(suite, verdicts)),
        Format::Junit => Some(junit(suite, verdicts)),
        _ => None,
    }
}

/// Verdicts as KTAP, version 1: a test each, an untrusted one as skipped, with its reason.
fn ktap(suite: &str, verdicts: &[(&str, &Verdict)]) -> String {
    let mut out = format!("KTAP version 1\n1..{}\n", verdicts.len());
    for (nth, (subject, verdict)) in (1..).zip(verdicts) {
        let (result, directive) = match verdict.verdict {
            Judgement::Pass => ("ok", ""),
            Judgement::Fail => ("not ok", ""),
            Judgement::Untrusted => ("ok", "SKIP "),
        };
        // A number sign begins what follows the name, and a line is a test.
        let name = one_line(subject).replace('#', "_");
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{result} {nth} {suite}: {name} # {directive}{}", one_line(&verdict.reason));
    }
    out
}

/// Verdicts as JUnit's XML: a test case each, an untrusted one as skipped, with its reason.
fn junit(suite: &str, verdicts: &[(&str, &Verdict)]) -> String {
    let count = |judgement| verdicts.iter().filter(|(_, verdict)| verdict.verdict == judgement).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
        verdicts.len(),
        count(Judgement::Fail),
        count(Judgement::Untrusted)
    );
    let suite = xml(suite);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"schedviz {suite}\" {counts}>\n"
    );
    for (subject, verdict) in verdicts {
        let (subject, reason) = (xml(subject), xml(&verdict.reason));
        let inner = match verdict.verdict {
            Judgement::Pass => format!("<system-out>{reason}</system-out>"),
            Judgement::Fail => format!("<failure message=\"{reason}\"/>"),
            Judgement::Untrusted => format!("<skipped message=\"{reason}\"/>"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "    <testcase classname=\"schedviz.{suite}\" name=\"{subject}\">\n      {inner}\n    </testcase>"
        );
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

/// A text in one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text as it stands in XML, without the characters that XML cannot have.
fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c < ' ' || matches!(c, '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_is_a_test() {
        let verdicts = [
            Verdict::new(Judgement::Pass, "+0.3 %, within 5 %"),
            Verdict::new(Judgement::Fail, "+8.1 % exceeds 5 %, p 0.008"),
            Verdict::new(Judgement::Untrusted, "3 and\n3 runs are <too> few"),
        ];
        let named: Vec<(&str, &Verdict)> = ["elapsed", "a#b", "\"x\" & y"].into_iter().zip(&verdicts).collect();
        assert_eq!(
            in_format(Format::Ktap, "compare", &named).unwrap(),
            "KTAP version 1\n1..3\nok 1 compare: elapsed # +0.3 %, within 5 %\n\
             not ok 2 compare: a_b # +8.1 % exceeds 5 %, p 0.008\n\
             ok 3 compare: \"x\" & y # SKIP 3 and 3 runs are <too> few\n"
        );
        let junit = in_format(Format::Junit, "compare", &named).unwrap();
        assert!(junit.contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{junit}");
        assert!(junit.contains("name=\"&quot;x&quot; &amp; y\""), "{junit}");
        assert!(junit.contains("<skipped message=\"3 and 3 runs are &lt;too&gt; few\"/>"), "{junit}");
        assert_eq!(in_format(Format::Pdf, "compare", &named), None);
    }

    #[test]
    fn a_form_of_verdicts_needs_a_limit() {
        let why = check(Some(Format::Ktap), false, "--max-violation PERCENT").unwrap_err().to_string();
        assert_eq!(why, "--format ktap reports verdicts, and none was asked for; add --max-violation PERCENT");
        assert!(check(Some(Format::Ktap), true, "").is_ok() && check(Some(Format::Tip), false, "").is_ok());
    }
}
