//! The wakeups of a window, which the page draws as arrows between the rows of tasks.

use crate::ask::questions::{AskedWindow, Fault};
use crate::ask::task_detail::waker;
use crate::index::viewed::Viewed;
use sched::{Analysis, EventKind, Pid, SchedEvent, SchedState, Ts};
use serde_json::{Value, json};

/// The maximum number of wakeups that are listed.
const MOST: usize = 4_000;
/// The maximum part of the file, in bytes, that is read for them: more wakeups than are drawn.
const BYTES: u128 = 48 << 20;

/// The wakeups of a window, with their wakers, as JSON; the number of a window that is too long is null.
pub(crate) fn answer(trace: &Viewed<'_>, window: AskedWindow) -> Result<Value, Fault> {
    let (from, to) = window.within(trace)?;
    let part = u128::from(trace.trace.data_size()) * u128::from(to.since(from).0) / u128::from(trace.span().max(1));
    if part > BYTES {
        return Ok(json!({ "wakeups": [], "number": null }));
    }
    let wakeups = ListedWakeups { zero: trace.extent().0, listed: Vec::new(), number: 0 };
    let found = trace.store()?.window(from, to, wakeups)?;
    Ok(json!({ "wakeups": found.listed, "number": found.number }))
}

/// The analysis that gathers wakeups.
struct ListedWakeups {
    zero: Ts,
    /// The time of each, its waker, and the woken task.
    listed: Vec<(u64, Option<Pid>, Pid)>,
    number: u64,
}

impl Analysis for ListedWakeups {
    type Output = ListedWakeups;

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        let (EventKind::Wakeup { task, .. } | EventKind::WakeupNew { task, .. }) = event.kind else { return };
        self.number += 1;
        if self.listed.len() < MOST {
            let by = waker(task.pid, event, state).map(|(by, _)| by);
            self.listed.push((event.ts.since(self.zero).0, by, task.pid));
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> ListedWakeups {
        self
    }
}
