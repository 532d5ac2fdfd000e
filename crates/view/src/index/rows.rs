//! The rows of the tasks: what each did, in columns of several levels, with the sums by which rows are sorted.

use crate::columns::lane::{self, Id, OTHERS};
use crate::columns::row::{self, NOTHING, RowColumn, RowNow, RowState, STATES};
use crate::columns::tasks::Tasks;
use crate::columns::tree::{StoredTree, Tree};
use crate::index::scope::Scope;
use sched::{
    Analysis, ChosenCpus, Cpu, EventKind, Pid, QueuedKinds, QueuedReading, QueuedTimes, SchedEvent, SchedState, Span,
    TaskState, Ts,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The maximum number of bytes of the columns of all rows.
const ROOM: usize = 12 << 20;
/// The rows have at most this power of two as their number of columns: 16,384.
const FINEST: u32 = 14;
/// The bytes that 64 columns of a row take at least on one level, roughly.
const LEAST: u64 = 12;
/// The maximum number of readings within waits that last. Beyond it each wait keeps every second one.
const MOST_MARKS: usize = 1 << 17;
/// The number of changes between two looks at the size of the columns.
const ROUND: usize = 1 << 16;
/// The maximum number of tasks that are noted as blocked at all checkpoints together.
const MOST_BLOCKED: usize = 1 << 22;

/// The sums of a row over the whole of its scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskRowSums {
    /// The time in each state, in nanoseconds.
    pub(crate) ns: [u64; STATES],
    /// The start of the first run, in nanoseconds from the start of the scope.
    pub(crate) first_run: Option<u64>,
}

/// The tasks that were blocked at an instant: a part that begins there cannot see why they sleep.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockedAt(Vec<(Ts, Vec<Pid>)>);

impl BlockedAt {
    /// The tasks that were blocked at the latest of the instants up to this one.
    fn before(&self, from: Ts) -> BTreeSet<Pid> {
        let known = self.0.partition_point(|(at, _)| *at <= from).checked_sub(1);
        known.and_then(|place| self.0.get(place)).map_or_else(BTreeSet::new, |(_, pids)| pids.iter().copied().collect())
    }
}

/// The state in which a task was from the start of the trace on, as its first event shows, up to that event.
#[derive(Clone, Copy, Debug)]
struct Early {
    now: RowNow,
    until: Ts,
}

/// The facts about tasks that the events of a part do not show.
pub(crate) struct Unseen<'i> {
    blocked: BTreeSet<Pid>,
    early: &'i [Option<Early>],
}

/// The columns of all rows. They are in one piece: among thousands of small ones, what their trees took could not be given back.
#[derive(Debug, Default)]
struct StoredRows {
    bytes: Vec<u8>,
    /// The end of each row in the bytes.
    ends: Vec<usize>,
}

impl StoredRows {
    /// Appends the columns of the next row; nothing for one without any.
    fn add(&mut self, tree: Option<&Tree<RowColumn>>) {
        tree.into_iter().for_each(|tree| tree.store(&mut self.bytes));
        self.ends.push(self.bytes.len());
    }

    /// The columns of a row whose finest level is `base`; nothing where it has none.
    fn of(&self, place: usize, base: u32) -> Option<StoredTree<'_>> {
        let start = place.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before))?;
        let bytes = self.bytes.get(*start..*self.ends.get(place)?)?;
        (!bytes.is_empty()).then_some(StoredTree { base, bytes })
    }
}

/// The rows of a trace, or of a part of it, by the places of the tasks.
#[derive(Debug)]
pub(crate) struct RowIndex {
    scope: Scope,
    rows: StoredRows,
    pub(crate) sums: Vec<TaskRowSums>,
    early: Vec<Option<Early>>,
    blocked: BlockedAt,
}

impl RowIndex {
    /// The finest and the coarsest level of the columns.
    pub(crate) fn levels(&self) -> (u32, u32) {
        self.scope.levels
    }

