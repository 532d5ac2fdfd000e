//! Each claim of `schedviz findings` is recomputed from the answers of other commands, without anything of the crate `findings`.

use crate::support::{csv, fixture, is_fixture, recordings_in_part, schedviz};
use regex::Regex;
use sched::Dur;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

/// The answers of commands about a recording, each asked once.
pub(crate) struct Answers {
    pub(crate) trace: String,
    asked: RefCell<BTreeMap<String, Rc<Value>>>,
}

impl Answers {
    pub(crate) fn of(path: &Path) -> Answers {
        Answers { trace: path.to_str().expect("UTF-8").to_owned(), asked: RefCell::default() }
    }

    /// The answer of a command with its options as JSON; null where it has none.
    pub(crate) fn ask(&self, command: &str) -> Rc<Value> {
        if let Some(answer) = self.asked.borrow().get(command) {
            return Rc::clone(answer);
        }
        let words: Vec<&str> = command.split(' ').collect();
        let ran = schedviz(&[&words[..1], &[&self.trace], &words[1..], &["--json", "-q"]].concat());
        let answer = Rc::new(serde_json::from_slice(&ran.stdout).unwrap_or(Value::Null));
        self.asked.borrow_mut().insert(command.to_owned(), Rc::clone(&answer));
        answer
    }

    /// The run of `workcons` or `why`.
    pub(crate) fn run(&self, command: &str) -> Value {
        self.ask(command)["runs"][0].clone()
    }

    /// Whether records of throttling that do not show the tasks divide the queued time of the path, which no other command does.
    fn throttles(&self) -> bool {
        list(&self.ask("findings")["findings"]).iter().any(|found| found["observation"]["kind"] == "throttling")
    }

    /// The queued time on the path by its kinds.
    fn path(&self, name: &str) -> u64 {
        self.ask("path")["times"][name].as_u64().unwrap_or(0)
    }
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("a number: {value}"))
}

/// What other commands say in the place of each number of a finding: pairs of the claim and of the number recomputed.
fn recomputed(answers: &Answers, found: &Value) -> Vec<(&'static str, Value)> {
    let seen = &found["observation"];
    match seen["kind"].as_str().expect("a kind") {
        "violation" => violation(answers, seen),
        "held-back" | "unbalanced" => queues(answers, seen),
        "path-queued" => path_queued(answers, seen),
        "waker-queued" => waker_queued(answers, seen),
        "starved" => starved(answers, seen),
        "herds" => herds(answers),
        "slow-wakeups" | "late-command" => wakeups(answers, seen),
        "missed-periods" => missed(answers, seen),
        "behind-cgroup" => behind(answers, seen),
        "interference" => interference(answers),
        "small-cpu" => small(answers),
        "crowded-cores" => {
            let crowded = answers.ask("residency")["crowded"].clone();
            let of = |name: &'static str| (name, crowded[name].clone());
            vec![of("percent"), of("core_time_lost_ns")]
        }
        "path-unknown" => vec![
            ("unknown_ns", answers.ask("path")["times"]["unknown_ns"].clone()),
            ("gaps", answers.ask("path")["gaps"].clone()),
            ("is_untrusted", answers.ask("path")["is_untrusted"].clone()),
        ],
        "losses" => vec![("unknown_percent", answers.run("workcons")["coverage"]["unknown_percent"].clone())],
        "affinity" => affinity(answers, seen),
        // Their numbers have no other command's JSON: the sentence is compared with the numbers alone.
        "throttling" | "not-recorded" => Vec::new(),
        other => panic!("a kind of findings without a check: {other}"),
    }
}

