//! The report: as numbers.

use crate::ended::EndedJob;
use crate::period::{period, rank};
use crate::{Jobs, OpenJob, Options};
use membership::DeadlineParams;
use sched::kthread::is_kernel_thread;
use sched::{Comm, Cpu, Dur, OfSelection, Pid, SchedState, Ts};
use serde::Serialize;

/// The name and version of the document's schema.
pub(crate) const SCHEMA: &str = "schedviz/jobs/1";

/// The release of a job, its response time, and whether it missed its deadline.
pub(crate) type Response = (Ts, Dur, bool);

/// The origin of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DeadlineOrigin {
    /// The deadline was given on the command line.
    Given,
    /// The deadline is that of the task's scheduling parameters (`SCHED_DEADLINE`).
    Parameters,
    /// The deadline is the period that was found.
    Period,
}

/// Times of the jobs of a task. Percentiles are by the nearest rank, and exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobTimes {
    /// The mean in nanoseconds.
    pub mean_ns: Dur,
    /// The time that half of the jobs do not exceed, in nanoseconds.
    pub p50_ns: Dur,
    /// The time that 90 % of the jobs do not exceed, in nanoseconds.
    pub p90_ns: Dur,
    /// The time that 99 % of the jobs do not exceed, in nanoseconds.
    pub p99_ns: Dur,
    /// The greatest time in nanoseconds.
    pub max_ns: Dur,
}

/// The jobs of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobRow {
    /// The PID of the task.
    pub pid: Pid,
    /// The latest command name of the task.
    pub command: Comm,
    /// The number of jobs that ended in the window.
    pub jobs: u64,
    /// The number of these that were released before the window.
    pub earlier: u64,
    /// The number of jobs that an interrupt released, as the expiry of a timer does; null where `sched_waking` was not recorded.
    pub by_interrupts: Option<u64>,
    /// The number of jobs whose release is the programmed expiry of the task's timer; null where the timers of tasks were not recorded.
    pub by_expiries: Option<u64>,
    /// The interval between releases that a quarter of them do not exceed, in nanoseconds; null with one job.
    pub interval_p25_ns: Option<Dur>,
    /// The median of the intervals between releases in nanoseconds; null with one job.
    pub interval_p50_ns: Option<Dur>,
    /// The interval between releases that three quarters of them do not exceed, in nanoseconds; null with one job.
    pub interval_p75_ns: Option<Dur>,
    /// The period in nanoseconds: the interval at which timers release the task most often, or the median of even intervals; null if the task
    /// is not periodic, or a kernel thread.
    pub period_ns: Option<Dur>,
    /// The deadline of the latest job after its release in nanoseconds; null where none was given, no record shows the parameters of a deadline
    /// task, and the task is not periodic.
    pub deadline_ns: Option<Dur>,
    /// The origin of the deadline; null without one.
    pub deadline_by: Option<DeadlineOrigin>,
    /// The parameters of a deadline task at the release of the latest job; absent where no record shows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<DeadlineParams>,
    /// The number of jobs whose response time exceeds their deadline; null where no job has one.
    pub missed: Option<u64>,
    /// The response times.
    pub response: JobTimes,
    /// The times that the jobs ran.
    pub run: JobTimes,
    /// The times that the jobs waited in run queues.
    pub waited: JobTimes,
}

/// A task that ran on the CPU of a job while the job waited there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobCulprit {
    /// The PID of the task.
    pub pid: Pid,
    /// The command name of the task.
    pub command: Comm,
    /// The time that it ran while the job waited, in nanoseconds.
    pub time_ns: Dur,
}

