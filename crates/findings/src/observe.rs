//! The comparison of the reports with the thresholds.

use crate::path_time::PathTime;
use crate::{Certainty, Doubts, HeldBackWait, Measurements, Observation};
use residency::Crowded;
use sched::kthread::is_kernel_thread;
use sched::topology::format_cpu_list;
use sched::{Cpu, Dur};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The least time in violation, in percent of the window, that is a finding.
const VIOLATED_PERCENT: f64 = 1.0;
/// The least time for which tasks are held back, in percent of the window, that is a finding.
const HELD_PERCENT: f64 = 1.0;
/// The least unbalanced time, in percent of the window, that is a finding.
const UNBALANCED_PERCENT: f64 = 10.0;
/// The least time of tasks on small CPUs beside larger idle ones, in percent of the window, that is a finding.
const SMALL_PERCENT: f64 = 5.0;
/// The least time of tasks on shared cores beside idle cores, in percent of the window, that is a finding.
const CROWDED_PERCENT: f64 = 5.0;
/// The least part of the critical path, in percent, that is a finding.
pub(crate) const PATH_PERCENT: f64 = 5.0;
/// The least share of tasks outside of the application in the busy time, in percent, that is a finding.
const OUTSIDE_PERCENT: f64 = 5.0;
/// The least wait that is a finding: 100 ms.
const STARVED: Dur = Dur(100_000_000);
/// The share of unknown CPU time, in percent, above which nothing is concluded about tasks, as about a path.
const UNKNOWN_PERCENT: f64 = 20.0;
/// The greatest share of events missing without a mark, in percent, at which waiting tasks are known.
const UNWRITTEN_PERCENT: f64 = 1.0;
/// The least time that a herd needs to drain to be a finding: 1 ms.
const DRAINED: Dur = Dur(1_000_000);
/// The number of the largest herds whose cost is measured.
const HERDS: usize = 8;

/// A finding before it is ranked: the observation, its cost in nanoseconds where that is known, and its certainty.
pub(crate) type Observed = (Observation, Option<u64>, Certainty);

/// Whether the CPUs of a wait idled for half of it or longer.
fn is_held_back(wait: &fairness::Starved) -> bool {
    wait.held_back_ns.0 >= wait.duration_ns.0.div_ceil(2)
}

/// The CPUs on whose run queues a task waited, at most three.
fn queues(wait: &fairness::Starved) -> Vec<Cpu> {
    wait.queues.iter().take(3).map(|queue| queue.cpu).collect()
}

/// A time beside idle CPUs, in nanoseconds.
struct BesideIdle {
    /// The part that known affinity explains.
    known: u64,
    /// The part in which tasks are suspected to be bound.
    suspected: u64,
    rest: u64,
}

/// A share of a time, and the rest.
fn divided(ns: u64, share: Option<f64>) -> (u64, u64) {
    let part = ((ns as f64 * share.unwrap_or(0.0)) as u64).min(ns);
    (part, ns - part)
}

/// The findings about a window, in the order of their kinds.
pub(crate) struct Observer<'m> {
    pub(crate) found: &'m Measurements,
    doubts: &'m Doubts,
    pub(crate) path: Option<PathTime<'m>>,
    /// Whether costs are time on the path. Otherwise they are CPU time lost.
    pub(crate) is_by_path: bool,
    /// The reason why the waiting tasks are not certain.
    untrusted: Option<String>,
}

