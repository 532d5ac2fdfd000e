//! The machine at a glance, in constant time per event.

use super::{CpuState, SchedState};
use crate::event::Cpu;
use crate::event::span::Current;
use crate::numbers::episodes::Amount;
use crate::tables::chosen_cpus::ChosenCpus;
use serde::Serialize;

/// The load of a CPU as figures show it (`docs/questions/workcons.md#sets`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Load {
    /// No event at all: the CPU takes no part.
    #[default]
    Unobserved,
    /// An unknown occupant of the CPU.
    Unknown,
    /// An offline CPU.
    Offline,
    /// An idle CPU on whose queue no task waits (I).
    Idle,
    /// An idle CPU on whose queue a task waits, which has not been switched in yet (X).
    SwitchPending,
    /// A CPU that runs a task while no other waits.
    Busy,
    /// A CPU that runs a task while others wait (O).
    Overloaded,
    /// An idle CPU that is the last one known of waiting tasks, where the queues are those of a sched_ext scheduler (I and O).
    Unserved,
}

impl Load {
    /// Whether the CPU is one of those that could be put to work (I).
    #[inline]
    pub fn is_idle(self) -> bool {
        matches!(self, Load::Idle | Load::Unserved)
    }

    /// Whether the CPU idles, whatever waits for it.
    #[inline]
    pub fn idles(self) -> bool {
        matches!(self, Load::Idle | Load::SwitchPending | Load::Unserved)
    }

    /// Whether the CPU idles while a task waits on it, in queues of any kind.
    #[inline]
    pub fn is_awaited(self) -> bool {
        matches!(self, Load::SwitchPending | Load::Unserved)
    }

    /// Whether the CPU runs a task.
    #[inline]
    pub fn runs(self) -> bool {
        matches!(self, Load::Busy | Load::Overloaded)
    }

    /// Whether the CPU is one of those whose waiting tasks could run elsewhere (O).
    #[inline]
    pub fn is_overloaded(self) -> bool {
        matches!(self, Load::Overloaded | Load::Unserved)
    }
}

/// The numbers of CPUs by their load, and of waiting tasks, at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuCounts {
    /// Number of CPUs with [`Load::Unknown`].
    pub unknown: u32,
    /// Number of CPUs with [`Load::Offline`].
    pub offline: u32,
    /// Number of CPUs with [`Load::Idle`].
    pub idle: u32,
    /// Number of CPUs with [`Load::SwitchPending`].
    pub switch_pending: u32,
    /// Number of CPUs with [`Load::Busy`].
    pub busy: u32,
    /// Number of CPUs with [`Load::Overloaded`].
    pub overloaded: u32,
    /// Number of CPUs with [`Load::Unserved`]; left out where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unserved: u32,
    /// Number of tasks that wait on any CPU.
    pub waiting: u32,
    /// Number of tasks that wait on overloaded CPUs, or on idle ones with [`Load::Unserved`].
    pub waiting_overloaded: u32,
}

/// Whether a count is left out of a document.
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl CpuCounts {
    /// No CPU and no task at all.
    const NONE: CpuCounts = CpuCounts {
        unknown: 0,
        offline: 0,
        idle: 0,
        switch_pending: 0,
        busy: 0,
        overloaded: 0,
        unserved: 0,
        waiting: 0,
        waiting_overloaded: 0,
    };

    /// Counts the CPUs of a state and the tasks on their queues, in time proportional to the number of CPUs.
    pub fn of(state: &SchedState) -> CpuCounts {
        Tally::of(state).counts
    }

    /// Whether work conservation is violated, with every waiting task counted: some CPU idles while another one is
    /// overloaded.
    pub fn is_violated(&self) -> bool {
        Amount::of_violation(self.idle_cpus(), self.overloaded_cpus(), self.waiting_overloaded).holds()
    }

    /// The number of CPUs that could be put to work (I).
    #[inline]
    pub fn idle_cpus(&self) -> u32 {
        self.idle + self.unserved
    }

    /// The number of CPUs whose waiting tasks could run elsewhere (O).
    #[inline]
    pub fn overloaded_cpus(&self) -> u32 {
        self.overloaded + self.unserved
    }

    /// The number of running tasks.
    pub fn running(&self) -> u32 {
        self.busy + self.overloaded
    }
}

impl SchedState {
    /// Begins to count: from now on [`SchedState::counts`] and [`SchedState::turned`] have values, kept up to date at
    /// each event.
    pub fn count(&mut self) {
        self.tally = Some(Box::new(Tally::of(self)));
    }

    /// Returns a copy of the state that does not count.
    pub(crate) fn uncounted(&self) -> SchedState {
        SchedState { tally: None, ..self.clone() }
    }

