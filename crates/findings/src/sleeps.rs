//! Sleeps on the critical path until tasks that were queued themselves.

use crate::Observation;
use crate::observe::{Observed, Observer, PATH_PERCENT};
use crate::path_time::OnPath;
use sched::Dur;
use sched::nouns::counted;
use std::cmp::Reverse;

impl Observer<'_> {
    /// The pair of tasks of which one slept longest until the other, while that was queued.
    pub(crate) fn waker_queued(&self) -> Option<Observed> {
        let path = self.path.as_ref()?;
        // Throttled tasks that no record shows are queued.
        if self.hides_throttled() {
            return None;
        }
        let rows = &path.path.sleeps;
        let key = |row: &&path::SleepsUntil| (row.held_up.queued_ns, Reverse((row.task.pid, row.until.pid)));
        let most = rows.iter().max_by_key(key)?;
        let all_queued_ns = rows.iter().map(|row| row.held_up.queued_ns).fold(0, u64::saturating_add);
        if path.percent(most.held_up.queued_ns) < PATH_PERCENT {
            return None;
        }
        let observation = Observation::WakerQueued {
            pid: most.task.pid,
            command: most.task.command,
            until_pid: most.until.pid,
            until_command: most.until.command,
            sleeps: most.held_up.sleeps,
            slept_ns: most.held_up.slept_ns,
            queued_ns: most.held_up.queued_ns,
            all_queued_ns,
        };
        Some((observation, Some(all_queued_ns).filter(|_| self.is_by_path), self.of_path()))
    }
}

/// The sentence on sleeps until queued tasks.
pub(crate) fn sentence(observation: &Observation, on_path: OnPath<'_>) -> String {
    let Observation::WakerQueued { pid, command, until_pid, until_command, sleeps, slept_ns, queued_ns, all_queued_ns } =
        observation
    else {
        return String::new();
    };
    let (who, until) = (pid.named(*command), until_pid.named(*until_command));
    let (slept, queued) = (Dur(*slept_ns).human(), Dur(*queued_ns).human());
    let sleeps = counted(*sleeps, "sleep");
    match all_queued_ns == queued_ns {
        true => format!(
            "On the critical path {who} slept for {slept} until {until}, which was queued itself for {} of that, in {sleeps}.",
            on_path.time(*queued_ns)
        ),
        false => format!(
            "On the critical path {who} slept for {slept} until {until}, which was queued itself for {queued} of that, in {sleeps}; with all \
             such pairs of tasks it is {}.",
            on_path.time(*all_queued_ns)
        ),
    }
}