fn violation(answers: &Answers, seen: &Value) -> Vec<(&'static str, Value)> {
    let run = answers.run("workcons");
    let mut claims = vec![
        ("percent", run["violation"]["percent"].clone()),
        ("possible_percent", run["violation"]["possible_percent"].clone()),
        ("cpu_time_lost_ns", run["by_min_episode"][0]["cpu_time_lost_ns"].clone()),
    ];
    // The origin with the most waiting, by the name in JSON: its share is that of the name in words.
    let mut origins: BTreeMap<&str, u64> = BTreeMap::new();
    let why = answers.run("why");
    for row in list(&why["waiting"]["rows"]) {
        *origins.entry(row["began"].as_str().expect("an origin")).or_default() += number(&row["total_ns"]);
    }
    // Causes of a migration divide an origin: no row of an origin without one has more.
    let most = origins.values().max().copied().unwrap_or(0);
    let share = 100.0 * most as f64 / why["waiting"]["total_ns"].as_u64().unwrap_or(1).max(1) as f64;
    let claimed = seen["origin_percent"].as_f64().expect("a share");
    assert!(claimed <= share + 1e-6, "{}: {claimed} of {origins:?}", answers.trace);
    if seen["queued_on_path_ns"].is_u64() && !answers.throttles() {
        claims.push(("queued_on_path_ns", answers.path("queued_ns").into()));
    }
    claims
}

fn queues(answers: &Answers, seen: &Value) -> Vec<(&'static str, Value)> {
    let run = answers.run("workcons");
    if seen["kind"] == "unbalanced" {
        let (found, longest) = (&run["unbalanced"], &run["unbalanced"]["longest"][0]);
        return vec![
            ("percent", found["percent"].clone()),
            ("cpu_ns", found["cpu_ns"].clone()),
            ("episodes", found["episodes"].clone()),
            ("longest_ns", longest["duration_ns"].clone()),
            ("start_in_trace_ns", longest["start_in_trace_ns"].clone()),
            ("difference", longest["difference"].clone()),
        ];
    }
    let longest = &run["pending_switches"][0];
    let mut claims = vec![
        ("percent", run["held_back"]["percent"].clone()),
        ("cpu_ns", run["held_back"]["cpu_ns"].clone()),
        ("times", run["long_pending_switches"].clone()),
        ("longest_ns", longest["duration_ns"].clone()),
        ("start_in_trace_ns", longest["start_in_trace_ns"].clone()),
        ("cpu", longest["cpu"].clone()),
        ("pid", longest["waiting"][0]["pid"].clone()),
        ("command", longest["waiting"][0]["command"].clone()),
    ];
    if seen["on_path_ns"].is_u64() && !answers.throttles() {
        claims.push(("on_path_ns", answers.path("queued_held_back_ns").into()));
    }
    if let Some(wait) = seen.get("wait") {
        let fairness = answers.ask("fairness");
        let is_it = |row: &&Value| row["pid"] == wait["pid"] && row["start_in_trace_ns"] == wait["start_in_trace_ns"];
        let row = list(&fairness["starved"]).iter().find(is_it).expect("the wait is in fairness");
        for claim in ["duration_ns", "held_back_ns", "still_waits", "command"] {
            assert_eq!(wait[claim], row[claim], "{}: {claim}", answers.trace);
        }
    }
    claims
}

fn path_queued(answers: &Answers, seen: &Value) -> Vec<(&'static str, Value)> {
    if answers.path("throttled_ns") == 0 && !answers.throttles() {
        let path = answers.ask("path");
        let length = number(&path["to_ns"]) - number(&path["from_ns"]);
        let claimed = seen["percent"].as_f64().expect("a share");
        let percent = 100.0 * answers.path("queued_ns") as f64 / length as f64;
        assert!((percent - claimed).abs() < 1e-6, "{}: {percent} {claimed}", answers.trace);
        return vec![
            ("queued_ns", answers.path("queued_ns").into()),
            ("beside_idle_ns", answers.path("queued_beside_idle_ns").into()),
            ("held_back_ns", answers.path("queued_held_back_ns").into()),
            ("beside_shorter_ns", answers.path("queued_beside_shorter_ns").into()),
            ("alike_ns", answers.path("queued_alike_ns").into()),
        ];
    }
    Vec::new()
}

