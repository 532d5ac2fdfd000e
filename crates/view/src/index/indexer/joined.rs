//! The pieces of a pass, joined.
//!
//! A later piece gathers its changes with places of its own for tasks, which the pieces before replace by theirs. Waits and an
//! episode that can have begun before the piece, and the migrations that can belong to herds, are left to the pieces before.

use super::{Indexer, LaneState, TaskPlaces, WaitPart};
use crate::columns::lane::{Id, LaneNow};
use crate::columns::machine::MachineNow;
use crate::columns::tasks::PieceTasks;
use crate::index::builder::{BATCH, LaneTurn};
use sched::{Comm, Cpu, Joined, PerTask, SchedState, Ts};
use workcons::Watch;

/// The beginning of a later piece of a pass, and the facts that it leaves to the pieces before.
pub(super) struct IndexPiece {
    /// The lanes, the machine and the waiters at its beginning.
    lanes: Vec<Option<LaneState>>,
    now: MachineNow,
    watch: Watch,
    /// Whether the episode that lasts began before the piece.
    is_first_episode: bool,
    /// The end of that episode.
    first_end: Option<Ts>,
    /// The migrations of queued tasks, in the order of time: their CPUs of origin and of destination.
    pub(super) queued: Vec<(Ts, Cpu, Cpu)>,
    /// The parts of waits that can have begun before the piece, each with the name of its task.
    waits: Vec<(WaitPart, Comm)>,
    /// The tasks that have waited, and whether the first wait of each goes on.
    waited: PerTask<bool>,
    /// The instant of the latest event.
    pub(super) latest: Ts,
}

impl IndexPiece {
    /// Leaves a part of a wait to the pieces before if the wait can have begun there; returns whether that is so. `comm` is
    /// the name of the task.
    pub(super) fn leaves(&mut self, part: &WaitPart, comm: impl FnOnce() -> Comm) -> bool {
        let is_left = self.waited.get(part.task).is_none_or(|goes_on| *goes_on);
        if is_left {
            self.waited.insert(part.task, part.goes_on);
            self.waits.push((*part, comm()));
        }
        is_left
    }

    /// Notes the end of an episode; returns whether it is the one that began before the piece.
    pub(super) fn ends_first_episode(&mut self, ts: Ts) -> bool {
        let is_first = std::mem::take(&mut self.is_first_episode);
        if is_first {
            self.first_end = Some(ts);
        }
        is_first
    }
}

/// A place here of a place in a piece. The places of no task are the same in both.
fn place_in(places: &[Id], place: Id) -> Id {
    places.get(place as usize).copied().unwrap_or(place)
}

impl Indexer<'_> {
    /// Whether a later piece began with the state that this one has reached.
    fn reaches(&self, piece: &IndexPiece) -> bool {
        let is_same = |(here, there): (&Option<LaneState>, &Option<LaneState>)| match (here, there) {
            (Some(here), Some(there)) => here.current == there.current && here.now.queue == there.now.queue,
            (None, None) => true,
            _ => false,
        };
        self.now == piece.now
            && self.watch.knows_same(&piece.watch)
            && self.lanes.len() == piece.lanes.len()
            && self.lanes.iter().zip(&piece.lanes).all(is_same)
    }

    /// Takes over the changes of a later piece, whose tasks have these places here.
    fn take_changes(&mut self, later: &mut Self, places: &[Id], latest: Ts) {
        let here = |now: LaneNow| LaneNow { occupant: place_in(places, now.occupant), ..now };
        for turns in later.batch.lanes.chunks(BATCH) {
            self.batch.lanes.extend(turns.iter().map(|turn| LaneTurn { now: here(turn.now), ..*turn }));
            if self.batch.len() >= BATCH
                && let Some(growth) = &mut self.growth
            {
                growth.take(&mut self.batch);
            }
        }
        self.batch.machine.append(&mut later.batch.machine);
        self.batch.moves.append(&mut later.batch.moves);
        for lane in later.lanes.iter_mut().flatten() {
            lane.now = here(lane.now);
        }
        self.lanes = std::mem::take(&mut later.lanes);
        if self.batch.len() >= BATCH {
            self.hand_over(latest);
        }
    }

    /// Adds the lists of a later piece.
    fn take_lists(&mut self, later: &mut Self, piece: IndexPiece) {
        for (ts, orig, dest) in piece.queued {
            let _ = self.herds.migrate(ts, orig, dest);
        }
        piece.waits.iter().for_each(|(part, comm)| self.waited(part, || *comm));
        for (task, wait) in later.moved.iter() {
            self.moved.insert(task, *wait);
        }
        self.moving += later.moving;
        if let Some(ts) = piece.first_end {
            self.episode_ends(ts);
        }
        if !piece.is_first_episode {
            self.violated = later.violated;
        }
        let notes = std::mem::take(&mut later.notes);
        self.notes.episodes.join(notes.episodes);
        self.notes.waits.join(notes.waits);
        self.notes.command = self.notes.command.or(notes.command);
        self.notes.losses += notes.losses;
        self.notes.places.join(notes.places);
    }
}

