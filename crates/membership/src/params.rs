//! The scheduling parameters of each task.

use crate::attributes::{CallAttributes, DeadlineParams, UtilClamp};
use crate::by_task::{ByTask, MOST_CHANGES, next_of, place_at};
use crate::past_groups::{PastGroups, PastParams};
use crate::policy::SchedPolicy;
use crate::unsettled::{BothValues, RunStarts, UnsettledRuns};
use machine::Machine;
use parse::{EventFormat, Record, Trace, Want};
use sched::limits::{PIDS, keep_of_pid};
use sched::nice::weight_of;
use sched::seeded::{SeededMap, SeededSet};
use sched::{EventKind, EventSource, Pid, TaskRef, Tracepoint, Ts};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

/// The scheduling parameters of a task at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskParams {
    /// The policy, or the class where nothing shows the policy.
    pub policy: SchedPolicy,
    /// The nice value, from -20 to 19; absent of real-time and deadline tasks, and of `SCHED_IDLE`, whose weight does not depend on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nice: Option<i8>,
    /// The real-time priority, from 1 to 99, larger before smaller; absent of tasks of other classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rt_priority: Option<u8>,
    /// The clamps of the utilization; absent where they are the kernel's defaults, or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uclamp: Option<UtilClamp>,
}

/// The weight of a task of `SCHED_IDLE`, in units of which nice 0 has 1,024.
const IDLE_WEIGHT: u64 = 3;

impl TaskParams {
    /// The parameters by the policy, if it is known, and by the kernel priority.
    fn new(policy: Option<SchedPolicy>, prio: i32) -> TaskParams {
        let policy = policy.filter(|policy| policy.agrees_with(prio)).unwrap_or(SchedPolicy::of_prio(prio));
        let is_fair = prio >= 100 && policy != SchedPolicy::Idle;
        TaskParams {
            policy,
            nice: is_fair.then(|| (prio - 120).clamp(-20, 19) as i8),
            rt_priority: (0..100).contains(&prio).then(|| (99 - prio).max(1) as u8),
            uclamp: None,
        }
    }

    /// The weight of the task in its run queue, in units of which nice 0 has 1,024; nothing for a task of another class than the fair one.
    pub fn weight(&self) -> Option<u64> {
        match (self.policy, self.nice) {
            (SchedPolicy::Idle, _) => Some(IDLE_WEIGHT),
            (_, Some(nice)) => Some(weight_of(120 + i32::from(nice))),
            _ => None,
        }
    }
}

impl fmt::Display for TaskParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.policy.name())?;
        match (self.nice, self.rt_priority) {
            (Some(nice), _) => write!(f, " nice {nice}"),
            (_, Some(priority)) => write!(f, " {priority}"),
            _ => Ok(()),
        }?;
        self.uclamp.map_or(Ok(()), |clamp| write!(f, ", {clamp}"))
    }
}

/// The policies and the priorities of all tasks over the time of a trace.
#[derive(Clone, Debug, Default)]
pub struct ParamsHistory {
    /// The policy of each PID from an instant on, in the order of time; absent where it is unknown from then on.
    policies: SeededMap<Pid, Vec<(Ts, Option<SchedPolicy>)>>,
    /// The kernel priority of each PID from an instant on, in the order of time, as switches record it. The first one counts for the
    /// time before as well.
    prios: SeededMap<Pid, Vec<(Ts, i32)>>,
    /// The runs within which the priority changed at an instant that no event shows.
    unsettled: UnsettledRuns<i32>,
    /// The number of changes of both.
    changes: usize,
    /// The clamps of each task, where they are known and not the defaults.
    clamps: ByTask<UtilClamp>,
    /// The parameters of each deadline task, where a record shows them.
    deadlines: ByTask<DeadlineParams>,
    /// The tasks whose policy is unknown all the time, since the lists contradict the records.
    contradicted: SeededSet<Pid>,
}

/// A call that a thread has entered and not left: the task that it is about, the policy, if the record has it, and the rest that it sets.
type OpenCall = (Pid, Option<SchedPolicy>, CallAttributes);

