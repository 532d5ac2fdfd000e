//! `events --list`: texts of early kernels, names, clocks, instances, and function graphs.

use crate::support::{fixture, schedviz, schedviz_in, scratch};
use sched::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};
use std::collections::BTreeMap;
use testkit::{Buffer, TraceBuilder};

/// The lines of `events --list` with these arguments.
fn list(file: &str, arguments: &[&str]) -> String {
    schedviz(&[&["events", "--list", "-q", file], arguments].concat()).success().text()
}

/// The list of a trace that a test builds.
fn list_of(name: &str, trace: &TraceBuilder, arguments: &[&str]) -> String {
    let folder = scratch(name);
    let file = folder.join("built.dat");
    std::fs::write(&file, trace.build()).expect("written");
    list(file.to_str().expect("a path"), arguments)
}

/// A buffer with the data of one CPU.
fn buffer(name: &str, cpu: u32, pages: Vec<Vec<u8>>) -> Buffer {
    Buffer { name: name.into(), clock: "local".into(), page_size: 0, cpus: vec![(cpu, pages)] }
}

#[test]
fn markers_of_kernels_before_5_5_have_their_text() {
    let file = fixture("marker-before-5.5.dat");
    let lines = list(file.to_str().expect("a path"), &["--events", "ftrace:print"]);
    let texts: Vec<&str> = lines.lines().filter_map(|line| Some(line.split_once("0xffffffff8dd561a1: ")?.1)).collect();
    // The texts in the file's bytes (`strings`).
    assert_eq!(texts, [1, 2, 3].map(|cpu| format!("find_busiest_group: no imbalance cpu={cpu}")));
}

/// The option TIME_SHIFT of a guest with two CPUs, one sample each: offsets of 5 and 7 s.
#[test]
fn a_guests_events_are_listed_in_the_hosts_time() {
    let mut shift = [1u64.to_le_bytes().as_slice(), &0u32.to_le_bytes(), &2u32.to_le_bytes()].concat();
    for offset in [5_000_000_000_i64, 7_000_000_000] {
        shift.extend(1u32.to_le_bytes());
        [0, offset, 1].iter().for_each(|number: &i64| shift.extend(number.to_le_bytes()));
    }
    let exit = |ts: i64, cpu: u32| {
        let kind = EventKind::Exit { pid: Pid(7) };
        SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(7), flags: 0, kind }
    };
    let events = [exit(1_000, 0), exit(2_000, 1), exit(2_000_003_000, 0)];
    let guest = TraceBuilder { options: vec![(12, shift)], ..TraceBuilder::default() }.events(&events);
    let times = |arguments: &[&str]| -> Vec<String> {
        let lines = list_of("listing-guest", &guest, arguments);
        lines
            .lines()
            .map(|l| l.split(['[', ']', ' ', ':']).filter(|w| w.contains('.') && !w.contains('<')).collect())
            .collect()
    };
    assert_eq!(times(&[]), ["0.000001000", "0.000002000", "2.000003000"]);
    // The order is that of the host: 5.000001, 7.000002 and 7.000003 s.
    assert_eq!(times(&["--host-time"]), ["5.000001000", "7.000002000", "7.000003000"]);
    let file = fixture("hackbench.dat");
    let refused = schedviz(&["info", "--host-time", file.to_str().expect("a path")]);
    assert!(refused.code == Some(1) && refused.stderr.contains("no TIME_SHIFT"), "{}", refused.stderr);
}

#[test]
fn printk_arguments_of_kernels_before_5_5_are_read() {
    let mut trace = TraceBuilder { printk: "0xff10 : \"moved %d of %s\\n\"\n".into(), ..TraceBuilder::default() };
    let field = |declaration: &str| format!("\tfield:{declaration};\tsigned:0;\n");
    let fields = field("unsigned long ip;\toffset:8;\tsize:8")
        + &field("const char * fmt;\toffset:16;\tsize:8")
        + &field("u32 buf;\toffset:24;\tsize:0");
    trace.formats.push(("ftrace".into(), trace.layout().format(6, "bprint", &fields)));
    let mut ring = trace.ring();
    let pointers = [0xdead_u64, 0xff10].iter().flat_map(|pointer| pointer.to_le_bytes()).collect();
    ring.event(
        1_000,
        &[trace.layout().bare(6, 7), pointers, 3u32.to_le_bytes().into(), b"five\0\0\0\0".into()].concat(),
    );
    trace.buffers = vec![buffer("", 0, ring.finish())];
    let lines = list_of("listing-bprint", &trace, &[]);
    assert!(lines.ends_with("bprint:               0xdead: moved 3 of five\n"), "{lines}");
}

