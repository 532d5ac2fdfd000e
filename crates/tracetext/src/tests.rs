//! Lines of all printers, read by hand.

use crate::fields::{self, KnownField};
use crate::line::{EventLine, PrintedLine, Printer};
use crate::{fuzz, is_text, limits, open};
use parse::{FileIssue, Options, Source, Trace};
use sched::{EventKind, SchedEvent, StateClass, Tracepoint};
use std::ops::ControlFlow;
use transcript::FieldValue;

fn event(line: &str) -> EventLine<'_> {
    match PrintedLine::of(line.as_bytes()) {
        PrintedLine::Event(event) => event,
        other => panic!("{line}: {other:?}"),
    }
}

pub(crate) fn read(text: &str) -> Trace {
    open(&Source::Memory(text.into()), Options { threads: 1, ..Options::default() }).unwrap()
}

pub(crate) fn events(trace: &Trace) -> Vec<SchedEvent> {
    let mut all = Vec::new();
    let mut events = trace.events().unwrap();
    let collect = &mut |batch: &[SchedEvent]| {
        all.extend_from_slice(batch);
        ControlFlow::Continue(())
    };
    sched::EventSource::events(&mut events, collect).unwrap();
    all
}

fn of_known<'l>(fields: &[KnownField], text: &'l [u8]) -> Option<Vec<FieldValue<'l>>> {
    let mut values = Vec::new();
    fields::of_known(fields, text, &mut values).then_some(values)
}

/// The PID, the CPU, flags and depths, the time, and the name.
fn head(line: &str) -> (i32, u32, (u8, u8), u64, String) {
    let event = event(line);
    (event.pid, event.cpu, (event.flags, event.preempt), event.time, event.name.to_owned())
}

#[test]
fn heads_of_lines_are_those_of_each_printer() {
    let name = "sched_waking".to_owned();
    let of = |pid, cpu, context, time| (pid, cpu, context, time, name.clone());
    assert_eq!(head("   kworker/u16:3-76    [001]    18.350767: sched_waking:   x"), of(76, 1, (0, 0), 18_350_767_000));
    assert_eq!(head("   a-b [003] c-76    [001]    18.350767256: sched_waking: x"), of(76, 1, (0, 0), 18_350_767_256));
    assert_eq!(head("  <idle>-0       1dNh2.    18.350719: sched_waking: x"), of(0, 1, (0x2d, 2), 18_350_719_000));
    assert_eq!(head("  <idle>-0     [003] d.s31 18.350719: sched_waking: x"), of(0, 3, (0x11, 0x13), 18_350_719_000));
    assert_eq!(head(" bash-12    (   11) [000] .... 18.350719: sched_waking: x"), of(12, 0, (0, 0), 18_350_719_000));
    assert_eq!(head(" <...>-12   (-----) [000] d..2 18.350719: sched_waking: x"), of(12, 0, (1, 2), 18_350_719_000));
    assert_eq!(head("hackbench   123 [001]    18.350719: sched:sched_waking: x"), of(123, 1, (0, 0), 18_350_719_000));
    assert_eq!(
        head("a b  120/123 [001]  18.350719001:   7  sched:sched_waking: x"),
        of(123, 1, (0, 0), 18_350_719_001)
    );
    assert_eq!(head(":-1    -1 [001]    18.350719: sched:sched_waking: x"), of(-1, 1, (0, 0), 18_350_719_000));
    assert_eq!(
        (event("a 1 [0] 1.000000: s:n: t").system, event("a 1 [0] 1.000000: s:n: t").printer),
        (Some("s"), Printer::Perf)
    );
}

