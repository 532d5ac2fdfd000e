//! The cost of a migration: bursts after it against bursts without one (`docs/questions/migrations.md#cost`).

mod noted;

pub use noted::BurstNotes;

use crate::log::BurstStep;
use sched::counters::{PerCounter, Readings};
use sched::event::CleanText;
use sched::seeded::SeededMap;
use sched::topology::Distance;
use sched::{
    Analysis, Comm, Counters, Cpu, Dur, Past, PerTask, Pid, SchedEvent, SchedState, Span, StepLog, TaskId, TaskState,
    Topology, Ts, kthread,
};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use timeline::text::{paragraph, short};

/// The bursts of a command that begin on another CPU than the one before ended on, against those on the same CPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CostRow {
    /// The command of the bursts.
    pub command: Comm,
    /// The distance of both CPUs; absent where the topology does not give it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<Distance>,
    /// The number of bursts that begin on another CPU, at this distance.
    pub after: u64,
    /// The number of bursts that begin on the same CPU, whatever the distance of the row.
    pub without: u64,
    /// The number of tasks that have bursts of either kind.
    pub tasks: u64,
    /// The median length of the bursts that begin on another CPU, in nanoseconds.
    pub after_median_ns: Dur,
    /// The median length of the bursts that begin on the same CPU, in nanoseconds; absent without any.
    pub without_median_ns: Option<Dur>,
    /// The ratio of both medians; absent with fewer than 20 bursts of either kind.
    pub ratio: Option<f64>,
    /// The 95 % interval of the ratio by a bootstrap over tasks; absent with fewer than five tasks.
    pub interval: Option<[f64; 2]>,
    /// The counts by burst of each counter that the recorder read at the switches; absent where it read none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterRow>,
}

/// The counts of a counter in the same bursts, as far as it was read at the start and the end of each of their runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CounterRow {
    /// The name that the recorder gave to the counter.
    pub counter: String,
    /// The number of bursts that begin on another CPU and have a count.
    pub after: u64,
    /// The number of bursts that begin on the same CPU and have a count.
    pub without: u64,
    /// The median count of the bursts that begin on another CPU; absent without any.
    pub after_median: Option<u64>,
    /// The median count of the bursts that begin on the same CPU; absent without any.
    pub without_median: Option<u64>,
    /// The ratio of both medians; absent with fewer than 20 bursts of either kind, or where the latter is zero.
    pub ratio: Option<f64>,
    /// The 95 % interval of the ratio by a bootstrap over tasks; absent with fewer than five tasks.
    pub interval: Option<[f64; 2]>,
}

/// The least number of bursts of a kind for a ratio, and of tasks for an interval.
const BURSTS: u64 = 20;
const TASKS: usize = 5;
/// The number of samples of the bootstrap.
const SAMPLES: usize = 400;
/// The maximum number of bursts of a kind that are kept, evenly spread, for medians.
const KEPT: usize = 4096;
/// The maximum number of commands that are followed, and of those that have rows.
const COMMANDS: usize = 4096;
const SHOWN: usize = 8;

/// The place of a burst: none for the same CPU as before, else the distance, where that is known.
type BurstPlace = Option<Option<Distance>>;

/// Lengths of bursts or counts in them, each with its task.
#[derive(Clone, Debug, Default)]
struct Bursts {
    count: u64,
    every: u32,
    kept: Vec<(TaskId, u64)>,
}

impl Bursts {
    fn add(&mut self, task: TaskId, amount: u64) {
        if self.count.is_multiple_of(1 << self.every) {
            if self.kept.len() >= KEPT {
                let mut nth = 0;
                self.kept.retain(|_| {
                    nth += 1;
                    nth % 2 == 1
                });
                self.every += 1;
            }
            if self.count.is_multiple_of(1 << self.every) {
                self.kept.push((task, amount));
            }
        }
        self.count += 1;
    }

    fn median(&self) -> Option<u64> {
        median(&mut self.kept.iter().map(|(_, amount)| *amount).collect::<Vec<u64>>())
    }
}

/// The lengths of the bursts of one command and place, and their counts by counter.
#[derive(Clone, Debug, Default)]
struct Measured {
    lengths: Bursts,
    counts: Vec<Bursts>,
}

