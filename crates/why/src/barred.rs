//! Tasks that waited beside idle CPUs that they may not use, where the CPUs of tasks are known (`docs/questions/why.md#barred`).

use sched::limits::PIDS;
use sched::topology::format_cpu_list;
use sched::{
    Affinity, Analysis, Comm, Cpu, CpuSet, Dur, Joined, Load, Pid, SchedEvent, SchedState, Task, TaskId, TaskState, Ts,
};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use workcons::Options;

/// The maximum number of tasks that are listed.
const MOST: usize = 16;

/// The waiting of a task beside idle CPUs that it may not use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BarredRow {
    /// The PID of the task.
    pub pid: Pid,
    /// The command name of the task.
    pub command: Comm,
    /// The CPUs that the task may use, such as `1` or `0-5`.
    pub cpus: String,
    /// The time for which the task waited so, in nanoseconds.
    pub ns: Dur,
}

/// A task and the number of the set of CPUs that it may use.
type Key = (Pid, usize);

/// A restricted task that waits.
#[derive(Clone, Debug)]
struct Restricted {
    task: TaskId,
    cpu: Cpu,
    key: Key,
}

/// The restricted tasks that wait where a later piece of a pass begins, and the instant of that.
type Head = (Ts, Vec<(TaskId, Cpu, String)>);

/// The analysis of tasks that waited beside idle CPUs that they may not use.
pub struct BarredTasks<'o> {
    options: &'o Options<'o>,
    affinity: &'o Affinity,
    waiting: Vec<Restricted>,
    /// The sets of CPUs that tasks may use, with their names, and their numbers by those.
    sets: Vec<CpuSet>,
    numbers: BTreeMap<String, usize>,
    since: Ts,
    /// The tasks that wait so since then.
    now: Vec<Key>,
    sums: BTreeMap<Key, u64>,
    names: BTreeMap<Pid, Comm>,
    head: Option<Head>,
}

impl<'o> BarredTasks<'o> {
    /// Returns the analysis; nothing where no task is known to be restricted.
    pub fn new(options: &'o Options<'o>) -> Option<BarredTasks<'o>> {
        let affinity = options.affinity.filter(|affinity| affinity.restricts())?;
        Some(BarredTasks {
            options,
            affinity,
            waiting: Vec::new(),
            sets: Vec::new(),
            numbers: BTreeMap::new(),
            since: Ts(0),
            now: Vec::new(),
            sums: BTreeMap::new(),
            names: BTreeMap::new(),
            head: None,
        })
    }

    /// Accounts for the time until `ts`.
    fn pass(&mut self, ts: Ts) {
        let ns = ts.since(self.since).0;
        self.since = self.since.max(ts);
        for key in self.now.iter().filter(|_| ns > 0) {
            if self.sums.len() < PIDS || self.sums.contains_key(key) {
                let sum = self.sums.entry(*key).or_default();
                *sum = sum.saturating_add(ns);
            }
        }
    }

    /// Notes a task that begins to wait on a CPU, if it is known to be restricted.
    fn join_queue(&mut self, task: &Task, cpu: Cpu, state: &SchedState) {
        if task.kin.is_of_kernel(task.comm) {
            return;
        }
        let Some(id) = self.affinity.of(task, cpu, state) else { return };
        let Some(set) = self.affinity.set(id, state) else { return };
        let number = self.number(format_cpu_list(&set.cpus().collect::<Vec<_>>()), set);
        let key = (task.pid, number);
        if self.names.len() < PIDS || self.names.contains_key(&task.pid) {
            self.names.insert(task.pid, task.comm);
        }
        self.waiting.push(Restricted { task: task.id(), cpu, key });
    }

    /// The number of a set with this name, which is stored if it is new.
    fn number(&mut self, name: String, set: &CpuSet) -> usize {
        let sets = &mut self.sets;
        *self.numbers.entry(name).or_insert_with(|| {
            sets.push(set.clone());
            sets.len() - 1
        })
    }

    /// Takes over which of the waiting tasks wait beside idle CPUs, and may use none of them.
    fn look(&mut self, state: &SchedState) {
        self.now.clear();
        if self.waiting.is_empty() || state.counts().idle_cpus() == 0 {
            return;
        }
        let load = |cpu: Cpu| self.options.load(cpu, state);
        let idle: Vec<Cpu> = state.observed().filter(|cpu| load(*cpu) == Load::Idle).collect();
        for waiting in self.waiting.iter().filter(|_| !idle.is_empty()) {
            let allowed = &self.sets[waiting.key.1];
            if load(waiting.cpu).runs() && !idle.iter().any(|cpu| allowed.has(*cpu)) {
                self.now.push(waiting.key);
            }
        }
    }

    /// The name of the set with this number.
    fn name(&self, number: usize) -> String {
        format_cpu_list(&self.sets[number].cpus().collect::<Vec<_>>())
    }

    fn take_all(&mut self, state: &SchedState) {
        let queues = state.observed().chain(state.unobserved_queues());
        queues
            .flat_map(|cpu| state.waiting(cpu).map(move |task| (cpu, task)))
            .for_each(|(cpu, task)| self.join_queue(task, cpu, state));
    }

    /// The restricted tasks that wait, in an order of their own.
    fn present(&self) -> Vec<(TaskId, Cpu, String)> {
        let mut all: Vec<_> = self.waiting.iter().map(|of| (of.task, of.cpu, self.name(of.key.1))).collect();
        all.sort_by_key(|(task, ..)| task.index());
        all
    }
}

