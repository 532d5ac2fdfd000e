//! One pass over a trace: the prologue, the window, the feeding, the closing of what is open.

use crate::analysis::Analysis;
use crate::diag::Diagnostics;
use crate::event::{Comm, Cpu, Kind, Pid, SchedEvent, TaskRef, Ts};
use crate::span::Current;
use crate::state::{SchedState, Start, Task};
use std::convert::Infallible;
use std::ops::ControlFlow;

mod fold;

pub use fold::Groups;
use fold::{End, Plan, learn};

/// The first event of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstEvent {
    /// The CPU.
    pub cpu: Cpu,
    /// When.
    pub ts: Ts,
    /// What was current on it until then: who its `common_pid` tells. Unknown where events before it were lost,
    /// offline where it shows that the CPU came online.
    pub current: Current,
}

/// A trace's extent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The earliest event of all CPUs.
    pub start: Ts,
    /// The latest event of all CPUs.
    pub end: Ts,
    /// The first event of every CPU that has one.
    pub firsts: Vec<FirstEvent>,
    /// Whether `sched_wakeup` was recorded. Without it a task's first switch-in does not tell that
    /// it had waited.
    pub wakeups: bool,
}

/// What takes items in batches, until it breaks.
pub type Sink<'s, T = SchedEvent> = dyn FnMut(&[T]) -> ControlFlow<()> + 's;
/// One that may be called on another thread.
pub type SendSink<'s, T = SchedEvent> = dyn FnMut(&[T]) -> ControlFlow<()> + Send + 's;

/// All of them as one, which breaks when all have.
pub fn in_turn<T>(first: &mut Sink<'_, T>, others: &mut [&mut SendSink<'_, T>]) -> impl FnMut(&[T]) -> ControlFlow<()> {
    let mut done = vec![false; others.len() + 1];
    move |items| {
        done[0] = done[0] || first(items).is_break();
        for (done, sink) in done[1..].iter_mut().zip(others.iter_mut()) {
            *done = *done || sink(items).is_break();
        }
        if done.contains(&false) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// Events in time order, as often as asked.
pub trait EventSource {
    /// Why a read can fail.
    type Error;

    /// The extent, found without reading all events where the source can.
    fn extent(&mut self) -> Result<Extent, Self::Error>;

    /// Delivers all events in (time, CPU, position) order, in batches, until `sink` breaks.
    fn events(&mut self, sink: &mut Sink<'_>) -> Result<(), Self::Error>;

    /// The same, but only the events at `from` and later; a source that can begins to read there.
    fn events_from(&mut self, from: Ts, sink: &mut Sink<'_>) -> Result<(), Self::Error> {
        self.events(&mut |events| match events.partition_point(|event| event.ts < from) {
            before if before < events.len() => sink(&events[before..]),
            _ => ControlFlow::Continue(()),
        })
    }

    /// Whether the beginnings of tasks are among the events: some `sched_wakeup_new` or `sched_process_fork`. Where
    /// there is none, none was recorded, or nothing began.
    fn births(&mut self) -> bool {
        true
    }

    /// What the recorder called a task at the end, where the source keeps that; empty if not.
    fn saved_name(&self, _: Pid) -> Comm {
        Comm::EMPTY
    }

    /// How many threads it may use.
    fn threads(&self) -> usize {
        1
    }

    /// Delivers all events to several: to `first` on this thread, to each of the `others` on a thread of
    /// its own if there are any, until all have broken.
    fn events_to_all(&mut self, first: &mut Sink<'_>, others: &mut [&mut SendSink<'_>]) -> Result<(), Self::Error> {
        self.events(&mut in_turn(first, others))
    }

    /// What was wrong with the source itself, so far.
    fn diagnostics(&self) -> Diagnostics {
        Diagnostics::default()
    }
}

impl<S: EventSource> EventSource for &mut S {
    type Error = S::Error;

    fn extent(&mut self) -> Result<Extent, S::Error> {
        (**self).extent()
    }

    fn events(&mut self, sink: &mut Sink<'_>) -> Result<(), S::Error> {
        (**self).events(sink)
    }

    fn events_from(&mut self, from: Ts, sink: &mut Sink<'_>) -> Result<(), S::Error> {
        (**self).events_from(from, sink)
    }

    fn births(&mut self) -> bool {
        (**self).births()
    }

    fn saved_name(&self, pid: Pid) -> Comm {
        (**self).saved_name(pid)
    }

    fn threads(&self) -> usize {
        (**self).threads()
    }

    fn events_to_all(&mut self, first: &mut Sink<'_>, others: &mut [&mut SendSink<'_>]) -> Result<(), S::Error> {
        (**self).events_to_all(first, others)
    }

    fn diagnostics(&self) -> Diagnostics {
        (**self).diagnostics()
    }
}

impl EventSource for &[SchedEvent] {
    type Error = Infallible;

    fn extent(&mut self) -> Result<Extent, Infallible> {
        let mut extent = Extent::default();
        if let (Some(first), Some(last)) = (self.first(), self.last()) {
            (extent.start, extent.end) = (first.ts, last.ts);
        }
        for event in *self {
            extent.wakeups |= matches!(event.kind, Kind::Wakeup { .. });
            if !extent.firsts.iter().any(|f| f.cpu == event.cpu) {
                let current = match event.kind {
                    Kind::Lost { .. } => Current::Unknown,
                    Kind::Offline => Current::Offline,
                    _ => Current::of(event.pid),
                };
                extent.firsts.push(FirstEvent { cpu: event.cpu, ts: event.ts, current });
            }
        }
        Ok(extent)
    }

    fn events(&mut self, sink: &mut Sink<'_>) -> Result<(), Infallible> {
        let _ = sink(self);
        Ok(())
    }

    fn births(&mut self) -> bool {
        self.iter().any(|event| matches!(event.kind, Kind::WakeupNew { .. } | Kind::Fork { .. }))
    }
}

/// The part of the trace that is reported. State is carried into it from all earlier events.
///
/// An event at the start is inside, one at the end is not, unless the trace ends there: so the
/// figures of adjacent windows add up to the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// From here, or from the first event.
    pub from: Option<Ts>,
    /// To here, or to the last event.
    pub to: Option<Ts>,
}

