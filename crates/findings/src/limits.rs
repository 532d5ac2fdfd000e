//! Limits of CPU time (`cpu.max`): the cgroups that have them, and the finding on tasks that they held back.

use crate::observe::{Observed, Observer};
use crate::parts::LimitedCgroup;
use crate::path_time::{OnPath, PathTime};
use crate::{Certainty, Observation};
use sched::Dur;
use sched::nouns::{counted, noun};
use sched::topology::format_cpu_list;
use std::cmp::Reverse;

/// The least throttled time, in percent of the window, that is a finding.
const THROTTLED_PERCENT: f64 = 1.0;
/// The maximum number of cgroups that a sentence names.
const NAMED: usize = 3;

impl Observer<'_> {
    /// The throttled time of all cgroups by the kernel's counters, with these cgroups, the longest first.
    fn limits(&self) -> (u64, Vec<LimitedCgroup>) {
        let throttled = |group: &&LimitedCgroup| group.throttled_periods.is_some_and(|periods| periods > 0);
        let mut groups: Vec<LimitedCgroup> = self.found.limited.iter().filter(throttled).cloned().collect();
        groups.sort_by_key(|group| Reverse(group.counted_ns));
        let all = groups.iter().filter_map(|group| group.counted_ns).fold(0, u64::saturating_add);
        (all, groups)
    }

    /// Tasks that limits of CPU time held back: by records, or else by the kernel's counters.
    pub(crate) fn throttling(&self) -> Option<Observed> {
        self.recorded_throttling().or_else(|| self.counted_throttling())
    }

    fn recorded_throttling(&self) -> Option<Observed> {
        let throttling = self.found.workcons.throttling.as_ref()?;
        let by_cpu = throttling.by_cpu();
        let cpu_ns = by_cpu.iter().map(|cpu| cpu.ns).fold(0, u64::saturating_add);
        let task_ns = throttling.task_ns();
        if !self.is_told_in_window(cpu_ns.max(task_ns.unwrap_or(0))) || by_cpu.is_empty() {
            return None;
        }
        let cost = self.priced().map_or(cpu_ns, |path| path.throttled);
        let certainty = if task_ns.is_some() { self.certainty() } else { Certainty::Possible };
        let times = by_cpu.iter().map(|cpu| cpu.times.saturating_add(cpu.without_end)).fold(0, u64::saturating_add);
        let cpus = by_cpu.iter().map(|cpu| cpu.cpu).collect();
        let (_, cgroups) = self.limits();
        let on_path_ns = self.path.as_ref().map(|path| path.throttled);
        let observation = Observation::Throttling {
            cpus,
            times: Some(times),
            cpu_ns: Some(cpu_ns),
            task_ns,
            on_path_ns,
            held_back_ns: None,
            cgroups,
        };
        Some((observation, Some(cost), certainty))
    }

    /// Without records, throttled tasks are those that are held back.
    fn counted_throttling(&self) -> Option<Observed> {
        let (counted_ns, cgroups) = self.limits();
        if !self.is_told_in_window(counted_ns) {
            return None;
        }
        let held = self.found.workcons.held_back.map_or(0, |held| held.cpu_ns);
        let on_path = |path: &PathTime<'_>| path.kinds.held_back_ns;
        let cost = self.priced().map_or(held, on_path);
        let observation = Observation::Throttling {
            cpus: Vec::new(),
            times: None,
            cpu_ns: None,
            task_ns: None,
            on_path_ns: self.path.as_ref().map(on_path),
            held_back_ns: Some(held),
            cgroups,
        };
        Some((observation, Some(cost), Certainty::Possible))
    }

    fn is_told_in_window(&self, ns: u64) -> bool {
        ns > 0 && ns as f64 * 100.0 >= THROTTLED_PERCENT * self.found.workcons.window_ns.0 as f64
    }

    /// Whether throttled tasks, of which there is a finding, count as waiting.
    pub(crate) fn hides_throttled(&self) -> bool {
        let shows_tasks = self.found.workcons.throttling.as_ref().is_some_and(|found| found.task_ns().is_some());
        !shows_tasks && self.throttling().is_some()
    }
}

/// The sentence on throttling.
pub(crate) fn sentence(observation: &Observation, on_path: OnPath<'_>) -> String {
    let Observation::Throttling { cpus, times, cpu_ns, task_ns, on_path_ns, held_back_ns, cgroups } = observation
    else {
        return String::new();
    };
    let more = match cgroups.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let groups = cgroups.iter().take(NAMED).map(LimitedCgroup::in_words).collect::<Vec<_>>().join(", ");
    let path = on_path_ns.and_then(|ns| on_path.told(ns));
    let (Some(cpu_ns), Some(times)) = (cpu_ns, times) else {
        let counted = cgroups.iter().filter_map(|group| group.counted_ns).fold(0, u64::saturating_add);
        let held = held_back_ns.filter(|ns| *ns > 0).map_or(String::new(), |ns| {
            let path = path.map_or(String::new(), |time| format!(", and the critical path for {time}"));
            format!("; tasks were held back on idle CPUs, their own, for {} of CPU time{path}", Dur(ns).human())
        });
        return format!(
            "Bandwidth control (cpu.max) throttled {groups}{more}, for {} in all; the trace does not show which waits that was{held}.",
            Dur(counted).human()
        );
    };
    let groups = if groups.is_empty() { String::new() } else { format!("{groups}{more}: ") };
    let tasks = match task_ns {
        Some(ns) => {
            let path = path.map_or(String::new(), |time| format!("; the critical path for {time}"));
            format!("tasks for {} in all{path}", Dur(*ns).human())
        }
        None => "the records do not show which tasks".to_owned(),
    };
    format!(
        "Bandwidth control (cpu.max) throttled {groups}{} {} {}, {} of CPU time in all; {tasks}.",
        noun(cpus.len(), "CPU"),
        format_cpu_list(cpus),
        counted(*times, "time"),
        Dur(*cpu_ns).human()
    )
}
