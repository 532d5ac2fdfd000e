//! The analysis: the division of the CPUs from instant to instant.

use crate::report::{EqualTasks, GroupShare, SecondShare, SharesReport};
use crate::tree::{Claim, WeightTree, divide};
use membership::{Cgroups, FollowedCgroups};
use sched::limits::ROWS;
use sched::nice::weight_of;
use sched::probe::{Probe, Throttle};
use sched::seeded::SeededMap;
use sched::state::Task;
use sched::{
    Analysis, Cpu, CpuSet, Current, Dur, EventKind, PerTask, Pid, SchedEvent, SchedState, StepLog, TaskId, TaskState,
    Ts,
};
use std::collections::BTreeMap;

/// The length of the intervals of which the longest time below half consists.
const INTERVAL: u64 = 100_000_000;
const SECOND: u64 = 1_000_000_000;
/// Maximum number of seconds that are kept by cgroup.
const MOST_SECONDS: u64 = 3_600;
/// The least entitlement, in nanoseconds, of a task that is compared with its equals.
const COMPARED: f64 = 10e6;

/// The runnable tasks of a weight in a group.
#[derive(Clone, Copy, Debug, Default)]
struct TaskClass {
    runnable: u32,
    /// The CPUs to which each of them is entitled now.
    rate: f64,
    /// The CPU time to which one that was always runnable would have been entitled so far, in nanoseconds.
    entitled: f64,
}

/// CPU time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    entitled: f64,
    got: f64,
}

/// A group as of the present instant, with its sums.
#[derive(Clone, Debug, Default)]
struct GroupState {
    classes: BTreeMap<u64, TaskClass>,
    /// The runnable and the running tasks in the group and below it.
    runnable: u32,
    running: u32,
    /// The CPUs to which the group is entitled now.
    rate: f64,
    runnable_ns: u64,
    all: Shares,
    interval: Shares,
    second: Shares,
    seconds: Vec<SecondShare>,
    /// The number of intervals below half up to now without a break, and the greatest such number with the interval behind its last.
    below: u64,
    longest: (u64, u64),
}

/// A runnable task of the fair class.
#[derive(Clone, Copy, Debug)]
struct Runnable {
    group: usize,
    weight: u64,
    runs: bool,
    /// The sum of its class as it became runnable there.
    entitled: f64,
    since: Ts,
}

/// The analysis of shares by weight: an [`Analysis`] whose output is a [`SharesReport`].
pub struct ShareMeter<'o> {
    tree: &'o WeightTree,
    cgroups: FollowedCgroups<'o>,
    groups: Vec<GroupState>,
    below: Vec<Vec<usize>>,
    tasks: PerTask<Runnable>,
    /// The running tasks that are not of the fair class.
    privileged: PerTask<()>,
    privileged_count: u32,
    by_task: SeededMap<(usize, u64, Pid), Shares>,
    observed: CpuSet,
    offline: CpuSet,
    /// The CPUs that each group can use now: one for each runnable task, and no more than the limits allow.
    usable: Vec<f64>,
    /// Whether the trace shows the tasks that limits hold back, so that these are not runnable then.
    shows_throttled: bool,
    start: Ts,
    now: Ts,
    /// Whether the rates are those of before the latest change.
    is_stale: bool,
    /// The steps of a later piece of a pass, for the pieces before.
    log: StepLog<(Ts, ShareStep)>,
}

/// A step that an event is for the division of the CPUs.
#[derive(Clone, Copy, Debug)]
enum ShareStep {
    /// A task comes to a place, or to none.
    Places(TaskId, Pid, Option<ShareOf>),
    /// A CPU has its first event.
    Observes(Cpu),
    /// A CPU goes offline or comes back.
    TurnsOffline(Cpu, bool),
    /// The trace shows tasks that limits hold back.
    ShowsThrottled,
}

/// A runnable task, as it shares the CPUs.
#[derive(Clone, Copy, Debug)]
enum ShareOf {
    /// One that runs before all of the fair class.
    Privileged,
    /// One of the fair class.
    Fair { group: usize, weight: u64, runs: bool },
}