impl Analysis for BarredTasks<'_> {
    type Output = Vec<BarredRow>;
    const COUNTS: bool = true;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.since = start;
        self.take_all(state);
        self.look(state);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        if state.touched().is_empty() && state.spans().is_empty() {
            return;
        }
        self.pass(event.ts);
        for (task, span) in state.turns() {
            if let TaskState::Waiting(_) = span.state {
                self.waiting.retain(|waiting| waiting.task != span.task);
            }
            if let TaskState::Waiting(cpu) = span.next {
                self.join_queue(task, cpu, state);
            }
        }
        self.look(state);
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> Vec<BarredRow> {
        self.pass(end);
        let name = |pid: &Pid| self.names.get(pid).copied().unwrap_or_default();
        let row = |((pid, cpus), ns): (&Key, &u64)| BarredRow {
            pid: *pid,
            command: name(pid),
            cpus: self.name(*cpus),
            ns: Dur(*ns),
        };
        let mut rows: Vec<BarredRow> = self.sums.iter().map(row).collect();
        rows.sort_by(|a, b| Reverse(a.ns).cmp(&Reverse(b.ns)).then_with(|| (a.pid, &a.cpus).cmp(&(b.pid, &b.cpus))));
        rows.truncate(MOST);
        rows
    }
}

impl Joined for BarredTasks<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, at: Ts, state: &SchedState) {
        self.begin(at, state);
        self.head = Some((at, self.present()));
    }

    fn fits(&self, later: &Self) -> bool {
        // What a task may use is decided as its wait begins; and which tasks have no room depends on their order.
        later.head.as_ref().is_some_and(|(_, waiting)| *waiting == self.present())
            && self.sums.len() + later.sums.len() <= PIDS
            && self.names.len() + later.names.len() <= PIDS
    }

    fn join(&mut self, later: Self) {
        let Some((at, _)) = later.head else { return };
        self.pass(at);
        let renumbered: Vec<usize> =
            later.sets.iter().enumerate().map(|(at, set)| self.number(later.name(at), set)).collect();
        let key = |(pid, number): Key| (pid, renumbered[number]);
        for (of, ns) in later.sums {
            let sum = self.sums.entry(key(of)).or_default();
            *sum = sum.saturating_add(ns);
        }
        self.waiting =
            later.waiting.iter().map(|waiting| Restricted { key: key(waiting.key), ..waiting.clone() }).collect();
        self.now = later.now.into_iter().map(key).collect();
        self.since = later.since;
        self.names.extend(later.names);
    }
}

/// The title of the tables.
const TITLE: &str = "waited beside idle CPUs it may not use";

