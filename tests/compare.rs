//! `schedviz compare` and `schedviz schedstat`: tables, verdicts, documents.

use crate::conforms::conforms;
use crate::support::{fixture, recordings, root, schedviz, scratch};
use sched::SchedEvent;
use std::path::PathBuf;
use testkit::{Simulation, TraceBuilder};

/// Writes runs of a simulated machine; `stretch`: the factor by which everything takes longer.
fn runs(folder: &std::path::Path, name: &str, seeds: std::ops::Range<u64>, stretch: i64) -> String {
    for seed in seeds {
        let mut events: Vec<SchedEvent> = Simulation::run(seed, 4, 300).events;
        events.iter_mut().for_each(|e| e.ts.0 *= stretch);
        let bytes = TraceBuilder::default().events(&events).build();
        std::fs::write(folder.join(format!("{name}.{seed}.dat")), bytes).expect("written");
    }
    folder.join(format!("{name}.*.dat")).to_str().expect("a path").to_owned()
}

#[test]
fn a_change_is_told_from_noise() {
    let folder = scratch("compare");
    let base = runs(&folder, "base", 0..6, 1);
    let same = runs(&folder, "same", 6..12, 1);
    let slow = runs(&folder, "slow", 12..18, 3);
    let code = |new: &str, limit: &str| {
        let ran = schedviz(&["compare", "-q", "--base", &base, "--new", new, "--fail-if", limit]);
        (ran.code, ran.stderr.clone(), ran.text())
    };
    let (failed, why, table) = code(&slow, "elapsed>5%");
    assert!(failed == Some(2) && why.contains("FAIL: elapsed"), "{why}");
    assert!(table.starts_with("Finding: new is WORSE than base: elapsed +") && table.contains("%speedup -"), "{table}");
    assert!(
        table.lines().filter(|l| !l.starts_with("note: ")).all(|l| l.chars().count() <= 75),
        "it fits a mail:\n{table}"
    );
    assert_eq!(code(&same, "elapsed>1000%").0, Some(0));
    // An excess over a limit of zero that noise explains is inconclusive.
    let (unclear, why, _) = code(&same, "elapsed>0%");
    assert!(unclear == Some(3) || why.contains("pass"), "{why}");
    let two = format!("{0}/base.0.dat,{0}/base.1.dat", folder.display());
    let ran = schedviz(&[
        "compare",
        "-q",
        "--group",
        &format!("a={two}"),
        "--group",
        &format!("b={slow}"),
        "--fail-if",
        "elapsed>5%",
    ]);
    assert!(ran.code == Some(3) && ran.stderr.contains("too few"), "{}", ran.stderr);
    assert!(ran.text().contains("Too few runs to distinguish a change from noise"));
}

#[test]
fn runs_that_lost_much_are_left_out_by_name_and_settings_are_compared() {
    let folder = scratch("compare-loss");
    let base = runs(&folder, "base", 0..4, 1);
    let new = runs(&folder, "new", 4..8, 1);
    let (events, _) = Simulation::run(3, 6, 2000).lossy(3);
    std::fs::write(folder.join("new.9.dat"), TraceBuilder::default().events(&events).build()).expect("written");
    let text = schedviz(&["compare", "-q", "--base", &base, "--new", &new]).success().text();
    assert!(text.contains("new: new.9.dat is left out") && text.contains("new (4 runs)"), "{text}");
    let ours = fixture("hackbench.dat");
    let text = schedviz(&["compare", "-q", "--base", &base, "--new", ours.to_str().expect("a path")]).success().text();
    assert!(text.contains("note: CPUs with events: new: hackbench.dat has"), "{text}");
    assert!(text.contains("note: kernel"), "{text}");
    let unmoved = fixture("instance.dat");
    let unmoved = ["--new", unmoved.to_str().expect("a path"), "--fail-if", "violation>5%"];
    let judged = schedviz(&[&["compare", "-q", "--base", &base], &unmoved[..]].concat());
    let (code, text) = (judged.code, judged.text().replace("\n  ", " "));
    assert!(text.contains("instance.dat has no violation: sched_wakeup_new was not recorded"), "{text}");
    assert_eq!(code, Some(3));
    let [cut, ours] = [fixture("mask.dat"), ours].map(|path| path.to_str().expect("a path").to_owned());
    let text = schedviz(&["compare", "-q", "--base", &ours, "--new", &cut]).success().text().replace("\n  ", " ");
    assert!(text.contains("note: new: mask.dat has no elapsed time: the trace does not show when"), "{text}");
}

