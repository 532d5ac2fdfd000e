//! What no scheduler can beat on the work of a model (`docs/questions/whatif.md#bound`).
//!
//! [`least_elapsed`] goes through all programs as if no task ever waited for a CPU: each step has the earliest instant at which any scheduler
//! could come to it, its *head*. Backwards it finds the *tail* of each run, the shortest time from its end to the end of the work. From both
//! follow the longest chain, and the least time for which a number of CPUs must be busy with the work.

mod work;

use crate::measures::RunFigures;
use crate::model::{Begin, Model, ProgramStep, SleepClass, SleepIndex, TaskIndex};
use crate::report::{Bound, LeastElapsed, OnPath};
use path::Path;
use sched::{Dur, QueuedTimes, Ts};
use work::{UsedSets, WorkBins};

/// The answers to what a trace leaves open about its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    /// Whether sleeps that any task may have caused to end could have taken no time.
    pub open_sleeps_vanish: bool,
    /// Whether each task is bound to the CPUs that it used in the trace.
    pub tasks_are_bound: bool,
}

/// The instant from which the elapsed time of a model counts, and the number of CPUs that its tasks could use.
#[derive(Clone, Copy, Debug)]
pub struct BoundScope {
    /// The instant of the exec of the traced command; absent where the elapsed time lasts from the start of the window until the last task has
    /// left its CPU.
    pub exec: Option<Ts>,
    /// The number of CPUs of the machine; at least those of the model count.
    pub cpus: u32,
}

/// The facts besides a model from which its bound follows.
pub(crate) struct BoundFacts<'f> {
    pub(crate) scope: BoundScope,
    pub(crate) path: Option<&'f Path>,
    pub(crate) near_idle_ns: Option<u64>,
    pub(crate) queued: Option<QueuedTimes>,
}

/// Returns the bound of the work of a model, whose trace took so long; nothing where the programs do not come to the end.
pub(crate) fn bound(model: &Model, trace: &RunFigures, facts: &BoundFacts<'_>) -> Option<Bound> {
    let scope = facts.scope;
    let least = |granted: Granted| least_elapsed(model, scope, granted);
    let surest = Granted { open_sleeps_vanish: true, ..Granted::default() };
    let usual = least(surest)?;
    let kept = least(Granted::default());
    let bound = trace.confined_percent.and_then(|_| least(Granted { tasks_are_bound: true, ..surest }));
    let path = facts.path.filter(|path| path.task.is_some()).map(|path| OnPath {
        length_ns: Dur(path.times.total()),
        queued: path.times.kinds(),
        near_idle_ns: facts.near_idle_ns.map(Dur),
        waking_ns: path.times.waking_ns.map(Dur),
    });
    Some(Bound {
        least: usual,
        most_gain_ns: Dur(trace.elapsed_ns.0.saturating_sub(usual.elapsed_ns.0)),
        least_if_kept: kept.filter(|kept| kept.elapsed_ns > usual.elapsed_ns),
        least_if_bound: bound,
        cpus: cpus_of(model, scope) as u32,
        path,
        queued: facts.queued,
    })
}

/// Returns the least elapsed time of the work of a model under any scheduler; nothing where the programs do not come to the end.
pub fn least_elapsed(model: &Model, scope: BoundScope, granted: Granted) -> Option<LeastElapsed> {
    let mut heads = Heads::new(model, scope, granted);
    heads.go_on();
    let from = scope.exec.unwrap_or(model.start).0;
    let end = match scope.exec {
        Some(_) => heads.exit?,
        None => heads.last,
    };
    let chain = (end - from).max(0) as u64;
    let sets = UsedSets::of(model, granted.tasks_are_bound);
    let mut bins = WorkBins::new(&sets, from, chain, cpus_of(model, scope));
    heads.find_tails(&mut bins);
    let work = bins.least();
    Some(LeastElapsed { elapsed_ns: Dur(chain.max(work)), chain_ns: Dur(chain), work_ns: Dur(work) })
}

