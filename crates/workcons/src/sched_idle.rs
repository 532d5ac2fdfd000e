//! The violation with CPUs that run `SCHED_IDLE` tasks alone as idle ones.

use crate::Options;
use membership::{SchedPolicy, TaskGroups};
use sched::state::Task;
use sched::{Analysis, Cpu, Joined, PerTask, SchedEvent, SchedState, TaskState, Ts};
use serde::Serialize;

/// The violation for tasks that are not of `SCHED_IDLE`, with and without the CPUs that run `SCHED_IDLE` tasks alone among the idle
/// ones. Lists of the CPUs that tasks may use are left out of both figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SchedIdleFigures {
    /// The time in violation with every task as a normal one, in nanoseconds.
    pub violated_ns: u64,
    /// The CPU time lost with every task as a normal one: the smaller one of the numbers of idle and of overloaded CPUs, over time, in
    /// nanoseconds.
    pub cpu_time_lost_ns: u64,
    /// The time in nanoseconds during which some CPU idles or runs `SCHED_IDLE` tasks alone, while on another one a task waits that is
    /// known not to be of `SCHED_IDLE`.
    pub violated_idle_ns: u64,
    /// The CPU time lost by these sets, in nanoseconds.
    pub cpu_time_lost_idle_ns: u64,
    /// The time that CPUs ran `SCHED_IDLE` tasks with no other task queued, in nanoseconds.
    pub sched_idle_cpu_ns: u64,
    /// The waiting of counted tasks whose policy is unknown, in nanoseconds: in the first two figures, and not in the others.
    pub unknown_wait_ns: u64,
}

/// The kind of a task in a run queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueuedKind {
    /// A task of `SCHED_IDLE`.
    Idle,
    /// A task of any other policy.
    Normal,
    /// A task of the fair class whose policy is unknown.
    Unknown,
}

/// A task that waits, and whether it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct QueuedTask {
    cpu: Cpu,
    kind: QueuedKind,
    counted: bool,
}

/// The tasks that wait on a CPU, by kind, and of these the counted ones; and the part that the CPU takes in the sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct QueueOfKinds {
    waiting: [u32; 3],
    counted: [u32; 3],
    part: CpuPart,
}

/// The part of a CPU in the sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuPart {
    is_idle: bool,
    is_sched_idle: bool,
    is_overloaded: bool,
    is_overloaded_normal: bool,
}

/// The sizes of the sets, and the counted waiting tasks of unknown policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SetSizes {
    idle: u32,
    sched_idle: u32,
    overloaded: u32,
    overloaded_normal: u32,
    unknown: u32,
}

/// The analysis of both violations: an [`Analysis`] whose output is [`SchedIdleFigures`].
pub struct SchedIdle<'o> {
    options: &'o Options<'o>,
    groups: &'o TaskGroups,
    queued: PerTask<QueuedTask>,
    cpus: Vec<QueueOfKinds>,
    sizes: SetSizes,
    last: Ts,
    sums: SchedIdleFigures,
    /// The instant at which the piece begins, and the CPUs then, if this follows a later piece of a pass.
    resumed: Option<(Ts, Vec<QueueOfKinds>)>,
}

