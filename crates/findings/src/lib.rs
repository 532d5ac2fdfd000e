//! The main findings about a trace: at most eight sentences, the costliest first (`docs/questions/findings.md`).
//!
//! In go the reports of `workcons`, `why`, `path`, `latency`, `utilization`, `fairness`, `jobs` and `neighbours` from one pass,
//! out come sentences. No number is derived anew: reports are compared with thresholds, and what exceeds one is ranked by its
//! cost, the time on the critical path where the trace shows it, else CPU time lost. Begin reading in `observe.rs`, then
//! `report.rs`.
//!
//! ```
//! use findings::{Analyses, Doubts, Observation, findings};
//! use sched::{Pass, Ts};
//!
//! // A task waits on CPU 0 for 200 ns while CPU 1 idles.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Analyses::of_all(Ts(100), Ts(600), 2);
//! let outcome = Pass::over(events.as_slice()).run(|| options.analyses()).unwrap_or_else(|never| match never {});
//! let report = findings(&options.measurements(outcome.output), &Doubts::default());
//! let [first] = report.findings.as_slice() else { panic!("one finding: {report:?}") };
//! assert!(matches!(first.observation, Observation::Violation { .. }));
//! assert_eq!(first.cost_ns, Some(200));
//! ```

mod args;
mod asked;
mod consisted;
mod context;
mod judged;
mod late;
mod limits;
mod measure;
mod observation;
mod observe;
mod parts;
mod path_time;
mod place;
mod question;
mod report;
mod sentence;
mod sleeps;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_asked;

pub use args::FindingsArgs;
pub use consisted::{ApplicationTimes, PathConsisted, PathTail};
pub use context::Doubts;
pub use measure::{Analyses, Measurements};
pub use observation::{Certainty, CostUnit, HeldBackWait, Observation};
pub use parts::{CgroupShare, LateCommand, LatestJob, LimitedCgroup};
pub use place::{FindingPlace, PlaceKind};
pub use question::{FindingsQuestion, measured, summary};
pub use report::{FindingsReport, PathEnd, RankedFinding, findings, text};
