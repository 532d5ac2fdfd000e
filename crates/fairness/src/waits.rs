//! The longest waits: the tasks that ran meanwhile, and whether a CPU idled.

use crate::idling::{IdleCpu, IdleTimes};
use crate::runs::Runs;
use sched::kthread::is_bound;
use sched::state::Task;
use sched::topology::format_cpu_list;
use sched::{Comm, Cpu, CpuSet, Dur, PerTask, Pid, SchedState, TaskId, TaskState, Ts};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;

/// Number of joinings of runs until the beginning of the oldest wait is looked up again.
const LOOK: u32 = 256;

/// Maximum number of CPUs to name that idled during a wait.
const MOST_IDLE: usize = 16;
/// Maximum number of commands to name that ran.
const MOST_ANTAGONISTS: usize = 3;
/// Maximum number of run queues to remember that a waiting task left: a task that is moved all the time must not
/// take memory without end. Tasks on earlier ones are not among the antagonists then.
const MOST_STAYS: usize = 256;

/// One of the longest waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Starved {
    /// The PID of the starved task.
    pub pid: Pid,
    /// The command name of the starved task.
    pub command: Comm,
    /// The beginning of the wait, or of the window if that is later, in nanoseconds after the start of the trace.
    pub start_in_trace_ns: u64,
    /// The length of the wait within the window, in nanoseconds.
    pub duration_ns: Dur,
    /// Whether the task waited already when the window began.
    pub waited_before: bool,
    /// Whether the task still waited when the window ended.
    pub still_waits: bool,
    /// The CPU on which the task ran in the end, or on which it still waited.
    pub cpu: Cpu,
    /// The run queues it waited on, each with the time there: the longest first.
    pub queues: Vec<QueueTime>,
    /// The commands that ran on the CPUs of those run queues while it waited there, and for how long, at least: the
    /// longest first, at most three.
    pub antagonists: Vec<(Comm, Dur)>,
    /// The time for which any task ran on those CPUs while it waited there, at least, in nanoseconds.
    pub others_ran_ns: Dur,
    /// The time for which those CPUs idled while it waited there, 1 ms or longer at a time, at least, in nanoseconds: it was held back.
    pub held_back_ns: Dur,
    /// The time for which some CPU idled meanwhile with an empty run queue, in nanoseconds, of those that the task may use, as far as that is known;
    /// nothing for a kernel thread that is bound to its CPU, since no other could have run it.
    pub could_have_run_ns: Option<Dur>,
    /// The CPUs that the task may use at the end of the wait, such as `1` or `0-5`; absent where it is not known to be
    /// restricted, and for a wait below 1 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub may_use: Option<String>,
    /// The CPUs that idled meanwhile, each by itself: those that could have taken the task, if it may run there. The
    /// longest first, at most 16.
    pub idle_cpus: Vec<IdleCpu>,
    /// The number of CPUs that idled meanwhile.
    pub idle_cpu_count: usize,
}

impl Starved {
    /// The work or the idleness of the CPUs that the task waited for, with its share of the wait in percent: `, while cc1 ran (83.2 %)`; empty
    /// where neither a task nor idleness took half of the wait.
    pub fn meanwhile(&self) -> String {
        let cpu = match self.queues.as_slice() {
            [] | [_] => format!("CPU {}", self.queues.first().map_or(self.cpu, |queue| queue.cpu)),
            _ => "its CPUs".to_owned(),
        };
        match self.culprit() {
            Culprit::Idle(idled) => format!(", while {cpu} idled ({idled:.1} %)"),
            Culprit::Command(command, share) => format!(", while {command} ran ({share:.1} %)"),
            Culprit::Others(ran, command, share) => {
                format!(", while other tasks ran ({ran:.1} %), {command} most ({share:.1} %)")
            }
            Culprit::Unknown => String::new(),
        }
    }

    /// The same for a list, with full percents: `cc1 83%`.
    pub(crate) fn briefly(&self) -> String {
        match self.culprit() {
            Culprit::Idle(share) => format!("; it idled {}%", share.floor()),
            Culprit::Command(command, share) => format!("; {command} {}%", share.floor()),
            Culprit::Others(_, command, share) => format!("; others, {command} {}%", share.floor()),
            Culprit::Unknown => String::new(),
        }
    }

