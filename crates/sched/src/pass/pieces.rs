//! A pass in pieces that are analysed side by side.
//!
//! One thread, the *scout*, moves the state over all events and does nothing else. Wherever a piece begins it leaves a copy
//! of the state, which is therefore exact. Workers follow the pieces from these copies, each with a new analysis, while the
//! scout goes on; the worker that has the next piece in order joins it to those before. Where the workers do not keep up, the scout
//! analyses a piece itself: its state is moved over the events once, not twice. `docs/design.md` weighs this against reading
//! each piece from the file by itself.

use super::fold::{Fold, PassPlan};
use super::{EventSource, Outcome, OutputsBeside, SendSink};
use crate::analysis::Analysis;
use crate::analysis::joined::Joined;
use crate::event::SchedEvent;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The division of a pass into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// The number of events of a piece, at least 1. Where the state takes more room than that many events, pieces are
    /// longer, so that the copies of it take no more time than the events.
    pub events: usize,
    /// The number of threads that follow pieces beside the one that moves the state, at least 1.
    pub workers: usize,
}

impl Pieces {
    /// The number of events of a piece: some 5 MB of them, a few milliseconds of work.
    const EVENTS: usize = 1 << 16;
    /// Minimum number of threads, and of cores for them, with which a pass is divided. With fewer of them, those that read have enough
    /// to do, and the state would be moved twice for nothing: two cores took up to twice as long.
    const LEAST_THREADS: usize = 4;
    /// Maximum number of workers: no analysis takes more than six times as long as the state alone, which sets the pace.
    const MOST_WORKERS: usize = 6;
    /// The number of pieces for each worker that wait beside the one that it follows, for all workers together.
    const QUEUED: usize = 2;
    /// The number of pieces on their way that the scout may have followed itself.
    const OWN: usize = 2;
    /// Maximum size of all pieces that are on their way, with their copies of the state, in bytes.
    const ROOM: usize = 64 << 20;
    /// Maximum size of the states that follow the pass beside the pieces, and of the scout's, in bytes.
    const STATES: usize = 16 << 20;

    /// Returns the division for a source with this number of threads, on this machine; `None` if they, or its cores, are too few for
    /// one.
    pub fn for_threads(threads: usize) -> Option<Pieces> {
        Pieces::on_cores(threads, std::thread::available_parallelism().map_or(1, NonZero::get))
    }

    /// The division for this number of threads on a machine with this number of cores. Workers for whom there is no core take
    /// that of the scout, which sets the pace.
    fn on_cores(threads: usize, cores: usize) -> Option<Pieces> {
        (threads.min(cores) >= Pieces::LEAST_THREADS).then(|| {
            let workers = (threads - 2).min(cores - 1).min(Pieces::MOST_WORKERS);
            Pieces { events: Pieces::EVENTS, workers }
        })
    }

    /// The number of events of a piece that begins with a state of this number of bytes.
    fn length(&self, state: usize) -> usize {
        self.events.max(1).max(if self.events < Pieces::EVENTS { 0 } else { state / size_of::<SchedEvent>() })
    }

    /// Maximum number of pieces of this length that are on their way, with two copies of a state of this number of bytes
    /// each.
    fn most_under_way(&self, length: usize, state: usize) -> usize {
        let bytes = length.saturating_mul(size_of::<SchedEvent>()).saturating_add(2 * state);
        (Pieces::ROOM / bytes.max(1)).clamp(2, self.workers + Pieces::QUEUED + Pieces::OWN)
    }

    /// Whether two pieces, each with two copies of a state of this number of bytes, take more than their room, or the states that follow
    /// the pass beside them more than theirs: nothing is divided then.
    fn are_crowded(&self, state: usize, others: usize) -> bool {
        let pieces = 2 * (self.length(state).saturating_mul(size_of::<SchedEvent>()) + 2 * state);
        pieces > Pieces::ROOM || state.saturating_mul(1 + others) > Pieces::STATES
    }
}

/// The beginning of a piece.
enum Beginning<A> {
    /// The first piece: with an analysis that has seen all that precedes the window.
    First(Fold<A>),
    Later(Fold<()>),
}

/// A piece to be followed.
struct PassPiece<A> {
    number: u64,
    beginning: Beginning<A>,
    events: Vec<SchedEvent>,
}

