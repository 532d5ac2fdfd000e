//! The past of a CPU, as far back as a wait may reach.

use sched::Ts;
use std::collections::VecDeque;

/// Stretches that are remembered as they were; of older ones two are joined to one, this many of
/// these are kept, then two of them are joined, and so on: the past becomes coarser, not shorter.
const REMEMBERED: usize = 256;

/// The content of a stretch of time.
pub(crate) trait Content {
    /// Takes what the following stretch holds.
    fn join(&mut self, later: Self);
}

/// A stretch of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch<T> {
    from: Ts,
    to: Ts,
    pub(crate) held: T,
}

impl<T> Stretch<T> {
    /// The length of the part that lies outside of two instants, in nanoseconds.
    pub(crate) fn outside(&self, from: Ts, to: Ts) -> u64 {
        self.to.since(self.from).0 - self.to.min(to).since(self.from.max(from)).0
    }
}

impl Stretch<u64> {
    /// The part between two instants of a stretch that consists of what it holds; nothing of a joined one, of which it is not known where that lies.
    pub(crate) fn between(&self, from: Ts, to: Ts) -> Option<(Ts, Ts)> {
        let (start, end) = (self.from.max(from), self.to.min(to));
        (self.held == self.to.since(self.from).0 && start < end).then_some((start, end))
    }
}

/// The stretches of a CPU, in their order.
#[derive(Clone, Debug)]
pub(crate) struct Past<T> {
    /// The latest ones first, each level of twice as many joined as the one before.
    levels: Vec<VecDeque<Stretch<T>>>,
}

impl<T> Default for Past<T> {
    fn default() -> Past<T> {
        Past { levels: Vec::new() }
    }
}

impl<T: Content> Past<T> {
    /// A stretch ends; an empty one is none.
    pub(crate) fn add(&mut self, from: Ts, to: Ts, held: T) {
        if from >= to {
            return;
        }
        let mut next = Stretch { from, to, held };
        for level in &mut self.levels {
            level.push_back(next);
            if level.len() <= REMEMBERED {
                return;
            }
            let (Some(mut a), Some(b)) = (level.pop_front(), level.pop_front()) else { return };
            a.held.join(b.held);
            next = Stretch { to: b.to, ..a };
        }
        self.levels.push(VecDeque::from([next]));
    }

    /// Forgets the time before an instant.
    pub(crate) fn forget(&mut self, before: Ts) {
        for level in &mut self.levels {
            while level.front().is_some_and(|stretch| stretch.to <= before) {
                level.pop_front();
            }
        }
    }

    /// The stretches since an instant, the latest first. It can cut the last of them.
    pub(crate) fn since(&self, from: Ts) -> impl Iterator<Item = &Stretch<T>> {
        self.levels.iter().flat_map(|level| level.iter().rev()).take_while(move |stretch| stretch.to > from)
    }
}
