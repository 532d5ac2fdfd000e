//! The files and streams that a command writes: there whole or not at all, never over an input, never through a stranger's link.

pub mod atomic_file;
pub mod csv;
pub mod formats;
pub mod inputs;
mod links;
pub mod pager;
pub mod writer;
