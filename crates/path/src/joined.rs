//! The pieces of a pass, joined.
//!
//! A later piece has a chain of its own, which begins with a place for the path of each task that lives where the piece begins. The
//! pieces before know these paths, and put the segments that lead on from them behind. The state has the instant at which each task
//! came to be as it is; a task of which the pieces before know something else, since events were missing, is a reason to follow the piece
//! again.

use crate::chain::{ChainNode, DROPPED, Link, NO_TASK, NOTHING, Segment, SegmentKind};
use crate::{Announced, CriticalPath, PathTrack, Until, Waker};
use sched::limits::{PIDS, keep_of_pid};
use sched::seeded::SeededSet;
use sched::{Cpu, Joined, PerTask, Pid, QueuedReading, SchedState, Task, TaskId, TaskState, Ts};

/// A place in the chain of a later piece that the pieces before fill.
#[derive(Clone, Copy, Debug)]
enum ChainPlace {
    /// The path of a task to the beginning of its state.
    Task(TaskId),
    /// The sleep of a task that a waking in an earlier piece ends, possibly one by a task.
    Waking(TaskId, Segment),
    /// A wait of a task that began in an earlier piece, with the beginning that is recorded there; and whether it counts as held back on the CPU that
    /// idled where the pieces meet.
    Wait(TaskId, bool),
    /// A sleep of a task that began in an earlier piece, and that a task ended.
    Sleep(TaskId),
}

/// The link that a link of a later piece has here. `map` has those of its places.
fn mapped(map: &[Link], link: Link) -> Link {
    map.get(link as usize).copied().unwrap_or(link)
}

/// The track of a task as the state shows it where a later piece begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Border {
    from: Ts,
    /// Whether nothing of the task is known.
    is_unknown: bool,
}

/// The beginning of a later piece of a pass, and the things that depend on the pieces before.
#[derive(Debug, Default)]
pub(crate) struct PathLog {
    borders: PerTask<Border>,
    /// The places that the pieces before fill, in ascending order.
    places: Vec<(Link, ChainPlace)>,
    /// The tasks whose tracks from before were used.
    used: Vec<TaskId>,
    /// The tasks of which it was taken for granted that they were not woken before.
    unwoken: Vec<TaskId>,
    /// The PIDs whose fork was sought in vain.
    unforked: SeededSet<Pid>,
    /// The PIDs whose fork was used.
    forked: SeededSet<Pid>,
    /// Whether it was taken for granted that the trace has no exits.
    is_without_exits: bool,
    /// Whether something was needed that this piece cannot know.
    is_unfit: bool,
}

impl PathLog {
    /// The links of the places, to be kept.
    pub(crate) fn links(&mut self) -> impl Iterator<Item = &mut Link> {
        self.places.iter_mut().map(|(link, _)| link)
    }
}

/// The knowledge of a later piece about a track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TrackOrigin {
    /// The track began in this piece, or the pass has no pieces.
    #[default]
    Here,
    /// The track is that of the pieces before, and was not used yet.
    Earlier,
    /// The track is that of the pieces before, and was used.
    Used,
}

