//! The kinds of findings, each with its numbers.

use crate::parts::{CgroupShare, LateCommand, LatestJob, LimitedCgroup};
use sched::{Comm, Cpu, Dur, Pid, QueuedTimes};
use serde::Serialize;
use why::BarredRow;

/// The certainty of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// The trace shows everything that the numbers depend on.
    Exact,
    /// A part of the CPU time, of the path or of the CPUs is unknown: the numbers hold for the known part.
    Bounded,
    /// The trace suggests the finding and does not show it.
    Possible,
}

impl Certainty {
    /// The word for people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Certainty::Exact => "exact",
            Certainty::Bounded => "bounded, a part is unknown",
            Certainty::Possible => "possible",
        }
    }
}

/// The time that costs are measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CostUnit {
    /// Time on the critical path of the traced command.
    CriticalPath,
    /// CPU time lost: no critical path is known, or no finding costs 5 % of it.
    CpuTimeLost,
}

/// A finding with its numbers. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Observation {
    /// Tasks waited while CPUs idled that could have run them.
    Violation {
        /// The time in violation, in percent of the window.
        percent: f64,
        /// The possible time in violation, in percent of the window, if unknown CPUs were at fault.
        possible_percent: f64,
        /// The CPU time lost, in nanoseconds.
        cpu_time_lost_ns: u64,
        /// The origin of the waits with the most waiting in violation; absent if there is no waiting.
        #[serde(skip_serializing_if = "Option::is_none")]
        origin: Option<String>,
        /// The share of that origin in the waiting in violation, in percent.
        origin_percent: f64,
        /// The queued time on the critical path, in nanoseconds, without time that is throttled; null without a path.
        queued_on_path_ns: Option<u64>,
        /// The part of that beside idle CPUs, in nanoseconds, without the part that affinity explains; null without a path.
        on_path_ns: Option<u64>,
        /// Whether affinity explains a part of the time, or seems to: see the finding on affinity.
        affinity_aside: bool,
    },
    /// The critical path waited for CPUs.
    PathQueued {
        /// The queued time on the path, in nanoseconds, without time that is throttled.
        queued_ns: u64,
        /// The queued time by kind, in nanoseconds.
        #[serde(flatten)]
        kinds: QueuedTimes,
        /// The queued time, in percent of the path.
        percent: f64,
    },
    /// A task on the critical path slept until another one that was queued itself, as for a lock whose holder waits.
    WakerQueued {
        /// The task that slept.
        pid: Pid,
        /// The command name of that task.
        command: Comm,
        /// The task that explains the sleeps.
        until_pid: Pid,
        /// The command name of that task.
        until_command: Comm,
        /// The number of its sleeps in which that task was queued for half of its time or more.
        sleeps: u64,
        /// The time for which the path is with that task in these sleeps, in nanoseconds.
        slept_ns: u64,
        /// The part of that time for which that task was queued, in nanoseconds.
        queued_ns: u64,
        /// The same part for all pairs of tasks on the path, in nanoseconds.
        all_queued_ns: u64,
    },
    /// Tasks were held back: they waited on idle CPUs, their own.
    HeldBack {
        /// The time for which some task was held back, in percent of the window.
        percent: f64,
        /// The time of all CPUs that idled beside their own waiting tasks, in nanoseconds.
        cpu_ns: u64,
        /// The number of such times of 1 ms or longer.
        times: u64,
        /// The length of the longest one, in nanoseconds.
        longest_ns: Dur,
        /// The start of the longest one, in nanoseconds from the start of the trace.
        start_in_trace_ns: u64,
        /// The CPU that idled then.
        cpu: Cpu,
        /// The task that had waited there longest; absent where none is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        pid: Option<Pid>,
        /// The command name of that task.
        #[serde(skip_serializing_if = "Option::is_none")]
        command: Option<Comm>,
        /// The queued time on the critical path that was held back, in nanoseconds; null without a path.
        on_path_ns: Option<u64>,
        /// The longest wait of 100 ms or more for half of which the task was held back; absent where there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        wait: Option<HeldBackWait>,
    },
    /// Tasks waited beside shorter queues, and no CPU idled.
    Unbalanced {
        /// The unbalanced time, in percent of the window.
        percent: f64,
        /// The time of all CPUs with a queue that was too long, in nanoseconds.
        cpu_ns: u64,
        /// The number of unbalanced times.
        episodes: u64,
        /// The length of the longest one, in nanoseconds.
        longest_ns: Dur,
        /// The start of the longest one, in nanoseconds from the start of the trace.
        start_in_trace_ns: u64,
        /// The largest difference in it between the length of a queue and that of the shortest one that its task may use, in tasks.
        difference: u32,
    },
    /// Tasks ran on small CPUs while larger ones idled that they may use.
    SmallCpu {
        /// The time of all such tasks, in nanoseconds.
        task_ns: u64,
        /// The same in percent of the window: above 100 where several tasks did at once.
        percent: f64,
        /// The capacity of the CPUs of most of that time, of at most 1024.
        capacity: u64,
        /// The capacity of the largest CPU that idled meanwhile.
        idle_capacity: u64,
    },
    /// Tasks shared cores, on sibling CPUs, while whole cores idled.
    CrowdedCores {
        /// The time, in percent of the window.
        percent: f64,
        /// The core time lost, in nanoseconds.
        core_time_lost_ns: u64,
    },
    /// Tasks waited for long.
    Starved {
        /// The number of waits of 100 ms or longer among the five longest waits.
        waits: usize,
        /// The length of the longest wait, in nanoseconds.
        longest_ns: Dur,
        /// The start of the longest wait, in nanoseconds from the start of the trace.
        start_in_trace_ns: u64,
        /// The task with the longest wait.
        pid: Pid,
        /// The command name of that task.
        command: Comm,
        /// The CPU on which it ran in the end, or on which it still waited.
        cpu: Cpu,
        /// The CPUs on whose run queues it waited, at most three: the one on which it waited longest first.
        queues: Vec<Cpu>,
        /// The command that ran most meanwhile on the CPUs it waited for; absent if none did.
        #[serde(skip_serializing_if = "Option::is_none")]
        behind: Option<Comm>,
        /// The time for which that command ran there, in nanoseconds.
        behind_ns: u64,
        /// The time for which any task ran there, in nanoseconds.
        others_ran_ns: u64,
        /// The time for which those CPUs idled meanwhile, 1 ms or longer at a time, in nanoseconds.
        held_back_ns: u64,
        /// The work or the idleness of those CPUs in words, with its share of the wait; empty where nothing took half of it.
        meanwhile: String,
        /// The time of that wait during which a CPU idled that could have run the task, in nanoseconds; null for a kernel thread that
        /// is bound to its CPU.
        could_have_run_ns: Option<Dur>,
        /// The CPUs that the task may use, such as `1` or `0-5`; absent where it is not known to be restricted.
        #[serde(skip_serializing_if = "Option::is_none")]
        may_use: Option<String>,
    },
    /// Many queued tasks left one CPU for one other at once.
    Herds {
        /// The number of herds.
        herds: usize,
        /// The number of tasks in the largest one.
        tasks: u32,
        /// The CPU that the tasks of the largest herd left.
        orig: Cpu,
        /// The CPU that they came to.
        dest: Cpu,
        /// The start of the largest herd, in nanoseconds from the start of the trace.
        start_in_trace_ns: u64,
        /// The time until at most one task waited there, in nanoseconds; null if the window ended before.
        drained_after_ns: Option<Dur>,
    },
    /// Bandwidth control (`cpu.max`) kept tasks from running.
    Throttling {
        /// The throttled CPUs; empty without records of throttling.
        cpus: Vec<Cpu>,
        /// The number of times at which a CPU was throttled; null without records of throttling.
        times: Option<u64>,
        /// The throttled time of all CPUs, in nanoseconds; null without records of throttling.
        cpu_ns: Option<u64>,
        /// The throttled time of all tasks, in nanoseconds; null if no records show the tasks.
        task_ns: Option<u64>,
        /// The throttled time on the critical path, in nanoseconds; without records the time for which it was held back; null without a path.
        on_path_ns: Option<u64>,
        /// The time of all CPUs that idled beside their own waiting tasks, in nanoseconds; null with records of throttling.
        held_back_ns: Option<u64>,
        /// The throttled cgroups by the kernel's counters, the one with the longest time first.
        cgroups: Vec<LimitedCgroup>,
    },
    /// Tasks waited beside idle CPUs that they may not use, or seem not to use.
    Affinity {
        /// Whether the CPUs that tasks may use are known. Otherwise they never queued on the idle CPUs, which suggests it.
        is_known: bool,
        /// The time that affinity explains, in percent of the window.
        percent: f64,
        /// The share of that in the time in which tasks waited beside idle CPUs, in percent.
        share_percent: f64,
        /// The queued time on the critical path beside idle CPUs that affinity explains, in nanoseconds; null without a path.
        on_path_ns: Option<u64>,
        /// The task that waited so for the longest time; absent where the CPUs of tasks are unknown.
        #[serde(skip_serializing_if = "Option::is_none")]
        most: Option<BarredRow>,
        /// The CPUs on which tasks were queued that only seem bound; absent where the CPUs of tasks are known.
        #[serde(skip_serializing_if = "Option::is_none")]
        confined_to: Option<String>,
        /// The CPUs outside of load balancing, by the machine file; absent where there are none.
        #[serde(skip_serializing_if = "Option::is_none")]
        isolated: Option<String>,
    },
    /// Woken tasks ran late.
    SlowWakeups {
        /// The number of wakeups.
        wakeups: u64,
        /// The median of the wakeup latencies, in nanoseconds.
        p50_ns: Option<Dur>,
        /// The 99th percentile of the wakeup latencies, in nanoseconds.
        p99_ns: Option<Dur>,
        /// The greatest wakeup latency, in nanoseconds.
        max_ns: Option<Dur>,
        /// The time on the critical path from wakings to run queues, in nanoseconds; null without a path.
        waking_on_path_ns: Option<u64>,
        /// The late command that spent the most time between its wakings and runs; absent where each by itself is not late.
        #[serde(skip_serializing_if = "Option::is_none")]
        latest: Option<LateCommand>,
    },
    /// Tasks of one command ran late after their wakeups, while those of most others did not.
    LateCommand {
        /// The late command that spent the most time between its wakings and runs.
        #[serde(flatten)]
        latest: LateCommand,
        /// The number of further late commands.
        further: usize,
        /// The number of wakeups of all judged tasks.
        all_wakeups: u64,
        /// The median of the wakeup latencies of all judged tasks, in nanoseconds.
        all_p50_ns: Option<Dur>,
    },
    /// Jobs of periodic tasks, or of tasks with recorded deadlines, ended too late.
    MissedPeriods {
        /// The number of tasks that missed as many deadlines as a finding needs.
        tasks: usize,
        /// The number of the jobs of these tasks.
        jobs: u64,
        /// The number of these that missed their deadlines.
        missed: u64,
        /// The task that missed most.
        pid: Pid,
        /// The command name of that task.
        command: Comm,
        /// The number of the jobs of that task.
        task_jobs: u64,
        /// The number of deadlines that it missed.
        task_missed: u64,
        /// The deadline of its latest job after the release, in nanoseconds: its period unless another one is recorded.
        deadline_ns: Option<Dur>,
        /// The latest job of these tasks; absent where it is not among those that are kept.
        #[serde(skip_serializing_if = "Option::is_none")]
        latest: Option<LatestJob>,
    },
    /// A cgroup got less than its share by weight, or waited behind another one.
    BehindCgroup {
        /// The path of the cgroup.
        cgroup: String,
        /// The share of the cgroup; null where no weights are known.
        share: Option<CgroupShare>,
        /// The other cgroup behind which its tasks waited longest; null where they waited behind none.
        behind: Option<String>,
        /// The share of that other cgroup; null where no weights are known.
        behind_share: Option<CgroupShare>,
        /// The time for which they waited behind that one, in nanoseconds of tasks.
        behind_ns: Dur,
    },
    /// Tasks outside of the application took CPU time.
    Interference {
        /// The time for which tasks outside of the application ran, in nanoseconds, without kernel threads.
        run_ns: u64,
        /// The share of that in the busy CPU time, in percent.
        busy_percent: f64,
        /// The command of those tasks that ran most; absent if none is named.
        #[serde(skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        /// The time for which the tasks of that command ran, in nanoseconds.
        command_run_ns: u64,
        /// The queued time on the critical path behind tasks outside of the application, in nanoseconds; null without a path.
        behind_on_path_ns: Option<u64>,
    },
    /// Events were lost.
    Losses {
        /// The number of places where events were lost.
        gaps: u64,
        /// The CPU time of which nothing is known, in percent of all.
        unknown_percent: f64,
        /// Events that the recorder counted but that are missing without a mark, in percent of all it counted.
        unwritten_percent: f64,
    },
    /// Events that the findings depend on were not recorded.
    NotRecorded {
        /// The reason why the waiting tasks are unknown.
        reason: String,
        /// Whether no finding on waiting tasks is possible.
        withholds: bool,
    },
    /// A large part of the critical path is unknown.
    PathUnknown {
        /// The unknown time on the path, in nanoseconds.
        unknown_ns: u64,
        /// The unknown time, in percent of the path.
        percent: f64,
        /// The number of gaps.
        gaps: u64,
        /// Whether too much is unknown for costs to be measured on the path.
        is_untrusted: bool,
    },
}

