//! The numbers that were found.

use crate::Why;
use crate::barred::BarredRow;
use crate::category::Category;
use crate::grouping::GroupRow;
use crate::ledger::Ledger;
use crate::longest::{Longest, longest};
use crate::missed::Missed;
use crate::nearest::Nearest;
use crate::not_running::NotRunning;
use crate::over_time::OverTime;
use crate::smaller::SmallerRow;
use crate::story::Story;
use sched::topology::CpuOrder;
use sched::{Cause, Dur, OfSelection, SchedState, Ts};
use serde::Serialize;
use std::cmp::Reverse;
use workcons::Waiters;

/// The waits, or the idle stretches, of one origin and one end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhyRow {
    /// The origin of the waits or of the idle stretches.
    pub began: &'static str,
    /// The nearest idle CPU when the task was placed; absent where the task was not placed by a wakeup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest_idle: Option<Nearest>,
    /// The cause of the migration that is the origin; absent for other origins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_cause: Option<Cause>,
    /// The end of the waits or of the idle stretches.
    pub ended: &'static str,
    /// The cause of the migration that is the end; absent for other ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_cause: Option<Cause>,
    /// The number of cases; those without any time in violation are not counted.
    pub number: u64,
    /// The total time in violation of the cases, in nanoseconds.
    pub total_ns: Dur,
    /// The share of that in the sum of the table, in percent.
    pub percent: f64,
    /// The median of their time in violation, in nanoseconds; null where their end is unknown, and so is their length.
    pub p50_ns: Option<Dur>,
    /// The 99th percentile of their time in violation, in nanoseconds; null likewise.
    pub p99_ns: Option<Dur>,
    /// The case with the longest time in violation; null likewise.
    pub longest: Option<Longest>,
    /// The origin and the end for people.
    #[serde(skip)]
    pub words: [String; 2],
    /// The origin for people, without the nearest idle CPU.
    #[serde(skip)]
    pub origin: String,
}

/// A table of waits or of idle stretches by origin and end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rows {
    /// The sum over all rows, in nanoseconds of tasks or of CPUs.
    pub total_ns: Dur,
    /// The rows, the one with the longest time first.
    pub rows: Vec<WhyRow>,
}

/// The report of one window.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhyReport {
    /// The length of the window in nanoseconds.
    pub window_ns: Dur,
    /// The start of the window on the trace's clock, in nanoseconds.
    pub from_ns: Ts,
    /// The end of the window on the trace's clock, in nanoseconds.
    pub to_ns: Ts,
    /// The waiting tasks that count.
    pub waiters: Waiters,
    /// Whether those of the application are tasks that the user chose, instead of those of the traced command.
    #[serde(skip)]
    pub are_chosen: bool,
    /// Why there are no figures: the selected waiters are unknown, or there is none. Absent where there are figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection_unknown: Option<String>,
    /// The time in violation, in nanoseconds: that of `workcons` for episodes of any length.
    pub violation_ns: Option<Dur>,
    /// The time in violation, in percent of the window.
    pub violation_percent: Option<f64>,
    /// The waiting in violation, by how the waits began and ended.
    pub waiting: Option<Rows>,
    /// The idling in violation, by how the idle stretches began and ended.
    pub idling: Option<Rows>,
    /// The missed steals.
    pub missed: Option<Missed>,
    /// The waiting in violation by task, command, CPU or node, the one with the longest time first; absent unless
    /// asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Vec<GroupRow>>,
    /// The tasks that are assumed to be bound: they were on one CPU alone, and waited there for at least 100 ms in violation.
    /// They count in no other number of the report; their shares are those of the waiting with them. Absent unless asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed_bound: Option<Vec<GroupRow>>,
    /// The time of counted tasks on a smaller CPU while a larger one idled that they may use, by the two capacities; absent unless the machine
    /// file has capacities that differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_smaller_cpu: Option<Vec<SmallerRow>>,
    /// The tasks, other than kernel threads, that waited beside idle CPUs which they may not use, the one with the most such time first, at most 16;
    /// absent where no task is known to be restricted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub barred: Option<Vec<BarredRow>>,
    /// The parts of the sums for which the host kept the vCPUs of this guest from running; absent unless `--host` names its recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vcpu_not_running: Option<NotRunning>,
    /// The queued time of the chosen tasks by kind, in nanoseconds; of all tasks where none are chosen; absent where there are no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<sched::QueuedTimes>,
    /// An episode step by step; absent unless asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub episode: Option<Story>,
    /// Both sums over time, where a figure needs them.
    #[serde(skip)]
    pub over_time: Option<OverTime>,
}

impl OfSelection for WhyReport {
    fn withhold(&mut self, why: String) {
        self.selection_unknown = Some(why);
        (self.violation_ns, self.violation_percent) = (None, None);
        (self.waiting, self.idling, self.missed) = (None, None, None);
        (self.by, self.episode, self.over_time) = (None, None, None);
        (self.assumed_bound, self.on_smaller_cpu, self.queued, self.barred) = (None, None, None, None);
    }
}

fn rows<O: Category, E: Category>(table: &Ledger<O, E>, zero: Ts) -> Rows {
    let total = table.total();
    let mut entries: Vec<_> = table.rows.iter().collect();
    entries.sort_by_key(|((origin, end), row)| (Reverse(row.violated), *origin, *end));
    let row = |((origin, end), row): (&(O, E), &crate::ledger::CaseSums)| {
        let summary = row.lengths.summary();
        WhyRow {
            began: origin.key(),
            nearest_idle: origin.nearest_idle(),
            began_cause: origin.cause(),
            ended: end.key(),
            ended_cause: end.cause(),
            number: row.number,
            total_ns: Dur(row.violated),
            percent: 100.0 * row.violated as f64 / (total as f64).max(1.0),
            p50_ns: summary.p50_ns,
            p99_ns: summary.p99_ns,
            longest: row.longest.map(|case| longest(&case, zero)),
            words: [origin.words(), end.words()],
            origin: origin.words_without_distance(),
        }
    };
    Rows { total_ns: Dur(total), rows: entries.into_iter().map(row).collect() }
}

pub(crate) fn build(mut why: Why<'_>, end: Ts, state: &SchedState) -> WhyReport {
    let over_time = why.over_time.take().map(|recorder| recorder.finish());
    let episode = why.chronicle.take().and_then(|chronicle| chronicle.finish(end, why.options.zero));
    let by = why.groups.take().map(|groups| groups.rows(why.waits.total(), why.options.zero));
    let (options, window) = (why.options, end.since(why.start));
    let violated = Dur(why.violated_before.saturating_add(why.meter.violated(end)));
    let mut report = WhyReport {
        window_ns: window,
        from_ns: why.start,
        to_ns: end,
        waiters: options.waiters,
        are_chosen: options.application.is_some(),
        selection_unknown: None,
        queued: None,
        violation_ns: Some(violated),
        violation_percent: Some(100.0 * violated.0 as f64 / (window.0 as f64).max(1.0)),
        waiting: Some(rows(&why.waits, options.zero)),
        idling: Some(rows(&why.stretches, options.zero)),
        missed: Some(why.missed.report(options.topology.has_groups(CpuOrder::Llc), why.has_verdicts())),
        by,
        assumed_bound: None,
        on_smaller_cpu: None,
        vcpu_not_running: None,
        barred: None,
        episode,
        over_time,
    };
    if options.waiters == Waiters::Application
        && let Some(reason) = options.why_application_is_unknown(state)
    {
        report.withhold(reason);
    }
    report
}
