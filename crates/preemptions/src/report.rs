//! The report: as numbers.

use crate::case::PreemptionCase;
use crate::cpu::{Asker, Ending, Kind};
use crate::locks::LockHolder;
use crate::rows::{RowSums, RowTable};
use crate::{Apart, Preemptions};
use membership::{GroupLabel, RowKey, RowsBy, TaskGroups};
use sched::lengths::Summary;
use sched::{Comm, Cpu, Dur, Lengths, OfSelection, Pid, Ts};
use serde::Serialize;

/// The name and version of the document's schema.
pub(crate) const SCHEMA: &str = "schedviz/preemptions/1";

/// The source of the instants of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The records of the probe on `sched_set_need_resched_tp`: every request, at its instant.
    Probe,
    /// The flags of the events on the CPU: the requests that an event shows, between two instants.
    Flags,
}

/// The requests of one kind that ended in one way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Way {
    /// The kind of the requests.
    pub kind: Kind,
    /// Whether the lazy requests were made immediate before they ended.
    pub made_immediate: bool,
    /// The end of the requests.
    pub ending: Ending,
    /// The least times that can have passed from the requests to their ends.
    pub at_least: Summary,
    /// The greatest times that can have passed from the requests to their ends; the same as the least by the probe.
    pub at_most: Summary,
}

/// The requests of one origin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AskerRow {
    /// The origin of the requests.
    pub asker: Asker,
    /// The greatest times that can have passed from the requests to their ends.
    pub at_most: Summary,
}

/// A row of a table by command, task or CPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreemptionRow {
    /// The PID of the task, if rows are tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Pid>,
    /// The process, the cgroup or the scheduling parameters of the tasks, if rows are these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupLabel>,
    /// The CPU, if rows are CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// The command name, if rows are commands or tasks; `(others)` of the tasks beyond the 32,768 rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Comm>,
    /// The number of requests to these tasks.
    pub requests: u64,
    /// The number of these that were lazy.
    pub lazy: u64,
    /// The number of requests that ended in a switch from the task while it could run.
    pub preempted: u64,
    /// The number of requests that ended in a sleep or in the end of the task.
    pub slept: u64,
    /// The number of requests at whose end the same task was picked again.
    pub kept: u64,
    /// The least times that can have passed from the requests to their ends.
    pub at_least: Summary,
    /// The greatest times that can have passed from the requests to their ends.
    pub at_most: Summary,
    /// The parts of their requests for CPU time that preempted tasks had left, where they were recorded.
    pub request_left: Summary,
    /// The waits of these tasks that ended as another gave way to them.
    pub profited: Summary,
}