    /// The facts that a part that begins at this instant does not show.
    pub(crate) fn unseen(&self, from: Ts) -> Unseen<'_> {
        Unseen { blocked: self.blocked.before(from), early: &self.early }
    }

    /// The tasks that were blocked at the latest checkpoint up to an instant.
    #[cfg(test)]
    pub(crate) fn blocked_before(&self, from: Ts) -> BTreeSet<Pid> {
        self.blocked.before(from)
    }

    /// The number of columns of a tile that begin within the scope.
    fn inside(&self, level: u32, index: u64) -> u64 {
        let first = (index * self.scope.shape.columns) << level;
        let rest = self.scope.span.saturating_sub(first);
        rest.div_ceil(1 << level).min(self.scope.shape.columns)
    }

    /// Appends the columns of a row in a tile, as runs.
    fn put_row(&self, place: usize, level: u32, index: u64, out: &mut Vec<u8>) {
        let columns = self.scope.shape.columns;
        match self.rows.of(place, self.scope.levels.0) {
            Some(tree) => {
                let stored = tree
                    .columns::<RowColumn>(level, index * columns, columns, |run, form| lane::put_run(out, run, form));
                lane::put_run(out, columns - stored, NOTHING);
            }
            None => put_absent(out, columns, self.inside(level, index)),
        }
    }

    /// The tile `index` of the rows of these places.
    pub(crate) fn tile(&self, level: u32, index: u64, places: &[usize]) -> Vec<u8> {
        let mut tile = tile_head(self.scope.shape.columns, places.len());
        places.iter().for_each(|place| self.put_row(*place, level, index, &mut tile));
        tile
    }
}

/// Appends the row of a task that was neither there at the beginning nor later; `inside`: the number of columns within the trace.
fn put_absent(out: &mut Vec<u8>, columns: u64, inside: u64) {
    lane::put_run(out, inside, &row::lone(RowState::Absent));
    lane::put_run(out, columns - inside, NOTHING);
}

/// The characters that begin each tile of rows.
const ROW_TILE: &[u8; 4] = b"SVR1";

/// The start of a tile of this number of rows.
fn tile_head(columns: u64, rows: usize) -> Vec<u8> {
    let mut tile = Vec::with_capacity(4096);
    tile.extend(ROW_TILE);
    tile.extend((columns as u16).to_le_bytes());
    tile.extend((rows as u16).to_le_bytes());
    tile
}

/// The rows of one tile, as its bytes.
#[derive(Debug)]
pub(crate) struct RowPart {
    columns: u64,
    /// The number of columns within the trace.
    inside: u64,
    /// The end of each row in the bytes.
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl RowPart {
    /// The rows of a part of one tile.
    pub(crate) fn of(part: &RowIndex, level: u32) -> RowPart {
        let (mut ends, mut bytes) = (Vec::with_capacity(part.rows.ends.len()), Vec::new());
        for place in 0..part.rows.ends.len() {
            part.put_row(place, level, 0, &mut bytes);
            ends.push(bytes.len() as u32);
        }
        bytes.shrink_to_fit();
        RowPart { columns: part.scope.shape.columns, inside: part.inside(level, 0), ends, bytes }
    }

    /// The tile of the rows of these places.
    pub(crate) fn tile(&self, places: &[usize]) -> Vec<u8> {
        let mut tile = tile_head(self.columns, places.len());
        for place in places {
            let start = place.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before));
            let bytes = start
                .zip(self.ends.get(*place))
                .and_then(|(start, end)| self.bytes.get(*start as usize..*end as usize));
            match bytes {
                Some(bytes) => tile.extend(bytes),
                None => put_absent(&mut tile, self.columns, self.inside),
            }
        }
        tile
    }

    /// The bytes that the part takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<u32>()
    }
}

/// A wait that lasts: its CPU, and the readings at its beginning and at the edges of columns since.
#[derive(Debug)]
struct RowWait {
    cpu: Cpu,
    marks: Vec<QueuedReading>,
}

/// The analysis that makes the rows.
pub(crate) struct RowIndexer<'i> {
    /// The rows, but for their columns.
    index: RowIndex,
    /// The columns of the rows.
    trees: Vec<Option<Box<Tree<RowColumn>>>>,
    tasks: Arc<Tasks>,
    kinds: QueuedKinds,
    waits: BTreeMap<Id, RowWait>,
    /// The number of readings of all waits.
    marks: usize,
    /// The next edge of a column of the finest level, in nanoseconds from the start of the scope.
    edge: u64,
    blocked: BTreeSet<Pid>,
    /// The states before the first events of tasks, where a part is read.
    early: &'i [Option<Early>],
    /// The instants at which the blocked tasks are to be noted, the latest first.
    notes: Vec<Ts>,
    noted: usize,
    /// The changes since the last look at the size.
    changes: usize,
}

