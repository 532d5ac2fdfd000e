//! When each CPU idled with nobody waiting for it, as far back as a wait may reach.

use sched::{Cpu, Dur, Load, SchedState, Ts};
use serde::Serialize;
use std::collections::VecDeque;

/// Stretches of a CPU that are remembered as they were; of older ones two are joined to one, so many of
/// these are kept, then two of them are joined, and so on: the past becomes coarser, not shorter.
const REMEMBERED: usize = 256;

/// A CPU that idled during a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IdleCpu {
    /// Which.
    pub cpu: Cpu,
    /// For how long, at least.
    pub idle_ns: Dur,
}

/// A stretch of time, in which a CPU idled so long.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: Ts,
    to: Ts,
    idle: u64,
}

impl Stretch {
    /// How long it idled between two instants: of a joined stretch that an instant cuts, what must lie
    /// there.
    fn within(&self, from: Ts, to: Ts) -> u64 {
        let outside = self.to.since(self.from).0 - self.to.min(to).since(self.from.max(from)).0;
        self.idle.saturating_sub(outside)
    }
}

#[derive(Clone, Debug, Default)]
struct Past {
    since: Option<Ts>,
    /// The latest ones first, each level of twice as many joined as the one before.
    levels: Vec<VecDeque<Stretch>>,
}

impl Past {
    fn add(&mut self, from: Ts, to: Ts) {
        if from >= to {
            return;
        }
        let mut next = Stretch { from, to, idle: to.since(from).0 };
        for level in &mut self.levels {
            level.push_back(next);
            if level.len() <= REMEMBERED {
                return;
            }
            let (Some(a), Some(b)) = (level.pop_front(), level.pop_front()) else { return };
            next = Stretch { from: a.from, to: b.to, idle: a.idle.saturating_add(b.idle) };
        }
        self.levels.push(VecDeque::from([next]));
    }

    fn within(&self, from: Ts, to: Ts) -> u64 {
        let now = self.since.map_or(0, |since| to.since(since.max(from)).0);
        let past = self.levels.iter().flat_map(|level| level.iter().rev()).take_while(|stretch| stretch.to > from);
        past.fold(now, |sum, stretch| sum.saturating_add(stretch.within(from, to)))
    }
}

/// Follows all CPUs.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdleTimes {
    cpus: Vec<Past>,
}

impl IdleTimes {
    /// Begins with a state as it is.
    pub(crate) fn begin(&mut self, start: Ts, state: &SchedState) {
        state.observed().for_each(|cpu| self.follow(cpu, state.load(cpu), start));
    }

    /// A CPU may have changed.
    pub(crate) fn follow(&mut self, cpu: Cpu, load: Load, ts: Ts) {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize_with(cpu.index() + 1, Past::default);
        }
        let past = &mut self.cpus[cpu.index()];
        match (past.since, load) {
            (None, Load::Idle) => past.since = Some(ts),
            (Some(since), load) if load != Load::Idle => {
                past.since = None;
                past.add(since, ts);
            }
            _ => {}
        }
    }

    /// The CPUs that idled between two instants, the second of which is now; the longest first.
    pub(crate) fn between(&self, from: Ts, to: Ts) -> Vec<IdleCpu> {
        let idle = |(cpu, past): (Cpu, &Past)| IdleCpu { cpu, idle_ns: Dur(past.within(from, to)) };
        let mut found: Vec<IdleCpu> =
            (0..).map(Cpu).zip(&self.cpus).map(idle).filter(|idle| idle.idle_ns > Dur(0)).collect();
        found.sort_by(|a, b| b.idle_ns.cmp(&a.idle_ns).then(a.cpu.cmp(&b.cpu)));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recent_past_is_exact_and_the_distant_one_a_lower_bound() {
        let (mut times, mut truth) = (IdleTimes::default(), Vec::new());
        for i in 0..5_000i64 {
            // Idle for one to seven of ten.
            let (from, to) = (Ts(i * 10), Ts(i * 10 + 1 + i % 7));
            times.follow(Cpu(2), Load::Idle, from);
            times.follow(Cpu(2), Load::Idle, from);
            times.follow(Cpu(2), Load::Busy, to);
            truth.push((from, to));
        }
        times.follow(Cpu(2), Load::Idle, Ts(50_000));
        let now = Ts(50_004);
        for since in (0..50_000).step_by(333).map(Ts) {
            let exact: u64 = truth.iter().map(|(from, to)| to.since((*from).max(since)).0).sum::<u64>() + 4;
            let found = times.between(since, now);
            assert_eq!((found.len(), found[0].cpu), (1, Cpu(2)));
            let found = found[0].idle_ns.0;
            let age = now.since(since).0;
            assert!(found <= exact && exact - found <= age / 64, "{found} of {exact} since {since:?}");
            assert!(age > 2_500 || found == exact, "{found} of {exact} since {since:?}");
        }
    }
}
