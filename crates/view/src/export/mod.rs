//! The page and its tiles as a folder, for any server of static files.

mod apart;
mod folder;
mod pack;

pub use folder::Exported;