/// Where the recorder saved no name, the line has that of a switch or a fork.
#[test]
fn names_that_were_not_saved_come_from_switches_and_forks() {
    let task = |pid: i32, name: &str| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) };
    let at = |ts: i64, pid: i32, kind: EventKind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
    let switch = |prev, next| EventKind::Switch { prev, state: PrevState::asleep(1), next };
    let events = [
        at(1_000, 5, EventKind::Waking { task: task(8, "x"), target: Cpu(0) }),
        at(2_000, 5, switch(task(5, "late"), task(7, "saved"))),
        at(3_000, 7, EventKind::Fork { parent: Pid(7), child: Pid(9), child_comm: Comm::new(b"child") }),
        at(4_000, 9, EventKind::Exit { pid: Pid(9) }),
        at(5_000, 6, EventKind::Exit { pid: Pid(6) }),
    ];
    let trace = TraceBuilder { cmdlines: "7 kept\n".into(), ..TraceBuilder::default() }.events(&events);
    let lines = list_of("listing-names", &trace, &[]);
    let names: Vec<&str> = lines.lines().filter_map(|line| line.get(..18)).collect();
    assert_eq!(
        names,
        ["            late-5", "            late-5", "            kept-7", "           child-9", "           <...>-6"]
    );
}

/// A counter's ticks are listed as `trace-cmd report -t` prints them; with --clock-hz they are seconds.
#[test]
fn clocks_without_time_are_listed_in_ticks() {
    let file = fixture("clock-x86-tsc.dat");
    let file = file.to_str().expect("a path");
    let first = "          <idle>-0     [003] 95769378929: sched_waking:         comm=trace-cmd pid=600";
    let lines = list(file, &[]);
    assert!(lines.starts_with(first), "{lines:.200}");
    let seconds = list(file, &["--clock-hz", "2000000000"]);
    assert!(seconds.starts_with("          <idle>-0     [003]    47.884689464: sched_waking:"), "{seconds:.200}");
    let ran = schedviz(&["events", "--list", file, "--min", "0.1"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("--clock-hz"), "{}", ran.stderr);
    let exit =
        |ts| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(7), flags: 0, kind: EventKind::Exit { pid: Pid(7) } };
    let trace =
        TraceBuilder { clock: "counter".into(), ..TraceBuilder::default() }.events(&[exit(5), exit(1_234_567_890_123)]);
    let ticks = ["           5", "1234567890123"];
    let expected = ticks.map(|ticks| format!("           <...>-7     [000]{ticks}: sched_process_exit:   \n"));
    assert_eq!(list_of("listing-ticks", &trace, &[]), expected.concat());
}

/// Addresses of code are split by their symbols, pointers and words in the kernel's half in hexadecimal.
#[test]
fn kinds_are_split_by_symbols_and_addresses() {
    let kallsyms = "ffffffff81000000 T start\nffffffff81000100 t schedule\nffffffff81000200 T end\n";
    let mut trace = TraceBuilder { kallsyms: kallsyms.into(), ..TraceBuilder::default() };
    let field = |declaration: &str| format!("\tfield:{declaration};\tsigned:0;\n");
    let fields = field("unsigned long ip;\toffset:8;\tsize:8")
        + &field("void * work;\toffset:16;\tsize:8")
        + &field("unsigned long page;\toffset:24;\tsize:8")
        + &field("unsigned long order;\toffset:32;\tsize:8");
    let format = trace.layout().format(500, "made", &fields);
    trace.formats.push(("made".into(), format.replace("print fmt: \"\"", "print fmt: \"%s\", unheard_of(REC->ip)")));
    let mut ring = trace.ring();
    let words = [0xffff_ffff_8100_0104_u64, 0xdead_beef, 0xffff_8880_0000_1000, 12];
    ring.event(1_000, &[trace.layout().bare(500, 7), words.iter().flat_map(|w| w.to_le_bytes()).collect()].concat());
    trace.buffers = vec![buffer("", 0, ring.finish())];
    let folder = scratch("listing-by");
    let file = folder.join("built.dat");
    std::fs::write(&file, trace.build()).expect("written");
    let by =
        |field: &str| schedviz_in(&folder, &["events", file.to_str().expect("a path"), "--by", field]).success().text();
    for (field, value) in [("ip", "schedule"), ("work", "0xdeadbeef"), ("page", "0xffff888000001000"), ("order", "12")]
    {
        let text = by(field);
        assert!(text.contains(&format!(" {field}={value}\n")), "{field}: {text}");
    }
    let lines = list(file.to_str().expect("a path"), &[]);
    assert!(lines.ends_with("ip=schedule work=0xdeadbeef page=0xffff888000001000 order=12\n"), "{lines}");
}

