//! The laws of the state, over simulated runs with a known true state and over every recording.

use crate::support;
use parse::{Options, Trace};
use sched::pass::{Extent, Sink};
use sched::{
    Analysis, Comm, Current, Diagnostics, Dur, EventIssue, EventKind, EventSource, Pass, Pid, SchedEvent, SchedState,
    Severity, TaskState, Ts, Window,
};
use std::cell::Cell;
use std::collections::BTreeSet;
use testkit::{LawReport, Laws, Simulation, Truth};

/// Compares the state with the true one after every event. A pass that turns out to have begun with an
/// incomplete state is repeated, so the first difference is a result and not a panic.
struct Compare<'s> {
    truth: std::slice::Iter<'s, Truth>,
    tasks: &'s BTreeSet<i32>,
    cpus: &'s BTreeSet<u32>,
    initial: &'s Truth,
    difference: Option<String>,
}

impl Compare<'_> {
    fn check(&mut self, truth: &Truth, state: &SchedState) {
        for cpu in self.cpus.iter().map(|c| sched::Cpu(*c)) {
            let current = match state.current(cpu) {
                Current::Unknown => -1,
                Current::Offline => Truth::OFFLINE,
                Current::Idle => 0,
                Current::Task(pid) => pid.0,
            };
            let known = |pid: &&i32| self.tasks.contains(pid);
            let mut queue: Vec<i32> = truth.queues[cpu.index()].iter().filter(known).copied().collect();
            let mut ours: Vec<i32> = state.waiting(cpu).map(|t| t.pid.0).collect();
            // The order of the tasks that waited at the start is not in the trace.
            queue.sort_unstable();
            ours.sort_unstable();
            let truth = (truth.current[cpu.index()], queue);
            if (current, &ours) != (truth.0, &truth.1) {
                let what = || format!("CPU {cpu} at {:?}: {current} and {ours:?}, in truth {truth:?}", state.now());
                self.difference.get_or_insert_with(what);
            }
        }
    }
}

impl Analysis for Compare<'_> {
    type Output = Option<String>;

    fn begin(&mut self, _: Ts, state: &SchedState) {
        self.check(self.initial, state);
    }

    fn after(&mut self, _: &SchedEvent, state: &SchedState) {
        let truth = self.truth.next().expect("a truth for each event");
        self.check(truth, state);
    }

    fn finish(self, _: Ts, _: &SchedState) -> Option<String> {
        self.difference
    }
}

fn simulations() -> impl Iterator<Item = Simulation> {
    (0..120).map(|seed| Simulation::any(seed, 1 + (seed % 9) as u32, 400))
}

#[test]
fn the_state_is_the_simulators_at_every_event() {
    for (seed, sim) in simulations().enumerate() {
        let (tasks, cpus) = sim.witnessed();
        // A short prologue makes late discoveries, and repetitions, likely.
        for prologue in [0, 50, 100_000] {
            let (tasks, cpus, initial) = (&tasks, &cpus, &sim.initial);
            let compare = || Compare { truth: sim.truth.iter(), tasks, cpus, initial, difference: None };
            let outcome = Pass::over(sim.events.as_slice()).prologue(prologue).run(|| (compare(), Laws::default()));
            let outcome = outcome.unwrap_or_else(|never| match never {});
            assert_eq!(outcome.output.0, None, "seed {seed}, prologue {prologue}");
            // No event records that the stopper of a CPU that goes offline stops.
            let gone = sim.events.iter().filter(|e| e.kind == EventKind::Offline && e.ts > sim.events[0].ts).count();
            assert_eq!(outcome.output.1.unseen, gone as u64, "seed {seed}, prologue {prologue}");
            let repaired: Vec<_> =
                outcome.diagnostics.iter().filter(|d| d.0.severity() == Severity::Repaired).collect();
            assert!(repaired.is_empty(), "seed {seed}: {repaired:?}");
        }
    }
}

fn laws(events: &[SchedEvent], window: Window) -> LawReport {
    Pass::over(events).window(window).run(Laws::default).unwrap_or_else(|never| match never {}).output
}

/// Checks that every task that is claimed to run does so.
struct NothingInvented<'s> {
    sim: &'s Simulation,
    truth: std::slice::Iter<'s, Option<usize>>,
    claims: u64,
}

