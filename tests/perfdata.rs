//! perf.data files from real machines, and what perf itself reports of them.

use crate::support::{events, fixture, schedviz};
use parse::{Options, Source, Trace};
use sched::{Cpu, EventKind, Ts};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The recordings by perf, where the directory of recordings has them.
fn by_perf(name: &str) -> Option<PathBuf> {
    let traces = std::env::var_os("SCHEDVIZ_TRACES")?;
    Some(Path::new(&traces).join("extra/linux-6.12-c8-n2/perf").join(name)).filter(|path| path.is_file())
}

/// The text that perf printed of a recording.
fn perf_text(name: &str, what: &str) -> Option<String> {
    let path = by_perf(&format!("{name}.perf-{what}.txt.gz"))?;
    let output = Command::new("gzip").arg("-dc").arg(path).output().expect("gzip runs");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A line of `perf script` or of `events --list`: CPU, microseconds, event, text.
fn fields(line: &str, system: &str) -> (u32, u64, String, String) {
    let (head, rest) = line.split_once(']').unwrap_or_else(|| panic!("{line}"));
    let cpu = head.rsplit_once('[').expect("a CPU").1.parse().expect("a number");
    let (time, rest) = rest.split_once(": ").expect("a time");
    let (seconds, fraction) = time.trim().split_once('.').expect("a point");
    let micros = |text: &str| text[..6].parse::<u64>().expect("six digits");
    let time = seconds.parse::<u64>().expect("seconds") * 1_000_000 + micros(fraction);
    let (event, text) = rest.trim_start().strip_prefix(system).unwrap_or(rest).split_once(": ").expect("an event");
    (cpu, time, event.trim().to_owned(), text.trim().to_owned())
}

/// The text of a switch without the letter of the state: perf has those of older kernels (W for an idle wait, Z for X),
/// and no sign of preemption.
fn without_state(text: &str) -> String {
    match text.split_once(" ==> ") {
        Some((before, next)) => format!("{} ==> {next}", before.rsplit_once(' ').expect("a state").0),
        None => text.to_owned(),
    }
}

#[test]
fn the_listing_is_that_of_perf_script() {
    for name in ["both-hackbench", "both-spmd"] {
        let (Some(path), Some(script)) = (by_perf(&format!("{name}.data")), perf_text(name, "script")) else { return };
        let listed = schedviz(&["events", "--list", "-q", path.to_str().expect("a path")]).success().text();
        let lines = script.lines().count();
        assert!(lines > 2000 && listed.lines().count() == lines, "{lines} lines of {name}");
        for (theirs, ours) in script.lines().zip(listed.lines()) {
            let ((cpu, time, event, text), found) = (fields(theirs, "sched:"), fields(ours, ""));
            let text = without_state(&text);
            assert_eq!((found.0, found.1, found.2, without_state(&found.3)), (cpu, time, event, text), "{theirs}");
        }
    }
}

/// perf adds waits after wakeups and preemptions, and its averages have three digits. Its sum for the thread of spmd has the
/// wait of the new thread as well; that for the processes of hackbench, whose first waits are 43 ms, has not.
#[test]
fn waits_are_those_of_perf_sched_latency() {
    let rows =
        [("both-hackbench", "hackbench:(41)"), ("both-hackbench", "rcu_preempt:18"), ("both-spmd", "spmd-8:350")];
    for (name, task) in rows {
        let (Some(path), Some(table)) = (by_perf(&format!("{name}.data")), perf_text(name, "latency")) else { return };
        let row = table.lines().find(|line| line.trim_start().starts_with(task)).expect("a row");
        let number = |part: &str| {
            let text = part.rsplit(':').next().expect("a number").trim().trim_end_matches(" ms");
            text.parse::<f64>().expect("a number")
        };
        let parts: Vec<f64> = row.split('|').skip(1).take(4).map(number).collect();
        let [_, count, mean, max] = parts.try_into().expect("four numbers");
        let (command, pid) = task.split_once(':').expect("a name and a number");
        // A new thread of spmd has the name of its parent while it waits.
        let pattern = format!("^{command}$");
        let chosen = if name == "both-spmd" { ["--pid", pid] } else { ["--tasks", &pattern] };
        let path = path.to_str().expect("a path");
        let json = schedviz(&["latency", path, chosen[0], chosen[1], "--json", "-q"]).success();
        let json: serde_json::Value = serde_json::from_str(&json.text()).expect("JSON");
        let of = |measure: &str, key: &str| {
            let measures = json["measures"].as_array().expect("measures");
            let found = measures.iter().find(|m| m["measure"] == measure).expect("the measure");
            found[key].as_f64().unwrap_or(0.0) / 1e6
        };
        let new = if name == "both-spmd" { of("new", "total_ns") } else { 0.0 };
        let total = of("wakeup", "total_ns") + of("preempted", "total_ns") + new;
        assert!((total - count * mean).abs() <= 0.0005 * count + 0.001, "{task}: {total} and {}", count * mean);
        let longest = of("wakeup", "max_ns").max(of("preempted", "max_ns"));
        assert!((longest - max).abs() <= 0.0011, "{task}: {longest} and {max}");
    }
}

/// The switches of each CPU: when, from which task, and to which.
fn switches(trace: &Trace) -> BTreeMap<Cpu, Vec<(Ts, i32, i32)>> {
    let mut cpus: BTreeMap<Cpu, Vec<(Ts, i32, i32)>> = BTreeMap::new();
    for event in events(trace) {
        if let EventKind::Switch { prev, next, .. } = event.kind {
            cpus.entry(event.cpu).or_default().push((event.ts, prev.pid.0, next.pid.0));
        }
    }
    cpus
}

/// trace-cmd recorded before perf began and after it ended; perf's events have their times up to 15 ms earlier or later.
#[test]
fn both_recorders_saw_the_same_switches() {
    for (name, expected) in [("both-hackbench", 2792), ("both-spmd", 1098)] {
        let (Some(perf), Some(dat)) = (by_perf(&format!("{name}.data")), by_perf(&format!("{name}.dat"))) else {
            return;
        };
        let source = Source::open(&perf).expect("the file");
        let perf = switches(&perfdata::open(source, Options::default()).expect("a perf.data"));
        let dat = switches(&Trace::open(&dat, Options::default()).expect("a trace.dat"));
        assert_eq!(perf.values().map(Vec::len).sum::<usize>(), expected);
        for (cpu, of_perf) in &perf {
            let all = &dat[cpu];
            let tasks = |part: &[(Ts, i32, i32)]| part.iter().map(|(_, from, to)| (*from, *to)).collect::<Vec<_>>();
            let near = |part: &[(Ts, i32, i32)]| {
                let mut pairs = part.iter().zip(of_perf);
                pairs.all(|(a, b)| a.0.0.abs_diff(b.0.0) < 15_000_000)
            };
            let place = all.windows(of_perf.len()).position(|part| near(part) && tasks(part) == tasks(of_perf));
            assert!(place.is_some(), "{name}: CPU {cpu} switched in another order");
        }
    }
}

/// The same runs, waits and wakeups of the load, with sums within the distance of the two tracers: perf's events are some
/// microseconds beside ftrace's. Until it is queued, a woken task sleeps by trace.dat and waits by this perf.data, which has
/// no `sched_wakeup`.
#[test]
fn both_recorders_measured_the_same() {
    for (name, tasks, runs) in [("both-hackbench", "^hackbench", 1949), ("both-spmd", "^spmd", 239)] {
        let files = [format!("{name}.data"), format!("{name}.dat")].map(|file| by_perf(&file));
        let [Some(perf), Some(dat)] = files else { return };
        let measured = |path: &Path| -> serde_json::Value {
            let arguments = ["latency", path.to_str().expect("a path"), "--tasks", tasks, "--json", "-q"];
            serde_json::from_slice(&schedviz(&arguments).success().stdout).expect("JSON")
        };
        let (perf, dat) = (measured(&perf), measured(&dat));
        let of = |report: &serde_json::Value, measure: &str| {
            let measures = report["measures"].as_array().expect("measures");
            let found = measures.iter().find(|of| of["measure"] == measure).expect("the measure");
            (found["count"].as_u64().expect("a number"), found["total_ns"].as_f64().expect("a time"))
        };
        for measure in ["run", "new", "preempted", "wakeup"] {
            let ((n, by_perf), (m, by_ftrace)) = (of(&perf, measure), of(&dat, measure));
            assert_eq!(n, m, "{name} {measure}");
            assert!((by_perf - by_ftrace).abs() < 0.005 * by_ftrace, "{name} {measure}: {by_perf} {by_ftrace}");
        }
        assert_eq!(of(&dat, "run").0, runs);
        let asleep = of(&dat, "sleep").1 - of(&dat, "until-queued").1;
        assert!((of(&perf, "sleep").1 - asleep).abs() < 0.02 * asleep, "{name}: {asleep}");
        assert_eq!(perf["unmeasured"], serde_json::json!(["until-queued", "until-run"]), "there is no sched_wakeup");
    }
}

/// The numbers were counted in what the program `zstd` makes of the compressed records.
#[test]
fn a_recording_by_perf() {
    let path = fixture("perf-z.data");
    let path = path.to_str().expect("a path");
    let info = schedviz(&["info", path, "--json"]).success().text();
    let info: serde_json::Value = serde_json::from_str(&info).expect("JSON");
    assert_eq!((&info["format"], &info["recorder"]), (&"perf.data".into(), &"perf 6.12.117".into()));
    assert_eq!((&info["compression"], &info["kernel"]), (&"zstd".into(), &"6.12.117+deb13-amd64".into()));
    let count = |name: &str| {
        let events = info["events"].as_array().expect("events");
        events.iter().find(|event| event["name"] == name).map_or(0, |event| event["count"].as_u64().expect("a number"))
    };
    assert_eq!(info["total_events"], 5176);
    assert_eq!((count("sched_switch"), count("sched_wakeup"), count("sched_process_fork")), (1519, 817, 40));
    // Two nodes of four CPUs each, from its header: without a topology this is refused.
    schedviz(&["utilization", path, "--order", "node", "-q"]).success();
}
