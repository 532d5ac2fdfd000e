//! `schedviz findings` on recordings: the first sentence is the one that decides what to look at.

use crate::support::{fixture, schedviz, schedviz_in, scratch, unwrapped};
use serde_json::Value;

fn document(arguments: &[&str], trace: &str) -> Value {
    let trace = fixture(trace);
    let trace = trace.to_str().expect("UTF-8");
    let text = schedviz(&[&["findings", trace, "--json", "-q"], arguments].concat()).success().text();
    serde_json::from_str(&text).expect("JSON")
}

fn kinds(document: &Value) -> Vec<&str> {
    let findings = document["findings"].as_array().expect("findings");
    findings.iter().map(|found| found["observation"]["kind"].as_str().expect("a kind")).collect()
}

#[test]
fn the_first_finding_is_the_one_that_matters() {
    for (trace, kind, unit) in [
        // Work conservation is violated for half of the time, and for a fifth of the path.
        ("rt-5.10.dat", "violation", "critical-path"),
        // All CPUs are busy for nearly all of the queued time.
        ("hackbench.dat", "path-queued", "critical-path"),
        ("hackbench-7.2.dat", "path-queued", "critical-path"),
        // Twelve clients on four CPUs, which are not descendants of the server.
        ("workload-outside-6.12.dat", "path-queued", "critical-path"),
        // Two tasks are bound to a CPU. The command waits as long for the third one, which is free.
        ("affine.dat", "affinity", "cpu-time-lost"),
        ("isolated.dat", "affinity", "critical-path"),
        ("cgroup-cpumax.dat", "throttling", "critical-path"),
    ] {
        let document = document(&[], trace);
        assert_eq!(kinds(&document).first(), Some(&kind), "{trace}: {document:#}");
        assert_eq!(document["cost_unit"], unit, "{trace}");
        // Parts of the queued time follow the whole of it, and are ranked among one another.
        let findings = document["findings"].as_array().expect("findings");
        let is_part = |kind: &str| matches!(kind, "starved" | "herds" | "interference");
        for part in [false, true] {
            let among =
                findings.iter().filter(|found| is_part(found["observation"]["kind"].as_str().expect("a kind")) == part);
            let costs: Vec<Option<u64>> = among.map(|found| found["cost_ns"].as_u64()).collect();
            assert!(costs.is_sorted_by(|a, b| a >= b), "{trace}: {costs:?}");
        }
        assert!(findings.len() <= 8, "{trace}");
    }
}

#[test]
fn costs_are_those_of_the_other_commands() {
    let trace = fixture("hackbench.dat");
    let trace = trace.to_str().expect("UTF-8");
    let of = |command: &str| -> Value {
        let text = schedviz(&[command, trace, "--json", "-q"]).success().text();
        serde_json::from_str(&text).expect("JSON")
    };
    let (found, path, workcons) = (document(&[], "hackbench.dat"), of("path"), of("workcons"));
    let place = kinds(&found).iter().position(|kind| *kind == "violation").expect("a violation");
    let violation = &found["findings"][place];
    assert_eq!(violation["cost_ns"], path["times"]["queued_beside_idle_ns"]);
    assert_eq!(violation["observation"]["queued_on_path_ns"], path["times"]["queued_ns"]);
    assert_eq!(violation["observation"]["percent"], workcons["runs"][0]["violation"]["percent"]);
    // In the window, too.
    let window = document(&["--min", "0.5", "--max", "0.6"], "hackbench.dat");
    assert_eq!(window["window_ns"], 100_000_000);
}

#[test]
fn the_first_sentence_has_the_times_of_the_path() {
    let mut paths = 0;
    for trace in
        ["rt-5.10.dat", "hackbench.dat", "hackbench-7.2.dat", "isolated.dat", "cgroup-cpumax.dat", "every-7.2.dat"]
    {
        let name = fixture(trace);
        let name = name.to_str().expect("UTF-8");
        let path: Value =
            serde_json::from_str(&schedviz(&["path", name, "--json", "-q"]).success().text()).expect("JSON");
        let found = document(&[], trace);
        let consisted = &found["consisted"];
        assert_eq!(consisted.is_null(), found["path"].is_null(), "{trace}");
        if consisted.is_null() {
            continue;
        }
        paths += 1;
        let time = |of: &Value, name: &str| of[name].as_u64().unwrap_or(0);
        let times = &path["times"];
        assert_eq!(consisted["running_ns"], times["running_ns"], "{trace}");
        assert_eq!(consisted["sleeping_ns"], times["sleeping_ns"], "{trace}");
        let scheduler = time(times, "queued_ns") + time(times, "waking_ns") + time(times, "throttled_ns");
        assert_eq!(consisted["scheduler_ns"], scheduler, "{trace}");
        // The sums of the rows by task, for the command that the sentence names: no other command ran longer.
        let mut commands: std::collections::BTreeMap<String, u64> = Default::default();
        for row in path["tasks"].as_array().expect("tasks") {
            let command =
                sched::kthread::command(sched::Comm::new(row["command"].as_str().expect("a name").as_bytes()));
            *commands.entry(command.to_string()).or_default() += time(row, "running_ns");
        }
        let command = consisted["command"].as_str().expect("a command");
        assert_eq!(consisted["command_ns"], commands[command], "{trace}");
        assert_eq!(Some(&commands[command]), commands.values().max(), "{trace}");
        let length = time(&found["path"], "length_ns") as f64;
        let sentence = consisted["sentence"].as_str().expect("a sentence");
        let percent = |ns: u64| format!("{:.1} %", 100.0 * ns as f64 / length);
        assert!(sentence.contains(&format!("{} running", percent(time(times, "running_ns")))), "{trace}: {sentence}");
        let is_free = 100.0 * (scheduler as f64) < 5.0 * length;
        assert_eq!(sentence.ends_with("the scheduler did not hold it up."), is_free, "{trace}: {sentence}");
        let ready = format!("({}).", percent(scheduler));
        assert_eq!(sentence.ends_with(&ready), !is_free, "{trace}: {sentence}");
        // It is what is read first.
        let text = unwrapped(&schedviz(&["findings", name, "-q"]).success().text());
        assert!(text.split_once(": ").expect("a trace").1.starts_with(sentence), "{text}");
    }
    assert!(paths >= 4, "{paths}");
}

