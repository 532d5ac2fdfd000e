//! The index: columns of all CPUs and of the machine, made in one pass.

use crate::Shape;
use crate::lane::{self, Id, LaneColumn, LaneNow, SumColumn, UNKNOWN};
use crate::longest::{Interval, LISTED, Longest};
use crate::machine::{self, MachineColumn, MachineNow};
use crate::moves::{CAUSES, Moves};
use crate::scope::Scope;
use crate::tasks::Tasks;
use crate::tree::Tree;
use sched::causes::{Herd, Herds};
use sched::{Analysis, Causes, Comm, Cpu, CpuSpan, Current, Kind, SchedEvent, SchedState, Span, TaskState, Ts};
use std::ops::Range;
use std::sync::Arc;

/// The columns of a trace, or of a part of it.
#[derive(Clone, Debug)]
pub struct Index {
    pub(crate) scope: Scope,
    pub(crate) lanes: Vec<Tree<LaneColumn>>,
    pub(crate) machine: Tree<MachineColumn>,
    pub(crate) moves: Moves,
    /// Shared with the parts that are finer.
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) notes: Notes,
    /// Columns by samples, where no others are yet.
    pub(crate) sampled: Option<Arc<Index>>,
}

/// The lists of a trace, and other facts about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    pub(crate) episodes: Longest,
    pub(crate) waits: Longest,
    pub(crate) herds: (Vec<Herd>, u64),
    /// The time at which the traced command began.
    pub(crate) command: Option<u64>,
    pub(crate) losses: u64,
}

/// A list of intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Episodes in which a CPU idled while a task waited on another.
    Episodes,
    /// The waits of tasks on run queues.
    Waits,
}

/// The start of a sample, and its occupants, each with its time.
pub(crate) type Mixture = (Ts, Vec<(Id, u64)>);

/// Four characters that begin each tile.
const LANE_TILE: &[u8; 4] = b"SVT2";
const MACHINE_TILE: &[u8; 4] = b"SVM1";

impl Index {
    fn new(scope: &Scope, tasks: Arc<Tasks>) -> Index {
        let (base, top) = scope.levels;
        Index {
            scope: scope.clone(),
            lanes: scope.cpus.iter().map(|_| Tree::new(base, top)).collect(),
            machine: Tree::new(base, top),
            moves: Moves::new(scope.span, scope.room / 4),
            tasks,
            notes: Notes::default(),
            sampled: None,
        }
    }

