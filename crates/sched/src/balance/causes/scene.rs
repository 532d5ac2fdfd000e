//! The part of the state on which the cause of a migration depends.
//!
//! A pass in pieces finds the scenes of a piece by many threads, and the causes by one, which follows no state then.

use crate::event::kthread::{is_ksoftirqd, is_stopper};
use crate::event::span::TaskState;
use crate::event::{Cpu, EventKind, Pid, SchedEvent};
use crate::state::SchedState;

/// The state before a migration, or before the waking of a stopper, as far as the cause of a migration depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MoveScene {
    /// The state of the task that is migrated; none if no event has been about it.
    pub(super) before: Option<TaskState>,
    /// Whether the migration is that of a wakeup; none where wakings do not tell ([`SchedState::places_by_wakings`]).
    pub(super) is_placed: Option<bool>,
    /// Whether the stopper of the CPU that the task leaves makes the migration.
    pub(super) by_stopper: bool,
    /// Whether a thread that runs softirqs is there, as the waker of a stopper.
    pub(super) by_softirqs: bool,
    /// Whether events show the context in which they were recorded.
    pub(super) shows_contexts: bool,
    /// The occupant of the CPU that makes the migration.
    pub(super) occupant: Occupant,
    /// The tasks that wait there, if the task comes to it.
    pub(super) waiting: Waiting,
}

/// The occupant of a CPU, as far as a cause depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Occupant {
    Idle,
    SoftirqThread,
    /// Another task, or it is not known which.
    #[default]
    Other,
}

/// The tasks that wait on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Few(Vec<Pid>),
    /// More than one balance pulls.
    Many,
}

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting::Few(Vec::new())
    }
}

impl Waiting {
    /// Maximum number of tasks that one balance pulls: `sysctl_sched_nr_migrate`.
    const MOST: usize = 32;

    /// The tasks that wait on a CPU.
    fn on(cpu: Cpu, state: &SchedState) -> Waiting {
        let pids: Vec<Pid> = state.waiting(cpu).take(Waiting::MOST + 1).map(|task| task.pid).collect();
        if pids.len() > Waiting::MOST { Waiting::Many } else { Waiting::Few(pids) }
    }

    /// Whether the tasks are few, and all of them such.
    pub(super) fn are_all(&self, are_such: impl Fn(Pid) -> bool) -> bool {
        match self {
            Waiting::Few(pids) => pids.iter().all(|pid| are_such(*pid)),
            Waiting::Many => false,
        }
    }
}

impl MoveScene {
    /// Whether a cause depends on the state before this event.
    #[inline]
    pub(crate) fn is_needed(event: &SchedEvent) -> bool {
        match event.kind {
            EventKind::Migrate { .. } => true,
            EventKind::Waking { task, target } => is_stopper(task.comm, target),
            _ => false,
        }
    }

    /// The scene of an event; `state` is the one before it.
    pub(crate) fn of(event: &SchedEvent, state: &SchedState) -> MoveScene {
        let on = event.cpu;
        let mut scene = MoveScene { shows_contexts: state.shows_contexts(), ..MoveScene::default() };
        match event.kind {
            EventKind::Migrate { task, orig, dest } => {
                scene.before = state.task_of(task.pid).map(|task| task.state);
                scene.is_placed = state.places_by_wakings().then(|| state.places(event));
                let running = state.running(on);
                scene.by_stopper = on == orig && running.is_some_and(|running| is_stopper(running.comm, on));
                if on == dest {
                    scene.occupant = match running {
                        Some(running) if is_ksoftirqd(running.comm) => Occupant::SoftirqThread,
                        None if state.load(on).idles() => Occupant::Idle,
                        _ => Occupant::Other,
                    };
                    scene.waiting = Waiting::on(on, state);
                }
            }
            _ => scene.by_softirqs = state.task_of(event.pid).is_some_and(|task| is_ksoftirqd(task.comm)),
        }
        scene
    }

    /// The scenes of all events of a stretch that [need](MoveScene::is_needed) one, in order; `state` is the one before the stretch.
    pub(crate) fn all<'e>(
        events: impl Iterator<Item = &'e SchedEvent> + Clone,
        mut state: SchedState,
    ) -> Vec<MoveScene> {
        let needed = events.clone().filter(|event| MoveScene::is_needed(event)).count();
        let mut scenes = Vec::with_capacity(needed);
        for event in events {
            if scenes.len() == needed {
                break;
            }
            if MoveScene::is_needed(event) {
                scenes.push(MoveScene::of(event, &state));
            }
            state.apply(event);
        }
        scenes
    }
}
