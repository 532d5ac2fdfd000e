//! The rows of tables of tasks.

use membership::TasksBy;

/// The rows of tables
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct RowsArgs {
    /// Rows of the tables: one for each of these [default: each command name]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub by: Option<TasksBy>,
}