/// A piece that was followed to its end.
struct Followed<A> {
    fold: Fold<A>,
    events: Vec<SchedEvent>,
}

/// The pieces that were followed, joined as far as all before them were.
struct Joint<A> {
    joined: Option<Fold<A>>,
    /// The number of the next piece to be joined.
    next: u64,
    /// The pieces that wait for those before them.
    followed: BTreeMap<u64, Followed<A>>,
    /// Whether a worker joins pieces now.
    is_busy: bool,
}

/// The list of events of a piece that is no longer needed; `None` if a worker failed.
type Returned = Option<Vec<SchedEvent>>;

/// Informs the scout if a worker panics, so that it does not wait for the worker's piece.
struct Failure<'r>(&'r Sender<Returned>);

impl Drop for Failure<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // If the scout is gone, there is no one to wait.
            let _ = self.0.send(None);
        }
    }
}

/// Makes one attempt at a pass in pieces. Returns `None` if the start turned out to be unknown, so that all is to be read
/// again; the plan has learned of it then. The `others` follow the pass whole, each on a thread of its own.
pub(super) fn attempt<A: Joined, B: Analysis + Send, S: EventSource>(
    pieces: Pieces,
    plan: &mut PassPlan,
    source: &mut S,
    analysis: &(impl Fn() -> A + Sync),
    others: Vec<B>,
) -> Result<Option<Outcome<OutputsBeside<A, B>>>, S::Error> {
    let mut others: Vec<Fold<B>> = others.into_iter().map(|other| plan.fold(other)).collect();
    let (number, is_crowded) = (others.len(), &AtomicBool::new(false));
    let feed = |fold: &mut Fold<B>, events: &[SchedEvent]| match is_crowded.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => fold.feed(events),
    };
    let mut sinks: Vec<_> = others.iter_mut().map(|fold| move |events: &[SchedEvent]| feed(fold, events)).collect();
    let mut sinks: Vec<&mut SendSink<'_>> = sinks.iter_mut().map(|sink| sink as &mut SendSink<'_>).collect();
    let joint = Mutex::new(Joint { joined: None, next: 0, followed: BTreeMap::new(), is_busy: false });
    // The number of pieces under way bounds the queue. A bounded channel would block the scout if the workers fail.
    let (send, receive) = channel::<PassPiece<A>>();
    let (give_back, returned) = channel::<Returned>();
    let receive = Mutex::new(receive);
    let helper = Helper { analysis, joint: &joint, give_back: give_back.clone() };
    let scout = Scout::new(pieces, plan.fold(analysis()), helper, (send, returned), (number, is_crowded));
    let (read, scout) = std::thread::scope(|scope| {
        // If an analysis panics here, the scout goes with its sender, and the workers end.
        let mut scout = scout;
        for _ in 0..pieces.workers.max(1) {
            let (joint, receive, give_back) = (&joint, &receive, give_back.clone());
            scope.spawn(move || work(receive, &give_back, joint, analysis));
        }
        drop(give_back);
        let mut take = |events: &[SchedEvent]| scout.take(events);
        let read = match sinks.is_empty() {
            true => source.events(&mut take),
            false => source.events_to_all(&mut take, &mut sinks),
        };
        scout.finish();
        (read, scout)
    });
    read?;
    if is_crowded.load(Ordering::Relaxed) {
        plan.is_crowded = true;
        return Ok(None);
    }
    if !plan.was_right(&scout.fold, source) {
        return Ok(None);
    }
    drop(scout);
    let joint = joint.into_inner().unwrap_or_else(PoisonError::into_inner);
    let close = |output| (output, others.into_iter().map(Fold::close).collect());
    Ok(joint.joined.map(|joined| joined.outcome(plan, source).map(close)))
}

/// The means to analyse a piece, and to hand it in, as a worker does.
struct Helper<'p, A, F> {
    analysis: &'p F,
    joint: &'p Mutex<Joint<A>>,
    give_back: Sender<Returned>,
}

