//! The task that every CPU ran at every moment: the question of `schedviz dat2graph`.
//!
//! The crate `lanes` reads and draws the lanes, which are the ground of other figures as well; this one adds markers, frequencies,
//! the critical path, wakeups, and the table of stretches.
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

pub use args::Dat2graphArgs;
pub use frequencies::in_force;
pub use question::Dat2graphQuestion;
