//! The analysis: the run time of groups by LLC, moves between LLCs, and busy siblings.

use crate::Options;
use crate::cores::Cores;
use crate::crowded::CrowdedCores;
use crate::groups::Groups;
use crate::noted;
use crate::report::{self, ResidencyReport};
use crate::sums::{COLUMNS, Llc, MOST_CELLS, Moved, RETURNS, RunSums};
use sched::analysis::Settled;
use sched::kthread::is_bound;
use sched::seeded::SeededMap;
use sched::topology::CpuOrder;
use sched::{
    Analysis, Cause, Cpu, EventKind, Joined, Migration, Past, PerTask, Pid, SchedEvent, SchedState, Span, TaskState, Ts,
};
use timeline::Division;

/// A CPU as the analysis sees it.
#[derive(Clone, Copy, Debug, Default)]
struct OccupantNow {
    since: Ts,
    /// The group of the running task.
    group: Option<usize>,
    /// Whether a sibling is busy.
    beside: Option<bool>,
}

/// The analysis of caches and cores: an [`Analysis`] whose output is a [`ResidencyReport`].
pub struct Residency<'o> {
    options: &'o Options<'o>,
    summary: RunSums<'o>,
    cores: Cores,
    crowded: Option<CrowdedCores>,
    cpus: Vec<OccupantNow>,
    columns: Division,
    started: bool,
}

impl<'o> Residency<'o> {
    /// Returns the analysis with the options of a measurement.
    pub fn new(options: &'o Options<'o>) -> Residency<'o> {
        let cores = Cores::of(&options.topology);
        let summary = RunSums {
            options,
            groups: Groups::default(),
            sums: Vec::new(),
            tracks: PerTask::default(),
            moves_by_cause: [0; Cause::ALL.len()],
            cells: SeededMap::default(),
            has_siblings: cores.have_siblings(),
        };
        let columns = Division::into_parts(options.from, options.to, COLUMNS);
        let crowded = CrowdedCores::new(&options.topology, options.affinity.clone());
        Residency { options, summary, cores, crowded, cpus: Vec::new(), columns, started: false }
    }

    fn llc(&self, cpu: Cpu) -> Llc {
        self.options.topology.group(cpu, CpuOrder::Llc)
    }

    /// Accounts for the run on `cpu` up to `ts`.
    fn settle(&mut self, cpu: Cpu, ts: Ts) {
        let Some(now) = self.cpus.get_mut(cpu.index()) else { return };
        let (since, group, beside) = (now.since, now.group, now.beside);
        now.since = now.since.max(ts);
        let ns = ts.since(since).0;
        let Some(group) = group.filter(|_| ns > 0 && self.started) else { return };
        let llc = self.llc(cpu);
        let node = self.options.topology.group(cpu, CpuOrder::Node);
        let sums = self.summary.sums_of(group);
        *sums.run.entry(llc).or_default() += ns;
        *sums.run_by_node.entry(node).or_default() += ns;
        if let Some(is_busy) = beside {
            sums.with_siblings_ns += ns;
            sums.beside_busy_ns += if is_busy { ns } else { 0 };
        }
        let Residency { columns, summary: RunSums { cells, .. }, .. } = self;
        columns.split(since, ts, |column, from, to| {
            let key = (column, llc, group);
            if cells.len() < MOST_CELLS || cells.contains_key(&key) {
                *cells.entry(key).or_default() += to.since(from).0;
            }
        });
    }

    /// Looks at the running task and the siblings of `cpu` anew.
    fn look(&mut self, cpu: Cpu, ts: Ts, state: &SchedState) {
        if !self.options.cpus.has(cpu) {
            return;
        }
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, OccupantNow { since: ts, ..OccupantNow::default() });
        }
        let group = state.running(cpu).and_then(|task| self.summary.groups.of(task, state, self.options));
        let beside = if group.is_some() { self.cores.is_beside_busy(cpu, state) } else { None };
        let now = &mut self.cpus[cpu.index()];
        (now.group, now.beside) = (group, beside);
    }

    /// Accounts for a CPU that has changed, and for its siblings.
    fn follow_cpu(&mut self, cpu: Cpu, ts: Ts, state: &SchedState) {
        self.settle(cpu, ts);
        let siblings = self.cores.core(cpu).to_vec();
        siblings.iter().filter(|other| **other != cpu).for_each(|other| self.settle(*other, ts));
        self.look(cpu, ts, state);
        for other in siblings.into_iter().filter(|other| *other != cpu && state.is_observed(*other)) {
            self.look(other, ts, state);
        }
    }

    /// Follows a move of a task from one CPU to another at an instant, if it is one between LLCs. Returns both, the group of the task, and its
    /// move before.
    pub(crate) fn take_move(
        &mut self,
        pid: Pid,
        (ts, orig, dest): (Ts, Cpu, Cpu),
        state: &SchedState,
    ) -> Option<(u32, u32, usize, Option<Moved>)> {
        let (from, to) = (self.llc(orig)?, self.llc(dest)?);
        let task = state.task_of(pid).filter(|_| from != to)?;
        let group = self.summary.groups.of(task, state, self.options)?;
        let mut track = self.summary.tracks.get(task.id()).copied().unwrap_or_default();
        let before = track.moved.replace((ts, from, to));
        (track.pid, track.group) = (task.pid, group);
        self.summary.tracks.insert(task.id(), track);
        Some((from, to, group, before))
    }

    /// Counts a move between LLCs, and whether the task returns to the one that it left before.
    fn follow_move(&mut self, event: &SchedEvent, state: &SchedState) {
        let EventKind::Migrate { task, orig, dest } = event.kind else { return };
        let moved = self.take_move(task.pid, (event.ts, orig, dest), state);
        let Some((from, to, group, before)) = moved else { return };
        let counts = self.started && self.options.cpus.has(dest);
        let sums = self.summary.sums_of(group);
        sums.moves += u64::from(counts);
        if let Some((at, _, _)) = before.filter(|(_, left, came)| counts && *left == to && *came == from) {
            for (count, most) in sums.returns.iter_mut().zip(RETURNS) {
                *count += u64::from(event.ts.since(at) <= most);
            }
        }
    }

    /// Counts the placement of a woken or new task beside a busy sibling.
    fn follow_placement(&mut self, event: &SchedEvent, state: &SchedState) {
        let (EventKind::Wakeup { task, target } | EventKind::WakeupNew { task, target }) = event.kind else { return };
        let is_placed = state.turns().any(|(of, span)| of.pid == task.pid && span.next == TaskState::Waiting(target));
        if !is_placed || !self.cores.have_siblings() || !self.options.cpus.has(target) {
            return;
        }
        // The CPU itself idles, but for the task that it is about to run.
        let is_on_idle = state.load(target).is_awaited() && state.queue_length(target) == 1;
        let Some(group) = state.task_of(task.pid).and_then(|task| self.summary.groups.of(task, state, self.options))
        else {
            return;
        };
        let beside = self.cores.is_beside_busy(target, state) == Some(true);
        let missed =
            if is_on_idle && beside { self.cores.nearest_idle(target, &self.options.topology, state) } else { None };
        let sums = self.summary.sums_of(group);
        sums.placements += 1;
        if let Some(distance) = missed {
            sums.placed_beside[distance] += 1;
        }
    }
}