/// The way in which a record shows policies.
#[derive(Clone, Copy)]
enum ShowsParams {
    /// A fork: the child has the policy of its parent.
    Fork,
    /// `sched_setscheduler` is entered, with the number of the policy.
    Sets,
    /// `sched_setattr` or `sched_setparam` is entered: the policy that it sets is not recorded.
    SetsUnseen,
    /// One of these calls returns.
    Returns,
    /// The probe on all of these calls, with the result (`set_params`).
    Probed,
    /// A probe on `sched_switch` with the weight of the next task.
    Weight,
}

/// The records of a trace that show policies, as they come.
#[derive(Default)]
struct ParamsLearned {
    history: ParamsHistory,
    /// The call that each thread has entered and not left.
    calls: SeededMap<Pid, OpenCall>,
    records_returns: bool,
    /// Whether the policies at the start are known, so that a task without a record has the policy of its parent.
    knows_start: bool,
    /// The policies of the tasks of the recorded command that have not been forked yet, by a list; absent where it has several.
    of_programs: SeededMap<Pid, Option<SchedPolicy>>,
    /// The calls that were open at the start of the part that a note is made for.
    noted_calls: Option<Vec<(Pid, OpenCall)>>,
    /// The tasks of the recorded command that had not been forked there.
    noted_programs: Option<SeededMap<Pid, Option<SchedPolicy>>>,
}

impl ParamsHistory {
    /// Learns the policies of a trace: from the lists of the machine file, from forks, from the system calls that set them, and from
    /// the weights that probes record.
    pub fn of(trace: &Trace, machine: Option<&Machine>) -> ParamsHistory {
        let mut records = ParamsRecords::begin(trace, machine, PastGroups::of(trace).as_deref(), Ts::MAX);
        if records.follows {
            trace.records(&mut |record| {
                records.follow(record);
                ControlFlow::Continue(())
            });
        }
        records.finish(trace, machine).history
    }

    /// The parameters just before the start of the part that all `records` were followed for.
    pub(crate) fn past(records: ParamsRecords, trace: &Trace, machine: Option<&Machine>) -> PastParams {
        let from = records.from;
        let ParamsLearned { history, calls, noted_calls, noted_programs, of_programs, records_returns, .. } =
            records.finish(trace, machine);
        let before = Ts(from.0.saturating_sub(1));
        let policies = history.policies.keys().filter_map(|pid| Some((*pid, history.policy(*pid, before)?)));
        let prio = |(pid, changes): (&Pid, &Vec<(Ts, i32)>)| {
            Some((*pid, changes.get(place_at(changes, before).unwrap_or(0))?.1))
        };
        let calls = noted_calls.unwrap_or_else(|| open_calls(&calls));
        let deadlines = history.deadlines.all_at(before).into_iter();
        let mut of_programs: Vec<_> = noted_programs.unwrap_or(of_programs).into_iter().collect();
        of_programs.sort_unstable();
        let mut past = PastParams {
            policies: policies.collect(),
            contradicted: history.contradicted.iter().copied().collect(),
            prios: history.prios.iter().filter_map(prio).collect(),
            calls: calls.iter().map(|(thread, (of, policy, _))| (*thread, *of, *policy)).collect(),
            attributes: calls.iter().map(|(thread, (.., attributes))| (*thread, *attributes)).collect(),
            records_returns,
            clamps: history.clamps.all_at(before),
            contradicted_clamps: history.clamps.forgotten(),
            deadlines: deadlines.map(|(pid, params)| (pid, params.in_ns())).collect(),
            of_programs,
        };
        past.policies.sort_unstable();
        past.contradicted.sort_unstable();
        past.prios.sort_unstable();
        past
    }

    /// The policies that these changes make, in the order of time: each the instant, the task, and the policy from then on, absent where
    /// that is unknown.
    pub fn of_changes(changes: &[(Ts, Pid, Option<SchedPolicy>)]) -> ParamsHistory {
        let mut history = ParamsHistory::default();
        changes.iter().for_each(|(ts, pid, policy)| history.learn(*pid, *ts, *policy));
        history
    }

    /// Whether the policy of any task is known.
    pub fn are_known(&self) -> bool {
        !self.policies.is_empty()
    }

