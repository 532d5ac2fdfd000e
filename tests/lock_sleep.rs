//! Sleeps on a lock that a kernel records as preemptions: against a simulation and the kernel's own stacks.

use crate::support::{self, fixture};
use parse::{Options, Trace};
use sched::{Cpu, EventKind, EventSource, Pid, PrevState, SchedEvent, StateClass, Ts};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use testkit::{Age, Compression, Rng, Simulation, TraceBuilder};

/// Whether the previous task of the switch at `place` is woken before it runs again.
fn is_woken_next(events: &[SchedEvent], place: usize, left: Pid) -> bool {
    let mut announced = false;
    for event in &events[place + 1..] {
        match event.kind {
            EventKind::Waking { task, .. } => announced |= task.pid == left,
            EventKind::Wakeup { task, .. } if task.pid == left => return announced,
            EventKind::Switch { next, .. } if next.pid == left => return false,
            _ => {}
        }
    }
    false
}

/// Returns the same events with some sleeps recorded as preemptions, as by such a kernel.
fn disguised(events: &[SchedEvent], rng: &mut Rng) -> Vec<SchedEvent> {
    let mut all = events.to_vec();
    for (place, event) in all.iter_mut().enumerate() {
        let EventKind::Switch { prev, state, .. } = &mut event.kind else { continue };
        let woken = is_woken_next(events, place, prev.pid);
        match state.class {
            StateClass::Asleep if woken && rng.below(2) == 0 => *state = PrevState::PREEMPTED,
            StateClass::Preempted => assert!(!woken, "a simulated task is never preempted on its way to sleep"),
            _ => {}
        }
    }
    all
}

fn classes(events: &[SchedEvent]) -> Vec<(Ts, Cpu, Option<StateClass>)> {
    let class = |event: &SchedEvent| match event.kind {
        EventKind::Switch { state, .. } => Some(state.class),
        _ => None,
    };
    events.iter().map(|event| (event.ts, event.cpu, class(event))).collect()
}

#[test]
fn sleeps_recorded_as_preemptions_are_read_as_sleeps() {
    let mut disguises = 0;
    for seed in crate::support::seeds(30) {
        let run = Simulation::run(seed, 2 + (seed % 7) as u32, 600);
        let written = disguised(&run.events, &mut Rng::new(seed));
        disguises += written.iter().zip(&run.events).filter(|(now, was)| now != was).count();
        for (version, compression) in [(6, Compression::None), (7, Compression::Zstd)] {
            let small =
                TraceBuilder { version, compression, page_size: 1024, chunk_pages: 1, ..TraceBuilder::default() };
            let bytes = TraceBuilder { age: Age::RealTime, ..small }.events(&written).build();
            for threads in [1, 2] {
                let trace = Trace::from_bytes(bytes.clone(), Options { threads, budget: 3, ..Options::default() });
                let trace = trace.expect("a trace");
                let expected = classes(&run.events);
                assert_eq!(classes(&support::events(&trace)), expected, "seed {seed}");
                let from = expected[expected.len() / 2].0;
                let mut late = Vec::new();
                let mut stream = trace.events().expect("a clock");
                let collect = &mut |events: &[SchedEvent]| {
                    late.extend_from_slice(events);
                    ControlFlow::Continue(())
                };
                stream.events_from(from, collect).expect("events");
                let behind = expected.partition_point(|(ts, ..)| *ts < from);
                assert_eq!(classes(&late), &expected[behind..], "seed {seed}");
            }
        }
    }
    assert!(disguises > 500, "{disguises} prove little");
}

/// Returns the time and CPU of each switch from a preempted task, and whether the recorded kernel stack is that of a
/// sleep on a lock.
fn stacks(trace: &Trace) -> BTreeMap<(Ts, Cpu), bool> {
    let mut found = BTreeMap::new();
    let mut open: BTreeMap<Cpu, Ts> = BTreeMap::new();
    trace.records(&mut |record| {
        match record.format().map_or("", |f| f.name.as_str()) {
            "sched_switch" => {
                open.remove(&record.cpu);
                if record.number("prev_state") == Some(PrevState::PREEMPTED.raw.into()) {
                    open.insert(record.cpu, record.ts);
                }
            }
            "kernel_stack" => {
                if let Some(ts) = open.remove(&record.cpu) {
                    found.insert((ts, record.cpu), record.printed().contains("=> preempt_schedule_lock "));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
    found
}

/// In rt-5.10.dat each switch with the state `R+` has a stack (`stacktrace if prev_state == 256`).
#[test]
fn the_kernels_own_stacks_agree() {
    let trace = Trace::open(&fixture("rt-5.10.dat"), Options::default()).expect("a fixture");
    let events = support::events(&trace);
    let mut slept: BTreeSet<(Ts, Cpu)> = BTreeSet::new();
    for (place, event) in events.iter().enumerate() {
        if let EventKind::Switch { prev, state, .. } = event.kind
            && state.raw == PrevState::PREEMPTED.raw
        {
            let woken = is_woken_next(&events, place, prev.pid);
            assert_eq!(state.class == StateClass::Asleep, woken, "at {:?}", event.ts);
            slept.extend(woken.then_some((event.ts, event.cpu)));
        }
    }
    let mut table: BTreeMap<(bool, bool), u32> = BTreeMap::new();
    for (place, on_a_lock) in stacks(&trace) {
        *table.entry((slept.contains(&place), on_a_lock)).or_default() += 1;
    }
    let of = |slept, on_a_lock| table.get(&(slept, on_a_lock)).copied().unwrap_or(0);
    assert_eq!(of(true, true) + of(true, false), slept.len() as u32);
    // Some tasks are woken before they have gone to sleep; some are preempted on their way to sleep.
    assert!(of(true, true) > 200 && of(true, false) * 50 < of(true, true), "{table:?}");
    assert!(of(false, false) > 200 && of(false, true) * 20 < of(false, false), "{table:?}");
}
