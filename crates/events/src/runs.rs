//! `schedviz list --runs`: the runs of tasks, a line for each, in the columns of `perf sched timehist --state`.

use anyhow::Result;
use sched::{
    Analysis, ChosenCpus, Comm, Cpu, Dur, EventKind, Outcome, Pass, PerTask, Pid, PrevState, SchedEvent, SchedState,
    Span, StateClass, TaskState, Ts,
};
use session::Session;
use session::args::ChosenTasks;
use session::warnings;
use session::writer::Lines;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};

/// The heads of the columns.
const HEADS: [&str; 3] = [
    "           time    cpu  task name                       wait time  sch delay   run time  state",
    "                        [pid]                              (msec)     (msec)     (msec)",
    "--------------- ------  ------------------------------  ---------  ---------  ---------  -----",
];

/// The time of a task off the CPU, since its last run.
#[derive(Clone, Copy)]
struct OffCpu {
    /// The time off the CPU; `None` where the last run, or anything since, was not seen.
    total: Option<Dur>,
    /// The part of it on run queues, since the task was last unknown; `None` where a part was not seen.
    queued: Option<Dur>,
    /// Whether its last span was on a run queue: a task that is switched in otherwise was queued unseen.
    was_queued: bool,
}

impl OffCpu {
    /// A task that is first seen.
    const UNSEEN: OffCpu = OffCpu { total: None, queued: Some(Dur(0)), was_queued: false };

    /// Adds a span that is no run.
    fn add(&mut self, span: &Span) {
        let is_queued = matches!(span.state, TaskState::Waiting(_) | TaskState::Throttled(_));
        let is_unknown = span.state == TaskState::Unknown;
        let seen = span.begun && span.ended && !is_unknown;
        let plus = |sum: Option<Dur>| sum.filter(|_| seen).map(|sum| Dur(sum.0.saturating_add(span.duration().0)));
        self.total = plus(self.total);
        if is_queued {
            self.queued = plus(self.queued);
        } else if is_unknown {
            // A wait that is seen to begin later is the last one, whatever came before.
            self.queued = Some(Dur(0));
        }
        self.was_queued = is_queued;
    }
}

/// A run of a task, as its line has it.
pub(crate) struct TaskRun {
    /// The PID of the task.
    pub(crate) pid: Pid,
    /// The command name at the end of the run.
    pub(crate) comm: Comm,
    /// The PID of the task that forked this one, if the fork was recorded.
    pub(crate) parent: Option<Pid>,
    /// The CPU of the run.
    pub(crate) cpu: Cpu,
    /// The end of the run.
    pub(crate) end: Ts,
    /// The length of the part of the run that was seen, in nanoseconds.
    pub(crate) length: Dur,
    /// Whether both the beginning and the end of the run were seen.
    pub(crate) is_whole: bool,
    /// The time off the CPU before the run; `None` if a part was not seen.
    pub(crate) wait: Option<Dur>,
    /// The part of that time on run queues; `None` if a part was not seen.
    pub(crate) delay: Option<Dur>,
    /// The state in which the task left the CPU, if that was seen.
    pub(crate) state: Option<PrevState>,
}

/// A receiver of the runs of a window.
pub(crate) trait TakesRuns {
    /// The result of all runs that were taken.
    type Output;

    /// Forgets all runs: a pass begins, perhaps again.
    fn begin(&mut self);

    /// Takes a run.
    fn run(&mut self, run: &TaskRun);

    /// Takes a migration of a task, one of the chosen.
    fn migrated(&mut self, _: Pid) {}

    /// Returns what came out, at the end of the pass.
    fn finish(self) -> Self::Output;
}

/// Finds the runs of the chosen tasks on the chosen CPUs.
struct RunFinder<'o, T> {
    takes: T,
    cpus: &'o ChosenCpus,
    tasks: &'o ChosenTasks,
    off: PerTask<OffCpu>,
    /// The task that the event switches out, and its state then.
    switch: Option<(Pid, PrevState)>,
}

