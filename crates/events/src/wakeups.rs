//! Wakeups one by one: from the waking, by way of the run queue, to the first run.

use crate::Density;
use crate::figure::{draw_bars, fullest, joined, scale_of_bars};
use draw::{Color, Figure, Item, Line, PT, Paint, Point, Shape, Unit};
use sched::nouns::counted;
use sched::seeded::SeededMap;
use sched::{Analysis, ChosenCpus, Comm, Cpu, Dur, PerTask, Pid, SchedEvent, SchedState, Span, Task, TaskState, Ts};
use timeline::page::{LegendEntry, Swatch};
use timeline::palette::BESIDE_TASKS;
use timeline::{LaneLayout, Rows, TimeScale};

/// The maximum number of wakeups that are drawn one by one.
const ARROWS: usize = 1500;

/// A wakeup of a task, from its waking to its first run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// The woken task.
    pub pid: Pid,
    /// The time of its `sched_waking`.
    pub waking: Ts,
    /// The CPU that emitted `sched_waking`.
    pub on: Cpu,
    /// Whether an interrupt or the idle task emitted it.
    pub by_interrupt: bool,
    /// The time at which the task joined a run queue.
    pub queued: Ts,
    /// The CPU of the run queue.
    pub cpu: Cpu,
    /// The time and the CPU of its first run; absent where it did not run in the window.
    pub ran: Option<(Ts, Cpu)>,
}

/// The wakeups of a window.
#[derive(Clone, Debug, Default)]
pub struct WakeupReport {
    /// The number of wakeups.
    pub total: u64,
    /// The wakeups in the order of their ends; empty where they are too many to be drawn one by one.
    pub wakeups: Vec<Wakeup>,
    densities: SeededMap<Cpu, Density>,
    window: Dur,
}

/// Finds the wakeups.
pub struct Wakeups<'o> {
    cpus: &'o ChosenCpus,
    wanted: Option<&'o (dyn Fn(Pid, Comm, Ts) -> bool + Sync)>,
    window: (Ts, Ts),
    open: PerTask<Wakeup>,
    interrupts: SeededMap<Pid, Ts>,
    report: WakeupReport,
}

