//! CPUs that are offline, concluded from missing events.
//!
//! No event of the scheduler shows that a CPU goes offline or comes back, and a tracepoint does not fire on a CPU
//! that is not marked as online (`cpu_online` is part of its condition). The mark goes while the CPU's stopper,
//! `migration/N`, runs (`take_cpu_down`) and comes back while its idle task does. It follows:
//!
//! * the switch to the stopper is recorded, and the one away from it is not: the next event is of another task. This
//!   holds all three times in hotplug-steps.dat of 6.1, in which the CPUs' own steps (`cpuhp_enter`) were recorded;
//! * where a CPU was offline when the recording began, its first event is of the idle task, which wakes the stopper
//!   of its own CPU (`stop_machine_unpark` in `cpuhp_online_idle`). Nothing else makes the idle task do that.
//!
//! Between two such events the CPU is neither idle nor busy: [`EventKind::Offline`] stands behind the last one before.
//!
//! A recording of some tasks lacks the same switches: one that a filter by task selects is recorded because of the task
//! that leaves, and the one away from the stopper is not. No such recording has a switch between an idle task and a
//! stopper, which belong to no selection. Where no such switch is in the trace, the CPU is
//! unknown from the stopper's last event on. Where the file itself shows that it has the events of some tasks alone,
//! the same holds behind every task that is never seen to leave its CPU.

use crate::decode::plan::{DecodePlan, Oddities};
use sched::kthread::is_stopper;
use sched::{Cpu, EventKind, Pid, SchedEvent, TaskRef, Ts};

/// A task that is current on a CPU.
#[derive(Clone, Copy, Debug)]
struct CurrentTask {
    pid: Pid,
    /// The time of its last event, or of the switch to it.
    last: Ts,
    /// The place of the event behind that.
    behind: usize,
}

/// The state of a CPU behind the last event of a task that no event shows to leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// The CPU is offline.
    Offline,
    /// Unknown: events are missing.
    Unknown,
}

impl Behind {
    /// The event that stands for it.
    pub(crate) fn event(self, cpu: Cpu, ts: Ts) -> SchedEvent {
        let kind = match self {
            Behind::Offline => EventKind::Offline,
            Behind::Unknown => EventKind::Lost { count: None },
        };
        SchedEvent { ts, cpu, pid: Pid::IDLE, flags: 0, kind }
    }
}

/// A task that may still be current at the end of a stretch of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unfinished {
    pub(crate) pid: Pid,
    /// The state of the CPU behind its last event, if it is not seen to leave.
    pub(crate) behind: Behind,
}

/// The tasks that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// The CPU's stopper.
    Stopper,
    /// Every task of the CPU, in a recording of some tasks.
    All,
    /// No task, since the times at which CPUs went offline are already known.
    Nothing,
}

/// Watches for the tasks of one CPU that are not seen to leave it.
#[derive(Debug)]
pub(crate) struct Watch<'p> {
    cpu: Cpu,
    /// The numbers of scheduler events that are not decoded.
    unwanted: &'p [u16],
    watched: Watched,
    current: Option<CurrentTask>,
    /// Every event needs a look.
    is_awake: bool,
}