    /// The policy of a task at an instant by records and lists; nothing where none shows it.
    pub fn policy(&self, pid: Pid, ts: Ts) -> Option<SchedPolicy> {
        let changes = self.policies.get(&pid)?;
        changes.get(place_at(changes, ts)?)?.1
    }

    /// The parameters of a task at an instant. The priority is that of the switches of the trace; where they do not show the task it
    /// is `prio`, and the parameters are unknown where that is absent.
    pub fn of_task(&self, pid: Pid, prio: Option<i32>, ts: Ts) -> Option<TaskParams> {
        let changes = self.prios.get(&pid).map_or(&[][..], Vec::as_slice);
        let recorded = changes.get(place_at(changes, ts).unwrap_or(0)).map(|(_, prio)| *prio);
        Some(TaskParams {
            uclamp: self.clamps.at(pid, ts),
            ..TaskParams::new(self.policy(pid, ts), recorded.or(prio)?)
        })
    }

    /// The parameters of a task at the start and at the end of its run, for an instant of a run within which its priority changed without
    /// an event that shows when; nothing elsewhere.
    pub(crate) fn of_unsettled_run(&self, pid: Pid, ts: Ts) -> Option<BothValues<TaskParams>> {
        let (before, after) = self.unsettled.at(pid, ts)?;
        let uclamp = self.clamps.at(pid, ts);
        let of = |prio| TaskParams { uclamp, ..TaskParams::new(self.policy(pid, ts), prio) };
        Some((of(before), of(after)))
    }

    /// The latest instant behind `start` and up to `end` at which a record shows another policy of a task; nothing where none does.
    pub fn policy_change_within(&self, pid: Pid, start: Ts, end: Ts) -> Option<Ts> {
        let changes = self.policies.get(&pid)?;
        changes.get(place_at(changes, end)?).map(|(at, _)| *at).filter(|at| *at > start)
    }

    /// The parameters of a deadline task at an instant; nothing where no record shows them, or the task is none.
    pub fn deadline_params(&self, pid: Pid, ts: Ts) -> Option<DeadlineParams> {
        self.deadlines.at(pid, ts)
    }

    /// Whether the parameters of any deadline task are known.
    pub fn has_deadlines(&self) -> bool {
        !self.deadlines.is_empty()
    }

    /// Whether a trace has records that can show the parameters of deadline tasks, so that it is worth while to learn them.
    pub fn can_show_deadlines(trace: &Trace) -> bool {
        let sets = |format: &EventFormat| shows(format).is_some() && format.field("deadline").is_some();
        trace.formats().iter().any(|format| sets(format) && trace.occurs(format.id))
    }

    /// The first instant after `ts` at which the policy or the priority of a task may change.
    pub(crate) fn next_change(&self, pid: Pid, ts: Ts) -> Option<Ts> {
        let next = [next_of(self.policies.get(&pid), ts), next_of(self.prios.get(&pid), ts)];
        let next = [next[0], next[1], self.clamps.next_change(pid, ts), self.unsettled.next_change(pid, ts)];
        next.into_iter().flatten().min()
    }

    /// Learns the priorities of tasks from the switches of a trace. One that changes while a task runs is known from the record on that
    /// shows another policy within the run, or else from the switch that ends the run: the run has both.
    fn learn_prios(&mut self, trace: &Trace) {
        if !trace.has(Tracepoint::Switch) {
            return;
        }
        let Ok(mut events) = trace.events_of(Want::Lineage) else { return };
        let mut starts = RunStarts::default();
        // A trace that cannot be read is reported by the pass that follows.
        let _ = events.events(&mut |events| {
            for event in events {
                match event.kind {
                    EventKind::Switch { prev, next, .. } => {
                        let start = starts.switch(event.cpu, prev.pid, next.pid, event.ts);
                        self.learn_run(prev, start, event.ts);
                        self.learn_prio(next, event.ts);
                    }
                    EventKind::Lost { .. } | EventKind::Offline => starts.lose(event.cpu),
                    _ => {}
                }
            }
            ControlFlow::Continue(())
        });
    }