    fn culprit(&self) -> Culprit {
        let percent = |time: Dur| 100.0 * time.0 as f64 / (self.duration_ns.0 as f64).max(1.0);
        let (idled, ran) = (percent(self.held_back_ns), percent(self.others_ran_ns));
        let name = |command: &Comm| if command.is_empty() { "a task".to_owned() } else { command.to_string() };
        let first = self.antagonists.first().map(|(command, time)| (name(command), percent(*time)));
        match first {
            _ if idled >= HALF => Culprit::Idle(idled),
            Some((command, share)) if share >= HALF => Culprit::Command(command, share),
            Some((command, share)) if ran >= HALF => Culprit::Others(ran, command, share),
            _ => Culprit::Unknown,
        }
    }
}

/// The work or the idleness that took half of a wait or more, with its share in percent.
enum Culprit {
    /// The idle time of the CPUs of the queues.
    Idle(f64),
    Command(String, f64),
    /// All commands together, and the one that ran most.
    Others(f64, String, f64),
    /// Neither took half of it.
    Unknown,
}

/// The share of a wait, in percent, that names what took it.
const HALF: f64 = 50.0;

/// The time on a run queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueTime {
    /// The CPU of the run queue.
    pub cpu: Cpu,
    /// The time that the task waited there, in nanoseconds.
    pub wait_ns: Dur,
}

/// A stay on a run queue.
#[derive(Clone, Copy, Debug)]
struct Stay {
    cpu: Cpu,
    from: Ts,
    to: Ts,
}

#[derive(Clone, Debug)]
struct Open {
    since: Ts,
    /// Whether the task waited before that, outside of the window.
    cut: bool,
    /// The beginning of the wait, in the window or before it; none where that is not known.
    began: Option<Ts>,
    /// The reading of the time for which some CPU idles, when the wait began.
    idled: u64,
    /// The CPU of the run queue that it is on now.
    cpu: Cpu,
    /// The instant since which it is there.
    here_since: Ts,
    /// The run queues that it was on before; nearly always none.
    before: VecDeque<Stay>,
}

impl Open {
    fn new(cpu: Cpu, since: Ts, cut: bool, idled: u64) -> Open {
        let began = (!cut).then_some(since);
        Open { since, cut, began, idled, cpu, here_since: since, before: VecDeque::new() }
    }

    /// The stays up to now, the last one included.
    fn stays(&self, now: Ts) -> impl Iterator<Item = Stay> {
        let here = Stay { cpu: self.cpu, from: self.here_since, to: now };
        self.before.iter().copied().chain([here])
    }

    /// The run queues, each with the time there, the longest first.
    fn queues(&self, now: Ts) -> Vec<QueueTime> {
        let mut queues: Vec<QueueTime> = Vec::new();
        for Stay { cpu, from, to } in self.stays(now) {
            match queues.iter_mut().find(|queue| queue.cpu == cpu) {
                Some(queue) => queue.wait_ns += to.since(from),
                None => queues.push(QueueTime { cpu, wait_ns: to.since(from) }),
            }
        }
        // One that it only passed through is none, unless it is the only one.
        let waited = queues.iter().any(|queue| queue.wait_ns > Dur(0));
        queues.retain(|queue| queue.wait_ns > Dur(0) || !waited);
        queues.sort_by(|a, b| b.wait_ns.cmp(&a.wait_ns).then(a.cpu.cmp(&b.cpu)));
        queues
    }
}

/// A task that waited.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) pid: Pid,
    pub(crate) command: Comm,
    /// The CPUs that it may use; absent where it is not known to be restricted, and after a wait shorter than 1 ms.
    pub(crate) allowed: Option<Arc<CpuSet>>,
}

/// Follows the waits.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    open: PerTask<Open>,
    /// The runs by CPU.
    runs: Vec<Runs>,
    /// The start of the oldest wait at the last look.
    oldest: Ts,
    /// The number of runs joined since that look.
    joined: u32,
    /// The time for which some CPU has idled, in nanoseconds.
    idled: u64,
    last: Ts,
    /// The instant that counts as zero.
    zero: Ts,
    /// Maximum number of longest waits to keep.
    most: usize,
    pub(crate) longest: Vec<Starved>,
}

