//! The report: as numbers, and as a text.

use crate::{CLASSES, Class, SerialTail, TimesByGroup, UnderloadReport, Utilization, tail};
use membership::TasksBy;
use sched::causes::Herd;
use sched::nouns::counted;
use sched::{Cpu, Dur, Ts};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use timeline::text::{CASES, Detail, case, case_head, paragraph};
use timeline::{Drawable, Next};

/// The name and version of the document's schema.
pub(crate) const SCHEMA: &str = "schedviz/utilization/1";

/// The time of each class, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shares {
    /// The time of the application, in nanoseconds; null if the application is unknown, and its time is then that of
    /// other tasks.
    pub app_ns: Option<u64>,
    /// The time of other tasks, in nanoseconds.
    pub other_ns: u64,
    /// The time of kernel threads, in nanoseconds.
    pub kernel_ns: u64,
    /// The time of the stoppers (migration/N), in nanoseconds.
    pub stopper_ns: u64,
    /// The time of real-time and deadline tasks, in nanoseconds.
    pub rt_ns: u64,
    /// The time of runs whose task was real-time or deadline at one end and not at the other, where no event shows when that changed, in
    /// nanoseconds.
    pub rt_possible_ns: u64,
    /// The time of interrupts, in nanoseconds; zero if they were not recorded.
    pub irq_ns: u64,
    /// The time for which the running task is unknown, in nanoseconds.
    pub unknown_ns: u64,
    /// The time that CPUs were offline, in nanoseconds.
    pub offline_ns: u64,
    /// The idle time, in nanoseconds.
    pub idle_ns: u64,
    /// The time that CPUs were kept idle by `idle_inject/N`, in nanoseconds; no part of the idle time.
    pub injected_ns: u64,
}

impl Shares {
    fn of(sums: &[u128]) -> Shares {
        let at = |class: Class| sums.get(class as usize).map_or(0, |ns| u64::try_from(*ns).unwrap_or(u64::MAX));
        Shares {
            app_ns: Some(at(Class::Application)),
            other_ns: at(Class::Other),
            kernel_ns: at(Class::Kernel),
            stopper_ns: at(Class::Stopper),
            rt_ns: at(Class::RealTime),
            rt_possible_ns: at(Class::PossiblyRealTime),
            irq_ns: at(Class::Interrupt),
            unknown_ns: at(Class::Unknown),
            offline_ns: at(Class::Offline),
            idle_ns: at(Class::Idle),
            injected_ns: at(Class::Injected),
        }
    }

    /// The times in nanoseconds, in the order of [`Class::ALL`].
    pub fn all(&self) -> [u64; CLASSES] {
        [
            self.app_ns.unwrap_or(0),
            self.other_ns,
            self.kernel_ns,
            self.stopper_ns,
            self.rt_ns,
            self.rt_possible_ns,
            self.irq_ns,
            self.injected_ns,
            self.unknown_ns,
            self.offline_ns,
            self.idle_ns,
        ]
    }

    /// Takes the application's time for that of other tasks, since it is unknown which tasks those are.
    fn withhold_application(&mut self) {
        let application = self.app_ns.take().unwrap_or(0);
        self.other_ns = self.other_ns.saturating_add(application);
    }

    /// The sum of all times, in nanoseconds.
    pub fn total(&self) -> u64 {
        self.all().iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// Time that is neither idle nor kept idle nor unknown nor offline.
    pub fn busy(&self) -> u64 {
        let rest = [self.idle_ns, self.injected_ns, self.unknown_ns, self.offline_ns];
        rest.into_iter().fold(self.total(), u64::saturating_sub)
    }
}

/// An interval of the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// The start of the interval, in nanoseconds from the start of the trace.
    pub start_in_trace_ns: u64,
    /// The length in nanoseconds; the last interval may be shorter.
    pub length_ns: Dur,
    /// The time of all CPUs.
    #[serde(flatten)]
    pub shares: Shares,
}