/// The lower median.
fn median(values: &mut [u64]) -> Option<u64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

/// A burst that has not ended.
#[derive(Clone, Copy, Debug)]
struct Burst {
    ns: u64,
    /// The counts in it; nothing where the counters were not read at each start and end of its runs.
    counts: Option<PerCounter>,
    /// The CPU on which the task's last burst ended, and that on which it begins; nothing where the trace does not show
    /// both, or where the task moved within it.
    cpus: Option<(Cpu, Cpu)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct BurstTrack {
    last: Option<Cpu>,
    burst: Option<Burst>,
}

/// Gathers the bursts of all tasks.
pub struct Cost<'t> {
    topology: &'t Topology,
    /// The condition that a counted task meets; absent where all count.
    wanted: Option<&'t (dyn Fn(Pid, Comm, Ts) -> bool + Sync)>,
    tracks: PerTask<BurstTrack>,
    commands: SeededMap<Comm, BTreeMap<BurstPlace, Measured>>,
    /// The window has begun.
    inside: bool,
    pub(crate) readings: Option<Readings<'t>>,
    /// The steps that are left to the analysis of the pieces before, if this one follows a later piece of a pass.
    pub(crate) log: StepLog<BurstStep>,
}

impl<'t> Cost<'t> {
    /// Returns the analysis with distances by a topology.
    pub fn new(topology: &'t Topology) -> Cost<'t> {
        let (tracks, commands) = (PerTask::default(), SeededMap::default());
        Cost { topology, wanted: None, tracks, commands, inside: false, readings: None, log: StepLog::default() }
    }

    /// The analysis with the counts of some counters by burst.
    #[must_use]
    pub fn with_counters(self, counters: Option<&'t dyn Counters>) -> Cost<'t> {
        Cost { readings: counters.map(Readings::of), ..self }
    }

    /// The analysis of those tasks alone for which `wanted` holds at the end of a burst.
    #[must_use]
    pub fn only(self, wanted: &'t (dyn Fn(Pid, Comm, Ts) -> bool + Sync)) -> Cost<'t> {
        Cost { wanted: Some(wanted), ..self }
    }

    fn add(&mut self, task: TaskId, command: Comm, place: BurstPlace, burst: &Burst) {
        let command = kthread::command(command);
        if command.is_empty() || (self.commands.len() >= COMMANDS && !self.commands.contains_key(&command)) {
            return;
        }
        let measured = self.commands.entry(command).or_default().entry(place).or_default();
        measured.lengths.add(task, burst.ns);
        let counters = self.readings.as_ref().map_or(0, |readings| readings.names().len());
        measured.counts.resize_with(counters, Bursts::default);
        for (bursts, count) in measured.counts.iter_mut().zip(burst.counts.iter().flatten()) {
            bursts.add(task, *count);
        }
    }

    /// The place of a burst that begins on a CPU, by that on which the last one ended.
    fn place(&self, last: Cpu, first: Cpu) -> BurstPlace {
        let given = self.topology.distances();
        let distance = || self.topology.distance(last, first).filter(|distance| given[*distance as usize]);
        (last != first).then(distance)
    }

    /// The counts of a run, if the counters were read at its start and at its end.
    fn counts(&mut self, span: &Span, cpu: Cpu) -> Option<PerCounter> {
        let readings = self.readings.as_mut().filter(|_| span.begun && span.ended)?;
        let start = readings.at(cpu, span.start)?;
        readings.at(cpu, span.end)?.since(&start)
    }

    /// Takes the spans that the last event closed, with the parts of them before the window.
    fn follow(&mut self, state: &SchedState) {
        for span in state.spans() {
            match span.state {
                TaskState::Running(cpu) => {
                    let command = state.task(span.task).map(|task| task.comm);
                    self.step(BurstStep::Ran(*span, cpu, command));
                }
                TaskState::Unknown => self.step(BurstStep::Unknown(span.task)),
                _ => {}
            }
        }
    }

    /// The state of a task was unknown: it can have run unseen.
    pub(crate) fn forget(&mut self, task: TaskId) {
        self.tracks.take(task);
    }

    /// A task of this name ran on a CPU.
    pub(crate) fn ran(&mut self, span: &Span, cpu: Cpu, command: Option<Comm>) {
        let mut track = self.tracks.get(span.task).copied().unwrap_or_default();
        let cpus = track.last.filter(|_| span.begun).map(|last| (last, cpu));
        let mut burst = match track.burst {
            Some(burst) if cpus == Some((cpu, cpu)) => burst,
            Some(burst) => Burst { cpus: None, ..burst },
            None => Burst { ns: 0, counts: Some(PerCounter::default()), cpus },
        };
        burst.ns = burst.ns.saturating_add(span.duration().0);
        burst.counts = burst.counts.zip(self.counts(span, cpu)).map(|(mut sums, counts)| {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
            sums
        });
        track = BurstTrack { last: Some(cpu), burst: Some(burst) };
        match span.next {
            TaskState::Asleep(_) | TaskState::Dead if span.ended => {
                track.burst = None;
                let wanted = |command: &Comm| self.wanted.is_none_or(|wanted| wanted(span.pid, *command, span.end));
                if let (Some((last, first)), Some(command)) = (burst.cpus, command.filter(wanted))
                    && self.inside
                {
                    self.add(span.task, command, self.place(last, first), &burst);
                }
            }
            TaskState::Waiting(_) if span.ended => {}
            _ => track = BurstTrack::default(),
        }
        if span.next == TaskState::Dead {
            self.tracks.take(span.task);
        } else {
            self.tracks.insert(span.task, track);
        }
    }
}

impl Analysis for Cost<'_> {
    type Output = Vec<CostRow>;
    /// A burst that ends in the window can have begun before it.
    const LOOKS_BACK: bool = true;

    fn recall(&mut self, past: &Past, state: &SchedState) {
        noted::take_up(self, past, state);
    }

    fn early(&mut self, _: &SchedEvent, state: &SchedState) {
        self.follow(state);
    }

    fn begin(&mut self, _: Ts, _: &SchedState) {
        self.inside = true;
    }

    fn after(&mut self, _: &SchedEvent, state: &SchedState) {
        self.follow(state);
    }

    fn finish(self, _: Ts, _: &SchedState) -> Vec<CostRow> {
        let moved = |places: &BTreeMap<BurstPlace, Measured>| -> u64 {
            places.iter().filter(|(place, _)| place.is_some()).map(|(_, measured)| measured.lengths.count).sum()
        };
        let mut commands: Vec<(Comm, BTreeMap<BurstPlace, Measured>)> = self.commands.into_iter().collect();
        commands.retain(|(_, places)| moved(places) > 0);
        commands.sort_by_key(|(command, places)| (Reverse(moved(places)), *command));
        commands.truncate(SHOWN);
        let names = self.readings.as_ref().map_or(&[][..], Readings::names);
        commands.iter().flat_map(|(command, places)| rows(*command, places, names)).collect()
    }
}

fn rows(command: Comm, places: &BTreeMap<BurstPlace, Measured>, names: &[CleanText]) -> Vec<CostRow> {
    let none = Measured::default();
    let without = places.get(&None).unwrap_or(&none);
    let row = |(place, after): (&BurstPlace, &Measured)| {
        let distance = (*place)?;
        let compared = Compared::of(&after.lengths, &without.lengths);
        let counters = names.iter().enumerate().map(|(nth, name)| {
            let none = Bursts::default();
            let of = |measured: &Measured| measured.counts.get(nth).cloned().unwrap_or_else(|| none.clone());
            let (after, without) = (of(after), of(without));
            let Compared { ratio, interval, .. } = Compared::of(&after, &without);
            CounterRow {
                counter: name.to_string(),
                after: after.count,
                without: without.count,
                after_median: after.median(),
                without_median: without.median(),
                ratio,
                interval,
            }
        });
        Some(CostRow {
            command,
            distance,
            after: after.lengths.count,
            without: without.lengths.count,
            tasks: compared.tasks,
            after_median_ns: after.lengths.median().map(Dur)?,
            without_median_ns: without.lengths.median().map(Dur),
            ratio: compared.ratio,
            interval: compared.interval,
            counters: counters.collect(),
        })
    };
    places.iter().filter_map(row).collect()
}

/// The amounts of bursts after a migration against those of bursts without one.
struct Compared {
    tasks: u64,
    ratio: Option<f64>,
    interval: Option<[f64; 2]>,
}

impl Compared {
    fn of(after: &Bursts, without: &Bursts) -> Compared {
        let mut by_task: BTreeMap<TaskId, [Vec<u64>; 2]> = BTreeMap::new();
        for (kind, bursts) in [after, without].into_iter().enumerate() {
            for (task, amount) in &bursts.kept {
                by_task.entry(*task).or_default()[kind].push(*amount);
            }
        }
        let tasks: Vec<[Vec<u64>; 2]> = by_task.into_values().collect();
        let is_enough = after.count >= BURSTS && without.count >= BURSTS;
        let medians = after.median().zip(without.median()).filter(|(_, median)| is_enough && *median > 0);
        let ratio = medians.map(|(after, without)| after as f64 / without as f64);
        let interval = ratio.filter(|_| tasks.len() >= TASKS).and_then(|_| interval(&tasks));
        Compared { tasks: tasks.len() as u64, ratio, interval }
    }
}

/// The 95 % interval of the ratio of medians, by samples of as many tasks with replacement.
fn interval(tasks: &[[Vec<u64>; 2]]) -> Option<[f64; 2]> {
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut ratios = Vec::with_capacity(SAMPLES);
    let (mut after, mut without) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        after.clear();
        without.clear();
        for _ in 0..tasks.len() {
            // A xorshift generator: the same input gives the same interval.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let [a, w] = &tasks[(random % tasks.len() as u64) as usize];
            after.extend_from_slice(a);
            without.extend_from_slice(w);
        }
        if let (Some(a), Some(w)) = (median(&mut after), median(&mut without).filter(|median| *median > 0)) {
            ratios.push(a as f64 / w as f64);
        }
    }
    ratios.sort_by(f64::total_cmp);
    let at = |share: usize| ratios.get(ratios.len() * share / 1000).copied();
    Some([at(25)?, at(975)?])
}

/// The table for people; empty without rows.
pub fn cost_text(rows: &[CostRow]) -> String {
    let mut out = String::new();
    if rows.is_empty() {
        return out;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n{:<16}  {:<8}  {:>6}  {:>7}  {:>7}  {:>7}  {:>5}  95 %",
        "bursts after a", "within", "number", "median", "without", "median", "ratio"
    );
    let mut line = |name: String, [after, without]: [(u64, String); 2], ratio, interval| {
        let (shown, interval) = words(ratio, interval);
        let ((after, median), (without, other)) = (after, without);
        let _ = writeln!(out, "{name:<26}  {after:>6}  {median:>7}  {without:>7}  {other:>7}  {shown:>5}  {interval}");
    };
    for row in rows {
        let within = match row.distance {
            Some(Distance::Smt) => "a core",
            Some(Distance::Cluster) => "cluster",
            Some(Distance::Llc) => "an LLC",
            Some(Distance::Node) => "a node",
            Some(Distance::Machine) => "more",
            None => "-",
        };
        let medians = [(row.after, short(Some(row.after_median_ns))), (row.without, short(row.without_median_ns))];
        line(format!("{:<18}{within}", row.command.to_string()), medians, row.ratio, row.interval);
        for row in &row.counters {
            let medians = [(row.after, amount(row.after_median)), (row.without, amount(row.without_median))];
            let name: String = row.counter.chars().take(23).collect();
            line(format!("  {name}"), medians, row.ratio, row.interval);
        }
    }
    let counted = rows.iter().any(|row| !row.counters.is_empty());
    let counts = if counted { ", and the counts in it" } else { "" };
    let note = format!(
        "(the run time between two sleeps{counts}: bursts that begin on another CPU than the last one, against those on \
         the same CPU; an association, not a cause)"
    );
    paragraph(&mut out, 2, 2, &note);
    out
}

/// A ratio with three or four digits.
fn digits(ratio: f64) -> String {
    let decimals = if ratio < 10.0 { 2 } else { usize::from(ratio < 100.0) };
    format!("{ratio:.decimals$}")
}

/// A ratio and its interval, for the table.
fn words(ratio: Option<f64>, interval: Option<[f64; 2]>) -> (String, String) {
    let shown = ratio.map_or("few".to_owned(), digits);
    let interval = match (ratio, interval) {
        (None, _) => "too few".to_owned(),
        (_, None) => "few tasks".to_owned(),
        (_, Some([low, high])) => format!("{}-{}", digits(low), digits(high)),
    };
    (shown, interval)
}

/// A count with three digits for the cells of a table: `750`, `12.3k`, `4.56M`. Nothing is `-`.
fn amount(count: Option<u64>) -> String {
    let Some(count) = count else { return "-".to_owned() };
    let units = ["", "k", "M", "G", "T", "P", "E"];
    let (mut value, mut unit) = (count as f64, 0);
    while value >= 999.5 && unit + 1 < units.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    let digits = match value {
        _ if unit == 0 => 0,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::counters::{CounterStretch, Reading};

    use sched::{EventKind, Pass, PrevState, SchedEvent, TaskRef};

    /// Bursts of a task, each with its CPU and its length, one after another.
    fn bursts(pid: i32, list: &[(u32, i64)], now: &mut i64) -> Vec<SchedEvent> {
        let task = TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"work") };
        let mut events = Vec::new();
        let mut last = list[0].0;
        for (cpu, length) in list {
            let idle = TaskRef { pid: Pid::IDLE, prio: 120, comm: Comm::new(b"swapper") };
            let mut put = |ts: i64, pid: Pid, kind: EventKind| {
                events.push(SchedEvent { ts: Ts(ts), cpu: Cpu(*cpu), pid, flags: 0, kind });
            };
            put(*now, Pid::IDLE, EventKind::Waking { task, target: Cpu(last) });
            if last != *cpu {
                put(*now + 1, Pid::IDLE, EventKind::Migrate { task, orig: Cpu(last), dest: Cpu(*cpu) });
            }
            put(*now + 2, Pid::IDLE, EventKind::Wakeup { task, target: Cpu(*cpu) });
            put(*now + 3, Pid::IDLE, EventKind::Switch { prev: idle, state: PrevState::RUNNABLE, next: task });
            put(*now + 3 + length, task.pid, EventKind::Switch { prev: task, state: PrevState::asleep(1), next: idle });
            *now += 10 + length;
            last = *cpu;
        }
        events
    }