impl<'m> Observer<'m> {
    pub(crate) fn new(found: &'m Measurements, doubts: &'m Doubts) -> Observer<'m> {
        let mut unknown = found.workcons.unknown.clone();
        unknown.unwritten_percent = doubts.unwritten_percent;
        unknown.clocks_apart = doubts.clocks_apart;
        let untrusted = match doubts {
            Doubts { is_of_some_tasks: true, .. } => Some("the tasks of one command alone were recorded".to_owned()),
            Doubts { has_wakeups: false, .. } => Some("no event of a wakeup was recorded".to_owned()),
            _ => unknown.why_untrusted(UNWRITTEN_PERCENT),
        };
        let reason = |why: String| why.trim_end_matches(": the waiting tasks are unknown").to_owned();
        let path = PathTime::of(found);
        let mut observer =
            Observer { found, doubts, is_by_path: path.is_some(), path, untrusted: untrusted.map(reason) };
        observer.is_by_path = observer.costs_on_path();
        observer
    }

    /// Whether the costs on the path are large enough to rank the findings by them, or are the only ones.
    fn costs_on_path(&self) -> bool {
        let Some(path) = &self.path else { return false };
        let all = self.all();
        let is_on_path = all.iter().any(|(_, cost, _)| path.percent(cost.unwrap_or(0)) >= PATH_PERCENT);
        let is_lost = |observation: &Observation| {
            use Observation::{Affinity, HeldBack, Throttling, Violation};
            matches!(observation, Violation { .. } | Affinity { .. } | Throttling { .. } | HeldBack { .. })
        };
        is_on_path || !all.iter().any(|(observation, ..)| is_lost(observation))
    }

    /// The path, where costs are time on it.
    pub(crate) fn priced(&self) -> Option<&PathTime<'m>> {
        self.path.as_ref().filter(|_| self.is_by_path)
    }

    /// Whether a time on the critical path is a thousandth of it or more: a shorter one delayed nothing, and is not told.
    pub(crate) fn is_told_on_path(&self, ns: u64) -> bool {
        ns >= self.least_cost()
    }

    /// The least cost of a finding, in nanoseconds.
    pub(crate) fn least_cost(&self) -> u64 {
        self.priced().map_or(1, PathTime::least)
    }

    /// Whether nothing can be concluded about waiting tasks.
    fn withholds(&self) -> bool {
        self.doubts.is_of_some_tasks
            || !self.doubts.has_wakeups
            || self.found.workcons.unknown.unknown_percent > UNKNOWN_PERCENT
    }

    pub(crate) fn all(&self) -> Vec<Observed> {
        let mut all: Vec<Observed> = Vec::new();
        if !self.withholds() {
            let asked = [self.missed_periods(), self.behind_cgroup()];
            let violation = [self.violation(), self.held_back(), self.path_queued(), self.waker_queued()];
            let violation = violation.into_iter().chain([self.starved(), self.herds()]);
            let others = [self.affinity(), self.suspected_affinity(), self.late_wakeups(), self.interference()];
            let others = others.into_iter().chain([self.small_cpu(), self.unbalanced()]);
            let others = others.chain([self.crowded_cores()]);
            all.extend(asked.into_iter().chain(violation).chain(others).flatten());
        }
        all.extend(self.throttling());
        all.extend([self.losses(), self.not_recorded(), self.path_unknown()].into_iter().flatten());
        all
    }

    /// The certainty of numbers on waiting tasks.
    pub(crate) fn certainty(&self) -> Certainty {
        let is_partial = self.found.workcons.unknown.unknown_percent > 0.0;
        match () {
            () if self.untrusted.is_some() || self.doubts.has_sched_ext => Certainty::Possible,
            () if is_partial || self.doubts.has_losses || self.doubts.silent_cpus > 0 => Certainty::Bounded,
            () if self.doubts.rounded_ns > 0 => Certainty::Bounded,
            () => Certainty::Exact,
        }
    }

    /// The certainty of numbers on queues that are compared, of which this time was found beside shorter ones: cgroups of other weights make the shares
    /// of their tasks others than the nice values do.
    fn of_queues(&self, certainty: Certainty, beside_shorter_ns: u64) -> Certainty {
        if self.doubts.has_group_weights && beside_shorter_ns > 0 { Certainty::Possible } else { certainty }
    }

    /// The certainty of numbers on the critical path.
    pub(crate) fn of_path(&self) -> Certainty {
        match (self.certainty(), &self.path) {
            (Certainty::Exact, Some(path)) if path.path.times.unknown_ns > 0 => Certainty::Bounded,
            (certainty, _) => certainty,
        }
    }

    /// The share of the time beside idle CPUs that known affinity explains, from 0 to 1.
    fn known_share(&self) -> Option<f64> {
        let with = self.found.workcons.violation.as_ref()?;
        let all = self.found.unrestricted.as_ref()?.violation.as_ref()?;
        let share = 1.0 - with.cpu_time_lost_percent / all.cpu_time_lost_percent.max(f64::MIN_POSITIVE);
        (all.percent - with.percent >= VIOLATED_PERCENT).then_some(share.clamp(0.0, 1.0))
    }

    /// The share of what is left of it in which the waiting tasks, which no list has, are suspected to be bound; from 0 to 1.
    fn suspected_share(&self) -> Option<f64> {
        Some((self.found.workcons.confined_percent? / 100.0).clamp(0.0, 1.0))
    }

    /// The CPU time lost to tasks that waited, in nanoseconds: without regard to affinity where that is known.
    fn cpu_time_lost(&self) -> u64 {
        let of = |report: &workcons::Report| Some(report.by_min_episode.as_ref()?.first()?.totals.cpu_time_lost_ns);
        let lost = self.found.unrestricted.as_ref().and_then(of).max(of(&self.found.workcons));
        lost.unwrap_or_default()
    }

    /// The cost of waiting beside idle CPUs.
    fn cost_beside_idle(&self) -> BesideIdle {
        self.priced().map_or_else(|| self.lost_beside_idle(), |path| self.beside_idle_on(path))
    }

    /// The CPU time lost beside idle CPUs.
    fn lost_beside_idle(&self) -> BesideIdle {
        let (known, rest) = divided(self.cpu_time_lost(), self.known_share());
        let (suspected, rest) = divided(rest, self.suspected_share());
        BesideIdle { known, suspected, rest }
    }

    /// The time on a path beside idle CPUs.
    fn beside_idle_on(&self, path: &PathTime<'_>) -> BesideIdle {
        let (suspected, rest) = divided(path.kinds.beside_idle_ns, self.suspected_share());
        BesideIdle { known: path.kinds.beside_forbidden_ns, suspected, rest }
    }

    /// The time on the path beside idle CPUs; nothing without a path.
    fn path_beside_idle(&self) -> Option<BesideIdle> {
        self.path.as_ref().map(|path| self.beside_idle_on(path))
    }

    fn violation(&self) -> Option<Observed> {
        let violation = self.found.workcons.violation.as_ref()?;
        let on_path_ns = self.path_beside_idle().map(|beside_idle| beside_idle.rest);
        let is_on_path = self.path.as_ref().zip(on_path_ns).is_some_and(|(path, ns)| path.percent(ns) >= PATH_PERCENT);
        // Where affinity is known, the percentage is without what it explains.
        let suspected = self.suspected_share().unwrap_or(0.0);
        if violation.percent * (1.0 - suspected) < VIOLATED_PERCENT && !is_on_path {
            return None;
        }
        let waiting = self.found.why.waiting.as_ref();
        let mut origins: BTreeMap<&str, u64> = BTreeMap::new();
        for row in waiting.iter().flat_map(|waiting| &waiting.rows) {
            let sum = origins.entry(&row.words[0]).or_default();
            *sum = sum.saturating_add(row.total_ns.0);
        }
        let largest = origins.into_iter().max_by_key(|(words, ns)| (*ns, Reverse(*words))).filter(|(_, ns)| *ns > 0);
        let total = waiting.map_or(0, |waiting| waiting.total_ns.0).max(1);
        let lost = self.found.workcons.by_min_episode.as_ref().and_then(|rows| rows.first());
        // Rounded times may be all that makes it a finding.
        let errors = violation.episodes.saturating_add(1).saturating_mul(self.doubts.rounded_ns);
        let least = violation.percent - 100.0 * errors as f64 / self.found.workcons.window_ns.0.max(1) as f64;
        let may_be_less = errors > 0 && !is_on_path && least * (1.0 - suspected) < VIOLATED_PERCENT;
        let certainty = if self.suspected_share().is_some() || self.hides_throttled() || may_be_less {
            Certainty::Possible
        } else {
            self.certainty()
        };
        let observation = Observation::Violation {
            percent: violation.percent,
            possible_percent: violation.possible_percent,
            cpu_time_lost_ns: lost.map_or(0, |row| row.totals.cpu_time_lost_ns),
            origin: largest.map(|(words, _)| words.to_owned()),
            origin_percent: 100.0 * largest.map_or(0, |(_, ns)| ns) as f64 / total as f64,
            queued_on_path_ns: self.path.as_ref().map(PathTime::queued),
            on_path_ns,
            affinity_aside: self.known_share().or(self.suspected_share()).is_some(),
        };
        Some((observation, Some(self.cost_beside_idle().rest), certainty))
    }

    /// The waiting beside idle CPUs that tasks are known not to use.
    fn affinity(&self) -> Option<Observed> {
        let share = self.known_share()?;
        let with = self.found.workcons.violation.as_ref()?;
        let without = self.found.unrestricted.as_ref().and_then(|report| report.violation.as_ref())?;
        let observation = Observation::Affinity {
            is_known: true,
            percent: without.percent - with.percent,
            share_percent: 100.0 * share,
            on_path_ns: self.path_beside_idle().map(|beside_idle| beside_idle.known),
            most: self.found.barred.as_ref().and_then(|rows| rows.first().cloned()),
            confined_to: None,
            isolated: self.doubts.isolated.clone(),
        };
        Some((observation, Some(self.cost_beside_idle().known), self.certainty()))
    }

    /// The waiting beside idle CPUs that tasks, which no list has, seem not to use.
    fn suspected_affinity(&self) -> Option<Observed> {
        let share = self.suspected_share()?;
        let with = self.found.workcons.violation.as_ref()?;
        let to = &self.found.workcons.confined_to;
        let observation = Observation::Affinity {
            is_known: false,
            percent: with.percent * share,
            share_percent: 100.0 * share,
            on_path_ns: self.path_beside_idle().map(|beside_idle| beside_idle.suspected),
            most: None,
            confined_to: (!to.is_empty()).then(|| format_cpu_list(to)),
            isolated: self.doubts.isolated.clone().filter(|_| self.known_share().is_none()),
        };
        Some((observation, Some(self.cost_beside_idle().suspected), Certainty::Possible))
    }

    fn path_queued(&self) -> Option<Observed> {
        let path = self.path.as_ref()?;
        let queued_ns = path.queued();
        let percent = path.percent(queued_ns);
        let kinds = path.kinds;
        let observation = Observation::PathQueued { queued_ns, kinds, percent };
        // Queued time beside idle CPUs is a violation, and held-back time a finding of its own, whose sentences have the path.
        let beside_idle = self.beside_idle_on(path).rest;
        let while_busy = kinds.beside_shorter_ns.saturating_add(kinds.alike_ns) - kinds.beside_forbidden_ns;
        let is_busy = while_busy >= beside_idle.saturating_mul(2) || self.violation().is_none();
        let is_long = is_busy && path.percent(while_busy) >= PATH_PERCENT;
        is_long.then(|| (observation, Some(while_busy), self.of_queues(self.of_path(), kinds.beside_shorter_ns)))
    }

    /// Tasks that waited on idle CPUs, their own. Where records of throttling do not show the tasks, these are throttled.
    fn held_back(&self) -> Option<Observed> {
        let report = &self.found.workcons;
        let held = report.held_back?;
        let longest = report.pending_switches.first()?;
        let on_path_ns = self.path.as_ref().map(|path| path.kinds.held_back_ns);
        let is_on_path = self.path.as_ref().is_some_and(|path| path.percent(path.kinds.held_back_ns) >= PATH_PERCENT);
        if self.hides_throttled() || held.percent < HELD_PERCENT && !is_on_path {
            return None;
        }
        let task = longest.waiting.first();
        let observation = Observation::HeldBack {
            percent: held.percent,
            cpu_ns: held.cpu_ns,
            times: report.long_pending_switches,
            longest_ns: longest.duration_ns,
            start_in_trace_ns: longest.start_in_trace_ns,
            cpu: longest.cpu,
            pid: task.map(|task| task.pid),
            command: task.map(|task| task.command),
            on_path_ns,
            wait: self.held_back_wait(),
        };
        let cost = self.priced().map_or(held.cpu_ns, |path| path.kinds.held_back_ns);
        Some((observation, Some(cost), self.certainty()))
    }

    /// The longest wait that is long enough for a finding and for half of which the task was held back.
    fn held_back_wait(&self) -> Option<HeldBackWait> {
        let waits = &self.found.fairness.as_ref()?.starved;
        let wait = waits.iter().find(|wait| wait.duration_ns >= STARVED && is_held_back(wait))?;
        Some(HeldBackWait {
            pid: wait.pid,
            command: wait.command,
            queues: queues(wait),
            start_in_trace_ns: wait.start_in_trace_ns,
            duration_ns: wait.duration_ns,
            held_back_ns: wait.held_back_ns.0,
            still_waits: wait.still_waits,
        })
    }

    /// Queues of different lengths while no CPU idled; the sentence on the queued path has that where there is a path.
    fn unbalanced(&self) -> Option<Observed> {
        let found = self.found.workcons.unbalanced.as_ref()?;
        let longest = found.longest.first()?;
        if self.path_queued().is_some() || found.percent < UNBALANCED_PERCENT {
            return None;
        }
        let observation = Observation::Unbalanced {
            percent: found.percent,
            cpu_ns: found.cpu_ns,
            episodes: found.episodes,
            longest_ns: longest.duration_ns,
            start_in_trace_ns: longest.start_in_trace_ns,
            difference: longest.difference,
        };
        Some((observation, None, self.of_queues(self.certainty(), found.ns)))
    }

    /// Tasks on small CPUs beside larger ones that idled.
    fn small_cpu(&self) -> Option<Observed> {
        let rows = self.found.smaller.as_ref()?;
        let most = rows.first()?;
        let task_ns = rows.iter().map(|row| row.ns.0).fold(0, u64::saturating_add);
        let percent = 100.0 * task_ns as f64 / (self.found.workcons.window_ns.0 as f64).max(1.0);
        let (capacity, idle_capacity) = (most.capacity, most.idle_capacity);
        let observation = Observation::SmallCpu { task_ns, percent, capacity, idle_capacity };
        (percent >= SMALL_PERCENT).then_some((observation, None, self.certainty()))
    }

    /// Tasks on sibling CPUs of a core while every CPU of another one idled.
    fn crowded_cores(&self) -> Option<Observed> {
        let crowded = self.found.crowded?;
        let Crowded { percent, core_time_lost_ns, .. } = crowded;
        let observation = Observation::CrowdedCores { percent, core_time_lost_ns };
        // Tasks that are bound, or an idle core that is isolated, would explain it.
        let certainty = if self.suspected_share().is_some() { Certainty::Possible } else { self.certainty() };
        (percent >= CROWDED_PERCENT).then_some((observation, None, certainty))
    }

    fn starved(&self) -> Option<Observed> {
        let waits = &self.found.fairness.as_ref()?.starved;
        let span = |wait: &fairness::Starved| {
            let from = self.found.zero.after(Dur(wait.start_in_trace_ns));
            (from, from.after(wait.duration_ns))
        };
        let is_throttled = |wait: &fairness::Starved| {
            let (from, to) = span(wait);
            let throttling = self.found.workcons.throttling.as_ref();
            throttling.is_some_and(|found| found.within(wait.cpu, from, to) > wait.duration_ns.0 / 2)
        };
        let on_path = |wait: &fairness::Starved| {
            let (from, to) = span(wait);
            self.path.as_ref().map_or(0, |path| path.queued_of(wait.pid, from, to))
        };
        // A task that was held back is in the sentence on that.
        let is_told = self.held_back().is_some() || self.hides_throttled();
        let is_starved = |wait: &&fairness::Starved| {
            wait.duration_ns >= STARVED && !is_throttled(wait) && !(is_told && is_held_back(wait))
        };
        let waits: Vec<_> = waits.iter().filter(is_starved).collect();
        // The sentence is on the costliest one.
        let is_user = |wait: &fairness::Starved| !is_kernel_thread(wait.command);
        let key = |wait: &fairness::Starved| (on_path(wait), is_user(wait), wait.duration_ns, Reverse(wait.pid));
        let longest = *waits.iter().max_by_key(|wait| key(wait))?;
        let cost = self.priced().map(|_| waits.iter().map(|wait| on_path(wait)).fold(0, u64::saturating_add));
        let observation = Observation::Starved {
            waits: waits.len(),
            longest_ns: longest.duration_ns,
            start_in_trace_ns: longest.start_in_trace_ns,
            pid: longest.pid,
            command: longest.command,
            cpu: longest.cpu,
            queues: queues(longest),
            behind: longest.antagonists.first().map(|(command, _)| *command),
            behind_ns: longest.antagonists.first().map_or(0, |(_, time)| time.0),
            others_ran_ns: longest.others_ran_ns.0,
            held_back_ns: longest.held_back_ns.0,
            meanwhile: longest.meanwhile(),
            could_have_run_ns: longest.could_have_run_ns,
            may_use: longest.may_use.clone(),
        };
        Some((observation, cost, self.certainty()))
    }

    fn herds(&self) -> Option<Observed> {
        // One that drains at once delays nobody.
        let is_slow = |herd: &&utilization::HerdReport| herd.drained_after_ns.is_none_or(|drained| drained >= DRAINED);
        let mut herds: Vec<_> = self.found.utilization.herds.iter().filter(is_slow).collect();
        herds.sort_by_key(|herd| (Reverse(herd.herd.tasks), herd.start_in_trace_ns));
        let largest = *herds.first()?;
        let cost = self.priced().map(|path| path.queued_by(herds.iter().take(HERDS).copied()));
        let observation = Observation::Herds {
            herds: herds.len(),
            tasks: largest.herd.tasks,
            orig: largest.herd.orig,
            dest: largest.herd.dest,
            start_in_trace_ns: largest.start_in_trace_ns,
            drained_after_ns: largest.drained_after_ns,
        };
        Some((observation, cost, self.certainty()))
    }

    /// Whether the critical path ran but for a part too short to be a finding: late wakeups and tasks of others did not delay it.
    pub(crate) fn is_undelayed(&self) -> bool {
        let ran = self.path.as_ref().map(|path| path.percent(path.path.times.running_ns));
        ran.is_some_and(|percent| percent > 100.0 - PATH_PERCENT)
    }

    fn interference(&self) -> Option<Observed> {
        // Without the application nothing is outside of it.
        self.found.utilization.all.app_ns?;
        let members = &self.found.outside.as_ref()?.members;
        let mut commands: BTreeMap<&str, u64> = BTreeMap::new();
        for task in members {
            let pid = task.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
            let sum = commands.entry(task.name.strip_suffix(&pid).unwrap_or(&task.name)).or_default();
            *sum = sum.saturating_add(task.run_ns.0);
        }
        let run_ns = commands.values().copied().fold(0, u64::saturating_add);
        let most = commands.into_iter().max_by_key(|(command, ns)| (*ns, Reverse(*command)));
        let busy_percent = 100.0 * run_ns as f64 / (self.found.utilization.all.busy() as f64).max(1.0);
        let behind = self.path.as_ref().map(|path| path.behind_outside);
        let is_on_path = self.path.as_ref().is_some_and(|path| path.percent(path.behind_outside) >= PATH_PERCENT);
        let is_off_path = self.path.as_ref().is_some_and(|path| path.behind_outside < path.least());
        if self.is_undelayed() || is_off_path || busy_percent < OUTSIDE_PERCENT && !is_on_path {
            return None;
        }
        let observation = Observation::Interference {
            run_ns,
            busy_percent,
            command: most.map(|(command, _)| command.to_owned()),
            command_run_ns: most.map_or(0, |(_, ns)| ns),
            behind_on_path_ns: behind,
        };
        Some((observation, behind.filter(|_| self.is_by_path), self.of_path()))
    }

    fn losses(&self) -> Option<Observed> {
        let unknown_percent = self.found.workcons.unknown.unknown_percent;
        let Doubts { gaps, unwritten_percent, has_losses, .. } = *self.doubts;
        let observation = Observation::Losses { gaps, unknown_percent, unwritten_percent };
        (has_losses || gaps > 0).then_some((observation, None, Certainty::Exact))
    }

    fn not_recorded(&self) -> Option<Observed> {
        let reason = self.untrusted.clone()?;
        Some((Observation::NotRecorded { reason, withholds: self.withholds() }, None, Certainty::Exact))
    }

    fn path_unknown(&self) -> Option<Observed> {
        let path = self.found.path.as_ref()?;
        let percent = 100.0 * path.times.unknown_ns as f64 / (path.to_ns.since(path.from_ns).0 as f64).max(1.0);
        let observation = Observation::PathUnknown {
            unknown_ns: path.times.unknown_ns,
            percent,
            gaps: path.gaps,
            is_untrusted: path.is_untrusted,
        };
        (percent >= PATH_PERCENT).then_some((observation, None, Certainty::Exact))
    }

    /// The numbers that show that nothing is to be reported, in one sentence.
    pub(crate) fn nothing(&self) -> String {
        let mut parts = Vec::new();
        if let Some(violation) = &self.found.workcons.violation {
            parts.push(format!("work conservation is violated {:.2} % of the time", violation.percent));
        }
        if let Some(path) = &self.path {
            let queued = path.percent(path.queued());
            parts.push(format!("{queued:.2} % of the critical path is queued"));
        }
        if let Some(p99) = self.found.latency.of(latency::Measure::Wakeup).p99_ns {
            parts.push(format!("99 % of the woken tasks ran within {}", p99.human()));
        }
        format!("Nothing to report: {}.", parts.join(", "))
    }
}
