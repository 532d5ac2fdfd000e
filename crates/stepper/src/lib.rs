//! Exactly what the machine looked like at one instant, and the event that is about to happen.
//!
//! In goes a trace with an instant, out comes a [`Step`]: a picture of [`sched::SchedState`] before an event, with every CPU, its
//! running task, and those that wait there in the order they came. It shows what the event is going to do: which CPUs and which
//! task it concerns, and what moves from where to where. Begin reading with [`Step`] in this file; `tui.rs` is the terminal view.
//!
//! ```
//! use sched::{Cpu, Replay, Ts};
//! use stepper::{Options, Plain, Step, text};
//!
//! // A task waits on CPU 0 for 200 ns while CPU 1 idles.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let mut replay = Replay::new(events.as_slice()).unwrap_or_else(|never| match never {});
//! replay.go(5).unwrap_or_else(|never| match never {});
//! let options = Options {
//!     zero: Ts(100),
//!     cpus: vec![(Cpu(0), None), (Cpu(1), None)],
//!     recorded: replay.recorded(),
//!     ..Options::default()
//! };
//! let step = Step::of(replay.at(), replay.state(), replay.event(), &options, &Plain);
//! assert!(step.violated, "a task waits on CPU 0, and CPU 1 idles");
//! println!("{}", text(&step, &options, 80));
//! ```

mod args;
mod figure;
mod question;
mod text;
pub mod tui;
mod words;

pub use args::StepperArgs;
pub use figure::figure;
pub use question::StepperQuestion;
pub use text::text;
pub use words::{Coming, EventLabel, Names, Plain, flags, tasks_of};

use sched::replay::RecordedSteps;
use sched::{Affinity, ChosenCpus, Comm, Cpu, Load, Pid, SchedEvent, SchedState, Task, Ts};
use serde::Serialize;
use std::sync::Arc;
use timeline::palette::TaskColors;

/// Options of this tool alone.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct StepArgs {
    /// Number of further steps to show after that one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub steps: u64,
    /// Number of steps before that one to show as well
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub back: u64,
    /// Step only at these events: SYSTEM:NAME, with * for any part; several with commas
    #[arg(long, value_name = "SYSTEM:NAME", value_delimiter = ',')]
    pub events: Vec<String>,
}

/// A task on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Who {
    /// The PID of the task.
    pub pid: Pid,
    /// The command name of the task; empty where none was seen.
    pub command: Comm,
    /// The kernel's priority: below 0 deadline, 0–99 real time, 100–139 fair; nothing where no event has shown it.
    pub prio: Option<i32>,
}

impl Who {
    fn of(task: &Task) -> Who {
        Who { pid: task.pid, command: task.comm, prio: task.known_prio() }
    }
}

/// A CPU at an instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuPicture {
    /// The number of the CPU.
    pub cpu: Cpu,
    /// The load of the CPU, which decides its look in figures.
    pub load: Load,
    /// The task that runs on the CPU, if it is known.
    pub running: Option<Who>,
    /// The waiting tasks, in the order of their arrival.
    pub waiting: Vec<Who>,
    /// The tasks that bandwidth control (`cpu.max`) keeps from running; absent if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub throttled: Vec<Who>,
}

/// The machine at an instant, and what comes next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// The number of the event that is about to happen, from 0; that of all events if none is.
    pub step: u64,
    /// The time of that event, in nanoseconds on the trace's clock; at the end the time of the last event.
    pub ts_ns: Ts,
    /// The time of that event, in nanoseconds from the start of the trace.
    pub in_trace_ns: u64,
    /// Whether work conservation is violated among the CPUs shown. Kernel threads that are bound to their CPU do not count
    /// as waiting, nor do tasks that may use no idle CPU, where that is known.
    pub violated: bool,
    /// The CPUs shown, in display order.
    pub cpus: Vec<CpuPicture>,
    /// The event about to happen.
    pub event: Option<Coming>,
    /// The flags of the event's context in the kernel's letters, such as `dn.`: interrupts and softirqs disabled, requests to reschedule, and
    /// the interrupt. Absent if no event follows, and of a loss and of a CPU that goes offline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flags: Option<String>,
}

