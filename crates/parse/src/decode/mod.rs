//! From the bytes of a record to its meaning: the formats of events, the states of tasks, and clocks.

pub(crate) mod clock;
pub(crate) mod cpu_offline;
pub(crate) mod format;
pub(crate) mod plan;
pub(crate) mod prev_state;
pub(crate) mod rt_lock_sleep;
