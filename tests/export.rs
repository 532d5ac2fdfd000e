//! The exported tables: their sums are the numbers of the commands.

use crate::support::{csv, fixture, recordings_in_part, schedviz, scratch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

type Row = BTreeMap<String, String>;

fn read(folder: &Path, table: &str) -> Vec<Row> {
    csv(&std::fs::read_to_string(folder.join(format!("{table}.csv"))).expect("a table"))
}

fn number(row: &Row, column: &str) -> Option<i64> {
    let field = &row[column];
    (!field.is_empty()).then(|| field.parse().unwrap_or_else(|e| panic!("{column} {field}: {e}")))
}

/// The number and the sum of the fields of a column that are known.
fn sum<'r>(rows: impl IntoIterator<Item = &'r Row>, column: &str) -> (i64, i64) {
    rows.into_iter().filter_map(|row| number(row, column)).fold((0, 0), |(n, sum), x| (n + 1, sum + x))
}

/// The document of a command; nothing where it refuses the trace.
fn document(command: &str, trace: &str, more: &[&str]) -> Option<Value> {
    let ran = schedviz(&[&[command, trace, "--json", "-q"], more].concat());
    (ran.code != Some(1)).then(|| serde_json::from_slice(&ran.stdout).expect("JSON"))
}

/// The sums of all tables of a trace, over a window, are those of the documents of the commands.
fn check_sums(trace: &str, window: &[&str]) {
    let folder = scratch(&format!("export-sums{}", window.concat()));
    let to = folder.to_str().expect("a path");
    let ran = schedviz(&[&["export", trace, "--csv", to, "-q"], window].concat());
    let Some(why) = document("why", trace, window) else {
        assert_eq!(ran.code, Some(1), "{trace}");
        return;
    };
    ran.success();
    let int = |value: &Value| value.as_i64().unwrap_or_else(|| panic!("{trace}: {value}"));
    let (why, zero) = (&why["runs"][0], Value::from(0));
    let (wait, idle) = (read(&folder, "wait"), read(&folder, "idle"));
    assert_eq!(sum(&wait, "violated_ns").1, int(&why["waiting"]["total_ns"]), "{trace}: waits");
    assert_eq!(sum(&idle, "violated_ns").1, int(&why["idling"]["total_ns"]), "{trace}: idle stretches");
    let missed = idle.iter().filter(|row| !row["missed_steal"].is_empty()).count();
    assert_eq!(missed as i64, int(&why["missed"]["number"]), "{trace}: missed steals");

    let conserved = document("workcons", trace, window).expect("a document");
    let conserved = conserved.get("runs").map_or(&conserved, |runs| &runs[0]);
    let violation = &conserved["violation"];
    let episodes = read(&folder, "episode");
    let expected = (int(&violation["episodes"]), int(&violation["ns"]));
    assert_eq!(sum(&episodes, "dur_ns"), expected, "{trace}: episodes");
    assert_eq!(sum(&episodes, "thread_ns").1, int(&violation["thread_ns"]), "{trace}: threads");

    let latency = document("latency", trace, window).expect("a document");
    let row_of = |name: &str| {
        let row = latency["measures"].as_array().expect("measures").iter().find(|row| row["measure"] == name);
        assert!(
            row.is_some() || latency["unmeasured"].as_array().expect("measures").contains(&name.into()),
            "{trace}: {name}"
        );
        row
    };
    let measure =
        |name: &str| row_of(name).map_or((0, 0), |row| (int(&row["count"]), int(row.get("total_ns").unwrap_or(&zero))));
    let wakeups = read(&folder, "wakeup");
    for kind in ["wakeup", "new", "preempted"] {
        let of_kind = wakeups.iter().filter(|row| row["kind"] == kind);
        assert_eq!(sum(of_kind, "latency_ns"), measure(kind), "{trace}: {kind}");
    }
    let woken = || wakeups.iter().filter(|row| row["kind"] == "wakeup");
    assert_eq!(sum(woken(), "until_queued_ns"), measure("until-queued"), "{trace}");
    assert_eq!(sum(woken(), "until_run_ns"), measure("until-run"), "{trace}");

    let runs_of_tasks = read(&folder, "on_cpu");
    let whole = runs_of_tasks.iter().filter(|row| row["begun"] == "true" && row["ended"] == "true");
    // A run in the table is cut at the start of the window; one that is counted is not.
    let (runs_in, length) = sum(whole, "dur_ns");
    let (runs, before) = (measure("run"), int(&row_of("run").expect("runs")["began_before"]));
    assert_eq!(runs_in + before, runs.0, "{trace}: runs");
    assert!(length == runs.1 || before > 0 && length < runs.1, "{trace}: {length} and {runs:?}");
    check_busy(trace, window, &runs_of_tasks);

    if let (Some(moves), []) = (document("migrations", trace, window), window) {
        let mut found: BTreeMap<String, i64> = BTreeMap::new();
        for row in read(&folder, "migration") {
            *found.entry(row["cause"].clone()).or_default() += 1;
        }
        let causes = moves["causes"].as_array().expect("causes");
        let expected = causes.iter().map(|c| (c["cause"].as_str().expect("a word").to_owned(), int(&c["count"])));
        assert_eq!(found, expected.collect(), "{trace}: migrations");
    }
    let run = &read(&folder, "run")[0];
    if run["untrusted"].is_empty() {
        assert_eq!(number(run, "violation_ns"), Some(int(&violation["ns"])), "{trace}");
        assert_eq!(number(run, "violation_cpu_time_lost_ns"), Some(sum(&episodes, "cpu_time_lost_ns").1), "{trace}");
    }
    assert_eq!(number(run, "busy_ns"), Some(sum(&runs_of_tasks, "dur_ns").1), "{trace}");
}

