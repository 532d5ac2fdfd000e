//! The times at which bandwidth control (`cpu.max`) keeps tasks from running: by CPU from the records of it, by task and
//! cgroup from the state.
//!
//! Probes on `throttle_cfs_rq`, as older recordings have them, show neither the cgroup nor its tasks. Then the time is known
//! by CPU alone, from one beginning to the next end, and throttled tasks count as waiting.

use crate::{KEPT, PendingSwitch};
use sched::probe::{CgroupId, Probe, Throttle};
use sched::seeded::SeededMap;
use sched::{Comm, Cpu, Dur, EventKind, Pid, SchedEvent, SchedState, Span, TaskId, TaskState, Ts};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The throttling of a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThrottledCpu {
    /// The throttled CPU.
    pub cpu: Cpu,
    /// The number of times at which throttling ended within the window.
    pub times: u64,
    /// The time within the window during which the CPU was throttled, in nanoseconds. Throttling without an end counts up to
    /// the end of the window, or up to a loss.
    pub ns: u64,
    /// The number of times without an end within the window.
    pub without_end: u64,
}

/// The throttled time of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThrottledTask {
    /// The PID of the task.
    pub pid: Pid,
    /// The most recent command name of the task.
    pub command: Comm,
    /// The number of times at which it was throttled within the window.
    pub times: u64,
    /// The throttled time of the task within the window, in nanoseconds.
    pub ns: u64,
}

/// The throttled time of the tasks of a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThrottledCgroup {
    /// The number that the kernel has for the cgroup: the inode number of its folder.
    pub id: u64,
    /// The number of times at which a task of it was throttled within the window.
    pub times: u64,
    /// The throttled time of all tasks of the cgroup within the window, in nanoseconds.
    pub ns: u64,
}

/// The throttling within a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Throttling {
    cpus: BTreeMap<Cpu, OfCpu>,
    /// Whether the records show the cgroups.
    has_cgroups: bool,
    tasks: SeededMap<Pid, (Comm, Sum)>,
    cgroups: BTreeMap<CgroupId, Sum>,
    /// The cgroups of the tasks that are throttled.
    open: SeededMap<TaskId, CgroupId>,
    start: Ts,
    end: Ts,
    /// The steps that are left to the analysis of the pieces before, in a later piece of a pass.
    log: Option<Vec<ThrottleStep>>,
}

/// A step of the throttling: a record of it, or what the state shows of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ThrottleStep {
    /// A limit of a cgroup begins to hold on a CPU.
    Begins(Cpu, Option<CgroupId>, Ts),
    /// A limit of a cgroup no longer holds on a CPU.
    Ends(Cpu, Option<CgroupId>, Ts),
    /// Events are lost.
    Loses(Ts),
    /// A task of a cgroup is throttled.
    Throttles(TaskId, CgroupId),
    /// A task was throttled for this time; its name, if the task lives.
    Throttled(TaskId, Pid, Option<Comm>, Dur),
}

/// A number of times, and their length together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    times: u64,
    ns: u64,
}

impl Sum {
    fn add(&mut self, length: Dur) {
        self.times += 1;
        self.ns = self.ns.saturating_add(length.0);
    }
}

/// The throttling of one CPU.
#[derive(Clone, Debug, Default, PartialEq)]
struct OfCpu {
    /// The number of limits that hold for each cgroup; without a cgroup at most one.
    limits: BTreeMap<Option<CgroupId>, u32>,
    since: Option<Ts>,
    ended: Vec<(Ts, Ts)>,
    /// The number of times whose end can be among lost events, and their length together up to the loss.
    cut: Sum,
}

impl OfCpu {
    fn begin(&mut self, cgroup: Option<CgroupId>, ts: Ts) {
        let limits = self.limits.entry(cgroup).or_default();
        // Records without a cgroup can be of several: one more changes nothing.
        *limits = if cgroup.is_some() { limits.saturating_add(1) } else { 1 };
        self.since.get_or_insert(ts);
    }

    /// An end without a beginning is that of throttling which no record has shown.
    fn end(&mut self, cgroup: Option<CgroupId>, ts: Ts) {
        let Some(limits) = self.limits.get_mut(&cgroup) else { return };
        *limits -= 1;
        if *limits == 0 {
            self.limits.remove(&cgroup);
        }
        if self.limits.is_empty()
            && let Some(since) = self.since.take()
        {
            self.ended.push((since, ts));
        }
    }

