//! "Nothing to report" is a result: what exceeds a threshold in another command's answer is a finding. And no finding is vacuous.

use crate::findings_checked::{Answers, can_be_judged, list};
use crate::support::{fixture, recordings_in_part};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;

/// A threshold that an answer exceeds, and the kinds of findings of which one has it.
struct Exceeded {
    what: String,
    kinds: &'static [&'static str],
}

/// What can stand in the place of a finding.
struct Told<'a> {
    answers: &'a Answers,
    found: &'a Value,
}

impl Told<'_> {
    /// A time on the critical path where costs are times on it; nothing where they are not.
    fn on_path(&self, names: &[&str]) -> Option<f64> {
        (self.found["cost_unit"] == "critical-path").then_some(())?;
        let length = self.found["path"]["length_ns"].as_f64()?;
        let path = self.answers.ask("path");
        Some(names.iter().map(|name| path["times"][*name].as_f64().unwrap_or(0.0)).sum::<f64>() / length)
    }

    /// Whether such a time is too short to be told.
    fn is_costless(&self, names: &[&str]) -> bool {
        self.on_path(names).is_some_and(|part| part < 0.001)
    }

    /// Whether the path ran but for a part too short to be a finding.
    fn is_undelayed(&self) -> bool {
        let length = self.found["path"]["length_ns"].as_f64();
        length.is_some_and(|length| self.found["consisted"]["running_ns"].as_f64().unwrap_or(0.0) > 0.95 * length)
    }

    /// The number of a value above a threshold.
    fn exceeded(&self) -> Vec<Exceeded> {
        let mut all = self.of_machine();
        all.extend(self.of_tasks());
        all.extend(self.of_path());
        all
    }

    fn of_machine(&self) -> Vec<Exceeded> {
        let mut all = Vec::new();
        let run = self.answers.run("workcons");
        let percent = |value: &Value| value["percent"].as_f64().unwrap_or(0.0);
        let confined = run["confined_percent"].as_f64().unwrap_or(0.0) / 100.0;
        let violated = percent(&run["violation"]);
        if violated * (1.0 - confined) >= 1.0 && !self.is_costless(&["queued_beside_idle_ns"]) {
            all.push(Exceeded { what: format!("violated {violated} %"), kinds: &["violation"] });
        }
        if confined > 0.0 && !self.is_costless(&["queued_beside_idle_ns"]) {
            all.push(Exceeded { what: "confined".to_owned(), kinds: &["affinity"] });
        }
        let held = percent(&run["held_back"]);
        if held >= 1.0 && !self.is_costless(&["queued_held_back_ns"]) {
            all.push(Exceeded { what: format!("held back {held} %"), kinds: &["held-back", "throttling"] });
        }
        let unbalanced = percent(&run["unbalanced"]);
        if unbalanced >= 10.0 {
            all.push(Exceeded { what: format!("unbalanced {unbalanced} %"), kinds: &["unbalanced", "path-queued"] });
        }
        let crowded = percent(&self.answers.ask("residency")["crowded"]);
        if crowded >= 5.0 {
            all.push(Exceeded { what: format!("shared cores {crowded} %"), kinds: &["crowded-cores"] });
        }
        let herds = self.answers.ask("utilization");
        let is_slow = |herd: &&Value| herd["drained_after_ns"].as_u64().is_none_or(|drained| drained >= 1_000_000);
        let slow = list(&herds["herds"]).iter().filter(is_slow).count();
        // What it costs on the path depends on the segments.
        if slow > 0 && self.found["cost_unit"] != "critical-path" {
            all.push(Exceeded { what: format!("{slow} herds"), kinds: &["herds"] });
        }
        all
    }

    fn of_tasks(&self) -> Vec<Exceeded> {
        let mut all = Vec::new();
        let fairness = self.answers.ask("fairness");
        let is_long = |wait: &&Value| wait["duration_ns"].as_u64().is_some_and(|ns| ns >= 100_000_000);
        if list(&fairness["starved"]).iter().any(|wait| is_long(&wait)) && self.found["cost_unit"] != "critical-path" {
            all.push(Exceeded { what: "a wait of 100 ms".to_owned(), kinds: &["starved", "held-back", "throttling"] });
        }
        // By the tree of the application, which is judged where there is one.
        let has_application = self.found["path"].is_object() || self.found.get("application").is_some();
        let option = if has_application { " --forked" } else { "" };
        let latency = self.answers.ask(&format!("latency --by command{option}"));
        for row in list(&latency["rows"]) {
            let command = row["command"].as_str().unwrap_or_default();
            let Some(of) = list(&row["measures"]).iter().find(|of| of["measure"] == "wakeup") else { continue };
            let at_least = |name: &str| of[name].as_u64().is_some_and(|ns| ns >= 4_000_000);
            let count = of["count"].as_u64().unwrap_or(0);
            let is_late = count >= 100 && at_least("p99_ns") || count >= 10 && at_least("p50_ns");
            if is_late && can_be_judged(command) && !self.is_undelayed() {
                let kinds = &["slow-wakeups", "late-command"];
                all.push(Exceeded { what: format!("{count} wakeups of {command}"), kinds });
            }
        }
        let jobs = self.answers.ask(&format!("jobs{option}"));
        for row in list(&jobs["tasks"]) {
            let of = |name: &str| row[name].as_u64().unwrap_or(0);
            let is_by_timers = 2 * of("by_interrupts") >= of("jobs");
            let is_many = of("missed") >= 3 && of("jobs") >= 10 && 100 * of("missed") >= of("jobs");
            if is_by_timers && is_many && can_be_judged(row["command"].as_str().unwrap_or_default()) {
                all.push(Exceeded { what: format!("missed: {row}"), kinds: &["missed-periods"] });
            }
        }
        let shares = self.answers.ask("fairness --by cgroup");
        let window = self.found["window_ns"].as_f64().expect("a window");
        for group in list(&shares["shares"]["groups"]).iter().filter(|group| group["cgroup"] != "/") {
            let (entitled, got) =
                (group["entitled_ns"].as_f64().unwrap_or(0.0), group["got_ns"].as_f64().unwrap_or(0.0));
            if got < 0.8 * entitled && entitled - got >= 0.05 * window {
                all.push(Exceeded { what: format!("{}", group["cgroup"]), kinds: &["behind-cgroup"] });
            }
        }
        all
    }

    fn of_path(&self) -> Vec<Exceeded> {
        let mut all = Vec::new();
        let path = self.answers.ask("path");
        if self.found["path"].is_null() {
            return all;
        }
        let length = self.found["path"]["length_ns"].as_f64().expect("a length");
        let part = |names: &[&str]| names.iter().filter_map(|name| path["times"][*name].as_f64()).sum::<f64>() / length;
        if part(&["waking_ns"]) >= 0.05 {
            all.push(Exceeded { what: "waking".to_owned(), kinds: &["slow-wakeups"] });
        }
        if part(&["unknown_ns"]) >= 0.05 {
            all.push(Exceeded { what: "unknown path".to_owned(), kinds: &["path-unknown"] });
        }
        let kinds = &["path-queued", "violation", "affinity", "held-back", "throttling"];
        let held_up = list(&path["sleeps"]).iter().filter_map(|row| row["held_up"]["queued_ns"].as_f64());
        if held_up.fold(0.0, f64::max) >= 0.05 * length {
            all.push(Exceeded { what: "sleeps until queued tasks".to_owned(), kinds: &["waker-queued", "throttling"] });
        }
        if part(&["queued_ns", "throttled_ns"]) >= 0.1 {
            all.push(Exceeded { what: "queued path".to_owned(), kinds });
        }
        all
    }
}

