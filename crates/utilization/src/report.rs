//! What was found: as numbers, and as a text.

use crate::{CLASSES, Class, Utilization};
use sched::causes::Herd;
use sched::{Cpu, Dur, Ts};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use timeline::Drawable;

/// The time of each class, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // the classes are explained at Class
pub struct Shares {
    /// Nothing where it is unknown which tasks are the application: they are among the others then.
    pub app_ns: Option<u64>,
    pub other_ns: u64,
    pub kernel_ns: u64,
    pub stopper_ns: u64,
    pub rt_ns: u64,
    pub irq_ns: u64,
    pub unknown_ns: u64,
    pub offline_ns: u64,
    pub idle_ns: u64,
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
            irq_ns: at(Class::Interrupt),
            unknown_ns: at(Class::Unknown),
            offline_ns: at(Class::Offline),
            idle_ns: at(Class::Idle),
        }
    }

    /// In the order of [`Class::ALL`].
    pub fn all(&self) -> [u64; CLASSES] {
        [
            self.app_ns.unwrap_or(0),
            self.other_ns,
            self.kernel_ns,
            self.stopper_ns,
            self.rt_ns,
            self.irq_ns,
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

    /// All together.
    pub fn total(&self) -> u64 {
        self.all().iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// What is neither idle nor unknown nor offline.
    pub fn busy(&self) -> u64 {
        let rest = [self.idle_ns, self.unknown_ns, self.offline_ns];
        rest.into_iter().fold(self.total(), u64::saturating_sub)
    }
}

/// An interval of the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Its start from the start of the trace.
    pub start_in_trace_ns: u64,
    /// Its length; that of the last one may be less.
    pub length_ns: Dur,
    /// What the CPUs did.
    #[serde(flatten)]
    pub shares: Shares,
}

/// A CPU over the whole window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PerCpu {
    /// Which.
    pub cpu: Cpu,
    /// What it did.
    #[serde(flatten)]
    pub shares: Shares,
}

/// A node over the whole window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PerNode {
    /// Which.
    pub node: u32,
    /// What its CPUs did.
    #[serde(flatten)]
    pub shares: Shares,
}

/// CPUs idled beside overloaded ones for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Idling {
    /// From the start of the trace.
    pub start_in_trace_ns: u64,
    /// How long.
    pub duration_ns: Dur,
    /// CPUs that idled, when it had become long.
    pub idle: u32,
    /// CPUs that ran a task while others waited.
    pub overloaded: u32,
}

/// A herd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HerdReport {
    /// From the start of the trace.
    pub start_in_trace_ns: u64,
    /// The migrations.
    #[serde(flatten)]
    pub herd: Herd,
    /// The most tasks that then waited where it came.
    pub queue: u32,
    /// From its last migration until at most one waited there; nothing where the window ended before.
    pub drained_after_ns: Option<Dur>,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct UtilizationReport {
    /// `schedviz/utilization/1`.
    pub schema: &'static str,
    /// The window's start, on the trace's clock,
    pub from_ns: Ts,
    /// and its end.
    pub to_ns: Ts,
    /// Why it is unknown which tasks are the application; absent where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_unknown: Option<String>,
    /// Whether interrupts were recorded: without their events they count for what they interrupted.
    pub interrupts_recorded: bool,
    /// The machine over the whole window.
    pub all: Shares,
    /// The machine by interval.
    pub intervals: Vec<Interval>,
    /// Each CPU.
    pub cpus: Vec<PerCpu>,
    /// Each node, where the topology is known.
    pub nodes: Vec<PerNode>,
    /// So long CPUs may idle beside overloaded ones.
    pub balance_interval_ns: Dur,
    /// How often they did for longer,
    pub idling_episodes: u64,
    /// for how long in all,
    pub idling_ns: u64,
    /// and the longest ones.
    pub idling: Vec<Idling>,
    /// Herd migrations.
    pub herds: Vec<HerdReport>,
    /// Columns of the figure: their sums by class.
    #[serde(skip)]
    pub columns: Vec<(Ts, Dur, Shares)>,
    /// By CPU as drawn, and column.
    #[serde(skip)]
    pub heat: Vec<Vec<Heat>>,
}

/// What of a column of a CPU is not idle, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heat {
    /// It is busy.
    pub busy_ns: u64,
    /// Nobody knows.
    pub unknown_ns: u64,
    /// It is offline.
    pub offline_ns: u64,
}

/// The time of all CPUs, of each node as far as those are known, and of each CPU.
fn shares(u: &Utilization<'_>) -> (Shares, Vec<PerNode>, Vec<PerCpu>) {
    let mut all = [0u128; CLASSES];
    let mut nodes: BTreeMap<u32, [u128; CLASSES]> = BTreeMap::new();
    let mut cpus = Vec::new();
    for ((cpu, _), sums) in u.options.cpus.iter().zip(&u.sums) {
        let node = u.options.topology.place(*cpu).and_then(|place| place.node.or(place.socket));
        for (class, ns) in sums.iter().enumerate() {
            all[class] += ns;
            if let Some(node) = node {
                nodes.entry(node).or_default()[class] += ns;
            }
        }
        cpus.push(PerCpu { cpu: *cpu, shares: Shares::of(sums) });
    }
    let nodes = nodes.into_iter().map(|(node, sums)| PerNode { node, shares: Shares::of(&sums) });
    (Shares::of(&all), nodes.collect(), cpus)
}