impl<'i> RowIndexer<'i> {
    /// The rows of a whole trace, on levels that have room. `checkpoints`: the instants at which parts can begin.
    pub(crate) fn whole(scope: &Scope, tasks: &Arc<Tasks>, checkpoints: impl Iterator<Item = Ts>) -> RowIndexer<'i> {
        let top = scope.top();
        let rows = tasks.list().len().max(1) as u64;
        let fits = |level: &u32| {
            let columns = scope.span >> level;
            columns <= 1 << FINEST && (columns / 64 + 1).saturating_mul(rows * LEAST) <= ROOM as u64 / 4
        };
        let base = (0..top).find(fits).unwrap_or(top);
        let mut notes: Vec<Ts> = checkpoints.collect();
        notes.reverse();
        RowIndexer { notes, ..RowIndexer::of(Scope { levels: (base, top), ..scope.clone() }, tasks) }
    }

    /// The rows of one tile.
    pub(crate) fn part(scope: Scope, tasks: &Arc<Tasks>, unseen: Unseen<'i>) -> RowIndexer<'i> {
        RowIndexer { blocked: unseen.blocked, early: unseen.early, ..RowIndexer::of(scope, tasks) }
    }

    /// The rows of a scope that begins with the trace.
    pub(crate) fn of(scope: Scope, tasks: &Arc<Tasks>) -> RowIndexer<'i> {
        let rows = tasks.list().len();
        let kinds = QueuedKinds::new(ChosenCpus::default(), scope.affinity.clone());
        let edge = 1 << scope.levels.0;
        let trees = (0..rows).map(|_| None).collect();
        let sums = vec![TaskRowSums::default(); rows];
        let index = RowIndex {
            scope,
            rows: StoredRows::default(),
            sums,
            early: vec![None; rows],
            blocked: BlockedAt::default(),
        };
        RowIndexer {
            index,
            trees,
            tasks: Arc::clone(tasks),
            kinds,
            waits: BTreeMap::new(),
            marks: 0,
            edge,
            blocked: BTreeSet::new(),
            early: &[],
            notes: Vec::new(),
            noted: 0,
            changes: 0,
        }
    }

    /// Drops the finest level where the columns take more than the room.
    fn fit(&mut self) {
        let size =
            |trees: &[Option<Box<Tree<RowColumn>>>]| trees.iter().flatten().map(|tree| tree.size()).sum::<usize>();
        let levels = &mut self.index.scope.levels;
        while size(&self.trees) > ROOM && levels.0 < levels.1 {
            self.trees.iter_mut().flatten().for_each(|tree| tree.coarsen());
            levels.0 += 1;
        }
    }

    /// The place of a task; nothing for one without a row.
    fn place(&self, pid: Pid) -> Option<Id> {
        Some(self.tasks.place(pid)).filter(|place| *place != OTHERS)
    }

    fn begin_wait(&mut self, place: Id, cpu: Cpu, reading: QueuedReading) {
        self.marks += 1;
        self.waits.insert(place, RowWait { cpu, marks: vec![reading] });
    }

    /// Takes readings of all waits at the edges of columns up to an instant. Nothing changes between the first edge and the last.
    fn reach(&mut self, now: Ts) {
        let at = self.index.scope.time(now);
        if at < self.edge {
            return;
        }
        let level = self.index.scope.levels.0;
        let last = at >> level << level;
        for edge in [self.edge, last].into_iter().take(if last > self.edge { 2 } else { 1 }) {
            let ts = Ts(self.index.scope.start.0 + edge as i64);
            for wait in self.waits.values_mut() {
                if let Some(reading) = wait.marks.first().map(|begun| self.kinds.divide_wait(begun, ts)) {
                    wait.marks.push(reading);
                    self.marks += 1;
                }
            }
        }
        self.edge = last + (1 << level);
        if self.marks > MOST_MARKS {
            self.marks = 0;
            for wait in self.waits.values_mut() {
                let mut nth = 0;
                wait.marks.retain(|_| {
                    nth += 1;
                    nth % 2 == 1
                });
                self.marks += wait.marks.len();
            }
        }
    }

    /// The parts of a wait that ends, each with its end and its kinds; nothing where these are unknown.
    fn kinds_of(&mut self, place: Id, cpu: Cpu, until: Ts, state: &SchedState) -> Option<Vec<(Ts, QueuedTimes)>> {
        let wait = self.waits.remove(&place)?;
        self.marks = self.marks.saturating_sub(wait.marks.len());
        if wait.cpu != cpu || !state.shows_wakeups() {
            return None;
        }
        let end = self.kinds.end_wait(wait.marks.first()?, until);
        let ends = wait.marks.iter().skip(1).map(QueuedReading::at).chain([until]);
        // What follows each reading is known to the end, so that the part between two is settled by all that came behind it.
        let rest: Option<Vec<QueuedTimes>> = wait.marks.iter().map(|mark| self.kinds.between(mark, &end)).collect();
        let rest = rest?;
        let later = rest.iter().skip(1).copied().chain([QueuedTimes::default()]);
        Some(ends.zip(rest.iter().zip(later).map(|(all, later)| less(all, &later))).collect())
    }

    /// A task was in a state from `start` up to `end`, and its span ended at `now`.
    fn spent(&mut self, span: &Span, now: Ts, state: &SchedState) {
        let Some(place) = self.place(span.pid) else { return };
        let kinds = match span.state {
            TaskState::Waiting(cpu) => self.kinds_of(place, cpu, now, state),
            _ => None,
        };
        let now = self.row_now(span, state);
        let scope = &self.index.scope;
        let (from, to) = (scope.time(span.start), scope.time(span.end));
        let (Some(row), Some(sums)) = (self.trees.get_mut(place as usize), self.index.sums.get_mut(place as usize))
        else {
            return;
        };
        let (base, top) = scope.levels;
        let tree = row.get_or_insert_with(|| {
            let mut tree = Box::new(Tree::new(base, top));
            if from == 0
                && let Some(early) = self.index.early.get_mut(place as usize)
            {
                *early = Some(Early { now, until: span.end });
            }
            if let Some(Some(early)) = self.early.get(place as usize) {
                tree.pass(&early.now, scope.time(early.until).min(from));
            }
            tree
        });
        tree.pass(&RowNow { state: RowState::Absent, cpu: 0 }, from);
        match kinds.filter(|_| now.state == RowState::Queued) {
            Some(parts) => {
                let mut at = from;
                for (end, times) in parts {
                    let end = scope.time(end).clamp(at, to);
                    tree.fill(end, |column, ns| column.pass_queued(&times, now.cpu, ns));
                    sums.add_queued(&times.in_proportion(end - at));
                    at = end;
                }
            }
            None => sums.ns[now.state as usize] += to.saturating_sub(from),
        }
        tree.pass(&now, to);
        if now.state == RowState::Running {
            sums.first_run.get_or_insert(from);
        }
    }

    /// The state of a span; that of a wait has no kind yet.
    fn row_now(&self, span: &Span, state: &SchedState) -> RowNow {
        let (state, cpu) = match span.state {
            TaskState::Running(cpu) => (RowState::Running, cpu),
            // How long it waits on a CPU without events is unknown.
            TaskState::Waiting(cpu) if !state.is_observed(cpu) => (RowState::Unknown, cpu),
            TaskState::Waiting(cpu) => (RowState::Queued, cpu),
            TaskState::Throttled(cpu) => (RowState::Throttled, cpu),
            // Tasks that were woken are in no queue then.
            TaskState::Asleep(cpu) if !state.shows_wakeups() => (RowState::Unknown, cpu),
            TaskState::Asleep(cpu) if self.blocked.contains(&span.pid) => (RowState::Blocked, cpu),
            TaskState::Asleep(cpu) => (RowState::Asleep, cpu),
            TaskState::Unknown => (RowState::Unknown, Cpu(0)),
            TaskState::Dead => (RowState::Absent, Cpu(0)),
        };
        RowNow { state, cpu: cpu.0 }
    }

    /// Notes which tasks sleep uninterruptibly, behind an event.
    fn note_blocked(&mut self, event: &SchedEvent, span: &Span) {
        match (span.next, event.kind) {
            (TaskState::Asleep(_), EventKind::Switch { prev, state, .. })
                if prev.pid == span.pid && state.is_uninterruptible() =>
            {
                self.blocked.insert(span.pid);
            }
            _ => _ = self.blocked.remove(&span.pid),
        }
    }

    /// Notes the blocked tasks at the checkpoints up to an event.
    fn note_checkpoints(&mut self, ts: Ts) {
        while let Some(at) = self.notes.pop_if(|at| *at <= ts) {
            let room = MOST_BLOCKED.saturating_sub(self.noted);
            let blocked: Vec<Pid> = self.blocked.iter().take(room).copied().collect();
            self.noted += blocked.len();
            self.index.blocked.0.push((at, blocked));
        }
    }
}

