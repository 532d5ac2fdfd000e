//! The attempts of the load balancer, from all to those that moved something, where probes on it were recorded (group
//! `lb`, as `schedviz record --why` sets them).

use sched::balancer::{Attempt, AttemptOutcome, Attempts as Follower, Verdicts};
use sched::event::CleanText;
use sched::nouns::{counted, noun};
use sched::probe::{Balancing, Probe, RunQueue};
use sched::{Analysis, Comm, EventKind, Lengths, Past, PastMoves, SchedEvent, SchedState, StepLog, Ts};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The attempts of one kind in one domain, by outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attempts {
    /// The kind of balance.
    pub balancing: Balancing,
    /// The name of the scheduling domain, such as `MC` or `NUMA`; empty if the probe does not show it.
    pub domain: String,
    /// The number of attempts with each outcome.
    #[serde(flatten)]
    pub outcomes: Outcomes,
}

/// The number of attempts with each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcomes {
    /// Attempts that moved tasks.
    pub moved: u64,
    /// Attempts that did not search: another CPU of the group balances for it.
    pub not_chosen: u64,
    /// Attempts that found no busiest group.
    pub no_busiest_group: u64,
    /// Attempts that found a busiest group and moved no task.
    pub none_moved: u64,
    /// The number of these that examined no task: no busiest queue, or its lock was not taken; null without the probe `can_migrate`, which
    /// shows examined tasks.
    pub no_task_examined: Option<u64>,
    /// The number of these in which every examined task was refused; null without the probe `can_migrate`.
    pub all_refused: Option<u64>,
}

/// The gating of new-idle balancing, from the state of the run queue when its CPU goes idle (`set_next_task_idle`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoingIdle {
    /// Times that a CPU went idle while the machine had no overloaded CPU by the kernel's own flag: no balance is attempted.
    pub not_overloaded: u64,
    /// Times that the CPU idles less on average than the cheapest balance costs: no balance is attempted.
    pub too_costly: u64,
    /// Times that a balance was worth its cost, and did not find a task.
    pub affordable: u64,
}

/// The imbalance that the searches with a busiest group found, in one unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Imbalance {
    /// The unit, by the kernel's `enum migration_type`: `load`, `utilization`, `tasks`, `misfit` or `llc-tasks`; another one has
    /// the kernel's name if the machine file has it, and is `unknown` otherwise.
    pub unit: String,
    /// The number of searches.
    pub searches: u64,
    /// The median of their imbalance, at most 0.8 % above the true one.
    pub median: Option<u64>,
    /// The largest imbalance.
    pub max: Option<u64>,
}

/// The other probes: the number of records of each; absent where a probe is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Further {
    /// Times that an idle CPU was asked to balance for itself and others (nohz kicks, `kicked`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nohz_kicks: Option<u64>,
    /// Times that periodic balance began for an idle CPU (`domains`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub periodic_idle: Option<u64>,
    /// Times that periodic balance began for a busy CPU (`domains`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub periodic_busy: Option<u64>,
    /// Attempts that asked whether active balance is needed (`need_active`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_asked: Option<u64>,
    /// The number of these for which it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_needed: Option<u64>,
    /// The number of tasks that the balancer detached from their run queue (`detach_task`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detached: Option<u64>,
    /// Queued tasks that were moved for their affinity, an exec or NUMA (`move_queued`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_queued: Option<u64>,
    /// Pairs of tasks that NUMA balancing asked to exchange (`swap`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swaps: Option<u64>,
    /// Times that NUMA balancing looked for a CPU on a node (`numa_find`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_looked: Option<u64>,
    /// The number of these after which it had a candidate; absent if the probe does not record it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_candidates: Option<u64>,
    /// Times that no CPU which a task may use was online (`fallback`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallbacks: Option<u64>,
}

/// The attempts, from all to those that moved something. Nothing where a probe is missing.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Funnel {
    /// The number of times that a CPU was about to idle (`newidle_balance`).
    pub newidle: Option<u64>,
    /// The number of these that pulled tasks.
    pub newidle_pulled: Option<u64>,
    /// Attempts to balance a domain (`load_balance`), by how many tasks they moved.
    pub attempts_by_moved: Option<BTreeMap<u64, u64>>,
    /// The number of searches for a busiest group (`find_busiest_group`).
    pub searches: Option<u64>,
    /// The number of these that found none.
    pub no_busiest_group: Option<u64>,
    /// Times the stopper was sent (`active_balance`).
    pub active_balance: Option<u64>,
    /// The attempts by kind, domain and outcome (`load_balance` and `find_busiest_group`).
    pub attempts: Option<Vec<Attempts>>,
    /// The verdicts on the tasks that were examined (`can_migrate`).
    pub examined: Option<Verdicts>,
    /// The gating of new-idle balancing (`idle`).
    pub going_idle: Option<GoingIdle>,
    /// The imbalance found, by unit; absent if the probe does not record it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imbalance: Option<Vec<Imbalance>>,
    /// The counts of the other probes.
    #[serde(flatten)]
    pub further: Further,
}