/// The task that waited longest beside idle CPUs that it may not use: its queued time of that kind, by a selection of this task.
fn affinity(answers: &Answers, seen: &Value) -> Vec<(&'static str, Value)> {
    if let Some(cpus) = seen.get("confined_to") {
        let found = answers.run("workcons")["confined_to"].clone();
        let found: Vec<u32> = list(&found).iter().map(|cpu| number(cpu) as u32).collect();
        let listed = sched::topology::parse_cpu_list(cpus.as_str().expect("a list")).expect("CPUs");
        assert_eq!(listed.iter().map(|cpu| cpu.0).collect::<Vec<_>>(), found, "{}", answers.trace);
    }
    let Some(most) = seen.get("most") else { return Vec::new() };
    let pid = most["pid"].as_i64().expect("a PID");
    let queued = answers.ask(&format!("fairness --pid {pid}"))["queued"].clone();
    let (claimed, found) = (number(&most["ns"]) as f64, queued["beside_forbidden_ns"].as_f64().unwrap_or(0.0));
    // The kind has waits for a switch in progress as well, of less than 1 ms each; and all sets of CPUs that the task had.
    assert!(claimed <= found && claimed >= 0.5 * found, "{}: {most} {queued}", answers.trace);
    let rows = answers.run("why")["barred"].clone();
    vec![("most", rows[0].clone())]
}

/// The sleeps on the path, as `path` has them.
fn waker_queued(answers: &Answers, seen: &Value) -> Vec<(&'static str, Value)> {
    let path = answers.ask("path");
    let rows = list(&path["sleeps"]);
    let queued = |row: &Value| number(&row["held_up"]["queued_ns"]);
    let is_it = |row: &&Value| row["pid"] == seen["pid"] && row["until"]["pid"] == seen["until_pid"];
    let row = rows.iter().find(is_it).expect("the pair is in path");
    let most = rows.iter().map(queued).max();
    assert_eq!(most, Some(queued(row)), "{}: {seen}", answers.trace);
    let held_up = &row["held_up"];
    assert!(2 * queued(row) >= number(&held_up["slept_ns"]), "{}: {row}", answers.trace);
    vec![
        ("command", row["command"].clone()),
        ("until_command", row["until"]["command"].clone()),
        ("sleeps", held_up["sleeps"].clone()),
        ("slept_ns", held_up["slept_ns"].clone()),
        ("queued_ns", held_up["queued_ns"].clone()),
        ("all_queued_ns", rows.iter().map(queued).sum::<u64>().into()),
    ]
}

fn starved(answers: &Answers, seen: &Value) -> Vec<(&'static str, Value)> {
    let fairness = answers.ask("fairness");
    let is_long = |row: &&Value| number(&row["duration_ns"]) >= 100_000_000;
    let long = list(&fairness["starved"]).iter().filter(is_long).count() as u64;
    assert!(number(&seen["waits"]) <= long, "{}: {seen}", answers.trace);
    let is_it = |row: &&Value| row["pid"] == seen["pid"] && row["start_in_trace_ns"] == seen["start_in_trace_ns"];
    let row = list(&fairness["starved"]).iter().find(is_it).expect("the wait is in fairness");
    vec![
        ("longest_ns", row["duration_ns"].clone()),
        ("command", row["command"].clone()),
        ("cpu", row["cpu"].clone()),
        ("behind", row["antagonists"].get(0).map_or(Value::Null, |most| most[0].clone())),
        ("behind_ns", row["antagonists"].get(0).map_or(0.into(), |most| most[1].clone())),
        ("others_ran_ns", row["others_ran_ns"].clone()),
        ("held_back_ns", row["held_back_ns"].clone()),
        ("could_have_run_ns", row["could_have_run_ns"].clone()),
    ]
}

fn herds(answers: &Answers) -> Vec<(&'static str, Value)> {
    let found = answers.ask("utilization");
    let is_slow = |herd: &&Value| herd["drained_after_ns"].as_u64().is_none_or(|drained| drained >= 1_000_000);
    let herds: Vec<&Value> = list(&found["herds"]).iter().filter(is_slow).collect();
    let most = herds.iter().filter_map(|herd| herd["tasks"].as_u64()).max();
    let largest = herds.iter().find(|herd| herd["tasks"].as_u64() == most).expect("a herd");
    let of = |name: &str| largest[name].clone();
    vec![
        ("herds", herds.len().into()),
        ("tasks", of("tasks")),
        ("orig", of("orig")),
        ("dest", of("dest")),
        ("start_in_trace_ns", of("start_in_trace_ns")),
        ("drained_after_ns", of("drained_after_ns")),
    ]
}

