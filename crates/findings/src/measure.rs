//! The analyses that the findings are taken from, composed for one pass.

use anyhow::{Context, Result};
use fairness::{Fairness, FairnessReport};
use latency::{Latency, LatencyReport};
use path::{Path, PathSearches};
use sched::{Affinity, Analysis, Chosen, Comm, Cpu, Dur, SchedState, Task, Topology, Tracepoint, Ts};
use session::Session;
use session::section::ReportPage;
use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;
use utilization::{Utilization, UtilizationReport};
use why::{SmallerCpus, SmallerRow, Why, WhyReport};
use workcons::{Report, WorkConservation};

/// The options of all analyses.
pub struct Analyses<'o> {
    conservation: workcons::Options<'o>,
    /// The same without the CPUs that tasks may use; absent where these are unknown.
    unrestricted: Option<workcons::Options<'o>>,
    latency: latency::Options<'o>,
    utilization: utilization::Options,
    /// The options of fairness for all tasks; absent where only some CPUs are asked for.
    fairness: Option<fairness::Options<'o>>,
    /// The same for the tasks outside of the application; absent where no exec shows the application.
    outside: Option<fairness::Options<'o>>,
    /// The instant that counts as zero: the start of the trace.
    zero: Ts,
    /// The name of the command that the recorder started, by the recorder's own command line.
    recorded: Option<Comm>,
    /// The CPUs that tasks may use, where they are known.
    affinity: Option<Arc<Affinity>>,
}

/// The reports of all analyses about one window.
pub struct Measurements {
    pub(crate) workcons: Rc<Report>,
    /// Work conservation if tasks could run on every CPU; absent where no CPUs of tasks are known.
    pub(crate) unrestricted: Option<Report>,
    pub(crate) why: Rc<WhyReport>,
    /// The path of the traced command; absent where the trace does not show the command.
    pub(crate) path: Option<Rc<Path>>,
    pub(crate) latency: Rc<LatencyReport>,
    pub(crate) utilization: Rc<UtilizationReport>,
    /// Absent where only some CPUs are asked for.
    pub(crate) fairness: Option<Rc<FairnessReport>>,
    /// The fairness among the tasks outside of the application, kernel threads aside.
    pub(crate) outside: Option<FairnessReport>,
    /// The tasks on small CPUs while larger ones idled; absent unless CPUs differ in capacity.
    pub(crate) smaller: Option<Vec<SmallerRow>>,
    /// The instant that counts as zero.
    pub(crate) zero: Ts,
}

