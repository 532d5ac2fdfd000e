//! The numbers and the longest waits of each task, for a folder that cannot ask for them.
//!
//! One pass makes those of all tasks, by the definitions of `ask/task_detail.rs`.

use crate::columns::lane::OTHERS;
use crate::columns::tasks::Tasks;
use crate::index::viewed::{NotReady, Viewed};
use latency::{Latency, LatencyReport, Measure};
use membership::TasksBy;
use sched::analysis::Settled;
use sched::{Analysis, Cpu, Dur, Migration, Pid, SchedState, Span, TaskState, Ts};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A folder has rows and numbers of tasks where its trace has at most this number of tasks.
const MOST: usize = 4096;
/// A folder has rows and numbers of tasks where its trace has at most this number of events: each takes a further pass, at a few hundred
/// nanoseconds an event.
const MOST_EVENTS: u64 = 4_000_000;
/// The maximum number of waits of a task.
const WAITS: usize = 8;

/// Whether a folder has rows and numbers of the tasks of a trace with this number of events.
pub(crate) fn are_kept(trace: &Viewed<'_>, events: u64) -> Result<bool, NotReady> {
    Ok(events <= MOST_EVENTS && trace.store()?.index().tasks().list().len() <= MOST)
}

/// The numbers of a task in the window of a folder.
#[derive(Clone, Debug, Default)]
struct TaskNumbers {
    run: u64,
    wait: u64,
    sleep: u64,
    runs: u64,
    waits: u64,
    migrations: u64,
    /// The start of the wait that a migration continues.
    continued: Option<u64>,
    /// The longest parts of waits, each on one run queue: its length, its start, its CPU and the start of its wait. The longest is last.
    longest: Vec<(u64, u64, Cpu, u64)>,
}

impl TaskNumbers {
    /// Keeps a part of a wait, if it is one of the longest.
    fn keep(&mut self, part: (u64, u64, Cpu, u64)) {
        let at = self.longest.partition_point(|other| other.0 < part.0);
        if self.longest.len() < WAITS {
            self.longest.insert(at, part);
        } else if at > 0 {
            self.longest.insert(at, part);
            self.longest.remove(0);
        }
    }
}

/// The analysis that gathers the numbers of all tasks in a window.
struct AllTasks {
    zero: Ts,
    tasks: Arc<Tasks>,
    numbers: Vec<TaskNumbers>,
}

impl AllTasks {
    fn new(zero: Ts, tasks: &Arc<Tasks>) -> AllTasks {
        AllTasks { zero, tasks: Arc::clone(tasks), numbers: vec![TaskNumbers::default(); tasks.list().len()] }
    }

    /// The numbers of a task; nothing for one without a place.
    fn of(&mut self, pid: Pid) -> Option<&mut TaskNumbers> {
        let place = Some(self.tasks.place(pid)).filter(|place| *place != OTHERS)?;
        self.numbers.get_mut(place as usize)
    }
}

impl Analysis for AllTasks {
    type Output = Vec<TaskNumbers>;
    const MIGRATIONS: bool = true;

    fn migrated(&mut self, migration: &Migration, settled: Settled, _: &SchedState) {
        if settled.is_inside()
            && let Some(numbers) = self.of(migration.pid)
        {
            numbers.migrations += 1;
        }
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        let (from, to) = (span.start.since(self.zero).0, span.end.since(self.zero).0);
        let Some(numbers) = self.of(span.pid) else { return };
        let ns = to.saturating_sub(from);
        match span.state {
            TaskState::Running(_) => {
                numbers.run += ns;
                numbers.runs += 1;
            }
            // It joined the queue of a cgroup that was throttled.
            TaskState::Waiting(_) if from == to && matches!(span.next, TaskState::Throttled(_)) => {}
            // How long it waits on a CPU without events is unknown.
            TaskState::Waiting(cpu) if !state.is_observed(cpu) => numbers.continued = None,
            TaskState::Waiting(cpu) => {
                numbers.wait += ns;
                numbers.waits += u64::from(numbers.continued.is_none());
                let start = numbers.continued.unwrap_or(from);
                let goes_on = matches!(span.next, TaskState::Waiting(next) if state.is_observed(next));
                numbers.continued = (span.ended && goes_on).then_some(start);
                numbers.keep((ns, from, cpu, start));
            }
            TaskState::Asleep(_) => numbers.sleep += ns,
            TaskState::Throttled(_) | TaskState::Unknown | TaskState::Dead => {}
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> Vec<TaskNumbers> {
        self.numbers
    }
}

/// The numbers and the longest waits of the tasks by PID, in a window in nanoseconds from the start of the trace; without one in all of it.
pub(crate) fn answer(trace: &Viewed<'_>, window: Option<(u64, u64)>) -> Result<Value, NotReady> {
    let (store, (zero, end)) = (trace.store()?, trace.extent());
    let at = |ns: u64| zero.after(Dur(ns)).min(end);
    let (from, to) = window.map_or((zero, end), |(from, to)| (at(from), at(to)));
    let index = store.index();
    let options = latency::Options { by: TasksBy::Task, zero, ..latency::Options::default() };
    let analyses = (AllTasks::new(zero, &index.tasks), Latency::new(&options));
    let found: Result<(Vec<TaskNumbers>, LatencyReport), _> = store.window(from, to, analyses);
    let (numbers, latencies) = found.map_err(|error| NotReady(error.to_string()))?;
    let wakeups: BTreeMap<Pid, Value> =
        latencies.rows.iter().filter_map(|row| Some((row.pid?, wakeups(row)))).collect();
    let seen = (0..numbers.len()).filter(|place| is_seen(&numbers[*place]));
    let named = seen.filter_map(|place| Some((index.tasks.list().get(place)?.pid, &numbers[place])));
    let tasks: serde_json::Map<String, Value> =
        named.map(|(pid, numbers)| (pid.0.to_string(), of_task(numbers, wakeups.get(&pid)))).collect();
    let time = |ts: Ts| ts.since(zero).0;
    Ok(json!({ "from": time(from), "to": time(to), "tasks": tasks }))
}

/// Whether anything of a task is in the window.
fn is_seen(numbers: &TaskNumbers) -> bool {
    numbers.runs + numbers.waits + numbers.migrations > 0 || numbers.sleep > 0
}

/// The wakeup latencies of a task, as the page has them.
fn wakeups(row: &latency::LatencyRow) -> Value {
    let wakeups = row.measures.iter().find(|measure| measure.measure == Measure::Wakeup);
    wakeups.map_or(Value::Null, |found| {
        let summary = &found.summary;
        json!({ "count": summary.count, "median": summary.p50_ns, "p99": summary.p99_ns, "max": summary.max_ns })
    })
}

/// A task in the form of the server's answer: its numbers, and the longest parts of its waits, the earliest first.
fn of_task(found: &TaskNumbers, wakeups: Option<&Value>) -> Value {
    let TaskNumbers { run, wait, sleep, runs, waits, migrations, .. } = found;
    let mut longest: Vec<_> =
        found.longest.iter().map(|(ns, from, cpu, start)| (*from, from + ns, *cpu, "", "", *start)).collect();
    longest.sort_unstable();
    json!({
        "numbers": {
            "run": run, "wait": wait, "sleep": sleep, "runs": runs, "waits": waits, "migrations": migrations,
            "wakeup_latency": wakeups,
        },
        "waits": longest,
    })
}