    /// The coarse levels by samples of each CPU in the order of time: each begins at an instant, stands for the time up to
    /// the next one, and divides it among occupants.
    pub(crate) fn sampled<'s>(scope: &Scope, tasks: Tasks, samples: impl Fn(Cpu) -> &'s [Mixture]) -> Index {
        let levels = scope.coarse_levels();
        let mut index = Index::new(&Scope { levels, ..scope.clone() }, Arc::new(tasks));
        for (cpu, tree) in scope.cpus.iter().zip(&mut index.lanes) {
            let samples = samples(*cpu);
            for (nth, (_, mixture)) in samples.iter().enumerate() {
                let end = samples.get(nth + 1).map_or(scope.span, |(next, _)| scope.time(*next));
                tree.fill(end, |column, ns| column.pass_as(mixture, ns));
            }
            tree.finish();
        }
        index
    }

    /// Calls `each` with the runs of columns of a lane in a tile. Returns the number of columns.
    fn columns(&self, lane: usize, level: u32, index: u64, mut each: impl FnMut(u64, &[u8])) -> u64 {
        let columns = self.scope.shape.columns;
        let first = index * columns;
        let of = |index: &Index, from: u64, each: &mut dyn FnMut(u64, &[u8])| {
            index.lanes.get(lane).map_or(0, |tree| tree.columns(level, first + from, columns - from, each))
        };
        let read = of(self, 0, &mut each);
        match &self.sampled {
            Some(sampled) if read < columns => read + of(sampled, read, &mut each),
            _ => read,
        }
    }

    /// The start of the traced command, in nanoseconds from the start of the trace, if the trace shows that.
    pub fn command(&self) -> Option<u64> {
        self.notes.command
    }

    /// The number of places where events were lost.
    pub fn losses(&self) -> u64 {
        self.notes.losses
    }

    /// The longest intervals of a kind, the longest first, and the number of those that are not in the list.
    pub fn list(&self, list: List) -> (Vec<Interval>, u64) {
        match list {
            List::Episodes => self.notes.episodes.list(),
            List::Waits => self.notes.waits.list(),
        }
    }

    /// The largest herds of migrations, the largest first, and the number of those that are not in the list.
    pub fn herds(&self) -> &(Vec<Herd>, u64) {
        &self.notes.herds
    }

    /// The finest and the coarsest level of its columns.
    pub fn levels(&self) -> (u32, u32) {
        self.scope.levels
    }

    /// The bytes that its columns take.
    pub fn size(&self) -> usize {
        self.lanes.iter().map(Tree::size).sum::<usize>() + self.machine.size() + self.moves.size()
    }

    /// The shape of its tiles.
    pub fn shape(&self) -> Shape {
        self.scope.shape
    }

    /// The CPUs, in the order of the lanes.
    pub fn cpus(&self) -> &[Cpu] {
        &self.scope.cpus
    }

    /// The tasks that the tiles name.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Whether a tile of this level begins within the trace.
    pub fn has_tile(&self, level: u32, index: u64) -> bool {
        level <= self.scope.levels.1 && index <= self.scope.span >> level >> self.scope.shape.shift()
    }

    /// The window of a tile.
    pub fn window(&self, level: u32, index: u64) -> (Ts, Ts) {
        let tile = self.scope.of_tile(level, index);
        (tile.start, Ts(tile.start.0 + tile.span as i64))
    }

    /// An analysis that makes the columns of one tile, finer than those of the index.
    pub fn finer(&self, level: u32, index: u64) -> Indexer<'_> {
        Indexer::of_part(&self.scope.of_tile(level, index), &self.tasks)
    }

    /// The tile `index` of the lanes of a group; nothing if these columns are not in the index.
    pub fn lanes(&self, level: u32, group: usize, index: u64) -> Option<Vec<u8>> {
        let (columns, most) = (self.scope.shape.columns, self.scope.shape.lanes);
        let first = group.checked_mul(most).filter(|first| *first < self.lanes.len())?;
        let lanes = first..self.lanes.len().min(first + most);
        if level < self.scope.levels.0 || !self.has_tile(level, index) {
            return None;
        }
        let mut tile = self.lane_tile(lanes.len());
        for lane in lanes {
            let stored = self.columns(lane, level, index, |run, form| lane::put_run(&mut tile, run, form));
            lane::put_run(&mut tile, columns - stored, lane::NOTHING);
        }
        Some(tile)
    }

    /// The start of a tile with this number of lanes.
    fn lane_tile(&self, lanes: usize) -> Vec<u8> {
        let mut tile = Vec::with_capacity(4096);
        tile.extend(LANE_TILE);
        tile.extend((self.scope.shape.columns as u16).to_le_bytes());
        tile.extend((lanes as u16).to_le_bytes());
        tile
    }

    /// The tile `index` of these lanes together, as one lane; nothing if these columns are not in the index.
    pub fn sum(&self, level: u32, lanes: Range<usize>, index: u64) -> Option<Vec<u8>> {
        if lanes.is_empty()
            || lanes.end > self.lanes.len()
            || level < self.scope.levels.0
            || !self.has_tile(level, index)
        {
            return None;
        }
        let mut sums = vec![SumColumn::default(); self.scope.shape.columns as usize];
        for lane in lanes {
            let mut sums = sums.iter_mut();
            self.columns(lane, level, index, |run, form| {
                sums.by_ref().take(run as usize).for_each(|sum| sum.add(form));
            });
        }
        let mut forms = sums.iter_mut().map(|sum| {
            let mut form = Vec::new();
            sum.encode(&mut form);
            form
        });
        let (mut tile, mut last, mut run) = (self.lane_tile(1), forms.next()?, 1);
        for form in forms {
            if form != last {
                lane::put_run(&mut tile, run, &last);
                (last, run) = (form, 0);
            }
            run += 1;
        }
        lane::put_run(&mut tile, run, &last);
        Some(tile)
    }

    /// The tile `index` of the machine; nothing if these columns are not in the index.
    pub fn machine(&self, level: u32, index: u64) -> Option<Vec<u8>> {
        if level < self.scope.levels.0 || !self.has_tile(level, index) {
            return None;
        }
        let moves = self.moves.columns(level, index * self.scope.shape.columns, self.scope.shape.columns as usize);
        Some(machine_tile(&self.machine, level, index, &moves))
    }

    /// The tile `index` of the machine, whose columns are those of `part`, which [`Index::finer`] made.
    pub fn machine_of(&self, part: &Index, level: u32, index: u64) -> Vec<u8> {
        // The causes of migrations depend on what happened before a part, and after it.
        let columns = self.scope.shape.columns;
        let moves = match level >= self.moves.level() {
            true => self.moves.columns(level, index * columns, columns as usize),
            false => part.moves.columns(level, 0, columns as usize),
        };
        machine_tile(&part.machine, level, 0, &moves)
    }

    /// The same with columns by samples behind its own.
    #[cfg(test)]
    pub(crate) fn before(self, sampled: Index) -> Index {
        Index { sampled: Some(Arc::new(sampled)), ..self }
    }

    /// A copy with the coarse levels alone, of the part that was read.
    fn coarse(&self) -> Index {
        let (from, top) = self.scope.coarse_levels();
        let mut moves = self.moves.clone();
        moves.sum();
        Index {
            scope: Scope { levels: (from, top), ..self.scope.clone() },
            sampled: self.sampled.clone(),
            lanes: self.lanes.iter().map(|tree| tree.coarse(from)).collect(),
            machine: self.machine.coarse(from),
            moves,
            tasks: Arc::clone(&self.tasks),
            notes: self.notes.clone(),
        }
    }

    /// Drops the finest level, where the columns take more than their room.
    fn fit(&mut self) {
        while self.size() > self.scope.room && self.scope.levels.0 < self.scope.levels.1 {
            self.lanes.iter_mut().for_each(Tree::coarsen);
            self.machine.coarsen();
            self.scope.levels.0 += 1;
        }
    }

    fn finish(&mut self) {
        self.lanes.iter_mut().for_each(Tree::finish);
        self.machine.finish();
        self.moves.sum();
        self.fit();
        self.sampled = None;
    }
}

