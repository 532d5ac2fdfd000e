//! The scheduler's events: decoding a unit, and the merged stream of them.

use super::Trace;
use super::read_ahead::AHEAD;
use crate::bytes::Endian;
use crate::decode::clock::ClockConversion;
use crate::decode::cpu_offline::{Behind, Unfinished, Watch, Watched, comes_online};
use crate::decode::format::EventFormat;
use crate::decode::plan::{DecodePlan, Oddities, Want};
use crate::decode::prev_state::{Evidence, States};
use crate::decode::rt_lock_sleep::{LockSleeps, Search, Switch};
use crate::error::Error;
use crate::issue::FileIssue;
use crate::merge;
use crate::merge::unit_boundary::Timed;
use crate::parallel::parallel;
use crate::ring::page::{Loss, Raw};
use crate::ring::unit::{CpuPages, Unit, Visitor, join_losses};
use sched::pass::{Batch, BatchSink, Extent, FirstEvent, SendSink, Sink, in_turn, lending};
use sched::seeded::SeededMap;
use sched::{Comm, Cpu, Diagnostics, EventKind, EventSource, LostCount, Pid, SchedEvent, Tracepoint, Ts};
use std::ops::ControlFlow;

mod near;

impl Timed for SchedEvent {
    fn ts(&self) -> Ts {
        self.ts
    }

    fn set_ts(&mut self, ts: Ts) {
        self.ts = ts;
    }

    fn after_gap(cpu: Cpu, before: Ts, loss: Loss, _: Option<&mut SchedEvent>) -> Option<SchedEvent> {
        Some(lost(cpu, before, loss))
    }

    fn watch_on(cpu: Cpu, unwanted: &[u16], task: Unfinished, last: Ts, items: &mut Vec<SchedEvent>) -> bool {
        Watch::new(cpu, unwanted, Watched::Nothing).resume(task, last, items)
    }

    fn concluded(cpu: Cpu, ts: Ts, behind: Behind) -> Option<SchedEvent> {
        Some(behind.event(cpu, ts))
    }
}

/// Events of `cpu` are missing behind `ts`.
fn lost(cpu: Cpu, ts: Ts, loss: Loss) -> SchedEvent {
    SchedEvent { ts, cpu, pid: Pid::IDLE, flags: 0, kind: EventKind::Lost { count: loss.count.map(LostCount::of) } }
}

/// Decodes the records of a unit.
struct Decoder<'d> {
    trace: &'d Trace,
    plan: &'d DecodePlan,
    /// Events of these numbers come from another buffer.
    skip: &'d [bool],
    /// Stamps are instants as they are.
    is_instant: bool,
    cpu: Cpu,
    /// The CPU's very first record is yet to come.
    at_start: bool,
    watch: Watch<'d>,
    unit: Unit<SchedEvent>,
    /// The instant of the last record; before the first one later than any, so that this one is mended.
    last: Ts,
    odd: Oddities,
    backwards: u64,
    out_of_range: u64,
}

impl Visitor for Decoder<'_> {
    fn begin(&mut self, bytes: usize) {
        self.unit.items.reserve(bytes / 64);
    }

    #[inline(always)]
    fn record(&mut self, raw: &Raw<'_>) {
        let mut ts = if self.is_instant { ClockConversion::as_is(raw.ts) } else { self.trace.ts(self.cpu, raw.ts) };
        self.unit.records = self.unit.records.wrapping_add(1);
        if ts < self.last || ts == Ts::MAX || (!self.is_instant && ts == Ts::MIN) {
            ts = self.mend(raw.payload, ts);
        }
        self.last = ts;
        if !self.skip.is_empty() && self.is_skipped(raw.payload, raw.endian) {
            return;
        }
        let (cpu, items) = (self.cpu, &mut self.unit.items);
        let (place, mut look) = (items.len(), false);
        let watched = self.watch.is_awake();
        self.plan.decode(raw.endian, raw.payload, &mut self.odd, |pid, flags, kind| {
            // Each kind of event is emitted where it is decoded: of all but one this is known to be false there.
            look = watched || Watch::awakes(&kind);
            items.push(SchedEvent { ts, cpu, pid, flags, kind });
        });
        if look {
            let trace = self.trace;
            self.watch.look(place, items, &|| trace.behind_a_stopper());
        }
    }

    fn gap(&mut self, loss: Loss) {
        self.watch.lose();
        self.unit.marked.note(loss);
        match self.unit.records {
            1.. => self.unit.items.push(lost(self.cpu, self.last, loss)),
            0 => self.unit.lead = Some(join_losses(self.unit.lead.take(), loss)),
        }
    }

    fn damage(&mut self, what: FileIssue) {
        let cpu = self.cpu;
        self.unit.diagnostics.add_at(what, || format!("CPU {cpu}"));
    }
}