impl Waits {
    pub(crate) fn new(zero: Ts, most: usize) -> Waits {
        Waits {
            open: PerTask::default(),
            runs: Vec::new(),
            oldest: Ts(0),
            joined: 0,
            idled: 0,
            last: Ts(0),
            zero,
            most,
            longest: Vec::new(),
        }
    }

    /// The window begins; the tasks that are known to wait have done so before.
    pub(crate) fn begin(&mut self, start: Ts, state: &SchedState) {
        self.last = start;
        for task in state.observed().flat_map(|cpu| state.waiting(cpu)).filter(|task| task.begun) {
            let TaskState::Waiting(cpu) = task.state else { continue };
            let cut = task.queued.is_none_or(|queued| queued < start);
            let open = Open { began: task.queued, ..Open::new(cpu, start, cut, self.idled) };
            self.open.insert(task.id(), open);
        }
    }

    /// Accounts for the time until `ts`, in which some CPU idled or none did.
    pub(crate) fn pass(&mut self, ts: Ts, idle: bool) {
        if idle {
            self.idled = self.idled.saturating_add(ts.since(self.last).0);
        }
        self.last = ts;
    }

    /// A CPU's run ended.
    pub(crate) fn ran(&mut self, cpu: Cpu, comm: Comm, start: Ts, end: Ts) {
        if cpu.index() >= self.runs.len() {
            self.runs.resize_with(cpu.index() + 1, Runs::default);
        }
        let runs = &mut self.runs[cpu.index()];
        runs.add(comm, start, end);
        if runs.are_full() {
            if self.joined.is_multiple_of(LOOK) {
                self.oldest = self.open.iter().map(|(_, open)| open.since).fold(end, Ts::min);
            }
            self.joined = self.joined.wrapping_add(1);
            runs.join(self.oldest);
        }
    }

    /// A task begins to wait on a run queue.
    pub(crate) fn begins(&mut self, task: TaskId, cpu: Cpu, ts: Ts) {
        self.open.insert(task, Open::new(cpu, ts, false, self.idled));
    }

    /// A task that waits is moved to another run queue.
    pub(crate) fn moves(&mut self, task: TaskId, cpu: Cpu, ts: Ts) {
        if let Some(open) = self.open.get_mut(task) {
            let stay = Stay { cpu: open.cpu, from: open.here_since, to: ts };
            (open.cpu, open.here_since) = (cpu, ts);
            open.before.push_back(stay);
            if open.before.len() > MOST_STAYS {
                open.before.pop_front();
            }
        }
    }

    /// The task does not wait any more, or not for a length that is known.
    pub(crate) fn forget(&mut self, task: TaskId) {
        self.open.take(task);
    }

    /// The tasks that wait now, each with the beginning of its wait where that is known, else of the part in the window.
    pub(crate) fn still_open(&self) -> impl Iterator<Item = (TaskId, Ts)> {
        self.open.iter().map(|(task, open)| (task, open.began.unwrap_or(open.since)))
    }

    /// The beginning of the open wait of a task in the window, and whether the task was moved meanwhile.
    pub(crate) fn open(&self, task: TaskId) -> Option<(Ts, bool)> {
        self.open.get(task).map(|open| (open.since, !open.before.is_empty()))
    }

    /// The length that a wait must exceed to be kept; nothing if every one is.
    pub(crate) fn shortest_kept(&self) -> Option<Dur> {
        if self.most == 0 {
            return Some(Dur(u64::MAX));
        }
        self.longest.last().filter(|_| self.longest.len() >= self.most).map(|last| last.duration_ns)
    }

    /// A task that waited runs; how long it waited, in the window and before it. `state` has the runs that still go on;
    /// it may be missing where the task was on one queue only and runs there.
    pub(crate) fn ends(
        &mut self,
        task: TaskId,
        waiter: Waiter,
        cpu: Cpu,
        now: Ts,
        idle: &IdleTimes,
        state: Option<&SchedState>,
    ) -> Option<Dur> {
        let open = self.open.take(task)?;
        self.keep((waiter, false), cpu, &open, now, idle, state);
        open.began.map(|began| now.since(began))
    }

