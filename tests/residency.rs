//! `schedviz residency`: run times are those of `utilization`, waits those of `neighbours`, and adjacent windows add up to the whole, on every
//! recording.

use crate::support::{events, fixture, fixtures_and_part, schedviz, scratch, utilization_of_all};
use neighbours::{By, Matrix};
use parse::Trace;
use residency::{GroupedBy, Options, Residency, ResidencyReport};
use sched::topology::CpuLocation;
use sched::{Cpu, Pass, SchedEvent, Topology, Ts, Window};
use std::path::{Path, PathBuf};
use testkit::{Laws, Simulation};
use utilization::Utilization;

/// Two CPUs to a core, and four to a cache.
fn topology() -> Topology {
    let mut topology = Topology::default();
    for cpu in 0..64 {
        let location = CpuLocation { core: Some(cpu / 2), llc: Some(cpu / 4), ..CpuLocation::default() };
        topology.set(Cpu(cpu), location);
    }
    topology
}

/// The numbers that add up over windows.
fn sums(report: &ResidencyReport) -> [u64; 8] {
    let sum = |of: fn(&residency::GroupReport) -> u64| report.groups.iter().map(of).sum::<u64>();
    let llcs = report.llcs.iter();
    [
        report.run_ns.0,
        llcs.clone().map(|llc| llc.run_ns.0).sum(),
        llcs.map(|llc| llc.wait_ns.0).sum(),
        sum(|group| group.moves),
        sum(|group| group.returns_10ms),
        sum(|group| group.returns_100ms),
        report.moves.iter().map(|of| of.moves).sum(),
        sum(|group| group.placements),
    ]
}

fn check(name: &str, events: &[SchedEvent]) {
    let (first, last) = (events[0].ts, events[events.len() - 1].ts);
    let run = |window: Window| {
        let (from, to) = window.within(first, last);
        let options = Options { topology: topology(), ..Options::new(GroupedBy::Command, from, to) };
        let of_cpus = utilization_of_all(events, from, to);
        let waits = neighbours::Options::new(By::Command);
        let analyses = || (Residency::new(&options), Laws::default(), Utilization::new(&of_cpus), Matrix::new(&waits));
        let (report, laws, times, matrix) =
            Pass::over(events).window(window).run(analyses).unwrap_or_else(|never| match never {}).output;
        assert_eq!(report.run_ns, laws.running, "{name}: the run time of all tasks");
        let real_time = times.all.rt_ns + times.all.rt_possible_ns;
        let classes = [times.all.other_ns, times.all.kernel_ns, times.all.stopper_ns, real_time];
        let tasks = classes.iter().sum::<u64>() + times.all.app_ns.unwrap_or(0) + times.all.injected_ns;
        let in_handlers: u64 = times.cpus.iter().map(|cpu| cpu.irq_in_tasks_ns).sum();
        assert_eq!(report.run_ns.0, tasks + in_handlers, "{name}: the tasks of utilization");
        let waited: u64 = report.llcs.iter().map(|llc| llc.wait_ns.0).sum();
        assert_eq!(waited, matrix.wait_ns.expect("time").0, "{name}: the matrix");
        assert!(waited <= laws.waiting.0, "{name}");
        sums(&report)
    };
    let whole = run(Window::default());
    let cut = Ts(first.0 + last.since(first).0 as i64 / 3);
    let at = events[events.len() / 2].ts.max(cut);
    let edges = [None, Some(cut), Some(at), None];
    let mut all = [0; 8];
    for edge in edges.windows(2) {
        let part = run(Window { from: edge[0], to: edge[1] });
        all.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    assert_eq!(all, whole, "{name}");
}

/// The unit tests are of a few moves: here adjacent windows add up, and the times are those of `utilization` and of the matrix, under loss as
/// well.
#[test]
fn run_time_is_that_of_all_tasks_and_windows_add_up() {
    for seed in crate::support::seeds(40) {
        let sim = Simulation::balanced(seed, 2 + (seed % 7) as u32, 300);
        let events = if seed % 5 == 0 { sim.lossy(seed).0 } else { sim.events };
        check(&format!("seed {seed}"), &events);
    }
    for path in fixtures_and_part(3) {
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        if trace.has_time().is_ok() {
            let events = events(&trace);
            if events.len() > 10 && events.iter().all(|event| event.cpu.0 < 64) {
                check(&path.display().to_string(), &events);
            }
        }
    }
}

#[test]
fn a_trace_without_known_caches_is_refused() {
    let fixture = fixture("forked-unknown.dat");
    let ran = schedviz(&["residency", fixture.to_str().expect("a path")]);
    assert!(ran.code == Some(1) && ran.stderr.contains("the caches of its CPUs are unknown"), "{}", ran.stderr);
}

/// The numbers of a run of the command: moves, returns within 10 ms and within 100 ms, of all groups.
fn returned(trace: &Path, more: &[&str]) -> [u64; 3] {
    let topology = fixture("hackbench.cpus.txt");
    let [trace, topology] = [trace, &topology].map(|path| path.to_str().expect("a path"));
    let ran = schedviz(&[&["residency", trace, "--topology", topology, "--json", "-q"], more].concat()).success();
    let document: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let groups = document["groups"].as_array().expect("groups");
    ["moves", "returns_10ms", "returns_100ms"]
        .map(|field| groups.iter().map(|group| group[field].as_u64().expect("a number")).sum())
}

#[test]
fn a_part_has_the_returns_from_moves_before_it() {
    let folder = scratch("residency-parts");
    let whole = fixture("hackbench.dat");
    let cut = |trace: &Path, name: &str, window: &[&str]| -> PathBuf {
        let part = folder.join(name);
        let [from, to] = [trace, &part].map(|path| path.to_str().expect("a path"));
        schedviz(&[&["cut", from, "-o", to, "-q"], window].concat()).success();
        part
    };
    // Windows at whose start tasks are away from the cache that they come back to.
    let mut sums = [0; 3];
    for (nth, anonymize) in [(0, false), (1, false), (2, true), (3, false)] {
        let edges = [nth, nth + 1].map(|edge| format!("{}ms", 400 + 20 * edge));
        let window = ["--min", &edges[0], "--max", &edges[1]];
        let expected = returned(&whole, &window);
        let more = if anonymize { &["--anonymize"][..] } else { &[] };
        let part = cut(&whole, &format!("part-{nth}.dat"), &[&window, more].concat());
        assert_eq!(returned(&part, &[]), expected, "{window:?}");
        if !anonymize {
            let again = cut(&part, &format!("again-{nth}.dat"), &["--min", &format!("{}ms", 405 + 20 * nth)]);
            let window = ["--min", &format!("{}ms", 405 + 20 * nth), "--max", &edges[1]];
            assert_eq!(returned(&again, &[]), returned(&whole, &window), "{window:?}");
        }
        sums.iter_mut().zip(expected).for_each(|(sum, number)| *sum += number);
    }
    // Without the note the parts have fewer returns than their windows.
    assert!(sums[1] > 0 && sums[2] > sums[1], "{sums:?}");
}
