//! Bounds on the time in violation that hold whatever the lost events were.
//!
//! A loss on CPU e hides more than the tasks that ran on e. A wakeup, a migration or a new task that e would
//! have announced may concern any CPU: a task may wait unseen, and one that is thought
//! to wait may have been moved. Therefore, from the beginning of a gap on,
//!
//! * a waiting task is *certain* only once an event after the gap's end has shown it waiting;
//! * a CPU is *clean*, free of hidden waiters, only once it has switched to its idle task after the
//!   gap's end, since the scheduler does that when nothing waits there.
//!
//! A task that migrates and is not known to wait may bring a hidden waiter to where it goes.
//!
//! Before the first gap a CPU is clean once it has switched to idle as well: a task that waited from
//! the start and is first seen behind the gap is not known to have done so. At least: idle and
//! clean here, busy with a certain waiter there. At most: every CPU that may be idle with an empty run queue,
//! and every CPU that may be busy with a waiter. Without any loss these are not needed: the
//! figures are exact. A waiter that is known to be restricted to some CPUs is never certain: at least, it may use no idle
//! one.

use crate::{Options, flags};
use sched::counted::{CountedQueues, Flags};
use sched::probe::Probe;
use sched::{Analysis, Cpu, EventKind, Load, Pid, SchedEvent, SchedState, Task, TaskState, Ts};
use serde::Serialize;

/// The bounds of the time in violation where events were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RigorousBounds {
    /// The time is at least this, in percent of the window.
    pub least_percent: f64,
    /// The time is at most this.
    pub most_percent: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct CpuEvidence {
    load: Load,
    /// Whether the CPU has switched to idle since the last gap ended: no task waits here unseen.
    clean: bool,
    /// The number of counted waiters; the number of those that are certain follows.
    waiters: u32,
    certain: u32,
    /// Waiters of any kind.
    queued: u32,
    lost: bool,
    included: bool,
    /// Whether the waiters are in the queues of a sched_ext scheduler: an idle CPU is then in I whatever waits on it, and its
    /// waiters are in O.
    is_ext: bool,
}

impl CpuEvidence {
    fn is_busy(&self) -> bool {
        self.load.runs()
    }

    fn is_idling(&self) -> bool {
        self.load.idles()
    }

    /// Whether tasks that wait on the CPU are in O.
    fn may_hold_waiters(&self) -> bool {
        self.is_busy() || self.is_ext && self.is_idling()
    }

    fn idle_for_sure(&self) -> bool {
        self.is_idling() && (self.is_ext || self.clean && self.queued == 0)
    }

    fn maybe_idle(&self) -> bool {
        // Known waiters that are certain make its switch pending; others may have left.
        self.load == Load::Unknown || self.is_idling() && (self.is_ext || self.certain == 0)
    }

    fn overloaded_for_sure(&self) -> bool {
        self.may_hold_waiters() && self.certain > 0
    }

    fn maybe_overloaded(&self) -> bool {
        self.load == Load::Unknown || self.may_hold_waiters() && (self.waiters > 0 || !self.clean)
    }
}

/// The numbers of CPUs that are idle and overloaded, for certain and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BoundSums {
    idle_for_sure: u32,
    overloaded_for_sure: u32,
    maybe_idle: u32,
    maybe_overloaded: u32,
    maybe_either: u32,
}

impl BoundSums {
    /// The contribution of one CPU.
    fn of(place: &CpuEvidence) -> BoundSums {
        let (idle, over) = (place.maybe_idle(), place.maybe_overloaded());
        let shown = |is: bool| u32::from(place.included && is);
        BoundSums {
            idle_for_sure: shown(place.idle_for_sure()),
            overloaded_for_sure: shown(place.overloaded_for_sure()),
            maybe_idle: shown(idle),
            maybe_overloaded: shown(over),
            maybe_either: shown(idle && over && !place.is_ext),
        }
    }