/// The facts about a trace that a step shows beside its state.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The instant that counts as zero: the trace's start.
    pub zero: Ts,
    /// The CPUs in display order, each with its group.
    pub cpus: Vec<(Cpu, Option<u32>)>,
    /// The kind of the groups: `socket`, `node`, `LLC`.
    pub group_name: String,
    /// The selection of the CPUs among which violations are looked for.
    pub chosen: ChosenCpus,
    /// The CPUs that tasks may use, where they are known.
    pub affinity: Option<Arc<Affinity>>,
    /// The numbers of the recorded events.
    pub recorded: RecordedSteps,
    /// Whether the kernel marks lazy requests to reschedule in the flags of events (6.13 and later).
    pub has_lazy: bool,
    /// The colours of tasks.
    pub colors: TaskColors,
}

impl Step {
    /// The picture of a state before an event.
    pub fn of(step: u64, state: &SchedState, event: Option<&SchedEvent>, options: &Options, names: &dyn Names) -> Step {
        let lane = |(cpu, _): &(Cpu, Option<u32>)| CpuPicture {
            cpu: *cpu,
            load: state.load(*cpu),
            running: state.running(*cpu).map(Who::of),
            waiting: state.waiting(*cpu).map(Who::of).collect(),
            throttled: state.throttled(*cpu).map(Who::of).collect(),
        };
        let ts_ns = event.map_or(state.now(), |event| event.ts);
        let cpus: Vec<CpuPicture> = options.cpus.iter().map(lane).collect();
        Step {
            step,
            ts_ns,
            in_trace_ns: ts_ns.since(options.zero).0,
            violated: workcons::is_violated_in(state, &options.chosen, options.affinity.as_ref()),
            cpus,
            event: event.map(|event| Coming::of(event, state, names)),
            flags: event.and_then(|event| words::flags(event, options.has_lazy)),
        }
    }

    /// The event about to happen in words, behind its name and those of its flags that are set: `sched_switch [d..]: CPU 0 goes idle`.
    pub(crate) fn coming(&self) -> Option<String> {
        let event = self.event.as_ref()?;
        let flags = self.flags.as_deref().filter(|flags| flags.bytes().any(|letter| letter != b'.'));
        let flags = flags.map_or(String::new(), |flags| format!(" [{flags}]"));
        Some(format!("{}{flags}: {}", event.name, event.text))
    }

    /// The number of the CPUs shown that are busy, idle and unknown, and of the tasks that wait on them.
    pub(crate) fn summary(&self) -> String {
        let count = |is: fn(Load) -> bool| self.cpus.iter().filter(|c| is(c.load)).count();
        let busy = count(Load::runs);
        let idle = count(Load::idles);
        let offline = count(|l| l == Load::Offline);
        let unknown = self.cpus.len() - busy - idle - offline;
        let waiting: usize = self.cpus.iter().map(|c| c.waiting.len()).sum();
        let throttled: usize = self.cpus.iter().map(|c| c.throttled.len()).sum();
        let some = |n: usize, what: &str| if n == 0 { String::new() } else { format!(", {n} {what}") };
        let (unknown, offline) = (some(unknown, "unknown"), some(offline, "offline"));
        let violated = if self.violated { "; work conservation is violated" } else { "" };
        let wait = if waiting == 1 { "1 task waits".to_owned() } else { format!("{waiting} tasks wait") };
        let throttled = some(throttled, "throttled");
        let cpus = sched::nouns::counted(self.cpus.len(), "CPU");
        format!("{cpus}: {busy} busy, {idle} idle{unknown}{offline}; {wait}{throttled}{violated}")
    }

    /// The exact place of the step in the trace, in words.
    pub(crate) fn when(&self, options: &Options) -> String {
        let (s, ns) = (self.in_trace_ns / 1_000_000_000, self.in_trace_ns % 1_000_000_000);
        let (before, total) = (options.recorded.before(self.step), options.recorded.total());
        match options.recorded.is_concluded(self.step) {
            true => format!("{s}.{ns:09} s, behind event {before} of {total}"),
            false => format!("{s}.{ns:09} s, event {} of {total}", (before + 1).min(total)),
        }
    }
}

/// A CPU's name for what it does when no task runs there.
pub(crate) fn at_rest(load: Load) -> &'static str {
    match load {
        Load::Unobserved => "(no event)",
        Load::Unknown => "(unknown)",
        Load::Offline => "(offline)",
        Load::Idle | Load::SwitchPending | Load::Unserved => "",
        Load::Busy | Load::Overloaded => "?",
    }
}
