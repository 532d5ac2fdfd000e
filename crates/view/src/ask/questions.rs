//! The questions about one trace, and their answers as JSON.

use crate::ask::filter::{ChosenTasks, PageFilter, is_meant};
use crate::ask::task_detail::{TaskFollower, reason};
use crate::ask::window_detail::WindowSums;
use crate::columns::longest::Interval;
use crate::index::Indexer;
use crate::index::tiles::{Index, List};
use crate::index::trust::WindowTrust;
use crate::index::viewed::{NotReady, Viewed};
use latency::{Latency, Measure};
use parse::{Error, EventStream};
use picks::Picks;
use sched::{ChosenCpus, Cpu, Current, Dur, Pid, Replay, SchedEvent, SchedState, Ts};
use serde_json::{Value, json};
use session::stacks::key_of;
use std::cell::Cell;
use std::ops::ControlFlow;
use stepper::{Coming, Names};
use workcons::{UnknownParts, Waiters, WorkConservation};

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
    /// The sums of a window over all CPUs, and over the tasks that pass a filter.
    Sums(AskedWindow, PageFilter),
    /// A list of intervals of a window; the filter chooses among waits, or the waiters of the violation.
    List(ListKind, AskedWindow, PageFilter),
    /// Tasks by name or number, and events by name.
    Search {
        /// The text that is searched for, of 1 to 100 bytes in lower case without the blanks around it; its case does not matter.
        text: String,
        /// The start of the search for events, in nanoseconds from the start of the trace.
        from_ns: u64,
        /// The number of events found from there on that are not listed, since they were before.
        skip: u64,
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

    /// Whether the window has no end of its own: it is the whole trace.
    pub(crate) fn is_whole(self) -> bool {
        self == AskedWindow::default()
    }

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

/// The answers that need more than the index and the events of a trace.
pub(crate) trait Asks {
    /// The missed steals of a window, or of the whole trace, with the tasks that pass a filter as the waiters.
    fn missed(&self, window: Option<(Ts, Ts)>, filter: &PageFilter) -> Result<Value, NotReady>;

    /// The episodes of violation of a window with the tasks that pass a filter as the waiters.
    fn violations(&self, window: (Ts, Ts), filter: &PageFilter) -> Result<Value, NotReady>;

    /// The tasks that pass a filter; nothing for a filter that all tasks pass.
    fn chosen(&self, filter: &PageFilter) -> Result<Option<ChosenTasks>, NotReady>;
}

impl Question {
    /// The answer to the question.
    pub(crate) fn answer(&self, trace: &Viewed<'_>, asks: &dyn Asks) -> Result<Value, Fault> {
        match self {
            Question::At { ns, cpu } => at(trace, *ns, *cpu),
            Question::Task(pid, window) => task(trace, *pid, *window),
            Question::Sums(window, filter) => sums(trace, window.within(trace)?, asks.chosen(filter)?.as_ref()),
            Question::List(kind, window, filter) => {
                let within = if window.is_whole() { None } else { Some(window.within(trace)?) };
                list_of_part(trace, *kind, within, filter, asks)
            }
            Question::Search { text, from_ns, skip } => search(trace, text, *from_ns, *skip),
        }
    }
}

/// A list of a window, or of the whole trace, of the tasks that pass the filter; herds are those of all tasks.
fn list_of_part(
    trace: &Viewed<'_>,
    kind: ListKind,
    window: Option<(Ts, Ts)>,
    filter: &PageFilter,
    asks: &dyn Asks,
) -> Result<Value, Fault> {
    if kind == ListKind::Missed {
        return Ok(asks.missed(window, filter)?);
    }
    if kind == ListKind::Episodes && !filter.is_empty() {
        return Ok(asks.violations(window.unwrap_or_else(|| trace.extent()), filter)?);
    }
    let chosen = if kind == ListKind::Waits { asks.chosen(filter)? } else { None };
    if window.is_none() && chosen.is_none() {
        return Ok(list(trace, kind, &|| asks.missed(None, filter))?);
    }
    let (from, to) = window.unwrap_or_else(|| trace.extent());
    let store = trace.store()?;
    let tasks = store.index().tasks();
    let waits = chosen.as_ref().map(|chosen| |pid| chosen.has(tasks, pid));
    let mut indexer = Indexer::new(&trace.part(from, to));
    if let Some(waits) = &waits {
        indexer = indexer.of_waits(waits);
    }
    let part = store.window(from, to, indexer)?;
    let mut answer = intervals(&part, kind, trace.extent().0);
    answer["chosen"] = json!(chosen.map(|chosen| chosen.number));
    Ok(answer)
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
        self.0.trace.format(id).map_or_else(|| format!("event {id}"), |format| format.name.to_string())
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
        let waiting: Vec<Value> = waiting(cpu, state)
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

/// The tasks that wait on a CPU; none of one without events, on which the waiting tasks are unknown.
fn waiting(cpu: Cpu, state: &SchedState) -> impl Iterator<Item = &sched::Task> {
    state.waiting(cpu).filter(move |_| state.is_observed(cpu))
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
    let waiting: Vec<Pid> = waiting(cpu, state).map(|task| task.pid).collect();
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
    // Tasks of a sched_ext scheduler have none.
    let is_recorded = trace.trace.probe("pick").is_some() || trace.trace.has_named("sv", "switch");
    let by_probe = is_recorded && !trace.trace.has_ext_queues();
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
            "count": report.lag.map(|lag| lag.count),
            "least": report.lag.and_then(|lag| lag.least_ns),
            "median": report.lag.and_then(|lag| lag.median_ns),
            "greatest": report.lag.and_then(|lag| lag.greatest_ns),
            "late": report.late.map(|late| late.count),
            "debt": debt.map(|debt| debt.lasted_ns),
        });
    }
    let comm = store.index().tasks().of(pid).map_or_else(String::new, |task| task.comm.to_string());
    let mut answer = serde_json::to_value(&detail).unwrap_or_default();
    (answer["pid"], answer["comm"], answer["numbers"]) = (json!(pid), json!(comm), numbers);
    Ok(answer)
}