impl Decoder<'_> {
    /// The instant of a record that is the first of a unit, that steps back, or that no clock shows.
    #[cold]
    #[inline(never)]
    fn mend(&mut self, payload: &[u8], mut ts: Ts) -> Ts {
        match self.unit.records {
            1 if self.at_start => self.start(payload, ts),
            1 => {}
            _ if ts < self.last => {
                self.backwards = self.backwards.saturating_add(1);
                ts = self.last;
            }
            _ => {}
        }
        self.out_of_range = self.out_of_range.saturating_add(u64::from(ts == Ts::MAX || ts == Ts::MIN));
        ts
    }

    /// Whether an event comes from another buffer.
    fn is_skipped(&self, payload: &[u8], endian: Endian) -> bool {
        let id = self.plan.common().id(payload, endian).unwrap_or(0);
        self.skip.get(usize::from(id)).copied().unwrap_or(false)
    }

    /// A CPU whose first record is that of one that comes online was offline until then.
    #[cold]
    fn start(&mut self, payload: &[u8], ts: Ts) {
        self.at_start = false;
        let start = self.trace.start().unwrap_or(ts);
        if self.unit.lead.is_none() && start < ts && self.trace.shows_offline(self.cpu, payload) {
            self.unit.items.push(Behind::Offline.event(self.cpu, start));
        }
    }
}

impl Trace {
    /// Whether the first record of a CPU shows that it was offline until then. Another of several buffers may have
    /// earlier ones.
    pub(super) fn shows_offline(&self, cpu: Cpu, payload: &[u8]) -> bool {
        let plan = || DecodePlan::new(&self.formats, self.endian(), States::modern(), Want::Everything);
        self.selected.len() == 1 && comes_online(cpu, payload, self.full_plan.get_or_init(plan))
    }

    /// The plan for `want`, with the encoding of `prev_state` settled by a look at the data.
    pub(crate) fn plan(&self, want: Want) -> DecodePlan {
        let release = self.header.options.kernel();
        let mut plan = DecodePlan::of_kernel(&self.formats, self.endian(), States::modern(), want, release);
        plan.set_states(self.states().clone());
        plan
    }

    /// Returns the encoding of `prev_state` in this trace.
    pub(crate) fn states(&self) -> &States {
        self.states.get_or_init(|| {
            let switch = self.format_of(Tracepoint::Switch);
            let mut states = switch.and_then(|f| States::from_print_fmt(&f.print_fmt)).unwrap_or_else(States::modern);
            if let Some(note) = self.note() {
                return states.encoded(note.encoding);
            }
            let plan = DecodePlan::new(&self.formats, self.endian(), states.clone(), Want::Switches);
            let mut evidence = Evidence::default();
            for (_, pages) in self.selected_lanes().iter().take(64) {
                pages.walk(self.source(), 0, &mut Sampler { plan: &plan, evidence: &mut evidence });
            }
            states.settle(&evidence, self.header.options.kernel());
            states
        })
    }

