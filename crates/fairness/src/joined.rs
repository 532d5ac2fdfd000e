//! The pieces of a pass, joined.
//!
//! The times of members add up. The longest waits depend on the order of all that precedes them: on the runs and idle times
//! that are remembered, the coarser the longer ago. A later piece notes these steps, and the analysis of the pieces before
//! takes them one by one.

use crate::waits::{Waiter, Waits};
use crate::{Fairness, MemberKey};
use sched::limits::ROWS;
use sched::state::Task;
use sched::{Comm, Cpu, CpuSpan, Dur, Joined, Load, PerTask, SchedState, TaskId, Ts};

/// A step whose effect depends on the pieces before.
#[derive(Clone, Debug)]
enum WaitStep {
    /// Some CPU idles from now on, or none does.
    Idle(bool),
    /// A CPU has this load now, of which only whether it idles, and beside its own waiting tasks, matters.
    Load(Cpu, Load),
    /// A CPU ran a command from this instant on until now.
    Ran(Cpu, Comm, Ts),
    Begins(TaskId, Cpu),
    Moves(TaskId, Cpu),
    Forget(TaskId),
    /// A wait of a chosen task ends on a CPU.
    Ends(TaskId, Waiter, Cpu),
    /// The place, among the waits from earlier pieces that end, of one whose length is measured.
    Measured(usize),
}

/// A wait, as far as a later piece has followed it.
#[derive(Clone, Copy, Debug)]
struct PieceWait {
    /// The beginning; nothing if it was in an earlier piece.
    since: Option<Ts>,
    /// Whether the task was moved to another run queue meanwhile.
    moved: bool,
}

/// A run, or a part of one, that began in an earlier piece.
#[derive(Clone, Copy, Debug)]
struct EarlierRun {
    task: Task,
    start: Ts,
    end: Ts,
    is_chosen: bool,
}

/// The things that a later piece of a pass cannot decide by itself.
#[derive(Debug, Default)]
pub(crate) struct WaitLog {
    steps: Vec<(Ts, WaitStep)>,
    /// The instant of the latest event.
    last: Ts,
    /// Whether some CPU idles, at the beginning and now.
    idled: bool,
    idles: bool,
    /// Whether each CPU idles with an empty run queue, and whether it idles beside its own waiting tasks.
    idle: Vec<[bool; 2]>,
    waits: PerTask<PieceWait>,
    /// The tasks that wait and began to do so in an earlier piece, when their waits end, and whether they were moved meanwhile.
    ended: Vec<(Task, Ts, bool)>,
    /// The length of the longest wait of a task that was moved meanwhile, or that ran elsewhere in the end.
    longest_moved: Option<Dur>,
    /// The tasks that run at the beginning and still do, by the same name.
    running: PerTask<()>,
    runs: Vec<EarlierRun>,
}

impl WaitLog {
    fn of(at: Ts, state: &SchedState) -> WaitLog {
        let idles = state.counts().idle_cpus() > 0;
        let mut log = WaitLog { last: at, idled: idles, idles, ..WaitLog::default() };
        for cpu in state.observed() {
            state.running(cpu).into_iter().for_each(|task| log.running.insert(task.id(), ()));
            log.set_idle(cpu, state.load(cpu));
        }
        // Whichever of them the pieces before know to wait.
        for task in state.living() {
            log.waits.insert(task.id(), PieceWait { since: None, moved: false });
        }
        log
    }

    /// Sets whether a CPU idles, by its load; returns whether that is a change.
    fn set_idle(&mut self, cpu: Cpu, load: Load) -> bool {
        if cpu.index() >= self.idle.len() {
            self.idle.resize(cpu.index() + 1, [false; 2]);
        }
        let idle = [load.is_idle(), load.is_awaited()];
        std::mem::replace(&mut self.idle[cpu.index()], idle) != idle
    }

    /// Notes whether some CPU idles, as it has done since the event before.
    pub(crate) fn pass(&mut self, ts: Ts, idles: bool) {
        if self.idles != idles {
            self.idles = idles;
            self.steps.push((self.last, WaitStep::Idle(idles)));
        }
        self.last = ts;
    }

    /// Notes that the run of a CPU ended.
    pub(crate) fn ran(&mut self, span: &CpuSpan) {
        self.steps.push((span.end, WaitStep::Ran(span.cpu, span.comm, span.start)));
    }

    /// Notes the load of a CPU.
    pub(crate) fn load(&mut self, cpu: Cpu, load: Load, ts: Ts) {
        if self.set_idle(cpu, load) {
            self.steps.push((ts, WaitStep::Load(cpu, load)));
        }
    }

    /// Notes that a wait begins.
    pub(crate) fn begins(&mut self, task: &Task, cpu: Cpu, ts: Ts) {
        self.steps.push((ts, WaitStep::Begins(task.id(), cpu)));
        self.waits.insert(task.id(), PieceWait { since: Some(ts), moved: false });
    }

    /// Notes that a task that waits is moved.
    pub(crate) fn moves(&mut self, task: &Task, cpu: Cpu, ts: Ts) {
        if let Some(wait) = self.waits.get_mut(task.id()) {
            wait.moved = true;
            self.steps.push((ts, WaitStep::Moves(task.id(), cpu)));
        }
    }

    /// Notes that a task does not wait, or not for a length that is known.
    pub(crate) fn forget(&mut self, task: &Task, ts: Ts) {
        if self.waits.take(task.id()).is_some() {
            self.steps.push((ts, WaitStep::Forget(task.id())));
        }
    }