#[test]
fn a_run_counts_once() {
    let folder = scratch("compare-twice");
    let base = runs(&folder, "base", 0..3, 1);
    let new = runs(&folder, "new", 3..6, 1);
    let [of_base, of_new] = [("base.1.dat", "copy.dat"), ("new.4.dat", "other.dat")].map(|(from, to)| {
        std::fs::copy(folder.join(from), folder.join(to)).expect("copied");
        folder.join(to).to_str().expect("a path").to_owned()
    });
    let text = |more: &[&str]| {
        let arguments = [&["compare", "-q", "--base", &base, &of_base, "--new", &new], more].concat();
        schedviz(&arguments).success().text()
    };
    let group = format!("base={base},{of_base}");
    let listed = schedviz(&["workcons", "--group", &group, "--json"]).success();
    let json: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!((json["runs"].as_array().map(Vec::len), &json["groups"][0]["runs"]), (Some(3), &3.into()), "{json}");
    assert!(listed.stderr.contains("base: copy.dat is left out"), "{}", listed.stderr);
    let once = text(&[]);
    assert!(once.contains("note: base: copy.dat is left out: it is the recording of base.1.dat again"), "{once}");
    assert!(once.contains("new (3 runs) against base (3 runs)"), "{once}");
    let alone = schedviz(&["compare", "-q", "--base", &base, "--new", &new]).success().text();
    // The finding, and the head, which names the kernel and the CPUs, stand above the notes.
    let (_, table) = alone.split_once("\n\n").and_then(|(_, rest)| rest.split_once("\n\n")).expect("a head");
    assert!(once.ends_with(table), "otherwise nothing changes:\n{once}\n{alone}");
    let both = schedviz(&["compare", "-q", "--base", &base, &of_new, "--new", &new]).success().text();
    assert!(both.contains("note: other.dat is in base and in new: a run of both sides hides a change"), "{both}");
}

#[test]
fn what_cannot_be_compared_is_refused_with_advice() {
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("a path");
    for (arguments, advice) in [
        (vec!["compare", "--base", trace, "--new", trace, "--fail-if", "speed>5%"], "there are elapsed"),
        (vec!["compare", "--base", trace, "--new", trace, "--fail-if", "elapsed=5"], "METRIC>PERCENT%"),
        (vec!["compare", "--base", "nothing.*.dat", "--new", trace], "no file matches"),
        (vec!["compare", "--base", trace, "--new", trace, "--alpha", "2"], "--alpha"),
        (vec!["compare", "--group", &format!("one={trace}")], "nothing to be compared with"),
    ] {
        let ran = schedviz(&arguments);
        assert!(ran.code == Some(1) && ran.stderr.contains(advice), "{arguments:?}: {}", ran.stderr);
    }
}

/// The averages of rtla's interrupts are usually 0: the row below continues their name. `compare a b` is what people type first.
#[test]
fn a_row_of_zeros_whose_name_goes_on_is_kept() {
    let folder = scratch("compare-timerlat");
    let base = runs(&folder, "base", 0..1, 1);
    let new = runs(&folder, "new", 1..2, 1);
    for (name, most) in [("base.0", 9), ("new.1", 12)] {
        let text = format!(
            "# RTLA timerlat histogram\n# Time unit is microseconds (us)\nIndex   IRQ-000   Thr-000\n0         59000         0\n\
             over:         0         0\ncount:    59001     59001\nmin:          0         2\navg:          0         4\n\
             max:     {most:>6}         9\n"
        );
        std::fs::write(folder.join(format!("{name}.out")), text).expect("written");
    }
    let table = schedviz(&["compare", "-q", "--base", &base, "--new", &new]).success().text();
    let start = table.lines().position(|line| line.starts_with("timerlat IRQ avg")).expect("the row of the average");
    let rows: Vec<Vec<&str>> =
        table.lines().skip(start).take(2).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..5], ["timerlat", "IRQ", "avg", "0", "0"], "{table}");
    assert_eq!(rows[1][..5], ["max,", "\u{b5}s", "9.000", "12.00", "+33.3%"], "{table}");
    let ran = schedviz(&["compare", "old.dat", "new 1.dat"]);
    assert!(ran.stderr.contains("schedviz compare --base old.dat --new 'new 1.dat'"), "{}", ran.stderr);
}