    /// Decodes one unit of a CPU's data, its events into `space`, which is empty.
    pub(crate) fn decode(
        &self,
        pages: &CpuPages,
        unit: usize,
        plan: &DecodePlan,
        skip: &[bool],
        space: Vec<SchedEvent>,
    ) -> Unit<SchedEvent> {
        let mut decoder = Decoder {
            trace: self,
            plan,
            skip,
            is_instant: self.stamps_are_instants(),
            cpu: pages.cpu,
            at_start: unit == 0 && self.note().is_none(),
            watch: Watch::new(pages.cpu, plan.unwanted(), self.watched(pages)),
            unit: Unit { items: space, ..Unit::default() },
            last: Ts(i64::MAX),
            odd: Oddities::default(),
            backwards: 0,
            out_of_range: 0,
        };
        pages.walk(self.source(), unit, &mut decoder);
        self.count_read(pages, unit);
        let Decoder { mut unit, last, watch, odd, backwards, out_of_range, .. } = decoder;
        unit.last = (unit.records > 0).then_some(last);
        unit.unfinished = watch.unfinished(|| self.behind_a_stopper());
        unit.diagnostics.add_many(FileIssue::TimeBackwards, backwards);
        unit.diagnostics.add_many(FileIssue::TimeOutOfRange, out_of_range);
        unit.diagnostics.add_many(FileIssue::UnknownState, odd.unknown_states);
        unit.diagnostics.add_many(FileIssue::BadCpu, odd.bad_cpus);
        unit.diagnostics.add_many(FileIssue::CorruptRecord, odd.short_records.saturating_sub(odd.bad_cpus));
        unit
    }

    /// The scheduler's events of all CPUs in time order, as often as asked. Refused if the clock
    /// has no time.
    pub fn events(&self) -> Result<EventStream<'_>, Error> {
        self.events_of(Want::Everything)
    }

    /// Returns the wanted events of all CPUs in time order. Refused if the clock has no time.
    pub fn events_of(&self, want: Want) -> Result<EventStream<'_>, Error> {
        self.has_time()?;
        let mut diagnostics = Diagnostics::default();
        let skip = self.duplicates(&mut diagnostics);
        diagnostics.add_many(FileIssue::LockSleep, self.note().map_or(0, |note| note.all_sleeps));
        Ok(EventStream {
            trace: self,
            plan: self.plan(want),
            skip,
            found: diagnostics,
            read: Diagnostics::default(),
            steps_back: false,
            begin: None,
            sleeps: match self.note() {
                Some(note) => Some(LockSleeps::known(note.sleeps.clone())),
                None => (!self.looks_ahead(want)).then(LockSleeps::default),
            },
            most_state: self.options.most_state,
        })
    }

    /// Returns, for each buffer, the event numbers that an earlier buffer records as well. Two instances that both
    /// record the switches would otherwise show each of them twice.
    pub(crate) fn duplicates(&self, diagnostics: &mut Diagnostics) -> Vec<Vec<bool>> {
        let mut skip = vec![Vec::new(); self.lanes.len()];
        if self.selected.len() < 2 {
            return skip;
        }
        let counts = self.counts();
        for format in Tracepoint::STATE.into_iter().filter_map(|tracepoint| self.format_of(tracepoint)) {
            let with_events = |b: &&usize| self.occurs_in(**b, format.id);
            for buffer in self.selected.iter().filter(with_events).skip(1) {
                let Some(ids) = skip.get_mut(*buffer) else { continue };
                ids.resize(ids.len().max(usize::from(format.id).saturating_add(1)), false);
                if let Some(slot) = ids.get_mut(usize::from(format.id)) {
                    *slot = true;
                }
                let n = counts.buffers.get(*buffer).map_or(0, |c| c.of(format.id));
                diagnostics.add_many(FileIssue::DuplicateEvents, n);
            }
        }
        skip
    }

    /// Whether the state in a switch has to be found from later events.
    fn looks_ahead(&self, want: Want) -> bool {
        let switch = self.format_of(Tracepoint::Switch);
        want == Want::Everything && switch.is_some_and(LockSleeps::are_possible)
    }

    /// Names of the state's events that were not recorded at all.
    pub fn missing_events(&self) -> Vec<&'static str> {
        let occurs = |tracepoint: &Tracepoint| self.format_of(*tracepoint).is_some_and(|format| self.is_read(format));
        Tracepoint::STATE.into_iter().filter(|tracepoint| !occurs(tracepoint)).map(Tracepoint::name).collect()
    }

    /// Whether any event of this format is in the buffers that are read.
    fn is_read(&self, format: &EventFormat) -> bool {
        self.selected.iter().any(|b| self.occurs_in(*b, format.id))
    }

    /// Whether events of this tracepoint were recorded. The search is in the first unit of each CPU, and in the whole
    /// trace only if there is none.
    pub fn has(&self, tracepoint: Tracepoint) -> bool {
        self.format_of(tracepoint).is_some_and(|format| self.has_records(format))
    }

    /// Whether events `system:name` were recorded, searched for likewise. A file also describes events that exist on the
    /// machine and were not recorded.
    pub fn has_named(&self, system: &str, name: &str) -> bool {
        self.format_named(system, name).is_some_and(|format| self.has_records(format))
    }

    /// Whether events of this format were recorded, searched for likewise.
    pub(super) fn has_records(&self, format: &EventFormat) -> bool {
        for (_, pages) in self.selected_lanes() {
            let mut finder = Finder { id: format.id, common: *self.common(), found: false };
            pages.walk(self.source(), 0, &mut finder);
            if finder.found {
                return true;
            }
        }
        self.is_read(format)
    }
}

