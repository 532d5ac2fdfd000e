//! The ring buffer of a CPU: its pages, and units of pages.

pub(crate) mod page;
pub(crate) mod records;
pub(crate) mod unit;