impl<'o> ShareMeter<'o> {
    /// Returns the analysis for a tree of cgroups, and the cgroup of each task.
    pub fn new(tree: &'o WeightTree, cgroups: &'o Cgroups) -> ShareMeter<'o> {
        let mut below = vec![Vec::new(); tree.groups.len()];
        for (place, group) in tree.groups.iter().enumerate().skip(1) {
            below[group.above].push(place);
        }
        ShareMeter {
            tree,
            cgroups: FollowedCgroups::new(cgroups),
            groups: vec![GroupState::default(); tree.groups.len()],
            below,
            tasks: PerTask::default(),
            privileged: PerTask::default(),
            privileged_count: 0,
            by_task: SeededMap::default(),
            observed: CpuSet::default(),
            offline: CpuSet::default(),
            usable: vec![0.0; tree.groups.len()],
            shows_throttled: false,
            start: Ts(0),
            now: Ts(0),
            is_stale: true,
            log: StepLog::default(),
        }
    }

    /// Accounts for the time up to `ts`.
    fn pass(&mut self, ts: Ts) {
        while self.now < ts {
            if std::mem::take(&mut self.is_stale) {
                self.divide();
            }
            let done = self.now.since(self.start).0;
            let edge = (done / INTERVAL + 1).saturating_mul(INTERVAL);
            let end = ts.since(self.start).0.min(edge);
            self.add(end - done);
            if end == edge {
                self.end_interval(edge);
            }
            self.now = self.start.after(Dur(end));
        }
    }

    /// Adds a time in which nothing changes.
    fn add(&mut self, ns: u64) {
        let time = ns as f64;
        for group in self.groups.iter_mut().filter(|group| group.runnable > 0) {
            group.runnable_ns += ns;
            let (entitled, got) = (group.rate * time, f64::from(group.running) * time);
            for shares in [&mut group.all, &mut group.interval, &mut group.second] {
                shares.entitled += entitled;
                shares.got += got;
            }
            for class in group.classes.values_mut().filter(|class| class.runnable > 0) {
                class.entitled += class.rate * time;
            }
        }
    }

    /// Ends an interval, and a second with it.
    fn end_interval(&mut self, edge: u64) {
        for group in &mut self.groups {
            let Shares { entitled, got } = std::mem::take(&mut group.interval);
            group.below = if entitled > 0.0 && got < entitled / 2.0 { group.below + 1 } else { 0 };
            if group.below > group.longest.0 {
                group.longest = (group.below, edge / INTERVAL);
            }
            if edge.is_multiple_of(SECOND) {
                group.end_second(edge / SECOND - 1);
            }
        }
    }

    /// Finds the CPUs that each group can use now, from those below up.
    fn find_usable(&mut self) {
        for (usable, group) in self.usable.iter_mut().zip(&self.groups) {
            *usable = f64::from(group.classes.values().map(|class| class.runnable).sum::<u32>());
        }
        for (place, group) in self.tree.groups.iter().enumerate().rev() {
            if !self.shows_throttled {
                self.usable[place] = self.usable[place].min(group.allowed);
            }
            if place > 0 {
                self.usable[group.above] += self.usable[place];
            }
        }
    }

    /// Divides the CPUs anew, from the root down.
    fn divide(&mut self) {
        self.find_usable();
        let cpus = self.observed.len().saturating_sub(self.offline.len()).saturating_sub(self.privileged_count);
        self.groups[0].rate = self.usable[0].min(f64::from(cpus));
        for place in 0..self.groups.len() {
            if self.groups[place].runnable == 0 {
                continue;
            }
            let active: Vec<usize> =
                self.below[place].iter().copied().filter(|below| self.groups[*below].runnable > 0).collect();
            let group = &mut self.groups[place];
            let tasks: Vec<u64> =
                group.classes.iter().filter(|(_, class)| class.runnable > 0).map(|(weight, _)| *weight).collect();
            let of_class = |weight: &u64| {
                let runnable = f64::from(group.classes[weight].runnable);
                Claim { weight: *weight as f64 * runnable, most: runnable }
            };
            let mut claims: Vec<Claim> = tasks.iter().map(of_class).collect();
            let rate = group.rate;
            claims.extend(
                active.iter().map(|below| Claim { weight: self.tree.groups[*below].weight, most: self.usable[*below] }),
            );
            let shares = divide(rate, &claims);
            let (of_tasks, of_groups) = shares.split_at(tasks.len());
            for (weight, share) in tasks.iter().zip(of_tasks) {
                if let Some(class) = self.groups[place].classes.get_mut(weight) {
                    class.rate = share / f64::from(class.runnable);
                }
            }
            active.iter().zip(of_groups).for_each(|(below, share)| self.groups[*below].rate = *share);
        }
    }

    /// Takes a task out of its group, with its sums.
    fn leave(&mut self, id: TaskId, pid: Pid) {
        if self.privileged.take(id).is_some() {
            self.privileged_count -= 1;
            self.is_stale = true;
        }
        let Some(Runnable { group, weight, runs, entitled, since }) = self.tasks.take(id) else { return };
        self.is_stale = true;
        self.count(group, -1, if runs { -1 } else { 0 });
        let Some(class) = self.groups[group].classes.get_mut(&weight) else { return };
        class.runnable -= 1;
        let key = (group, weight, pid);
        if self.by_task.len() < ROWS || self.by_task.contains_key(&key) {
            let shares = self.by_task.entry(key).or_default();
            shares.entitled += class.entitled - entitled;
            shares.got += if runs { self.now.since(since).0 as f64 } else { 0.0 };
        }
    }

    /// Changes the counts of a group and of those above it.
    fn count(&mut self, place: usize, runnable: i32, running: i32) {
        let mut at = place;
        loop {
            let group = &mut self.groups[at];
            group.runnable = group.runnable.saturating_add_signed(runnable);
            group.running = group.running.saturating_add_signed(running);
            if at == 0 {
                return;
            }
            at = self.tree.groups[at].above;
        }
    }

    /// Counts a task where it is runnable from `ts` on, and no longer where it was.
    fn place(&mut self, task: &Task, ts: Ts, state: &SchedState) {
        let runs = match task.state {
            TaskState::Running(_) => Some(true),
            // A task that is queued on a CPU without events may have run.
            TaskState::Waiting(cpu) if state.is_observed(cpu) => Some(false),
            _ => None,
        };
        let share = match runs {
            Some(runs) if task.prio < 100 && task.known_prio().is_some() => runs.then_some(ShareOf::Privileged),
            Some(runs) => {
                let (group, weight) = (self.tree.place(self.cgroups.of(task.pid)), weight_of(task.prio));
                Some(ShareOf::Fair { group, weight, runs })
            }
            None => None,
        };
        self.step(ts, ShareStep::Places(task.id(), task.pid, share));
    }

    /// Follows a step, or notes it in a later piece of a pass.
    fn step(&mut self, ts: Ts, step: ShareStep) {
        if let Some((ts, step)) = self.log.at_once((ts, step)) {
            self.take_step(ts, step);
        }
    }

    fn take_step(&mut self, ts: Ts, step: ShareStep) {
        self.pass(ts);
        match step {
            ShareStep::Places(task, pid, share) => {
                self.leave(task, pid);
                share.into_iter().for_each(|share| self.join_group(task, share));
            }
            ShareStep::Observes(cpu) => {
                self.observed.set(cpu, true);
                self.is_stale = true;
            }
            ShareStep::TurnsOffline(cpu, is_offline) => {
                self.offline.set(cpu, is_offline);
                self.is_stale = true;
            }
            ShareStep::ShowsThrottled => self.is_stale |= !std::mem::replace(&mut self.shows_throttled, true),
        }
    }

    fn join_group(&mut self, task: TaskId, share: ShareOf) {
        self.is_stale = true;
        match share {
            ShareOf::Privileged => {
                self.privileged.insert(task, ());
                self.privileged_count += 1;
            }
            ShareOf::Fair { group, weight, runs } => {
                self.count(group, 1, i32::from(runs));
                let class = self.groups[group].classes.entry(weight).or_default();
                class.runnable += 1;
                let entitled = class.entitled;
                self.tasks.insert(task, Runnable { group, weight, runs, entitled, since: self.now });
            }
        }
    }

    fn follow_cgroups(&mut self, ts: Ts, state: Option<&SchedState>) {
        while let Some(change) = self.cgroups.next(ts) {
            if let Some((task, state)) = state.and_then(|state| Some((state.task_of(change.pid)?, state))) {
                self.place(task, change.ts, state);
            }
        }
    }

    /// Follows whether a CPU is offline, whose occupant has changed.
    fn look(&mut self, cpu: Cpu, ts: Ts, state: &SchedState) {
        let is_offline = state.current(cpu) == Current::Offline;
        if self.offline.has(cpu) != is_offline {
            self.step(ts, ShareStep::TurnsOffline(cpu, is_offline));
            // A later piece goes by its own.
            self.offline.set(cpu, is_offline);
        }
    }
}

