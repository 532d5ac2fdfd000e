//! The pieces of a pass, joined.
//!
//! The sets at the beginning of a later piece follow from the state, and so does the time in violation within it. A wait or an idle
//! stretch that began earlier ends in it, and the record of how it began is with the pieces before: the end is left to
//! these. That is one wait of each task and one stretch of each CPU, with the causes of migrations that are settled in
//! the piece and were made before it.

use crate::Why;
use crate::category::{WaitEnd, WaitOrigin};
use crate::ledger::MoveKey;
use crate::over_time::ColumnNotes;
use crate::stretch::{Stretch, StretchEnding};
use crate::wait::Wait;
use sched::seeded::{SeededMap, SeededSet};
use sched::{Comm, Cpu, Joined, Migration, Pid, SchedState, TaskId, TaskState, Ts};
use workcons::violation::Membership;

/// A step that is left to the pieces before.
pub(crate) enum WhyStep {
    /// The cause of a migration of a task is settled.
    Settled(Migration, Option<TaskId>),
    /// Another task runs first on the idle CPU that a task was placed on.
    Overtaken(TaskId),
    /// A wait ends that began earlier.
    Wait(EarlierWait),
    /// An idle stretch ends that began earlier, or by a task whose wait did.
    Stretch(EarlierStretch),
}

/// The end of a wait that began in an earlier piece.
pub(crate) struct EarlierWait {
    task: TaskId,
    end: (WaitEnd, Option<MoveKey>),
    who: (Pid, Comm),
    now: Ts,
    /// The time in violation in this piece, in nanoseconds.
    violated: u64,
    notes: ColumnNotes,
    /// The readings of all CPUs' idle time in violation, where groups need them.
    idle: Vec<u64>,
}

/// The end of an idle stretch that depends on an earlier piece.
pub(crate) struct EarlierStretch {
    cpu: Cpu,
    /// The stretch as far as this piece has followed it.
    stretch: Stretch,
    ending: StretchEnding,
    /// The wait of the task that runs there now.
    ran: Option<(TaskId, Wait)>,
    now: Ts,
    /// The time in violation in this piece, in nanoseconds.
    violated: u64,
    notes: ColumnNotes,
}

/// A wait at the beginning of a piece: the task, its CPU, whether it counts, and its class.
type WaitAtBorder = (TaskId, Cpu, bool, usize);

/// The beginning of a later piece of a pass, and the steps that depend on the pieces before.
pub(crate) struct WhyLog {
    at: Ts,
    memberships: Vec<Membership>,
    waits: Vec<WaitAtBorder>,
    /// The CPUs that idle at the beginning.
    idle: Vec<Cpu>,
    steps: Vec<WhyStep>,
    /// The migrations in this piece on whose causes steps depend.
    awaited: SeededSet<MoveKey>,
}

impl WhyLog {
    /// Notes the cause of a migration of a task, if something in an earlier piece can depend on it. Returns whether it can.
    pub(crate) fn settle(&mut self, m: &Migration, task: Option<TaskId>) -> bool {
        let matters = m.ts <= self.at || self.awaited.contains(&(m.pid, m.ts, m.dest));
        if matters {
            self.steps.push(WhyStep::Settled(*m, task));
        }
        matters
    }
}