#[test]
fn other_lines_are_none_of_events() {
    assert_eq!(PrintedLine::of(b"CPU:2 [LOST 12 EVENTS]"), PrintedLine::Lost(2, Some(12)));
    assert_eq!(PrintedLine::of(b"CPU:2 [12 EVENTS DROPPED]"), PrintedLine::Lost(2, Some(12)));
    assert_eq!(PrintedLine::of(b"CPU:2 [EVENTS DROPPED]"), PrintedLine::Lost(2, None));
    assert_eq!(PrintedLine::of(b"cpus=4"), PrintedLine::Machine(4, false));
    assert_eq!(PrintedLine::of(b"# entries-in-buffer/entries-written: 10/10   #P:8"), PrintedLine::Machine(8, false));
    let overwritten = b"# entries-in-buffer/entries-written: 10/12   #P:8";
    assert_eq!(PrintedLine::of(overwritten), PrintedLine::Machine(8, true));
    fn of_perf(text: &str) -> PrintedLine<'_> {
        PrintedLine::of(text.as_bytes())
    }
    assert_eq!(of_perf("swapper     0 [002]  7098.456130: PERF_RECORD_LOST lost 12"), PrintedLine::Lost(2, Some(12)));
    let samples = "swapper 0 [002] 7098.456130: PERF_RECORD_LOST_SAMPLES lost 7";
    assert_eq!(of_perf(samples), PrintedLine::LostSomewhere(7));
    for silent in ["", "# tracer: nop", " => schedule", "\tffffffff81234567 schedule+0x1 ([kernel.kallsyms])"] {
        assert_eq!(PrintedLine::of(silent.as_bytes()), PrintedLine::Silent, "{silent}");
    }
    let others =
        ["text", "a-1 [001] 12: sched_switch: x", "a-1 [001] 1.000001: function <-caller", "a-1 [x] 1.000001: e: x"];
    for other in others {
        assert_eq!(PrintedLine::of(other.as_bytes()), PrintedLine::Other, "{other}");
    }
}

#[test]
fn fields_are_those_of_each_dialect() {
    let switch = fields::known(Tracepoint::Switch).unwrap();
    let expected = [
        FieldValue::Text(b"a b:1 [2]"),
        FieldValue::Number(7),
        FieldValue::Number(120),
        FieldValue::Number(0x100),
        FieldValue::Text(b"swapper/1"),
        FieldValue::Number(0),
        FieldValue::Number(120),
    ];
    for text in [
        "prev_comm=a b:1 [2] prev_pid=7 prev_prio=120 prev_state=R+ ==> next_comm=swapper/1 next_pid=0 next_prio=120",
        " prev_comm=a b:1 [2] prev_pid=7 prev_prio=120 prev_state=256 next_comm=swapper/1 next_pid=0 next_prio=120",
    ] {
        assert_eq!(of_known(switch, text.as_bytes()).as_deref(), Some(&expected[..]), "{text}");
    }
    for (prev, next) in [("=a", ">b"), ("==>", "=> x"), (">", "=")] {
        let text = format!(
            "prev_comm={prev} prev_pid=7 prev_prio=120 prev_state=S ==> next_comm={next} next_pid=8 next_prio=9"
        );
        let found = of_known(switch, text.as_bytes()).expect("all fields");
        let names = (FieldValue::Text(prev.as_bytes()), FieldValue::Text(next.as_bytes()));
        assert_eq!((found[0], found[4], found[3]), (names.0, names.1, FieldValue::Number(1)), "{text}");
    }
    let mut of_plugin = expected;
    of_plugin[3] = FieldValue::Number(2);
    let text = b"a b:1 [2]:7 [120] D ==> swapper/1:0 [120]";
    assert_eq!(of_known(switch, text), None);
    assert_eq!(fields::of_plugin(Tracepoint::Switch, text).as_deref(), Some(&of_plugin[..]));
    let wakeup = [FieldValue::Text(b"x:y"), FieldValue::Number(9), FieldValue::Number(-1), FieldValue::Number(12)];
    for text in ["x:y:9 [-1] CPU:012", "x:y:9 [-1] success=1 CPU:012"] {
        assert_eq!(fields::of_plugin(Tracepoint::Wakeup, text.as_bytes()).as_deref(), Some(&wakeup[..]));
    }
    let fork = fields::known(Tracepoint::Fork).unwrap();
    let expected = [FieldValue::Text(b"sh"), FieldValue::Number(5), FieldValue::Text(b"cat"), FieldValue::Number(6)];
    for text in ["comm=sh pid=5 child_comm=cat child_pid=6", "parent_comm=sh parent_pid=5 child_comm=cat child_pid=6"] {
        assert_eq!(of_known(fork, text.as_bytes()).as_deref(), Some(&expected[..]));
    }
    // A name of a task with what could be a field, a number that is none, a field more, the order of another kernel.
    let odd = [
        ("comm=a b=c pid=5 prio=120 target_cpu=001", Some(("a", 5, 120, 1))),
        ("comm=a pid=x prio=120 target_cpu=001", None),
        ("comm= pid=5 prio=-1 target_cpu=001 success=1", Some(("", 5, -1, 1))),
        ("comm=a=b pid=5 prio=120 success=1 target_cpu=001", Some(("a=b", 5, 120, 1))),
        ("pid=5 comm==> a prio=120 target_cpu=001", Some(("=> a", 5, 120, 1))),
        ("comm=> a pid=5 prio=120 target_cpu=001", Some(("> a", 5, 120, 1))),
        ("comm== pid=5 prio=120 target_cpu=001", Some(("=", 5, 120, 1))),
        ("comm===> pid=5 prio=120 target_cpu=001", Some(("==>", 5, 120, 1))),
        ("xcomm=a pid=5 prio=120 target_cpu=001", Some(("", 5, 120, 1))),
    ];
    let waking = fields::known(Tracepoint::Waking).unwrap();
    for (text, expected) in odd {
        let expected = expected.map(|(comm, pid, prio, cpu)| {
            let [pid, prio, cpu] = [pid, prio, cpu].map(FieldValue::Number);
            vec![FieldValue::Text(comm.as_bytes()), pid, prio, cpu]
        });
        assert_eq!(of_known(waking, text.as_bytes()), expected, "{text}");
    }
    let pairs = fields::pairs(b"fn=0x12 name=a b c==d last= e=5");
    let expected: [(&[u8], &[u8]); 4] = [(b"fn", b"0x12"), (b"name", b"a b c==d"), (b"last", b""), (b"e", b"5")];
    assert_eq!(pairs, expected);
    assert_eq!((fields::decimal(b"-5"), fields::decimal(b"0x10"), fields::decimal(b"5x")), (Some(-5), Some(16), None));
}