    /// The approximate number of bytes of a copy that does not count.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<SchedState>()
            + self.cpus.len() * size_of::<CpuState>()
            + self.tasks.bytes()
            + self.lineage.bytes()
            + self.throttling.as_ref().map_or(0, |throttling| throttling.bytes())
            + self.allowed.bytes()
    }

    /// The numbers of CPUs by load. [`SchedState::count`] must have been called before; [`CpuCounts::of`] counts anew
    /// instead.
    ///
    /// Returned by reference: a copy of all numbers right after they were written one by one would stall (store
    /// forwarding).
    #[inline]
    pub fn counts(&self) -> &CpuCounts {
        debug_assert!(self.tally.is_some(), "the state was not asked to count");
        self.tally.as_ref().map_or(&CpuCounts::NONE, |tally| &tally.counts)
    }

    /// The CPUs whose occupant or queue the last event changed; a CPU may be listed more than once.
    #[inline]
    pub fn touched(&self) -> &[Cpu] {
        &self.touched
    }

    /// Brings the counts up to date with the event that was applied last.
    pub(super) fn follow_counts(&mut self) {
        if let Some(mut tally) = self.tally.take() {
            tally.follow(self);
            self.tally = Some(tally);
        }
    }

    /// The CPUs whose load changed at the last event, with the new load. [`SchedState::count`] must have been called
    /// before.
    pub fn turned(&self) -> &[(Cpu, Load)] {
        debug_assert!(self.tally.is_some(), "the state was not asked to count");
        self.tally.as_ref().map_or(&[], |tally| &tally.turned)
    }
}

impl CpuState {
    /// The load of the CPU, as figures show it; `awaited` is that of an idle CPU on which tasks wait.
    #[inline]
    pub(super) fn load(&self, awaited: Load) -> Load {
        let [alone, waited_for] = match self.current {
            _ if !self.observed => [Load::Unobserved; 2],
            Current::Unknown => [Load::Unknown; 2],
            Current::Offline => [Load::Offline; 2],
            Current::Idle => [Load::Idle, awaited],
            Current::Task(_) => [Load::Busy, Load::Overloaded],
        };
        // Selected from two values rather than by branches, which are unpredictable here.
        if self.queue.len > 0 { waited_for } else { alone }
    }
}

/// The counts, kept up to date with the state event by event.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) counts: CpuCounts,
    cpus: Vec<(Load, u32)>,
    /// The CPUs whose load changed at the last event, with the new load.
    pub(super) turned: Vec<(Cpu, Load)>,
}

impl Tally {
    /// Counts a state from scratch.
    pub(super) fn of(state: &SchedState) -> Tally {
        let mut tally = Tally::default();
        for cpu in (0..state.cpus.len() as u32).map(Cpu) {
            tally.look(cpu, state);
        }
        tally.turned.clear();
        tally
    }

    /// Brings the counts up to date with the event that the state applied last.
    pub(super) fn follow(&mut self, state: &SchedState) {
        self.turned.clear();
        state.touched().iter().for_each(|cpu| self.look(*cpu, state));
    }

    /// Counts `cpu` anew, if its load or its queue has changed.
    fn look(&mut self, cpu: Cpu, state: &SchedState) {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize(cpu.index() + 1, Default::default());
        }
        let now = (state.load(cpu), state.queue_length(cpu));
        let old = std::mem::replace(&mut self.cpus[cpu.index()], now);
        if now != old {
            self.change(cpu, old, now);
        }
    }

    /// Moves `cpu` from one load and queue length to others.
    fn change(&mut self, cpu: Cpu, (old, old_waiting): (Load, u32), (load, waiting): (Load, u32)) {
        let c = &mut self.counts;
        c.waiting = c.waiting - old_waiting + waiting;
        if old.is_overloaded() {
            c.waiting_overloaded -= old_waiting;
        }
        if load.is_overloaded() {
            c.waiting_overloaded += waiting;
        }
        if old != load {
            self.turned.push((cpu, load));
            if let Some(n) = c.number(old) {
                *n -= 1;
            }
            if let Some(n) = c.number(load) {
                *n += 1;
            }
        }
    }
}

/// The counts of some CPUs alone. The caller calls [`SubsetCounts::follow`] after each event.
#[derive(Clone, Debug)]
pub struct SubsetCounts {
    part: ChosenCpus,
    tally: Tally,
}

impl SubsetCounts {
    /// Counts these CPUs in a state from scratch.
    pub fn of(part: &ChosenCpus, state: &SchedState) -> SubsetCounts {
        let mut tally = Tally::default();
        for cpu in (0..state.cpus.len() as u32).map(Cpu).filter(|cpu| part.has(*cpu)) {
            tally.look(cpu, state);
        }
        SubsetCounts { part: part.clone(), tally }
    }

    /// The counts of these CPUs, as of the event that was followed last.
    pub fn counts(&self) -> &CpuCounts {
        &self.tally.counts
    }

    /// Brings the counts up to date with the event that the state applied last, and returns them.
    pub fn follow(&mut self, state: &SchedState) -> &CpuCounts {
        self.tally.turned.clear();
        for cpu in state.touched() {
            if self.part.has(*cpu) {
                self.tally.look(*cpu, state);
            }
        }
        &self.tally.counts
    }
}

impl CpuCounts {
    /// The number of CPUs with this load; `None` for CPUs without events, which are not counted.
    fn number(&mut self, load: Load) -> Option<&mut u32> {
        match load {
            Load::Unobserved => None,
            Load::Unknown => Some(&mut self.unknown),
            Load::Offline => Some(&mut self.offline),
            Load::Idle => Some(&mut self.idle),
            Load::SwitchPending => Some(&mut self.switch_pending),
            Load::Busy => Some(&mut self.busy),
            Load::Overloaded => Some(&mut self.overloaded),
            Load::Unserved => Some(&mut self.unserved),
        }
    }
}
