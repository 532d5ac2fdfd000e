//! The scheduler while it runs: the pages of an instance, measured interval by interval.
//!
//! The pages of an interval become a trace in memory, which the same reader, pass and analyses read as any other. The state
//! at the end of an interval is noted as `cut` notes it for a part of a trace, and the next interval begins with it. This program's
//! own tasks are left out of the figures, and all of it is done by one thread: threads that begin and end are events.

mod facts;

use anyhow::Result;
use events::{Balance, BalanceReport};
use facts::Facts;
use latency::{Latency, Measure};
use machine::{Machine, Root};
use record::buffers::default_size;
use record::events::{Available, Wanted};
use sched::lengths::Summary;
use sched::pass::{Extent, Sink};
use sched::{
    Affinity, Analysis, ChosenCpus, Comm, Cpu, Current, Diagnostics, EventIssue, EventKind, EventSource, Migration,
    NoteTaker, Pass, Past, Pid, SchedEvent, SchedState, Span, Task, TaskState, Topology, Ts,
};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracedat::{Options, Trace};
use tracefs::{Instance, Pages, Settings, TraceFile, Tracefs};
use workcons::WorkConservation;

/// Maximum number of bytes of the pages of an interval. A machine that records more loses the rest, which is reported
/// as a loss.
const MOST_HELD: usize = 64 << 20;

/// The time between two readings of the buffers.
pub(crate) const BETWEEN: Duration = Duration::from_millis(100);

/// The number of tasks that waited longest in an interval.
const TASKS: usize = 8;

/// A page, with its CPU.
type Page = (u32, Vec<u8>);

/// Follows an instance.
pub(crate) struct Follower {
    pages: Pages,
    file: TraceFile,
    topology: Topology,
    facts: Facts,
    now: Vec<Page>,
    held: usize,
    /// The state at the end of the interval before.
    past: Option<Past>,
}

/// Creates the instance that is followed, and its follower.
pub(crate) fn follow(tracefs: &Tracefs, buffer: Option<u64>, clock: Option<String>) -> Result<(Instance, Follower)> {
    let plan = record::EventPlan::new(&Wanted::default(), &Kernel(tracefs))?;
    let root = Root::running();
    // Pages are read each tenth of a second, but on an overloaded machine this program waits as well.
    let buffer_kb = buffer.unwrap_or_else(|| default_size(available_kb(), root.online()));
    let instance = Instance::create_live(tracefs, &Settings { buffer_kb, clock, events: plan.events })?;
    let machine = Machine::read(&root, false);
    let release = machine.kernel.release.clone().unwrap_or_default();
    let file = TraceFile::of(tracefs, &["sched", "task"], &release, &instance.clock())?;
    let pages = Pages::open(instance.folder(), file.page_size())?;
    let facts = Facts::new(Path::new("/proc"), root.online_cpus());
    Ok((instance, Follower::new(pages, file, machine.topology(), facts)))
}

/// The events of the running kernel.
pub(crate) struct Kernel<'t>(pub(crate) &'t Tracefs);

impl Available for Kernel<'_> {
    fn has(&self, path: &str) -> bool {
        self.0.has_event(path)
    }

    fn systems_with(&self, name: &str) -> Vec<String> {
        self.0.systems_with(name)
    }
}

