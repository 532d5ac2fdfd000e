//! `schedviz offcpu`: stacks against trace-cmd's own text, and sums against all time off-CPU.

use crate::support::{fixture, schedviz};
use offcpu::{OffCpu, OffCpuReport, OffCpuTime, Options, StackKind, folded};
use parse::{StackFrame, StackedEvent, Trace};
use sched::{Analysis, Pass, Pid, Span, TaskState, Ts};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Recordings with stacks: a fixture, and more where the folder of recordings is there.
fn stacked() -> Vec<PathBuf> {
    let mut paths = vec![fixture("rt-5.10.dat")];
    if let Some(folder) = std::env::var_os("SCHEDVIZ_TRACES") {
        let names = ["6.12-stack-option", "7.2-stack-option", "6.12-stack-trigger", "7.2-stack-trigger"];
        paths.extend(names.map(|name| Path::new(&folder).join(format!("extra/newer/{name}.dat"))));
    }
    paths
}

fn open(path: &Path) -> Trace {
    Trace::open(path, parse::Options::default()).expect("a readable recording")
}

/// The stacks behind switches in the text of `trace-cmd report`, sorted: each as its CPU and its frames.
fn by_trace_cmd(path: &Path) -> Option<Vec<(u32, Vec<String>)>> {
    let ran = Command::new("trace-cmd").arg("report").arg(path).output().ok()?;
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let cpu = |line: &str| line.split_once('[')?.1.split_once(']')?.0.parse::<u32>().ok();
    // Whether the last event of each CPU is a switch.
    let mut is_switch = vec![false; 4096];
    let mut stacks: Vec<(u32, Vec<String>)> = Vec::new();
    let mut is_taken = false;
    for line in text.lines() {
        if let Some(frame) = line.strip_prefix("=> ") {
            if is_taken && let Some((_, frames)) = stacks.last_mut() {
                frames.push(frame.split(' ').next().unwrap_or_default().to_owned());
            }
            continue;
        }
        is_taken = false;
        let Some(cpu) = cpu(line) else { continue };
        if line.contains(" kernel_stack: ") {
            is_taken = is_switch[cpu as usize];
            stacks.extend(is_taken.then(|| (cpu, Vec::new())));
        } else {
            is_switch[cpu as usize] = line.contains(" sched_switch: ");
        }
    }
    stacks.sort();
    Some(stacks)
}

#[test]
fn frames_are_those_that_trace_cmd_prints() {
    for path in stacked() {
        let Some(expected) = by_trace_cmd(&path) else { return };
        let trace = open(&path);
        let stacks = trace.event_stacks(&[StackedEvent::Switch]);
        let mut found: Vec<(u32, Vec<String>)> = Vec::new();
        for event in crate::support::events(&trace) {
            let sched::EventKind::Switch { prev, .. } = event.kind else { continue };
            let Some(id) = stacks.of_switch(event.ts, event.cpu, prev.pid) else { continue };
            let name = |frame: &StackFrame| match trace.function_at(frame.address) {
                Some((name, _)) => name.to_owned(),
                None => format!("{:x}", frame.address),
            };
            found.push((event.cpu.0, stacks.frames(id).iter().filter(|frame| !frame.is_user).map(name).collect()));
        }
        found.sort();
        assert!(!found.is_empty() && stacks.beyond_limit() == 0, "{}", path.display());
        assert_eq!(found.len(), expected.len(), "{}", path.display());
        let differ = found.iter().zip(&expected).find(|(ours, theirs)| ours != theirs);
        assert_eq!(differ, None, "{}", path.display());
    }
}

/// All time asleep, and runnable on observed CPUs, without the sleeps that go on as the trace begins.
#[derive(Default)]
struct AllTime(u64, u64, Option<Ts>);

impl Analysis for AllTime {
    type Output = (u64, u64);

    fn begin(&mut self, start: Ts, _: &sched::SchedState) {
        self.2 = Some(start);
    }