impl<'o> Wakeups<'o> {
    /// Returns a search for the wakeups of a window between these CPUs.
    pub fn new(cpus: &'o ChosenCpus, from: Ts, to: Ts) -> Wakeups<'o> {
        Wakeups {
            cpus,
            wanted: None,
            window: (from, to),
            open: PerTask::default(),
            interrupts: SeededMap::default(),
            report: WakeupReport { window: to.since(from), ..WakeupReport::default() },
        }
    }

    /// The analysis of the wakeups of those tasks alone for which `wanted` holds as they are queued.
    #[must_use]
    pub fn only(self, wanted: &'o (dyn Fn(Pid, Comm, Ts) -> bool + Sync)) -> Wakeups<'o> {
        Wakeups { wanted: Some(wanted), ..self }
    }

    /// Notes whether an interrupt or the idle task wakes a task.
    fn announce(&mut self, event: &SchedEvent) {
        if let sched::EventKind::Waking { task, .. } = event.kind {
            match event.in_task() && !event.pid.is_idle() {
                true => drop(self.interrupts.remove(&task.pid)),
                false => drop(self.interrupts.insert(task.pid, event.ts)),
            }
        }
    }

    /// A task goes from one state to another.
    fn turn(&mut self, task: &Task, span: &Span, event: &SchedEvent) {
        match (span.state, span.next) {
            (TaskState::Asleep(_), TaskState::Waiting(cpu)) => {
                let Some(waking) = task.waking else { return };
                let by_interrupt = self.interrupts.remove(&task.pid) == Some(waking.at);
                if self.wanted.is_none_or(|wanted| wanted(task.pid, task.comm, event.ts)) {
                    let (on, queued) = (waking.on, event.ts);
                    let wakeup = Wakeup { pid: task.pid, waking: waking.at, on, by_interrupt, queued, cpu, ran: None };
                    self.open.insert(span.task, wakeup);
                }
            }
            (TaskState::Waiting(_) | TaskState::Throttled(_), TaskState::Waiting(_) | TaskState::Throttled(_)) => {}
            (TaskState::Waiting(_) | TaskState::Throttled(_), next) => {
                if let Some(wakeup) = self.open.take(span.task) {
                    let ran = if let TaskState::Running(cpu) = next { Some((event.ts, cpu)) } else { None };
                    self.take(Wakeup { ran, ..wakeup });
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, wakeup: Wakeup) {
        if !self.cpus.has(wakeup.on) || !self.cpus.has(wakeup.cpu) {
            return;
        }
        self.report.total += 1;
        self.report.densities.entry(wakeup.cpu).or_default().add(wakeup.queued, self.window.0, self.window.1);
        // One more than fits shows that they do not.
        if self.report.wakeups.len() <= ARROWS {
            self.report.wakeups.push(wakeup);
        }
    }
}

impl Analysis for Wakeups<'_> {
    type Output = WakeupReport;

    /// A task that an interrupt woke before the window can be queued in it.
    const LOOKS_BACK: bool = true;

    fn early(&mut self, event: &SchedEvent, _: &SchedState) {
        self.announce(event);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.announce(event);
        for (task, span) in state.turns() {
            self.turn(task, span, event);
        }
    }

    fn finish(mut self, _: Ts, _: &SchedState) -> WakeupReport {
        let open: Vec<Wakeup> = self.open.iter().map(|(_, wakeup)| *wakeup).collect();
        open.into_iter().for_each(|wakeup| self.take(wakeup));
        self.report.wakeups.sort_by_key(|wakeup| (wakeup.queued, wakeup.cpu, wakeup.pid));
        if self.report.total > ARROWS as u64 {
            self.report.wakeups.clear();
        }
        self.report
    }
}

const BY_TASK: Color = BESIDE_TASKS[0];
const BY_INTERRUPT: Color = BESIDE_TASKS[2];
const DELAY: Color = BESIDE_TASKS[1];

/// The sentence on the wakeups in a figure.
pub fn wakeups_caption(report: &WakeupReport) -> String {
    match (report.total, report.wakeups.is_empty()) {
        (0, _) => "No wakeup is in the window.".to_owned(),
        (n, true) => {
            let lanes: Vec<_> = report.densities.values().map(|density| vec![(Some(density), BY_TASK)]).collect();
            let joined = joined(lanes.len());
            let (full, span) = (fullest(&lanes, joined), report.window.seconds());
            let bars = scale_of_bars(full, "wakeups to that CPU", span, joined);
            format!("{n} wakeups, too many for an arrow each: {bars}.")
        }
        (n, false) => {
            format!(
                "{}: an arrow from the waking to the run queue, and a line from there to the first run.",
                counted(n, "wakeup")
            )
        }
    }
}

/// The legend of the wakeups.
pub fn wakeups_legend(report: &WakeupReport) -> Vec<LegendEntry> {
    let arrow = |color, label: String| LegendEntry { swatch: Swatch::Arrow(color, 0), label };
    if report.wakeups.is_empty() {
        return vec![LegendEntry {
            swatch: Swatch::Area(Paint::Solid(BY_TASK)),
            label: format!("wakeups ({})", report.total),
        }];
    }
    let interrupts = report.wakeups.iter().filter(|wakeup| wakeup.by_interrupt).count();
    vec![
        arrow(BY_TASK, format!("woken by a task ({})", report.wakeups.len() - interrupts)),
        arrow(BY_INTERRUPT, format!("woken by an interrupt or the idle task ({interrupts})")),
        LegendEntry { swatch: Swatch::Line(DELAY), label: "queued until its first run".to_owned() },
    ]
}

/// Draws the wakeups over the lanes of these CPUs.
pub fn draw_wakeups(
    figure: &mut Figure,
    report: &WakeupReport,
    options: &crate::Options,
    scale: &TimeScale,
    top: Unit,
    height: Unit,
) {
    let layout = LaneLayout::among(&options.cpus, &options.all_cpus, top, height);
    if report.wakeups.is_empty() {
        let bars: Vec<Vec<(Option<&Density>, Color)>> =
            options.cpus.iter().map(|(cpu, _)| vec![(report.densities.get(cpu), BY_TASK)]).collect();
        let joined = joined(report.densities.len());
        return draw_bars(figure, (&bars, joined), fullest(&bars, joined), scale, &layout);
    }
    let rows = Rows::new(&options.cpus);
    let middle = |cpu: Cpu| rows.of(cpu).map(|row| layout.top_of(row) + layout.bar() / 2);
    let point = |ts: Ts, cpu: Cpu| Some(Point { x: scale.at(ts), y: middle(cpu)? });
    let delay = |wakeup: &Wakeup| {
        let (ts, cpu) = wakeup.ran?;
        Some(Line { from: point(wakeup.queued, wakeup.cpu)?, to: point(ts, cpu)? })
    };
    let lines: Vec<Line> = report.wakeups.iter().filter_map(delay).filter(|line| line.from != line.to).collect();
    figure.push(Item::Lines { stroke: DELAY, width: 120, dash: 0, lines });
    let size = (layout.pitch() * 4 / 10).clamp(2 * PT, 4 * PT);
    for (color, by_interrupt) in [(BY_INTERRUPT, true), (BY_TASK, false)] {
        let (mut lines, mut up, mut down) = (Vec::new(), Vec::new(), Vec::new());
        for wakeup in report.wakeups.iter().filter(|wakeup| wakeup.by_interrupt == by_interrupt) {
            let Some(to) = point(wakeup.queued, wakeup.cpu) else { continue };
            let from = point(wakeup.waking, wakeup.on);
            lines.extend(from.filter(|from| *from != to).map(|from| Line { from, to }));
            if from.is_some_and(|from| from.y > to.y) { &mut up } else { &mut down }.push(to);
        }
        figure.push(Item::Lines { stroke: color, width: 60, dash: 0, lines });
        figure.push(Item::Markers { shape: Shape::Peak, fill: color, size, at: up });
        figure.push(Item::Markers { shape: Shape::Triangle, fill: color, size, at: down });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use sched::Pass;

    fn found(cpus: &ChosenCpus, events: &[SchedEvent]) -> WakeupReport {
        let (from, to) = (events[0].ts, events[events.len() - 1].ts);
        Pass::over(events).run(|| Wakeups::new(cpus, from, to)).unwrap_or_else(|never| match never {}).output
    }

    #[test]
    fn an_arrow_goes_from_the_waking_to_the_first_run() {
        let report = found(&ChosenCpus::default(), &testkit::a_wait_beside_an_idle_cpu());
        let expected = Wakeup {
            pid: Pid(8),
            waking: Ts(200),
            on: Cpu(0),
            by_interrupt: false,
            queued: Ts(200),
            cpu: Cpu(0),
            ran: Some((Ts(400), Cpu(0))),
        };
        assert_eq!((report.total, report.wakeups.as_slice()), (1, &[expected][..]));
        let options = Options { zero: Ts(100), cpus: vec![(Cpu(0), None), (Cpu(1), None)], all_cpus: Vec::new() };
        let scale = TimeScale { from: Ts(100), to: Ts(600), zero: Ts(100), x: 0, width: 5_000 };
        let mut figure = Figure::new(100 * PT, 100 * PT, "");
        draw_wakeups(&mut figure, &report, &options, &scale, 0, 4_000);
        let lines = figure.items.iter().flat_map(|item| match item {
            Item::Lines { lines, .. } => lines.as_slice(),
            _ => &[],
        });
        let lines: Vec<(Unit, Unit, bool)> =
            lines.map(|line| (line.from.x, line.to.x, line.from.y == line.to.y)).collect();
        assert_eq!(lines, [(1_000, 3_000, true)], "the line of the delay on the lane");
    }

    #[test]
    fn wakeups_between_other_cpus_are_left_out_and_many_are_bars() {
        let none = found(&ChosenCpus::only([Cpu(1)]), &testkit::a_wait_beside_an_idle_cpu());
        assert_eq!((none.total, none.wakeups.len()), (0, 0));
        let all = ChosenCpus::default();
        let many = testkit::Simulation::run(3, 4, 8_000).events;
        let report = found(&all, &many);
        assert!(report.total > ARROWS as u64 && report.wakeups.is_empty(), "{}", report.total);
        let bars: u64 = report.densities.values().flat_map(|density| &density.0).map(|n| u64::from(*n)).sum();
        assert_eq!(bars, report.total);
    }
}
