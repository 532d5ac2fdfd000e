//! The groups that a task belongs to: its cgroup, its process, its policy, and the tasks with almost the same name.
//!
//! In go the records of a whole trace and the machine file, before a pass; out comes the group of a task at any instant
//! ([`Cgroups`], [`Processes`], [`TaskGroups`] by the rule of [`TasksBy`]). What neither shows is unknown, and absent here.
//! [`stem`] is the rule for names, [`ChosenTasks`] a selection of tasks. Begin reading in `groups.rs`, then `cgroups.rs`.
//!
//! ```
//! use membership::stem;
//! use sched::Comm;
//!
//! assert_eq!(stem(Comm::new(b"opt 61vtzgccpd9")), "opt …");
//! assert_eq!(stem(Comm::new(b"rayon-worker-12")), "rayon-worker-N");
//! ```

mod attributes;
mod by_task;
mod cgroups;
mod chosen;
mod followed;
mod group;
mod groups;
mod names;
mod note;
mod params;
mod past_groups;
mod policy;
mod processes;
mod rows;
mod stacks;
mod unsettled;

pub use attributes::{DeadlineParams, UtilClamp};
pub use cgroups::{CgroupChange, CgroupIndex, Cgroups};
pub use chosen::{ChosenGroups, ChosenTasks};
pub use followed::FollowedCgroups;
pub use group::{GroupLabel, GroupedTask, RowNames, TaskGroup, TaskRow, TasksBy};
pub use groups::{TaskGroups, join_random};
pub use names::{stem, stemmed};
pub use note::note;
pub use params::{ParamsHistory, TaskParams};
pub use policy::SchedPolicy;
pub use processes::Processes;
pub use rows::{RowKey, RowsBy};
pub use stacks::{GroupStack, StackHistory, StackIndex};
