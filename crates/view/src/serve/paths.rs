//! The critical paths of a trace that were asked for: that of the application, and the latest ones of other tasks.

use crate::ask::PathFinding;
use crate::ask::critical_path::{KeptPath, PathOf};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The number of paths of other tasks that are kept: each can have 22 MB.
const OTHERS: usize = 2;

/// A path, or the reason for which there is none.
pub(crate) type FoundPath = Result<KeptPath, String>;

/// The paths of one trace.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    application: Arc<OnceLock<FoundPath>>,
    /// The paths of other tasks than the application, the latest last.
    others: Mutex<VecDeque<(PathOf, Arc<OnceLock<FoundPath>>)>>,
}

impl Paths {
    /// The path of a task in the whole trace; the first request for it searches for it, and others wait for that.
    pub(crate) fn get(
        &self,
        of: PathOf,
        search: impl FnOnce() -> Result<PathFinding, String>,
    ) -> Arc<OnceLock<FoundPath>> {
        let path = self.place(of);
        path.get_or_init(|| search().map(KeptPath::of));
        path
    }

    /// The place of a path; those that were not asked for the longest give way to a new one.
    fn place(&self, of: PathOf) -> Arc<OnceLock<FoundPath>> {
        if of == PathOf::Application {
            return Arc::clone(&self.application);
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let known = others.iter().position(|(other, _)| *other == of).and_then(|at| others.remove(at));
        let path = known.map(|(_, path)| path).unwrap_or_default();
        if others.len() >= OTHERS {
            others.pop_front();
        }
        others.push_back((of, Arc::clone(&path)));
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::Pid;

    #[test]
    fn a_path_is_searched_for_once_and_gives_way_to_later_ones() {
        let paths = Paths::default();
        let searches = std::cell::Cell::new(0);
        let ask = |of| {
            let search = || {
                searches.set(searches.get() + 1);
                Err("none".to_owned())
            };
            paths.get(of, search);
            searches.get()
        };
        let task = |pid, at| PathOf::Task { pid: Pid(pid), at };
        assert_eq!([ask(PathOf::Application), ask(task(1, None)), ask(task(1, None))], [1, 2, 2]);
        // The same task from an instant on has another path; the oldest one gives way to a third.
        assert_eq!([ask(task(1, Some(5))), ask(task(1, None)), ask(task(2, None))], [3, 3, 4]);
        assert_eq!([ask(task(1, None)), ask(task(1, Some(5))), ask(PathOf::Application)], [4, 5, 5]);
    }
}
