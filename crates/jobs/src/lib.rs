//! The jobs of tasks: the work from each wakeup to the next sleep, with its response time, and the deadlines that are missed
//! (`docs/questions/jobs.md`).
//!
//! In goes a trace, out come the periods, response times and missed deadlines of its tasks, and for the longest jobs what kept
//! them. A task that timers wake at multiples of one interval, or that is woken at even intervals, is periodic; its period is its
//! deadline unless one is given or recorded. Begin reading in `period.rs`, then below in this file.
//!
//! ```
//! use jobs::{Jobs, Options};
//! use sched::Pass;
//!
//! // Task 8 is woken, waits for 200 ns, runs for as long, and sleeps: one job.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options::default();
//! let outcome = Pass::over(events.as_slice()).run(|| Jobs::new(&options)).unwrap_or_else(|never| match never {});
//! assert_eq!((outcome.output.jobs, outcome.output.open), (Some(1), Some(0)));
//! ```

mod args;
mod ended;
mod figure;
mod joined;
mod noted;
mod period;
mod question;
mod report;
mod table;
mod text;

pub use args::JobsArgs;
pub use figure::figure;
pub use noted::JobsNotes;
pub use question::JobsQuestion;
pub use report::{DeadlineOrigin, DelayedJob, JobCulprit, JobRow, JobTimes, JobsReport};
pub use text::text;

use ended::{EndedJob, EndedJobs};
use joined::{EndedStretch, JobPart, JobStep};
use membership::ParamsHistory;
use sched::limits::BoundedRows;
use sched::state::Task;
use sched::{
    Analysis, Chosen, ChosenCpus, Comm, Cpu, Current, Dur, EventKind, Past, PerTask, Pid, SchedEvent, SchedState, Span,
    StepLog, TaskState, Ts,
};
use session::timers::TimerExpiries;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of jobs that are kept. Further ones are counted, and are in no row.
pub const JOBS: usize = 1 << 20;

/// The number of the longest jobs of each task that have what kept them.
const WORST_OF_TASK: usize = 3;

/// Maximum number of tasks that are kept as the causes of the delay of a job; the time of further ones is in no cause.
const CULPRITS: usize = 8;

/// Maximum number of the latest stretches of a CPU in which the tasks are looked up that ran while another one waited.
const STRETCHES: usize = 256;

/// The tasks, the CPUs and the deadline of a measurement.
#[derive(Default)]
pub struct Options<'o> {
    /// The CPUs on which counted jobs end.
    pub cpus: ChosenCpus,
    /// The tasks that are counted; absent where all are.
    pub tasks: Option<&'o Chosen<'o>>,
    /// The deadline of each job, from its release on; absent where the period of a periodic task is its deadline.
    pub deadline: Option<Dur>,
    /// The parameters of deadline tasks, whose deadlines count before periods; absent where no record shows them.
    pub deadlines: Option<Arc<ParamsHistory>>,
    /// The programmed expiries of the timers that wake tasks, which release their jobs; absent where the trace does not show them.
    pub expiries: Option<TimerExpiries>,
    /// The maximum number of late jobs that are listed.
    pub worst: usize,
    /// Whether the report keeps the jobs of tasks with deadlines for a figure.
    pub draws: bool,
    /// The instant that counts as zero: the trace's start.
    pub zero: Ts,
}

/// A job that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OpenJob {
    /// The programmed expiry of the timer, the waking that released the job, or the wakeup where wakings were not recorded.
    release: Ts,
    /// Whether an interrupt released the job, as the expiry of a timer does.
    by_interrupt: bool,
    /// The time from the programmed expiry of the timer to the waking; absent where no record shows the expiry.
    after_timer: Option<Dur>,
    /// The time from the waking to the run queue.
    until_queued: Dur,
    run: Dur,
    waited: Dur,
    throttled: Dur,
    /// The number of times that the task was switched out within the job.
    preemptions: u64,
    /// The tasks that ran on its CPU while it waited, with the time of each.
    culprits: Vec<(Pid, Comm, Dur)>,
}

