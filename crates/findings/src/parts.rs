//! Parts of findings: a late command, a late job, the share of a cgroup, its limit.

use sched::lengths::human;
use sched::nouns::counted;
use sched::{Comm, Dur, Pid, Window};
use serde::Serialize;
use session::Session;

/// The wakeups of a command, and what held them up.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LateCommand {
    /// The command, or the common part of the names of its tasks.
    pub command: String,
    /// The number of its wakeups.
    pub wakeups: u64,
    /// The number of these whose latency was 4 ms or longer.
    pub late: u64,
    /// The median of its wakeup latencies, in nanoseconds.
    pub p50_ns: Option<Dur>,
    /// The 99th percentile of its wakeup latencies, in nanoseconds.
    pub p99_ns: Option<Dur>,
    /// The greatest of the wakeup latencies, in nanoseconds.
    pub max_ns: Option<Dur>,
    /// The time for which its tasks were queued, after wakeups and otherwise, in nanoseconds of tasks.
    pub queued_ns: Dur,
    /// The command that occupied their CPUs for most of that time; absent if no task did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
    /// The part of the queued time for which that command did, in nanoseconds of tasks.
    pub behind_ns: Dur,
}

impl LateCommand {
    /// The tasks that held the command up, as a clause; nothing where none did for a tenth of its queued time.
    pub(crate) fn culprit(&self) -> String {
        let percent = 100.0 * self.behind_ns.0 as f64 / (self.queued_ns.0 as f64).max(1.0);
        match &self.behind {
            Some(behind) if percent >= 10.0 => {
                let who = if *behind == self.command { "others of the same command" } else { behind };
                format!("; {percent:.0} % of its {} in run queues were spent behind {who}", self.queued_ns.human())
            }
            _ => String::new(),
        }
    }

    /// The number of late wakeups in words.
    pub(crate) fn late_ones(&self) -> String {
        let share = 100.0 * self.late as f64 / (self.wakeups as f64).max(1.0);
        format!("{} ({share:.0} %) took 4 ms or longer to run", self.late)
    }

    /// The wakeups in words.
    pub(crate) fn numbers(&self) -> String {
        let LateCommand { wakeups, late, p50_ns, max_ns, .. } = self;
        let share = 100.0 * *late as f64 / (*wakeups as f64).max(1.0);
        let (most, median) = (human(*max_ns), human(*p50_ns));
        let number = match late == wakeups {
            true => format!("each of its {} took 4 ms or longer to run", counted(*wakeups, "wakeup")),
            false => format!("{late} of its {} ({share:.0} %) took 4 ms or longer to run", counted(*wakeups, "wakeup")),
        };
        match most == median {
            true => format!("{number}, {most} in the median and at most"),
            false => format!("{number}, {median} in the median, {most} at most"),
        }
    }
}

/// The job that was latest, with what kept it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatestJob {
    /// The task of the job.
    pub pid: Pid,
    /// The command name of the task.
    pub command: Comm,
    /// The release of the job, in nanoseconds from the start of the trace.
    pub release_in_trace_ns: u64,
    /// The response time of the job, in nanoseconds.
    pub response_ns: Dur,
    /// The time for which it waited in run queues, in nanoseconds.
    pub waited_ns: Dur,
    /// The time for which it ran, in nanoseconds.
    pub run_ns: Dur,
    /// The task that ran longest on its CPU while it waited; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Pid>,
    /// The command name of that task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind_command: Option<Comm>,
    /// The time for which that task ran meanwhile, in nanoseconds.
    pub behind_ns: Dur,
}

/// The CPU time of a cgroup by weight.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CgroupShare {
    /// The `cpu.weight` of the cgroup; null where it is unknown.
    pub weight: Option<u64>,
    /// The CPU time to which its weight entitles it, in nanoseconds.
    pub entitled_ns: Dur,
    /// The CPU time that it got, in nanoseconds.
    pub got_ns: Dur,
}

impl CgroupShare {
    /// The CPU time that it got, in percent of that to which it is entitled.
    pub(crate) fn percent(&self) -> f64 {
        100.0 * self.got_ns.0 as f64 / (self.entitled_ns.0 as f64).max(1.0)
    }

    /// The weight in parentheses, where it is known.
    pub(crate) fn weight_in_words(&self) -> String {
        self.weight.map_or(String::new(), |weight| format!(" (weight {weight})"))
    }
}

/// A cgroup with a limit of CPU time (`cpu.max`), by the machine file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitedCgroup {
    /// The path of the cgroup.
    pub cgroup: String,
    /// The CPU time that its tasks may use in each period, in nanoseconds.
    pub quota_ns: Dur,
    /// The length of a period, in nanoseconds.
    pub period_ns: Dur,
    /// The throttled time by the kernel's counter over the recording, in nanoseconds; null for a part of a recording, or without counters.
    pub counted_ns: Option<u64>,
    /// The number of periods in which it had runnable tasks, by the kernel's counter.
    pub periods: Option<u64>,
    /// The number of these periods in which it was throttled.
    pub throttled_periods: Option<u64>,
}

impl LimitedCgroup {
    /// The cgroup with its limit and its counters.
    pub(crate) fn in_words(&self) -> String {
        let periods = self.throttled_periods.zip(self.periods).map_or(String::new(), |(throttled, all)| {
            format!(" (so in {throttled} of {} by the kernel's counters)", counted(all, "period"))
        });
        let (quota, period) = (self.quota_ns.human(), self.period_ns.human());
        format!("cgroup {}, which may use {quota} of CPU time in each {period}{periods}", self.cgroup)
    }
}

/// The cgroups with limits, with the counters of a whole recording.
pub(crate) fn limited(session: &Session) -> Vec<LimitedCgroup> {
    let is_whole = session.window == Window::default() && session.trace.past().is_none();
    // The counters are those of the whole recording.
    let counted = |counter: Option<u64>| counter.filter(|_| is_whole);
    let cgroups = session.machine.iter().flat_map(|machine| &machine.cgroups);
    let limited = cgroups.filter_map(|cgroup| {
        let (quota, period) = cgroup.quota()?;
        Some(LimitedCgroup {
            cgroup: cgroup.path.to_string(),
            quota_ns: Dur(quota.saturating_mul(1000)),
            period_ns: Dur(period.saturating_mul(1000)),
            counted_ns: counted(cgroup.counted("throttled_usec")).map(|us| us.saturating_mul(1000)),
            periods: counted(cgroup.counted("nr_periods")),
            throttled_periods: counted(cgroup.counted("nr_throttled")),
        })
    });
    limited.collect()
}
