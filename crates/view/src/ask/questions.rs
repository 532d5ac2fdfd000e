//! The questions about one trace, and their answers as JSON.

use crate::ask::task_detail::{TaskFollower, reason};
use crate::ask::window_detail::WindowSums;
use crate::columns::longest::Interval;
use crate::columns::tasks::TaskEntry;
use crate::index::tiles::{Index, List};
use crate::index::viewed::{NotReady, Viewed};
use latency::{Latency, Measure};
use parse::{Error, EventStream};
use picks::Picks;
use sched::{Cpu, Current, Dur, Pid, Replay, SchedEvent, SchedState, Ts};
use serde_json::{Value, json};
use session::stacks::key_of;
use std::cell::Cell;
use std::ops::ControlFlow;
use stepper::{Coming, Names};

/// The reason for which a question is not answered.
pub(crate) enum Fault {
    /// The question itself is wrong, with the rule that it breaks.
    Bad(&'static str),
    /// The trace has no answer now.
    NotReady(NotReady),
}

/// A question about a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// The state of all CPUs at an instant, and the waiting tasks of one of them.
    At {
        /// The instant, in nanoseconds from the start of the trace.
        ns: u64,
        /// The CPU whose waiting tasks are listed.
        cpu: Cpu,
    },
    /// The runs, waits, wakeups and migrations of a task in a window.
    Task(Pid, AskedWindow),
    /// The sums of a window over all CPUs and tasks.
    Sums(AskedWindow),
    /// A list of intervals of the whole trace.
    List(ListKind),
    /// Tasks by name or number, and events by name.
    Search {
        /// The text that is searched for, of 1 to 100 bytes in lower case without the blanks around it; its case does not matter.
        text: String,
        /// The start of the search for events, in nanoseconds from the start of the trace.
        from_ns: u64,
    },
}

/// The window of a question, in nanoseconds from the start of the trace. An end that is left out is that of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AskedWindow {
    /// The start of the window.
    pub(crate) from: Option<u64>,
    /// The end of the window, not before its start.
    pub(crate) to: Option<u64>,
}

impl AskedWindow {
    /// The rule for the two ends of a window.
    pub(crate) const RULE: &str = "from and to are whole numbers of nanoseconds, from at most to";

    /// The window within a trace.
    pub(crate) fn within(self, trace: &Viewed<'_>) -> Result<(Ts, Ts), Fault> {
        let (start, end) = trace.extent();
        let from = self.from.map_or(start, |ns| instant(trace, ns));
        let to = self.to.map_or(end, |ns| instant(trace, ns));
        if from <= to { Ok((from, to)) } else { Err(Fault::Bad(AskedWindow::RULE)) }
    }
}

/// The lists of intervals that the page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// The longest episodes of violation.
    Episodes,
    /// The longest waits of tasks on run queues.
    Waits,
    /// The largest herds of migrations.
    Herds,
    /// The longest idle stretches that began with a missed steal.
    Missed,
}

impl ListKind {
    /// All lists, in the order of the page.
    pub(crate) const ALL: [ListKind; 4] = [ListKind::Episodes, ListKind::Waits, ListKind::Herds, ListKind::Missed];

    /// The name of the list in addresses and in the names of files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ListKind::Episodes => "episodes",
            ListKind::Waits => "waits",
            ListKind::Herds => "herds",
            ListKind::Missed => "missed",
        }
    }
}

impl Question {
    /// The answer to the question. `missed` makes the list of the missed steals, and is called for that list alone.
    pub(crate) fn answer(
        &self,
        trace: &Viewed<'_>,
        missed: &dyn Fn() -> Result<Value, NotReady>,
    ) -> Result<Value, Fault> {
        match self {
            Question::At { ns, cpu } => at(trace, *ns, *cpu),
            Question::Task(pid, window) => task(trace, *pid, *window),
            Question::Sums(window) => sums(trace, *window),
            Question::List(kind) => Ok(list(trace, *kind, missed)?),
            Question::Search { text, from_ns } => search(trace, text, *from_ns),
        }
    }
}

