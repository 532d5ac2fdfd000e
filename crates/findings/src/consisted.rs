//! The first sentence: the time that the critical path consisted of.

use crate::Certainty;
use crate::path_time::PathTime;
use membership::stemmed;
use sched::kthread::command;
use sched::{Comm, Dur};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The share of the path, in percent, below which the scheduler did not hold the command up.
const HELD_UP_PERCENT: f64 = 5.0;

/// The time that the critical path consisted of, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathConsisted {
    /// The sentence for people.
    pub sentence: String,
    /// The certainty of its numbers.
    pub certainty: Certainty,
    /// The time for which the path ran, in nanoseconds.
    pub running_ns: u64,
    /// The time for which it slept until an interrupt, in nanoseconds.
    pub sleeping_ns: u64,
    /// The time for which it was queued, waking or throttled, in nanoseconds: its task was ready to run, and did not run.
    pub scheduler_ns: u64,
    /// The command that ran most on the path; absent where none ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The time for which that command ran on the path, in nanoseconds.
    pub command_ns: u64,
    /// The number of tasks of that command which ran on the path.
    pub command_tasks: u64,
}

/// The command that ran most on a path, with its time and the number of its tasks. Names that differ in a number alone are one command,
/// by the stem of the names where there are several.
fn most_running(path: &PathTime<'_>) -> Option<(String, (u64, u64))> {
    let mut commands: BTreeMap<Comm, (u64, u64, BTreeSet<Comm>)> = BTreeMap::new();
    for share in path.path.tasks.iter().filter(|share| share.times.running_ns > 0) {
        let (ns, tasks, names) = commands.entry(stemmed(share.of.command)).or_default();
        *ns = ns.saturating_add(share.times.running_ns);
        *tasks += 1;
        names.insert(command(share.of.command));
    }
    let (stem, (ns, tasks, names)) = commands.into_iter().max_by_key(|(stem, (ns, ..))| (*ns, Reverse(*stem)))?;
    let name = names.first().filter(|_| names.len() == 1).copied().unwrap_or(stem);
    Some((name.to_string(), (ns, tasks)))
}

impl PathConsisted {
    /// The times of a path that is to be trusted.
    pub(crate) fn of(path: &PathTime<'_>, certainty: Certainty) -> Option<PathConsisted> {
        let (times, task) = (path.path.times, path.path.task?);
        let most = most_running(path);
        let scheduler_ns =
            [times.queued_ns, times.waking_ns, times.throttled_ns].into_iter().fold(0, u64::saturating_add);
        let percent = |ns: u64| format!("{:.1} %", path.percent(ns));
        let mut parts = [
            (times.running_ns, "running"),
            (times.queued_ns, "queued"),
            (times.waking_ns, "on the way to a run queue"),
            (times.sleeping_ns, "asleep until an interrupt (a timer, a disk, a network)"),
            (times.throttled_ns, "throttled"),
            (times.unknown_ns, "unknown"),
        ];
        parts.sort_by_key(|(ns, _)| Reverse(*ns));
        // What is a thousandth of the path or more.
        let named = parts.iter().filter(|(ns, _)| *ns > 0 && *ns >= path.length / 1000);
        let parts: Vec<String> = named.map(|(ns, state)| format!("{} {state}", percent(*ns))).collect();
        let by = most.as_ref().map_or(String::new(), |(name, (ns, tasks))| {
            let turns = if *tasks > 1 { format!(", {tasks} tasks in turn") } else { String::new() };
            format!("; {name} ran for {} of it{turns}", percent(*ns))
        });
        let verdict = match path.percent(scheduler_ns) < HELD_UP_PERCENT {
            true => "the scheduler did not hold it up".to_owned(),
            false => {
                let all = Dur(scheduler_ns).human();
                format!("it was ready to run, and did not run, for {all} ({})", percent(scheduler_ns))
            }
        };
        let (who, length) = (task.pid.named(task.command), Dur(path.length).human());
        let (command, (command_ns, command_tasks)) = most.map_or((None, (0, 0)), |(name, sums)| (Some(name), sums));
        Some(PathConsisted {
            sentence: format!("The critical path of {who}, {length} long, was {}{by}: {verdict}.", parts.join(", ")),
            certainty,
            running_ns: times.running_ns,
            sleeping_ns: times.sleeping_ns,
            scheduler_ns,
            command,
            command_ns,
            command_tasks,
        })
    }
}
