//! A trace that was opened, and the part of it that is asked for.

use crate::args::{BeginArgs, Lanes, ReadArgs, TaskArgs, TraceArgs, WindowArgs, name_of, named};
use crate::formats::OutputName;
use crate::progress;
use crate::trace::ext::ExtScheduler;
use anyhow::{Result, bail};
use lanes::{ColorBy, Coloring, Lane, LaneGroups, LanesOf, MANY_LANES, learn, read_lanes};
use machine::Machine;
use parse::{EventStream, Trace, Want};
use sched::affinity::AffinityRecords;
use sched::analysis::BEHIND;
use sched::names::NameHistory;
use sched::pass::Pieces;
use sched::topology::format_cpu_list;
use sched::{
    Affinity, Analysis, Chosen, Comm, Cpu, CpuCapacities, Diagnostics, EventIssue, EventKind, EventSource, Joined,
    OfSelection, Outcome, Pass, Past, Pid, SchedEvent, Selected, Selection, TaskRef, Topology, Tracepoint, Ts, Window,
};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use timeline::{CpuLanes, Drawable, PALETTE};

/// The name of the note of a part on the tasks that leave the CPUs first behind it.
const LEAVERS: &str = "leavers";

/// A trace, opened for a command.
pub struct Session {
    /// The recording, opened.
    pub trace: Trace,
    path: PathBuf,
    /// The options of reading, and the messages meanwhile.
    pub read: ReadArgs,
    /// The trace as texts and printed commands name it.
    pub drawable: Drawable,
    /// The trace's first instant.
    pub start: Ts,
    /// The window as it was asked for.
    pub window: Window,
    /// The window's start.
    pub from: Ts,
    /// The window's end.
    pub to: Ts,
    /// The last instant of the window.
    last: Ts,
    /// The topology of the machine; empty where it is not known.
    pub topology: Topology,
    /// The machine, where a file beside the trace describes it.
    pub machine: Option<Machine>,
    /// The sched_ext scheduler that was loaded, if one was.
    pub sched_ext: Option<ExtScheduler>,
    /// The CPUs that tasks may use, where a machine file has lists of them that restrict any, or the trace has records of them.
    pub affinity: Option<Arc<Affinity>>,
    /// The application in words, where it is not the traced command with what descends from it.
    pub application: Option<String>,
    /// The CPUs with events.
    pub observed: Vec<Cpu>,
    /// The CPUs to be shown.
    pub shown: Lanes,
}

impl Session {
    /// Asks for the queued time by kind of the chosen tasks, on the CPUs that are shown; of all tasks where none are chosen.
    pub fn queued<'o>(&self, tasks: Option<&'o sched::Chosen<'o>>) -> sched::QueuedAsk<'o> {
        sched::QueuedAsk { tasks, cpus: self.shown.chosen.clone(), affinity: self.affinity.clone() }
    }

    /// Opens a trace and finds the part that is asked for. Refused if the clock counts no time, if there is no
    /// event, or none that shows the running task.
    pub fn open(path: &Path, read: &ReadArgs, window: &WindowArgs) -> Result<Session> {
        let session = Session::of_any_events(path, read, window)?;
        session.needs_switches()?;
        Ok(session)
    }

    /// Refuses a trace in which no event shows the running task.
    pub fn needs_switches(&self) -> Result<()> {
        if !self.trace.has(Tracepoint::Switch) {
            bail!(
                "{}: the running tasks are unknown: there is no sched:sched_switch in it. Record with trace-cmd record -e sched",
                self.path.display()
            );
        }
        Ok(())
    }

    /// Opens a trace, whatever its events are, and finds the part that is asked for.
    pub fn of_any_events(path: &Path, read: &ReadArgs, window: &WindowArgs) -> Result<Session> {
        let trace = read.open(path)?;
        trace.has_time().map_err(|e| named(path, e))?;
        Session::of_trace(trace, path, read, window)
    }

    /// Opens a trace to list its events. Those of a clock that counts no time are listed by its ticks, all of them.
    pub fn of_listed_events(path: &Path, read: &ReadArgs, window: &WindowArgs) -> Result<Session> {
        let trace = read.open(path)?;
        if window.bounds_time() {
            trace.has_time().map_err(|e| named(path, e))?;
        }
        Session::of_trace(trace, path, read, window)
    }

