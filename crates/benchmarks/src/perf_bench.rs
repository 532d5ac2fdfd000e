//! `perf bench sched`: messaging has a total time, pipe a time for each operation.

use crate::{NumbersFound, labelled, leading};
use question::Better;

pub(crate) fn read(lines: &[&str], found: &mut NumbersFound) {
    let mut benchmark = None;
    for line in lines {
        if let Some(name) = line.strip_prefix("# Running ") {
            let name = name.trim_start_matches('\'');
            benchmark = ["sched/messaging", "sched/pipe"].into_iter().find(|known| name.starts_with(known));
            continue;
        }
        match benchmark {
            Some("sched/messaging") if line.contains("Total time:") && line.contains("[sec]") => {
                let Some(seconds) = labelled(line, "Total time:") else { continue };
                found.row("perf-messaging-time", "messaging time, s", Better::Less, seconds);
            }
            Some("sched/pipe") if line.trim_end().ends_with("usecs/op") => {
                let Some(us) = leading(line) else { continue };
                found.row("perf-pipe-op", "perf pipe, \u{b5}s/op", Better::Less, us);
            }
            _ => {}
        }
    }
}