impl OpenJob {
    /// A job whose task is released, and joins a run queue then or later.
    fn released(release: Ts, queued: Ts) -> OpenJob {
        OpenJob {
            release,
            by_interrupt: false,
            after_timer: None,
            until_queued: queued.since(release),
            run: Dur(0),
            waited: Dur(0),
            throttled: Dur(0),
            preemptions: 0,
            culprits: Vec::new(),
        }
    }
}

/// The sums of a task.
#[derive(Clone, Debug, Default)]
struct JobSums {
    /// The latest name.
    comm: Comm,
    jobs: EndedJobs,
    /// The jobs that began before the window.
    earlier: u64,
    /// The longest jobs, the longest first, each with its end and its CPU.
    worst: Vec<(OpenJob, Ts, Cpu)>,
}

/// A stretch in which a CPU had one task.
type CpuStretch = (Ts, Ts, Pid, Comm);

/// The analysis of jobs: an [`Analysis`] whose output is a [`JobsReport`].
pub struct Jobs<'o> {
    options: &'o Options<'o>,
    /// The window's start, once that is reached.
    start: Option<Ts>,
    open: PerTask<OpenJob>,
    /// The tasks whose latest waking is by an interrupt, and releases no job yet, each with the programmed expiry of the timer, where it is known.
    by_interrupt: PerTask<Option<Ts>>,
    /// The latest stretches of each CPU, the oldest first.
    stretches: Vec<VecDeque<CpuStretch>>,
    /// The rows by PID; absent is the key of the tasks beyond their number.
    rows: BoundedRows<Option<Pid>, JobSums>,
    /// The number of jobs in rows.
    jobs: usize,
    /// The jobs beyond [`JOBS`].
    beyond_limit: u64,
    /// The jobs that a loss cut, or whose task ended.
    cut: u64,
    /// The steps of a later piece of a pass, for the pieces before.
    log: StepLog<JobStep>,
}

