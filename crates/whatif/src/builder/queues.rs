//! Tasks joining run queues and leaving them without a run: placements, ends of sleeps, moves.

use super::ModelBuilder;
use crate::model::{JoinIndex, MoveKind, PlacedOn, ProgramStep, QueueJoin, SleepClass};
use crate::track::Track;
use sched::kthread::{is_any_stopper, is_bound, is_ksoftirqd};
use sched::topology::CpuOrder;
use sched::{Cpu, CpuSet, Current, EventKind, PrevState, SchedEvent, SchedState, Task, TaskState, Ts};

impl ModelBuilder<'_> {
    /// The task joins the queue of `cpu`. `state` is the one after the event.
    pub(super) fn join(
        &mut self,
        track: &mut Track,
        task: &Task,
        cpu: Cpu,
        placed: PlacedOn,
        now: Ts,
        state: &SchedState,
    ) {
        let on_idle = state.current(cpu) == Current::Idle && state.queue_length(cpu) <= 1;
        self.cpu(cpu);
        let allowed = self.allowed(task, cpu, state);
        track.join = self.model.joins.len() as JoinIndex;
        track.joined = now;
        track.idle_at = on_idle.then(|| self.cpu(cpu).runs.len());
        let several = |set: u32| self.model.sets[set as usize].len() > 1;
        track.is_movable = task.known_prio().unwrap_or(track.prio) >= 100 && allowed.is_none_or(several);
        let (task, moves) = (track.index, (0, 0));
        self.model.joins.push(QueueJoin {
            task,
            start: now,
            waited: 0,
            cpu,
            placed,
            seeks_idle: on_idle,
            dispatch: None,
            moves,
            allowed,
        });
    }

    /// The set of CPUs that the task may use while it waits on `cpu`, or runs there.
    pub(super) fn allowed(&mut self, task: &Task, cpu: Cpu, state: &SchedState) -> Option<u32> {
        let known = self.options.affinity.and_then(|affinity| affinity.set(affinity.of(task, cpu, state)?, state));
        let isolated = &self.options.isolated;
        let set: CpuSet = match known {
            _ if is_bound(task.comm, cpu) || isolated.has(cpu) => [cpu].into_iter().collect(),
            None if isolated.is_empty() => return None,
            Some(set) if isolated.is_empty() => set.clone(),
            // No domain of the balancer has them, and no wakeup seeks them.
            known => {
                let known = known.unwrap_or(&self.options.machine);
                let others: CpuSet = known.cpus().filter(|cpu| !isolated.has(*cpu)).collect();
                if others.is_empty() { known.clone() } else { others }
            }
        };
        if let Some(index) = self.sets.get(&set) {
            return Some(*index);
        }
        let index = self.model.sets.len() as u32;
        self.model.sets.push(set.clone());
        self.sets.insert(set, index);
        Some(index)
    }

    /// The open sleep of a task ends in the queue of `cpu`.
    pub(super) fn wake(&mut self, track: &mut Track, task: &Task, cpu: Cpu, now: Ts, state: &SchedState) {
        let previous = task.ran_on.unwrap_or(self.model.tasks[track.index as usize].cpu);
        let Some(index) = track.sleep.take() else {
            return self.join(track, task, cpu, PlacedOn::Previous, now, state);
        };
        let waking = track.waking.take();
        track.asked = None;
        let placed = match waking {
            _ if cpu == previous => PlacedOn::Previous,
            Some(waking) if cpu == waking.on => PlacedOn::Waker,
            _ => PlacedOn::Other,
        };
        self.join(track, task, cpu, placed, now, state);
        let join = track.join;
        if waking.is_some() {
            self.note_search(task, previous, cpu, join, state);
        }
        let sleep = &mut self.model.sleeps[index as usize];
        (sleep.ends, sleep.join) = (true, join);
        match waking {
            Some(waking) if track.forced.is_none() => {
                let at = waking.at.max(sleep.start);
                sleep.announced = waking.at < sleep.start;
                (sleep.length, sleep.placing) = (at.since(sleep.start).0, now.since(at).0);
                (sleep.waker, sleep.on_task) = (waking.on, waking.on_task);
                sleep.class = match waking.by {
                    Some(_) if (PrevState::asleep(sleep.raw)).is_uninterruptible() => SleepClass::Lock,
                    Some(_) => SleepClass::Task,
                    None => waking.class,
                };
                if let Some((waker, at)) = waking.by {
                    self.model.tasks[waker as usize].steps[at] = ProgramStep::Wake(index);
                }
            }
            _ => {
                sleep.length = now.since(sleep.start).0;
                sleep.waker = cpu;
                sleep.class = track.forced.unwrap_or(SleepClass::Unknown);
            }
        }
        track.forced = None;
    }

    /// Notes whether a wakeup sought an idle CPU, where its task's previous CPU was busy.
    fn note_search(&mut self, task: &Task, previous: Cpu, target: Cpu, join: JoinIndex, state: &SchedState) {
        if state.running(previous).is_none_or(|running| running.pid == task.pid) {
            return;
        }
        let took = self.model.joins[join as usize].seeks_idle;
        let found = self.finds_idle(previous, target, join, state);
        self.sought.0 += u64::from(found);
        self.sought.1 += u64::from(found && took);
        // Where all were busy, it would have taken an idle one.
        self.model.joins[join as usize].seeks_idle = took || !found;
    }

    /// Whether a CPU under the cache of `near_to` idles that the task of a join may use, with an empty queue but for that task.
    pub(super) fn finds_idle(&self, near_to: Cpu, target: Cpu, join: JoinIndex, state: &SchedState) -> bool {
        let topology = &self.options.topology;
        let near = |cpu: Cpu| topology.group(cpu, CpuOrder::Llc) == topology.group(near_to, CpuOrder::Llc);
        let set = self.model.joins[join as usize].allowed.and_then(|set| self.model.sets.get(set as usize));
        let idle = |cpu: Cpu| state.current(cpu) == Current::Idle;
        let empty = |cpu: Cpu| state.queue_length(cpu) == u32::from(cpu == target);
        let mut free = state.observed().filter(|cpu| idle(*cpu) && empty(*cpu) && near(*cpu));
        free.any(|cpu| set.is_none_or(|set| set.has(cpu)))
    }

    /// A wait ends without a run: the time since the task joined counts as a sleep of this class.
    pub(super) fn set_aside(&mut self, track: &mut Track, class: SleepClass) {
        let joined = track.joined;
        let index = track.index as usize;
        let last = self.model.tasks[index].steps.iter().rposition(|step| {
            matches!(
                step,
                ProgramStep::Run(_)
                    | ProgramStep::Sleep(_)
                    | ProgramStep::Preempted(_)
                    | ProgramStep::Fork(_)
                    | ProgramStep::Wake(_)
            )
        });
        match last.map(|at| (at, self.model.tasks[index].steps[at])) {
            Some((_, ProgramStep::Sleep(sleep))) => {
                track.sleep = Some(sleep);
                self.model.sleeps[sleep as usize].ends = false;
            }
            Some((at, ProgramStep::Preempted(_))) => {
                self.model.tasks[index].steps.truncate(at);
                self.fall_asleep(track, joined, 0);
            }
            _ => self.fall_asleep(track, joined, 0),
        }
        track.forced = Some(class);
    }

    /// Follows the states of the CPUs that an event has changed.
    pub(super) fn watch_balancer(&mut self, event: &SchedEvent, state: &SchedState) {
        for span in state.spans() {
            for task in [span.state, span.next] {
                if let TaskState::Waiting(cpu) | TaskState::Running(cpu) = task {
                    self.cpu(cpu);
                    self.balancer.refresh(cpu, state);
                }
            }
        }
        if let EventKind::Switch { prev, next, .. } = event.kind {
            self.cpu(event.cpu);
            self.balancer.refresh(event.cpu, state);
            if next.pid.is_idle() && !prev.pid.is_idle() {
                self.balancer.goes_idle(event.cpu);
            }
        }
    }
}

/// The cause of a move to `dest`, which idles or not. `by_balancer`: whether a softirq woke the stopper of the CPU.
pub(super) fn kind_of_move(
    event: &SchedEvent,
    dest: Cpu,
    dest_idles: bool,
    by_balancer: bool,
    state: &SchedState,
) -> MoveKind {
    let running = state.running(event.cpu);
    if running.is_some_and(|task| is_any_stopper(task.comm)) {
        if by_balancer { MoveKind::Active } else { MoveKind::Stopper }
    } else if event.cpu == dest && !event.pid.is_idle() && event.in_task() {
        MoveKind::NewIdle
    } else if dest_idles && (event.pid.is_idle() || !event.in_task()) {
        MoveKind::Idle
    } else if !event.in_task() || running.is_some_and(|task| is_ksoftirqd(task.comm)) {
        MoveKind::Busy
    } else {
        MoveKind::Other
    }
}