/// Whether a command is judged where there is no application.
pub(crate) fn can_be_judged(command: &str) -> bool {
    let name = sched::Comm::new(command.as_bytes());
    let is_recorder = ["trace-cmd", "schedviz", "perf", "perf-exec"].contains(&command);
    !sched::kthread::is_kernel_thread(name) && !is_recorder
}

/// The wakeups of a command, counted one by one; and the neighbours that it waited for.
fn wakeups(answers: &Answers, seen: &Value) -> Vec<(&'static str, Value)> {
    let one = if seen["kind"] == "slow-wakeups" { seen.get("latest") } else { Some(seen) };
    let all = answers.ask("latency --by command");
    // The application's alone are fewer.
    let claimed = if seen["kind"] == "slow-wakeups" { &seen["wakeups"] } else { &seen["all_wakeups"] };
    assert!(number(claimed) <= number(&all["measures"][0]["count"]), "{}: {seen}", answers.trace);
    if let Some(latest) = one {
        let is_row = |row: &&Value| row["command"] == latest["command"];
        let row = list(&all["rows"]).iter().find(is_row).unwrap_or_else(|| panic!("{}: {latest}", answers.trace));
        let wakeup = list(&row["measures"]).iter().find(|of| of["measure"] == "wakeup").expect("wakeups");
        // Tasks of the same name can be outside of the application.
        assert!(number(&latest["wakeups"]) <= number(&wakeup["count"]), "{}: {latest} {wakeup}", answers.trace);
        assert!(number(&latest["late"]) <= number(&row["late_wakeups"]), "{}: {latest}", answers.trace);
        if latest["wakeups"] == wakeup["count"] {
            assert_eq!(latest["late"], row["late_wakeups"], "{}", answers.trace);
            assert_eq!(latest["p50_ns"], wakeup["p50_ns"], "{}", answers.trace);
            assert_eq!(latest["p99_ns"], wakeup["p99_ns"], "{}", answers.trace);
            assert_eq!(latest["max_ns"], wakeup["max_ns"], "{}", answers.trace);
        }
        let neighbours = answers.ask("neighbours --by command");
        let victims = || list(&neighbours["pairs"]).iter().filter(|pair| pair["victim"] == latest["command"]);
        let queued: u64 = victims().map(|pair| number(&pair["wait_ns"])).sum();
        assert_eq!(number(&latest["queued_ns"]), queued, "{}", answers.trace);
        let is_task = |pair: &&Value| ["tasks", "kernel"].contains(&pair["kind"].as_str().expect("a kind"));
        let most = victims().filter(is_task).map(|pair| number(&pair["wait_ns"])).max();
        assert_eq!(number(&latest["behind_ns"]), most.unwrap_or(0), "{}", answers.trace);
        let behind = victims().find(|pair| pair["culprit"] == latest["behind"]);
        assert_eq!(behind.map(|pair| number(&pair["wait_ns"])), most, "{}: {latest}", answers.trace);
    }
    match seen["waking_on_path_ns"].is_u64() {
        true => vec![("waking_on_path_ns", answers.path("waking_ns").into())],
        false => Vec::new(),
    }
}