/// A task can be at home in another cache than the pieces before have shown: the analysis is not divisible.
impl Joined for Residency<'_> {}

impl Analysis for Residency<'_> {
    type Output = ResidencyReport;
    /// A task can return in the window from a move before it.
    const LOOKS_BACK: bool = true;
    const MIGRATIONS: bool = true;

    fn recall(&mut self, past: &Past, state: &SchedState) {
        // Tasks that the state does not have are left out.
        for (pid, moved) in noted::moves_before(past) {
            self.take_move(pid, moved, state);
        }
    }

    fn early(&mut self, event: &SchedEvent, state: &SchedState) {
        self.follow_move(event, state);
    }

    fn migrated(&mut self, migration: &Migration, settled: Settled, state: &SchedState) {
        let task = state.task_of(migration.pid);
        if self.options.tasks.is_some_and(|chosen| !task.is_some_and(|task| chosen(task, state))) {
            return;
        }
        let (from, to) = (self.llc(migration.orig), self.llc(migration.dest));
        if settled.is_inside() && from.is_some() && to.is_some() && from != to && self.options.cpus.has(migration.dest)
        {
            let place = Cause::ALL.iter().position(|cause| *cause == migration.cause);
            place.into_iter().for_each(|place| self.summary.moves_by_cause[place] += 1);
        }
    }

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.started = true;
        self.crowded.iter_mut().for_each(|crowded| crowded.begin(start, state));
        self.summary.groups.begin();
        let cpus: Vec<Cpu> = state.observed().collect();
        for cpu in cpus {
            self.look(cpu, start, state);
            if let Some(now) = self.cpus.get_mut(cpu.index()) {
                now.since = start;
            }
        }
    }

    fn span(&mut self, span: &Span, state: &SchedState) {
        let (TaskState::Running(cpu) | TaskState::Waiting(cpu)) = span.state else { return };
        let runs = matches!(span.state, TaskState::Running(_));
        if !self.options.cpus.has(cpu) || !(runs || state.is_observed(cpu)) {
            return;
        }
        let Some(task) = state.task(span.task) else { return };
        let Some(group) = self.summary.groups.of(task, state, self.options) else { return };
        let (llc, ns) = (self.llc(cpu), span.duration().0);
        if !runs {
            *self.summary.sums_of(group).wait.entry(llc).or_default() += ns;
            return;
        }
        let sums = self.summary.sums_of(group);
        sums.runs += 1;
        sums.movable_runs += u64::from(!is_bound(task.comm, cpu));
        let mut track = self.summary.tracks.get(span.task).copied().unwrap_or_default();
        (track.pid, track.group) = (task.pid, group);
        if track.last != llc {
            (track.last, track.since) = (llc, span.start);
        }
        self.summary.tracks.insert(span.task, track);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        for span in state.cpu_spans() {
            self.follow_cpu(span.cpu, event.ts, state);
        }
        self.crowded.iter_mut().for_each(|crowded| crowded.after(event, state));
        self.follow_move(event, state);
        self.follow_placement(event, state);
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> ResidencyReport {
        for cpu in (0..self.cpus.len() as u32).map(Cpu) {
            self.settle(cpu, end);
        }
        let crowded = self.crowded.map(|crowded| crowded.finish(end, state));
        ResidencyReport { crowded, ..report::build(&self.summary, end, state) }
    }
}
