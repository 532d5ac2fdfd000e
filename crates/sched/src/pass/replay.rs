//! Any moment of a trace, soon: checkpoints of the state, and replaying from the nearest one.
//!
//! One pass over the trace leaves at most [`Replay::CHECKPOINTS`] copies of the state, at distances
//! that double whenever there would be more, or they would take too much room. The events between two of them are held while one
//! moves about there. A step back therefore costs the replay of one such segment, and a jump to anywhere
//! its reading: in 80 million events some 300,000, a tenth of a second.

mod checkpoints;

use crate::analysis::Analysis;
use crate::analysis::joined::Joined;
use crate::balance::causes::Causes;
use crate::event::diag::Diagnostics;
use crate::event::{SchedEvent, Ts};
use crate::pass::{EventSource, Outcome, Pass, WindowFold};
use crate::state::SchedState;
use crate::tables::ascending::Ascending;
use checkpoints::{Checkpoint, CheckpointRecorder};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The numbers of the recorded events. Losses, and CPUs that go offline, are steps of a replay as well, but no recorded
/// events.
#[derive(Clone, Debug, Default)]
pub struct RecordedSteps {
    total: u64,
    concluded: Arc<Ascending>,
}

impl RecordedSteps {
    /// Makes the numbers of `total` events, all of which were recorded.
    pub fn all(total: u64) -> RecordedSteps {
        RecordedSteps { total, ..RecordedSteps::default() }
    }

    /// The number of recorded events.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether the event of a step was concluded by a reader, rather than recorded.
    pub fn is_concluded(&self, step: u64) -> bool {
        self.concluded.count_below(step.saturating_add(1)) > self.concluded.count_below(step)
    }

    /// The number of recorded events that precede a step.
    pub fn before(&self, step: u64) -> u64 {
        step.saturating_sub(self.concluded.count_below(step)).min(self.total)
    }
}

/// A trace that can be moved through in both directions. A *step* is the number of an event, from zero; the state at a
/// step is the one before that event. The last step has no event any more.
#[derive(Debug)]
pub struct Replay<S> {
    source: S,
    checkpoints: Arc<[Checkpoint]>,
    /// The steps at which violations of work conservation begin.
    violations: Arc<Ascending>,
    /// The steps whose events a reader concludes, rather than a CPU recorded.
    concluded: Arc<Ascending>,
    total: u64,
    /// The last instant of the trace.
    end: Ts,
    /// The index of the checkpoint whose events are held, all of them or a part.
    segment: Option<usize>,
    /// The step of the first event that is held.
    first: u64,
    events: Vec<SchedEvent>,
    /// Maximum number of events that are held at once.
    most_held: usize,
    state: SchedState,
    at: u64,
    diagnostics: Diagnostics,
}

/// Decides at each step of a pass whether a state of the machine holds, such as a violation of work conservation. `()` has
/// none.
pub trait StepWatch {
    /// Whether the watch looks at [`SchedState::counts`].
    const COUNTS: bool = false;

    /// Takes the state at the start of the trace. Called once, before the other functions.
    fn begin(&mut self, state: &SchedState);

    /// Takes an event once it was applied, and the state after it.
    fn after(&mut self, event: &SchedEvent, state: &SchedState);

    /// Whether the watched state holds now.
    fn holds(&self, state: &SchedState) -> bool;
}

impl StepWatch for () {
    fn begin(&mut self, _: &SchedState) {}

    fn after(&mut self, _: &SchedEvent, _: &SchedState) {}

    fn holds(&self, _: &SchedState) -> bool {
        false
    }
}

impl<S: EventSource> Replay<S> {
    /// Maximum number of copies of the state that are kept.
    pub const CHECKPOINTS: usize = 256;
    /// Minimum distance between two checkpoints, in events.
    const EVERY: u64 = 20_000;
    /// Maximum size of all checkpoints in bytes: for thousands of tasks on hundreds of CPUs a copy takes megabytes.
    const ROOM: usize = 96 << 20;
    /// Maximum number of events that are held at once, some 20 MB. More events lie between two checkpoints in a trace
    /// of billions of events, or where millions have the same time.
    const HELD: usize = 1 << 18;