pub(crate) fn build(u: Utilization<'_>, application_unknown: Option<String>) -> UtilizationReport {
    let options = u.options;
    let in_trace = |ts: Ts| ts.since(options.zero).0;
    let (all, nodes, cpus) = shares(&u);
    let rows = u.rows;
    let is_shown = |herd: &Herd| rows.of(herd.orig).is_some() || rows.of(herd.dest).is_some();
    let totals = u.idling.totals().iter().find(|t| t.min_ns == options.balance_interval).copied().unwrap_or_default();
    let longest = u.idling.into_longest().into_iter().filter(|e| e.duration >= options.balance_interval);
    let mut report = UtilizationReport {
        schema: "schedviz/utilization/1",
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
        balance_interval_ns: options.balance_interval,
        idling_episodes: totals.episodes,
        idling_ns: totals.ns,
        idling: longest
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
    /// How many there are.
    pub(crate) const SUMS: usize = 3;

    fn of(sums: &[u128]) -> Heat {
        let at = |look: usize| u64::try_from(sums[look]).unwrap_or(u64::MAX);
        Heat { busy_ns: at(Heat::BUSY), unknown_ns: at(Heat::UNKNOWN), offline_ns: at(Heat::OFFLINE) }
    }
}

/// A line of percentages.
fn line(out: &mut String, name: &str, shares: &Shares, shown: &[Class]) {
    let total = shares.total().max(1) as f64;
    let all = shares.all();
    // Writing to a string cannot fail.
    let _ = write!(out, "{name:>12} {:>8.2}", 100.0 * shares.busy() as f64 / total);
    for class in shown {
        let _ = write!(out, " {:>8.2}", 100.0 * all[*class as usize] as f64 / total);
    }
    out.push('\n');
}

fn head(out: &mut String, name: &str, shown: &[Class]) {
    let _ = write!(out, "\n{name:>12} {:>8}", "%busy");
    for class in shown {
        let _ = write!(out, " {:>8}", format!("%{}", class.name()));
    }
    out.push('\n');
}

/// The report for people; `trace` is the file as the command line has it.
pub fn text(report: &UtilizationReport, trace: &Drawable, per_cpu: bool) -> String {
    let mut out = String::new();
    let total = report.all.total().max(1) as f64;
    let busy = 100.0 * report.all.busy() as f64 / total;
    let _ = match report.all.app_ns {
        Some(ns) => {
            let application = 100.0 * ns as f64 / total;
            writeln!(out, "{trace}: the CPUs were busy {busy:.2} % of the time, for the application {application:.2} %")
        }
        None => writeln!(out, "{trace}: the CPUs were busy {busy:.2} % of the time, for the application unknown"),
    };
    if let Some(why) = &report.application_unknown {
        let _ = writeln!(out, "  ({why})");
    }
    let never = report.all.all();
    let shown: Vec<Class> =
        Class::ALL.into_iter().filter(|class| never[*class as usize] > 0 || *class == Class::Idle).collect();
    head(&mut out, "from, s", &shown);
    for row in &report.intervals {
        line(&mut out, &format!("{:.6}", row.start_in_trace_ns as f64 / 1e9), &row.shares, &shown);
    }
    line(&mut out, "all", &report.all, &shown);
    if !report.nodes.is_empty() {
        head(&mut out, "node", &shown);
        report.nodes.iter().for_each(|row| line(&mut out, &row.node.to_string(), &row.shares, &shown));
    }
    if per_cpu {
        head(&mut out, "CPU", &shown);
        report.cpus.iter().for_each(|row| line(&mut out, &row.cpu.to_string(), &row.shares, &shown));
    }
    situations(&mut out, report, trace);
    if !report.interrupts_recorded {
        let _ = writeln!(
            out,
            "\nInterrupts were not recorded (-e irq): they count for what they interrupted. Which tasks are\nSCHED_IDLE or SCHED_BATCH is not in a trace: they count as what they are otherwise."
        );
    }
    out
}

fn times(n: u64) -> String {
    if n == 1 { "once".into() } else { format!("{n} times") }
}

/// The two situations of the idle-scheduling talk.
fn situations(out: &mut String, report: &UtilizationReport, trace: &Drawable) {
    let interval = report.balance_interval_ns.human();
    if report.idling_episodes == 0 {
        let _ = writeln!(out, "\nNo CPU idled beside an overloaded one for more than {interval}.");
    } else {
        let _ = writeln!(
            out,
            "\nCPUs idled beside overloaded ones for more than {interval}: {}, {} in all. The longest:",
            times(report.idling_episodes),
            Dur(report.idling_ns).human()
        );
        for e in report.idling.iter().take(5) {
            let start = e.start_in_trace_ns;
            let _ = writeln!(
                out,
                "  {:>9} from {:.6} s: {} idle, {} overloaded\n            {}",
                e.duration_ns.human(),
                start as f64 / 1e9,
                e.idle,
                e.overloaded,
                trace.part(start, e.duration_ns)
            );
        }
    }
    if report.herds.is_empty() {
        let _ = writeln!(out, "No herd: never did four queued tasks leave one CPU for one other within a millisecond.");
        return;
    }
    let _ = writeln!(
        out,
        "Herd migrations (four or more queued tasks that leave one CPU for one other within a millisecond): {}",
        report.herds.len()
    );
    for h in report.herds.iter().take(10) {
        let _ = writeln!(
            out,
            "  {:.6} s: {} tasks from CPU {} to CPU {} within {}; {} waited there then, {}",
            h.start_in_trace_ns as f64 / 1e9,
            h.herd.tasks,
            h.herd.orig,
            h.herd.dest,
            h.herd.end.since(h.herd.start).human(),
            h.queue,
            match h.drained_after_ns {
                Some(after) => format!("at most one after {} more", after.human()),
                None => "until the end".to_owned(),
            }
        );
    }
}