impl<'p> Watch<'p> {
    /// The scheduler's events with the numbers `unwanted` are not decoded.
    pub(crate) fn new(cpu: Cpu, unwanted: &'p [u16], watched: Watched) -> Watch<'p> {
        Watch { cpu, unwanted, watched, current: None, is_awake: watched == Watched::All }
    }

    /// Goes on with the events of the next unit, where a task was current at `last`, the end of the unit before.
    /// Returns whether the task may still be current at the end of these events.
    pub(crate) fn resume(mut self, task: Unfinished, last: Ts, items: &mut Vec<SchedEvent>) -> bool {
        self.current = Some(CurrentTask { pid: task.pid, last, behind: 0 });
        let mut place = 0;
        while place < items.len() && !self.is_settled_by(place, items, &|| task.behind) {
            place = place.saturating_add(1);
        }
        place == items.len()
    }

    /// Whether every event needs a look.
    #[inline(always)]
    pub(crate) fn is_awake(&self) -> bool {
        self.is_awake
    }

    /// Whether an event needs a look in any case: a stopper has the highest priority, and hardly any other task.
    #[inline(always)]
    pub(crate) fn awakes(kind: &EventKind) -> bool {
        matches!(kind, EventKind::Switch { next, .. } if next.prio == 0)
    }

    /// Looks at the event at `place`, the last one. Its conclusions are put before it, where they belong; `behind` has
    /// those behind a stopper.
    #[cold]
    pub(crate) fn look(&mut self, place: usize, items: &mut Vec<SchedEvent>, behind: &impl Fn() -> Behind) {
        if self.current.is_some() && self.is_settled_by(place, items, behind) {
            self.current = None;
        }
        if let Some(SchedEvent { ts, kind: EventKind::Switch { next, .. }, .. }) = items.last() {
            let is_watched = match self.watched {
                Watched::Stopper => is_stopper(next.comm, self.cpu),
                Watched::All => true,
                Watched::Nothing => false,
            };
            if is_watched {
                self.current = Some(CurrentTask { pid: next.pid, last: *ts, behind: items.len() });
            }
        }
        self.is_awake = self.current.is_some() || self.watched == Watched::All;
    }

    /// Whether the event at `place` shows what became of the task: that it went, or that events of the CPU are missing.
    fn is_settled_by(&mut self, place: usize, items: &mut Vec<SchedEvent>, behind: &impl Fn() -> Behind) -> bool {
        let (Some(current), Some(event)) = (&mut self.current, items.get(place)) else { return true };
        if event.pid == current.pid {
            (current.last, current.behind) = (event.ts, place.saturating_add(1));
            return matches!(event.kind, EventKind::Switch { .. });
        }
        match event.kind {
            // An event recorded with the switch, behind it, may have the number of the task that was switched out: a stack
            // does (stacktrace.dat of 6.12). The scheduler's own events are not.
            EventKind::Other { id } if !self.unwanted.contains(&id) => false,
            EventKind::Probe { .. }
            | EventKind::Stack { .. }
            | EventKind::Interrupt { .. }
            | EventKind::Frequency { .. } => false,
            EventKind::Lost { .. } => true,
            _ => {
                let concluded = behind().event(self.cpu, current.last);
                items.insert(current.behind.min(items.len()), concluded);
                true
            }
        }
    }

    /// Something is missing here: the task that runs afterwards is no evidence.
    pub(crate) fn lose(&mut self) {
        self.current = None;
        self.is_awake = self.watched == Watched::All;
    }

    /// The task that is watched and current at the end, if there is one.
    pub(crate) fn unfinished(&self, behind: impl Fn() -> Behind) -> Option<Unfinished> {
        self.current.map(|current| Unfinished { pid: current.pid, behind: behind() })
    }
}

/// Whether the first event of `cpu` is that of one that comes online. `plan` decodes everything.
pub(crate) fn comes_online(cpu: Cpu, payload: &[u8], plan: &DecodePlan) -> bool {
    let wakes = |task: TaskRef, target| target == cpu && is_stopper(task.comm, cpu);
    let event = plan.decode_any(plan.endian(), payload, &mut Oddities::default());
    matches!(event, Some((Pid::IDLE, _, EventKind::Waking { task, target })) if wakes(task, target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::{Comm, PrevState};

    const STOPPER: Pid = Pid(31);

    fn event(ts: i64, pid: Pid, kind: EventKind) -> SchedEvent {
        SchedEvent { ts: Ts(ts), cpu: Cpu(3), pid, flags: 0, kind }
    }

    fn task(pid: Pid) -> TaskRef {
        let name: &[u8] = if pid == STOPPER { b"migration/3" } else { b"task" };
        TaskRef { pid, prio: if pid == STOPPER { 0 } else { 120 }, comm: Comm::new(name) }
    }

    fn switch(ts: i64, prev: Pid, next: Pid) -> SchedEvent {
        event(ts, prev, EventKind::Switch { prev: task(prev), state: PrevState::asleep(1), next: task(next) })
    }

    fn other(ts: i64, pid: Pid) -> SchedEvent {
        event(ts, pid, EventKind::Other { id: 4 })
    }

    fn wakes(ts: i64, pid: Pid) -> SchedEvent {
        event(ts, pid, EventKind::Waking { task: task(STOPPER), target: Cpu(3) })
    }

    /// The events as a unit has them, cut before its place `cut` and read in two; and the conclusions.
    fn concluded(events: &[SchedEvent], cut: usize, watched: Watched, behind: Behind) -> Vec<SchedEvent> {
        let (first, second) = events.split_at(cut);
        let decode = |events: &[SchedEvent]| {
            let (mut watch, mut items) = (Watch::new(Cpu(3), &[], watched), Vec::new());
            for event in events {
                if let EventKind::Lost { .. } = event.kind {
                    watch.lose();
                    items.push(*event);
                    continue;
                }
                items.push(*event);
                if watch.is_awake() || Watch::awakes(&event.kind) {
                    watch.look(items.len() - 1, &mut items, &|| behind);
                }
            }
            (items, watch.unfinished(|| behind))
        };
        let (mut all, unfinished) = decode(first);
        let (mut rest, _) = decode(second);
        if let Some(task) = unfinished {
            Watch::new(Cpu(3), &[], watched).resume(task, all.last().expect("the switch to it").ts, &mut rest);
        }
        all.extend(rest);
        assert!(all.is_sorted_by_key(|event| event.ts));
        all
    }

    /// The times at which the CPU goes offline.
    fn found(events: &[SchedEvent], cut: usize) -> Vec<i64> {
        let all = concluded(events, cut, Watched::Stopper, Behind::Offline);
        all.iter().filter(|event| event.kind == EventKind::Offline).map(|event| event.ts.0).collect()
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
        finds(&[switch(1, Pid(0), STOPPER), event(1, Pid(0), EventKind::Lost { count: None }), wakes(90, Pid(0))], &[]);
    }

    #[test]
    fn in_a_recording_of_some_tasks_all_that_are_not_seen_to_leave_are_unknown() {
        // The tasks 7 and 8 alone: 7 leaves for the idle task, 8 and then 7 came unseen.
        let events = [
            switch(1, Pid(7), Pid(0)),
            switch(5, Pid(8), Pid(9)),
            other(6, Pid(9)),
            switch(7, Pid(7), Pid(8)),
            wakes(8, Pid(8)),
            switch(9, Pid(8), STOPPER),
            wakes(20, Pid(7)),
        ];
        for cut in 0..=events.len() {
            let all = concluded(&events, cut, Watched::All, Behind::Unknown);
            let unknown = all.iter().filter(|event| event.kind == EventKind::Lost { count: None });
            assert_eq!(unknown.map(|event| event.ts.0).collect::<Vec<_>>(), [1, 6, 9], "cut before {cut}");
        }
    }

    #[test]
    fn behind_a_stopper_a_cpu_can_be_unknown() {
        let events = [switch(1, Pid(7), STOPPER), other(2, STOPPER), switch(90, Pid(0), Pid(7))];
        let kinds = |watched, behind| -> Vec<_> {
            concluded(&events, 1, watched, behind).iter().map(|event| event.kind).collect()
        };
        let lost = EventKind::Lost { count: None };
        assert_eq!(kinds(Watched::Stopper, Behind::Unknown)[2], lost);
        assert_eq!(kinds(Watched::Nothing, Behind::Unknown), events.map(|event| event.kind));
    }
}
