//! Several traces, measured at the same time.

use crate::args::ReadArgs;
use crate::progress;
use anyhow::Result;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of traces that are read at the same time. Each needs some 25 MB, so that this bounds the memory on
/// a machine with hundreds of CPUs. The other threads read each of them.
const MOST_AT_ONCE: usize = 6;

/// The maximum size of the state of a trace that is read beside others, in bytes: that of some 10,000 living tasks. One with more is read by
/// itself once the others are done.
const MOST_STATE: usize = 2 << 20;

/// How the threads are divided: the number of traces that are read at the same time, and the threads of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Division {
    traces: usize,
    threads: usize,
}

impl Division {
    /// Divides `threads` among `traces`, as many traces at the same time as possible: a trace on one thread needs the
    /// least work in total.
    fn of(threads: usize, traces: usize) -> Division {
        let at_once = threads.min(traces).clamp(1, MOST_AT_ONCE);
        Division { traces: at_once, threads: (threads / at_once).max(1) }
    }
}

/// Measures each of `items`, several at the same time. Results and messages are in the order of the items, whatever the
/// number of threads. The first error in that order is returned; items behind it are not begun once it is found.
pub fn measured<T: Sync, R: Send>(
    items: &[T],
    read: &ReadArgs,
    measure: impl Fn(&T, &ReadArgs) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let Division { traces, threads } = Division::of(read.threads(), items.len());
    if traces == 1 {
        return items.iter().map(|item| measure(item, read)).collect();
    }
    let (measure_one, all_threads) = (&measure, read.threads());
    let first_error = AtomicUsize::new(usize::MAX);
    let measure = |(at, item): (usize, &T)| {
        if first_error.load(Ordering::Relaxed) < at {
            return None;
        }
        let measure = measure_one;
        let read = read.held(threads, Some(MOST_STATE));
        let result = measure(item, &read);
        if result.as_ref().is_err_and(|error| !is_too_large(error)) {
            first_error.fetch_min(at, Ordering::Relaxed);
        }
        Some((result, read))
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(traces).build()?;
    let done = AtomicUsize::new(0);
    let results: Vec<_> = progress::watched_runs(&done, items.len(), read.quiet, || {
        let count = |result| {
            done.fetch_add(1, Ordering::Relaxed);
            result
        };
        // One item at a time: recordings differ in size, and neighbours are often alike.
        pool.install(|| items.par_iter().enumerate().with_max_len(1).map(measure).map(count).collect())
    });
    let in_order =
        items.iter().zip(results).filter_map(|(item, result)| Some((item, result?))).map(|(item, result)| {
            let (result, held) = match result {
                (Err(error), _) if is_too_large(&error) => {
                    let alone = read.held(all_threads, None);
                    (measure_one(item, &alone), alone)
                }
                done => done,
            };
            held.messages.release();
            result
        });
    in_order.collect()
}

/// The maximum size of the state of a trace that many threads measure for many questions, in bytes: some 20,000 living tasks.
pub const MOST_STATE_OF_THREADS: usize = 4 << 20;

/// Measures a trace for many questions. Where tens of thousands of tasks live, whose tables each thread would hold for a while, it is measured
/// anew with one thread, and with `true`: a few questions at a time.
pub fn with_one_thread_where_many<R>(read: &ReadArgs, measure: impl Fn(&ReadArgs, bool) -> Result<R>) -> Result<R> {
    let mut held = read.tried(read.threads(), Some(MOST_STATE_OF_THREADS));
    let mut result = measure(&held, false);
    if result.as_ref().is_err_and(is_too_large) {
        held = read.tried(1, None);
        result = measure(&held, true);
    }
    held.messages.release();
    result
}

/// Whether a trace was not measured since it has too many tasks to be read beside others.
fn is_too_large(error: &anyhow::Error) -> bool {
    matches!(error.root_cause().downcast_ref(), Some(parse::Error::ManyTasks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_divided_among_traces() {
        let of = |threads, traces| {
            let Division { traces, threads } = Division::of(threads, traces);
            (traces, threads)
        };
        assert_eq!([of(1, 10), of(2, 10), of(16, 10), of(16, 4)], [(1, 1), (2, 1), (6, 2), (4, 4)]);
        assert_eq!([of(8, 1), of(8, 0), of(256, 1000)], [(1, 8), (1, 8), (MOST_AT_ONCE, 42)]);
    }
}