    fn cost(events: &[SchedEvent], topology: &Topology) -> Vec<CostRow> {
        Pass::over(events).run(|| Cost::new(topology)).unwrap_or_else(|never| match never {}).output
    }

    #[test]
    fn bursts_on_another_cpu_are_twice_as_long() {
        let topology = Topology::parse("cpu0 socket=0 core=0 smt=0 llc=0-1\ncpu1 socket=0 core=1 smt=1 llc=0-1\n");
        let topology = topology.expect("a topology");
        // The first burst belongs to neither kind; two more of each kind follow, four times.
        let list: Vec<(u32, i64)> =
            (0..4).flat_map(|_| [(0, 200), (0, 100), (1, 200), (1, 100)]).chain([(0, 200)]).collect();
        let mut now = 100;
        let events: Vec<SchedEvent> = (1..=5).flat_map(|pid| bursts(pid, &list, &mut now)).collect();
        let rows = cost(&events, &topology);
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((row.after, row.without, row.tasks), (5 * 8, 5 * 8, 5));
        assert_eq!((row.distance, row.command), (Some(Distance::Llc), Comm::new(b"work")));
        assert_eq!((row.after_median_ns, row.without_median_ns), (Dur(200), Some(Dur(100))));
        assert_eq!((row.ratio, row.interval), (Some(2.0), Some([2.0, 2.0])));
        assert!(cost_text(&rows).contains("2.00  2.00-2.00"), "{}", cost_text(&rows));
        let widest = words(Some(69.149), Some([2.391, 2491.3]));
        assert_eq!(widest, ("69.1".to_owned(), "2.39-2491".to_owned()));
        // Without a topology the distance is unknown, with few bursts there is no ratio.
        let rows = cost(&events[..60], &Topology::default());
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((row.distance, row.ratio, row.interval), (None, None, None));
        assert!(cost_text(&rows).contains("too few"));
    }

