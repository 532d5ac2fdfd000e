//! The tasks whose waits and jobs the findings judge.

use sched::{Chosen, Comm, SchedState, Task};

/// The names of recorders, whose own tasks are in no figure.
const RECORDERS: [&str; 4] = ["trace-cmd", "schedviz", "perf", "perf-exec"];

/// Whether a task is judged: it is one of the application, or where there is none, any but kernel threads and recorders.
fn is_judged(task: &Task, state: &SchedState) -> bool {
    let can_be = !task.pid.is_idle() && !task.kin.is_of_kernel(task.comm);
    can_be && (task.kin.descends || !is_recorder(task.comm) && state.why_application_is_unknown().is_some())
}

fn is_recorder(comm: Comm) -> bool {
    RECORDERS.iter().any(|name| comm.as_bytes() == name.as_bytes())
}

/// The judged tasks.
pub(crate) const JUDGED: &Chosen<'static> = &is_judged;
