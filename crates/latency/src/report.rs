//! The report: as numbers.

use crate::{Case, Earlier, Idleness, Latency, Measure, Measures, Phase, PhaseTrack, Placement, RowSums};
use membership::{GroupLabel, TaskGroup, TaskGroups, TasksBy, join_random};
use sched::kthread::command;
use sched::lengths::Summary;
use sched::topology::CpuOrder;
use sched::{Comm, Cpu, Dur, Lengths, OfSelection, Pid, SchedState, TaskId, TaskState, Tracepoint, Ts};
use serde::Serialize;
use std::cmp::Reverse;

/// The name and version of the document's schema.
pub(crate) const SCHEMA: &str = "schedviz/latency/1";

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyRow {
    /// The PID of the task, if rows are tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Pid>,
    /// The command name, where the rows are tasks or commands; `(others)` of the last row, where a trace has more tasks or commands
    /// than rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Comm>,
    /// The process, the cgroup, the scheduling parameters or the stack of the tasks, where the rows are these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupLabel>,
    /// The number of tasks that the row holds together because they are beyond the 32,768 rows; absent in other rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<u64>,
    /// The measures that occur, with their distributions.
    pub measures: Vec<MeasureSummary>,
    /// The number of wakeups whose latency is 4 ms or longer; absent where no wakeups were recorded.
    pub late_wakeups: Option<u64>,
}

/// A measure and its distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasureSummary {
    /// The measure of the distribution.
    pub measure: Measure,
    /// The number of intervals of the distribution that began before the window: they count with their full length.
    pub began_before: u64,
    /// The distribution of the lengths.
    #[serde(flatten)]
    pub summary: Summary,
}

/// The wakeup latencies of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Split<K> {
    /// The kind of the wakeups.
    pub kind: K,
    /// The distribution of the latencies.
    #[serde(flatten)]
    pub summary: Summary,
}

/// The measured latencies.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyReport {
    /// The name and version of the schema, `schedviz/latency/1`.
    pub schema: &'static str,
    /// The start of the window, in nanoseconds of the trace's clock.
    pub from_ns: Ts,
    /// The end of the window, in nanoseconds of the trace's clock.
    pub to_ns: Ts,
    /// The reason why there are no figures: the selected tasks are unknown, or none is in the window; absent if there
    /// are figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection_unknown: Option<String>,
    /// The distribution of every measure over all tasks, but for those of `unmeasured`; empty if the selection is unknown.
    pub measures: Vec<MeasureSummary>,
    /// The measures that are unknown, since an event that shows their ends was not recorded; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<Measure>,
    /// The wakeup latencies by the placement of the task; empty where no wakeups were recorded.
    pub by_placement: Vec<Split<Placement>>,
    /// The wakeup latencies by the CPUs that idled at the wakeup; empty where no wakeups were recorded.
    pub by_idleness: Vec<Split<Idleness>>,
    /// The kind of the rows.
    pub by: TasksBy,
    /// Whether names that differ in a number or a random part alone share a row, as `--by command` asks.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_stem: bool,
    /// The rows, the one with the longest wakeup latency first.
    pub rows: Vec<LatencyRow>,
    /// The longest waits.
    pub worst: Vec<Case>,
    /// Whether `sched_waking` was recorded. If not, wakeup latencies begin when tasks were queued.
    pub from_waking: bool,
    /// Whether tasks count as queued from `sched_waking` on, because `sched_wakeup` was not recorded. The two parts of a
    /// wakeup are then unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub queued_at_waking: bool,
    /// The number of wakeups whose `sched_waking` was not seen; they count from queued to run alone. Absent where no wakeups were recorded.
    pub without_waking: Option<u64>,
    /// The number of waits under way at the end of the window, which are not counted in the measures.
    pub still_waiting: Option<u64>,
    /// The longest wait under way at the end of the window; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_still_waiting: Option<Unfinished>,
    /// The time that tasks were throttled by `cpu.max` while they waited to run, of each wait that was: it is not in the
    /// lengths of the waits. Absent if the recording shows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled: Option<Summary>,
    /// The number of places where events were lost; intervals that these cut are not counted.
    pub gaps: u64,
    /// The queued time of the counted tasks by kind, in nanoseconds; absent where there are no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<sched::QueuedTimes>,
    /// The distributions, for a figure.
    #[serde(skip)]
    pub lengths: Measures,
    /// Whether other CPUs are distinguished by their distance.
    #[serde(skip)]
    pub with_distances: bool,
}