/// A tile of the machine from its columns, and the migrations in each.
fn machine_tile(tree: &Tree<MachineColumn>, level: u32, index: u64, moves: &[[u32; CAUSES]]) -> Vec<u8> {
    let count = moves.len() as u64;
    let mut columns = Vec::with_capacity(moves.len() * machine::SIZE);
    tree.columns(level, index * count, count, |run, form| (0..run).for_each(|_| columns.extend_from_slice(form)));
    let nothing: Vec<u8> = f32::NAN.to_le_bytes().repeat(machine::SIZE / size_of::<f32>());
    let mut columns = columns.chunks_exact(machine::SIZE);
    let mut tile = Vec::with_capacity(8 + moves.len() * (machine::SIZE + 4 * CAUSES));
    tile.extend(MACHINE_TILE);
    tile.extend((count as u16).to_le_bytes());
    tile.extend((CAUSES as u16).to_le_bytes());
    for moves in moves {
        tile.extend_from_slice(columns.next().unwrap_or(&nothing));
        moves.iter().for_each(|count| tile.extend(count.to_le_bytes()));
    }
    tile
}

/// Receives the coarse levels of the part that is indexed so far.
pub type Publish<'p> = dyn Fn(Index) + Sync + 'p;

/// The analysis that makes the index.
pub struct Indexer<'p> {
    index: Index,
    /// By CPU: the place of its lane, and its state, which has held since the lane's tree ends.
    lanes: Vec<Option<(usize, LaneNow)>>,
    now: MachineNow,
    causes: Causes,
    herds: Herds,
    /// The start of the episode of violation that lasts.
    violated: Option<Ts>,
    /// Tasks get places; else they have them all.
    learns: bool,
    publish: Option<&'p Publish<'p>>,
    events: u64,
    published: std::time::Instant,
}

