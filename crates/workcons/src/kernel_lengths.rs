//! The lengths of run queues by the kernel against those of the state, where `sched_update_nr_running_tp` was probed.
//!
//! The kernel changes a length in the middle of a wakeup or a move, before or behind the event of it. Both are compared where
//! the CPU itself switches: it holds the lock of its run queue then.

use sched::probe::Probe;
use sched::seeded::{SeededMap, SeededSet};
use sched::{Analysis, Cpu, Current, EventKind, Pid, SchedEvent, SchedState, StateClass, TaskState, Ts};
use serde::Serialize;

/// The number of disagreements that are listed.
const LISTED: usize = 5;

/// An instant at which the two lengths differ for no known reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Disagreement {
    /// The switch, on the trace's clock, in nanoseconds.
    pub ts_ns: Ts,
    /// The CPU of the run queue.
    pub cpu: Cpu,
    /// The length by the kernel, the running task included.
    pub kernel: u32,
    /// The length by the events, the running task included.
    pub events: u32,
}

/// The kernel's lengths of run queues against those by the events, at each switch of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelLengths {
    /// The number of switches at which both lengths are known.
    pub compared: u64,
    /// The number of these at which they are equal.
    pub equal: u64,
    /// The kernel's is longer by tasks that sleep and are still queued (delayed dequeue, since 6.12).
    pub delayed_dequeue: u64,
    /// The kernel's is shorter by tasks that another CPU has detached, and not yet queued here.
    pub in_flight: u64,
    /// The kernel's is shorter otherwise: tasks that are throttled, or that bandwidth control holds back.
    pub shorter: u64,
    /// The kernel's is longer for no known reason.
    pub longer: u64,
    /// The first of the last two kinds.
    pub first: Vec<Disagreement>,
}

impl KernelLengths {
    /// The line for people.
    pub fn text(&self) -> String {
        let KernelLengths { compared, equal, delayed_dequeue, in_flight, shorter, longer, first } = self;
        let mut reasons = Vec::new();
        for (n, words) in [
            (delayed_dequeue, "longer by sleeping tasks that are still queued (delayed dequeue)"),
            (in_flight, "shorter by tasks on their way from another CPU"),
            (shorter, "shorter otherwise (throttled tasks)"),
            (longer, "longer for no known reason"),
        ] {
            if *n > 0 {
                reasons.push(format!("{} {words}", sched::nouns::counted(*n, "time")));
            }
        }
        let reasons = if reasons.is_empty() { String::new() } else { format!("; {}", reasons.join(", ")) };
        let switches = sched::nouns::counted(*compared, "switch");
        let first = first.first().map_or(String::new(), |first| {
            format!(
                "; first on CPU {} at {} ns: {} by the kernel, {} by the events",
                first.cpu, first.ts_ns.0, first.kernel, first.events
            )
        });
        format!(
            "run-queue lengths of the kernel (sched_update_nr_running_tp): equal at {equal} of {switches}{reasons}{first}"
        )
    }
}

/// The kernel's view of one run queue.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// The length by the kernel, the running task included; absent before the first record, and behind a loss.
    length: Option<u32>,
    /// The task in whose context it became shorter on its own CPU since the last switch.
    shortened_by: Option<Pid>,
    /// The tasks that sleep, and whose dequeue no record has shown.
    delayed: SeededSet<Pid>,
    /// The number of tasks that were moved here, and that no record has queued yet.
    in_flight: u32,
}

/// Compares the lengths.
#[derive(Clone, Debug, Default)]
pub struct LengthCheck {
    queues: SeededMap<Cpu, Queue>,
    found: KernelLengths,
}

impl LengthCheck {
    fn probe(&mut self, event: &SchedEvent, cpu: Cpu, nr: u32, change: i32) {
        let queue = self.queues.entry(cpu).or_default();
        queue.length = Some(nr);
        if change < 0 {
            // Another CPU takes waiting tasks away.
            queue.shortened_by = (event.cpu == cpu).then_some(event.pid).or(queue.shortened_by);
        } else {
            queue.in_flight = queue.in_flight.saturating_sub(1);
        }
    }

    /// A task is awake, or elsewhere: it is none of those that sleep on a queue.
    fn awake(&mut self, pid: Pid) {
        for queue in self.queues.values_mut() {
            queue.delayed.remove(&pid);
        }
    }

    fn switch(&mut self, event: &SchedEvent, state: &SchedState) {
        let EventKind::Switch { prev, state: left, .. } = event.kind else { return };
        let queue = self.queues.entry(event.cpu).or_default();
        let is_shortened = queue.shortened_by.take() == Some(prev.pid);
        if left.class == StateClass::Asleep && queue.length.is_some() && !is_shortened {
            queue.delayed.insert(prev.pid);
        }
        let running = matches!(state.current(event.cpu), Current::Task(_));
        let known = running || state.current(event.cpu) == Current::Idle;
        let Some(kernel) = queue.length.filter(|_| known) else { return };
        let events = state.queue_length(event.cpu) + u32::from(running);
        let found = &mut self.found;
        found.compared += 1;
        let (more, less) = (kernel.saturating_sub(events), events.saturating_sub(kernel));
        let (count, is_explained) = match (more, less) {
            (0, 0) => {
                // None of them is queued any more.
                queue.delayed.clear();
                (&mut found.equal, true)
            }
            (1.., _) if more as usize <= queue.delayed.len() => (&mut found.delayed_dequeue, true),
            (_, 1..) if less <= queue.in_flight => (&mut found.in_flight, true),
            (1.., _) => (&mut found.longer, false),
            _ => (&mut found.shorter, false),
        };
        *count += 1;
        if !is_explained && found.first.len() < LISTED {
            found.first.push(Disagreement { ts_ns: event.ts, cpu: event.cpu, kernel, events });
        }
    }
}

impl Analysis for LengthCheck {
    type Output = KernelLengths;

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        match event.kind {
            EventKind::Migrate { task, dest, .. }
                if state.task_of(task.pid).is_some_and(|task| matches!(task.state, TaskState::Waiting(_))) =>
            {
                self.queues.entry(dest).or_default().in_flight += 1;
            }
            EventKind::Migrate { task, .. } | EventKind::Wakeup { task, .. } | EventKind::WakeupNew { task, .. } => {
                self.awake(task.pid);
            }
            EventKind::Switch { next, .. } if !next.pid.is_idle() => self.awake(next.pid),
            // Records of any queue can be among those that are lost.
            EventKind::Lost { .. } => self.queues.clear(),
            _ => {}
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        match event.kind {
            EventKind::Probe { probe: Probe::Length { cpu, nr, change }, .. } => self.probe(event, cpu, nr, change),
            EventKind::Switch { .. } => self.switch(event, state),
            _ => {}
        }
    }

    fn finish(self, _: Ts, _: &SchedState) -> KernelLengths {
        self.found
    }
}

#[cfg(test)]
mod tests;
