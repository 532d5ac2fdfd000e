//! The document of `--json`: runs with the trust in each, and the medians of their groups.

mod text;

use crate::drawn_run::drawn_run;
use crate::{
    Bounds, KernelLengths, Limits, Options, Report, ThrottledCgroup, ThrottledCpu, ThrottledTask, Throttling, Violation,
};
use anyhow::Result;
use question::Spread;
use sched::event::CleanText;
use sched::probe::CgroupId;
use sched::{Cpu, Diagnostics, Dur, Ts, Verdict, Window};
use serde::Serialize;
use session::args::{BeginArgs, repeatable};
use session::ext::{self, ExtScheduler};
use session::heading::doubts;
use session::{Session, warnings};
use timeline::{Drawable, Sheet};

/// The name and version of the document's schema.
pub(crate) const SCHEMA: &str = "schedviz/workcons/2";

/// The document of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WorkconsDocument {
    /// The name and version of the schema, `schedviz/workcons/2`.
    schema: &'static str,
    /// The runs, in the given order.
    pub(crate) runs: Vec<WorkconsRun>,
    /// The medians of each group; empty without groups.
    pub(crate) groups: Vec<Group>,
    /// Figures that a run does not have and that are in no median.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    /// The worst verdict; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verdict: Option<Judged>,
    /// The verdict on each run; empty without a limit.
    #[serde(skip)]
    pub(crate) verdicts: Vec<Judged>,
}

/// The worst verdict, with the trace that decides.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Judged {
    /// The name of the trace that decides.
    pub(crate) trace: String,
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
}

impl WorkconsDocument {
    /// The document of runs, in their groups.
    pub(crate) fn of(runs: Vec<WorkconsRun>, limits: &Limits) -> WorkconsDocument {
        let judged =
            |r: &WorkconsRun| Some(Judged { trace: r.trace.clone(), verdict: crate::judge(&r.report, limits)? });
        let verdicts: Vec<Judged> = runs.iter().filter_map(judged).collect();
        let worst = verdicts.iter().reduce(|a, b| if b.verdict.verdict > a.verdict.verdict { b } else { a }).cloned();
        let by_command = runs.iter().any(|r| r.report.elapsed_is_command);
        let groups = medians(&runs, by_command, limits.loss);
        let notes = if groups.is_empty() { Vec::new() } else { left_out(&runs, by_command, limits.loss) };
        WorkconsDocument { schema: SCHEMA, groups, notes, verdict: worst, verdicts, runs }
    }

    /// The lines for the head of a text about the runs.
    pub(crate) fn head(&self) -> Vec<String> {
        let ext = ext::head(self.runs.iter().map(|run| (run.trace.as_str(), run.sched_ext.as_ref())));
        // In a table of several runs the notes name those that are not to be trusted.
        let doubts = match self.runs.as_slice() {
            [run] => doubts(None, &run.trust),
            _ => None,
        };
        doubts.into_iter().chain(ext).collect()
    }

    /// Draws the runs of each group by elapsed time; runs without a group are a group of their own.
    pub(crate) fn figure(&self, max_loss: f64, sheet: &Sheet) -> draw::Figure {
        let by_command = self.runs.iter().any(|r| r.report.elapsed_is_command);
        let of = |name: Option<&String>| -> Vec<(f64, Option<f64>)> {
            let runs = self.runs.iter().filter(|r| r.group.as_ref() == name);
            let point = |r: &WorkconsRun| {
                let violation = r.violation(max_loss).ok().map(|v| v.percent);
                Some((r.report.elapsed(by_command)?.seconds(), violation))
            };
            runs.filter_map(point).collect()
        };
        let mut groups: Vec<crate::Runs> =
            self.groups.iter().map(|g| crate::Runs { name: g.name.clone(), runs: of(Some(&g.name)) }).collect();
        let rest = of(None);
        if !rest.is_empty() {
            groups.insert(0, crate::Runs { name: "traces".into(), runs: rest });
        }
        let medians = self.groups.iter().map(|g| {
            let of = |spread: Option<Spread>, digits: usize, unit: &str| {
                spread.map_or("unknown".to_owned(), |s| format!("{:.digits$} {unit}", s.median))
            };
            let (elapsed, percent) = (of(g.elapsed_s, 3, "s"), of(g.percent, 2, "%"));
            format!("{}: median {elapsed}, {percent} of the time in violation", g.name)
        });
        let notes = medians.chain(["A bar at the right edge is a group's median.".to_owned()]);
        let notes = notes.chain(left_out(&self.runs, by_command, max_loss)).collect();
        crate::figure("Elapsed time and work conservation", notes, &groups, &repeatable(std::env::args_os()), sheet)
    }
}

