//! The analysis that makes the index: changes of the state, for the columns, and the lists.

mod joined;

use crate::columns::lane::{self, Id, LaneNow, OTHERS, UNKNOWN};
use crate::columns::longest::{CpuPath, Interval, Longest};
use crate::columns::machine::MachineNow;
use crate::columns::tasks::{PieceTasks, Tasks};
use crate::index::builder::{BATCH, Batch, Growth, IndexBuilder, LaneTurn, Publish};
use crate::index::scope::Scope;
use crate::index::tiles::{Index, IndexNotes};
use joined::IndexPiece;
use sched::analysis::Settled;
use sched::causes::{Herd, Herds};
use sched::{
    Analysis, Comm, Cpu, CpuSpan, Current, EventIssue, EventKind, Migration, PerTask, Pid, SchedEvent, SchedState,
    Severity, Span, TaskId, TaskState, Ts,
};
use std::sync::Arc;
use std::thread::Scope as Threads;
use std::time::{Duration, Instant};
use workcons::Watch;

/// The analysis that makes the index.
pub struct Indexer<'p> {
    scope: Scope,
    sprout: Sprout<'p>,
    /// The columns, from the start of the window on; a later piece of a pass has none.
    growth: Option<Growth<'p>>,
    batch: Batch,
    /// The lane of each CPU by its number; nothing for a CPU without a lane.
    lanes: Vec<Option<LaneState>>,
    now: MachineNow,
    watch: Watch,
    tasks: TaskPlaces,
    notes: IndexNotes,
    /// The waits that migrations continue: their start and their CPUs so far.
    moved: PerTask<(Ts, CpuPath)>,
    /// The number of waits that migrations continue.
    moving: usize,
    /// The number of contradictions so far: of all kinds, and of each.
    repairs: u64,
    of_kind: [u64; EventIssue::ALL.len()],
    /// The tasks whose waits are listed; nothing for all.
    waits_of: Option<&'p (dyn Fn(Pid) -> bool + Sync)>,
    /// Whether it counts migrations: the causes of those in longer columns are known already.
    counts_moves: bool,
    herds: Herds,
    largest: Longest<Herd>,
    /// The start of the episode of violation that lasts.
    violated: Option<Ts>,
    publishes: bool,
    published: Instant,
    /// The facts that a later piece of a pass leaves to the pieces before.
    piece: Option<Box<IndexPiece>>,
}

/// The ingredients of the columns, before they begin to grow.
struct Sprout<'p> {
    sampled: Option<Arc<Index>>,
    publish: Option<&'p Publish<'p>>,
    /// Lets the columns grow on a thread of their own, if there is one.
    beside: Option<Arc<GrowBeside<'p>>>,
}

type GrowBeside<'p> = dyn Fn(IndexBuilder<'p>) -> Growth<'p> + Send + Sync + 'p;

/// The lane of a CPU, and its latest state.
#[derive(Clone, Copy, Debug)]
struct LaneState {
    place: u32,
    current: Current,
    now: LaneNow,
}

/// The places of the tasks.
enum TaskPlaces {
    /// The places of a trace that is read as a whole: tasks get them as they are met.
    Learned(Tasks),
    /// The places of a trace of which a part is read: the tasks have them already.
    Known(Arc<Tasks>),
    /// The places within a later piece of a pass.
    OfPiece(PieceTasks),
}

impl TaskPlaces {
    #[inline]
    fn of(&mut self, pid: Pid, state: &SchedState) -> Id {
        match self {
            TaskPlaces::Learned(tasks) => tasks.place_of_new(pid, state),
            TaskPlaces::Known(tasks) => tasks.place(pid),
            TaskPlaces::OfPiece(tasks) => tasks.place_of_new(pid, state),
        }
    }

    /// A CPU's span has ended in which a task ran, whose place is `known` or not.
    #[inline]
    fn ran(&mut self, known: Option<Id>, pid: Pid, span: &CpuSpan, state: &SchedState) {
        match self {
            TaskPlaces::Learned(tasks) => {
                let place = known.unwrap_or_else(|| tasks.place_of_new(pid, state));
                tasks.ran(place, pid, span, state);
            }
            TaskPlaces::OfPiece(tasks) => {
                let place = known.unwrap_or_else(|| tasks.place_of_new(pid, state));
                tasks.ran(place, pid, span, state);
            }
            TaskPlaces::Known(_) => {}
        }
    }
}

