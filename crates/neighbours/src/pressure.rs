//! Pressure of CPUs: the time for which tasks of a group waited, by the rule of the kernel's psi.c.

use membership::{CgroupIndex, Cgroups, FollowedCgroups};
use sched::seeded::SeededMap;
use sched::state::Task;
use sched::{Analysis, Cpu, CpuSet, Dur, Joined, PerTask, SchedEvent, SchedState, StepLog, TaskId, TaskState, Ts};

/// The number of instants within a period at which the kernel may have begun to sum. The trace does not show the instant, so that
/// each of these is tried.
const PHASES: usize = 8;

/// The place of the sums that begin with the first task of the group, behind those of the phases.
const OWN: usize = PHASES;

/// The period after which the kernel sums over the CPUs.
const PERIOD: Dur = Dur(2_000_000_000);

/// Maximum number of groups, and of pairs of a group and a CPU; tasks of further ones count for the groups above theirs alone.
const MOST_GROUPS: usize = 1000;
const MOST_CELLS: usize = 1 << 17;

/// The place of the machine among the groups.
const MACHINE: u32 = 0;

/// Times of a group on a CPU, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Stalls {
    some: u64,
    full: u64,
    nonidle: u64,
    run: u64,
}

/// A group on a CPU.
#[derive(Clone, Debug, Default)]
struct PressureCell {
    /// The tasks of the group that wait or are throttled there.
    queued: u32,
    /// Whether a task of the group runs there: 1 or 0.
    running: u32,
    /// Up to here the time is in `sums`.
    since: Ts,
    sums: Stalls,
    /// The sums as of the latest instant at which each phase summed.
    taken: [Stalls; PHASES + 1],
}

impl PressureCell {
    /// The sums up to an instant that is no earlier than `since`.
    fn until(&self, ts: Ts) -> Stalls {
        let ns = ts.since(self.since).0;
        let add = |sum: u64, holds: bool| if holds { sum.saturating_add(ns) } else { sum };
        let (queued, running) = (self.queued > 0, self.running > 0);
        Stalls {
            some: add(self.sums.some, queued),
            full: add(self.sums.full, queued && !running),
            nonidle: add(self.sums.nonidle, queued || running),
            run: add(self.sums.run, running),
        }
    }
}

/// The stalled time of a group over all CPUs, as the kernel averages it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalled {
    /// The time for which some task waited, in nanoseconds.
    pub some: u64,
    /// The time for which tasks waited and none ran on their CPU, in nanoseconds.
    pub full: u64,
}

/// A group: the machine, or a cgroup with all below it.
#[derive(Clone, Debug)]
struct PressedGroup {
    name: String,
    by_phase: [Stalled; PHASES + 1],
    /// The next instant at which the sums that begin with its first task are made; absent before that, and while it is idle.
    next: Option<Ts>,
    /// Whether all of its tasks are counted.
    is_whole: bool,
}

/// The pressure of a group over a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredPressure {
    /// The path of the cgroup; absent for the machine.
    pub cgroup: Option<String>,
    /// The stalled time as if the kernel summed every two seconds from the group's first task in the window on.
    pub stalled: Stalled,
    /// The least of `some` and of `full` over the instants at which the kernel may have summed.
    pub least: Stalled,
    /// The greatest of `some` and of `full` over the instants at which the kernel may have summed.
    pub most: Stalled,
    /// The CPU time of the tasks, in nanoseconds.
    pub run: u64,
}

/// A task on a CPU, with the groups that it counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PressedTask {
    cpu: Cpu,
    cgroup: Option<CgroupIndex>,
    runs: bool,
}

/// The analysis: an [`Analysis`] whose output has the machine first, and then the cgroups whose tasks ran or waited.
pub struct PressureMeter<'o> {
    cgroups: FollowedCgroups<'o>,
    /// The places of each cgroup and of those above it, by the index of the cgroup.
    chains: Vec<Vec<u32>>,
    groups: Vec<PressedGroup>,
    cells: SeededMap<(Cpu, u32), PressureCell>,
    tasks: PerTask<PressedTask>,
    /// The CPUs that have had an event.
    observed: CpuSet,
    /// The next instant at which each phase sums.
    next: [Ts; PHASES],
    /// The first of the instants at which a group sums for itself.
    first_own: Ts,
    /// The places of tasks in a later piece of a pass, for the pieces before.
    log: StepLog<Placing>,
}

/// A task comes to a CPU at an instant, or to none.
type Placing = (Ts, TaskId, Option<PressedTask>);