#[test]
fn names_of_tasks_begin_as_other_lines_do() {
    for name in ["=>x", "#x", "# y", "=> z"] {
        let line =
            format!("  {name}-1  [000] d..2. 5.000001: sched_waking: comm={name} pid=2 prio=120 target_cpu=000\n");
        let trace = read(&line);
        let named = |event: &SchedEvent| matches!(event.kind, EventKind::Waking { task, .. } if &*task.comm.to_string() == name);
        assert!(events(&trace).iter().any(named), "{name}");
    }
    // A stack's lines and comments have no event.
    let text = "# tracer: nop\n  a-1  [000] d..2. 5.000001: sched_waking: comm=b pid=2 prio=120 target_cpu=000\n => f+0x1/0x2 [ext4]\n";
    assert_eq!(events(&read(text)).len(), 1);
}

#[test]
fn lines_of_one_microsecond_keep_their_order() {
    let line = |cpu: u32, time: &str, pid: u32| {
        format!("  a-1  [{cpu:03}] d..2. {time}: sched_waking: comm=b pid={pid} prio=120 target_cpu=000\n")
    };
    let text =
        [line(3, "5.000001", 1), line(1, "5.000001", 2), line(2, "5.000001", 3), line(0, "5.000002", 4)].concat();
    let trace = read(&format!("# tracer: nop\n#P:4\n{text}"));
    let pids = |trace: &Trace| -> Vec<i32> {
        let pid = |event: &SchedEvent| match event.kind {
            EventKind::Waking { task, .. } => Some(task.pid.0),
            _ => None,
        };
        events(trace).iter().filter_map(pid).collect()
    };
    assert_eq!(pids(&trace), [1, 2, 3, 4]);
    assert_eq!(trace.diagnostics().count(FileIssue::RoundedTimes), 1);
    assert_eq!(trace.info().cpus, 4);
    // With all digits the CPU decides.
    let text = [line(3, "5.000001000", 1), line(1, "5.000001000", 2)].concat();
    let trace = read(&text);
    assert_eq!((pids(&trace), trace.diagnostics().count(FileIssue::RoundedTimes)), (vec![2, 1], 0));
}