/// Counts the attempts of a window.
#[derive(Clone, Debug, Default)]
pub struct Funnels {
    /// The counts of the probes that the trace has.
    funnel: Funnel,
    follower: Follower,
    /// The verdicts before the window.
    before: Verdicts,
    attempts: BTreeMap<(Balancing, Comm), Outcomes>,
    imbalance: BTreeMap<Option<u8>, Lengths>,
    /// The kernel's names of the kinds of imbalance, by number.
    kinds: Vec<CleanText>,
    /// The events that are left to the analysis of the pieces before, if this one follows a later piece of a pass.
    pub(crate) log: StepLog<SchedEvent>,
}

impl Funnels {
    /// Returns the analysis of a trace with the probes for which `has` holds, by the name of the probe and a field that
    /// it must have; nothing if no probe shows attempts.
    pub fn new(has: impl Fn(&str, &str) -> bool) -> Option<Funnels> {
        let zero = |name: &str, field: &str| has(name, field).then_some(0_u64);
        let attempts = zero("load_balance", "moved");
        let searches = zero("find_busiest_group", "group");
        let (periodic, active) = (zero("domains", "cpu"), zero("need_active", "active"));
        let funnel = Funnel {
            newidle: zero("newidle_balance", "pulled"),
            newidle_pulled: zero("newidle_balance", "pulled"),
            attempts_by_moved: attempts.map(|_| BTreeMap::new()),
            searches,
            no_busiest_group: searches,
            active_balance: zero("active_balance", "src"),
            attempts: attempts.and(searches).map(|_| Vec::new()),
            examined: zero("can_migrate", "ok").map(|_| Verdicts::default()),
            going_idle: zero("idle", "cpu").map(|_| GoingIdle::default()),
            imbalance: zero("find_busiest_group", "imbalance").map(|_| Vec::new()),
            further: Further {
                nohz_kicks: zero("kicked", "cpu"),
                periodic_idle: periodic,
                periodic_busy: periodic,
                active_asked: active,
                active_needed: active,
                detached: zero("detach_task", "pid"),
                moved_queued: zero("move_queued", "pid"),
                swaps: zero("swap", "pid"),
                numa_looked: zero("numa_find", "pid").or(zero("numa_find", "__probe_ret_ip")),
                numa_candidates: zero("numa_find", "best"),
                fallbacks: zero("fallback", "pid"),
            },
        };
        let counts = [funnel.newidle, funnel.searches, funnel.active_balance];
        let is_any = counts.iter().any(Option::is_some)
            || funnel.attempts_by_moved.is_some()
            || funnel.examined.is_some()
            || funnel.going_idle.is_some();
        is_any.then(|| Funnels { funnel, ..Funnels::default() })
    }

    /// The analysis with the kernel's own names of the kinds of imbalance, in the order of their numbers.
    #[must_use]
    pub fn with_kinds(self, kinds: &[CleanText]) -> Funnels {
        Funnels { kinds: kinds.to_vec(), ..self }
    }

    /// Takes the next event.
    pub(crate) fn take_event(&mut self, event: &SchedEvent) {
        if let EventKind::Probe { probe, .. } = event.kind {
            self.take(probe);
        }
        if let Some(attempt) = self.follower.event(event) {
            self.end(&attempt);
        }
    }