/// The runs of tasks of each CPU are the time of its tasks in `utilization`, and that of the interrupts within them.
fn check_busy(trace: &str, window: &[&str], runs_of_tasks: &[Row]) {
    let used = document("utilization", trace, window).expect("a document");
    for cpu in used["cpus"].as_array().expect("CPUs") {
        let number = cpu["cpu"].to_string();
        // Where the application is unknown, its tasks are among the others.
        let class = |name: &str| cpu[format!("{name}_ns")].as_i64().unwrap_or(0);
        let busy: i64 = ["app", "other", "kernel", "stopper", "rt", "rt_possible", "injected", "irq_in_tasks"]
            .map(class)
            .iter()
            .sum();
        let of_cpu = runs_of_tasks.iter().filter(|row| row["cpu"] == number);
        assert_eq!(sum(of_cpu, "dur_ns").1, busy, "{trace}: CPU {number}");
        assert!(class("irq_in_tasks") <= class("irq"), "{trace}: CPU {number}");
        assert!(used["interrupts_recorded"] == true || class("irq") == 0, "{trace}: CPU {number}");
    }
}

/// Takes seconds: each table of an exported trace is summed and compared with the command that counts it anew.
#[test]
fn the_sums_are_those_of_the_commands() {
    for recording in recordings_in_part(3) {
        check_sums(recording.to_str().expect("a path"), &[]);
    }
}

#[test]
fn the_sums_of_a_window_are_those_of_the_commands() {
    let trace = fixture("hackbench.dat");
    for window in [["--min", "0.02", "--max", "0.05"], ["--min", "0.0313", "--max", "0.0314"]] {
        check_sums(trace.to_str().expect("a path"), &window);
    }
}

/// Every listed event is a row, and the text is that of the list.
#[test]
fn the_events_are_those_of_the_list() {
    let trace = fixture("hackbench-7.2.dat");
    let trace = trace.to_str().expect("a path");
    let rows = csv(&schedviz(&["export", trace, "--csv", "-", "--tables", "event", "-q"]).success().text());
    let list = schedviz(&["list", trace, "-q"]).success().text();
    let lines: Vec<&str> = list.lines().filter(|line| !line.contains("EVENTS DROPPED]")).collect();
    assert_eq!(rows.len(), lines.len());
    for (row, line) in rows.iter().zip(lines) {
        let ts: i64 = row["ts_ns"].parse().expect("a time");
        let time = format!("{}.{:09}: {}:", ts / 1_000_000_000, ts % 1_000_000_000, row["event"]);
        let details = row["details"].split_whitespace().collect::<Vec<_>>().join(" ");
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(line.contains(&time) && line.ends_with(&details), "{row:?}: {line}");
        assert!(line.starts_with(&format!("{}-{} ", row["command"], row["pid"])), "{row:?}: {line}");
    }
}

