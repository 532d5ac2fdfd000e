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
use membership::ParamsHistory;
use sched::limits::BoundedRows;
use sched::state::Task;
use sched::{
    Analysis, Chosen, ChosenCpus, Comm, Cpu, Current, Dur, EventKind, Joined, Past, PerTask, Pid, SchedEvent,
    SchedState, Span, TaskState, Ts,
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
}

/// Jobs go from one piece of a pass into the next: the analysis is not divisible.
impl Joined for Jobs<'_> {}

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
        }
    }

    fn take(&mut self, event: &SchedEvent, state: &SchedState) {
        for span in state.cpu_spans() {
            let Current::Task(pid) = span.current else { continue };
            let place = span.cpu.index();
            if place >= self.stretches.len() {
                self.stretches.resize_with(place + 1, VecDeque::new);
            }
            let stretches = &mut self.stretches[place];
            if stretches.len() >= STRETCHES {
                stretches.pop_front();
            }
            stretches.push_back((span.start, span.end, pid, span.comm));
        }
        if let EventKind::Waking { task, .. } = event.kind
            && let Some(task) = state.task_of(task.pid)
        {
            match is_by_interrupt(event, state) {
                true => {
                    let expiries = self.options.expiries.as_ref();
                    let programmed = expiries.and_then(|of| of.of_waking(event.ts, event.cpu, task.pid));
                    self.by_interrupt.insert(task.id(), programmed);
                }
                false => drop(self.by_interrupt.take(task.id())),
            }
        }
        for (task, span) in state.turns() {
            self.turn(task, span, event, state);
        }
    }

    /// A task goes from one state to another.
    fn turn(&mut self, task: &Task, span: &Span, event: &SchedEvent, state: &SchedState) {
        use TaskState::{Asleep, Running, Throttled, Waiting};
        match (span.state, span.next) {
            (Asleep(_), Waiting(_) | Throttled(_)) if is_woken(task, event, state) => {
                let by_interrupt = self.by_interrupt.take(task.id()).filter(|_| task.waking.is_some());
                let mut job = OpenJob { by_interrupt: by_interrupt.is_some(), ..release(task, span, state) };
                if let Some(programmed) = by_interrupt.flatten().filter(|programmed| *programmed <= job.release) {
                    job.after_timer = Some(job.release.since(programmed));
                    job.release = programmed;
                }
                self.open.insert(task.id(), job);
                return;
            }
            (Asleep(_), Asleep(_)) => return,
            _ => {}
        }
        let Some(mut job) = self.open.take(task.id()) else { return };
        let length = span.duration();
        match (span.state, span.next) {
            // A loss hides what the task did.
            _ if !span.ended && !matches!(span.state, Waiting(_)) => return self.drop_job(task, span.state, state),
            (Waiting(cpu), Running(_) | Waiting(_) | Throttled(_)) if span.ended => {
                job.waited += length;
                self.blame(&mut job, cpu, span);
            }
            (Throttled(_), Running(_) | Waiting(_) | Throttled(_)) => job.throttled += length,
            (Running(_), Running(_)) => job.run += length,
            (Running(_), Waiting(_) | Throttled(_)) => {
                job.run += length;
                job.preemptions += 1;
            }
            (Running(cpu), Asleep(_)) => {
                job.run += length;
                return self.end(task, job, cpu, event.ts, state);
            }
            _ => return self.drop_job(task, span.state, state),
        }
        self.open.insert(task.id(), job);
    }

    /// The job of a task that was in the state `last` is not seen to end.
    fn drop_job(&mut self, task: &Task, last: TaskState, state: &SchedState) {
        self.cut += u64::from(self.start.is_some() && self.is_counted(task, last, state));
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
    fn blame(&self, job: &mut OpenJob, cpu: Cpu, span: &Span) {
        let Some(stretches) = self.stretches.get(cpu.index()) else { return };
        for (start, end, pid, comm) in stretches.iter().rev() {
            if *end <= span.start {
                break;
            }
            let both = end.min(&span.end).since(*start.max(&span.start));
            if both == Dur(0) || *pid == span.pid {
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
    fn end(&mut self, task: &Task, job: OpenJob, cpu: Cpu, now: Ts, state: &SchedState) {
        let is_counted = self.is_counted(task, TaskState::Running(cpu), state);
        let Some(start) = self.start.filter(|_| is_counted) else { return };
        if self.jobs >= JOBS {
            self.beyond_limit += 1;
            return;
        }
        let place = self.rows.place(Some(task.pid), None);
        let OpenJob { release, by_interrupt, run, waited, .. } = job;
        let by_expiry = job.after_timer.is_some();
        let response = now.since(release);
        self.jobs += 1;
        let sums = self.rows.at(place);
        sums.comm = task.comm;
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

/// The job that a wakeup releases.
fn release(task: &Task, span: &Span, state: &SchedState) -> OpenJob {
    let queued = state.now();
    let release = task.waking.map_or(queued, |waking| waking.at.max(span.start)).min(queued);
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
