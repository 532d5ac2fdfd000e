//! The contract between the program and the crates that each answer one question about a trace.
//!
//! In go arguments and an opened trace, out comes a report in the form that was asked for. A crate that answers a question has a
//! type for it, which implements [`Question`], or [`TaskQuestion`] where one analysis of selected tasks answers. The program's
//! one list of such types, made by [`Entry::question`], gives the commands, their help, the sections of `report`, and the JSON
//! schemas. Begin reading in `task_question.rs`.
//!
//! ```
//! use question::Spread;
//!
//! let spread = Spread::of(&[3.0, 1.0, 2.0]);
//! assert_eq!((spread.median, spread.min, spread.max), (2.0, 1.0, 3.0));
//! ```

mod command;
mod metric;
mod task_question;

pub use command::{Answers, Entry, Invocation, Question, Subcommand};
#[cfg(feature = "schema")]
pub use command::{NamedSchema, schema};
pub use metric::{Better, Metric, MetricOf, Spread, median};
pub use task_question::{SharedArgs, TaskQuestion};