/// The judgement on the numbers of a window, of all tasks or those that are chosen.
pub(crate) fn judged(trace: &Viewed<'_>, window: (Ts, Ts), chosen: Option<&ChosenTasks>) -> Result<WindowTrust, Fault> {
    let store = trace.store()?;
    if chosen.is_none() && window == trace.extent() {
        return Ok(trace.trust()?.clone());
    }
    let tasks = store.index().tasks();
    let unknown = store.window(window.0, window.1, UnknownParts::of(ChosenCpus::default()))?;
    let counts = |task: &sched::Task, _: &SchedState| chosen.is_some_and(|chosen| chosen.has(tasks, task.pid));
    let options = match chosen {
        None => trace.options(),
        Some(_) => workcons::Options { waiters: Waiters::Application, application: Some(&counts), ..trace.options() },
    };
    Ok(WindowTrust::of((trace.trace, &store), window, unknown, &options)?)
}

/// The sums of a window, over all tasks or those that are chosen.
fn sums(trace: &Viewed<'_>, window: (Ts, Ts), chosen: Option<&ChosenTasks>) -> Result<Value, Fault> {
    let store = trace.store()?;
    let tasks = store.index().tasks();
    let analysis = (WindowSums::new(tasks, trace.watch(), chosen), UnknownParts::of(ChosenCpus::default()));
    let (mut detail, unknown) = store.window(window.0, window.1, analysis)?;
    let trust = match chosen {
        None if window == trace.extent() => trace.trust()?.clone(),
        None => WindowTrust::of((trace.trace, &store), window, unknown, &trace.options())?,
        Some(chosen) => {
            let counts = |task: &sched::Task, _: &SchedState| chosen.has(tasks, task.pid);
            let options =
                workcons::Options { waiters: Waiters::Application, application: Some(&counts), ..trace.options() };
            let report = store.window(window.0, window.1, WorkConservation::new(&options))?;
            detail.violation = report.violation.map_or(0, |violation| violation.ns);
            WindowTrust::of((trace.trace, &store), window, unknown, &options)?
        }
    };
    let mut answer = serde_json::to_value(detail).unwrap_or_default();
    answer["trust"] = serde_json::to_value(trust).unwrap_or_default();
    answer["chosen"] = json!(chosen.map(|chosen| chosen.number));
    Ok(answer)
}