/// The requests to reschedule in a window.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreemptionsReport {
    /// The name and version of the schema, `schedviz/preemptions/1`.
    pub schema: &'static str,
    /// The start of the window, in nanoseconds of the trace's clock.
    pub from_ns: Ts,
    /// The end of the window, in nanoseconds of the trace's clock.
    pub to_ns: Ts,
    /// The reason why there are no figures: the selected tasks are unknown, or none is in the window; absent if there
    /// are figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection_unknown: Option<String>,
    /// The source of the instants of requests.
    pub source: Source,
    /// Whether the kernel has lazy requests, as kernels from 6.13 on do.
    pub has_lazy: bool,
    /// The number of requests to tasks that ended in the window; by flags alone the least number.
    pub requests: Option<u64>,
    /// The least times that can have passed from the requests to the switches from tasks that could run.
    pub preempted_at_least: Summary,
    /// The greatest times that can have passed from the requests to the switches from tasks that could run; the same as the least by the
    /// probe.
    pub preempted_at_most: Summary,
    /// The requests by kind and end.
    pub ways: Vec<Way>,
    /// The requests by origin.
    pub askers: Vec<AskerRow>,
    /// The number of lazy requests that ended in a sleep or in the end of the task: each is an involuntary switch less than an
    /// immediate request would have caused.
    pub switches_saved: Option<u64>,
    /// The longest time for which a lazy request is expected to stay lazy, in nanoseconds: a tick and a quarter of one.
    pub longest_lazy_ns: Dur,
    /// The number of requests that certainly stayed lazy for longer than that.
    pub lazy_for_longer: Option<u64>,
    /// The waits of the tasks to which preempted tasks gave way.
    pub profited: Summary,
    /// The parts of their requests for CPU time that preempted tasks had left, where they were recorded.
    pub request_left: Summary,
    /// The number of preempted tasks that had passed the deadline of their pick: the rest of the request that followed is unknown.
    pub request_left_unknown: Option<u64>,
    /// The number of requests to the idle task, which are wakeups of an idle CPU. Absent without the probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_idle: Option<u64>,
    /// The number of switches from a task that could run without a request that is seen: it yielded, or returned to user mode
    /// with a request that no event shows.
    pub without_request: Option<u64>,
    /// The number of requests that lost events cut, which are not counted.
    pub lost: Option<u64>,
    /// The number of requests that had not ended at the end of the window.
    pub open: Option<u64>,
    /// The kind of the rows.
    pub by: RowsBy,
    /// The tasks that were asked, those with the most requests first.
    pub rows: Vec<PreemptionRow>,
    /// The tasks that ran in place of preempted ones, those that did most often first.
    pub profiteers: Vec<PreemptionRow>,
    /// The requests that took longest.
    pub longest: Vec<PreemptionCase>,
    /// The requests that stayed lazy for longer than expected.
    pub long_lazy: Vec<PreemptionCase>,
    /// The number of waits for a lock of the kernel; absent if they were not recorded (`lock:contention_begin`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_waits: Option<u64>,
    /// The number of these during which a task was preempted in the kernel that can have held the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_waits_with_holders: Option<u64>,
    /// The tasks that can have held a lock while they were preempted, those of the longest waits first.
    pub lock_holders: Vec<LockHolder>,
    /// The distributions, for a figure.
    #[serde(skip)]
    pub panels: Vec<(&'static str, Lengths)>,
}

impl OfSelection for PreemptionsReport {
    fn withhold(&mut self, why: String) {
        let PreemptionsReport { schema, from_ns, to_ns, source, has_lazy, longest_lazy_ns, by, .. } = *self;
        *self = PreemptionsReport {
            schema,
            from_ns,
            to_ns,
            selection_unknown: Some(why),
            source,
            has_lazy,
            requests: None,
            preempted_at_least: Summary::default(),
            preempted_at_most: Summary::default(),
            ways: Vec::new(),
            askers: Vec::new(),
            switches_saved: None,
            longest_lazy_ns,
            lazy_for_longer: None,
            profited: Summary::default(),
            request_left: Summary::default(),
            request_left_unknown: None,
            to_idle: None,
            without_request: None,
            lost: None,
            open: None,
            by,
            rows: Vec::new(),
            profiteers: Vec::new(),
            longest: Vec::new(),
            long_lazy: Vec::new(),
            lock_waits: None,
            lock_waits_with_holders: None,
            lock_holders: Vec::new(),
            panels: Vec::new(),
        };
    }
}

