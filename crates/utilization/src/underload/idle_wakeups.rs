//! Wakeups and new tasks by the time for which the CPU that they are queued on had idled, and by the idle state that they end.

use sched::probe::Probe;
use sched::{Cpu, Dur, EventKind, Past, SchedEvent, SchedState, TaskState, Ts};
use serde::Serialize;
use std::collections::BTreeMap;
use timeline::Rows;

/// The upper bounds of the time for which a CPU had idled; a last class has none.
const BOUNDS: [Dur; 3] = [Dur(2_000_000), Dur(10_000_000), Dur(100_000_000)];

/// The number of idle states of a CPU that are distinguished.
const STATES: usize = 16;

/// The name of the notes in [`Past::notes`].
pub(super) const NOTE: &str = "idle-states";

/// The wakeups and new tasks of a window, by the CPU on which they are queued.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleWakeups {
    /// The number of wakeups and new tasks that queue a task on a CPU shown.
    pub placed: u64,
    /// The number of these wakeups on a CPU that idled with an empty queue.
    pub on_idle: u64,
    /// The wakeups on an idle CPU by the time for which it had idled, the shortest first.
    pub by_idle_time: Vec<WarmthRow>,
    /// The number of wakeups on a CPU that had idled since the trace's start, for less than 100 ms.
    pub since_start: u64,
    /// The wakeups on an idle CPU by the idle state that they end; absent where `power:cpu_idle` was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_states: Option<Vec<IdleStateRow>>,
}

/// The wakeups on CPUs that had idled for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WarmthRow {
    /// The least time for which the CPU had idled, in nanoseconds.
    pub at_least_ns: Dur,
    /// The time below which the CPU had idled, in nanoseconds; absent in the last row.
    pub below_ns: Option<Dur>,
    /// The number of wakeups and new tasks.
    pub wakeups: u64,
}

/// The wakeups that end an idle state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleStateRow {
    /// The number of the idle state as `power:cpu_idle` has it, or `none` for a CPU in none, or `unknown` for one without a record before.
    pub state: String,
    /// The number of wakeups and new tasks.
    pub wakeups: u64,
}

/// The latest record of `power:cpu_idle` of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum IdleDepth {
    /// The CPU is in the state with this number; all deep ones are one.
    In(u8),
    /// The CPU has left its idle state.
    Awake,
    /// There is no record.
    #[default]
    Unknown,
}

/// The sums of a window.
#[derive(Clone, Debug, Default)]
pub(super) struct IdleWakeupSums {
    placed: u64,
    since_start: u64,
    warmth: [u64; BOUNDS.len() + 1],
    has_states: bool,
    /// The latest record of each CPU.
    depths: Vec<IdleDepth>,
    by_depth: BTreeMap<IdleDepth, u64>,
    /// The wakeups on CPUs without a record since the beginning of a later piece of a pass, by CPU.
    undecided: Option<BTreeMap<Cpu, u64>>,
}

impl IdleWakeupSums {
    pub(super) fn new(has_states: bool) -> IdleWakeupSums {
        IdleWakeupSums { has_states, ..IdleWakeupSums::default() }
    }

    pub(super) fn follows_states(&self) -> bool {
        self.has_states
    }

    /// Takes a record of an idle state.
    pub(super) fn follow_states(&mut self, event: &SchedEvent) {
        let EventKind::Probe { probe: Probe::IdleState { cpu, state }, .. } = event.kind else { return };
        self.enter(cpu, state);
    }

    /// A CPU enters an idle state, or leaves it.
    fn enter(&mut self, cpu: Cpu, state: Option<u8>) {
        if cpu.index() >= self.depths.len() {
            self.depths.resize(cpu.index() + 1, IdleDepth::Unknown);
        }
        self.depths[cpu.index()] = state.map_or(IdleDepth::Awake, |state| IdleDepth::In(state.min(STATES as u8)));
    }

    /// Returns the note of the latest record of each CPU for a part of the trace that begins now; nothing without a record.
    pub(super) fn noted(&self) -> Option<String> {
        let state = |depth: &IdleDepth| match depth {
            IdleDepth::In(state) => Some(Some(*state)),
            IdleDepth::Awake => Some(None),
            IdleDepth::Unknown => None,
        };
        let cpus = (0..).map(Cpu).zip(&self.depths);
        let latest: Vec<(Cpu, Option<u8>)> = cpus.filter_map(|(cpu, depth)| Some((cpu, state(depth)?))).collect();
        if latest.is_empty() { None } else { serde_json::to_string(&latest).ok() }
    }

