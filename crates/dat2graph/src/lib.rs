//! The task that every CPU ran at every moment: the question of `schedviz dat2graph`.
//!
//! In goes a trace, out comes a figure with a lane for each CPU. The crate `lanes` reads and draws the lanes; this one adds
//! markers, frequencies, the critical path, wakeups, the vCPUs of a guest, and the table of stretches. Begin reading in `question.rs`, then
//! `overlay.rs`.
//!
//! ```
//! use dat2graph::Dat2graphQuestion;
//! use question::Subcommand;
//!
//! assert_eq!(Dat2graphQuestion::NAME, "dat2graph");
//! ```

mod args;
mod frequencies;
mod joined;
mod overlay;
mod question;
mod stretches;
mod vcpus;

pub use args::Dat2graphArgs;
pub use frequencies::in_force;
pub use question::Dat2graphQuestion;