struct Sampler<'s> {
    plan: &'s DecodePlan,
    evidence: &'s mut Evidence,
}

impl Visitor for Sampler<'_> {
    fn record(&mut self, raw: &Raw<'_>) {
        if let Some((state, idle)) = self.plan.raw_state(raw.payload) {
            self.evidence.add(state, idle);
        }
    }

    fn gap(&mut self, _: Loss) {}

    fn damage(&mut self, _: FileIssue) {}
}

struct Finder {
    id: u16,
    common: crate::decode::plan::CommonAt,
    found: bool,
}

impl Visitor for Finder {
    fn record(&mut self, raw: &Raw<'_>) {
        self.found = self.found || self.common.id(raw.payload, raw.endian) == Some(self.id);
    }

    fn is_done(&self) -> bool {
        self.found
    }

    fn gap(&mut self, _: Loss) {}

    fn damage(&mut self, _: FileIssue) {}
}

/// The event numbers of a buffer that come from another.
pub(super) fn skip_of(skip: &[Vec<bool>], buffer: usize) -> &[bool] {
    skip.get(buffer).map_or(&[], Vec::as_slice)
}

/// Returns the evidence on each CPU's current task at `begin`: of several buffers the latest before `begin`, or else
/// the first one behind it.
fn each_cpu(evidence: impl Iterator<Item = FirstEvent>, begin: Ts) -> Vec<FirstEvent> {
    let mut firsts: Vec<FirstEvent> = Vec::new();
    let mut places: SeededMap<Cpu, usize> = SeededMap::default();
    for event in evidence {
        let better = |other: &FirstEvent| match (event.ts < begin, other.ts < begin) {
            (true, true) => event.ts > other.ts,
            (false, false) => event.ts < other.ts,
            (before, _) => before,
        };
        match places.get(&event.cpu).and_then(|place| firsts.get_mut(*place)) {
            Some(other) if better(other) => *other = event,
            Some(_) => {}
            None => {
                places.insert(event.cpu, firsts.len());
                firsts.push(event);
            }
        }
    }
    firsts
}

/// The merged events of a trace, for a [`sched::Pass`].
#[derive(Clone, Debug)]
pub struct EventStream<'t> {
    trace: &'t Trace,
    plan: DecodePlan,
    skip: Vec<Vec<bool>>,
    found: Diagnostics,
    read: Diagnostics,
    /// Times that step back were met.
    steps_back: bool,
    /// Time from which on events are read; `None` for the start of the trace.
    begin: Option<Ts>,
    /// Sleeps that are named otherwise; nothing until all was looked through for them.
    sleeps: Option<LockSleeps>,
    /// Maximum size of the state of a pass, in bytes ([`Options::most_state`]).
    most_state: Option<usize>,
}

impl<'t> EventStream<'t> {
    /// The same events for a pass whose state may have this number of bytes; [`Error::ManyTasks`] ends a pass with a larger one.
    #[must_use]
    pub fn with_most_state(self, bytes: usize) -> EventStream<'t> {
        EventStream { most_state: Some(self.most_state.map_or(bytes, |most| most.min(bytes))), ..self }
    }
}