    /// Takes up the note of a part, if it has one that can be understood.
    pub(super) fn take_up(&mut self, past: &Past) {
        let note = past.notes.get(NOTE).and_then(|text| serde_json::from_str::<Vec<(Cpu, Option<u8>)>>(text).ok());
        let believable = note.into_iter().flatten().filter(|(cpu, _)| cpu.0 < Cpu::LIMIT);
        believable.for_each(|(cpu, state)| self.enter(cpu, state));
    }

    /// Follows an event of the window.
    #[inline]
    pub(super) fn follow(&mut self, event: &SchedEvent, state: &SchedState, rows: &Rows) {
        match event.kind {
            EventKind::Wakeup { target, .. } | EventKind::WakeupNew { target, .. } => {
                let joins = |span: &sched::Span| span.next == TaskState::Waiting(target);
                if rows.of(target).is_some() && state.spans().iter().any(joins) {
                    self.place(event.ts, target, state);
                }
            }
            EventKind::Probe { .. } if self.has_states => self.follow_states(event),
            _ => {}
        }
    }

    /// A task joins the queue of a CPU.
    fn place(&mut self, ts: Ts, target: Cpu, state: &SchedState) {
        self.placed += 1;
        if !state.load(target).is_awaited() || state.queue_length(target) != 1 {
            return;
        }
        let since = state.current_since(target);
        let idled = ts.since(since);
        match BOUNDS.iter().position(|bound| idled < *bound) {
            Some(_) if since <= state.start() => self.since_start += 1,
            place => self.warmth[place.unwrap_or(BOUNDS.len())] += 1,
        }
        if !self.has_states {
            return;
        }
        match (self.depths.get(target.index()).copied().unwrap_or_default(), &mut self.undecided) {
            (IdleDepth::Unknown, Some(undecided)) => *undecided.entry(target).or_default() += 1,
            (depth, _) => *self.by_depth.entry(depth).or_default() += 1,
        }
    }

    /// Leaves what the records before decide to the pieces before, where a piece of a pass begins.
    pub(super) fn resume(&mut self) {
        self.undecided = Some(BTreeMap::new());
    }

    /// Adds a later piece.
    pub(super) fn join(&mut self, later: IdleWakeupSums) {
        self.placed += later.placed;
        self.since_start += later.since_start;
        self.warmth.iter_mut().zip(later.warmth).for_each(|(sum, more)| *sum += more);
        for (cpu, wakeups) in later.undecided.unwrap_or_default() {
            let depth = self.depths.get(cpu.index()).copied().unwrap_or_default();
            *self.by_depth.entry(depth).or_default() += wakeups;
        }
        later.by_depth.into_iter().for_each(|(depth, wakeups)| *self.by_depth.entry(depth).or_default() += wakeups);
        if later.depths.len() > self.depths.len() {
            self.depths.resize(later.depths.len(), IdleDepth::Unknown);
        }
        let known = self.depths.iter_mut().zip(later.depths).filter(|(_, depth)| *depth != IdleDepth::Unknown);
        known.for_each(|(before, depth)| *before = depth);
    }

    pub(super) fn report(self) -> IdleWakeups {
        let starts = std::iter::once(Dur(0)).chain(BOUNDS);
        let ends = BOUNDS.into_iter().map(Some).chain([None]);
        let row = |((at_least_ns, below_ns), wakeups)| WarmthRow { at_least_ns, below_ns, wakeups };
        let by_idle_time: Vec<WarmthRow> = starts.zip(ends).zip(self.warmth).map(row).collect();
        let name = |depth| match depth {
            IdleDepth::In(state) => state.to_string(),
            IdleDepth::Awake => "none".to_owned(),
            IdleDepth::Unknown => "unknown".to_owned(),
        };
        let state = |(depth, wakeups)| IdleStateRow { state: name(depth), wakeups };
        IdleWakeups {
            placed: self.placed,
            on_idle: self.warmth.iter().sum::<u64>() + self.since_start,
            by_idle_time,
            since_start: self.since_start,
            idle_states: self.has_states.then(|| self.by_depth.into_iter().map(state).collect()),
        }
    }
}
