//! The model of a trace, built in one pass.

mod queues;

use crate::balancer::BalancerWatch;
use crate::burst_ends::{Arrival, BurstEnds, meet};
use crate::model::{
    Begin, LEAST_RUNS, LEAST_SLICE, Model, ModelCpu, ModelSleep, ModelTask, MoveKind, PlacedOn, ProgramStep,
    QueuedMove, SleepClass, SleepIndex, Taken, TaskIndex, USUAL_SLICE,
};
use crate::moves::Moves;
use crate::track::{Announcement, Track};
use sched::affinity::Affinity;

use queues::kind_of_move;
use sched::kthread::is_any_stopper;
use sched::limits::keep_of_pid;
use sched::seeded::SeededMap;
use sched::{
    Analysis, Cpu, CpuSet, Current, Dur, EventKind, PerTask, Pid, SchedEvent, SchedState, Span, Task, TaskFilter,
    TaskState, Topology, Ts,
};
use std::collections::{BTreeMap, BTreeSet};

/// The context of wakeups that events of the trace open and close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// The function of a timer begins.
    Timer,
    /// The handler of a device begins.
    Device,
    /// A timer's function or a device's handler ends.
    Left,
    /// A task asks for a sleep of a given length, or until a given time.
    Asked,
}

/// The facts besides the events that a model depends on.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions<'o> {
    /// The places of the CPUs; empty if they are unknown.
    pub topology: Topology,
    /// The CPUs that tasks may use, where lists or records restrict any.
    pub affinity: Option<&'o Affinity>,
    /// The isolated CPUs, to and from which no scheduler moves a task.
    pub isolated: CpuSet,
    /// The CPUs of the machine, where some are isolated.
    pub machine: CpuSet,
    /// The places of the calls that ask for a sleep until an absolute time.
    pub absolute: BTreeSet<(Ts, Cpu)>,
    /// The places at which the functions of timers begin that a task set with an expiry that the kernel counts as absolute, with that task.
    pub set_absolute: BTreeMap<(Ts, Cpu), Pid>,
    /// The tasks that spin at barriers: a burst that ends together with that of another one is work as far as the shortest of these
    /// bursts, and spinning from there on.
    pub spins: Option<TaskFilter>,
    /// The base slice of fair tasks, where a machine file has it.
    pub base_slice: Option<Dur>,
    /// Maximum number of times that tasks change their state; without one [`Model::LEAST_MOST_TURNS`].
    pub most_turns: Option<u64>,
    /// The numbers of events that show the context of a wakeup.
    pub contexts: SeededMap<u16, Context>,
}

/// The analysis that builds a [`Model`].
pub struct ModelBuilder<'o> {
    options: &'o BuildOptions<'o>,
    model: Model,
    tracks: PerTask<Track>,
    sets: SeededMap<CpuSet, u32>,
    /// The tasks that forked a child which has not been queued yet.
    forks: SeededMap<Pid, Pid>,
    /// The open context of each CPU, with the task that set an absolute timer.
    contexts: Vec<Option<(Context, Option<Pid>)>>,
    dispatches: Vec<u64>,
    slices: Vec<u64>,
    /// The wakeups of tasks whose previous CPU was busy beside an idle one, and those placed on an idle CPU.
    sought: (u64, u64),
    offline: Vec<Cpu>,
    /// Whether a softirq woke the stopper of each CPU last, as active balancing does.
    stopped_by_balancer: Vec<bool>,
    ends: BurstEnds,
    arrivals: Vec<Arrival>,
    moves: Moves,
    balancer: BalancerWatch,
}

/// The bit of an event's flags that a hard interrupt sets.
const HARD_INTERRUPT: u8 = 0x08;

impl<'o> ModelBuilder<'o> {
    /// Whether the window has more than the model may hold.
    pub fn is_cut(&self) -> bool {
        self.model.is_cut()
    }