/// The outputs of hackbench and stress-ng beside the runs: a time that doubles, and a rate that halves.
#[test]
fn numbers_of_benchmarks_have_a_direction() {
    let folder = scratch("compare-benchmarks");
    let base = runs(&folder, "base", 0..5, 1);
    let new = runs(&folder, "new", 5..10, 1);
    for (name, seeds, factor) in [("base", 0..5, 1.0), ("new", 5..10, 2.0)] {
        for seed in seeds {
            let (time, rate) = (factor * (1.0 + 0.01 * f64::from(seed)), 5000.0 / factor + f64::from(seed));
            let text = format!(
                "Running in process mode with 1 groups using 40 file descriptors each (== 40 tasks)\nTime: {time:.3}\n\
                 stress-ng: metrc: [1] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s\n\
                 stress-ng: metrc: [1] pipe             361047      1.00      0.11      0.54    {rate:.2}      557519.75\n"
            );
            std::fs::write(folder.join(format!("{name}.{seed}.out")), text).expect("written");
        }
    }
    let of = |more: &[&str]| schedviz(&[&["compare", "-q", "--base", &base, "--new", &new], more].concat());
    let table = of(&[]).success().text();
    for row in ["hackbench time, s", "pipe, bogo ops/s"] {
        let line = table.lines().find(|line| line.starts_with(row)).unwrap_or_else(|| panic!("{row}: {table}"));
        assert!(line.ends_with(".008 worse"), "{line}");
    }
    let json: serde_json::Value = serde_json::from_str(&of(&["--json"]).success().text()).expect("JSON");
    let first = |at: usize| (json["metrics"][at]["key"].as_str(), json["metrics"][at]["better"].as_str());
    assert_eq!((first(0), first(1)), ((Some("hackbench-time"), Some("less")), (Some("stress-ng-pipe"), Some("more"))));
    for limit in ["stress-ng-pipe>40%", "hackbench-time>50%"] {
        assert_eq!(of(&["--fail-if", limit]).code, Some(2), "{limit}");
    }
    assert_eq!(of(&["--fail-if", "stress-ng-pipe>60%"]).code, Some(0));
    let absent = of(&["--fail-if", "schbench-rps>5%"]);
    assert!(absent.code == Some(1) && absent.stderr.contains("have no metric \"schbench-rps\""), "{}", absent.stderr);
    let tip = of(&["--format", "tip"]).success().text();
    assert!(tip.contains("Interpretation: Higher is better; [positive] is better") && tip.contains("[-49."), "{tip}");
    let mmtests = of(&["--format", "mmtests"]).success().text();
    assert!(
        mmtests.lines().any(|line| line.starts_with("Median    stress-ng-pipe") && line.contains("* -49.")),
        "{mmtests}"
    );
}

