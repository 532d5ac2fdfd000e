//! The questions about a trace that need more than tiles, and their answers as JSON. Nothing here depends on how a
//! question arrives: its parameters are values.

mod commands;
pub(crate) mod critical_path;
pub(crate) mod drawing;
pub(crate) mod event_choice;
pub(crate) mod event_list;
pub(crate) mod filter;
mod main_findings;
mod missed;
pub(crate) mod plots;
pub(crate) mod questions;
pub(crate) mod row_facts;
pub(crate) mod run_measures;
pub(crate) mod selection_table;
pub(crate) mod story;
mod task_detail;
mod task_groups;
pub(crate) mod task_stacks;
pub(crate) mod wait_detail;
pub(crate) mod wakeups;
mod window_detail;

pub use commands::{Commands, Finding};
pub use critical_path::{FoundPath, PathFinding, PathOf};
pub use drawing::{Drawing, Format};
pub use main_findings::{MainFinding, MainFindings, MainMore, MainPlace};
pub use missed::{MissedAt, MissedSteal, MissedSteals, ViolationList};
pub use plots::Plotted;
pub use questions::ListKind;
pub use run_measures::{RunMeasure, RunMeasures};
pub use selection_table::{AskedPart, FoundTable, TableBy, TableCommand, TableNumbers, TableRow};
pub use story::{EpisodeStory, Follow};
pub use task_groups::{PageGroup, PageGroups, TaskGroupings};
