//! Underload: the CPUs in use over an interval beyond the largest number of tasks that were runnable at once; and wakeups by the time for which
//! their CPU had idled.

mod idle_wakeups;
mod joined;
mod noted;
#[cfg(test)]
mod tests;

pub use idle_wakeups::{IdleStateRow, IdleWakeups, WarmthRow};
pub use noted::IdleStatesNotes;

use crate::Options;
use idle_wakeups::IdleWakeupSums;
use sched::kthread::is_idle_injector;
use sched::{Analysis, ChosenCpus, Cpu, Current, Dur, Past, SchedEvent, SchedState, SubsetCounts, Ts};
use serde::Serialize;
use timeline::{Division, Rows};

/// The length of an interval where nothing else is asked for: a tick of 250 Hz.
pub const TICK: Dur = Dur(4_000_000);

/// Columns of the figure.
const COLUMNS: usize = 400;

/// The occupant of a CPU, as far as underload distinguishes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Occupant {
    /// A task that counts as runnable.
    Task,
    /// A task that keeps the CPU idle.
    Injector,
    /// The idle task, or none.
    Rest,
    #[default]
    Unknown,
}

/// A CPU shown.
#[derive(Clone, Copy, Debug, Default)]
struct CpuUse {
    occupant: Occupant,
    /// The instant since which the CPU runs tasks.
    since: Ts,
    /// One more than the number of the last interval in which the CPU is known to be used.
    used_in: u64,
}

/// The present interval, of which whole intervals without any change need no record: their underload is 0.
#[derive(Clone, Debug, Default)]
struct Present {
    /// One more than the number of the interval since the trace's start.
    number: u64,
    start: Ts,
    end: Ts,
    /// The number of CPUs that `used_in` marks as used.
    used: u32,
    /// The number of these that run a task now.
    used_running: u32,
    /// The largest number of tasks that were runnable at once, for some time.
    most: u32,
    /// Whether a CPU was unknown for some time.
    is_doubtful: bool,
}

/// The part of an interval that one piece of a pass has seen.
#[derive(Clone, Debug, Default)]
struct Part {
    used: Vec<bool>,
    most: u32,
    is_doubtful: bool,
}

/// The beginning of a later piece of a pass.
#[derive(Clone, Debug)]
struct PieceHead {
    at: Ts,
    occupants: Vec<Occupant>,
    /// The interval in which the piece begins, once it has ended.
    first: Option<Part>,
}

/// The sums over the intervals that have ended.
#[derive(Clone, Debug, Default)]
struct UnderloadSums {
    intervals: u64,
    underloaded: u64,
    doubtful: u64,
    cpus: u64,
    max: u32,
    /// The underload by column of the figure, times nanoseconds.
    columns: Vec<u128>,
}

/// The analysis of underload: an [`Analysis`] whose output is an [`UnderloadReport`].
#[derive(Debug)]
pub struct Underload<'o> {
    options: &'o Options,
    interval: Dur,
    rows: Rows,
    cpus: Vec<CpuUse>,
    /// The numbers of the CPUs shown that run a task, keep themselves idle, and are unknown.
    running: u32,
    injecting: u32,
    unknown: u32,
    /// The number of runnable tasks since `last`.
    runnable: u32,
    last: Ts,
    present: Present,
    sums: UnderloadSums,
    columns: Division,
    part: Option<SubsetCounts>,
    wakeups: IdleWakeupSums,
    head: Option<Box<PieceHead>>,
}

/// The underload of a window, and its wakeups by the time for which their CPU had idled.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnderloadReport {
    /// The length of an interval in nanoseconds.
    pub interval_ns: Dur,
    /// The number of intervals, those that the window cuts among them.
    pub intervals: u64,
    /// The number of further intervals that are left out, since a CPU was unknown for a part of them.
    pub unknown_intervals: u64,
    /// The number of intervals with an underload above 0; null where tasks were throttled and no event shows which.
    pub underloaded_intervals: Option<u64>,
    /// The sum of the underload of all intervals: CPUs used beyond the largest number of tasks runnable at once; null likewise.
    pub underload: Option<u64>,
    /// The sum of the underload divided by the length of the window, per second; null likewise.
    pub underload_per_second: Option<f64>,
    /// The largest underload of an interval, in CPUs; null likewise.
    pub max_underload: Option<u32>,
    /// The wakeups and new tasks, by the time for which their CPU had idled; absent where `sched_wakeup` was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wakeups: Option<IdleWakeups>,
    /// Whether wakeups were recorded: without them the underload, of which the runnable tasks are a part, is unknown.
    #[serde(skip)]
    pub(crate) shows_wakeups: bool,
    /// The mean underload in each of the figure's columns.
    #[serde(skip)]
    pub(crate) columns: Vec<f64>,
}