impl Why<'_> {
    /// Leaves a step to the pieces before, if this is a later one.
    pub(crate) fn leave(&mut self, step: WhyStep) {
        let Some(log) = &mut self.log else { return };
        log.steps.push(step);
        self.waits.leave(None);
        self.stretches.leave(None);
    }

    /// Leaves the end of a wait to the pieces before.
    #[cold]
    #[inline(never)]
    pub(crate) fn leave_wait(
        &mut self,
        task: TaskId,
        violated: u64,
        end: (WaitEnd, Option<MoveKey>),
        who: (Pid, Comm),
        now: Ts,
    ) {
        let Some(log) = &mut self.log else { return };
        let notes = self.over_time.as_mut().map_or_else(Vec::new, |over_time| over_time.take_wait(task));
        let idle = if self.groups.is_some() { self.meter.idle_readings(now) } else { Vec::new() };
        log.awaited.extend(end.1);
        self.leave(WhyStep::Wait(EarlierWait { task, end, who, now, violated, notes, idle }));
    }

    /// Whether the end of the idle stretch of a CPU is left to the pieces before; `ran` is the wait of the task that runs
    /// there now.
    #[inline]
    pub(crate) fn leaves_stretch(&self, cpu: Cpu, ran: Option<(TaskId, Wait)>) -> bool {
        let is_earlier = |stretch: &Stretch| stretch.is_earlier || ran.is_some_and(|(_, wait)| wait.is_earlier);
        self.log.is_some()
            && self.cpus.get(cpu.index()).and_then(|track| track.stretch.as_ref()).is_some_and(is_earlier)
    }

    /// Leaves the end of the idle stretch of a CPU to the pieces before.
    #[cold]
    #[inline(never)]
    pub(crate) fn leave_stretch(&mut self, cpu: Cpu, ending: StretchEnding, ran: Option<(TaskId, Wait)>, now: Ts) {
        let Some((stretch, violated)) = self.close_stretch(cpu, now) else { return };
        let Some(log) = &mut self.log else { return };
        let notes = self.over_time.as_mut().map_or_else(Vec::new, |over_time| over_time.take_stretch(cpu));
        log.awaited.extend(stretch.origin.1.into_iter().chain(ran.and_then(|(_, wait)| wait.came.1)));
        self.leave(WhyStep::Stretch(EarlierStretch { cpu, stretch, ending, ran, now, violated, notes }));
    }

    /// Lets all readings begin anew at `at`, where a later piece begins.
    fn turn(&mut self, at: Ts) {
        for (task, track) in self.tasks.entries_mut() {
            let Some(wait) = track.wait.as_mut().filter(|wait| wait.counted) else { continue };
            let reading = self.meter.wait_reading(wait.cpu, wait.class, at);
            if let Some(over_time) = &mut self.over_time {
                over_time.note_wait(task, reading.saturating_sub(wait.noted));
            }
            wait.before = wait.violated(reading);
            (wait.reading, wait.noted) = (0, 0);
        }
        for (cpu, track) in (0..).map(Cpu).zip(&mut self.cpus) {
            let Some(stretch) = &mut track.stretch else { continue };
            let reading = self.meter.idle_reading(cpu, at);
            if let Some(over_time) = &mut self.over_time {
                over_time.note_stretch(cpu, reading.saturating_sub(stretch.noted));
            }
            stretch.before = stretch.violated(reading);
            (stretch.reading, stretch.noted) = (0, 0);
        }
        self.violated_before = self.violated_before.saturating_add(self.meter.violated(at));
        if let Some(groups) = &mut self.groups {
            groups.turn(&self.meter.idle_readings(at));
        }
    }

    /// Takes the steps that a later piece has left to this one, and lists the cases of both in their order.
    fn take(&mut self, steps: Vec<WhyStep>, later: &mut Why<'_>) {
        let (mut waits, mut stretches) = (later.waits.take_listed(), later.stretches.take_listed());
        // The waits that have ended, as they were then.
        let mut ended: SeededMap<TaskId, Wait> = SeededMap::default();
        for (place, step) in steps.into_iter().enumerate() {
            self.waits.list_before(&mut waits, place);
            self.stretches.list_before(&mut stretches, place);
            match step {
                WhyStep::Settled(migration, task) => self.settle(&migration, task),
                WhyStep::Overtaken(task) => self.overtake_task(task),
                WhyStep::Wait(end) => {
                    let Some(wait) = self.tasks.get_mut(end.task).and_then(|track| track.wait.take()) else { continue };
                    ended.insert(end.task, wait);
                    match wait.counted {
                        true => self.end_earlier_wait(&wait, end),
                        false => self.list_uncounted(&wait, end.end, end.who, end.now),
                    }
                }
                WhyStep::Stretch(end) => self.end_earlier_stretch(end, &ended),
            }
        }
        self.waits.list_before(&mut waits, usize::MAX);
        self.stretches.list_before(&mut stretches, usize::MAX);
        self.list();
    }

    /// Ends a wait of this piece that a later one has seen end.
    fn end_earlier_wait(&mut self, wait: &Wait, ended: EarlierWait) {
        let EarlierWait { task, end, who, now, violated, notes, idle } = ended;
        if let Some(over_time) = &mut self.over_time {
            over_time.add_wait(task, notes);
        }
        self.count_wait(task, (wait, wait.before.saturating_add(violated)), end, who, now, Some(idle));
    }

    /// Ends an idle stretch that a later piece has left to this one.
    fn end_earlier_stretch(&mut self, left: EarlierStretch, ended: &SeededMap<TaskId, Wait>) {
        let EarlierStretch { cpu, mut stretch, ending, ran, now, violated, notes } = left;
        let mut all = violated;
        if stretch.is_earlier {
            let Some(known) = self.cpu(cpu).stretch.take() else { return };
            all = known.before.saturating_add(violated);
            stretch = known;
        }
        let ran = ran.and_then(|(task, wait)| if wait.is_earlier { ended.get(&task).copied() } else { Some(wait) });
        if let Some(over_time) = &mut self.over_time {
            over_time.add_stretch(cpu, notes);
        }
        self.count_stretch(cpu, (&stretch, all), ending.end(stretch.since, ran), now);
    }

    /// Takes over the waits and the idle stretches that are open at the end of a later piece.
    fn take_open(&mut self, later: &mut Why<'_>) {
        for (task, track) in later.tasks.entries_mut() {
            let Some(wait) = track.wait.as_mut().filter(|wait| wait.is_earlier) else { continue };
            let known = self.tasks.get_mut(task).and_then(|track| track.wait.take());
            *wait = known.map_or(*wait, |known| {
                let before = known.before.saturating_add(wait.before);
                let Wait { cpu, start, since, origin, came, counted, on_idle, is_earlier, .. } = known;
                Wait { cpu, start, since, before, origin, came, counted, on_idle, is_earlier, ..*wait }
            });
        }
        for (cpu, track) in (0..).map(Cpu).zip(&mut later.cpus) {
            let Some(stretch) = track.stretch.as_mut().filter(|stretch| stretch.is_earlier) else { continue };
            if let Some(known) = self.cpu(cpu).stretch.take() {
                let before = known.before.saturating_add(stretch.before);
                *stretch = Stretch { before, reading: stretch.reading, noted: stretch.noted, ..known };
            }
        }
        (self.tasks, self.cpus) = (std::mem::take(&mut later.tasks), std::mem::take(&mut later.cpus));
    }
}