/// A stretch in which a task waited on one CPU.
#[derive(Clone, Copy, Debug)]
struct WaitPart {
    task: TaskId,
    pid: Pid,
    start: Ts,
    end: Ts,
    cpu: Cpu,
    /// Whether a migration continues the wait on another CPU.
    goes_on: bool,
}

/// The time between two publications.
const PAUSE: Duration = Duration::from_millis(300);

/// The number of herds that are held until it is known that they do not grow any more.
const HERDS: usize = 1024;

impl<'p> Indexer<'p> {
    /// An empty index of this scope.
    pub fn new(scope: &Scope) -> Indexer<'p> {
        Indexer::publishing(scope, None, None, None)
    }

    /// An empty index of this scope, which publishes the coarse levels from time to time. Columns by samples are shown
    /// where no others are yet; their tasks keep their places. The columns grow on another of these threads, if there
    /// are any.
    pub fn publishing(
        scope: &Scope,
        sampled: Option<Arc<Index>>,
        publish: Option<&'p Publish<'p>>,
        threads: Option<&'p Threads<'p, '_>>,
    ) -> Indexer<'p> {
        let beside =
            threads.map(|threads| -> Arc<GrowBeside<'p>> { Arc::new(move |builder| Growth::beside(builder, threads)) });
        let sprout = Sprout { sampled, publish, beside };
        let tasks = TaskPlaces::Learned(Tasks::default());
        Indexer { publishes: publish.is_some(), ..Indexer::with(scope, sprout, tasks) }
    }

    /// The index with the waits of some tasks alone in its list.
    #[must_use]
    pub(crate) fn of_waits(self, tasks: &'p (dyn Fn(Pid) -> bool + Sync)) -> Indexer<'p> {
        Indexer { waits_of: Some(tasks), ..self }
    }

    /// The columns of one tile, finer than those of an index, whose tasks keep their places. Migrations are counted where
    /// the index has them in longer columns.
    pub fn finer(index: &Index, level: u32, tile: u64) -> Indexer<'p> {
        Indexer::stretch(index, (level, level), tile)
    }

    /// The same on several levels, for all tiles within a tile of the coarsest of them.
    pub(crate) fn stretch(index: &Index, levels: (u32, u32), tile: u64) -> Indexer<'p> {
        let scope = Scope { levels, ..index.scope.of_tile(levels.1, tile) };
        let sprout = Sprout { sampled: None, publish: None, beside: None };
        let counts_moves = levels.0 < index.moves.level();
        Indexer { counts_moves, ..Indexer::with(&scope, sprout, TaskPlaces::Known(Arc::clone(&index.tasks))) }
    }

    fn with(scope: &Scope, sprout: Sprout<'p>, tasks: TaskPlaces) -> Indexer<'p> {
        let size = scope.cpus.iter().map(|cpu| cpu.index() + 1).max().unwrap_or(0);
        let mut lanes = vec![None; size];
        for (place, cpu) in (0..).zip(&scope.cpus) {
            if let Some(lane) = lanes.get_mut(cpu.index()) {
                let now = LaneNow { occupant: UNKNOWN, queue: 0 };
                *lane = Some(LaneState { place, current: Current::Unknown, now });
            }
        }
        Indexer {
            scope: scope.clone(),
            sprout,
            growth: None,
            batch: Batch::default(),
            lanes,
            now: MachineNow::default(),
            watch: scope.watch(),
            tasks,
            notes: IndexNotes::default(),
            moved: PerTask::default(),
            moving: 0,
            repairs: 0,
            of_kind: [0; EventIssue::ALL.len()],
            waits_of: None,
            counts_moves: true,
            herds: Herds::default(),
            largest: Longest::default(),
            violated: None,
            publishes: false,
            published: Instant::now(),
            piece: None,
        }
    }

    /// Lets the columns grow from now on.
    fn grow(&mut self) {
        let Sprout { sampled, publish, beside } = &self.sprout;
        if let (Some(sampled), TaskPlaces::Learned(tasks)) = (sampled, &mut self.tasks) {
            *tasks = Tasks::clone(&sampled.tasks);
        }
        let builder = IndexBuilder::new(&self.scope, sampled.clone(), *publish);
        self.growth = Some(match beside {
            Some(beside) => beside(builder),
            None => Growth::Here(Box::new(builder)),
        });
    }

    /// Whether a trace is read as a whole, so that tasks and lists are learned.
    fn learns(&self) -> bool {
        !matches!(self.tasks, TaskPlaces::Known(_))
    }

    /// Takes from a state all that the analysis follows by itself.
    fn look_at(&mut self, state: &SchedState) {
        self.watch.begin(state);
        self.repairs = state.latest_repair().0;
        EventIssue::ALL.iter().zip(&mut self.of_kind).for_each(|(issue, number)| *number = state.repaired(*issue));
    }

    /// Notes the state of a CPU if it has changed.
    fn turn(&mut self, cpu: Cpu, at: u64, state: &SchedState) {
        let Some(Some(lane)) = self.lanes.get_mut(cpu.index()) else { return };
        let queue = if state.is_observed(cpu) { state.queue_length(cpu) } else { 0 };
        let current = state.current(cpu);
        let occupant = match current {
            same if same == lane.current => lane.now.occupant,
            Current::Task(pid) => self.tasks.of(pid, state),
            none => lane::of_no_task(none),
        };
        let now = LaneNow { occupant, queue };
        lane.current = current;
        if lane.now != now {
            lane.now = now;
            self.batch.lanes.push(LaneTurn { at, lane: lane.place, now });
        }
    }

    fn turn_machine(&mut self, ts: Ts, state: &SchedState) {
        let counts = state.counts();
        let new = MachineNow::of(counts, self.watch.is_violated(counts, state));
        if new != self.now {
            self.batch.machine.push((self.scope.time(ts), new));
            self.now = new;
            match (new.is_violated(), self.violated) {
                (true, None) => self.violated = Some(ts),
                (false, Some(_)) => self.episode_ends(ts),
                _ => {}
            }
        }
    }

    fn episode_ends(&mut self, ts: Ts) {
        if self.piece.as_mut().is_some_and(|piece| piece.ends_first_episode(ts)) {
            self.violated = None;
        }
        if let Some(from) = self.violated.take() {
            self.notes.episodes.add(Interval { from, to: ts, cpus: None, task: None });
        }
    }

    /// Notes the event of a trace that is read as a whole.
    fn note(&mut self, event: &SchedEvent, state: &SchedState) {
        match event.kind {
            EventKind::Lost { .. } => {
                self.notes.losses += 1;
                self.notes.places.add(EventIssue::EventsLost, event.ts, event.cpu);
            }
            EventKind::Exec { pid, .. } if self.notes.command.is_none() && state.root() == Some(pid) => {
                self.notes.command = Some(event.ts.since(self.scope.start).0);
            }
            _ => {}
        }
    }

    /// Notes the place of contradictions, of which one event can show several.
    #[cold]
    fn contradicted(&mut self, event: &SchedEvent, state: &SchedState) {
        self.repairs = state.latest_repair().0;
        for (issue, before) in EventIssue::ALL.iter().zip(&mut self.of_kind) {
            let number = state.repaired(*issue);
            if number > *before && issue.diagnostic().severity() > Severity::Note {
                self.notes.places.add(*issue, event.ts, event.cpu);
            }
            *before = number;
        }
    }

    /// Notes that a task, whose name is `comm`, has waited on a CPU. If it was moved, and waits on another, the wait goes
    /// on.
    fn waited(&mut self, part: &WaitPart, comm: impl FnOnce() -> Comm) {
        let WaitPart { task, pid, start, end, cpu, goes_on } = *part;
        let before = if self.moving > 0 { self.moved.take(task) } else { None };
        self.moving -= usize::from(before.is_some());
        let (from, cpus) = before.map_or((start, CpuPath::of(cpu)), |(from, cpus)| (from, cpus.and(cpu)));
        if goes_on {
            self.moved.insert(task, (from, cpus));
            self.moving += 1;
        } else if self.notes.waits.takes(end.since(from).0) {
            self.notes.waits.add(Interval { from, to: end, cpus: Some(cpus), task: Some((pid, comm())) });
        }
    }

    /// Hands the changes so far to the columns.
    #[cold]
    #[inline(never)]
    fn hand_over(&mut self, ts: Ts) {
        if let (true, TaskPlaces::Learned(tasks)) = (self.publishes && self.published.elapsed() >= PAUSE, &self.tasks) {
            self.batch.publish = Some((self.scope.time(ts), Arc::new(tasks.clone()), self.notes.clone()));
            self.published = Instant::now();
        }
        if let Some(growth) = &mut self.growth {
            growth.take(&mut self.batch);
        }
        if self.herds.found().len() >= HERDS {
            let settled = self.herds.settled(ts);
            settled.into_iter().for_each(|herd| self.largest.put(herd.tasks.into(), herd));
        }
    }
}