/// A series that ended early is judged round by round: in each the new variant is twice as fast, whatever the machine did.
#[test]
fn a_series_that_ended_early_is_judged_by_its_rounds() {
    let folder = scratch("compare-series");
    let rounds = 7;
    for (at, name) in ["off", "on"].into_iter().enumerate() {
        runs(&folder, name, 100 * at as u64 + 1..100 * at as u64 + 1 + rounds, 1);
    }
    let mut list = Vec::new();
    for round in 1..=rounds {
        for (at, name, factor) in [(0, "off", 1.0), (1, "on", 0.5)] {
            let file = format!("{name}.{}", 100 * at + round);
            // A machine that becomes twice as slow from round to round hides the change from a test of all runs.
            let time = factor * 2_f64.powi(i32::try_from(round).expect("a number"));
            let text = format!("Running in process mode with 1 groups\nTime: {time:.3}\n");
            std::fs::write(folder.join(format!("{file}.out")), text).expect("written");
            list.push(serde_json::json!({
                "variant": name, "number": round, "trace": format!("{file}.dat"), "seconds": 1.0, "status": 0
            }));
        }
    }
    let mut series = serde_json::json!({
        "schema": "schedviz/runs/1", "seed": 1, "command": "hackbench", "variants": ["off", "on"], "runs": list
    });
    let keep = |series: &serde_json::Value| {
        std::fs::write(folder.join("runs.json"), series.to_string()).expect("written");
        let of = |more: &[&str]| {
            schedviz(&[&["compare", "-q", folder.to_str().expect("a path")], more].concat()).success().text()
        };
        let json: serde_json::Value = serde_json::from_str(&of(&["--json"])).expect("JSON");
        let schema = std::fs::read_to_string(root().join("docs/schemas/compare-2.json")).expect("the schema");
        conforms(&json, &serde_json::from_str(&schema).expect("JSON"), "$");
        (of(&[]), json["comparisons"][0]["rows"][0].clone())
    };
    let (_, fixed) = keep(&series);
    assert!(fixed["key"] == "hackbench-time" && fixed["finding"] == "noise" && fixed["e"].is_null(), "{fixed}");
    series["auto"] = serde_json::json!({
        "max_runs": 20, "alpha": 0.05, "measure": "hackbench-time", "is_decided": true
    });
    let (text, row) = keep(&series);
    assert!(row["finding"] == "better" && row["rounds"] == 7, "{row}");
    assert!(row["e"].as_f64().is_some_and(|e| e > 20.0) && row["p"].as_f64().is_some_and(|p| p < 0.05), "{row}");
    assert!(text.contains("bets on the order of the runs within each round") && text.contains("(e-values)"), "{text}");
}

/// Two variants at three values of the parameter: twelve times as long at 4, the same at 1 and 2.
#[test]
fn a_sweep_has_a_row_for_each_value() {
    let folder = scratch("compare-sweep");
    let mut seeds = 0..;
    for parameter in [1, 2, 4] {
        for (name, stretch) in [("old", 1), ("new", if parameter == 4 { 12 } else { 1 })] {
            let from = seeds.by_ref().nth(4).expect("a number");
            runs(&folder, &format!("{name}-{parameter}g"), from..from + 5, stretch);
        }
    }
    let path = |name: &str| folder.join(name).to_str().expect("a path").to_owned();
    let (old, new) = (path("old-{}g.*.dat"), path("new-{}g.*.dat"));
    let of =
        |more: &[&str]| schedviz(&[&["compare", "-q", "--base", &old, "--new", &new], more].concat()).success().text();
    let table = of(&["-o", &path("sweep.svg")]);
    let figure = std::fs::read_to_string(path("sweep-1.svg")).expect("a figure");
    assert!(figure.contains("Sweep: base, new") && figure.contains("elapsed, s"), "{figure}");
    assert!(table.contains("new against base, by the value of {}"), "{table}");
    assert!(table.contains("\nFinding: elapsed is worse at 4"), "{table}");
    // A range beyond 999 % takes a column more.
    let is_plain = |line: &&str| !line.starts_with("note: ") && !line.contains("..>999");
    assert!(table.lines().filter(is_plain).all(|line| line.chars().count() <= 75), "{table}");
    let json: serde_json::Value = serde_json::from_str(&of(&["--json"])).expect("JSON");
    let schema = std::fs::read_to_string(root().join("docs/schemas/compare-2.json")).expect("the schema");
    conforms(&json, &serde_json::from_str(&schema).expect("JSON"), "$");
    assert_eq!(json["sweep"]["points"][2]["groups"], serde_json::json!(["base-4", "new-4"]));
    assert_eq!(json["comparisons"].as_array().map(Vec::len), Some(3));
    assert_eq!(of(&["--format", "tip"]).matches(" at 4\n").count(), 2, "judged metrics and others at each value");
    let groups = |parameter: &str| format!("hb-{parameter}g={}", path(&format!("old-{parameter}g.*.dat")));
    let named: Vec<String> = ["1", "2", "4"].into_iter().flat_map(|at| ["--group".to_owned(), groups(at)]).collect();
    let arguments = [&["compare", "-q"], named.iter().map(String::as_str).collect::<Vec<_>>().as_slice()].concat();
    let alone = schedviz(&arguments).success().text();
    assert!(alone.contains("hb-{}g against its runs at 1, by the value of {}"), "{alone}");
    let mixed = schedviz(&["compare", "--base", &old, "--new", &path("new-1g.*.dat")]);
    assert!(mixed.code == Some(1) && mixed.stderr.contains("either each of the files has it, or none"));
}

