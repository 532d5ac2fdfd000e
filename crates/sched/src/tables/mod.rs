//! Tables by task, CPU or PID, with bounds on their size, and the topology of the machine.

pub(crate) mod ascending;
pub(crate) mod chosen_cpus;
pub(crate) mod cpu_set;
pub(crate) mod history;
pub mod limits;
pub mod per_task;
pub mod seeded;
pub mod serial;
pub mod topology;