/// A CPU over the whole window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PerCpu {
    /// The CPU with these times.
    pub cpu: Cpu,
    /// The time of the CPU by class.
    #[serde(flatten)]
    pub shares: Shares,
    /// The part of `irq_ns` in which handlers interrupted a task, in nanoseconds. With it and the classes of tasks the CPU's
    /// tasks ran for as long as its runs in the table `on_cpu` last (`schedviz export`).
    pub irq_in_tasks_ns: u64,
}

/// A node over the whole window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PerNode {
    /// The NUMA node.
    pub node: u32,
    /// The time of its CPUs.
    #[serde(flatten)]
    pub shares: Shares,
}

/// CPUs idled beside overloaded ones for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Idling {
    /// The start, in nanoseconds from the start of the trace.
    pub start_in_trace_ns: u64,
    /// The length in nanoseconds.
    pub duration_ns: Dur,
    /// The number of idle CPUs when the episode became long enough.
    pub idle: u32,
    /// The number of CPUs that ran a task while others waited.
    pub overloaded: u32,
}

/// A herd migration and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HerdReport {
    /// The time of the first migration, in nanoseconds from the start of the trace.
    pub start_in_trace_ns: u64,
    /// The migrations of the herd.
    #[serde(flatten)]
    pub herd: Herd,
    /// The maximum number of tasks that then waited on the target CPU.
    pub queue: u32,
    /// The time from the last migration until at most one task waited on the target CPU, in nanoseconds; null if the
    /// window ended before.
    pub drained_after_ns: Option<Dur>,
}

/// The measured times.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UtilizationReport {
    /// The name and version of the schema, `schedviz/utilization/1`.
    pub schema: &'static str,
    /// The start of the window, in nanoseconds of the trace's clock.
    pub from_ns: Ts,
    /// The end of the window, in nanoseconds of the trace's clock.
    pub to_ns: Ts,
    /// The reason why the application is unknown; absent if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_unknown: Option<String>,
    /// Whether interrupts were recorded; otherwise their time counts for the interrupted task.
    pub interrupts_recorded: bool,
    /// The time of all CPUs over the whole window.
    pub all: Shares,
    /// The time of all CPUs by interval.
    pub intervals: Vec<Interval>,
    /// The time of each CPU over the whole window.
    pub cpus: Vec<PerCpu>,
    /// The time of each NUMA node over the whole window; empty if the topology is unknown.
    pub nodes: Vec<PerNode>,
    /// The time of the tasks by the groups that `--by` asks for; absent without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<TimesByGroup>,
    /// The length from which idling beside overloaded CPUs is reported, in nanoseconds.
    pub balance_interval_ns: Dur,
    /// The number of longer episodes in which CPUs idled beside overloaded ones; null where wakeups were not recorded.
    pub idling_episodes: Option<u64>,
    /// The total length of these episodes, in nanoseconds; null where wakeups were not recorded.
    pub idling_ns: Option<u64>,
    /// The longest of these episodes.
    pub idling: Vec<Idling>,
    /// The herd migrations in the window.
    pub herds: Vec<HerdReport>,
    /// The underload, and the wakeups by the time for which their CPU had idled; null where wakeups were not recorded, without which the tasks
    /// that are runnable are unknown.
    pub underload: Option<UnderloadReport>,
    /// The serial tail of the application; null where it is unknown, never ran, or had several runnable tasks at its end.
    pub serial_tail: Option<SerialTail>,
    /// The columns of the figure, each with its start, its length and its sums by class.
    #[serde(skip)]
    pub columns: Vec<(Ts, Dur, Shares)>,
    /// The busy parts by CPU as drawn, and by column.
    #[serde(skip)]
    pub heat: Vec<Vec<Heat>>,
}

/// The busy part of a column of a CPU, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heat {
    /// The time for which the CPU is busy.
    pub busy_ns: u64,
    /// The time for which the CPU is unknown.
    pub unknown_ns: u64,
    /// The time for which the CPU is offline.
    pub offline_ns: u64,
}

