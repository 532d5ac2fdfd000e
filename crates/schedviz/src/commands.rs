//! The commands that answer no question about a trace.

pub(crate) mod cut;
pub(crate) mod info;
pub(crate) mod machine;
