//! CPUs that go offline and come back: the reader's conclusions, against a simulation and the kernel's own steps.

use crate::support::{self, fixture};
use parse::{FileIssue, Options, Trace, Want};
use sched::{Cpu, CpuSpan, Current, EventIssue, EventKind, Pass, SchedEvent, SchedState, Ts};
use std::ops::ControlFlow;
use testkit::{Compression, Laws, Simulation, TraceBuilder};

/// Returns the time at which each CPU went offline, and that of its next event, if there is one.
fn offline(events: &[SchedEvent]) -> Vec<(Cpu, Ts, Option<Ts>)> {
    let times = |(place, event): (usize, &SchedEvent)| {
        let next = events[place + 1..].iter().find(|e| e.cpu == event.cpu).map(|e| e.ts);
        (event.cpu, event.ts, next)
    };
    events.iter().enumerate().filter(|(_, event)| event.kind == EventKind::Offline).map(times).collect()
}

fn open(name: &str) -> Trace {
    Trace::open(&fixture(name), Options::default()).expect("a fixture")
}

#[test]
fn simulated_offline_times_are_concluded_from_the_file() {
    let mut marks = 0;
    for seed in crate::support::seeds(60) {
        let run = Simulation::hotplug(seed, 2 + (seed % 7) as u32, 600);
        let expected = offline(&run.events);
        marks += expected.len();
        // With small pages, and units of one page, many offline intervals begin or end between two units.
        for (version, compression, page_size) in
            [(6, Compression::None, 4096), (7, Compression::Zstd, 1024), (7, Compression::Zstd, 512)]
        {
            let builder = TraceBuilder { version, compression, page_size, chunk_pages: 1, ..TraceBuilder::default() };
            let bytes = builder.events(&run.events).build();
            for threads in [1, 2] {
                let options = Options { threads, budget: 3, ..Options::default() };
                let trace = Trace::from_bytes(bytes.clone(), options).expect("a trace");
                let events = support::events(&trace);
                assert_eq!(offline(&events), expected, "seed {seed}, pages of {page_size}");
                let kept = |e: &&SchedEvent| e.kind != EventKind::Offline;
                let times =
                    |events: &[SchedEvent]| -> Vec<_> { events.iter().filter(kept).map(|e| (e.ts, e.cpu)).collect() };
                assert_eq!(times(&events), times(&run.events), "seed {seed}");
                for want in [Want::Everything, Want::Switches] {
                    let reader = trace.cpu_reader(want).expect("a clock");
                    for cpu in trace.observed() {
                        let mut alone = Vec::new();
                        reader.events(0, cpu, None, &mut |event| {
                            alone.push(*event);
                            ControlFlow::Continue(())
                        });
                        let expected: Vec<_> = expected.iter().filter(|(on, ..)| *on == cpu).copied().collect();
                        assert_eq!(offline(&alone), expected, "seed {seed}, CPU {cpu}, {want:?}");
                    }
                }
            }
        }
    }
    assert!(marks > 500, "{marks} marks prove little");
}

/// A step on a CPU's way down or up, from `cpuhp` events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The step begins; `target` is the state at the end of the way.
    Enter { step: i64, target: i64 },
    /// The step ends.
    Exit { step: i64 },
}

/// Returns the steps of each CPU that another CPU executes for it, since it is partly or completely offline.
fn steps(trace: &Trace) -> Vec<(Cpu, Ts, Step)> {
    let mut steps = Vec::new();
    trace.records(&mut |record| {
        let step = match record.format().map_or("", |format| &format.name) {
            "cpuhp_enter" | "cpuhp_multi_enter" => record.number("idx").zip(record.number("target")),
            "cpuhp_exit" => record.number("idx").map(|step| (step, -1)),
            _ => None,
        };
        let cpu = record.number("cpu").and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu);
        if let (Some((step, target)), Some(cpu)) = (step, cpu)
            && cpu != record.cpu
        {
            let step = if target < 0 { Step::Exit { step } } else { Step::Enter { step, target } };
            steps.push((cpu, record.ts, step));
        }
        ControlFlow::Continue(())
    });
    steps
}

