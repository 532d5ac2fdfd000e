//! One wait of a task: who placed it where, who ran meanwhile, which CPUs idled or had shorter queues, and how it ended.

use crate::ask::questions::{AskedWindow, Fault};
use crate::ask::task_detail::TaskFollower;
use crate::index::viewed::Viewed;
use latency::{Case, Latency};
use sched::affinity::Affinity;
use sched::kthread::is_bound;
use sched::seeded::SeededMap;
use sched::span::Came;
use sched::{
    Analysis, Comm, ComparedQueue, Cpu, CpuSpan, Current, EventKind, Pid, QueuedAsk, QueuedSums, SchedEvent,
    SchedState, TaskState, Ts,
};
use serde_json::{Value, json};
use std::cell::Cell;

/// The maximum number of tasks that are listed as those that ran meanwhile, and of CPUs that idled or had shorter queues.
const MOST: usize = 64;
/// The number of events that are searched for the end of a wait.
const AHEAD: u64 = 5_000_000;

/// The bounds of a wait.
#[derive(Clone, Copy, Debug)]
struct WaitBounds {
    from: Ts,
    /// Whether an event began it.
    begun: bool,
    to: Ts,
    /// The reason for which its end is not known; nothing where it is.
    open: Option<&'static str>,
}

/// The longest wait of a task within a window, as JSON.
pub(crate) fn answer(trace: &Viewed<'_>, pid: Pid, window: AskedWindow) -> Result<Value, Fault> {
    let (from, to) = window.within(trace)?;
    let (store, zero) = (trace.store()?, trace.extent().0);
    let time = |ts: Ts| ts.since(zero).0;
    let around = store.window(from, to, TaskFollower::new(pid, zero))?;
    let Some((first, last)) = around.longest_wait() else { return Ok(json!({ "pid": pid, "wait": null })) };
    let Some(bounds) = bounds(trace, pid, zero.after(sched::Dur(first + (last - first) / 2)))? else {
        return Ok(json!({ "pid": pid, "wait": null }));
    };
    let is_it = |task: &sched::Task, _: &SchedState| task.pid == pid;
    let options = latency::Options { tasks: Some(&is_it), zero, worst: 1, ..latency::Options::default() };
    let affinity = trace.shared_affinity();
    let ask = QueuedAsk { tasks: Some(&is_it), cpus: sched::ChosenCpus::default(), affinity: affinity.clone() };
    let witness = WaitWitness::new(pid, bounds.to, affinity.as_deref());
    let analyses = (TaskFollower::new(pid, zero), Latency::new(&options), QueuedSums::new(ask), witness);
    // An interval of latency is in the window that holds its end.
    let end = if bounds.open.is_some() { bounds.to } else { bounds.to.after(sched::Dur(1)).min(trace.extent().1) };
    let (detail, latencies, kinds, seen) = store.window(bounds.from, end, analyses)?;
    let case = latencies.worst.first();
    let mut answer = serde_json::to_value(&detail).unwrap_or_default();
    let placed = seen.placed.as_ref().map(HowQueued::words);
    Ok(json!({
        "pid": pid,
        "wait": {
            "from": time(bounds.from), "to": time(bounds.to), "begun": bounds.begun, "open": bounds.open,
        },
        "placed": case.map(|case| of_case(case, zero)),
        "came": placed,
        "parts": answer["waits"].take(),
        "moves": answer["migrations"].take(),
        "kinds": kinds.map(|kinds| json!([
            kinds.held_back_ns, kinds.beside_idle_ns, kinds.beside_shorter_ns, kinds.alike_ns, kinds.beside_forbidden_ns,
        ])),
        "ran": seen.ran(),
        "cpus": seen.cpus(trace),
    }))
}

/// The beginning and the end of the wait that a task is in at an instant; nothing if it does not wait then.
fn bounds(trace: &Viewed<'_>, pid: Pid, at: Ts) -> Result<Option<WaitBounds>, Fault> {
    Ok(trace.store()?.with_replay(|replay| {
        let step = replay.step_at(Ts(at.0.saturating_add(1)))?;
        replay.go(step)?;
        let task = replay.state().task_of(pid).filter(|task| matches!(task.state, TaskState::Waiting(_)));
        let Some(task) = task else { return Ok(None) };
        let (from, begun) = task.queued.map_or((task.since, task.begun), |queued| (queued, true));
        let (searched, found, last) = (Cell::new(0), Cell::new(None), Cell::new(at));
        replay.find(step, |event| {
            searched.set(searched.get() + 1);
            last.set(event.ts);
            let runs = matches!(event.kind, EventKind::Switch { next, .. } if next.pid == pid);
            found.set(runs.then_some(event.ts));
            runs || searched.get() >= AHEAD
        })?;
        let open = match found.get() {
            Some(_) => None,
            None if searched.get() >= AHEAD => Some("its end lies beyond the five million events that were searched"),
            None => Some("it lasts to the end of the trace"),
        };
        Ok(Some(WaitBounds { from, begun, to: found.get().unwrap_or(last.get()), open }))
    })?)
}

