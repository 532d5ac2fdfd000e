//! The violation of work conservation: the one place that derives it.
//!
//! Let I be the CPUs that idle with an empty run queue, and O those that run a task while a task that counts waits. Work
//! conservation is violated while neither set is empty (`docs/questions/workcons.md#violation`). [`Waiters`](crate::Waiters) has
//! three ways of counting the waiting tasks; all three are followed at once.
//!
//! | module | content |
//! |---|---|
//! | `ways` | the ways of counting, as indices |
//! | `packed`, `sums` | the sizes of the sets and the numbers of waiters, several in one word |
//! | `membership` | the set that a CPU belongs to |
//! | `levels` | the groups of CPUs at each level of the topology |
//! | `reach` | the same sets where the CPUs are known that tasks may use |
//! | `sets` | the sets, changed CPU by CPU |
//! | `followed` | the sets, changed by the events that a state has applied |
//! | `watch` | whether there is a violation, at the lowest cost |
//!
//! An analysis that lists or integrates the violation follows [`FollowedSets`]; one that follows each wait by itself
//! changes [`Sets`]; one that needs only the answer at an instant asks a [`Watch`].

mod followed;
mod levels;
mod membership;
mod packed;
mod reach;
mod sets;
mod steps;
mod sums;
mod watch;
mod ways;

pub use followed::FollowedSets;
pub use membership::Membership;
pub use reach::{Pairs, Reach};
pub use sets::{SetChange, Sets};
pub use steps::{ViolationSteps, is_violated_in};
pub use watch::{SelectedWatch, Watch};
pub use ways::ALL;

pub(crate) use sets::Situation;
pub(crate) use ways::WAYS;
