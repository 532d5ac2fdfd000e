//! The scheduler while it runs: the pages of an instance, measured interval by interval.
//!
//! The pages of an interval, and those of the one before it, become a trace in memory, which the same reader, pass and
//! analyses read as any other. The earlier interval shows the tasks that wait at the start; a task that waits through both without
//! an event is missing, as with `--fast-window`.

use anyhow::Result;
use events::{Balance, BalanceReport};
use latency::{Latency, Measure};
use machine::{Machine, Root};
use record::buffers::default_size;
use record::events::{Available, Wanted};
use sched::lengths::Summary;
use sched::{Analysis, ChosenCpus, Comm, Cpu, Current, Diagnostics, EventIssue, Pass, Pid, SchedState, Topology, Ts};
use sched::{Span, TaskState, Window};
use serde::Serialize;
use std::collections::HashMap;
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
    /// The pages of the interval before.
    before: Vec<Page>,
    now: Vec<Page>,
    held: usize,
    /// The end of the interval before, on the trace's clock.
    last: Option<Ts>,
}

/// Creates the instance that is followed, and its follower.
pub(crate) fn follow(tracefs: &Tracefs, buffer: Option<u64>, clock: Option<String>) -> Result<(Instance, Follower)> {
    let plan = record::Plan::new(&Wanted::default(), &Kernel(tracefs))?;
    let root = Root::running();
    // Pages are read each tenth of a second, but on an overloaded machine this program waits as well.
    let buffer_kb = buffer.unwrap_or_else(|| default_size(available_kb(), root.online()));
    let instance = Instance::create_live(tracefs, &Settings { buffer_kb, clock, events: plan.events })?;
    let machine = Machine::read(&root, false);
    let release = machine.kernel.release.clone().unwrap_or_default();
    let clock = std::fs::read_to_string(instance.folder().join("trace_clock")).unwrap_or_default();
    let file = TraceFile::of(tracefs, &["sched", "task"], &release, &clock)?;
    let pages = Pages::open(instance.folder(), file.page_size())?;
    Ok((instance, Follower::new(pages, file, machine.topology())))
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
    /// The name and version of the schema, `schedviz/top/1`.
    pub(crate) schema: &'static str,
    /// The start of the interval, on the trace's clock.
    pub(crate) from_ns: Ts,
    /// The end of the interval.
    pub(crate) to_ns: Ts,
    /// The number of events in the interval.
    pub(crate) events: u64,
    /// The number of places where events were lost.
    pub(crate) losses: u64,
    /// The CPU time of which nothing is known, in percent.
    pub(crate) unknown_percent: f64,
    /// The time in violation of work conservation, in percent of the interval.
    pub(crate) violation_percent: f64,
    /// The capacity in violation, in percent of the interval times the CPUs.
    pub(crate) capacity_percent: f64,
    /// The number of CPUs.
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
    pub(crate) fn new(pages: Pages, file: TraceFile, topology: Topology) -> Follower {
        Follower { pages, file, topology, before: Vec::new(), now: Vec::new(), held: 0, last: None }
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
    pub(crate) fn measure(&mut self) -> Result<Option<Moment>> {
        let pages = self.before.iter().chain(&self.now).map(|(cpu, page)| (*cpu, page.as_slice()));
        let bytes = self.file.with_pages(pages);
        self.before = std::mem::take(&mut self.now);
        self.held = 0;
        let trace = Trace::from_bytes(bytes, Options::default())?;
        let Some((start, end)) = trace.extent() else { return Ok(None) };
        let from = self.last.map_or(start, |last| last.max(start));
        if end <= from {
            return Ok(None);
        }
        self.last = Some(end);
        Ok(Some(measured(&trace, &self.topology, from, end)?))
    }
}

/// Measures a part of a trace.
fn measured(trace: &Trace, topology: &Topology, from: Ts, to: Ts) -> Result<Moment> {
    let conserve = workcons::Options { zero: from, topology: topology.clone(), ..Default::default() };
    let waits = latency::Options { zero: from, topology: topology.clone(), ..Default::default() };
    let all = ChosenCpus::default();
    let analyses = || {
        let balance = Balance::new(topology, &all, from, to);
        (WorkConservation::new(&conserve), Latency::new(&waits), balance, Glance::default())
    };
    let outcome = Pass::over(trace.events()?).window(Window { from: Some(from), to: Some(to) }).run(analyses)?;
    let (violation, latency, balance, glance) = outcome.output;
    Ok(Moment {
        schema: "schedviz/top/1",
        from_ns: from,
        to_ns: to,
        events: glance.events,
        losses: losses(&outcome.diagnostics),
        unknown_percent: violation.unknown.unknown_percent,
        violation_percent: violation.movable.percent,
        capacity_percent: violation.movable.capacity_percent,
        cpus: violation.cpus.observed,
        running: violation.mean_running,
        waiting: violation.mean_waiting,
        wakeup: latency.of(Measure::Wakeup),
        preempted: latency.of(Measure::Preempted),
        migrations: by_cause(&balance),
        queues: glance.queues,
        tasks: glance.waited,
    })
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
struct Glance {
    events: u64,
    tasks: HashMap<Pid, Waited>,
    queues: Vec<Queue>,
    waited: Vec<Waited>,
}

impl Analysis for Glance {
    type Output = Glance;

    fn after(&mut self, _: &sched::SchedEvent, _: &SchedState) {
        self.events += 1;
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        let (running, waiting) = match span.state {
            TaskState::Running(_) => (span.duration().0, 0),
            TaskState::Waiting(_) => (0, span.duration().0),
            _ => return,
        };
        let nothing = Waited { pid: span.pid, command: Comm::EMPTY, waiting_ns: 0, running_ns: 0 };
        let task = self.tasks.entry(span.pid).or_insert(nothing);
        task.running_ns += running;
        task.waiting_ns += waiting;
        if let Some(known) = state.task(span.task) {
            task.command = known.comm;
        }
    }

    fn finish(mut self, _: Ts, state: &SchedState) -> Glance {
        let queue = |cpu: Cpu| Queue {
            cpu,
            current: state.current(cpu),
            command: state.running(cpu).map_or(Comm::EMPTY, |task| task.comm),
            waiting: state.waiting(cpu).map(|task| task.comm).collect(),
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
                Follower::new(pages, file, Topology::default())
            });
            follower.collect().expect("read");
            moments.push(follower.measure().expect("measured").expect("an interval"));
        }
        let [first, second] = moments.try_into().expect("two intervals");
        assert_eq!((first.from_ns, second.to_ns), (events[0].ts, events[events.len() - 1].ts));
        assert_eq!((first.to_ns, second.losses), (second.from_ns, 0));
        let trace = Trace::from_bytes(builder.events(&events).build(), Options::default()).expect("a trace");
        let whole = measured(&trace, &Topology::default(), second.from_ns, second.to_ns).expect("measured");
        assert!(whole.violation_percent > 0.0 && !whole.tasks.is_empty() && !whole.queues.is_empty());
        let schema = include_str!("../../../docs/schemas/top-1.json");
        let document = serde_json::to_value(&second).expect("JSON");
        crate::conforms::conforms(&document, &serde_json::from_str(schema).expect("JSON"), "$");
        assert_eq!(serde_json::to_value(&second).expect("JSON"), serde_json::to_value(&whole).expect("JSON"));
    }
}