    fn span(&mut self, span: &Span, state: &sched::SchedState) {
        match span.state {
            TaskState::Asleep(_) if !span.begun && self.2 == Some(span.start) => {}
            TaskState::Asleep(_) => self.0 += span.duration().0,
            TaskState::Waiting(cpu) if state.is_observed(cpu) => self.1 += span.duration().0,
            _ => {}
        }
    }

    fn finish(self, _: Ts, _: &sched::SchedState) -> (u64, u64) {
        (self.0, self.1)
    }
}

#[test]
fn every_nanosecond_is_at_a_stack_or_in_the_row_without_one() {
    let without = ["hackbench.dat", "mask.dat", "hotplug.dat", "perf-z.data"].map(fixture);
    let mut paths: Vec<(PathBuf, bool)> = stacked().into_iter().map(|path| (path, true)).collect();
    paths.extend(without.into_iter().map(|path| (path, false)));
    if let Some(folder) = std::env::var_os("SCHEDVIZ_TRACES") {
        paths.push((Path::new(&folder).join("extra/linux-6.12-c8-n2/perf/perf-callchain.data"), true));
    }
    for (path, has_stacks) in paths {
        let source = parse::Source::Memory(std::fs::read(&path).expect("a file"));
        let options = parse::Options::default();
        let trace = recordings::of_source(source, options).expect("a readable recording");
        assert_eq!(trace.has_stacks(), has_stacks, "{}", path.display());
        let events = || trace.events().expect("events");
        let (asleep, runnable) = Pass::over(events()).run(AllTime::default).expect("a pass").output;
        let options =
            Options { stacks: trace.event_stacks(&StackedEvent::ALL), time: OffCpuTime::Both, ..Options::default() };
        let report = Pass::over(events()).run(|| OffCpu::new(&options)).expect("a pass").output;
        let found = (report.asleep_ns.expect("time").0, report.runnable_ns.expect("time").0);
        assert_eq!(found, (asleep, runnable), "{}", path.display());
        let sum: u64 = folded(&report).lines().filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum();
        assert_eq!(sum, asleep + runnable, "{}", path.display());
        let is_without = report.stacks.iter().all(|row| row.kind == StackKind::NoStack);
        assert_eq!((report.with_stack == Some(0), is_without), (!has_stacks, !has_stacks), "{}", path.display());
    }
}