impl<'o> SchedIdle<'o> {
    /// Returns the analysis with the options of a measurement. `groups` are by scheduling parameters.
    pub fn new(options: &'o Options<'o>, groups: &'o TaskGroups) -> SchedIdle<'o> {
        SchedIdle {
            options,
            groups,
            queued: PerTask::default(),
            cpus: Vec::new(),
            sizes: SetSizes::default(),
            last: Ts(0),
            sums: SchedIdleFigures::default(),
            resumed: None,
        }
    }

    fn kind(&self, task: &Task, ts: Ts) -> QueuedKind {
        match self.groups.params(task, ts).map(|params| params.policy) {
            Some(SchedPolicy::Idle) => QueuedKind::Idle,
            None | Some(SchedPolicy::Fair) => QueuedKind::Unknown,
            Some(_) => QueuedKind::Normal,
        }
    }

    /// Adds the time up to `ts` to the sums.
    fn pass(&mut self, ts: Ts) {
        let ns = ts.since(self.last).0;
        self.last = self.last.max(ts);
        let SetSizes { idle, sched_idle, overloaded, overloaded_normal, unknown } = self.sizes;
        let add = |sum: &mut u64, number: u32| *sum = sum.saturating_add(ns.saturating_mul(u64::from(number)));
        let lost = idle.min(overloaded);
        add(&mut self.sums.violated_ns, lost.min(1));
        add(&mut self.sums.cpu_time_lost_ns, lost);
        let lost = (idle + sched_idle).min(overloaded_normal);
        add(&mut self.sums.violated_idle_ns, lost.min(1));
        add(&mut self.sums.cpu_time_lost_idle_ns, lost);
        add(&mut self.sums.sched_idle_cpu_ns, sched_idle);
        add(&mut self.sums.unknown_wait_ns, unknown);
    }

    fn cpu(&mut self, cpu: Cpu) -> &mut QueueOfKinds {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, QueueOfKinds::default());
        }
        &mut self.cpus[cpu.index()]
    }

    /// Counts a task in the queue where it waits now, and no longer where it did.
    fn count(&mut self, task: &Task, ts: Ts, state: &SchedState) {
        let before = self.queued.take(task.id());
        if let Some(QueuedTask { cpu, kind, counted }) = before {
            let queue = self.cpu(cpu);
            queue.waiting[kind as usize] -= 1;
            queue.counted[kind as usize] -= u32::from(counted);
            self.sizes.unknown -= u32::from(counted && kind == QueuedKind::Unknown);
        }
        if let TaskState::Waiting(cpu) = task.state {
            let (kind, counted) = (self.kind(task, ts), self.options.counts(task, cpu, state));
            let queue = self.cpu(cpu);
            queue.waiting[kind as usize] += 1;
            queue.counted[kind as usize] += u32::from(counted);
            self.sizes.unknown += u32::from(counted && kind == QueuedKind::Unknown);
            self.queued.insert(task.id(), QueuedTask { cpu, kind, counted });
        }
    }

    /// Looks at the part of a CPU in the sets anew.
    fn look(&mut self, cpu: Cpu, ts: Ts, state: &SchedState) {
        let load = self.options.load(cpu, state);
        let runs = load.runs();
        let runs_idle = runs && state.running(cpu).is_some_and(|task| self.kind(task, ts) == QueuedKind::Idle);
        let QueueOfKinds { waiting, counted, part: before } = *self.cpu(cpu);
        let [_, normal, unknown] = waiting;
        let part = CpuPart {
            is_idle: load.is_idle(),
            is_sched_idle: runs_idle && normal == 0 && unknown == 0,
            is_overloaded: load.is_overloaded() && counted != [0; 3],
            is_overloaded_normal: load.is_overloaded() && counted[QueuedKind::Normal as usize] > 0,
        };
        if part != before {
            self.cpu(cpu).part = part;
            self.sizes.turn(before, part);
        }
    }
}

impl SetSizes {
    /// A CPU takes another part in the sets.
    fn turn(&mut self, before: CpuPart, now: CpuPart) {
        for (size, was, is) in [
            (&mut self.idle, before.is_idle, now.is_idle),
            (&mut self.sched_idle, before.is_sched_idle, now.is_sched_idle),
            (&mut self.overloaded, before.is_overloaded, now.is_overloaded),
            (&mut self.overloaded_normal, before.is_overloaded_normal, now.is_overloaded_normal),
        ] {
            *size = *size + u32::from(is) - u32::from(was);
        }
    }
}

impl Analysis for SchedIdle<'_> {
    type Output = SchedIdleFigures;
    const COUNTS: bool = true;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.last = start;
        for task in state.living() {
            self.count(task, start, state);
        }
        let assumed = self.options.assume_idle.clone();
        for cpu in state.observed().chain(assumed) {
            self.look(cpu, start, state);
        }
    }

    fn before(&mut self, event: &SchedEvent, _: &SchedState) {
        self.pass(event.ts);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        for (task, _) in state.turns() {
            self.count(task, event.ts, state);
        }
        for span in state.spans() {
            for of in [span.state, span.next] {
                if let TaskState::Waiting(cpu) = of {
                    self.look(cpu, event.ts, state);
                }
            }
        }
        state.cpu_spans().iter().for_each(|span| self.look(span.cpu, event.ts, state));
        self.look(event.cpu, event.ts, state);
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> SchedIdleFigures {
        self.pass(end);
        self.sums
    }
}

