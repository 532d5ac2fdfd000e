//! The work of a trace as actions of tasks, which any kernel can execute again.

use crate::lost::Lost;
use sched::{Comm, CpuSet, Pid, Ts};
use std::collections::BTreeSet;
use whatif::{Begin, Model, ModelTask, ProgramStep, SleepClass, SleepIndex, TaskIndex};

/// The index of a task in [`Reproduction::tasks`].
pub type LoadIndex = u32;

/// An action of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadAction {
    /// The task uses the CPU for this time, in nanoseconds.
    Compute(u64),
    /// The task wakes another one, or spares it the next wait.
    Wake(LoadIndex),
    /// The task sleeps until it has been woken once more.
    Wait,
    /// The task sleeps for this time, in nanoseconds.
    SleepFor(u64),
    /// The task sleeps until this time since the beginning, in nanoseconds.
    SleepUntil(u64),
    /// The task starts another one.
    Start(LoadIndex),
    /// The kernel priority of the task changes to this one.
    Priority(i32),
}

/// The beginning of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadStart {
    /// The task is there from the beginning.
    Beginning,
    /// Another task starts it.
    Parent,
    /// The task begins at this time since the beginning, in nanoseconds.
    At(u64),
}

/// A task with its actions.
#[derive(Clone, Debug)]
pub struct LoadTask {
    /// The PID that the task had in the trace.
    pub pid: Pid,
    /// The command name that the task had in the trace.
    pub comm: Comm,
    /// The beginning of the task.
    pub start: LoadStart,
    /// The kernel priority at the beginning.
    pub prio: i32,
    /// The CPUs that the task may use; absent where nothing restricts it.
    pub cpus: Option<CpuSet>,
    /// The actions of the task, in order.
    pub actions: Vec<LoadAction>,
}

/// The numbers of actions of all tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadCounts {
    /// The number of bursts: uses of the CPU between two other actions.
    pub bursts: u64,
    /// The total CPU time of the bursts, in nanoseconds.
    pub compute_ns: u64,
    /// The number of wakeups of tasks by tasks.
    pub wakeups: u64,
    /// The number of sleeps until a task wakes the sleeper.
    pub waits: u64,
    /// The number of sleeps by a timer.
    pub sleeps: u64,
    /// The number of tasks that a task starts.
    pub starts: u64,
    /// The number of changes of a priority.
    pub priorities: u64,
}

impl LoadCounts {
    /// Adds an action.
    fn add(&mut self, action: LoadAction) {
        match action {
            LoadAction::Compute(ns) => {
                self.bursts += 1;
                self.compute_ns = self.compute_ns.saturating_add(ns);
            }
            LoadAction::Wake(_) => self.wakeups += 1,
            LoadAction::Wait => self.waits += 1,
            LoadAction::SleepFor(_) | LoadAction::SleepUntil(_) => self.sleeps += 1,
            LoadAction::Start(_) => self.starts += 1,
            LoadAction::Priority(_) => self.priorities += 1,
        }
    }

    /// The number of all actions.
    pub fn actions(&self) -> u64 {
        self.bursts + self.wakeups + self.waits + self.sleeps + self.starts + self.priorities
    }
}

/// The work of a window of a trace.
#[derive(Clone, Debug, Default)]
pub struct Reproduction {
    /// The tasks, in the order in which the window shows them.
    pub tasks: Vec<LoadTask>,
    /// The time that the work took in the trace, in nanoseconds: to the exit of the traced command, else the length of the window.
    pub length_ns: u64,
    /// The parts of the work that are replaced or left out.
    pub lost: Lost,
}

impl Reproduction {
    /// Returns the work of the tasks of a model that `keeps` takes. A sleep that a task ends which is not taken becomes one by a timer.
    pub fn of(model: &Model, keeps: &dyn Fn(&ModelTask) -> bool) -> Reproduction {
        let kept = model.tasks.iter().map(|task| keeps(task) && task.has_work());
        let mut count = 0;
        let indices: Vec<Option<LoadIndex>> = kept
            .map(|kept| {
                count += LoadIndex::from(kept);
                kept.then(|| count - 1)
            })
            .collect();
        let mut maker =
            Maker { model, indices, woken: BTreeSet::new(), forked: BTreeSet::new(), lost: Lost::default() };
        maker.find_causes();
        let tasks = (0..).zip(&model.tasks).filter(|(index, _)| maker.index(*index).is_some());
        let tasks: Vec<(TaskIndex, &ModelTask)> = tasks.collect();
        let tasks = tasks.into_iter().map(|(index, task)| maker.task(index, task)).collect();
        let root = model.root.filter(|root| maker.index(*root).is_some());
        let end = root.and(model.exit).unwrap_or(model.end);
        Reproduction { tasks, length_ns: end.since(model.start).0, lost: maker.lost }
    }

    /// The numbers of actions of all tasks.
    pub fn counts(&self) -> LoadCounts {
        let mut counts = LoadCounts::default();
        self.tasks.iter().flat_map(|task| &task.actions).for_each(|action| counts.add(*action));
        counts
    }
}

