//! The sentence of each finding.

use crate::measure::WAITS;
use crate::path_time::OnPath;
use crate::{HeldBackWait, Observation, asked, late, limits, sleeps};
use sched::nouns::counted;
use sched::{Cpu, Dur, QueuedTimes};
use std::cmp::Reverse;
use why::BarredRow;

/// A finding in one sentence.
pub(crate) fn sentence(observation: &Observation, on_path: OnPath<'_>) -> String {
    match observation {
        Observation::Violation { .. } | Observation::Affinity { .. } => beside_idle(observation, on_path),
        Observation::PathQueued { queued_ns, kinds, percent } => {
            format!("The critical path is queued for {} ({percent:.1} %): {}.", Dur(*queued_ns).human(), by_kind(kinds))
        }
        Observation::WakerQueued { .. } => sleeps::sentence(observation, on_path),
        Observation::HeldBack { .. } | Observation::Unbalanced { .. } => not_beside_idle(observation, on_path),
        Observation::Starved {
            longest_ns,
            start_in_trace_ns,
            pid,
            command,
            queues,
            meanwhile,
            held_back_ns,
            could_have_run_ns,
            may_use,
            waits,
            ..
        } => {
            let other = if *held_back_ns > 0 { "other " } else { "" };
            let idled = match could_have_run_ns {
                None => "it is bound to that CPU".to_owned(),
                Some(Dur(0)) => match may_use {
                    Some(cpus) if is_one(cpus) => format!("it may use CPU {cpus} alone"),
                    Some(cpus) => format!("it may use CPUs {cpus} alone, and no {other}one of these idled"),
                    None => format!("no {other}CPU idled"),
                },
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
        Observation::CrowdedCores { percent, core_time_lost_ns } => format!(
            "Tasks shared cores, on SMT siblings, {percent:.1} % of the time while a whole core idled: {} of core time in all.",
            Dur(*core_time_lost_ns).human()
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
        Observation::Throttling { .. } => limits::sentence(observation, on_path),
        Observation::SlowWakeups { .. } | Observation::LateCommand { .. } => late::sentence(observation, on_path),
        Observation::MissedPeriods { .. } | Observation::BehindCgroup { .. } => asked::sentence(observation),
        Observation::Interference { run_ns, busy_percent, command, command_run_ns, behind_on_path_ns } => {
            let most = command
                .as_ref()
                .map_or(String::new(), |command| format!(", {command} most ({})", Dur(*command_run_ns).human()));
            let behind = behind_on_path_ns.map_or(String::new(), |ns| {
                format!("; the critical path is queued behind them for {}", on_path.time(ns))
            });
            format!(
                "Tasks outside of the application ran for {} ({busy_percent:.1} % of the busy time){most}{behind}.",
                Dur(*run_ns).human()
            )
        }
        Observation::Losses { .. } | Observation::NotRecorded { .. } | Observation::PathUnknown { .. } => {
            doubt(observation, on_path.0.map(|(task, _)| task))
        }
    }
}

/// The kinds of a queued time that are a thousandth of it or more, the longest first.
fn by_kind(kinds: &QueuedTimes) -> String {
    let [forbidden, alike] = [kinds.beside_forbidden_ns.min(kinds.alike_ns), kinds.alike_ns];
    let mut parts = [
        (alike - forbidden, "waiting for CPU time while all queues were alike"),
        (kinds.beside_shorter_ns, "beside a shorter queue"),
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
fn not_beside_idle(observation: &Observation, on_path: OnPath<'_>) -> String {
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
            let path = on_path_ns.and_then(|ns| on_path.told(ns));
            let path = path.map_or(String::new(), |time| format!("; the critical path is held back for {time}"));
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
            "Queues were unbalanced {percent:.1} % of the time, while no CPU idled: a task waited although another CPU that it may use had a \
             shorter queue, {} in all; the longest lasted {} from {:.6} s on{}.",
            counted(*episodes, "time"),
            longest_ns.human(),
            *start_in_trace_ns as f64 / 1e9,
            workcons::fewer_tasks(*difference, ", with ")
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
fn beside_idle(observation: &Observation, on_path: OnPath<'_>) -> String {
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
            let path = queued_on_path(observation, on_path).map_or(String::new(), |path| format!("; {path}{aside}"));
            format!("Tasks waited while CPUs idled {percent:.1} % of the time{possible}{origin}{path}.")
        }
        Observation::Affinity { is_known, percent, share_percent, on_path_ns, most, confined_to, isolated } => {
            let path = on_path_ns.and_then(|ns| on_path.told(ns));
            let path =
                path.map_or(String::new(), |time| format!("; the critical path is queued beside such CPUs for {time}"));
            let isolated = isolated.as_deref().map_or(String::new(), |cpus| {
                let (word, are) = if is_one(cpus) { ("CPU", "is") } else { ("CPUs", "are") };
                format!("; {word} {cpus} {are} isolated")
            });
            let most = most.as_ref().map_or(String::new(), barred);
            let only = confined_to.as_deref().map_or(String::new(), |cpus| {
                let word = if is_one(cpus) { "CPU" } else { "CPUs" };
                format!(", but on {word} {cpus} alone")
            });
            match is_known {
                true => format!(
                    "Affinity binds: tasks waited beside idle CPUs that they may not use, {percent:.1} % of the time, \
                     {share_percent:.0} % of the CPU time lost{most}{isolated}{path}."
                ),
                false => format!(
                    "Tasks seem bound by affinity or cpusets: in {share_percent:.0} % of the violated time ({percent:.1} % of the \
                     window) the waiting tasks were never queued on the idle CPUs{only}{isolated}{path}."
                ),
            }
        }
        _ => String::new(),
    }
}

/// Whether a list of CPUs has one.
fn is_one(cpus: &str) -> bool {
    cpus.chars().all(|letter| letter.is_ascii_digit())
}

/// The task that waited longest beside idle CPUs that it may not use.
fn barred(most: &BarredRow) -> String {
    let word = if is_one(&most.cpus) { "CPU" } else { "CPUs" };
    let who = most.pid.named(most.command);
    format!("; {who} most, for {}: it may use {word} {} alone", most.ns.human(), most.cpus)
}

/// The queued time on the path with the part beside idle CPUs; nothing without a path.
fn queued_on_path(observation: &Observation, on_path: OnPath<'_>) -> Option<String> {
    let Observation::Violation { queued_on_path_ns: Some(queued), on_path_ns: Some(beside), .. } = observation else {
        return None;
    };
    let Some(time) = on_path.told(*queued) else {
        let how_much = if *queued == 0 { "never" } else { "hardly ever" };
        return Some(format!("the critical path is {how_much} queued"));
    };
    let part = match on_path.told(*beside) {
        None if *beside == 0 => "but never beside an idle CPU".to_owned(),
        None => "but hardly ever beside an idle CPU".to_owned(),
        Some(_) if queued == beside => "all of that beside idle CPUs".to_owned(),
        Some(part) => format!("{part} of that beside idle CPUs"),
    };
    Some(format!("the critical path is queued for {time}, {part}"))
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