    /// Makes a pass over the source and keeps checkpoints. The replay has no violations.
    pub fn new(source: S) -> Result<Replay<S>, S::Error> {
        Replay::watching(source, || ())
    }

    /// Makes a pass over the source and keeps checkpoints; violations are what the watch decides. `watch` is called once,
    /// and once more for each repetition of the pass.
    pub fn watching<W: StepWatch>(source: S, watch: impl Fn() -> W) -> Result<Replay<S>, S::Error> {
        Replay::with(source, Self::EVERY, Self::CHECKPOINTS, watch)
    }

    /// Makes a pass like [`Replay::watching`] and keeps at most `most` checkpoints, at least `every` events apart.
    pub fn with<W: StepWatch>(
        source: S,
        every: u64,
        most: usize,
        watch: impl Fn() -> W,
    ) -> Result<Replay<S>, S::Error> {
        Ok(Replay::build_beside(source, watch, (every, None), most, Self::ROOM, || ())?.0)
    }

    /// Makes a pass over the source, and keeps at most this number of checkpoints in this number of bytes, so that parts can be
    /// analysed.
    pub fn for_parts(source: S, (most, room): (usize, usize)) -> Result<Replay<S>, S::Error> {
        let causes = Some(Causes::default());
        Ok(Replay::build_beside(source, || (), (Self::EVERY, causes), most, room, || ())?.0)
    }

    /// Makes a pass over the source, keeps at most this number of checkpoints in this number of bytes, and makes an
    /// analysis of the whole trace meanwhile, in pieces if the source has threads enough. `analysis` is called for each piece,
    /// on any thread, and must make the same analysis each time.
    pub fn beside<A: Joined>(
        mut source: S,
        (most, room): (usize, usize),
        analysis: impl Fn() -> A + Sync,
    ) -> Result<(Replay<S>, A::Output), S::Error> {
        let recorder = || CheckpointRecorder::new((Self::EVERY, Some(Causes::default())), most, room, ());
        let outcome = Pass::over(&mut source).run_in_pieces(|| (recorder(), analysis()))?;
        Ok(Replay::behind(source, outcome))
    }

    /// Makes an analysis of the part of the trace from `from` up to `to`, which is inside only at the end of the trace,
    /// from the checkpoint before it on. An analysis that looks back sees the events from that checkpoint on only. The
    /// current step stays the same.
    pub fn window<A: Analysis>(&mut self, from: Ts, to: Ts, analysis: A) -> Result<A::Output, S::Error> {
        let nearest = self.checkpoints.partition_point(|c| c.ts <= from).saturating_sub(1);
        let begin = self.checkpoints.get(nearest).map_or(Ts::MIN, |c| c.ts);
        let state = self.checkpoints.get(nearest).map_or_else(SchedState::default, |c| c.state.unpacked());
        let causes = self.checkpoints.get(nearest).and_then(|c| c.causes.clone());
        let mut part = WindowFold::new((state, causes.unwrap_or_default()), analysis, from, to, to >= self.end);
        self.source.events_from(begin, &mut |events| part.feed(events))?;
        Ok(part.close())
    }

    /// Returns another replay of the same trace, which shares the checkpoints and is at the first step.
    #[must_use]
    pub fn another(&self) -> Replay<S>
    where
        S: Clone,
    {
        Replay {
            source: self.source.clone(),
            checkpoints: Arc::clone(&self.checkpoints),
            violations: Arc::clone(&self.violations),
            concluded: Arc::clone(&self.concluded),
            segment: None,
            first: 0,
            events: Vec::new(),
            state: self.checkpoints.first().map_or_else(SchedState::default, |c| c.state.unpacked()),
            at: 0,
            diagnostics: self.diagnostics.clone(),
            ..*self
        }
    }

