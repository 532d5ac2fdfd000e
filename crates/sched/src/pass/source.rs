//! Sources of events.

use crate::event::diag::Diagnostics;
use crate::event::probe::CgroupId;
use crate::event::span::Current;
use crate::event::{Comm, Cpu, EventKind, Pid, SchedEvent, Ts};
use crate::state::application::Application;
use crate::state::past::Past;
use crate::state::policies::SchedIdleTasks;
use crate::tables::capacities::CpuCapacities;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The first event of a CPU, as evidence on the CPU before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstEvent {
    /// The CPU of the event.
    pub cpu: Cpu,
    /// The instant of the event.
    pub ts: Ts,
    /// The occupant until then, by the event's `common_pid`. Unknown if events before it were lost, offline if the
    /// event shows that the CPU came online.
    pub current: Current,
}

/// The extent of a trace in time, and the knowledge of a source about its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The instant of the earliest event of all CPUs.
    pub start: Ts,
    /// The instant of the latest event of all CPUs.
    pub end: Ts,
    /// The first event of every CPU that has events, in any order.
    pub firsts: Vec<FirstEvent>,
    /// Whether `sched_wakeup` was recorded. If not, a task's first switch-in does not show that it had waited.
    pub wakeups: bool,
    /// Whether `sched_waking` was recorded, determined only if `sched_wakeup` was not. It then places the tasks.
    pub wakings: bool,
    /// The cgroup of each task at the start, as far as a machine file lists them; empty if the trace has no records of
    /// throttling.
    pub groups: Arc<[(Pid, CgroupId)]>,
    /// The tasks of the policy `SCHED_IDLE`, as far as a machine file lists them.
    pub sched_idle: SchedIdleTasks,
    /// The capacities of the CPUs, where a machine file has them and they differ; of a part of a trace as well.
    pub capacities: CpuCapacities,
    /// Whether a sched_ext scheduler held the waiting tasks (see [`crate::SchedState::has_ext_queues`]).
    pub has_ext_queues: bool,
    /// Whether events do not show the context in which they were recorded (see [`crate::SchedState::shows_contexts`]).
    pub without_contexts: bool,
    /// The application, where it is not that of the traced command alone; it takes the place of that of `past`.
    pub application: Option<Arc<Application>>,
    /// The state before the first event, if the events are those of a part of a longer trace. `start` and `end` are
    /// then those of the whole.
    pub past: Option<Arc<Past>>,
}

/// A receiver of items in batches, in order. It breaks when it needs no more, and is not called again after that.
pub type Sink<'s, T = SchedEvent> = dyn FnMut(&[T]) -> ControlFlow<()> + 's;
/// A [`Sink`] that may be called on another thread.
pub type SendSink<'s, T = SchedEvent> = dyn FnMut(&[T]) -> ControlFlow<()> + Send + 's;

/// A batch of items in order.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'b, T = SchedEvent> {
    /// The items, one after the other in the order of the trace.
    pub items: &'b [T],
    /// The memory that has these items and no others, where a receiver may keep it.
    pub shared: Option<&'b Arc<Vec<T>>>,
}

impl<'b, T> Batch<'b, T> {
    /// A batch that a receiver may keep.
    pub fn shared(items: &'b Arc<Vec<T>>) -> Batch<'b, T> {
        Batch { items, shared: Some(items) }
    }
}

/// A [`Sink`] that may keep the memory of a batch.
pub type BatchSink<'s, T = SchedEvent> = dyn FnMut(Batch<'_, T>) -> ControlFlow<()> + 's;

/// Passes items on to a receiver of batches, which may keep none of them.
pub fn lending<T>(sink: &mut BatchSink<'_, T>) -> impl FnMut(&[T]) -> ControlFlow<()> {
    move |items| sink(Batch { items, shared: None })
}

/// Joins several receivers to one, which breaks when all of them have; a receiver that has broken is not called again.
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

/// A source of the events of one trace, which can be read any number of times.
///
/// Every reading must deliver the same events in the same order, (time, CPU, position in the file): a [`super::Pass`] reads
/// the beginning to learn the start, then everything, and all over again if the start turned out to be wrong. A source
/// that cannot read ends the reading with an error; damage that it can pass over is not an error but a finding
/// ([`EventSource::diagnostics`]). A slice of events is a source, and so is a mutable reference to one.
pub trait EventSource {
    /// The reason why a reading can fail.
    type Error;

    /// Finds the extent. Called before the events are read, once for each plan of a pass. A source finds it without
    /// reading all events if it can.
    fn extent(&mut self) -> Result<Extent, Self::Error>;