impl<'o> PressureMeter<'o> {
    /// Returns the analysis for the machine and these cgroups.
    pub fn new(cgroups: &'o Cgroups) -> PressureMeter<'o> {
        let group = |name: &str| PressedGroup {
            name: name.to_owned(),
            by_phase: Default::default(),
            next: None,
            is_whole: true,
        };
        let mut groups = vec![group("/")];
        let mut places: SeededMap<&str, u32> = SeededMap::default();
        let mut chains = Vec::new();
        for name in cgroups.names() {
            let mut chain = vec![MACHINE];
            for path in with_those_above(name) {
                let place = places.get(path).copied().or_else(|| {
                    let place = groups.len() as u32;
                    (groups.len() < MOST_GROUPS).then(|| {
                        groups.push(group(path));
                        places.insert(path, place);
                        place
                    })
                });
                chain.extend(place);
            }
            chains.push(chain);
        }
        PressureMeter {
            cgroups: FollowedCgroups::new(cgroups),
            chains,
            groups,
            cells: SeededMap::default(),
            tasks: PerTask::default(),
            observed: CpuSet::default(),
            next: [Ts(0); PHASES],
            first_own: Ts::MAX,
            log: StepLog::default(),
        }
    }

    /// Adds a task to the groups that it counts for, or removes it.
    fn change(&mut self, task: PressedTask, ts: Ts, joins: bool) {
        let machine = [MACHINE];
        let chain = task.cgroup.and_then(|cgroup| self.chains.get(cgroup.index())).map_or(&machine[..], Vec::as_slice);
        for place in chain {
            if self.cells.len() >= MOST_CELLS && !self.cells.contains_key(&(task.cpu, *place)) {
                self.groups[*place as usize].is_whole = false;
                continue;
            }
            let cell = self.cells.entry((task.cpu, *place)).or_default();
            cell.sums = cell.until(ts);
            cell.since = ts;
            if joins && self.groups[*place as usize].next.is_none() {
                let next = ts.after(PERIOD);
                self.groups[*place as usize].next = Some(next);
                self.first_own = self.first_own.min(next);
            }
            let count = if task.runs { &mut cell.running } else { &mut cell.queued };
            *count = if joins { *count + 1 } else { count.saturating_sub(1) };
        }
    }

    /// Counts a task where it runs or is queued now, and no longer where it was.
    fn place(&mut self, task: &Task, ts: Ts, state: &SchedState) {
        let place = match task.state {
            TaskState::Running(cpu) => Some((cpu, true)),
            // A task that is queued on a CPU without events may have run.
            TaskState::Waiting(cpu) if state.is_observed(cpu) => Some((cpu, false)),
            TaskState::Throttled(cpu) => Some((cpu, false)),
            _ => None,
        };
        let now = place.map(|(cpu, runs)| PressedTask { cpu, cgroup: self.cgroups.of(task.pid), runs });
        self.step((ts, task.id(), now));
    }

    /// Follows a step, or notes it in a later piece of a pass.
    fn step(&mut self, step: Placing) {
        if let Some(step) = self.log.at_once(step) {
            self.take_step(step);
        }
    }

    fn take_step(&mut self, (ts, task, now): Placing) {
        self.sum_until(ts);
        let before = self.tasks.take(task);
        before.into_iter().for_each(|before| self.change(before, ts, false));
        if let Some(now) = now {
            self.change(now, ts, true);
            self.tasks.insert(task, now);
        }
    }

    /// Sums each phase, and each group for itself, at its instants up to `ts`.
    fn sum_until(&mut self, ts: Ts) {
        for phase in 0..PHASES {
            if self.next[phase] <= ts {
                let (first, last) = instants(self.next[phase], ts);
                self.sum(phase, first, |_| true);
                self.sum(phase, last, |_| true);
                self.next[phase] = last.after(PERIOD);
            }
        }
        while self.first_own <= ts && self.first_own < Ts::MAX {
            let (at, last) = instants(self.first_own, ts);
            let due: Vec<bool> = self.groups.iter().map(|group| group.next == Some(at)).collect();
            let is_busy = self.sum(OWN, at, |place| due[place as usize]);
            let is_busy_on = self.sum(OWN, last, |place| due[place as usize]);
            for (place, group) in self.groups.iter_mut().enumerate().filter(|(place, _)| due[*place]) {
                // The kernel's clock of an idle group stops, and goes on with its next task.
                let goes_on = is_busy_on[place] || (at == last && is_busy[place]);
                group.next = goes_on.then(|| last.after(PERIOD));
            }
            self.first_own = self.groups.iter().filter_map(|group| group.next).min().unwrap_or(Ts::MAX);
        }
    }

    /// Averages what each group stalled on the CPUs since the phase last summed, by the time for which they were not idle. Returns
    /// whether each group had such time.
    fn sum(&mut self, phase: usize, ts: Ts, is_due: impl Fn(u32) -> bool) -> Vec<bool> {
        let mut sums = vec![(0_u128, 0_u128, 0_u128); self.groups.len()];
        for ((_, place), cell) in self.cells.iter_mut().filter(|((_, place), _)| is_due(*place)) {
            let (now, before) = (cell.until(ts), cell.taken[phase]);
            cell.taken[phase] = now;
            let nonidle = u128::from(now.nonidle - before.nonidle);
            let sum = &mut sums[*place as usize];
            sum.0 += u128::from(now.some - before.some) * nonidle;
            sum.1 += u128::from(now.full - before.full) * nonidle;
            sum.2 += nonidle;
        }
        for (group, (some, full, nonidle)) in self.groups.iter_mut().zip(&sums).filter(|(_, sum)| sum.2 > 0) {
            let stalled = &mut group.by_phase[phase];
            stalled.some = stalled.some.saturating_add(u64::try_from(some / nonidle).unwrap_or(u64::MAX));
            stalled.full = stalled.full.saturating_add(u64::try_from(full / nonidle).unwrap_or(u64::MAX));
        }
        sums.iter().map(|sum| sum.2 > 0).collect()
    }

    /// Follows the moves between cgroups up to `ts`.
    fn follow_cgroups(&mut self, ts: Ts, state: Option<&SchedState>) {
        while let Some(change) = self.cgroups.next(ts) {
            if let Some((task, state)) = state.and_then(|state| Some((state.task_of(change.pid)?, state))) {
                self.place(task, change.ts, state);
            }
        }
    }
}

/// The first instant of a phase, and its last one up to `ts`. Nothing changes between two events: one sum over the whole periods
/// between them is what many give.
fn instants(first: Ts, ts: Ts) -> (Ts, Ts) {
    let periods = ts.since(first).0 / PERIOD.0;
    (first, first.after(Dur(periods * PERIOD.0)))
}

/// The path of a cgroup, and those of the cgroups above it but for the root.
fn with_those_above(path: &str) -> impl Iterator<Item = &str> {
    let first = Some(path).filter(|path| *path != "/");
    std::iter::successors(first, |path| path.rfind('/').filter(|at| *at > 0).map(|at| &path[..at]))
}

/// The kernel's sums begin with the first task of a group: a later piece notes where tasks are, which needs the state no more.
impl Joined for PressureMeter<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, at: Ts, state: &SchedState) {
        self.cgroups.resume(at);
        self.observed = state.observed().collect();
        self.log.resume();
    }

    fn fits(&self, _: &Self) -> bool {
        true
    }

    fn join(&mut self, later: Self) {
        later.log.into_steps().for_each(|step| self.take_step(step));
        (self.cgroups, self.observed) = (later.cgroups, later.observed);
    }
}