    /// The length up to now of the wait of a task; nothing if it began in an earlier piece.
    pub(crate) fn length(&self, task: TaskId, ts: Ts) -> Option<Dur> {
        Some(ts.since(self.waits.get(task)?.since?))
    }

    /// Notes that a wait on the queue of `from` ends on `cpu`; returns its length if all of it was in this piece.
    pub(crate) fn ends(&mut self, task: &Task, waiter: Waiter, from: Cpu, cpu: Cpu, ts: Ts) -> Option<Dur> {
        let wait = self.waits.take(task.id())?;
        let moved = wait.moved || from != cpu;
        self.steps.push((ts, WaitStep::Ends(task.id(), waiter, cpu)));
        let Some(since) = wait.since else {
            self.steps.push((ts, WaitStep::Measured(self.ended.len())));
            self.ended.push((*task, ts, moved));
            return None;
        };
        let length = ts.since(since);
        if moved {
            self.longest_moved = self.longest_moved.max(Some(length));
        }
        Some(length)
    }

    /// Whether the run of a task, or the part of it by its present name, began in an earlier piece.
    pub(crate) fn ran_before(&self, task: TaskId) -> bool {
        self.running.get(task).is_some()
    }

    /// Leaves such a run to the pieces before, or the part of it until the task takes another name. One of a task that is
    /// not chosen counts nowhere.
    pub(crate) fn leave_run(&mut self, task: &Task, start: Ts, end: Ts, is_chosen: bool) {
        self.running.take(task.id());
        self.runs.push(EarlierRun { task: *task, start, end, is_chosen });
    }
}

impl Fairness<'_> {
    /// Takes the steps that a later piece has noted.
    fn take(&mut self, log: &WaitLog) {
        let mut idles = log.idled;
        let mut lengths: Vec<Option<Dur>> = vec![None; log.ended.len()];
        let mut latest = None;
        for (ts, step) in &log.steps {
            let ts = *ts;
            self.waits.pass(ts, idles);
            match step.clone() {
                WaitStep::Idle(now) => idles = now,
                WaitStep::Load(cpu, load) => self.idle.follow(cpu, load, ts),
                WaitStep::Ran(cpu, comm, start) => self.waits.ran(cpu, comm, start, ts),
                WaitStep::Begins(task, cpu) => self.waits.begins(task, cpu, ts),
                WaitStep::Moves(task, cpu) => self.waits.moves(task, cpu, ts),
                WaitStep::Forget(task) => self.waits.forget(task),
                WaitStep::Ends(task, waiter, cpu) => latest = self.waits.ends(task, waiter, cpu, ts, &self.idle, None),
                WaitStep::Measured(place) => lengths[place] = latest.take(),
            }
        }
        self.waits.pass(log.last, idles);
        for ((task, ts, _), length) in log.ended.iter().zip(lengths) {
            if let Some(length) = length
                && let Some(member) = self.member_of_chosen(task, *ts)
            {
                self.members[member].1.waits.add(length);
            }
        }
    }

    /// Takes the runs that began before a later piece and ended in it.
    fn take_runs(&mut self, runs: &[EarlierRun]) {
        for EarlierRun { task, start, end, is_chosen } in runs {
            // Asked for once, whether the task is chosen or not.
            let start = self.renamed_in(task.id()).unwrap_or(*start);
            if *is_chosen {
                self.add_time(task, true, start, *end);
            }
        }
    }

    /// Adds the members of a later piece, and the members that its tasks belong to.
    fn join_members(&mut self, later: &mut Self) {
        let mut places = Vec::with_capacity(later.members.len());
        for (key, sums) in std::mem::take(&mut later.members) {
            let place = *self.keys.entry(key.clone()).or_insert(self.members.len());
            places.push(place);
            match self.members.get_mut(place) {
                Some((_, known)) => known.join(sums),
                None => self.members.push((key, sums)),
            }
        }
        for (task, (traits, place)) in later.homes.iter() {
            self.homes.insert(task, (*traits, places[*place]));
        }
    }
}

/// Whether a wait of this length would not be kept among the longest, as they are.
fn is_short(waits: &Waits, length: Option<Dur>) -> bool {
    length.is_none_or(|length| waits.shortest_kept().is_some_and(|shortest| length <= shortest))
}

impl Joined for Fairness<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, at: Ts, state: &SchedState) {
        if !self.options.times_alone {
            self.fair_runs.begin(at, state);
        }
        self.log = Some(Box::new(WaitLog::of(at, state)));
    }

    fn fits(&self, later: &Self) -> bool {
        let Some(log) = &later.log else { return false };
        let new = later.keys.keys().filter(|key| !self.keys.contains_key(*key)).count();
        let left = log.ended.len() + log.runs.len();
        let has_room = self.members.len() + new + left <= ROWS && !later.keys.contains_key(&MemberKey::Rest);
        // The tasks that ran on the queues that it left, which are kept with a long wait, are known to the state alone.
        let is_plain = |(task, ts, moved): &(Task, Ts, bool)| {
            let open = self.waits.open(task.id());
            open.is_none_or(|(since, has_moved)| !(*moved || has_moved) || is_short(&self.waits, Some(ts.since(since))))
        };
        has_room && is_short(&self.waits, log.longest_moved) && log.ended.iter().all(is_plain)
    }

    fn join(&mut self, mut later: Self) {
        let Some(log) = later.log.take() else { return };
        self.take(&log);
        self.take_runs(&log.runs);
        self.fair_runs.join(std::mem::take(&mut later.fair_runs));
        self.join_members(&mut later);
        later.renamed.iter().for_each(|(task, ts)| self.renamed.insert(task, *ts));
    }
}
