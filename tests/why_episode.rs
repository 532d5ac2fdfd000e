//! One episode of violation step by step, and the figures of paths.

use crate::support::{fixture, schedviz, scratch};
use sched::{Pass, SchedEvent, Ts};
use testkit::{Simulation, TraceBuilder};
use why::{Story, Why};
use workcons::{Options, Waiters, WorkConservation};

fn story(events: &[SchedEvent], at: Ts) -> Option<Story> {
    let options = Options { zero: events[0].ts, waiters: Waiters::All, ..Options::default() };
    let pass = Pass::over(events).run(|| Why::new(&options).with_episode_at(Some(at)));
    pass.unwrap_or_else(|never| match never {}).output.episode
}

#[test]
fn an_episode_goes_from_its_opening_to_its_closing_event() {
    let events = testkit::a_wait_beside_an_idle_cpu();
    let found = story(&events, Ts(300)).expect("an episode");
    assert_eq!((found.start_ns, found.start_in_trace_ns, found.duration_ns.0), (Ts(200), 100, 200));
    assert_eq!(found.before, ["CPU 0: cc 8 has waited for 0 ns", "CPU 1: idle for 50 ns"]);
    let steps: Vec<(i64, &str)> = found.steps.iter().map(|step| (step.ts_ns.0, step.words.as_str())).collect();
    let expected = [
        (200, "CPU 0: cc 8 waits: woken on previous CPU, some idle"),
        (400, "CPU 0: cc 8 ran: the running task slept; queued 200 ns"),
    ];
    assert_eq!(steps, expected);
    // It ends with its closing event, and nothing is violated before and behind it.
    assert_eq!((story(&events, Ts(199)), story(&events, Ts(400))), (None, None));
    assert_eq!(story(&events, Ts(200)), Some(found.clone()));
    assert_eq!(story(&events, Ts(399)), Some(found));
}

#[test]
fn episodes_are_those_of_workcons() {
    let mut missed = 0;
    for seed in crate::support::seeds(20) {
        let events = Simulation::balanced(seed, 4, 400).events;
        let options = Options { zero: events[0].ts, waiters: Waiters::All, ..Options::default() };
        let pass = Pass::over(events.as_slice()).run(|| WorkConservation::new(&options));
        let report = pass.unwrap_or_else(|never| match never {}).output;
        assert!(!report.longest().is_empty(), "seed {seed}");
        for episode in report.longest() {
            let (start, length) = (episode.start_ns, episode.duration_ns);
            for at in [start, Ts(start.0 + length.0 as i64 / 2)] {
                let found = story(&events, at).expect("an episode");
                assert_eq!((found.start_ns, found.duration_ns), (start, length), "seed {seed}");
                let end = start.after(length);
                assert!(found.steps.is_sorted_by_key(|step| step.ts_ns));
                assert!(found.steps.iter().all(|step| step.ts_ns >= start && step.ts_ns <= end), "seed {seed}");
                // An event opens it, unless the trace begins in it.
                let first = found.steps.first().map(|step| step.ts_ns);
                assert!(first == Some(start) || start == events[0].ts, "seed {seed}");
                missed += found.steps.iter().filter(|step| step.words.contains("missed steal")).count();
            }
        }
    }
    assert!(missed > 0, "some CPU goes idle in an episode");
}

#[test]
fn an_episode_is_printed_and_drawn() {
    let folder = scratch("why-episode");
    let (trace, svg) = (fixture("hackbench.dat"), folder.join("episode.svg"));
    let [trace, svg] = [&trace, &svg].map(|path| path.to_str().expect("a path").to_owned());
    let longest = schedviz(&["workcons", &trace, "-q", "--json"]).success().text();
    let longest: serde_json::Value = serde_json::from_str(&longest).expect("JSON");
    let longest = &longest["runs"][0]["violation"]["longest"][1];
    let json = schedviz(&["why", &trace, "-q", "--episode", "2", "--json"]).success().text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let episode = &json["runs"][0]["episode"];
    assert_eq!((&episode["start_ns"], &episode["duration_ns"]), (&longest["start_ns"], &longest["duration_ns"]));
    let start = longest["start_in_trace_ns"].as_u64().expect("a time");
    let at = format!("{}.{:09}", start / 1_000_000_000, start % 1_000_000_000 + 1);
    let ran = schedviz(&["why", &trace, "-q", "--at", &at, "-o", &svg, "--steps", "5"]).success();
    let text = ran.text();
    assert!(text.is_empty() || text.contains("more steps"), "{text}");
    let text = schedviz(&["why", &trace, "-q", "--at", &at, "--steps", "5"]).success().text();
    let steps = episode["steps"].as_array().expect("steps");
    assert!(steps.len() > 5 && text.contains(&format!("{} more steps", steps.len() - 5)), "{text}");
    let drawn = std::fs::read_to_string(&svg).expect("a figure");
    assert!(drawn.contains("a waiting task is moved there") && drawn.contains("violated for"), "a figure");
    for (option, value, words) in [("--at", "0.000001", "is not violated at"), ("--episode", "99", "from 1 to")] {
        let refused = schedviz(&["why", &trace, "-q", option, value]);
        assert!(refused.code == Some(1) && refused.stderr.contains(words), "{}", refused.stderr);
    }
}

#[test]
fn the_segments_of_a_path_are_listed_one_by_one() {
    let folder = scratch("path-segments");
    let path = folder.join("wait.dat");
    std::fs::write(&path, TraceBuilder::default().events(&testkit::a_wait_beside_an_idle_cpu()).build())
        .expect("written");
    let path = path.to_str().expect("a path");
    let text = schedviz(&["path", path, "--pid", "8", "--segments", "-q"]).success().text();
    // Make woke cc while it ran itself: its own run comes before that.
    let expected = "     from, s      length           task
    0.000000      100 ns  running  make 7 on CPU 0
    0.000000      200 ns   queued  cc 8 on CPU 0 behind make 7
    0.000000      200 ns  running  cc 8 on CPU 0
";
    assert_eq!(text, expected);
    let text = schedviz(&["path", path, "--pid", "8", "--segments=1", "-q"]).success().text();
    assert!(text.ends_with("cc 8 on CPU 0\n  (2 segments before these; --segments, --max)\n"), "{text}");
}

#[test]
fn the_path_is_drawn_by_path_and_by_dat2graph() {
    let folder = scratch("path-figure");
    let trace = fixture("hackbench.dat");
    let [trace, svg] = [&trace, &folder.join("path.svg")].map(|path| path.to_str().expect("a path").to_owned());
    let json = schedviz(&["path", &trace, "-q", "--json"]).success().text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let handovers = json["handovers"].as_u64().expect("a number");
    for command in [&["path", "-q", "-o"][..], &["dat2graph", "--path", "-q", "-o"]] {
        schedviz(&[command, &[&svg, &trace]].concat()).success();
        let drawn = std::fs::read_to_string(&svg).expect("a figure");
        let legend = format!("another task: wakeup or fork ({handovers})");
        assert!(drawn.contains(&legend) && drawn.contains("#1040c0"), "{command:?}");
    }
    let plain = schedviz(&["dat2graph", "-q", "-o", "-", "--format", "svg", &trace]).success().text();
    assert!(!plain.contains("another task: wakeup"), "only where it is asked for");
    let refused = schedviz(&["dat2graph", "--path-to", "999999", "-q", "-o", &svg, &trace]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
}