#[test]
fn json_follows_its_schema_and_the_figure_has_two_pages() {
    let folder = scratch("compare-json");
    let base = runs(&folder, "base", 0..3, 1);
    let new = runs(&folder, "new", 3..7, 2);
    let pdf = folder.join("runs.pdf");
    let pdf = pdf.to_str().expect("a path");
    let json = schedviz(&["compare", "-q", "--base", &base, "--new", &new, "--json", "-o", pdf]).success().text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let schema = std::fs::read_to_string(root().join("docs/schemas/compare-2.json")).expect("the schema");
    conforms(&json, &serde_json::from_str(&schema).expect("JSON"), "$");
    let bytes = std::fs::read(pdf).expect("the figure");
    assert!(String::from_utf8_lossy(&bytes).contains("/Count 2"));
    let markdown = schedviz(&["compare", "-q", "--base", &base, "--new", &new, "--markdown"]).success().text();
    // Each row by its full name: what stands above it is not always read with it.
    assert!(markdown.contains("| elapsed, s | ") && markdown.contains("| wakeup p99, ms | "));
}

/// The counters were read before and after the recording: they are at least the trace's. Both see
/// the same machine, so what a task runs at a time is alike.
#[test]
fn counters_and_traces_of_the_same_run_agree() {
    let mut seen = 0;
    let mut others = 0;
    for path in recordings() {
        let before = path.with_extension("schedstat.before");
        if !before.exists() {
            continue;
        }
        seen += 1;
        let after = path.with_extension("schedstat.after");
        let word = |path: &PathBuf| path.to_str().expect("a path").to_owned();
        let arguments = [&word(&before), &word(&after), "--trace", &word(&path), "--hz", "250", "--json", "-q"];
        let arguments: Vec<&str> = ["schedstat"].into_iter().chain(arguments).collect();
        let json: serde_json::Value = serde_json::from_str(&schedviz(&arguments).success().text()).expect("JSON");
        let rows = json["rows"].as_array().expect("rows");
        let (counters, trace) = (&rows[0], &rows[1]);
        let sum = |name: &str| -> f64 {
            json["cpus"].as_array().expect("CPUs").iter().map(|c| c[name].as_f64().expect("a number")).sum()
        };
        // With schedstats off the counters stand still, and the report warns that they belong to no run of the trace.
        if sum("sched_count") == 0.0 {
            assert!(json["warnings"].as_array().is_some_and(|warnings| !warnings.is_empty()), "{}", path.display());
            continue;
        }
        assert_eq!(json["warnings"].as_array().map(Vec::len), Some(0), "{}", path.display());
        for column in ["time_s", "sched", "idle", "wake"] {
            let (c, t) = (counters[column].as_f64().expect("a number"), trace[column].as_f64().expect("a number"));
            assert!(c >= t, "{}: {column}: {c} counted, {t} traced", path.display());
        }
        // Arrivals of tasks are calls of schedule() that did not choose the idle task, to 3 %.
        let arrivals = sum("sched_count") - sum("sched_goidle");
        assert!((sum("pcount") / arrivals - 1.0).abs() < 0.03, "{}: {} {arrivals}", path.display(), sum("pcount"));
        let ran = |row: &serde_json::Value| {
            row["busy_percent"].as_f64().expect("a number") * row["time_s"].as_f64().expect("a number")
        };
        assert!(ran(counters) >= ran(trace), "{}", path.display());
        // The longest run is not among the counts around the shortest.
        if path.file_name().is_some_and(|name| name == "spmd.dat") {
            let other = word(&path.with_file_name("newidle-off.5.dat"));
            let text =
                schedviz(&["schedstat", &word(&before), &word(&after), "--trace", &other, "-q"]).success().text();
            others += u64::from(text.contains("note: --trace: not of the run that was counted: "));
        }
    }
    assert!(others == 3 || seen == 0, "{others} of four are seen to be of another run");
    assert!(seen >= 8 || std::env::var_os("SCHEDVIZ_TRACES").is_none(), "{seen}");
}