/// The thread that moves the state on, and cuts the events into pieces.
struct Scout<'p, A, F> {
    pieces: Pieces,
    /// The state at the present event, without an analysis; where the present piece is the scout's own, that at its beginning.
    fold: Fold<()>,
    helper: Helper<'p, A, F>,
    /// The present piece with its analysis, if the scout analyses it itself.
    own: Option<Fold<A>>,
    /// The first piece, while its window has not begun.
    first: Option<Fold<A>>,
    /// The beginning of the present piece.
    beginning: Option<Beginning<A>>,
    events: Vec<SchedEvent>,
    /// Empty lists for the next pieces.
    spaces: Vec<Vec<SchedEvent>>,
    /// The number of events at which the present piece ends.
    length: usize,
    number: u64,
    send: Option<Sender<PassPiece<A>>>,
    returned: Receiver<Returned>,
    /// The number of pieces that were sent and have not come back.
    under_way: usize,
    most_under_way: usize,
    /// The number of states that follow the pass beside this one.
    others: usize,
    /// Whether the states have outgrown their room, which ends the attempt.
    is_crowded: &'p AtomicBool,
}

impl<'p, A: Joined, F: Fn() -> A + Sync> Scout<'p, A, F> {
    fn new(
        pieces: Pieces,
        first: Fold<A>,
        helper: Helper<'p, A, F>,
        (send, returned): (Sender<PassPiece<A>>, Receiver<Returned>),
        (others, is_crowded): (usize, &'p AtomicBool),
    ) -> Scout<'p, A, F> {
        Scout {
            others,
            is_crowded,
            pieces,
            fold: first.scout(),
            helper,
            own: None,
            first: Some(first),
            beginning: None,
            events: Vec::new(),
            spaces: Vec::new(),
            length: 0,
            number: 0,
            send: Some(send),
            returned,
            under_way: 0,
            most_under_way: 0,
        }
    }