impl<'o> Jobs<'o> {
    /// Returns the analysis with the options of a measurement.
    pub fn new(options: &'o Options<'o>) -> Jobs<'o> {
        Jobs {
            options,
            start: None,
            open: PerTask::default(),
            by_interrupt: PerTask::default(),
            stretches: Vec::new(),
            rows: BoundedRows::default(),
            jobs: 0,
            beyond_limit: 0,
            cut: 0,
            log: StepLog::default(),
        }
    }

    /// Takes an event that was applied to `state`.
    fn take(&mut self, event: &SchedEvent, state: &SchedState) {
        for span in state.cpu_spans() {
            let Current::Task(pid) = span.current else { continue };
            self.step(JobStep::Ran(span.cpu, (span.start, span.end, pid, span.comm)));
        }
        if let EventKind::Waking { task, .. } = event.kind
            && let Some(task) = state.task_of(task.pid)
        {
            let expiries = self.options.expiries.as_ref();
            let programmed = || expiries.and_then(|of| of.of_waking(event.ts, event.cpu, task.pid));
            self.step(JobStep::Woken(task.id(), is_by_interrupt(event, state).then(programmed)));
        }
        for (task, span) in state.turns() {
            self.turn(task, span, event, state);
        }
    }

    /// A task goes from one state to another.
    fn turn(&mut self, task: &Task, span: &Span, event: &SchedEvent, state: &SchedState) {
        use TaskState::{Asleep, Throttled, Waiting};
        match (span.state, span.next) {
            (Asleep(_), Waiting(_) | Throttled(_)) if is_woken(task, event, state) => {
                let queued = state.now();
                let release = task.waking.map_or(queued, |waking| waking.at.max(span.start)).min(queued);
                let (task, has_waking) = (task.id(), task.waking.is_some());
                return self.step(JobStep::Released { task, release, queued, has_waking });
            }
            (Asleep(_), Asleep(_)) => return,
            _ => {}
        }
        // A later piece of a pass does not know which jobs go on.
        if !self.log.keeps() && self.open.get(task.id()).is_none() {
            return;
        }
        let part = part_of(span, event.ts);
        let is_counted = matches!(part, JobPart::Ended(..) | JobPart::Cut) && self.is_counted(task, span.state, state);
        let Span { start, end, .. } = *span;
        self.step(JobStep::Turned(EndedStretch {
            task: task.id(),
            pid: task.pid,
            comm: task.comm,
            part,
            start,
            end,
            is_counted,
        }));
    }

    /// Follows a step, or notes it in a later piece of a pass.
    fn step(&mut self, step: JobStep) {
        if let Some(step) = self.log.at_once(step) {
            self.take_step(step);
        }
    }

    fn take_step(&mut self, step: JobStep) {
        match step {
            JobStep::Ran(cpu, stretch) => {
                if cpu.index() >= self.stretches.len() {
                    self.stretches.resize_with(cpu.index() + 1, VecDeque::new);
                }
                let stretches = &mut self.stretches[cpu.index()];
                if stretches.len() >= STRETCHES {
                    stretches.pop_front();
                }
                stretches.push_back(stretch);
            }
            JobStep::Woken(task, Some(programmed)) => self.by_interrupt.insert(task, programmed),
            JobStep::Woken(task, None) => drop(self.by_interrupt.take(task)),
            JobStep::Released { task, release, queued, has_waking } => {
                let by_interrupt = self.by_interrupt.take(task).filter(|_| has_waking);
                let mut job = OpenJob::released(release, queued);
                job.by_interrupt = by_interrupt.is_some();
                if let Some(programmed) = by_interrupt.flatten().filter(|programmed| *programmed <= release) {
                    job.after_timer = Some(release.since(programmed));
                    job.release = programmed;
                }
                self.open.insert(task, job);
            }
            JobStep::Turned(turn) => self.turned(turn),
        }
    }

    /// A stretch of a task has ended: it is a part of its job, if one goes on.
    fn turned(&mut self, turn: EndedStretch) {
        let Some(mut job) = self.open.take(turn.task) else { return };
        let length = turn.end.since(turn.start);
        match turn.part {
            JobPart::Waited(cpu) => {
                job.waited += length;
                self.blame(&mut job, cpu, &turn);
            }
            JobPart::Throttled => job.throttled += length,
            JobPart::Ran => job.run += length,
            JobPart::Preempted => {
                job.run += length;
                job.preemptions += 1;
            }
            JobPart::Ended(cpu, now) => {
                job.run += length;
                return self.end(&turn, job, (cpu, now));
            }
            JobPart::Cut => return self.cut += u64::from(self.start.is_some() && turn.is_counted),
        }
        self.open.insert(turn.task, job);
    }

    /// The number of jobs that go on, of those that would count if they ended where their tasks are.
    fn open(&self, state: &SchedState) -> u64 {
        let task = |(id, _)| state.task(id);
        self.open.iter().filter_map(task).filter(|task| self.is_counted(task, task.state, state)).count() as u64
    }

    /// Whether the job of a task that ends in this state counts.
    fn is_counted(&self, task: &Task, last: TaskState, state: &SchedState) -> bool {
        use TaskState::{Running, Throttled, Waiting};
        let (Running(cpu) | Waiting(cpu) | Throttled(cpu)) = last else { return false };
        self.options.cpus.has(cpu) && self.options.tasks.is_none_or(|chosen| chosen(task, state))
    }

    /// Adds the tasks that ran on a CPU while the job waited there.
    fn blame(&self, job: &mut OpenJob, cpu: Cpu, turn: &EndedStretch) {
        let Some(stretches) = self.stretches.get(cpu.index()) else { return };
        for (start, end, pid, comm) in stretches.iter().rev() {
            if *end <= turn.start {
                break;
            }
            let both = end.min(&turn.end).since(*start.max(&turn.start));
            if both == Dur(0) || *pid == turn.pid {
                continue;
            }
            let place = job.culprits.iter().position(|(other, name, _)| (other, name) == (pid, comm));
            match place {
                Some(place) => job.culprits[place].2 += both,
                None if job.culprits.len() < CULPRITS => job.culprits.push((*pid, *comm, both)),
                None => {}
            }
        }
    }

    /// A task sleeps: its job has ended.
    fn end(&mut self, turn: &EndedStretch, job: OpenJob, (cpu, now): (Cpu, Ts)) {
        let Some(start) = self.start.filter(|_| turn.is_counted) else { return };
        if self.jobs >= JOBS {
            self.beyond_limit += 1;
            return;
        }
        let place = self.rows.place(Some(turn.pid), None);
        let OpenJob { release, by_interrupt, run, waited, .. } = job;
        let by_expiry = job.after_timer.is_some();
        let response = now.since(release);
        self.jobs += 1;
        let sums = self.rows.at(place);
        sums.comm = turn.comm;
        sums.jobs.push(EndedJob { release, by_interrupt, by_expiry, response, run, waited });
        sums.earlier += u64::from(release < start);
        let length = |worst: &(OpenJob, Ts, Cpu)| worst.1.since(worst.0.release);
        let at = sums.worst.partition_point(|worst| length(worst) >= response);
        if at < WORST_OF_TASK {
            sums.worst.insert(at, (job, now, cpu));
            sums.worst.truncate(WORST_OF_TASK);
        }
    }
}

