//! The peak memory of the commands is bounded for a trace of any length.
#![cfg(target_os = "linux")]

use crate::support::{built_program, fixture, program, scratch};
use crate::view::View;
use sched::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};
use std::path::Path;
use std::process::Command;
use testkit::{Simulation, TraceBuilder, peak};

/// Writes a trace of at least `bytes` bytes: the same run, repeated.
fn long(path: &Path, bytes: usize) {
    let run = Simulation::run(7, 8, 20_000);
    let (first, last) = (run.events[0].ts.0, run.events[run.events.len() - 1].ts.0);
    let again = |n: usize, event: &SchedEvent| {
        let later = n as i64 * (last - first + 1);
        SchedEvent { ts: Ts(event.ts.0 + later), ..*event }
    };
    // A switch takes 72 bytes, and nearly every event at least 40.
    let times = bytes / (run.events.len() * 40);
    let events: Vec<SchedEvent> = (0..times).flat_map(|n| run.events.iter().map(move |e| again(n, e))).collect();
    let file = TraceBuilder::default().events(&events).build();
    assert!(file.len() >= bytes, "{} bytes", file.len());
    std::fs::write(path, file).expect("written");
}

/// The peak of a command with one thread, in bytes, some 10 MB of it the code of a program that is not optimised. With more threads
/// the amount that is read ahead varies with the load of the machine.
fn peak_of(arguments: &[&str], folder: &Path) -> u64 {
    peak_by(&program(), arguments, folder)
}

/// The peak of a command of this program.
fn peak_by(program: &Path, arguments: &[&str], folder: &Path) -> u64 {
    let mut command = Command::new(program);
    let peak = peak(command.args(arguments).args(["-q", "--threads", "1", "trace.dat"]).current_dir(folder));
    println!("{:>4} MB {arguments:?}", peak >> 20);
    assert!(peak > 1 << 20, "{arguments:?}: {peak} bytes");
    peak
}

/// The size of a long trace in bytes.
const SIZE: usize = 48 << 20;

/// The greatest peak of a command that reads it, in bytes: less than the trace and the 33 MB or more of any command.
const MOST: u64 = 72 << 20;

/// Each run of a comparison keeps its numbers alone: a year of a regression job is some 10,000 of them.
#[test]
fn a_run_of_a_comparison_takes_little_memory() {
    let folder = scratch("memory-compare");
    let events = Simulation::run(5, 8, 3_000).events;
    std::fs::write(folder.join("1.dat"), TraceBuilder::default().events(&events).build()).expect("written");
    let peak = |runs: usize| {
        for nth in 2..=runs {
            let link = folder.join(format!("{nth}.dat"));
            if !link.exists() {
                std::fs::hard_link(folder.join("1.dat"), link).expect("linked");
            }
        }
        let arguments = ["compare", "--base", "1.dat", "--new", "*.dat", "-q", "--threads", "1"];
        let mut command = Command::new(program());
        testkit::peak(command.args(arguments).current_dir(&folder))
    };
    // A peak varies by a megabyte: 7 of the 28 kB that a run takes. With all of its distributions it took 188 kB.
    let (few, many) = (peak(20), peak(170));
    let each = many.saturating_sub(few) / 150;
    println!("{each} bytes a run: {few}, {many}");
    assert!(each < 48 << 10, "{each} bytes a run");
}

/// `report` holds what all its sections found, which 96 processes and 8 CPUs bound, and takes no more for a trace four times as long.
#[test]
#[ignore = "takes long; .ci/run runs it"]
fn no_command_holds_a_trace() {
    let folder = scratch("memory");
    long(&folder.join("trace.dat"), SIZE);
    let commands: &[&[&str]] = &[
        &["info"],
        &["dat2graph", "-o", "x.svg", "--color-by", "parent"],
        &["dat2graph", "-o", "x.svg", "--events", "sched:*"],
        &["fairness", "--group-by", "parent"],
        &["stepper", "--at", "0.001", "--text"],
        &["events", "-o", "x.csv"],
        &["events", "--near", "1us", "--events", "sched_migrate_task", "-o", "x.txt"],
        &["export", "--csv", "csv"],
        &["export", "--perfetto", "x.pftrace"],
    ];
    for arguments in commands {
        assert!(peak_of(arguments, &folder) < MOST, "{arguments:?}");
    }
    let report = |most: &str| peak_of(&["report", "-o", "x", "--max", most], &folder);
    let (quarter, whole) = (report("1500s"), report("6000s"));
    assert!(
        whole < quarter + (32 << 20) && whole < 300 << 20,
        "report: {quarter} bytes, and {whole} of the whole trace"
    );
    // Row groups and what compresses them take some 45 MB beside what the program takes to read, whatever the length of the trace; its code alone takes
    // a megabyte more every few weeks. The allocator of packages keeps for a second what was freed.
    if cfg!(feature = "parquet") {
        let peak = |arguments: &[&str]| peak_by(&built_program(), arguments, &folder);
        let (info, parquet) = (peak(&["info"]), peak(&["export", "--parquet", "parquet"]));
        assert!(parquet < info + (52 << 20) && parquet < 2 * MOST, "{parquet} bytes, and {info} for info");
    }
}

