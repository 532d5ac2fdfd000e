//! The elapsed time without a part of the waiting of one origin: which cause is to be mended first.
//!
//! Each task goes through its program with the waits of the trace, shortened by a share of the waiting in violation of that origin, and
//! its wakeups move with it. CPUs do not compete here: another wait neither grows nor shrinks by it.

use crate::model::{Begin, JoinIndex, Model, ProgramStep, SleepIndex, TaskIndex};
use crate::report::error_percent;
use sched::seeded::SeededMap;
use sched::{Dur, Pid, Ts};
use serde::Serialize;
use std::cmp::Reverse;

/// A wait in violation, as `why` lists it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ViolatingWait {
    pub(crate) pid: Pid,
    pub(crate) start: Ts,
    pub(crate) end: Ts,
    pub(crate) origin: &'static str,
    pub(crate) violated_ns: u64,
}

/// The elapsed time with a part of the waiting of an origin removed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePoint {
    /// The part of the waiting in violation that is removed, in percent.
    pub removed_percent: u64,
    /// The elapsed time then, in nanoseconds.
    pub elapsed_ns: Dur,
    /// The change of the elapsed time, in percent.
    pub change_percent: f64,
}

/// The curve of the elapsed time over the part of the waiting of an origin that is removed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CauseCurve {
    /// The origin of the waits, as `why` names it.
    pub origin: &'static str,
    /// The waiting in violation of this origin, in nanoseconds.
    pub waiting_ns: Dur,
    /// The elapsed time at each part.
    pub points: Vec<CurvePoint>,
}

/// The parts of the waiting that are removed, in percent.
const PARTS: [u64; 4] = [25, 50, 75, 100];

/// The number of origins with a curve where none is named.
const MOST: usize = 5;

/// The time by which the wait of each join is shortened where all of the waiting of an origin is removed.
type Shortened = SeededMap<JoinIndex, u64>;

/// Returns the curves of the origins with the most waiting in violation, or of the one that is named.
pub(crate) fn curves(model: &Model, waits: &[ViolatingWait], named: Option<&str>) -> Vec<CauseCurve> {
    let joins = joins_by_pid(model);
    let mut origins: SeededMap<&'static str, (u64, Shortened)> = SeededMap::default();
    for wait in waits.iter().filter(|wait| named.is_none_or(|named| named == wait.origin)) {
        let (total, shortened) = origins.entry(wait.origin).or_default();
        *total = total.saturating_add(wait.violated_ns);
        if let Some(join) = join_of(model, &joins, wait) {
            let sum = shortened.entry(join).or_default();
            *sum = sum.saturating_add(wait.violated_ns).min(model.joins[join as usize].waited);
        }
    }
    let mut origins: Vec<_> = origins.into_iter().filter(|(_, (total, _))| *total > 0).collect();
    origins.sort_by_key(|(origin, (total, _))| (Reverse(*total), *origin));
    let plain = elapsed(model, &Shortened::default(), 0);
    let curve = |(origin, (total, shortened)): (&'static str, (u64, Shortened))| {
        let point = |removed_percent| {
            let elapsed = elapsed(model, &shortened, removed_percent);
            let change_percent = error_percent(elapsed as f64, plain as f64);
            CurvePoint { removed_percent, elapsed_ns: Dur(elapsed), change_percent }
        };
        CauseCurve { origin, waiting_ns: Dur(total), points: PARTS.map(point).to_vec() }
    };
    origins.into_iter().take(MOST).map(curve).collect()
}

/// The joins of each PID, in the order of time.
fn joins_by_pid(model: &Model) -> SeededMap<Pid, Vec<(Ts, JoinIndex)>> {
    let mut joins: SeededMap<Pid, Vec<(Ts, JoinIndex)>> = SeededMap::default();
    for (index, join) in (0..).zip(&model.joins) {
        joins.entry(model.tasks[join.task as usize].pid).or_default().push((join.start, index));
    }
    joins.values_mut().for_each(|of_pid| of_pid.sort_unstable());
    joins
}

/// The join that a wait belongs to.
fn join_of(model: &Model, joins: &SeededMap<Pid, Vec<(Ts, JoinIndex)>>, wait: &ViolatingWait) -> Option<JoinIndex> {
    let of_pid = joins.get(&wait.pid)?;
    let before = of_pid.partition_point(|(start, _)| *start <= wait.start);
    let (start, join) = *of_pid.get(before.checked_sub(1)?)?;
    (wait.end <= start.after(Dur(model.joins[join as usize].waited))).then_some(join)
}

/// The progress of all tasks.
struct Progress<'m> {
    model: &'m Model,
    shortened: &'m Shortened,
    percent: u64,
    at: Vec<i64>,
    next: Vec<usize>,
    /// The instants at which sleeps were woken.
    woken: Vec<Option<i64>>,
    blocked: Vec<Option<SleepIndex>>,
    ready: Vec<TaskIndex>,
    exec: Option<i64>,
    exit: Option<i64>,
    last: i64,
}