/// The largest herds, and the number of the others.
fn largest(herds: Herds) -> (Vec<Herd>, u64) {
    let mut herds = herds.into_found();
    herds.sort_by_key(|herd| (std::cmp::Reverse(herd.tasks), herd.start));
    let dropped = herds.len().saturating_sub(LISTED);
    herds.truncate(LISTED);
    (herds, dropped as u64)
}

/// The number of events between two looks at the size and at the clock.
const ROUND: u64 = 1 << 15;
/// The time between two publications.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(300);

impl<'p> Indexer<'p> {
    /// An empty index of this scope.
    pub fn new(scope: &Scope) -> Indexer<'p> {
        Indexer::with(Index::new(scope, Arc::default()), true)
    }

    fn of_part(scope: &Scope, tasks: &Arc<Tasks>) -> Indexer<'p> {
        Indexer::with(Index::new(scope, Arc::clone(tasks)), false)
    }

    fn with(index: Index, learns: bool) -> Indexer<'p> {
        let size = index.scope.cpus.iter().map(|cpu| cpu.index() + 1).max().unwrap_or(0);
        let mut lanes = vec![None; size];
        for (place, cpu) in index.scope.cpus.iter().enumerate() {
            if let Some(lane) = lanes.get_mut(cpu.index()) {
                *lane = Some((place, LaneNow { occupant: UNKNOWN, queue: 0 }));
            }
        }
        Indexer {
            index,
            lanes,
            now: MachineNow::default(),
            causes: Causes::default(),
            herds: Herds::default(),
            violated: None,
            learns,
            publish: None,
            events: 0,
            published: std::time::Instant::now(),
        }
    }

    /// Shows these columns by samples where no others are yet. Their tasks keep their places.
    #[must_use]
    pub fn over(mut self, sampled: Option<Arc<Index>>) -> Indexer<'p> {
        if let Some(sampled) = &sampled {
            self.index.tasks = Arc::clone(&sampled.tasks);
        }
        self.index.sampled = sampled;
        self
    }

    /// Publishes the coarse levels from time to time.
    #[must_use]
    pub fn publishing(self, publish: &'p Publish<'p>) -> Indexer<'p> {
        Indexer { publish: Some(publish), ..self }
    }

    /// The state of a CPU, for its lane.
    fn look(&mut self, cpu: Cpu, state: &SchedState) -> LaneNow {
        let occupant = match state.current(cpu) {
            Current::Task(pid) if self.learns => Arc::make_mut(&mut self.index.tasks).place_of_new(pid, state),
            Current::Task(pid) => self.index.tasks.place(pid),
            none => lane::of_no_task(none),
        };
        LaneNow { occupant, queue: state.queue_length(cpu) }
    }

    fn turn(&mut self, cpu: Cpu, ts: Ts, state: &SchedState) {
        let new = self.look(cpu, state);
        let at = self.index.scope.time(ts);
        let Some(Some((place, now))) = self.lanes.get_mut(cpu.index()) else { return };
        if *now != new
            && let Some(tree) = self.index.lanes.get_mut(*place)
        {
            tree.pass(now, at);
            *now = new;
        }
    }

    fn turn_machine(&mut self, ts: Ts, state: &SchedState) {
        let new = MachineNow::of(state.counts());
        if new != self.now {
            let at = self.index.scope.time(ts);
            self.index.machine.pass(&self.now, at);
            self.now = new;
            match (new.is_violated(), self.violated) {
                (true, None) => self.violated = Some(ts),
                (false, Some(_)) => self.episode_ends(ts),
                _ => {}
            }
        }
    }

    fn episode_ends(&mut self, ts: Ts) {
        if let Some(from) = self.violated.take() {
            self.index.notes.episodes.add(Interval { from, to: ts, cpu: None, task: None });
        }
    }

    /// Notes the event of a trace that is read as a whole.
    fn note(&mut self, event: &SchedEvent, state: &SchedState) {
        let (notes, start) = (&mut self.index.notes, self.index.scope.start);
        match event.kind {
            Kind::Lost { .. } => notes.losses += 1,
            Kind::Exec { pid, .. } if notes.command.is_none() && state.root() == Some(pid) => {
                notes.command = Some(event.ts.since(start).0);
            }
            _ => {}
        }
    }

    /// Time passes up to `ts` on all lanes.
    fn reach(&mut self, ts: Ts) {
        let at = self.index.scope.time(ts);
        for (place, now) in self.lanes.iter().flatten() {
            if let Some(tree) = self.index.lanes.get_mut(*place) {
                tree.pass(now, at);
            }
        }
        self.index.machine.pass(&self.now, at);
    }

    #[cold]
    fn round(&mut self, ts: Ts) {
        self.index.fit();
        if let Some(publish) = self.publish.filter(|_| self.published.elapsed() >= PAUSE) {
            self.reach(ts);
            publish(self.index.coarse());
            self.published = std::time::Instant::now();
        }
    }
}