    fn take(&mut self, probe: Probe) {
        let Funnel { further, .. } = &mut self.funnel;
        let add = |sum: &mut Option<u64>, one: bool| {
            sum.iter_mut().for_each(|sum| *sum = sum.saturating_add(u64::from(one)));
        };
        match probe {
            Probe::NewIdleEnds(pulled) => {
                add(&mut self.funnel.newidle, true);
                add(&mut self.funnel.newidle_pulled, pulled > 0);
            }
            Probe::Searched { found, imbalance, how } => {
                add(&mut self.funnel.searches, true);
                add(&mut self.funnel.no_busiest_group, !found);
                if let Some(imbalance) = imbalance.filter(|_| found) {
                    self.imbalance.entry(how).or_default().add(sched::Dur(imbalance.into()));
                }
            }
            Probe::GoesIdle(queue) => self.funnel.going_idle.iter_mut().for_each(|sums| sums.take(&queue)),
            Probe::ActiveBalances(..) => add(&mut self.funnel.active_balance, true),
            Probe::Kicked => add(&mut further.nohz_kicks, true),
            Probe::Periodic(Balancing::Idle) => add(&mut further.periodic_idle, true),
            Probe::Periodic(_) => add(&mut further.periodic_busy, true),
            Probe::NeedsActive(needed) => {
                add(&mut further.active_asked, true);
                add(&mut further.active_needed, needed);
            }
            Probe::Detaches { .. } => add(&mut further.detached, true),
            Probe::MovesQueued(..) => add(&mut further.moved_queued, true),
            Probe::Swaps { .. } => add(&mut further.swaps, true),
            Probe::NumaLooked(_, best) => {
                add(&mut further.numa_looked, true);
                add(&mut further.numa_candidates, best.is_some());
            }
            Probe::FallsBack(_) => add(&mut further.fallbacks, true),
            _ => {}
        }
    }

    fn end(&mut self, attempt: &Attempt) {
        if let Some(by_moved) = &mut self.funnel.attempts_by_moved {
            *by_moved.entry(attempt.moved.into()).or_default() += 1;
        }
        self.attempts.entry((attempt.balancing, attempt.domain)).or_default().take(attempt.outcome);
    }
}

impl Outcomes {
    fn take(&mut self, outcome: AttemptOutcome) {
        let of_none_moved = match outcome {
            AttemptOutcome::NoTaskExamined => Some(&mut self.no_task_examined),
            AttemptOutcome::AllRefused => Some(&mut self.all_refused),
            _ => None,
        };
        if let Some(number) = of_none_moved {
            *number.get_or_insert_default() += 1;
        }
        *match outcome {
            AttemptOutcome::Moved => &mut self.moved,
            AttemptOutcome::NotChosen => &mut self.not_chosen,
            AttemptOutcome::NoBusiestGroup => &mut self.no_busiest_group,
            AttemptOutcome::NoneMoved | AttemptOutcome::NoTaskExamined | AttemptOutcome::AllRefused => {
                &mut self.none_moved
            }
        } += 1;
    }

    /// The outcomes of a trace with records of verdicts on tasks, or without: then nothing tells an examined task.
    fn with_verdicts(self, are_recorded: bool) -> Outcomes {
        let known = |number: Option<u64>| are_recorded.then(|| number.unwrap_or(0));
        Outcomes { no_task_examined: known(self.no_task_examined), all_refused: known(self.all_refused), ..self }
    }
}

impl GoingIdle {
    fn take(&mut self, queue: &RunQueue) {
        *match (queue.overloaded, queue.avg_idle.zip(queue.cost)) {
            (Some(false), _) => &mut self.not_overloaded,
            (_, Some((idle, cost))) if idle < cost => &mut self.too_costly,
            _ => &mut self.affordable,
        } += 1;
    }
}

impl Analysis for Funnels {
    type Output = Funnel;
    /// An attempt that ends in the window can have begun before it.
    const LOOKS_BACK: bool = true;

    fn recall(&mut self, past: &Past, _: &SchedState) {
        self.follower.recall(&PastMoves::of(past).balancing);
    }

    fn early(&mut self, event: &SchedEvent, _: &SchedState) {
        self.follower.event(event);
    }

    fn begin(&mut self, _: Ts, _: &SchedState) {
        self.before = self.follower.verdicts();
    }

