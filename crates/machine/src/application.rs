//! The application that a recording was made of, where that is not a command.

use sched::event::CleanText;
use serde::{Deserialize, Serialize};

/// The application that a recording was made of, where that is not a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RecordedApplication {
    /// There is none: the whole machine was recorded for some time.
    Machine,
    /// The processes with these numbers.
    Processes(Vec<i32>),
    /// The tasks of the cgroup with this path, such as `/system.slice`, and of those below it.
    Cgroup(CleanText),
}