impl Analysis for Indexer<'_> {
    type Output = Index;
    const COUNTS: bool = true;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        let cpus = self.index.scope.cpus.clone();
        cpus.iter().for_each(|cpu| self.turn(*cpu, start, state));
        self.turn_machine(start, state);
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        if let (true, Kind::Migrate { task, orig, dest }) = (self.learns, event.kind)
            && state.task_of(task.pid).is_some_and(|task| matches!(task.state, TaskState::Waiting(_)))
        {
            self.herds.migrate(event.ts, orig, dest);
        }
        let Index { scope, moves, .. } = &mut self.index;
        self.causes.event(event, state, |m| moves.add(scope.time(m.ts), m.cause));
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        if let (true, TaskState::Waiting(cpu)) = (self.learns, span.state) {
            let comm = state.task(span.task).map_or(Comm::EMPTY, |task| task.comm);
            let (from, to) = (span.start, span.end);
            let task = Some((span.pid, comm));
            self.index.notes.waits.add(Interval { from, to, cpu: Some(cpu), task });
        }
    }

    fn cpu_span(&mut self, span: &CpuSpan, state: &SchedState) {
        if self.learns {
            Arc::make_mut(&mut self.index.tasks).ran(span, state);
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        let touched = state.touched();
        if !touched.is_empty() {
            touched.iter().for_each(|cpu| self.turn(*cpu, event.ts, state));
            self.turn_machine(event.ts, state);
        }
        if self.learns {
            self.note(event, state);
        }
        self.events += 1;
        if self.events.is_multiple_of(ROUND) {
            self.round(event.ts);
        }
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> Index {
        self.reach(end);
        self.episode_ends(end);
        self.index.notes.herds = largest(std::mem::take(&mut self.herds));
        let Index { scope, moves, .. } = &mut self.index;
        std::mem::take(&mut self.causes).finish(|m| moves.add(scope.time(m.ts), m.cause));
        self.index.finish();
        self.index
    }
}