#[test]
fn a_recording_without_stacks_is_named_so() {
    let path = fixture("hackbench.dat");
    let path = path.to_str().expect("a path");
    let text = crate::support::unwrapped(&schedviz(&["offcpu", "-q", path]).success().text());
    let answer = "hackbench.dat: no switch has a stack: record them with schedviz record --stacks, trace-cmd record -T";
    assert!(text.contains(answer), "{text}");
    // The times of commands are known nevertheless, and no row speaks of stacks.
    assert!(text.contains("the commands") && text.contains("trace-cmd") && !text.contains("no stack "), "{text}");
    // Folded stacks, and a figure of both stacks, would be of nothing else than the words "[no stack]".
    let refused = schedviz(&["offcpu", "-q", path, "--folded"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("no switch has a stack: record them with"), "{}", refused.stderr);
    let both = ["offcpu", "-q", path, "--by", "both", "-o", "-", "--format", "svg"];
    let figure = schedviz(&both).success().text();
    assert!(figure.contains("no switch has a stack") && !figure.contains("[no stack]"), "{figure}");
}

#[test]
fn waiting_for_an_unobserved_cpu_is_unknown_time() {
    // Two CPUs of four were recorded.
    let [stacks, members] = ["offcpu", "fairness"].map(|command| document(&[command], "mask.dat"));
    let waited = members["members"].as_array().expect("members").iter().map(|member| member["wait_ns"].as_u64());
    assert_eq!(stacks["runnable_ns"].as_u64(), waited.sum::<Option<u64>>());
}

/// The times and the numbers of a report by command, kind and waker.
fn sums(report: &OffCpuReport) -> BTreeMap<String, (u64, u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
    for row in &report.stacks {
        let sum = sums.entry(format!("{} {:?}", row.command, row.frames)).or_default();
        *sum = (
            sum.0 + row.asleep_ns.unwrap_or_default().0,
            sum.1 + row.runnable_ns.unwrap_or_default().0,
            sum.2 + row.switches,
        );
    }
    // A row without time can come from a span of no length.
    sums.retain(|_, sum| *sum != (0, 0, 0));
    sums
}

#[test]
fn adjacent_windows_add_up_row_by_row() {
    let mut rng = testkit::Rng::new(54);
    for path in [fixture("hackbench.dat"), fixture("mask.dat"), fixture("rt-5.10.dat")] {
        let trace = open(&path);
        let (start, end) = trace.extent().expect("events");
        let third = |nth: i64| Ts(start.0 + (end.0 - start.0) * nth / 3 + rng.below(1000) as i64);
        let edges: Vec<Ts> = [1, 2].map(third).to_vec();
        let options = Options { stacks: trace.event_stacks(&StackedEvent::ALL), ..Options::default() };
        let of = |from: Option<Ts>, to: Option<Ts>| {
            let pass = Pass::over(trace.events().expect("events")).window(sched::Window { from, to });
            sums(&pass.run(|| OffCpu::new(&options)).expect("a pass").output)
        };
        let whole = of(None, None);
        let parts = [(None, Some(edges[0])), (Some(edges[0]), Some(edges[1])), (Some(edges[1]), None)];
        let mut all: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
        for (from, to) in parts {
            for (name, (asleep, runnable, switches)) in of(from, to) {
                let sum = all.entry(name).or_default();
                *sum = (sum.0 + asleep, sum.1 + runnable, sum.2 + switches);
            }
        }
        assert_eq!(all, whole, "{}", path.display());
    }
}

/// The keys that the parser of LKP's monitor `perf-sched` makes of the text of `perf sched timehist -g`, by its own rules.
fn by_lkp(text: &str) -> BTreeSet<String> {
    // The wait, the delay and both of each line, in microseconds.
    let mut lines: BTreeMap<String, Vec<[u64; 3]>> = BTreeMap::new();
    for line in text.lines().filter(|line| line.contains(" <- ")) {
        let joined = line.replace(" <- ", ".");
        let words: Vec<&str> = joined.split_whitespace().collect();
        let key = words[words.len() - 1].split('.').take(5).collect::<Vec<_>>().join(".");
        let micros = |word: &str| (word.parse::<f64>().expect("a time") * 1000.0).round() as u64;
        let (wait, delay) = (micros(words[words.len() - 4]), micros(words[words.len() - 3]));
        lines.entry(key).or_default().push([wait, delay, wait + delay]);
    }
    let all: Vec<[u64; 3]> = lines.values().flatten().copied().collect();
    let mean = |lines: &[[u64; 3]], kind: usize| {
        let sum: u64 = lines.iter().map(|line| line[kind]).sum();
        (sum as f64 / lines.len() as f64).round() / 1000.0
    };
    let most = |lines: &[[u64; 3]], kind: usize| lines.iter().map(|line| line[kind]).max().unwrap_or(0) as f64 / 1000.0;
    let mut keys = BTreeSet::new();
    for (kind, name) in ["wait_time", "sch_delay", "wait_and_delay"].into_iter().enumerate() {
        keys.insert(format!("perf-sched.total_{name}.max.ms: {:?}", most(&all, kind)));
        keys.insert(format!("perf-sched.total_{name}.average.ms: {:?}", mean(&all, kind)));
        for (key, lines) in &lines {
            let is_left_out = mean(lines, kind) < mean(&all, kind) && lines.len() < all.len() / 200;
            if kind == 2 && is_left_out {
                continue;
            }
            keys.insert(format!("perf-sched.{name}.max.ms.{key}: {:?}", most(lines, kind)));
            keys.insert(format!("perf-sched.{name}.avg.ms.{key}: {:?}", mean(lines, kind)));
            if kind == 2 {
                keys.insert(format!("perf-sched.{name}.count.{key}: {}", lines.len()));
            }
        }
    }
    keys.insert(format!("perf-sched.total_wait_and_delay.count.ms: {}", all.len()));
    keys
}

#[test]
fn keys_for_lkp_are_those_of_its_parser_on_the_text_of_perf() {
    let [trace, symbols, text] = ["data", "kallsyms", "timehist.txt"].map(|end| fixture(&format!("perf-stacks.{end}")));
    let path = |path: &Path| path.to_str().expect("a path").to_owned();
    let arguments = ["offcpu", "-q", &path(&trace), "--kallsyms", &path(&symbols), "--format", "lkp"];
    let found: BTreeSet<String> = schedviz(&arguments).success().text().lines().map(str::to_owned).collect();
    let expected = by_lkp(&std::fs::read_to_string(text).expect("a text"));
    let differ: Vec<&String> = found.symmetric_difference(&expected).collect();
    assert!(differ.is_empty() && found.len() > 50, "{differ:#?}");
}

/// The time off the CPU by stack in the text of `perf sched timehist -g`, each sum in microseconds with the number of times in it.
///
/// A line is the end of a run: the instant, the time since the switch-out before (*wait time*), the *run time*, and the stack with which the task
/// leaves its CPU. The wait time of a line is at the stack of the line before of the same task: stacks are summed by the frames that perf
/// prints, at most seven without three of the scheduler, all frames of programs as `[unknown]`. perf forgets the times of a task that ends, and
/// its PID: the end of its run less the run time takes their place. `task_at` names the task that leaves a CPU at a microsecond; the
/// recording ends at the microsecond `end`.
fn by_timehist(text: &str, task_at: impl Fn(u64, u32) -> Option<Pid>, end: u64) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut add = |stack: &str, micros: u64| {
        let sum = sums.entry(stack.to_owned()).or_default();
        *sum = (sum.0 + micros, sum.1 + 1);
    };
    // Milliseconds and seconds have a point before their microseconds.
    let micros = |word: &str| word.replace('.', "").parse::<u64>().expect("a time");
    let mut last: BTreeMap<Pid, (u64, String)> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbers = words.windows(3).skip(2).position(|words| words.iter().all(|word| word.parse::<f64>().is_ok()));
        let Some(first) = numbers.map(|place| place + 2) else { continue };
        let (at, stack) = (micros(words[0]), words[first + 3..].join(" "));
        let task = task_at(at, words[1].trim_matches(['[', ']']).parse().expect("a CPU")).expect("a switch");
        let ends = stack.starts_with("do_task_dead ");
        if let Some((left, before)) = last.remove(&task) {
            let wait = if ends { at - micros(words[first + 2]) - left } else { micros(words[first]) };
            add(&before, wait);
        }
        if !ends {
            last.insert(task, (at, stack));
        }
    }
    // The time that goes on as the recording ends is in no line.
    last.values().for_each(|(left, stack)| add(stack, end - left));
    sums
}

