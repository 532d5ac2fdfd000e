//! CPUs that are offline, concluded from missing events.
//!
//! No event of the scheduler shows that a CPU goes offline or comes back, and a tracepoint does not fire on a CPU
//! that is not marked as online (`cpu_online` is part of its condition). The mark goes while the CPU's stopper,
//! `migration/N`, runs (`take_cpu_down`) and comes back while its idle task does. So:
//!
//! * the switch to the stopper is recorded, and the one away from it is not: the next event is of another task. So
//!   it was all three times in hotplug-steps.dat of 6.1, in which the CPUs' own steps (`cpuhp_enter`) were recorded;
//! * where a CPU was offline when the recording began, its first event is of the idle task, which wakes the stopper
//!   of its own CPU (`stop_machine_unpark` in `cpuhp_online_idle`). Nothing else makes the idle task do that.
//!
//! Between two such events the CPU is neither idle nor busy: [`Kind::Offline`] stands behind the last one before.

use crate::decode::plan::{Oddities, Plan};
use sched::kthread::is_stopper;
use sched::{Cpu, Kind, Pid, SchedEvent, TaskRef, Ts};

/// A CPU's stopper, while it is current.
#[derive(Clone, Copy, Debug)]
struct Stopper {
    pid: Pid,
    /// The time of its last event, or of the switch to it.
    last: Ts,
    /// The place of the event behind that.
    behind: usize,
}

/// Watches for the stopper of one CPU among its events.
#[derive(Debug)]
pub(crate) struct Watch<'p> {
    cpu: Cpu,
    /// The numbers of scheduler events that are not decoded.
    unwanted: &'p [u16],
    stopper: Option<Stopper>,
    /// It does not look: what it would conclude is known.
    is_off: bool,
}

impl<'p> Watch<'p> {
    /// The scheduler's events with the numbers `unwanted` are not decoded.
    pub(crate) fn new(cpu: Cpu, unwanted: &'p [u16]) -> Watch<'p> {
        Watch { cpu, unwanted, stopper: None, is_off: false }
    }

    /// Does not look, if the times at which the CPU went offline are known.
    pub(crate) fn unless(self, is_off: bool) -> Watch<'p> {
        Watch { is_off, ..self }
    }

    /// Goes on with events behind others, at the end of which, at `last`, the stopper `pid` was current. Returns
    /// whether it may be so still at the end of these.
    pub(crate) fn resume(mut self, pid: Pid, last: Ts, items: &mut Vec<SchedEvent>) -> bool {
        self.stopper = Some(Stopper { pid, last, behind: 0 });
        let mut place = 0;
        while place < items.len() && !self.is_settled_by(place, items) {
            place = place.saturating_add(1);
        }
        place == items.len()
    }

    /// Whether every event needs a look.
    #[inline(always)]
    pub(crate) fn is_awake(&self) -> bool {
        self.stopper.is_some()
    }

    /// Whether an event needs a look in any case: a stopper has the highest priority, and hardly any other task.
    #[inline(always)]
    pub(crate) fn awakes(kind: &Kind) -> bool {
        matches!(kind, Kind::Switch { next, .. } if next.prio == 0)
    }

    /// Looks at the event at `place`, the last one. Its conclusions are put before it, where they belong.
    #[cold]
    pub(crate) fn look(&mut self, place: usize, items: &mut Vec<SchedEvent>) {
        if self.stopper.is_some() && self.is_settled_by(place, items) {
            self.stopper = None;
        }
        if let Some(SchedEvent { ts, kind: Kind::Switch { next, .. }, .. }) = items.last()
            && is_stopper(next.comm, self.cpu)
            && !self.is_off
        {
            self.stopper = Some(Stopper { pid: next.pid, last: *ts, behind: items.len() });
        }
    }

    /// Whether the event at `place` shows what became of the stopper: that it went, or that the CPU did.
    fn is_settled_by(&mut self, place: usize, items: &mut Vec<SchedEvent>) -> bool {
        let (Some(stopper), Some(event)) = (&mut self.stopper, items.get(place)) else { return true };
        if event.pid == stopper.pid {
            (stopper.last, stopper.behind) = (event.ts, place.saturating_add(1));
            return matches!(event.kind, Kind::Switch { .. });
        }
        match event.kind {
            // An event recorded with the switch, behind it, may have the number of the task that was switched out: a stack
            // does (stacktrace.dat of 6.12). The scheduler's own events are not.
            Kind::Other { id } if !self.unwanted.contains(&id) => false,
            Kind::Probe { .. } | Kind::Stack { .. } | Kind::Interrupt { .. } | Kind::Frequency { .. } => false,
            Kind::Lost { .. } => true,
            _ => {
                let offline = offline(self.cpu, stopper.last);
                items.insert(stopper.behind.min(items.len()), offline);
                true
            }
        }
    }

    /// Something is missing here: the task that runs afterwards is no evidence.
    pub(crate) fn lose(&mut self) {
        self.stopper = None;
    }