/// A run, with its report.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WorkconsRun {
    /// The name of the trace, with folders if needed to distinguish it.
    pub(crate) trace: String,
    /// The group of the run; absent without groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
    /// The sched_ext scheduler that was loaded; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sched_ext: Option<ExtScheduler>,
    #[serde(flatten)]
    pub(crate) report: Report,
    /// The parts of the window of which nothing is known, and what else bears on how far the figures can be trusted.
    pub(crate) coverage: Coverage,
    /// The losses, repairs and doubts of the trace.
    #[serde(serialize_with = "warnings::rows")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<warnings::Row<'static>>"))]
    pub(crate) trust: Diagnostics,
    /// The trace as texts and printed commands name it.
    #[serde(skip)]
    pub(crate) drawable: Drawable,
    /// The first and last instant of the recording, which no other recording shares, under whatever name.
    #[serde(skip)]
    pub(crate) recording: Option<(Ts, Ts)>,
}

#[derive(Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Coverage {
    #[serde(flatten)]
    unknown: crate::Unknown,
    /// CPUs recorded without any event: they are in no figure.
    unobserved: Vec<Cpu>,
    /// A sign that the topology is of another machine; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    doubtful_topology: Option<String>,
    /// The times at which bandwidth control throttled CPUs; absent without probes on it, or if it throttled none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    throttled: Vec<ThrottledCpu>,
    /// The throttled time of all tasks in nanoseconds; absent if the records do not show the cgroups.
    #[serde(skip_serializing_if = "Option::is_none")]
    throttled_task_ns: Option<u64>,
    /// The tasks that were throttled longest, ten at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    throttled_tasks: Vec<ThrottledTask>,
    /// The cgroups whose tasks were throttled longest, ten at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    throttled_cgroups: Vec<NamedCgroup>,
    /// The throttled time of each cgroup by the kernel's own counters over the recording; empty for a part of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kernel_throttled: Vec<KernelThrottled>,
    /// The line on throttling; none if no CPU was throttled.
    #[serde(skip)]
    throttling: Option<String>,
    /// The kernel's lengths of run queues against those by the events; absent without the probe `nr_running`.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_queue_lengths: Option<KernelLengths>,
}

/// The throttled time of a cgroup by the kernel's own counters.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct KernelThrottled {
    /// The path of the cgroup with the limit.
    path: CleanText,
    /// The growth of `throttled_usec` in `cpu.stat` between the start and the end of the recording, in nanoseconds.
    ns: u64,
}

/// The kernel from which on a limit holds a task back as it returns to user mode, and the counters begin there.
const DEFERS_SINCE: (u32, u32) = (6, 18);

/// The throttled times by the counters in the machine file, of a whole recording.
fn kernel_throttled(session: &Session) -> Vec<KernelThrottled> {
    let is_whole = session.window == Window::default() && session.trace.past().is_none();
    let cgroups = session.machine.iter().filter(|_| is_whole).flat_map(|machine| &machine.cgroups);
    let found = cgroups.filter_map(|cgroup| {
        let ns = cgroup.counted("throttled_usec")?.saturating_mul(1000);
        (ns > 0).then(|| KernelThrottled { path: cgroup.path.clone(), ns })
    });
    found.collect()
}

/// The sentence on the kernel's counters; nothing where there are none.
fn kernel_counters(counted: &[KernelThrottled], session: &Session) -> Option<String> {
    let times: Vec<String> = counted.iter().map(|of| format!("{} {}", of.path, Dur(of.ns).human())).collect();
    let which = match session.kernel_release()? >= DEFERS_SINCE {
        true => "since 6.18 that of a CPU counts from its first throttled task on, near the time of tasks",
        false => "until 6.17 the time of CPUs, by limit, without times that have no end",
    };
    (!times.is_empty())
        .then(|| format!("The kernel counted (throttled_usec of cpu.stat; {which}): {}", times.join(", ")))
}

/// A cgroup whose tasks were throttled.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct NamedCgroup {
    /// The path of the cgroup; absent if no machine file has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(flatten)]
    throttled: ThrottledCgroup,
}

/// The medians and the spread of a group's runs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Group {
    /// The name of the group.
    pub(crate) name: String,
    /// The number of runs.
    pub(crate) runs: usize,
    /// The violation in percent of the time; null if no run has it.
    pub(crate) percent: Option<Spread>,
    /// The CPU time lost, in percent of the CPU time; null if no run has it.
    cpu_time_lost_percent: Option<Spread>,
    /// The elapsed time in seconds; null if no run has it.
    pub(crate) elapsed_s: Option<Spread>,
}