impl UnderloadReport {
    /// The report where it is known. `hides_throttling`: tasks were throttled, and count as runnable.
    pub(crate) fn known(self, hides_throttling: bool) -> Option<UnderloadReport> {
        let report = Some(self).filter(|report| report.shows_wakeups)?;
        if !hides_throttling {
            return Some(report);
        }
        let (underloaded_intervals, underload, underload_per_second, max_underload) = (None, None, None, None);
        let columns = Vec::new();
        Some(UnderloadReport {
            underloaded_intervals,
            underload,
            underload_per_second,
            max_underload,
            columns,
            ..report
        })
    }
}

impl<'o> Underload<'o> {
    /// Returns the analysis of the CPUs shown, with intervals of a length that count from the trace's start. `has_idle_states`: whether the
    /// trace has `power:cpu_idle`.
    pub fn new(options: &'o Options, interval: Dur, has_idle_states: bool) -> Underload<'o> {
        let columns = Division::into_parts(options.from, options.to, COLUMNS);
        let sums = UnderloadSums { columns: vec![0; columns.count()], ..UnderloadSums::default() };
        Underload {
            options,
            interval,
            rows: Rows::new(&options.cpus),
            cpus: vec![CpuUse::default(); options.cpus.len()],
            running: 0,
            injecting: 0,
            unknown: 0,
            runnable: 0,
            last: options.from,
            present: Present::default(),
            sums,
            columns,
            part: None,
            wakeups: IdleWakeupSums::new(has_idle_states),
            head: None,
        }
    }

    fn occupant(cpu: Cpu, state: &SchedState) -> Occupant {
        match state.current(cpu) {
            Current::Unknown => Occupant::Unknown,
            Current::Idle | Current::Offline => Occupant::Rest,
            Current::Task(_) if state.running(cpu).is_some_and(|task| is_idle_injector(task.comm, cpu)) => {
                Occupant::Injector
            }
            Current::Task(_) => Occupant::Task,
        }
    }

    /// Takes over the CPUs and the runnable tasks as they are at an instant.
    fn start(&mut self, at: Ts, state: &SchedState) {
        let is_part = state.observed().any(|cpu| self.rows.of(cpu).is_none());
        let shown = ChosenCpus::only(self.options.cpus.iter().map(|(cpu, _)| *cpu));
        self.part = is_part.then(|| SubsetCounts::of(&shown, state));
        self.last = at;
        let number = at.since(self.options.zero).0 / self.interval.0;
        let start = self.options.zero.after(Dur(number * self.interval.0));
        self.present = Present { number: number + 1, start, end: start.after(self.interval), ..Present::default() };
        (self.running, self.injecting, self.unknown) = (0, 0, 0);
        for (row, (cpu, _)) in self.options.cpus.iter().enumerate() {
            let occupant = Self::occupant(*cpu, state);
            self.cpus[row] = CpuUse { occupant, since: at, used_in: 0 };
            self.count(occupant, 1);
        }
        self.follow_runnable(state);
    }

    fn count(&mut self, occupant: Occupant, by: i32) {
        let number = match occupant {
            Occupant::Task => &mut self.running,
            Occupant::Injector => &mut self.injecting,
            Occupant::Unknown => &mut self.unknown,
            Occupant::Rest => return,
        };
        *number = number.wrapping_add_signed(by);
    }

    #[inline]
    fn follow_runnable(&mut self, state: &SchedState) {
        let counts = match &mut self.part {
            None => state.counts(),
            Some(part) => part.follow(state),
        };
        self.runnable = (counts.running() + counts.waiting).saturating_sub(self.injecting);
    }

    /// Accounts for the time until `ts`, in which nothing changed.
    #[inline]
    fn pass(&mut self, ts: Ts) {
        if ts <= self.last {
            return;
        }
        self.last = ts;
        self.present.most = self.present.most.max(self.runnable);
        self.present.is_doubtful |= self.unknown > 0;
        if ts >= self.present.end {
            self.next_interval(ts);
        }
    }

    /// Ends the present interval, and those without any change behind it; the one that has `ts` is the present one.
    #[cold]
    fn next_interval(&mut self, ts: Ts) {
        self.end_interval();
        let unchanged = ts.since(self.present.end).0 / self.interval.0;
        let counted = if self.unknown > 0 { &mut self.sums.doubtful } else { &mut self.sums.intervals };
        *counted += unchanged;
        let start = self.present.end.after(Dur(unchanged * self.interval.0));
        let mut next = Present {
            number: self.present.number + unchanged + 1,
            start,
            end: start.after(self.interval),
            ..Present::default()
        };
        if ts > start {
            (next.most, next.is_doubtful) = (self.runnable, self.unknown > 0);
        }
        self.present = next;
    }

    /// Adds the present interval to the sums; the first one of a later piece is left to the pieces before.
    fn end_interval(&mut self) {
        let until = self.present.end;
        if self.head.as_ref().is_some_and(|head| head.first.is_none()) {
            let part = self.present_part(until);
            if let Some(head) = &mut self.head {
                head.first = Some(part);
            }
            return;
        }
        let Present { used, used_running, most, is_doubtful, .. } = self.present;
        self.add_interval(used + self.running - used_running, most, is_doubtful);
    }

    /// Adds the present interval with its used CPUs to the sums.
    fn add_interval(&mut self, used: u32, most: u32, is_doubtful: bool) {
        if is_doubtful {
            self.sums.doubtful += 1;
            return;
        }
        self.sums.intervals += 1;
        let underload = used.saturating_sub(most);
        if underload == 0 {
            return;
        }
        self.sums.underloaded += 1;
        self.sums.cpus += u64::from(underload);
        self.sums.max = self.sums.max.max(underload);
        let (from, to) = (self.present.start.max(self.options.from), self.present.end.min(self.options.to));
        let sums = &mut self.sums.columns;
        self.columns.split(from, to, |column, start, end| {
            sums[column] += u128::from(underload) * u128::from(end.since(start).0);
        });
    }

    /// The CPUs that were used in the present interval before `until`, and the other facts about it.
    fn present_part(&self, until: Ts) -> Part {
        let Present { number, start, most, is_doubtful, .. } = self.present;
        let is_used =
            |cpu: &CpuUse| cpu.used_in == number || cpu.occupant == Occupant::Task && cpu.since.max(start) < until;
        Part { used: self.cpus.iter().map(is_used).collect(), most, is_doubtful }
    }

    /// Takes over the occupant of a CPU from `ts` on.
    fn turn(&mut self, cpu: Cpu, ts: Ts, state: &SchedState) {
        let Some(row) = self.rows.of(cpu) else { return };
        let (old, new) = (self.cpus[row].occupant, Self::occupant(cpu, state));
        if old == new {
            return;
        }
        self.count(old, -1);
        self.count(new, 1);
        let Present { number, start, .. } = self.present;
        let cpu = &mut self.cpus[row];
        let is_used = cpu.used_in == number;
        match (old, new) {
            (Occupant::Task, _) if is_used => self.present.used_running -= 1,
            (Occupant::Task, _) if cpu.since.max(start) < ts => {
                cpu.used_in = number;
                self.present.used += 1;
            }
            (_, Occupant::Task) => {
                cpu.since = ts;
                self.present.used_running += u32::from(is_used);
            }
            _ => {}
        }
        cpu.occupant = new;
    }
}

impl Analysis for Underload<'_> {
    type Output = UnderloadReport;
    const COUNTS: bool = true;

