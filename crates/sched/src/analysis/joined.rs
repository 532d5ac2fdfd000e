//! Analyses of which neighbouring pieces of a pass can be joined.

use crate::analysis::chosen::Selected;
use crate::analysis::{Analysis, RunTime};
use crate::event::Ts;
use crate::state::SchedState;

/// An [`Analysis`] that can follow a pass in pieces: runs of consecutive events that are analysed side by side, each by
/// an analysis of its own, and joined in their order.
///
/// The first piece is analysed as ever, from [`Analysis::begin`] on. Each later one gets a new analysis, made as the first
/// one was, and [`Joined::resume`] in place of [`Analysis::begin`]; then its events follow. No piece but the last one gets
/// [`Analysis::finish`], and no span is cut where two pieces meet: it is reported in the piece in which it ends, with its
/// true start. A piece may begin between two events of one instant.
///
/// [`Joined::join`] leaves an analysis that cannot be distinguished from one that has followed all the events itself. A later
/// piece cannot decide everything alone, such as the length of a wait of which it sees the end: it keeps that until then, as
/// little as it may be, since a piece has some ten thousand events. Where even that does not suffice, [`Joined::fits`] returns `false`, and the
/// earlier analysis is given the events of the piece one by one, which takes longer and is right by construction.
///
/// A tuple, a [`Vec`] or an [`Option`] of such analyses is one. In a list of [`Listed`](super::listed::Listed) those members alone which a piece
/// does not fit are given its events.
#[allow(unused_variables)]
pub trait Joined: Analysis + Send {
    /// Whether the analysis can be made in pieces. Called once, before the pass; analyses made alike must return the same.
    /// The default is `false`: such an analysis follows the pass alone, and the other hooks are not called. The same holds for one whose
    /// options ask for something that goes by the order of all events, such as the story of one episode.
    fn is_divisible(&self) -> bool {
        false
    }

    /// Called at the beginning of a piece that is not the first one, in place of [`Analysis::begin`]. `start` is the start
    /// of the window, as there; `at` is the instant at which the two pieces meet, within the window, from which sums over
    /// time go on. `state` is the one behind the last event of the piece before.
    fn resume(&mut self, start: Ts, at: Ts, state: &SchedState) {}

    /// Whether the next piece can be joined to this analysis. Called with an analysis that was resumed where this one has
    /// arrived and has followed its piece; neither is changed. The usual reason for `false` is that the later one has
    /// concluded from the state something else than earlier events have shown this one.
    fn fits(&self, later: &Self) -> bool {
        false
    }

    /// Adds the next piece, which fits.
    fn join(&mut self, later: Self)
    where
        Self: Sized,
    {
    }

    /// Adds the next piece to those members of a composition which it fits, and sets these members aside: none of their hooks is called until
    /// [`Joined::take_up`]. Called with a piece that does not fit as a whole, before its events follow for the other members. By default nothing
    /// is set aside.
    fn join_members(&mut self, later: Self)
    where
        Self: Sized,
    {
    }

    /// Takes up the members that were set aside, behind the last event of the piece.
    fn take_up(&mut self) {}
}

macro_rules! tuple {
    ($($name:ident $index:tt),+) => {
        impl<$($name: Joined),+> Joined for ($($name,)+) {
            fn is_divisible(&self) -> bool {
                $(self.$index.is_divisible())&&+
            }
            fn resume(&mut self, start: Ts, at: Ts, state: &SchedState) {
                $(self.$index.resume(start, at, state);)+
            }
            fn fits(&self, later: &Self) -> bool {
                $(self.$index.fits(&later.$index))&&+
            }
            fn join(&mut self, later: Self) {
                $(self.$index.join(later.$index);)+
            }
            fn join_members(&mut self, later: Self) {
                $(self.$index.join_members(later.$index);)+
            }
            fn take_up(&mut self) {
                $(self.$index.take_up();)+
            }
        }
    };
}
tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);

impl Joined for () {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, _: Ts, _: &SchedState) {}

    fn fits(&self, (): &()) -> bool {
        true
    }

    fn join(&mut self, (): ()) {}
}

/// Forwards all calls to each of the analyses inside, of which there can be none.
macro_rules! each {
    ($several:ident) => {
        impl<A: Joined> Joined for $several<A> {
            fn is_divisible(&self) -> bool {
                self.iter().all(A::is_divisible)
            }

            fn resume(&mut self, start: Ts, at: Ts, state: &SchedState) {
                self.iter_mut().for_each(|analysis| analysis.resume(start, at, state));
            }

            fn fits(&self, later: &Self) -> bool {
                self.iter().zip(later).all(|(analysis, later)| analysis.fits(later))
            }

            fn join(&mut self, later: Self) {
                self.iter_mut().zip(later).for_each(|(analysis, later)| analysis.join(later));
            }

            fn join_members(&mut self, later: Self) {
                self.iter_mut().zip(later).for_each(|(analysis, later)| analysis.join_members(later));
            }

            fn take_up(&mut self) {
                self.iter_mut().for_each(A::take_up);
            }
        }
    };
}
each!(Option);
each!(Vec);

impl Joined for RunTime {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, _: Ts, _: &SchedState) {}

    fn fits(&self, _: &RunTime) -> bool {
        true
    }

    fn join(&mut self, later: RunTime) {
        for (pid, ns) in later.ns {
            *self.ns.entry(pid).or_default() += ns;
        }
    }
}

impl Joined for Selected<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, _: Ts, _: &SchedState) {}

    fn fits(&self, _: &Self) -> bool {
        true
    }

    fn join(&mut self, later: Self) {
        self.found |= later.found;
    }
}