    /// Learns the priority of a task at the end of its run, which began at `start`, if that is known.
    fn learn_run(&mut self, task: TaskRef, start: Option<Ts>, ts: Ts) {
        let known = self.prios.get(&task.pid).and_then(|changes| changes.last()).map(|(_, prio)| *prio);
        let changed = known.filter(|known| *known != task.prio && !task.pid.is_idle()).zip(start);
        let at = match changed {
            None => ts,
            Some((before, start)) => match self.policy_change_within(task.pid, start, ts) {
                Some(at) => at,
                None => {
                    self.unsettled.add(task.pid, start, ts, (before, task.prio));
                    ts
                }
            },
        };
        self.learn_prio(task, at);
    }

    fn learn_prio(&mut self, task: TaskRef, ts: Ts) {
        if task.pid.is_idle() || self.changes >= MOST_CHANGES {
            return;
        }
        match self.prios.get_mut(&task.pid) {
            Some(changes) if changes.last().is_some_and(|(_, last)| *last == task.prio) => {}
            Some(changes) => {
                changes.push((ts, task.prio));
                self.changes += 1;
            }
            None => keep_of_pid(&mut self.prios, task.pid, vec![(ts, task.prio)]),
        }
    }

    fn learn(&mut self, pid: Pid, ts: Ts, policy: Option<SchedPolicy>) {
        if self.contradicted.contains(&pid) {
            return;
        }
        if let Some(changes) = self.policies.get_mut(&pid) {
            if changes.last().is_some_and(|(_, last)| *last == policy) {
                return;
            }
            match self.changes < MOST_CHANGES {
                true => changes.push((ts, policy)),
                // The policy that is set is lost, and with it all that follows.
                false => *changes = vec![(Ts::MIN, None)],
            }
            self.changes = self.changes.saturating_add(1);
        } else if policy.is_some() {
            keep_of_pid(&mut self.policies, pid, vec![(ts, policy)]);
        }
    }

    /// Learns what a successful call sets.
    fn learn_call(&mut self, (of, policy, attributes): OpenCall, ts: Ts) {
        let policy = if attributes.keeps_policy { self.policy(of, ts) } else { policy };
        if !attributes.keeps_policy {
            self.learn(of, ts, policy);
        }
        let deadline = attributes.deadline_params().filter(|_| policy == Some(SchedPolicy::Deadline));
        if !attributes.keeps_policy || deadline.is_some() {
            self.deadlines.set(of, ts, deadline);
        }
        let clamp = attributes.clamp(self.clamps.at(of, ts).unwrap_or_default());
        self.learn_clamp(of, ts, clamp);
    }

    fn learn_clamp(&mut self, pid: Pid, ts: Ts, clamp: UtilClamp) {
        self.clamps.set(pid, ts, Some(clamp).filter(|clamp| !clamp.is_default()));
    }
}

/// Returns the way in which records of this format show policies, if they do.
fn shows(format: &EventFormat) -> Option<ShowsParams> {
    let has = |fields: &[&str]| fields.iter().all(|field| format.field(field).is_some());
    Some(match (format.system.as_str(), format.name.as_str()) {
        ("lb", "set_params") if has(&["pid", "policy", "ret"]) => ShowsParams::Probed,
        ("lb", "set_params_in") if has(&["pid", "policy"]) => ShowsParams::Sets,
        ("lb", "set_params") if has(&["ret"]) => ShowsParams::Returns,
        ("syscalls", "sys_enter_sched_setscheduler") if has(&["pid", "policy"]) => ShowsParams::Sets,
        ("syscalls", "sys_enter_sched_setattr") if has(&["pid"]) => ShowsParams::SetsUnseen,
        ("syscalls", "sys_exit_sched_setscheduler" | "sys_exit_sched_setattr") if has(&["ret"]) => ShowsParams::Returns,
        ("syscalls", _) => return None,
        _ if has(&["next", "weight"]) || has(&["pid", "weight"]) && format.system == "lb" => ShowsParams::Weight,
        _ => return None,
    })
}

