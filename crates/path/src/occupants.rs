//! How long the running task of a CPU stays after a task was queued behind it (`docs/questions/path.md#behind`).

use crate::chain::STAYS;
use crate::joined::TrackOrigin;
use crate::{CriticalPath, PathTrack};
use sched::{SchedState, TaskState, Ts};

impl PathTrack {
    /// The time for which the task that ran as this one was queued stayed, up to an instant; [`STAYS`] if it did not leave before.
    pub(crate) fn stayed_until(&self, until: Ts) -> u64 {
        // Of a wait that began in an earlier piece, the pieces before know the task.
        if self.behind.is_none() && self.origin == TrackOrigin::Here {
            return 0;
        }
        if self.behind_until < until { self.behind_until.since(self.from).0 } else { STAYS }
    }
}

impl CriticalPath {
    /// The running tasks of CPUs have changed: those that were queued behind them since are behind others now.
    pub(crate) fn change_occupants(&mut self, now: Ts, state: &SchedState) {
        let tracks = &mut self.tracks;
        self.queued_behind.leave(state, |task, cpu| {
            // Its present wait may have begun elsewhere.
            let waits_here = state.task(task).is_some_and(|task| task.state == TaskState::Waiting(cpu));
            if let Some(track) = tracks.get_mut(task).filter(|_| waits_here) {
                track.behind_until = track.behind_until.min(now);
            }
        });
    }
}
