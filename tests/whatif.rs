//! The command `whatif`: calibration, refusal, figures, curves, and predictions beside measured runs.

use crate::cut::{cut, outcome};
use crate::support::{fixture, schedviz, scratch};
use sched::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};
use serde_json::Value;
use std::path::Path;
use testkit::TraceBuilder;

fn path(name: &str) -> String {
    fixture(name).to_str().expect("a path").to_owned()
}

fn document(arguments: &[&str]) -> (Option<i32>, Value) {
    let ran = schedviz(&[&["whatif", "-q", "--json"], arguments].concat());
    (ran.code, serde_json::from_slice(&ran.stdout).expect("JSON"))
}

#[test]
fn the_model_of_a_recording_comes_to_the_elapsed_time_and_the_violation_of_it() {
    for name in ["hackbench.dat", "hackbench-7.2.dat", "balance.dat", "affine.dat"] {
        let (code, document) = document(&[&path(name), "--policy", "observed"]);
        let calibration = &document["runs"][0]["calibration"];
        assert_eq!((code, &calibration["is_predictable"]), (Some(0), &Value::Bool(true)), "{name}");
        for (error, most) in [("elapsed_error_percent", 0.1), ("violation_error_points", 0.5)] {
            assert!(calibration[error].as_f64().expect("a number").abs() <= most, "{name}: {calibration}");
        }
    }
}

