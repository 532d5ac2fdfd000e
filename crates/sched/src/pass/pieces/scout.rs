//! The thread that cuts the events into pieces, and knows the state at the beginning of each.

use super::Pieces;
use super::workers::{Back, Beginning, Followed, Helper, Job, MovingPiece, PassPiece, Scanned, UnknownPiece, hand_in};
use crate::analysis::joined::Joined;
use crate::pass::Batch;
use crate::pass::fold::Fold;
use crate::pass::moves::PassMigrations;
use crate::pass::piece_events::PieceEvents;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

/// The present piece.
enum PieceInHand<A> {
    None,
    /// The scout walks over it, from this beginning.
    Walked(Beginning<A>),
    /// The scout walks over it with an analysis.
    Own(Fold<A>),
    /// The scout does nothing but collect its events.
    Scanned,
}

/// Pieces that workers have and give back in any order, to be taken in turn.
struct Turns<T> {
    /// The number of pieces that were sent and not taken yet.
    open: usize,
    /// The pieces that wait for those before them.
    ready: BTreeMap<u64, T>,
    /// The number of the next piece to be taken.
    next: u64,
}

impl<T> Default for Turns<T> {
    fn default() -> Turns<T> {
        Turns { open: 0, ready: BTreeMap::new(), next: 0 }
    }
}

impl<T> Turns<T> {
    /// Keeps a piece that came back until its turn.
    fn come_back(&mut self, number: u64, piece: T) {
        self.ready.insert(number, piece);
    }

    /// The piece whose turn it is, if it has come back.
    fn take(&mut self) -> Option<T> {
        let piece = self.ready.remove(&self.next)?;
        (self.open, self.next) = (self.open - 1, self.next + 1);
        Some(piece)
    }
}

/// The pieces that are scanned.
#[derive(Default)]
struct Scans {
    /// Whether pieces are scanned at all.
    are_wanted: bool,
    turns: Turns<Scanned>,
    /// The numbers of pieces whose effect was taken, and of those that had to be walked over.
    taken: u64,
    walked: u64,
}

impl Scans {
    /// The number of pieces that may be walked over in vain before scans must have been worth it.
    const IN_VAIN: u64 = 16;

    /// Whether as many of the pieces so far could be taken as had to be walked over, but for a few.
    fn are_worth_it(&self) -> bool {
        self.are_wanted && self.walked <= self.taken + Scans::IN_VAIN
    }
}

/// The migrations, while they follow the state at a distance: a worker finds what the state tells their causes first.
#[derive(Default)]
struct MovesBehind {
    /// The migrations before the piece that is next; none while the fold holds them, or if no analysis takes any.
    moves: Option<Box<PassMigrations>>,
    turns: Turns<MovingPiece>,
}

/// The thread that moves the state on, and cuts the events into pieces.
pub(super) struct Scout<'p, A, F> {
    pieces: Pieces,
    /// The state behind the pieces that were walked over and taken, without an analysis; where the present piece is the scout's own,
    /// that at its beginning.
    pub(super) fold: Fold<()>,
    helper: Helper<'p, A, F>,
    present: PieceInHand<A>,
    /// The first piece, while its window has not begun.
    first: Option<Fold<A>>,
    events: PieceEvents,
    /// The number of events at which the present piece ends.
    length: usize,
    number: u64,
    scans: Scans,
    behind: MovesBehind,
    send: Option<Sender<Job<A>>>,
    returned: Receiver<Back>,
    /// The number of pieces that were sent and have not come back.
    under_way: usize,
    most_under_way: usize,
    /// The number of states that follow the pass beside this one.
    others: usize,
    /// Whether the states have outgrown their room, which ends the attempt.
    is_crowded: &'p AtomicBool,
    /// Whether the pass needs no more events.
    is_done: bool,
}

