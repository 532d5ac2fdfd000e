//! The sentence of each finding.

use crate::measure::WAITS;
use crate::{HeldBackWait, Observation, asked, late};
use sched::nouns::{counted, noun};
use sched::topology::format_cpu_list;
use sched::{Cpu, Dur, QueuedTimes};
use std::cmp::Reverse;

/// A finding in one sentence. `of_path`: the task at the end of the critical path and the length of the path.
pub(crate) fn sentence(observation: &Observation, of_path: Option<(&str, u64)>) -> String {
    let percent = |ns: u64| match of_path {
        Some((_, length)) => format!(" ({:.1} %)", 100.0 * ns as f64 / (length as f64).max(1.0)),
        None => String::new(),
    };
    match observation {
        Observation::Violation { .. } | Observation::Affinity { .. } => {
            beside_idle(observation, percent, |ns| is_told(of_path, ns))
        }
        Observation::PathQueued { queued_ns, kinds, percent } => {
            format!("The critical path is queued for {} ({percent:.1} %): {}.", Dur(*queued_ns).human(), by_kind(kinds))
        }
        Observation::HeldBack { .. } | Observation::Unbalanced { .. } => {
            not_beside_idle(observation, percent, |ns| is_told(of_path, ns))
        }
        Observation::Starved {
            longest_ns,
            start_in_trace_ns,
            pid,
            command,
            queues,
            meanwhile,
            held_back_ns,
            could_have_run_ns,
            waits,
            ..
        } => {
            let other = if *held_back_ns > 0 { "other " } else { "" };
            let idled = match could_have_run_ns {
                None => "it is bound to that CPU".to_owned(),
                Some(Dur(0)) => format!("no {other}CPU idled"),
                Some(ns) => format!("for {} of that a CPU idled that could have run it", ns.human()),
            };
            let at_least = if *waits == WAITS { "at least " } else { "" };
            let more = match waits - 1 {
                0 => String::new(),
                more => format!(", and {at_least}{} lasted 100 ms or longer", counted(more, "further wait")),
            };
            format!(
                "{} waited {} for CPU {} from {:.6} s on{meanwhile}; {idled}{more}.",
                pid.named(*command),
                longest_ns.human(),
                queues.iter().map(Cpu::to_string).collect::<Vec<_>>().join("/"),
                *start_in_trace_ns as f64 / 1e9
            )
        }
        Observation::SmallCpu { task_ns, percent, capacity, idle_capacity } => format!(
            "Tasks ran on CPUs of capacity {capacity} for {} ({percent:.1} % of the window), while one of {idle_capacity} idled that they \
             may use.",
            Dur(*task_ns).human()
        ),
        Observation::Herds { herds, tasks, orig, dest, start_in_trace_ns, drained_after_ns } => {
            let drained = drained_after_ns.map_or_else(
                || "which still had more than one waiting at the end".to_owned(),
                |after| format!("which needed {} to drain", after.human()),
            );
            let at = *start_in_trace_ns as f64 / 1e9;
            match herds {
                1 => format!(
                    "A herd of {tasks} queued tasks moved at once, from CPU {orig} to CPU {dest} at {at:.6} s, {drained}."
                ),
                _ => format!(
                    "{herds} herds of queued tasks moved at once: the largest, of {tasks} tasks, went from CPU {orig} to CPU {dest} at \
                     {at:.6} s, {drained}."
                ),
            }
        }
        Observation::Throttling { cpus, times, cpu_ns, task_ns } => {
            let tasks = match task_ns {
                Some(ns) => format!("tasks for {} in all", Dur(*ns).human()),
                None => "the records do not show which tasks".to_owned(),
            };
            format!(
                "Bandwidth control (cpu.max) throttled {} {} {}, {} of CPU time in all; {tasks}.",
                noun(cpus.len(), "CPU"),
                format_cpu_list(cpus),
                counted(*times, "time"),
                Dur(*cpu_ns).human()
            )
        }
        Observation::SlowWakeups { .. } | Observation::LateCommand { .. } => {
            let is_told = |ns: u64| of_path.is_some_and(|(_, length)| ns > 0 && ns >= length / 1000);
            late::sentence(observation, |ns| {
                if is_told(ns) { format!("{}{}", Dur(ns).human(), percent(ns)) } else { String::new() }
            })
        }
        Observation::MissedPeriods { .. } | Observation::BehindCgroup { .. } => asked::sentence(observation),
        Observation::Interference { run_ns, busy_percent, command, command_run_ns, behind_on_path_ns } => {
            let most = command
                .as_ref()
                .map_or(String::new(), |command| format!(", {command} most ({})", Dur(*command_run_ns).human()));
            let behind = behind_on_path_ns.map_or(String::new(), |ns| {
                format!("; the critical path is queued behind them for {}{}", Dur(ns).human(), percent(ns))
            });
            format!(
                "Tasks outside of the application ran for {} ({busy_percent:.1} % of the busy time){most}{behind}.",
                Dur(*run_ns).human()
            )
        }
        Observation::Losses { .. } | Observation::NotRecorded { .. } | Observation::PathUnknown { .. } => {
            doubt(observation, of_path.map(|(task, _)| task))
        }
    }
}

