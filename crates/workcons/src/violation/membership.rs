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
    /// The CPU idles, and a task that counts waits in the queues of a sched_ext scheduler, on this CPU by its last event (I and O).
    Both,
}

impl Membership {
    /// The sets of a CPU.
    #[inline]
    pub(super) fn of(idle: bool, overloaded: bool) -> Membership {
        match (idle, overloaded) {
            (true, true) => Membership::Both,
            (true, false) => Membership::Idle,
            (false, true) => Membership::Overloaded,
            (false, false) => Membership::Neither,
        }
    }

    /// Whether the CPU belongs to every set of `other`; each belongs to those of [`Membership::Neither`].
    #[inline]
    pub fn includes(self, other: Membership) -> bool {
        self == other || self == Membership::Both || other == Membership::Neither
    }
}
