//! How evenly CPU time is shared, and who starves.
//!
//! In goes a trace, out come the run times and waits of its members, the evenness of the run times, the longest waits, and shares
//! by weight. Begin reading in `evenness.rs`, then below in this file, where runs and waits are counted.
//!
//! A *member* is a task, a command, the children of one parent, or what a regular expression catches in
//! the command. Over the members' run times, in increasing order x₁ … xₙ:
//!
//! * Gini coefficient: (2 Σ i·xᵢ) / (n Σ xᵢ) − (n + 1)/n; 0 where all have the same, near 1 where one has all;
//! * Jain's index: (Σ xᵢ)² / (n Σ xᵢ²); 1 where all have the same, 1/n where one has all;
//! * Lorenz curve: what share of the time the members that ran least have together.
//!
//! A task that executes a program ran by two names, by each as long as it had it. One that names itself without that
//! has its new name from the next switch on, unless `task_rename` was recorded, which shows it at once. A run length counts
//! by the latest.
//!
//! The run times of members that never wanted a CPU are no sign of unfairness: beside what a member got
//! stands what it wanted, its time runnable (running or waiting).
//!
//! ```
//! use fairness::{Fairness, Options};
//! use sched::{Pass, Ts};
//!
//! // A task waits on CPU 0 for 200 ns while CPU 1 idles.
//! let events = testkit::a_wait_beside_an_idle_cpu();
//! let options = Options::new(Ts(100), Ts(600));
//! let outcome = Pass::over(events.as_slice()).run(|| Fairness::new(&options)).unwrap_or_else(|never| match never {});
//! assert_eq!(outcome.output.members.len(), 3);
//! assert_eq!(outcome.output.members.iter().map(|member| member.run_ns.0).sum::<u64>(), 550);
//! ```

mod args;
mod evenness;
mod fair_runs;
mod figure;
mod followed_waits;
mod idling;
mod joined;
mod past;
mod question;
mod report;
mod runs;
mod shares;
mod table;
mod waits;

pub use args::FairnessArgs;
pub use fair_runs::{FairRunsOfCpu, FairRunsReport};
pub use figure::figure;
pub use idling::IdleCpu;
pub use question::FairnessQuestion;
pub use report::{FairnessReport, IntervalReport, Member, WithoutTime, text};
pub use shares::ApplicationShares;
pub use waits::{QueueTime, Starved};

use entitlement::SharesReport;
use fair_runs::FairRuns;
use idling::IdleTimes;
use joined::WaitLog;
use membership::{DeadlineParams, GroupLabel, ParamsHistory, TaskGroup, TaskGroups, TasksBy};
use sched::event::escape;
use sched::kthread::command;
use sched::limits::ROWS;
use sched::nice::{FairBefore, weight_of};
use sched::seeded::SeededMap;
use sched::state::Task;
use sched::{
    Addend, Affinity, Analysis, Chosen, Comm, CpuSpan, Current, Dur, EventKind, Lengths, PerTask, Pid, QueuedAsk,
    SchedEvent, SchedState, Span, Summed, TaskId, TaskState, Ts,
};
use std::cmp::Ordering;
use std::sync::Arc;
use timeline::Division;
use waits::Waits;

/// The rule by which tasks form members.
#[derive(Clone, Debug, Default)]
pub enum GroupBy {
    /// Each task by itself.
    #[default]
    Task,
    /// The tasks of the same command name; the kernel's threads for each CPU have one ([`command`]).
    Command,
    /// The threads of the same process.
    Process,
    /// The tasks of the same cgroup.
    Cgroup,
    /// The tasks with the same scheduling parameters.
    Params,
    /// Children of the same parent.
    Parent,
    /// The tasks in whose name the expression matches the same text; those that it does not match are left out.
    Matched(regex::Regex),
}

impl GroupBy {
    /// The rule of the groups that must be learned before the pass; nothing where each task, or an option of its own, makes the members.
    fn groups(&self) -> Option<TasksBy> {
        match self {
            GroupBy::Command => Some(TasksBy::Command),
            GroupBy::Process => Some(TasksBy::Process),
            GroupBy::Cgroup => Some(TasksBy::Cgroup),
            GroupBy::Params => Some(TasksBy::Params),
            GroupBy::Task | GroupBy::Parent | GroupBy::Matched(_) => None,
        }
    }
}