    #[test]
    fn kept_bursts_are_spread_evenly() {
        let mut all = Bursts::default();
        let mut now = 0;
        let events = bursts(7, &[(0, 5), (0, 5)], &mut now);
        assert!(cost(&events, &Topology::default()).is_empty(), "no migration");
        let pass = Pass::over(events.as_slice()).run(|| Ids(None)).unwrap_or_else(|never| match never {});
        let task = pass.output.expect("a task");
        (0..100_000).for_each(|n| all.add(task, n));
        assert!(all.kept.len() > KEPT / 2 && all.kept.len() <= KEPT);
        let step = all.kept[1].1 - all.kept[0].1;
        assert!(all.kept.windows(2).all(|pair| pair[1].1 - pair[0].1 == step), "every {step}th");
        assert_eq!(all.count, 100_000);
    }

    /// A counter that counts three a nanosecond on CPU 0, and five on CPU 1, but is not read at times that end in zero.
    #[derive(Debug)]
    struct Steady([CleanText; 1]);

    impl Counters for Steady {
        fn names(&self) -> &[CleanText] {
            &self.0
        }

        fn stretch(&self, cpu: Cpu, at: Ts) -> CounterStretch {
            let reading = Reading { values: PerCounter::default(), enabled: 0, running: 0 };
            let value = |ts: i64| [ts as u64 * [3, 5][cpu.0 as usize], 0, 0, 0, 0, 0, 0, 0];
            let readings = (at.0 % 10 != 0).then(|| (at, Reading { values: value(at.0), ..reading }));
            CounterStretch { readings: readings.into_iter().collect(), times: Some(at..=at) }
        }
    }