/// The part of its task's job that a stretch is, which ends now.
fn part_of(span: &Span, now: Ts) -> JobPart {
    use TaskState::{Asleep, Running, Throttled, Waiting};
    match (span.state, span.next) {
        // A loss hides what the task did.
        _ if !span.ended && !matches!(span.state, Waiting(_)) => JobPart::Cut,
        (Waiting(cpu), Running(_) | Waiting(_) | Throttled(_)) if span.ended => JobPart::Waited(cpu),
        (Throttled(_), Running(_) | Waiting(_) | Throttled(_)) => JobPart::Throttled,
        (Running(_), Running(_)) => JobPart::Ran,
        (Running(_), Waiting(_) | Throttled(_)) => JobPart::Preempted,
        (Running(cpu), Asleep(_)) => JobPart::Ended(cpu, now),
        _ => JobPart::Cut,
    }
}

/// Whether the event wakes the task.
fn is_woken(task: &Task, event: &SchedEvent, state: &SchedState) -> bool {
    matches!(event.kind, EventKind::Wakeup { .. }) || (state.places_by_wakings() && task.waking.is_some())
}

/// Whether an interrupt emitted a waking, or on a kernel with PREEMPT_RT the thread that runs the functions of timers.
fn is_by_interrupt(event: &SchedEvent, state: &SchedState) -> bool {
    let is_timer_thread =
        |task: &Task| [&b"ktimers/"[..], b"ktimersoftd/"].iter().any(|name| task.comm.as_bytes().starts_with(name));
    event.pid.is_idle() || event.in_hard_interrupt() || state.running(event.cpu).is_some_and(is_timer_thread)
}

impl Analysis for Jobs<'_> {
    type Output = JobsReport;
    /// A job that begins before the window can end in it.
    const LOOKS_BACK: bool = true;

    fn recall(&mut self, past: &Past, state: &SchedState) {
        noted::take_up(self, past, state);
    }

    fn begin(&mut self, start: Ts, _: &SchedState) {
        self.start = Some(start);
    }

    fn follow(&mut self, event: &SchedEvent, state: &SchedState) {
        self.take(event, state);
    }

    fn finish(self, end: Ts, state: &SchedState) -> JobsReport {
        report::build(self, end, state)
    }
}

#[cfg(test)]
mod period_tests;
#[cfg(test)]
mod tests;