/// The step numbers are those of 6.1: the step that takes the CPU down (CPUHP_TEARDOWN_CPU), and the first and the last
/// step on its way up that another CPU executes.
#[test]
fn offline_times_are_those_of_the_recorded_steps() {
    let trace = open("hotplug-steps.dat");
    let steps = steps(&trace);
    let mut found = 0;
    for (cpu, from, to) in offline(&support::events(&trace)) {
        let mine = || steps.iter().filter(|(on, ..)| *on == cpu);
        // The CPU went offline while it was being taken down.
        let down = mine().find(|(_, ts, step)| *ts > from && matches!(step, Step::Exit { step: 153 }));
        let begun = mine().rfind(|(_, ts, step)| *ts < from && matches!(step, Step::Enter { target: 0, step: 153 }));
        let (begun, down) = (begun.expect("a step down").1, down.expect("its end").1);
        // It comes back while it is being brought up.
        let back = to.expect("an event after it");
        let up = mine().rfind(|(_, ts, step)| *ts < back && matches!(step, Step::Enter { target: 236, step: 1 }));
        let online = mine().find(|(_, ts, step)| *ts > back && matches!(step, Step::Exit { step: 91 }));
        let (up, online) = (up.expect("a step up").1, online.expect("the last one").1);
        assert!(begun < from && from < down && down < up && up < back && back < online, "CPU {cpu}");
        found += 1;
    }
    let taken_down = steps.iter().filter(|(_, _, step)| matches!(step, Step::Exit { step: 153 })).count();
    assert_eq!((found, taken_down), (3, 3));
}

/// The first state of CPU 3, and the end of it.
#[derive(Debug, Default)]
struct First(Option<(Current, Ts)>);

impl sched::Analysis for First {
    type Output = First;

    fn cpu_span(&mut self, span: &CpuSpan, _: &SchedState) {
        if span.cpu == Cpu(3) && span.start < span.end {
            self.0.get_or_insert((span.current, span.end));
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> First {
        self
    }
}

#[test]
fn a_cpu_that_comes_online_was_offline_before() {
    let trace = open("online.dat");
    let start = trace.start().expect("events");
    let pass =
        Pass::over(trace.events().expect("a clock")).run(|| (First::default(), Laws::default())).expect("a pass");
    let (first, laws) = pass.output;
    let (current, until) = first.0.expect("a span");
    // The traced command writes 1 to `online` half a second after its start.
    assert_eq!((current, until.since(start).0), (Current::Offline, laws.offline.0));
    assert!((500_000_000..700_000_000).contains(&laws.offline.0), "{:?}", laws.offline);
    assert_eq!(pass.diagnostics.count(EventIssue::CpuOffline), 1);
    assert_eq!(pass.diagnostics.count(EventIssue::SwitchPrevMismatch), 0);
}

/// A kernel of 2020, whose wakeups have the field `success`.
#[test]
fn an_older_kernel_takes_cpus_down_alike() {
    let trace = open("hotplug-5.10.dat");
    let events = support::events(&trace);
    let begun = |ts: Ts| ts.since(events[0].ts).seconds();
    let found: Vec<_> = offline(&events).into_iter().map(|(cpu, from, to)| (cpu, begun(from), to.map(begun))).collect();
    // The command wrote 0 to `online` of CPU 3, 1 after 0.4 s, and 0 to that of CPU 2 after another 0.4 s.
    let [(Cpu(3), from, Some(to)), (Cpu(2), again, None)] = found.as_slice() else { panic!("{found:?}") };
    assert!((0.4..0.7).contains(&(to - from)) && (0.4..0.7).contains(&(again - to)), "{found:?}");
    let pass = Pass::over(trace.events().expect("a clock")).run(Laws::default).expect("a pass");
    let kinds: Vec<_> = pass.diagnostics.iter().map(|(what, ..)| what).collect();
    assert_eq!(kinds, [FileIssue::EventsDroppedUnmarked.diagnostic(), EventIssue::CpuOffline.diagnostic()]);
}
