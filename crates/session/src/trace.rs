//! A trace as a command opens it, and the doubts about it.

mod application;
mod classes;
mod elf;
pub mod ext;
pub(crate) mod grouping;
pub mod heading;
mod helpers;
pub mod host;
mod kernel_symbols;
mod lives;
pub(crate) mod session;
pub mod several;
mod stack_groups;
pub(crate) mod stack_kinds;
pub mod stacks;
pub mod timers;
mod vcpu_clock;
mod vcpu_names;
pub mod vcpus;
pub mod warnings;