impl From<NotReady> for Fault {
    fn from(why: NotReady) -> Fault {
        Fault::NotReady(why)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::NotReady(NotReady(error.to_string()))
    }
}

/// The number of events that are searched for the end of a run.
const AHEAD: u64 = 200_000;
/// The maximum number of tasks, and of events, that a search lists; all are counted.
const FOUND: usize = 100;
/// The number of records that a search reads.
const SEARCHED: u64 = 5_000_000;

/// The number of functions of a stack that are shown.
const FUNCTIONS: usize = 5;

/// The names of a trace's events, and their stacks.
struct EventNames<'v, 't>(&'v Viewed<'t>);

impl Names for EventNames<'_, '_> {
    fn stack(&self, event: &SchedEvent) -> Option<String> {
        self.0.stacks().words(key_of(event), FUNCTIONS)
    }

    fn event(&self, id: u16) -> String {
        self.0.trace.format(id).map_or_else(|| format!("event {id}"), |format| format.name.clone())
    }
}

/// The instant of a number of nanoseconds from the start of the trace, within the trace.
fn instant(trace: &Viewed<'_>, ns: u64) -> Ts {
    let (start, end) = trace.extent();
    start.after(Dur(ns)).min(end)
}

/// The machine at an instant.
fn at(trace: &Viewed<'_>, at: u64, cpu: Cpu) -> Result<Value, Fault> {
    if !trace.cpus().contains(&cpu) {
        return Err(Fault::Bad("no such CPU in the trace"));
    }
    let ts = instant(trace, at);
    let store = trace.store()?;
    Ok(store.with_replay(|replay| {
        let step = replay.step_at(Ts(ts.0.saturating_add(1)))?;
        replay.go(step)?;
        let until = end_of_run(replay, step, cpu)?;
        let state = replay.state();
        let zero = trace.extent().0;
        let time = |ts: Ts| ts.since(zero).0;
        let running = match state.current(cpu) {
            Current::Idle => json!("idle"),
            Current::Unknown => json!("unknown"),
            Current::Offline => json!("offline"),
            Current::Task(pid) => {
                let comm = state.running(cpu).map_or_else(String::new, |task| task.comm.to_string());
                let since = time(state.current_since(cpu));
                json!({ "pid": pid, "comm": comm, "since": since, "until": until.map(time) })
            }
        };
        let waiting: Vec<Value> = state
            .waiting(cpu)
            .map(|task| {
                let (comm, since) = (task.comm.to_string(), time(task.since));
                json!({ "pid": task.pid, "comm": comm, "since": since, "cause": reason(task, state) })
            })
            .collect();
        let next = replay.event().map(|event| {
            let coming = Coming::of(event, state, &EventNames(trace));
            let flags = stepper::flags(event, trace.trace.marks_lazy_requests());
            json!({ "at": time(event.ts), "cpu": coming.cpu, "name": coming.name, "text": coming.text, "flags": flags })
        });
        let cpus: Vec<Value> = trace.cpus().iter().map(|cpu| cpu_at(*cpu, state)).collect();
        let at = time(ts);
        Ok(json!({ "at": at, "cpu": cpu, "running": running, "waiting": waiting, "cpus": cpus, "next": next }))
    })?)
}

/// A CPU at an instant.
fn cpu_at(cpu: Cpu, state: &SchedState) -> Value {
    let running = match state.current(cpu) {
        Current::Idle => "idle",
        Current::Unknown => "unknown",
        Current::Offline => "offline",
        Current::Task(_) => "task",
    };
    let comm = state.running(cpu).map_or_else(String::new, |task| task.comm.to_string());
    let waiting: Vec<Pid> = state.waiting(cpu).map(|task| task.pid).collect();
    json!({ "cpu": cpu, "running": running, "pid": state.current(cpu).pid(), "comm": comm, "waiting": waiting })
}