/// The time of all CPUs, of each node as far as those are known, and of each CPU.
fn shares(u: &Utilization<'_>) -> (Shares, Vec<PerNode>, Vec<PerCpu>) {
    let mut all = [0u128; CLASSES];
    let mut nodes: BTreeMap<u32, [u128; CLASSES]> = BTreeMap::new();
    let mut cpus = Vec::new();
    for (((cpu, _), sums), now) in u.options.cpus.iter().zip(&u.sums).zip(&u.cpus) {
        let node = u.options.topology.place(*cpu).and_then(|place| place.node.or(place.socket));
        for (class, ns) in sums.iter().enumerate() {
            all[class] += ns;
            if let Some(node) = node {
                nodes.entry(node).or_default()[class] += ns;
            }
        }
        let irq_in_tasks_ns = u64::try_from(now.in_tasks).unwrap_or(u64::MAX);
        cpus.push(PerCpu { cpu: *cpu, shares: Shares::of(sums), irq_in_tasks_ns });
    }
    let nodes = nodes.into_iter().map(|(node, sums)| PerNode { node, shares: Shares::of(&sums) });
    (Shares::of(&all), nodes.collect(), cpus)
}

pub(crate) fn build(u: Utilization<'_>, application_unknown: Option<String>, shows_wakeups: bool) -> UtilizationReport {
    let options = u.options;
    let in_trace = |ts: Ts| ts.since(options.zero).0;
    let (all, nodes, cpus) = shares(&u);
    let rows = u.rows;
    let is_shown = |herd: &Herd| rows.of(herd.orig).is_some() || rows.of(herd.dest).is_some();
    let totals = u.idling.totals().iter().find(|t| t.min_ns == options.balance_interval).copied().unwrap_or_default();
    let longest = u.idling.into_longest().into_iter().filter(|e| e.duration >= options.balance_interval);
    let mut report = UtilizationReport {
        schema: SCHEMA,
        from_ns: options.from,
        to_ns: options.to,
        application_unknown: None,
        interrupts_recorded: u.interrupts,
        all,
        intervals: u
            .intervals
            .intervals()
            .map(|(start, length_ns, sums)| Interval {
                start_in_trace_ns: in_trace(start),
                length_ns,
                shares: Shares::of(sums),
            })
            .collect(),
        cpus,
        nodes,
        groups: None,
        balance_interval_ns: options.balance_interval,
        idling_episodes: shows_wakeups.then_some(totals.episodes),
        idling_ns: shows_wakeups.then_some(totals.ns),
        idling: longest
            .filter(|_| shows_wakeups)
            .map(|e| Idling {
                start_in_trace_ns: in_trace(e.start),
                duration_ns: e.duration,
                idle: e.note.0,
                overloaded: e.note.1,
            })
            .collect(),
        herds: u
            .herds
            .into_found()
            .into_iter()
            .zip(u.followed)
            .filter(|(herd, _)| is_shown(herd))
            .map(|(herd, followed)| HerdReport {
                start_in_trace_ns: in_trace(herd.start),
                herd,
                queue: followed.queue,
                drained_after_ns: followed.drained.map(|drained| drained.since(herd.end)),
            })
            .collect(),
        underload: None,
        serial_tail: None,
        columns: u.columns.intervals().map(|(start, length, sums)| (start, length, Shares::of(sums))).collect(),
        heat: u.heat.iter().map(|grid| grid.intervals().map(|(_, _, sums)| Heat::of(sums)).collect()).collect(),
    };
    application_unknown.into_iter().for_each(|why| report.withhold_application(why));
    report
}

impl UtilizationReport {
    /// Withholds the application's share, since it is unknown for this reason which tasks are the application.
    pub fn withhold_application(&mut self, why: String) {
        let parts = self.intervals.iter_mut().map(|row| &mut row.shares);
        let parts = parts.chain(self.cpus.iter_mut().map(|row| &mut row.shares));
        let parts = parts.chain(self.nodes.iter_mut().map(|row| &mut row.shares));
        let parts = parts.chain(self.columns.iter_mut().map(|(.., shares)| shares));
        parts.chain([&mut self.all]).for_each(Shares::withhold_application);
        self.application_unknown = Some(why);
    }
}