/// Writes a trace in which each of the tasks is forked, executes a program, and exits soon.
fn forks(path: &Path, tasks: i32) {
    const CPUS: u32 = 4;
    let task = |pid, name: &str| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) };
    let at = |ts, cpu, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(pid), flags: 0, kind };
    let mut events: Vec<SchedEvent> = (0..CPUS).map(|cpu| at(0, cpu, 0, EventKind::Other { id: 1 })).collect();
    let idle = task(0, "swapper");
    for n in 0..tasks {
        let (pid, cpu, ts) = (1000 + n, n as u32 % CPUS, 1000 + i64::from(n) * 1000);
        let (child, compiler) = (task(pid, "make"), task(pid, "cc1"));
        let exec = EventKind::Exec { pid: Pid(pid), old_pid: Pid(pid), program: compiler.comm };
        events.extend([
            at(ts, cpu, 0, EventKind::Fork { parent: Pid(7), child: Pid(pid), child_comm: child.comm }),
            at(ts + 1, cpu, 0, EventKind::WakeupNew { task: child, target: Cpu(cpu) }),
            at(ts + 2, cpu, 0, EventKind::Switch { prev: idle, state: PrevState::RUNNABLE, next: child }),
            at(ts + 500, cpu, pid, exec),
            at(ts + 900, cpu, pid, EventKind::Exit { pid: Pid(pid) }),
            at(ts + 901, cpu, pid, EventKind::Switch { prev: compiler, state: PrevState::DEAD, next: idle }),
        ]);
    }
    std::fs::write(path, TraceBuilder::default().events(&events).build()).expect("written");
}

#[test]
#[ignore = "takes long; .ci/run runs it"]
fn tasks_that_come_and_go_take_no_room() {
    let folder = scratch("forks");
    forks(&folder.join("trace.dat"), 200_000);
    let commands: &[&[&str]] = &[
        &["running-waiting", "-o", "x.svg"],
        &["workcons", "-o", "x.svg"],
        &["latency"],
        &["why"],
        &["utilization"],
        &["fairness", "--group-by", "command"],
        &["stepper", "--at", "0.1", "--text"],
        &["events", "-o", "x.svg"],
        &["migrations", "-o", "x.svg"],
    ];
    for arguments in commands {
        assert!(peak_of(arguments, &folder) < 40 << 20, "{arguments:?}");
    }
}

/// Writes a trace of ten thousand tasks on 16 CPUs, each of which is woken, waits behind others and runs, in each of the rounds.
fn many_tasks(path: &Path, rounds: i32) {
    const CPUS: i32 = 16;
    const TASKS: i32 = 10_000;
    let task = |pid: i32| {
        let name = format!("worker-{}/{}", pid % 40, pid);
        TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(name.as_bytes()) }
    };
    let idle = |cpu: i32| TaskRef { pid: Pid(0), prio: 120, comm: Comm::new(format!("swapper/{cpu}").as_bytes()) };
    let at =
        |ts: i64, cpu: i32, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(cpu as u32), pid: Pid(pid), flags: 0, kind };
    let mut events: Vec<SchedEvent> = (0..CPUS).map(|cpu| at(0, cpu, 0, EventKind::Other { id: 1 })).collect();
    for step in 0..rounds * TASKS / CPUS / 4 {
        for cpu in 0..CPUS {
            let ts = 1_000 + i64::from(step) * 40_000 + i64::from(cpu) * 10;
            let pid = |nth: i32| 1_000 + (step * 4 + nth) * CPUS % TASKS + cpu;
            for nth in 0..4 {
                let kind = EventKind::Wakeup { task: task(pid(nth)), target: Cpu(cpu as u32) };
                events.push(at(ts + i64::from(nth), cpu, 0, kind));
            }
            for nth in 0..=4 {
                let (prev, next) = match nth {
                    0 => (idle(cpu), task(pid(0))),
                    4 => (task(pid(3)), idle(cpu)),
                    _ => (task(pid(nth - 1)), task(pid(nth))),
                };
                let state = if nth == 0 { PrevState::RUNNABLE } else { PrevState::asleep(1) };
                let begun = ts + 100 + i64::from(nth) * 7_000;
                events.push(at(begun, cpu, prev.pid.0, EventKind::Switch { prev, state, next }));
            }
        }
    }
    events.sort_by_key(|event| (event.ts, event.cpu));
    std::fs::write(path, TraceBuilder::default().events(&events).build()).expect("written");
}