impl Joined for SchedIdle<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, at: Ts, state: &SchedState) {
        self.begin(at, state);
        self.resumed = Some((at, self.cpus.clone()));
    }

    fn fits(&self, later: &Self) -> bool {
        let Some((_, then)) = &later.resumed else { return false };
        let at = |cpus: &[QueueOfKinds], cpu: usize| cpus.get(cpu).copied().unwrap_or_default();
        // A task can come to count, or to another policy, while it waits, which the state at an instant does not show.
        (0..self.cpus.len().max(then.len())).all(|cpu| at(&self.cpus, cpu) == at(then, cpu))
    }

    fn join(&mut self, later: Self) {
        let Some((at, _)) = later.resumed else { return };
        self.pass(at);
        let SchedIdleFigures {
            violated_ns,
            cpu_time_lost_ns,
            violated_idle_ns,
            cpu_time_lost_idle_ns,
            sched_idle_cpu_ns,
            unknown_wait_ns,
        } = later.sums;
        for (sum, more) in [
            (&mut self.sums.violated_ns, violated_ns),
            (&mut self.sums.cpu_time_lost_ns, cpu_time_lost_ns),
            (&mut self.sums.violated_idle_ns, violated_idle_ns),
            (&mut self.sums.cpu_time_lost_idle_ns, cpu_time_lost_idle_ns),
            (&mut self.sums.sched_idle_cpu_ns, sched_idle_cpu_ns),
            (&mut self.sums.unknown_wait_ns, unknown_wait_ns),
        ] {
            *sum = sum.saturating_add(more);
        }
        (self.queued, self.cpus, self.sizes, self.last) = (later.queued, later.cpus, later.sizes, later.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use membership::ParamsHistory;
    use sched::pass::Pieces;
    use sched::{EventKind, Pass, Pid};

    /// On CPU 0 `cc` waits from 200 to 400 ns. CPU 1 runs `sort`, of `SCHED_IDLE`, from 100 to 350, and idles from then on.
    #[test]
    fn a_cpu_that_runs_a_task_of_sched_idle_alone_is_idle_for_others() {
        let mut events = testkit::a_wait_beside_an_idle_cpu();
        let slept = events.iter().position(|event| event.pid == Pid(9)).expect("sort sleeps");
        let event = SchedEvent { ts: Ts(350), ..events.remove(slept) };
        let behind = events.iter().position(|event| event.ts > Ts(350)).expect("later events");
        events.insert(behind, event);
        assert!(matches!(event.kind, EventKind::Switch { .. }));
        let run = |policies: &[(Ts, Pid, Option<SchedPolicy>)]| {
            let groups = TaskGroups::of_params(ParamsHistory::of_changes(policies));
            let options = Options { waiters: crate::Waiters::All, ..Options::default() };
            let analysis = || SchedIdle::new(&options, &groups);
            let whole = Pass::over(events.as_slice()).run(analysis).unwrap_or_else(|never| match never {}).output;
            for length in 1..events.len() {
                let pieces = Some(Pieces { events: length, workers: 2, scans: true });
                let pass = Pass::over(events.as_slice()).pieces(pieces);
                assert_eq!(pass.run_in_pieces(analysis).unwrap_or_else(|never| match never {}).output, whole);
            }
            let SchedIdleFigures { violated_ns, violated_idle_ns, sched_idle_cpu_ns, unknown_wait_ns, .. } = whole;
            assert_eq!((whole.cpu_time_lost_ns, whole.cpu_time_lost_idle_ns), (violated_ns, violated_idle_ns));
            [violated_ns, violated_idle_ns, sched_idle_cpu_ns, unknown_wait_ns]
        };
        let (idle, other) = (Some(SchedPolicy::Idle), Some(SchedPolicy::Other));
        assert_eq!(run(&[(Ts::MIN, Pid(8), other), (Ts::MIN, Pid(9), idle)]), [50, 200, 250, 0]);
        assert_eq!(run(&[(Ts::MIN, Pid(9), idle)]), [50, 0, 250, 200], "nothing shows the policy of cc");
        // From 400 to 600 CPU 0 runs `cc` alone.
        assert_eq!(run(&[(Ts::MIN, Pid(8), idle), (Ts::MIN, Pid(9), idle)]), [50, 0, 450, 0]);
        assert_eq!(run(&[(Ts::MIN, Pid(8), other)]), [50, 50, 0, 0]);
    }
}