/// Calls and returns of a function graph; the time of each, and which CPU and task.
const GRAPH: [(u64, u32, i32, bool, u64, u64); 8] = [
    (1_000, 0, 7, true, 0xffff_ffff_8100_0100, 0),
    (2_000, 0, 7, true, 0xffff_ffff_8100_0300, 1),
    (5_000, 0, 7, false, 0xffff_ffff_8100_0300, 1),
    (150_000, 0, 7, false, 0xffff_ffff_8100_0100, 0),
    // The idle tasks of two CPUs, which have the same number.
    (160_000, 0, 0, true, 0xffff_ffff_8100_0300, 0),
    (161_000, 1, 0, true, 0xffff_ffff_8100_0300, 0),
    (173_000, 0, 0, false, 0xffff_ffff_8100_0300, 0),
    (174_000, 1, 0, false, 0xffff_ffff_8100_0300, 0),
];

#[test]
fn function_graphs_are_trees() {
    let mut trace = TraceBuilder {
        kallsyms: "ffffffff81000100 t schedule\nffffffff81000200 t other\nffffffff81000400 T end\n".into(),
        ..TraceBuilder::default()
    };
    let field = |declaration: &str| format!("\tfield:{declaration};\tsigned:0;\n");
    let call = field("unsigned long func;\toffset:8;\tsize:8") + &field("unsigned int depth;\toffset:16;\tsize:4");
    let end = field("unsigned long func;\toffset:8;\tsize:8")
        + &field("unsigned int depth;\toffset:16;\tsize:4")
        + &field("unsigned long long calltime;\toffset:20;\tsize:8")
        + &field("unsigned long long rettime;\toffset:28;\tsize:8");
    let layout = trace.layout();
    trace.formats.push(("ftrace".into(), layout.format(11, "funcgraph_entry", &call)));
    trace.formats.push(("ftrace".into(), layout.format(10, "funcgraph_exit", &end)));
    let pages = |cpu: u32| {
        let mut ring = trace.ring();
        for (ts, on, pid, is_call, function, depth) in GRAPH.into_iter().filter(|(_, on, ..)| *on == cpu) {
            let mut bytes = layout.bare(if is_call { 11 } else { 10 }, pid);
            bytes.extend(function.to_le_bytes());
            bytes.extend((depth as u32).to_le_bytes());
            if !is_call {
                let called = GRAPH.iter().filter(|g| g.3 && (g.1, g.4, g.5) == (on, function, depth) && g.0 < ts);
                let called = called.map(|g| g.0).next_back().expect("a call");
                bytes.extend(called.to_le_bytes().into_iter().chain(ts.to_le_bytes()));
            }
            ring.event(ts, &bytes);
        }
        (cpu, ring.finish())
    };
    let cpus = vec![pages(0), pages(1)];
    trace.buffers = vec![Buffer { cpus, ..buffer("", 0, Vec::new()) }];
    let lines = list_of("listing-graph", &trace, &[]);
    let shown: Vec<&str> = lines.lines().filter_map(|line| Some(line.split_once("funcgraph_")?.1)).collect();
    assert_eq!(
        shown,
        [
            "entry:                   |  schedule() {",
            "entry:        3.000 us   |    other();",
            "exit:       ! 149.000 us |  }",
            "entry:                   |  other() {",
            "entry:                   |  other() {",
            "exit:       + 13.000 us  |  }",
            "exit:       + 13.000 us  |  }",
        ]
    );
    // Without the calls each return has its line.
    let returns = list_of("listing-returns", &trace, &["--events", "funcgraph_exit"]);
    assert_eq!(returns.lines().filter(|line| line.ends_with('}')).count(), 4, "{returns}");
    // The same lines whatever the number of threads.
    assert_eq!(list_of("listing-threads", &trace, &["--threads", "1"]), lines);
}

