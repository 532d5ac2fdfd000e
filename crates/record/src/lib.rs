//! Plans of recordings, as arithmetic and tables alone: nothing here touches the kernel.

pub mod buffers;
pub mod events;

pub use buffers::{Calibration, CpuRate};
pub use events::Plan;
