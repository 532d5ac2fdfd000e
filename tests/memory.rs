//! However long a trace is, little of it is in memory.
#![cfg(target_os = "linux")]

use crate::support::scratch;
use sched::{SchedEvent, Ts};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use testkit::{Simulation, TraceBuilder};

/// A trace of so many bytes at least: the same run again and again.
fn long(path: &Path, bytes: usize) {
    let run = Simulation::run(7, 8, 20_000);
    let (first, last) = (run.events[0].ts.0, run.events[run.events.len() - 1].ts.0);
    let again = |n: usize, event: &SchedEvent| {
        let later = n as i64 * (last - first + 1);
        SchedEvent { ts: Ts(event.ts.0 + later), ..*event }
    };
    // A switch takes 72 bytes, and hardly anything less than 40.
    let times = bytes / (run.events.len() * 40);
    let events: Vec<SchedEvent> = (0..times).flat_map(|n| run.events.iter().map(move |e| again(n, e))).collect();
    let file = TraceBuilder::default().events(&events).build();
    assert!(file.len() >= bytes, "{} bytes", file.len());
    std::fs::write(path, file).expect("written");
}

/// Runs the program; the most memory that it held, in bytes.
fn peak(arguments: &[&str], folder: &Path) -> usize {
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedviz"));
    command.args(arguments).args(["-q", "trace.dat"]).current_dir(folder).stdout(Stdio::null());
    let mut child = command.spawn().expect("the program runs");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let kilobytes = text.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak = peak.max(kilobytes.unwrap_or(0) << 10);
        if let Some(status) = child.try_wait().expect("a child") {
            assert!(status.success(), "{arguments:?}: {status}");
            return peak;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn no_command_holds_a_trace() {
    const SIZE: usize = 64 << 20;
    let folder = scratch("memory");
    long(&folder.join("trace.dat"), SIZE);
    let commands: &[&[&str]] = &[
        &["info"],
        &["dat2graph", "-o", "x.svg", "--color-by", "parent"],
        &["dat2graph", "-o", "x.svg", "--events", "sched:*"],
        &["running-waiting", "-o", "x.svg", "--per-cpu"],
        &["workcons", "-o", "x.svg"],
        &["latency", "--by", "task"],
        &["utilization"],
        &["fairness", "--group-by", "parent"],
        &["stepper", "--at", "0.001", "--text"],
        &["events"],
        &["events", "-o", "x.csv"],
        &["events", "--list", "-o", "x.txt"],
        &["events", "--near", "0.001", "--events", "sched_migrate_task", "-o", "x.txt"],
        &["events", "--balance"],
        &["report", "-o", "x"],
    ];
    for arguments in commands {
        let peak = peak(arguments, &folder);
        assert!(peak > 1 << 20 && peak < SIZE * 3 / 4, "{arguments:?}: {} MB", peak >> 20);
        println!("{:>4} MB {arguments:?}", peak >> 20);
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}
