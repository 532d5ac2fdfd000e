//! The stretch of the trace that a finding speaks of, and its view on the page of `schedviz view`.

use crate::{Measurements, Observation};
use latency::Measure;
use sched::{Cpu, Dur, Pid};
use timeline::PageAddress;
use workcons::Waiters;

/// The stretch of the trace that a finding speaks of, or the longest of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindingPlace {
    /// The start of the stretch, in nanoseconds from the start of the trace.
    pub start_in_trace_ns: u64,
    /// The length of the stretch, in nanoseconds.
    pub length_ns: Dur,
    /// The CPU of the stretch, where it has one.
    pub cpu: Option<Cpu>,
    /// The task of the stretch, where it has one.
    pub pid: Option<Pid>,
    /// The kind of the stretch.
    pub kind: PlaceKind,
}

/// The kind of the stretch that a finding speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceKind {
    /// A wait of the task, from its queue to its run.
    Wait,
    /// An episode of violation, as `why` counts waiting tasks.
    Episode,
    /// A stretch that is neither a wait nor an episode.
    Stretch,
}

impl FindingPlace {
    fn new(start_in_trace_ns: u64, length_ns: Dur, kind: PlaceKind) -> FindingPlace {
        FindingPlace { start_in_trace_ns, length_ns, cpu: None, pid: None, kind }
    }

    fn of(self, pid: impl Into<Option<Pid>>, cpu: impl Into<Option<Cpu>>) -> FindingPlace {
        FindingPlace { pid: pid.into(), cpu: cpu.into(), ..self }
    }

    /// The place that a finding speaks of, or the longest of its kind; nothing for one that has no place.
    pub(crate) fn find(observation: &Observation, found: &Measurements) -> Option<FindingPlace> {
        use PlaceKind::{Stretch, Wait};
        let at = FindingPlace::new;
        Some(match observation {
            Observation::Affinity { is_known: true, most, .. } => longest_wait(found, most.as_ref()?.pid)?,
            Observation::Violation { .. } | Observation::Affinity { .. } => longest_episode(found)?,
            Observation::PathQueued { .. } => longest_on_path(found, None)?,
            Observation::WakerQueued { until_pid, .. } => longest_on_path(found, Some(*until_pid))?,
            Observation::HeldBack { start_in_trace_ns, longest_ns, cpu, pid, .. } => {
                at(*start_in_trace_ns, *longest_ns, Stretch).of(*pid, *cpu)
            }
            Observation::Unbalanced { start_in_trace_ns, longest_ns, .. } => {
                at(*start_in_trace_ns, *longest_ns, Stretch)
            }
            Observation::Starved { start_in_trace_ns, longest_ns, cpu, pid, .. } => {
                at(*start_in_trace_ns, *longest_ns, Wait).of(*pid, *cpu)
            }
            Observation::Herds { start_in_trace_ns, drained_after_ns, dest, .. } => {
                at(*start_in_trace_ns, drained_after_ns.unwrap_or_default(), Stretch).of(None, *dest)
            }
            Observation::SlowWakeups { .. } => latest_wakeup(found, None)?,
            Observation::LateCommand { latest, .. } => latest_wakeup(found, Some(&latest.command))?,
            Observation::MissedPeriods { latest, .. } => {
                let job = latest.as_ref()?;
                at(job.release_in_trace_ns, job.response_ns, Stretch).of(job.pid, None)
            }
            _ => return None,
        })
    }

    /// The view of the place on the page of `schedviz view`.
    pub fn on_page(&self) -> PageAddress {
        let (start, length) = (self.start_in_trace_ns, self.length_ns);
        let view = match (self.kind, self.pid) {
            (PlaceKind::Wait, Some(pid)) => PageAddress::wait(pid, start, length),
            (PlaceKind::Episode, pid) => PageAddress::episode(start, length).task(pid),
            (PlaceKind::Wait | PlaceKind::Stretch, pid) => PageAddress::selection(start, length).task(pid),
        };
        // A highlighted task shows its CPU itself.
        view.cursor(self.cpu.filter(|_| self.pid.is_none()))
    }
}

/// The longest episode of violation, with the task that waited there first.
fn longest_episode(found: &Measurements) -> Option<FindingPlace> {
    let episode = found.workcons.longest().first()?;
    let kind = if found.workcons.waiters == Waiters::Movable { PlaceKind::Episode } else { PlaceKind::Stretch };
    let task = episode.scene.waiting.first();
    let place = FindingPlace::new(episode.start_in_trace_ns, episode.duration_ns, kind);
    Some(place.of(task.map(|task| task.pid), task.map(|task| task.cpu)))
}

/// The longest wait of a task: on the critical path, or else one of the longest of all tasks.
fn longest_wait(found: &Measurements, pid: Pid) -> Option<FindingPlace> {
    let starved = || {
        let wait = found.fairness.as_ref()?.starved.iter().find(|wait| wait.pid == pid)?;
        let place = FindingPlace::new(wait.start_in_trace_ns, wait.duration_ns, PlaceKind::Wait);
        Some(place.of(wait.pid, wait.cpu))
    };
    longest_on_path(found, Some(pid)).or_else(starved)
}

/// The longest queued segment of the critical path, of any task or of this one.
fn longest_on_path(found: &Measurements, pid: Option<Pid>) -> Option<FindingPlace> {
    let queued = &found.path.as_ref()?.longest_queued;
    let longest = queued.iter().find(|queued| pid.is_none_or(|pid| queued.task.pid == pid))?;
    let place = FindingPlace::new(longest.start_in_trace_ns, longest.duration_ns, PlaceKind::Wait);
    Some(place.of(longest.task.pid, longest.cpu))
}

/// The longest wakeup latency, of any task or of one with this command.
fn latest_wakeup(found: &Measurements, command: Option<&str>) -> Option<FindingPlace> {
    let mut wakeups = found.latency.worst.iter().filter(|case| case.measure == Measure::Wakeup);
    let case = wakeups.find(|case| command.is_none_or(|command| case.command.to_string() == command))?;
    let place = FindingPlace::new(case.start_in_trace_ns, case.until_run(), PlaceKind::Wait);
    Some(place.of(case.pid, case.queued_on))
}