/// The text of an answer, in lines without breaks.
fn text(arguments: &[&str]) -> String {
    let printed = schedviz(&[&["whatif", "-q"], arguments].concat());
    String::from_utf8_lossy(&printed.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_trace_that_does_not_show_why_tasks_slept_has_a_bound_and_wider_intervals() {
    let (code, document) = document(&[&path("cgroup-cpuset.dat")]);
    let run = &document["runs"][0];
    let calibration = &run["calibration"];
    assert_eq!((code, &calibration["is_predictable"]), (Some(0), &Value::Bool(true)), "{run}");
    assert!(calibration["advice"][0].as_str().expect("advice").contains("-e timer"), "{run}");
    let of = |value: &Value| value.as_f64().expect("a number");
    let least = of(&run["bound"]["least"]["elapsed_ns"]);
    assert!(least > 0.0 && least <= of(&run["recorded"]["elapsed_ns"]), "{run}");
    for row in run["rows"].as_array().expect("rows") {
        assert!(of(&row["elapsed_ns"]["low"]) >= least, "{row}");
    }
    let printed = text(&[&path("cgroup-cpuset.dat")]);
    let head = "cgroup-cpuset.dat: tasks seem bound to CPUs";
    assert!(printed.starts_with(head), "{printed}");
}

/// The model of this trace misses it by more than half.
#[test]
fn an_interval_that_says_nothing_is_no_forecast() {
    let (code, document) = document(&[&path("hotplug-5.10.dat")]);
    let run = &document["runs"][0];
    assert_eq!((code, &run["rows"]), (Some(3), &Value::Array(Vec::new())), "{run}");
    let reason = run["calibration"]["reasons"][0].as_str().expect("a reason");
    assert!(reason.starts_with("the narrowest interval is ") && reason.contains("own error is 58.8 %"), "{reason}");
    assert!(run["bound"]["least"]["elapsed_ns"].is_u64(), "{run}");
    let printed = text(&[&path("hotplug-5.10.dat")]);
    let head = "Doubts: 79 events counted by the recorder, missing without a mark: parts of the numbers may be wrong. hotplug-5.10.dat: between 0 and ";
    assert!(printed.starts_with(head), "{printed}");
}

/// Two tasks on one CPU of a machine whose other CPUs idle, bound there by `taskset`.
#[test]
fn tasks_that_seem_bound_widen_every_interval_to_no_change() {
    let (code, document) = document(&[&path("affine.dat")]);
    let run = &document["runs"][0];
    assert_eq!(code, Some(0), "{run}");
    assert!(run["calibration"]["seem_bound_percent"].as_f64().expect("a share") > 90.0, "{run}");
    assert!(run["bound"]["least_if_bound"]["elapsed_ns"].is_u64(), "{run}");
    for row in run["rows"].as_array().expect("rows") {
        for number in ["elapsed_ns", "violation_ns", "cpu_time_lost_ns"] {
            let of = |end: &str| row[number][end].as_f64().expect("a number");
            let trace = run["recorded"][number].as_f64().expect("a number");
            assert!(of("low") <= trace && trace <= of("high"), "{number}: {row} {trace}");
        }
    }
    let printed = text(&[&path("affine.dat")]);
    assert!(printed.starts_with("affine.dat: tasks seem bound to CPUs (in 100 % of the violated time"), "{printed}");
    assert!(printed.contains("; nothing, if the tasks are bound"), "{printed}");
}

/// The same trace, where the CPU of the two tasks is isolated: no policy moves any of the two from it.
#[test]
fn tasks_on_an_isolated_cpu_stay_there() {
    let trace = std::fs::read(fixture("affine.dat")).expect("the trace");
    let violated = |cpus: &str| {
        let folder = scratch("whatif-isolated");
        let file = folder.join("affine.dat");
        std::fs::write(&file, &trace).expect("written");
        let machine = format!(r#"{{"schema":"schedviz/machine/1","kernel":{{}},"cpus":{cpus},"scheduler":{{}}}}"#);
        std::fs::write(folder.join("affine.machine.json"), machine).expect("written");
        let (code, document) = document(&[file.to_str().expect("a path"), "--policy", "steal=machine,ideal"]);
        assert_eq!(code, Some(0), "{document}");
        let rows = document["runs"][0]["rows"].as_array().expect("rows").clone();
        let changes = rows.iter().map(|row| row["violation_ns"]["change_percent"].as_f64().expect("a change"));
        changes.collect::<Vec<f64>>()
    };
    let free = violated("{}");
    assert!(free.iter().all(|change| *change < -90.0), "{free:?}");
    let isolated = violated(r#"{"isolated":"1"}"#);
    assert!(isolated.iter().all(|change| *change > -10.0), "{isolated:?}");
}

/// New-idle balancing gives up where a search would take longer than CPUs idle: by the option, or the machine file beside the trace.
#[test]
fn new_idle_balancing_needs_its_cost_and_gives_up_where_it_is_dear() {
    let folder = scratch("whatif-newidle");
    let file = folder.join("newidle.dat");
    std::fs::copy(fixture("hackbench.dat"), &file).expect("copied");
    let (file, cpus) = (file.to_str().expect("a path"), path("hackbench.cpus.txt"));
    let asked = ["whatif", file, "--under", "newidle", "--topology", &cpus, "-q"];
    let refused = schedviz(&asked).stderr;
    assert!(refused.contains("--newidle-cost 3us,20us"), "{refused}");
    let refused = schedviz(&[&asked[..], &["--newidle-cost", "1us,2us,3us"]].concat()).stderr;
    assert!(refused.contains("--newidle-cost has two times"), "{refused}");
    let steals = |cost: &[&str]| {
        let (code, document) = document(&[&asked[1..6], cost].concat());
        assert_eq!(code, Some(0), "{document}");
        assert!(document["runs"][0]["costs"]["new_idle_all_ns"].as_u64() > Some(0), "{document}");
        document["runs"][0]["rows"][0]["steals"].as_u64().expect("a number")
    };
    let cheap = steals(&["--newidle-cost", "3us,20us"]);
    assert!(cheap > 20, "{cheap} pulls");
    assert_eq!(steals(&["--newidle-cost", "1s"]), 0);
    let machine = r#"{"schema":"schedviz/machine/1","kernel":{},"cpus":{},"scheduler":{},
        "newidle_costs":{"start":{"0":{"lowest_ns":3000,"sum_ns":20000},"1":{"lowest_ns":3000,"sum_ns":20000}}}}"#;
    std::fs::write(folder.join("newidle.machine.json"), machine).expect("written");
    assert_eq!(steals(&[]), cheap);
}

/// Balancing at ticks needs no cost, moves fewer tasks the rarer the ticks are, and leaves the trace in the interval.
#[test]
fn the_kernels_balancer_works_at_ticks() {
    let (file, cpus) = (path("hackbench.dat"), path("hackbench.cpus.txt"));
    let pulls = |policy: &str, tick: &str| {
        let (code, document) =
            document(&[&file, "--topology", &cpus, "--under", policy, "--tick", tick, "--newidle-cost", "3us,20us"]);
        let run = &document["runs"][0];
        let row = &run["rows"][0];
        assert_eq!(code, Some(0), "{document}");
        for number in ["elapsed_ns", "violation_ns", "mean_wait_ns"] {
            let truth =
                if number == "mean_wait_ns" { &run["recorded"]["waits"]["mean_ns"] } else { &run["recorded"][number] };
            let [low, truth, high] =
                [&row[number]["low"], truth, &row[number]["high"]].map(|end| end.as_f64().expect("a number"));
            assert!(low <= truth && truth <= high, "{number}: {row}");
        }
        let numbers = ["nohz", "periodic"].map(|by| row["pulls"][by].as_u64().expect("a number"));
        (row["policy"].as_str().expect("a name").to_owned(), run["tick_ns"].as_u64().expect("a length"), numbers)
    };
    let (name, tick, [idle, busy]) = pulls("periodic+newidle+nohz", "4ms");
    assert_eq!((&*name, tick), ("newidle+nohz+periodic", 4_000_000));
    assert!(idle > 0 && busy > 0, "{idle} {busy}");
    let [(.., [often, none]), (.., [rarely, _])] = ["1ms", "200ms"].map(|tick| pulls("nohz", tick));
    assert!(often > rarely && none == 0, "{often} {rarely} {none}");
    let refused = schedviz(&["whatif", &file, "--under", "nohz+nohz"]).stderr;
    assert!(refused.contains("newidle+nohz+periodic"), "{refused}");
    let ran = schedviz(&["whatif", &file, "--under", "nohz,periodic", "-q"]);
    let text = String::from_utf8(ran.stdout).expect("text");
    assert!(text.contains("Pulls at ticks, each 4.00 ms: nohz "), "{text}");
}

/// With `newidle` no larger share of the chances becomes a pull than in the trace; where that shows hardly any pull, the interval holds the trace.
#[test]
fn new_idle_balancing_succeeds_no_more_often_than_in_the_trace() {
    let folder = scratch("whatif-success");
    let mut shown = [false, false];
    for name in ["hackbench.dat", "balance.dat", "hackbench-7.2.dat"] {
        let simulated = folder.join(name).display().to_string();
        let of = |file: &str, more: &[&str]| {
            document(&[&[file, "--under", "newidle", "--newidle-cost", "3us,20us"], more].concat()).1
        };
        let trace = of(&path(name), &["--as-trace", &simulated]);
        let again = of(&simulated, &[]);
        let rates = |document: &Value, distance: &str| {
            let rate = &document["runs"][0]["taken"]["balancing"][format!("new_idle_{distance}")];
            ["pulls", "chances"].map(|number| rate[number].as_u64().expect("a number") as f64)
        };
        let [[near, near_of], [far, far_of]] = ["near", "far"].map(|distance| rates(&trace, distance));
        let does_show = near + far >= 10.0;
        shown[usize::from(does_show)] = true;
        let violation = &trace["runs"][0]["rows"][0]["violation_ns"];
        if !does_show {
            let truth = trace["runs"][0]["recorded"]["violation_ns"].as_f64().expect("a length");
            let [low, high] = ["low", "high"].map(|end| violation[end].as_f64().expect("a length"));
            assert!(low <= truth && truth <= high, "{name}: {violation}");
        }
        for (distance, pulls, chances) in [("near", near, near_of), ("far", far, far_of)] {
            let [simulated, of] = rates(&again, distance);
            // A pull in progress more.
            assert!(
                !does_show || simulated <= pulls / chances.max(1.0) * of + 1.0,
                "{name}, {distance}: {simulated} of {of}"
            );
        }
    }
    assert_eq!(shown, [true, true], "both kinds of traces");
}

#[test]
fn a_machine_with_a_sched_ext_scheduler_has_a_bound_and_no_forecast() {
    let folder = scratch("whatif-ext");
    let file = folder.join("ext.dat");
    std::fs::copy(fixture("hackbench.dat"), &file).expect("copied");
    let machine = r#"{"schema":"schedviz/machine/1","kernel":{},"cpus":{},"scheduler":{"ext":"minimal"}}"#;
    std::fs::write(folder.join("ext.machine.json"), machine).expect("written");
    let (code, document) = document(&[file.to_str().expect("a path")]);
    let run = &document["runs"][0];
    assert_eq!((code, run["rows"].as_array().expect("rows").len()), (Some(3), 0), "{run}");
    let reasons = run["calibration"]["reasons"].as_array().expect("reasons");
    assert!(reasons.len() == 1 && reasons[0].as_str().expect("text").contains("sched_ext"), "{reasons:?}");
    assert!(run["bound"]["least"]["elapsed_ns"].is_u64(), "{run}");
}

/// Ten switches, of which two leave another task than the one that was switched in.
#[test]
fn a_trace_whose_switches_contradict_one_another_has_neither_bound_nor_forecast() {
    let task = |pid: i32| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") };
    let trace = |wrong: i64| {
        let switches = (0..10).map(|nth| {
            let pid = |nth: i64| 7 + (nth % 2) as i32;
            let prev = if nth > 0 && nth <= wrong { 9 } else { pid(nth) };
            let kind = EventKind::Switch { prev: task(prev), state: PrevState::PREEMPTED, next: task(pid(nth + 1)) };
            SchedEvent { ts: Ts(1_000_000 * (1 + nth)), cpu: Cpu(0), pid: Pid(prev), flags: 0, kind }
        });
        let folder = scratch("whatif-contradictory");
        let file = folder.join("trace.dat");
        std::fs::write(&file, TraceBuilder::default().events(&switches.collect::<Vec<_>>()).build()).expect("written");
        let (code, document) = document(&[file.to_str().expect("a path")]);
        (code, document["runs"][0].clone())
    };
    let (code, run) = trace(2);
    let reasons = run["calibration"]["reasons"].as_array().expect("reasons");
    assert_eq!((code, reasons.len(), &run["bound"]), (Some(3), 1, &Value::Null), "{run}");
    assert!(reasons[0].as_str().expect("text").starts_with("20 % of the switches leave another task"), "{reasons:?}");
    assert!(!run["calibration"]["advice"].to_string().contains("-e timer"), "{run}");
    let (_, run) = trace(1);
    assert!(run["bound"].is_object(), "a tenth: {run}");
}

#[test]
fn both_runs_are_drawn_and_the_causes_have_curves() {
    let folder = scratch("whatif");
    let file = folder.join("whatif.svg");
    let trace = path("hackbench.dat");
    let name = file.to_str().expect("a path");
    let stolen = folder.join("stolen.dat").to_str().expect("a path").to_owned();
    let policies = "steal=machine,steal=none";
    let arguments = ["whatif", "-q", &trace, "--policy", policies, "-o", name, "--as-trace", &stolen, "--json"];
    let ran = schedviz(&arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // An output that is there is replaced: it is no input of the command.
    assert_eq!(schedviz(&arguments).code, Some(0), "once more");
    let predicted: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let predicted = &predicted["runs"][0];
    let figure = std::fs::read_to_string(&file).expect("the figure");
    assert!(figure.contains("as it was: ") && figure.contains("steal=machine: "), "{}", figure.len());

    // The run as it would have been is a trace. The prediction is what it differs by from the run without stealing.
    let (_, of_stolen) = document(&[&stolen, "--policy", "observed"]);
    let measured = &of_stolen["runs"][0]["recorded"];
    for number in ["elapsed_ns", "violation_ns", "cpu_time_lost_ns"] {
        let of = |value: &Value| value.as_f64().expect("a number");
        let [stealing, none] = [0, 1].map(|row| of(&predicted["rows"][row][number]["value"]));
        let (measured, trace) = (of(&measured[number]), of(&predicted["recorded"][number]));
        let expected = trace + (measured - none) * (trace / none).min(1.0);
        assert!((expected - stealing).abs() <= 1e-4 * none + 1e4, "{number}: {stealing}, by the runs {expected}");
    }
    // Its forks and names are read where they were written.
    let read = schedviz(&["workcons", "--topology", &path("hackbench.cpus.txt"), &stolen]).success();
    assert!(!read.stderr.contains("loss") && !read.stderr.contains("repaired"), "{}", read.stderr);
    // Both are shown one below the other.
    let page = folder.join("page").to_str().expect("a path").to_owned();
    let ran = schedviz(&["view", "-q", &trace, "--whatif", "steal=machine", "--export", &page]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let list = std::fs::read(Path::new(&page).join("traces.json")).expect("the list of traces");
    let list: Value = serde_json::from_slice(&list).expect("JSON");
    assert_eq!(list["traces"], serde_json::json!(["hackbench.dat", "steal=machine.dat"]));

    let (_, document) = document(&[&trace, "--without", "--policy", "observed"]);
    let run = &document["runs"][0];
    let curves = run["without"].as_array().expect("curves");
    assert!((1..=5).contains(&curves.len()), "{curves:?}");
    for curve in curves {
        let points = curve["points"].as_array().expect("points");
        let elapsed: Vec<f64> = points.iter().map(|point| point["elapsed_ns"].as_f64().expect("a time")).collect();
        assert!(elapsed.len() == 4 && elapsed.is_sorted_by(|a, b| a >= b), "{curve}");
        let trace = run["recorded"]["elapsed_ns"].as_f64().expect("a time");
        assert!(elapsed[0] <= trace * 1.001, "{curve}: {trace}");
    }
    let ran = schedviz(&["whatif", "-q", &trace, "--without=rain"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("there are "), "{}", ran.stderr);
}

#[test]
fn predictions_stand_beside_measured_runs() {
    let (trace, other) = (path("hackbench.dat"), path("hackbench-7.2.dat"));
    let arguments = ["--predict-from", &trace, "--measured", &other, "--policy", "steal=machine", "--queue", "fifo"];
    let (code, document) = document(&arguments);
    let rows = document["skill"].as_array().expect("rows");
    assert_eq!((code, rows.len()), (Some(0), 4), "{document}");
    let first = &rows[0];
    let of = |name: &str| first[name].as_f64().expect("a number");
    let skill =
        (of("predicted_median") - of("measured_median")).abs() / (of("from_median") - of("measured_median")).abs();
    assert!((of("skill") - skill).abs() < 1e-9, "{first}");
    // Without the places of the CPUs there is no nearest cache.
    let ran = schedviz(&["whatif", "-q", &trace, "--policy", "steal=llc"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("--topology"), "{}", ran.stderr);
}

#[test]
fn sleeps_by_relative_and_absolute_timers_are_told_apart() {
    // Two threads slept for a length, two until an instant, one in poll and one on a condition with a timeout.
    let classes = |name: &str| {
        let (code, document) = document(&[&path(name), "--policy", "observed"]);
        assert_eq!(code, Some(0), "{document}");
        let sums = document["runs"][0]["sleeps"].as_array().expect("sums").clone();
        ["timer", "absolute-timer", "either-timer"].map(|class| {
            let sum = sums.iter().find(|sum| sum["class"] == class);
            sum.map_or(0, |sum| sum["number"].as_u64().expect("a number"))
        })
    };
    // With the calls: 50 relative sleeps and one of a lost timer, 20 until an instant; the rest set their timers in other calls.
    assert_eq!(classes("sleepers-6.12.dat"), [51, 20, 25]);
    // Without: 24 relative sleeps. The kernel makes the timeouts of poll and of futexes absolute.
    assert_eq!(classes("sleepers-timers-6.12.dat"), [24, 0, 30]);
}

/// A sleeper in a part may have set its timer before it: the note of the part has the timers that were set.
#[test]
fn a_part_knows_the_timers_that_were_set_before_it() {
    let (folder, whole) = (scratch("whatif-timers"), fixture("sleepers-timers-6.12.dat"));
    let window = ["--min", "142686035ns"].map(str::to_owned);
    let part = cut(&folder, &whole, "part.dat", &window);
    let later = ["--min", "150ms"].map(str::to_owned);
    let again = cut(&folder, &part, "again.dat", &later);
    let sleeps = |trace: &std::path::Path, window: &[String]| {
        let document = outcome(&folder, trace, &["whatif", "--policy", "observed"], window).expect("a document");
        document["runs"][0]["sleeps"].clone()
    };
    let of_whole = sleeps(&whole, &window);
    assert_eq!(of_whole[1]["number"], 4, "{of_whole}");
    assert_eq!(of_whole, sleeps(&part, &[]));
    assert_eq!(sleeps(&whole, &later), sleeps(&again, &[]), "a part of a part");
}

/// Ten soakers, one bound to an isolated CPU: the others may not use CPUs 6 and 7, beside which the path is queued.
#[test]
fn the_path_knows_the_cpus_that_its_tasks_may_use() {
    let folder = scratch("whatif-affinity");
    let trace = folder.join("run.dat");
    std::fs::copy(fixture("isolated.dat"), &trace).expect("copied");
    let of = |run: &Value, of_path: &Value| {
        let kinds = ["beside_idle", "held_back", "beside_shorter", "alike", "beside_forbidden"];
        // Without lists there is no time beside forbidden CPUs.
        let ns = |times: &Value, key: String| times[key].as_u64().unwrap_or(0);
        for kind in kinds {
            assert_eq!(ns(&run["queued"], format!("{kind}_ns")), ns(of_path, format!("queued_{kind}_ns")), "{kind}");
        }
        [ns(of_path, "queued_beside_idle_ns".to_owned()), ns(of_path, "queued_beside_forbidden_ns".to_owned())]
    };
    let both = || {
        let name = trace.to_str().expect("a path");
        let path: Value =
            serde_json::from_slice(&schedviz(&["path", "-q", "--json", name]).success().stdout).expect("JSON");
        of(&document(&[name, "--policy", "observed"]).1["runs"][0]["bound"]["path"], &path["times"])
    };
    let [idle, forbidden] = both();
    assert!(forbidden == 0 && idle > 100_000_000, "{idle} {forbidden}");
    let lists = r#"{"at":"start","tasks":{"0-5":[350,352,353,354,355,356,357,358,359,360,361]}},{"at":"during","tasks":{"6":[351]}}"#;
    let file =
        format!(r#"{{"schema":"schedviz/machine/1","kernel":{{}},"cpus":{{}},"scheduler":{{}},"affinity":[{lists}]}}"#);
    std::fs::write(folder.join("run.machine.json"), file).expect("written");
    let [idle, forbidden] = both();
    assert!(idle < 50_000_000 && forbidden > 100_000_000, "{idle} {forbidden}");
}

/// The series that `steal=` follows is off on machines with many nodes.
#[test]
fn stealing_is_said_to_be_off_on_a_machine_of_many_nodes() {
    let folder = scratch("whatif-nodes");
    let says = [2, 4].map(|nodes| {
        let topology = folder.join("cpus.txt");
        let rows: String = (0..8).map(|cpu| format!("cpu{cpu} core={cpu} node={}\n", cpu % nodes)).collect();
        std::fs::write(&topology, rows).expect("written");
        let topology = topology.to_str().expect("a path");
        let printed = text(&[&path("hackbench.dat"), "--under", "steal=node", "--topology", topology]);
        assert!(printed.contains("steal=node"), "{printed}");
        printed.contains("sched_steal_node_limit")
    });
    assert_eq!(says, [false, true]);
}