impl TaskRowSums {
    fn add_queued(&mut self, times: &QueuedTimes) {
        self.ns[RowState::HeldBack as usize] += times.held_back_ns;
        self.ns[RowState::BesideIdle as usize] += times.beside_idle_ns;
        self.ns[RowState::BesideShorter as usize] += times.beside_shorter_ns;
        self.ns[RowState::Alike as usize] += times.alike_ns;
    }
}

/// The kinds of the first part of a wait, from those of all of it and those of the rest.
fn less(all: &QueuedTimes, rest: &QueuedTimes) -> QueuedTimes {
    let held_back_ns = all.held_back_ns.saturating_sub(rest.held_back_ns);
    let beside_idle_ns = all.beside_idle_ns.saturating_sub(rest.beside_idle_ns);
    let beside_shorter_ns = all.beside_shorter_ns.saturating_sub(rest.beside_shorter_ns);
    let alike_ns = all.alike_ns.saturating_sub(rest.alike_ns);
    QueuedTimes { held_back_ns, beside_idle_ns, beside_shorter_ns, alike_ns, beside_forbidden_ns: 0 }
}

impl Analysis for RowIndexer<'_> {
    type Output = RowIndex;
    const LOOKS_BACK: bool = true;

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        state.spans().iter().for_each(|span| self.note_blocked(event, span));
    }

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.kinds.begin(start, state);
        for task in state.living() {
            if let (TaskState::Waiting(cpu), Some(place)) = (task.state, self.place(task.pid)) {
                let reading = self.kinds.first_reading(task, cpu);
                self.begin_wait(place, cpu, reading);
            }
        }
    }

    fn before(&mut self, event: &SchedEvent, _: &SchedState) {
        self.reach(event.ts);
        self.note_checkpoints(event.ts);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.kinds.follow(event.ts, state);
        for (task, span) in state.turns() {
            self.spent(span, event.ts, state);
            self.note_blocked(event, span);
            if let (TaskState::Waiting(cpu), Some(place)) = (span.next, self.place(span.pid)) {
                let reading = self.kinds.begin_wait(task, cpu, event.ts, state);
                self.begin_wait(place, cpu, reading);
            }
            self.changes += 1;
        }
        if self.changes >= ROUND {
            self.changes = 0;
            self.fit();
        }
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> RowIndex {
        self.reach(end);
        for task in state.living() {
            let (start, begun) = (task.since.min(end), task.begun);
            let span = Span {
                task: task.id(),
                pid: task.pid,
                state: task.state,
                start,
                end,
                next: task.state,
                begun,
                ended: false,
            };
            self.spent(&span, end, state);
        }
        let (start, span, (base, top)) = (self.index.scope.start, self.index.scope.span, self.index.scope.levels);
        for (row, early) in self.trees.iter_mut().zip(self.early) {
            // Its first event is behind the part.
            if let (None, Some(early)) = (&row, early.filter(|early| early.until > start)) {
                let tree = row.insert(Box::new(Tree::new(base, top)));
                tree.pass(&early.now, self.index.scope.time(early.until));
            }
        }
        for tree in self.trees.iter_mut().flatten() {
            tree.pass(&RowNow { state: RowState::Absent, cpu: 0 }, span);
            tree.finish();
        }
        self.fit();
        self.trees.into_iter().for_each(|tree| self.index.rows.add(tree.as_deref()));
        self.index.rows.bytes.shrink_to_fit();
        self.index
    }
}
