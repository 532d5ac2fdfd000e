//! `schedviz list --runs --summary`: the runs of each task in a line, in the columns of `perf sched timehist --summary`.

use crate::runs::{TakesRuns, TaskRun, msec, taken};
use anyhow::Result;
use sched::limits::BoundedRows;
use sched::{Comm, Dur, Pid};
use session::Session;
use session::args::ChosenTasks;
use session::warnings;
use session::writer::Lines;
use std::cmp::Reverse;
use std::io::Write;

/// The heads of the columns: those of perf, and the sums of the columns of `list --runs`.
const HEADS: [&str; 4] = [
    "Runtime summary",
    "                          comm  parent   sched-in     run-time    min-run     avg-run     max-run  stddev  migrations    wait-time   sch-delay   max-delay",
    "                                          (count)       (msec)     (msec)      (msec)      (msec)       %                   (msec)      (msec)      (msec)",
    "---------------------------------------------------------------------------------------------------------------------------------------------------------",
];

/// A sum of times, some of which may not have been seen.
#[derive(Clone, Copy, Default)]
struct SeenSum {
    /// The sum of the times that were seen.
    total: Dur,
    /// The number of times that were seen.
    seen: u64,
    /// Whether a time was not seen, or only a part of one.
    is_least: bool,
}

impl SeenSum {
    fn add(&mut self, time: Option<Dur>) {
        self.is_least |= time.is_none();
        if let Some(time) = time {
            self.total = Dur(self.total.0.saturating_add(time.0));
            self.seen += 1;
        }
    }

    /// The sum, behind `>` if it may be longer; `-` if none of it was seen.
    fn text(self) -> String {
        if self.seen == 0 {
            return "-".into();
        }
        format!("{}{}", if self.is_least { ">" } else { "" }, msec(self.total))
    }
}

/// The runs of a task.
#[derive(Clone, Default)]
struct TaskSums {
    comm: Option<Comm>,
    parent: Option<Pid>,
    /// The number of runs.
    runs: u64,
    /// The sum of the lengths of the runs, as far as they were seen.
    run: SeenSum,
    /// The shortest and the longest of the runs that were seen from begin to end.
    whole: Option<(Dur, Dur)>,
    /// The sum of the runs that were seen from begin to end.
    whole_total: Dur,
    /// The number of the runs that were seen from begin to end, their mean, and the sum of squared distances from that (Welford's recurrence).
    spread: (u64, f64, f64),
    migrations: u64,
    wait: SeenSum,
    delay: SeenSum,
    max_delay: Option<Dur>,
}

impl TaskSums {
    fn add(&mut self, run: &TaskRun) {
        self.comm = Some(run.comm);
        self.parent = run.parent.or(self.parent);
        self.runs += 1;
        self.run.add(Some(run.length));
        self.run.is_least |= !run.is_whole;
        self.wait.add(run.wait);
        self.delay.add(run.delay);
        self.max_delay = self.max_delay.max(run.delay);
        if !run.is_whole {
            return;
        }
        let (least, most) = self.whole.unwrap_or((run.length, run.length));
        self.whole = Some((least.min(run.length), most.max(run.length)));
        self.whole_total = Dur(self.whole_total.0.saturating_add(run.length.0));
        let (number, mean, squares) = &mut self.spread;
        let length = run.length.0 as f64;
        *number += 1;
        let distance = length - *mean;
        *mean += distance / *number as f64;
        *squares += distance * (length - *mean);
    }

    /// The standard error of the mean length in percent of it, which perf calls stddev.
    fn error_percent(&self) -> Option<f64> {
        let (number, mean, squares) = self.spread;
        let n = number as f64;
        match number {
            0 => None,
            1 => Some(0.0),
            _ => (mean > 0.0).then(|| 100.0 * (squares / (n - 1.0) / n).sqrt() / mean),
        }
    }

