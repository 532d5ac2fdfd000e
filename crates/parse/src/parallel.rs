//! A pool of threads, and the map that runs on it.

use rayon::prelude::*;
use std::sync::Arc;

/// A pool of threads, or none.
pub(crate) type Pool = Option<Arc<rayon::ThreadPool>>;

/// Maps in parallel where there is a pool; the results are in order either way.
pub(crate) fn parallel<I: Send, O: Send>(pool: &Pool, items: Vec<I>, work: impl Fn(I) -> O + Sync) -> Vec<O> {
    parallel_by(pool, usize::MAX, items, work)
}

/// Maps as [`parallel`] does, by at most `most` threads: where the results are taken one by one, further ones would only look for work.
pub(crate) fn parallel_by<I: Send, O: Send>(
    pool: &Pool,
    most: usize,
    items: Vec<I>,
    work: impl Fn(I) -> O + Sync,
) -> Vec<O> {
    match pool {
        Some(pool) if items.len() > 1 => {
            let share = items.len().div_ceil(most.max(1));
            pool.install(|| items.into_par_iter().with_min_len(share).map(&work).collect())
        }
        _ => items.into_iter().map(work).collect(),
    }
}

/// A pool of this number of threads, or of one for each CPU if that is 0; none for a single thread.
pub(crate) fn pool(threads: usize) -> Pool {
    let threads = if threads > 0 { threads } else { std::thread::available_parallelism().map_or(1, usize::from) };
    if threads <= 1 {
        return None;
    }
    rayon::ThreadPoolBuilder::new().num_threads(threads.min(256)).build().ok().map(Arc::new)
}