/// One of the latest jobs, with what kept it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelayedJob {
    /// The PID of the task.
    pub pid: Pid,
    /// The command name of the task.
    pub command: Comm,
    /// The instant of the release from the start of the trace, in nanoseconds.
    pub release_in_trace_ns: u64,
    /// The CPU on which the job ended.
    pub cpu: Cpu,
    /// The response time in nanoseconds.
    pub response_ns: Dur,
    /// The deadline in nanoseconds.
    pub deadline_ns: Dur,
    /// Whether the job missed its deadline.
    pub is_missed: bool,
    /// The time from the programmed expiry of the task's timer to the waking, in nanoseconds; null where no record shows the expiry, and
    /// the release is the waking.
    pub after_timer_ns: Option<Dur>,
    /// The time from the waking to the run queue, in nanoseconds.
    pub until_queued_ns: Dur,
    /// The time in run queues in nanoseconds.
    pub waited_ns: Dur,
    /// The time throttled in nanoseconds.
    pub throttled_ns: Dur,
    /// The time that the job ran in nanoseconds.
    pub run_ns: Dur,
    /// The number of times that the task was switched out within the job, without a sleep.
    pub preemptions: u64,
    /// The tasks that ran on its CPU while it waited, the longest first; at most eight.
    pub culprits: Vec<JobCulprit>,
}

/// The jobs that ended in a window.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobsReport {
    /// The name and version of the schema, `schedviz/jobs/1`.
    pub schema: &'static str,
    /// The start of the window, in nanoseconds of the trace's clock.
    pub from_ns: Ts,
    /// The end of the window, in nanoseconds of the trace's clock.
    pub to_ns: Ts,
    /// The reason why there are no figures: the selected tasks are unknown, none is in the window, or no event of
    /// wakeups was recorded; absent if there are figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection_unknown: Option<String>,
    /// The number of jobs that ended in the window.
    pub jobs: Option<u64>,
    /// The number of jobs that had not ended at the end of the window.
    pub open: Option<u64>,
    /// The number of jobs that a loss cut, or that ended with their tasks.
    pub cut: Option<u64>,
    /// The number of jobs that ended and are in no row, since there are more than this program keeps.
    pub beyond_limit: Option<u64>,
    /// The number of jobs whose release is the programmed expiry of the task's timer; null where the timers of tasks were not recorded.
    pub by_expiries: Option<u64>,
    /// The number of periodic tasks; null where none was found, and `sched_waking`, which shows what timers release, was not recorded.
    pub periodic: Option<u64>,
    /// The number of jobs that have a deadline; null where there is none, and `periodic` is null.
    pub judged: Option<u64>,
    /// The number of jobs that missed their deadlines; null where no job has one.
    pub missed: Option<u64>,
    /// The tasks: those with the most missed deadlines first, then those with the most jobs.
    pub tasks: Vec<JobRow>,
    /// The jobs that exceed their deadlines by the most, or come closest to them.
    pub worst: Vec<DelayedJob>,
    /// The releases and the response times of the jobs by the place of their row, for the figure.
    #[serde(skip)]
    pub(crate) points: Vec<Vec<Response>>,
    /// The instant from which times in the trace count.
    #[serde(skip)]
    pub(crate) zero: Ts,
}

impl OfSelection for JobsReport {
    fn withhold(&mut self, why: String) {
        let JobsReport { schema, from_ns, to_ns, zero, .. } = *self;
        *self = JobsReport {
            schema,
            from_ns,
            to_ns,
            selection_unknown: Some(why),
            jobs: None,
            open: None,
            cut: None,
            beyond_limit: None,
            by_expiries: None,
            periodic: None,
            judged: None,
            missed: None,
            tasks: Vec::new(),
            worst: Vec::new(),
            points: Vec::new(),
            zero,
        };
    }
}

impl JobTimes {
    fn of(times: impl Iterator<Item = Dur>) -> JobTimes {
        let mut sorted: Vec<u64> = times.map(|time| time.0).collect();
        sorted.sort_unstable();
        let sum: u128 = sorted.iter().map(|time| u128::from(*time)).sum();
        let of = |many, of| rank(&sorted, many, of).map(Dur).unwrap_or_default();
        let mean = sum.checked_div(sorted.len() as u128).unwrap_or(0);
        JobTimes {
            mean_ns: Dur(u64::try_from(mean).unwrap_or(u64::MAX)),
            p50_ns: of(1, 2),
            p90_ns: of(9, 10),
            p99_ns: of(99, 100),
            max_ns: of(1, 1),
        }
    }
}