#[test]
fn totals_by_stack_are_those_of_the_text_of_perf() {
    let [data, symbols, text] = ["data", "kallsyms", "timehist.txt"].map(|end| fixture(&format!("perf-stacks.{end}")));
    let symbols = symbols.to_str().expect("a path").to_owned();
    let report = document(&["offcpu", "--user", "--kallsyms", &symbols], "perf-stacks.data");
    let source = parse::Source::Memory(std::fs::read(&data).expect("a file"));
    let trace = perfdata::open(source, parse::Options::default()).expect("a readable recording");
    let mut switches: BTreeMap<(u64, u32), Pid> = BTreeMap::new();
    for event in crate::support::events(&trace) {
        if let sched::EventKind::Switch { prev, .. } = event.kind {
            switches.insert((event.ts.0 as u64 / 1000, event.cpu.0), prev.pid);
        }
    }
    let end = report["to_ns"].as_u64().expect("an end") / 1000;
    let text = std::fs::read_to_string(text).expect("a text");
    let expected = by_timehist(&text, |at, cpu| switches.get(&(at, cpu)).copied(), end);
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for row in report["stacks"].as_array().expect("stacks") {
        let frames: Vec<&str> =
            row["frames"].as_array().into_iter().flatten().filter_map(|frame| frame.as_str()).collect();
        let names = frames.iter().take(7).map(|name| if name.contains("0x") { "[unknown]" } else { name });
        let names: Vec<&str> =
            names.filter(|name| !["schedule", "__schedule", "preempt_schedule"].contains(name)).collect();
        let ns = |key: &str| row[key].as_u64().expect("a time");
        *found.entry(names.join(" <- ")).or_default() += ns("asleep_ns") + ns("runnable_ns");
    }
    // Time without a stack; no run ends with it in the text.
    found.remove("");
    // perf itself, while it switches the events on CPU by CPU: switches are missing.
    let is_missing = |stack: &str| stack.contains(" affine_move_task ");
    found.retain(|stack, ns| *ns > 0 && !is_missing(stack));
    let known: Vec<_> = expected.iter().filter(|(stack, _)| !is_missing(stack)).collect();
    assert!(found.len() >= 12 && found.keys().eq(known.iter().map(|(stack, _)| *stack)), "{found:#?} {expected:#?}");
    for (stack, (sum, times)) in known {
        // Each number of the text is cut to microseconds.
        let exact = found[stack];
        assert!(
            exact + 1000 >= sum * 1000 && exact <= (sum + times + 1) * 1000,
            "{stack}: {exact} ns, {sum} µs of {times}"
        );
    }
}