impl<'p, A: Joined, F: Fn() -> A + Sync> Scout<'p, A, F> {
    pub(super) fn new(
        pieces: Pieces,
        first: Fold<A>,
        helper: Helper<'p, A, F>,
        (send, returned): (Sender<Job<A>>, Receiver<Back>),
        (others, is_crowded): (usize, &'p AtomicBool),
    ) -> Scout<'p, A, F> {
        Scout {
            others,
            is_crowded,
            pieces,
            fold: first.scout(),
            helper,
            present: PieceInHand::None,
            first: Some(first),
            events: PieceEvents::default(),
            length: 0,
            number: 0,
            scans: Scans { are_wanted: pieces.scans, ..Scans::default() },
            behind: MovesBehind::default(),
            send: Some(send),
            returned,
            under_way: 0,
            most_under_way: 0,
            is_done: false,
        }
    }

    /// Takes the next events; breaks when the pass needs no more.
    pub(super) fn take(&mut self, batch: Batch<'_>) -> ControlFlow<()> {
        let mut events = batch.items;
        if let Some(first) = &mut self.first {
            // Before the window nothing is divided: an analysis that looks back may follow anything there.
            let (early, rest) = events.split_at(first.early(events));
            first.feed(early)?;
            events = rest;
        }
        while !events.is_empty() {
            if matches!(self.present, PieceInHand::None) {
                self.begin()?;
            }
            let (here, rest) = events.split_at(events.len().min(self.length - self.events.len()));
            match batch.shared {
                Some(shared) => self.events.push(shared, shared.len() - events.len()..shared.len() - rest.len()),
                None => self.events.push(&Arc::new(here.to_vec()), 0..here.len()),
            }
            let flow = match &mut self.present {
                PieceInHand::Own(own) => own.feed(here),
                PieceInHand::Walked(_) => self.fold.feed(here),
                PieceInHand::Scanned | PieceInHand::None => ControlFlow::Continue(()),
            };
            if self.events.len() == self.length || flow.is_break() {
                self.end()?;
            }
            flow?;
            events = rest;
        }
        ControlFlow::Continue(())
    }

    /// Begins a piece at the present event; breaks if a piece before it is lost.
    fn begin(&mut self) -> ControlFlow<()> {
        let state = self.fold.bytes();
        if self.pieces.are_crowded(state, self.others) {
            self.is_crowded.store(true, Ordering::Relaxed);
            return ControlFlow::Break(());
        }
        self.length = self.pieces.length(state);
        self.most_under_way = self.pieces.most_under_way(self.length, state);
        while let Ok(back) = self.returned.try_recv() {
            self.come_back(back)?;
        }
        while self.under_way >= self.most_under_way {
            self.wait()?;
        }
        if self.first.is_none() && self.scans.are_worth_it() && self.fold.can_be_scanned() {
            if let Some(moves) = self.fold.put_moves(None) {
                (self.behind.moves, self.behind.turns.next) = (Some(moves), self.number);
            }
            self.present = PieceInHand::Scanned;
            return ControlFlow::Continue(());
        }
        self.take_all()?;
        let has_enough = self.under_way >= self.most_under_way.saturating_sub(Pieces::OWN).max(1);
        self.present = match self.first.take() {
            Some(first) => {
                self.fold = first.scout();
                PieceInHand::Walked(Beginning::First(first))
            }
            None if has_enough => PieceInHand::Own(self.fold.scout().resumed((self.helper.analysis)())),
            None => PieceInHand::Walked(Beginning::Later(self.fold.scout())),
        };
        ControlFlow::Continue(())
    }

    /// Ends the present piece; breaks if no worker will follow it, or if the pass needs no more events.
    fn end(&mut self) -> ControlFlow<()> {
        let events = std::mem::take(&mut self.events);
        let number = self.number;
        (self.number, self.under_way) = (number + 1, self.under_way + 1);
        match std::mem::replace(&mut self.present, PieceInHand::None) {
            PieceInHand::None => ControlFlow::Break(()),
            PieceInHand::Own(fold) => {
                self.fold = fold.scout();
                self.scans.turns.next = self.number;
                hand_in(self.helper.joint, number, Followed { fold, events }, &self.helper.give_back);
                ControlFlow::Continue(())
            }
            PieceInHand::Walked(beginning) => {
                self.scans.turns.next = self.number;
                self.send(Job::Follow(Box::new(PassPiece { number, beginning, events })))
            }
            PieceInHand::Scanned if self.fold.has_inside(events.last()) => {
                self.scans.turns.open += 1;
                let unknown = self.fold.state.unknown();
                self.send(Job::Scan(Box::new(UnknownPiece { number, unknown, events })))
            }
            PieceInHand::Scanned => {
                // The window ends here.
                self.take_all()?;
                self.scans.turns.next = self.number;
                self.follow(Scanned { number, effect: None, events })
            }
        }
    }