/// Whether a time on the critical path is worth a word: a thousandth of the path or more.
fn is_told(of_path: Option<(&str, u64)>, ns: u64) -> bool {
    of_path.is_some_and(|(_, length)| ns > 0 && ns >= length / 1000)
}

/// The kinds of a queued time that are a thousandth of it or more, the longest first.
fn by_kind(kinds: &QueuedTimes) -> String {
    let [forbidden, alike] = [kinds.beside_forbidden_ns.min(kinds.alike_ns), kinds.alike_ns];
    let mut parts = [
        (alike - forbidden, "waiting for CPU time while all queues were alike"),
        (kinds.beside_shorter_ns, "beside a queue that was shorter by two tasks or more"),
        (kinds.beside_idle_ns, "beside an idle CPU"),
        (forbidden, "beside an idle CPU that it may not use"),
        (kinds.held_back_ns, "held back on its own idle CPU"),
    ];
    parts.sort_by_key(|(ns, _)| Reverse(*ns));
    let least = (kinds.total() / 1000).max(1);
    let words = |(ns, kind): &(u64, &str)| format!("{} {kind}", Dur(*ns).human());
    let parts: Vec<String> = parts.iter().filter(|(ns, _)| *ns >= least).map(words).collect();
    parts.join(", ")
}

/// Tasks that waited, but not beside idle CPUs.
fn not_beside_idle(
    observation: &Observation,
    of_path: impl Fn(u64) -> String,
    is_told: impl Fn(u64) -> bool,
) -> String {
    match observation {
        Observation::HeldBack {
            percent,
            cpu_ns,
            times,
            longest_ns,
            start_in_trace_ns,
            cpu,
            pid,
            command,
            on_path_ns,
            wait,
        } => {
            let wait = wait.as_ref().map_or(String::new(), held_back_wait);
            let path = on_path_ns.filter(|ns| is_told(*ns)).map_or(String::new(), |ns| {
                format!("; the critical path is held back for {}{}", Dur(ns).human(), of_path(ns))
            });
            let task =
                pid.zip(*command).map_or(String::new(), |(pid, command)| format!(" beside {}", pid.named(command)));
            format!(
                "Tasks were held back on idle CPUs, their own, {percent:.1} % of the time: {}, {} of CPU time in all, by throttling, \
                 a sched_ext scheduler, core scheduling or late wakeups; CPU {cpu} idled for {} from {:.6} s on{task}{wait}{path}.",
                counted(*times, "time"),
                Dur(*cpu_ns).human(),
                longest_ns.human(),
                *start_in_trace_ns as f64 / 1e9
            )
        }
        Observation::Unbalanced { percent, episodes, longest_ns, start_in_trace_ns, difference, .. } => format!(
            "Queues were unbalanced {percent:.1} % of the time, while no CPU idled: a task waited although a CPU that it may use had at \
             least two runnable tasks fewer, {} in all; the longest lasted {} from {:.6} s on, with {difference} tasks fewer.",
            counted(*episodes, "time"),
            longest_ns.human(),
            *start_in_trace_ns as f64 / 1e9
        ),
        _ => String::new(),
    }
}

/// The longest wait of a task that was held back.
fn held_back_wait(wait: &HeldBackWait) -> String {
    let HeldBackWait { pid, command, queues, start_in_trace_ns, duration_ns, held_back_ns, still_waits } = wait;
    let still = if *still_waits { ", and still did at the end" } else { "" };
    format!(
        "; {} waited {} for CPU {} from {:.6} s on, which idled for {:.1} % of that{still}",
        pid.named(*command),
        duration_ns.human(),
        queues.iter().map(Cpu::to_string).collect::<Vec<_>>().join("/"),
        *start_in_trace_ns as f64 / 1e9,
        100.0 * *held_back_ns as f64 / (duration_ns.0 as f64).max(1.0)
    )
}

