//! The violation that `why` divides: over time, by task, command, CPU and node, and as metrics of `compare`.

use crate::conforms::conforms;
use crate::support::{events, fixture, root, schedviz, scratch, unwrapped};
use parse::Trace;
use sched::{Analysis, Cpu, Load, Pass, Pid, SchedEvent, SchedState, Ts};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use testkit::{Simulation, TraceBuilder};
use why::{Grouping, Layer, Why, WhyReport};
use workcons::{Options, Waiters};

fn why_of(events: &[SchedEvent], by: Option<&Grouping>) -> WhyReport {
    let (start, end) = (events[0].ts, events[events.len() - 1].ts);
    let options = Options { zero: start, waiters: Waiters::All, strips: Some((start, end)), ..Options::default() };
    Pass::over(events).run(|| Why::new(&options).by(by.cloned())).unwrap_or_else(|never| match never {}).output
}

fn total(layers: &[Layer]) -> u64 {
    layers.iter().flat_map(|layer| &layer.columns).sum()
}

#[test]
fn a_wait_is_in_the_columns_of_its_time() {
    let report = why_of(&testkit::a_wait_beside_an_idle_cpu(), None);
    let over_time = report.over_time.expect("columns");
    let [waiting] = over_time.waiting.as_slice() else { panic!("{over_time:?}") };
    assert_eq!((waiting.began, waiting.words.as_str()), ("woken-on-previous-cpu", "woken on previous CPU"));
    // From 100 to 600 ns in 400 columns: the wait from 200 to 400 ns is in columns 80 to 239.
    let within: Vec<usize> = (0..400).filter(|column| waiting.columns[*column] > 0).collect();
    assert_eq!((within.first(), within.last(), within.len()), (Some(&80), Some(&239), 160));
    // A column is 1.25 ns long.
    assert_eq!((total(&over_time.waiting), total(&over_time.idling)), (200, 200));
    assert!(waiting.columns.iter().all(|ns| *ns <= 2));
}

#[test]
fn columns_add_up_to_the_tables() {
    let check = |events: &[SchedEvent], name: &str| {
        let report = why_of(events, None);
        let over_time = report.over_time.expect("columns");
        for (rows, layers) in [(report.waiting, &over_time.waiting), (report.idling, &over_time.idling)] {
            let rows = rows.expect("a table");
            assert_eq!(total(layers), rows.total_ns.0, "{name}");
            let mut by_origin: BTreeMap<_, u64> = BTreeMap::new();
            for row in &rows.rows {
                *by_origin.entry((row.began, row.began_cause)).or_default() += row.total_ns.0;
            }
            let of_layers: BTreeMap<_, u64> =
                layers.iter().map(|layer| ((layer.began, layer.cause), layer.columns.iter().sum())).collect();
            assert_eq!(of_layers, by_origin, "{name}");
        }
    };
    for seed in crate::support::seeds(20) {
        check(&Simulation::balanced(seed, 4, 400).events, &format!("seed {seed}"));
    }
    check(&events(&Trace::open(&fixture("hackbench.dat"), parse::Options::default()).expect("a trace")), "hackbench");
}

/// The waiting in violation of each task, and the idle CPUs beside each, counted anew at every event.
#[derive(Default)]
struct Slow {
    now: Ts,
    waited: BTreeMap<Pid, u64>,
    on: BTreeMap<Cpu, u64>,
    beside: BTreeMap<(Pid, Cpu), u64>,
}

impl Slow {
    fn pass(&mut self, to: Ts, state: &SchedState) {
        let ns = to.since(self.now).0;
        self.now = to;
        let of = |load: Load| state.observed().filter(|cpu| state.load(*cpu) == load).collect::<Vec<Cpu>>();
        let (idle, overloaded) = (of(Load::Idle), of(Load::Overloaded));
        if idle.is_empty() || ns == 0 {
            return;
        }
        for cpu in overloaded {
            for task in state.waiting(cpu) {
                *self.waited.entry(task.pid).or_default() += ns;
                *self.on.entry(cpu).or_default() += ns;
                idle.iter().for_each(|idle| *self.beside.entry((task.pid, *idle)).or_default() += ns);
            }
        }
    }
}

