//! The lines of `perf sched timehist -g` by their stacks, and the keys that LKP's monitor `perf-sched` makes of them.
//!
//! The numbers are perf's, by its own reading of the events, and not those of the state: perf gives the wait before a run and the run itself to
//! the stack with which that run ends, and counts the scheduling delay in the wait as well.

use crate::Options;
use parse::StackId;
use sched::limits::keep_of_pid;
use sched::seeded::SeededMap;
use sched::{Cpu, EventKind, Pid, SchedEvent, Ts};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The functions that perf leaves out of a stack.
const SKIPPED: [&str; 3] = ["schedule", "__schedule", "preempt_schedule"];
/// The maximum number of functions that perf resolves: the five that it prints, and room for two that it leaves out.
const RESOLVED: usize = 7;
/// The number of functions in a key.
const OF_KEY: usize = 5;
/// The mark of a key whose wakeups are too few to be compared, as a part of all: 1 / this.
const FEW: u64 = 200;

/// The times of the lines with one key, in whole microseconds as perf prints them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LineSums {
    count: u64,
    /// The sums and the greatest of the wait, the delay and both together.
    sums: [u64; 3],
    most: [u64; 3],
}

impl LineSums {
    fn add(&mut self, wait_ns: u64, delay_ns: u64) {
        let (wait, delay) = (wait_ns / 1000, delay_ns / 1000);
        self.join(&LineSums { count: 1, sums: [wait, delay, wait + delay], most: [wait, delay, wait + delay] });
    }

    fn join(&mut self, other: &LineSums) {
        self.count += other.count;
        for kind in 0..3 {
            self.sums[kind] = self.sums[kind].saturating_add(other.sums[kind]);
            self.most[kind] = self.most[kind].max(other.most[kind]);
        }
    }

    /// The greatest of a kind in milliseconds.
    fn most(&self, kind: usize) -> f64 {
        self.most[kind] as f64 / 1000.0
    }

    /// The mean of a kind in milliseconds, rounded to microseconds.
    fn mean(&self, kind: usize) -> f64 {
        (self.sums[kind] as f64 / self.count.max(1) as f64).round() / 1000.0
    }
}

/// The times of a task that perf keeps.
#[derive(Clone, Copy, Debug, Default)]
struct TaskTimes {
    left: Option<Ts>,
    ready: Option<Ts>,
}

/// The lines of `perf sched timehist` by the stack of the switch-out.
#[derive(Debug, Default)]
pub(crate) struct Timehist {
    tasks: SeededMap<Pid, TaskTimes>,
    /// The latest switch on each CPU.
    switched: Vec<Option<Ts>>,
    lines: SeededMap<StackId, LineSums>,
}

/// A step that an event is for the lines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LineStep {
    /// A task is woken.
    Ready(Pid, Ts),
    /// A task exits, at which perf forgets it.
    Exits(Pid),
    /// A CPU switches from a task, at this stack where the switch is counted.
    Switches { cpu: Cpu, pid: Pid, ts: Ts, stack: Option<StackId>, is_runnable: bool },
}

/// Returns what an event means. `is_counted`: the event is in the window; `has_wakings`: wakeups count from `sched_waking`.
pub(crate) fn line(event: &SchedEvent, options: &Options<'_>, has_wakings: bool, is_counted: bool) -> Option<LineStep> {
    if options.stacks.events() == 0 {
        return None;
    }
    Some(match event.kind {
        EventKind::Waking { task, .. } | EventKind::WakeupNew { task, .. } => LineStep::Ready(task.pid, event.ts),
        EventKind::Wakeup { task, .. } if !has_wakings => LineStep::Ready(task.pid, event.ts),
        EventKind::Exit { pid } => LineStep::Exits(pid),
        EventKind::Switch { prev, state, .. } => {
            let (cpu, pid, ts) = (event.cpu, prev.pid, event.ts);
            let is_counted = is_counted && !pid.is_idle();
            let stack = is_counted.then(|| options.stacks.of_switch(ts, cpu, pid)).flatten();
            LineStep::Switches { cpu, pid, ts, stack, is_runnable: state.is_runnable() }
        }
        _ => return None,
    })
}