/// The commands that a text gives, each in one line.
fn given(arguments: &[&str], trace: &str) -> Vec<String> {
    let (trace, topology) = (fixture(trace), fixture("hackbench.cpus.txt"));
    let both = [trace.to_str().expect("UTF-8"), "--topology", topology.to_str().expect("UTF-8")];
    let text = schedviz(&[&["findings", "-q"], &both[..], arguments].concat()).success().text();
    let text = text.replace(" \\\n", "");
    text.lines().filter_map(|line| line.trim().strip_prefix("schedviz ")).map(unwrapped).collect()
}

/// Whoever has a recording and knows no command types its name.
#[test]
fn a_recording_alone_is_asked_for_its_findings() {
    let path = fixture("affine.dat");
    let trace = path.to_str().expect("UTF-8");
    assert_eq!(schedviz(&[trace]).success().text(), schedviz(&["findings", trace]).success().text());
    let window = ["--max", "0.5", "--json", "-q"];
    let asked = |beginning: &[&str]| schedviz(&[beginning, &window[..]].concat()).success().text();
    assert_eq!(asked(&[trace]), asked(&["findings", trace]));
    // The name of a command is a command, whatever files there are; what is neither is a mistake.
    let folder = scratch("a_recording_alone");
    std::fs::copy(&path, folder.join("info")).expect("copied");
    assert!(schedviz_in(&folder, &["info", "info"]).success().text().starts_with("trace      info\n"));
    assert!(schedviz_in(&folder, &["nothing.dat"]).stderr.contains("unrecognized subcommand 'nothing.dat'"));
}

#[test]
fn the_commands_look_at_what_was_looked_at() {
    // The window and the CPUs are those of the findings.
    let commands = given(&["--min", "200ms", "--max", "0.6", "--cpus", "0-3"], "hackbench.dat");
    let shown = "hackbench.cpus.txt --cpus 0-3 --min 0.2 --max 0.6";
    let (pages, commands): (Vec<String>, Vec<String>) =
        commands.into_iter().partition(|command| command.starts_with("view "));
    assert!(commands.len() >= 3 && commands.iter().all(|command| command.ends_with(shown)), "{commands:?}");
    // The page shows all of the trace, whatever the window.
    assert!(pages.len() == 1 && pages[0].ends_with("hackbench.cpus.txt --cpus 0-3"), "{pages:?}");
    // `info` describes the file: it takes neither a topology nor a window.
    let commands = given(&["--min", "0.1"], "instance.dat");
    let info: Vec<&String> = commands.iter().filter(|command| command.starts_with("info ")).collect();
    assert!(!info.is_empty() && info.iter().all(|command| command.ends_with("instance.dat")), "{commands:?}");
}

#[test]
fn nothing_is_concluded_from_an_unknown_application() {
    let found = document(&[], "forked-unknown.dat");
    let concluded = ["path-queued", "interference"];
    assert!(!kinds(&found).iter().any(|kind| concluded.contains(kind)), "{found:#}");
    assert_eq!((&found["cost_unit"], &found["path"]), (&"cpu-time-lost".into(), &Value::Null));
}

#[test]
fn costs_are_cpu_time_lost_where_the_path_lost_little() {
    // The path waits for 1.8 % of its length, while work conservation is violated for 3 % of the time.
    let found = document(&[], "every-7.2.dat");
    assert_eq!((kinds(&found)[0], &found["cost_unit"]), ("violation", &"cpu-time-lost".into()), "{found:#}");
    assert!(found["path"]["length_ns"].is_u64(), "{found:#}");
}

#[test]
fn help_begins_with_the_findings() {
    let help = schedviz(&["--help"]).success().text();
    let (_, steps) = help.split_once("First steps:").expect("first steps");
    let findings = steps.find("schedviz findings trace.dat").expect("the findings");
    assert!(
        ["info", "dat2graph", "workcons"]
            .iter()
            .all(|name| { steps.find(&format!("schedviz {name} trace.dat")).is_none_or(|other| findings < other) })
    );
    let text =
        unwrapped(&schedviz(&["findings", fixture("hackbench.dat").to_str().expect("UTF-8"), "-q"]).success().text());
    assert!(text.contains("the costliest first") && text.contains("schedviz why"), "{text}");
}
