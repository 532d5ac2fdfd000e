//! The parts against a second implementation that looks at every waiter at every event, and what an event costs.

use super::{NotRunning, VcpusNotRunning};
use sched::{
    Affinity, Analysis, Comm, Cpu, EventKind, Pass, Pid, PrevState, SchedEvent, SchedState, Task, TaskRef, Ts,
};
use session::host::Vcpus;
use session::vcpus::{VcpuStretch, VcpuThread, VcpuTimes};
use std::sync::atomic::{AtomicI32, Ordering};
use testkit::Rng;
use workcons::Options;

fn stretch(from: i64, to: i64, is_unknown: bool) -> VcpuStretch {
    VcpuStretch { from: Ts(from), to: Ts(to), is_unknown }
}

/// The vCPUs with threads from CPU 0 on, each with the stretches for which it was kept or unknown.
fn vcpus(stretches: Vec<Vec<VcpuStretch>>) -> Vcpus {
    let thread = |(cpu, stretches)| VcpuThread {
        vcpu: Cpu(cpu),
        pid: Pid(1_000 + cpu.cast_signed()),
        command: Comm::EMPTY,
        times: VcpuTimes::default(),
        stretches,
    };
    let vcpus = (0..).zip(stretches).map(thread).collect();
    let guest = sched::event::CleanText::of_bytes(b"guest");
    let (times, clock) = Default::default();
    Vcpus { recording: "host.dat".to_owned(), guest, times, vcpus, clock, missing: Vec::new() }
}

fn follow(events: &[SchedEvent], options: &Options<'_>, vcpus: &Vcpus) -> NotRunning {
    let outcome = Pass::over(events).run(|| VcpusNotRunning::new(options, vcpus));
    outcome.unwrap_or_else(|never| match never {}).output
}

/// Follows the definition: at each event, over all CPUs and all waiters as they were since the event before.
struct Naive<'o> {
    options: &'o Options<'o>,
    vcpus: &'o Vcpus,
    since: Ts,
    sums: NotRunning,
}

impl Naive<'_> {
    fn until(&mut self, ts: Ts, state: &SchedState) {
        let from = std::mem::replace(&mut self.since, ts);
        let mut idle: Vec<(Cpu, bool)> =
            state.observed().filter(|cpu| self.options.load(*cpu, state).is_idle()).map(|cpu| (cpu, false)).collect();
        let may = |task: &Task, on: Cpu, cpu: Cpu| {
            let allowed = self.options.affinity.and_then(|of| of.set(of.of(task, on, state)?, state));
            allowed.is_none_or(|allowed| allowed.has(cpu))
        };
        let mut waiting: Vec<Cpu> = Vec::new();
        for cpu in state.observed().filter(|cpu| self.options.load(*cpu, state).is_overloaded()) {
            for task in state.waiting(cpu).filter(|task| self.options.counts(task, cpu, state)) {
                let mut concerns = false;
                for (_, is_concerned) in idle.iter_mut().filter(|(other, _)| may(task, cpu, *other)) {
                    (*is_concerned, concerns) = (true, true);
                }
                waiting.extend(concerns.then_some(cpu));
            }
        }
        for cpu in waiting {
            let (kept, unknown) = self.vcpus.within(cpu, from, ts);
            self.sums.waiting_ns.0 += kept;
            self.sums.waiting_unknown_ns.0 += unknown;
        }
        for (cpu, _) in idle.iter().filter(|(_, is_concerned)| *is_concerned) {
            let (kept, unknown) = self.vcpus.within(*cpu, from, ts);
            self.sums.idling_ns.0 += kept;
            self.sums.idling_unknown_ns.0 += unknown;
        }
    }
}

impl Analysis for Naive<'_> {
    type Output = NotRunning;

    fn begin(&mut self, start: Ts, _: &SchedState) {
        self.since = start;
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        self.until(event.ts, state);
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> NotRunning {
        self.until(end, state);
        self.sums
    }
}