impl EventSource for EventStream<'_> {
    type Error = Error;

    fn extent(&mut self) -> Result<Extent, Error> {
        let trace = self.trace;
        if let Some(past) = trace.past() {
            let (start, end, past) = (past.start, past.end, Some(past.clone()));
            let application = trace.application().cloned();
            return Ok(Extent { start, end, application, past, ..Extent::default() });
        }
        let evidence = match self.begin {
            Some(begin) => {
                parallel(trace.pool(), trace.selected_lanes(), |(buffer, pages)| self.evidence_of(buffer, pages, begin))
            }
            None => trace.firsts().to_vec(),
        };
        let end = trace.lasts().iter().flatten().max().copied();
        let firsts = each_cpu(evidence.into_iter().flatten(), self.begin.unwrap_or(Ts::MIN));
        let start = self.begin.or_else(|| firsts.iter().map(|first| first.ts).min());
        let (Some(start), Some(end)) = (start, end) else {
            return Err(trace.no_events());
        };
        let wakeups = trace.has(Tracepoint::Wakeup);
        let wakings = !wakeups && trace.has(Tracepoint::Waking);
        let (groups, sched_idle) = (trace.unshown.groups.clone(), trace.unshown.sched_idle.clone());
        let (has_ext_queues, without_contexts) = (trace.has_ext_queues(), trace.is_without_contexts());
        let (end, application) = (end.max(start), trace.application().cloned());
        let past = None;
        Ok(Extent {
            start,
            end,
            firsts,
            wakeups,
            wakings,
            groups,
            sched_idle,
            capacities: trace.unshown.capacities.clone(),
            has_ext_queues,
            without_contexts,
            application,
            past,
        })
    }

    fn events(&mut self, sink: &mut Sink<'_>) -> Result<(), Error> {
        match self.begin {
            Some(begin) => self.events_from(begin, sink),
            None => self.named(&self.trace.whole_lanes(), &mut |batch| sink(batch.items), &mut []),
        }
    }

    fn births(&mut self) -> bool {
        self.trace.has(Tracepoint::WakeupNew) || self.trace.has(Tracepoint::Fork)
    }

    fn saved_name(&self, pid: Pid) -> Comm {
        self.trace.saved_name(pid)
    }

    fn threads(&self) -> usize {
        self.trace.pool().as_ref().map_or(1, |pool| pool.current_num_threads())
    }

    fn most_state(&self) -> Option<usize> {
        self.most_state
    }

    fn too_large(&self) -> Option<Error> {
        self.most_state().map(|_| Error::ManyTasks)
    }

    fn events_to_all(&mut self, first: &mut Sink<'_>, others: &mut [&mut SendSink<'_>]) -> Result<(), Error> {
        match self.begin {
            Some(begin) => self.events_from(begin, &mut in_turn(first, others)),
            None => self.batches_to_all(&mut |batch| first(batch.items), others),
        }
    }

    fn batches_to_all(&mut self, first: &mut BatchSink<'_>, others: &mut [&mut SendSink<'_>]) -> Result<(), Error> {
        match self.begin {
            Some(begin) => self.events_from(begin, &mut in_turn(&mut lending(first), others)),
            None => self.named(&self.trace.whole_lanes(), first, others),
        }
    }

    fn events_from(&mut self, from: Ts, sink: &mut Sink<'_>) -> Result<(), Error> {
        let trace = self.trace;
        self.look_ahead()?;
        // Where a clock stepped back, the time of a unit does not show what is before it.
        let lanes = if self.steps_back { trace.whole_lanes() } else { trace.lanes_from(from) };
        let mut sink = later(from, sink);
        self.named(&lanes, &mut |batch| sink(batch.items), &mut [])
    }

    fn diagnostics(&self) -> Diagnostics {
        let mut all = self.trace.diagnostics().clone();
        all.merge(&self.found);
        all.merge(&self.read);
        if let Some(begin) = self.begin {
            let start = self.trace.start().unwrap_or_default();
            all.add_at(FileIssue::FastWindow, || format!("read from {:.6} s on", begin.since(start).seconds()));
        }
        all
    }
}