fn missed(answers: &Answers, seen: &Value) -> Vec<(&'static str, Value)> {
    let jobs = answers.ask("jobs");
    let rows = list(&jobs["tasks"]);
    let row = rows.iter().find(|row| row["pid"] == seen["pid"]).expect("the task is in jobs");
    // No more than all that have deadlines.
    assert!(number(&seen["jobs"]) <= number(&jobs["judged"]), "{}: {seen}", answers.trace);
    assert!(number(&seen["missed"]) <= number(&jobs["missed"]), "{}: {seen}", answers.trace);
    if let Some(latest) = seen.get("latest") {
        let is_it =
            |job: &&Value| job["pid"] == latest["pid"] && job["release_in_trace_ns"] == latest["release_in_trace_ns"];
        let job = list(&jobs["worst"]).iter().find(is_it).expect("the job is in jobs");
        for claim in ["response_ns", "waited_ns", "run_ns", "command"] {
            assert_eq!(latest[claim], job[claim], "{}: {claim}", answers.trace);
        }
        if latest["behind"].is_i64() {
            assert_eq!(latest["behind"], job["culprits"][0]["pid"], "{}", answers.trace);
            assert_eq!(latest["behind_ns"], job["culprits"][0]["time_ns"], "{}", answers.trace);
        }
    }
    vec![
        ("task_jobs", row["jobs"].clone()),
        ("task_missed", row["missed"].clone()),
        ("deadline_ns", row["deadline_ns"].clone()),
        ("command", row["command"].clone()),
    ]
}

fn behind(answers: &Answers, seen: &Value) -> Vec<(&'static str, Value)> {
    let neighbours = answers.ask("neighbours --by cgroup");
    let is_pair = |pair: &&Value| pair["victim"] == seen["cgroup"] && pair["culprit"] == seen["behind"];
    let pair = list(&neighbours["pairs"]).iter().find(is_pair);
    let fairness = answers.ask("fairness --by cgroup");
    for (share, cgroup) in [("share", "cgroup"), ("behind_share", "behind")] {
        if seen[share].is_null() {
            continue;
        }
        let is_it = |group: &&Value| group["cgroup"] == seen[cgroup];
        let group = list(&fairness["shares"]["groups"]).iter().find(is_it).expect("the cgroup has a share");
        for claim in ["weight", "entitled_ns", "got_ns"] {
            assert_eq!(seen[share][claim], group[claim], "{}: {claim}", answers.trace);
        }
    }
    vec![("behind_ns", pair.map_or(0.into(), |pair| pair["wait_ns"].clone()))]
}

fn interference(answers: &Answers) -> Vec<(&'static str, Value)> {
    let found = answers.ask("fairness");
    let is_outside = |row: &&Value| {
        let name = row["name"].as_str().expect("a name");
        let command = name.rsplit_once(' ').map_or(name, |(command, _)| command);
        row["is_of_application"] == false && !sched::kthread::is_kernel_thread(sched::Comm::new(command.as_bytes()))
    };
    let rows = list(&found["members"]).iter().filter(is_outside);
    vec![("run_ns", rows.map(|row| number(&row["run_ns"])).sum::<u64>().into())]
}

fn small(answers: &Answers) -> Vec<(&'static str, Value)> {
    let run = answers.run("why");
    let rows = list(&run["on_smaller_cpu"]);
    let sum: u64 = rows.iter().map(|row| number(&row["ns"])).sum();
    let most = rows.first().expect("a row");
    vec![
        ("task_ns", sum.into()),
        ("capacity", most["capacity"].clone()),
        ("idle_capacity", most["idle_capacity"].clone()),
    ]
}

/// Every number of a finding as a sentence can have it, and every name.
fn words_of(value: &Value, length: Option<f64>, words: &mut Vec<String>, names: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.values().for_each(|field| words_of(field, length, words, names)),
        Value::Array(fields) => {
            fields.iter().for_each(|field| words_of(field, length, words, names));
        }
        Value::String(name) => names.push(name.clone()),
        Value::Number(number) => {
            let float = number.as_f64().expect("a number");
            words.extend([0, 1, 2].map(|digits| format!("{float:.digits$} %")));
            if let Some(whole) = number.as_u64() {
                words.extend([whole.to_string(), Dur(whole).human(), format!("{:.6} s", whole as f64 / 1e9)]);
                words.extend(length.map(|length| format!("{:.1} %", 100.0 * whole as f64 / length)));
            }
        }
        _ => {}
    }
}

