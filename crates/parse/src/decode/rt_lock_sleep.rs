//! Tasks that sleep on a lock, and are named as preempted.
//!
//! With PREEMPT_RT most spinlocks are locks to sleep on. A kernel 5.10 with its patches sleeps on them by
//! `preempt_schedule_lock`, and its `sched_switch` then has `R+`, as for a task that was preempted and waits: so it is
//! with 8,053 of 18,097 such switches of a hackbench. No field of the record distinguishes the two. The next events on
//! the task does: it is switched in, or it is woken. In a recording with stacks (`trace-cmd record -T`, 5.10.0-32-rt)
//! 1,696 of the 1,718 that were woken next had gone to sleep on a lock, and 33 of the 2,496 others. (The 22 were
//! preempted between setting their state and going to sleep.)
//!
//! Whether another kernel does so shows where a waker places such a task on another CPU, which no kernel does with one
//! that is on a run queue. 6.1, 6.12 and 7.2 with PREEMPT_RT do not, and name these sleeps as sleeps.

use crate::decode::format::EventFormat;
use sched::seeded::SeededMap;
use sched::{Cpu, EventKind, Pid, SchedEvent, StateClass, Ts};
use std::ops::ControlFlow;

/// A switch: when, where, away from whom.
pub(crate) type Switch = (Ts, Cpu, Pid);

/// The switches that began a sleep on a lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct LockSleeps(Vec<Switch>);

impl LockSleeps {
    /// Whether a kernel can be one that needs to be looked at, by its format of `sched_switch`: with PREEMPT_RT 5.10 has
    /// this field, and 6.1 has not.
    pub(crate) fn are_possible(switch: &EventFormat) -> bool {
        switch.field("common_migrate_disable").is_some()
    }

    /// Returns a list of sleeps that are already known, given in any order.
    pub(crate) fn known(mut sleeps: Vec<Switch>) -> LockSleeps {
        sleeps.sort_unstable();
        LockSleeps(sleeps)
    }

    /// Returns the sleeps whose switch is from `from` to `to`, both included.
    pub(crate) fn within(&self, from: Ts, to: Ts) -> Vec<Switch> {
        self.0.iter().copied().filter(|(ts, ..)| (from..=to).contains(ts)).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn number(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the events with each of these switches as one to sleep; `space` is overwritten.
    fn named<'e>(&self, events: &[SchedEvent], space: &'e mut Vec<SchedEvent>) -> &'e [SchedEvent] {
        space.clear();
        space.extend_from_slice(events);
        for event in space.iter_mut() {
            if let EventKind::Switch { prev, state, .. } = &mut event.kind
                && state.class == StateClass::Preempted
                && self.0.binary_search(&(event.ts, event.cpu, prev.pid)).is_ok()
            {
                state.class = StateClass::Asleep;
            }
        }
        space
    }

    /// Passes on to `sink` what [`LockSleeps::named`] makes of the events.
    pub(crate) fn names<'s, S: FnMut(&[SchedEvent]) -> ControlFlow<()> + ?Sized>(
        &'s self,
        sink: &'s mut S,
    ) -> impl FnMut(&[SchedEvent]) -> ControlFlow<()> + use<'s, S> {
        let mut space = Vec::new();
        move |events| sink(self.named(events, &mut space))
    }
}

/// A task that was named as preempted, and has not run since.
#[derive(Clone, Copy, Debug)]
struct PreemptedTask {
    by: Switch,
    /// The CPU on whose run queue the task is, if it is on one, and the number of losses there when it came.
    at: (Cpu, u64),
    /// A waking of it was recorded since.
    waking: bool,
    /// The task that migrated it last, since then if wakings were recorded.
    moved_by: Option<Cpu>,
}

