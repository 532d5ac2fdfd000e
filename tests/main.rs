//! The whole program against real recordings, other programs, and itself.

mod cases;
mod differential;
mod laws;
mod support;