    /// Finds the part that is asked for.
    pub fn of_trace(mut trace: Trace, path: &Path, read: &ReadArgs, window: &WindowArgs) -> Result<Session> {
        let Some((start, end)) = trace.extent() else { bail!("{}: {}", path.display(), trace.no_events()) };
        let asked = window.window(start, end)?;
        let inside = match trace.past() {
            Some(past) => in_part(asked, past, start).map_err(|e| e.context(path.display().to_string()))?,
            None => asked,
        };
        let (from, to) = inside.within(start, end);
        let ends_inside = match (trace.past(), inside.to) {
            (_, None) => true,
            (Some(past), Some(_)) => to >= past.end,
            (None, Some(_)) => to >= end,
        };
        let last = if ends_inside { to } else { Ts(to.0.saturating_sub(1)).max(from) };
        let machine = read.machine(path, &trace);
        trace.set_groups(machine.iter().flat_map(Machine::groups));
        if let Some(machine) = &machine {
            trace.set_capacities(CpuCapacities::of(machine.cpus.capacities()));
            trace.set_sched_idle(machine.sched_idle(|| trace.records_policies()));
            trace.set_missed_probes(machine.missed_hits(), || machine.missed_by_probe());
        }
        let sched_ext = ExtScheduler::of(&trace, machine.as_ref());
        if sched_ext.is_some() {
            trace.set_ext_queues();
        }
        let topology = window.topology(machine.as_ref(), &trace)?;
        let observed = trace.observed();
        let affinity = affinity_of(&trace, machine.as_ref(), &observed, start);
        let shown = window.cpus(&observed, &trace.info().silent(&observed), &topology)?;
        let mut drawable = read.drawable(path, window, end.since(start));
        if trace.format_of(Tracepoint::Migrate).is_none() {
            drawable = drawable.without_migrations();
        }
        let (path, read) = (path.to_owned(), read.clone());
        let mut session = Session {
            trace,
            path,
            read,
            drawable,
            start,
            window: asked,
            from,
            to,
            last,
            topology,
            machine,
            sched_ext,
            affinity,
            application: None,
            observed,
            shown,
        };
        let sched_ext = session.sched_ext.as_ref().map(ExtScheduler::sentence);
        for doubt in [sched_ext, session.doubtful_topology(), session.doubtful_cpus()].iter().flatten() {
            session.read.message(&format!("{}: {doubt}", session.name()));
        }
        session.choose_application()?;
        Ok(session)
    }

    /// Whether the trace has a probe on the balancer with this field.
    pub fn has_probe(&self, probe: &str, field: &str) -> bool {
        has_probe(&self.trace, probe, field)
    }

    /// Whether the trace has records of the beginning and the end of throttling.
    pub fn records_throttling(&self) -> bool {
        ["throttle", "unthrottle"].iter().all(|probe| self.trace.probe(probe).is_some())
    }

    /// Whether tasks of a cgroup ran whose weight counts and is not the default, by the machine file.
    pub fn has_weighted_cgroups(&self) -> bool {
        self.machine.as_ref().is_some_and(Machine::has_weighted_cgroups)
    }

    /// The first and the last instant of the recording, or of the part of a trace that the file is.
    pub fn recording(&self) -> Option<(Ts, Ts)> {
        self.trace.past().map(|past| (past.from, past.to)).or_else(|| self.trace.extent())
    }

    /// An error with the file's name in front.
    pub fn named(&self, error: parse::Error) -> anyhow::Error {
        named(&self.path, error)
    }

