//! The ways of counting waiting tasks, as indices of tables: those of [`Waiters`](crate::Waiters).

/// The number of ways of counting.
pub(crate) const WAYS: usize = 3;

/// The way that counts every waiting task, also those that no idle CPU could run.
pub const ALL: usize = 0;
