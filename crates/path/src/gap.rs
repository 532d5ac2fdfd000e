//! Stretches of a task that the trace does not determine (`docs/questions/path.md#gap`).

use crate::chain::{ChainNode, Link, NOTHING, Segment, SegmentKind, Via};
use crate::joined::TrackOrigin;
use crate::{CriticalPath, PathTrack, Until, Waker};
use sched::{Cpu, Current, EventKind, Pid, QueuedReading, SchedEvent, SchedState, Span, Task, TaskState, Ts};

/// The end of a gap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    end: Ts,
    /// Whether the gap ends in a run queue.
    is_queued: bool,
    /// A waking in it ended a sleep.
    has_sleep: bool,
    /// The task slept as it began.
    is_asleep: bool,
}

impl Gap {
    /// One in which any waking ended a sleep.
    pub(crate) fn sleep(end: Ts) -> Gap {
        Gap { end, is_queued: false, has_sleep: true, is_asleep: false }
    }

    /// One that this event on the task ends.
    pub(crate) fn of(task: &Task, event: &SchedEvent) -> Gap {
        let is_queued = matches!(task.state, TaskState::Waiting(_)) && matches!(event.kind, EventKind::Wakeup { .. });
        Gap { is_queued, ..Gap::sleep(event.ts) }
    }
}

/// Whether the state of a span lasted up to its end, as far as the trace shows.
pub(crate) fn is_seen_to_end(span: &Span, event: &SchedEvent) -> bool {
    // A loss, or a CPU that goes offline, ends the states there; a thread that executes a program goes on by another number.
    let is_told = matches!(event.kind, EventKind::Lost { .. } | EventKind::Offline | EventKind::Exec { .. });
    (span.ended || is_told) && !matches!(span.state, TaskState::Unknown | TaskState::Asleep(_))
}

impl CriticalPath {
    /// Keeps that an event shows the current of its CPU.
    pub(crate) fn show_current(&mut self, event: &SchedEvent, state: &SchedState) {
        let is_switch = matches!(event.kind, EventKind::Switch { .. });
        if is_switch || state.current(event.cpu) == Current::of(event.pid) {
            let at = event.cpu.index();
            if at >= self.shown.len() {
                self.shown.resize(at + 1, (Ts::MIN, 0));
            }
            self.shown[at] = (event.ts, self.beside_idle);
            if state.queue_length(event.cpu) > 0 {
                if at >= self.shown_kinds.len() {
                    self.shown_kinds.resize(at + 1, QueuedReading::default());
                }
                self.shown_kinds[at] = self.kinds.reading_of_all(event.cpu, event.ts);
            }
        }
    }

    /// The last instant up to which a task is known to be in its state, which no event ended, and the reading then. `on`:
    /// the CPU where it turns out to run, if it does.
    fn known_until(&mut self, state: TaskState, track: &PathTrack, on: Option<Cpu>) -> (Ts, u64) {
        let until = match state {
            TaskState::Running(cpu) => self.last_shown(cpu),
            TaskState::Waiting(cpu) if on == Some(cpu) => self.last_shown(cpu),
            _ => (track.from, track.reading),
        };
        if until.0 > track.from { until } else { (track.from, track.reading) }
    }

    /// The path over a gap that begins at `start`. It goes on with the task, behind `link` of its track, or where a
    /// waking lies within the gap, with the waker.
    pub(crate) fn over_gap(&mut self, task: &Task, track: &PathTrack, start: Ts, gap: Gap) -> Link {
        self.note_unwoken(task, track);
        let woken = track.waking.filter(|waking| gap.has_sleep && waking.at > start);
        match woken {
            None => self.add(track.link, SegmentKind::Unknown, task, (start, gap.end)),
            Some(waking) => {
                let before = self.until_waking(task, track, (start, waking.at), gap.is_asleep, waking.by);
                // No other wakeup has queued it since.
                let is_first = task.waking.is_some_and(|latest| latest.at == waking.at);
                let kind = if gap.is_queued && is_first { SegmentKind::Waking } else { SegmentKind::Unknown };
                self.add(before, kind, task, (waking.at, gap.end))
            }
        }
    }