/// The facts that `latency` has about the wait.
fn of_case(case: &Case, zero: Ts) -> Value {
    let task = |pid: Pid, comm: Comm| json!({ "pid": pid, "comm": comm.to_string() });
    json!({
        "measure": case.measure,
        "start": case.start_ns.since(zero).0,
        "waker": case.waker.map(|waker| task(waker, case.waker_command)),
        "queued_on": case.queued_on,
        "behind": task(case.behind, case.behind_command),
        "within_slice": case.behind_within_slice,
        "idle_cpus": case.idle_cpus,
        "ran_on": case.ran_on,
        "after": task(case.after, case.after_command),
        "throttled": case.throttled_ns.0,
    })
}

/// A task that was placed on a run queue.
#[derive(Clone, Debug)]
struct HowQueued {
    came: Came,
}

impl HowQueued {
    fn words(&self) -> &'static str {
        match self.came {
            Came::Unknown => "unknown",
            Came::Woken => "woken",
            Came::Forked => "new",
            Came::Moved => "moved",
            Came::Stayed => "preempted",
        }
    }
}

/// A CPU beside the wait: whether it could have run the task, as the kinds of queued time compare run queues.
#[derive(Clone, Copy, Debug, Default)]
struct CpuBeside {
    queue: ComparedQueue,
    since: Ts,
    idle_ns: u64,
    shorter_ns: u64,
    /// Whether the task may use it.
    is_allowed: bool,
}

/// The analysis that looks at all CPUs while a task waits.
struct WaitWitness<'a> {
    pid: Pid,
    to: Ts,
    affinity: Option<&'a Affinity>,
    /// The CPU on whose queue the task waits, with that queue.
    own: Option<(Cpu, ComparedQueue)>,
    /// The weight of the task; nothing if it compares numbers of tasks.
    weight: Option<u32>,
    /// The last CPU on whose queue it waited.
    last: Option<Cpu>,
    placed: Option<HowQueued>,
    /// The occupant of that CPU, since an instant.
    occupant: (Current, Comm, Ts),
    occupants: SeededMap<Pid, (u64, Comm)>,
    /// The time in which that CPU idled, and in which its occupant is unknown.
    idle_ns: u64,
    unknown_ns: u64,
    cpus: Vec<CpuBeside>,
}

impl<'a> WaitWitness<'a> {
    fn new(pid: Pid, to: Ts, affinity: Option<&'a Affinity>) -> WaitWitness<'a> {
        WaitWitness {
            pid,
            to,
            affinity,
            own: None,
            weight: None,
            last: None,
            placed: None,
            occupant: (Current::Unknown, Comm::EMPTY, Ts(0)),
            occupants: SeededMap::default(),
            idle_ns: 0,
            unknown_ns: 0,
            cpus: Vec::new(),
        }
    }

    /// Accounts for the time of a CPU up to an instant.
    fn pass(&mut self, cpu: Cpu, now: Ts) {
        let Some(beside) = self.cpus.get_mut(cpu.index()) else { return };
        let ns = now.min(self.to).since(beside.since).0;
        beside.since = now;
        match self.own {
            Some((own, _)) if own == cpu => {}
            Some(_) if beside.queue.is_idle() => beside.idle_ns += ns,
            Some((_, own)) if own.is_beside_shorter(self.weight, &beside.queue) => beside.shorter_ns += ns,
            _ => {}
        }
    }

    /// Accounts for the time of the occupant of the task's CPU up to an instant.
    fn pass_occupant(&mut self, now: Ts) {
        let (current, comm, since) = self.occupant;
        let ns = now.min(self.to).since(since).0;
        self.occupant.2 = now;
        match current {
            _ if self.own.is_none() => {}
            Current::Task(pid) => {
                let entry = self.occupants.entry(pid).or_insert((0, comm));
                *entry = (entry.0 + ns, comm);
            }
            Current::Idle => self.idle_ns += ns,
            Current::Unknown | Current::Offline => self.unknown_ns += ns,
        }
    }

    /// Takes over the state of the CPUs behind an event.
    fn look(&mut self, now: Ts, state: &SchedState, touched: &[Cpu]) {
        let task = state.task_of(self.pid);
        let own = task.and_then(|task| match task.state {
            TaskState::Waiting(cpu) if state.is_observed(cpu) => Some((cpu, ComparedQueue::of(cpu, state))),
            _ => None,
        });
        self.pass_occupant(now);
        let weight = task.filter(|_| own.is_some()).and_then(sched::Task::compared_weight);
        if (own, weight) != (self.own, self.weight) {
            (0..self.cpus.len() as u32).for_each(|cpu| self.pass(Cpu(cpu), now));
            if let (Some((cpu, _)), Some(task)) = (own, task)
                && self.own.is_none_or(|(other, _)| other != cpu)
            {
                self.placed.get_or_insert(HowQueued { came: task.came });
                let set = self.affinity.and_then(|affinity| affinity.set(affinity.of(task, cpu, state)?, state));
                let is_bound = is_bound(task.comm, cpu);
                for (other, beside) in (0..).map(Cpu).zip(&mut self.cpus) {
                    beside.is_allowed = !is_bound && set.is_none_or(|set| set.has(other));
                }
            }
            (self.own, self.weight) = (own, weight);
            self.last = own.map(|(cpu, _)| cpu).or(self.last);
        }
        for cpu in touched {
            self.pass(*cpu, now);
            let index = cpu.index();
            if index >= self.cpus.len() {
                self.cpus.resize(index + 1, CpuBeside { since: now, is_allowed: true, ..CpuBeside::default() });
            }
            self.cpus[index].queue = ComparedQueue::of(*cpu, state);
        }
        if let Some((cpu, _)) = own {
            let comm = state.running(cpu).map_or(Comm::EMPTY, |task| task.comm);
            self.occupant = (state.current(cpu), comm, now);
        }
    }
}

/// The sums of a wait over the CPUs.
struct WaitSeen {
    placed: Option<HowQueued>,
    occupants: Vec<(Pid, u64, Comm)>,
    idle_ns: u64,
    unknown_ns: u64,
    own: Option<Cpu>,
    cpus: Vec<CpuBeside>,
}

impl WaitSeen {
    /// The tasks that ran on the CPU of the queue, the longest first.
    fn ran(&self) -> Value {
        let (listed, rest) = self.occupants.split_at(self.occupants.len().min(MOST));
        let row = |(pid, ns, comm): &(Pid, u64, Comm)| json!({ "pid": pid, "comm": comm.to_string(), "ns": ns });
        json!({
            "tasks": listed.iter().map(row).collect::<Vec<_>>(),
            "others": rest.len(), "others_ns": rest.iter().map(|(_, ns, _)| ns).sum::<u64>(),
            "idle": self.idle_ns, "unknown": self.unknown_ns,
        })
    }