impl Analysis for Indexer<'_> {
    type Output = Index;
    const COUNTS: bool = true;
    const MIGRATIONS: bool = true;

    fn migrates(&self) -> bool {
        self.counts_moves
    }

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.grow();
        let at = self.scope.time(start);
        self.look_at(state);
        let cpus = self.scope.cpus.clone();
        cpus.iter().for_each(|cpu| self.turn(*cpu, at, state));
        self.turn_machine(start, state);
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        if let EventKind::Migrate { task, orig, dest } = event.kind
            && self.learns()
            && state.task_of(task.pid).is_some_and(|task| matches!(task.state, TaskState::Waiting(_)))
        {
            match &mut self.piece {
                Some(piece) => piece.queued.push((event.ts, orig, dest)),
                None => {
                    let _ = self.herds.migrate(event.ts, orig, dest);
                }
            }
        }
    }

    fn migrated(&mut self, migration: &Migration, settled: Settled, _: &SchedState) {
        if settled.is_inside() {
            self.batch.moves.push((self.scope.time(migration.ts), migration.cause));
        }
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        // How long a task waits on a CPU without events is unknown.
        if let TaskState::Waiting(cpu) = span.state
            && self.learns()
            && state.is_observed(cpu)
            && self.waits_of.is_none_or(|counts| counts(span.pid))
        {
            let goes_on = span.ended && matches!(span.next, TaskState::Waiting(next) if state.is_observed(next));
            let Span { task, pid, start, end, .. } = *span;
            let part = WaitPart { task, pid, start, end, cpu, goes_on };
            let comm = || state.task(task).map_or(Comm::EMPTY, |task| task.comm);
            let is_left = self.piece.as_mut().is_some_and(|piece| piece.leaves(&part, comm));
            if !is_left {
                self.waited(&part, comm);
            }
        }
    }

    fn cpu_span(&mut self, span: &CpuSpan, state: &SchedState) {
        if let Current::Task(pid) = span.current
            && self.learns()
        {
            let lane = self.lanes.get(span.cpu.index()).copied().flatten();
            let known = lane.filter(|lane| lane.current == span.current && lane.now.occupant != OTHERS);
            self.tasks.ran(known.map(|lane| lane.now.occupant), pid, span, state);
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        let touched = state.touched();
        self.watch.after(event, state);
        if !touched.is_empty() || matches!(event.kind, EventKind::Probe { .. }) {
            let at = self.scope.time(event.ts);
            touched.iter().for_each(|cpu| self.turn(*cpu, at, state));
            self.turn_machine(event.ts, state);
        }
        if self.learns() {
            self.note(event, state);
            if state.latest_repair().0 != self.repairs {
                self.contradicted(event, state);
            }
        }
        match &mut self.piece {
            Some(piece) => piece.latest = event.ts,
            None if self.batch.len() >= BATCH => self.hand_over(event.ts),
            None => {}
        }
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> Index {
        self.episode_ends(end);
        let mut index = match self.growth {
            Some(mut growth) => {
                growth.take(&mut self.batch);
                growth.finish(self.scope.time(end))
            }
            None => Index::new(&self.scope, Arc::default()),
        };
        self.herds.into_found().into_iter().for_each(|herd| self.largest.put(herd.tasks.into(), herd));
        self.notes.herds = self.largest.list();
        index.notes = self.notes;
        index.tasks = match self.tasks {
            TaskPlaces::Learned(mut tasks) => {
                tasks.meet_waiting(state);
                Arc::new(tasks)
            }
            TaskPlaces::Known(tasks) => tasks,
            TaskPlaces::OfPiece(_) => Arc::default(),
        };
        index
    }
}
