//! One pass over a window: its model, with the tasks that are chosen.

use sched::seeded::SeededMap;
use sched::{Analysis, SchedEvent, SchedState, Task, TaskId, Ts};
use whatif::{BuildOptions, Model, ModelBuilder};

/// The properties of a task that decide whether it is reproduced.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choice {
    /// Whether the selection has taken the task at any time.
    pub(crate) is_chosen: bool,
    /// Whether the task is a thread of the kernel.
    pub(crate) is_of_kernel: bool,
    /// Whether the task is the recorder.
    pub(crate) is_recorder: bool,
}

/// The model of a window, and the choices of its tasks.
pub(crate) struct FollowedWork {
    pub(crate) model: Model,
    pub(crate) choices: SeededMap<TaskId, Choice>,
    /// The reason why it is not known which tasks are the application; absent where it is.
    pub(crate) no_application: Option<&'static str>,
}

/// The analysis that follows a window.
pub(crate) struct Follower<'f> {
    builder: ModelBuilder<'f>,
    chooser: &'f dyn Fn(&Task, &SchedState) -> bool,
    choices: SeededMap<TaskId, Choice>,
}

impl<'f> Follower<'f> {
    pub(crate) fn new(options: &'f BuildOptions<'f>, chooser: &'f dyn Fn(&Task, &SchedState) -> bool) -> Follower<'f> {
        Follower { builder: ModelBuilder::new(options), chooser, choices: SeededMap::default() }
    }

    fn note(&mut self, task: &Task, state: &SchedState) {
        let choice = self.choices.entry(task.id()).or_default();
        choice.is_chosen = choice.is_chosen || (self.chooser)(task, state);
        choice.is_of_kernel |= task.kin.is_of_kernel(task.comm);
        choice.is_recorder = task.comm.is_recorder();
    }
}

impl Analysis for Follower<'_> {
    type Output = FollowedWork;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.builder.begin(start, state);
        for cpu in state.observed() {
            state.running(cpu).into_iter().chain(state.waiting(cpu)).for_each(|task| self.note(task, state));
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.builder.after(event, state);
        // A model that is cut off is of no use.
        if !self.builder.is_cut() {
            state.turns().for_each(|(task, _)| self.note(task, state));
        }
    }

    fn finish(self, end: Ts, state: &SchedState) -> FollowedWork {
        let no_application = state.why_application_is_unknown();
        FollowedWork { model: self.builder.finish(end, state), choices: self.choices, no_application }
    }
}
