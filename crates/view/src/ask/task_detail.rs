//! A task in a window: its runs, waits, wakeups and migrations.

use sched::analysis::Settled;
use sched::{Analysis, Cpu, EventKind, Migration, Pid, SchedEvent, SchedState, Span, TaskState, Ts};
use serde::Serialize;
use serde_json::{Value, json};

/// The maximum number of entries of each list.
const MOST: usize = 2_000;

/// The waker of a task that an event queues, and the CPU on which it ran: that of the `sched_waking`, or the parent of a new task. Nothing for an interrupt
/// of the idle task, and where no event shows the waker: the emitter of a `sched_wakeup` can be any task.
pub(crate) fn waker(pid: Pid, event: &SchedEvent, state: &SchedState) -> Option<(Pid, Cpu)> {
    let waking = state.task_of(pid).and_then(|task| task.waking).map(|waking| (waking.by, waking.on));
    let is_new = matches!(event.kind, EventKind::WakeupNew { .. }) && event.in_task();
    waking.or(is_new.then_some((event.pid, event.cpu))).filter(|(by, _)| !by.is_idle())
}

/// The runs, waits, wakeups and migrations of a task in a window. Times are nanoseconds from the start of the trace.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct TaskDetail {
    runs: Vec<(u64, u64, Cpu)>,
    /// The parts of waits, each on one run queue: its times, its CPU, its beginning and its end in words, and the start of
    /// the wait that it is a part of.
    waits: Vec<(u64, u64, Cpu, String, String, u64)>,
    /// The wakeups of the task: the time, the waker, where that is known and a task, its CPU, and the CPU that the task was placed on.
    wakeups: Vec<(u64, Option<Pid>, Cpu, Cpu)>,
    /// The wakeups by the task: the time, the woken task, the CPU of the waker, and the CPU that the woken task was
    /// placed on.
    woke: Vec<(u64, Pid, Cpu, Cpu)>,
    migrations: Vec<(u64, Cpu, Cpu, &'static str)>,
    truncated: bool,
    #[serde(skip)]
    sums: TaskSums,
}

/// Sums over all intervals, listed or not.
#[derive(Clone, Copy, Debug, Default)]
struct TaskSums {
    run: u64,
    wait: u64,
    sleep: u64,
    runs: u64,
    waits: u64,
    migrations: u64,
}

impl TaskDetail {
    /// The longest of the parts of waits that are listed, as its start and its end; nothing if there is none.
    pub(crate) fn longest_wait(&self) -> Option<(u64, u64)> {
        let parts = self.waits.iter().map(|(from, to, ..)| (*from, *to)).filter(|(from, to)| from < to);
        parts.max_by_key(|(from, to)| (to - from, std::cmp::Reverse(*from)))
    }

    /// The numbers of the window as JSON, without the latencies.
    pub(crate) fn numbers(&self) -> Value {
        let TaskSums { run, wait, sleep, runs, waits, migrations } = self.sums;
        json!({ "run": run, "wait": wait, "sleep": sleep, "runs": runs, "waits": waits, "migrations": migrations })
    }
}

/// The analysis that gathers a task in a window.
pub(crate) struct TaskFollower {
    pid: Pid,
    zero: Ts,
    detail: TaskDetail,
    /// The beginning of the part of a wait that lasts, in words.
    began: String,
    /// The start of the wait that a migration continues.
    continued: Option<u64>,
}

impl TaskFollower {
    pub(crate) fn new(pid: Pid, zero: Ts) -> TaskFollower {
        TaskFollower {
            pid,
            zero,
            detail: TaskDetail::default(),
            began: "before the window".to_owned(),
            continued: None,
        }
    }

    fn time(&self, ts: Ts) -> u64 {
        ts.since(self.zero).0
    }
}

/// Adds an entry where there is room; the list is truncated otherwise.
fn add<T>(list: &mut Vec<T>, truncated: &mut bool, entry: T) {
    if list.len() < MOST { list.push(entry) } else { *truncated = true }
}

fn migrated(detail: &mut TaskDetail, zero: Ts, m: &Migration) {
    detail.sums.migrations += 1;
    add(&mut detail.migrations, &mut detail.truncated, (m.ts.since(zero).0, m.orig, m.dest, m.cause.name()));
}

impl Analysis for TaskFollower {
    type Output = TaskDetail;
    const MIGRATIONS: bool = true;