/// The memory that is available, in KiB.
pub(crate) fn available_kb() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// An interval, measured.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Moment {
    /// The name and version of the schema, `schedviz/top/2`.
    pub(crate) schema: &'static str,
    /// The start of the interval, on the trace's clock.
    pub(crate) from_ns: Ts,
    /// The end of the interval.
    pub(crate) to_ns: Ts,
    /// The number of events in the interval that are not about this program's own tasks.
    pub(crate) events: u64,
    /// The number of events in the interval about this program's own tasks, which are left out of the figures.
    pub(crate) own_events: u64,
    /// The time that this program's own tasks ran, in percent of one CPU's time.
    pub(crate) own_percent: f64,
    /// The number of places where events were lost.
    pub(crate) losses: u64,
    /// The CPU time of which nothing is known, in percent.
    pub(crate) unknown_percent: f64,
    /// The time in violation of work conservation, in percent of the interval.
    pub(crate) violation_percent: f64,
    /// The CPU time lost to the violation, in percent of the interval times the CPUs.
    pub(crate) cpu_time_lost_percent: f64,
    /// The number of CPUs that are online or had events.
    pub(crate) cpus: usize,
    /// The mean number of running tasks.
    pub(crate) running: f64,
    /// The mean number of waiting tasks.
    pub(crate) waiting: f64,
    /// The wakeup latency.
    pub(crate) wakeup: Summary,
    /// The waits of preempted tasks.
    pub(crate) preempted: Summary,
    /// The number of migrations by cause; causes that did not occur are absent.
    pub(crate) migrations: Vec<Migrations>,
    /// The CPUs at the end of the interval.
    pub(crate) queues: Vec<Queue>,
    /// The tasks that waited longest in the interval, the longest first.
    pub(crate) tasks: Vec<Waited>,
}

/// The migrations of a cause.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Migrations {
    /// The cause, in the words of `migrations`.
    pub(crate) cause: String,
    /// The number of migrations.
    pub(crate) count: u64,
}

/// A CPU at the end of an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Queue {
    /// The CPU.
    pub(crate) cpu: Cpu,
    /// The occupant.
    pub(crate) current: Current,
    /// The name of the running task; empty where none runs.
    pub(crate) command: Comm,
    /// The names of the waiting tasks.
    pub(crate) waiting: Vec<Comm>,
}

/// A task that waited in an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Waited {
    /// The number of the task.
    pub(crate) pid: Pid,
    /// The name of the task.
    pub(crate) command: Comm,
    /// The time that it waited, in nanoseconds.
    pub(crate) waiting_ns: u64,
    /// The time that it ran, in nanoseconds.
    pub(crate) running_ns: u64,
}

impl Follower {
    /// Follows the pages of an instance, whose events `file` describes.
    fn new(pages: Pages, file: TraceFile, topology: Topology, facts: Facts) -> Follower {
        Follower { pages, file, topology, facts, now: Vec::new(), held: 0, past: None }
    }

    /// Takes the pages that the kernel has filled. Called several times in an interval, so that no buffer overflows.
    pub(crate) fn collect(&mut self) -> Result<()> {
        let room = MOST_HELD.saturating_sub(self.held) / self.file.page_size().max(1);
        let (now, held) = (&mut self.now, &mut self.held);
        self.pages.read(room, &mut |cpu, page| {
            if *held < MOST_HELD {
                *held += page.len();
                now.push((cpu, page.to_vec()));
            }
        })?;
        Ok(())
    }