#[test]
fn several_runs_share_the_tables() {
    let folder = scratch("export-groups");
    let to = folder.to_str().expect("a path");
    let (old, new) = (fixture("hackbench.dat"), fixture("hackbench-7.2.dat"));
    let (old, new) = (format!("old={}", old.display()), format!("new={}", new.display()));
    let arguments = ["export", "--group", &old, "--group", &new, "--csv", to, "--tables", "run,episode"];
    let ran = schedviz(&arguments).success();
    assert!(ran.stderr.contains("wrote 2 tables in"), "{}", ran.stderr);
    let (runs, episodes) = (read(&folder, "run"), read(&folder, "episode"));
    let named: Vec<(&str, &str)> = runs.iter().map(|row| (row["group"].as_str(), row["run"].as_str())).collect();
    assert_eq!(named, [("old", "hackbench.dat"), ("new", "hackbench-7.2.dat")]);
    for run in &runs {
        let of_run = episodes.iter().filter(|row| row["group"] == run["group"] && row["run"] == run["run"]);
        assert_eq!(Some(sum(of_run, "dur_ns").1), number(run, "violation_ns"));
    }
    assert!(!folder.join("on_cpu.csv").exists(), "only the tables that were named");
    // The same bytes with one thread.
    let before = std::fs::read(folder.join("episode.csv")).expect("a table");
    let ran = schedviz(&[&arguments[..], &["--threads", "1"]].concat()).success();
    assert!(ran.stderr.contains("replaced 2 tables in"), "{}", ran.stderr);
    assert_eq!(std::fs::read(folder.join("episode.csv")).expect("a table"), before);
}

/// The metrics of a run are the values that `compare` has for it.
#[test]
fn the_row_of_a_run_has_the_metrics_of_compare() {
    let of_metrics = |one: &str, other: &str| {
        let known = values_of_metrics(one, other);
        assert!(known > 40, "{known}");
        known
    };
    let fixtures =
        ["hackbench.dat", "hackbench-7.2.dat"].map(|name| fixture(name).to_str().expect("a path").to_owned());
    let without = of_metrics(&fixtures[0], &fixtures[1]);
    // Requests to reschedule and picks have metrics where they were recorded.
    let Some(traces) = std::env::var_os("SCHEDVIZ_TRACES") else { return };
    let probed = PathBuf::from(traces).join("extra/newer/7.2-resched.dat");
    if let Some(probed) = probed.to_str().filter(|path| Path::new(path).exists()) {
        let with = of_metrics(&fixtures[0], probed);
        assert!(with > without, "{with} values beside {without}");
    }
}

/// Compares the values of two runs in the table with those of `compare`; returns the number of known ones.
fn values_of_metrics(one: &str, other: &str) -> usize {
    let compared = schedviz(&["compare", "--base", one, "--new", other, "--json", "-q"]).success();
    let compared: Value = serde_json::from_slice(&compared.stdout).expect("JSON");
    let table = csv(&schedviz(&["export", one, other, "--csv", "-", "--tables", "run", "-q"]).success().text());
    let mut known = 0;
    for (group, row) in compared["groups"].as_array().expect("groups").iter().zip(&table) {
        let values = group["runs"][0]["values"].as_array().expect("values");
        for (metric, value) in compared["metrics"].as_array().expect("metrics").iter().zip(values) {
            let column = metric["key"].as_str().expect("a key").replace('-', "_");
            // A path is no part of the one pass that the tables share.
            if column.starts_with("path_") {
                assert!(!row.contains_key(&column), "{column}");
                continue;
            }
            let (exported, compared) = (row[&column].parse::<f64>().ok(), value.as_f64());
            assert_eq!(exported.is_some(), compared.is_some(), "{column}");
            let (exported, compared) = (exported.unwrap_or(0.0), compared.unwrap_or(0.0));
            // JSON is read with a rounding error in the last digit.
            assert!((exported - compared).abs() <= compared.abs() * 1e-12, "{column}: {exported}, not {compared}");
            known += usize::from(value.is_number());
        }
    }
    known
}

