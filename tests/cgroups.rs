//! Recordings of cgroups: shares by weight, the kernel's pressure as a witness, samples of perf with cgroups, and parts.

use crate::cut::{cut, difference, outcome, readable};
use crate::support::{fixture, root, schedviz, scratch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn recording(name: &str) -> PathBuf {
    root().join("tests/cgroups").join(name)
}

fn json(arguments: &[&str], name: &str) -> Value {
    let path = recording(name);
    let arguments = [&arguments[..1], &[path.to_str().expect("a path")], &arguments[1..], &["--json", "-q"]].concat();
    serde_json::from_str(&schedviz(&arguments).success().text()).expect("JSON")
}

/// Weights 2, 100 and 10,000 on four CPUs. The tasks of the heaviest get all to which they are entitled; the lightest has the rest of CPUs on which no
/// other task waits, more than twice that to which its weight entitles it, and is below half of that for more than half a second.
#[test]
fn weights_of_cgroups_entitle_to_shares_of_four_cpus() {
    let report = json(&["fairness", "--by", "cgroup"], "weights.dat");
    let groups = report["shares"]["groups"].as_array().expect("shares");
    let of = |path: &str| groups.iter().find(|group| group["cgroup"] == path).expect("a cgroup");
    let number = |path: &str, what: &str| of(path)[what].as_f64().unwrap_or_else(|| panic!("{what} of {}", of(path)));
    assert_eq!(["/w2", "/w100", "/w10000"].map(|path| number(path, "weight")), [2.0, 100.0, 10_000.0]);
    assert_eq!(of("/")["weight"], Value::Null);
    let [light, middle, heavy] = ["/w2", "/w100", "/w10000"].map(|path| number(path, "got_percent"));
    assert!(light > 200.0 && (100.0..120.0).contains(&middle) && (95.0..101.0).contains(&heavy), "{groups:#?}");
    // Two CPUs while both of its tasks are runnable, and the rest by 2 to 100 but for what a group cannot use.
    let per_time = number("/w10000", "entitled_ns") / number("/w10000", "runnable_ns");
    let ratio = number("/w100", "entitled_ns") / number("/w2", "entitled_ns");
    assert!((1.0..=2.0).contains(&per_time) && (5.0..50.0).contains(&ratio), "{per_time} {ratio}");
    for path in ["/", "/w2", "/w100", "/w10000"] {
        let seconds = of(path)["seconds"].as_array().expect("seconds");
        let sum: f64 = seconds.iter().map(|second| second["got_ns"].as_f64().expect("a number")).sum();
        assert!((sum - number(path, "got_ns")).abs() < 10.0, "{path}");
    }
    assert_eq!(of("/w10000")["equal_tasks"]["tasks"], 2);
    assert_eq!(of("/w2")["longest_below_half_ns"], 600_000_000);
}

/// The kernel's pressure and CPU time of cgroups that were made during the recording.
#[test]
fn the_pressure_of_the_trace_is_the_kernels() {
    let report = json(&["neighbours", "--by", "cgroup"], "weights.dat");
    let groups = report["pressure"]["groups"].as_array().expect("pressure");
    let compared: Vec<&Value> = groups.iter().filter(|group| group["agrees"] != Value::Null).collect();
    assert_eq!(compared.len(), 4, "the machine and three cgroups: {groups:#?}");
    for group in compared {
        assert_eq!(group["agrees"], true, "{group}");
        let Some(kernel) = group["kernel_run_ns"].as_f64() else { continue };
        let run = group["run_ns"].as_f64().expect("a number");
        assert!((run - kernel).abs() < 0.03 * kernel + 5e6, "{group}");
    }
    assert!(report["pressure"]["kernel_wider_ns"].as_u64().expect("the span") < 50_000_000);
    let window = json(&["neighbours", "--by", "cgroup", "--min", "1"], "weights.dat");
    assert!(
        window["pressure"]["kernel_unknown"].is_string() && window["pressure"]["groups"][0]["agrees"] == Value::Null
    );
}

/// `PERF_RECORD_CGROUP` and the cgroup of each sample; processes from the records of names and forks.
#[test]
fn samples_of_perf_have_cgroups() {
    let report = json(&["neighbours", "--by", "cgroup"], "cgroups.data");
    let groups = report["groups"].as_array().expect("groups");
    let waited = |name: &str| {
        groups
            .iter()
            .filter(|group| group["name"] == name)
            .map(|group| group["wait_ns"].as_u64().expect("ns"))
            .sum::<u64>()
    };
    let known: u64 = ["/w2", "/w100", "/w10000"].map(waited).iter().sum();
    let all = report["wait_ns"].as_u64().expect("ns");
    assert!(known * 10 > all * 7 && waited("/w2") > 0 && waited("/w100") > 0, "{groups:#?}");
    assert!(waited("unknown cgroup") * 20 < all, "{groups:#?}");
    let processes = json(&["neighbours", "--by", "process"], "cgroups.data");
    assert_eq!(processes["tasks_without_process"], 0);
}

/// Compares the reports of a part with those of its window of the whole.
fn a_part_is_its_window(folder: &Path, whole: &Path, window: [&str; 4], commands: &[&[&str]]) {
    let window = window.map(str::to_owned);
    let part = cut(folder, whole, "part.dat", &window);
    for command in commands {
        let [of_whole, of_part] =
            [(whole, &window[..]), (&part, &[])].map(|(trace, window)| outcome(folder, trace, command, window));
        let (of_whole, of_part) = (of_whole.expect("a report"), of_part.expect("a report"));
        assert_eq!(difference("", &of_whole, &of_part), None, "{command:?} {window:?}");
    }
}

/// The cgroups and processes of before a part are in its note, those that records behind the part decide included.
#[test]
fn a_part_has_the_cgroups_and_processes_of_its_window() {
    let (folder, whole) = (scratch("cgroups-of-a-part"), recording("weights.dat"));
    let by_cgroup: [&[&str]; 7] = [
        &["neighbours", "--by", "cgroup"],
        &["fairness", "--by", "cgroup"],
        &["why", "--by", "cgroup"],
        &["utilization", "--by", "cgroup"],
        &["utilization", "--cgroup", "w2$"],
        &["migrations", "--cgroup", "w2$"],
        &["wakers", "--by", "cgroup"],
    ];
    // Tasks are moved in the first window; the second one ends before tasks are made that the list at the end has.
    a_part_is_its_window(&folder, &whole, ["--min", "0.08", "--max", "0.15"], &by_cgroup);
    a_part_is_its_window(&folder, &whole, ["--min", "1", "--max", "2"], &by_cgroup);
    let by_process: [&[&str]; 3] =
        [&["neighbours", "--by", "process"], &["latency", "--by", "process"], &["fairness", "--by", "process"]];
    a_part_is_its_window(&folder, &whole, ["--min", "0.05", "--max", "0.5"], &by_process);
    // Without a list and without the flags of `clone`, an exec in the part shows no process, as it shows none in the whole.
    let unlisted = fixture("workload-outside-6.12.dat");
    let apart = scratch("processes-of-a-part");
    a_part_is_its_window(&apart, &unlisted, ["--min", "0.1", "--max", "0.5"], &[&["wakers", "--by", "process"]]);
    // A part of the part goes on from its note.
    let part = cut(&folder, &whole, "outer.dat", &["--min", "0.08", "--max", "2"].map(str::to_owned));
    let inner = cut(&folder, &part, "inner.dat", &["--min", "1", "--max", "1.5"].map(str::to_owned));
    let window = ["--min", "1", "--max", "1.5"].map(str::to_owned);
    let command = ["neighbours", "--by", "cgroup"];
    let [whole, inner] =
        [(&whole, &window[..]), (&inner, &[])].map(|(trace, window)| outcome(&folder, trace, &command, window));
    assert_eq!(difference("", &whole.expect("a report"), &inner.expect("a report")), None);
}

/// Chosen tasks take the place of the application: their time is that of their row.
#[test]
fn the_time_of_chosen_tasks_is_that_of_their_row() {
    let mut seen = 0;
    for window in [&[][..], &["--min", "0.08", "--max", "0.15"]] {
        for (by, option) in [("cgroup", "--cgroup"), ("task", "--pid"), ("command", "--tasks")] {
            let report = json(&[&["utilization", "--by", by][..], window].concat(), "weights.dat");
            let (all, rows) = (&report["all"], report["groups"]["rows"].as_array().expect("rows"));
            assert_eq!([&all["rt_ns"], &all["rt_possible_ns"], &all["irq_ns"]].map(Value::as_u64), [Some(0); 3]);
            // Kernel threads are in no cgroup; a stem stands for several names.
            let is_one = |row: &&Value| match by {
                "cgroup" => row["group"].as_str().is_some_and(|path| path.starts_with('/')),
                _ => row["command"].as_str().is_some_and(|name| name.bytes().all(|b| b.is_ascii_lowercase())),
            };
            for row in rows.iter().filter(is_one).take(4) {
                let chosen = match by {
                    "task" => row["pid"].to_string(),
                    "cgroup" => format!("^{}$", row["group"].as_str().expect("a path")),
                    _ => format!("^{}$", row["command"].as_str().expect("a name")),
                };
                let of_chosen = json(&[&["utilization", option, &chosen][..], window].concat(), "weights.dat");
                assert_eq!(of_chosen["all"]["app_ns"], row["run_ns"], "{chosen} {window:?}");
                seen += 1;
            }
        }
    }
    assert!(seen > 12, "{seen} selections");
}

/// The wakeups between cgroups and between processes are those between tasks.
#[test]
fn wakeups_between_groups_are_those_between_tasks() {
    let of = |by: &str| json(&["wakers", "--by", by], "weights.dat");
    let tasks = of("task");
    let sums = |report: &Value| {
        let edges = ["edges", "interrupts"].map(|list| report[list].as_array().expect("edges").clone()).concat();
        let sum =
            |number: &dyn Fn(&Value) -> &Value| edges.iter().filter_map(|edge| number(edge).as_u64()).sum::<u64>();
        [
            sum(&|edge| &edge["wakeups"]),
            sum(&|edge| &edge["slept"]["total_ns"]),
            sum(&|edge| &edge["waited"]["total_ns"]),
        ]
    };
    for by in ["cgroup", "process"] {
        let report = of(by);
        assert_eq!((sums(&report), &report["wakeups"]), (sums(&tasks), &tasks["wakeups"]), "{by}");
        let mut names = report["edges"].as_array().expect("edges").iter().map(|edge| &edge["waker"]["group"]["name"]);
        assert!(names.any(|name| name == if by == "cgroup" { "/w100" } else { "sh" }), "{report:#}");
    }
}

/// Copies the recording of weighted cgroups into a folder, with these lists of policies in its machine file.
fn with_policies(folder: &Path, policies: Value) -> PathBuf {
    let whole = folder.join("whole.dat");
    std::fs::copy(recording("weights.dat"), &whole).expect("a copy");
    let text = std::fs::read_to_string(recording("weights.machine.json")).expect("a machine file");
    let mut machine: Value = serde_json::from_str(&text).expect("JSON");
    machine["policies"] = policies;
    std::fs::write(folder.join("whole.machine.json"), machine.to_string()).expect("written");
    whole
}

/// The policies of before a part are in its note, and what the list at the end contradicts stays unknown.
#[test]
fn a_part_has_the_policies_of_its_window() {
    let folder = scratch("policies-of-a-part");
    let whole = with_policies(
        &folder,
        serde_json::json!([
            { "at": "start", "tasks": { "0": [177, 183], "3": [178, 179], "5": [] } },
            { "at": "end", "tasks": { "0": [178], "5": [183], "3": [179] } },
        ]),
    );
    let commands: [&[&str]; 3] =
        [&["latency", "--by", "params"], &["fairness", "--by", "params"], &["utilization", "--by", "params"]];
    a_part_is_its_window(&folder, &whole, ["--min", "0.05", "--max", "0.4"], &commands);
    a_part_is_its_window(&folder, &whole, ["--min", "1", "--max", "2"], &commands);
}

/// `chrt` before a command, without `--why`: the policy is the one with which the readings of the running command found a task, a part's as well. The
/// list of the start has the recorder's child, 179, as an ordinary task, from which all others are forked.
#[test]
fn tasks_of_the_recorded_command_have_the_policies_that_they_were_found_with() {
    let folder = scratch("policies-of-a-command");
    let whole = with_policies(
        &folder,
        serde_json::json!([
            { "at": "start", "tasks": { "0": [177, 178, 179] } },
            { "at": "running", "tasks": { "0": [179, 185, 187], "3": [186, 187], "5": [184, 188] } },
            { "at": "end", "tasks": { "0": [177, 178] } },
        ]),
    );
    let trace = whole.to_str().expect("a path");
    let rows = |by: &str| -> BTreeMap<String, u64> {
        let text = schedviz(&["fairness", trace, "--by", by, "--json", "-q"]).success().text();
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let members = report["members"].as_array().expect("members").iter();
        members
            .map(|row| (row["name"].as_str().expect("a name").to_owned(), row["run_ns"].as_u64().expect("ns")))
            .collect()
    };
    let (tasks, params) = (rows("task"), rows("params"));
    let ran = |pids: &[&str]| -> u64 {
        tasks.iter().filter(|(name, _)| pids.iter().any(|pid| name.ends_with(pid))).map(|(_, ns)| ns).sum()
    };
    assert_eq!(params["SCHED_IDLE"], ran(&[" 184", " 188"]), "{params:?}");
    assert_eq!(params["SCHED_BATCH nice 0"], ran(&[" 186"]), "{params:?}");
    // Of 187 the policy is unknown: it was found with two.
    assert!(params["fair nice 0"] >= ran(&[" 187"]) && ran(&[" 187"]) > 0, "{params:?}");
    assert!(params["SCHED_OTHER nice 0"] >= ran(&[" 185"]), "{params:?}");
    let shorter = |trace: &Path| {
        let text = schedviz(&["fairness", trace.to_str().expect("a path"), "--json", "-q"]).success().text();
        serde_json::from_str::<Value>(&text).expect("JSON")["queued"]["beside_shorter_ns"].as_u64().expect("ns")
    };
    assert_ne!(shorter(&whole), shorter(&recording("weights.dat")));
    let commands: [&[&str]; 3] = [&["latency", "--by", "params"], &["fairness", "--by", "params"], &["path"]];
    // The first part begins before the forks of all of them but 180, the second behind.
    for window in [["--min", "0.003", "--max", "0.4"], ["--min", "1", "--max", "2"]] {
        a_part_is_its_window(&folder, &whole, window, &commands);
    }
}

/// An anonymous part has the groups of its window under other names.
#[test]
fn an_anonymous_part_has_cgroups_without_their_paths() {
    let (folder, whole) = (scratch("anonymous-cgroups"), recording("weights.dat"));
    let window = ["--min", "0.08", "--max", "1"].map(str::to_owned);
    let part = cut(&folder, &whole, "part.dat", &[&window[..], &["--anonymize".to_owned()]].concat());
    let machine = std::fs::read_to_string(folder.join("part.machine.json")).expect("a machine file");
    let bytes = [readable(&std::fs::read(&part).expect("read")), machine.into_bytes()].concat();
    for path in ["/w10000", "/w100", "/w2"] {
        assert!(!bytes.windows(path.len()).any(|text| text == path.as_bytes()), "{path}");
    }
    let waited = |trace: &Path, window: &[String]| {
        let report = outcome(&folder, trace, &["neighbours", "--by", "cgroup"], window).expect("a report");
        let groups = report["groups"].as_array().expect("groups").clone();
        groups.iter().map(|group| group["wait_ns"].as_u64()).collect::<Vec<_>>()
    };
    assert_eq!(waited(&part, &[]), waited(&whole, &window));
}

/// The tasks of each cgroup, in commands that follow no state of the scheduler, are all tasks.
#[test]
fn commands_without_the_state_choose_tasks_by_cgroup_and_policy() {
    let chosen = |arguments: &[&str]| json(arguments, "weights.dat");
    let number = |document: &Value| document["total"].as_u64().expect("a number");
    let all = number(&chosen(&["migrations"]));
    let of = ["^/w2$", "^/w100$", "^/w10000$", "^/$"].map(|path| number(&chosen(&["migrations", "--cgroup", path])));
    assert_eq!((of.iter().sum::<u64>(), of.iter().all(|number| *number < all)), (all, true), "{of:?}");
    // No switch shows a real-time task but the stopper; every other one is of the fair class.
    let fair = number(&chosen(&["migrations", "--policy", "fair"]));
    assert_eq!((fair, number(&chosen(&["migrations", "--policy", "real-time"]))), (all, 0));
    let path = recording("weights.dat");
    let trace = path.to_str().expect("a path");
    let listed = schedviz(&["list", trace, "-q", "--cgroup", "^/w10000$"]).success().text();
    let is_of = |line: &str| ["sh-191 ", "sh-192 "].iter().any(|task| line.trim_start().starts_with(task));
    assert!(listed.lines().count() > 20 && listed.lines().all(is_of), "{listed}");
    let steps = chosen(&["stepper", "--steps", "2", "--cgroup", "^/w10000$"]);
    let steps = steps["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 3);
    let instants: Vec<i64> = steps.iter().map(|step| step["ts_ns"].as_i64().expect("ns")).collect();
    let is_listed = |ns: &i64| listed.contains(&format!("{}.{:09}:", ns / 1_000_000_000, ns % 1_000_000_000));
    assert!(instants.iter().any(is_listed), "{instants:?}");
    let refused = schedviz(&["dat2graph", trace, "--cgroup", "^/none$", "-o", "none.svg"]);
    assert!(refused.code != Some(0) && refused.stderr.contains("there is no such cgroup"), "{}", refused.stderr);
}

/// Tasks of each weight by the part of their waiting that was beside idle CPUs.
#[test]
fn why_by_cgroup_has_the_part_of_waiting_beside_idle_cpus_by_weight() {
    let report = json(&["why", "--by", "cgroup"], "weights.dat");
    let rows = report["runs"][0]["by"].as_array().expect("rows");
    let of = |path: &str| rows.iter().find(|row| row["group"]["name"] == path).expect("a cgroup");
    let number = |path: &str, what: &str| of(path)[what].as_f64().unwrap_or_else(|| panic!("{what} of {}", of(path)));
    for (path, weight) in [("/w2", 2.0), ("/w100", 100.0), ("/w10000", 10_000.0)] {
        assert_eq!(number(path, "weight"), weight);
        let part = 100.0 * number(path, "total_ns") / number(path, "waited_ns");
        assert!((number(path, "of_waiting_percent") - part).abs() < 1e-6 && part < 5.0, "{path}: {part}");
    }
    // The lightest waits most, and beside idle CPUs more than the heaviest.
    assert!(number("/w2", "waited_ns") > 2.0 * number("/w100", "waited_ns"));
    assert!(number("/w2", "of_waiting_percent") > 3.0 * number("/w10000", "of_waiting_percent"));
    let waited: f64 = rows.iter().map(|row| row["waited_ns"].as_f64().expect("ns")).sum();
    let neighbours = json(&["neighbours", "--by", "cgroup"], "weights.dat");
    // Kernel threads that are bound to their CPU do not count for `why`.
    assert!(
        waited <= neighbours["wait_ns"].as_f64().expect("ns")
            && waited > 0.9 * neighbours["wait_ns"].as_f64().expect("ns")
    );
}

/// Runs of tasks that moved themselves to another cgroup: by the cgroups that the probe on switches records at both ends of each run.
#[test]
fn a_run_that_begins_in_one_cgroup_and_ends_in_another_is_named_with_both() {
    let Some(traces) = std::env::var_os("SCHEDVIZ_TRACES") else { return };
    let path = std::path::PathBuf::from(traces).join("extra/newer/6.12-cgroup.dat");
    let trace = parse::Trace::open(&path, parse::Options::default()).expect("a trace");
    let (mut open, mut ran) = (BTreeMap::new(), BTreeMap::<(i64, i64), u64>::new());
    trace.records(&mut |record| {
        let fields = ["prev", "next", "pcg", "ncg"].map(|field| record.number(field));
        if let [Some(prev), Some(next), Some(left), Some(came)] = fields
            && let Some((pid, first, since)) = open.insert(record.cpu, (next, came, record.ts))
            && pid == prev
            && prev != 0
        {
            *ran.entry((first, left)).or_default() += record.ts.since(since).0;
        }
        std::ops::ControlFlow::Continue(())
    });
    let moved: u64 = ran.iter().filter(|((first, last), _)| first != last).map(|(_, ns)| ns).sum();
    let text =
        schedviz(&["utilization", path.to_str().expect("UTF-8"), "--by", "cgroup", "--json", "-q"]).success().text();
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let rows = report["groups"]["rows"].as_array().expect("rows").iter();
    let both = rows.filter(|row| row["group"]["name"].as_str().is_some_and(|name| name.contains(" or ")));
    let both: u64 = both.map(|row| row["run_ns"].as_u64().expect("a time")).sum();
    // A record is a little behind its switch.
    assert!(moved > 1_000_000 && both.abs_diff(moved) < 1_000_000, "{both} {moved} {ran:?}");
}