    /// The window ends; of the tasks that wait, those that `waiter` gives may be among the longest.
    pub(crate) fn close(
        &mut self,
        state: &SchedState,
        end: Ts,
        idle: &IdleTimes,
        waiter: impl Fn(&Task, Cpu, Dur) -> Option<Waiter>,
    ) {
        for (id, open) in std::mem::take(&mut self.open).iter() {
            if let Some(task) = state.task(id)
                && let TaskState::Waiting(cpu) = task.state
                && state.is_observed(cpu)
                && let Some(waiter) = waiter(task, cpu, end.since(open.since))
            {
                self.keep((waiter, true), cpu, open, end, idle, None);
            }
        }
    }

    /// The commands that ran on the CPUs of the run queues that a task waited on, while it did, and the time of all. `state` has the runs
    /// that still go on; nothing where the pass has closed them.
    fn antagonists(&self, open: &Open, now: Ts, state: Option<&SchedState>) -> (Vec<(Comm, Dur)>, Dur) {
        let mut sums: Vec<(Comm, Dur)> = Vec::new();
        let mut add = |comm: Comm, time: Dur| match sums.iter_mut().find(|(other, _)| *other == comm) {
            Some((_, sum)) => *sum += time,
            None => sums.push((comm, time)),
        };
        for Stay { cpu, from, to } in open.stays(now) {
            if let Some(runs) = self.runs.get(cpu.index()) {
                runs.between(from, to).into_iter().for_each(|(comm, time)| add(comm, time));
            }
            if let Some((state, task)) = state.and_then(|state| Some((state, state.running(cpu)?))) {
                let ran = to.since(state.current_since(cpu).max(from));
                if ran > Dur(0) {
                    add(task.comm, ran);
                }
            }
        }
        sums.sort_by_key(|(_, time)| Reverse(*time));
        let all = sums.iter().fold(Dur(0), |all, (_, time)| Dur(all.0.saturating_add(time.0)));
        sums.truncate(MOST_ANTAGONISTS);
        (sums, all)
    }

    /// Keeps a wait of a task if it is one of the longest; with the task, whether it waits on.
    fn keep(
        &mut self,
        (waiter, still_waits): (Waiter, bool),
        cpu: Cpu,
        open: &Open,
        now: Ts,
        idle: &IdleTimes,
        state: Option<&SchedState>,
    ) {
        let duration_ns = now.since(open.since);
        let full = self.longest.len() >= self.most;
        if full && self.longest.last().is_none_or(|last| duration_ns <= last.duration_ns) {
            return;
        }
        let Waiter { pid, command, allowed } = waiter;
        // No other CPU could have run a thread that is bound to its own.
        let is_bound = is_bound(command, open.cpu);
        let allowed = allowed.filter(|_| !is_bound);
        let mut idle_cpus = if is_bound { Vec::new() } else { idle.between(open.since, now) };
        idle_cpus.retain(|idle| allowed.as_ref().is_none_or(|allowed| allowed.has(idle.cpu)));
        let idle_cpu_count = idle_cpus.len();
        idle_cpus.truncate(MOST_IDLE);
        let held_back = open.stays(now).map(|stay| idle.held_back(stay.cpu, stay.from, stay.to, now));
        let (antagonists, others_ran_ns) = self.antagonists(open, now, state);
        let idled = match &allowed {
            Some(allowed) => idle.of_any(allowed, open.since, now),
            None => self.idled.saturating_sub(open.idled),
        };
        let starved = Starved {
            pid,
            command,
            start_in_trace_ns: open.since.since(self.zero).0,
            duration_ns,
            waited_before: open.cut,
            still_waits,
            cpu,
            queues: open.queues(now),
            antagonists,
            others_ran_ns,
            held_back_ns: Dur(held_back.fold(0, u64::saturating_add)),
            could_have_run_ns: (!is_bound).then_some(Dur(idled)),
            may_use: allowed.map(|allowed| format_cpu_list(&allowed.cpus().collect::<Vec<_>>())),
            idle_cpus,
            idle_cpu_count,
        };
        let at = self.longest.partition_point(|l| l.duration_ns >= duration_ns);
        self.longest.insert(at, starved);
        self.longest.truncate(self.most);
    }
}