    /// Takes the next events; breaks when the pass needs no more.
    fn take(&mut self, mut events: &[SchedEvent]) -> ControlFlow<()> {
        if let Some(first) = &mut self.first {
            // Before the window nothing is divided: an analysis that looks back may follow anything there.
            let (early, rest) = events.split_at(first.early(events));
            first.feed(early)?;
            events = rest;
        }
        while !events.is_empty() {
            if self.beginning.is_none() && self.own.is_none() {
                self.begin()?;
            }
            let (here, rest) = events.split_at(events.len().min(self.length - self.events.len()));
            self.events.extend_from_slice(here);
            let flow = match &mut self.own {
                Some(own) => own.feed(here),
                None => self.fold.feed(here),
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
        let state = self.fold.state.bytes();
        if self.pieces.are_crowded(state, self.others) {
            self.is_crowded.store(true, Ordering::Relaxed);
            return ControlFlow::Break(());
        }
        self.length = self.pieces.length(state);
        self.most_under_way = self.pieces.most_under_way(self.length, state);
        while let Ok(returned) = self.returned.try_recv() {
            self.come_back(returned)?;
        }
        while self.under_way >= self.most_under_way {
            let Ok(returned) = self.returned.recv() else { return ControlFlow::Break(()) };
            self.come_back(returned)?;
        }
        let has_enough = self.under_way >= self.most_under_way.saturating_sub(Pieces::OWN).max(1);
        match self.first.take() {
            Some(first) => {
                self.fold = first.scout();
                self.beginning = Some(Beginning::First(first));
            }
            None if has_enough => self.own = Some(self.fold.scout().resumed((self.helper.analysis)())),
            None => self.beginning = Some(Beginning::Later(self.fold.scout())),
        }
        ControlFlow::Continue(())
    }

    /// Ends the present piece; breaks if no worker will follow it.
    fn end(&mut self) -> ControlFlow<()> {
        let events = std::mem::replace(&mut self.events, self.spaces.pop().unwrap_or_default());
        let number = self.number;
        (self.number, self.under_way) = (number + 1, self.under_way + 1);
        if let Some(fold) = self.own.take() {
            self.fold = fold.scout();
            hand_in(self.helper.joint, number, Followed { fold, events }, &self.helper.give_back);
            return ControlFlow::Continue(());
        }
        let (Some(beginning), Some(send)) = (self.beginning.take(), &self.send) else { return ControlFlow::Break(()) };
        match send.send(PassPiece { number, beginning, events }) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    /// Takes the list of a piece that has come back, to be used again; breaks if the piece is lost.
    fn come_back(&mut self, returned: Returned) -> ControlFlow<()> {
        let Some(mut events) = returned else {
            // The piece would be missing for ever. Without a sender the other workers end.
            self.send = None;
            return ControlFlow::Break(());
        };
        self.under_way -= 1;
        events.clear();
        self.spaces.push(events);
        ControlFlow::Continue(())
    }

    /// Sends the rest, so that there is at least one piece, and lets the workers end.
    fn finish(&mut self) {
        // A piece that is not followed is missing because a worker panicked, which the scope passes on.
        if self.first.is_some() {
            let _ = self.begin();
        }
        if (self.beginning.is_some() || self.own.is_some()) && self.send.is_some() {
            let _ = self.end();
        }
        self.send = None;
    }
}

/// Follows pieces until there are no more.
fn work<A: Joined>(
    receive: &Mutex<Receiver<PassPiece<A>>>,
    give_back: &Sender<Returned>,
    joint: &Mutex<Joint<A>>,
    analysis: &(impl Fn() -> A + Sync),
) {
    let _failure = Failure(give_back);
    loop {
        // The lock is held while this worker waits: the others wait behind it.
        let piece = receive.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(PassPiece { number, beginning, events }) = piece else { return };
        let mut fold = match beginning {
            Beginning::First(fold) => fold,
            Beginning::Later(scout) => scout.resumed(analysis()),
        };
        // What `feed` returns, whether the analysis needs more events, is up to the scout, which sees all of them.
        let _ = fold.feed(&events);
        hand_in(joint, number, Followed { fold, events }, give_back);
    }
}

/// Hands in a piece, and joins those whose turn it is, unless another worker does.
fn hand_in<A: Joined>(joint: &Mutex<Joint<A>>, number: u64, piece: Followed<A>, give_back: &Sender<Returned>) {
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
        // If the scout is gone, it needs no more room.
        let _ = give_back.send(Some(events));
        held = lock();
        (held.joined, held.is_busy, held.next) = (Some(joined), false, next + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::RunTime;
    use crate::analysis::listed::Lister;
    use crate::event::{Cpu, EventKind, Pid, Ts};
    use crate::pass::Pass;
    use crate::state::SchedState;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// An analysis that panics at one event.
    struct Panics(Ts);

    impl Analysis for Panics {
        type Output = ();

        fn after(&mut self, event: &SchedEvent, _: &SchedState) {
            assert_ne!(event.ts, self.0, "the event");
        }

        fn finish(self, _: Ts, _: &SchedState) {}
    }

    impl Joined for Panics {
        fn is_divisible(&self) -> bool {
            true
        }

        fn fits(&self, _: &Panics) -> bool {
            true
        }
    }

    #[test]
    fn a_panic_in_a_piece_ends_the_pass() {
        let at = |ts| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(7), flags: 0, kind: EventKind::Other { id: 1 } };
        let events: Vec<SchedEvent> = (0..500).map(at).collect();
        for (workers, panics_at) in [(1, 3), (2, 0), (2, 250), (3, 499), (2, 1_000)] {
            let pass = Pass::over(&events[..]).pieces(Some(Pieces { events: 2, workers }));
            let pass = std::panic::AssertUnwindSafe(|| pass.run_in_pieces(|| Panics(Ts(panics_at))));
            let is_whole = std::panic::catch_unwind(pass).is_ok();
            assert_eq!(is_whole, panics_at == 1_000, "{workers} workers, a panic at {panics_at}");
        }
    }

    #[test]
    fn analyses_that_cannot_be_divided_follow_beside_the_pieces() {
        let at = |ts| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(7), flags: 0, kind: EventKind::Other { id: 1 } };
        let events: Vec<SchedEvent> = (0..50).map(at).collect();
        let pass = || Pass::over(&events[..]).pieces(Some(Pieces { events: 7, workers: 2 }));
        let others = || vec![RunTime::default(), RunTime::default()];
        let outcome = pass().run_in_pieces_beside(RunTime::default, others).unwrap_or_else(|never| match never {});
        let (joined, others) = outcome.output;
        assert_eq!((joined.ns_of(Pid(7)), others.len()), (others[0].ns_of(Pid(7)), 2));
        assert_eq!((joined.total(), outcome.to), (others[1].total(), Ts(49)));
    }

    /// Tens of thousands of living tasks: three states for the pieces and two beside them would take more than their room.
    #[test]
    fn states_that_outgrow_their_room_are_one() {
        let task =
            |pid: i32| crate::event::TaskRef { pid: Pid(pid), prio: 120, comm: crate::event::Comm::new(b"task") };
        let woken = |pid: i32| {
            let kind = EventKind::WakeupNew { task: task(pid), target: Cpu(0) };
            SchedEvent { ts: Ts(pid.into()), cpu: Cpu(0), pid: Pid(0), flags: 0, kind }
        };
        let attempts = [2_000, 60_000].map(|tasks: i32| {
            let events: Vec<SchedEvent> = (1..=tasks).map(woken).collect();
            let passes = AtomicUsize::new(0);
            let others = || {
                passes.fetch_add(1, Ordering::Relaxed);
                vec![RunTime::default(), RunTime::default()]
            };
            let pass = Pass::over(&events[..]).pieces(Some(Pieces { events: 1 << 10, workers: 2 }));
            let outcome = pass.run_in_pieces_beside(RunTime::default, others).unwrap_or_else(|never| match never {});
            assert_eq!((outcome.output.1.len(), outcome.to), (2, Ts(tasks.into())));
            passes.into_inner()
        });
        assert_eq!(attempts[1], attempts[0] + 1, "the pass is made again without pieces");
    }

    /// An analysis that counts events, and the calls of its hook for all analyses made alike. It fits, or it does not.
    struct Counts<'c> {
        events: usize,
        calls: &'c AtomicUsize,
        fits: bool,
    }

    impl Analysis for Counts<'_> {
        type Output = usize;

        fn after(&mut self, _: &SchedEvent, _: &SchedState) {
            self.events += 1;
            self.calls.fetch_add(1, Ordering::Relaxed);
        }

        fn finish(self, _: Ts, _: &SchedState) -> usize {
            self.events
        }
    }

