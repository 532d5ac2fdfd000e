//! `schedviz plot`: the specifications that come with the program, against a reckoning over the lines of
//! `trace-cmd report`; what it prints, and its errors.

use crate::conforms::conforms;
use crate::support::{fixture, golden, recordings, schedviz, scratch};
use crate::trace_cmd::{parse_line, report};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;

/// An event by `trace-cmd report -t`.
struct Line {
    pid: i32,
    cpu: u32,
    ns: u64,
    name: String,
    text: String,
}

/// All events by trace-cmd; nothing if it is not installed, or if it reports a loss.
fn reported(path: &Path) -> Option<Vec<Line>> {
    let text = report(path, &["-t"])?;
    let line = |line| {
        let parsed = parse_line(line)?;
        let (seconds, fraction) = parsed.ts.split_whitespace().last()?.split_once('.')?;
        Some(Line {
            pid: parsed.pid,
            cpu: parsed.cpu,
            ns: seconds.parse::<u64>().ok()? * 1_000_000_000 + fraction.parse::<u64>().ok()?,
            name: parsed.name.to_owned(),
            text: parsed.rest.trim().to_owned(),
        })
    };
    (!text.contains("EVENTS DROPPED")).then(|| text.lines().filter_map(line).collect())
}

/// The word behind `name` in a text.
fn behind<'t>(text: &'t str, name: &str) -> &'t str {
    text.split_once(name).map_or("", |(_, rest)| rest.split([' ', ',']).find(|w| !w.is_empty()).unwrap_or(""))
}

/// The view, the interval, and for a line whether it begins (true) or ends one, and its key.
type Rule = (&'static str, &'static str, fn(&Line) -> Option<(bool, String)>);

fn by_cpu(line: &Line, begin: &str, end: &str, field: &str) -> Option<(bool, String)> {
    let key = format!("{} {}", line.cpu, behind(&line.text, field));
    (line.name == begin || line.name == end).then(|| (line.name == begin, key))
}

const RULES: [Rule; 9] = [
    ("irq", "interrupt", |l| by_cpu(l, "irq_handler_entry", "irq_handler_exit", "irq=")),
    ("irq", "softirq", |l| by_cpu(l, "softirq_entry", "softirq_exit", "vec=")),
    ("timers", "high-resolution timer", |l| by_cpu(l, "hrtimer_expire_entry", "hrtimer_expire_exit", "hrtimer=")),
    ("timers", "timer", |l| by_cpu(l, "timer_expire_entry", "timer_expire_exit", "timer=")),
    ("power", "idle state", |l| {
        let begins = behind(&l.text, "state=") != "4294967295";
        (l.name == "cpu_idle").then(|| (begins, behind(&l.text, "cpu_id=").to_owned()))
    }),
    ("syscalls", "system call", |l| {
        let key = format!("{} {}", l.pid, behind(&l.text, "NR "));
        (l.name == "sys_enter" || l.name == "sys_exit").then(|| (l.name == "sys_enter", key))
    }),
    ("locks", "contention", |l| {
        let address = l.text.split([' ', ',']).next().unwrap_or_default();
        let is = l.name == "contention_begin" || l.name == "contention_end";
        is.then(|| (l.name == "contention_begin", format!("{} {address}", l.pid)))
    }),
    ("workqueues", "execution", |l| {
        let work = l.text.split("struct").nth(1).map_or("", |rest| rest.trim_start_matches(['=', ' ']));
        let work = work.split([':', ' ']).next().unwrap_or_default();
        let is = l.name == "workqueue_execute_start" || l.name == "workqueue_execute_end";
        is.then(|| (l.name == "workqueue_execute_start", format!("{} {work}", l.pid)))
    }),
    ("block", "request", |l| {
        // 254,0 RA 1024 () 2048 + 8 ...; the sector stands in front of the plus.
        let sector = l.text.split(" + ").next().and_then(|head| head.rsplit(' ').next()).unwrap_or_default();
        let device = l.text.split(' ').next().unwrap_or_default();
        let is = l.name == "block_rq_issue" || l.name == "block_rq_complete";
        is.then(|| (l.name == "block_rq_issue", format!("{device} {sector}")))
    }),
];

