//! A pass in pieces that are analysed side by side.
//!
//! One thread, the *scout*, knows the state wherever a piece begins, and leaves a copy of it there. Workers follow the pieces from these
//! copies, each with a new analysis, while the scout goes on; the worker that has the next piece in order joins it to those before.
//!
//! The scout comes to the next piece in one of two ways. With few threads it moves the state over all events; where the workers do not
//! keep up, it analyses a piece itself, so that its state is moved over the events once, not twice. With more threads workers *scan* the pieces
//! first: each finds the effect of its events without knowing the state before them ([`Scan`](crate::state::Scan)), and the scout applies
//! the effects in order, which takes time by the tasks that a piece is about. A piece whose effect is not to be had is walked over. Where
//! migrations are asked for, a worker then finds the [scenes](crate::balance::causes::MoveScene) of the piece, and the scout follows the causes.
//! No thread copies events: a piece holds the batches of the source.
//! `docs/design.md` weighs this against reading each piece from the file by itself.

mod scout;
mod workers;

use super::fold::{Fold, PassPlan};
use super::{EventSource, Outcome, OutputsBeside, SendSink};
use crate::analysis::Analysis;
use crate::analysis::joined::Joined;
use crate::event::SchedEvent;
use scout::Scout;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use workers::{Back, Helper, Job, Joint, work};

/// The division of a pass into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// The number of events of a piece, at least 1. Where the state takes more room than that many events, pieces are
    /// longer, so that the copies of it take no more time than the events.
    pub events: usize,
    /// The number of threads that follow pieces beside the scout, at least 1.
    pub workers: usize,
    /// Whether the workers scan the pieces first, so that no thread moves the state over all events.
    pub scans: bool,
}

impl Pieces {
    /// The number of events of a piece over which the scout walks: some 5 MB of them, a few milliseconds of work.
    const EVENTS: usize = 1 << 16;
    /// Minimum number of threads, and of cores for them, with which a pass is divided. With fewer of them, those that read have enough
    /// to do, and the state would be moved twice for nothing: two cores took up to twice as long.
    const LEAST_THREADS: usize = 4;
    /// The same where pieces are scanned: one that must be walked over, for a single event that contradicts others, is to be short.
    const SCANNED: usize = 1 << 13;
    /// Minimum number of workers that scan the pieces. Fewer of them do the scout's work besides their own no faster than it does.
    const LEAST_SCANNING: usize = 4;
    /// Maximum number of workers: the merge and the scout each take about a seventh of the time of `workcons` on one thread.
    const MOST_WORKERS: usize = 24;
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
            let workers = (threads - 2).min(cores - 1);
            match workers >= Pieces::LEAST_SCANNING {
                true => Pieces { events: Pieces::SCANNED, workers: workers.min(Pieces::MOST_WORKERS), scans: true },
                false => Pieces { events: Pieces::EVENTS, workers, scans: false },
            }
        })
    }

    /// The number of events of a piece that begins with a state of this number of bytes.
    fn length(&self, state: usize) -> usize {
        self.events.max(1).max(if self.events < Pieces::SCANNED { 0 } else { state / size_of::<SchedEvent>() })
    }

    /// Maximum number of pieces of this length that are on their way, with two copies of a state of this number of bytes
    /// each.
    fn most_under_way(&self, length: usize, state: usize) -> usize {
        let bytes = length.saturating_mul(size_of::<SchedEvent>()).saturating_add(2 * state);
        let workers = if self.scans { 2 * self.workers } else { self.workers };
        (Pieces::ROOM / bytes.max(1)).clamp(2, workers + Pieces::QUEUED + Pieces::OWN)
    }

    /// Whether two pieces, each with two copies of a state of this number of bytes, take more than their room, or the states that follow
    /// the pass beside them more than theirs: nothing is divided then.
    fn are_crowded(&self, state: usize, others: usize) -> bool {
        let pieces = 2 * (self.length(state).saturating_mul(size_of::<SchedEvent>()) + 2 * state);
        pieces > Pieces::ROOM || state.saturating_mul(1 + others) > Pieces::STATES
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
    let joint = Mutex::new(Joint::new());
    // The number of pieces under way bounds the queue. A bounded channel would block the scout if the workers fail.
    let (send, receive) = channel::<Job<A>>();
    let (give_back, returned) = channel::<Back>();
    let receive = Mutex::new(receive);
    let helper = Helper { analysis, joint: &joint, give_back: give_back.clone() };
    let scout = Scout::new(pieces, plan.fold(analysis()), helper, (send, returned), (number, is_crowded));
    let (read, scout) = std::thread::scope(|scope| {
        // If an analysis panics here, the scout goes with its sender, and the workers end.
        let mut scout = scout;
        for _ in 0..pieces.workers.max(1) {
            let (receive, helper) = (&receive, Helper { analysis, joint: &joint, give_back: give_back.clone() });
            scope.spawn(move || work(receive, &helper));
        }
        drop(give_back);
        let read = source.batches_to_all(&mut |batch| scout.take(batch), &mut sinks);
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
            let pass = Pass::over(&events[..]).pieces(Some(Pieces { events: 2, workers, scans: workers > 1 }));
            let pass = std::panic::AssertUnwindSafe(|| pass.run_in_pieces(|| Panics(Ts(panics_at))));
            let is_whole = std::panic::catch_unwind(pass).is_ok();
            assert_eq!(is_whole, panics_at == 1_000, "{workers} workers, a panic at {panics_at}");
        }
    }

    #[test]
    fn analyses_that_cannot_be_divided_follow_beside_the_pieces() {
        let at = |ts| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(7), flags: 0, kind: EventKind::Other { id: 1 } };
        let events: Vec<SchedEvent> = (0..50).map(at).collect();
        let pass = || Pass::over(&events[..]).pieces(Some(Pieces { events: 7, workers: 2, scans: true }));
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
            let pass = Pass::over(&events[..]).pieces(Some(Pieces { events: 1 << 10, workers: 2, scans: true }));
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
        let pass = Pass::over(&events[..]).pieces(Some(Pieces { events: 10, workers: 2, scans: true }));
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
        assert_eq!(pieces, Pieces { events: Pieces::SCANNED, workers: Pieces::MOST_WORKERS, scans: true });
        let under_way = pieces.most_under_way(Pieces::SCANNED, 0);
        assert!(pieces.length(0) == Pieces::SCANNED && under_way > pieces.workers, "{under_way}");
        // No worker takes the core of the scout.
        let workers = |(threads, cores)| Pieces::on_cores(threads, cores).map(|pieces| (pieces.workers, pieces.scans));
        let expected = [Some((2, false)), Some((4, true)), Some((14, true)), None, None];
        assert_eq!([(4, 4), (16, 5), (16, 16), (16, 3), (3, 64)].map(workers), expected);
        // A state of 100 MB makes long pieces, of which few are under way.
        let length = pieces.length(100 << 20);
        assert!(length > 10 * Pieces::SCANNED && pieces.most_under_way(length, 100 << 20) == 2, "{length}");
    }
}