impl GroupState {
    fn end_second(&mut self, second: u64) {
        let Shares { entitled, got } = std::mem::take(&mut self.second);
        if (entitled > 0.0 || got > 0.0) && second < MOST_SECONDS {
            self.seconds.push(SecondShare { second, entitled_ns: ns(entitled), got_ns: ns(got) });
        }
    }
}

/// Sums go by the order of all changes: a later piece notes these, which need the state no more.
impl sched::Joined for ShareMeter<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, at: Ts, state: &SchedState) {
        self.cgroups.resume(at);
        self.observed = state.observed().collect();
        self.offline = state.observed().filter(|cpu| state.current(*cpu) == Current::Offline).collect();
        self.log.resume();
    }

    fn fits(&self, later: &Self) -> bool {
        later.log.keeps()
    }

    fn join(&mut self, later: Self) {
        later.log.into_steps().for_each(|(ts, step)| self.take_step(ts, step));
        self.cgroups = later.cgroups;
    }
}

impl Analysis for ShareMeter<'_> {
    type Output = SharesReport;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        (self.start, self.now) = (start, start);
        self.follow_cgroups(start, None);
        self.observed = state.observed().collect();
        state.observed().for_each(|cpu| self.look(cpu, start, state));
        state.living().for_each(|task| self.place(task, start, state));
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        self.follow_cgroups(event.ts, Some(state));
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        if let EventKind::Probe { probe: Probe::Throttles(Throttle { cgroup: Some(_), .. }), .. } = event.kind {
            self.step(event.ts, ShareStep::ShowsThrottled);
        }
        if !self.observed.has(event.cpu) {
            self.step(event.ts, ShareStep::Observes(event.cpu));
            self.observed.set(event.cpu, true);
            state.waiting(event.cpu).for_each(|task| self.place(task, event.ts, state));
        }
        for span in state.cpu_spans() {
            self.look(span.cpu, event.ts, state);
        }
        for span in state.spans() {
            match state.task(span.task) {
                Some(task) => self.place(task, event.ts, state),
                None => self.step(event.ts, ShareStep::Places(span.task, span.pid, None)),
            }
        }
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> SharesReport {
        self.pass(end);
        state.living().for_each(|task| self.leave(task.id(), task.pid));
        let done = end.since(self.start).0;
        if !done.is_multiple_of(INTERVAL) {
            self.end_interval((done / INTERVAL + 1).saturating_mul(INTERVAL));
        }
        if !done.is_multiple_of(SECOND) {
            self.groups.iter_mut().for_each(|group| group.end_second(done / SECOND));
        }
        let mut equals = equal_tasks(&self.by_task);
        let groups = self.groups.into_iter().zip(&self.tree.groups).enumerate();
        let groups = groups.filter(|(_, (state, _))| state.runnable_ns > 0).map(|(place, (state, group))| {
            let Shares { entitled, got } = state.all;
            let (length, behind) = state.longest;
            GroupShare {
                cgroup: group.path.clone(),
                weight: group.cpu_weight,
                is_idle: group.is_idle,
                runnable_ns: Dur(state.runnable_ns),
                entitled_ns: ns(entitled),
                got_ns: ns(got),
                got_percent: (entitled > 0.0).then(|| 100.0 * got / entitled),
                longest_below_half_ns: Dur((length * INTERVAL).min(done)),
                below_half_from_ns: (length > 0).then(|| Dur((behind - length) * INTERVAL)),
                seconds: state.seconds,
                equal_tasks: equals.remove(&place),
            }
        });
        let mut groups: Vec<GroupShare> = groups.collect();
        groups.sort_by(|a, b| a.cgroup.cmp(&b.cgroup));
        SharesReport { groups, unknown: None }
    }
}