/// Tasks that waited beside idle CPUs.
fn beside_idle(observation: &Observation, of_path: impl Fn(u64) -> String, is_told: impl Fn(u64) -> bool) -> String {
    match observation {
        Observation::Violation { percent, possible_percent, origin, origin_percent, affinity_aside, .. } => {
            let [certain, possible] = [percent, possible_percent].map(|percent| format!("{percent:.1} %"));
            let possible = match certain == possible {
                true => String::new(),
                false => format!(", or {possible} if unknown CPUs are at fault"),
            };
            let origin = origin.as_ref().map_or(String::new(), |origin| {
                format!("; largest origin: {origin}, {origin_percent:.0} % of that waiting")
            });
            let aside = if *affinity_aside { ", affinity aside" } else { "" };
            let path =
                queued_on_path(observation, of_path, is_told).map_or(String::new(), |path| format!("; {path}{aside}"));
            format!("Tasks waited while CPUs idled {percent:.1} % of the time{possible}{origin}{path}.")
        }
        Observation::Affinity { is_known, percent, share_percent, on_path_ns } => {
            let path = on_path_ns.filter(|ns| is_told(*ns)).map_or(String::new(), |ns| {
                format!("; the critical path is queued beside such CPUs for {}{}", Dur(ns).human(), of_path(ns))
            });
            match is_known {
                true => format!(
                    "Affinity binds: tasks waited beside idle CPUs that they may not use, {percent:.1} % of the time, \
                     {share_percent:.0} % of the CPU time lost{path}."
                ),
                false => format!(
                    "Tasks seem bound by affinity or cpusets: in {share_percent:.0} % of the violated time ({percent:.1} % of the \
                     window) the waiting tasks were never queued on the idle CPUs{path}."
                ),
            }
        }
        _ => String::new(),
    }
}

/// The queued time on the path with the part beside idle CPUs; nothing without a path.
fn queued_on_path(
    observation: &Observation,
    of_path: impl Fn(u64) -> String,
    is_told: impl Fn(u64) -> bool,
) -> Option<String> {
    let Observation::Violation { queued_on_path_ns: Some(queued), on_path_ns: Some(beside), .. } = observation else {
        return None;
    };
    let time = |ns: u64| format!("{}{}", Dur(ns).human(), of_path(ns));
    Some(match (queued, beside) {
        (0, _) => "the critical path is never queued".to_owned(),
        (queued, _) if !is_told(*queued) => "the critical path is hardly ever queued".to_owned(),
        (_, beside) if *beside > 0 && !is_told(*beside) => {
            format!("the critical path is queued for {}, but hardly ever beside an idle CPU", time(*queued))
        }
        (_, 0) => format!("the critical path is queued for {}, but never beside an idle CPU", time(*queued)),
        _ if queued == beside => {
            format!("the critical path is queued for {}, all of that beside idle CPUs", time(*queued))
        }
        _ => format!("the critical path is queued for {}, {} of that beside idle CPUs", time(*queued), time(*beside)),
    })
}

/// Parts of the trace that are missing.
fn doubt(observation: &Observation, task: Option<&str>) -> String {
    match observation {
        Observation::Losses { gaps, unknown_percent, unwritten_percent } => {
            let places = counted(*gaps, "place");
            let known = format!("nothing is known of {unknown_percent:.2} % of the CPU time");
            let unwritten = format!("{unwritten_percent:.2} % of the events are missing without a mark");
            match (*gaps, *unwritten_percent > 0.0) {
                (0, true) => format!("Events were lost: {unwritten}."),
                (0, false) => {
                    "Parts of the recording are damaged or missing, and what they held is in no number: schedviz info names them."
                        .to_owned()
                }
                (_, true) => format!("Events were lost in {places}: {known}, and {unwritten}."),
                (_, false) => format!("Events were lost in {places}: {known}."),
            }
        }
        Observation::NotRecorded { reason, withholds: true } => {
            format!("Nothing can be concluded about waiting tasks: {reason}.")
        }
        Observation::NotRecorded { reason, withholds: false } => {
            format!("Findings on waiting tasks are possible, not certain: {reason}.")
        }
        Observation::PathUnknown { unknown_ns, percent, gaps, is_untrusted } => {
            let of = task.map_or(String::new(), |task| format!(" of {task}"));
            let then = match is_untrusted {
                true => "it is not to be trusted, and costs are CPU time lost",
                false => "its other times are at least as long as given",
            };
            format!(
                "{} ({percent:.1} %) of the critical path{of} is unknown, in {}: {then}.",
                Dur(*unknown_ns).human(),
                counted(*gaps, "gap")
            )
        }
        _ => String::new(),
    }
}