impl Joined for Why<'_> {
    fn is_divisible(&self) -> bool {
        // The story of an episode needs the machine as it was when the episode began, and has each step in its order.
        self.chronicle.is_none() && !self.has_gates()
    }

    fn resume(&mut self, start: Ts, at: Ts, state: &SchedState) {
        self.start = start;
        self.waits.resume();
        self.stretches.resume();
        self.meter.begin(at);
        if let Some(over_time) = &mut self.over_time {
            over_time.resume(at);
            self.column_end = over_time.column_end();
        }
        // The groups know of the earlier waits what the pieces before have noted.
        let groups = self.groups.take();
        let mut waits = Vec::new();
        for task in state.living() {
            let TaskState::Waiting(cpu) = task.state else { continue };
            self.wait_begins(task, cpu, (WaitOrigin::Unknown, None), at, state);
            if let Some(wait) = self.tasks.get_mut(task.id()).and_then(|track| track.wait.as_mut()) {
                wait.is_earlier = true;
                waits.push((task.id(), cpu, wait.counted, wait.class));
            }
        }
        self.groups = groups;
        let cpus: Vec<Cpu> = state.observed().chain(self.options.assume_idle.iter().copied()).collect();
        let mut idle = Vec::new();
        for cpu in cpus {
            self.settle_cpu(cpu, at, state);
            if self.options.load(cpu, state).idles() {
                self.cpu(cpu).stretch = Some(Stretch { is_earlier: true, ..Stretch::at_start(at, at) });
                idle.push(cpu);
            }
        }
        idle.sort_unstable();
        idle.dedup();
        self.meter.update(at);
        let memberships = self.meter.memberships();
        let (steps, awaited) = (Vec::new(), SeededSet::default());
        self.log = Some(Box::new(WhyLog { at, memberships, waits, idle, steps, awaited }));
    }

    fn fits(&self, later: &Self) -> bool {
        let Some(log) = &later.log else { return false };
        let open = || self.tasks.iter().filter_map(|(_, track)| track.wait);
        let is_known = |(task, cpu, counted, class): &WaitAtBorder| {
            let wait = self.tasks.get(*task).and_then(|track| track.wait);
            wait.is_some_and(|wait| (wait.cpu, wait.counted, wait.class) == (*cpu, *counted, *class))
        };
        let idle = (0..).map(Cpu).zip(&self.cpus).filter(|(_, track)| track.stretch.is_some()).map(|(cpu, _)| cpu);
        let has_room = |(groups, later_groups): (&crate::Groups, &crate::Groups)| {
            groups.fits(later_groups, self.meter.cpus().max(later.meter.cpus()), log.waits.len())
        };
        // A stopper that has moved a task away, or a balancer, in the midst of its work is known to this piece alone.
        self.stopped.are_none()
            && self.balancer.as_ref().is_none_or(|balancer| !balancer.has_open())
            && open().count() == log.waits.len()
            && log.waits.iter().all(is_known)
            && idle.eq(log.idle.iter().copied())
            && self.meter.has_memberships(&log.memberships)
            && later.waits.has_order(log.awaited.iter())
            && later.stretches.has_order(log.awaited.iter())
            && self.groups.as_deref().into_iter().zip(later.groups.as_deref()).all(has_room)
    }

    fn join(&mut self, mut later: Self) {
        let Some(log) = later.log.take() else { return };
        self.turn(log.at);
        self.take(log.steps, &mut later);
        self.waits.join(std::mem::take(&mut later.waits));
        self.stretches.join(std::mem::take(&mut later.stretches));
        self.missed.join(&later.missed);
        if let (Some(over_time), Some(later)) = (&mut self.over_time, later.over_time.take()) {
            over_time.join(*later);
        }
        if let (Some(groups), Some(later)) = (&mut self.groups, later.groups.take()) {
            groups.join(*later);
        }
        self.take_open(&mut later);
        (self.meter, self.stopped, self.balancer) = (later.meter, later.stopped, later.balancer);
        self.column_end = later.column_end;
    }
}