/// A wait whose end is not in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unfinished {
    /// The time at which the task was queued, in nanoseconds from the start of the trace.
    pub start_in_trace_ns: u64,
    /// The length of the wait at the end of the window, in nanoseconds.
    pub duration_ns: Dur,
    /// The PID of the waiting task.
    pub pid: Pid,
    /// The command name of the waiting task.
    pub command: Comm,
    /// The CPU on which the task waits.
    pub cpu: Cpu,
}

impl sched::TakesQueued for LatencyReport {
    fn take_queued(&mut self, times: sched::QueuedTimes) {
        self.queued = Some(times);
    }
}

impl OfSelection for LatencyReport {
    fn withhold(&mut self, why: String) {
        let LatencyReport {
            schema,
            from_ns,
            to_ns,
            by,
            by_stem,
            from_waking,
            queued_at_waking,
            gaps,
            with_distances,
            ..
        } = *self;
        *self = LatencyReport {
            schema,
            from_ns,
            to_ns,
            selection_unknown: Some(why),
            measures: Vec::new(),
            unmeasured: Vec::new(),
            by_placement: Vec::new(),
            by_idleness: Vec::new(),
            by,
            by_stem,
            rows: Vec::new(),
            worst: Vec::new(),
            from_waking,
            queued_at_waking,
            without_waking: None,
            still_waiting: None,
            longest_still_waiting: None,
            throttled: None,
            gaps,
            queued: None,
            lengths: Measures::default(),
            with_distances,
        };
    }
}

impl LatencyReport {
    /// The distribution of a measure over all tasks.
    pub fn of(&self, measure: Measure) -> Summary {
        let found = self.measures.iter().find(|named| named.measure == measure);
        found.map_or_else(Summary::default, |named| named.summary)
    }
}

fn named(lengths: &Measures, earlier: &Earlier) -> impl Iterator<Item = MeasureSummary> {
    let all = Measure::ALL.into_iter().zip(lengths.iter().zip(earlier));
    all.map(|(measure, (lengths, before))| MeasureSummary {
        measure,
        began_before: *before,
        summary: lengths.summary(),
    })
}

/// The measures of which an end is in no event that was recorded.
fn unmeasured(state: &SchedState) -> Vec<Measure> {
    let has_wakeups = state.shows_wakeups();
    let has_queued = has_wakeups && !state.places_by_wakings();
    let is_shown = |measure: &Measure| match measure {
        Measure::Wakeup | Measure::Sleep => has_wakeups,
        Measure::UntilQueued => has_queued && state.has_wakings(),
        Measure::UntilRun => has_queued,
        Measure::New => !state.missing().contains(&Tracepoint::WakeupNew.name()),
        Measure::Preempted | Measure::Run => true,
    };
    Measure::ALL.into_iter().filter(|measure| !is_shown(measure)).collect()
}

/// The distribution of each kind, from the parts that it has.
fn splits<'l, K: Copy>(kinds: &[K], parts: impl Fn(K) -> Vec<&'l Lengths>) -> Vec<Split<K>> {
    let split = |kind: &K| {
        let mut all = Lengths::default();
        parts(*kind).into_iter().for_each(|part| all.merge(part));
        Split { kind: *kind, summary: all.summary() }
    };
    kinds.iter().map(split).collect()
}

/// The rows of commands, of which those whose names have letters alone in the place of a random part join the others.
fn of_stems(rows: Vec<RowSums>) -> Vec<RowSums> {
    let rows = rows.into_iter().map(|sums| (sums.key, sums)).collect();
    join_random(rows, |sums, more: RowSums| sums.join(&more))
        .into_iter()
        .map(|(key, sums)| RowSums { key, ..sums })
        .collect()
}

/// A row of the report, with its longest wakeup latency.
fn row(sums: &RowSums, groups: Option<&TaskGroups>) -> (Option<Dur>, LatencyRow) {
    let group = groups.and_then(|groups| groups.label(sums.key)).filter(|_| sums.key != TaskGroup::Rest);
    let (pid, command) = match sums.key {
        _ if group.is_some() => (None, None),
        // A stem with one name is shown as that name.
        TaskGroup::Command(command) if groups.is_none() || sums.has_several_names => (None, Some(command)),
        TaskGroup::Command(_) => (None, Some(command(sums.name))),
        TaskGroup::Task(pid) => (Some(pid), Some(sums.name)),
        _ => (None, Some(Comm::new(b"(others)"))),
    };
    let merged = (sums.key == TaskGroup::Rest).then_some(sums.tasks);
    let measures = named(&sums.measures, &sums.earlier).filter(|m| m.summary.count > 0).collect();
    (
        sums.measures[Measure::Wakeup as usize].max(),
        LatencyRow { pid, command, group, merged, measures, late_wakeups: Some(sums.late) },
    )
}

