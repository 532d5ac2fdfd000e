//! The first sentence: the time that the critical path consisted of.

use crate::path_time::PathTime;
use crate::{Certainty, Measurements};
use membership::stemmed;
use sched::kthread::command;
use sched::nouns::counted;
use sched::{Comm, Dur};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The share of the path, in percent, from which on it sleeps so long that the other tasks of the application say more.
const ASLEEP_PERCENT: f64 = 50.0;

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
    /// The time for which it slept until an interrupt, in nanoseconds; null where `sched_waking` was not recorded.
    pub sleeping_ns: Option<u64>,
    /// The time for which it was queued, waking or throttled, in nanoseconds: its task was ready to run, and did not run. Where `sched_waking`
    /// was not recorded, it is without the time for which it was waking.
    pub scheduler_ns: u64,
    /// The command that ran most on the path; absent where none ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The time for which that command ran on the path, in nanoseconds.
    pub command_ns: u64,
    /// The number of tasks of that command which ran on the path.
    pub command_tasks: u64,
    /// The time on the path for which a task of that command slept until another of its tasks woke it, in nanoseconds.
    pub command_slept_ns: u64,
    /// The serial tail of the application, where it ends with the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<PathTail>,
    /// The times of all tasks of the application; absent unless the path sleeps for half of its length or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_tasks: Option<ApplicationTimes>,
}

/// The times of all tasks of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationTimes {
    /// The number of tasks that ran or waited.
    pub tasks: usize,
    /// The time for which they ran, in nanoseconds of tasks.
    pub run_ns: u64,
    /// The time for which they waited in run queues, in nanoseconds of tasks.
    pub queued_ns: u64,
}

impl ApplicationTimes {
    /// The times of the application's tasks, where it has several.
    fn of(found: &Measurements) -> Option<ApplicationTimes> {
        let members = &found.fairness.as_ref()?.members;
        let mut times = ApplicationTimes { tasks: 0, run_ns: 0, queued_ns: 0 };
        for member in members.iter().filter(|member| member.is_of_application == Some(true)) {
            times.tasks += 1;
            times.run_ns = times.run_ns.saturating_add(member.run_ns.0);
            times.queued_ns = times.queued_ns.saturating_add(member.wait_ns.0);
        }
        (times.tasks > 1).then_some(times)
    }

    /// A sentence of its own.
    fn in_words(self) -> String {
        let ApplicationTimes { tasks, run_ns, queued_ns } = self;
        let percent = 100.0 * queued_ns as f64 / (run_ns.saturating_add(queued_ns) as f64).max(1.0);
        format!(
            " While the path slept, other tasks worked: the application's {} ran for {} and waited {} in run queues, {percent:.1} % of the time \
             for which they were ready.",
            counted(tasks, "task"),
            Dur(run_ns).human(),
            Dur(queued_ns).human()
        )
    }
}

/// The serial tail of the application, at the end of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathTail {
    /// The start of the tail, in nanoseconds from the start of the trace.
    pub start_in_trace_ns: u64,
    /// The length of the tail in nanoseconds.
    pub length_ns: Dur,
    /// The number of CPUs with events.
    pub cpus: usize,
}

/// The length from which a tail is told where it is a smaller part of the path.
const LONG_TAIL: Dur = Dur(1_000_000_000);
/// The least part of the path of such a tail, in percent.
const LONG_TAIL_PERCENT: f64 = 1.0;
/// The least part of the path, in percent, from which a tail is the whole of it.
const WHOLE_PERCENT: f64 = 95.0;
/// The greatest time between the ends of the tail and of the path, in percent of the path.
const APART_PERCENT: f64 = 1.0;

impl PathTail {
    /// The serial tail of what was measured, if it is long enough and ends with the path.
    fn of(path: &PathTime<'_>, found: &Measurements) -> Option<PathTail> {
        let is_long = |Dur(ns): Dur| {
            let percent = path.percent(ns);
            percent >= HELD_UP_PERCENT || ns >= LONG_TAIL.0 && percent >= LONG_TAIL_PERCENT
        };
        let tail = found.tail.filter(|tail| tail.is_serial() && is_long(tail.length_ns))?;
        let end = found.zero.after(Dur(tail.start_in_trace_ns)).after(tail.length_ns);
        let apart = end.since(path.path.to_ns).0.max(path.path.to_ns.since(end).0);
        (path.percent(apart) <= APART_PERCENT).then(|| PathTail {
            start_in_trace_ns: tail.start_in_trace_ns,
            length_ns: tail.length_ns,
            cpus: found.utilization.cpus.len(),
        })
    }

    /// The tail as a clause; nothing on one CPU.
    fn in_words(self, path: &PathTime<'_>) -> Option<String> {
        let PathTail { length_ns, cpus, .. } = self;
        let percent = path.percent(length_ns.0);
        (cpus > 1).then(|| match percent >= WHOLE_PERCENT {
            true => format!("it ran on one CPU of {cpus} at a time"),
            false => format!("its last {} ({percent:.1} %) ran on one CPU of {cpus} at a time", length_ns.human()),
        })
    }
}