/// Passes on to `sink` only the events at `from` and later.
fn later<'s, S: FnMut(&[SchedEvent]) -> ControlFlow<()> + ?Sized>(
    from: Ts,
    sink: &'s mut S,
) -> impl FnMut(&[SchedEvent]) -> ControlFlow<()> + use<'s, S> {
    move |events| match events.partition_point(|event| event.ts < from) {
        before if before < events.len() => sink(events.get(before..).unwrap_or_default()),
        _ => ControlFlow::Continue(()),
    }
}

impl<'t> EventStream<'t> {
    /// The events of these lanes, each from a unit of it on, with sleeps named as sleeps.
    fn named(
        &mut self,
        lanes: &[(usize, &'t CpuPages, usize)],
        first: &mut BatchSink<'_>,
        others: &mut [&mut SendSink<'_>],
    ) -> Result<(), Error> {
        self.look_ahead()?;
        let sleeps = self.sleeps.take().unwrap_or_default();
        let result = if sleeps.is_empty() {
            self.read(lanes, first, others)
        } else {
            let mut others: Vec<_> = others.iter_mut().map(|sink| sleeps.names(*sink)).collect();
            let mut others: Vec<&mut SendSink<'_>> = others.iter_mut().map(|sink| sink as _).collect();
            let mut first = lending(first);
            let mut first = sleeps.names(&mut first);
            self.read(lanes, &mut |batch| first(batch.items), &mut others)
        };
        self.sleeps = Some(sleeps);
        result
    }

    /// The number of switches that began a sleep on a lock, and those from `from` to `to`.
    pub(crate) fn sleeps_within(&mut self, from: Ts, to: Ts) -> Result<(u64, Vec<Switch>), Error> {
        self.look_ahead()?;
        let sleeps = self.sleeps.as_ref().map_or_else(Vec::new, |sleeps| sleeps.within(from, to));
        Ok((self.found.count(FileIssue::LockSleep), sleeps))
    }

    /// Looks through all that can be read for sleeps on a lock, once.
    fn look_ahead(&mut self) -> Result<(), Error> {
        if self.sleeps.is_some() {
            return Ok(());
        }
        let trace = self.trace;
        let lanes = self.begin.map_or_else(|| trace.whole_lanes(), |begin| trace.lanes_from(begin));
        let mut search = Search::new(trace.header.options.kernel());
        let mut look = |batch: Batch<'_>| {
            batch.items.iter().for_each(|event| search.look(event));
            ControlFlow::Continue(())
        };
        self.read(&lanes, &mut look, &mut [])?;
        let sleeps = search.finish();
        self.found.add_many(FileIssue::LockSleep, sleeps.number());
        self.sleeps = Some(sleeps);
        Ok(())
    }

    /// Reads these lanes, each from a unit of it on.
    fn read(
        &mut self,
        lanes: &[(usize, &'t CpuPages, usize)],
        first: &mut BatchSink<'_>,
        others: &mut [&mut SendSink<'_>],
    ) -> Result<(), Error> {
        let trace = self.trace;
        let start = trace.start().unwrap_or_default();
        let from_middle = trace.will_read_lanes(lanes);
        let decode = |task: merge::UnitTask<'_, SchedEvent>| {
            if from_middle {
                trace.reads(task.pages, task.unit, AHEAD);
            }
            trace.decode(task.pages, task.unit, &self.plan, skip_of(&self.skip, task.buffer), task.space)
        };
        self.read = match trace.past().map(|past| past.from) {
            None => merge::merge(lanes, start, trace.budget(), trace.pool(), decode, first, others),
            Some(from) => {
                // A loss before the part is in the state before it.
                let mut others: Vec<_> = others.iter_mut().map(|sink| later(from, *sink)).collect();
                let mut others: Vec<&mut SendSink<'_>> = others.iter_mut().map(|sink| sink as _).collect();
                let mut first = lending(first);
                let mut first = later(from, &mut first);
                let first: &mut BatchSink<'_> = &mut |batch| first(batch.items);
                merge::merge(lanes, start, trace.budget(), trace.pool(), decode, first, &mut others)
            }
        };
        self.steps_back |= self.read.count(FileIssue::TimeBackwards) > 0;
        Ok(())
    }
}
