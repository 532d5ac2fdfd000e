//! The time of the CPUs by the tasks that they ran: by task, command, process, cgroup or scheduling parameters.

use membership::{GroupedTask, RowNames, TaskGroup, TaskGroups, TaskRow, TasksBy, join_random};
use sched::limits::BoundedRows;
use sched::{Analysis, Cpu, Joined, SchedEvent, SchedState, Ts};
use serde::Serialize;
use std::cmp::Reverse;
use timeline::Rows;

/// The time that the tasks of a group ran, without the handlers of interrupts where those were recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupTime {
    /// The tasks of the row.
    #[serde(flatten)]
    pub of: TaskRow,
    /// The time that the tasks ran on the CPUs shown, in nanoseconds.
    pub run_ns: u64,
    /// The time in percent of that of the CPUs shown.
    pub cpu_percent: f64,
    /// The time in percent of that of all tasks.
    pub tasks_percent: f64,
}

/// The time of the CPUs by groups of tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimesByGroup {
    /// The rule by which tasks form groups.
    pub by: TasksBy,
    /// The groups, the one that ran longest first. Their times sum to those of the classes of tasks and of `idle_inject/N`.
    pub rows: Vec<GroupTime>,
}

/// The sums of a group.
#[derive(Clone, Debug, Default)]
struct GroupSums {
    run_ns: u64,
    names: RowNames,
}

/// The occupant of a CPU, if it is a task that no interrupt handler interrupts, since an instant.
type Occupied = (Option<GroupedTask>, Ts);

/// The analysis of the time of the CPUs by groups of tasks.
pub struct GroupTimes<'o> {
    groups: &'o TaskGroups,
    /// The CPUs shown, and the place of each.
    shown: Vec<Cpu>,
    places: Rows,
    now: Vec<Occupied>,
    sums: BoundedRows<TaskGroup, GroupSums>,
    /// The instant at which the piece begins, and the occupants then, if this follows a later piece of a pass.
    resumed: Option<(Ts, Vec<Occupied>)>,
}

impl<'o> GroupTimes<'o> {
    /// Returns the analysis of the CPUs shown.
    pub fn new(groups: &'o TaskGroups, cpus: &[(Cpu, Option<u32>)]) -> GroupTimes<'o> {
        GroupTimes {
            groups,
            shown: cpus.iter().map(|(cpu, _)| *cpu).collect(),
            places: Rows::new(cpus),
            now: Vec::new(),
            sums: BoundedRows::default(),
            resumed: None,
        }
    }

    /// Accounts for the time of a CPU, by its place, up to `ts`.
    fn settle(&mut self, place: usize, ts: Ts) {
        let GroupTimes { groups, now, sums, .. } = self;
        let (occupant, since) = now[place];
        now[place].1 = since.max(ts);
        if let Some(task) = occupant {
            groups.divide(&task, since, ts, |group, from, to| {
                let sums = sums.of(group, TaskGroup::Rest);
                sums.run_ns = sums.run_ns.saturating_add(to.since(from).0);
                sums.names.call(task.comm);
            });
        }
    }

    /// Looks at the occupant of a CPU anew.
    fn look(&mut self, cpu: Cpu, ts: Ts, state: &SchedState) {
        let Some(place) = self.places.of(cpu) else { return };
        let occupant = occupant(cpu, state);
        if self.now[place].0 != occupant {
            self.settle(place, ts);
            self.now[place].0 = occupant;
        }
    }
}

/// The task that a CPU runs, if it handles no interrupt.
fn occupant(cpu: Cpu, state: &SchedState) -> Option<GroupedTask> {
    let task = state.running(cpu).filter(|_| state.handlers(cpu) == 0)?;
    Some(task.into())
}

impl Analysis for GroupTimes<'_> {
    type Output = TimesByGroup;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.now = self.shown.iter().map(|cpu| (occupant(*cpu, state), start)).collect();
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        state.cpu_spans().iter().for_each(|span| self.look(span.cpu, event.ts, state));
        self.look(event.cpu, event.ts, state);
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> TimesByGroup {
        (0..self.now.len()).for_each(|place| self.settle(place, end));
        let by = self.groups.by();
        let mut rows = self.sums.into_rows();
        if by == TasksBy::Command {
            rows = join_random(rows, |sums: &mut GroupSums, more| {
                sums.run_ns = sums.run_ns.saturating_add(more.run_ns);
                sums.names.join(more.names);
            });
        }
        let total = rows.iter().fold(0, |sum: u64, (_, row)| sum.saturating_add(row.run_ns));
        let row = |(group, sums): (TaskGroup, GroupSums)| GroupTime {
            of: self.groups.row(group, sums.names),
            run_ns: sums.run_ns,
            cpu_percent: 0.0,
            tasks_percent: 100.0 * sums.run_ns as f64 / (total as f64).max(1.0),
        };
        let mut rows: Vec<GroupTime> = rows.into_iter().map(row).collect();
        rows.sort_by(|a, b| Reverse(a.run_ns).cmp(&Reverse(b.run_ns)).then_with(|| a.of.cmp(&b.of)));
        TimesByGroup { by, rows }
    }
}

impl TimesByGroup {
    /// Gives each group its share in the time of the CPUs shown, `cpu_time` nanoseconds.
    #[must_use]
    pub(crate) fn of_cpu_time(mut self, cpu_time: u64) -> TimesByGroup {
        for row in &mut self.rows {
            row.cpu_percent = 100.0 * row.run_ns as f64 / (cpu_time as f64).max(1.0);
        }
        self
    }
}

impl Joined for GroupTimes<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, at: Ts, state: &SchedState) {
        self.begin(at, state);
        self.resumed = Some((at, self.now.clone()));
    }

    fn fits(&self, later: &Self) -> bool {
        // A task can turn out to be of the kernel while it runs, which the state at an instant does not show.
        let same = |(now, then): (&Occupied, &Occupied)| now.0 == then.0;
        let rows = self.sums.len() + later.sums.len();
        rows < sched::limits::ROWS
            && later.resumed.as_ref().is_some_and(|(_, then)| self.now.iter().zip(then).all(same))
    }

    fn join(&mut self, later: Self) {
        let Some((at, _)) = later.resumed else { return };
        (0..self.now.len()).for_each(|place| self.settle(place, at));
        for (group, more) in later.sums.into_rows() {
            let sums = self.sums.of(group, TaskGroup::Rest);
            sums.run_ns = sums.run_ns.saturating_add(more.run_ns);
            sums.names.join(more.names);
        }
        self.now = later.now;
    }
}