#[test]
fn functions_of_programs_are_found_by_the_maps_of_perf() {
    let trace = fixture("perf-stacks.data");
    let text = schedviz(&["offcpu", "-q", trace.to_str().expect("a path"), "--user", "--folded"]).success().text();
    // The program is not here: its frames are places in the file.
    assert!(text.lines().any(|line| line.starts_with("period;") && line.contains(";periodic+0x")), "{text}");
}

#[test]
fn wakeups_are_joined_by_futex() {
    let trace = fixture("perf-stacks.data");
    let text = schedviz(&["wakers", "-q", trace.to_str().expect("a path"), "--futex"]).success().text();
    let between = |from: &str, to: &str| {
        text.lines().any(|line| {
            line.starts_with("0x") && line.contains(&format!("{from} ")) && line.contains(&format!("→ {to} "))
        })
    };
    assert!(between("ping", "pong") && between("pong", "ping"), "{text}");
}

#[test]
fn a_period_is_found() {
    let trace = fixture("perf-stacks.data");
    let text =
        schedviz(&["jobs", "-q", trace.to_str().expect("a path"), "--all", "--tasks", "^period$"]).success().text();
    assert!(text.contains("period"), "{text}");
}

/// The document of a command on a fixture.
fn document(command: &[&str], name: &str) -> serde_json::Value {
    let path = fixture(name);
    let arguments: Vec<&str> =
        command.iter().copied().chain([path.to_str().expect("a path"), "-q", "--json"]).collect();
    serde_json::from_str(&schedviz(&arguments).success().text()).expect("a document")
}

#[test]
fn waits_by_stack_are_those_of_offcpu_by_the_same_stack() {
    // Whole waits of `latency` in a window that has all of the trace are the time runnable of `offcpu`, but for those open at the ends.
    let latency = document(&["latency", "--by", "stack"], "rt-5.10.dat");
    let rows = latency["rows"].as_array().expect("rows");
    let of = |row: &serde_json::Value, measure: &str| {
        let found = row["measures"].as_array().into_iter().flatten().find(|m| m["measure"] == measure);
        found.map_or(0, |m| m["total_ns"].as_u64().expect("a time"))
    };
    let mut runnable: BTreeMap<String, u64> = BTreeMap::new();
    for row in document(&["offcpu"], "rt-5.10.dat")["stacks"].as_array().expect("stacks") {
        let frames = row.get("frames").filter(|frames| frames.as_array().is_some_and(|frames| !frames.is_empty()));
        let name = frames.map_or(String::new(), ToString::to_string);
        *runnable.entry(name).or_default() += row["runnable_ns"].as_u64().expect("a time");
    }
    let stacked: Vec<&serde_json::Value> = rows.iter().filter(|row| row["group"]["stack"].is_array()).collect();
    assert!(stacked.len() > 20, "{}", stacked.len());
    let mut equal = 0;
    for row in &stacked {
        let waited = of(row, "until-run") + of(row, "preempted") + of(row, "new");
        let all = runnable.get(&row["group"]["stack"].to_string()).copied().unwrap_or(0);
        assert!(waited <= all, "{row} {all}");
        equal += usize::from(waited == all);
    }
    assert!(equal * 10 >= stacked.len() * 9, "{equal} of {}", stacked.len());
    let kinds: BTreeSet<String> =
        stacked.iter().filter_map(|row| Some(row["group"]["name"].as_str()?.split_once(": ")?.0.to_owned())).collect();
    assert!(kinds.contains("lock (kernel)") && kinds.contains("preempted"), "{kinds:?}");
}

