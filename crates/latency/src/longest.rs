//! The waits that are listed, and the longest ones, which are kept.

use crate::{Case, Latency, ListedWait, Measure, Placement, TakesWait, Wait};
use sched::{Comm, Cpu, Dur, Pid, Task, Ts};

/// One of the longest waits.
#[derive(Clone, Debug)]
pub(crate) struct LongWait {
    pub(crate) case: Case,
    /// The number of ends that were left to the pieces before by the time the wait ended.
    pub(crate) left: usize,
}

impl Latency<'_> {
    /// Whether a wait of this length is one of the longest of its kind.
    pub(crate) fn is_long(&self, measure: Measure, length: Dur) -> bool {
        self.least[measure as usize].is_none_or(|least| length > least)
    }

    /// Lists a wait that ends now; of a wakeup that is known in parts, `queued` is the start of the second.
    pub(crate) fn list(
        &mut self,
        take: &TakesWait<'_>,
        task: &Task,
        wait: &Wait,
        queued: Option<Ts>,
        cpu: Cpu,
        now: Ts,
    ) {
        let Some(start) = wait.start.or(queued) else { return };
        let is_wakeup = wait.measure == Measure::Wakeup;
        let topology = &self.options.topology;
        let listed = ListedWait {
            case: self.case(task, wait, start, wait.length(start, now), (cpu, now)),
            task: task.into(),
            start_is_known: wait.start.is_some(),
            queued,
            ran: now,
            placement: is_wakeup.then(|| Placement::of(wait.slept_on, wait.queued_on, topology)),
            slept_on: wait.slept_on,
        };
        match &mut self.open_ends {
            Some(open_ends) => open_ends.list(listed),
            None => take(&listed),
        }
    }

    /// The record of a wait that ends now.
    pub(crate) fn case(&self, task: &Task, wait: &Wait, start: Ts, length: Dur, (cpu, now): (Cpu, Ts)) -> Case {
        let after = self.switched_out.unwrap_or((Pid::IDLE, Comm::EMPTY));
        Case {
            measure: wait.measure,
            start_ns: start,
            start_in_trace_ns: start.since(self.options.zero).0,
            duration_ns: length,
            throttled_ns: wait.throttled,
            pid: task.pid,
            command: task.comm,
            waker: wait.waker,
            waker_command: wait.waker_command,
            queued_on: wait.queued_on,
            ran_on: cpu,
            behind: wait.behind.0,
            behind_ns: wait.behind_until.unwrap_or(now).min(now).since(start),
            behind_command: wait.behind.1,
            behind_within_slice: wait.within_slice,
            behind_by: wait.is_fair_first.then_some(self.options.fair_before),
            after: after.0,
            after_command: after.1,
            idle_cpus: wait.idle_cpus,
        }
    }

    /// Keeps a wait if it is one of the longest of its kind.
    pub(crate) fn keep_if_long(&mut self, case: Case) {
        if self.is_long(case.measure, case.duration_ns) {
            self.keep(case);
        }
    }

    /// Keeps a wait as one of the longest of its kind.
    pub(crate) fn keep(&mut self, case: Case) {
        let measure = case.measure;
        let at = self.worst.partition_point(|kept| kept.case.duration_ns >= case.duration_ns);
        let left = self.open_ends.as_ref().map_or(0, |open_ends| open_ends.number());
        self.worst.insert(at, LongWait { case, left });
        let of_this = |kept: &LongWait| kept.case.measure == measure;
        if self.worst.iter().filter(|kept| of_this(kept)).count() > self.options.worst
            && let Some(last) = self.worst.iter().rposition(of_this)
        {
            self.worst.remove(last);
        }
        let mut kept = self.worst.iter().filter(|kept| of_this(kept));
        self.least[measure as usize] = kept.nth(self.options.worst - 1).map(|kept| kept.case.duration_ns);
    }
}