fn ns(time: f64) -> Dur {
    Dur(time.round() as u64)
}

/// The spread between the tasks of each group that have the same weight.
fn equal_tasks(by_task: &SeededMap<(usize, u64, Pid), Shares>) -> BTreeMap<usize, EqualTasks> {
    let mut classes: BTreeMap<(usize, u64), Vec<(f64, Pid)>> = BTreeMap::new();
    for ((group, weight, pid), shares) in by_task.iter().filter(|(_, shares)| shares.entitled >= COMPARED) {
        classes.entry((*group, *weight)).or_default().push((100.0 * shares.got / shares.entitled, *pid));
    }
    let mut found: BTreeMap<usize, EqualTasks> = BTreeMap::new();
    for ((group, weight), mut tasks) in classes.into_iter().filter(|(_, tasks)| tasks.len() > 1) {
        tasks.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        let ([(least_percent, least_pid), ..], Some((most_percent, most_pid))) = (&tasks[..], tasks.last()) else {
            continue;
        };
        let equal = EqualTasks {
            tasks: tasks.len(),
            weight,
            least_percent: *least_percent,
            least_pid: *least_pid,
            most_percent: *most_percent,
            most_pid: *most_pid,
        };
        if found.get(&group).is_none_or(|other| other.tasks < equal.tasks) {
            found.insert(group, equal);
        }
    }
    found
}
