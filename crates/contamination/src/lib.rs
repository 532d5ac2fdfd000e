//! The tasks outside of the application that took its CPUs, and the runs in which they took more than in the others.
//!
//! In goes a trace, out come the CPU time of such tasks, the waiting of the application behind them, and its preemptions by them
//! ([`Outsiders`]). [`contaminated`] judges the runs of a group. Begin reading in `outsiders.rs`.
//!
//! ```
//! use contamination::factor;
//!
//! // The more runs there are, the less far beyond the others a run must lie.
//! assert!(factor(10) < factor(5) && factor(5) < factor(4));
//! ```

mod judge;
mod outsiders;
#[cfg(test)]
mod tests;

pub use judge::{Contaminated, FEWEST_RUNS, contaminated, factor};
pub use outsiders::{Culprit, OutsideWork, Outsiders};