/// A long wait of a task that was held back for half of it or longer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldBackWait {
    /// The task that waited.
    pub pid: Pid,
    /// The command name of that task.
    pub command: Comm,
    /// The CPUs on whose run queues it waited, at most three: the one on which it waited longest first.
    pub queues: Vec<Cpu>,
    /// The start of the wait, in nanoseconds from the start of the trace.
    pub start_in_trace_ns: u64,
    /// The length of the wait within the window, in nanoseconds.
    pub duration_ns: Dur,
    /// The time for which those CPUs idled meanwhile, 1 ms or longer at a time, in nanoseconds.
    pub held_back_ns: u64,
    /// Whether the task still waited at the end of the window.
    pub still_waits: bool,
}

impl Observation {
    /// Whether it is about the trace, and not about the scheduler: such a finding costs no time and follows the others.
    pub(crate) fn is_doubt(&self) -> bool {
        use Observation::{Losses, NotRecorded, PathUnknown};
        matches!(self, Losses { .. } | NotRecorded { .. } | PathUnknown { .. })
    }

    /// Whether it is about what was asked of the scheduler, a deadline or a share: such a finding precedes the others.
    pub(crate) fn is_asked(&self) -> bool {
        matches!(self, Observation::MissedPeriods { .. } | Observation::BehindCgroup { .. })
    }