/// The window, the members and the limits of a measurement.
pub struct Options<'o> {
    /// The window's start.
    pub from: Ts,
    /// The window's end.
    pub to: Ts,
    /// The instant that counts as zero: the trace's start.
    pub zero: Ts,
    /// The rule by which tasks form members.
    pub by: GroupBy,
    /// The groups that the members are; absent where `by` decides alone. Without them commands are distinguished by their full names, and
    /// processes, cgroups and parameters are unknown.
    pub groups: Option<Arc<TaskGroups>>,
    /// The shares of cgroups by weight, measured before; absent where they were not asked for.
    pub shares: Option<SharesReport>,
    /// The parameters of deadline tasks; absent where no record shows them.
    pub deadlines: Option<Arc<ParamsHistory>>,
    /// The reason for which the kernel runs fair tasks in the place of real-time tasks.
    pub fair_before: FairBefore,
    /// The tasks that are measured; absent where all are.
    pub tasks: Option<&'o Chosen<'o>>,
    /// Shares are expected by the weights of the tasks' nice values; otherwise equal shares.
    pub weights: bool,
    /// The length of an interval.
    pub interval: Dur,
    /// Maximum number of longest waits to keep.
    pub worst: usize,
    /// Only the run and wait times of members are asked for: the distributions of runs and waits are empty, and no wait is kept.
    pub times_alone: bool,
    /// The CPUs that tasks may use; absent where these are unknown.
    pub affinity: Option<Arc<Affinity>>,
    /// The tasks whose queued time is divided by kind; absent where it is not asked for.
    pub queued: Option<QueuedAsk<'o>>,
}

impl Options<'_> {
    /// Options for a window whose start counts as zero: every task by itself, the window as one interval, the five longest waits.
    pub fn new(from: Ts, to: Ts) -> Self {
        let interval = Dur(to.since(from).0.max(1));
        Options {
            from,
            to,
            zero: from,
            by: GroupBy::Task,
            groups: None,
            shares: None,
            deadlines: None,
            fair_before: FairBefore::Unknown,
            tasks: None,
            weights: true,
            interval,
            worst: 5,
            times_alone: false,
            affinity: None,
            queued: None,
        }
    }
}

/// The most intervals.
pub const MOST_INTERVALS: u64 = 1_000;

/// The key of a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum MemberKey {
    Task(Pid),
    Command(Comm),
    Parent(Option<Pid>),
    Matched(String),
    /// A command by its stem, a process, a cgroup or scheduling parameters.
    Group(TaskGroup),
    /// The tasks beyond the number of members.
    Rest,
}

/// The attributes of a task that make it a member, its number, name and parent, and its priority; and whether it is of the application.
type Traits = (Pid, Comm, Option<Pid>, i32, bool);

/// The run and wait time of a member.
#[derive(Clone, Debug, Default)]
struct MemberSums {
    name: Comm,
    /// Whether its tasks had several names.
    has_several_names: bool,
    /// The smallest number of its tasks.
    first: Option<Pid>,
    /// The number of tasks that came to the member, by their lives, names, parents and priorities.
    tasks: u64,
    run_ns: u64,
    wait_ns: u64,
    runs: Lengths,
    waits: Lengths,
    /// The longest wait that still goes on at the end of the window.
    open_wait: Option<Dur>,
    weight: u64,
    /// Whether one of its tasks is of the application.
    is_of_application: bool,
    /// The least kernel priority of its tasks, that of the highest class; absent where none is known.
    prio: Option<i32>,
    /// The parameters of the deadline task that the member is, in the end.
    deadline_params: Option<DeadlineParams>,
    intervals: Summed<InInterval>,
    /// The process, the cgroup or the parameters that the member is, in the end.
    label: Option<Box<GroupLabel>>,
}

/// The share of a member in an interval: a task of a few intervals takes the room of these.
#[derive(Clone, Copy, Debug)]
struct InInterval {
    interval: usize,
    run_ns: u64,
    wait_ns: u64,
}

impl Addend for InInterval {
    fn order(&self, other: &InInterval) -> Ordering {
        self.interval.cmp(&other.interval)
    }

    fn join(&mut self, later: &InInterval) -> bool {
        let same = self.interval == later.interval;
        if same {
            self.run_ns = self.run_ns.saturating_add(later.run_ns);
            self.wait_ns = self.wait_ns.saturating_add(later.wait_ns);
        }
        same
    }
}