/// The recordings of a quick run: each has shown a finding that was missing, or one that was vacuous.
fn chosen() -> Vec<std::path::PathBuf> {
    let always = ["mask.dat", "every-7.2.dat", "forked-unknown.dat"].map(fixture);
    let others = recordings_in_part(9).into_iter().filter(|path| !always.contains(path));
    always.iter().cloned().chain(others).collect()
}

#[test]
fn what_exceeds_a_threshold_elsewhere_is_a_finding() {
    let mut number = 0;
    for path in chosen() {
        let answers = Answers::of(&path);
        let found = answers.ask("findings");
        if found.is_null() {
            continue;
        }
        let kinds: BTreeSet<&str> = list(&found["findings"])
            .iter()
            .map(|found| found["observation"]["kind"].as_str().expect("a kind"))
            .collect();
        let is_withheld = |found: &Value| found["observation"]["withholds"] == true;
        // Nothing is concluded where too much is unknown.
        let unknown = answers.run("workcons")["coverage"]["unknown_percent"].as_f64().unwrap_or(0.0);
        if unknown > 20.0 || list(&found["findings"]).iter().any(is_withheld) {
            continue;
        }
        // At most eight are told.
        if list(&found["findings"]).len() == 8 {
            continue;
        }
        for exceeded in (Told { answers: &answers, found: &found }).exceeded() {
            number += 1;
            let is_told = exceeded.kinds.iter().any(|kind| kinds.contains(kind));
            assert!(is_told, "{}: {} is no finding: {kinds:?}", answers.trace, exceeded.what);
        }
    }
    assert!(number >= 8 || std::env::var_os("SCHEDVIZ_ONLY").is_some(), "{number}");
}

