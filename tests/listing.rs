//! `events --list`: texts of early kernels, names, clocks, instances, and function graphs.

use crate::support::{fixture, schedviz, scratch};
use sched::{Comm, Cpu, Kind, Pid, PrevState, SchedEvent, TaskRef, Ts};
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
    let lines = list(file.to_str().expect("a path"), arguments);
    std::fs::remove_dir_all(&folder).expect("removed");
    lines
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
    let at = |ts: i64, pid: i32, kind: Kind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
    let switch = |prev, next| Kind::Switch { prev, state: PrevState::blocked(1), next };
    let events = [
        at(1_000, 5, Kind::Waking { task: task(8, "x"), target: Cpu(0) }),
        at(2_000, 5, switch(task(5, "late"), task(7, "saved"))),
        at(3_000, 7, Kind::Fork { parent: Pid(7), child: Pid(9), child_comm: Comm::new(b"child") }),
        at(4_000, 9, Kind::Exit { pid: Pid(9) }),
        at(5_000, 6, Kind::Exit { pid: Pid(6) }),
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
    let exit = |ts| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(7), flags: 0, kind: Kind::Exit { pid: Pid(7) } };
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
    let by = |field: &str| schedviz(&["events", file.to_str().expect("a path"), "--by", field]).success().text();
    for (field, value) in [("ip", "schedule"), ("work", "0xdeadbeef"), ("page", "0xffff888000001000"), ("order", "12")]
    {
        let text = by(field);
        assert!(text.contains(&format!(" {field}={value}\n")), "{field}: {text}");
    }
    let lines = list(file.to_str().expect("a path"), &[]);
    assert!(lines.ends_with("ip=schedule work=0xdeadbeef page=0xffff888000001000 order=12\n"), "{lines}");
    std::fs::remove_dir_all(&folder).expect("removed");
}