    /// Returns the builder with these facts.
    pub fn new(options: &'o BuildOptions<'o>) -> ModelBuilder<'o> {
        ModelBuilder {
            options,
            model: Model { most_turns: options.most_turns.unwrap_or(Model::LEAST_MOST_TURNS), ..Model::default() },
            tracks: PerTask::default(),
            sets: SeededMap::default(),
            forks: SeededMap::default(),
            contexts: Vec::new(),
            dispatches: Vec::new(),
            slices: Vec::new(),
            sought: (0, 0),
            offline: Vec::new(),
            stopped_by_balancer: Vec::new(),
            ends: BurstEnds::default(),
            arrivals: Vec::new(),
            moves: Moves::default(),
            balancer: BalancerWatch::default(),
        }
    }

    fn cpu(&mut self, cpu: Cpu) -> &mut ModelCpu {
        if cpu.index() >= self.model.cpus.len() {
            self.model.cpus.resize_with(cpu.index() + 1, ModelCpu::default);
            self.contexts.resize(cpu.index() + 1, None);
            self.stopped_by_balancer.resize(cpu.index() + 1, false);
            self.balancer.grow(cpu.index() + 1, &self.options.topology);
        }
        &mut self.model.cpus[cpu.index()]
    }

    /// Adds a task that is in `state` since `since`, and returns its track.
    fn admit(&mut self, task: &Task, since: Ts, before: TaskState, state: &SchedState) -> Track {
        let index = self.model.tasks.len() as TaskIndex;
        let cpu = match before {
            TaskState::Running(cpu) | TaskState::Waiting(cpu) | TaskState::Throttled(cpu) | TaskState::Asleep(cpu) => {
                cpu
            }
            TaskState::Unknown | TaskState::Dead => task.ran_on.unwrap_or_default(),
        };
        self.cpu(cpu);
        let prio = task.known_prio().unwrap_or(120);
        let (pid, parent, comm) = (task.pid, task.kin.parent, task.comm);
        let begin = Begin::Sleeps;
        let allowed = self.allowed(task, cpu, state);
        let id = Some(task.id());
        self.model.tasks.push(ModelTask { id, pid, parent, comm, prio, cpu, allowed, begin, steps: Vec::new() });
        let mut track = Track {
            index,
            run_from: since,
            run_start: since,
            burst: 0,
            sleep: None,
            forced: None,
            waking: None,
            join: 0,
            joined: since,
            idle_at: None,
            is_movable: false,
            prio,
            comm,
            asked: None,
        };
        self.model.tasks[index as usize].begin = match before {
            TaskState::Running(cpu) => Begin::Runs(cpu),
            TaskState::Waiting(cpu) => {
                self.join(&mut track, task, cpu, PlacedOn::Previous, since, state);
                if track.is_movable {
                    self.balancer.waits(cpu);
                }
                Begin::Waits(track.join)
            }
            _ if task.born.is_some_and(|born| born >= since) => Begin::Sleeps,
            _ => {
                self.fall_asleep(&mut track, since, 1);
                track.forced = match before {
                    TaskState::Unknown => Some(SleepClass::Unknown),
                    TaskState::Throttled(_) => Some(SleepClass::Throttled),
                    _ => None,
                };
                Begin::Sleeps
            }
        };
        track
    }

    fn steps(&mut self, track: &Track) -> &mut Vec<ProgramStep> {
        &mut self.model.tasks[track.index as usize].steps
    }

    /// Adds the run up to `now` to the program.
    fn run_until(&mut self, track: &mut Track, now: Ts) {
        let ran = now.since(track.run_from).0;
        track.run_from = now;
        track.burst += ran;
        if ran > 0 {
            self.steps(track).push(ProgramStep::Run(ran));
        }
    }

    fn fall_asleep(&mut self, track: &mut Track, start: Ts, raw: u32) {
        let index = self.model.sleeps.len() as SleepIndex;
        self.model.sleeps.push(ModelSleep {
            task: track.index,
            class: SleepClass::Unknown,
            start,
            length: 0,
            ends: false,
            on_task: false,
            announced: false,
            raw,
            placing: 0,
            waker: Cpu(0),
            join: 0,
        });
        track.sleep = Some(index);
        track.forced = None;
        self.steps(track).push(ProgramStep::Sleep(index));
    }

    /// The task that emits an event in task context, with its program up to that instant.
    fn emitter(&mut self, event: &SchedEvent, state: &SchedState) -> Option<Track> {
        if !event.in_task() || event.pid.is_idle() {
            return None;
        }
        let task = *state.running(event.cpu).filter(|task| task.pid == event.pid)?;
        let mut track = match self.tracks.get(task.id()) {
            Some(track) => *track,
            None => self.admit(&task, task.since.max(self.model.start), task.state, state),
        };
        self.run_until(&mut track, event.ts);
        self.tracks.insert(task.id(), track);
        Some(track)
    }

    fn add_step(&mut self, event: &SchedEvent, state: &SchedState, step: ProgramStep) {
        if let Some(mut track) = self.emitter(event, state) {
            self.steps(&track).push(step);
            if let (ProgramStep::Exec(comm) | ProgramStep::Rename(comm), Some(task)) = (step, state.running(event.cpu))
            {
                track.comm = comm;
                self.tracks.insert(task.id(), track);
            }
        }
    }

    /// A wakeup begins.
    fn announce(&mut self, event: &SchedEvent, pid: Pid, state: &SchedState) {
        let by = self.emitter(event, state).map(|waker| {
            let steps = self.steps(&waker);
            steps.push(ProgramStep::Nothing);
            (waker.index, steps.len() - 1)
        });
        let Some(task) = state.task_of(pid).copied() else { return };
        let turned = state.turns().find(|(turned, _)| turned.pid == pid).map(|(_, span)| (span.start, span.state));
        let (since, before) = turned.unwrap_or((task.since, task.state));
        let mut track = match self.tracks.get(task.id()) {
            Some(track) => *track,
            None => self.admit(&task, since.max(self.model.start), before, state),
        };
        let class = match (self.contexts.get(event.cpu.index()).copied().flatten(), track.asked) {
            (Some((Context::Device, _)), _) => SleepClass::Device,
            (_, Some(true)) => SleepClass::AbsoluteTimer,
            (_, Some(false)) => SleepClass::Timer,
            (Some((Context::Timer, Some(setter))), None) if setter == pid => SleepClass::EitherTimer,
            (Some((Context::Timer, _)), None) => SleepClass::Timer,
            _ => SleepClass::Interrupt,
        };
        self.cpu(event.cpu);
        let is_softirq = event.in_softirq() && event.flags & HARD_INTERRUPT == 0;
        let under = state.running(event.cpu).filter(|on| is_softirq && !on.pid.is_idle());
        let on_task = under.is_some_and(|on| !on.kin.is_of_kernel(on.comm));
        track.waking = Some(Announcement { at: event.ts, on: event.cpu, by, class, on_task });
        self.tracks.insert(task.id(), track);
    }

    /// The task is switched in on `cpu`.
    fn dispatch(&mut self, track: &mut Track, span: &Span, cpu: Cpu, now: Ts) {
        let runs = self.cpu(cpu).runs.len();
        let waited = now.since(span.start).0;
        if span.state != TaskState::Waiting(cpu) {
            self.move_to(track, cpu, now, MoveKind::NewIdle);
        } else if track.idle_at == Some(runs) {
            self.model.joins[track.join as usize].dispatch = Some(waited);
            self.dispatches.push(waited);
        }
        self.model.joins[track.join as usize].waited = now.since(track.joined).0;
        let index = track.index;
        self.cpu(cpu).runs.push(index);
        (track.run_from, track.run_start) = (now, now);
    }

    /// The waiting task moves to the queue of `dest`.
    fn move_to(&mut self, track: &mut Track, dest: Cpu, now: Ts, kind: MoveKind) {
        self.cpu(dest);
        let after = now.since(track.joined).0;
        self.moves.add(track.join, QueuedMove { after, dest, kind });
    }

    /// A task changes its state.
    fn turn(&mut self, task: &Task, span: &Span, event: &SchedEvent, state: &SchedState) {
        let (now, start) = (event.ts, self.model.start);
        let mut track = match self.tracks.get(task.id()) {
            Some(track) => *track,
            None => self.admit(task, span.start.max(start), span.state, state),
        };
        if let (TaskState::Waiting(cpu), true) = (span.state, track.is_movable) {
            self.balancer.leaves(cpu);
        }
        match (span.state, span.next) {
            (TaskState::Running(_), next) => self.leaves_cpu(&mut track, task, next, event, state),
            (TaskState::Waiting(_), TaskState::Running(cpu)) => self.dispatch(&mut track, span, cpu, now),
            (TaskState::Waiting(from), TaskState::Waiting(dest)) => {
                let idle = state.current(dest) == Current::Idle && state.queue_length(dest) <= 1;
                let by_balancer = self.stopped_by_balancer.get(event.cpu.index()).is_some_and(|is| *is);
                let kind = kind_of_move(event, dest, idle, by_balancer, state);
                self.move_to(&mut track, dest, now, kind);
                if matches!(kind, MoveKind::Stopper | MoveKind::Active) {
                    // It moves tasks that may not use their CPU any more.
                    self.model.joins[track.join as usize].allowed = self.allowed(task, dest, state);
                }
                if track.is_movable {
                    self.balancer.moved(from, dest, kind);
                }
                track.idle_at = idle.then(|| self.cpu(dest).runs.len());
            }
            (TaskState::Waiting(_), TaskState::Throttled(_)) => self.set_aside(&mut track, SleepClass::Throttled),
            (TaskState::Waiting(_), _) => self.set_aside(&mut track, SleepClass::Unknown),
            (_, TaskState::Waiting(cpu)) if task.born == Some(now) => self.is_born(&mut track, task, cpu, event, state),
            (_, TaskState::Waiting(cpu)) => self.wake(&mut track, task, cpu, now, state),
            (_, TaskState::Running(cpu)) => {
                track.waking = None;
                self.wake(&mut track, task, cpu, now, state);
                let index = track.index;
                self.cpu(cpu).runs.push(index);
                (track.run_from, track.run_start) = (now, now);
            }
            (_, TaskState::Unknown) => track.forced = Some(SleepClass::Unknown),
            (_, TaskState::Throttled(_)) => track.forced = Some(SleepClass::Throttled),
            _ => {}
        }
        if let (TaskState::Waiting(cpu), true) = (span.next, track.is_movable) {
            self.balancer.waits(cpu);
        }
        if let Some(prio) = task.known_prio().filter(|prio| *prio != track.prio) {
            track.prio = prio;
            self.steps(&track).push(ProgramStep::Priority(prio));
        }
        self.tracks.insert(task.id(), track);
    }

    /// The running task leaves its CPU.
    fn leaves_cpu(&mut self, track: &mut Track, task: &Task, next: TaskState, event: &SchedEvent, state: &SchedState) {
        let now = event.ts;
        let ran = now.since(track.run_start).0;
        self.run_until(track, now);
        // A name that no event announced, such as that of a thread where `task_rename` was not recorded.
        if task.comm != track.comm && !task.comm.is_empty() {
            track.comm = task.comm;
            self.steps(track).push(ProgramStep::Rename(task.comm));
        }
        let raw = if let EventKind::Switch { state, .. } = event.kind { state.raw } else { 0 };
        match next {
            TaskState::Waiting(cpu) => {
                if let EventKind::Switch { next, .. } = event.kind
                    && task.prio >= 100
                    && next.prio >= 100
                    && self.has_waited(state, next.pid, track.run_start)
                {
                    self.slices.push(ran);
                }
                self.join(track, task, cpu, PlacedOn::Previous, now, state);
                let join = track.join;
                self.steps(track).push(ProgramStep::Preempted(join));
            }
            TaskState::Dead => self.steps(track).push(ProgramStep::Die),
            TaskState::Asleep(_) => {
                self.ends.note(now, track.index, task.comm);
                if self.options.spins.as_ref().is_some_and(|spins| spins.takes(task.pid, || task.comm)) {
                    let step = self.steps(track).len();
                    self.arrivals.push(Arrival { at: now, task: track.index, step, burst: track.burst });
                }
                track.burst = 0;
                self.fall_asleep(track, now, raw);
            }
            TaskState::Throttled(_) => {
                self.fall_asleep(track, now, 0);
                track.forced = Some(SleepClass::Throttled);
            }
            TaskState::Unknown | TaskState::Running(_) => {
                self.fall_asleep(track, now, 0);
                track.forced = Some(SleepClass::Unknown);
            }
        }
        if !matches!(next, TaskState::Asleep(_)) {
            track.waking = None;
        }
    }

    /// Whether a task that is switched in now had waited since `since`.
    fn has_waited(&self, state: &SchedState, pid: Pid, since: Ts) -> bool {
        let id = state.task_of(pid).map(Task::id);
        id.and_then(|id| self.tracks.get(id)).is_some_and(|next| next.joined <= since)
    }

    /// A new life begins in the queue of `cpu`.
    fn is_born(&mut self, track: &mut Track, task: &Task, cpu: Cpu, event: &SchedEvent, state: &SchedState) {
        self.join(track, task, cpu, PlacedOn::Other, event.ts, state);
        let (child, join) = (track.index, track.join);
        if state.running(cpu).is_some() {
            self.model.joins[join as usize].seeks_idle = !self.finds_idle(cpu, cpu, join, state);
        }
        let parent = self.emitter(event, state);
        let known = self.forks.remove(&task.pid);
        let new = &mut self.model.tasks[child as usize];
        new.cpu = cpu;
        new.parent = new.parent.or(known);
        match parent {
            Some(parent) => {
                new.begin = Begin::Forked(join);
                self.steps(&parent).push(ProgramStep::Fork(child));
            }
            None => new.begin = Begin::At(event.ts, join),
        }
    }

    fn follow_context(&mut self, event: &SchedEvent, id: u16, state: &SchedState) {
        match self.options.contexts.get(&id) {
            Some(Context::Asked) => {
                if let Some(mut track) = self.emitter(event, state) {
                    track.asked = Some(self.options.absolute.contains(&(event.ts, event.cpu)));
                    if let Some(task) = state.running(event.cpu) {
                        self.tracks.insert(task.id(), track);
                    }
                }
            }
            Some(Context::Left) => {
                self.cpu(event.cpu);
                self.contexts[event.cpu.index()] = None;
            }
            Some(context) => {
                self.cpu(event.cpu);
                let setter = self.options.set_absolute.get(&(event.ts, event.cpu)).copied();
                self.contexts[event.cpu.index()] = Some((*context, setter));
            }
            None => {}
        }
    }
}

