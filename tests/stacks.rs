//! Stacks that were recorded with an event, behind it: they do not show which task is current.

use crate::support::{fixture, recordings, schedviz, scratch};
use parse::{Trace, Want};
use sched::{
    Analysis, Comm, Cpu, CpuFold, Current, EventIssue, EventKind, Pass, Pid, PrevState, SchedEvent, SchedState,
    TaskRef, Ts,
};
use std::ops::ControlFlow;
use std::path::Path;
use testkit::TraceBuilder;

const STACK: u16 = 4;
const OTHER: u16 = 999;

fn task(pid: i32) -> TaskRef {
    TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(if pid == 0 { b"swapper" } else { b"task" }) }
}

fn at(ts: i64, pid: i32, kind: EventKind) -> SchedEvent {
    SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind }
}

fn switch(ts: i64, prev: i32, next: i32) -> SchedEvent {
    at(ts, prev, EventKind::Switch { prev: task(prev), state: PrevState::RUNNABLE, next: task(next) })
}

/// A trace of these events, with a stack as the kernel declares it.
fn trace(events: &[SchedEvent], version: u32) -> Trace {
    let builder = TraceBuilder { version, ..TraceBuilder::default() };
    let format = builder.layout().format(STACK, "kernel_stack", "");
    let formats = vec![("ftrace".to_owned(), format)];
    let bytes = TraceBuilder { formats, ..builder }.events(events).build();
    Trace::from_bytes(bytes, parse::Options::default()).expect("a trace")
}

/// A kernel whose symbols have no addresses (`kptr_restrict`) names no function: a message shows the remedy.
#[test]
fn symbols_without_addresses_are_none() {
    let folder = scratch("stacks-hidden");
    let at = |name: &str| folder.join(name).display().to_string();
    let (hidden, shown) = (
        "0000000000000000 T _stext\n0000000000000000 t schedule\n",
        "ffffffff81000000 T _stext\nffffffff82000000 T _end\n",
    );
    for (name, kallsyms) in [("hidden.dat", hidden), ("shown.dat", shown)] {
        let builder = TraceBuilder { kallsyms: kallsyms.to_owned(), ..TraceBuilder::default() };
        let format = builder.layout().format(STACK, "kernel_stack", "");
        let formats = vec![("ftrace".to_owned(), format)];
        let stack = self::at(150, 5, EventKind::Stack { id: STACK });
        let bytes = TraceBuilder { formats, ..builder }.events(&[switch(100, 5, 6), stack, switch(200, 6, 5)]).build();
        std::fs::write(folder.join(name), bytes).expect("written");
        std::fs::write(folder.join(name).with_extension("kallsyms"), kallsyms).expect("written");
    }
    std::fs::write(folder.join("empty.kallsyms"), "").expect("written");
    let printed = |arguments: &[&str]| schedviz(arguments).stderr;
    for command in ["offcpu", "latency"] {
        let hidden = printed(&[command, &at("hidden.dat")]);
        assert!(
            hidden.contains("its stacks have no names: the kernel hid the addresses of its symbols"),
            "{command}: {hidden}"
        );
        assert!(hidden.contains("sysctl kernel.kptr_restrict=1"), "{hidden}");
        assert!(!printed(&[command, &at("shown.dat")]).contains("hid the addresses"));
        let given = printed(&[command, &at("hidden.dat"), "--kallsyms", &at("shown.kallsyms")]);
        assert!(!given.contains("hid the addresses"), "{given}");
    }
    for (file, why) in
        [("hidden", "all addresses are 0, since the kernel hid them"), ("empty", "there are no symbols in it")]
    {
        let ran = schedviz(&["offcpu", &at("shown.dat"), "--kallsyms", &at(&format!("{file}.kallsyms"))]);
        assert!(ran.code == Some(1) && ran.stderr.contains(why), "{}", ran.stderr);
        assert!(ran.stderr.contains("sudo cat /proc/kallsyms"), "{}", ran.stderr);
    }
}

/// The tasks that CPU 0 ran, each from its start in nanoseconds.
#[derive(Default)]
struct Ran(Vec<(i64, Current)>);

impl Analysis for Ran {
    type Output = Vec<(i64, Current)>;