/// A list of intervals, the longest or largest first. `missed` makes that of the missed steals.
pub(crate) fn list(
    trace: &Viewed<'_>,
    kind: ListKind,
    missed: &dyn Fn() -> Result<Value, NotReady>,
) -> Result<Value, NotReady> {
    match kind {
        ListKind::Missed => missed(),
        kind => Ok(intervals(trace.store()?.index(), kind, trace.extent().0)),
    }
}

/// A list of an index, with times from `zero`.
fn intervals(index: &Index, kind: ListKind, zero: Ts) -> Value {
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
            episodes
        }
        ListKind::Waits => rows(List::Waits, |wait| {
            let task = wait.task.map_or_else(String::new, |(pid, comm)| pid.named(comm));
            let on = wait.cpus.map_or_else(String::new, |cpus| format!(" on {}", cpus.text()));
            format!("{task} waited {}{on}", wait.to.since(wait.from).human())
        }),
        ListKind::Herds => herds(index, zero),
        // `why` counts missed steals, at the first request: they are not in the index.
        ListKind::Missed => Value::Null,
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
fn search(trace: &Viewed<'_>, text: &str, from_ns: u64, skip: u64) -> Result<Value, Fault> {
    let sought = text.trim().to_lowercase();
    if sought.is_empty() || sought.len() > 100 {
        return Err(Fault::Bad("q is a text of at most 100 bytes"));
    }
    let store = trace.store()?;
    let mut tasks: Vec<_> = store.index().tasks().list().iter().filter(|task| is_meant(task, &sought)).collect();
    tasks.sort_by_key(|task| std::cmp::Reverse(task.run_ns));
    let first: Vec<Pid> = tasks.iter().take(FOUND).map(|task| task.pid).collect();
    let events = events(trace, &sought, instant(trace, from_ns), skip);
    let next = events.next.map(|(from, skip)| json!({ "from": from, "skip": skip }));
    Ok(json!({
        "tasks": first, "tasks_number": tasks.len(),
        "events": events.listed, "events_number": events.number, "complete": events.complete, "next": next,
    }))
}

/// The events that a search finds.
struct FoundEvents {
    listed: Vec<Value>,
    /// The number of all that were found, listed or not.
    number: u64,
    /// Whether the search reached the end of the trace.
    complete: bool,
    /// The place at which the next ones begin, as a search takes it; nothing if there are none.
    next: Option<(u64, u64)>,
}

/// The events of this name from an instant on, without the first ones that were listed before.
fn events(viewed: &Viewed<'_>, sought: &str, from: Ts, skip: u64) -> FoundEvents {
    let (trace, zero) = (viewed.trace, viewed.extent().0);
    let full = |format: &parse::EventFormat| format!("{}:{}", format.system, format.name).to_lowercase();
    let wanted: Vec<u16> = trace.formats().iter().filter(|f| full(f).contains(sought)).map(|f| f.id).collect();
    let mut found = FoundEvents { listed: Vec::new(), number: 0, complete: true, next: None };
    if wanted.is_empty() {
        return found;
    }
    let mut searched = 0u64;
    // The instant that was searched last, and the number of its events that were found: up to the last one listed, and in all.
    let mut place = (from, 0);
    let mut last = place;
    trace.records_from(from, &mut |record| {
        searched += 1;
        if last.0 != record.ts {
            last = (record.ts, 0);
        }
        if wanted.contains(&record.id()) {
            found.number += 1;
            last.1 += 1;
            if found.number > skip && found.listed.len() < FOUND {
                let name = record.format().map_or_else(String::new, |format| format.name.to_string());
                let at = record.ts.since(zero).0;
                found.listed.push(json!({ "at": at, "cpu": record.cpu, "name": name, "text": record.printed() }));
                place = last;
            }
        }
        found.complete = searched < SEARCHED;
        if found.complete { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let listed = found.listed.len() as u64;
    let place = if listed == FOUND as u64 { place } else { last };
    // A search that stopped goes on where it did.
    let goes_on = found.number > skip + listed || !found.complete;
    found.next = (goes_on && place != (from, skip)).then(|| (place.0.since(zero).0, place.1));
    found
}