    /// Collects until `end`, or until `stops` holds after a collection; whether it reached the end.
    pub(crate) fn collect_until(&mut self, end: Instant, mut stops: impl FnMut() -> bool) -> Result<bool> {
        while Instant::now() < end {
            std::thread::sleep(BETWEEN.min(end.saturating_duration_since(Instant::now())));
            self.collect()?;
            if stops() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Measures the interval since the last measurement. None, if it has no event.
    ///
    /// CPUs are read one after the other, so that an event can be there that is later than one still missing. The interval ends
    /// with the last event of one collection, when another one has read every CPU since.
    pub(crate) fn measure(&mut self) -> Result<Option<Moment>> {
        self.collect()?;
        let whole = self.now.len();
        let end = match self.trace(whole)? {
            Some(trace) => trace.extent().map(|(_, last)| Ts(last.0 + 1)),
            None => None,
        };
        self.collect()?;
        let from = self.past.as_ref().map(|past| past.from);
        let (Some(end), Some(trace)) =
            (end.filter(|end| from.is_none_or(|from| from < *end)), self.trace(self.now.len())?)
        else {
            return Ok(None);
        };
        // The events behind the end are in the last pages: these are read again.
        self.now.drain(..whole);
        self.held = self.now.iter().map(|(_, page)| page.len()).sum();
        let mut live = Live {
            events: Vec::new(),
            past: self.past.take().map(|past| Arc::new(Past { to: end, end, ..past })),
            end,
        };
        trace.events()?.events(&mut |events| {
            let inside = |event: &&SchedEvent| event.ts < end && from.is_none_or(|from| event.ts >= from);
            live.events.extend(events.iter().filter(inside));
            ControlFlow::Continue(())
        })?;
        if live.events.is_empty() && live.past.is_none() {
            return Ok(None);
        }
        let own = self.facts.read_own();
        let affinity = self.facts.affinity(&live.events, live.past.as_deref());
        let seen: HashSet<Cpu> = live.cpus().collect();
        let idle = self.facts.idle(|cpu| !seen.contains(&cpu));
        let online = self.facts.online();
        let around = Around { topology: &self.topology, affinity: &affinity, idle, online, own: &own };
        let (moment, past) = measured(&live, &around, &trace.diagnostics().clone())?;
        self.past = Some(past);
        Ok(Some(moment))
    }

    /// The trace of the first pages; none without a page.
    fn trace(&self, pages: usize) -> Result<Option<Trace>> {
        let pages = self.now.get(..pages).unwrap_or_default();
        if pages.is_empty() {
            return Ok(None);
        }
        let bytes = self.file.with_pages(pages.iter().map(|(cpu, page)| (*cpu, page.as_slice())));
        // Threads would be started for each interval, and be events of it.
        Ok(Some(Trace::from_bytes(bytes, Options { threads: 1, ..Options::default() })?))
    }
}

/// The events of an interval.
struct Live {
    events: Vec<SchedEvent>,
    /// The state before them.
    past: Option<Arc<Past>>,
    /// The end, an instant behind the last event.
    end: Ts,
}

impl Live {
    /// The CPUs that have had events.
    fn cpus(&self) -> impl Iterator<Item = Cpu> {
        let past = self.past.iter().flat_map(|past| &past.cpus).filter(|past| past.observed).map(|past| past.cpu);
        past.chain(self.events.iter().map(|event| event.cpu))
    }
}

impl EventSource for &Live {
    type Error = std::convert::Infallible;

    fn extent(&mut self) -> Result<Extent, Self::Error> {
        let extent = self.events.as_slice().extent()?;
        // They are recorded, whether or not there was one.
        Ok(Extent { wakeups: true, end: self.end, past: self.past.clone(), ..extent })
    }

    fn events(&mut self, sink: &mut Sink<'_>) -> Result<(), Self::Error> {
        self.events.as_slice().events(sink)
    }

    fn births(&mut self) -> bool {
        true
    }
}

/// The facts about the machine in an interval.
struct Around<'f> {
    topology: &'f Topology,
    affinity: &'f Affinity,
    /// The CPUs without any event so far that have idled.
    idle: Vec<Cpu>,
    /// The number of CPUs that are online.
    online: usize,
    /// This program's own tasks.
    own: &'f HashSet<Pid>,
}

/// Measures an interval; the state at its end is that before the next one.
fn measured(live: &Live, around: &Around<'_>, of_source: &Diagnostics) -> Result<(Moment, Past)> {
    let (own, topology) = (around.own, around.topology);
    let is_own = |task: &Task, _: &SchedState| own.contains(&task.pid);
    let is_other = |task: &Task, _: &SchedState| !own.contains(&task.pid);
    let moves_other = |migration: &Migration| !own.contains(&migration.pid);
    let from = live.past.as_ref().map_or(live.events.first().map_or(live.end, |event| event.ts), |past| past.from);
    let conserve = workcons::Options {
        zero: from,
        topology: topology.clone(),
        affinity: around.affinity.restricts().then_some(around.affinity),
        assume_idle: around.idle.clone(),
        excluded: Some(&is_own),
        ..Default::default()
    };
    let waits =
        latency::Options { zero: from, topology: topology.clone(), tasks: Some(&is_other), ..Default::default() };
    let all = ChosenCpus::default();
    let analyses = || {
        let balance = Balance::new(topology, &all, from, live.end).only(&moves_other);
        (WorkConservation::new(&conserve), Latency::new(&waits), balance, Glance::without(own))
    };
    let outcome = never(Pass::over(live).run(analyses));
    let next = sched::Window { from: Some(live.end), to: None };
    let notes = never(Pass::over(live).window(next).run(|| (NoteTaker::default(), latency::NoteTaker::new(&waits))));
    let (mut past, noted) = notes.output;
    past.notes.extend(noted);
    let (violation, latency, balance, glance) = outcome.output;
    let (from, to) = (outcome.from, live.end);
    let length = to.since(from).0.max(1) as f64;
    let observed = violation.cpus.observed;
    let cpus = around.online.max(observed);
    // A CPU without events that did not idle is unknown throughout.
    let of_all = |percent: f64| percent * observed as f64 / cpus.max(1) as f64;
    let silent = 100.0 * (cpus - observed) as f64 / cpus.max(1) as f64;
    let moment = Moment {
        schema: "schedviz/top/2",
        from_ns: from,
        to_ns: to,
        events: glance.events,
        own_events: glance.own_events,
        own_percent: 100.0 * glance.own_running as f64 / length,
        losses: losses(&outcome.diagnostics) + losses(of_source),
        unknown_percent: of_all(violation.unknown.unknown_percent) + silent,
        violation_percent: violation.movable.percent,
        cpu_time_lost_percent: of_all(violation.movable.cpu_time_lost_percent),
        cpus,
        running: (violation.mean_running - glance.own_running as f64 / length).max(0.0),
        waiting: violation.mean_waiting,
        wakeup: latency.of(Measure::Wakeup),
        preempted: latency.of(Measure::Preempted),
        migrations: by_cause(&balance),
        queues: glance.queues,
        tasks: glance.waited,
    };
    Ok((moment, past))
}

fn never<T>(result: Result<T, std::convert::Infallible>) -> T {
    result.unwrap_or_else(|never| match never {})
}

fn losses(diagnostics: &Diagnostics) -> u64 {
    diagnostics.count(EventIssue::EventsLost)
}

fn by_cause(report: &BalanceReport) -> Vec<Migrations> {
    let cell = |cell: &events::Cell| Migrations { cause: cell.cause.name().to_owned(), count: cell.count };
    report.causes.iter().map(cell).collect()
}

/// The queues at the end of a window, and the tasks that waited longest in it.
#[derive(Default)]
struct Glance<'o> {
    /// This program's own tasks.
    own: Option<&'o HashSet<Pid>>,
    events: u64,
    own_events: u64,
    own_running: u64,
    tasks: HashMap<Pid, Waited>,
    queues: Vec<Queue>,
    waited: Vec<Waited>,
}