#[test]
fn the_path_by_stack_sums_to_the_path() {
    let path = document(&["path", "--by", "stack"], "rt-5.10.dat");
    let sum = |key: &str| {
        let rows = path["groups"]["rows"].as_array().expect("rows");
        rows.iter().map(|row| row[key].as_u64().unwrap_or(0)).sum::<u64>()
    };
    for key in ["running_ns", "queued_ns", "waking_ns", "sleeping_ns", "unknown_ns"] {
        assert_eq!(sum(key), path["times"][key].as_u64().unwrap_or(0), "{key}");
    }
}

#[test]
fn a_run_is_at_the_stack_that_ends_it() {
    // The last runs of tasks that exit end without a stack here, and were at the stack of the switch-out before.
    let runs_at_stacks = |name: &str| {
        let latency = document(&["latency", "--by", "stack"], name);
        let of = |row: &serde_json::Value| {
            let measures = row["measures"].as_array().filter(|_| row["group"]["stack"].is_array());
            let runs = measures.into_iter().flatten().filter(|m| m["measure"] == "run");
            runs.map(|m| m["count"].as_u64().expect("a number")).sum::<u64>()
        };
        latency["rows"].as_array().expect("rows").iter().map(of).sum::<u64>()
    };
    let switches = |name: &str| document(&["offcpu"], name)["with_stack"].as_u64().expect("a number");
    assert_eq!(runs_at_stacks("rt-5.10.dat"), switches("rt-5.10.dat"));
}

/// Symbols of the kernel from a file, in every command that shows stacks: a recording of perf has none of its own.
#[test]
fn every_command_that_shows_stacks_takes_symbols() {
    let [data, symbols] = ["data", "kallsyms"].map(|end| fixture(&format!("perf-stacks.{end}")));
    let [data, symbols] = [&data, &symbols].map(|path| path.to_str().expect("a path"));
    let commands: [&[&str]; 7] = [
        &["offcpu"],
        &["latency", "--by", "stack", "--rows", "1000"],
        &["why", "--by", "stack", "--rows", "1000"],
        &["path", "--by", "stack", "--comm", "perf", "--rows", "1000"],
        &["list", "--stacks"],
        &["stepper", "--text", "--steps", "20"],
        &["stepper", "--json", "--steps", "20"],
    ];
    for command in commands {
        let run = |more: &[&str]| {
            let ran = schedviz(&[&command[..1], &[data, "-q"], &command[1..], more].concat());
            (ran.code, ran.text())
        };
        let (with, without) = (run(&["--kallsyms", symbols]), run(&[]));
        assert_eq!((with.0, without.0), (Some(0), Some(0)), "{command:?}");
        // In a list events have addresses of their own, of modules as well.
        let addresses = |text: &str| text.matches("0xffffffff").count();
        let [named, unnamed] = [&with.1, &without.1].map(|text| addresses(text));
        assert!(unnamed > 0 && named * 20 <= unnamed, "{command:?}: {named} and {unnamed}: {}", with.1);
    }
    // A file that cannot be read is named.
    let ran = schedviz(&["why", data, "--kallsyms", "/nonexistent/kallsyms"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("/nonexistent/kallsyms"), "{}", ran.stderr);
}