/// As `trace-cmd report` prints them: the name of an instance before its lines, and blanks before the others.
#[test]
fn lines_of_instances_have_their_name() {
    let mut trace = TraceBuilder::default();
    let layout = trace.layout();
    let pages = |stamps: [u64; 2], lost: bool| {
        let mut ring = TraceBuilder::default().ring();
        ring.event(stamps[0], &layout.bare(999, 7));
        if lost {
            ring.lost(Some(3));
        }
        ring.event(stamps[1], &layout.bare(999, 7));
        ring.finish()
    };
    trace.buffers = vec![buffer("", 0, pages([1_000, 3_000], false)), buffer("lb", 1, pages([2_000, 4_000], true))];
    let lines = list_of("listing-instances", &trace, &[]);
    let starts: Vec<&str> = lines.lines().filter_map(|line| line.split(" [0").next()).collect();
    assert_eq!(
        starts,
        [
            "               <...>-7    ",
            "lb:            <...>-7    ",
            "               <...>-7    ",
            "lb: CPU:1 [3 EVENTS DROPPED]",
            "           <...>-7    "
        ]
    );
    let one = list_of("listing-instance", &trace, &["--buffer", "lb"]);
    assert!(one.starts_with("           <...>-7 "), "{one}");
}

/// The column of flags, by trace-cmd 3.1.6's own `report -l` of the same events but for the letters that the kernel has beside them; by default where the recorder's report
/// has it.
#[test]
fn flags_have_a_column() {
    let file = fixture("hackbench.dat");
    let file = file.to_str().expect("a path");
    let flags = |arguments: &[&str]| {
        let lines = list(file, &[arguments, &["--max", "1ms"]].concat());
        lines.lines().map(|line| line[29..].split_once(' ').expect("words").0.to_owned()).collect::<Vec<_>>()
    };
    let first = flags(&["--latency-format"]);
    assert_eq!(first[..3], ["d.s3.", "dNs4.", "d..2."]);
    let plain = list(file, &["--max", "1ms"]);
    assert_eq!(plain, list(file, &["--max", "1ms", "--latency-format=never"]), "made by trace-cmd 3.1.6");
    let mut trace = TraceBuilder { restored: true, ..TraceBuilder::default() };
    trace.options = vec![(9, b"3.3.1 (not-a-git-repo)\0".to_vec())];
    let kind = EventKind::Exit { pid: Pid(7) };
    let trace = trace.events(&[SchedEvent { ts: Ts(5), cpu: Cpu(0), pid: Pid(7), flags: 0x1c, kind }]);
    let line = |arguments: &[&str]| list_of("listing-flags", &trace, arguments);
    assert_eq!(line(&[]), "           <...>-7     [000] .nH..     0.000000005: sched_process_exit:   \n");
    assert!(line(&["--latency-format=never"]).contains("[000]     0.000000005: "));
}

