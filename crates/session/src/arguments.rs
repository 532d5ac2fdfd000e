//! The words of a command line that several commands take.

pub(crate) mod application_args;
pub mod args;
pub mod command_line;
pub mod groups;
pub(crate) mod host_args;
pub mod page_args;
pub mod patterns;
pub mod rows;
pub mod runs;
pub(crate) mod symbol_args;
pub(crate) mod task_args;