    #[test]
    fn counts_are_those_of_whole_bursts() {
        let topology = Topology::default();
        // Those of 97 ns begin or end at a time without a reading, here and there.
        let list: Vec<(u32, i64)> =
            (0..8).flat_map(|_| [(0, 200), (0, 100), (1, 200), (1, 97), (1, 100)]).chain([(0, 200)]).collect();
        let mut now = 101;
        let events: Vec<SchedEvent> = (1..=5).flat_map(|pid| bursts(pid, &list, &mut now)).collect();
        let counters = Steady(["cycles".into()]);
        let cost = || Cost::new(&topology).with_counters(Some(&counters));
        let rows = Pass::over(events.as_slice()).run(cost).unwrap_or_else(|never| match never {}).output;
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        let [counted] = row.counters.as_slice() else { panic!("{row:?}") };
        assert_eq!(counted.counter, "cycles");
        assert!(counted.after < row.after && counted.without < row.without, "{row:?}");
        assert!(counted.after >= BURSTS && counted.without >= BURSTS, "{row:?}");
        // 600 and 1000 after a migration in equal parts, and 300, 485 and 500 without one: the lower medians.
        assert_eq!((counted.after_median, counted.without_median), (Some(600), Some(485)));
        assert_eq!(counted.ratio, Some(600.0 / 485.0));
        let text = cost_text(&rows);
        assert!(text.contains("\n  cycles        ") && text.contains("the counts in it"), "{text}");
    }

    #[test]
    fn counts_have_three_digits() {
        let shown = [0, 999, 1000, 9_994, 9_996, 12_345, 99_960, 999_400, 999_600, u64::MAX].map(|n| amount(Some(n)));
        assert_eq!(shown, ["0", "999", "1.00k", "9.99k", "10.0k", "12.3k", "100k", "999k", "1.00M", "18.4E"]);
        assert_eq!(amount(None), "-");
    }

    /// Finds the identity of some task.
    struct Ids(Option<TaskId>);

    impl Analysis for Ids {
        type Output = Option<TaskId>;

        fn span(&mut self, span: &Span, _: &SchedState) {
            self.0 = Some(span.task);
        }

        fn finish(self, _: Ts, _: &SchedState) -> Option<TaskId> {
            self.0
        }
    }
}
