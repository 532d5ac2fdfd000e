//! The note itself: the groups of tasks just before a part.

use sched::{Past, Pid};
use serde::{Deserialize, Serialize};

/// The name of the note.
pub(crate) const NAME: &str = "membership";

/// The groups of tasks just before the part.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PastGroups {
    /// The cgroup of each task, by its place in `paths`.
    pub(crate) cgroups: Vec<(Pid, u32)>,
    /// The paths of the cgroups; `cgroup N` for one that is known by its ID alone.
    pub(crate) paths: Vec<String>,
    /// The leader of each task's process.
    pub(crate) processes: Vec<(Pid, Pid)>,
}

impl PastGroups {
    /// The note of a part, if there is one that can be read.
    pub(crate) fn of(past: Option<&Past>) -> Option<PastGroups> {
        serde_json::from_str(past?.notes.get(NAME)?).ok()
    }
}