/// The call that a record shows, whose policy counts if it `shows_policy`.
fn call_in(record: &Record<'_>, shows_policy: bool) -> Option<OpenCall> {
    let of = Pid(i32::try_from(record.number("pid")?).ok()?);
    let number = record.number("policy");
    let mut attributes = CallAttributes::of(record);
    // `__sched_setscheduler()` keeps the policy of the task where it is given a negative one (SETPARAM_POLICY).
    attributes.keeps_policy = number.is_some_and(|number| number < 0);
    // The policy 0x40000000 is a flag: children do not inherit it.
    let policy = number.filter(|_| shows_policy).and_then(|number| SchedPolicy::of_number(number & 0xff));
    Some((if of == Pid(0) { record.pid() } else { of }, policy, attributes))
}

/// The calls of threads, in the order of these.
fn open_calls(calls: &SeededMap<Pid, OpenCall>) -> Vec<(Pid, OpenCall)> {
    let mut open: Vec<_> = calls.iter().map(|(thread, call)| (*thread, *call)).collect();
    open.sort_unstable_by_key(|(thread, _)| *thread);
    open
}

/// The clamps of tasks in a list of the machine file, of which the kernel's defaults follow from the policy.
fn clamps_at(machine: &Machine, at: &str) -> Vec<(Pid, UtilClamp)> {
    let policies: SeededMap<Pid, i64> = machine.policies_at(at).collect();
    let is_fair = |pid| !matches!(policies.get(&pid), Some(1 | 2 | 6));
    let clamps = machine.clamps_at(at).map(|(pid, [min, max])| (pid, UtilClamp::of_list(min, max, is_fair(pid))));
    clamps.collect()
}

/// The reading of the records of a trace that show parameters.
pub(crate) struct ParamsRecords {
    learned: ParamsLearned,
    kinds: SeededMap<u16, ShowsParams>,
    has_note: bool,
    /// The start of the part that a note is made for.
    from: Ts,
    /// Whether the records are to be followed.
    pub(crate) follows: bool,
}

impl ParamsRecords {
    /// Learns the parameters before the records of the trace, by the note of a part or by the machine file; `from`: the start of the part
    /// whose note has the calls that are open there.
    pub(crate) fn begin(
        trace: &Trace,
        machine: Option<&Machine>,
        noted: Option<&PastGroups>,
        from: Ts,
    ) -> ParamsRecords {
        let mut kinds: SeededMap<u16, ShowsParams> =
            trace.formats().iter().filter_map(|format| Some((format.id, shows(format)?))).collect();
        kinds.retain(|id, _| trace.occurs(*id));
        let mut learned = ParamsLearned {
            records_returns: kinds.values().any(|shows| matches!(shows, ShowsParams::Returns)),
            ..ParamsLearned::default()
        };
        // The note of a part takes the place of the lists.
        let has_note = noted.is_some();
        machine.into_iter().filter(|_| !has_note).for_each(|machine| learned.start(machine, trace.records_policies()));
        let follows = has_note || !kinds.is_empty() || learned.knows_start;
        noted.into_iter().for_each(|past| learned.go_on(past.params.clone()));
        kinds.extend(trace.format_of(Tracepoint::Fork).map(|format| (format.id, ShowsParams::Fork)));
        ParamsRecords { learned, kinds, has_note, from, follows }
    }

    /// Learns the parameters that a record shows. Records come in the order of the trace.
    pub(crate) fn follow(&mut self, record: &Record<'_>) {
        if record.ts >= self.from && self.learned.noted_calls.is_none() {
            self.learned.noted_calls = Some(open_calls(&self.learned.calls));
            self.learned.noted_programs = Some(self.learned.of_programs.clone());
        }
        if let Some(shows) = self.kinds.get(&record.id()) {
            self.learned.follow(*shows, record);
        }
    }

    /// The parameters, once all records were followed.
    fn finish(mut self, trace: &Trace, machine: Option<&Machine>) -> ParamsLearned {
        machine.into_iter().filter(|_| !self.has_note).for_each(|machine| self.learned.end(machine));
        self.learned.history.learn_prios(trace);
        self.learned
    }
}

