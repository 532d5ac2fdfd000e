//! sysbench 1.0 and later: events per second of all threads, and latencies of events.

use crate::{NumbersFound, labelled, leading};
use question::{Better, Metric};

pub(crate) fn read(lines: &[&str], found: &mut NumbersFound) {
    let Some(head) = lines.iter().rposition(|line| line.starts_with("sysbench ")) else { return };
    let lines = &lines[head..];
    let of = |label: &str| lines.iter().find_map(|line| labelled(line.trim_start().strip_prefix(label)?, ":"));
    // The rate in the output is missing in some tests, and rounded in others.
    if let (Some(events), Some(seconds)) = (of("total number of events"), of("total time"))
        && seconds > 0.0
    {
        found.row("sysbench-rate", "sysbench, events/s", Better::More, events / seconds);
    }
    let Some(latency) = lines.iter().position(|line| line.starts_with("Latency (ms):")) else { return };
    for line in lines[latency..].iter().skip(1) {
        let Some((label, value)) = line.split_once(':') else { break };
        let (label, Some(ms)) = (label.trim(), leading(value)) else { continue };
        let name = match label.strip_suffix("th percentile") {
            Some(percent) if percent.len() <= 2 && percent.bytes().all(|b| b.is_ascii_digit()) => format!("p{percent}"),
            None if label == "avg" || label == "max" => label.to_owned(),
            _ => continue,
        };
        let metric = Metric {
            key: format!("sysbench-latency-{name}").into(),
            name: format!("sysbench latency {name}, ms"),
            row: format!("  latency {name}, ms"),
            better: Better::Less,
        };
        found.add(metric, ms);
    }
}
