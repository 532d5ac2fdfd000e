//! The ways of counting waiters, as indices of tables.

/// The number of ways.
pub(crate) const WAYS: usize = 3;

/// The way that counts every waiter, also those that no idle CPU could run.
pub(crate) const ALL: usize = 0;