impl Heat {
    /// The places of its sums.
    pub(crate) const BUSY: usize = 0;
    pub(crate) const UNKNOWN: usize = 1;
    pub(crate) const OFFLINE: usize = 2;
    /// The number of sums of a column.
    pub(crate) const SUMS: usize = 3;

    fn of(sums: &[u128]) -> Heat {
        let at = |look: usize| u64::try_from(sums[look]).unwrap_or(u64::MAX);
        Heat { busy_ns: at(Heat::BUSY), unknown_ns: at(Heat::UNKNOWN), offline_ns: at(Heat::OFFLINE) }
    }
}

/// The columns of a table: classes, each in this width. Where many occur, cells are narrow and have one digit.
struct ClassColumns {
    classes: Vec<Class>,
    width: usize,
}

impl ClassColumns {
    /// The classes that occur, and idle time.
    fn of(all: &Shares) -> ClassColumns {
        let time = all.all();
        let occurs = |class: &Class| time[*class as usize] > 0 || *class == Class::Idle;
        let classes: Vec<Class> = Class::ALL.into_iter().filter(occurs).collect();
        let width = if classes.len() > 7 { 5 } else { 6 };
        ClassColumns { classes, width }
    }

    fn head(&self, out: &mut String, name: &str) {
        let width = self.width;
        // Writing to a string cannot fail.
        let _ = write!(out, "\n{name:>11}  {:>width$}", "%busy");
        for class in &self.classes {
            let _ = write!(out, "  {:>width$}", format!("%{}", class.head(width < 6)));
        }
        out.push('\n');
    }

    /// A line of percentages.
    fn line(&self, out: &mut String, name: &str, shares: &Shares) {
        let (total, all) = (shares.total().max(1) as f64, shares.all());
        let busy = std::iter::once(shares.busy());
        // Writing to a string cannot fail.
        let _ = write!(out, "{name:>11}");
        for time in busy.chain(self.classes.iter().map(|class| all[*class as usize])) {
            let (width, digits) = (self.width, if self.width > 5 { 2 } else { 1 });
            let _ = write!(out, "  {:>width$.digits$}", 100.0 * time as f64 / total);
        }
        out.push('\n');
    }
}

/// The report for people; `trace` is the file as the command line has it.
pub fn text(report: &UtilizationReport, trace: &Drawable, (per_cpu, rows): (bool, usize), detail: Detail) -> String {
    let mut out = String::new();
    let total = report.all.total().max(1) as f64;
    let busy = 100.0 * report.all.busy() as f64 / total;
    let application =
        report.all.app_ns.map_or("unknown".to_owned(), |ns| format!("{:.2} %", 100.0 * ns as f64 / total));
    let headline = format!("{trace}: the CPUs were busy {busy:.2} % of the time, for the application {application}");
    paragraph(&mut out, 0, 2, &headline);
    if let Some(why) = &report.application_unknown {
        paragraph(&mut out, 2, 3, &format!("({why})"));
    }
    let table = ClassColumns::of(&report.all);
    table.head(&mut out, "from, s");
    for row in &report.intervals {
        table.line(&mut out, &format!("{:.6}", row.start_in_trace_ns as f64 / 1e9), &row.shares);
    }
    table.line(&mut out, "all", &report.all);
    if !report.nodes.is_empty() {
        table.head(&mut out, "node");
        report.nodes.iter().for_each(|row| table.line(&mut out, &row.node.to_string(), &row.shares));
    }
    if per_cpu {
        table.head(&mut out, "CPU");
        report.cpus.iter().for_each(|row| table.line(&mut out, &row.cpu.to_string(), &row.shares));
    }
    if report.all.rt_possible_ns > 0 {
        let time = Dur(report.all.rt_possible_ns).human();
        let text = format!(
            "rt?: runs of {time} in all began as those of real-time tasks and ended as others, or the other way round; no event shows when that changed"
        );
        paragraph(&mut out, 0, 2, &text);
    }
    if let Some(groups) = &report.groups {
        by_group(&mut out, groups, rows);
    }
    idling(&mut out, report, trace, detail);
    herds(&mut out, report, detail);
    underload_text(&mut out, report.underload.as_ref());
    tail::put(&mut out, report.serial_tail, report.to_ns.since(report.from_ns));
    if !report.interrupts_recorded {
        let interrupts = "Interrupts were not recorded (-e irq): they count for what they interrupted.";
        let classes =
            "Which tasks are SCHED_IDLE or SCHED_BATCH is not in a trace: they count as what they are otherwise.";
        out.push('\n');
        paragraph(&mut out, 0, 0, &format!("{interrupts} {classes}"));
    }
    if let Some(longest) = report.idling.first() {
        let commands = [Next::Draw, Next::Queues, Next::Why];
        trace.next(&mut out, "the longest of these times", longest.start_in_trace_ns, longest.duration_ns, &commands);
    }
    out
}