impl ParamsLearned {
    /// Goes on from the note of a part.
    fn go_on(&mut self, past: PastParams) {
        self.records_returns |= past.records_returns;
        self.history.contradicted.extend(past.contradicted.into_iter().take(PIDS));
        past.policies.into_iter().for_each(|(pid, policy)| self.history.learn(pid, Ts::MIN, Some(policy)));
        for (pid, prio) in past.prios {
            keep_of_pid(&mut self.history.prios, pid, vec![(Ts::MIN, prio)]);
        }
        let attributes: SeededMap<Pid, CallAttributes> = past.attributes.into_iter().take(PIDS).collect();
        let attributes = |thread| attributes.get(&thread).copied().unwrap_or_default();
        let calls = past.calls.into_iter().take(PIDS);
        self.calls.extend(calls.map(|(thread, of, policy)| (thread, (of, policy, attributes(thread)))));
        past.contradicted_clamps.into_iter().for_each(|pid| self.history.clamps.forget(pid));
        past.clamps.into_iter().for_each(|(pid, clamp)| self.history.learn_clamp(pid, Ts::MIN, clamp));
        for (pid, times) in past.deadlines {
            self.history.deadlines.set(pid, Ts::MIN, Some(DeadlineParams::of_ns(times)));
        }
        self.of_programs.extend(past.of_programs.into_iter().take(PIDS));
    }

    /// Learns the lists of the start, and of the recorded command unless `records_policies`: records then show what changes.
    fn start(&mut self, machine: &Machine, records_policies: bool) {
        let of_programs = if records_policies { BTreeMap::new() } else { machine.policies_of_programs() };
        for (pid, policy) in of_programs.into_iter().take(PIDS) {
            let policy = policy.and_then(SchedPolicy::of_number);
            self.knows_start = true;
            self.of_programs.insert(pid, policy);
            match policy {
                Some(policy) => self.history.learn(pid, Ts::MIN, Some(policy)),
                None => drop(self.history.contradicted.insert(pid)),
            }
        }
        for (pid, policy) in machine.policies_at(machine::Affinity::START) {
            self.knows_start = true;
            if !self.of_programs.contains_key(&pid) {
                self.history.learn(pid, Ts::MIN, SchedPolicy::of_number(policy));
            }
        }
        for (pid, clamp) in clamps_at(machine, machine::Affinity::START) {
            self.history.learn_clamp(pid, Ts::MIN, clamp);
        }
    }

    /// Compares the policies at the end of the recording with those that the records have shown. A task whose policy was changed
    /// without any record has an unknown policy all the time.
    fn end(&mut self, machine: &Machine) {
        for (pid, policy) in machine.policies_at(machine::Affinity::END) {
            let policy = SchedPolicy::of_number(policy);
            if let Some(changes) = self.history.policies.get_mut(&pid)
                && changes.last().is_some_and(|(_, last)| last.is_some() && *last != policy)
            {
                *changes = vec![(Ts::MIN, None)];
                self.history.contradicted.insert(pid);
            }
        }
        let clamps: SeededMap<Pid, UtilClamp> = clamps_at(machine, machine::Affinity::END).into_iter().collect();
        for (pid, _) in
            machine.policies_at(machine::Affinity::END).filter(|_| machine.has_clamps(machine::Affinity::END))
        {
            let clamp = clamps.get(&pid).copied().filter(|clamp| !clamp.is_default());
            if self.history.clamps.last(pid) != clamp {
                self.history.clamps.forget(pid);
            }
        }
    }

