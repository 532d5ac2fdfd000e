//! The threads that scan pieces, follow them with an analysis, and join them in order.

use crate::analysis::joined::Joined;
use crate::balance::causes::MoveScene;
use crate::pass::fold::Fold;
use crate::pass::piece_events::PieceEvents;
use crate::state::{Scan, SchedState};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The beginning of a piece.
pub(super) enum Beginning<A> {
    /// The first piece: with an analysis that has seen all that precedes the window.
    First(Fold<A>),
    Later(Fold<()>),
}

/// A piece to be followed.
pub(super) struct PassPiece<A> {
    pub(super) number: u64,
    pub(super) beginning: Beginning<A>,
    pub(super) events: PieceEvents,
}

/// A piece whose beginning is not known yet.
pub(super) struct UnknownPiece {
    pub(super) number: u64,
    /// The state before it, without its tasks.
    pub(super) unknown: SchedState,
    pub(super) events: PieceEvents,
}

/// A piece whose beginning is known but for the migrations before it.
pub(super) struct MovingPiece {
    pub(super) number: u64,
    pub(super) beginning: Fold<()>,
    /// The scenes of its migrations, once they are found.
    pub(super) scenes: Vec<MoveScene>,
    pub(super) events: PieceEvents,
}

/// The work on a piece.
pub(super) enum Job<A> {
    Scan(Box<UnknownPiece>),
    /// Find the scenes.
    Scenes(Box<MovingPiece>),
    Follow(Box<PassPiece<A>>),
}

/// A piece that was scanned.
pub(super) struct Scanned {
    pub(super) number: u64,
    /// The effect of the piece; none where its events must be walked over.
    pub(super) effect: Option<Scan>,
    pub(super) events: PieceEvents,
}

/// A message to the scout.
pub(super) enum Back {
    Scanned(Box<Scanned>),
    /// The scenes of a piece were found.
    Scenes(Box<MovingPiece>),
    /// A piece was joined.
    Joined,
    /// A worker failed, so that a piece is missing for ever.
    Lost,
}

/// A piece that was followed to its end.
pub(super) struct Followed<A> {
    pub(super) fold: Fold<A>,
    pub(super) events: PieceEvents,
}

/// The pieces that were followed, joined as far as all before them were.
pub(super) struct Joint<A> {
    pub(super) joined: Option<Fold<A>>,
    /// The number of the next piece to be joined.
    next: u64,
    /// The pieces that wait for those before them.
    followed: BTreeMap<u64, Followed<A>>,
    /// Whether a worker joins pieces now.
    is_busy: bool,
}

impl<A> Joint<A> {
    pub(super) fn new() -> Joint<A> {
        Joint { joined: None, next: 0, followed: BTreeMap::new(), is_busy: false }
    }
}

/// The means to analyse a piece, and to hand it in, as a worker does.
pub(super) struct Helper<'p, A, F> {
    pub(super) analysis: &'p F,
    pub(super) joint: &'p Mutex<Joint<A>>,
    pub(super) give_back: Sender<Back>,
}

/// Informs the scout if a worker panics, so that it does not wait for the worker's piece.
struct Failure<'r>(&'r Sender<Back>);

impl Drop for Failure<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // If the scout is gone, there is no one to wait.
            let _ = self.0.send(Back::Lost);
        }
    }
}

/// Works on pieces until there are no more.
pub(super) fn work<A: Joined, F: Fn() -> A + Sync>(receive: &Mutex<Receiver<Job<A>>>, helper: &Helper<'_, A, F>) {
    let _failure = Failure(&helper.give_back);
    loop {
        // The lock is held while this worker waits: the others wait behind it.
        let job = receive.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(Job::Scan(piece)) => {
                let UnknownPiece { number, unknown, events } = *piece;
                let effect = Scan::of(events.iter(), unknown);
                // If the scout is gone, nobody needs the effect.
                let _ = helper.give_back.send(Back::Scanned(Box::new(Scanned { number, effect, events })));
            }
            Ok(Job::Scenes(mut piece)) => {
                piece.scenes = piece.beginning.scenes(&piece.events);
                let _ = helper.give_back.send(Back::Scenes(piece));
            }
            Ok(Job::Follow(piece)) => {
                let PassPiece { number, beginning, events } = *piece;
                let mut fold = match beginning {
                    Beginning::First(fold) => fold,
                    Beginning::Later(scout) => scout.resumed((helper.analysis)()),
                };
                fold.follow(&events);
                hand_in(helper.joint, number, Followed { fold, events }, &helper.give_back);
            }
            Err(_) => return,
        }
    }
}

/// Hands in a piece, and joins those whose turn it is, unless another worker does.
pub(super) fn hand_in<A: Joined>(joint: &Mutex<Joint<A>>, number: u64, piece: Followed<A>, give_back: &Sender<Back>) {
    let lock = || -> MutexGuard<'_, Joint<A>> { joint.lock().unwrap_or_else(PoisonError::into_inner) };
    let mut held = lock();
    held.followed.insert(number, piece);
    loop {
        let next = held.next;
        if held.is_busy {
            return;
        }
        let Some(piece) = held.followed.remove(&next) else { return };
        held.is_busy = true;
        let joined = held.joined.take();
        drop(held);
        let Followed { fold, events } = piece;
        let joined = match joined {
            None => fold,
            Some(joined) => joined.join(fold, &events),
        };
        // Another piece may take their room. If the scout is gone, it needs none.
        drop(events);
        let _ = give_back.send(Back::Joined);
        held = lock();
        (held.joined, held.is_busy, held.next) = (Some(joined), false, next + 1);
    }
}