impl<'o> Glance<'o> {
    fn without(own: &'o HashSet<Pid>) -> Glance<'o> {
        Glance { own: Some(own), ..Glance::default() }
    }

    fn is_own(&self, pid: Pid) -> bool {
        self.own.is_some_and(|own| own.contains(&pid))
    }

    /// Whether an event would not be there without this program.
    fn is_about_own(&self, event: &SchedEvent) -> bool {
        match event.kind {
            EventKind::Switch { prev, next, .. } => self.is_own(prev.pid) || self.is_own(next.pid),
            EventKind::Waking { task, .. } | EventKind::Wakeup { task, .. } | EventKind::WakeupNew { task, .. } => {
                self.is_own(task.pid)
            }
            EventKind::Migrate { task, .. } => self.is_own(task.pid),
            _ => self.is_own(event.pid),
        }
    }
}

impl<'o> Analysis for Glance<'o> {
    type Output = Glance<'o>;

    fn after(&mut self, event: &SchedEvent, _: &SchedState) {
        match self.is_about_own(event) {
            true => self.own_events += 1,
            false => self.events += 1,
        }
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        let (running, waiting) = match span.state {
            TaskState::Running(_) => (span.duration().0, 0),
            TaskState::Waiting(_) => (0, span.duration().0),
            _ => return,
        };
        if self.is_own(span.pid) {
            self.own_running += running;
            return;
        }
        let nothing = Waited { pid: span.pid, command: Comm::EMPTY, waiting_ns: 0, running_ns: 0 };
        let task = self.tasks.entry(span.pid).or_insert(nothing);
        task.running_ns += running;
        task.waiting_ns += waiting;
        if let Some(known) = state.task(span.task) {
            task.command = known.comm;
        }
    }