#[test]
fn slips_are_refused() {
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    let refused = |arguments: &[&str], message: &str| {
        let ran = schedviz(&[&["export", trace], arguments].concat());
        assert!(ran.code != Some(0) && ran.stderr.contains(message), "{arguments:?}: {}", ran.stderr);
    };
    refused(&["--csv", "-"], "writes a single table");
    refused(&["--csv", trace], "");
    refused(&["--csv", "x", "--tables", "slices"], "on_cpu");
    refused(&[], "--csv");
    assert!(!Path::new("x").exists(), "nothing is written");
}

/// A Python that has this package: `SCHEDVIZ_PYTHON`, or the system's.
pub(crate) fn python_with(package: &str) -> Option<String> {
    let python = std::env::var("SCHEDVIZ_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python).args(["-c", &format!("import {package}")]).output();
    let has = has.is_ok_and(|has| has.status.success());
    if !has {
        eprintln!("skipped: {python} has no {package}");
    }
    has.then_some(python)
}

/// DuckDB reads the Parquet files, and finds the numbers of the commands.
#[test]
fn duckdb_finds_the_numbers_of_the_commands() {
    let Some(python) = python_with("duckdb") else { return };
    let folder = scratch("export-parquet");
    let (trace, to) = (fixture("hackbench-7.2.dat"), folder.to_str().expect("a path"));
    let trace = trace.to_str().expect("a path");
    schedviz(&["export", trace, "--parquet", to, "-q"]).success();
    let query = |sql: &str| {
        let script = "import duckdb, json, sys; print(json.dumps(duckdb.sql(sys.argv[1]).fetchall()))";
        let sql = sql.replace("FROM ", &format!("FROM '{to}/")).replace(" ;", "/**/*.parquet'");
        let ran = Command::new(&python).args(["-c", script, &sql]).output().expect("python runs");
        assert!(ran.status.success(), "{sql}: {}", String::from_utf8_lossy(&ran.stderr));
        serde_json::from_slice::<Value>(&ran.stdout).expect("JSON")
    };
    let why = document("why", trace, &[]).expect("a document");
    let waiting = &why["runs"][0]["waiting"]["total_ns"];
    let found = query("SELECT SUM(violated_ns)::BIGINT, ANY_VALUE(run) FROM wait ;");
    assert_eq!((&found[0][0], &found[0][1]), (waiting, &"hackbench-7.2.dat".into()));
    let conserved = document("workcons", trace, &[]).expect("a document");
    let violation = conserved.get("runs").map_or(&conserved, |runs| &runs[0])["violation"].clone();
    let found = query("SELECT COUNT(*), SUM(dur_ns)::BIGINT FROM episode ;");
    assert_eq!(found, serde_json::json!([[violation["episodes"], violation["ns"]]]));
    let latency = document("latency", trace, &[]).expect("a document");
    let wakeup = latency["measures"].as_array().expect("measures")[0].clone();
    let found = query("SELECT COUNT(latency_ns), SUM(latency_ns)::BIGINT, MAX(latency_ns) FROM wakeup ;");
    assert_eq!(wakeup["measure"], "wakeup");
    let of_wakeups =
        query("SELECT COUNT(latency_ns), SUM(latency_ns)::BIGINT, MAX(latency_ns) FROM wakeup ; WHERE kind = 'wakeup'");
    assert_eq!(of_wakeups, serde_json::json!([[wakeup["count"], wakeup["total_ns"], wakeup["max_ns"]]]));
    assert!(found[0][0].as_u64() > of_wakeups[0][0].as_u64(), "other kinds of waits as well");
    let moves = document("migrations", trace, &[]).expect("a document");
    let found = query("SELECT COUNT(*) FROM migration ;");
    assert_eq!(found[0][0], moves["total"]);
    // The same bytes once more, whatever the number of threads.
    let file = folder.join("on_cpu/group=__HIVE_DEFAULT_PARTITION__/run=hackbench-7.2.dat/on_cpu.parquet");
    let before = std::fs::read(&file).expect("a file");
    schedviz(&["export", trace, "--parquet", to, "-q", "--threads", "1"]).success();
    assert!(std::fs::read(&file).expect("a file") == before);
}

/// A task that is queued on a CPU without events may have run there unseen: `latency` and `why` leave the wait out, and so does the table.
#[test]
fn waits_on_cpus_without_events_have_no_rows() {
    use sched::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};
    let task = |pid: i32| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") };
    let at = |ts: i64, pid: i32, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
    let idle = TaskRef { pid: Pid::IDLE, prio: 120, comm: Comm::new(b"swapper") };
    let switch = |prev, next| EventKind::Switch { prev, state: PrevState::asleep(1), next };
    let events = [
        at(1_000, 0, switch(idle, task(7))),
        at(2_000, 7, EventKind::Waking { task: task(8), target: Cpu(3) }),
        at(2_000, 7, EventKind::Wakeup { task: task(8), target: Cpu(3) }),
        at(3_000, 7, EventKind::Waking { task: task(9), target: Cpu(0) }),
        at(3_000, 7, EventKind::Wakeup { task: task(9), target: Cpu(0) }),
        at(4_000, 7, switch(task(7), task(9))),
        at(9_000, 9, switch(task(9), idle)),
    ];
    let folder = scratch("export-unobserved");
    let file = folder.join("some.dat");
    let trace = testkit::TraceBuilder { cpu_count: 4, ..testkit::TraceBuilder::default() }.events(&events);
    std::fs::write(&file, trace.build()).expect("written");
    let [trace, tables] = [&file, &folder.join("tables")].map(|path| path.to_str().expect("a path").to_owned());
    schedviz(&["export", &trace, "--csv", &tables, "-q"]).success();
    let cpus: Vec<(String, String)> =
        read(&folder.join("tables"), "wait").into_iter().map(|row| (row["pid"].clone(), row["cpu"].clone())).collect();
    assert!(cpus.contains(&("9".to_owned(), "0".to_owned())), "{cpus:?}");
    assert!(cpus.iter().all(|(pid, cpu)| pid != "8" && cpu == "0"), "{cpus:?}");
}