pub(crate) fn build(preemptions: Preemptions<'_>, end: Ts) -> PreemptionsReport {
    let Preemptions { options, start, ways, askers, rows, profits, profited, left, cases, locks, .. } = preemptions;
    let Apart { idle, lost, unasked, open, renewed } = preemptions.apart;
    let groups = options.groups.as_deref();
    let panels = panels(&ways);
    let preempted = ways.preempted();
    let ways: Vec<Way> = ways
        .each()
        .map(|(kind, made_immediate, ending, bounds)| {
            let (at_least, at_most) = (bounds.at_least.summary(), bounds.at_most.summary());
            Way { kind, made_immediate, ending, at_least, at_most }
        })
        .collect();
    let askers = Asker::ALL.into_iter().zip(&askers).filter(|(_, lengths)| lengths.count() > 0);
    let saved = |way: &&Way| way.kind == Kind::Lazy && matches!(way.ending, Ending::Slept | Ending::Exited);
    let has_locks = locks.waits > 0;
    PreemptionsReport {
        schema: SCHEMA,
        from_ns: start.unwrap_or(end),
        to_ns: end,
        selection_unknown: None,
        source: if options.by_probe { Source::Probe } else { Source::Flags },
        has_lazy: options.has_lazy,
        requests: Some(ways.iter().map(|way| way.at_most.count).sum()),
        preempted_at_least: preempted.at_least.summary(),
        preempted_at_most: preempted.at_most.summary(),
        switches_saved: Some(ways.iter().filter(saved).map(|way| way.at_most.count).sum()),
        ways,
        askers: askers.map(|(asker, lengths)| AskerRow { asker, at_most: lengths.summary() }).collect(),
        longest_lazy_ns: options.longest_lazy(),
        lazy_for_longer: Some(cases.long_count),
        profited: profited.summary(),
        request_left: left.summary(),
        request_left_unknown: Some(renewed),
        to_idle: options.by_probe.then_some(idle),
        without_request: Some(unasked),
        lost: Some(lost),
        open: Some(open),
        by: options.by,
        rows: sorted(rows, groups, |row| row.requests),
        profiteers: sorted(profits, groups, |row| row.profited.count),
        longest: cases.longest,
        long_lazy: cases.long_lazy,
        lock_waits: has_locks.then_some(locks.waits),
        lock_waits_with_holders: has_locks.then_some(locks.with_holders),
        lock_holders: locks.holders,
        panels,
    }
}

/// The rows of a table, the one with the greatest number first and the rest of all last.
fn sorted(table: RowTable, groups: Option<&TaskGroups>, number: impl Fn(&PreemptionRow) -> u64) -> Vec<PreemptionRow> {
    let mut rows: Vec<(RowKey, PreemptionRow)> =
        table.into_rows().into_iter().map(|(key, sums)| (key, row(key, groups, &sums))).collect();
    rows.sort_by(|(a, left), (b, right)| {
        let is_rest = |key: &RowKey| *key == RowKey::Rest;
        is_rest(a).cmp(&is_rest(b)).then(number(right).cmp(&number(left))).then(a.cmp(b))
    });
    rows.into_iter().map(|(_, row)| row).collect()
}

fn row(key: RowKey, groups: Option<&TaskGroups>, sums: &RowSums) -> PreemptionRow {
    let (pid, cpu, command, group) = key.subject(groups);
    PreemptionRow {
        pid,
        group,
        cpu,
        command,
        requests: sums.requests,
        lazy: sums.lazy,
        preempted: sums.preempted,
        slept: sums.slept,
        kept: sums.kept,
        at_least: sums.taken.at_least.summary(),
        at_most: sums.taken.at_most.summary(),
        request_left: sums.left.summary(),
        profited: sums.waited.summary(),
    }
}

/// The distributions of a figure: the greatest times from requests to switches or sleeps.
fn panels(ways: &crate::rows::Ways) -> Vec<(&'static str, Lengths)> {
    let name = |kind: Kind, promoted: bool, ending: Ending| match (kind, promoted, ending) {
        (_, _, Ending::Kept) => None,
        (Kind::Immediate, ..) if ending.is_preemption() => Some("immediate request to switch"),
        (Kind::Lazy, true, _) if ending.is_preemption() => Some("lazy request, made immediate, to switch"),
        (Kind::Lazy, false, _) if ending.is_preemption() => Some("lazy request to switch on return to user mode"),
        (Kind::Lazy, ..) => Some("lazy request to sleep or exit: a switch saved"),
        (Kind::Unknown, ..) => Some("request of unknown kind to switch"),
        (Kind::Immediate, ..) => None,
    };
    let mut panels: Vec<(&'static str, Lengths)> = Vec::new();
    for (kind, promoted, ending, bounds) in ways.each() {
        let Some(name) = name(kind, promoted, ending) else { continue };
        match panels.iter_mut().find(|(other, _)| *other == name) {
            Some((_, lengths)) => lengths.merge(&bounds.at_most),
            None => panels.push((name, bounds.at_most.clone())),
        }
    }
    panels
}