/// The instant of the next switch on a CPU, if it is not far.
fn end_of_run(replay: &mut Replay<EventStream<'_>>, step: u64, cpu: Cpu) -> Result<Option<Ts>, Error> {
    let (searched, end) = (Cell::new(0), Cell::new(None));
    replay.find(step, |event| {
        searched.set(searched.get() + 1);
        if event.cpu == cpu && matches!(event.kind, sched::EventKind::Switch { .. }) {
            end.set(Some(event.ts));
        }
        end.get().is_some() || searched.get() > AHEAD
    })?;
    Ok(end.get())
}

/// A task in a window.
fn task(trace: &Viewed<'_>, pid: Pid, window: AskedWindow) -> Result<Value, Fault> {
    let (from, to) = window.within(trace)?;
    let store = trace.store()?;
    let zero = trace.extent().0;
    let is_it = |task: &sched::Task, _: &SchedState| task.pid == pid;
    let options = latency::Options { tasks: Some(&is_it), zero, ..latency::Options::default() };
    // Without records a lag needs the events before the window.
    let by_probe = trace.trace.probe("pick").is_some() || trace.trace.has_named("sv", "switch");
    let picked = picks::Options { tasks: Some(&is_it), by_probe, zero, ..picks::Options::default() };
    let lags = by_probe.then(|| Picks::new(&picked));
    let analyses = (TaskFollower::new(pid, zero), Latency::new(&options), lags);
    let (detail, latencies, lags) = store.window(from, to, analyses)?;
    let wakeups = latencies.of(Measure::Wakeup);
    let mut numbers = detail.numbers();
    numbers["wakeup_latency"] = json!({
        "count": wakeups.count,
        "median": wakeups.p50_ns,
        "p99": wakeups.p99_ns,
        "max": wakeups.max_ns,
    });
    if let Some(report) = lags {
        let debt = report.rows.iter().find_map(|row| row.longest_debt);
        numbers["lag"] = json!({
            "count": report.lag.count,
            "least": report.lag.least_ns,
            "median": report.lag.median_ns,
            "greatest": report.lag.greatest_ns,
            "late": report.late.count,
            "debt": debt.map(|debt| debt.lasted_ns),
        });
    }
    let comm = store.index().tasks().of(pid).map_or_else(String::new, |task| task.comm.to_string());
    let mut answer = serde_json::to_value(&detail).unwrap_or_default();
    (answer["pid"], answer["comm"], answer["numbers"]) = (json!(pid), json!(comm), numbers);
    Ok(answer)
}

/// The sums of a window.
fn sums(trace: &Viewed<'_>, window: AskedWindow) -> Result<Value, Fault> {
    let (from, to) = window.within(trace)?;
    let store = trace.store()?;
    let detail = store.window(from, to, WindowSums::new(store.index().tasks(), trace.watch()))?;
    Ok(serde_json::to_value(detail).unwrap_or_default())
}

/// A list of intervals, the longest or largest first. `missed` makes that of the missed steals.
pub(crate) fn list(
    trace: &Viewed<'_>,
    kind: ListKind,
    missed: &dyn Fn() -> Result<Value, NotReady>,
) -> Result<Value, NotReady> {
    let store = trace.store()?;
    let (index, zero) = (store.index(), trace.extent().0);
    let rows = |list: List, text: fn(&Interval) -> String| {
        let (intervals, dropped) = index.list(list);
        let row = |interval: &Interval| {
            let Interval { from, to, cpus, task } = interval;
            let (from, to, pid) = (from.since(zero).0, to.since(zero).0, task.map(|(pid, _)| pid));
            let cpu = cpus.map(|cpus| cpus.first());
            let (named, number) = cpus.as_ref().map_or((&[][..], 0), |cpus| (cpus.named(), cpus.number()));
            json!({
                "from": from, "to": to, "cpu": cpu, "pid": pid, "text": text(interval),
                "cpus": named, "cpus_number": number,
            })
        };
        json!({ "rows": intervals.iter().map(row).collect::<Vec<_>>(), "truncated": dropped > 0 })
    };
    match kind {
        ListKind::Episodes => {
            let mut episodes =
                rows(List::Episodes, |episode| format!("{} in violation", episode.to.since(episode.from).human()));
            episodes["waiters"] = json!("movable");
            Ok(episodes)
        }
        ListKind::Waits => Ok(rows(List::Waits, |wait| {
            let task = wait.task.map_or_else(String::new, |(pid, comm)| pid.named(comm));
            let on = wait.cpus.map_or_else(String::new, |cpus| format!(" on {}", cpus.text()));
            format!("{task} waited {}{on}", wait.to.since(wait.from).human())
        })),
        ListKind::Herds => Ok(herds(index, zero)),
        ListKind::Missed => missed(),
    }
}

