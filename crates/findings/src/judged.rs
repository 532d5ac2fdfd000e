//! The tasks whose waits and jobs the findings judge.

use sched::{Chosen, SchedState, Task};

/// Whether a task is judged: it is one of the application, or where there is none, any but kernel threads and recorders.
fn is_judged(task: &Task, state: &SchedState) -> bool {
    let can_be = !task.pid.is_idle() && !task.kin.is_of_kernel(task.comm);
    can_be && (task.kin.descends || !task.comm.is_recorder() && state.why_application_is_unknown().is_some())
}

/// The judged tasks.
pub(crate) const JUDGED: &Chosen<'static> = &is_judged;