#[test]
fn a_serial_tail_is_in_the_first_sentence() {
    let mut tails = 0;
    for path in chosen().into_iter().chain([fixture("spmd-plus1.dat")]) {
        let answers = Answers::of(&path);
        let found = answers.ask("findings");
        let Some(length) = found["path"]["length_ns"].as_f64() else { continue };
        let tail = &answers.ask("utilization")["serial_tail"];
        let of = |name: &str| tail[name].as_f64().unwrap_or(0.0);
        let is_serial = of("one_ns") >= 0.8 * of("length_ns") && of("several_ns") <= 0.05 * of("length_ns");
        let zero = answers.ask("path");
        let path_end = zero["to_ns"].as_f64().expect("an end") - zero["from_ns"].as_f64().expect("a start");
        // The whole recording is the window, whose start is that of the path.
        let end = of("start_in_trace_ns") + of("length_ns");
        let is_told = !found["consisted"]["tail"].is_null();
        let is_at_end = (end - path_end).abs() <= 0.01 * length;
        let is_long = of("length_ns") >= 0.05 * length || of("length_ns") >= 1e9 && of("length_ns") >= 0.01 * length;
        assert_eq!(is_told, is_serial && is_at_end && is_long, "{}: {tail} {path_end}", answers.trace);
        tails += u64::from(is_told);
    }
    assert!(tails >= 1 || std::env::var_os("SCHEDVIZ_ONLY").is_some(), "{tails}");
}

#[test]
fn no_finding_is_vacuous() {
    let vacuous = Regex::new(r"(^|[^0-9.])(0 ns|0\.00? %|0 %|0 times?)").expect("an expression");
    for path in chosen() {
        let answers = Answers::of(&path);
        let found = answers.ask("findings");
        let mut kinds = BTreeSet::new();
        for finding in list(&found["findings"]) {
            let sentence = finding["sentence"].as_str().expect("a sentence");
            // Shares of losses are small, and matter.
            let is_loss = finding["observation"]["kind"] == "losses";
            assert!(is_loss || !vacuous.is_match(sentence), "{}: {sentence}", answers.trace);
            assert_ne!(finding["cost_ns"], 0, "{}: {sentence}", answers.trace);
            if found["cost_unit"] == "critical-path"
                && let Some(cost) = finding["cost_ns"].as_f64()
            {
                let length = found["path"]["length_ns"].as_f64().expect("a length");
                assert!(cost >= (length / 1000.0).floor(), "{}: {sentence}", answers.trace);
            }
            let kind = finding["observation"]["kind"].as_str().expect("a kind").to_owned();
            assert!(kinds.insert(kind), "{}: two findings of one kind: {sentence}", answers.trace);
        }
        assert!(!kinds.contains("slow-wakeups") || !kinds.contains("late-command"), "{}", answers.trace);
        // Nothing is exact where a scheduler held the tasks whose queues no event shows.
        let is_ext =
            list(&found["trust"]).iter().any(|note| note["kind"] == "sched-ext") || found.get("sched_ext").is_some();
        let is_exact = |finding: &Value| {
            let is_doubt =
                ["losses", "not-recorded", "path-unknown"].iter().any(|kind| finding["observation"]["kind"] == *kind);
            finding["certainty"] == "exact" && !is_doubt
        };
        if is_ext {
            assert!(!list(&found["findings"]).iter().any(is_exact), "{}: {found}", answers.trace);
            assert_ne!(found["consisted"]["certainty"], "exact", "{}", answers.trace);
        }
    }
}
