//! The checkpoints of a pass, and the steps that are noted with them.

use super::StepWatch;
use crate::analysis::Analysis;
use crate::analysis::joined::Joined;
use crate::balance::causes::Causes;
use crate::event::{SchedEvent, Ts};
use crate::state::{PackedState, SchedState};
use crate::tables::ascending::Ascending;

/// A copy of the state before one event of the trace.
#[derive(Clone, Debug)]
pub(super) struct Checkpoint {
    pub(super) ts: Ts,
    pub(super) index: u64,
    pub(super) state: PackedState,
    /// The migrations that are not settled there, and the events that decide the causes of the next ones. `None` if no
    /// parts are analysed.
    pub(super) causes: Option<Causes>,
}

impl Checkpoint {
    /// The approximate number of bytes of the checkpoint.
    pub(super) fn bytes(&self) -> usize {
        self.state.bytes() + self.causes.as_ref().map_or(0, Causes::bytes)
    }
}

/// An analysis that keeps checkpoints, and notes the steps at which violations begin.
pub(super) struct CheckpointRecorder<W> {
    every: u64,
    most: usize,
    /// Maximum number of bytes of all checkpoints, unless the events between two of them take more.
    room: usize,
    last: Ts,
    pub(super) count: u64,
    pub(super) checkpoints: Vec<Checkpoint>,
    causes: Option<Causes>,
    pub(super) violations: Ascending,
    pub(super) concluded: Ascending,
    violated: bool,
    /// The decision on violations.
    watch: W,
    /// The causes that a later piece of a pass begins with.
    taken_up: Option<Causes>,
    /// The number of events that count as passed while there is no checkpoint.
    passed: u64,
}

impl<W: StepWatch> Analysis for CheckpointRecorder<W> {
    type Output = CheckpointRecorder<W>;
    const COUNTS: bool = W::COUNTS;

    fn unsettled(&mut self, causes: &Causes) {
        self.taken_up = self.causes.is_some().then(|| causes.clone());
    }

    fn begin(&mut self, start: Ts, state: &SchedState) {
        self.taken_up = None;
        self.keep(start, state);
        self.watch.begin(state);
        self.look(state);
    }

    fn before(&mut self, event: &SchedEvent, state: &SchedState) {
        let passed = self.checkpoints.last().map_or(self.passed, |c| self.count - c.index);
        // Reading begins at an instant: all events of the same instant are behind it.
        if passed >= self.every && event.ts > self.last {
            self.keep(event.ts, state);
            self.thin_out();
        }
        self.last = event.ts;
        if event.kind.is_concluded() {
            self.concluded.push(self.count);
        }
        self.count += 1;
        if let Some(causes) = &mut self.causes {
            causes.event(event, state, drop);
        }
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        self.watch.after(event, state);
        self.look(state);
    }

    fn finish(self, _: Ts, _: &SchedState) -> CheckpointRecorder<W> {
        self
    }
}

impl<W: StepWatch> CheckpointRecorder<W> {
    /// A recorder of at most this number of checkpoints in this number of bytes, at least `every` events apart, with `causes` if
    /// parts will be analysed.
    pub(super) fn new(
        (every, causes): (u64, Option<Causes>),
        most: usize,
        room: usize,
        watch: W,
    ) -> CheckpointRecorder<W> {
        CheckpointRecorder {
            every: every.max(1),
            most: most.max(2),
            room,
            last: Ts::MIN,
            count: 0,
            checkpoints: Vec::new(),
            causes,
            violations: Ascending::default(),
            concluded: Ascending::default(),
            violated: false,
            watch,
            taken_up: None,
            passed: 0,
        }
    }

    /// Keeps a checkpoint at the present event.
    fn keep(&mut self, ts: Ts, state: &SchedState) {
        let (index, state, causes) = (self.count, state.packed(), self.causes.clone());
        self.checkpoints.push(Checkpoint { ts, index, state, causes });
    }

    /// Drops every other checkpoint if there are too many.
    fn thin_out(&mut self) {
        if self.checkpoints.len() > self.most || self.takes_too_much() {
            let mut nth = 0;
            self.checkpoints.retain(|_| {
                nth += 1;
                nth % 2 == 1
            });
            self.every *= 2;
        }
    }