    fn migrated(&mut self, migration: &Migration, settled: Settled, _: &SchedState) {
        if settled.is_inside() && migration.pid == self.pid {
            migrated(&mut self.detail, self.zero, migration);
        }
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        let TaskFollower { pid, zero, detail, .. } = self;
        let (EventKind::Wakeup { task, target } | EventKind::WakeupNew { task, target }) = event.kind else { return };
        let waker = waker(task.pid, event, state);
        // An interrupt has a CPU as well.
        let waking = state.task_of(task.pid).and_then(|task| task.waking);
        let on = waker.map(|(_, on)| on).or(waking.map(|waking| waking.on)).unwrap_or(target);
        let at = event.ts.since(*zero).0;
        if task.pid == *pid {
            add(&mut detail.wakeups, &mut detail.truncated, (at, waker.map(|(by, _)| by), on, target));
        }
        if waker.is_some_and(|(by, _)| by == *pid) {
            add(&mut detail.woke, &mut detail.truncated, (at, task.pid, on, target));
        }
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        if span.pid != self.pid {
            return;
        }
        let (from, to) = (self.time(span.start), self.time(span.end));
        let (detail, ns) = (&mut self.detail, to - from);
        match span.state {
            TaskState::Running(cpu) => {
                detail.sums.run += ns;
                detail.sums.runs += 1;
                add(&mut detail.runs, &mut detail.truncated, (from, to, cpu));
            }
            // It joined the queue of a cgroup that was throttled.
            TaskState::Waiting(_) if from == to && matches!(span.next, TaskState::Throttled(_)) => {}
            // How long it waits on a CPU without events is unknown.
            TaskState::Waiting(cpu) if !state.is_observed(cpu) => self.continued = None,
            TaskState::Waiting(cpu) => {
                detail.sums.wait += ns;
                detail.sums.waits += u64::from(self.continued.is_none());
                let start = self.continued.unwrap_or(from);
                let goes_on = |next: TaskState| matches!(next, TaskState::Waiting(next) if state.is_observed(next));
                self.continued = (span.ended && goes_on(span.next)).then_some(start);
                let end = match span.next {
                    _ if !span.ended => "after the window, or unknown".to_owned(),
                    TaskState::Running(other) if other == cpu => "it ran".to_owned(),
                    TaskState::Running(other) => format!("it ran on CPU {other}"),
                    TaskState::Waiting(other) => format!("moved to CPU {other}"),
                    TaskState::Throttled(_) => "throttled by cpu.max".to_owned(),
                    TaskState::Asleep(_) => "it slept".to_owned(),
                    TaskState::Dead => "it ended".to_owned(),
                    TaskState::Unknown => "unknown".to_owned(),
                };
                let began = std::mem::take(&mut self.began);
                add(&mut detail.waits, &mut detail.truncated, (from, to, cpu, began, end, start));
            }
            TaskState::Asleep(_) => detail.sums.sleep += ns,
            TaskState::Throttled(_) | TaskState::Unknown | TaskState::Dead => {}
        }
        if let TaskState::Waiting(_) = span.next {
            self.began = match span.state {
                TaskState::Running(_) => "preempted".to_owned(),
                TaskState::Waiting(cpu) => format!("moved from CPU {cpu}"),
                TaskState::Asleep(_) => match state.task(span.task).and_then(|task| task.waking) {
                    Some(waking) if !waking.by.is_idle() => format!("woken by task {}", waking.by),
                    _ => "woken".to_owned(),
                },
                TaskState::Throttled(_) => "throttled until then".to_owned(),
                TaskState::Unknown | TaskState::Dead => "new, or seen for the first time".to_owned(),
            };
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> TaskDetail {
        let mut detail = self.detail;
        detail.migrations.sort_unstable();
        detail
    }
}

/// The reason for which a task waits, as far as the state at an instant shows it.
pub(crate) fn reason(task: &sched::Task, state: &SchedState) -> String {
    let waker = |by: Pid| {
        let comm = state.task_of(by).map_or(sched::Comm::EMPTY, |task| task.comm);
        format!("woken by {}", by.named(comm))
    };
    match task.waking {
        Some(waking) if waking.by.is_idle() => "woken by an interrupt".to_owned(),
        Some(waking) => waker(waking.by),
        None if task.born == Some(task.since) => "new".to_owned(),
        None if !task.begun => "waits since before the trace shows it".to_owned(),
        None => "preempted or moved here".to_owned(),
    }
}