    fn before(&mut self, event: &SchedEvent, _: &SchedState) {
        // Only records of probes and losses bear on attempts to balance, so a later piece keeps these alone.
        let bears = matches!(event.kind, EventKind::Probe { .. } | EventKind::Lost { .. });
        if (bears || !self.log.keeps())
            && let Some(event) = self.log.at_once(*event)
        {
            self.take_event(&event);
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> Funnel {
        let Funnels { mut funnel, follower, before, attempts, imbalance, kinds, .. } = self;
        let has_verdicts = funnel.examined.is_some();
        let row = |((balancing, domain), outcomes): ((Balancing, Comm), Outcomes)| Attempts {
            balancing,
            domain: domain.to_string(),
            outcomes: outcomes.with_verdicts(has_verdicts),
        };
        let unit = |(how, lengths): (Option<u8>, Lengths)| Imbalance {
            unit: how.map_or_else(|| UNKNOWN.to_owned(), |how| unit_of(how, &kinds)),
            searches: lengths.count(),
            median: lengths.rank(1, 2).map(|length| length.0),
            max: lengths.max().map(|length| length.0),
        };
        funnel.examined = funnel.examined.map(|_| follower.verdicts().without(&before));
        funnel.attempts = funnel.attempts.map(|_| attempts.into_iter().map(row).collect());
        funnel.imbalance = funnel.imbalance.map(|_| imbalance.into_iter().map(unit).collect());
        funnel
    }
}

/// The kernel's `enum migration_type` in the order of 7.2, and the unit of each.
const UNITS: [(&str, &str); 5] = [
    ("migrate_load", "load"),
    ("migrate_util", "utilization"),
    ("migrate_task", "tasks"),
    ("migrate_misfit", "misfit"),
    ("migrate_llc_task", "llc-tasks"),
];

/// The unit of a kind of imbalance without a name.
const UNKNOWN: &str = "unknown";

/// The unit of a kind of imbalance. The kernel's own names count, if there are any.
fn unit_of(how: u8, kinds: &[CleanText]) -> String {
    let how = usize::from(how);
    let known = |name: &str| UNITS.iter().find(|(kernels, _)| *kernels == name).map(|(_, unit)| (*unit).to_owned());
    let other = |name: &str| {
        sched::event::escape(name.trim_start_matches("migrate_").replace('_', "-").as_bytes()).into_owned()
    };
    match kinds.get(how).filter(|name| !name.is_empty()) {
        Some(name) => known(name).unwrap_or_else(|| other(name)),
        None if kinds.is_empty() => UNITS.get(how).map_or(UNKNOWN, |(_, unit)| unit).to_owned(),
        None => UNKNOWN.to_owned(),
    }
}

impl Funnel {
    /// The funnel in words, for people.
    pub fn text(&self) -> String {
        let mut out = String::from("\nProbes on the balancer (group lb):\n");
        // Writing to a string cannot fail.
        if let (Some(n), Some(pulled)) = (self.newidle, self.newidle_pulled) {
            let _ = writeln!(
                out,
                "  {n:>8} {} a CPU was about to idle; {} it pulled a task",
                noun(n, "time"),
                counted(pulled, "time")
            );
        }
        if let Some(by_moved) = &self.attempts_by_moved {
            let all = by_moved.values().sum::<u64>();
            let _ = writeln!(out, "  {all:>8} {} to balance a domain", noun(all, "attempt"));
        }
        if let (Some(n), Some(none)) = (self.searches, self.no_busiest_group) {
            let _ = writeln!(out, "  {none:>8} of {n} searches found no busiest group");
        }
        for (moved, n) in self.attempts_by_moved.iter().flatten() {
            let what = match moved {
                0 => "nothing".to_owned(),
                n => counted(*n, "task"),
            };
            let _ = writeln!(out, "  {n:>8} {} moved {what}", noun(*n, "attempt"));
        }
        if let Some(n) = self.active_balance {
            let _ = writeln!(out, "  {n:>8} {} the stopper was sent (active balance)", noun(n, "time"));
        }
        if let Some(examined) = &self.examined {
            examined_text(&mut out, examined);
        }
        if let Some(going_idle) = &self.going_idle {
            going_idle.text(&mut out);
        }
        self.further.text(&mut out);
        self.imbalance.iter().flatten().for_each(|imbalance| imbalance.text(&mut out));
        if let Some(attempts) = self.attempts.as_ref().filter(|attempts| !attempts.is_empty()) {
            attempts_text(&mut out, attempts);
        }
        out
    }
}

impl Further {
    /// Writes the numbers of the probes that have records, for people.
    fn text(&self, out: &mut String) {
        let mut line = |n: Option<u64>, [one, many]: [&str; 2], words: &str| {
            if let Some(n) = n.filter(|n| *n > 0) {
                let _ = writeln!(out, "  {n:>8} {} {words}", if n == 1 { one } else { many });
            }
        };
        let (times, tasks) = (["time", "times"], ["task was", "tasks were"]);
        line(self.nohz_kicks, times, "an idle CPU was asked to balance for itself and others (nohz)");
        line(self.periodic_idle, times, "periodic balance began for an idle CPU");
        line(self.periodic_busy, times, "periodic balance began for a busy CPU");
        line(self.active_asked, times, "active balance was considered");
        line(self.active_needed, times, "of these it was needed");
        line(self.detached, tasks, "detached by the balancer");
        line(self.moved_queued, ["queued task was", "queued tasks were"], "moved for their affinity, an exec or NUMA");
        line(self.swaps, ["pair of tasks was", "pairs of tasks were"], "to change places (NUMA)");
        line(self.numa_looked, times, "NUMA balancing looked for a CPU");
        line(self.numa_candidates, times, "of these it had a candidate");
        line(self.fallbacks, times, "no CPU that a task may use was online");
    }
}

impl Imbalance {
    fn text(&self, out: &mut String) {
        let number = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
        let (searches, unit) = (self.searches, &self.unit);
        let (median, max) = (number(self.median), number(self.max));
        let _ = writeln!(out, "  {searches:>8} imbalances in {unit}: median {median}, largest {max}");
    }
}

/// The table of the attempts.
fn attempts_text(out: &mut String, attempts: &[Attempts]) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n  {:8}  {:7}  {:>6}  {:>7}  {:>8}  {:>8}  {:>7}  {:>5}",
        "attempts", "domain", "all", "not its", "no group", "no task", "all", "moved"
    );
    let _ = writeln!(
        out,
        "  {:8}  {:7}  {:>6}  {:>7}  {:>8}  {:>8}  {:>7}  {:>5}",
        "", "", "", "turn", "busier", "examined", "refused", "tasks"
    );
    for row in attempts {
        let Outcomes { moved, not_chosen, no_busiest_group, none_moved, .. } = row.outcomes;
        let all = moved + not_chosen + no_busiest_group + none_moved;
        let of = |number: Option<u64>| number.map_or("?".to_owned(), |number| number.to_string());
        let (no_task_examined, all_refused) = (of(row.outcomes.no_task_examined), of(row.outcomes.all_refused));
        let _ = writeln!(
            out,
            "  {:8}  {:7}  {all:>6}  {not_chosen:>7}  {no_busiest_group:>8}  {no_task_examined:>8}  {all_refused:>7}  {moved:>5}",
            row.balancing.name(),
            row.domain
        );
    }
}