impl Coverage {
    /// The throttling of a run alone.
    fn of(session: &Session, report: &Report) -> Coverage {
        let path = |id: CgroupId| session.machine.as_ref()?.cgroup_path(id).map(str::to_owned);
        let throttling = report.throttling.as_ref();
        let counted = kernel_throttled(session);
        let cgroup = |throttled: ThrottledCgroup| NamedCgroup { path: path(CgroupId::new(throttled.id)), throttled };
        let cgroups = throttling.map(Throttling::by_cgroup).unwrap_or_default().into_iter();
        Coverage {
            throttled: throttling.map(Throttling::by_cpu).unwrap_or_default(),
            throttled_task_ns: throttling.and_then(Throttling::task_ns),
            throttled_tasks: throttling.map(Throttling::by_task).unwrap_or_default(),
            throttled_cgroups: cgroups.map(cgroup).collect(),
            throttling: throttling.and_then(|throttling| {
                let text = throttling.text(&report.pending_switches, path)?;
                let counters = kernel_counters(&counted, session);
                Some(counters.map_or(text.clone(), |counters| format!("{text}. {counters}")))
            }),
            kernel_throttled: if throttling.is_some() { counted.clone() } else { Vec::new() },
            ..Coverage::default()
        }
    }
}

impl WorkconsRun {
    /// Makes a run of the findings of the analyses with these options and of those about the trace. Where events were
    /// lost, the trace is read once more for the bounds of the violation.
    pub(crate) fn of(
        session: &Session,
        begin: &BeginArgs,
        options: &Options<'_>,
        (mut report, run_queue_lengths): (Report, Option<KernelLengths>),
        diagnostics: Diagnostics,
    ) -> Result<WorkconsRun> {
        if let Some(violation) = report.violation.as_mut().filter(|_| !report.unknown.gaps.is_empty()) {
            violation.bounds = Some(session.follow(begin, session.window, || Bounds::new(options))?.output);
        }
        report.unknown.add_file(session, &diagnostics);
        let unobserved = session.silent();
        report.cpus.unobserved = unobserved.len() - options.assume_idle.len();
        let unknown = report.unknown.clone();
        let doubtful_topology = session.doubtful_topology();
        let of_session = Coverage::of(session, &report);
        let coverage = Coverage { unknown, unobserved, run_queue_lengths, doubtful_topology, ..of_session };
        let (drawable, recording) = (session.drawable.clone(), session.recording());
        let sched_ext = session.sched_ext.clone();
        Ok(WorkconsRun {
            trace: session.name(),
            group: None,
            sched_ext,
            report,
            coverage,
            trust: diagnostics,
            drawable,
            recording,
        })
    }

    /// The violation as it can be compared with that of other runs, or the reason why it cannot.
    pub(crate) fn violation(&self, max_loss: f64) -> std::result::Result<&Violation, String> {
        match (&self.report.violation, self.report.unknown.why_left_out(max_loss)) {
            (_, Some(why)) => Err(why),
            (Some(violation), None) => Ok(violation),
            (None, None) => Err(self.report.selection_unknown.clone().unwrap_or_default()),
        }
    }

    /// Draws the figure of the run.
    pub(crate) fn run_figure(&self, session: &Session, sheet: &Sheet) -> Result<draw::Figure> {
        drawn_run(session, &self.report, &self.trust, sheet)
    }

    /// The document of this run alone.
    pub(crate) fn document(&self) -> WorkconsDocument {
        WorkconsDocument::of(vec![self.clone()], &Limits::default())
    }
}

/// The medians of the runs of each group, in the order in which the groups were given.
fn medians(runs: &[WorkconsRun], by_command: bool, max_loss: f64) -> Vec<Group> {
    let mut names: Vec<&String> = runs.iter().filter_map(|r| r.group.as_ref()).collect();
    names.dedup();
    let group = |name: &String| {
        let of = |value: &dyn Fn(&WorkconsRun) -> Option<f64>| {
            let values: Vec<f64> = runs.iter().filter(|r| r.group.as_ref() == Some(name)).filter_map(value).collect();
            (!values.is_empty()).then(|| Spread::of(&values))
        };
        Group {
            name: name.clone(),
            runs: runs.iter().filter(|r| r.group.as_ref() == Some(name)).count(),
            percent: of(&|r| Some(r.violation(max_loss).ok()?.percent)),
            cpu_time_lost_percent: of(&|r| Some(r.violation(max_loss).ok()?.cpu_time_lost_percent)),
            elapsed_s: of(&|r| r.report.elapsed(by_command).map(Dur::seconds)),
        }
    };
    names.into_iter().map(group).collect()
}

/// The figures that runs do not have, by the runs' names.
fn left_out(runs: &[WorkconsRun], by_command: bool, max_loss: f64) -> Vec<String> {
    let without = |run: &WorkconsRun| {
        let elapsed = run.report.elapsed(by_command).is_none();
        let no_elapsed = elapsed.then(|| format!("{} has no elapsed time: {}", run.trace, crate::NO_ELAPSED));
        [no_elapsed, run.violation(max_loss).err().map(|why| format!("{} has no violation: {why}", run.trace))]
    };
    runs.iter().flat_map(without).flatten().collect()
}
