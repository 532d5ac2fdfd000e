//! The tasks whose causes are followed are no more than those of the state.

use super::{Causes, Migration};
use crate::event::Pid;
use crate::state::SchedState;
use crate::tables::limits::TASKS;

impl Causes {
    /// Whether more tasks are held than can live, so that there are some to forget. Three tables have as many as the
    /// state follows: a quarter of the limit goes at each time.
    #[inline(always)]
    pub(super) fn holds_many(&self) -> bool {
        self.tasks() > 4 * TASKS
    }

    /// The number of entries by task.
    fn tasks(&self) -> usize {
        self.followed.len() + self.reasons.len() + self.awake.len()
    }

    /// Whether no entry is to be forgotten within this number of events, each of which adds two at most.
    pub(crate) fn have_room(&self, events: usize) -> bool {
        self.tasks() + 2 * events <= 4 * TASKS
    }

    /// Forgets the tasks that the state does not follow: they are dead, or beyond the limit of tasks.
    #[cold]
    pub(super) fn forget_unfollowed(&mut self, state: &SchedState, report: &mut impl FnMut(Migration)) {
        let is_followed = |pid: &Pid| state.task_of(*pid).is_some();
        let mut closed: Vec<Migration> = Vec::new();
        self.followed.retain(|pid, followed| {
            let stays = is_followed(pid);
            closed.extend(followed.open.take_if(|_| !stays).map(|open| open.migration));
            stays
        });
        self.awake.retain(|pid, held| {
            let stays = is_followed(pid);
            closed.extend(held.take_if(|_| !stays));
            stays
        });
        self.reasons.retain(|pid, _| is_followed(pid));
        closed.sort_by_key(|m| (m.ts, m.on, m.pid));
        closed.into_iter().for_each(report);
    }
}