    /// The path of the trace file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The trace and the window, for the names of output files.
    pub fn origin(&self) -> OutputName<'_> {
        let seconds = |ts: Ts| {
            let ns = ts.since(self.start).0;
            let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
            format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
        };
        let part = match (self.window.from, self.window.to) {
            (None, None) => None,
            (_, None) => Some(format!("{}-end", seconds(self.from))),
            (_, Some(_)) => Some(format!("{}-{}", seconds(self.from), seconds(self.to))),
        };
        OutputName::part(&self.path, part)
    }

    /// The file's name, fit to be printed.
    pub fn name(&self) -> String {
        name_of(&self.path)
    }

    /// Whether the migrations of a pass are known: some were recorded, or the file describes their kind and no task was seen on another CPU than before.
    pub fn knows_migrations(&self, diagnostics: &Diagnostics) -> bool {
        let is_described = self.trace.format_of(Tracepoint::Migrate).is_some();
        self.trace.has(Tracepoint::Migrate) || is_described && diagnostics.count(EventIssue::UnseenMigration) == 0
    }

    /// CPUs of the machine without any event, of those that were asked for.
    pub fn silent(&self) -> Vec<Cpu> {
        let mut silent = self.trace.info().silent(&self.observed);
        silent.retain(|cpu| self.shown.chosen.has(*cpu));
        silent
    }

    /// Refuses a choice of tasks, made with `option`, of which there is none in the trace: the count is then
    /// nothing, and a limit is never exceeded.
    pub fn needs_task(&self, option: &str, wanted: impl Fn(Pid, Comm) -> bool) -> Result<()> {
        let wanted = |pid: Pid, name: Comm| !pid.is_idle() && wanted(pid, name);
        let past = self.trace.past().map_or(&[][..], |past| &past.tasks);
        let mut found = past.iter().any(|task| wanted(task.pid, task.comm));
        found |= self.trace.saved_names().iter().any(|(pid, name)| wanted(*pid, *name));
        // The recorder saves a few names only; without switches no event has them.
        if !found && self.trace.has(Tracepoint::Switch) {
            let names = |event: &SchedEvent| match event.kind {
                EventKind::Switch { prev, next, .. } => wanted(prev.pid, prev.comm) || wanted(next.pid, next.comm),
                // A starving task is woken, and never runs.
                EventKind::Waking { task, .. } | EventKind::Wakeup { task, .. } => wanted(task.pid, task.comm),
                EventKind::WakeupNew { task, .. } | EventKind::Migrate { task, .. } => wanted(task.pid, task.comm),
                _ => false,
            };
            let mut search = |mut events: EventStream<'_>, to: Option<Ts>| {
                events.events(&mut |events| {
                    found = events.iter().any(names);
                    let is_behind = to.zip(events.last()).is_some_and(|(to, last)| last.ts > to);
                    if found || is_behind { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })?;
                Ok(found)
            };
            // First where it is likely, so that a window in a large trace is there at once.
            let found = self.watched(|| {
                let in_window = self.from > self.start && search(self.trace.events()?.near(self.from), Some(self.to))?;
                Ok(in_window || search(self.trace.events()?, None)?)
            })?;
            if !found {
                let name = self.name();
                bail!("{option}: there is no such task in {name}; schedviz fairness --by task lists those it has");
            }
        }
        Ok(())
    }

    /// The names of the tasks of the window, as far as switches show them.
    pub fn names(&self) -> Result<NameHistory> {
        let mut names = self.trace.past().map(|past| past.called()).unwrap_or_default();
        if self.trace.has(Tracepoint::Switch) {
            let events = self.trace.events_of(Want::Lineage)?;
            let mut events = if self.from > self.start { events.near(self.from) } else { events };
            self.watched(|| {
                events.events(&mut |events| {
                    events.iter().for_each(|event| names.learn(event));
                    let is_behind = events.last().is_some_and(|last| last.ts > self.to);
                    if is_behind { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })
            })?;
        }
        Ok(names)
    }

    /// Whether the machine had fewer CPUs than the number of this one; false where the number of CPUs is not in the
    /// file.
    fn is_beyond(&self, cpu: Cpu) -> bool {
        let machine = self.trace.info().cpus;
        machine > 0 && cpu.0 >= machine
    }

    /// A sign that the topology is of another machine than the trace.
    pub fn doubtful_topology(&self) -> Option<String> {
        if self.topology.is_empty() {
            return None;
        }
        let machine = self.trace.info().cpus;
        let without_place: Vec<Cpu> =
            self.observed.iter().copied().filter(|cpu| self.topology.place(*cpu).is_none()).collect();
        let beyond: Vec<Cpu> = self.topology.cpus().filter(|cpu| self.is_beyond(*cpu)).collect();
        match (without_place.as_slice(), beyond.as_slice()) {
            ([], []) => None,
            ([], _) => Some(format!(
                "The topology has CPUs {}, but the trace was recorded on {machine}: is it another machine's?",
                format_cpu_list(&beyond)
            )),
            (cpus, _) => Some(format!(
                "The topology lacks CPUs {} of the trace: is it another machine's?",
                format_cpu_list(cpus)
            )),
        }
    }

    /// A sign that some of the CPUs that were asked for are those of another machine.
    fn doubtful_cpus(&self) -> Option<String> {
        let machine = self.trace.info().cpus;
        let beyond = |cpu: &Cpu| self.is_beyond(*cpu) && self.observed.binary_search(cpu).is_err();
        let beyond: Vec<Cpu> = self.shown.chosen.named().filter(beyond).collect();
        (!beyond.is_empty()).then(|| {
            format!(
                "--cpus: there is no CPU {} in the trace, which was recorded on {machine}",
                format_cpu_list(&beyond)
            )
        })
    }

    /// The reason why there are no figures of the selected tasks, if that is so: printed, and returned. A selection without a task in
    /// the window is looked for in the whole trace: a task that is there, but not in the window, did nothing in it.
    pub fn why_no_figures<'c>(&self, found: Selection, selected: impl Fn() -> Selected<'c>) -> Result<Option<String>> {
        let why = if let Some(why) = found.unknowable {
            format!("{}; select tasks with --tasks or --application", sched::without_application(why))
        } else if found.found || self.watched(|| Pass::over(self.trace.events()?).run(selected))?.output.found {
            return Ok(None);
        } else {
            "no task of the trace is selected".to_owned()
        };
        self.read.message(&format!("{}: no figures of the selected tasks: {why}", self.name()));
        Ok(Some(why))
    }

    /// The reason why nothing is known of wakeups, and of what follows from them: neither they nor wakings were recorded. None if either was.
    pub fn why_no_wakeups(&self) -> Option<String> {
        let has_any = [Tracepoint::Wakeup, Tracepoint::Waking].iter().any(|event| self.trace.has(*event));
        // A part has the state before it, and the kinds of events of the whole.
        let past = self.trace.past();
        let is_part_with = past.is_some_and(|past| !past.without_wakeups || !past.without_wakings || past.by_wakings);
        let why = "neither sched:sched_wakeup nor sched:sched_waking was recorded (trace-cmd record -e sched)";
        (!has_any && !is_part_with).then(|| why.to_owned())
    }

    /// Whether cgroups were throttled in the recording, by the counters of the machine file, and no record shows which tasks were: they
    /// count as waiting.
    pub fn hides_throttling(&self) -> bool {
        let was_throttled = self.machine.as_ref().is_some_and(Machine::was_throttled);
        was_throttled && self.trace.probe("throttle").is_none()
    }

    /// The last instant of the window. An event at the very end is inside only if the trace ends there, so that the counts of adjacent
    /// windows add up to those of the whole; a window without a length is one instant.
    pub fn last(&self) -> Ts {
        self.last
    }

    /// The task that leaves each CPU shown at its first switch behind the window, up to ten seconds; empty where the window ends with the
    /// trace. A CPU that loses events before is left out.
    pub fn first_leavers(&self) -> Vec<(Cpu, TaskRef)> {
        let to = self.to;
        if self.last >= to {
            return Vec::new();
        }
        // The file of a part has no event behind it.
        if let Some(past) = self.trace.past().filter(|past| to >= past.to) {
            let note = past.notes.get(LEAVERS).and_then(|text| serde_json::from_str::<Vec<(Cpu, Pid, i32)>>(text).ok());
            let task = |(cpu, pid, prio): (Cpu, Pid, i32)| (cpu, TaskRef { pid, prio, comm: Comm::EMPTY });
            return note.into_iter().flatten().map(task).collect();
        }
        let Ok(reader) = self.trace.cpu_reader(Want::Lineage) else { return Vec::new() };
        let latest = to.after(BEHIND);
        let cpus: Vec<Cpu> = self.shown.cpus.iter().map(|(cpu, _)| *cpu).collect();
        let found = self.trace.in_parallel(cpus, |cpu| {
            let mut leaver = None;
            let buffer = *reader.buffers_of(cpu).first()?;
            reader.events(buffer, cpu, Some(to), &mut |event: &SchedEvent| {
                let is_over = match event.kind {
                    _ if event.ts < to => false,
                    _ if event.ts > latest => true,
                    EventKind::Switch { prev, .. } => {
                        leaver = Some((cpu, prev));
                        true
                    }
                    EventKind::Lost { .. } | EventKind::Offline => true,
                    _ => false,
                };
                if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            leaver
        });
        found.into_iter().flatten().collect()
    }

    /// The note of a part on the tasks that leave the CPUs first behind it; nothing where it ends with the trace.
    pub fn note_on_leavers(&self) -> Option<(String, String)> {
        let leavers: Vec<(Cpu, Pid, i32)> =
            self.first_leavers().into_iter().map(|(cpu, task)| (cpu, task.pid, task.prio)).collect();
        if leavers.is_empty() {
            return None;
        }
        Some((LEAVERS.to_owned(), serde_json::to_string(&leavers).ok()?))
    }

    /// The window as a figure has it, from its first to its last instant: an event at the very end is inside.
    pub fn page(&self) -> Window {
        Window { from: Some(self.from), to: Some(self.to) }
    }

    /// Does work on the trace, and shows how far it is.
    pub fn watched<T>(&self, work: impl FnOnce() -> Result<T, parse::Error>) -> Result<T> {
        progress::watched(&self.trace, self.read.quiet || self.read.is_beside_others, work).map_err(|e| self.named(e))
    }

    /// Does work whose length is not known beforehand, and shows for how long it has been doing `what`.
    pub fn waiting<T>(&self, what: &str, work: impl FnOnce() -> T) -> T {
        progress::waiting(what, self.read.quiet || self.read.is_beside_others, work)
    }

    /// Follows the scheduler's state through a window, for an analysis.
    pub fn follow<A: Analysis>(
        &self,
        begin: &BeginArgs,
        window: Window,
        analysis: impl Fn() -> A,
    ) -> Result<Outcome<A::Output>> {
        self.watched(|| Pass::over(begin.events(self)?).window(window).run(analysis))
    }

    /// Follows the scheduler's state through a window, for an analysis that can be made in pieces side by side.
    pub fn follow_in_pieces<A: Joined>(
        &self,
        begin: &BeginArgs,
        window: Window,
        analysis: impl Fn() -> A + Sync,
    ) -> Result<Outcome<A::Output>> {
        self.watched(|| Pass::over(begin.events(self)?).window(window).pieces(asked_pieces()).run_in_pieces(analysis))
    }

    /// Follows an analysis of selected tasks through a window as [`Session::measured`] does, in pieces side by side.
    pub fn measured_in_pieces<A: Joined<Output: OfSelection>>(
        &self,
        begin: &BeginArgs,
        window: Window,
        tasks: Option<&Chosen<'_>>,
        by_descent: bool,
        analysis: impl Fn() -> A + Sync,
    ) -> Result<(A::Output, Diagnostics)> {
        let selected = || Selected::new(tasks, by_descent);
        let outcome = self.follow_in_pieces(begin, window, || (analysis(), selected()))?;
        let (report, selection) = outcome.output;
        Ok((self.judged(report, selection, selected)?, outcome.diagnostics))
    }

    /// Withholds the figures of a report on selected tasks where there are none.
    fn judged<'c, R: OfSelection>(
        &self,
        mut report: R,
        selection: Selection,
        selected: impl Fn() -> Selected<'c>,
    ) -> Result<R> {
        self.why_no_figures(selection, selected)?.into_iter().for_each(|why| report.withhold(why));
        Ok(report)
    }

    /// Follows an analysis of selected tasks through a window: its report, without figures where the selection is
    /// unknown. `by_descent`: the selection depends on which tasks are the application.
    pub fn measured<A: Analysis<Output: OfSelection>>(
        &self,
        begin: &BeginArgs,
        window: Window,
        tasks: Option<&Chosen<'_>>,
        by_descent: bool,
        analysis: impl Fn() -> A,
    ) -> Result<(A::Output, Diagnostics)> {
        let selected = || Selected::new(tasks, by_descent);
        let outcome = self.follow(begin, window, || (analysis(), selected()))?;
        let (report, selection) = outcome.output;
        Ok((self.judged(report, selection, selected)?, outcome.diagnostics))
    }

    /// The window and the lanes of a figure from `from` to `to`.
    pub fn cpu_lanes(&self, from: Ts, to: Ts) -> CpuLanes {
        CpuLanes { from, to, zero: self.start, cpus: self.shown.cpus.clone(), all_cpus: self.shown.all.clone() }
    }

    /// A colouring that has read from the trace what its colours depend on.
    pub fn learned(&self, mut coloring: Coloring) -> Result<Coloring> {
        if let Some(by) = coloring.by.groups() {
            coloring.groups = Some(self.task_groups(by)?);
        }
        learn(&mut coloring, &self.trace, &self.topology).map_err(|e| self.named(e))?;
        Ok(coloring)
    }

    /// The lanes of the CPUs shown from `from` to `to`, without marks, in colours that were learned.
    pub fn ran(&self, from: Ts, to: Ts, coloring: Coloring) -> Result<(Vec<Lane>, lanes::Options)> {
        self.ran_by(self.lanes(from, to, coloring))
    }

    /// The lanes by these options.
    pub fn ran_by(&self, options: lanes::Options) -> Result<(Vec<Lane>, lanes::Options)> {
        let reader = self.trace.cpu_reader(Want::Switches).map_err(|e| self.named(e))?;
        Ok((read_lanes(&self.trace, &reader, &options, &[]).0, options))
    }

    /// The options by which the lanes of the CPUs shown are drawn from `from` to `to`, without marks.
    pub fn lanes(&self, from: Ts, to: Ts, coloring: Coloring) -> lanes::Options {
        lanes::Options {
            from,
            to,
            zero: self.start,
            cpus: self.shown.cpus.clone(),
            all_cpus: self.shown.all.clone(),
            group_name: self.shown.group_name.clone(),
            marks: Vec::new(),
            frequency: false,
            coloring,
            groups: None,
            pictures: 1,
            siblings: self.topology.siblings(),
        }
    }

    /// Joins the lanes of CPUs where there are more of them than can be distinguished and the topology has groups of them.
    pub fn join_lanes(&self, options: &mut lanes::Options) {
        if options.lane_count() > MANY_LANES {
            let joined = LanesOf::fitting(options.drawn(), &self.topology);
            options.groups = LaneGroups::new(joined, options.drawn(), &self.topology);
        }
    }

    /// The property that decides the colours where none is asked for. It depends on the whole trace alone, as colours do.
    pub fn usual_color(&self) -> ColorBy {
        let many = self.observed.len() > MANY_LANES && self.trace.sampled_tasks().len() > PALETTE.len();
        if many { ColorBy::Command } else { ColorBy::Pid }
    }
}

