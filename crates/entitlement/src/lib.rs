//! The CPU time to which the weights of cgroups entitle their tasks, and the CPU time that they got.
//!
//! In go the events of a trace and the weights of its cgroups, out come both times of each cgroup. At each instant the CPUs are
//! divided among the cgroups that have runnable tasks, level by level of their tree and by their weights. A cgroup cannot use
//! more CPUs than it has runnable tasks; what it leaves goes to the others. Begin reading in `tree.rs` ([`divide`]), then
//! `meter.rs`.
//!
//! ```
//! use entitlement::{Claim, divide};
//!
//! // Two CPUs for a group of weight 100 with four tasks and one of weight 10,000 with a single task, which can use one CPU alone.
//! let claims = [Claim { weight: 100.0, most: 4.0 }, Claim { weight: 10_000.0, most: 1.0 }];
//! assert_eq!(divide(2.0, &claims), [1.0, 1.0]);
//! ```

mod meter;
mod report;
#[cfg(test)]
mod tests;
mod text;
mod tree;

pub use meter::ShareMeter;
pub use report::{EqualTasks, GroupShare, SecondShare, SharesReport};
pub use text::text;
pub use tree::{Claim, WeightTree, divide};
