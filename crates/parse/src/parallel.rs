//! A pool of threads, and the map that runs on it.

use rayon::prelude::*;
use std::sync::Arc;

/// A pool of threads, or none.
pub(crate) type Pool = Option<Arc<rayon::ThreadPool>>;

/// Maps in parallel where there is a pool; the results are in order either way.
pub(crate) fn parallel<I: Send, O: Send>(pool: &Pool, items: Vec<I>, work: impl Fn(I) -> O + Sync) -> Vec<O> {
    match pool {
        Some(pool) if items.len() > 1 => pool.install(|| items.into_par_iter().map(&work).collect()),
        _ => items.into_iter().map(work).collect(),
    }
}
