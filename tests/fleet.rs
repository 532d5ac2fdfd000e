//! The questions of the examples over a fleet of 40 runs: DuckDB and Spark answer as the commands report.

use crate::export::python_with;
use crate::support::{Scratch, root, schedviz, scratch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::{Age, Simulation, TraceBuilder};

/// The groups of the fleet, and the runs of each.
const GROUPS: [(&str, Age); 2] = [("on", Age::Modern), ("off", Age::Dynamic)];
const RUNS: usize = 20;

/// Traces in a folder for each group, and the numbers of the commands on them.
struct Fleet {
    folder: Scratch,
    traces: PathBuf,
    groups: BTreeMap<&'static str, Expected>,
}

/// The answers for a group.
#[derive(Debug, PartialEq)]
struct Expected {
    /// The runs whose violation is known, and its median in millionths of a percent.
    violation: (i64, i64),
    /// The median elapsed time in nanoseconds.
    elapsed_ns: i64,
    missed_steals: i64,
    wakeups: i64,
}

fn document(command: &str, traces: &[String]) -> Value {
    let words: Vec<&str> = traces.iter().map(String::as_str).collect();
    let ran = schedviz(&[&[command], words.as_slice(), &["--json", "-q"]].concat()).success();
    serde_json::from_slice(&ran.stdout).expect("JSON")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) }
}

/// A number scaled and rounded, so that engines which add in another order agree.
fn rounded(value: &Value, scale: f64) -> i64 {
    (value.as_f64().unwrap_or_else(|| panic!("{value}")) * scale).round() as i64
}

impl Fleet {
    fn new(name: &str) -> Fleet {
        let folder = scratch(name);
        let traces = folder.join("traces");
        let mut groups = BTreeMap::new();
        for (number, (group, age)) in GROUPS.into_iter().enumerate() {
            std::fs::create_dir_all(traces.join(group)).expect("a folder");
            let file = |run: usize| traces.join(group).join(format!("{group}.{run}.dat"));
            for run in 0..RUNS {
                let events = Simulation::run((100 * number + run) as u64 + 1, 4, 1_000).events;
                let builder = TraceBuilder { age, cpu_count: 4, ..TraceBuilder::default() };
                std::fs::write(file(run), builder.events(&events).build()).expect("written");
            }
            let paths: Vec<String> = (0..RUNS).map(|run| file(run).to_str().expect("a path").to_owned()).collect();
            groups.insert(group, Expected::of(&paths));
        }
        Fleet { folder, traces, groups }
    }

    /// Compares the answers to the questions on violation, on the tail of the latency and on missed steals, whose rows have
    /// these columns.
    fn check(&self, answers: &[Vec<BTreeMap<String, Value>>]) {
        for (group, expected) in &self.groups {
            let of_group = |answer: usize| answers[answer].iter().filter(|row| row["group"] == **group);
            let violation = of_group(0).collect::<Vec<_>>();
            let [row] = violation.as_slice() else { panic!("one kernel and machine a group: {violation:?}") };
            let sum = |answer: usize, column: &str| of_group(answer).filter_map(|row| row[column].as_i64()).sum();
            let found = Expected {
                violation: (row["runs"].as_i64().expect("a number"), rounded(&row["violation_percent"], 1e6)),
                elapsed_ns: rounded(&row["elapsed_s"], 1e9),
                missed_steals: sum(2, "missed_steals"),
                wakeups: sum(1, "wakeups"),
            };
            assert_eq!(found, *expected, "{group}");
        }
    }
}

