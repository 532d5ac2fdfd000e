//! The report: as numbers.

use crate::Picks;
use crate::case::PickCase;
use crate::debts::Debt;
use crate::reason::Reason;
use crate::rows::PickSums;
use crate::samples::{LagSample, RunSample};
use crate::signed::Signed;
use membership::{GroupLabel, RowKey, RowsBy, TaskGroups};
use sched::lengths::Summary;
use sched::{Comm, Cpu, Dur, OfSelection, Pid, Ts};
use serde::Serialize;

/// The name and version of the document's schema.
pub(crate) const SCHEMA: &str = "schedviz/picks/1";

/// The source of lags and reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Recorded {
    /// The kernel's own numbers at each switch, from the probes on picks.
    Numbers,
    /// The switches alone: lags are those of a fluid model, and reasons are possible ones.
    Switches,
}

/// The lags of some picks, in nanoseconds of the tasks' own run time; a negative lag is a debt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LagSummary {
    /// The number of picks among several tasks whose lag is known.
    pub count: u64,
    /// The least lag, in nanoseconds. Absent if none is known.
    pub least_ns: Option<i64>,
    /// The median lag, in nanoseconds. Absent if none is known.
    pub median_ns: Option<i64>,
    /// The greatest lag, in nanoseconds. Absent if none is known.
    pub greatest_ns: Option<i64>,
}

impl LagSummary {
    fn of(lags: &Signed) -> LagSummary {
        LagSummary {
            count: lags.count(),
            least_ns: lags.least(),
            median_ns: lags.median(),
            greatest_ns: lags.greatest(),
        }
    }
}

/// The picks for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReasonRow {
    /// The reason of the picks.
    pub reason: Reason,
    /// The number of picks.
    pub picks: u64,
    /// The number of these at which the task that left could run on and had not used up its request: in spite of the protection of its
    /// slice (`RUN_TO_PARITY`).
    pub in_spite_of_protection: u64,
    /// The number of those at which the picked task has a shorter request than the one that left, which ends the protection
    /// (`PREEMPT_SHORT`).
    pub with_shorter_request: u64,
}

/// The picks among several tasks, by whether a rule gives the task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContestedPicks {
    /// The number of picks beside which another task of the fair class could have been picked.
    pub picks: u64,
    /// The number of these that a rule gives, by the kernel's numbers of all tasks on the run queue.
    pub explained: u64,
    /// The number of these whose reason is a possible one: by the fluid model, or among tasks that may be on other run queues.
    pub possibly_explained: u64,
    /// The number of these that no rule gives, although all numbers are recorded.
    pub unexplained: u64,
    /// The number of these that were a choice between groups, whose numbers are not recorded.
    pub between_groups: u64,
    /// The number of these for which the numbers of some task are not recorded, or that the fluid model does not show.
    pub not_recorded: u64,
}

impl ContestedPicks {
    fn of(reasons: &[u64; Reason::ALL.len()]) -> ContestedPicks {
        let of = |all: &[Reason]| all.iter().map(|reason| reasons[*reason as usize]).sum();
        ContestedPicks {
            picks: reasons.iter().sum::<u64>() - of(&[Reason::Only]),
            explained: of(&[Reason::EarliestDeadline, Reason::GroupSlice, Reason::Buddy, Reason::Delayed]),
            possibly_explained: of(&[Reason::PossiblyEarliest]),
            unexplained: of(&[Reason::Unexplained]),
            between_groups: of(&[Reason::Group]),
            not_recorded: of(&[Reason::NotRecorded, Reason::NotShown]),
        }
    }
}

/// A comparison of the fluid model with lags that the kernel recorded as tasks left their run queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LagCheck {
    /// The number of lags that were compared.
    pub compared: u64,
    /// The number of those with the right sign: both positive, both negative, or both zero to a microsecond.
    pub sign_right: u64,
    /// The number of those that differ by less than the request of a task that has set none.
    pub within_slice: u64,
    /// The greatest difference, in nanoseconds of the task's own run time.
    pub greatest_error_ns: Dur,
}

/// The comparison of the fluid model with recorded lags, for two kinds of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelCheck {
    /// The lags of tasks that had rivals in their own group alone as they left their CPUs.
    pub own_group: LagCheck,
    /// The lags of tasks in the root group, or an unknown one, that had rivals in other groups then: their lags depend on those of the
    /// groups, which the model lacks.
    pub among_groups: LagCheck,
    /// The number of recorded lags of tasks that had no rival: these are zero, and no score.
    pub alone: u64,
}

impl LagCheck {
    pub(crate) fn add(&mut self, model: i64, recorded: i64, slice: Dur) {
        let sign = |lag: i64| if lag.abs() < 1_000 { 0 } else { lag.signum() };
        let error = Dur(model.abs_diff(recorded));
        self.compared += 1;
        self.sign_right += u64::from(sign(model) == sign(recorded));
        self.within_slice += u64::from(error < slice);
        self.greatest_error_ns = self.greatest_error_ns.max(error);
    }
}

/// A row of the table by command, task, group of tasks or CPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PickRow {
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
    /// The number of picks.
    pub picks: u64,
    /// The number of picks that no rule explains.
    pub unexplained: u64,
    /// The lags at the picks among several tasks.
    pub lag: LagSummary,
    /// The debt of one of these tasks that lasted longest. Absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_debt: Option<Debt>,
    /// The times by which deadlines had passed at the picks that missed one, in nanoseconds of the tasks' own run time.
    pub late: Summary,
    /// The requests (time slices) of the tasks at their picks, where they were recorded.
    pub requested: Summary,
    /// The lengths of the runs.
    pub runs: Summary,
}

