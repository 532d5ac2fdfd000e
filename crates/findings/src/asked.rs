//! What was asked of the scheduler and not given: periods and deadlines, and the shares of cgroups by weight.

use crate::observe::{Observed, Observer};
use crate::{Certainty, CgroupShare, LatestJob, Observation};
use entitlement::GroupShare;
use jobs::{DeadlineOrigin, JobRow};
use neighbours::PairReport;
use sched::nouns::counted;
use sched::{Dur, Pid};
use std::cmp::Reverse;

/// The least number of jobs of a periodic task of which missed ones are a finding.
const JOBS: u64 = 10;
/// The least share of missed deadlines in the jobs of a periodic task, in percent, that is a finding.
const MISSED_PERCENT: f64 = 1.0;
/// The least number of missed deadlines of a periodic task that is a finding.
const MISSED: u64 = 3;
/// The share of the CPU time to which a cgroup is entitled, in percent, below which it is a finding.
const SHARE_PERCENT: f64 = 80.0;
/// The least CPU time that a cgroup lacks, in percent of the window, that is a finding.
const LACKING_PERCENT: f64 = 5.0;
/// The least time for which a cgroup without a known weight waits behind another, in percent of the window, that is a finding.
const BEHIND_PERCENT: f64 = 10.0;

/// The CPU time of a cgroup by weight.
fn share_of(group: &GroupShare) -> CgroupShare {
    CgroupShare { weight: group.weight, entitled_ns: group.entitled_ns, got_ns: group.got_ns }
}

/// Whether a task missed so many deadlines that they are a finding.
fn misses(row: &JobRow) -> bool {
    let missed = row.missed.unwrap_or(0);
    let is_asked = row.deadline_by == Some(DeadlineOrigin::Parameters);
    // Other even wakeups, as of a pipeline, ask for nothing.
    let is_by_timers = row.by_interrupts.is_some_and(|number| number.saturating_mul(2) >= row.jobs);
    let is_many = is_by_timers
        && row.jobs >= JOBS
        && missed >= MISSED
        && 100.0 * missed as f64 >= MISSED_PERCENT * row.jobs as f64;
    missed > 0 && (is_asked || is_many)
}

impl Observer<'_> {
    pub(crate) fn missed_periods(&self) -> Option<Observed> {
        let report = &self.found.jobs;
        let rows: Vec<&JobRow> = report.tasks.iter().filter(|row| misses(row)).collect();
        let most = *rows.iter().max_by_key(|row| (row.missed, Reverse(row.pid)))?;
        let is_of_rows = |pid: Pid| rows.iter().any(|row| row.pid == pid);
        let latest = report.worst.iter().find(|job| job.is_missed && is_of_rows(job.pid)).map(|job| LatestJob {
            pid: job.pid,
            command: job.command,
            release_in_trace_ns: job.release_in_trace_ns,
            response_ns: job.response_ns,
            waited_ns: job.waited_ns,
            run_ns: job.run_ns,
            behind: job.culprits.first().map(|culprit| culprit.pid),
            behind_command: job.culprits.first().map(|culprit| culprit.command),
            behind_ns: job.culprits.first().map_or(Dur(0), |culprit| culprit.time_ns),
        });
        let observation = Observation::MissedPeriods {
            tasks: rows.len(),
            jobs: rows.iter().map(|row| row.jobs).sum(),
            missed: rows.iter().filter_map(|row| row.missed).sum(),
            pid: most.pid,
            command: most.command,
            task_jobs: most.jobs,
            task_missed: most.missed.unwrap_or(0),
            deadline_ns: most.deadline_ns,
            latest,
        };
        // A period that was found in the intervals is no record of what was asked for.
        let is_recorded = rows.iter().all(|row| row.deadline_by == Some(DeadlineOrigin::Parameters));
        Some((observation, None, if is_recorded { self.certainty() } else { Certainty::Possible }))
    }

    /// A cgroup that gets less than its share, or that waits behind another one where weights are unknown.
    pub(crate) fn behind_cgroup(&self) -> Option<Observed> {
        let by_cgroup = self.found.by_cgroup.as_ref()?;
        let of_window = |ns: u64| 100.0 * ns as f64 / (self.found.workcons.window_ns.0 as f64).max(1.0);
        let is_cgroup = |kind| kind == neighbours::PartyKind::Tasks;
        let pairs = || by_cgroup.pairs.iter().filter(|pair| pair.victim != pair.culprit && is_cgroup(pair.kind));
        let shares = self.found.shares.as_ref().filter(|shares| shares.unknown.is_none());
        let groups = shares.map_or(&[][..], |shares| &shares.groups);
        let lacking = |group: &GroupShare| group.entitled_ns.0.saturating_sub(group.got_ns.0);
        let is_below = |group: &&GroupShare| {
            group.cgroup != "/"
                && group.got_percent.is_some_and(|got| got < SHARE_PERCENT)
                && of_window(lacking(group)) >= LACKING_PERCENT
        };
        let share = |name: &str| groups.iter().find(|group| group.cgroup == name).map(share_of);
        let most = |pairs: &mut dyn Iterator<Item = &PairReport>| pairs.max_by_key(|pair| pair.wait_ns).cloned();
        let (cgroup, pair) = match groups.iter().filter(is_below).max_by_key(|group| lacking(group)) {
            Some(group) => (group.cgroup.clone(), most(&mut pairs().filter(|pair| pair.victim == group.cgroup))),
            None => {
                // With known weights it waits for what is others' by right.
                let is_unknown = |pair: &&PairReport| share(&pair.victim).is_none_or(|share| share.weight.is_none());
                let is_victim = |pair: &&PairReport| {
                    let is_of_tasks =
                        |group: &&neighbours::PartyReport| group.name == pair.victim && is_cgroup(group.kind);
                    by_cgroup.groups.iter().any(|group| is_of_tasks(&group))
                };
                let pair = most(&mut pairs().filter(is_unknown).filter(is_victim))?;
                if of_window(pair.wait_ns.0) < BEHIND_PERCENT {
                    return None;
                }
                (pair.victim.clone(), Some(pair))
            }
        };
        let observation = Observation::BehindCgroup {
            share: share(&cgroup),
            cgroup,
            behind_share: pair.as_ref().and_then(|pair| share(&pair.culprit)),
            behind_ns: pair.as_ref().map_or(Dur(0), |pair| pair.wait_ns),
            behind: pair.map(|pair| pair.culprit),
        };
        Some((observation, None, self.certainty()))
    }
}

