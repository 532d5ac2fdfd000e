//! Cores on which several siblings run tasks while a whole core idles (`docs/questions/residency.md`).

use crate::cores::Cores;
use sched::kthread::is_bound;
use sched::{Affinity, Analysis, Cpu, Dur, Joined, Load, SchedEvent, SchedState, Topology, Ts};
use serde::Serialize;
use std::sync::Arc;

/// The time during which siblings of a core ran tasks while every CPU of another core idled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Crowded {
    /// The time, in nanoseconds.
    pub ns: Dur,
    /// The same in percent of the window.
    pub percent: f64,
    /// The core time lost, in nanoseconds: at each instant the number of idle cores, but at most that of the tasks beyond the first on each core.
    pub core_time_lost_ns: u64,
}

/// The work of a CPU, as far as it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Doing {
    /// The CPU runs a task.
    Busy,
    /// The CPU idles with an empty queue.
    Idle,
    #[default]
    Rest,
}

/// The numbers of CPUs of a core that are busy, and that idle.
#[derive(Clone, Copy, Debug, Default)]
struct CoreNow {
    busy: usize,
    idle: usize,
}

/// The analysis of crowded cores: an [`Analysis`] whose output is a [`Crowded`].
#[derive(Debug)]
pub struct CrowdedCores {
    cores: Cores,
    affinity: Option<Arc<Affinity>>,
    cpus: Vec<Doing>,
    now: Vec<CoreNow>,
    /// The numbers of cores with two busy CPUs or more, and of those that idle.
    crowded: usize,
    idle: usize,
    /// The number of cores that could be used in the place of a sibling, since `since`.
    unused: usize,
    start: Ts,
    since: Ts,
    ns: u64,
    lost: u64,
}

impl CrowdedCores {
    /// Returns the analysis; nothing where no core is known to have several CPUs. `affinity`: the CPUs that tasks may use, where they are known.
    pub fn new(topology: &Topology, affinity: Option<Arc<Affinity>>) -> Option<CrowdedCores> {
        let cores = Cores::of(topology);
        cores.have_siblings().then(|| CrowdedCores {
            now: vec![CoreNow::default(); cores.all().len()],
            cores,
            affinity,
            cpus: Vec::new(),
            crowded: 0,
            idle: 0,
            unused: 0,
            start: Ts(0),
            since: Ts(0),
            ns: 0,
            lost: 0,
        })
    }

    /// Accounts for the time until `ts`.
    fn pass(&mut self, ts: Ts) {
        let ns = ts.since(self.since).0;
        self.since = self.since.max(ts);
        if self.unused > 0 {
            self.ns = self.ns.saturating_add(ns);
            self.lost = self.lost.saturating_add(ns.saturating_mul(self.unused as u64));
        }
    }

    /// Looks at a CPU anew.
    fn settle(&mut self, cpu: Cpu, state: &SchedState) {
        let Some(at) = self.cores.number(cpu) else { return };
        let doing = match state.load(cpu) {
            Load::Busy | Load::Overloaded => Doing::Busy,
            Load::Idle => Doing::Idle,
            _ => Doing::Rest,
        };
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, Doing::Rest);
        }
        let before = std::mem::replace(&mut self.cpus[cpu.index()], doing);
        let (core, size) = (&mut self.now[at], self.cores.all()[at].len());
        let is_of = |core: &CoreNow| (usize::from(core.busy > 1), usize::from(core.idle == size));
        let old = is_of(core);
        for (what, sign) in [(before, -1_isize), (doing, 1)] {
            let number = match what {
                Doing::Busy => &mut core.busy,
                Doing::Idle => &mut core.idle,
                Doing::Rest => continue,
            };
            *number = number.wrapping_add_signed(sign);
        }
        let new = is_of(core);
        (self.crowded, self.idle) = (self.crowded + new.0 - old.0, self.idle + new.1 - old.1);
    }

    /// Counts the idle cores that tasks on crowded ones could use.
    fn count(&self, state: &SchedState) -> usize {
        if self.crowded == 0 || self.idle == 0 {
            return 0;
        }
        let all = || self.cores.all().iter().zip(&self.now);
        let idle: Vec<Cpu> =
            all().filter(|(cpus, now)| now.idle == cpus.len()).flat_map(|(cpus, _)| cpus).copied().collect();
        let may_leave = |cpu: &&Cpu| {
            let Some(task) = state.running(**cpu).filter(|task| !is_bound(task.comm, **cpu)) else { return false };
            let affinity = self.affinity.as_ref();
            let set = affinity.and_then(|affinity| affinity.set(affinity.of(task, **cpu, state)?, state));
            set.is_none_or(|set| idle.iter().any(|cpu| set.has(*cpu)))
        };
        let crowded = all().filter(|(_, now)| now.busy > 1);
        let movable = crowded.map(|(cpus, now)| cpus.iter().filter(may_leave).count().min(now.busy - 1)).sum::<usize>();
        movable.min(self.idle)
    }

    fn report(&self) -> Crowded {
        let window = self.since.since(self.start).0;
        let percent = 100.0 * self.ns as f64 / (window as f64).max(1.0);
        Crowded { ns: Dur(self.ns), percent, core_time_lost_ns: self.lost }
    }
}

