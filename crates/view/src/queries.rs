//! The questions of the page that need more than tiles, and their answers as JSON.

use crate::http::Request;
use crate::index::{Index, List};
use crate::longest::Interval;
use crate::task_detail::{TaskFollower, reason};
use crate::tasks::TaskEntry;
use crate::viewed::{NotReady, Viewed};
use crate::window_detail::WindowSums;
use latency::{Latency, Measure};
use sched::{Cpu, Current, Dur, Pid, Replay, SchedState, Ts};
use serde_json::{Value, json};
use std::cell::Cell;
use std::ops::ControlFlow;
use stepper::{Coming, Names};
use tracedat::{Error, EventStream, Trace};

/// A question cannot be answered.
pub(crate) enum Fault {
    /// The question itself is wrong.
    Bad(&'static str),
    /// There is no answer now.
    NotReady(NotReady),
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

/// The names of a trace's events.
struct EventNames<'t>(&'t Trace);

impl Names for EventNames<'_> {
    fn event(&self, id: u16) -> String {
        self.0.format(id).map_or_else(|| format!("event {id}"), |format| format.name.clone())
    }
}

fn number<T: std::str::FromStr>(request: &Request, key: &str) -> Option<T> {
    request.get(key)?.parse().ok()
}

/// The instant of a number of nanoseconds from the start of the trace, within the trace.
fn instant(trace: &Viewed<'_>, ns: u64) -> Ts {
    let (start, end) = trace.extent();
    start.after(Dur(ns)).min(end)
}

/// The window of a question; all of the trace where it has none.
pub(crate) fn window(trace: &Viewed<'_>, request: &Request) -> Result<(Ts, Ts), Fault> {
    let (start, end) = trace.extent();
    let at = |key: &str, other: Ts| match request.get(key) {
        None => Some(other),
        Some(text) => text.parse().ok().map(|ns| instant(trace, ns)),
    };
    match (at("from", start), at("to", end)) {
        (Some(from), Some(to)) if from <= to => Ok((from, to)),
        _ => Err(Fault::Bad("from and to are whole numbers of nanoseconds, from at most to")),
    }
}

/// The machine at an instant.
pub(crate) fn at(trace: &Viewed<'_>, request: &Request) -> Result<Value, Fault> {
    let (Some(at), Some(cpu)) = (number(request, "at"), number(request, "cpu").map(Cpu)) else {
        return Err(Fault::Bad("at is a whole number of nanoseconds, cpu that of a CPU"));
    };
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
            let coming = Coming::of(event, state, &EventNames(trace.trace));
            json!({ "at": time(event.ts), "cpu": coming.cpu, "name": coming.name, "text": coming.text })
        });
        let cores: Vec<Value> = trace.cpus().iter().map(|cpu| core(*cpu, state)).collect();
        let at = time(ts);
        Ok(json!({ "at": at, "cpu": cpu, "running": running, "waiting": waiting, "cores": cores, "next": next }))
    })?)
}

/// A CPU at an instant.
fn core(cpu: Cpu, state: &SchedState) -> Value {
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
pub(crate) fn task(trace: &Viewed<'_>, request: &Request) -> Result<Value, Fault> {
    let Some(pid) = number(request, "pid").map(Pid) else { return Err(Fault::Bad("pid is that of a task")) };
    let (from, to) = window(trace, request)?;
    let store = trace.store()?;
    let zero = trace.extent().0;
    let is_it = |task: &sched::Task, _: &SchedState| task.pid == pid;
    let options = latency::Options { tasks: Some(&is_it), zero, ..latency::Options::default() };
    let analyses = (TaskFollower::new(pid, zero), Latency::new(&options));
    let (detail, latencies) = store.window(from, to, analyses)?;
    let wakeups = latencies.of(Measure::Wakeup);
    let mut numbers = detail.numbers();
    numbers["wakeup_latency"] = json!({
        "count": wakeups.count,
        "median": wakeups.p50_ns,
        "p99": wakeups.p99_ns,
        "max": wakeups.max_ns,
    });
    let comm = store.index().tasks().of(pid).map_or_else(String::new, |task| task.comm.to_string());
    let mut answer = serde_json::to_value(&detail).unwrap_or_default();
    (answer["pid"], answer["comm"], answer["numbers"]) = (json!(pid), json!(comm), numbers);
    Ok(answer)
}

/// The sums of a window.
pub(crate) fn sums(trace: &Viewed<'_>, request: &Request) -> Result<Value, Fault> {
    let (from, to) = window(trace, request)?;
    let store = trace.store()?;
    let detail = store.window(from, to, WindowSums::new(store.index().tasks(), trace.watch()))?;
    Ok(serde_json::to_value(detail).unwrap_or_default())
}

/// The kinds of lists.
pub(crate) const LISTS: [&str; 4] = ["episodes", "waits", "herds", "missed"];

/// The list of a request.
pub(crate) fn list(
    trace: &Viewed<'_>,
    request: &Request,
    missed: &dyn Fn() -> Result<Value, NotReady>,
) -> Result<Value, Fault> {
    let kind = request.get("kind").filter(|kind| LISTS.contains(kind));
    let kind = kind.ok_or(Fault::Bad("kind is episodes, waits, missed or herds"))?;
    Ok(list_of(trace, kind, missed)?)
}

/// A list of intervals, the longest or largest first. `missed` makes that of the missed steals.
pub(crate) fn list_of(
    trace: &Viewed<'_>,
    kind: &str,
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
        "episodes" => {
            let mut episodes =
                rows(List::Episodes, |episode| format!("{} in violation", episode.to.since(episode.from).human()));
            episodes["waiters"] = json!("movable");
            Ok(episodes)
        }
        "waits" => Ok(rows(List::Waits, |wait| {
            let task = wait.task.map_or_else(String::new, |(pid, comm)| pid.named(comm));
            let on = wait.cpus.map_or_else(String::new, |cpus| format!(" on {}", cpus.text()));
            format!("{task} waited {}{on}", wait.to.since(wait.from).human())
        })),
        "herds" => Ok(herds(index, zero)),
        _ => missed(),
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
pub(crate) fn search(trace: &Viewed<'_>, request: &Request) -> Result<Value, Fault> {
    let sought = request.get("q").unwrap_or_default().trim().to_lowercase();
    if sought.is_empty() || sought.len() > 100 {
        return Err(Fault::Bad("q is a text of at most 100 bytes"));
    }
    let from = match request.get("from") {
        None => 0,
        Some(text) => text.parse().map_err(|_| Fault::Bad("from is a whole number of nanoseconds"))?,
    };
    let store = trace.store()?;
    let mut tasks: Vec<_> = store.index().tasks().list().iter().filter(|task| is_meant(task, &sought)).collect();
    tasks.sort_by_key(|task| std::cmp::Reverse(task.run_ns));
    let first: Vec<Pid> = tasks.iter().take(FOUND).map(|task| task.pid).collect();
    let events = events(trace, &sought, instant(trace, from));
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
    /// All of the trace was searched.
    complete: bool,
}

/// The events of this name from an instant on.
fn events(viewed: &Viewed<'_>, sought: &str, from: Ts) -> FoundEvents {
    let (trace, zero) = (viewed.trace, viewed.extent().0);
    let full = |format: &tracedat::EventFormat| format!("{}:{}", format.system, format.name).to_lowercase();
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