/// The number of CPUs that could do the work, those included that were offline for some time.
fn cpus_of(model: &Model, scope: BoundScope) -> usize {
    model.cpus.len().max(scope.cpus as usize)
}

/// A stretch of a program that a task went through at once.
#[derive(Clone, Copy, Debug)]
struct ProgramStretch {
    task: TaskIndex,
    from: u32,
    to: u32,
}

/// The progress of all tasks, none of which ever waits for a CPU.
struct Heads<'m> {
    model: &'m Model,
    exec: Option<Ts>,
    granted: Granted,
    at: Vec<i64>,
    next: Vec<u32>,
    /// The earliest instants at which sleeps were woken.
    woken: Vec<Option<i64>>,
    blocked: Vec<Option<SleepIndex>>,
    begun: Vec<bool>,
    ready: Vec<TaskIndex>,
    stretches: Vec<ProgramStretch>,
    /// The heads of all runs, in the order in which they were come to.
    runs: Vec<i64>,
    has_executed: bool,
    exit: Option<i64>,
    last: i64,
}

impl<'m> Heads<'m> {
    fn new(model: &'m Model, scope: BoundScope, granted: Granted) -> Heads<'m> {
        let tasks = model.tasks.len();
        let mut heads = Heads {
            model,
            exec: scope.exec,
            granted,
            at: vec![model.start.0; tasks],
            next: vec![0; tasks],
            woken: vec![None; model.sleeps.len()],
            blocked: vec![None; tasks],
            begun: vec![false; tasks],
            ready: Vec::new(),
            stretches: Vec::new(),
            runs: Vec::new(),
            has_executed: false,
            exit: None,
            last: model.start.0,
        };
        let mut runs_on = vec![false; model.cpus.len()];
        for (index, task) in (0..).zip(&model.tasks) {
            match task.begin {
                // A damaged trace can have two tasks on a CPU: the simulation has the first one there.
                Begin::Runs(cpu) if std::mem::replace(&mut runs_on[cpu.index()], true) => continue,
                Begin::Forked(_) => continue,
                Begin::At(at, _) if !granted.open_sleeps_vanish => heads.at[index as usize] = at.0,
                _ => {}
            }
            heads.begin(index);
        }
        heads
    }

    fn begin(&mut self, task: TaskIndex) {
        if !std::mem::replace(&mut self.begun[task as usize], true) {
            self.ready.push(task);
        }
    }

    fn go_on(&mut self) {
        while let Some(task) = self.ready.pop() {
            let from = self.next[task as usize];
            self.go_through(task);
            self.stretches.push(ProgramStretch { task, from, to: self.next[task as usize] });
        }
    }

    /// A task goes through its program until a sleep that no task has ended yet.
    fn go_through(&mut self, task: TaskIndex) {
        let (model, me) = (self.model, task as usize);
        while let Some(step) = model.tasks[me].steps.get(self.next[me] as usize) {
            match *step {
                ProgramStep::Run(ns) => {
                    self.runs.push(self.at[me]);
                    self.at[me] = self.at[me].saturating_add_unsigned(ns);
                    self.last = self.last.max(self.at[me]);
                }
                ProgramStep::Wake(sleep) => self.wake(sleep, self.at[me]),
                ProgramStep::Fork(child)
                    if matches!(model.tasks[child as usize].begin, Begin::Forked(_)) && !self.begun[child as usize] =>
                {
                    self.at[child as usize] = self.at[me];
                    self.begin(child);
                }
                ProgramStep::Fork(_) => {}
                ProgramStep::Sleep(sleep) => match self.end_of(sleep, self.at[me]) {
                    Some(end) => self.at[me] = end,
                    None => {
                        self.blocked[me] = Some(sleep);
                        return;
                    }
                },
                ProgramStep::Exec(_)
                    if model.root == Some(task) && !std::mem::replace(&mut self.has_executed, true) =>
                {
                    // A command that begins sooner does not take less time for that.
                    self.at[me] = self.at[me].max(self.exec.map_or(i64::MIN, |exec| exec.0));
                }
                ProgramStep::Exit if model.root == Some(task) && self.exit.is_none() => self.exit = Some(self.at[me]),
                _ => {}
            }
            self.next[me] += 1;
        }
    }

    fn wake(&mut self, sleep: SleepIndex, at: i64) {
        let woken = &mut self.woken[sleep as usize];
        *woken = Some(woken.map_or(at, |before| before.min(at)));
        let sleeper = self.model.sleeps[sleep as usize].task;
        if self.blocked[sleeper as usize] == Some(sleep) {
            self.blocked[sleeper as usize] = None;
            self.ready.push(sleeper);
        }
    }

    /// The earliest end of a sleep to which its task comes at `at` or later; nothing before it is woken, or if it has no end. The time from the
    /// waking to the run queue does not count: a task that comes to its sleep behind the waking does not sleep.
    fn end_of(&self, index: SleepIndex, at: i64) -> Option<i64> {
        let sleep = &self.model.sleeps[index as usize];
        let instant = sleep.start.0.saturating_add_unsigned(sleep.length);
        match sleep.class {
            SleepClass::Task | SleepClass::Lock => self.woken[index as usize].map(|waking| waking.max(at)),
            _ if !sleep.ends => None,
            _ if self.vanishes(index) => Some(at),
            SleepClass::AbsoluteTimer => Some(instant.max(at)),
            // Where the instant counts, a task that comes late sleeps for less.
            SleepClass::Interrupt | SleepClass::EitherTimer => {
                Some(at.saturating_add_unsigned(sleep.length).min(instant.max(at)))
            }
            _ => Some(at.saturating_add_unsigned(sleep.length)),
        }
    }

    fn vanishes(&self, sleep: SleepIndex) -> bool {
        self.granted.open_sleeps_vanish && self.model.sleeps[sleep as usize].is_open()
    }

    /// Goes back through all stretches, and gives each run with its head and its tail to `bins`.
    fn find_tails(&self, bins: &mut WorkBins<'_>) {
        let model = self.model;
        // Nothing where the end of the work does not need a task any more.
        let mut tails: Vec<Option<u64>> = vec![None; model.tasks.len()];
        let mut behind_sleep: Vec<Option<u64>> = vec![None; model.sleeps.len()];
        let mut runs = self.runs.iter().rev();
        for stretch in self.stretches.iter().rev() {
            let me = stretch.task as usize;
            let steps = model.tasks[me].steps.get(stretch.from as usize..stretch.to as usize).unwrap_or_default();
            for step in steps.iter().rev() {
                match *step {
                    ProgramStep::Run(ns) => {
                        let head = runs.next().copied().unwrap_or(model.start.0);
                        if self.exec.is_none() {
                            tails[me].get_or_insert(0);
                        }
                        if let Some(tail) = &mut tails[me] {
                            bins.add(stretch.task, head, ns, *tail);
                            *tail = tail.saturating_add(ns);
                        }
                    }
                    ProgramStep::Wake(sleep) => tails[me] = tails[me].max(behind_sleep[sleep as usize]),
                    ProgramStep::Fork(child) if matches!(model.tasks[child as usize].begin, Begin::Forked(_)) => {
                        tails[me] = tails[me].max(tails[child as usize]);
                    }
                    ProgramStep::Sleep(sleep) => {
                        behind_sleep[sleep as usize] = tails[me];
                        let length = self.kept_length(sleep);
                        tails[me] = tails[me].map(|tail| tail.saturating_add(length));
                    }
                    ProgramStep::Exit if model.root == Some(stretch.task) && self.exec.is_some() => {
                        tails[me] = tails[me].max(Some(0));
                    }
                    _ => {}
                }
            }
        }
    }

    /// The length that a sleep has at least, however late its task comes to it.
    fn kept_length(&self, index: SleepIndex) -> u64 {
        let sleep = &self.model.sleeps[index as usize];
        match sleep.class {
            SleepClass::Timer | SleepClass::Device | SleepClass::Throttled | SleepClass::Unknown
                if !self.vanishes(index) =>
            {
                sleep.length
            }
            _ => 0,
        }
    }
}
