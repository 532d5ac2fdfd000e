//! The work of a trace as a program that does it again (`docs/questions/reproduce.md`).
//!
//! In goes the model of a trace ([`whatif::ModelBuilder`]), out comes a [`Reproduction`]: the bursts, sleeps and wakeups of each task as actions. The
//! command writes it as a C program or as a file for rt-app. Begin reading in `load.rs`; `program.c` executes the actions.
//!
//! ```
//! use reproduce::Reproduction;
//! use sched::Pass;
//! use whatif::{BuildOptions, ModelBuilder};
//!
//! // `make` runs for 300 ns, and wakes `cc` after 100 of them, which then waits and runs for 200 ns; `sort` runs for 50 ns.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let build = BuildOptions::default();
//! let model = Pass::over(events.as_slice()).run(|| ModelBuilder::new(&build)).unwrap_or_else(|never| match never {}).output;
//! let load = Reproduction::of(&model, &|_| true);
//! let counts = load.counts();
//! assert_eq!((counts.bursts, counts.compute_ns, counts.wakeups), (4, 550, 1));
//! ```

mod c_program;
mod command;
mod follow;
mod load;
mod lost;
mod rt_app;
mod scheduling;
#[cfg(test)]
mod tests;
mod written;

pub use command::{ReproduceArgs, ReproduceCommand};
pub use load::{LoadAction, LoadCounts, LoadIndex, LoadStart, LoadTask, Reproduction};
pub use lost::Lost;
