//! The page and its tiles as a folder, for any server of static files.

mod apart;
mod folder;
mod pack;
mod task_numbers;
mod task_rows;

pub use folder::Exported;