/// The fields of chosen events are columns, whose values are those of the events' texts, which `trace-cmd report` prints as well.
#[test]
fn the_fields_of_chosen_events_are_columns() {
    let (trace, folder) = (fixture("hackbench.dat"), scratch("export-fields"));
    let trace = trace.to_str().expect("a path");
    let of = |more: &[&str]| {
        let ran = schedviz(&[&["export", trace, "--csv", "-", "--tables", "event", "-q"], more].concat());
        csv(&String::from_utf8(ran.success().stdout).expect("a table"))
    };
    let switches = of(&["--events", "sched_switch"]);
    assert!(switches.len() > 1000, "{}", switches.len());
    for row in &switches {
        let text = format!("{}:{} [{}] ", row["field_prev_comm"], row["field_prev_pid"], row["field_prev_prio"]);
        assert!(row["details"].starts_with(&text), "{row:?}");
        let next = format!(" ==> {}:{} [{}]", row["field_next_comm"], row["field_next_pid"], row["field_next_prio"]);
        assert!(row["details"].ends_with(&next), "{row:?}");
    }
    // Of several events, those that lack a field have none; the table without a choice has no such columns.
    let several = of(&["--events", "sched:sched_wakeup,sched_switch", "--max", "0.1"]);
    let woken = several.iter().find(|row| row["event"] == "sched_wakeup").expect("a wakeup");
    assert!(woken["field_prev_pid"].is_empty() && !woken["field_target_cpu"].is_empty(), "{woken:?}");
    let every = of(&["--max", "0.1"]);
    assert!(every.iter().all(|row| !row.contains_key("field_prev_pid")));
    let is_chosen = |row: &&Row| ["sched_wakeup", "sched_switch"].contains(&row["event"].as_str());
    assert_eq!(several.len(), every.iter().filter(is_chosen).count());
    // The events are written beside the other tables, and a slip is refused.
    let to = folder.to_str().expect("a path");
    schedviz(&["export", trace, "--csv", to, "--events", "sched_wakeup_new", "-q"]).success();
    assert!(!read(&folder, "event").is_empty() && !read(&folder, "wait").is_empty());
    let refused = schedviz(&["export", trace, "--csv", to, "--events", "sched_swich"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("no event of this trace matches"), "{}", refused.stderr);
}