impl Window {
    /// The window's edges within a trace from `start` to `end`.
    pub fn within(&self, start: Ts, end: Ts) -> (Ts, Ts) {
        let from = self.from.map_or(start, |from| from.clamp(start, end));
        let to = self.to.map_or(end, |to| to.clamp(from, end));
        (from, to)
    }
}

/// What a pass found.
#[derive(Clone, Debug)]
pub struct Outcome<T> {
    /// The analysis' own result.
    pub output: T,
    /// The window, as it was: from here
    pub from: Ts,
    /// to here.
    pub to: Ts,
    /// What was lost within the window, what the state repaired, and what the source had to say.
    pub diagnostics: Diagnostics,
}

impl<T> Outcome<T> {
    /// The same, with what `change` makes of the result.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Outcome<U> {
        let Outcome { output, from, to, diagnostics } = self;
        Outcome { output: change(output), from, to, diagnostics }
    }
}

/// A pass to be made over a source.
#[derive(Debug)]
pub struct Pass<S> {
    source: S,
    window: Window,
    prologue: usize,
}

impl<S: EventSource> Pass<S> {
    /// How many events the prologue reads to find who waited at the start. Nearly every task shows
    /// itself within them; for one that does not, the pass is made again.
    pub const PROLOGUE: usize = 200_000;

    /// A pass over all of `source`.
    pub fn over(source: S) -> Pass<S> {
        Pass { source, window: Window::default(), prologue: Self::PROLOGUE }
    }

    /// Reports only this window.
    pub fn window(mut self, window: Window) -> Pass<S> {
        self.window = window;
        self
    }

    /// Reads so many events first. The result is the same with any number.
    pub fn prologue(mut self, events: usize) -> Pass<S> {
        self.prologue = events;
        self
    }

    /// Makes the pass. `analysis` is called once, or once more for each repetition.
    pub fn run<A: Analysis>(mut self, analysis: impl Fn() -> A) -> Result<Outcome<A::Output>, S::Error> {
        let mut plan = self.plan()?;
        loop {
            let mut fold = plan.fold(analysis());
            self.source.events(&mut |events| fold.feed(events))?;
            if plan.was_right(&fold.state, &mut self.source) {
                return Ok(fold.outcome(&plan, &self.source));
            }
        }
    }

    /// Makes the pass with several analyses, or groups of them, each on a thread of its own with a
    /// state of its own, if the source has threads: none waits for what another reckons. They find
    /// what they find one after the other.
    pub fn run_side_by_side<A: Groups>(mut self, analyses: impl Fn() -> A) -> Result<Outcome<A::Output>, S::Error> {
        if self.source.threads() < 2 {
            return self.run(analyses);
        }
        let mut plan = self.plan()?;
        loop {
            if let Some(outcome) = analyses().side_by_side(&mut plan, &mut self.source)? {
                return Ok(outcome);
            }
        }
    }