impl Timehist {
    /// Follows what an event means.
    pub(crate) fn take(&mut self, line: &LineStep) {
        match *line {
            LineStep::Ready(pid, ts) => self.ready(pid, ts),
            LineStep::Exits(pid) => drop(self.tasks.remove(&pid)),
            LineStep::Switches { cpu, pid, ts, stack, is_runnable } => {
                if self.switched.len() <= cpu.index() {
                    self.switched.resize(cpu.index() + 1, None);
                }
                let came = self.switched[cpu.index()].replace(ts);
                if pid.is_idle() {
                    return;
                }
                let times = self.tasks.get(&pid).copied().unwrap_or_default();
                if let Some(stack) = stack {
                    let since =
                        |start: Option<Ts>| came.zip(start).map_or(0, |(came, start)| came.since(start.min(came)).0);
                    self.lines.entry(stack).or_default().add(since(times.left), since(times.ready));
                }
                let ready = is_runnable.then_some(ts);
                keep_of_pid(&mut self.tasks, pid, TaskTimes { left: Some(ts), ready });
            }
        }
    }

    /// A task is woken, unless it is ready to run already.
    fn ready(&mut self, pid: Pid, ts: Ts) {
        let times = self.tasks.get(&pid).copied().unwrap_or_default();
        if times.ready.is_none() {
            keep_of_pid(&mut self.tasks, pid, TaskTimes { ready: Some(ts), ..times });
        }
    }

    /// The sums of the lines by key. Lines whose stack shows fewer than two functions have none.
    pub(crate) fn by_key(&self, options: &Options<'_>) -> BTreeMap<String, LineSums> {
        let mut keys: BTreeMap<String, LineSums> = BTreeMap::new();
        for (stack, sums) in &self.lines {
            let name = |frame: &parse::StackFrame| {
                // perf has no maps of processes there.
                let of_kernel = options.names.as_ref().filter(|_| !frame.is_user);
                of_kernel.and_then(|names| names(*frame)).unwrap_or_else(|| "[unknown]".to_owned())
            };
            let names = options.stacks.frames(*stack).iter().take(RESOLVED).map(name);
            let names: Vec<String> = names.filter(|name| !SKIPPED.contains(&name.as_str())).collect();
            if names.len() >= 2 {
                let key = names.join(".").split('.').take(OF_KEY).collect::<Vec<&str>>().join(".");
                keys.entry(key).or_default().join(sums);
            }
        }
        keys
    }
}

/// The kinds of times in the order of the numbers, each with its name for all keys together.
const KINDS: [(&str, &str); 3] =
    [("wait_time", "total_wait_time"), ("sch_delay", "total_sch_delay"), ("wait_and_delay", "total_wait_and_delay")];

/// Returns the keys and their values as the parser of LKP's monitor `perf-sched` prints them, each behind the name of that monitor.
pub(crate) fn lkp(keys: &BTreeMap<String, LineSums>) -> String {
    let mut all = LineSums::default();
    keys.values().for_each(|sums| all.join(sums));
    let mut out = String::new();
    if all.count == 0 {
        return out;
    }
    // Writing to a string cannot fail.
    for (kind, (_, name)) in KINDS.iter().enumerate() {
        if kind == 2 {
            let _ = writeln!(out, "perf-sched.{name}.count.ms: {}", all.count);
        }
        let _ = writeln!(out, "perf-sched.{name}.max.ms: {:?}", all.most(kind));
        let _ = writeln!(out, "perf-sched.{name}.average.ms: {:?}", all.mean(kind));
    }
    let mut sorted: Vec<(&String, &LineSums)> = keys.iter().collect();
    sorted.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.count));
    for (key, sums) in sorted {
        for (kind, (name, _)) in KINDS.iter().enumerate() {
            if kind == 2 {
                if sums.mean(kind) < all.mean(kind) && sums.count < all.count / FEW {
                    continue;
                }
                let _ = writeln!(out, "perf-sched.{name}.count.{key}: {}", sums.count);
            }
            let _ = writeln!(out, "perf-sched.{name}.max.ms.{key}: {:?}", sums.most(kind));
            let _ = writeln!(out, "perf-sched.{name}.avg.ms.{key}: {:?}", sums.mean(kind));
        }
    }
    out
}