/// Writes the verdicts on the examined tasks, for people.
fn examined_text(out: &mut String, verdicts: &Verdicts) {
    let Verdicts { movable, running, one_cpu, other } = *verdicts;
    let all = movable + running + one_cpu + other;
    let _ = writeln!(
        out,
        "  {all:>8} {} examined; {movable} could be moved",
        if all == 1 { "task was" } else { "tasks were" }
    );
    let _ = writeln!(out, "  {running:>8} refused since running");
    let _ = writeln!(out, "  {one_cpu:>8} since allowed on one CPU only");
    let _ = writeln!(
        out,
        "  {other:>8} for another reason (CPU not allowed, cache-hot, throttled,\n           not eligible)"
    );
}

impl GoingIdle {
    /// Writes the outcomes of the gate, for people.
    fn text(&self, out: &mut String) {
        let GoingIdle { not_overloaded, too_costly, affordable } = *self;
        let mut line = |n: u64, words: &str| {
            let _ = writeln!(out, "  {n:>8} {} {words}", noun(n, "time"));
        };
        line(not_overloaded + too_costly + affordable, "a CPU went idle");
        line(not_overloaded, "without a balance: no CPU was overloaded");
        line(too_costly, "without a balance: it costs more than the CPU idles on average");
        line(affordable, "after a balance that found nothing to run");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An attempt that finds a busiest group and moves no task of it has examined tasks, or none: the probe on verdicts alone tells which.
    #[test]
    fn refusals_are_unknown_without_verdicts() {
        let outcomes = |are_recorded: bool| {
            let mut outcomes = Outcomes::default();
            [AttemptOutcome::AllRefused, AttemptOutcome::NoTaskExamined, AttemptOutcome::NoTaskExamined]
                .into_iter()
                .for_each(|outcome| outcomes.take(outcome));
            let Outcomes { none_moved, no_task_examined, all_refused, .. } = outcomes.with_verdicts(are_recorded);
            (none_moved, no_task_examined, all_refused)
        };
        assert_eq!((outcomes(true), outcomes(false)), ((3, Some(2), Some(1)), (3, None, None)));
        assert_eq!(Outcomes::default().with_verdicts(true).all_refused, Some(0));
    }

    #[test]
    fn a_kind_of_imbalance_has_the_kernels_name() {
        let units = |kinds: &[&str]| {
            let kinds: Vec<CleanText> = kinds.iter().map(|kind| (*kind).into()).collect();
            [0, 1, 4, 5].map(|how| unit_of(how, &kinds))
        };
        assert_eq!(units(&[]), ["load", "utilization", "llc-tasks", "unknown"]);
        let kernels = ["migrate_util", "migrate_load", "", "", "migrate_llc_task", "migrate_new_kind"];
        assert_eq!(units(&kernels), ["utilization", "load", "llc-tasks", "new-kind"]);
        assert_eq!(units(&kernels[..4]), ["utilization", "load", "unknown", "unknown"]);
    }
}