#[test]
fn schedstat_prints_the_columns_of_the_series() {
    let folder = scratch("schedstat");
    let write = |name: &str, busy_ms: u64, sched: u64, idle: u64| {
        let cpus: Vec<String> = (0..2)
            .map(|cpu| format!("cpu{cpu} 0 0 {sched} {idle} 7 3 {} 9 {}", busy_ms * 1_000_000, sched - idle))
            .collect();
        let text = format!("version 15\ntimestamp {}\n{}\n", 4_294_900_000u64 + busy_ms, cpus.join("\n"));
        let path = folder.join(name);
        std::fs::write(&path, text).expect("written");
        path.to_str().expect("a path").to_owned()
    };
    // sched wraps at 2^32.
    let zero = write("0", 0, 0, 0);
    let (old, new) = (write("old", 6_065, 105_476, 46_291), write("new", 5_000, 90_000, 20_000));
    let arguments = ["schedstat", &zero, &new, "--time", "5.938", "--base", &zero, &old, "--base-time", "8.084"];
    let text = schedviz(&arguments).success().text();
    for part in ["%speedup 36.1", "105476", "0.10", "75.02"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let wrong = schedviz(&["schedstat", &new, &zero]);
    assert!(wrong.code == Some(1) && wrong.stderr.contains("older"), "{}", wrong.stderr);
    let none = schedviz(&["schedstat", fixture("hackbench.cpus.txt").to_str().expect("a path"), &zero]);
    assert!(none.code == Some(1) && none.stderr.contains("/proc/schedstat"), "{}", none.stderr);
}

/// The median of some values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

/// The largest difference between the medians of two halves, in percent, that at most one of twenty divisions exceed.
fn difference_of_halves(values: &[f64]) -> f64 {
    let n = values.len();
    let half = |mask: u32, side: u32| -> Vec<f64> {
        (0..n).filter(|at| mask >> at & 1 == side).map(|at| values[at]).collect()
    };
    let masks = (0..1_u32 << n).filter(|mask| mask.count_ones() as usize == n / 2);
    let mut apart: Vec<f64> = masks.map(|mask| (median(half(mask, 1)) - median(half(mask, 0))).abs()).collect();
    apart.sort_by(f64::total_cmp);
    let allowed = apart.len() / 20;
    100.0 * apart[apart.len() - 1 - allowed] / median(values.to_vec())
}

#[test]
fn the_noise_of_the_base_is_that_of_its_halves() {
    let folder = scratch("compare-halves");
    let base = runs(&folder, "base", 0..6, 1);
    let new = runs(&folder, "new", 6..9, 1);
    let json = schedviz(&["compare", "-q", "--base", &base, "--new", &new, "--json"]).success().text();
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let rows = document["comparisons"][0]["rows"].as_array().expect("rows");
    let mut compared = 0;
    for row in rows {
        let metrics = document["metrics"].as_array().expect("metrics");
        let at = metrics.iter().position(|metric| metric["key"] == row["key"]).expect("the metric");
        let of_base = document["groups"][0]["runs"].as_array().expect("runs");
        let values: Vec<f64> = of_base.iter().filter_map(|run| run["values"][at].as_f64()).collect();
        if values.len() < 4 || median(values.clone()) == 0.0 {
            assert!(row["base_noise_percent"].is_null());
            continue;
        }
        let (found, expected) = (row["base_noise_percent"].as_f64().expect("a number"), difference_of_halves(&values));
        assert!((found - expected).abs() < 1e-9, "{}: {found} {expected}", row["key"]);
        compared += u32::from(expected > 0.0);
    }
    assert!(compared > 5);
    let text = schedviz(&["compare", "-q", "--base", &base, "--new", &new]).success().text().replace("\n  ", " ");
    assert!(text.contains("A/A: the medians of two halves of base's runs differ by at most this in 95 % of"), "{text}");
    // Three runs have no halves of two.
    let text = schedviz(&["compare", "-q", "--base", &new, "--new", &base]).success().text();
    assert!(!text.contains("A/A"), "{text}");
    let table = schedviz(&["compare", "-q", "--base", &base, "--new", &new, "--markdown"]).success().text();
    let columns: std::collections::BTreeSet<usize> =
        table.lines().filter(|line| line.starts_with('|')).map(|line| line.matches('|').count()).collect();
    assert!(table.contains("| p | A/A |") && columns.len() == 1, "{table}");
}

#[test]
fn the_head_names_the_machines_and_their_differences() {
    let folder = scratch("compare-head");
    let base = runs(&folder, "base", 0..2, 1);
    let new = runs(&folder, "new", 2..4, 1);
    for (name, slice) in [("base.0", "2800000"), ("base.1", "2800000"), ("new.2", "700000"), ("new.3", "700000")] {
        let file = format!(
            r#"{{"schema":"schedviz/machine/1","kernel":{{"preemption":"lazy"}},"cpus":{{"model":"Model T","smt":"on"}},
            "virtualised":true,"hypervisor":"QEMU",
            "scheduler":{{"features":["PLACE_LAG","NO_HRTICK"],"tunables":{{"base_slice_ns":"{slice}"}}}}}}"#
        );
        std::fs::write(folder.join(format!("{name}.machine.json")), file).expect("written");
    }
    let text = schedviz(&["compare", "-q", "--base", &base, "--new", &new]).success().text();
    let (finding, rest) = text.split_once("\n\n").expect("a finding");
    let head: Vec<&str> = rest.lines().take_while(|line| !line.is_empty()).collect();
    assert!(finding.starts_with("Finding: too few runs to judge whether new differs from base"), "{text}");
    assert_eq!(
        head,
        [
            "processor       Model T",
            "SMT             on",
            "virtualised     yes (QEMU)",
            "preemption      lazy",
            "features off    HRTICK",
            "base slice      base: 2.8 ms | new: 0.7 ms (differs)",
        ]
    );
    let json = schedviz(&["compare", "-q", "--base", &base, "--new", &new, "--json"]).success().text();
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let slice = document["machine"].as_array().expect("facts").iter().find(|fact| fact["name"] == "base slice");
    assert_eq!(slice.expect("the slice")["values"], serde_json::json!(["2.8 ms", "0.7 ms"]));
}