/// The table of the time that groups of tasks ran.
fn by_group(out: &mut String, groups: &TimesByGroup, most: usize) {
    let of = match groups.by {
        TasksBy::Command => "time of command",
        TasksBy::Task => "time of task",
        TasksBy::Process => "time of process",
        TasksBy::Cgroup => "time of cgroup",
        TasksBy::Params => "time of tasks with",
        TasksBy::Stack => "time at stack",
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "\n{of:<37}  {:>10}  {:>10}  {:>11}", "run time", "CPU time", "of all tasks");
    for row in groups.rows.iter().take(most) {
        let (name, time) = (row.of.shown(), format!("{:.6} s", row.run_ns as f64 / 1e9));
        let _ = writeln!(out, "  {name:<35}  {time:>10}  {:>9.2}%  {:>10.2}%", row.cpu_percent, row.tasks_percent);
    }
    if groups.rows.len() > most {
        let _ = writeln!(out, "  … {} more (--rows, --json)", groups.rows.len() - most);
    }
}

fn times(n: u64) -> String {
    if n == 1 { "once".into() } else { format!("{n} times") }
}

/// Describes the times in which CPUs idled for long beside overloaded ones.
fn idling(out: &mut String, report: &UtilizationReport, trace: &Drawable, detail: Detail) {
    let interval = report.balance_interval_ns.human();
    out.push('\n');
    let Some((episodes, ns)) = report.idling_episodes.zip(report.idling_ns) else {
        let text = format!(
            "How often CPUs idled beside overloaded ones for {interval} or longer is unknown: wakeups were not recorded."
        );
        return paragraph(out, 0, 2, &text);
    };
    if episodes == 0 {
        paragraph(out, 0, 2, &format!("No CPU idled beside an overloaded one for {interval} or longer."));
        return;
    }
    let (number, all) = (times(episodes), Dur(ns).human());
    let headline = format!("CPUs idled beside overloaded ones for {interval} or longer: {number}, {all} in all.");
    paragraph(out, 0, 2, &format!("{headline} The longest:"));
    case_head(out, "CPUs");
    for e in report.idling.iter().take(if detail == Detail::Brief { CASES } else { 5 }) {
        case(out, e.start_in_trace_ns, e.duration_ns, &format!("{} idle, {} overloaded", e.idle, e.overloaded));
        if detail == Detail::Full {
            trace.draw(out, 5, e.start_in_trace_ns, e.duration_ns);
        }
    }
    if detail == Detail::Brief {
        trace.draw_any(out);
    }
}

