//! Bandwidth control, as the probes on it show it.

use crate::support::{fixture, schedviz, unwrapped};

#[test]
fn throttled_time_is_that_of_the_kernel_by_cpu() {
    let trace = fixture("cgroup-cpumax.dat");
    let trace = trace.to_str().expect("UTF-8");
    let json = schedviz(&["workcons", trace, "--json"]).success().text();
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let throttled = document["runs"][0]["trust"]["throttled"].as_array().expect("CPUs");
    let sum = |field: &str| throttled.iter().map(|cpu| cpu[field].as_u64().expect("a number")).sum::<u64>();
    // Counted by another program from the text of trace-cmd report.
    assert_eq!((sum("ns"), sum("times"), sum("without_end")), (2_795_248_880, 52, 3));
    // The cgroup's cpu.stat has throttled_usec 2908550, the times without an end in the trace included.
    assert!((0.95..1.0).contains(&(sum("ns") as f64 / 2_908_550_000.0)));
    let text = unwrapped(&schedviz(&["workcons", trace]).success().text());
    assert!(
        text.contains("bandwidth control (cpu.max) throttled CPUs 0,2,4-6 52 times, for 2.795 s in all; "),
        "{text}"
    );
    let without = schedviz(&["workcons", fixture("hackbench.dat").to_str().expect("UTF-8"), "--json"]).success().text();
    assert!(!without.contains("\"throttled\""));
}