    /// The stopper, if it is current at the end.
    pub(crate) fn stopper(&self) -> Option<Pid> {
        self.stopper.map(|stopper| stopper.pid)
    }
}

/// Whether the first event of `cpu` is that of one that comes online. `plan` decodes everything.
pub(crate) fn comes_online(cpu: Cpu, payload: &[u8], plan: &Plan) -> bool {
    let wakes = |task: TaskRef, target| target == cpu && is_stopper(task.comm, cpu);
    let event = plan.decode_any(plan.endian(), payload, &mut Oddities::default());
    matches!(event, Some((Pid::IDLE, _, Kind::Waking { task, target })) if wakes(task, target))
}

/// `cpu` is offline from `ts` until its next event.
pub(crate) fn offline(cpu: Cpu, ts: Ts) -> SchedEvent {
    SchedEvent { ts, cpu, pid: Pid::IDLE, flags: 0, kind: Kind::Offline }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::{Comm, PrevState};

    const STOPPER: Pid = Pid(31);

    fn event(ts: i64, pid: Pid, kind: Kind) -> SchedEvent {
        SchedEvent { ts: Ts(ts), cpu: Cpu(3), pid, flags: 0, kind }
    }

    fn task(pid: Pid) -> TaskRef {
        let name: &[u8] = if pid == STOPPER { b"migration/3" } else { b"task" };
        TaskRef { pid, prio: if pid == STOPPER { 0 } else { 120 }, comm: Comm::new(name) }
    }

    fn switch(ts: i64, prev: Pid, next: Pid) -> SchedEvent {
        event(ts, prev, Kind::Switch { prev: task(prev), state: PrevState::blocked(1), next: task(next) })
    }

    fn other(ts: i64, pid: Pid) -> SchedEvent {
        event(ts, pid, Kind::Other { id: 4 })
    }

    fn wakes(ts: i64, pid: Pid) -> SchedEvent {
        event(ts, pid, Kind::Waking { task: task(STOPPER), target: Cpu(3) })
    }

    /// The events as a unit has them, cut before its place `cut` and read in two; and when the CPU goes offline.
    fn found(events: &[SchedEvent], cut: usize) -> Vec<i64> {
        let (first, second) = events.split_at(cut);
        let decode = |events: &[SchedEvent]| {
            let (mut watch, mut items) = (Watch::new(Cpu(3), &[]), Vec::new());
            for event in events {
                if let Kind::Lost { .. } = event.kind {
                    watch.lose();
                    items.push(*event);
                    continue;
                }
                items.push(*event);
                if watch.is_awake() || Watch::awakes(&event.kind) {
                    watch.look(items.len() - 1, &mut items);
                }
            }
            (items, watch.stopper())
        };
        let (mut all, stopper) = decode(first);
        let (mut rest, _) = decode(second);
        if let Some(pid) = stopper {
            Watch::new(Cpu(3), &[]).resume(pid, all.last().expect("the switch to it").ts, &mut rest);
        }
        all.extend(rest);
        assert!(all.is_sorted_by_key(|event| event.ts));
        all.iter().filter(|event| event.kind == Kind::Offline).map(|event| event.ts.0).collect()
    }

    #[track_caller]
    fn finds(events: &[SchedEvent], expected: &[i64]) {
        for cut in 0..=events.len() {
            assert_eq!(found(events, cut), expected, "cut before {cut}");
        }
    }

    #[test]
    fn a_cpu_that_goes_and_comes_back() {
        finds(&[switch(1, Pid(0), STOPPER), wakes(90, Pid(0)), switch(91, Pid(0), STOPPER)], &[1]);
        finds(&[switch(1, Pid(0), STOPPER), switch(91, Pid(0), STOPPER), switch(99, Pid(0), STOPPER)], &[1, 91]);
    }

    #[test]
    fn events_of_the_stopper_come_before() {
        finds(&[switch(1, Pid(0), STOPPER), other(2, STOPPER), wakes(90, Pid(0))], &[2]);
    }

    #[test]
    fn a_stopper_that_leaves_leaves_an_online_cpu() {
        finds(&[switch(1, Pid(7), STOPPER), switch(3, STOPPER, Pid(0)), wakes(90, Pid(0))], &[]);
        finds(
            &[switch(1, Pid(7), STOPPER), other(2, STOPPER), switch(3, STOPPER, Pid(7)), switch(4, Pid(7), Pid(0))],
            &[],
        );
    }

    #[test]
    fn a_stack_recorded_with_the_switch_is_no_sign() {
        finds(&[switch(1, Pid(7), STOPPER), other(1, Pid(7)), switch(3, STOPPER, Pid(0)), wakes(90, Pid(0))], &[]);
        // Nor does it hide one.
        finds(&[switch(1, Pid(0), STOPPER), other(1, Pid(0)), other(1, STOPPER), wakes(90, Pid(0))], &[1]);
    }

    #[test]
    fn after_a_loss_nothing_is_concluded() {
        finds(&[switch(1, Pid(0), STOPPER), event(1, Pid(0), Kind::Lost { count: None }), wakes(90, Pid(0))], &[]);
    }
}
