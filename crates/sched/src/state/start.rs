//! The first instant: its known state, and later findings on it.

use super::{SchedState, Slot, Task, Throttling};
use crate::event::probe::CgroupId;
use crate::event::span::{Current, TaskState};
use crate::event::{Cpu, Pid, TaskRef, Ts};
use crate::state::application::Application;
use crate::state::lineage::Lineage;
use crate::state::past::Past;
use crate::state::policies::SchedIdleTasks;
use crate::tables::capacities::CpuCapacities;
use std::sync::Arc;

/// The knowledge of the first instant, from which [`SchedState::new`] makes a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The first instant of the trace.
    pub ts: Ts,
    /// The CPUs that have events, ascending, each with the occupant until its first event, as that event shows it.
    pub cpus: Vec<(Cpu, Current)>,
    /// The tasks of `cpus` by the names with which they were switched out, or else by the names that the recorder
    /// saved, and by their first priorities: their PIDs alone have neither.
    pub named: Vec<TaskRef>,
    /// The tasks that are known to wait from the first instant on, with their CPUs.
    pub waiting: Vec<(TaskRef, Cpu)>,
    /// The cgroup of each task at the first instant; empty if the trace has no records of throttling.
    pub groups: Arc<[(Pid, CgroupId)]>,
    /// The tasks of the policy `SCHED_IDLE`, as far as a machine file lists them.
    pub sched_idle: SchedIdleTasks,
    /// The capacities of the CPUs, where they differ; of a part of a trace as well.
    pub capacities: CpuCapacities,
    /// The throttling that lasts since before the first instant: a cgroup and a CPU, once for each limit.
    pub throttled: Vec<(CgroupId, Cpu)>,
    /// Whether wakeups are missing from the trace: a task first seen being switched in may have slept until then.
    pub without_wakeups: bool,
    /// Whether `sched_waking` was recorded and `sched_wakeup` was not: a waking then places its task, on `target_cpu`
    /// unless the CPU's next scheduler event migrates the task.
    pub by_wakings: bool,
    /// Whether wakings are missing from the trace, so that the beginning of a wakeup is unknown.
    pub without_wakings: bool,
    /// Whether some of the events that wake tasks or begin them are missing from the trace, as others show: a task's
    /// first event then does not show its state before.
    pub incomplete: bool,
    /// Whether a sched_ext scheduler held the waiting tasks (see [`SchedState::has_ext_queues`]).
    pub has_ext_queues: bool,
    /// Whether events do not show the context in which they were recorded (see [`SchedState::shows_contexts`]).
    pub without_contexts: bool,
    /// The PID of the traced command's first task, if its exec is in the trace.
    pub root: Option<Pid>,
    /// The application, where it is not that of the traced command alone.
    pub application: Option<Arc<Application>>,
    /// The state before the first event, if that event is not the first one of the whole trace. All other fields are
    /// then ignored.
    pub past: Option<Arc<Past>>,
}

impl Start {
    /// Gives one of the tasks that run at first a name and a priority, as far as it has none already.
    pub(crate) fn name(&mut self, task: TaskRef) {
        let Some(known) = self.named.iter_mut().find(|other| other.pid == task.pid) else {
            return self.named.push(task);
        };
        if known.comm.is_empty() {
            known.comm = task.comm;
        }
        if known.prio == Task::NO_PRIO {
            known.prio = task.prio;
        }
    }
}

impl SchedState {
    /// The earliest instant at which a task that is first seen now can have existed.
    pub(super) fn first_moment(&self, pid: Pid) -> Ts {
        if self.lineage.of(pid).forked { self.now } else { self.start }
    }

    /// Whether a task's first event still shows what it did before.
    pub(super) fn is_start_known(&self) -> bool {
        !self.any_loss && self.shows_wakeups() && !self.incomplete
    }

    /// Makes the state at the first instant.
    pub fn new(start: &Start) -> SchedState {
        if let Some(past) = &start.past {
            let capacities = start.capacities.clone();
            return SchedState { capacities, ..SchedState::after(past, start.application.clone()) };
        }
        let mut state = SchedState {
            start: start.ts,
            now: start.ts,
            without_wakeups: start.without_wakeups,
            without_wakings: start.without_wakings,
            by_wakings: start.by_wakings,
            incomplete: start.incomplete,
            has_ext_queues: start.has_ext_queues,
            without_contexts: start.without_contexts,
            lineage: Lineage::of_application(start.root, start.application.clone().unwrap_or_default()),
            discovered_before: start.waiting.len(),
            capacities: start.capacities.clone(),
            ..SchedState::default()
        };
        state.start_sched_idle(&start.sched_idle.at_start, &start.sched_idle.of_programs);
        if !(start.groups.is_empty() && start.throttled.is_empty()) {
            state.throttling = Some(Box::new(Throttling::at_start(&start.groups, &start.throttled)));
        }
        for (cpu, current) in &start.cpus {
            state.cpu(*cpu).observed = true;
            match current {
                Current::Unknown => {}
                Current::Offline => state.go_offline(*cpu, start.ts),
                Current::Idle => state.settle(*cpu, Pid::IDLE, start.ts),
                Current::Task(pid) => {
                    // Where events are missing, the first ones of two CPUs can name the same task.
                    let named = start.named.iter().find(|task| task.pid == *pid);
                    if let Some(task) = named.filter(|_| state.tasks.find(*pid).is_none()) {
                        state.birth(*task, TaskState::Unknown, start.ts);
                    }
                    state.settle(*cpu, *pid, start.ts);
                }
            }
        }
        for (task, cpu) in &start.waiting {
            if state.tasks.find(task.pid).is_none()
                && let Some(slot) = state.birth(*task, TaskState::Unknown, start.ts)
            {
                state.turn_out(slot, TaskState::Waiting(*cpu), start.ts);
            }
        }
        state.forget_facts();
        state
    }

    /// The tasks that were found, too late, to have waited since the start, with their CPUs.
    pub fn discovered(&self) -> &[(TaskRef, Cpu)] {
        &self.discovered
    }

    /// The tasks that ran from the start on, by the names and the priorities that came to light later.
    pub fn named(&self) -> &[TaskRef] {
        &self.named
    }

    /// The number of new findings on the start, or on kinds of events that were not recorded.
    pub(crate) fn revelations(&self) -> usize {
        let wakings = self.without_wakings && self.has_wakings();
        let gaps = !self.incomplete && self.shows_gaps();
        let root = self.lineage.has_found_root();
        let throttled = self.discovered_throttling().len();
        self.discovered.len()
            + throttled
            + self.named.len()
            + usize::from(wakings)
            + usize::from(gaps)
            + usize::from(root)
    }

    /// Iterates over the tasks that ran at first and have no name yet. A task has one once it was switched out, or
    /// executed a program.
    pub(crate) fn nameless(&self, start: &Start) -> impl Iterator<Item = Pid> {
        let at_first = start.cpus.iter().filter_map(|(_, current)| current.pid());
        at_first.filter(|pid| self.task_of(*pid).is_some_and(|task| task.comm.is_empty()))
    }

    /// Names the task that ran on `cpu` without a name, as it is switched out. If it ran from the start on, it had that
    /// name then, unless it executed a program since, which names it too.
    #[cold]
    pub(super) fn name(&mut self, cpu: Cpu, slot: Slot, task: TaskRef) {
        let c = &mut self.cpus[cpu.index()];
        c.comm = task.comm;
        if c.since == self.start && !task.comm.is_empty() && self.tasks.entry(slot).comm.is_empty() {
            self.named.push(task);
        }
    }
}
