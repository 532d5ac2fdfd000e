//! Recordings of some tasks, of some events, or of a time before the end: a missing event shows nothing there. And what the
//! program prints of one, two and none.

use crate::support::{fixture, root, schedviz, schedviz_in, scratch, unwrapped};
use parse::{FileIssue, Options, Source, Trace};
use regex::Regex;
use sched::{
    Analysis, Comm, Cpu, CpuSpan, Current, EventIssue, EventKind, Pass, Pid, PrevState, SchedEvent, SchedState,
    TaskRef, Ts,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use testkit::{Age, PerfBuilder, PerfForm, Simulation, TraceBuilder};

/// A file made by hand (`tests/cases/README.md`).
fn case(name: &str) -> PathBuf {
    root().join("tests/cases").join(name)
}

fn path(name: &str) -> String {
    case(name).to_str().expect("a path").to_owned()
}

fn json(arguments: &[&str]) -> Value {
    let ran = schedviz(&[arguments, &["--json", "-q"]].concat()).success();
    serde_json::from_slice(&ran.stdout).expect("JSON")
}

/// Gathers the spans of each CPU that have a length.
#[derive(Debug, Default)]
struct Spans(BTreeMap<Cpu, Vec<(Ts, Ts, Current)>>);

impl Analysis for Spans {
    type Output = Spans;

    fn cpu_span(&mut self, span: &CpuSpan, _: &SchedState) {
        if span.start < span.end {
            self.0.entry(span.cpu).or_default().push((span.start, span.end, span.current));
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> Spans {
        self
    }
}

/// Where the switch away from a stopper is missing, and no switch between an idle task and a stopper was recorded, the CPU
/// is unknown and not offline.
#[test]
fn a_filter_by_task_takes_no_cpu_offline() {
    let trace = Trace::open(&case("filtered-offline.dat"), Options::default()).expect("a trace");
    let pass = Pass::over(trace.events().expect("a clock")).run(Spans::default).expect("a pass");
    assert_eq!(pass.diagnostics.count(EventIssue::CpuOffline), 0);
    let spans = &pass.output.0[&Cpu(0)];
    // The stopper's own event is its last trace.
    let (stopper, moved, end) = (Ts(1_000_001_000_000), Ts(1_000_001_100_000), Ts(1_000_097_000_000));
    assert_eq!(spans[..], [(stopper, moved, Current::Task(Pid(18))), (moved, end, Current::Unknown)]);
    let shares = json(&["utilization", &path("filtered-offline.dat")]);
    assert_eq!((&shares["all"]["offline_ns"], &shares["all"]["unknown_ns"]), (&Value::from(0), &95_900_000.into()));
    // A part of it has the same conclusions.
    let folder = scratch("unrecorded-cut");
    let part = folder.join("part.dat");
    let part = part.to_str().expect("a path");
    schedviz(&["cut", &path("filtered-offline.dat"), "-q", "--max", "0.05", "-o", part]).success();
    let shares = json(&["utilization", part]);
    assert_eq!((&shares["all"]["offline_ns"], &shares["all"]["unknown_ns"]), (&Value::from(0), &49_900_000.into()));
}

/// Losses and CPUs that go offline are steps, and no events.
#[test]
fn conclusions_are_in_no_count_of_events() {
    let of = |at: &str| {
        let ran = schedviz(&["stepper", "-q", "--text", &path("filtered-offline.dat"), "--at", at]).success();
        ran.text().lines().find(|line| line.contains(", event ")).expect("a line").to_owned()
    };
    assert!(of("0.096").ends_with("event 22 of 22"), "{}", of("0.096"));
    assert!(of("0").ends_with("event 1 of 22"), "{}", of("0"));
    let steps = schedviz(&["stepper", "-q", "--text", &path("filtered-offline.dat"), "--at", "0.0001", "--steps", "2"]);
    let steps = steps.success().text();
    let heads: Vec<&str> = steps.lines().filter(|line| line.contains(" of 22")).collect();
    assert_eq!(heads.len(), 3, "{steps}");
    assert!(heads[0].ends_with("event 2 of 22") && heads[1].ends_with("behind event 2 of 22"), "{steps}");
    assert!(heads[2].ends_with("event 3 of 22"), "{steps}");
    assert_eq!(json(&["stepper", &path("filtered-offline.dat")])["events"], 22);
}

/// A recording by perf without -a has the events of the command's tasks alone: of their switches those away from them.
/// Whatever is known of a CPU then is true.
#[test]
fn a_recording_of_some_tasks_concludes_nothing_from_what_it_lacks() {
    let (mut known, mut unknown) = (0, 0);
    for seed in crate::support::seeds(12) {
        let run = Simulation::run(seed, 4, 1500);
        let truth = Pass::over(run.events.as_slice()).run(Spans::default).unwrap_or_else(|never| match never {});
        let mut chosen: Vec<Pid> = run.events.iter().map(|event| event.pid).filter(|pid| !pid.is_idle()).collect();
        chosen.sort_unstable();
        chosen.dedup();
        let chosen: Vec<Pid> = chosen.into_iter().step_by(3).collect();
        let some: Vec<SchedEvent> = run.events.iter().filter(|event| chosen.contains(&event.pid)).copied().collect();
        for form in [PerfForm::File, PerfForm::Stream] {
            let builder = PerfBuilder { form, of_command: true, round: 16, ..PerfBuilder::default() };
            let bytes = builder.build(&TraceBuilder { cpu_count: 4, ..TraceBuilder::default() }, &some);
            let options = Options { threads: 1, ..Options::default() };
            let trace = perfdata::open(Source::Memory(bytes), options).expect("a perf.data");
            assert_eq!(trace.diagnostics().count(FileIssue::SomeTasks), 1);
            let found = Pass::over(trace.events().expect("a clock")).run(Spans::default).expect("a pass").output;
            for (cpu, spans) in &found.0 {
                for (start, end, current) in spans {
                    let length = end.since(*start).0;
                    if *current == Current::Unknown {
                        unknown += length;
                        continue;
                    }
                    known += length;
                    let overlapping = truth.output.0[cpu].iter().filter(|(from, to, _)| from < end && start < to);
                    for (from, to, true_one) in overlapping {
                        assert_eq!(current, true_one, "seed {seed}, CPU {cpu}, {start:?} to {end:?}: {from:?} {to:?}");
                    }
                }
            }
        }
    }
    assert!(known > 0 && unknown > known, "{known} {unknown}");
}

/// The recorder's statistics count events that it did not read: they are behind the last one of each CPU.
#[test]
fn unread_events_are_behind_the_last_one() {
    let whole = path("unread.dat");
    let info = json(&["info", &whole]);
    assert_eq!(
        (&info["lost"]["unmarked"], &info["lost"]["gaps"], &info["lost"]["events"]),
        (&0.into(), &2.into(), &32.into())
    );
    let trace = Trace::open(&case("unread.dat"), Options::default()).expect("a trace");
    let pass = Pass::over(trace.events().expect("a clock")).run(Spans::default).expect("a pass");
    assert_eq!(pass.diagnostics.count(FileIssue::EventsDroppedUnmarked), 0);
    assert_eq!(pass.diagnostics.count(EventIssue::EventsLost), 2);
    let end = trace.extent().expect("events").1;
    for (cpu, spans) in &pass.output.0 {
        // CPU 0 has the last event of all: no time is behind it.
        let last = spans.last().expect("a span");
        assert_eq!(last.1, end);
        assert_eq!(last.2 == Current::Unknown, *cpu == Cpu(1), "{last:?}");
        let unknown = spans.iter().filter(|(.., current)| *current == Current::Unknown);
        assert_eq!(unknown.count(), cpu.index(), "{spans:?}");
    }
    // A part before that has lost nothing; one with the end has.
    let folder = scratch("unrecorded-unread");
    let part = folder.join("part.dat");
    let part = part.to_str().expect("a path");
    let losses = |window: &[&str]| {
        schedviz(&[&["cut", &whole, "-q", "-o", part], window].concat()).success();
        let info = json(&["info", part]);
        std::fs::remove_file(part).expect("removed");
        ["unmarked", "gaps", "events"].map(|name| info["lost"][name].as_u64().expect("a number"))
    };
    assert_eq!(losses(&["--max", "0.2"]), [0, 0, 0]);
    assert_eq!(losses(&["--min", "0.2"]), [0, 2, 32]);
}

/// A task that no switch names has the name that the recorder saved; in a window it has that of the switch before.
#[test]
fn lanes_have_the_names_that_the_trace_has() {
    let slices = |arguments: &[&str]| {
        let all = [&["dat2graph", "-q", "-o", "-", "--format", "csv"], arguments].concat();
        schedviz(&all).success().text().lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let names = path("saved-names.dat");
    let of_cpu_1: Vec<String> = slices(&[&names]).into_iter().filter(|line| line.starts_with("1,")).collect();
    assert_eq!(of_cpu_1, ["1,1000000500000,95500000,task,200,burn"]);
    assert_eq!(slices(&[&names, "--tasks", "^burn$", "--cpus", "1"]), of_cpu_1);
    // In windows of a run, of which the switches lie outside.
    let task = |pid: i32, name: &str| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) };
    let switch = |ts, prev: TaskRef, next: TaskRef| SchedEvent {
        ts: Ts(ts),
        cpu: Cpu(0),
        pid: prev.pid,
        flags: 0,
        kind: EventKind::Switch { prev, state: PrevState::asleep(1), next },
    };
    let other = |ts, pid| SchedEvent {
        ts: Ts(ts),
        cpu: Cpu(0),
        pid: Pid(pid),
        flags: 0,
        kind: EventKind::Exit { pid: Pid(9) },
    };
    let mut events = vec![switch(0, task(0, "swapper/0"), task(7, "early"))];
    events.extend((1..400).map(|nth| other(nth * 1_000_000, 7)));
    events.push(switch(400_000_000, task(7, "early"), task(8, "late")));
    events.extend((401..800).map(|nth| other(nth * 1_000_000, 8)));
    events.push(switch(800_000_000, task(8, "late"), task(7, "later")));
    let builder = TraceBuilder { page_size: 512, cmdlines: "7 last\n8 last\n".into(), ..TraceBuilder::default() };
    let folder = scratch("unrecorded-names");
    let file = folder.join("names.dat");
    std::fs::write(&file, builder.events(&events).build()).expect("written");
    let file = file.to_str().expect("a path");
    let name = |min: &str, max: &str| {
        let rows = slices(&[file, "--min", min, "--max", max]);
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows[0].rsplit(',').next().expect("a name").to_owned()
    };
    assert_eq!([name("0.1", "0.2"), name("0.3", "0.31"), name("0.5", "0.6")], ["early", "early", "late"]);
}

/// The letters are those of the kernel's own `trace` file (`trace_print_lat_fmt` of 6.13 and later).
#[test]
fn a_lazy_request_to_reschedule_has_the_kernels_letter() {
    let folder = scratch("unrecorded-flags");
    let letters = |age: Age, flags: u8| {
        let kind = EventKind::Exit { pid: Pid(7) };
        let event = SchedEvent { ts: Ts(5), cpu: Cpu(0), pid: Pid(7), flags, kind };
        let file = folder.join("flags.dat");
        std::fs::write(&file, TraceBuilder { age, ..TraceBuilder::default() }.events(&[event]).build())
            .expect("written");
        let list = schedviz(&["list", "-q", "--latency-format", file.to_str().expect("a path")]).success().text();
        list.split("] ").nth(1).expect("a column")[..3].to_owned()
    };
    let lazy = [0x02, 0x06, 0x22, 0x26, 0x03, 0x0a].map(|flags| letters(Age::Dynamic, flags));
    assert_eq!(lazy, [".l.", ".b.", ".L.", ".B.", "dl.", ".lh"]);
    assert_eq!([0x04, 0x24, 0x20, 0x01].map(|flags| letters(Age::Dynamic, flags)), [".n.", ".N.", ".p.", "d.."]);
    assert_eq!([0x02, 0x06].map(|flags| letters(Age::Modern, flags)), ["X..", "Xn."]);
}

#[test]
fn a_thread_of_each_cpu_is_of_the_kernel_and_bound() {
    let file = path("ktimersoftd.dat");
    let shares = json(&["utilization", &file]);
    // Each of the two CPUs runs its thread for 0.9 ms every 10 ms, and CPU 1 ksoftirqd/1 as well.
    assert!(shares["all"]["kernel_ns"].as_u64() > Some(20_000_000), "{}", shares["all"]);
    let latency = schedviz(&["latency", "-q", "--by", "command", &file]).success().text();
    assert!(latency.contains("ktimersoftd/N") && !latency.contains("ktimersoftd/1  "), "{latency}");
}

/// Where only switches were recorded, the first lines are in doubt, not the last one alone.
#[test]
fn the_first_line_of_workcons_has_the_doubt() {
    let ran = schedviz(&["workcons", &path("filtered-offline.dat")]).success().text();
    let mut paragraphs = ran.split("\n\n").map(unwrapped);
    let (doubts, headline) = (paragraphs.next().expect("doubts"), paragraphs.next().expect("a headline"));
    assert!(doubts.ends_with("Not recorded: sched_wakeup. Waiting tasks are known in part."), "{doubts}");
    assert!(headline.contains("which is not to be trusted (sched_wakeup was not recorded: "), "{headline}");
    let sure = schedviz(&["workcons", "-q", fixture("hackbench.dat").to_str().expect("a path")]).success().text();
    assert!(!sure.split("\n\n").next().expect("a headline").contains("trusted"), "{sure}");
}

/// A topology of another machine is a doubt in the report as on standard error.
#[test]
fn a_foreign_topology_is_no_exact_figure() {
    let folder = scratch("unrecorded-topology");
    let file = folder.join("cpus.txt");
    let place = |cpu: u32| {
        format!("cpu{cpu} socket={0} core={cpu} smt={cpu} llc={1}-{2}\n", cpu / 8, cpu / 8 * 8, cpu / 8 * 8 + 7)
    };
    std::fs::write(&file, (0..16).map(place).collect::<String>()).expect("written");
    let ran = schedviz(&[
        "workcons",
        fixture("hackbench.dat").to_str().expect("a path"),
        "--topology",
        file.to_str().expect("a path"),
    ])
    .success();
    assert!(ran.stderr.contains("is it another machine's?"), "{}", ran.stderr);
    let text = unwrapped(&ran.text());
    assert!(text.contains("is it another machine's?") && !text.contains("the figures are exact"), "{text}");
}

/// A part of the machine that was not recorded is another finding than one that is lost or damaged.
#[test]
fn coverage_is_no_damage() {
    let folder = scratch("unrecorded-coverage");
    let run = Simulation::run(3, 4, 600);
    let some: Vec<SchedEvent> = run.events.iter().filter(|event| event.pid.0 % 2 == 1).copied().collect();
    let builder = PerfBuilder { of_command: true, ..PerfBuilder::default() };
    let file = folder.join("some.data");
    let bytes = builder.build(&TraceBuilder { cpu_count: 4, ..TraceBuilder::default() }, &some);
    std::fs::write(&file, bytes).expect("written");
    let file = file.to_str().expect("a path");
    let info = schedviz(&["info", file]).success().text();
    assert!(info.contains("\nlost       nothing\n") && !info.contains("could not be read"), "{info}");
    let info = unwrapped(&info);
    assert!(info.contains("incomplete: a recording of some tasks alone"), "{info}");
    assert!(!info.contains("run queues: exact"), "{info}");
    let rows = json(&["info", file])["diagnostics"].as_array().expect("rows").clone();
    let some = rows.iter().find(|row| row["kind"] == "some-tasks").expect("a finding");
    assert_eq!(some["severity"], "incomplete");
}

/// Numbers with nouns that do not agree with them: `1 events`, `2 task`.
fn disagreements(text: &str) -> Vec<String> {
    let nouns = "core|CPU|event|task|time|place|wakeup|switch|wait|run|migration|sample|episode|interval|file|step|herd\
                 |searche|search|attempt|recording|record|span|command|trace|kind|buffer|table|row|sleep|thread";
    let many =
        Regex::new(&format!(r"(?:^|(?<before>\S+ )|[\s(])(?<all>1 (more )?({nouns})(e?s))\b")).expect("a pattern");
    let one = Regex::new(&format!(
        r"(?:^|(?<before>\S+ )|[\s(])(?<all>(0|[2-9]|[1-9][0-9,]*[0-9]) (more )?({nouns}))\b[^-:/]"
    ))
    .expect("a pattern");
    let is_name = |before: &str| ["CPU ", "core ", "node ", "CPUs ", "PID "].contains(&before);
    let found = many.captures_iter(text).chain(one.captures_iter(text));
    let wrong = found.filter(|found| !found.name("before").is_some_and(|before| is_name(before.as_str())));
    wrong.map(|found| found["all"].to_owned()).collect()
}

/// Takes seconds: every text is printed with one and with two of everything.
#[test]
fn numbers_and_nouns_agree() {
    assert_eq!(disagreements("1 cores, 2 task, 0 event "), ["1 cores", "2 task", "0 event"]);
    assert!(disagreements("1 core, 2 tasks, CPU 1 switches, 0.1 events, 11 runs, 1.1 tasks").is_empty());
    let folder = scratch("unrecorded-nouns");
    let task = |pid: i32, name: &str| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) };
    let idle = |cpu: u32| TaskRef { pid: Pid(0), prio: 120, comm: Comm::new(format!("swapper/{cpu}").as_bytes()) };
    // On each of `cpus` CPUs, `times` times: a task sleeps, is woken, waits behind another one, runs, and is moved.
    let events = |cpus: u32, times: i64| {
        let mut events = Vec::new();
        let mut push = |ts: i64, cpu: u32, pid: Pid, kind| {
            events.push(SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid, flags: 0, kind });
        };
        for nth in 0..times {
            for cpu in 0..cpus {
                let (a, b) = (task(10 + 2 * cpu as i32, "first"), task(11 + 2 * cpu as i32, "second"));
                let ts = |step: i64| nth * 20_000_000 + step * 1_000_000 + i64::from(cpu) * 10_000;
                let switch = |prev: TaskRef, next| EventKind::Switch { prev, state: PrevState::asleep(1), next };
                push(ts(0), cpu, Pid(0), EventKind::Waking { task: a, target: Cpu(cpu) });
                push(ts(0) + 1000, cpu, Pid(0), EventKind::Wakeup { task: a, target: Cpu(cpu) });
                push(ts(1), cpu, Pid(0), switch(idle(cpu), a));
                push(ts(2), cpu, a.pid, EventKind::Waking { task: b, target: Cpu(cpu) });
                push(ts(2) + 1000, cpu, a.pid, EventKind::Wakeup { task: b, target: Cpu(cpu) });
                push(ts(8), cpu, a.pid, switch(a, b));
                push(ts(9), cpu, b.pid, switch(b, idle(cpu)));
            }
        }
        events.sort_by_key(|event| event.ts);
        events
    };
    let mut wrong = Vec::new();
    for (cpus, times) in [(1, 1), (2, 1), (1, 2), (2, 2)] {
        let file = folder.join(format!("{cpus}-{times}.dat"));
        let builder = TraceBuilder { cpu_count: cpus, ..TraceBuilder::default() };
        std::fs::write(&file, builder.events(&events(cpus, times)).build()).expect("written");
        sweep(&file, &mut wrong);
    }
    for name in ["filtered-offline.dat", "unread.dat", "saved-names.dat"] {
        sweep(&case(name), &mut wrong);
    }
    for name in ["mask.dat", "instance.dat", "hotplug.dat"] {
        sweep(&fixture(name), &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs every command that prints or draws on a trace, and looks at all its words.
fn sweep(file: &Path, wrong: &mut Vec<String>) {
    let file = file.to_str().expect("a path");
    let texts: [&[&str]; 16] = [
        &["info"],
        &["workcons"],
        &["why"],
        &["latency"],
        &["fairness"],
        &["utilization"],
        &["migrations"],
        &["events"],
        &["stepper", "--text", "--steps", "3"],
        &["path", "--pid", "10"],
        &["dat2graph", "-o", "-", "--format", "svg"],
        &["running-waiting", "-o", "-", "--format", "svg"],
        &["latency", "-o", "-", "--format", "svg"],
        &["workcons", "-o", "-", "--format", "svg"],
        &["why", "-o", "-", "--format", "svg"],
        &["events", "--wakeups", "-o", "-", "--format", "svg"],
    ];
    // Some of them draw a figure unasked.
    let folder = scratch("unrecorded-sweep");
    for arguments in texts {
        let ran = schedviz_in(&folder, &[&arguments[..1], &[file], &arguments[1..]].concat());
        let printed = format!("{}\n{}", String::from_utf8_lossy(&ran.stdout), ran.stderr);
        wrong.extend(disagreements(&printed).into_iter().map(|found| format!("{arguments:?} {file}: {found}")));
    }
}