impl Analysis for PressureMeter<'_> {
    type Output = Vec<MeasuredPressure>;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.follow_cgroups(start, None);
        for (phase, next) in self.next.iter_mut().enumerate() {
            *next = start.after(Dur(PERIOD.0 / PHASES as u64 * (phase as u64 + 1)));
        }
        self.observed = state.observed().collect();
        state.living().for_each(|task| self.place(task, start, state));
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        self.follow_cgroups(event.ts, Some(state));
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        for span in state.spans() {
            match state.task(span.task) {
                Some(task) => self.place(task, event.ts, state),
                None => self.step((event.ts, span.task, None)),
            }
        }
        // The tasks that are queued on a CPU count from its first event on.
        if !self.observed.has(event.cpu) {
            self.observed.set(event.cpu, true);
            state.waiting(event.cpu).for_each(|task| self.place(task, event.ts, state));
        }
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> Vec<MeasuredPressure> {
        self.sum_until(end);
        (0..=OWN).for_each(|phase| drop(self.sum(phase, end, |_| true)));
        let mut run = vec![0_u64; self.groups.len()];
        for ((_, place), cell) in &self.cells {
            run[*place as usize] = run[*place as usize].saturating_add(cell.until(end).run);
        }
        let measured = self.groups.into_iter().zip(run).enumerate().filter(|(_, (group, _))| group.is_whole);
        let measured = measured.map(|(place, (group, run))| {
            let of = |choose: fn(u64, u64) -> u64| {
                let both =
                    |a: Stalled, b: &Stalled| Stalled { some: choose(a.some, b.some), full: choose(a.full, b.full) };
                group.by_phase[1..].iter().fold(group.by_phase[0], both)
            };
            MeasuredPressure {
                cgroup: (place as u32 != MACHINE).then_some(group.name),
                stalled: group.by_phase[OWN],
                least: of(u64::min),
                most: of(u64::max),
                run,
            }
        });
        measured.filter(|of| of.cgroup.is_none() || of.run > 0 || of.most.some > 0).collect()
    }
}