    fn finish(mut self, _: Ts, state: &SchedState) -> Glance<'o> {
        let queue = |cpu: Cpu| Queue {
            cpu,
            current: state.current(cpu),
            command: state.running(cpu).map_or(Comm::EMPTY, |task| task.comm),
            waiting: state.waiting(cpu).filter(|task| !self.is_own(task.pid)).map(|task| task.comm).collect(),
        };
        self.queues = state.observed().map(queue).collect();
        self.waited = self.tasks.drain().map(|(_, task)| task).filter(|task| task.waiting_ns > 0).collect();
        self.waited.sort_by_key(|task| (std::cmp::Reverse(task.waiting_ns), task.pid));
        self.waited.truncate(TASKS);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use testkit::{Simulation, TraceBuilder};
    use tracefs::Tracefs;

    /// A folder that stands in for tracefs, with the descriptions of the events of `builder`.
    fn tracefs(folder: &Path, builder: &TraceBuilder) -> Tracefs {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            std::fs::write(path, text).expect("written");
        };
        std::fs::create_dir_all(folder.join("instances/schedviz-live")).expect("created");
        write("events/header_page", &builder.header_page());
        write("events/header_event", "# compressed entry header\n");
        for (nth, (system, text)) in builder.layout().formats().iter().enumerate() {
            write(&format!("events/{system}/event{nth:02}/format"), text);
        }
        Tracefs::find(Some(folder)).expect("a tracefs")
    }

