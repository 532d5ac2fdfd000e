//! Plans of recordings, as arithmetic and tables alone: nothing here touches the kernel.

pub mod btf;
pub mod buffers;
pub mod events;
pub mod probes;
