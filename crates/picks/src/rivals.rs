//! The tasks of the fair class that wait on each CPU, counted by group: a pick asks for numbers of rivals, not for the rivals.

use crate::group::GroupKey;
use sched::seeded::SeededMap;
use sched::state::Task;
use sched::{Cpu, EventKind, PerTask, Pid, SchedEvent, SchedState, TaskId, TaskState};

/// The waiting tasks of the fair class, by CPU and by group.
#[derive(Default)]
pub(crate) struct Rivals {
    /// Whether the tasks that waited before the first event are counted: no event shows them.
    has_begun: bool,
    /// The place at which each waiting task is counted.
    places: PerTask<(Cpu, GroupKey)>,
    of_cpu: SeededMap<Cpu, u32>,
    of_group: SeededMap<(Cpu, GroupKey), u32>,
}

/// Adds one to a number, or takes one from it; a number that becomes zero is not kept.
fn step<K: Eq + std::hash::Hash>(numbers: &mut SeededMap<K, u32>, key: K, adds: bool) {
    let number = numbers.get(&key).copied().unwrap_or(0);
    match if adds { number.saturating_add(1) } else { number.saturating_sub(1) } {
        0 => numbers.remove(&key),
        number => numbers.insert(key, number),
    };
}

/// The tasks whose priority, name or cgroup an event can show, beside those whose state it changes.
fn described(event: &SchedEvent) -> Option<Pid> {
    match event.kind {
        EventKind::Waking { task, .. }
        | EventKind::Wakeup { task, .. }
        | EventKind::WakeupNew { task, .. }
        | EventKind::Migrate { task, .. } => Some(task.pid),
        EventKind::Rename { pid, .. } | EventKind::Exec { pid, .. } => Some(pid),
        EventKind::Probe { probe: sched::probe::Probe::Joins { pid, .. }, .. } => Some(pid),
        _ => None,
    }
}

impl Rivals {
    /// Follows an event that was applied to `state`; `group` is the group of a task now.
    pub(crate) fn follow(&mut self, event: &SchedEvent, state: &SchedState, group: impl Fn(&Task) -> GroupKey) {
        if !std::mem::replace(&mut self.has_begun, true) {
            state.living().for_each(|task| self.place(task.id(), Some(task), &group));
        }
        for span in state.spans() {
            self.place(span.task, state.task(span.task), &group);
        }
        if let Some(task) = described(event).and_then(|pid| state.task_of(pid)) {
            self.place(task.id(), Some(task), &group);
        }
    }

    /// Counts a task where it waits now, and nowhere else.
    fn place(&mut self, id: TaskId, task: Option<&Task>, group: &impl Fn(&Task) -> GroupKey) {
        let now = task.and_then(|task| match task.state {
            TaskState::Waiting(cpu) if crate::follow::is_fair(task) => Some((cpu, group(task))),
            _ => None,
        });
        let before = self.places.get(id).copied();
        if before == now {
            return;
        }
        if let Some(place) = self.places.take(id) {
            step(&mut self.of_cpu, place.0, false);
            step(&mut self.of_group, place, false);
        }
        if let Some(place) = now {
            self.places.insert(id, place);
            step(&mut self.of_cpu, place.0, true);
            step(&mut self.of_group, place, true);
        }
    }

    /// The number of tasks that wait on a CPU.
    pub(crate) fn on(&self, cpu: Cpu) -> u32 {
        self.of_cpu.get(&cpu).copied().unwrap_or(0)
    }

    /// The number of tasks that wait on a CPU in this group.
    pub(crate) fn within(&self, cpu: Cpu, group: GroupKey) -> u32 {
        self.of_group.get(&(cpu, group)).copied().unwrap_or(0)
    }

    /// The number of tasks that wait on a CPU and are certainly in another group than this one.
    pub(crate) fn apart(&self, cpu: Cpu, own: GroupKey) -> u32 {
        match own {
            GroupKey::Unknown => 0,
            _ => self.on(cpu) - self.within(cpu, own) - self.within(cpu, GroupKey::Unknown),
        }
    }
}