/// The numbers of a sentence that no number of the finding explains.
fn unexplained(sentence: &str, observation: &Value, length: Option<f64>) -> Vec<String> {
    let (mut words, mut names) = (Vec::new(), Vec::new());
    words_of(observation, length, &mut words, &mut names);
    // Shares and differences of two numbers of the finding, and one fewer of a number.
    let mut numbers: Vec<f64> = Vec::new();
    leaves(observation, &mut numbers);
    for a in &numbers {
        words.extend(numbers.iter().flat_map(|b| [0, 1].map(|digits| format!("{:.digits$} %", 100.0 * a / b))));
        words.extend(numbers.iter().filter(|b| *b <= a).map(|b| Dur((a - b) as u64).human()));
        words.push(format!("{}", (a - 1.0) as u64));
    }
    // The thresholds that sentences name.
    words.extend(["4 ms", "100 ms", "1 ms", "99 %"].map(str::to_owned));
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let mut rest = sentence.to_owned();
    let is_name = |name: &&String| name.contains(char::is_numeric) && name.contains(char::is_alphabetic);
    for name in names.iter().filter(is_name) {
        rest = rest.replace(name.as_str(), "").replace(&name.replacen("cgroup", "Cgroup", 1), "");
    }
    // A list of CPUs is no number, nor is that of the task at the end of the path.
    let cpus = Regex::new(r"CPUs? [0-9,/-]+|critical path of .+? [0-9]+ is").expect("an expression");
    let rest = cpus.replace_all(&rest, "");
    let number = Regex::new(r"[0-9]+(\.[0-9]+)?( (ns|µs|ms|s|%))?").expect("an expression");
    let found = number.find_iter(&rest).map(|found| found.as_str().to_owned());
    let is_explained = |word: &String| words.contains(word) || words.contains(&word.trim_end_matches(" s").to_owned());
    found.filter(|word| !is_explained(word)).collect()
}

fn leaves(value: &Value, numbers: &mut Vec<f64>) {
    match value {
        Value::Object(fields) => fields.values().for_each(|field| leaves(field, numbers)),
        Value::Array(fields) => fields.iter().for_each(|field| leaves(field, numbers)),
        Value::Number(number) => numbers.push(number.as_f64().expect("a number")),
        _ => {}
    }
}

/// The first sentence: every share in it is that of a time of the path.
fn first_sentence(answers: &Answers, found: &Value) {
    let consisted = &found["consisted"];
    let Some(sentence) = consisted["sentence"].as_str() else { return };
    let path = answers.ask("path --by command");
    let length = number(&found["path"]["length_ns"]) as f64;
    let row = list(&path["groups"]["rows"]).iter().find(|row| row["command"] == consisted["command"]);
    let row = row.unwrap_or_else(|| panic!("{}: {consisted} in {}", answers.trace, path["groups"]));
    assert_eq!(row["running_ns"], consisted["command_ns"], "{}", answers.trace);
    let most = list(&path["groups"]["rows"]).iter().map(|row| number(&row["running_ns"])).max();
    assert_eq!(most, consisted["command_ns"].as_u64(), "{}", answers.trace);
    let stem = consisted["command"].as_str().expect("a name");
    let sleeps =
        || list(&path["sleeps"]).iter().filter(|row| row["command"] == stem && row["until"]["command"] == stem);
    let slept: u64 = sleeps().map(|row| number(&row["slept_ns"])).sum();
    // Names of one stem that differ are not equal to it.
    let is_name = !stem.contains(['N', '…']);
    let claimed = number(&consisted["command_slept_ns"]);
    assert!(if is_name { claimed == slept } else { claimed >= slept }, "{}: {claimed} {slept}", answers.trace);
    if let Some(tail) = consisted.get("tail") {
        let found = answers.ask("utilization");
        let known = &found["serial_tail"];
        for claim in ["start_in_trace_ns", "length_ns"] {
            assert_eq!(tail[claim], known[claim], "{}: {claim}", answers.trace);
        }
        assert_eq!(number(&tail["cpus"]), list(&found["cpus"]).len() as u64, "{}", answers.trace);
        let words = format!("ran on one CPU of {} at a time", tail["cpus"]);
        assert!(sentence.contains(&words) || tail["cpus"] == 1, "{}: {sentence}", answers.trace);
    }
    let with_times = serde_json::json!({ "times": path["times"], "consisted": consisted, "path": found["path"] });
    let unexplained = unexplained(sentence, &with_times, Some(length));
    assert!(unexplained.is_empty(), "{}: {unexplained:?} in {sentence}", answers.trace);
}