/// Count and total by a reckoning.
fn reckoned(lines: &[Line], rule: &Rule) -> (u64, u64) {
    let mut open: HashMap<String, Vec<u64>> = HashMap::new();
    let (mut count, mut total) = (0, 0);
    for line in lines {
        match rule.2(line) {
            Some((true, key)) => open.entry(key).or_default().push(line.ns),
            Some((false, key)) => {
                if let Some(since) = open.get_mut(&key).and_then(Vec::pop) {
                    (count, total) = (count + 1, total + line.ns - since);
                }
            }
            None => {}
        }
    }
    (count, total)
}

fn plotted(view: &str, path: &Path) -> Option<Value> {
    let ran = schedviz(&["plot", view, path.to_str().expect("a path"), "--json", "-q"]);
    if ran.code != Some(0) {
        let is_absent = ["never occurs", "has none of the events", "has no event"];
        assert!(is_absent.iter().any(|why| ran.stderr.contains(why)), "{view} {}: {}", path.display(), ran.stderr);
        return None;
    }
    Some(serde_json::from_slice(&ran.stdout).expect("JSON"))
}

/// A wakeup ends with the switch to the woken task, whose field has another name. By hand: task 7 is woken at 1,000 ns and runs at 1,500;
/// task 8 is woken at 1,200 and runs at 2,700; task 9 is woken at 2,800 and does not run.
#[test]
fn an_interval_joins_fields_of_different_names() {
    use sched::{Comm, Cpu, EventKind, Pid, PrevState, SchedEvent, TaskRef, Ts};
    let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") };
    let at = |ts, pid, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(pid), flags: 0, kind };
    let waking = |ts, by, pid| at(ts, by, EventKind::Waking { task: task(pid), target: Cpu(0) });
    let switch = |ts, prev, next| {
        at(ts, prev, EventKind::Switch { prev: task(prev), state: PrevState::RUNNABLE, next: task(next) })
    };
    let events =
        [waking(1_000, 5, 7), waking(1_200, 5, 8), switch(1_500, 5, 7), switch(2_700, 7, 8), waking(2_800, 8, 9)];
    let folder = scratch("plot-names");
    let (trace, spec) = (folder.join("trace.dat"), folder.join("wakeups.toml"));
    std::fs::write(&trace, testkit::TraceBuilder::default().events(&events).build()).expect("written");
    let text = "[[interval]]\nname = 'wakeup'\nbegin = 'sched:sched_waking'\nend = 'sched:sched_switch'\nmatch = ['pid = next_pid']\n";
    std::fs::write(&spec, text).expect("written");
    let (trace, spec) = (trace.to_str().expect("a path"), spec.to_str().expect("a path"));
    let json: Value =
        serde_json::from_slice(&schedviz(&["plot", spec, trace, "--json", "-q"]).success().stdout).expect("JSON");
    let found = &json["intervals"][0];
    assert_eq!((found["count"].as_u64(), found["total_ns"].as_u64()), (Some(2), Some(500 + 1_500)), "{found}");
    let printed = schedviz(&["plot", "--explain", spec]).success().text();
    assert!(
        crate::support::unwrapped(&printed)
            .contains("to the next sched:sched_switch whose next_pid is the pid of its beginning"),
        "{printed}"
    );
}

