//! The law of pieces: an analysis finds the same however a pass is divided.

use sched::pass::Pieces;
use sched::{Analysis, EventSource, Joined, Pass, SchedState, Ts, Window};
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The pieces of some passes, and how many of them were joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PieceTally {
    /// The number of pieces behind the first ones.
    pub pieces: usize,
    /// The number of these that fitted, rather than being followed event by event.
    pub joined: usize,
}

impl std::ops::AddAssign for PieceTally {
    fn add_assign(&mut self, other: PieceTally) {
        self.pieces += other.pieces;
        self.joined += other.joined;
    }
}

/// The counters of one pass.
#[derive(Default)]
struct Counters {
    resumed: AtomicUsize,
    joined: AtomicUsize,
}

/// An analysis that counts the pieces; it stands behind another, and is joined if that one fits.
struct Counting<'c>(&'c Counters);

impl Analysis for Counting<'_> {
    type Output = ();

    fn finish(self, _: Ts, _: &SchedState) {}
}

impl Joined for Counting<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, _: Ts, _: &SchedState) {
        self.0.resumed.fetch_add(1, Ordering::Relaxed);
    }

    fn fits(&self, _: &Self) -> bool {
        true
    }

    fn join(&mut self, _: Self) {
        self.0.joined.fetch_add(1, Ordering::Relaxed);
    }
}

/// Panics unless an analysis of a window finds the same in one piece and in pieces of each of these numbers of events, and
/// reports the same findings. `show` writes the output so that different outputs have different texts. Returns how many of
/// the pieces were joined: where that is none, nothing was proven.
pub fn in_pieces<S, A>(
    source: &mut S,
    window: Window,
    lengths: &[usize],
    analysis: impl Fn() -> A + Sync,
    show: impl Fn(&A::Output) -> String,
) -> PieceTally
where
    S: EventSource<Error: Debug>,
    A: Joined,
{
    let whole = Pass::over(&mut *source).window(window).run(&analysis).expect("a readable source");
    let expected = (show(&whole.output), format!("{:?}", whole.diagnostics), whole.from, whole.to);
    let mut tally = PieceTally::default();
    for (nth, length) in lengths.iter().enumerate() {
        let counters = Counters::default();
        let pieces = Some(Pieces { events: *length, workers: 2, scans: nth % 2 == 0 });
        let pass = Pass::over(&mut *source).window(window).pieces(pieces);
        let found = pass.run_in_pieces(|| (analysis(), Counting(&counters))).expect("a readable source");
        let shown = (show(&found.output.0), format!("{:?}", found.diagnostics), found.from, found.to);
        assert!(shown == expected, "in pieces of {length} events:\n{shown:?}\nin one:\n{expected:?}");
        tally.pieces += counters.resumed.into_inner();
        tally.joined += counters.joined.into_inner();
    }
    tally
}
