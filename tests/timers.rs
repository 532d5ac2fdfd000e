//! Jobs that timers release, against `trace-cmd report -t` by hand.

use crate::support::{schedviz, schedviz_in, scratch, unwrapped};
use serde_json::{Value, json};

/// The path of a fixture, as text.
fn fixture(name: &str) -> String {
    crate::support::fixture(name).display().to_string()
}

/// The jobs of a recording with a deadline that most exceed.
fn jobs(trace: &str) -> Value {
    let ran = schedviz(&["jobs", trace, "--json", "-q", "--deadline", "1ms"]).success();
    serde_json::from_slice(&ran.stdout).expect("JSON")
}

/// `relative` 198 sleeps on a timer with softexpires 11199370660. CPU 3 first records an expiry with now=11242990020 at 11.164617417, and the
/// waking of 198 at 11.183778775, behind the functions of other timers: 43,619,360 ns late by the timers' clock, so programmed for
/// 11.120998057, and woken 62,780,718 ns later. The trace begins at 11.000196990.
#[test]
fn a_job_is_released_when_its_timer_was_to_expire() {
    let report = jobs(&fixture("sleepers-timers-6.12.dat"));
    let late = report["worst"].as_array().expect("rows").iter().find(|job| job["pid"] == 198).expect("a late job");
    let of = |names: &[&str]| names.iter().map(|name| late[name].as_u64().expect("a number")).collect::<Vec<_>>();
    assert_eq!(of(&["release_in_trace_ns", "after_timer_ns", "response_ns"]), [120_801_067, 62_780_718, 78_190_897]);
    let parts = of(&["after_timer_ns", "until_queued_ns", "waited_ns", "throttled_ns", "run_ns"]);
    assert_eq!(parts.iter().sum::<u64>(), 78_190_897, "the parts of the response time");
    // The jobs of threads that sleep on their own timers; those of other causes are released by their wakings.
    assert_eq!(report["by_expiries"], 48);
    for row in report["tasks"].as_array().expect("rows") {
        let sleeps = ["relative", "absolute", "polls", "condition"].iter().any(|name| row["command"] == *name);
        assert_eq!(row["by_expiries"], if sleeps { row["jobs"].clone() } else { json!(0) }, "{row}");
    }
    let text = unwrapped(
        &schedviz(&["jobs", &fixture("sleepers-timers-6.12.dat"), "-q", "--deadline", "1ms"]).success().text(),
    );
    assert!(text.contains("(48 jobs released at the programmed expiries of timers"), "{text}");
    assert!(text.contains("woken behind its timer's expiry by 62.78 ms"), "{text}");
}

/// Without records of timers the wakings release jobs, and nothing is known of expiries.
#[test]
fn without_records_of_timers_wakings_release_jobs() {
    let report = jobs(&fixture("hackbench.dat"));
    assert!(report["by_expiries"].is_null() && report["jobs"] == 1829, "{}", report["by_expiries"]);
    assert!(report["worst"].as_array().expect("rows").iter().all(|job| job["after_timer_ns"].is_null()));
    assert!(report["tasks"].as_array().expect("rows").iter().all(|row| row["by_expiries"].is_null()));
}

/// A part that begins between the expiry of a timer and the waking, or between a waking and the run, has the programmed expiry of the whole.
#[test]
fn a_part_knows_the_timers_that_were_set_before_it() {
    let folder = scratch("timers-part");
    let trace = fixture("sleepers-timers-6.12.dat");
    let whole = jobs(&trace);
    let late = |report: &Value| {
        let rows = report["worst"].as_array().expect("rows").iter();
        rows.filter(|job| job["pid"] == 198)
            .map(|job| (job["after_timer_ns"].clone(), job["response_ns"].clone()))
            .next()
    };
    // Before the timer is set, while it is set, within the interrupt, between the function's start and the waking, behind the waking.
    for at in ["0.13", "0.15", "0.17", "0.183579", "0.18358", "0.19"] {
        schedviz_in(&folder, &["cut", &trace, "-q", "--min", at, "-o", "part.dat"]).success();
        let part = jobs(folder.join("part.dat").to_str().expect("a path"));
        assert_eq!(late(&part), late(&whole), "a part from {at} s");
        std::fs::remove_file(folder.join("part.dat")).expect("removed");
    }
}