/// Checks all claims about a recording. Returns the kinds of its findings.
fn check(path: &Path) -> Vec<String> {
    let answers = Answers::of(path);
    let found = answers.ask("findings");
    if found.is_null() {
        return Vec::new();
    }
    first_sentence(&answers, &found);
    let length = found["path"]["length_ns"].as_u64().or_else(|| {
        let path = answers.ask("path");
        Some(path["to_ns"].as_u64()? - path["from_ns"].as_u64()?)
    });
    let mut kinds = Vec::new();
    for finding in list(&found["findings"]) {
        let seen = &finding["observation"];
        for (claim, value) in recomputed(&answers, finding) {
            let claimed = &seen[claim];
            let is_alike = match (claimed.as_f64(), value.as_f64()) {
                (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs().max(1.0),
                _ => *claimed == value,
            };
            assert!(is_alike, "{}: {claim} is {claimed}, and {value} elsewhere: {seen}", answers.trace);
        }
        let sentence = finding["sentence"].as_str().expect("a sentence");
        let unexplained = unexplained(sentence, seen, length.map(|ns| ns as f64));
        assert!(unexplained.is_empty(), "{}: {unexplained:?} in {sentence}", answers.trace);
        kinds.push(seen["kind"].as_str().expect("a kind").to_owned());
    }
    kinds
}

#[test]
fn every_claim_is_that_of_another_command() {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let always = ["affine.dat", "rebound-6.12.dat", "cgroup-cpumax.dat", "clock-mono.dat"].map(fixture);
    let others = recordings_in_part(9).into_iter().filter(|path| !always.contains(path));
    for path in always.iter().cloned().chain(others) {
        for kind in check(&path) {
            *kinds.entry(kind).or_default() += 1;
        }
    }
    for kind in ["violation", "held-back", "slow-wakeups", "affinity", "herds", "throttling", "unbalanced"] {
        assert!(kinds.contains_key(kind) || std::env::var_os("SCHEDVIZ_ONLY").is_some(), "no {kind}: {kinds:?}");
    }
}

#[test]
fn late_wakeups_are_those_that_can_be_counted_one_by_one() {
    // No application, so that all tasks but kernel threads are judged.
    let path = fixture("mask.dat");
    let answers = Answers::of(&path);
    let found = answers.ask("findings");
    let is_late = |found: &&Value| found["observation"]["kind"] == "late-command";
    let late = &list(&found["findings"]).iter().find(is_late).expect("a late command")["observation"];
    let table = schedviz(&["export", "--csv", "-", "--tables", "wakeup", &answers.trace, "-q"]).success().text();
    let rows = csv(&table);
    let judged = rows.iter().filter(|row| row["kind"] == "wakeup" && can_be_judged(&row["command"]));
    // Where the waking was not seen, the wakeup counts from the run queue on.
    let latency = |row: &BTreeMap<String, String>| {
        let known = if row["latency_ns"].is_empty() { "until_run_ns" } else { "latency_ns" };
        row[known].parse::<u64>().expect("a latency")
    };
    let judged = judged.filter(|row| !row["latency_ns"].is_empty());
    let all: Vec<u64> = judged.clone().map(latency).collect();
    assert_eq!(number(&late["all_wakeups"]), all.len() as u64, "{late}");
    let own: Vec<u64> = judged.filter(|row| late["command"] == row["command"].as_str()).map(latency).collect();
    assert_eq!(number(&late["wakeups"]), own.len() as u64, "{late}");
    assert_eq!(number(&late["late"]), own.iter().filter(|ns| **ns >= 4_000_000).count() as u64, "{late}");
    assert_eq!(late["max_ns"].as_u64(), own.iter().max().copied(), "{late}");
    assert!(is_fixture(&path));
}
