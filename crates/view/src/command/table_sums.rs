//! The sums of a table, row by row, as the analyses of the commands pass them on.

use membership::{GroupedTask, RowNames, TaskGroup, TaskGroups, join_random};
use sched::affinity::Affinity;
use sched::analysis::Settled;
use sched::kthread::{is_bound, is_kernel_thread};
use sched::limits::BoundedRows;
use sched::seeded::SeededSet;
use sched::topology::CpuOrder;
use sched::{
    Analysis, Cpu, Current, EventKind, Lengths, Load, Migration, Pid, QueuedTimes, SchedEvent, SchedState, Topology, Ts,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum RowOf {
    /// The tasks of a group.
    Group(TaskGroup),
    /// A CPU, whatever tasks it runs.
    Cpu(Cpu),
    /// The CPUs of a last-level cache; nothing for those whose cache is unknown.
    Cache(Option<u32>),
}

/// The rule by which the rows are found.
pub(super) enum RowRule {
    Groups(Arc<TaskGroups>),
    Cpus,
    Caches(Topology),
}

/// The sums of a row.
#[derive(Clone, Debug, Default)]
pub(super) struct TableRowSums {
    pub(super) names: RowNames,
    pub(super) run_ns: u64,
    pub(super) queued: QueuedTimes,
    pub(super) latency: Lengths,
    pub(super) migrations: u64,
    pub(super) missed: u64,
    /// The number of the latest missed steal that was counted.
    missed_last: u64,
}

impl TableRowSums {
    fn join(&mut self, more: TableRowSums) {
        let TableRowSums { names, run_ns, queued, latency, migrations, missed, missed_last: _ } = more;
        self.names.join(names);
        self.run_ns = self.run_ns.saturating_add(run_ns);
        self.queued.add(&queued);
        self.latency.merge(&latency);
        self.migrations += migrations;
        self.missed += missed;
    }
}

type SummedRows = BoundedRows<RowOf, TableRowSums>;

/// The row of all that have none of their own.
const REST: RowOf = RowOf::Group(TaskGroup::Rest);

/// The analyses that sums come from. Each kind has rows of its own, to which sums come in the order of the trace: which tasks have
/// rows where there are too many does not depend on the threads.
#[derive(Clone, Copy, Debug)]
enum ReadBy {
    /// The analyses that follow pieces of the pass side by side, and list what they found in order.
    Pieces,
    /// The analyses that follow the pass as a whole, beside the pieces.
    Whole,
}

/// The rows of a table while a pass goes on.
pub(super) struct TableSums {
    rule: RowRule,
    rows: [Mutex<SummedRows>; 2],
}

impl TableSums {
    pub(super) fn new(rule: RowRule) -> TableSums {
        TableSums { rule, rows: Default::default() }
    }

    /// A panic in another thread ends the pass.
    fn rows(&self, reader: ReadBy) -> MutexGuard<'_, SummedRows> {
        self.rows[reader as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins anew, as a pass does whose start turned out to be wrong.
    pub(super) fn begin(&self) {
        [ReadBy::Pieces, ReadBy::Whole].into_iter().for_each(|reader| *self.rows(reader) = SummedRows::default());
    }

    fn key(&self, task: GroupedTask, cpu: Cpu, at: Ts) -> RowOf {
        match &self.rule {
            RowRule::Groups(groups) => RowOf::Group(groups.group(task, at)),
            RowRule::Cpus => RowOf::Cpu(cpu),
            RowRule::Caches(topology) => RowOf::Cache(topology.group(cpu, CpuOrder::Llc)),
        }
    }

    fn add(&self, reader: ReadBy, key: RowOf, task: Option<GroupedTask>, add: impl FnOnce(&mut TableRowSums)) {
        let mut rows = self.rows(reader);
        let row = rows.of(key, REST);
        task.into_iter().for_each(|task| row.names.call(task.comm));
        add(row);
    }

    /// A task ran on a CPU.
    fn run(&self, task: &GroupedTask, cpu: Cpu, from: Ts, to: Ts) {
        let add = |key, from: Ts, to: Ts| {
            self.add(ReadBy::Whole, key, Some(*task), |row| row.run_ns = row.run_ns.saturating_add(to.since(from).0));
        };
        match &self.rule {
            RowRule::Groups(groups) => {
                groups.divide(task, from, to, |group, from, to| add(RowOf::Group(group), from, to));
            }
            _ if from < to => add(self.key(*task, cpu, from), from, to),
            _ => {}
        }
    }

    /// A part of a wait ended, which belongs to the group of its task then.
    pub(super) fn queued(&self, task: GroupedTask, cpu: Cpu, at: Ts, times: &QueuedTimes) {
        self.add(ReadBy::Whole, self.key(task, cpu, at), Some(task), |row| row.queued.add(times));
    }

    /// A woken task ran on a CPU after this time.
    pub(super) fn woken(&self, task: GroupedTask, cpu: Cpu, at: Ts, latency: sched::Dur) {
        self.add(ReadBy::Pieces, self.key(task, cpu, at), Some(task), |row| row.latency.add(latency));
    }

    /// A CPU missed a steal, where rows are CPUs or caches.
    pub(super) fn missed_by(&self, cpu: Cpu) {
        let key = match &self.rule {
            RowRule::Groups(_) => return,
            RowRule::Cpus => RowOf::Cpu(cpu),
            RowRule::Caches(topology) => RowOf::Cache(topology.group(cpu, CpuOrder::Llc)),
        };
        self.add(ReadBy::Pieces, key, None, |row| row.missed += 1);
    }

    /// The rows. Those of commands whose names have letters alone in the place of a random part join the others.
    pub(super) fn into_rows(self) -> Vec<(RowOf, TableRowSums)> {
        let [pieces, whole] =
            self.rows.map(|rows| rows.into_inner().unwrap_or_else(PoisonError::into_inner).into_rows());
        let rows = together(pieces, whole);
        if !matches!(self.rule, RowRule::Groups(_)) {
            return rows;
        }
        let groups = rows.into_iter().filter_map(|(key, row)| match key {
            RowOf::Group(group) => Some((group, row)),
            _ => None,
        });
        let joined = join_random(groups.collect(), TableRowSums::join);
        joined.into_iter().map(|(group, row)| (RowOf::Group(group), row)).collect()
    }
}

/// The rows of both kinds of analyses together. A row that one of them has and the other could have in that of the rest is of the rest: it
/// would lack a part of its sums. The latest name is that of the whole pass, which has the end of each run.
fn together(pieces: Vec<(RowOf, TableRowSums)>, whole: Vec<(RowOf, TableRowSums)>) -> Vec<(RowOf, TableRowSums)> {
    let known = |rows: &[(RowOf, TableRowSums)]| -> SeededSet<RowOf> { rows.iter().map(|(key, _)| *key).collect() };
    let (of_pieces, of_whole) = (known(&pieces), known(&whole));
    let mut all = SummedRows::default();
    for (rows, others) in [(pieces, of_whole), (whole, of_pieces)] {
        for (key, row) in rows {
            let is_split = others.contains(&REST) && !others.contains(&key);
            all.of(if is_split { REST } else { key }, REST).join(row);
        }
    }
    all.into_rows()
}

/// The maximum number of waiting tasks that are looked at for missed steals: some seconds.
const LOOKS: u64 = 100_000_000;

/// The analysis of the runs and migrations of tasks, and of the missed steals of those that waited.
pub(super) struct RunsAndMoves<'o> {
    sums: &'o TableSums,
    /// Whether a task counts.
    counts: &'o (dyn Fn(Pid) -> bool + Sync),
    affinity: Option<&'o Affinity>,
    /// The waiting tasks that are bound to their CPU count in missed steals.
    with_bound: bool,
    /// The task that each CPU runs, since an instant.
    now: Vec<(Option<GroupedTask>, Ts)>,
    moved: u64,
    looks: u64,
    missed: u64,
}

/// The sums of all rows together.
#[derive(Clone, Copy, Debug)]
pub(super) struct AllMoves {
    pub(super) migrations: u64,
    /// Whether so many tasks waited that the missed steals of rows are unknown.
    pub(super) has_too_many: bool,
}

impl<'o> RunsAndMoves<'o> {
    pub(super) fn new(
        sums: &'o TableSums,
        counts: &'o (dyn Fn(Pid) -> bool + Sync),
        affinity: Option<&'o Affinity>,
        with_bound: bool,
    ) -> RunsAndMoves<'o> {
        sums.begin();
        RunsAndMoves { sums, counts, affinity, with_bound, now: Vec::new(), moved: 0, looks: 0, missed: 0 }
    }

    fn counted(&self, cpu: Cpu, state: &SchedState) -> Option<GroupedTask> {
        state.running(cpu).map(GroupedTask::from).filter(|task| (self.counts)(task.pid))
    }

    /// Looks at the task of a CPU anew.
    fn look(&mut self, cpu: Cpu, ts: Ts, state: &SchedState) {
        let task = self.counted(cpu, state);
        if cpu.index() >= self.now.len() {
            self.now.resize(cpu.index() + 1, (None, ts));
        }
        let (before, since) = self.now[cpu.index()];
        if before != task {
            // Behind a loss the end of the run shows the name of its task.
            let before = before.map(|before| match state.task_of(before.pid).filter(|_| before.comm.is_empty()) {
                Some(task) => GroupedTask { prio: before.prio, ..task.into() },
                None => before,
            });
            before.iter().for_each(|before| self.sums.run(before, cpu, since, ts));
            self.now[cpu.index()] = (task, ts);
        }
    }

    /// A CPU goes idle: counts the groups of which a task waits elsewhere that it could have run.
    fn idles(&mut self, idle: Cpu, ts: Ts, state: &SchedState) {
        let RowRule::Groups(groups) = &self.sums.rule else { return };
        if state.counts().overloaded_cpus() == 0 || self.looks > LOOKS {
            return;
        }
        self.missed += 1;
        let waiting = state.observed().filter(|cpu| state.load(*cpu).is_overloaded());
        for (cpu, task) in waiting.flat_map(|cpu| state.waiting(cpu).map(move |task| (cpu, task))) {
            self.looks += 1;
            let is_movable = self.with_bound || !is_bound(task.comm, cpu);
            let may_use = || {
                let set = self.affinity.and_then(|affinity| affinity.set(affinity.of(task, cpu, state)?, state));
                set.is_none_or(|set| set.has(idle))
            };
            if is_movable && (self.counts)(task.pid) && may_use() {
                let (task, number) = (GroupedTask::from(task), self.missed);
                self.sums.add(ReadBy::Whole, RowOf::Group(groups.group(task, ts)), Some(task), |row| {
                    row.missed += u64::from(row.missed_last != number);
                    row.missed_last = number;
                });
            }
        }
    }
}