#[test]
fn losses_and_lines_out_of_order_are_kept() {
    let switch = |cpu: u32, time: &str| {
        let text = "prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120";
        format!("  a-1  [{cpu:03}] d..2. {time}: sched_switch: {text}\n")
    };
    let text = [
        switch(0, "5.000003000"),
        switch(0, "5.000001000"),
        "CPU:0 [LOST 7 EVENTS]\n".to_owned(),
        "nonsense\n".to_owned(),
        switch(0, "5.000009000"),
        "  a-1 [001] d..2. 5.000010000: sched_switch: prev_comm=a prev_pid=x\n".to_owned(),
    ];
    let trace = read(&text.concat());
    let found = events(&trace);
    let times: Vec<i64> =
        found.iter().filter(|event| matches!(event.kind, EventKind::Switch { .. })).map(|event| event.ts.0).collect();
    assert_eq!(times, [5_000_001_000, 5_000_003_000, 5_000_009_000]);
    assert!(
        found.iter().any(|event| matches!(event.kind, EventKind::Lost { count: Some(count) } if count.number() == 7))
    );
    let issues = [FileIssue::UnreadLines, FileIssue::CorruptRecord].map(|issue| trace.diagnostics().count(issue));
    assert_eq!(issues, [1, 1]);
    let asleep = |event: &SchedEvent| match event.kind {
        EventKind::Switch { state, .. } => state.class == StateClass::Asleep,
        _ => false,
    };
    assert_eq!(found.iter().filter(|event| asleep(event)).count(), 3);
}

#[test]
fn texts_are_told_from_other_files() {
    let is = |bytes: &[u8]| is_text(&Source::Memory(bytes.to_vec()));
    assert!(is(b"cpus=2\n  a-1 [001] 1.000001: sched_waking: comm=b pid=1 prio=1 target_cpu=0\n"));
    assert!(!is(b"cpus=2\n") && !is(b"{\"a\": 1}") && !is(b""));
    assert!(!is(b"\0\n  a-1 [001] 1.000001: sched_waking: comm=b\n"));
}

#[test]
fn any_bytes_end_no_program() {
    let line = "  a-1  [001] d..2. 5.000001: sched_waking: comm=b pid=1 prio=120 target_cpu=000\n";
    let text = format!("cpus=4\n{line}CPU:1 [LOST 3 EVENTS]\n{line}{line}");
    for place in 0..text.len() {
        for byte in [0, b'\n', b'=', b'[', b'-', b' ', b'9', 0xff] {
            let mut bytes = text.clone().into_bytes();
            bytes[place] = byte;
            let _ = fuzz(&bytes);
        }
    }
    let long = format!("{}{line}", "x".repeat(3 << 20));
    let trace = read(&format!("{long}\n{line}"));
    assert_eq!(trace.diagnostics().count(FileIssue::UnreadLines), 1);
}

/// 64 KB of arrows in each of 2,000 lines: each place was tried with all of the text, 10 minutes in all.
#[test]
fn places_of_an_arrow_are_few() {
    let switch = |text: &str| format!("  a-1  [000] d..2. 5.000001: sched_switch: {text}\n");
    let text = [switch("a:1 [120] S ==> b:2 [120]"), switch(&" ==> ".repeat(13_000)).repeat(300)].concat();
    let trace = read(&text);
    assert_eq!(trace.diagnostics().count(FileIssue::CorruptRecord), 300);
    let longest =
        "sixteen:letters]:-2147483648 [-2147483648] DTtXZPI|W+ ==> sixteen:letters]:-2147483648 [-2147483648]";
    assert!(longest.len() <= crate::limits::PLUGIN, "{}", longest.len());
    assert!(fields::of_plugin(Tracepoint::Switch, longest.as_bytes()).is_some());
}

const WAKING: &str = "sched_waking: comm=a pid=7 prio=120 target_cpu=000";

