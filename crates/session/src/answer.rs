//! The answer to a question: the document of `--json`, the section of a report, and the exit status of a verdict.

pub mod document;
pub mod over_lanes;
pub mod section;
pub mod summary;
pub mod verdict;
