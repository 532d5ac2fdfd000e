//! What can be said of the time in violation whatever the lost events were.
//!
//! A loss on CPU e hides more than who ran on e. A wakeup, a migration or a new task that e would
//! have announced may concern any CPU: a task may wait where nobody knows, and one that is thought
//! to wait may have been moved. So from the beginning of a gap on,
//!
//! * a waiting task is *certain* only once an event after the gap's end has shown it waiting;
//! * a CPU is *clean*, free of hidden waiters, only once it has switched to its idle task after the
//!   gap's end, since the scheduler does that when nothing waits there.
//!
//! A task that migrates and is not known to wait may bring a hidden waiter to where it goes.
//!
//! Before the first gap a CPU is clean once it has switched to idle as well: a task that waited from
//! the start and is first seen behind the gap is not known to have done so. At least: idle and
//! clean here, busy with a certain waiter there. At most: whatever may be idle with nobody waiting,
//! and whatever may be busy with somebody waiting. Without any loss these are not needed: the
//! figures are exact.

use crate::{Options, flags};
use sched::counted::{CountedQueues, Flags};
use sched::{Analysis, Cpu, Kind, Load, SchedEvent, SchedState, TaskState, Ts};
use serde::Serialize;

/// At least, and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RigorousBounds {
    /// The time is at least this, in percent of the window.
    pub least_percent: f64,
    /// The time is at most this.
    pub most_percent: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    load: Load,
    /// Switched to idle since the last gap ended: nobody waits here unseen.
    clean: bool,
    /// Counted waiters, and those of them that are certain.
    waiters: u32,
    certain: u32,
    /// Waiters of any kind.
    queued: u32,
    lost: bool,
    included: bool,
}

impl Place {
    fn is_busy(&self) -> bool {
        matches!(self.load, Load::Busy | Load::Overloaded)
    }

    fn is_idling(&self) -> bool {
        matches!(self.load, Load::Idle | Load::Reacting)
    }

    fn idle_for_sure(&self) -> bool {
        self.is_idling() && self.clean && self.queued == 0
    }

    fn maybe_idle(&self) -> bool {
        // Known waiters that are certain make it a reacting CPU; others may have left.
        self.load == Load::Unknown || self.is_idling() && self.certain == 0
    }

    fn overloaded_for_sure(&self) -> bool {
        self.is_busy() && self.certain > 0
    }

    fn maybe_overloaded(&self) -> bool {
        self.load == Load::Unknown || self.is_busy() && (self.waiters > 0 || !self.clean)
    }
}

/// The analysis that finds the bounds, for the waiters of [`Options::waiters`].
#[derive(Debug)]
pub struct Bounds<'o> {
    options: &'o Options,
    queues: CountedQueues,
    places: Vec<Place>,
    /// CPUs in a gap now: what is seen meanwhile is not certain.
    open: u32,
    start: Ts,
    last: Ts,
    least: u64,
    most: u64,
}

impl<'o> Bounds<'o> {
    /// With these options.
    pub fn new(options: &'o Options) -> Bounds<'o> {
        Bounds {
            options,
            queues: CountedQueues::default(),
            places: Vec::new(),
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
        if ns == 0 {
            return;
        }
        let of = |is: fn(&Place) -> bool| self.places.iter().filter(|p| p.included && is(p)).count();
        if of(Place::idle_for_sure) > 0 && of(Place::overloaded_for_sure) > 0 {
            self.least += ns;
        }
        let (idle, over) = (of(Place::maybe_idle), of(Place::maybe_overloaded));
        let both = of(|p| p.maybe_idle() && p.maybe_overloaded());
        // One CPU alone cannot be both at once.
        if idle > 0 && over > 0 && !(idle == 1 && over == 1 && both == 1) {
            self.most += ns;
        }
    }

    fn place(&mut self, cpu: Cpu) -> &mut Place {
        let options = self.options;
        place(&mut self.places, cpu, options)
    }

    /// An event on `cpu` ends its gap.
    fn notice(&mut self, cpu: Cpu) {
        if std::mem::take(&mut self.place(cpu).lost) {
            self.open -= 1;
        }
    }

    /// A gap begins on `cpu`: nothing is certain any more.
    fn lose(&mut self, cpu: Cpu) {
        for place in &mut self.places {
            (place.clean, place.certain) = (false, 0);
        }
        self.queues.forget_certainty();
        if !std::mem::replace(&mut self.place(cpu).lost, true) {
            self.open += 1;
        }
    }

    fn refresh(&mut self, state: &SchedState) {
        let cpus: Vec<Cpu> = state.observed().collect();
        for cpu in cpus {
            let (load, queued) = (state.load(cpu), state.queue_length(cpu));
            let place = self.place(cpu);
            (place.load, place.queued) = (load, queued);
        }
    }
}

/// The bit of a flag that says that a waiter is certain.
const CERTAIN: Flags = 1 << 7;

fn place<'p>(places: &'p mut Vec<Place>, cpu: Cpu, options: &Options) -> &'p mut Place {
    while cpu.index() >= places.len() {
        let next = Cpu(places.len() as u32);
        let included = options.cpus.as_ref().is_none_or(|cpus| cpus.contains(&next));
        places.push(Place { included, ..Place::default() });
    }
    &mut places[cpu.index()]
}

impl Analysis for Bounds<'_> {
    type Output = RigorousBounds;

    fn begin(&mut self, start: Ts, state: &SchedState) {
        (self.start, self.last) = (start, start);
        let cpus: Vec<Cpu> = state.observed().collect();
        let bit = 1 << self.options.waiters as u8;
        for cpu in cpus {
            let (places, options) = (&mut self.places, self.options);
            // Those who waited at the very start were found out before any loss. If the window begins
            // later, there may have been one.
            let count = |task: &sched::Task, cpu| flags(options, task, cpu, state);
            self.queues.begin(cpu, state, count, |cpu, flags, by| {
                let place = place(places, cpu, options);
                if flags & bit != 0 {
                    place.waiters = place.waiters.saturating_add_signed(by);
                }
            });
        }
        self.refresh(state);
    }

    fn before(&mut self, event: &SchedEvent, _: &SchedState) {
        self.advance(event.ts);
    }

    fn after(&mut self, event: &SchedEvent, state: &SchedState) {
        match event.kind {
            Kind::Lost { .. } => self.lose(event.cpu),
            _ => self.notice(event.cpu),
        }
        let sure = if self.open == 0 { CERTAIN } else { 0 };
        let bit = 1 << self.options.waiters as u8;
        let (places, options) = (&mut self.places, self.options);
        let count = |task: &sched::Task, cpu| flags(options, task, cpu, state) | sure;
        self.queues.follow(state, count, |cpu, flags, by| {
            let place = place(places, cpu, options);
            if flags & bit != 0 {
                place.waiters = place.waiters.saturating_add_signed(by);
                if flags & CERTAIN != 0 {
                    place.certain = place.certain.saturating_add_signed(by);
                }
            }
        });
        if let Kind::Switch { next, .. } = event.kind
            && next.pid.is_idle()
            && self.open == 0
        {
            self.place(event.cpu).clean = true;
        }
        // A task that moves and is not known to wait may do so all the same.
        if let Kind::Migrate { task, dest, .. } = event.kind {
            let waits = state.task_of(task.pid).is_some_and(|t| matches!(t.state, TaskState::Waiting(_)));
            self.place(dest).clean &= waits;
        }
        self.refresh(state);
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
