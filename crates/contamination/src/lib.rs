//! The tasks outside of the application that took its CPUs, and the runs in which they took more than in the others.
//!
//! [`Outsiders`] measures a run: the CPU time of tasks that belong neither to the application nor to the kernel, the waiting of the
//! application behind them, and its preemptions by them, in all and by command. [`contaminated`] judges the runs of a group.
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