impl Analysis for RunsAndMoves<'_> {
    type Output = AllMoves;
    const COUNTS: bool = true;
    const MIGRATIONS: bool = true;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        let cpus: Vec<Cpu> = state.observed().collect();
        for cpu in cpus {
            let task = self.counted(cpu, state);
            self.now.resize(self.now.len().max(cpu.index() + 1), (None, start));
            self.now[cpu.index()] = (task, start);
        }
    }

    fn migrated(&mut self, migration: &Migration, settled: Settled, state: &SchedState) {
        let Migration { pid, command: comm, dest, ts, .. } = *migration;
        if settled.is_inside() && (self.counts)(pid) {
            self.moved += 1;
            let of_kernel = |task: &sched::Task| task.kin.is_of_kernel(comm);
            let is_kernel = state.task_of(pid).map_or_else(|| is_kernel_thread(comm), of_kernel);
            let task = GroupedTask { pid, comm, prio: None, is_kernel };
            self.sums.add(ReadBy::Whole, self.sums.key(task, dest, ts), Some(task), |row| row.migrations += 1);
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        let mut begins = false;
        for span in state.cpu_spans() {
            self.look(span.cpu, event.ts, state);
            begins |= span.cpu == event.cpu;
        }
        self.look(event.cpu, event.ts, state);
        // As `why` counts switches to idle.
        if begins
            && matches!(event.kind, EventKind::Switch { .. })
            && state.current(event.cpu) == Current::Idle
            && state.load(event.cpu) == Load::Idle
        {
            self.idles(event.cpu, event.ts, state);
        }
    }

    fn finish(self, end: Ts, _: &SchedState) -> AllMoves {
        for (cpu, (task, since)) in (0..).map(Cpu).zip(&self.now) {
            task.iter().for_each(|task| self.sums.run(task, cpu, *since, end));
        }
        AllMoves { migrations: self.moved, has_too_many: self.looks > LOOKS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::Comm;

    fn rows(of: &[(i32, u64)], more: Option<u64>) -> Vec<(RowOf, TableRowSums)> {
        let row = |key, run_ns| (key, TableRowSums { run_ns, ..TableRowSums::default() });
        let tasks = of.iter().map(|(pid, ns)| row(RowOf::Group(TaskGroup::Task(Pid(*pid))), *ns));
        tasks.chain(more.map(|ns| row(REST, ns))).collect()
    }

    #[test]
    fn no_row_lacks_what_the_rest_has() {
        let sums = |pieces, whole| {
            let found = together(pieces, whole).into_iter();
            let mut sums: Vec<(i32, u64)> = found
                .map(|(key, row)| match key {
                    RowOf::Group(TaskGroup::Task(pid)) => (pid.0, row.run_ns),
                    _ => (0, row.run_ns),
                })
                .collect();
            sums.sort_unstable();
            sums
        };
        assert_eq!(sums(rows(&[(1, 1), (3, 3)], None), rows(&[(1, 10), (2, 20)], None)), [(1, 11), (2, 20), (3, 3)]);
        // Those of 2 and 4 can have sums in the other's row of the rest.
        assert_eq!(
            sums(rows(&[(1, 1), (4, 4)], Some(100)), rows(&[(1, 10), (2, 20)], Some(1000))),
            [(0, 1124), (1, 11)]
        );
        assert_eq!(sums(rows(&[(1, 1)], None), rows(&[(1, 10), (2, 20)], Some(1000))), [(0, 1000), (1, 11), (2, 20)]);
    }

    #[test]
    fn the_latest_name_is_that_of_the_whole_pass() {
        let key = RowOf::Group(TaskGroup::Task(Pid(1)));
        let called = |name: &[u8]| {
            let mut row = TableRowSums::default();
            row.names.call(Comm::new(name));
            vec![(key, row)]
        };
        let mut expected = RowNames::default();
        [b"before", &b"after"[..]].into_iter().for_each(|name| expected.call(Comm::new(name)));
        let found = together(called(b"before"), called(b"after"));
        assert_eq!((found.len(), found[0].1.names), (1, expected));
    }
}