/// The elapsed time where this part of each of these waits is removed, in nanoseconds.
fn elapsed(model: &Model, shortened: &Shortened, percent: u64) -> u64 {
    let tasks = model.tasks.len();
    let mut progress = Progress {
        model,
        shortened,
        percent,
        at: vec![model.start.0; tasks],
        next: vec![0; tasks],
        woken: vec![None; model.sleeps.len()],
        blocked: vec![None; tasks],
        ready: Vec::new(),
        exec: None,
        exit: None,
        last: model.start.0,
    };
    for (index, task) in (0..).zip(&model.tasks) {
        match task.begin {
            Begin::Forked(_) => continue,
            Begin::Waits(join) => progress.at[index as usize] += progress.wait(join),
            Begin::At(at, join) => progress.at[index as usize] = at.0 + progress.wait(join),
            Begin::Runs(_) | Begin::Sleeps => {}
        }
        progress.ready.push(index);
    }
    while let Some(task) = progress.ready.pop() {
        progress.go_on(task);
    }
    let from = progress.exec.unwrap_or(model.start.0);
    (progress.exit.unwrap_or(progress.last) - from).max(0) as u64
}

impl Progress<'_> {
    fn wait(&self, join: JoinIndex) -> i64 {
        let less = self.shortened.get(&join).map_or(0, |ns| (u128::from(*ns) * u128::from(self.percent) / 100) as u64);
        self.model.joins[join as usize].waited.saturating_sub(less) as i64
    }

    /// A task goes through its program until a sleep that no task has ended yet.
    fn go_on(&mut self, task: TaskIndex) {
        let model = self.model;
        let me = task as usize;
        while let Some(step) = model.tasks[me].steps.get(self.next[me]) {
            match *step {
                ProgramStep::Run(ns) => {
                    self.at[me] += ns as i64;
                    self.last = self.last.max(self.at[me]);
                }
                ProgramStep::Wake(sleep) => {
                    self.woken[sleep as usize] = Some(self.at[me]);
                    let sleeper = model.sleeps[sleep as usize].task;
                    if self.blocked[sleeper as usize] == Some(sleep) {
                        self.blocked[sleeper as usize] = None;
                        self.ready.push(sleeper);
                    }
                }
                ProgramStep::Fork(child) => {
                    if let Begin::Forked(join) = model.tasks[child as usize].begin {
                        self.at[child as usize] = self.at[me] + self.wait(join);
                        self.ready.push(child);
                    }
                }
                ProgramStep::Preempted(join) => self.at[me] += self.wait(join),
                ProgramStep::Sleep(sleep) => match self.end_of(sleep, self.at[me]) {
                    Some(end) => self.at[me] = end,
                    None => {
                        self.blocked[me] = Some(sleep);
                        return;
                    }
                },
                ProgramStep::Exec(_) if model.root == Some(task) => {
                    self.exec.get_or_insert(self.at[me]);
                }
                ProgramStep::Exit if model.root == Some(task) => self.exit = Some(self.at[me]),
                _ => {}
            }
            self.next[me] += 1;
        }
    }

    /// The instant at which the task of a sleep runs again, if the sleep begins at `at`; nothing before it is woken.
    fn end_of(&self, index: SleepIndex, at: i64) -> Option<i64> {
        let sleep = &self.model.sleeps[index as usize];
        let waking = match sleep.class.is_by_task() {
            true => self.woken[index as usize]?,
            false if sleep.ends => at + sleep.length as i64,
            false => return None,
        };
        if waking < at && !sleep.announced {
            return Some(at);
        }
        Some(waking.max(at) + sleep.placing as i64 + self.wait(sleep.join))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BuildOptions, ModelBuilder};
    use sched::Pass;
    use testkit::Operation::{Run, Wait, Wake};
    use testkit::{Worker, Workload};

    const MS: i64 = 1_000_000;

    #[test]
    fn a_wait_on_the_path_gains_as_much_as_is_removed_of_it() {
        // The second task waits for 10 ms, and wakes the third, which then runs for 5 ms. The fourth waits behind the fifth
        // until 12 ms, on no path.
        let workers = vec![
            Worker::on(0, vec![Run(10 * MS)]),
            Worker::on(0, vec![Run(10 * MS), Wake(2)]),
            Worker::on(1, vec![Wait, Run(5 * MS)]),
            Worker::on(2, vec![Run(12 * MS)]),
            Worker::on(2, vec![Run(MS)]),
        ];
        let events = Workload { cpus: 3, workers, steal: None }.run();
        let build = BuildOptions::default();
        let pass = Pass::over(events.as_slice());
        let model = pass.run(|| ModelBuilder::new(&build)).unwrap_or_else(|never| match never {}).output;
        let start = model.start;
        let wait = |pid, ms: u64, origin| {
            let (pid, end, violated_ns) = (Pid(pid), start.after(Dur(ms * 1_000_000)), ms * 1_000_000);
            ViolatingWait { pid, start, end, origin, violated_ns }
        };
        let waits = [wait(101, 10, "on the path"), wait(104, 12, "elsewhere")];
        let curves = curves(&model, &waits, None);
        let found =
            |curve: &CauseCurve| curve.points.iter().map(|point| point.elapsed_ns.0 / 1_000).collect::<Vec<_>>();
        assert_eq!(curves.iter().map(|curve| curve.origin).collect::<Vec<_>>(), ["elsewhere", "on the path"]);
        assert_eq!(found(&curves[0]), [25_000; 4]);
        assert_eq!(found(&curves[1]), [22_500, 20_000, 17_500, 15_000]);
        assert_eq!(super::curves(&model, &waits, Some("elsewhere")).len(), 1);
    }
}
