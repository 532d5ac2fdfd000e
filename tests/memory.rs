//! However long a trace is, little of it is in memory.
#![cfg(target_os = "linux")]

use crate::support::scratch;
use sched::{SchedEvent, Ts};
use std::path::Path;
use std::process::Command;
use testkit::{Simulation, TraceBuilder, timed};

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
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedviz"));
        let (_, peak) = timed(command.args(*arguments).args(["-q", "trace.dat"]).current_dir(&folder));
        assert!(peak > 1 << 20 && peak < SIZE as u64 * 3 / 4, "{arguments:?}: {} MB", peak >> 20);
        println!("{:>4} MB {arguments:?}", peak >> 20);
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}