    /// Events are missing, among which the end can be.
    fn lose(&mut self, ts: Ts) {
        self.limits.retain(|cgroup, _| cgroup.is_none());
        if self.limits.is_empty()
            && let Some(since) = self.since.take()
        {
            self.cut.add(ts.since(since));
        }
    }

    fn report(&self, cpu: Cpu, end: Ts) -> ThrottledCpu {
        let ended = self.ended.iter().map(|(from, to)| to.since(*from).0).fold(self.cut.ns, u64::saturating_add);
        let open = self.since.map_or(0, |since| end.since(since).0);
        let without_end = self.cut.times + u64::from(self.since.is_some());
        ThrottledCpu { cpu, times: self.ended.len() as u64, ns: ended.saturating_add(open), without_end }
    }
}

impl Throttling {
    pub(crate) fn begin(&mut self, start: Ts, state: &SchedState) {
        self.start = start;
        for (cpu, cgroup, count) in state.throttling_limits() {
            self.has_cgroups |= cgroup.is_some();
            let of_cpu = self.cpus.entry(cpu).or_default();
            of_cpu.limits.insert(cgroup, count);
            of_cpu.since = Some(start);
        }
        for task in state.observed().flat_map(|cpu| state.throttled(cpu)) {
            self.open.extend(state.cgroup(task.pid).map(|cgroup| (task.id(), cgroup)));
        }
    }

    /// Takes a record of throttling, or a loss.
    #[inline(never)]
    pub(crate) fn record(&mut self, event: &SchedEvent) {
        match event.kind {
            EventKind::Probe { probe: Probe::Throttles(Throttle { cpu, cgroup, .. }), .. } => {
                self.step(ThrottleStep::Begins(cpu.unwrap_or(event.cpu), cgroup, event.ts));
            }
            EventKind::Probe { probe: Probe::Unthrottles(Throttle { cpu, cgroup, .. }), .. } => {
                self.step(ThrottleStep::Ends(cpu.unwrap_or(event.cpu), cgroup, event.ts));
            }
            EventKind::Lost { .. } => self.step(ThrottleStep::Loses(event.ts)),
            _ => {}
        }
    }

    /// Leaves the steps to the analysis of the pieces before, where a later piece of a pass begins that itself has begun at
    /// `start`.
    pub(crate) fn resume(&mut self, start: Ts) {
        *self = Throttling { start, log: Some(Vec::new()), ..Throttling::default() };
    }

    /// Takes the steps of a later piece.
    pub(crate) fn join(&mut self, later: Throttling) {
        later.log.into_iter().flatten().for_each(|step| self.step(step));
    }

    fn step(&mut self, step: ThrottleStep) {
        if let Some(log) = &mut self.log {
            return log.push(step);
        }
        match step {
            ThrottleStep::Begins(cpu, cgroup, ts) => {
                self.has_cgroups |= cgroup.is_some();
                self.cpus.entry(cpu).or_default().begin(cgroup, ts);
            }
            ThrottleStep::Ends(cpu, cgroup, ts) => {
                self.has_cgroups |= cgroup.is_some();
                self.cpus.entry(cpu).or_default().end(cgroup, ts);
            }
            ThrottleStep::Loses(ts) => self.cpus.values_mut().for_each(|of_cpu| of_cpu.lose(ts)),
            ThrottleStep::Throttles(task, cgroup) => drop(self.open.insert(task, cgroup)),
            ThrottleStep::Throttled(task, pid, name, length) => {
                let (comm, sum) = self.tasks.entry(pid).or_default();
                sum.add(length);
                *comm = name.unwrap_or(*comm);
                if let Some(cgroup) = self.open.remove(&task) {
                    self.cgroups.entry(cgroup).or_default().add(length);
                }
            }
        }
    }

    /// The spans that have ended, or that the end of the window cuts.
    pub(crate) fn take_spans(&mut self, state: &SchedState) {
        for span in state.spans() {
            if let TaskState::Throttled(_) = span.state {
                self.take(span, state);
            }
            if let (TaskState::Throttled(_), Some(cgroup)) = (span.next, state.cgroup(span.pid)) {
                self.step(ThrottleStep::Throttles(span.task, cgroup));
            }
        }
    }