/// The underload, and the wakeups on idle CPUs.
fn underload_text(out: &mut String, of: Option<&UnderloadReport>) {
    out.push('\n');
    let Some(of) = of else {
        let unknown = "Underload, and how many wakeups were on idle CPUs, is unknown: neither sched:sched_wakeup nor sched:sched_waking was \
                       recorded, so that no event shows which tasks are runnable.";
        return paragraph(out, 0, 2, unknown);
    };
    let interval = of.interval_ns.human();
    let percent = |part: u64, all: u64| 100.0 * part as f64 / (all as f64).max(1.0);
    let headline = match (of.underload_per_second, of.max_underload, of.underloaded_intervals) {
        (Some(per_second), Some(most), Some(intervals)) => format!(
            "Underload: {per_second:.1} a second, at most {} at once, in {:.1} % of the intervals of {interval} (CPUs used in an interval beyond \
             the largest number of tasks runnable at once)",
            counted(most, "CPU"),
            percent(intervals, of.intervals)
        ),
        _ => "Underload is unknown: cpu.max throttled tasks, by the counters of the machine file, and no event shows which tasks were runnable \
              (schedviz record --why)."
            .to_owned(),
    };
    paragraph(out, 0, 2, &headline);
    if of.unknown_intervals > 0 {
        let unknown = counted(of.unknown_intervals, "interval");
        paragraph(out, 2, 3, &format!("({unknown} more left out, in which a CPU was unknown)"));
    }
    let Some(wakeups) = &of.wakeups else {
        let unknown = "(how many wakeups were on idle CPUs is unknown: sched:sched_wakeup was not recorded)";
        return paragraph(out, 2, 3, unknown);
    };
    let on_idle = percent(wakeups.on_idle, wakeups.placed);
    let mut parts: Vec<String> = Vec::new();
    for row in &wakeups.by_idle_time {
        let range = match row.below_ns {
            Some(below) if row.at_least_ns.0 == 0 => format!("below {}", below.human()),
            Some(below) => format!("up to {}", below.human()),
            None => format!("{} or more", row.at_least_ns.human()),
        };
        parts.push(format!("{range} {:.1} %", percent(row.wakeups, wakeups.on_idle)));
    }
    if wakeups.since_start > 0 {
        parts.push(format!("since the start {:.1} %", percent(wakeups.since_start, wakeups.on_idle)));
    }
    let all = counted(wakeups.placed, "wakeup");
    let line = format!("{all}, {on_idle:.1} % of them on an idle CPU, which had idled: {}", parts.join(", "));
    paragraph(out, 0, 2, &line);
    if let Some(states) = &wakeups.idle_states {
        let states: Vec<String> =
            states.iter().map(|row| format!("{}: {:.1} %", row.state, percent(row.wakeups, wakeups.on_idle))).collect();
        paragraph(out, 0, 2, &format!("idle states that they ended (power:cpu_idle): {}", states.join(", ")));
    }
}

/// Many queued tasks that left one CPU for one other at once.
fn herds(out: &mut String, report: &UtilizationReport, detail: Detail) {
    out.push('\n');
    if report.herds.is_empty() {
        let none = "No herd: never did four queued tasks leave one CPU for one other within a millisecond.";
        paragraph(out, 0, 2, none);
        return;
    }
    let herd = "four or more queued tasks that leave one CPU for one other within a millisecond";
    paragraph(out, 0, 2, &format!("Herd migrations ({herd}): {}", report.herds.len()));
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{:>13}  {:>5}  {:>8}  {:>6}  {:>8}  {:>6}  {:>12}",
        "from, s", "tasks", "from CPU", "to CPU", "within", "queue", "drained after"
    );
    for h in report.herds.iter().take(if detail == Detail::Brief { CASES } else { 10 }) {
        let drained = h.drained_after_ns.map_or("not".to_owned(), Dur::human);
        let _ = writeln!(
            out,
            "{:>13.6}  {:>5}  {:>8}  {:>6}  {:>8}  {:>6}  {drained:>12}",
            h.start_in_trace_ns as f64 / 1e9,
            h.herd.tasks,
            h.herd.orig.to_string(),
            h.herd.dest.to_string(),
            h.herd.end.since(h.herd.start).human(),
            h.queue
        );
    }
    let meaning =
        "queue: tasks in a runqueue wait on the target CPU then; drained after: the time until at most one waited";
    paragraph(out, 2, 3, &format!("({meaning})"));
}