/// The division of passes into pieces that the environment asks for, as tests do: `SCHEDVIZ_PIECES` is the number of events of
/// a piece. Without it the number of threads decides.
pub fn asked_pieces() -> Option<Pieces> {
    let events = std::env::var("SCHEDVIZ_PIECES").ok()?.parse().ok()?;
    Some(Pieces { events, workers: 2, scans: true })
}

/// Whether a probe on the balancer with this field was recorded.
fn has_probe(trace: &Trace, probe: &str, field: &str) -> bool {
    trace.probe(probe).is_some_and(|format| format.field(field).is_some())
}

/// The CPUs that tasks may use, where a list of the machine restricts any, or the trace, which starts at `start`, has records
/// of them.
fn affinity_of(trace: &Trace, machine: Option<&Machine>, observed: &[Cpu], start: Ts) -> Option<Arc<Affinity>> {
    let mut affinity = Affinity::new(observed.iter().copied().chain(trace.info().silent(observed)));
    machine.into_iter().for_each(|machine| machine.add_lists(&mut affinity));
    if has_probe(trace, "set_affinity", "mask") {
        affinity = affinity.with_records(AffinityRecords::Changes(start));
    } else if has_probe(trace, "allowed", "mask") {
        affinity = affinity.with_records(AffinityRecords::Some);
    }
    affinity.restricts().then(|| Arc::new(affinity))
}