    fn send(&mut self, job: Job<A>) -> ControlFlow<()> {
        match self.send.as_ref().map(|send| send.send(job)) {
            Some(Ok(())) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    /// Waits until a worker has done something.
    fn wait(&mut self) -> ControlFlow<()> {
        let Ok(back) = self.returned.recv() else { return ControlFlow::Break(()) };
        self.come_back(back)
    }

    /// Waits until the state behind all pieces that are scanned is known, and the migrations with it.
    fn take_all(&mut self) -> ControlFlow<()> {
        while self.scans.turns.open > 0 || self.behind.turns.open > 0 {
            self.wait()?;
        }
        if let Some(moves) = self.behind.moves.take() {
            self.fold.put_moves(Some(moves));
        }
        ControlFlow::Continue(())
    }

    /// Takes what a worker has done; breaks if a piece is lost, or if the pass needs no more events.
    fn come_back(&mut self, back: Back) -> ControlFlow<()> {
        match back {
            Back::Lost => {
                // The piece would be missing for ever. Without a sender the other workers end.
                self.send = None;
                ControlFlow::Break(())
            }
            Back::Joined => {
                self.under_way -= 1;
                ControlFlow::Continue(())
            }
            Back::Scanned(scanned) => {
                self.scans.turns.come_back(scanned.number, *scanned);
                while let Some(scanned) = self.scans.turns.take() {
                    self.follow(scanned)?;
                }
                ControlFlow::Continue(())
            }
            Back::Scenes(piece) => {
                self.behind.turns.come_back(piece.number, *piece);
                while let Some(piece) = self.behind.turns.take() {
                    self.move_behind(piece)?;
                }
                ControlFlow::Continue(())
            }
        }
    }

    /// Has a piece followed whose beginning is known now, and moves the state behind it.
    fn follow(&mut self, scanned: Scanned) -> ControlFlow<()> {
        let Scanned { number, effect, events } = scanned;
        let beginning = self.fold.scout();
        let flow = match effect.and_then(|effect| self.fold.take(&effect, &events)) {
            Some(flow) => {
                self.scans.taken += 1;
                flow
            }
            None => {
                self.scans.walked += 1;
                events.stretches().try_for_each(|events| self.fold.feed(events))
            }
        };
        self.is_done |= flow.is_break();
        if self.behind.moves.is_some() {
            self.behind.turns.open += 1;
            self.send(Job::Scenes(Box::new(MovingPiece { number, beginning, scenes: Vec::new(), events })))?;
        } else {
            self.send(Job::Follow(Box::new(PassPiece { number, beginning: Beginning::Later(beginning), events })))?;
        }
        flow
    }

    /// Has a piece followed before which the migrations are known now, and moves them behind it.
    fn move_behind(&mut self, piece: MovingPiece) -> ControlFlow<()> {
        let MovingPiece { number, mut beginning, scenes, events } = piece;
        let Some(moves) = self.behind.moves.as_mut().filter(|moves| moves.have_room(events.len())) else {
            // More tasks than can live: one state and one analysis know which of them to forget.
            self.is_crowded.store(true, Ordering::Relaxed);
            self.is_done = true;
            return ControlFlow::Break(());
        };
        beginning.replay(moves, &events, scenes);
        self.send(Job::Follow(Box::new(PassPiece { number, beginning: Beginning::Later(beginning), events })))
    }

    /// Sends the rest, so that there is at least one piece, and lets the workers end.
    pub(super) fn finish(&mut self) {
        // A piece that is not followed is missing because a worker panicked, which the scope passes on.
        if self.first.is_some() {
            let _ = self.begin();
        }
        if !matches!(self.present, PieceInHand::None) && self.send.is_some() {
            let _ = self.end();
        }
        if self.send.is_some() && !self.is_done {
            let _ = self.take_all();
        }
        self.send = None;
    }
}