/// The rows with the longest times for people; empty where there are none.
pub(crate) fn text(rows: Option<&[BarredRow]>, most: usize) -> String {
    let rows = rows.unwrap_or_default();
    let mut out = String::new();
    for (nth, row) in rows.iter().take(most).enumerate() {
        // Writing to a string cannot fail.
        if nth == 0 {
            let _ = writeln!(out, "\n{TITLE:<42}  {:>12}", "time");
        }
        let name = format!("{} (may use {})", row.pid.named(row.command), row.cpus);
        let _ = match name.chars().count() {
            0..=40 => writeln!(out, "  {name:<40}  {:>10.4} s", row.ns.seconds()),
            _ => writeln!(out, "  {name}\n  {:<40}  {:>10.4} s", "", row.ns.seconds()),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{BarredRow, BarredTasks, text};
    use sched::{Affinity, Cpu, CpuSet, Dur, Pass, Pid, Ts, Window};
    use workcons::Options;

    fn only(cpus: &[u32]) -> CpuSet {
        cpus.iter().map(|cpu| Cpu(*cpu)).collect()
    }

    #[test]
    fn a_task_that_waits_beside_an_idle_cpu_which_it_may_not_use_is_listed() {
        // Task 8 waits on CPU 0 for 200 ns while CPU 1 idles.
        let events = testkit::a_wait_beside_an_idle_cpu();
        let rows = |cpus: &[u32], window: Window| {
            let mut affinity = Affinity::new([Cpu(0), Cpu(1)]);
            affinity.add_first(Pid(8), &only(cpus));
            let options = Options { affinity: Some(&affinity), ..Options::default() };
            let pass = Pass::over(events.as_slice()).window(window).run(|| BarredTasks::new(&options));
            pass.unwrap_or_else(|never| match never {}).output
        };
        let row = |rows: Option<Vec<BarredRow>>| {
            let rows = rows.expect("a restricted task");
            let [row] = rows.as_slice() else { panic!("one row: {rows:?}") };
            (row.pid, row.cpus.clone(), row.ns)
        };
        assert_eq!(row(rows(&[0], Window::default())), (Pid(8), "0".to_owned(), Dur(200)));
        // Every CPU: no task is restricted.
        assert_eq!(rows(&[0, 1], Window::default()), None);
        // The parts of adjacent windows add up.
        let edge = Ts(350);
        let parts = [Window { from: None, to: Some(edge) }, Window { from: Some(edge), to: None }];
        let sum: u64 =
            parts.map(|part| rows(&[0], part).unwrap_or_default().iter().map(|row| row.ns.0).sum::<u64>()).iter().sum();
        assert_eq!(sum, 200);
    }

    #[test]
    fn the_rows_are_the_same_in_pieces() {
        let mut tally = testkit::PieceTally::default();
        let mut found = 0;
        for seed in 0..8 {
            let simulation = testkit::Simulation::balanced(seed, 4, 400);
            let (lossy, _) = simulation.lossy(seed);
            let mut affinity = Affinity::new((0..4).map(Cpu));
            for (nth, pid) in (0..).zip(simulation.witnessed().0) {
                affinity.add(Pid(pid), &[only(&[0, 2]), only(&[nth % 4]), only(&[0, 1, 2, 3])][nth as usize % 3]);
            }
            for events in [&simulation.events, &lossy] {
                let options = Options { affinity: Some(&affinity), ..Options::default() };
                let inner = Window { from: Some(events[events.len() / 3].ts), to: None };
                for window in [Window::default(), inner] {
                    let show = |rows: &Option<Vec<BarredRow>>| format!("{rows:?}");
                    let analysis = || BarredTasks::new(&options);
                    tally += testkit::in_pieces(&mut events.as_slice(), window, &[1, 7, 61], analysis, show);
                    let pass = Pass::over(events.as_slice()).window(window).run(analysis);
                    found += pass.unwrap_or_else(|never| match never {}).output.unwrap_or_default().len();
                }
            }
        }
        assert!(tally.joined * 10 > tally.pieces * 8 && found > 0, "{tally:?} {found}");
    }

    #[test]
    fn long_names_have_lines_of_their_own() {
        let row = |cpus: &str| BarredRow {
            pid: Pid(7),
            command: sched::Comm::new(b"work"),
            cpus: cpus.to_owned(),
            ns: Dur(1_500_000_000),
        };
        let rows = [row("1"), row("0,2,4,6,8,10,12,14,16,18,20,22,24")];
        let lines = text(Some(&rows), 3);
        assert!(lines.lines().all(|line| line.chars().count() <= 80), "{lines}");
        assert_eq!(lines.matches("1.5000 s").count(), 2);
        assert_eq!(text(Some(&rows), 1).matches("1.5000 s").count(), 1);
        assert_eq!((text(None, 3), text(Some(&[]), 3)), (String::new(), String::new()));
    }
}