    /// Makes the pass that keeps checkpoints, with an analysis beside it. `every` is the least distance of checkpoints;
    /// `causes` are kept in them if parts will be analysed.
    fn build_beside<A: Analysis, W: StepWatch>(
        mut source: S,
        watch: impl Fn() -> W,
        (every, causes): (u64, Option<Causes>),
        most: usize,
        room: usize,
        analysis: impl Fn() -> A,
    ) -> Result<(Replay<S>, A::Output), S::Error> {
        let recorder = || CheckpointRecorder::new((every, causes.clone()), most, room, watch());
        let outcome = Pass::over(&mut source).run(|| (recorder(), analysis()))?;
        Ok(Replay::behind(source, outcome))
    }

    /// Makes the replay of a source whose pass was made.
    fn behind<W, O>(source: S, outcome: Outcome<(CheckpointRecorder<W>, O)>) -> (Replay<S>, O) {
        let (CheckpointRecorder { checkpoints, mut violations, mut concluded, count, .. }, output) = outcome.output;
        violations.shrink();
        concluded.shrink();
        let state = checkpoints.first().map_or_else(SchedState::default, |c| c.state.unpacked());
        let replay = Replay {
            source,
            checkpoints: checkpoints.into(),
            violations: Arc::new(violations),
            concluded: Arc::new(concluded),
            total: count,
            end: outcome.to,
            segment: None,
            first: 0,
            events: Vec::new(),
            most_held: Self::HELD,
            state,
            at: 0,
            diagnostics: outcome.diagnostics,
        };
        (replay, output)
    }

    /// The last step: the number of events, with those that a reader concludes.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The numbers of the recorded events alone.
    pub fn recorded(&self) -> RecordedSteps {
        RecordedSteps { total: self.total.saturating_sub(self.concluded.len()), concluded: Arc::clone(&self.concluded) }
    }

    /// The current step.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The state at the current step.
    pub fn state(&self) -> &SchedState {
        &self.state
    }

    /// The findings of the pass that made the replay.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// The number of checkpoints.
    pub fn checkpoints(&self) -> usize {
        self.checkpoints.len()
    }

    /// The instants of the checkpoints, in ascending order. [`Replay::window`] begins at the last one up to the window.
    pub fn checkpoint_times(&self) -> impl Iterator<Item = Ts> {
        self.checkpoints.iter().map(|checkpoint| checkpoint.ts)
    }

    /// The event of the current step, which is about to be applied. `None` at the last step, and before the first
    /// [`Replay::go`].
    pub fn event(&self) -> Option<&SchedEvent> {
        self.segment?;
        self.events.get(usize::try_from(self.at.checked_sub(self.first)?).ok()?)
    }

    /// Goes to a step, or to the last one if there are fewer.
    pub fn go(&mut self, step: u64) -> Result<(), S::Error> {
        let step = step.min(self.total);
        let nearest = self.segment_of(step);
        let Some(checkpoint) = self.checkpoints.get(nearest) else { return Ok(()) };
        if self.segment != Some(nearest) || step < self.at {
            (self.state, self.at) = (checkpoint.state.unpacked(), checkpoint.index);
        }
        let held = self.first..self.first + self.events.len() as u64;
        let is_held = |step: u64| held.contains(&step) || step == self.end_of(nearest) && step == held.end;
        if self.segment != Some(nearest) || !held.contains(&self.at) && self.at < step || !is_held(step) {
            return self.load(nearest, step);
        }
        while self.at < step {
            let Some(event) = self.event().copied() else { break };
            self.state.apply(&event);
            self.at += 1;
        }
        Ok(())
    }

    /// The index of the checkpoint at or before a step.
    fn segment_of(&self, step: u64) -> usize {
        self.checkpoints.partition_point(|c| c.index <= step).saturating_sub(1)
    }

