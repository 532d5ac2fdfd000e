//! The analyses that the findings are taken from, composed for one pass.

use crate::judged::JUDGED;
use crate::parts::{LimitedCgroup, limited};
use anyhow::{Context, Result};
use entitlement::{ShareMeter, SharesReport, WeightTree};
use fairness::{Fairness, FairnessReport};
use jobs::{Jobs, JobsReport};
use latency::{Latency, LatencyReport};
use membership::TasksBy;
use neighbours::{By, Matrix, NeighboursReport};
use path::{Path, PathSearches};
use residency::{Crowded, CrowdedCores};
use sched::{Affinity, Analysis, Chosen, Comm, Cpu, Dur, SchedState, Task, Topology, Tracepoint, Ts};
use session::Session;
use session::section::ReportPage;
use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;
use utilization::{SerialTail, TailSearch, Utilization, UtilizationReport};
use why::{BarredRow, BarredTasks, SmallerCpus, SmallerRow, Why, WhyReport};
use workcons::{Report, WorkConservation};

/// The options of all analyses.
pub struct Analyses<'o> {
    conservation: workcons::Options<'o>,
    /// The same without the CPUs that tasks may use; absent where these are unknown.
    unrestricted: Option<workcons::Options<'o>>,
    latency: latency::Options<'o>,
    jobs: jobs::Options<'o>,
    /// The options of neighbours by command.
    by_command: neighbours::Options<'o>,
    /// The options of neighbours by cgroup, and the weights of the cgroups where they are known; absent where no cgroups are.
    by_cgroup: Option<(neighbours::Options<'o>, Option<WeightTree>)>,
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
    /// The cgroups with a limit of CPU time, by the machine file.
    limited: Vec<LimitedCgroup>,
}

/// The reports of all analyses about one window.
pub struct Measurements {
    pub(crate) workcons: Rc<Report>,
    /// Work conservation if tasks could run on every CPU; absent where no CPUs of tasks are known.
    pub(crate) unrestricted: Option<Report>,
    pub(crate) why: Rc<WhyReport>,
    /// The path of the traced command; absent where the trace does not show the command.
    pub(crate) path: Option<Rc<Path>>,
    /// The wakeup latencies of the judged tasks, by command.
    pub(crate) latency: LatencyReport,
    /// The jobs of the judged tasks.
    pub(crate) jobs: JobsReport,
    /// The waiting by command.
    pub(crate) by_command: NeighboursReport,
    /// The waiting by cgroup; absent where no cgroups are known.
    pub(crate) by_cgroup: Option<NeighboursReport>,
    /// The shares of cgroups; absent where no weights are known.
    pub(crate) shares: Option<SharesReport>,
    pub(crate) utilization: Rc<UtilizationReport>,
    /// The serial tail of the application; absent where there is none.
    pub(crate) tail: Option<SerialTail>,
    /// Absent where only some CPUs are asked for.
    pub(crate) fairness: Option<Rc<FairnessReport>>,
    /// The times of the tasks outside of the application, kernel threads aside.
    pub(crate) outside: Option<FairnessReport>,
    /// The tasks on small CPUs while larger ones idled; absent unless CPUs differ in capacity.
    pub(crate) smaller: Option<Vec<SmallerRow>>,
    /// The tasks that waited beside idle CPUs which they may not use; absent where none is known to be restricted.
    pub(crate) barred: Option<Vec<BarredRow>>,
    /// The time during which tasks shared cores while whole cores idled; absent unless cores are known to have several CPUs.
    pub(crate) crowded: Option<Crowded>,
    /// The cgroups with a limit of CPU time, by the machine file.
    pub(crate) limited: Vec<LimitedCgroup>,
    /// The instant that counts as zero.
    pub(crate) zero: Ts,
}

/// The analyses of other questions.
type SharedParts<'a> = (ConservedParts<'a>, PathSearches, TimesParts<'a>);
type ConservedParts<'a> = (WorkConservation<'a>, Why<'a>);
type TimesParts<'a> = (Utilization<'a>, Option<Fairness<'a>>);

