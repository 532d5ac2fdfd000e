//! Work of one thread, with which another helps while it has nothing of its own to do.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

/// Pieces of work that two threads share, and their results.
#[derive(Debug)]
pub(crate) struct SharedWork<I, O> {
    desk: Mutex<Desk<I, O>>,
    finished: Condvar,
    /// The helping thread, which is woken where there is work.
    helper: Thread,
}

#[derive(Debug)]
struct Desk<I, O> {
    /// The tasks that no thread has begun, each with its place in the order.
    todo: VecDeque<(usize, I)>,
    at_work: usize,
    done: Vec<(usize, O)>,
    /// A thread sleeps until none is at work. A wakeup without a sleeper costs a system call as well.
    is_awaited: bool,
}

impl<I, O> SharedWork<I, O> {
    pub(crate) fn new(helper: Thread) -> SharedWork<I, O> {
        let desk = Desk { todo: VecDeque::new(), at_work: 0, done: Vec::new(), is_awaited: false };
        SharedWork { desk: Mutex::new(desk), finished: Condvar::new(), helper }
    }

    fn desk(&self) -> MutexGuard<'_, Desk<I, O>> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lays this out for the helper, does something else, and then the tasks that no thread has begun. The results are in
    /// order, whichever thread helped; there are none if the other breaks.
    pub(crate) fn beside(
        &self,
        items: Vec<I>,
        work: impl Fn(I) -> O,
        other: impl FnOnce() -> ControlFlow<()>,
    ) -> Option<Vec<O>> {
        self.desk().todo = items.into_iter().enumerate().collect();
        self.helper.unpark();
        let more = other();
        if more.is_break() {
            self.desk().todo.clear();
        }
        let done = self.finish(work);
        more.is_continue().then_some(done)
    }

    fn finish(&self, work: impl Fn(I) -> O) -> Vec<O> {
        while self.one(&work) {}
        let mut desk = self.desk();
        while desk.at_work > 0 {
            desk.is_awaited = true;
            desk = self.finished.wait(desk).unwrap_or_else(PoisonError::into_inner);
        }
        desk.is_awaited = false;
        let mut done = std::mem::take(&mut desk.done);
        drop(desk);
        done.sort_unstable_by_key(|(place, _)| *place);
        done.into_iter().map(|(_, output)| output).collect()
    }

    /// Does the next piece. Whether there was one.
    pub(crate) fn one(&self, work: impl Fn(I) -> O) -> bool {
        let next = {
            let mut desk = self.desk();
            let next = desk.todo.pop_front();
            desk.at_work = desk.at_work.saturating_add(usize::from(next.is_some()));
            next
        };
        let Some((place, item)) = next else { return false };
        // If the work panics, no thread must wait for it.
        let mut finish = Finish { shared: self, output: None };
        finish.output = Some((place, work(item)));
        true
    }
}

/// Puts back what came of a piece of work, if anything did.
struct Finish<'s, I, O> {
    shared: &'s SharedWork<I, O>,
    output: Option<(usize, O)>,
}

impl<I, O> Drop for Finish<'_, I, O> {
    fn drop(&mut self) {
        let mut desk = self.shared.desk();
        desk.at_work = desk.at_work.saturating_sub(1);
        desk.done.extend(self.output.take());
        let last_is_awaited = desk.is_awaited && desk.at_work == 0;
        drop(desk);
        if last_is_awaited {
            self.shared.finished.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ControlFlow::{Break, Continue};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, OnceLock};
    use std::thread::{current, park};
    use std::time::Duration;

    #[test]
    fn results_are_in_order_whoever_helps() {
        let shared = SharedWork::new(current());
        let helped = AtomicUsize::new(0);
        let (begun, over) = (Barrier::new(2), AtomicUsize::new(0));
        // The first two pieces wait for one another: neither thread can do both.
        let work = |n: u64| {
            if n < 2 {
                begun.wait();
            }
            n * n
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while over.load(Ordering::Acquire) == 0 {
                    helped.fetch_add(usize::from(shared.one(work)), Ordering::Relaxed);
                }
            });
            let squares = shared.beside((0..100).collect(), work, || Continue(()));
            assert_eq!(squares, Some((0..100).map(|n| n * n).collect::<Vec<u64>>()));
            over.store(1, Ordering::Release);
        });
        assert!(helped.into_inner() > 0);
    }

    /// The helper does all of the work while the other thread goes on. Without a wakeup the test would not end.
    #[test]
    fn a_helper_that_sleeps_is_woken() {
        let (place, over) = (OnceLock::<SharedWork<u64, u64>>::new(), Barrier::new(2));
        let help = || {
            for _ in 0..3 {
                while !place.get().is_some_and(|shared| shared.one(|n| n + 1)) {
                    park();
                }
            }
            over.wait();
        };
        std::thread::scope(|scope| {
            let helper = scope.spawn(help);
            // Most often it sleeps by then.
            std::thread::sleep(Duration::from_millis(50));
            let shared = place.get_or_init(|| SharedWork::new(helper.thread().clone()));
            let wait = || {
                over.wait();
                Continue(())
            };
            assert_eq!(shared.beside(vec![1, 2, 3], |_| panic!("of the helper"), wait), Some(vec![2, 3, 4]));
            helper.join().expect("no panic");
        });
    }

    #[test]
    fn what_is_broken_off_is_not_done() {
        let shared = SharedWork::<u64, u64>::new(current());
        assert_eq!(shared.beside(vec![1, 2, 3], |_| panic!("not asked for"), || Break(())), None);
        assert_eq!(shared.beside(vec![4], |n| n, || Continue(())), Some(vec![4]));
    }

    #[test]
    fn nobody_waits_for_a_helper_that_panicked() {
        let shared = SharedWork::new(current());
        shared.desk().todo.push_back((0, ()));
        let helper = std::panic::AssertUnwindSafe(|| shared.one(|()| panic!("of its own doing")));
        assert!(std::panic::catch_unwind(helper).is_err());
        assert_eq!(shared.finish(|()| ()), []);
    }
}
