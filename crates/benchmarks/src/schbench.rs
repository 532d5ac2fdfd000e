//! schbench: sections of percentiles of wakeup latency, request latency and requests per second, and averages. Versions before 2023 have one
//! section of wakeup latency.

use crate::{NumbersFound, labelled, leading};
use question::{Better, Metric};

/// A section, by the beginning of its head.
struct Section {
    head: &'static str,
    /// The name in keys.
    key: &'static str,
    /// The names of the group of rows, in texts and in a table.
    name: &'static str,
    row: &'static str,
    unit: &'static str,
    better: Better,
}

const SECTIONS: [Section; 4] = [
    Section {
        head: "Wakeup Latencies percentiles (usec)",
        key: "wakeup",
        name: "schbench wakeup",
        row: "schbench wake",
        unit: ", \u{b5}s",
        better: Better::Less,
    },
    Section {
        head: "Latency percentiles (usec)",
        key: "wakeup",
        name: "schbench wakeup",
        row: "schbench wake",
        unit: ", \u{b5}s",
        better: Better::Less,
    },
    Section {
        head: "Request Latencies percentiles (usec)",
        key: "request",
        name: "schbench request",
        row: "schbench req",
        unit: ", \u{b5}s",
        better: Better::Less,
    },
    Section {
        head: "RPS percentiles (requests)",
        key: "rps",
        name: "schbench rps",
        row: "schbench rps",
        unit: "",
        better: Better::More,
    },
];

pub(crate) fn read(lines: &[&str], found: &mut NumbersFound) {
    let mut section: Option<(&Section, bool)> = None;
    for line in lines {
        if let Some(new) = SECTIONS.iter().find(|section| line.starts_with(section.head)) {
            section = Some((new, true));
            continue;
        }
        let text = line.trim_start().trim_start_matches("* ").trim_start_matches('*');
        if let (Some((of, is_first)), Some((percentile, value))) = (section, text.split_once("th:")) {
            let Some(value) = leading(value) else { continue };
            let Some(name) = percentile_name(percentile) else { continue };
            found.add(of.metric(&name, is_first), value);
            section = Some((of, false));
        } else if let (Some((of, _)), Some(most)) = (section, largest(text)) {
            found.add(of.metric("max", false), most);
            section = None;
        } else {
            averages(text, found);
        }
    }
}

impl Section {
    /// The metric of a part of the section, such as `p99`. The first part has the name of the section in its row.
    fn metric(&self, part: &str, is_first: bool) -> Metric {
        let row = if is_first { format!("{} {part}", self.row) } else { format!("  {part}{}", self.unit) };
        Metric {
            key: format!("schbench-{}-{part}", self.key).into(),
            name: format!("{} {part}{}", self.name, self.unit),
            row,
            better: self.better,
        }
    }
}

/// The name of a percentile: `p99` for `99.0` and for `99.0000`, `p99.9` for `99.9`.
fn percentile_name(text: &str) -> Option<String> {
    let text = text.trim();
    let percent: f64 =
        text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit() || b == b'.') && text.len() < 9)?;
    (0.0..=100.0).contains(&percent).then(|| format!("p{percent}"))
}

/// The maximum behind the percentiles: `min=1, max=10224`, and of old versions `Over=0, min=0, max=100`.
fn largest(text: &str) -> Option<f64> {
    (text.starts_with("min=") || text.starts_with("Over=")).then(|| labelled(text, "max="))?
}

/// The lines behind the sections.
fn averages(text: &str, found: &mut NumbersFound) {
    if let Some(rps) = text.strip_prefix("average rps:").and_then(leading) {
        found.row("schbench-rps", "schbench rps", Better::More, rps);
    } else if let Some(ops) = text.strip_prefix("avg worker transfer:").and_then(leading) {
        found.row("schbench-transfer", "schbench, ops/s", Better::More, ops);
    } else if let Some(delays) = text.strip_prefix("sched delay:") {
        if let Some(us) = labelled(delays, "message") {
            found.row("schbench-delay-message", "message delay, \u{b5}s", Better::Less, us);
        }
        if let Some(us) = labelled(delays, "worker") {
            found.row("schbench-delay-worker", "worker delay, \u{b5}s", Better::Less, us);
        }
    }
}
