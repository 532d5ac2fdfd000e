//! Numbers of reports: lengths and their percentiles, episodes, sums, counters, verdicts on limits.

pub mod counters;
pub mod episodes;
pub mod lengths;
pub mod nouns;
pub mod summed;
pub mod verdict;