impl Analysis for CrowdedCores {
    type Output = Crowded;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        (self.start, self.since) = (start, start);
        let cpus: Vec<Cpu> = state.observed().collect();
        cpus.into_iter().for_each(|cpu| self.settle(cpu, state));
        self.unused = self.count(state);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        if state.touched().is_empty() {
            return;
        }
        self.pass(event.ts);
        for cpu in state.touched() {
            self.settle(*cpu, state);
        }
        self.unused = self.count(state);
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> Crowded {
        self.pass(end);
        self.report()
    }
}

impl Joined for CrowdedCores {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, at: Ts, state: &SchedState) {
        self.begin(at, state);
    }

    fn fits(&self, _: &Self) -> bool {
        true
    }

    fn join(&mut self, later: Self) {
        self.pass(later.start);
        let (start, ns, lost) = (self.start, self.ns.saturating_add(later.ns), self.lost.saturating_add(later.lost));
        *self = CrowdedCores { start, ns, lost, ..later };
    }
}

#[cfg(test)]
mod tests {
    use super::{Crowded, CrowdedCores};
    use sched::topology::CpuLocation;
    use sched::{
        Affinity, Comm, Cpu, CpuSet, EventKind, Pass, Pid, PrevState, SchedEvent, TaskRef, Topology, Ts, Window,
    };
    use std::sync::Arc;

    /// CPUs 0 and 1 form a core, 2 and 3 another one.
    fn pairs() -> Topology {
        let mut topology = Topology::default();
        for cpu in 0..4 {
            topology.set(Cpu(cpu), CpuLocation { core: Some(cpu / 2), ..CpuLocation::default() });
        }
        topology
    }

