//! Verdicts for regression jobs: whether a limit is exceeded, and whether that can be judged at all.

use serde::Serialize;

/// The outcome of a comparison with a limit, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// The figure is within the limit.
    Pass,
    /// The recordings or their number do not allow a judgement.
    Untrusted,
    /// The figure exceeds the limit with certainty.
    Fail,
}

/// The outcome of a comparison with a limit, and the reason for it.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The outcome of the comparison.
    pub verdict: Judgement,
    /// The reason for the outcome, in one line.
    pub reason: String,
}

impl Verdict {
    /// Makes a verdict with this reason.
    pub fn new(verdict: Judgement, reason: impl Into<String>) -> Verdict {
        Verdict { verdict, reason: reason.into() }
    }
}