impl CriticalPath {
    /// Notes that a track is used, in case it is one that the pieces before have.
    #[inline]
    pub(crate) fn note_use(&mut self, task: TaskId, origin: TrackOrigin) {
        if origin == TrackOrigin::Earlier {
            self.note_first_use(task);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_first_use(&mut self, task: TaskId) {
        if let Some(log) = &mut self.log {
            log.used.push(task);
        }
        if let Some(track) = self.tracks.get_mut(task) {
            track.origin = TrackOrigin::Used;
        }
    }

    /// Notes that a track was used for which only the pieces before know whether its task was woken.
    pub(crate) fn note_unwoken(&mut self, task: &Task, track: &PathTrack) {
        if let Some(log) = self.log.as_mut().filter(|_| track.origin != TrackOrigin::Here && track.waking.is_none()) {
            log.unwoken.push(task.id());
        }
    }

    /// The last event of a CPU that showed its current, and the reading then; long ago if there is none.
    pub(crate) fn last_shown(&mut self, cpu: Cpu) -> (Ts, u64) {
        let last = self.shown.get(cpu.index()).copied().filter(|(ts, _)| *ts != Ts::MIN);
        if last.is_none() {
            // The pieces before may know of one.
            self.log.iter_mut().for_each(|log| log.is_unfit = true);
        }
        last.unwrap_or((Ts::MIN, 0))
    }

    /// Takes the path to the fork of a task, if that is known.
    pub(crate) fn take_fork(&mut self, pid: Pid) -> Option<Until> {
        let fork = self.forks.remove(&pid);
        self.note_fork(pid, fork.is_some());
        fork
    }

    /// Notes that a fork was sought, and whether it was found.
    pub(crate) fn note_fork(&mut self, pid: Pid, is_found: bool) {
        if let Some(log) = &mut self.log {
            if is_found {
                log.forked.insert(pid)
            } else {
                log.unforked.insert(pid)
            };
        }
    }

    /// Notes that the trace was taken to have no exits.
    pub(crate) fn note_without_exits(&mut self) {
        self.log.iter_mut().for_each(|log| log.is_without_exits = true);
    }

    /// The path to a waking before this piece, behind which the sleep of a task ends; nothing if that is known here.
    pub(crate) fn waking_before(&mut self, task: &Task, track: &PathTrack, at: Ts) -> Option<Link> {
        let log = self.log.as_mut().filter(|_| track.origin != TrackOrigin::Here && track.waking.is_none())?;
        let sleep = Segment::of(SegmentKind::Sleeping, task.pid, (track.from.max(self.start), at));
        let link = self.chain.put(ChainNode::new(sleep, track.link));
        log.places.push((link, ChainPlace::Waking(task.id(), sleep)));
        Some(link)
    }

    /// Notes that the newest segment is a wait of which the pieces before know the beginning.
    #[cold]
    pub(crate) fn note_wait(&mut self, task: TaskId, was_held: bool, link: Link) {
        self.log.iter_mut().for_each(|log| log.places.push((link, ChainPlace::Wait(task, was_held))));
    }

    /// Notes that the newest segment is a sleep of which the pieces before know the beginning.
    #[cold]
    pub(crate) fn note_sleep(&mut self, task: TaskId, link: Link) {
        self.log.iter_mut().for_each(|log| log.places.push((link, ChainPlace::Sleep(task))));
    }

    /// The links to all paths that can still be needed.
    fn links(&self) -> Vec<Link> {
        let of_waking = |track: &PathTrack| track.waking.and_then(|waking| waking.by).map(|by| by.link);
        let of_track = |track: &PathTrack| [Some(track.link), of_waking(track)];
        let tracks = self.tracks.iter().flat_map(|(_, track)| of_track(track)).flatten();
        let others = self.forks.values().map(|until| until.link).chain(self.found.map(|(_, until)| until.link));
        tracks.chain(others).collect()
    }

    /// A segment of a later piece, whose links are those that it has here. A wait or a sleep that began before that piece has the
    /// reading at its start from here.
    /// `at`: the border.
    fn completed(&self, node: ChainNode, place: Option<ChainPlace>, at: Ts) -> ChainNode {
        // A task that has been as it is since the window began has no track yet.
        let track = |task: TaskId| self.tracks.get(task);
        let here = ChainNode { reading: node.reading.saturating_add(self.beside_idle), ..node };
        match place {
            Some(ChainPlace::Wait(task, was_held)) => {
                let first = || node.segment.cpu.map(|cpu| self.kinds.first_reading_of(task, cpu));
                let begun = self.queued.get(task).copied().or_else(first);
                let mut kinds = node.segment.kinds;
                begun.iter().for_each(|begun| kinds.add(&self.kinds.up_to_border(begun, at, was_held)));
                let known = track(task);
                let (reading, behind) = known.map_or((0, None), |track| (track.reading, track.behind));
                // Its task left before the border, or at that instant.
                let has_left = known.filter(|track| track.behind_until != Ts::MAX);
                let stayed_here = has_left.map(|track| track.stayed_until(node.segment.end_ns));
                let behind_ns = match behind {
                    Some(_) => stayed_here.unwrap_or(node.segment.behind_ns),
                    None => 0,
                };
                let beside_idle_ns =
                    node.segment.beside_idle_ns.saturating_add(self.beside_idle.saturating_sub(reading));
                ChainNode { segment: Segment { beside_idle_ns, kinds, behind, behind_ns, ..node.segment }, ..here }
            }
            Some(ChainPlace::Sleep(task)) => {
                let (reading, is_deep) = track(task).map_or((0, false), |track| (track.reading, track.is_deep));
                ChainNode { reading, is_deep, ..here }
            }
            Some(ChainPlace::Waking(task, sleep)) => {
                let track = track(task);
                let (reading, is_deep) = track.map_or((0, false), |track| (track.reading, track.is_deep));
                let waking = track.and_then(|track| track.waking).filter(|waking| waking.at == sleep.end_ns);
                let by = waking.and_then(|waking| waking.by);
                let (by, via) = by.map_or((NO_TASK, node.via), |by| (by.link, by.via));
                ChainNode { by, via, reading, is_deep, ..here }
            }
            Some(ChainPlace::Task(_)) | None => here,
        }
    }

    /// Adds the segments of a later piece that are in use; returns the links that they have here.
    fn join_chain(&mut self, later: &CriticalPath, log: &PathLog, links: &[Link]) -> Vec<Link> {
        let used = later.chain.used(links.iter().map(|link| (*link, Ts::MIN)));
        let mut map = vec![DROPPED; used.len()];
        let mut places = log.places.iter().peekable();
        for (at, node) in later.chain.all() {
            let place = places.next_if(|(link, _)| *link as usize == at).map(|(_, place)| *place);
            if !used[at] {
                continue;
            }
            map[at] = match place {
                Some(ChainPlace::Task(task)) => self.tracks.get(task).map_or(NOTHING, |track| track.link),
                _ => {
                    let (before, by) = (mapped(&map, node.before), mapped(&map, node.by));
                    let node = self.completed(ChainNode { before, by, ..node }, place, later.kinds.start());
                    self.chain.add(node)
                }
            };
        }
        map
    }

    /// Takes over a track of a later piece, whose links `map` translates; nothing if the task has a track in neither.
    fn joined_track(&self, task: TaskId, track: PathTrack, border: Option<&Border>, map: &[Link]) -> Option<PathTrack> {
        let here = |waker: Waker| Waker { link: mapped(map, waker.link), ..waker };
        let waking = track.waking.map(|Announced { at, by }| Announced { at, by: by.map(here) });
        if track.origin == TrackOrigin::Here {
            let reading = track.reading.saturating_add(self.beside_idle);
            return Some(PathTrack { link: mapped(map, track.link), waking, reading, ..track });
        }
        let unknown = || waking.and(border).map(|border| PathTrack::since(border.from));
        let known = self.tracks.get(task).copied().or_else(unknown)?;
        let behind_until = known.behind_until.min(track.behind_until);
        Some(PathTrack { waking: waking.or(known.waking), behind_until, ..known })
    }

    /// Takes over the readings of the tasks of a later piece whose tracks began there, and keeps the others.
    fn join_queued(&mut self, later: &CriticalPath) {
        for (task, _) in later.tracks.iter().filter(|(_, track)| track.origin == TrackOrigin::Here) {
            match later.queued.get(task) {
                Some(reading) => self.queued.insert(task, self.kinds.shifted(reading, &later.kinds)),
                None => drop(self.queued.take(task)),
            }
        }
    }

    /// Whether a later piece took a track for what it is here.
    fn is_as_taken(&self, task: TaskId, border: &Border) -> bool {
        match self.tracks.get(task) {
            Some(track) if border.is_unknown => {
                let is_unseen = track.link == NOTHING && track.runs.is_none() && track.off.is_none();
                is_unseen && track.from == border.from && track.waking.is_none()
            }
            Some(track) => track.from == border.from && track.runs.is_none(),
            None => true,
        }
    }
}

impl Joined for CriticalPath {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, start: Ts, at: Ts, state: &SchedState) {
        (self.start, self.last) = (start, at);
        self.is_hopeless = self.has_no_hope(state);
        self.look_up_sought(state);
        if self.is_hopeless {
            self.log = Some(Box::default());
            return;
        }
        self.kinds.begin(at, state);
        let mut log = PathLog::default();
        for task in state.living() {
            let is_unknown = task.state == TaskState::Unknown;
            let mut track = PathTrack { origin: TrackOrigin::Earlier, ..PathTrack::since(task.since) };
            if !is_unknown {
                track.link = self.chain.place();
                log.places.push((track.link, ChainPlace::Task(task.id())));
            }
            if let TaskState::Waiting(cpu) = task.state {
                self.queued_behind.add(task.id(), cpu);
            }
            log.borders.insert(task.id(), Border { from: task.since, is_unknown });
            self.tracks.insert(task.id(), track);
        }
        self.log = Some(Box::new(log));
    }

    fn fits(&self, later: &Self) -> bool {
        let Some(log) = &later.log else { return false };
        let is_as_taken = |task: &TaskId| log.borders.get(*task).is_some_and(|border| self.is_as_taken(*task, border));
        let is_unwoken = |task: &TaskId| self.tracks.get(*task).is_none_or(|track| track.waking.is_none());
        !log.is_unfit
            && self.is_hopeless == later.is_hopeless
            && !(self.has_exits && log.is_without_exits)
            && self.forks.keys().all(|pid| !log.unforked.contains(pid))
            && self.forks.len() + later.forks.len() <= PIDS
            && self.names.len() + later.names.len() <= PIDS
            && self.mutual.has_room(&later.mutual)
            && self.chain.has_room(&later.chain)
            && (self.is_hopeless || self.kinds.fits(&later.kinds))
            && log.used.iter().all(is_as_taken)
            && log.unwoken.iter().all(is_unwoken)
    }

    fn join(&mut self, mut later: Self) {
        let Some(log) = later.log.take() else { return };
        self.has_exits |= later.has_exits;
        if self.is_hopeless {
            return;
        }
        let links = later.links();
        let map = self.join_chain(&later, &log, &links);
        let here = |until: Until| Until { link: mapped(&map, until.link), ..until };
        let mut tracks = PerTask::default();
        for (task, track) in later.tracks.iter() {
            if let Some(track) = self.joined_track(task, *track, log.borders.get(task), &map) {
                tracks.insert(task, track);
            }
        }
        self.tracks = tracks;
        self.join_queued(&later);
        // The names of the later piece are the most recent ones of all tasks that it has.
        self.named = std::mem::take(&mut later.named);
        self.forks.retain(|pid, _| !log.forked.contains(pid));
        self.forks.extend(later.forks.iter().map(|(pid, until)| (*pid, here(*until))));
        (self.sought, self.queued_behind) = (later.sought, later.queued_behind);
        self.mutual.join(&later.mutual);
        if let Some((pid, until)) = later.found {
            (self.found, self.exited) = (Some((pid, here(until))), later.exited);
        }
        later.names.iter().for_each(|(pid, name)| keep_of_pid(&mut self.names, *pid, *name));
        later.strong.iter().for_each(|(pid, class)| keep_of_pid(&mut self.strong, *pid, *class));
        self.shown.resize(self.shown.len().max(later.shown.len()), (Ts::MIN, 0));
        for (known, (ts, reading)) in self.shown.iter_mut().zip(later.shown).filter(|(_, (ts, _))| *ts != Ts::MIN) {
            *known = (ts, reading.saturating_add(self.beside_idle));
        }
        self.beside_idle = self.beside_idle.saturating_add(later.beside_idle);
        self.shown_kinds.resize(self.shown_kinds.len().max(later.shown_kinds.len()), QueuedReading::default());
        for (known, reading) in self.shown_kinds.iter_mut().zip(&later.shown_kinds) {
            if *reading != QueuedReading::default() {
                *known = self.kinds.shifted(reading, &later.kinds);
            }
        }
        self.kinds.join(later.kinds);
        self.last = later.last;
        self.chain.pass(later.chain.events());
        if self.chain.is_full() {
            self.drop_unused();
        }
    }
}