impl Analysis for Slow {
    type Output = Slow;

    fn begin(&mut self, start: Ts, _: &SchedState) {
        self.now = start;
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        self.pass(event.ts, state);
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> Slow {
        self.pass(end, state);
        self
    }
}

#[test]
fn rows_of_tasks_and_cpus_agree_with_a_slow_count() {
    for seed in crate::support::seeds(20) {
        let events = Simulation::balanced(seed, 4, 400).events;
        let slow = Pass::over(events.as_slice()).run(Slow::default).unwrap_or_else(|never| match never {}).output;
        let by = |grouping| why_of(&events, Some(&grouping)).by.expect("rows");
        let tasks = by(Grouping::Task);
        let found: BTreeMap<Pid, u64> = tasks.iter().filter_map(|row| Some((row.pid?, row.total_ns.0))).collect();
        assert_eq!(found, slow.waited, "seed {seed}");
        assert!(tasks.is_sorted_by_key(|row| std::cmp::Reverse(row.total_ns)));
        let found: BTreeMap<Cpu, u64> =
            by(Grouping::Cpu).iter().filter_map(|row| Some((row.cpu?, row.total_ns.0))).collect();
        assert_eq!(found, slow.on, "seed {seed}");
        for row in &tasks {
            let pid = row.pid.expect("a task");
            for idle in &row.idle_meanwhile {
                // A CPU counts for the whole wait, also while the CPU of the run queue has a pending switch or is unknown.
                let least = slow.beside.get(&(pid, idle.cpu)).copied().unwrap_or(0);
                assert!(idle.ns >= least, "seed {seed}: {} beside {}", idle.cpu, pid.0);
            }
        }
    }
}

#[test]
fn the_rows_name_where_a_task_was_queued_and_what_idled() {
    let events = testkit::a_wait_beside_an_idle_cpu();
    let rows = why_of(&events, Some(&Grouping::Command)).by.expect("rows");
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    let of = |cpus: &[why::OnCpu]| cpus.iter().map(|on| (on.cpu.0, on.ns)).collect::<Vec<_>>();
    assert_eq!((row.command.map(|c| c.to_string()), row.number, row.total_ns.0), (Some("cc".into()), 1, 200));
    assert_eq!((of(&row.queued_on), of(&row.idle_meanwhile), row.percent), (vec![(0, 200)], vec![(1, 200)], 100.0));
}

#[test]
fn the_figure_is_written_and_groups_need_a_topology() {
    let folder = scratch("why-views");
    let trace = fixture("hackbench.dat");
    let [trace, svg] = [&trace, &folder.join("why.svg")].map(|path| path.to_str().expect("a path").to_owned());
    schedviz(&["why", &trace, "-q", "-o", &svg]).success();
    let drawn = std::fs::read_to_string(&svg).expect("a figure");
    for text in [
        "tasks waited 2.5407 s (runqueue wait) while CPUs idled",
        "waiting tasks",
        "idle CPUs",
        "waiting: woken on previous CPU",
    ] {
        assert!(drawn.contains(text), "{text}");
    }
    let text = schedviz(&["why", &trace, "-q", "--by", "command"]).success().text();
    assert!(text.contains("\nhackbench                          2.5147 s   99.0%"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let refused = schedviz(&["why", &trace, "-q", "--by", "node"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("--by node"), "{}", refused.stderr);
    let two = schedviz(&["why", &trace, &fixture("mask.dat").display().to_string(), "-q", "-o", &svg]);
    assert!(two.code == Some(1) && two.stderr.contains("the figure shows one run"), "{}", two.stderr);
}

#[test]
fn the_sums_are_metrics_of_compare() {
    let folder = scratch("why-compare");
    let path = |name: &str| folder.join(name).to_str().expect("a path").to_owned();
    for (name, seeds) in [("base", 0..3), ("new", 3..6)] {
        for seed in seeds {
            let events = Simulation::run(seed, 4, 400).events;
            std::fs::write(path(&format!("{name}.{seed}.dat")), TraceBuilder::default().events(&events).build())
                .expect("written");
        }
    }
    let topology: String = ["0-1", "0-1", "2-3", "2-3"]
        .iter()
        .enumerate()
        .map(|(cpu, llc)| format!("cpu{cpu} socket=0 core={cpu} smt={cpu} llc={llc}\n"))
        .collect();
    std::fs::write(path("cpus.txt"), topology).expect("written");
    let cpus = path("cpus.txt");
    let json = |arguments: &[&str]| -> serde_json::Value {
        let all = [arguments, &["--json", "-q", "--topology", &cpus]].concat();
        serde_json::from_str(&schedviz(&all).success().text()).expect("JSON")
    };
    let compared = json(&["compare", "--base", &path("base.*.dat"), "--new", &path("new.*.dat")]);
    let metrics = compared["metrics"].as_array().expect("metrics");
    let at = |key: &str| metrics.iter().position(|metric| metric["key"] == key).expect("a metric");
    let mut missed_within = 0.0;
    for run in compared["groups"][0]["runs"].as_array().expect("runs") {
        let value = |key: &str| run["values"][at(key)].as_f64().expect("a value");
        let why = json(&["why", &path(run["trace"].as_str().expect("a name"))]);
        let report = &why["runs"][0];
        let seconds = |table: &str| report[table]["total_ns"].as_u64().expect("a sum") as f64 / 1e9;
        assert_eq!((value("waiting"), value("idling")), (seconds("waiting"), seconds("idling")));
        let missed = &report["missed"];
        assert_eq!(Some(value("missed-steals")), missed["number"].as_f64());
        assert_eq!(Some(value("missed-steals-llc")), missed["within_llc"].as_f64());
        missed_within += value("missed-steals-llc");
        let idled: u64 =
            missed["by_distance"].as_array().expect("rows").iter().filter_map(|row| row["violated_ns"].as_u64()).sum();
        assert_eq!(value("missed-steals-idling"), idled as f64 / 1e9);
    }
    assert!(missed_within > 0.0, "the runs miss steals");
    for key in ["waiting", "idling", "missed-steals", "missed-steals-llc", "missed-steals-idling"] {
        assert_eq!(metrics[at(key)]["better"], "less", "{key}");
    }
}

#[test]
fn the_command_prints_both_tables_and_the_missed_steals() {
    let (file, cpus) = (fixture("hackbench.dat"), fixture("hackbench.cpus.txt"));
    let arguments = ["why", file.to_str().expect("a path"), "--topology", cpus.to_str().expect("a path")];
    let text = schedviz(&arguments).success().text();
    for words in ["waiting in violation", "idling in violation", "missed steals", "in the same LLC", "--min START"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let long: Vec<&str> =
        text.lines().filter(|line| line.chars().count() > 75 && !line.contains("dat2graph")).collect();
    assert!(long.is_empty(), "{long:?}");
    let json = schedviz(&[&arguments[..], &["--json"]].concat()).success();
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let schema = std::fs::read_to_string(root().join("docs/schemas/why-2.json")).expect("the schema");
    let schema = serde_json::from_str(&schema).expect("JSON");
    conforms(&json, &schema, "why");
    let run = &json["runs"][0];
    let of_workcons = schedviz(&["workcons", arguments[1], "--json"]).success();
    let of_workcons: serde_json::Value = serde_json::from_slice(&of_workcons.stdout).expect("JSON");
    assert_eq!(run["violation_ns"], of_workcons["runs"][0]["movable"]["ns"]);
    for table in ["waiting", "idling"] {
        let rows = run[table]["rows"].as_array().expect("rows");
        let total: u64 = rows.iter().map(|row| row["total_ns"].as_u64().expect("a time")).sum();
        assert!(total > 0 && run[table]["total_ns"] == total, "{table}");
    }
    let markdown = schedviz(&[&arguments[..], &["--markdown"]].concat()).success().text();
    let widths: BTreeSet<usize> =
        markdown.lines().filter(|line| line.starts_with('|')).map(|line| line.matches('|').count()).collect();
    assert_eq!(widths, BTreeSet::from([7, 8]), "tables of six and of seven columns");
}

#[test]
fn a_window_without_violation_has_a_sentence_and_no_empty_tables() {
    let file = fixture("hackbench.dat");
    let window = ["why", file.to_str().expect("a path"), "--min", "0.09", "--max", "0.0901"];
    let text = schedviz(&window).success().text();
    let sentence = "no violation: no CPU idled while a task that counts and may use it waited on a busy CPU";
    assert!(unwrapped(&text).contains(sentence), "{text}");
    assert!(!text.contains("waiting in violation"), "{text}");
    let markdown = schedviz(&[window.as_slice(), &["--markdown"]].concat()).success().text();
    assert!(markdown.contains(&format!("There is {sentence}.")), "{markdown}");
    assert!(!markdown.contains("| the wait began |"), "{markdown}");
}

#[test]
fn groups_stand_beside_each_other_by_origin() {
    let of = |name: &str| fixture(name).to_str().expect("a path").to_owned();
    let groups = [format!("a={}", of("hackbench.dat")), format!("b={},{}", of("affine.dat"), of("online.dat"))];
    let asked = ["why", "-q", "--group", &groups[0], "--group", &groups[1]];
    let text = schedviz(&asked).success().text();
    let (_, table) = text.split_once("\nwaiting in violation, task\u{b7}s").expect("a table of origins");
    // One run is its own median: the origins of `why hackbench.dat`, in seconds with their shares.
    let row = table.lines().find(|line| line.starts_with("woken on previous CPU")).expect("an origin");
    assert!(row.contains("1.068 (42%)"), "{row}");
    assert!(table.lines().all(|line| line.chars().count() <= 75), "{table}");
    let folder = scratch("why-groups");
    let file = folder.join("groups.svg");
    schedviz(&[&asked[..], &["-o", file.to_str().expect("a path")]].concat()).success();
    let figure = std::fs::read_to_string(&file).expect("the figure");
    assert!(figure.contains("Why tasks waited while CPUs idled: a, b"), "the title");
    let one = schedviz(&["why", "-q", &of("hackbench.dat")]).success().text();
    assert!(one.starts_with("Finding: tasks waited while CPUs idled 27.30 % of the time; most waiting"), "{one}");
}

/// A run whose waiting tasks are unknown is marked, and in no median, as in `workcons`.
#[test]
fn a_run_that_is_not_to_be_trusted_is_in_no_median() {
    let of = |name: &str| fixture(name).to_str().expect("a path").to_owned();
    let group = format!("a={},{},{}", of("hackbench.dat"), of("online.dat"), of("mask.dat"));
    let document = |command: &str| -> Value {
        let ran = schedviz(&[command, "-q", "--json", "--group", &group]).success();
        serde_json::from_slice(&ran.stdout).expect("JSON")
    };
    let (why, conserved) = (document("why"), document("workcons"));
    let untrusted: Vec<bool> =
        why["runs"].as_array().expect("runs").iter().map(|run| run["untrusted"].is_string()).collect();
    assert_eq!(untrusted, [false, false, true]);
    assert_eq!(conserved["groups"][0]["percent"]["runs"], 2);
    let reason = why["runs"][2]["untrusted"].as_str().expect("a reason");
    assert_eq!(why["notes"][0], format!("mask.dat is not to be trusted, and is in no median: {reason}"));
    let note = conserved["notes"].as_array().expect("notes").iter().filter_map(Value::as_str);
    assert!(note.clone().any(|note| note == format!("mask.dat has no violation: {reason}")), "{conserved}");

    // A second group has no other run: it has no median.
    let text =
        schedviz(&["why", "-q", "--group", &group, "--group", &format!("b={}", of("mask.dat"))]).success().text();
    assert!(
        unwrapped(&text).starts_with(&format!("* mask.dat is not to be trusted, and is in no median: {reason} ")),
        "{text}"
    );
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
    assert!(row("* a: mask.dat").contains(" %"), "{text}");
    let median = conserved["groups"][0]["percent"]["median"].as_f64().expect("a number");
    assert!(row("a: median of 2 of 3").contains(&format!("{median:.2} %")), "{median} {text}");
    assert!(row("b: median of 0 of 1").trim_end().ends_with('-'), "{text}");
    let (_, origins) = text.split_once("\nwaiting in violation, task\u{b7}s").expect("origins");
    assert!(origins.lines().nth(1).is_some_and(|line| line.trim_end().ends_with('-')), "{origins}");
}