    fn follow(&mut self, shows: ShowsParams, record: &Record<'_>) {
        let pid = |field: &str| record.number(field).and_then(|pid| i32::try_from(pid).ok()).map(Pid);
        let ts = record.ts;
        match shows {
            ShowsParams::Fork => {
                if let (Some(parent), Some(child)) = (pid("parent_pid"), pid("child_pid")) {
                    let listed = self.of_programs.remove(&child);
                    self.history.learn(child, ts, listed.unwrap_or_else(|| self.history.policy(parent, ts)));
                    self.history.clamps.set(child, ts, self.history.clamps.at(parent, ts));
                    self.history.deadlines.set(child, ts, None);
                }
            }
            ShowsParams::Probed => {
                if let (Some(call), Some(0)) = (call_in(record, true), record.number("ret")) {
                    self.history.learn_call(call, ts);
                }
            }
            ShowsParams::Sets | ShowsParams::SetsUnseen => {
                let Some(call) = call_in(record, matches!(shows, ShowsParams::Sets)) else { return };
                if !self.records_returns {
                    return self.history.learn_call(call, ts);
                }
                if self.calls.len() < PIDS {
                    self.calls.insert(record.pid(), call);
                }
            }
            ShowsParams::Returns => {
                if let (Some(call), Some(0)) = (self.calls.remove(&record.pid()), record.number("ret")) {
                    self.history.learn_call(call, ts);
                }
            }
            ShowsParams::Weight => {
                let (of, weight) = (pid("next").or_else(|| pid("pid")), record.number("weight"));
                let (Some(of), Some(weight)) = (of.filter(|of| !of.is_idle()), weight) else { return };
                // Weights are multiplied by 1,024 on 64-bit machines. No nice value has the weight of SCHED_IDLE.
                let is_idle = weight == 3 || weight == 3 << 10;
                let known = self.history.policy(of, ts);
                match (is_idle, known) {
                    (true, _) => self.history.learn(of, ts, Some(SchedPolicy::Idle)),
                    (false, Some(SchedPolicy::Idle)) => self.history.learn(of, ts, None),
                    (false, _) => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_shows_the_class_and_a_policy_that_contradicts_it_is_unknown() {
        use SchedPolicy::{Batch, Deadline, Fair, Fifo, Idle, Other, RealTime, RoundRobin};
        let cases = [
            (None, 120, "fair nice 0", Some(1024)),
            (None, 49, "real-time 50", None),
            (None, -1, "SCHED_DEADLINE", None),
            (Some(Other), 125, "SCHED_OTHER nice 5", Some(335)),
            (Some(Batch), 139, "SCHED_BATCH nice 19", Some(15)),
            (Some(Idle), 120, "SCHED_IDLE", Some(3)),
            (Some(Fifo), 0, "SCHED_FIFO 99", None),
            (Some(Fifo), 120, "fair nice 0", Some(1024)),
            (Some(Idle), 49, "real-time 50", None),
            (Some(Deadline), 120, "fair nice 0", Some(1024)),
        ];
        for (policy, prio, text, weight) in cases {
            let params = TaskParams::new(policy, prio);
            assert_eq!((params.to_string().as_str(), params.weight()), (text, weight), "{policy:?} {prio}");
        }
        assert!(Fair.takes(Idle) && Fair.takes(Fair) && !Other.takes(Fair) && !Idle.takes(Other));
        assert!(RealTime.takes(RoundRobin) && !Fifo.takes(RealTime));
    }

    #[test]
    fn lists_that_differ_without_a_record_show_no_policy() {
        let lists = |text: &str| {
            let mut machine = Machine::read(&machine::Root::at("/nonexistent"), false);
            machine.policies = serde_json::from_str(text).expect("lists");
            let mut learned = ParamsLearned::default();
            learned.start(&machine, false);
            learned.end(&machine);
            [7, 8, 9].map(|pid| learned.history.policy(Pid(pid), Ts(5)))
        };
        let start = r#"{"at": "start", "tasks": {"0": [7], "5": [8]}}"#;
        let both = format!(r#"[{start}, {{"at": "end", "tasks": {{"0": [8, 9], "3": [], "5": [7]}}}}]"#);
        assert_eq!(lists(&format!("[{start}]")), [Some(SchedPolicy::Other), Some(SchedPolicy::Idle), None]);
        assert_eq!(lists(&both), [None, None, None]);
        // The lists of the running command take the place of that of the start, which is of the recorder's child.
        let running = |tasks: &str| format!(r#"[{start}, {{"at": "running", "tasks": {{{tasks}}}}}]"#);
        let (other, batch, idle) = (Some(SchedPolicy::Other), Some(SchedPolicy::Batch), Some(SchedPolicy::Idle));
        assert_eq!(lists(&running(r#""5": [7, 9]"#)), [idle, idle, idle]);
        assert_eq!(lists(&running(r#""0": [8], "3": [7]"#)), [batch, other, None]);
        assert_eq!(lists(&running(r#""0": [7], "3": [7]"#)), [None, idle, None]);
    }
}