    /// The mean length of whole runs, cut off behind the nanosecond.
    fn mean(&self) -> Option<Dur> {
        self.whole_total.0.checked_div(self.spread.0).map(Dur)
    }

    /// The line of a task, or of the tasks beyond the limit of rows.
    fn line(&self, pid: Option<Pid>, knows_migrations: bool) -> String {
        let name = match pid {
            Some(pid) => {
                let comm = sched::event::escape(self.comm.unwrap_or(Comm::EMPTY).as_bytes()).to_string();
                format!("{comm}[{}]", pid.0)
            }
            None => "further tasks".into(),
        };
        let time = |time: Option<Dur>| time.map_or_else(|| "-".into(), msec);
        let parent = self.parent.filter(|_| pid.is_some()).map_or_else(|| "-".into(), |parent| parent.0.to_string());
        let [min, mean, max] = [self.whole.map(|(least, _)| least), self.mean(), self.whole.map(|(_, most)| most)];
        let error = self.error_percent().map_or_else(|| "-".into(), |percent| format!("{percent:.2}"));
        let migrations = if knows_migrations { self.migrations.to_string() } else { "-".into() };
        format!(
            "{name:>30}  {parent:>6}  {:>9}  {:>11}  {:>9}  {:>10}  {:>10}  {error:>6}  {migrations:>10}  {:>11}  {:>10}  {:>10}",
            self.runs,
            self.run.text(),
            time(min),
            time(mean),
            time(max),
            self.wait.text(),
            self.delay.text(),
            time(self.max_delay),
        )
    }
}

/// Sums the runs by PID. `None` is the row of the tasks beyond the limit of rows.
#[derive(Default)]
struct Summed {
    rows: BoundedRows<Option<Pid>, TaskSums>,
}

impl TakesRuns for Summed {
    type Output = Vec<(Option<Pid>, TaskSums)>;

    fn begin(&mut self) {
        *self = Summed::default();
    }

    fn run(&mut self, run: &TaskRun) {
        self.rows.of(Some(run.pid), None).add(run);
    }

    fn migrated(&mut self, pid: Pid) {
        self.rows.of(Some(pid), None).migrations += 1;
    }

    /// Tasks without a run have no row. The longest run time comes first, the further tasks last.
    fn finish(self) -> Self::Output {
        let mut rows = self.rows.into_rows();
        rows.retain(|(_, sums)| sums.runs > 0);
        rows.sort_by_key(|(pid, sums)| (pid.is_none(), Reverse(sums.run.total), *pid));
        rows
    }
}

/// Writes the summary of the runs of these tasks in the window.
pub(crate) fn summarize(session: &Session, tasks: &ChosenTasks, mut out: Lines) -> Result<()> {
    let outcome = taken(session, tasks, Summed::default)?;
    let knows_migrations = session.knows_migrations(&outcome.diagnostics);
    HEADS.iter().try_for_each(|head| writeln!(out, "{head}"))?;
    for (pid, sums) in &outcome.output {
        writeln!(out, "{}", sums.line(*pid, knows_migrations))?;
    }
    let mut run = SeenSum::default();
    for (_, sums) in &outcome.output {
        run.add(Some(sums.run.total));
        run.is_least |= sums.run.is_least;
    }
    let further = outcome.output.last().is_some_and(|(pid, _)| pid.is_none());
    let runs: u64 = outcome.output.iter().map(|(_, sums)| sums.runs).sum();
    writeln!(out, "\n    Total number of unique tasks: {}{}", if further { ">" } else { "" }, outcome.output.len())?;
    writeln!(out, "            Total number of runs: {runs}")?;
    writeln!(out, "           Total run time (msec): {}", run.text())?;
    writeln!(out, "    Total scheduling time (msec): {}", msec(outcome.to.since(outcome.from)))?;
    out.finish()?;
    warnings::warn(&outcome.diagnostics, &session.read);
    Ok(())
}