impl Analysis for NothingInvented<'_> {
    type Output = u64;

    fn after(&mut self, _: &SchedEvent, state: &SchedState) {
        let Some(truth) = self.truth.next().expect("one for each event") else { return };
        for (cpu, current) in (0..).zip(&self.sim.truth[*truth].current) {
            match state.current(sched::Cpu(cpu)) {
                Current::Unknown => continue,
                Current::Offline => assert_eq!(Truth::OFFLINE, *current),
                Current::Idle => assert_eq!(0, *current),
                Current::Task(pid) => assert_eq!(pid.0, *current),
            }
            self.claims += 1;
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> u64 {
        self.claims
    }
}

#[test]
fn laws_hold_with_losses_and_nothing_is_invented() {
    let (mut losses, mut claims) = (0, 0);
    for (seed, sim) in (0..).zip(simulations()) {
        assert_eq!(laws(&sim.events, Window::default()).unknown, Dur(0), "seed {seed}");
        let (events, truth) = sim.lossy(seed);
        losses += events.iter().filter(|e| matches!(e.kind, EventKind::Lost { .. })).count();
        let check = || NothingInvented { sim: &sim, truth: truth.iter(), claims: 0 };
        let outcome = Pass::over(events.as_slice()).run(|| (Laws::default(), check()));
        claims += outcome.unwrap_or_else(|never| match never {}).output.1;
    }
    assert!(losses > 100 && claims > 10_000, "too little to prove anything: {losses} losses, {claims} claims");
}

/// Counts the tasks that are claimed to wait, and those of them that do not.
struct Waiting<'s> {
    truth: std::slice::Iter<'s, &'s Truth>,
    claims: u64,
    wrong: u64,
}