impl<T: TakesRuns> Analysis for RunFinder<'_, T> {
    type Output = T::Output;

    fn begin(&mut self, _: Ts, _: &SchedState) {
        self.takes.begin();
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        self.switch = match event.kind {
            EventKind::Switch { prev, state, .. } => Some((prev.pid, state)),
            _ => None,
        };
        if let EventKind::Migrate { task, .. } = event.kind
            && self.tasks.takes(task.pid, event.ts, || state.task_of(task.pid).map_or(task.comm, |task| task.comm))
        {
            self.takes.migrated(task.pid);
        }
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        let off = self.off.get(span.task).copied().unwrap_or(OffCpu::UNSEEN);
        let TaskState::Running(cpu) = span.state else {
            let mut off = off;
            off.add(span);
            self.off.insert(span.task, off);
            return;
        };
        let task = state.task(span.task);
        let comm = task.map_or(Comm::EMPTY, |task| task.comm);
        if self.cpus.has(cpu) && self.tasks.takes(span.pid, span.end, || comm) {
            self.takes.run(&TaskRun {
                pid: span.pid,
                comm,
                parent: task.and_then(|task| task.kin.parent),
                cpu,
                end: span.end,
                length: span.duration(),
                is_whole: span.begun && span.ended,
                wait: off.total,
                delay: off.queued.filter(|_| off.was_queued),
                state: self.switch.filter(|(pid, _)| span.ended && *pid == span.pid).map(|(_, state)| state),
            });
        }
        let total = span.ended.then_some(Dur(0));
        self.off.insert(span.task, OffCpu { total, queued: Some(Dur(0)), was_queued: false });
    }

    fn finish(self, _: Ts, _: &SchedState) -> T::Output {
        self.takes.finish()
    }
}

/// Writes a line for each run. Its output is whether that succeeded.
struct ListedRuns<'o> {
    /// A file without a name: a pass that begins again writes its lines again.
    out: BufWriter<&'o File>,
    written: io::Result<()>,
}

impl ListedRuns<'_> {
    /// Writes the line of a run.
    fn put(&mut self, run: &TaskRun) -> io::Result<()> {
        let micros = run.end.0.div_euclid(1_000);
        let time = format!("{}.{:06}", micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
        let name = format!("{}[{}]", sched::event::escape(run.comm.as_bytes()), run.pid.0);
        let [wait, delay] = [run.wait, run.delay].map(|time| time.map_or_else(|| "-".into(), msec));
        let length = format!("{}{}", if run.is_whole { "" } else { ">" }, msec(run.length));
        let state = run.state.map_or("-", letter);
        let cpu = run.cpu.0;
        writeln!(self.out, "{time:>15} [{cpu:04}]  {name:<30}  {wait:>9}  {delay:>9}  {length:>9}  {state:>5}")
    }
}

impl TakesRuns for ListedRuns<'_> {
    type Output = io::Result<()>;

    fn begin(&mut self) {
        let mut file = *self.out.get_ref();
        self.written = file.set_len(0).and_then(|()| file.rewind());
    }

    fn run(&mut self, run: &TaskRun) {
        if self.written.is_ok() {
            self.written = self.put(run);
        }
    }

    fn finish(mut self) -> io::Result<()> {
        self.written?;
        self.out.flush()
    }
}

/// A time in milliseconds, its last microsecond not rounded, as perf prints it.
pub(crate) fn msec(time: Dur) -> String {
    let micros = time.0 / 1_000;
    format!("{}.{:03}", micros / 1_000, micros % 1_000)
}

/// The letter of the state in which a task left the CPU, as perf prints it; of a preempted task `R+`. The numbers of
/// sleeping states have stayed the same in all kernels (`task_state_array` in `fs/proc/array.c`).
fn letter(state: PrevState) -> &'static str {
    match (state.class, state.raw) {
        (StateClass::Runnable, _) => "R",
        (StateClass::Preempted, _) => "R+",
        (StateClass::Dead, _) => "X",
        (StateClass::Asleep, raw) if raw & 1 != 0 => "S",
        (StateClass::Asleep, raw) if raw & 2 != 0 => "D",
        (StateClass::Asleep, raw) if raw & 4 != 0 => "T",
        (StateClass::Asleep, raw) if raw & 8 != 0 => "t",
        (StateClass::Asleep, raw) if raw & 0x80 != 0 => "I",
        (StateClass::Asleep, _) => "P",
    }
}

/// Takes the runs of these tasks in the window; returns what came out, and what was found about the events.
pub(crate) fn taken<T: TakesRuns>(
    session: &Session,
    tasks: &ChosenTasks,
    takes: impl Fn() -> T,
) -> Result<Outcome<T::Output>> {
    session.watched(|| {
        Pass::over(session.trace.events()?).window(session.window).run(|| RunFinder {
            takes: takes(),
            cpus: &session.shown.chosen,
            tasks,
            off: PerTask::default(),
            switch: None,
        })
    })
}

/// Writes the runs of these tasks in the window.
pub(crate) fn list(session: &Session, tasks: &ChosenTasks, mut out: Lines) -> Result<()> {
    let mut spool = tempfile::tempfile()?;
    let outcome = taken(session, tasks, || ListedRuns { out: BufWriter::new(&spool), written: Ok(()) })?;
    outcome.output?;
    spool.rewind()?;
    HEADS.iter().try_for_each(|head| writeln!(out, "{head}"))?;
    io::copy(&mut spool, &mut out)?;
    out.finish()?;
    warnings::warn(&outcome.diagnostics, &session.read);
    Ok(())
}
