//! The sums of each group, and the places of tasks.

use crate::Options;
use crate::groups::Groups;
use sched::seeded::SeededMap;
use sched::{Cause, Dur, PerTask, Pid, Ts};
use std::collections::BTreeMap;

/// Columns of the figure.
pub(crate) const COLUMNS: usize = 300;

/// Maximum number of sums of a column, a cache and a group; the time of further ones is not drawn.
pub(crate) const MOST_CELLS: usize = 1 << 20;

/// The longest times after which a task has returned at once, in nanoseconds.
pub(crate) const RETURNS: [Dur; 2] = [Dur(10_000_000), Dur(100_000_000)];

/// The number of an LLC; absent where the topology lacks it.
pub(crate) type Llc = Option<u32>;

/// The instant of a move between LLCs, the one that the task left, and the one that it came to.
pub(crate) type Moved = (Ts, u32, u32);

/// The sums of a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) run: BTreeMap<Llc, u64>,
    pub(crate) run_by_node: BTreeMap<Option<u32>, u64>,
    pub(crate) wait: BTreeMap<Llc, u64>,
    /// The run time beside a sibling whose state is known, and of that the part beside a busy one.
    pub(crate) with_siblings_ns: u64,
    pub(crate) beside_busy_ns: u64,
    /// The number of runs in the window, and those of tasks that could have run under another cache.
    pub(crate) runs: u64,
    pub(crate) movable_runs: u64,
    pub(crate) moves: u64,
    pub(crate) returns: [u64; 2],
    pub(crate) placements: u64,
    pub(crate) placed_beside: [u64; 3],
}

/// The last move of a task between LLCs, and the place where it ran last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Track {
    pub(crate) moved: Option<Moved>,
    pub(crate) pid: Pid,
    pub(crate) group: usize,
    /// The LLC of the latest run in the window, and the beginning of the first run there since the latest one elsewhere.
    pub(crate) last: Llc,
    pub(crate) since: Ts,
}

/// Everything that the analysis has summed up.
pub(crate) struct RunSums<'o> {
    pub(crate) options: &'o Options<'o>,
    pub(crate) groups: Groups,
    pub(crate) sums: Vec<Sums>,
    pub(crate) tracks: PerTask<Track>,
    pub(crate) moves_by_cause: [u64; Cause::ALL.len()],
    /// The run time by column, LLC and group.
    pub(crate) cells: SeededMap<(usize, Llc, usize), u64>,
    /// Whether cores have several CPUs.
    pub(crate) has_siblings: bool,
}

impl RunSums<'_> {
    /// The sums of a group, made if there are none.
    pub(crate) fn sums_of(&mut self, group: usize) -> &mut Sums {
        if group >= self.sums.len() {
            self.sums.resize_with(group + 1, Sums::default);
        }
        &mut self.sums[group]
    }
}