impl Analysis for Waiting<'_> {
    type Output = (u64, u64);

    fn after(&mut self, _: &SchedEvent, state: &SchedState) {
        let truth = self.truth.next().expect("a truth for each event");
        for cpu in state.observed() {
            let is_there = |task: &sched::Task| truth.queues.iter().any(|queue| queue.contains(&task.pid.0));
            self.claims += state.waiting(cpu).count() as u64;
            self.wrong += state.waiting(cpu).filter(|task| !is_there(task)).count() as u64;
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> (u64, u64) {
        (self.claims, self.wrong)
    }
}

/// In a recording with `-e sched_switch -e sched_waking -e sched_wakeup` forked tasks begin without an event.
#[test]
fn tasks_forked_unseen_do_not_wait_from_the_start() {
    let (mut claims, mut runs) = (0, 0);
    for (seed, sim) in simulations().enumerate() {
        let is_birth = |kind: &EventKind| matches!(kind, EventKind::WakeupNew { .. } | EventKind::Fork { .. });
        let kept = || sim.events.iter().zip(&sim.truth).filter(|(event, _)| !is_birth(&event.kind));
        let (events, truth): (Vec<SchedEvent>, Vec<&Truth>) = kept().map(|(event, truth)| (*event, truth)).unzip();
        let check = || Waiting { truth: truth.iter(), claims: 0, wrong: 0 };
        let outcome = Pass::over(events.as_slice()).run(check).unwrap_or_else(|never| match never {});
        let came = outcome.diagnostics.count(EventIssue::UnseenWakeup) > 0;
        // Without any sign of such a task a reader cannot know that they exist.
        if came {
            assert_eq!(outcome.output.1, 0, "seed {seed}: of {} claims", outcome.output.0);
            (claims, runs) = (claims + outcome.output.0, runs + 1);
        }
    }
    assert!(claims > 10_000 && runs > 60, "too little to prove anything: {claims} claims in {runs} runs");
}

/// A source that delivers the same events in small batches, so that a pass can stop it early.
struct Piecemeal<S>(S);

impl<S: EventSource> EventSource for Piecemeal<S> {
    type Error = S::Error;

    fn extent(&mut self) -> Result<Extent, S::Error> {
        self.0.extent()
    }

    fn events(&mut self, sink: &mut Sink<'_>) -> Result<(), S::Error> {
        self.0.events(&mut |events| events.chunks(8).try_for_each(&mut *sink))
    }

    fn births(&mut self) -> bool {
        self.0.births()
    }

    fn saved_name(&self, pid: Pid) -> Comm {
        self.0.saved_name(pid)
    }

    fn diagnostics(&self) -> Diagnostics {
        self.0.diagnostics()
    }
}

/// Returns the results of passes with a prologue of all events, and with one that ends as early as possible, and
/// whether the latter had to be repeated.
fn with_and_without_haste<S: EventSource>(mut source: S) -> Result<([String; 2], bool), S::Error> {
    let options = workcons::Options::default();
    let begun = Cell::new(0);
    let analyses = || {
        begun.set(begun.get() + 1);
        (Laws::default(), workcons::WorkConservation::new(&options))
    };
    let patient = Pass::over(&mut source).prologue(usize::MAX).hasty(usize::MAX).run(analyses)?;
    let before = begun.replace(0);
    let hasty = Pass::over(Piecemeal(source)).prologue(usize::MAX).hasty(8).run(analyses)?;
    Ok(([format!("{patient:?}"), format!("{hasty:?}")], begun.get() > before))
}

/// A pass guesses the start of a trace from a prologue. Histories without births are those that prove a guess wrong.
#[test]
fn a_short_prologue_finds_the_same() {
    let mut broken_off = 0;
    let mut check = |name: String, [patient, hasty]: [String; 2], again: bool| {
        assert_eq!(patient, hasty, "{name}");
        broken_off += usize::from(again);
    };
    let is_birth = |kind: &EventKind| matches!(kind, EventKind::WakeupNew { .. } | EventKind::Fork { .. });
    for (seed, sim) in simulations().enumerate() {
        let unborn: Vec<SchedEvent> = sim.events.iter().filter(|event| !is_birth(&event.kind)).copied().collect();
        for events in [&sim.events, &unborn] {
            let (found, again) = with_and_without_haste(events.as_slice()).unwrap_or_else(|never| match never {});
            check(format!("seed {seed}"), found, again);
        }
    }
    for path in support::recordings() {
        let trace = Trace::open(&path, Options::default()).expect("a readable recording");
        if trace.has_time().is_ok() {
            let found = with_and_without_haste(trace.events().expect("events"));
            let (found, again) = found.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            check(path.display().to_string(), found, again);
        }
    }
    assert!(broken_off > 60, "too few to prove anything: {broken_off}");
}

#[test]
fn adjacent_windows_add_up_to_the_whole() {
    for sim in simulations().take(40).filter(|s| s.events.len() > 10) {
        let whole = laws(&sim.events, Window::default());
        let (first, last) = (sim.events[0].ts, sim.events[sim.events.len() - 1].ts);
        let mut sum = LawReport::default();
        let cuts = 7;
        for i in 0..cuts {
            let at = |i: i64| Ts(first.0 + (last.0 - first.0) * i / cuts);
            let part = laws(&sim.events, Window { from: Some(at(i)), to: Some(at(i + 1)) });
            sum.busy += part.busy;
            sum.idle += part.idle;
            sum.unknown += part.unknown;
            sum.waiting += part.waiting;
            sum.window += part.window;
            sum.events += part.events;
        }
        let totals = |r: &LawReport| (r.busy, r.idle, r.unknown, r.waiting, r.window, r.events);
        assert_eq!(totals(&sum), totals(&whole));
    }
}

#[test]
fn laws_hold_on_every_recording() {
    for path in support::recordings() {
        let trace = Trace::open(&path, Options::default()).expect("a readable recording");
        if trace.has_time().is_err() {
            continue;
        }
        let outcome = Pass::over(trace.events().expect("events")).run(Laws::default);
        let outcome = outcome.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(outcome.output.cpus, trace.observed().len(), "{}", path.display());
        let gaps: u64 = trace.counts().buffers.iter().flat_map(|b| &b.cpus).map(|c| c.gaps).sum();
        assert_eq!(outcome.output.unknown.0 > 0, gaps > 0, "{}", path.display());
    }
}

#[test]
fn a_state_counts_running_and_waiting_tasks() {
    #[derive(Default)]
    struct Integrate(Ts, LawReport);
    impl Analysis for Integrate {
        type Output = LawReport;
        const COUNTS: bool = true;
        fn begin(&mut self, start: Ts, _: &SchedState) {
            self.0 = start;
        }
        fn before(&mut self, event: &SchedEvent, state: &SchedState) {
            let (dt, counts) = (event.ts.since(self.0).0, state.counts());
            self.0 = event.ts;
            self.1.running += Dur(dt * u64::from(counts.running()));
            self.1.waiting += Dur(dt * u64::from(counts.waiting));
            self.1.idle += Dur(dt * u64::from(counts.idle + counts.switch_pending));
            self.1.unknown += Dur(dt * u64::from(counts.unknown));
        }
        fn finish(self, _: Ts, _: &SchedState) -> LawReport {
            self.1
        }
    }
    for sim in simulations() {
        let (lossy, _) = sim.lossy(3);
        for events in [&sim.events, &lossy] {
            let run = Pass::over(events.as_slice()).run(|| (Laws::default(), Integrate::default()));
            let (laws, counted) = run.unwrap_or_else(|never| match never {}).output;
            assert_eq!(
                (laws.running, laws.waiting, laws.idle, laws.unknown),
                (counted.running, counted.waiting, counted.idle, counted.unknown)
            );
        }
    }
}

#[test]
fn running_spans_add_up_to_the_busy_time() {
    // On one CPU at most one task runs at a time.
    let sim = Simulation::run(5, 1, 300);
    struct OneAtATime(u64);
    impl Analysis for OneAtATime {
        type Output = u64;
        fn span(&mut self, span: &sched::Span, _: &SchedState) {
            if let TaskState::Running(cpu) = span.state {
                assert_eq!(cpu, sched::Cpu(0));
                self.0 += span.duration().0;
            }
        }
        fn finish(self, _: Ts, _: &SchedState) -> u64 {
            self.0
        }
    }
    let outcome = Pass::over(sim.events.as_slice()).run(|| (OneAtATime(0), Laws::default()));
    let (ran, laws) = outcome.unwrap_or_else(|never| match never {}).output;
    assert!(ran > 0 && ran == laws.busy.0 && laws.busy.0 + laws.idle.0 == laws.window.0);
}