    /// The CPUs that idled or had shorter queues, the longest first.
    fn cpus(&self, trace: &Viewed<'_>) -> Value {
        let all = (0..).map(Cpu).zip(&self.cpus);
        let mut beside: Vec<(Cpu, &CpuBeside)> =
            all.filter(|(_, beside)| beside.idle_ns + beside.shorter_ns > 0).collect();
        beside.sort_by_key(|(cpu, beside)| (std::cmp::Reverse((beside.idle_ns, beside.shorter_ns)), *cpu));
        let row = |(cpu, beside): &(Cpu, &CpuBeside)| {
            let distance = self.own.and_then(|own| trace.distance(own, *cpu));
            let CpuBeside { idle_ns, shorter_ns, is_allowed, .. } = beside;
            json!({ "cpu": cpu, "idle": idle_ns, "shorter": shorter_ns, "allowed": is_allowed, "distance": distance })
        };
        json!({ "number": beside.len(), "listed": beside.iter().take(MOST).map(row).collect::<Vec<_>>() })
    }
}

impl Analysis for WaitWitness<'_> {
    type Output = WaitSeen;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        let all: Vec<Cpu> = state.observed().collect();
        let size = all.iter().map(|cpu| cpu.index() + 1).max().unwrap_or(0);
        self.cpus = vec![CpuBeside { since: start, is_allowed: true, ..CpuBeside::default() }; size];
        self.look(start, state, &all);
    }

    fn cpu_span(&mut self, span: &CpuSpan, _: &SchedState) {
        // The name under which the occupant ran.
        if let (Current::Task(pid), Some((cpu, _))) = (span.current, self.own)
            && cpu == span.cpu
            && self.occupant.0 == Current::Task(pid)
            && !span.comm.is_empty()
        {
            self.occupant.1 = span.comm;
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.look(event.ts, state, state.touched());
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> WaitSeen {
        self.pass_occupant(end);
        (0..self.cpus.len() as u32).for_each(|cpu| self.pass(Cpu(cpu), end));
        let mut occupants: Vec<(Pid, u64, Comm)> =
            self.occupants.into_iter().map(|(pid, (ns, comm))| (pid, ns, comm)).filter(|(_, ns, _)| *ns > 0).collect();
        occupants.sort_by_key(|(pid, ns, _)| (std::cmp::Reverse(*ns), *pid));
        WaitSeen {
            placed: self.placed,
            occupants,
            idle_ns: self.idle_ns,
            unknown_ns: self.unknown_ns,
            own: self.last,
            cpus: self.cpus,
        }
    }
}
