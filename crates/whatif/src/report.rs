//! The numbers of a prediction.

use crate::engine::{Costs, Order, Pulls};
use crate::measures::RunFigures;
use crate::model::{ClassSum, Taken};
use sched::{Comm, Dur, QueuedTimes};
use serde::Serialize;

/// The relative difference of a value from a true one, in percent; zero where both are zero, 100 where only the true one is.
pub(crate) fn error_percent(value: f64, truth: f64) -> f64 {
    match (value, truth) {
        (0.0, 0.0) => 0.0,
        (_, 0.0) => 100.0,
        _ => 100.0 * (value - truth) / truth,
    }
}

/// A predicted number with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The prediction, in the unit that the field names.
    pub value: f64,
    /// The lower end of the interval that should hold the true value in 90 % of runs.
    pub low: f64,
    /// The upper end of that interval.
    pub high: f64,
    /// The change against the trace, in percent; absent where the trace has zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_percent: Option<f64>,
}

impl Estimate {
    /// The estimate of a number that is `trace` in the trace. The interval holds the value and all of `others`.
    pub(crate) fn new(value: f64, trace: f64, others: impl Iterator<Item = f64>) -> Estimate {
        let (mut low, mut high) = (value, value);
        for other in others {
            (low, high) = (low.min(other), high.max(other));
        }
        let change_percent = (trace > 0.0).then(|| error_percent(value, trace));
        Estimate { value, low, high, change_percent }
    }

    /// Whether the interval holds a number.
    pub fn holds(&self, truth: f64) -> bool {
        self.low <= truth && truth <= self.high
    }
}

/// The prediction for a policy: the numbers of the trace with the change that the policy makes to the model, but for `steal=none` and `ideal`
/// those of the simulated run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyRow {
    /// The name of the policy.
    pub policy: String,
    /// The elapsed time of the traced command, or of all work where there is no traced command, in nanoseconds.
    pub elapsed_ns: Estimate,
    /// The time in violation of work conservation, in nanoseconds.
    pub violation_ns: Estimate,
    /// The CPU time lost in violation, in nanoseconds.
    pub cpu_time_lost_ns: Estimate,
    /// The time for which CPUs were busy, in percent of the run times the CPUs.
    pub busy_percent: Estimate,
    /// The number of steals in the simulated run.
    pub steals: u64,
    /// The least number of steals under any of the assumptions that the trace leaves open.
    pub least_steals: u64,
    /// The greatest number of steals under any of these assumptions.
    pub most_steals: u64,
    /// The tasks that balancing at ticks moved in the simulated run; absent where the policy does not balance at ticks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pulls: Option<Pulls>,
    /// The number of missed steals.
    pub missed_steals: Estimate,
    /// The mean of the waits in run queues, in nanoseconds.
    pub mean_wait_ns: Estimate,
    /// The 99th percentile of the waits in run queues, in nanoseconds.
    pub p99_wait_ns: Estimate,
    /// Whether the simulated run ended by itself, rather than by being cut off.
    pub is_complete: bool,
}

/// The waits of a command in the trace and in the model's run of the same policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandError {
    /// The command of the tasks that waited.
    pub command: Comm,
    /// The number of waits in the trace.
    pub number: u64,
    /// The mean of the waits in the trace, in nanoseconds.
    pub trace_mean_ns: Option<Dur>,
    /// The mean of the waits in the model's run, in nanoseconds.
    pub observed_mean_ns: Option<Dur>,
}

/// The model against the trace itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibration {
    /// Whether there is a prediction.
    pub is_predictable: bool,
    /// The reasons why there is none.
    pub reasons: Vec<String>,
    /// The ways to record a trace that can be predicted from.
    pub advice: Vec<String>,
    /// The error of policy `observed` in the elapsed time, in percent.
    pub elapsed_error_percent: f64,
    /// The error of policy `observed` in the time in violation, in percentage points of the run.
    pub violation_error_points: f64,
    /// The error of policy `observed` in the mean wait, in percent.
    pub mean_wait_error_percent: f64,
    /// The error of policy `steal=none` in the elapsed time, in percent: the trace's placements and moves, with the order of queues and
    /// the preemption that the predictions have.
    pub rules_elapsed_error_percent: f64,
    /// The error of policy `steal=none` in the time in violation, in percentage points of the run.
    pub rules_violation_error_points: f64,
    /// The error of policy `steal=none` in the mean wait, in percent.
    pub rules_mean_wait_error_percent: f64,
    /// The length of the critical path, in nanoseconds; zero where no path was found.
    pub path_ns: Dur,
    /// The sleep on the critical path that no task ends, and the unknown time on it, in nanoseconds.
    pub sleep_on_path_ns: Dur,
    /// The part of that whose cause the trace does not show, in nanoseconds.
    pub unknown_sleep_on_path_ns: Dur,
    /// The time on the critical path that may move with any task, in nanoseconds: unknown time, and what is only possibly on the path.
    pub open_on_path_ns: Dur,
    /// The share of the violated time, in percent, in which the waiting tasks seem bound to CPUs other than those that idled; absent where they
    /// do not, and where the CPUs that tasks may use are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seem_bound_percent: Option<f64>,
    /// The waits by command, the one with the most waiting first.
    pub waits: Vec<CommandError>,
}