    fn plan(&mut self) -> Result<Plan, S::Error> {
        let extent = self.source.extent()?;
        let mut start = Start {
            ts: extent.start,
            cpus: extent.firsts.iter().map(|first| (first.cpu, first.current)).collect(),
            named: Vec::new(),
            waiting: Vec::new(),
            without_wakeups: !extent.wakeups,
            without_wakings: true,
            incomplete: false,
        };
        start.cpus.sort_unstable_by_key(|(cpu, _)| *cpu);
        let (from, to) = self.window.within(extent.start, extent.end);
        let early = self.look_ahead(&start)?;
        learn(&mut start, &early, &mut self.source);
        self.name(&mut start, &early);
        let end = match self.window.to {
            None => End::Open,
            Some(_) if to >= extent.end => End::Inclusive,
            Some(_) => End::Exclusive,
        };
        Ok(Plan { start, from, to, end, late: Diagnostics::default() })
    }

    /// Who runs at first and throughout the prologue is called what the recorder called it at the end: no event
    /// tells more. With a window in a large trace that is who matters most.
    fn name(&self, start: &mut Start, early: &SchedState) {
        let at_first: Vec<Pid> = start.cpus.iter().filter_map(|(_, current)| current.pid()).collect();
        for pid in at_first {
            // It has a name once it was switched out, or executed a program.
            let is_nameless = early.task_of(pid).is_some_and(|task| task.comm.is_empty());
            if is_nameless {
                start.name(TaskRef { pid, prio: Task::NO_PRIO, comm: self.source.saved_name(pid) });
            }
        }
    }

    /// The state after the prologue.
    fn look_ahead(&mut self, start: &Start) -> Result<SchedState, S::Error> {
        let mut state = SchedState::new(start);
        let mut left = self.prologue;
        self.source.events(&mut |events| {
            for event in events.iter().take(left) {
                state.apply(event);
            }
            left = left.saturating_sub(events.len());
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::PrevState;

    /// Who runs on CPU 0 when the window begins.
    struct AtFirst(Comm);

    impl Analysis for AtFirst {
        type Output = Comm;

        fn begin(&mut self, _: Ts, state: &SchedState) {
            self.0 = state.running(Cpu(0)).map_or(Comm::EMPTY, |task| task.comm);
        }

        fn finish(self, _: Ts, _: &SchedState) -> Comm {
            self.0
        }
    }

    /// Events of a recorder that saved names.
    struct Saved<'e>(&'e [SchedEvent]);

    impl EventSource for Saved<'_> {
        type Error = Infallible;

        fn extent(&mut self) -> Result<Extent, Infallible> {
            self.0.extent()
        }

        fn events(&mut self, sink: &mut Sink<'_>) -> Result<(), Infallible> {
            self.0.events(sink)
        }

        fn saved_name(&self, _: Pid) -> Comm {
            Comm::new(b"at the end")
        }
    }

    #[test]
    fn who_runs_at_first_has_the_name_that_its_switch_tells() {
        let [softirq, idle] = [(7, "ksoftirqd/0"), (0, "swapper/0")].map(|(pid, name)| TaskRef {
            pid: Pid(pid),
            prio: 120,
            comm: Comm::new(name.as_bytes()),
        });
        let at = |ts, kind| SchedEvent { ts: Ts(ts), cpu: Cpu(0), pid: Pid(7), flags: 0, kind };
        let woken = TaskRef { pid: Pid(8), ..softirq };
        let events = [
            at(1, Kind::Waking { task: woken, target: Cpu(0) }),
            at(2, Kind::Switch { prev: softirq, state: PrevState::blocked(1), next: idle }),
        ];
        let at_first = |events, prologue| {
            let pass = Pass::over(Saved(events)).prologue(prologue);
            pass.run(|| AtFirst(Comm::EMPTY)).unwrap_or_else(|never| match never {}).output
        };
        assert_eq!(at_first(&events[..], Pass::<Saved<'_>>::PROLOGUE), softirq.comm);
        // Nothing but the recorder tells it.
        assert_eq!(at_first(&events[..1], 200), Comm::new(b"at the end"));
        // It had another name before.
        let exec = Kind::Exec { pid: Pid(7), old_pid: Pid(7), program: Comm::new(b"at the end") };
        assert_eq!(at_first(&[events[0], at(2, exec)], 200), Comm::EMPTY);
    }
}