/// Requests and picks have rows where some run was recorded with their probes: the numbers of the commands themselves.
#[test]
fn runs_with_probes_have_rows_of_requests_and_picks() {
    let Some(traces) = std::env::var_os("SCHEDVIZ_TRACES") else { return };
    let run = |name: &str| {
        let file = PathBuf::from(&traces).join(format!("extra/newer/{name}.dat"));
        file.to_str().expect("a path").to_owned()
    };
    let json = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&schedviz(&[arguments, &["-q", "--json"]].concat()).success().text()).expect("JSON")
    };
    let medians = |base: &str, new: &str, key: &str| {
        let compared = json(&["compare", "--base", &run(base), "--new", &run(new)]);
        let rows = compared["comparisons"][0]["rows"].as_array().expect("rows").clone();
        let row = rows.into_iter().find(|row| row["key"] == key);
        row.map(|row| ["base", "new"].map(|side| row[side]["median"].as_f64().expect("a number") as u64))
    };
    let lazy = |name: &str| {
        let report = json(&["preemptions", &run(name)]);
        let ways = report["ways"].as_array().expect("ways").clone();
        let lazy = ways.iter().filter(|way| way["kind"] == "lazy").map(|way| way["at_most"]["count"].as_u64());
        lazy.map(|count| count.expect("a number")).sum::<u64>()
    };
    let (base, new) = ("preempt-7.2-lazy", "preempt-7.2-full");
    assert_eq!(medians(base, new, "request-lazy"), Some([lazy(base), lazy(new)]));
    assert_eq!(medians(base, new, "picks"), None, "no probe on picks in either");
    let picks = |name: &str| json(&["picks", &run(name)])["picks"].as_u64().expect("a number");
    let (base, new) = ("7.2-eevdf", "6.12-eevdf");
    assert_eq!(medians(base, new, "picks"), Some([picks(base), picks(new)]));
    assert_eq!(medians(base, new, "picks-unexplained"), Some([0, 0]));
}