    fn change(&mut self, new: BoundSums, old: BoundSums) {
        let swap = |sum: &mut u32, new: u32, old: u32| *sum = *sum + new - old;
        swap(&mut self.idle_for_sure, new.idle_for_sure, old.idle_for_sure);
        swap(&mut self.overloaded_for_sure, new.overloaded_for_sure, old.overloaded_for_sure);
        swap(&mut self.maybe_idle, new.maybe_idle, old.maybe_idle);
        swap(&mut self.maybe_overloaded, new.maybe_overloaded, old.maybe_overloaded);
        swap(&mut self.maybe_either, new.maybe_either, old.maybe_either);
    }
}

/// The CPUs, each with what it adds to the sums.
struct Evidence<'o> {
    options: &'o Options<'o>,
    all: Vec<(CpuEvidence, BoundSums)>,
    sums: BoundSums,
    /// The CPUs whose sums are to be made anew; some of them several times.
    touched: Vec<Cpu>,
}

impl Evidence<'_> {
    fn touch(&mut self, cpu: Cpu) -> &mut CpuEvidence {
        while cpu.index() >= self.all.len() {
            let next = Cpu(self.all.len() as u32);
            let included = self.options.cpus.has(next);
            self.all.push((CpuEvidence { included, ..CpuEvidence::default() }, BoundSums::default()));
        }
        if self.touched.last() != Some(&cpu) {
            self.touched.push(cpu);
        }
        &mut self.all[cpu.index()].0
    }

    /// A waiter with these flags, of which `bit` makes it count, joins (1) or leaves (-1).
    fn waiter(&mut self, cpu: Cpu, flags: Flags, bit: Flags, by: i32) {
        let place = self.touch(cpu);
        if flags & bit != 0 {
            place.waiters = place.waiters.saturating_add_signed(by);
            if flags & CERTAIN != 0 {
                place.certain = place.certain.saturating_add_signed(by);
            }
        }
    }

    /// Brings the touched CPUs up to date with the state.
    fn commit(&mut self, state: &SchedState) {
        for i in 0..self.touched.len() {
            let cpu = self.touched[i];
            let (place, share) = &mut self.all[cpu.index()];
            (place.load, place.queued) = (state.load(cpu), state.queue_length(cpu));
            place.is_ext = state.has_ext_queues();
            let new = BoundSums::of(place);
            self.sums.change(new, std::mem::replace(share, new));
        }
        self.touched.clear();
    }
}

/// The analysis that finds the bounds, for the waiters of [`Options::waiters`].
pub struct Bounds<'o> {
    options: &'o Options<'o>,
    queues: CountedQueues,
    places: Evidence<'o>,
    /// The number of CPUs in a gap now: evidence meanwhile is not certain.
    open: u32,
    start: Ts,
    last: Ts,
    least: u64,
    most: u64,
}

impl<'o> Bounds<'o> {
    /// Returns the analysis with the options of the measurement that it bounds.
    pub fn new(options: &'o Options<'o>) -> Bounds<'o> {
        Bounds {
            options,
            queues: CountedQueues::default(),
            places: Evidence { options, all: Vec::new(), sums: BoundSums::default(), touched: Vec::new() },
            open: 0,
            start: Ts(0),
            last: Ts(0),
            least: 0,
            most: 0,
        }
    }

    fn advance(&mut self, ts: Ts) {
        let ns = ts.since(self.last).0;
        self.last = self.last.max(ts);
        let s = self.places.sums;
        if s.idle_for_sure > 0 && s.overloaded_for_sure > 0 {
            self.least += ns;
        }
        // One CPU alone cannot be both at once.
        let alone = s.maybe_idle == 1 && s.maybe_overloaded == 1 && s.maybe_either == 1;
        if s.maybe_idle > 0 && s.maybe_overloaded > 0 && !alone {
            self.most += ns;
        }
    }

    /// The flag of the waiters that count.
    fn bit(&self) -> Flags {
        1 << self.options.waiters as u8
    }

    /// A record shows the CPUs that a task may use. One that waits, and may not use every CPU, is not certain any more.
    fn renew(&mut self, pid: Pid, state: &SchedState) {
        if let Some(task) = state.task_of(pid)
            && let TaskState::Waiting(cpu) = task.state
            && is_restricted(self.options, task, cpu, state)
        {
            let (bit, places) = (self.bit(), &mut self.places);
            self.queues.clear_flag(task.id(), CERTAIN, |cpu, flags, by| places.waiter(cpu, flags, bit, by));
        }
    }

    /// An event on `cpu` ends its gap.
    fn notice(&mut self, cpu: Cpu) {
        if std::mem::take(&mut self.places.touch(cpu).lost) {
            self.open -= 1;
        }
    }

    /// A gap begins on `cpu`: nothing is certain any more.
    fn lose(&mut self, cpu: Cpu) {
        for cpu in 0..self.places.all.len() as u32 {
            let place = self.places.touch(Cpu(cpu));
            (place.clean, place.certain) = (false, 0);
        }
        self.queues.clear_uppermost_flags();
        if !std::mem::replace(&mut self.places.touch(cpu).lost, true) {
            self.open += 1;
        }
    }
}

