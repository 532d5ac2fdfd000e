//! Counters at the switches: recorded by a program that stands in for perf, and compared by burst.

#![cfg(target_os = "linux")]

use crate::support::{schedviz, schedviz_in, scratch, stand_in};
use sched::{EventKind, SchedEvent};
use testkit::{PerfBuilder, Simulation, TraceBuilder};

/// A perf.data of a simulated run, whose counter counts three cycles a nanosecond.
fn counted(lost_samples: u64) -> Vec<u8> {
    let events: Vec<SchedEvent> = Simulation::run(5, 4, 20_000).events;
    let events: Vec<SchedEvent> = events.into_iter().filter(|e| !matches!(e.kind, EventKind::Offline)).collect();
    let machine = TraceBuilder { cpu_count: 4, ..TraceBuilder::default() };
    PerfBuilder { counters: true, lost_samples, ..PerfBuilder::default() }.build(&machine, &events)
}

#[test]
fn a_burst_has_the_counts_of_its_runs() {
    let folder = scratch("counters");
    let file = folder.join("counted.data");
    std::fs::write(&file, counted(0)).expect("written");
    let path = file.to_str().expect("a path");
    let json = schedviz(&["migrations", path, "--json", "-q"]).success().stdout;
    let report: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let rows = report["cost"].as_array().expect("rows");
    assert!(!rows.is_empty());
    for row in rows {
        let counter = &row["counters"][0];
        assert_eq!(counter["counter"], "cycles");
        assert_eq!((&counter["after"], &counter["without"]), (&row["after"], &row["without"]), "{row}");
        let tripled = |key: &str| row[key].as_u64().map(|ns| 3 * ns);
        assert_eq!(counter["after_median"].as_u64(), tripled("after_median_ns"), "{row}");
        assert_eq!(counter["without_median"].as_u64(), tripled("without_median_ns"), "{row}");
        assert_eq!(counter["ratio"], row["ratio"], "{row}");
    }
    let info = schedviz(&["info", path]).success().text();
    assert!(info.contains("counters   cycles, read at the switches"), "{info}");
}

#[test]
fn perf_records_the_counters_of_a_command() {
    let folder = scratch("record-counters");
    for event in ["sched/sched_switch", "sched/sched_waking", "irq/softirq_entry"] {
        std::fs::create_dir_all(folder.join("tracefs/events").join(event)).expect("made");
    }
    std::fs::create_dir_all(folder.join("tracefs/instances")).expect("made");
    let record = |more: &[&str], script: &str| {
        let fixed = ["record", "--counters", "--tracefs", "tracefs", "--perf", "./perf"];
        schedviz_in(&folder, &[&fixed, more, &["--", "sh", "-c", script]].concat())
    };

    // A machine without the counters is refused before the command runs.
    stand_in(&folder.join("perf"), "printf 'Error:\\nThe cycles event is not supported.\\n' >&2; exit 255");
    let refused = record(&[], "touch ran");
    assert_eq!((refused.code, folder.join("ran").exists()), (Some(1), false), "{}", refused.stderr);
    assert!(refused.stderr.contains("at switches: The cycles event is not supported."), "{}", refused.stderr);

    // The file behind -o, and the command behind --.
    let perf = r#"echo "$*" >> asked; while [ "$1" != -- ]; do [ "$1" = -o ] && out=$2; shift; done; shift
        cp counted.data "$out"; exec "$@""#;
    stand_in(&folder.join("perf"), perf);
    std::fs::write(folder.join("counted.data"), counted(0)).expect("written");
    let ran = record(&["--irq", "--buffer", "3M"], "exit 7");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("events with cycles and cache-misses in"), "{}", ran.stderr);
    assert!(ran.stderr.contains("the command failed: exit status: 7"), "{}", ran.stderr);
    let asked = std::fs::read_to_string(folder.join("asked")).expect("its arguments");
    let words = "-m 4096K -e {sched:sched_switch,cycles,cache-misses}:S -e sched:sched_waking -e irq:* -o ";
    let named = asked.lines().last().and_then(|line| line.split_once(words)).expect("its options").1;
    // In a folder of this user alone, in which no other user can have made a link.
    assert!(named.contains("/.schedviz") && named.contains("/perf.data -- sh -c exit 7"), "{named}");
    assert!(folder.join("trace.data").is_file() && folder.join("trace.machine.json").is_file());
    let names = folder.read_dir().expect("a folder").flatten().map(|entry| entry.file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with('.')), "nothing else is left");

    // Losses are reported, by text and status.
    std::fs::write(folder.join("counted.data"), counted(31)).expect("written");
    let lossy = record(&["-q"], "true");
    assert_eq!(lossy.code, Some(3), "{}", lossy.stderr);
    assert!(lossy.stderr.contains("LOST: 31 events; record with --buffer"), "{}", lossy.stderr);

    // Nothing is left of a recording that perf did not write.
    stand_in(&folder.join("perf"), r#"for last; do :; done; [ "$last" = true ] || exit 1"#);
    let failed = record(&["-o", "none.data"], "echo never");
    assert_eq!(failed.code, Some(1));
    assert!(failed.stderr.contains("./perf recorded nothing"), "{}", failed.stderr);
}