pub(crate) fn build(jobs: Jobs<'_>, end: Ts, state: &SchedState) -> JobsReport {
    let options = jobs.options;
    let open = jobs.open(state);
    let rows = jobs.rows.into_rows();
    let mut judged = 0;
    let mut all: Vec<(JobRow, Vec<DelayedJob>, Vec<Response>)> = Vec::new();
    for (pid, sums) in rows {
        let ended: Vec<EndedJob> = sums.jobs.iter().collect();
        // The tasks beyond the number of rows have no period together.
        let (pid, command) = match pid {
            Some(pid) => (pid, sums.comm),
            None => (Pid::IDLE, Comm::new(b"(others)")),
        };
        let deadlines = Deadlines::of(pid, command, &ended, options);
        let mut row = row(pid, command, sums.earlier, &ended, &deadlines);
        row.by_interrupts = row.by_interrupts.filter(|_| state.has_wakings());
        row.by_expiries = row.by_expiries.filter(|_| options.expiries.is_some());
        let delayed = sums.worst.into_iter().filter_map(|worst| {
            let deadline = deadlines.at(worst.0.release)?;
            Some(delayed(pid, command, worst, deadline, options.zero))
        });
        judged += ended.iter().filter(|job| deadlines.at(job.release).is_some()).count() as u64;
        let drawn: &[EndedJob] = if options.draws && row.deadline_ns.is_some() { &ended } else { &[] };
        let points = drawn.iter().map(|job| (job.release, job.response, deadlines.is_missed(job))).collect();
        all.push((row, delayed.collect(), points));
    }
    all.sort_by_key(|(row, ..)| std::cmp::Reverse((row.missed, row.period_ns.is_some(), row.jobs)));
    let mut worst: Vec<DelayedJob> = Vec::new();
    let (mut tasks, mut points) = (Vec::new(), Vec::new());
    for (row, delayed, of_row) in all {
        worst.extend(delayed);
        tasks.push(row);
        points.push(of_row);
    }
    let lateness = |job: &DelayedJob| i128::from(job.response_ns.0) - i128::from(job.deadline_ns.0);
    worst.sort_by_key(|job| (std::cmp::Reverse(lateness(job)), job.release_in_trace_ns, job.pid));
    worst.truncate(options.worst);
    let periodic = tasks.iter().filter(|row: &&JobRow| row.period_ns.is_some()).count() as u64;
    let is_known = |number: &u64| *number > 0 || state.has_wakings();
    JobsReport {
        schema: SCHEMA,
        from_ns: jobs.start.unwrap_or(end),
        to_ns: end,
        selection_unknown: None,
        jobs: Some(jobs.jobs as u64 + jobs.beyond_limit),
        open: Some(open),
        cut: Some(jobs.cut),
        beyond_limit: Some(jobs.beyond_limit),
        by_expiries: options.expiries.as_ref().map(|_| tasks.iter().filter_map(|row| row.by_expiries).sum()),
        periodic: Some(periodic).filter(is_known),
        judged: Some(judged).filter(is_known),
        missed: (judged > 0).then(|| tasks.iter().filter_map(|row| row.missed).sum()),
        tasks,
        worst,
        points,
        zero: options.zero,
    }
}

/// The deadlines of the jobs of a task.
struct Deadlines<'o> {
    pid: Pid,
    given: Option<Dur>,
    options: &'o Options<'o>,
    /// The quartiles of the intervals between releases.
    quartiles: [Option<Dur>; 3],
    period: Option<Dur>,
}

