//! The functions at which the path sleeps, and those of the wakers, by the stacks of the trace.

use crate::chain::{Segment, SegmentKind};
use crate::report::Path;
use sched::Dur;
use serde::Serialize;
use session::stacks::{NamedStacks, StackedEvent};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The sleeping segments of the path whose tasks slept in one function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SleepingAt {
    /// The function that names the stack with which the tasks went to sleep; absent where none was recorded.
    pub function: Option<String>,
    /// The number of segments.
    pub segments: u64,
    /// The time of the segments in nanoseconds.
    pub sleeping_ns: u64,
}

/// Returns the function that names a segment: at which a sleeping task went to sleep, or from which a task was woken.
pub(crate) fn function<'s>(segment: &Segment, stacks: &'s NamedStacks) -> Option<&'s str> {
    let event = match segment.kind {
        SegmentKind::Sleeping => StackedEvent::Switch,
        SegmentKind::Waking => StackedEvent::Waking,
        SegmentKind::Running | SegmentKind::Queued | SegmentKind::Unknown | SegmentKind::Throttled => return None,
    };
    stacks.function_anywhere(event, segment.start_ns, segment.pid)
}

/// Returns the sleeping segments of a path by function, the longest first; none where the trace has no stacks.
pub(crate) fn sleeping_at(path: &Path, stacks: &NamedStacks) -> Vec<SleepingAt> {
    if stacks.is_empty() {
        return Vec::new();
    }
    let mut sums: BTreeMap<Option<&str>, (u64, u64)> = BTreeMap::new();
    for segment in path.path.iter().filter(|segment| segment.kind == SegmentKind::Sleeping) {
        let sum = sums.entry(function(segment, stacks)).or_default();
        *sum = (sum.0 + 1, sum.1.saturating_add(segment.end_ns.since(segment.start_ns).0));
    }
    let row = |(function, (segments, sleeping_ns)): (Option<&str>, (u64, u64))| SleepingAt {
        function: function.map(str::to_owned),
        segments,
        sleeping_ns,
    };
    let mut rows: Vec<SleepingAt> = sums.into_iter().map(row).collect();
    rows.sort_by_key(|row| Reverse(row.sleeping_ns));
    rows
}

/// The table of the functions at which the path sleeps. `most`: the maximum number of rows.
pub(crate) fn text(rows: &[SleepingAt], most: usize) -> String {
    let mut out = String::new();
    if rows.is_empty() {
        return out;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(out, "\n{:<36}  {:>10}  {:>8}", "sleeping, by function", "time", "segments");
    for row in rows.iter().take(most) {
        let name = row.function.as_deref().unwrap_or("(no stack)");
        let _ = writeln!(out, "  {name:<34}  {:>10}  {:>8}", Dur(row.sleeping_ns).human(), row.segments);
    }
    if rows.len() > most {
        let _ = writeln!(out, "  … {} more (--rows, --json)", rows.len() - most);
    }
    out
}