    fn cpu_span(&mut self, span: &sched::CpuSpan, _: &SchedState) {
        if span.start < span.end {
            self.0.push((span.start.0, span.current));
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> Self::Output {
        self.0
    }
}

/// The same by the state, of a file and of the events themselves, and by the CPU's own events.
fn ran(events: &[SchedEvent]) -> Vec<(i64, Current)> {
    let by_events = Pass::over(events).run(Ran::default).unwrap_or_else(|never| match never {}).output;
    for version in [6, 7] {
        let trace = trace(events, version);
        let of_file = Pass::over(trace.events().expect("events")).run(Ran::default).expect("a pass");
        assert_eq!(of_file.output, by_events, "version {version}");
        assert_eq!(of_file.diagnostics.count(EventIssue::SwitchPrevMismatch), 0, "version {version}");
        let (mut fold, mut spans) = (CpuFold::new(Cpu(0), events[0].ts, of_file.to), Vec::new());
        let reader = trace.cpu_reader(Want::Switches).expect("a reader");
        let mut keep = |span: &sched::CpuSpan| spans.push((span.start.0, span.current));
        reader.events(0, Cpu(0), None, &mut |event| {
            fold.apply(event, &mut keep);
            ControlFlow::Continue(())
        });
        fold.finish(&mut keep);
        assert_eq!(spans, by_events, "version {version}, the CPU alone");
    }
    by_events
}

#[test]
fn a_stack_behind_a_gap_does_not_show_the_current_task() {
    let (seven, eight) = (Current::Task(Pid(7)), Current::Task(Pid(8)));
    let stack = |ts, pid| at(ts, pid, EventKind::Stack { id: STACK });
    let other = |ts, pid| at(ts, pid, EventKind::Other { id: OTHER });
    // The switch from 7 to 8 is in the gap; its stack bears the number of 7.
    let behind_gap = [
        switch(100, 0, 7),
        at(100, 0, EventKind::Lost { count: None }),
        stack(300, 7),
        other(500, 8),
        switch(600, 8, 7),
        switch(700, 7, 0),
    ];
    assert_eq!(ran(&behind_gap), [(0, Current::Idle), (100, Current::Unknown), (500, eight), (600, seven)][1..]);
    // At the start it is behind a switch that was not recorded: the next event shows what ran from the start on.
    let at_start = [stack(100, 7), stack(110, 7), other(500, 8), switch(600, 8, 7), switch(700, 7, 0)];
    assert_eq!(ran(&at_start), [(100, eight), (600, seven)]);
    // Behind a recorded switch it changes nothing.
    let known = [switch(100, 7, 8), stack(110, 7), other(500, 8), switch(700, 8, 0)];
    assert_eq!(ran(&known), [(100, eight)]);
}

#[test]
fn a_recording_with_a_stack_behind_a_gap() {
    let Some(traces) = std::env::var_os("SCHEDVIZ_TRACES") else { return };
    let path = Path::new(&traces).join("../cases/stack-behind-gap.dat");
    let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
    let outcome = Pass::over(trace.events().expect("events")).run(Ran::default).expect("a pass");
    assert_eq!(outcome.diagnostics.count(EventIssue::SwitchPrevMismatch), 0, "CPU 13 ran another task behind its gap");
    assert_eq!(outcome.diagnostics.count(EventIssue::EventsLost), 1);
}

/// Both kinds of stacks are known by name, in every recording.
#[test]
fn stacks_of_recordings() {
    let mut found = 0;
    for path in recordings() {
        let trace = Trace::open(&path, parse::Options::default()).expect("a readable recording");
        let stacks = trace.event_counts().into_iter();
        let count: u64 =
            stacks.filter(|e| matches!(e.name.as_str(), "kernel_stack" | "user_stack")).map(|e| e.count).sum();
        if count == 0 || trace.selected_buffers().len() > 1 || trace.has_time().is_err() {
            continue;
        }
        let is_stack = |event: &&SchedEvent| matches!(event.kind, EventKind::Stack { .. });
        let delivered = crate::support::events(&trace).iter().filter(is_stack).count() as u64;
        assert_eq!(delivered, count, "{}", path.display());
        found += count;
    }
    assert!(found > 0, "{:?} has some", fixture("rt-5.10.dat"));
}
