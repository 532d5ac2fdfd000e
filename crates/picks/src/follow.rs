//! The events of a trace, one by one: switches, and the records behind them.

use crate::Picks;
use crate::exact::{Contender, Explained, RecordedPick, RecordedWait, numbers};
use crate::group::GroupKey;
use crate::queue::real_length;
use crate::reason::Reason;
use crate::rows::Counted;
use crate::samples::{LagSample, RunSample};
use membership::RowKey;
use sched::nice::weight_of;
use sched::probe::{Left, Probe};
use sched::state::Task;
use sched::{Comm, Cpu, Dur, EventKind, Pid, SchedEvent, SchedState, TaskId, TaskRef, TaskState, Ts};
use serde::{Deserialize, Serialize};

/// Maximum number of lags that are kept for a figure.
const MOST_SAMPLES: usize = 1 << 16;

/// The rivals that a task had as it left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RivalsAtLeave {
    /// None on its run queue: its lag is zero.
    Alone,
    /// Tasks that can be on its run queue.
    OwnGroup,
    /// Tasks of other groups, beside a task of the root group or of an unknown one: its lag depends on those of the groups.
    AmongGroups,
}

/// The latest switch of a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LatestSwitch {
    pub(crate) prev: TaskRef,
    pub(crate) prev_id: Option<TaskId>,
    /// Whether the task that left can run on.
    pub(crate) prev_waits: bool,
    /// The task that was woken last on the CPU since then.
    pub(crate) woken: Option<Pid>,
}

pub(crate) fn is_fair(task: &Task) -> bool {
    task.known_prio().is_some_and(|prio| prio >= 100)
}