    fn task(pid: i32) -> TaskRef {
        TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(if pid == 0 { b"swapper" } else { b"work" }) }
    }

    /// From 0 on every CPU idles; 5 runs on CPU 0 from 100 to 900, 6 on CPU 1 from 200 to 600, and 7 on CPU 2 from 400 to 500.
    fn events() -> Vec<SchedEvent> {
        let switch = |ts, cpu, prev, next| {
            let state = if prev == 0 { PrevState::RUNNABLE } else { PrevState::asleep(1) };
            let kind = EventKind::Switch { prev: task(prev), state, next: task(next) };
            SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(prev), flags: 0, kind }
        };
        let shown = (0..4).map(|cpu| SchedEvent {
            ts: Ts(0),
            cpu: Cpu(cpu),
            pid: Pid(0),
            flags: 0,
            kind: EventKind::Other { id: 1 },
        });
        let switches = [
            switch(100, 0, 0, 5),
            switch(200, 1, 0, 6),
            switch(400, 2, 0, 7),
            switch(500, 2, 7, 0),
            switch(600, 1, 6, 0),
            switch(900, 0, 5, 0),
            switch(1000, 0, 0, 5),
        ];
        shown.chain(switches).collect()
    }

    fn found(affinity: Option<Affinity>, window: Window) -> Crowded {
        let (topology, affinity) = (pairs(), affinity.map(Arc::new));
        let events = events();
        let pass = Pass::over(events.as_slice()).window(window);
        let pass = pass.run(|| CrowdedCores::new(&topology, affinity.clone()));
        pass.unwrap_or_else(|never| match never {}).output.expect("siblings")
    }

    #[test]
    fn siblings_that_are_busy_beside_an_idle_core_crowd_theirs() {
        // 5 and 6 share a core from 200 to 600, and the other one idles but for 100 of that.
        let whole = found(None, Window::default());
        assert_eq!((whole.ns.0, whole.core_time_lost_ns, whole.percent), (300, 300, 30.0));
        let parts =
            [(0, 250), (250, 450), (450, 1000)].map(|(from, to)| Window { from: Some(Ts(from)), to: Some(Ts(to)) });
        assert_eq!(parts.map(|part| found(None, part).ns.0), [50, 150, 100]);
        // Tasks that may not leave crowd nothing, unless one of them may.
        let set = |cpus: &[u32]| cpus.iter().map(|cpu| Cpu(*cpu)).collect::<CpuSet>();
        for (second, ns) in [(&[0, 1][..], 0), (&[1, 2], 300)] {
            let mut affinity = Affinity::new((0..4).map(Cpu));
            affinity.add_first(Pid(5), &set(&[0, 1]));
            affinity.add_first(Pid(6), &set(second));
            assert_eq!(found(Some(affinity), Window::default()).ns.0, ns, "{second:?}");
        }
        assert!(CrowdedCores::new(&Topology::default(), None).is_none());
    }

    /// At each instant of a simulated run, by the state alone; and the same in pieces.
    #[test]
    fn the_time_is_that_of_every_instant() {
        use sched::{Analysis, Load, SchedState};

        #[derive(Default)]
        struct Instants(Ts, u64, u64);

        impl Instants {
            fn until(&mut self, ts: Ts, state: &SchedState) {
                let ns = ts.since(self.0).0;
                self.0 = ts;
                let load = |cpu: u32| state.load(Cpu(cpu));
                let cores = [[0, 1], [2, 3], [4, 5]];
                let is_movable = |cpu: u32| {
                    load(cpu).runs()
                        && state.running(Cpu(cpu)).is_some_and(|task| !sched::kthread::is_bound(task.comm, Cpu(cpu)))
                };
                let extra = |core: &[u32; 2]| {
                    let both = core.iter().all(|cpu| load(*cpu).runs());
                    u64::from(both && core.iter().any(|cpu| is_movable(*cpu)))
                };
                let crowded: u64 = cores.iter().map(extra).sum();
                let idle = cores.iter().filter(|core| core.iter().all(|cpu| load(*cpu) == Load::Idle)).count() as u64;
                let unused = crowded.min(idle);
                self.1 += if unused > 0 { ns } else { 0 };
                self.2 += ns * unused;
            }
        }

        impl Analysis for Instants {
            type Output = (u64, u64);

            fn begin(&mut self, start: Ts, _: &SchedState) {
                self.0 = start;
            }

            fn before(&mut self, event: &SchedEvent, state: &SchedState) {
                self.until(event.ts, state);
            }

            fn finish(mut self, end: Ts, state: &SchedState) -> (u64, u64) {
                self.until(end, state);
                (self.1, self.2)
            }
        }

        let mut topology = Topology::default();
        for cpu in 0..6 {
            topology.set(Cpu(cpu), CpuLocation { core: Some(cpu / 2), ..CpuLocation::default() });
        }
        let (mut total, mut tally) = (0, testkit::PieceTally::default());
        for seed in 0..6 {
            let simulation = testkit::Simulation::run(seed, 6, 600);
            let (lossy, _) = simulation.lossy(seed);
            for events in [&simulation.events, &lossy] {
                let analysis = || CrowdedCores::new(&topology, None);
                let pass = Pass::over(events.as_slice()).run(|| (analysis(), Instants::default()));
                let (crowded, (ns, lost)) = pass.unwrap_or_else(|never| match never {}).output;
                let crowded = crowded.expect("siblings");
                assert_eq!((crowded.ns.0, crowded.core_time_lost_ns), (ns, lost), "{seed}");
                total += ns;
                let show = |crowded: &Option<Crowded>| format!("{crowded:?}");
                tally += testkit::in_pieces(&mut events.as_slice(), Window::default(), &[1, 7, 61], analysis, show);
            }
        }
        assert!(total > 0 && tally.joined > 0, "{total} {tally:?}");
    }
}