impl Analysis for ModelBuilder<'_> {
    type Output = Model;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.model.start = start;
        self.balancer.begin(start);
        for cpu in state.observed() {
            self.cpu(cpu);
            let here: Vec<Task> = state.running(cpu).into_iter().chain(state.waiting(cpu)).copied().collect();
            for task in here {
                let track = self.admit(&task, start, task.state, state);
                self.tracks.insert(task.id(), track);
            }
            self.balancer.refresh(cpu, state);
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        // A waking adds a step or two, whether or not a task changes its state.
        self.model.turns += state.spans().len() as u64 + u64::from(matches!(event.kind, EventKind::Waking { .. }));
        if self.model.is_cut() {
            return;
        }
        match event.kind {
            EventKind::Switch { .. } => self.model.switches += 1,
            EventKind::Waking { task, target } => {
                if is_any_stopper(task.comm) {
                    self.cpu(target);
                    self.stopped_by_balancer[target.index()] = !event.in_task();
                }
                self.announce(event, task.pid, state);
            }
            EventKind::Fork { parent, child, .. } => keep_of_pid(&mut self.forks, child, parent),
            EventKind::Exec { program, .. } => self.add_step(event, state, ProgramStep::Exec(program)),
            EventKind::Rename { pid, after, .. } if pid == event.pid => {
                self.add_step(event, state, ProgramStep::Rename(after));
            }
            EventKind::Exit { pid } if pid == event.pid => {
                self.add_step(event, state, ProgramStep::Exit);
                if state.root() == Some(pid) {
                    let id = state.task_of(pid).map(Task::id);
                    self.model.root = id.and_then(|id| self.tracks.get(id)).map(|track| track.index);
                    self.model.exit = Some(event.ts);
                }
            }
            EventKind::Offline => self.offline.push(event.cpu),
            EventKind::Interrupt { id, .. } | EventKind::Other { id } => self.follow_context(event, id, state),
            _ => {}
        }
        self.balancer.advance(event.ts);
        // A switch ends a run before it begins another one.
        for (task, span) in state.turns() {
            self.turn(task, span, event, state);
        }
        self.watch_balancer(event, state);
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> Model {
        for cpu in state.observed() {
            self.cpu(cpu);
            self.model.cpus[cpu.index()].usable = !self.offline.contains(&cpu);
            if let Some(task) = state.running(cpu).copied()
                && let Some(mut track) = self.tracks.get(task.id()).copied()
            {
                self.run_until(&mut track, end);
            }
        }
        let count = |steps: &[ProgramStep]| steps.iter().filter(|step| **step == ProgramStep::Nothing).count() as u64;
        let median = |lengths: &mut Vec<u64>| {
            lengths.sort_unstable();
            Dur(lengths.get(lengths.len() / 2).copied().unwrap_or(0))
        };
        let slice = (self.slices.len() >= LEAST_RUNS).then(|| median(&mut self.slices).max(LEAST_SLICE));
        // Of runs that are shorter than the base slice most end by a sleep, and those that do not used up the rest of an earlier one.
        let base = self.options.base_slice;
        let least_slice = self.model.least_slice().max(base.unwrap_or_default());
        self.model.taken = Taken {
            dispatch_ns: median(&mut self.dispatches),
            slice_ns: slice.or(base).unwrap_or(USUAL_SLICE).max(least_slice),
            slice_is_measured: slice.is_some_and(|slice| slice >= least_slice),
            wakeups_seek_idle: self.sought.1 > 0,
            balancing: self.balancer.finish(end),
        };
        self.model.spinners = self.ends.spinners();
        meet(&mut self.model, &self.arrivals);
        self.moves.give(&mut self.model);
        let Model { end: model_end, tasks, early_wakeups, .. } = &mut self.model;
        *model_end = end;
        for task in tasks {
            *early_wakeups += count(&task.steps);
            task.steps.retain(|step| *step != ProgramStep::Nothing);
            task.steps.shrink_to_fit();
        }
        self.model
    }
}