/// The analysis of shares and starvation: an [`Analysis`] whose output is a [`FairnessReport`].
pub struct Fairness<'o> {
    options: &'o Options<'o>,
    keys: SeededMap<MemberKey, usize>,
    members: Vec<(MemberKey, MemberSums)>,
    /// The member of each task, and what makes it one of it.
    homes: PerTask<(Traits, usize)>,
    intervals: Division,
    /// Runs in which a task took another name: until then they are accounted for, by the name of before.
    renamed: PerTask<Ts>,
    /// The part of a name that the expression matches.
    caught: SeededMap<Comm, Option<String>>,
    waits: Waits,
    idle: IdleTimes,
    fair_runs: FairRuns,
    /// The steps that are left to the analysis of the pieces before, if this one follows a later piece of a pass.
    log: Option<Box<WaitLog>>,
}

impl<'o> Fairness<'o> {
    /// Returns the analysis with the options of a measurement.
    pub fn new(options: &'o Options<'o>) -> Fairness<'o> {
        Fairness {
            options,
            keys: SeededMap::default(),
            members: Vec::new(),
            homes: PerTask::default(),
            intervals: Division::of_width(options.from, options.to, options.interval.0),
            renamed: PerTask::default(),
            caught: SeededMap::default(),
            waits: Waits::new(options.zero, options.worst),
            idle: IdleTimes::default(),
            fair_runs: FairRuns::default(),
            log: None,
        }
    }

    fn key(&mut self, task: &Task) -> Option<MemberKey> {
        Some(match &self.options.by {
            GroupBy::Task => MemberKey::Task(task.pid),
            GroupBy::Command => MemberKey::Command(command(task.comm)),
            GroupBy::Process | GroupBy::Cgroup | GroupBy::Params => MemberKey::Group(TaskGroup::Unknown),
            GroupBy::Parent => MemberKey::Parent(task.kin.parent),
            GroupBy::Matched(expression) => {
                let catch = || {
                    let name = escape(task.comm.as_bytes());
                    let found = expression.captures(&name)?;
                    found.get(1).or_else(|| found.get(0)).map(|m| m.as_str().to_owned())
                };
                if self.caught.len() >= ROWS && !self.caught.contains_key(&task.comm) {
                    return catch().map(MemberKey::Matched);
                }
                MemberKey::Matched(self.caught.entry(task.comm).or_insert_with(catch).clone()?)
            }
        })
    }

    /// The place of what a chosen task is a part of at an instant.
    fn member_of_chosen(&mut self, task: &Task, ts: Ts) -> Option<usize> {
        if let Some(groups) = &self.options.groups {
            return Some(self.member_of_group(task, groups.group(task, ts)));
        }
        let traits = traits(task);
        let home = self.homes.get(task.id()).filter(|(other, _)| *other == traits);
        if let Some((_, index)) = home {
            return Some(*index);
        }
        let key = self.key(task)?;
        let index = self.place_of(key);
        Some(self.enter(task, index))
    }

    /// The place of the group to which a chosen task belongs.
    fn member_of_group(&mut self, task: &Task, group: TaskGroup) -> usize {
        let index = self.place_of(MemberKey::Group(group));
        let is_home = self.homes.get(task.id()).is_some_and(|home| *home == (traits(task), index));
        if is_home { index } else { self.enter(task, index) }
    }

    /// The place of the member with a key, which is made if there is none.
    fn place_of(&mut self, mut key: MemberKey) -> usize {
        if self.members.len() >= ROWS && !self.keys.contains_key(&key) {
            key = MemberKey::Rest;
        }
        let members = &mut self.members;
        *self.keys.entry(key).or_insert_with_key(|key| {
            members.push((key.clone(), MemberSums::default()));
            members.len() - 1
        })
    }

    /// A task comes to a member, which takes its name.
    fn enter(&mut self, task: &Task, index: usize) -> usize {
        self.homes.insert(task.id(), (traits(task), index));
        let sums = &mut self.members[index].1;
        sums.has_several_names |= sums.tasks > 0 && sums.name != task.comm;
        sums.name = task.comm;
        sums.first = Some(sums.first.map_or(task.pid, |first| first.min(task.pid)));
        sums.tasks += 1;
        // The priority of a group is that of its strongest task.
        sums.weight = sums.weight.max(weight_of(task.prio));
        sums.prio = [sums.prio, task.known_prio()].into_iter().flatten().min();
        sums.is_of_application |= task.kin.descends;
        index
    }

    /// The task of a span as it was meanwhile; nothing where it is not measured. `earlier` is the place for a task that has another PID by
    /// now: a copy of each task, whatever its PID, took a sixth of the time of a pass.
    fn task_of<'t>(&self, span: &Span, state: &'t SchedState, earlier: &'t mut Option<Task>) -> Option<&'t Task> {
        let known = state.task(span.task)?;
        let task = if known.pid == span.pid { known } else { &*earlier.insert(before(known, span)) };
        self.options.tasks.is_none_or(|chosen| chosen(task, state)).then_some(task)
    }

    /// Adds the time of a chosen task from `start` to `end`, during which it ran or waited, to the members that it was a part of.
    fn add_time(&mut self, task: &Task, runs: bool, start: Ts, end: Ts) {
        if self.options.groups.is_some() {
            return self.add_time_of_groups(task, runs, start, end);
        }
        if let Some(member) = self.member_of_chosen(task, end) {
            self.members[member].1.add(runs, start, end, &mut self.intervals);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_time_of_groups(&mut self, task: &Task, runs: bool, start: Ts, end: Ts) {
        let mut parts = Vec::new();
        if let Some(groups) = &self.options.groups {
            groups.divide(&task.into(), start, end, |group, from, to| parts.push((group, from, to)));
        }
        for (group, from, to) in parts {
            let member = self.member_of_group(task, group);
            self.members[member].1.add(runs, from, to, &mut self.intervals);
        }
    }

    /// Leaves a run that began before this piece to the pieces before.
    #[cold]
    #[inline(never)]
    fn leave_run(&mut self, span: &Span, state: &SchedState) {
        if let (Some(log), Some(task)) = (&mut self.log, state.task(span.task)) {
            let task = before(task, span);
            let is_chosen = self.options.tasks.is_none_or(|chosen| chosen(&task, state));
            log.leave_run(&task, span.start, span.end, is_chosen);
        }
    }

    /// A task takes another name: what it ran until now counts by the one that it had.
    fn rename(&mut self, task: &Task, ts: Ts, state: &SchedState) {
        let TaskState::Running(_) = task.state else { return };
        if let Some(log) = self.log.as_mut().filter(|log| log.ran_before(task.id())) {
            let is_chosen = self.options.tasks.is_none_or(|chosen| chosen(task, state));
            log.leave_run(task, task.since.max(self.options.from), ts, is_chosen);
            return self.renamed.insert(task.id(), ts);
        }
        let start = self.renamed_in(task.id()).unwrap_or(task.since.max(self.options.from));
        if self.options.tasks.is_none_or(|chosen| chosen(task, state)) {
            self.add_time(task, true, start, ts);
        }
        self.renamed.insert(task.id(), ts);
    }

    /// The instant at which the task took its name, if it did so since it was switched in; asked for once.
    fn renamed_in(&mut self, task: TaskId) -> Option<Ts> {
        self.renamed.get(task)?;
        self.renamed.take(task)
    }
}

/// The properties of a task that make it a member.
fn traits(task: &Task) -> Traits {
    (task.pid, task.comm, task.kin.parent, task.prio, task.kin.descends)
}

/// The task of a span as it was meanwhile: a thread that executes takes another number.
fn before(task: &Task, span: &Span) -> Task {
    let mut before = *task;
    before.pid = span.pid;
    before
}

impl MemberSums {
    /// Adds the sums of the same member in a later piece of a pass.
    fn join(&mut self, later: MemberSums) {
        self.has_several_names |= later.has_several_names || (self.tasks > 0 && self.name != later.name);
        self.name = later.name;
        self.first = [self.first, later.first].into_iter().flatten().min();
        self.tasks += later.tasks;
        self.run_ns = self.run_ns.saturating_add(later.run_ns);
        self.wait_ns = self.wait_ns.saturating_add(later.wait_ns);
        self.runs.merge(&later.runs);
        self.waits.merge(&later.waits);
        self.open_wait = self.open_wait.max(later.open_wait);
        self.weight = self.weight.max(later.weight);
        self.prio = [self.prio, later.prio].into_iter().flatten().min();
        self.is_of_application |= later.is_of_application;
        self.intervals.extend(later.intervals.finish());
    }

    /// Whether its tasks ran or waited for some time.
    fn has_time(&self) -> bool {
        self.run_ns > 0 || self.wait_ns > 0
    }

    /// Adds a run or a wait of the member from `start` to `end`.
    fn add(&mut self, runs: bool, start: Ts, end: Ts, intervals: &mut Division) {
        let total = if runs { &mut self.run_ns } else { &mut self.wait_ns };
        *total = total.saturating_add(end.since(start).0);
        intervals.split(start, end, |interval, start, end| {
            let ns = end.since(start).0;
            let (run_ns, wait_ns) = if runs { (ns, 0) } else { (0, ns) };
            self.intervals.add(InInterval { interval, run_ns, wait_ns });
        });
    }
}

impl Analysis for Fairness<'_> {
    type Output = FairnessReport;
    const COUNTS: bool = true;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        if self.options.times_alone {
            return;
        }
        self.idle.begin(start, state);
        self.waits.begin(start, state);
        self.fair_runs.begin(start, state);
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        if !self.options.times_alone {
            let idles = state.counts().idle_cpus() > 0;
            match &mut self.log {
                Some(log) => log.pass(event.ts, idles),
                None => self.waits.pass(event.ts, idles),
            }
        }
        let renamed = match event.kind {
            EventKind::Exec { old_pid, .. } => state.task_of(old_pid),
            EventKind::Rename { pid, .. } => state.running(event.cpu).filter(|task| task.pid == pid),
            // It named itself at some moment of its run. That began by the name which was known.
            EventKind::Switch { prev, .. } => state.running(event.cpu).filter(|task| {
                task.comm != prev.comm && task.pid == prev.pid && !task.comm.is_empty() && !prev.comm.is_empty()
            }),
            _ => None,
        };
        if let Some(task) = renamed {
            self.rename(task, event.ts, state);
        }
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        let runs = match span.state {
            TaskState::Running(_) => true,
            // On a CPU without events the task may have run.
            TaskState::Waiting(cpu) if state.is_observed(cpu) => false,
            _ => return,
        };
        if runs && self.log.as_ref().is_some_and(|log| log.ran_before(span.task)) {
            return self.leave_run(span, state);
        }
        let renamed = if runs { self.renamed_in(span.task) } else { None };
        let mut earlier = None;
        let Some(task) = self.task_of(span, state, &mut earlier) else { return };
        self.add_time(task, runs, renamed.unwrap_or(span.start), span.end);
    }

    fn cpu_span(&mut self, span: &CpuSpan, _: &SchedState) {
        if let (Current::Task(_), false) = (span.current, self.options.times_alone) {
            match &mut self.log {
                Some(log) => log.ran(span),
                None => self.waits.ran(span.cpu, span.comm, span.start, span.end),
            }
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        if self.options.times_alone {
            return;
        }
        match &mut self.log {
            Some(log) => state.turned().iter().for_each(|(cpu, load)| log.load(*cpu, *load, event.ts)),
            None => state.turned().iter().for_each(|(cpu, load)| self.idle.follow(*cpu, *load, event.ts)),
        }
        for (task, span) in state.turns() {
            // Cut by a loss it is no whole run. It counts where it ends, with the part of it before the window.
            let mut earlier = None;
            if let (TaskState::Running(_), true, true) = (span.state, span.begun, span.ended)
                && let Some(task) = self.task_of(span, state, &mut earlier)
                && let Some(member) = self.member_of_chosen(task, event.ts)
            {
                self.members[member].1.runs.add(span.duration());
            }
            self.follow_wait(task, span, event.ts, state);
            self.fair_runs.turn(task, span, state);
        }
        self.fair_runs.after(event, state);
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> FairnessReport {
        if !self.options.times_alone {
            self.close_waits(end, state);
        }
        let is_known = state.why_application_is_unknown().is_none();
        report::build(self, end, is_known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_group_come_in_any_order() {
        let mut group = Summed::default();
        for task in 0..10 {
            let (run_ns, wait_ns) = if task % 2 == 0 { (3, 0) } else { (0, 3) };
            group.extend((task..1000).chain([500, 500]).map(|interval| InInterval { interval, run_ns, wait_ns }));
        }
        let found = group.finish();
        assert!(found.is_sorted_by_key(|of| of.interval) && found.len() == 1000);
        let of = |interval: usize| [found[interval].run_ns, found[interval].wait_ns];
        assert_eq!([0, 1, 500, 999].map(of), [[3, 0], [3, 3], [45, 45], [15, 15]]);
    }
}