/// Looks for them among all events, in order.
#[derive(Debug, Default)]
pub(crate) struct Search {
    out: SeededMap<Pid, PreemptedTask>,
    /// The number of losses on each CPU so far. The tasks that were queued there before may have run since.
    losses: SeededMap<Cpu, u64>,
    slept: Vec<Switch>,
    /// Wakings are among the events.
    with_wakings: bool,
    /// The kernel has such sleeps: a waker placed one, or the version is known for it.
    proven: bool,
}

impl Search {
    /// Begins a search in a trace of a kernel of this release.
    pub(crate) fn new(release: Option<(u32, u32)>) -> Search {
        Search { proven: release == Some((5, 10)), ..Search::default() }
    }

    pub(crate) fn look(&mut self, event: &SchedEvent) {
        match event.kind {
            EventKind::Switch { prev, state, next } => {
                self.out.remove(&next.pid);
                if state.class == StateClass::Preempted && !prev.pid.is_idle() {
                    let by = (event.ts, event.cpu, prev.pid);
                    let at = self.place(event.cpu);
                    self.out.insert(prev.pid, PreemptedTask { by, at, waking: false, moved_by: None });
                } else {
                    self.out.remove(&prev.pid);
                }
            }
            EventKind::Waking { task, .. } => {
                self.with_wakings = true;
                if let Some(out) = self.of(task.pid) {
                    // A task that moved it before did not place it.
                    (out.waking, out.moved_by) = (true, None);
                }
            }
            EventKind::Wakeup { task, .. } => {
                let Some(out) = self.of(task.pid).copied() else { return };
                self.out.remove(&task.pid);
                let placed = out.moved_by == Some(event.cpu);
                // A task about to be woken when it was switched out was, most often, preempted indeed.
                if placed || out.waking || !self.with_wakings {
                    self.slept.push(out.by);
                }
                self.proven |= placed;
            }
            EventKind::Migrate { task, dest, .. } => {
                let place = self.place(dest);
                if let Some(out) = self.of(task.pid) {
                    (out.at, out.moved_by) = (place, Some(event.cpu));
                }
            }
            EventKind::Lost { .. } => *self.losses.entry(event.cpu).or_default() += 1,
            _ => {}
        }
    }

    /// The place of a task that comes to the queue of a CPU now.
    fn place(&self, cpu: Cpu) -> (Cpu, u64) {
        (cpu, self.losses.get(&cpu).copied().unwrap_or(0))
    }

    /// The task with this PID, unless it was on a queue that has lost events since.
    fn of(&mut self, pid: Pid) -> Option<&mut PreemptedTask> {
        let at = self.out.get(&pid)?.at;
        if self.place(at.0) != at {
            self.out.remove(&pid);
        }
        self.out.get_mut(&pid)
    }

    /// Returns the sleeps that were found; none where the kernel has no such sleeps.
    pub(crate) fn finish(mut self) -> LockSleeps {
        if !self.proven {
            return LockSleeps::default();
        }
        self.slept.sort_unstable();
        LockSleeps(self.slept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sched::{Comm, PrevState, TaskRef};

    fn task(pid: i32) -> TaskRef {
        TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"task") }
    }

    fn event(ts: i64, cpu: u32, kind: EventKind) -> SchedEvent {
        SchedEvent { ts: Ts(ts), cpu: Cpu(cpu), pid: Pid(9), flags: 0, kind }
    }

    fn switch(ts: i64, cpu: u32, prev: i32, state: PrevState, next: i32) -> SchedEvent {
        event(ts, cpu, EventKind::Switch { prev: task(prev), state, next: task(next) })
    }

    fn waking(ts: i64, cpu: u32, pid: i32) -> SchedEvent {
        event(ts, cpu, EventKind::Waking { task: task(pid), target: Cpu(0) })
    }

    fn wakeup(ts: i64, cpu: u32, pid: i32, target: u32) -> SchedEvent {
        event(ts, cpu, EventKind::Wakeup { task: task(pid), target: Cpu(target) })
    }