#[test]
fn views_agree_with_a_reckoning_over_the_report() {
    let wanted =
        ["irq.dat", "lock-pi.dat", "timer-power.dat", "workqueue.dat", "syscalls.dat", "block.dat", "every-7.2.dat"];
    let chosen = |path: &std::path::PathBuf| wanted.iter().any(|name| path.ends_with(name));
    let mut compared = 0;
    for path in recordings().into_iter().filter(chosen) {
        let Some(lines) = reported(&path) else { continue };
        for rule in &RULES {
            let (count, total) = reckoned(&lines, rule);
            let Some(json) = plotted(rule.0, &path) else {
                assert_eq!(count, 0, "{} {}", path.display(), rule.1);
                continue;
            };
            let intervals = json["intervals"].as_array().expect("intervals");
            let Some(found) = intervals.iter().find(|i| i["name"] == rule.1) else {
                assert_eq!(count, 0, "{} {}", path.display(), rule.1);
                continue;
            };
            let ours = (found["count"].as_u64(), found["total_ns"].as_u64());
            assert_eq!(ours, (Some(count), Some(total)), "{} {}", path.display(), rule.1);
            compared += u64::from(count > 0);
        }
    }
    assert!(compared >= 6 || Command::new("trace-cmd").output().is_err(), "only {compared} compared");
}

/// Sections and functions are those that `events` finds by rules of its own.
#[test]
fn spans_are_those_of_events() {
    let of = |arguments: &[&str], list: &str| -> Vec<(String, u64, u64)> {
        let json: Value = serde_json::from_slice(&schedviz(arguments).success().stdout).expect("JSON");
        let row = |r: &Value| {
            let number = |name: &str| r[name].as_u64().expect("a number");
            (r["name"].as_str().expect("a name").to_owned(), number("count"), number("total_ns"))
        };
        json[list].as_array().expect("rows").iter().map(row).collect()
    };
    let sum = |rows: &[(String, u64, u64)], of: &dyn Fn(&str) -> bool| {
        let rows = rows.iter().filter(|row| of(&row.0));
        rows.fold((0, 0), |(n, ns), (_, count, total)| (n + count, ns + total))
    };
    let pairs = fixture("marker-pairs.dat");
    let pairs = pairs.to_str().expect("a path");
    let (ours, theirs) =
        (of(&["plot", "markers", pairs, "--json", "-q"], "intervals"), of(&["events", pairs, "--json", "-q"], "spans"));
    assert_eq!(sum(&ours, &|name| name == "section"), sum(&theirs, &|name| name.starts_with("compute")));
    assert_eq!(sum(&ours, &|name| name == "pair"), sum(&theirs, &|name| name.starts_with("barrier")));
    let functions = fixture("fgraph-newidle.dat");
    let functions = functions.to_str().expect("a path");
    let count = of(&["plot", "balancer", functions, "--json", "-q"], "intervals")[0].1;
    let spans = of(&["events", functions, "--json", "-q"], "spans");
    assert_eq!(count, spans.iter().map(|span| span.1).sum::<u64>());
    assert!(count > 100 && sum(&ours, &|_| true).0 > 50);
}

/// A figure of one CPU's events by kind, as a specification: counts and shares are those of `events`.
#[test]
fn points_are_those_of_events() {
    let folder = scratch("plot-points");
    let kinds = ["sched_migrate_task", "sched_wakeup_new", "sched_process_exit"];
    let spec: String = kinds.iter().map(|kind| format!("[[point]]\nevent = 'sched:{kind}'\n")).collect();
    let path = folder.join("one-cpu.toml");
    std::fs::write(&path, spec).expect("written");
    let trace = fixture("hackbench.dat");
    let (path, trace) = (path.to_str().expect("a path"), trace.to_str().expect("a path"));
    let json =
        |arguments: &[&str]| -> Value { serde_json::from_slice(&schedviz(arguments).success().stdout).expect("JSON") };
    let ours = json(&["plot", path, trace, "--cpus", "1", "--json", "-q"]);
    let events = kinds.map(|kind| format!("sched:{kind}")).join(",");
    let theirs = json(&["events", trace, "--cpus", "1", "--events", &events, "--json", "-q"]);
    for point in ours["points"].as_array().expect("points") {
        let name = format!("sched:{}", point["name"].as_str().expect("a name"));
        let kind = theirs["kinds"].as_array().and_then(|kinds| kinds.iter().find(|kind| kind["name"] == *name));
        let kind = kind.unwrap_or_else(|| panic!("{name}"));
        assert_eq!((&point["count"], &point["percent"]), (&kind["count"], &kind["percent"]), "{name}");
    }
    assert!(ours["points"][0]["count"].as_u64() > Some(0), "{ours}");
}