impl LatencyRow {
    /// The distribution of a measure in the row; that of nothing where it does not occur.
    pub fn of(&self, measure: Measure) -> Summary {
        let named = self.measures.iter().find(|named| named.measure == measure);
        named.map_or_else(Summary::default, |named| named.summary)
    }

    /// The name of the row in tables.
    pub fn shown(&self) -> String {
        let command = self.command.unwrap_or_default();
        match (&self.group, self.pid) {
            (Some(group), _) => group.shown(),
            (None, Some(pid)) => pid.named(command),
            (None, None) => command.to_string(),
        }
    }
}

pub(crate) fn build(latency: Latency<'_>, end: Ts, state: &SchedState) -> LatencyReport {
    let unfinished = |(id, track): (TaskId, &PhaseTrack)| {
        let task = state.task(id).filter(|_| matches!(track.phase, Phase::Wait))?;
        let TaskState::Waiting(cpu) = task.state else { return None };
        let throttled = latency.waits.get(id).map_or(Dur(0), |wait| wait.throttled);
        let start_in_trace_ns = track.since.since(latency.options.zero).0;
        let duration_ns = Dur(end.since(track.since).0.saturating_sub(throttled.0));
        let wait = Unfinished { start_in_trace_ns, duration_ns, pid: task.pid, command: task.comm, cpu };
        // Elsewhere it may have run.
        (state.is_observed(cpu) && latency.measures(task, cpu, state)).then_some(wait)
    };
    let unfinished: Vec<Unfinished> = latency.tracks.iter().filter_map(unfinished).collect();
    let longest_still_waiting = unfinished.iter().copied().max_by_key(|wait| (wait.duration_ns, Reverse(wait.pid)));
    let Latency { options, start, rows, woken, worst, without_waking, gaps, throttled, .. } = latency;
    let (mut all, mut earlier) = (Measures::default(), Earlier::default());
    for row in &rows {
        all.iter_mut().zip(&row.measures).for_each(|(sum, lengths)| sum.merge(lengths));
        earlier.iter_mut().zip(&row.earlier).for_each(|(sum, number)| *sum += number);
    }
    let mut measures: Vec<MeasureSummary> = named(&all, &earlier).collect();
    let mut unmeasured = unmeasured(state);
    // A few of which the ends are seen nevertheless are known.
    unmeasured.retain(|measure| all[*measure as usize].count() == 0);
    measures.retain(|named| !unmeasured.contains(&named.measure));
    let groups = options.groups.as_deref();
    let by_stem = groups.is_some_and(|groups| groups.by() == TasksBy::Command);
    let rows = if by_stem { of_stems(rows) } else { rows };
    let mut rows: Vec<(Option<Dur>, LatencyRow)> = rows.into_iter().map(|sums| row(&sums, groups)).collect();
    // The rest of all rows is the last one.
    rows.sort_by(|(a, r), (b, s)| {
        let key = |row: &LatencyRow| (row.pid, row.command, row.group.clone());
        r.merged.cmp(&s.merged).then(b.cmp(a)).then_with(|| key(r).cmp(&key(s)))
    });
    let mut by_placement = splits(&Placement::ALL, |placement| woken[placement as usize].each_ref().to_vec());
    by_placement.retain(|split| split.kind != Placement::Cluster || options.topology.has_clusters());
    let mut by_idleness = splits(&Idleness::ALL, |idleness| woken.iter().map(|row| &row[idleness as usize]).collect());
    if unmeasured.contains(&Measure::Wakeup) {
        (by_placement, by_idleness) = Default::default();
        rows.iter_mut().for_each(|(_, row)| row.late_wakeups = None);
    }
    LatencyReport {
        schema: SCHEMA,
        from_ns: start.unwrap_or(end),
        to_ns: end,
        selection_unknown: None,
        measures,
        unmeasured,
        by_placement,
        by_idleness,
        by: options.by,
        by_stem,
        rows: rows.into_iter().map(|(_, row)| row).collect(),
        worst: worst.into_iter().map(|kept| kept.case).collect(),
        from_waking: state.has_wakings(),
        queued_at_waking: state.places_by_wakings(),
        without_waking: state.shows_wakeups().then_some(without_waking),
        still_waiting: Some(unfinished.len() as u64),
        longest_still_waiting,
        throttled: (throttled.count() > 0).then(|| throttled.summary()),
        queued: None,
        gaps,
        lengths: all,
        with_distances: options.topology.has_groups(CpuOrder::Node),
    }
}