/// The runs that `perf sched timehist` found in the fixture, but those of idle CPUs; each time is in microseconds.
/// perf has 0 for what it did not see, and for the delay of a preempted task.
#[test]
fn runs_are_those_of_perf_sched_timehist() {
    type Key = (String, String, String);
    let rows = |text: &str| -> Vec<(Key, [Option<u64>; 3], bool)> {
        let lines = text.lines().filter(|line| line.contains('[') && !line.contains("<idle>"));
        let rows = lines.filter_map(|line| {
            let (time, rest) = line.trim_start().split_once(" [")?;
            time.parse::<f64>().ok()?;
            let (cpu, rest) = rest.split_once(']')?;
            let (_, rest) = rest.split_once('[')?;
            let (pid, rest) = rest.split_once(']')?;
            let pid = pid.split('/').next()?;
            let mut words = rest.split_whitespace();
            let words: [&str; 3] = [words.next()?, words.next()?, words.next()?];
            let micros = |word: &str| word.trim_start_matches('>').replace('.', "").parse().ok();
            Some(((time.into(), cpu.into(), pid.into()), words.map(micros), words[2].starts_with('>')))
        });
        rows.collect()
    };
    let text = std::fs::read_to_string(fixture("perf-stacks.timehist.txt")).expect("a text");
    let data = fixture("perf-stacks.data");
    let printed = schedviz(&["list", "-q", "--runs", data.to_str().expect("a path")]).success().text();
    let (theirs, ours) = (rows(&text), rows(&printed));
    assert_eq!((theirs.len(), ours.len()), (160, 162));
    let mut compared = [0; 3];
    for (key, times, _) in &theirs {
        let (_, own, is_part) = ours.iter().find(|(other, ..)| other == key).unwrap_or_else(|| panic!("{key:?}"));
        for (nth, (theirs, ours)) in times.iter().zip(own).enumerate() {
            // Each is cut off behind the microsecond by both, at other places of a sum.
            match (theirs, ours) {
                (Some(theirs @ 1..), Some(ours)) => {
                    assert!(theirs.abs_diff(*ours) <= 1, "{key:?} {nth}: {theirs} {ours}");
                    compared[nth] += 1;
                }
                (Some(0), _) => assert!(ours.is_none() || *is_part || nth < 2, "{key:?} {nth}: {ours:?}"),
                other => panic!("{key:?} {nth}: {other:?}"),
            }
        }
    }
    // Those that perf leaves out last until the end, or since before the beginning.
    let known = |key: &Key| theirs.iter().any(|(other, ..)| other == key);
    assert!(ours.iter().filter(|(key, ..)| !known(key)).all(|(.., is_part)| *is_part));
    assert!(compared[0] > 100 && compared[1] > 100 && compared[2] > 150, "{compared:?}");
}

/// The summary of the runs that `perf sched timehist` found in the fixture, computed from perf's own lines; times in microseconds.
#[test]
fn the_summary_is_that_of_the_runs_of_perf_sched_timehist() {
    let text = std::fs::read_to_string(fixture("perf-stacks.timehist.txt")).expect("a text");
    // The waits, the delays and the lengths of each task's runs.
    let mut theirs: BTreeMap<String, [Vec<u64>; 3]> = BTreeMap::new();
    for line in text.lines().filter(|line| line.contains('[') && !line.contains("<idle>")) {
        let Some((_, rest)) = line.trim_start().split_once(" [") else { continue };
        let Some((pid, times)) = rest.split_once('[').and_then(|(_, rest)| rest.split_once(']')) else { continue };
        let micros = |word: &str| word.replace('.', "").parse::<u64>().ok();
        let times: Vec<u64> = times.split_whitespace().take(3).filter_map(micros).collect();
        let [wait, delay, run] = times[..] else { continue };
        let of = theirs.entry(pid.split('/').next().unwrap_or(pid).to_owned()).or_default();
        [wait, delay, run].into_iter().zip(of).for_each(|(time, all)| all.push(time));
    }
    let data = fixture("perf-stacks.data");
    let printed = schedviz(&["list", "-q", "--runs", "--summary", data.to_str().expect("a path")]).success().text();
    let (mut compared, mut spread) = (0, 0);
    for line in printed.lines().skip(4).take_while(|line| !line.is_empty()) {
        let (name, rest) = line.split_once(']').expect("a task");
        let pid = name.rsplit('[').next().expect("a PID");
        let words: Vec<&str> = rest.split_whitespace().collect();
        assert_eq!(words.len(), 11, "{line}");
        let Some([waits, delays, runs]) = theirs.get(pid) else { continue };
        // perf has 0 for a run of which it did not see all, and none for one that lasts until the end.
        if words[2].starts_with('>') || runs.contains(&0) {
            continue;
        }
        let n = runs.len() as u64;
        let close = |word: &str, expected: u64, by: u64| {
            let micros: u64 = word.trim_start_matches('>').replace('.', "").parse().expect("a time");
            assert!(micros.abs_diff(expected) <= by, "{line}: {word}, not {expected}");
        };
        let sum: u64 = runs.iter().sum();
        assert_eq!(words[1], n.to_string(), "{line}");
        close(words[2], sum, n);
        close(words[3], *runs.iter().min().expect("a run"), 1);
        close(words[4], sum / n, 1);
        close(words[5], *runs.iter().max().expect("a run"), 1);
        // perf has 0 for the wait that it did not see begin, which ours marks.
        assert_eq!(words[8] == "-" || words[8].starts_with('>'), waits.contains(&0), "{line}");
        if words[8] != "-" {
            close(words[8], waits.iter().sum(), n);
        }
        // The delay of a preempted task is 0 in perf alone.
        if !words[9].starts_with('>') && !delays.contains(&0) {
            close(words[9], delays.iter().sum(), n);
            close(words[10], *delays.iter().max().expect("a delay"), 1);
        }
        let mean = sum as f64 / n as f64;
        let squares: f64 = runs.iter().map(|run| (*run as f64 - mean).powi(2)).sum();
        let error = if n > 1 { 100.0 * (squares / (n - 1) as f64 / n as f64).sqrt() / mean } else { 0.0 };
        let printed: f64 = words[6].parse().expect("percent");
        // The lengths are cut off behind the microsecond.
        assert!((printed - error).abs() <= 0.005 + 200.0 / mean, "{line}: {error}");
        compared += 1;
        spread += u32::from(n > 2);
    }
    assert!(compared >= 10 && spread >= 3, "{compared} {spread}");
}