impl Joined for Indexer<'_> {
    fn is_divisible(&self) -> bool {
        // Where the CPUs are known that tasks may use, two views of the waiters cannot be compared.
        self.scope.affinity.is_none()
    }

    fn resume(&mut self, _: Ts, at: Ts, state: &SchedState) {
        self.tasks = TaskPlaces::OfPiece(PieceTasks::default());
        self.look_at(state);
        self.watch.resume(state);
        let cpus = self.scope.cpus.clone();
        cpus.iter().for_each(|cpu| self.turn(*cpu, 0, state));
        self.turn_machine(at, state);
        self.batch.lanes.clear();
        self.batch.machine.clear();
        self.piece = Some(Box::new(IndexPiece {
            lanes: self.lanes.clone(),
            now: self.now,
            watch: self.watch.clone(),
            is_first_episode: self.violated.is_some(),
            first_end: None,
            queued: Vec::new(),
            waits: Vec::new(),
            waited: PerTask::default(),
            latest: at,
        }));
    }

    fn fits(&self, later: &Self) -> bool {
        let (Some(piece), TaskPlaces::OfPiece(tasks)) = (&later.piece, &later.tasks) else { return false };
        !tasks.is_over() && self.reaches(piece)
    }

    fn join(&mut self, mut later: Self) {
        let Some(piece) = later.piece.take() else { return };
        let latest = piece.latest;
        let learned = TaskPlaces::OfPiece(PieceTasks::default());
        let (TaskPlaces::Learned(tasks), TaskPlaces::OfPiece(of_piece)) =
            (&mut self.tasks, std::mem::replace(&mut later.tasks, learned))
        else {
            return;
        };
        let places = tasks.join(of_piece);
        self.take_lists(&mut later, *piece);
        (self.now, self.repairs, self.of_kind) = (later.now, later.repairs, later.of_kind);
        self.watch = later.watch.clone();
        self.take_changes(&mut later, &places, latest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scope;
    use crate::index::tiles::Index;
    use sched::Window;
    use testkit::{PieceTally, Simulation, in_pieces};

    /// All that a file has of an index, and the list of migrations.
    fn bytes(index: &Index) -> String {
        let mut bytes = Vec::new();
        index.write(7, &mut bytes).expect("memory");
        bytes.into_iter().map(char::from).collect()
    }

    #[test]
    fn an_index_is_the_same_in_pieces() {
        let mut sum = PieceTally::default();
        for seed in 0..12 {
            let events = Simulation::any(seed, 1 + (seed % 6) as u32, 900).events;
            let (Some(first), Some(last)) = (events.first(), events.last()) else { continue };
            let mut cpus: Vec<Cpu> = events.iter().map(|event| event.cpu).collect();
            cpus.sort_unstable();
            cpus.dedup();
            let scope = Scope::of_trace(first.ts, last.ts, &cpus, 0);
            for room in [1 << 20, 2_000] {
                let scope = scope.clone().with_room(room);
                let lengths = [1 + seed as usize % 3, 40, 333];
                let mut source = events.as_slice();
                sum += in_pieces(&mut source, Window::default(), &lengths, || Indexer::new(&scope), bytes);
            }
        }
        assert!(sum.joined * 10 > sum.pieces * 9 && sum.pieces > 1_000, "{sum:?}");
    }
}