    /// The path over the part of a gap before a waking that ended a sleep. The waker explains the part in which the task is shown to be off its CPU.
    fn until_waking(
        &mut self,
        task: &Task,
        track: &PathTrack,
        (start, end): (Ts, Ts),
        is_asleep: bool,
        by: Option<Waker>,
    ) -> Link {
        // Nothing but this sleep is known of a task that was never seen before it is woken.
        let asleep = if is_asleep || track.link == NOTHING { Some(start) } else { track.off.filter(|off| *off < end) };
        match (by.filter(|by| by.via != Via::Possibly), asleep) {
            (Some(by), Some(from)) => {
                let link = self.add(track.link, SegmentKind::Unknown, task, (start, from));
                self.add_sleep(task, &PathTrack { link, from, ..*track }, end, by)
            }
            (None, _) if is_asleep => self.add(track.link, SegmentKind::Sleeping, task, (start, end)),
            _ => self.add(track.link, SegmentKind::Unknown, task, (start, end)),
        }
    }

    /// A task leaves a state whose end was not seen, or what an event has shown it to do in spite of its state.
    pub(crate) fn turn_unseen(&mut self, task: &Task, track: &mut PathTrack, span: &Span, event: &SchedEvent) {
        let now = event.ts;
        let runs_on = if let TaskState::Running(cpu) = span.next { Some(cpu) } else { None };
        let by_itself = event.pid == task.pid;
        let (state, known) = match track.runs {
            // It goes on, by its state as well.
            Some((cpu, _)) if by_itself && runs_on == Some(cpu) => (TaskState::Running(cpu), (now, 0)),
            Some((cpu, seen)) => (TaskState::Running(cpu), (seen, 0)),
            None => (span.state, self.known_until(span.state, track, runs_on)),
        };
        if !matches!(state, TaskState::Unknown | TaskState::Asleep(_)) {
            track.link = self.through(task, state, track, known);
            track.from = known.0;
        }
        // Its gap goes on.
        if span.next == TaskState::Unknown {
            // Another task has its CPU.
            let is_off = matches!(span.state, TaskState::Running(_)) && track.runs.is_none();
            if is_off && track.off.is_none() {
                (track.off, track.reading) = (Some(now), self.beside_idle);
            }
            return;
        }
        let has_sleep = !(by_itself && matches!(state, TaskState::Waiting(_)));
        let is_asleep = matches!(state, TaskState::Asleep(_));
        track.link = self.over_gap(task, track, track.from, Gap { has_sleep, is_asleep, ..Gap::of(task, event) });
        track.from = now;
    }

    /// The path of a task that emits an event in task context although its CPU is taken to run another.
    #[cold]
    pub(crate) fn shown_to_run(&mut self, event: &SchedEvent, state: &SchedState) -> Until {
        let now = event.ts;
        let Some(task) = state.task_of(event.pid).copied() else {
            // Nothing has shown it since its fork, or at all.
            return Until { link: self.since_fork(event.pid, now), at: now };
        };
        let mut track = self.track(&task);
        self.note_use(task.id(), track.origin);
        self.follow_fork(&task, &mut track);
        if track.runs.is_none_or(|(cpu, _)| cpu != event.cpu) {
            let (doing, (known, reading)) = match track.runs {
                Some((cpu, seen)) => (TaskState::Running(cpu), (seen, 0)),
                None => (task.state, self.known_until(task.state, &track, Some(event.cpu))),
            };
            if !matches!(doing, TaskState::Unknown | TaskState::Asleep(_)) {
                track.link = self.through(&task, doing, &track, (known, reading));
                track.from = known;
            }
            let has_sleep = !matches!(doing, TaskState::Waiting(_));
            let is_asleep = matches!(doing, TaskState::Asleep(_));
            track.link = self.over_gap(&task, &track, track.from, Gap { has_sleep, is_asleep, ..Gap::sleep(now) });
            track.from = now;
        }
        (track.runs, track.origin, track.off) = (Some((event.cpu, now)), TrackOrigin::Here, None);
        self.tracks.insert(task.id(), track);
        self.until(&task, now)
    }

    /// A task whose life was not seen to begin has the path of its parent to the fork, if that is known.
    pub(crate) fn follow_fork(&mut self, task: &Task, track: &mut PathTrack) {
        if track.link == NOTHING
            && task.state == TaskState::Unknown
            && let Some(Until { link, at }) = self.take_fork(task.pid)
        {
            (track.link, track.from) = (link, at);
        }
    }

    /// The path of a task that no event has shown since its fork.
    fn since_fork(&mut self, pid: Pid, now: Ts) -> Link {
        let Some(Until { link, at }) = self.forks.get(&pid).copied() else {
            self.note_fork(pid, false);
            return NOTHING;
        };
        let (kind, start_ns) = (SegmentKind::Unknown, at.max(self.start));
        self.chain.add(ChainNode::new(Segment::of(kind, pid, (start_ns, now)), link))
    }
}