/// The kernel overwrote events before the first of each CPU: what ran before is unknown there.
#[test]
fn overwritten_events_are_losses_before_the_first_of_each_cpu() {
    let text = |written: u64| {
        format!(
            "# tracer: nop\n# entries-in-buffer/entries-written: 4/{written}   #P:4\n a-1 [000] d... 1.000001: {WAKING}\n \
             a-1 [003] d... 1.000002: {WAKING}\n a-1 [000] d... 1.000003: {WAKING}\n a-1 [003] d... 1.000004: {WAKING}\n"
        )
    };
    let lost = |text: &str| {
        let mut lost = Vec::new();
        read(text).records(&mut |record| {
            lost.push((record.cpu.0, record.lost.is_some()));
            ControlFlow::Continue(())
        });
        lost
    };
    assert_eq!(lost(&text(4)), [(0, false), (3, false), (0, false), (3, false)]);
    assert_eq!(lost(&text(9)), [(0, true), (3, true), (0, false), (3, false)]);
    // The kernel counts the CPUs that are online: fewer than a CPU's number is not the number of the machine.
    assert_eq!((read(&text(4)).info().cpus, read(&text(4).replace("#P:4", "#P:3")).info().cpus), (4, 0));
}

#[test]
fn texts_of_perf_without_a_loss_do_not_say_that_there_was_none() {
    let line = format!("a  1 [000] 1.000001000: sched:{WAKING}\n");
    let untold = |text: &str| read(text).diagnostics().count(FileIssue::UntoldLosses);
    assert_eq!(untold(&line), 1);
    assert_eq!(untold(&format!("a  1 [000] 1.000000900: PERF_RECORD_LOST lost 3\n{line}")), 0);
    assert_eq!(untold(&line.replace("a  1", "a-1")), 0);
}

/// Both kinds of pages of systrace, with code before the trace that looks like it, other sources, and damage.
#[test]
fn pages_of_systrace_are_read() {
    let code = "<!DOCTYPE html>\n<html>\n<script>if (/var linuxPerfData = \"\\$/.test('<script class=\"trace-data\">')) {\n \
                a-1 [000] d... 9.000001: sched_waking: comm=no pid=9 prio=120 target_cpu=000\n}</script>\n<!-- BEGIN TRACE -->\n";
    let event = |time: u32, pid: u32| {
        format!(" a-1     (    1) [001] d..3  1234.{time:06}: sched_waking: comm=a pid={pid} prio=120 target_cpu=001\n")
    };
    let trace =
        format!("# tracer: nop\n#\n# entries-in-buffer/entries-written: 2/2   #P:4\n{}{}", event(1, 7), event(2, 8));
    let section =
        |text: &str| format!("  <script class=\"trace-data\" type=\"application/text\">\n{text}  </script>\n");
    let json = format!("{{\"traceEvents\": [{}]}}", "1,".repeat(limits::LINE));
    let ps = format!("PROCESS DUMP\nUSER PID PPID\nroot 1 0\n{}", event(3, 9));
    let escaped = |text: &str| text.replace('\n', "\\n\\\n");
    let dummy = "           dummy-0000  [000] 0.0: 0: trace_event_clock_sync: parent_ts=0.0\\n\";\n  </script>\n";
    let pages = [
        format!("{code}{}{}{}<!-- END TRACE -->\n</html>", section(&json), section(&trace), section(&ps)),
        format!("{code}{}{}", section(&ps), section(&escaped(&trace))),
        format!("{code}  <script>\n  var linuxPerfData = \"\\\n{}{dummy}</html>", escaped(&trace)),
        format!("{code}{}", section(&trace)).replace('\n', "\r\n"),
    ];
    for page in &pages {
        let source = Source::Memory(page.as_bytes().to_vec());
        assert!(is_text(&source), "{page}");
        let trace = read(page);
        let pid = |event: &SchedEvent| match event.kind {
            EventKind::Waking { task, .. } => Some((event.ts.0, task.pid.0)),
            _ => None,
        };
        let found: Vec<(i64, i32)> = events(&trace).iter().filter_map(pid).collect();
        assert_eq!(found, [(1_234_000_001_000, 7), (1_234_000_002_000, 8)], "{page}");
        let info =
            (trace.origin().unwrap().format, trace.info().cpus, trace.diagnostics().count(FileIssue::CorruptRecord));
        assert_eq!(info, ("page of systrace", 4, 0));
        // Any part of it is a page as well, or none.
        for end in (0..page.len()).step_by(7).filter(|end| page.is_char_boundary(*end) && page.len() < 5000) {
            let _ = fuzz(&page.as_bytes()[..end]);
        }
    }
    let without = format!("{code}{}", section(&json));
    assert!(!is_text(&Source::Memory(without.into_bytes())));
}