/// The analyses of other questions. Each of the three members follows a state of its own where threads are free.
type SharedParts<'a> =
    ((WorkConservation<'a>, Why<'a>), (PathSearches, Latency<'a>), (Utilization<'a>, Option<Fairness<'a>>));

/// The analyses that no section of a report runs: work conservation without affinity, fairness outside of the application, tasks on small CPUs.
type OwnParts<'a> = (Option<WorkConservation<'a>>, Option<Fairness<'a>>, Option<SmallerCpus<'a>>);

/// The number of longest waits that are looked at, which is that of the question on fairness.
pub(crate) const WAITS: usize = 5;

/// Whether a task is outside of the application: it neither descends from the traced command nor is a kernel thread.
fn is_outside(task: &Task, _: &SchedState) -> bool {
    !task.kin.descends && !task.kin.is_of_kernel(task.comm) && !task.pid.is_idle()
}

/// The tasks outside of the application.
const OUTSIDE: &Chosen<'static> = &is_outside;

impl<'o> Analyses<'o> {
    /// The options for a window of a session.
    pub fn of(session: &'o Session) -> Analyses<'o> {
        let plain = || workcons::Options { strips: None, ..workcons::Options::plain(session) };
        let Session { from, to, start: zero, .. } = *session;
        let shows_command = session.shown.chosen.are_all() && session.trace.has(Tracepoint::Exec);
        Analyses {
            conservation: plain(),
            unrestricted: session.affinity.as_ref().map(|_| workcons::Options {
                affinity: None,
                unbalanced: false,
                ..plain()
            }),
            latency: latency::Options::plain(session),
            utilization: utilization::Options { interval: whole(from, to), ..utilization::Options::plain(session) },
            fairness: session.shown.chosen.are_all().then(|| fairness_of(from, to, zero)),
            outside: shows_command.then(|| outside(from, to, zero)),
            zero,
            recorded: path::recorded_command(session),
            affinity: session.affinity.clone(),
        }
    }

    /// The options for events of the first `cpus` CPUs between two instants, without a topology. The first instant counts as zero.
    pub fn of_all(from: Ts, to: Ts, cpus: u32) -> Analyses<'o> {
        Analyses {
            conservation: workcons::Options { zero: from, unbalanced: true, ..workcons::Options::default() },
            unrestricted: None,
            latency: latency::Options { zero: from, ..latency::Options::default() },
            utilization: utilization::Options {
                from,
                to,
                zero: from,
                cpus: (0..cpus).map(|cpu| (Cpu(cpu), None)).collect(),
                all_cpus: Vec::new(),
                group_name: String::new(),
                interval: whole(from, to),
                tasks: None,
                topology: Topology::default(),
                balance_interval: Dur(4_000_000),
                ends: Vec::new(),
            },
            fairness: Some(fairness_of(from, to, from)),
            outside: Some(outside(from, to, from)),
            zero: from,
            recorded: None,
            affinity: None,
        }
    }

    /// The same where the events have records of throttling, if `recorded` is true.
    #[cfg(test)]
    pub(crate) fn with_throttling(mut self, recorded: bool) -> Self {
        self.conservation.throttling = recorded;
        self
    }

    /// The same where these CPUs of tasks are known.
    #[cfg(test)]
    pub(crate) fn with_affinity(mut self, affinity: &'o sched::Affinity) -> Self {
        self.conservation.affinity = Some(affinity);
        self.affinity = Some(Arc::new(affinity.clone()));
        self.unrestricted = Some(workcons::Options { zero: self.zero, ..workcons::Options::default() });
        self
    }

    /// The same where the CPUs have these capacities.
    #[cfg(test)]
    pub(crate) fn with_capacities(mut self, capacities: [u32; 2]) -> Self {
        self.conservation.capacities = workcons::Capacities::of((0..).map(Cpu).zip(capacities));
        self
    }

    /// Makes all analyses, anew for each pass.
    pub fn analyses(&self) -> (SharedParts<'_>, OwnParts<'_>) {
        let shared = (
            (WorkConservation::new(&self.conservation), Why::new(&self.conservation)),
            (path::searches(self.recorded, self.zero, 0, self.affinity.as_ref()), Latency::new(&self.latency)),
            (Utilization::new(&self.utilization), self.fairness.as_ref().map(Fairness::new)),
        );
        (shared, self.own())
    }

    /// Makes the analyses that no section of a report has, anew for each pass.
    pub(crate) fn own(&self) -> OwnParts<'_> {
        let unrestricted = self.unrestricted.as_ref().map(WorkConservation::new);
        (unrestricted, self.outside.as_ref().map(Fairness::new), SmallerCpus::new(&self.conservation))
    }

    /// Sorts the outputs of [`Analyses::analyses`].
    pub fn measurements(&self, outputs: <(SharedParts<'_>, OwnParts<'_>) as Analysis>::Output) -> Measurements {
        let (((workcons, why), (paths, latency), (utilization, fairness)), (unrestricted, outside, smaller)) = outputs;
        let path = path::path_of_command(paths);
        Measurements {
            workcons: Rc::new(workcons),
            unrestricted,
            why: Rc::new(why),
            path: path.task.is_some().then(|| Rc::new(path)),
            latency: Rc::new(latency),
            utilization: Rc::new(utilization),
            fairness: fairness.map(Rc::new),
            outside,
            smaller,
            zero: self.zero,
        }
    }

    /// Sorts the outputs of [`Analyses::own`], with the reports that other sections keep on a page.
    pub(crate) fn on_page(
        &self,
        (unrestricted, outside, smaller): <OwnParts<'_> as Analysis>::Output,
        page: &ReportPage<'_>,
    ) -> Result<Measurements> {
        Ok(Measurements {
            workcons: kept(page)?,
            unrestricted,
            why: kept(page)?,
            path: page.kept::<Path>().filter(|path| path.task.is_some()),
            latency: kept(page)?,
            utilization: kept(page)?,
            fairness: page.kept(),
            outside,
            smaller,
            zero: self.zero,
        })
    }
}

/// Takes a report that the section of its question keeps.
fn kept<R: Any>(page: &ReportPage<'_>) -> Result<Rc<R>> {
    page.kept().context("a section that the findings are taken from is missing in the report")
}

/// The whole window as one interval.
fn whole(from: Ts, to: Ts) -> Dur {
    Dur(to.since(from).0.max(1))
}

/// The options of fairness for all tasks.
fn fairness_of<'o>(from: Ts, to: Ts, zero: Ts) -> fairness::Options<'o> {
    fairness::Options { zero, worst: WAITS, ..fairness::Options::new(from, to) }
}

/// The options of fairness for the tasks outside of the application.
fn outside<'o>(from: Ts, to: Ts, zero: Ts) -> fairness::Options<'o> {
    fairness::Options { tasks: Some(OUTSIDE), worst: 0, ..fairness_of(from, to, zero) }
}
