//! The pieces of a pass, joined.
//!
//! A phase that began before a piece ends in it, and the record of it is with the pieces before: the end is left to these.
//! That is one phase of each task, and the wait behind a sleep that began earlier.

use crate::longest::LongWait;
use crate::{Latency, ListedWait, Missing, Phase, PhaseTrack, Wait};
use membership::TaskGroup;
use sched::limits::ROWS;
use sched::{Analysis, Comm, Cpu, Joined, Pid, SchedState, Task, TaskId, TaskState, Ts};
use std::collections::VecDeque;

/// The things that a later piece of a pass cannot decide by itself.
#[derive(Debug, Default)]
pub(crate) struct OpenEnds {
    /// The ends that are left to the pieces before, in the order of events.
    endings: Vec<Ending>,
    /// The waits that this piece has measured, where waits are listed, each with the number of ends that were left by then.
    listed: Vec<(usize, ListedWait)>,
    /// Whether tasks are placed by their wakings, so that the record of a wait depends on the one before it.
    by_wakings: bool,
}

/// The end of a phase that is measured.
#[derive(Clone, Debug)]
struct Ending {
    task: Task,
    cpu: Cpu,
    now: Ts,
    /// The beginning of the phase; nothing if it began in an earlier piece.
    since: Option<Ts>,
    /// The record of the wait, as far as this piece has it.
    wait: Option<Wait>,
    /// The task that was switched out last, unless that was in an earlier piece.
    switched_out: Option<(Pid, Comm)>,
}

impl OpenEnds {
    /// The number of ends so far.
    pub(crate) fn number(&self) -> usize {
        self.endings.len()
    }

    /// Keeps a wait for the list, to which the pieces before add it in its turn.
    pub(crate) fn list(&mut self, listed: ListedWait) {
        self.listed.push((self.endings.len(), listed));
    }
}

impl Latency<'_> {
    /// Leaves the end of a phase to the pieces before; `since` is its beginning if that is in this piece.
    #[cold]
    #[inline(never)]
    pub(crate) fn leave(&mut self, task: &Task, since: Option<Ts>, cpu: Cpu, now: Ts) {
        let (wait, switched_out) = (self.waits.get(task.id()).copied(), self.switched_out);
        if let Some(open_ends) = &mut self.open_ends {
            open_ends.endings.push(Ending { task: *task, cpu, now, since, wait, switched_out });
        }
    }

    /// Ends a phase that a later piece has left to this one.
    fn end(&mut self, ending: &Ending) {
        let Ending { task, cpu, now, since, wait, switched_out } = ending;
        let track = match since {
            Some(since) => Some(PhaseTrack { since: *since, phase: Phase::Wait }),
            None => self.tracks.get(task.id()).copied(),
        };
        let wait = wait.and_then(|wait| self.completed(task.id(), wait));
        let before = self.switched_out;
        self.switched_out = switched_out.or(before);
        if let Some(track) = track {
            self.ended(task, &track, wait, *cpu, *now, false);
        }
        self.switched_out = before;
    }

    /// The record of a wait of a later piece with all that is recorded of it here; nothing if it began before the piece and
    /// there is no record.
    fn completed(&self, task: TaskId, wait: Wait) -> Option<Wait> {
        match wait.missing {
            Missing::Nothing => Some(wait),
            Missing::Sleep => {
                let slept_on = match self.tracks.get(task) {
                    Some(PhaseTrack { phase: Phase::Sleep(cpu), .. }) => Some(*cpu),
                    _ => wait.slept_on,
                };
                Some(Wait { slept_on, missing: Missing::Nothing, ..wait })
            }
            Missing::All => {
                let mut known = self.waits.get(task).copied()?;
                known.throttled += wait.throttled;
                known.behind_until = known.behind_until.or(wait.behind_until);
                Some(known)
            }
        }
    }

    /// The number of rows that a later piece has and this one has not.
    fn new_rows(&self, later: &Self) -> usize {
        later.rows.iter().filter(|row| !self.places.contains_key(&row.key)).count()
    }

    /// Ends the phases that were left to this piece, takes over the longest waits, and lists all, each in the order of events.
    fn end_all(&mut self, open_ends: &OpenEnds, mut worst: Vec<LongWait>) {
        worst.sort_by_key(|kept| kept.left);
        let mut worst = VecDeque::from(worst);
        let mut listed = open_ends.listed.iter().peekable();
        let mut take_before = |latency: &mut Self, left: usize| {
            while worst.front().is_some_and(|kept| kept.left <= left) {
                worst.pop_front().into_iter().for_each(|kept| latency.keep_if_long(kept.case));
            }
            while let Some((_, wait)) = listed.next_if(|(before, _)| *before <= left) {
                latency.listing.iter().for_each(|take| take(wait));
            }
        };
        for (place, ending) in open_ends.endings.iter().enumerate() {
            take_before(self, place);
            self.end(ending);
        }
        take_before(self, usize::MAX);
    }

    /// Adds the rows of a later piece, and the rows that its tasks have.
    fn join_rows(&mut self, later: &mut Self) {
        let mut places = Vec::with_capacity(later.rows.len());
        for row in std::mem::take(&mut later.rows) {
            let place = *self.places.entry(row.key).or_insert(self.rows.len());
            places.push(place);
            match self.rows.get_mut(place) {
                Some(sums) => sums.join(&row),
                None => self.rows.push(row),
            }
        }
        for (task, (traits, row)) in later.homes.iter() {
            self.homes.insert(task, (*traits, places[*row as usize] as u32));
        }
    }
}

impl Joined for Latency<'_> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, start: Ts, _: Ts, state: &SchedState) {
        self.begin(start, state);
        self.switched_out = None;
        for task in state.living() {
            self.tracks.insert(task.id(), PhaseTrack { since: task.since, phase: Phase::Earlier });
            if let TaskState::Waiting(cpu) | TaskState::Throttled(cpu) = task.state {
                self.waits.insert(task.id(), Wait::earlier(cpu));
                self.behind.add(task.id(), cpu);
            }
        }
        let by_wakings = state.places_by_wakings();
        self.open_ends = Some(Box::new(OpenEnds { by_wakings, ..OpenEnds::default() }));
    }

    fn fits(&self, later: &Self) -> bool {
        let Some(open_ends) = &later.open_ends else { return false };
        let has_room = |more: usize| self.rows.len() + more + open_ends.endings.len() <= ROWS;
        let has_rest = later.places.contains_key(&TaskGroup::Rest);
        !open_ends.by_wakings && !has_rest && (has_room(later.rows.len()) || has_room(self.new_rows(later)))
    }

    fn join(&mut self, mut later: Self) {
        let Some(open_ends) = later.open_ends.take() else { return };
        self.end_all(&open_ends, std::mem::take(&mut later.worst));
        self.join_rows(&mut later);
        for (sums, more) in self.woken.iter_mut().flatten().zip(later.woken.iter().flatten()) {
            sums.merge(more);
        }
        self.throttled.merge(&later.throttled);
        self.without_waking += later.without_waking;
        self.gaps += later.gaps;
        self.switched_out = later.switched_out.or(self.switched_out);
        let mut waits = std::mem::take(&mut later.waits);
        for (task, wait) in waits.entries_mut() {
            if let Some(completed) = self.completed(task, *wait) {
                *wait = completed;
            }
        }
        waits.fill(sched::PerTask::default(), |wait| wait.missing != Missing::Nothing);
        later.tracks.fill(std::mem::take(&mut self.tracks), |track| matches!(track.phase, Phase::Earlier));
        (self.tracks, self.waits, self.behind) = (later.tracks, waits, later.behind);
    }
}