/// The memory of the server that has answered all that a page asks, of the rows of ten thousand tasks, of tables, and of finer tiles.
#[test]
#[ignore = "takes long; .ci/run runs it"]
fn ten_thousand_tasks_of_view_take_little_memory() {
    let folder = scratch("memory-view");
    let path = folder.join("trace.dat");
    many_tasks(&path, 48);
    let view = View::of(&[&path]);
    let report = |about: &str| {
        println!("{:>4} MB, at most {:>4} MB {about}", view.memory("VmRSS") >> 20, view.memory("VmHWM") >> 20);
    };
    let head = view.head(0);
    report("the index");
    assert_eq!(head["tasks"].as_array().expect("tasks").len(), 10_000);
    let ask = |path: &str| {
        // The reading of an answer ends after a minute; the server goes on with it.
        let answers = std::iter::repeat_with(|| view.get(&format!("t/0/{path}"))).take(5);
        let answer = answers.into_iter().find(|answer| answer.status != 0).expect("an answer");
        assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        report(path);
    };
    let span = head["span"].as_u64().expect("a number");
    let top = head["levels"][1].as_u64().expect("a level");
    ["rows.json", "groups.json", "findings.json", "main.json", "list.json?kind=missed"].into_iter().for_each(ask);
    let columns = head["tile"]["columns"].as_u64().expect("a number");
    for level in [top, top - 6, top - 10, 8] {
        for index in [0, ((span / 2) >> level) / columns] {
            ask(&format!("rows/{level}/{index}.bin?of=0,1,5000"));
            ask(&format!("lanes/{level}/0/{index}.bin"));
        }
    }
    for by in ["task", "command", "cpu"] {
        ask(&format!("table.json?by={by}&from=0&to={span}"));
    }
    ask(&format!("table.json?by=task&from={}&to={}", span / 4, span / 2));
    let peak = view.memory("VmHWM");
    // 178 MB, and 211 with an allocator that gives nothing back: 16 MB at most are copies of the state, 12 the rows.
    assert!(peak < 225_000_000, "{} MB", peak / 1_000_000);
}

/// The number of bytes that a command reads from files, as the kernel counts them for the shell that ran it.
fn bytes_read(arguments: &[&str], folder: &Path) -> u64 {
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$@\" >/dev/null || exit; exec cat /proc/self/io", "sh"]).arg(program());
    let ran = shell.args(arguments).args(["-q", "--threads", "1"]).current_dir(folder).output().expect("a shell");
    let counts = String::from_utf8_lossy(&ran.stdout).into_owned();
    let read = counts.lines().find_map(|line| line.strip_prefix("rchar: ")).and_then(|number| number.parse().ok());
    read.unwrap_or_else(|| panic!("{arguments:?}: {counts}{}", String::from_utf8_lossy(&ran.stderr)))
}

/// A part is written in some passes over the trace, and read as any trace: the records of cgroups, processes and parameters were read
/// three times for its note, and by each of its readers anew.
#[test]
fn a_part_takes_a_few_passes_over_its_trace() {
    if !Path::new("/proc/self/io").exists() {
        eprintln!("skipped: this system does not count what a program reads");
        return;
    }
    let folder = scratch("passes");
    std::fs::copy(fixture("throttled-6.12.dat"), folder.join("trace.dat")).expect("copied");
    let asked = bytes_read(&["workcons", "trace.dat"], &folder);
    let cut = bytes_read(&["cut", "trace.dat", "-o", "part.dat"], &folder);
    assert!(cut < asked * 11 / 4, "cut read {cut} bytes, workcons {asked}");
    let part = bytes_read(&["workcons", "part.dat"], &folder);
    assert!(part < asked * 5 / 4, "workcons read {part} bytes of the part, {asked} of the whole");
}