    /// Delivers all events in the order of the trace, in batches, until `sink` breaks. A batch may have any length but
    /// should hold many events.
    fn events(&mut self, sink: &mut Sink<'_>) -> Result<(), Self::Error>;

    /// Delivers the events at `from` and later, like [`EventSource::events`]. The default reads all events and drops
    /// the earlier ones; a source that can starts to read there.
    fn events_from(&mut self, from: Ts, sink: &mut Sink<'_>) -> Result<(), Self::Error> {
        self.events(&mut |events| match events.partition_point(|event| event.ts < from) {
            before if before < events.len() => sink(&events[before..]),
            _ => ControlFlow::Continue(()),
        })
    }

    /// Whether the beginnings of tasks are among the events: some `sched_wakeup_new` or `sched_process_fork`. If there
    /// is none, none was recorded, or no task began. Called only when a task was found whose beginning is not in the
    /// trace; the default is `true`.
    fn births(&mut self) -> bool {
        true
    }

    /// The name that the recorder saved for a task at the end of the recording; empty if the source has none.
    fn saved_name(&self, _: Pid) -> Comm {
        Comm::EMPTY
    }

    /// The number of threads that the source may use, at least 1.
    fn threads(&self) -> usize {
        1
    }

    /// The maximum size of the state of a pass over this source, in bytes; none where it may be any. A larger state ends the pass with
    /// [`EventSource::too_large`]: of traces that are measured side by side, those with many tasks are measured by themselves then.
    fn most_state(&self) -> Option<usize> {
        None
    }

    /// The error with which a pass ends whose state is larger than [`EventSource::most_state`]; none where that is none.
    fn too_large(&self) -> Option<Self::Error> {
        None
    }

    /// Delivers all events to several receivers until all have broken: to `first` on this thread, and to each of the
    /// `others` on a thread of its own if the source has threads. Each receiver gets all events in order. The default
    /// delivers on this thread.
    fn events_to_all(&mut self, first: &mut Sink<'_>, others: &mut [&mut SendSink<'_>]) -> Result<(), Self::Error> {
        self.events(&mut in_turn(first, others))
    }

    /// Delivers all events likewise, with the memory of those for `first` where it may keep it. The default lends it.
    fn batches_to_all(
        &mut self,
        first: &mut BatchSink<'_>,
        others: &mut [&mut SendSink<'_>],
    ) -> Result<(), Self::Error> {
        let first: &mut Sink<'_> = &mut lending(first);
        if others.is_empty() { self.events(first) } else { self.events_to_all(first, others) }
    }

    /// The findings on the source itself, as of the readings so far. Called after a reading.
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

    fn most_state(&self) -> Option<usize> {
        (**self).most_state()
    }

    fn too_large(&self) -> Option<S::Error> {
        (**self).too_large()
    }

    fn events_to_all(&mut self, first: &mut Sink<'_>, others: &mut [&mut SendSink<'_>]) -> Result<(), S::Error> {
        (**self).events_to_all(first, others)
    }

    fn batches_to_all(&mut self, first: &mut BatchSink<'_>, others: &mut [&mut SendSink<'_>]) -> Result<(), S::Error> {
        (**self).batches_to_all(first, others)
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
        // CPUs with no other events than stacks so far.
        let mut stacks: Vec<Cpu> = Vec::new();
        for event in *self {
            extent.wakeups |= matches!(event.kind, EventKind::Wakeup { .. });
            extent.wakings |= matches!(event.kind, EventKind::Waking { .. });
            let current = match event.kind {
                EventKind::Lost { .. } => Some(Current::Unknown),
                EventKind::Offline => Some(Current::Offline),
                // The next event shows the occupant.
                EventKind::Stack { .. } => None,
                _ => Some(Current::of(event.pid)),
            };
            match extent.firsts.iter_mut().find(|first| first.cpu == event.cpu) {
                None => {
                    stacks.extend(current.is_none().then_some(event.cpu));
                    let current = current.unwrap_or_default();
                    extent.firsts.push(FirstEvent { cpu: event.cpu, ts: event.ts, current });
                }
                Some(first) if current.is_some() && stacks.contains(&event.cpu) => {
                    first.current = current.unwrap_or_default();
                    stacks.retain(|cpu| *cpu != event.cpu);
                }
                Some(_) => {}
            }
        }
        Ok(extent)
    }

    fn events(&mut self, sink: &mut Sink<'_>) -> Result<(), Infallible> {
        let _ = sink(self);
        Ok(())
    }

    fn births(&mut self) -> bool {
        self.iter().any(|event| matches!(event.kind, EventKind::WakeupNew { .. } | EventKind::Fork { .. }))
    }
}