impl Expected {
    fn of(paths: &[String]) -> Expected {
        let runs = |document: &Value| document["runs"].as_array().expect("runs").clone();
        let conserved = runs(&document("workcons", paths));
        let percents: Vec<f64> = conserved.iter().filter_map(|run| run["violation"]["percent"].as_f64()).collect();
        let why = runs(&document("why", paths));
        let missed = why.iter().map(|run| run["missed"]["number"].as_i64().expect("a number")).sum();
        let elapsed = |path: &String| {
            let info = document("info", std::slice::from_ref(path));
            info["span_ns"].as_f64().expect("a span")
        };
        let wakeups = |path: &String| {
            let latency = document("latency", std::slice::from_ref(path));
            let measures = latency["measures"].as_array().expect("measures").clone();
            let of_wakeups = measures.iter().find(|measure| measure["measure"] == "wakeup").expect("wakeups");
            of_wakeups["count"].as_i64().expect("a number")
        };
        Expected {
            violation: (percents.len() as i64, (median(percents) * 1e6).round() as i64),
            elapsed_ns: median(paths.iter().map(elapsed).collect()).round() as i64,
            missed_steals: missed,
            wakeups: paths.iter().map(wakeups).sum(),
        }
    }
}

/// Runs a command that prints JSON, one document a line.
fn json_lines(command: &mut Command) -> Vec<Value> {
    let ran = command.output().expect("python runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let text = String::from_utf8(ran.stdout).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn duckdb_answers_over_forty_runs() {
    let Some(python) = python_with("duckdb") else { return };
    let fleet = Fleet::new("fleet-duckdb");
    let tables = fleet.folder.join("tables");
    let mut arguments = vec!["export".to_owned(), "-q".to_owned()];
    for (group, _) in GROUPS {
        arguments.extend(["--group".to_owned(), format!("{group}={}/{group}/*.dat", fleet.traces.display())]);
    }
    arguments.extend(["--parquet".to_owned(), tables.display().to_string()]);
    schedviz(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).success();
    // The tail's question leaves rare commands out, and shows the first ones: all of them are counted here.
    let script = "import duckdb, json, sys\n\
                  con = duckdb.connect()\n\
                  text = open(sys.argv[1]).read().replace('>= 100', '>= 1').replace('LIMIT 20', '')\n\
                  for q in filter(str.strip, text.split(';')):\n\
                  \x20   cursor = con.execute(q)\n\
                  \x20   names = [column[0] for column in cursor.description]\n\
                  \x20   print(json.dumps([dict(zip(names, row)) for row in cursor.fetchall()], default=str))";
    let example = root().join("examples/duckdb.sql");
    let answers = json_lines(Command::new(&python).args(["-c", script]).arg(example).current_dir(&tables));
    // Four views come before the questions, and a fourth question behind these.
    let rows = |answer: &Value| serde_json::from_value(answer.clone()).expect("rows");
    fleet.check(&answers[4..7].iter().map(rows).collect::<Vec<_>>());
    assert!(answers[7].as_array().is_some_and(|rows| !rows.is_empty()));
}

/// Spark exports the folder, one trace a task.
#[test]
fn spark_answers_over_forty_runs() {
    let Some(python) = python_with("pyspark") else { return };
    if Command::new("java").arg("-version").output().is_err() {
        eprintln!("skipped: no Java");
        return;
    }
    let fleet = Fleet::new("fleet-spark");
    let tables = fleet.folder.join("tables");
    // As above: all commands are counted.
    let text = std::fs::read_to_string(root().join("examples/spark.py")).expect("the example");
    let example = fleet.folder.join("spark.py");
    std::fs::write(&example, text.replace(">= 100", ">= 1").replace("LIMIT 20", "")).expect("written");
    let spark = |arguments: &[&Path]| {
        let mut command = Command::new(&python);
        command.arg(&example).arg(if arguments.len() == 2 { "export" } else { "ask" }).args(arguments);
        json_lines(command.env("SCHEDVIZ", env!("CARGO_BIN_EXE_schedviz")))
    };
    let exported = spark(&[&fleet.traces, &tables]);
    assert_eq!(exported, [serde_json::json!({"exported": GROUPS.len() * RUNS, "failed": 0})]);
    let rows = |answer: &Value| serde_json::from_value(answer.clone()).expect("rows");
    fleet.check(&spark(&[&tables]).iter().map(rows).collect::<Vec<_>>());
}
