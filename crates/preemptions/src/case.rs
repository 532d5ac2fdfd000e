//! The requests that are listed: the longest of all, and those that stayed lazy for longer than a tick.

use crate::cpu::{Asker, Between, Ending, Kind, Pending};
use sched::{Comm, Cpu, Dur, Pid, TaskRef, Ts};
use serde::Serialize;

/// The task that ran in place of a preempted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Waited {
    /// The PID of the task that ran next.
    pub pid: Pid,
    /// The command name of that task.
    pub command: Comm,
    /// The time for which that task had waited on run queues, in nanoseconds. Absent if its beginning is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<Dur>,
}

/// A request to reschedule, from when it was made to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PreemptionCase {
    /// The CPU of the running task that was asked.
    pub cpu: Cpu,
    /// The PID of the task that was asked.
    pub pid: Pid,
    /// The command name of the task that was asked.
    pub command: Comm,
    /// The kind of the request.
    pub kind: Kind,
    /// The origin of the request.
    pub asker: Asker,
    /// The PID of the task that was woken, created or moved, where the origin is that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asker_pid: Option<Pid>,
    /// The command name of the task that was woken, created or moved, where the origin is that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asker_command: Option<Comm>,
    /// The earliest instant at which the request can have been made, in nanoseconds of the trace's clock.
    pub earliest_ns: Ts,
    /// The latest instant at which the request can have been made, in nanoseconds of the trace's clock; the same as the earliest
    /// where the probe recorded it.
    pub latest_ns: Ts,
    /// The latest instant at which the request can have been made, in nanoseconds from the start of the trace.
    pub start_in_trace_ns: u64,
    /// The end of the request.
    pub ending: Ending,
    /// The instant of the end, in nanoseconds of the trace's clock.
    pub end_ns: Ts,
    /// The least time that can have passed from the request to its end, in nanoseconds.
    pub at_least_ns: Dur,
    /// The greatest time that can have passed from the request to its end, in nanoseconds.
    pub at_most_ns: Dur,
    /// The least time for which the request can have been lazy, in nanoseconds: until it was made immediate, or ended. Absent
    /// for a request that was not lazy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lazy_at_least_ns: Option<Dur>,
    /// The greatest time for which the request can have been lazy, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lazy_at_most_ns: Option<Dur>,
    /// Whether the lazy request was made immediate before it ended, by an event or by the switch inside the kernel that ended it.
    pub made_immediate: bool,
    /// The task that ran next, if the asked one was switched out while it could run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Waited>,
    /// The part of the request for CPU time (the time slice) that the preempted task had left, in nanoseconds. Absent where the
    /// recording does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_left_ns: Option<Dur>,
}

/// A request that has ended.
pub(crate) struct EndedRequest<'p> {
    pub(crate) pending: &'p Pending,
    pub(crate) at: Between,
    pub(crate) ending: Ending,
    pub(crate) lengths: [Dur; 2],
    pub(crate) prev: TaskRef,
    pub(crate) next: TaskRef,
    pub(crate) waited: Option<Dur>,
    pub(crate) lazy: Option<[Dur; 2]>,
}

impl EndedRequest<'_> {
    /// The request as it is listed; `zero` is the start of the trace.
    pub(crate) fn case(&self, cpu: Cpu, zero: Ts) -> PreemptionCase {
        let asked = self.pending.asked;
        let task = asked.filter(|asked| matches!(asked.asker, Asker::Wakeup | Asker::Fork | Asker::Balance));
        let next = Waited { pid: self.next.pid, command: self.next.comm, waited_ns: self.waited };
        PreemptionCase {
            cpu,
            pid: self.prev.pid,
            command: self.prev.comm,
            kind: self.pending.kind,
            asker: asked.map_or(Asker::Unseen, |asked| asked.asker),
            asker_pid: task.map(|task| task.pid),
            asker_command: task.map(|task| task.comm),
            earliest_ns: self.pending.at.earliest,
            latest_ns: self.pending.at.latest,
            start_in_trace_ns: self.pending.at.latest.since(zero).0,
            ending: self.ending,
            end_ns: self.at.latest,
            at_least_ns: self.lengths[0],
            at_most_ns: self.lengths[1],
            lazy_at_least_ns: self.lazy.map(|[least, _]| least),
            lazy_at_most_ns: self.lazy.map(|[_, most]| most),
            made_immediate: self.pending.promoted.is_some(),
            next: self.ending.is_preemption().then_some(next),
            request_left_ns: None,
        }
    }
}

/// The listed requests.
#[derive(Clone, Debug)]
pub(crate) struct Cases {
    most: usize,
    /// The longest requests, the longest first.
    pub(crate) longest: Vec<PreemptionCase>,
    /// The requests that stayed lazy for longer than a tick, the longest first.
    pub(crate) long_lazy: Vec<PreemptionCase>,
    /// The number of requests that stayed lazy for longer than a tick.
    pub(crate) long_count: u64,
    /// The number of lazy requests.
    pub(crate) lazy_count: u64,
}

impl Cases {
    pub(crate) fn new(most: usize) -> Cases {
        Cases { most, longest: Vec::new(), long_lazy: Vec::new(), long_count: 0, lazy_count: 0 }
    }

    /// Adds a request; `is_long` if it stayed lazy for longer than a tick.
    pub(crate) fn add(&mut self, case: PreemptionCase, is_long: bool) {
        let most = self.most;
        keep(&mut self.longest, most, case, |case| case.at_least_ns);
        self.lazy_count += u64::from(case.kind == Kind::Lazy);
        if is_long {
            self.long_count += 1;
            keep(&mut self.long_lazy, most, case, |case| case.lazy_at_least_ns.unwrap_or_default());
        }
    }

    /// Notes what a task had left of its request, as it was preempted at this instant.
    pub(crate) fn left(&mut self, pid: Pid, at: Ts, left: Dur) {
        let cases = self.longest.iter_mut().chain(&mut self.long_lazy);
        for case in cases.filter(|case| (case.pid, case.end_ns) == (pid, at)) {
            case.request_left_ns = Some(left);
        }
    }
}

/// Keeps a case among the longest by `length`, those of the same length in the order of time.
fn keep(cases: &mut Vec<PreemptionCase>, most: usize, case: PreemptionCase, length: impl Fn(&PreemptionCase) -> Dur) {
    let place = cases.partition_point(|kept| length(kept) >= length(&case));
    if place < most {
        cases.insert(place, case);
        cases.truncate(most);
    }
}
