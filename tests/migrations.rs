//! The migrations one by one: `migrations` lists what the records of the trace hold.

use crate::support::{fixture, schedviz, schedviz_in, scratch};
use parse::Trace;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A migration as the trace's own records have it: time, CPU, task, from, to, and when the task was next switched in,
/// unless it was moved again before.
type Moved = (i64, u64, i64, i64, i64, Option<i64>);

fn moved(trace: &Trace) -> Vec<Moved> {
    let mut found: Vec<Moved> = Vec::new();
    let mut latest: BTreeMap<i64, usize> = BTreeMap::new();
    trace.records(&mut |record| {
        let number = |field| record.number(field).expect("a field");
        match record.format().map_or("", |format| format.name.as_str()) {
            "sched_migrate_task" => {
                latest.insert(number("pid"), found.len());
                let (from, to) = (number("orig_cpu"), number("dest_cpu"));
                found.push((record.ts.0, u64::from(record.cpu.0), number("pid"), from, to, None));
            }
            "sched_switch" => {
                if let Some(at) = latest.remove(&number("next_pid")) {
                    found[at].5 = Some(record.ts.0 - found[at].0);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
    found
}

#[test]
fn migrations_are_listed_with_cause_distance_and_time_until_they_ran() {
    let (file, machine) = (fixture("hackbench.dat"), fixture("hackbench.cpus.txt"));
    let (file, machine) = (file.to_str().expect("a path"), machine.to_str().expect("a path"));
    let command = ["migrations", file, "--topology", machine, "-q"];
    let json = schedviz(&[&command[..], &["--json"]].concat()).success();
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let listed = report["migrations"].as_array().expect("a list");

    let trace = Trace::open(file.as_ref(), parse::Options::default()).expect("a recording");
    let theirs = moved(&trace);
    let number = |m: &serde_json::Value, key: &str| m[key].as_i64().expect("a number");
    let ours: Vec<Moved> = (listed.iter())
        .map(|m| {
            let until = m["until_run_ns"].as_i64();
            let cpu = m["cpu"].as_u64().expect("a CPU");
            (number(m, "ts_ns"), cpu, number(m, "pid"), number(m, "from_cpu"), number(m, "to_cpu"), until)
        })
        .collect();
    assert!(ours.len() > 250 && ours == theirs, "{} and {}", ours.len(), theirs.len());

    // A migration is reversed by the next one of its task, if that goes back within 10 ms.
    let mut reversed: BTreeMap<&str, u64> = BTreeMap::new();
    let mut latest: BTreeMap<i64, &serde_json::Value> = BTreeMap::new();
    for m in listed {
        let Some(before) = latest.insert(number(m, "pid"), m) else { continue };
        let is_back = m["from_cpu"] == before["to_cpu"] && m["to_cpu"] == before["from_cpu"];
        if is_back && number(m, "ts_ns") - number(before, "ts_ns") <= 10_000_000 {
            *reversed.entry(before["cause"].as_str().expect("a cause")).or_default() += 1;
        }
    }
    assert!(reversed.values().sum::<u64>() > 5, "{reversed:?}");

    // The list has as many of each cause as the table counts.
    for cell in report["causes"].as_array().expect("causes") {
        let of: Vec<&serde_json::Value> = listed.iter().filter(|m| m["cause"] == cell["cause"]).collect();
        let distance = |name: &str| of.iter().filter(|m| m["distance"] == name).count();
        assert_eq!(of.len() as u64, cell["count"], "{cell}");
        let name = cell["cause"].as_str().expect("a cause");
        assert_eq!(reversed.get(name).copied().unwrap_or(0), cell["reversed"], "{cell}");
        assert_eq!(of.iter().filter(|m| m["queued"] == true).count() as u64, cell["queued"], "{cell}");
        let by_distance = cell["by_distance"].as_array().expect("a topology");
        for (name, count) in ["smt", "llc", "node", "machine"].iter().zip(by_distance) {
            assert_eq!(distance(name) as u64, count.as_u64().unwrap_or(0), "{name} of {cell}");
        }
        let longest = of.iter().filter_map(|m| m["until_run_ns"].as_u64()).max();
        assert_eq!(longest.unwrap_or(0), cell["first_run_max_ns"], "{cell}");
    }

    // The table has the same rows, and the text none of them.
    let folder = scratch("migrations");
    let csv = folder.join("m.csv");
    let text = schedviz(&[&command[..], &["-o", csv.to_str().expect("a path")]].concat()).success().text();
    assert!(text.starts_with("cause of the migration"), "{text}");
    let csv = std::fs::read_to_string(csv).expect("a table");
    let mut rows = csv.lines();
    let head = rows.next().expect("a head");
    assert_eq!(head, "ts_ns,cpu,pid,command,from_cpu,to_cpu,cause,queued,distance,until_run_ns,recorded");
    for (row, m) in rows.by_ref().zip(listed) {
        let fields: Vec<&str> = row.split(',').collect();
        for (key, field) in head.split(',').zip(fields) {
            let value = match &m[key] {
                serde_json::Value::Null => String::new(),
                serde_json::Value::String(word) => word.clone(),
                other => other.to_string(),
            };
            assert_eq!(field, value, "{key} of {row}");
        }
    }
    assert_eq!(csv.lines().count(), listed.len() + 1);
}

#[test]
fn the_command_and_its_old_name_find_the_same() {
    let file = fixture("hackbench.dat");
    let file = file.to_str().expect("a path");
    let (new, old) = (schedviz(&["migrations", file, "--json"]), schedviz(&["events", "--balance", file, "--json"]));
    assert!(old.stderr.contains("events --balance is now the command migrations"), "{}", old.stderr);
    assert!(!new.stderr.contains("events --balance"), "{}", new.stderr);
    assert!(!schedviz(&["events", "--help"]).success().text().contains("--balance"));
    let (new, old) = (new.success().stdout, old.success().stdout);
    assert!(new.len() > 10_000 && new == old);
    let folder = scratch("migrations-command");
    for command in [&["migrations", file][..], &["events", "--balance", file]] {
        let text = schedviz_in(&folder, command).success().text();
        let figure = folder.join("hackbench.migrations.pdf");
        assert!(text.contains("wakeup placement") && figure.is_file(), "{text}");
        std::fs::remove_file(figure).expect("removed");
    }
}