#[test]
fn the_table_of_intervals_adds_up() {
    let trace = fixture("every-7.2.dat");
    let trace = trace.to_str().expect("a path");
    let csv = schedviz(&["plot", "irq", trace, "-q", "-o", "-", "--format", "csv"]).success().text();
    let json = plotted("irq", Path::new(trace)).expect("a report");
    for interval in json["intervals"].as_array().expect("intervals") {
        let name = interval["name"].as_str().expect("a name");
        let rows = csv.lines().filter(|line| line.starts_with(&format!("{name},")));
        let lengths: Vec<u64> =
            rows.map(|row| row.split(',').nth(2).expect("a length").parse().expect("a number")).collect();
        let ours = (interval["count"].as_u64(), interval["total_ns"].as_u64());
        assert_eq!(ours, (Some(lengths.len() as u64), Some(lengths.iter().sum())), "{name}");
    }
}

#[test]
fn pages_and_figures_stay_as_they_are() {
    let (markers, every) = (fixture("marker-pairs.dat"), fixture("every-7.2.dat"));
    let (markers, every) = (markers.to_str().expect("a path"), every.to_str().expect("a path"));
    let svg = |view: &str, trace: &str| schedviz(&["plot", view, trace, "-q", "-o", "-", "--format", "svg"]).success();
    golden("plot-markers.svg", &svg("markers", markers).text());
    golden("plot-irq.svg", &svg("irq", every).text());
    let text = ["irq", "syscalls", "power"]
        .map(|view| schedviz(&["plot", view, every, "-q", "-o", "-", "--format", "txt"]).success().text());
    golden("plot.txt", &text.concat());
    let threads = |n: &str| schedviz(&["plot", "syscalls", every, "--json", "-q", "--threads", n]).success().stdout;
    assert!(threads("1") == threads("4"));
}

#[test]
fn specifications_list_explain_and_print_themselves() {
    let list = schedviz(&["plot", "--list"]).success().text();
    assert_eq!(list.lines().count(), 10);
    let printed = schedviz(&["plot", "locks", "--print"]).success().text();
    let folder = scratch("plot-copy");
    let copy = folder.join("mine.toml");
    std::fs::write(&copy, &printed).expect("written");
    let explained = |of: &str| schedviz(&["plot", of, "--explain"]).success().text();
    assert_eq!(explained("locks"), explained(copy.to_str().expect("a path")));
    assert!(explained("locks").contains("of the same task and lock_addr, coloured by kind"));
}

#[test]
fn errors_name_the_place_and_the_remedy() {
    let folder = scratch("plot-errors");
    let trace = fixture("every-7.2.dat");
    let trace = trace.to_str().expect("a path");
    let fails = |spec: &str| {
        let path = folder.join("wrong.toml");
        std::fs::write(&path, spec).expect("written");
        let ran = schedviz(&["plot", path.to_str().expect("a path"), trace]);
        assert_eq!(ran.code, Some(1), "{spec}");
        ran.stderr
    };
    for (spec, place, remedy) in [
        ("[[point]]\nevent = 'irq:softirq_entri'", "line 2, column 9", "nearest: irq:softirq_entry"),
        ("[[point]]\nevent = 'irq:softirq_entry'\nwhere = 'vek == 1'", "line 3, column 10", "nearest: vec"),
        ("[[point]]\nevent = 'irq:softirq_entry'\nwhere = 'vec == \"x\"'", "line 3, column 14", "never compare"),
        ("[[interval]]\nbegin = 'irq:softirq_entry'", "line 1, column 1", "begin and end"),
        ("[[interval]]\nbegin = 'irq:softirq_entry'\nend = 'power:suspend_resume'", "line 3, column 7", "never occurs"),
        ("[[point]\n", "line 1", ""),
    ] {
        let message = fails(spec);
        assert!(message.contains(place) && message.contains(remedy), "{spec}: {message}");
    }
    let ran = schedviz(&["plot", "lokcs", trace]);
    assert!(ran.code == Some(1) && ran.stderr.contains("locks, markers"), "{}", ran.stderr);
}