/// The tasks of a model on their way to a load.
struct Maker<'m> {
    model: &'m Model,
    indices: Vec<Option<LoadIndex>>,
    /// The sleeps that a task ends which is taken.
    woken: BTreeSet<SleepIndex>,
    /// The tasks that a task starts which is taken.
    forked: BTreeSet<TaskIndex>,
    lost: Lost,
}

impl Maker<'_> {
    fn index(&self, task: TaskIndex) -> Option<LoadIndex> {
        self.indices.get(task as usize).copied().flatten()
    }

    fn find_causes(&mut self) {
        let taken = self.model.tasks.iter().zip(&self.indices).filter(|(_, index)| index.is_some());
        for step in taken.flat_map(|(task, _)| &task.steps) {
            match step {
                ProgramStep::Wake(sleep) => {
                    self.woken.insert(*sleep);
                }
                ProgramStep::Fork(child) => {
                    self.forked.insert(*child);
                }
                _ => {}
            }
        }
    }

    fn since_start(&self, at: Ts) -> u64 {
        at.since(self.model.start).0
    }

    fn task(&mut self, index: TaskIndex, task: &ModelTask) -> LoadTask {
        let model = self.model;
        let start = match task.begin {
            Begin::Forked(_) if self.forked.contains(&index) => LoadStart::Parent,
            Begin::Forked(join) => LoadStart::At(self.since_start(model.joins[join as usize].start)),
            Begin::At(at, _) => LoadStart::At(self.since_start(at)),
            Begin::Runs(_) | Begin::Waits(_) | Begin::Sleeps => LoadStart::Beginning,
        };
        let begun = match task.begin {
            Begin::Forked(join) | Begin::At(_, join) => model.joins[join as usize].allowed,
            _ => task.allowed,
        };
        let cpus = begun.and_then(|set| model.sets.get(set as usize)).cloned();
        let later = |step: &ProgramStep| match step {
            ProgramStep::Sleep(sleep) => {
                let sleep = &model.sleeps[*sleep as usize];
                sleep.ends && model.joins[sleep.join as usize].allowed != begun
            }
            ProgramStep::Preempted(join) => model.joins[*join as usize].allowed != begun,
            _ => false,
        };
        self.lost.affinity_changes += u64::from(task.steps.iter().any(later));
        let (comm, pid, prio) = (task.comm, task.pid, task.prio);
        LoadTask { pid, comm, start, prio, cpus, actions: self.actions(task) }
    }

    fn actions(&mut self, task: &ModelTask) -> Vec<LoadAction> {
        let mut actions: Vec<LoadAction> = Vec::new();
        for step in &task.steps {
            let action = match *step {
                ProgramStep::Run(ns) => {
                    // A run that was interrupted goes on.
                    if let Some(LoadAction::Compute(before)) = actions.last_mut() {
                        *before = before.saturating_add(ns);
                        continue;
                    }
                    Some(LoadAction::Compute(ns))
                }
                ProgramStep::Wake(sleep) => {
                    let sleep = &self.model.sleeps[sleep as usize];
                    self.index(sleep.task).filter(|_| sleep.class.is_by_task()).map(LoadAction::Wake)
                }
                ProgramStep::Fork(child) => self.index(child).map(LoadAction::Start),
                ProgramStep::Priority(prio) => Some(LoadAction::Priority(prio)),
                // Nothing ends it in the window.
                ProgramStep::Sleep(sleep) if !self.model.sleeps[sleep as usize].ends => break,
                ProgramStep::Sleep(sleep) => self.sleep(sleep, actions.is_empty()),
                ProgramStep::Die => break,
                ProgramStep::Preempted(_)
                | ProgramStep::Meet(_)
                | ProgramStep::Exec(_)
                | ProgramStep::Rename(_)
                | ProgramStep::Exit
                | ProgramStep::Nothing => None,
            };
            actions.extend(action);
        }
        // A task that does nothing behind its last sleep need not sleep.
        let does =
            |action: &LoadAction| matches!(action, LoadAction::Compute(_) | LoadAction::Wake(_) | LoadAction::Start(_));
        let end = actions.iter().rposition(does).map_or(0, |last| last + 1);
        actions.truncate(end);
        actions.shrink_to_fit();
        actions
    }

    /// The action for a sleep; nothing where it has no length. The first action of a task that is there from the beginning counts from then on.
    fn sleep(&mut self, index: SleepIndex, is_first: bool) -> Option<LoadAction> {
        let sleep = &self.model.sleeps[index as usize];
        if sleep.class.is_by_task() && self.woken.contains(&index) {
            self.lost.locks += u64::from(sleep.class == SleepClass::Lock);
            return Some(LoadAction::Wait);
        }
        let end = self.since_start(sleep.start).saturating_add(sleep.length);
        let until = is_first || sleep.class == SleepClass::AbsoluteTimer;
        if sleep.length == 0 && (end == 0 || !until) {
            return None;
        }
        self.lost.timed(sleep.class);
        Some(if until { LoadAction::SleepUntil(end) } else { LoadAction::SleepFor(sleep.length) })
    }
}