impl Picks<'_> {
    /// Follows an event that was applied to `state`.
    pub(crate) fn take(&mut self, event: &SchedEvent, state: &SchedState) {
        for (task, span) in state.turns() {
            match (span.state, span.next) {
                (TaskState::Waiting(old), TaskState::Waiting(new)) if old == new => {}
                (_, TaskState::Waiting(_)) => self.exact.waits(task.id()),
                // The pick that ends a wait looks at it first.
                (_, TaskState::Running(_)) => {}
                _ => self.exact.ends(task.id()),
            }
        }
        let given = &self.options.groups;
        let group = |task: &Task| GroupKey::of(task, state, given);
        self.fluid.follow(state, group);
        self.rivals.follow(event, state, group);
        match event.kind {
            EventKind::Switch { prev, next, .. } => self.switched(event, prev, next, state),
            EventKind::Wakeup { task, target } => {
                if let Some(latest) = self.switches.get_mut(&target) {
                    latest.woken = Some(task.pid);
                }
            }
            EventKind::Lost { .. } => {
                self.abandon(event.cpu);
                self.switches.remove(&event.cpu);
            }
            EventKind::Probe { probe, .. } => self.probed(event.cpu, probe, state),
            _ => {}
        }
        self.runs(state);
    }

    /// Keeps the lengths of runs, and ends the waits of the tasks that run now.
    fn runs(&mut self, state: &SchedState) {
        for (task, span) in state.turns() {
            if let TaskState::Running(cpu) = span.state
                && let Some(since) = self.ran_since.take(task.id())
                && span.ended
                && self.counts(task, cpu, state)
                && is_fair(task)
            {
                let length = span.end.since(since);
                self.sums.runs.add(length);
                if self.ran.len() < MOST_SAMPLES {
                    self.ran.push(RunSample { from: since, to: span.end, cpu, pid: task.pid });
                }
                self.rows.of(self.options.key(task, cpu, state), RowKey::Rest).runs.add(length);
            }
            if let TaskState::Running(_) = span.next {
                self.exact.ends(task.id());
                if span.ended {
                    self.ran_since.insert(task.id(), span.end);
                }
            }
        }
    }

    fn counts(&self, task: &Task, cpu: Cpu, state: &SchedState) -> bool {
        let chosen = self.options.tasks.is_none_or(|chosen| chosen(task, state));
        self.start.is_some() && self.options.cpus.has(cpu) && chosen
    }

    fn switched(&mut self, event: &SchedEvent, prev: TaskRef, next: TaskRef, state: &SchedState) {
        let (cpu, now) = (event.cpu, event.ts);
        self.abandon(cpu);
        let waits = |task: &&Task| task.state == TaskState::Waiting(cpu) && is_fair(task);
        let left = state.task_of(prev.pid).filter(|_| !prev.pid.is_idle());
        let woken = self.switches.get(&cpu).and_then(|latest| latest.woken);
        let prev_waits = left.as_ref().is_some_and(waits);
        let prev_id = left.map(Task::id);
        self.switches.insert(cpu, LatestSwitch { prev, prev_id, prev_waits, woken: None });
        if let Some(task) = left.filter(|task| is_fair(task)) {
            self.leaves_group(task, cpu, next.pid, state);
        }
        if !self.options.by_probe
            && let Some(task) = left.filter(|task| is_fair(task))
        {
            self.leaves(task, cpu, state);
        }
        let Some(task) = state.task_of(next.pid).filter(|task| !task.pid.is_idle() && is_fair(task)) else {
            let counts = self.start.is_some() && self.options.cpus.has(cpu);
            self.to_idle += u64::from(counts && next.pid.is_idle());
            self.other_class += u64::from(counts && !next.pid.is_idle());
            return;
        };
        let group = |task: &Task| GroupKey::of(task, state, &self.options.groups);
        let counts = self.counts(task, cpu, state);
        if self.options.by_probe {
            let mut pick = RecordedPick::new((now, cpu, next, task.id()), group(task));
            pick.counts = counts;
            if counts {
                pick.rows =
                    [Some(task), left].map(|task| task.map_or(RowKey::Rest, |task| self.options.key(task, cpu, state)));
            }
            pick.is_buddy = self.options.prefers_buddy && woken == Some(next.pid);
            pick.left = prev_waits
                .then(|| (prev.pid, self.exact.picked_with(cpu, prev.pid).map(|(numbers, _)| numbers.deadline)));
            let contender = |task: &Task| {
                let (pid, comm, prio, group) = (task.pid, task.comm, task.prio, group(task));
                (Contender { pid, comm, prio, group }, task.id())
            };
            let number = self.rivals.on(cpu) as usize;
            if !self.exact.has_room_for(number, state.queue_length(cpu) as usize) {
                pick.is_cut = true;
                return self.exact.switched(pick, left.filter(|_| prev_waits).into_iter().map(contender));
            }
            let contenders = state.waiting(cpu).filter(|task| is_fair(task)).map(contender);
            return self.exact.switched(pick, contenders);
        }
        let (reason, lag_ns) = self.modelled(task, cpu, state);
        if counts {
            let row = self.options.key(task, cpu, state);
            self.count(&Counted { reason, lag_ns, ..Counted::of(now, cpu, next, row) });
        }
    }

    /// The reason of a pick that the fluid model allows, and the lag of the task.
    fn modelled(&mut self, task: &Task, cpu: Cpu, state: &SchedState) -> (Reason, Option<i64>) {
        let now = state.now();
        let picked = self.fluid.of(task.id(), now);
        let lag_ns = picked.map(|picked| picked.lag_ns);
        let own = GroupKey::of(task, state, &self.options.groups);
        let (rivals, apart) = (self.rivals.on(cpu), self.rivals.apart(cpu, own));
        let is_beaten = picked.is_some_and(|picked| self.fluid.is_beaten(cpu, &picked));
        let is_possible = self.options.has_eevdf && !is_beaten && picked.is_some_and(|picked| picked.eligible);
        let reason = match rivals {
            0 => Reason::Only,
            _ if apart == rivals => Reason::Group,
            _ if is_possible => Reason::PossiblyEarliest,
            _ => Reason::NotShown,
        };
        (reason, lag_ns)
    }

    /// A task leaves its CPU: its lag by the model.
    fn leaves(&mut self, task: &Task, cpu: Cpu, state: &SchedState) {
        let now = state.now();
        let lag = self.fluid.of(task.id(), now).map(|task| task.lag_ns);
        let lag = lag.or_else(|| Some(real_length(self.fluid.left_with(task.id())?, weight_of(task.prio))));
        let counts = self.counts(task, cpu, state);
        let is_contested = self.at_leave.get(task.id()).is_some_and(|rivals| *rivals != RivalsAtLeave::Alone);
        if let Some(lag) = lag.filter(|_| counts) {
            let row = self.options.key(task, cpu, state);
            self.note_lag((task.pid, task.comm, row), (now, cpu), lag, false, is_contested);
        }
    }

    fn probed(&mut self, cpu: Cpu, probe: Probe, state: &SchedState) {
        let latest = self.switches.get(&cpu).copied();
        match probe {
            Probe::Picks { pid, entity, left_kind, left, queue, choice } => {
                if let Some((latest, left)) = latest.zip(left.numbers(left_kind)) {
                    self.left(cpu, &latest, left, state);
                }
                if self.options.by_probe {
                    self.exact.recorded(cpu, pid, &entity, queue.map(std::num::NonZero::get), choice);
                }
                while let Some(explained) = self.exact.explained(false) {
                    self.explained(&explained);
                }
            }
            Probe::Puts { pid, entity, vlag, delayed: _, queue } => {
                let Some(latest) = latest.filter(|latest| latest.prev.pid == pid) else { return };
                let Some(id) = latest.prev_id else { return };
                if latest.prev_waits {
                    let queue = queue.map(std::num::NonZero::get);
                    self.exact.put(id, RecordedWait::of(numbers(&entity, latest.prev.prio), queue));
                } else if let Some(task) = state.task_of(pid).filter(|task| is_fair(task)) {
                    self.recorded_lag(task, vlag.ns());
                }
            }
            Probe::Wakes { pid, vlag } => {
                if let Some(task) = state.task_of(pid).filter(|task| is_fair(task)) {
                    self.recorded_lag(task, vlag.ns());
                }
            }
            _ => {}
        }
    }

    /// The record of a pick shows the numbers of the task that left the CPU.
    fn left(&mut self, cpu: Cpu, latest: &LatestSwitch, left: Left, state: &SchedState) {
        let LatestSwitch { prev, prev_id, prev_waits, .. } = *latest;
        let picked = self.exact.picked_with(cpu, prev.pid);
        let vruntime = left.vruntime().ns();
        match left {
            Left::Sleeps(_, lag) => {
                let task = state.task_of(prev.pid).filter(|task| !prev_waits && is_fair(task));
                task.into_iter().for_each(|task| self.recorded_lag(task, lag.ns()));
            }
            // A deadline that is not reached is still the task's.
            Left::At(_) => {
                let deadline = picked.map(|(numbers, _)| numbers.deadline);
                let deadline = deadline.filter(|deadline| deadline.wrapping_sub(vruntime) > 0);
                let values = RecordedWait { vruntime: Some(vruntime), deadline, ..RecordedWait::default() };
                prev_id.filter(|_| prev_waits).into_iter().for_each(|id| self.exact.put(id, values));
            }
            Left::Waits(_, deadline) => {
                let deadline = Some(deadline.ns());
                let values =
                    picked.map_or(RecordedWait::default(), |(numbers, queue)| RecordedWait::of(numbers, queue));
                let values = RecordedWait { vruntime: Some(vruntime), deadline, ..values };
                prev_id.filter(|_| prev_waits).into_iter().for_each(|id| self.exact.put(id, values));
            }
        }
    }

    /// Compares the lag with which a task left its run queue by the model with the recorded one.
    fn recorded_lag(&mut self, task: &Task, recorded: i64) {
        let Some(model) = self.fluid.left_with(task.id()).filter(|_| self.start.is_some()) else { return };
        let weight = weight_of(task.prio);
        // While a task is queued, 6.12 keeps its deadline in the place of the lag.
        if recorded.unsigned_abs() > self.fluid.limit(weight).unsigned_abs() {
            return;
        }
        let [model, recorded] = [model, recorded].map(|lag| real_length(lag, weight));
        let check = match self.at_leave.get(task.id()) {
            Some(RivalsAtLeave::OwnGroup) => &mut self.check.own_group,
            Some(RivalsAtLeave::AmongGroups) => &mut self.check.among_groups,
            Some(RivalsAtLeave::Alone) | None => return self.check.alone += 1,
        };
        check.add(model, recorded, self.options.base_slice);
    }

    /// Notes the rivals of a task that leaves its CPU: a lag shows a choice only beside some, and the model lacks the run time of groups.
    fn leaves_group(&mut self, task: &Task, cpu: Cpu, next: Pid, state: &SchedState) {
        let group = |task: &Task| GroupKey::of(task, state, &self.options.groups);
        let own = group(task);
        let next = state.task_of(next).filter(|next| !next.pid.is_idle());
        let next = next.filter(|next| is_fair(next) && next.pid != task.pid).map(group);
        // A task that can run on waits here too, in its own group, and is no rival of itself.
        let itself = u32::from(task.state == TaskState::Waiting(cpu));
        let beside = self.rivals.on(cpu) - self.rivals.apart(cpu, own);
        let is_beside = beside > itself || next.is_some_and(|next| !next.differs(own));
        let others = self.rivals.on(cpu) - self.rivals.within(cpu, own);
        let is_among = !matches!(own, GroupKey::Cgroup(_)) && (others > 0 || next.is_some_and(|next| next != own));
        let rivals = match (is_among, is_beside) {
            (true, _) => RivalsAtLeave::AmongGroups,
            (false, true) => RivalsAtLeave::OwnGroup,
            (false, false) => RivalsAtLeave::Alone,
        };
        self.at_leave.insert(task.id(), rivals);
    }

    /// Counts the latest pick of a CPU, if its record did not come.
    fn abandon(&mut self, cpu: Cpu) {
        if let Some(pick) = self.exact.abandon(cpu).filter(|pick| pick.counts) {
            self.count(&Counted::of(pick.at, pick.cpu, pick.task, pick.rows[0]));
        }
    }

    /// Explains the picks for which no more records come, and counts those whose own record lies behind the window.
    pub(crate) fn explain_all(&mut self) {
        self.exact.unrecorded().into_iter().for_each(|cpu| self.abandon(cpu));
        while let Some(explained) = self.exact.explained(true) {
            self.explained(&explained);
        }
    }

    fn explained(&mut self, explained: &Explained) {
        let Explained { pick, numbers, verdict, .. } = explained;
        let late = verdict.time.map(|time| time.wrapping_sub(numbers.deadline)).filter(|late| *late > 0);
        if let Some(((pid, comm), lag)) = explained.left_lag {
            self.note_lag((pid, comm, pick.rows[1]), (pick.at, pick.cpu), lag, false, true);
        }
        let counted = Counted {
            reason: verdict.reason,
            lag_ns: verdict.lag_ns,
            late: late.map(|late| Dur(real_length(late, numbers.weight).unsigned_abs())),
            slice: numbers.slice.map(Dur),
            in_spite: explained.was_protected == Some(true),
            is_shorter: explained.is_shorter,
            ..Counted::of(pick.at, pick.cpu, pick.task, pick.rows[0])
        };
        self.count(&counted);
        self.cases.add(explained, counted.late, self.options.zero);
    }

    /// Counts a pick.
    fn count(&mut self, counted: &Counted) {
        self.sums.add(counted);
        self.rows.of(counted.row, RowKey::Rest).add(counted);
        if let Some(lag) = counted.lag_ns {
            let (task, at) = ((counted.pid, counted.comm, counted.row), (counted.at, counted.cpu));
            self.note_lag(task, at, lag, true, counted.is_contested());
        }
    }

    /// Notes the lag of a task as it is picked, or as it leaves its CPU. One without a rival is in no figure: it is zero.
    fn note_lag(
        &mut self,
        task: (Pid, Comm, RowKey),
        (ts, cpu): (Ts, Cpu),
        lag_ns: i64,
        is_picked: bool,
        is_contested: bool,
    ) {
        self.debts.note(task, ts, lag_ns, is_picked);
        if is_contested && self.samples.len() < MOST_SAMPLES {
            self.samples.push(LagSample { ts, cpu, pid: task.0, comm: task.1, lag_ns, is_picked });
        }
    }
}