/// The window within a part of a trace that starts at `start`.
fn in_part(asked: Window, past: &Past, start: Ts) -> Result<Window> {
    let (from, to) = (asked.from.unwrap_or(past.from), asked.to.unwrap_or(past.to));
    if from > past.to || to < past.from {
        let seconds = |ts: Ts| ts.since(start).seconds();
        bail!(
            "the window is outside of this part of a trace, which is from {:.9} s to {:.9} s",
            seconds(past.from),
            seconds(past.to)
        );
    }
    Ok(asked.in_part(past))
}

impl TraceArgs {
    /// Opens the trace that the arguments name.
    pub fn open(&self) -> Result<Session> {
        Session::open(&self.path, &self.read, &self.window)
    }

    /// Opens the trace that the arguments name, whatever its events are.
    pub fn open_any(&self) -> Result<Session> {
        Session::of_any_events(&self.path, &self.read, &self.window)
    }

    /// Opens the trace that the arguments name to list its events, which needs no clock that counts time.
    pub fn open_listed(&self) -> Result<Session> {
        Session::of_listed_events(&self.path, &self.read, &self.window)
    }
}

impl BeginArgs {
    /// The events that a session's window needs.
    pub fn events<'t>(&self, session: &'t Session) -> Result<parse::EventStream<'t>, parse::Error> {
        let events = session.trace.events()?;
        Ok(if self.fast_window { events.near(session.from) } else { events })
    }
}

impl TaskArgs {
    /// Refuses options that select no task of the trace.
    pub fn check(&self, session: &Session) -> Result<()> {
        let (typed, filter) = (self.typed(), self.filter());
        if filter.takes_all() {
            return Ok(());
        }
        session.needs_task(&typed, |pid, name| filter.takes(pid, || name))
    }
}
