//! Verdicts as the program reports them: a line each, and the exit status.

use crate::messages::emit;
use sched::{Judgement, Verdict};
use std::process::ExitCode;

/// Prints verdicts, each with its subject, and returns the exit status of the worst: 0 for a pass, also if nothing was
/// judged, 2 for a failure, 3 for an untrusted figure.
pub fn report<'v>(verdicts: impl IntoIterator<Item = (&'v str, &'v Verdict)>) -> ExitCode {
    let mut worst = Judgement::Pass;
    for (subject, verdict) in verdicts {
        let word = match verdict.verdict {
            Judgement::Pass => "pass",
            Judgement::Fail => "FAIL",
            Judgement::Untrusted => "untrusted",
        };
        emit(&format!("{word}: {subject}: {}", verdict.reason));
        worst = worst.max(verdict.verdict);
    }
    ExitCode::from(match worst {
        Judgement::Pass => 0,
        Judgement::Fail => 2,
        Judgement::Untrusted => 3,
    })
}
