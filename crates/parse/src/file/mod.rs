//! The file: its bytes, the header of either version, and compressed chunks.

pub(crate) mod chunk;
pub(crate) mod guest;
pub(crate) mod header;
pub(crate) mod page_layout;
pub(crate) mod source;
pub(crate) mod time_shift;
