//! `schedviz offcpu`: stacks against trace-cmd's own text, and sums against all time off-CPU.

use crate::support::{fixture, schedviz};
use offcpu::{OffCpu, OffCpuTime, Options, StackKind, folded};
use sched::{Analysis, Pass, Span, TaskState, Ts};
use std::path::{Path, PathBuf};
use std::process::Command;
use tracedat::{StackFrame, Trace};

/// Recordings with stacks: a fixture, and more where the folder of recordings is there.
fn stacked() -> Vec<PathBuf> {
    let mut paths = vec![fixture("rt-5.10.dat")];
    if let Some(folder) = std::env::var_os("SCHEDVIZ_TRACES") {
        let names = ["6.12-stack-option", "7.2-stack-option", "6.12-stack-trigger", "7.2-stack-trigger"];
        paths.extend(names.map(|name| Path::new(&folder).join(format!("extra/newer/{name}.dat"))));
    }
    paths
}

fn open(path: &Path) -> Trace {
    Trace::open(path, tracedat::Options::default()).expect("a readable recording")
}

/// The stacks behind switches in the text of `trace-cmd report`, sorted: each as its CPU and its frames.
fn by_trace_cmd(path: &Path) -> Option<Vec<(u32, Vec<String>)>> {
    let ran = Command::new("trace-cmd").arg("report").arg(path).output().ok()?;
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let cpu = |line: &str| line.split_once('[')?.1.split_once(']')?.0.parse::<u32>().ok();
    // Whether the last event of each CPU is a switch.
    let mut is_switch = vec![false; 4096];
    let mut stacks: Vec<(u32, Vec<String>)> = Vec::new();
    let mut is_taken = false;
    for line in text.lines() {
        if let Some(frame) = line.strip_prefix("=> ") {
            if is_taken && let Some((_, frames)) = stacks.last_mut() {
                frames.push(frame.split(' ').next().unwrap_or_default().to_owned());
            }
            continue;
        }
        is_taken = false;
        let Some(cpu) = cpu(line) else { continue };
        if line.contains(" kernel_stack: ") {
            is_taken = is_switch[cpu as usize];
            stacks.extend(is_taken.then(|| (cpu, Vec::new())));
        } else {
            is_switch[cpu as usize] = line.contains(" sched_switch: ");
        }
    }
    stacks.sort();
    Some(stacks)
}

#[test]
fn frames_are_those_that_trace_cmd_prints() {
    for path in stacked() {
        let Some(expected) = by_trace_cmd(&path) else { return };
        let trace = open(&path);
        let stacks = trace.switch_stacks();
        let mut found: Vec<(u32, Vec<String>)> = Vec::new();
        for event in crate::support::events(&trace) {
            let sched::EventKind::Switch { prev, .. } = event.kind else { continue };
            let Some(id) = stacks.of_switch(event.ts, event.cpu, prev.pid) else { continue };
            let name = |frame: &StackFrame| match trace.function_at(frame.address) {
                Some((name, _)) => name.to_owned(),
                None => format!("{:x}", frame.address),
            };
            found.push((event.cpu.0, stacks.frames(id).iter().filter(|frame| !frame.is_user).map(name).collect()));
        }
        found.sort();
        assert!(!found.is_empty() && stacks.beyond_limit() == 0, "{}", path.display());
        assert_eq!(found.len(), expected.len(), "{}", path.display());
        let differ = found.iter().zip(&expected).find(|(ours, theirs)| ours != theirs);
        assert_eq!(differ, None, "{}", path.display());
    }
}

/// All time asleep and runnable.
#[derive(Default)]
struct AllTime(u64, u64);

impl Analysis for AllTime {
    type Output = (u64, u64);

    fn span(&mut self, span: &Span, _: &sched::SchedState) {
        match span.state {
            TaskState::Asleep(_) => self.0 += span.duration().0,
            TaskState::Waiting(_) => self.1 += span.duration().0,
            _ => {}
        }
    }

    fn finish(self, _: Ts, _: &sched::SchedState) -> (u64, u64) {
        (self.0, self.1)
    }
}

#[test]
fn every_nanosecond_is_at_a_stack_or_in_the_row_without_one() {
    let without = ["hackbench.dat", "mask.dat", "hotplug.dat", "perf-z.data"].map(fixture);
    let mut paths: Vec<(PathBuf, bool)> = stacked().into_iter().map(|path| (path, true)).collect();
    paths.extend(without.into_iter().map(|path| (path, false)));
    if let Some(folder) = std::env::var_os("SCHEDVIZ_TRACES") {
        paths.push((Path::new(&folder).join("extra/linux-6.12-c8-n2/perf/perf-callchain.data"), true));
    }
    for (path, has_stacks) in paths {
        let source = tracedat::Source::Memory(std::fs::read(&path).expect("a file"));
        let options = tracedat::Options::default();
        let opened = match perfdata::is_perf_data(&source) {
            true => perfdata::open(source, options),
            false => Trace::of_source(source, options),
        };
        let trace = opened.expect("a readable recording");
        assert_eq!(trace.has_stacks(), has_stacks, "{}", path.display());
        let events = || trace.events().expect("events");
        let (asleep, runnable) = Pass::over(events()).run(AllTime::default).expect("a pass").output;
        let options = Options { stacks: trace.switch_stacks(), time: OffCpuTime::Both, ..Options::default() };
        let report = Pass::over(events()).run(|| OffCpu::new(&options)).expect("a pass").output;
        let found = (report.asleep_ns.expect("time").0, report.runnable_ns.expect("time").0);
        assert_eq!(found, (asleep, runnable), "{}", path.display());
        let sum: u64 = folded(&report).lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum();
        assert_eq!(sum, asleep + runnable, "{}", path.display());
        let is_without = report.stacks.iter().all(|row| row.kind == StackKind::NoStack);
        assert_eq!((report.with_stack == Some(0), is_without), (!has_stacks, !has_stacks), "{}", path.display());
    }
}

#[test]
fn a_recording_without_stacks_is_named_so() {
    let path = fixture("hackbench.dat");
    let text = schedviz(&["offcpu", "-q", path.to_str().expect("a path")]).success().text();
    assert!(text.contains("no stack") && text.contains("trace-cmd record -T"), "{text}");
}
