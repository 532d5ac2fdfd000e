//! Plans of recordings, as arithmetic and tables alone: nothing here touches the kernel.
//!
//! ```
//! use record::buffers::{default_size, format_size, parse_size};
//!
//! assert_eq!(parse_size("64M"), Ok(64 << 10));
//! // The size of each of 8 buffers with 16 GiB of available memory.
//! assert_eq!(format_size(default_size(Some(16 << 20), 8)), "64 MiB");
//! ```

pub mod btf;
pub mod buffers;
pub mod events;
pub mod probes;

pub use buffers::{Calibration, CpuRate};
pub use events::EventPlan;