    /// The window ends.
    pub(crate) fn finish(&mut self, end: Ts, state: &SchedState) {
        self.end = end;
        self.take_spans(state);
    }

    fn take(&mut self, span: &Span, state: &SchedState) {
        let length = span.end.since(span.start.max(self.start));
        let name = state.task(span.task).map(|task| task.comm);
        self.step(ThrottleStep::Throttled(span.task, span.pid, name, length));
    }

    /// Returns the throttling of each CPU that was throttled, in the order of the CPUs.
    pub fn by_cpu(&self) -> Vec<ThrottledCpu> {
        let all = self.cpus.iter().map(|(cpu, of_cpu)| of_cpu.report(*cpu, self.end));
        all.filter(|throttled| throttled.times + throttled.without_end > 0).collect()
    }

    /// The tasks that were throttled longest, ten at most.
    pub fn by_task(&self) -> Vec<ThrottledTask> {
        let task = |(pid, (command, sum)): (&Pid, &(Comm, Sum))| ThrottledTask {
            pid: *pid,
            command: *command,
            times: sum.times,
            ns: sum.ns,
        };
        let mut all: Vec<ThrottledTask> = self.tasks.iter().map(task).collect();
        all.sort_unstable_by_key(|task| (Reverse(task.ns), task.pid));
        all.truncate(KEPT);
        all
    }

    /// The cgroups whose tasks were throttled longest, ten at most.
    pub fn by_cgroup(&self) -> Vec<ThrottledCgroup> {
        let cgroup = |(id, sum): (&CgroupId, &Sum)| ThrottledCgroup { id: id.number(), times: sum.times, ns: sum.ns };
        let mut all: Vec<ThrottledCgroup> = self.cgroups.iter().map(cgroup).collect();
        all.sort_unstable_by_key(|cgroup| (Reverse(cgroup.ns), cgroup.id));
        all.truncate(KEPT);
        all
    }

    /// The throttled time of all tasks, in nanoseconds; nothing if the records show no cgroup, so that throttled tasks
    /// count as waiting.
    pub fn task_ns(&self) -> Option<u64> {
        let all = self.tasks.values().map(|(_, sum)| sum.ns).fold(0, u64::saturating_add);
        self.has_cgroups.then_some(all)
    }

    /// Returns the time between two instants for which a CPU was throttled, in nanoseconds; without the times that a loss cut.
    pub fn within(&self, cpu: Cpu, from: Ts, to: Ts) -> u64 {
        let Some(of_cpu) = self.cpus.get(&cpu) else { return 0 };
        let open = of_cpu.since.map(|since| (since, to.max(since)));
        let within = |(start, end): (Ts, Ts)| end.min(to).since(start.max(from).min(end.min(to))).0;
        // They are in the order of time.
        let ended = &of_cpu.ended[of_cpu.ended.partition_point(|(_, end)| *end <= from)..];
        let ended = ended.iter().copied().take_while(|(start, _)| *start < to);
        ended.chain(open).map(within).fold(0, u64::saturating_add)
    }

    /// Whether a CPU was throttled for more than half of a pending switch.
    fn explains(&self, pending: &PendingSwitch) -> bool {
        let (from, to) = (pending.start_ns, pending.start_ns.after(pending.duration_ns));
        self.within(pending.cpu, from, to).saturating_mul(2) > pending.duration_ns.0
    }

    /// The line for people; nothing if no CPU was throttled. `path` has the names of cgroups.
    pub fn text(
        &self,
        pending_switches: &[PendingSwitch],
        path: impl Fn(CgroupId) -> Option<String>,
    ) -> Option<String> {
        let all = self.by_cpu();
        if all.is_empty() {
            return None;
        }
        let cpus: Vec<Cpu> = all.iter().map(|throttled| throttled.cpu).collect();
        let sum = |number: fn(&ThrottledCpu) -> u64| all.iter().map(number).fold(0, u64::saturating_add);
        let (times, ns) = (sum(|one| one.times), sum(|one| one.ns));
        let without_end = match sum(|one| one.without_end) {
            0 => String::new(),
            n => format!(" and {} without an end", sched::nouns::counted(n, "time")),
        };
        let explained = pending_switches.iter().filter(|pending| self.explains(pending)).count();
        let of_pending = match pending_switches.len() {
            0 => String::new(),
            n => format!(
                "; {explained} of the {n} listed {} that a CPU idled beside a task of its own {} within that",
                sched::nouns::noun(n, "time"),
                if explained == 1 { "lies" } else { "lie" }
            ),
        };
        let tasks = match self.task_ns() {
            None => "The probes do not show which tasks: throttled tasks count as waiting".to_owned(),
            Some(0) => "No throttled task is known: tasks whose cgroup is unknown count as waiting".to_owned(),
            Some(ns) => self.tasks_text(ns, path),
        };
        Some(format!(
            "bandwidth control (cpu.max) throttled {} {} {}{without_end}: a limit held for {} of CPU time{of_pending}. {tasks}",
            sched::nouns::noun(cpus.len(), "CPU"),
            sched::topology::format_cpu_list(&cpus),
            sched::nouns::counted(times, "time"),
            Dur(ns).human()
        ))
    }

