//! The rows of tables of tasks.

use crate::Session;
use anyhow::Result;
use membership::{TaskGroups, TasksBy};
use std::sync::Arc;

/// The rows of tables
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct RowsArgs {
    /// Rows of the tables: one for each of these [default: each command name]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub by: Option<TasksBy>,
}

impl RowsArgs {
    /// Learns the groups that the rows are about; nothing where these are tasks, or names as no option asks for others.
    pub fn groups(self, session: &Session) -> Result<Option<Arc<TaskGroups>>> {
        let by = self.by.filter(|by| *by != TasksBy::Task);
        by.map(|by| session.task_groups(by)).transpose()
    }
}