#[test]
fn the_parts_are_those_of_every_waiter_at_every_event() {
    let mut found = 0;
    for seed in 0..12 {
        let events = testkit::Simulation::balanced(seed, 5, 1_200).events;
        let (start, end) = (events[0].ts.0, events[events.len() - 1].ts.0);
        // CPU 4 has no thread on the host.
        let mut rng = Rng::new(seed);
        let stretches = |rng: &mut Rng| {
            // Some 300 stretches, a few of which touch.
            let (mut at, mut all, step) = (start - 50, Vec::new(), (end - start) as usize / 300);
            while at < end {
                let from = at + rng.below(step).saturating_sub(step / 8) as i64;
                at = from + 1 + rng.below(step) as i64;
                all.push(stretch(from, at, rng.below(4) == 0));
            }
            all
        };
        let vcpus = vcpus((0..4).map(|_| stretches(&mut rng)).collect());
        let mut affinity = Affinity::new((0..5).map(Cpu));
        (1..40).step_by(3).for_each(|pid| affinity.add(Pid(pid), &[Cpu(0), Cpu(2)].into_iter().collect()));
        for affinity in [None, Some(&affinity)] {
            let options = Options { affinity, ..Options::default() };
            let naive = || Naive { options: &options, vcpus: &vcpus, since: Ts(0), sums: NotRunning::default() };
            let by_hand = Pass::over(events.as_slice()).run(naive).unwrap_or_else(|never| match never {}).output;
            assert_eq!(follow(&events, &options, &vcpus), by_hand, "{seed}, {}", affinity.is_some());
            let NotRunning { waiting_ns, waiting_unknown_ns, idling_ns, idling_unknown_ns } = by_hand;
            let parts = [waiting_ns, waiting_unknown_ns, idling_ns, idling_unknown_ns];
            found += parts.into_iter().filter(|part| part.0 > 0).count();
        }
    }
    assert!(found > 80, "{found}");
}

#[test]
fn many_waiters_are_looked_at_once_each() {
    let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(if pid == 0 { b"swapper" } else { b"task" }) };
    let mut events: Vec<SchedEvent> = Vec::new();
    let mut add = |cpu, pid, kind| {
        let ts = Ts(events.len() as i64 + 1);
        events.push(SchedEvent { ts, cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind });
    };
    let (waiters, turns) = (3_000, 1_000);
    add(0, 0, EventKind::Switch { prev: task(0), state: PrevState::RUNNABLE, next: task(7) });
    (0..waiters).for_each(|nth| add(0, 7, EventKind::Wakeup { task: task(9 + nth), target: Cpu(0) }));
    // CPU 1 begins to idle again and again, which changes nothing about the waiters.
    for _ in 0..turns {
        add(1, 0, EventKind::Switch { prev: task(0), state: PrevState::RUNNABLE, next: task(8) });
        add(1, 8, EventKind::Switch { prev: task(8), state: PrevState::asleep(1), next: task(0) });
    }
    let asked = AtomicI32::new(0);
    let none = |_: &Task, _: &SchedState| {
        asked.fetch_add(1, Ordering::Relaxed);
        false
    };
    let options = Options { excluded: Some(&none), ..Options::default() };
    let end = events.len() as i64;
    let vcpus = vcpus(vec![vec![stretch(1, end, false)], Vec::new()]);
    let found = follow(&events, &options, &vcpus);
    // CPU 1 idles for 1 ns of each turn but the last, at which the trace ends.
    assert_eq!(found.waiting_ns.0, u64::try_from((turns - 1) * waiters).unwrap());
    // Each waiter as it begins to wait, and the task that CPU 0 runs or that CPU 1 begins to run: never all at an event.
    let asked = asked.into_inner();
    assert!((waiters..=waiters + 2 * turns).contains(&asked), "{asked}");
}