    /// The step at which the segment behind a checkpoint ends.
    fn end_of(&self, segment: usize) -> u64 {
        self.checkpoints.get(segment + 1).map_or(self.total, |next| next.index)
    }

    /// Reads and holds the events of a segment from the current step up to `step`: all of the segment, so that the way
    /// back is short, or the next ones if these are too many.
    fn load(&mut self, segment: usize, step: u64) -> Result<(), S::Error> {
        let Some(checkpoint) = self.checkpoints.get(segment) else { return Ok(()) };
        let end = self.end_of(segment);
        let most = self.most_held as u64;
        self.first = if end - checkpoint.index <= most { checkpoint.index } else { step };
        let end = end.min(self.first.saturating_add(most));
        let Replay { source, events, state, at, first, .. } = self;
        events.clear();
        let mut index = checkpoint.index;
        source.events_from(checkpoint.ts, &mut |more| {
            for event in more.iter().take(usize::try_from(end - index).unwrap_or(usize::MAX)) {
                if index == *at && index < step {
                    state.apply(event);
                    *at += 1;
                }
                if index >= *first {
                    events.push(*event);
                }
                index += 1;
            }
            if index < end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        self.segment = Some(segment);
        Ok(())
    }

    /// Returns the first step at or behind `step` whose event is `wanted`.
    pub fn find(&mut self, step: u64, mut wanted: impl FnMut(&SchedEvent) -> bool) -> Result<Option<u64>, S::Error> {
        let nearest = self.segment_of(step);
        let Some(checkpoint) = self.checkpoints.get(nearest) else { return Ok(None) };
        let mut index = checkpoint.index;
        let mut found = None;
        self.source.events_from(checkpoint.ts, &mut |events| {
            for event in events {
                if index >= step && wanted(event) {
                    found = Some(index);
                    return ControlFlow::Break(());
                }
                index += 1;
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Returns the last step before `step` whose event is `wanted`.
    pub fn find_back(
        &mut self,
        step: u64,
        mut wanted: impl FnMut(&SchedEvent) -> bool,
    ) -> Result<Option<u64>, S::Error> {
        let segments = self.checkpoints.partition_point(|c| c.index < step);
        for segment in (0..segments).rev() {
            let Some(checkpoint) = self.checkpoints.get(segment) else { continue };
            let end = step.min(self.end_of(segment));
            let mut index = checkpoint.index;
            let mut found = None;
            self.source.events_from(checkpoint.ts, &mut |events| {
                for event in events {
                    if index >= end {
                        return ControlFlow::Break(());
                    }
                    if wanted(event) {
                        found = Some(index);
                    }
                    index += 1;
                }
                ControlFlow::Continue(())
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns the first step whose event is at `ts` or later; the last step if none is.
    pub fn step_at(&mut self, ts: Ts) -> Result<u64, S::Error> {
        let nearest = self.checkpoints.partition_point(|c| c.ts < ts).saturating_sub(1);
        let from = self.checkpoints.get(nearest).map_or(0, |c| c.index);
        Ok(self.find(from, |event| event.ts >= ts)?.unwrap_or(self.total))
    }

    /// The step at which the next violation of work conservation begins, behind the current step.
    pub fn next_violation(&self) -> Option<u64> {
        self.violations.above(self.at)
    }

    /// The step at which the last violation of work conservation before the current step began.
    pub fn previous_violation(&self) -> Option<u64> {
        self.violations.below(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Comm, Cpu, EventKind, Pid, PrevState, TaskRef};

    /// A thousand tasks run by turns, each until the next event.
    fn turns(events: i32, ts: impl Fn(i32) -> i64) -> Vec<SchedEvent> {
        let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"t") };
        let switch = |n: i32| {
            let (prev, next) = (task(1 + n % 1000), task(1 + (n + 1) % 1000));
            let kind = EventKind::Switch { prev, state: PrevState::asleep(1), next };
            SchedEvent { ts: Ts(ts(n)), cpu: Cpu(0), pid: prev.pid, flags: 0, kind }
        };
        (0..events).map(switch).collect()
    }

    #[test]
    fn events_of_one_time_are_held_in_parts() {
        // Between two instants no checkpoint can lie.
        let events = turns(20_000, |n| if (5_000..15_000).contains(&n) { 5_000 } else { i64::from(n) });
        let replay = |most_held| {
            let replay = Replay::with(&events[..], 100, 64, || ());
            Replay { most_held, ..replay.unwrap_or_else(|never| match never {}) }
        };
        let (mut all, mut parts) = (replay(usize::MAX), replay(300));
        for step in
            [0, 5_000, 5_001, 5_299, 5_300, 5_301, 14_999, 9_000, 8_999, 5_000, 15_000, 19_999, 20_000, 12_345, 3]
        {
            all.go(step).unwrap_or_else(|never| match never {});
            parts.go(step).unwrap_or_else(|never| match never {});
            let running = |replay: &Replay<_>| replay.state().running(Cpu(0)).map(|task| task.pid);
            assert_eq!((parts.at(), parts.event()), (step, events.get(step as usize)), "{step}");
            assert_eq!((running(&parts), parts.event()), (running(&all), all.event()), "{step}");
            assert!(parts.events.len() <= 300, "{} at {step}", parts.events.len());
        }
    }

    #[test]
    fn a_part_is_what_a_pass_over_its_window_finds() {
        use crate::analysis::RunTime;
        let events = turns(20_000, |n| i64::from(n / 3));
        let (mut replay, whole) =
            Replay::build_beside(&events[..], || (), (100, None), 64, usize::MAX, RunTime::default)
                .unwrap_or_else(|never| match never {});
        assert_eq!(whole.total().0, 6_666);
        for (from, to) in [(0, 7_000), (0, 1), (17, 18), (1_000, 3_000), (5_999, 6_666), (6_666, 6_666)] {
            let window = crate::pass::Window { from: Some(Ts(from)), to: Some(Ts(to)) };
            let truth = Pass::over(&events[..]).window(window).run(RunTime::default);
            let truth = truth.unwrap_or_else(|never| match never {}).output;
            let part = replay.window(Ts(from), Ts(to.min(6_666)), RunTime::default());
            let part = part.unwrap_or_else(|never| match never {});
            assert_eq!(part.total(), truth.total(), "{from}..{to}");
            for pid in 1..=1_000 {
                assert_eq!(part.ns_of(Pid(pid)), truth.ns_of(Pid(pid)), "{pid} in {from}..{to}");
            }
        }
    }

    #[test]
    fn checkpoints_take_no_more_room_than_there_is() {
        let events = turns(20_000, i64::from);
        let replay = |room| {
            let replay =
                Replay::build_beside(&events[..], || (), (100, None), 64, room, || ()).map(|(replay, ())| replay);
            replay.unwrap_or_else(|never| match never {})
        };
        let size = |replay: &Replay<_>| replay.checkpoints.iter().map(|c| c.state.bytes()).sum::<usize>();
        let (mut free, mut tight) = (replay(usize::MAX), replay(1 << 18));
        assert!(free.checkpoints() > 32 && size(&free) > 1 << 19, "{} in {}", free.checkpoints(), size(&free));
        assert!(tight.checkpoints() > 3 && size(&tight) <= 1 << 18, "{} in {}", tight.checkpoints(), size(&tight));
        for step in [0, 1, 777, 12_345, 20_000, 3] {
            free.go(step).unwrap_or_else(|never| match never {});
            tight.go(step).unwrap_or_else(|never| match never {});
            assert_eq!(free.state().running(Cpu(0)).map(|t| t.pid), tight.state().running(Cpu(0)).map(|t| t.pid));
            assert_eq!((free.at(), free.event()), (tight.at(), tight.event()));
        }
    }
}