    /// Whether the checkpoints take more memory than they may.
    fn takes_too_much(&self) -> bool {
        let bytes: usize = self.checkpoints.iter().map(Checkpoint::bytes).sum();
        bytes > self.room.max((self.every as usize).saturating_mul(size_of::<SchedEvent>()))
    }

    /// Notes the present step if a violation begins there.
    fn look(&mut self, state: &SchedState) {
        let violated = self.watch.holds(state);
        if violated && !self.violated {
            self.violations.push(self.count);
        }
        self.violated = violated;
    }
}

/// Checkpoints without a watch are made in pieces: a piece keeps the checkpoints that can be needed, and the pieces before
/// take those that are.
impl Joined for CheckpointRecorder<()> {
    fn is_divisible(&self) -> bool {
        true
    }

    fn resume(&mut self, _: Ts, at: Ts, state: &SchedState) {
        self.causes = self.taken_up.take();
        // Copies take no more room than the events between them.
        self.every = self.every.max((state.bytes() / size_of::<SchedEvent>()) as u64);
        (self.last, self.passed) = (at, self.every);
    }

    fn fits(&self, later: &Self) -> bool {
        // Where nothing else takes migrations, a later piece does not learn of those before it.
        self.causes.is_some() == later.causes.is_some()
    }

    fn join(&mut self, later: Self) {
        for checkpoint in later.checkpoints {
            let index = self.count + checkpoint.index;
            if self.checkpoints.last().is_none_or(|last| index - last.index >= self.every) {
                self.checkpoints.push(Checkpoint { index, ..checkpoint });
                self.thin_out();
            }
        }
        later.concluded.iter().for_each(|step| self.concluded.push(self.count + step));
        (self.last, self.causes) = (later.last, later.causes);
        self.count += later.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Comm, Cpu, EventKind, Pid, PrevState, TaskRef};
    use crate::pass::{Pass, Pieces};

    #[test]
    fn checkpoints_of_pieces_have_the_states_of_one_pass() {
        let task = |pid| TaskRef { pid: Pid(pid), prio: 120, comm: Comm::new(b"t") };
        let switch = |n: i32| {
            let (prev, next) = (task(1 + n % 9), task(1 + (n + 1) % 9));
            let kind = EventKind::Switch { prev, state: PrevState::asleep(1), next };
            // Three events at each instant, and a CPU that goes offline at times.
            let kind = if n % 50 == 49 { EventKind::Offline } else { kind };
            SchedEvent { ts: Ts(i64::from(n / 3)), cpu: Cpu(n.cast_unsigned() % 2), pid: prev.pid, flags: 0, kind }
        };
        let events: Vec<SchedEvent> = (0..5_000).map(switch).collect();
        let recorder = || CheckpointRecorder::new((100, None), 16, usize::MAX, ());
        let whole = Pass::over(&events[..]).run(recorder).unwrap_or_else(|never| match never {}).output;
        for length in [1, 64, 333, 4_000] {
            let pass = Pass::over(&events[..]).pieces(Some(Pieces { events: length, workers: 2, scans: true }));
            let pieces = pass.run_in_pieces(recorder).unwrap_or_else(|never| match never {}).output;
            assert_eq!(pieces.count, whole.count);
            let concluded = |recorder: &CheckpointRecorder<()>| recorder.concluded.iter().collect::<Vec<u64>>();
            assert_eq!((concluded(&pieces), concluded(&whole).len()), (concluded(&whole), 100));
            let number = pieces.checkpoints.len();
            assert!((4..=16).contains(&number) && pieces.checkpoints[0].index == 0, "{number} in pieces of {length}");
            for Checkpoint { ts, index, state, .. } in &pieces.checkpoints {
                let mut truth = whole.checkpoints[0].state.unpacked();
                events[..*index as usize].iter().for_each(|event| truth.apply(event));
                assert_eq!(*ts, events[*index as usize].ts);
                assert_eq!(state.unpacked().noted(), truth.noted(), "{index} in pieces of {length}");
            }
        }
    }
}
