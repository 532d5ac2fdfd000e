//! The stacks of a task on the page of `schedviz view`, against `offcpu`.

use crate::support::{fixture, schedviz};
use crate::view::View;
use serde_json::Value;
use std::collections::BTreeMap;

/// The time asleep, the time runnable and the number of switches of each stack, by its functions.
type ByStack = BTreeMap<Vec<String>, [u64; 3]>;

fn add(sums: &mut ByStack, functions: &Value, numbers: [&Value; 3]) {
    let names = functions.as_array().into_iter().flatten().filter_map(Value::as_str);
    let sum = sums.entry(names.map(str::to_owned).collect()).or_default();
    for (sum, number) in sum.iter_mut().zip(numbers) {
        *sum += number.as_u64().expect("a number");
    }
}

/// The sums of `offcpu` for a task in a window.
fn by_offcpu(trace: &str, pid: &str, (from, to): (u64, u64)) -> ByStack {
    let (min, max) = (format!("{from}ns"), format!("{to}ns"));
    let ran = schedviz(&["offcpu", "-q", "--json", trace, "--pid", pid, "--min", &min, "--max", &max]);
    let report: Value = serde_json::from_str(&ran.success().text()).expect("JSON");
    let mut sums = ByStack::new();
    for row in report["stacks"].as_array().expect("stacks") {
        add(&mut sums, &row["frames"], [&row["asleep_ns"], &row["runnable_ns"], &row["switches"]]);
    }
    sums
}

#[test]
fn a_task_has_the_stacks_of_offcpu() {
    let [path, wakers, without] = ["rt-5.10.dat", "perf-stacks.data", "hackbench-v6.dat"].map(fixture);
    let trace = path.to_str().expect("a name");
    let view = View::of(&[&path, &wakers, &without]);
    let head = view.head(0);
    assert_eq!(head["stacks"], true);
    let span = head["span"].as_u64().expect("a span");
    // A task that sleeps on locks of the kernel, and is preempted.
    let pid = "184";
    for (from, to) in [(0, span), (span / 4, span / 4 * 3)] {
        let found = view.json(&format!("t/0/stacks.json?pid={pid}&from={from}&to={to}"));
        let stacks = found["stacks"].as_array().expect("stacks");
        let functions =
            |place: &Value| place.as_u64().map_or(&Value::Null, |place| &stacks[place as usize]["functions"]);
        let (mut rows, mut listed) = (ByStack::new(), ByStack::new());
        for row in found["rows"].as_array().expect("rows") {
            add(&mut rows, functions(&row["stack"]), [&row["asleep"], &row["runnable"], &row["times"]]);
        }
        let mut expected = by_offcpu(trace, pid, (from, to));
        expected.retain(|_, numbers| *numbers != [0; 3]);
        rows.retain(|_, numbers| *numbers != [0; 3]);
        assert!(rows.len() > 2 && rows == expected, "{rows:#?} {expected:#?}");
        // The single times sum to the same, but for their number, which has that at the start of the window.
        assert_eq!((&found["truncated"], &found["rest"]), (&Value::Bool(false), &Value::Null));
        for off in found["off"].as_array().expect("times") {
            add(&mut listed, functions(&off["stack"]), [&off["asleep"], &off["runnable"], &Value::from(0)]);
        }
        rows.values_mut().for_each(|numbers| numbers[2] = 0);
        listed.retain(|_, numbers| *numbers != [0; 3]);
        rows.retain(|_, numbers| *numbers != [0; 3]);
        assert_eq!(listed, rows);
        assert!(stacks.iter().any(|stack| stack["kind"] == "lock (kernel)"), "{stacks:?}");
    }
    // The stacks of wakers, without names: perf.data has none of the kernel.
    let head = view.head(1);
    let task = head["tasks"].as_array().expect("tasks").iter().find(|task| task["comm"] == "ping").expect("a task");
    let found = view.json(&format!("t/1/stacks.json?pid={}", task["pid"]));
    let is_stacked = |off: &Value| off["waker"]["pid"].is_i64() && off["waker"]["stack"].is_u64();
    assert!(found["off"].as_array().expect("times").iter().filter(|off| is_stacked(off)).count() > 10, "{found}");
    // A trace without stacks is as before, and has no rows of any.
    assert!(view.head(2).get("stacks").is_none());
    let found = view.json("t/2/stacks.json?pid=1");
    assert_eq!(found["stacks"], Value::Array(Vec::new()));
}