    impl Joined for Counts<'_> {
        fn is_divisible(&self) -> bool {
            true
        }

        fn fits(&self, _: &Self) -> bool {
            self.fits
        }

        fn join(&mut self, later: Self) {
            self.events += later.events;
        }
    }

    #[test]
    fn a_member_that_does_not_fit_alone_follows_the_events_again() {
        let at = |ts| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(7), flags: 0, kind: EventKind::Other { id: 1 } };
        let events: Vec<SchedEvent> = (0..500).map(at).collect();
        let calls: [AtomicUsize; 3] = Default::default();
        let lister = |(calls, fits)| Lister::new(move || Counts { events: 0, calls, fits }, |events| events);
        let listers: Vec<_> = calls.iter().zip([true, false, true]).map(lister).collect();
        let pass = Pass::over(&events[..]).pieces(Some(Pieces { events: 10, workers: 2 }));
        let list = || listers.iter().map(Lister::listed).collect::<Vec<_>>();
        let outcome = pass.run_in_pieces(|| (list(), None::<RunTime>)).unwrap_or_else(|never| match never {});
        assert_eq!(outcome.output.0, [500; 3]);
        // The first of 50 pieces is joined to none.
        let calls = calls.each_ref().map(|calls| calls.load(Ordering::Relaxed));
        assert_eq!(calls, [500, 500 + 490, 500]);
    }

    #[test]
    fn pieces_have_bounds() {
        assert_eq!(Pieces::for_threads(3), None);
        let pieces = Pieces::on_cores(512, 64).expect("a division");
        assert_eq!(pieces, Pieces { events: Pieces::EVENTS, workers: Pieces::MOST_WORKERS });
        assert_eq!((pieces.length(0), pieces.most_under_way(Pieces::EVENTS, 0)), (Pieces::EVENTS, 10));
        // No worker takes the core of the scout.
        let workers = |(threads, cores)| Pieces::on_cores(threads, cores).map(|pieces| pieces.workers);
        assert_eq!([(4, 4), (16, 5), (16, 3), (3, 64)].map(workers), [Some(2), Some(4), None, None]);
        // A state of 100 MB makes long pieces, of which few are under way.
        let length = pieces.length(100 << 20);
        assert!(length > 10 * Pieces::EVENTS && pieces.most_under_way(length, 100 << 20) == 2, "{length}");
    }
}
