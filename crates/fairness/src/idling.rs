//! The times in which each CPU idled with an empty run queue, as far back as a wait may reach.

use crate::past::{Content, Past};
use sched::{Cpu, CpuSet, Dur, HELD_BACK, Load, SchedState, Ts};
use serde::Serialize;

/// A CPU that idled during a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleCpu {
    /// The CPU that idled.
    pub cpu: Cpu,
    /// The time for which the CPU idled during the wait, at least, in nanoseconds.
    pub idle_ns: Dur,
}

impl Content for u64 {
    fn join(&mut self, later: u64) {
        *self = self.saturating_add(later);
    }
}

/// A CPU: since when it idles, and how long it did in each stretch before.
#[derive(Clone, Debug, Default)]
struct Idling {
    since: Option<Ts>,
    past: Past<u64>,
}

impl Idling {
    /// The CPU idles from now on, or it does not.
    fn turn(&mut self, idles: bool, ts: Ts, least: Dur) {
        match self.since {
            None if idles => self.since = Some(ts),
            Some(since) if !idles => {
                self.since = None;
                if ts.since(since) >= least {
                    self.past.add(since, ts, ts.since(since).0);
                }
            }
            _ => {}
        }
    }

    /// The idle time between two instants in nanoseconds: of a joined stretch that an instant cuts, at least the part
    /// that must lie there.
    fn within(&self, from: Ts, to: Ts) -> u64 {
        let now = self.since.map_or(0, |since| to.since(since.max(from)).0);
        let past = self.past.since(from).map(|stretch| stretch.held.saturating_sub(stretch.outside(from, to)));
        past.fold(now, u64::saturating_add)
    }
}

/// Follows all CPUs.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdleTimes {
    cpus: Vec<Idling>,
    /// The stretches in which each CPU idled beside its own waiting tasks.
    held_back: Vec<Idling>,
}

impl IdleTimes {
    /// Begins with a state as it is.
    pub(crate) fn begin(&mut self, start: Ts, state: &SchedState) {
        state.observed().for_each(|cpu| self.follow(cpu, state.load(cpu), start));
    }

    /// A CPU may have changed.
    pub(crate) fn follow(&mut self, cpu: Cpu, load: Load, ts: Ts) {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize_with(cpu.index() + 1, Idling::default);
            self.held_back.resize_with(cpu.index() + 1, Idling::default);
        }
        self.cpus[cpu.index()].turn(load.is_idle(), ts, Dur(0));
        self.held_back[cpu.index()].turn(load.is_awaited(), ts, HELD_BACK);
    }

    /// The time between two instants for which a CPU idled beside its own waiting tasks, for 1 ms or longer at a time; at least.
    pub(crate) fn held_back(&self, cpu: Cpu, from: Ts, to: Ts, now: Ts) -> u64 {
        let Some(idling) = self.held_back.get(cpu.index()) else { return 0 };
        let is_long = |since: &Ts| now.since(*since) >= HELD_BACK;
        let open = idling.since.filter(is_long).map_or(0, |since| to.since(since.max(from)).0);
        let past = idling.past.since(from).map(|stretch| stretch.held.saturating_sub(stretch.outside(from, to)));
        past.fold(open, u64::saturating_add)
    }

    /// The time between two instants, the second of which is now, for which one of these CPUs idled; at least.
    pub(crate) fn of_any(&self, cpus: &CpuSet, from: Ts, to: Ts) -> u64 {
        let (mut longest, mut stretches) = (0, Vec::new());
        for (_, idling) in (0..).map(Cpu).zip(&self.cpus).filter(|(cpu, _)| cpus.has(*cpu)) {
            longest = longest.max(idling.within(from, to));
            stretches.extend(idling.since.map(|since| (since.max(from), to)));
            stretches.extend(idling.past.since(from).filter_map(|stretch| stretch.between(from, to)));
        }
        stretches.sort_unstable();
        let mut reached = from;
        let all = stretches.into_iter().map(|(start, end): (Ts, Ts)| {
            let part = end.since(start.max(reached).min(end)).0;
            reached = reached.max(end);
            part
        });
        all.fold(0, u64::saturating_add).max(longest)
    }

    /// The CPUs that idled between two instants, the second of which is now; the longest first.
    pub(crate) fn between(&self, from: Ts, to: Ts) -> Vec<IdleCpu> {
        let idle = |(cpu, idling): (Cpu, &Idling)| IdleCpu { cpu, idle_ns: Dur(idling.within(from, to)) };
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
    fn the_idle_time_of_some_cpus_is_that_of_any_of_them() {
        let mut times = IdleTimes::default();
        for (cpu, from, to) in [(0, 0, 100), (1, 10, 30), (2, 20, 40), (2, 60, 70), (1, 65, 90)] {
            times.follow(Cpu(cpu), Load::Idle, Ts(from));
            times.follow(Cpu(cpu), Load::Busy, Ts(to));
        }
        times.follow(Cpu(2), Load::Idle, Ts(95));
        let of = |cpus: &[u32]| times.of_any(&cpus.iter().map(|cpu| Cpu(*cpu)).collect(), Ts(15), Ts(100));
        // 15 to 40, 60 to 90 and 95 to 100; of CPU 1 15 to 30 and 65 to 90.
        assert_eq!([of(&[1, 2]), of(&[1]), of(&[3]), of(&[0, 1])], [60, 40, 0, 85]);
    }

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