/// The analyses whose reports no section keeps.
type OwnParts<'a> = (FoundParts<'a>, PeerParts<'a>);
/// Work conservation without affinity, fairness outside of the application, tasks on small CPUs, beside idle ones that they may not use and on
/// shared cores, the latencies of judged tasks alone, and the serial tail.
type FoundParts<'a> = (
    (Option<WorkConservation<'a>>, Option<Fairness<'a>>),
    (Option<SmallerCpus<'a>>, Option<BarredTasks<'a>>, Option<CrowdedCores>),
    (Latency<'a>, TailSearch<'a>),
);
/// Jobs of judged tasks, neighbours by command and by cgroup, and shares by weight.
type PeerParts<'a> = (Jobs<'a>, Matrix<'a>, Option<Matrix<'a>>, Option<ShareMeter<'a>>);

/// The analyses of all findings.
pub(crate) type AllParts<'a> = (SharedParts<'a>, OwnParts<'a>);

/// All analyses, in two parts that take about as long as each other.
pub(crate) type FirstPart<'a> = (ConservedParts<'a>, TimesParts<'a>, FoundParts<'a>);
pub(crate) type SecondPart<'a> = (PathSearches, PeerParts<'a>);

/// The outputs of some analyses.
pub(crate) type Output<A> = <A as Analysis>::Output;

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
            latency: latency::Options {
                tasks: Some(JUDGED),
                by: TasksBy::Command,
                groups: session.task_groups(TasksBy::Command).ok(),
                worst: WAITS,
                ..latency::Options::plain(session)
            },
            jobs: jobs::Options {
                tasks: Some(JUDGED),
                draws: false,
                deadlines: session.deadline_params(),
                ..jobs::Options::plain(session)
            },
            by_command: neighbours::plain(session, Some(By::Command)),
            by_cgroup: by_cgroup(session),
            utilization: utilization::Options { interval: whole(from, to), ..utilization::Options::plain(session) },
            fairness: session
                .shown
                .chosen
                .are_all()
                .then(|| fairness::Options { affinity: session.affinity.clone(), ..fairness_of(from, to, zero) }),
            outside: shows_command.then(|| outside(from, to, zero)),
            zero,
            recorded: path::recorded_command(session),
            affinity: session.affinity.clone(),
            limited: limited(session),
        }
    }

    /// The options for events of the first `cpus` CPUs between two instants, without a topology. The first instant counts as zero.
    pub fn of_all(from: Ts, to: Ts, cpus: u32) -> Analyses<'o> {
        Analyses {
            conservation: workcons::Options { zero: from, unbalanced: true, ..workcons::Options::default() },
            unrestricted: None,
            latency: latency::Options {
                tasks: Some(JUDGED),
                by: TasksBy::Command,
                zero: from,
                worst: WAITS,
                ..latency::Options::default()
            },
            jobs: jobs::Options { tasks: Some(JUDGED), worst: WAITS, zero: from, ..jobs::Options::default() },
            by_command: neighbours::Options::new(By::Command),
            by_cgroup: None,
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
            limited: Vec::new(),
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
        let affinity = Some(Arc::new(affinity.clone()));
        self.fairness = self.fairness.map(|fairness| fairness::Options { affinity: affinity.clone(), ..fairness });
        self.affinity = affinity;
        self.unrestricted = Some(workcons::Options { zero: self.zero, ..workcons::Options::default() });
        self
    }

    /// The same where these cgroups have limits.
    #[cfg(test)]
    pub(crate) fn with_limits(mut self, limited: Vec<LimitedCgroup>) -> Self {
        self.limited = limited;
        self
    }

    /// The same where these cgroups of tasks are known, and no weights of theirs.
    #[cfg(test)]
    pub(crate) fn with_cgroups(mut self, cgroups: membership::Cgroups) -> Self {
        self.by_cgroup = Some((neighbours::Options { cgroups, ..neighbours::Options::new(By::Cgroup) }, None));
        self
    }

    /// The same where the CPUs have these capacities.
    #[cfg(test)]
    pub(crate) fn with_capacities(mut self, capacities: [u32; 2]) -> Self {
        self.conservation.capacities = workcons::Capacities::of((0..).map(Cpu).zip(capacities));
        self
    }

    /// Makes all analyses, anew for each pass and each piece of one.
    pub fn analyses(&self) -> (SharedParts<'_>, OwnParts<'_>) {
        let shared = (
            (WorkConservation::new(&self.conservation), Why::new(&self.conservation)),
            path::searches(self.recorded, self.zero, WAITS, self.affinity.as_ref()),
            (Utilization::new(&self.utilization), self.fairness.as_ref().map(Fairness::new)),
        );
        (shared, self.own())
    }

    /// Makes all analyses in two parts, anew for each pass: one for each of two threads.
    pub(crate) fn in_two(&self) -> (FirstPart<'_>, SecondPart<'_>) {
        let ((conserved, paths, times), (found, peers)) = self.analyses();
        ((conserved, times, found), (paths, peers))
    }

    /// Makes those analyses of which no section of a report has the results, anew for each pass and each piece of one.
    pub(crate) fn own(&self) -> OwnParts<'_> {
        let unrestricted = self.unrestricted.as_ref().map(WorkConservation::new);
        let outside = self.outside.as_ref().map(Fairness::new);
        let crowded = CrowdedCores::new(&self.utilization.topology, self.affinity.clone());
        let cpus = (SmallerCpus::new(&self.conservation), BarredTasks::new(&self.conservation), crowded);
        let found = ((unrestricted, outside), cpus, (Latency::new(&self.latency), TailSearch::new(&self.utilization)));
        (found, self.peers())
    }

    fn peers(&self) -> PeerParts<'_> {
        let of_cgroups = self.by_cgroup.as_ref();
        let shares = of_cgroups.and_then(|(options, tree)| Some(ShareMeter::new(tree.as_ref()?, &options.cgroups)));
        let by_cgroup = of_cgroups.map(|(options, _)| Matrix::new(options));
        (Jobs::new(&self.jobs), Matrix::new(&self.by_command), by_cgroup, shares)
    }

    /// Sorts the outputs of [`Analyses::analyses`].
    pub fn measurements(&self, outputs: Output<(SharedParts<'_>, OwnParts<'_>)>) -> Measurements {
        let (((workcons, why), paths, (utilization, fairness)), own) = outputs;
        let path = path::path_of_command(paths);
        let path = path.task.is_some().then(|| Rc::new(path));
        let fairness = fairness.map(Rc::new);
        self.sorted((Rc::new(workcons), Rc::new(why), path, Rc::new(utilization), fairness), own)
    }

    /// Sorts the outputs of [`Analyses::own`], with the reports that other sections keep on a page.
    pub(crate) fn on_page(&self, own: Output<OwnParts<'_>>, page: &ReportPage<'_>) -> Result<Measurements> {
        let path = page.kept::<Path>().filter(|path| path.task.is_some());
        Ok(self.sorted((kept(page)?, kept(page)?, path, kept(page)?, page.kept()), own))
    }

    fn sorted(
        &self,
        (workcons, why, path, utilization, fairness): SharedReports,
        (found, (jobs, by_command, by_cgroup, shares)): Output<OwnParts<'_>>,
    ) -> Measurements {
        let ((unrestricted, outside), (smaller, barred, crowded), (latency, tail)) = found;
        Measurements {
            workcons,
            unrestricted,
            why,
            path,
            latency,
            jobs,
            by_command,
            by_cgroup,
            shares,
            utilization,
            fairness,
            outside,
            smaller,
            tail,
            barred,
            crowded,
            limited: self.limited.clone(),
            zero: self.zero,
        }
    }
}

/// The reports that sections of a report have.
type SharedReports = (Rc<Report>, Rc<WhyReport>, Option<Rc<Path>>, Rc<UtilizationReport>, Option<Rc<FairnessReport>>);

/// The outputs of [`Analyses::in_two`], as those of [`Analyses::analyses`].
pub(crate) fn both<'a>(
    (conserved, times, found): Output<FirstPart<'a>>,
    (paths, peers): Output<SecondPart<'a>>,
) -> Output<AllParts<'a>> {
    ((conserved, paths, times), (found, peers))
}

/// The options of neighbours by cgroup, with the weights of the cgroups; nothing where fewer than two cgroups are known.
fn by_cgroup(session: &Session) -> Option<(neighbours::Options<'static>, Option<WeightTree>)> {
    let options = neighbours::plain(session, None);
    let tree = WeightTree::of(session.machine.as_ref(), &options.cgroups).ok();
    (options.by == By::Cgroup).then_some((options, tree))
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
    fairness::Options { tasks: Some(OUTSIDE), worst: 0, times_alone: true, ..fairness_of(from, to, zero) }
}
