//! The recorder: recordings of a command with the events that the analyses need, and the scheduler of this machine as it runs.
//!
//! In go a command and what is to be known of it, out come a trace.dat and a machine file. [`plan`] chooses events, buffers and
//! probes by arithmetic and tables alone; the commands `record` and `top` ask the kernel by [`tracefs`] and exist on Linux alone.
//! Begin reading in `plan/events.rs`, then `command/running.rs`.
//!
//! ```
//! use record::plan::buffers::{default_size, format_size, parse_size};
//!
//! assert_eq!(parse_size("64M"), Ok(64 << 10));
//! // The size of each of 8 buffers with 16 GiB of available memory.
//! assert_eq!(format_size(default_size(Some(16 << 20), 8)), "64 MiB");
//! ```

#[cfg(target_os = "linux")]
mod command;
#[cfg(all(test, target_os = "linux"))]
#[path = "../../../tests/conforms.rs"]
mod conforms;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod live;
pub mod plan;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod top;
#[cfg(target_os = "linux")]
mod traced;

#[cfg(target_os = "linux")]
pub use command::{RecordArgs, RecordCommand, RunWhenContinued};
#[cfg(target_os = "linux")]
pub use live::moment;
#[cfg(target_os = "linux")]
pub use top::{TopArgs, TopCommand};