impl Calibration {
    /// The error of the model's rules, or of the trace's own policy if that is greater, in the elapsed time, in percent.
    pub fn own_error_percent(&self) -> f64 {
        self.rules_elapsed_error_percent.abs().max(self.elapsed_error_percent.abs())
    }
}

/// The time that decisions of policies cost in the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CostsOfPolicies {
    /// The time from the decision to steal until the task runs, in nanoseconds.
    pub steal_ns: Dur,
    /// The time by which the next run of a task is longer after a steal within the node, in nanoseconds.
    pub migration_ns: Dur,
    /// The time by which the next run of a task is longer after a steal from another node, in nanoseconds.
    pub node_migration_ns: Dur,
    /// The time that new-idle balancing takes for the smallest scheduling domain, in nanoseconds; null where no policy needs it.
    pub new_idle_lowest_ns: Option<Dur>,
    /// The time that new-idle balancing takes for all domains of a CPU, in nanoseconds; null likewise.
    pub new_idle_all_ns: Option<Dur>,
}

impl From<Costs> for CostsOfPolicies {
    fn from(costs: Costs) -> CostsOfPolicies {
        let Costs { steal, migration, node_migration, new_idle } = costs;
        CostsOfPolicies {
            steal_ns: Dur(steal),
            migration_ns: Dur(migration),
            node_migration_ns: Dur(node_migration),
            new_idle_lowest_ns: new_idle.map(|cost| Dur(cost.lowest)),
            new_idle_all_ns: new_idle.map(|cost| Dur(cost.all)),
        }
    }
}

/// The least elapsed time of the work of a trace under any scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeastElapsed {
    /// The greater one of the other two, in nanoseconds: no scheduler needs less.
    pub elapsed_ns: Dur,
    /// The longest chain of runs and sleeps each of which needs the one before it, in nanoseconds.
    pub chain_ns: Dur,
    /// The time for which the CPUs that tasks may use are busy at least, with what must happen before and behind, in nanoseconds.
    pub work_ns: Dur,
}

/// The queued time on the critical path of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OnPath {
    /// The length of the path, in nanoseconds.
    pub length_ns: Dur,
    /// The queued time on the path by kind, in nanoseconds.
    pub queued: QueuedTimes,
    /// The part beside idle CPUs under the same last-level cache, in nanoseconds; null without a topology that has caches.
    pub near_idle_ns: Option<Dur>,
    /// The wakeups in progress on the path, in nanoseconds; null where they are not known.
    pub waking_ns: Option<Dur>,
}

/// The bound that no scheduler can beat on the work of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bound {
    /// The least elapsed time of this work. Unknown and throttled time, and sleeps that any task may have caused to end, take none.
    pub least: LeastElapsed,
    /// The elapsed time of the trace without that, in nanoseconds: the most that any placement can gain.
    pub most_gain_ns: Dur,
    /// The least elapsed time if these keep their length; absent if that is not longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_if_kept: Option<LeastElapsed>,
    /// The least elapsed time if each task is bound to the CPUs that it used; absent unless tasks seem bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_if_bound: Option<LeastElapsed>,
    /// The number of CPUs on which the work is divided.
    pub cpus: u32,
    /// The queued time on the critical path; absent without a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<OnPath>,
    /// The queued time of all tasks by kind, in nanoseconds; null where no event shows when tasks were woken.
    pub queued: Option<QueuedTimes>,
}

/// The prediction from one trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prediction {
    /// The model against the trace itself.
    pub calibration: Calibration,
    /// The bound that no scheduler can beat on this work; null where it is not known what ran when, or where the programs do not come to the end.
    pub bound: Option<Bound>,
    /// The predictions, in the order of the policies that were asked for; empty where there is none.
    pub rows: Vec<PolicyRow>,
    /// The figures of the run as it was recorded.
    #[serde(rename = "recorded")]
    pub trace: RunFigures,
    /// The time that decisions cost.
    pub costs: CostsOfPolicies,
    /// The time between ticks, in nanoseconds; absent where no policy balances at ticks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick_ns: Option<Dur>,
    /// The order of the run queues.
    pub order: Order,
    /// Whether that order was asked for. Otherwise the other one counts in the intervals.
    pub order_is_given: bool,
    /// The quantities taken from the trace.
    pub taken: Taken,
    /// The sleeps by class.
    pub sleeps: Vec<ClassSum>,
    /// The number of wakeups of tasks that were awake, which the model does not repeat.
    pub early_wakeups: u64,
    /// The commands whose bursts end together again and again, `N` for the number at the end of a name: perhaps they spin at barriers,
    /// which counts as work here.
    pub spinners: Vec<Comm>,
}