/// Whether a task that waits on a CPU is known not to be allowed on every CPU.
fn is_restricted(options: &Options<'_>, task: &Task, cpu: Cpu, state: &SchedState) -> bool {
    options.affinity.is_some_and(|affinity| affinity.of(task, cpu, state).is_some())
}

/// The bit of a flag that marks a certain waiter.
const CERTAIN: Flags = 1 << 7;

impl Analysis for Bounds<'_> {
    type Output = RigorousBounds;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        (self.start, self.last) = (start, start);
        let cpus: Vec<Cpu> = state.observed().collect();
        let bit = self.bit();
        for cpu in cpus {
            let (places, options) = (&mut self.places, self.options);
            // The tasks that waited at the very start were found before any loss. If the window begins
            // later, there may have been one.
            let count = |task: &Task, cpu| flags(options, task, cpu, state);
            self.queues.begin(cpu, state, count, |cpu, flags, by| places.waiter(cpu, flags, bit, by));
            self.places.touch(cpu);
        }
        self.places.commit(state);
    }

    fn before(&mut self, event: &SchedEvent, _: &SchedState) {
        self.advance(event.ts);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        match event.kind {
            EventKind::Lost { .. } => self.lose(event.cpu),
            EventKind::Stack { .. } => {}
            _ => self.notice(event.cpu),
        }
        let sure = if self.open == 0 { CERTAIN } else { 0 };
        let bit = self.bit();
        let (places, options) = (&mut self.places, self.options);
        let count = |task: &Task, cpu| {
            // A task that may not use every CPU is no certain violation beside an idle one.
            let restricted = is_restricted(options, task, cpu, state);
            flags(options, task, cpu, state) | if restricted { 0 } else { sure }
        };
        self.queues.follow(state, count, |cpu, flags, by| places.waiter(cpu, flags, bit, by));
        if let EventKind::Probe { probe: Probe::Allows(pid, _), .. } = event.kind {
            self.renew(pid, state);
        }
        if let EventKind::Switch { next, .. } = event.kind
            && next.pid.is_idle()
            && self.open == 0
        {
            self.places.touch(event.cpu).clean = true;
        }
        // A task that moves and is not known to wait may do so all the same.
        if let EventKind::Migrate { task, dest, .. } = event.kind {
            let waits = state.task_of(task.pid).is_some_and(|t| matches!(t.state, TaskState::Waiting(_)));
            self.places.touch(dest).clean &= waits;
        }
        for span in state.cpu_spans() {
            self.places.touch(span.cpu);
        }
        self.places.commit(state);
    }

    fn finish(mut self, end: Ts, _: &SchedState) -> RigorousBounds {
        self.advance(end);
        let window = end.since(self.start).0.max(1) as f64;
        RigorousBounds {
            least_percent: 100.0 * self.least as f64 / window,
            most_percent: 100.0 * self.most as f64 / window,
        }
    }
}