    /// Whether it is about the whole file, whatever the window: the command that looks closer reads all of it.
    pub(crate) fn is_on_file(&self) -> bool {
        matches!(self, Observation::Losses { .. } | Observation::NotRecorded { .. })
    }

    /// Whether it is a finding on all waiting tasks or on the whole queued time of the path.
    pub(crate) fn is_on_all_waiting(&self) -> bool {
        use Observation::{Affinity, HeldBack, PathQueued, Violation};
        matches!(self, Violation { .. } | PathQueued { .. } | Affinity { .. } | HeldBack { .. })
    }

    /// Whether it is a part of the queued time: such a finding follows the first one on the whole.
    pub(crate) fn is_on_some_waiting(&self) -> bool {
        use Observation::{Herds, Interference, Starved, WakerQueued};
        matches!(self, Starved { .. } | Herds { .. } | Interference { .. } | WakerQueued { .. })
    }

    /// The command that looks closer, with its options.
    pub(crate) fn command(&self) -> (&'static str, &'static [&'static str]) {
        match self {
            Observation::Violation { .. } | Observation::SmallCpu { .. } => ("why", &[]),
            Observation::CrowdedCores { .. } => ("residency", &[]),
            Observation::PathQueued { .. } | Observation::PathUnknown { .. } | Observation::WakerQueued { .. } => {
                ("path", &[])
            }
            Observation::Starved { .. } => ("fairness", &["--verbose"]),
            Observation::Herds { .. } => ("migrations", &[]),
            Observation::Throttling { .. } | Observation::HeldBack { .. } | Observation::Unbalanced { .. } => {
                ("workcons", &[])
            }
            Observation::Affinity { is_known: true, .. } => ("workcons", &["--waiters all"]),
            Observation::Affinity { is_known: false, .. } => ("why", &["--assume-bound"]),
            Observation::SlowWakeups { .. } | Observation::LateCommand { .. } => ("latency", &[]),
            Observation::MissedPeriods { .. } => ("jobs", &[]),
            Observation::BehindCgroup { share: Some(_), .. } => ("fairness", &["--by cgroup"]),
            Observation::BehindCgroup { share: None, .. } => ("neighbours", &["--by cgroup"]),
            Observation::Interference { .. } => ("utilization", &[]),
            Observation::Losses { .. } | Observation::NotRecorded { .. } => ("info", &[]),
        }
    }
}
