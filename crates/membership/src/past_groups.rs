//! The note itself: the groups of tasks just before a part, and what the records before it decide about those within.

use crate::attributes::{CallAttributes, UtilClamp};
use crate::policy::SchedPolicy;
use parse::Trace;
use sched::event::CleanText;
use sched::{Past, Pid};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The name of the note.
pub(crate) const NAME: &str = "membership";

/// The groups of tasks just before the part. It replaces the lists of the machine file, of which the records before the part have
/// changed some, and those behind it decide others.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PastGroups {
    /// The cgroup of each task, by its place in `paths`.
    pub(crate) cgroups: Vec<(Pid, u32)>,
    /// The paths of the cgroups; `cgroup N` for one that is known by its ID alone.
    pub(crate) paths: Vec<CleanText>,
    /// The paths of cgroups by their IDs, as all records of the whole trace give them.
    #[serde(default)]
    pub(crate) ids: Vec<(u64, CleanText)>,
    /// The leader of each task's process; absent for a task whose process is unknown though its PID is known.
    pub(crate) processes: Vec<(Pid, Option<Pid>)>,
    /// Whether records of the part show further processes, as those of the whole trace do. A program alone shows none where nothing else does.
    #[serde(default = "shows_processes")]
    pub(crate) shows_processes: bool,
    /// Whether the probe on forks has records in the whole trace, so that forks show nothing else.
    #[serde(default)]
    pub(crate) records_forks: bool,
    /// The policies and the priorities of tasks.
    #[serde(default)]
    pub(crate) params: PastParams,
}

/// The scheduling parameters of tasks just before the part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PastParams {
    /// The policy of each task whose policy is known.
    pub(crate) policies: Vec<(Pid, SchedPolicy)>,
    /// The tasks whose policy is unknown all the time, whatever records within the part show.
    pub(crate) contradicted: Vec<Pid>,
    /// The priority of each task by the switches of the whole trace: that of the latest one before the part, or else the first one.
    pub(crate) prios: Vec<(Pid, i32)>,
    /// The calls that threads had entered and not left: the thread, the task that the call is about, and the policy, if that is known.
    pub(crate) calls: Vec<(Pid, Pid, Option<SchedPolicy>)>,
    /// Whether returns of calls have records in the whole trace.
    pub(crate) records_returns: bool,
    /// The attributes beside the policy that the calls set, by their threads.
    #[serde(default)]
    pub(crate) attributes: Vec<(Pid, CallAttributes)>,
    /// The clamps of the tasks that have any.
    #[serde(default)]
    pub(crate) clamps: Vec<(Pid, UtilClamp)>,
    /// The tasks whose clamps are unknown all the time, whatever records within the part show.
    #[serde(default)]
    pub(crate) contradicted_clamps: Vec<Pid>,
    /// The runtime, the deadline and the period of each deadline task whose parameters are known, in nanoseconds.
    #[serde(default)]
    pub(crate) deadlines: Vec<(Pid, [u64; 3])>,
    /// The policies of the tasks of the recorded command that have not been forked yet, by a list; absent where it has several.
    #[serde(default)]
    pub(crate) of_programs: Vec<(Pid, Option<SchedPolicy>)>,
}

/// Notes had only parts in which records show processes, before they had parameters.
fn shows_processes() -> bool {
    true
}

/// The note that was read last, with the past that it is in: each of the readers of a part asks for it.
static LAST: Mutex<Option<ReadNote>> = Mutex::new(None);

/// A past, with the note that was read from it.
type ReadNote = (Weak<Past>, Option<Arc<PastGroups>>);

impl PastGroups {
    /// The note of a part, if there is one that can be read. It is read once for all that ask for it one after the other.
    pub(crate) fn of(trace: &Trace) -> Option<Arc<PastGroups>> {
        let past = trace.past()?;
        let text = past.notes.get(NAME)?;
        let key = Arc::downgrade(past);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, note)) = last.as_ref().filter(|(known, _)| known.ptr_eq(&key)) {
            return note.clone();
        }
        let note = serde_json::from_str(text).ok().map(Arc::new);
        *last = Some((key, note.clone()));
        note
    }
}