/// Each column is the sum of the same column of `list --runs`, the migrations are the events, with a window, CPUs and tasks alike.
#[test]
fn the_summary_sums_the_lines() {
    let file = fixture("hackbench.dat");
    let file = file.to_str().expect("a path");
    for arguments in [&[][..], &["--min", "0.4", "--max", "0.8"], &["--cpus", "0,4", "--tasks", "^hackbench"]] {
        let print = |more: &[&str]| schedviz(&[&["list", "-q", file], arguments, more].concat()).success().text();
        // By PID: the number of lines, the sums of the three columns in microseconds, the unknown ones among them.
        let mut sums: BTreeMap<String, (u64, [u64; 3], [bool; 3])> = BTreeMap::new();
        for line in print(&["--runs"]).lines().skip(3) {
            let (_, of_task) = line.split_once("] ").expect("a CPU");
            let (name, rest) = of_task.split_once("]  ").expect("columns");
            let pid = name.rsplit('[').next().expect("a PID").to_owned();
            let (count, sum, unseen) = sums.entry(pid).or_default();
            *count += 1;
            for (nth, word) in rest.split_whitespace().take(3).enumerate() {
                unseen[nth] |= word.starts_with(['-', '>']);
                sum[nth] += word.trim_start_matches('>').replace('.', "").parse::<u64>().unwrap_or(0);
            }
        }
        let moved = print(&["--events", "sched:sched_migrate_task"]);
        let migrations = |pid: &str| moved.lines().filter(|line| line.contains(&format!(" pid={pid} "))).count();
        let printed = print(&["--runs", "--summary"]);
        let mut least = u64::MAX;
        for line in printed.lines().skip(4).take_while(|line| !line.is_empty()) {
            let (name, rest) = line.split_once(']').expect("a task");
            let pid = name.rsplit('[').next().expect("a PID");
            let words: Vec<&str> = rest.split_whitespace().collect();
            let (count, sum, unseen) = sums.remove(pid).unwrap_or_else(|| panic!("{line}: no run"));
            assert_eq!(words[1], count.to_string(), "{line}");
            for (nth, word) in [words[8], words[9], words[2]].into_iter().enumerate() {
                let micros = word.trim_start_matches('>').replace('.', "").parse::<u64>().unwrap_or(0);
                assert!(micros.abs_diff(sum[nth]) <= count, "{line}: {word}, not {}", sum[nth]);
                assert_eq!(word.starts_with(['-', '>']), unseen[nth], "{line}: {word}");
            }
            if !arguments.contains(&"--cpus") {
                assert_eq!(words[7], migrations(pid).to_string(), "{line}");
            }
            assert!(sum[2] <= least.saturating_add(count), "the longest run time comes first: {line}");
            least = sum[2];
        }
        assert!(sums.is_empty(), "{arguments:?}: no row of {sums:?}");
    }
    let refused = schedviz(&["list", file, "--summary"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("--runs"), "{}", refused.stderr);
}