    fn migrate(ts: i64, cpu: u32, pid: i32, orig: u32, dest: u32) -> SchedEvent {
        event(ts, cpu, EventKind::Migrate { task: task(pid), orig: Cpu(orig), dest: Cpu(dest) })
    }

    const NONE: [i64; 0] = [];

    /// Task 1 is placed on CPU 1 by its waker, on CPU 2.
    fn placed() -> Vec<SchedEvent> {
        let out = switch(10, 0, 1, PrevState::PREEMPTED, 2);
        vec![
            out,
            waking(20, 2, 1),
            migrate(21, 2, 1, 0, 1),
            wakeup(22, 2, 1, 1),
            switch(23, 1, 0, PrevState::RUNNABLE, 1),
        ]
    }

    /// The times at which sleeping tasks were switched out.
    fn slept(events: &[SchedEvent]) -> Vec<i64> {
        slept_on(Some((5, 14)), events)
    }

    fn slept_on(release: Option<(u32, u32)>, events: &[SchedEvent]) -> Vec<i64> {
        let mut search = Search::new(release);
        events.iter().for_each(|event| search.look(event));
        let mut space = Vec::new();
        let named = search.finish().named(events, &mut space).to_vec();
        assert_eq!(named.len(), events.len());
        let differ = named.iter().zip(events).filter(|(now, was)| now != was);
        differ
            .map(|(now, _)| {
                assert!(matches!(now.kind, EventKind::Switch { state, .. } if state.class == StateClass::Asleep));
                now.ts.0
            })
            .collect()
    }

    #[test]
    fn who_is_woken_next_slept() {
        assert_eq!(slept(&placed()), [10]);
        // On this kernel a task that was woken where it was did so, too.
        let mut events = placed();
        events.extend([switch(30, 3, 5, PrevState::PREEMPTED, 6), waking(31, 3, 5), wakeup(32, 3, 5, 3)]);
        assert_eq!(slept(&events), [10, 30]);
        // On another it was on its way to sleep, and on the queue.
        assert_eq!(slept(&events[5..]), NONE);
        assert_eq!(slept_on(Some((5, 10)), &events[5..]), [30]);
    }

    #[test]
    fn who_runs_next_had_been_preempted() {
        let mut events = placed();
        let (out, back) = (switch(30, 3, 5, PrevState::PREEMPTED, 6), switch(31, 3, 6, PrevState::asleep(1), 5));
        events.extend([out, back, switch(32, 3, 5, PrevState::asleep(1), 6), wakeup(33, 3, 5, 3)]);
        assert_eq!(slept(&events), [10]);
        // Even if a waking was under way.
        events.insert(6, waking(30, 2, 5));
        assert_eq!(slept(&events), [10]);
    }

    #[test]
    fn wakings_that_were_not_recorded() {
        let mut events = placed();
        events.remove(1);
        assert_eq!(slept(&events), [10]);
    }

    #[test]
    fn who_is_being_woken_when_it_is_switched_out_was_preempted() {
        let mut events = placed();
        events.extend([waking(30, 2, 5), switch(31, 3, 5, PrevState::PREEMPTED, 6), wakeup(32, 2, 5, 3)]);
        assert_eq!(slept(&events), [10]);
        // But for one that is placed: its waker waits until it sleeps.
        events.insert(7, migrate(31, 2, 5, 3, 2));
        assert_eq!(slept(&events), [10, 31]);
    }

    #[test]
    fn who_was_pulled_before_it_was_woken_was_not_placed() {
        let mut events = placed();
        events.swap(1, 2);
        assert_eq!(slept(&events), NONE);
    }

    #[test]
    fn behind_a_loss_who_waited_there_may_have_run() {
        let lost = |cpu| event(15, cpu, EventKind::Lost { count: None });
        let mut events = placed();
        events.insert(1, lost(0));
        assert_eq!(slept(&events), NONE);
        events[1] = lost(3);
        assert_eq!(slept(&events), [10]);
    }
}
