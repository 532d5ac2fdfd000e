//! A trace as a command opens it, and the doubts about it.

pub(crate) mod grouping;
pub mod heading;
pub mod progress;
pub(crate) mod session;
pub mod several;
pub mod warnings;
