//! The questions about a trace that need more than tiles, and their answers as JSON. Nothing here depends on how a
//! question arrives: its parameters are values.

mod commands;
pub(crate) mod critical_path;
pub(crate) mod drawing;
pub(crate) mod filter;
mod main_findings;
mod missed;
pub(crate) mod plots;
pub(crate) mod questions;
pub(crate) mod row_facts;
pub(crate) mod story;
mod task_detail;
mod task_groups;
pub(crate) mod task_stacks;
pub(crate) mod wait_detail;
mod window_detail;

pub use commands::{Commands, Finding};
pub use critical_path::{FoundPath, PathFinding};
pub use drawing::{Drawing, Format};
pub use main_findings::{MainFinding, MainFindings, MainPlace};
pub use missed::{MissedAt, MissedSteal, MissedSteals};
pub use plots::Plotted;
pub use questions::ListKind;
pub use story::{EpisodeStory, Follow};
pub use task_groups::{PageGroup, PageGroups, TaskGroupings};