/// The picks of a window.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PicksReport {
    /// The name and version of the schema, `schedviz/picks/1`.
    pub schema: &'static str,
    /// The start of the window, in nanoseconds of the trace's clock.
    pub from_ns: Ts,
    /// The end of the window, in nanoseconds of the trace's clock.
    pub to_ns: Ts,
    /// The reason why there are no figures: the selected tasks are unknown, or none is in the window; absent if there
    /// are figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection_unknown: Option<String>,
    /// The source of lags and reasons.
    pub recorded: Recorded,
    /// Whether the kernel picks by EEVDF, as kernels from 6.6 on do. Otherwise deadlines have no meaning there.
    pub has_eevdf: bool,
    /// The number of switches to tasks of the fair class.
    pub picks: Option<u64>,
    /// The number of switches to tasks of other classes.
    pub to_other_classes: Option<u64>,
    /// The number of switches to idle tasks.
    pub to_idle: Option<u64>,
    /// The picks among several tasks, and how many of these a rule gives. Absent without figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contested: Option<ContestedPicks>,
    /// The picks by reason.
    pub reasons: Vec<ReasonRow>,
    /// The lags at the picks among several tasks; absent without figures.
    pub lag: Option<LagSummary>,
    /// The times by which deadlines had passed at the picks that missed one, in nanoseconds of the tasks' own run time; absent without figures.
    pub late: Option<Summary>,
    /// The requests (time slices) of the tasks at their picks, where they were recorded; absent without figures.
    pub requested: Option<Summary>,
    /// The lengths of the runs; absent without figures.
    pub runs: Option<Summary>,
    /// The comparison of the fluid model with recorded lags. Absent where no lag was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelCheck>,
    /// The kind of the rows.
    pub by: RowsBy,
    /// The rows, the one with the most picks first.
    pub rows: Vec<PickRow>,
    /// The picks that no rule explains, in the order of time.
    pub unexplained: Vec<PickCase>,
    /// The picks of tasks whose deadline had passed, the latest first.
    pub latest: Vec<PickCase>,
    /// The lags over time, for a figure.
    #[serde(skip)]
    pub samples: Vec<LagSample>,
    /// The runs, for a figure.
    #[serde(skip)]
    pub ran: Vec<RunSample>,
    /// The start of the trace, for a figure.
    #[serde(skip)]
    pub zero: Ts,
}

impl OfSelection for PicksReport {
    fn withhold(&mut self, why: String) {
        let PicksReport { schema, from_ns, to_ns, recorded, has_eevdf, by, zero, .. } = *self;
        *self = PicksReport {
            schema,
            from_ns,
            to_ns,
            selection_unknown: Some(why),
            recorded,
            has_eevdf,
            picks: None,
            to_other_classes: None,
            to_idle: None,
            contested: None,
            reasons: Vec::new(),
            lag: None,
            late: None,
            requested: None,
            runs: None,
            model: None,
            by,
            rows: Vec::new(),
            unexplained: Vec::new(),
            latest: Vec::new(),
            samples: Vec::new(),
            ran: Vec::new(),
            zero,
        };
    }
}

pub(crate) fn build(picks: Picks<'_>, end: Ts) -> PicksReport {
    let Picks { options, start, sums, rows, cases, debts, mut samples, ran, other_class, to_idle, check, .. } = picks;
    samples.sort_by_key(|sample| (sample.ts, sample.cpu, sample.is_picked));
    let longest = debts.finish();
    let groups = options.row_groups.as_deref();
    let reasons = Reason::ALL.into_iter().map(|reason| ReasonRow {
        reason,
        picks: sums.reasons[reason as usize],
        in_spite_of_protection: sums.in_spite[reason as usize],
        with_shorter_request: sums.shorter[reason as usize],
    });
    let mut rows: Vec<(RowKey, PickSums)> = rows.into_rows();
    rows.sort_by(|(a, left), (b, right)| {
        let is_rest = |key: &RowKey| *key == RowKey::Rest;
        is_rest(a).cmp(&is_rest(b)).then(right.picks().cmp(&left.picks())).then(a.cmp(b))
    });
    PicksReport {
        schema: SCHEMA,
        from_ns: start.unwrap_or(end),
        to_ns: end,
        selection_unknown: None,
        recorded: if options.by_probe { Recorded::Numbers } else { Recorded::Switches },
        has_eevdf: options.has_eevdf,
        picks: Some(sums.picks()),
        to_other_classes: Some(other_class),
        to_idle: Some(to_idle),
        contested: Some(ContestedPicks::of(&sums.reasons)),
        reasons: reasons.filter(|row| row.picks > 0).collect(),
        lag: Some(LagSummary::of(&sums.lag)),
        late: Some(sums.late.summary()),
        requested: Some(sums.slices.summary()),
        runs: Some(sums.runs.summary()),
        model: (check.own_group.compared + check.among_groups.compared + check.alone > 0).then_some(check),
        by: options.by,
        rows: rows.into_iter().map(|(key, sums)| row(key, groups, &sums, longest.get(&key).copied())).collect(),
        unexplained: cases.unexplained,
        latest: cases.late,
        samples,
        ran,
        zero: options.zero,
    }
}

fn row(key: RowKey, groups: Option<&TaskGroups>, sums: &PickSums, longest_debt: Option<Debt>) -> PickRow {
    let (pid, cpu, command, group) = key.subject(groups);
    PickRow {
        pid,
        group,
        cpu,
        command,
        picks: sums.picks(),
        unexplained: sums.reasons[Reason::Unexplained as usize],
        lag: LagSummary::of(&sums.lag),
        longest_debt,
        late: sums.late.summary(),
        requested: sums.slices.summary(),
        runs: sums.runs.summary(),
    }
}
