//! Tables by task, CPU or PID, with bounds on their size, and the topology of the machine.

pub(crate) mod ascending;
pub(crate) mod capacities;
pub(crate) mod chosen_cpus;
pub(crate) mod cpu_set;
pub(crate) mod history;
pub mod limits;
pub mod packed;
pub mod per_task;
pub mod seeded;
pub mod serial;
pub mod topology;
