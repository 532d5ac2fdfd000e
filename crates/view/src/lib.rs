//! An index of a trace, tiles of it at any zoom, and the local server of a page that shows them.
//!
//! In goes a trace, out come tiles: columns of some lanes ([`Shape`]) over a window. One pass makes the index ([`Indexer`]),
//! which holds columns of each CPU and of the machine on several levels ([`Index`]): the tasks that ran longest, idle and unknown
//! time, run queues, the violation of work conservation, migrations by cause. Finer columns are computed from the events of the
//! tile alone. Begin reading in `index/mod.rs`, then `serve/site.rs`; `ask/questions.rs` has what the page can ask.
//!
//! ```
//! use sched::{Pass, Ts};
//! use view::{Indexer, Scope};
//!
//! // A task waits on CPU 0 for 200 ns while CPU 1 idles.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let scope = Scope::of_trace(Ts(100), Ts(600), &[sched::Cpu(0), sched::Cpu(1)], 0);
//! let index = Pass::over(events.as_slice()).run(|| Indexer::new(&scope)).unwrap_or_else(|never| match never {}).output;
//! // One tile of columns of 2 ns.
//! let tile = index.lanes(1, 0, 0).expect("a tile");
//! assert_eq!(&tile[..8], b"SVT2\x40\0\x02\0", "64 columns, two lanes");
//! ```

mod ask;
mod columns;
mod command;
mod export;
mod index;
mod serve;

#[cfg(test)]
mod tests;

pub use ask::{
    AskedPart, Commands, Drawing, EpisodeStory, Finding, Follow, Format, FoundPath, FoundTable, ListKind, MainFinding,
    MainFindings, MainMore, MainPlace, MissedAt, MissedSteal, MissedSteals, PageGroup, PageGroups, PathFinding, PathOf,
    Plotted, RunMeasure, RunMeasures, TableBy, TableCommand, TableNumbers, TableRow, TaskGroupings, ViolationList,
};
pub use columns::coding::{Digest, Unusable};
pub use columns::longest::{CpuPath, Interval};
pub use columns::shape::Shape;
pub use columns::tasks::{TaskEntry, Tasks};
pub use command::{ViewArgs, ViewCommand};
pub use export::Exported;
pub use index::{Index, Indexer, List, Publish, Scope, Store, SumBy, Viewed};
pub use serve::{Server, Site};

/// The maximum number of tasks that a column names.
pub const TASKS_IN_COLUMN: usize = 4;
/// The maximum number of bytes of a tile.
pub const TILE_BYTES: usize = 30_000;