/// The time on a path for which a task of a command slept until another of its tasks woke it, in nanoseconds.
fn slept_for_own(path: &PathTime<'_>, stem: Comm) -> u64 {
    let is_own = |row: &&path::SleepsUntil| stemmed(row.task.command) == stem && stemmed(row.until.command) == stem;
    path.path.sleeps.iter().filter(is_own).map(|row| row.slept_ns).fold(0, u64::saturating_add)
}

/// The command that ran most on a path, with its time, the number of its tasks, and the time for which these slept for one another. Names that differ in a number alone are one command,
/// by the stem of the names where there are several.
fn most_running(path: &PathTime<'_>) -> Option<(String, (u64, u64, u64))> {
    let mut commands: BTreeMap<Comm, (u64, u64, BTreeSet<Comm>)> = BTreeMap::new();
    for share in path.path.tasks.iter().filter(|share| share.times.running_ns > 0) {
        let (ns, tasks, names) = commands.entry(stemmed(share.of.command)).or_default();
        *ns = ns.saturating_add(share.times.running_ns);
        *tasks += 1;
        names.insert(command(share.of.command));
    }
    let (stem, (ns, tasks, names)) = commands.into_iter().max_by_key(|(stem, (ns, ..))| (*ns, Reverse(*stem)))?;
    let name = names.first().filter(|_| names.len() == 1).copied().unwrap_or(stem);
    Some((name.to_string(), (ns, tasks, slept_for_own(path, stem))))
}

impl PathConsisted {
    /// The times of a path that is to be trusted.
    pub(crate) fn of(path: &PathTime<'_>, found: &Measurements, certainty: Certainty) -> Option<PathConsisted> {
        let (times, task) = (path.path.times, path.path.task?);
        let most = most_running(path);
        let scheduler_ns = [times.queued_ns, times.waking_ns.unwrap_or_default(), times.throttled_ns]
            .into_iter()
            .fold(0, u64::saturating_add);
        let percent = |ns: u64| format!("{:.1} %", path.percent(ns));
        let mut parts = [
            (times.running_ns, "running"),
            (times.queued_ns, "queued"),
            (times.waking_ns.unwrap_or_default(), "on the way to a run queue"),
            (times.sleeping_ns.unwrap_or_default(), "asleep until an interrupt (a timer, a disk, a network)"),
            (times.throttled_ns, "throttled"),
            (times.unknown_ns, "unknown"),
        ];
        parts.sort_by_key(|(ns, _)| Reverse(*ns));
        // What is a thousandth of the path or more.
        let named = parts.iter().filter(|(ns, _)| *ns > 0 && *ns >= path.length / 1000);
        let parts: Vec<String> = named.map(|(ns, state)| format!("{} {state}", percent(*ns))).collect();
        let by = most.as_ref().map_or(String::new(), |(name, (ns, tasks, slept))| {
            let turns = if *tasks > 1 { format!(", {tasks} tasks in turn") } else { String::new() };
            let slept = match path.percent(*slept) < HELD_UP_PERCENT {
                true => String::new(),
                false => format!(", one of them asleep until another for {}", percent(*slept)),
            };
            format!("; {name} ran for {} of it{turns}{slept}", percent(*ns))
        });
        let tail = PathTail::of(path, found);
        let serial = tail.and_then(|tail| tail.in_words(path)).map_or(String::new(), |words| format!("; {words}"));
        let is_held_up = |ns: u64| path.percent(ns) >= HELD_UP_PERCENT;
        // Without wakings, unknown time has that on the way to a run queue.
        let hidden_ns = if times.sleeping_ns.is_none() { times.unknown_ns } else { 0 };
        let verdict = match is_held_up(scheduler_ns) {
            true => {
                let (all, least) = (Dur(scheduler_ns).human(), if hidden_ns > 0 { "at least " } else { "" });
                format!("it was ready to run, and did not run, for {least}{all} ({})", percent(scheduler_ns))
            }
            false if is_held_up(scheduler_ns.saturating_add(hidden_ns)) => {
                "whether the scheduler held it up is unknown, since sched:sched_waking was not recorded".to_owned()
            }
            false => "the scheduler did not hold it up".to_owned(),
        };
        let is_asleep = times.sleeping_ns.is_some_and(|ns| path.percent(ns) >= ASLEEP_PERCENT);
        let all_tasks = ApplicationTimes::of(found).filter(|_| is_asleep);
        let others = all_tasks.map_or(String::new(), ApplicationTimes::in_words);
        let (who, length) = (task.pid.named(task.command), Dur(path.length).human());
        let (command, sums) = most.map_or((None, (0, 0, 0)), |(name, sums)| (Some(name), sums));
        let (command_ns, command_tasks, command_slept_ns) = sums;
        Some(PathConsisted {
            sentence: format!(
                "The critical path of {who}, {length} long, was {}{by}{serial}: {verdict}.{others}",
                parts.join(", ")
            ),
            certainty,
            running_ns: times.running_ns,
            sleeping_ns: times.sleeping_ns,
            scheduler_ns,
            command,
            command_ns,
            command_tasks,
            command_slept_ns,
            tail,
            all_tasks,
        })
    }
}