    fn tasks_text(&self, ns: u64, path: impl Fn(CgroupId) -> Option<String>) -> String {
        const NAMED: usize = 3;
        let tasks = self.by_task();
        let names =
            tasks.iter().take(NAMED).map(|task| format!("{}: {}", task.pid.named(task.command), Dur(task.ns).human()));
        let cgroups = self.by_cgroup();
        let cgroups = cgroups.iter().take(NAMED).map(|cgroup| {
            let name = path(CgroupId::new(cgroup.id)).unwrap_or_else(|| format!("number {}", cgroup.id));
            format!("{name}: {}", Dur(cgroup.ns).human())
        });
        let (names, cgroups): (Vec<_>, Vec<_>) = (names.collect(), cgroups.collect());
        let more = if self.tasks.len() > NAMED { ", …" } else { "" };
        format!(
            "{} of throttled tasks do not count as waiting ({}{more}); by cgroup: {}",
            Dur(ns).human(),
            names.join(", "),
            cgroups.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_without_a_cgroup_are_paired_by_cpu() {
        let mut throttling = Throttling { end: Ts(45), ..Throttling::default() };
        let mut cpu = |cpu: u32, begins: bool, ts: i64| {
            let of_cpu = throttling.cpus.entry(Cpu(cpu)).or_default();
            if begins { of_cpu.begin(None, Ts(ts)) } else { of_cpu.end(None, Ts(ts)) }
        };
        cpu(0, false, 5);
        cpu(0, true, 10);
        // Another cgroup on the same CPU.
        cpu(0, true, 12);
        cpu(0, false, 30);
        cpu(2, true, 40);
        assert_eq!(
            throttling.by_cpu(),
            [
                ThrottledCpu { cpu: Cpu(0), times: 1, ns: 20, without_end: 0 },
                ThrottledCpu { cpu: Cpu(2), times: 0, ns: 5, without_end: 1 }
            ]
        );
        let pending = |cpu: u32, from: i64, ns: u64| PendingSwitch {
            cpu: Cpu(cpu),
            start_ns: Ts(from),
            start_in_trace_ns: 0,
            duration_ns: Dur(ns),
            waiting: Vec::new(),
        };
        assert!(throttling.explains(&pending(0, 10, 20)) && throttling.explains(&pending(0, 0, 35)));
        assert!(!throttling.explains(&pending(0, 25, 20)) && !throttling.explains(&pending(1, 10, 20)));
        assert!(throttling.explains(&pending(2, 41, 9)) && !throttling.explains(&pending(2, 0, 50)));
    }

    #[test]
    fn a_cpu_is_throttled_while_a_limit_of_any_cgroup_holds() {
        let (one, other) = (Some(CgroupId::new(1)), Some(CgroupId::new(2)));
        let mut cpu = OfCpu::default();
        cpu.begin(one, Ts(10));
        cpu.begin(other, Ts(12));
        cpu.begin(other, Ts(13));
        cpu.end(one, Ts(20));
        cpu.end(other, Ts(25));
        assert!(cpu.ended.is_empty());
        cpu.end(other, Ts(30));
        cpu.end(other, Ts(31));
        cpu.begin(one, Ts(40));
        // The end can be among the lost events.
        cpu.lose(Ts(45));
        cpu.end(one, Ts(50));
        assert_eq!(cpu.report(Cpu(3), Ts(60)), ThrottledCpu { cpu: Cpu(3), times: 1, ns: 25, without_end: 1 });
    }
}
