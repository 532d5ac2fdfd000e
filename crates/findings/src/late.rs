//! Late wakeups: of all judged tasks, and of one command among many fast ones.

use crate::observe::{Observed, Observer, PATH_PERCENT};
use crate::path_time::OnPath;
use crate::{LateCommand, Measurements, Observation};
use latency::{LatencyRow, Measure};
use sched::Dur;
use sched::lengths::human;
use sched::nouns::counted;
use std::cmp::Reverse;

/// The least number of wakeups whose 99th percentile means anything.
const WAKEUPS: u64 = 100;
/// The least number of wakeups of a command whose median means anything.
const FEW_WAKEUPS: u64 = 10;

/// Whether wakeup latencies of this distribution are late: one in a hundred, or half of a few.
fn is_late(row: &LatencyRow) -> bool {
    let of = row.of(Measure::Wakeup);
    let is_slow = |ns: Option<Dur>| ns.is_some_and(|ns| ns >= latency::LATE);
    of.count >= WAKEUPS && is_slow(of.p99_ns) || of.count >= FEW_WAKEUPS && is_slow(of.p50_ns)
}

/// The wakeups of a row, with what held them up.
fn late_command_of(row: &LatencyRow, found: &Measurements) -> LateCommand {
    let (name, wakeups) = (row.shown(), row.of(Measure::Wakeup));
    let neighbours = &found.by_command;
    let group = neighbours.groups.iter().find(|group| group.name == name);
    let is_of_tasks = |kind| matches!(kind, neighbours::PartyKind::Tasks | neighbours::PartyKind::Kernel);
    let pairs = neighbours.pairs.iter().filter(|pair| pair.victim == name && is_of_tasks(pair.kind));
    let most = pairs.max_by_key(|pair| (pair.wait_ns, Reverse(pair.culprit.clone())));
    LateCommand {
        command: name,
        wakeups: wakeups.count,
        late: row.late_wakeups.unwrap_or_default(),
        p50_ns: wakeups.p50_ns,
        p99_ns: wakeups.p99_ns,
        max_ns: wakeups.max_ns,
        queued_ns: group.map_or(Dur(0), |group| group.wait_ns),
        behind: most.map(|pair| pair.culprit.clone()),
        behind_ns: most.map_or(Dur(0), |pair| pair.wait_ns),
    }
}

impl Observer<'_> {
    /// The latest commands, the one with the most time between its wakings and runs first.
    fn late_commands(&self) -> Vec<&LatencyRow> {
        let rows = self.found.latency.rows.iter().filter(|row| row.merged.is_none() && is_late(row));
        let mut rows: Vec<&LatencyRow> = rows.collect();
        rows.sort_by_key(|row| Reverse(row.of(Measure::Wakeup).total_ns));
        rows
    }

    /// Late wakeups of all judged tasks, or else of one command among many that are not late.
    pub(crate) fn late_wakeups(&self) -> Option<Observed> {
        if self.is_undelayed() {
            return None;
        }
        let late = self.late_commands();
        self.slow_wakeups(&late).or_else(|| self.late_command(&late))
    }

    fn slow_wakeups(&self, late: &[&LatencyRow]) -> Option<Observed> {
        let wakeups = self.found.latency.of(Measure::Wakeup);
        let waking = self.path.as_ref().and_then(|path| path.path.times.waking_ns);
        let is_slow = wakeups.count >= WAKEUPS && wakeups.p99_ns.is_some_and(|p99| p99 >= latency::LATE);
        let is_on_path = self.path.as_ref().zip(waking).is_some_and(|(path, ns)| path.percent(ns) >= PATH_PERCENT);
        if wakeups.count == 0 || !is_slow && !is_on_path {
            return None;
        }
        let observation = Observation::SlowWakeups {
            wakeups: wakeups.count,
            p50_ns: wakeups.p50_ns,
            p99_ns: wakeups.p99_ns,
            max_ns: wakeups.max_ns,
            waking_on_path_ns: waking,
            latest: late.first().map(|row| late_command_of(row, self.found)),
        };
        // A late wakeup whose task was queued all the while costs queued time.
        let cost = self.priced().and(waking).filter(|ns| self.is_told_on_path(*ns));
        Some((observation, cost, self.of_path()))
    }

    fn late_command(&self, late: &[&LatencyRow]) -> Option<Observed> {
        let all = self.found.latency.of(Measure::Wakeup);
        let observation = Observation::LateCommand {
            latest: late_command_of(late.first()?, self.found),
            further: late.len() - 1,
            all_wakeups: all.count,
            all_p50_ns: all.p50_ns,
        };
        Some((observation, None, self.certainty()))
    }
}

/// The sentence on late wakeups.
pub(crate) fn sentence(observation: &Observation, on_path: OnPath<'_>) -> String {
    match observation {
        Observation::SlowWakeups { wakeups, p50_ns, p99_ns, max_ns, waking_on_path_ns, latest } => {
            let way = waking_on_path_ns.and_then(|ns| on_path.told(ns));
            let way = way.map_or(String::new(), |time| {
                format!("; {time} of the critical path is the way from waking to run queue")
            });
            let latest = latest.as_ref().map_or(String::new(), |latest| match latest.wakeups == *wakeups {
                true => format!(", all of {}: {}{}", latest.command, latest.late_ones(), latest.culprit()),
                false => format!("; {} waited longest: {}{}", latest.command, latest.numbers(), latest.culprit()),
            });
            format!(
                "Woken tasks ran late: after {} (median), {} (99 %), {} (max), of {}{latest}{way}.",
                human(*p50_ns),
                human(*p99_ns),
                human(*max_ns),
                counted(*wakeups, "wakeup")
            )
        }
        Observation::LateCommand { latest, further, all_wakeups, all_p50_ns } => {
            let more = match further {
                0 => String::new(),
                1 => "; another command is late as well".to_owned(),
                more => format!("; {more} further commands are late as well"),
            };
            // Where these are most of all wakeups, the median of all is theirs.
            let is_slower = *all_wakeups > latest.wakeups && all_p50_ns < &latest.p50_ns;
            let others = match is_slower {
                true => format!(
                    ", while half of all {} took {} or less",
                    counted(*all_wakeups, "wakeup"),
                    human(*all_p50_ns)
                ),
                false => String::new(),
            };
            format!("{} ran late: {}{others}{}{more}.", latest.command, latest.numbers(), latest.culprit())
        }
        _ => String::new(),
    }
}