    fn looks_back(&self) -> bool {
        self.wakeups.follows_states()
    }

    fn recall(&mut self, past: &Past, _: &SchedState) {
        self.wakeups.take_up(past);
    }

    fn early(&mut self, event: &SchedEvent, _: &SchedState) {
        self.wakeups.follow_states(event);
    }

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.start(start, state);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.pass(event.ts);
        for span in state.cpu_spans() {
            self.turn(span.cpu, event.ts, state);
        }
        self.follow_runnable(state);
        self.wakeups.follow(event, state, &self.rows);
    }

    fn finish(mut self, end: Ts, state: &SchedState) -> UnderloadReport {
        self.pass(end);
        if self.present.start < end {
            self.end_interval();
        }
        let window = self.options.to.since(self.options.from);
        let UnderloadSums { intervals, underloaded, doubtful, cpus, max, columns } = self.sums;
        let width = self.columns.width().max(1) as f64;
        UnderloadReport {
            interval_ns: self.interval,
            intervals,
            unknown_intervals: doubtful,
            underloaded_intervals: Some(underloaded),
            underload: Some(cpus),
            underload_per_second: Some(cpus as f64 / window.seconds().max(1e-9)),
            max_underload: Some(max),
            shows_wakeups: state.shows_wakeups(),
            wakeups: (state.shows_wakeups() && !state.places_by_wakings()).then(|| self.wakeups.report()),
            columns: columns.into_iter().map(|sum| sum as f64 / width).collect(),
        }
    }
}