/// The sentence on what was asked of the scheduler.
pub(crate) fn sentence(observation: &Observation) -> String {
    match observation {
        Observation::MissedPeriods {
            tasks,
            jobs,
            missed,
            pid,
            command,
            task_jobs,
            task_missed,
            deadline_ns,
            latest,
        } => {
            let period = deadline_ns.map_or(String::new(), |ns| format!(", each due within {}", ns.human()));
            let most = match tasks {
                1 => period,
                _ => format!("; {} missed {task_missed} of {task_jobs}{period}", pid.named(*command)),
            };
            let who = match tasks {
                1 => pid.named(*command),
                _ => counted(*tasks, "periodic task"),
            };
            let percent = 100.0 * *missed as f64 / (*jobs as f64).max(1.0);
            format!(
                "{missed} of {} of {who} ended too late ({percent:.1} %){most}{}.",
                counted(*jobs, "job"),
                latest.as_ref().map_or(String::new(), latest_job)
            )
        }
        Observation::BehindCgroup { cgroup, share, behind, behind_share, behind_ns } => {
            let weight = share.as_ref().map_or(String::new(), CgroupShare::weight_in_words);
            let waited = behind.as_ref().map(|behind| {
                let other = behind_share.as_ref().map_or(String::new(), |share| {
                    format!("{}, which got {:.0} % of its own", share.weight_in_words(), share.percent())
                });
                format!("waited {} behind {}{other}", behind_ns.human(), called(behind))
            });
            let got = share.as_ref().filter(|share| share.percent() < SHARE_PERCENT).map(|share| {
                format!(
                    "got {} of CPU time, {:.0} % of the {} to which its weight entitles it",
                    share.got_ns.human(),
                    share.percent(),
                    share.entitled_ns.human()
                )
            });
            let parts: Vec<String> = [got, waited].into_iter().flatten().collect();
            format!("{}{weight} {}.", called(cgroup).replacen('c', "C", 1), parts.join("; its tasks "))
        }
        _ => String::new(),
    }
}

/// A cgroup with the word for it, which the name of one that is known by its number alone has.
fn called(cgroup: &str) -> String {
    if cgroup.starts_with("cgroup ") { cgroup.to_owned() } else { format!("cgroup {cgroup}") }
}

/// The latest job as a clause.
fn latest_job(job: &LatestJob) -> String {
    let behind = match (job.behind, job.behind_command) {
        (Some(pid), Some(command)) if job.waited_ns > Dur(0) => {
            format!(", {} of that behind {}", job.behind_ns.human(), pid.named(command))
        }
        _ => String::new(),
    };
    format!(
        "; the latest, of {} from {:.6} s on, took {}: it ran {} and was queued for {}{behind}",
        job.pid.named(job.command),
        job.release_in_trace_ns as f64 / 1e9,
        job.response_ns.human(),
        job.run_ns.human(),
        job.waited_ns.human()
    )
}