/// The schema has every key that the reader takes, and no other; the specifications that come with the program conform.
#[test]
fn the_schema_agrees_with_the_reader() {
    let schema: Value = serde_json::from_slice(&schedviz(&["plot", "--schema"]).success().stdout).expect("JSON");
    let list = schedviz(&["plot", "--list"]).success().text();
    for name in list.lines().filter_map(|line| line.split_whitespace().next()) {
        let source = schedviz(&["plot", name, "--print"]).success().text();
        let table: toml::Table = toml::from_str(&source).expect("TOML");
        conforms(&serde_json::to_value(table).expect("a value"), &schema, name);
    }
    let folder = scratch("plot-schema");
    let path = folder.join("spec.toml");
    let message = |spec: &str| {
        std::fs::write(&path, spec).expect("written");
        schedviz(&["plot", path.to_str().expect("a path"), "--explain"]).stderr
    };
    let tables = [
        ("lanes", "[lanes]", "/properties/lanes"),
        ("interval", "[[interval]]", "/properties/interval/items"),
        ("point", "[[point]]", "/properties/point/items"),
        ("series", "[[series]]", "/properties/series/items"),
    ];
    for (name, head, at) in tables {
        // The reader lists the keys that it takes.
        let expected = message(&format!("{head}\nnonsense = 1\n"));
        let keys = expected.split("expected one of").nth(1).unwrap_or_else(|| panic!("{name}: {expected}"));
        let mut taken: Vec<&str> = keys.split('`').skip(1).step_by(2).collect();
        taken.sort_unstable();
        let properties = schema.pointer(at).and_then(|table| table["properties"].as_object()).expect("a table");
        let mut known: Vec<&str> = properties.keys().map(String::as_str).collect();
        known.sort_unstable();
        assert_eq!(taken, known, "{name}");
    }
}

/// The number and the count of each value of an interval of a view.
fn by_value(view: &str, path: &Path, interval: &str) -> BTreeMap<String, u64> {
    let json = plotted(view, path).expect("a figure");
    let intervals = json["intervals"].as_array().expect("intervals");
    let by = intervals.iter().find(|i| i["name"] == interval).expect(interval)["by"].as_array().expect("values");
    by.iter()
        .map(|v| (v["value"].as_str().expect("a text").to_owned(), v["count"].as_u64().expect("a count")))
        .collect()
}

/// Softirqs by the names in the print format; system calls by the names of the events that the kernel has for each of them.
#[test]
fn numbers_of_the_kernel_have_names() {
    let every = fixture("every-7.2.dat");
    let softirqs = by_value("irq", &every, "softirq");
    // Counted in the text of `trace-cmd report`.
    let expected = [("NET_RX", 5), ("RCU", 69), ("SCHED", 72), ("TIMER", 19)];
    assert_eq!(softirqs, expected.map(|(name, count)| (name.to_owned(), count)).into());
    let (raw, named) = (by_value("syscalls", &every, "system call"), by_value("syscalls", &every, "named system call"));
    let both = raw.iter().filter_map(|(name, count)| Some((name, count, named.get(name)?)));
    let both: Vec<_> = both.collect();
    assert!(both.len() > 25 && both.iter().all(|(_, ours, theirs)| ours == theirs), "{both:?}");
    assert!(raw.keys().all(|name| !name.bytes().all(|byte| byte.is_ascii_digit())), "{raw:?}");
}
