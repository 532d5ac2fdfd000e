//! The analyses that the findings are taken from, composed for one pass.

use critical_path::{CriticalPath, Path};
use fairness::{Fairness, FairnessReport};
use latency::{Latency, LatencyReport};
use sched::{Analysis, Chosen, Comm, Cpu, Dur, SchedState, Task, Topology, Ts};
use session::Session;
use utilization::{Utilization, UtilizationReport};
use why::{Why, WhyReport};
use workcons::{Report, WorkConservation};

/// The options of all analyses.
pub struct Analyses<'o> {
    conservation: workcons::Options<'o>,
    /// The same without the CPUs that tasks may use; absent where these are unknown.
    unrestricted: Option<workcons::Options<'o>>,
    latency: latency::Options<'o>,
    utilization: utilization::Options,
    /// The options of fairness for all tasks, and for those outside of the application; absent where only some CPUs are asked for.
    fairness: Option<[fairness::Options<'o>; 2]>,
    /// The instant that counts as zero: the start of the trace.
    zero: Ts,
    /// The name of the command that the recorder started, by the recorder's own command line.
    recorded: Option<Comm>,
}

/// The reports of all analyses about one window.
pub struct Measurements {
    pub(crate) workcons: Report,
    /// Work conservation if tasks could run on every CPU; absent where no CPUs of tasks are known.
    pub(crate) unrestricted: Option<Report>,
    pub(crate) why: WhyReport,
    /// The path of the traced command. Its task is absent where the trace does not show the command.
    pub(crate) path: Path,
    pub(crate) latency: LatencyReport,
    pub(crate) utilization: UtilizationReport,
    pub(crate) fairness: Option<FairnessReport>,
    /// The fairness among the tasks outside of the application, kernel threads aside.
    pub(crate) outside: Option<FairnessReport>,
    /// The instant that counts as zero.
    pub(crate) zero: Ts,
}

/// The analyses: each of the three members follows a state of its own where threads are free.
type Parts<'a> = (
    (WorkConservation<'a>, Option<WorkConservation<'a>>, Why<'a>),
    (CriticalPath, Option<CriticalPath>, Latency<'a>),
    (Utilization<'a>, Option<Vec<Fairness<'a>>>),
);

/// The maximum number of longest waits that are looked at.
const WAITS: usize = 8;

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
        Analyses {
            conservation: plain(),
            unrestricted: session.affinity.as_ref().map(|_| workcons::Options { affinity: None, ..plain() }),
            latency: latency::Options::plain(session),
            utilization: utilization::Options { interval: whole(from, to), ..utilization::Options::plain(session) },
            fairness: session.shown.chosen.are_all().then(|| fairness_of(from, to, zero)),
            zero,
            recorded: critical_path::recorded_command(session),
        }
    }

    /// The options for events of the first `cpus` CPUs between two instants, without a topology. The first instant counts as zero.
    pub fn of_all(from: Ts, to: Ts, cpus: u32) -> Analyses<'o> {
        Analyses {
            conservation: workcons::Options { zero: from, ..workcons::Options::default() },
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
            },
            fairness: Some(fairness_of(from, to, from)),
            zero: from,
            recorded: None,
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
        self.unrestricted = Some(workcons::Options { zero: self.zero, ..workcons::Options::default() });
        self
    }

    /// Makes the analyses, anew for each pass.
    pub fn analyses(&self) -> Parts<'_> {
        let path =
            |command| CriticalPath::new(critical_path::Options { pid: None, command, zero: self.zero, longest: 0 });
        let fairness = self.fairness.as_ref().map(|both| both.iter().map(Fairness::new).collect());
        (
            (
                WorkConservation::new(&self.conservation),
                self.unrestricted.as_ref().map(WorkConservation::new),
                Why::new(&self.conservation),
            ),
            (path(None), self.recorded.map(|name| path(Some(name))), Latency::new(&self.latency)),
            (Utilization::new(&self.utilization), fairness),
        )
    }

    /// Sorts the outputs of [`Analyses::analyses`].
    pub fn measurements(&self, outputs: <Parts<'_> as Analysis>::Output) -> Measurements {
        let ((workcons, unrestricted, why), (path, recorded, latency), (utilization, fairness)) = outputs;
        let mut fairness = fairness.unwrap_or_default().into_iter();
        let path = match recorded {
            Some(recorded) if path.task.is_none() => recorded,
            _ => path,
        };
        let (fairness, outside) = (fairness.next(), fairness.next());
        Measurements { workcons, unrestricted, why, path, latency, utilization, fairness, outside, zero: self.zero }
    }
}

/// The whole window as one interval.
fn whole(from: Ts, to: Ts) -> Dur {
    Dur(to.since(from).0.max(1))
}

/// The options of fairness for all tasks, and for those outside of the application.
fn fairness_of<'o>(from: Ts, to: Ts, zero: Ts) -> [fairness::Options<'o>; 2] {
    let all = || fairness::Options { zero, worst: WAITS, ..fairness::Options::new(from, to) };
    [all(), fairness::Options { tasks: Some(OUTSIDE), worst: 0, ..all() }]
}