fn herds(index: &Index, zero: Ts) -> Value {
    let (herds, dropped) = index.herds();
    let row = |herd: &sched::causes::Herd| {
        let text = format!("{} tasks from CPU {} to CPU {}", herd.tasks, herd.orig, herd.dest);
        let (from, to) = (herd.start.since(zero).0, herd.end.since(zero).0);
        json!({
            "from": from, "to": to, "cpu": herd.dest, "pid": null, "text": text,
            "origin": herd.orig, "tasks": herd.tasks,
        })
    };
    json!({ "rows": herds.iter().map(row).collect::<Vec<_>>(), "truncated": *dropped > 0 })
}

/// Tasks by name or number, and events by name.
fn search(trace: &Viewed<'_>, text: &str, from_ns: u64) -> Result<Value, Fault> {
    let sought = text.trim().to_lowercase();
    if sought.is_empty() || sought.len() > 100 {
        return Err(Fault::Bad("q is a text of at most 100 bytes"));
    }
    let store = trace.store()?;
    let mut tasks: Vec<_> = store.index().tasks().list().iter().filter(|task| is_meant(task, &sought)).collect();
    tasks.sort_by_key(|task| std::cmp::Reverse(task.run_ns));
    let first: Vec<Pid> = tasks.iter().take(FOUND).map(|task| task.pid).collect();
    let events = events(trace, &sought, instant(trace, from_ns));
    Ok(json!({
        "tasks": first, "tasks_number": tasks.len(),
        "events": events.first, "events_number": events.number, "complete": events.complete,
    }))
}

/// Whether a task is meant by a text in lower case: a part of its name, its PID, or, with a blank, a part of its label
/// such as `hackbench 345`. The page filters by the same rule.
fn is_meant(task: &TaskEntry, sought: &str) -> bool {
    let (pid, comm) = (task.pid.to_string(), task.comm.to_string().to_lowercase());
    pid == sought || comm.contains(sought) || sought.contains(' ') && format!("{comm} {pid}").contains(sought)
}

/// The events that a search finds.
struct FoundEvents {
    first: Vec<Value>,
    number: u64,
    /// Whether the search reached the end of the trace.
    complete: bool,
}

/// The events of this name from an instant on.
fn events(viewed: &Viewed<'_>, sought: &str, from: Ts) -> FoundEvents {
    let (trace, zero) = (viewed.trace, viewed.extent().0);
    let full = |format: &parse::EventFormat| format!("{}:{}", format.system, format.name).to_lowercase();
    let wanted: Vec<u16> = trace.formats().iter().filter(|f| full(f).contains(sought)).map(|f| f.id).collect();
    let mut found = FoundEvents { first: Vec::new(), number: 0, complete: true };
    if wanted.is_empty() {
        return found;
    }
    let mut searched = 0u64;
    trace.records_from(from, &mut |record| {
        searched += 1;
        found.number += u64::from(wanted.contains(&record.id()));
        if wanted.contains(&record.id()) && found.first.len() < FOUND {
            let name = record.format().map_or_else(String::new, |format| format.name.clone());
            let at = record.ts.since(zero).0;
            found.first.push(json!({ "at": at, "cpu": record.cpu, "name": name, "text": record.printed() }));
        }
        found.complete = searched < SEARCHED;
        if found.complete { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    found
}