impl<'o> Deadlines<'o> {
    fn of(pid: Pid, command: Comm, jobs: &[EndedJob], options: &'o Options<'o>) -> Deadlines<'o> {
        let releases = jobs.windows(2).map(|pair| pair[1].release.since(pair[0].release).0);
        let mut intervals: Vec<u64> = releases.collect();
        intervals.sort_unstable();
        let quartiles = [1, 2, 3].map(|quarters| rank(&intervals, quarters, 4).map(Dur));
        // The timers of kernel threads, as of kcompactd and kworker, are timeouts: a late one misses nothing.
        let can_be_periodic = !pid.is_idle() && !is_kernel_thread(command);
        let given = options.deadline.filter(|_| !pid.is_idle());
        let period = if can_be_periodic { period(jobs) } else { None };
        Deadlines { pid, given, options, quartiles, period }
    }

    /// The parameters of a deadline task at an instant.
    fn parameters(&self, at: Ts) -> Option<DeadlineParams> {
        self.options.deadlines.as_ref()?.deadline_params(self.pid, at)
    }

    /// The deadline of a job with this release.
    fn at(&self, release: Ts) -> Option<Dur> {
        self.given.or_else(|| Some(self.parameters(release)?.deadline_ns)).or(self.period)
    }

    fn is_missed(&self, job: &EndedJob) -> bool {
        self.at(job.release).is_some_and(|deadline| job.response > deadline)
    }
}

fn row(pid: Pid, command: Comm, earlier: u64, jobs: &[EndedJob], deadlines: &Deadlines<'_>) -> JobRow {
    let [low, median, high] = deadlines.quartiles;
    let latest = jobs.last().map(|job| job.release);
    let (parameters, deadline) =
        (latest.and_then(|at| deadlines.parameters(at)), latest.and_then(|at| deadlines.at(at)));
    let origin = match (deadlines.given, parameters) {
        (Some(_), _) => DeadlineOrigin::Given,
        (None, Some(_)) => DeadlineOrigin::Parameters,
        (None, None) => DeadlineOrigin::Period,
    };
    let has_any = deadline.is_some() || jobs.iter().any(|job| deadlines.at(job.release).is_some());
    JobRow {
        pid,
        command,
        jobs: jobs.len() as u64,
        earlier,
        by_interrupts: Some(jobs.iter().filter(|job| job.by_interrupt).count() as u64),
        by_expiries: Some(jobs.iter().filter(|job| job.by_expiry).count() as u64),
        interval_p25_ns: low,
        interval_p50_ns: median,
        interval_p75_ns: high,
        period_ns: deadlines.period,
        deadline_ns: deadline,
        deadline_by: deadline.map(|_| origin),
        parameters,
        missed: has_any.then(|| jobs.iter().filter(|job| deadlines.is_missed(job)).count() as u64),
        response: JobTimes::of(jobs.iter().map(|job| job.response)),
        run: JobTimes::of(jobs.iter().map(|job| job.run)),
        waited: JobTimes::of(jobs.iter().map(|job| job.waited)),
    }
}

fn delayed(pid: Pid, command: Comm, (job, end, cpu): (OpenJob, Ts, Cpu), deadline: Dur, zero: Ts) -> DelayedJob {
    let response = end.since(job.release);
    let culprit = |(pid, command, time_ns): (Pid, Comm, Dur)| JobCulprit { pid, command, time_ns };
    let mut culprits: Vec<JobCulprit> = job.culprits.into_iter().map(culprit).collect();
    culprits.sort_by_key(|culprit| (std::cmp::Reverse(culprit.time_ns), culprit.pid));
    DelayedJob {
        pid,
        command,
        release_in_trace_ns: job.release.since(zero).0,
        cpu,
        response_ns: response,
        deadline_ns: deadline,
        is_missed: response > deadline,
        after_timer_ns: job.after_timer,
        until_queued_ns: job.until_queued,
        waited_ns: job.waited,
        throttled_ns: job.throttled,
        run_ns: job.run,
        preemptions: job.preemptions,
        culprits,
    }
}
