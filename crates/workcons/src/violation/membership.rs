//! The set that a CPU belongs to.

/// The set of work conservation that a CPU belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Membership {
    /// The CPU is in neither set.
    #[default]
    Neither,
    /// The CPU idles with an empty run queue (I).
    Idle,
    /// The CPU runs a task while a task that counts waits (O).
    Overloaded,
}

impl Membership {
    /// The set of a CPU that is idle or overloaded; no CPU is both.
    #[inline]
    pub(super) fn of(idle: bool, overloaded: bool) -> Membership {
        match (idle, overloaded) {
            (true, _) => Membership::Idle,
            (false, true) => Membership::Overloaded,
            (false, false) => Membership::Neither,
        }
    }
}
