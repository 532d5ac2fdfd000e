//! The load balancer: its attempts, and the cause of every migration.

pub mod balancer;
pub mod causes;
pub(crate) mod past_moves;