    #[test]
    fn an_interval_has_the_numbers_of_the_window() {
        let events = Simulation::run(11, 6, 4000).events;
        let builder = TraceBuilder::default();
        let folder = tempfile::tempdir().expect("a folder");
        let tracefs = tracefs(folder.path(), &builder);
        let live = folder.path().join("instances/schedviz-live");
        // The kernel fills the first half, then the second.
        let middle = events.len() / 2;
        let mut moments = Vec::new();
        let mut follower: Option<Follower> = None;
        for half in [&events[..middle], &events[middle..]] {
            for (cpu, pages) in builder.rings(half) {
                let buffer = live.join(format!("per_cpu/cpu{cpu}"));
                std::fs::create_dir_all(&buffer).expect("created");
                let path = buffer.join("trace_pipe_raw");
                let mut known = std::fs::read(&path).unwrap_or_default();
                known.extend(pages.concat());
                std::fs::write(path, known).expect("written");
            }
            let follower = follower.get_or_insert_with(|| {
                let file = TraceFile::of(&tracefs, &["sched", "task"], "6.12.0", "[local] global").expect("a file");
                let pages = Pages::open(&live, file.page_size()).expect("buffers");
                // Six CPUs with events, and two that are silent. No task is known to be bound.
                Follower::new(pages, file, Topology::default(), Facts::new(folder.path(), (0..8).map(Cpu)))
            });
            follower.collect().expect("read");
            moments.push(follower.measure().expect("measured").expect("an interval"));
        }
        let [first, second] = moments.try_into().expect("two intervals");
        let end = Ts(events[events.len() - 1].ts.0 + 1);
        assert_eq!((first.from_ns, first.to_ns, second.to_ns), (events[0].ts, second.from_ns, end));
        assert_eq!((second.losses, second.cpus), (0, 8));
        // The same window of the whole, by the analyses of the other commands.
        let window = sched::Window { from: Some(second.from_ns), to: None };
        let (conserve, waits) = (workcons::Options::default(), latency::Options::default());
        let analyses = || (WorkConservation::new(&conserve), Latency::new(&waits));
        let (violation, latency) = never(Pass::over(events.as_slice()).window(window).run(analyses)).output;
        assert!(violation.movable.percent > 0.0 && !second.tasks.is_empty() && !second.queues.is_empty());
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-3, "{a} {b}");
        near(second.violation_percent, violation.movable.percent);
        near(second.cpu_time_lost_percent, violation.movable.cpu_time_lost_percent * 6.0 / 8.0);
        near(second.running, violation.mean_running);
        near(second.waiting, violation.mean_waiting);
        assert_eq!((second.wakeup, second.preempted), (latency.of(Measure::Wakeup), latency.of(Measure::Preempted)));
        let inside = events.iter().filter(|event| event.ts >= second.from_ns).count() as u64;
        assert_eq!((second.events, second.own_events, second.own_percent), (inside, 0, 0.0));
        let schema = include_str!("../../../docs/schemas/top-2.json");
        let document = serde_json::to_value(&second).expect("JSON");
        crate::conforms::conforms(&document, &serde_json::from_str(schema).expect("JSON"), "$");
    }

    /// Two tasks share CPU 0 while CPU 1 idles; they may use CPU 0 alone. A third task is this program.
    #[test]
    fn bound_tasks_and_own_ones_are_no_violation() {
        let task =
            |pid: i32| sched::TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(format!("t{pid}").as_bytes()) };
        let switch = |ts: i64, cpu: u32, prev: i32, next: i32| {
            let state = if prev == 0 || cpu == 0 { sched::PrevState::RUNNABLE } else { sched::PrevState::asleep(1) };
            let kind = EventKind::Switch { prev: task(prev), state, next: task(next) };
            SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(prev), flags: 0, kind }
        };
        let woken = |ts: i64, pid: i32| {
            let kind = EventKind::Waking { task: task(pid), target: Cpu(0) };
            let queued = EventKind::Wakeup { task: task(pid), target: Cpu(0) };
            [kind, queued].map(|kind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(7), flags: 0, kind })
        };
        let mut events = vec![switch(0, 1, 9, 0), switch(10, 0, 0, 7)];
        events.extend(woken(20, 8));
        events.extend(woken(30, 100));
        events.extend([switch(500, 0, 7, 8), switch(600, 0, 8, 100), switch(800, 0, 100, 7), switch(1000, 0, 7, 8)]);
        let live = Live { events, past: None, end: Ts(1001) };
        let measure = |lists: &[(i32, u32)], own: &[i32]| {
            let mut affinity = Affinity::new([Cpu(0), Cpu(1)]);
            lists.iter().for_each(|(pid, cpu)| affinity.add(Pid(*pid), &std::iter::once(Cpu(*cpu)).collect()));
            let (topology, own) = (Topology::default(), own.iter().map(|pid| Pid(*pid)).collect());
            let around = Around { topology: &topology, affinity: &affinity, idle: Vec::new(), online: 2, own: &own };
            measured(&live, &around, &Diagnostics::default()).expect("measured").0
        };
        let free = measure(&[], &[]);
        assert!(free.violation_percent > 95.0, "{}", free.violation_percent);
        let bound = [(7, 0), (8, 0), (100, 0)];
        assert_eq!(measure(&bound, &[]).violation_percent, 0.0);
        // The program itself waits from 30 to 600, and runs until 800.
        let others = measure(&bound, &[100]);
        assert!((others.own_percent - 100.0 * 200.0 / 1001.0).abs() < 1e-9 && others.own_events == 4, "{others:?}");
        assert!((free.running - others.running - 200.0 / 1001.0).abs() < 1e-9);
        assert!((free.waiting - others.waiting - 771.0 / 1001.0).abs() < 1e-9, "{} {}", free.waiting, others.waiting);
        assert!(others.tasks.iter().all(|task| task.pid != Pid(100)));
        assert_eq!(others.wakeup.count, free.wakeup.count - 1);
    }
}
