//! `schedviz list --runs`: the runs of tasks, a line for each, in the columns of `perf sched timehist --state`.

use anyhow::Result;
use sched::{
    Analysis, ChosenCpus, Comm, Cpu, Dur, EventKind, Pass, PerTask, Pid, PrevState, SchedEvent, SchedState, Span,
    StateClass, TaskState, Ts,
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

/// Writes a line for each run on the chosen CPUs. Its output is whether that succeeded.
struct ListedRuns<'o> {
    /// A file without a name: a pass that begins again writes its lines again.
    out: BufWriter<&'o File>,
    cpus: &'o ChosenCpus,
    tasks: &'o ChosenTasks,
    off: PerTask<OffCpu>,
    /// The task that the event switches out, and its state then.
    switch: Option<(Pid, PrevState)>,
    written: io::Result<()>,
}

impl ListedRuns<'_> {
    /// Writes the line of a run.
    fn put(&mut self, span: &Span, cpu: Cpu, comm: Comm, off: OffCpu) -> io::Result<()> {
        let left = self.switch.filter(|(pid, _)| span.ended && *pid == span.pid).map(|(_, state)| state);
        let time = span.end.0.div_euclid(1_000);
        let (seconds, micros) = (time.div_euclid(1_000_000), time.rem_euclid(1_000_000));
        let name = format!("{}[{}]", sched::event::escape(comm.as_bytes()), span.pid.0);
        let part = if span.begun && span.ended { "" } else { ">" };
        let wait = off.total.map_or_else(|| "-".into(), msec);
        let delay = off.queued.filter(|_| off.was_queued).map_or_else(|| "-".into(), msec);
        let run = format!("{part}{}", msec(span.duration()));
        let time = format!("{seconds}.{micros:06}");
        let state = left.map_or("-", letter);
        writeln!(self.out, "{time:>15} [{:04}]  {name:<30}  {wait:>9}  {delay:>9}  {run:>9}  {state:>5}", cpu.0)
    }
}

/// A time in milliseconds, its last microsecond not rounded, as perf prints it.
fn msec(time: Dur) -> String {
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

impl Analysis for ListedRuns<'_> {
    type Output = io::Result<()>;

    fn begin(&mut self, _: Ts, _: &SchedState) {
        let mut file = *self.out.get_ref();
        self.written = file.set_len(0).and_then(|()| file.rewind());
    }

    fn before(&mut self, event: &SchedEvent, _: &SchedState) {
        self.switch = match event.kind {
            EventKind::Switch { prev, state, .. } => Some((prev.pid, state)),
            _ => None,
        };
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        let off = self.off.get(span.task).copied().unwrap_or(OffCpu::UNSEEN);
        let TaskState::Running(cpu) = span.state else {
            let mut off = off;
            off.add(span);
            self.off.insert(span.task, off);
            return;
        };
        let comm = state.task(span.task).map_or(Comm::EMPTY, |task| task.comm);
        if self.written.is_ok() && self.cpus.has(cpu) && self.tasks.takes(span.pid, span.end, || comm) {
            self.written = self.put(span, cpu, comm, off);
        }
        let total = span.ended.then_some(Dur(0));
        self.off.insert(span.task, OffCpu { total, queued: Some(Dur(0)), was_queued: false });
    }

    fn finish(mut self, _: Ts, _: &SchedState) -> io::Result<()> {
        self.written?;
        self.out.flush()
    }
}

/// Writes the runs of these tasks in the window.
pub(crate) fn list(session: &Session, tasks: &ChosenTasks, mut out: Lines) -> Result<()> {
    let mut spool = tempfile::tempfile()?;
    let outcome = session.watched(|| {
        Pass::over(session.trace.events()?).window(session.window).run(|| ListedRuns {
            out: BufWriter::new(&spool),
            cpus: &session.shown.chosen,
            tasks,
            off: PerTask::default(),
            switch: None,
            written: Ok(()),
        })
    })?;
    outcome.output?;
    spool.rewind()?;
    HEADS.iter().try_for_each(|head| writeln!(out, "{head}"))?;
    io::copy(&mut spool, &mut out)?;
    out.finish()?;
    warnings::warn(&outcome.diagnostics, &session.read);
    Ok(())
}
